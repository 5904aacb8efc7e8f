// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A port at work: what its connections share, and its begin and end.
 *
 * Entry points: kbt_port_up() when the first subsystem is linked to a port, kbt_port_down()
 * when the last one is unlinked, kbt_port_wait() after that.
 *
 * A port is a portal of <dat/kdat_portal.h>, which listens when the adapter is there. Each time
 * it begins to, it gets a struct kbt, with an adapter of its own: EVDs, PZ, SRQ, pools,
 * connections, workqueues. When the adapter is removed, or the port goes down, kbt_deaf() takes
 * the struct kbt from its port and ends all connections. As a medium may keep requests of these
 * for ever, nobody waits for that: kDAPL closes the adapter behind the last connection that
 * ends. Until then the struct kbt holds references on the port and on the module.
 *
 * Locks: port->mutex is held while a struct kbt is given to its port, and while it is taken
 * from it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/printk.h>
#include "blk_compat.h"
#include "tgt.h"

#define KBT_CM_QLEN	64

static KDAT_SERVER_HANDLE kbt_server;

/* ---- The adapter --------------------------------------------------------- */

static DAT_BOOLEAN kbt_async(KDAT_ADAPTER *adapter, const DAT_EVENT *event)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);

	switch (event->event_number) {
	case DAT_ASYNC_SRQ_LOW_WATERMARK:
		kbt_count(kbt, KBT_STAT_LOW_WATERMARK, 1);
		return DAT_TRUE;
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		kbt_conn_backlog(kbt, event->event_data.asynch_error_event_data.dat_handle);
		return DAT_TRUE;
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
		/*
		 * A client overran its credits: kDAPL breaks the connection, and kbt_judge()
		 * counts it.
		 */
		return DAT_TRUE;
	default:
		return DAT_FALSE;
	}
}

/* Change the number of struct kbts that @port has had and that are not freed. */
static void kbt_port_kbts(struct kbt_port *port, int change)
{
	mutex_lock(&port->mutex);
	WRITE_ONCE(port->kbts, port->kbts + change);
	mutex_unlock(&port->mutex);
	wake_up(&port->stopped);
}

static DAT_RETURN kbt_open(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);
	struct kbt_port *port = context;

	kbt->port = port;
	kbt->params = &port->params;
	config_item_get(&port->group.cg_item);
	__module_get(THIS_MODULE);
	kbt_port_kbts(port, 1);
	mutex_init(&kbt->mutex);
	INIT_LIST_HEAD(&kbt->conns);
	INIT_LIST_HEAD(&kbt->hosts);
	INIT_DELAYED_WORK(&kbt->silence_work, kbt_silence_work);
	kbt_credits_init(kbt);
	/* A device with fast registration also implements Send with Invalidate. */
	kbt->invalidate = adapter->provider.fmr_supported == DAT_TRUE;
	kbt->data_replies = clamp(adapter->attr.max_iov_segments_per_dto / 2, 1,
				  KBLK_REPLIES_PAGES);
	kbt->rdma_read_max = clamp(adapter->attr.max_rdma_read_per_ep_out, 1, 16);
	if (kbt_pools_start(kbt))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	/* A per-CPU queue: waking another CPU takes longer than serving a request. */
	kbt->wq = alloc_workqueue("kdapl_blk_tgt",
				  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	kbt->end_wq = alloc_workqueue("kdapl_blk_tgt_end", WQ_UNBOUND, 0);
	return kbt->wq && kbt->end_wq ? DAT_SUCCESS :
	       DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/* All connections are freed. */
static void kbt_close(KDAT_ADAPTER *adapter)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);

	cancel_delayed_work_sync(&kbt->silence_work);
	/* Waits for the last kbt_conn_free_work(), which may not have returned. */
	if (kbt->end_wq)
		destroy_workqueue(kbt->end_wq);
	if (kbt->wq)
		destroy_workqueue(kbt->wq);
	kbt_pools_stop(kbt);
}

static void kbt_closed(KDAT_ADAPTER *adapter)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);
	struct kbt_port *port = kbt->port;

	/* kbt_exit() waits until this function returns. */
	module_put(THIS_MODULE);
	kbt_port_kbts(port, -1);
	config_item_put(&port->group.cg_item);
}

/*
 * Update params.ia of @port to the present name of its adapter; if the adapter has left, the
 * last name stays. Context: process.
 */
void kbt_port_follow(struct kbt_port *port)
{
	KDAT_IA_IDENT ident = { .id = port->kbt ? port->kbt->adapter.id : 0 };
	char name[DAT_NAME_MAX_LENGTH];

	lockdep_assert_held(&port->mutex);

	if (kblk_ia_renamed(&ident, port->params.ia, name))
		strscpy(port->params.ia, name, sizeof(port->params.ia));
}

/* The port listens. */
static void kbt_listens(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);
	struct kbt_port *port = context;

	mutex_lock(&port->mutex);
	port->kbt = kbt;
	mutex_unlock(&port->mutex);
	queue_delayed_work(kbt->end_wq, &kbt->silence_work, 0);
}

/* The port does not listen any more: end all connections. */
static void kbt_deaf(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);
	struct kbt_port *port = context;

	mutex_lock(&port->mutex);
	kbt_port_follow(port);
	port->kbt = NULL;
	mutex_unlock(&port->mutex);
	kbt_conn_end_all(kbt);
}

static const KDAT_SERVER_ATTR kbt_server_attr = {
	.owner = THIS_MODULE,
	.name = KBUILD_MODNAME,
	.adapter_size = sizeof(struct kbt),
	.exclusive = DAT_TRUE,
	.cm_qlen = KBT_CM_QLEN,
	.cr_qlen = KBT_CM_QLEN,
	.buffer_length = KBLK_MESSAGE,
	.buffer_header = sizeof(struct kblk_request),
	.size = kbt_srq_size,
	.open = kbt_open,
	.close = kbt_close,
	.closed = kbt_closed,
	.listens = kbt_listens,
	.deaf = kbt_deaf,
	.request = kbt_conn_request,
	.event = kbt_conn_upcall,
	.async = kbt_async,
};

int kbt_server_start(void)
{
	return kblk_errno(kdat_server_create(&kbt_server_attr, &kbt_server));
}

void kbt_server_stop(void)
{
	kdat_server_free(kbt_server);
}

/* ---- Ports --------------------------------------------------------------- */

/*
 * Start listening when the first subsystem is linked to @port, at once or when the adapter
 * appears. Context: process.
 */
int kbt_port_up(struct kbt_port *port)
{
	KDAT_PORTAL_ATTR attr = {
		.ia_name = port->params.ia,
		.port = port->params.conn_qual,
		.context = port,
	};

	lockdep_assert_held(&kbt_config);

	if (!port->params.ia[0])
		return -ENXIO;
	return kblk_errno(kdat_portal_create(kbt_server, &attr, &port->portal));
}

/* Stop listening when the last subsystem is unlinked from @port. Context: process. */
void kbt_port_down(struct kbt_port *port)
{
	lockdep_assert_held(&kbt_config);

	kdat_portal_free(port->portal);
	port->portal = NULL;
}

/*
 * Wait until nothing is left of a port that was stopped, for KBT_STOP_WAIT at most.
 * Context: process, no lock of this module held.
 */
void kbt_port_wait(struct kbt_port *port)
{
	if (wait_event_killable_timeout(port->stopped, !READ_ONCE(port->kbts),
					KBT_STOP_WAIT) <= 0)
		pr_warn("%s port %u is stopping: requests of its clients are still under way\n",
			port->params.ia, port->params.conn_qual);
}
