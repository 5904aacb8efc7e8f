/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: the passive side of connecting.
 *
 * A Service Point listens on a port of the RDMA CM's TCP port space, on all
 * addresses of the IA. A request from a peer arrives as
 * %DAT_CONNECTION_REQUEST_EVENT with a Connection Request, which the consumer
 * accepts, rejects or hands over. Receives for the first messages are posted
 * before accepting.
 *
 * A request turns invalid when the peer gives up or when the IA is closed or
 * unplugged; calls with its handle then return %DAT_INVALID_HANDLE.
 */
#ifndef DAT_CM_H
#define DAT_CM_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_cr;					/* opaque, see DAT_CR_HANDLE */

/* ---- Public Service Points ----------------------------------------------- */

/**
 * dat_psp_create() - listen for any number of peers
 * @ia_handle: the IA
 * @conn_qual: port, 1 to 65535; the same one may be used on several IAs
 * @evd_handle: EVD for the requests
 * @psp_flags: %DAT_PSP_CONSUMER_FLAG: the consumer brings an EP to accept with;
 *	%DAT_PSP_PROVIDER_FLAG: each request comes with an EP in state
 *	TENTATIVE_CONNECTION_PENDING, which needs a PZ and EVDs from dat_ep_modify()
 * @psp_handle: receives the handle
 *
 * Listens on all addresses of the port, also on addresses that come later. Each request
 * arrives as %DAT_CONNECTION_REQUEST_EVENT with a handle, to be accepted, rejected or
 * handed over. Up to 128 requests more than the length of the EVD wait to be reaped;
 * further peers are refused.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - requests may arrive
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @evd_handle is not
 *   an EVD of it
 * * %DAT_INVALID_PARAMETER - @conn_qual is out of range, unknown @psp_flags,
 *   the EVD does not accept requests, or @psp_handle is NULL
 * * %DAT_CONN_QUAL_IN_USE - somebody listens there already
 * * %DAT_INVALID_ADDRESS - the IA has no address
 *
 * Example::
 *
 *	ret = dat_psp_create(ia, 5100, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp);
 *	if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE)
 *		pr_err("port 5100 is taken\n");
 *
 * See also: dat_psp_create_any(), dat_psp_free(), dat_cr_accept(),
 * dat_rsp_create(), dat_csp_create()
 *
 * Source: DAT 1.2 dat_psp_create(3DAT)
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle);

/**
 * dat_psp_create_any() - listen on a port that is free
 * @ia_handle: the IA
 * @conn_qual: receives the port, not a privileged one
 * @evd_handle: EVD for the requests
 * @psp_flags: as for dat_psp_create()
 * @psp_handle: receives the handle
 *
 * This is dat_psp_create() for a service whose clients learn the port in some
 * other way.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - requests may arrive
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @evd_handle is not
 *   an EVD of it
 * * %DAT_INVALID_PARAMETER - unknown @psp_flags, the EVD does not accept
 *   requests, or a pointer is NULL
 * * %DAT_CONN_QUAL_UNAVAILABLE - no port is free, or the IA has no address
 *
 * Example::
 *
 *	DAT_CONN_QUAL port;
 *
 *	ret = dat_psp_create_any(ia, &port, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("listening on port %llu\n", port);
 *
 * See also: dat_psp_create(), dat_psp_free()
 *
 * Source: DAT 1.2 dat_psp_create_any(3DAT)
 */
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle,
			      DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle);

/**
 * dat_psp_query() - ask for the parameters of a PSP
 * @psp_handle: the PSP
 * @psp_param_mask: DAT_PSP_FIELD bits of the members wanted
 * @psp_param: receives the members
 *
 * Members that were not asked for may be filled in as well.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @psp_handle is not a PSP
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @psp_param is NULL
 *
 * Example::
 *
 *	DAT_PSP_PARAM param;
 *
 *	ret = dat_psp_query(psp, DAT_PSP_FIELD_CONN_QUAL, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("port %llu\n", param.conn_qual);
 *
 * See also: dat_psp_create(), dat_psp_create_any()
 *
 * Source: DAT 1.2 dat_psp_query(3DAT)
 */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle,
			 DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param);

/**
 * dat_psp_free() - stop listening
 * @psp_handle: the PSP
 *
 * Requests that were delivered before remain valid; later peers find nobody
 * listening.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @psp_handle is not a PSP
 *
 * Example::
 *
 *	ret = dat_psp_free(psp);
 *	// Requests that arrived before are still to be answered.
 *	while (dat_evd_dequeue(cr_evd, &event) == DAT_SUCCESS)
 *		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle,
 *			      0, NULL);
 *
 * See also: dat_psp_create(), dat_cr_reject()
 *
 * Source: DAT 1.2 dat_psp_free(3DAT)
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);

/* ---- Reserved Service Points --------------------------------------------- */

/**
 * dat_rsp_create() - listen for one peer, with an Endpoint ready
 * @ia_handle: the IA
 * @conn_qual: port, 1 to 65535
 * @ep_handle: the EP, UNCONNECTED; becomes RESERVED
 * @evd_handle: EVD for the request
 * @rsp_handle: receives the handle
 *
 * The first request takes the EP to PASSIVE_CONNECTION_PENDING; its event names
 * this RSP, which exists until it is freed. Further peers find nobody listening.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - a request may arrive
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or one of the others is
 *   not an object of the right type of it
 * * %DAT_INVALID_PARAMETER - @conn_qual is out of range, the EVD does not
 *   accept requests, or @rsp_handle is NULL
 * * %DAT_INVALID_STATE - the EP is not UNCONNECTED
 * * %DAT_CONN_QUAL_IN_USE - somebody listens there already
 * * %DAT_INVALID_ADDRESS - the IA has no address
 *
 * Example::
 *
 *	// The request will bring ep.
 *	ret = dat_rsp_create(ia, 5101, ep, cr_evd, &rsp);
 *
 * See also: dat_rsp_free(), dat_psp_create(), dat_cr_accept()
 *
 * Source: DAT 1.2 dat_rsp_create(3DAT)
 */
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle);

/**
 * dat_rsp_query() - ask for the parameters of an RSP
 * @rsp_handle: the RSP
 * @rsp_param_mask: DAT_RSP_FIELD bits of the members wanted
 * @rsp_param: receives the members
 *
 * Members that were not asked for may be filled in as well. The EP is reported even after
 * it was connected or freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @rsp_handle is not an RSP
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @rsp_param is NULL
 *
 * Example::
 *
 *	DAT_RSP_PARAM param;
 *
 *	ret = dat_rsp_query(rsp, DAT_RSP_FIELD_EP_HANDLE, &param);
 *	if (ret == DAT_SUCCESS)
 *		ep = param.ep_handle;
 *
 * See also: dat_rsp_create()
 *
 * Source: DAT 1.2 dat_rsp_query(3DAT)
 */
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle,
			 DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param);

/**
 * dat_rsp_free() - give up a Reserved Service Point
 * @rsp_handle: the RSP
 *
 * If no request has arrived for the EP, it becomes UNCONNECTED.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @rsp_handle is not an RSP
 *
 * Example::
 *
 *	// No peer has connected: the Endpoint can be freed.
 *	ret = dat_rsp_free(rsp);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_free(ep);
 *
 * See also: dat_rsp_create(), dat_ep_free()
 *
 * Source: DAT 1.2 dat_rsp_free(3DAT)
 */
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);

/* ---- Common Service Points ----------------------------------------------- */

/**
 * dat_csp_create() - listen on a socket address
 * @ia_handle: the IA
 * @comm: AF_INET or AF_INET6, SOCK_STREAM, 0 or IPPROTO_TCP
 * @address: one of the IA's addresses or the wildcard, with the port
 * @evd_handle: EVD for the requests
 * @csp_handle: receives the handle
 *
 * With the wildcard the CSP listens on all addresses of the port. Requests
 * are like those of a PSP with %DAT_PSP_CONSUMER_FLAG.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - requests may arrive
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @evd_handle is not
 *   an EVD of it
 * * %DAT_INVALID_PARAMETER - the port is 0, the address is not of the comm's
 *   domain, the EVD does not accept requests, or a pointer is NULL
 * * %DAT_INVALID_ADDRESS - not an address of the IA
 * * %DAT_COMM_NOT_SUPPORTED - another combination in @comm
 * * %DAT_PORT_IN_USE - somebody listens there already
 *
 * Example::
 *
 *	DAT_COMM comm = {
 *		.domain = AF_INET,
 *		.type = SOCK_STREAM,
 *		.protocol = IPPROTO_TCP,
 *	};
 *	struct sockaddr_in any = {
 *		.sin_family = AF_INET,
 *		.sin_port = htons(5100),
 *		.sin_addr.s_addr = htonl(INADDR_ANY),
 *	};
 *
 *	ret = dat_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&any, cr_evd, &csp);
 *
 * See also: dat_csp_free(), dat_ep_common_connect(), dat_psp_create()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm,
			  DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
			  DAT_CSP_HANDLE *csp_handle);

/**
 * dat_csp_query() - ask for the parameters of a CSP
 * @csp_handle: the CSP
 * @csp_param_mask: DAT_CSP_FIELD bits of the members wanted
 * @csp_param: receives the members; pointers lead into the CSP
 *
 * Members that were not asked for may be filled in as well.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @csp_handle is not a CSP
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @csp_param is NULL
 *
 * Example::
 *
 *	DAT_CSP_PARAM param;
 *
 *	ret = dat_csp_query(csp, DAT_CSP_FIELD_IA_ADDRESS, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("listening on %pISpc\n", param.address_ptr);
 *
 * See also: dat_csp_create()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle,
			 DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param);

/**
 * dat_csp_free() - stop listening
 * @csp_handle: the CSP
 *
 * Requests that were delivered before remain valid; later peers find nobody
 * listening.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @csp_handle is not a CSP
 *
 * Example::
 *
 *	ret = dat_csp_free(csp);
 *
 * See also: dat_csp_create()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle);

/* ---- Connection Requests ------------------------------------------------- */

/**
 * dat_cr_query() - ask for the parameters of a request
 * @cr_handle: the request
 * @cr_param_mask: DAT_CR_FIELD bits of the members wanted
 * @cr_param: receives the members; pointers are valid until the request is
 *	answered
 *
 * Private data has the length the sender gave if the transport carries it;
 * otherwise it is padded with zeros.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @cr_handle is not a request, or no longer one
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @cr_param is NULL
 *
 * Example::
 *
 *	DAT_CR_PARAM param;
 *
 *	ret = dat_cr_query(cr, DAT_CR_FIELD_ALL, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("%pISpc brings %d bytes\n", param.remote_ia_address_ptr,
 *			param.private_data_size);
 *
 * See also: dat_cr_accept(), dat_cr_reject(), dat_cr_handoff()
 *
 * Source: DAT 1.2 dat_cr_query(3DAT)
 */
DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle,
			DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param);

/**
 * dat_cr_accept() - accept a request
 * @cr_handle: the request
 * @ep_handle: EP to connect, UNCONNECTED; NULL if the request came with one
 * @private_data_size: bytes at @private_data, at most max_private_data_size
 * @private_data: bytes for the peer, copied; may be NULL if the size is 0
 *
 * The EP becomes COMPLETION_PENDING. Its connect EVD then gets
 * %DAT_CONNECTION_EVENT_ESTABLISHED, or ACCEPT_COMPLETION_ERROR, after which
 * the EP is DISCONNECTED. If the call fails, the request is still to be answered,
 * and the EP is as it was.
 *
 * Over iWARP requests that are then posted to the EP are held back until it has received
 * a message, or for a tenth of a second: the active side may not be ready earlier. A
 * protocol whose active side speaks first is not affected.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the connection is being set up; @cr_handle is invalid now
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more QPs
 * * %DAT_INVALID_HANDLE - @cr_handle is not a request, or no longer one, or
 *   @ep_handle is not an EP of its IA, or is missing
 * * %DAT_INVALID_PARAMETER - the private data is too long or NULL, or
 *   @ep_handle is given though the request came with an EP
 * * %DAT_INVALID_STATE - the EP's state does not allow it, or it lacks a
 *   Protection Zone or an EVD that it needs; the subtype says which
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot do what the EP's attributes ask
 *
 * Example::
 *
 *	cr = event.event_data.cr_arrival_event_data.cr_handle;
 *
 *	// Receives were posted to ep, or to its SRQ, before.
 *	ret = dat_cr_accept(cr, ep, 0, NULL);
 *	if (ret != DAT_SUCCESS)
 *		dat_cr_reject(cr, 0, NULL);
 *
 * See also: dat_cr_query(), dat_cr_reject(), dat_psp_create(), dat_ep_create(),
 * dat_ep_modify()
 *
 * Source: DAT 1.2 dat_cr_accept(3DAT)
 */
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size,
			 const DAT_PVOID private_data);

/**
 * dat_cr_reject() - reject a request
 * @cr_handle: the request
 * @private_data_size: bytes at @private_data, at most max_private_data_size
 * @private_data: bytes for the peer, copied; may be NULL if the size is 0
 *
 * The peer gets %DAT_CONNECTION_EVENT_PEER_REJECTED. The EP of an RSP becomes
 * UNCONNECTED; an EP that kDAPL created for a PSP is freed.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @cr_handle is invalid now
 * * %DAT_INVALID_HANDLE - @cr_handle is not a request, or no longer one
 * * %DAT_INVALID_PARAMETER - the private data is too long or NULL
 *
 * Example::
 *
 *	char reason[] = "too many clients";
 *
 *	ret = dat_cr_reject(cr, sizeof(reason), reason);
 *
 * See also: dat_cr_accept(), dat_cr_query(), dat_cr_handoff()
 *
 * Source: DAT 1.2 dat_cr_reject(3DAT), DAT 2.0 dat.h
 */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data);

/**
 * dat_cr_handoff() - pass a request to another Service Point of the IA
 * @cr_handle: the request
 * @handoff: port of the Service Point
 *
 * The request arrives at that Service Point with a new handle. An EP that came with the
 * request is treated as by dat_cr_reject().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @cr_handle is invalid now
 * * %DAT_INVALID_HANDLE - @cr_handle is not a request, or no longer one
 * * %DAT_INVALID_PARAMETER - no other Service Point of this IA listens on
 *   @handoff
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the EP of an RSP is not RESERVED
 *   any more; the request is still to be answered
 *
 * Example::
 *
 *	// The Service Point for this kind of client is on port 5102.
 *	ret = dat_cr_handoff(cr, 5102);
 *	if (ret != DAT_SUCCESS)
 *		dat_cr_reject(cr, 0, NULL);
 *
 * See also: dat_cr_query(), dat_cr_accept(), dat_psp_create()
 *
 * Source: DAT 1.2 dat_cr_handoff(3DAT)
 */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

#endif /* DAT_CM_H */
