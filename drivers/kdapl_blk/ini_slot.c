// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a connection needs for each request that may be outstanding: a message to
 * send, another to receive, and an LMR that is bound to the pages of the
 * block layer's request if there is more data than a page.
 */
#include <linux/slab.h>
#include "ini.h"

/* Give the target a buffer for a reply. */
DAT_RETURN kbi_reply_post(struct kbi_queue *queue, unsigned int n)
{
	DAT_LMR_TRIPLET seg = kblk_seg(&queue->slots[n].mem, KBI_REPLY_AT,
				       KBLK_REPLIES);
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	return dat_ep_post_recv(queue->ep, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* What is needed to connect: receives are posted before the peer can send. */
int kbi_slots_alloc(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int n = queue->nslots, i;
	int err = 0;

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

/* Pages of a transfer; one more as it may begin anywhere in the first. */
static unsigned int kbi_max_pages(struct kbi_disk *disk)
{
	return disk->max_transfer / PAGE_SIZE + 1;
}

/* What depends on what the target has said. The last slot has no data. */
int kbi_slots_alloc_data(struct kbi_queue *queue)
{
	struct kbi_disk *disk = queue->disk;
	unsigned int pages = kbi_max_pages(disk), i;
	struct kbi_slot *slot;
	DAT_RETURN ret;

	for (i = 0; i < queue->nslots - 1; i++) {
		slot = &queue->slots[i];
		slot->sg = kvcalloc(pages, sizeof(*slot->sg), GFP_KERNEL);
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

/* The Endpoint is gone, so nobody uses any of this. */
void kbi_slots_free(struct kbi_queue *queue)
{
	unsigned int i;

	for (i = 0; queue->slots && i < queue->nslots; i++) {
		if (queue->slots[i].lmr)
			dat_lmr_free(queue->slots[i].lmr);
		kvfree(queue->slots[i].sg);
		kblk_buf_free(&queue->slots[i].mem);
	}
	kvfree(queue->slots);
	queue->first = NULL;
	queue->slots = NULL;
}
