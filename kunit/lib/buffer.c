// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: registered memory and what is in it, see fixture.h.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "fixture.h"

/* The LMR of @buf has gone with its IA. */
void kd_buf_free(struct kd_buf *buf)
{
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
	list_add(&buf->link, &side->bufs);
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

void kd_fill(void *va, size_t len, u32 seed)
{
	u8 *p = va;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = kd_pattern(i, seed);
}
EXPORT_SYMBOL_GPL(kd_fill);

bool kd_is_filled(const void *va, size_t len, u32 seed)
{
	const u8 *p = va;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != kd_pattern(i, seed))
			return false;
	return true;
}
EXPORT_SYMBOL_GPL(kd_is_filled);
