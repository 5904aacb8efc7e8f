/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: the one header a consumer includes.
 *
 *   dat_types.h     scalars, handles, constants, flags
 *   dat_error.h     DAT_RETURN, its types and subtypes
 *   dat_event.h     events, upcalls
 *   dat_ia_attr.h   attributes of Interface Adapters and of the provider
 *   dat_attr.h      attributes and parameters of other objects, their mask bits
 *   dat_ia.h        Interface Adapters, registry, calls for any handle
 *   dat_evd.h       Event Dispatchers
 *   dat_ep.h        Endpoints: life, connecting, receive counts, watermarks
 *   dat_dto.h       Endpoints: posting of data transfers
 *   dat_srq.h       Shared Receive Queues
 *   dat_mem.h       Protection Zones, Local Memory Regions
 *   dat_rmr.h       Remote Memory Regions
 *   dat_cm.h        Service Points, Connection Requests
 *
 * Calls that this implementation offers beyond DAT are in <dat/kdat_linux.h>, and pools of
 * receive buffers in <dat/kdat_pool.h>, which a consumer includes itself.
 *
 * These rules hold for every call:
 *
 * - A bad handle (NULL, garbage, another type, freed) returns %DAT_INVALID_HANDLE and is
 *   never dereferenced, even if another CPU frees the object during the call.
 * - All calls may race with each other on any objects; the loser gets an error.
 * - A call that fails has changed nothing. Its outputs are undefined, except those
 *   of dat_registry_list_providers().
 * - "Any context" means process, softirq and hardirq context, with interrupts
 *   disabled, and every upcall. "Process context" excludes softirq upcalls.
 * - Calls described with "polls the completion queues" are of any context, too. They take
 *   completions off the device's queues, so they may take longer than others, and they
 *   may cause upcalls on other CPUs.
 * - Objects belong to the open IA handle they were created with. Objects of two handles
 *   cannot be used together, even if both handles are of the same IA.
 * - After the device is gone, calls that need it return
 *   %DAT_INSUFFICIENT_RESOURCES with subtype %DAT_RESOURCE_DEVICE; objects can
 *   still be queried, drained and freed.
 * - %DAT_INTERNAL_ERROR is possible in addition to the returns listed.
 *
 * The calls of user-space DAPL (CNOs, waiting), provider registration and DAT extensions
 * are not offered.
 */
#ifndef KDAT_H
#define KDAT_H

#include <linux/module.h>

#define DAT_VERSION_MAJOR	2
#define DAT_VERSION_MINOR	0
#define DAT_THREADSAFE		DAT_TRUE

#include <dat/dat_types.h>
#include <dat/dat_error.h>
#include <dat/dat_event.h>
#include <dat/dat_ia_attr.h>
#include <dat/dat_attr.h>
#include <dat/dat_ia.h>
#include <dat/dat_evd.h>
#include <dat/dat_ep.h>
#include <dat/dat_dto.h>
#include <dat/dat_srq.h>
#include <dat/dat_mem.h>
#include <dat/dat_rmr.h>
#include <dat/dat_cm.h>

/**
 * dat_ia_open() - open an IA
 * @name: "<device>/<port>" as "rdma link" prints it; the port may be left out if
 *	the device has only one
 * @qlen: length, in events, of the asynchronous EVD to create
 * @async_evd: NULL handle on entry: an EVD without upcall is created and returned. Any
 *	other handle on entry is an EVD for asynchronous events to be used instead
 * @ia: receives the handle
 *
 * This is dat_ia_openv() with the version of these headers.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the IA is open
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the queue length exceeds the device's
 *   limit
 * * %DAT_INVALID_PARAMETER - a pointer is NULL, the queue length is not
 *   positive, or the EVD does not accept asynchronous events
 * * %DAT_INVALID_HANDLE - @async_evd is neither NULL nor an EVD
 * * %DAT_PROVIDER_NOT_FOUND - no IA of this name, version or thread safety; the subtype
 *   says which of them
 *
 * Example::
 *
 *	DAT_EVD_HANDLE async_evd = NULL;	// create one
 *
 *	ret = dat_ia_open("mlx5_0/1", 8, &async_evd, &ia);
 *	if (ret != DAT_SUCCESS)
 *		return ret;
 *
 * See also: dat_ia_openv(), dat_ia_close(), dat_ia_query(),
 * dat_registry_list_providers()
 *
 * Source: DAT 1.2 dat_ia_open(3DAT)
 */
#define dat_ia_open(name, qlen, async_evd, ia)				\
	dat_ia_openv(name, qlen, async_evd, ia, DAT_VERSION_MAJOR,	\
		     DAT_VERSION_MINOR, DAT_THREADSAFE)

#endif /* KDAT_H */
