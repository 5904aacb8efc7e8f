// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_svcrdma.ko: as many clients as a large site has, nearly all of them idle.
 */
#include <linux/module.h>
#include "param.h"
#include "raw.h"

KD_PARAM(clients, uint, 0, "how many; 0: by default");

/* Bytes of receive buffers that a client may cost */
#define MOST_BYTES	SZ_64K

struct crowd {
	struct rpc_raw *r;
	DAT_EP_HANDLE *ep;
	unsigned int n;
};

/* Have r->s->ep be an Endpoint that can take two replies. */
static void make_endpoint(struct rpc_raw *r)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	u64 slot;

	attr.max_recv_dtos = 2;
	attr.max_request_dtos = 4;
	attr.max_rdma_read_in = 1;
	r->s->ep = kd_ep(r->s, &attr);
	for (slot = 0; slot < 2; slot++)
		rpc_raw_post(r, slot);
}

/* sunrpc has few connections of clients that have not shown that they know a file. */
static void look_at_file(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_read_f(r, 0, 8);
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_send(r));
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_receive(r, KD_TIMEOUT_MS));
	KUNIT_ASSERT_NE(r->s->test, rpc_raw_status(r), -1);
}

static void crowd_arrives(struct crowd *c)
{
	struct rpc_raw *r = c->r;
	unsigned int i;

	KD_ASSERT_OK(r->s->test, dat_ep_free(r->s->ep));
	for (i = 0; i < c->n; i++) {
		make_endpoint(r);
		KUNIT_ASSERT_TRUE_MSG(r->s->test, rpc_raw_start(r), "client %u", i);
		look_at_file(r);
		c->ep[i] = r->s->ep;
	}
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_wait_adapter(r->s, "connections", c->n, c->n,
							   KD_TIMEOUT_MS));
}

static void crowd_goes(struct crowd *c)
{
	struct kd_side *s = c->r->s;
	unsigned int i;

	for (i = 0; i < c->n; i++) {
		dat_ep_disconnect(c->ep[i], DAT_CLOSE_ABRUPT_FLAG);
		KD_EXPECT_OK(s->test, dat_ep_free(c->ep[i]));
		kd_drain(s->recv_evd);
		kd_drain(s->req_evd);
		kd_drain(s->conn_evd);
	}
	s->ep = NULL;
	KUNIT_EXPECT_TRUE(s->test, rpc_raw_wait_adapter(s, "connections", 0, 0, KD_TIMEOUT_MS));
}

/* All of them are served, and each costs little. */
static void crowd_is_cheap(struct kunit *test)
{
	struct crowd c = { .r = rpc_raw_new(test, 0) };
	long bytes;
	unsigned int i;

	c.n = clients ?: kd_slow_kernel() ? 200 : 1000;
	c.ep = kunit_kcalloc(test, c.n, sizeof(*c.ep), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, c.ep);
	crowd_arrives(&c);
	bytes = rpc_raw_adapter(c.r->s, "bytes");
	kunit_info(test, "%u clients: %ld buffers, %ld reserved, %ld bytes, %ld for each", c.n,
		   rpc_raw_adapter(c.r->s, "buffers"), rpc_raw_adapter(c.r->s, "reserved"), bytes,
		   bytes / c.n);
	KUNIT_EXPECT_LE(test, bytes / c.n, MOST_BYTES);
	for (i = 0; i < c.n; i++) {
		c.r->s->ep = c.ep[i];
		rpc_raw_expect_alive(c.r);
	}
	KUNIT_EXPECT_EQ(test, rpc_raw_adapter(c.r->s, "connections"), c.n);
	crowd_goes(&c);
	KUNIT_EXPECT_EQ(test, rpc_raw_adapter(c.r->s, "reserved"), 0);
}

static struct kunit_case svcrdma_cases[] = {
	KUNIT_CASE_PARAM(crowd_is_cheap, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-svcrdma-crowd", svcrdma_cases, "kdapl_svcrdma.ko: very many clients",
	 RPC_RAW_EXPORT);
