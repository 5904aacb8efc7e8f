// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs: creation, states, end. All QPs of all devices are in sim_qps by a
 * number that is unique among them, which is how a QP finds its peer.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "sim.h"

#define SIM_HOLD_MS 60000

DEFINE_XARRAY_FLAGS(sim_qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
static u32 sim_next_id;

/* The QP with this ID, referenced; NULL: there is none. Context: any. */
struct sim_qp *sim_qp_get(u32 id)
{
	unsigned long flags;
	struct sim_qp *qp;

	xa_lock_irqsave(&sim_qps, flags);
	qp = xa_load(&sim_qps, id);
	if (qp && !refcount_inc_not_zero(&qp->ref))
		qp = NULL;
	xa_unlock_irqrestore(&sim_qps, flags);
	return qp;
}

void sim_qp_put(struct sim_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->released);
}

/* ---- Creation ------------------------------------------------------------ */

static bool sim_has_max_qps(struct sim_dev *dev)
{
	u32 max = sim_switch(dev, max_qps);

	return max && atomic_long_read(&dev->count[KDAPL_SIM_N_qps]) >= max;
}

static int sim_qp_check(struct sim_dev *dev, struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;

	if (init->create_flags ||
	    (init->qp_type != IB_QPT_RC &&
	     (init->qp_type != IB_QPT_GSI || dev->iwarp)))
		return -EOPNOTSUPP;
	if (sim_times(dev, fail_qp) || sim_has_max_qps(dev))
		return -ENOMEM;
	if (cap->max_send_wr > SIM_MAX_WR || cap->max_send_sge > SIM_MAX_SGE ||
	    cap->max_inline_data || !init->send_cq || !init->recv_cq)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > SIM_MAX_WR ||
			   cap->max_recv_sge > SIM_MAX_SGE))
		return -EINVAL;
	return 0;
}

static void sim_qp_free(struct sim_qp *qp)
{
	kvfree(qp->sq);
	kvfree(qp->own_rq.ring);
	kfree(qp->rx.wqe);
}

static int sim_qp_alloc(struct sim_qp *qp, struct ib_qp_init_attr *init)
{
	struct ib_qp_cap *cap = &init->cap;
	u32 max_sge;

	qp->sq_size = roundup_pow_of_two(max(cap->max_send_wr, 1U));
	qp->sq_stride = sizeof(struct sim_swqe) +
			cap->max_send_sge * sizeof(struct ib_sge);
	qp->sq = kvcalloc(qp->sq_size, qp->sq_stride, GFP_KERNEL);
	if (!qp->sq)
		return -ENOMEM;
	cap->max_send_wr = qp->sq_size;
	if (init->srq) {
		qp->rq = &to_sim_srq(init->srq)->rq;
		INIT_LIST_HEAD(&qp->own_rq.waiters);
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	} else {
		if (sim_rq_init(&qp->own_rq, cap->max_recv_wr,
				cap->max_recv_sge))
			return -ENOMEM;
		qp->rq = &qp->own_rq;
		cap->max_recv_wr = qp->own_rq.size;
	}
	max_sge = qp->rq->max_sge;
	qp->rx.wqe = kzalloc(struct_size(qp->rx.wqe, sge, max_sge), GFP_KERNEL);
	return qp->rx.wqe ? 0 : -ENOMEM;
}

/* Let others find it. */
static int sim_qp_publish(struct sim_qp *qp)
{
	bool gsi = qp->ib.qp_type == IB_QPT_GSI;
	int err;

	xa_lock_irq(&sim_qps);
	if (gsi && qp->dev->gsi) {
		err = -EBUSY;
	} else {
		err = __xa_alloc_cyclic(&sim_qps, &qp->id, qp,
					XA_LIMIT(2, 0xffffff), &sim_next_id,
					GFP_KERNEL);
		if (err > 0)
			err = 0;
	}
	if (!err && gsi)
		qp->dev->gsi = qp->id;
	xa_unlock_irq(&sim_qps);
	if (err)
		return err;
	qp->ib.qp_num = gsi ? 1 : qp->id;
	qp->engine = &qp->dev->engines[qp->id % qp->dev->n_engines];
	return 0;
}

int sim_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		  struct ib_udata *udata)
{
	struct sim_dev *dev = to_sim_dev(ibqp->device);
	struct sim_qp *qp = to_sim_qp(ibqp);
	int err;

	err = sim_qp_check(dev, init);
	if (err)
		return err;
	qp->dev = dev;
	qp->engine = &dev->engines[0];
	qp->state = IB_QPS_RESET;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	refcount_set(&qp->ref, 1);
	init_completion(&qp->released);
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->ready);
	INIT_LIST_HEAD(&qp->waiting);
	INIT_LIST_HEAD(&qp->timed);
	INIT_LIST_HEAD(&qp->late);
	err = sim_qp_alloc(qp, init);
	if (!err)
		err = sim_qp_publish(qp);
	if (err) {
		sim_qp_free(qp);
		return err;
	}
	qp->cap = init->cap;
	sim_count(dev, qps);
	return 0;
}

/* ---- States -------------------------------------------------------------- */

void sim_qp_event(struct sim_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = type,
	};

	if (!qp->ib.event_handler)
		return;
	if (type == IB_EVENT_QP_LAST_WQE_REACHED)
		sim_count(qp->dev, lwqes);
	sim_deliver(qp->dev, &event, qp->ib.event_handler, qp->ib.qp_context);
}

/* The peer, which may be parked, has to look at @qp's state. */
static void sim_wake_peer(struct sim_qp *qp)
{
	struct sim_qp *peer = sim_qp_get(qp->attr.dest_qp_num);

	if (!peer)
		return;
	sim_schedule(peer);
	sim_qp_put(peer);
}

void sim_qp_set_state(struct sim_qp *qp, enum ib_qp_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	qp->state = state;
	spin_unlock_irqrestore(&qp->lock, flags);
	sim_schedule(qp);
	sim_wake_peer(qp);
}

/* @qp ends, for whatever reason; its engine flushes it. Context: any. */
void sim_qp_to_err(struct sim_qp *qp)
{
	unsigned long flags;
	bool was;

	spin_lock_irqsave(&qp->lock, flags);
	was = qp->state == IB_QPS_ERR || qp->state == IB_QPS_RESET;
	if (!was)
		qp->state = IB_QPS_ERR;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (was)
		return;
	sim_count(qp->dev, at_err);
	sim_schedule(qp);
	sim_wake_peer(qp);
	if (qp->dev->iwarp)
		sim_iw_close(qp);
}

/* Forget all that was posted. The state is RESET. */
static void sim_qp_empty(struct sim_qp *qp)
{
	unsigned long flags;

	/* Pairs with sim_execute(). */
	while (smp_load_acquire(&qp->running) || READ_ONCE(qp->rx.busy))
		usleep_range(10, 100);
	sim_unpark(qp);
	if (qp->stalled)
		sim_uncount(qp->dev, partial);
	qp->stalled = false;
	qp->unacked = false;
	qp->hung = false;
	qp->done = 0;
	qp->lwqe_told = false;
	spin_lock_irqsave(&qp->lock, flags);
	qp->sq_head = qp->sq_tail;
	if (qp->rx.active)
		sim_count(qp->dev, lost);
	qp->rx.active = false;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (qp->rq == &qp->own_rq) {
		spin_lock_irqsave(&qp->rq->lock, flags);
		qp->rq->head = qp->rq->tail;
		spin_unlock_irqrestore(&qp->rq->lock, flags);
	}
}

static void sim_qp_keep_attr(struct sim_qp *qp, const struct ib_qp_attr *attr,
			     int mask)
{
	struct ib_qp_attr *to = &qp->attr;

	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = attr->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = attr->qkey;
	if (mask & IB_QP_AV)
		to->ah_attr = attr->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = attr->dest_qp_num;
}

static void sim_hold(struct sim_dev *dev)
{
	if (!sim_switch(dev, hold_rtr))
		return;
	sim_count(dev, held);
	wait_event_timeout(dev->switched, !sim_switch(dev, hold_rtr),
			   msecs_to_jiffies(SIM_HOLD_MS));
	sim_uncount(dev, held);
}

/* The state may change while we are held; so look at it again. */
static int sim_modify_roce(struct sim_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur, next;
	unsigned long flags;
	bool ok;

	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR)
		sim_hold(qp->dev);
	spin_lock_irqsave(&qp->lock, flags);
	cur = qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	ok = ib_modify_qp_is_ok(cur, next, qp->ib.qp_type, mask) &&
	     (!(mask & IB_QP_CUR_STATE) || attr->cur_qp_state == cur);
	if (ok) {
		sim_qp_keep_attr(qp, attr, mask);
		if (next != IB_QPS_ERR)
			qp->state = next;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!ok)
		return -EINVAL;
	if (next == IB_QPS_ERR) {
		sim_qp_to_err(qp);
		return 0;
	}
	if (next == IB_QPS_RTR && cur != next)
		sim_count(qp->dev, at_rtr);
	if (next == IB_QPS_RESET)
		sim_qp_empty(qp);
	sim_schedule(qp);
	sim_wake_peer(qp);
	return 0;
}

/*
 * iw_cm takes QPs up itself. SQD is the graceful end of a connection, which the
 * engine brings about when the send queue is empty.
 */
static int sim_modify_iw(struct sim_qp *qp, struct ib_qp_attr *attr, int mask)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->lock, flags);
	sim_qp_keep_attr(qp, attr, mask & (IB_QP_ACCESS_FLAGS | IB_QP_PORT));
	if (mask & IB_QP_STATE) {
		switch (attr->qp_state) {
		case IB_QPS_INIT:
			if (qp->state == IB_QPS_RESET)
				qp->state = IB_QPS_INIT;
			else if (qp->state != IB_QPS_INIT)
				err = -EINVAL;
			break;
		case IB_QPS_RTR:
		case IB_QPS_RTS:
		case IB_QPS_ERR:
			break;
		case IB_QPS_SQD:
			if (qp->state == IB_QPS_RTS)
				qp->closing = true;
			else
				err = -EINVAL;
			break;
		default:
			err = -EINVAL;
		}
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!err && mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
		sim_qp_to_err(qp);
	else if (!err)
		sim_schedule(qp);
	return err;
}

int sim_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ibqp);

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	return qp->dev->iwarp ? sim_modify_iw(qp, attr, mask) :
				sim_modify_roce(qp, attr, mask);
}

int sim_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct sim_qp *qp = to_sim_qp(ibqp);

	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	return 0;
}

/* ---- End ----------------------------------------------------------------- */

static void sim_qp_unpublish(struct sim_qp *qp)
{
	xa_lock_irq(&sim_qps);
	__xa_erase(&sim_qps, qp->id);
	if (qp->dev->gsi == qp->id)
		qp->dev->gsi = 0;
	xa_unlock_irq(&sim_qps);
}

int sim_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	struct sim_dev *dev = qp->dev;
	u32 usecs = sim_switch(dev, destroy_us);

	if (usecs)
		fsleep(usecs);
	if (dev->iwarp)
		sim_iw_close(qp);
	sim_qp_unpublish(qp);
	sim_qp_set_state(qp, IB_QPS_RESET);
	sim_unschedule(qp);
	sim_event_cancel(qp);
	sim_wake_waiters(&qp->own_rq);
	sim_qp_put(qp);
	wait_for_completion(&qp->released);
	sim_unpark(qp);
	sim_event_cancel(qp);
	if (qp->stalled)
		sim_uncount(dev, partial);
	if (qp->rx.active)
		sim_count(dev, lost);
	if (sim_switch(dev, drop_cqes)) {
		sim_cq_drop(to_sim_cq(ibqp->send_cq), qp);
		if (ibqp->recv_cq != ibqp->send_cq)
			sim_cq_drop(to_sim_cq(ibqp->recv_cq), qp);
	}
	sim_uncount(dev, qps);
	sim_qp_free(qp);
	return 0;
}
