// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared Receive Queues: which buffers have QPs taken?
 *
 * The verbs do not tell how many buffers a device's queue has left. But QPs take buffers
 * in posting order, so the buffer that a QP takes now is the oldest one left: all older
 * buffers have been taken, and no newer one has. kdapl_srq_probe() lets a QP that is its
 * own peer (pz_loop.c) send an empty message to itself. The caller gives the buffer that
 * the message took back to the device, at the end of the queue. If the queue is empty,
 * the Send, which does not retry, fails for want of a receive: all buffers have been
 * taken.
 *
 * During a probe the device has one buffer less: a message that finds none is sent again,
 * as whenever an SRQ is empty. The counts are kept in software and do not change.
 */
#include <linux/completion.h>
#include "ep.h"
#include "ia.h"
#include "pz.h"
#include "srq.h"

/* A message within the host takes 0.1 ms. */
#define KDAPL_PROBE_WAIT	HZ

/*
 * struct kdapl_probe - an empty message
 * @cq: CQ of both queues
 * @qp: QP that is its own peer
 * @rung: there are completions
 * @taken: the buffer that the message took
 * @sent: the Send has completed
 * @status: status of the Send
 */
struct kdapl_probe {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct completion rung;
	struct kdapl_wr *taken;
	bool sent;
	enum ib_wc_status status;
};

static void kdapl_probe_comp(struct ib_cq *cq, void *context)
{
	struct kdapl_probe *probe = context;

	complete(&probe->rung);
}

static int kdapl_probe_make(struct kdapl_probe *probe, struct kdapl_srq *srq,
			    struct kdapl_ep *ep)
{
	/* A receive, a Send, and a flush of each. */
	struct ib_cq_init_attr room = { .cqe = 4 };
	struct ib_qp_init_attr init = {
		.srq = srq->srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = srq->obj.ia->port,
	};

	init_completion(&probe->rung);
	probe->cq = __ib_create_cq(srq->pz->pd->device, kdapl_probe_comp, NULL,
				   probe, &room, srq->obj.ia->consumer);
	if (IS_ERR(probe->cq))
		return PTR_ERR(probe->cq);
	init.send_cq = probe->cq;
	init.recv_cq = probe->cq;
	return kdapl_loop_create(srq->pz, &init, ep->srq_gid, &probe->qp);
}

static void kdapl_probe_poll(struct kdapl_probe *probe)
{
	struct ib_wc wc;

	while (ib_poll_cq(probe->cq, 1, &wc) > 0) {
		if (wc.wr_id == (uintptr_t)probe) {
			probe->sent = true;
			probe->status = wc.status;
		} else {
			probe->taken = (void *)(uintptr_t)wc.wr_id;
		}
	}
}

/* Send the message and wait until the Send completes, which it does after the receive. */
static int kdapl_probe_send(struct kdapl_probe *probe)
{
	const struct ib_send_wr wr = {
		.wr_id = (uintptr_t)probe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	unsigned long left = KDAPL_PROBE_WAIT;
	int err;

	err = ib_post_send(probe->qp, &wr, NULL);
	if (err)
		return err;
	while (left) {
		while (ib_req_notify_cq(probe->cq, IB_CQ_NEXT_COMP |
					IB_CQ_REPORT_MISSED_EVENTS) > 0)
			kdapl_probe_poll(probe);
		kdapl_probe_poll(probe);
		if (probe->sent)
			return 0;
		left = wait_for_completion_timeout(&probe->rung, left);
	}
	return -ETIMEDOUT;
}

/* Destroy the QP, poll its last completions, and destroy the CQ. */
static void kdapl_probe_end(struct kdapl_probe *probe)
{
	if (IS_ERR_OR_NULL(probe->cq))
		return;
	if (probe->qp)
		ib_destroy_qp(probe->qp);
	kdapl_probe_poll(probe);
	ib_destroy_cq(probe->cq);
}

/**
 * kdapl_srq_probe - take the oldest buffer that the device has left
 * @srq: the SRQ; a QP is attached, and the device cannot leave
 * @ep: an Endpoint that has had a QP on the SRQ
 * @taken: set to this buffer, which the caller gives back to the device; or to NULL if
 *	the device has none
 *
 * Context: Process context; may wait for KDAPL_PROBE_WAIT.
 * Return: 0; or an errno, with no buffer taken, if the probe failed.
 */
int kdapl_srq_probe(struct kdapl_srq *srq, struct kdapl_ep *ep,
		    struct kdapl_wr **taken)
{
	struct kdapl_probe probe = { };
	int err;

	err = kdapl_probe_make(&probe, srq, ep) ?: kdapl_probe_send(&probe);
	kdapl_probe_end(&probe);
	*taken = probe.taken;
	if (probe.taken)
		return 0;
	return err ?: probe.status == IB_WC_RNR_RETRY_EXC_ERR ? 0 : -EIO;
}
