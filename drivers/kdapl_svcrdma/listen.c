// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Listeners: entries of nfsd's portlist. Each has a portal of kDAPL, which listens on adapters as
 * they come. A connection request waits in l->pending for a thread of nfsd, which accepts it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"

/* ---- Requests ------------------------------------------------------------------------- */

/* Reject a connection request. Context: process. */
static void ks_refuse(struct ks_adapter *a, DAT_CR_HANDLE cr)
{
	ks_count(a, KS_STAT_REFUSED);
	dat_cr_reject(cr, 0, NULL);
}

static void ks_request_free(struct ks_request *r)
{
	kdat_adapter_put(&r->a->k);
	kfree(r);
}

static struct ks_request *ks_request_new(struct ks_adapter *a, DAT_CR_HANDLE cr,
					 const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	const struct sockaddr *remote = param->remote_ia_address_ptr;
	struct ks_request *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return NULL;
	kdat_adapter_get(&a->k);
	r->a = a;
	r->cr = cr;
	memcpy(&r->remote, remote, svc_addr_len(remote));
	strscpy(r->peer, host->name, sizeof(r->peer));
	if (param->private_data_size >= (DAT_COUNT)sizeof(r->cm))
		memcpy(&r->cm, param->private_data, sizeof(r->cm));
	return r;
}

/* A connection request has come. Context: process. */
void ks_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	struct ks_adapter *a = container_of(adapter, struct ks_adapter, k);
	struct ks_request *r = ks_request_new(a, cr, param, host);
	struct ks_listener *l = context;
	bool kept = false, ready = false;

	ks_count(a, KS_STAT_REQUESTS);
	if (r) {
		spin_lock_bh(&l->lock);
		kept = l->npending < KS_PENDING;
		if (kept) {
			list_add_tail(&r->link, &l->pending);
			l->npending++;
			ready = l->ready;
			if (ready)
				set_bit(XPT_CONN, &l->xprt.xpt_flags);
		}
		spin_unlock_bh(&l->lock);
	}
	if (ready)
		svc_xprt_enqueue(&l->xprt);
	if (kept)
		return;
	/* A client that is turned away tries again. */
	pr_warn_ratelimited("%s: %s is refused: %s\n", a->k.name, host->name,
			    r ? "too many wait for a thread of nfsd" : "there is no memory");
	ks_refuse(a, cr);
	if (r)
		ks_request_free(r);
}

/* Take the next request off the listener. */
static struct ks_request *ks_next_request(struct ks_listener *l)
{
	struct ks_request *r;

	spin_lock_bh(&l->lock);
	clear_bit(XPT_CONN, &l->xprt.xpt_flags);
	r = list_first_entry_or_null(&l->pending, struct ks_request, link);
	if (r) {
		list_del(&r->link);
		l->npending--;
	}
	if (l->npending)
		set_bit(XPT_CONN, &l->xprt.xpt_flags);
	spin_unlock_bh(&l->lock);
	return r;
}

/* Have @c know the address that the client has connected to. */
static void ks_set_local(struct ks_conn *c)
{
	DAT_EP_PARAM *param = kzalloc(sizeof(*param), GFP_KERNEL);
	const struct sockaddr *local = NULL;

	if (param && dat_ep_query(c->ep, DAT_EP_FIELD_ALL, param) == DAT_SUCCESS)
		local = param->local_ia_address_ptr;
	if (local && (local->sa_family == AF_INET || local->sa_family == AF_INET6)) {
		svc_xprt_set_local(&c->xprt, local, svc_addr_len(local));
		rpc_set_port((struct sockaddr *)&c->xprt.xpt_local, param->local_port_qual);
	}
	kfree(param);
}

/* xpo_accept(): accept a connection request, without waiting for the client. */
struct svc_xprt *ks_accept(struct svc_xprt *xprt)
{
	struct rpcrdma_connect_private cm = {
		.cp_magic = rpcrdma_cmp_magic,
		.cp_version = RPCRDMA_CMP_VERSION,
		.cp_send_size = rpcrdma_encode_buffer_size(KS_INLINE),
		.cp_recv_size = rpcrdma_encode_buffer_size(KS_INLINE),
	};
	struct ks_listener *l = container_of(xprt, struct ks_listener, xprt);
	struct ks_request *r = ks_next_request(l);
	struct ks_conn *c = NULL;
	DAT_RETURN ret;

	if (!r)
		return NULL;
	if (!READ_ONCE(r->a->k.gone))
		c = ks_conn_new(l, r);
	if (c) {
		ret = dat_cr_accept(r->cr, c->ep, sizeof(cm), &cm);
		if (ret == DAT_SUCCESS) {
			ks_set_local(c);
			ks_request_free(r);
			return &c->xprt;
		}
		/* It is no longer a request if the client has given up. */
		if (DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE)
			pr_warn_ratelimited("%s: cannot accept %s: %s\n", c->a->k.name, c->peer,
					    ks_strerror(ret));
		/* sunrpc puts a reference to the module with the last one to the connection. */
		__module_get(THIS_MODULE);
		svc_xprt_put(&c->xprt);
	}
	ks_refuse(r->a, r->cr);
	ks_request_free(r);
	return NULL;
}

/* ---- Listeners ------------------------------------------------------------------------ */

/* Stop listening, and reject what waits. Context: process. */
void ks_listener_detach(struct ks_listener *l)
{
	struct ks_request *r;

	kdat_portal_free(l->portal);
	l->portal = NULL;
	while ((r = ks_next_request(l))) {
		ks_refuse(r->a, r->cr);
		ks_request_free(r);
	}
}

static int ks_portal_errno(DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return 0;
	case DAT_INSUFFICIENT_RESOURCES:
		return -ENOMEM;
	case DAT_CONN_QUAL_IN_USE:
	case DAT_PORT_IN_USE:
		return -EADDRINUSE;
	case DAT_INVALID_ADDRESS:
	case DAT_MODEL_NOT_SUPPORTED:
		return -EAFNOSUPPORT;
	case DAT_INVALID_PARAMETER:
		return -EINVAL;
	default:
		return -EADDRNOTAVAIL;
	}
}

/*
 * Listen at @sa. It is no error that no adapter has the address: nfsd may be started before there
 * is one. nfsd asks for the wildcards of both families.
 */
static struct svc_xprt *ks_create(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				  int len, struct svc_xprt_class *class)
{
	KDAT_PORTAL_ATTR attr = { .address = sa, .only_v6 = DAT_TRUE, .net = net };
	struct ks_listener *l;
	DAT_RETURN ret;

	if (!net_eq(net, &init_net)) {
		pr_warn("cannot listen at %pISpc: kDAPL serves the first network namespace only\n",
			sa);
		return ERR_PTR(-EAFNOSUPPORT);
	}
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&l->lock);
	INIT_LIST_HEAD(&l->pending);
	attr.context = l;
	/* Nothing fails behind svc_xprt_init(), which takes references. */
	ret = kdat_portal_create(ks_server, &attr, &l->portal);
	if (ret != DAT_SUCCESS) {
		pr_warn("cannot listen at %pISpc: %s\n", sa, ks_strerror(ret));
		kfree(l);
		return ERR_PTR(ks_portal_errno(ret));
	}
	svc_xprt_init(net, class, &l->xprt, serv);
	set_bit(XPT_LISTENER, &l->xprt.xpt_flags);
	set_bit(XPT_CONG_CTRL, &l->xprt.xpt_flags);
	strscpy(l->xprt.xpt_remotebuf, "listener", sizeof(l->xprt.xpt_remotebuf));
	svc_xprt_set_local(&l->xprt, sa, len);
	spin_lock_bh(&l->lock);
	l->ready = true;
	if (l->npending)
		set_bit(XPT_CONN, &l->xprt.xpt_flags);
	spin_unlock_bh(&l->lock);
	return &l->xprt;
}

/* xpo_create() of either class */
struct svc_xprt *ks_create_kdapl(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				 int len, int flags)
{
	return ks_create(serv, net, sa, len, &ks_class_kdapl);
}

struct svc_xprt *ks_create_rdma(struct svc_serv *serv, struct net *net, struct sockaddr *sa,
				int len, int flags)
{
	return ks_create(serv, net, sa, len, &ks_class_rdma);
}
