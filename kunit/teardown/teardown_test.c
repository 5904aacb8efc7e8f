// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freeing objects (contract C4, C5): an object in use cannot be freed, and the
 * error names the user; an IA closes gracefully only when it is empty; upcalls
 * that free each other's EVDs do not wait for each other.
 */
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include "fixture.h"

static const DAT_EVD_FLAGS streams = DAT_EVD_DTO_FLAG |
	DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG;

/* ---- In use ------------------------------------------------------------------------ */

#define STATE(sub)	DAT_ERROR(DAT_INVALID_STATE, sub)

static void pz_in_use(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_SRQ_ATTR srq_attr = { 8, 1, 0 };
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE fmr;
	DAT_RMR_HANDLE rmr;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	kd_setup(s, &(struct kd_opts) { .no_ep = true });
	KUNIT_EXPECT_EQ(test, dat_pz_free(s->pz),
			STATE(DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_lmr_free(s->buf->lmr));
	KD_EXPECT_OK(test, dat_pz_free(s->pz));

	KD_ASSERT_OK(test, dat_pz_create(s->ia, &pz));
	KD_ASSERT_OK(test, dat_ep_create(s->ia, pz, s->recv_evd, s->req_evd,
					 s->conn_evd, &attr, &ep));
	KUNIT_EXPECT_EQ(test, dat_pz_free(pz),
			STATE(DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KD_ASSERT_OK(test, dat_srq_create(s->ia, pz, &srq_attr, &srq));
	KUNIT_EXPECT_EQ(test, dat_pz_free(pz),
			STATE(DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_srq_free(srq));
	KD_ASSERT_OK(test, dat_rmr_create(pz, &rmr));
	KUNIT_EXPECT_EQ(test, dat_pz_free(pz),
			STATE(DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_ASSERT_OK(test, dat_lmr_allocate(s->ia, pz, 1, DAT_LMR_SCOPE_PZ,
					    &fmr));
	KUNIT_EXPECT_EQ(test, dat_pz_free(pz),
			STATE(DAT_INVALID_STATE_PZ_IN_USE));
	KD_EXPECT_OK(test, dat_lmr_free(fmr));
	KD_EXPECT_OK(test, dat_pz_free(pz));
}

static void evd_in_use(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_RETURN in_use = STATE(DAT_INVALID_STATE_EVD_IN_USE);
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(kd_port()),
	};
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	int i;

	kd_setup(s, NULL);
	evd = kd_evd(s, streams, 8, DAT_UPCALL_DISABLE);
	for (i = 0; i < 3; i++) {
		KD_ASSERT_OK(test,
			     dat_ep_create(s->ia, s->pz,
					   i == 0 ? evd : s->recv_evd,
					   i == 1 ? evd : s->req_evd,
					   i == 2 ? evd : s->conn_evd, &attr,
					   &ep));
		KUNIT_EXPECT_EQ(test, dat_evd_free(evd), in_use);
		KD_EXPECT_OK(test, dat_ep_free(ep));
	}
	KD_ASSERT_OK(test, dat_psp_create(s->ia, kd_port(), evd, 0, &psp));
	KUNIT_EXPECT_EQ(test, dat_evd_free(evd), in_use);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_ASSERT_OK(test, dat_rsp_create(s->ia, kd_port(), s->ep, evd, &rsp));
	KUNIT_EXPECT_EQ(test, dat_evd_free(evd), in_use);
	KUNIT_EXPECT_EQ(test, dat_ep_free(s->ep),
			STATE(DAT_INVALID_STATE_EP_RESERVED));
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KD_ASSERT_OK(test, dat_csp_create(s->ia, &comm, (void *)&at,
					  evd, &csp));
	KUNIT_EXPECT_EQ(test, dat_evd_free(evd), in_use);
	KD_EXPECT_OK(test, dat_csp_free(csp));
	KD_EXPECT_OK(test, dat_evd_free(evd));
	/* The asynchronous EVD belongs to the IA. */
	KUNIT_EXPECT_EQ(test, dat_evd_free(s->async_evd), in_use);
}

static void srq_in_use(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	KUNIT_EXPECT_EQ(test, dat_srq_free(s->srq),
			STATE(DAT_INVALID_STATE_SRQ_IN_USE));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	KD_EXPECT_OK(test, dat_srq_free(s->srq));
}

/* ---- Graceful closing ---------------------------------------------------------------- */

static void graceful(struct kd_side *s, DAT_RETURN want)
{
	KUNIT_EXPECT_EQ(s->test, dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG),
			want);
}

/*
 * Every kind of object keeps the IA from closing gracefully, which changes
 * nothing.
 */
static void close_gracefully(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test), *peer = kd_open_param(test);
	DAT_RETURN in_use = STATE(DAT_INVALID_STATE_IA_IN_USE);
	DAT_LMR_CONTEXT context;
	DAT_EVD_HANDLE cr_evd;
	DAT_LMR_HANDLE reserved;
	DAT_RMR_HANDLE rmr;
	DAT_PSP_HANDLE psp;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_setup(peer, NULL);
	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	KD_ASSERT_OK(test, dat_rmr_create(s->pz, &rmr));
	psp = kd_psp(s, port, DAT_PSP_CONSUMER_FLAG);
	kd_connect_start(peer, s, port);
	cr = kd_expect_cr(s);
	cr_evd = s->cr_evd;
	graceful(s, in_use);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	KD_EXPECT_OK(test, dat_srq_free(s->srq));
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(s->buf->lmr));
	KD_EXPECT_OK(test, dat_evd_free(s->recv_evd));
	KD_EXPECT_OK(test, dat_evd_free(s->req_evd));
	KD_EXPECT_OK(test, dat_evd_free(s->conn_evd));
	KD_EXPECT_OK(test, dat_pz_free(s->pz));
	graceful(s, in_use);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	graceful(s, in_use);
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
	/* The reserved LMR belongs to the IA and does not count. */
	KD_EXPECT_OK(test, dat_ia_reserved_lmr(s->ia, &reserved, &context));
	graceful(s, DAT_SUCCESS);
	s->ia = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_lmr_free(reserved));
}

/* An abrupt close frees every kind of object. */
static void close_abruptly(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test), *peer = kd_open_param(test);
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT rkey;
	DAT_RSP_HANDLE rsp;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_HANDLE fmr;
	u16 port = kd_port();
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;

	kd_setup(s, &(struct kd_opts) { .srq_len = 8 });
	kd_setup(peer, NULL);
	kd_connect_pair(peer, s);
	kd_recv(s, 0, 64, 1);
	KD_ASSERT_OK(test, dat_rmr_create(s->pz, &rmr));
	KD_ASSERT_OK(test, dat_lmr_allocate(s->ia, s->pz, 4, DAT_LMR_SCOPE_PZ,
					    &fmr));
	part = kd_seg(s->buf, 0, 64);
	KD_ASSERT_OK(test, dat_rmr_bind(rmr, s->buf->lmr, &part,
					DAT_MEM_PRIV_ALL_FLAG, 0, s->ep,
					kd_cookie(1), 0, &rkey));
	kd_psp(s, port, DAT_PSP_PROVIDER_FLAG);
	ep = kd_ep(s, NULL);
	KD_ASSERT_OK(test, dat_rsp_create(s->ia, kd_port(), ep, s->cr_evd,
					  &rsp));
	peer->ep = kd_ep(peer, NULL);
	kd_connect_start(peer, s, port);
	cr = kd_expect_cr(s);
	KD_ASSERT_OK(test, dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG));
	s->ia = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_rsp_free(rsp));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_rmr_free(rmr));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_lmr_free(fmr));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_ep_free(ep));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_srq_free(s->srq));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_evd_free(s->recv_evd));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_pz_free(s->pz));
}

/* ---- Upcalls that free each other's EVDs ------------------------------------------- */

struct crossing {
	struct completion in[2];
	DAT_EVD_HANDLE evd[2];
	DAT_IA_HANDLE ia[2];
	DAT_RETURN ret[2];
	enum { FREE, TEARDOWN, CLOSE } what;
};

struct crossing_side {
	struct crossing *c;
	int mine;
};

static void crossing_hook(struct kd_recorder *rec, const DAT_EVENT *event,
			  DAT_BOOLEAN more)
{
	struct crossing_side *side = rec->priv;
	struct crossing *c = side->c;
	int other = !side->mine;

	complete(&c->in[side->mine]);
	wait_for_completion_timeout(&c->in[other],
				    msecs_to_jiffies(KD_TIMEOUT_MS));
	switch (c->what) {
	case FREE:
		c->ret[side->mine] = dat_evd_free(c->evd[other]);
		break;
	case TEARDOWN:
		c->ret[side->mine] =
			dat_evd_modify_upcall(c->evd[other],
					      DAT_UPCALL_TEARDOWN,
					      DAT_UPCALL_SAME,
					      DAT_UPCALL_INVOC_NEW);
		break;
	default:
		c->ret[side->mine] = dat_ia_close(c->ia[other],
						  DAT_CLOSE_ABRUPT_FLAG);
		break;
	}
}

/* Two upcalls free each other's EVD: one succeeds, the other one is refused. */
static void cross(struct kunit *test, struct kd_side *s[2], int what)
{
	const DAT_EVENT soft = { .event_number = DAT_SOFTWARE_EVENT };
	struct crossing *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct crossing_side *side;
	struct kd_recorder *rec[2];
	DAT_RETURN_TYPE type[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	side = kunit_kcalloc(test, 2, sizeof(*side), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, side);
	c->what = what;
	for (i = 0; i < 2; i++) {
		init_completion(&c->in[i]);
		side[i] = (struct crossing_side) { c, i };
		rec[i] = kd_recorder(test);
		rec[i]->hook = crossing_hook;
		rec[i]->priv = &side[i];
		c->ia[i] = s[i]->ia;
		c->evd[i] = kd_recorded_evd(s[i], DAT_EVD_SOFTWARE_FLAG, 8,
					    DAT_UPCALL_SINGLE_INSTANCE, rec[i]);
	}
	for (i = 0; i < 2; i++)
		KD_ASSERT_OK(test, dat_evd_post_se(c->evd[i], &soft));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec[0], 1));
	KUNIT_ASSERT_TRUE(test, kd_wait_calls(rec[1], 1));
	for (i = 0; i < 2; i++)
		type[i] = DAT_GET_TYPE(c->ret[i]);
	KUNIT_EXPECT_EQ(test, (u32)min(type[0], type[1]), (u32)DAT_SUCCESS);
	KUNIT_EXPECT_EQ(test, (u32)max(type[0], type[1]),
			(u32)DAT_INVALID_STATE);
	for (i = 0; i < 2; i++)
		if (what == CLOSE && type[!i] == DAT_SUCCESS)
			s[i]->ia = NULL;
}

static void C4_upcalls_free_each_other(struct kunit *test)
{
	struct kd_side *s[2] = { kd_open_param(test) };
	int i;

	s[1] = s[0];
	for (i = 0; i < 4; i++) {
		cross(test, s, FREE);
		cross(test, s, TEARDOWN);
	}
}

static void C4_upcalls_close_each_other(struct kunit *test)
{
	struct kd_side *s[2] = { kd_open_param(test), kd_open_param(test) };

	cross(test, s, CLOSE);
}

static struct kunit_case teardown_cases[] = {
	KUNIT_CASE_PARAM(pz_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(evd_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(srq_in_use, kd_gen_ia),
	KUNIT_CASE_PARAM(close_gracefully, kd_gen_ia),
	KUNIT_CASE_PARAM(close_abruptly, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_upcalls_free_each_other, kd_gen_ia),
	KUNIT_CASE_PARAM(C4_upcalls_close_each_other, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-teardown", teardown_cases, "freeing and closing");
