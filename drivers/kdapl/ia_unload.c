// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Consumers that are unloaded, or fail to load, and leave something behind.
 *
 * The kernel reports a leaving module when nothing pins it any more and its exit
 * function, if it was loaded, has returned. The memory of the module is freed when
 * kdapl_module_event() returns. So by then kdapl.ko must give up everything in that memory:
 * the functions and data of upcalls and notifiers, and memory that the IAs of the
 * module use: LMRs, scatterlists, arrays of physical addresses. An IA is closed as by
 * dat_ia_close(), which invalidates and unmaps all of this.
 *
 * The address of a function of an upcall, notifier or pool tells its module, whoever owns
 * the IA. The module of an IA is in kdapl_ia.opener. Memory of one module in the IA of another
 * module is the business of that other module.
 *
 * The event handler waits for running upcalls, whose code is about to go, and for the end
 * of connections. It holds no lock but that of the chain of module notifiers, for reading.
 *
 * The wait for connections has no time limit. No connection may be left behind: nothing
 * keeps the module's memory after the notifiers have returned, and a device that still has
 * a queue pair may write there. But only a driver that never answers rdma_accept() makes
 * the wait long (kdapl_ep_is_stuck()). The log then names the device every 15 s. kdapl.ko
 * takes down everything else meanwhile.
 */
#include <linux/module.h>
#include <linux/notifier.h>
#include "evd.h"
#include "ia.h"

/* Remove all upcalls whose functions are in @mod. Return the number of their EVDs. */
static unsigned int kdapl_unload_upcalls(const struct module *mod)
{
	struct kdapl_obj *obj;
	unsigned int n = 0;
	u32 index = 0;

	while ((obj = kdapl_obj_find_next(&index))) {
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_EVD)
			n += kdapl_upcall_forget(container_of(obj, struct kdapl_evd, obj),
						 mod);
		kdapl_obj_put(obj);
	}
	return n;
}

/*
 * @mod has been loaded, and the memory of its init functions, about to be freed, may
 * belong to another module later. Make IAs that an init function has opened IAs of @mod.
 */
static void kdapl_unload_adopt(const struct module *mod)
{
	struct kdapl_obj *obj;
	u32 index = 0;

	while ((obj = kdapl_obj_find_next(&index))) {
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_IA &&
		    within_module_init((unsigned long)obj->ia->opener, mod))
			WRITE_ONCE(obj->ia->opener, mod);
		kdapl_obj_put(obj);
	}
}

static void kdapl_unload_warn(const struct kdapl_ia *ia, const struct module *mod)
{
	char name[IB_DEVICE_NAME_MAX];

	kdapl_hca_name(ia->hca, name);
	pr_warn("kdapl: %s goes when the driver of %s ends a connection that is being accepted\n",
		mod->name, name);
}

/*
 * Close all IAs that @mod has opened. Return their number, and in *@objects that of their
 * objects.
 */
static unsigned int kdapl_unload_ias(const struct module *mod, unsigned int *objects)
{
	struct kdapl_obj *obj;
	unsigned int n = 0;
	u32 index = 0;

	*objects = 0;
	while ((obj = kdapl_obj_find_next(&index))) {
		if (kdapl_type(obj) == DAT_HANDLE_TYPE_IA &&
		    kdapl_in_module(READ_ONCE(obj->ia->opener), mod)) {
			n++;
			*objects += atomic_read(&obj->ia->live);
			/*
			 * Until the IA is closed the device may write into the module's
			 * memory.
			 */
			while (DAT_GET_TYPE(dat_ia_close(kdapl_handle(obj),
							 DAT_CLOSE_ABRUPT_FLAG)) ==
			       DAT_INVALID_STATE)
				kdapl_unload_warn(obj->ia, mod);
		}
		kdapl_obj_put(obj);
	}
	return n;
}

static int kdapl_module_event(struct notifier_block *nb, unsigned long state,
			      void *data)
{
	unsigned int ias, objects, upcalls, notifiers, pools, servers;
	const struct module *mod = data;

	if (state == MODULE_STATE_LIVE)
		kdapl_unload_adopt(mod);
	if (state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	servers = kdapl_servers_forget(mod);
	notifiers = kdapl_notify_forget(mod);
	upcalls = kdapl_unload_upcalls(mod);
	kdapl_servers_stop(mod);
	/* Their work items call the module, and nothing after this queues them. */
	kdapl_pools_stop(mod);
	ias = kdapl_unload_ias(mod, &objects);
	pools = kdapl_pools_forget(mod);
	if (ias || upcalls || notifiers || pools || servers)
		pr_warn("kdapl: %s goes and has left %u IAs with %u objects, %u upcalls, %u notifiers, %u pools, %u servers: all closed\n",
			mod->name, ias, objects, upcalls, notifiers, pools, servers);
	return NOTIFY_DONE;
}

/*
 * Called first of all notifiers: until its upcalls are removed, the module's code runs,
 * with the tracepoints, probes and static keys that other notifiers take away.
 */
static struct notifier_block kdapl_module_nb = {
	.notifier_call = kdapl_module_event,
	.priority = INT_MAX,
};

int kdapl_unload_setup(void)
{
	return register_module_notifier(&kdapl_module_nb);
}

void kdapl_unload_cleanup(void)
{
	unregister_module_notifier(&kdapl_module_nb);
}
