// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Slots: memory and registrations for each request that may be outstanding.
 *
 * Entry points: kbi_slots_alloc() before connecting, kbi_slots_alloc_data()
 * when the target's limits are known, kbi_slots_release() when the connection
 * is down, kbi_slots_free() with the disk, kbi_reply_post().
 *
 * The queue owns its slots. A slot has a message to send, a message to receive,
 * and an LMR for the pages of a request with more than KBLK_INLINE bytes. The
 * memory outlives the connection, the registrations do not. disk->mutex
 * serialises all but kbi_reply_post().
 */
#include <linux/slab.h>
#include "ini.h"

/* Post the receive buffer of slot @n. Context: any. */
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&queue->slots[n].mem, KBI_REPLY_AT,
				       KBLK_REPLIES);
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	return dat_ep_post_recv(queue->ep, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/*
 * Make what connecting needs: receives are posted before the peer can send.
 * Memory of an earlier connection is used again.
 */
int kbi_slots_alloc(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int n = queue->nslots, i;
	int err = 0;

	if (!queue->slots)
		queue->slots = kvcalloc(n, sizeof(*queue->slots), GFP_KERNEL);
	if (!queue->slots)
		return -ENOMEM;
	for (i = 0; i < n && !err; i++) {
		err = kblk_buf_alloc(&queue->slots[i].mem, disk->ia, disk->pz,
				     KBI_REPLY_AT + KBLK_REPLIES);
		if (!err)
			err = kblk_errno(kbi_reply_post(queue, i));
	}
	return err;
}

/*
 * Return the pages of the longest transfer; one more, because a transfer may
 * begin anywhere in its first page.
 */
static unsigned int kbi_max_pages(struct kbi_disk *disk)
{
	return disk->max_transfer / PAGE_SIZE + 1;
}

/*
 * Make what depends on the target's limits. The last slot is for admin requests
 * and carries no data of the block layer.
 */
int kbi_slots_alloc_data(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int pages = kbi_max_pages(disk), i;
	struct kbi_slot *slot;
	DAT_RETURN ret;

	for (i = 0; i < queue->nslots - 1; i++) {
		slot = &queue->slots[i];
		if (!slot->sg)
			slot->sg = kvcalloc(pages, sizeof(*slot->sg),
					    GFP_KERNEL);
		if (!slot->sg)
			return -ENOMEM;
		sg_init_table(slot->sg, pages);
		ret = dat_lmr_allocate(disk->ia, disk->pz, pages,
				       DAT_LMR_SCOPE_ANY, &slot->lmr);
		if (ret != DAT_SUCCESS) {
			slot->lmr = NULL;
			return kblk_errno(ret);
		}
	}
	return 0;
}

/*
 * Free the registrations; the EP was freed, so nothing uses them. The memory
 * stays for the next connection: an allocation could fail then, if the page
 * cache can only be cleaned by writing to this disk.
 */
void kbi_slots_release(struct kbi_queue *queue)
{
	struct kbi_slot *slot;
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++) {
		slot = &queue->slots[i];
		if (slot->lmr)
			dat_lmr_free(slot->lmr);
		slot->lmr = NULL;
		slot->flags = 0;
		slot->into = NULL;
		kblk_buf_unregister(&slot->mem);
	}
	queue->first = NULL;
}

/* Free the memory of all slots after the last kbi_slots_release(). */
void kbi_slots_free(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++) {
		kvfree(queue->slots[i].sg);
		kblk_buf_free(&queue->slots[i].mem);
	}
	kvfree(queue->slots);
	queue->slots = NULL;
}
