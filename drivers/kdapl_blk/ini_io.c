// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests to the target and its replies.
 *
 * Data of up to a page travels with the messages and is copied. The pages of a
 * larger request are shown to the target for as long as it is served: a work
 * request binds the slot's LMR to them, the target's reply takes that back if
 * both devices can, another work request otherwise. Only then is the request
 * finished. That the Send has completed does not matter: who replies has got the
 * message, and what the device may still want to send of it again will be thrown
 * away there.
 *
 * The target is trusted with the data, that is its job, but not with the kernel:
 * a reply that fits no outstanding request ends the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/printk.h>
#include "ini.h"

static unsigned int kbi_slot_number(struct kbi_queue *queue,
				    struct kbi_slot *slot)
{
	return slot - queue->slots;
}

/* ---- Finishing ----------------------------------------------------------- */

static blk_status_t kbi_blk_status(u16 status)
{
	switch (status) {
	case KBLK_OK:
		return BLK_STS_OK;
	case KBLK_ERR_UNSUPPORTED:
		return BLK_STS_NOTSUPP;
	case KBLK_ERR_NO_SPACE:
		return BLK_STS_NOSPC;
	case KBLK_ERR_IO:
		return BLK_STS_MEDIUM;
	default:
		return BLK_STS_IOERR;
	}
}

/* The caller has cleared KBI_SLOT_BUSY. Any context. */
static void kbi_slot_finish(struct kbi_queue *queue, struct kbi_slot *slot)
{
	struct request *rq = slot->rq;
	struct kbi_pdu *pdu;

	if (slot->status != KBLK_OK)
		kbi_count(queue->disk, KBI_STAT_ERRORS, 1);
	if (!rq) {
		complete(&queue->admin);
		return;
	}
	pdu = blk_mq_rq_to_pdu(rq);
	pdu->status = kbi_blk_status(slot->status);
	pdu->lost = false;
	if (!blk_mq_complete_request_remote(rq))
		kbi_disk_complete(rq);
}

/* One of the things has happened that the slot waits for. */
static void kbi_slot_put(struct kbi_queue *queue, struct kbi_slot *slot)
{
	if (atomic_dec_and_test(&slot->pending) &&
	    test_and_clear_bit(KBI_SLOT_BUSY, &slot->flags))
		kbi_slot_finish(queue, slot);
}

/* ---- Sending ------------------------------------------------------------- */

/* Take a credit, if the target has given one. */
bool kbi_io_credit(struct kbi_queue *queue)
{
	if (atomic_dec_if_positive(&queue->credits) >= 0)
		return true;
	kbi_count(queue->disk, KBI_STAT_NO_CREDIT, 1);
	return false;
}

/*
 * Send what there is for a message. If that fails all that is outstanding comes again
 * when there is a connection. Under queue->lock.
 */
static void kbi_send_gathered(struct kbi_queue *queue)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_LMR_TRIPLET seg;

	if (!queue->first)
		return;
	seg = kblk_seg(&queue->first->mem, 0, queue->length);
	queue->first = NULL;
	queue->used = true;
	kbi_count(queue->disk, KBI_STAT_REQUESTS, queue->gathered);
	kbi_count(queue->disk, KBI_STAT_MESSAGES, 1);
	if (dat_ep_post_send(queue->ep, 1, &seg, cookie,
			     DAT_COMPLETION_SUPPRESS_FLAG) != DAT_SUCCESS)
		kbi_queue_lost(queue, "cannot send");
}

/* Room for a request and @len bytes of data, in a new message if need be. */
static void *kbi_message_room(struct kbi_queue *queue, struct kbi_slot *slot,
			      u32 len)
{
	void *to;

	if (queue->first &&
	    (queue->gathered == KBLK_BATCH_MAX ||
	     queue->length + len > queue->message_max))
		kbi_send_gathered(queue);
	if (!queue->first) {
		queue->first = slot;
		queue->gathered = 0;
		queue->length = 0;
	}
	to = queue->first->mem.va + queue->length;
	queue->gathered++;
	queue->length += len;
	return to;
}

static void kbi_copy_out(struct request *rq, void *to)
{
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		memcpy_from_bvec(to, &bvec);
		to += bvec.bv_len;
	}
}

/**
 * kbi_io_commit() - send what was held back for more to come
 * @queue: the queue
 *
 * Context: Process context.
 */
void kbi_io_commit(struct kbi_queue *queue)
{
	spin_lock(&queue->lock);
	kbi_send_gathered(queue);
	spin_unlock(&queue->lock);
}

/**
 * kbi_io_send() - send a request
 * @queue: the queue; a credit was taken
 * @slot: a slot that is not busy; rq, inlined and bound are set
 * @request: what to send; magic and id are filled in
 * @data: to send with it, or NULL: that of the slot's rq
 * @inlined: bytes of it
 * @last: if not, kbi_io_commit() or another request follows at once
 *
 * The slot will be finished, or the connection is lost. The request is put behind those
 * that wait for the last of what the block layer has at hand: a message costs more than
 * what is in it. It is in the memory of the first, which nobody needs before its reply,
 * and then all of it has arrived.
 *
 * Context: Process context.
 */
void kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
		 struct kblk_request *request, const void *data, u32 inlined,
		 bool last)
{
	unsigned int n = kbi_slot_number(queue, slot);
	void *to;

	/* A reply to an earlier use of the slot must not fit this one. */
	slot->id = (((slot->id >> 32) + 1) << 32) | n;
	slot->replied = false;
	request->magic = cpu_to_le32(KBLK_MAGIC);
	request->id = cpu_to_le64(slot->id);
	spin_lock(&queue->lock);
	to = kbi_message_room(queue, slot, sizeof(*request) + inlined);
	memcpy(to, request, sizeof(*request));
	if (inlined && data)
		memcpy(to + sizeof(*request), data, inlined);
	else if (inlined)
		kbi_copy_out(slot->rq, to + sizeof(*request));
	/* From here on it may be finished, by a reply that nobody has asked for too. */
	atomic_set(&slot->pending, 1);
	set_bit(KBI_SLOT_BUSY, &slot->flags);
	if (last || !queue->requests_batch)
		kbi_send_gathered(queue);
	spin_unlock(&queue->lock);
}

/* Show the request's pages to the target. */
static DAT_RETURN kbi_io_bind(struct kbi_queue *queue, struct kbi_slot *slot,
			      struct kblk_request *request)
{
	struct kbi_disk *disk = queue->disk;
	DAT_REGION_DESCRIPTION region = { .for_platform = slot->sg };
	DAT_DTO_COOKIE cookie = { .as_64 = kbi_slot_number(queue, slot) };
	bool write = request->opcode == KBLK_OP_WRITE;
	struct scatterlist *sg;
	DAT_LMR_TRIPLET seg;
	u64 pages = 0;
	DAT_RETURN ret;
	int i, n;

	n = blk_rq_map_sg(slot->rq->q, slot->rq, slot->sg);
	for_each_sg(slot->sg, sg, n, i)
		pages += DIV_ROUND_UP(offset_in_page(sg->offset) + sg->length,
				      PAGE_SIZE);
	ret = dat_lmr_fmr(slot->lmr, DAT_MEM_TYPE_PLATFORM, region, pages,
			  write ? DAT_MEM_PRIV_LOCAL_READ_FLAG |
				  DAT_MEM_PRIV_REMOTE_READ_FLAG :
				  DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				  DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			  DAT_VA_TYPE_VA, queue->ep, cookie,
			  DAT_COMPLETION_SUPPRESS_FLAG, &slot->lmr_context,
			  &slot->rmr_context);
	if (ret != DAT_SUCCESS)
		return ret;
	slot->bound = true;
	request->rmr_context = cpu_to_le32(slot->rmr_context);
	request->address = cpu_to_le64(sg_phys(slot->sg));
	if (!disk->sync || !write)
		return ret;
	seg.virtual_address = sg_phys(slot->sg);
	seg.segment_length = le32_to_cpu(request->length);
	seg.lmr_context = slot->lmr_context;
	return dat_lmr_sync_rdma_read(disk->ia, &seg, 1);
}

/* Not to be seen by the target any more; the reply has not done that. */
static void kbi_io_unbind(struct kbi_queue *queue, struct kbi_slot *slot)
{
	DAT_DTO_COOKIE cookie = { .as_64 = kbi_slot_number(queue, slot) };
	struct kbi_disk *disk = queue->disk;
	DAT_LMR_TRIPLET seg = {
		.virtual_address = sg_phys(slot->sg),
		.segment_length = blk_rq_bytes(slot->rq),
		.lmr_context = slot->lmr_context,
	};

	if (disk->sync && rq_data_dir(slot->rq) == READ)
		dat_lmr_sync_rdma_write(disk->ia, &seg, 1);
	slot->bound = false;
	atomic_inc(&slot->pending);
	if (dat_lmr_invalidate(slot->lmr, queue->ep, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		kbi_queue_lost(queue, "cannot take memory back");
}

static void kbi_copy_in(struct request *rq, const void *from)
{
	struct req_iterator iter;
	struct bio_vec bvec;

	rq_for_each_segment(bvec, rq, iter) {
		memcpy_to_bvec(&bvec, from);
		from += bvec.bv_len;
	}
}

/* What a request of the block layer is for the target. */
static bool kbi_io_translate(struct request *rq, struct kblk_request *request)
{
	memset(request, 0, sizeof(*request));
	switch (req_op(rq)) {
	case REQ_OP_READ:
		request->opcode = KBLK_OP_READ;
		break;
	case REQ_OP_WRITE:
		request->opcode = KBLK_OP_WRITE;
		break;
	case REQ_OP_FLUSH:
		request->opcode = KBLK_OP_FLUSH;
		return true;
	case REQ_OP_DISCARD:
		request->opcode = KBLK_OP_DISCARD;
		break;
	case REQ_OP_WRITE_ZEROES:
		request->opcode = KBLK_OP_WRITE_ZEROES;
		break;
	default:
		return false;
	}
	request->offset = cpu_to_le64(blk_rq_pos(rq) << SECTOR_SHIFT);
	request->length = cpu_to_le32(blk_rq_bytes(rq));
	if (rq->cmd_flags & REQ_FUA && request->opcode == KBLK_OP_WRITE)
		request->flags |= KBLK_FUA;
	return true;
}

/**
 * kbi_io_queue() - send a request of the block layer
 * @queue: the queue it is for; the disk is live
 * @rq: the request
 * @last: as to kbi_io_send(), whatever is returned
 *
 * Context: Process context.
 * Return: BLK_STS_OK if it will be completed; BLK_STS_RESOURCE: not now.
 */
blk_status_t kbi_io_queue(struct kbi_queue *queue, struct request *rq,
			  bool last)
{
	struct kbi_slot *slot = &queue->slots[rq->tag];
	struct kblk_request request;
	u32 length = blk_rq_bytes(rq);
	u32 inlined = 0;
	DAT_RETURN ret;

	if (!kbi_io_translate(rq, &request))
		return BLK_STS_NOTSUPP;
	if (!kbi_io_credit(queue))
		return BLK_STS_RESOURCE;
	blk_mq_start_request(rq);
	slot->rq = rq;
	slot->inlined = 0;
	slot->bound = false;
	if (request.opcode != KBLK_OP_READ && request.opcode != KBLK_OP_WRITE) {
		/* no data */
	} else if (length <= KBLK_INLINE) {
		request.flags |= KBLK_INLINED;
		kbi_count(queue->disk, KBI_STAT_INLINE, 1);
		if (request.opcode == KBLK_OP_READ)
			slot->inlined = length;
		else
			inlined = length;
	} else {
		ret = kbi_io_bind(queue, slot, &request);
		if (ret != DAT_SUCCESS) {
			atomic_inc(&queue->credits);
			/* Or its last binding is still to complete. */
			if (slot->bound ||
			    (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES &&
			     DAT_GET_TYPE(ret) != DAT_INVALID_STATE))
				kbi_queue_lost(queue, kblk_strerror(ret));
			return BLK_STS_RESOURCE;
		}
	}
	kbi_io_send(queue, slot, &request, NULL, inlined, last);
	return BLK_STS_OK;
}

/* ---- Receiving ----------------------------------------------------------- */

/* The slot a reply is for that has @length bytes, or NULL if it makes no sense. */
static struct kbi_slot *kbi_reply_slot(struct kbi_queue *queue,
				       const struct kblk_reply *reply,
				       u32 length)
{
	u64 id = le64_to_cpu(reply->id);
	struct kbi_slot *slot;
	u32 inlined;

	if (length < sizeof(*reply) ||
	    le32_to_cpu(reply->magic) != KBLK_MAGIC ||
	    !kblk_is_zero(reply->reserved, sizeof(reply->reserved)) ||
	    lower_32_bits(id) >= queue->nslots)
		return NULL;
	slot = &queue->slots[lower_32_bits(id)];
	if (!test_bit(KBI_SLOT_BUSY, &slot->flags) || slot->id != id ||
	    slot->replied)
		return NULL;
	inlined = le16_to_cpu(reply->status) == KBLK_OK ? slot->inlined : 0;
	if (le32_to_cpu(reply->length) != inlined ||
	    length - sizeof(*reply) < inlined)
		return NULL;
	return slot;
}

/*
 * The target gives @n credits. More than there are slots would be of no use.
 * Only upcalls add, one at a time, so what is read can only have shrunk since.
 */
static void kbi_credit(struct kbi_queue *queue, unsigned int n)
{
	int room = queue->nslots - atomic_read(&queue->credits);

	if (room > 0)
		atomic_add(min_t(unsigned int, n, room), &queue->credits);
}

/* Has the reply taken the memory back? False if it took something else, or nothing. */
static bool kbi_reply_memory(struct kbi_queue *queue, struct kbi_slot *slot,
			     const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	if (dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE) {
		if (!slot->bound || dto->rmr_context != slot->rmr_context)
			return false;
		slot->bound = false;
		kbi_count(queue->disk, KBI_STAT_INVALIDATED, 1);
	} else if (slot->bound) {
		if (queue->invalidate)
			return false;
		kbi_io_unbind(queue, slot);
	}
	return true;
}

static void kbi_reply_data(struct kbi_slot *slot, const void *data, u32 length)
{
	if (!length)
		return;
	if (slot->rq)
		kbi_copy_in(slot->rq, data);
	else if (slot->into)
		memcpy(slot->into, data, length);
}

/*
 * Take the replies that a message brought, their slots to @slots, and the credits they
 * give to @credits; returns how many there are, or 0 if they make no sense.
 */
static unsigned int kbi_replies(struct kbi_queue *queue, struct kbi_slot **slots,
				unsigned int *credits,
				const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	const struct kblk_reply *reply =
		queue->slots[dto->user_cookie.as_64].mem.va + KBI_REPLY_AT;
	u32 left = dto->transfered_length, part;
	unsigned int n = 0;
	struct kbi_slot *slot;

	*credits = 0;
	do {
		slot = kbi_reply_slot(queue, reply, left);
		if (!slot)
			return 0;
		part = sizeof(*reply) + le32_to_cpu(reply->length);
		/* Whose memory was shared has the message to itself. */
		if (part != dto->transfered_length &&
		    (!queue->batch || slot->bound || n == KBLK_BATCH_MAX))
			return 0;
		if (!kbi_reply_memory(queue, slot, dto))
			return 0;
		slot->status = le16_to_cpu(reply->status);
		slot->replied = true;
		kbi_reply_data(slot, reply + 1, part - sizeof(*reply));
		*credits += le16_to_cpu(reply->credits);
		slots[n++] = slot;
		left -= part;
		reply = (const void *)reply + part;
	} while (left);
	return n;
}

static void kbi_received(struct kbi_queue *queue,
			 const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kbi_slot *slots[KBLK_BATCH_MAX];
	unsigned int n, credits, i;

	n = kbi_replies(queue, slots, &credits, dto);
	if (!n) {
		kbi_queue_lost(queue, "the target sent nonsense");
		return;
	}
	kbi_count(queue->disk, KBI_STAT_REPLIES, n);
	/* Before there can be new requests, whose replies need it. */
	if (kbi_reply_post(queue, dto->user_cookie.as_64) != DAT_SUCCESS) {
		kbi_queue_lost(queue, "cannot post a receive");
		return;
	}
	kbi_credit(queue, credits);
	for (i = 0; i < n; i++)
		kbi_slot_put(queue, slots[i]);
}

/* A reply has come, or never will. Softirq. */
void kbi_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kbi_queue *queue = data;
	DAT_EVENT ignored;

	/* The rest is left to whoever takes the connection down. */
	if (atomic_read(&queue->state) == KBI_QUEUE_DEAD)
		return;
	if (dto->status == DAT_DTO_SUCCESS)
		kbi_received(queue, dto);
	else if (dto->status != DAT_DTO_ERR_FLUSHED)
		kbi_queue_lost(queue, "a receive failed");
	else
		/* Perhaps a Send was why: kDAPL sees, and its event tells. */
		while (dat_evd_dequeue(queue->req_evd, &ignored) == DAT_SUCCESS)
			;
}

/* We have taken memory back. Softirq; only without remote invalidation. */
void kbi_req_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kbi_queue *queue = data;

	if (atomic_read(&queue->state) == KBI_QUEUE_DEAD ||
	    dto->status == DAT_DTO_ERR_FLUSHED)
		return;
	if (dto->status == DAT_DTO_SUCCESS)
		kbi_slot_put(queue, &queue->slots[dto->user_cookie.as_64]);
	else
		kbi_queue_lost(queue, "a transfer failed");
}
