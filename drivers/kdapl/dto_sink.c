// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sinks of RDMA Reads on iWARP adapters.
 *
 * Over iWARP the response to an RDMA Read is a write of the peer, to the key that the Read
 * names. So adapters accept a sink only in memory registered for writing by the peer. (siw
 * accepts any key; InfiniBand has no such need.) Memory that the consumer has not opened to
 * the peer may be open no longer than the Read takes, and no more of it than the sink. So
 * each entry of the send queue has an MR of its own: the work request before the Read
 * registers just the sink, and the Read invalidates it. The MRs are allocated with the
 * queue pair, since the posting calls cannot allocate.
 *
 * A Read that fails invalidates nothing, and its key stays valid for all connections of the
 * PZ. So for the consumer it ends only when the MRs are freed. Until a Read has ended, its
 * LMR is in use and cannot be freed.
 *
 * The peers of a PZ need not trust each other: a target has one PZ, as Endpoints that
 * share an SRQ must have one. The key of a sink is easy to guess, since all but eight of
 * its bits belong to the MR. A write also needs the address, so each sink is registered
 * at a random one: 51 bits that only the peer asked for the data learns. A wrong guess
 * ends the connection of the peer that makes it.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz_lmr.h"
#include "pz.h"
#include "pz_sg.h"

/*
 * struct kdapl_sinks - MRs for the Reads of an Endpoint; protected by sq.lock
 * @sgt: room for the pages of one sink
 * @max_pages: number of pages in @sgt
 * @n: length of @mr
 * @mr: one for each entry of the send queue
 */
struct kdapl_sinks {
	struct sg_table sgt;
	u32 max_pages;
	u32 n;
	struct ib_mr *mr[];
};

/* The registration that precedes the Read in a chain of two. */
struct kdapl_sink_wr {
	struct ib_reg_wr reg;
	u64 addr;			/* address of the sink in its LMR */
	DAT_LMR_CONTEXT context;
};

static struct kdapl_sinks *kdapl_sinks_new(struct kdapl_ep *ep)
{
	u64 len = ep->attr.max_rdma_size;
	struct kdapl_sinks *sinks;
	u32 n = ep->sq.mask + 1;

	sinks = kvzalloc(struct_size(sinks, mr, n), GFP_KERNEL);
	if (!sinks)
		return NULL;
	sinks->n = n;
	sinks->max_pages = min_t(u64, DIV_ROUND_UP_ULL(len, PAGE_SIZE) + 1,
				 ep->obj.ia->hca->attrs.max_fast_reg_page_list_len);
	if (!sg_alloc_table(&sinks->sgt, sinks->max_pages, GFP_KERNEL))
		return sinks;
	kvfree(sinks);
	return NULL;
}

/**
 * kdapl_sinks_alloc - allocate the MRs for the Reads of an Endpoint
 * @ep: has a PZ, and no queue pair yet
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0 or an errno.
 */
int kdapl_sinks_alloc(struct kdapl_ep *ep)
{
	struct ib_mr *mr;
	u32 i;

	lockdep_assert_held(&ep->obj.ia->hca->sem);

	if (!ep->obj.ia->reads_to_key || !ep->attr.max_rdma_read_out ||
	    !ep->req_evd)
		return 0;
	ep->sinks = kdapl_sinks_new(ep);
	if (!ep->sinks)
		return -ENOMEM;
	for (i = 0; i < ep->sinks->n; i++) {
		mr = ib_alloc_mr(ep->pz->pd, IB_MR_TYPE_MEM_REG,
				 ep->sinks->max_pages);
		if (IS_ERR(mr)) {
			kdapl_sinks_free(ep);
			return PTR_ERR(mr);
		}
		ep->sinks->mr[i] = mr;
	}
	return 0;
}

void kdapl_sinks_free(struct kdapl_ep *ep)
{
	struct kdapl_sinks *sinks = ep->sinks;
	u32 i;

	if (!sinks)
		return;
	ep->sinks = NULL;
	for (i = 0; i < sinks->n && sinks->mr[i]; i++)
		ib_dereg_mr(sinks->mr[i]);
	sg_free_table(&sinks->sgt);
	kvfree(sinks);
}

/*
 * Would the adapter refuse this segment, which was checked, as a sink? Context: RCU
 * read-side section.
 */
bool kdapl_sink_needed(struct kdapl_ep *ep, const DAT_LMR_TRIPLET *sink)
{
	struct kdapl_lmr *lmr;

	if (likely(!ep->obj.ia->reads_to_key))
		return false;
	lmr = kdapl_lmr_find(sink->lmr_context);
	return !lmr || !(lmr->priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
}

/**
 * kdapl_sink_post - post an RDMA Read behind the registration of its sink
 * @ep: the Endpoint
 * @read: the Read, with one segment, which is not empty; complete except for the
 *	segment's address and key
 * @sink: place of the segment in an LMR
 * @cookie: the consumer's cookie
 * @flags: completion flags, checked
 * @map: mapping that the sink names, referenced by the caller; NULL for an LMR
 *
 * Context: Any; RCU read-side section.
 * Return: %DAT_SUCCESS, or why the Read is refused
 */
DAT_RETURN kdapl_sink_post(struct kdapl_ep *ep, struct ib_rdma_wr *read,
			   const DAT_LMR_TRIPLET *sink, DAT_DTO_COOKIE cookie,
			   DAT_COMPLETION_FLAGS flags, struct kdapl_sg *map)
{
	struct kdapl_sink_wr wr = {
		.reg.wr.opcode = IB_WR_REG_MR,
		.reg.wr.next = &read->wr,
		.reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		.addr = sink->virtual_address,
		.context = sink->lmr_context,
	};
	struct kdapl_lmr *lmr = kdapl_lmr_find(sink->lmr_context);
	u32 len = read->wr.sg_list->length;
	DAT_LMR_TRIPLET seg = *sink;
	DAT_RETURN ret;

	read->wr.opcode = IB_WR_RDMA_READ_WITH_INV;
	if (map)
		return kdapl_post_sq(ep, &wr.reg.wr, cookie, DAT_DTO_RDMA_READ,
				     flags, &map->obj, len);
	/* The LMR may have been freed since it was checked. */
	if (!lmr || !kdapl_dep_tryget(&lmr->obj))
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 DAT_PRIVILEGES_WRITE);
	if (static_branch_unlikely(&kdapl_dma_syncs)) {
		seg.segment_length = len;
		kdapl_segs_to_device(&ep->sq, flags,
				     &(struct kdapl_segs) { .iov = &seg, .n = 1 });
	}
	ret = kdapl_post_sq(ep, &wr.reg.wr, cookie, DAT_DTO_RDMA_READ, flags,
			    &lmr->obj, len);
	if (ret != DAT_SUCCESS)
		kdapl_dep_put(&lmr->obj);
	return ret;
}

/*
 * Fill sinks->sgt with the pages of the sink of @to in an LMR or a mapping. Return -ENOENT if
 * the LMR was bound anew since the segment was checked: that memory may not be for writing.
 */
static int kdapl_sink_slice(struct kdapl_sinks *sinks, struct kdapl_obj *mem,
			    const struct kdapl_sink_wr *to, u64 len)
{
	struct kdapl_lmr *lmr = container_of(mem, struct kdapl_lmr, obj);
	struct scatterlist *sg = sinks->sgt.sgl;
	unsigned long flags;
	int err = -ENOENT;
	u64 offset;

	if (kdapl_type(mem) == KDAPL_TYPE_SG || lmr->reserved) {
		sg_dma_address(sg) = to->addr;
		sg_dma_len(sg) = len;
		sinks->sgt.nents = 1;
		return 0;
	}
	spin_lock_irqsave(&lmr->lock, flags);
	offset = to->addr - lmr->base;
	if (lmr->valid && lmr->context == to->context &&
	    offset <= lmr->len && len <= lmr->len - offset)
		err = kdapl_region_slice(lmr, offset, len, &sinks->sgt,
					 sinks->max_pages);
	spin_unlock_irqrestore(&lmr->lock, flags);
	return err;
}

/*
 * Register @mr, whose old key is invalid, for the sink in sinks->sgt: at a random address
 * that does not wrap around, with a key that differs from the old one.
 */
static int kdapl_sink_map(struct kdapl_sinks *sinks, struct ib_mr *mr, u64 len)
{
	u64 offset = offset_in_page(sg_dma_address(sinks->sgt.sgl));
	u64 secret = get_random_u64();
	int err;

	err = kdapl_mr_map(mr, &sinks->sgt, round_down(secret >> 1, PAGE_SIZE) + offset, len);
	if (!err)
		ib_update_fast_reg_key(mr, (u8)(mr->rkey + 1 + (u8)secret % U8_MAX));
	return err;
}

/**
 * kdapl_sink_load - set up the registration of a Read that is about to be entered
 * @ep: the Endpoint
 * @wr: the registration, first of a chain of two
 * @mem: the LMR or mapping, referenced by the caller
 *
 * Context: Any; RCU read-side section.
 * Return: %DAT_SUCCESS, or why the Read is refused
 */
DAT_RETURN kdapl_sink_load(struct kdapl_ep *ep, struct ib_send_wr *wr,
			   struct kdapl_obj *mem)
{
	struct kdapl_sink_wr *to = container_of(wr, struct kdapl_sink_wr,
						reg.wr);
	struct ib_sge *sge = wr->next->sg_list;
	struct kdapl_sinks *sinks = ep->sinks;
	struct kdapl_ring *sq = &ep->sq;
	struct ib_mr *mr;
	int err;

	lockdep_assert_held(&sq->lock);

	/* Without a queue pair the Read is flushed. */
	if (!sq->qp && !ep->deferred)
		return DAT_SUCCESS;
	/* Not since kdapl_ep_settle() waits for posts that have seen another connection. */
	if (!sinks)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_CREDITS);
	err = kdapl_sink_slice(sinks, mem, to, sge->length);
	if (err == -ENOENT)
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
				 DAT_PRIVILEGES_WRITE);
	mr = sinks->mr[sq->head & sq->mask];
	if (err || kdapl_sink_map(sinks, mr, sge->length))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY_REGION);
	if (sq->niov) {
		/* Record the sink, as kdapl_request_name() does for other Reads. */
		kdapl_ring_wr(sq, sq->head)->sge[0].addr = to->addr;
		kdapl_ring_wr(sq, sq->head)->sge[0].length = sge->length;
	}
	to->reg.mr = mr;
	to->reg.key = mr->rkey;
	sge->addr = mr->iova;
	sge->lkey = mr->lkey;
	wr->next->ex.invalidate_rkey = mr->rkey;
	return DAT_SUCCESS;
}
