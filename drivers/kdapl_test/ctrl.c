// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The first connection between a command and its server, see proto.h. All of it runs in
 * the thread of the session, out of kt_net_run().
 */
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "kdapl_test.h"

#define KT_CTRL_LEN	(2 * KT_SLOTS * KT_MSG_LEN)
/* Cookies of sends are above those of receives. */
#define KT_SENDS	KT_SLOTS

static struct kt_msg *kt_slot(struct kt_ctrl *ctrl, u32 slot)
{
	return (void *)ctrl->buf + slot * KT_MSG_LEN;
}

static DAT_LMR_TRIPLET kt_slot_seg(const struct kt_ctrl *ctrl, u32 slot)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = ctrl->base + slot * KT_MSG_LEN,
		.segment_length = KT_MSG_LEN,
		.lmr_context = ctrl->context,
	};
}

static void kt_ctrl_post(struct kt_net *net, u32 slot)
{
	DAT_LMR_TRIPLET seg = kt_slot_seg(&net->ctrl, slot);
	DAT_DTO_COOKIE cookie = { .as_64 = slot };

	if (dat_ep_post_recv(net->ctrl.ep, 1, &seg, cookie,
			     DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		net->ctrl.down = true;
}

static int kt_ctrl_memory(struct kt_net *net)
{
	DAT_REGION_DESCRIPTION region;
	struct kt_ctrl *ctrl = &net->ctrl;
	DAT_RETURN ret;

	ctrl->buf = alloc_pages_exact(KT_CTRL_LEN, GFP_KERNEL | __GFP_ZERO);
	if (!ctrl->buf)
		return -ENOMEM;
	region.for_va = ctrl->buf;
	ret = dat_lmr_kcreate(net->ia, DAT_MEM_TYPE_VIRTUAL, region,
			      KT_CTRL_LEN, net->pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &ctrl->lmr,
			      &ctrl->context, NULL, NULL, &ctrl->base);
	if (ret != DAT_SUCCESS)
		ctrl->lmr = NULL;
	return dat_errno("dat_lmr_kcreate", ret);
}

static int kt_ctrl_ep(struct kt_net *net)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = KT_MSG_LEN,
		.max_rdma_size = KT_MSG_LEN,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = KT_SLOTS,
		.max_request_dtos = KT_SLOTS,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};
	DAT_RETURN ret;
	u32 slot;

	ret = dat_ep_create(net->ia, net->pz, net->evd, net->evd, net->evd,
			    &attr, &net->ctrl.ep);
	if (ret != DAT_SUCCESS) {
		net->ctrl.ep = NULL;
		return dat_errno("dat_ep_create", ret);
	}
	for (slot = 0; slot < KT_SLOTS; slot++)
		kt_ctrl_post(net, slot);
	return net->ctrl.down ? -EIO : 0;
}

/* Make an Endpoint for the first connection. */
int kt_ctrl_make(struct kt_net *net)
{
	int err = kt_ctrl_memory(net) ?: kt_ctrl_ep(net);

	net->ctrl.heard = jiffies;
	net->ctrl.told = jiffies;
	if (err)
		kt_fail(net, err, "%s has no resources left", net->cmd->ia);
	return err;
}

/* Undo kt_ctrl_make(), whether it has failed or not; another one may follow. */
void kt_ctrl_free(struct kt_net *net)
{
	struct kt_ctrl *ctrl = &net->ctrl;

	if (ctrl->ep)
		dat_ep_free(ctrl->ep);
	/* Refused while a driver does not let go of a connection: the device keeps the buffer. */
	if (ctrl->lmr && DAT_GET_TYPE(dat_lmr_free(ctrl->lmr)) == DAT_INVALID_STATE) {
		pr_err("a connection does not end: %d bytes are lost\n", KT_CTRL_LEN);
		ctrl->buf = NULL;
	}
	if (ctrl->buf)
		free_pages_exact(ctrl->buf, KT_CTRL_LEN);
	memset(ctrl, 0, sizeof(*ctrl));
}

int kt_ctrl_connect(struct kt_net *net)
{
	struct kt_hello hello;
	DAT_RETURN ret;

	kt_hello(net, 0, &hello);
	hello.token = 0;
	ret = dat_ep_connect(net->ctrl.ep, kt_address(&net->addr),
			     net->port, 10 * USEC_PER_SEC, sizeof(hello),
			     &hello, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS)
		return kt_fail(net, -EADDRNOTAVAIL, "%s cannot be reached through %s",
			       net->cmd->host, net->cmd->ia);
	if (ret != DAT_SUCCESS)
		return kt_fail(net, dat_errno("dat_ep_connect", ret),
			       "%s refuses to connect", net->cmd->ia);
	return 0;
}

/*
 * Send a message. The peer takes no more than what it has asked for, so a slot is free
 * unless the peer is slow; then nothing is sent.
 */
int kt_ctrl_send(struct kt_net *net, struct kt_msg *msg, enum kt_msg_type type)
{
	struct kt_ctrl *ctrl = &net->ctrl;
	DAT_DTO_COOKIE cookie;
	DAT_LMR_TRIPLET seg;
	u32 slot;

	if (!ctrl->up || ctrl->down)
		return -ENOTCONN;
	slot = ffz(ctrl->busy);
	if (ctrl->busy == U32_MAX)
		return -EAGAIN;
	msg->magic = cpu_to_le32(KT_MAGIC);
	msg->version = KT_VERSION;
	msg->type = type;
	memcpy(kt_slot(ctrl, KT_SENDS + slot), msg, sizeof(*msg));
	seg = kt_slot_seg(ctrl, KT_SENDS + slot);
	cookie.as_64 = KT_SENDS + slot;
	if (dat_ep_post_send(ctrl->ep, 1, &seg, cookie,
			     DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		return -ENOTCONN;
	ctrl->busy |= BIT(slot);
	ctrl->told = jiffies;
	return 0;
}

static void kt_ctrl_completion(struct kt_net *net,
			       const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kt_ctrl *ctrl = &net->ctrl;
	const struct kt_msg *msg;
	u64 slot = dto->user_cookie.as_64;

	/* It may be of an Endpoint that was freed. */
	if (dto->ep_handle != ctrl->ep)
		return;
	if (dto->status != DAT_DTO_SUCCESS) {
		ctrl->down = true;
		return;
	}
	if (slot >= KT_SENDS) {
		ctrl->busy &= ~BIT(slot - KT_SENDS);
		return;
	}
	msg = kt_slot(ctrl, slot);
	ctrl->heard = jiffies;
	if (dto->transfered_length != sizeof(*msg) ||
	    le32_to_cpu(msg->magic) != KT_MAGIC || msg->version != KT_VERSION) {
		kt_fail(net, -EPROTO, "the peer speaks another language");
		return;
	}
	if (msg->type != KT_MSG_ALIVE)
		net->on_msg(net, msg);
	kt_ctrl_post(net, slot);
}

/* A request or an event of the first connection was reaped. */
void kt_ctrl_event(struct kt_net *net, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn =
		&event->event_data.connect_event_data;
	struct kt_ctrl *ctrl = &net->ctrl;

	if (event->event_number == DAT_DTO_COMPLETION_EVENT) {
		kt_ctrl_completion(net, &event->event_data.dto_completion_event_data);
		return;
	}
	if (conn->ep_handle != ctrl->ep)
		return;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		ctrl->up = true;
		ctrl->heard = jiffies;
		return;
	}
	ctrl->event = event->event_number;
	if (event->event_number == DAT_CONNECTION_EVENT_PEER_REJECTED &&
	    conn->private_data)
		strscpy(ctrl->reason, conn->private_data,
			min_t(size_t, sizeof(ctrl->reason),
			      max(conn->private_data_size, 0)));
	ctrl->down = true;
}

/* Tell the peer that this side is alive, and find out whether the peer is. */
void kt_ctrl_tick(struct kt_net *net)
{
	struct kt_ctrl *ctrl = &net->ctrl;
	struct kt_msg *msg;

	if (!ctrl->up || ctrl->down)
		return;
	if (time_after(jiffies, ctrl->heard + msecs_to_jiffies(KT_SILENCE_MS))) {
		ctrl->event = DAT_CONNECTION_EVENT_TIMED_OUT;
		ctrl->down = true;
		return;
	}
	if (time_before(jiffies, ctrl->told + msecs_to_jiffies(KT_ALIVE_MS)))
		return;
	msg = kzalloc(sizeof(*msg), GFP_KERNEL);
	if (msg)
		kt_ctrl_send(net, msg, KT_MSG_ALIVE);
	kfree(msg);
}
