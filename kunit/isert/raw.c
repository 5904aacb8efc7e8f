// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_isert_kunit.ko: the target and connections to it, see raw.h. */
#include <linux/module.h>
#include "peer.h"
#include "raw.h"
#include "shell.h"

#define KO	"/run/out/modules/kdapl_isert.ko"
#define TARGET	"iqn.2026-01.test:raw"

/* ---- The target ----------------------------------------------------------------- */

#define CONFIG	"set -e\n"						\
		"L=/sys/kernel/config/target\n"			\
		"T=$L/iscsi/" TARGET "/tpgt_1\n"

static bool raw_there;

/*
 * On siw LIO's portal for TCP would have the port that siw needs, so it gets it in a network
 * of its own.
 */
int raw_target_up(struct kunit_suite *suite)
{
	int err;

	raw_there = false;
	/* scripts/guest/check puts the modules there. */
	if (shell("test -e " KO))
		return 0;
	err = shell(CONFIG "insmod " KO "\n"
		    "mkdir -p $L/core/rd_mcp_7/raw $T/lun/lun_0\n"
		    "cd $L/core/rd_mcp_7/raw\n"
		    "echo rd_pages=256 >control\n"
		    "echo 1 >enable\n"
		    "cd $T\n"
		    "for a in 10.8.0.1 10.9.0.1 10.10.0.1 10.11.0.1; do\n"
		    "unshare -n mkdir np/$a:3270\n"
		    "echo 1 >np/$a:3270/iser\n"
		    "done\n"
		    "ln -s $L/core/rd_mcp_7/raw lun/lun_0/l\n"
		    "echo 0 >attrib/authentication\n"
		    "echo 1 >attrib/generate_node_acls\n"
		    "echo 0 >attrib/demo_mode_write_protect\n"
		    "echo No >param/InitialR2T\n"
		    "echo 8 >param/MaxConnections\n"
		    "echo 1 >enable\n");
	raw_there = !err;
	return err ? -EIO : 0;
}
EXPORT_SYMBOL_GPL(raw_target_up);

void raw_target_down(struct kunit_suite *suite)
{
	if (raw_there)
		WARN_ON(shell(CONFIG "echo 0 >$T/enable\n"
			      "rm $T/lun/lun_0/l\n"
			      "rmdir $T/np/* $T/lun/lun_0 $T $L/iscsi/" TARGET "\n"
			      "rmdir $L/core/rd_mcp_7/raw $L/core/rd_mcp_7\n"
			      "rmmod kdapl_isert\n"));
}
EXPORT_SYMBOL_GPL(raw_target_down);

int raw_init(struct kunit *test)
{
	if (!raw_there)
		kunit_skip(test, "no LIO, or no " KO);
	return 0;
}
EXPORT_SYMBOL_GPL(raw_init);

/* Return the number that kdapl_isert's line for the adapter of @s has behind @name. */
long raw_adapter(struct kd_side *s, const char *name)
{
	return kd_adapter_number(s, "kdapl_isert", name);
}
EXPORT_SYMBOL_GPL(raw_adapter);

/* Is the number behind @name from @least to @most, or will it be within @ms? */
bool raw_wait_adapter(struct kd_side *s, const char *name, long least, long most,
		      unsigned int ms)
{
	return kd_wait_adapter(s, "kdapl_isert", name, least, most, ms);
}
EXPORT_SYMBOL_GPL(raw_wait_adapter);

/* Return how many sessions LIO has, of all adapters. */
long raw_sessions(struct kunit *test)
{
	return kd_number(test, "cat /sys/kernel/config/target/iscsi/" TARGET
			  "/fabric_statistics/iscsi_instance/sessions");
}
EXPORT_SYMBOL_GPL(raw_sessions);

/* Return how many connections kdapl_isert shows with @state, as "waiting=0". */
long raw_sessions_with(struct kunit *test, const char *state)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "grep ' %s ' /proc/kdapl/kdapl_isert/sessions | wc -l", state);
	return kd_number(test, command);
}
EXPORT_SYMBOL_GPL(raw_sessions_with);

/* Return the number that kdapl_isert's line for the last connection has behind @name. */
long raw_session(struct kunit *test, const char *name)
{
	char command[160];

	snprintf(command, sizeof(command),
		 "sed -n '$s|.* %s=\\([0-9]*\\).*|\\1|p' /proc/kdapl/kdapl_isert/sessions",
		 name);
	return kd_number(test, command);
}
EXPORT_SYMBOL_GPL(raw_session);

/* Has LIO no session? For kd_wait_until(). */
bool raw_nobody_is_there(void *test)
{
	return !raw_sessions(test);
}
EXPORT_SYMBOL_GPL(raw_nobody_is_there);

struct raw_sessions_left {
	struct kunit *test;
	long n;
};

static bool raw_are_gone(void *data)
{
	struct raw_sessions_left *left = data;

	return raw_sessions(left->test) <= left->n;
}

/* Are there @n sessions at most, or will there be within @ms? */
bool raw_wait_sessions(struct kunit *test, long n, unsigned int ms)
{
	struct raw_sessions_left left = { .test = test, .n = n };

	return kd_wait_until(raw_are_gone, &left, ms);
}
EXPORT_SYMBOL_GPL(raw_wait_sessions);

/* ---- Connections ---------------------------------------------------------------- */

static const struct kd_slots raw_slots = {
	.sends = RAW_SENDS,
	.send_len = SZ_1K,
	.recv_len = RAW_RECV_LEN,
};

void raw_post(struct raw *r, u64 slot)
{
	kd_slots_post(&raw_slots, r->s, slot);
}
EXPORT_SYMBOL_GPL(raw_post);

/* Make a connection, with @recvs receives, that raw_start() makes. */
struct raw *raw_new(struct kunit *test, u64 recvs)
{
	static atomic_t sessions = ATOMIC_INIT(0);
	struct raw *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_opts opts = { .attr = &attr, .qlen = 128 };
	u64 slot;

	BUILD_BUG_ON(sizeof(struct raw_pdu) > SZ_1K);
	BUILD_BUG_ON(RAW_SENDS * SZ_1K + RAW_RECVS * RAW_RECV_LEN > KD_BUF_LEN);
	KUNIT_ASSERT_NOT_NULL(test, r);
	attr.max_request_dtos = RAW_SENDS;
	r->s = kd_open_param(test);
	r->cmdsn = 100;
	r->itt = 1;
	r->session = atomic_inc_return(&sessions);
	kd_setup(r->s, &opts);
	r->data = kd_buf_alloc(r->s, SZ_4K);
	r->broken = raw_adapter(r->s, "broken");
	for (slot = 0; slot < recvs; slot++)
		raw_post(r, slot);
	return r;
}
EXPORT_SYMBOL_GPL(raw_new);

/* Connect to a port, as the initiator of Linux does; tell whether the target accepts. */
bool raw_start_at(struct raw *r, DAT_CONN_QUAL port)
{
	/* Most keys stay valid, since nobody makes new ones for each command. */
	struct iser_cm_hdr cm = { .flags = r->invalidate ? 0 : ISER_SEND_W_INV_NOT_SUP };

	return kd_peer_connect(r->s, port, sizeof(cm), &cm);
}
EXPORT_SYMBOL_GPL(raw_start_at);

bool raw_start(struct raw *r)
{
	return raw_start_at(r, RAW_PORT);
}
EXPORT_SYMBOL_GPL(raw_start);

/* Connect, and send nothing. */
struct raw *raw_connect(struct kunit *test)
{
	struct raw *r = raw_new(test, RAW_RECVS);

	KUNIT_ASSERT_TRUE(test, raw_start(r));
	return r;
}
EXPORT_SYMBOL_GPL(raw_connect);

void raw_close(struct raw *r)
{
	kd_close(r->s);
}
EXPORT_SYMBOL_GPL(raw_close);

/* Copy a PDU to where it is sent from, and make @request its Send. */
static bool raw_prepare(struct raw *r, const struct raw_pdu *pdu, u32 len,
			DAT_LMR_TRIPLET *seg, KDAT_REQUEST *request)
{
	if (!kd_slots_fill(&raw_slots, r->s, r->sent, pdu, min_t(size_t, len, sizeof(*pdu)), seg))
		return false;
	seg->segment_length = len;
	*request = (KDAT_REQUEST) {
		.operation = DAT_DTO_SEND,
		.num_segments = 1,
		.local_iov = seg,
		.user_cookie = kd_cookie(r->sent++),
	};
	return true;
}

/*
 * Send @n PDUs at once, the first @len bytes of each. Return false if the connection has
 * ended.
 */
bool raw_send_all(struct raw *r, const struct raw_pdu *pdu, const u32 *len,
		  unsigned int n)
{
	DAT_LMR_TRIPLET segs[KDAT_MAX_REQUESTS];
	KDAT_REQUEST requests[KDAT_MAX_REQUESTS];
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!raw_prepare(r, &pdu[i], len[i], &segs[i], &requests[i]))
			return false;
	return kdat_ep_post_requests(r->s->ep, n, requests) == DAT_SUCCESS;
}
EXPORT_SYMBOL_GPL(raw_send_all);

bool raw_send(struct raw *r, const struct raw_pdu *pdu, u32 len)
{
	return raw_send_all(r, pdu, &len, 1);
}
EXPORT_SYMBOL_GPL(raw_send);

/*
 * Send a PDU with a data segment of @data bytes, which begins with that of @pdu and may be
 * longer. It is sent from where other PDUs are: nothing else is under way.
 */
bool raw_send_long(struct raw *r, const struct raw_pdu *pdu, u32 data)
{
	struct raw_pdu *at = r->s->buf->va;
	DAT_LMR_TRIPLET seg = kd_seg(r->s->buf, 0, RAW_HEADERS + data);

	memset(at, 'x', seg.segment_length);
	memcpy(at, pdu, min_t(size_t, seg.segment_length, sizeof(*pdu)));
	hton24(at->hdr.dlength, data);
	return dat_ep_post_send(r->s->ep, 1, &seg, kd_cookie(1),
				DAT_COMPLETION_SUPPRESS_FLAG) == DAT_SUCCESS;
}
EXPORT_SYMBOL_GPL(raw_send_long);

/* Receive a PDU to r->got. Return false if none comes within @ms, or the connection ends. */
bool raw_receive_any(struct raw *r, unsigned int ms)
{
	unsigned int len;

	if (!kd_slots_receive(&raw_slots, r->s, ms, &r->got, sizeof(r->got), &len))
		return false;
	r->exp_statsn = be32_to_cpu(((struct iscsi_nopin *)&r->got.hdr)->statsn) + 1;
	r->max_cmdsn = be32_to_cpu(((struct iscsi_nopin *)&r->got.hdr)->max_cmdsn);
	return true;
}
EXPORT_SYMBOL_GPL(raw_receive_any);

/*
 * Receive PDUs until one of this opcode has come, which is in r->got then. Return
 * false if none does within @ms.
 */
bool raw_receive(struct raw *r, u8 opcode, unsigned int ms)
{
	do {
		if (!raw_receive_any(r, ms))
			return false;
	} while ((r->got.hdr.opcode & ISCSI_OPCODE_MASK) != opcode);
	return true;
}
EXPORT_SYMBOL_GPL(raw_receive);

/* Has the target ended the connection, or does it within @ms? */
bool raw_is_down(struct raw *r, unsigned int ms)
{
	DAT_EVENT event;

	return kd_wait_event(r->s->conn_evd, &event, ms);
}
EXPORT_SYMBOL_GPL(raw_is_down);

/* Expect that the target breaks the connection, which it tells the log of. */
void raw_expect_cut(struct raw *r)
{
	kd_peer_expect_cut(r->s, "kdapl_isert", r->broken);
}
EXPORT_SYMBOL_GPL(raw_expect_cut);

MODULE_DESCRIPTION("What the suites of kdapl_isert.ko share");
MODULE_LICENSE("Dual BSD/GPL");
