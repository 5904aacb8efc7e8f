// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers of the target: one SRQ for all clients, of a kDAPL pool.
 *
 * Entry points: kbt_srq_start() and kbt_srq_stop(), kdat_pool_adapt() when the number of
 * connections or credits changes, kbt_rx_put() for the receive path.
 *
 * There is a buffer for each credit that clients have, see tgt_credit.c; the queue grows and
 * shrinks with the number of connections and with the credits in use.
 *
 * A buffer returns to the queue when the last request of its message was taken and no data is
 * left in it. A write that waits for a page keeps the buffer until then; a write whose data is
 * not copied keeps it until the medium has the data, see kbt_may_keep(). Each buffer in use
 * stands for a request that was not replied to, and thus for a credit, so clients that keep to
 * their credits still find a buffer. The buffers of a connection that has ended come back at
 * once, see kbt_drop_messages().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include "tgt.h"

/* Store how many buffers the connections and credits need. Context: any. */
static void kbt_srq_size(DAT_PVOID context, KDAT_POOL_SIZE *size)
{
	const struct kbt_params *params;
	struct kbt *kbt = context;
	u64 n;

	params = kbt->params;
	n = (u64)params->srq_per_conn * READ_ONCE(kbt->conn_count) + params->srq_size;
	n = max_t(u64, n, kbt_credits_buffers(kbt));
	size->wanted = min_t(u64, n, params->srq_max);
	size->most = params->srq_max;
	size->low = params->srq_low;
}

/*
 * Drop a user of a buffer: the message in the buffer, or one of the slots that ->users counts.
 * The last user returns the buffer. litmus: last-put. Context: any.
 */
void kbt_rx_put(struct kbt *kbt, DAT_DTO_COOKIE cookie)
{
	KDAT_POOL_BUF *buf = cookie.as_ptr;

	if (!atomic_add_negative(-1, &buf->users))
		return;
	atomic_set(&buf->users, 0);
	kdat_pool_put(kbt->rx, buf);
}

int kbt_srq_start(struct kbt *kbt)
{
	KDAT_POOL_ATTR attr = {
		.ia = kbt->ia,
		.pz = kbt->pz,
		.name = kbt->params->ia,
		.length = KBLK_MESSAGE,
		.header = sizeof(struct kblk_request),
		.size = kbt_srq_size,
		.context = kbt,
	};
	KDAT_POOL_PARAM param;
	DAT_RETURN ret;

	kbt_credits_init(kbt);
	ret = kdat_pool_create(&attr, &kbt->rx);
	if (ret == DAT_SUCCESS) {
		kdat_pool_query(kbt->rx, &param);
		kbt->srq = param.srq;
	} else if (kblk_errno(ret) != kbt->port->err) {
		/* kbt_port_retry() tries again; the same error is logged once. */
		pr_err("%s: no shared receive queue: %s\n", kbt->params->ia,
		       kblk_strerror(ret));
	}
	return kblk_errno(ret);
}

/*
 * Free the SRQ and its buffers. All connections are freed, and the upcall of the asynchronous
 * EVD is torn down, so nothing uses the pool concurrently.
 */
void kbt_srq_stop(struct kbt *kbt)
{
	kdat_pool_free(kbt->rx);
}
