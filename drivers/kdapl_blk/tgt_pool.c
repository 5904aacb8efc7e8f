// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Buffers for data: pages for data inside messages, large buffers for RDMA.
 *
 * Entry points: kbt_pool_get(), kbt_pool_put() and kbt_pool_cancel() for a slot,
 * kbt_share_join() and kbt_share_leave() for an attachment, kbt_pools_start() and
 * kbt_pools_stop() for the port.
 *
 * All connections of a port share both pools, so a connection costs no buffers. No volume and
 * no client may keep others from their buffers, however long its medium or its network takes:
 *
 * - One buffer is reserved for each volume that holds none, so the next request of a volume
 *   whose medium works always finds one. Each volume but the first adds one buffer to the pool
 *   for that purpose.
 * - A volume may hold up to KBT_SHARE times the buffers that are free beyond those reserves.
 *   One volume whose medium hangs thus holds two thirds of a pool, two hold four fifths. The
 *   only volume in use at a port may hold all.
 * - The same limit applies to each attachment of a connection to the volume, within what the
 *   volume may still take, unless it is the volume's only one.
 *
 * A slot that finds no buffer waits in line: slots in the line of their attachment,
 * attachments in the line of their volume, volumes in the line of the pool. Slots of an
 * attachment are served in order; attachments and volumes take turns. A volume or attachment
 * at its limit leaves the line, and kbt_pool_put() puts it back.
 *
 * The pool owns free buffers, the slot (io->buf) a buffer in use. Locks: pool->lock guards the
 * pool and all lines, in any context; kbt->share_mutex guards the list of volumes in use,
 * which changes under kbt_names as well.
 */
#include <linux/slab.h>
#include "tgt.h"

#define KBT_SHARE	2

/* ---- Shares -------------------------------------------------------------- */

static struct kbt_line *kbt_volume_line(struct kbt_pool *pool,
					struct kbt_attachment *att)
{
	return &att->share->lines[pool->kind];
}

/* Return how many free buffers are not reserved for volumes that hold none. */
static unsigned int kbt_spare(struct kbt_pool *pool)
{
	lockdep_assert_held(&pool->lock);

	return pool->nfree > pool->without ? pool->nfree - pool->without : 0;
}

static bool kbt_volume_may(struct kbt_pool *pool, struct kbt_line *volume)
{
	unsigned int spare = kbt_spare(pool);

	if (!volume->held)
		return pool->nfree;
	return spare && (pool->volumes == 1 ||
			 volume->held < KBT_SHARE * spare);
}

/*
 * Return whether the attachment with @line may take a buffer, when kbt_volume_may() allows
 * @volume to.
 */
static bool kbt_line_may(struct kbt_pool *pool, struct kbt_line *volume,
			 struct kbt_line *line)
{
	unsigned int room = kbt_spare(pool);

	if (!line->held || volume->users == 1)
		return true;
	if (pool->volumes > 1)
		room = min(room, KBT_SHARE * room - volume->held);
	return line->held < KBT_SHARE * room;
}

static void kbt_take_buffer(struct kbt_pool *pool, struct kbt_io *io)
{
	struct kbt_line *volume = kbt_volume_line(pool, io->att);
	struct kbt_buf *buf = list_first_entry(&pool->free, struct kbt_buf,
					       link);

	lockdep_assert_held(&pool->lock);

	list_del(&buf->link);
	pool->nfree--;
	if (!volume->held++)
		pool->without--;
	io->att->lines[pool->kind].held++;
	io->buf = buf;
	io->data = buf->mem.va;
}

/* ---- Lines --------------------------------------------------------------- */

/*
 * Put @att in the line of its volume, and the volume in the line of the pool, if slots of
 * theirs wait and they are not in line yet.
 */
static void kbt_join(struct kbt_pool *pool, struct kbt_attachment *att)
{
	struct kbt_line *volume = kbt_volume_line(pool, att);
	struct kbt_line *line = &att->lines[pool->kind];

	lockdep_assert_held(&pool->lock);

	if (!list_empty(&line->waiting) && list_empty(&line->link))
		list_add_tail(&line->link, &volume->waiting);
	if (!list_empty(&volume->waiting) && list_empty(&volume->link))
		list_add_tail(&volume->link, &pool->waiting);
}

/* End the turn of @line: move it to the end of @in, or out of @in if nobody waits. */
static void kbt_next_turn(struct kbt_line *line, struct list_head *in)
{
	if (list_empty(&line->waiting))
		list_del_init(&line->link);
	else
		list_move_tail(&line->link, in);
}

/* Give a buffer to the next slot in line and return the slot, or NULL. */
static struct kbt_io *kbt_serve(struct kbt_pool *pool)
{
	struct kbt_line *volume, *line;
	struct kbt_io *io;

	lockdep_assert_held(&pool->lock);

	while (pool->nfree && !list_empty(&pool->waiting)) {
		volume = list_first_entry(&pool->waiting, struct kbt_line,
					  link);
		if (list_empty(&volume->waiting) ||
		    !kbt_volume_may(pool, volume)) {
			list_del_init(&volume->link);
			continue;
		}
		line = list_first_entry(&volume->waiting, struct kbt_line,
					link);
		if (!kbt_line_may(pool, volume, line)) {
			list_del_init(&line->link);
			continue;
		}
		io = list_first_entry(&line->waiting, struct kbt_io, link);
		list_del_init(&io->link);
		WRITE_ONCE(io->waits, NULL);
		kbt_take_buffer(pool, io);
		kbt_next_turn(line, &volume->waiting);
		kbt_next_turn(volume, &pool->waiting);
		return io;
	}
	return NULL;
}

/*
 * Serve slots until none is eligible or no buffer is left; collect them in @served for
 * kbt_tell(), which must run without pool->lock.
 */
static void kbt_serve_all(struct kbt_pool *pool, struct list_head *served)
{
	struct kbt_io *io;

	while ((io = kbt_serve(pool)))
		list_add_tail(&io->link, served);
}

/* Resume the slots in @served. Context: any, pool->lock not held. */
static void kbt_tell(struct list_head *served)
{
	struct kbt_io *io, *next;

	list_for_each_entry_safe(io, next, served, link) {
		list_del_init(&io->link);
		kbt_io_served(io);
	}
}

/* ---- Getting and giving back --------------------------------------------- */

/*
 * Take a buffer for @io, whose request is for a volume. If false is returned, @io is in line,
 * and kbt_io_served() is called when it gets a buffer, possibly before this function returns:
 * the caller must not touch @io. Context: any.
 */
bool kbt_pool_get(struct kbt_pool *pool, struct kbt_io *io)
{
	struct kbt_line *volume = kbt_volume_line(pool, io->att);
	struct kbt_line *line = &io->att->lines[pool->kind];
	unsigned long flags;
	LIST_HEAD(served);
	bool got;

	spin_lock_irqsave(&pool->lock, flags);
	got = list_empty(&line->waiting) && list_empty(&volume->waiting) &&
	      kbt_volume_may(pool, volume) && kbt_line_may(pool, volume, line);
	if (got) {
		kbt_take_buffer(pool, io);
	} else {
		WRITE_ONCE(io->waits, pool);
		list_add_tail(&io->link, &line->waiting);
		kbt_join(pool, io->att);
		kbt_serve_all(pool, &served);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	kbt_tell(&served);
	return got;
}

/* Return the buffer of @io, if it has one, and serve waiting slots. Context: any. */
void kbt_pool_put(struct kbt_io *io)
{
	struct kbt_attachment *att = io->att;
	struct kbt_buf *buf = io->buf;
	struct kbt_pool *pool;
	unsigned long flags;
	LIST_HEAD(served);

	if (!buf)
		return;
	pool = buf->pool;
	io->buf = NULL;
	spin_lock_irqsave(&pool->lock, flags);
	list_add(&buf->link, &pool->free);
	pool->nfree++;
	if (!--kbt_volume_line(pool, att)->held)
		pool->without++;
	att->lines[pool->kind].held--;
	kbt_join(pool, att);
	kbt_serve_all(pool, &served);
	spin_unlock_irqrestore(&pool->lock, flags);
	kbt_tell(&served);
}

/*
 * Take @io, whose connection is ending, out of the line. Return true if @io was in line; false
 * if it never waited, or if kbt_serve() was faster and kbt_io_served() is called. No slot of
 * the connection begins to wait any more.
 */
bool kbt_pool_cancel(struct kbt_io *io)
{
	struct kbt_pool *pool = READ_ONCE(io->waits);
	struct kbt_line *line;
	unsigned long flags;
	bool found;

	if (!pool)
		return false;
	spin_lock_irqsave(&pool->lock, flags);
	found = io->waits == pool;
	if (found) {
		WRITE_ONCE(io->waits, NULL);
		list_del_init(&io->link);
		line = &io->att->lines[pool->kind];
		if (list_empty(&line->waiting))
			list_del_init(&line->link);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	return found;
}

/* ---- Volumes ------------------------------------------------------------- */

static struct kbt_buf *kbt_buf_make(struct kbt *kbt, struct kbt_pool *pool)
{
	struct kbt_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);

	if (!buf)
		return NULL;
	if (kblk_buf_alloc(&buf->mem, kbt->adapter.ia, kbt->adapter.pz, pool->size)) {
		kfree(buf);
		return NULL;
	}
	buf->pool = pool;
	return buf;
}

static void kbt_buf_destroy(struct kbt_buf *buf)
{
	if (!buf)
		return;
	kblk_buf_free(&buf->mem);
	kfree(buf);
}

/* Add a buffer to @pool. Context: process. */
static int kbt_pool_grow(struct kbt *kbt, struct kbt_pool *pool)
{
	struct kbt_buf *buf = kbt_buf_make(kbt, pool);

	lockdep_assert_held(&kbt->share_mutex);

	if (!buf)
		return -ENOMEM;
	spin_lock_irq(&pool->lock);
	list_add(&buf->link, &pool->free);
	pool->nfree++;
	pool->n++;
	spin_unlock_irq(&pool->lock);
	return 0;
}

/*
 * Remove the buffer that was added for a volume that is no longer in use. A free one exists:
 * free buffers never drop below the reserves, and one reserve was for that volume.
 */
static void kbt_pool_shrink(struct kbt_pool *pool)
{
	struct kbt_buf *buf;

	spin_lock_irq(&pool->lock);
	buf = list_first_entry(&pool->free, struct kbt_buf, link);
	list_del(&buf->link);
	pool->nfree--;
	pool->n--;
	spin_unlock_irq(&pool->lock);
	kbt_buf_destroy(buf);
}

/* Add @n to the attachments of @share and return the new number. */
static unsigned int kbt_share_users(struct kbt *kbt, struct kbt_share *share,
				    int n)
{
	int i;

	lockdep_assert_held(&kbt->share_mutex);

	for (i = 0; i < KBT_POOLS; i++) {
		spin_lock_irq(&kbt->pools[i].lock);
		share->lines[i].users += n;
		spin_unlock_irq(&kbt->pools[i].lock);
	}
	return share->lines[0].users;
}

static void kbt_pool_enter(struct kbt_pool *pool, int volumes)
{
	spin_lock_irq(&pool->lock);
	pool->volumes += volumes;
	pool->without += volumes;
	spin_unlock_irq(&pool->lock);
}

void kbt_line_init(struct kbt_line *line)
{
	INIT_LIST_HEAD(&line->link);
	INIT_LIST_HEAD(&line->waiting);
}

static struct kbt_share *kbt_share_make(struct kbt *kbt, struct kbt_ns *ns)
{
	struct kbt_share *share = kzalloc(sizeof(*share), GFP_KERNEL);
	bool first = list_empty(&kbt->shares);
	int i;

	lockdep_assert_held(&kbt->share_mutex);

	if (!share)
		return NULL;
	for (i = 0; i < KBT_POOLS; i++) {
		if (!first && kbt_pool_grow(kbt, &kbt->pools[i]))
			goto shrink;
		kbt_line_init(&share->lines[i]);
		kbt_pool_enter(&kbt->pools[i], 1);
	}
	share->ns = ns;
	INIT_LIST_HEAD(&share->hanging);
	spin_lock(&kbt_names);
	list_add(&share->link, &kbt->shares);
	spin_unlock(&kbt_names);
	return share;

shrink:
	while (i--) {
		kbt_pool_enter(&kbt->pools[i], -1);
		kbt_pool_shrink(&kbt->pools[i]);
	}
	kfree(share);
	return NULL;
}

/*
 * Return the share of @ns, or NULL. The caller holds kbt->share_mutex or kbt_names.
 * Context: process.
 */
struct kbt_share *kbt_share_find(struct kbt *kbt, const struct kbt_ns *ns)
{
	struct kbt_share *share;

	lockdep_assert(lockdep_is_held(&kbt->share_mutex) || lockdep_is_held(&kbt_names));

	list_for_each_entry(share, &kbt->shares, link)
		if (share->ns == ns)
			return share;
	return NULL;
}

/**
 * kbt_share_join() - let an attachment use the pools on behalf of its volume
 * @att: attachment; it keeps the volume open
 *
 * Context: Process context, may sleep.
 * Return: 0 or -ENOMEM.
 */
int kbt_share_join(struct kbt_attachment *att)
{
	struct kbt *kbt = att->conn->kbt;

	mutex_lock(&kbt->share_mutex);
	att->share = kbt_share_find(kbt, att->ns);
	if (!att->share)
		att->share = kbt_share_make(kbt, att->ns);
	if (att->share)
		kbt_share_users(kbt, att->share, 1);
	mutex_unlock(&kbt->share_mutex);
	return att->share ? 0 : -ENOMEM;
}

/* Undo kbt_share_join(). No slot of @att holds a buffer or is in line. */
void kbt_share_leave(struct kbt_attachment *att)
{
	struct kbt_share *share = att->share;
	struct kbt *kbt = att->conn->kbt;
	int i;

	if (!share)
		return;
	att->share = NULL;
	mutex_lock(&kbt->share_mutex);
	if (!kbt_share_users(kbt, share, -1)) {
		spin_lock(&kbt_names);
		list_del(&share->link);
		spin_unlock(&kbt_names);
		for (i = 0; i < KBT_POOLS; i++) {
			/*
			 * kbt_serve() removes empty lines lazily: @share may still be in the
			 * line of the pool.
			 */
			spin_lock_irq(&kbt->pools[i].lock);
			list_del_init(&share->lines[i].link);
			spin_unlock_irq(&kbt->pools[i].lock);
			if (!list_empty(&kbt->shares))
				kbt_pool_shrink(&kbt->pools[i]);
			kbt_pool_enter(&kbt->pools[i], -1);
		}
		kfree(share);
	}
	mutex_unlock(&kbt->share_mutex);
}

/* ---- Start and stop ------------------------------------------------------ */

/* Free the buffers of @pool; all are free because no connection is left. */
static void kbt_pool_stop(struct kbt_pool *pool)
{
	struct kbt_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &pool->free, link)
		kbt_buf_destroy(buf);
	INIT_LIST_HEAD(&pool->free);
}

static void kbt_pool_init(struct kbt_pool *pool, enum kbt_pool_kind kind,
			  size_t size)
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->waiting);
	pool->kind = kind;
	pool->size = size;
}

static int kbt_pool_fill(struct kbt *kbt, struct kbt_pool *pool, unsigned int n)
{
	int err = 0;

	while (n-- && !err)
		err = kbt_pool_grow(kbt, pool);
	return err;
}

int kbt_pools_start(struct kbt *kbt)
{
	const struct kbt_params *params = kbt->params;
	struct kbt_pool *pages = &kbt->pools[KBT_PAGES];
	struct kbt_pool *large = &kbt->pools[KBT_LARGE];
	int err;

	mutex_init(&kbt->share_mutex);
	INIT_LIST_HEAD(&kbt->shares);
	kbt_pool_init(pages, KBT_PAGES, KBLK_INLINE);
	kbt_pool_init(large, KBT_LARGE, params->max_transfer);
	mutex_lock(&kbt->share_mutex);
	err = kbt_pool_fill(kbt, pages, params->pages);
	if (!err)
		err = kbt_pool_fill(kbt, large, params->buffers);
	mutex_unlock(&kbt->share_mutex);
	if (err)
		kbt_pools_stop(kbt);
	return err;
}

void kbt_pools_stop(struct kbt *kbt)
{
	kbt_pool_stop(&kbt->pools[KBT_LARGE]);
	kbt_pool_stop(&kbt->pools[KBT_PAGES]);
}
