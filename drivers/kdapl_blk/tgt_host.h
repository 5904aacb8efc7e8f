/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Hosts of clients: see tgt_host.c; shunned hosts: see tgt_watch.c. */
#ifndef KDAPL_BLK_TGT_HOST_H
#define KDAPL_BLK_TGT_HOST_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <net/ipv6.h>
#include <dat/kdat.h>
#include "kdapl_blk_proto.h"

struct kbt;
struct kbt_attachment;
struct kbt_conn;
struct kbt_ns;

/*
 * struct kbt_host - a host with connections
 * @link: in kbt->hosts
 * @id: identity of the host, see KDAT_HOST
 * @conns: connections that are not yet freed; kbt->mutex
 * @unattached: proven ones of @conns that were never attached, when last counted; kbt->mutex
 * @owned: credits reserved for the host's proven connections and their volumes
 * @for_volumes: credits of @owned that ATTACH has reserved
 */
struct kbt_host {
	struct list_head link;
	struct in6_addr id;
	unsigned int conns;
	unsigned int unattached;
	atomic_t owned;
	atomic_t for_volumes;
};

/* Return how much of @max one host may have: an eighth is for other hosts. */
static inline u32 kbt_of_a_host(u32 max)
{
	return max_t(u32, max - DIV_ROUND_UP(max, 8), 1);
}

/*
 * struct kbt_shunned - a host whose connection requests are refused
 * @host: the host
 * @used: the entry is in use
 * @until: end of the penalty, jiffies
 */
struct kbt_shunned {
	struct in6_addr host;
	bool used;
	unsigned long until;
};

#define KBT_SHUNNED	16

/* tgt_host.c */
struct kbt_host *kbt_host_get(struct kbt *kbt, const struct in6_addr *id);
void kbt_host_put(struct kbt *kbt, struct kbt_host *host);
enum kblk_hello_status kbt_hello_check(const DAT_CR_PARAM *param);
enum kblk_hello_status kbt_session_check(struct kbt *kbt, const struct kblk_hello *hello,
					 const struct in6_addr *id);
bool kbt_host_prove(struct kbt_conn *conn);
bool kbt_is_too_many(const struct kbt_attachment *att);
void kbt_conn_know(struct kbt_conn *conn);
void kbt_conn_forget(struct kbt_conn *conn);
bool kbt_make_room(struct kbt *kbt, const struct kbt_host *asker);
void kbt_hang(struct kbt_conn *conn);
void kbt_unhang(struct kbt_attachment *att);
bool kbt_many_hang(const struct kbt_conn *conn, const struct kbt_ns *ns);

/* tgt_credit.c */
bool kbt_credits_prove(struct kbt_conn *conn);

/* tgt_watch.c */
bool kbt_takes_no_replies(struct kbt_conn *conn, unsigned long patience);
bool kbt_is_shunned(struct kbt *kbt, const struct in6_addr *host);
void kbt_judge(struct kbt_conn *conn, bool drained);
void kbt_silence_work(struct work_struct *work);

#endif /* KDAPL_BLK_TGT_HOST_H */
