// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: registered memory and what is in it, see fixture.h.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "fixture.h"

/* Every registered buffer, see kd_hand_over(). */
static LIST_HEAD(kd_bufs);
static DEFINE_SPINLOCK(kd_bufs_lock);

/* The LMR of @buf has gone with its IA. */
void kd_buf_free(struct kd_buf *buf)
{
	spin_lock_irq(&kd_bufs_lock);
	list_del(&buf->all);
	spin_unlock_irq(&kd_bufs_lock);
	kvfree(buf->va);
	kfree(buf);
}

/* Register zeroed memory, of vmalloc if @virt. It is freed when @side is closed. */
struct kd_buf *kd_buf_alloc_priv(struct kd_side *side, size_t len, bool virt,
				 DAT_MEM_PRIV_FLAGS priv)
{
	DAT_REGION_DESCRIPTION region;
	struct kd_buf *buf;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(side->test, buf);
	INIT_LIST_HEAD(&buf->all);
	list_add(&buf->link, &side->bufs);
	buf->ia = side->ia;
	buf->len = len;
	buf->va = virt ? vzalloc(len) : kzalloc(len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(side->test, buf->va);
	region.for_va = buf->va;
	KD_ASSERT_OK(side->test,
		     dat_lmr_kcreate(side->ia, DAT_MEM_TYPE_VIRTUAL, region,
				     len, side->pz, priv, DAT_VA_TYPE_VA,
				     DAT_MEM_OPTIMIZE_DONT_CARE, &buf->lmr,
				     &buf->lmr_context, &buf->rmr_context, NULL,
				     NULL));
	spin_lock_irq(&kd_bufs_lock);
	list_add(&buf->all, &kd_bufs);
	spin_unlock_irq(&kd_bufs_lock);
	return buf;
}
EXPORT_SYMBOL_GPL(kd_buf_alloc_priv);

/* Register kmalloc memory with all privileges. */
struct kd_buf *kd_buf_alloc(struct kd_side *side, size_t len)
{
	return kd_buf_alloc_priv(side, len, false, DAT_MEM_PRIV_ALL_FLAG);
}
EXPORT_SYMBOL_GPL(kd_buf_alloc);

/* Register vmalloc memory with all privileges. */
struct kd_buf *kd_buf_valloc(struct kd_side *side, size_t len)
{
	return kd_buf_alloc_priv(side, len, true, DAT_MEM_PRIV_ALL_FLAG);
}
EXPORT_SYMBOL_GPL(kd_buf_valloc);

/*
 * Return byte @i of a pattern that no shift by less than 64 KiB maps to itself.
 */
static u8 kd_pattern(size_t i, u32 seed)
{
	u32 x = (i + 1) * 2654435761U + seed * 40503U;

	return x >> 24 ^ x >> 11;
}

/* Does the device need dat_lmr_sync_rdma_read() and dat_lmr_sync_rdma_write()? */
bool kd_needs_syncs(struct kd_side *side)
{
	DAT_PROVIDER_ATTR attr;

	KD_ASSERT_OK(side->test,
		     dat_ia_query(side->ia, NULL, 0, NULL,
				  DAT_PROVIDER_FIELD_LMR_SYNC_REQ, &attr));
	return attr.lmr_sync_req;
}
EXPORT_SYMBOL_GPL(kd_needs_syncs);

/*
 * The CPU has written these bytes, and the peer may read them; or (@written) the peer has
 * written and the CPU reads. On a device with lmr_sync_req the consumer has to say so.
 * Bytes that are in no registered buffer are left alone.
 */
void kd_hand_over(const void *va, size_t len, bool written)
{
	DAT_LMR_TRIPLET seg;
	struct kd_buf *buf;
	unsigned long flags;

	spin_lock_irqsave(&kd_bufs_lock, flags);
	list_for_each_entry(buf, &kd_bufs, all) {
		if (va < buf->va || va + len > buf->va + buf->len)
			continue;
		seg = kd_seg(buf, va - buf->va, len);
		if (written)
			kd_may_fail(dat_lmr_sync_rdma_write(buf->ia, &seg, 1));
		else
			kd_may_fail(dat_lmr_sync_rdma_read(buf->ia, &seg, 1));
	}
	spin_unlock_irqrestore(&kd_bufs_lock, flags);
}
EXPORT_SYMBOL_GPL(kd_hand_over);

/* Fill memory, which is the peer's to read then. */
void kd_fill(void *va, size_t len, u32 seed)
{
	u8 *p = va;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = kd_pattern(i, seed);
	kd_hand_over(va, len, false);
}
EXPORT_SYMBOL_GPL(kd_fill);

/* Is this what kd_fill() has written, here or at the peer, which has copied it here? */
bool kd_is_filled(const void *va, size_t len, u32 seed)
{
	kd_hand_over(va, len, true);
	return kd_has_pattern(va, len, seed);
}
EXPORT_SYMBOL_GPL(kd_is_filled);

/* The same of memory that has come to the CPU in another way than by its LMR. */
bool kd_has_pattern(const void *va, size_t len, u32 seed)
{
	const u8 *p = va;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != kd_pattern(i, seed))
			return false;
	return true;
}
EXPORT_SYMBOL_GPL(kd_has_pattern);
