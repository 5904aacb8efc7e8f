// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests to the target and its replies.
 *
 * The target writes data into the slot's own buffer, which is registered for as
 * long as the slot exists, and then sends a reply. The slot is finished when the
 * reply has come and the Send has completed: until then the request's memory
 * belongs to the device. A buffer for the reply is posted before its request can
 * be, so the target never finds none.
 *
 * The target is trusted with the data, that is its job, but not with the
 * kernel: a reply that fits no outstanding request ends the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "ini.h"

#define KBI_IDENTIFY_TIMEOUT	(10 * HZ)

static unsigned int kbi_slot_number(struct kbi_queue *queue,
				    struct kbi_slot *slot)
{
	return slot - queue->slots;
}

/* ---- Finishing ----------------------------------------------------------- */

/* The caller has cleared KBI_SLOT_BUSY. Any context. */
static void kbi_slot_finish(struct kbi_queue *queue, struct kbi_slot *slot)
{
	if (slot->status != BLK_STS_OK)
		kbi_count(queue->disk, KBI_STAT_ERRORS, 1);
	if (slot->rq)
		blk_mq_complete_request(slot->rq);
	else
		complete(slot->done);
}

/* The Send has completed, or the reply has come. */
static void kbi_slot_put(struct kbi_queue *queue, struct kbi_slot *slot)
{
	if (atomic_dec_and_test(&slot->pending) &&
	    test_and_clear_bit(KBI_SLOT_BUSY, &slot->flags))
		kbi_slot_finish(queue, slot);
}

/* No upcall runs any more, and nobody sends. */
void kbi_io_fail_all(struct kbi_queue *queue)
{
	struct kbi_slot *slot;
	unsigned int i;

	for (i = 0; queue->slots && i < queue->depth; i++) {
		slot = &queue->slots[i];
		if (!test_and_clear_bit(KBI_SLOT_BUSY, &slot->flags))
			continue;
		slot->status = BLK_STS_TRANSPORT;
		kbi_slot_finish(queue, slot);
	}
}

/* ---- Sending ------------------------------------------------------------- */

static void kbi_io_fill(struct kbi_queue *queue, struct kbi_slot *slot,
			enum kblk_opcode opcode, u64 offset, u32 length)
{
	struct kblk_request *request = queue->requests.va;

	request += kbi_slot_number(queue, slot);
	memset(request, 0, sizeof(*request));
	request->magic = cpu_to_le32(KBLK_MAGIC);
	request->opcode = opcode;
	request->id = cpu_to_le64(slot->id);
	request->offset = cpu_to_le64(offset);
	request->length = cpu_to_le32(length);
	request->rmr_context = cpu_to_le32(slot->data.rmr_context);
	request->address = cpu_to_le64(slot->data.addr);
}

/**
 * kbi_io_send - send a request
 * @queue: the queue
 * @slot: a slot that is not busy; @rq or @done are set
 * @opcode: what to ask for
 * @offset: on the volume, bytes
 * @length: bytes of data to come
 *
 * Context: Any but hardirq.
 * Return: BLK_STS_OK if the slot will be finished; BLK_STS_RESOURCE if the
 * target has given no credit for it now.
 */
blk_status_t kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
			 enum kblk_opcode opcode, u64 offset, u32 length)
{
	unsigned int n = kbi_slot_number(queue, slot);
	DAT_LMR_TRIPLET seg = kblk_seg(&queue->requests,
				       n * sizeof(struct kblk_request),
				       sizeof(struct kblk_request));
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_RETURN ret;

	if (atomic_dec_if_positive(&queue->credits) < 0) {
		kbi_count(queue->disk, KBI_STAT_NO_CREDIT, 1);
		return BLK_STS_RESOURCE;
	}
	/* A reply to an earlier use of the slot must not fit this one. */
	slot->id = (((slot->id >> 32) + 1) << 32) | n;
	slot->status = BLK_STS_OK;
	slot->length = length;
	slot->replied = false;
	atomic_set(&slot->pending, 2);
	kbi_io_fill(queue, slot, opcode, offset, length);
	set_bit(KBI_SLOT_BUSY, &slot->flags);

	ret = dat_ep_post_send(queue->ep, 1, &seg, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS) {
		kbi_count(queue->disk, KBI_STAT_REQUESTS, 1);
		return BLK_STS_OK;
	}
	if (!test_and_clear_bit(KBI_SLOT_BUSY, &slot->flags))
		return BLK_STS_OK;	/* failed by somebody else already */
	kbi_queue_down(queue, "cannot send");
	return BLK_STS_TRANSPORT;
}

/* ---- Receiving ----------------------------------------------------------- */

static DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&queue->replies,
				       n * sizeof(struct kblk_reply),
				       sizeof(struct kblk_reply));
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	return dat_ep_post_recv(queue->ep, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

static blk_status_t kbi_reply_status(const struct kblk_reply *reply)
{
	switch (le16_to_cpu(reply->status)) {
	case KBLK_OK:
		return BLK_STS_OK;
	case KBLK_ERR_UNSUPPORTED:
		return BLK_STS_NOTSUPP;
	default:
		return BLK_STS_IOERR;
	}
}

/* The slot a reply is for, or NULL if it makes no sense. */
static struct kbi_slot *kbi_reply_slot(struct kbi_queue *queue,
				       const struct kblk_reply *reply,
				       u32 length)
{
	u64 id = le64_to_cpu(reply->id);
	struct kbi_slot *slot;

	if (length != sizeof(*reply) ||
	    le32_to_cpu(reply->magic) != KBLK_MAGIC ||
	    !kblk_is_zero(reply->reserved, sizeof(reply->reserved)) ||
	    lower_32_bits(id) >= queue->depth)
		return NULL;
	slot = &queue->slots[lower_32_bits(id)];
	if (!test_bit(KBI_SLOT_BUSY, &slot->flags) || slot->id != id ||
	    slot->replied)
		return NULL;
	if (kbi_reply_status(reply) == BLK_STS_OK &&
	    le32_to_cpu(reply->length) != slot->length)
		return NULL;
	return slot;
}

/*
 * The target gives @n credits. More than there are slots would be of no use.
 * Only upcalls add, one at a time, so what is read can only have shrunk since.
 */
static void kbi_credit(struct kbi_queue *queue, unsigned int n)
{
	unsigned int have = atomic_read(&queue->credits);

	atomic_add(min(n, queue->depth - have), &queue->credits);
}

static void kbi_received(struct kbi_queue *queue,
			 const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	unsigned int n = dto->user_cookie.as_64;
	struct kbi_slot *slot;
	struct kblk_reply reply;

	memcpy(&reply, queue->replies.va + n * sizeof(reply), sizeof(reply));
	slot = kbi_reply_slot(queue, &reply, dto->transfered_length);
	if (!slot) {
		kbi_queue_down(queue, "the target sent nonsense");
		return;
	}
	kbi_count(queue->disk, KBI_STAT_REPLIES, 1);
	if (kbi_reply_post(queue, n) != DAT_SUCCESS) {
		kbi_queue_down(queue, "cannot post a receive");
		return;
	}
	slot->status = kbi_reply_status(&reply);
	slot->replied = true;
	kbi_credit(queue, le16_to_cpu(reply.credits));
	kbi_slot_put(queue, slot);
}

/* Something posted has completed. Softirq. */
void kbi_dto_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kbi_queue *queue = data;

	/* The rest is left to whoever takes the connection down. */
	if (atomic_read(&queue->state) == KBI_DEAD)
		return;
	/* An event of the connection says why. */
	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return;
	if (dto->status != DAT_DTO_SUCCESS)
		kbi_queue_down(queue, "a transfer failed");
	else if (dto->operation == DAT_DTO_SEND)
		kbi_slot_put(queue, &queue->slots[dto->user_cookie.as_64]);
	else
		kbi_received(queue, dto);
}

/* ---- Identify ------------------------------------------------------------ */

static int kbi_identify_check(struct kbi_disk *disk,
			      const struct kblk_identify *identify)
{
	u64 size = le64_to_cpu(identify->size);
	u32 block_size = le32_to_cpu(identify->block_size);

	if (!is_power_of_2(block_size) || block_size < SECTOR_SIZE ||
	    block_size > 4096 || block_size > disk->max_transfer ||
	    !size || size & (block_size - 1) || size > LLONG_MAX ||
	    le32_to_cpu(identify->flags) & ~KBLK_VOLUME_FLAGS ||
	    !kblk_is_zero(identify->reserved, sizeof(identify->reserved)))
		return -EPROTO;
	disk->size = size;
	disk->block_size = block_size;
	return 0;
}

/* Ask for the volume, with the first slot; the disk does not exist yet. */
int kbi_io_identify(struct kbi_queue *queue)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct kbi_slot *slot = queue->slots;
	int err;

	slot->done = &done;
	if (kbi_io_send(queue, slot, KBLK_OP_IDENTIFY, 0,
			sizeof(struct kblk_identify)) != BLK_STS_OK)
		return -ENOTCONN;
	if (!wait_for_completion_timeout(&done, KBI_IDENTIFY_TIMEOUT)) {
		kbi_queue_down(queue, "the target does not identify itself");
		flush_work(&queue->down_work);
		/* In case it was down before the slot was seen to be busy. */
		clear_bit(KBI_SLOT_BUSY, &slot->flags);
		return -ETIMEDOUT;
	}
	err = blk_status_to_errno(slot->status);
	return err ?: kbi_identify_check(queue->disk, slot->data.va);
}

/* ---- Slots --------------------------------------------------------------- */

/* What is needed to connect: receives are posted before the peer can send. */
int kbi_io_alloc(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int i;
	int err;

	queue->slots = kcalloc(queue->depth, sizeof(*queue->slots),
			       GFP_KERNEL);
	if (!queue->slots)
		return -ENOMEM;
	err = kblk_buf_alloc(&queue->requests, disk->ia, disk->pz,
			     queue->depth * sizeof(struct kblk_request),
			     DAT_MEM_PRIV_NONE_FLAG);
	if (!err)
		err = kblk_buf_alloc(&queue->replies, disk->ia, disk->pz,
				     queue->depth * sizeof(struct kblk_reply),
				     DAT_MEM_PRIV_NONE_FLAG);
	for (i = 0; i < queue->depth && !err; i++)
		err = kblk_errno(kbi_reply_post(queue, i));
	return err;
}

/* What depends on what the target has said. */
int kbi_io_alloc_data(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int i;
	int err = 0;

	for (i = 0; i < queue->depth && !err; i++)
		err = kblk_buf_alloc(&queue->slots[i].data, disk->ia, disk->pz,
				     disk->max_transfer,
				     DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	return err;
}

/* The Endpoint is gone. */
void kbi_io_free(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->depth; i++)
		kblk_buf_free(&queue->slots[i].data);
	kblk_buf_free(&queue->requests);
	kblk_buf_free(&queue->replies);
	kfree(queue->slots);
	queue->slots = NULL;
}
