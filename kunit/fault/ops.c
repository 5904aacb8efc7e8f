// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_fault.ko: the n-th operation of a device fails, see ops.h.
 *
 * The operations of the live device are replaced, except those that ib_core
 * does not allow to fail (destroying) and polling and arming a completion
 * queue, whose errors could be reported to nobody. Operations of rdma_cm on its
 * own queue pairs do not count.
 */
#include <linux/atomic.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <rdma/iw_cm.h>
#include <compat_probe.h>
#include "device.h"
#include "ops.h"

/* ---- Device operations --------------------------------------------------- */

/*
 * @left: operations until the one that fails; 0: none fails
 * @err: what that operation returns
 * @only: count the operations of this thread only, unless NULL
 * @others: count those of all other threads
 */
static struct {
	struct kd_hook device;
	atomic_t left;
	int err;
	struct task_struct *only;
	struct task_struct *others;
} fault;

void kdf_fail_operation(unsigned int nth, int err, struct task_struct *only)
{
	fault.err = err;
	fault.only = only;
	fault.others = NULL;
	atomic_set(&fault.left, nth);
}
EXPORT_SYMBOL_GPL(kdf_fail_operation);

/* Of what goes on in this thread nothing fails. */
void kdf_fail_operation_of_others(unsigned int nth, int err)
{
	fault.err = err;
	fault.only = NULL;
	fault.others = current;
	atomic_set(&fault.left, nth);
}
EXPORT_SYMBOL_GPL(kdf_fail_operation_of_others);

unsigned int kdf_operations_left(void)
{
	return atomic_xchg(&fault.left, 0);
}
EXPORT_SYMBOL_GPL(kdf_operations_left);

/* Return whether the operation has failed. For kd_wait_until(). */
bool kdf_no_operation_left(void *unused)
{
	return !atomic_read(&fault.left);
}
EXPORT_SYMBOL_GPL(kdf_no_operation_left);

static bool operation_fails(void)
{
	if (fault.only && (fault.only != current || !in_task()))
		return false;
	if (fault.others == current && in_task())
		return false;
	return atomic_dec_if_positive(&fault.left) == 0;
}

#define REAL	(fault.device.real)

#define FAULTY(op, params, args)					\
static int faulty_##op params						\
{									\
	return operation_fails() ? fault.err : REAL.op args;		\
}

/* rdma_cm's own queue pairs are not of type RC. */
#define FAULTY_RC(op, params, args)					\
static int faulty_##op params						\
{									\
	return qp->qp_type == IB_QPT_RC && operation_fails() ?		\
		fault.err : REAL.op args;				\
}

FAULTY(alloc_pd, (struct ib_pd *pd, struct ib_udata *udata), (pd, udata))
FAULTY(create_cq, (struct ib_cq *cq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs), (cq, attr, attrs))
#ifdef KDAPL_HAVE_RESIZE_CQ
FAULTY(resize_cq, (struct ib_cq *cq, int cqe,
		   struct ib_udata *udata), (cq, cqe, udata))
#endif
FAULTY(create_srq, (struct ib_srq *srq, struct ib_srq_init_attr *attr,
		    struct ib_udata *udata), (srq, attr, udata))
FAULTY(modify_srq, (struct ib_srq *srq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask,
		    struct ib_udata *udata), (srq, attr, mask, udata))
FAULTY(post_srq_recv, (struct ib_srq *srq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad), (srq, wr, bad))
FAULTY_RC(create_qp, (struct ib_qp *qp, struct ib_qp_init_attr *attr,
		      struct ib_udata *udata), (qp, attr, udata))
FAULTY_RC(modify_qp, (struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata), (qp, attr, mask, udata))
FAULTY_RC(post_send, (struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad), (qp, wr, bad))
FAULTY_RC(post_recv, (struct ib_qp *qp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad), (qp, wr, bad))
FAULTY(map_mr_sg, (struct ib_mr *mr, struct scatterlist *sg, int n,
		   unsigned int *offset), (mr, sg, n, offset))
FAULTY(query_port, (struct ib_device *dev, u32 port,
		    struct ib_port_attr *attr), (dev, port, attr))
FAULTY(iw_create_listen, (struct iw_cm_id *id, int backlog), (id, backlog))

/*
 * Outside of a call a failure would be a lost packet, which the CM sends again
 * later: let only calls fail.
 */
static int faulty_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			    struct ib_udata *udata)
{
	return fault.only && operation_fails() ?
		fault.err : REAL.create_ah(ah, attr, udata);
}

static struct ib_mr *faulty_get_dma_mr(struct ib_pd *pd, int access)
{
	return operation_fails() ? ERR_PTR(fault.err) :
				   REAL.get_dma_mr(pd, access);
}

static struct ib_mr *faulty_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				     u32 max)
{
	unsigned int left;
	struct ib_mr *mr;

	if (operation_fails())
		return ERR_PTR(fault.err);
	/* siw leaks memory if an allocation in it fails half way. */
	left = kdf_allocations_left();
	mr = REAL.alloc_mr(pd, type, max);
	kdf_fail_allocation(left);
	return mr;
}

/*
 * Let no allocation in siw fail: after TCP has connected it would close at
 * once, which the siw at the other end takes for the end of its listener.
 */
static int faulty_iw_connect(struct iw_cm_id *id,
			     struct iw_cm_conn_param *param)
{
	unsigned int left;
	int err;

	if (operation_fails())
		return fault.err;
	left = kdf_allocations_left();
	err = REAL.iw_connect(id, param);
	kdf_fail_allocation(left);
	return err;
}

/*
 * Drop the connection, as a driver does that cannot accept. Let no allocation
 * in siw fail: it would free a queue of the QP twice.
 */
static int faulty_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	unsigned int left;
	int err;

	if (operation_fails()) {
		REAL.iw_reject(id, NULL, 0);
		return fault.err;
	}
	left = kdf_allocations_left();
	err = REAL.iw_accept(id, param);
	kdf_fail_allocation(left);
	return err;
}

static int faulty_iw_reject(struct iw_cm_id *id, const void *data, u8 len)
{
	bool fails = operation_fails();
	int err = REAL.iw_reject(id, data, len);

	return fails ? fault.err : err;
}

#define OPERATION(op)	{ offsetof(struct ib_device, ops.op), faulty_##op }

static const struct {
	size_t offset;
	void *faulty;
} faulty_operations[] = {
	OPERATION(alloc_pd),
	OPERATION(get_dma_mr),
	OPERATION(alloc_mr),
	OPERATION(map_mr_sg),
	OPERATION(create_cq),
#ifdef KDAPL_HAVE_RESIZE_CQ
	OPERATION(resize_cq),
#endif
	OPERATION(create_srq),
	OPERATION(modify_srq),
	OPERATION(post_srq_recv),
	OPERATION(create_qp),
	OPERATION(modify_qp),
	OPERATION(post_send),
	OPERATION(post_recv),
	OPERATION(query_port),
	OPERATION(create_ah),
	OPERATION(iw_connect),
	OPERATION(iw_accept),
	OPERATION(iw_reject),
	OPERATION(iw_create_listen),
};

/* Replace all operations that the device has, until the case ends. */
void kdf_replace_operations(struct kunit *test, const char *ia)
{
	void *dev = kd_hook(test, ia, &fault.device);
	void **slot;
	int i;

	kdf_operations_left();
	for (i = 0; i < ARRAY_SIZE(faulty_operations); i++) {
		slot = dev + faulty_operations[i].offset;
		if (*slot)
			*slot = faulty_operations[i].faulty;
	}
}
EXPORT_SYMBOL_GPL(kdf_replace_operations);

/* ---- What the device has ------------------------------------------------- */

void kdf_count_holdings(struct holdings *have)
{
	int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		have->n[i] = rdma_restrack_count(fault.device.dev, i, true);
}
EXPORT_SYMBOL_GPL(kdf_count_holdings);

/*
 * Some of the ids in @before may have outlived their connections until the peer has
 * answered, so there may be fewer.
 */
static bool is_as_before(const struct holdings *now, const struct holdings *before,
			 int kind)
{
	return now->n[kind] == before->n[kind] ||
	       (kind == RDMA_RESTRACK_CM_ID && now->n[kind] < before->n[kind]);
}

static bool holdings_are(void *data)
{
	struct holdings now;
	int i;

	kdf_count_holdings(&now);
	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		if (!is_as_before(&now, data, i))
			return false;
	return true;
}

/*
 * Expect that the device has as many objects as @before, perhaps after work
 * items have destroyed some.
 */
void kdf_expect_holdings(struct kunit *test, struct holdings *before,
			 const char *what)
{
	struct holdings now;
	int i;

	if (kd_wait_until(holdings_are, before, KD_TIMEOUT_MS))
		return;
	kdf_count_holdings(&now);
	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		KUNIT_EXPECT_TRUE_MSG(test, is_as_before(&now, before, i),
				      "%s: kind %d: %d, not %d", what, i, now.n[i],
				      before->n[i]);
}
EXPORT_SYMBOL_GPL(kdf_expect_holdings);
