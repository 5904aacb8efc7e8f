// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: logins of two requests. LIO's thread of the portal answers the
 * first one, and conn->login_work the second, which may come, or the connection end, while the
 * thread is not through with the first; or never comes, while others want to log in.
 */
#include <linux/jiffies.h>
#include <linux/module.h>
#include "raw.h"

#define LOGINS	6

enum second {
	SECOND_GOOD,
	SECOND_LONG,
	SECOND_NO_LOGIN,
	SECOND_NEVER,
};

static KD_CHOICES(gen_second, kd_gen_any_ia_and,
	[SECOND_GOOD] = "as it should be",
	[SECOND_LONG] = "longer than it is",
	[SECOND_NO_LOGIN] = "another PDU",
	[SECOND_NEVER] = "the connection ends instead")

/* Log in as far as the target wants the second request. */
static struct raw *first_request(struct kunit *test)
{
	struct raw *r = raw_connect(test);
	struct iscsi_login_rsp *rsp = (struct iscsi_login_rsp *)&r->got.hdr;

	raw_request_login(r, RAW_SOLICITED, false);
	KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	KUNIT_ASSERT_EQ(test, rsp->status_class, 0);
	KUNIT_ASSERT_FALSE(test, rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT);
	return r;
}

/* Send the second request, which asks for nothing more. */
static void second_request(struct raw *r, enum second kind)
{
	struct raw_pdu *pdu = r->pdu;
	u32 len;

	if (kind == SECOND_NEVER) {
		dat_ep_disconnect(r->s->ep, DAT_CLOSE_ABRUPT_FLAG);
		return;
	}
	/* It has the tag of the first one. */
	r->itt--;
	*pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	hton24(pdu->hdr.dlength, kind == SECOND_LONG ? 0x7fffff : 0);
	if (kind == SECOND_NO_LOGIN)
		*pdu = raw_nop(r, true);
	KUNIT_EXPECT_TRUE(r->s->test, raw_send(r, pdu, RAW_HEADERS));
}

static void steps_two_requests(struct kunit *test)
{
	struct raw *other = raw_login(test), *r;
	const struct kd_param *p = test->param_value;
	struct iscsi_login_rsp *rsp;
	unsigned int i;

	for (i = 0; i < LOGINS; i++) {
		r = first_request(test);
		second_request(r, p->choice);
		if (p->choice == SECOND_GOOD) {
			rsp = (struct iscsi_login_rsp *)&r->got.hdr;
			KUNIT_ASSERT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP,
							    KD_TIMEOUT_MS));
			KUNIT_EXPECT_EQ(test, rsp->status_class, 0);
			KUNIT_EXPECT_TRUE(test, rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT);
			raw_expect_alive(r);
		} else {
			KUNIT_EXPECT_TRUE(test, raw_is_down(r, KD_TIMEOUT_MS));
		}
		raw_close(r);
	}
	raw_expect_alive(raw_login(test));
	raw_expect_alive(other);
}

/* How long one may stop with whom nobody waits */
#define ALONE_MS	(15 * MSEC_PER_SEC)

/*
 * Who stops in its login keeps others out of the portal group. LIO has taken the next one by then,
 * which waits inside of LIO, so that nobody is left who waits for the thread of the portal.
 */
static void steps_one_stops(struct kunit *test)
{
	struct raw *stops = first_request(test), *r;
	unsigned long since = jiffies;

	if (kd_ia_has(stops->s->name, KD_SIMULATED))
		kunit_skip(test, "6 seconds on one adapter are enough");
	r = raw_login(test);
	KUNIT_EXPECT_LT_MSG(test, jiffies_to_msecs(jiffies - since), ALONE_MS - 3 * MSEC_PER_SEC,
			    "one that stops has as long as if nobody waited");
	KUNIT_EXPECT_TRUE(test, raw_is_down(stops, KD_TIMEOUT_MS));
	raw_expect_alive(r);
}

/* Ask, as a step of a login may, to negotiate further. */
static bool another_step(struct raw *r)
{
	struct raw_pdu *pdu = r->pdu;
	u32 len;

	r->itt--;
	*pdu = raw_login_pdu(r, RAW_SOLICITED, &len);
	hton24(pdu->hdr.dlength, 0);
	pdu->hdr.flags = ISCSI_OP_PARMS_NEGOTIATION_STAGE << 2;
	return raw_send(r, pdu, RAW_HEADERS) && raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS);
}

/*
 * Who goes on with its login, but slowly, keeps others out of the portal group for no longer than
 * who stops in it. raw_is_down() waits.
 */
static void steps_one_is_slow(struct kunit *test)
{
	struct raw *slow = first_request(test), *r;
	unsigned long since = jiffies;
	bool down;
	u32 len;

	if (kd_ia_has(slow->s->name, KD_SIMULATED))
		kunit_skip(test, "8 seconds on one adapter are enough");
	r = raw_connect(test);
	r->pdu[0] = raw_login_pdu(r, RAW_SOLICITED, &len);
	KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, len));
	while (!(down = raw_is_down(slow, 900)) && another_step(slow))
		if (jiffies_to_msecs(jiffies - since) > ALONE_MS - 3 * MSEC_PER_SEC)
			break;
	KUNIT_EXPECT_LT_MSG(test, jiffies_to_msecs(jiffies - since), ALONE_MS - 3 * MSEC_PER_SEC,
			    "one that goes on slowly has as long as it likes");
	KUNIT_EXPECT_TRUE(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, down || raw_is_down(slow, KD_TIMEOUT_MS));
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(steps_two_requests, gen_second),
	KUNIT_CASE_PARAM(steps_one_stops, kd_gen_any_ia),
	KUNIT_CASE_PARAM(steps_one_is_slow, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-steps", isert_cases, "kdapl_isert.ko: logins of two requests", RAW_TARGET);
