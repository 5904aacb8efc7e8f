// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two QPs of one device, joined by hand, see raw.h. */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "device.h"
#include "raw.h"

/* ---- Events and completions ---------------------------------------------- */

static void raw_comp(struct ib_cq *cq, void *context)
{
	struct raw_side *side = context;

	atomic_inc(&side->calls);
	if (in_hardirq())
		atomic_inc(&side->in_irq);
	kd_wake();
}

static void raw_event(struct ib_event *event, void *context)
{
	struct raw_side *side = context;

	if (event->event < ARRAY_SIZE(side->events))
		atomic_inc(&side->events[event->event]);
	kd_wake();
}

struct raw_poll {
	struct raw_side *side;
	struct ib_wc *wc;
};

static bool raw_polled(void *data)
{
	struct raw_poll *poll = data;

	return ib_poll_cq(poll->side->cq, 1, poll->wc) == 1;
}

struct ib_wc raw_expect(struct raw_side *side, u64 id, enum ib_wc_status status)
{
	struct kunit *test = side->raw->test;
	struct ib_wc wc = { };
	struct raw_poll poll = { side, &wc };

	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_until(raw_polled, &poll,
						  KD_TIMEOUT_MS),
			      "%pS: no completion of %llu",
			      __builtin_return_address(0), id);
	KUNIT_EXPECT_EQ_MSG(test, wc.wr_id, id, "%pS",
			    __builtin_return_address(0));
	KUNIT_EXPECT_EQ_MSG(test, (int)wc.status, (int)status, "%pS: %llu",
			    __builtin_return_address(0), id);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, side->qp);
	return wc;
}

void raw_expect_none(struct raw_side *side)
{
	struct ib_wc wc = { };
	struct raw_poll poll = { side, &wc };

	KUNIT_EXPECT_FALSE_MSG(side->raw->test,
			       kd_wait_until(raw_polled, &poll, KD_QUIET_MS),
			       "%pS: %llu completed",
			       __builtin_return_address(0), wc.wr_id);
}

struct raw_number {
	struct raw *raw;
	enum kdapl_sim_counter which;
	atomic_t *events;
	long n;
};

static bool raw_has_count(void *data)
{
	struct raw_number *want = data;

	return raw_count(want->raw, want->which) == want->n;
}

void raw_wait_count(struct raw *raw, enum kdapl_sim_counter which, long n)
{
	struct raw_number want = { .raw = raw, .which = which, .n = n };

	KUNIT_ASSERT_TRUE_MSG(raw->test, kd_wait_until(raw_has_count, &want,
						       KD_TIMEOUT_MS),
			      "counter %d is %ld", which, raw_count(raw, which));
}

static bool raw_has_events(void *data)
{
	struct raw_number *want = data;

	return atomic_read(want->events) >= want->n;
}

void raw_wait_event(struct raw_side *side, enum ib_event_type type, int n)
{
	struct raw_number want = { .events = &side->events[type], .n = n };

	KUNIT_ASSERT_TRUE_MSG(side->raw->test,
			      kd_wait_until(raw_has_events, &want, KD_TIMEOUT_MS),
			      "no event %d", type);
}

/* ---- Posting ------------------------------------------------------------- */

static struct ib_sge raw_sge(struct raw_side *side, u32 off, u32 len)
{
	return (struct ib_sge) {
		.addr = side->dma + off,
		.length = len,
		.lkey = side->raw->pd->local_dma_lkey,
	};
}

int raw_post_recv(struct raw_side *side, u64 id, u32 off, u32 len)
{
	struct ib_sge sge = raw_sge(side, off, len);
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return side->srq ? ib_post_srq_recv(side->srq, &wr, NULL) :
			   ib_post_recv(side->qp, &wr, NULL);
}

int raw_post_send(struct raw_side *side, enum ib_wr_opcode opcode, int flags,
		  u64 id, u32 off, u32 len, u64 remote, u32 rkey)
{
	struct ib_sge sge = raw_sge(side, off, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = len ? 1 : 0,
			.opcode = opcode,
			.send_flags = flags,
			.ex.invalidate_rkey = rkey,
		},
		.remote_addr = remote,
		.rkey = rkey,
	};

	return ib_post_send(side->qp, &wr.wr, NULL);
}

struct ib_mr *raw_mr(struct raw_side *side, u32 len, int access)
{
	struct kunit *test = side->raw->test;
	struct scatterlist sg;
	struct ib_mr *mr;

	mr = ib_alloc_mr(side->raw->pd, IB_MR_TYPE_MEM_REG, RAW_LEN >> PAGE_SHIFT);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	sg_init_one(&sg, side->buf, len);
	sg_dma_address(&sg) = side->dma;
	sg_dma_len(&sg) = len;
	KUNIT_ASSERT_EQ(test, 1, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE));
	if (access) {
		KUNIT_ASSERT_EQ(test, 0, raw_reg(side, mr, 9000, access));
		raw_expect(side, 9000, IB_WC_SUCCESS);
	}
	return mr;
}

int raw_reg(struct raw_side *side, struct ib_mr *mr, u64 id, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return ib_post_send(side->qp, &wr.wr, NULL);
}

void raw_mr_free(struct ib_mr *mr)
{
	ib_dereg_mr(mr);
}

/* ---- Making -------------------------------------------------------------- */

void raw_set(struct raw *raw, enum kdapl_sim_switch which, u32 value)
{
	kdapl_sim_set(raw->dev, which, value);
}

long raw_count(struct raw *raw, enum kdapl_sim_counter which)
{
	return kdapl_sim_count(raw->dev, which);
}

static void raw_make(struct raw_side *side, struct raw *raw, bool srq, u32 cqe)
{
	struct ib_cq_init_attr cq = { .cqe = cqe };
	struct ib_srq_init_attr init = {
		.event_handler = raw_event,
		.srq_context = side,
		.attr = { .max_wr = RAW_DEPTH, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_qp_init_attr qp = {
		.event_handler = raw_event,
		.qp_context = side,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = RAW_DEPTH,
			.max_recv_wr = srq ? 0 : RAW_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = srq ? 0 : 1,
		},
	};
	struct kunit *test = raw->test;

	side->raw = raw;
	side->buf = kzalloc(RAW_LEN, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, side->buf);
	side->dma = ib_dma_map_single(raw->dev, side->buf, RAW_LEN,
				      DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_FALSE(test, ib_dma_mapping_error(raw->dev, side->dma));
	side->cq = ib_create_cq(raw->dev, raw_comp, raw_event, side, &cq);
	KUNIT_ASSERT_FALSE(test, IS_ERR(side->cq));
	qp.send_cq = side->cq;
	qp.recv_cq = side->cq;
	if (srq) {
		side->srq = ib_create_srq(raw->pd, &init);
		KUNIT_ASSERT_FALSE(test, IS_ERR(side->srq));
		qp.srq = side->srq;
	}
	side->qp = ib_create_qp(raw->pd, &qp);
	KUNIT_ASSERT_FALSE(test, IS_ERR(side->qp));
}

static int raw_gid_index(struct raw *raw)
{
	const struct ib_gid_attr *gid;
	int i;

	for (i = 0; i < raw->dev->port_data[1].immutable.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(raw->dev, 1, i);
		if (IS_ERR(gid))
			continue;
		rdma_put_gid_attr(gid);
		return i;
	}
	return -ENOENT;
}

static void raw_join(struct raw_side *side, struct raw_side *to, u8 rnr_retry)
{
	struct kunit *test = side->raw->test;
	int gid = raw_gid_index(side->raw);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		.path_mtu = IB_MTU_4096,
		.dest_qp_num = to->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = rnr_retry,
	};

	KUNIT_ASSERT_GE(test, gid, 0);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(side->qp, &attr, IB_QP_STATE |
					      IB_QP_PKEY_INDEX | IB_QP_PORT |
					      IB_QP_ACCESS_FLAGS));
	attr.qp_state = IB_QPS_RTR;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, gid, 64, 0);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(side->qp, &attr, IB_QP_STATE |
					      IB_QP_AV | IB_QP_PATH_MTU |
					      IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					      IB_QP_MAX_DEST_RD_ATOMIC |
					      IB_QP_MIN_RNR_TIMER));
	attr.qp_state = IB_QPS_RTS;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(side->qp, &attr, IB_QP_STATE |
					      IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					      IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					      IB_QP_MAX_QP_RD_ATOMIC));
}

void raw_to_err(struct raw_side *side)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_ASSERT_EQ(side->raw->test, 0,
			ib_modify_qp(side->qp, &attr, IB_QP_STATE));
}

void raw_destroy_qp(struct raw_side *side)
{
	if (!IS_ERR_OR_NULL(side->qp))
		ib_destroy_qp(side->qp);
	side->qp = NULL;
}

static void raw_free(struct raw_side *side)
{
	raw_destroy_qp(side);
	if (!IS_ERR_OR_NULL(side->srq))
		ib_destroy_srq(side->srq);
	if (!IS_ERR_OR_NULL(side->cq))
		ib_destroy_cq(side->cq);
	if (side->buf)
		ib_dma_unmap_single(side->raw->dev, side->dma, RAW_LEN,
				    DMA_BIDIRECTIONAL);
	kfree(side->buf);
}

static void raw_close(void *data)
{
	struct raw *raw = data;

	kdapl_sim_reset(raw->dev);
	raw_free(&raw->a);
	raw_free(&raw->b);
	if (!IS_ERR_OR_NULL(raw->pd))
		ib_dealloc_pd(raw->pd);
}

/* Two QPs of sim1 in RTS; all goes when the case ends. */
struct raw *raw_open(struct kunit *test, const struct raw_opts *opts)
{
	u8 rnr = opts->rnr_retry ? opts->rnr_retry & 7 : 7;
	struct raw *raw;

	raw = kunit_kzalloc(test, sizeof(*raw), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, raw);
	raw->test = test;
	raw->dev = kd_find_device("sim1/1");
	if (!raw->dev)
		kunit_skip(test, "there is no sim1");
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, raw_close, raw));
	KUNIT_ASSERT_TRUE(test, kdapl_sim_is(raw->dev));
	raw->pd = ib_alloc_pd(raw->dev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(raw->pd));
	raw_make(&raw->a, raw, false, opts->cqe ?: 64);
	raw_make(&raw->b, raw, opts->srq, opts->cqe ?: 64);
	raw_join(&raw->a, &raw->b, rnr);
	raw_join(&raw->b, &raw->a, rnr);
	return raw;
}
