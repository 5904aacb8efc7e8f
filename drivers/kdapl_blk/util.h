/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers of initiator and target: error numbers for DAT returns, UUIDs, and
 * registered memory (struct kblk_buf). The owner of a kblk_buf serialises its
 * use; no locks.
 */
#ifndef KDAPL_BLK_UTIL_H
#define KDAPL_BLK_UTIL_H

#include <linux/errno.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uuid.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>

/* Convert a DAT return to an error number. */
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
	case DAT_PORT_IN_USE:
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

/*
 * Copy the present name of the IA that was called @ia to @name, as kdat_ia_again() does. Return
 * whether the IA is known and its name is not @ia, which may lack the port of a device that
 * has one.
 */
static inline bool kblk_ia_renamed(const KDAT_IA_IDENT *ident, const char *ia,
				   char name[DAT_NAME_MAX_LENGTH])
{
	strscpy(name, ia, DAT_NAME_MAX_LENGTH);
	if (!ident->id || kdat_ia_again(ident, name) != DAT_SUCCESS)
		return false;
	if (!strchr(ia, '/'))
		name[strcspn(name, "/")] = '\0';
	return strcmp(name, ia);
}

static inline bool kblk_is_zero(const void *p, size_t len)
{
	return !memchr_inv(p, 0, len);
}

/* Parse a line with a UUID; an empty line gives the nil UUID. */
static inline int kblk_uuid_parse(const char *line, uuid_t *uuid)
{
	size_t len = strcspn(line, "\n");

	*uuid = uuid_null;
	if (!len)
		return 0;
	if (len != UUID_STRING_LEN || uuid_parse(line, uuid) ||
	    uuid_is_null(uuid))
		return -EINVAL;
	return 0;
}

/*
 * struct kblk_buf - memory registered for local access by the device
 * @va: the memory, or NULL
 * @len: size, bytes
 * @addr: address to use in segments
 * @lmr: registration, or NULL
 * @lmr_context: key to use in segments
 */
struct kblk_buf {
	void *va;
	size_t len;
	DAT_VADDR addr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
};

/*
 * Allocate zeroed memory. More than a page comes from alloc_pages_exact(),
 * because kmalloc() rounds up to a power of two. RETRY_MAYFAIL: the allocation
 * fails rather than invoke the OOM killer or, under NOIO, wait forever.
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

/* Register @buf, which is physically contiguous, for local access only. */
static inline int kblk_buf_register(struct kblk_buf *buf, DAT_IA_HANDLE ia,
				    DAT_PZ_HANDLE pz)
{
	DAT_REGION_DESCRIPTION region = { .for_va = buf->va };
	DAT_RMR_CONTEXT rmr_context;
	DAT_RETURN ret;

	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, buf->len, pz,
			      DAT_MEM_PRIV_LOCAL_READ_FLAG |
			      DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &buf->lmr,
			      &buf->lmr_context, &rmr_context, NULL,
			      &buf->addr);
	if (ret != DAT_SUCCESS)
		buf->lmr = NULL;
	return kblk_errno(ret);
}

/*
 * Free the registration of @buf; no post that uses it may be outstanding. Idempotent, like
 * kblk_buf_free(). dat_lmr_free() fails while a driver does not end a connection: the device
 * may still write into the memory, which is leaked then.
 */
static inline void kblk_buf_unregister(struct kblk_buf *buf)
{
	if (buf->lmr &&
	    DAT_GET_TYPE(dat_lmr_free(buf->lmr)) == DAT_INVALID_STATE) {
		pr_err("a connection does not end: %zu bytes are lost\n", buf->len);
		buf->va = NULL;
	}
	buf->lmr = NULL;
}

static inline void kblk_buf_free(struct kblk_buf *buf)
{
	kblk_buf_unregister(buf);
	if (buf->va)
		kblk_mem_free(buf->va, buf->len);
	buf->va = NULL;
}

/*
 * Allocate (zeroed) and register @len bytes; memory that @buf already has is
 * only registered again.
 */
static inline int kblk_buf_alloc(struct kblk_buf *buf, DAT_IA_HANDLE ia,
				 DAT_PZ_HANDLE pz, size_t len)
{
	bool fresh = !buf->va;
	int err;

	if (fresh) {
		buf->len = len;
		buf->va = kblk_mem_alloc(len);
	}
	if (!buf->va)
		return -ENOMEM;
	err = kblk_buf_register(buf, ia, pz);
	if (err && fresh)
		kblk_buf_free(buf);
	return err;
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
