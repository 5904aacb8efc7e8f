// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * removal_test.ko: what calls return when the device has gone (contract N6).
 */
#include <linux/io.h>
#include <linux/mm.h>
#include "gone.h"

/* ---- Memory -------------------------------------------------------------- */

/* Bind the RMR of @m to the first page of the buffer of @s. */
void td_make_bind(struct kd_side *s, struct memory *m, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, PAGE_SIZE);

	KD_ASSERT_OK(s->test,
		     dat_rmr_bind(m->rmr, s->buf->lmr, &seg,
				  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
				  kd_cookie(cookie), 0, &m->rmr_context));
}

void td_make_memory(struct kd_side *s, struct memory *m)
{
	DAT_REGION_DESCRIPTION region = { .for_physical = &m->page };

	m->page = page_to_phys(virt_to_page(s->buf->va));
	m->local = kd_buf_alloc_priv(s, SZ_16K, true,
				     DAT_MEM_PRIV_LOCAL_READ_FLAG |
				     DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	m->remote = kd_buf_valloc(s, SZ_16K);
	KD_ASSERT_OK(s->test, dat_lmr_allocate(s->ia, s->pz, 4,
					       DAT_LMR_SCOPE_PZ, &m->fmr));
	KD_ASSERT_OK(s->test, dat_rmr_create(s->pz, &m->rmr));
	KD_ASSERT_OK(s->test,
		     dat_lmr_fmr(m->fmr, DAT_MEM_TYPE_PHYSICAL, region, 1,
				 DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
				 kd_cookie(1), 0, &m->fmr_context,
				 &m->rmr_context));
	kd_expect_dto(s->test, s->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	td_make_bind(s, m, 2);
	kd_expect_event(s->test, s->req_evd, DAT_RMR_BIND_COMPLETION_EVENT,
			NULL);
}

/* ---- Calls --------------------------------------------------------------- */

/* A call that needs the device returns this error. */
#define GONE(test, call)	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, call)

void td_calls_that_need_the_device(struct kd_side *s)
{
	DAT_IA_ATTR *attr = kunit_kzalloc(s->test, sizeof(*attr), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = { .for_va = s->buf->va };
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EP_ATTR ep_attr = kd_ep_attr();
	struct kunit *test = s->test;
	DAT_EVD_HANDLE evd = NULL;
	DAT_HANDLE out = NULL;
	DAT_RMR_CONTEXT rc;
	DAT_LMR_CONTEXT lc;
	DAT_CONN_QUAL qual;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND,
		      dat_ia_open((char *)s->name, 8, &evd, (void *)&out));
	GONE(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL));
	GONE(test, dat_pz_create(s->ia, (void *)&out));
	GONE(test, dat_evd_kcreate(s->ia, 8, DAT_UPCALL_DISABLE, NULL,
				   DAT_EVD_DTO_FLAG, &evd));
	GONE(test, dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				 s->conn_evd, &ep_attr, (void *)&out));
	GONE(test, dat_srq_create(s->ia, s->pz, &srq_attr, (void *)&out));
	GONE(test, dat_rmr_create(s->pz, (void *)&out));
	GONE(test, dat_lmr_allocate(s->ia, s->pz, 2, DAT_LMR_SCOPE_PZ,
				    (void *)&out));
	GONE(test, dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096,
				   s->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
				   DAT_MEM_OPTIMIZE_DONT_CARE, (void *)&out,
				   &lc, &rc, NULL, NULL));
	GONE(test, dat_psp_create(s->ia, kd_port(), s->cr_evd, 0,
				  (void *)&out));
	GONE(test, dat_psp_create_any(s->ia, &qual, s->cr_evd, 0,
				      (void *)&out));
	KUNIT_EXPECT_PTR_EQ(test, out, NULL);
}

/* Posts fail, or complete with an error, as after any other disconnection. */
void td_calls_that_post(struct kd_side *s, struct memory *m)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, 64), gone = seg;
	DAT_RMR_TRIPLET remote = kd_remote(s->buf, 64, 64);
	DAT_REGION_DESCRIPTION region = { .for_physical = &m->page };
	struct kunit *test = s->test;
	DAT_RMR_CONTEXT rc;
	DAT_LMR_CONTEXT lc;
	DAT_EVENT event;

#define NO(call) KUNIT_EXPECT_NE_MSG(test, DAT_SUCCESS, call, "%s", #call)
	gone.lmr_context = m->fmr_context;
	NO(dat_ep_post_send(s->ep, 1, &gone, kd_cookie(0), 0));
	NO(dat_ep_post_send(s->ep, 1, &seg, kd_cookie(1), 0));
	NO(dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(2), 0));
	NO(dat_ep_post_rdma_write(s->ep, 1, &seg, kd_cookie(3), &remote, 0));
	NO(dat_ep_post_rdma_read(s->ep, 1, &seg, kd_cookie(4), &remote, 0));
	NO(dat_lmr_fmr(m->fmr, DAT_MEM_TYPE_PHYSICAL, region, 1,
		       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
		       kd_cookie(5), 0, &lc, &rc));
	NO(dat_lmr_invalidate(m->fmr, s->ep, kd_cookie(6), 0));
	NO(dat_rmr_bind(m->rmr, s->buf->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG,
			DAT_VA_TYPE_VA, s->ep, kd_cookie(7), 0, &rc));
#undef NO
	while (dat_evd_dequeue(s->req_evd, &event) == DAT_SUCCESS)
		KUNIT_EXPECT_NE(test, (int)event.event_data
				.dto_completion_event_data.status,
				(int)DAT_DTO_SUCCESS);
}

/*
 * Calls that only concern kdapl.ko's own memory work as ever, or fail cleanly.
 */
void td_calls_without_a_device(struct kd_side *s, struct memory *m)
{
	DAT_EP_PARAM *ep = kunit_kzalloc(s->test, sizeof(*ep), GFP_KERNEL);
	struct kunit *test = s->test;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	DAT_EVD_PARAM evd;
	DAT_COUNT held;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KD_EXPECT_OK(test, dat_ep_query(s->ep, DAT_EP_FIELD_ALL, ep));
	KD_EXPECT_OK(test, dat_ep_recv_query(s->ep, &held, NULL));
	KD_EXPECT_OK(test, dat_ep_set_watermark(s->ep, 1, 1));
	KD_EXPECT_OK(test, dat_evd_query(s->recv_evd, DAT_EVD_FIELD_ALL, &evd));
	KD_EXPECT_OK(test, dat_lmr_query(m->remote->lmr, DAT_LMR_FIELD_ALL,
					 &lmr));
	KD_EXPECT_OK(test, dat_rmr_query(m->rmr, DAT_RMR_FIELD_ALL, &rmr));
	dat_evd_resize(s->recv_evd, 128);
	dat_evd_resize(s->conn_evd, 128);
	KD_EXPECT_OK(test, dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_ep_reset(s->ep));
	KUNIT_EXPECT_NE(test, DAT_SUCCESS,
			dat_ep_connect(s->ep, s->addr, kd_port(), 100000, 0,
				       NULL, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, kd_drain(s->conn_evd));
}

void td_calls_of_an_srq(struct kd_side *s)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, 64);
	struct kunit *test = s->test;
	DAT_SRQ_PARAM param;

	KD_EXPECT_OK(test, dat_srq_query(s->srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.available_dto_count, 4);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, 4);
	KUNIT_EXPECT_NE(test, DAT_SUCCESS, dat_srq_resize(s->srq, 64));
	KUNIT_EXPECT_NE(test, DAT_SUCCESS,
			dat_srq_post_recv(s->srq, 1, &seg, kd_cookie(9)));
	KD_EXPECT_OK(test, dat_srq_set_lw(s->srq, 2));
}
