// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * siw takes any key for the sink of a Read; an adapter needs memory that is registered for
 * remote writing. For the time of a case the driver of siw has another driver_id, and its
 * post_send refuses what an adapter would refuse.
 */
#include "sink_adapter.h"

struct sink_adapter adapter;

static void adapter_opens(const struct ib_reg_wr *reg)
{
	int i;

	if (!(reg->access & IB_ACCESS_REMOTE_WRITE))
		return;
	for (i = 0; i < adapter.nopen; i++)
		if (adapter.open[i].key >> 8 == reg->key >> 8)
			break;
	if (i == SINK_KEYS)
		return;
	adapter.nopen = max(adapter.nopen, i + 1);
	adapter.open[i].key = reg->key;
	adapter.open[i].start = reg->mr->iova;
	adapter.open[i].len = reg->mr->length;
}

static bool adapter_takes(const struct ib_send_wr *wr)
{
	const struct ib_sge *sge = wr->sg_list;
	int i;

	if (!sge->length)
		return true;
	for (i = 0; i < adapter.nopen; i++)
		if (adapter.open[i].key == sge->lkey &&
		    sge->addr - adapter.open[i].start <= adapter.open[i].len &&
		    sge->length <= adapter.open[i].len -
				   (sge->addr - adapter.open[i].start))
			return true;
	return false;
}

static int adapter_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	const struct ib_send_wr *next;
	bool ok = true;
	unsigned long flags;

	spin_lock_irqsave(&adapter.lock, flags);
	for (next = wr; next; next = next->next) {
		if (next->opcode == IB_WR_REG_MR)
			adapter_opens(reg_wr(next));
		if (next->opcode != IB_WR_RDMA_READ &&
		    next->opcode != IB_WR_RDMA_READ_WITH_INV)
			continue;
		adapter.reads++;
		if (next->num_sge != 1 || !adapter_takes(next)) {
			adapter.refused++;
			ok = false;
		}
		adapter.last = next->sg_list[0].lkey;
		adapter.last_addr = next->sg_list[0].addr;
	}
	spin_unlock_irqrestore(&adapter.lock, flags);
	return ok ? adapter.device.real.post_send(qp, wr, bad) : -EINVAL;
}

static struct ib_mr *adapter_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				      u32 pages)
{
	if (READ_ONCE(adapter.no_mrs))
		return ERR_PTR(-ENOMEM);
	return adapter.device.real.alloc_mr(pd, type, pages);
}

static int adapter_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	if (READ_ONCE(adapter.slow)) {
		complete(&adapter.waits);
		wait_for_completion(&adapter.go);
	}
	return adapter.device.real.dereg_mr(mr, udata);
}

void adapter_hurries(void *unused)
{
	WRITE_ONCE(adapter.slow, false);
	complete_all(&adapter.go);
}

void make_adapter(struct kunit *test)
{
	const char *name = *(const char * const *)test->param_value;
	struct ib_device *dev;

	if (!kd_ia_has(name, KD_IWARP | KD_ANY_SINK))
		kunit_skip(test, "not iWARP");
	memset(&adapter, 0, sizeof(adapter));
	spin_lock_init(&adapter.lock);
	init_completion(&adapter.go);
	init_completion(&adapter.waits);
	dev = kd_hook(test, name, &adapter.device);
	dev->ops.post_send = adapter_post_send;
	dev->ops.alloc_mr = adapter_alloc_mr;
	dev->ops.dereg_mr = adapter_dereg_mr;
	dev->ops.driver_id = RDMA_DRIVER_CXGB4;
}

struct mem_pair adapter_pair(struct kunit *test, DAT_COUNT requests)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	make_adapter(test);
	attr.max_rdma_size = KD_BUF_LEN;
	attr.max_request_dtos = requests;
	return mem_make_pair(test, &attr);
}

/* Expect that the adapter has checked @n Reads and refused none. */
void expect_reads(struct kunit *test, int n)
{
	KUNIT_EXPECT_EQ(test, adapter.reads, n);
	KUNIT_EXPECT_EQ(test, adapter.refused, 0);
	adapter.reads = 0;
}
