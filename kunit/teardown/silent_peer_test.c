// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers over iWARP that are accepted and then silent. One that has asked to send the first
 * frame (MPA version 2, peer to peer) need not send it, and until then neither siw nor
 * iw_cm ends the connection. No call waits for it (contract L6, N6), and neither does a
 * device that leaves.
 *
 * With siw the peer is a TCP socket, which may also speak too early. The simulated adapter
 * stands for drivers of which nothing is known: its report of the connection is withheld.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_pool.h>
#include "call.h"
#include "device.h"
#include "ia.h"
#include "inside.h"
#include "plug.h"
#include "probe.h"
#include "withhold.h"

#define BOUND_MS	12000		/* where the connection can be ended; less than 15 s */
#define REFUSAL_MS	KD_TIMEOUT_MS	/* where only the driver can */

/* ---- Calls that must come back ------------------------------------------------- */

static DAT_RETURN call_ia_close(void *ia)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN call_srq_free(void *srq)
{
	return dat_srq_free(srq);
}

static DAT_RETURN call_lmr_free(void *lmr)
{
	return dat_lmr_free(lmr);
}

static DAT_RETURN call_pool_free(void *pool)
{
	kdat_pool_free(pool);
	return DAT_SUCCESS;
}

static DAT_RETURN call_ep_reset(void *ep)
{
	return dat_ep_reset(ep);
}

static DAT_RETURN call_unplug(void *test)
{
	return kd_delete_device(test);
}

/* ---- A peer of siw that is a TCP socket ------------------------------------------ */

#define MPA_ENHANCED	0x1000
#define MPA_REVISION	2
#define MPA_P2P		0x8000		/* with ird: the initiator sends first */
#define MPA_WRITE_RTR	0x8000		/* with ord: a Write, and it is empty */

struct mpa_frame {
	char key[16];
	__be16 bits;
	__be16 pd_len;
	__be16 ird;
	__be16 ord;
} __packed;

/* A Send of four bytes, the first of its stream, as DDP and RDMAP frame it. */
struct send_frame {
	__be16 len;
	u8 ddp;
	u8 rdmap;
	__be32 rsvd;
	__be32 qn;
	__be32 msn;
	__be32 offset;
	u8 data[4];
	__be32 crc;
} __packed;

struct mute {
	struct kunit *test;
	struct socket *sock;
};

/* An orderly end: siw takes it for the first frame, and then for the end. */
static void mute_hang_up(void *data)
{
	struct mute *m = data;

	if (m->sock)
		kernel_sock_shutdown(m->sock, SHUT_RDWR);
}

static void mute_free(void *data)
{
	struct mute *m = data;

	if (m->sock)
		sock_release(m->sock);
	m->sock = NULL;
}

static void mute_send(struct mute *m, void *data, size_t len)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec iov = { data, len };

	KUNIT_ASSERT_EQ(m->test, (int)len, kernel_sendmsg(m->sock, &msg, &iov, 1, len));
}

/* Read the answer: siw has accepted. */
static void mute_expect_reply(struct mute *m)
{
	struct mpa_frame reply = { };
	struct msghdr msg = { };
	struct kvec iov = { &reply, sizeof(reply) };

	KUNIT_ASSERT_EQ(m->test, (int)sizeof(reply),
			kernel_recvmsg(m->sock, &msg, &iov, 1, sizeof(reply),
				       MSG_WAITALL));
	KUNIT_ASSERT_EQ(m->test, 0, memcmp(reply.key, "MPA ID Rep Frame", 16));
	KUNIT_ASSERT_NE(m->test, 0, be16_to_cpu(reply.ird) & MPA_P2P);
}

/* Ask @side for a connection; with @bits the first frame is promised. */
static struct mute *mute_request(struct kd_side *side, u16 bits)
{
	struct mute *m = kunit_kzalloc(side->test, sizeof(*m), GFP_KERNEL);
	struct sockaddr_in to = *(struct sockaddr_in *)side->addr;
	u16 port = kd_port();
	struct mpa_frame request = {
		.key = "MPA ID Req Frame",
		.bits = cpu_to_be16(MPA_ENHANCED | MPA_REVISION),
		.pd_len = cpu_to_be16(4),
		.ird = cpu_to_be16(bits | 1),
		.ord = cpu_to_be16(bits | 1),
	};

	KUNIT_ASSERT_NOT_NULL(side->test, m);
	m->test = side->test;
	kd_psp(side, port, DAT_PSP_CONSUMER_FLAG);
	KUNIT_ASSERT_EQ(side->test, 0, sock_create_kern(&init_net, AF_INET, SOCK_STREAM,
							IPPROTO_TCP, &m->sock));
	KUNIT_ASSERT_EQ(side->test, 0, kunit_add_action_or_reset(side->test, mute_free, m));
	to.sin_port = htons(port);
	KUNIT_ASSERT_EQ(side->test, 0, kernel_connect(m->sock, (void *)&to, sizeof(to), 0));
	mute_send(m, &request, sizeof(request));
	return m;
}

/* The same, with that promise, and be accepted. */
static struct mute *mute_connect(struct kd_side *side)
{
	struct mute *m = mute_request(side, MPA_P2P);

	BUILD_BUG_ON(MPA_P2P != MPA_WRITE_RTR);
	KD_ASSERT_OK(side->test, dat_cr_accept(kd_expect_cr(side), side->ep, 0, NULL));
	mute_expect_reply(m);
	KUNIT_EXPECT_EQ(side->test, (u32)kd_state(side),
			(u32)DAT_EP_STATE_COMPLETION_PENDING);
	return m;
}

/* It does so when a peer closes early, if another CPU is about to accept. */
static void skip_on_several_cpus(struct kunit *test)
{
	if (num_online_cpus() > 1)
		kunit_skip(test, "iw_cm ends in a BUG()");
}

static struct kd_side *open_siw(struct kunit *test, const char *ia,
				const struct kd_opts *opts)
{
	struct kd_side *s;

	skip_on_several_cpus(test);
	s = kd_open(test, ia);
	kd_setup(s, opts);
	return s;
}

static void L6_srq_free_of_silent_peer(struct kunit *test)
{
	struct kd_side *s = open_siw(test, "siw0/1", &(struct kd_opts) { .srq_len = 4 });
	struct mute *m = mute_connect(s);

	KD_ASSERT_OK(test, dat_ep_free(s->ep));
	kd_call_expect(test, kd_call_begin(test, call_srq_free, s->srq), DAT_SUCCESS, BOUND_MS,
		       mute_hang_up, m);
}

static void L6_lmr_free_of_silent_peer(struct kunit *test)
{
	struct kd_side *s = open_siw(test, "siw0/1", NULL);
	struct mute *m;

	kd_recv(s, 0, 64, 1);
	m = mute_connect(s);
	KD_ASSERT_OK(test, dat_ep_free(s->ep));
	kd_call_expect(test, kd_call_begin(test, call_lmr_free, s->buf->lmr), DAT_SUCCESS,
		       BOUND_MS, mute_hang_up, m);
}

/* The consumer is told at once, and the Endpoint can be used again. */
static void reset_of_silent_peer(struct kunit *test)
{
	struct kd_side *s = open_siw(test, "siw0/1", NULL);
	struct kd_side *a = open_siw(test, "siw0/1", NULL);
	struct mute *m = mute_connect(s);

	KD_ASSERT_OK(test, dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_call_expect(test, kd_call_begin(test, call_ep_reset, s->ep), DAT_SUCCESS, BOUND_MS,
		       mute_hang_up, m);
	kd_expect_event(test, s->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, NULL);
	kd_expect_no_event(test, s->conn_evd);
	kd_connect_pair(a, s);
	kd_ping(a, s);
}

static void close_of_silent_peer(struct kunit *test)
{
	struct kd_side *s = open_siw(test, "siw0/1", NULL);
	struct mute *m = mute_connect(s);
	DAT_IA_HANDLE ia = s->ia;

	s->ia = NULL;
	kd_call_expect(test, kd_call_begin(test, call_ia_close, ia), DAT_SUCCESS, BOUND_MS,
		       mute_hang_up, m);
}

/* One that is neither given up nor ended has ended when the device leaves. */
static void N6_silent_peer(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct kd_side *s = kd_open_second(test);
	struct mute *m;

	if (!kd_is_iwarp(s))
		kunit_skip(test, "only peers over iWARP announce anything");
	skip_on_several_cpus(test);
	kd_setup(s, NULL);
	m = mute_connect(s);
	kd_call_expect(test, kd_call_begin(test, call_unplug, test), 0, BOUND_MS,
		       mute_hang_up, m);
	KUNIT_EXPECT_FALSE(test, kd_is_plugged(d->ia));
	kd_expect_broken(s);
}

/* The peer's orderly end: the connection is there for a moment. */
static void silent_peer_hangs_up(struct kunit *test)
{
	struct kd_side *s = open_siw(test, "siw0/1", NULL);

	mute_hang_up(mute_connect(s));
	kd_expect_event(test, s->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	kd_expect_disconnected(s, NULL);
	KD_EXPECT_OK(test, dat_ep_reset(s->ep));
}

/*
 * The first message is there when siw begins to look at the socket, as it is when an answer
 * is quick: siw tells the peer that it may send before that. Nothing else follows.
 */
static void N8_first_message_is_early(struct kunit *test)
{
	struct send_frame send = {
		.len = cpu_to_be16(sizeof(send) - sizeof(send.len) - sizeof(send.crc)),
		.ddp = 0x41,		/* version 1, the last segment */
		.rdmap = 0x43,		/* version 1, Send */
		.msn = cpu_to_be32(1),
		.data = "ear",
	};
	struct kd_side *s = open_siw(test, "siw0/1", NULL);
	DAT_CR_HANDLE cr;
	struct mute *m;

	kd_recv(s, 0, 64, 1);
	m = mute_request(s, 0);
	cr = kd_expect_cr(s);
	mute_send(m, &send, sizeof(send));
	KD_ASSERT_OK(test, dat_cr_accept(cr, s->ep, 0, NULL));
	kd_expect_event(test, s->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	kd_expect_dto(test, s->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_STREQ(test, s->buf->va, "ear");
}

/* ---- A driver that does not report connections ----------------------------------- */

/* A pair whose passive side will wait for its driver. */
static struct kd_pair make_withheld(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, &(struct kd_opts) { .no_ep = true });

	if (!kd_is_iwarp(c.a))
		kunit_skip(test, "only drivers of iWARP report them");
	kd_withhold_on(test, c.p->name);
	kd_withhold(test, 3);
	return c;
}

/* Accept a request with @passive. The driver keeps that to itself. */
static void withheld_connect(struct kd_pair *c, DAT_EP_HANDLE passive)
{
	unsigned int n = kd_withheld();
	u16 port = kd_port();

	kd_psp(c->p, port, DAT_PSP_CONSUMER_FLAG);
	c->a->ep = kd_ep(c->a, NULL);
	kd_connect_start(c->a, c->p, port);
	KD_ASSERT_OK(c->p->test, dat_cr_accept(kd_expect_cr(c->p), passive, 0, NULL));
	kd_expect_withheld(c->p->test, n + 1);
}

/* Memory that the peer may reach is not given back, and is when the driver speaks. */
static void L6_refused_while_the_driver_is_silent(struct kunit *test)
{
	DAT_EP_HANDLE shared, plain, kept;
	struct kd_call *srq, *lmr, *reset;
	DAT_SRQ_PARAM param;
	struct kd_buf *own;
	struct kd_pair c;

	c = make_withheld(test);
	plain = kd_ep(c.p, NULL);
	kept = kd_ep(c.p, NULL);
	c.p->ep = plain;
	kd_recv(c.p, 0, 64, 1);
	own = c.p->buf;
	c.p->buf = kd_buf_alloc(c.p, PAGE_SIZE);
	c.p->srq = kd_srq(c.p, 4);
	kd_recv(c.p, 0, 64, 2);
	shared = kd_ep(c.p, NULL);
	withheld_connect(&c, shared);
	withheld_connect(&c, plain);
	withheld_connect(&c, kept);
	KD_ASSERT_OK(test, dat_ep_free(shared));
	KD_ASSERT_OK(test, dat_ep_free(plain));
	KD_ASSERT_OK(test, dat_ep_disconnect(kept, DAT_CLOSE_ABRUPT_FLAG));
	srq = kd_call_begin(test, call_srq_free, c.p->srq);
	lmr = kd_call_begin(test, call_lmr_free, own->lmr);
	reset = kd_call_begin(test, call_ep_reset, kept);
	kd_call_expect(test, srq, DAT_INVALID_STATE, REFUSAL_MS, kd_report_withheld, NULL);
	kd_call_expect(test, lmr, DAT_INVALID_STATE, REFUSAL_MS, kd_report_withheld, NULL);
	kd_call_expect(test, reset, DAT_INVALID_STATE, REFUSAL_MS, kd_report_withheld, NULL);
	KD_EXPECT_OK(test, dat_srq_query(c.p->srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, 1, param.outstanding_dto_count);
	kd_report_withheld(NULL);
	KD_EXPECT_OK(test, dat_ep_reset(kept));
	KD_EXPECT_OK(test, dat_srq_free(c.p->srq));
	KD_EXPECT_OK(test, dat_lmr_free(own->lmr));
}

/* Some blocks of 32 KiB. */
static void size_of_pool(DAT_PVOID context, KDAT_POOL_SIZE *size)
{
	*size = (KDAT_POOL_SIZE) { .wanted = 4 * SZ_32K / SZ_4K, .most = 4 * SZ_32K / SZ_4K };
}

/* A pool whose SRQ stays keeps all its memory at once, after one wait, and says so once. */
static void L6_pool_of_a_silent_driver(struct kunit *test)
{
	struct kd_pair c = make_withheld(test);
	KDAT_POOL_ATTR attr = {
		.ia = c.p->ia, .pz = c.p->pz, .name = c.p->name,
		.length = SZ_4K, .size = size_of_pool,
	};
	KDAT_POOL_HANDLE pool;
	KDAT_POOL_PARAM param;
	DAT_EP_HANDLE ep;

	KD_ASSERT_OK(test, kdat_pool_create(&attr, &pool));
	kdat_pool_query(pool, &param);
	KUNIT_EXPECT_EQ(test, param.bytes, 4 * SZ_32K);
	kd_count_log(test, "bytes are lost");
	c.p->srq = param.srq;
	ep = kd_ep(c.p, NULL);
	withheld_connect(&c, ep);
	KD_ASSERT_OK(test, dat_ep_free(ep));
	kd_call_expect(test, kd_call_begin(test, call_pool_free, pool), DAT_SUCCESS, REFUSAL_MS,
		       kd_report_withheld, NULL);
	KUNIT_EXPECT_EQ(test, 1, kd_logged());
	kd_report_withheld(NULL);
	KD_EXPECT_OK(test, dat_srq_free(c.p->srq));
}

static bool is_closing(void *ia)
{
	return READ_ONCE(((struct kdapl_ia *)ia)->closing);
}

/*
 * An IA that cannot be closed keeps its handle, and is closed later: by a call that has come
 * while the first one was waiting.
 */
static void close_is_refused(struct kunit *test)
{
	struct kd_pair c = make_withheld(test);
	struct kd_call *first, *second;
	DAT_UINT64 id;

	c.p->ep = kd_ep(c.p, NULL);
	kd_recv(c.p, 0, 64, 1);
	withheld_connect(&c, c.p->ep);
	first = kd_call_begin(test, call_ia_close, c.p->ia);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_closing,
					      kd_inside(c.p->ia, DAT_HANDLE_TYPE_IA),
					      KD_TIMEOUT_MS));
	second = kd_call_begin(test, call_ia_close, c.p->ia);
	KD_EXPECT_OK(test, kdat_ia_id(c.p->ia, &id));
	kd_call_expect(test, first, DAT_INVALID_STATE, REFUSAL_MS, kd_report_withheld, NULL);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_pz_create(c.p->ia, &c.p->pz));
	kd_report_withheld(NULL);
	kd_call_expect(test, second, DAT_SUCCESS, REFUSAL_MS, kd_report_withheld, NULL);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_ia_id(c.p->ia, &id));
	c.p->ia = NULL;
}

/*
 * With several CPUs siw reports the end of such a connection before it was established, for
 * which cm_close_handler() of iw_cm has a BUG().
 */
static int silent_init(struct kunit *test)
{
	return kd_plug_init(test);
}

static struct kunit_case silent_peer_cases[] = {
	KUNIT_CASE(L6_srq_free_of_silent_peer),
	KUNIT_CASE(L6_lmr_free_of_silent_peer),
	KUNIT_CASE(reset_of_silent_peer),
	KUNIT_CASE(close_of_silent_peer),
	KUNIT_CASE(silent_peer_hangs_up),
	KUNIT_CASE(N8_first_message_is_early),
	KUNIT_CASE_PARAM(N6_silent_peer, kd_gen_second),
	KUNIT_CASE_PARAM(L6_refused_while_the_driver_is_silent, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(L6_pool_of_a_silent_driver, kd_gen_simulated_ia),
	KUNIT_CASE_PARAM(close_is_refused, kd_gen_simulated_ia),
	{}
};

KD_SUITE("kdapl-silent-peer", silent_peer_cases, "peers that are accepted and silent",
	 .init = silent_init);
KDAPL_IMPORT_TEST;
