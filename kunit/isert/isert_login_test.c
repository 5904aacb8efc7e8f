// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: logins and logouts that no honest initiator does, floods
 * and storms of them. Sessions beside them go on, and others can log in.
 */
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include "param.h"
#include "raw.h"
#include "shell.h"
#include "withhold.h"

KD_PARAM(sessions, uint, 48, "how many session_memory makes");
KD_PARAM(storm, int, 24, "logins of session_storm");

/* The second request comes before the first one was answered. */
static void login_twice(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_connect(test);
	struct raw_pdu pdu;
	u32 len;
	int i;

	pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	for (i = 0; i < 8; i++)
		if (!raw_send(r, &pdu, len))
			break;
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* LIO refuses a version that it does not have before it is ready for more requests. */
static void login_after_refusal(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	u32 len;
	int i;

	for (i = 0; i < 8; i++) {
		r = raw_connect(test);
		pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
		((struct iscsi_login_req *)&pdu.hdr)->min_version = 9;
		((struct iscsi_login_req *)&pdu.hdr)->max_version = 9;
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
		KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
		raw_send(r, &pdu, len);
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	}
	raw_expect_alive(other);
}

static void login_too_long(struct kunit *test)
{
	static const u32 lengths[] = { 8192, 8193, 10000 };
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	unsigned int i;
	u32 len;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		r = raw_connect(test);
		pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
		KUNIT_EXPECT_TRUE(test, raw_send_long(r, &pdu, lengths[i]));
		raw_expect_cut(r);
	}
	r = raw_connect(test);
	pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	hton24(pdu.hdr.dlength, 0x7fffff);
	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* Something else than a login. */
static void login_no_login(struct kunit *test)
{
	struct raw *other = raw_login(test), *r = raw_connect(test);
	struct raw_pdu pdu = raw_write(r, 1);

	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	raw_expect_alive(other);
}

/* Text that is none, by chance. */
static void login_mutations(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct rnd_state rnd;
	struct raw_pdu pdu;
	unsigned int i, n;
	u32 len;

	prandom_seed_state(&rnd, 20261123);
	for (i = 0; i < 24; i++) {
		r = raw_connect(test);
		pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
		for (n = 0; n < 1 + i % 4; n++)
			((u8 *)&pdu)[sizeof(pdu.iser) + prandom_u32_state(&rnd) %
				     (len - sizeof(pdu.iser))] = prandom_u32_state(&rnd);
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
		/* An answer, good or bad, or the end. */
		if (!raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS))
			KUNIT_EXPECT_TRUE_MSG(test, raw_is_down(r, KD_TIMEOUT_MS),
					      "mutation %u", i);
		raw_close(r);
	}
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
}

/* Connections that say nothing hold up no session, and no login for long. */
static void login_flood(struct kunit *test)
{
	struct raw *other = raw_login(test);
	struct raw *silent[80];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(silent); i++)
		silent[i] = raw_connect(test);
	raw_expect_alive(other);
	raw_expect_alive(raw_login(test));
	KUNIT_EXPECT_TRUE(test, raw_is_down(silent[0], KD_TIMEOUT_MS));
	for (i = 0; i < ARRAY_SIZE(silent); i++)
		raw_close(silent[i]);
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

/* Initiators that leave in the middle of a login, and right after one. */
static void login_early_end(struct kunit *test)
{
	struct raw *r;
	struct raw_pdu pdu;
	u32 len;
	int i;

	for (i = 0; i < 4; i++) {
		r = raw_connect(test);
		pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
		KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
		dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
		r = raw_login(test);
		pdu = raw_write(r, 1);
		raw_send(r, &pdu, RAW_HEADERS);
		dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	raw_expect_alive(raw_login(test));
}

/* Initiators that want to connect, and do not want to any more. */
static void login_given_up(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	int i;

	for (i = 0; i < 16; i++) {
		r = raw_new(test, RAW_RECVS);
		KD_EXPECT_OK(test, dat_ep_connect(r->s->ep, r->s->addr, RAW_PORT,
						  KD_TIMEOUT_MS * 1000, 0, NULL,
						  DAT_QOS_BEST_EFFORT,
						  DAT_CONNECT_DEFAULT_FLAG));
		if (i % 2)
			dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
		raw_close(r);
	}
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

/* Logout right after the login: it is answered, and the connection ends. */
static void login_early_logout(struct kunit *test)
{
	struct raw *r = raw_login(test);
	struct raw_pdu pdu = raw_logout(r);

	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_LOGOUT_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
}

/* Logout that nobody waits for: with commands under way, and twice. */
static void login_hasty_logout(struct kunit *test)
{
	static const u32 len[] = { RAW_HEADERS, RAW_HEADERS, RAW_HEADERS };
	struct raw *other = raw_login(test), *r;
	struct raw_pdu *pdu;
	int i;

	for (i = 0; i < 4; i++) {
		r = raw_login(test);
		pdu = r->pdu;
		pdu[0] = i % 2 ? raw_write(r, 8) : raw_read(r, 8);
		pdu[1] = raw_logout(r);
		KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 2));
		dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	/* LIO keeps the two until the command before them has come. */
	r = raw_login(test);
	pdu = r->pdu;
	r->cmdsn++;
	for (i = 0; i < 2; i++) {
		pdu[i] = raw_logout(r);
		pdu[i].hdr.opcode &= ~ISCSI_OP_IMMEDIATE;
		((struct iscsi_logout *)&pdu[i].hdr)->cmdsn = cpu_to_be32(r->cmdsn++);
	}
	pdu[2] = raw_nop(r, true);
	pdu[2].hdr.opcode &= ~ISCSI_OP_IMMEDIATE;
	((struct iscsi_nopout *)&pdu[2].hdr)->cmdsn = cpu_to_be32(100);
	KUNIT_EXPECT_TRUE(test, raw_send_all(r, pdu, len, 3));
	raw_expect_cut(r);
	raw_expect_alive(other);
}

/* A login with the name and qualifier of a session takes its place. */
static void session_reinstatement(struct kunit *test)
{
	struct raw *old = raw_login(test), *r = raw_connect(test);
	struct iscsi_login_rsp *rsp;
	struct raw_pdu pdu;
	u32 len;

	r->session = old->session;
	pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	rsp = (struct iscsi_login_rsp *)&r->got.hdr;
	KUNIT_EXPECT_EQ(test, rsp->status_class, 0);
	KUNIT_EXPECT_TRUE(test, raw_is_down(old, KD_TIMEOUT_MS));
	raw_expect_alive(r);
}

/* ---- Connections of a session -------------------------------------------------------- */

/*
 * Log in with the name and qualifier of @old, as connection @cid of the session @tsih, and
 * return the answer.
 */
static struct iscsi_login_rsp *join(struct raw *r, struct raw *old, u16 tsih, u16 cid)
{
	struct iscsi_login_req *req;
	struct raw_pdu pdu;
	u32 len;

	r->session = old->session;
	pdu = raw_login_pdu(r, RAW_UNSOLICITED, &len);
	req = (struct iscsi_login_req *)&pdu.hdr;
	req->tsih = cpu_to_be16(tsih);
	req->cid = cpu_to_be16(cid);
	KUNIT_EXPECT_TRUE(r->s->test, raw_send(r, &pdu, len));
	KUNIT_ASSERT_TRUE(r->s->test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	return (struct iscsi_login_rsp *)&r->got.hdr;
}

/* The session that @r has just logged in to, as the target calls it. */
static u16 session_of(struct raw *r)
{
	return be16_to_cpu(((struct iscsi_login_rsp *)&r->got.hdr)->tsih);
}

/*
 * A connection for a session, beside the one that it has or in its place, or for one that
 * there is not, is refused. The session goes on.
 */
static void login_to_a_session(struct kunit *test)
{
	struct raw *first = raw_login_how(test, RAW_UNSOLICITED), *r;
	u16 tsih = session_of(first);
	struct iscsi_login_rsp *rsp;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		r = raw_connect(test);
		rsp = join(r, first, i % 2 ? tsih : tsih + 1000, i / 2);
		KUNIT_EXPECT_EQ(test, rsp->status_class, ISCSI_STATUS_CLS_INITIATOR_ERR);
		KUNIT_EXPECT_EQ(test, rsp->status_detail,
				ISCSI_LOGIN_STATUS_CONN_ADD_FAILED);
		KUNIT_EXPECT_FALSE(test, rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT);
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
		raw_expect_alive(first);
	}
}

/* ---- Peers that do not send the first frame that they have announced ------------------ */

/* Such a peer does not stop the thread that takes the connections of a portal. */
static void login_without_a_frame(struct kunit *test)
{
	struct raw *other = raw_login(test), *r, *silent;

	if (!kd_is_iwarp(other->s) || !kd_ia_has(other->s->name, KD_SIMULATED))
		kunit_skip(test, "15 seconds on one adapter of iWARP are enough");
	kd_withhold_on(test, other->s->name);
	r = raw_new(test, 0);
	kd_withhold(test, 1);
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	kd_expect_withheld(test, 1);
	silent = raw_connect(test);
	/* This one is behind it, and its time ends later. */
	KUNIT_EXPECT_TRUE(test, raw_is_down(silent, KD_TIMEOUT_MS));
	raw_expect_alive(raw_login(test));
	kd_report_withheld(NULL);
	raw_close(r);
	raw_expect_alive(other);
}

/* ---- What is not there --------------------------------------------------------------- */

/* An initiator that takes no answer keeps others out for a while only. */
static void login_nobody_takes(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	u32 len;

	if (kd_ia_has(other->s->name, KD_SIMULATED))
		kunit_skip(test, "15 seconds on one adapter are enough");
	r = raw_new(test, 0);
	KUNIT_ASSERT_TRUE(test, raw_start(r));
	pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, len));
	raw_expect_alive(other);
	/* Over iWARP that ends the connection at once. */
	if (kd_ia_has(other->s->name, KD_IWARP))
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	else
		raw_expect_cut(r);
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

static int set_srq_max(int n)
{
	char command[80];

	snprintf(command, sizeof(command),
		 "echo %d >/sys/module/kdapl_isert/parameters/srq_max", n);
	return shell(command);
}

/*
 * Over iWARP sessions are let in as long as there are buffers for what they may send, and
 * all may send it at once.
 */
static void login_beyond_the_srq(struct kunit *test)
{
	struct raw *r, *in[8];
	struct raw_pdu *pdu;
	u32 len[KDAT_MAX_REQUESTS];
	unsigned int i, j, n = 0;
	long refused;

	r = raw_new(test, RAW_RECVS);
	if (!kd_ia_has(r->s->name, KD_IWARP))
		kunit_skip(test, "an empty SRQ makes senders wait");
	KUNIT_ASSERT_TRUE(test, raw_wait_adapter(r->s, "reserved", 0, 0, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, 0, set_srq_max(60));
	refused = raw_adapter(r->s, "refused");
	while (raw_start(r) && n < ARRAY_SIZE(in)) {
		raw_log_in(r, RAW_SOLICITED);
		in[n++] = r;
		r = raw_new(test, RAW_RECVS);
	}
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_LT(test, n, ARRAY_SIZE(in));
	KUNIT_EXPECT_EQ(test, raw_adapter(r->s, "refused"), refused + 1);
	KUNIT_EXPECT_LE(test, raw_adapter(r->s, "reserved"), 60);
	for (i = 0; i < n; i++) {
		pdu = in[i]->pdu;
		for (j = 0; j < 8; j++) {
			pdu[j] = raw_nop(in[i], true);
			len[j] = RAW_HEADERS;
		}
		KUNIT_EXPECT_TRUE(test, raw_send_all(in[i], pdu, len, j));
	}
	/* The initiators have no more receives either. */
	for (i = 0; i < n; i++)
		for (j = 0; j < 8; j++)
			KUNIT_EXPECT_TRUE(test, raw_receive(in[i], ISCSI_OP_NOOP_IN,
							    KD_TIMEOUT_MS));
	for (i = 0; i < n; i++)
		raw_expect_alive(in[i]);
	/* Who leaves makes room. */
	raw_close(in[0]);
	for (i = 1; i < n; i++)
		raw_expect_alive(in[i]);
	KUNIT_EXPECT_EQ(test, 0, set_srq_max(9000));
	raw_expect_alive(raw_login(test));
}

/* ---- Storms -------------------------------------------------------------------------- */

/* Sessions come and go, each in another way, with commands under way. */
static void session_storm(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	struct raw_pdu pdu;
	int i;

	for (i = 0; i < storm; i++) {
		r = raw_login_how(test, i % 8 == 7 ? RAW_DISCOVERY : RAW_UNSOLICITED);
		if (i % 8 != 7) {
			pdu = i % 2 ? raw_read(r, 8) : raw_write(r, 8);
			KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
		}
		switch (i % 3) {
		case 0:
			dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
			break;
		case 1:
			pdu = raw_logout(r);
			KUNIT_EXPECT_TRUE(test, raw_send(r, &pdu, RAW_HEADERS));
			KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
			break;
		default:
			dat_ep_disconnect(r->s->ep, DAT_CLOSE_GRACEFUL_FLAG);
		}
		raw_close(r);
	}
	raw_expect_alive(other);
}

/* A session that says nothing is pinged, and goes on. */
static void session_is_pinged(struct kunit *test)
{
	struct raw *r = raw_login(test);
	const struct iscsi_nopin *nop = (const struct iscsi_nopin *)&r->got.hdr;

	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_NOOP_IN, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, nop->itt == RESERVED_ITT);
	KUNIT_EXPECT_TRUE(test, nop->ttt == cpu_to_be32(0xffffffff));
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_NOOP_IN, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 0, shell("echo 15 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	raw_expect_alive(r);
}

/* Nothing that the target sends to it is taken any more, as by a host that is gone. */
static void session_takes_no_answers(struct kunit *test)
{
	struct raw *r = raw_new(test, 1);

	KUNIT_ASSERT_TRUE(test, raw_start(r));
	raw_log_in(r, RAW_SOLICITED);
	KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	/* An iWARP device ends a connection by itself that has no receive. */
	if (kd_is_iwarp(r->s))
		KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
	else
		raw_expect_cut(r);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 15 >/sys/module/kdapl_isert/parameters/ping_seconds"));
	raw_expect_alive(raw_login(test));
}

/* ---- Memory -------------------------------------------------------------------------- */

/* Bytes of receive memory that so many sessions may take: 100 MB for 1000. */
static u64 memory_limit(unsigned int n)
{
	return 3 * SZ_1M + n * 94ULL * SZ_1K;
}

/*
 * The target's receive memory for many sessions, which are all served. Over iWARP buffers
 * are reserved for what each may send, so that it is the sessions that are limited.
 */
static void session_memory(struct kunit *test)
{
	u64 began = ktime_get_ns(), took;
	struct raw **r, *other;
	unsigned int i;
	long before;

	other = raw_login(test);
	if (kd_is_iwarp(other->s))
		kunit_skip(test, "login_beyond_the_srq is for iWARP");
	r = kunit_kcalloc(test, sessions, sizeof(*r), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r);
	before = si_mem_available();
	for (i = 0; i < sessions; i++)
		r[i] = raw_login(test);
	took = ktime_get_ns() - began;
	/* What srq_size and srq_per_session are by default. */
	KUNIT_EXPECT_TRUE(test, raw_wait_adapter(other->s, "buffers", 256 + 8 * (long)sessions,
						 LONG_MAX, KD_TIMEOUT_MS));
	KUNIT_EXPECT_GE(test, raw_adapter(other->s, "connections"), (long)sessions + 1);
	KUNIT_EXPECT_LE(test, raw_adapter(other->s, "bytes"), memory_limit(sessions));
	kunit_info(test, "memory: %u sessions in %llu ms: %ld bytes to receive; both sides %ld KiB",
		   sessions, took / NSEC_PER_MSEC, raw_adapter(other->s, "bytes"),
		   (before - si_mem_available()) << (PAGE_SHIFT - 10));
	for (i = 0; i < sessions; i++)
		raw_expect_alive(r[i]);
	raw_expect_alive(other);
}

/*
 * An initiator chooses its name, which cannot end a word or a line of the statistics, nor tell
 * root's terminal anything.
 */
static void login_with_odd_name(struct kunit *test)
{
	static const char shown[] =
		"initiator=iqn.2026-01.test:\\\\040a\\\\012\\\\033\\\\015\\\\177= state=up";

	raw_login_odd(test);
	KUNIT_EXPECT_EQ(test, 1, raw_sessions_with(test, shown));
}

static struct kunit_case isert_cases[] = {
	/* The first, since blocks of buffers that floods have brought stay for a while. */
	KUNIT_CASE_PARAM(session_memory, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_twice, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_after_refusal, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_too_long, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_no_login, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_with_odd_name, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_mutations, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_flood, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_early_end, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_given_up, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_early_logout, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_hasty_logout, kd_gen_any_ia),
	KUNIT_CASE_PARAM(session_reinstatement, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_to_a_session, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_nobody_takes, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_without_a_frame, kd_gen_any_ia),
	KUNIT_CASE_PARAM(login_beyond_the_srq, kd_gen_any_ia),
	KUNIT_CASE_PARAM(session_storm, kd_gen_any_ia),
	KUNIT_CASE_PARAM(session_is_pinged, kd_gen_any_ia),
	KUNIT_CASE_PARAM(session_takes_no_answers, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-isert-login", isert_cases, "kdapl_isert.ko: logins, logouts, floods", RAW_TARGET);
