/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of every type that dat_lmr_kcreate() takes, made, registered and used.
 */
#ifndef KDAPL_KUNIT_REGIONS_H
#define KDAPL_KUNIT_REGIONS_H

#include <linux/scatterlist.h>
#include "device.h"
#include "mem_fixture.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define OFFSET	100			/* of the start inside a page */
#define CHUNKS	3
/* The longest region has four pages. */
#define SCRATCH	(4 * PAGE_SIZE > SZ_32K ? 4 * PAGE_SIZE : SZ_32K)

enum kind { KMALLOC, VMALLOC, PAGES, VAR_PAGES, PLATFORM, DMA, OTHER_LMR, KINDS };

extern const char * const region_kind_names[KINDS];

/*
 * struct region - memory as dat_lmr_kcreate() takes it, and as the CPU sees it
 * @type: with @desc, arguments of dat_lmr_kcreate()
 * @len: bytes
 * @dev: that memory of kind DMA is mapped for
 * @chunk: pieces of the memory, in order
 * @scratch: @len bytes in one piece
 */
struct region {
	enum kind kind;
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION desc;
	size_t len;
	struct ib_device *dev;
	unsigned int chunks;
	struct {
		u8 *va;
		size_t len;
	} chunk[CHUNKS];
	DAT_PADDR pages[CHUNKS];
	struct scatterlist sg[CHUNKS];
	u8 *scratch;
};

struct made {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT rkey;
	DAT_VLEN len;
	DAT_VADDR addr;
};

void *region_alloc(struct kunit *test, size_t len);
void region_vfree(void *va);
struct region *region_make(struct kunit *test, enum kind kind, size_t offset);
void region_make_all(struct kunit *test, struct region *r[KINDS], size_t offset);
void region_fill(struct region *r, u32 seed);
bool region_is_filled(struct region *r, u32 seed);
void region_map(struct kd_side *s, struct region *r);
DAT_RETURN region_register(struct kd_side *s, struct region *r,
			   DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			   DAT_MEM_OPTIMIZE_FLAGS opt, struct made *m);
void region_register_origin(struct kd_side *s, struct region *r);
DAT_LMR_TRIPLET region_seg(const struct made *m);
void region_use_locally(struct mem_pair *c, struct region *r,
			const struct made *m);
void region_hand_over(struct mem_pair *c, const struct made *m, bool written);
void region_use_remotely(struct mem_pair *c, struct region *r,
			 const struct made *m);

#endif /* KDAPL_KUNIT_REGIONS_H */
