// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Servers, <dat/kdat_portal.h>. What may change where a portal listens, an IA or an address that
 * comes, goes, is renamed, has one work item of the server look at all portals. It looks again
 * each second while a portal fails for a reason that no notification will end.
 *
 * A server is a consumer of kDAPL in the name of its module: IAs, EVDs and upcalls are of that
 * module. What the module has left of them goes with it, see ia_unload.c.
 *
 * server->mutex is held while the consumer's functions are called, but not in upcalls, for
 * which kdapl_place_stop() waits with the mutex held.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include "ia.h"
#include "portal.h"

struct workqueue_struct *kdapl_portal_wq;

static DEFINE_MUTEX(kdapl_servers_lock);	/* kdapl_servers */
static LIST_HEAD(kdapl_servers);

static void kdapl_server_look(DAT_PVOID server, DAT_COUNT what)
{
	mod_delayed_work(kdapl_portal_wq, &((struct kdat_server *)server)->work, 0);
}

static void kdapl_server_work(struct work_struct *work)
{
	struct kdat_server *server = container_of(work, struct kdat_server, work.work);
	unsigned int flags = memalloc_noio_save();
	struct kdat_portal *p;
	bool again = false;

	/* Writing to a disk that is reached through this server may wait for this. */
	mutex_lock(&server->mutex);
	if (!server->dead) {
		/* There may be connections without portals. */
		kdapl_adapters_follow(server);
		list_for_each_entry(p, &server->portals, link)
			again |= kdapl_portal_look(p) != DAT_SUCCESS;
	}
	mutex_unlock(&server->mutex);
	memalloc_noio_restore(flags);
	if (again)
		queue_delayed_work(kdapl_portal_wq, &server->work, HZ);
}

static bool kdapl_server_check_attr(const KDAT_SERVER_ATTR *attr)
{
	const struct kdapl_rule rules[] = {
		{ "name", 0, attr->name, "a string" },
		{ "request", 0, attr->request, "a function" },
		{ "event", 0, attr->event, "a function" },
		{ "adapter_size", attr->adapter_size, attr->adapter_size >= sizeof(KDAT_ADAPTER),
		  "that of KDAT_ADAPTER, or more" },
	};

	return kdapl_rules_obeyed(NULL, rules, ARRAY_SIZE(rules));
}

DAT_RETURN kdat_server_create(const KDAT_SERVER_ATTR *attr, KDAT_SERVER_HANDLE *out)
{
	struct kdat_server *server;
	DAT_RETURN ret;

	might_sleep();
	if (!attr || !out || !kdapl_server_check_attr(attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	server = kzalloc(sizeof(*server), GFP_KERNEL);
	if (!server)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	server->attr = *attr;
	mutex_init(&server->mutex);
	INIT_LIST_HEAD(&server->portals);
	INIT_LIST_HEAD(&server->adapters);
	INIT_DELAYED_WORK(&server->work, kdapl_server_work);
	ret = kdat_notifier_create(kdapl_server_look, server, &server->notifier);
	if (ret != DAT_SUCCESS) {
		kfree(server);
		return ret;
	}
	mutex_lock(&kdapl_servers_lock);
	list_add_tail(&server->link, &kdapl_servers);
	mutex_unlock(&kdapl_servers_lock);
	*out = server;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_server_create);

void kdat_server_free(KDAT_SERVER_HANDLE server)
{
	struct kdat_portal *p, *next;

	might_sleep();
	if (!server)
		return;
	mutex_lock(&kdapl_servers_lock);
	list_del(&server->link);
	mutex_unlock(&kdapl_servers_lock);
	kdat_notifier_free(server->notifier);
	list_for_each_entry_safe(p, next, &server->portals, link)
		kdat_portal_free(p);
	wait_var_event(&server->open, !atomic_read(&server->open));
	cancel_delayed_work_sync(&server->work);
	kfree(server);
}
EXPORT_SYMBOL(kdat_server_free);

/*
 * @mod is being unloaded: no function of its servers is called from here on, but by upcalls.
 * The caller removes these, and closes the IAs; the memory of the servers stays. Return their
 * number.
 */
unsigned int kdapl_servers_forget(const struct module *mod)
{
	struct kdat_server *server;
	unsigned int n = 0;
	KDAT_ADAPTER *a;

	mutex_lock(&kdapl_servers_lock);
	list_for_each_entry(server, &kdapl_servers, link) {
		if (server->dead || !kdapl_in_module(server->attr.owner, mod))
			continue;
		kdat_notifier_free(server->notifier);
		mutex_lock(&server->mutex);
		server->dead = true;
		list_for_each_entry(a, &server->adapters, link)
			atomic_dec(&server->open);
		mutex_unlock(&server->mutex);
		/* Others are being closed. */
		wait_var_event(&server->open, !atomic_read(&server->open));
		n++;
	}
	mutex_unlock(&kdapl_servers_lock);
	return n;
}

/*
 * @mod has gone, and no upcall of its servers is left: wait for work items, after which nothing
 * queues any.
 */
void kdapl_servers_stop(const struct module *mod)
{
	struct kdat_server *server;
	KDAT_ADAPTER *a;

	mutex_lock(&kdapl_servers_lock);
	list_for_each_entry(server, &kdapl_servers, link) {
		if (!kdapl_in_module(server->attr.owner, mod))
			continue;
		cancel_delayed_work_sync(&server->work);
		list_for_each_entry(a, &server->adapters, link)
			flush_work(&a->free_work);
	}
	mutex_unlock(&kdapl_servers_lock);
}

int kdapl_servers_init(void)
{
	kdapl_portal_wq = alloc_workqueue("kdapl_portal", WQ_UNBOUND, 0);
	return kdapl_portal_wq ? 0 : -ENOMEM;
}

/* Waits for work items that no consumer needs any more, but which have not returned. */
void kdapl_servers_cleanup(void)
{
	destroy_workqueue(kdapl_portal_wq);
}
