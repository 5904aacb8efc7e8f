/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices and Interface Adapters: device.c, ia.c, ia_close.c, attr.c.
 */
#ifndef KDAPL_IA_H
#define KDAPL_IA_H

#include "kdapl.h"

/*
 * struct kdapl_hca - an RDMA device
 * @dev: valid while @gone is false and @sem is held, or while verbs objects
 *	of it exist
 * @sem: held for reading around anything that creates verbs objects
 * @gone: the device has left
 * @ref: one for the ib_client, one per IA
 * @ias: open IAs, changed under @sem for writing or kdapl_hcas_lock
 * @link: entry in the list of present devices
 * @events: device event handler, for drivers that report SRQ limits there
 * @srq_resize: ib_modify_srq(IB_SRQ_MAX_WR) is known to work
 * @rings_solicited: a CQ armed for solicited messages does ring for them
 * @srq_any_pz: an SRQ and the QPs on it may be of different PDs
 * @max_qlen: longest EVD
 * @attrs: limits; a copy, as calls ask for them when the device has gone
 * @keys: LMRs and RMRs by what is constant in the keys of their MRs
 * @next_vector: spreads CQs over completion vectors
 * @name: of the device, kept after it has gone
 */
struct kdapl_hca {
	struct ib_device *dev;
	struct rw_semaphore sem;
	bool gone;
	struct kref ref;
	struct list_head ias;
	struct list_head link;
	struct ib_event_handler events;
	bool srq_resize;
	bool srq_any_pz;
	bool rings_solicited;
	int max_qlen;
	struct ib_device_attr attrs;
	struct xarray keys;
	atomic_t next_vector;
	char name[IB_DEVICE_NAME_MAX];
};

extern struct ib_client kdapl_client;

void kdapl_hca_add_ia(struct kdapl_hca *hca, struct kdapl_ia *ia);
void kdapl_hca_del_ia(struct kdapl_ia *ia);
struct kdapl_hca *kdapl_hca_find(const char *name, u32 *port);
bool kdapl_hca_enter(struct kdapl_hca *hca);
void kdapl_hca_leave(struct kdapl_hca *hca);
void kdapl_hca_put(struct kdapl_hca *hca);

static inline DAT_IA_ADDRESS_PTR kdapl_addr_ptr(struct sockaddr_storage *addr)
{
	return (struct sockaddr *)addr;
}

/* The port in an address, in host order; 0 if there is none. */
static inline u16 kdapl_addr_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	default:
		return 0;
	}
}

struct kdapl_ia {
	struct kdapl_obj obj;
	struct kdapl_hca *hca;
	u32 port;
	struct list_head hca_link;
	spinlock_t lock;		/* protects objs */
	struct list_head objs;
	bool closing;			/* no new objects */
	atomic_t live;			/* objects not yet released */
	atomic_t lingering;		/* freed EPs that may still receive */
	wait_queue_head_t wait;		/* for live to drop */
	struct kdapl_evd *async_evd;
	bool own_async_evd;
	struct mutex mutex;		/* addresses, reserved LMR */
	struct mutex null_mutex;	/* null_evd */
	struct mutex close_mutex;	/* one decision to close */
	struct kdapl_evd *null_evd;	/* CQ for EPs without DTO EVDs */
	struct kdapl_lmr *reserved_lmr;
	struct kdapl_async catastrophic;
	struct sockaddr_storage addr[KDAPL_MAX_ADDRS];
	unsigned int naddrs;
	u32 max_msg;			/* bytes */
	bool iwarp;
	bool reads_to_key;		/* see sink.c */
	char consumer[MODULE_NAME_LEN];	/* whose module, for restrack */
};

DAT_RETURN kdapl_errno_to_dat(int err);
void kdapl_ia_attr(struct kdapl_ia *ia, DAT_IA_ATTR *attr);
void kdapl_provider_attr(struct kdapl_ia *ia, DAT_PROVIDER_ATTR *attr);
bool kdapl_addr_any(const struct sockaddr_storage *addr);
bool kdapl_comm_valid(const DAT_COMM *comm);
int kdapl_ia_refresh_addrs(struct kdapl_ia *ia);
int kdapl_ia_local_addr(struct kdapl_ia *ia, const struct sockaddr *peer,
			struct sockaddr_storage *addr);
void kdapl_evd_lend(struct kdapl_evd *evd, int delta);
void kdapl_ia_stop(struct kdapl_ia *ia, u8 pass);
void kdapl_ia_strip(struct kdapl_ia *ia);
void kdapl_ia_look(struct kdapl_ia *ia);
DAT_COUNT kdapl_max_private_data(struct kdapl_ia *ia);
u32 kdapl_max_lmr_block(struct kdapl_ia *ia);
struct kdapl_evd *kdapl_ia_null_evd(struct kdapl_ia *ia);

#endif
