// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory is registered while the port is down, or where TCP has ports in use (contract L2).
 */
#include <linux/module.h>
#include <rdma/iw_cm.h>
#include "device.h"
#include "../sim/kdapl_sim.h"
#include "mem_fixture.h"
#include "shell.h"

static struct ib_device *device;

/* Take the port up or down, by the switch of a simulated device or its netdev. */
static int set_port(struct kd_side *s, bool up)
{
	const struct kd_bed *bed = kd_bed_of(s->name);
	char line[160];

	if (kdapl_sim_is(device)) {
		kdapl_sim_set(device, KDAPL_SIM_port_down, !up);
		return 0;
	}
	if (!bed->netdev)
		kunit_skip(s->test, "takes the network device down");
	/* The kernel forgets IPv6 addresses of a netdev that goes down. */
	snprintf(line, sizeof(line), up ?
		 "/sbin/ip link set %s up && /sbin/ip addr add fd00:%d::1/64 dev %s nodad" :
		 "/sbin/ip link set %s down", bed->netdev, bed->net, bed->netdev);
	return shell(line);
}

static bool is_up(void *unused)
{
	struct ib_port_attr port;

	return !ib_query_port(device, 1, &port) && port.state == IB_PORT_ACTIVE;
}

static bool is_down(void *unused)
{
	return !is_up(NULL);
}

static void take_up(void *side)
{
	if (is_down(NULL))
		set_port(side, true);
}

/*
 * A registration sends nothing, so it needs no live port, nor one that was alive when
 * the Protection Zone was made. Over iWARP no queue pair can be made ready then, and
 * memory for local use alone is registered.
 */
static void L2_port_down(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct mem_pair m = { .test = test, .a = c.a, .p = c.p };
	struct kd_buf *buf;

	device = kd_device(test, c.a->name);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, take_up, c.a));
	if (set_port(c.a, false))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_down, NULL, KD_TIMEOUT_MS));
	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &c.a->pz));
	kd_buf_alloc_priv(c.a, PAGE_SIZE, false, DAT_MEM_PRIV_LOCAL_READ_FLAG |
			  DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (kd_is_iwarp(c.a))
		return;
	buf = kd_buf_alloc(c.a, KD_BUF_LEN);
	KUNIT_EXPECT_NE(test, buf->rmr_context, 0);
	KUNIT_EXPECT_TRUE(test, is_down(NULL));

	/* The key that was made then is good when the port is up. */
	KUNIT_ASSERT_EQ(test, set_port(c.a, true), 0);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_up, NULL, KD_TIMEOUT_MS));
	c.a->ep = kd_ep(c.a, NULL);
	c.a->buf = buf;
	kd_connect_pair(c.a, c.p);
	mem_write(&m, kd_remote(buf, 0, 64));
}

static struct {
	struct kd_hook device;
	atomic_t taken;
} ports;

static int connect_from_a_taken_port(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	if (atomic_dec_return(&ports.taken) >= 0)
		return -EADDRINUSE;
	return ports.device.real.iw_connect(id, param);
}

/*
 * Over iWARP a Protection Zone has a connection to itself, whose port rdma_cm chooses without
 * asking TCP, which siw shares it with.
 */
static void L2_ports_in_use(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct ib_device *dev;
	struct kd_buf *buf;

	if (!kd_is_iwarp(s))
		kunit_skip(test, "for drivers that connect themselves");
	memset(&ports, 0, sizeof(ports));
	dev = kd_hook(test, s->name, &ports.device);
	dev->ops.iw_connect = connect_from_a_taken_port;
	atomic_set(&ports.taken, 3);
	KD_ASSERT_OK(test, dat_pz_create(s->ia, &s->pz));
	buf = kd_buf_alloc(s, KD_BUF_LEN);
	KUNIT_EXPECT_NE(test, buf->rmr_context, 0);
	KUNIT_EXPECT_LT(test, atomic_read(&ports.taken), 0);
	dev->ops.iw_connect = ports.device.real.iw_connect;
}

static struct kunit_case port_down_cases[] = {
	KUNIT_CASE_PARAM(L2_port_down, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_ports_in_use, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-port-down", port_down_cases, "registration while the port is down");
