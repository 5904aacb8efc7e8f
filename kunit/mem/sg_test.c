// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Mappings of scatterlists: kdat_sg_map() and kdat_sg_unmap() (contract L8).
 */
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <dat/kdat_linux.h>
#include "call.h"
#include "device.h"
#include "mem_fixture.h"
#include "plug.h"

/* ---- Memory ------------------------------------------------------------------- */

#define PIECES		4
#define PIECE_LEN	1000		/* and not where a page begins */
#define LIST_LEN	(PIECES * PIECE_LEN)
#define SEED		7
#define WORK		1		/* cookies */
#define MANY		100

/* Pieces that do not adjoin, and a mapping of them. */
struct list {
	struct kunit *test;
	u8 *mem;
	struct scatterlist sgl[PIECES];
	DAT_LMR_TRIPLET iov[PIECES];
	DAT_COUNT n;
	KDAT_SG_HANDLE map;
};

static u8 *piece(struct list *l, int i)
{
	return l->mem + 2 * (PIECES - 1 - i) * PAGE_SIZE + 100;
}

static struct list *make_list(struct kunit *test)
{
	struct list *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->test = test;
	l->mem = kunit_kzalloc(test, 2 * PIECES * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l->mem);
	sg_init_table(l->sgl, PIECES);
	for (i = 0; i < PIECES; i++)
		sg_set_buf(&l->sgl[i], piece(l, i), PIECE_LEN);
	return l;
}

/* Fill the list, or compare it, with what a plain buffer has. */
static void list_copy(struct list *l, u8 *flat, bool out)
{
	int i;

	for (i = 0; i < PIECES; i++, flat += PIECE_LEN)
		memcpy(out ? flat : piece(l, i), out ? piece(l, i) : flat, PIECE_LEN);
}

static DAT_RETURN list_map(struct kd_side *s, struct list *l,
			   enum dma_data_direction dir)
{
	return kdat_sg_map(s->ia, s->pz, l->sgl, PIECES, dir, PIECES, l->iov, &l->n,
			   &l->map);
}

/* A message to the peer: when that has arrived, so has what was written before. */
static void mark(struct mem_pair *c)
{
	kd_recv(c->p, KD_BUF_LEN - 64, 64, MEM_MARK);
	kd_send(c->a, KD_BUF_LEN - 64, 64, MEM_MARK);
	kd_expect_dto(c->test, c->p->recv_evd, MEM_MARK, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->a->req_evd, MEM_MARK, DAT_DTO_SUCCESS, NULL);
}

/* ---- Moving data -------------------------------------------------------------- */

static void L8_write_from_pieces(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct list *l = make_list(test);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LIST_LEN);

	kd_fill(c.a->buf->va, LIST_LEN, SEED);
	list_copy(l, c.a->buf->va, false);
	KD_ASSERT_OK(test, list_map(c.a, l, DMA_TO_DEVICE));
	KUNIT_ASSERT_EQ(test, l->n, PIECES);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, l->n, l->iov,
						  kd_cookie(WORK), &remote, 0));
	kd_expect_dto(test, c.a->req_evd, WORK, DAT_DTO_SUCCESS, NULL);
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
	mark(&c);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, LIST_LEN, SEED));
}

static void L8_read_into_pieces(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct list *l = make_list(test);
	DAT_RMR_TRIPLET remote;
	int i;

	kd_fill(c.p->buf->va, LIST_LEN, SEED);
	KD_ASSERT_OK(test, list_map(c.a, l, DMA_FROM_DEVICE));
	/* One by one, as a Read over iWARP has one segment. */
	for (i = 0; i < PIECES; i++) {
		remote = kd_remote(c.p->buf, i * PIECE_LEN, PIECE_LEN);
		KD_ASSERT_OK(test, dat_ep_post_rdma_read(c.a->ep, 1, &l->iov[i],
							 kd_cookie(i), &remote, 0));
		kd_expect_dto(test, c.a->req_evd, i, DAT_DTO_SUCCESS, NULL);
	}
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
	list_copy(l, c.a->buf->va, true);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(c.a->buf->va, LIST_LEN, SEED));
}

/* A Send from an LMR and from parts of a mapping, which come in another order. */
static void L8_parts_and_lmr_in_one_send(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct list *l = make_list(test);
	DAT_LMR_TRIPLET iov[3];
	u8 *got = c.p->buf->va;

	list_copy(l, c.a->buf->va, false);
	memset(piece(l, 3), 3, PIECE_LEN);
	memset(piece(l, 1), 1, PIECE_LEN);
	memset(c.a->buf->va, 9, 50);
	KD_ASSERT_OK(test, list_map(c.a, l, DMA_BIDIRECTIONAL));
	iov[0] = l->iov[3];
	iov[0].virtual_address += 900;
	iov[0].segment_length = 100;
	iov[1] = kd_seg(c.a->buf, 0, 50);
	iov[2] = l->iov[1];
	iov[2].segment_length = 10;
	kd_recv(c.p, 0, KD_BUF_LEN, WORK);
	KD_ASSERT_OK(test, dat_ep_post_send(c.a->ep, 3, iov, kd_cookie(WORK), 0));
	kd_expect_dto(test, c.a->req_evd, WORK, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, c.p->recv_evd, WORK, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, got[0], 3);
	KUNIT_EXPECT_EQ(test, got[99], 3);
	KUNIT_EXPECT_EQ(test, got[100], 9);
	KUNIT_EXPECT_EQ(test, got[150], 1);
	KUNIT_EXPECT_EQ(test, got[159], 1);
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
}

/* What adjoins is one triplet, of which a request may name any part. */
static void L8_pieces_that_adjoin(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, PAGE_SIZE);
	struct scatterlist sgl[4];
	DAT_LMR_TRIPLET iov;
	KDAT_SG_HANDLE map;
	DAT_COUNT n;
	u8 *mem;
	int i;

	mem = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	kd_fill(mem, 4 * PAGE_SIZE, SEED);
	sg_init_table(sgl, 4);
	for (i = 0; i < 4; i++)
		sg_set_buf(&sgl[i], mem + i * PAGE_SIZE, PAGE_SIZE);
	KD_ASSERT_OK(test, kdat_sg_map(c.a->ia, c.a->pz, sgl, 4, DMA_TO_DEVICE, 1,
				       &iov, &n, &map));
	KUNIT_ASSERT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, (u64)iov.segment_length, (u64)4 * PAGE_SIZE);
	/* From the second page into the third. */
	iov.virtual_address += 3 * PAGE_SIZE / 2;
	iov.segment_length = PAGE_SIZE;
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, 1, &iov, kd_cookie(WORK),
						  &remote, 0));
	kd_expect_dto(test, c.a->req_evd, WORK, DAT_DTO_SUCCESS, NULL);
	mark(&c);
	kd_hand_over(c.p->buf->va, PAGE_SIZE, true);
	KUNIT_EXPECT_EQ(test, 0, memcmp(c.p->buf->va, mem + 3 * PAGE_SIZE / 2,
					PAGE_SIZE));
	KD_EXPECT_OK(test, kdat_sg_unmap(map));
}

/* ---- Posted work --------------------------------------------------------------- */

static struct kd_hook device;

/* The device takes requests and never executes them. */
static int keep_requests(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad)
{
	/* The queue pair of the CM works as before. */
	return qp->qp_type == IB_QPT_RC ? 0 : device.real.post_send(qp, wr, bad);
}

static void L8_unmap_while_posted(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LIST_LEN);
	struct list *l = make_list(test);
	DAT_RETURN ret;

	KD_ASSERT_OK(test, list_map(c.a, l, DMA_TO_DEVICE));
	kd_hook(test, c.a->name, &device)->ops.post_send = keep_requests;
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, l->n, l->iov,
						  kd_cookie(WORK), &remote, 0));
	ret = kdat_sg_unmap(l->map);
	KUNIT_EXPECT_EQ(test, ret, DAT_ERROR(DAT_INVALID_STATE,
					     DAT_INVALID_STATE_LMR_IN_USE));
	KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_pz_free(c.a->pz));
	KD_ASSERT_OK(test, dat_ep_disconnect(c.a->ep, DAT_CLOSE_ABRUPT_FLAG));
	kd_expect_dto(test, c.a->req_evd, WORK, DAT_DTO_ERR_FLUSHED, NULL);
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
}

/* The consumer reaps nothing: the call finds out that the request has completed. */
static void L8_unmap_polls(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LIST_LEN);
	struct list *l = make_list(test);
	unsigned long end = jiffies + msecs_to_jiffies(KD_TIMEOUT_MS);
	DAT_RETURN ret;

	kd_drain(c.a->req_evd);
	KD_ASSERT_OK(test, dat_evd_modify_upcall(c.a->req_evd, DAT_UPCALL_DISABLE,
						 NULL, DAT_UPCALL_INVOC_NEW));
	KD_ASSERT_OK(test, list_map(c.a, l, DMA_TO_DEVICE));
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(c.a->ep, l->n, l->iov,
						  kd_cookie(WORK), &remote,
						  DAT_COMPLETION_SUPPRESS_FLAG));
	do {
		ret = kdat_sg_unmap(l->map);
		cond_resched();
	} while (ret != DAT_SUCCESS && time_before(jiffies, end));
	KD_EXPECT_OK(test, ret);
}

/* A request that is refused leaves nothing posted. */
static void L8_refused_post_is_not_posted(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, 10);
	struct list *l = make_list(test);

	KD_ASSERT_OK(test, list_map(c.a, l, DMA_BIDIRECTIONAL));
	KD_EXPECT_RET(test, DAT_LENGTH_ERROR,
		      dat_ep_post_rdma_write(c.a->ep, 1, l->iov, kd_cookie(WORK),
					     &remote, 0));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER,
		      dat_ep_post_send(c.a->ep, 1, l->iov, kd_cookie(WORK), ~0U));
	remote.segment_length = LIST_LEN;
	KD_EXPECT_RET(test, DAT_LENGTH_ERROR,
		      dat_ep_post_rdma_read(c.a->ep, 1, l->iov, kd_cookie(WORK),
					    &remote, 0));
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
}

/* ---- What is refused ------------------------------------------------------------ */

static void L8_map_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test), *other = kd_open_param(test);
	struct list *l = make_list(test);
	struct scatterlist empty;

	kd_setup(s, NULL);
	kd_setup(other, NULL);
#define MAP(ia, pz, sgl, n, dir, max, iov, num, sg) \
	kdat_sg_map(ia, pz, sgl, n, dir, max, iov, num, sg)
#define REFUSED(subtype, ...)						\
	KUNIT_EXPECT_EQ(test, MAP(__VA_ARGS__),				\
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_##subtype))
	KUNIT_EXPECT_EQ(test, MAP(NULL, s->pz, l->sgl, 1, DMA_TO_DEVICE, 1, l->iov,
				  &l->n, &l->map),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	KUNIT_EXPECT_EQ(test, MAP(s->ia, NULL, l->sgl, 1, DMA_TO_DEVICE, 1, l->iov,
				  &l->n, &l->map),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ));
	KUNIT_EXPECT_EQ(test, MAP(s->ia, other->pz, l->sgl, 1, DMA_TO_DEVICE, 1,
				  l->iov, &l->n, &l->map),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ));
	REFUSED(ARG3, s->ia, s->pz, NULL, 1, DMA_TO_DEVICE, 1, l->iov, &l->n, &l->map);
	REFUSED(ARG4, s->ia, s->pz, l->sgl, 0, DMA_TO_DEVICE, 1, l->iov, &l->n,
		&l->map);
	REFUSED(ARG4, s->ia, s->pz, l->sgl, -1, DMA_TO_DEVICE, 1, l->iov, &l->n,
		&l->map);
	REFUSED(ARG4, s->ia, s->pz, l->sgl, PIECES + 1, DMA_TO_DEVICE, PIECES + 1,
		l->iov, &l->n, &l->map);
	sg_init_table(&empty, 1);
	REFUSED(ARG4, s->ia, s->pz, &empty, 1, DMA_TO_DEVICE, 1, l->iov, &l->n,
		&l->map);
	REFUSED(ARG5, s->ia, s->pz, l->sgl, 1, DMA_NONE, 1, l->iov, &l->n, &l->map);
	REFUSED(ARG6, s->ia, s->pz, l->sgl, 1, DMA_TO_DEVICE, 0, l->iov, &l->n,
		&l->map);
	REFUSED(ARG6, s->ia, s->pz, l->sgl, PIECES, DMA_TO_DEVICE, PIECES - 1, l->iov,
		&l->n, &l->map);
	REFUSED(ARG7, s->ia, s->pz, l->sgl, 1, DMA_TO_DEVICE, 1, NULL, &l->n, &l->map);
	REFUSED(ARG8, s->ia, s->pz, l->sgl, 1, DMA_TO_DEVICE, 1, l->iov, NULL,
		&l->map);
	REFUSED(ARG9, s->ia, s->pz, l->sgl, 1, DMA_TO_DEVICE, 1, l->iov, &l->n, NULL);
	/* No refused call has left anything behind. */
	KD_EXPECT_OK(test, dat_ep_free(s->ep));
	s->ep = NULL;
}

/* The triplets of a mapping are checked as those of an LMR are. */
static void L8_segments_are_checked(struct kunit *test)
{
	struct mem_pair c = mem_make_pair(test, NULL);
	struct list *l = make_list(test), *second = make_list(test);
	DAT_RMR_TRIPLET remote = kd_remote(c.p->buf, 0, LIST_LEN);
	DAT_LMR_TRIPLET iov[2];
	DAT_PZ_HANDLE pz = c.a->pz;

	KD_ASSERT_OK(test, list_map(c.a, l, DMA_TO_DEVICE));
	KD_ASSERT_OK(test, list_map(c.a, second, DMA_TO_DEVICE));
#define TRY(n) dat_ep_post_rdma_write(c.a->ep, n, iov, kd_cookie(WORK), &remote, 0)
	iov[0] = l->iov[0];
	iov[0].segment_length++;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, TRY(1));
	iov[0] = l->iov[0];
	iov[0].virtual_address--;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, TRY(1));
	iov[0] = l->iov[0];
	iov[1] = second->iov[0];
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, TRY(2));
	iov[1].lmr_context ^= 1U << 31;
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, TRY(2));
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_rdma_read(c.a->ep, 1, l->iov, kd_cookie(WORK),
					    &(DAT_RMR_TRIPLET){
						remote.virtual_address, PIECE_LEN,
						remote.rmr_context }, 0));
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
		      dat_ep_post_recv(c.a->ep, 1, l->iov, kd_cookie(WORK), 0));
	KD_EXPECT_OK(test, kdat_sg_unmap(second->map));
	iov[0] = second->iov[0];
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, TRY(1));

	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &c.a->pz));
	KD_ASSERT_OK(test, list_map(c.a, second, DMA_TO_DEVICE));
	swap(c.a->pz, pz);
	iov[0] = second->iov[0];
	KD_EXPECT_RET(test, DAT_PROTECTION_VIOLATION, TRY(1));
	KD_EXPECT_OK(test, kdat_sg_unmap(second->map));
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
	kd_expect_no_event(test, c.a->req_evd);
}

/* A mapping is no LMR, and a handle is good for one unmapping. */
static void L8_handles(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct list *l = make_list(test);
	KDAT_SG_HANDLE first;
	DAT_HANDLE_TYPE type;

	kd_setup(s, NULL);
	KD_ASSERT_OK(test, list_map(s, l, DMA_TO_DEVICE));
	first = l->map;
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_get_handle_type(first, &type));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_lmr_free((DAT_LMR_HANDLE)first));
	KD_EXPECT_OK(test, kdat_sg_unmap(first));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_sg_unmap(first));
	/* The object is used again, under another handle. */
	KD_ASSERT_OK(test, list_map(s, l, DMA_TO_DEVICE));
	KUNIT_EXPECT_PTR_NE(test, (void *)first, (void *)l->map);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_sg_unmap(first));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_sg_unmap(NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      kdat_sg_unmap((KDAT_SG_HANDLE)(void *)s->pz));
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
}

/* ---- Lives ---------------------------------------------------------------------- */

/* A PZ goes when nothing is mapped in it, whatever it keeps in store. */
static void L8_pz_outlives_mappings(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct list **l = kunit_kcalloc(test, MANY, sizeof(*l), GFP_KERNEL);
	DAT_PZ_HANDLE pz;
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, l);
	kd_setup(s, NULL);
	pz = s->pz;
	KD_ASSERT_OK(test, dat_pz_create(s->ia, &s->pz));
	swap(pz, s->pz);
	for (i = 0; i < MANY; i++)
		l[i] = make_list(test);
	swap(pz, s->pz);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++)
			KD_ASSERT_OK(test, list_map(s, l[i], DMA_TO_DEVICE));
		for (i = 0; i < MANY - 1; i++)
			KD_ASSERT_OK(test, kdat_sg_unmap(l[i]->map));
		KD_EXPECT_RET(test, DAT_INVALID_STATE, dat_pz_free(s->pz));
		KD_ASSERT_OK(test, kdat_sg_unmap(l[MANY - 1]->map));
	}
	swap(pz, s->pz);
	KD_EXPECT_OK(test, dat_pz_free(pz));
}

/* An abrupt close unmaps what is left; the suite's leak check sees the rest. */
static void L8_left_behind(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	struct list *l = make_list(test), *second = make_list(test);
	KDAT_SG_HANDLE map;

	kd_setup(s, NULL);
	KD_ASSERT_OK(test, list_map(s, l, DMA_TO_DEVICE));
	KD_ASSERT_OK(test, list_map(s, second, DMA_FROM_DEVICE));
	KD_ASSERT_OK(test, kdat_sg_unmap(second->map));
	map = l->map;
	KD_EXPECT_RET(test, DAT_INVALID_STATE,
		      dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
	kd_close(s);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_sg_unmap(map));
}

/* ---- Contexts ------------------------------------------------------------------- */

struct hard {
	struct kd_side *s;
	struct list *l;
	DAT_RETURN map;
	DAT_RETURN unmap;
};

static void hard_run(void *data)
{
	struct hard *h = data;

	h->map = list_map(h->s, h->l, DMA_BIDIRECTIONAL);
	h->unmap = kdat_sg_unmap(h->l->map);
}

static void L8_C1_in_a_hard_interrupt(struct kunit *test)
{
	struct hard h = { .s = kd_open_param(test), .l = make_list(test) };

	kd_setup(h.s, NULL);
	kd_call_in_interrupt(test, hard_run, &h);
	KD_EXPECT_OK(test, h.map);
	KD_EXPECT_OK(test, h.unmap);
}

static struct kunit_case sg_cases[] = {
	KUNIT_CASE_PARAM(L8_write_from_pieces, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_read_into_pieces, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_parts_and_lmr_in_one_send, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_pieces_that_adjoin, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_unmap_while_posted, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_unmap_polls, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_refused_post_is_not_posted, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_map_arguments, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_segments_are_checked, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_handles, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_pz_outlives_mappings, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_left_behind, kd_gen_ia),
	KUNIT_CASE_PARAM(L8_C1_in_a_hard_interrupt, kd_gen_ia),
	{}
};

static struct kunit_suite sg_suite = {
	.name = "kdapl-sg",
	.test_cases = sg_cases,
};

/* ---- Devices that leave ---------------------------------------------------------- */

static void L8_device_leaves(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	struct list *l = make_list(test), *second = make_list(test);

	kd_setup(s, NULL);
	KD_ASSERT_OK(test, list_map(s, l, DMA_TO_DEVICE));
	kd_unplug(test);
	KUNIT_EXPECT_EQ(test, list_map(s, second, DMA_TO_DEVICE),
			DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE));
	KD_EXPECT_OK(test, kdat_sg_unmap(l->map));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_sg_unmap(l->map));
}

static struct kunit_case sg_device_cases[] = {
	KUNIT_CASE_PARAM(L8_device_leaves, kd_gen_second),
	{}
};

static struct kunit_suite sg_device_suite = {
	.name = "kdapl-sg-device",
	.init = kd_plug_init,
	.test_cases = sg_device_cases,
};

kunit_test_suites(&sg_suite, &sg_device_suite);

MODULE_DESCRIPTION("KUnit suites of kdapl.ko: mappings of scatterlists");
MODULE_LICENSE("Dual BSD/GPL");
