/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Protection Zones and Local Memory Regions.
 *
 * An LMR gives data transfer operations access to memory. Its lmr_context goes into local
 * segments. An LMR with a remote privilege also has an rmr_context, which goes to the
 * peer. Segments hold the LMR's own addresses: those of the memory, or offsets if the LMR
 * is zero-based. An RMR shows a part of an LMR to the peer, see dat_rmr.h.
 *
 * A storage consumer keeps a pool of LMRs from dat_lmr_allocate(), and binds one
 * to the pages of each transfer with dat_lmr_fmr().
 *
 * Memory is described by a DAT_MEM_TYPE and a DAT_REGION_DESCRIPTION:
 *
 * - VIRTUAL, for_va: an address of kmalloc() or vmalloc() memory.
 * - PHYSICAL, for_physical: an array of DAT_PADDR, the page-aligned physical
 *   addresses of pages of PAGE_SIZE.
 * - PHYSICAL_VAR_PAGES, for_array: the same for larger pages. Their size is a power of
 *   two, and each address is a multiple of it.
 * - PLATFORM, for_platform: a table of struct scatterlist, whose pages the
 *   consumer has not mapped for DMA.
 * - IA, for_ia: one DMA address, of memory that the consumer has mapped for the
 *   device and keeps mapped for as long as the LMR refers to it.
 * - LMR, for_lmr_handle: the memory of another LMR, for dat_lmr_kcreate() only.
 * - BYPASS is not supported.
 *
 * The memory must have a struct page, except memory of type IA. kDAPL maps the memory for
 * the device, in the directions that the privileges need, except memory of type IA.
 * Arrays and scatterlists are read during the call and may be freed when it has returned;
 * the memory itself must stay until the LMR is freed or, after dat_lmr_fmr(), is no
 * longer bound.
 */
#ifndef DAT_MEM_H
#define DAT_MEM_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct dat_lmr;					/* opaque, see DAT_LMR_HANDLE */

/* ---- Protection Zones ---------------------------------------------------- */

/**
 * dat_pz_create() - create a Protection Zone
 * @ia_handle: the IA
 * @pz_handle: receives the handle
 *
 * An EP or SRQ, and the LMRs of the segments that are posted to it, must be in the same
 * PZ.
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
 * @pz_param_mask: DAT_PZ_FIELD bits of the members wanted
 * @pz_param: receives the members
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
 * Objects that were freed before are no longer in the PZ, even if their work still ends
 * in the background.
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
 *	// The objects in it are freed first.
 *	ret = dat_lmr_free(lmr);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_pz_free(pz);
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
 * @mem_type: type of the memory
 * @region_description: the memory, see the head of dat_mem.h
 * @length: bytes, for all types. With type LMR, 0 means the length of that LMR. With a
 *	remote privilege at most the IA's max_lmr_block_size; without one, memory that is
 *	contiguous for the device may be longer
 * @pz_handle: the Protection Zone
 * @privileges: %DAT_MEM_PRIV_ flags of the local and remote access to allow
 * @va_type: %DAT_VA_TYPE_VA: the first byte has the address of the memory;
 *	%DAT_VA_TYPE_ZB: it has address 0
 * @mem_optimization: whether more than @length may be registered; kDAPL
 *	registers exactly @length in any case
 * @lmr_handle: receives the handle
 * @lmr_context: receives the context for local segments
 * @rmr_context: receives the context for the peer, 0 without a remote
 *	privilege; may be NULL in that case
 * @registered_length: receives the bytes that can be addressed; may be NULL
 * @registered_address: receives the first address; may be NULL
 *
 * With %DAT_VA_TYPE_VA the first address is the kernel address for VIRTUAL, the physical
 * address of the first byte for PHYSICAL, PHYSICAL_VAR_PAGES and PLATFORM, the DMA
 * address for IA, and the address of the other LMR's memory for LMR. Of a scatterlist the
 * first @length bytes are registered.
 *
 * From the return of this call on the peer can reach exactly the registered range, with
 * exactly the given privileges, through any EP of the Protection Zone. An LMR that the
 * peer has invalidated with a Send cannot be used any more, only freed.
 *
 * An LMR of type LMR does not need the other LMR after the call has returned.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the memory is registered
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, @pz_handle is not a PZ of it, or
 *   the LMR to register again is not an LMR
 * * %DAT_INVALID_PARAMETER - unknown type, privileges or optimisation; the
 *   length is 0, above max_lmr_block_size or beyond the memory; misaligned
 *   pages, an address that has no page, or a pointer is NULL
 * * %DAT_INVALID_STATE - the LMR to register again is one from
 *   dat_lmr_allocate() that is not bound
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
 * @lmr_param_mask: DAT_LMR_FIELD bits of the members wanted
 * @lmr_param: receives the members
 *
 * Members that were not asked for may be filled in as well. For an LMR from
 * dat_lmr_allocate(), lmr_state says whether it is bound; the other members are
 * those of its last binding. The call does not poll: the LMR changes when kDAPL polls the
 * completion of a request.
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
 * dat_lmr_free() - end a registration
 * @lmr_handle: the LMR
 *
 * After a success neither a peer nor a post of this side reaches the memory through the
 * LMR. The call is refused while work that names the LMR is posted to an EP or an SRQ:
 * the work must complete, be it flushed, or its EP or SRQ must be freed first; the events
 * need not have been reaped. The call is also refused while a dat_lmr_fmr() or
 * dat_lmr_invalidate() request about the LMR is outstanding. It waits for EPs that were
 * freed before and whose work names the LMR, until the device has released them, and is
 * refused if one of them takes more than 15 s.
 *
 * If a post on another CPU names the LMR during this call, either the call finds the
 * work, or the post is refused with %DAT_PRIVILEGES_VIOLATION. The post may be refused
 * even if the call is then refused because of another such post.
 *
 * The call searches the queues of the EP or SRQ that the LMR was used with; if there were
 * several, the queues of all EPs and SRQs of the IA.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR
 * * %DAT_INVALID_STATE - an RMR is bound to the LMR, or work that names it or is
 *   about it has not completed, subtype %DAT_INVALID_STATE_LMR_IN_USE
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
DAT_RETURN __must_check dat_lmr_free(DAT_LMR_HANDLE lmr_handle);

/**
 * dat_lmr_allocate() - create an LMR to be bound to pages later
 * @ia_handle: the IA
 * @pz_handle: the Protection Zone
 * @max_pages: most pages of PAGE_SIZE that the LMR can be bound to
 * @lmr_scope: %DAT_LMR_SCOPE_EP: while bound, only the EP that bound it may use it, until
 *	that EP's connection ends; %DAT_LMR_SCOPE_PZ and %DAT_LMR_SCOPE_ANY: all EPs of
 *	the PZ may use it
 * @lmr_handle: receives the handle
 *
 * The LMR is created once, and bound to other pages for every transfer by dat_lmr_fmr(),
 * which is one request and allocates nothing. The scope governs local posts. The device
 * knows no such scope: a peer of another EP of the PZ that learns the rmr_context can use
 * it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the LMR exists, not bound
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no more MRs
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA, or @pz_handle is not a
 *   PZ of it
 * * %DAT_INVALID_PARAMETER - @max_pages is not positive or exceeds the device's limit,
 *   unknown @lmr_scope, or @lmr_handle is NULL
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
 * @mem_type: type of the memory: VIRTUAL, PHYSICAL, PHYSICAL_VAR_PAGES, PLATFORM
 *	or IA
 * @region_description: the memory, see the head of dat_mem.h. The address of
 *	VIRTUAL or IA memory is page-aligned
 * @number_of_pages: pages to bind. A page of PHYSICAL_VAR_PAGES has the size that the
 *	region gives, and counts as several of PAGE_SIZE against max_pages of
 *	dat_lmr_allocate(). A scatterlist is bound up to its end, and may have fewer pages
 * @mem_privileges: %DAT_MEM_PRIV_ flags of the local and remote access to allow
 * @va_type: %DAT_VA_TYPE_VA: the first byte has the address of the memory, as for
 *	dat_lmr_kcreate(); %DAT_VA_TYPE_ZB: it has address 0
 * @ep_handle: EP on whose request queue the LMR is bound
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete, see dat_dto.h; Linux has
 *	%KDAT_COMPLETION_MORE_FLAG in addition, see kdat_linux.h
 * @lmr_context: receives the context for local segments
 * @rmr_context: receives the context for the peer, 0 without a remote
 *	privilege; may be NULL in that case
 *
 * The contexts may be used at once in later posts to the same EP, which the device
 * executes after the binding. Each binding has new contexts; the contexts of the former
 * binding are refused. The request completes with operation %DAT_DTO_LMR_FMR.
 *
 * kDAPL reads the region and maps the pages during the call, except those of type
 * IA, which the consumer has mapped. Arrays and scatterlists may be freed after the
 * return. The pages must stay until the LMR is unbound: until the request of
 * dat_lmr_invalidate() has completed, whatever its status, or until a receive has
 * reported %DAT_DTO_RECEIVE_WITH_INVALIDATE with the rmr_context.
 *
 * Like any request, the binding takes one of the EP's max_request_dtos until it has
 * completed and its event was reaped. With %DAT_COMPLETION_SUPPRESS_FLAG the place
 * becomes free when the device has completed the request; a post that finds the
 * queue full polls for that. A binding that fails has an event in any case.
 *
 * If the request fails or is flushed, the LMR is not bound and nobody reaches the pages
 * through it. kDAPL replaces the LMR's registration in the background. If the connection
 * breaks after the request has completed, the LMR stays bound to its pages, and its
 * contexts stay valid in the Protection Zone. dat_lmr_invalidate() unbinds it on the
 * DISCONNECTED EP, where the request completes with %DAT_DTO_ERR_FLUSHED and unbinds it
 * all the same, or on another EP of the PZ that is CONNECTED; or the LMR is freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding, the pages
 *   cannot be mapped, or the LMR's registration is being replaced after a request
 *   about the LMR has failed
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR, or @ep_handle not an EP
 * * %DAT_INVALID_PARAMETER - unknown type, privileges or flags, too many or
 *   misaligned pages, an address that has no page, or a pointer is NULL
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED, or the
 *   LMR is bound, or an invalidation of the LMR has not completed, or a call frees the
 *   LMR and may still be refused
 * * %DAT_MODEL_NOT_SUPPORTED - the LMR is not from dat_lmr_allocate(); memory of
 *   type LMR or BYPASS; or the device cannot register it: a scatterlist with gaps
 *   inside, or one that begins inside a page, zero-based
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
DAT_RETURN __must_check dat_lmr_fmr(DAT_LMR_HANDLE lmr_handle, DAT_MEM_TYPE mem_type,
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
 * @ep_handle: EP on whose request queue the LMR is unbound
 * @user_cookie: comes back in the completion event
 * @completion_flags: how to complete;
 *	%DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG makes the request wait for the
 *	RDMA Reads posted before; other requests are carried out in order anyway
 *
 * The request completes with operation %DAT_DTO_LMR_INVALIDATE. From then on nobody
 * reaches the pages through the LMR, whatever the status, and the LMR may be bound again.
 * If the status is not %DAT_DTO_SUCCESS, its registration is replaced first, in the
 * background. This call cannot be used after a receive has reported
 * %DAT_DTO_RECEIVE_WITH_INVALIDATE with the LMR's rmr_context: the peer has unbound the
 * LMR with dat_ep_post_send_with_invalidate().
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the request is posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos are outstanding, or the
 *   LMR's registration is being replaced after a request about the LMR has failed
 * * %DAT_INVALID_HANDLE - @lmr_handle is not an LMR, or @ep_handle not an EP
 * * %DAT_INVALID_PARAMETER - flags that the EP does not allow
 * * %DAT_INVALID_STATE - the EP is neither CONNECTED nor DISCONNECTED, or the
 *   LMR is not bound, or a call frees the LMR and may still be refused
 * * %DAT_MODEL_NOT_SUPPORTED - the LMR is not from dat_lmr_allocate()
 * * %DAT_PROTECTION_VIOLATION - the LMR is of another PZ, or of scope EP and
 *   bound on another EP
 * * %DAT_RESERVED_LMR - it is the reserved LMR of the IA
 *
 * Example::
 *
 *	// The RDMA Reads posted before complete first.
 *	ret = dat_lmr_invalidate(lmr, ep, cookie,
 *				 DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
 *
 * See also: dat_lmr_fmr(), dat_lmr_allocate(),
 * dat_ep_post_send_with_invalidate()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN __must_check dat_lmr_invalidate(DAT_LMR_HANDLE lmr_handle,
					   DAT_EP_HANDLE ep_handle,
					   DAT_LMR_COOKIE user_cookie,
					   DAT_COMPLETION_FLAGS completion_flags);

/**
 * dat_lmr_sync_rdma_read() - make memory ready to be read by the peer
 * @ia_handle: the IA
 * @local_segments: memory that the CPU has written
 * @num_segments: entries of @local_segments
 *
 * If the provider attribute lmr_sync_req is %DAT_TRUE, call this after writing and before
 * an RDMA Read by the peer. No call is needed for memory that the consumer's requests
 * name, nor for data written before the memory was bound with dat_lmr_fmr().
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
DAT_RETURN __must_check dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
					       const DAT_LMR_TRIPLET *local_segments,
					       DAT_VLEN num_segments);

/**
 * dat_lmr_sync_rdma_write() - make memory that the peer has written ready to be read
 * @ia_handle: the IA
 * @local_segments: memory that the CPU is going to read
 * @num_segments: entries of @local_segments
 *
 * If the provider attribute lmr_sync_req is %DAT_TRUE, call this after an RDMA Write by
 * the peer and before reading. No call is needed for data that receives and RDMA Reads of
 * the consumer have brought, nor for data written before a binding of dat_lmr_fmr() has
 * ended.
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
DAT_RETURN __must_check dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
						const DAT_LMR_TRIPLET *local_segments,
						DAT_VLEN num_segments);

#endif /* DAT_MEM_H */
