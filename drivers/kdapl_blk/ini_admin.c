// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Requests of the driver itself: CHALLENGE, ATTACH, IDENTIFY, FENCE, KEEPALIVE.
 *
 * Entry points: kbi_attach() and kbi_identify() while the connections are made,
 * kbi_keepalive_work() while the disk is live, kbi_fence() in either case, kbi_wait()
 * for those and for a connection.
 *
 * They use the first slot of a queue, which kbi_slot_get() leaves alone, one
 * at a time: disk->mutex serialises their callers. kbi_admin() waits for the
 * reply; a keep-alive is sent without waiting, and the next one checks it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <linux/log2.h>
#include <linux/printk.h>
#include <linux/random.h>
#include "ini.h"

/* Credits that a queue keeps when it is idle */
#define KBI_IDLE_CREDITS	2

static struct kbi_slot *kbi_admin_slot(struct kbi_queue *queue)
{
	return &queue->slots[0];
}

/*
 * Send @request with @out_len bytes of @out, and wait for the reply. The caller
 * has set slot->into and slot->inlined, and taken a credit. Return 0 if the
 * reply has come, and -EBUSY if it may come after those to other requests;
 * otherwise the connection is lost.
 */
static int kbi_ask(struct kbi_queue *queue, struct kblk_request *request,
		   const void *out, u32 out_len, u32 in_len)
{
	unsigned long left =
		msecs_to_jiffies(queue->disk->params.connect_timeout_ms);
	struct kbi_slot *slot = kbi_admin_slot(queue);

	reinit_completion(&queue->admin);
	slot->rq = NULL;
	slot->inlined = in_len;
	request->flags = KBLK_INLINED;
	request->length = cpu_to_le32(out_len ?: in_len);
	queue->asked = jiffies;
	kbi_io_send(queue, slot, request, out, out_len, true);
	/*
	 * kbi_queue_lost() sets the state before it completes ->admin: a loss
	 * before this check is seen here, a later one ends the wait. So may the
	 * end of a keep-alive whose slot was free already, hence the loop.
	 */
	while (test_bit(KBI_SLOT_BUSY, &slot->flags) && kbi_queue_live(queue) &&
	       left)
		left = kbi_wait(queue, &queue->admin, left);
	if (!test_bit(KBI_SLOT_BUSY, &slot->flags))
		return 0;
	/*
	 * The target may be busy with requests that came first, as in
	 * kbi_keepalive(). The slot is busy until the reply comes.
	 */
	if (kbi_queue_live(queue) && queue->disk->gendisk && kbi_disk_waits(queue))
		return -EBUSY;
	kbi_queue_lost(queue, "the target does not answer");
	return left ? -ENOTCONN : -ETIMEDOUT;
}

/*
 * Ask on a connection that is being made, for @in_len bytes that go to @in.
 * Return the status of the reply, or a negative error number. Context: process.
 */
static int kbi_admin(struct kbi_queue *queue, struct kblk_request *request,
		     const void *out, u32 out_len, void *in, u32 in_len)
{
	struct kbi_slot *slot = kbi_admin_slot(queue);
	int err;

	lockdep_assert_held(&queue->disk->mutex);

	if (!kbi_credit_get(queue, 0))
		return -EPROTO;
	slot->into = in;
	err = kbi_ask(queue, request, out, out_len, in_len);
	if (err) {
		/*
		 * A late reply would be copied to @in, on the caller's stack.
		 * No upcall runs after kbi_queue_stop().
		 */
		kbi_queue_stop(queue);
		return err;
	}
	slot->into = NULL;
	return slot->status;
}

/* ATTACH as sent with KBLK_FEATURE_AUTH */
struct kbi_attach {
	struct kblk_attach attach;
	struct kblk_proof proof;
} __packed;

/* Write the proof of @of with the disk's secret to @proof. Return 0 or -EACCES. */
static int kbi_prove(struct kbi_queue *queue, const struct kblk_proof_of *of,
		     u8 *proof)
{
	const struct kbi_params *params = &queue->disk->params;
	int err = kblk_secret_prove(&params->secret, &kbi_hmac, of, proof);

	if (!err)
		return 0;
	pr_err("client %s: its %s cannot be used, error %d\n", params->client,
	       kblk_secret_name(&params->secret), err);
	return -EACCES;
}

/*
 * Attach with a proof of the secret, and check the proof of the target. Return
 * as kbi_admin() does, or -EACCES.
 */
static int kbi_attach_proven(struct kbi_queue *queue, struct kbi_attach *attach)
{
	struct kblk_request challenge = { .opcode = KBLK_OP_CHALLENGE };
	struct kblk_request request = { .opcode = KBLK_OP_ATTACH };
	struct kblk_proof_of of = {
		.who = "initiator",
		.session = cpu_to_le64(queue->disk->session),
		.epoch = cpu_to_le32(queue->disk->epoch),
		.queue = cpu_to_le16(queue->index),
		.attach = attach->attach,
	};
	u8 proof[KBLK_PROOF_LEN];
	int ret;

	ret = kbi_admin(queue, &challenge, NULL, 0, of.challenge,
			sizeof(of.challenge));
	if (ret)
		return ret;
	get_random_bytes(of.nonce, sizeof(of.nonce));
	memcpy(attach->proof.nonce, of.nonce, sizeof(of.nonce));
	ret = kbi_prove(queue, &of, attach->proof.proof);
	if (ret)
		return ret;
	ret = kbi_admin(queue, &request, attach, sizeof(*attach), proof,
			sizeof(proof));
	if (ret)
		return ret;
	strscpy_pad(of.who, "target", sizeof(of.who));
	ret = kbi_prove(queue, &of, attach->proof.proof);
	if (ret)
		return ret;
	if (!crypto_memneq(proof, attach->proof.proof, sizeof(proof)))
		return KBLK_OK;
	pr_err("the target does not know the secret\n");
	return -EACCES;
}

/* Attach @queue to the volume of its disk. Return 0 or an error number. */
int kbi_attach(struct kbi_queue *queue)
{
	const struct kbi_params *params = &queue->disk->params;
	struct kblk_request request = { .opcode = KBLK_OP_ATTACH };
	struct kbi_attach attach = {
		.attach.namespace = cpu_to_le32(params->namespace),
		.attach.keepalive_ms = cpu_to_le32(params->keepalive_ms),
	};
	int ret;

	strscpy(attach.attach.client, params->client,
		sizeof(attach.attach.client));
	strscpy(attach.attach.subsystem, params->subsystem,
		sizeof(attach.attach.subsystem));
	if (queue->hosts)
		export_uuid(attach.attach.host, &kbi_host);
	if (kblk_has_secret(&params->secret))
		ret = kbi_attach_proven(queue, &attach);
	else
		ret = kbi_admin(queue, &request, &attach.attach,
				sizeof(attach.attach), NULL, 0);
	switch (ret) {
	case KBLK_OK:
		return 0;
	case KBLK_ERR_DENIED:
		pr_err("the target does not know client %s for %s\n",
		       params->client, params->subsystem);
		return -EACCES;
	case KBLK_ERR_PROOF:
		pr_err("the target knows another secret of client %s, or none\n",
		       params->client);
		return -EACCES;
	case KBLK_ERR_NO_VOLUME:
		pr_err("the target has no %s, volume %u\n", params->subsystem,
		       params->namespace);
		return -ENOENT;
	case KBLK_ERR_DRAINING:
		pr_info("the target still ends connections of the disk\n");
		return -EAGAIN;
	default:
		if (ret > 0)
			pr_err("the target refuses to attach, status %d\n", ret);
		return ret < 0 ? ret : -EPROTO;
	}
}

static bool kbi_block_size_ok(u32 size, u32 min, u32 max)
{
	return is_power_of_2(size) && size >= min && size <= max;
}

static int kbi_identify_check(const struct kbi_queue *queue,
			      const struct kblk_identify *identify)
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
	    kblk_is_zero(identify->uuid, sizeof(identify->uuid)) ==
	    queue->identity ||
	    !kblk_is_zero(identify->reserved, sizeof(identify->reserved)))
		return -EPROTO;
	return 0;
}

/* Ask the target for a description of the volume and check it. */
int kbi_identify(struct kbi_queue *queue, struct kblk_identify *identify)
{
	struct kblk_request request = { .opcode = KBLK_OP_IDENTIFY };
	int ret;

	ret = kbi_admin(queue, &request, NULL, 0, identify, sizeof(*identify));
	if (ret)
		return ret < 0 ? ret : -EPROTO;
	ret = kbi_identify_check(queue, identify);
	if (ret)
		pr_err("the target describes an impossible volume\n");
	return ret;
}

/*
 * Return whether the admin request of @queue, whose slot is busy, has had as much time
 * as the requests that came before it, all of which are over by then.
 */
static bool kbi_is_overdue(struct kbi_queue *queue)
{
	return time_after(jiffies, queue->asked +
			  msecs_to_jiffies(queue->disk->params.timeout_ms));
}

/*
 * Have the target end the connections of the session in @lost. Return 0 if it
 * has, -EAGAIN if it has yet to finish their requests, -EBUSY if there is
 * another admin request, no credit or no reply yet, or another error number if the
 * connection is lost. Context: process.
 */
int kbi_fence(struct kbi_queue *queue, const struct kbi_lost *lost)
{
	struct kblk_request request = { .opcode = KBLK_OP_FENCE };
	struct kbi_slot *slot = kbi_admin_slot(queue);
	struct kblk_fence fence = {
		.session = cpu_to_le64(lost->session),
		.epoch = cpu_to_le32(lost->epoch),
	};
	int err;

	lockdep_assert_held(&queue->disk->mutex);

	if (!kbi_queue_live(queue))
		return -ENOTCONN;
	if (test_bit(KBI_SLOT_BUSY, &slot->flags) && kbi_is_overdue(queue)) {
		kbi_queue_lost(queue, "the target does not answer");
		return -ETIMEDOUT;
	}
	if (test_bit(KBI_SLOT_BUSY, &slot->flags) || !kbi_credit_get(queue, 0))
		return -EBUSY;
	err = kbi_ask(queue, &request, &fence, sizeof(fence), 0);
	if (err)
		return err;
	if (slot->status == KBLK_OK) {
		kbi_count(queue->disk, KBI_STAT_FENCES, 1);
		return 0;
	}
	if (slot->status == KBLK_ERR_DRAINING)
		return -EAGAIN;
	kbi_queue_lost(queue, "the target does not fence");
	return -EPROTO;
}

/*
 * Take the credits that an idle queue has no use for, to give them back: one is
 * for a request, another for the keep-alive that comes with it. Return their
 * number.
 */
static u16 kbi_spare_credits(struct kbi_queue *queue)
{
	int credits = atomic_read(&queue->credits);

	do {
		if (!queue->credits_move || credits <= KBI_IDLE_CREDITS)
			return 0;
	} while (!atomic_try_cmpxchg(&queue->credits, &credits,
				     KBI_IDLE_CREDITS));
	credits -= KBI_IDLE_CREDITS;
	atomic_sub(credits, &queue->window);
	return credits;
}

/*
 * @queue has no credit for a keep-alive. If requests are outstanding, their replies
 * or their timeout tell whether the target is alive. If there were none for a period
 * in which nothing was sent, no reply will bring a credit.
 */
static void kbi_without_credit(struct kbi_queue *queue)
{
	bool starved = !kbi_disk_waits(queue);

	if (starved && queue->starved)
		kbi_queue_lost(queue, "the target gives no credits");
	queue->starved = starved;
}

/*
 * Send a keep-alive on @queue if nothing was sent since the last one, and end
 * the connection if the last one was not answered.
 */
static void kbi_keepalive(struct kbi_queue *queue)
{
	struct kblk_request request = { .opcode = KBLK_OP_KEEPALIVE };
	struct kbi_slot *slot = kbi_admin_slot(queue);

	if (test_bit(KBI_SLOT_BUSY, &slot->flags)) {
		/*
		 * The target may be busy with requests that came first; the
		 * block layer's timeout covers them, but not those that were
		 * sent later and are outstanding now.
		 */
		if (!kbi_disk_waits(queue) || kbi_is_overdue(queue))
			kbi_queue_lost(queue, "the target does not answer");
		return;
	}
	if (queue->used) {
		queue->used = false;
		queue->starved = false;
		return;
	}
	if (!kbi_credit_get(queue, 0)) {
		kbi_without_credit(queue);
		return;
	}
	queue->starved = false;
	request.returned = cpu_to_le16(kbi_spare_credits(queue));
	slot->rq = NULL;
	slot->inlined = 0;
	queue->asked = jiffies;
	kbi_io_send(queue, slot, &request, NULL, 0, true);
	queue->used = false;
}

/*
 * Send the keep-alives that are due, on all queues in use but @but: a whole period
 * lies between two calls of kbi_keepalive(). Return the time until the next are due.
 */
static unsigned long kbi_keepalives(struct kbi_disk *disk,
				    const struct kbi_queue *but)
{
	unsigned long period = msecs_to_jiffies(disk->params.keepalive_ms);
	unsigned long left = disk->kept_alive + period - jiffies;
	unsigned int i;

	lockdep_assert_held(&disk->mutex);

	if ((long)left > 0)
		return left;
	disk->kept_alive = jiffies;
	for (i = 0; i < disk->nlive; i++)
		if (&disk->queues[i] != but)
			kbi_keepalive(&disk->queues[i]);
	return period;
}

/**
 * kbi_wait() - wait on behalf of a queue, and keep the others of the disk alive
 * @queue: queue that is being connected, or whose admin slot is in use
 * @done: what is waited for
 * @timeout: jiffies
 *
 * kbi_keepalive_work() needs disk->mutex, which is held meanwhile.
 *
 * Context: Process context, sleeps.
 * Return: 0 if @timeout has elapsed, otherwise what is left of it
 */
unsigned long kbi_wait(struct kbi_queue *queue, struct completion *done,
		       unsigned long timeout)
{
	struct kbi_disk *disk = queue->disk;
	unsigned long part, left = 0;

	lockdep_assert_held(&disk->mutex);

	while (timeout && !left) {
		part = timeout;
		if (disk->params.keepalive_ms && kbi_state(disk) == KBI_LIVE)
			part = min(part, kbi_keepalives(disk, queue));
		left = wait_for_completion_timeout(done, part);
		timeout -= part - left;
	}
	return timeout;
}

void kbi_keepalive_work(struct work_struct *work)
{
	struct kbi_disk *disk = container_of(to_delayed_work(work),
					     struct kbi_disk, keepalive_work);

	mutex_lock(&disk->mutex);
	if (kbi_state(disk) == KBI_LIVE)
		queue_delayed_work(kbi_wq, &disk->keepalive_work,
				   kbi_keepalives(disk, NULL));
	mutex_unlock(&disk->mutex);
}
