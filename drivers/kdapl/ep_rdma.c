// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The posting calls for RDMA Read and RDMA Write, and for several requests of any kind.
 * They are in a layer above dto.c, since a Read may go to an RMR.
 */
#include "dto_post.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"
#include "pz_sge.h"

/*
 * Begin a request; checking and posting fill in the other members. An initialiser of the
 * whole structure becomes a string instruction, which takes a third of the time of a
 * post.
 */
static __always_inline void kdapl_rdma_init(struct ib_rdma_wr *wr,
					    enum ib_wr_opcode opcode)
{
	wr->wr.next = NULL;
	wr->wr.opcode = opcode;
	wr->wr.send_flags = 0;
	wr->wr.ex.imm_data = 0;
}

/*
 * Check the remote buffer. A Read fetches all of it; a Write may use only a part of it,
 * and passes its own @length.
 */
static __always_inline DAT_RETURN
kdapl_rdma_check(struct kdapl_ep *ep, const DAT_RMR_TRIPLET *remote, u64 length,
		 int arg)
{
	if (!remote || min_t(u64, remote->segment_length, length) >
		       ep->attr.max_rdma_size)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	return DAT_SUCCESS;
}

/*
 * Fill in the rest of a Read or Write whose segments and @flags were checked. Drops the
 * flags that the device does not accept.
 */
static __always_inline DAT_RETURN
kdapl_rdma_fill(struct kdapl_ep *ep, struct ib_rdma_wr *wr, struct ib_sge *sge,
		const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS *flags,
		int flags_arg)
{
	const bool read = wr->wr.opcode == IB_WR_RDMA_READ;
	DAT_RETURN ret;

	if (unlikely(*flags)) {
		ret = kdapl_flags_check(ep, *flags, read ? DAT_DTO_RDMA_READ :
							   DAT_DTO_RDMA_WRITE,
					flags_arg);
		if (ret != DAT_SUCCESS)
			return ret;
		/* iWARP answers Reads in order. */
		if (read && kdapl_has_quirk(ep->obj.ia->hca, KDAPL_QUIRK_READ_FENCE))
			*flags &= ~DAT_COMPLETION_BARRIER_FENCE_FLAG;
	}
	wr->wr.sg_list = sge;
	wr->remote_addr = remote->virtual_address;
	wr->rkey = remote->rmr_context;
	return DAT_SUCCESS;
}

/*
 * Check a Write and fill in @wr, whose opcode is set, and its segments @sge. Sets
 * segs->len, and segs->map as kdapl_sge_build() does.
 */
static __always_inline DAT_RETURN
kdapl_write_build(struct kdapl_ep *ep, struct kdapl_segs *segs,
		  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags,
		  struct ib_rdma_wr *wr, struct ib_sge *sge)
{
	DAT_RETURN ret;
	u64 total;

	ret = kdapl_sge_check(ep->pz, ep->obj.handle, segs->n, segs->iov,
			      ep->attr.max_rdma_write_iov,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG, sge,
			      &wr->wr.num_sge, &total, &segs->map);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_rdma_check(ep, remote, total, DAT_INVALID_ARG5);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(total > remote->segment_length))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	segs->len = total;
	return kdapl_rdma_fill(ep, wr, sge, remote, &flags, DAT_INVALID_ARG6);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle,
				  DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov,
				  DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_segs segs = kdapl_segs(num_segments, local_iov);
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	struct ib_rdma_wr wr __uninitialized;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	kdapl_rdma_init(&wr, IB_WR_RDMA_WRITE);
	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	ret = kdapl_write_build(ep, &segs, remote_iov, completion_flags, &wr,
				sge);
	if (likely(ret == DAT_SUCCESS)) {
		wr.wr.send_flags = kdapl_send_flags(completion_flags);
		ret = kdapl_post(ep, &wr.wr, user_cookie, DAT_DTO_RDMA_WRITE,
				 completion_flags, NULL, &segs, false);
	}
	if (unlikely(segs.map && ret != DAT_SUCCESS))
		kdapl_sg_put(segs.map);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

/*
 * Post a Read that was checked. @sink: if the device needs the sink registered, the sink;
 * else NULL
 */
static DAT_RETURN kdapl_post_read(struct kdapl_ep *ep, struct ib_rdma_wr *wr,
				  const DAT_LMR_TRIPLET *sink,
				  DAT_DTO_COOKIE cookie,
				  DAT_COMPLETION_FLAGS flags,
				  const struct kdapl_segs *segs)
{
	if (unlikely(sink))
		return kdapl_sink_post(ep, wr, sink, cookie, flags, segs->map);
	wr->wr.send_flags = kdapl_send_flags(flags);
	return kdapl_post(ep, &wr->wr, cookie, DAT_DTO_RDMA_READ, flags, NULL, segs, false);
}

/*
 * Trim the sink of a Read to @length: a Read fetches as much as its sink holds. Over
 * iWARP a Read of no bytes has a sink, too.
 */
static int kdapl_sge_trim(struct kdapl_ep *ep, struct ib_sge *sge, int nsge,
			  u32 length)
{
	const struct kdapl_pz *pz = READ_ONCE(ep->pz);
	int i;

	if (!length && ep->obj.ia->iwarp) {
		memset(sge, 0, sizeof(*sge));
		/* Without a PZ there is no connection, so the key is not used. */
		sge->lkey = pz ? pz->lkey : 0;
		return 1;
	}
	for (i = 0; i < nsge && length; i++) {
		sge[i].length = min(sge[i].length, length);
		length -= sge[i].length;
	}
	return i;
}

/*
 * Check a Read and fill in @wr, whose opcode is set, and its segments @sge. May change
 * @flags; sets @segs as kdapl_write_build() does.
 */
static DAT_RETURN kdapl_read_build(struct kdapl_ep *ep, struct kdapl_segs *segs,
				   const DAT_RMR_TRIPLET *remote,
				   DAT_COMPLETION_FLAGS *flags,
				   struct ib_rdma_wr *wr, struct ib_sge *sge)
{
	DAT_RETURN ret;
	u64 total;

	ret = kdapl_sge_check(ep->pz, ep->obj.handle, segs->n, segs->iov,
			      ep->attr.max_rdma_read_iov,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, sge,
			      &wr->wr.num_sge, &total, &segs->map);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_rdma_check(ep, remote, U64_MAX, DAT_INVALID_ARG5);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(total < remote->segment_length))
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	wr->wr.num_sge = kdapl_sge_trim(ep, sge, wr->wr.num_sge,
					remote->segment_length);
	segs->len = remote->segment_length;
	return kdapl_rdma_fill(ep, wr, sge, remote, flags, DAT_INVALID_ARG6);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle,
				 DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov,
				 DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_segs segs = kdapl_segs(num_segments, local_iov);
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	struct ib_rdma_wr wr __uninitialized;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	kdapl_rdma_init(&wr, IB_WR_RDMA_READ);
	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	ret = kdapl_read_build(ep, &segs, remote_iov, &completion_flags, &wr,
			       sge);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_post_read(ep, &wr, remote_iov->segment_length &&
				      kdapl_sink_needed(ep, local_iov) ?
				      local_iov : NULL, user_cookie,
				      completion_flags, &segs);
	if (unlikely(segs.map && ret != DAT_SUCCESS))
		kdapl_sg_put(segs.map);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle,
					const DAT_RMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_READ };
	struct kdapl_segs segs = { };
	DAT_LMR_TRIPLET below;
	struct ib_sge sge;
	struct kdapl_ep *ep;
	DAT_RETURN ret;
	bool keyed;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (!local_iov) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	ret = kdapl_rdma_check(ep, remote_iov, U64_MAX, DAT_INVALID_ARG4);
	if (ret == DAT_SUCCESS)
		ret = kdapl_rmr_check_sink(ep, local_iov, &below, &keyed);
	if (ret != DAT_SUCCESS)
		goto out;
	if (local_iov->segment_length < remote_iov->segment_length) {
		ret = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	/* A window is a fast-registered MR, whose two keys are the same. */
	sge.addr = local_iov->virtual_address;
	sge.length = remote_iov->segment_length;
	sge.lkey = local_iov->rmr_context;
	wr.wr.num_sge = 1;
	ret = kdapl_rdma_fill(ep, &wr, &sge, remote_iov, &completion_flags,
			      DAT_INVALID_ARG5);
	if (ret == DAT_SUCCESS && static_branch_unlikely(&kdapl_dma_syncs)) {
		below.segment_length = sge.length;
		segs = kdapl_segs(1, &below);
	}
	segs.len = sge.length;
	if (ret == DAT_SUCCESS)
		ret = kdapl_post_read(ep, &wr, sge.length && !keyed ? &below : NULL,
				      user_cookie, completion_flags, &segs);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read_to_rmr);

/*
 * Check request @r of several, and fill in @to and its segments @sge. A request that the
 * device could do only as a chain of two is refused.
 */
static DAT_RETURN kdapl_batch_build(struct kdapl_ep *ep, const KDAT_REQUEST *r,
				    struct kdapl_request *to,
				    struct ib_sge *sge)
{
	to->wr.wr.wr_id = r->user_cookie.as_64;
	to->op = r->operation;
	to->flags = r->completion_flags;
	to->segs = kdapl_segs(r->num_segments, r->local_iov);
	switch (r->operation) {
	case DAT_DTO_SEND:
		kdapl_rdma_init(&to->wr, IB_WR_SEND);
		if (r->invalidate_flag) {
			to->wr.wr.opcode = IB_WR_SEND_WITH_INV;
			to->wr.wr.ex.invalidate_rkey = r->rmr_context;
		}
		return kdapl_send_build(ep, &to->segs, to->flags, &to->wr.wr,
					sge);
	case DAT_DTO_RDMA_WRITE:
		kdapl_rdma_init(&to->wr, IB_WR_RDMA_WRITE);
		return kdapl_write_build(ep, &to->segs, r->remote_iov,
					 to->flags, &to->wr, sge);
	case DAT_DTO_RDMA_READ:
		if (ep->obj.ia->reads_to_key)
			return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED,
					 DAT_NO_SUBTYPE);
		kdapl_rdma_init(&to->wr, IB_WR_RDMA_READ);
		return kdapl_read_build(ep, &to->segs, r->remote_iov, &to->flags,
					&to->wr, sge);
	default:
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
}

/* Check and post @n requests, building them in @req and @sge. */
static DAT_RETURN kdapl_batch_post(struct kdapl_ep *ep, int n,
				   const KDAT_REQUEST *requests,
				   struct kdapl_request *req,
				   struct ib_sge *sge)
{
	DAT_RETURN ret = DAT_SUCCESS;
	int i, used = 0;

	for (i = 0; i < n; i++)
		req[i].segs.map = NULL;
	for (i = 0; i < n && ret == DAT_SUCCESS; i++) {
		/* Even an empty Read has a segment over iWARP. */
		if (requests[i].num_segments > KDAT_MAX_SEGMENTS - used ||
		    used == KDAT_MAX_SEGMENTS)
			ret = DAT_ERROR(DAT_INVALID_PARAMETER,
					DAT_INVALID_ARG3);
		else
			ret = kdapl_batch_build(ep, &requests[i], &req[i],
						sge + used);
		if (ret == DAT_SUCCESS)
			used += req[i].wr.wr.num_sge;
	}
	/* All errors in a request are errors of the third argument. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_post_batch(ep, req, n);
	if (unlikely(ret != DAT_SUCCESS))
		for (i = 0; i < n; i++)
			if (req[i].segs.map)
				kdapl_sg_put(req[i].segs.map);
	return ret;
}

DAT_RETURN kdat_ep_post_requests(DAT_EP_HANDLE ep_handle,
				 DAT_COUNT num_requests,
				 const KDAT_REQUEST *requests)
{
	struct kdapl_request req[KDAT_MAX_REQUESTS] __uninitialized;
	struct ib_sge sge[KDAT_MAX_SEGMENTS] __uninitialized;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep))
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (num_requests <= 0 || num_requests > KDAT_MAX_REQUESTS)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!requests)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	else
		ret = kdapl_batch_post(ep, num_requests, requests, req, sge);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_ep_post_requests);
