// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The posting calls for RDMA Read and RDMA Write. They lie above dto.c, since a
 * Read may go to an RMR.
 */
#include "dto.h"
#include "ep.h"
#include "ia.h"
#include "mem.h"
#include "pz.h"

/*
 * Check the remote buffer. A Read fetches all of it; a Write may leave some of
 * it alone, so it passes its own @length.
 */
static DAT_RETURN kdapl_rdma_check(struct kdapl_ep *ep,
				   const DAT_RMR_TRIPLET *remote, u64 length,
				   int arg)
{
	if (!remote || min_t(u64, remote->segment_length, length) >
		       ep->attr.max_rdma_size)
		return DAT_ERROR(DAT_INVALID_PARAMETER, arg);
	return DAT_SUCCESS;
}

/*
 * Post a Read or Write whose segments were checked. @sink is that of a Read
 * which the device wants registered, else NULL.
 */
static DAT_RETURN kdapl_post_rdma(struct kdapl_ep *ep, struct ib_rdma_wr *wr,
				  struct ib_sge *sge,
				  const DAT_LMR_TRIPLET *sink,
				  const DAT_RMR_TRIPLET *remote,
				  DAT_DTO_COOKIE cookie,
				  DAT_COMPLETION_FLAGS flags, int flags_arg)
{
	const bool read = wr->wr.opcode == IB_WR_RDMA_READ;
	DAT_DTOS op = read ? DAT_DTO_RDMA_READ : DAT_DTO_RDMA_WRITE;
	DAT_RETURN ret;

	/* Without a connection the state is the error, not the credits. */
	if (unlikely(read && READ_ONCE(ep->state) == DAT_EP_STATE_CONNECTED &&
		     (!ep->attr.max_rdma_read_out || ep->no_reads)))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				 DAT_RESOURCE_CREDITS);
	ret = kdapl_flags_check(ep, flags, op, flags_arg);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	wr->wr.sg_list = sge;
	wr->remote_addr = remote->virtual_address;
	wr->rkey = remote->rmr_context;
	/*
	 * iWARP answers Reads in order; siw breaks the connection on a fence.
	 */
	if (read && ep->obj.ia->iwarp)
		flags &= ~DAT_COMPLETION_BARRIER_FENCE_FLAG;
	if (unlikely(sink))
		return kdapl_sink_post(ep, wr, sink, cookie, flags);
	return kdapl_post_sq(ep, &wr->wr, cookie, op, flags, NULL);
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle,
				  DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov,
				  DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	struct kdapl_ep *ep;
	DAT_RETURN ret;
	u64 total;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	ret = kdapl_sge_build(ep->pz, ep, num_segments, local_iov,
			      ep->attr.max_rdma_write_iov,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG, sge,
			      &wr.wr.num_sge, &total);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_rdma_check(ep, remote_iov, total, DAT_INVALID_ARG5);
	if (unlikely(ret != DAT_SUCCESS))
		goto out;
	if (unlikely(total > remote_iov->segment_length)) {
		ret = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	ret = kdapl_post_rdma(ep, &wr, sge, NULL, remote_iov, user_cookie,
			      completion_flags, DAT_INVALID_ARG6);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

/*
 * Trim the sink of a Read, which fetches as much as its sink holds, to @length.
 * Over iWARP a Read of no bytes has a sink as well.
 */
static int kdapl_sge_trim(struct kdapl_ep *ep, struct ib_sge *sge, int nsge,
			  u32 length)
{
	const struct kdapl_pz *pz = READ_ONCE(ep->pz);
	int i;

	if (!length && ep->obj.ia->iwarp) {
		memset(sge, 0, sizeof(*sge));
		/*
		 * Without a PZ there is no connection, so the key is not used.
		 */
		sge->lkey = pz ? pz->lkey : 0;
		return 1;
	}
	for (i = 0; i < nsge && length; i++) {
		sge[i].length = min(sge[i].length, length);
		length -= sge[i].length;
	}
	return i;
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle,
				 DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov,
				 DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_READ };
	struct ib_sge sge[KDAPL_MAX_IOV] __uninitialized;
	struct kdapl_ep *ep;
	DAT_RETURN ret;
	u64 total;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	ret = kdapl_sge_build(ep->pz, ep, num_segments, local_iov,
			      ep->attr.max_rdma_read_iov,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, sge,
			      &wr.wr.num_sge, &total);
	if (likely(ret == DAT_SUCCESS))
		ret = kdapl_rdma_check(ep, remote_iov, U64_MAX,
				       DAT_INVALID_ARG5);
	if (unlikely(ret != DAT_SUCCESS))
		goto out;
	if (unlikely(total < remote_iov->segment_length)) {
		ret = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	wr.wr.num_sge = kdapl_sge_trim(ep, sge, wr.wr.num_sge,
				       remote_iov->segment_length);
	ret = kdapl_post_rdma(ep, &wr, sge, remote_iov->segment_length &&
			      kdapl_sink_needed(ep, local_iov) ? local_iov : NULL,
			      remote_iov, user_cookie, completion_flags,
			      DAT_INVALID_ARG6);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle,
					const DAT_RMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags)
{
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_READ };
	DAT_LMR_TRIPLET below;
	struct ib_sge sge;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_find(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (!local_iov) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	ret = kdapl_rdma_check(ep, remote_iov, U64_MAX, DAT_INVALID_ARG4);
	if (ret == DAT_SUCCESS)
		ret = kdapl_rmr_check_sink(ep, local_iov, &below);
	if (ret != DAT_SUCCESS)
		goto out;
	if (local_iov->segment_length < remote_iov->segment_length) {
		ret = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	/* A window is a fast-registered MR, whose two keys are the same. */
	sge.addr = local_iov->virtual_address;
	sge.length = remote_iov->segment_length;
	sge.lkey = local_iov->rmr_context;
	wr.wr.num_sge = 1;
	ret = kdapl_post_rdma(ep, &wr, &sge, sge.length &&
			      below.segment_length ? &below : NULL,
			      remote_iov, user_cookie, completion_flags,
			      DAT_INVALID_ARG5);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read_to_rmr);
