/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hosts of clients: see tgt_host.c; those that are shunned: see tgt_watch.c.
 */
#ifndef KDAPL_BLK_TGT_HOST_H
#define KDAPL_BLK_TGT_HOST_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <linux/socket.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"

struct kbt;
struct kbt_attachment;
struct kbt_conn;
struct kbt_ns;

/*
 * struct kbt_host - a host with connections
 * @link: in kbt->hosts
 * @addr: its address
 * @conns: connections that are not yet freed; kbt->mutex
 * @owned: credits that are kept free for them and their volumes
 * @for_volumes: those of @owned that ATTACH has brought
 */
struct kbt_host {
	struct list_head link;
	struct sockaddr_storage addr;
	unsigned int conns;
	atomic_t owned;
	atomic_t for_volumes;
};

/* Return how much of @max one host may have: an eighth is for others. */
static inline u32 kbt_of_a_host(u32 max)
{
	return max_t(u32, max - DIV_ROUND_UP(max, 8), 1);
}

/* A host whose connection requests are refused until @until (jiffies). */
struct kbt_shunned {
	struct sockaddr_storage host;
	unsigned long until;
};

#define KBT_SHUNNED	16

/* tgt_host.c */
bool kbt_same_host(const struct sockaddr_storage *a,
		   const struct sockaddr_storage *b);
struct kbt_host *kbt_host_get(struct kbt *kbt, const DAT_IA_ADDRESS_PTR addr);
void kbt_host_put(struct kbt *kbt, struct kbt_host *host);
enum kblk_hello_status kbt_hello_check(const DAT_CR_PARAM *param);
enum kblk_hello_status kbt_session_check(struct kbt *kbt, const DAT_CR_PARAM *param);
void kbt_hang(struct kbt_conn *conn);
void kbt_unhang(struct kbt_attachment *att);
bool kbt_many_hang(const struct kbt_conn *conn, const struct kbt_ns *ns);

/* tgt_watch.c */
bool kbt_takes_no_replies(struct kbt_conn *conn, unsigned long patience);
bool kbt_is_shunned(struct kbt *kbt, const struct sockaddr_storage *host);
void kbt_judge(struct kbt_conn *conn);
void kbt_silence_work(struct work_struct *work);

#endif /* KDAPL_BLK_TGT_HOST_H */
