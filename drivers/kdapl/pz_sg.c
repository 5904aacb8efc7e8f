// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Mappings of scatterlists (<dat/kdat_linux.h>): the objects, how a PZ keeps
 * unused ones, and how posting calls find them. kdat_sg_map() and
 * kdat_sg_unmap() are in mem_sg.c.
 *
 * A mapping is created for one I/O, in any context, so this must be cheap: the
 * object keeps its index in the handle table for life, and while unused it
 * waits in a list of the CPU that unmapped it. Lists that grow long or are empty
 * exchange a batch with the list of the PZ; no other lock is shared by CPUs.
 *
 * sg->state tells who uses the object: it has the generation of the
 * handle, and the number of posted requests that name it. A post adds one with
 * compare-and-exchange, so it never takes a mapping that was unmapped or
 * reused; unmapping exchanges a count of zero for KDAPL_SG_FREE, so exactly one
 * caller unmaps, and none while work is posted. Everything else in the object
 * is constant while ->state has a generation.
 *
 * Mapping and unmapping run inside an RCU read-side section and check
 * hca->gone. kdapl_remove_one() waits for such sections before and after
 * kdapl_ia_strip() unmaps the mappings that the consumer has left.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include "hca.h"
#include "ia.h"
#include "pz_sg.h"

/* Mappings that a CPU's list exchanges with the list of the PZ at a time. */
#define KDAPL_SG_BATCH		32
/* Generations that a CPU takes at a time off the counter of all objects. */
#define KDAPL_SG_GENERATIONS	1024

/*
 * struct kdapl_sg_cache - unused mappings of one CPU
 * @lock: protects the list and the generations; taken by the owner of the cache and, when
 *	the PZ is freed, by kdapl_sg_drain()
 * @free: first mapping
 * @n: number of mappings
 * @generation: next generation to use
 * @left: generations left
 */
struct kdapl_sg_cache {
	spinlock_t lock;		/* see above */
	struct kdapl_sg *free;
	u32 n;
	u64 generation;
	u32 left;
};

/* Allocate the caches of a new PZ. Return 0 or -ENOMEM. */
int kdapl_sg_setup(struct kdapl_pz *pz)
{
	int cpu;

	pz->sg_cache = alloc_percpu(struct kdapl_sg_cache);
	if (!pz->sg_cache)
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		spin_lock_init(&per_cpu_ptr(pz->sg_cache, cpu)->lock);
	return 0;
}

/* Undo kdapl_sg_setup(). All mappings have been released. */
void kdapl_sg_cleanup(struct kdapl_pz *pz)
{
	free_percpu(pz->sg_cache);
}

/* Move up to a batch of mappings from one list to another. */
static u32 kdapl_sg_move(struct kdapl_sg **from, struct kdapl_sg **to)
{
	struct kdapl_sg *sg;
	u32 n;

	for (n = 0; n < KDAPL_SG_BATCH && *from; n++) {
		sg = *from;
		*from = sg->next;
		sg->next = *to;
		*to = sg;
	}
	return n;
}

/* Take the mapping of @pz that became unused last, or return NULL. */
static struct kdapl_sg *kdapl_sg_pop(struct kdapl_pz *pz,
				     struct kdapl_sg_cache *cache)
{
	struct kdapl_sg *sg;

	lockdep_assert_held(&cache->lock);

	if (unlikely(!cache->free && READ_ONCE(pz->sg_depot))) {
		spin_lock(&pz->sg_lock);
		cache->n = kdapl_sg_move(&pz->sg_depot, &cache->free);
		spin_unlock(&pz->sg_lock);
	}
	sg = cache->free;
	if (sg) {
		cache->free = sg->next;
		cache->n--;
	}
	return sg;
}

/* Allocate a mapping, unused so far. Return NULL if there is no memory. */
static struct kdapl_sg *kdapl_sg_new(struct kdapl_pz *pz,
				     const struct kdapl_obj_ops *ops)
{
	struct kdapl_sg *sg;

	sg = kzalloc(sizeof(*sg), GFP_ATOMIC | __GFP_NOWARN);
	if (!sg)
		return NULL;
	/* The object keeps the PZ, which cannot be freed meanwhile. */
	if (!kdapl_dep_tryget(&pz->obj))
		goto err_free;
	if (kdapl_obj_init_gfp(&sg->obj, KDAPL_TYPE_SG, pz->obj.ia, ops,
			       GFP_ATOMIC | __GFP_NOWARN))
		goto err_put;
	sg->pz = pz;
	kdapl_obj_publish(&sg->obj);
	return sg;

err_put:
	kdapl_dep_put(&pz->obj);
err_free:
	kfree(sg);
	return NULL;
}

/**
 * kdapl_sg_take - take an unused mapping
 * @pz: its Protection Zone
 * @ops: operations of the object, if it must be allocated
 * @generation: set to the generation of its next handle, which is new
 *
 * Context: Any; inside an RCU read-side section.
 * Return: the mapping, or NULL if there is no memory for one
 */
struct kdapl_sg *kdapl_sg_take(struct kdapl_pz *pz,
			       const struct kdapl_obj_ops *ops, u64 *generation)
{
	struct kdapl_sg_cache *cache = raw_cpu_ptr(pz->sg_cache);
	struct kdapl_sg *sg;
	unsigned long flags;

	spin_lock_irqsave(&cache->lock, flags);
	if (unlikely(!cache->left)) {
		cache->left = KDAPL_SG_GENERATIONS;
		cache->generation = kdapl_generations(cache->left);
	}
	cache->left--;
	*generation = cache->generation++;
	sg = kdapl_sg_pop(pz, cache);
	spin_unlock_irqrestore(&cache->lock, flags);
	return sg ?: kdapl_sg_new(pz, ops);
}

/* Put a mapping that is unused again back into a list. Context: Any. */
void kdapl_sg_give(struct kdapl_sg *sg)
{
	struct kdapl_pz *pz = sg->pz;
	struct kdapl_sg_cache *cache = raw_cpu_ptr(pz->sg_cache);
	unsigned long flags;

	spin_lock_irqsave(&cache->lock, flags);
	if (unlikely(cache->n == 2 * KDAPL_SG_BATCH)) {
		spin_lock(&pz->sg_lock);
		cache->n -= kdapl_sg_move(&cache->free, &pz->sg_depot);
		spin_unlock(&pz->sg_lock);
	}
	sg->next = cache->free;
	cache->free = sg;
	cache->n++;
	spin_unlock_irqrestore(&cache->lock, flags);
}

/* Release the unused mappings of a list. */
static void kdapl_sg_drop(struct kdapl_sg *sg)
{
	struct kdapl_sg *next;

	for (; sg; sg = next) {
		next = sg->next;
		if (!kdapl_obj_unpublish(&sg->obj))
			continue;
		kdapl_obj_unuse(&sg->pz->obj);
		kdapl_obj_put(&sg->obj);
	}
}

/*
 * Release all unused mappings of @pz, as each keeps the PZ from being freed.
 * Context: Process context.
 */
void kdapl_sg_drain(struct kdapl_pz *pz)
{
	struct kdapl_sg_cache *cache;
	struct kdapl_sg *sg;
	int cpu;

	for_each_possible_cpu(cpu) {
		cache = per_cpu_ptr(pz->sg_cache, cpu);
		spin_lock_irq(&cache->lock);
		sg = cache->free;
		cache->free = NULL;
		cache->n = 0;
		spin_unlock_irq(&cache->lock);
		kdapl_sg_drop(sg);
	}
	spin_lock_irq(&pz->sg_lock);
	sg = pz->sg_depot;
	pz->sg_depot = NULL;
	spin_unlock_irq(&pz->sg_lock);
	kdapl_sg_drop(sg);
}

/**
 * kdapl_sg_get - find the mapping that a triplet names, for a posted request
 * @context: the triplet's context
 *
 * Pairs with kdapl_sg_load(). litmus: sg-map
 *
 * Context: Any; inside an RCU read-side section.
 * Return: the mapping, which cannot be unmapped until kdapl_sg_put(), or NULL
 */
struct kdapl_sg *kdapl_sg_get(DAT_LMR_CONTEXT context)
{
	struct kdapl_obj *obj = kdapl_at(context & KDAPL_INDEX_MASK);
	struct kdapl_sg *sg;
	s64 state;

	if (!obj || kdapl_type(obj) != KDAPL_TYPE_SG)
		return NULL;
	sg = container_of(obj, struct kdapl_sg, obj);
	state = atomic64_read(&sg->state);
	do {
		if (kdapl_sg_is_free(state) ||
		    kdapl_sg_context(sg, state) != context)
			return NULL;
	} while (!atomic64_try_cmpxchg(&sg->state, &state, state + 1));
	return sg;
}

/* Do the @len bytes from @offset on of the entry @seg lie in the mapping? */
static bool kdapl_sg_spans(const struct kdapl_sg *sg, struct scatterlist *seg,
			   u64 offset, u64 len)
{
	u64 next;

	while (len > sg_dma_len(seg) - offset) {
		len -= sg_dma_len(seg) - offset;
		next = sg_dma_address(seg) + sg_dma_len(seg);
		if (seg == sg->last)
			return false;
		seg = sg_next(seg);
		if (sg_dma_address(seg) != next)
			return false;
		offset = 0;
	}
	return true;
}

/*
 * Does the mapping have these addresses? Segments are mostly posted in their order, so
 * the search starts where the last one ended.
 */
static bool kdapl_sg_holds(struct kdapl_sg *sg, u64 addr, u64 len)
{
	struct scatterlist *start = READ_ONCE(sg->cursor), *seg = start;

	do {
		if (addr - sg_dma_address(seg) < sg_dma_len(seg) &&
		    kdapl_sg_spans(sg, seg, addr - sg_dma_address(seg), len)) {
			WRITE_ONCE(sg->cursor, seg);
			return true;
		}
		seg = seg == sg->last ? sg->sgl : sg_next(seg);
	} while (seg != start);
	return false;
}

/**
 * kdapl_sg_segment - check a segment that names no LMR but a mapping, and translate it
 * @pz: Protection Zone of the request
 * @iov: the segment, not empty
 * @priv: local privilege that the operation needs
 * @sge: filled in
 * @map: NULL before the first such segment of a request. Set to the mapping, also if the
 *	segment is refused; the caller drops it with kdapl_sg_put() unless the request is
 *	posted
 *
 * Context: Any; inside an RCU read-side section.
 * Return: 0; -ENOENT: there is no such mapping; -EXDEV: it belongs to another PZ;
 * -EACCES: its direction does not allow @priv; -ERANGE: the segment is not inside;
 * -EBUSY: the request names another mapping already
 */
int kdapl_sg_segment(struct kdapl_pz *pz, const DAT_LMR_TRIPLET *iov,
		     DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge,
		     struct kdapl_sg **map)
{
	struct kdapl_sg *sg = *map;

	if (!sg)
		*map = sg = kdapl_sg_get(iov->lmr_context);
	if (!sg)
		return -ENOENT;
	if (kdapl_sg_context(sg, atomic64_read(&sg->state)) !=
	    iov->lmr_context) {
		sg = kdapl_sg_get(iov->lmr_context);
		if (!sg)
			return -ENOENT;
		kdapl_sg_put(sg);
		return -EBUSY;
	}
	if (sg->pz != pz)
		return -EXDEV;
	if ((sg->priv & priv) != priv)
		return -EACCES;
	if (!kdapl_sg_holds(sg, iov->virtual_address, iov->segment_length))
		return -ERANGE;
	sge->addr = iov->virtual_address;
	sge->length = iov->segment_length;
	sge->lkey = pz->lkey;
	return 0;
}
