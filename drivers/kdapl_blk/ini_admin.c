// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of our own, in a queue's last slot: one at a time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/printk.h>
#include "ini.h"

static struct kbi_slot *kbi_admin_slot(struct kbi_queue *queue)
{
	return &queue->slots[queue->nslots - 1];
}

/*
 * Send @request with @out_len bytes of @out, and wait for the reply, with @in_len
 * bytes to @in. Returns the status of the reply, or a negative error number.
 */
static int kbi_admin(struct kbi_queue *queue, struct kblk_request *request,
		     const void *out, u32 out_len, void *in, u32 in_len)
{
	u32 ms = queue->disk->params.connect_timeout_ms;
	struct kbi_slot *slot = kbi_admin_slot(queue);
	int err = 0;

	if (!kbi_io_credit(queue))
		return -EPROTO;
	reinit_completion(&queue->admin);
	slot->into = in;
	slot->inlined = in_len;
	request->flags = KBLK_INLINED;
	request->length = cpu_to_le32(out_len + in_len);
	kbi_io_send(queue, slot, request, out, out_len, true);
	/* A loss from here on completes it. */
	if (kbi_queue_live(queue) &&
	    !wait_for_completion_timeout(&queue->admin, msecs_to_jiffies(ms)))
		err = -ETIMEDOUT;
	if (test_bit(KBI_SLOT_BUSY, &slot->flags)) {
		kbi_queue_lost(queue, "the target does not answer");
		/* Nobody answers any more when this has returned. */
		kbi_queue_stop(queue);
		return err ?: -ENOTCONN;
	}
	slot->into = NULL;
	return slot->status;
}

/* Tell the target who we are and which volume we want. */
int kbi_attach(struct kbi_queue *queue)
{
	const struct kbi_params *params = &queue->disk->params;
	struct kblk_request request = { .opcode = KBLK_OP_ATTACH };
	struct kblk_attach attach = {
		.namespace = cpu_to_le32(params->namespace),
		.keepalive_ms = cpu_to_le32(params->keepalive_ms),
	};
	int ret;

	strscpy(attach.client, params->client, sizeof(attach.client));
	strscpy(attach.subsystem, params->subsystem, sizeof(attach.subsystem));
	ret = kbi_admin(queue, &request, &attach, sizeof(attach), NULL, 0);
	switch (ret) {
	case KBLK_OK:
		return 0;
	case KBLK_ERR_DENIED:
		pr_err("the target does not know client %s for %s\n",
		       params->client, params->subsystem);
		return -EACCES;
	case KBLK_ERR_NO_VOLUME:
		pr_err("the target has no %s, volume %u\n", params->subsystem,
		       params->namespace);
		return -ENOENT;
	default:
		return ret < 0 ? ret : -EPROTO;
	}
}

static bool kbi_block_size_ok(u32 size, u32 min, u32 max)
{
	return is_power_of_2(size) && size >= min && size <= max;
}

static int kbi_identify_check(const struct kblk_identify *identify)
{
	u32 block = le32_to_cpu(identify->block_size);
	u32 granularity = le32_to_cpu(identify->discard_granularity);
	u64 size = le64_to_cpu(identify->size);

	if (!kbi_block_size_ok(block, SECTOR_SIZE, KBLK_INLINE) ||
	    !kbi_block_size_ok(le32_to_cpu(identify->physical_block_size),
			       block, 65536) ||
	    !size || size & (block - 1) || size > LLONG_MAX ||
	    le32_to_cpu(identify->flags) & ~KBLK_VOLUME_FLAGS ||
	    le32_to_cpu(identify->max_discard) & (block - 1) ||
	    le32_to_cpu(identify->max_write_zeroes) & (block - 1) ||
	    !identify->max_discard != !granularity ||
	    granularity & (block - 1) ||
	    !kblk_is_zero(identify->reserved, sizeof(identify->reserved)))
		return -EPROTO;
	return 0;
}

/* Ask what the volume is. */
int kbi_identify(struct kbi_queue *queue, struct kblk_identify *identify)
{
	struct kblk_request request = { .opcode = KBLK_OP_IDENTIFY };
	int ret;

	ret = kbi_admin(queue, &request, NULL, 0, identify, sizeof(*identify));
	if (ret)
		return ret < 0 ? ret : -EPROTO;
	ret = kbi_identify_check(identify);
	if (ret)
		pr_err("the target describes an impossible volume\n");
	return ret;
}

/* Say something to a target that has heard nothing for long. */
static void kbi_keepalive(struct kbi_queue *queue)
{
	struct kblk_request request = { .opcode = KBLK_OP_KEEPALIVE };
	struct kbi_slot *slot = kbi_admin_slot(queue);

	if (test_bit(KBI_SLOT_BUSY, &slot->flags)) {
		kbi_queue_lost(queue, "the target does not answer");
		return;
	}
	if (queue->used) {
		queue->used = false;
		return;
	}
	/* Without a credit there are requests that will be answered. */
	if (!kbi_io_credit(queue))
		return;
	slot->rq = NULL;
	slot->inlined = 0;
	kbi_io_send(queue, slot, &request, NULL, 0, true);
	queue->used = false;
}

void kbi_keepalive_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, keepalive_work);
	unsigned int i;

	mutex_lock(&disk->mutex);
	if (kbi_state(disk) == KBI_LIVE) {
		for (i = 0; i < disk->nqueues; i++)
			kbi_keepalive(&disk->queues[i]);
		queue_delayed_work(kbi_wq, &disk->keepalive_work,
				   msecs_to_jiffies(disk->params.keepalive_ms));
	}
	mutex_unlock(&disk->mutex);
}
