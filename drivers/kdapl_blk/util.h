/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What initiator and target share and what is too small for a module of its
 * own: DAT returns, and memory together with its registration.
 */
#ifndef KDAPL_BLK_UTIL_H
#define KDAPL_BLK_UTIL_H

#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <dat/kdat.h>

/* The one place where a DAT return becomes an error number. */
static inline int kblk_errno(DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return 0;
	case DAT_INSUFFICIENT_RESOURCES:
		return -ENOMEM;
	case DAT_PROVIDER_NOT_FOUND:
		return -ENODEV;
	case DAT_CONN_QUAL_IN_USE:
		return -EADDRINUSE;
	case DAT_INVALID_ADDRESS:
		return -EADDRNOTAVAIL;
	case DAT_INVALID_PARAMETER:
		return -EINVAL;
	case DAT_MODEL_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	case DAT_INVALID_STATE:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

static inline const char *kblk_strerror(DAT_RETURN ret)
{
	const char *type, *subtype;

	if (dat_strerror(ret, &type, &subtype) != DAT_SUCCESS)
		return "unknown error";
	return type;
}

static inline bool kblk_is_zero(const void *p, size_t len)
{
	return !memchr_inv(p, 0, len);
}

/*
 * struct kblk_buf - memory the device may use
 * @va: the memory, NULL if there is none
 * @len: bytes of it
 * @addr: its address in segments
 * @lmr: its registration
 * @lmr_context: for segments
 */
struct kblk_buf {
	void *va;
	size_t len;
	DAT_VADDR addr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
};

/*
 * Of pages what is longer: half of a power of two may be a lot. It fails rather than
 * have others killed for it or, without I/O, wait for ever.
 */
static inline void *kblk_mem_alloc(size_t len)
{
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN |
		    __GFP_RETRY_MAYFAIL;

	return len > PAGE_SIZE ? alloc_pages_exact(len, gfp) :
				 kmalloc(len, gfp);
}

static inline void kblk_mem_free(void *va, size_t len)
{
	if (len > PAGE_SIZE)
		free_pages_exact(va, len);
	else
		kfree(va);
}

/*
 * Allocate and register zeroed memory, contiguous for the device, so that access
 * to it needs no registration at the device.
 */
static inline int kblk_buf_alloc(struct kblk_buf *buf, DAT_IA_HANDLE ia,
				 DAT_PZ_HANDLE pz, size_t len)
{
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT rmr_context;
	DAT_RETURN ret;

	buf->len = len;
	buf->va = kblk_mem_alloc(len);
	if (!buf->va)
		return -ENOMEM;
	region.for_va = buf->va;
	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, len, pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &buf->lmr,
			      &buf->lmr_context, &rmr_context, NULL,
			      &buf->addr);
	if (ret == DAT_SUCCESS)
		return 0;
	kblk_mem_free(buf->va, len);
	memset(buf, 0, sizeof(*buf));
	return kblk_errno(ret);
}

/* Idempotent. Nothing that uses the memory may be posted any more. */
static inline void kblk_buf_free(struct kblk_buf *buf)
{
	if (!buf->va)
		return;
	dat_lmr_free(buf->lmr);
	kblk_mem_free(buf->va, buf->len);
	memset(buf, 0, sizeof(*buf));
}

static inline DAT_LMR_TRIPLET kblk_seg(const struct kblk_buf *buf, size_t off,
				       size_t len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = buf->addr + off,
		.segment_length = len,
		.lmr_context = buf->lmr_context,
	};
}

#endif /* KDAPL_BLK_UTIL_H */
