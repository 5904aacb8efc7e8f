// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: the consumer's side.
 *
 * The counts are kept in software, whatever the device reports: srq->available falls when
 * the completion of a buffer is polled, srq->outstanding when its event is reaped. Before
 * a count is returned or compared, the CQs of all Endpoints on the SRQ are polled. Only a
 * message that has arrived in part is missed.
 *
 * Only kdapl_srq_check_lw() fires the low watermark. It is called wherever ->available falls
 * or ->lw changes. The device's limit event only causes an earlier poll (srq_hw.c).
 *
 * srq->mutex serialises resizing and operations on the device's queue that may sleep;
 * srq->lock protects counts and lists.
 */
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "pz_sge.h"
#include "srq.h"
#include "trace.h"

/* Has ->available fallen below the low watermark? If so, disarm the mark. */
bool kdapl_srq_check_lw(struct kdapl_srq *srq)
{
	lockdep_assert_held(&srq->lock);

	if (!srq->lw_armed || kdapl_srq_available(srq) >= srq->lw)
		return false;
	srq->lw_armed = false;
	srq->lw_crossed++;
	atomic_long_inc(&srq->obj.ia->counts[KDAPL_COUNT_LOW]);
	trace_kdapl_srq_low(srq);
	return true;
}

/* One buffer was taken: refill the device, check the low watermark. */
void kdapl_srq_refill(struct kdapl_srq *srq, struct kdapl_later *later)
{
	enum kdapl_watch wanted = kdapl_srq_watch_wanted(srq);

	lockdep_assert_held(&srq->lock);

	if (!list_empty(&srq->waiting))
		kdapl_srq_hw_feed(srq);
	if (kdapl_srq_check_lw(srq))
		kdapl_later_add(later, &srq->lw_event);
	/* kdapl_srq_watch() takes EVD locks, and the caller holds one. */
	if (kdapl_srq_watch_wanted(srq) != wanted)
		queue_work(srq->obj.ia->hca->object_wq, &srq->hint_work);
}

/* Make room for @total entries in srq->all. */
static int kdapl_srq_grow_all(struct kdapl_srq *srq, int total)
{
	struct kdapl_wr **all;

	lockdep_assert_held(&srq->mutex);

	if (total <= srq->all_room)
		return 0;
	all = kvmalloc_array(total, sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	if (srq->slots)
		memcpy(all, srq->all, srq->slots * sizeof(*all));
	kvfree(srq->all);
	srq->all = all;
	srq->all_room = total;
	return 0;
}

/* Remove @wr from srq->all; the last entry moves to its place. */
static void kdapl_srq_forget(struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	struct kdapl_wr *last = srq->all[--srq->slots];
	u32 place = *kdapl_srq_place(srq, wr);

	lockdep_assert_held(&srq->mutex);

	srq->all[place] = last;
	*kdapl_srq_place(srq, last) = place;
}

/* Most buffers have at most two segments; kmalloc() would round up to 192 bytes. */
static_assert(sizeof(struct kdapl_wr) + 2 * sizeof(struct ib_sge) +
	      sizeof(DAT_LMR_CONTEXT) + sizeof(u32) <= 128);

/* Allocate entries until there are @total. */
int kdapl_srq_grow_slots(struct kdapl_srq *srq, int total)
{
	struct kdapl_wr *wr, *next, *fresh = NULL, *last = NULL;
	unsigned long flags;
	int n;

	if (kdapl_srq_grow_all(srq, total))
		return -ENOMEM;
	for (n = srq->slots; n < total; n++) {
		wr = kzalloc(kdapl_entry_size(srq->max_iov, srq->max_iov) +
			     sizeof(u32), GFP_KERNEL);
		if (!wr)
			goto err_free;
		wr->ev.kind = KDAPL_EV_SRQ;
		wr->next = fresh;
		fresh = wr;
		last = last ?: wr;
	}
	if (!fresh)
		return 0;
	n = srq->slots;
	for (wr = fresh; wr; wr = wr->next) {
		*kdapl_srq_place(srq, wr) = n;
		srq->all[n++] = wr;
	}
	spin_lock_irqsave(&srq->lock, flags);
	srq->slots = n;
	last->next = srq->free;
	srq->free = fresh;
	spin_unlock_irqrestore(&srq->lock, flags);
	return 0;

err_free:
	for (wr = fresh; wr; wr = next) {
		next = wr->next;
		kfree(wr);
	}
	return -ENOMEM;
}

/* Free unused entries beyond the size of the SRQ. */
static void kdapl_srq_trim_slots(struct kdapl_srq *srq)
{
	struct kdapl_wr *wr, *next, *surplus;
	unsigned long flags;
	int n;

	lockdep_assert_held(&srq->mutex);

	/* A batch at a time: messages arrive meanwhile. */
	do {
		surplus = NULL;
		spin_lock_irqsave(&srq->lock, flags);
		for (n = 0; n < KDAPL_POLL_BATCH &&
		     srq->slots > srq->max + srq->doubt && srq->free; n++) {
			wr = srq->free;
			srq->free = wr->next;
			wr->next = surplus;
			surplus = wr;
			kdapl_srq_forget(srq, wr);
		}
		spin_unlock_irqrestore(&srq->lock, flags);
		for (wr = surplus; wr; wr = next) {
			next = wr->next;
			kfree(wr);
		}
		cond_resched();
	} while (n);
}

static void kdapl_srq_release(struct kdapl_obj *obj)
{
	struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);
	int i;

	cancel_work_sync(&srq->arm_work);
	kdapl_srq_hw_destroy(srq);
	cancel_work_sync(&srq->hint_work);
	cancel_work_sync(&srq->search_work);
	kdapl_async_withdraw(&srq->lw_event);
	for (i = 0; i < srq->slots; i++)
		kfree(srq->all[i]);
	kvfree(srq->all);
	kdapl_obj_put(&srq->pz->obj);
	kdapl_obj_free(obj);
}

static DAT_RETURN kdapl_srq_obj_free(struct kdapl_obj *obj)
{
	return dat_srq_free(kdapl_handle(obj));
}

static void kdapl_srq_strip(struct kdapl_obj *obj)
{
	kdapl_srq_hw_destroy(container_of(obj, struct kdapl_srq, obj));
}

static void kdapl_srq_init(struct kdapl_obj *obj)
{
	struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);

	mutex_init(&srq->mutex);
	spin_lock_init(&srq->lock);
	INIT_LIST_HEAD(&srq->waiting);
	INIT_LIST_HEAD(&srq->hw);
	INIT_LIST_HEAD(&srq->eps);
	xa_init_flags(&srq->evds, XA_FLAGS_LOCK_IRQ);
	INIT_WORK(&srq->arm_work, kdapl_srq_hw_arm);
	INIT_WORK(&srq->hint_work, kdapl_srq_hw_hint);
	INIT_WORK(&srq->search_work, kdapl_srq_search);
	kdapl_async_init(&srq->lw_event, &srq->obj, DAT_ASYNC_SRQ_LOW_WATERMARK,
			 DAT_SRQ_LOW_WATERMARK_EVENT);
}

static const struct kdapl_obj_ops kdapl_srq_ops = {
	.init = kdapl_srq_init,
	.release = kdapl_srq_release,
	.free = kdapl_srq_obj_free,
	.strip = kdapl_srq_strip,
};

static DAT_RETURN kdapl_srq_check_attr(struct kdapl_ia *ia, const DAT_SRQ_ATTR *attr)
{
	DAT_IA_ATTR limits;

	kdapl_ia_attr(ia, &limits);
	if (!limits.max_srqs)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (!attr)
		goto bad;
	if (attr->low_watermark != DAT_SRQ_LW_DEFAULT) {
		trace_kdapl_refused(ia, "low_watermark", attr->low_watermark, 0,
				    "DAT_SRQ_LW_DEFAULT; dat_srq_set_lw() sets it");
		goto bad;
	}
	if (attr->max_recv_dtos <= 0 || attr->max_recv_dtos > limits.max_recv_per_srq) {
		trace_kdapl_refused(ia, "max_recv_dtos", attr->max_recv_dtos,
				    limits.max_recv_per_srq, "from 1 to the adapter's limit");
		goto bad;
	}
	if (attr->max_recv_iov <= 0 || attr->max_recv_iov > limits.max_iov_segments_per_dto) {
		trace_kdapl_refused(ia, "max_recv_iov", attr->max_recv_iov,
				    limits.max_iov_segments_per_dto,
				    "from 1 to the adapter's limit");
		goto bad;
	}
	return DAT_SUCCESS;
bad:
	return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static int kdapl_srq_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz,
			   const DAT_SRQ_ATTR *attr, struct kdapl_srq **out)
{
	struct kdapl_srq *srq;
	int err;

	srq = kdapl_obj_alloc(sizeof(*srq), DAT_HANDLE_TYPE_SRQ, ia, &kdapl_srq_ops);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	kref_get(&pz->obj.ref);
	srq->pz = pz;
	srq->max_iov = attr->max_recv_iov;
	srq->max = attr->max_recv_dtos;
	srq->next_seq = 1;
	srq->since = ktime_get_real_seconds();

	mutex_lock(&srq->mutex);
	err = kdapl_srq_grow_slots(srq, srq->max);
	if (!err)
		err = kdapl_srq_hw_create(srq);
	mutex_unlock(&srq->mutex);
	if (err)
		kdapl_obj_put(&srq->obj);
	else
		*out = srq;
	return err;
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	struct kdapl_srq *srq;
	struct kdapl_ia *ia;
	struct kdapl_pz *pz;
	DAT_RETURN ret;
	int err;

	might_sleep();
	ret = kdapl_pz_get(ia_handle, pz_handle, &pz);
	if (ret != DAT_SUCCESS)
		return ret;
	ia = pz->obj.ia;
	ret = kdapl_srq_check_attr(ia, srq_attr);
	if (ret == DAT_SUCCESS && !srq_handle)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	if (ret != DAT_SUCCESS)
		goto out_unuse;
	if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out_unuse;
	}
	err = kdapl_srq_alloc(ia, pz, srq_attr, &srq);
	kdapl_hca_leave(ia->hca);
	ret = err ? DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ) :
		    DAT_SUCCESS;
	if (!err) {
		*srq_handle = kdapl_handle(&srq->obj);
		kdapl_obj_publish(&srq->obj);
		goto out_put;
	}
out_unuse:
	kdapl_obj_unuse(&pz->obj);
out_put:
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_create);

/* Can the peer of @ep, which was freed, still reach buffers of the SRQ @arg? */
static bool kdapl_srq_lingers(struct kdapl_ep *ep, void *arg)
{
	return ep->srq == arg;
}

static DAT_RETURN kdapl_srq_free(struct kdapl_srq *srq)
{
	const DAT_RETURN in_use = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);

	/* Wait before retiring: a retired SRQ is unusable, and may still not be freed. */
	if (!kdapl_ia_wait_lingering(srq->obj.ia, kdapl_srq_lingers, srq, KDAPL_END_WAIT))
		return in_use;
	if (!kdapl_obj_retire(&srq->obj))
		return kdapl_obj_is_freed(&srq->obj) ?
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ) : in_use;
	if (!kdapl_ia_wait_lingering(srq->obj.ia, kdapl_srq_lingers, srq, 0)) {
		/* An Endpoint was freed in between, and still receives. */
		kdapl_obj_decided(&srq->obj, false);
		return in_use;
	}
	if (kdapl_obj_unpublish(&srq->obj)) {
		kdapl_async_withdraw(&srq->lw_event);
		kdapl_obj_unuse(&srq->pz->obj);
		kdapl_obj_put(&srq->obj);
	}
	kdapl_obj_decided(&srq->obj, true);
	return DAT_SUCCESS;
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	struct kdapl_srq *srq;
	DAT_RETURN ret;

	might_sleep();
	srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	ret = kdapl_srq_free(srq);
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_free);

/* The SRQ is full. Argument errors take precedence, so validate before reporting it. */
static noinline DAT_RETURN kdapl_srq_full(struct kdapl_srq *srq, DAT_COUNT n,
					  const DAT_LMR_TRIPLET *iov)
{
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	DAT_RETURN ret;
	u64 total;
	int nsge;

	/* Memory for a replacement was short when a buffer became doubtful: try again. */
	if (!srq->free && srq->doubt)
		queue_work(srq->obj.ia->hca->object_wq, &srq->search_work);
	ret = kdapl_sge_build(srq->pz, srq->obj.handle, n, iov, srq->max_iov,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, sge, &nsge, &total, NULL);
	return ret != DAT_SUCCESS ? ret :
		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
}

/* Give @wr, which is in no list, to the device, behind the buffers that wait. */
static __always_inline bool kdapl_srq_give(struct kdapl_srq *srq,
					   struct kdapl_wr *wr)
{
	lockdep_assert_held(&srq->lock);

	if (likely(list_empty(&srq->waiting) && srq->srq && !srq->stale &&
		   srq->hw_count < srq->hw_max)) {
		if (unlikely(!kdapl_srq_hw_post(srq, wr)))
			return kdapl_srq_hw_keep(srq, wr);
		list_add_tail(&wr->link, &srq->hw);
		return false;
	}
	list_add_tail(&wr->link, &srq->waiting);
	return kdapl_srq_hw_feed(srq);
}

/*
 * Enter a buffer in the queue. @sge: its only segment, checked before the lock was taken;
 * or NULL
 */
static __always_inline DAT_RETURN
kdapl_srq_enter(struct kdapl_srq *srq, const struct kdapl_segs *segs,
		const struct ib_sge *sge, DAT_DTO_COOKIE cookie, bool *surplus)
{
	struct kdapl_wr *wr;
	DAT_RETURN ret;
	int nsge = 1;
	u64 total;

	lockdep_assert_held(&srq->lock);

	wr = srq->free;
	/* If memory was short, a buffer in doubt has no replacement entry. */
	if (unlikely(kdapl_srq_outstanding(srq) >= srq->max || !wr))
		return kdapl_srq_full(srq, segs->n, segs->iov);
	if (likely(sge)) {
		wr->sge[0] = *sge;
	} else {
		ret = kdapl_sge_build(srq->pz, srq->obj.handle, segs->n,
				      segs->iov, srq->max_iov,
				      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, wr->sge,
				      &nsge, &total, NULL);
		if (unlikely(ret != DAT_SUCCESS))
			return ret;
	}
	srq->free = wr->next;
	wr->cookie = cookie;
	wr->nsge = nsge;
	wr->posted = true;
	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_wr_name_used(wr, srq->max_iov, segs->n, segs->iov);
	else
		kdapl_wr_name(wr, srq->max_iov, segs->n, segs->iov);
	srq->available++;
	srq->outstanding++;
	*surplus = kdapl_srq_give(srq, wr);
	trace_kdapl_srq_posted(srq, wr);
	return DAT_SUCCESS;
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov,
			     DAT_DTO_COOKIE user_cookie)
{
	struct kdapl_segs segs = kdapl_segs(num_segments, local_iov);
	struct kdapl_srq *srq;
	unsigned long flags;
	bool surplus = false;
	struct ib_sge sge;
	DAT_RETURN ret;
	bool one;

	rcu_read_lock();
	srq = kdapl_find(srq_handle, DAT_HANDLE_TYPE_SRQ);
	if (unlikely(!srq)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
		goto out;
	}
	if (static_branch_unlikely(&kdapl_dma_syncs))
		kdapl_recv_to_device(srq->pz, srq->obj.handle, srq->max_iov,
				     num_segments, local_iov);
	/* Most buffers have one segment: check it without the lock. */
	one = num_segments == 1 && local_iov &&
	      kdapl_sge_one(srq->pz, srq->obj.handle, local_iov,
			    DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &sge);
	spin_lock_irqsave(&srq->lock, flags);
	ret = kdapl_srq_enter(srq, &segs, one ? &sge : NULL, user_cookie,
			      &surplus);
	spin_unlock_irqrestore(&srq->lock, flags);
	if (unlikely(surplus))
		kdapl_srq_watch(srq);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_srq_post_recv);

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle,
			 DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param)
{
	DAT_RETURN ret;
	struct kdapl_srq *srq;
	unsigned long flags;

	rcu_read_lock();
	srq = kdapl_find_queried(srq_handle, DAT_HANDLE_TYPE_SRQ,
				 srq_param_mask & ~DAT_SRQ_FIELD_ALL,
				 srq_param, &ret);
	if (!srq)
		goto out;
	kdapl_srq_poll_all(srq);
	srq_param->ia_handle = kdapl_handle(&srq->obj.ia->obj);
	srq_param->pz_handle = kdapl_handle(&srq->pz->obj);
	srq_param->max_recv_iov = srq->max_iov;
	spin_lock_irqsave(&srq->lock, flags);
	srq_param->srq_state = READ_ONCE(srq->obj.ia->hca->gone) ?
			       DAT_SRQ_STATE_ERROR : DAT_SRQ_STATE_OPERATIONAL;
	srq_param->max_recv_dtos = srq->max;
	srq_param->low_watermark = srq->lw;
	srq_param->available_dto_count = kdapl_srq_available(srq);
	srq_param->outstanding_dto_count = kdapl_srq_outstanding(srq);
	spin_unlock_irqrestore(&srq->lock, flags);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_srq_query);

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_srq *srq;
	unsigned long flags;
	bool fire = false;

	rcu_read_lock();
	srq = kdapl_find(srq_handle, DAT_HANDLE_TYPE_SRQ);
	if (!srq) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
		goto out;
	}
	kdapl_srq_poll_all(srq);
	spin_lock_irqsave(&srq->lock, flags);
	if (low_watermark < 0 || low_watermark > srq->max) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	} else {
		srq->lw = low_watermark;
		srq->lw_armed = low_watermark > 0;
		fire = kdapl_srq_check_lw(srq);
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ret != DAT_SUCCESS)
		goto out;
	if (fire)
		kdapl_async_post(&srq->lw_event);
	/* kdapl_srq_watch() notices completions since the poll above. */
	kdapl_srq_watch(srq);
	/* Arming the device may sleep. */
	queue_work(srq->obj.ia->hca->object_wq, &srq->arm_work);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_srq_set_lw);

/* Set the size to @request if the counts allow it. */
static DAT_RETURN kdapl_srq_set_max(struct kdapl_srq *srq, int request)
{
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	lockdep_assert_held(&srq->mutex);

	kdapl_srq_poll_all(srq);
	spin_lock_irqsave(&srq->lock, flags);
	if (kdapl_srq_outstanding(srq) > request || request < srq->lw)
		ret = DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	else
		WRITE_ONCE(srq->max, request);
	spin_unlock_irqrestore(&srq->lock, flags);
	kdapl_srq_watch(srq);
	return ret;
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle,
			  DAT_COUNT srq_max_recv_dto)
{
	struct kdapl_srq *srq;
	DAT_IA_ATTR limits;
	DAT_RETURN ret;

	might_sleep();
	srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	if (!srq)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	kdapl_ia_attr(srq->obj.ia, &limits);
	if (srq_max_recv_dto <= 0 ||
	    srq_max_recv_dto > limits.max_recv_per_srq) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!kdapl_hca_enter(srq->obj.ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out;
	}
	mutex_lock(&srq->mutex);
	if (kdapl_srq_grow_slots(srq, srq_max_recv_dto + srq->doubt))
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_MEMORY);
	else
		ret = kdapl_srq_set_max(srq, srq_max_recv_dto);
	if (ret == DAT_SUCCESS)
		kdapl_srq_hw_grow(srq, srq_max_recv_dto);
	/* Needed after a shrink, or after a growth that was refused. */
	kdapl_srq_trim_slots(srq);
	mutex_unlock(&srq->mutex);
	kdapl_hca_leave(srq->obj.ia->hca);
	trace_kdapl_srq_resize(srq, srq_max_recv_dto, ret);
out:
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_resize);
