// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Disks in configfs: a directory for each disk, with the attributes of kbi_disk_attrs.
 *
 * Writing 1 to "connected" connects and adds the disk, or fails; writing 0, or removing the
 * directory, removes the disk. The removal of the directory waits KBI_END_WAIT at most, since
 * it holds locks of configfs. Other attributes can be changed only while there is no disk.
 *
 * configfs owns the struct kbi_disk, and kbi_end_work() holds a reference; kbi_disk_release()
 * frees it. Locks: disk->admin serialises changes; attributes are shown without a lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <linux/utsname.h>
#include "ini.h"
#include "ini_latency.h"

static struct kbi_disk *kbi_disk_of(struct config_item *item)
{
	return container_of(item, struct kbi_disk, item);
}

/* ---- Parameters ---------------------------------------------------------- */

/*
 * A parameter: its name, its offset in struct kbi_params, and the range of a number or the
 * size of a string.
 */
struct kbi_param {
	const char *name;
	size_t at;
	size_t size;
	u32 min;
	u32 max;
};

/*
 * Lock disk->admin to change a parameter of an idle disk. Return 0, or -EBUSY without the
 * lock.
 */
static int kbi_disk_change(struct kbi_disk *disk)
{
	/* Check first: the lock may be held for as long as a disconnect takes. */
	if (kbi_state(disk) != KBI_IDLE)
		return -EBUSY;
	mutex_lock(&disk->admin);
	if (kbi_state(disk) == KBI_IDLE)
		return 0;
	mutex_unlock(&disk->admin);
	return -EBUSY;
}

static void *kbi_param_of(struct config_item *item,
			  const struct kbi_param *param)
{
	return (void *)&kbi_disk_of(item)->params + param->at;
}

static ssize_t kbi_show_string(struct config_item *item,
			       const struct kbi_param *param, char *page)
{
	return sysfs_emit(page, "%s\n", (char *)kbi_param_of(item, param));
}

static ssize_t kbi_store_string(struct config_item *item,
				const struct kbi_param *param,
				const char *page, size_t count)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	size_t len = strcspn(page, "\n");
	int err;

	if (!len || len >= param->size)
		return -EINVAL;
	err = kbi_disk_change(disk);
	if (err)
		return err;
	strscpy(kbi_param_of(item, param), page, len + 1);
	mutex_unlock(&disk->admin);
	return count;
}

static ssize_t kbi_show_number(struct config_item *item,
			       const struct kbi_param *param, char *page)
{
	return sysfs_emit(page, "%u\n", *(u32 *)kbi_param_of(item, param));
}

static ssize_t kbi_store_number(struct config_item *item,
				const struct kbi_param *param,
				const char *page, size_t count)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	u32 value;
	int err;

	err = kstrtou32(page, 0, &value);
	if (err)
		return err;
	if (value < param->min || value > param->max) {
		pr_err("%s: %s: %u is not between %u and %u\n",
		       config_item_name(&disk->item), param->name, value, param->min,
		       param->max);
		return -EINVAL;
	}
	err = kbi_disk_change(disk);
	if (err)
		return err;
	*(u32 *)kbi_param_of(item, param) = value;
	mutex_unlock(&disk->admin);
	return count;
}

/* Show the UUID of the connected volume or, without a disk, the UUID that was set. */
static ssize_t kbi_show_uuid(struct config_item *item,
			     const struct kbi_param *param, char *page)
{
	uuid_t uuid = *(uuid_t *)kbi_param_of(item, param);
	struct kbi_disk *disk = kbi_disk_of(item);

	if (READ_ONCE(disk->gendisk))
		import_uuid(&uuid, disk->identify.uuid);
	if (uuid_is_null(&uuid))
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%pUb\n", &uuid);
}

static ssize_t kbi_store_uuid(struct config_item *item,
			      const struct kbi_param *param, const char *page,
			      size_t count)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	uuid_t uuid;
	int err;

	err = kblk_uuid_parse(page, &uuid) ?: kbi_disk_change(disk);
	if (err)
		return err;
	*(uuid_t *)kbi_param_of(item, param) = uuid;
	mutex_unlock(&disk->admin);
	return count;
}

#define KBI_ATTR(_name, _type, ...)					\
static const struct kbi_param kbi_param_##_name = {			\
	.name = #_name,							\
	.at = offsetof(struct kbi_params, _name), __VA_ARGS__		\
};									\
static ssize_t kbi_disk_##_name##_show(struct config_item *item,	\
				       char *page)			\
{									\
	return kbi_show_##_type(item, &kbi_param_##_name, page);	\
}									\
static ssize_t kbi_disk_##_name##_store(struct config_item *item,	\
					const char *page, size_t count)	\
{									\
	return kbi_store_##_type(item, &kbi_param_##_name, page, count); \
}									\
static struct configfs_attribute kbi_disk_attr_##_name = {		\
	.ca_name = #_name,						\
	.ca_mode = 0644,						\
	.ca_owner = THIS_MODULE,					\
	.show = kbi_disk_##_name##_show,				\
	.store = kbi_disk_##_name##_store,				\
}

#define KBI_SIZE(_name)	.size = sizeof_field(struct kbi_params, _name)

/* Show the present name of the adapter. */
static ssize_t kbi_show_ia(struct config_item *item, const struct kbi_param *param,
			   char *page)
{
	char name[DAT_NAME_MAX_LENGTH];

	kbi_disk_ia(kbi_disk_of(item), name);
	return sysfs_emit(page, "%s\n", name);
}

static ssize_t kbi_store_ia(struct config_item *item, const struct kbi_param *param,
			    const char *page, size_t count)
{
	return kbi_store_string(item, param, page, count);
}

KBI_ATTR(ia, ia, KBI_SIZE(ia));
KBI_ATTR(address, string, KBI_SIZE(address));
KBI_ATTR(subsystem, string, KBI_SIZE(subsystem));
KBI_ATTR(client, string, KBI_SIZE(client));
KBI_ATTR(uuid, uuid);

static ssize_t kbi_disk_secret_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kbi_disk_of(item)->params.secret.text);
}

static ssize_t kbi_disk_secret_store(struct config_item *item,
				     const char *page, size_t count)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	struct kblk_secret secret;
	int err;

	err = kblk_secret_parse(&secret, page);
	if (err)
		return err;
	err = kbi_disk_change(disk);
	if (!err) {
		swap(disk->params.secret, secret);
		mutex_unlock(&disk->admin);
	}
	kblk_secret_put(&secret);
	return err ?: count;
}

static struct configfs_attribute kbi_disk_attr_secret = {
	.ca_name = "secret",
	.ca_mode = 0600,
	.ca_owner = THIS_MODULE,
	.show = kbi_disk_secret_show,
	.store = kbi_disk_secret_store,
};

KBI_ATTR(conn_qual, number, .min = 1, .max = U16_MAX);
KBI_ATTR(namespace, number, .min = 1, .max = U32_MAX);
KBI_ATTR(queues, number, .min = 0, .max = 256);
KBI_ATTR(read_queues, number, .min = 0, .max = 256);
KBI_ATTR(depth, number, .min = 1, .max = 1023);
KBI_ATTR(timeout_ms, number, .min = 10, .max = 3600000);
KBI_ATTR(connect_timeout_ms, number, .min = 10, .max = 600000);
KBI_ATTR(keepalive_ms, number, .min = 0, .max = 600000);
KBI_ATTR(reconnect_ms, number, .min = 10, .max = 600000);
KBI_ATTR(reconnect_max_ms, number, .min = 10, .max = 600000);
KBI_ATTR(give_up_ms, number, .min = 0, .max = S32_MAX);
KBI_ATTR(share, number, .min = 0, .max = 1);
KBI_ATTR(only_path, number, .min = 0, .max = 1);

/* ---- The disk ------------------------------------------------------------ */

static ssize_t kbi_disk_connected_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbi_state(kbi_disk_of(item)) ==
					KBI_LIVE);
}

/* Has the disconnect for which kbi_disk_end() returned @before finished? litmus: blk-ended */
static bool kbi_disk_has_ended(struct kbi_disk *disk, int before)
{
	return atomic_read_acquire(&disk->ends) != before;
}

/* Has the connect begun when disk->connects was @before finished? litmus: blk-ended */
static bool kbi_disk_has_connected(struct kbi_disk *disk, int before)
{
	return atomic_read_acquire(&disk->connects) != before;
}

/* Start to disconnect @disk, and wait for the end, KBI_END_WAIT at most. */
static void kbi_disk_end_soon(struct kbi_disk *disk)
{
	int before = kbi_disk_end(disk);

	wait_event_killable_timeout(disk->ended, kbi_disk_has_ended(disk, before),
				    KBI_END_WAIT);
}

/*
 * Connect @disk, or ask for the volumes from @from on, and wait for the result. A signal ends
 * the wait and undoes what was begun; kbi_end_work() goes on with that if it takes longer.
 */
static int kbi_disk_connect(struct kbi_disk *disk, bool listing, u64 from)
{
	int before, err;

	err = kbi_disk_change(disk);
	if (err)
		return -EISCONN;
	if (listing && !disk->listed)
		disk->listed = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (disk->listed)
		disk->listed[0] = '\0';
	disk->listing = listing;
	disk->list_from = from;
	before = atomic_read(&disk->connects);
	err = listing && !disk->listed ? -ENOMEM : kbi_connect_begin(disk);
	mutex_unlock(&disk->admin);
	if (err)
		return err;
	if (!wait_event_interruptible(disk->ended, kbi_disk_has_connected(disk, before)))
		return READ_ONCE(disk->connect_err);
	kbi_disk_end_soon(disk);
	return -EINTR;
}

/* Disconnect @disk, and wait for the end without a limit, but not after a signal. */
static int kbi_disk_disconnect(struct kbi_disk *disk)
{
	int before = kbi_disk_end(disk);

	return wait_event_interruptible(disk->ended,
					kbi_disk_has_ended(disk, before));
}

static ssize_t kbi_disk_connected_store(struct config_item *item,
					const char *page, size_t count)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	bool value;
	int err;

	err = kstrtobool(page, &value);
	if (err)
		return err;
	err = value ? kbi_disk_connect(disk, false, 0) : kbi_disk_disconnect(disk);
	return err ?: count;
}
CONFIGFS_ATTR(kbi_disk_, connected);

/* Show the answer to the last write to "discover": a line for each volume. */
static ssize_t kbi_disk_discover_show(struct config_item *item, char *page)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	ssize_t n = 0;

	if (kbi_disk_change(disk))
		return -EBUSY;
	if (disk->listed)
		n = sysfs_emit(page, "%s", disk->listed);
	mutex_unlock(&disk->admin);
	return n;
}

/* Ask for the volumes from the written number on. */
static ssize_t kbi_disk_discover_store(struct config_item *item, const char *page,
				       size_t count)
{
	u64 from;
	int err;

	err = kstrtou64(page, 0, &from);
	if (!err)
		err = kbi_disk_connect(kbi_disk_of(item), true, from);
	return err ?: count;
}
CONFIGFS_ATTR(kbi_disk_, discover);

static ssize_t kbi_disk_state_show(struct config_item *item, char *page)
{
	static const char * const names[] = {
		[KBI_IDLE] = "idle",
		[KBI_CONNECTING] = "connecting",
		[KBI_LIVE] = "connected",
		[KBI_RECOVERING] = "reconnecting",
		[KBI_FAILED] = "failed",
		[KBI_REMOVING] = "removing",
	};

	return sysfs_emit(page, "%s\n", names[kbi_state(kbi_disk_of(item))]);
}
CONFIGFS_ATTR_RO(kbi_disk_, state);

static ssize_t kbi_disk_device_show(struct config_item *item, char *page)
{
	struct kbi_disk *disk = kbi_disk_of(item);

	if (!READ_ONCE(disk->shown))
		return 0;
	return sysfs_emit(page, KBI_DISK_NAME "\n", disk->index);
}
CONFIGFS_ATTR_RO(kbi_disk_, device);

static ssize_t kbi_disk_claimed_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbi_disk_is_claimed(kbi_disk_of(item)));
}
CONFIGFS_ATTR_RO(kbi_disk_, claimed);

static const char * const kbi_stat_names[KBI_STATS] = {
	[KBI_STAT_REQUESTS] = "requests sent",
	[KBI_STAT_MESSAGES] = "in messages",
	[KBI_STAT_REPLIES] = "replies",
	[KBI_STAT_READ_BYTES] = "bytes read",
	[KBI_STAT_WRITE_BYTES] = "bytes written",
	[KBI_STAT_INLINE] = "data sent inline",
	[KBI_STAT_ERRORS] = "error replies",
	[KBI_STAT_TIMEOUTS] = "requests timed out",
	[KBI_STAT_NO_CREDIT] = "waits for credit",
	[KBI_STAT_INVALIDATED] = "remote invalidations",
	[KBI_STAT_LOST] = "connections lost",
	[KBI_STAT_REPLAYED] = "requests sent again",
	[KBI_STAT_ATTEMPTS] = "attempts to connect",
	[KBI_STAT_FENCES] = "other paths fenced",
	[KBI_STAT_DETACHED] = "detached by the target",
};

static ssize_t kbi_disk_stats_show(struct config_item *item, char *page)
{
	struct kbi_disk *disk = kbi_disk_of(item);
	struct kbi_link *link = kbi_link_of(disk);
	ssize_t n = 0;
	int i;

	for (i = 0; i < KBI_STATS; i++)
		n += sysfs_emit_at(page, n, "%-30s %lld\n", kbi_stat_names[i],
				   atomic64_read(&disk->stats[i]));
	n += sysfs_emit_at(page, n, "%-30s %u of %u\n", "queues",
			   link ? READ_ONCE(link->nlive) : 0,
			   link ? READ_ONCE(link->nqueues) : 0);
	n += sysfs_emit_at(page, n, "%-30s %zu\n", "bytes of memory",
			   link ? READ_ONCE(link->memory) : 0);
	if (link)
		kbi_link_put(link);
	return n;
}
CONFIGFS_ATTR_RO(kbi_disk_, stats);

static ssize_t kbi_disk_latency_show(struct config_item *item, char *page)
{
	return kbi_latency_show(kbi_disk_of(item)->latency, page);
}
CONFIGFS_ATTR_RO(kbi_disk_, latency);

static struct configfs_attribute *kbi_disk_attrs[] = {
	&kbi_disk_attr_ia,
	&kbi_disk_attr_address,
	&kbi_disk_attr_conn_qual,
	&kbi_disk_attr_subsystem,
	&kbi_disk_attr_namespace,
	&kbi_disk_attr_client,
	&kbi_disk_attr_uuid,
	&kbi_disk_attr_secret,
	&kbi_disk_attr_queues,
	&kbi_disk_attr_read_queues,
	&kbi_disk_attr_depth,
	&kbi_disk_attr_timeout_ms,
	&kbi_disk_attr_connect_timeout_ms,
	&kbi_disk_attr_keepalive_ms,
	&kbi_disk_attr_reconnect_ms,
	&kbi_disk_attr_reconnect_max_ms,
	&kbi_disk_attr_give_up_ms,
	&kbi_disk_attr_share,
	&kbi_disk_attr_only_path,
	&kbi_disk_attr_connected,
	&kbi_disk_attr_discover,
	&kbi_disk_attr_state,
	&kbi_disk_attr_device,
	&kbi_disk_attr_claimed,
	&kbi_disk_attr_stats,
	&kbi_disk_attr_latency,
	NULL
};

static void kbi_disk_release(struct config_item *item)
{
	struct kbi_disk *disk = kbi_disk_of(item);

	kblk_secret_put(&disk->params.secret);
	kfree(disk->listed);
	free_percpu(disk->latency);
	kfree(disk);
}

static struct configfs_item_operations kbi_disk_ops = {
	.release = kbi_disk_release,
};

static const struct config_item_type kbi_disk_type = {
	.ct_item_ops = &kbi_disk_ops,
	.ct_attrs = kbi_disk_attrs,
	.ct_owner = THIS_MODULE,
};

static const struct kbi_params kbi_defaults = {
	.conn_qual = 5100,
	.namespace = 1,
	.depth = 127,
	.timeout_ms = 30000,
	.connect_timeout_ms = 10000,
	.keepalive_ms = 5000,
	.reconnect_ms = 100,
	.reconnect_max_ms = 10000,
	.give_up_ms = 600000,
};

static struct config_item *kbi_disk_make(struct config_group *group,
					 const char *name)
{
	struct kbi_disk *disk;

	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return ERR_PTR(-ENOMEM);
	disk->latency = kbi_latency_alloc();
	if (!disk->latency) {
		kfree(disk);
		return ERR_PTR(-ENOMEM);
	}
	disk->params = kbi_defaults;
	strscpy(disk->params.client, utsname()->nodename,
		sizeof(disk->params.client));
	mutex_init(&disk->admin);
	INIT_LIST_HEAD(&disk->link_entry);
	INIT_DELAYED_WORK(&disk->recover_work, kbi_recover_work);
	INIT_WORK(&disk->fail_work, kbi_fail_work);
	INIT_DELAYED_WORK(&disk->fence_work, kbi_fence_work);
	INIT_DELAYED_WORK(&disk->resize_work, kbi_resize_work);
	INIT_WORK(&disk->connect_work, kbi_connect_work);
	INIT_WORK(&disk->end_work, kbi_end_work);
	init_waitqueue_head(&disk->ended);
	config_item_init_type_name(&disk->item, name, &kbi_disk_type);
	return &disk->item;
}

static void kbi_disk_drop(struct config_group *group, struct config_item *item)
{
	kbi_disk_end_soon(kbi_disk_of(item));
	config_item_put(item);
}

static struct configfs_group_operations kbi_root_ops = {
	.make_item = kbi_disk_make,
	.drop_item = kbi_disk_drop,
};

static const struct config_item_type kbi_root_type = {
	.ct_group_ops = &kbi_root_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem kbi_root = {
	.su_group.cg_item = {
		.ci_namebuf = KBUILD_MODNAME,
		.ci_type = &kbi_root_type,
	},
};

int kbi_configfs_register(void)
{
	config_group_init(&kbi_root.su_group);
	mutex_init(&kbi_root.su_mutex);
	return configfs_register_subsystem(&kbi_root);
}

void kbi_configfs_unregister(void)
{
	configfs_unregister_subsystem(&kbi_root);
}
