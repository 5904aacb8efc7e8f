// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA devices: arrival, removal, and the registry that consumers see.
 *
 * ib_core is the provider registry. kdapl_add_one() allocates a struct kdapl_hca
 * for each of its devices, kdapl_remove_one() drops it; an IA name is a device
 * and a port.
 *
 * kdapl_remove_one() returns when no verbs object of this module is left on the
 * device, and does not wait for consumers: connections are broken, then the
 * verbs objects of every DAT object are destroyed. The DAT objects stay until
 * the consumer frees them.
 *
 * kdapl_hcas_lock protects the list of devices, their names and the list of IAs
 * of each device. It nests inside hca->sem.
 */
#include <dat/kdat_linux.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include "conn.h"
#include "evd.h"
#include "ia.h"
#include "srq.h"

static DEFINE_MUTEX(kdapl_hcas_lock);	/* see above */
static LIST_HEAD(kdapl_hcas);

/* Return the device whose name is the first @len bytes of @name, or NULL. */
static struct kdapl_hca *kdapl_hca_by_name(const char *name, size_t len)
{
	struct kdapl_hca *hca;

	lockdep_assert_held(&kdapl_hcas_lock);

	list_for_each_entry(hca, &kdapl_hcas, link)
		if (strlen(hca->name) == len && !memcmp(hca->name, name, len))
			return hca;
	return NULL;
}

/**
 * kdapl_hca_find - find the device and the port of an IA name
 * @name: "device/port", or "device" if the device has one port
 * @port: set to the port
 *
 * Context: Process context.
 * Return: the device, referenced, or NULL
 */
struct kdapl_hca *kdapl_hca_find(const char *name, u32 *port)
{
	const char *slash = strchr(name, '/');
	size_t len = slash ? slash - name : strlen(name);
	struct kdapl_hca *hca;
	char number[12];
	bool found;

	mutex_lock(&kdapl_hcas_lock);
	hca = kdapl_hca_by_name(name, len);
	if (!hca)
		goto out;
	*port = rdma_start_port(hca->dev);
	if (!slash) {
		found = hca->dev->phys_port_cnt == 1;
	} else if (kstrtou32(slash + 1, 10, port)) {
		found = false;
	} else {
		/* kstrtou32() also takes "+1", "01" and a newline. */
		snprintf(number, sizeof(number), "%u", *port);
		found = !strcmp(slash + 1, number) &&
			rdma_is_port_valid(hca->dev, *port);
	}
	if (found)
		kref_get(&hca->ref);
	else
		hca = NULL;
out:
	mutex_unlock(&kdapl_hcas_lock);
	return hca;
}

/*
 * Store the number of the IA of port @port of @dev at @id. Return false if @dev is unknown here
 * or is leaving. Context: Process context; @dev is only compared.
 */
bool kdapl_device_id(const struct ib_device *dev, u32 port, u64 *id)
{
	struct kdapl_hca *hca;
	bool found = false;

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(hca, &kdapl_hcas, link)
		if (hca->dev == dev) {
			*id = (u64)hca->serial << 32 | port;
			found = true;
		}
	mutex_unlock(&kdapl_hcas_lock);
	return found;
}

/* Put @ia, which is being opened, on the list of @hca. */
void kdapl_hca_add_ia(struct kdapl_hca *hca, struct kdapl_ia *ia)
{
	mutex_lock(&kdapl_hcas_lock);
	list_add_tail(&ia->obj.link, &hca->ias);
	mutex_unlock(&kdapl_hcas_lock);
}

/* Take @ia, which is being released, off the list of its device. */
void kdapl_hca_del_ia(struct kdapl_ia *ia)
{
	mutex_lock(&kdapl_hcas_lock);
	list_del_init(&ia->obj.link);
	mutex_unlock(&kdapl_hcas_lock);
}

/*
 * Walk over the IAs of @hca that are not being released: return the IA after @ia, whose
 * reference is dropped, or the first one if @ia is NULL. The result is referenced, which
 * keeps its place in the list; NULL at the end.
 */
struct kdapl_ia *kdapl_hca_next_ia(struct kdapl_hca *hca, struct kdapl_ia *ia)
{
	struct list_head *pos = ia ? &ia->obj.link : &hca->ias;
	struct kdapl_obj *next;

	mutex_lock(&kdapl_hcas_lock);
	next = kdapl_obj_behind(pos, &hca->ias);
	mutex_unlock(&kdapl_hcas_lock);
	if (ia)
		kdapl_obj_put(&ia->obj);
	return next ? next->ia : NULL;
}

/*
 * Read the addresses of all devices again: those of the host have changed.
 * Context: Process context.
 */
void kdapl_hcas_update_addrs(void)
{
	struct kdapl_hca *hca;

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(hca, &kdapl_hcas, link)
		kdapl_hca_update_addrs(hca);
	mutex_unlock(&kdapl_hcas_lock);
}

/*
 * Asynchronous events of the device. cxgb4 reports the limit of an SRQ here; the SRQ may
 * have been destroyed, so its pointer is compared and not dereferenced.
 */
static void kdapl_device_event(struct ib_event_handler *handler,
			       struct ib_event *event)
{
	struct kdapl_hca *hca = container_of(handler, struct kdapl_hca, events);
	struct kdapl_ia *ia = NULL;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED)
		while ((ia = kdapl_hca_next_ia(hca, ia)))
			kdapl_srq_device_event(ia, event->element.srq);
	else if (event->event == IB_EVENT_DEVICE_FATAL)
		while ((ia = kdapl_hca_next_ia(hca, ia)))
			kdapl_async_post(&ia->catastrophic);
	/* On RoCE an address is usable when it is in the table of GIDs. */
	else if (event->event == IB_EVENT_GID_CHANGE ||
		 event->event == IB_EVENT_PORT_ACTIVE)
		kdapl_addrs_changed();
}

/*
 * May memory that is mapped for @dev need syncs? It does if caches are not coherent; it
 * may if mappings can bounce (swiotlb), which limits their size.
 */
static bool kdapl_dma_may_sync(struct ib_device *dev)
{
	return !ib_uses_virt_dma(dev) &&
	       (dma_need_sync(dev->dma_device, 0) ||
		dma_max_mapping_size(dev->dma_device) != SIZE_MAX);
}

/* ib_client.add: a device has arrived; consumers can open its ports. */
static int kdapl_add_one(struct ib_device *dev)
{
	struct kdapl_hca *hca;
	bool resizes;

	hca = kdapl_hca_alloc();
	if (!hca) {
		/* ib_core ignores the error and offers the device once only. */
		dev_err(&dev->dev, "kdapl: no memory, the device cannot be used\n");
		return -ENOMEM;
	}
	hca->dev = dev;
	kdapl_hca_set_name(hca);
	hca->guid = be64_to_cpu(dev->node_guid);
	hca->node_type = dev->node_type;
	hca->max_qlen = dev->attrs.max_cqe;
	hca->attrs = dev->attrs;
	/* Other drivers that offer resizing are faulty or were never tested. */
	resizes = dev->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE &&
		  dev->ops.driver_id == RDMA_DRIVER_RXE;
	kdapl_quirk_find(hca, resizes ? 0 : BIT(KDAPL_QUIRK_SRQ_RESIZE));
	if (!kdapl_has_quirk(hca, KDAPL_QUIRK_NO_LAST_WQE))
		hca->last_wqe_ms = KDAPL_LAST_WQE_TRY_MS;
	/* A mended rxe gives a buffer back right before the event, which always comes. */
	hca->last_wqe_seen = dev->ops.driver_id == RDMA_DRIVER_RXE &&
			     !kdapl_has_quirk(hca, KDAPL_QUIRK_LOST_BUFFERS);
	if (kdapl_has_quirk(hca, KDAPL_QUIRK_OPEN_READS))
		dev_warn(&dev->dev,
			 "siw answers RDMA Reads without a look at privileges: peers can read all memory\n");
	hca->dma_syncs = kdapl_dma_may_sync(dev);
	if (hca->dma_syncs)
		static_branch_inc(&kdapl_dma_syncs);
	INIT_DELAYED_WORK(&hca->addr_work, kdapl_hca_addr_work);
	INIT_IB_EVENT_HANDLER(&hca->events, dev, kdapl_device_event);
	ib_register_event_handler(&hca->events);

	ib_set_client_data(dev, &kdapl_client, hca);
	mutex_lock(&kdapl_hcas_lock);
	list_add_tail(&hca->link, &kdapl_hcas);
	mutex_unlock(&kdapl_hcas_lock);
	kdapl_notify(KDAT_CHANGED_IAS);
	return 0;
}

/* End the communication of the IAs of @hca, which is leaving; see kdapl_ia_stop(). */
static void kdapl_hca_stop(struct kdapl_hca *hca, bool wait)
{
	struct kdapl_ia *ia = NULL;

	while ((ia = kdapl_hca_next_ia(hca, ia))) {
		/* Tasks that wait for a service connection check ->gone. */
		wake_up_all(&ia->wait);
		kdapl_ia_stop(ia, wait);
	}
}

/*
 * ib_client.remove: leave the device. The first pass of stopping does not wait, so two
 * connected Endpoints of this device go down in parallel; the last pass waits for each.
 * The flush ends the work that takes connections down and releases objects; the remaining
 * objects are stripped.
 */
static void kdapl_remove_one(struct ib_device *dev, void *data)
{
	struct kdapl_hca *hca = data;
	struct kdapl_ia *ia = NULL;

	/* First, so that calls on an IA fail whose name is not found any more. */
	WRITE_ONCE(hca->gone, true);
	mutex_lock(&kdapl_hcas_lock);
	list_del(&hca->link);
	mutex_unlock(&kdapl_hcas_lock);
	ib_unregister_event_handler(&hca->events);

	/*
	 * Make the first pass, with ->gone set, before waiting for the semaphore. A caller
	 * inside of kdapl_hca_enter() may wait for the end of a connection, or for
	 * another such caller; with ->gone set connections end without their peers.
	 */
	cancel_delayed_work_sync(&hca->addr_work);
	kdapl_hca_stop(hca, false);
	/* kdapl_hca_enter() fails from here on, so nothing is created. litmus: gone-lock */
	down_write(&hca->sem);
	up_write(&hca->sem);
	/* Again, for objects created meanwhile. */
	kdapl_hca_stop(hca, false);
	kdapl_hca_stop(hca, true);
	kdapl_partings_end(hca);
	flush_workqueue(hca->attempt_wq);
	flush_workqueue(hca->down_wq);
	flush_workqueue(hca->object_wq);
	flush_workqueue(kdapl_wq);

	/*
	 * Wait for calls that found ->gone not set: kdat_sg_map() adds objects.
	 * litmus: gone
	 */
	synchronize_rcu();
	/* Releases hold the semaphore for reading, so hca->ias is stable. */
	down_write(&hca->sem);
	list_for_each_entry(ia, &hca->ias, obj.link)
		kdapl_ia_strip(ia);
	/*
	 * Pairs with kdapl_lmr_is_posted(). Set before the event, at which consumers may
	 * free. litmus: left
	 */
	smp_store_release(&hca->left, true);
	list_for_each_entry(ia, &hca->ias, obj.link)
		kdapl_async_post(&ia->catastrophic);
	up_write(&hca->sem);
	/* Wait for a kdat_sg_unmap() that kdapl_sg_strip() found at work. litmus: gone */
	synchronize_rcu();
	/* Nothing is mapped any more, and no completion is polled. */
	if (hca->dma_syncs)
		static_branch_dec(&kdapl_dma_syncs);
	kdapl_hca_put(hca);
	kdapl_notify(KDAT_CHANGED_IAS);
}

/* ib_client.rename: the device has another name. Open IAs keep working. */
static void kdapl_rename_one(struct ib_device *dev, void *data)
{
	struct kdapl_hca *hca = data;

	mutex_lock(&kdapl_hcas_lock);
	kdapl_hca_set_name(hca);
	mutex_unlock(&kdapl_hcas_lock);
	kdapl_notify(KDAT_CHANGED_IAS);
}

struct ib_client kdapl_client = {
	.name = "kdapl",
	.add = kdapl_add_one,
	.remove = kdapl_remove_one,
	.rename = kdapl_rename_one,
};

/*
 * Store the numbers of all IAs, or of the IA @name if it is not NULL, at @ids, but of at most
 * @max. Return how many these are. Context: Process context.
 */
unsigned int kdapl_ia_ids(const char *name, u64 *ids, unsigned int max)
{
	struct kdapl_hca *hca, *only;
	unsigned int n = 0;
	u32 port, at = 0;

	only = name ? kdapl_hca_find(name, &at) : NULL;
	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(hca, &kdapl_hcas, link)
		rdma_for_each_port(hca->dev, port)
			if (n < max && !READ_ONCE(hca->gone) &&
			    (!name || (hca == only && port == at)))
				ids[n++] = (u64)hca->serial << 32 | port;
	mutex_unlock(&kdapl_hcas_lock);
	if (only)
		kdapl_hca_put(only);
	return n;
}

/* Is @ia the name of the IA of port @port of @hca, with the port or without? */
static bool kdapl_ia_is_called(const struct kdapl_hca *hca, u32 port, const char *ia)
{
	char name[DAT_NAME_MAX_LENGTH];

	lockdep_assert_held(&kdapl_hcas_lock);

	snprintf(name, sizeof(name), "%s/%u", hca->name, port);
	return !strcmp(ia, strchr(ia, '/') ? name : hca->name);
}

/*
 * Store the number of the IA with the GUID of @ident at @id. If several devices have the GUID,
 * it is the one with the number of @ident, or else the one that is called @name. Return whether
 * it was found. Context: Process context.
 */
bool kdapl_ia_again(const KDAT_IA_IDENT *ident, const char *name, u64 *id)
{
	unsigned int rank, best = 0, n = 0;
	struct kdapl_hca *hca;
	u64 now;

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(hca, &kdapl_hcas, link) {
		if (READ_ONCE(hca->gone) || !hca->guid || hca->guid != ident->guid ||
		    hca->node_type != ident->type ||
		    !rdma_is_port_valid(hca->dev, ident->port))
			continue;
		now = (u64)hca->serial << 32 | ident->port;
		rank = now == ident->id ? 3 : 1 + kdapl_ia_is_called(hca, ident->port, name);
		n++;
		if (rank <= best)
			continue;
		best = rank;
		*id = now;
	}
	mutex_unlock(&kdapl_hcas_lock);
	return best > 1 || n == 1;
}

/* Fill in @info for a port of @hca. */
static void kdapl_provider_info(struct kdapl_hca *hca, u32 port,
				DAT_PROVIDER_INFO *info)
{
	snprintf(info->ia_name, sizeof(info->ia_name), "%s/%u", hca->name,
		 port);
	info->dapl_version_major = DAT_VERSION_MAJOR;
	info->dapl_version_minor = DAT_VERSION_MINOR;
	info->is_thread_safe = DAT_THREADSAFE;
}

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return,
				       DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO **dat_provider_list)
{
	struct kdapl_hca *hca;
	bool bad = false;
	int n = 0;
	u32 port;

	might_sleep();
	if (!entries_returned)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (max_to_return < 0 || (max_to_return && !dat_provider_list))
		return DAT_ERROR(DAT_INVALID_PARAMETER, max_to_return < 0 ?
				 DAT_INVALID_ARG1 : DAT_INVALID_ARG3);

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(hca, &kdapl_hcas, link) {
		rdma_for_each_port(hca->dev, port) {
			if (n < max_to_return && dat_provider_list[n])
				kdapl_provider_info(hca, port,
						    dat_provider_list[n]);
			else if (n < max_to_return)
				bad = true;
			n++;
		}
	}
	mutex_unlock(&kdapl_hcas_lock);
	*entries_returned = n;
	if (bad)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (n > max_to_return)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_registry_list_providers);

DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR ia1_name,
					  const DAT_NAME_PTR ia2_name,
					  DAT_HA_RELATIONSHIP *answer)
{
	struct kdapl_hca *hca1, *hca2;
	DAT_RETURN ret = DAT_SUCCESS;
	u32 port1, port2;

	might_sleep();
	if (!ia1_name || !ia2_name || !answer)
		return DAT_ERROR(DAT_INVALID_PARAMETER,
				 !ia1_name ? DAT_INVALID_ARG1 :
				 !ia2_name ? DAT_INVALID_ARG2 :
					     DAT_INVALID_ARG3);
	hca1 = kdapl_hca_find(ia1_name, &port1);
	hca2 = kdapl_hca_find(ia2_name, &port2);
	/* No IA takes over from another one, so an IA is related to itself only. */
	if (!hca1 || !hca2)
		ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND,
				DAT_NAME_NOT_REGISTERED);
	else
		*answer = hca1 == hca2 && port1 == port2 ? DAT_HA_TRUE :
							   DAT_HA_FALSE;
	if (hca1)
		kdapl_hca_put(hca1);
	if (hca2)
		kdapl_hca_put(hca2);
	return ret;
}
EXPORT_SYMBOL(dat_registry_providers_related);
