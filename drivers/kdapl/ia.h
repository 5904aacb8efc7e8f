/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Interface Adapters: ia.c opens and queries them, ia_close.c closes them, ia_device.c
 * has the devices. attr.c and addr.c, of the lowest layer, have the attributes and
 * addresses of an IA, which every layer needs; ia_addr.c notices changes of addresses.
 */
#ifndef KDAPL_IA_H
#define KDAPL_IA_H

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <net/ipv6.h>
#include <dat/kdat_portal.h>
#include "ep_state.h"
#include "evd.h"
#include "handle.h"
#include "hca.h"

struct kdapl_lmr;

/* What an IA counts since it was opened. None of this happens once a message. */
enum kdapl_count {
	KDAPL_COUNT_REQUESTS,		/* connection requests that arrived */
	KDAPL_COUNT_TURNED_AWAY,	/* of these, rejected for want of room or memory */
	KDAPL_COUNT_REJECTED,		/* of these, rejected by the consumer */
	KDAPL_COUNT_ESTABLISHED,	/* connections, either side's */
	KDAPL_COUNT_LOW,		/* low watermarks that fired */
	KDAPL_COUNT_SOFT,		/* soft high watermarks that fired */
	KDAPL_COUNTS
};

#define KDAPL_LINGER_BUCKETS	256

/*
 * struct kdapl_ia - Interface Adapter
 * @obj: members common to all objects
 * @hca: the device; referenced
 * @port: port of the device
 * @lock: protects @objs, @closing and @shared_async_evds
 * @objs: all objects of the IA, until they are released
 * @closing: no object may be added to @objs
 * @live: number of @objs
 * @shared_async_evds: number of @objs that other IAs use for asynchronous events
 * @lingering: freed EPs whose QPs may still receive, hashed by handle, see
 *	kdapl_conn_linger()
 * @linger_lock: protects @lingering and @last_lingering; a leaf
 * @last_lingering: number of EPs that ever entered @lingering
 * @wait: wait queue for @live to drop, for EPs to leave @lingering, and for service
 *	connections
 * @async_evd: EVD for asynchronous events, used and referenced; NULL once the
 *	IA has been closed
 * @own_async_evd: dat_ia_open() has created @async_evd
 * @mutex: protects the addresses and @reserved_lmr; nests inside ep->mutex,
 *	conn->mutex, sp->mutex and pz->svc_mutex
 * @null_mutex: protects @null_evd
 * @close_mutex: held by dat_ia_close()
 * @null_evd: EVD with the CQ for work queues that have no EVD; or NULL
 * @reserved_lmr: reserved LMR, created when first asked for
 * @catastrophic: DAT_ASYNC_ERROR_IA_CATASTROPHIC, for a device that leaves
 * @first_addr: the first of @addr, which consumers read through dat_ia_query()
 * @addr: addresses that rdma_cm maps to @port
 * @naddrs: number of @addr
 * @max_msg: longest message in bytes
 * @iwarp: the port speaks iWARP
 * @reads_to_key: sinks of RDMA Reads must be registered, see dto_sink.c
 * @consumer: name of the module that opened the IA, for restrack
 * @since: when the IA was opened, in seconds of real time
 * @counts: see enum kdapl_count
 * @ended: connections and attempts that have ended, by enum kdapl_end
 * @opener: an address in the memory of this module, compared and never followed; NULL if
 *	the module is built in
 */
struct kdapl_ia {
	struct kdapl_obj obj;
	struct kdapl_hca *hca;
	u32 port;
	spinlock_t lock;		/* see above */
	struct list_head objs;
	bool closing;
	atomic_t live;
	unsigned int shared_async_evds;
	struct hlist_head lingering[KDAPL_LINGER_BUCKETS];
	spinlock_t linger_lock;		/* see above */
	u64 last_lingering;
	wait_queue_head_t wait;
	struct kdapl_evd *async_evd;
	bool own_async_evd;
	struct mutex mutex;		/* see above */
	struct mutex null_mutex;	/* see above */
	struct mutex close_mutex;	/* see above */
	struct kdapl_evd *null_evd;
	struct kdapl_lmr *reserved_lmr;
	struct kdapl_async catastrophic;
	struct sockaddr_storage first_addr;
	struct sockaddr_storage *addr;
	unsigned int naddrs;
	u32 max_msg;
	bool iwarp;
	bool reads_to_key;
	char consumer[MODULE_NAME_LEN];
	time64_t since;
	atomic_long_t counts[KDAPL_COUNTS];
	atomic_long_t ended[KDAPL_NENDS];
	const void *opener;
};

/* quirk.c */
int kdapl_quirk_setup(void);
void kdapl_quirk_find(struct kdapl_hca *hca, unsigned long quirks);

/* attr.c */
void kdapl_ia_attr(struct kdapl_ia *ia, DAT_IA_ATTR *attr);
void kdapl_provider_attr(struct kdapl_ia *ia, DAT_PROVIDER_ATTR *attr);
DAT_COUNT kdapl_max_private_data(struct kdapl_ia *ia);
u32 kdapl_max_lmr_block(struct kdapl_ia *ia);
bool kdapl_ia_wants_read_key(struct kdapl_ia *ia);
/*
 * struct kdapl_rule - a rule for a member of a call's attributes
 * @name: of the member
 * @value: that it has
 * @ok: is that right?
 * @says: what is right
 */
struct kdapl_rule {
	const char *name;
	s64 value;
	bool ok;
	const char *says;
};

bool kdapl_rules_obeyed(const struct kdapl_ia *ia, const struct kdapl_rule *rules,
			unsigned int n);
bool kdapl_comm_valid(const DAT_COMM *comm);

/* ia_device.c */
extern struct ib_client kdapl_client;
void kdapl_hca_add_ia(struct kdapl_hca *hca, struct kdapl_ia *ia);
void kdapl_hca_del_ia(struct kdapl_ia *ia);
struct kdapl_hca *kdapl_hca_find(const char *name, u32 *port);
bool kdapl_device_id(const struct ib_device *dev, u32 port, u64 *id);
struct kdapl_ia *kdapl_hca_next_ia(struct kdapl_hca *hca, struct kdapl_ia *ia);
void kdapl_hcas_update_addrs(void);
unsigned int kdapl_ia_ids(const char *name, u64 *ids, unsigned int max);
bool kdapl_ia_again(const KDAT_IA_IDENT *ident, const char *name, u64 *id);

/* ia_find.c */
DAT_RETURN kdapl_ia_find(const struct sockaddr *address, u64 *ia_id);

/* ia_close.c */
void kdapl_ia_stop(struct kdapl_ia *ia, bool wait);
void kdapl_ia_strip(struct kdapl_ia *ia);

/* ia_notify.c */
void kdapl_notify_cleanup(void);
void kdapl_notify(int what);
unsigned int kdapl_notify_forget(const struct module *mod);

/* pool.c */
void kdapl_pools_stop(const struct module *mod);
unsigned int kdapl_pools_forget(const struct module *mod);

/* portal.c */
unsigned int kdapl_servers_forget(const struct module *mod);
void kdapl_servers_stop(const struct module *mod);
int kdapl_servers_init(void);
void kdapl_servers_cleanup(void);

/* ia_unload.c */
int kdapl_unload_setup(void);
void kdapl_unload_cleanup(void);

/* ia_addr.c */
int kdapl_addr_setup(void);
void kdapl_addr_cleanup(void);
void kdapl_hca_addr_work(struct work_struct *work);
void kdapl_hca_update_addrs(struct kdapl_hca *hca);
void kdapl_addrs_changed(void);

#endif
