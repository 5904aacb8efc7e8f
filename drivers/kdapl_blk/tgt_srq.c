// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers of the target.
 *
 * All clients share one queue, which is why it can be much shorter than the sum
 * of their credits: not everybody is busy at once. That is a bet, and the low
 * watermark tells when it is about to be lost. Then the reserve is posted, for
 * good, and the watermark is raised again as soon as the clients have let the
 * queue recover. Raising it earlier would only repeat the same event.
 *
 * A buffer goes back to the queue the moment its request was copied out of it,
 * whatever its completion said. Buffers of a client that is freed need no care:
 * kDAPL puts them back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/printk.h>
#include "tgt.h"

#define KBT_LOW_RECHECK	msecs_to_jiffies(20)

static unsigned int kbt_rx_total(void)
{
	return kbt_srq_size + kbt_srq_size / 4;
}

void *kbt_rx_buffer(struct kbt *kbt, DAT_DTO_COOKIE cookie)
{
	return kbt->rx.va + cookie.as_64 * KBT_RX_SIZE;
}

/* Fails only if the adapter is gone, and with it everybody who could send. */
void kbt_rx_repost(struct kbt *kbt, DAT_DTO_COOKIE cookie)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&kbt->rx, cookie.as_64 * KBT_RX_SIZE,
				       KBT_RX_SIZE);
	DAT_RETURN ret = dat_srq_post_recv(kbt->srq, 1, &seg, cookie);

	if (ret != DAT_SUCCESS)
		pr_warn_ratelimited("receive buffer lost: %s\n",
				    kblk_strerror(ret));
}

static void kbt_rx_post_upto(struct kbt *kbt, unsigned int total)
{
	DAT_DTO_COOKIE cookie;

	for (; kbt->rx_posted < total; kbt->rx_posted++) {
		cookie.as_64 = kbt->rx_posted;
		kbt_rx_repost(kbt, cookie);
	}
}

/* The low watermark has fired. Process context. */
void kbt_srq_ran_low(struct kbt *kbt)
{
	kbt_count(kbt, KBT_STAT_LOW_WATERMARK, 1);
	if (kbt->rx_posted < kbt_rx_total())
		pr_info("fewer than %u receive buffers free, posting the reserve\n",
			kbt_srq_low);
	kbt_rx_post_upto(kbt, kbt_rx_total());
	queue_delayed_work(kbt->wq, &kbt->low_work, KBT_LOW_RECHECK);
}

static void kbt_low_work(struct work_struct *work)
{
	struct kbt *kbt = container_of(to_delayed_work(work), struct kbt,
				       low_work);
	DAT_SRQ_PARAM param;

	if (dat_srq_query(kbt->srq, DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT,
			  &param) != DAT_SUCCESS)
		return;
	if (param.available_dto_count < (DAT_COUNT)kbt_srq_low)
		queue_delayed_work(kbt->wq, &kbt->low_work, KBT_LOW_RECHECK);
	else
		dat_srq_set_lw(kbt->srq, kbt_srq_low);
}

int kbt_srq_start(struct kbt *kbt)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = kbt_rx_total(),
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_RETURN ret;
	int err;

	INIT_DELAYED_WORK(&kbt->low_work, kbt_low_work);
	ret = dat_srq_create(kbt->ia, kbt->pz, &attr, &kbt->srq);
	if (ret != DAT_SUCCESS) {
		pr_err("no shared receive queue: %s\n", kblk_strerror(ret));
		return kblk_errno(ret);
	}
	err = kblk_buf_alloc(&kbt->rx, kbt->ia, kbt->pz,
			     kbt_rx_total() * KBT_RX_SIZE,
			     DAT_MEM_PRIV_NONE_FLAG);
	if (err)
		goto free_srq;
	kbt_rx_post_upto(kbt, kbt_srq_size);
	ret = dat_srq_set_lw(kbt->srq, kbt_srq_low);
	if (ret == DAT_SUCCESS)
		return 0;
	err = kblk_errno(ret);
	dat_srq_free(kbt->srq);
	kblk_buf_free(&kbt->rx);
	return err;

free_srq:
	dat_srq_free(kbt->srq);
	return err;
}

/* All clients are gone, and the asynchronous EVD makes no upcalls any more. */
void kbt_srq_stop(struct kbt *kbt)
{
	cancel_delayed_work_sync(&kbt->low_work);
	dat_srq_free(kbt->srq);
	kblk_buf_free(&kbt->rx);
}
