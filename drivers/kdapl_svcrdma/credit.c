// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Credits. Every reply tells the client how many calls it may have outstanding, its window. For
 * all of them, and for replies to callbacks, buffers of the SRQ are reserved before the window
 * is told, so that whatever a client may send finds a buffer, whoever else sends what.
 *
 * A client begins with one credit, until the first reply. Its window is doubled when it uses all
 * of it, as long as it asks for more; and halved when it has used a quarter or less for
 * KS_CALM seconds, or when the Endpoint's soft watermark says that more than the widest window was
 * sent. The client learns that from the next reply, which may be hours later. The buffers stay
 * reserved until KS_CALM seconds behind the end of that reply's Send: c->cut. Credits are written
 * into replies when they are posted, so that they arrive in the order in which they were granted.
 *
 * A client that has more messages unanswered than are reserved for it ignores its credits, and is
 * disconnected. The Endpoint's hard watermark does that, too, if they are not even received.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "svcrdma.h"

/*
 * Set the watermarks for what is reserved. An honest client may send all of its window at once, so
 * the soft mark is above that. Context: process.
 */
DAT_RETURN ks_credit_marks(struct ks_conn *c)
{
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int reserved;

	mutex_lock(&c->marks_mutex);
	spin_lock_bh(&c->lock);
	/* When it has ended there may be less than for callbacks. */
	reserved = c->stopped ? 0 : c->reserved;
	spin_unlock_bh(&c->lock);
	if (reserved)
		ret = dat_ep_set_watermark(c->ep, reserved - KS_CALLBACKS, reserved);
	mutex_unlock(&c->marks_mutex);
	return ret;
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

/*
 * Give back what is reserved and has no message in it: c->stopped, no more come. Context: process.
 */
void ks_credit_stop(struct ks_conn *c)
{
	unsigned int back;

	spin_lock_bh(&c->lock);
	back = c->reserved - min(c->reserved, c->held);
	c->reserved -= back;
	spin_unlock_bh(&c->lock);
	if (back)
		kdat_pool_release(c->a->k.pool, back);
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

/* Return what the reply grants that is posted next. */
u32 ks_credit_grant(struct ks_conn *c)
{
	lockdep_assert_held(&c->lock);
	return min(c->window, ks_credit_most(c));
}

/* A reply was posted, after ks_credit_grant(). */
void ks_credit_posted(struct ks_conn *c)
{
	lockdep_assert_held(&c->lock);
	if (c->cut == KS_CUT_UNTOLD)
		c->cut = KS_CUT_POSTED;
}

/* The first reply since cut @cut has arrived, and so have all before it. */
void ks_credit_told(struct ks_conn *c, unsigned int cut)
{
	lockdep_assert_held(&c->lock);
	if (c->cut != KS_CUT_POSTED || c->cuts != cut)
		return;
	c->cut = KS_CUT_TOLD;
	c->told = 0;
}

/* Make the window narrower. Nothing is given back before the client knows. */
static void ks_credit_cut(struct ks_conn *c)
{
	lockdep_assert_held(&c->lock);
	if (c->window > 1) {
		c->window /= 2;
		c->cut = KS_CUT_UNTOLD;
		c->cuts++;
	}
	c->calm = 0;
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
	if (c->stopped) {
		spin_unlock_bh(&c->lock);
		if (more)
			kdat_pool_release(c->a->k.pool, more);
		return;
	}
	c->reserved += more;
	/* It may have been narrowed meanwhile, or there may be fewer buffers. */
	window = min(window, c->reserved - KS_CALLBACKS);
	if (c->window < window) {
		c->window = window;
		c->cut = KS_CUT_NONE;
	}
	c->calm = 0;
	spin_unlock_bh(&c->lock);
	ks_credit_marks(c);
}

/* More than its window piles up. Context: process. */
void ks_credit_soft(struct ks_conn *c)
{
	ks_count(c->a, KS_STAT_SOFT);
	spin_lock_bh(&c->lock);
	ks_credit_cut(c);
	spin_unlock_bh(&c->lock);
}

/* Look once a second whether @c needs its window, and its buffers. Context: process. */
void ks_credit_tick(struct ks_conn *c)
{
	unsigned int back = 0;

	spin_lock_bh(&c->lock);
	if (c->peak > c->window / 4)
		c->calm = 0;
	else
		c->calm++;
	c->peak = c->held;
	if (c->useless)
		c->useless--;
	/* A client that is silent has not read of the last cut: there is no other before. */
	if (c->cut == KS_CUT_NONE && c->calm >= KS_CALM)
		ks_credit_cut(c);
	if (c->cut == KS_CUT_TOLD && ++c->told >= KS_CALM) {
		back = c->reserved - min(c->reserved, c->window + KS_CALLBACKS);
		c->reserved -= back;
		c->cut = KS_CUT_NONE;
	}
	spin_unlock_bh(&c->lock);
	if (!back)
		return;
	/* The marks first: what is given back may be reserved for another client at once. */
	ks_credit_marks(c);
	kdat_pool_release(c->a->k.pool, back);
}
