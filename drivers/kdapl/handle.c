// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The handle table and the life of a DAT object.
 *
 * A handle is a number, not a pointer: generation, type and table index. A
 * stale or invented value finds either no object or one with another handle, so
 * it is refused before any memory is read through it. Generations come from one
 * counter of 38 bits and do not repeat.
 *
 * An object goes through three steps. It is published: kdapl_obj_publish() makes the handle valid.
 * It is retired: the consumer has freed it, kdapl_obj_retire() keeps other objects from depending
 * on it and kdapl_obj_unpublish() makes the handle invalid. It is released: the last reference was
 * dropped and an RCU grace period has passed, so no data transfer call can be inside the object
 * any more. ops->release() runs then and destroys the verbs objects. The last reference may be
 * dropped in any context, so the release is a work item of hca->object_wq.
 *
 * A published object owns one reference to itself, which the caller whose
 * kdapl_obj_unpublish() succeeds has to drop. Every object but an IA owns a
 * reference to its IA. Lookups need RCU alone, publishing is an atomic
 * operation on the table, and ia->lock protects the list of the objects of an
 * IA.
 */
#include <linux/idr.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include "handle.h"
#include "hca.h"
#include "ia.h"

/*
 * The table: published objects by index, in chunks that are allocated when
 * first needed and kept until the module is unloaded. It is an array of arrays
 * and not a tree because every posting call does two lookups, one for the
 * Endpoint and one for the LMR. Index 0 is not used.
 */
struct kdapl_obj __rcu **kdapl_chunks[KDAPL_CHUNKS];
KDAPL_EXPORT_TEST(kdapl_chunks);
struct workqueue_struct *kdapl_wq;
unsigned int kdapl_longest_section;
KDAPL_EXPORT_TEST(kdapl_longest_section);

static DEFINE_IDA(kdapl_indices);
static atomic64_t kdapl_generation;

/*
 * Start the generations at a large random number, so that no small number passed by
 * mistake is a valid handle.
 */
void kdapl_handle_setup(void)
{
	/* A handle of 64 bits is passed as a pointer: Kconfig asks for 64BIT. */
	BUILD_BUG_ON(sizeof(DAT_HANDLE) != sizeof_field(struct kdapl_obj, handle));

	atomic64_set(&kdapl_generation,
		     get_random_u32() | BIT_ULL(64 - KDAPL_GEN_SHIFT - 1));
}

/*
 * Take @n consecutive generations, for handles that kdapl_obj_init_gfp() does not create.
 * Return the first. litmus: none, a count. Context: Any.
 */
u64 kdapl_generations(u32 n)
{
	return atomic64_add_return(n, &kdapl_generation) - n + 1;
}

/* Has every object been released? */
bool kdapl_handles_empty(void)
{
	return ida_is_empty(&kdapl_indices);
}

/* Free the table. The module is being unloaded: no lookup can be running. */
void kdapl_handle_cleanup(void)
{
	int i;

	for (i = 0; i < KDAPL_CHUNKS; i++)
		kfree(kdapl_chunks[i]);
	ida_destroy(&kdapl_indices);
}

/* Return the place of @obj in the table. */
static struct kdapl_obj __rcu **kdapl_slot(const struct kdapl_obj *obj)
{
	u32 index = obj->handle & KDAPL_INDEX_MASK;

	return &kdapl_chunks[index / KDAPL_CHUNK][index % KDAPL_CHUNK];
}

/* Reserve an index and allocate its chunk. Return the index or an errno. */
static int kdapl_index_alloc(gfp_t gfp)
{
	struct kdapl_obj __rcu **chunk;
	int index;

	index = ida_alloc_range(&kdapl_indices, 1, KDAPL_INDEX_MASK, gfp);
	if (index < 0 || READ_ONCE(kdapl_chunks[index / KDAPL_CHUNK]))
		return index;
	chunk = kcalloc(KDAPL_CHUNK, sizeof(*chunk), gfp);
	if (!chunk) {
		ida_free(&kdapl_indices, index);
		return -ENOMEM;
	}
	/* A concurrent caller may have installed the chunk first. litmus: handle-chunk */
	if (cmpxchg(&kdapl_chunks[index / KDAPL_CHUNK], NULL, chunk))
		kfree(chunk);
	return index;
}

/* Call ops->release(), an RCU grace period after the last reference was dropped. */
static void kdapl_obj_release_work(struct work_struct *work)
{
	struct kdapl_obj *obj = container_of(to_rcu_work(work),
					     struct kdapl_obj, free_work);
	unsigned int noio = memalloc_noio_save();
	struct kdapl_hca *hca = obj->ia->hca;

	/*
	 * The semaphore is held until the object has left ia->objs, so kdapl_ia_strip()
	 * finds an object either complete or not at all. The reference keeps the
	 * semaphore: the release of an IA drops the IA's reference.
	 */
	kref_get(&hca->ref);
	down_read(&hca->sem);
	obj->ops->release(obj);
	up_read(&hca->sem);
	kdapl_hca_put(hca);
	memalloc_noio_restore(noio);
}

/**
 * kdapl_obj_init_gfp - reserve a handle for a new object
 * @obj: zeroed memory, first member of the object
 * @type: type of the object
 * @ia: the IA that the object belongs to; NULL if the object is an IA
 * @ops: operations of this type
 * @gfp: GFP_KERNEL, or flags for the caller's context
 *
 * The caller gets the first reference. Walks find the object in ia->objs from here on;
 * the handle is valid from kdapl_obj_publish() on. litmus: none, the generation is a
 * count.
 *
 * Context: Process context, or any if @gfp allows that.
 * Return: 0 or an errno; after an error the caller frees the memory of @obj.
 */
int kdapl_obj_init_gfp(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
		       struct kdapl_ia *ia, const struct kdapl_obj_ops *ops,
		       gfp_t gfp)
{
	unsigned long flags;
	int index, ret = 0;

	index = kdapl_index_alloc(gfp);
	if (index < 0)
		return index;

	obj->handle = (u64)atomic64_inc_return(&kdapl_generation) <<
			KDAPL_GEN_SHIFT |
		      (u64)type << KDAPL_TYPE_SHIFT | index;
	kref_init(&obj->ref);
	atomic_set(&obj->users, KDAPL_UNPUBLISHED);
	obj->ops = ops;
	INIT_RCU_WORK(&obj->free_work, kdapl_obj_release_work);
	INIT_LIST_HEAD(&obj->link);
	obj->ia = ia ?: (struct kdapl_ia *)obj;
	ops->init(obj);
	if (!ia)
		return 0;

	spin_lock_irqsave(&ia->lock, flags);
	if (ia->closing) {
		ret = -ESHUTDOWN;
	} else {
		kref_get(&ia->obj.ref);
		atomic_inc(&ia->live);
		list_add_tail(&obj->link, &ia->objs);
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	if (ret)
		ida_free(&kdapl_indices, index);
	return ret;
}

/*
 * Allocate an object of @size bytes, which begins with a struct kdapl_obj, as
 * kdapl_obj_init_gfp() says. Return the object or an ERR_PTR. Context: Process context.
 */
void *kdapl_obj_alloc(size_t size, DAT_HANDLE_TYPE type, struct kdapl_ia *ia,
		      const struct kdapl_obj_ops *ops)
{
	struct kdapl_obj *obj = kvzalloc(size, GFP_KERNEL);
	int err = obj ? kdapl_obj_init(obj, type, ia, ops) : -ENOMEM;

	if (!err)
		return obj;
	kvfree(obj);
	return ERR_PTR(err);
}

/*
 * Make the handle of @obj valid. The table takes over the caller's reference, and @obj
 * may be freed at once. The lock makes kdapl_obj_in_use() find an object that is
 * unpublished or published, and nothing in between. litmus: handle
 */
void kdapl_obj_publish(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = obj->ia;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	atomic_set(&obj->users, 0);
	rcu_assign_pointer(*kdapl_slot(obj), obj);
	spin_unlock_irqrestore(&ia->lock, flags);
}

/*
 * Has a consumer @obj, or is a call about to give it one? Then its IA is in use.
 * Context: Any.
 */
bool kdapl_obj_in_use(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = obj->ia;
	unsigned long flags;
	bool in_use;

	spin_lock_irqsave(&ia->lock, flags);
	in_use = atomic_read(&obj->users) == KDAPL_UNPUBLISHED ||
		 kdapl_obj_published(obj);
	spin_unlock_irqrestore(&ia->lock, flags);
	return in_use;
}

/**
 * kdapl_obj_unpublish - make the handle invalid
 * @obj: the object
 *
 * The index stays reserved until the object is released. litmus: handle-free
 *
 * Context: Any.
 * Return: true for the one caller that made the handle invalid; that caller
 * owns the reference which the table held.
 */
bool kdapl_obj_unpublish(struct kdapl_obj *obj)
{
	struct kdapl_obj __rcu *was;

	was = cmpxchg(kdapl_slot(obj), RCU_INITIALIZER(obj), NULL);
	return unrcu_pointer(was) == obj;
}

/*
 * Keep other objects from depending on @obj, unless one does. Return true for the one
 * caller that retired @obj. Context: Any.
 */
bool kdapl_obj_retire(struct kdapl_obj *obj)
{
	/*
	 * Pairs with kdapl_obj_unuse() and, as a full barrier, with kdapl_obj_use().
	 * litmus: obj-users
	 */
	return atomic_cmpxchg(&obj->users, 0, -1) == 0;
}

/* Calls that free an object which another call may have freed. */
static DECLARE_WAIT_QUEUE_HEAD(kdapl_decisions);

/*
 * Has another call freed @obj? kdapl_obj_retire() has failed. If that call may still be refused,
 * wait until it is known; if it was, the caller is refused, too. Context: Process context.
 */
bool kdapl_obj_is_freed(struct kdapl_obj *obj)
{
	wait_event(kdapl_decisions,
		   atomic_read(&obj->users) >= 0 || !kdapl_obj_published(obj));
	return !kdapl_obj_published(obj);
}

/*
 * It is known whether the call that has retired @obj frees it: @obj is unpublished, or other
 * objects may depend on it again. Context: Any.
 */
void kdapl_obj_decided(struct kdapl_obj *obj, bool freed)
{
	if (!freed)
		atomic_set(&obj->users, 0);
	wake_up_all(&kdapl_decisions);
}

/* The release follows a grace period after kdapl_obj_unpublish(). litmus: handle-free */
static void kdapl_obj_last_put(struct kref *ref)
{
	struct kdapl_obj *obj = container_of(ref, struct kdapl_obj, ref);

	queue_rcu_work(obj->ia->hca->object_wq, &obj->free_work);
}

/* Drop a reference to @obj; the last one starts the release. Context: Any. */
void kdapl_obj_put(struct kdapl_obj *obj)
{
	kref_put(&obj->ref, kdapl_obj_last_put);
}

/* Return the object with this handle and type, referenced; or NULL. Context: Any. */
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

/*
 * Walk over all published objects: return the first object at *@index or behind,
 * referenced, and set *@index behind it; NULL at the end. Context: Process context.
 */
struct kdapl_obj *kdapl_obj_find_next(u32 *index)
{
	struct kdapl_obj *obj;

	for (; *index <= KDAPL_INDEX_MASK; ++*index) {
		if (!READ_ONCE(kdapl_chunks[*index / KDAPL_CHUNK])) {
			*index |= KDAPL_CHUNK - 1;
			continue;
		}
		rcu_read_lock();
		obj = kdapl_at(*index);
		if (obj && !kref_get_unless_zero(&obj->ref))
			obj = NULL;
		rcu_read_unlock();
		if (obj) {
			++*index;
			return obj;
		}
		if (*index % KDAPL_CHUNK == 0)
			cond_resched();
	}
	return NULL;
}

/**
 * kdapl_obj_free - free an object's memory, at the end of ops->release()
 * @obj: the object; first member of the memory to free
 *
 * Returns the table index, takes @obj off the list of its IA, wakes dat_ia_close() and
 * drops the object's reference to the IA.
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
	list_del(&obj->link);
	spin_unlock_irqrestore(&ia->lock, flags);
	/* kdapl_mr_owner() may have just found @obj in hca->keys. litmus: handle-free */
	kvfree_rcu(obj, free_work.rcu);
	/* kdapl_ia_drain() may wait; the object's reference keeps @ia. litmus: ia-live */
	atomic_dec(&ia->live);
	wake_up_all(&ia->wait);
	kdapl_obj_put(&ia->obj);
}

/*
 * Return the first object behind @pos in @list that is not being released, referenced; or
 * NULL.
 */
struct kdapl_obj *kdapl_obj_behind(struct list_head *pos,
				   struct list_head *list)
{
	struct kdapl_obj *obj;

	for (pos = pos->next; pos != list; pos = pos->next) {
		obj = list_entry(pos, struct kdapl_obj, link);
		if (kref_get_unless_zero(&obj->ref))
			return obj;
	}
	return NULL;
}

/**
 * kdapl_obj_next - walk over the objects of an IA
 * @ia: the IA
 * @obj: the object that the last call returned, whose reference is dropped;
 *	NULL at first
 *
 * The caller owns the reference to the last object if it ends the walk early.
 *
 * An object stays on the list until after its last reference was dropped, so the
 * reference to @obj keeps the place in the list while ia->lock is not held. Objects that
 * are being released are skipped, a section at a time. Objects that are added during the
 * walk are found, also before they are published: rely only on members that ops->init()
 * initialises.
 *
 * Context: Any.
 * Return: the next object, referenced, or NULL at the end.
 */
struct kdapl_obj *kdapl_obj_next(struct kdapl_ia *ia, struct kdapl_obj *obj)
{
	struct list_head *pos = obj ? &obj->link : &ia->objs;
	/* Keeps the place while the lock is dropped; looks like an object being released. */
	struct kdapl_obj place = { };
	struct kdapl_obj *next = NULL;
	unsigned long flags;
	unsigned int n = 0;

	spin_lock_irqsave(&ia->lock, flags);
	for (pos = pos->next; pos != &ia->objs; pos = pos->next) {
		next = list_entry(pos, struct kdapl_obj, link);
		if (kref_get_unless_zero(&next->ref))
			break;
		next = NULL;
		if (++n < KDAPL_SECTION)
			continue;
		kdapl_section(n);
		n = 0;
		list_add(&place.link, pos);
		spin_unlock_irqrestore(&ia->lock, flags);
		spin_lock_irqsave(&ia->lock, flags);
		pos = place.link.prev;
		list_del(&place.link);
	}
	kdapl_section(n);
	spin_unlock_irqrestore(&ia->lock, flags);
	if (obj)
		kdapl_obj_put(obj);
	return next;
}

/*
 * As kdapl_obj_next(), but objects that are being released are not skipped, and @obj and
 * the result are not referenced: kdapl_hca.sem is held for writing, so no object is
 * released or added.
 */
struct kdapl_obj *kdapl_obj_next_held(struct kdapl_ia *ia, struct kdapl_obj *obj)
{
	struct list_head *pos = obj ? &obj->link : &ia->objs;
	struct kdapl_obj *next = NULL;
	unsigned long flags;

	lockdep_assert_held_write(&ia->hca->sem);

	spin_lock_irqsave(&ia->lock, flags);
	for (pos = pos->next; pos != &ia->objs && !next; pos = pos->next) {
		next = list_entry(pos, struct kdapl_obj, link);
		/* Skip a place of kdapl_obj_next(). */
		if (!next->ops)
			next = NULL;
	}
	spin_unlock_irqrestore(&ia->lock, flags);
	return next;
}

/* Wait until every object whose last reference was dropped has been released. */
void kdapl_quiesce(void)
{
	rcu_barrier();
	kdapl_hcas_flush();
	/* The releases may have dropped the last references to devices. */
	flush_workqueue(kdapl_wq);
}

/* As kdapl_find(), for any type. */
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

/* Find the object of a call that stores a property at @out; NULL with the error in *@ret. */
static struct kdapl_obj *kdapl_find_asked(DAT_HANDLE handle, const void *out,
					  DAT_RETURN *ret)
{
	struct kdapl_obj *obj = kdapl_find_any(handle);

	*ret = DAT_SUCCESS;
	if (!obj)
		*ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (!out)
		*ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return out ? obj : NULL;
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret;

	rcu_read_lock();
	obj = kdapl_find_asked(dat_handle, context, &ret);
	if (obj)
		context->as_64 = READ_ONCE(obj->context.as_64);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_get_consumer_context);

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *type)
{
	struct kdapl_obj *obj;
	DAT_RETURN ret;

	rcu_read_lock();
	obj = kdapl_find_asked(dat_handle, type, &ret);
	if (obj)
		*type = kdapl_type(obj);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_get_handle_type);

/**
 * kdapl_find_queried - find the object of a query
 * @handle: the first argument of the query
 * @type: type of the handle
 * @unknown_fields: bits of the mask, the second argument, without a member
 * @param: the third argument, which the query fills in
 * @ret: set to the return code of the query
 *
 * Context: Any; inside an RCU read-side section.
 * Return: the object, or NULL with the error of the first wrong argument in *@ret.
 */
void *kdapl_find_queried(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
			 u64 unknown_fields, const void *param,
			 DAT_RETURN *ret)
{
	static const int invalid[] = {
		[DAT_HANDLE_TYPE_CR] = DAT_INVALID_HANDLE_CR,
		[DAT_HANDLE_TYPE_CSP] = DAT_INVALID_HANDLE_CSP,
		[DAT_HANDLE_TYPE_EP] = DAT_INVALID_HANDLE_EP,
		[DAT_HANDLE_TYPE_EVD] = DAT_INVALID_HANDLE1,
		[DAT_HANDLE_TYPE_LMR] = DAT_INVALID_HANDLE_LMR,
		[DAT_HANDLE_TYPE_PSP] = DAT_INVALID_HANDLE_PSP,
		[DAT_HANDLE_TYPE_PZ] = DAT_INVALID_HANDLE_PZ,
		[DAT_HANDLE_TYPE_RMR] = DAT_INVALID_HANDLE_RMR,
		[DAT_HANDLE_TYPE_RSP] = DAT_INVALID_HANDLE_RSP,
		[DAT_HANDLE_TYPE_SRQ] = DAT_INVALID_HANDLE_SRQ,
	};
	void *obj = kdapl_find(handle, type);

	*ret = DAT_SUCCESS;
	if (!obj)
		*ret = DAT_ERROR(DAT_INVALID_HANDLE, invalid[type]);
	else if (unknown_fields)
		*ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	else if (!param)
		*ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return *ret == DAT_SUCCESS ? obj : NULL;
}

/*
 * Take a dependency on the object of @ia with this handle and type: a use and a
 * reference. Return the object, or NULL if @ia has no such object. dat_srq_free() retires
 * an SRQ and may be refused after that, so for an SRQ wait whether it is.
 * Context: Any; for an SRQ process context.
 */
void *kdapl_dep_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
		    struct kdapl_ia *ia)
{
	struct kdapl_obj *obj = kdapl_obj_get(handle, type);

	might_sleep_if(type == DAT_HANDLE_TYPE_SRQ);
	if (!obj)
		return NULL;
	if (obj->ia == ia && (type == DAT_HANDLE_TYPE_SRQ ?
			      kdapl_obj_use_unless_freed(obj) : kdapl_obj_use(obj)))
		return obj;
	kdapl_obj_put(obj);
	return NULL;
}
