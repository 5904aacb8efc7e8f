// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The service connection of a Protection Zone: kdapl_svc_register().
 *
 * The kernel registers memory only by a work request on a connected queue pair.
 * But by contract L2 the rmr_context of an LMR works when dat_lmr_kcreate()
 * returns, and the consumer may have no connection yet. So each PZ that
 * registers an LMR gets a service connection of its own, on which nothing but
 * registrations is posted. A key is good for all queue pairs of the PZ.
 *
 * On InfiniBand and RoCE it is one queue pair whose peer is itself (pz_loop.c). This
 * needs neither a live port nor an address, as a registration sends nothing.
 *
 * Over iWARP it is two queue pairs that rdma_cm connects through the IA's own address:
 * there a queue pair cannot be connected in any other way. The listener exists
 * only while the connection is set up, on a port that the system picks, and
 * accepts only a request that contains a random number, the nonce.
 *
 * The PZ owns the connection. pz->svc_mutex serialises its setup, use and end, so one
 * request at a time is posted; the poster waits for its completion unless the device
 * leaves. kdapl_svc_handler(), the event handler of all three ids, takes no lock and wakes
 * up kdapl_svc_connect(). Everything else runs in process context with the device present.
 * A connection that was lost, for example because the address of the port was changed, is
 * set up again, once per request.
 */
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include "addr.h"
#include "ia.h"
#include "pz.h"

/* Requests that a queue pair of a service connection has room for. */
#define KDAPL_SVC_DEPTH	4

/* Timeouts */
#define KDAPL_SVC_RESOLVE_MS	2000
#define KDAPL_SVC_STEP		(5 * HZ)	/* one step of connecting */
#define KDAPL_SVC_PORTS	8		/* how many are tried */
#define KDAPL_SVC_REQUEST	(10 * HZ)	/* one registration */

/*
 * struct kdapl_svc - service connection
 * @pz: the Protection Zone that owns the connection
 * @cq: CQ of all queue pairs of the connection
 * @qp: queue pair that gets the requests
 * @loop: @qp is its own peer; there are no ids
 * @listen: listening id; NULL once the connection is established
 * @active: connecting id, with @qp
 * @passive: accepting id, which came with the request that arrived at @listen
 * @nonce: private data that a request must contain to be accepted
 * @step: the next event of @active has come
 * @err: an errno if that event was not the expected one
 * @accepted: @passive is established
 * @broken: the connection is lost
 * @cqe: completion entry of the one request that is outstanding
 * @done: the request has completed
 * @status: completion status of the request
 */
struct kdapl_svc {
	struct kdapl_pz *pz;
	struct ib_cq *cq;
	struct ib_qp *qp;
	bool loop;
	struct rdma_cm_id *listen;
	struct rdma_cm_id *active;
	struct rdma_cm_id *passive;
	__be64 nonce;
	bool step;
	int err;
	bool accepted;
	bool broken;
	struct ib_cqe cqe;
	bool done;
	enum ib_wc_status status;
};

/* Set @what, a member of @svc that kdapl_svc_await() waits for. Context: any. */
static void kdapl_svc_tell(struct kdapl_svc *svc, bool *what)
{
	struct kdapl_ia *ia = svc->pz->obj.ia;

	/* Pairs with kdapl_svc_await(), which reads earlier stores then. litmus: svc */
	smp_store_release(what, true);
	wake_up_all(&ia->wait);
}

/* Fill in the parameters of both sides. */
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

/* Return the attributes of each queue pair of @svc. */
static struct ib_qp_init_attr kdapl_svc_qp_attr(const struct kdapl_svc *svc)
{
	return (struct ib_qp_init_attr) {
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
		.port_num = svc->pz->obj.ia->port,
	};
}

/* Create the queue pair of @id, which is bound to the device. */
static int kdapl_svc_create_qp(struct kdapl_svc *svc, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = kdapl_svc_qp_attr(svc);
	int err;

	err = rdma_create_qp(id, svc->pz->pd, &attr);
	/* rdma_cm set kern_name to its own; restrack should show the consumer. */
	if (!err)
		id->qp->res.kern_name = svc->pz->obj.ia->consumer;
	return err;
}

/*
 * Accept request @req with its new id @id, if it comes from svc->active. Returning an
 * errno makes rdma_cm reject the request and destroy @id.
 */
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
		/*
		 * Reject explicitly: on -ENOMEM the CM drops the request
		 * silently and lets the peer retry.
		 */
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

/* Event handler of all ids of a service connection. */
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
		kdapl_svc_tell(svc, &svc->step);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		kdapl_svc_tell(svc, active ? &svc->step : &svc->accepted);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		/* Rejected, unreachable, disconnected, device removed. */
		WRITE_ONCE(svc->broken, true);
		if (active) {
			svc->err = event->status < 0 ? event->status :
						       -ECONNREFUSED;
			kdapl_svc_tell(svc, &svc->step);
		}
		break;
	}
	return err;
}

/* Get ready to wait for the event of the next step of svc->active. */
static void kdapl_svc_begin(struct kdapl_svc *svc)
{
	svc->err = 0;
	svc->step = false;
}

static bool kdapl_svc_was_told(const bool *what)
{
	/* Pairs with kdapl_svc_tell(). litmus: svc */
	return smp_load_acquire(what);
}

/*
 * Wait at most @timeout for @what, a member of @svc. Return 0 or an errno. The caller is
 * within kdapl_hca_enter(): a leaving device wakes it up.
 */
static int kdapl_svc_await(struct kdapl_svc *svc, bool *what, long timeout)
{
	struct kdapl_ia *ia = svc->pz->obj.ia;

	timeout = wait_event_timeout(ia->wait, kdapl_svc_was_told(what) ||
				     READ_ONCE(ia->hca->gone), timeout);
	if (kdapl_svc_was_told(what))
		return 0;
	return timeout ? -ENODEV : -ETIMEDOUT;
}

/* Wait for @what, which kdapl_svc_handler() sets. Return 0 or an errno. */
static int kdapl_svc_await_step(struct kdapl_svc *svc, bool *what)
{
	int err = kdapl_svc_await(svc, what, KDAPL_SVC_STEP);

	if (!err && READ_ONCE(svc->broken))
		err = svc->err ?: -ECONNRESET;
	return err;
}

/* Destroy *@id, if there is one, with its queue pair. */
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

/* Listen at @addr on a port that the system picks. */
static int kdapl_svc_listen(struct kdapl_svc *svc, struct sockaddr *addr)
{
	int err;

	svc->listen = kdapl_svc_create_id(svc);
	if (IS_ERR(svc->listen))
		return PTR_ERR(svc->listen);
	err = rdma_bind_addr(svc->listen, addr);
	if (err)
		return err;
	/* Two devices may have the same address. */
	if (svc->listen->device != svc->pz->pd->device)
		return -EADDRNOTAVAIL;
	return rdma_listen(svc->listen, 1);
}

/* Connect svc->active to svc->listen, and wait until both sides are established. */
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
	      kdapl_svc_await_step(svc, &svc->step);
	if (err)
		return err;
	if (svc->active->device != svc->pz->pd->device)
		return -EADDRNOTAVAIL;

	kdapl_svc_begin(svc);
	err = rdma_resolve_route(svc->active, KDAPL_SVC_RESOLVE_MS) ?:
	      kdapl_svc_await_step(svc, &svc->step) ?:
	      kdapl_svc_create_qp(svc, svc->active);
	if (err)
		return err;

	svc->qp = svc->active->qp;
	kdapl_svc_begin(svc);
	kdapl_svc_param(svc, &param);
	return rdma_connect(svc->active, &param) ?:
	       kdapl_svc_await_step(svc, &svc->step) ?:
	       kdapl_svc_await_step(svc, &svc->accepted);
}

/*
 * Have rdma_cm connect two queue pairs. Over siw a port that it chooses may be one that TCP has in
 * use, which it does not ask: then others are tried.
 */
static int kdapl_svc_join(void *arg)
{
	struct kdapl_svc *svc = arg;
	int err, left = KDAPL_SVC_PORTS;
	struct sockaddr_storage addr;

	err = kdapl_ia_local_addr(svc->pz->obj.ia, NULL, &addr);
	if (err)
		return err;
	for (;;) {
		err = kdapl_svc_listen(svc, (struct sockaddr *)&addr) ?:
		      kdapl_svc_dial(svc, (struct sockaddr *)&addr);
		kdapl_svc_free_id(&svc->listen);
		if (err != -EADDRINUSE || !--left)
			return err;
		svc->qp = NULL;
		kdapl_svc_free_id(&svc->active);
	}
}

/* Set up the service connection of @pz. */
static int kdapl_svc_connect(struct kdapl_pz *pz)
{
	struct ib_qp_init_attr attr;
	struct kdapl_svc *svc;
	int err;

	lockdep_assert_held(&pz->svc_mutex);

	svc = kzalloc(sizeof(*svc), GFP_KERNEL);
	if (!svc)
		return -ENOMEM;
	svc->pz = pz;
	svc->nonce = cpu_to_be64(get_random_u64());
	pz->svc = svc;

	svc->cq = __ib_alloc_cq(pz->pd->device, svc, 2 * KDAPL_SVC_DEPTH + 2, 0,
				IB_POLL_WORKQUEUE, pz->obj.ia->consumer);
	if (IS_ERR(svc->cq)) {
		err = PTR_ERR(svc->cq);
		goto err_destroy;
	}
	attr = kdapl_svc_qp_attr(svc);
	svc->loop = rdma_ib_or_roce(pz->pd->device, pz->obj.ia->port);
	err = svc->loop ? kdapl_loop_create(pz, &attr, KDAPL_LOOP_ANY_GID,
					    &svc->qp) :
			  kdapl_in_init_net(kdapl_svc_join, svc);
	if (!err)
		return 0;
err_destroy:
	kdapl_svc_destroy(pz);
	return err;
}

/**
 * kdapl_svc_destroy - take the service connection of a PZ down
 * @pz: the Protection Zone
 *
 * Context: Process context.
 */
void kdapl_svc_destroy(struct kdapl_pz *pz)
{
	struct kdapl_svc *svc = pz->svc;

	lockdep_assert_held(&pz->svc_mutex);

	if (!svc)
		return;
	pz->svc = NULL;
	/* Free the listener first, as its handler sets svc->passive. */
	kdapl_svc_free_id(&svc->listen);
	if (svc->loop && svc->qp)
		ib_destroy_qp(svc->qp);
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
	kdapl_svc_tell(svc, &svc->done);
}

/* Post @wr and wait for its completion. Return -ENOTCONN if the connection is lost. */
static int kdapl_svc_post(struct kdapl_svc *svc, struct ib_send_wr *wr)
{
	int err;

	svc->done = false;
	svc->cqe.done = kdapl_svc_done;
	wr->wr_cqe = &svc->cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->next = NULL;

	err = ib_post_send(svc->qp, wr, NULL);
	if (err)
		return -ENOTCONN;
	err = kdapl_svc_await(svc, &svc->done, KDAPL_SVC_REQUEST);
	if (err)
		return err;
	switch (svc->status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/*
 * Post @wr on the service connection of @pz; set the connection up if there is none.
 * Destroy it if the request fails or times out: its queue pair is of no use then.
 */
static int kdapl_svc_try(struct kdapl_pz *pz, struct ib_send_wr *wr)
{
	int err;

	lockdep_assert_held(&pz->svc_mutex);

	if (pz->svc && READ_ONCE(pz->svc->broken))
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

/* Run @wr; try again if the connection was lost before. */
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
 * kdapl_svc_register - register an MR, and wait until it is registered
 * @pz: Protection Zone of @mr
 * @mr: the MR, with its page list written (kdapl_mr_map())
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

	lockdep_assert_held(&pz->obj.ia->hca->sem);

	return kdapl_svc_run(pz, &wr.wr);
}
