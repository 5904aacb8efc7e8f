// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of iWARP, for iw_cm.
 *
 * A pair is a connection from the request on; it exists while one of its ends does. An
 * end has the iw_cm_id that is told of events and the QP, and holds a reference to each;
 * QP and pair point to each other. The passive side's iw_cm_id does not exist yet when
 * iw_cm is told of a request, so it is given the number of the pair for it.
 *
 * Events are passed on under sim_iw_lock, which keeps them in order; iw_cm queues them.
 */
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/iw_cm.h>
#include "sim.h"

#define SIM_IW_TIMEOUT (20 * HZ)	/* for an answer to a request */

enum { SIM_ACTIVE, SIM_PASSIVE, SIM_ENDS };

struct sim_end {
	struct iw_cm_id *id;		/* NULL: there is no such end (any more) */
	struct sim_qp *qp;
	u32 ird;
	u32 ord;
};

/*
 * struct sim_pair - a connection
 * @ref: 1 while it is in sim_pairs, 1 for a pending @timer
 * @up: accepted
 */
struct sim_pair {
	refcount_t ref;
	u32 index;
	bool up;
	struct sim_end end[SIM_ENDS];
	struct sockaddr_storage local;	/* of the active side */
	struct sockaddr_storage remote;
	struct delayed_work timer;
};

struct sim_listener {
	struct list_head link;		/* in sim_listeners */
	struct iw_cm_id *id;
};

/* Protects all pairs, qp->pair and sim_listeners. */
static DEFINE_SPINLOCK(sim_iw_lock);
static LIST_HEAD(sim_listeners);
static DEFINE_XARRAY_FLAGS(sim_pairs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
static u32 sim_next_pair;
static struct workqueue_struct *sim_iw_wq;

static void sim_pair_put(struct sim_pair *pair)
{
	if (refcount_dec_and_test(&pair->ref))
		kfree(pair);
}

/* ---- Ends ---------------------------------------------------------------- */

/* QPs that are to be ended, and released, without the lock. */
struct sim_over {
	struct sim_qp *qp[SIM_ENDS];
	bool was_up[SIM_ENDS];
};

static void sim_over_do(struct sim_over *over)
{
	int i;

	for (i = 0; i < SIM_ENDS; i++) {
		if (!over->qp[i])
			continue;
		if (over->was_up[i])
			sim_qp_to_err(over->qp[i]);
		sim_qp_put(over->qp[i]);
	}
}

static void sim_tell(struct iw_cm_id *id, enum iw_cm_event_type type, int status)
{
	struct iw_cm_event event = { .event = type, .status = status };

	id->event_handler(id, &event);
}

/* Take an end away. A request that ends before it is answered fails with @status. */
static void sim_end_leave(struct sim_pair *pair, int i, int status,
			  struct sim_over *over)
{
	struct sim_end *end = &pair->end[i];

	lockdep_assert_held(&sim_iw_lock);
	if (!end->id)
		return;
	if (pair->up)
		sim_tell(end->id, IW_CM_EVENT_CLOSE, 0);
	else
		sim_tell(end->id, IW_CM_EVENT_CONNECT_REPLY, status);
	end->id->rem_ref(end->id);
	end->id = NULL;
	end->qp->pair = NULL;
	over->qp[i] = end->qp;
	over->was_up[i] = pair->up;
	end->qp = NULL;
}

/* Without ends the pair has no number any more. */
static void sim_pair_check(struct sim_pair *pair)
{
	if (pair->end[SIM_ACTIVE].id || pair->end[SIM_PASSIVE].id)
		return;
	if (cancel_delayed_work(&pair->timer))
		sim_pair_put(pair);
	xa_erase(&sim_pairs, pair->index);
	sim_pair_put(pair);
}

static void sim_pair_end(struct sim_pair *pair, int status, struct sim_over *over)
{
	sim_end_leave(pair, SIM_ACTIVE, status, over);
	sim_end_leave(pair, SIM_PASSIVE, status, over);
	sim_pair_check(pair);
}

/* The connection of @qp, if it has one, ends. Context: any. */
void sim_iw_close(struct sim_qp *qp)
{
	struct sim_over over = { };
	struct sim_pair *pair;
	unsigned long flags;
	bool lost;
	int i;

	spin_lock_irqsave(&sim_iw_lock, flags);
	pair = qp->pair;
	if (pair) {
		i = pair->end[SIM_ACTIVE].qp == qp ? SIM_ACTIVE : SIM_PASSIVE;
		lost = pair->up && pair->end[!i].id &&
		       sim_times(qp->dev, drop_close);
		sim_end_leave(pair, i, -ECONNRESET, &over);
		if (lost)
			sim_pair_check(pair);
		else
			sim_pair_end(pair, -ECONNRESET, &over);
	}
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	sim_over_do(&over);
}

static void sim_pair_timer(struct work_struct *work)
{
	struct sim_pair *pair = container_of(to_delayed_work(work),
					     struct sim_pair, timer);
	struct sim_over over = { };
	unsigned long flags;

	spin_lock_irqsave(&sim_iw_lock, flags);
	if (!pair->up && pair->end[SIM_ACTIVE].id)
		sim_pair_end(pair, -ETIMEDOUT, &over);
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	sim_over_do(&over);
	sim_pair_put(pair);
}

/* ---- Listeners ----------------------------------------------------------- */

static bool sim_addr_equal(const struct sockaddr_storage *a,
			   const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr);
}

static bool sim_addr_any(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return ((const struct sockaddr_in *)addr)->sin_addr.s_addr ==
		       htonl(INADDR_ANY);
	return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
}

static __be16 sim_addr_port(const struct sockaddr_storage *addr)
{
	/* In the same place for both families. */
	return ((const struct sockaddr_in *)addr)->sin_port;
}

/* Does the device's network device have this address? */
static bool sim_dev_has_addr(struct sim_dev *dev,
			     const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *a6 = (const void *)addr;
	const struct sockaddr_in *a4 = (const void *)addr;
	struct net_device *ndev;
	bool has;

	if (addr->ss_family == AF_INET) {
		rcu_read_lock();
		ndev = __ip_dev_find(dev_net(dev->ndev), a4->sin_addr.s_addr,
				     false);
		has = ndev == dev->ndev;
		rcu_read_unlock();
		return has;
	}
	return ipv6_chk_addr(dev_net(dev->ndev), &a6->sin6_addr, dev->ndev, 0);
}

static bool sim_hears(struct sim_listener *l, const struct sockaddr_storage *addr)
{
	const struct sockaddr_storage *at = &l->id->m_local_addr;

	if (at->ss_family != addr->ss_family ||
	    sim_addr_port(at) != sim_addr_port(addr))
		return false;
	return sim_addr_any(at) ?
	       sim_dev_has_addr(to_sim_dev(l->id->device), addr) :
	       sim_addr_equal(at, addr);
}

static struct sim_listener *sim_listener_of(const struct sockaddr_storage *addr)
{
	struct sim_listener *l;

	list_for_each_entry(l, &sim_listeners, link)
		if (sim_hears(l, addr))
			return l;
	return NULL;
}

static int sim_create_listen(struct iw_cm_id *id, int backlog)
{
	struct sim_listener *l, *other;
	unsigned long flags;
	int err = 0;

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	l->id = id;
	spin_lock_irqsave(&sim_iw_lock, flags);
	list_for_each_entry(other, &sim_listeners, link)
		if (other->id->device == id->device &&
		    other->id->m_local_addr.ss_family ==
			    id->m_local_addr.ss_family &&
		    sim_addr_port(&other->id->m_local_addr) ==
			    sim_addr_port(&id->m_local_addr) &&
		    sim_addr_equal(&other->id->m_local_addr, &id->m_local_addr))
			err = -EADDRINUSE;
	if (!err) {
		id->add_ref(id);
		id->provider_data = l;
		list_add_tail(&l->link, &sim_listeners);
	}
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	if (err)
		kfree(l);
	return err;
}

/*
 * Requests that iw_cm was told of outlive the listener. If iw_cm drops one then,
 * the active side learns it from the timer.
 */
static int sim_destroy_listen(struct iw_cm_id *id)
{
	struct sim_listener *l = id->provider_data;
	unsigned long flags;

	if (!l)
		return 0;
	spin_lock_irqsave(&sim_iw_lock, flags);
	list_del(&l->link);
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	id->provider_data = NULL;
	id->rem_ref(id);
	kfree(l);
	return 0;
}

/* ---- Connecting ---------------------------------------------------------- */

static struct sim_pair *sim_pair_alloc(struct iw_cm_id *id,
				       const struct iw_cm_conn_param *param)
{
	struct sim_pair *pair = kzalloc(sizeof(*pair), GFP_KERNEL);

	if (!pair)
		return NULL;
	refcount_set(&pair->ref, 1);
	INIT_DELAYED_WORK(&pair->timer, sim_pair_timer);
	pair->local = id->m_local_addr;
	pair->remote = id->m_remote_addr;
	pair->end[SIM_ACTIVE].ird = param->ird;
	pair->end[SIM_ACTIVE].ord = param->ord;
	if (xa_alloc_cyclic_irq(&sim_pairs, &pair->index, pair, xa_limit_31b,
				&sim_next_pair, GFP_KERNEL) < 0) {
		kfree(pair);
		return NULL;
	}
	return pair;
}

/* Pass the request on; -errno: what the active side is told instead. */
static int sim_request(struct sim_pair *pair, const struct iw_cm_conn_param *param)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = pair->remote,
		.remote_addr = pair->local,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		.provider_data = (void *)(uintptr_t)pair->index,
		.ird = param->ird,
		.ord = param->ord,
	};
	struct sim_dev *dev = pair->end[SIM_ACTIVE].qp->dev;
	struct sim_listener *l;

	if (sim_times(dev, black_hole) || !sim_port_is_up(dev))
		return 0;
	l = sim_listener_of(&pair->remote);
	if (!l)
		return -ECONNRESET;
	if (!sim_port_is_up(to_sim_dev(l->id->device)))
		return 0;
	return l->id->event_handler(l->id, &event) ? -ECONNRESET : 0;
}

/* To addresses of the devices' networks there is a way, even if nobody is there. */
static bool sim_has_route(const struct iw_cm_id *id)
{
	const struct sockaddr_in *to = (const void *)&id->m_remote_addr;
	struct net_device *ndev = to_sim_dev(id->device)->ndev;
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	bool has = false;

	if (to->sin_family != AF_INET)
		return true;
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev)
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			has |= inet_ifa_match(to->sin_addr.s_addr, ifa);
	rcu_read_unlock();
	return has;
}

static int sim_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sim_over over = { };
	struct sim_pair *pair;
	unsigned long flags;
	struct sim_qp *qp;
	int err = 0;

	if (param->private_data_len > SIM_PRIV_MAX)
		return -EINVAL;
	if (!sim_has_route(id))
		return -ENETUNREACH;
	qp = sim_qp_get(param->qpn);
	if (!qp)
		return -EINVAL;
	pair = sim_pair_alloc(id, param);
	if (!pair) {
		sim_qp_put(qp);
		return -ENOMEM;
	}
	spin_lock_irqsave(&sim_iw_lock, flags);
	if (qp->pair || qp->dead || qp->state == IB_QPS_ERR) {
		err = -EINVAL;
		xa_erase(&sim_pairs, pair->index);
		sim_pair_put(pair);
	} else {
		id->add_ref(id);
		pair->end[SIM_ACTIVE].id = id;
		pair->end[SIM_ACTIVE].qp = qp;
		qp->pair = pair;
		refcount_inc(&pair->ref);
		queue_delayed_work(sim_iw_wq, &pair->timer, SIM_IW_TIMEOUT);
		err = sim_request(pair, param);
		if (err)
			sim_pair_end(pair, err, &over);
		err = 0;
		qp = NULL;
	}
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	sim_over_do(&over);
	if (qp)
		sim_qp_put(qp);
	return err;
}

/* The request that iw_cm made @id for, if it still waits for an answer. */
static struct sim_pair *sim_pair_of(struct iw_cm_id *id)
{
	struct sim_pair *pair = xa_load(&sim_pairs, (uintptr_t)id->provider_data);

	return pair && !pair->up && pair->end[SIM_ACTIVE].id ? pair : NULL;
}

/* Give the active side the answer. -ENOMEM: iw_cm could not copy @data. */
static int sim_reply(struct sim_pair *pair, int status, const void *data, u16 len)
{
	struct iw_cm_id *id = pair->end[SIM_ACTIVE].id;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.local_addr = pair->local,
		.remote_addr = pair->remote,
		.private_data = (void *)data,
		.private_data_len = len,
		.ird = pair->end[SIM_PASSIVE].ird,
		.ord = pair->end[SIM_PASSIVE].ord,
	};

	return id->event_handler(id, &event);
}

/*
 * Tell the active side that its attempt has failed, and take it away. Without @data
 * iw_cm cannot fail to learn of it, and would wait for the answer for ever.
 */
static void sim_turn_down(struct sim_pair *pair, int status, const void *data, u16 len,
			  struct sim_over *over)
{
	struct sim_end *end = &pair->end[SIM_ACTIVE];

	if (sim_reply(pair, status, data, len))
		sim_reply(pair, status, NULL, 0);
	end->id->rem_ref(end->id);
	end->id = NULL;
	end->qp->pair = NULL;
	over->qp[SIM_ACTIVE] = end->qp;
	over->was_up[SIM_ACTIVE] = pair->up;
	end->qp = NULL;
}

/* One end's QP can transfer from now on. */
static void sim_end_up(struct sim_end *end, struct sim_end *far)
{
	struct sim_qp *qp = end->qp;

	spin_lock(&qp->lock);
	qp->attr.dest_qp_num = far->qp->id;
	qp->attr.max_rd_atomic = min(end->ord, far->ird);
	qp->attr.max_dest_rd_atomic = end->ird;
	if (qp->state != IB_QPS_ERR)
		qp->state = IB_QPS_RTS;
	spin_unlock(&qp->lock);
	sim_schedule(qp);
}

static void sim_pair_up(struct sim_pair *pair, const struct iw_cm_conn_param *param,
			struct sim_over *over)
{
	struct sim_end *active = &pair->end[SIM_ACTIVE];
	struct sim_end *passive = &pair->end[SIM_PASSIVE];
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_ESTABLISHED,
		.ird = active->ird,
		.ord = active->ord,
	};

	if (cancel_delayed_work(&pair->timer))
		sim_pair_put(pair);
	pair->up = true;
	sim_end_up(passive, active);
	sim_end_up(active, passive);
	passive->id->event_handler(passive->id, &event);
	if (!sim_reply(pair, 0, param->private_data, param->private_data_len))
		return;
	sim_turn_down(pair, -ENOMEM, NULL, 0, over);
	sim_pair_end(pair, 0, over);
}

/* End the attempt of which @id is the passive side. Return whether there was one. */
static bool sim_refuse(struct iw_cm_id *id, int status, const void *data, u8 len)
{
	struct sim_over over = { };
	struct sim_pair *pair;
	unsigned long flags;

	spin_lock_irqsave(&sim_iw_lock, flags);
	pair = sim_pair_of(id);
	if (pair) {
		sim_turn_down(pair, status, data, len, &over);
		sim_pair_check(pair);
	}
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	sim_over_do(&over);
	return pair;
}

static int sim_join(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct sim_over over = { };
	struct sim_pair *pair;
	unsigned long flags;
	struct sim_qp *qp;
	int err = 0;

	if (param->private_data_len > SIM_PRIV_MAX || param->ord > SIM_MAX_RD ||
	    param->ird > SIM_MAX_RD)
		return -EINVAL;
	qp = sim_qp_get(param->qpn);
	if (!qp)
		return -EINVAL;
	spin_lock_irqsave(&sim_iw_lock, flags);
	pair = sim_pair_of(id);
	if (!pair) {
		err = -ECONNRESET;
	} else if (qp->pair || qp->dead || qp->state == IB_QPS_ERR) {
		err = -EINVAL;
	} else {
		id->add_ref(id);
		pair->end[SIM_PASSIVE] = (struct sim_end) {
			.id = id,
			.qp = qp,
			.ird = param->ird,
			.ord = param->ord,
		};
		qp->pair = pair;
		sim_pair_up(pair, param, &over);
	}
	spin_unlock_irqrestore(&sim_iw_lock, flags);
	sim_over_do(&over);
	if (err)
		sim_qp_put(qp);
	return err;
}

/* An accept that fails ends the attempt, since iw_cm rejects it no more. */
static int sim_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	int err = sim_join(id, param);

	if (err)
		sim_refuse(id, -ECONNRESET, NULL, 0);
	return err;
}

static int sim_reject(struct iw_cm_id *id, const void *data, u8 len)
{
	return sim_refuse(id, -ECONNREFUSED, data, len) ? 0 : -ECONNRESET;
}

/* ---- References ---------------------------------------------------------- */

static void sim_iw_add_ref(struct ib_qp *ibqp)
{
	refcount_inc(&to_sim_qp(ibqp)->ref);
}

static void sim_iw_rem_ref(struct ib_qp *ibqp)
{
	sim_qp_put(to_sim_qp(ibqp));
}

/* iw_cm takes its reference at once, and its caller has the QP. */
static struct ib_qp *sim_iw_get_qp(struct ib_device *ibdev, int qpn)
{
	struct sim_qp *qp = sim_qp_get(qpn);

	if (!qp)
		return NULL;
	sim_qp_put(qp);
	return &qp->ib;
}

const struct ib_device_ops sim_iw_ops = {
	.iw_accept = sim_accept,
	.iw_add_ref = sim_iw_add_ref,
	.iw_connect = sim_connect,
	.iw_create_listen = sim_create_listen,
	.iw_destroy_listen = sim_destroy_listen,
	.iw_get_qp = sim_iw_get_qp,
	.iw_reject = sim_reject,
	.iw_rem_ref = sim_iw_rem_ref,
};

int sim_iw_init(void)
{
	sim_iw_wq = alloc_workqueue("kdapl_sim_iw", WQ_UNBOUND, 0);
	return sim_iw_wq ? 0 : -ENOMEM;
}

void sim_iw_exit(void)
{
	destroy_workqueue(sim_iw_wq);
}
