// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses that come and go while an IA is open, and ports with many of them
 * (contract N2).
 */
#include <linux/in.h>
#include <linux/module.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>
#include "cm.h"
#include "device.h"
#include "shell.h"

#define TIMEOUT	(20 * USEC_PER_SEC)
#define LATER	7		/* the address that comes later */
#define FIRST	100		/* first and last of many */
#define LAST	160

/* Return 10.x.0.@host of the network of @s. */
static struct sockaddr_in v4(struct kd_side *s, u8 host)
{
	kd_skip_own(s->test, KD_NEEDS_BED);
	return kd_bed_v4(s->name, host);
}

static int change_addresses(struct kd_side *s, const char *how, int first, int last)
{
	const struct kd_bed *bed = kd_bed_of(s->name);
	char line[160];

	kd_skip_own(s->test, KD_NEEDS_BED);
	snprintf(line, sizeof(line),
		 "i=%d; while [ $i -le %d ]; do echo addr %s 10.%d.0.$i/24 dev %s; i=$((i+1)); done | /sbin/ip -batch -",
		 first, last, how, bed->net, bed->netdev);
	return shell(line);
}

static void remove_later(void *side)
{
	change_addresses(side, "del", LATER, LATER);
}

static void remove_many(void *side)
{
	change_addresses(side, "del", FIRST, LAST);
}

static DAT_PSP_HANDLE any_psp;

static bool is_link_local(const struct kdapl_listener *l)
{
	const struct sockaddr *addr = (struct sockaddr *)&l->id->route.addr.src_addr;

	return addr->sa_family == AF_INET6 &&
	       ipv6_addr_type(&((struct sockaddr_in6 *)addr)->sin6_addr) & IPV6_ADDR_LINKLOCAL;
}

/*
 * Return at how many addresses the service point listens. That which a device makes for itself
 * comes some time after its link was down, in a case or a suite before.
 */
static unsigned int listeners(void)
{
	struct kdapl_listener *l;
	struct kdapl_sp *sp;
	unsigned int n = 0;

	rcu_read_lock();
	sp = kdapl_find(any_psp, DAT_HANDLE_TYPE_PSP);
	rcu_read_unlock();
	if (!sp)
		return 0;
	/* Nobody but the case frees it. */
	mutex_lock(&sp->mutex);
	list_for_each_entry(l, &sp->listeners, link)
		n += !is_link_local(l);
	mutex_unlock(&sp->mutex);
	return n;
}

static bool listens_at(void *n)
{
	return listeners() == *(unsigned int *)n;
}

static void expect_listeners(struct kunit *test, unsigned int n)
{
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(listens_at, &n, KD_TIMEOUT_MS),
			      "%u addresses", listeners());
}

/* Connect to @host's address, from it as well, and disconnect. */
static void connect_there(struct kd_pair *c, u8 host, u16 port)
{
	struct sockaddr_in to = v4(c->p, host), *from;
	struct kunit *test = c->a->test;
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;

	KD_ASSERT_OK(test, dat_ep_connect(c->a->ep, (void *)&to, port, TIMEOUT, 0,
					  NULL, DAT_QOS_BEST_EFFORT, 0));
	cr = kd_expect_cr(c->p);
	KD_ASSERT_OK(test, dat_cr_accept(cr, c->p->ep, 0, NULL));
	kd_expect_established(c->a, c->p);
	KD_ASSERT_OK(test, dat_ep_query(c->a->ep, DAT_EP_FIELD_ALL, &param));
	from = (struct sockaddr_in *)param.local_ia_address_ptr;
	KUNIT_EXPECT_EQ(test, ntohl(from->sin_addr.s_addr),
			ntohl(to.sin_addr.s_addr));
	kd_ping(c->a, c->p);
	kd_disconnect(c->a, c->p);
	KD_ASSERT_OK(test, dat_ep_reset(c->a->ep));
	KD_ASSERT_OK(test, dat_ep_reset(c->p->ep));
}

/*
 * An address that is added to the port is listened at and connected from, without any
 * call of the consumer; one that is removed is not. Twice, as it may come back.
 */
static void N2_addresses_come_and_go(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port();
	unsigned int before, round;

	any_psp = kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	before = listeners();
	KUNIT_EXPECT_GE(test, before, 2);
	for (round = 0; round < 2; round++) {
		if (change_addresses(c.p, "add", LATER, LATER))
			kunit_skip(test, "no ip command");
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_later,
								   c.p));
		expect_listeners(test, before + 1);
		connect_there(&c, LATER, port);
		connect_there(&c, 1, port);
		remove_later(c.p);
		expect_listeners(test, before);
		connect_there(&c, 1, port);
	}
}

/* @gap: what the host is not asked for before it has memory */
#define GAP_MS	1500

/* @at: when the last one came; @gap: the time before */
static struct {
	struct kd_hook device;
	atomic_t refuse;		/* listeners */
	ktime_t at;
	s64 gap;			/* ms */
} short_of;

static int short_create_listen(struct iw_cm_id *id, int backlog)
{
	ktime_t now = ktime_get();

	short_of.gap = ktime_ms_delta(now, short_of.at);
	short_of.at = now;
	return short_of.gap < GAP_MS && atomic_dec_if_positive(&short_of.refuse) >= 0 ?
		-ENOMEM : short_of.device.real.iw_create_listen(id, backlog);
}

/*
 * There is no memory to listen at an address that comes: it is not forgotten. But a host
 * that has none for long is asked less and less often. Each event of an address begins anew,
 * of this one or of another, so there are more refusals than it takes.
 */
static void N2_listens_when_there_is_memory(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port();
	unsigned int before;

	if (!kd_is_iwarp(c.p))
		kunit_skip(test, "the driver does not listen");
	any_psp = kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	before = listeners();
	kd_hook(test, c.p->name, &short_of.device)->ops.iw_create_listen =
		short_create_listen;
	short_of.at = ktime_get();
	atomic_set(&short_of.refuse, 20);
	if (change_addresses(c.p, "add", LATER, LATER))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_later, c.p));
	expect_listeners(test, before + 1);
	KUNIT_EXPECT_LT(test, atomic_read(&short_of.refuse), 20);
	KUNIT_EXPECT_GE(test, short_of.gap, GAP_MS);
	connect_there(&c, LATER, port);
}

/* Run a command of the shell with the netdev and the IPv6 prefix of @s as $d and $p. */
static int v6_command(struct kd_side *s, const char *command)
{
	const struct kd_bed *bed = kd_bed_of(s->name);
	char line[320];

	snprintf(line, sizeof(line), "d=%s p=fd00:%d c=/proc/sys/net/ipv6/conf/%s; %s",
		 bed->netdev, bed->net, bed->netdev, command);
	return shell(line);
}

static void forget_kept(void *side)
{
	v6_command(side,
		   "/sbin/ip addr del $p::7/64 dev $d; echo 0 >$c/keep_addr_on_down; echo 0 >$c/addr_gen_mode");
}

/*
 * A link keeps an address while it is down, detects duplicates when it is up again, and
 * reports neither; nor is there another address that is reported.
 */
static void N2_address_kept_while_down(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	unsigned int before;
	int err;

	kd_setup(s, NULL);
	kd_skip_own(test, KD_NEEDS_BED);
	any_psp = kd_psp(s, kd_port(), DAT_PSP_CONSUMER_FLAG);
	before = listeners();
	err = v6_command(s,
			 "echo 1 >$c/addr_gen_mode && echo 1 >$c/keep_addr_on_down && /sbin/ip -6 addr flush dev $d scope link");
	if (err)
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, forget_kept, s));
	KUNIT_ASSERT_EQ(test, 0, v6_command(s, "/sbin/ip addr add $p::7/64 dev $d"));
	expect_listeners(test, before + 1);
	err = v6_command(s,
			 "/sbin/ip link set $d down && /sbin/ip link set $d up && while /sbin/ip -6 addr show dev $d tentative | grep -q $p::7/; do sleep 0.1; done");
	KUNIT_ASSERT_EQ(test, 0, err);
	expect_listeners(test, before + 1);
}

/* A port with dozens of addresses has all of them. */
static void N2_many_addresses(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	unsigned int before, many = LAST - FIRST + 1;
	u16 port = kd_port();
	struct kd_pair c;

	kd_setup(s, NULL);
	any_psp = kd_psp(s, port, DAT_PSP_CONSUMER_FLAG);
	before = listeners();
	if (change_addresses(s, "add", FIRST, LAST))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_many, s));
	expect_listeners(test, before + many);
	KD_EXPECT_OK(test, dat_psp_free(any_psp));
	c = kd_make_pair(test, NULL);
	any_psp = kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	KUNIT_EXPECT_EQ(test, listeners(), before + many);
	connect_there(&c, LAST, port);
}

static struct kunit_case cm_follow_cases[] = {
	KUNIT_CASE_PARAM(N2_listens_when_there_is_memory, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_addresses_come_and_go, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_address_kept_while_down, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_many_addresses, kd_gen_wired_ia),
	{}
};

KD_SUITE("kdapl-cm-follow", cm_follow_cases, "addresses that come and go");
KDAPL_IMPORT_TEST;
