/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Remote Memory Regions.
 *
 * An RMR shows a part of an LMR to the peer for as long as it is bound. Each bind creates
 * a new rmr_context, which the consumer sends to the peer.
 */
#ifndef DAT_RMR_H
#define DAT_RMR_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_rmr;					/* opaque, see DAT_RMR_HANDLE */

/**
 * dat_rmr_create() - create an RMR for all EPs of a Protection Zone
 * @pz_handle: the PZ
 * @rmr_handle: receives the handle
 *
 * The RMR shows no memory before dat_rmr_bind().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the RMR exists, not bound
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @pz_handle is not a PZ
 * * %DAT_INVALID_PARAMETER - @rmr_handle is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot register by work request
 *
 * Example::
 *
 *	ret = dat_rmr_create(pz, &rmr);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *
 * See also: dat_rmr_create_for_ep(), dat_rmr_bind(), dat_rmr_free()
 *
 * Source: DAT 1.2 dat_rmr_create(3DAT)
 */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);

/**
 * dat_rmr_create_for_ep() - create an RMR for one EP at a time
 * @pz_handle: the PZ; dat_rmr_bind() chooses the EP
 * @rmr_handle: receives the handle
 *
 * The RMR shows no memory before dat_rmr_bind(). From then on it belongs to the EP of
 * that call until it is unbound or the connection ends; no other EP can rebind or unbind
 * it or read into it. The device knows no such scope: a peer of another EP in the PZ that
 * learns the context can use it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the RMR exists, not bound
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @pz_handle is not a PZ
 * * %DAT_INVALID_PARAMETER - @rmr_handle is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot register by work request
 *
 * Example::
 *
 *	ret = dat_rmr_create_for_ep(pz, &rmr);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *
 * See also: dat_rmr_create(), dat_rmr_bind(), dat_rmr_free()
 *
 * Source: DAT 2.0 dat.h
 */
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle,
				 DAT_RMR_HANDLE *rmr_handle);

/**
 * dat_rmr_query() - ask for the parameters of an RMR
 * @rmr_handle: the RMR
 * @rmr_param_mask: DAT_RMR_FIELD bits of the members wanted
 * @rmr_param: receives the members
 *
 * Members that were not asked for may be filled in as well. Of an RMR that is
 * not bound, triplet, privileges and context are zero.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @rmr_handle is not an RMR
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @rmr_param is NULL
 *
 * Example::
 *
 *	DAT_RMR_PARAM param;
 *
 *	ret = dat_rmr_query(rmr, DAT_RMR_FIELD_RMR_CONTEXT, &param);
 *	if (ret == DAT_SUCCESS)
 *		rmr_context = param.rmr_context;
 *
 * See also: dat_rmr_bind(), dat_lmr_query()
 *
 * Source: DAT 1.2 dat_rmr_query(3DAT)
 */
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle,
			 DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param);

/**
 * dat_rmr_bind() - post a request that binds an RMR to a part of an LMR
 * @rmr_handle: the RMR
 * @lmr_handle: the LMR; ignored if the length is 0
 * @lmr_triplet: the part to show; a length of 0 unbinds
 * @mem_priv: %DAT_MEM_PRIV_ flags of the local and remote access to allow
 * @va_type: %DAT_VA_TYPE_VA: the part has the addresses it has in the LMR;
 *	%DAT_VA_TYPE_ZB: its first byte has address 0
 * @ep_handle: EP on whose request queue the RMR is bound
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete, see dat_dto.h
 * @rmr_context: receives the context for the peer; undefined when unbinding
 *
 * Each bind creates a new context and revokes the former one, which the device refuses
 * from then on. Requests posted later to the same EP wait for the bind. The
 * event of a bind is %DAT_RMR_BIND_COMPLETION_EVENT on the request EVD. A bind that
 * fails after it was posted breaks the connection. Unbinding an RMR that is not
 * bound, perhaps because the peer has invalidated its context, succeeds and has an
 * event, too.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding (a bind that replaces
 *   another takes two); or too many binds of this RMR, or one on another EP, are
 *   outstanding
 * * %DAT_INVALID_HANDLE - one of the handles is not of its type
 * * %DAT_INVALID_PARAMETER - the part is not inside the LMR, the context is not
 *   that of the LMR, unknown privileges, flags that the EP does not allow, or
 *   a pointer is NULL
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED; or a call frees
 *   the LMR and may still be refused, subtype %DAT_INVALID_STATE_LMR_IN_USE
 * * %DAT_MODEL_NOT_SUPPORTED - zero-based, though the part starts inside a
 *   page; or the LMR is from dat_lmr_allocate()
 * * %DAT_PRIVILEGES_VIOLATION - the LMR does not have the local privilege that
 *   the access needs, or the peer has invalidated it
 * * %DAT_PROTECTION_VIOLATION - RMR, LMR and EP are not of one PZ, or the RMR has scope
 *   EP and is bound on another EP
 * * %DAT_RESERVED_LMR - the LMR is the reserved one of the IA
 *
 * Example::
 *
 *	// seg is a part of lmr.
 *	ret = dat_rmr_bind(rmr, lmr, &seg, DAT_MEM_PRIV_REMOTE_READ_FLAG,
 *			   DAT_VA_TYPE_VA, ep, cookie,
 *			   DAT_COMPLETION_SUPPRESS_FLAG, &rmr_context);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *	// ... and when the peer has read it:
 *	seg.segment_length = 0;
 *	ret = dat_rmr_bind(rmr, NULL, &seg, DAT_MEM_PRIV_NONE_FLAG,
 *			   DAT_VA_TYPE_VA, ep, cookie,
 *			   DAT_COMPLETION_DEFAULT_FLAG, NULL);
 *
 * See also: dat_rmr_create(), dat_rmr_free(), dat_lmr_kcreate(),
 * dat_ep_post_send()
 *
 * Source: DAT 1.2 dat_rmr_bind(3DAT), DAT 2.0 dat.h
 */
DAT_RETURN __must_check dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
				     const DAT_LMR_TRIPLET *lmr_triplet,
				     DAT_MEM_PRIV_FLAGS mem_priv, DAT_VA_TYPE va_type,
				     DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
				     DAT_COMPLETION_FLAGS completion_flags,
				     DAT_RMR_CONTEXT *rmr_context);

/**
 * dat_rmr_free() - free a Remote Memory Region
 * @rmr_handle: the RMR, bound or not
 *
 * After a success the peer no longer reaches memory through the RMR. While a
 * dat_rmr_bind() request about the RMR is outstanding, which would close a window or open
 * one later, the call waits; for a second at most, or for 15 if the EP was freed, before
 * or meanwhile. If the request has still not completed, the call is refused and changes
 * nothing: the request may be behind a Send for which the peer posts no receive. Free the
 * EP, or wait for the request's event, and call again.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @rmr_handle is not an RMR
 * * %DAT_INVALID_STATE - a dat_rmr_bind() request about it has not completed
 *
 * Example::
 *
 *	ret = dat_rmr_free(rmr);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_lmr_free(lmr);
 *
 * See also: dat_rmr_create(), dat_rmr_bind(), dat_lmr_free()
 *
 * Source: DAT 1.2 dat_rmr_free(3DAT)
 */
DAT_RETURN __must_check dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

#endif /* DAT_RMR_H */
