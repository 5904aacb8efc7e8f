/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Shared Receive Queues.
 *
 * A buffer of an SRQ is first posted, then taken (an EP has used the buffer for a
 * message), then reaped (the consumer was handed its completion, whatever the
 * status, by dat_evd_dequeue() or an upcall). The queue counts
 *
 *   available = posted - taken         outstanding = posted - reaped
 *
 * With room for 10, max/available/outstanding are 10/3/3 after three posts, 10/2/3
 * when a message has arrived, and 10/2/2 when its event was dequeued. kDAPL learns
 * that a buffer was taken when the device completes the message: a message of
 * which only a part has arrived is not counted.
 */
#ifndef DAT_SRQ_H
#define DAT_SRQ_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_srq;					/* opaque, see DAT_SRQ_HANDLE */

/**
 * dat_srq_create() - create a Shared Receive Queue
 * @ia_handle: the IA
 * @pz_handle: Protection Zone of the memory that will be posted
 * @srq_attr: buffers that may be outstanding, segments of a buffer, and
 *	%DAT_SRQ_LW_DEFAULT for the low watermark
 * @srq_handle: receives the handle
 *
 * The queue is empty. Exactly max_recv_dtos buffers may be outstanding on it,
 * whatever size the device has rounded to.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the SRQ is operational
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more SRQs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @pz_handle is not a
 *   PZ of it
 * * %DAT_INVALID_PARAMETER - a size is not positive or above the limit of the
 *   IA, the low watermark is not %DAT_SRQ_LW_DEFAULT, as the tracepoint kdapl_refused says;
 *   or a pointer is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - the device has no SRQs
 *
 * Example::
 *
 *	DAT_SRQ_ATTR attr = {
 *		.max_recv_dtos = 128,
 *		.max_recv_iov = 1,
 *		.low_watermark = DAT_SRQ_LW_DEFAULT,
 *	};
 *
 *	ret = dat_srq_create(ia, pz, &attr, &srq);
 *
 * See also: dat_srq_post_recv(), dat_srq_set_lw(), dat_ep_create_with_srq(),
 * dat_srq_free()
 *
 * Source: DAT 1.2 dat_srq_create(3DAT)
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle);

/**
 * dat_srq_free() - free a Shared Receive Queue
 * @srq_handle: the SRQ
 *
 * Buffers that no EP has taken return to the consumer without an event. No peer writes
 * into them after the return: the call waits until the device has released the EPs that
 * were freed while connected, and is refused if one of them takes more than 15 s.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @srq_handle is not an SRQ
 * * %DAT_INVALID_STATE - an EP, perhaps one that was freed, uses it, subtype
 *   %DAT_INVALID_STATE_SRQ_IN_USE
 *
 * Example::
 *
 *	// The Endpoints that use the SRQ are freed first.
 *	dat_ep_free(ep);
 *	ret = dat_srq_free(srq);
 *	if (ret == DAT_SUCCESS)
 *		vfree(buffer);
 *
 * See also: dat_srq_create(), dat_ep_free()
 *
 * Source: DAT 1.2 dat_srq_free(3DAT)
 */
DAT_RETURN __must_check dat_srq_free(DAT_SRQ_HANDLE srq_handle);

/**
 * dat_srq_query() - ask for the parameters of an SRQ
 * @srq_handle: the SRQ
 * @srq_param_mask: DAT_SRQ_FIELD bits of the members wanted
 * @srq_param: receives the members, the two counts from one moment
 *
 * Polls the completion queues of all EVDs that the SRQ's EPs complete on, so that
 * everything that the device has completed before the call is counted, even while its
 * events wait to be reaped.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @srq_handle is not an SRQ
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @srq_param is NULL
 *
 * Example::
 *
 *	DAT_SRQ_PARAM param;
 *
 *	ret = dat_srq_query(srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT |
 *			    DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("%d buffers wait for messages, %d are to be reaped\n",
 *			param.available_dto_count,
 *			param.outstanding_dto_count - param.available_dto_count);
 *
 * See also: dat_srq_resize(), dat_srq_set_lw(), dat_ep_recv_query()
 *
 * Source: DAT 1.2 dat_srq_query(3DAT)
 */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle,
			 DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param);

/**
 * dat_srq_resize() - change how many buffers an SRQ may have
 * @srq_handle: the SRQ
 * @srq_max_recv_dto: buffers that may be outstanding from now on
 *
 * Afterwards max_recv_dtos is exactly @srq_max_recv_dto and posts beyond it are
 * refused, whatever size the device has rounded to. Messages may arrive and
 * buffers be posted during the call; none is lost or changes its place. A size
 * equal to the outstanding count or to the low watermark is allowed.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the SRQ has the new size
 * * %DAT_INVALID_HANDLE - @srq_handle is not an SRQ
 * * %DAT_INVALID_PARAMETER - the size is not positive, or above the IA's
 *   max_recv_per_srq
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device is gone; nothing
 *   changed
 * * %DAT_INVALID_STATE - more buffers are outstanding, or the low watermark is
 *   higher; nothing changed
 *
 * Example::
 *
 *	// Make room for 64 more, then post them.
 *	ret = dat_srq_resize(srq, 192);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_srq_post_recv(srq, 1, &seg, cookie);
 *
 * See also: dat_srq_query(), dat_srq_post_recv(), dat_srq_set_lw()
 *
 * Source: DAT 1.2 dat_srq_resize(3DAT)
 */
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle,
			  DAT_COUNT srq_max_recv_dto);

/**
 * dat_srq_post_recv() - post a receive buffer to an SRQ
 * @srq_handle: the SRQ
 * @num_segments: entries of @local_iov; 0 is allowed
 * @local_iov: segments, filled in this order; may be NULL if there are none
 * @user_cookie: comes back in the completion event
 *
 * The buffer is completed on the recv EVD of the EP that takes it. Buffers reach
 * the device in posting order. Each connection completes its buffers in the order
 * in which its peer has sent; among connections there is no order. @local_iov may
 * be reused when the call returns, the memory it describes when the buffer was
 * reaped.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the buffer belongs to kDAPL until it is completed
 * * %DAT_INVALID_HANDLE - @srq_handle is not an SRQ
 * * %DAT_INVALID_PARAMETER - too many segments, or one is outside its LMR
 * * %DAT_INSUFFICIENT_RESOURCES - max_recv_dtos buffers are outstanding
 * * %DAT_PROTECTION_VIOLATION - an LMR is of another PZ than the SRQ
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
 *	ret = dat_srq_post_recv(srq, 1, &seg, cookie);
 *
 * See also: dat_srq_create(), dat_ep_post_recv(), dat_evd_dequeue(),
 * dat_srq_set_lw()
 *
 * Source: DAT 1.2 dat_srq_post_recv(3DAT)
 */
DAT_RETURN __must_check dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
					  DAT_LMR_TRIPLET *local_iov,
					  DAT_DTO_COOKIE user_cookie);

/**
 * dat_srq_set_lw() - set the low watermark of an SRQ and arm it
 * @srq_handle: the SRQ
 * @low_watermark: buffers; 0 disarms
 *
 * One event is generated when fewer buffers than @low_watermark are available:
 * %DAT_ASYNC_SRQ_LOW_WATERMARK on the IA's asynchronous EVD, with the SRQ's handle
 * and reason %DAT_SRQ_LOW_WATERMARK_EVENT. This call generates the event if fewer are
 * available already; to find out it polls the completion queues of all EVDs that the
 * SRQ's EPs complete on. Otherwise the EP that takes the buffer below
 * the mark generates it. There is exactly one event per call. Calling again
 * replaces the mark and arms it again, whether it has fired or not.
 *
 * The USAGE section of the DAT 1.2 man page has the event generated at once if the mark
 * is below the number of free buffers. This contradicts its DESCRIPTION, and would fire
 * on a full queue; kDAPL implements the DESCRIPTION.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the mark is set
 * * %DAT_INVALID_HANDLE - @srq_handle is not an SRQ
 * * %DAT_INVALID_PARAMETER - @low_watermark is negative, or above max_recv_dtos
 *
 * Example::
 *
 *	DAT_SRQ_PARAM param;
 *
 *	// With fewer buffers the mark would fire at once, again and again.
 *	ret = dat_srq_query(srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT, &param);
 *	if (ret == DAT_SUCCESS && param.available_dto_count >= 32)
 *		ret = dat_srq_set_lw(srq, 32);
 *
 * See also: dat_srq_query(), dat_srq_post_recv(), dat_srq_resize(),
 * dat_ep_set_watermark()
 *
 * Source: DAT 1.2 dat_srq_set_lw(3DAT)
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);

#endif /* DAT_SRQ_H */
