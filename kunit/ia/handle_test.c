// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handles (contract I2, I3, I4): a call returns DAT_INVALID_HANDLE unless its
 * argument is the handle of an object of the right type.
 *
 * Each bad_<type>() makes every call that takes a handle of this type, with one
 * bad handle and everything else valid.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/net.h>
#include "fixture.h"

/* One valid object of each type, and room for the results of calls. */
struct hctx {
	struct kunit *test;
	const char *what;		/* the kind of bad handle */
	u32 subtype;			/* that names the type of handle */
	struct kd_side *s;
	DAT_HANDLE valid[DAT_HANDLE_TYPE_CSP + 1];
	DAT_HANDLE out;
	DAT_COMM comm;
	struct sockaddr_in sin;
	DAT_IA_ADDRESS_PTR addr;
	DAT_IA_ATTR ia_attr;
	DAT_PROVIDER_ATTR prov_attr;
	DAT_EP_PARAM ep_param;
	DAT_EP_ATTR ep_attr;
	DAT_SRQ_ATTR srq_attr;
	DAT_EVENT event;
	DAT_LMR_TRIPLET seg;
	DAT_RMR_TRIPLET remote;
	DAT_PADDR pages[1];
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;
	DAT_VLEN len;
	DAT_VADDR va;
	DAT_CONN_QUAL qual;
	DAT_CONTEXT cookie;
	DAT_HANDLE_TYPE type;
	union {
		DAT_SRQ_PARAM srq;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_PZ_PARAM pz;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_CSP_PARAM csp;
		DAT_CR_PARAM cr;
	} param;
};

#define BAD_AS(c, sub, call)						\
do {									\
	DAT_RETURN __ret = (call);					\
	struct hctx *__c = (c);						\
									\
	KUNIT_EXPECT_EQ_MSG(__c->test, __ret,				\
			    DAT_ERROR(DAT_INVALID_HANDLE, sub),		\
			    "%s, handle %s: %#x %s", #call, __c->what,	\
			    __ret, kd_strerror(__ret));			\
} while (0)

#define BAD(c, call)							\
do {									\
	struct hctx *__h = (c);						\
									\
	BAD_AS(__h, __h->subtype, call);				\
} while (0)

static void bad_any(struct hctx *c, DAT_HANDLE h)
{
	BAD_AS(c, DAT_INVALID_HANDLE1, dat_set_consumer_context(h, c->cookie));
	BAD_AS(c, DAT_INVALID_HANDLE1, dat_get_consumer_context(h, &c->cookie));
	BAD_AS(c, DAT_INVALID_HANDLE1, dat_get_handle_type(h, &c->type));
}

static void bad_ia(struct hctx *c, DAT_HANDLE h)
{
	struct kd_side *s = c->s;

	BAD(c, dat_ia_query(h, NULL, DAT_IA_FIELD_ALL, &c->ia_attr,
			    DAT_PROVIDER_FIELD_ALL, &c->prov_attr));
	BAD(c, dat_ia_memtype_hint(h, DAT_MEM_TYPE_VIRTUAL, 4096,
				   DAT_MEM_OPTIMIZE_DONT_CARE, &c->len,
				   &c->va));
	BAD(c, dat_ia_reserved_lmr(h, (DAT_LMR_HANDLE *)&c->out, &c->lc));
	BAD(c, dat_evd_kcreate(h, 8, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG, (DAT_EVD_HANDLE *)&c->out));
	BAD(c, dat_ep_create(h, s->pz, s->recv_evd, s->req_evd, s->conn_evd,
			     &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
	BAD(c, dat_ep_create_with_srq(h, s->pz, s->recv_evd, s->req_evd,
				      s->conn_evd,
				      c->valid[DAT_HANDLE_TYPE_SRQ],
				      &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
	BAD(c, dat_srq_create(h, s->pz, &c->srq_attr,
			      (DAT_SRQ_HANDLE *)&c->out));
	BAD(c, dat_pz_create(h, (DAT_PZ_HANDLE *)&c->out));
	BAD(c, dat_lmr_kcreate(h, DAT_MEM_TYPE_VIRTUAL, c->region, 64, s->pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       (DAT_LMR_HANDLE *)&c->out, &c->lc, &c->rc, NULL,
			       NULL));
	BAD(c, dat_lmr_allocate(h, s->pz, 4, DAT_LMR_SCOPE_PZ,
				(DAT_LMR_HANDLE *)&c->out));
	BAD(c, dat_lmr_sync_rdma_read(h, &c->seg, 1));
	BAD(c, dat_lmr_sync_rdma_write(h, &c->seg, 1));
	BAD(c, dat_psp_create(h, kd_port(), s->cr_evd, DAT_PSP_CONSUMER_FLAG,
			      (DAT_PSP_HANDLE *)&c->out));
	BAD(c, dat_psp_create_any(h, &c->qual, s->cr_evd,
				  DAT_PSP_CONSUMER_FLAG,
				  (DAT_PSP_HANDLE *)&c->out));
	BAD(c, dat_rsp_create(h, kd_port(), s->ep, s->cr_evd,
			      (DAT_RSP_HANDLE *)&c->out));
	BAD(c, dat_csp_create(h, &c->comm, c->addr,
			      s->cr_evd, (DAT_CSP_HANDLE *)&c->out));
	BAD(c, dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG));
}

static void bad_evd(struct hctx *c, DAT_HANDLE h)
{
	struct kd_side *s = c->s;

	BAD(c, dat_evd_modify_upcall(h, DAT_UPCALL_DISABLE, NULL,
				     DAT_UPCALL_INVOC_ANY));
	BAD(c, dat_evd_query(h, DAT_EVD_FIELD_ALL, &c->param.evd));
	BAD(c, dat_evd_resize(h, 16));
	BAD(c, dat_evd_post_se(h, &c->event));
	BAD(c, dat_evd_dequeue(h, &c->event));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_CR,
	       dat_psp_create(s->ia, kd_port(), h, DAT_PSP_CONSUMER_FLAG,
			      (DAT_PSP_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_CR,
	       dat_psp_create_any(s->ia, &c->qual, h, DAT_PSP_CONSUMER_FLAG,
				  (DAT_PSP_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_CR,
	       dat_rsp_create(s->ia, kd_port(), s->ep, h,
			      (DAT_RSP_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_CR,
	       dat_csp_create(s->ia, &c->comm, c->addr, h,
			      (DAT_CSP_HANDLE *)&c->out));
	BAD(c, dat_evd_free(h));
}

/* Calls for which a NULL handle means "no EVD". */
static void bad_optional_evd(struct hctx *c, DAT_HANDLE h)
{
	DAT_EVD_HANDLE async_evd = h;
	struct kd_side *s = c->s;

	BAD_AS(c, DAT_INVALID_HANDLE_EVD_ASYNC,
	       dat_ia_open((DAT_NAME_PTR)s->name, 8, &async_evd,
			   (DAT_IA_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_RECV,
	       dat_ep_create(s->ia, s->pz, h, s->req_evd, s->conn_evd,
			     &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_REQUEST,
	       dat_ep_create(s->ia, s->pz, s->recv_evd, h, s->conn_evd,
			     &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
	BAD_AS(c, DAT_INVALID_HANDLE_EVD_CONN,
	       dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd, h,
			     &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
}

static void bad_optional_pz(struct hctx *c, DAT_HANDLE h)
{
	struct kd_side *s = c->s;

	BAD(c, dat_ep_create(s->ia, h, s->recv_evd, s->req_evd, s->conn_evd,
			     &c->ep_attr, (DAT_EP_HANDLE *)&c->out));
}

static void bad_optional_ep(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_cr_accept(c->valid[DAT_HANDLE_TYPE_CR], h, 0, NULL));
}

static void bad_pz(struct hctx *c, DAT_HANDLE h)
{
	struct kd_side *s = c->s;

	BAD(c, dat_pz_query(h, DAT_PZ_FIELD_ALL, &c->param.pz));
	BAD(c, dat_srq_create(s->ia, h, &c->srq_attr,
			      (DAT_SRQ_HANDLE *)&c->out));
	BAD(c, dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, c->region, 64, h,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       (DAT_LMR_HANDLE *)&c->out, &c->lc, &c->rc, NULL,
			       NULL));
	BAD(c, dat_lmr_allocate(s->ia, h, 4, DAT_LMR_SCOPE_PZ,
				(DAT_LMR_HANDLE *)&c->out));
	BAD(c, dat_rmr_create(h, (DAT_RMR_HANDLE *)&c->out));
	BAD(c, dat_rmr_create_for_ep(h, (DAT_RMR_HANDLE *)&c->out));
	BAD(c, dat_pz_free(h));
}

static void bad_ep_posts(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_ep_post_send(h, 1, &c->seg, c->cookie, 0));
	BAD(c, dat_ep_post_send_with_invalidate(h, 1, &c->seg, c->cookie, 0,
						DAT_TRUE, c->rc));
	BAD(c, dat_ep_post_recv(h, 1, &c->seg, c->cookie, 0));
	BAD(c, dat_ep_post_rdma_read(h, 1, &c->seg, c->cookie, &c->remote, 0));
	BAD(c, dat_ep_post_rdma_read_to_rmr(h, &c->remote, c->cookie,
					    &c->remote, 0));
	BAD(c, dat_ep_post_rdma_write(h, 1, &c->seg, c->cookie, &c->remote, 0));
	BAD(c, dat_lmr_fmr(c->s->buf->lmr, DAT_MEM_TYPE_PHYSICAL, c->region, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, h, c->cookie,
			   0, &c->lc, &c->rc));
	BAD(c, dat_lmr_invalidate(c->s->buf->lmr, h, c->cookie, 0));
	BAD(c, dat_rmr_bind(c->valid[DAT_HANDLE_TYPE_RMR], c->s->buf->lmr,
			    &c->seg, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			    DAT_VA_TYPE_VA, h, c->cookie, 0, &c->rc));
}

static void bad_ep(struct hctx *c, DAT_HANDLE h)
{
	DAT_EP_STATE state;

	bad_ep_posts(c, h);
	BAD(c, dat_ep_query(h, DAT_EP_FIELD_ALL, &c->ep_param));
	BAD(c, dat_ep_modify(h, DAT_EP_FIELD_PZ_HANDLE, &c->ep_param));
	BAD(c, dat_ep_get_status(h, &state, NULL, NULL));
	BAD(c, dat_ep_recv_query(h, (DAT_COUNT *)&c->lc, NULL));
	BAD(c, dat_ep_set_watermark(h, 1, 1));
	BAD(c, dat_ep_connect(h, c->s->addr, kd_port(), USEC_PER_SEC, 0, NULL,
			      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	BAD(c, dat_ep_dup_connect(h, c->s->ep, USEC_PER_SEC, 0, NULL,
				  DAT_QOS_BEST_EFFORT));
	BAD(c, dat_ep_dup_connect(c->s->ep, h, USEC_PER_SEC, 0, NULL,
				  DAT_QOS_BEST_EFFORT));
	BAD(c, dat_ep_common_connect(h, c->addr,
				     USEC_PER_SEC, 0, NULL));
	BAD(c, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG));
	BAD(c, dat_ep_reset(h));
	BAD(c, dat_rsp_create(c->s->ia, kd_port(), h, c->s->cr_evd,
			      (DAT_RSP_HANDLE *)&c->out));
	BAD(c, dat_ep_free(h));
}

static void bad_srq(struct hctx *c, DAT_HANDLE h)
{
	struct kd_side *s = c->s;

	BAD(c, dat_srq_query(h, DAT_SRQ_FIELD_ALL, &c->param.srq));
	BAD(c, dat_srq_resize(h, 16));
	BAD(c, dat_srq_post_recv(h, 1, &c->seg, c->cookie));
	BAD(c, dat_srq_set_lw(h, 1));
	BAD(c, dat_ep_create_with_srq(s->ia, s->pz, s->recv_evd, s->req_evd,
				      s->conn_evd, h, &c->ep_attr,
				      (DAT_EP_HANDLE *)&c->out));
	BAD(c, dat_srq_free(h));
}

static void bad_lmr(struct hctx *c, DAT_HANDLE h)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = h };
	struct kd_side *s = c->s;

	BAD(c, dat_lmr_query(h, DAT_LMR_FIELD_ALL, &c->param.lmr));
	BAD(c, dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_LMR, region, 64, s->pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       (DAT_LMR_HANDLE *)&c->out, &c->lc, &c->rc, NULL,
			       NULL));
	BAD(c, dat_lmr_fmr(h, DAT_MEM_TYPE_PHYSICAL, c->region, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
			   c->cookie, 0, &c->lc, &c->rc));
	BAD(c, dat_lmr_invalidate(h, s->ep, c->cookie, 0));
	BAD(c, dat_rmr_bind(c->valid[DAT_HANDLE_TYPE_RMR], h, &c->seg,
			    DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			    s->ep, c->cookie, 0, &c->rc));
	BAD(c, dat_lmr_free(h));
}

static void bad_rmr(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_rmr_query(h, DAT_RMR_FIELD_ALL, &c->param.rmr));
	BAD(c, dat_rmr_bind(h, c->s->buf->lmr, &c->seg,
			    DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			    c->s->ep, c->cookie, 0, &c->rc));
	BAD(c, dat_rmr_free(h));
}

static void bad_psp(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_psp_query(h, DAT_PSP_FIELD_ALL, &c->param.psp));
	BAD(c, dat_psp_free(h));
}

static void bad_rsp(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_rsp_query(h, DAT_RSP_FIELD_ALL, &c->param.rsp));
	BAD(c, dat_rsp_free(h));
}

static void bad_csp(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_csp_query(h, DAT_CSP_FIELD_ALL, &c->param.csp));
	BAD(c, dat_csp_free(h));
}

static void bad_cr(struct hctx *c, DAT_HANDLE h)
{
	BAD(c, dat_cr_query(h, DAT_CR_FIELD_ALL, &c->param.cr));
	BAD(c, dat_cr_accept(h, c->s->ep, 0, NULL));
	BAD(c, dat_cr_reject(h, 0, NULL));
	BAD(c, dat_cr_handoff(h, 20000));
}

static const struct {
	DAT_HANDLE_TYPE type;
	u32 subtype;			/* DAT has none for EVDs as such */
	void (*bad)(struct hctx *c, DAT_HANDLE h);
	bool optional;			/* NULL is no bad handle here */
} groups[] = {
	{ DAT_HANDLE_TYPE_CR, DAT_INVALID_HANDLE_CR, bad_cr },
	{ DAT_HANDLE_TYPE_EP, DAT_INVALID_HANDLE_EP, bad_ep },
	{ DAT_HANDLE_TYPE_EP, DAT_INVALID_HANDLE_EP, bad_optional_ep, true },
	{ DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, bad_evd },
	{ DAT_HANDLE_TYPE_EVD, DAT_INVALID_HANDLE1, bad_optional_evd, true },
	{ DAT_HANDLE_TYPE_IA, DAT_INVALID_HANDLE_IA, bad_ia },
	{ DAT_HANDLE_TYPE_LMR, DAT_INVALID_HANDLE_LMR, bad_lmr },
	{ DAT_HANDLE_TYPE_PSP, DAT_INVALID_HANDLE_PSP, bad_psp },
	{ DAT_HANDLE_TYPE_PZ, DAT_INVALID_HANDLE_PZ, bad_pz },
	{ DAT_HANDLE_TYPE_PZ, DAT_INVALID_HANDLE_PZ, bad_optional_pz, true },
	{ DAT_HANDLE_TYPE_RMR, DAT_INVALID_HANDLE_RMR, bad_rmr },
	{ DAT_HANDLE_TYPE_RSP, DAT_INVALID_HANDLE_RSP, bad_rsp },
	{ DAT_HANDLE_TYPE_SRQ, DAT_INVALID_HANDLE_SRQ, bad_srq },
	{ DAT_HANDLE_TYPE_CSP, DAT_INVALID_HANDLE_CSP, bad_csp },
};

/* Make the calls of group @g with @h. */
static void make_bad_calls(struct hctx *c, unsigned int g, DAT_HANDLE h)
{
	c->subtype = groups[g].subtype;
	groups[g].bad(c, h);
}

static void make_service_points(struct hctx *c)
{
	struct kd_side *s = c->s;
	u16 port = kd_port();

	c->valid[DAT_HANDLE_TYPE_PSP] = kd_psp(s, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(c->test,
		     dat_rsp_create(s->ia, kd_port(), kd_ep(s, NULL), s->cr_evd,
				    (void *)&c->valid[DAT_HANDLE_TYPE_RSP]));
	c->comm = (DAT_COMM) { AF_INET, SOCK_STREAM, 0 };
	memcpy(&c->sin, s->addr, sizeof(c->sin));
	c->sin.sin_port = htons(kd_port());
	c->addr = (DAT_IA_ADDRESS_PTR)&c->sin;
	KD_ASSERT_OK(c->test,
		     dat_csp_create(s->ia, &c->comm,
				    c->addr, s->cr_evd,
				    (void *)&c->valid[DAT_HANDLE_TYPE_CSP]));
	kd_connect_start(s, s, port);
	c->valid[DAT_HANDLE_TYPE_CR] = kd_expect_cr(s);
	/* The EP whose connection waits for an answer is not used any more. */
	s->ep = kd_ep(s, NULL);
}

/* Make an object of every type. */
static struct hctx *make_objects(struct kunit *test)
{
	struct hctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct kd_side *s = kd_open_param(test);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->test = test;
	c->s = s;
	kd_setup(s, NULL);
	c->ep_attr = kd_ep_attr();
	c->srq_attr = (DAT_SRQ_ATTR) { 8, 1, DAT_SRQ_LW_DEFAULT };
	c->event.event_number = DAT_SOFTWARE_EVENT;
	c->seg = kd_seg(s->buf, 0, 64);
	c->remote = kd_remote(s->buf, 64, 64);
	c->region.for_va = s->buf->va;
	make_service_points(c);
	KD_ASSERT_OK(test,
		     dat_rmr_create(s->pz,
				    (void *)&c->valid[DAT_HANDLE_TYPE_RMR]));
	c->valid[DAT_HANDLE_TYPE_SRQ] = kd_srq(s, 8);
	c->valid[DAT_HANDLE_TYPE_EP] = s->ep;
	c->valid[DAT_HANDLE_TYPE_EVD] = s->cr_evd;
	c->valid[DAT_HANDLE_TYPE_IA] = s->ia;
	c->valid[DAT_HANDLE_TYPE_LMR] = s->buf->lmr;
	c->valid[DAT_HANDLE_TYPE_PZ] = s->pz;
	return c;
}

static void expect_types(struct hctx *c)
{
	DAT_HANDLE_TYPE type;
	int i;

	for (i = 0; i <= DAT_HANDLE_TYPE_CSP; i++) {
		KD_EXPECT_OK(c->test, dat_get_handle_type(c->valid[i], &type));
		KUNIT_EXPECT_EQ(c->test, (int)type, i);
	}
}

static void I3_null_and_garbage(struct kunit *test)
{
	struct hctx *c = make_objects(test);
	const uintptr_t garbage[] = {
		1, 0xfffff, (uintptr_t)c, (uintptr_t)&garbage,
		(uintptr_t)groups, (uintptr_t)ERR_PTR(-EINVAL),
		(uintptr_t)c->s->ep ^ 1UL << 40, (uintptr_t)c->s->ia << 1,
		(uintptr_t)c->s->pz & 0xffffffff, LONG_MAX, ULONG_MAX,
	};
	unsigned int i, g;

	for (g = 0; g < ARRAY_SIZE(groups); g++) {
		c->what = "NULL";
		if (!groups[g].optional)
			make_bad_calls(c, g, NULL);
		c->what = "garbage";
		for (i = 0; i < ARRAY_SIZE(garbage); i++)
			make_bad_calls(c, g, (DAT_HANDLE)garbage[i]);
	}
	bad_any(c, NULL);
	for (i = 0; i < ARRAY_SIZE(garbage); i++)
		bad_any(c, (DAT_HANDLE)garbage[i]);
	expect_types(c);
}

static void I2_handle_of_another_type(struct kunit *test)
{
	struct hctx *c = make_objects(test);
	unsigned int type, g;

	c->what = "of another type";
	for (g = 0; g < ARRAY_SIZE(groups); g++)
		for (type = 0; type < ARRAY_SIZE(c->valid); type++)
			if (type != groups[g].type)
				make_bad_calls(c, g, c->valid[type]);
	expect_types(c);
}

/*
 * Fill @gone with objects that can be freed: new ones of the types whose object
 * in @c other objects use, those of @c of the other types.
 */
static void make_spare_objects(struct hctx *c, DAT_HANDLE *gone)
{
	struct kd_side *spare = kd_open(c->test, c->s->name);

	memcpy(gone, c->valid, sizeof(c->valid));
	KD_ASSERT_OK(c->test,
		     dat_pz_create(c->s->ia,
				   (void *)&gone[DAT_HANDLE_TYPE_PZ]));
	gone[DAT_HANDLE_TYPE_LMR] = kd_buf_alloc(c->s, 64)->lmr;
	gone[DAT_HANDLE_TYPE_EVD] = kd_evd(c->s, DAT_EVD_DEFAULT_FLAG, 8,
					   DAT_UPCALL_DISABLE);
	gone[DAT_HANDLE_TYPE_EP] = kd_ep(c->s, NULL);
	gone[DAT_HANDLE_TYPE_IA] = spare->ia;
	spare->ia = NULL;
}

static void free_objects(struct kunit *test, DAT_HANDLE *h)
{
	KD_EXPECT_OK(test, dat_cr_reject(h[DAT_HANDLE_TYPE_CR], 0, NULL));
	KD_EXPECT_OK(test, dat_psp_free(h[DAT_HANDLE_TYPE_PSP]));
	KD_EXPECT_OK(test, dat_rsp_free(h[DAT_HANDLE_TYPE_RSP]));
	KD_EXPECT_OK(test, dat_csp_free(h[DAT_HANDLE_TYPE_CSP]));
	KD_EXPECT_OK(test, dat_rmr_free(h[DAT_HANDLE_TYPE_RMR]));
	KD_EXPECT_OK(test, dat_srq_free(h[DAT_HANDLE_TYPE_SRQ]));
	KD_EXPECT_OK(test, dat_ep_free(h[DAT_HANDLE_TYPE_EP]));
	KD_EXPECT_OK(test, dat_evd_free(h[DAT_HANDLE_TYPE_EVD]));
	KD_EXPECT_OK(test, dat_lmr_free(h[DAT_HANDLE_TYPE_LMR]));
	KD_EXPECT_OK(test, dat_pz_free(h[DAT_HANDLE_TYPE_PZ]));
	KD_EXPECT_OK(test, dat_ia_close(h[DAT_HANDLE_TYPE_IA],
					DAT_CLOSE_GRACEFUL_FLAG));
}

static void I3_freed_handle(struct kunit *test)
{
	DAT_HANDLE gone[DAT_HANDLE_TYPE_CSP + 1];
	struct hctx *c = make_objects(test);
	unsigned int g;

	make_spare_objects(c, gone);
	free_objects(test, gone);
	/* Some calls want a valid RMR, SRQ or CR beside the freed handle. */
	make_service_points(c);
	KD_ASSERT_OK(test,
		     dat_rmr_create(c->s->pz,
				    (void *)&c->valid[DAT_HANDLE_TYPE_RMR]));
	c->valid[DAT_HANDLE_TYPE_SRQ] = kd_srq(c->s, 8);

	c->what = "freed";
	for (g = 0; g < ARRAY_SIZE(groups); g++) {
		make_bad_calls(c, g, gone[groups[g].type]);
		bad_any(c, gone[groups[g].type]);
	}
}

#define MANY 2000

static void I3_freed_handle_is_not_reused_soon(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	DAT_PZ_HANDLE first, pz;
	DAT_PZ_PARAM param;
	unsigned int same = 0;
	int i;

	KD_ASSERT_OK(test, dat_pz_create(s->ia, &first));
	KD_ASSERT_OK(test, dat_pz_free(first));
	for (i = 0; i < MANY; i++) {
		KD_ASSERT_OK(test, dat_pz_create(s->ia, &pz));
		same += pz == first;
		KD_ASSERT_OK(test, dat_pz_free(pz));
	}
	KUNIT_EXPECT_EQ(test, same, 0);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_pz_query(first, DAT_PZ_FIELD_ALL, &param));
}

static void I3_consumer_context(struct kunit *test)
{
	struct hctx *c = make_objects(test);
	DAT_CONTEXT context;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(c->valid); i++) {
		context.as_64 = 1;
		KD_EXPECT_OK(test, dat_get_consumer_context(c->valid[i],
							    &context));
		KUNIT_EXPECT_EQ_MSG(test, context.as_64, 0, "type %u", i);
		KD_EXPECT_OK(test, dat_set_consumer_context(c->valid[i],
							    kd_cookie(~i)));
	}
	for (i = 0; i < ARRAY_SIZE(c->valid); i++) {
		KD_EXPECT_OK(test, dat_get_consumer_context(c->valid[i],
							    &context));
		KUNIT_EXPECT_EQ(test, context.as_64, (u64)~i);
	}
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_get_consumer_context(c->s->ia, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_get_handle_type(c->s->ia, NULL));
}

static struct kunit_case handle_cases[] = {
	KUNIT_CASE_PARAM(I3_null_and_garbage, kd_gen_ia),
	KUNIT_CASE_PARAM(I2_handle_of_another_type, kd_gen_ia),
	KUNIT_CASE_PARAM(I3_freed_handle, kd_gen_ia),
	KUNIT_CASE_PARAM(I3_freed_handle_is_not_reused_soon, kd_gen_ia),
	KUNIT_CASE_PARAM(I3_consumer_context, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-handle", handle_cases, "handles");
