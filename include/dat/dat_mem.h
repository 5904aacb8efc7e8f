/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Protection Zones, Local and Remote Memory Regions.
 *
 * An LMR gives data transfer operations access to memory. Its lmr_context goes
 * into local segments, its rmr_context to the peer, if it may be accessed from
 * there. Segments hold the LMR's own addresses: those of the memory, or offsets
 * if it is zero-based. An RMR shows a part of an LMR to the peer for as long as
 * it is bound.
 *
 * Storage consumers keep LMRs from dat_lmr_allocate() and point them to new
 * pages with dat_lmr_fmr() for every transfer.
 */
#ifndef DAT_MEM_H
#define DAT_MEM_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_lmr;					/* opaque, see DAT_LMR_HANDLE */

/* ---- Protection Zones ---------------------------------------------------- */

/**
 * dat_pz_create() - make a Protection Zone
 * @ia_handle: the IA
 * @pz_handle: receives the handle
 *
 * What is to work together has to be in one PZ: an EP, or an SRQ, and the LMRs
 * of the segments posted to it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the PZ exists
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more PDs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA
 * * %DAT_INVALID_PARAMETER - @pz_handle is NULL
 *
 * Example::
 *
 *	ret = dat_pz_create(ia, &pz);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *
 * See also: dat_pz_free(), dat_lmr_kcreate(), dat_ep_create()
 *
 * Source: DAT 1.2 dat_pz_create(3DAT)
 */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);

/**
 * dat_pz_query() - ask for the parameters of a PZ
 * @pz_handle: the PZ
 * @pz_param_mask: DAT_PZ_FIELD bits of what is wanted
 * @pz_param: receives it
 *
 * Members that were not asked for may be filled in as well.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @pz_handle is not a PZ
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @pz_param is NULL
 *
 * Example::
 *
 *	DAT_PZ_PARAM param;
 *
 *	ret = dat_pz_query(pz, DAT_PZ_FIELD_IA_HANDLE, &param);
 *	if (ret == DAT_SUCCESS)
 *		ia = param.ia_handle;
 *
 * See also: dat_pz_create()
 *
 * Source: DAT 1.2 dat_pz_query(3DAT)
 */
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle,
			DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param);

/**
 * dat_pz_free() - free a Protection Zone
 * @pz_handle: the PZ
 *
 * Objects that were freed before do not count, though the last of their work
 * may still be going on in the background.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @pz_handle is not a PZ
 * * %DAT_INVALID_STATE - an EP, SRQ, LMR or RMR is in it, subtype
 *   %DAT_INVALID_STATE_PZ_IN_USE
 *
 * Example::
 *
 *	// What is in it goes first.
 *	dat_lmr_free(lmr);
 *	ret = dat_pz_free(pz);
 *
 * See also: dat_pz_create(), dat_lmr_free(), dat_ep_free()
 *
 * Source: DAT 1.2 dat_pz_free(3DAT)
 */
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/* ---- Local Memory Regions ------------------------------------------------ */

/**
 * dat_lmr_kcreate() - register memory
 * @ia_handle: the IA
 * @mem_type: what @region_description holds
 * @region_description: the memory. VIRTUAL: kmalloc or vmalloc address; LMR:
 *	another LMR, whose memory is registered again; PHYSICAL: page-aligned
 *	physical addresses of pages of PAGE_SIZE; PHYSICAL_VAR_PAGES: the same
 *	with a page size; PLATFORM: a table of struct scatterlist; IA: one DMA
 *	address
 * @length: bytes, also for pages
 * @pz_handle: the Protection Zone
 * @privileges: local and remote access to allow
 * @va_type: address its bytes as they are, or from zero
 * @mem_optimization: whether more than @length may be registered
 * @lmr_handle: receives the handle
 * @lmr_context: receives the context for local segments
 * @rmr_context: receives the context for the peer, 0 without a remote
 *	privilege; may be NULL then
 * @registered_length: receives the bytes that can be addressed; may be NULL
 * @registered_address: receives the first address; may be NULL
 *
 * Pages are addressed from the address of the first one on. The peer can reach
 * exactly the registered range, with exactly the rights given, from the return
 * of this call on. The memory stays the consumer's to keep and to release.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the memory is registered
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, @pz_handle is not a PZ
 *   of it, or the LMR to register again is not one
 * * %DAT_INVALID_PARAMETER - unknown type, privileges or optimisation, the
 *   length is 0, above max_lmr_block_size or beyond the memory, misaligned
 *   pages, or a pointer is NULL
 * * %DAT_INVALID_STATE - the LMR to register again is not bound to memory
 * * %DAT_MODEL_NOT_SUPPORTED - BYPASS, an LMR from dat_lmr_allocate() to be
 *   registered again, or memory that the device cannot register: with gaps
 *   inside, or starting inside a page and zero-based
 * * %DAT_RESERVED_LMR - the LMR to register again is the reserved one
 *
 * Example::
 *
 *	DAT_REGION_DESCRIPTION region = { .for_va = buffer };
 *
 *	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 65536, pz,
 *			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
 *			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
 *			      DAT_MEM_PRIV_REMOTE_READ_FLAG,
 *			      DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
 *			      &lmr_context, &rmr_context, NULL, NULL);
 *
 * See also: dat_lmr_free(), dat_lmr_query(), dat_lmr_allocate(), dat_rmr_bind()
 *
 * Source: kDAPL 2.0 kdat.h; DAT 1.2 dat_lmr_create(3DAT)
 */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description,
			   DAT_VLEN length, DAT_PZ_HANDLE pz_handle,
			   DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
			   DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			   DAT_LMR_HANDLE *lmr_handle,
			   DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context,
			   DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address);

/**
 * dat_lmr_query() - ask for the parameters of an LMR
 * @lmr_handle: the LMR
 * @lmr_param_mask: DAT_LMR_FIELD bits of what is wanted
 * @lmr_param: receives it
 *
 * Members that were not asked for may be filled in as well. For an LMR from
 * dat_lmr_allocate(), lmr_state says whether it is bound; the others are those
 * of its last binding.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @lmr_param is NULL
 *
 * Example::
 *
 *	DAT_LMR_PARAM param;
 *
 *	ret = dat_lmr_query(lmr, DAT_LMR_FIELD_LMR_STATE, &param);
 *	if (ret == DAT_SUCCESS && !param.lmr_state.bound)
 *		pr_info("free for another dat_lmr_fmr()\n");
 *
 * See also: dat_lmr_kcreate(), dat_lmr_fmr()
 *
 * Source: kDAPL 2.0 kdat.h; DAT 1.2 dat_lmr_query(3DAT)
 */
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle,
			 DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param);

/**
 * dat_lmr_free() - take back a registration
 * @lmr_handle: the LMR
 *
 * From the return on neither the device nor the peer reaches the memory. For
 * that, the call waits for EPs that were freed while connected. With iWARP
 * adapters an RDMA Read into an LMR makes it in use until it has completed.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR
 * * %DAT_INVALID_STATE - an RMR is bound to it, or a request about it has not
 *   completed, subtype %DAT_INVALID_STATE_LMR_IN_USE
 * * %DAT_RESERVED_LMR - it is the reserved LMR of the IA
 *
 * Example::
 *
 *	ret = dat_lmr_free(lmr);
 *	if (ret == DAT_SUCCESS)
 *		vfree(buffer);
 *
 * See also: dat_lmr_kcreate(), dat_lmr_allocate(), dat_rmr_free()
 *
 * Source: DAT 1.2 dat_lmr_free(3DAT)
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);

/**
 * dat_lmr_allocate() - make an LMR to be bound to pages later
 * @ia_handle: the IA
 * @pz_handle: the Protection Zone
 * @max_pages: pages it can be bound to at most
 * @lmr_scope: whether only the EP that it is bound on may use it, or all EPs of
 *	the PZ
 * @lmr_handle: receives the handle
 *
 * Made once, it is bound to other pages for every transfer by dat_lmr_fmr(),
 * which is one request and allocates nothing.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the LMR exists, not bound
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @pz_handle is not a
 *   PZ of it
 * * %DAT_INVALID_PARAMETER - @max_pages is not positive or more than the device
 *   can do, unknown @lmr_scope, or @lmr_handle is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - the device cannot register by work request
 *
 * Example::
 *
 *	ret = dat_lmr_allocate(ia, pz, 16, DAT_LMR_SCOPE_PZ, &lmr);
 *	if (DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED)
 *		pr_info("this device registers nothing by request\n");
 *
 * See also: dat_lmr_fmr(), dat_lmr_invalidate(), dat_lmr_free()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			    DAT_COUNT max_pages, DAT_LMR_SCOPE lmr_scope,
			    DAT_LMR_HANDLE *lmr_handle);

/**
 * dat_lmr_fmr() - post a request that binds an LMR to pages
 * @lmr_handle: LMR from dat_lmr_allocate(), not bound
 * @mem_type: what @region_description holds
 * @region_description: the pages, as for dat_lmr_kcreate()
 * @number_of_pages: pages to bind; those of PHYSICAL_VAR_PAGES have the size
 *	that it gives, and count as so many of PAGE_SIZE against max_pages of
 *	dat_lmr_allocate()
 * @mem_privileges: local and remote access to allow
 * @va_type: address its bytes as they are, or from zero
 * @ep_handle: EP whose request queue does it
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete, see dat_dto.h
 * @lmr_context: receives the context for local segments
 * @rmr_context: receives the context for the peer, 0 without a remote
 *	privilege; may be NULL then
 *
 * The contexts may be used at once in later posts to the same EP. The request
 * completes with operation %DAT_DTO_LMR_FMR.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding, or the
 *   LMR is being made anew after a request about it has failed
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR, or @ep_handle not an EP
 * * %DAT_INVALID_PARAMETER - unknown type, privileges or flags, too many or
 *   misaligned pages, or a pointer is NULL
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED, or the
 *   LMR is bound
 * * %DAT_MODEL_NOT_SUPPORTED - the LMR is not from dat_lmr_allocate(), or
 *   memory of this type cannot be bound by a request
 * * %DAT_PROTECTION_VIOLATION - the LMR is of another PZ, or of scope EP and
 *   bound on another EP
 * * %DAT_RESERVED_LMR - it is the reserved LMR of the IA
 *
 * Example::
 *
 *	DAT_REGION_DESCRIPTION region = { .for_platform = sgl };
 *
 *	ret = dat_lmr_fmr(lmr, DAT_MEM_TYPE_PLATFORM, region, 16,
 *			  DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
 *			  DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_ZB, ep,
 *			  cookie, DAT_COMPLETION_SUPPRESS_FLAG, &lmr_context,
 *			  &rmr_context);
 *	// Then the request that tells the peer rmr_context.
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_post_send(ep, 1, &seg, cookie,
 *				       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_lmr_allocate(), dat_lmr_invalidate(), dat_ep_post_send(),
 * dat_lmr_query()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr_handle, DAT_MEM_TYPE mem_type,
		       DAT_REGION_DESCRIPTION region_description,
		       DAT_VLEN number_of_pages,
		       DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
		       DAT_COMPLETION_FLAGS completion_flags,
		       DAT_LMR_CONTEXT *lmr_context,
		       DAT_RMR_CONTEXT *rmr_context);

/**
 * dat_lmr_invalidate() - post a request that unbinds an LMR
 * @lmr_handle: LMR that dat_lmr_fmr() has bound
 * @ep_handle: EP whose request queue does it
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete;
 *	%DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG has it wait for the RDMA Reads
 *	posted before; other requests are done in order anyway
 *
 * The request completes with operation %DAT_DTO_LMR_INVALIDATE. Then nobody
 * reaches the pages any more, and the LMR may be bound again. An LMR is unbound
 * without this call when a receive reports %DAT_DTO_RECEIVE_WITH_INVALIDATE with
 * its rmr_context: the peer has used dat_ep_post_send_with_invalidate().
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding, or the
 *   LMR is being made anew after a request about it has failed
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR, or @ep_handle not an EP
 * * %DAT_INVALID_PARAMETER - flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED, or the
 *   LMR is not bound
 * * %DAT_MODEL_NOT_SUPPORTED - the LMR is not from dat_lmr_allocate()
 * * %DAT_PROTECTION_VIOLATION - the LMR is of another PZ, or of scope EP and
 *   bound on another EP
 * * %DAT_RESERVED_LMR - it is the reserved LMR of the IA
 *
 * Example::
 *
 *	// After all that was posted before.
 *	ret = dat_lmr_invalidate(lmr, ep, cookie,
 *				 DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
 *
 * See also: dat_lmr_fmr(), dat_lmr_allocate(),
 * dat_ep_post_send_with_invalidate()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr_handle,
			      DAT_EP_HANDLE ep_handle,
			      DAT_LMR_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_lmr_sync_rdma_read() - make memory ready to be read by the peer
 * @ia_handle: the IA
 * @local_segments: what the CPU has written
 * @num_segments: entries of @local_segments
 *
 * Needed if the provider attribute lmr_sync_req is set: between writing and an
 * RDMA Read by the peer.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the device sees what the CPU has written
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA
 * * %DAT_INVALID_PARAMETER - a segment is not inside an LMR of the IA, or
 *   @local_segments is NULL
 *
 * Example::
 *
 *	memset(buffer, 0, seg.segment_length);
 *	// The peer may read it once it is told so.
 *	ret = dat_lmr_sync_rdma_read(ia, &seg, 1);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_post_send(ep, 1, &reply, cookie,
 *				       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_lmr_sync_rdma_write(), dat_ia_query()
 *
 * Source: DAT 1.2 dat_lmr_sync_rdma_read(3DAT)
 */
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				  const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments);

/**
 * dat_lmr_sync_rdma_write() - make memory ready that the peer has written
 * @ia_handle: the IA
 * @local_segments: what the CPU is going to read
 * @num_segments: entries of @local_segments
 *
 * Needed if the provider attribute lmr_sync_req is set: between an RDMA Write
 * by the peer and reading.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the CPU sees what the device has written
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA
 * * %DAT_INVALID_PARAMETER - a segment is not inside an LMR of the IA, or
 *   @local_segments is NULL
 *
 * Example::
 *
 *	// The peer has said that it has written.
 *	ret = dat_lmr_sync_rdma_write(ia, &seg, 1);
 *	if (ret == DAT_SUCCESS)
 *		print_hex_dump_bytes("", DUMP_PREFIX_OFFSET, buffer,
 *				     seg.segment_length);
 *
 * See also: dat_lmr_sync_rdma_read(), dat_ia_query()
 *
 * Source: DAT 1.2 dat_lmr_sync_rdma_write(3DAT)
 */
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				   const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments);

/* ---- Remote Memory Regions ----------------------------------------------- */

/**
 * dat_rmr_create() - make an RMR for all EPs of a Protection Zone
 * @pz_handle: the PZ
 * @rmr_handle: receives the handle
 *
 * It shows nothing before dat_rmr_bind().
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
 * dat_rmr_create_for_ep() - make an RMR that is good for one EP at a time
 * @pz_handle: the PZ; the EP is that of dat_rmr_bind()
 * @rmr_handle: receives the handle
 *
 * It shows nothing before dat_rmr_bind(). From then on it belongs to the EP of
 * that call until it is unbound or the connection ends; no other EP can rebind or
 * unbind it or read into it. The device knows no such scope: a peer of another EP
 * in the PZ that is told the context can use it.
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
 * @rmr_param_mask: DAT_RMR_FIELD bits of what is wanted
 * @rmr_param: receives it
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
 * @lmr_handle: the LMR; not looked at if the length is 0
 * @lmr_triplet: the part to show; a length of 0 unbinds
 * @mem_priv: local and remote access to allow
 * @va_type: address the part as in the LMR, or from zero
 * @ep_handle: EP whose request queue does it
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete, see dat_dto.h
 * @rmr_context: receives the context for the peer; undefined when unbinding
 *
 * Each bind makes a new context and revokes the one before: the device refuses
 * it. Requests posted later to the same EP wait for the bind. Its event is
 * %DAT_RMR_BIND_COMPLETION_EVENT on the request EVD. A bind that fails after it
 * was posted breaks the connection. To unbind an RMR that is not bound, perhaps
 * because the peer has invalidated its context, succeeds and makes an event too.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding (a bind
 *   that replaces another takes two), or too many binds of this RMR are, or
 *   one on another EP is
 * * %DAT_INVALID_HANDLE - one of the handles is not of its type
 * * %DAT_INVALID_PARAMETER - the part is not inside the LMR, the context is not
 *   that of the LMR, unknown privileges, flags that the EP does not allow, or
 *   a pointer is NULL
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED
 * * %DAT_MODEL_NOT_SUPPORTED - zero-based, though the part starts inside a
 *   page; or the LMR is from dat_lmr_allocate()
 * * %DAT_PRIVILEGES_VIOLATION - the LMR does not have the local privilege that
 *   the access needs, or the peer has invalidated it
 * * %DAT_PROTECTION_VIOLATION - RMR, LMR and EP are not of one PZ, or the RMR is
 *   of scope EP and bound on another one
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
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *lmr_triplet,
			DAT_MEM_PRIV_FLAGS mem_priv, DAT_VA_TYPE va_type,
			DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
			DAT_COMPLETION_FLAGS completion_flags,
			DAT_RMR_CONTEXT *rmr_context);

/**
 * dat_rmr_free() - free a Remote Memory Region
 * @rmr_handle: the RMR, bound or not
 *
 * From the return on the peer does not reach the memory through it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @rmr_handle is not an RMR
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
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

#endif /* DAT_MEM_H */
