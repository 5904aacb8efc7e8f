// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Admin requests, which the driver itself makes: CHALLENGE, ATTACH, DETACH, IDENTIFY, FENCE,
 * LIST; and KEEPALIVE, see ini_keepalive.c.
 *
 * Entry points: kbi_attach(), kbi_detach(), kbi_identify(), kbi_list() and kbi_fence().
 *
 * Admin requests use the first slot of a queue, which kbi_slot_take() never takes, one at a
 * time: link->mutex serialises the callers. kbi_admin() waits for the reply; a keep-alive is
 * sent without waiting, and the next one checks it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <linux/log2.h>
#include <linux/printk.h>
#include <linux/random.h>
#include "ini.h"
#include "ini_admin.h"
#include "status.h"

/*
 * Set the queue that is waited for to @queue, or to none if NULL, so that kbi_link_error()
 * ends the wait if the link is live. Return the former one.
 */
static struct kbi_queue *kbi_wait_begin(struct kbi_link *link,
					struct kbi_queue *queue)
{
	struct kbi_queue *was = link->adding;

	WRITE_ONCE(link->adding, queue);
	/* Pairs with kbi_link_error(): state first, then ->adding. litmus: blk-wait */
	smp_mb();
	return was;
}

/*
 * Wait until the admin slot of @queue is free, or the connection lost, or connect_timeout_ms
 * have passed. Return what is left of the time.
 */
static unsigned long kbi_admin_wait(struct kbi_queue *queue)
{
	struct kbi_link *link = queue->link;
	unsigned long left = msecs_to_jiffies(link->params.connect_timeout_ms);
	struct kbi_slot *slot = kbi_admin_slot(queue);
	struct kbi_queue *was = kbi_wait_begin(link, queue);

	/*
	 * kbi_queue_lost() sets the state before it completes ->admin: this check sees a loss
	 * before it, and a later one ends the wait. A keep-alive whose slot was free already
	 * may also complete ->admin, hence the loop.
	 */
	while (kbi_slot_is_busy(slot) && kbi_queue_live(queue) &&
	       kbi_link_state(link) != KBI_LINK_LOST && left)
		left = kbi_wait(queue, &queue->admin, left);
	kbi_wait_begin(link, was);
	return left;
}

/*
 * Send @request with @out_len bytes of @out, and wait for the reply, whose @in_len bytes go to
 * slot->into. The caller has set slot->into and taken a credit. Return 0 if the reply has
 * come, and -EBUSY if it may come after those to other requests; otherwise the connection is
 * lost.
 */
static int kbi_ask(struct kbi_use *use, struct kblk_request *request,
		   const void *out, u32 out_len, u32 in_len)
{
	struct kbi_queue *queue = use->queue;
	struct kbi_slot *slot = kbi_admin_slot(queue);
	unsigned long left;

	reinit_completion(&queue->admin);
	/* A late reply may come when the disk is gone. */
	slot->use = queue->volumes ? NULL : use;
	slot->rq = NULL;
	slot->inlined = in_len;
	request->length = cpu_to_le32(out_len ?: in_len);
	if (request->length)
		request->flags = KBLK_INLINED;
	queue->asked = jiffies;
	kbi_io_send(queue, slot, request, out, out_len, true);
	left = kbi_admin_wait(queue);
	if (!kbi_slot_is_busy(slot))
		return 0;
	/*
	 * The target may be busy with requests that came first, as in kbi_keepalive(). The
	 * slot stays busy until the reply comes.
	 */
	if (!queue->volumes && kbi_queue_live(queue) && kbi_slots_waiting(queue))
		return -EBUSY;
	kbi_queue_lost(queue, "the target does not answer");
	return left ? -ENOTCONN : -ETIMEDOUT;
}

/*
 * Send @request when the slot is free, and copy @in_len bytes of the reply's data to @in.
 * Return the status of the reply, or a negative error number: -EAGAIN if other requests have
 * all credits; after any other error the connection is of no use. Context: process.
 */
static int kbi_admin(struct kbi_use *use, struct kblk_request *request,
		     const void *out, u32 out_len, void *in, u32 in_len)
{
	struct kbi_queue *queue = use->queue;
	struct kbi_slot *slot = kbi_admin_slot(queue);
	int err;

	lockdep_assert_held(&queue->link->mutex);

	if (!kbi_queue_live(queue))
		return -ENOTCONN;
	/* A keep-alive may be under way while the link is live. */
	kbi_admin_wait(queue);
	if (kbi_slot_is_busy(slot)) {
		kbi_queue_lost(queue, "the target does not answer");
		return -ETIMEDOUT;
	}
	if (!kbi_credit_get(queue, 0))
		return queue->volumes ? -EAGAIN : -EPROTO;
	/* Not to @in: a late reply must not be copied to the caller's stack. */
	slot->into = queue->answer;
	err = kbi_ask(use, request, out, out_len, in_len);
	if (err)
		return err;
	slot->into = NULL;
	if (slot->status == KBLK_OK && in_len)
		memcpy(in, queue->answer, in_len);
	return slot->status;
}

/* ATTACH as sent with KBLK_FEATURE_AUTH */
struct kbi_attach {
	struct kblk_attach attach;
	struct kblk_proof proof;
} __packed;

/* Write the proof over @of with the secret of @link to @proof. Return 0 or -EACCES. */
static int kbi_prove(struct kbi_link *link, const struct kblk_proof_of *of,
		     u8 *proof)
{
	const struct kbi_params *params = &link->params;
	int err = kblk_secret_prove(&params->secret, &kbi_hmac, of, proof);

	if (!err)
		return 0;
	pr_err("%s: client %s: its %s cannot be used: %s\n", link->name, params->client,
	       kblk_secret_name(&params->secret), kblk_secret_text(err));
	return -EACCES;
}

/*
 * Ask the target for a challenge, fill in @of, and write our proof over it to @attach. Return
 * as kbi_admin() does, or -EACCES.
 */
static int kbi_meet_challenge(struct kbi_use *use, struct kbi_attach *attach,
			      struct kblk_proof_of *of)
{
	struct kbi_link *link = use->queue->link;
	struct kblk_request challenge = { .opcode = KBLK_OP_CHALLENGE };
	int ret;

	*of = (struct kblk_proof_of) {
		.who = "initiator",
		.session = cpu_to_le64(link->session),
		.epoch = cpu_to_le32(link->epoch),
		.queue = cpu_to_le16(use->queue->index),
		.attach = attach->attach,
	};
	ret = kbi_admin(use, &challenge, NULL, 0, of->challenge,
			sizeof(of->challenge));
	if (ret)
		return ret;
	get_random_bytes(of->nonce, sizeof(of->nonce));
	memcpy(attach->proof.nonce, of->nonce, sizeof(of->nonce));
	return kbi_prove(link, of, attach->proof.proof);
}

/*
 * Attach with a proof of the secret, and check the proof of the target. Return
 * as kbi_admin() does, or -EACCES.
 */
static int kbi_attach_proven(struct kbi_use *use, struct kbi_attach *attach)
{
	struct kbi_link *link = use->queue->link;
	struct kblk_request request = { .opcode = KBLK_OP_ATTACH };
	struct kblk_proof_of of;
	u8 proof[KBLK_PROOF_LEN];
	int ret;

	ret = kbi_meet_challenge(use, attach, &of);
	if (ret)
		return ret;
	ret = kbi_admin(use, &request, attach, sizeof(*attach), proof,
			sizeof(proof));
	if (ret)
		return ret;
	strscpy_pad(of.who, "target", sizeof(of.who));
	ret = kbi_prove(link, &of, attach->proof.proof);
	if (ret)
		return ret;
	if (!crypto_memneq(proof, attach->proof.proof, sizeof(proof)))
		return KBLK_OK;
	pr_err("%s: the target does not know the secret\n", link->name);
	return -EACCES;
}

/* Detach @use if the target may still have it attached. Return whether this is so. */
static bool kbi_was_attached(struct kbi_use *use)
{
	if (!use->queue->volumes)
		return false;
	pr_info_ratelimited("the target has yet to detach the volume\n");
	kbi_detach(use);
	return true;
}

/* Attach a queue to the volume of a disk. Return 0 or an error number. */
int kbi_attach(struct kbi_use *use)
{
	const char *name = config_item_name(&use->disk->item);
	const struct kbi_params *params = &use->disk->params;
	struct kblk_request request = { .opcode = KBLK_OP_ATTACH };
	struct kbi_attach attach = {
		.attach.namespace = cpu_to_le32(params->namespace),
		.attach.keepalive_ms = cpu_to_le32(params->keepalive_ms),
	};
	int ret;

	if (use->queue->volumes) {
		ret = kbi_slots_reserve(use->queue);
		if (ret)
			return ret;
	}
	strscpy(attach.attach.client, params->client, sizeof(attach.attach.client));
	strscpy(attach.attach.subsystem, params->subsystem,
		sizeof(attach.attach.subsystem));
	if (use->queue->hosts)
		export_uuid(attach.attach.host, &kbi_host);
	if (kblk_has_secret(&params->secret))
		ret = kbi_attach_proven(use, &attach);
	else
		ret = kbi_admin(use, &request, &attach.attach,
				sizeof(attach.attach), NULL, 0);
	switch (ret) {
	case KBLK_OK:
		return 0;
	case KBLK_ERR_DENIED:
		pr_err("%s: the target does not know client %s for %s, or wants a secret\n",
		       name, params->client, params->subsystem);
		return -EACCES;
	case KBLK_ERR_PROOF:
		pr_err("%s: the target knows another secret of client %s, or none\n", name,
		       params->client);
		return -EACCES;
	case KBLK_ERR_NO_VOLUME:
		pr_err("%s: the target has no %s, volume %u\n", name, params->subsystem,
		       params->namespace);
		return -ENOENT;
	case KBLK_ERR_DRAINING:
		pr_info_ratelimited("%s: the target still ends connections of the disk\n",
				    name);
		return -EAGAIN;
	case KBLK_ERR_BUSY:
		pr_info_ratelimited("%s: the target has no credit, memory or further connection to spare\n",
				    name);
		return -EAGAIN;
	case KBLK_ERR_INVALID:
		if (kbi_was_attached(use))
			return -EAGAIN;
		fallthrough;
	default:
		if (ret > 0)
			pr_err("%s: the target refuses to attach: %s\n", name,
			       kblk_status_text(ret));
		return ret < 0 ? ret : -EPROTO;
	}
}

/* Detach a queue from the volume of a disk, if disks may share the queue. */
void kbi_detach(struct kbi_use *use)
{
	struct kblk_request request = {
		.opcode = KBLK_OP_DETACH,
		.namespace = kbi_namespace(use),
	};
	int ret;

	if (!use->queue->volumes || !kbi_queue_live(use->queue))
		return;
	ret = kbi_admin(use, &request, NULL, 0, NULL, 0);
	/* Without a credit the volume stays attached until kbi_was_attached() detaches it. */
	if (ret != KBLK_OK && ret != KBLK_ERR_NOT_ATTACHED && ret != -EAGAIN)
		kbi_queue_lost(use->queue, "the target does not detach a volume");
}

static bool kbi_block_size_ok(u32 size, u32 min, u32 max)
{
	return is_power_of_2(size) && size >= min && size <= max;
}

/* Is @bytes a hint for a volume with blocks of @block bytes? */
static bool kbi_hint_ok(u32 bytes, u32 block)
{
	return bytes <= KBLK_HINT_MAX && !(bytes & (block - 1));
}

/* Check the hints of @identify, which targets without KBLK_FEATURE_HINTS leave 0. */
static bool kbi_hints_ok(const struct kbi_queue *queue, const struct kblk_identify *identify)
{
	u32 block = le32_to_cpu(identify->block_size);
	bool told = queue->welcome.features & cpu_to_le32(KBLK_FEATURE_HINTS);

	return !identify->io_min != told && (told || !identify->io_opt) &&
	       kbi_hint_ok(le32_to_cpu(identify->io_min), block) &&
	       kbi_hint_ok(le32_to_cpu(identify->io_opt), block);
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
	    !kbi_hints_ok(queue, identify))
		return -EPROTO;
	return 0;
}

/* Ask the target for a description of the volume and check it. */
int kbi_identify(struct kbi_use *use, struct kblk_identify *identify)
{
	struct kblk_request request = {
		.opcode = KBLK_OP_IDENTIFY,
		.namespace = kbi_namespace(use),
	};
	int ret;

	ret = kbi_admin(use, &request, NULL, 0, identify, sizeof(*identify));
	if (ret)
		return ret < 0 ? ret : -EPROTO;
	ret = kbi_identify_check(use->queue, identify);
	if (ret)
		pr_err("%s: the target describes an impossible volume\n",
		       config_item_name(&use->disk->item));
	return ret;
}

/*
 * Ask the target for volume @n, from 0, of those that the client may attach to. Return 0 or an
 * error number, -ENOENT if there are no more.
 */
int kbi_list(struct kbi_use *use, u64 n, struct kblk_listed *listed)
{
	const struct kbi_params *params = &use->disk->params;
	struct kblk_request request = { .opcode = KBLK_OP_LIST, .offset = cpu_to_le64(n) };
	struct kbi_attach attach = {};
	size_t len = sizeof(attach.attach);
	struct kblk_proof_of of;
	int ret = 0;

	strscpy(attach.attach.client, params->client, sizeof(attach.attach.client));
	if (kblk_has_secret(&params->secret)) {
		ret = kbi_meet_challenge(use, &attach, &of);
		len = sizeof(attach);
	}
	if (!ret)
		ret = kbi_admin(use, &request, &attach, len, listed, sizeof(*listed));
	if (ret == KBLK_ERR_NO_VOLUME)
		return -ENOENT;
	if (ret == KBLK_ERR_DENIED || ret == KBLK_ERR_PROOF)
		return -EACCES;
	if (ret)
		return ret < 0 ? ret : -EPROTO;
	return strnlen(listed->subsystem, KBLK_NAME_LEN) < KBLK_NAME_LEN ? 0 : -EPROTO;
}

/*
 * Have the target end the connections of the session in @lost. Return 0 if they have ended,
 * -EAGAIN while the target finishes their requests, -EBUSY if there is another admin request,
 * no credit or no reply yet, or another error number. Context: process.
 */
int kbi_fence(struct kbi_use *use, const struct kbi_lost *lost)
{
	struct kbi_queue *queue = use->queue;
	struct kblk_request request = {
		.opcode = KBLK_OP_FENCE,
		.namespace = kbi_namespace(use),
	};
	struct kbi_slot *slot = kbi_admin_slot(queue);
	struct kblk_fence fence = {
		.session = cpu_to_le64(lost->session),
		.epoch = cpu_to_le32(lost->epoch),
	};
	int err;

	lockdep_assert_held(&queue->link->mutex);

	if (!kbi_queue_live(queue))
		return -ENOTCONN;
	if (kbi_slot_is_busy(slot) && kbi_is_overdue(queue)) {
		kbi_queue_lost(queue, "the target does not answer");
		return -ETIMEDOUT;
	}
	if (kbi_slot_is_busy(slot) || !kbi_credit_get(queue, 0))
		return -EBUSY;
	err = kbi_ask(use, &request, &fence, sizeof(fence), 0);
	if (err)
		return err;
	if (slot->status == KBLK_OK) {
		kbi_count(use->disk, KBI_STAT_FENCES, 1);
		return 0;
	}
	if (slot->status == KBLK_ERR_DRAINING)
		return -EAGAIN;
	if (slot->status == KBLK_ERR_NOT_ATTACHED && queue->volumes)
		kbi_disk_detached(use->disk);
	else
		kbi_queue_lost(queue, "the target does not fence");
	return -EPROTO;
}
