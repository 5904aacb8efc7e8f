// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers: one SRQ for all connections of an adapter, of a kDAPL pool. A buffer is at
 * the SRQ, or with the function that handles its message and posts it again.
 *
 * The queue has srq_size buffers, srq_per_session more for each connection, and at least as
 * many as connections have reserved (credit.c).
 *
 * A backend may write from the buffer that holds the data of a small command. Up to a quarter
 * of the buffers are lent in this way, so that a backend which stands still cannot have them
 * all; none is on iWARP, where the buffers that sessions have reserved must be posted.
 */
#include <linux/moduleparam.h>
#include "isert.h"

static unsigned int srq_size = 256;
module_param(srq_size, uint, 0644);
MODULE_PARM_DESC(srq_size, "receive buffers of an adapter without connections");

static unsigned int srq_per_session = 8;
module_param(srq_per_session, uint, 0644);
MODULE_PARM_DESC(srq_per_session, "further receive buffers for each connection");

static unsigned int srq_max = 9000;
module_param(srq_max, uint, 0644);
MODULE_PARM_DESC(srq_max, "most receive buffers of an adapter");

/* ---- Buffers that backends write from -------------------------------------------- */

/*
 * Lend @buf, which has the PDU of @kc, to @kc; return false if the data has to be copied.
 * litmus: none, a count.
 */
bool ki_buf_lend(struct ki_conn *c, struct ki_cmd *kc, KDAT_POOL_BUF *buf)
{
	struct ki_adapter *a = c->a;

	if (a->base.iwarp)
		return false;
	if (atomic_inc_return(&a->lent) > kdat_pool_usable(a->base.pool) / 4) {
		atomic_dec(&a->lent);
		return false;
	}
	kc->buf = buf;
	spin_lock_bh(&c->lock);
	list_add(&buf->link, &c->lent);
	spin_unlock_bh(&c->lock);
	return true;
}

static void ki_buf_unlend(struct ki_conn *c, KDAT_POOL_BUF *buf)
{
	spin_lock_bh(&c->lock);
	list_del(&buf->link);
	spin_unlock_bh(&c->lock);
	atomic_dec(&c->a->lent);
	kdat_pool_put(c->a->base.pool, buf);
}

/* Take back the buffer lent to @kc, if any. Context: any but hard interrupts. */
void ki_buf_take_back(struct ki_conn *c, struct ki_cmd *kc)
{
	KDAT_POOL_BUF *buf = kc->buf;

	kc->buf = NULL;
	if (buf)
		ki_buf_unlend(c, buf);
}

/* Take back the buffers of commands that were never answered; all commands of @c have ended. */
void ki_bufs_take_back(struct ki_conn *c)
{
	KDAT_POOL_BUF *buf, *next;

	list_for_each_entry_safe(buf, next, &c->lent, link)
		ki_buf_unlend(c, buf);
}

/* ---- The pool -------------------------------------------------------------------- */

/* Store how many buffers there should be. Context: any. */
void ki_srq_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size)
{
	struct ki_adapter *a = container_of(adapter, struct ki_adapter, base);
	unsigned int max = a->base.attr.max_recv_per_srq;
	u64 n = (u64)READ_ONCE(srq_per_session) * atomic_read(&a->conns) + READ_ONCE(srq_size);

	size->most = min3(READ_ONCE(srq_max), max, (unsigned int)INT_MAX);
	size->wanted = min_t(u64, n, size->most);
	size->low = 0;
}

/**
 * ki_srq_join() - count a connection that comes
 * @a: the adapter
 * @n: buffers to reserve for what the connection may send at once, on a device that ends
 *	connections when the SRQ is empty; else 0
 *
 * Context: process
 * Return: false if there cannot be as many buffers as all may send
 */
bool ki_srq_join(struct ki_adapter *a, unsigned int n)
{
	if (n && !kdat_pool_reserve(a->base.pool, n, n))
		return false;
	atomic_inc(&a->conns);
	kdat_pool_adapt(a->base.pool, DAT_TRUE);
	return true;
}

/* Remove a connection that had reserved @n buffers from the counts. Context: process. */
void ki_srq_leave(struct ki_adapter *a, unsigned int n)
{
	atomic_dec(&a->conns);
	kdat_pool_release(a->base.pool, n);
	kdat_pool_adapt(a->base.pool, DAT_TRUE);
}
