// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * KUnit suite of kdapl_isert.ko: the keys of a login (RFC 7143, RFC 7145). What the target
 * answers is what it takes; the table of Documentation/kdapl-isert.rst.
 */
#include <linux/module.h>
#include <linux/string.h>
#include "raw.h"
#include "shell.h"

/* What LIO agrees to of ErrorRecoveryLevel */
#define LEVEL	"/sys/kernel/config/target/iscsi/iqn.2026-01.test:raw/tpgt_1/attrib/default_erl"
#define NONE	"NotUnderstood"

/*
 * struct login_key - a key of a login
 * @offer: what an initiator says
 * @answer: what the target answers; NULL if nothing
 */
struct login_key {
	const char *name;
	const char *offer;
	const char *answer;
};

static const struct login_key keys[] = {
	/* No digests: the transport has its own checksums. */
	{ "HeaderDigest", "None", "None" },
	{ "HeaderDigest", "CRC32C,None", "None" },
	{ "HeaderDigest", "CRC32C", "None" },
	{ "DataDigest", "None,CRC32C", "None" },
	{ "DataDigest", "CRC32C,None", "None" },
	{ "RDMAExtensions", "Yes", "Yes" },
	/* Receive buffers are that long. */
	{ "TargetRecvDataSegmentLength", "512", "512" },
	{ "TargetRecvDataSegmentLength", "8192", "8192" },
	{ "TargetRecvDataSegmentLength", "8193", "8192" },
	{ "TargetRecvDataSegmentLength", "16777215", "8192" },
	/* LIO reads a number as far as it is one, and its low 32 bits. */
	{ "TargetRecvDataSegmentLength", "16384x", "8192" },
	{ "InitiatorRecvDataSegmentLength", "512", "512" },
	{ "InitiatorRecvDataSegmentLength", "262144", "262144" },
	{ "InitiatorRecvDataSegmentLength", "16777215", "16777215" },
	/* A session has one connection and no recovery, whatever the portal group has. */
	{ "MaxConnections", "1", "1" },
	{ "MaxConnections", "2", "1" },
	{ "MaxConnections", "65535", "1" },
	{ "MaxConnections", "2x", "1" },
	{ "ErrorRecoveryLevel", "0", "0" },
	{ "ErrorRecoveryLevel", "2", "0" },
	{ "ErrorRecoveryLevel", "2x", "0" },
	{ "ErrorRecoveryLevel", "4294967298", "0" },
	{ "ErrorRecoveryLevel", "Irrelevant", "0" },
	/* The rest is LIO's. The portal group has InitialR2T=No. */
	{ "InitialR2T", "No", "No" },
	{ "InitialR2T", "Yes", NULL },
	{ "ImmediateData", "Yes", "Yes" },
	{ "ImmediateData", "No", NULL },
	{ "MaxBurstLength", "16777215", "262144" },
	{ "MaxBurstLength", "65536", "65536" },
	{ "FirstBurstLength", "16777215", "65536" },
	{ "FirstBurstLength", "512", "512" },
	{ "DefaultTime2Wait", "0", "2" },
	{ "DefaultTime2Wait", "3600", "3600" },
	{ "DefaultTime2Retain", "3600", "20" },
	{ "DefaultTime2Retain", "0", "0" },
	{ "MaxOutstandingR2T", "65535", "1" },
	{ "DataPDUInOrder", "No", "Yes" },
	{ "DataSequenceInOrder", "No", "Yes" },
	{ "IFMarker", "Yes", "No" },
	{ "OFMarker", "Yes", "No" },
	{ "OFMarkInt", "2048", "Reject" },
	{ "IFMarkInt", "2048", "Reject" },
	/* Both sides ignore it (RFC 7145, 6.7). */
	{ "MaxRecvDataSegmentLength", "262144", "262144" },
	/* The transport does without these of RFC 7145, and of the one before it. */
	{ "iSERHelloRequired", "No", NONE },
	{ "TaggedBufferForSolicitedDataOnly", "No", NONE },
	{ "MaxAHSLength", "256", NONE },
	{ "MaxOutstandingUnexpectedPDUs", "0", NONE },
	{ "X-com.example.key", "1", NONE },
	{ "TaskReporting", "RFC3720", NONE },
	{ "iSCSIProtocolLevel", "1", NONE },
};

/* Have the login @pdu offer @key, in the place of what it has said of that. */
static u32 offer(struct raw_pdu *pdu, const struct login_key *key)
{
	u32 len = ntoh24(pdu->hdr.dlength), name = strlen(key->name), at, n, to = 0;
	char *text = pdu->data;

	for (at = 0; at < len; at += n) {
		n = strlen(text + at) + 1;
		if (!strncmp(text + at, key->name, name) && text[at + name] == '=')
			continue;
		memmove(text + to, text + at, n);
		to += n;
	}
	to += snprintf(text + to, sizeof(pdu->data) - to, "%s=%s", key->name, key->offer) + 1;
	memset(text + to, 0, sizeof(pdu->data) - to);
	hton24(pdu->hdr.dlength, to);
	return RAW_HEADERS + ALIGN(to, 4);
}

/* Return what the answer that has come says of @key, or NULL. */
static const char *answer_to(struct raw *r, const struct login_key *key)
{
	u32 len = min_t(u32, ntoh24(r->got.hdr.dlength), sizeof(r->got.data) - 1), at;
	const char *text = r->got.data;

	r->got.data[len] = '\0';
	for (at = 0; at < len; at += strlen(text + at) + 1)
		if (!strncmp(text + at, key->name, strlen(key->name)) &&
		    text[at + strlen(key->name)] == '=')
			return text + at + strlen(key->name) + 1;
	return NULL;
}

static void level_is_back(void *unused)
{
	WARN_ON(shell("echo 0 >" LEVEL));
}

static void keys_are_answered(struct kunit *test)
{
	struct iscsi_login_rsp *rsp;
	const struct login_key *key;
	const char *answer;
	struct raw *r;
	u32 len;

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, level_is_back, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("echo 2 >" LEVEL));
	for (key = keys; key < keys + ARRAY_SIZE(keys); key++) {
		r = raw_connect(test);
		r->pdu[0] = raw_login_pdu(r, RAW_UNSOLICITED, &len);
		KUNIT_ASSERT_TRUE(test, raw_send(r, r->pdu, offer(r->pdu, key)));
		KUNIT_ASSERT_TRUE_MSG(test, raw_receive(r, ISCSI_OP_LOGIN_RSP, KD_TIMEOUT_MS),
				      "%s=%s", key->name, key->offer);
		rsp = (struct iscsi_login_rsp *)&r->got.hdr;
		KUNIT_EXPECT_EQ_MSG(test, rsp->status_class, 0, "%s=%s", key->name, key->offer);
		answer = answer_to(r, key);
		KUNIT_EXPECT_TRUE_MSG(test, answer && key->answer ? !strcmp(answer, key->answer) :
				      answer == key->answer, "%s=%s: %s", key->name, key->offer,
				      answer ?: "no answer");
		raw_close(r);
	}
	raw_expect_alive(raw_login(test));
}

static struct kunit_case isert_cases[] = {
	KUNIT_CASE_PARAM(keys_are_answered, kd_gen_any_ia),
	{}
};

KD_SUITE("kdapl-isert-keys", isert_cases, "kdapl_isert.ko: keys of a login", RAW_TARGET);
