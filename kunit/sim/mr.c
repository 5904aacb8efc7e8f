// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions, and copying from one list of segments to another.
 *
 * Each piece of memory is looked up by its key when it is copied, and the region
 * is in use while it is; sim_mr_stop() makes a region invalid and waits for its
 * users. Engines copy with softirqs disabled, so that is not long, and whoever
 * waits does not wait for its own CPU.
 */
#include <linux/dma-direct.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "sim.h"

#define SIM_REMOTE (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* All regions of all devices, by the upper 24 bits of their keys. */
static DEFINE_XARRAY_FLAGS(sim_mrs, XA_FLAGS_ALLOC);
static u32 sim_next_mr;

/* ---- Regions ------------------------------------------------------------- */

static struct ib_mr *sim_mr_new(struct ib_pd *pd, u32 max_pages)
{
	struct sim_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err = -ENOMEM;

	if (!mr)
		return ERR_PTR(err);
	mr->pd = pd;
	mr->max_pages = max_pages;
	if (max_pages) {
		mr->pages = kvcalloc(max_pages, sizeof(*mr->pages), GFP_KERNEL);
		if (!mr->pages)
			goto err_free;
	}
	/* 1 is that of SIM_DMA_LKEY. */
	err = xa_alloc_cyclic(&sim_mrs, &mr->index, mr, XA_LIMIT(2, 0xffffff),
			      &sim_next_mr, GFP_KERNEL);
	if (err < 0)
		goto err_free;
	mr->key = mr->index << 8;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	sim_count(to_sim_dev(pd->device), mrs);
	return &mr->ib;

err_free:
	kvfree(mr->pages);
	kfree(mr);
	return ERR_PTR(err);
}

struct ib_mr *sim_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *ibmr = sim_mr_new(pd, 0);
	struct sim_mr *mr;

	if (IS_ERR(ibmr))
		return ibmr;
	mr = to_sim_mr(ibmr);
	mr->all = true;
	mr->access = access;
	/* Pairs with sim_mr_get(), as below. */
	smp_store_release(&mr->valid, true);
	return ibmr;
}

struct ib_mr *sim_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
			   u32 max_num_sg)
{
	if (type != IB_MR_TYPE_MEM_REG || !max_num_sg ||
	    max_num_sg > sim_max_pages(to_sim_dev(pd->device)))
		return ERR_PTR(-EINVAL);
	if (sim_times(to_sim_dev(pd->device), fail_mr))
		return ERR_PTR(-ENOMEM);
	return sim_mr_new(pd, max_num_sg);
}

static int sim_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	if (mr->n_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->n_pages++] = addr;
	return 0;
}

int sim_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sgl, int nents,
		  unsigned int *offset)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	if (sim_times(to_sim_dev(ibmr->device), fail_map))
		return -EIO;
	mr->n_pages = 0;
	return ib_sg_to_pages(ibmr, sgl, nents, offset, sim_set_page);
}

/* Nobody accesses the region afterwards. */
static void sim_mr_stop(struct sim_mr *mr)
{
	WRITE_ONCE(mr->valid, false);
	/* Pairs with that in sim_mr_get(). */
	smp_mb();
	while (atomic_read_acquire(&mr->users))
		cpu_relax();
}

int sim_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	xa_erase(&sim_mrs, mr->index);
	sim_mr_stop(mr);
	sim_uncount(to_sim_dev(ibmr->device), mrs);
	kvfree(mr->pages);
	kfree_rcu(mr, rcu);
	return 0;
}

/* The valid region of this key, in use; NULL if there is none. */
static struct sim_mr *sim_mr_get(struct ib_pd *pd, u32 key)
{
	struct sim_mr *mr;

	rcu_read_lock();
	mr = xa_load(&sim_mrs, key >> 8);
	if (mr) {
		atomic_inc(&mr->users);
		/* Pairs with that in sim_mr_stop(). */
		smp_mb();
		/* Pairs with sim_mr_register(). */
		if (!smp_load_acquire(&mr->valid) || mr->key != key || mr->pd != pd) {
			atomic_dec(&mr->users);
			mr = NULL;
		}
	}
	rcu_read_unlock();
	return mr;
}

static void sim_mr_put(struct sim_mr *mr)
{
	if (mr)
		atomic_dec_return_release(&mr->users);
}

/* Execute REG_MR; returns whether the request is right. */
bool sim_mr_register(struct sim_qp *qp, const struct sim_swqe *wqe)
{
	struct sim_mr *mr = wqe->mr;

	if (mr->pd != qp->ib.pd || mr->all || mr->valid || !mr->n_pages ||
	    wqe->key >> 8 != mr->index)
		return false;
	mr->key = wqe->key;
	mr->access = wqe->access;
	mr->iova = mr->ib.iova;
	mr->length = mr->ib.length;
	mr->shift = ilog2(mr->ib.page_size);
	/* Pairs with sim_mr_get(): who sees it valid sees the rest. */
	smp_store_release(&mr->valid, true);
	return true;
}

/* Execute an invalidation by the peer: the region must be valid. */
bool sim_mr_invalidate(struct ib_pd *pd, u32 key)
{
	struct sim_mr *mr = sim_mr_get(pd, key);
	bool ok;

	if (!mr)
		return false;
	ok = !mr->all;
	sim_mr_put(mr);
	if (ok)
		sim_mr_stop(mr);
	return ok;
}

/* Execute LOCAL_INV; a region that is not valid may be invalidated as well. */
bool sim_mr_invalidate_own(struct ib_pd *pd, u32 key)
{
	struct sim_mr *mr;
	bool ok = false;

	rcu_read_lock();
	mr = xa_load(&sim_mrs, key >> 8);
	if (mr && mr->pd == pd && !mr->all &&
	    (mr->key == key || mr->ib.rkey == key)) {
		sim_mr_stop(mr);
		ok = true;
	}
	rcu_read_unlock();
	return ok;
}

/* ---- Access -------------------------------------------------------------- */

struct sim_piece {
	struct sim_mr *mr;
	void *p;
	u32 len;
};

/* Where the adapter finds what it knows by this address. */
static void *sim_pointer(struct ib_pd *pd, u64 addr)
{
	struct sim_dev *dev = to_sim_dev(pd->device);

	if (dev->parent)
		return phys_to_virt(dma_to_phys(dev->parent, addr));
	return (void *)(uintptr_t)addr;
}

static bool sim_mr_allows(struct sim_mr *mr, u64 addr, u64 len, int access)
{
	if (access & ~mr->access)
		return false;
	return mr->all || (addr >= mr->iova && len <= mr->length &&
			   addr - mr->iova <= mr->length - len);
}

/* The region of all memory of a device that has no object for it. */
static bool sim_is_dma_lkey(struct ib_pd *pd, u32 key, int access)
{
	return key == SIM_DMA_LKEY && pd->device->local_dma_lkey == key &&
	       !(access & SIM_REMOTE);
}

/* May these bytes be accessed? */
bool sim_mem_check(struct ib_pd *pd, u32 key, u64 addr, u64 len, int access)
{
	struct sim_mr *mr;
	bool ok;

	if (!len || sim_is_dma_lkey(pd, key, access))
		return true;
	mr = sim_mr_get(pd, key);
	if (!mr)
		return false;
	ok = sim_mr_allows(mr, addr, len, access);
	sim_mr_put(mr);
	return ok;
}

bool sim_sges_check(struct ib_pd *pd, const struct ib_sge *sge, int n,
		    int access)
{
	for (; n--; sge++)
		if (!sim_mem_check(pd, sge->lkey, sge->addr, sge->length,
				   access))
			return false;
	return true;
}

/* The first bytes of what @side has left that are in one piece, up to @len. */
static bool sim_piece_get(struct sim_side *side, u32 len, struct sim_piece *pc)
{
	const struct ib_sge *sge = side->sge;
	u64 addr = sge->addr + side->off;
	struct sim_mr *mr;
	u64 in;

	pc->len = min(len, sge->length - side->off);
	pc->mr = NULL;
	if (sim_is_dma_lkey(side->pd, sge->lkey, side->access)) {
		pc->p = sim_pointer(side->pd, addr);
		return true;
	}
	mr = sim_mr_get(side->pd, sge->lkey);
	if (!mr)
		return false;
	if (!sim_mr_allows(mr, addr, pc->len, side->access)) {
		sim_mr_put(mr);
		return false;
	}
	pc->mr = mr;
	if (!mr->all) {
		in = (mr->iova & ((1ULL << mr->shift) - 1)) + addr - mr->iova;
		addr = mr->pages[in >> mr->shift];
		in &= (1ULL << mr->shift) - 1;
		addr += in;
		pc->len = min_t(u64, pc->len, (1ULL << mr->shift) - in);
	}
	pc->p = sim_pointer(side->pd, addr);
	return true;
}

/* @len bytes were dealt with; segments of no bytes are left behind. */
void sim_skip(struct sim_side *side, u32 len)
{
	side->off += len;
	while (side->n && side->off >= side->sge->length) {
		side->off -= side->sge->length;
		side->sge++;
		side->n--;
	}
}

/* Copy @len bytes, which both have. */
enum sim_copied sim_copy(struct sim_side *to, struct sim_side *from, u32 len)
{
	struct sim_piece dst, src;
	u32 n;

	sim_skip(to, 0);
	sim_skip(from, 0);
	for (; len; len -= n) {
		if (!from->n || !sim_piece_get(from, len, &src))
			return SIM_BAD_SOURCE;
		if (!to->n || !sim_piece_get(to, len, &dst)) {
			sim_mr_put(src.mr);
			return SIM_BAD_SINK;
		}
		n = min(dst.len, src.len);
		/* Tests send from and to the same memory. */
		memmove(dst.p, src.p, n);
		sim_mr_put(dst.mr);
		sim_mr_put(src.mr);
		sim_skip(to, n);
		sim_skip(from, n);
	}
	return SIM_COPIED;
}

/* The same with plain memory on one side; for MADs. */
bool sim_copy_out(struct sim_side *from, void *buf, u32 len)
{
	struct sim_piece src;

	sim_skip(from, 0);
	for (; len; len -= src.len, buf += src.len) {
		if (!from->n || !sim_piece_get(from, len, &src))
			return false;
		memcpy(buf, src.p, src.len);
		sim_mr_put(src.mr);
		sim_skip(from, src.len);
	}
	return true;
}

bool sim_copy_in(struct sim_side *to, const void *buf, u32 len)
{
	struct sim_piece dst;

	sim_skip(to, 0);
	for (; len; len -= dst.len, buf += dst.len) {
		if (!to->n || !sim_piece_get(to, len, &dst))
			return false;
		memcpy(dst.p, buf, dst.len);
		sim_mr_put(dst.mr);
		sim_skip(to, dst.len);
	}
	return true;
}
