// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: peers that lie, or do not go on, see liar.h.
 */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/module.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>
#include "liar.h"
#include "probe.h"

/* ---- Another address ------------------------------------------------------- */

static __be32 kd_lie_addr;

/*
 * rdma_cm is about to tell of a route: the request that is sent next has the address of
 * the id in it. A struct rdma_id_private begins with the struct rdma_cm_id.
 */
static void kd_lies(void *unused, struct rdma_cm_id *id,
		    const struct rdma_cm_event *event)
{
	struct sockaddr_in *from = (void *)&id->route.addr.src_addr;
	__be32 addr = READ_ONCE(kd_lie_addr);

	if (addr && event->event == RDMA_CM_EVENT_ROUTE_RESOLVED &&
	    from->sin_family == AF_INET)
		from->sin_addr.s_addr = addr;
}

static void kd_lie_end(void *unused)
{
	WRITE_ONCE(kd_lie_addr, 0);
}

/*
 * Have connection requests over IPv4 say that they come from @addr, until the case ends
 * or @addr is 0; their packets come from where they did. Skip the case over iWARP.
 */
void kd_lie(struct kunit *test, __be32 addr)
{
	bool first = !READ_ONCE(kd_lie_addr);

	if (kd_ia_has(*(const char * const *)test->param_value, KD_IWARP))
		kunit_skip(test, "the address is that of a TCP connection");
	if (addr && first) {
		kd_probe(test, "cm_event_handler", kd_lies);
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_lie_end, NULL));
	}
	WRITE_ONCE(kd_lie_addr, addr);
}
EXPORT_SYMBOL_GPL(kd_lie);

/* ---- Half a connection ------------------------------------------------------ */

/*
 * struct kd_half - a peer that takes the answer to its request, and goes no further
 * @step: completed when an event has come
 * @event: the last one
 */
struct kd_half {
	struct completion step;
	enum rdma_cm_event_type event;
};

static atomic_t kd_half_qps;

static int kd_half_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kd_half *half = id->context;

	WRITE_ONCE(half->event, event->event);
	complete(&half->step);
	return 0;
}

static void kd_half_end(void *id)
{
	rdma_destroy_id(id);
}

/* @err is what a call has returned; expect that it leads to an event of the type @want. */
static void kd_half_step(struct kunit *test, struct kd_half *half, int err,
			 int want)
{
	int event;

	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_NE(test, 0, wait_for_completion_timeout(&half->step,
							     msecs_to_jiffies(KD_TIMEOUT_MS)));
	event = READ_ONCE(half->event);
	KUNIT_ASSERT_EQ(test, event, want);
}

/*
 * Have a peer at the address of @side ask for a connection to @port there, be accepted,
 * and say no more: the passive side does not learn that the answer has arrived. @pd:
 * private data, @len bytes. It goes when the case ends. Skip the case over iWARP.
 */
void kd_half_connect(struct kd_side *side, u16 port, const void *pd, u8 len)
{
	struct rdma_conn_param param = {
		.private_data = pd,
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		/* A second request for a QP would be the end of the first connection. */
		.qp_num = 0x700000 | (atomic_inc_return(&kd_half_qps) & 0xffff),
	};
	struct kunit *test = side->test;
	struct sockaddr_in6 to = { };
	struct rdma_cm_id *id;
	struct kd_half *half;

	if (kd_is_iwarp(side))
		kunit_skip(test, "TCP has connected before");
	half = kunit_kzalloc(test, sizeof(*half), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, half);
	init_completion(&half->step);
	id = rdma_create_id(&init_net, kd_half_event, half, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_half_end, id));
	memcpy(&to, side->addr, rdma_addr_size(side->addr));
	/* It is at the same place in both. */
	to.sin6_port = htons(port);
	kd_half_step(test, half, rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000),
		     RDMA_CM_EVENT_ADDR_RESOLVED);
	kd_half_step(test, half, rdma_resolve_route(id, 2000), RDMA_CM_EVENT_ROUTE_RESOLVED);
	kd_half_step(test, half, rdma_connect(id, &param), RDMA_CM_EVENT_CONNECT_RESPONSE);
}
EXPORT_SYMBOL_GPL(kd_half_connect);
