// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Volumes: what the administrator sees of them, and who is attached.
 *
 * configfs: subsystems/<name>/namespaces/<number>/{path,read_only,enable}
 *
 * A connection attaches to one volume and uses it until it ends. Disabling a
 * volume ends its connections and waits for them, and so for everything they have
 * asked for; then the file is closed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

#define KBT_FILE_BLOCK	512

DEFINE_SPINLOCK(kbt_names);

static struct kbt_ns *kbt_ns_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbt_ns, group);
}

/* Bytes; whole blocks. It may change while the volume is in use. */
u64 kbt_ns_size(struct kbt_ns *ns)
{
	u64 size = i_size_read(ns->file->f_mapping->host);

	return round_down(size, ns->block_size);
}

/* ---- Attaching ----------------------------------------------------------- */

/* Under kbt_names, as the next. */
static struct kbt_subsys *kbt_find_subsys(struct kbt_port *port,
					  const char *name)
{
	struct kbt_subsys *subsys;
	struct kbt_link *link;

	list_for_each_entry(link, &port->subsystems, link) {
		subsys = link->to;
		if (!strcmp(config_item_name(&subsys->group.cg_item), name))
			return subsys;
	}
	return NULL;
}

static bool kbt_may_use(struct kbt_subsys *subsys, const char *name)
{
	struct kbt_client *client;
	struct kbt_link *link;

	if (subsys->allow_any)
		return true;
	list_for_each_entry(link, &subsys->allowed, link) {
		client = link->to;
		if (!strcmp(config_item_name(&client->group.cg_item), name))
			return true;
	}
	return false;
}

static enum kblk_status kbt_attach_to(struct kbt_conn *conn, const char *subsystem,
				      u32 nsid)
{
	struct kbt_subsys *subsys;
	struct kbt_ns *ns;

	subsys = kbt_find_subsys(conn->kbt->port, subsystem);
	if (!subsys)
		return KBLK_ERR_NO_VOLUME;
	if (!kbt_may_use(subsys, conn->client))
		return KBLK_ERR_DENIED;
	list_for_each_entry(ns, &subsys->namespaces, link) {
		if (ns->nsid != nsid || !ns->enabled)
			continue;
		ns->users++;
		WRITE_ONCE(conn->ns, ns);
		return KBLK_OK;
	}
	return KBLK_ERR_NO_VOLUME;
}

/* A client says who it is and what it wants. */
enum kblk_status kbt_attach(struct kbt_conn *conn,
			    const struct kblk_attach *attach)
{
	u32 ms = le32_to_cpu(attach->keepalive_ms);
	enum kblk_status status;

	if (conn->ns || strnlen(attach->client, KBLK_NAME_LEN) == KBLK_NAME_LEN ||
	    strnlen(attach->subsystem, KBLK_NAME_LEN) == KBLK_NAME_LEN ||
	    !kblk_is_zero(attach->reserved, sizeof(attach->reserved)))
		return KBLK_ERR_INVALID;
	spin_lock(&kbt_names);
	strscpy(conn->client, attach->client, sizeof(conn->client));
	status = kbt_attach_to(conn, attach->subsystem,
			       le32_to_cpu(attach->namespace));
	spin_unlock(&kbt_names);
	if (status == KBLK_OK) {
		WRITE_ONCE(conn->heard, jiffies);
		/* Three times as patient as the client promises to be talkative. */
		WRITE_ONCE(conn->patience,
			   msecs_to_jiffies(min(ms, 1000000U)) * 3);
		pr_info_ratelimited("%s: %*pE is attached to %*pE, volume %u\n",
				    conn->peer, (int)strlen(conn->client),
				    conn->client,
				    (int)strlen(attach->subsystem),
				    attach->subsystem, conn->ns->nsid);
	} else {
		pr_warn_ratelimited("%s: %*pE may not attach to %*pE: status %d\n",
				    conn->peer, (int)strlen(conn->client),
				    conn->client,
				    (int)strlen(attach->subsystem),
				    attach->subsystem, status);
	}
	return status;
}

/* The connection does not use the volume any more. */
void kbt_detach(struct kbt_conn *conn)
{
	struct kbt_ns *ns = conn->ns;

	if (!ns)
		return;
	spin_lock(&kbt_names);
	WRITE_ONCE(ns->users, ns->users - 1);
	if (!ns->users)
		wake_up(&ns->idle);
	spin_unlock(&kbt_names);
}

/* End the connections of a port for which @match says so. */
void kbt_end_matching(struct kbt_port *port,
		      bool (*match)(struct kbt_conn *conn, void *what),
		      void *what)
{
	struct kbt_conn *conn;
	struct kbt *kbt;

	mutex_lock(&port->mutex);
	kbt = port->kbt;
	if (kbt) {
		mutex_lock(&kbt->mutex);
		list_for_each_entry(conn, &kbt->conns, link)
			if (match(conn, what))
				kbt_conn_end(conn);
		mutex_unlock(&kbt->mutex);
	}
	mutex_unlock(&port->mutex);
}

/* ---- Enabling ------------------------------------------------------------ */

static int kbt_ns_open(struct kbt_ns *ns)
{
	struct inode *inode;
	struct file *file;

	file = filp_open(ns->path, O_LARGEFILE |
			 (ns->read_only ? O_RDONLY : O_RDWR), 0);
	if (IS_ERR(file)) {
		pr_err("cannot open %s: %ld\n", ns->path, PTR_ERR(file));
		return PTR_ERR(file);
	}
	/* For a block device this is the device's inode, not the node's. */
	inode = file->f_mapping->host;
	ns->bdev = S_ISBLK(inode->i_mode) ? I_BDEV(inode) : NULL;
	ns->block_size = ns->bdev ? bdev_logical_block_size(ns->bdev) :
				    KBT_FILE_BLOCK;
	ns->file = file;
	if ((ns->bdev || S_ISREG(inode->i_mode)) && kbt_ns_size(ns) &&
	    ns->block_size <= KBLK_INLINE)
		return 0;
	pr_err("%s is no block device, and no file with contents\n", ns->path);
	ns->file = NULL;
	filp_close(file, NULL);
	return -EINVAL;
}

static int kbt_ns_enable(struct kbt_ns *ns)
{
	int err;

	lockdep_assert_held(&kbt_config);
	if (ns->enabled)
		return 0;
	if (!ns->path)
		return -ENXIO;
	err = kbt_ns_open(ns);
	if (err)
		return err;
	spin_lock(&kbt_names);
	ns->enabled = true;
	spin_unlock(&kbt_names);
	return 0;
}

static bool kbt_uses_ns(struct kbt_conn *conn, void *ns)
{
	return READ_ONCE(conn->ns) == ns;
}

static void kbt_ns_disable(struct kbt_ns *ns)
{
	struct kbt_port *port;

	lockdep_assert_held(&kbt_config);
	if (!ns->enabled)
		return;
	spin_lock(&kbt_names);
	ns->enabled = false;
	spin_unlock(&kbt_names);
	list_for_each_entry(port, &kbt_ports, link)
		kbt_end_matching(port, kbt_uses_ns, ns);
	wait_event(ns->idle, !READ_ONCE(ns->users));
	/* Whoever woke us has left the lock. */
	spin_lock(&kbt_names);
	spin_unlock(&kbt_names);
	filp_close(ns->file, NULL);
	ns->file = NULL;
	ns->bdev = NULL;
}

/* ---- configfs ------------------------------------------------------------ */

static ssize_t kbt_ns_path_show(struct config_item *item, char *page)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	ssize_t n;

	mutex_lock(&kbt_config);
	n = sysfs_emit(page, "%s\n", ns->path ?: "");
	mutex_unlock(&kbt_config);
	return n;
}

static ssize_t kbt_ns_path_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	char *path;
	ssize_t ret = count;

	path = kstrndup(page, strcspn(page, "\n"), GFP_KERNEL);
	if (!path)
		return -ENOMEM;
	mutex_lock(&kbt_config);
	if (ns->enabled || !*path) {
		ret = ns->enabled ? -EBUSY : -EINVAL;
		kfree(path);
	} else {
		kfree(ns->path);
		ns->path = path;
	}
	mutex_unlock(&kbt_config);
	return ret;
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

	err = kstrtobool(page, &value);
	if (err)
		return err;
	mutex_lock(&kbt_config);
	if (ns->enabled)
		err = -EBUSY;
	else
		ns->read_only = value;
	mutex_unlock(&kbt_config);
	return err ?: count;
}
CONFIGFS_ATTR(kbt_ns_, read_only);

static ssize_t kbt_ns_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbt_ns_of(item)->enabled);
}

static ssize_t kbt_ns_enable_store(struct config_item *item, const char *page,
				   size_t count)
{
	struct kbt_ns *ns = kbt_ns_of(item);
	bool value;
	int err;

	err = kstrtobool(page, &value);
	if (err)
		return err;
	mutex_lock(&kbt_config);
	if (value)
		err = kbt_ns_enable(ns);
	else
		kbt_ns_disable(ns);
	mutex_unlock(&kbt_config);
	return err ?: count;
}
CONFIGFS_ATTR(kbt_ns_, enable);

static struct configfs_attribute *kbt_ns_attrs[] = {
	&kbt_ns_attr_path,
	&kbt_ns_attr_read_only,
	&kbt_ns_attr_enable,
	NULL
};

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
	init_waitqueue_head(&ns->idle);
	config_group_init_type_name(&ns->group, "", &kbt_ns_type);
	spin_lock(&kbt_names);
	/* "1" and "01" are one number. */
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

void kbt_ns_drop(struct config_item *item)
{
	struct kbt_ns *ns = kbt_ns_of(item);

	mutex_lock(&kbt_config);
	kbt_ns_disable(ns);
	spin_lock(&kbt_names);
	list_del(&ns->link);
	spin_unlock(&kbt_names);
	mutex_unlock(&kbt_config);
	config_item_put(item);
}
