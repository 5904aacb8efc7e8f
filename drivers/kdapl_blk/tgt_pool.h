/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Buffers for data, and the lines of slots that wait for them: see tgt_pool.c. */
#ifndef KDAPL_BLK_TGT_POOL_H
#define KDAPL_BLK_TGT_POOL_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include "util.h"

struct kbt;
struct kbt_attachment;
struct kbt_io;
struct kbt_ns;

enum kbt_pool_kind { KBT_PAGES, KBT_LARGE, KBT_POOLS };

/*
 * struct kbt_line - an attachment's or a volume's place in line for a pool
 * @link: in the line of the volume or the pool, or empty
 * @waiting: slots of the attachment, or attachments of the volume
 * @held: buffers held
 * @users: in the line of a volume: the volume's attachments
 */
struct kbt_line {
	struct list_head link;
	struct list_head waiting;
	unsigned int held;
	unsigned int users;
};

/*
 * struct kbt_share - a volume in use at a port
 * @link: in kbt->shares
 * @ns: the volume
 * @lines: place of the volume in the line of each pool; pool->lock
 * @hanging: attachments that hang, see tgt_host.c; kbt_names
 * @hang_count: number of @hanging; kbt_names
 */
struct kbt_share {
	struct list_head link;
	struct kbt_ns *ns;
	struct kbt_line lines[KBT_POOLS];
	struct list_head hanging;
	unsigned int hang_count;
};

/*
 * struct kbt_pool - buffers of one size for all connections; see tgt_pool.c
 * @lock: guards the pool, and the lines of attachments and shares
 * @kind: index in kbt->pools
 * @free: buffers that are free
 * @waiting: lines of volumes
 * @size: size of a buffer, bytes
 * @n: number of buffers
 * @nfree: number of free buffers
 * @volumes: volumes in use
 * @without: volumes in use that hold no buffer
 */
struct kbt_pool {
	spinlock_t lock;		/* the pool, all lines */
	enum kbt_pool_kind kind;
	struct list_head free;
	struct list_head waiting;
	size_t size;
	unsigned int n;
	unsigned int nfree;
	unsigned int volumes;
	unsigned int without;
};

struct kbt_buf {
	struct list_head link;
	struct kbt_pool *pool;
	struct kblk_buf mem;
};

int kbt_pools_start(struct kbt *kbt);
void kbt_pools_stop(struct kbt *kbt);
bool kbt_pool_get(struct kbt_pool *pool, struct kbt_io *io);
void kbt_pool_put(struct kbt_io *io);
bool kbt_pool_cancel(struct kbt_io *io);
void kbt_line_init(struct kbt_line *line);
struct kbt_share *kbt_share_find(struct kbt *kbt, const struct kbt_ns *ns);
int kbt_share_join(struct kbt_attachment *att);
void kbt_share_leave(struct kbt_attachment *att);

#endif /* KDAPL_BLK_TGT_POOL_H */
