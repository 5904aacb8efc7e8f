// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdat_sg_map() and kdat_sg_unmap(): turn a scatterlist of the consumer into triplets for
 * the requests of one I/O. Neither call sleeps. pz_sg.c explains mappings and their
 * locking.
 */
#include <linux/sizes.h>
#include <dat/kdat_linux.h>
#include "dto.h"
#include "ia.h"
#include "pz_sg.h"

/* Adjoining pieces are joined up to this length. */
#define KDAPL_SG_JOIN_MAX	SZ_1G

static void kdapl_sg_release(struct kdapl_obj *obj)
{
	struct kdapl_sg *sg = container_of(obj, struct kdapl_sg, obj);

	kdapl_obj_put(&sg->pz->obj);
	kdapl_obj_free(obj);
}

/* Return the handle of the mapping whose state is @state. */
static KDAT_SG_HANDLE kdapl_sg_handle(const struct kdapl_sg *sg, s64 state)
{
	u64 low = sg->obj.handle & KDAPL_SG_COUNT;

	return (KDAT_SG_HANDLE)(uintptr_t)((state & ~KDAPL_SG_COUNT) | low);
}

/* The IA is closed: unmap a mapping that the consumer has left, unless it is posted. */
static DAT_RETURN kdapl_sg_obj_free(struct kdapl_obj *obj)
{
	struct kdapl_sg *sg = container_of(obj, struct kdapl_sg, obj);
	s64 state = atomic64_read(&sg->state);

	return kdapl_sg_is_free(state) ? DAT_SUCCESS :
					 kdat_sg_unmap(kdapl_sg_handle(sg, state));
}

/*
 * The device is leaving and has no more requests, so unmap the mapping although the
 * consumer has not. If a call of the consumer is unmapping it, kdapl_remove_one() waits
 * for this call. litmus: sg-strip
 */
static void kdapl_sg_strip(struct kdapl_obj *obj)
{
	struct kdapl_sg *sg = container_of(obj, struct kdapl_sg, obj);
	unsigned long flags;

	spin_lock_irqsave(&sg->lock, flags);
	if (xchg(&sg->mapped, false))
		ib_dma_unmap_sg(obj->ia->hca->dev, sg->sgl, sg->nents, sg->dir);
	spin_unlock_irqrestore(&sg->lock, flags);
}

static void kdapl_sg_init(struct kdapl_obj *obj)
{
	struct kdapl_sg *sg = container_of(obj, struct kdapl_sg, obj);

	spin_lock_init(&sg->lock);
	atomic64_set(&sg->state, KDAPL_SG_FREE);
}

static const struct kdapl_obj_ops kdapl_sg_ops = {
	.init = kdapl_sg_init,
	.release = kdapl_sg_release,
	.free = kdapl_sg_obj_free,
	.strip = kdapl_sg_strip,
};

/* Return the privileges of requests on memory that is mapped in this direction. */
static DAT_MEM_PRIV_FLAGS kdapl_sg_priv(enum dma_data_direction dir)
{
	switch (dir) {
	case DMA_TO_DEVICE:
		return DAT_MEM_PRIV_LOCAL_READ_FLAG;
	case DMA_FROM_DEVICE:
		return DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	case DMA_BIDIRECTIONAL:
		return DAT_MEM_PRIV_LOCAL_READ_FLAG |
		       DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	default:
		return 0;
	}
}

static bool kdapl_sg_list_ok(struct scatterlist *sgl, int nents)
{
	struct scatterlist *seg;
	int i;

	for_each_sg(sgl, seg, nents, i)
		if (!seg || !seg->length || !kdapl_page_ok(sg_page(seg)))
			return false;
	return true;
}

/*
 * Write the triplets of @n DMA addresses, joining adjoining pieces. Return the number of
 * triplets, or -ERANGE if there are more than @max.
 */
static int kdapl_sg_fill(struct kdapl_sg *sg, int n, DAT_LMR_CONTEXT context,
			 DAT_LMR_TRIPLET *iov, int max)
{
	struct scatterlist *seg;
	u64 end = 0;
	int i, used = 0;

	for_each_sg(sg->sgl, seg, n, i) {
		sg->last = seg;
		if (used && sg_dma_address(seg) == end &&
		    (u64)iov[used - 1].segment_length + sg_dma_len(seg) <=
		    KDAPL_SG_JOIN_MAX) {
			iov[used - 1].segment_length += sg_dma_len(seg);
		} else {
			if (used == max)
				return -ERANGE;
			iov[used].lmr_context = context;
			iov[used].virtual_address = sg_dma_address(seg);
			iov[used++].segment_length = sg_dma_len(seg);
		}
		end = sg_dma_address(seg) + sg_dma_len(seg);
	}
	return used;
}

/* Unmap the list, unless kdapl_sg_strip() has done so as the device left. litmus: sg-strip */
static void kdapl_sg_undo(struct kdapl_sg *sg)
{
	unsigned long flags;

	if (xchg(&sg->mapped, false)) {
		ib_dma_unmap_sg(sg->obj.ia->hca->dev, sg->sgl, sg->nents,
				sg->dir);
		return;
	}
	/* Wait for kdapl_sg_strip(): then the consumer may free the list. */
	spin_lock_irqsave(&sg->lock, flags);
	spin_unlock_irqrestore(&sg->lock, flags);
}

/* Map the list of @sg, whose members are set, and hand out its triplets. */
static DAT_RETURN kdapl_sg_load(struct kdapl_sg *sg, u64 generation, int max,
				DAT_LMR_TRIPLET *iov, DAT_COUNT *num,
				KDAT_SG_HANDLE *handle)
{
	s64 state = generation << KDAPL_GEN_SHIFT;
	int n;

	n = ib_dma_map_sg(sg->obj.ia->hca->dev, sg->sgl, sg->nents, sg->dir);
	if (n <= 0)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	WRITE_ONCE(sg->mapped, true);
	n = kdapl_sg_fill(sg, n, kdapl_sg_context(sg, state), iov, max);
	if (n < 0) {
		kdapl_sg_undo(sg);
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	}
	sg->cursor = sg->sgl;
	*num = n;
	*handle = kdapl_sg_handle(sg, state);
	/* Pairs with kdapl_sg_get(). litmus: sg-map */
	atomic64_set_release(&sg->state, state);
	return DAT_SUCCESS;
}

static DAT_RETURN kdapl_sg_check(struct scatterlist *sgl, DAT_COUNT nents,
				 enum dma_data_direction dir, DAT_COUNT max,
				 DAT_LMR_TRIPLET *iov, DAT_COUNT *num,
				 KDAT_SG_HANDLE *handle)
{
	if (!sgl)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (nents <= 0 || !kdapl_sg_list_ok(sgl, nents))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (!kdapl_sg_priv(dir))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (max <= 0)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	if (!iov || !num || !handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, !iov ? DAT_INVALID_ARG7 :
				 !num ? DAT_INVALID_ARG8 : DAT_INVALID_ARG9);
	return DAT_SUCCESS;
}

DAT_RETURN kdat_sg_map(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		       struct scatterlist *sgl, DAT_COUNT nents,
		       enum dma_data_direction direction,
		       DAT_COUNT max_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_COUNT *num_segments, KDAT_SG_HANDLE *sg_handle)
{
	struct kdapl_sg *sg;
	struct kdapl_ia *ia;
	struct kdapl_pz *pz;
	u64 generation;
	DAT_RETURN ret;

	rcu_read_lock();
	ia = kdapl_find(ia_handle, DAT_HANDLE_TYPE_IA);
	pz = kdapl_find(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (unlikely(!ia || !pz || pz->obj.ia != ia)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, ia ? DAT_INVALID_HANDLE_PZ :
							 DAT_INVALID_HANDLE_IA);
		goto out;
	}
	ret = kdapl_sg_check(sgl, nents, direction, max_segments, local_iov,
			     num_segments, sg_handle);
	if (unlikely(ret != DAT_SUCCESS))
		goto out;
	/* Pairs with kdapl_remove_one(). litmus: gone */
	if (unlikely(READ_ONCE(ia->hca->gone))) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out;
	}
	/* kdapl_ia_drain() would not come to an end with those that the cache has. */
	sg = READ_ONCE(ia->closing) ? NULL : kdapl_sg_take(pz, &kdapl_sg_ops, &generation);
	if (unlikely(!sg)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_MEMORY);
		goto out;
	}
	sg->sgl = sgl;
	sg->nents = nents;
	sg->dir = direction;
	sg->priv = kdapl_sg_priv(direction);
	sg->ep_handle = 0;
	ret = kdapl_sg_load(sg, generation, max_segments, local_iov,
			    num_segments, sg_handle);
	if (unlikely(ret != DAT_SUCCESS))
		kdapl_sg_give(sg);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_sg_map);

/* Return the object that a handle names, even if the handle is no longer valid. */
static struct kdapl_sg *kdapl_sg_find(u64 handle)
{
	struct kdapl_obj *obj = kdapl_at(handle & KDAPL_INDEX_MASK);

	if (!obj || kdapl_type(obj) != KDAPL_TYPE_SG ||
	    (handle >> KDAPL_TYPE_SHIFT & KDAPL_TYPE_MASK) != KDAPL_TYPE_SG)
		return NULL;
	return container_of(obj, struct kdapl_sg, obj);
}

/* End the mapping with the generation of @state; true for one caller only. litmus: sg-put */
static bool kdapl_sg_claim(struct kdapl_sg *sg, s64 state)
{
	return atomic64_cmpxchg(&sg->state, state, KDAPL_SG_FREE) == state;
}

DAT_RETURN kdat_sg_unmap(KDAT_SG_HANDLE sg_handle)
{
	u64 handle = (uintptr_t)sg_handle;
	s64 state = handle & ~KDAPL_SG_COUNT;
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_sg *sg;
	bool claimed;
	s64 now;

	rcu_read_lock();
	sg = kdapl_sg_find(handle);
	if (unlikely(!sg)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		goto out;
	}
	claimed = kdapl_sg_claim(sg, state);
	now = atomic64_read(&sg->state);
	if (unlikely(!claimed && !kdapl_sg_is_free(now) &&
		     (now & ~KDAPL_SG_COUNT) == state)) {
		/* A request counts as posted until its completion is polled. */
		kdapl_ep_poll_requests(READ_ONCE(sg->ep_handle));
		claimed = kdapl_sg_claim(sg, state);
		now = atomic64_read(&sg->state);
	}
	if (likely(claimed)) {
		kdapl_sg_undo(sg);
		kdapl_sg_give(sg);
	} else if (!kdapl_sg_is_free(now) && (now & ~KDAPL_SG_COUNT) == state) {
		ret = DAT_ERROR(DAT_INVALID_STATE,
				DAT_INVALID_STATE_LMR_IN_USE);
	} else {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	}
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_sg_unmap);
