/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA devices (hca.c). ia_device.c allocates a struct kdapl_hca when a device arrives
 * and strips its IAs when the device leaves.
 */
#ifndef KDAPL_HCA_H
#define KDAPL_HCA_H

#include <linux/jump_label.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <dat/dat_types.h>

/*
 * enum kdapl_quirk - what a driver does wrong, or does not do; quirk.c has what each is
 */
enum kdapl_quirk {
	KDAPL_QUIRK_SRQ_RESIZE,
	KDAPL_QUIRK_LOST_BUFFERS,
	KDAPL_QUIRK_NO_LAST_WQE,
	KDAPL_QUIRK_SRQ_ONE_PZ,
	KDAPL_QUIRK_SOLICITED,
	KDAPL_QUIRK_OPEN_READS,
	KDAPL_QUIRK_GATHER,
	KDAPL_QUIRK_READ_FENCE,
	KDAPL_QUIRK_FIRST_MESSAGE,
	KDAPL_QUIRK_PEER_ENDS,
	KDAPL_QUIRKS
};

/* How many of them consumers read of in the provider's, and in the IA's, attributes */
#define KDAPL_QUIRK_ATTRS	4
#define KDAPL_VENDOR_ATTRS	2

/* How long to wait for IB_EVENT_QP_LAST_WQE_REACHED on devices that have not raised it yet. */
#define KDAPL_LAST_WQE_TRY_MS	500U

/*
 * struct kdapl_hca - an RDMA device
 * @dev: valid while @gone is false and @sem is held, or while verbs objects
 *	of the device exist
 * @sem: held for reading while verbs objects are created and while a DAT object is
 *	released; for writing to wait for creators after @gone was set, and to strip all
 *	DAT objects
 * @gone: the device is leaving or has left; may be set while a caller holds @sem and
 *	found it not set, but nothing is stripped before the caller drops @sem
 * @left: nothing of this module is on the device any more; written with @sem held for
 *	writing
 * @ref: one for the ib_client, one per IA
 * @ias: open IAs; protected by kdapl_hcas_lock, and IAs are added and removed
 *	with @sem held for reading
 * @link: entry in kdapl_hcas, the list of present devices
 * @events: device event handler, for drivers that report SRQ limits there
 * @quirks: a bit for each enum kdapl_quirk
 * @last_wqe_ms: how long to wait for IB_EVENT_QP_LAST_WQE_REACHED; 0: it never comes
 * @last_wqe_seen: the event has come at least once
 * @quirk_attrs: what kDAPL does in place of the device, for consumers to read
 * @nquirk_attrs: number of @quirk_attrs
 * @vendor_attrs: what the device cannot do, for consumers to read
 * @nvendor_attrs: number of @vendor_attrs
 * @dma_syncs: mappings for the device may need syncs, see kdapl_dma_syncs
 * @max_qlen: largest queue length of an EVD
 * @attrs: copy of the limits, also needed after the device has left
 * @object_wq: releases objects, and other work that waits for the device
 * @down_wq: takes connections down
 * @attempt_wq: takes attempts to connect down, which may hang for long
 * @partings_lock: protects @partings and @npartings
 * @partings: struct kdapl_parting
 * @npartings: number of @partings
 * @keys: LMRs and RMRs by the constant bits of the keys of their MRs (pz_mr.c)
 * @addr_work: reads the addresses of the IAs again
 * @addr_pause: milliseconds of pause before the last retry of @addr_work; 0: no retry yet
 * @next_vector: spreads CQs over completion vectors
 * @all_link: entry in the list of all devices, also of those that have left
 * @free_work: frees the device after the last reference was dropped
 * @serial: number that no other device has or will have
 * @guid: node GUID, in the byte order of the CPU
 * @node_type: enum rdma_node_type
 * @name: name of the device, kept after the device has left; others read it by
 *	kdapl_hca_name(), since an administrator may change it at any time
 */
struct kdapl_hca {
	struct ib_device *dev;
	struct rw_semaphore sem;
	bool gone;
	bool left;
	struct kref ref;
	struct list_head ias;
	struct list_head link;
	struct ib_event_handler events;
	unsigned long quirks;
	unsigned int last_wqe_ms;
	bool last_wqe_seen;
	DAT_NAMED_ATTR quirk_attrs[KDAPL_QUIRK_ATTRS];
	int nquirk_attrs;
	DAT_NAMED_ATTR vendor_attrs[KDAPL_VENDOR_ATTRS];
	int nvendor_attrs;
	bool dma_syncs;
	int max_qlen;
	struct ib_device_attr attrs;
	struct workqueue_struct *object_wq;
	struct workqueue_struct *down_wq;
	struct workqueue_struct *attempt_wq;
	spinlock_t partings_lock;	/* see above */
	struct list_head partings;
	unsigned int npartings;
	struct xarray keys;
	struct delayed_work addr_work;
	unsigned int addr_pause;
	atomic_t next_vector;
	struct list_head all_link;
	struct work_struct free_work;
	u32 serial;
	u64 guid;
	u8 node_type;
	char name[IB_DEVICE_NAME_MAX];
};

/*
 * Is there a device whose mappings may need syncs? Without one, as on most machines, the
 * static key spares posts and completions the check.
 */
DECLARE_STATIC_KEY_FALSE(kdapl_dma_syncs);

struct kdapl_hca *kdapl_hca_alloc(void);
bool kdapl_hca_enter(struct kdapl_hca *hca);
void kdapl_hca_leave(struct kdapl_hca *hca);
void kdapl_hca_put(struct kdapl_hca *hca);
void kdapl_hcas_flush(void);
void kdapl_hca_set_name(struct kdapl_hca *hca);
void kdapl_hca_name(struct kdapl_hca *hca, char name[IB_DEVICE_NAME_MAX]);
bool kdapl_hca_name_of(u32 serial, char name[IB_DEVICE_NAME_MAX]);

static inline bool kdapl_has_quirk(const struct kdapl_hca *hca, enum kdapl_quirk quirk)
{
	return hca->quirks & BIT(quirk);
}

/* Return whether a device with these attributes registers memory by REG_MR. */
static inline bool kdapl_can_register(const struct ib_device_attr *attrs)
{
	return attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
	       attrs->max_fast_reg_page_list_len;
}

#endif
