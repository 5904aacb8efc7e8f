// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kDAPL: making an end, see side.h. The owner has opened the IA and connects the
 * Endpoint. Context: process.
 */
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include "dat.h"

#define DAT_READS	4		/* RDMA Reads under way, each way */

u8 *bench_buf_alloc(u32 room)
{
	return alloc_pages_exact(2 * (size_t)room, GFP_KERNEL | __GFP_ZERO |
				 __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

void bench_buf_free(u8 *buf, u32 room)
{
	if (buf)
		free_pages_exact(buf, 2 * (size_t)room);
}

int dat_errno(const char *call, DAT_RETURN ret)
{
	const char *type = "?", *subtype = "?";

	if (likely(ret == DAT_SUCCESS))
		return 0;
	dat_strerror(ret, &type, &subtype);
	pr_err_ratelimited("%s: %s: %s %s\n", KBUILD_MODNAME, call, type,
			   subtype);
	return -EIO;
}

static int dat_make_evds(struct dat_side *dat)
{
	DAT_UPCALL_OBJECT upcall = {
		.instance_data = dat,
		.upcall_func = dat->upcall ?: dat_upcall,
	};
	DAT_EVD_FLAGS flags = DAT_EVD_DTO_FLAG |
		(dat->upcall ? DAT_EVD_SOFTWARE_FLAG : 0);
	DAT_UPCALL_POLICY policy = dat->side.upcall ?
		DAT_UPCALL_SINGLE_INSTANCE : DAT_UPCALL_DISABLE;
	DAT_COUNT qlen = 2 * dat->side.depth + 4 * dat->idle;
	DAT_RETURN ret;

	ret = dat_evd_kcreate(dat->ia, qlen, policy, &upcall, flags, &dat->evd);
	if (ret != DAT_SUCCESS) {
		dat->evd = NULL;
		return dat_errno("dat_evd_kcreate", ret);
	}
	dat->recv_evd = dat->evd;
	if (dat->side.upcall)
		return 0;
	ret = dat_evd_kcreate(dat->ia, qlen, policy, &upcall, flags,
			      &dat->recv_evd);
	if (ret != DAT_SUCCESS)
		dat->recv_evd = NULL;
	return dat_errno("dat_evd_kcreate", ret);
}

static int dat_make_lmr(struct dat_side *dat)
{
	DAT_REGION_DESCRIPTION region = { .for_va = dat->side.buf };
	DAT_RETURN ret;

	ret = dat_lmr_kcreate(dat->ia, DAT_MEM_TYPE_VIRTUAL, region,
			      2 * (u64)dat->side.room, dat->pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &dat->lmr,
			      &dat->context, NULL, NULL, &dat->base);
	if (ret != DAT_SUCCESS)
		dat->lmr = NULL;
	return dat_errno("dat_lmr_kcreate", ret);
}

/* Let the peer read and write the receive buffer: @dat->exposed is how. */
int dat_side_expose(struct dat_side *dat)
{
	DAT_REGION_DESCRIPTION region = {
		.for_va = dat->side.buf + dat->side.room,
	};
	DAT_LMR_CONTEXT context;
	DAT_RETURN ret;

	dat->exposed.segment_length = dat->side.room;
	ret = dat_lmr_kcreate(dat->ia, DAT_MEM_TYPE_VIRTUAL, region,
			      dat->side.room, dat->pz,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			      DAT_MEM_PRIV_REMOTE_READ_FLAG |
			      DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &dat->exposed_lmr,
			      &context, &dat->exposed.rmr_context, NULL,
			      &dat->exposed.virtual_address);
	if (ret != DAT_SUCCESS)
		dat->exposed_lmr = NULL;
	return dat_errno("dat_lmr_kcreate", ret);
}

/* Make an SRQ in the PZ of @dat. */
int dat_side_srq(struct dat_side *dat, u32 buffers, DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = buffers,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_RETURN ret = dat_srq_create(dat->ia, dat->pz, &attr, srq);

	if (ret != DAT_SUCCESS)
		*srq = NULL;
	return dat_errno("dat_srq_create", ret);
}

/* Make an Endpoint with room for @depth DTOs in each direction. */
int dat_side_ep(struct dat_side *dat, DAT_COUNT depth, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = dat->side.room,
		.max_rdma_size = dat->side.room,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = depth,
		.max_request_dtos = depth,
		.max_recv_iov = 1,
		.max_request_iov = dat->segments ?: 1,
		.max_rdma_read_in = DAT_READS,
		.max_rdma_read_out = DAT_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = dat->segments ?: 1,
	};
	DAT_RETURN ret;

	if (dat->srq)
		ret = dat_ep_create_with_srq(dat->ia, dat->pz, dat->recv_evd,
					     dat->evd, dat->conn_evd, dat->srq,
					     &attr, ep);
	else
		ret = dat_ep_create(dat->ia, dat->pz, dat->recv_evd, dat->evd,
				    dat->conn_evd, &attr, ep);
	if (ret != DAT_SUCCESS)
		*ep = NULL;
	return dat_errno("dat_ep_create", ret);
}

/*
 * Make all that does not need a connection. If it fails dat_side_free() has to
 * follow.
 */
int dat_side_make(struct dat_side *dat)
{
	struct bench_side *side = &dat->side;

	side->ops = &bench_dat_ops;
	if (!side->recv_len)
		side->recv_len = side->room;
	side->buf = bench_buf_alloc(side->room);
	if (!side->buf)
		return -ENOMEM;
	return dat_make_evds(dat) ?: dat_make_lmr(dat) ?:
	       dat_side_ep(dat, side->depth, &dat->ep);
}

/*
 * End the connection; no upcall runs any more. What was posted to an SRQ may still be
 * written by other ends.
 */
void dat_side_end(struct dat_side *dat)
{
	if (dat->ep)
		dat_ep_free(dat->ep);
	dat->ep = NULL;
	if (dat->recv_evd && dat->recv_evd != dat->evd)
		dat_evd_free(dat->recv_evd);
	dat->recv_evd = NULL;
	if (dat->evd)
		dat_evd_free(dat->evd);
	dat->evd = NULL;
}

/*
 * The opposite of dat_side_make(); the SRQ, which has to be gone, and the connection EVD
 * are the owner's.
 */
void dat_side_free(struct dat_side *dat)
{
	dat_side_end(dat);
	/*
	 * Refused while a driver does not let go of a connection: the device keeps the buffer.
	 * Another call would wait as long again.
	 */
	if (dat->exposed_lmr && !dat->kept)
		dat->kept = DAT_GET_TYPE(dat_lmr_free(dat->exposed_lmr)) == DAT_INVALID_STATE;
	if (dat->lmr && !dat->kept)
		dat->kept = DAT_GET_TYPE(dat_lmr_free(dat->lmr)) == DAT_INVALID_STATE;
	if (dat->kept)
		pr_err("a connection does not end: a buffer of %zu bytes is lost\n",
		       (size_t)dat->side.room);
	else
		bench_buf_free(dat->side.buf, dat->side.room);
	dat->side.buf = NULL;
}
