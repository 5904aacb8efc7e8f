// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes in configfs: subsystems/<name>/namespaces/<number>/..., with the attributes of
 * kbt_ns_attrs.
 *
 * Entry points: kbt_ns_make() and kbt_ns_drop(), called by tgt_configfs.c. All attributes but
 * "enable" can be changed only while the volume is closed. configfs owns the struct kbt_ns,
 * kbt_ns_release() frees it.
 *
 * Locks: ns->mutex for the attributes, kbt_names for the list of the subsystem, ns->lock for
 * ns->instance. Opening or closing the backing may take long, so it is done with no lock but
 * ns->mutex, or with none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/printk.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "tgt.h"

static struct kbt_ns *kbt_ns_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbt_ns, group);
}

/*
 * Lock ns->mutex to change an attribute of a closed volume. Return 0, or -EBUSY without the
 * lock.
 */
static int kbt_ns_change(struct kbt_ns *ns)
{
	mutex_lock(&ns->mutex);
	if (!ns->open)
		return 0;
	mutex_unlock(&ns->mutex);
	return -EBUSY;
}

/* ---- The backing --------------------------------------------------------- */

static ssize_t kbt_ns_path_show(struct config_item *item, char *page)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	ssize_t n;

	mutex_lock(&ns->mutex);
	n = sysfs_emit(page, "%s\n", ns->path ?: "");
	mutex_unlock(&ns->mutex);
	return n;
}

static ssize_t kbt_ns_path_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	char *path;
	int err;

	if (!strcspn(page, "\n"))
		return -EINVAL;
	path = kstrndup(page, strcspn(page, "\n"), GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	err = kbt_ns_change(ns);
	if (err) {
		kfree(path);
		return err;
	}
	/* UUIDs that were set belong to the volume at the old path. */
	if (!ns->path || strcmp(ns->path, path)) {
		ns->set_uuid = uuid_null;
		ns->backing = uuid_null;
	}
	kfree(ns->path);
	ns->path = path;
	mutex_unlock(&ns->mutex);
	return count;
}
CONFIGFS_ATTR(kbt_ns_, path);

static ssize_t kbt_ns_read_only_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbt_ns_of(item)->read_only);
}

static ssize_t kbt_ns_read_only_store(struct config_item *item,
				      const char *page, size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	bool value;
	int err;

	err = kstrtobool(page, &value) ?: kbt_ns_change(ns);
	if (err)
		return err;
	ns->read_only = value;
	mutex_unlock(&ns->mutex);
	return count;
}
CONFIGFS_ATTR(kbt_ns_, read_only);

/* ---- Identity ------------------------------------------------------------ */

/*
 * Derive @uuid from the backing at ns->path, or set it to nil if there is no backing. Return
 * whether the UUID survives a reboot. Context: process.
 */
static bool kbt_ns_derive(struct kbt_ns *ns, uuid_t *uuid)
{
	struct file *file;
	bool persistent;

	lockdep_assert_held(&ns->mutex);

	*uuid = uuid_null;
	if (ns->file)
		return kbt_derive_uuid(ns->file, uuid);
	if (!ns->path)
		return false;
	file = kbt_backing_open(ns->path, O_RDONLY);
	if (IS_ERR(file))
		return false;
	persistent = kbt_derive_uuid(file, uuid);
	filp_close(file, NULL);
	return persistent;
}

static ssize_t kbt_ns_print_uuid(const uuid_t *uuid, char *page)
{
	if (uuid_is_null(uuid))
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%pUb\n", uuid);
}

static ssize_t kbt_ns_store_uuid(struct kbt_ns *ns, uuid_t *uuid,
				 const char *page, size_t count)
{
	uuid_t value;
	int err;

	err = kblk_uuid_parse(page, &value) ?: kbt_ns_change(ns);
	if (err)
		return err;
	*uuid = value;
	mutex_unlock(&ns->mutex);
	return count;
}

static ssize_t kbt_ns_uuid_show(struct config_item *item, char *page)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	uuid_t uuid;

	mutex_lock(&ns->mutex);
	if (ns->open)
		uuid = ns->uuid;
	else if (!uuid_is_null(&ns->set_uuid))
		uuid = ns->set_uuid;
	else
		kbt_ns_derive(ns, &uuid);
	mutex_unlock(&ns->mutex);
	return kbt_ns_print_uuid(&uuid, page);
}

static ssize_t kbt_ns_uuid_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);

	return kbt_ns_store_uuid(ns, &ns->set_uuid, page, count);
}
CONFIGFS_ATTR(kbt_ns_, uuid);

static ssize_t kbt_ns_backing_uuid_show(struct config_item *item, char *page)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	uuid_t uuid;

	mutex_lock(&ns->mutex);
	if (!kbt_ns_derive(ns, &uuid))
		uuid = uuid_null;
	mutex_unlock(&ns->mutex);
	return kbt_ns_print_uuid(&uuid, page);
}

static ssize_t kbt_ns_backing_uuid_store(struct config_item *item,
					 const char *page, size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);

	return kbt_ns_store_uuid(ns, &ns->backing, page, count);
}
CONFIGFS_ATTR(kbt_ns_, backing_uuid);

static ssize_t kbt_ns_instance_show(struct config_item *item, char *page)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	u64 instance;

	spin_lock_irq(&ns->lock);
	instance = ns->instance;
	spin_unlock_irq(&ns->lock);
	return sysfs_emit(page, "%llu\n", instance);
}

static ssize_t kbt_ns_instance_store(struct config_item *item,
				     const char *page, size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	u64 value;
	int err;

	err = kstrtou64(page, 0, &value) ?: kbt_ns_change(ns);
	if (err)
		return err;
	spin_lock_irq(&ns->lock);
	ns->instance = value;
	spin_unlock_irq(&ns->lock);
	mutex_unlock(&ns->mutex);
	return count;
}
CONFIGFS_ATTR(kbt_ns_, instance);

/* ---- Enabling ------------------------------------------------------------ */

static ssize_t kbt_ns_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbt_ns_of(item)->open);
}

/* Return whether a volume that was disabled is closed, or was enabled again since. */
static bool kbt_ns_has_closed(struct kbt_ns *ns)
{
	return !READ_ONCE(ns->open) || READ_ONCE(ns->enabled);
}

/*
 * Enable or disable the volume. Disabling waits until the volume is closed, however long its
 * medium takes; if a signal ends the wait, the volume is still going to be closed.
 */
static ssize_t kbt_ns_enable_store(struct config_item *item, const char *page,
				   size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	bool value;
	int err;

	err = kstrtobool(page, &value);
	if (err)
		return err;
	mutex_lock(&ns->mutex);
	if (value)
		err = kbt_ns_enable(ns);
	else
		kbt_ns_disable(ns);
	mutex_unlock(&ns->mutex);
	if (!value && wait_event_interruptible(ns->closed,
					       kbt_ns_has_closed(ns)))
		err = -EINTR;
	return err ?: count;
}
CONFIGFS_ATTR(kbt_ns_, enable);

static struct configfs_attribute *kbt_ns_attrs[] = {
	&kbt_ns_attr_path,
	&kbt_ns_attr_read_only,
	&kbt_ns_attr_uuid,
	&kbt_ns_attr_backing_uuid,
	&kbt_ns_attr_instance,
	&kbt_ns_attr_enable,
	NULL
};

/* ---- The directory ------------------------------------------------------- */

static void kbt_ns_release(struct config_item *item)
{
	struct kbt_ns *ns = kbt_ns_of(item);

	kfree(ns->path);
	kfree(ns);
}

static struct configfs_item_operations kbt_ns_ops = {
	.release = kbt_ns_release,
};

static const struct config_item_type kbt_ns_type = {
	.ct_item_ops = &kbt_ns_ops,
	.ct_attrs = kbt_ns_attrs,
	.ct_owner = THIS_MODULE,
};

struct config_group *kbt_ns_make(struct kbt_subsys *subsys, u32 nsid)
{
	struct kbt_ns *ns, *other;
	bool taken = false;

	ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return ERR_PTR(-ENOMEM);
	ns->subsys = subsys;
	ns->nsid = nsid;
	ns->instance = get_random_u64();
	mutex_init(&ns->mutex);
	spin_lock_init(&ns->lock);
	hash_init(ns->sessions);
	hash_init(ns->writers);
	init_waitqueue_head(&ns->closed);
	INIT_WORK(&ns->close_work, kbt_ns_close_work);
	config_group_init_type_name(&ns->group, "", &kbt_ns_type);
	spin_lock(&kbt_names);
	/* configfs compares names, but "1" and "01" are the same number. */
	list_for_each_entry(other, &subsys->namespaces, link)
		taken |= other->nsid == nsid;
	if (!taken)
		list_add_tail(&ns->link, &subsys->namespaces);
	spin_unlock(&kbt_names);
	if (taken) {
		kfree(ns);
		return ERR_PTR(-EEXIST);
	}
	return &ns->group;
}

/*
 * Remove the directory. configfs can make and remove no other directory meanwhile, so the wait
 * is limited; kbt_ns_close_work() goes on without the directory.
 */
void kbt_ns_drop(struct config_item *item)
{
	struct kbt_ns *ns = kbt_ns_of(item);

	mutex_lock(&ns->mutex);
	kbt_ns_disable(ns);
	mutex_unlock(&ns->mutex);
	spin_lock(&kbt_names);
	list_del(&ns->link);
	spin_unlock(&kbt_names);
	if (wait_event_killable_timeout(ns->closed, kbt_ns_has_closed(ns),
					KBT_STOP_WAIT) <= 0)
		pr_warn("%s is still in use; it will be closed when its medium has done all requests\n",
			ns->path);
	config_item_put(item);
}
