// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ports in configfs: ports/<number>/..., with the attributes of kbt_port_attrs.
 *
 * A port listens from the link to its first subsystem until the last link is removed, see
 * kbt_port_up() and kbt_port_down(). Its parameters are constant in between, and until the
 * port has stopped completely.
 *
 * configfs owns the struct kbt_port, kbt_port_release() frees it. Locks: kbt_config for links
 * and parameters, kbt_names for port->subsystems, port->mutex for the adapter.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "tgt.h"

LIST_HEAD(kbt_ports);

static struct kbt_port *kbt_port_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbt_port, group);
}

/* ---- Parameters ---------------------------------------------------------- */

/*
 * Lock kbt_config to change a parameter of a port that has stopped. Return 0, or -EBUSY
 * without the lock.
 */
static int kbt_port_change(struct kbt_port *port)
{
	bool busy;

	mutex_lock(&kbt_config);
	mutex_lock(&port->mutex);
	busy = port->portal || port->kbts;
	mutex_unlock(&port->mutex);
	if (!busy)
		return 0;
	mutex_unlock(&kbt_config);
	return -EBUSY;
}

/* A numeric parameter: its name, its offset in struct kbt_params, range and unit. */
struct kbt_number {
	const char *name;
	size_t at;
	u32 min;
	u32 max;
	u32 unit;
};

static u32 *kbt_number_of(struct config_item *item,
			  const struct kbt_number *number)
{
	return (void *)&kbt_port_of(item)->params + number->at;
}

static ssize_t kbt_number_store(struct config_item *item,
				const struct kbt_number *number,
				const char *page, size_t count)
{
	u32 value;
	int err;

	err = kstrtou32(page, 0, &value);
	if (err)
		return err;
	if (value < number->min || value > number->max ||
	    value % number->unit) {
		pr_err("%s: %u is not between %u and %u, or no multiple of %u\n",
		       number->name, value, number->min, number->max, number->unit);
		return -EINVAL;
	}
	err = kbt_port_change(kbt_port_of(item));
	if (err)
		return err;
	*kbt_number_of(item, number) = value;
	mutex_unlock(&kbt_config);
	return count;
}

#define KBT_NUMBER(_name, _min, _max, _unit)				\
static const struct kbt_number kbt_number_##_name = {			\
	.name = #_name,							\
	offsetof(struct kbt_params, _name), _min, _max, _unit		\
};									\
static ssize_t kbt_port_##_name##_show(struct config_item *item,	\
				       char *page)			\
{									\
	return sysfs_emit(page, "%u\n",					\
			  *kbt_number_of(item, &kbt_number_##_name));	\
}									\
static ssize_t kbt_port_##_name##_store(struct config_item *item,	\
					const char *page, size_t count)	\
{									\
	return kbt_number_store(item, &kbt_number_##_name, page, count); \
}									\
static struct configfs_attribute kbt_port_attr_##_name = {		\
	.ca_name = #_name,						\
	.ca_mode = 0644,						\
	.ca_owner = THIS_MODULE,					\
	.show = kbt_port_##_name##_show,				\
	.store = kbt_port_##_name##_store,				\
}

KBT_NUMBER(conn_qual, 1, U16_MAX, 1);
KBT_NUMBER(credits, 2, 1024, 1);
KBT_NUMBER(io_depth, 1, 256, 1);
KBT_NUMBER(max_conns, 1, 65536, 1);
KBT_NUMBER(max_queues, 1, 256, 1);
KBT_NUMBER(srq_size, 7, 65536, 1);
KBT_NUMBER(srq_per_conn, 0, 1024, 1);
KBT_NUMBER(srq_max, 8, 65536, 1);
KBT_NUMBER(srq_low, 0, 65536, 1);
KBT_NUMBER(attach_ms, 0, 3600 * 1000, 1);
KBT_NUMBER(penalty_ms, 0, 3600 * 1000, 1);
KBT_NUMBER(reply_ms, 0, 3600 * 1000, 1);
KBT_NUMBER(pages, 1, 65536, 1);
KBT_NUMBER(buffers, 1, 4096, 1);
KBT_NUMBER(max_transfer, PAGE_SIZE, 1024 * 1024, PAGE_SIZE);

static ssize_t kbt_port_ia_show(struct config_item *item, char *page)
{
	struct kbt_port *port = kbt_port_of(item);
	ssize_t n;

	mutex_lock(&port->mutex);
	kbt_port_follow(port);
	n = sysfs_emit(page, "%s\n", port->params.ia);
	mutex_unlock(&port->mutex);
	return n;
}

static ssize_t kbt_port_ia_store(struct config_item *item, const char *page,
				 size_t count)
{
	struct kbt_port *port = kbt_port_of(item);
	size_t len = strcspn(page, "\n");
	int err;

	if (!len || len >= sizeof(port->params.ia))
		return -EINVAL;
	err = kbt_port_change(port);
	if (err)
		return err;
	strscpy(port->params.ia, page, len + 1);
	mutex_unlock(&kbt_config);
	return count;
}
CONFIGFS_ATTR(kbt_port_, ia);

/* ---- State --------------------------------------------------------------- */

static ssize_t kbt_port_state_show(struct config_item *item, char *page)
{
	struct kbt_port *port = kbt_port_of(item);
	const char *state = "idle";

	mutex_lock(&port->mutex);
	if (port->kbt)
		state = "listening";
	else if (READ_ONCE(port->portal))
		state = "waiting for the adapter";
	else if (port->kbts)
		state = "stopping";
	mutex_unlock(&port->mutex);
	return sysfs_emit(page, "%s\n", state);
}
CONFIGFS_ATTR_RO(kbt_port_, state);

static ssize_t kbt_port_stats_show(struct config_item *item, char *page)
{
	return kbt_stats_print(kbt_port_of(item), page);
}
CONFIGFS_ATTR_RO(kbt_port_, stats);

static ssize_t kbt_port_connections_show(struct config_item *item, char *page)
{
	return kbt_conns_print(kbt_port_of(item), page);
}
CONFIGFS_ATTR_RO(kbt_port_, connections);

static struct configfs_attribute *kbt_port_attrs[] = {
	&kbt_port_attr_ia,
	&kbt_port_attr_conn_qual,
	&kbt_port_attr_credits,
	&kbt_port_attr_io_depth,
	&kbt_port_attr_max_conns,
	&kbt_port_attr_max_queues,
	&kbt_port_attr_srq_size,
	&kbt_port_attr_srq_per_conn,
	&kbt_port_attr_srq_max,
	&kbt_port_attr_srq_low,
	&kbt_port_attr_attach_ms,
	&kbt_port_attr_penalty_ms,
	&kbt_port_attr_reply_ms,
	&kbt_port_attr_pages,
	&kbt_port_attr_buffers,
	&kbt_port_attr_max_transfer,
	&kbt_port_attr_state,
	&kbt_port_attr_stats,
	&kbt_port_attr_connections,
	NULL
};

/* ---- Subsystems of a port ------------------------------------------------ */

static struct kbt_link *kbt_port_find(struct kbt_port *port, void *subsys)
{
	struct kbt_link *link;

	list_for_each_entry(link, &port->subsystems, link)
		if (link->to == subsys)
			return link;
	return NULL;
}

static int kbt_port_link(struct config_item *parent, struct config_item *to)
{
	struct kbt_port *port = kbt_port_of(parent->ci_parent);
	struct kbt_subsys *subsys = kbt_subsys_of(to);
	struct kbt_link *link;
	int err = 0, failed = 0;

	if (!subsys)
		return -EINVAL;
	link = kmalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return -ENOMEM;
	link->to = subsys;
	mutex_lock(&kbt_config);
	if (kbt_port_find(port, subsys))
		err = -EEXIST;
	else if (list_empty(&port->subsystems))
		failed = kbt_port_up(port);
	err = err ?: failed;
	if (!err) {
		spin_lock(&kbt_names);
		list_add_tail(&link->link, &port->subsystems);
		spin_unlock(&kbt_names);
	}
	mutex_unlock(&kbt_config);
	/* It may have listened for a moment. */
	if (failed)
		kbt_port_wait(port);
	if (err)
		kfree(link);
	return err;
}

static bool kbt_uses_subsys(const struct kbt_attachment *att, void *subsys)
{
	return att->ns->subsys == subsys;
}

static void kbt_port_unlink(struct config_item *parent, struct config_item *to)
{
	struct kbt_port *port = kbt_port_of(parent->ci_parent);
	struct kbt_subsys *subsys = kbt_subsys_of(to);
	struct kbt_link *link;
	bool down = false;

	mutex_lock(&kbt_config);
	link = kbt_port_find(port, subsys);
	if (link) {
		spin_lock(&kbt_names);
		list_del(&link->link);
		spin_unlock(&kbt_names);
		kfree(link);
		kbt_end_matching(port, kbt_uses_subsys, subsys);
		down = list_empty(&port->subsystems);
		if (down)
			kbt_port_down(port);
	}
	mutex_unlock(&kbt_config);
	if (down)
		kbt_port_wait(port);
}

static struct configfs_item_operations kbt_port_subsystems_ops = {
	.allow_link = kbt_port_link,
	.drop_link = kbt_port_unlink,
};

static const struct config_item_type kbt_port_subsystems_type = {
	.ct_item_ops = &kbt_port_subsystems_ops,
	.ct_owner = THIS_MODULE,
};

/* ---- Ports --------------------------------------------------------------- */

static void kbt_port_release(struct config_item *item)
{
	kfree(kbt_port_of(item));
}

static struct configfs_item_operations kbt_port_ops = {
	.release = kbt_port_release,
};

static const struct config_item_type kbt_port_type = {
	.ct_item_ops = &kbt_port_ops,
	.ct_attrs = kbt_port_attrs,
	.ct_owner = THIS_MODULE,
};

static const struct kbt_params kbt_defaults = {
	.conn_qual = 5100,
	.credits = 128,
	.io_depth = 64,
	.max_conns = 1024,
	.max_queues = 16,
	.srq_size = 256,
	.srq_per_conn = 2,
	.srq_max = 8192,
	.attach_ms = 10000,
	.penalty_ms = 1000,
	.reply_ms = 5000,
	.pages = 256,
	.buffers = 128,
	.max_transfer = 128 * 1024,
};

static struct config_group *kbt_port_make(struct config_group *group,
					  const char *name)
{
	struct kbt_port *port;

	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->params = kbt_defaults;
	INIT_LIST_HEAD(&port->subsystems);
	mutex_init(&port->mutex);
	init_waitqueue_head(&port->stopped);
	config_group_init_type_name(&port->group, name, &kbt_port_type);
	config_group_init_type_name(&port->subsys_group, "subsystems",
				    &kbt_port_subsystems_type);
	configfs_add_default_group(&port->subsys_group, &port->group);
	mutex_lock(&kbt_config);
	list_add_tail(&port->link, &kbt_ports);
	mutex_unlock(&kbt_config);
	return &port->group;
}

/*
 * Remove a port, which does not listen: configfs refuses to remove one that still has links.
 * If the port has not stopped completely, its struct kbt holds a reference.
 */
static void kbt_port_drop(struct config_group *group, struct config_item *item)
{
	struct kbt_port *port = kbt_port_of(item);

	mutex_lock(&kbt_config);
	list_del(&port->link);
	mutex_unlock(&kbt_config);
	config_item_put(item);
}

static struct configfs_group_operations kbt_ports_ops = {
	.make_group = kbt_port_make,
	.drop_item = kbt_port_drop,
};

const struct config_item_type kbt_ports_type = {
	.ct_group_ops = &kbt_ports_ops,
	.ct_owner = THIS_MODULE,
};
