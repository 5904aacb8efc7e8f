/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Interface Adapters, their registry, and calls for any handle.
 *
 * An IA is one port of an RDMA device. The devices ib_core knows are the
 * registry, so there is nothing for a third party to register with kDAPL, and
 * dat_registry_add_provider() and dat_registry_remove_provider() do not exist.
 */
#ifndef DAT_IA_H
#define DAT_IA_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

struct module;

/**
 * dat_registry_providers_related() - ask whether connections can change their IA
 * @ia1_name: name of an IA
 * @ia2_name: name of another
 * @answer: receives the relationship
 *
 * Connections of kDAPL do not move to another IA, so the answer is %DAT_HA_TRUE
 * if both names mean the same IA, and %DAT_HA_FALSE otherwise.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @answer is set
 * * %DAT_INVALID_PARAMETER - a pointer is NULL
 * * %DAT_PROVIDER_NOT_FOUND - one of the names is not in the registry
 *
 * Example::
 *
 *	DAT_HA_RELATIONSHIP answer;
 *
 *	ret = dat_registry_providers_related("mlx5_0/1", "mlx5_0/2", &answer);
 *	if (ret == DAT_SUCCESS && answer == DAT_HA_FALSE)
 *		pr_info("connections cannot move from port to port\n");
 *
 * See also: dat_registry_list_providers(), dat_ia_query()
 *
 * Source: DAT 2.0 dat_registry.h
 */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia1_name,
					  const DAT_NAME_PTR ia2_name,
					  DAT_HA_RELATIONSHIP *answer);

/**
 * dat_registry_list_providers() - list the IAs that can be opened
 * @max_to_return: entries of @dat_provider_list
 * @entries_returned: receives the number of IAs
 * @dat_provider_list: pointers to the structures to be filled in; may be NULL
 *	if @max_to_return is 0
 *
 * There is one entry for each port of each RDMA device that is present at this
 * moment.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the first @entries_returned structures are filled in
 * * %DAT_INVALID_PARAMETER - the list is too short, and @entries_returned says
 *   how long it must be; or @max_to_return is negative or a pointer is NULL
 *
 * Example::
 *
 *	DAT_PROVIDER_INFO *info = kcalloc(8, sizeof(*info), GFP_KERNEL);
 *	DAT_PROVIDER_INFO *list[8];
 *	DAT_COUNT i, n;
 *
 *	if (!info)
 *		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
 *				 DAT_RESOURCE_MEMORY);
 *	for (i = 0; i < 8; i++)
 *		list[i] = &info[i];
 *	if (dat_registry_list_providers(8, &n, list) == DAT_SUCCESS)
 *		for (i = 0; i < n; i++)
 *			pr_info("%s\n", info[i].ia_name);
 *	kfree(info);
 *
 * See also: dat_ia_open(), dat_registry_providers_related()
 *
 * Source: DAT 1.2 dat_registry_list_providers(3DAT)
 */
DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
				       DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO **dat_provider_list);

/**
 * dat_ia_openv() - open an IA for a given version of the interface
 * @name: "<device>/<port>" as rdma link prints it; the port may be left out
 *	if the device has only one
 * @async_evd_min_qlen: length, in events, of the asynchronous EVD to create; ignored if
 *	the consumer passes one
 * @async_evd: NULL handle on entry: an EVD for asynchronous events is created and
 *	returned, without an upcall, see dat_evd_modify_upcall(). Any other handle on
 *	entry is an EVD created with %DAT_EVD_ASYNC_FLAG, to be used instead
 * @ia: receives the handle
 * @dat_major: major version the consumer was compiled for
 * @dat_minor: minor version, at most the one offered
 * @dat_thread_safety: thread safety the consumer was compiled for
 *
 * Consumers call dat_ia_open(). An IA may be opened any number of times, by
 * one consumer or by several; each open has its own objects and gets all
 * events about the adapter. When the device disappears, every EP gets
 * %DAT_CONNECTION_EVENT_BROKEN and the asynchronous EVD
 * %DAT_ASYNC_ERROR_IA_CATASTROPHIC. The device does not wait for the consumer,
 * which frees its objects and closes the IA when it likes.
 *
 * "rdma resource show" names the calling module as the owner of the verbs objects of the
 * IA. If that module is unloaded, or fails to load, and leaves the IA open, the IA is
 * closed and the kernel's log says so.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the IA is open
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the queue length exceeds the device's
 *   limit
 * * %DAT_INVALID_PARAMETER - a pointer is NULL, the queue length is not
 *   positive, or the EVD does not accept asynchronous events
 * * %DAT_INVALID_HANDLE - @async_evd is neither NULL nor an EVD
 * * %DAT_PROVIDER_NOT_FOUND - subtype %DAT_NAME_NOT_REGISTERED,
 *   %DAT_MAJOR_NOT_FOUND, %DAT_MINOR_NOT_FOUND or %DAT_THREAD_SAFETY_NOT_FOUND
 *
 * Example::
 *
 *	DAT_EVD_HANDLE async_evd = NULL;
 *
 *	ret = dat_ia_openv("mlx5_0", 8, &async_evd, &ia, DAT_VERSION_MAJOR,
 *			   DAT_VERSION_MINOR, DAT_THREADSAFE);
 *	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)
 *		pr_err("no such IA, or of another version\n");
 *
 * See also: dat_ia_open(), dat_ia_close(), dat_evd_modify_upcall()
 *
 * Source: DAT 1.2 dat_ia_open(3DAT)
 */
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			DAT_BOOLEAN dat_thread_safety);

/*
 * dat_ia_openv() for the module with the name @consumer; @opener is an address in its
 * memory. The macro below passes both for the calling module. A module that is built into
 * the kernel has a name, too, but @opener NULL.
 */
DAT_RETURN __dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_min_qlen,
			  DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
			  DAT_BOOLEAN dat_thread_safety, const char *consumer,
			  const void *opener);

#define dat_ia_openv(...)	\
	__dat_ia_openv(__VA_ARGS__, KBUILD_MODNAME, THIS_MODULE)

/**
 * dat_ia_close() - close an IA
 * @ia: the IA
 * @flags: %DAT_CLOSE_GRACEFUL_FLAG: close the IA only if no object but the
 *	asynchronous EVD is left in it; %DAT_CLOSE_ABRUPT_FLAG: break all its
 *	connections and free all its objects first
 *
 * The call waits for running upcalls, and for another call that closes the IA; no upcall of
 * this IA runs after its return. The
 * asynchronous EVD is freed, too, if dat_ia_open() has created it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle and those of all its objects are invalid now
 * * %DAT_INVALID_HANDLE - @ia is not an open IA
 * * %DAT_INVALID_PARAMETER - unknown @flags
 * * %DAT_INVALID_STATE - the close is graceful and objects are left; or the call comes
 *   from an upcall of this IA, or from an upcall for which an upcall of this IA waits,
 *   directly or through others; or the driver of an iWARP adapter has not released a
 *   connection for 15 s: @ia stays valid, and the call can be repeated
 *
 * Example::
 *
 *	// If objects are left, free them, too. Refused, the device keeps the memory.
 *	ret = dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
 *	if (ret != DAT_SUCCESS)
 *		ret = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
 *	if (ret == DAT_SUCCESS)
 *		vfree(buffer);
 *
 * See also: dat_ia_open(), dat_evd_modify_upcall()
 *
 * Source: DAT 1.2 dat_ia_close(3DAT)
 */
DAT_RETURN __must_check dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags);

/**
 * dat_ia_query() - ask for the attributes of an IA and of kDAPL
 * @ia: the IA
 * @async_evd: receives the EVD for asynchronous events; may be NULL
 * @ia_mask: DAT_IA_FIELD bits of the members wanted
 * @ia_attr: receives the members; may be NULL if @ia_mask is 0
 * @prov_mask: DAT_PROVIDER_FIELD bits of the members wanted
 * @prov_attr: receives the members; may be NULL if @prov_mask is 0
 *
 * The limits are those of the device; its other users may leave less. Each call looks up
 * the addresses of the IA anew.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @ia is not an open IA
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or a pointer that is needed is
 *   NULL
 * * %DAT_INSUFFICIENT_RESOURCES - the device is gone
 *
 * Example::
 *
 *	DAT_PROVIDER_ATTR *prov = kzalloc(sizeof(*prov), GFP_KERNEL);
 *
 *	if (!prov)
 *		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
 *				 DAT_RESOURCE_MEMORY);
 *	ret = dat_ia_query(ia, NULL, DAT_IA_FIELD_NONE, NULL,
 *			   DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE, prov);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("%d bytes\n", prov->max_private_data_size);
 *	kfree(prov);
 *
 * See also: dat_ia_open(), dat_ia_memtype_hint(), dat_ep_create()
 *
 * Source: DAT 1.2 dat_ia_query(3DAT)
 */
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd,
			DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK prov_mask,
			DAT_PROVIDER_ATTR *prov_attr);

/**
 * dat_ia_memtype_hint() - ask which length and alignment registers best
 * @ia: the IA
 * @mem_type: type of memory to be registered
 * @length: length wanted, bytes
 * @mem_optimization: what to optimise for
 * @preferred_length: receives a length, bytes
 * @preferred_alignment: receives an alignment of the start, bytes
 *
 * Memory of the preferred length and alignment fills whole pages, so that no other
 * memory is exposed with it.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the preferred length and alignment are set
 * * %DAT_INVALID_HANDLE - @ia is not an open IA
 * * %DAT_INVALID_PARAMETER - unknown @mem_type or @mem_optimization, @length is
 *   0 or too much for one LMR, or a pointer is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - memory of this type cannot be registered
 *
 * Example::
 *
 *	DAT_VADDR alignment;
 *	DAT_VLEN length;
 *
 *	ret = dat_ia_memtype_hint(ia, DAT_MEM_TYPE_VIRTUAL, 10000,
 *				  DAT_MEM_OPTIMIZE_IA, &length, &alignment);
 *	if (ret == DAT_SUCCESS && alignment <= PAGE_SIZE)
 *		buffer = vmalloc(length);
 *
 * See also: dat_lmr_kcreate(), dat_ia_query()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia, DAT_MEM_TYPE mem_type,
			       DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length,
			       DAT_VADDR *preferred_alignment);

/**
 * dat_ia_reserved_lmr() - get the LMR that covers all DMA addresses
 * @ia: the IA
 * @reserved_lmr_handle: receives the handle
 * @reserved_lmr_context: receives the context for local segments
 *
 * Segments with this context hold DMA addresses of memory that the consumer has mapped
 * for the device. They give local access in every Protection Zone of the IA, and no
 * access to the peer. The LMR belongs to the IA and cannot be freed.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - handle and context are set
 * * %DAT_INVALID_HANDLE - @ia is not an open IA
 * * %DAT_INVALID_PARAMETER - a pointer is NULL
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 *
 * Example::
 *
 *	DAT_LMR_HANDLE reserved;
 *	DAT_LMR_TRIPLET seg = {
 *		.virtual_address = dma_address,	// mapped by the consumer
 *		.segment_length = 512,
 *	};
 *
 *	ret = dat_ia_reserved_lmr(ia, &reserved, &seg.lmr_context);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_post_send(ep, 1, &seg, cookie,
 *				       DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: dat_lmr_kcreate(), dat_ep_post_send()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia,
			       DAT_LMR_HANDLE *reserved_lmr_handle,
			       DAT_LMR_CONTEXT *reserved_lmr_context);

/**
 * dat_set_consumer_context() - attach a value of the consumer to an object
 * @dat_handle: any object
 * @context: the value; replaces the one before
 *
 * kDAPL never looks at the value. A reader on another CPU gets the old one or
 * the new one.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the value is attached
 * * %DAT_INVALID_HANDLE - @dat_handle names no object
 *
 * Example::
 *
 *	DAT_CONTEXT context = { .as_ptr = buffer };
 *
 *	ret = dat_set_consumer_context(ep, context);
 *
 * See also: dat_get_consumer_context(), dat_get_handle_type()
 *
 * Source: DAT 1.2 dat_set_consumer_context(3DAT)
 */
DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);

/**
 * dat_get_consumer_context() - read the value attached to an object
 * @dat_handle: any object
 * @context: receives the value, zero if none was ever set
 *
 * A consumer finds its own data about the object that an event names.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @context is set
 * * %DAT_INVALID_HANDLE - @dat_handle names no object
 * * %DAT_INVALID_PARAMETER - @context is NULL
 *
 * Example::
 *
 *	DAT_CONTEXT context;
 *
 *	ret = dat_get_consumer_context(ep, &context);
 *	if (ret == DAT_SUCCESS)
 *		buffer = context.as_ptr;
 *
 * See also: dat_set_consumer_context(), dat_get_handle_type()
 *
 * Source: DAT 1.2 dat_get_consumer_context(3DAT)
 */
DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle,
				    DAT_CONTEXT *context);

/**
 * dat_get_handle_type() - ask for the type of an object
 * @dat_handle: any object
 * @handle_type: receives its type
 *
 * Tells the type of the object that an asynchronous event names, and whether the
 * object still exists.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @handle_type is set
 * * %DAT_INVALID_HANDLE - @dat_handle names no object
 * * %DAT_INVALID_PARAMETER - @handle_type is NULL
 *
 * Example::
 *
 *	const DAT_ASYNCH_ERROR_EVENT_DATA *data =
 *		&event.event_data.asynch_error_event_data;
 *	DAT_HANDLE_TYPE type;
 *
 *	ret = dat_get_handle_type(data->dat_handle, &type);
 *	if (ret == DAT_SUCCESS && type == DAT_HANDLE_TYPE_SRQ &&
 *	    data->reason == DAT_SRQ_LOW_WATERMARK_EVENT)
 *		pr_info("the SRQ runs low on buffers\n");
 *
 * See also: dat_get_consumer_context(), dat_srq_set_lw(),
 * dat_ep_set_watermark()
 *
 * Source: DAT 1.2 dat_get_handle_type(3DAT)
 */
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle,
			       DAT_HANDLE_TYPE *handle_type);

/**
 * dat_strerror() - name the type and the subtype of a return
 * @value: the return of a DAT call
 * @major_message: receives the name of the type, a constant string
 * @minor_message: receives the name of the subtype, a constant string
 *
 * The names are those of the constants, "DAT_INVALID_HANDLE" and
 * "DAT_INVALID_HANDLE_EP" for example. Every return of a DAT call has both.
 * <dat/kdat_linux.h> names events, completion statuses and Endpoint states.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - both names are set
 * * %DAT_INVALID_PARAMETER - no call returns @value, or a pointer is NULL
 *
 * Example::
 *
 *	const char *type, *subtype;
 *
 *	if (dat_strerror(ret, &type, &subtype) == DAT_SUCCESS)
 *		pr_err("%s, %s\n", type, subtype);
 *
 * See also: kdat_event_name(), kdat_dto_status_name(), kdat_ep_state_name()
 *
 * Source: DAT 1.2 dat_strerror(3DAT)
 */
DAT_RETURN dat_strerror(DAT_RETURN value, const char **major_message,
			const char **minor_message);

#endif /* DAT_IA_H */
