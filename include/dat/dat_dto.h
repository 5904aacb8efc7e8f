/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: posting of Data Transfer Operations to an Endpoint.
 *
 * A post returns at once. Unless it is suppressed, an event tells how the
 * operation ended: receives on the EP's recv EVD, all others on its request EVD, in
 * posting order. Segment arrays may be reused when the call has returned, the
 * memory they describe when the event was reaped.
 *
 * Requests are accepted by a CONNECTED EP, and by a DISCONNECTED one, where
 * they complete with %DAT_DTO_ERR_FLUSHED at once. Every local segment is
 * checked against its LMR before the device sees it.
 *
 * Completion flags of a request, or-ed:
 *
 * - %DAT_COMPLETION_SUPPRESS_FLAG: no event if the request succeeds. The event of a later
 *   request of the EP proves the success. Until the device has completed the request, it
 *   counts against max_request_dtos; a post that finds the queue full polls for
 *   completions.
 * - %DAT_COMPLETION_SOLICITED_WAIT_FLAG: a Send that causes an upcall at a peer
 *   whose recv_completion_flags leave that to the sender.
 * - %DAT_COMPLETION_BARRIER_FENCE_FLAG: wait for the RDMA Reads posted before.
 * - %DAT_COMPLETION_UNSIGNALLED_FLAG: an event that causes no upcall; allowed if
 *   the EP's request_completion_flags include it.
 *
 * Buffers for an SRQ are posted with dat_srq_post_recv(), requests that register
 * memory with dat_lmr_fmr(), dat_lmr_invalidate() and dat_rmr_bind().
 */
#ifndef DAT_DTO_H
#define DAT_DTO_H

#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_ep;					/* opaque, see DAT_EP_HANDLE */

/**
 * dat_ep_post_send() - send a message
 * @ep_handle: the EP
 * @num_segments: entries of @local_iov; 0 sends an empty message
 * @local_iov: segments to send; may be NULL if there are none
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete
 *
 * The message takes one receive buffer of the peer, which must be long enough.
 * Messages arrive in posting order, each after the data of the RDMA Writes that
 * were posted before it.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the operation is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - too many segments, too long a message, a segment
 *   outside its LMR, or flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such LMR, or it may not be read locally
 *
 * Example::
 *
 *	DAT_LMR_TRIPLET seg = {
 *		.virtual_address = (uintptr_t)buffer,
 *		.segment_length = 64,
 *		.lmr_context = lmr_context,
 *	};
 *	DAT_DTO_COOKIE cookie = { .as_ptr = buffer };
 *
 *	ret = dat_ep_post_send(ep, 1, &seg, cookie,
 *			       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_ep_post_recv(), dat_ep_post_send_with_invalidate(),
 * dat_evd_dequeue(), dat_lmr_kcreate()
 *
 * Source: DAT 1.2 dat_ep_post_send(3DAT)
 */
DAT_RETURN __must_check dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 DAT_LMR_TRIPLET *local_iov,
					 DAT_DTO_COOKIE user_cookie,
					 DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_ep_post_send_with_invalidate() - send a message and revoke a context
 * @ep_handle: the EP
 * @num_segments: entries of @local_iov; 0 sends an empty message
 * @local_iov: segments to send; may be NULL if there are none
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete
 * @invalidate_flag: %DAT_FALSE makes this dat_ep_post_send()
 * @rmr_context: context of an LMR or RMR of the peer, which the peer's adapter
 *	invalidates
 *
 * The peer's receive completes with operation %DAT_DTO_RECEIVE_WITH_INVALIDATE and the
 * context. From then on nobody reaches memory with the context. If the context does not
 * belong to the peer, the peer's adapter breaks the connection.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the operation is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - too many segments, too long a message, a segment
 *   outside its LMR, or flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot invalidate remotely
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such LMR, or it may not be read locally
 *
 * Example::
 *
 *	// The reply unbinds the memory that the peer has offered.
 *	ret = dat_ep_post_send_with_invalidate(ep, 1, &seg, cookie,
 *					       DAT_COMPLETION_DEFAULT_FLAG,
 *					       DAT_TRUE, peer_context);
 *
 * See also: dat_ep_post_send(), dat_ep_post_recv(), dat_lmr_fmr()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN __must_check
dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle,
				 DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov,
				 DAT_DTO_COOKIE user_cookie,
				 DAT_COMPLETION_FLAGS completion_flags,
				 DAT_BOOLEAN invalidate_flag,
				 DAT_RMR_CONTEXT rmr_context);

/**
 * dat_ep_post_recv() - post a receive buffer
 * @ep_handle: an EP without SRQ, in any state
 * @num_segments: entries of @local_iov; 0 is allowed
 * @local_iov: segments, filled in this order; may be NULL if there are none
 * @user_cookie: comes back in the completion event
 * @completion_flags: 0, or %DAT_COMPLETION_UNSIGNALLED_FLAG if the EP's
 *	recv_completion_flags include it
 *
 * Buffers posted before connecting are there when the first message arrives. A
 * message longer than the buffer completes with %DAT_DTO_ERR_LOCAL_LENGTH and
 * breaks the connection.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the buffer belongs to kDAPL until it is completed
 * * %DAT_INSUFFICIENT_RESOURCES - max_recv_dtos are outstanding
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - too many segments, a segment outside its LMR, or
 *   flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP receives from an SRQ, or has no receive EVD
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such LMR, or it may not be written locally
 *
 * Example::
 *
 *	DAT_LMR_TRIPLET seg = {
 *		.virtual_address = (uintptr_t)buffer,
 *		.segment_length = 4096,
 *		.lmr_context = lmr_context,
 *	};
 *	DAT_DTO_COOKIE cookie = { .as_ptr = buffer };
 *
 *	// Before connecting, so that the first message finds it.
 *	ret = dat_ep_post_recv(ep, 1, &seg, cookie,
 *			       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_ep_post_send(), dat_srq_post_recv(), dat_evd_dequeue(),
 * dat_lmr_kcreate()
 *
 * Source: DAT 1.2 dat_ep_post_recv(3DAT)
 */
DAT_RETURN __must_check dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 DAT_LMR_TRIPLET *local_iov,
					 DAT_DTO_COOKIE user_cookie,
					 DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_ep_post_rdma_read() - fetch memory of the peer
 * @ep_handle: the EP
 * @num_segments: entries of @local_iov
 * @local_iov: segments for the data, filled in this order
 * @user_cookie: comes back in the completion event
 * @remote_iov: one segment of the peer's memory
 * @completion_flags: how to complete
 *
 * Fetches the memory that @remote_iov describes; the local segments may be longer.
 * Requests posted later may be carried out before the Read, unless they have
 * %DAT_COMPLETION_BARRIER_FENCE_FLAG.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the operation is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding,
 *   max_rdma_read_out is 0, the peer answers no Reads, or the device cannot
 *   take the sink
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - too many segments, too long, a segment outside its
 *   LMR, @remote_iov is NULL, or flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_LENGTH_ERROR - the local segments are shorter than the remote one
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such LMR, or it may not be written locally
 *
 * Example::
 *
 *	DAT_RMR_TRIPLET remote = {
 *		.virtual_address = peer_address,	// as the peer said
 *		.segment_length = seg.segment_length,
 *		.rmr_context = peer_context,
 *	};
 *
 *	ret = dat_ep_post_rdma_read(ep, 1, &seg, cookie, &remote,
 *				    DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_ep_post_rdma_write(), dat_ep_post_rdma_read_to_rmr(),
 * dat_lmr_sync_rdma_read()
 *
 * Source: DAT 1.2 dat_ep_post_rdma_read(3DAT)
 */
DAT_RETURN __must_check dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle,
					      DAT_COUNT num_segments,
					      DAT_LMR_TRIPLET *local_iov,
					      DAT_DTO_COOKIE user_cookie,
					      const DAT_RMR_TRIPLET *remote_iov,
					      DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_ep_post_rdma_read_to_rmr() - fetch memory of the peer into an RMR
 * @ep_handle: the EP
 * @local_iov: one segment of an own RMR that may be written
 * @user_cookie: comes back in the completion event
 * @remote_iov: one segment of the peer's memory
 * @completion_flags: how to complete
 *
 * On iWARP the peer's answer names the sink by a context. With this call the consumer
 * chooses the context that the peer sees.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the operation is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding,
 *   max_rdma_read_out is 0, the peer answers no Reads, or the device cannot
 *   take the sink
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - a pointer is NULL, the sink is outside its RMR,
 *   the length is above max_rdma_size, or flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_LENGTH_ERROR - the local segment is shorter than the remote one
 * * %DAT_PROTECTION_VIOLATION - the RMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such context, or it may not be written
 *
 * Example::
 *
 *	DAT_RMR_TRIPLET sink = {
 *		.virtual_address = (uintptr_t)buffer,
 *		.segment_length = 4096,
 *		.rmr_context = rmr_context,	// from dat_rmr_bind()
 *	};
 *	DAT_RMR_TRIPLET remote = {
 *		.virtual_address = peer_address,
 *		.segment_length = 4096,
 *		.rmr_context = peer_context,
 *	};
 *
 *	ret = dat_ep_post_rdma_read_to_rmr(ep, &sink, cookie, &remote,
 *					   DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_ep_post_rdma_read(), dat_rmr_bind()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN __must_check dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle,
						     const DAT_RMR_TRIPLET *local_iov,
						     DAT_DTO_COOKIE user_cookie,
						     const DAT_RMR_TRIPLET *remote_iov,
						     DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_ep_post_rdma_write() - store into memory of the peer
 * @ep_handle: the EP
 * @num_segments: entries of @local_iov
 * @local_iov: segments with the data
 * @user_cookie: comes back in the completion event
 * @remote_iov: one segment of the peer's memory
 * @completion_flags: how to complete
 *
 * Stores the local segments one behind the other. The peer's consumer gets no
 * event; a Send that is posted later arrives after the data.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the operation is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - too many segments, too long, a segment outside its
 *   LMR, @remote_iov is NULL, or flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_LENGTH_ERROR - the remote segment is shorter than the local ones
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the EP
 * * %DAT_PRIVILEGES_VIOLATION - no such LMR, or it may not be read locally
 *
 * Example::
 *
 *	DAT_RMR_TRIPLET remote = {
 *		.virtual_address = peer_address,
 *		.segment_length = seg.segment_length,
 *		.rmr_context = peer_context,
 *	};
 *
 *	// Only the reply that follows has an event, unless the Write fails.
 *	ret = dat_ep_post_rdma_write(ep, 1, &seg, cookie, &remote,
 *				     DAT_COMPLETION_SUPPRESS_FLAG);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_post_send(ep, 1, &reply, cookie,
 *				       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_ep_post_rdma_read(), dat_ep_post_send(),
 * dat_lmr_sync_rdma_write()
 *
 * Source: DAT 1.2 dat_ep_post_rdma_write(3DAT)
 */
DAT_RETURN __must_check dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle,
					       DAT_COUNT num_segments,
					       DAT_LMR_TRIPLET *local_iov,
					       DAT_DTO_COOKIE user_cookie,
					       const DAT_RMR_TRIPLET *remote_iov,
					       DAT_COMPLETION_FLAGS completion_flags);

#endif /* DAT_DTO_H */
