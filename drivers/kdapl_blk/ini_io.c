// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests to the target and its replies.
 *
 * Entry points: kbi_io_queue() and kbi_io_commit() for the block layer, kbi_io_send() for
 * ini_admin.c as well, kbi_recv_upcall() for replies, kbi_req_upcall() for invalidations.
 *
 * Data of up to KBLK_INLINE bytes travels inside messages and is copied. The pages of a larger
 * request are exposed to the target while it is served: dat_lmr_fmr() binds the slot's LMR to
 * them. The reply invalidates the LMR if both devices support that; otherwise
 * dat_lmr_invalidate() does. The request is finished only after the invalidation. The
 * completion of its Send is not awaited: a target that has replied has received the message,
 * and discards what the device may still retransmit.
 *
 * The target is trusted with the data, but not with the kernel: a reply that matches no
 * outstanding request ends the connection.
 *
 * A slot belongs to the sender until KBI_SLOT_BUSY is set, then to the function that clears
 * the bit. Locks: queue->lock guards the message being put together.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/bvec.h>
#include <linux/printk.h>
#include "blk_compat.h"
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

/* Finish @slot, whose KBI_SLOT_BUSY the caller has cleared. litmus: blk-taken. Context: any. */
static void kbi_slot_finish(struct kbi_queue *queue, struct kbi_slot *slot)
{
	struct kbi_use *use = slot->use;
	struct request *rq = slot->rq;
	struct kbi_pdu *pdu;

	if (use && queue->volumes)
		kbi_count(use->disk, KBI_STAT_REPLIES, 1);
	if (use && slot->status != KBLK_OK)
		kbi_count(use->disk, KBI_STAT_ERRORS, 1);
	if (!rq) {
		complete(&queue->admin);
		return;
	}
	pdu = blk_mq_rq_to_pdu(rq);
	pdu->status = kbi_blk_status(slot->status);
	/* The target has not executed the request: it is resent when attached again. */
	pdu->lost = slot->status == KBLK_ERR_NOT_ATTACHED && queue->volumes;
	if (pdu->lost) {
		pdu->detached++;
		kbi_disk_detached(use->disk);
	} else if (pdu->status == BLK_STS_OK) {
		kbi_disk_account(use->disk, rq);
	}
	clear_bit_unlock(kbi_slot_number(queue, slot), queue->taken);
	if (queue->volumes)
		kbi_share_put(use);
	if (!blk_mq_complete_request_remote(rq))
		kbi_disk_complete(rq);
}

/*
 * Drop a count of slot->pending (reply or invalidation); the last one finishes the slot.
 * litmus: last-put, blk-idle. Context: any.
 */
static void kbi_slot_put(struct kbi_queue *queue, struct kbi_slot *slot)
{
	if (atomic_dec_and_test(&slot->pending) &&
	    test_and_clear_bit(KBI_SLOT_BUSY, &slot->flags))
		kbi_slot_finish(queue, slot);
}

/* ---- Sending ------------------------------------------------------------- */

/*
 * Post the message being put together. If the post fails, the connection is lost, and the
 * requests are resent on the next one. Context: any.
 */
static void kbi_send_gathered(struct kbi_queue *queue)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_LMR_TRIPLET seg;
	struct kbi_use *use;

	lockdep_assert_held(&queue->lock);

	if (!queue->first)
		return;
	seg = kblk_seg(&queue->first->mem, 0, queue->length);
	use = queue->first->use;
	queue->first = NULL;
	queue->used = true;
	if (use)
		kbi_count(use->disk, KBI_STAT_MESSAGES, 1);
	/* If disks share the queue, kbi_io_send() counts each request. */
	if (!queue->volumes)
		kbi_count(use->disk, KBI_STAT_REQUESTS, queue->gathered);
	if (kbi_queue_live(queue) &&
	    dat_ep_post_send(queue->ep, 1, &seg, cookie,
			     DAT_COMPLETION_SUPPRESS_FLAG) != DAT_SUCCESS)
		kbi_queue_lost(queue, "cannot send");
}

/*
 * Return room for @len bytes in the current message; if they do not fit, post that message and
 * begin another one in the memory of @slot. Context: any.
 */
static void *kbi_message_room(struct kbi_queue *queue, struct kbi_slot *slot,
			      u32 len)
{
	void *to;

	lockdep_assert_held(&queue->lock);

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
 * kbi_io_commit() - post the message being put together
 * @queue: queue
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
 * @queue: queue; the caller has taken a credit
 * @slot: slot that is not busy; use, rq, inlined and bound are set
 * @request: request; magic and id are filled in here
 * @data: inline data, or NULL for the data of the slot's rq
 * @inlined: bytes of inline data
 * @last: false if kbi_io_commit() or another request follows at once
 *
 * Append the request to the message being put together, which is posted with
 * the last request that the block layer has at hand: a message costs more than
 * its contents. The slot is finished later, or the connection is lost. A
 * message uses the memory of its first slot, which is not reused before that
 * slot's reply, and by then all of the message has arrived.
 *
 * Context: Process context.
 */
void kbi_io_send(struct kbi_queue *queue, struct kbi_slot *slot,
		 struct kblk_request *request, const void *data, u32 inlined,
		 bool last)
{
	unsigned int n = kbi_slot_number(queue, slot);
	void *to;

	/*
	 * The round in the upper half makes a late reply to an earlier use of
	 * the slot fail the check of kbi_reply_slot().
	 */
	slot->id = (((slot->id >> 32) + 1) << 32) | n;
	slot->replied = false;
	if (queue->volumes && slot->use)
		kbi_count(slot->use->disk, KBI_STAT_REQUESTS, 1);
	request->magic = cpu_to_le32(KBLK_MAGIC);
	request->id = cpu_to_le64(slot->id);
	if (READ_ONCE(queue->wants)) {
		WRITE_ONCE(queue->wants, false);
		if (queue->credits_move)
			request->flags |= KBLK_WANTS;
	}
	spin_lock(&queue->lock);
	to = kbi_message_room(queue, slot, sizeof(*request) + inlined);
	memcpy(to, request, sizeof(*request));
	if (inlined && data)
		memcpy(to + sizeof(*request), data, inlined);
	else if (inlined)
		kbi_copy_out(slot->rq, to + sizeof(*request));
	/*
	 * Once the bit is set an upcall may finish the slot, even before the
	 * post: a malicious target may reply to a request that it has not
	 * received.
	 */
	atomic_set(&slot->pending, 1);
	/* kbi_slot_is_busy() sees the slot if it sees the bit. litmus: blk-busy */
	smp_mb__before_atomic();
	set_bit(KBI_SLOT_BUSY, &slot->flags);
	if (last || !queue->requests_batch)
		kbi_send_gathered(queue);
	spin_unlock(&queue->lock);
}

/* Bind the LMR of @slot to the pages of its request, and enter key and address in @request. */
static DAT_RETURN kbi_io_bind(struct kbi_queue *queue, struct kbi_slot *slot,
			      struct kblk_request *request)
{
	struct kbi_link *link = queue->link;
	DAT_REGION_DESCRIPTION region = { .for_platform = slot->sg };
	DAT_DTO_COOKIE cookie = { .as_64 = kbi_slot_number(queue, slot) };
	bool write = request->opcode == KBLK_OP_WRITE;
	struct scatterlist *sg;
	DAT_LMR_TRIPLET seg;
	u64 pages = 0;
	DAT_RETURN ret;
	int i, n;

	n = kblk_map_sg(slot->rq, slot->sg);
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
	if (!link->sync || !write)
		return ret;
	seg.virtual_address = sg_phys(slot->sg);
	seg.segment_length = le32_to_cpu(request->length);
	seg.lmr_context = slot->lmr_context;
	/* The device has the pages, so the request is outstanding, but it is not sent. */
	if (dat_lmr_sync_rdma_read(link->ia, &seg, 1) != DAT_SUCCESS)
		kbi_queue_lost(queue, "cannot make data visible");
	return ret;
}

/*
 * Invalidate the LMR of @slot, because the reply has not done so. kbi_req_upcall() drops the
 * count of slot->pending that is taken here. Return false if the data cannot be made visible.
 */
static bool kbi_io_unbind(struct kbi_queue *queue, struct kbi_slot *slot)
{
	DAT_DTO_COOKIE cookie = { .as_64 = kbi_slot_number(queue, slot) };
	struct kbi_link *link = queue->link;
	DAT_LMR_TRIPLET seg = {
		.virtual_address = sg_phys(slot->sg),
		.segment_length = blk_rq_bytes(slot->rq),
		.lmr_context = slot->lmr_context,
	};

	if (link->sync && rq_data_dir(slot->rq) == READ &&
	    dat_lmr_sync_rdma_write(link->ia, &seg, 1) != DAT_SUCCESS)
		return false;
	slot->bound = false;
	atomic_inc(&slot->pending);
	if (dat_lmr_invalidate(slot->lmr, queue->ep, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG) != DAT_SUCCESS)
		kbi_queue_lost(queue, "cannot take memory back");
	return true;
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

/* Translate @rq to @request; return false if the protocol has no such request. */
static bool kbi_io_translate(struct kbi_use *use, struct request *rq,
			     struct kblk_request *request)
{
	memset(request, 0, sizeof(*request));
	request->namespace = kbi_namespace(use);
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
		if (rq->cmd_flags & REQ_NOUNMAP && use->queue->nounmap)
			request->flags |= KBLK_NOUNMAP;
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
 * @use: use of the queue; the disk is live
 * @rq: request
 * @last: as for kbi_io_send(), whatever is returned
 *
 * Context: Process context.
 * Return: BLK_STS_OK if @rq will be completed, BLK_STS_RESOURCE to try again
 * later, BLK_STS_NOTSUPP if the protocol has no such request.
 */
blk_status_t kbi_io_queue(struct kbi_use *use, struct request *rq, bool last)
{
	struct kbi_queue *queue = use->queue;
	struct kblk_request request;
	u32 length = blk_rq_bytes(rq);
	struct kbi_slot *slot;
	u32 inlined = 0;
	DAT_RETURN ret;

	if (!kbi_io_translate(use, rq, &request))
		return BLK_STS_NOTSUPP;
	slot = kbi_slot_take(use);
	if (!slot)
		return BLK_STS_RESOURCE;
	blk_mq_start_request(rq);
	slot->use = use;
	slot->rq = rq;
	slot->inlined = 0;
	slot->bound = false;
	if (request.opcode != KBLK_OP_READ && request.opcode != KBLK_OP_WRITE) {
		/* Flushes, discards and the like carry no data. */
	} else if (length <= KBLK_INLINE) {
		request.flags |= KBLK_INLINED;
		kbi_count(use->disk, KBI_STAT_INLINE, 1);
		if (request.opcode == KBLK_OP_READ)
			slot->inlined = length;
		else
			inlined = length;
	} else {
		ret = kbi_io_bind(queue, slot, &request);
		if (ret != DAT_SUCCESS) {
			kbi_slot_untake(use, slot);
			/*
			 * Transient: the queue is full, or the last use of the LMR has not
			 * completed yet.
			 */
			if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES &&
			    DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
				kbi_queue_lost(queue, kblk_strerror(ret));
			return BLK_STS_RESOURCE;
		}
	}
	kbi_io_send(queue, slot, &request, NULL, inlined, last);
	return BLK_STS_OK;
}

/* ---- Receiving ----------------------------------------------------------- */

/*
 * Return the slot that @reply answers, or NULL if the reply is invalid. @length bytes of the
 * message are left.
 */
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
	    (reply->size && !queue->sizes) ||
	    lower_32_bits(id) >= queue->nslots)
		return NULL;
	slot = &queue->slots[lower_32_bits(id)];
	if (!kbi_slot_is_busy(slot) || slot->id != id ||
	    slot->replied)
		return NULL;
	inlined = le16_to_cpu(reply->status) == KBLK_OK ? slot->inlined : 0;
	if (le32_to_cpu(reply->length) != inlined ||
	    length - sizeof(*reply) < inlined)
		return NULL;
	return slot;
}

/*
 * Add the @n credits that @replies replies have brought, up to the number of slots. Only
 * receive upcalls add credits, and they are serialised, so the number can only have dropped
 * since atomic_read(). Pairs with kbi_credit_get(): whoever takes a credit finds its receive
 * posted. litmus: blk-credit
 */
static void kbi_credit(struct kbi_queue *queue, unsigned int n,
		       unsigned int replies)
{
	int room = queue->nslots - atomic_read(&queue->credits);

	if (n != replies)
		atomic_add((int)(n - replies), &queue->window);
	if (room > 0)
		(void)atomic_fetch_add_release(min_t(unsigned int, n, room), &queue->credits);
}

/*
 * Handle the exposed memory of @slot: note its remote invalidation, or invalidate it locally.
 * Return false if the reply invalidated another key, or none although it should, or if the data
 * cannot be made visible.
 */
static bool kbi_reply_memory(struct kbi_queue *queue, struct kbi_slot *slot,
			     const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	if (dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE) {
		if (!slot->bound || dto->rmr_context != slot->rmr_context)
			return false;
		slot->bound = false;
		kbi_count(slot->use->disk, KBI_STAT_INVALIDATED, 1);
	} else if (slot->bound) {
		if (queue->invalidate)
			return false;
		return kbi_io_unbind(queue, slot);
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

/* Schedule kbi_resize_work() if @size is not the size that was last told. */
static void kbi_reply_size(struct kbi_disk *disk, __le64 size)
{
	if (!size || size == READ_ONCE(disk->told_size) ||
	    kbi_state(disk) != KBI_LIVE)
		return;
	WRITE_ONCE(disk->told_size, size);
	kbi_resize_later(disk);
}

/*
 * Take the replies of a message: store their slots in @slots and the sum of their credits in
 * @credits. Return the number of replies, or 0 if one is invalid.
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
		/* A reply for a slot with bound memory is never batched. */
		if (part != dto->transfered_length &&
		    (!queue->batch || slot->bound || n == KBLK_BATCH_MAX))
			return 0;
		if (!kbi_reply_memory(queue, slot, dto))
			return 0;
		slot->status = le16_to_cpu(reply->status);
		slot->replied = true;
		kbi_reply_data(slot, reply + 1, part - sizeof(*reply));
		*credits += le16_to_cpu(reply->credits);
		if (slot->use)
			kbi_reply_size(slot->use->disk, reply->size);
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
	/* If disks share the queue, kbi_slot_finish() counts each reply. */
	if (queue->volumes)
		WRITE_ONCE(queue->heard, jiffies);
	else
		kbi_count(slots[0]->use->disk, KBI_STAT_REPLIES, n);
	/* Post before kbi_credit() allows new requests, whose replies need a receive. */
	if (kbi_reply_post(queue, dto->user_cookie.as_64) != DAT_SUCCESS) {
		kbi_queue_lost(queue, "cannot post a receive");
		return;
	}
	kbi_credit(queue, credits, n);
	for (i = 0; i < n; i++)
		kbi_slot_put(queue, slots[i]);
}

/* Upcall of the receive EVD. Context: softirq. */
void kbi_recv_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct kbi_queue *queue = data;
	DAT_EVENT ignored;

	/* kbi_disk_cancel() completes the requests of a dead queue. */
	if (atomic_read(&queue->state) == KBI_QUEUE_DEAD)
		return;
	if (dto->status == DAT_DTO_SUCCESS)
		kbi_received(queue, dto);
	else if (dto->status != DAT_DTO_ERR_FLUSHED)
		kbi_queue_lost(queue, "a receive failed");
	else
		/*
		 * A failed Send may be the reason. Dequeue from req_evd, which may have no
		 * upcall, so that kDAPL sees the error and raises the connection event.
		 */
		while (dat_evd_dequeue(queue->req_evd, &ignored) == DAT_SUCCESS)
			;
}

/*
 * Upcall of the request EVD: an invalidation has completed. Enabled only
 * without remote invalidation, see kbi_queue_connect(). Context: softirq.
 */
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
