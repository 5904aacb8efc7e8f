// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which targets may claim a volume.
 *
 * Entry points: kbi_is_trusted() and kbi_vouch() when a disk is to be a path to a volume that
 * other disks have, kbi_vouched() when a target has been asked.
 *
 * A target may claim the UUID of another target's volume. As a path to that volume it would be
 * believed when it says that writes of other paths are done, or flushed. So its disk is
 * refused, unless the administrator has said which volume it is (*uuid*), the volume is at the
 * same address, or both targets have proven to know one secret; or the target of an existing
 * path knows the session that the new disk has with its own target.
 *
 * Locks: kbi_volumes_lock, see ini_volume.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/printk.h>
#include "ini.h"

/* Time that a target has to say whether it knows a session */
#define KBI_VOUCH_MS	3000U

/* Return whether targets of disks with @a and @b have proven to know the same secret. */
static bool kbi_same_secret(const struct kbi_params *a, const struct kbi_params *b)
{
	return kblk_has_secret(&a->secret) && !strcmp(a->client, b->client) &&
	       !strcmp(a->secret.text, b->secret.text) && a->secret.key == b->secret.key;
}

/*
 * Return whether @disk, whose target is @target, needs nobody to vouch for it: the
 * administrator has said which volume it is, or the address or the secret show that the volume
 * has this target already.
 */
bool kbi_is_trusted(struct kbi_disk *disk, struct kbi_volume *volume, const char *target)
{
	struct kbi_disk *other;
	struct kbi_lost *lost;

	lockdep_assert_held(&kbi_volumes_lock);

	if (uuid_equal(&disk->params.uuid, &volume->uuid) ||
	    uuid_equal(&disk->vouched, &volume->uuid))
		return true;
	list_for_each_entry(other, &volume->disks, volume_link)
		if (!strcmp(other->lost->target, target) ||
		    kbi_same_secret(&disk->params, &other->params))
			return true;
	list_for_each_entry(lost, &volume->lost, link)
		if (!lost->told && !strcmp(lost->target, target))
			return true;
	return false;
}

/*
 * Ask the target of a path to @volume to end the session of @disk, which only the target of
 * @disk knows. If the session is known there, both are the same target, or the target of @disk
 * is a client of the other one and could do as much harm anyway. Return -EREMCHG in that case,
 * as @disk has to connect anew, else another error number. kbi_volumes_lock is dropped
 * meanwhile.
 */
int kbi_vouch(struct kbi_disk *disk, struct kbi_volume *volume)
{
	struct kbi_link *link = disk->link;
	DECLARE_COMPLETION_ONSTACK(told);
	struct kbi_lost probe = {
		.session = link->session,
		.epoch = link->epoch,
		.told = &told,
	};
	/* A short time, as others wait for link->mutex, perhaps the path that is to ask. */
	unsigned int ms = min(link->params.connect_timeout_ms, KBI_VOUCH_MS);
	unsigned long until = jiffies + msecs_to_jiffies(ms);
	struct kbi_disk *other;
	bool over;

	lockdep_assert_held(&kbi_volumes_lock);

	list_for_each_entry(other, &volume->disks, volume_link)
		if (other->is_path)
			break;
	if (list_entry_is_head(other, &volume->disks, volume_link)) {
		pr_err("%s: another address has a volume with this UUID, and cannot be asked now; set uuid if it is the same\n",
		       config_item_name(&disk->item));
		return -EAGAIN;
	}
	probe.round = ++kbi_round;
	list_add(&probe.link, &volume->lost);
	volume->asking++;
	mod_delayed_work(kbi_wq, &other->fence_work, 0);
	mutex_unlock(&kbi_volumes_lock);
	while (time_before(jiffies, until) && kbi_link_state(link) != KBI_LINK_LOST &&
	       !READ_ONCE(disk->removing) && !kbi_wait(&link->queues[0], &told, HZ / 10))
		;
	mutex_lock(&kbi_volumes_lock);
	over = list_empty(&probe.link);
	list_del_init(&probe.link);
	volume->asking--;
	if (probe.known)
		disk->vouched = volume->uuid;
	else
		pr_err("%s: another address has a volume with this UUID, and %s\n",
		       config_item_name(&disk->item),
		       over ? "does not know of this one" : "does not answer");
	kbi_volume_put(volume);
	if (probe.known)
		return -EREMCHG;
	return over ? -EBUSY : -EAGAIN;
}

/* Note the answer of a target about the session in @was: @known if the target knew it. */
void kbi_vouched(struct kbi_disk *disk, const struct kbi_lost *was, bool known)
{
	struct kbi_lost *probe;

	mutex_lock(&kbi_volumes_lock);
	list_for_each_entry(probe, &disk->volume->lost, link) {
		if (probe->round != was->round)
			continue;
		probe->known = known;
		list_del_init(&probe->link);
		complete(probe->told);
		break;
	}
	mutex_unlock(&kbi_volumes_lock);
}
