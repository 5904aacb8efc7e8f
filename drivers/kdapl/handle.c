// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The handle table and the life of a DAT object.
 *
 * A handle is a number, not a pointer: generation, type and table index. A stale
 * or invented value finds either nothing or an object with another number, so it
 * is refused without touching memory behind it. Generations come from one
 * counter of 40 bits and do not come back.
 *
 * An object lives in three steps. "Published": its handle is valid. "Retired":
 * the consumer freed it, no object may start to depend on it. "Released": the
 * last reference is gone and an RCU grace period has passed, so no data transfer
 * call can still look at it; verbs objects are destroyed now. The last reference
 * may be dropped in any context, hence the work item.
 */
#include <linux/random.h>
#include "kdapl.h"

DEFINE_XARRAY_FLAGS(kdapl_handles, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
struct workqueue_struct *kdapl_wq;

static atomic64_t kdapl_generation;

/* A value that was never handed out should not hit by being small. */
void kdapl_handle_setup(void)
{
	atomic64_set(&kdapl_generation,
		     get_random_u32() | BIT_ULL(64 - KDAPL_GEN_SHIFT - 1));
}

static void kdapl_obj_release_work(struct work_struct *work)
{
	struct kdapl_obj *obj = container_of(to_rcu_work(work),
					     struct kdapl_obj, free_work);
	struct kdapl_hca *hca = obj->ia->hca;

	/*
	 * With the semaphore held to the end, device removal finds an object
	 * either whole or not at all.
	 */
	kref_get(&hca->ref);
	down_read(&hca->sem);
	obj->release(obj);
	up_read(&hca->sem);
	kdapl_hca_put(hca);
}

/**
 * kdapl_obj_init - reserve a handle for a new object
 * @obj: zeroed memory, first member of the object
 * @type: its type
 * @ia: the IA it belongs to; NULL if the object is an IA
 * @release: see struct kdapl_obj
 *
 * Return: 0 or an errno; after an error @obj may simply be freed.
 */
int kdapl_obj_init(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
		   struct kdapl_ia *ia, void (*release)(struct kdapl_obj *))
{
	unsigned long flags;
	u32 index;
	int ret;

	ret = xa_alloc_irq(&kdapl_handles, &index, NULL,
			   XA_LIMIT(1, KDAPL_INDEX_MASK), GFP_KERNEL);
	if (ret)
		return ret;

	obj->handle = (u64)atomic64_inc_return(&kdapl_generation) <<
			KDAPL_GEN_SHIFT |
		      (u64)type << KDAPL_TYPE_SHIFT | index;
	kref_init(&obj->ref);
	atomic_set(&obj->users, 0);
	obj->release = release;
	INIT_RCU_WORK(&obj->free_work, kdapl_obj_release_work);
	INIT_LIST_HEAD(&obj->ia_link);
	obj->ia = ia ?: (struct kdapl_ia *)obj;
	if (!ia)
		return 0;

	spin_lock_irqsave(&ia->lock, flags);
	if (ia->closing) {
		ret = -ESHUTDOWN;
	} else {
		kref_get(&ia->obj.ref);
		atomic_inc(&ia->live);
		list_add_tail(&obj->ia_link, &ia->objs);
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	if (ret)
		xa_erase_irq(&kdapl_handles, index);
	return ret;
}

/* Make the handle valid. The index is reserved, so the store cannot fail. */
void kdapl_obj_publish(struct kdapl_obj *obj)
{
	unsigned long flags;

	xa_lock_irqsave(&kdapl_handles, flags);
	__xa_store(&kdapl_handles, obj->handle & KDAPL_INDEX_MASK, obj,
		   GFP_ATOMIC);
	xa_unlock_irqrestore(&kdapl_handles, flags);
}

/**
 * kdapl_obj_unpublish - make the handle invalid
 * @obj: the object
 *
 * The index stays reserved until the object is released.
 *
 * Context: Any.
 * Return: true for the one caller that did it; that one owns the reference which
 * the handle held.
 */
bool kdapl_obj_unpublish(struct kdapl_obj *obj)
{
	unsigned long index = obj->handle & KDAPL_INDEX_MASK;
	unsigned long flags;
	bool won;

	xa_lock_irqsave(&kdapl_handles, flags);
	won = xa_load(&kdapl_handles, index) == obj;
	if (won)
		__xa_store(&kdapl_handles, index, NULL, GFP_ATOMIC);
	xa_unlock_irqrestore(&kdapl_handles, flags);
	return won;
}

/* Let nobody depend on @obj any more, if nobody does now. */
bool kdapl_obj_retire(struct kdapl_obj *obj)
{
	return atomic_cmpxchg(&obj->users, 0, -1) == 0;
}

static void kdapl_obj_last_put(struct kref *ref)
{
	struct kdapl_obj *obj = container_of(ref, struct kdapl_obj, ref);

	queue_rcu_work(kdapl_wq, &obj->free_work);
}

void kdapl_obj_put(struct kdapl_obj *obj)
{
	kref_put(&obj->ref, kdapl_obj_last_put);
}

/* Find and reference the object of a handle. */
void *kdapl_obj_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct kdapl_obj *obj;

	rcu_read_lock();
	obj = kdapl_find(handle, type);
	if (obj && !kref_get_unless_zero(&obj->ref))
		obj = NULL;
	rcu_read_unlock();
	return obj;
}

/**
 * kdapl_obj_free - the end of an object's release function
 * @obj: the object, which is also the address to free
 */
void kdapl_obj_free(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = obj->ia;
	unsigned long flags;

	xa_lock_irqsave(&kdapl_handles, flags);
	__xa_erase(&kdapl_handles, obj->handle & KDAPL_INDEX_MASK);
	xa_unlock_irqrestore(&kdapl_handles, flags);

	if (&ia->obj == obj) {
		kvfree(obj);
		return;
	}

	spin_lock_irqsave(&ia->lock, flags);
	list_del(&obj->ia_link);
	spin_unlock_irqrestore(&ia->lock, flags);
	kvfree(obj);
	/* ia_close may be waiting for this; our reference keeps the IA. */
	atomic_dec(&ia->live);
	wake_up_all(&ia->wait);
	kdapl_obj_put(&ia->obj);
}

/* Wait until everything whose last reference is gone has been released. */
void kdapl_quiesce(void)
{
	rcu_barrier();
	flush_workqueue(kdapl_wq);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret = DAT_SUCCESS;

	rcu_read_lock();
	obj = kdapl_find(dat_handle, ((uintptr_t)dat_handle >>
				      KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK);
	if (obj)
		WRITE_ONCE(obj->context.as_64, context.as_64);
	else
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_set_consumer_context);

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret = DAT_SUCCESS;

	rcu_read_lock();
	obj = kdapl_find(dat_handle, ((uintptr_t)dat_handle >>
				      KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK);
	if (!obj)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (!context)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else
		context->as_64 = READ_ONCE(obj->context.as_64);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_get_consumer_context);

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *type)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret = DAT_SUCCESS;

	rcu_read_lock();
	obj = kdapl_find(dat_handle, ((uintptr_t)dat_handle >>
				      KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK);
	if (!obj)
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (!type)
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else
		*type = kdapl_type(obj);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_get_handle_type);
