// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Buffers for data: pages for what fits into a message, large ones for the rest.
 *
 * A connection costs none of them: all connections of a port share both kinds.
 * Who finds none waits in line, for a page with one request and for a large
 * buffer with at most io_depth, so however much one client asks for the others'
 * turn comes.
 */
#include <linux/slab.h>
#include "tgt.h"

/*
 * Take a buffer; false: the slot is in line. When there is one, a slot without a
 * request goes back to its connection, and the work of another is queued.
 */
bool kbt_pool_get(struct kbt_pool *pool, struct kbt_io *io)
{
	struct kbt_buf *buf;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	buf = list_first_entry_or_null(&pool->free, struct kbt_buf, link);
	io->buf = buf;
	if (buf)
		list_del(&buf->link);
	else
		list_add_tail(&io->link, &pool->waiting);
	spin_unlock_irqrestore(&pool->lock, flags);
	/* Not io->buf: who waited may have got one by now, and somebody was told. */
	return buf;
}

/* Give the slot's buffer back, if it has one. */
void kbt_pool_put(struct kbt_io *io)
{
	struct kbt_buf *buf = io->buf;
	struct kbt_pool *pool;
	struct kbt_io *next;
	unsigned long flags;

	if (!buf)
		return;
	pool = buf->pool;
	io->buf = NULL;
	spin_lock_irqsave(&pool->lock, flags);
	next = list_first_entry_or_null(&pool->waiting, struct kbt_io, link);
	if (next) {
		list_del_init(&next->link);
		next->buf = buf;
	} else {
		list_add(&buf->link, &pool->free);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	/* Its connection waits for a slot that is neither in line nor idle. */
	if (next && next->stage == KBT_IO_EMPTY)
		kbt_io_ready(next);
	else if (next)
		queue_work(next->conn->kbt->wq, &next->work);
}

/* The connection ends: stop waiting. Returns whether the slot has waited. */
bool kbt_pool_cancel(struct kbt_pool *pool, struct kbt_io *io)
{
	struct kbt_io *waiting;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&pool->lock, flags);
	list_for_each_entry(waiting, &pool->waiting, link) {
		if (waiting != io)
			continue;
		list_del_init(&io->link);
		found = true;
		break;
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return found;
}

/* ---- Start and stop ------------------------------------------------------ */

/* No connection is left. */
static void kbt_pool_stop(struct kbt_pool *pool)
{
	unsigned int i;

	for (i = 0; pool->all && i < pool->n; i++)
		kblk_buf_free(&pool->all[i].mem);
	kfree(pool->all);
	pool->all = NULL;
}

static int kbt_pool_start(struct kbt_pool *pool, struct kbt *kbt,
			  unsigned int n, size_t size)
{
	unsigned int i;
	int err;

	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->waiting);
	pool->n = n;
	pool->all = kcalloc(n, sizeof(*pool->all), GFP_KERNEL);
	if (!pool->all)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		err = kblk_buf_alloc(&pool->all[i].mem, kbt->ia, kbt->pz, size);
		if (err)
			return err;
		pool->all[i].pool = pool;
		list_add(&pool->all[i].link, &pool->free);
	}
	return 0;
}

int kbt_pools_start(struct kbt *kbt)
{
	const struct kbt_params *params = kbt->params;
	int err;

	err = kbt_pool_start(&kbt->pages, kbt, params->pages, KBLK_INLINE);
	if (!err)
		err = kbt_pool_start(&kbt->pool, kbt, params->buffers,
				     params->max_transfer);
	if (err)
		kbt_pools_stop(kbt);
	return err;
}

void kbt_pools_stop(struct kbt *kbt)
{
	kbt_pool_stop(&kbt->pool);
	kbt_pool_stop(&kbt->pages);
}
