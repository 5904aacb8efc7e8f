// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kDAPL: making a pair.
 *
 * Each pair opens the IA for itself, so that closing it frees everything.
 * Connection events are dequeued; each step waits for the one before.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include "pair.h"

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
	err = err ?: dat_errno("dat_ia_close", dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
out:
	kfree(attr);
	return err;
}

/* Tell side 0 the address and key of the receive buffer of side 1. */
static int dat_expose(struct dat_pair *dp)
{
	int err = dat_side_expose(&dp->side[1]);

	dp->side[0].remote = dp->side[1].exposed;
	return err;
}

static int dat_make_side(struct dat_pair *dp, struct dat_side *dat, bool srq)
{
	int err;

	dat->ia = dp->ia;
	dat->pz = dp->pz;
	dat->idle = dp->pair.shape.more;
	bench_side_init(&dat->side, &dp->pair);
	err = dat_errno("dat_evd_kcreate",
			dat_evd_kcreate(dp->ia, 8, DAT_UPCALL_DISABLE, NULL,
					DAT_EVD_CONNECTION_FLAG,
					&dat->conn_evd));
	if (!err && srq)
		err = dat_side_srq(dat, BENCH_DEPTH, &dat->srq);
	return err ?: dat_side_make(dat);
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

static void dat_choose(struct bench_pair *pair, unsigned int i)
{
	struct dat_pair *dp = container_of(pair, struct dat_pair, pair);

	dp->side[0].ep = dp->ends[i].ep[0];
	dp->side[1].recv_evd = dp->evds[i % dp->nevds];
}

/* Make the EVDs on which side 1 receives, beside the one that it has. */
static int dat_more_evds(struct dat_pair *dp)
{
	struct dat_side *b = &dp->side[1];
	DAT_COUNT qlen = 2 * b->side.depth + 4 * b->idle;
	int err = 0;

	dp->evds[0] = b->recv_evd;
	for (dp->nevds = 1; dp->nevds < dp->pair.shape.evds && !err; dp->nevds++)
		err = dat_errno("dat_evd_kcreate",
				dat_evd_kcreate(dp->ia, qlen, DAT_UPCALL_DISABLE,
						NULL, DAT_EVD_DTO_FLAG,
						&dp->evds[dp->nevds]));
	return err;
}

/* Make and connect the Endpoints beside the first two. */
static int dat_connect_more(struct dat_pair *dp, struct sockaddr *addr,
			    DAT_EVENT *event)
{
	const struct bench_shape *shape = &dp->pair.shape;
	u32 depth = shape->evds ? bench_more_depth(shape) : 1;
	struct dat_side *a = &dp->side[0], *b = &dp->side[1];
	int err = dat_more_evds(dp);
	struct dat_ends *ends;
	unsigned int n;

	dp->ends = kvcalloc(shape->more + 1, sizeof(*dp->ends), GFP_KERNEL);
	if (!dp->ends)
		return -ENOMEM;
	dp->ends[0] = (struct dat_ends) { { a->ep, b->ep } };
	for (n = 1; n <= shape->more && !err; n++) {
		ends = &dp->ends[n];
		b->recv_evd = dp->evds[n % dp->nevds];
		err = dat_side_ep(a, depth, &ends->ep[0]) ?:
		      dat_side_ep(b, depth, &ends->ep[1]) ?:
		      dat_connect_eps(dp, addr, ends->ep[0], ends->ep[1], event);
		cond_resched();
	}
	b->recv_evd = dp->evds[0];
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
	err = err ?: dat_connect_more(dp, addr, event);
	kfree(event);
	return err;
}

static void dat_close(struct bench_pair *pair)
{
	struct dat_pair *dp = container_of(pair, struct dat_pair, pair);
	int i;

	WRITE_ONCE(pair->closing, true);
	/* What a device may still reach stays. */
	if (dp->ia && DAT_GET_TYPE(dat_ia_close(dp->ia, DAT_CLOSE_ABRUPT_FLAG)) ==
	    DAT_INVALID_STATE)
		return;
	for (i = 0; i < 2; i++)
		bench_buf_free(dp->side[i].side.buf, BENCH_BUF);
	kvfree(dp->ends);
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
	bench_pair_init(&dp->pair, dat_close, shape);
	dp->pair.choose = dat_choose;
	dp->pair.map = bench_dat_map;
	for (i = 0; i < 2; i++)
		dp->pair.side[i] = &dp->side[i].side;
	err = dat_make(dp, device);
	if (err) {
		dat_close(&dp->pair);
		return ERR_PTR(err);
	}
	return &dp->pair;
}
