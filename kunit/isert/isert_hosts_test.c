// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: what the initiators of one host can do to those of another. A
 * host is an address, that of its packets, whatever its initiators say.
 */
#include <linux/in6.h>
#include <linux/module.h>
#include "device.h"
#include "liar.h"
#include "raw.h"
#include "shell.h"

#define PORT	3282
#define NP	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1/np/"
/* So many wait at a portal. */
#define PENDING	64
/* More than that, with those that LIO takes meanwhile, one in 2 seconds */
#define MANY	96

/* ---- Two hosts at one portal --------------------------------------------------------- */

static void portal_remove(void *unused)
{
	WARN_ON(shell("rmdir '" NP "[::]:3282'"));
}

/* Make a portal for IPv4 and IPv6, by whose addresses one device is two hosts. */
static void portal_make(struct kunit *test)
{
	kd_skip_own(test, KD_NEEDS_BED);
	KUNIT_ASSERT_EQ(test, 0, shell("unshare -n mkdir '" NP "[::]:3282'"));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, portal_remove, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >'" NP "[::]:3282/iser'"));
}

/* Make an initiator of the other host. */
static struct raw *new_elsewhere(struct kunit *test)
{
	struct raw *r = raw_new(test, RAW_RECVS);
	struct sockaddr_in6 *addr = kunit_kzalloc(test, sizeof(*addr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, addr);
	*addr = kd_bed_v6(r->s->name);
	r->s->addr = (DAT_IA_ADDRESS_PTR)addr;
	return r;
}

static struct raw *connect_elsewhere(struct kunit *test)
{
	struct raw *r = new_elsewhere(test);

	KUNIT_ASSERT_TRUE_MSG(test, raw_start_at(r, PORT), "another host is kept out");
	return r;
}

static void expect_login(struct raw *r)
{
	raw_request_login(r, RAW_SOLICITED, true);
	KUNIT_EXPECT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_LOGIN_RSP, 2 * KD_TIMEOUT_MS));
}

/*
 * Return the @n-th address of another host on the network of the device. rdma_cm takes no
 * request from an address that is routed elsewhere.
 */
static __be32 neighbour(struct kunit *test, int n)
{
	return kd_bed_v4(*(const char * const *)test->param_value, 100 + n).sin_addr.s_addr;
}

/* Have another initiator of the host ask to log in, if it is let in, and go no further. */
static bool one_more_stops(struct kunit *test)
{
	struct raw *r = raw_new(test, RAW_RECVS);
	DAT_EVENT event;

	if (!raw_start_at(r, PORT))
		return false;
	raw_request_login(r, RAW_SOLICITED, false);
	/* Time for the target to read it */
	return kd_wait_event(r->s->req_evd, &event, KD_TIMEOUT_MS);
}

/* Have as many as may wait, of one host, which with @lies says that it is another each time. */
static void fill(struct kunit *test, bool lies)
{
	int i = 0;

	do {
		if (lies)
			kd_lie(test, neighbour(test, i));
		KUNIT_ASSERT_LT_MSG(test, i, MANY, "nobody is refused");
		i++;
	} while (one_more_stops(test));
	KUNIT_EXPECT_GT(test, i, PENDING);
	if (lies)
		kd_lie(test, 0);
}

/* ---- Cases --------------------------------------------------------------------------- */

/*
 * One host has many that stop in their logins, which with @lies says that it is another each
 * time: another host is next when LIO takes one.
 */
static void take_turns(struct kunit *test, bool lies)
{
	struct raw *stops[4];
	int i;

	portal_make(test);
	for (i = 0; i < ARRAY_SIZE(stops); i++) {
		if (lies)
			kd_lie(test, neighbour(test, i));
		stops[i] = raw_new(test, RAW_RECVS);
		KUNIT_ASSERT_TRUE(test, raw_start_at(stops[i], PORT));
		raw_request_login(stops[i], RAW_SOLICITED, false);
	}
	/* LIO answers one of those, and has taken another one. */
	expect_login(connect_elsewhere(test));
	KUNIT_EXPECT_FALSE(test, raw_is_down(stops[ARRAY_SIZE(stops) - 1], 0));
}

static void hosts_take_turns(struct kunit *test)
{
	take_turns(test, false);
}

/* A host that names another address with each request is one host, and makes room. */
static void hosts_liar_is_one(struct kunit *test)
{
	portal_make(test);
	fill(test, true);
	expect_login(connect_elsewhere(test));
}

/* Nor does a liar get more turns. */
static void hosts_liar_has_one_turn(struct kunit *test)
{
	take_turns(test, true);
}

/*
 * Who has just connected, and sends its login in a moment, makes no room for a host whose
 * logins are all that may wait.
 */
static void hosts_newcomer_stays(struct kunit *test)
{
	struct raw *r;
	int i;

	portal_make(test);
	fill(test, false);
	r = connect_elsewhere(test);
	for (i = 0; i < 4; i++)
		one_more_stops(test);
	KUNIT_ASSERT_FALSE_MSG(test, raw_is_down(r, 0), "one that has just connected is ended");
	expect_login(r);
}

/* Have another initiator of the host of @r connect, or be refused, and say nothing. */
static void connect_silently(struct raw *r)
{
	struct iser_cm_hdr cm = { };
	DAT_EP_HANDLE ep = kd_ep(r->s, NULL);
	DAT_EVENT event;

	KD_ASSERT_OK(r->s->test, dat_ep_connect(ep, r->s->addr, PORT, KD_TIMEOUT_MS * 1000,
						sizeof(cm), &cm, DAT_QOS_BEST_EFFORT,
						DAT_CONNECT_DEFAULT_FLAG));
	do
		KUNIT_ASSERT_TRUE(r->s->test, kd_wait_event(r->s->conn_evd, &event,
							    KD_TIMEOUT_MS));
	while (event.event_data.connect_event_data.ep_handle != ep);
}

/* The target's QPs, which have an SRQ, are not destroyed yet. */
static struct kd_hook device;
static DECLARE_COMPLETION(may_destroy);

static int destroy_later(struct ib_qp *qp, struct ib_udata *udata)
{
	int (*destroy)(struct ib_qp *qp, struct ib_udata *udata) = device.real.destroy_qp;

	/*
	 * A case that has failed is to end: what it has made goes before the hook. The next case
	 * may have hooked another device by then.
	 */
	if (qp->srq)
		wait_for_completion_timeout(&may_destroy, msecs_to_jiffies(2 * KD_TIMEOUT_MS));
	return destroy(qp, udata);
}

static void destroy_now(void *unused)
{
	complete_all(&may_destroy);
}

/*
 * A host stops in its login. Meanwhile LIO takes nobody, and the host connects again and again,
 * each time ending one of its own: those that have ended keep no other host out.
 */
static void ended_keep_nobody_out(struct kunit *test, bool named)
{
	struct raw *stops, *waits, *other;
	int i;

	portal_make(test);
	other = new_elsewhere(test);
	stops = raw_new(test, RAW_RECVS);
	waits = raw_new(test, RAW_RECVS);
	KUNIT_ASSERT_TRUE(test, raw_start_at(stops, PORT));
	raw_request_login(stops, RAW_SOLICITED, false);
	KUNIT_ASSERT_TRUE(test, raw_receive(stops, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	/* LIO takes this one, and waits for the first. */
	KUNIT_ASSERT_TRUE(test, raw_start_at(waits, PORT));
	raw_request_login(waits, RAW_SOLICITED, true);
	for (i = 0; i < 2 * PENDING + 8; i++)
		connect_silently(stops);
	for (i = 0; named && i < PENDING / 4; i++)
		kd_half_connect(other->s, PORT, NULL, 0);
	KUNIT_ASSERT_TRUE_MSG(test, raw_start_at(other, PORT), "another host is kept out");
	/* LIO is to see the end of the first. */
	complete_all(&may_destroy);
	expect_login(other);
}

static void hosts_ended_keep_nobody_out(struct kunit *test)
{
	ended_keep_nobody_out(test, false);
}

static void ending_keep_nobody_out(struct kunit *test, bool named)
{
	const char *ia = *(const char * const *)test->param_value;

	reinit_completion(&may_destroy);
	kd_hook(test, ia, &device)->ops.destroy_qp = destroy_later;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, destroy_now, NULL));
	ended_keep_nobody_out(test, named);
}

/* Nor do those that cannot be down before the adapter has done its part. */
static void hosts_ending_keep_nobody_out(struct kunit *test)
{
	ending_keep_nobody_out(test, false);
}

/* Nor do peers that name that host, which they do not prove to be of. */
static void hosts_named_keep_nobody_out(struct kunit *test)
{
	const char *ia = *(const char * const *)test->param_value;

	if (kd_ia_has(ia, KD_IWARP))
		kunit_skip(test, "TCP proves who connects");
	ending_keep_nobody_out(test, true);
}

/*
 * Peers that do not finish connecting, and so may be anybody, make room for each other; they
 * count for no host, although they name one.
 */
static void hosts_half_open_is_nobody(struct kunit *test)
{
	struct raw *r = raw_connect(test);
	int i;

	for (i = 0; i < PENDING + 4; i++)
		kd_half_connect(r->s, RAW_PORT, NULL, 0);
	KUNIT_ASSERT_FALSE_MSG(test, raw_is_down(r, 0), "one that has connected is ended");
	raw_log_in(r, RAW_SOLICITED);
	raw_expect_alive(r);
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(hosts_take_turns, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_liar_is_one, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_liar_has_one_turn, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_newcomer_stays, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_ended_keep_nobody_out, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_ending_keep_nobody_out, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_named_keep_nobody_out, kd_gen_any_ia),
	KUNIT_CASE_PARAM(hosts_half_open_is_nobody, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-hosts", isert_cases, "kdapl_isert.ko: what one host can do to another",
	 RAW_TARGET);
