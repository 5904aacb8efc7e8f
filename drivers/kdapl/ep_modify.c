// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dat_ep_modify().
 *
 * kdapl_modify_rules tells in which states of the Endpoint each parameter may be
 * changed; tests and documentation are generated from it. In none of these
 * states does the Endpoint have a queue pair, so only data of this module change, and
 * the QP is created with the new values. Everything that can fail is prepared
 * first, except that a receive may have been posted meanwhile:
 * kdapl_ring_commit() checks that before it changes anything.
 *
 * ep->mutex is held throughout, which excludes connecting. ep->deps_pinned
 * makes a concurrent dat_ep_free() leave the dependencies to
 * kdapl_ep_unpin_deps(). Posting and reaping go on: rings and event lists are
 * changed with the locks of the EVDs and of the rings held.
 */
#include <linux/slab.h>
#include "dto.h"
#include "ep.h"
#include "ep_modify.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"
#include "trace.h"

#define S(state) BIT(DAT_EP_STATE_ ## state)

/* Sets of states in which a parameter may be changed. */
#define NEVER	0
#define FRESH	S(UNCONNECTED)
#define ZONE	(S(UNCONNECTED) | S(TENTATIVE_CONNECTION_PENDING))
#define SETUP	(S(UNCONNECTED) | S(RESERVED) | \
		 S(PASSIVE_CONNECTION_PENDING) | \
		 S(TENTATIVE_CONNECTION_PENDING))

#define RULE(field, states) { DAT_EP_FIELD_ ## field, states, #field }
#define ATTR(field, states, member) { DAT_EP_FIELD_ ## field, states, #field, \
	offsetof(DAT_EP_ATTR, member), sizeof(u32) }
#define LIST(field, states, member) { DAT_EP_FIELD_ ## field, states, #field, \
	offsetof(DAT_EP_ATTR, member), sizeof(DAT_NAMED_ATTR *) }

const struct kdapl_modify_rule kdapl_modify_rules[] = {
	RULE(IA_HANDLE, NEVER),
	RULE(EP_STATE, NEVER),
	RULE(COMM, SETUP),
	RULE(LOCAL_IA_ADDRESS_PTR, NEVER),
	RULE(LOCAL_PORT_QUAL, NEVER),
	RULE(REMOTE_IA_ADDRESS_PTR, NEVER),
	RULE(REMOTE_PORT_QUAL, NEVER),
	RULE(PZ_HANDLE, ZONE),
	RULE(RECV_EVD_HANDLE, SETUP),
	RULE(REQUEST_EVD_HANDLE, SETUP),
	RULE(CONNECT_EVD_HANDLE, SETUP),
	RULE(SRQ_HANDLE, NEVER),
	ATTR(EP_ATTR_SERVICE_TYPE, SETUP, service_type),
	ATTR(EP_ATTR_MAX_MESSAGE_SIZE, SETUP, max_message_size),
	ATTR(EP_ATTR_MAX_RDMA_SIZE, SETUP, max_rdma_size),
	ATTR(EP_ATTR_QOS, SETUP, qos),
	ATTR(EP_ATTR_RECV_COMPLETION_FLAGS, SETUP, recv_completion_flags),
	ATTR(EP_ATTR_REQUEST_COMPLETION_FLAGS, SETUP, request_completion_flags),
	ATTR(EP_ATTR_MAX_RECV_DTOS, SETUP, max_recv_dtos),
	ATTR(EP_ATTR_MAX_REQUEST_DTOS, SETUP, max_request_dtos),
	ATTR(EP_ATTR_MAX_RECV_IOV, SETUP, max_recv_iov),
	ATTR(EP_ATTR_MAX_REQUEST_IOV, SETUP, max_request_iov),
	ATTR(EP_ATTR_MAX_RDMA_READ_IN, SETUP, max_rdma_read_in),
	ATTR(EP_ATTR_MAX_RDMA_READ_OUT, SETUP, max_rdma_read_out),
	RULE(EP_ATTR_SRQ_SOFT_HW, NEVER),
	ATTR(EP_ATTR_MAX_RDMA_READ_IOV, SETUP, max_rdma_read_iov),
	ATTR(EP_ATTR_MAX_RDMA_WRITE_IOV, SETUP, max_rdma_write_iov),
	ATTR(EP_ATTR_NUM_TRANSPORT_ATTR, FRESH, ep_transport_specific_count),
	LIST(EP_ATTR_TRANSPORT_SPECIFIC_ATTR, FRESH, ep_transport_specific),
	ATTR(EP_ATTR_NUM_PROVIDER_ATTR, FRESH, ep_provider_specific_count),
	LIST(EP_ATTR_PROVIDER_SPECIFIC_ATTR, FRESH, ep_provider_specific),
};

KDAPL_EXPORT_TEST(kdapl_modify_rules);

const unsigned int kdapl_modify_nrules = ARRAY_SIZE(kdapl_modify_rules);
KDAPL_EXPORT_TEST(kdapl_modify_nrules);

/*
 * struct kdapl_modify - a change in progress
 * @ep: the Endpoint
 * @mask: the parameters that change
 * @attr: all new attributes
 * @filled: members of @attr for which the consumer gave 0
 * @comm: the new transport
 * @deps: all new dependencies, used and referenced
 * @sq: memory for the send ring
 * @rq: memory for the receive ring
 * @streams: the completion streams have joined the new EVDs; kdapl_streams_lock is held
 * @srq_evd: the SRQ knows the new receive EVD
 */
struct kdapl_modify {
	struct kdapl_ep *ep;
	DAT_EP_PARAM_MASK mask;
	DAT_EP_ATTR attr;
	u16 filled;
	DAT_COMM comm;
	struct kdapl_ep_deps deps;
	struct kdapl_ring sq;
	struct kdapl_ring rq;
	bool streams;
	bool srq_evd;
};

/* Check that all parameters in @mask may be changed in @state. */
static DAT_RETURN kdapl_modify_allowed(DAT_EP_PARAM_MASK mask,
				       DAT_EP_STATE state)
{
	u32 states = ~0U;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_modify_rules); i++) {
		if (!(mask & kdapl_modify_rules[i].bit))
			continue;
		if (!kdapl_modify_rules[i].states)
			return DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG2);
		states &= kdapl_modify_rules[i].states;
	}
	return states & BIT(state) ? DAT_SUCCESS : kdapl_ep_state_error(state);
}

/* Copy the changing attributes from @p to @m. */
static void kdapl_modify_attr(struct kdapl_modify *m, const DAT_EP_PARAM *p)
{
	const struct kdapl_modify_rule *rule;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_modify_rules); i++) {
		rule = &kdapl_modify_rules[i];
		if (m->mask & rule->bit)
			memcpy((void *)&m->attr + rule->offset,
			       (const void *)&p->ep_attr + rule->offset, rule->size);
	}
}

/*
 * If @bit is in m->mask, set the dependency at @slot of m->deps to the object with
 * @handle, used and referenced. An EVD must have one of the flags @need. Return false if
 * the handle is not valid here.
 */
static bool kdapl_modify_dep(struct kdapl_modify *m, DAT_EP_PARAM_MASK bit,
			     DAT_HANDLE handle, DAT_HANDLE_TYPE type,
			     DAT_EVD_FLAGS need, void *slot)
{
	struct kdapl_obj **dep = slot;
	struct kdapl_obj *obj = NULL;

	if (!(m->mask & bit)) {
		/* The dependency stays: take it once more, kdapl_modify() drops it once. */
		if (*dep) {
			kdapl_obj_use(*dep);
			kref_get(&(*dep)->ref);
		}
		return true;
	}
	*dep = NULL;
	if (!handle)
		return true;
	obj = kdapl_dep_get(handle, type, m->ep->obj.ia);
	*dep = obj;
	return obj && (type != DAT_HANDLE_TYPE_EVD ||
		       container_of(obj, struct kdapl_evd, obj)->flags & need);
}

/*
 * Set all of m->deps. No handle is skipped after a bad one, so that kdapl_deps_put() can
 * drop every dependency.
 */
static bool kdapl_modify_deps(struct kdapl_modify *m, const DAT_EP_PARAM *p)
{
	const struct {
		const char *name;
		DAT_EP_PARAM_MASK bit;
		DAT_HANDLE handle;
		DAT_HANDLE_TYPE type;
		DAT_EVD_FLAGS need;
		void *slot;
	} deps[] = {
		{ "pz_handle", DAT_EP_FIELD_PZ_HANDLE, p->pz_handle,
		  DAT_HANDLE_TYPE_PZ, 0, &m->deps.pz },
		{ "recv_evd_handle", DAT_EP_FIELD_RECV_EVD_HANDLE, p->recv_evd_handle,
		  DAT_HANDLE_TYPE_EVD, DAT_EVD_DTO_FLAG, &m->deps.recv_evd },
		{ "request_evd_handle", DAT_EP_FIELD_REQUEST_EVD_HANDLE, p->request_evd_handle,
		  DAT_HANDLE_TYPE_EVD, DAT_EVD_DTO_FLAG, &m->deps.req_evd },
		{ "connect_evd_handle", DAT_EP_FIELD_CONNECT_EVD_HANDLE, p->connect_evd_handle,
		  DAT_HANDLE_TYPE_EVD, DAT_EVD_CONNECTION_FLAG, &m->deps.conn_evd },
	};
	bool ok = true;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deps); i++) {
		if (kdapl_modify_dep(m, deps[i].bit, deps[i].handle, deps[i].type,
				     deps[i].need, deps[i].slot))
			continue;
		trace_kdapl_refused(m->ep->obj.ia, deps[i].name, (uintptr_t)deps[i].handle, 0,
				    "an object of this IA that takes the stream");
		ok = false;
	}
	return ok;
}

/*
 * Move the completion streams to the new EVDs, with the new flags, and keep kdapl_streams_lock.
 * Return false, with nothing changed, if an EVD does not allow the combination.
 */
static bool kdapl_modify_streams(struct kdapl_modify *m)
{
	struct kdapl_ep *ep = m->ep;

	mutex_lock(&kdapl_streams_lock);
	kdapl_evd_del_stream(ep->recv_evd, ep->attr.recv_completion_flags);
	kdapl_evd_del_stream(ep->req_evd, ep->attr.request_completion_flags);
	m->streams = true;
	if (!kdapl_evd_add_stream(m->deps.recv_evd,
				  m->attr.recv_completion_flags))
		goto undo;
	if (kdapl_evd_add_stream(m->deps.req_evd,
				 m->attr.request_completion_flags))
		return true;
	kdapl_evd_del_stream(m->deps.recv_evd, m->attr.recv_completion_flags);
undo:
	m->streams = false;
	kdapl_evd_readd_stream(ep->recv_evd, ep->attr.recv_completion_flags);
	kdapl_evd_readd_stream(ep->req_evd, ep->attr.request_completion_flags);
	mutex_unlock(&kdapl_streams_lock);
	return false;
}

/* Let receives be posted from now on with the flags in @flags. */
static void kdapl_modify_set_unsignalled(struct kdapl_ep *ep, DAT_COMPLETION_FLAGS flags)
{
	unsigned long irq;

	spin_lock_irqsave(&ep->rq.lock, irq);
	ep->rq.unsignalled = !!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	spin_unlock_irqrestore(&ep->rq.lock, irq);
}

/*
 * Prepare a change of the receive flags. Return false if a receive is posted, which the
 * ring's lock decides. From now on receives must respect both the old and the new flags.
 */
static bool kdapl_modify_begin_flags(struct kdapl_modify *m)
{
	struct kdapl_ring *rq = &m->ep->rq;
	unsigned long flags;
	bool idle;

	spin_lock_irqsave(&rq->lock, flags);
	idle = rq->head == READ_ONCE(rq->tail);
	if (idle && !(m->attr.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG))
		rq->unsignalled = false;
	spin_unlock_irqrestore(&rq->lock, flags);
	return idle;
}

/* Check @p and complete @m. */
static DAT_RETURN kdapl_modify_check(struct kdapl_modify *m,
				     const DAT_EP_PARAM *p)
{
	const DAT_RETURN bad = DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG3);
	struct kdapl_ep *ep = m->ep;

	/* The default of a member that was 0 may depend on members that change. */
	kdapl_ep_unfill_attr(&m->attr, ep->attr_filled);
	kdapl_modify_attr(m, p);
	if (m->mask & DAT_EP_FIELD_COMM)
		m->comm = p->comm;
	if (!kdapl_modify_deps(m, p) || !kdapl_comm_valid(&m->comm) ||
	    !kdapl_ep_check_attr(ep->obj.ia, &m->attr, ep->srq) ||
	    (!ep->provider_owned && !kdapl_ep_check_evds(ep->obj.ia, &m->deps, &m->attr)))
		return bad;
	m->filled = kdapl_ep_fill_attr(ep->obj.ia, &m->attr, ep->srq);
	/* Receives that are posted or held need an EVD. */
	if (!m->deps.recv_evd &&
	    (ep->held || READ_ONCE(ep->rq.head) != ep->rq.tail))
		return bad;
	if (m->attr.recv_completion_flags != ep->attr.recv_completion_flags &&
	    !ep->srq && !kdapl_modify_begin_flags(m))
		return kdapl_ep_state_error(READ_ONCE(ep->state));
	return DAT_SUCCESS;
}

/*
 * Do everything that can fail before the commit. kdapl_modify_abort() and kdapl_modify()
 * undo it.
 */
static DAT_RETURN kdapl_modify_prepare(struct kdapl_modify *m)
{
	const DAT_RETURN bad = DAT_ERROR(DAT_INVALID_PARAMETER,
					 DAT_INVALID_ARG3);
	struct kdapl_ep *ep = m->ep;

	if (kdapl_ep_make_rings(ep->obj.ia, &m->sq, &m->rq, &m->attr, ep->srq))
		goto nomem;
	/* No request is posted in these states: the number can only decrease. */
	if (ep->sq.head - READ_ONCE(ep->sq.tail) > m->sq.max)
		return bad;
	if (ep->srq && m->deps.recv_evd &&
	    m->deps.recv_evd != ep->recv_evd) {
		if (kdapl_srq_add_evd(ep->srq, m->deps.recv_evd))
			goto nomem;
		m->srq_evd = true;
	}
	if (!kdapl_modify_streams(m))
		return bad;
	return DAT_SUCCESS;
nomem:
	return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/*
 * Remove the receive EVD of @ep. Return false if a receive is posted or held, which needs
 * the EVD. Posting checks for the EVD with the ring's lock held.
 */
static bool kdapl_modify_drop_recv_evd(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd = ep->recv_evd;
	unsigned long flags;
	bool idle;

	if (!evd)
		return true;
	spin_lock_irqsave(&evd->lock, flags);
	spin_lock(&ep->rq.lock);
	idle = ep->rq.head == ep->rq.tail && !ep->held;
	if (idle) {
		kdapl_ep_update_watch(ep, evd, false);
		WRITE_ONCE(ep->recv_evd, NULL);
	}
	spin_unlock(&ep->rq.lock);
	spin_unlock_irqrestore(&evd->lock, flags);
	return idle;
}

/* Make the prepared change. */
static DAT_RETURN kdapl_modify_commit(struct kdapl_modify *m)
{
	struct kdapl_ep *ep = m->ep;
	const struct kdapl_zone zone = { &ep->pz, m->deps.pz };
	struct kdapl_evd *old = ep->recv_evd;
	unsigned long flags;

	if (!m->deps.recv_evd && !kdapl_modify_drop_recv_evd(ep))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	/*
	 * The last step that can fail: since kdapl_modify_check() a receive may have been
	 * posted for which the new ring has no room; not if the EVD was removed.
	 */
	if (kdapl_ring_commit(&ep->rq, &m->rq, old,
			      m->mask & DAT_EP_FIELD_PZ_HANDLE ? &zone : NULL))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	WARN_ON(kdapl_ring_commit(&ep->sq, &m->sq, ep->req_evd, NULL));

	if (m->deps.recv_evd != old) {
		kdapl_ep_move_events(ep, &ep->recv_evd, m->deps.recv_evd,
				     ep->srq ? KDAPL_EV_SRQ : KDAPL_EV_RQ);
		if (ep->srq && old)
			kdapl_srq_del_evd(ep->srq, old);
	}
	if (m->deps.req_evd != ep->req_evd)
		kdapl_ep_move_events(ep, &ep->req_evd, m->deps.req_evd,
				     KDAPL_EV_SQ);
	if (m->deps.conn_evd != ep->conn_evd)
		kdapl_ep_move_events(ep, &ep->conn_evd, m->deps.conn_evd,
				     KDAPL_EV_CONN);
	/*
	 * kdapl_ring_commit() has completed failing receives: if the EVD did not change,
	 * its dispatcher must run.
	 */
	if (old)
		kdapl_upcall_schedule(old);

	spin_lock_irqsave(&ep->lock, flags);
	kdapl_ep_show(ep, &m->deps);
	ep->attr = m->attr;
	ep->attr_filled = m->filled;
	ep->comm = m->comm;
	ep->recv_no_upcall = !!(m->attr.recv_completion_flags &
			    DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	spin_unlock_irqrestore(&ep->lock, flags);
	kdapl_modify_set_unsignalled(ep, m->attr.recv_completion_flags);
	return DAT_SUCCESS;
}

/* Undo kdapl_modify_begin_flags() and kdapl_modify_prepare(). */
static void kdapl_modify_abort(struct kdapl_modify *m)
{
	struct kdapl_ep *ep = m->ep;

	kdapl_modify_set_unsignalled(ep, ep->attr.recv_completion_flags);
	if (m->srq_evd)
		kdapl_srq_del_evd(ep->srq, m->deps.recv_evd);
	if (!m->streams)
		return;
	kdapl_evd_del_stream(m->deps.recv_evd, m->attr.recv_completion_flags);
	kdapl_evd_del_stream(m->deps.req_evd, m->attr.request_completion_flags);
	kdapl_evd_readd_stream(ep->recv_evd, ep->attr.recv_completion_flags);
	kdapl_evd_readd_stream(ep->req_evd, ep->attr.request_completion_flags);
}

/*
 * Change the parameters @mask of @ep, in a state that allows it. The caller has pinned
 * the dependencies of @ep.
 */
static DAT_RETURN kdapl_modify(struct kdapl_ep *ep, DAT_EP_PARAM_MASK mask,
			       const DAT_EP_PARAM *param)
{
	struct kdapl_ep_deps old = {
		.pz = ep->pz, .recv_evd = ep->recv_evd,
		.req_evd = ep->req_evd, .conn_evd = ep->conn_evd,
		.srq = ep->srq,
	};
	struct kdapl_modify *m;
	DAT_RETURN ret;

	lockdep_assert_held(&ep->mutex);

	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_MEMORY);
	m->ep = ep;
	m->mask = mask;
	m->attr = ep->attr;
	m->comm = ep->comm;
	m->deps = old;
	ret = kdapl_modify_check(m, param);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_modify_prepare(m);
	if (ret == DAT_SUCCESS)
		ret = kdapl_modify_commit(m);
	if (ret != DAT_SUCCESS) {
		kdapl_modify_abort(m);
	} else {
		ep->settle_gp = get_state_synchronize_rcu();
		ep->was_modified = true;
	}
	if (m->streams)
		mutex_unlock(&kdapl_streams_lock);
out:
	kdapl_deps_put(ret == DAT_SUCCESS ? &old : &m->deps);
	kdapl_ring_free(&m->sq);
	kdapl_ring_free(&m->rq);
	trace_kdapl_ep_modify(ep, mask, ret);
	kfree(m);
	return ret;
}

/*
 * Make a concurrent dat_ep_free() leave the dependencies of @ep to kdapl_ep_unpin_deps().
 * Return false if the consumer has freed @ep.
 */
static bool kdapl_ep_pin_deps(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool pinned;

	spin_lock_irqsave(&ep->lock, flags);
	pinned = !ep->dying;
	ep->deps_pinned = pinned;
	spin_unlock_irqrestore(&ep->lock, flags);
	return pinned;
}

/*
 * End kdapl_ep_pin_deps(). If the consumer has freed @ep meanwhile, do the rest of
 * kdapl_ep_free().
 */
static void kdapl_ep_unpin_deps(struct kdapl_ep *ep)
{
	unsigned long flags;
	bool finish;

	spin_lock_irqsave(&ep->lock, flags);
	ep->deps_pinned = false;
	finish = ep->dying;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (finish)
		kdapl_ep_finish(ep);
}

DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle,
			 DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	might_sleep();
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep_param_mask || ep_param_mask & ~DAT_EP_FIELD_ALL) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!ep_param) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	mutex_lock(&ep->mutex);
	if (ep->was_reset)
		kdapl_ep_settle(ep);
	if (!kdapl_ep_pin_deps(ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else {
		ret = kdapl_modify_allowed(ep_param_mask,
					   READ_ONCE(ep->state));
		if (ret == DAT_SUCCESS)
			ret = kdapl_modify(ep, ep_param_mask, ep_param);
		kdapl_ep_unpin_deps(ep);
	}
	mutex_unlock(&ep->mutex);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_modify);
