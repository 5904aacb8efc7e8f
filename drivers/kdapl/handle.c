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
#include <linux/idr.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "kdapl.h"

/*
 * The table: published objects by index, in chunks that are made when first
 * needed and kept until the module goes. Every posting call looks twice, for its
 * object and for the LMR, hence no tree. Index 0 is not used.
 */
struct kdapl_obj __rcu **kdapl_chunks[KDAPL_CHUNKS];
struct workqueue_struct *kdapl_wq;

static DEFINE_IDA(kdapl_indices);
static atomic64_t kdapl_generation;

/* A value that was never handed out should not hit by being small. */
void kdapl_handle_setup(void)
{
	atomic64_set(&kdapl_generation,
		     get_random_u32() | BIT_ULL(64 - KDAPL_GEN_SHIFT - 1));
}

/* Returns whether no object is left at all. */
bool kdapl_handles_empty(void)
{
	return ida_is_empty(&kdapl_indices);
}

/* The module goes: nobody can look for a handle any more. */
void kdapl_handle_cleanup(void)
{
	int i;

	for (i = 0; i < KDAPL_CHUNKS; i++)
		kfree(kdapl_chunks[i]);
	ida_destroy(&kdapl_indices);
}

static struct kdapl_obj __rcu **kdapl_slot(const struct kdapl_obj *obj)
{
	u32 index = obj->handle & KDAPL_INDEX_MASK;

	return &kdapl_chunks[index / KDAPL_CHUNK][index % KDAPL_CHUNK];
}

/* Reserve an index and have a place for it. */
static int kdapl_index_alloc(void)
{
	struct kdapl_obj __rcu **chunk;
	int index;

	index = ida_alloc_range(&kdapl_indices, 1, KDAPL_INDEX_MASK,
				GFP_KERNEL);
	if (index < 0 || READ_ONCE(kdapl_chunks[index / KDAPL_CHUNK]))
		return index;
	chunk = kcalloc(KDAPL_CHUNK, sizeof(*chunk), GFP_KERNEL);
	if (!chunk) {
		ida_free(&kdapl_indices, index);
		return -ENOMEM;
	}
	/* Somebody else may have been faster. */
	if (cmpxchg(&kdapl_chunks[index / KDAPL_CHUNK], NULL, chunk))
		kfree(chunk);
	return index;
}

static void kdapl_obj_release_work(struct work_struct *work)
{
	struct kdapl_obj *obj = container_of(to_rcu_work(work),
					     struct kdapl_obj, free_work);
	unsigned int noio = memalloc_noio_save();
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
	memalloc_noio_restore(noio);
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
	int index, ret = 0;

	index = kdapl_index_alloc();
	if (index < 0)
		return index;

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
		ida_free(&kdapl_indices, index);
	return ret;
}

/* Make the handle valid. */
void kdapl_obj_publish(struct kdapl_obj *obj)
{
	rcu_assign_pointer(*kdapl_slot(obj), obj);
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
	struct kdapl_obj __rcu *was;

	was = cmpxchg(kdapl_slot(obj), RCU_INITIALIZER(obj), NULL);
	return unrcu_pointer(was) == obj;
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

	RCU_INIT_POINTER(*kdapl_slot(obj), NULL);
	ida_free(&kdapl_indices, obj->handle & KDAPL_INDEX_MASK);

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

/* As kdapl_find(), whatever the type is. */
static struct kdapl_obj *kdapl_find_any(DAT_HANDLE handle)
{
	return kdapl_find(handle, (uintptr_t)handle >> KDAPL_TYPE_SHIFT &
				  KDAPL_TYPE_MASK);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret = DAT_SUCCESS;

	rcu_read_lock();
	obj = kdapl_find_any(dat_handle);
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
	obj = kdapl_find_any(dat_handle);
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
	obj = kdapl_find_any(dat_handle);
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
