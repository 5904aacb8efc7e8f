// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Discovery: asks a target which volumes the client may attach to, with the parameters of an
 * idle disk, which is idle again afterwards.
 *
 * Entry point: kbi_discover(), from kbi_connect_work().
 *
 * Meanwhile the disk has a link of its own, with one connection that is attached to nothing.
 * The answer is only shown to the administrator; connecting checks everything again.
 *
 * disk->admin guards disk->listed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/slab.h>
#include "ini.h"

/* Longest line about a volume, bytes: escaping may lengthen the name */
#define KBI_LINE	(4 * KBLK_NAME_LEN + 100)

/* Append a line about @listed to @page, which has @len bytes. Return the new length. */
static size_t kbi_list_line(char *page, size_t len, const struct kblk_listed *listed)
{
	bool read_only = le32_to_cpu(listed->flags) & KBLK_VOLUME_READ_ONLY;
	uuid_t uuid;

	import_uuid(&uuid, listed->uuid);
	return len + scnprintf(page + len, PAGE_SIZE - len, "%u %llu %pUb %s %*pE\n",
			       le32_to_cpu(listed->namespace), le64_to_cpu(listed->size),
			       &uuid, read_only ? "ro" : "rw",
			       (int)strlen(listed->subsystem), listed->subsystem);
}

/* Ask for as many volumes as fit in @page. Return 0 or an error number. */
static int kbi_list_page(struct kbi_disk *disk, char *page)
{
	struct kbi_queue *queue = &disk->link->queues[0];
	struct kblk_listed listed;
	u64 n = disk->list_from;
	size_t len = 0;
	int err;

	if (~le32_to_cpu(queue->welcome.features) & KBLK_FEATURE_LIST) {
		pr_err("%s: the target does not tell its volumes\n",
		       config_item_name(&disk->item));
		return -EOPNOTSUPP;
	}
	do {
		err = kbi_list(&disk->uses[0], n++, &listed);
		if (!err)
			len = kbi_list_line(page, len, &listed);
	} while (!err && len + KBI_LINE < PAGE_SIZE && !READ_ONCE(disk->removing));
	return err == -ENOENT ? 0 : err;
}

/**
 * kbi_discover() - ask a target for its volumes
 * @disk: disk that is about to be connected; ->listed and ->list_from are set
 *
 * Context: Process context, may sleep.
 * Return: 0 or an error number; the disk is idle in either case
 */
int kbi_discover(struct kbi_disk *disk)
{
	unsigned int flags;
	int err;

	lockdep_assert_held(&disk->admin);

	err = kbi_link_join(disk);
	if (!err) {
		flags = kbi_link_lock(disk->link);
		err = READ_ONCE(disk->removing) ? -EINTR : kbi_link_add(disk);
		if (!err)
			err = kbi_list_page(disk, disk->listed);
		kbi_link_remove(disk);
		kbi_link_unlock(disk->link, flags);
		kbi_disk_quit(disk);
	}
	disk->listing = false;
	atomic_set(&disk->state, KBI_IDLE);
	return kbi_connect_error(disk, err);
}
