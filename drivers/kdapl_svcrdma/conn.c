// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections. One is made when a thread accepts its request, and is a svc_xprt from then on, so
 * sunrpc's references keep it. Whatever ends it, has sunrpc close it: ks_detach() disconnects the
 * Endpoint, and when the last reference is dropped, c->free_work waits until everything that was
 * posted has completed or was flushed, which takes no client, and frees it. Upcalls hold no
 * references: the work waits for them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"

/*
 * Count and log, once, that this side ends a connection: @what, an operation that has failed, or
 * NULL, and why. Return false if that is done, or it has ended. litmus: one-winner
 * Context: any
 */
bool ks_conn_blame(struct ks_conn *c, const char *what, const char *why)
{
	if (READ_ONCE(c->down) || xchg(&c->broken, true))
		return false;
	ks_count(c->a, KS_STAT_BROKEN);
	pr_warn_ratelimited("%s: a client at %s is disconnected: %s%s%s\n", c->a->k.name,
			    c->peer, what ?: "", what ? ": " : "", why);
	return true;
}

/*
 * End a connection, once, because of what its client has done, or as there is no memory for it, or
 * as the operation @what has failed. c->lock is not held. Context: any
 */
static void ks_conn_end(struct ks_conn *c, const char *what, const char *why)
{
	if (!ks_conn_blame(c, what, why))
		return;
	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	svc_xprt_deferred_close(&c->xprt);
}

void ks_conn_break(struct ks_conn *c, const char *why)
{
	ks_conn_end(c, NULL, why);
}

/* End a connection as an operation has failed. As ks_conn_break(). */
void ks_conn_fail(struct ks_conn *c, DAT_DTOS operation, const char *why)
{
	ks_conn_end(c, ks_operation_name(operation), why);
}

const char *ks_operation_name(DAT_DTOS operation)
{
	switch (operation) {
	case DAT_DTO_RDMA_READ:
		return "RDMA Read";
	case DAT_DTO_RDMA_WRITE:
		return "RDMA Write";
	default:
		return "Send";
	}
}

/* xpo_has_wspace(): may a thread take a message of the connection? Context: any. */
int ks_has_wspace(struct svc_xprt *xprt)
{
	struct ks_conn *c = ks_conn(xprt);

	if (test_bit(XPT_LISTENER, &xprt->xpt_flags))
		return 1;
	/* Pairs with ks_conn_look(): sunrpc has just cleared XPT_BUSY. litmus: svcrdma-room */
	smp_mb();
	return list_empty_careful(&c->waiting) &&
	       (READ_ONCE(c->fetching) < KS_FETCH_PAGES || !list_empty_careful(&c->fetched));
}

/*
 * There is room again: have sunrpc look at the connection, unless a thread that has it BUSY will.
 * Context: any.
 */
void ks_conn_look(struct ks_conn *c)
{
	/* Pairs with ks_has_wspace(). litmus: svcrdma-room */
	smp_mb();
	svc_xprt_enqueue(&c->xprt);
}

/* ---- Events --------------------------------------------------------------------------- */

/* Upcall: an event of a connection. Context: process; ks_conn_stop() waits for it. */
void ks_conn_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	DAT_BOOLEAN fired = DAT_FALSE;
	DAT_CONTEXT context;
	struct ks_conn *c;

	if (dat_get_consumer_context(ep, &context) != DAT_SUCCESS)
		return;
	c = context.as_ptr;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		spin_lock_bh(&c->lock);
		c->open = true;
		spin_unlock_bh(&c->lock);
		ks_retry(c);
		return;
	}
	kdat_ep_query_hard_hw(ep, &fired);
	if (fired)
		ks_conn_blame(c, NULL, "it sends more than its credits allow");
	spin_lock_bh(&c->lock);
	WRITE_ONCE(c->down, true);
	spin_unlock_bh(&c->lock);
	svc_xprt_deferred_close(&c->xprt);
}

/* An asynchronous event. Context: process; ks_conn_stop() waits for it. */
DAT_BOOLEAN ks_async(KDAT_ADAPTER *adapter, const DAT_EVENT *event)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *async =
		&event->event_data.asynch_error_event_data;
	DAT_CONTEXT context;

	switch (event->event_number) {
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		if (dat_get_consumer_context(async->dat_handle, &context) == DAT_SUCCESS)
			ks_credit_soft(context.as_ptr);
		return DAT_TRUE;
	default:
		return DAT_FALSE;
	}
}

/* Look at @c once a second. Return why it is to end, or NULL. */
static const char *ks_conn_tick(struct ks_conn *c)
{
	bool stuck, idle;

	spin_lock_bh(&c->lock);
	if (c->posted && c->completed == c->last_completed)
		c->stuck++;
	else
		c->stuck = 0;
	c->last_completed = c->completed;
	stuck = c->stuck > KS_STUCK;
	idle = !c->posted;
	spin_unlock_bh(&c->lock);
	/* What waits, though nothing is posted, was refused for want of kDAPL's memory. */
	if (idle)
		ks_retry(c);
	ks_credit_tick(c);
	return stuck ? "it takes no replies" : NULL;
}

void ks_tick(struct work_struct *work)
{
	struct ks_adapter *a = container_of(to_delayed_work(work), struct ks_adapter, tick);
	const char *why;
	struct ks_conn *c;

	mutex_lock(&a->mutex);
	list_for_each_entry(c, &a->conns, link) {
		why = ks_conn_tick(c);
		if (why)
			ks_conn_break(c, why);
	}
	mutex_unlock(&a->mutex);
	ks_tx_trim(a);
	queue_delayed_work(ks_wq, &a->tick, HZ);
}

/* ---- The end -------------------------------------------------------------------------- */

/* xpo_detach(): nothing comes from this connection, or listener, any more. */
void ks_detach(struct svc_xprt *xprt)
{
	struct ks_conn *c = ks_conn(xprt);
	KDAT_POOL_BUF *buf, *next;
	LIST_HEAD(received);

	if (test_bit(XPT_LISTENER, &xprt->xpt_flags)) {
		ks_listener_detach(container_of(xprt, struct ks_listener, xprt));
		return;
	}
	if (!c->ep)
		return;
	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	/* A call may have a reference for long: leave no buffer with the connection but its own. */
	spin_lock_bh(&c->lock);
	c->stopped = true;
	list_splice_init(&c->received, &received);
	list_for_each_entry(buf, &received, link)
		c->held--;
	spin_unlock_bh(&c->lock);
	list_for_each_entry_safe(buf, next, &received, link)
		kdat_pool_put(c->a->k.pool, buf);
	ks_credit_stop(c);
}

/* Wait until nothing is posted, and until no upcall knows the connection. */
static void ks_conn_stop(struct ks_conn *c)
{
	struct ks_adapter *a = c->a;

	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_lock_bh(&c->lock);
	c->stopped = true;
	list_splice_init(&c->waiting, &c->failed);
	spin_unlock_bh(&c->lock);
	cancel_work_sync(&c->credit_work);
	wait_event(c->wq, !READ_ONCE(c->posted));
	dat_ep_free(c->ep);
	kdat_evd_wait_upcalls(c->comp->evd);
	kdat_evd_wait_upcalls(a->k.cm_evd);
	kdat_evd_wait_upcalls(a->k.async_evd);
}

static void ks_free_work(struct work_struct *work)
{
	struct ks_conn *c = container_of(work, struct ks_conn, free_work);
	struct ks_call *call, *next_call;
	KDAT_POOL_BUF *buf, *next_buf;
	struct ks_adapter *a = c->a;
	struct ks_post *p, *next;

	mutex_lock(&a->mutex);
	list_del(&c->link);
	mutex_unlock(&a->mutex);
	if (c->ep)
		ks_conn_stop(c);
	list_for_each_entry_safe(p, next, &c->failed, link)
		p->done(c, p, false);
	list_for_each_entry_safe(call, next_call, &c->fetched, link)
		ks_call_free(call);
	list_for_each_entry_safe(buf, next_buf, &c->received, link)
		kdat_pool_put(a->k.pool, buf);
	ks_credit_end(c);
	kfree(c);
	kdat_adapter_put(&a->k);
}

/* xpo_free(): the last reference is gone. Nobody waits here for what the device still does. */
void ks_free(struct svc_xprt *xprt)
{
	if (test_bit(XPT_LISTENER, &xprt->xpt_flags))
		kfree(container_of(xprt, struct ks_listener, xprt));
	else
		queue_work(ks_wq, &ks_conn(xprt)->free_work);
}

/* ---- The beginning -------------------------------------------------------------------- */

static DAT_RETURN ks_conn_ep(struct ks_conn *c)
{
	struct ks_adapter *a = c->a;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = KS_INLINE,
		.max_rdma_size = a->max_rdma,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = KS_REQUESTS,
		.max_request_iov = 1,
		.max_rdma_read_iov = a->max_read_iov,
		.max_rdma_write_iov = a->max_iov,
		.max_rdma_read_out = a->max_reads,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_CONTEXT context = { .as_ptr = c };
	DAT_RETURN ret;

	ret = dat_ep_create_with_srq(a->k.ia, a->k.pz, c->comp->evd, c->comp->evd, a->k.cm_evd,
				     a->k.srq, &attr, &c->ep);
	if (ret != DAT_SUCCESS)
		return ret;
	dat_set_consumer_context(c->ep, context);
	return ks_credit_marks(c);
}

/* Take over what the private message of the client says: RFC 8797. */
static void ks_conn_negotiate(struct ks_conn *c, const struct rpcrdma_connect_private *cm)
{
	/* A client that says nothing takes as much as clients of Linux do that say nothing. */
	c->inline_out = KS_INLINE;
	if (cm->cp_magic != rpcrdma_cmp_magic || cm->cp_version != RPCRDMA_CMP_VERSION)
		return;
	c->inline_out = min_t(unsigned int, rpcrdma_decode_buffer_size(cm->cp_recv_size),
			      KS_INLINE);
	c->invalidate = c->a->invalidate && cm->cp_flags & RPCRDMA_CMP_F_SND_W_INV_OK;
}

static void ks_conn_init(struct ks_conn *c, struct ks_listener *l, const struct ks_request *r)
{
	struct svc_xprt *xprt = &c->xprt;

	svc_xprt_init(l->xprt.xpt_net, l->xprt.xpt_class, xprt, l->xprt.xpt_server);
	set_bit(XPT_CONG_CTRL, &xprt->xpt_flags);
	svc_xprt_set_remote(xprt, (const struct sockaddr *)&r->remote,
			    svc_addr_len((const struct sockaddr *)&r->remote));
	svc_xprt_set_local(xprt, (const struct sockaddr *)&l->xprt.xpt_local,
			   l->xprt.xpt_locallen);
	/* The cache of replies is to know the client again when it has connected anew. */
	rpc_set_port((struct sockaddr *)&xprt->xpt_remote, 0);
	INIT_WORK(&c->free_work, ks_free_work);
	INIT_WORK(&c->credit_work, ks_credit_work);
	mutex_init(&c->marks_mutex);
	init_waitqueue_head(&c->wq);
	spin_lock_init(&c->lock);
	INIT_LIST_HEAD(&c->received);
	INIT_LIST_HEAD(&c->fetched);
	INIT_LIST_HEAD(&c->waiting);
	INIT_LIST_HEAD(&c->failed);
	strscpy(c->peer, r->peer, sizeof(c->peer));
	c->a = r->a;
	kdat_adapter_get(&c->a->k);
	/* litmus: none, both are counts. */
	c->comp = &c->a->comps[(unsigned int)atomic_inc_return(&c->a->next_comp) % c->a->ncomps];
	mutex_lock(&c->a->mutex);
	list_add_tail(&c->link, &c->a->conns);
	mutex_unlock(&c->a->mutex);
}

/*
 * Make a connection for the request @r at @l. Return NULL if there is no room for one. Context:
 * process.
 */
struct ks_conn *ks_conn_new(struct ks_listener *l, const struct ks_request *r)
{
	struct ks_conn *c = kzalloc(sizeof(*c), GFP_KERNEL);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!c) {
		pr_warn_ratelimited("%s: %s is refused: there is no memory\n", r->a->k.name,
				    r->peer);
		return NULL;
	}
	ks_conn_init(c, l, r);
	ks_conn_negotiate(c, &r->cm);
	if (ks_credit_begin(c)) {
		ret = ks_conn_ep(c);
		if (ret == DAT_SUCCESS)
			return c;
		pr_warn_ratelimited("%s: no resources for %s: %s\n", c->a->k.name, c->peer,
				    ks_strerror(ret));
	}
	/* sunrpc puts a reference to the module with the last one to the connection. */
	__module_get(THIS_MODULE);
	svc_xprt_put(&c->xprt);
	return NULL;
}
