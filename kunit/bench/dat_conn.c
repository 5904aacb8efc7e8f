// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kDAPL: making a pair.
 *
 * Each pair opens the IA for itself, so that closing it frees everything.
 * Connection events are dequeued; each step waits for the one before.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include "dat.h"

int dat_errno(const char *call, DAT_RETURN ret)
{
	const char *type = "?", *subtype = "?";

	if (likely(ret == DAT_SUCCESS))
		return 0;
	dat_strerror(ret, &type, &subtype);
	pr_err_ratelimited("kdapl_bench: %s: %s %s\n", call, type, subtype);
	return -EIO;
}

static int dat_open_ia(const char *device, DAT_IA_HANDLE *ia,
		       DAT_EVD_HANDLE *async_evd)
{
	int err;

	*async_evd = NULL;
	err = dat_errno("dat_ia_open",
			dat_ia_open((DAT_NAME_PTR)device, 8, async_evd, ia));
	if (err)
		*ia = NULL;
	return err;
}

/* Find the address that both contenders use. */
int bench_dat_address(const char *device, struct sockaddr_storage *addr)
{
	DAT_EVD_HANDLE async_evd;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR *attr;
	int err;

	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	err = dat_open_ia(device, &ia, &async_evd);
	if (err)
		goto out;
	err = dat_errno("dat_ia_query",
			dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR,
				     attr, DAT_PROVIDER_FIELD_NONE, NULL));
	if (!err && attr->ia_address_ptr->sa_family == AF_INET6)
		memcpy(addr, attr->ia_address_ptr, sizeof(DAT_SOCK_ADDR6));
	else if (!err)
		memcpy(addr, attr->ia_address_ptr, sizeof(DAT_SOCK_ADDR));
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
out:
	kfree(attr);
	return err;
}

static int dat_make_evds(struct dat_pair *dp, struct dat_side *dat)
{
	DAT_UPCALL_OBJECT upcall = {
		.instance_data = dat,
		.upcall_func = dat_upcall,
	};
	DAT_COUNT qlen = 2 * BENCH_DEPTH + 4 * dp->pair.shape.idle;
	DAT_UPCALL_POLICY policy = dp->pair.shape.upcall ?
		DAT_UPCALL_SINGLE_INSTANCE : DAT_UPCALL_DISABLE;
	DAT_RETURN ret;

	ret = dat_evd_kcreate(dp->ia, 8, DAT_UPCALL_DISABLE, NULL,
			      DAT_EVD_CONNECTION_FLAG, &dat->conn_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(dp->ia, qlen, policy, &upcall,
				      DAT_EVD_DTO_FLAG, &dat->evd);
	dat->recv_evd = dat->evd;
	if (ret == DAT_SUCCESS && !dp->pair.shape.upcall)
		ret = dat_evd_kcreate(dp->ia, qlen, policy, &upcall,
				      DAT_EVD_DTO_FLAG, &dat->recv_evd);
	return dat_errno("dat_evd_kcreate", ret);
}

static int dat_make_lmr(struct dat_pair *dp, struct dat_side *dat)
{
	DAT_REGION_DESCRIPTION region = { .for_va = dat->side.buf };
	DAT_LMR_HANDLE lmr;

	return dat_errno("dat_lmr_kcreate",
			 dat_lmr_kcreate(dp->ia, DAT_MEM_TYPE_VIRTUAL, region,
					 2 * BENCH_BUF, dp->pz,
					 DAT_MEM_PRIV_LOCAL_READ_FLAG |
					 DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
					 DAT_VA_TYPE_VA,
					 DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
					 &dat->context, NULL, NULL,
					 &dat->base));
}

/* Tell side 0 the address and key of the receive buffer of side 1. */
static int dat_expose(struct dat_pair *dp)
{
	struct dat_side *a = &dp->side[0], *b = &dp->side[1];
	DAT_REGION_DESCRIPTION region = { .for_va = b->side.buf + BENCH_BUF };
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	a->remote.segment_length = BENCH_BUF;
	return dat_errno("dat_lmr_kcreate",
			 dat_lmr_kcreate(dp->ia, DAT_MEM_TYPE_VIRTUAL, region,
					 BENCH_BUF, dp->pz,
					 DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
					 DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
					 DAT_VA_TYPE_VA,
					 DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
					 &context, &a->remote.rmr_context, NULL,
					 &a->remote.virtual_address));
}

/* Make an Endpoint with room for @depth DTOs in each direction. */
static int dat_make_ep(struct dat_pair *dp, struct dat_side *dat, int depth,
		       DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = BENCH_BUF,
		.max_rdma_size = BENCH_BUF,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = depth,
		.max_request_dtos = depth,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 1,
		.max_rdma_read_out = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	if (!dat->srq)
		return dat_errno("dat_ep_create",
				 dat_ep_create(dp->ia, dp->pz, dat->recv_evd,
					       dat->evd, dat->conn_evd, &attr,
					       ep));
	return dat_errno("dat_ep_create_with_srq",
			 dat_ep_create_with_srq(dp->ia, dp->pz, dat->recv_evd,
						dat->evd, dat->conn_evd,
						dat->srq, &attr, ep));
}

static int dat_make_srq(struct dat_pair *dp, struct dat_side *dat)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = BENCH_DEPTH,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};

	return dat_errno("dat_srq_create",
			 dat_srq_create(dp->ia, dp->pz, &attr, &dat->srq));
}

static int dat_make_side(struct dat_pair *dp, struct dat_side *dat, bool srq)
{
	struct bench_side *side = &dat->side;

	side->ops = &bench_dat_ops;
	side->pair = &dp->pair;
	side->recv_len = BENCH_BUF;
	side->buf = bench_buf_alloc();
	if (!side->buf)
		return -ENOMEM;
	return dat_make_evds(dp, dat) ?: dat_make_lmr(dp, dat) ?:
	       (srq ? dat_make_srq(dp, dat) : 0) ?:
	       dat_make_ep(dp, dat, BENCH_DEPTH, &dat->ep);
}

/* Dequeue an event that must have this number. */
static int dat_expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
		      DAT_EVENT *event)
{
	unsigned long end = jiffies + BENCH_TIMEOUT;

	while (dat_evd_dequeue(evd, event) != DAT_SUCCESS) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		bench_pause();
	}
	if (event->event_number == number)
		return 0;
	pr_err("kdapl_bench: event %#x instead of %#x\n", event->event_number,
	       number);
	return -ECONNREFUSED;
}

/* Connect two Endpoints, one of each side. */
static int dat_connect_eps(struct dat_pair *dp, struct sockaddr *addr,
			   DAT_EP_HANDLE from, DAT_EP_HANDLE to,
			   DAT_EVENT *event)
{
	struct dat_side *a = &dp->side[0], *b = &dp->side[1];
	int err;

	err = dat_errno("dat_ep_connect",
			dat_ep_connect(from, addr, dp->qual,
				       DAT_TIMEOUT_INFINITE, 0, NULL,
				       DAT_QOS_BEST_EFFORT,
				       DAT_CONNECT_DEFAULT_FLAG));
	err = err ?: dat_expect(dp->cr_evd, DAT_CONNECTION_REQUEST_EVENT,
				event);
	err = err ?: dat_errno("dat_cr_accept",
			       dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle,
					     to, 0, NULL));
	err = err ?: dat_expect(a->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
				event);
	return err ?: dat_expect(b->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
				 event);
}

/* Make and connect Endpoints that are not used. */
static int dat_connect_idle(struct dat_pair *dp, struct sockaddr *addr,
			    DAT_EVENT *event)
{
	DAT_EP_HANDLE from, to;
	unsigned int i;
	int err = 0;

	for (i = 0; i < dp->pair.shape.idle && !err; i++) {
		err = dat_make_ep(dp, &dp->side[0], 1, &from) ?:
		      dat_make_ep(dp, &dp->side[1], 1, &to) ?:
		      dat_connect_eps(dp, addr, from, to, event);
		cond_resched();
	}
	return err;
}

static int dat_connect(struct dat_pair *dp, struct sockaddr *addr)
{
	DAT_EVENT *event;
	int err;

	event = kzalloc(sizeof(*event), GFP_KERNEL);
	if (!event)
		return -ENOMEM;
	err = dat_errno("dat_psp_create_any",
			dat_psp_create_any(dp->ia, &dp->qual, dp->cr_evd,
					   DAT_PSP_CONSUMER_FLAG, &dp->psp));
	err = err ?: dat_connect_eps(dp, addr, dp->side[0].ep, dp->side[1].ep,
				     event);
	err = err ?: dat_connect_idle(dp, addr, event);
	kfree(event);
	return err;
}

void dat_close(struct bench_pair *pair)
{
	struct dat_pair *dp = container_of(pair, struct dat_pair, pair);
	int i;

	WRITE_ONCE(dp->closing, true);
	if (dp->ia)
		dat_ia_close(dp->ia, DAT_CLOSE_ABRUPT_FLAG);
	for (i = 0; i < 2; i++)
		bench_buf_free(dp->side[i].side.buf);
	kfree(dp);
}

static int dat_make(struct dat_pair *dp, const char *device)
{
	struct dat_side *a = &dp->side[0], *b = &dp->side[1];
	struct sockaddr_storage addr = { };
	int err;

	err = bench_dat_address(device, &addr);
	err = err ?: dat_open_ia(device, &dp->ia, &dp->async_evd);
	err = err ?: dat_errno("dat_pz_create",
			       dat_pz_create(dp->ia, &dp->pz));
	err = err ?: dat_errno("dat_evd_kcreate",
			       dat_evd_kcreate(dp->ia, 8, DAT_UPCALL_DISABLE,
					       NULL, DAT_EVD_CR_FLAG,
					       &dp->cr_evd));
	err = err ?: dat_make_side(dp, a, false);
	err = err ?: dat_make_side(dp, b, dp->pair.shape.srq);
	err = err ?: dat_connect(dp, (struct sockaddr *)&addr);
	if (err || !dp->pair.shape.upcall)
		return err;
	err = dat_expose(dp);
	err = err ?: a->side.ops->post_recv(&a->side, BENCH_RESERVE);
	return err ?: b->side.ops->post_recv(&b->side, BENCH_RESERVE);
}

struct bench_pair *bench_dat_open(const char *device,
				  const struct bench_shape *shape)
{
	struct dat_pair *dp;
	int i, err;

	dp = kzalloc(sizeof(*dp), GFP_KERNEL);
	if (!dp)
		return ERR_PTR(-ENOMEM);
	bench_pair_init(&dp->pair, &bench_dat_ops, shape);
	for (i = 0; i < 2; i++)
		dp->pair.side[i] = &dp->side[i].side;
	err = dat_make(dp, device);
	if (err) {
		dat_close(&dp->pair);
		return ERR_PTR(err);
	}
	return &dp->pair;
}
