// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * random_test.ko: one function for each exported call, which makes the call
 * with arguments that are mostly sensible. Pointers are valid or NULL, since
 * kDAPL need not survive others; everything else may have any value. The calls
 * of memory, Shared Receive Queues and service points are in memory_calls.c.
 */
#include <linux/in.h>
#include <linux/net.h>
#include "random.h"

static DAT_TIMEOUT timeout(struct caller *c)
{
	static const DAT_TIMEOUT some[] = {
		0, 1, 1000, 20000, 100000, 1000000, DAT_TIMEOUT_INFINITE
	};

	return some[rnd(c, ARRAY_SIZE(some))];
}

static DAT_IA_ADDRESS_PTR address(struct caller *c)
{
	if (chance(c, 94))
		return c->w->addr;
	if (chance(c, 20))
		return NULL;
	prandom_bytes_state(&c->rnd, &c->addr, sizeof(c->addr));
	if (chance(c, 50))
		c->addr.ss_family = AF_INET;
	return (DAT_IA_ADDRESS_PTR)&c->addr;
}

static DAT_EP_ATTR *ep_attr(struct caller *c)
{
	DAT_EP_ATTR *attr = &c->ep_attr;

	*attr = kd_ep_attr();
	attr->max_recv_dtos = kdr_count(c, 32);
	attr->max_request_dtos = kdr_count(c, 32);
	if (chance(c, 10))
		attr->srq_soft_hw = kdr_count(c, 8);
	if (chance(c, 10))
		attr->recv_completion_flags = kdr_flags(c);
	if (chance(c, 10))
		attr->request_completion_flags = kdr_flags(c);
	if (chance(c, 3))
		prandom_bytes_state(&c->rnd, (u8 *)attr + 4 * rnd(c, 16), 4);
	return chance(c, 5) ? NULL : attr;
}

/* ---- Registry and IA ----------------------------------------------------- */

static DAT_RETURN r_list(struct caller *c)
{
	DAT_COUNT i, n;

	for (i = 0; i < ARRAY_SIZE(c->info); i++)
		c->list[i] = OPT(c, &c->info[i]);
	return dat_registry_list_providers(min(kdr_count(c, 4), 4), OPT(c, &n),
					   c->list);
}

static DAT_RETURN r_related(struct caller *c)
{
	DAT_HA_RELATIONSHIP answer;

	return dat_registry_providers_related(OPT(c, (char *)c->w->name),
					      chance(c, 5) ? "x" :
					      (char *)c->w->name,
					      OPT(c, &answer));
}

static DAT_RETURN r_ia_open(struct caller *c)
{
	DAT_EVD_HANDLE evd = chance(c, 80) ? NULL : EVD;
	DAT_IA_HANDLE h = NULL;

	return MADE(IA, dat_ia_openv((char *)c->w->name, kdr_count(c, 32),
				     OPT(c, &evd), &h, chance(c, 95) ? 2 : 1, 0,
				     DAT_TRUE), h);
}

/* The two IAs that stay open are asked to close with invalid flags only. */
static DAT_RETURN r_ia_close(struct caller *c)
{
	DAT_HANDLE ia = IA;

	if (ia == c->pool->world[0].ia || ia == c->pool->world[1].ia)
		return dat_ia_close(ia, 2 + rnd(c, 5));
	return dat_ia_close(ia, rnd(c, 2));
}

static DAT_RETURN r_ia_query(struct caller *c)
{
	return dat_ia_query(IA, OUT, kdr_mask(c, ~0), OPT(c, &c->ia_attr),
			    kdr_mask(c, ~0), OPT(c, &c->prov_attr));
}

static DAT_RETURN r_memtype_hint(struct caller *c)
{
	DAT_VADDR align;
	DAT_VLEN len;

	return dat_ia_memtype_hint(IA, BIT(rnd(c, 9)) & ~1, kdr_count(c, 8192),
				   rnd(c, 5), OPT(c, &len), OPT(c, &align));
}

static DAT_RETURN r_reserved_lmr(struct caller *c)
{
	return dat_ia_reserved_lmr(IA, OUT, OPT(c, &c->seg[0].lmr_context));
}

static DAT_RETURN r_set_context(struct caller *c)
{
	return dat_set_consumer_context(kdr_pick(c, rnd(c, TYPES)), COOKIE);
}

static DAT_RETURN r_get_context(struct caller *c)
{
	return dat_get_consumer_context(kdr_pick(c, rnd(c, TYPES)), OUT);
}

static DAT_RETURN r_handle_type(struct caller *c)
{
	return dat_get_handle_type(kdr_pick(c, rnd(c, TYPES)), OUT);
}

static DAT_RETURN r_strerror(struct caller *c)
{
	const char *major, *minor;

	return dat_strerror(chance(c, 90) ?
			    DAT_ERROR(rnd(c, 24) << 16, rnd(c, 103)) :
			    prandom_u32_state(&c->rnd), OPT(c, &major),
			    OPT(c, &minor));
}

/* ---- EVDs ---------------------------------------------------------------- */

static DAT_UPCALL_POLICY policy(struct caller *c)
{
	static const DAT_UPCALL_POLICY some[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_DISABLE,
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY,
		DAT_UPCALL_NOTIFY, DAT_UPCALL_TEARDOWN, 17
	};

	return some[rnd(c, ARRAY_SIZE(some))];
}

static DAT_RETURN r_evd_create(struct caller *c)
{
	static const u32 streams[] = {
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, DAT_EVD_DTO_FLAG,
		DAT_EVD_CONNECTION_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DEFAULT_FLAG,
		DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG,
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_ASYNC_FLAG, 0, 0x1000
	};
	DAT_UPCALL_OBJECT upcall = { c->w, kdr_upcall };
	DAT_EVD_HANDLE h = NULL;

	return MADE(EVD, dat_evd_kcreate(IA, kdr_count(c, 64), policy(c),
					 OPT(c, &upcall),
					 streams[rnd(c, ARRAY_SIZE(streams))],
					 &h), h);
}

static DAT_RETURN r_evd_modify_upcall(struct caller *c)
{
	DAT_UPCALL_OBJECT upcall = { c->w, kdr_upcall };

	return dat_evd_modify_upcall(EVD, policy(c), chance(c, 30) ?
				     DAT_UPCALL_SAME : &upcall, rnd(c, 3));
}

static DAT_RETURN r_evd_query(struct caller *c)
{
	return dat_evd_query(EVD, kdr_mask(c, DAT_EVD_FIELD_ALL), OUT);
}

static DAT_RETURN r_evd_resize(struct caller *c)
{
	return dat_evd_resize(EVD, kdr_count(c, 200));
}

static DAT_RETURN r_post_se(struct caller *c)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	if (chance(c, 3))
		event.event_number = prandom_u32_state(&c->rnd);
	return dat_evd_post_se(kdr_pick_evd(c, DAT_EVD_SOFTWARE_FLAG),
			       OPT(c, &event));
}

static DAT_RETURN r_dequeue(struct caller *c)
{
	/*
	 * Connection requests are preferred: a peer without an answer keeps
	 * others waiting.
	 */
	DAT_EVD_HANDLE evd = chance(c, 50) ? EVD : kdr_pick_evd(c, DAT_EVD_CR_FLAG);
	DAT_EVENT event;
	DAT_RETURN ret;
	int i;

	ret = dat_evd_dequeue(evd, NULL);
	for (i = 0; i < 8; i++) {
		ret = dat_evd_dequeue(evd, &event);
		if (ret != DAT_SUCCESS)
			break;
		KUNIT_EXPECT_PTR_EQ(c->pool->test, event.evd_handle, evd);
		kdr_saw_event(c->pool, c->w, &event);
	}
	return ret;
}

static DAT_RETURN r_evd_free(struct caller *c)
{
	return dat_evd_free(EVD);
}

/* ---- Endpoints ----------------------------------------------------------- */

static DAT_RETURN r_ep_create(struct caller *c)
{
	DAT_EP_HANDLE h = NULL;

	return MADE(EP, dat_ep_create(IA, PZ, kdr_pick_evd(c, DAT_EVD_DTO_FLAG),
				      kdr_pick_evd(c, DAT_EVD_RMR_BIND_FLAG),
				      kdr_pick_evd(c, DAT_EVD_CONNECTION_FLAG),
				      ep_attr(c), &h), h);
}

static DAT_RETURN r_ep_create_with_srq(struct caller *c)
{
	DAT_EP_HANDLE h = NULL;

	return MADE(EP, dat_ep_create_with_srq(IA, PZ,
				kdr_pick_evd(c, DAT_EVD_DTO_FLAG),
				kdr_pick_evd(c, DAT_EVD_DTO_FLAG),
				kdr_pick_evd(c, DAT_EVD_CONNECTION_FLAG), SRQ,
				ep_attr(c), &h), h);
}

static DAT_RETURN r_ep_query(struct caller *c)
{
	return dat_ep_query(EP, kdr_mask(c, DAT_EP_FIELD_ALL),
			    OPT(c, &c->ep_param));
}

static DAT_RETURN r_ep_modify(struct caller *c)
{
	DAT_EP_PARAM *param = &c->ep_param;

	memset(param, 0, sizeof(*param));
	ep_attr(c);
	param->ep_attr = c->ep_attr;
	param->pz_handle = PZ;
	param->recv_evd_handle = EVD;
	param->request_evd_handle = EVD;
	param->connect_evd_handle = EVD;
	param->comm = (DAT_COMM) { AF_INET, SOCK_STREAM, 0 };
	return dat_ep_modify(EP, chance(c, 5) ? kdr_mask(c, DAT_EP_FIELD_ALL) :
			     BIT(rnd(c, 31)) | BIT(7 + rnd(c, 24)),
			     OPT(c, param));
}

static DAT_RETURN r_get_status(struct caller *c)
{
	DAT_BOOLEAN recv, request;

	return dat_ep_get_status(EP, OUT, OPT(c, &recv), OPT(c, &request));
}

static DAT_RETURN r_recv_query(struct caller *c)
{
	DAT_COUNT held = 0, span = 0;
	DAT_RETURN ret = dat_ep_recv_query(EP, &held, &span);

	if (ret == DAT_SUCCESS) {
		KUNIT_EXPECT_GE(c->pool->test, held, 0);
		KUNIT_EXPECT_GE(c->pool->test, span, held);
	}
	return chance(c, 5) ? dat_ep_recv_query(EP, NULL, NULL) : ret;
}

static DAT_RETURN r_ep_watermark(struct caller *c)
{
	return dat_ep_set_watermark(EP, kdr_count(c, 8),
				    chance(c, 80) ? -1 : kdr_count(c, 32));
}

static DAT_RETURN r_connect(struct caller *c)
{
	return dat_ep_connect(EP, address(c), kdr_port(c), timeout(c), kdr_pd_size(c),
			      OPT(c, c->pool->kmem), kdr_flags(c) & 15,
			      chance(c, 95) ? 0 : rnd(c, 5));
}

static DAT_RETURN r_dup_connect(struct caller *c)
{
	return dat_ep_dup_connect(EP, EP, timeout(c), kdr_pd_size(c),
				  OPT(c, c->pool->kmem), 0);
}

static DAT_RETURN r_common_connect(struct caller *c)
{
	DAT_IA_ADDRESS_PTR to = address(c);

	if (to == c->w->addr) {
		memcpy(&c->addr, to, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&c->addr)->sin_port = htons(kdr_port(c));
		to = (DAT_IA_ADDRESS_PTR)&c->addr;
	}
	return dat_ep_common_connect(EP, to, timeout(c), kdr_pd_size(c),
				     OPT(c, c->pool->kmem));
}

static DAT_RETURN r_disconnect(struct caller *c)
{
	return dat_ep_disconnect(EP, rnd(c, chance(c, 95) ? 2 : 4));
}

static DAT_RETURN r_ep_reset(struct caller *c)
{
	return dat_ep_reset(EP);
}

static DAT_RETURN r_ep_free(struct caller *c)
{
	return dat_ep_free(EP);
}

/* ---- Data transfer ------------------------------------------------------- */

static DAT_RETURN r_send(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);

	return dat_ep_post_send(ep, kdr_pick_segs(c), OPT(c, c->seg), COOKIE,
				kdr_flags(c));
}

static DAT_RETURN r_send_inv(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);

	return dat_ep_post_send_with_invalidate(ep, kdr_pick_segs(c),
						OPT(c, c->seg), COOKIE,
						kdr_flags(c), rnd(c, 2),
						kdr_pick_remote(c).rmr_context);
}

static DAT_RETURN r_recv(struct caller *c)
{
	DAT_EP_HANDLE ep = chance(c, 50) ? EP : kdr_pick_connected(c);

	return dat_ep_post_recv(ep, kdr_pick_segs(c), OPT(c, c->seg), COOKIE,
				kdr_flags(c));
}

static DAT_RETURN r_read(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);
	DAT_RMR_TRIPLET remote = kdr_pick_remote(c);

	return dat_ep_post_rdma_read(ep, kdr_pick_segs(c), OPT(c, c->seg), COOKIE,
				     OPT(c, &remote), kdr_flags(c));
}

static DAT_RETURN r_read_to_rmr(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);
	DAT_RMR_TRIPLET local = kdr_pick_remote(c), remote = kdr_pick_remote(c);

	return dat_ep_post_rdma_read_to_rmr(ep, OPT(c, &local), COOKIE,
					    OPT(c, &remote), kdr_flags(c));
}

static DAT_RETURN r_write(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);
	DAT_RMR_TRIPLET remote = kdr_pick_remote(c);

	return dat_ep_post_rdma_write(ep, kdr_pick_segs(c), OPT(c, c->seg), COOKIE,
				      OPT(c, &remote), kdr_flags(c));
}

/* ---- The table ----------------------------------------------------------- */

struct random_call kdr_calls[] = {
	CALL(dat_registry_list_providers, r_list, 1),
	CALL(dat_registry_providers_related, r_related, 1),
	CALL(dat_ia_openv, r_ia_open, 2),
	CALL(dat_ia_close, r_ia_close, 1),
	CALL(dat_ia_query, r_ia_query, 1),
	CALL(dat_ia_memtype_hint, r_memtype_hint, 1),
	CALL(dat_ia_reserved_lmr, r_reserved_lmr, 1),
	CALL(dat_set_consumer_context, r_set_context, 1),
	CALL(dat_get_consumer_context, r_get_context, 1),
	CALL(dat_get_handle_type, r_handle_type, 1),
	CALL(dat_strerror, r_strerror, 1),
	CALL(dat_evd_kcreate, r_evd_create, 6),
	CALL(dat_evd_modify_upcall, r_evd_modify_upcall, 3),
	CALL(dat_evd_query, r_evd_query, 1),
	CALL(dat_evd_resize, r_evd_resize, 2),
	CALL(dat_evd_post_se, r_post_se, 3),
	CALL(dat_evd_dequeue, r_dequeue, 20),
	CALL(dat_evd_free, r_evd_free, 2),
	CALL(dat_ep_create, r_ep_create, 6),
	CALL(dat_ep_create_with_srq, r_ep_create_with_srq, 6),
	CALL(dat_ep_query, r_ep_query, 1),
	CALL(dat_ep_modify, r_ep_modify, 3),
	CALL(dat_ep_get_status, r_get_status, 1),
	CALL(dat_ep_recv_query, r_recv_query, 3),
	CALL(dat_ep_set_watermark, r_ep_watermark, 2),
	CALL(dat_ep_connect, r_connect, 8),
	CALL(dat_ep_dup_connect, r_dup_connect, 2),
	CALL(dat_ep_common_connect, r_common_connect, 4),
	CALL(dat_ep_disconnect, r_disconnect, 1),
	CALL(dat_ep_reset, r_ep_reset, 1),
	CALL(dat_ep_free, r_ep_free, 1),
	CALL(dat_ep_post_send, r_send, 10),
	CALL(dat_ep_post_send_with_invalidate, r_send_inv, 3),
	CALL(dat_ep_post_recv, r_recv, 10),
	CALL(dat_ep_post_rdma_read, r_read, 5),
	CALL(dat_ep_post_rdma_read_to_rmr, r_read_to_rmr, 2),
	CALL(dat_ep_post_rdma_write, r_write, 5),
};

const unsigned int kdr_ncalls = ARRAY_SIZE(kdr_calls);
