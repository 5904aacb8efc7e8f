// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages to be sent. They are registered memory of the adapter, in blocks of 8, which are made
 * as replies are under way, and freed by the tick when there are many more than that. A client
 * has at most as many as it may have calls outstanding, so their number is bounded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>
#include "svcrdma.h"

#define KS_TXS		8
#define KS_TX_ORDER	get_order(KS_TXS * KS_INLINE)

/*
 * struct ks_tx_block - messages in one piece of memory
 * @link: entry in a->tx_blocks
 * @free: how many of them are in a->txs; a->tx_lock
 */
struct ks_tx_block {
	struct list_head link;
	DAT_LMR_HANDLE lmr;
	struct page *pages;
	unsigned int free;
	struct ks_tx tx[KS_TXS];
};

void ks_txs_init(struct ks_adapter *a)
{
	spin_lock_init(&a->tx_lock);
	mutex_init(&a->tx_mutex);
	INIT_LIST_HEAD(&a->txs);
	INIT_LIST_HEAD(&a->tx_blocks);
}

/*
 * Free a block none of whose messages is in use. dat_lmr_free() fails while a driver does not end
 * a connection: the device may still read the pages, which are leaked then.
 */
static void ks_tx_block_free(struct ks_adapter *a, struct ks_tx_block *block)
{
	if (block->lmr && DAT_GET_TYPE(dat_lmr_free(block->lmr)) == DAT_INVALID_STATE)
		pr_err("%s: a connection does not end: %lu bytes are lost\n", a->k.name,
		       PAGE_SIZE << KS_TX_ORDER);
	else if (block->pages)
		__free_pages(block->pages, KS_TX_ORDER);
	kfree(block);
}

void ks_txs_free(struct ks_adapter *a)
{
	struct ks_tx_block *block, *next;

	list_for_each_entry_safe(block, next, &a->tx_blocks, link)
		ks_tx_block_free(a, block);
	INIT_LIST_HEAD(&a->tx_blocks);
}

static struct ks_tx_block *ks_tx_block_new(struct ks_adapter *a)
{
	struct ks_tx_block *block = kzalloc(sizeof(*block), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET all;
	struct ks_tx *tx;
	DAT_RETURN ret;

	if (!block)
		return NULL;
	block->pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, KS_TX_ORDER);
	if (!block->pages)
		goto err;
	region.for_va = page_address(block->pages);
	ret = dat_lmr_kcreate(a->k.ia, DAT_MEM_TYPE_VIRTUAL, region, KS_TXS * KS_INLINE, a->k.pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_DONT_CARE, &block->lmr, &all.lmr_context, NULL,
			      NULL, &all.virtual_address);
	if (ret != DAT_SUCCESS)
		goto err;
	for (tx = block->tx; tx < block->tx + KS_TXS; tx++) {
		tx->block = block;
		tx->va = page_address(block->pages) + (tx - block->tx) * KS_INLINE;
		tx->seg = all;
		tx->seg.virtual_address += (tx - block->tx) * KS_INLINE;
	}
	return block;
err:
	ks_tx_block_free(a, block);
	return NULL;
}

static struct ks_tx *ks_tx_pop(struct ks_adapter *a)
{
	struct ks_tx *tx;

	spin_lock_bh(&a->tx_lock);
	tx = list_first_entry_or_null(&a->txs, struct ks_tx, link);
	if (tx) {
		list_del(&tx->link);
		tx->block->free--;
	}
	spin_unlock_bh(&a->tx_lock);
	return tx;
}

/* Get a message to fill, or NULL if there is no memory. Context: process. */
struct ks_tx *ks_tx_get(struct ks_adapter *a)
{
	struct ks_tx *tx = ks_tx_pop(a);
	struct ks_tx_block *block;

	if (!tx) {
		block = ks_tx_block_new(a);
		if (!block)
			return NULL;
		mutex_lock(&a->tx_mutex);
		list_add(&block->link, &a->tx_blocks);
		mutex_unlock(&a->tx_mutex);
		spin_lock_bh(&a->tx_lock);
		/* The first one is for the caller. */
		for (tx = block->tx + 1; tx < block->tx + KS_TXS; tx++)
			list_add_tail(&tx->link, &a->txs);
		block->free = KS_TXS - 1;
		spin_unlock_bh(&a->tx_lock);
		tx = block->tx;
	}
	memset(&tx->post, 0, sizeof(tx->post));
	tx->post.tx = tx;
	tx->invalidate = false;
	return tx;
}

/* Put a message back that is not posted any more. Context: any but hard interrupts. */
void ks_tx_put(struct ks_adapter *a, struct ks_tx *tx)
{
	spin_lock_bh(&a->tx_lock);
	list_add(&tx->link, &a->txs);
	tx->block->free++;
	spin_unlock_bh(&a->tx_lock);
}

/* Free one block, if two or more are not in use at all. Context: process. */
void ks_tx_trim(struct ks_adapter *a)
{
	struct ks_tx_block *block, *victim = NULL;
	unsigned int spare = 0;
	struct ks_tx *tx;

	mutex_lock(&a->tx_mutex);
	spin_lock_bh(&a->tx_lock);
	list_for_each_entry(block, &a->tx_blocks, link)
		if (block->free == KS_TXS && ++spare == 2)
			victim = block;
	if (victim) {
		for (tx = victim->tx; tx < victim->tx + KS_TXS; tx++)
			list_del(&tx->link);
		list_del(&victim->link);
	}
	spin_unlock_bh(&a->tx_lock);
	mutex_unlock(&a->tx_mutex);
	if (victim)
		ks_tx_block_free(a, victim);
}

/* Make the request that sends @tx. */
void ks_tx_request(struct ks_tx *tx, KDAT_REQUEST *r)
{
	r->operation = DAT_DTO_SEND;
	r->num_segments = 1;
	r->local_iov = &tx->seg;
	r->remote_iov = NULL;
	r->user_cookie.as_ptr = &tx->post;
	r->completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
	r->invalidate_flag = tx->invalidate ? DAT_TRUE : DAT_FALSE;
	r->rmr_context = tx->key;
}
