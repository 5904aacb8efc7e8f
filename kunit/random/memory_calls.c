// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * random_test.ko: calls of memory, Shared Receive Queues, service points and
 * connection requests. See calls.c.
 */
#include <linux/in.h>
#include "random.h"

/* ---- PZs and LMRs -------------------------------------------------------- */

static DAT_RETURN r_pz_create(struct caller *c)
{
	DAT_PZ_HANDLE h = NULL;

	return MADE(PZ, dat_pz_create(IA, &h), h);
}

static DAT_RETURN r_pz_query(struct caller *c)
{
	return dat_pz_query(PZ, kdr_mask(c, DAT_PZ_FIELD_ALL), OUT);
}

static DAT_RETURN r_pz_free(struct caller *c)
{
	return dat_pz_free(PZ);
}

/*
 * struct piece - memory to register
 * @len: bytes
 * @pages: number of pages, for types that are registered by the page
 * @base: address of the first byte
 */
struct piece {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN len;
	DAT_VLEN pages;
	u64 base;
};

static void pick_piece(struct caller *c, struct piece *piece)
{
	static const DAT_MEM_TYPE types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_VIRTUAL,
		DAT_MEM_TYPE_PHYSICAL, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
		DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA, DAT_MEM_TYPE_LMR,
		DAT_MEM_TYPE_BYPASS
	};
	static const DAT_VLEN wrong[] = { 0, ~0ULL, 1ULL << 40 };
	u32 offset = rnd(c, MEM_LEN - 2 * MEM_GUARD);
	u32 page = rnd(c, MEM_PAGES);
	u8 *mem = chance(c, 50) ? c->pool->kmem : c->pool->vmem;

	memset(piece, 0, sizeof(*piece));
	piece->type = types[rnd(c, ARRAY_SIZE(types))];
	piece->pages = 1 + rnd(c, MEM_PAGES - page);
	piece->base = (uintptr_t)c->pool->kmem + MEM_GUARD + page * PAGE_SIZE;
	piece->len = 1 + rnd(c, piece->pages * PAGE_SIZE);
	switch (piece->type) {
	case DAT_MEM_TYPE_PHYSICAL:
		piece->region.for_physical = c->pool->page + page;
		piece->base = c->pool->page[page];
		break;
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
		piece->region.for_array.page_size = PAGE_SIZE;
		piece->region.for_array.pages = c->pool->page + page;
		piece->base = c->pool->page[page];
		break;
	case DAT_MEM_TYPE_PLATFORM:
		piece->region.for_platform = c->pool->sg;
		piece->len = c->pool->sg[0].length;
		break;
	case DAT_MEM_TYPE_IA:
		piece->base += c->pool->dma - (uintptr_t)c->pool->kmem;
		piece->region.for_ia = piece->base;
		break;
	case DAT_MEM_TYPE_LMR:
		piece->region.for_lmr_handle = LMR;
		break;
	default:
		piece->base = (uintptr_t)mem + MEM_GUARD + offset;
		piece->len = 1 + rnd(c, MEM_LEN - 2 * MEM_GUARD - offset);
		piece->region.for_va = (void *)(uintptr_t)piece->base;
	}
	if (chance(c, 3))
		piece->len = wrong[rnd(c, ARRAY_SIZE(wrong))];
	if (chance(c, 3) && piece->type != DAT_MEM_TYPE_IA)
		memset(&piece->region, 0, sizeof(piece->region));
}

static DAT_RETURN r_lmr_create(struct caller *c)
{
	DAT_LMR_CONTEXT lmr_context = 0;
	DAT_RMR_CONTEXT rmr_context = 0;
	DAT_PZ_HANDLE pz = PZ;
	DAT_LMR_HANDLE h = NULL;
	struct piece piece;
	DAT_VADDR va = 0;
	DAT_RETURN ret;

	pick_piece(c, &piece);
	ret = dat_lmr_kcreate(IA, piece.type, piece.region, piece.len, pz,
			      kdr_priv(c), kdr_va_type(c), rnd(c, 3), &h, &lmr_context,
			      OPT(c, &rmr_context), NULL, &va);
	if (ret == DAT_SUCCESS)
		kdr_put_region(c, pz, va, piece.len, lmr_context, rmr_context);
	return MADE(LMR, ret, h);
}

static DAT_RETURN r_lmr_query(struct caller *c)
{
	return dat_lmr_query(LMR, kdr_mask(c, DAT_LMR_FIELD_ALL), OUT);
}

static DAT_RETURN r_lmr_free(struct caller *c)
{
	return dat_lmr_free(LMR);
}

static DAT_RETURN r_lmr_allocate(struct caller *c)
{
	DAT_LMR_HANDLE h = NULL;

	return MADE(LMR, dat_lmr_allocate(IA, PZ, kdr_count(c, 8), rnd(c, 4), &h),
		    h);
}

static DAT_RETURN r_lmr_fmr(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);
	DAT_LMR_HANDLE lmr = kdr_pick_near(c, DAT_HANDLE_TYPE_LMR);
	DAT_LMR_CONTEXT lmr_context = 0;
	DAT_RMR_CONTEXT rmr_context = 0;
	struct piece piece;
	DAT_RETURN ret;

	pick_piece(c, &piece);
	ret = dat_lmr_fmr(lmr, piece.type, piece.region, chance(c, 97) ?
			  piece.pages : piece.len, kdr_priv(c), kdr_va_type(c), ep,
			  COOKIE, kdr_flags(c), &lmr_context, &rmr_context);
	if (ret == DAT_SUCCESS)
		kdr_put_region(c, c->zone, piece.base, piece.pages * PAGE_SIZE, lmr_context,
			       rmr_context);
	return ret;
}

static DAT_RETURN r_lmr_invalidate(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);

	return dat_lmr_invalidate(kdr_pick_near(c, DAT_HANDLE_TYPE_LMR), ep, COOKIE,
				  kdr_flags(c));
}

static DAT_RETURN r_sync_read(struct caller *c)
{
	DAT_COUNT n = kdr_pick_segs(c);

	return dat_lmr_sync_rdma_read(IA, OPT(c, c->seg),
				      clamp(n, 0, MAX_SEGS));
}

static DAT_RETURN r_sync_write(struct caller *c)
{
	DAT_COUNT n = kdr_pick_segs(c);

	return dat_lmr_sync_rdma_write(IA, OPT(c, c->seg),
				       clamp(n, 0, MAX_SEGS));
}

/* ---- RMRs ---------------------------------------------------------------- */

static DAT_RETURN r_rmr_create(struct caller *c)
{
	DAT_RMR_HANDLE h = NULL;

	return MADE(RMR, dat_rmr_create(PZ, &h), h);
}

static DAT_RETURN r_rmr_create_for_ep(struct caller *c)
{
	DAT_RMR_HANDLE h = NULL;

	return MADE(RMR, dat_rmr_create_for_ep(PZ, &h), h);
}

static DAT_RETURN r_rmr_query(struct caller *c)
{
	return dat_rmr_query(RMR, kdr_mask(c, DAT_RMR_FIELD_ALL), OUT);
}

static DAT_RETURN r_rmr_bind(struct caller *c)
{
	DAT_EP_HANDLE ep = kdr_pick_connected(c);
	DAT_LMR_HANDLE lmr = kdr_pick_near(c, DAT_HANDLE_TYPE_LMR);
	DAT_RMR_HANDLE rmr = kdr_pick_near(c, DAT_HANDLE_TYPE_RMR);
	struct region region = kdr_pick_region(c);
	DAT_RMR_CONTEXT rmr_context = 0;
	DAT_LMR_PARAM param;
	DAT_LMR_TRIPLET seg;
	DAT_RETURN ret;

	/* Mostly the segment is of this LMR. */
	if (chance(c, 80) &&
	    dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param) == DAT_SUCCESS) {
		region.lmr_context = param.lmr_context;
		region.base = param.registered_address;
		region.len = param.length;
	}
	seg.lmr_context = region.lmr_context;
	kdr_pick_part(c, &region, &seg.virtual_address, &seg.segment_length);
	ret = dat_rmr_bind(rmr, lmr, OPT(c, &seg), kdr_priv(c), kdr_va_type(c), ep,
			   COOKIE, kdr_flags(c), &rmr_context);
	if (ret == DAT_SUCCESS)
		kdr_put_region(c, c->zone, seg.virtual_address, seg.segment_length,
			       seg.lmr_context, rmr_context);
	return ret;
}

static DAT_RETURN r_rmr_free(struct caller *c)
{
	return dat_rmr_free(RMR);
}

/* ---- SRQs ---------------------------------------------------------------- */

static DAT_RETURN r_srq_create(struct caller *c)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = kdr_count(c, 64),
		.max_recv_iov = kdr_count(c, 4),
		.low_watermark = chance(c, 80) ? 0 : kdr_count(c, 8),
	};
	DAT_SRQ_HANDLE h = NULL;

	return MADE(SRQ, dat_srq_create(IA, PZ, OPT(c, &attr), &h), h);
}

static DAT_RETURN r_srq_free(struct caller *c)
{
	return dat_srq_free(SRQ);
}

static DAT_RETURN r_srq_query(struct caller *c)
{
	struct kunit *test = c->pool->test;
	DAT_SRQ_PARAM param;
	DAT_RETURN ret;

	ret = dat_srq_query(SRQ, DAT_SRQ_FIELD_ALL, &param);
	if (ret != DAT_SUCCESS)
		return ret;
	KUNIT_EXPECT_GE(test, param.available_dto_count, 0);
	KUNIT_EXPECT_GE(test, param.outstanding_dto_count,
			param.available_dto_count);
	KUNIT_EXPECT_LE(test, param.outstanding_dto_count,
			param.max_recv_dtos);
	return ret;
}

static DAT_RETURN r_srq_resize(struct caller *c)
{
	return dat_srq_resize(SRQ, kdr_count(c, 128));
}

static DAT_RETURN r_srq_recv(struct caller *c)
{
	return dat_srq_post_recv(SRQ, kdr_pick_segs(c), OPT(c, c->seg), COOKIE);
}

static DAT_RETURN r_srq_lw(struct caller *c)
{
	return dat_srq_set_lw(SRQ, kdr_count(c, 16));
}

/* ---- Service points ------------------------------------------------------ */

static DAT_RETURN r_psp_create(struct caller *c)
{
	DAT_PSP_HANDLE h = NULL;

	return MADE(PSP, dat_psp_create(IA, kdr_port(c),
					kdr_pick_evd(c, DAT_EVD_CR_FLAG),
					rnd(c, chance(c, 95) ? 2 : 4), &h), h);
}

static DAT_RETURN r_psp_create_any(struct caller *c)
{
	DAT_PSP_HANDLE h = NULL;
	DAT_CONN_QUAL qual;

	return MADE(PSP, dat_psp_create_any(IA, &qual,
					    kdr_pick_evd(c, DAT_EVD_CR_FLAG),
					    rnd(c, 2), &h), h);
}

static DAT_RETURN r_psp_query(struct caller *c)
{
	return dat_psp_query(PSP, kdr_mask(c, DAT_PSP_FIELD_ALL), OUT);
}

static DAT_RETURN r_psp_free(struct caller *c)
{
	return dat_psp_free(PSP);
}

static DAT_RETURN r_rsp_create(struct caller *c)
{
	DAT_RSP_HANDLE h = NULL;

	return MADE(RSP, dat_rsp_create(IA, kdr_port(c), EP,
					kdr_pick_evd(c, DAT_EVD_CR_FLAG), &h), h);
}

static DAT_RETURN r_rsp_query(struct caller *c)
{
	return dat_rsp_query(RSP, kdr_mask(c, DAT_RSP_FIELD_ALL), OUT);
}

static DAT_RETURN r_rsp_free(struct caller *c)
{
	return dat_rsp_free(RSP);
}

static DAT_RETURN r_csp_create(struct caller *c)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)&c->addr;
	DAT_CSP_HANDLE h = NULL;

	memcpy(sin, c->w->addr, sizeof(*sin));
	sin->sin_port = htons(kdr_port(c));
	return MADE(CSP, dat_csp_create(IA, kdr_comm(c), chance(c, 97) ?
					(DAT_IA_ADDRESS_PTR)sin : NULL,
					kdr_pick_evd(c, DAT_EVD_CR_FLAG), &h), h);
}

static DAT_RETURN r_csp_query(struct caller *c)
{
	DAT_CSP_PARAM param = { .comm = &c->comm };

	return dat_csp_query(CSP, kdr_mask(c, DAT_CSP_FIELD_ALL), &param);
}

static DAT_RETURN r_csp_free(struct caller *c)
{
	return dat_csp_free(CSP);
}

/* ---- Connection requests ------------------------------------------------- */

static DAT_RETURN r_cr_query(struct caller *c)
{
	return dat_cr_query(CR, kdr_mask(c, DAT_CR_FIELD_ALL), OUT);
}

/* Accept with the Endpoint that the provider made, if there is one. */
static DAT_RETURN r_cr_accept(struct caller *c)
{
	DAT_CR_HANDLE cr = CR;
	DAT_CR_PARAM param = { .local_ep_handle = NULL };
	DAT_EP_HANDLE ep = NULL;
	DAT_RETURN ret;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) != DAT_SUCCESS ||
	    !param.local_ep_handle || chance(c, 10))
		ep = EP;
	if (!ep && chance(c, 60)) {
		/* The provider's Endpoint has no PZ and no EVDs. */
		memset(&c->ep_param, 0, sizeof(c->ep_param));
		c->ep_param.pz_handle = PZ;
		c->ep_param.recv_evd_handle = kdr_pick_evd(c, DAT_EVD_DTO_FLAG);
		c->ep_param.request_evd_handle = kdr_pick_evd(c, DAT_EVD_DTO_FLAG);
		c->ep_param.connect_evd_handle =
			kdr_pick_evd(c, DAT_EVD_CONNECTION_FLAG);
		dat_ep_modify(param.local_ep_handle, DAT_EP_FIELD_PZ_HANDLE |
			      DAT_EP_FIELD_RECV_EVD_HANDLE |
			      DAT_EP_FIELD_REQUEST_EVD_HANDLE |
			      DAT_EP_FIELD_CONNECT_EVD_HANDLE, &c->ep_param);
	}
	ret = dat_cr_accept(cr, ep, kdr_pd_size(c), OPT(c, c->pool->kmem));
	if (ret == DAT_SUCCESS && !ep)
		kdr_put(c->pool, c->w, DAT_HANDLE_TYPE_EP, param.local_ep_handle);
	return ret;
}

static DAT_RETURN r_cr_reject(struct caller *c)
{
	return dat_cr_reject(CR, kdr_pd_size(c), OPT(c, c->pool->kmem));
}

static DAT_RETURN r_cr_handoff(struct caller *c)
{
	return dat_cr_handoff(CR, kdr_port(c));
}

/* ---- The table ----------------------------------------------------------- */

struct random_call kdr_memory_calls[] = {
	CALL(dat_pz_create, r_pz_create, 2),
	CALL(dat_pz_query, r_pz_query, 1),
	CALL(dat_pz_free, r_pz_free, 1),
	CALL(dat_lmr_kcreate, r_lmr_create, 4),
	CALL(dat_lmr_query, r_lmr_query, 1),
	CALL(dat_lmr_free, r_lmr_free, 1),
	CALL(dat_lmr_allocate, r_lmr_allocate, 2),
	CALL(dat_lmr_fmr, r_lmr_fmr, 6),
	CALL(dat_lmr_invalidate, r_lmr_invalidate, 3),
	CALL(dat_lmr_sync_rdma_read, r_sync_read, 1),
	CALL(dat_lmr_sync_rdma_write, r_sync_write, 1),
	CALL(dat_rmr_create, r_rmr_create, 1),
	CALL(dat_rmr_create_for_ep, r_rmr_create_for_ep, 1),
	CALL(dat_rmr_query, r_rmr_query, 1),
	CALL(dat_rmr_bind, r_rmr_bind, 6),
	CALL(dat_rmr_free, r_rmr_free, 1),
	CALL(dat_srq_create, r_srq_create, 2),
	CALL(dat_srq_free, r_srq_free, 1),
	CALL(dat_srq_query, r_srq_query, 3),
	CALL(dat_srq_resize, r_srq_resize, 2),
	CALL(dat_srq_post_recv, r_srq_recv, 8),
	CALL(dat_srq_set_lw, r_srq_lw, 2),
	CALL(dat_psp_create, r_psp_create, 4),
	CALL(dat_psp_create_any, r_psp_create_any, 1),
	CALL(dat_psp_query, r_psp_query, 1),
	CALL(dat_psp_free, r_psp_free, 1),
	CALL(dat_rsp_create, r_rsp_create, 2),
	CALL(dat_rsp_query, r_rsp_query, 1),
	CALL(dat_rsp_free, r_rsp_free, 2),
	CALL(dat_csp_create, r_csp_create, 2),
	CALL(dat_csp_query, r_csp_query, 1),
	CALL(dat_csp_free, r_csp_free, 1),
	CALL(dat_cr_query, r_cr_query, 1),
	CALL(dat_cr_accept, r_cr_accept, 14),
	CALL(dat_cr_reject, r_cr_reject, 3),
	CALL(dat_cr_handoff, r_cr_handoff, 1),
};

const unsigned int kdr_nmemory_calls = ARRAY_SIZE(kdr_memory_calls);
