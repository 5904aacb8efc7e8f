/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared Receive Queues: srq.c, srq_watch.c, srq_hw.c, srq_lost.c,
 * srq_probe.c.
 */
#ifndef KDAPL_SRQ_H
#define KDAPL_SRQ_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include "dto.h"
#include "evd.h"
#include "handle.h"

struct kdapl_ep;
struct kdapl_pz;

/*
 * struct kdapl_srq - Shared Receive Queue
 * @obj: members common to all objects
 * @pz: Protection Zone; referenced
 * @mutex: serialises resizing, arming, creating and destroying of @srq
 * @max_iov: segments of a buffer
 * @lock: protects all members listed below
 * @srq: the device's queue; NULL when the device has left
 * @max: buffers that may be outstanding, as requested by the consumer
 * @slots: number of entries
 * @available: posted less taken
 * @outstanding: posted less reaped
 * @hw_max: most buffers that the device is given
 * @hw_count: buffers that the device has, as far as known
 * @next_seq: number of the next buffer given to the device
 * @max_taken: newest buffer that ever completed
 * @suspect_below: destroyed QPs may have taken buffers older than this; 0 if not. For
 *	this member and all up to @searched see srq_lost.c
 * @suspects: upper bound of the older buffers in @hw
 * @destroyed_qps: destroyed QPs that may have taken one buffer each
 * @doubt: buffers that may be lost and are left out of the counts
 * @epoch: incremented whenever @suspect_below is raised
 * @oldest: EP that has completed nothing for longest; NULL: the next search finds it
 * @searched: EPs that searches have visited
 * @probe_after: jiffies before which there is no other probe; 0: no limit; @mutex in
 *	place of @lock
 * @hw_extra: room in all CQs beyond @hw_max
 * @stale: no QP is attached any more; @srq is created anew before the next one is
 * @free: entries that are not posted, a stack linked by @next
 * @waiting: posted buffers that wait for room in the device
 * @hw: given to the device, in order
 * @eps: EPs with a QP on the SRQ
 * @all: all @slots entries, see kdapl_srq_place(); @mutex in place of @lock
 * @all_room: capacity of @all; @mutex in place of @lock
 * @lw: low watermark
 * @lw_armed: @lw has not fired since it was set
 * @feeding: buffers are waiting; the device gets them as it completes others
 * @evds: struct kdapl_srq_evd by index of the EVD's handle; its own lock, RCU to read
 * @taken: number of buffers ever taken
 * @recovered: number of buffers ever lost by the device and posted again
 * @lw_crossed: how often @lw has fired
 * @since: when the SRQ was created, in seconds of real time
 * @lw_event: reports that @lw was passed
 * @arm_work: passes @lw on to the device
 * @hint_work: polls the CQs and updates the watches
 * @search_work: looks for lost buffers
 *
 * Each entry is in @free, @waiting or @hw, or on the at_hand list of an EP.
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	int lw;
	int slots;
	int all_room;
	int hw_extra;

	/* Two cache lines for posting and completing. */
	spinlock_t lock;		/* see above */
	int max;
	int available;
	int outstanding;
	int hw_max;
	int hw_count;
	int doubt;
	bool stale;
	bool feeding;
	bool lw_armed;
	struct ib_srq *srq;
	struct kdapl_wr *free;
	u64 next_seq;
	u64 max_taken;

	struct list_head waiting;
	struct list_head hw;
	u64 suspect_below;
	u64 taken;
	struct kdapl_pz *pz;
	int max_iov;
	int suspects;

	struct mutex mutex;		/* see above */
	int destroyed_qps;
	u32 epoch;
	struct kdapl_ep *oldest;
	u64 searched;
	unsigned long probe_after;
	struct list_head eps;
	struct kdapl_wr **all;
	struct xarray evds;
	u64 recovered;
	u64 lw_crossed;
	time64_t since;
	struct kdapl_async lw_event;
	struct work_struct arm_work;
	struct work_struct hint_work;
	struct work_struct search_work;
};

/*
 * struct kdapl_srq_evd - an EVD that completes buffers of an SRQ
 * @evd: the EVD
 * @eps: EPs on the SRQ that receive through @evd; the lock of srq->evds
 * @watched: how closely the SRQ has @evd watched
 * @expected: outstanding events of the SRQ that @evd was told to expect
 * @removed: deleted from the table
 * @rcu: frees it
 */
struct kdapl_srq_evd {
	struct kdapl_evd *evd;
	int eps;
	enum kdapl_watch watched;
	int expected;
	bool removed;
	struct rcu_head rcu;
};

/* The event of a taken buffer was reaped: free its entry. */
static inline void kdapl_srq_reaped(struct kdapl_evd *evd, struct kdapl_srq *srq,
				    struct kdapl_wr *wr)
{
	lockdep_assert_held(&evd->lock);

	/* The EVD's lock protects ep->at_hand. */
	list_del(&wr->link);
	spin_lock(&srq->lock);
	srq->outstanding--;
	wr->next = srq->free;
	srq->free = wr;
	spin_unlock(&srq->lock);
}

/* Give @wr, which is in no list, to the device. Return false if the device refuses it. */
static inline bool kdapl_srq_hw_post(struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	const struct ib_recv_wr rwr = {
		.wr_id = (uintptr_t)wr,
		.sg_list = wr->sge,
		.num_sge = wr->nsge,
	};

	lockdep_assert_held(&srq->lock);

	wr->seq = srq->next_seq;
	if (unlikely(ib_post_srq_recv(srq->srq, &rwr, NULL)))
		return false;
	srq->next_seq++;
	srq->hw_count++;
	return true;
}

/* Return posted less taken, without buffers that may be lost. */
static inline int kdapl_srq_available(const struct kdapl_srq *srq)
{
	return srq->available - srq->doubt;
}

/* Return posted less reaped, without buffers that may be lost. */
static inline int kdapl_srq_outstanding(const struct kdapl_srq *srq)
{
	return srq->outstanding - srq->doubt;
}

/*
 * Return where @wr stores its index in srq->all: behind its LMRs (kdapl_wr_lmrs()). A
 * search finds an entry in srq->all whatever list it is on.
 */
static inline u32 *kdapl_srq_place(const struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	return (void *)wr + kdapl_entry_size(srq->max_iov, srq->max_iov);
}

/* srq.c */
bool kdapl_srq_check_lw(struct kdapl_srq *srq);
int kdapl_srq_grow_slots(struct kdapl_srq *srq, int total);
void kdapl_srq_refill(struct kdapl_srq *srq, struct kdapl_later *later);

/* srq_watch.c */
enum kdapl_watch kdapl_srq_watch_wanted(struct kdapl_srq *srq);
void kdapl_srq_watch(struct kdapl_srq *srq);
void kdapl_srq_poll_all(struct kdapl_srq *srq);
int kdapl_srq_add_evd(struct kdapl_srq *srq, struct kdapl_evd *evd);
void kdapl_srq_del_evd(struct kdapl_srq *srq, struct kdapl_evd *evd);

/* srq_hw.c */
int kdapl_srq_hw_create(struct kdapl_srq *srq);
void kdapl_srq_hw_destroy(struct kdapl_srq *srq);
bool kdapl_srq_hw_feed(struct kdapl_srq *srq);
void kdapl_srq_take_back(struct kdapl_srq *srq, struct kdapl_wr *wr);
bool kdapl_srq_hw_keep(struct kdapl_srq *srq, struct kdapl_wr *wr);
void kdapl_srq_hw_fill(struct kdapl_srq *srq);
int kdapl_srq_hw_room(struct kdapl_srq *srq, int n);
void kdapl_srq_hw_grow(struct kdapl_srq *srq, int max);
void kdapl_srq_hw_arm(struct work_struct *work);
void kdapl_srq_hw_hint(struct work_struct *work);
int kdapl_srq_attach(struct kdapl_srq *srq, struct kdapl_ep *ep);
void kdapl_srq_detach(struct kdapl_srq *srq, struct kdapl_ep *ep, int taken);
void kdapl_srq_device_event(struct kdapl_ia *ia, struct ib_srq *srq);

/* srq_lost.c */
void kdapl_srq_trust(struct kdapl_srq *srq);
void kdapl_srq_suspect(struct kdapl_srq *srq, struct kdapl_ep *ep,
		       struct kdapl_wr *wr);
void kdapl_srq_died(struct kdapl_srq *srq, struct kdapl_ep *ep, int taken);
void kdapl_srq_search(struct work_struct *work);

/* srq_probe.c */
int kdapl_srq_probe(struct kdapl_srq *srq, struct kdapl_ep *ep,
		    struct kdapl_wr **taken);

#endif
