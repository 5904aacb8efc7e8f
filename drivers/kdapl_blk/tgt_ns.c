// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes: enable, disable, close. tgt_ns_configfs.c is the administrator's side, tgt_attach.c
 * the clients' side.
 *
 * Entry points: kbt_ns_enable(), kbt_ns_disable(), kbt_ns_unuse().
 *
 * ns->users counts the attachments of connections to the volume, and one more while it is
 * enabled. Disabling a volume ends its attachments. When the last attachment and its requests
 * are gone, kbt_ns_close_work() flushes the volume and closes it. All writes that were replied
 * to are then on the medium, so the administrator may enable the volume with the same
 * instance. If the flush fails, the volume becomes another instance, see struct kblk_identify.
 *
 * The medium may keep requests for ever, so nobody waits for them with a lock that others
 * need. An open volume therefore holds references on its item and on the module: its directory
 * may be gone before it is closed.
 *
 * The struct kbt_ns owns the open file while ->open. Locks: ns->mutex serialises enabling and
 * disabling; kbt_names guards ->enabled and ->users, so that no connection attaches after
 * ->enabled was cleared.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/printk.h>
#include "status.h"
#include "tgt.h"

#define KBT_FILE_BLOCK	512

DEFINE_SPINLOCK(kbt_names);

/* Open volumes, guarded by kbt_config. */
static LIST_HEAD(kbt_open);

/*
 * Return the size of @ns in bytes, rounded down to whole blocks. The backing
 * file or device may be resized while the volume is in use.
 */
u64 kbt_ns_size(struct kbt_ns *ns)
{
	u64 size = i_size_read(ns->file->f_mapping->host);

	return round_down(size, ns->block_size);
}

/* ---- Enabling ------------------------------------------------------------ */

/*
 * Flush @ns, which no connection uses. errseq_check() finds errors that fsync has reported to
 * another caller.
 */
static void kbt_ns_flush(struct kbt_ns *ns)
{
	int err = ns->read_only ? 0 : vfs_fsync(ns->file, 0);

	if (!err)
		err = errseq_check(&ns->file->f_mapping->wb_err, ns->wb_since);
	if (err)
		kbt_flush_failed(ns, err);
}

/*
 * Return why @ns cannot be open together with @other, or NULL. Volumes may share a backing if
 * all of them are read-only. Initiators take volumes with the same UUID for the same volume.
 */
static const char *kbt_ns_conflict(const struct kbt_ns *ns,
				   const struct kbt_ns *other)
{
	bool same = other->file->f_mapping == ns->file->f_mapping;

	if (!same && uuid_equal(&other->uuid, &ns->uuid))
		return "has the UUID of another volume";
	if (!same && !kbt_storage_overlaps(&other->storage, &ns->storage))
		return NULL;
	if (other->read_only && ns->read_only)
		return NULL;
	return same ? "is a volume already" : "has the data of another volume";
}

/* Make @ns one of the open volumes. Return 0, or -EBUSY if it conflicts with another one. */
static int kbt_ns_claim(struct kbt_ns *ns)
{
	const char *conflict = NULL;
	struct kbt_ns *other;

	mutex_lock(&kbt_config);
	list_for_each_entry(other, &kbt_open, open_link) {
		conflict = kbt_ns_conflict(ns, other);
		if (!conflict)
			continue;
		pr_err("%s %s, %s\n", ns->path, conflict, other->path);
		break;
	}
	if (!conflict)
		list_add(&ns->open_link, &kbt_open);
	mutex_unlock(&kbt_config);
	return conflict ? -EBUSY : 0;
}

/* Look @path up once, as @lookup says, and open what it leads to. */
static struct file *kbt_backing_try(const char *path, unsigned int lookup, int flags)
{
	struct file *file = ERR_PTR(-EINVAL);
	struct path found;
	umode_t mode;
	int err;

	err = kern_path(path, lookup, &found);
	if (err)
		return ERR_PTR(err);
	mode = d_inode(found.dentry)->i_mode;
	if (S_ISREG(mode) || S_ISBLK(mode))
		file = file_open_root(&found, "", flags | O_LARGEFILE, 0);
	path_put(&found);
	return file;
}

/**
 * kbt_backing_open() - open what may be the backing of a volume
 * @path: path of a block device or of a regular file
 * @flags: as for filp_open()
 *
 * Nothing else is opened: a FIFO would wait for its other end, another device might do
 * something. The file that was checked is the file that is opened.
 *
 * Context: Process context, may sleep.
 * Return: the file, or an error pointer, -EINVAL for what can be no backing.
 */
struct file *kbt_backing_open(const char *path, int flags)
{
	struct file *file = kbt_backing_try(path, LOOKUP_FOLLOW, flags);

	/* On a network file system, @path may lead to another file than was found before. */
	if (file == ERR_PTR(-ESTALE))
		file = kbt_backing_try(path, LOOKUP_FOLLOW | LOOKUP_REVAL, flags);
	return file;
}

/* Return 0 if the open file of @ns can be served, else an error number. */
static int kbt_ns_check(struct kbt_ns *ns)
{
	/*
	 * A read-only device can be opened for writing, but its driver would fail each write.
	 */
	if (ns->bdev && !ns->read_only && bdev_read_only(ns->bdev)) {
		pr_err("%s can only be read: set read_only\n", ns->path);
		return -EACCES;
	}
	if (ns->bdev && bdev_is_zoned(ns->bdev)) {
		pr_err("%s has zones, which clients would not know of\n", ns->path);
		return -EINVAL;
	}
	if (kbt_ns_size(ns) && ns->block_size <= KBLK_INLINE)
		return 0;
	pr_err("%s is no block device, and no file with contents\n", ns->path);
	return -EINVAL;
}

/*
 * Set ns->uuid. If the administrator gave the UUID of the backing, refuse a
 * path that now leads to another one.
 */
static int kbt_ns_identify(struct kbt_ns *ns)
{
	uuid_t derived;

	kbt_derive_uuid(ns->file, &derived);
	if (!uuid_is_null(&ns->backing) && !uuid_equal(&ns->backing, &derived)) {
		pr_err("%s is not what the volume was kept in: its UUID is %pUb, not %pUb\n",
		       ns->path, &derived, &ns->backing);
		return -ENODEV;
	}
	ns->uuid = uuid_is_null(&ns->set_uuid) ? derived : ns->set_uuid;
	return 0;
}

/*
 * Return whether @bdev takes requests without waiting. A driver that blocks does so in the
 * caller's context, whatever REQ_NOWAIT says.
 */
static bool kbt_never_waits(struct block_device *bdev)
{
	struct request_queue *q = bdev_get_queue(bdev);

	return bdev_nowait(bdev) &&
	       !(queue_is_mq(q) && q->tag_set->flags & BLK_MQ_F_BLOCKING);
}

static int kbt_ns_open(struct kbt_ns *ns)
{
	struct inode *inode;
	struct file *file;
	int err;

	/* O_EXCL claims a block device that will be written, as a mount does. */
	file = kbt_backing_open(ns->path, ns->read_only ? O_RDONLY :
							  O_RDWR | O_EXCL);
	if (IS_ERR(file)) {
		pr_err("cannot open %s: %s\n", ns->path, kblk_open_text(PTR_ERR(file)));
		return PTR_ERR(file);
	}
	/* The inode of the device, not that of the device node. */
	inode = file->f_mapping->host;
	ns->bdev = S_ISBLK(inode->i_mode) ? I_BDEV(inode) : NULL;
	ns->block_size = ns->bdev ? bdev_logical_block_size(ns->bdev) :
				    KBT_FILE_BLOCK;
	ns->nowait = ns->bdev && kbt_never_waits(ns->bdev);
	ns->wb_since = errseq_sample(&file->f_mapping->wb_err);
	ns->file = file;
	err = kbt_ns_check(ns);
	if (!err)
		err = kbt_ns_identify(ns);
	if (!err) {
		kbt_storage_find(file, &ns->storage);
		err = kbt_ns_claim(ns);
	}
	if (err) {
		ns->file = NULL;
		filp_close(file, NULL);
	}
	return err;
}

/*
 * Open the volume and let clients attach. Return -EBUSY if it was disabled and is not closed
 * yet. Context: process.
 */
int kbt_ns_enable(struct kbt_ns *ns)
{
	int err;

	lockdep_assert_held(&ns->mutex);
	if (ns->open)
		return ns->enabled ? 0 : -EBUSY;
	if (!ns->path)
		return -ENXIO;
	ns->io_wq = alloc_workqueue("kdapl_blk_tgt_io", WQ_UNBOUND |
				    WQ_MEM_RECLAIM, 0);
	if (!ns->io_wq)
		return -ENOMEM;
	err = kbt_ns_open(ns);
	if (err) {
		destroy_workqueue(ns->io_wq);
		return err;
	}
	config_item_get(&ns->group.cg_item);
	__module_get(THIS_MODULE);
	WRITE_ONCE(ns->open, true);
	spin_lock(&kbt_names);
	WRITE_ONCE(ns->enabled, true);
	ns->users = 1;
	spin_unlock(&kbt_names);
	return 0;
}

/* ---- Disabling ----------------------------------------------------------- */

static bool kbt_uses_ns(const struct kbt_attachment *att, void *ns)
{
	return att->ns == ns;
}

/* Drop a user of @ns. The last one, after kbt_ns_disable(), closes the volume. Context: any. */
void kbt_ns_unuse(struct kbt_ns *ns)
{
	lockdep_assert_held(&kbt_names);

	if (!--ns->users)
		queue_work(kbt_stop_wq, &ns->close_work);
}

/*
 * Disable the volume: end its attachments. kbt_ns_close_work() does the rest.
 * Context: process.
 */
void kbt_ns_disable(struct kbt_ns *ns)
{
	struct kbt_port *port;

	lockdep_assert_held(&ns->mutex);
	if (!ns->enabled)
		return;
	spin_lock(&kbt_names);
	WRITE_ONCE(ns->enabled, false);
	spin_unlock(&kbt_names);
	mutex_lock(&kbt_config);
	list_for_each_entry(port, &kbt_ports, link)
		kbt_end_matching(port, kbt_uses_ns, ns);
	mutex_unlock(&kbt_config);
	spin_lock(&kbt_names);
	kbt_ns_unuse(ns);
	spin_unlock(&kbt_names);
}

/* Flush and close the volume, which has no users. */
void kbt_ns_close_work(struct work_struct *work)
{
	struct kbt_ns *ns = container_of(work, struct kbt_ns, close_work);
	struct file *file = ns->file;

	kbt_ns_flush(ns);
	destroy_workqueue(ns->io_wq);
	mutex_lock(&ns->mutex);
	mutex_lock(&kbt_config);
	list_del(&ns->open_link);
	mutex_unlock(&kbt_config);
	ns->file = NULL;
	ns->bdev = NULL;
	mutex_unlock(&ns->mutex);
	/* fput() would leave the close to another work item, after ->open was cleared. */
	__fput_sync(file);
	/* kbt_exit() waits until this function returns. */
	module_put(THIS_MODULE);
	mutex_lock(&ns->mutex);
	WRITE_ONCE(ns->open, false);
	mutex_unlock(&ns->mutex);
	wake_up(&ns->closed);
	config_item_put(&ns->group.cg_item);
}
