/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random calls: one function per exported call, which makes it with arguments
 * that are mostly sensible. Pointers are valid or NULL, since kDAPL is not
 * asked to survive others; everything else may be anything.
 */
#ifndef KDAPL_KUNIT_RANDOM_CALLS_H
#define KDAPL_KUNIT_RANDOM_CALLS_H

#include <linux/in.h>
#include <linux/net.h>
#include "pool.h"

#define IA	pick(c, DAT_HANDLE_TYPE_IA)
#define PZ	pick(c, DAT_HANDLE_TYPE_PZ)
#define EP	pick(c, DAT_HANDLE_TYPE_EP)
#define EVD	pick(c, DAT_HANDLE_TYPE_EVD)
#define LMR	pick(c, DAT_HANDLE_TYPE_LMR)
#define RMR	pick(c, DAT_HANDLE_TYPE_RMR)
#define SRQ	pick(c, DAT_HANDLE_TYPE_SRQ)
#define PSP	pick(c, DAT_HANDLE_TYPE_PSP)
#define RSP	pick(c, DAT_HANDLE_TYPE_RSP)
#define CSP	pick(c, DAT_HANDLE_TYPE_CSP)
#define CR	pick(c, DAT_HANDLE_TYPE_CR)
#define MADE(what, ret, h)	made(c, DAT_HANDLE_TYPE_##what, ret, &(h))
#define OUT	((void *)OPT(c, c->out))
#define COOKIE	kd_cookie(prandom_u32_state(&c->rnd))

static u32 mask(struct caller *c, u32 all)
{
	if (chance(c, 50))
		return all;
	return chance(c, 95) ? prandom_u32_state(&c->rnd) & all :
			       prandom_u32_state(&c->rnd);
}

/* A number around those that matter. */
static DAT_COUNT count(struct caller *c, u32 max)
{
	static const DAT_COUNT odd[] = { 0, -1, -2, S32_MAX, S32_MIN, 100000 };

	if (chance(c, 8))
		return odd[rnd(c, ARRAY_SIZE(odd))];
	return 1 + (DAT_COUNT)rnd(c, max);
}

static u32 flags(struct caller *c)
{
	return chance(c, 70) ? 0 : rnd(c, chance(c, 95) ? 16 : 256);
}

static u32 priv(struct caller *c)
{
	return chance(c, 70) ? DAT_MEM_PRIV_ALL_FLAG :
	       chance(c, 95) ? rnd(c, 64) & DAT_MEM_PRIV_ALL_FLAG :
			       prandom_u32_state(&c->rnd);
}

static u32 va_type(struct caller *c)
{
	return chance(c, 75) ? DAT_VA_TYPE_VA : rnd(c, 3);
}

static DAT_CONN_QUAL port(struct caller *c)
{
	return chance(c, 98) ? c->w->port + rnd(c, PORTS) :
			       prandom_u32_state(&c->rnd);
}

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

static DAT_COUNT pd_size(struct caller *c)
{
	return chance(c, 60) ? 0 : chance(c, 90) ? rnd(c, 57) : count(c, 300);
}

static DAT_EP_ATTR *ep_attr(struct caller *c)
{
	DAT_EP_ATTR *attr = &c->ep_attr;

	*attr = kd_ep_attr();
	attr->max_recv_dtos = count(c, 32);
	attr->max_request_dtos = count(c, 32);
	if (chance(c, 10))
		attr->srq_soft_hw = count(c, 8);
	if (chance(c, 10))
		attr->recv_completion_flags = flags(c);
	if (chance(c, 10))
		attr->request_completion_flags = flags(c);
	if (chance(c, 3))
		prandom_bytes_state(&c->rnd, (u8 *)attr + 4 * rnd(c, 16), 4);
	return chance(c, 5) ? NULL : attr;
}

static DAT_COMM *comm(struct caller *c)
{
	c->comm = (DAT_COMM) { AF_INET, SOCK_STREAM, 0 };
	if (chance(c, 5))
		c->comm.domain = prandom_u32_state(&c->rnd);
	if (chance(c, 5))
		c->comm.protocol = prandom_u32_state(&c->rnd);
	return OPT(c, &c->comm);
}

/* ---- Registry and IA ----------------------------------------------------- */

static DAT_RETURN r_list(struct caller *c)
{
	DAT_COUNT i, n;

	for (i = 0; i < ARRAY_SIZE(c->info); i++)
		c->list[i] = OPT(c, &c->info[i]);
	return dat_registry_list_providers(min(count(c, 4), 4), OPT(c, &n),
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

	return MADE(IA, dat_ia_openv((char *)c->w->name, count(c, 32),
				     OPT(c, &evd), &h, chance(c, 95) ? 2 : 1, 0,
				     DAT_TRUE), h);
}

/* Never the one that stays open. */
static DAT_RETURN r_ia_close(struct caller *c)
{
	DAT_HANDLE ia = IA;

	if (ia == c->pool->world[0].ia || ia == c->pool->world[1].ia)
		return dat_ia_close(ia, 2 + rnd(c, 5));
	return dat_ia_close(ia, rnd(c, 2));
}

static DAT_RETURN r_ia_query(struct caller *c)
{
	return dat_ia_query(IA, OUT, mask(c, ~0), OPT(c, &c->ia_attr),
			    mask(c, ~0), OPT(c, &c->prov_attr));
}

static DAT_RETURN r_memtype_hint(struct caller *c)
{
	DAT_VADDR align;
	DAT_VLEN len;

	return dat_ia_memtype_hint(IA, BIT(rnd(c, 9)) & ~1, count(c, 8192),
				   rnd(c, 5), OPT(c, &len), OPT(c, &align));
}

static DAT_RETURN r_reserved_lmr(struct caller *c)
{
	return dat_ia_reserved_lmr(IA, OUT, OPT(c, &c->seg[0].lmr_context));
}

static DAT_RETURN r_set_context(struct caller *c)
{
	return dat_set_consumer_context(pick(c, rnd(c, TYPES)), COOKIE);
}

static DAT_RETURN r_get_context(struct caller *c)
{
	return dat_get_consumer_context(pick(c, rnd(c, TYPES)), OUT);
}

static DAT_RETURN r_handle_type(struct caller *c)
{
	return dat_get_handle_type(pick(c, rnd(c, TYPES)), OUT);
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
	DAT_UPCALL_OBJECT upcall = { c->w, random_upcall };
	DAT_EVD_HANDLE h = NULL;

	return MADE(EVD, dat_evd_kcreate(IA, count(c, 64), policy(c),
					 OPT(c, &upcall),
					 streams[rnd(c, ARRAY_SIZE(streams))],
					 &h), h);
}

static DAT_RETURN r_evd_modify_upcall(struct caller *c)
{
	DAT_UPCALL_OBJECT upcall = { c->w, random_upcall };

	return dat_evd_modify_upcall(EVD, policy(c), chance(c, 30) ?
				     DAT_UPCALL_SAME : &upcall, rnd(c, 3));
}

static DAT_RETURN r_evd_query(struct caller *c)
{
	return dat_evd_query(EVD, mask(c, DAT_EVD_FIELD_ALL), OUT);
}

static DAT_RETURN r_evd_resize(struct caller *c)
{
	return dat_evd_resize(EVD, count(c, 200));
}

static DAT_RETURN r_post_se(struct caller *c)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	if (chance(c, 3))
		event.event_number = prandom_u32_state(&c->rnd);
	return dat_evd_post_se(pick_evd(c, DAT_EVD_SOFTWARE_FLAG),
			       OPT(c, &event));
}

static DAT_RETURN r_dequeue(struct caller *c)
{
	/* A peer that gets no answer keeps others waiting. */
	DAT_EVD_HANDLE evd = chance(c, 50) ? EVD : pick_evd(c, DAT_EVD_CR_FLAG);
	DAT_EVENT event;
	DAT_RETURN ret;
	int i;

	ret = dat_evd_dequeue(evd, NULL);
	for (i = 0; i < 8; i++) {
		ret = dat_evd_dequeue(evd, &event);
		if (ret != DAT_SUCCESS)
			break;
		KUNIT_EXPECT_PTR_EQ(c->pool->test, event.evd_handle, evd);
		saw_event(c->pool, c->w, &event);
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

	return MADE(EP, dat_ep_create(IA, PZ, pick_evd(c, DAT_EVD_DTO_FLAG),
				      pick_evd(c, DAT_EVD_RMR_BIND_FLAG),
				      pick_evd(c, DAT_EVD_CONNECTION_FLAG),
				      ep_attr(c), &h), h);
}

static DAT_RETURN r_ep_create_with_srq(struct caller *c)
{
	DAT_EP_HANDLE h = NULL;

	return MADE(EP, dat_ep_create_with_srq(IA, PZ,
				pick_evd(c, DAT_EVD_DTO_FLAG),
				pick_evd(c, DAT_EVD_DTO_FLAG),
				pick_evd(c, DAT_EVD_CONNECTION_FLAG), SRQ,
				ep_attr(c), &h), h);
}

static DAT_RETURN r_ep_query(struct caller *c)
{
	return dat_ep_query(EP, mask(c, DAT_EP_FIELD_ALL),
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
	return dat_ep_modify(EP, chance(c, 5) ? mask(c, DAT_EP_FIELD_ALL) :
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
	return dat_ep_set_watermark(EP, count(c, 8),
				    chance(c, 80) ? -1 : count(c, 32));
}

static DAT_RETURN r_connect(struct caller *c)
{
	return dat_ep_connect(EP, address(c), port(c), timeout(c), pd_size(c),
			      OPT(c, c->pool->kmem), flags(c) & 15,
			      chance(c, 95) ? 0 : rnd(c, 5));
}

static DAT_RETURN r_dup_connect(struct caller *c)
{
	return dat_ep_dup_connect(EP, EP, timeout(c), pd_size(c),
				  OPT(c, c->pool->kmem), 0);
}

static DAT_RETURN r_common_connect(struct caller *c)
{
	DAT_IA_ADDRESS_PTR to = address(c);

	if (to == c->w->addr) {
		memcpy(&c->addr, to, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&c->addr)->sin_port = htons(port(c));
		to = (DAT_IA_ADDRESS_PTR)&c->addr;
	}
	return dat_ep_common_connect(EP, to, timeout(c), pd_size(c),
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
	DAT_EP_HANDLE ep = pick_connected(c);

	return dat_ep_post_send(ep, pick_segs(c), OPT(c, c->seg), COOKIE,
				flags(c));
}

static DAT_RETURN r_send_inv(struct caller *c)
{
	DAT_EP_HANDLE ep = pick_connected(c);

	return dat_ep_post_send_with_invalidate(ep, pick_segs(c),
						OPT(c, c->seg), COOKIE,
						flags(c), rnd(c, 2),
						pick_remote(c).rmr_context);
}

static DAT_RETURN r_recv(struct caller *c)
{
	DAT_EP_HANDLE ep = chance(c, 50) ? EP : pick_connected(c);

	return dat_ep_post_recv(ep, pick_segs(c), OPT(c, c->seg), COOKIE,
				flags(c));
}

static DAT_RETURN r_read(struct caller *c)
{
	DAT_EP_HANDLE ep = pick_connected(c);
	DAT_RMR_TRIPLET remote = pick_remote(c);

	return dat_ep_post_rdma_read(ep, pick_segs(c), OPT(c, c->seg), COOKIE,
				     OPT(c, &remote), flags(c));
}

static DAT_RETURN r_read_to_rmr(struct caller *c)
{
	DAT_EP_HANDLE ep = pick_connected(c);
	DAT_RMR_TRIPLET local = pick_remote(c), remote = pick_remote(c);

	return dat_ep_post_rdma_read_to_rmr(ep, OPT(c, &local), COOKIE,
					    OPT(c, &remote), flags(c));
}

static DAT_RETURN r_write(struct caller *c)
{
	DAT_EP_HANDLE ep = pick_connected(c);
	DAT_RMR_TRIPLET remote = pick_remote(c);

	return dat_ep_post_rdma_write(ep, pick_segs(c), OPT(c, c->seg), COOKIE,
				      OPT(c, &remote), flags(c));
}

#endif /* KDAPL_KUNIT_RANDOM_CALLS_H */
