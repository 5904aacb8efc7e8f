/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Endpoints, but for posting (dat_dto.h) and the passive side of connecting
 * (dat_cm.h).
 *
 * An EP holds a receive buffer from taking it for a message until the consumer has reaped
 * its completion: held = taken - reaped. Both high watermarks compare this number, for an
 * EP with an SRQ and for one without.
 */
#ifndef DAT_EP_H
#define DAT_EP_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_ep;					/* opaque, see DAT_EP_HANDLE */

/**
 * dat_ep_create() - create an Endpoint with a receive queue of its own
 * @ia_handle: the IA
 * @pz_handle: Protection Zone of the EP, or NULL to set one before connecting
 * @recv_evd_handle: EVD for receive completions, or NULL
 * @request_evd_handle: EVD for completions of all other posts, or NULL
 * @connect_evd_handle: EVD for connection events, or NULL
 * @ep_attributes: attributes of the EP, or NULL for defaults: 16 receives and requests, 4
 *	segments, 4 RDMA Reads in each direction, or the IA's limits if they are lower,
 *	and the longest messages. struct dat_ep_attr says what 0 means
 * @ep_handle: receives the handle
 *
 * The rules of the members; the tracepoint kdapl_refused names the one that was broken:
 *
 * * sizes and numbers: from 0 to the IA's limit; max_recv_dtos: 0 without
 *   @recv_evd_handle; max_request_dtos: 0 without @request_evd_handle
 * * service_type: %DAT_SERVICE_TYPE_RC
 * * qos: flags of DAT_QOS
 * * completion flags: %DAT_COMPLETION_UNSIGNALLED_FLAG, and for receives also
 *   %DAT_COMPLETION_SOLICITED_WAIT_FLAG; they agree with those of others on the same EVD
 * * srq_soft_hw: %DAT_HW_DEFAULT, or 0 and more
 * * ep_transport_specific_count and ep_provider_specific_count: 0
 *
 * srq_soft_hw sets no watermark here: call dat_ep_set_watermark(). Receives may be posted
 * from the return on.
 *
 * The EP takes nothing from the device yet. Its Queue Pair is created when the EP is
 * connected; dat_ep_connect() and dat_cr_accept() fail if the device has none left.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the EP is UNCONNECTED
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device is gone
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or one of the others is
 *   neither NULL nor an object of the right type of this IA; or an EVD does not
 *   accept the stream
 * * %DAT_INVALID_PARAMETER - @ep_handle is NULL, or a member of @ep_attributes breaks a
 *   rule above
 *
 * Example::
 *
 *	DAT_EP_ATTR attr = {
 *		.service_type = DAT_SERVICE_TYPE_RC,
 *		.max_message_size = 65536,
 *		.max_rdma_size = 1 << 20,
 *		.qos = DAT_QOS_BEST_EFFORT,
 *		.max_recv_dtos = 32,
 *		.max_request_dtos = 32,
 *		.max_recv_iov = 1,
 *		.max_request_iov = 2,
 *		.max_rdma_read_out = 4,
 *		.srq_soft_hw = DAT_HW_DEFAULT,
 *		.max_rdma_read_iov = 1,
 *		.max_rdma_write_iov = 2,
 *	};
 *
 *	ret = dat_ep_create(ia, pz, recv_evd, req_evd, conn_evd, &attr, &ep);
 *
 * See also: dat_ep_create_with_srq(), dat_ep_connect(), dat_ep_modify(),
 * dat_ep_free()
 *
 * Source: DAT 1.2 dat_ep_create(3DAT)
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_evd_handle,
			 DAT_EVD_HANDLE request_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle,
			 const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle);

/**
 * dat_ep_create_with_srq() - create an Endpoint that receives from an SRQ
 * @ia_handle: the IA
 * @pz_handle: Protection Zone of the EP, or NULL to set one before connecting; receive
 *	buffers belong to the PZ of the SRQ
 * @recv_evd_handle: EVD for receive completions, or NULL
 * @request_evd_handle: EVD for completions of all other posts, or NULL
 * @connect_evd_handle: EVD for connection events, or NULL
 * @srq_handle: the SRQ, for as long as the EP exists
 * @ep_attributes: attributes of the EP; max_recv_dtos and max_recv_iov are
 *	ignored. srq_soft_hw other than %DAT_HW_DEFAULT sets and arms the soft
 *	high watermark; the hard one is infinite until dat_ep_set_watermark()
 * @ep_handle: receives the handle
 *
 * Each message takes the next buffer of the SRQ, and completes on
 * @recv_evd_handle. Receives cannot be posted to this EP itself. As with
 * dat_ep_create(), the EP takes nothing from the device before it is connected.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the EP is UNCONNECTED
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device is gone
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or another handle is
 *   not an object of the right type of this IA; or an EVD does not accept the
 *   stream
 * * %DAT_INVALID_PARAMETER - @ep_attributes is NULL; a member breaks a rule of
 *   dat_ep_create(), for example max_request_dtos is not 0 and @request_evd_handle is NULL;
 *   or the PZs differ and srq_ep_pz_difference_supported is false
 *
 * Example::
 *
 *	DAT_EP_ATTR attr = {
 *		.service_type = DAT_SERVICE_TYPE_RC,
 *		.max_message_size = 65536,
 *		.max_rdma_size = 1 << 20,
 *		.max_request_dtos = 32,
 *		.max_request_iov = 2,
 *		.srq_soft_hw = 16,		// held buffers
 *		.max_rdma_write_iov = 2,
 *	};
 *
 *	ret = dat_ep_create_with_srq(ia, pz, recv_evd, req_evd, conn_evd, srq,
 *				     &attr, &ep);
 *
 * See also: dat_srq_create(), dat_ep_create(), dat_ep_set_watermark(),
 * dat_ep_free()
 *
 * Source: DAT 1.2 dat_ep_create_with_srq(3DAT)
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle,
				  DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle,
				  DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle,
				  DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes,
				  DAT_EP_HANDLE *ep_handle);

/**
 * dat_ep_query() - ask for the parameters of an EP
 * @ep_handle: the EP
 * @ep_param_mask: DAT_EP_FIELD bits of the members wanted
 * @ep_param: receives the members; addresses point into the EP
 *
 * Addresses and ports are those of the connection while the EP is connected, connecting
 * or disconnecting. The call does not poll.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @ep_param is NULL
 *
 * Example::
 *
 *	DAT_EP_PARAM param;
 *
 *	ret = dat_ep_query(ep, DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("connected to %pISpc\n", param.remote_ia_address_ptr);
 *
 * See also: dat_ep_modify(), dat_ep_get_status(), dat_ep_recv_query()
 *
 * Source: DAT 1.2 dat_ep_query(3DAT)
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle,
			DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param);

/**
 * dat_ep_modify() - change parameters of an Endpoint
 * @ep_handle: the EP
 * @ep_param_mask: DAT_EP_FIELD bits of the members to be changed
 * @ep_param: the new values; other members are ignored
 *
 * Either all selected members are changed or none. The states in which a member may be
 * changed:
 *
 * - Protection Zone: UNCONNECTED and TENTATIVE_CONNECTION_PENDING. Posted
 *   receives whose LMR is not of the new PZ complete at once with
 *   %DAT_DTO_ERR_LOCAL_PROTECTION, in posting order.
 * - EVDs, sizes, counts, depths, quality of service, completion flags, comm:
 *   these two states, RESERVED and PASSIVE_CONNECTION_PENDING. Receive
 *   completion flags only before the first receive is posted.
 * - Transport and provider specific attributes: UNCONNECTED.
 * - IA, state, addresses, ports, SRQ: none. The soft high watermark is changed by
 *   dat_ep_set_watermark(), not by this call.
 *
 * Posted receives keep their order and their cookies. dat_ep_query() returns the new
 * values, and the connection will use them.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - everything asked for is changed
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - no mask bit, an unknown one, or the bit of a member that can
 *   never be modified; a handle in @ep_param is invalid, or a member breaks a rule of
 *   dat_ep_create(), as the tracepoint kdapl_refused says; or @ep_param is NULL
 * * %DAT_INVALID_STATE - the EP's state, which the subtype names, does not
 *   allow one of the changes
 * * %DAT_INSUFFICIENT_RESOURCES - no memory for the new sizes
 *
 * Example::
 *
 *	// An Endpoint that came with a request needs a PZ and EVDs.
 *	DAT_EP_PARAM param = {
 *		.pz_handle = pz,
 *		.recv_evd_handle = recv_evd,
 *		.request_evd_handle = req_evd,
 *		.connect_evd_handle = conn_evd,
 *	};
 *
 *	ret = dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE |
 *			    DAT_EP_FIELD_RECV_EVD_HANDLE |
 *			    DAT_EP_FIELD_REQUEST_EVD_HANDLE |
 *			    DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param);
 *
 * See also: dat_ep_query(), dat_ep_create(), dat_ep_set_watermark(),
 * dat_psp_create()
 *
 * Source: DAT 1.2 dat_ep_modify(3DAT)
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle,
			 DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param);

/**
 * dat_ep_get_status() - ask for the state of an EP and whether it is idle
 * @ep_handle: the EP
 * @ep_state: receives the state; may be NULL
 * @recv_idle: receives %DAT_TRUE if no receive is outstanding; may be NULL
 * @request_idle: receives %DAT_TRUE if no request is outstanding; may be NULL
 *
 * Polls the completion queues of the EP's recv EVD if @recv_idle is given and of its
 * request EVD if @request_idle is, so that everything that the device has completed
 * before the call counts as completed. With an SRQ, a receive is outstanding for as long
 * as the EP holds a buffer.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the values are set
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 *
 * Example::
 *
 *	DAT_BOOLEAN idle;
 *	DAT_EP_STATE state;
 *
 *	ret = dat_ep_get_status(ep, &state, NULL, &idle);
 *	if (ret == DAT_SUCCESS && state == DAT_EP_STATE_CONNECTED && idle)
 *		dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
 *
 * See also: dat_ep_query(), dat_ep_recv_query(), dat_ep_disconnect()
 *
 * Source: DAT 1.2 dat_ep_get_status(3DAT)
 */
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);

/**
 * dat_ep_recv_query() - ask how many receive buffers an EP has
 * @ep_handle: the EP
 * @nbufs_allocated: receives the number of buffers not yet reaped: those that the EP
 *	holds if it uses an SRQ, those posted to it otherwise; may be NULL
 * @bufs_alloc_span: receives how many receives may still complete with these buffers; may
 *	be NULL
 *
 * Polls the completion queues of the EP's recv EVD first, so that everything that the
 * device has completed before the call is counted. Both values are of one moment.
 * Connections of ib_core deliver in order, so they are equal.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the values are set
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - both pointers are NULL
 *
 * Example::
 *
 *	DAT_COUNT held;
 *
 *	// Back to half of the soft mark: set it again.
 *	ret = dat_ep_recv_query(ep, &held, NULL);
 *	if (ret == DAT_SUCCESS && held <= 8)
 *		ret = dat_ep_set_watermark(ep, 16, 48);
 *
 * See also: dat_ep_set_watermark(), dat_srq_query(), dat_evd_dequeue()
 *
 * Source: DAT 1.2 dat_ep_recv_query(3DAT)
 */
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle,
			     DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span);

/**
 * dat_ep_set_watermark() - set and arm the high watermarks of an EP
 * @ep_handle: the EP, in any state, with or without an SRQ
 * @soft_high_watermark: held buffers, or %DAT_WATERMARK_INFINITE for none
 * @hard_high_watermark: held buffers, or %DAT_WATERMARK_INFINITE for none
 *
 * When the EP holds more buffers than the soft mark, one event is generated:
 * %DAT_ASYNC_EP_SOFT_HIGH_WATERMARK on the IA's asynchronous EVD, with the EP's
 * handle and reason %DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT. This call generates the event if
 * the EP holds more already; to find out it polls the completion queues of the EP's recv
 * EVD. There is one event per call that sets the mark.
 *
 * When a connected EP holds more than the hard mark, its connection is broken:
 * %DAT_CONNECTION_EVENT_BROKEN on its connect EVD, state DISCONNECTED, posts
 * flushed. Messages that the device completes before the break takes effect are
 * received all the same, so the EP may hold more than the mark by then.
 *
 * The marks do not depend on each other, but each call sets and arms both. They
 * survive dat_ep_reset(): a soft mark that has fired stays disarmed until it is set
 * again, the hard mark guards every new connection. A mark of 0 is exceeded by
 * the first buffer.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - both marks are set
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - a mark is negative, and not
 *   %DAT_WATERMARK_INFINITE
 *
 * Example::
 *
 *	// An event above 16 buffers, a broken connection above 48.
 *	ret = dat_ep_set_watermark(ep, 16, 48);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *	// Or no limit for this client.
 *	ret = dat_ep_set_watermark(ep, DAT_WATERMARK_INFINITE,
 *				   DAT_WATERMARK_INFINITE);
 *
 * See also: dat_ep_recv_query(), dat_ep_create_with_srq(), dat_srq_set_lw()
 *
 * Source: DAT 1.2 dat_ep_set_watermark(3DAT)
 */
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle,
				DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark);

/**
 * dat_ep_connect() - connect an Endpoint to a peer that listens
 * @ep_handle: the EP, UNCONNECTED
 * @remote_ia_address: IPv4 or IPv6 address of the peer; a port in it is ignored
 * @remote_conn_qual: the port that the peer listens on, 1 to 65535
 * @timeout: microseconds, or %DAT_TIMEOUT_INFINITE
 * @private_data_size: bytes at @private_data, at most max_private_data_size
 * @private_data: bytes for the peer, copied; may be NULL if the size is 0
 * @quality_of_service: %DAT_QOS_ flags, passed on as the IP type of service
 * @connect_flags: %DAT_CONNECT_DEFAULT_FLAG, or %DAT_CONNECT_MULTIPATH_REQUESTED_FLAG,
 *	which gives one path, too
 *
 * The EP becomes ACTIVE_CONNECTION_PENDING. Its connect EVD then gets one of
 * %DAT_CONNECTION_EVENT_ESTABLISHED, PEER_REJECTED, NON_PEER_REJECTED (nobody
 * listens), UNREACHABLE and TIMED_OUT; after all but the first the EP is
 * DISCONNECTED and has to be reset before it can connect again. ESTABLISHED comes
 * before any completion of the EP on the same EVD. Over iWARP the first message of a
 * passive side that speaks first is delayed by a tenth of a second, see dat_cr_accept().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the connection is being set up
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more QPs
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - @remote_conn_qual is out of range, the timeout is
 *   0, the private data is too long or NULL, or unknown @connect_flags
 * * %DAT_INVALID_ADDRESS - @remote_ia_address is NULL, of another family, or
 *   cannot be reached from this IA
 * * %DAT_INVALID_STATE - the EP is not UNCONNECTED, or lacks a Protection Zone
 *   or an EVD that it needs; the subtype says which
 * * %DAT_MODEL_NOT_SUPPORTED - the quality of service is not offered,
 *   %DAT_CONNECT_MULTIPATH_REQUIRED_FLAG, or the device cannot do what the EP's
 *   attributes ask
 *
 * Example::
 *
 *	struct sockaddr_in peer = {
 *		.sin_family = AF_INET,
 *		.sin_addr.s_addr = htonl(0x0a080001),	// 10.8.0.1
 *	};
 *	char hello[] = "hello";
 *
 *	ret = dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&peer, 5100,
 *			     5 * USEC_PER_SEC, sizeof(hello), hello,
 *			     DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
 *
 * See also: dat_ep_dup_connect(), dat_ep_common_connect(), dat_psp_create(),
 * dat_ep_disconnect()
 *
 * Source: DAT 1.2 dat_ep_connect(3DAT)
 */
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle,
			  DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size,
			  const DAT_PVOID private_data,
			  DAT_QOS quality_of_service,
			  DAT_CONNECT_FLAGS connect_flags);

/**
 * dat_ep_dup_connect() - connect to the peer of another EP
 * @ep_handle: the EP, UNCONNECTED
 * @dup_ep_handle: an EP that is CONNECTED; gives address, port and flags
 * @timeout: microseconds, or %DAT_TIMEOUT_INFINITE
 * @private_data_size: bytes at @private_data, at most max_private_data_size
 * @private_data: bytes for the peer, copied; may be NULL if the size is 0
 * @quality_of_service: %DAT_QOS_ flags, passed on as the IP type of service
 *
 * The events are those of dat_ep_connect().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the connection is being set up
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more QPs
 * * %DAT_INVALID_HANDLE - one of the handles is not an EP
 * * %DAT_INVALID_PARAMETER - the timeout is 0, the private data is too long or
 *   NULL, or the peer of @dup_ep_handle cannot be reached from the IA of
 *   @ep_handle
 * * %DAT_INVALID_STATE - @ep_handle is not UNCONNECTED or lacks a Protection
 *   Zone or an EVD, or @dup_ep_handle is not CONNECTED
 * * %DAT_MODEL_NOT_SUPPORTED - the quality of service is not offered, or the
 *   device cannot do what the EP's attributes ask
 *
 * Example::
 *
 *	// A second connection to the same peer.
 *	ret = dat_ep_dup_connect(ep2, ep, DAT_TIMEOUT_INFINITE, 0, NULL,
 *				 DAT_QOS_BEST_EFFORT);
 *
 * See also: dat_ep_connect(), dat_ep_common_connect()
 *
 * Source: DAT 1.2 dat_ep_dup_connect(3DAT)
 */
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle,
			      DAT_EP_HANDLE dup_ep_handle, DAT_TIMEOUT timeout,
			      DAT_COUNT private_data_size,
			      const DAT_PVOID private_data,
			      DAT_QOS quality_of_service);

/**
 * dat_ep_common_connect() - connect to a socket address
 * @ep_handle: the EP, UNCONNECTED; its comm names the transport
 * @remote_ia_address: address and port of a Common Service Point
 * @timeout: microseconds, or %DAT_TIMEOUT_INFINITE
 * @private_data_size: bytes at @private_data, at most max_private_data_size
 * @private_data: bytes for the peer, copied; may be NULL if the size is 0
 *
 * The events are those of dat_ep_connect().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the connection is being set up
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more QPs
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - the timeout is 0, the port in the address is 0, or
 *   the private data is too long or NULL
 * * %DAT_INVALID_ADDRESS - the address is NULL, not of the EP's comm domain, or
 *   cannot be reached from this IA
 * * %DAT_INVALID_STATE - the EP is not UNCONNECTED, or lacks a Protection Zone
 *   or an EVD
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot do what the EP's attributes ask
 *
 * Example::
 *
 *	struct sockaddr_in peer = {
 *		.sin_family = AF_INET,
 *		.sin_port = htons(5100),
 *		.sin_addr.s_addr = htonl(0x0a080001),	// 10.8.0.1
 *	};
 *
 *	ret = dat_ep_common_connect(ep, (DAT_IA_ADDRESS_PTR)&peer,
 *				    5 * USEC_PER_SEC, 0, NULL);
 *
 * See also: dat_csp_create(), dat_ep_connect()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle,
				 DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_TIMEOUT timeout,
				 DAT_COUNT private_data_size,
				 const DAT_PVOID private_data);

/**
 * dat_ep_disconnect() - end the connection of an EP
 * @ep_handle: the EP
 * @close_flags: %DAT_CLOSE_GRACEFUL_FLAG: requests already posted complete
 *	first, the EP is DISCONNECT_PENDING meanwhile;
 *	%DAT_CLOSE_ABRUPT_FLAG: at once
 *
 * Ends an attempt to connect as well. Receives and requests that are still posted
 * complete with %DAT_DTO_ERR_FLUSHED; %DAT_CONNECTION_EVENT_DISCONNECTED comes
 * after all successful completions of the EP on the same EVD. Nothing happens if
 * the EP is DISCONNECTED, or on a second graceful call.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the connection is ending, or has ended
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_PARAMETER - unknown @close_flags
 * * %DAT_INVALID_STATE - the EP is UNCONNECTED, RESERVED, or PASSIVE or
 *   TENTATIVE_CONNECTION_PENDING
 *
 * Example::
 *
 *	// The reply that was posted just before is sent first.
 *	ret = dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
 *
 * See also: dat_ep_reset(), dat_ep_free(), dat_ep_connect()
 *
 * Source: DAT 1.2 dat_ep_disconnect(3DAT)
 */
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle,
			     DAT_CLOSE_FLAGS close_flags);

/**
 * dat_ep_reset() - make a disconnected EP ready to connect again
 * @ep_handle: the EP, DISCONNECTED; nothing happens if it is UNCONNECTED
 *
 * The EP keeps its SRQ, its attributes and its watermarks. Completions of the old
 * connection stay on their EVDs until they are reaped. The call waits until the device
 * has released the old connection, 15 s at most. Over iWARP a driver may take longer for
 * an attempt that was given up. A consumer that cannot wait frees the EP, which does not
 * sleep, and creates another one.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the EP is UNCONNECTED
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_STATE - the EP is in any other state, or still DISCONNECTED because the
 *   device has not released the old connection
 *
 * Example::
 *
 *	// DAT_CONNECTION_EVENT_DISCONNECTED has come.
 *	ret = dat_ep_reset(ep);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_connect(ep, peer, 5100, DAT_TIMEOUT_INFINITE, 0,
 *				     NULL, DAT_QOS_BEST_EFFORT,
 *				     DAT_CONNECT_DEFAULT_FLAG);
 *
 * See also: dat_ep_disconnect(), dat_ep_connect(), dat_ep_free()
 *
 * Source: DAT 1.2 dat_ep_reset(3DAT)
 */
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);

/**
 * dat_ep_free() - free an Endpoint
 * @ep_handle: the EP
 *
 * Breaks the connection and withdraws the queued events that name the EP: none is
 * dequeued or handed to an upcall after the return. An upcall that had reaped an event of
 * the EP before this call may still begin or run after its return, on another CPU. A
 * consumer that frees data of such an upcall waits for the upcall, in process context,
 * with kdat_evd_wait_upcalls() of <dat/kdat_linux.h> or dat_evd_free(). Or with DAT
 * alone: dat_evd_modify_upcall() with %DAT_UPCALL_TEARDOWN returns when no upcall of the
 * EVD runs, and a second call with %DAT_UPCALL_INVOC_ANY lets upcalls go on.
 *
 * Buffers that the EP holds from an SRQ go back there as if never taken. Buffers posted
 * to the EP return to the consumer without an event, and so do the buffers of its
 * requests. A consumer that wants them reported disconnects the EP, and reaps their
 * completions first. The device may use the buffers until it has released the connection,
 * which happens in the background: dat_lmr_free() and dat_srq_free() wait for this if it
 * concerns their memory, and are refused if it takes too long.
 *
 * If dat_ep_modify() of the same EP is running on another CPU, events that it moves to
 * another EVD are withdrawn when it ends.
 *
 * Context: Any context, never sleeps; also the EP's own upcalls.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @ep_handle is not an EP
 * * %DAT_INVALID_STATE - the EP is RESERVED, so the RSP is to be freed, or it is
 *   PASSIVE or TENTATIVE_CONNECTION_PENDING, so the request is to be rejected
 *
 * Example::
 *
 *	// No event names the EP any more: its EVDs may be freed.
 *	ret = dat_ep_free(ep);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_evd_free(conn_evd);
 *
 * See also: dat_ep_disconnect(), dat_ep_create(), dat_rsp_free(),
 * dat_cr_reject(), kdat_evd_wait_upcalls()
 *
 * Source: DAT 1.2 dat_ep_free(3DAT)
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

#endif /* DAT_EP_H */
