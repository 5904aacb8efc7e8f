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
 * @obj: what all objects have
 * @pz: Protection Zone; referenced
 * @mutex: serialises resizing, arming, making and destroying of @srq
 * @max_iov: segments of a buffer
 * @lock: protects all that is listed below
 * @srq: the device's queue; NULL when the device has left
 * @max: buffers that may be outstanding, as the consumer asked for
 * @slots: buffers there is memory for
 * @available: posted less taken
 * @outstanding: posted less reaped
 * @hw_max: buffers that the device is given at most
 * @hw_count: buffers that it has, as far as is known
 * @next_seq: of the next buffer given to it
 * @max_taken: newest buffer ever completed
 * @suspect_below: destroyed QPs may have taken older buffers; 0 if not. This
 *	and all up to @searched: see srq_lost.c
 * @suspects: buffers in @hw that are older, at most
 * @destroyed_qps: destroyed QPs that may have taken one each
 * @doubt: buffers that the counts leave out, as they may be lost
 * @epoch: counts the times that @suspect_below was raised
 * @oldest: EP that has completed nothing for longest; NULL: a search will tell
 * @searched: EPs that searches have looked at
 * @probe_after: jiffies before which there is no other probe; 0: now; @mutex in
 *	place of @lock
 * @hw_extra: room in all CQs beyond @hw_max
 * @stale: no QP is attached any more; @srq is remade before the next
 * @free: entries that are not posted, by @next; only its end is ever used
 * @waiting: posted, until there is room in the device
 * @hw: given to the device, in order
 * @eps: EPs with a QP on it
 * @all: all entries, @slots of them, see kdapl_srq_place(); @mutex in place of @lock
 * @all_room: what @all has room for; likewise
 * @lw: low watermark
 * @lw_armed: @lw has not fired since it was set
 * @feeding: buffers are waiting, and the device is fed as it completes
 * @evds: struct kdapl_srq_evd by the index in the EVD's handle; its lock, RCU to read
 * @taken: buffers taken ever
 * @recovered: buffers lost by the device and put back, ever
 * @lw_event: says that @lw was passed
 * @arm_work: passes @lw on to the device
 * @hint_work: polls, and adapts the watching
 * @search_work: looks for lost buffers
 *
 * Each entry is in one of @free, @waiting and @hw, or at an EP.
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	int lw;
	int slots;
	int all_room;
	int hw_extra;

	/* Two cache lines of who posts and completes. */
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
	struct kdapl_async lw_event;
	struct work_struct arm_work;
	struct work_struct hint_work;
	struct work_struct search_work;
};

/*
 * struct kdapl_srq_evd - an EVD that completes buffers of an SRQ
 * @evd: the EVD
 * @eps: EPs on the SRQ that have it for their receives; the lock of srq->evds
 * @watched: how closely it is watched for the SRQ
 * @expected: events of the SRQ that can be outstanding, as the EVD was told
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

/* The event of a taken buffer was reaped, so its entry is free again. */
static inline void kdapl_srq_reaped(struct kdapl_evd *evd, struct kdapl_srq *srq,
				    struct kdapl_wr *wr)
{
	lockdep_assert_held(&evd->lock);

	/* ep->at_hand is the EVD's. */
	list_del(&wr->link);
	spin_lock(&srq->lock);
	srq->outstanding--;
	wr->next = srq->free;
	srq->free = wr;
	spin_unlock(&srq->lock);
}

/* Give @wr, which is in no list, to the device, unless that refuses it. */
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

/* Posted less taken, of which those that may be lost are left out. */
static inline int kdapl_srq_available(const struct kdapl_srq *srq)
{
	return srq->available - srq->doubt;
}

/* Posted less reaped, likewise. */
static inline int kdapl_srq_outstanding(const struct kdapl_srq *srq)
{
	return srq->outstanding - srq->doubt;
}

/*
 * An entry of an SRQ is followed by the LMRs that it names (kdapl_wr_lmrs()), and
 * these by its place in srq->all, where a search finds it whatever list it is on.
 */
static inline u32 *kdapl_srq_place(const struct kdapl_srq *srq, struct kdapl_wr *wr)
{
	return (void *)wr + kdapl_entry_size(srq->max_iov, srq->max_iov);
}

/* srq.c */
bool kdapl_srq_check_lw(struct kdapl_srq *srq);
int kdapl_srq_grow_slots(struct kdapl_srq *srq, int total);
void kdapl_srq_refill(struct kdapl_srq *srq, struct kdapl_later *later);
void kdapl_srq_take_back(struct kdapl_srq *srq, struct kdapl_wr *wr);

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
