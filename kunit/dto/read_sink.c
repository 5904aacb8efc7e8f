// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sinks of RDMA Reads on iWARP adapters, for one of which siw stands in.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <dat/kdat_linux.h>
#include "inside.h"
#include "probe.h"
#include "sink_adapter.h"

#define PIECES	64			/* of 512 bytes */
#define RING	32			/* Reads until an entry of a queue is used again */

/* ---- Sinks ------------------------------------------------------------------- */

static void read_into(struct mem_pair *c, DAT_LMR_TRIPLET seg,
		      DAT_RMR_TRIPLET from)
{
	DAT_EVENT event;

	KD_ASSERT_OK(c->test, dat_ep_post_rdma_read(c->p->ep, 1, &seg,
						    kd_cookie(4), &from, 0));
	kd_expect_dto(c->test, c->p->req_evd, 4, DAT_DTO_SUCCESS, &event);
	KUNIT_EXPECT_EQ(c->test, event.event_data.dto_completion_event_data
			.transfered_length, from.segment_length);
	KUNIT_EXPECT_EQ(c->test, (int)event.event_data
			.dto_completion_event_data.operation,
			(int)DAT_DTO_RDMA_READ);
}

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/*
 * Read into memory in one piece, in pieces, and open to the peer: all of it and
 * a part.
 */
static void read_into_any_lmr(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct kd_buf *bufs[] = {
		kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL),
		kd_buf_alloc_priv(c.p, KD_BUF_LEN, true, LOCAL),
		c.p->buf,
	};
	struct kd_buf *buf;
	u8 *va;
	int i;

	for (i = 0; i < ARRAY_SIZE(bufs); i++) {
		buf = bufs[i];
		va = buf->va;
		kd_fill(c.a->buf->va, KD_BUF_LEN, i);
		read_into(&c, kd_seg(buf, 0, KD_BUF_LEN),
			  kd_remote(c.a->buf, 0, KD_BUF_LEN));
		KUNIT_EXPECT_TRUE(test, kd_is_filled(va, KD_BUF_LEN, i));

		memset(va, 0x5a, KD_BUF_LEN);
		kd_fill(c.a->buf->va, 10000, i + 100);
		read_into(&c, kd_seg(buf, 4095, 20000),
			  kd_remote(c.a->buf, 0, 10000));
		KUNIT_EXPECT_TRUE(test, kd_is_filled(va + 4095, 10000,
						     i + 100));
		KUNIT_EXPECT_EQ(test, va[4094], 0x5a);
		KUNIT_EXPECT_EQ(test, va[14095], 0x5a);
		expect_reads(test, 2);
		/*
		 * Read 0 bytes. With two CPUs the peer's siw may still send the
		 * answer before, and then gives this answer the same length
		 * (siw_activate_tx()).
		 */
		if (num_online_cpus() > 1)
			continue;
		read_into(&c, kd_seg(buf, 0, 0), kd_remote(c.a->buf, 0, 0));
		expect_reads(test, 1);
	}
}

/* Read max_rdma_size bytes into memory that starts inside a page. */
static void read_of_max_rdma_size(struct kunit *test)
{
	struct mem_pair c;
	struct kd_buf *from, *to;
	DAT_EP_ATTR ep = kd_ep_attr();
	struct kd_side *side;
	DAT_IA_ATTR attr;
	size_t len;

	make_adapter(test);
	side = kd_open_param(test);
	KD_ASSERT_OK(test, dat_ia_query(side->ia, NULL, DAT_IA_FIELD_ALL, &attr,
					0, NULL));
	len = attr.max_rdma_size;
	KUNIT_ASSERT_LT(test, len, (size_t)SZ_4M);
	ep.max_rdma_size = len;
	c = mem_make_pair(test, &ep);
	from = kd_buf_valloc(c.a, len);
	to = kd_buf_alloc_priv(c.p, len + PAGE_SIZE, false, LOCAL);
	kd_fill(from->va, len, 3);
	read_into(&c, kd_seg(to, PAGE_SIZE - 1, len), kd_remote(from, 0, len));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(to->va + PAGE_SIZE - 1, len, 3));
	expect_reads(test, 1);
}

/* Read into more pieces than the memory has pages. */
static void read_into_small_pieces(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	DAT_LMR_TRIPLET seg = { .segment_length = PIECES * 512 };
	DAT_REGION_DESCRIPTION desc;
	struct scatterlist *sg;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	int i;

	sg = kunit_kcalloc(test, PIECES, sizeof(*sg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, sg);
	sg_init_table(sg, PIECES);
	for (i = 0; i < PIECES; i++)
		sg_set_buf(&sg[i], c.p->buf->va + i * 512, 512);
	desc.for_platform = sg;
	KD_ASSERT_OK(test, dat_lmr_kcreate(c.p->ia, DAT_MEM_TYPE_PLATFORM, desc,
					   PIECES * 512, c.p->pz, LOCAL,
					   DAT_VA_TYPE_ZB,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
					   &seg.lmr_context, &rkey, NULL, NULL));
	kd_fill(c.a->buf->va, PIECES * 512, 1);
	read_into(&c, seg, kd_remote(c.a->buf, 0, PIECES * 512));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va, PIECES * 512, 1));
	expect_reads(test, 1);
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

/*
 * Read into memory that a work request has registered, and into the reserved
 * LMR.
 */
static void read_into_fmr_and_reserved(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	DAT_PADDR page = virt_to_phys(c.p->buf->va) & PAGE_MASK;
	DAT_REGION_DESCRIPTION desc = { .for_physical = &page };
	u8 *va = phys_to_virt(page);
	DAT_LMR_TRIPLET seg = { .virtual_address = 10, .segment_length = 100 };
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	u64 dma;

	KD_ASSERT_OK(test, dat_lmr_allocate(c.p->ia, c.p->pz, 1,
					    DAT_LMR_SCOPE_PZ, &lmr));
	KD_ASSERT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, desc, 1, LOCAL,
				       DAT_VA_TYPE_ZB, c.p->ep, kd_cookie(1), 0,
				       &seg.lmr_context, &rkey));
	kd_expect_dto(test, c.p->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	kd_fill(c.a->buf->va, KD_BUF_LEN, 1);
	read_into(&c, seg, kd_remote(c.a->buf, 0, 100));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(va + 10, 100, 1));

	KD_ASSERT_OK(test, dat_ia_reserved_lmr(c.p->ia, &lmr,
					       &seg.lmr_context));
	/* It is addressed as the device does. */
	dma = ib_dma_map_single(adapter.device.dev, va, PAGE_SIZE, DMA_FROM_DEVICE);
	KUNIT_ASSERT_FALSE(test, ib_dma_mapping_error(adapter.device.dev, dma));
	seg.virtual_address = dma + 500;
	read_into(&c, seg, kd_remote(c.a->buf, 0, 100));
	ib_dma_unmap_single(adapter.device.dev, dma, PAGE_SIZE, DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(va + 500, 100, 1));
	expect_reads(test, 2);
}

/*
 * The LMR is bound anew when a Read has been checked, up to the lock of its queue: that
 * memory may be none that the peer's answer may be written to.
 */
static void L1_sink_is_bound_anew(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	DAT_PADDR page = virt_to_phys(c.p->buf->va) & PAGE_MASK;
	DAT_REGION_DESCRIPTION desc = { .for_physical = &page };
	DAT_LMR_TRIPLET seg = { .segment_length = 100 };
	DAT_RMR_TRIPLET from = kd_remote(c.a->buf, 0, 100);
	struct kdapl_lmr *lmr;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE handle;
	DAT_RETURN ret;

	KD_ASSERT_OK(test, dat_lmr_allocate(c.p->ia, c.p->pz, 1, DAT_LMR_SCOPE_PZ, &handle));
	KD_ASSERT_OK(test, dat_lmr_fmr(handle, DAT_MEM_TYPE_PHYSICAL, desc, 1, LOCAL,
				       DAT_VA_TYPE_ZB, c.p->ep, kd_cookie(1), 0,
				       &seg.lmr_context, &rkey));
	kd_expect_dto(test, c.p->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	lmr = kd_inside(handle, DAT_HANDLE_TYPE_LMR);
	kd_at_lock(test, KD_TAKING, "&ep->sq.lock", 1, kd_bind_anew, lmr);
	ret = dat_ep_post_rdma_read(c.p->ep, 1, &seg, kd_cookie(4), &from, 0);
	KUNIT_EXPECT_EQ(test, kd_left_lock(), 1);
	KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION, ret);
	WRITE_ONCE(lmr->context, seg.lmr_context);
	read_into(&c, seg, from);
	expect_reads(test, 1);
}

/* An RMR without remote rights can be a sink as well. */
static void L5_read_to_rmr(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8), swapped;
	DAT_RMR_TRIPLET sink, from;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT context;

	swapped = (struct mem_pair) { test, c.p, c.a };
	rmr = rmr_make(&swapped);
	context = rmr_bind_ok(&swapped, rmr, RMR_PART, LOCAL, DAT_VA_TYPE_ZB);
	kd_fill(c.a->buf->va, KD_BUF_LEN, 1);
	memset(c.p->buf->va, 0x5a, KD_BUF_LEN);
	from = kd_remote(c.a->buf, 0, 100);
	sink = mem_remote(20, 100, context);
	KD_ASSERT_OK(test, dat_ep_post_rdma_read_to_rmr(c.p->ep, &sink,
							kd_cookie(4), &from,
							0));
	kd_expect_dto(test, c.p->req_evd, 4, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(c.p->buf->va + RMR_PART + 20, 100, 1));
	KUNIT_EXPECT_EQ(test, ((u8 *)c.p->buf->va)[RMR_PART + 19], 0x5a);
	KUNIT_EXPECT_EQ(test, ((u8 *)c.p->buf->va)[RMR_PART + 120], 0x5a);
	expect_reads(test, 1);
}

/* ---- What the peer learns ------------------------------------------------------ */

/* The key of the sink is invalid when the Read has completed. */
static void L2_sink_is_closed(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct mem_pair back = { test, c.p, c.a };
	struct kd_buf *buf = kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL);
	int i;

	for (i = 0; i < 3; i++) {
		read_into(&c, kd_seg(buf, 64, 100),
			  kd_remote(c.a->buf, 0, 100));
		mem_expect_refused(&back, mem_remote(adapter.last_addr, 8,
						     adapter.last), true,
				   "a sink of the past");
	}
}

/*
 * A Read that fails leaves its sink open, so that another peer of the PZ could
 * write there. The Read is reported only after the sink is closed.
 */
static void L2_sink_of_a_failed_read(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct kd_buf *buf = kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL);
	DAT_RMR_TRIPLET from = mem_remote(0, 64, 0x1234500), to;
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, 64);
	struct kd_side *other = kd_open_param(test);
	DAT_EP_HANDLE ep = c.p->ep;
	DAT_EP_ATTR attr = kd_ep_attr();
	unsigned long left;
	DAT_EVENT event;

	attr.max_rdma_size = KD_BUF_LEN;
	kd_setup(other, &(struct kd_opts) { .attr = &attr });
	c.p->ep = kd_ep(c.p, &attr);
	kd_connect_pair(other, c.p);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, adapter_hurries,
							   NULL));
	WRITE_ONCE(adapter.slow, true);

	KD_ASSERT_OK(test, dat_ep_post_rdma_read(ep, 1, &seg, kd_cookie(1), &from,
						 0));
	KD_ASSERT_OK(test, dat_ep_post_send(ep, 0, NULL, kd_cookie(2), 0));
	to = mem_remote(adapter.last_addr, 64, adapter.last);
	left = wait_for_completion_timeout(&adapter.waits,
					   msecs_to_jiffies(KD_TIMEOUT_MS));
	KUNIT_ASSERT_GT(test, left, 0UL);
	kd_expect_no_event(test, c.p->req_evd);
	KUNIT_EXPECT_EQ(test, dat_lmr_free(buf->lmr),
			DAT_ERROR(DAT_INVALID_STATE,
				  DAT_INVALID_STATE_LMR_IN_USE));

	kunit_release_action(test, adapter_hurries, NULL);
	KUNIT_ASSERT_TRUE(test, kd_wait_event(c.p->req_evd, &event,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 1ULL, event.event_data.dto_completion_event_data
				    .user_cookie.as_64);
	KUNIT_EXPECT_NE(test, (int)DAT_DTO_SUCCESS, (int)event.event_data
			.dto_completion_event_data.status);
	/* The first Send may have completed before the connection broke. */
	KUNIT_ASSERT_TRUE(test, kd_wait_event(c.p->req_evd, &event,
					      KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, 2ULL, event.event_data.dto_completion_event_data
				    .user_cookie.as_64);
	KD_EXPECT_OK(test, dat_lmr_free(buf->lmr));
	seg = kd_seg(other->buf, 0, 64);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(other->ep, 1, &seg,
						  kd_cookie(3), &to, 0));
	KUNIT_EXPECT_TRUE(test, kd_wait_state(other->ep,
					      DAT_EP_STATE_DISCONNECTED));
}

/*
 * Post a Read that fails, and behind it two Writes of which the first is silent. Return
 * whether the second one was a success: then the first one was, and has no event.
 */
static bool silent_write_behind(struct kunit *test, struct mem_pair *c, struct kd_buf *buf)
{
	DAT_RMR_TRIPLET from = mem_remote(0, 64, 0x1234500);
	DAT_RMR_TRIPLET to = kd_remote(c->a->buf, 0, 64);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, 64);
	DAT_EVENT event;
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
	KDAT_REQUEST r[2];
	int i, events = 0;

	for (i = 0; i < 2; i++)
		r[i] = (KDAT_REQUEST) {
			.operation = DAT_DTO_RDMA_WRITE, .num_segments = 1,
			.local_iov = &seg, .remote_iov = &to,
			.user_cookie = kd_cookie(2 + i),
		};
	r[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(c->p->ep, 1, &seg, kd_cookie(1), &from, 0));
	KD_ASSERT_OK(test, kdat_ep_post_requests(c->p->ep, 2, r));
	do {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(c->p->req_evd, &event, KD_TIMEOUT_MS));
		events++;
	} while (dto->user_cookie.as_64 != 3);
	if (dto->status != DAT_DTO_SUCCESS)
		return false;
	KUNIT_EXPECT_EQ(test, events, 2);
	return true;
}

/* What is behind such a Read waits for it, and is reported as the device has done it. */
static void silent_write_behind_a_failed_read(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct kd_buf *buf = kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL);
	int tries = 50;

	while (!silent_write_behind(test, &c, buf) && --tries)
		mem_reconnect(&c);
	KUNIT_EXPECT_TRUE(test, tries);
}

/* What a peer knows of the sinks that it was asked to fill, by the key's entry. */
struct guess {
	u32 key;
	u64 addr;
};

/*
 * Read until the MRs are used for the second time. Return what a peer would guess of the
 * next sink, which is in the same memory: the same address, and the next key.
 */
static struct guess next_sink(struct mem_pair *c, DAT_LMR_TRIPLET seg)
{
	struct guess seen[RING] = { };
	int n = 0;

	do {
		KUNIT_ASSERT_LT(c->test, n, RING);
		read_into(c, seg, kd_remote(c->a->buf, 0, seg.segment_length));
		seen[n++] = (struct guess) { adapter.last, adapter.last_addr };
	} while (n < 2 || seen[n - 1].key >> 8 != seen[0].key >> 8);
	KUNIT_EXPECT_NE(c->test, seen[n - 1].key, seen[0].key);
	KUNIT_EXPECT_NE_MSG(c->test, seen[n - 1].addr, seen[0].addr,
			    "a sink has its address for the second time");
	seen[1].key = (seen[1].key & ~0xffU) | ((seen[1].key + 1) & 0xff);
	return seen[1];
}

/*
 * Another peer of the PZ, which knows what the sinks of the past were, writes to the
 * one that is open. It does not hit it, and its connection ends.
 */
static void L2_sink_is_not_guessed(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct kd_buf *buf = kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL);
	DAT_RMR_TRIPLET from = mem_remote(0, 64, 0x1234500);
	struct kd_side *other = kd_open_param(test);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, 64);
	DAT_EP_HANDLE ep = c.p->ep;
	DAT_EP_ATTR attr = kd_ep_attr();
	struct guess guess;
	unsigned long left;

	attr.max_rdma_size = KD_BUF_LEN;
	kd_setup(other, &(struct kd_opts) { .attr = &attr });
	guess = next_sink(&c, seg);
	c.p->ep = kd_ep(c.p, &attr);
	kd_connect_pair(other, c.p);
	memset(buf->va, 0x5a, 64);
	memset(other->buf->va, 0xa5, 64);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, adapter_hurries, NULL));
	WRITE_ONCE(adapter.slow, true);
	/* The sink of a Read that fails is open until its MR is freed. */
	KD_ASSERT_OK(test, dat_ep_post_rdma_read(ep, 1, &seg, kd_cookie(1), &from, 0));
	KUNIT_EXPECT_EQ(test, adapter.last >> 8, guess.key >> 8);
	left = wait_for_completion_timeout(&adapter.waits, msecs_to_jiffies(KD_TIMEOUT_MS));
	KUNIT_ASSERT_GT(test, left, 0UL);

	seg = kd_seg(other->buf, 0, 64);
	from = mem_remote(guess.addr, 64, guess.key);
	KD_ASSERT_OK(test, dat_ep_post_rdma_write(other->ep, 1, &seg, kd_cookie(3), &from, 0));
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_state(other->ep, DAT_EP_STATE_DISCONNECTED),
			      "the peer that has guessed goes on");
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(buf->va, 0x5a, 64),
			      "another peer has written into the sink");
	kunit_release_action(test, adapter_hurries, NULL);
}

/* ---- Many -------------------------------------------------------------------- */

static void burst(struct mem_pair *c, struct kd_buf *to, int n)
{
	DAT_COMPLETION_FLAGS flags;
	DAT_RMR_TRIPLET from;
	DAT_LMR_TRIPLET seg;
	int i;

	memset(to->va, 0, KD_BUF_LEN);
	kd_fill(c->a->buf->va, KD_BUF_LEN, n);
	for (i = 0; i < n; i++) {
		seg = kd_seg(to, i * 1000, 1000);
		from = kd_remote(c->a->buf, i * 1000, 1000);
		flags = i % 3 == 1 ? DAT_COMPLETION_SUPPRESS_FLAG :
			i % 3 == 2 ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0;
		KD_ASSERT_OK(c->test,
			     dat_ep_post_rdma_read(c->p->ep, 1, &seg,
						   kd_cookie(i), &from, flags));
	}
	for (i = 0; i < n; i++)
		if (i % 3 != 1)
			kd_expect_dto(c->test, c->p->req_evd, i,
				      DAT_DTO_SUCCESS, NULL);
	/* A request without an event may be the last one. */
	mem_mark(c);
	KUNIT_EXPECT_TRUE(c->test, kd_is_filled(to->va, n * 1000, n));
	expect_reads(c->test, n);
}

/* Post as many Reads as the queue takes, on one connection after another. */
static void queue_full_of_reads(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 9);
	DAT_EP_PARAM param = { };
	struct kd_buf *to;

	to = kd_buf_alloc_priv(c.p, KD_BUF_LEN, true, LOCAL);
	burst(&c, to, 9);
	burst(&c, to, 9);

	KD_ASSERT_OK(test, dat_ep_disconnect(c.p->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.a->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.p->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	param.ep_attr.max_request_dtos = 30;
	KD_ASSERT_OK(test, dat_ep_modify(c.p->ep,
					 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
					 &param));
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	kd_drain(c.a->conn_evd);
	kd_drain(c.p->conn_evd);
	kd_drain(c.a->recv_evd);
	kd_connect_pair(c.p, c.a);
	burst(&c, to, 30);
}

/* Reads that are outstanding when the connection ends are flushed in order. */
static void reads_are_flushed(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	struct kd_buf *buf = kd_buf_alloc_priv(c.p, KD_BUF_LEN, false, LOCAL);
	DAT_RMR_TRIPLET from = mem_remote(0, 8, 0x1234500);
	DAT_LMR_TRIPLET seg = kd_seg(buf, 0, 8);
	DAT_EVENT event;
	int i;

	for (i = 0; i < 4; i++)
		KD_EXPECT_OK(test, dat_ep_post_rdma_read(c.p->ep, 1, &seg,
							 kd_cookie(i), &from,
							 0));
	KUNIT_ASSERT_TRUE(test, kd_wait_state(c.p->ep,
					      DAT_EP_STATE_DISCONNECTED));
	KD_EXPECT_OK(test, dat_ep_post_rdma_read(c.p->ep, 1, &seg, kd_cookie(4),
						 &from, 0));
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_TRUE(test, kd_wait_event(c.p->req_evd, &event,
						      KD_TIMEOUT_MS));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
				.user_cookie.as_64, (u64)i);
		KUNIT_EXPECT_NE(test, (int)event.event_data
				.dto_completion_event_data.status,
				(int)DAT_DTO_SUCCESS);
		KUNIT_EXPECT_EQ(test, 0U, event.event_data
				.dto_completion_event_data.rmr_context);
	}
	mem_reconnect(&c);
	kd_fill(c.a->buf->va, 100, 1);
	read_into(&c, kd_seg(buf, 0, 100), kd_remote(c.a->buf, 0, 100));
	KUNIT_EXPECT_TRUE(test, kd_is_filled(buf->va, 100, 1));
}

/*
 * If MRs cannot be allocated connecting fails, and nothing is left of the
 * attempt.
 */
static void I4_no_mrs(struct kunit *test)
{
	struct mem_pair c = adapter_pair(test, 8);
	u16 port = kd_port();

	kd_disconnect(c.p, c.a);
	kd_drain(c.p->conn_evd);
	kd_drain(c.a->conn_evd);
	KD_ASSERT_OK(test, dat_ep_reset(c.p->ep));
	KD_ASSERT_OK(test, dat_ep_reset(c.a->ep));
	kd_psp(c.a, port, DAT_PSP_CONSUMER_FLAG);
	WRITE_ONCE(adapter.no_mrs, true);
	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES,
		      dat_ep_connect(c.p->ep, c.a->addr, port,
				     DAT_TIMEOUT_INFINITE, 0, NULL,
				     DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG));
	KUNIT_EXPECT_EQ(test, (int)kd_state(c.p),
			(int)DAT_EP_STATE_UNCONNECTED);
	WRITE_ONCE(adapter.no_mrs, false);
	kd_connect_pair(c.p, c.a);
	read_into(&c, kd_seg(c.p->buf, 0, 100), kd_remote(c.a->buf, 0, 100));
}

static struct kunit_case read_sink_cases[] = {
	KUNIT_CASE_PARAM(read_into_any_lmr, kd_gen_ia),
	KUNIT_CASE_PARAM(read_of_max_rdma_size, kd_gen_ia),
	KUNIT_CASE_PARAM(read_into_small_pieces, kd_gen_ia),
	KUNIT_CASE_PARAM(read_into_fmr_and_reserved, kd_gen_ia),
	KUNIT_CASE_PARAM(L1_sink_is_bound_anew, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_read_to_rmr, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_sink_is_closed, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_sink_of_a_failed_read, kd_gen_ia),
	KUNIT_CASE_PARAM(L2_sink_is_not_guessed, kd_gen_ia),
	KUNIT_CASE_PARAM(silent_write_behind_a_failed_read, kd_gen_ia),
	KUNIT_CASE_PARAM(queue_full_of_reads, kd_gen_ia),
	KUNIT_CASE_PARAM(reads_are_flushed, kd_gen_ia),
	KUNIT_CASE_PARAM(I4_no_mrs, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-read-sink", read_sink_cases, "sinks of RDMA Reads on iWARP adapters");
KDAPL_IMPORT_TEST;
