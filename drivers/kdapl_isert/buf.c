// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive buffers: they belong to the SRQ of an adapter, and so to all connections
 * on it. A buffer is at the SRQ, or with whoever handles its message and posts it
 * again. Memory is allocated in blocks of KI_BLOCK_ORDER, never larger ones.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include "isert.h"

/* Register @len bytes of @pages for this side alone; @all is set to all of them. */
int ki_pages_register(struct ki_adapter *a, struct page *pages, size_t len,
		      DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_TRIPLET *all)
{
	DAT_REGION_DESCRIPTION region = { .for_va = page_address(pages) };
	DAT_RETURN ret;

	all->segment_length = len;
	ret = dat_lmr_kcreate(a->ia, DAT_MEM_TYPE_VIRTUAL, region, len, a->pz,
			      priv, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
			      lmr, &all->lmr_context, NULL, NULL,
			      &all->virtual_address);
	if (ret == DAT_SUCCESS)
		return 0;
	pr_warn_ratelimited("%s: cannot register memory: %s\n", a->name,
			    ki_strerror(ret));
	return -ENOMEM;
}

static int ki_block_make(struct ki_adapter *a)
{
	struct ki_block *b = kzalloc(sizeof(*b), GFP_KERNEL);
	DAT_LMR_TRIPLET all;
	unsigned int i;

	if (!b)
		return -ENOMEM;
	b->pages = alloc_pages(GFP_KERNEL, KI_BLOCK_ORDER);
	if (!b->pages)
		goto err_free;
	if (ki_pages_register(a, b->pages, KI_BLOCK_BUFS * KI_BUF_LEN,
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &b->lmr, &all))
		goto err_pages;
	list_add(&b->link, &a->blocks);
	for (i = 0; i < KI_BLOCK_BUFS; i++) {
		b->bufs[i].va = page_address(b->pages) + i * KI_BUF_LEN;
		b->bufs[i].seg = all;
		b->bufs[i].seg.virtual_address += i * KI_BUF_LEN;
		b->bufs[i].seg.segment_length = KI_BUF_LEN;
		ki_buf_post(a, &b->bufs[i]);
	}
	return 0;

err_pages:
	__free_pages(b->pages, KI_BLOCK_ORDER);
err_free:
	kfree(b);
	return -ENOMEM;
}

/* Allocate and post at least @n buffers. The caller frees them after an error. */
int ki_bufs_make(struct ki_adapter *a, unsigned int n)
{
	unsigned int i;
	int err;

	for (i = 0; i < n; i += KI_BLOCK_BUFS) {
		err = ki_block_make(a);
		if (err)
			return err;
	}
	return 0;
}

/* Free all buffers. The SRQ was freed. */
void ki_bufs_free(struct ki_adapter *a)
{
	struct ki_block *b, *next;

	list_for_each_entry_safe(b, next, &a->blocks, link) {
		dat_lmr_free(b->lmr);
		__free_pages(b->pages, KI_BLOCK_ORDER);
		kfree(b);
	}
	INIT_LIST_HEAD(&a->blocks);
}

/* Post a buffer whose message was handled. Context: any. */
void ki_buf_post(struct ki_adapter *a, struct ki_buf *buf)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = buf };
	DAT_RETURN ret;

	ret = dat_srq_post_recv(a->srq, 1, &buf->seg, cookie);
	if (ret != DAT_SUCCESS && !READ_ONCE(a->gone))
		pr_warn_ratelimited("%s: a receive buffer is refused: %s\n", a->name,
				    ki_strerror(ret));
}
