// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The root of the configfs tree, clients and subsystems. The layout follows the
 * kernel's NVMe target:
 *
 *   kdapl_blk_tgt/
 *     clients/<name>/
 *     subsystems/<name>/
 *       allow_any_client
 *       authenticate
 *       allowed_clients/<link to a client>
 *       namespaces/<number>/			tgt_ns_configfs.c
 *     ports/<number>/				tgt_ports.c
 *       subsystems/<link to a subsystem>
 *
 * configfs owns the objects: each is freed by the release() of its item.
 * configfs keeps the target of a symbolic link alive, so a struct kbt_link
 * needs no reference.
 *
 * Locks: kbt_config serialises changes by the administrator; kbt_names guards
 * the lists and flags that ATTACH reads.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "tgt.h"

DEFINE_MUTEX(kbt_config);	/* objects of configfs; see tgt.h */

/* All clients, guarded by kbt_names. */
LIST_HEAD(kbt_clients);

/* ---- Clients ------------------------------------------------------------- */

static struct kbt_client *kbt_client_of(struct config_item *item)
{
	return container_of(to_config_group(item), struct kbt_client, group);
}

static void kbt_client_release(struct config_item *item)
{
	struct kbt_client *client = kbt_client_of(item);

	kblk_secret_put(&client->secret);
	kfree(client);
}

static ssize_t kbt_client_secret_show(struct config_item *item, char *page)
{
	ssize_t n;

	spin_lock(&kbt_names);
	n = sysfs_emit(page, "%s\n", kbt_client_of(item)->secret.text);
	spin_unlock(&kbt_names);
	return n;
}

/* A new secret applies to the next ATTACH; attached connections stay. */
static ssize_t kbt_client_secret_store(struct config_item *item,
				       const char *page, size_t count)
{
	struct kblk_secret secret;
	int err;

	err = kblk_secret_parse(&secret, page);
	if (err)
		return err;
	spin_lock(&kbt_names);
	swap(kbt_client_of(item)->secret, secret);
	spin_unlock(&kbt_names);
	kblk_secret_put(&secret);
	return count;
}

static struct configfs_attribute kbt_client_attr_secret = {
	.ca_name = "secret",
	.ca_mode = 0600,
	.ca_owner = THIS_MODULE,
	.show = kbt_client_secret_show,
	.store = kbt_client_secret_store,
};

static struct configfs_attribute *kbt_client_attrs[] = {
	&kbt_client_attr_secret,
	NULL
};

static struct configfs_item_operations kbt_client_ops = {
	.release = kbt_client_release,
};

static const struct config_item_type kbt_client_type = {
	.ct_item_ops = &kbt_client_ops,
	.ct_attrs = kbt_client_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_group *kbt_client_make(struct config_group *group,
					    const char *name)
{
	struct kbt_client *client;

	if (strlen(name) >= KBLK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	client = kzalloc(sizeof(*client), GFP_KERNEL);
	if (!client)
		return ERR_PTR(-ENOMEM);
	config_group_init_type_name(&client->group, name, &kbt_client_type);
	spin_lock(&kbt_names);
	list_add(&client->link, &kbt_clients);
	spin_unlock(&kbt_names);
	return &client->group;
}

static void kbt_client_drop(struct config_group *group, struct config_item *item)
{
	spin_lock(&kbt_names);
	list_del(&kbt_client_of(item)->link);
	spin_unlock(&kbt_names);
	config_item_put(item);
}

static struct configfs_group_operations kbt_clients_ops = {
	.make_group = kbt_client_make,
	.drop_item = kbt_client_drop,
};

static const struct config_item_type kbt_clients_type = {
	.ct_group_ops = &kbt_clients_ops,
	.ct_owner = THIS_MODULE,
};

/* ---- Allowed clients ----------------------------------------------------- */

static int kbt_allow_link(struct config_item *parent, struct config_item *to)
{
	struct kbt_subsys *subsys = kbt_subsys_of(parent->ci_parent);
	struct kbt_link *link;

	if (to->ci_type != &kbt_client_type)
		return -EINVAL;
	link = kmalloc(sizeof(*link), GFP_KERNEL);
	if (!link)
		return -ENOMEM;
	link->to = container_of(to_config_group(to), struct kbt_client, group);
	spin_lock(&kbt_names);
	list_add_tail(&link->link, &subsys->allowed);
	spin_unlock(&kbt_names);
	return 0;
}

struct kbt_ban {
	struct kbt_subsys *subsys;
	const char *client;
};

static bool kbt_is_banned(const struct kbt_attachment *att, void *what)
{
	struct kbt_ban *ban = what;

	return att->ns->subsys == ban->subsys &&
	       !strcmp(att->conn->client, ban->client);
}

static void kbt_allow_drop(struct config_item *parent, struct config_item *to)
{
	struct kbt_subsys *subsys = kbt_subsys_of(parent->ci_parent);
	struct kbt_ban ban = { subsys, config_item_name(to) };
	struct kbt_client *client;
	struct kbt_link *link, *next;
	struct kbt_port *port;
	bool any;

	client = container_of(to_config_group(to), struct kbt_client, group);
	mutex_lock(&kbt_config);
	spin_lock(&kbt_names);
	list_for_each_entry_safe(link, next, &subsys->allowed, link) {
		if (link->to != client)
			continue;
		list_del(&link->link);
		kfree(link);
	}
	any = subsys->allow_any;
	spin_unlock(&kbt_names);
	if (!any)
		list_for_each_entry(port, &kbt_ports, link)
			kbt_end_matching(port, kbt_is_banned, &ban);
	mutex_unlock(&kbt_config);
}

static struct configfs_item_operations kbt_allowed_ops = {
	.allow_link = kbt_allow_link,
	.drop_link = kbt_allow_drop,
};

static const struct config_item_type kbt_allowed_type = {
	.ct_item_ops = &kbt_allowed_ops,
	.ct_owner = THIS_MODULE,
};

/* ---- Namespaces ---------------------------------------------------------- */

static struct config_group *kbt_namespace_make(struct config_group *group,
					       const char *name)
{
	struct kbt_subsys *subsys = kbt_subsys_of(group->cg_item.ci_parent);
	u32 nsid;
	int err;

	err = kstrtou32(name, 10, &nsid);
	if (err || !nsid)
		return ERR_PTR(err ?: -EINVAL);
	return kbt_ns_make(subsys, nsid);
}

static void kbt_namespace_drop(struct config_group *group,
			       struct config_item *item)
{
	kbt_ns_drop(item);
}

static struct configfs_group_operations kbt_namespaces_ops = {
	.make_group = kbt_namespace_make,
	.drop_item = kbt_namespace_drop,
};

static const struct config_item_type kbt_namespaces_type = {
	.ct_group_ops = &kbt_namespaces_ops,
	.ct_owner = THIS_MODULE,
};

/* ---- Subsystems ---------------------------------------------------------- */

/* Set @flag of a subsystem; attached connections stay. */
static ssize_t kbt_subsys_store_flag(bool *flag, const char *page, size_t count)
{
	bool value;
	int err;

	err = kstrtobool(page, &value);
	if (err)
		return err;
	spin_lock(&kbt_names);
	*flag = value;
	spin_unlock(&kbt_names);
	return count;
}

static ssize_t kbt_subsys_allow_any_client_show(struct config_item *item,
						char *page)
{
	return sysfs_emit(page, "%d\n", kbt_subsys_of(item)->allow_any);
}

static ssize_t kbt_subsys_allow_any_client_store(struct config_item *item,
						 const char *page,
						 size_t count)
{
	return kbt_subsys_store_flag(&kbt_subsys_of(item)->allow_any, page, count);
}
CONFIGFS_ATTR(kbt_subsys_, allow_any_client);

static ssize_t kbt_subsys_authenticate_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kbt_subsys_of(item)->authenticate);
}

static ssize_t kbt_subsys_authenticate_store(struct config_item *item,
					     const char *page, size_t count)
{
	return kbt_subsys_store_flag(&kbt_subsys_of(item)->authenticate, page, count);
}
CONFIGFS_ATTR(kbt_subsys_, authenticate);

static struct configfs_attribute *kbt_subsys_attrs[] = {
	&kbt_subsys_attr_allow_any_client,
	&kbt_subsys_attr_authenticate,
	NULL
};

static void kbt_subsys_release(struct config_item *item)
{
	kfree(kbt_subsys_of(item));
}

static struct configfs_item_operations kbt_subsys_ops = {
	.release = kbt_subsys_release,
};

static const struct config_item_type kbt_subsys_type = {
	.ct_item_ops = &kbt_subsys_ops,
	.ct_attrs = kbt_subsys_attrs,
	.ct_owner = THIS_MODULE,
};

/* Return the subsystem that @item is, or NULL if @item is something else. */
struct kbt_subsys *kbt_subsys_of(struct config_item *item)
{
	if (item->ci_type != &kbt_subsys_type)
		return NULL;
	return container_of(to_config_group(item), struct kbt_subsys, group);
}

static struct config_group *kbt_subsys_make(struct config_group *group,
					    const char *name)
{
	struct kbt_subsys *subsys;

	if (strlen(name) >= KBLK_NAME_LEN)
		return ERR_PTR(-ENAMETOOLONG);
	subsys = kzalloc(sizeof(*subsys), GFP_KERNEL);
	if (!subsys)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&subsys->namespaces);
	INIT_LIST_HEAD(&subsys->allowed);
	config_group_init_type_name(&subsys->group, name, &kbt_subsys_type);
	config_group_init_type_name(&subsys->namespaces_group, "namespaces",
				    &kbt_namespaces_type);
	configfs_add_default_group(&subsys->namespaces_group, &subsys->group);
	config_group_init_type_name(&subsys->allowed_group, "allowed_clients",
				    &kbt_allowed_type);
	configfs_add_default_group(&subsys->allowed_group, &subsys->group);
	return &subsys->group;
}

static struct configfs_group_operations kbt_subsystems_ops = {
	.make_group = kbt_subsys_make,
};

static const struct config_item_type kbt_subsystems_type = {
	.ct_group_ops = &kbt_subsystems_ops,
	.ct_owner = THIS_MODULE,
};

/* ---- The root ------------------------------------------------------------ */

static const struct config_item_type kbt_root_type = {
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem kbt_root = {
	.su_group.cg_item = {
		.ci_namebuf = KBUILD_MODNAME,
		.ci_type = &kbt_root_type,
	},
};

static struct config_group kbt_clients_group;
static struct config_group kbt_subsystems_group;
static struct config_group kbt_ports_group;

int kbt_configfs_register(void)
{
	config_group_init(&kbt_root.su_group);
	mutex_init(&kbt_root.su_mutex);
	config_group_init_type_name(&kbt_clients_group, "clients",
				    &kbt_clients_type);
	configfs_add_default_group(&kbt_clients_group, &kbt_root.su_group);
	config_group_init_type_name(&kbt_subsystems_group, "subsystems",
				    &kbt_subsystems_type);
	configfs_add_default_group(&kbt_subsystems_group, &kbt_root.su_group);
	config_group_init_type_name(&kbt_ports_group, "ports",
				    &kbt_ports_type);
	configfs_add_default_group(&kbt_ports_group, &kbt_root.su_group);
	return configfs_register_subsystem(&kbt_root);
}

void kbt_configfs_unregister(void)
{
	configfs_unregister_subsystem(&kbt_root);
}
