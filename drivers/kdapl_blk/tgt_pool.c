// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Buffers for transfers that do not fit into a message.
 *
 * A connection costs no large buffer: all connections of a port share these. Who
 * finds none waits in line, with at most io_depth requests, so however much one
 * client asks for the others' turn comes.
 */
#include <linux/slab.h>
#include "tgt.h"

/* Take a buffer; false: the slot's work is queued when there is one. */
bool kbt_pool_get(struct kbt_io *io)
{
	struct kbt_pool *pool = &io->conn->kbt->pool;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	io->buf = list_first_entry_or_null(&pool->free, struct kbt_buf, link);
	if (io->buf)
		list_del(&io->buf->link);
	else
		list_add_tail(&io->link, &pool->waiting);
	spin_unlock_irqrestore(&pool->lock, flags);
	return io->buf;
}

/* Give the slot's buffer back, if it has one. */
void kbt_pool_put(struct kbt_io *io)
{
	struct kbt_pool *pool = &io->conn->kbt->pool;
	struct kbt_io *next;
	unsigned long flags;

	if (!io->buf)
		return;
	spin_lock_irqsave(&pool->lock, flags);
	next = list_first_entry_or_null(&pool->waiting, struct kbt_io, link);
	if (next) {
		list_del_init(&next->link);
		next->buf = io->buf;
		queue_work(next->conn->kbt->wq, &next->work);
	} else {
		list_add(&io->buf->link, &pool->free);
	}
	io->buf = NULL;
	spin_unlock_irqrestore(&pool->lock, flags);
}

/* The connection ends: stop waiting. Returns whether the slot has waited. */
bool kbt_pool_cancel(struct kbt_io *io)
{
	struct kbt_pool *pool = &io->conn->kbt->pool;
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

int kbt_pool_start(struct kbt *kbt)
{
	struct kbt_pool *pool = &kbt->pool;
	unsigned int i;
	int err;

	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->waiting);
	pool->n = kbt->params->buffers;
	pool->all = kcalloc(pool->n, sizeof(*pool->all), GFP_KERNEL);
	if (!pool->all)
		return -ENOMEM;
	for (i = 0; i < pool->n; i++) {
		err = kblk_buf_alloc(&pool->all[i].mem, kbt->ia, kbt->pz,
				     kbt->params->max_transfer);
		if (err) {
			kbt_pool_stop(kbt);
			return err;
		}
		list_add(&pool->all[i].link, &pool->free);
	}
	return 0;
}

/* No connection is left. */
void kbt_pool_stop(struct kbt *kbt)
{
	struct kbt_pool *pool = &kbt->pool;
	unsigned int i;

	for (i = 0; i < pool->n; i++)
		kblk_buf_free(&pool->all[i].mem);
	kfree(pool->all);
}
