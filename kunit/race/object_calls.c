// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: calls of SRQs, memory, connection requests, service points and IAs. See
 * calls.c.
 */
#include "race.h"

/* Define the call that queries the object in @in. */
#define QUERY(type, TYPE, in)							\
static void type ## _query(struct race_caller *c)				\
{										\
	DAT_ ## TYPE ## _PARAM param;						\
										\
	RACE(c, dat_ ## type ## _query, HANDLE, race_handle(race_slot(c->w, in)),\
	     DAT_ ## TYPE ## _FIELD_ALL, &param);				\
}

QUERY(rmr, RMR, S_RMR)
QUERY(psp, PSP, S_PSP)
QUERY(rsp, RSP, S_RSP)
QUERY(csp, CSP, S_CSP)
QUERY(pz, PZ, S_PZ)

/* ---- SRQs ---------------------------------------------------------------- */

/* The Endpoint that uses it is freed first. */
static void srq_free(struct race_caller *c)
{
	struct race_obj *srq = race_slot(c->w, S_SRQ2);
	struct race_obj *ep = race_slot(c->w, S_EP + 3);

	if (ep && ep->srq == srq)
		race_free(c, ep);
	race_free_slot(c, S_SRQ2);
	race_free_slot(c, S_EP + 3);
}

static struct race_obj *pick_srq(struct race_caller *c)
{
	return race_slot(c->w, rnd(c, 4) ? S_SRQ : S_SRQ2);
}

static void srq_query(struct race_caller *c)
{
	int clock = atomic_read(&c->w->freed);
	struct race_obj *srq = pick_srq(c);
	DAT_SRQ_PARAM param = {};
	DAT_RETURN ret;

	ret = RACE(c, dat_srq_query, HANDLE, race_handle(srq), DAT_SRQ_FIELD_ALL, &param);
	if (ret == DAT_SUCCESS)
		race_counted(c->w, srq, param.available_dto_count, clock);
	/* R4: a buffer that was in doubt is back, and another is posted for it. */
	if (param.available_dto_count < 0 ||
	    param.available_dto_count > param.outstanding_dto_count ||
	    (param.outstanding_dto_count > param.max_recv_dtos && !c->w->forgets))
		race_fail(c->w, "SRQ: %d available, %d outstanding of %d",
			  param.available_dto_count, param.outstanding_dto_count,
			  param.max_recv_dtos);
}

static void srq_resize(struct race_caller *c)
{
	RACE(c, dat_srq_resize, HANDLE | STATE | NO_ROOM, race_handle(pick_srq(c)),
	     RACE_SRQ_MIN + rnd(c, RACE_SRQ_MAX - RACE_SRQ_MIN));
}

static void srq_set_lw(struct race_caller *c)
{
	struct race_obj *srq = pick_srq(c);

	race_set_lw(c, srq, srq && READ_ONCE(srq->loose) ? rnd(c, RACE_SRQ_MIN) :
						   1 + rnd(c, RACE_SRQ_MIN - 1));
}

/* ---- Memory -------------------------------------------------------------- */

static struct race_obj *pick_lmr(struct race_caller *c)
{
	return race_slot(c->w, S_LMR + rnd(c, 2));
}

static DAT_EP_HANDLE pick_ep(struct race_caller *c, struct race_obj **ep)
{
	*ep = race_slot(c->w, S_EP + rnd(c, RACE_EPS));
	return race_handle(*ep);
}

static void lmr_kcreate(struct race_caller *c)
{
	race_replace(c, S_LMR + rnd(c, 2));
}

static void lmr_free(struct race_caller *c)
{
	race_free_slot(c, S_LMR + rnd(c, 2));
}

static void lmr_query(struct race_caller *c)
{
	struct race_within *in = race_within(c);
	DAT_LMR_PARAM param;

	RACE(c, dat_lmr_query, HANDLE, in ? in->lmr : race_handle(pick_lmr(c)), DAT_LMR_FIELD_ALL,
	     &param);
}

static void lmr_sync_read(struct race_caller *c)
{
	DAT_LMR_TRIPLET seg = race_seg(c);

	RACE(c, dat_lmr_sync_rdma_read, PARAM | PRIVILEGE, c->w->ia, &seg, 1);
}

static void lmr_sync_write(struct race_caller *c)
{
	DAT_LMR_TRIPLET seg = race_seg(c);

	RACE(c, dat_lmr_sync_rdma_write, PARAM | PRIVILEGE, c->w->ia, &seg, 1);
}

static void lmr_fmr(struct race_caller *c)
{
	DAT_REGION_DESCRIPTION region = { .for_va = c->w->fmr_page };
	struct race_obj *ep, *lmr = race_slot(c->w, S_FMR);
	DAT_EP_HANDLE handle = pick_ep(c, &ep);
	u64 cookie = race_post(c->w, K_FMR, ep);
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;

	if (!cookie)
		return;
	race_posted(c->w, cookie,
		    RACE(c, dat_lmr_fmr, HANDLE | STATE | NO_ROOM, race_handle(lmr),
			 DAT_MEM_TYPE_VIRTUAL, region, 1, DAT_MEM_PRIV_ALL_FLAG,
			 DAT_VA_TYPE_VA, handle, kd_cookie(cookie), 0, &lmr_context,
			 &rmr_context));
}

static void lmr_invalidate(struct race_caller *c)
{
	struct race_obj *ep, *lmr = race_slot(c->w, S_FMR);
	DAT_EP_HANDLE handle = pick_ep(c, &ep);
	u64 cookie = race_post(c->w, K_INVALIDATE, ep);

	if (!cookie)
		return;
	race_posted(c->w, cookie,
		    RACE(c, dat_lmr_invalidate, HANDLE | STATE | NO_ROOM, race_handle(lmr),
			 handle, kd_cookie(cookie), 0));
}

/* The pair of lmr_fmr() and lmr_invalidate() must not be the only one to bind. */
static void fmr_or_invalidate(struct race_caller *c)
{
	if (rnd(c, 2))
		lmr_fmr(c);
	else
		lmr_invalidate(c);
}

/* Bind the beginning of the memory that stays; or unbind, if @len is 0. */
static void bind(struct race_caller *c, DAT_RMR_HANDLE rmr, struct race_obj *ep, DAT_VLEN len)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)c->w->mem,
		.segment_length = len,
		.lmr_context = c->w->lmr_context,
	};
	u64 cookie = race_post(c->w, K_BIND, ep);
	DAT_RMR_CONTEXT rmr_context = 0;
	DAT_RETURN ret;

	if (!cookie)
		return;
	ret = RACE(c, dat_rmr_bind, HANDLE | STATE | NO_ROOM | PRIVILEGE, rmr, c->w->lmr, &seg,
		   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, ep->handle, kd_cookie(cookie), 0,
		   &rmr_context);
	if (ret == DAT_SUCCESS && rmr == c->w->rmr)
		WRITE_ONCE(c->w->bound, len ? rmr_context : 0);
	race_posted(c->w, cookie, ret);
}

/* Bind the RMR that stays, which Reads to an RMR need, on an Endpoint that is up. */
void race_bind(struct race_caller *c, struct race_obj *ep)
{
	bind(c, c->w->rmr, ep, RACE_LEN);
}

static void rmr_bind(struct race_caller *c)
{
	DAT_RMR_HANDLE rmr = rnd(c, 2) ? c->w->rmr : race_handle(race_slot(c->w, S_RMR));

	bind(c, rmr, race_slot(c->w, S_EP + rnd(c, RACE_EPS)), rnd(c, 4) ? RACE_LEN : 0);
}

/* ---- Connection requests ------------------------------------------------- */

/* When the device is about to leave they are kept until it does, for the calls of a pair. */
static bool are_kept(const struct race_caller *c)
{
	return READ_ONCE(c->w->keeps) && !(c->call && READ_ONCE(c->w->leaves));
}

static DAT_CR_HANDLE pick_cr(struct race_caller *c, DAT_CR_HANDLE **place)
{
	unsigned int i, first = rnd(c, RACE_CRS);

	*place = &c->w->cr[first];
	if (are_kept(c))
		return NULL;
	for (i = 0; i < RACE_CRS; i++) {
		*place = &c->w->cr[(first + i) % RACE_CRS];
		if (READ_ONCE(**place))
			break;
	}
	return READ_ONCE(**place);
}

static void answered(struct race_world *w, DAT_CR_HANDLE *place, DAT_CR_HANDLE cr,
		     DAT_RETURN ret)
{
	race_answered(w, cr, ret);
	/* Of those that answer it at once one succeeds, for the others it is gone. */
	if (ret == DAT_SUCCESS || DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
		cmpxchg(place, cr, NULL);
}

/* Accept a request, with @ep unless an Endpoint came with it. */
void race_accept(struct race_caller *c, struct race_obj *ep)
{
	DAT_CR_PARAM param = {};
	DAT_CR_HANDLE *place, cr = pick_cr(c, &place);
	DAT_RETURN ret;

	if (!cr || !ep)
		return;
	RACE(c, dat_cr_query, HANDLE, cr, DAT_CR_FIELD_ALL, &param);
	if (param.local_ep_handle)
		ep = race_find(c->w, param.local_ep_handle);
	/* One that the provider has made, which no thread knows. */
	if (!ep)
		answered(c->w, place, cr, RACE(c, dat_cr_reject, HANDLE, cr, 0, NULL));
	if (!ep)
		return;
	atomic_inc(&ep->starts);
	ret = RACE(c, dat_cr_accept, HANDLE | STATE | NO_ROOM, cr,
		   param.local_ep_handle ? NULL : ep->handle, 0, NULL);
	if (ret != DAT_SUCCESS)
		atomic_dec(&ep->starts);
	/* Which handle was not valid is not known; the request is answered some day. */
	if (DAT_GET_SUBTYPE(ret) != DAT_INVALID_HANDLE_EP)
		answered(c->w, place, cr, ret);
}

void race_reject(struct race_caller *c)
{
	DAT_CR_HANDLE *place, cr = pick_cr(c, &place);

	if (cr)
		answered(c->w, place, cr, RACE(c, dat_cr_reject, HANDLE, cr, 0, NULL));
}

static void cr_query(struct race_caller *c)
{
	DAT_CR_HANDLE *place;
	DAT_CR_PARAM param;

	RACE(c, dat_cr_query, HANDLE, pick_cr(c, &place), DAT_CR_FIELD_ALL, &param);
}

static void cr_accept(struct race_caller *c)
{
	race_accept(c, race_pick_in(c, DAT_EP_STATE_UNCONNECTED));
}

static void cr_handoff(struct race_caller *c)
{
	struct race_obj *sp = race_slot(c->w, S_PSP + rnd(c, 3));
	DAT_CR_HANDLE *place, cr = pick_cr(c, &place);

	if (cr)
		answered(c->w, place, cr, RACE(c, dat_cr_handoff, HANDLE | PARAM | NO_ROOM, cr,
					       sp ? sp->port : c->w->port));
}

/* ---- IAs ----------------------------------------------------------------- */

static void ia_query(struct race_caller *c)
{
	DAT_IA_HANDLE ia = rnd(c, 2) ? c->w->ia : race_handle(race_slot(c->w, S_IA));
	DAT_PROVIDER_ATTR prov;

	RACE(c, dat_ia_query, HANDLE, ia, NULL, 0, NULL,
	     DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE, &prov);
}

static void ia_find(struct race_caller *c)
{
	char name[DAT_NAME_MAX_LENGTH];

	RACE(c, kdat_ia_find, MAY(DAT_PROVIDER_NOT_FOUND), (const struct sockaddr *)&c->w->addr,
	     name);
}

static void ia_id(struct race_caller *c)
{
	DAT_UINT64 id;

	if (RACE(c, kdat_ia_id, HANDLE, rnd(c, 2) ? c->w->ia : race_handle(race_slot(c->w, S_IA)),
		 &id) == DAT_SUCCESS && id != c->w->id)
		race_fail(c->w, "the IA has the ids %#llx and %#llx", (u64)c->w->id, (u64)id);
}

static void ia_name(struct race_caller *c)
{
	char name[DAT_NAME_MAX_LENGTH];

	RACE(c, kdat_ia_name, MAY(DAT_PROVIDER_NOT_FOUND), c->w->id, name);
}

static void ia_ident(struct race_caller *c)
{
	KDAT_IA_IDENT ident;

	if (RACE(c, kdat_ia_identify, HANDLE, rnd(c, 2) ? c->w->ia :
		 race_handle(race_slot(c->w, S_IA)), &ident) == DAT_SUCCESS &&
	    ident.id != c->w->id)
		race_fail(c->w, "the IA has the ids %#llx and %#llx", (u64)c->w->id,
			  (u64)ident.id);
}

static void ia_again(struct race_caller *c)
{
	KDAT_IA_IDENT ident = { .id = c->w->id };
	char name[DAT_NAME_MAX_LENGTH];

	if (rnd(c, 2))
		kdat_ia_identify(c->w->ia, &ident);
	strscpy(name, c->w->name, sizeof(name));
	if (RACE(c, kdat_ia_again, MAY(DAT_PROVIDER_NOT_FOUND), &ident, name) == DAT_SUCCESS &&
	    strcmp(name, c->w->name))
		race_fail(c->w, "the IA is called %s", name);
}

static void cr_query_gid(struct race_caller *c)
{
	DAT_CR_HANDLE *place;
	u8 gid[16];

	RACE(c, kdat_cr_query_gid, HANDLE | MODEL, pick_cr(c, &place), gid);
}

/* ---- The table ----------------------------------------------------------- */

const struct race_call race_object_calls[] = {
	RACE_CALL_ON(dat_srq_create, race_replace, S_SRQ2),
	RACE_CALL(dat_srq_free, srq_free),
	RACE_CALL(dat_srq_query, srq_query),
	RACE_CALL(dat_srq_resize, srq_resize),
	RACE_CALL(dat_srq_set_lw, srq_set_lw),
	RACE_CALL(dat_lmr_kcreate, lmr_kcreate),
	RACE_CALL(dat_lmr_free, lmr_free),
	RACE_CALL(dat_lmr_query, lmr_query),
	RACE_CALL(dat_lmr_sync_rdma_read, lmr_sync_read),
	RACE_CALL(dat_lmr_sync_rdma_write, lmr_sync_write),
	RACE_CALL_ON(dat_lmr_allocate, race_replace, S_FMR),
	RACE_CALL(dat_lmr_fmr, fmr_or_invalidate),
	RACE_CALL(dat_lmr_invalidate, fmr_or_invalidate),
	RACE_CALL_ON(dat_rmr_create, race_replace, S_RMR),
	RACE_CALL_ON(dat_rmr_create_for_ep, race_replace, S_RMR),
	RACE_CALL_ON(dat_rmr_free, race_free_slot, S_RMR),
	RACE_CALL(dat_rmr_query, rmr_query),
	RACE_CALL(dat_rmr_bind, rmr_bind),
	RACE_CALL(dat_cr_query, cr_query),
	RACE_CALL(kdat_cr_query_gid, cr_query_gid),
	RACE_CALL(dat_cr_accept, cr_accept),
	RACE_CALL(dat_cr_reject, race_reject),
	RACE_CALL(dat_cr_handoff, cr_handoff),
	RACE_CALL_ON(dat_psp_create, race_replace, S_PSP),
	RACE_CALL_ON(dat_psp_create_any, race_replace, S_PSP),
	RACE_CALL_ON(dat_psp_free, race_free_slot, S_PSP),
	RACE_CALL(dat_psp_query, psp_query),
	/* The Endpoint is for one of them. */
	RACE_CALL_ON(dat_rsp_create, race_free_slot, S_RSP),
	RACE_CALL_ON(dat_rsp_free, race_free_slot, S_RSP),
	RACE_CALL(dat_rsp_query, rsp_query),
	RACE_CALL_ON(dat_csp_create, race_replace, S_CSP),
	RACE_CALL_ON(dat_csp_free, race_free_slot, S_CSP),
	RACE_CALL(dat_csp_query, csp_query),
	RACE_CALL_ON(dat_pz_create, race_replace, S_PZ),
	RACE_CALL(dat_pz_query, pz_query),
	RACE_CALL_ON(dat_pz_free, race_free_slot, S_PZ),
	RACE_CALL_ON(dat_ia_openv, race_replace, S_IA),
	RACE_CALL(dat_ia_query, ia_query),
	RACE_CALL(kdat_ia_find, ia_find),
	RACE_CALL(kdat_ia_id, ia_id),
	RACE_CALL(kdat_ia_name, ia_name),
	RACE_CALL(kdat_ia_identify, ia_ident),
	RACE_CALL(kdat_ia_again, ia_again),
	RACE_CALL_ON(dat_ia_close, race_free_slot, S_IA),
};

const unsigned int race_nobject_calls = ARRAY_SIZE(race_object_calls);
