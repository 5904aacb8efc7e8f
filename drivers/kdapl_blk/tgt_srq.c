// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers of the target: one SRQ for all clients of a port, of the adapter's pool.
 *
 * Entry points: kdat_pool_adapt() when the number of connections or credits changes,
 * kbt_rx_put() for the receive path.
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
#include "tgt.h"

/* Store how many buffers the connections and credits need. Context: any. */
void kbt_srq_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size)
{
	struct kbt *kbt = container_of(adapter, struct kbt, adapter);
	const struct kbt_params *params = kbt->params;
	u64 n;

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
	kdat_pool_put(kbt->adapter.pool, buf);
}
