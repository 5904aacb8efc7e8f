// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pools of receive buffers, <dat/kdat_pool.h>: an SRQ for all clients of a target. A pool is a
 * consumer of kDAPL: it makes public calls only. One that its module leaves behind is freed when
 * that module is unloaded, see ia_unload.c.
 *
 * Memory comes in blocks. To shrink, the youngest blocks retire: their buffers are not posted
 * again when they return, and when all of a block have returned, the queue is shortened and the
 * block freed. Nothing can be taken out of a queue, so on an idle one this takes until the next
 * messages.
 *
 * The low watermark tells that most buffers are in use: the queue is doubled, checked again
 * soon, and reduced after a calm period. The watermark is armed again only when the queue has
 * recovered; earlier, the same event would repeat.
 *
 * pool->mutex guards the list of blocks and the length, pool->lock the state of blocks.
 * kdat_pool_put() takes pool->lock for blocks that retire only. Allocations under the mutex are
 * NOIO: a target may be what memory is written back to.
 */
#include <linux/jiffies.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include "ia.h"
#include "pool.h"

#define KDAPL_POOL_RECHECK	msecs_to_jiffies(20)
#define KDAPL_POOL_CALM		(5 * HZ)

static DEFINE_MUTEX(kdapl_pools_lock);	/* kdapl_pools */
static LIST_HEAD(kdapl_pools);

/* ---- Buffers ------------------------------------------------------------- */

/* Post @buf. Without the device nobody can send, and the call fails without a word. */
static void kdapl_pool_give(struct kdat_pool *pool, struct kdat_pool_buf *buf)
{
	struct kdapl_pool_block *block = buf->block;
	DAT_LMR_TRIPLET seg = {
		.virtual_address = block->addr + (buf->va - page_address(block->pages)),
		.segment_length = pool->attr.length,
		.lmr_context = block->context,
	};
	DAT_DTO_COOKIE cookie = { .as_ptr = buf };
	DAT_SRQ_PARAM param;

	if (dat_srq_post_recv(pool->srq, 1, &seg, cookie) == DAT_SUCCESS)
		return;
	if (dat_srq_query(pool->srq, DAT_SRQ_FIELD_SRQ_STATE, &param) == DAT_SUCCESS &&
	    param.srq_state == DAT_SRQ_STATE_OPERATIONAL)
		pr_warn_ratelimited("%s: a receive buffer is refused\n", pool->attr.name);
}

/* Keep a buffer whose block retires; return false if the block does not. */
static bool kdapl_pool_keep(struct kdat_pool *pool, struct kdat_pool_buf *buf)
{
	struct kdapl_pool_block *block = buf->block;
	unsigned long flags;
	bool kept;

	spin_lock_irqsave(&pool->lock, flags);
	kept = block->retiring;
	if (kept) {
		block->home |= BIT(buf - block->bufs);
		if (hweight_long(block->home) == pool->per_block)
			kdat_pool_adapt(pool, DAT_TRUE);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return kept;
}

void kdat_pool_put(KDAT_POOL_HANDLE pool, KDAT_POOL_BUF *buf)
{
	if (unlikely(READ_ONCE(buf->block->retiring)) && kdapl_pool_keep(pool, buf))
		return;
	kdapl_pool_give(pool, buf);
}
EXPORT_SYMBOL(kdat_pool_put);

/* ---- Length -------------------------------------------------------------- */

/*
 * Lock the length; allocations are NOIO until kdapl_pool_unlock(), which needs the return
 * value.
 */
static unsigned int kdapl_pool_lock(struct kdat_pool *pool)
{
	mutex_lock(&pool->mutex);
	return memalloc_noio_save();
}

static void kdapl_pool_unlock(struct kdat_pool *pool, unsigned int noio)
{
	memalloc_noio_restore(noio);
	mutex_unlock(&pool->mutex);
}

/* Return the most buffers that there may be for @size. */
static unsigned int kdapl_pool_limit(struct kdat_pool *pool, const KDAT_POOL_SIZE *size)
{
	unsigned int most = max(size->most, 0);

	return max(rounddown(most, pool->per_block), pool->per_block);
}

/* Store what the consumer says in @size, and return how many buffers there should be. */
static unsigned int kdapl_pool_wanted(struct kdat_pool *pool, KDAT_POOL_SIZE *size)
{
	u64 n;

	lockdep_assert_held(&pool->mutex);

	pool->attr.size(pool->attr.context, size);
	n = roundup((u64)max(size->wanted, 1) + pool->extra, pool->per_block);
	n = min_t(u64, n, kdapl_pool_limit(pool, size));
	/* Cover what clients may send already, even if the limit was lowered since. */
	return max_t(u64, n, roundup(pool->reserved, pool->per_block));
}

/* Set the low watermark for a queue of @wanted buffers, which may still be shorter. */
static void kdapl_pool_set_low(struct kdat_pool *pool, const KDAT_POOL_SIZE *size,
			       unsigned int wanted)
{
	lockdep_assert_held(&pool->mutex);

	wanted = min(wanted, pool->bufs);
	pool->low = min(size->low > 0 ? (unsigned int)size->low : wanted / 4, pool->bufs);
	dat_srq_set_lw(pool->srq, pool->low);
}

/* Add a block and post its buffers, for which the queue has room. Return success. */
static bool kdapl_pool_block_add(struct kdat_pool *pool)
{
	struct kdapl_pool_block *block = kdapl_pool_block_alloc(pool);
	struct kdat_pool_buf *buf;

	lockdep_assert_held(&pool->mutex);

	if (!block)
		return false;
	list_add_tail(&block->link, &pool->blocks);
	pool->bufs += pool->per_block;
	WRITE_ONCE(pool->usable, pool->usable + pool->per_block);
	for (buf = block->bufs; buf < block->bufs + pool->per_block; buf++) {
		buf->block = block;
		buf->va = page_address(block->pages) + pool->at +
			  (buf - block->bufs) * pool->step;
		kdapl_pool_give(pool, buf);
	}
	return true;
}

/* Make the queue longer, up to @n buffers; first resize it, as a post beyond it would fail. */
static bool kdapl_pool_grow(struct kdat_pool *pool, unsigned int n)
{
	lockdep_assert_held(&pool->mutex);

	if (dat_srq_resize(pool->srq, n) != DAT_SUCCESS)
		return false;
	while (pool->bufs < n)
		if (!kdapl_pool_block_add(pool)) {
			dat_srq_resize(pool->srq, max(pool->bufs, 1U));
			return false;
		}
	return true;
}

/* Recall a retiring block: post its buffers again. */
static void kdapl_pool_recall(struct kdat_pool *pool, struct kdapl_pool_block *block)
{
	unsigned long home;
	unsigned int i;

	lockdep_assert_held(&pool->mutex);

	spin_lock_irq(&pool->lock);
	home = block->home;
	block->home = 0;
	WRITE_ONCE(block->retiring, false);
	spin_unlock_irq(&pool->lock);
	WRITE_ONCE(pool->usable, pool->usable + pool->per_block);
	for_each_set_bit(i, &home, pool->per_block)
		kdapl_pool_give(pool, &block->bufs[i]);
}

/* Shorten the queue by @block, all of whose buffers have returned. */
static void kdapl_pool_retire(struct kdat_pool *pool, struct kdapl_pool_block *block,
			      const KDAT_POOL_SIZE *size, unsigned int wanted)
{
	lockdep_assert_held(&pool->mutex);

	pool->bufs -= pool->per_block;
	/* dat_srq_resize() refuses a length below the watermark; setting that arms it. */
	if (pool->low > pool->bufs)
		kdapl_pool_set_low(pool, size, wanted);
	if (dat_srq_resize(pool->srq, pool->bufs) == DAT_SUCCESS) {
		list_del(&block->link);
		kdapl_pool_block_free(pool, block);
		return;
	}
	pool->bufs += pool->per_block;
	kdapl_pool_recall(pool, block);
}

/* Retire the blocks beyond the first @wanted buffers, recall the others. */
static void kdapl_pool_sort(struct kdat_pool *pool, const KDAT_POOL_SIZE *size,
			    unsigned int wanted)
{
	struct kdapl_pool_block *block, *next;
	unsigned int n = 0;
	bool home;

	lockdep_assert_held(&pool->mutex);

	list_for_each_entry_safe(block, next, &pool->blocks, link) {
		n += pool->per_block;
		if (n <= wanted) {
			if (block->retiring)
				kdapl_pool_recall(pool, block);
			continue;
		}
		if (!block->retiring)
			WRITE_ONCE(pool->usable, pool->usable - pool->per_block);
		spin_lock_irq(&pool->lock);
		WRITE_ONCE(block->retiring, true);
		home = hweight_long(block->home) == pool->per_block;
		spin_unlock_irq(&pool->lock);
		if (home)
			kdapl_pool_retire(pool, block, size, wanted);
	}
}

/* ---- Changes of the length ----------------------------------------------- */

void kdat_pool_adapt(KDAT_POOL_HANDLE pool, DAT_BOOLEAN soon)
{
	if (soon)
		mod_delayed_work(system_long_wq, &pool->work, 0);
	else
		queue_delayed_work(system_long_wq, &pool->work, KDAPL_POOL_CALM);
}
EXPORT_SYMBOL(kdat_pool_adapt);

void kdat_pool_ran_low(KDAT_POOL_HANDLE pool)
{
	WRITE_ONCE(pool->fired, true);
	kdat_pool_adapt(pool, DAT_TRUE);
}
EXPORT_SYMBOL(kdat_pool_ran_low);

/* Return whether at least 3/4 of the buffers that do not retire wait for a message. */
static bool kdapl_pool_is_calm(struct kdat_pool *pool, const DAT_SRQ_PARAM *param)
{
	return param->available_dto_count >= (DAT_COUNT)(pool->usable / 4 * 3);
}

/* Change ->extra after the low watermark was crossed, or when the queue is calm again. */
static void kdapl_pool_recover(struct kdat_pool *pool, const DAT_SRQ_PARAM *param)
{
	/* Pairs with kdat_pool_ran_low(). litmus: work */
	bool fired = xchg(&pool->fired, false);
	unsigned long delay = KDAPL_POOL_RECHECK;
	KDAT_POOL_SIZE size;
	unsigned int wanted;

	lockdep_assert_held(&pool->mutex);

	if (!fired && !pool->ran_low) {
		if (pool->extra && kdapl_pool_is_calm(pool, param))
			pool->extra = 0;
		return;
	}
	/* The mark has fired, so double the queue even if buffers have come back since. */
	pool->ran_low = fired || param->available_dto_count < (DAT_COUNT)pool->low;
	if (!pool->ran_low)
		return;
	wanted = kdapl_pool_wanted(pool, &size);
	if (pool->bufs < wanted) {
		/* There was no memory for what is wanted already. */
		delay = HZ;
	} else if (wanted < kdapl_pool_limit(pool, &size)) {
		pool->extra += pool->bufs;
		pr_info_ratelimited("%s: fewer than %u receive buffers are left, making more than %u\n",
				    pool->attr.name, pool->low, pool->bufs);
	}
	mod_delayed_work(system_long_wq, &pool->work, delay);
}

/* Make the queue as long as it should be; @param is what the SRQ has. */
static void kdapl_pool_settle(struct kdat_pool *pool, const DAT_SRQ_PARAM *param)
{
	KDAT_POOL_SIZE size;
	unsigned int wanted = kdapl_pool_wanted(pool, &size);

	/* NOIO allocations compact no memory, but others may until the next try. */
	if (pool->bufs < wanted && !kdapl_pool_grow(pool, wanted) && !pool->ran_low)
		mod_delayed_work(system_long_wq, &pool->work, HZ);
	if (pool->bufs > wanted && !kdapl_pool_is_calm(pool, param))
		wanted = pool->bufs;
	kdapl_pool_sort(pool, &size, wanted);
	if (!pool->ran_low)
		kdapl_pool_set_low(pool, &size, wanted);
	if (pool->extra || wanted > kdapl_pool_wanted(pool, &size))
		kdat_pool_adapt(pool, DAT_FALSE);
}

static void kdapl_pool_work(struct work_struct *work)
{
	struct kdat_pool *pool = container_of(to_delayed_work(work), struct kdat_pool, work);
	unsigned int noio = kdapl_pool_lock(pool);
	DAT_SRQ_PARAM param;

	if (dat_srq_query(pool->srq, DAT_SRQ_FIELD_ALL, &param) == DAT_SUCCESS &&
	    param.srq_state == DAT_SRQ_STATE_OPERATIONAL) {
		kdapl_pool_recover(pool, &param);
		kdapl_pool_settle(pool, &param);
	}
	kdapl_pool_unlock(pool, noio);
}

/* ---- Reservations -------------------------------------------------------- */

/* Make sure that as many buffers are posted as are reserved. */
static bool kdapl_pool_cover(struct kdat_pool *pool)
{
	KDAT_POOL_SIZE size;
	unsigned int wanted = kdapl_pool_wanted(pool, &size);

	if (pool->bufs < pool->reserved && !kdapl_pool_grow(pool, wanted) &&
	    pool->bufs < pool->reserved)
		return false;
	/* Recall retiring blocks, whose buffers are not posted. */
	if (pool->usable < pool->reserved)
		kdapl_pool_sort(pool, &size, wanted);
	return true;
}

DAT_COUNT kdat_pool_reserve(KDAT_POOL_HANDLE pool, DAT_COUNT n, DAT_COUNT least)
{
	unsigned int noio;
	DAT_COUNT left;

	might_sleep();
	noio = kdapl_pool_lock(pool);
	left = kdat_pool_most(pool) - (DAT_COUNT)pool->reserved;
	if (least < n)
		n = min(n, max(left / 2, least));
	if (n > left || n <= 0)
		n = 0;
	pool->reserved += n;
	if (n && !kdapl_pool_cover(pool)) {
		pool->reserved -= n;
		n = 0;
		kdat_pool_adapt(pool, DAT_FALSE);
	}
	kdapl_pool_unlock(pool, noio);
	return n;
}
EXPORT_SYMBOL(kdat_pool_reserve);

void kdat_pool_release(KDAT_POOL_HANDLE pool, DAT_COUNT n)
{
	might_sleep();
	mutex_lock(&pool->mutex);
	pool->reserved -= n;
	mutex_unlock(&pool->mutex);
	kdat_pool_adapt(pool, DAT_FALSE);
}
EXPORT_SYMBOL(kdat_pool_release);

/* ---- Queries ------------------------------------------------------------- */

DAT_COUNT kdat_pool_usable(KDAT_POOL_HANDLE pool)
{
	return READ_ONCE(pool->usable);
}
EXPORT_SYMBOL(kdat_pool_usable);

DAT_COUNT kdat_pool_most(KDAT_POOL_HANDLE pool)
{
	KDAT_POOL_SIZE size;

	pool->attr.size(pool->attr.context, &size);
	return kdapl_pool_limit(pool, &size);
}
EXPORT_SYMBOL(kdat_pool_most);

void kdat_pool_query(KDAT_POOL_HANDLE pool, KDAT_POOL_PARAM *param)
{
	struct kdapl_pool_block *block;
	DAT_SRQ_PARAM srq = { };
	DAT_COUNT retired = 0;

	might_sleep();
	mutex_lock(&pool->mutex);
	/* First: one that comes home later may be available until then, and is counted once. */
	spin_lock_irq(&pool->lock);
	list_for_each_entry(block, &pool->blocks, link)
		retired += hweight_long(block->home);
	spin_unlock_irq(&pool->lock);
	dat_srq_query(pool->srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT, &srq);
	*param = (KDAT_POOL_PARAM) {
		.srq = pool->srq,
		.buffers = pool->bufs,
		.available = srq.available_dto_count,
		.low_watermark = pool->low,
		.retired = retired,
		.reserved = pool->reserved,
		.bytes = (u64)pool->bufs / pool->per_block * (PAGE_SIZE << pool->order),
	};
	mutex_unlock(&pool->mutex);
}
EXPORT_SYMBOL(kdat_pool_query);

/* ---- Life ---------------------------------------------------------------- */

static DAT_RETURN kdapl_pool_start(struct kdat_pool *pool)
{
	DAT_SRQ_ATTR attr = { .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };
	unsigned int noio = kdapl_pool_lock(pool);
	KDAT_POOL_SIZE size;
	DAT_RETURN ret;

	attr.max_recv_dtos = kdapl_pool_wanted(pool, &size);
	ret = dat_srq_create(pool->attr.ia, pool->attr.pz, &attr, &pool->srq);
	if (ret == DAT_SUCCESS && !kdapl_pool_grow(pool, attr.max_recv_dtos))
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (ret == DAT_SUCCESS)
		kdapl_pool_set_low(pool, &size, attr.max_recv_dtos);
	kdapl_pool_unlock(pool, noio);
	return ret;
}

static bool kdapl_pool_check_attr(const KDAT_POOL_ATTR *attr)
{
	const struct kdapl_rule rules[] = {
		{ "size", 0, attr->size, "a function" },
		{ "name", 0, attr->name, "a string" },
		{ "length", attr->length, attr->length >= 1 && attr->length <= SZ_1M,
		  "from 1 to 1048576" },
		{ "header", attr->header, attr->header >= 0 && attr->header <= attr->length,
		  "from 0 to length" },
	};

	return kdapl_rules_obeyed(NULL, rules, ARRAY_SIZE(rules));
}

DAT_RETURN kdat_pool_create(const KDAT_POOL_ATTR *attr, KDAT_POOL_HANDLE *out)
{
	struct kdat_pool *pool;
	DAT_RETURN ret;

	might_sleep();
	if (!attr || !kdapl_pool_check_attr(attr))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	if (!out)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	pool->attr = *attr;
	mutex_init(&pool->mutex);
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->blocks);
	INIT_DELAYED_WORK(&pool->work, kdapl_pool_work);
	mutex_lock(&kdapl_pools_lock);
	list_add_tail(&pool->link, &kdapl_pools);
	mutex_unlock(&kdapl_pools_lock);
	kdapl_pool_lay_out(pool);
	ret = kdapl_pool_start(pool);
	if (ret == DAT_SUCCESS)
		*out = pool;
	else
		kdat_pool_free(pool);
	return ret;
}
EXPORT_SYMBOL(kdat_pool_create);

void kdat_pool_free(KDAT_POOL_HANDLE pool)
{
	struct kdapl_pool_block *block;
	unsigned long lost = 0;
	bool kept = false;

	might_sleep();
	if (!pool)
		return;
	mutex_lock(&kdapl_pools_lock);
	list_del(&pool->link);
	mutex_unlock(&kdapl_pools_lock);
	cancel_delayed_work_sync(&pool->work);
	/*
	 * Refused while a driver does not end a connection: the device may still write into
	 * any buffer. dat_lmr_free() would be refused for each block, too.
	 */
	if (pool->srq)
		kept = DAT_GET_TYPE(dat_srq_free(pool->srq)) == DAT_INVALID_STATE;
	while (!list_empty(&pool->blocks)) {
		block = list_first_entry(&pool->blocks, struct kdapl_pool_block, link);
		list_del(&block->link);
		if (!kept) {
			kdapl_pool_block_free(pool, block);
			continue;
		}
		lost += PAGE_SIZE << pool->order;
		kfree(block);
	}
	if (lost)
		pr_err("%s: a connection does not end: %lu bytes are lost\n", pool->attr.name,
		       lost);
	kfree(pool);
}
EXPORT_SYMBOL(kdat_pool_free);

/*
 * Stop the work items of the pools whose functions are in @mod, which is being unloaded: no other
 * code of the module runs any more. Context: Process context.
 */
void kdapl_pools_stop(const struct module *mod)
{
	struct kdat_pool *pool;

	mutex_lock(&kdapl_pools_lock);
	list_for_each_entry(pool, &kdapl_pools, link)
		if (kdapl_in_module(pool->attr.size, mod))
			cancel_delayed_work_sync(&pool->work);
	mutex_unlock(&kdapl_pools_lock);
}

/*
 * Free the pools that kdapl_pools_stop() has stopped; the IAs of @mod are closed. Return their
 * number. Context: Process context.
 */
unsigned int kdapl_pools_forget(const struct module *mod)
{
	struct kdat_pool *pool, *next;
	unsigned int n = 0;
	LIST_HEAD(left);

	mutex_lock(&kdapl_pools_lock);
	list_for_each_entry_safe(pool, next, &kdapl_pools, link)
		if (kdapl_in_module(pool->attr.size, mod))
			list_move(&pool->link, &left);
	mutex_unlock(&kdapl_pools_lock);
	for (; !list_empty(&left); n++)
		kdat_pool_free(list_first_entry(&left, struct kdat_pool, link));
	return n;
}
