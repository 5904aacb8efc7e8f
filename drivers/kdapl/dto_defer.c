// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Deferred requests: over iWARP the passive side must not send before the active side.
 *
 * The active side takes its QP to RTS when it has read the MPA reply. Messages that the
 * passive side sends right behind the reply may overtake it and end the connection, so
 * RFC 5044 forbids the passive side to send before it has received a message. Consumers
 * need not know: requests of the passive side are deferred here until the first receive of
 * the connection, which proves that the peer is in RTS. Where the passive side speaks
 * first, KDAPL_DEFER_MS ends the wait.
 *
 * dat_cr_accept() calls kdapl_defer_begin(). From then on ep->sq.qp is NULL and
 * kdapl_defer_add() copies posted requests. The first receive calls kdapl_defer_open();
 * deferred requests are left to conn->timer, which calls kdapl_defer_release().
 *
 * The lock of the send ring protects ep->deferred. The lock of the receive EVD protects
 * ep->deferring, which makes the first receive call kdapl_ep_check_marks().
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"

/*
 * struct kdapl_deferred_wr - a copy of a work request
 * @any: the request
 * @sge: its segments
 */
struct kdapl_deferred_wr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_reg_wr reg;
	} any;
	struct ib_sge sge[];
};

/*
 * struct kdapl_deferred - the deferred requests of an Endpoint, a ring
 * @rcu: frees the structure
 * @stride: bytes of an entry
 * @max: number of entries
 * @n: next free position
 * @next: oldest position that was not posted
 * @mem: struct kdapl_deferred_wr
 */
struct kdapl_deferred {
	struct rcu_head rcu;
	size_t stride;
	u32 max;
	u32 n;
	u32 next;
	u64 mem[];
};

static struct kdapl_deferred_wr *kdapl_deferred_wr(struct kdapl_deferred *deferred,
						   u32 pos)
{
	return (void *)deferred->mem + pos % deferred->max * deferred->stride;
}

/* Set ep->deferring, and ep->mark so that the first receive is noticed. */
static void kdapl_defer_watch(struct kdapl_ep *ep, bool deferring)
{
	struct kdapl_evd *evd = ep->recv_evd;
	unsigned long flags;

	/* Connecting and connected Endpoints keep their EVDs. */
	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	ep->deferring = deferring;
	kdapl_ep_set_marks(ep);
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_defer_begin - defer the requests of an Endpoint that accepts
 * @ep: has its queue pair, which is not started yet
 * @sge: segments that a request may have
 *
 * Context: Process context.
 * Return: 0 or an errno
 */
int kdapl_defer_begin(struct kdapl_ep *ep, u32 sge)
{
	size_t stride = ALIGN(sizeof(struct kdapl_deferred_wr) +
			      sge * sizeof(struct ib_sge),
			      sizeof(u64));
	struct kdapl_deferred *deferred;
	unsigned long flags;

	deferred = kvzalloc(size_add(sizeof(*deferred),
				     size_mul(stride, ep->sq.depth)), GFP_KERNEL);
	if (!deferred)
		return -ENOMEM;
	deferred->stride = stride;
	deferred->max = ep->sq.depth;
	spin_lock_irqsave(&ep->sq.lock, flags);
	ep->deferred = deferred;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	kdapl_defer_watch(ep, true);
	return 0;
}

/* The connection is over: drop the copies, the ring flushes the requests. */
void kdapl_defer_end(struct kdapl_ep *ep)
{
	struct kdapl_deferred *deferred;
	unsigned long flags;

	spin_lock_irqsave(&ep->sq.lock, flags);
	deferred = ep->deferred;
	ep->deferred = NULL;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	kvfree(deferred);
	if (READ_ONCE(ep->deferring))
		kdapl_defer_watch(ep, false);
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
 * Defer @wr and the work requests behind it. kdapl_sq_room() has checked that there is
 * room.
 */
void kdapl_defer_add(struct kdapl_ep *ep, const struct ib_send_wr *wr)
{
	struct kdapl_deferred *deferred = ep->deferred;
	struct kdapl_deferred_wr *entry;

	lockdep_assert_held(&ep->sq.lock);

	for (; wr; wr = wr->next) {
		if (WARN_ON_ONCE(deferred->n - deferred->next == deferred->max))
			return;
		entry = kdapl_deferred_wr(deferred, deferred->n++);
		memcpy(&entry->any, wr, kdapl_wr_size(wr));
		memcpy(entry->sge, wr->sg_list, wr->num_sge * sizeof(*entry->sge));
		entry->any.wr.sg_list = entry->sge;
		entry->any.wr.next = NULL;
	}
}

/*
 * All deferred requests were posted: let requests go to the device from now on.
 * ep->deferred is followed under the lock only; RCU frees it because kvfree() may sleep.
 * litmus: none
 */
static void kdapl_defer_done(struct kdapl_ep *ep)
{
	lockdep_assert_held(&ep->sq.lock);

	kvfree_rcu(ep->deferred, rcu);
	ep->deferred = NULL;
	ep->sq.qp = ep->qp;
}

/* The first receive has come: post the deferred requests. Context: any. */
void kdapl_defer_open(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool more = false;

	spin_lock_irqsave(&ep->sq.lock, flags);
	if (ep->deferred && ep->deferred->n == ep->deferred->next)
		kdapl_defer_done(ep);
	else
		more = ep->deferred;
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	if (more)
		kdapl_ep_start_timer(ep, 0);
}

/* Post the next deferred request or chain. Return false if the device refuses it. */
static bool kdapl_defer_post(struct kdapl_ep *ep)
{
	struct kdapl_deferred *deferred = ep->deferred;
	struct ib_send_wr *wr;

	wr = &kdapl_deferred_wr(deferred, deferred->next++)->any.wr;
	if (wr->wr_id & KDAPL_WR_FIRST)
		wr->next = &kdapl_deferred_wr(deferred, deferred->next++)->any.wr;
	if (ib_post_send(ep->qp, wr, NULL))
		return false;
	ep->sq.posted++;
	return true;
}

/*
 * Post a section of the deferred requests. Return whether there are more.
 * Context: conn->timer, which is cancelled before the QP is destroyed.
 */
bool kdapl_defer_release(struct kdapl_ep *ep)
{
	struct kdapl_deferred *deferred;
	unsigned long flags;
	bool refused = false;
	unsigned int i;

	spin_lock_irqsave(&ep->sq.lock, flags);
	deferred = ep->deferred;
	if (deferred) {
		for (i = 0; i < KDAPL_SECTION && deferred->next != deferred->n &&
		     !refused; i++)
			refused = !kdapl_defer_post(ep);
		if (deferred->next == deferred->n || refused) {
			kdapl_defer_done(ep);
			deferred = NULL;
		}
	}
	spin_unlock_irqrestore(&ep->sq.lock, flags);
	/* The connection must be ending, as in kdapl_sq_submit(). */
	if (refused)
		kdapl_ep_down(ep, DAT_CONNECTION_EVENT_BROKEN, KDAPL_END_DRIVER);
	return deferred;
}
