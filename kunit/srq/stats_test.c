// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What /proc/kdapl shows: counts of marks that fired, of requests and of ends with their
 * reasons, and the connections that ended; and what the tracepoints say about ends and about
 * calls that are refused.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_pool.h>
#include "device.h"
#include "files.h"
#include "plug.h"
#include "shell.h"
#include "srq_fixture.h"

#define INF		DAT_WATERMARK_INFINITE
#define STATS_MAX	SZ_1M

static void free_text(void *text)
{
	kvfree(text);
}

/* Return the last line of /proc/kdapl/@name with the words @words. */
static char *line_of(struct kunit *test, const char *name, const char *words)
{
	char path[32], *text = kvzalloc(STATS_MAX, GFP_KERNEL), *line, *at, *found = NULL;
	struct file *file;
	loff_t pos = 0;
	ssize_t n;

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_text, text));
	snprintf(path, sizeof(path), "/proc/kdapl/%s", name);
	file = kd_filp_open(path, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(file), "%s: %ld", path, PTR_ERR(file));
	do {
		n = kernel_read(file, text + pos, STATS_MAX - 1 - pos, &pos);
	} while (n > 0);
	kd_filp_close(file);
	KUNIT_ASSERT_EQ(test, n, (ssize_t)0);
	at = text;
	while ((line = strsep(&at, "\n")))
		if (strstr(line, words))
			found = line;
	KUNIT_ASSERT_NOT_NULL_MSG(test, found, "%s has no line with \"%s\"", path, words);
	return found;
}

static char *line_of_handle(struct kunit *test, const char *name, const char *key,
			    const void *handle)
{
	char words[32];

	snprintf(words, sizeof(words), "%s=%llx ", key, (u64)(uintptr_t)handle);
	return line_of(test, name, words);
}

/* Return the value of @key, "" without one; it ends with a blank or the line. */
static const char *value_of(const char *line, const char *key)
{
	size_t len = strlen(key);

	for (; line; line = strchr(line, ' ')) {
		line += *line == ' ';
		if (!strncmp(line, key, len) && line[len] == '=')
			return line + len + 1;
	}
	return "";
}

static long number_of(struct kunit *test, const char *line, const char *key)
{
	char number[24];
	long n = -1;

	snprintf(number, sizeof(number), "%.*s", (int)strcspn(value_of(line, key), " "),
		 value_of(line, key));
	KUNIT_EXPECT_EQ_MSG(test, 0, kstrtol(number, 10, &n), "%s of \"%s\"", key, line);
	return n;
}

static void expect_word(struct kunit *test, const char *line, const char *key,
			const char *want)
{
	const char *value = value_of(line, key);

	KUNIT_EXPECT_TRUE_MSG(test, strcspn(value, " ") == strlen(want) &&
			      !strncmp(value, want, strlen(want)), "%s is not %s in \"%s\"",
			      key, want, line);
}

/* The addresses of @ep, connected, as a line of "ends" has them. */
static void addresses(struct kunit *test, DAT_EP_HANDLE ep, char *words, size_t len)
{
	struct sockaddr_storage local, remote;
	DAT_EP_PARAM p;

	KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &p));
	memcpy(&local, p.local_ia_address_ptr, sizeof(struct sockaddr_in));
	memcpy(&remote, p.remote_ia_address_ptr, sizeof(struct sockaddr_in));
	snprintf(words, len, "local=%pISpc remote=%pISpc ", &local, &remote);
}

/* ---- Marks ----------------------------------------------------------------- */

static void counts_marks(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 32);
	struct rx_link *link = rx_link(b);
	char *ep, *srq, *ia;

	rx_post(b, link, 8);
	KD_ASSERT_OK(test, dat_ep_set_watermark(link->in, 1, INF));
	rx_deliver_n(b, link, 2);
	rx_expect_soft(b, link);
	KD_ASSERT_OK(test, dat_ep_set_watermark(link->in, 2, INF));
	rx_deliver_n(b, link, 1);
	rx_expect_soft(b, link);
	KD_ASSERT_OK(test, dat_srq_set_lw(b->in->srq, 5));
	rx_deliver_n(b, link, 1);
	rx_expect_low(b);
	ep = line_of_handle(test, "eps", "ep", link->in);
	KUNIT_EXPECT_EQ(test, number_of(test, ep, "soft_crossed"), 2L);
	KUNIT_EXPECT_EQ(test, number_of(test, ep, "hard_crossed"), 0L);
	KUNIT_EXPECT_EQ(test, number_of(test, ep, "held"), 4L);
	KUNIT_EXPECT_EQ(test, number_of(test, ep, "taken"), 4L);
	KUNIT_EXPECT_GT(test, number_of(test, ep, "since"), 0L);
	expect_word(test, ep, "state", "DAT_EP_STATE_CONNECTED");
	expect_word(test, ep, "adapter", b->in->name);
	expect_word(test, ep, "module", "kdapl_kunit");
	srq = line_of_handle(test, "srqs", "srq", b->in->srq);
	KUNIT_EXPECT_EQ(test, number_of(test, srq, "low_crossed"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, srq, "available"), 4L);
	KUNIT_EXPECT_EQ(test, number_of(test, srq, "size"), 32L);
	ia = line_of_handle(test, "ias", "ia", b->in->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "soft_crossed"), 2L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "low_crossed"), 1L);
}

static void hard_mark_is_the_reason(struct kunit *test)
{
	struct rx_bench *b = rx_open(test, 32);
	struct rx_link *link = rx_link(b);
	char words[128], *end, *ia;

	addresses(test, link->in, words, sizeof(words));
	rx_post(b, link, 3);
	KD_ASSERT_OK(test, dat_ep_set_watermark(link->in, INF, 1));
	rx_deliver_n(b, link, 1);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	rx_expect_broken(b, link);
	end = line_of(test, "ends", words);
	expect_word(test, end, "reason", "hard-mark");
	expect_word(test, end, "event", "DAT_CONNECTION_EVENT_BROKEN");
	expect_word(test, end, "adapter", b->in->name);
	KUNIT_EXPECT_EQ(test, number_of(test, end, "held"), 2L);
	KUNIT_EXPECT_EQ(test, number_of(test, end, "hard"), 1L);
	KUNIT_EXPECT_GT(test, number_of(test, end, "since"), 0L);
	ia = line_of_handle(test, "ias", "ia", b->in->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "end_hard-mark"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, line_of_handle(test, "eps", "ep", link->in),
					"hard_crossed"), 1L);
}

/* ---- Ends ------------------------------------------------------------------ */

static void consumer_and_peer_are_reasons(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	char ours[128], theirs[128], *ia;

	kd_connect_pair(c.a, c.p);
	addresses(test, c.a->ep, ours, sizeof(ours));
	addresses(test, c.p->ep, theirs, sizeof(theirs));
	kd_disconnect(c.a, c.p);
	expect_word(test, line_of(test, "ends", ours), "reason", "consumer");
	expect_word(test, line_of(test, "ends", theirs), "reason", "peer");
	ia = line_of_handle(test, "ias", "ia", c.p->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "requests"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "established"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "end_peer"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "end_consumer"), 0L);
}

static void rejection_is_a_reason(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	u16 port = kd_port();
	char *ia;

	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(c.a, c.p, port);
	KD_ASSERT_OK(test, dat_cr_reject(kd_expect_cr(c.p), 0, NULL));
	kd_expect_event(test, c.a->conn_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, NULL);
	ia = line_of_handle(test, "ias", "ia", c.a->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "end_refused"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "established"), 0L);
	ia = line_of_handle(test, "ias", "ia", c.p->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "rejected"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "turned_away"), 0L);
}

/* A message that is longer than the buffer which it meets. */
static void protocol_is_a_reason(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	char words[128];
	DAT_EVENT event;

	kd_connect_pair(c.a, c.p);
	addresses(test, c.p->ep, words, sizeof(words));
	kd_recv(c.p, 0, 16, 1);
	kd_send(c.a, 0, 64, 2);
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.p->ep, DAT_EP_STATE_DISCONNECTED));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(c.p->conn_evd, &event, KD_TIMEOUT_MS));
	expect_word(test, line_of(test, "ends", words), "reason", "protocol");
}

/* On iWARP a message that meets no buffer of the SRQ ends the connection. */
static void dry_queue_is_a_reason(struct kunit *test)
{
	const char *name = *(const char * const *)test->param_value;
	struct rx_bench *b;
	struct rx_link *link;
	char words[128];
	DAT_EVENT event;

	if (!kd_ia_has(name, KD_IWARP))
		kunit_skip(test, "RoCE waits for a buffer");
	b = rx_open(test, 32);
	link = rx_link(b);
	addresses(test, link->in, words, sizeof(words));
	rx_post(b, link, 1);
	rx_deliver_n(b, link, 1);
	KD_ASSERT_OK(test, rx_try_send(b, link));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(b->in->conn_evd, &event, KD_TIMEOUT_MS));
	expect_word(test, line_of(test, "ends", words), "reason", "queue-dry");
}

static void unplug_is_a_reason(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	char words[128], *ia;

	kd_setup(a, NULL);
	kd_setup(p, NULL);
	kd_connect_pair(a, p);
	addresses(test, p->ep, words, sizeof(words));
	kd_unplug(test);
	kd_expect_broken(p);
	expect_word(test, line_of(test, "ends", words), "reason", "unplug");
	ia = line_of_handle(test, "ias", "ia", p->ia);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "end_unplug"), 1L);
	KUNIT_EXPECT_EQ(test, number_of(test, ia, "gone"), 1L);
}

/* ---- What the tracepoints say ---------------------------------------------- */

#define TRACING	"/sys/kernel/tracing/"
#define FORMATS	"grep -h '^print fmt' " TRACING "events/kdapl*/*/format"

static void stop_tracing(void *event)
{
	char command[128];

	snprintf(command, sizeof(command), "echo 0 >" TRACING "events/kdapl/%s/enable; "
		 "echo >" TRACING "trace", (const char *)event);
	shell(command);
}

static void start_tracing(struct kunit *test, const char *event)
{
	char command[128];

	if (!kd_file_exists(TRACING "events/kdapl"))
		kunit_skip(test, "no tracepoints here");
	snprintf(command, sizeof(command), "echo >" TRACING "trace; echo 1 >" TRACING
		 "events/kdapl/%s/enable", event);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_tracing, (void *)event));
}

static void expect_traced(struct kunit *test, const char *words)
{
	char command[256];

	snprintf(command, sizeof(command), "grep -qF '%s' " TRACING "trace", words);
	KUNIT_EXPECT_EQ_MSG(test, 0, shell(command), "no trace has \"%s\"", words);
}

static void no_size(DAT_PVOID context, KDAT_POOL_SIZE *size) { }

static void refusals_name_the_member(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = 2 };
	DAT_EP_PARAM param = { .request_evd_handle = (DAT_EVD_HANDLE)(uintptr_t)7 };
	KDAT_POOL_ATTR pool_attr = {
		.ia = s->ia, .name = "pool", .length = 64, .header = 65, .size = no_size,
	};
	DAT_EP_ATTR attr = kd_ep_attr();
	KDAT_POOL_HANDLE pool;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	start_tracing(test, "kdapl_refused");
	attr.max_request_dtos = 64;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create_with_srq(s->ia, s->pz, s->recv_evd, NULL, s->conn_evd, s->srq,
					     &attr, &ep));
	expect_traced(test, "member=max_request_dtos value=64 limit=0 rule=0 without");
	attr.max_request_iov = -3;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd, s->conn_evd, &attr,
				    &ep));
	expect_traced(test, "member=max_request_iov value=-3 limit=");
	attr = kd_ep_attr();
	attr.service_type++;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd, s->conn_evd, &attr,
				    &ep));
	expect_traced(test, "member=service_type");
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_modify(s->ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
	expect_traced(test, "member=request_evd_handle value=7 ");
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_srq_create(s->ia, s->pz, &srq_attr, &srq));
	expect_traced(test, "member=low_watermark value=2 ");
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_pool_create(&pool_attr, &pool));
	expect_traced(test, "member=header value=65 limit=0 rule=from 0 to length");
}

/* Expect the tracepoint of @number, with @reason and the addresses @words. */
static void expect_end_traced(struct kunit *test, DAT_EVENT_NUMBER number, const char *reason,
			      const char *words)
{
	char line[224];

	/* @words ends with a blank. */
	snprintf(line, sizeof(line), "event=%s reason=%s %.*s", kdat_event_name(number), reason,
		 (int)strlen(words) - 1, words);
	expect_traced(test, line);
}

static void events_have_reason_and_addresses(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	char words[128];

	start_tracing(test, "kdapl_conn_event");
	kd_connect_pair(c.a, c.p);
	addresses(test, c.p->ep, words, sizeof(words));
	kd_disconnect(c.a, c.p);
	expect_end_traced(test, DAT_CONNECTION_EVENT_ESTABLISHED, "none", words);
	expect_end_traced(test, DAT_CONNECTION_EVENT_DISCONNECTED, "peer", words);
}

/* perf and trace-cmd end the format at the first quotation mark, and show no event behind. */
static void formats_can_be_parsed(struct kunit *test)
{
	if (!kd_file_exists(TRACING "events/kdapl"))
		kunit_skip(test, "no tracepoints here");
	KUNIT_ASSERT_EQ(test, 0, shell(FORMATS " | grep -q ."));
	/* grep finds no such line, which is status 1. */
	KUNIT_EXPECT_EQ(test, 1 << 8, shell(FORMATS " | grep -v '^print fmt: \"[^\"]*\", REC->'"));
}

static struct kunit_case stats_cases[] = {
	KUNIT_CASE_PARAM(counts_marks, kd_gen_ia),
	KUNIT_CASE_PARAM(hard_mark_is_the_reason, kd_gen_ia),
	KUNIT_CASE_PARAM(consumer_and_peer_are_reasons, kd_gen_ia),
	KUNIT_CASE_PARAM(rejection_is_a_reason, kd_gen_ia),
	KUNIT_CASE_PARAM(protocol_is_a_reason, kd_gen_ia),
	KUNIT_CASE_PARAM(dry_queue_is_a_reason, kd_gen_ia),
	KUNIT_CASE_PARAM(unplug_is_a_reason, kd_gen_second),
	KUNIT_CASE_PARAM(refusals_name_the_member, kd_gen_ia),
	KUNIT_CASE_PARAM(events_have_reason_and_addresses, kd_gen_ia),
	KUNIT_CASE(formats_can_be_parsed),
	{}
};

KD_SUITE("kdapl-stats", stats_cases, "what /proc/kdapl shows", .init = kd_plug_init);
