/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The base of every DAT object: handle.c.
 */
#ifndef KDAPL_HANDLE_H
#define KDAPL_HANDLE_H

#include "kdapl.h"

#define KDAPL_INDEX_BITS	20
#define KDAPL_INDEX_MASK	((1UL << KDAPL_INDEX_BITS) - 1)
#define KDAPL_CHUNK		1024U
#define KDAPL_CHUNKS		((1U << KDAPL_INDEX_BITS) / KDAPL_CHUNK)
#define KDAPL_TYPE_SHIFT	KDAPL_INDEX_BITS
#define KDAPL_TYPE_MASK		0xfUL
#define KDAPL_GEN_SHIFT		24

/*
 * struct kdapl_obj - what all DAT objects have in common
 * @handle: the value the consumer holds: generation, type, table index
 * @ref: memory and verbs resources live while this is held
 * @users: DAT objects that depend on this one; -1 once it was freed
 * @context: the consumer's context
 * @stopped: last pass of device removal that saw it
 * @ia: the IA it belongs to (itself, for an IA)
 * @ia_link: entry in the IA's list, until released
 * @release: frees everything; process context, an RCU grace period after the
 *	last reference was dropped
 * @free_work: runs @release
 */
struct kdapl_obj {
	u64 handle;
	struct kref ref;
	atomic_t users;
	DAT_CONTEXT context;
	u8 stopped;
	struct kdapl_ia *ia;
	struct list_head ia_link;
	void (*release)(struct kdapl_obj *obj);
	struct rcu_work free_work;
};

extern struct kdapl_obj __rcu **kdapl_chunks[KDAPL_CHUNKS];
extern struct workqueue_struct *kdapl_wq;

int kdapl_obj_init(struct kdapl_obj *obj, DAT_HANDLE_TYPE type,
		   struct kdapl_ia *ia, void (*release)(struct kdapl_obj *));
void kdapl_obj_publish(struct kdapl_obj *obj);
bool kdapl_obj_unpublish(struct kdapl_obj *obj);
bool kdapl_obj_retire(struct kdapl_obj *obj);
void kdapl_obj_put(struct kdapl_obj *obj);
void *kdapl_obj_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type);
void kdapl_obj_free(struct kdapl_obj *obj);
void kdapl_quiesce(void);
void kdapl_handle_setup(void);
void kdapl_handle_cleanup(void);
bool kdapl_handles_empty(void);

static inline DAT_HANDLE_TYPE kdapl_type(const struct kdapl_obj *obj)
{
	return (obj->handle >> KDAPL_TYPE_SHIFT) & KDAPL_TYPE_MASK;
}

static inline DAT_HANDLE kdapl_handle(const struct kdapl_obj *obj)
{
	return (DAT_HANDLE)(uintptr_t)obj->handle;
}

/* The published object at an index, or NULL. RCU read-side section. */
static inline struct kdapl_obj *kdapl_at(u32 index)
{
	struct kdapl_obj __rcu **chunk =
		READ_ONCE(kdapl_chunks[index / KDAPL_CHUNK]);

	return likely(chunk) ? rcu_dereference(chunk[index % KDAPL_CHUNK]) :
			       NULL;
}

/*
 * Find the object of a handle. The caller is in an RCU read-side section, which
 * keeps the object (but not its usefulness) until the section ends.
 */
static inline void *kdapl_find(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	u64 h = (uintptr_t)handle;
	struct kdapl_obj *obj = kdapl_at(h & KDAPL_INDEX_MASK);

	if (unlikely(!obj || obj->handle != h || kdapl_type(obj) != type))
		return NULL;
	return obj;
}

static inline bool kdapl_handle_valid(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	bool valid;

	rcu_read_lock();
	valid = kdapl_find(handle, type);
	rcu_read_unlock();
	return valid;
}

/* Depend on @obj, unless it was freed. */
static inline bool kdapl_obj_use(struct kdapl_obj *obj)
{
	return atomic_inc_unless_negative(&obj->users);
}

static inline void kdapl_obj_unuse(struct kdapl_obj *obj)
{
	atomic_dec(&obj->users);
}

#endif
