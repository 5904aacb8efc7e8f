// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kDAPL: posting and completing, see side.h. */
#include <linux/kernel.h>
#include "dat.h"

static DAT_LMR_TRIPLET dat_iov(struct dat_side *dat, u32 off, u32 len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = dat->base + off,
		.segment_length = len,
		.lmr_context = dat->context,
	};
}

static int dat_post_srq_recv(struct dat_side *dat, int n)
{
	struct bench_side *side = &dat->side;
	DAT_LMR_TRIPLET iov = dat_iov(dat, side->room, side->recv_len);
	DAT_DTO_COOKIE cookie = { .as_ptr = dat };
	DAT_RETURN ret;

	while (n--) {
		ret = dat_srq_post_recv(dat->srq, 1, &iov, cookie);
		if (ret != DAT_SUCCESS)
			return dat_errno("dat_srq_post_recv", ret);
		iov.virtual_address += side->recv_stride;
	}
	return 0;
}

static int dat_post_recv(struct bench_side *side, int n)
{
	struct dat_side *dat = to_dat(side);
	DAT_LMR_TRIPLET iov = dat_iov(dat, side->room, side->recv_len);
	DAT_DTO_COOKIE cookie = { .as_ptr = dat };
	DAT_RETURN ret;

	if (dat->srq)
		return dat_post_srq_recv(dat, n);
	while (n--) {
		ret = dat_ep_post_recv(dat->ep, 1, &iov, cookie,
				       DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			return dat_errno("dat_ep_post_recv", ret);
		iov.virtual_address += side->recv_stride;
	}
	return 0;
}

static int dat_post_send(struct bench_side *side, int n, u32 len)
{
	struct dat_side *dat = to_dat(side);
	DAT_LMR_TRIPLET iov = dat_iov(dat, 0, len);
	DAT_DTO_COOKIE cookie = { .as_ptr = dat };
	DAT_RETURN ret;

	while (n--) {
		ret = dat_ep_post_send(dat->ep, 1, &iov, cookie,
				       DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			return dat_errno("dat_ep_post_send", ret);
	}
	return 0;
}

static int dat_post_write(struct bench_side *side, int n, u32 len)
{
	struct dat_side *dat = to_dat(side);
	DAT_LMR_TRIPLET iov = dat_iov(dat, 0, len);
	DAT_DTO_COOKIE cookie = { .as_ptr = dat };
	DAT_RETURN ret;

	while (n--) {
		ret = dat_ep_post_rdma_write(dat->ep, 1, &iov, cookie,
					     &dat->remote,
					     DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			return dat_errno("dat_ep_post_rdma_write", ret);
	}
	return 0;
}

static int dat_post_read(struct bench_side *side, int n, u32 len)
{
	struct dat_side *dat = to_dat(side);
	DAT_LMR_TRIPLET iov = dat_iov(dat, 0, len);
	DAT_DTO_COOKIE cookie = { .as_ptr = dat };
	DAT_RMR_TRIPLET remote = dat->remote;
	DAT_RETURN ret;

	remote.segment_length = len;
	while (n--) {
		ret = dat_ep_post_rdma_read(dat->ep, 1, &iov, cookie, &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS)
			return dat_errno("dat_ep_post_rdma_read", ret);
	}
	return 0;
}

static int dat_reap(struct bench_side *side, enum bench_queue queue, int n)
{
	struct dat_side *dat = to_dat(side);
	DAT_EVD_HANDLE evd = queue == BENCH_SQ ? dat->evd : dat->recv_evd;
	DAT_EVENT event;
	int got;

	for (got = 0; got < n; got++) {
		if (dat_evd_dequeue(evd, &event) != DAT_SUCCESS)
			break;
		if (event.event_data.dto_completion_event_data.status !=
		    DAT_DTO_SUCCESS)
			return -EIO;
	}
	return got;
}

static int dat_hold(struct bench_side *side)
{
	return dat_errno("dat_evd_modify_upcall",
			 dat_evd_modify_upcall(to_dat(side)->evd,
					       DAT_UPCALL_DISABLE,
					       DAT_UPCALL_SAME,
					       DAT_UPCALL_INVOC_NEW));
}

static int dat_release(struct bench_side *side)
{
	return dat_errno("dat_evd_modify_upcall",
			 dat_evd_modify_upcall(to_dat(side)->evd,
					       DAT_UPCALL_SINGLE_INSTANCE,
					       DAT_UPCALL_SAME,
					       DAT_UPCALL_INVOC_ANY));
}

/*
 * Of side->depth buffers, never more are taken and never all but one, so these
 * marks do not fire.
 */
static int dat_marks(struct bench_side *side, bool on)
{
	struct dat_side *dat = to_dat(side);
	DAT_COUNT high = on ? side->depth : DAT_WATERMARK_INFINITE;
	int err;

	err = dat_errno("dat_ep_set_watermark",
			dat_ep_set_watermark(dat->ep, high, high));
	return err ?: dat_errno("dat_srq_set_lw",
				dat_srq_set_lw(dat->srq, on ? 1 : 0));
}

void dat_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct dat_side *dat = instance;
	struct bench_side *side = &dat->side;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	if (likely(dto->status == DAT_DTO_SUCCESS))
		side->done(side, dto->operation == DAT_DTO_RECEIVE ? BENCH_RQ :
								     BENCH_SQ);
	else
		side->failed(side, -EIO);
}

const struct bench_ops bench_dat_ops = {
	.post_recv = dat_post_recv,
	.post_send = dat_post_send,
	.post_write = dat_post_write,
	.post_read = dat_post_read,
	.reap = dat_reap,
	.hold = dat_hold,
	.release = dat_release,
	.marks = dat_marks,
};
