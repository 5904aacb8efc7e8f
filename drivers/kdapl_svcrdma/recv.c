// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages of clients. The upcall, in softirq, queues them at their connection; a thread of nfsd
 * takes one in xpo_recvfrom(). A call keeps its receive buffer until it is answered: that buffer
 * is one of those that the client's credits stand for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"
#include "trace.h"

/* ---- Upcalls -------------------------------------------------------------------------- */

/* Queue a message. */
static void ks_received(struct ks_conn *c, KDAT_POOL_BUF *buf, unsigned int length)
{
	bool many, ended;

	buf->length = length;
	ks_count(c->a, KS_STAT_CALLS);
	spin_lock_bh(&c->lock);
	/* The buffers of the others must not fill with what nobody is going to read. */
	many = c->held >= c->reserved;
	ended = many || c->stopped || READ_ONCE(c->broken);
	if (!ended) {
		c->held++;
		list_add_tail(&buf->link, &c->received);
		ks_credit_received(c);
		set_bit(XPT_DATA, &c->xprt.xpt_flags);
	}
	spin_unlock_bh(&c->lock);
	if (ended)
		kdat_pool_put(c->a->k.pool, buf);
	if (many)
		ks_conn_break(c, "it sends more than its credits allow");
	else if (!ended)
		svc_xprt_enqueue(&c->xprt);
}

static void ks_receive(struct ks_adapter *a, struct ks_conn *c,
		       const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	KDAT_POOL_BUF *buf = dto->user_cookie.as_ptr;

	if (c && dto->status == DAT_DTO_SUCCESS) {
		ks_received(c, buf, dto->transfered_length);
		return;
	}
	if (c && dto->status == DAT_DTO_ERR_LOCAL_LENGTH)
		ks_conn_break(c, "a message is longer than this server takes");
	kdat_pool_put(a->k.pool, buf);
}

/* A message or a request has completed. Context: softirq; ks_conn_stop() waits for it. */
void ks_comp_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	bool ok = dto->status == DAT_DTO_SUCCESS;
	struct ks_comp *comp = data;
	struct ks_conn *c = NULL;
	DAT_CONTEXT context;

	if (dat_get_consumer_context(dto->ep_handle, &context) == DAT_SUCCESS)
		c = context.as_ptr;
	if (dto->operation == DAT_DTO_RECEIVE ||
	    dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE) {
		ks_receive(comp->a, c, dto);
	} else if (c) {
		if (dto->status == DAT_DTO_ERR_REMOTE_ACCESS)
			ks_conn_fail(c, dto->operation,
				     "the memory that a call names is not there");
		else if (!ok && dto->status != DAT_DTO_ERR_FLUSHED)
			ks_conn_fail(c, dto->operation, kdat_dto_status_name(dto->status));
		/* A request that others follow completes only if it fails. */
		if (dto->user_cookie.as_ptr)
			ks_completed(c, dto->user_cookie.as_ptr, ok);
	}
}

/* ---- Threads of nfsd ------------------------------------------------------------------ */

/* Give the buffer of @call back. */
static void ks_call_put_buf(struct ks_call *call)
{
	KDAT_POOL_BUF *buf = call->buf;

	call->buf = NULL;
	if (buf)
		kdat_pool_put(call->c->a->k.pool, buf);
}

/*
 * Free a call, which was answered, or is not going to be. None of its requests is posted.
 * Context: any but hard interrupts.
 */
void ks_call_free(struct ks_call *call)
{
	struct ks_conn *c = call->c;
	bool room;

	ks_io_free(call->post.io);
	ks_call_put_buf(call);
	spin_lock_bh(&c->lock);
	if (!call->answered)
		c->held--;
	room = c->fetching >= KS_FETCH_PAGES;
	c->fetching -= call->npages;
	room = room && c->fetching < KS_FETCH_PAGES;
	spin_unlock_bh(&c->lock);
	kmem_cache_free(ks_calls, call);
	if (room)
		ks_conn_look(c);
}

/* xpo_release_ctxt() */
void ks_release_ctxt(struct svc_xprt *xprt, void *ctxt)
{
	if (ctxt)
		ks_call_free(ctxt);
}

/*
 * Take the next message, or the next call whose Read list is there. If it is the last one, sunrpc
 * is told so at once, or it would wake another thread to find that out.
 */
static KDAT_POOL_BUF *ks_next(struct ks_conn *c, struct ks_call **call)
{
	KDAT_POOL_BUF *buf = NULL;

	spin_lock_bh(&c->lock);
	*call = list_first_entry_or_null(&c->fetched, struct ks_call, link);
	if (*call) {
		list_del(&(*call)->link);
	} else if (c->fetching < KS_FETCH_PAGES) {
		buf = list_first_entry_or_null(&c->received, KDAT_POOL_BUF, link);
		if (buf)
			list_del(&buf->link);
	}
	if (list_empty(&c->fetched) && list_empty(&c->received))
		clear_bit(XPT_DATA, &c->xprt.xpt_flags);
	spin_unlock_bh(&c->lock);
	return buf;
}

/* Have nfsd execute @call, whose message is in rq_arg. */
static int ks_call_ready(struct ks_call *call, struct svc_rqst *rqstp)
{
	rqstp->rq_xprt_ctxt = call;
	rqstp->rq_prot = IPPROTO_MAX;
	svc_xprt_copy_addrs(rqstp, &call->c->xprt);
	set_bit(RQ_SECURE, &rqstp->rq_flags);
	trace_kdapl_svcrdma_call(call, rqstp->rq_arg.len);
	return rqstp->rq_arg.len;
}

/* Put the RPC message that came with the header into rq_arg. */
static void ks_call_inline(struct ks_call *call, struct svc_rqst *rqstp)
{
	struct xdr_buf *arg = &rqstp->rq_arg;

	arg->head[0].iov_base = call->buf->va + call->h.length;
	arg->head[0].iov_len = call->buf->length - call->h.length;
	arg->page_base = 0;
	arg->page_len = 0;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	arg->len = arg->head[0].iov_len;
	arg->buflen = arg->len;
}

/* Is it the answer to a call that this side has made? */
static bool ks_is_answer(const struct ks_call *call)
{
	const __be32 *rpc = call->buf->va + call->h.length;

	return call->h.proc == RDMA_MSG && rpc[1] != cpu_to_be32(RPC_CALL);
}

/* Count a message that nobody wants. Too many of them end the connection. */
static void ks_call_useless(struct ks_call *call)
{
	struct ks_conn *c = call->c;
	bool many;

	spin_lock_bh(&c->lock);
	many = ++c->useless > KS_USELESS;
	spin_unlock_bh(&c->lock);
	ks_call_free(call);
	if (many)
		ks_conn_break(c, "it sends messages that nobody has asked for");
}

/* Handle a header that is not to be executed. */
static void ks_call_refuse(struct ks_call *call, int err)
{
	switch (err) {
	case -EPROTONOSUPPORT:
		ks_send_error(call, ERR_VERS);
		break;
	case -EINVAL:
		ks_send_error(call, ERR_CHUNK);
		break;
	case -ENOMSG:
		ks_call_useless(call);
		return;
	case -EBADMSG:
		ks_conn_break(call->c, "a message is too short");
		break;
	default:
		break;
	}
	ks_call_free(call);
}

/* Begin to handle the message in @buf. Return as xpo_recvfrom() does. */
static int ks_call_begin(struct ks_conn *c, struct svc_rqst *rqstp, KDAT_POOL_BUF *buf)
{
	struct ks_call *call = kmem_cache_zalloc(ks_calls, GFP_KERNEL);
	int err;

	if (!call) {
		kdat_pool_put(c->a->k.pool, buf);
		ks_conn_break(c, "there is no memory for its call");
		return 0;
	}
	call->c = c;
	call->buf = buf;
	err = ks_decode(&call->h, buf->va, buf->length);
	if (!err && !call->h.nreads && ks_is_answer(call)) {
		if (ks_bc_answer(call)) {
			ks_call_free(call);
			return 0;
		}
		err = -ENOMSG;
	}
	/* An answer has the credits of the other direction. */
	if (err != -EBADMSG && err != -ENOMSG)
		ks_credit_asked(c, call->h.credits);
	if (!err && call->h.nreads) {
		err = ks_fetch(call, rqstp);
		if (!err)
			return 0;
	}
	if (err) {
		ks_call_refuse(call, err);
		return 0;
	}
	ks_call_inline(call, rqstp);
	return ks_call_ready(call, rqstp);
}

/* xpo_recvfrom(): take one message. */
int ks_recvfrom(struct svc_rqst *rqstp)
{
	struct svc_xprt *xprt = rqstp->rq_xprt;
	struct ks_conn *c = ks_conn(xprt);
	struct ks_call *call;
	KDAT_POOL_BUF *buf;

	ks_pages_none(rqstp);
	rqstp->rq_xprt_ctxt = NULL;
	buf = ks_next(c, &call);
	/* Another thread may take the next one. */
	svc_xprt_received(xprt);
	if (buf)
		return ks_call_begin(c, rqstp, buf);
	if (!call)
		return 0;
	if (ks_fetched(call, rqstp)) {
		ks_call_free(call);
		return 0;
	}
	return ks_call_ready(call, rqstp);
}
