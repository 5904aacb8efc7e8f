// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of a passive side on iWARP that wait for the active side.
 *
 * The active side takes its QP to RTS when it has read the answer to its request.
 * What the passive side sends right behind that answer may get there before, and ends
 * the connection; so RFC 5044 has the passive side send nothing before it has received
 * a message. Consumers need not know: their requests are held here until the first
 * receive of the connection, which means that the peer is in RTS, or for
 * KDAPL_HOLD_MS, for consumers whose passive side speaks first.
 *
 * kdapl_hold_begin() is called by dat_cr_accept(). From then on ep->sq.qp is NULL and
 * kdapl_hold_add() copies what is posted. kdapl_hold_open() is called for the first
 * receive; if anything is held it leaves the rest to conn->timer, which calls
 * kdapl_hold_release(). ep->hold is protected by the lock of the send ring, and
 * ep->holding, which has kdapl_ep_check_marks() called for the first receive, by that
 * of the receive EVD.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"

/* Requests posted in one section with interrupts off */
#define KDAPL_HOLD_BATCH 64

/*
 * struct kdapl_held - a copy of a work request
 * @any: the request
 * @sge: its segments
 */
struct kdapl_held {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
	} any;
	struct ib_sge sge[];
};

/*
 * struct kdapl_hold - what is held for an Endpoint
 * @rcu: frees it
 * @stride: bytes of an entry
 * @max: entries there are; the first one follows the last
 * @n: position of the next to be used
 * @next: position of the oldest that was not posted
 * @mem: struct kdapl_held
 */
struct kdapl_hold {
	struct rcu_head rcu;
	size_t stride;
	u32 max;
	u32 n;
	u32 next;
	u64 mem[];
};

static struct kdapl_held *kdapl_held(struct kdapl_hold *hold, u32 pos)
{
	return (void *)hold->mem + pos % hold->max * hold->stride;
}

/* Set ep->holding, and so the mark by which the first receive is seen. */
static void kdapl_hold_watch(struct kdapl_ep *ep, bool holding)
{
	struct kdapl_evd *evd = ep->recv_evd;
	unsigned long flags;

	/* Connecting and connected Endpoints keep their EVDs. */
	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	ep->holding = holding;
	kdapl_ep_set_marks(ep);
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_hold_begin - hold the requests of an Endpoint that accepts
 * @ep: has its queue pair, which was not started
 * @sge: segments that a request may have
 *
 * Context: Process context.
 * Return: 0 or an errno
 */
int kdapl_hold_begin(struct kdapl_ep *ep, u32 sge)
{
	size_t stride = ALIGN(sizeof(struct kdapl_held) +
			      sge * sizeof(struct ib_sge),
			      sizeof(u64));
	struct kdapl_hold *hold;
	unsigned long flags;

	hold = kvzalloc(size_add(sizeof(*hold), size_mul(stride, ep->sq.depth)),
			GFP_KERNEL);
	if (!hold)
		return -ENOMEM;
	hold->stride = stride;
	hold->max = ep->sq.depth;
	spin_lock_irqsave(&ep->sq.lock, flags);
	ep->hold = hold;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	kdapl_hold_watch(ep, true);
	return 0;
}

/* The connection is over: what is held is flushed with the ring. */
void kdapl_hold_end(struct kdapl_ep *ep)
{
	struct kdapl_hold *hold;
	unsigned long flags;

	spin_lock_irqsave(&ep->sq.lock, flags);
	hold = ep->hold;
	ep->hold = NULL;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	kvfree(hold);
	if (READ_ONCE(ep->holding))
		kdapl_hold_watch(ep, false);
}

static size_t kdapl_wr_size(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return sizeof(struct ib_rdma_wr);
	case IB_WR_REG_MR:
		return sizeof(struct ib_reg_wr);
	default:
		return sizeof(*wr);
	}
}

/*
 * Hold @wr and what is behind it, the rest of a chain or of several requests.
 * kdapl_sq_room() has seen that there is room.
 */
void kdapl_hold_add(struct kdapl_ep *ep, const struct ib_send_wr *wr)
{
	struct kdapl_hold *hold = ep->hold;
	struct kdapl_held *held;

	lockdep_assert_held(&ep->sq.lock);

	for (; wr; wr = wr->next) {
		if (WARN_ON_ONCE(hold->n - hold->next == hold->max))
			return;
		held = kdapl_held(hold, hold->n++);
		memcpy(&held->any, wr, kdapl_wr_size(wr));
		memcpy(held->sge, wr->sg_list, wr->num_sge * sizeof(*held->sge));
		held->any.wr.sg_list = held->sge;
		held->any.wr.next = NULL;
	}
}

/* From now on requests go to the device. What is held has been posted. */
static void kdapl_hold_done(struct kdapl_ep *ep)
{
	lockdep_assert_held(&ep->sq.lock);

	kvfree_rcu(ep->hold, rcu);
	ep->hold = NULL;
	ep->sq.qp = ep->qp;
}

/* The first receive has come. Context: any. */
void kdapl_hold_open(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool more = false;

	spin_lock_irqsave(&ep->sq.lock, flags);
	if (ep->hold && ep->hold->n == ep->hold->next)
		kdapl_hold_done(ep);
	else
		more = ep->hold;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	if (more)
		kdapl_ep_start_timer(ep, 0);
}

/* Post the next held request, or chain. Return false if the device refuses it. */
static bool kdapl_hold_post(struct kdapl_ep *ep)
{
	struct kdapl_hold *hold = ep->hold;
	struct ib_send_wr *wr = &kdapl_held(hold, hold->next++)->any.wr;

	if (wr->wr_id & KDAPL_WR_FIRST)
		wr->next = &kdapl_held(hold, hold->next++)->any.wr;
	if (ib_post_send(ep->qp, wr, NULL))
		return false;
	ep->sq.posted++;
	return true;
}

/*
 * Post what is held, some at a time. Return whether there is more.
 * Context: conn->timer, which has been cancelled before the QP goes.
 */
bool kdapl_hold_release(struct kdapl_ep *ep)
{
	struct kdapl_hold *hold;
	unsigned long flags;
	bool refused = false;
	unsigned int i;

	spin_lock_irqsave(&ep->sq.lock, flags);
	hold = ep->hold;
	if (hold) {
		for (i = 0; i < KDAPL_HOLD_BATCH && hold->next != hold->n &&
		     !refused; i++)
			refused = !kdapl_hold_post(ep);
		if (hold->next == hold->n || refused) {
			kdapl_hold_done(ep);
			hold = NULL;
		}
	}
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* As in kdapl_sq_submit(). */
	if (refused)
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN);
	return hold;
}
