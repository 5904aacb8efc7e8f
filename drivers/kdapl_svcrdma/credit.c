// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits. Every reply tells the client how many calls it may have outstanding, its window. For
 * all of them, and for replies to callbacks, buffers of the SRQ are reserved before the window
 * is told, so that whatever a client may send finds a buffer, whoever else sends what.
 *
 * A client begins with one credit, until the first reply. Its window is doubled when it uses all
 * of it, as long as it asks for more; and halved when it has used a quarter or less for
 * KS_CALM seconds, or when the Endpoint's soft watermark says that more than the widest window was
 * sent. Since nothing tells when a client has read of a narrower window, the buffers stay reserved
 * for another KS_CALM seconds.
 *
 * A client that has more messages unanswered than are reserved for it ignores its credits, and is
 * disconnected. The Endpoint's hard watermark does that, too, if they are not even received.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "svcrdma.h"

/*
 * Set the watermarks for @reserved buffers. An honest client may send all of its window at once,
 * so the soft mark is above that.
 */
DAT_RETURN ks_credit_marks(struct ks_conn *c, unsigned int reserved)
{
	return dat_ep_set_watermark(c->ep, reserved - KS_CALLBACKS, reserved);
}

/* Reserve buffers for a new connection. Return false if there are none. Context: process. */
bool ks_credit_begin(struct ks_conn *c)
{
	DAT_COUNT n = KS_WINDOW + KS_CALLBACKS, least = 1 + KS_CALLBACKS;

	n = kdat_pool_reserve(c->a->k.pool, n, least);
	if (n < least) {
		pr_warn_ratelimited("%s: %s is refused: all receive buffers are promised to other clients\n",
				    c->a->k.name, c->peer);
		if (n)
			kdat_pool_release(c->a->k.pool, n);
		return false;
	}
	c->reserved = n;
	c->window = n - KS_CALLBACKS;
	return true;
}

/* Give back what is reserved. Context: process. */
void ks_credit_end(struct ks_conn *c)
{
	if (c->reserved)
		kdat_pool_release(c->a->k.pool, c->reserved);
	c->reserved = 0;
}

/* Return how wide the window may become. */
static unsigned int ks_credit_most(const struct ks_conn *c)
{
	return clamp_t(unsigned int, c->asked, 1, KS_WINDOW_MAX);
}

/* A message has come. c->lock is held. */
void ks_credit_received(struct ks_conn *c)
{
	lockdep_assert_held(&c->lock);
	c->peak = max(c->peak, c->held);
	if (c->held >= c->window && c->window < ks_credit_most(c) && !c->stopped)
		queue_work(ks_wq, &c->credit_work);
}

/* The client asks for @credits. */
void ks_credit_asked(struct ks_conn *c, u32 credits)
{
	WRITE_ONCE(c->asked, min_t(u32, credits, KS_WINDOW_MAX));
}

/* Return what a reply grants. */
u32 ks_credit_grant(struct ks_conn *c)
{
	return min(READ_ONCE(c->window), ks_credit_most(c));
}

/* Make the window wider: reserve first, tell then. Context: process. */
void ks_credit_work(struct work_struct *work)
{
	struct ks_conn *c = container_of(work, struct ks_conn, credit_work);
	unsigned int window, reserved, most = ks_credit_most(c);
	DAT_COUNT more = 0;

	spin_lock_bh(&c->lock);
	window = min(2 * c->window, most);
	reserved = c->reserved;
	spin_unlock_bh(&c->lock);
	if (window + KS_CALLBACKS > reserved)
		more = kdat_pool_reserve(c->a->k.pool, window + KS_CALLBACKS - reserved, 1);
	spin_lock_bh(&c->lock);
	c->reserved += more;
	reserved = c->reserved;
	/* It may have been narrowed meanwhile, or there may be fewer buffers. */
	if (c->window < window)
		WRITE_ONCE(c->window, min(window, reserved - KS_CALLBACKS));
	c->calm = 0;
	spin_unlock_bh(&c->lock);
	ks_credit_marks(c, reserved);
}

/* More than its window piles up. Context: process. */
void ks_credit_soft(struct ks_conn *c)
{
	ks_count(c->a, KS_STAT_SOFT);
	spin_lock_bh(&c->lock);
	WRITE_ONCE(c->window, max(c->window / 2, 1U));
	c->calm = 0;
	spin_unlock_bh(&c->lock);
}

/* Look once a second whether @c needs its window. Context: process. */
void ks_credit_tick(struct ks_conn *c)
{
	unsigned int back = 0, reserved;

	spin_lock_bh(&c->lock);
	if (c->peak > c->window / 4)
		c->calm = 0;
	else
		c->calm++;
	c->peak = c->held;
	if (c->calm >= KS_CALM) {
		/* What was told KS_CALM seconds ago is known to the client now. */
		back = c->reserved - min(c->reserved, c->window + KS_CALLBACKS);
		c->reserved -= back;
		WRITE_ONCE(c->window, max(c->window / 2, 1U));
		c->calm = 0;
	}
	reserved = c->reserved;
	spin_unlock_bh(&c->lock);
	if (!back)
		return;
	kdat_pool_release(c->a->k.pool, back);
	ks_credit_marks(c, reserved);
}
