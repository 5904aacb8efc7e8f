/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL for Linux: objects shared by the files of the module.
 *
 * Locks, outermost first:
 *
 *   kdapl_hca.sem          device present (read) / device leaving (write)
 *   kdapl_ep.mutex         connect, accept, modify, reset of one Endpoint
 *   kdapl_conn.mutex       setting a connection up vs. taking it down
 *   kdapl_cr.mutex         the id of one Connection Request
 *   handler_mutex          of an rdma_cm id (rdma_lock_handler)
 *   kdapl_conn.dial        rdma_connect() vs. rdma_disconnect()
 *   kdapl_srq.mutex        resize and arming of one SRQ
 *   kdapl_evd.mutex        CQs of one EVD
 *   kdapl_evd.lock         event list, CQ polling, receive ledger; irqsave
 *   kdapl_ring.lock        posting to one work queue; irqsave
 *   kdapl_srq.lock         order of an SRQ's buffers; irqsave
 *   kdapl_ep.lock          state of an Endpoint; irqsave
 *   kdapl_ia.lock          list of an IA's objects; irqsave
 *
 * Two EVD locks are never held together: what an EVD's completions cause on
 * another EVD is collected in a struct kdapl_later and done after unlocking.
 * No lock is held during an upcall. Objects are found by handle under RCU; data
 * transfer calls stay inside that read-side section and take no reference.
 */
#ifndef KDAPL_H
#define KDAPL_H

#include <linux/list.h>
#include <linux/irq_poll.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/prefetch.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <dat/kdat.h>
#include "compat.h"

struct kdapl_cr;
struct kdapl_lmr;
struct kdapl_pz;
struct kdapl_rmr;
struct kdapl_srq;
struct kdapl_svc;

#define KDAPL_POLL_BATCH	16
#define KDAPL_MAX_IOV		32
#define KDAPL_MAX_ADDRS		8
#define KDAPL_MAX_PRIVATE_DATA	RDMA_MAX_PRIVATE_DATA
/* About 0.16 ms: the default of 655 ms punishes a short receive queue. */
#define KDAPL_MIN_RNR_TIMER	8
/* For each step of finding a peer; the CM has its own retries after that. */
#define KDAPL_RESOLVE_MS	5000

#include "handle.h"
#include "evd.h"
#include "ia.h"
#include "ep.h"
#include "cm.h"
#include "srq.h"
#include "mem.h"

void kdapl_debugfs_init(void);
void kdapl_debugfs_exit(void);

#endif
