// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Callbacks: RPCs that this server calls at a client, over the client's connection (RFC 8167).
 * For them sunrpc has a transport of a client on top of a connection. A callback is copied to a
 * message, and never has chunks; the answer arrives as a call does, and ks_bc_answer() hands it
 * over. There are at most KS_CALLBACKS at once, for which the client has its buffers, and this
 * side has reserved as many for the answers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xprt.h>
#include "svcrdma.h"

#define KS_BC_IDENT	(KS_IDENT | XPRT_TRANSPORT_BC)

/* ---- Answers -------------------------------------------------------------------------- */

/* Copy the answer @rpc to @req. Return false if it is longer than any answer to it. */
static bool ks_bc_copy(struct rpc_rqst *req, const void *rpc, unsigned int length)
{
	struct kvec *to = &req->rq_rcv_buf.head[0];

	if (length > to->iov_len)
		return false;
	memcpy(&req->rq_private_buf, &req->rq_rcv_buf, sizeof(req->rq_private_buf));
	memcpy(to->iov_base, rpc, length);
	return true;
}

/*
 * Complete the callback that @call, a message with a header that was found right, answers. Return
 * false if there is none, or it does not fit. Context: process.
 */
bool ks_bc_answer(struct ks_call *call)
{
	struct rpc_xprt *xprt = READ_ONCE(call->c->xprt.xpt_bc_xprt);
	const __be32 *rpc = call->buf->va + call->h.length;
	unsigned int length = call->buf->length - call->h.length;
	struct rpc_rqst *req;
	bool ok = false;

	if (!xprt || call->h.nread || call->h.nwrites || call->h.has_reply ||
	    rpc[0] != call->h.xid)
		return false;
	spin_lock(&xprt->transport_lock);
	xprt->cwnd = clamp_t(u32, call->h.credits, 1, KS_CALLBACKS) << RPC_CWNDSHIFT;
	spin_unlock(&xprt->transport_lock);
	spin_lock(&xprt->queue_lock);
	req = xprt_lookup_rqst(xprt, rpc[0]);
	if (req && ks_bc_copy(req, rpc, length)) {
		xprt_complete_rqst(req->rq_task, length);
		ok = true;
	}
	spin_unlock(&xprt->queue_lock);
	return ok;
}

/* ---- The transport -------------------------------------------------------------------- */

static int ks_bc_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	rqst->rq_buffer = kmalloc(rqst->rq_callsize, GFP_NOIO | __GFP_NOWARN);
	rqst->rq_rbuffer = kmalloc(rqst->rq_rcvsize, GFP_NOIO | __GFP_NOWARN);
	if (rqst->rq_buffer && rqst->rq_rbuffer)
		return 0;
	kfree(rqst->rq_buffer);
	kfree(rqst->rq_rbuffer);
	rqst->rq_buffer = NULL;
	rqst->rq_rbuffer = NULL;
	return -ENOMEM;
}

static void ks_bc_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	kfree(rqst->rq_buffer);
	kfree(rqst->rq_rbuffer);
}

/* Get a message. Memory must not be had by writing back to this very client. */
static struct ks_tx *ks_bc_tx(struct ks_adapter *a)
{
	unsigned int flags = memalloc_noio_save();
	struct ks_tx *tx = ks_tx_get(a);

	memalloc_noio_restore(flags);
	return tx;
}

/* Call. There is no wait for room: ks_submit(). */
static int ks_bc_send(struct rpc_rqst *rqst)
{
	struct ks_conn *c = ks_conn(rqst->rq_xprt->bc_xprt);
	const struct xdr_buf *snd = &rqst->rq_snd_buf;
	struct ks_tx *tx;
	__be32 *p;

	if (test_bit(XPT_DEAD, &c->xprt.xpt_flags))
		return -ENOTCONN;
	/* sunrpc would come again at once until a thread has closed the connection. */
	if (test_bit(XPT_CLOSE, &c->xprt.xpt_flags))
		return -ENOBUFS;
	if (snd->len > c->inline_out - RPCRDMA_HDRLEN_MIN)
		return -EIO;
	tx = ks_bc_tx(c->a);
	if (!tx)
		return -ENOBUFS;
	p = tx->va;
	*p++ = rqst->rq_xid;
	*p++ = rpcrdma_version;
	*p++ = cpu_to_be32(KS_CALLBACKS);
	*p++ = rdma_msg;
	*p++ = xdr_zero;
	*p++ = xdr_zero;
	*p++ = xdr_zero;
	if (read_bytes_from_xdr_buf(snd, 0, p, snd->len)) {
		ks_tx_put(c->a, tx);
		return -EIO;
	}
	tx->seg.segment_length = RPCRDMA_HDRLEN_MIN + snd->len;
	tx->post.done = ks_sent;
	rqst->rq_xtime = ktime_get();
	ks_submit(c, &tx->post);
	return 0;
}

/* The connection has ended. */
static void ks_bc_close(struct rpc_xprt *xprt)
{
	xprt_disconnect_done(xprt);
}

static void ks_bc_free_strings(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
}

static void ks_bc_destroy(struct rpc_xprt *xprt)
{
	ks_bc_free_strings(xprt);
	xprt_free(xprt);
	module_put(THIS_MODULE);
}

static void ks_bc_stats(struct rpc_xprt *xprt, struct seq_file *m)
{
	seq_printf(m, "\txprt:\tkdapl-bc %lu %lu %lu\n", xprt->stat.sends, xprt->stat.recvs,
		   xprt->stat.bad_xids);
}

static const struct rpc_xprt_ops ks_bc_ops = {
	.reserve_xprt = xprt_reserve_xprt_cong,
	.release_xprt = xprt_release_xprt_cong,
	.alloc_slot = xprt_alloc_slot,
	.free_slot = xprt_free_slot,
	.release_request = xprt_release_rqst_cong,
	.buf_alloc = ks_bc_alloc,
	.buf_free = ks_bc_free,
	.send_request = ks_bc_send,
	.wait_for_reply_request = xprt_wait_for_reply_request_def,
	.close = ks_bc_close,
	.destroy = ks_bc_destroy,
	.print_stats = ks_bc_stats,
};

static const struct rpc_timeout ks_bc_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

static bool ks_bc_strings(struct rpc_xprt *xprt)
{
	const struct sockaddr *addr = (const struct sockaddr *)&xprt->addr;

	xprt->address_strings[RPC_DISPLAY_ADDR] = kasprintf(GFP_KERNEL, "%pIS", addr);
	xprt->address_strings[RPC_DISPLAY_PORT] = kasprintf(GFP_KERNEL, "%u",
							    rpc_get_port(addr));
	xprt->address_strings[RPC_DISPLAY_PROTO] = "rdma";
	xprt->address_strings[RPC_DISPLAY_NETID] =
		addr->sa_family == AF_INET6 ? RPCBIND_NETID_RDMA6 : RPCBIND_NETID_RDMA;
	if (xprt->address_strings[RPC_DISPLAY_ADDR] && xprt->address_strings[RPC_DISPLAY_PORT])
		return true;
	ks_bc_free_strings(xprt);
	return false;
}

/* Make the transport for callbacks of a connection. nfsd has a reference to that. */
static struct rpc_xprt *ks_bc_setup(struct xprt_create *args)
{
	struct rpc_xprt *xprt;

	if (args->addrlen > sizeof(xprt->addr))
		return ERR_PTR(-EBADF);
	xprt = xprt_alloc(args->net, sizeof(*xprt), KS_CALLBACKS, KS_CALLBACKS);
	if (!xprt)
		return ERR_PTR(-ENOMEM);
	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	if (!ks_bc_strings(xprt)) {
		xprt_free(xprt);
		return ERR_PTR(-ENOMEM);
	}
	/* It may be freed after the connection: ks_bc_destroy(). */
	__module_get(THIS_MODULE);
	xprt->timeout = &ks_bc_timeout;
	xprt_set_bound(xprt);
	xprt_set_connected(xprt);
	xprt->prot = KS_BC_IDENT;
	xprt->ops = &ks_bc_ops;
	xprt->max_payload = KS_INLINE;
	/* sunrpc drops this reference with the connection. */
	xprt_get(xprt);
	xprt->bc_xprt = args->bc_xprt;
	/* Pairs with the address dependency in ks_bc_answer(). litmus: iser-name */
	smp_store_release(&args->bc_xprt->xpt_bc_xprt, xprt);
	return xprt;
}

static struct xprt_class ks_bc_class = {
	.list = LIST_HEAD_INIT(ks_bc_class.list),
	.name = "kdapl backchannel",
	.owner = THIS_MODULE,
	.ident = KS_BC_IDENT,
	.setup = ks_bc_setup,
	/* The list ends with an empty name. */
	.netid = { "" },
};

int ks_bc_start(void)
{
	return xprt_register_transport(&ks_bc_class);
}

void ks_bc_stop(void)
{
	xprt_unregister_transport(&ks_bc_class);
}
