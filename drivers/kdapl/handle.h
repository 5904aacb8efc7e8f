/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The base of every DAT object: its handle, its references, its uses
 * (handle.c).
 *
 * kdapl_find() finds the object of a handle inside an RCU read-side section and
 * takes no reference; kdapl_obj_get() takes one. While another DAT object depends on an
 * object it holds a use (kdapl_obj_use()), which makes the free call of the object fail.
 */
#ifndef KDAPL_HANDLE_H
#define KDAPL_HANDLE_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include "kdapl.h"

struct kdapl_ia;
struct kdapl_obj;

/* A handle is, from the lowest bit: table index, type, generation. */
#define KDAPL_INDEX_BITS	22
#define KDAPL_INDEX_MASK	((1UL << KDAPL_INDEX_BITS) - 1)
#define KDAPL_CHUNK		1024U
#define KDAPL_CHUNKS		((1U << KDAPL_INDEX_BITS) / KDAPL_CHUNK)
#define KDAPL_TYPE_SHIFT	KDAPL_INDEX_BITS
#define KDAPL_TYPE_MASK		0xfUL
#define KDAPL_GEN_SHIFT		26

/* Value of kdapl_obj.users: the handle was not published yet. */
#define KDAPL_UNPUBLISHED	-2

/* Mappings (pz_sg.c) are in the table, but are no DAT objects. */
#define KDAPL_TYPE_SG		15

/*
 * struct kdapl_obj_ops - functions of one type of objects
 * @init: Initialise locks, lists, work items and the like of a new object in zeroed
 *	memory. Walks find an object as soon as it is on the list of its IA, before it is
 *	published. So kdapl_obj_init() calls this first, and a walk may touch only members
 *	that are initialised here or may be zero.
 * @release: Destroy the verbs objects, drop the references to other objects and call
 *	kdapl_obj_free(). Process context, hca->sem held for reading, an RCU grace period
 *	after the last reference was dropped.
 * @free: Free the object as the consumer's free call does, because the IA is closed. What is
 *	refused is left, and freed again later. Returns a DAT_RETURN. Process context. NULL for
 *	an IA.
 * @stop: End communication with peers, because the device is leaving; wait for the end if
 *	@wait. Process context. Optional.
 * @strip: Destroy all verbs objects, because the device is leaving; every
 *	object of the device has been stopped. hca->sem is held for writing.
 *	Optional.
 * @invalidated: A peer has invalidated the key @rkey, which once belonged to an
 *	MR of the object. Any context, an EVD's lock is held. LMR and RMR.
 * @request_done: A posted request about the object has ended with @status; drop
 *	the reference of the request. Any context, an EVD's lock is held. LMR
 *	and RMR.
 */
struct kdapl_obj_ops {
	void (*init)(struct kdapl_obj *obj);
	void (*release)(struct kdapl_obj *obj);
	u32 (*free)(struct kdapl_obj *obj);
	void (*stop)(struct kdapl_obj *obj, bool wait);
	void (*strip)(struct kdapl_obj *obj);
	void (*invalidated)(struct kdapl_obj *obj, u32 rkey);
	void (*request_done)(struct kdapl_obj *obj, u8 op, u8 status);
};

/*
 * struct kdapl_obj - members common to all DAT objects
 * @handle: the value that the consumer knows: generation, type, table index
 * @ref: memory and verbs objects live until the last reference is dropped
 * @users: DAT objects that depend on this one; -1 once the consumer has freed
 *	it, KDAPL_UNPUBLISHED before it is published
 * @context: the consumer's context
 * @ia: the IA that the object belongs to; of an IA, the IA itself
 * @link: entry in ia->objs or, of an IA, in hca->ias, until the object is
 *	released; ia->lock or kdapl_hcas_lock
 * @ops: see struct kdapl_obj_ops
 * @free_work: runs ops->release
 */
struct kdapl_obj {
	u64 handle;
	struct kref ref;
	atomic_t users;
	DAT_CONTEXT context;
	struct kdapl_ia *ia;
	struct list_head link;
	const struct kdapl_obj_ops *ops;
	struct rcu_work free_work;
};

extern struct kdapl_obj __rcu **kdapl_chunks[KDAPL_CHUNKS];
extern struct workqueue_struct *kdapl_wq;
/* Most objects handled in one section with interrupts off; for tests. */
extern unsigned int kdapl_longest_section;

/* Record a section with interrupts off that has handled @n objects. */
static inline void kdapl_section(unsigned int n)
{
	if (unlikely(n > READ_ONCE(kdapl_longest_section)))
		WRITE_ONCE(kdapl_longest_section, n);
}

u64 kdapl_generations(u32 n);
int kdapl_obj_init_gfp(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
		       struct kdapl_ia *ia, const struct kdapl_obj_ops *ops,
		       gfp_t gfp);
void *kdapl_obj_alloc(size_t size, DAT_HANDLE_TYPE type, struct kdapl_ia *ia,
		      const struct kdapl_obj_ops *ops);
void kdapl_obj_publish(struct kdapl_obj *obj);
bool kdapl_obj_in_use(struct kdapl_obj *obj);
bool kdapl_obj_unpublish(struct kdapl_obj *obj);
bool kdapl_obj_retire(struct kdapl_obj *obj);
bool kdapl_obj_is_freed(struct kdapl_obj *obj);
void kdapl_obj_decided(struct kdapl_obj *obj, bool freed);
void kdapl_obj_put(struct kdapl_obj *obj);
void *kdapl_obj_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type);
void *kdapl_find_queried(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
			 u64 unknown_fields, const void *param,
			 DAT_RETURN *ret);
void kdapl_obj_free(struct kdapl_obj *obj);
struct kdapl_obj *kdapl_obj_find_next(u32 *index);
struct kdapl_obj *kdapl_obj_behind(struct list_head *pos,
				   struct list_head *list);
struct kdapl_obj *kdapl_obj_next(struct kdapl_ia *ia, struct kdapl_obj *obj);
struct kdapl_obj *kdapl_obj_next_held(struct kdapl_ia *ia, struct kdapl_obj *obj);
void *kdapl_dep_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
		    struct kdapl_ia *ia);
void kdapl_quiesce(void);
void kdapl_handle_setup(void);
void kdapl_handle_cleanup(void);
bool kdapl_handles_empty(void);

/* kdapl_obj_init_gfp() in process context. */
static inline int kdapl_obj_init(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
				 struct kdapl_ia *ia,
				 const struct kdapl_obj_ops *ops)
{
	return kdapl_obj_init_gfp(obj, type, ia, ops, GFP_KERNEL);
}

static inline DAT_HANDLE_TYPE kdapl_type(const struct kdapl_obj *obj)
{
	return (obj->handle >> KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK;
}

static inline DAT_HANDLE kdapl_handle(const struct kdapl_obj *obj)
{
	return (DAT_HANDLE)(uintptr_t)obj->handle;
}

/*
 * Return the published object at @index of the table, or NULL. Both loads are ordered by
 * dependencies. litmus: handle, handle-chunk. Context: Any; inside an RCU read-side section.
 */
static inline struct kdapl_obj *kdapl_at(u32 index)
{
	struct kdapl_obj __rcu **chunk =
		READ_ONCE(kdapl_chunks[index / KDAPL_CHUNK]);

	return likely(chunk) ? rcu_dereference(chunk[index % KDAPL_CHUNK]) :
			       NULL;
}

/*
 * Return the published object with this handle and type, or NULL. Context: Any;
 * inside an RCU read-side section. Until the section ends the object cannot be
 * released, but the consumer may free it and the device may leave.
 */
static inline void *kdapl_find(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	u64 h = (uintptr_t)handle;
	struct kdapl_obj *obj = kdapl_at(h & KDAPL_INDEX_MASK);

	if (unlikely(!obj || obj->handle != h || kdapl_type(obj) != type))
		return NULL;
	return obj;
}

/* Has a published object this handle and type? Context: Any. */
static inline bool kdapl_handle_valid(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	bool valid;

	rcu_read_lock();
	valid = kdapl_find(handle, type);
	rcu_read_unlock();
	return valid;
}

/* Is @obj published: has the consumer not freed it yet? */
static inline bool kdapl_obj_published(const struct kdapl_obj *obj)
{
	return kdapl_handle_valid(kdapl_handle(obj), kdapl_type(obj));
}

/*
 * Begin to depend on @obj. Return false if @obj was retired. litmus: obj-users.
 * Context: Any.
 */
static inline bool kdapl_obj_use(struct kdapl_obj *obj)
{
	return atomic_inc_unless_negative(&obj->users);
}

/*
 * As kdapl_obj_use(), for an SRQ or LMR. If a call is freeing it that may be refused, wait
 * whether it is. Context: Process context.
 */
static inline bool kdapl_obj_use_unless_freed(struct kdapl_obj *obj)
{
	while (!kdapl_obj_use(obj))
		if (kdapl_obj_is_freed(obj))
			return false;
	return true;
}

/*
 * End a dependency that kdapl_obj_use() began. Pairs with kdapl_obj_retire(): all earlier
 * actions of the user precede a successful free call. litmus: obj-users
 * Context: Any.
 */
static inline void kdapl_obj_unuse(struct kdapl_obj *obj)
{
	(void)atomic_dec_return_release(&obj->users);
}

/*
 * A dependency is a use and a reference. Take both of @obj, which was found in
 * the current RCU read-side section (kdapl_dep_get() takes both by handle).
 * Return false if @obj was retired. Context: Any.
 */
static inline bool kdapl_dep_tryget(struct kdapl_obj *obj)
{
	if (!kdapl_obj_use(obj))
		return false;
	if (kref_get_unless_zero(&obj->ref))
		return true;
	kdapl_obj_unuse(obj);
	return false;
}

/* Drop the use and the reference of a dependency. Context: Any. */
static inline void kdapl_dep_put(struct kdapl_obj *obj)
{
	kdapl_obj_unuse(obj);
	kdapl_obj_put(obj);
}

#endif
