/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: what this implementation offers beyond DAT.
 *
 * Nothing in here is part of the DAT standard, so <dat/kdat.h> does not include
 * this header. A consumer that has to build with another implementation as well
 * does without it.
 */
#ifndef KDAT_LINUX_H
#define KDAT_LINUX_H

#include <dat/dat_event.h>
#include <dat/dat_types.h>

/**
 * kdat_event_name() - name an event number
 * @event_number: the event_number of a DAT_EVENT
 *
 * The name is that of the constant, "DAT_CONNECTION_EVENT_BROKEN" for example. It
 * is never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown event" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	pr_info("%s\n", kdat_event_name(event.event_number));
 *
 * See also: kdat_dto_status_name(), kdat_ep_state_name(), dat_evd_dequeue(),
 * dat_strerror()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_event_name(DAT_EVENT_NUMBER event_number);

/**
 * kdat_dto_status_name() - name a completion status
 * @status: the status of a DTO or RMR bind completion event
 *
 * The name is that of the constant, "DAT_DTO_ERR_FLUSHED" for example. It is
 * never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown status" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
 *		&event.event_data.dto_completion_event_data;
 *
 *	if (dto->status != DAT_DTO_SUCCESS)
 *		pr_err_ratelimited("request %llu: %s\n", dto->user_cookie.as_64,
 *				   kdat_dto_status_name(dto->status));
 *
 * See also: kdat_event_name(), kdat_ep_state_name(), dat_evd_dequeue()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_dto_status_name(DAT_DTO_COMPLETION_STATUS status);

/**
 * kdat_ep_state_name() - name the state of an Endpoint
 * @ep_state: a state, from dat_ep_get_status() or dat_ep_query()
 *
 * The name is that of the constant, "DAT_EP_STATE_CONNECTED" for example. It is
 * never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown state" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	DAT_EP_STATE state;
 *
 *	ret = dat_ep_get_status(ep, &state, NULL, NULL);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("%s\n", kdat_ep_state_name(state));
 *
 * See also: kdat_event_name(), kdat_dto_status_name(), dat_ep_get_status()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_ep_state_name(DAT_EP_STATE ep_state);

#endif /* KDAT_LINUX_H */
