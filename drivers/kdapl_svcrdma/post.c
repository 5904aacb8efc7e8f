// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posting. Nothing waits for room in the queue of requests: what finds none is put into
 * c->waiting, and completions go on with it. While anything waits, sunrpc takes no message of
 * the connection: ks_has_wspace().
 *
 * What is posted in several steps has a completion for each step, so that there is room for the
 * next. c->lock is held, so the steps and the counts are of one mind.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "svcrdma.h"

/* Convert the @ret of a post to an errno; -EAGAIN if there is no room. */
static int ks_post_errno(struct ks_conn *c, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return 0;
	if (ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY))
		return -EAGAIN;
	/* A message may arrive before the connection is established. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
		return c->open || c->down ? -ENOTCONN : -EAGAIN;
	return -EIO;
}

/* Over iWARP, Reads are posted one by one. */
static bool ks_reads_alone(struct ks_conn *c, const struct ks_post *p)
{
	return c->a->k.iwarp && p->io->operation == DAT_DTO_RDMA_READ;
}

/* Post @n requests, the last of which has a completion. */
static int ks_post_requests(struct ks_conn *c, struct ks_post *p, KDAT_REQUEST *r, int n)
{
	DAT_RETURN ret;

	if (p->io && ks_reads_alone(c, p))
		ret = dat_ep_post_rdma_read(c->ep, r->num_segments, r->local_iov,
					    r->user_cookie, r->remote_iov, r->completion_flags);
	else
		ret = kdat_ep_post_requests(c->ep, n, r);
	if (ret == DAT_SUCCESS)
		c->posted++;
	return ks_post_errno(c, ret);
}

/*
 * Post the next step of the RDMA of @p, with the message behind it if that is the last one. Return
 * 1 if there is more; otherwise @p may be over.
 */
static int ks_push_io(struct ks_conn *c, struct ks_post *p)
{
	int most = ks_reads_alone(c, p) ? 1 : KDAT_MAX_REQUESTS - 1;
	struct ks_io *io = p->io;
	struct ks_io_at at = io->at;
	int n, used = 0, err;
	bool more;

	for (n = 0; n < most && ks_io_left(io) && used < KDAT_MAX_SEGMENTS - 1; n++)
		used = ks_io_take(io, c->a, n, used);
	more = ks_io_left(io);
	if (!more && p->tx)
		ks_tx_request(p->tx, &io->r[n++]);
	io->r[n - 1].completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	io->r[n - 1].user_cookie.as_ptr = more ? &c->part : p;
	err = ks_post_requests(c, p, io->r, n);
	if (err)
		io->at = at;
	return err ?: more;
}

/* Post what is left of @p. Return 0, when it may be over; -EAGAIN if there is no room. */
static int ks_push(struct ks_conn *c, struct ks_post *p)
{
	KDAT_REQUEST r __uninitialized;
	bool answers = p->answers;
	int err;

	lockdep_assert_held(&c->lock);

	if (answers) {
		((__be32 *)p->tx->va)[2] = cpu_to_be32(ks_credit_grant(c));
		/* When it is posted it may be over before the lock is released. */
		p->tells = c->cut == KS_CUT_UNTOLD ? c->cuts : 0;
	}
	if (!p->io) {
		ks_tx_request(p->tx, &r);
		err = ks_post_requests(c, p, &r, 1);
	} else {
		do
			err = ks_push_io(c, p);
		while (err > 0);
	}
	if (!err && answers) {
		ks_credit_posted(c);
		c->held--;
	}
	return err;
}

/* Keep what cannot be posted until the connection is freed: a part of it may be posted. */
static void ks_push_failed(struct ks_conn *c, struct ks_post *p, int err)
{
	if (err != -ENOTCONN)
		ks_conn_blame(c, ks_operation_name(p->io ? p->io->operation : DAT_DTO_SEND),
			      "the request was refused");
	list_add_tail(&p->link, &c->failed);
	c->stopped = true;
	svc_xprt_deferred_close(&c->xprt);
}

/* Post @p, behind what waits for room. Context: any but hard interrupts. */
void ks_submit(struct ks_conn *c, struct ks_post *p)
{
	int err;

	spin_lock_bh(&c->lock);
	if (c->stopped)
		err = -ENOTCONN;
	else
		err = list_empty(&c->waiting) ? ks_push(c, p) : -EAGAIN;
	if (err == -EAGAIN)
		list_add_tail(&p->link, &c->waiting);
	else if (err)
		ks_push_failed(c, p, err);
	spin_unlock_bh(&c->lock);
}

/* Post what waits, in its order, until there is no room. */
static void ks_push_waiting(struct ks_conn *c)
{
	struct ks_post *p;
	int err = 0;

	lockdep_assert_held(&c->lock);

	if (list_empty(&c->waiting))
		return;
	while (!c->stopped && !err) {
		p = list_first_entry_or_null(&c->waiting, struct ks_post, link);
		if (!p)
			break;
		/* When it is posted it may be over. */
		list_del(&p->link);
		err = ks_push(c, p);
		if (err == -EAGAIN)
			list_add(&p->link, &c->waiting);
		else if (err)
			ks_push_failed(c, p, err);
	}
	/* Messages that were not taken for want of room: ks_has_wspace(). */
	if (list_empty(&c->waiting))
		ks_conn_look(c);
}

/* Try again what waits. Context: any but hard interrupts. */
void ks_retry(struct ks_conn *c)
{
	spin_lock_bh(&c->lock);
	ks_push_waiting(c);
	spin_unlock_bh(&c->lock);
}

/* A request with a completion is over: the last one of @p, or &c->part. Context: softirq. */
void ks_completed(struct ks_conn *c, struct ks_post *p, bool ok)
{
	unsigned int tells = ok ? p->tells : 0;

	if (p != &c->part)
		p->done(c, p, ok);
	spin_lock_bh(&c->lock);
	if (tells)
		ks_credit_told(c, tells);
	c->completed++;
	if (!--c->posted)
		wake_up_all(&c->wq);
	ks_push_waiting(c);
	spin_unlock_bh(&c->lock);
}
