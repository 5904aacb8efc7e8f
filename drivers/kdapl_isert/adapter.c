// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adapters: an IA with one PZ, one SRQ and an EVD for each of up to KI_COMPS CPUs, which all
 * connections share. An adapter is made for its first portal and freed with the last of its
 * portals and connections. ki_adapters_lock protects the list, and the names, which follow the
 * names of the devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "isert.h"

static LIST_HEAD(ki_adapters);
static DEFINE_MUTEX(ki_adapters_lock);

static void ki_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			    DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *async =
		&event->event_data.asynch_error_event_data;
	struct ki_adapter *a = data;
	DAT_CONTEXT context;

	switch (event->event_number) {
	case DAT_ASYNC_SRQ_LOW_WATERMARK:
		atomic_long_inc(&a->stats[KI_STAT_LOW]);
		kdat_pool_ran_low(a->rx);
		break;
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		/*
		 * ki_conn_free() takes the mutex after dat_ep_free(), so the connection stays.
		 */
		mutex_lock(&a->cm_mutex);
		if (dat_get_consumer_context(async->dat_handle, &context) ==
		    DAT_SUCCESS)
			ki_credit_soft(context.as_ptr);
		mutex_unlock(&a->cm_mutex);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		pr_warn("%s is gone\n", a->name);
		WRITE_ONCE(a->gone, true);
		ki_portals_look(KDAT_CHANGED_IAS);
		break;
	default:
		pr_warn_ratelimited("%s: %s\n", a->name,
				    kdat_event_name(event->event_number));
	}
}

static DAT_RETURN ki_adapter_query(struct ki_adapter *a)
{
	DAT_PROVIDER_ATTR *prov = kzalloc(sizeof(*prov), GFP_KERNEL);
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_RETURN ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);

	if (prov && attr)
		ret = dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, attr,
				   DAT_PROVIDER_FIELD_ALL, prov);
	if (ret == DAT_SUCCESS) {
		a->invalidate = prov->fmr_supported == DAT_TRUE;
		a->max_iov = clamp(attr->max_iov_segments_per_rdma_write, 1, KI_IOV);
		a->max_read_iov = clamp(attr->max_iov_segments_per_rdma_read, 1,
					KI_IOV);
		a->max_reads = clamp(attr->max_rdma_read_per_ep_out, 1, KI_READS);
		a->max_rdma = min_t(u64, attr->max_rdma_size, SZ_16M);
		a->max_srq = attr->max_recv_per_srq;
		/* Only iWARP has longer private data. */
		a->iwarp = prov->max_private_data_size > 56;
	}
	kfree(prov);
	kfree(attr);
	return ret;
}

static DAT_RETURN ki_adapter_comps(struct ki_adapter *a)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_UPCALL_OBJECT upcall;
	struct ki_comp *comp;

	a->ncomps = min_t(unsigned int, num_online_cpus(), KI_COMPS);
	for (comp = a->comps; comp < a->comps + a->ncomps; comp++) {
		comp->a = a;
		mutex_init(&comp->mutex);
		upcall.instance_data = comp;
		upcall.upcall_func = ki_comp_upcall;
		/* LIO may sleep while it handles a PDU, so no upcalls in softirq. */
		ret = dat_evd_kcreate(a->ia, KI_EVD_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &upcall,
				      DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
				      &comp->evd);
		if (ret == DAT_SUCCESS)
			ret = kdat_evd_set_vector(comp->evd, comp - a->comps);
		if (ret != DAT_SUCCESS)
			break;
	}
	return ret;
}

static DAT_RETURN ki_adapter_objects(struct ki_adapter *a)
{
	DAT_UPCALL_OBJECT cm = { a, ki_cm_upcall }, async = { a, ki_async_upcall };
	DAT_RETURN ret;

	ret = ki_adapter_query(a);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(a->ia, &a->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(a->ia, KI_EVD_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &cm,
				      DAT_EVD_CONNECTION_FLAG, &a->cm_evd);
	if (ret == DAT_SUCCESS)
		ret = ki_adapter_comps(a);
	if (ret == DAT_SUCCESS)
		ret = ki_srq_start(a);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_modify_upcall(a->async_evd,
					    DAT_UPCALL_SINGLE_INSTANCE, &async,
					    DAT_UPCALL_INVOC_ANY);
	return ret;
}

/* Close the IA with everything that is left in it, and free the memory. */
static void ki_adapter_destroy(struct ki_adapter *a)
{
	struct ki_comp *comp;

	dat_evd_modify_upcall(a->async_evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
			      DAT_UPCALL_INVOC_NEW);
	ki_ping_stop(a);
	kdat_pool_free(a->rx);
	dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG);
	for (comp = a->comps; comp < a->comps + KI_COMPS; comp++)
		ki_lanes_free(comp);
	kfree(a);
}

static void ki_adapter_release(struct kref *ref)
{
	struct ki_adapter *a = container_of(ref, struct ki_adapter, ref);

	list_del(&a->link);
	mutex_unlock(&ki_adapters_lock);
	ki_adapter_destroy(a);
}

/* Drop a reference on @a. Context: process, but no upcall. */
void ki_adapter_put(struct ki_adapter *a)
{
	kref_put_mutex(&a->ref, ki_adapter_release, &ki_adapters_lock);
}

/*
 * Return @ret, an error of a call on @a; or that there is no such adapter, if it leaves: calls
 * fail with any error then, and new ones for want of the device.
 */
DAT_RETURN ki_adapter_error(const struct ki_adapter *a, DAT_RETURN ret)
{
	DAT_PZ_HANDLE pz;
	DAT_RETURN err = dat_pz_create(a->ia, &pz);

	if (err == DAT_SUCCESS)
		dat_pz_free(pz);
	return err == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) ?
	       DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED) : ret;
}

/* Open the IA @name and make its adapter. */
static DAT_RETURN ki_adapter_open(char *name, struct ki_adapter **adapter)
{
	struct ki_adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);
	struct ki_comp *comp;
	DAT_RETURN ret;

	if (!a)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	for (comp = a->comps; comp < a->comps + KI_COMPS; comp++)
		ki_lanes_init(comp);
	strscpy(a->name, name, sizeof(a->name));
	kref_init(&a->ref);
	mutex_init(&a->cm_mutex);
	INIT_LIST_HEAD(&a->conn_list);
	ki_ping_start(a);
	ret = dat_ia_open(a->name, KI_EVD_QLEN, &a->async_evd, &a->ia);
	if (ret != DAT_SUCCESS) {
		ki_ping_stop(a);
		kfree(a);
		return ret;
	}
	kdat_ia_id(a->ia, &a->id);
	ret = ki_adapter_objects(a);
	if (ret != DAT_SUCCESS) {
		ret = ki_adapter_error(a, ret);
		ki_adapter_destroy(a);
		return ret;
	}
	list_add(&a->link, &ki_adapters);
	*adapter = a;
	return DAT_SUCCESS;
}

/*
 * Set *@adapter to the adapter of the IA @name, with a reference. The caller has looked up
 * @name before it called ki_adapters_follow(). Context: process.
 */
DAT_RETURN ki_adapter_get_name(char *name, struct ki_adapter **adapter)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct ki_adapter *a;

	mutex_lock(&ki_adapters_lock);
	list_for_each_entry(a, &ki_adapters, link)
		if (!strcmp(a->name, name) && !READ_ONCE(a->gone)) {
			kref_get(&a->ref);
			*adapter = a;
			goto out;
		}
	ret = ki_adapter_open(name, adapter);
out:
	mutex_unlock(&ki_adapters_lock);
	return ret;
}

/* Adopt the present names of all adapters. Context: process. */
void ki_adapters_follow(void)
{
	char name[DAT_NAME_MAX_LENGTH];
	struct ki_adapter *a;

	mutex_lock(&ki_adapters_lock);
	list_for_each_entry(a, &ki_adapters, link) {
		if (kdat_ia_name(a->id, name) != DAT_SUCCESS || !strcmp(name, a->name))
			continue;
		pr_info("%s is called %s now\n", a->name, name);
		strscpy(a->name, name, sizeof(a->name));
	}
	mutex_unlock(&ki_adapters_lock);
}

/* Call @fn for each adapter, none of which is freed meanwhile. Context: process. */
void ki_adapters_each(void (*fn)(struct ki_adapter *a, void *data), void *data)
{
	struct ki_adapter *a;

	mutex_lock(&ki_adapters_lock);
	list_for_each_entry(a, &ki_adapters, link)
		fn(a, data);
	mutex_unlock(&ki_adapters_lock);
}
