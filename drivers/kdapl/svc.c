// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The service connection of a Protection Zone.
 *
 * The kernel has no verb that registers memory: it is done by a work request on
 * a connected queue pair. But the contract wants an LMR's rmr_context to work
 * from the return of dat_lmr_kcreate() on, and at that time the consumer may
 * have no connection at all. So each PZ that needs it gets two queue pairs of
 * its own, connected to each other, on which nothing but registrations and
 * invalidations is ever posted. A key is good for all queue pairs of the PZ.
 *
 * The pair is connected with the RDMA CM, through the IA's own address, because
 * an iWARP queue pair cannot be connected in any other way. The listener exists
 * only while the connection is being made, on a port that the system picks, and
 * takes nobody but the one who knows a random number.
 *
 * Everything here runs in process context with the device present, and waits
 * for completions by sleeping. A connection that has died (the address of the
 * port was changed, say) is made anew, once per request.
 */
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include "kdapl.h"

#define KDAPL_SVC_RESOLVE_MS	2000
#define KDAPL_SVC_STEP		(5 * HZ)	/* one step of connecting */
#define KDAPL_SVC_REQUEST	(10 * HZ)	/* one registration */
#define KDAPL_SVC_DEPTH		4

/*
 * struct kdapl_svc - service connection
 * @pz: whose it is
 * @cq: of both queue pairs
 * @listen: while connecting
 * @active: the id whose queue pair is posted to
 * @passive: its peer, made by the request that arrived at @listen
 * @nonce: who may connect
 * @step: an event for @active has come
 * @err: an errno if that was not what was waited for
 * @accepted: @passive is established
 * @dead: the connection is lost
 * @cqe: of the one request at a time
 * @done: the request has completed
 * @status: how
 */
struct kdapl_svc {
	struct kdapl_pz *pz;
	struct ib_cq *cq;
	struct rdma_cm_id *listen;
	struct rdma_cm_id *active;
	struct rdma_cm_id *passive;
	__be64 nonce;
	struct completion step;
	int err;
	struct completion accepted;
	bool dead;
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void kdapl_svc_param(struct kdapl_svc *svc,
			    struct rdma_conn_param *param)
{
	memset(param, 0, sizeof(*param));
	param->responder_resources = 1;
	param->initiator_depth = 1;
	param->retry_count = 7;
	param->rnr_retry_count = 7;
	param->private_data = &svc->nonce;
	param->private_data_len = sizeof(svc->nonce);
}

static int kdapl_svc_create_qp(struct kdapl_svc *svc, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.send_cq = svc->cq,
		.recv_cq = svc->cq,
		.cap = {
			.max_send_wr = KDAPL_SVC_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = id->port_num,
	};
	int err;

	err = rdma_create_qp(id, svc->pz->pd, &attr);
	/* As ib_core would have it, but rdma_cm has named it after itself. */
	if (!err)
		id->qp->res.kern_name = svc->pz->obj.ia->consumer;
	return err;
}

/* A request has come to the listener. Nonzero makes the RDMA CM reject it. */
static int kdapl_svc_accept(struct kdapl_svc *svc, struct rdma_cm_id *id,
			    const struct rdma_conn_param *req)
{
	struct rdma_conn_param param;
	int err;

	if (svc->passive || !req->private_data ||
	    req->private_data_len < sizeof(svc->nonce) ||
	    memcmp(req->private_data, &svc->nonce, sizeof(svc->nonce)) ||
	    id->device != svc->pz->pd->device)
		return -EPERM;

	err = kdapl_svc_create_qp(svc, id);
	if (err) {
		/* For -ENOMEM the CM would not, but wait for another try. */
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		return err;
	}
	kdapl_svc_param(svc, &param);
	err = rdma_accept(id, &param);
	if (err) {
		rdma_destroy_qp(id);
		return err;
	}
	svc->passive = id;
	return 0;
}

static int kdapl_svc_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_svc *svc = id->context;
	bool active = id == svc->active;
	unsigned int noio;
	int err = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		noio = memalloc_noio_save();
		err = kdapl_svc_accept(svc, id, &event->param.conn);
		memalloc_noio_restore(noio);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		complete(&svc->step);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		complete(active ? &svc->step : &svc->accepted);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		/* Rejected, unreachable, disconnected, device removed. */
		WRITE_ONCE(svc->dead, true);
		if (active) {
			svc->err = event->status < 0 ? event->status :
						       -ECONNREFUSED;
			complete(&svc->step);
		}
		break;
	}
	return err;
}

static void kdapl_svc_begin(struct kdapl_svc *svc)
{
	svc->err = 0;
	reinit_completion(&svc->step);
}

static int kdapl_svc_await(struct kdapl_svc *svc, struct completion *what)
{
	if (!wait_for_completion_timeout(what, KDAPL_SVC_STEP))
		return -ETIMEDOUT;
	if (READ_ONCE(svc->dead))
		return svc->err ?: -ECONNRESET;
	return 0;
}

static void kdapl_svc_free_id(struct rdma_cm_id **id)
{
	if (IS_ERR_OR_NULL(*id))
		return;
	if ((*id)->qp)
		rdma_destroy_qp(*id);
	rdma_destroy_id(*id);
	*id = NULL;
}

static struct rdma_cm_id *kdapl_svc_create_id(struct kdapl_svc *svc)
{
	return __rdma_create_kernel_id(&init_net, kdapl_svc_handler, svc,
				       RDMA_PS_TCP, IB_QPT_RC,
				       svc->pz->obj.ia->consumer);
}

static int kdapl_svc_listen(struct kdapl_svc *svc, struct sockaddr *addr)
{
	int err;

	svc->listen = kdapl_svc_create_id(svc);
	if (IS_ERR(svc->listen))
		return PTR_ERR(svc->listen);
	err = rdma_bind_addr(svc->listen, addr);
	if (err)
		return err;
	/* Another device may have the same address. */
	if (svc->listen->device != svc->pz->pd->device)
		return -EADDRNOTAVAIL;
	return rdma_listen(svc->listen, 1);
}

static int kdapl_svc_dial(struct kdapl_svc *svc, struct sockaddr *addr)
{
	struct sockaddr_storage *to = &svc->listen->route.addr.src_addr;
	struct rdma_conn_param param;
	int err;

	svc->active = kdapl_svc_create_id(svc);
	if (IS_ERR(svc->active))
		return PTR_ERR(svc->active);

	kdapl_svc_begin(svc);
	err = rdma_resolve_addr(svc->active, addr, (struct sockaddr *)to,
				KDAPL_SVC_RESOLVE_MS) ?:
	      kdapl_svc_await(svc, &svc->step);
	if (err)
		return err;
	if (svc->active->device != svc->pz->pd->device)
		return -EADDRNOTAVAIL;

	kdapl_svc_begin(svc);
	err = rdma_resolve_route(svc->active, KDAPL_SVC_RESOLVE_MS) ?:
	      kdapl_svc_await(svc, &svc->step) ?:
	      kdapl_svc_create_qp(svc, svc->active);
	if (err)
		return err;

	kdapl_svc_begin(svc);
	kdapl_svc_param(svc, &param);
	return rdma_connect(svc->active, &param) ?:
	       kdapl_svc_await(svc, &svc->step) ?:
	       kdapl_svc_await(svc, &svc->accepted);
}

static int kdapl_svc_connect(struct kdapl_pz *pz)
{
	struct sockaddr_storage addr;
	struct kdapl_svc *svc;
	int err;

	err = kdapl_ia_local_addr(pz->obj.ia, NULL, &addr);
	if (err)
		return err;

	svc = kzalloc(sizeof(*svc), GFP_KERNEL);
	if (!svc)
		return -ENOMEM;
	svc->pz = pz;
	svc->nonce = cpu_to_be64(get_random_u64());
	init_completion(&svc->step);
	init_completion(&svc->accepted);
	init_completion(&svc->done);
	pz->svc = svc;

	svc->cq = __ib_alloc_cq(pz->pd->device, svc, 2 * KDAPL_SVC_DEPTH + 2, 0,
				IB_POLL_WORKQUEUE, pz->obj.ia->consumer);
	if (IS_ERR(svc->cq)) {
		err = PTR_ERR(svc->cq);
		goto err_destroy;
	}
	err = kdapl_svc_listen(svc, (struct sockaddr *)&addr) ?:
	      kdapl_svc_dial(svc, (struct sockaddr *)&addr);
	if (err)
		goto err_destroy;
	kdapl_svc_free_id(&svc->listen);
	return 0;

err_destroy:
	kdapl_svc_destroy(pz);
	return err;
}

/**
 * kdapl_svc_destroy - take the service connection down
 * @pz: its Protection Zone
 *
 * Context: Process context; svc_mutex is held, or nobody else can want it (the
 * PZ is released, or the device leaves and hca->sem is held for writing).
 */
void kdapl_svc_destroy(struct kdapl_pz *pz)
{
	struct kdapl_svc *svc = pz->svc;

	if (!svc)
		return;
	pz->svc = NULL;
	/* First the listener: then nobody sets svc->passive any more. */
	kdapl_svc_free_id(&svc->listen);
	if (!IS_ERR_OR_NULL(svc->active) && svc->active->qp)
		rdma_disconnect(svc->active);
	kdapl_svc_free_id(&svc->active);
	kdapl_svc_free_id(&svc->passive);
	if (!IS_ERR_OR_NULL(svc->cq))
		ib_free_cq(svc->cq);
	kfree(svc);
}

static void kdapl_svc_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdapl_svc *svc = container_of(wc->wr_cqe, struct kdapl_svc, cqe);

	svc->status = wc->status;
	complete(&svc->done);
}

static int kdapl_svc_post(struct kdapl_svc *svc, struct ib_send_wr *wr)
{
	int err;

	reinit_completion(&svc->done);
	svc->cqe.done = kdapl_svc_done;
	wr->wr_cqe = &svc->cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->next = NULL;

	err = ib_post_send(svc->active->qp, wr, NULL);
	if (err)
		return -ENOTCONN;
	if (!wait_for_completion_timeout(&svc->done, KDAPL_SVC_REQUEST))
		return -ETIMEDOUT;
	switch (svc->status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/* Any failure leaves a queue pair that is of no use, so it is given up. */
static int kdapl_svc_try(struct kdapl_pz *pz, struct ib_send_wr *wr)
{
	int err;

	if (pz->svc && READ_ONCE(pz->svc->dead))
		kdapl_svc_destroy(pz);
	if (!pz->svc) {
		err = kdapl_svc_connect(pz);
		if (err)
			return err;
	}
	err = kdapl_svc_post(pz->svc, wr);
	if (err)
		kdapl_svc_destroy(pz);
	return err;
}

static int kdapl_svc_run(struct kdapl_pz *pz, struct ib_send_wr *wr)
{
	bool fresh;
	int err;

	mutex_lock(&pz->svc_mutex);
	fresh = !pz->svc;
	err = kdapl_svc_try(pz, wr);
	if (err == -ENOTCONN && !fresh)
		err = kdapl_svc_try(pz, wr);
	mutex_unlock(&pz->svc_mutex);
	return err;
}

/**
 * kdapl_svc_register - register memory
 * @pz: Protection Zone of @mr
 * @mr: the MR, mapped and not valid; its rkey becomes valid
 * @access: IB_ACCESS flags
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: 0 or an errno.
 */
int kdapl_svc_register(struct kdapl_pz *pz, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return kdapl_svc_run(pz, &wr.wr);
}

/* The opposite; the same rules. */
int kdapl_svc_invalidate(struct kdapl_pz *pz, u32 rkey)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = rkey,
	};

	return kdapl_svc_run(pz, &wr);
}
