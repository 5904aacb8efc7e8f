/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL for Linux: the lock order, and constants.
 *
 * Locks, outermost first:
 *
 *   kdapl_hca.sem      rwsem    read: device present; write: device leaving
 *   kdapl_ep.mutex     mutex    connect, accept, modify, reset of one Endpoint
 *   kdapl_conn.mutex   mutex    setting a connection up vs. taking it down
 *   kdapl_cr.mutex     mutex    the rdma_cm id of a request
 *   handler_mutex      mutex    of an rdma_cm id, also by rdma_lock_handler()
 *   kdapl_conn.dial    mutex    rdma_connect() vs. rdma_disconnect()
 *   kdapl_srq.mutex    mutex    resize, arming, remaking of one device queue
 *   kdapl_evd.mutex    mutex    CQs of one EVD, software events
 *   kdapl_evd.lock     irqsave  event list, CQ polling, receive ledger
 *   kdapl_ring.lock    irqsave  posting to one work queue
 *   kdapl_srq.lock     irqsave  counts and lists of an SRQ
 *   kdapl_ep.lock      irqsave  state, connection and attributes of an Endpoint
 *   kdapl_ia.lock      irqsave  list of an IA's objects
 *
 * Two EVD locks are never held together: if completions of one EVD cause work on another
 * EVD, it is collected in a struct kdapl_later and done after unlocking. No lock is held
 * during an upcall. Objects are found by handle under RCU; data
 * transfer calls stay inside that read-side section and take no reference.
 *
 * A file's prefix names its layer (those of the base have none, and ep_state.c lies
 * low). A layer calls only those below it: Kbuild lists them from top to bottom, and
 * "make lint" proves it. Documentation/design.rst says what each file holds, who
 * frees what, and how a message, a connection and the end of a device pass through
 * them.
 */
#ifndef KDAPL_H
#define KDAPL_H

#include <linux/module.h>
#include <rdma/rdma_cm.h>
#include <dat/kdat.h>
#include "compat.h"

/* Completions polled, and objects handled, under one lock. */
#define KDAPL_POLL_BATCH	16
/* Most objects handled with interrupts off. */
#define KDAPL_SECTION		64
/* Most segments of a request. */
#define KDAPL_MAX_IOV		32
#define KDAPL_MAX_PRIVATE_DATA	RDMA_MAX_PRIVATE_DATA
/* About 0.16 ms: the default of 655 ms punishes a short receive queue. */
#define KDAPL_MIN_RNR_TIMER	8
/* Timeout of each step of finding a peer; the CM has its own retries after that. */
#define KDAPL_RESOLVE_MS	5000

/* Is @p @mod itself, or an address in its code or data? */
static inline bool kdapl_in_module(const void *p, const struct module *mod)
{
	return p == mod || within_module((unsigned long)p, mod);
}

/* errno.c */
DAT_RETURN kdapl_errno_to_dat(int err);

/* debugfs.c */
void kdapl_debugfs_init(void);
void kdapl_debugfs_exit(void);

/* stats.c */
void kdapl_stats_init(void);
void kdapl_stats_exit(void);

#endif
