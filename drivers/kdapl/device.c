// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA devices: arrival, removal, and the registry that consumers see.
 *
 * ib_core is the provider registry. Each of its devices is a struct kdapl_hca
 * from our add() to our remove(); an IA name is a device and a port.
 *
 * remove() returns when nothing of ours is left on the device, and it does not
 * wait for consumers: connections are broken, then every DAT object is stripped
 * of its verbs objects. The DAT objects stay until the consumer frees them.
 */
#include <linux/slab.h>
#include "kdapl.h"
#include "trace.h"

static DEFINE_MUTEX(kdapl_hcas_lock);	/* protects kdapl_hcas and hca->ias */
static LIST_HEAD(kdapl_hcas);

static void kdapl_hca_free(struct kref *ref)
{
	kfree(container_of(ref, struct kdapl_hca, ref));
}

void kdapl_hca_put(struct kdapl_hca *hca)
{
	kref_put(&hca->ref, kdapl_hca_free);
}

/* Keep the device from leaving; false if it has left. May sleep. */
bool kdapl_hca_enter(struct kdapl_hca *hca)
{
	down_read(&hca->sem);
	if (!hca->gone)
		return true;
	up_read(&hca->sem);
	return false;
}

void kdapl_hca_leave(struct kdapl_hca *hca)
{
	up_read(&hca->sem);
}

static struct kdapl_hca *kdapl_hca_by_name(const char *name, size_t len)
{
	struct kdapl_hca *hca;

	list_for_each_entry(hca, &kdapl_hcas, link)
		if (strlen(hca->name) == len && !memcmp(hca->name, name, len))
			return hca;
	return NULL;
}

/**
 * kdapl_hca_find - find device and port of an IA name
 * @name: "device/port", or "device" if it has one port
 * @port: the port
 *
 * Return: the device, referenced, or NULL.
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

/* An IA is opened or released. */
void kdapl_hca_add_ia(struct kdapl_hca *hca, struct kdapl_ia *ia)
{
	mutex_lock(&kdapl_hcas_lock);
	list_add_tail(&ia->hca_link, &hca->ias);
	mutex_unlock(&kdapl_hcas_lock);
}

void kdapl_hca_del_ia(struct kdapl_ia *ia)
{
	mutex_lock(&kdapl_hcas_lock);
	list_del_init(&ia->hca_link);
	mutex_unlock(&kdapl_hcas_lock);
}

/* The @n-th open IA of a device, referenced; NULL at the end. */
static struct kdapl_ia *kdapl_hca_nth_ia(struct kdapl_hca *hca, int n)
{
	struct kdapl_ia *ia, *found = NULL;

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(ia, &hca->ias, hca_link) {
		if (n-- || !kref_get_unless_zero(&ia->obj.ref))
			continue;
		found = ia;
		break;
	}
	mutex_unlock(&kdapl_hcas_lock);
	return found;
}

/* An IA that this pass of removal has not seen, referenced and marked. */
static struct kdapl_ia *kdapl_hca_unstopped(struct kdapl_hca *hca, u8 pass)
{
	struct kdapl_ia *ia, *found = NULL;

	mutex_lock(&kdapl_hcas_lock);
	list_for_each_entry(ia, &hca->ias, hca_link) {
		if (ia->obj.stopped >= pass ||
		    !kref_get_unless_zero(&ia->obj.ref))
			continue;
		ia->obj.stopped = pass;
		found = ia;
		break;
	}
	mutex_unlock(&kdapl_hcas_lock);
	return found;
}

/* cxgb4 reports an SRQ's limit to the device; the pointer may be stale. */
static void kdapl_device_event(struct ib_event_handler *handler,
			       struct ib_event *event)
{
	struct kdapl_hca *hca = container_of(handler, struct kdapl_hca, events);
	struct kdapl_ia *ia;
	int n;

	if (event->event == IB_EVENT_SRQ_LIMIT_REACHED) {
		for (n = 0; (ia = kdapl_hca_nth_ia(hca, n)); n++) {
			kdapl_srq_device_event(ia, event->element.srq);
			kdapl_obj_put(&ia->obj);
		}
	} else if (event->event == IB_EVENT_DEVICE_FATAL) {
		for (n = 0; (ia = kdapl_hca_nth_ia(hca, n)); n++) {
			kdapl_async_post(&ia->catastrophic);
			kdapl_obj_put(&ia->obj);
		}
	}
}

static int kdapl_add_one(struct ib_device *dev)
{
	struct kdapl_hca *hca;

	hca = kzalloc(sizeof(*hca), GFP_KERNEL);
	if (!hca)
		return -ENOMEM;
	hca->dev = dev;
	init_rwsem(&hca->sem);
	xa_init_flags(&hca->keys, XA_FLAGS_LOCK_IRQ);
	kref_init(&hca->ref);
	INIT_LIST_HEAD(&hca->ias);
	strscpy(hca->name, dev_name(&dev->dev), sizeof(hca->name));
	hca->max_qlen = dev->attrs.max_cqe;
	hca->attrs = dev->attrs;
	/* Others offer it and get it wrong, or were never tried. */
	hca->srq_resize = dev->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE &&
			  dev->ops.driver_id == RDMA_DRIVER_RXE;
	/* rxe looks up an SRQ buffer's lkey in the PD of the QP. */
	hca->srq_any_pz = dev->ops.driver_id != RDMA_DRIVER_RXE;
	/* It looks for the mark of a solicited message on the receive request. */
	hca->rings_solicited = dev->ops.driver_id != RDMA_DRIVER_SIW;
	INIT_IB_EVENT_HANDLER(&hca->events, dev, kdapl_device_event);
	ib_register_event_handler(&hca->events);

	ib_set_client_data(dev, &kdapl_client, hca);
	mutex_lock(&kdapl_hcas_lock);
	list_add_tail(&hca->link, &kdapl_hcas);
	mutex_unlock(&kdapl_hcas_lock);
	return 0;
}

static void kdapl_remove_one(struct ib_device *dev, void *data)
{
	struct kdapl_hca *hca = data;
	struct kdapl_ia *ia;
	u8 pass;

	mutex_lock(&kdapl_hcas_lock);
	list_del(&hca->link);
	mutex_unlock(&kdapl_hcas_lock);
	ib_unregister_event_handler(&hca->events);

	/* Nothing new from here on. */
	down_write(&hca->sem);
	WRITE_ONCE(hca->gone, true);
	up_write(&hca->sem);

	for (pass = 1; pass <= 2; pass++) {
		while ((ia = kdapl_hca_unstopped(hca, pass))) {
			kdapl_ia_stop(ia, pass);
			kdapl_obj_put(&ia->obj);
		}
	}
	flush_workqueue(kdapl_wq);

	/* With the semaphore held for writing no IA is released. */
	down_write(&hca->sem);
	list_for_each_entry(ia, &hca->ias, hca_link) {
		kdapl_ia_strip(ia);
		kdapl_async_post(&ia->catastrophic);
	}
	up_write(&hca->sem);
	kdapl_hca_put(hca);
}

/* The device got another name; open IAs keep working. */
static void kdapl_rename_one(struct ib_device *dev, void *data)
{
	struct kdapl_hca *hca = data;

	mutex_lock(&kdapl_hcas_lock);
	strscpy(hca->name, dev_name(&dev->dev), sizeof(hca->name));
	mutex_unlock(&kdapl_hcas_lock);
}

struct ib_client kdapl_client = {
	.name = "kdapl",
	.add = kdapl_add_one,
	.remove = kdapl_remove_one,
	.rename = kdapl_rename_one,
};

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
	/* No IA takes over from another one here. */
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
