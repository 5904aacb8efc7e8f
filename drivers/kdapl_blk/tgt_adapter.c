// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A port at work: open the adapter, listen, survive the removal of the adapter.
 *
 * Entry points: kbt_port_up() when the first subsystem is linked to a port, kbt_port_down()
 * when the last one is unlinked, kbt_port_wait() after that, kbt_port_retry() when the adapter
 * is removed or could not be opened, kbt_stop_work() when the last connection is freed.
 *
 * The port owns one struct kbt while it listens. The struct kbt owns the IA and everything
 * created on it: EVDs, PZ, PSP, SRQ, pools, connections, workqueues. When the device is
 * removed, kbt_port_retry() stops the struct kbt, and tries to open the adapter every
 * KBT_RETRY until it is back. A port whose adapter is not there yet, as when a host boots,
 * waits in the same way. The device may be renamed while it is served, and the port's
 * parameter follows: kbt_port_follow().
 *
 * A stopped struct kbt listens no more, and the port does not own it any more. As a medium may
 * keep requests of its connections for ever, nobody waits for it: the last connection that
 * ends queues kbt_stop_work(), which frees the struct kbt. Until then it holds references on
 * the port and on the module.
 *
 * Locks: port->mutex is held while a struct kbt is made, and while it is taken from its port;
 * kbt_stop_work() frees it without the mutex.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "blk_compat.h"
#include "status.h"
#include "tgt.h"

#define KBT_ASYNC_QLEN	64
#define KBT_CM_QLEN	64
#define KBT_RETRY	(HZ / 2)

/* ---- The adapter --------------------------------------------------------- */

static void kbt_async_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *async =
		&event->event_data.asynch_error_event_data;
	struct kbt *kbt = data;

	switch (event->event_number) {
	case DAT_ASYNC_SRQ_LOW_WATERMARK:
		kbt_count(kbt, KBT_STAT_LOW_WATERMARK, 1);
		kdat_pool_ran_low(kbt->rx);
		break;
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		kbt_conn_backlog(kbt, async->dat_handle);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		/*
		 * Each connection is broken by an event of its own; only the port is restarted
		 * here.
		 */
		pr_warn("%s is gone\n", kbt->params->ia);
		WRITE_ONCE(kbt->gone, true);
		queue_delayed_work(system_long_wq, &kbt->port->retry_work, 0);
		break;
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
		/*
		 * A client overran its credits: kDAPL breaks the connection, and kbt_judge()
		 * counts it.
		 */
		break;
	default:
		pr_warn_ratelimited("asynchronous event %s\n",
				    kdat_event_name(event->event_number));
	}
}

/*
 * Return @err, an error of a call on the IA; or -ENODEV if the adapter leaves: calls fail with
 * any error then, and new ones for want of the device.
 */
static int kbt_ia_error(struct kbt *kbt, int err)
{
	DAT_PZ_HANDLE pz;
	DAT_RETURN ret = dat_pz_create(kbt->ia, &pz);

	if (ret == DAT_SUCCESS)
		dat_pz_free(pz);
	return ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) ?
	       -ENODEV : err;
}

static int kbt_ia_open(struct kbt *kbt)
{
	DAT_UPCALL_OBJECT cm = { kbt, kbt_cm_upcall };
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	DAT_RETURN ret;
	int err;

	ret = dat_ia_open((char *)kbt->params->ia, KBT_ASYNC_QLEN,
			  &kbt->async_evd, &kbt->ia);
	if (ret != DAT_SUCCESS)
		return kblk_errno(ret);
	kdat_ia_id(kbt->ia, &kbt->ia_id);
	ret = dat_ia_query(kbt->ia, NULL,
			   DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT |
			   DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO, &attr,
			   DAT_PROVIDER_FIELD_FMR_SUPPORTED, &provider);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(kbt->ia, &kbt->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(kbt->ia, KBT_CM_QLEN,
				      DAT_UPCALL_SINGLE_INSTANCE, &cm,
				      DAT_EVD_CR_FLAG |
				      DAT_EVD_CONNECTION_FLAG, &kbt->cm_evd);
	if (ret != DAT_SUCCESS) {
		err = kbt_ia_error(kbt, kblk_errno(ret));
		dat_ia_close(kbt->ia, DAT_CLOSE_ABRUPT_FLAG);
		return err;
	}
	/* A device with fast registration also implements Send with Invalidate. */
	kbt->invalidate = provider.fmr_supported == DAT_TRUE;
	kbt->data_replies = clamp(attr.max_iov_segments_per_dto / 2, 1,
				  KBLK_REPLIES_PAGES);
	kbt->rdma_read_max = clamp(attr.max_rdma_read_per_ep_out, 1, 16);
	return 0;
}

/* Undo kbt_ia_open(). The abrupt close is for objects that were leaked. */
static void kbt_ia_close(struct kbt *kbt)
{
	dat_evd_free(kbt->cm_evd);
	dat_pz_free(kbt->pz);
	if (dat_ia_close(kbt->ia, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS)
		return;
	pr_warn("objects are left in %s\n", kbt->params->ia);
	dat_ia_close(kbt->ia, DAT_CLOSE_ABRUPT_FLAG);
}

/* ---- Start and stop ------------------------------------------------------ */

static void kbt_workqueues_free(struct kbt *kbt)
{
	if (kbt->end_wq)
		destroy_workqueue(kbt->end_wq);
	if (kbt->wq)
		destroy_workqueue(kbt->wq);
}

static int kbt_workqueues(struct kbt *kbt)
{
	/* A per-CPU queue: waking another CPU takes longer than serving a request. */
	kbt->wq = alloc_workqueue("kdapl_blk_tgt",
				  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	kbt->end_wq = alloc_workqueue("kdapl_blk_tgt_end", WQ_UNBOUND, 0);
	if (kbt->wq && kbt->end_wq)
		return 0;
	kbt_workqueues_free(kbt);
	return -ENOMEM;
}

static void kbt_deafen(struct kbt *kbt)
{
	dat_evd_modify_upcall(kbt->async_evd, DAT_UPCALL_TEARDOWN,
			      DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
}

static int kbt_listen(struct kbt *kbt)
{
	DAT_UPCALL_OBJECT async = { kbt, kbt_async_upcall };
	DAT_RETURN ret;

	/* kbt_async_upcall() uses the SRQ, which exists by now. */
	ret = dat_evd_modify_upcall(kbt->async_evd, DAT_UPCALL_SINGLE_INSTANCE,
				    &async, DAT_UPCALL_INVOC_ANY);
	if (ret != DAT_SUCCESS)
		return kblk_errno(ret);
	ret = dat_psp_create(kbt->ia, kbt->params->conn_qual, kbt->cm_evd,
			     DAT_PSP_CONSUMER_FLAG, &kbt->psp);
	if (ret == DAT_SUCCESS)
		return 0;
	kbt_deafen(kbt);
	return kblk_errno(ret);
}

static int kbt_start(struct kbt *kbt)
{
	int err;

	mutex_init(&kbt->mutex);
	INIT_LIST_HEAD(&kbt->conns);
	INIT_LIST_HEAD(&kbt->hosts);
	INIT_DELAYED_WORK(&kbt->silence_work, kbt_silence_work);
	err = kbt_workqueues(kbt);
	if (err)
		return err;
	err = kbt_ia_open(kbt);
	if (err)
		goto free_workqueues;
	err = kbt_srq_start(kbt);
	if (err)
		goto close_ia;
	err = kbt_pools_start(kbt);
	if (err)
		goto stop_srq;
	err = kbt_listen(kbt);
	if (err)
		goto stop_pools;
	queue_delayed_work(kbt->end_wq, &kbt->silence_work, 0);
	return 0;

stop_pools:
	kbt_pools_stop(kbt);
stop_srq:
	kbt_srq_stop(kbt);
close_ia:
	err = kbt_ia_error(kbt, err);
	kbt_ia_close(kbt);
free_workqueues:
	kbt_workqueues_free(kbt);
	return err;
}

/* Free what kbt_start() has made, except the listener. There are no connections. */
static void kbt_stop(struct kbt *kbt)
{
	cancel_delayed_work_sync(&kbt->silence_work);
	kbt_deafen(kbt);
	/* The last kbt_conn_free_work() may not have returned. */
	flush_workqueue(kbt->end_wq);
	kbt_srq_stop(kbt);
	kbt_pools_stop(kbt);
	kbt_ia_close(kbt);
	kbt_workqueues_free(kbt);
}

/* ---- Ports --------------------------------------------------------------- */

/* Free a struct kbt that was stopped and whose last connection was freed. */
static void kbt_stop_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(work, struct kbt, stop_work);
	struct kbt_port *port = kbt->port;

	/* Wait until kbt_port_stop() does not use @kbt any more. */
	mutex_lock(&port->mutex);
	mutex_unlock(&port->mutex);
	kbt_stop(kbt);
	kfree(kbt);
	/* kbt_exit() waits until this function returns. */
	module_put(THIS_MODULE);
	mutex_lock(&port->mutex);
	WRITE_ONCE(port->stopping, port->stopping - 1);
	mutex_unlock(&port->mutex);
	wake_up(&port->stopped);
	config_item_put(&port->group.cg_item);
}

/*
 * Update params.ia of @port to the present name of its adapter; if the adapter has left, the
 * last name stays. Context: process.
 */
void kbt_port_follow(struct kbt_port *port)
{
	char name[DAT_NAME_MAX_LENGTH];

	lockdep_assert_held(&port->mutex);

	if (!port->kbt ||
	    !kblk_ia_renamed(port->kbt->ia_id, port->params.ia, name))
		return;
	pr_info("%s is called %s now\n", port->params.ia, name);
	strscpy(port->params.ia, name, sizeof(port->params.ia));
}

/* Create the struct kbt of @port and listen. Context: process. */
static int kbt_port_make(struct kbt_port *port)
{
	struct kbt *kbt = kzalloc(sizeof(*kbt), GFP_KERNEL);
	int err;

	lockdep_assert_held(&port->mutex);

	if (!kbt)
		return -ENOMEM;
	kbt->port = port;
	kbt->params = &port->params;
	INIT_WORK(&kbt->stop_work, kbt_stop_work);
	err = kbt_start(kbt);
	if (err) {
		kfree(kbt);
		return err;
	}
	config_item_get(&port->group.cg_item);
	__module_get(THIS_MODULE);
	port->kbt = kbt;
	pr_info("listening on %s port %u\n", port->params.ia,
		port->params.conn_qual);
	return 0;
}

/* Return whether a port that cannot listen because of @err may be able to later. */
static bool kbt_comes_later(int err)
{
	/* The adapter does not exist, or has no address. */
	return err == -ENODEV || err == -EADDRNOTAVAIL;
}

/* Listen at @port. An error is logged once, until the error changes. */
static int kbt_port_start(struct kbt_port *port)
{
	int err = kbt_port_make(port);

	if (err && err != port->err && kbt_comes_later(err))
		pr_info("waiting for %s, to listen at port %u\n", port->params.ia,
			port->params.conn_qual);
	else if (err && err != port->err)
		pr_err("cannot listen on %s port %u: %s\n", port->params.ia,
		       port->params.conn_qual, kblk_listen_text(err));
	port->err = err;
	return err;
}

/* Stop listening and end all connections; kbt_stop_work() does the rest. Context: process. */
static void kbt_port_stop(struct kbt_port *port)
{
	struct kbt *kbt = port->kbt;

	lockdep_assert_held(&port->mutex);

	if (!kbt)
		return;
	kbt_port_follow(port);
	port->kbt = NULL;
	port->stopping++;
	dat_psp_free(kbt->psp);
	kbt_conn_end_all(kbt);
}

/*
 * Restart the port: stop using an adapter that is gone, and try to open it again. The work
 * repeats until the port listens or is no longer wanted.
 */
void kbt_port_retry(struct work_struct *work)
{
	struct kbt_port *port = container_of(to_delayed_work(work),
					     struct kbt_port, retry_work);

	mutex_lock(&port->mutex);
	if (port->wanted) {
		if (port->kbt && READ_ONCE(port->kbt->gone))
			kbt_port_stop(port);
		if (!port->kbt && kbt_port_start(port))
			queue_delayed_work(system_long_wq, &port->retry_work,
					   KBT_RETRY);
	}
	mutex_unlock(&port->mutex);
}

/*
 * Start listening when the first subsystem is linked to @port, at once or when the adapter
 * appears. Context: process.
 */
int kbt_port_up(struct kbt_port *port)
{
	int err;

	lockdep_assert_held(&kbt_config);

	if (!port->params.ia[0])
		return -ENXIO;
	mutex_lock(&port->mutex);
	port->err = 0;
	err = kbt_port_start(port);
	if (kbt_comes_later(err)) {
		queue_delayed_work(system_long_wq, &port->retry_work, KBT_RETRY);
		err = 0;
	}
	port->wanted = !err;
	mutex_unlock(&port->mutex);
	return err;
}

/* Stop listening when the last subsystem is unlinked from @port. Context: process. */
void kbt_port_down(struct kbt_port *port)
{
	lockdep_assert_held(&kbt_config);

	mutex_lock(&port->mutex);
	port->wanted = false;
	kbt_port_stop(port);
	mutex_unlock(&port->mutex);
}

/*
 * Wait until nothing is left of a port that was stopped, for KBT_STOP_WAIT at most.
 * Context: process, no lock of this module held.
 */
void kbt_port_wait(struct kbt_port *port)
{
	if (wait_event_killable_timeout(port->stopped,
					!READ_ONCE(port->stopping),
					KBT_STOP_WAIT) <= 0)
		pr_warn("%s port %u is stopping: requests of its clients are still under way\n",
			port->params.ia, port->params.conn_qual);
}
