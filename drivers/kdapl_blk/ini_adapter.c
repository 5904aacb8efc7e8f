// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The adapter of a link: opened for connections, closed when they are down.
 *
 * Entry points: kbi_ia_open() and kbi_ia_close() from ini_link.c; kbi_ia_is_closed() before
 * the adapter is opened again, and when kbi_close_work() has news; kbi_ia_wait_closed() for
 * the last disk of a link.
 *
 * kDAPL reports the end of a connection when the driver has taken its queue pair down, which
 * may take long if the adapter is sick. Until then the adapter may still read and write what
 * it was given. So a request whose pages the target may access is held (kbi_disk_hold()): if it
 * were over, the pages would be somebody else's. The memory of the slots stays, too. All other
 * requests go on as after any loss: they are sent again when the link is connected again, or
 * fail after give_up_ms. The link is not connected before dat_ia_close() has returned in
 * kbi_close_work(); then nothing of the former connections is left, and what was held goes on
 * like the others.
 *
 * link->mutex guards all of this; kbi_close_work() does not take it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <dat/kdat_linux.h>
#include "ini.h"

#define KBI_ASYNC_QLEN		16

static void kbi_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	struct kbi_link *link = data;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		kbi_link_error(link, "the adapter is gone");
	else
		pr_warn_ratelimited("%s: asynchronous event %s\n", link->name,
				    kdat_event_name(event->event_number));
}

/* Open the adapter of @link. Return 0 or an error number. Context: process. */
int kbi_ia_open(struct kbi_link *link)
{
	DAT_UPCALL_OBJECT async = { link, kbi_async_upcall };
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;

	ret = kbi_link_open_ia(link, KBI_ASYNC_QLEN);
	if (ret != DAT_SUCCESS)
		return kblk_errno(ret);
	ret = dat_ia_query(link->ia, NULL, DAT_IA_FIELD_NONE, NULL,
			   DAT_PROVIDER_FIELD_LMR_SYNC_REQ, &provider);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(link->ia, &link->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_modify_upcall(link->async_evd,
					    DAT_UPCALL_SINGLE_INSTANCE, &async,
					    DAT_UPCALL_INVOC_ANY);
	if (ret == DAT_SUCCESS) {
		link->sync = provider.lmr_sync_req == DAT_TRUE;
		return 0;
	}
	kbi_ia_abort(link);
	return kblk_errno(ret);
}

/* Return whether the driver still has to end a connection of @link; all are stopped. */
static bool kbi_is_stuck(struct kbi_link *link)
{
	unsigned int i;

	for (i = 0; i < link->nqueues; i++)
		if (link->queues[i].stuck)
			return true;
	return false;
}

/**
 * kbi_ia_close() - close the adapter of a link, or begin to
 * @link: link; kbi_queues_stop() has stopped its queues
 *
 * Idempotent.
 *
 * Context: Process context, may sleep.
 */
void kbi_ia_close(struct kbi_link *link)
{
	char name[DAT_NAME_MAX_LENGTH];

	lockdep_assert_held(&link->mutex);

	if (!link->ia || link->stuck)
		return;
	/* The name of an adapter that has left is not known after dat_ia_close(). */
	kbi_link_ia(link, name);
	dat_evd_modify_upcall(link->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	if (kbi_is_stuck(link)) {
		pr_err("%s: the driver of %s does not end a connection: requests whose data it may have are held\n",
		       link->name, name);
		link->stuck = true;
		reinit_completion(&link->closed);
		queue_work(kbi_end_wq, &link->close_work);
		return;
	}
	dat_pz_free(link->pz);
	if (dat_ia_close(link->ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) {
		pr_warn("objects are left in %s\n", name);
		kbi_ia_abort(link);
	}
	link->ia = NULL;
}

/* Close the adapter of a link with ->stuck, for as long as this takes. */
void kbi_close_work(struct work_struct *work)
{
	struct kbi_link *link = container_of(work, struct kbi_link, close_work);
	unsigned int noio = memalloc_noio_save();
	DAT_RETURN ret;

	/* A call that is refused has waited. */
	do {
		ret = dat_ia_close(link->ia, DAT_CLOSE_ABRUPT_FLAG);
	} while (DAT_GET_TYPE(ret) == DAT_INVALID_STATE);
	memalloc_noio_restore(noio);
	complete(&link->closed);
	mod_delayed_work(kbi_wq, &link->reconnect_work, 0);
}

/**
 * kbi_ia_is_closed() - return whether nothing is left of former connections
 * @link: link whose connections are down
 *
 * The first call that returns true after the driver was done lets go what was held.
 *
 * Context: Process context, may sleep.
 * Return: whether the adapter may be opened
 */
bool kbi_ia_is_closed(struct kbi_link *link)
{
	struct kbi_disk *disk;
	unsigned int i;

	lockdep_assert_held(&link->mutex);

	if (!link->stuck)
		return true;
	if (!completion_done(&link->closed))
		return false;
	pr_info("%s: the driver has ended the connections\n", link->name);
	link->stuck = false;
	link->ia = NULL;
	for (i = 0; i < link->nqueues; i++)
		kbi_slots_forget(&link->queues[i]);
	list_for_each_entry(disk, &link->disks, link_entry)
		kbi_disk_cancel(disk);
	list_for_each_entry(disk, &link->disks, link_entry)
		kbi_disk_wait_cancelled(disk);
	return true;
}

/*
 * Wait until kbi_ia_is_closed(), so that the slots can be freed; no disk has requests.
 * Context: process.
 */
void kbi_ia_wait_closed(struct kbi_link *link)
{
	flush_work(&link->close_work);
	kbi_ia_is_closed(link);
}
