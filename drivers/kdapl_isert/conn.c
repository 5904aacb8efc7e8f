// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections. The upcall of a portal's listener accepts them. LIO takes a connection over
 * when the first login request is there (ki_accept_np()), since LIO's thread of the portal
 * handles one connection after the other. A connection is freed when LIO has released its own,
 * or if it ends before LIO takes it over, by c->ended.
 *
 * A connection ends when its Endpoint's last event has come (->down): LIO's receiving thread
 * notices, and takes the connection down through ki_wait_conn() and ki_free_conn(). Any other
 * function ends a connection by disconnecting the Endpoint.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <compat_probe.h>
#include <target/iscsi/iscsi_target_core.h>
#include "isert.h"

/* Number of the last connection */
static atomic_t ki_ids;

/* Log why a connection ends. Context: any. */
void ki_conn_warn(struct ki_conn *c, const char *why)
{
	const char *name = READ_ONCE(c->iqn) ?: "an initiator";

	pr_warn_ratelimited("%*pE at %s is disconnected: %s\n", (int)strlen(name), name, c->peer,
			    why);
}

/*
 * End a connection, once, because of what its peer has done. litmus: one-winner
 * Context: any.
 */
static void ki_conn_blame(struct ki_conn *c, const char *why)
{
	if (xchg(&c->broken, true))
		return;
	atomic_long_inc(&c->a->stats[KI_STAT_BROKEN]);
	ki_conn_warn(c, why);
	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* End a connection as ki_conn_blame() does, unless it has ended. Context: any. */
void ki_conn_break(struct ki_conn *c, const char *why)
{
	if (!READ_ONCE(c->down))
		ki_conn_blame(c, why);
}

/*
 * Handle an error @status of a request of @c. If a command names memory that the initiator
 * does not have, the initiator's adapter ends the connection, and may have done so before this
 * side is told why. Context: any.
 */
void ki_conn_judge(struct ki_conn *c, DAT_DTO_COMPLETION_STATUS status)
{
	if (status == DAT_DTO_ERR_REMOTE_ACCESS)
		ki_conn_blame(c, "the memory that a command names is not there");
}

/* Register the memory of answers, and set @all to all of it. */
static int ki_conn_register(struct ki_conn *c, DAT_LMR_TRIPLET *all)
{
	DAT_REGION_DESCRIPTION region = { .for_va = page_address(c->tx_pages) };
	struct ki_adapter *a = c->a;
	DAT_RETURN ret;

	all->segment_length = KI_TXS * KI_TX_LEN;
	ret = dat_lmr_kcreate(a->base.ia, DAT_MEM_TYPE_VIRTUAL, region, all->segment_length,
			      a->base.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &c->tx_lmr, &all->lmr_context,
			      NULL, NULL, &all->virtual_address);
	if (ret == DAT_SUCCESS)
		return 0;
	if (!READ_ONCE(a->base.gone))
		pr_warn_ratelimited("%s: cannot register memory: %s\n", a->base.name,
				    ki_strerror(ret));
	return -ENOMEM;
}

/*
 * Free the memory of answers. dat_lmr_free() fails while a driver does not end a connection:
 * the device may still use the pages, which are leaked then.
 */
static void ki_conn_txs_free(struct ki_conn *c)
{
	if (c->tx_lmr && DAT_GET_TYPE(dat_lmr_free(c->tx_lmr)) == DAT_INVALID_STATE)
		pr_err("%s: a connection does not end: %lu bytes are lost\n", c->a->base.name,
		       PAGE_SIZE << KI_TX_ORDER);
	else if (c->tx_pages)
		__free_pages(c->tx_pages, KI_TX_ORDER);
	kfree(c->tx_array);
}

static int ki_conn_txs(struct ki_conn *c)
{
	DAT_LMR_TRIPLET all;
	struct ki_tx *tx;
	unsigned int i;
	int err;

	BUILD_BUG_ON(KI_HEADERS + KI_TX_DATA > KI_TX_LEN);
	c->tx_array = kcalloc(KI_TXS, sizeof(*tx), GFP_KERNEL);
	c->tx_pages = alloc_pages(GFP_KERNEL, KI_TX_ORDER);
	if (!c->tx_array || !c->tx_pages)
		return -ENOMEM;
	err = ki_conn_register(c, &all);
	if (err)
		return err;
	for (i = 0; i < KI_TXS; i++) {
		tx = &c->tx_array[i];
		tx->va = page_address(c->tx_pages) + i * KI_TX_LEN;
		tx->seg = all;
		tx->seg.virtual_address += i * KI_TX_LEN;
		tx->next = c->txs;
		c->txs = tx;
	}
	return 0;
}

static DAT_RETURN ki_conn_ep(struct ki_conn *c)
{
	struct ki_adapter *a = c->a;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = KI_BUF_LEN,
		.max_rdma_size = a->max_rdma,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = KI_REQUESTS,
		.max_request_iov = min(2, a->max_iov),
		.max_rdma_read_iov = a->max_read_iov,
		.max_rdma_write_iov = a->max_iov,
		.max_rdma_read_out = a->max_reads,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_CONTEXT context = { .as_ptr = c };
	DAT_RETURN ret;

	ret = dat_ep_create_with_srq(a->base.ia, a->base.pz, c->comp->evd, c->comp->evd,
				     a->base.cm_evd, a->base.srq, &attr, &c->ep);
	if (ret == DAT_SUCCESS)
		dat_set_consumer_context(c->ep, context);
	return ret;
}

/*
 * Free a connection with nothing posted: LIO has never had it, or ki_conn_stop() has run.
 * There is no wait for the end of the connection, since over iWARP a peer that is not
 * established decides when it comes.
 */
void ki_conn_free(struct ki_conn *c)
{
	KDAT_POOL_BUF *buf, *next;

	ki_conn_forget(c);
	if (c->ep)
		dat_ep_free(c->ep);
	/* No upcall finds the connection any more; wait for upcalls that have found it. */
	mutex_lock(&c->comp->mutex);
	mutex_unlock(&c->comp->mutex);
	mutex_lock(&c->a->cm_mutex);
	list_del(&c->adapter_link);
	mutex_unlock(&c->a->cm_mutex);
	ki_bufs_take_back(c);
	list_for_each_entry_safe(buf, next, &c->unread, link)
		kdat_pool_put(c->a->base.pool, buf);
	if (c->login_buf)
		kdat_pool_put(c->a->base.pool, c->login_buf);
	ki_conn_txs_free(c);
	ki_credit_end(c);
	kfree(c->iqn);
	kdat_adapter_put(&c->a->base);
	kfree(c);
}

/* Disconnect @c, and wait until everything that was posted has completed. */
void ki_conn_stop(struct ki_conn *c)
{
	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	wait_event(c->wq, READ_ONCE(c->down));
	ki_queue_stop(c);
}

/* ---- Connections that were refused ------------------------------------------------- */

/*
 * LIO has released these connections, so that its thread need not wait until the initiators
 * have taken their refusals: c->linger ends each connection when its refusal was taken, or
 * after KI_SILENCE. When there are more than KI_PENDING, the oldest ends at once.
 * ki_linger_lock protects the list; c->lock is taken outside of it.
 */
static LIST_HEAD(ki_lingering);
static unsigned int ki_nlingering;
static DEFINE_SPINLOCK(ki_linger_lock);	/* ki_lingering */
static DECLARE_WAIT_QUEUE_HEAD(ki_linger_wq);

static void ki_linger_work(struct work_struct *work)
{
	struct ki_conn *c = container_of(to_delayed_work(work), struct ki_conn, linger);

	/*
	 * ki_conn_stop() flushes the refusal, whose completion would queue this work again.
	 * Without ->lingers it does not; cancel what was queued since the work began.
	 */
	spin_lock_bh(&c->lock);
	c->lingers = false;
	spin_lock(&ki_linger_lock);
	list_del_init(&c->link);
	spin_unlock(&ki_linger_lock);
	spin_unlock_bh(&c->lock);
	cancel_delayed_work(&c->linger);
	ki_conn_stop(c);
	ki_conn_free(c);
	/* This is the last step here: the module may go afterwards. */
	spin_lock_bh(&ki_linger_lock);
	if (!--ki_nlingering)
		wake_up_all(&ki_linger_wq);
	spin_unlock_bh(&ki_linger_lock);
}

/* End a connection that lingers. The caller holds its c->lock, or ki_linger_lock. */
void ki_linger_now(struct ki_conn *c)
{
	mod_delayed_work(ki_end_wq, &c->linger, 0);
}

/* Has LIO refused @c, whose peer may not have the refusal yet? c->lock is held. */
static bool ki_may_linger(struct ki_conn *c)
{
	lockdep_assert_held(&c->lock);
	return c->refused && c->sending && !READ_ONCE(c->down) && !READ_ONCE(c->broken);
}

/* Take @c over from LIO, which frees its own, if the peer may still be taking the refusal. */
static bool ki_conn_linger(struct ki_conn *c)
{
	bool lingers;

	spin_lock_bh(&c->lock);
	lingers = ki_may_linger(c);
	c->lingers = lingers;
	if (lingers) {
		spin_lock(&ki_linger_lock);
		if (++ki_nlingering > KI_PENDING && !list_empty(&ki_lingering))
			ki_linger_now(list_first_entry(&ki_lingering, struct ki_conn, link));
		list_add_tail(&c->link, &ki_lingering);
		queue_delayed_work(ki_end_wq, &c->linger, KI_SILENCE);
		spin_unlock(&ki_linger_lock);
	}
	spin_unlock_bh(&c->lock);
	return lingers;
}

static bool ki_nobody_lingers(void)
{
	bool none;

	spin_lock_bh(&ki_linger_lock);
	none = !ki_nlingering;
	spin_unlock_bh(&ki_linger_lock);
	return none;
}

/*
 * Wait until no connection lingers, and those that LIO never had are freed. The module goes, so
 * there are no new ones.
 */
void ki_linger_end(void)
{
	struct ki_conn *c;

	spin_lock_bh(&ki_linger_lock);
	list_for_each_entry(c, &ki_lingering, link)
		ki_linger_now(c);
	spin_unlock_bh(&ki_linger_lock);
	wait_event(ki_linger_wq, ki_nobody_lingers());
	flush_workqueue(ki_end_wq);
}

/* ---- Connections that end before LIO takes them --------------------------------------- */

static void ki_ended_work(struct work_struct *work)
{
	ki_conn_free(container_of(work, struct ki_conn, ended));
}

/*
 * Take @c, which has ended, off its portal and have it freed, unless LIO's thread has it, or
 * ki_request(), which looks at ->down after ->accepting. It is not left to LIO's thread, which
 * may be in the login of another connection for seconds: that many might end until then that
 * nobody else could connect.
 */
static void ki_pending_ended(struct ki_conn *c)
{
	struct ki_portal *p = c->portal;
	bool pending;

	lockdep_assert_held(&c->a->cm_mutex);
	spin_lock_bh(&p->lock);
	pending = !c->accepting && !list_empty(&c->link);
	if (pending) {
		list_del_init(&c->link);
		p->npending--;
		c->portal = NULL;
	}
	/* ki_free_np() does not find the connection any more: the portal may go. */
	spin_unlock_bh(&p->lock);
	if (pending)
		queue_work(ki_end_wq, &c->ended);
}

/* ---- Connection requests ------------------------------------------------------------- */

static struct ki_conn *ki_conn_new(struct ki_adapter *a, struct ki_portal *p,
				   const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	const struct sockaddr *remote = param->remote_ia_address_ptr;
	const struct iser_cm_hdr *cm = param->private_data;
	struct ki_conn *c = kzalloc(sizeof(*c), GFP_KERNEL);

	if (!c)
		return NULL;
	kdat_adapter_get(&a->base);
	c->a = a;
	/* litmus: none, both are counts. */
	c->comp = &a->comps[(unsigned int)atomic_inc_return(&a->next_comp) % a->ncomps];
	c->portal = p;
	c->id = atomic_inc_return(&ki_ids);
	INIT_LIST_HEAD(&c->link);
	INIT_LIST_HEAD(&c->unread);
	INIT_LIST_HEAD(&c->lent);
	ki_queue_init(c);
	INIT_DELAYED_WORK(&c->linger, ki_linger_work);
	INIT_WORK(&c->ended, ki_ended_work);
	init_waitqueue_head(&c->wq);
	init_waitqueue_head(&c->room);
	spin_lock_init(&c->lock);
	memcpy(&c->remote, remote, remote->sa_family == AF_INET6 ?
	       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	c->host = host->id;
	snprintf(c->peer, sizeof(c->peer), "%pISpc", &c->remote);
	c->since = jiffies;
	c->invalidate = a->invalidate &&
			param->private_data_size >= (DAT_COUNT)sizeof(*cm) &&
			!(cm->flags & ISER_SEND_W_INV_NOT_SUP);
	mutex_lock(&a->cm_mutex);
	list_add_tail(&c->adapter_link, &a->conn_list);
	mutex_unlock(&a->cm_mutex);
	if (!ki_credit_request(c))
		goto err;
	if (!ki_conn_txs(c) && ki_conn_ep(c) == DAT_SUCCESS)
		return c;
	pr_warn_ratelimited("%s: no resources for %s\n", a->base.name, c->peer);
err:
	ki_conn_free(c);
	return NULL;
}

/* Reject a connection request. Context: process. */
static void ki_cr_refuse(struct ki_adapter *a, DAT_CR_HANDLE cr)
{
	atomic_long_inc(&a->stats[KI_STAT_REFUSED]);
	dat_cr_reject(cr, 0, NULL);
}

/* The server's function for connection requests. Context: process. */
void ki_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	struct iser_cm_hdr cm = { .flags = ISERT_ZBVA_NOT_USED };
	struct ki_portal *p = context;
	struct ki_conn *c = NULL;
	DAT_RETURN ret;

	atomic_long_inc(&a->stats[KI_STAT_REQUESTS]);
	/* LIO takes one connection after the other; a peer that is turned away tries again. */
	if (!READ_ONCE(adapter->gone) && ki_pending_room(p, &host->id))
		c = ki_conn_new(a, p, param, host);
	if (!c) {
		ki_cr_refuse(a, cr);
		return;
	}
	if (!c->invalidate)
		cm.flags |= ISERT_SEND_W_INV_NOT_USED;
	/* Put the connection on the list before its first event can come. */
	c->accepting = true;
	spin_lock_bh(&p->lock);
	list_add_tail(&c->link, &p->pending);
	p->npending++;
	spin_unlock_bh(&p->lock);
	ret = dat_cr_accept(cr, c->ep, sizeof(cm), &cm);
	spin_lock_bh(&p->lock);
	c->accepting = false;
	if (ret == DAT_SUCCESS && !READ_ONCE(c->down)) {
		/* From here on it belongs to the portal's thread, or to ki_pending_ended(). */
		wake_up_all(&p->wq);
		spin_unlock_bh(&p->lock);
		return;
	}
	p->npending--;
	list_del_init(&c->link);
	spin_unlock_bh(&p->lock);
	if (ret != DAT_SUCCESS)
		pr_warn_ratelimited("%s: cannot accept %s: %s\n", adapter->name, c->peer,
				    ki_strerror(ret));
	ki_conn_free(c);
	/* The connection request still has to be answered. */
	if (ret != DAT_SUCCESS)
		ki_cr_refuse(a, cr);
}

/* Upcall for events of connections. Context: process. */
void ki_cm_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct ki_adapter *a = container_of(data, struct ki_adapter, base);
	DAT_CONTEXT context;
	struct ki_conn *c;

	mutex_lock(&a->cm_mutex);
	if (dat_get_consumer_context(ep, &context) == DAT_SUCCESS) {
		c = context.as_ptr;
		if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
			WRITE_ONCE(c->since, jiffies);
			/* Pairs with the acquire in ki_is_silent(). litmus: iser-open */
			smp_store_release(&c->open, true);
		} else {
			spin_lock_bh(&c->lock);
			WRITE_ONCE(c->down, true);
			/* Until LIO notices, nobody else can log in to the portal group. */
			ki_login_look(c);
			spin_unlock_bh(&c->lock);
		}
		wake_up_all(&c->wq);
		wake_up_all(&c->room);
		/* ->portal is cleared with the same mutex held. */
		if (c->portal && READ_ONCE(c->down))
			ki_pending_ended(c);
	}
	mutex_unlock(&a->cm_mutex);
}

/* ---- LIO ------------------------------------------------------------------------------ */

/*
 * Note that the first login request of @c has come, so that LIO can take @c. Context: process.
 */
void ki_conn_ready(struct ki_conn *c)
{
	mutex_lock(&c->a->cm_mutex);
	if (c->portal)
		wake_up_all(&c->portal->wq);
	mutex_unlock(&c->a->cm_mutex);
}

/*
 * Has LIO told the receiving thread of @conn to end? LIO does so by a signal, which does not
 * reach a thread that has not allowed signals yet. The thread allows signals before it calls
 * this function, and conn->state_lock orders the question and the signal. Context: process.
 */
bool ki_conn_must_end(struct iscsit_conn *conn)
{
	bool end;

	spin_lock_bh(&conn->state_lock);
	end = atomic_read(&conn->connection_reinstatement);
	spin_unlock_bh(&conn->state_lock);
	return end;
}

/*
 * List the commands that LIO has rejected and that wait for its transmitting thread, which has
 * ended. LIO then frees them with all others.
 */
static void ki_list_rejected(struct iscsit_conn *conn)
{
	struct iscsi_queue_req *qr;

	spin_lock_bh(&conn->cmd_lock);
	spin_lock(&conn->response_queue_lock);
	list_for_each_entry(qr, &conn->response_queue_list, qr_list)
		if (qr->state == ISTATE_SEND_REJECT &&
		    list_empty(&qr->cmd->i_conn_node))
			list_add_tail(&qr->cmd->i_conn_node, &conn->conn_cmd_list);
	spin_unlock(&conn->response_queue_lock);
	spin_unlock_bh(&conn->cmd_lock);
}

/* iscsit_wait_conn(): wait until nothing of the connection is at the device. */
void ki_wait_conn(struct iscsit_conn *conn)
{
	struct ki_conn *c = conn->context;
	bool lingers;

	if (!c)
		return;
	spin_lock_bh(&c->lock);
	WRITE_ONCE(c->closing, true);
	lingers = ki_may_linger(c);
	spin_unlock_bh(&c->lock);
	/* ki_pdu() gives nothing to LIO from now on; wait until a running call has returned. */
	mutex_lock(&c->comp->mutex);
	mutex_unlock(&c->comp->mutex);
	/* This function may run in that work, so it cannot wait for the work. */
	if (c->negotiates)
		cancel_delayed_work(&conn->login_work);
	/* There are no commands before a login is complete; ki_free_conn() does the rest. */
	if (lingers)
		return;
	ki_list_rejected(conn);
	ki_credit_judge(c);
	ki_conn_stop(c);
}

/* iscsit_free_conn(): LIO has released all commands, except those that are being aborted. */
void ki_free_conn(struct iscsit_conn *conn)
{
	struct ki_conn *c = conn->context;

	if (!c)
		return;
#ifdef KDAPL_HAVE_TARGET_CMD_COUNTER
	if (conn->cmd_cnt) {
		target_stop_cmd_counter(conn->cmd_cnt);
		target_wait_for_cmds(conn->cmd_cnt);
	}
#else
	if (conn->sess && conn->sess->se_sess) {
		target_stop_session(conn->sess->se_sess);
		target_wait_for_sess_cmds(conn->sess->se_sess);
	}
#endif
	conn->context = NULL;
	if (ki_conn_linger(c))
		return;
	/* ki_wait_conn() has done this, unless it has left the connection to linger. */
	ki_conn_stop(c);
	ki_conn_free(c);
}
