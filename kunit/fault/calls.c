// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * fault_test.ko: how each call is made and its success is undone. A call that
 * makes an object stands beside the call that frees it. The calls of Endpoints
 * and service points are in ep_calls.c.
 */
#include "calls.h"

/* ---- What calls need ----------------------------------------------------- */

static void need_bound_fmr(struct world *w)
{
	bool fresh = !w->h;

	kdf_need_fmr(w);
	if (!fresh)
		return;
	KD_ASSERT_OK(w->test, kdf_bind_fmr(w));
	kd_expect_dto(w->test, w->a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
}

static void end_fmr(struct world *w)
{
	kdf_end_post(w);
	kdf_free_fmr(w);
}

/* ---- Registry, IA, any handle -------------------------------------------- */

static DAT_RETURN do_list(struct world *w)
{
	struct dat_provider_info *list[1] = { OUT(w) };
	DAT_COUNT n;

	/*
	 * The list is too short for all providers: the call fails, but sets n.
	 */
	dat_registry_list_providers(1, &n, list);
	return n > 1 ? DAT_SUCCESS : DAT_CLASS_ERROR;
}

static DAT_RETURN do_related(struct world *w)
{
	DAT_HA_RELATIONSHIP answer;

	return dat_registry_providers_related((DAT_NAME_PTR)w->a->name,
					      (DAT_NAME_PTR)w->a->name,
					      &answer);
}

static DAT_RETURN do_ia_open(struct world *w)
{
	DAT_EVD_HANDLE async_evd = NULL;

	return dat_ia_open((DAT_NAME_PTR)w->a->name, 8, &async_evd,
			   MADE(w, DAT_IA_HANDLE));
}

static DAT_RETURN do_ia_openv(struct world *w)
{
	DAT_EVD_HANDLE async_evd = w->a->async_evd;

	/* The asynchronous EVD is that of another IA. */
	return dat_ia_openv((DAT_NAME_PTR)w->a->name, 0, &async_evd,
			    MADE(w, DAT_IA_HANDLE), DAT_VERSION_MAJOR,
			    DAT_VERSION_MINOR, DAT_THREADSAFE);
}

static DAT_RETURN do_ia_close(struct world *w)
{
	return dat_ia_close(w->h, DAT_CLOSE_ABRUPT_FLAG);
}

static void end_ia_close(struct world *w)
{
	w->h = NULL;
}

static void undo_ia_open(struct world *w)
{
	if (w->h)
		KD_EXPECT_OK(w->test, dat_ia_close(w->h,
						   DAT_CLOSE_GRACEFUL_FLAG));
	w->h = NULL;
}

static void need_ia(struct world *w)
{
	if (!w->h)
		KD_ASSERT_OK(w->test, do_ia_open(w));
}

/* Make an IA that has objects. */
static void need_full_ia(struct world *w)
{
	DAT_EVD_HANDLE evd = NULL;
	DAT_PSP_HANDLE psp = NULL;
	DAT_PZ_HANDLE pz = NULL;
	DAT_EP_HANDLE ep = NULL;
	DAT_EP_ATTR attr = kd_ep_attr();

	if (w->h)
		return;
	need_ia(w);
	KD_ASSERT_OK(w->test, dat_pz_create(w->h, &pz));
	KD_ASSERT_OK(w->test,
		     dat_evd_kcreate(w->h, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG |
				     DAT_EVD_CONNECTION_FLAG, &evd));
	KD_ASSERT_OK(w->test, dat_ep_create(w->h, pz, evd, evd, evd, &attr,
					    &ep));
	KD_ASSERT_OK(w->test, dat_psp_create(w->h, w->free_port, evd, 0,
					     &psp));
}

static DAT_RETURN do_ia_query(struct world *w)
{
	DAT_IA_ADDRESS_PTR addr = w->a->addr;
	struct sockaddr before = *addr;
	DAT_RETURN ret;

	ret = dat_ia_query(w->a->ia, NULL, DAT_IA_FIELD_ALL, &w->out.ia, 0,
			   NULL);
	KUNIT_EXPECT_MEMEQ(w->test, addr, &before, sizeof(before));
	return ret;
}

static DAT_RETURN do_memtype_hint(struct world *w)
{
	DAT_VADDR alignment;
	DAT_VLEN len;

	return dat_ia_memtype_hint(w->a->ia, DAT_MEM_TYPE_VIRTUAL, 4096,
				   DAT_MEM_OPTIMIZE_DONT_CARE, &len,
				   &alignment);
}

/* Ask an IA for its reserved LMR for the first time. */
static DAT_RETURN do_reserved_lmr(struct world *w)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	return dat_ia_reserved_lmr(w->h, &lmr, &context);
}

static DAT_RETURN do_set_context(struct world *w)
{
	return dat_set_consumer_context(w->a->ia, kd_cookie(1));
}

static DAT_RETURN do_get_context(struct world *w)
{
	return dat_get_consumer_context(w->a->ia, OUT(w));
}

static DAT_RETURN do_handle_type(struct world *w)
{
	return dat_get_handle_type(w->a->ia, OUT(w));
}

static DAT_RETURN do_strerror(struct world *w)
{
	const char *major, *minor;

	return dat_strerror(DAT_CLASS_ERROR | DAT_QUEUE_FULL, &major, &minor);
}

/* ---- Protection Zones and EVDs ------------------------------------------- */

static DAT_RETURN do_pz_create(struct world *w)
{
	return dat_pz_create(w->a->ia, MADE(w, DAT_PZ_HANDLE));
}

static DAT_RETURN do_pz_query(struct world *w)
{
	return dat_pz_query(w->a->pz, DAT_PZ_FIELD_ALL, OUT(w));
}

FREES(pz_free)
NEEDS(pz_create)

static DAT_RETURN do_evd_create(struct world *w)
{
	return dat_evd_kcreate(w->a->ia, 16, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
			       MADE(w, DAT_EVD_HANDLE));
}

FREES(evd_free)
NEEDS(evd_create)

static DAT_RETURN do_evd_query(struct world *w)
{
	return dat_evd_query(w->soft_evd, DAT_EVD_FIELD_ALL, OUT(w));
}

static DAT_RETURN do_evd_resize(struct world *w)
{
	return dat_evd_resize(w->h, 24);
}

static DAT_RETURN do_modify_upcall(struct world *w)
{
	return dat_evd_modify_upcall(w->soft_evd, DAT_UPCALL_DISABLE, NULL,
				     DAT_UPCALL_INVOC_ANY);
}

static DAT_RETURN do_post_se(struct world *w)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	return dat_evd_post_se(w->soft_evd, &event);
}

static void end_post_se(struct world *w)
{
	KUNIT_EXPECT_EQ(w->test, kd_drain(w->soft_evd), 1);
}

static void need_event(struct world *w)
{
	kd_drain(w->soft_evd);
	KD_ASSERT_OK(w->test, do_post_se(w));
}

static DAT_RETURN do_dequeue(struct world *w)
{
	return dat_evd_dequeue(w->soft_evd, OUT(w));
}

/* ---- Memory -------------------------------------------------------------- */

/*
 * Register memory that the peer may reach, the first in its PZ: the longest way
 * through dat_lmr_kcreate().
 */
static DAT_RETURN do_lmr_create(struct world *w)
{
	DAT_REGION_DESCRIPTION region = { .for_va = w->a->buf->va };
	DAT_LMR_CONTEXT lc;
	DAT_RMR_CONTEXT rc;

	return dat_lmr_kcreate(w->a->ia, DAT_MEM_TYPE_VIRTUAL, region, 8192,
			       w->h2, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       MADE(w, DAT_LMR_HANDLE), &lc, &rc, NULL, NULL);
}

static void need_zone(struct world *w)
{
	if (!w->h2)
		KD_ASSERT_OK(w->test, dat_pz_create(w->a->ia,
						    (DAT_PZ_HANDLE *)&w->h2));
}

FREES(lmr_free)

static void undo_lmr_create(struct world *w)
{
	undo_lmr_free(w);
	if (w->h2)
		KD_EXPECT_OK(w->test, dat_pz_free(w->h2));
	w->h2 = NULL;
}

static void need_lmr(struct world *w)
{
	need_zone(w);
	if (!w->h)
		KD_ASSERT_OK(w->test, do_lmr_create(w));
}

static DAT_RETURN do_lmr_query(struct world *w)
{
	return dat_lmr_query(w->a->buf->lmr, DAT_LMR_FIELD_ALL, OUT(w));
}

static DAT_RETURN do_lmr_allocate(struct world *w)
{
	return dat_lmr_allocate(w->a->ia, w->a->pz, 16, DAT_LMR_SCOPE_PZ,
				MADE(w, DAT_LMR_HANDLE));
}

static DAT_RETURN do_lmr_invalidate(struct world *w)
{
	return dat_lmr_invalidate(w->h, w->a->ep, kd_cookie(5), 0);
}

static DAT_RETURN do_sync_read(struct world *w)
{
	return dat_lmr_sync_rdma_read(w->a->ia, &w->seg, 1);
}

static DAT_RETURN do_sync_write(struct world *w)
{
	return dat_lmr_sync_rdma_write(w->a->ia, &w->seg, 1);
}

static DAT_RETURN do_rmr_create(struct world *w)
{
	return dat_rmr_create(w->a->pz, MADE(w, DAT_RMR_HANDLE));
}

static DAT_RETURN do_rmr_create_for_ep(struct world *w)
{
	return dat_rmr_create_for_ep(w->a->pz, MADE(w, DAT_RMR_HANDLE));
}

FREES(rmr_free)
NEEDS(rmr_create)

static DAT_RETURN do_rmr_query(struct world *w)
{
	return dat_rmr_query(w->h, DAT_RMR_FIELD_ALL, OUT(w));
}

/* ---- Shared Receive Queues ----------------------------------------------- */

static DAT_RETURN do_srq_create(struct world *w)
{
	DAT_SRQ_ATTR attr = { 16, 2, DAT_SRQ_LW_DEFAULT };

	return dat_srq_create(w->a->ia, w->a->pz, &attr,
			      MADE(w, DAT_SRQ_HANDLE));
}

FREES(srq_free)
NEEDS(srq_create)

static DAT_RETURN do_srq_query(struct world *w)
{
	return dat_srq_query(w->srq, DAT_SRQ_FIELD_ALL, OUT(w));
}

/* Resize beyond the headroom, so that the device's queue has to grow. */
static DAT_RETURN do_srq_resize(struct world *w)
{
	return dat_srq_resize(w->srq, 72);
}

static void undo_srq_resize(struct world *w)
{
	KD_EXPECT_OK(w->test, dat_srq_resize(w->srq, 8));
}

static DAT_RETURN do_srq_recv(struct world *w)
{
	return dat_srq_post_recv(w->h, 1, &w->seg, kd_cookie(6));
}

static DAT_RETURN do_srq_set_lw(struct world *w)
{
	return dat_srq_set_lw(w->srq, 0);
}

/* ---- The table ----------------------------------------------------------- */

const struct fault_call kdf_calls[] = {
	CALL(dat_registry_list_providers, PURE, do_list),
	CALL(dat_registry_providers_related, PURE, do_related),
	CALL(dat_ia_open, FALLIBLE, do_ia_open, NULL, undo_ia_open),
	CALL(dat_ia_openv, FALLIBLE, do_ia_openv, NULL, undo_ia_open, TWIN),
	CALL(dat_ia_close, SURE, do_ia_close, need_full_ia, end_ia_close),
	CALL(dat_ia_query, FALLIBLE, do_ia_query, TWIN),
	CALL(dat_ia_memtype_hint, PURE, do_memtype_hint),
	CALL(dat_ia_reserved_lmr, FALLIBLE, do_reserved_lmr, need_ia,
	     undo_ia_open),
	CALL(dat_set_consumer_context, PURE, do_set_context),
	CALL(dat_get_consumer_context, PURE, do_get_context),
	CALL(dat_get_handle_type, PURE, do_handle_type),
	CALL(dat_strerror, PURE, do_strerror),

	CALL(dat_pz_create, FALLIBLE, do_pz_create, NULL, undo_pz_free),
	CALL(dat_pz_query, PURE, do_pz_query),
	CALL(dat_pz_free, SURE, do_pz_free, need_pz_create, NULL, undo_pz_free),
	CALL(dat_evd_kcreate, FALLIBLE, do_evd_create, NULL, undo_evd_free),
	CALL(dat_evd_query, PURE, do_evd_query),
	CALL(dat_evd_resize, FALLIBLE, do_evd_resize, need_evd_create,
	     undo_evd_free),
	CALL(dat_evd_modify_upcall, PURE, do_modify_upcall),
	CALL(dat_evd_post_se, PURE, do_post_se, NULL, end_post_se),
	CALL(dat_evd_dequeue, PURE, do_dequeue, need_event),
	CALL(dat_evd_free, SURE, do_evd_free, need_evd_create, NULL,
	     undo_evd_free),

	CALL(dat_lmr_kcreate, FALLIBLE, do_lmr_create, need_zone,
	     undo_lmr_create),
	CALL(dat_lmr_query, PURE, do_lmr_query),
	CALL(dat_lmr_free, SURE, do_lmr_free, need_lmr, undo_lmr_create,
	     undo_lmr_create),
	CALL(dat_lmr_allocate, FALLIBLE, do_lmr_allocate, NULL, undo_lmr_free),
	CALL(dat_lmr_fmr, POSTS, kdf_bind_fmr, kdf_need_fmr, end_fmr, kdf_free_fmr),
	CALL(dat_lmr_invalidate, POSTS, do_lmr_invalidate, need_bound_fmr,
	     end_fmr, kdf_free_fmr),
	CALL(dat_lmr_sync_rdma_read, PURE, do_sync_read),
	CALL(dat_lmr_sync_rdma_write, PURE, do_sync_write),
	CALL(dat_rmr_create, FALLIBLE, do_rmr_create, NULL, undo_rmr_free),
	CALL(dat_rmr_create_for_ep, FALLIBLE, do_rmr_create_for_ep, NULL,
	     undo_rmr_free, TWIN),
	CALL(dat_rmr_query, PURE, do_rmr_query, need_rmr_create, NULL,
	     undo_rmr_free),
	CALL(dat_rmr_bind, POSTS, kdf_bind_rmr, kdf_need_rmr, kdf_end_rmr, kdf_free_rmr),
	CALL(dat_rmr_free, SURE, do_rmr_free, need_rmr_create, NULL,
	     undo_rmr_free),

	CALL(dat_srq_create, FALLIBLE, do_srq_create, NULL, undo_srq_free),
	CALL(dat_srq_query, PURE, do_srq_query),
	CALL(dat_srq_resize, FALLIBLE, do_srq_resize, NULL, undo_srq_resize),
	CALL(dat_srq_post_recv, SURE, do_srq_recv, need_srq_create, NULL,
	     undo_srq_free),
	CALL(dat_srq_set_lw, PURE, do_srq_set_lw),
	CALL(dat_srq_free, SURE, do_srq_free, need_srq_create, NULL,
	     undo_srq_free),
};

const unsigned int kdf_ncalls = ARRAY_SIZE(kdf_calls);
