// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests that gather segments of several LMRs (contract L9): whatever memory they are
 * made of, the peer gets what they name.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include "fmr_fixture.h"

#define SEGMENTS	3
#define PAGES		4
#define LEN		(PAGES * PAGE_SIZE)

static const size_t lengths[] = { 1, 4095, 4097 };
static const size_t offsets[] = { 0, 100, 4000 };

/*
 * struct part - memory that a segment is taken from
 * @seg: all of it
 * @va: its pages
 * @used: the segment: its beginning and its length
 */
struct part {
	DAT_LMR_TRIPLET seg;
	u8 *va[PAGES];
	size_t from;
	size_t used;
};

/* ---- Memory --------------------------------------------------------------------- */

static void use_buf(struct part *p, const struct kd_buf *buf)
{
	int i;

	p->seg = kd_seg(buf, 0, LEN);
	for (i = 0; i < PAGES; i++)
		p->va[i] = buf->va + i * PAGE_SIZE;
}

/* Pages that do not adjoin. */
static void use_pages(struct kunit *test, struct part *p, DAT_PADDR *phys)
{
	u8 *va = kunit_kzalloc(test, 2 * LEN, GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, va);
	for (i = 0; i < PAGES; i++) {
		p->va[i] = va + (2 * (PAGES - i) - 1) * PAGE_SIZE;
		phys[i] = virt_to_phys(p->va[i]);
	}
}

/* An LMR of such pages, addressed from zero. */
static void make_lmr(struct kd_side *s, struct part *p, const DAT_PADDR *phys)
{
	DAT_REGION_DESCRIPTION desc = { .for_physical = (DAT_PADDR *)phys };
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	p->seg = (DAT_LMR_TRIPLET) { .segment_length = LEN };
	KD_ASSERT_OK(s->test,
		     dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_PHYSICAL, desc, LEN, s->pz,
				     DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, 0, &lmr,
				     &p->seg.lmr_context, &rkey, NULL, NULL));
}

/* The same by fast registration; @flat: of virtual addresses, which are @buf. */
static void make_fmr(struct mem_pair *c, struct part *p, const DAT_PADDR *phys,
		     const struct kd_buf *buf)
{
	DAT_REGION_DESCRIPTION desc = { .for_physical = (DAT_PADDR *)phys };
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;

	if (buf) {
		use_buf(p, buf);
		desc.for_va = buf->va;
	}
	p->seg = (DAT_LMR_TRIPLET) { .segment_length = LEN };
	KD_ASSERT_OK(c->test, dat_lmr_allocate(c->a->ia, c->a->pz, PAGES,
					       DAT_LMR_SCOPE_PZ, &lmr));
	KD_ASSERT_OK(c->test,
		     dat_lmr_fmr(lmr, buf ? DAT_MEM_TYPE_VIRTUAL : DAT_MEM_TYPE_PHYSICAL,
				 desc, PAGES, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB,
				 c->a->ep, kd_cookie(1), 0, &p->seg.lmr_context, &rkey));
	fmr_expect_op(c, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS);
}

/* Copy the bytes of the segment out of, or (@in) into, the pages of @p. */
static void part_copy(const struct part *p, u8 *flat, bool in)
{
	size_t i, at;

	for (i = 0; i < p->used; i++) {
		at = p->from + i;
		if (in)
			p->va[at / PAGE_SIZE][at % PAGE_SIZE] = flat[i];
		else
			flat[i] = p->va[at / PAGE_SIZE][at % PAGE_SIZE];
	}
}

/* ---- Requests ------------------------------------------------------------------- */

/* Choose the segments of round @round, and their bytes. Return their length. */
static size_t choose(struct part *p, unsigned int round, DAT_LMR_TRIPLET *seg, u8 *flat)
{
	unsigned int i, n = round;
	size_t len = 0;

	for (i = 0; i < SEGMENTS; i++, n /= 3) {
		p[i].used = lengths[n % 3];
		p[i].from = offsets[(n / 3 + i + round) % 3];
		seg[i] = p[i].seg;
		seg[i].virtual_address += p[i].from;
		seg[i].segment_length = p[i].used;
		kd_fill(flat + len, p[i].used, 100 * round + i);
		part_copy(&p[i], flat + len, true);
		len += p[i].used;
	}
	return len;
}

/* Send and write what @p has, in all lengths; the peer must get that. */
static void gather(struct mem_pair *c, struct part *p)
{
	u8 *flat = kunit_kzalloc(c->test, SEGMENTS * LEN, GFP_KERNEL);
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET seg[SEGMENTS];
	unsigned int round;
	size_t len;

	KUNIT_ASSERT_NOT_NULL(c->test, flat);
	for (round = 0; round < 27; round++) {
		len = choose(p, round, seg, flat);
		memset(c->p->buf->va, 0x5a, len);
		kd_recv(c->p, 0, len, 1);
		KD_ASSERT_OK(c->test, dat_ep_post_send(c->a->ep, SEGMENTS, seg,
						       kd_cookie(2), 0));
		kd_expect_dto(c->test, c->p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(c->test, c->a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
		KUNIT_ASSERT_TRUE_MSG(c->test, !memcmp(c->p->buf->va, flat, len),
				      "sent in round %u", round);

		memset(c->p->buf->va, 0x5a, len);
		remote = kd_remote(c->p->buf, 0, len);
		KD_ASSERT_OK(c->test,
			     dat_ep_post_rdma_write(c->a->ep, SEGMENTS, seg, kd_cookie(3),
						    &remote, 0));
		kd_recv(c->p, KD_BUF_LEN - 64, 64, 4);
		kd_send(c->a, 0, 64, 5);
		kd_expect_dto(c->test, c->p->recv_evd, 4, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(c->test, c->a->req_evd, 3, DAT_DTO_SUCCESS, NULL);
		kd_expect_dto(c->test, c->a->req_evd, 5, DAT_DTO_SUCCESS, NULL);
		seg[0] = kd_seg(c->p->buf, 0, len);
		KD_ASSERT_OK(c->test, dat_lmr_sync_rdma_write(c->p->ia, seg, 1));
		KUNIT_ASSERT_TRUE_MSG(c->test, !memcmp(c->p->buf->va, flat, len),
				      "written in round %u", round);
	}
}

static struct mem_pair make_pair(struct kunit *test, struct part **p)
{
	*p = kunit_kcalloc(test, SEGMENTS, sizeof(**p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *p);
	return mem_make_pair(test, NULL);
}

/* Memory of kmalloc and vmalloc by turns, beginning with either. */
static void gather_buffers(struct kunit *test, bool first)
{
	struct part *p;
	struct mem_pair c = make_pair(test, &p);
	int i;

	for (i = 0; i < SEGMENTS; i++)
		use_buf(&p[i], (i & 1) == first ? kd_buf_alloc(c.a, LEN) :
						  kd_buf_valloc(c.a, LEN));
	gather(&c, p);
}

static void L9_gather_vmalloc_kmalloc_vmalloc(struct kunit *test)
{
	gather_buffers(test, true);
}

static void L9_gather_kmalloc_vmalloc_kmalloc(struct kunit *test)
{
	gather_buffers(test, false);
}

static void L9_gather_of_pages(struct kunit *test)
{
	DAT_PADDR phys[2][PAGES];
	struct part *p;
	struct mem_pair c = make_pair(test, &p);

	use_pages(test, &p[0], phys[0]);
	make_lmr(c.a, &p[0], phys[0]);
	use_buf(&p[1], kd_buf_alloc(c.a, LEN));
	use_pages(test, &p[2], phys[1]);
	make_lmr(c.a, &p[2], phys[1]);
	gather(&c, p);
}

/* One of virtual addresses may be anywhere, and one of pages the last segment. */
static void L9_gather_of_fast_registrations(struct kunit *test)
{
	DAT_PADDR phys[PAGES];
	struct part *p;
	struct mem_pair c = make_pair(test, &p);

	make_fmr(&c, &p[0], NULL, kd_buf_valloc(c.a, LEN));
	use_buf(&p[1], kd_buf_valloc(c.a, LEN));
	use_pages(test, &p[2], phys);
	make_fmr(&c, &p[2], phys, NULL);
	gather(&c, p);
}

/* Pages in the middle: on siw the request is refused, unless a page has the segment. */
static void L9_gather_what_is_refused(struct kunit *test)
{
	DAT_PADDR phys[PAGES];
	DAT_LMR_TRIPLET seg[2];
	struct part *p;
	struct mem_pair c = make_pair(test, &p);
	bool limited = kd_has(c.a, KD_ANY_READ);

	use_pages(test, &p[0], phys);
	make_fmr(&c, &p[0], phys, NULL);
	seg[0] = p[0].seg;
	seg[1] = kd_seg(c.a->buf, 0, 100);
	seg[0].virtual_address = PAGE_SIZE - 1;
	seg[0].segment_length = 2;
	kd_recv(c.p, 0, 200, 1);
	KD_ASSERT_RET(test, limited ? DAT_MODEL_NOT_SUPPORTED : DAT_SUCCESS,
		      dat_ep_post_send(c.a->ep, 2, seg, kd_cookie(2), 0));
	if (limited) {
		/* What was refused has changed nothing. */
		seg[0].virtual_address = PAGE_SIZE;
		KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 2, seg, kd_cookie(2), 0));
	}
	kd_expect_dto(test, c.p->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.a->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}

static struct kunit_case gather_cases[] = {
	KUNIT_CASE_PARAM(L9_gather_vmalloc_kmalloc_vmalloc, kd_gen_ia),
	KUNIT_CASE_PARAM(L9_gather_kmalloc_vmalloc_kmalloc, kd_gen_ia),
	KUNIT_CASE_PARAM(L9_gather_of_pages, kd_gen_ia),
	KUNIT_CASE_PARAM(L9_gather_of_fast_registrations, kd_gen_ia),
	KUNIT_CASE_PARAM(L9_gather_what_is_refused, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-gather", gather_cases, "requests of segments of several LMRs");
