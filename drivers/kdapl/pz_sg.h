/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Mappings of scatterlists: pz_sg.c and, for the calls, mem_sg.c.
 */
#ifndef KDAPL_PZ_SG_H
#define KDAPL_PZ_SG_H

#include <linux/atomic.h>
#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include "handle.h"
#include "pz.h"

/*
 * kdapl_sg.state is a generation and, in the low bits, the number of posted requests; all
 * of the low bits are set while nothing is mapped.
 */
#define KDAPL_SG_COUNT		((1LL << KDAPL_GEN_SHIFT) - 1)
#define KDAPL_SG_FREE		KDAPL_SG_COUNT

/*
 * struct kdapl_sg - a mapping
 * @obj: members common to all objects; its handle is not the handle of the mapping
 * @pz: Protection Zone, used and referenced as long as the object exists
 * @next: next unused mapping in a list
 * @state: see above
 * @sgl: the consumer's list, which does not change while mapped
 * @nents: length of @sgl
 * @dir: direction
 * @priv: privileges of requests on the memory
 * @last: last entry that has a DMA address
 * @cursor: entry at which the next search for a segment starts
 * @ep_handle: Endpoint of the last posted request
 * @mapped: @sgl is mapped; the caller that exchanges it for false unmaps
 * @lock: held while a leaving device unmaps @sgl
 */
struct kdapl_sg {
	struct kdapl_obj obj;
	struct kdapl_pz *pz;
	struct kdapl_sg *next;
	atomic64_t state;
	struct scatterlist *sgl;
	int nents;
	enum dma_data_direction dir;
	DAT_MEM_PRIV_FLAGS priv;
	struct scatterlist *last;
	struct scatterlist *cursor;
	u64 ep_handle;
	int mapped;
	spinlock_t lock;		/* see above */
};

static inline bool kdapl_sg_is_free(s64 state)
{
	return (state & KDAPL_SG_COUNT) == KDAPL_SG_FREE;
}

/* Return the context in the triplets of a mapping whose state is @state. */
static inline DAT_LMR_CONTEXT kdapl_sg_context(const struct kdapl_sg *sg,
					       s64 state)
{
	return (u64)state >> KDAPL_GEN_SHIFT << KDAPL_INDEX_BITS |
	       (sg->obj.handle & KDAPL_INDEX_MASK);
}

/* Is @context the context of @sg, of which the caller has a count? */
static inline bool kdapl_sg_names(const struct kdapl_sg *sg,
				  DAT_LMR_CONTEXT context)
{
	return kdapl_sg_context(sg, atomic64_read(&sg->state)) == context;
}

/* Drop the count of a request that named the mapping: it has ended, or was not posted. */
static inline void kdapl_sg_put(struct kdapl_sg *sg)
{
	/*
	 * Pairs with kdapl_sg_claim(): at count 0 the consumer may free the list and the
	 * memory. litmus: sg-put
	 */
	(void)atomic64_dec_return_release(&sg->state);
}

int kdapl_sg_setup(struct kdapl_pz *pz);
void kdapl_sg_cleanup(struct kdapl_pz *pz);
struct kdapl_sg *kdapl_sg_take(struct kdapl_pz *pz,
			       const struct kdapl_obj_ops *ops, u64 *generation);
void kdapl_sg_give(struct kdapl_sg *sg);
void kdapl_sg_drain(struct kdapl_pz *pz);
struct kdapl_sg *kdapl_sg_get(DAT_LMR_CONTEXT context);
int kdapl_sg_segment(struct kdapl_pz *pz, const DAT_LMR_TRIPLET *iov,
		     DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge,
		     struct kdapl_sg **map);

#endif
