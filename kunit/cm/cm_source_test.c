// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * From which of its addresses, and by which link, an IA connects (contract N2): the
 * routing table chooses, and the scope of a link-local address names a link.
 */
#include <dat/kdat_linux.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/ipv6.h>
#include "fixture.h"
#include "shell.h"

#define TIMEOUT	(60 * USEC_PER_SEC)

/*
 * struct wire - the network of a case
 * @undo: commands of the shell, see run()
 */
struct wire {
	struct kunit *test;
	const struct kd_bed *bed;
	const char *undo;
};

/* Run @commands with the network's device in $d and its number in $n. */
static int run(struct wire *wire, const char *commands)
{
	char line[512];

	snprintf(line, sizeof(line), "set -e; d=%s n=%d; %s", wire->bed->netdev, wire->bed->net,
		 commands);
	return shell(line);
}

static void undo(void *data)
{
	struct wire *wire = data;

	run(wire, wire->undo);
}

/* Change the network of @s, and have it changed back when the case ends. */
static struct wire *change(struct kd_side *s, const char *commands, const char *undo_commands)
{
	struct wire *wire = kunit_kzalloc(s->test, sizeof(*wire), GFP_KERNEL);

	kd_skip_own(s->test, KD_NEEDS_BED);
	KUNIT_ASSERT_NOT_NULL(s->test, wire);
	*wire = (struct wire) { s->test, kd_bed_of(s->name), undo_commands };
	KUNIT_ASSERT_EQ(s->test, 0, kunit_add_action_or_reset(s->test, undo, wire));
	KUNIT_ASSERT_EQ(s->test, 0, run(wire, commands));
	return wire;
}

/* Return the address that @format makes of the number of the network of @s. */
static struct sockaddr_storage address(struct kd_side *s, const char *format)
{
	struct sockaddr_storage addr = { };
	char text[64];

	snprintf(text, sizeof(text), format, kd_bed_of(s->name)->net);
	KUNIT_ASSERT_EQ(s->test, 0, inet_pton_with_scope(&init_net, AF_UNSPEC, text, NULL,
							 &addr));
	return addr;
}

struct found {
	struct kd_side *s;
	struct sockaddr_storage addr;
};

static bool is_found(void *data)
{
	struct found *f = data;
	char name[DAT_NAME_MAX_LENGTH];

	return kdat_ia_find((struct sockaddr *)&f->addr, name) == DAT_SUCCESS &&
	       !strcmp(name, f->s->name);
}

/* Wait until the device of @s knows that it has @addr. */
static void wait_for(struct kd_side *s, struct sockaddr_storage addr)
{
	struct found f = { s, addr };

	KUNIT_ASSERT_TRUE(s->test, kd_wait_until(is_found, &f, KD_TIMEOUT_MS));
}

/* Begin to connect to @to, which need not be there: the attempt is from @from. */
static void expect_source(struct kd_side *s, struct sockaddr_storage to,
			  struct sockaddr_storage from)
{
	struct kunit *test = s->test;
	DAT_EP_PARAM *param = kunit_kzalloc(test, sizeof(*param), GFP_KERNEL);
	struct sockaddr_in6 *in6, *from6 = (void *)&from;
	struct sockaddr_in *in, *from4 = (void *)&from;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, param);
	KD_ASSERT_OK(test, dat_ep_connect(s->ep, (void *)&to, kd_port(), TIMEOUT,
					  0, NULL, DAT_QOS_BEST_EFFORT, 0));
	KD_ASSERT_OK(test, dat_ep_query(s->ep, DAT_EP_FIELD_ALL, param));
	in = (struct sockaddr_in *)param->local_ia_address_ptr;
	in6 = (struct sockaddr_in6 *)in;
	KUNIT_ASSERT_EQ(test, (int)in->sin_family, (int)from.ss_family);
	if (from.ss_family == AF_INET) {
		KUNIT_EXPECT_EQ_MSG(test, ntohl(in->sin_addr.s_addr),
				    ntohl(from4->sin_addr.s_addr), "from %pIS, not %pIS",
				    in, &from);
	} else {
		KUNIT_EXPECT_TRUE_MSG(test, ipv6_addr_equal(&in6->sin6_addr,
							    &from6->sin6_addr),
				      "from %pIS, not %pIS", in6, &from);
		KUNIT_EXPECT_EQ(test, in6->sin6_scope_id, from6->sin6_scope_id);
	}
	KD_EXPECT_OK(test, dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_wait_event(s->conn_evd, &event, KD_TIMEOUT_MS));
	KD_ASSERT_OK(test, dat_ep_reset(s->ep));
}

static struct kd_side *side(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, NULL);
	return s;
}

/*
 * Return a side whose device has the address @added meanwhile, by @up; @down removes it. In the
 * addresses and in what expect_route() is given, %d is the number of the network.
 */
static struct kd_side *with_route(struct kunit *test, const char *up, const char *down,
				  const char *added)
{
	struct kd_side *s = side(test);

	change(s, up, down);
	wait_for(s, address(s, added));
	return s;
}

static void expect_route(struct kd_side *s, const char *to, const char *from)
{
	expect_source(s, address(s, to), address(s, from));
}

/* A route names the source address of packets that go through a gateway. */
static void N2_source_of_a_route(struct kunit *test)
{
	struct kd_side *s =
		with_route(test, "ip addr add 10.128.$n.1/32 dev $d; "
			   "ip route add 10.$n.64.0/24 via 10.$n.0.254 src 10.128.$n.1",
			   "set +e; ip addr del 10.128.$n.1/32 dev $d; ip route del 10.$n.64.0/24",
			   "10.128.%d.1");

	expect_route(s, "10.%d.64.7", "10.128.%d.1");
	expect_route(s, "10.%d.0.7", "10.%d.0.1");
}

/* A route to one host of the network itself has another source than the others. */
static void N2_source_of_a_host_route(struct kunit *test)
{
	struct kd_side *s =
		with_route(test, "ip addr add 10.$n.0.200/24 dev $d; "
			   "ip route add 10.$n.0.99/32 dev $d src 10.$n.0.200",
			   "set +e; ip addr del 10.$n.0.200/24 dev $d; ip route del 10.$n.0.99/32",
			   "10.%d.0.200");

	expect_route(s, "10.%d.0.99", "10.%d.0.200");
	expect_route(s, "10.%d.0.98", "10.%d.0.1");
}

static void N2_source_of_a_route_ipv6(struct kunit *test)
{
	struct kd_side *s =
		with_route(test, "ip addr add fd00:$n::200/128 dev $d nodad; "
			   "ip -6 route add fd00:$n::99/128 dev $d src fd00:$n::200",
			   "set +e; ip -6 route del fd00:$n::99/128; "
			   "ip addr del fd00:$n::200/128 dev $d", "fd00:%d::200");

	expect_route(s, "fd00:%d::99", "fd00:%d::200");
}

/*
 * The routing table prefers another adapter, which is on the same network: the IA goes on
 * connecting from its own address, and by its own link.
 */
static void N2_source_although_another_adapter_is_nearer(struct kunit *test)
{
	struct kd_side *s = side(test);
	char commands[256];

	snprintf(commands, sizeof(commands),
		 "ip route add 10.$n.0.99/32 dev %s && ip addr add 10.128.$n.1/32 dev $d; "
		 "ip route add 10.$n.0.99/32 dev $d src 10.128.$n.1 metric 99",
		 kd_other_bed(kd_bed_of(s->name))->netdev);
	change(s, commands, "set +e; ip route del 10.$n.0.99/32; ip route del 10.$n.0.99/32; "
	       "ip addr del 10.128.$n.1/32 dev $d");
	wait_for(s, address(s, "10.128.%d.1"));
	expect_source(s, address(s, "10.%d.0.99"), address(s, "10.128.%d.1"));
}

/* Return the index of the network device @name. */
static int link_of(struct kunit *test, const char *name)
{
	struct net_device *ndev = dev_get_by_name(&init_net, name);
	int ifindex;

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	ifindex = ndev->ifindex;
	dev_put(ndev);
	return ifindex;
}

/* Return @text on the link @name. */
static struct sockaddr_storage on_link(struct kd_side *s, const char *text, const char *name)
{
	struct sockaddr_storage addr = { };
	char full[64];

	snprintf(full, sizeof(full), "%s%%%s", text, name);
	KUNIT_ASSERT_EQ(s->test, 0, inet_pton_with_scope(&init_net, AF_INET6, full, NULL,
							 &addr));
	KUNIT_EXPECT_EQ(s->test, (int)((struct sockaddr_in6 *)&addr)->sin6_scope_id,
			link_of(s->test, name));
	return addr;
}

/* A link-local address of another link than the adapter's cannot be reached. */
static void N2_scope_of_another_link(struct kunit *test)
{
	struct kd_side *s = side(test);
	const struct kd_bed *bed = kd_bed_of(s->name), *other = kd_other_bed(bed);
	struct sockaddr_storage to, from;

	change(s, "ip addr add fe80::88/64 dev $d nodad", "ip addr del fe80::88/64 dev $d");
	from = on_link(s, "fe80::88", bed->netdev);
	wait_for(s, from);
	expect_source(s, on_link(s, "fe80::77", bed->netdev), from);
	to = on_link(s, "fe80::77", other->netdev);
	KUNIT_EXPECT_EQ(test, dat_ep_connect(s->ep, (void *)&to, kd_port(),
					     TIMEOUT, 0, NULL, DAT_QOS_BEST_EFFORT, 0),
			DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE));
	kd_expect_no_event(test, s->conn_evd);
	KUNIT_EXPECT_EQ(test, (int)kd_state(s), (int)DAT_EP_STATE_UNCONNECTED);
}

/* Of several links of an adapter the scope chooses, though they have the same addresses. */
static void N2_scope_of_a_vlan(struct kunit *test)
{
	struct kd_side *s = side(test);
	struct sockaddr_storage from;
	struct wire *wire;

	if (kd_is_iwarp(s))
		kunit_skip(test, "siw has one link");
	wire = change(s, "ip addr add fe80::88/64 dev $d nodad",
		      "set +e; ip link del $d.10; ip addr del fe80::88/64 dev $d");
	if (run(wire, "ip link add link $d name $d.10 type vlan id 10"))
		kunit_skip(test, "the kernel has no VLANs");
	KUNIT_ASSERT_EQ(test, 0,
			run(wire, "ip addr add fe80::88/64 dev $d.10 nodad; ip link set $d.10 up"));
	from = on_link(s, "fe80::88", "v0");
	wait_for(s, from);
	expect_source(s, on_link(s, "fe80::77", "v0"), from);
	from = on_link(s, "fe80::88", "v0.10");
	wait_for(s, from);
	expect_source(s, on_link(s, "fe80::77", "v0.10"), from);
}

static struct kunit_case cm_source_cases[] = {
	KUNIT_CASE_PARAM(N2_source_of_a_route, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_source_of_a_host_route, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_source_of_a_route_ipv6, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_source_although_another_adapter_is_nearer, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_scope_of_another_link, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_scope_of_a_vlan, kd_gen_wired_ia),
	{}
};

KD_SUITE("kdapl-cm-source", cm_source_cases, "where connections come from");
