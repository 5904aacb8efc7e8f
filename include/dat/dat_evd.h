/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: Event Dispatchers.
 *
 * An EVD queues the events of the streams it was created for. The consumer reaps
 * them with dat_evd_dequeue(), by an upcall, or both. Any streams may share an
 * EVD. A full EVD loses nothing: events that do not fit wait in the completion
 * queue or with their object, and are delivered as room appears;
 * %DAT_ASYNC_ERROR_EVD_OVERFLOW announces the overflow once per episode.
 */
#ifndef DAT_EVD_H
#define DAT_EVD_H

#include <dat/dat_attr.h>
#include <dat/dat_error.h>
#include <dat/dat_event.h>
#include <dat/dat_types.h>

struct module;

/**
 * dat_evd_kcreate() - create an Event Dispatcher
 * @ia_handle: the IA
 * @evd_min_qlen: events that the EVD must have room for, at most the IA's
 *	max_evd_qlen
 * @upcall_policy: how the upcall is to be called
 * @upcall: upcall object, copied; may be NULL or hold no function if
 *	@upcall_policy is %DAT_UPCALL_DISABLE
 * @evd_flags: %DAT_EVD_ flags of the streams that may feed the EVD, at least one
 * @evd_handle: receives the handle
 *
 * The upcalls of an EVD that takes only DTO and RMR bind completions run in
 * softirq context, those of any other EVD in process context. A consumer that
 * wants the upcalls for its completions in process context adds
 * %DAT_EVD_SOFTWARE_FLAG. With %DAT_UPCALL_SINGLE_INSTANCE, the policy to prefer,
 * the upcalls of the EVD run one after another, one for each event. With
 * %DAT_UPCALL_NOTIFY one upcall without event announces all queued events; the consumer
 * dequeues until %DAT_QUEUE_EMPTY, and the next upcall comes with the next arrival.
 *
 * While an upcall runs, the calling module cannot be unloaded. If it is unloaded and
 * leaves the EVD, the EVD loses the upcall.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the EVD is empty and ready
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or @evd_min_qlen is above the IA's
 *   max_evd_qlen
 * * %DAT_INVALID_HANDLE - @ia_handle is not an open IA
 * * %DAT_INVALID_PARAMETER - @evd_min_qlen is not positive, unknown or no
 *   @evd_flags, unknown @upcall_policy or %DAT_UPCALL_TEARDOWN, no function
 *   for the policy, or a pointer is NULL
 *
 * Example::
 *
 *	DAT_UPCALL_OBJECT upcall = {
 *		.instance_data = buffer,
 *		.upcall_func = my_upcall,
 *	};
 *
 *	ret = dat_evd_kcreate(ia, 128, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
 *			      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd);
 *
 * See also: dat_evd_modify_upcall(), dat_evd_dequeue(), dat_evd_free(),
 * dat_ep_create()
 *
 * Source: kDAPL 2.0 kdat.h; DAT 1.2 dat_evd_create(3DAT)
 */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy,
			   const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle);

/*
 * dat_evd_kcreate() for the module @owner of the upcall function. The macro below
 * passes the calling module.
 */
DAT_RETURN __dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy,
			     const DAT_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags,
			     DAT_EVD_HANDLE *evd_handle,
			     struct module *owner);

#define dat_evd_kcreate(...)	__dat_evd_kcreate(__VA_ARGS__, THIS_MODULE)

/**
 * dat_evd_modify_upcall() - change how an EVD calls its consumer
 * @evd_handle: the EVD
 * @upcall_policy: the new policy. %DAT_UPCALL_DISABLE: no further event is
 *	reaped for an upcall. %DAT_UPCALL_TEARDOWN: in addition the call waits
 *	until no upcall runs
 * @upcall: the new upcall object, or %DAT_UPCALL_SAME to keep the present one
 * @upcall_flag: %DAT_UPCALL_INVOC_NEW: upcalls for events that arrive from now
 *	on; %DAT_UPCALL_INVOC_ANY: also for events that are queued already, so
 *	that nothing is missed between a last dequeue and this call
 *
 * The new policy and object are used from the next event on. Without
 * %DAT_UPCALL_TEARDOWN an upcall with the old object may still begin or run after
 * the return, for an event that was reaped before. %DAT_UPCALL_INVOC_NEW polls the EVD's
 * completion queues: completions found there count as queued.
 *
 * An upcall may make this call about its own EVD, also in softirq context: then the call
 * does not sleep, and %DAT_UPCALL_TEARDOWN is refused.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the new policy holds
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_PARAMETER - unknown @upcall_policy or @upcall_flag, or no
 *   function for the policy
 * * %DAT_INVALID_STATE - %DAT_UPCALL_TEARDOWN from an upcall of this EVD, or from an
 *   upcall for which an upcall of this EVD waits, directly or through others
 *
 * Example::
 *
 *	// No upcall runs from here on, ...
 *	ret = dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
 *				    DAT_UPCALL_INVOC_NEW);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *	// ... until here.
 *	ret = dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE,
 *				    DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY);
 *
 * See also: dat_evd_kcreate(), dat_evd_dequeue(), dat_ia_open()
 *
 * Source: kDAPL 2.0 kdat.h
 */
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle,
				 DAT_UPCALL_POLICY upcall_policy,
				 const DAT_UPCALL_OBJECT *upcall,
				 DAT_UPCALL_FLAG upcall_flag);

/*
 * dat_evd_modify_upcall() for the module @owner of the upcall function. The macro
 * below passes the calling module.
 */
DAT_RETURN __dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle,
				   DAT_UPCALL_POLICY upcall_policy,
				   const DAT_UPCALL_OBJECT *upcall,
				   DAT_UPCALL_FLAG upcall_flag,
				   struct module *owner);

#define dat_evd_modify_upcall(...) \
	__dat_evd_modify_upcall(__VA_ARGS__, THIS_MODULE)

/**
 * dat_evd_query() - ask for the parameters of an EVD
 * @evd_handle: the EVD
 * @evd_param_mask: DAT_EVD_FIELD bits of the members wanted
 * @evd_param: receives the members
 *
 * Members that were not asked for may be filled in as well. The call does not poll.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the members asked for are filled in
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_PARAMETER - unknown mask bits, or @evd_param is NULL
 *
 * Example::
 *
 *	DAT_EVD_PARAM param;
 *
 *	ret = dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("room for %d events\n", param.evd_qlen);
 *
 * See also: dat_evd_kcreate(), dat_evd_resize(), dat_evd_modify_upcall()
 *
 * Source: kDAPL 2.0 kdat.h; DAT 1.2 dat_evd_query(3DAT)
 */
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle,
			 DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param);

/**
 * dat_evd_resize() - change the length of an EVD
 * @evd_handle: the EVD
 * @evd_min_qlen: events that the EVD must have room for, at most the IA's
 *	max_evd_qlen
 *
 * No event is lost or delivered twice. An overflow after the call is announced
 * anew.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the EVD has room for @evd_min_qlen events
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_PARAMETER - @evd_min_qlen is not positive
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or above the IA's max_evd_qlen;
 *   nothing changed
 * * %DAT_INVALID_STATE - more events are queued than would fit; nothing changed
 *
 * Example::
 *
 *	// One more Endpoint with 64 receives is going to feed it.
 *	DAT_EVD_PARAM param;
 *
 *	ret = dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_evd_resize(evd, param.evd_qlen + 64);
 *
 * See also: dat_evd_kcreate(), dat_evd_query()
 *
 * Source: DAT 1.2 dat_evd_resize(3DAT)
 */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);

/**
 * dat_evd_post_se() - queue an event of the consumer's own
 * @evd_handle: EVD created with %DAT_EVD_SOFTWARE_FLAG
 * @event: the event: number %DAT_SOFTWARE_EVENT and the pointer to deliver; other members
 *	are ignored
 *
 * The event is delivered behind events that are queued already, by dat_evd_dequeue() or
 * an upcall. A consumer may use it to have its upcall run again later.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the event is queued
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_PARAMETER - the EVD does not take software events, @event is NULL, or it
 *   has another number
 * * %DAT_QUEUE_FULL - the EVD is full; the event was not queued, and no overflow
 *   is announced
 *
 * Example::
 *
 *	DAT_EVENT se = {
 *		.event_number = DAT_SOFTWARE_EVENT,
 *		.event_data.software_event_data.pointer = buffer,
 *	};
 *
 *	if (DAT_GET_TYPE(dat_evd_post_se(evd, &se)) == DAT_QUEUE_FULL)
 *		pr_warn_ratelimited("later\n");
 *
 * See also: dat_evd_dequeue(), dat_evd_kcreate()
 *
 * Source: DAT 1.2 dat_evd_post_se(3DAT)
 */
DAT_RETURN __must_check dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);

/**
 * dat_evd_dequeue() - reap the next event of an EVD
 * @evd_handle: the EVD
 * @event: receives the event
 *
 * If no event is queued, the EVD's completion queues are polled. The event of a
 * receive buffer reaps that buffer: it no longer counts as outstanding on its SRQ,
 * or as held by its EP. Several CPUs may dequeue; each event goes to one of them.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @event is filled in
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_PARAMETER - @event is NULL
 * * %DAT_QUEUE_EMPTY - there is no event
 *
 * Example::
 *
 *	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
 *		&event.event_data.dto_completion_event_data;
 *
 *	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
 *		if (event.event_number != DAT_DTO_COMPLETION_EVENT)
 *			continue;
 *		if (dto->status != DAT_DTO_SUCCESS)
 *			pr_info("request %llu: %s\n", dto->user_cookie.as_64,
 *				kdat_dto_status_name(dto->status));
 *	}
 *
 * See also: dat_evd_kcreate(), dat_evd_post_se(), dat_srq_query(),
 * kdat_dto_status_name()
 *
 * Source: DAT 1.2 dat_evd_dequeue(3DAT)
 */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);

/**
 * dat_evd_free() - free an Event Dispatcher
 * @evd_handle: the EVD
 *
 * Events that are still queued are dropped; connection requests among them are rejected.
 * The call waits for running upcalls; none runs after its return.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_STATE - subtype %DAT_INVALID_STATE_EVD_IN_USE: an EP, a Service Point or
 *   an IA feeds the EVD; or the call comes from an upcall of the EVD, or from an upcall
 *   for which an upcall of the EVD waits, directly or through others
 *
 * Example::
 *
 *	// Free the objects that feed the EVD first.
 *	dat_ep_free(ep);
 *	ret = dat_evd_free(evd);
 *
 * See also: dat_evd_kcreate(), dat_evd_modify_upcall(), dat_ep_free()
 *
 * Source: DAT 1.2 dat_evd_free(3DAT)
 */
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);

#endif /* DAT_EVD_H */
