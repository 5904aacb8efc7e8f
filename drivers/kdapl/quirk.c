// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What drivers do wrong, or do not do, and kDAPL makes up for.
 *
 * One table says which drivers these are; the code that makes up for it asks
 * kdapl_has_quirk(). Rules beside it name drivers, too: who resizes SRQs and always raises
 * the event of the last WQE (kdapl_add_one()), and whose Reads need no key of the sink
 * (kdapl_ia_wants_read_key()). "Quirks of adapters" in
 * Documentation/design.rst has the places in the drivers' source.
 *
 * Documentation/drivers has patches for rxe and siw. No call of the verbs tells whether a driver
 * has them, and most of what they mend shows only when a connection breaks at the right moment,
 * so the administrator says it: the parameter "mended".
 */
#include <dat/kdat_linux.h>
#include <linux/module.h>
#include "ia.h"

#define RXE	BIT_ULL(RDMA_DRIVER_RXE)
#define SIW	BIT_ULL(RDMA_DRIVER_SIW)
#define QEDR	BIT_ULL(RDMA_DRIVER_QEDR)
/* Drivers without a number, that may do as rxe does. */
#define UNKNOWN	BIT_ULL(RDMA_DRIVER_UNKNOWN)

static char *mended[2];
static unsigned int nmended;
module_param_array(mended, charp, &nmended, 0444);
MODULE_PARM_DESC(mended, "drivers that have all patches of Documentation/drivers: rxe, siw");

/*
 * struct kdapl_quirk_row - a quirk
 * @drivers: that have it, a bit for each enum rdma_driver_id
 * @patched: those of @drivers that a patch mends
 * @of_srq: devices without SRQs do not have it
 * @attr: what consumers read in the attributes of the provider; no name: nothing
 * @vendor_attr: the same in the attributes of the IA
 */
struct kdapl_quirk_row {
	u64 drivers;
	u64 patched;
	bool of_srq;
	DAT_NAMED_ATTR attr;
	DAT_NAMED_ATTR vendor_attr;
};

static const struct kdapl_quirk_row kdapl_quirks[KDAPL_QUIRKS] = {
	/* kdapl_add_one() adds the devices whose driver is not known to resize well. */
	[KDAPL_QUIRK_SRQ_RESIZE] = {
		.of_srq = true,
		.attr = { "srq-resize", "the device's SRQ stays as it was made" },
	},
	/* The buffer of a message that was under way when its QP died may not come back. */
	[KDAPL_QUIRK_LOST_BUFFERS] = {
		.drivers = RXE | UNKNOWN, .patched = RXE, .of_srq = true,
		.attr = { "lost-buffers", "are looked for when a connection has ended" },
	},
	/* IB_EVENT_QP_LAST_WQE_REACHED never comes. Others show that by their first QPs. */
	[KDAPL_QUIRK_NO_LAST_WQE] = {
		.drivers = SIW | QEDR, .of_srq = true,
		.attr = { "last-wqe-event", "is not waited for" },
	},
	/* The lkey of an SRQ's buffer is looked for in the PD of the QP. */
	[KDAPL_QUIRK_SRQ_ONE_PZ] = {
		.drivers = RXE, .patched = RXE, .of_srq = true,
	},
	/* The solicited flag is looked for in the receive request. */
	[KDAPL_QUIRK_SOLICITED] = {
		.drivers = SIW, .patched = SIW,
		.attr = { "solicited-messages", "each message notifies" },
	},
	/* RDMA Reads of memory that is not open for them are answered. */
	[KDAPL_QUIRK_OPEN_READS] = {
		.drivers = SIW, .patched = SIW,
		.vendor_attr = { KDAT_ATTR_READ_PRIVILEGE, "ignored" },
	},
	/* Segments behind the first of several page lists: kdapl_sge_odd(). */
	[KDAPL_QUIRK_GATHER] = {
		.drivers = SIW, .patched = SIW,
		.vendor_attr = { KDAT_ATTR_GATHER_FMR_PAGES, "last segment" },
	},
	/* A fenced RDMA Read breaks the connection. */
	[KDAPL_QUIRK_READ_FENCE] = { .drivers = SIW, .patched = SIW },
	/* A message that comes right behind siw's answer is overlooked: kdapl_siw_wake(). */
	[KDAPL_QUIRK_FIRST_MESSAGE] = { .drivers = SIW, .patched = SIW },
	/* The peer decides when attempts and answers end: conn_siw.c. */
	[KDAPL_QUIRK_PEER_ENDS] = { .drivers = SIW },
};

/* A bit for each driver that the administrator has mended */
static u64 kdapl_mended;

/* Refuse a wrong parameter: without what it says consumers would be told untruths. */
int __init kdapl_quirk_setup(void)
{
	unsigned int i;

	for (i = 0; i < nmended; i++) {
		if (!strcmp(mended[i], "rxe")) {
			kdapl_mended |= RXE;
		} else if (!strcmp(mended[i], "siw")) {
			kdapl_mended |= SIW;
		} else {
			pr_err("kdapl: mended=: there are patches for the drivers rxe and siw only\n");
			return -EINVAL;
		}
	}
	return 0;
}

static void kdapl_quirk_tell(DAT_NAMED_ATTR *attrs, int *n, const DAT_NAMED_ATTR *attr)
{
	if (attr->name)
		attrs[(*n)++] = *attr;
}

/* Find out the quirks of @hca, beside those of @quirks, which are not of the driver alone. */
void kdapl_quirk_find(struct kdapl_hca *hca, unsigned long quirks)
{
	u64 driver = BIT_ULL(hca->dev->ops.driver_id);
	const struct kdapl_quirk_row *row = kdapl_quirks;
	unsigned int i;

	for (i = 0; i < KDAPL_QUIRKS; i++, row++) {
		if (!(driver & row->drivers & ~(row->patched & kdapl_mended)) && !(quirks & BIT(i)))
			continue;
		if (row->of_srq && !hca->attrs.max_srq)
			continue;
		hca->quirks |= BIT(i);
		kdapl_quirk_tell(hca->quirk_attrs, &hca->nquirk_attrs, &row->attr);
		kdapl_quirk_tell(hca->vendor_attrs, &hca->nvendor_attrs, &row->vendor_attr);
	}
}
