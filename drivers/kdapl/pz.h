/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protection Zones, and the use of verbs for LMRs, RMRs and data transfer: pz.c,
 * pz_svc.c, pz_loop.c, pz_mr.c, pz_map.c, pz_dma.c, pz_sge.c. Mappings are in pz_sg.h.
 */
#ifndef KDAPL_PZ_H
#define KDAPL_PZ_H

#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include "handle.h"

struct kdapl_ep;
struct kdapl_hca;
struct kdapl_lmr;
struct kdapl_sg;
struct kdapl_sg_cache;
struct kdapl_svc;

/*
 * struct kdapl_pz - Protection Zone
 * @pd: protection domain; NULL once the device has left
 * @lkey: local_dma_lkey of @pd, which posting calls read without a lock while
 *	the device leaves
 * @svc_mutex: serialises use of @svc
 * @svc: service connection (pz_svc.c), created when first needed
 * @sg_cache: unused mappings, by CPU (pz_sg.c)
 * @sg_lock: protects @sg_depot
 * @sg_depot: more unused mappings
 */
struct kdapl_pz {
	struct kdapl_obj obj;
	struct ib_pd *pd;
	u32 lkey;
	struct mutex svc_mutex;		/* see above */
	struct kdapl_svc *svc;
	struct kdapl_sg_cache __percpu *sg_cache;
	spinlock_t sg_lock;		/* see above */
	struct kdapl_sg *sg_depot;
};

/* pz.c */
DAT_RETURN kdapl_pz_get(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			struct kdapl_pz **pz);

/* pz_loop.c */
#define KDAPL_LOOP_ANY_GID -1
int kdapl_loop_create(struct kdapl_pz *pz, struct ib_qp_init_attr *attr, int gid,
		      struct ib_qp **qp);

/* pz_svc.c */
int kdapl_svc_register(struct kdapl_pz *pz, struct ib_mr *mr, int access);
void kdapl_svc_destroy(struct kdapl_pz *pz);

/* pz_mr.c */
struct ib_mr *kdapl_mr_alloc(struct kdapl_obj *owner, struct kdapl_pz *pz,
			     u32 pages);
void kdapl_mr_free(struct kdapl_obj *owner, struct ib_mr *mr);
struct kdapl_obj *kdapl_mr_owner(struct kdapl_hca *hca, u32 rkey);
void kdapl_mr_invalidated(struct kdapl_hca *hca, u32 rkey);
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv);
int kdapl_mr_map(struct ib_mr *mr, struct sg_table *sgt, u64 iova, u64 len);

/* pz_map.c */
bool kdapl_region_ok(DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION *region,
		     u64 len);
int kdapl_region_build(struct kdapl_lmr *lmr, struct kdapl_lmr *origin);
int kdapl_region_fill(struct kdapl_lmr *lmr, u64 n);
int kdapl_region_join(struct kdapl_lmr *lmr);
void kdapl_region_part(struct kdapl_lmr *lmr);

/*
 * May a device be given @page? Memory of PCI devices is mapped in other ways, and not for
 * every device.
 */
static inline bool kdapl_page_ok(struct page *page)
{
	return page && !is_pci_p2pdma_page(page);
}

/* pz_dma.c */
int kdapl_region_map(struct kdapl_lmr *lmr);
int kdapl_dma_map(struct kdapl_lmr *lmr, unsigned int n);
void kdapl_region_unfill(struct kdapl_lmr *lmr);
void kdapl_region_unmap(struct kdapl_lmr *lmr);
void kdapl_region_unmap_locked(struct kdapl_lmr *lmr);
void kdapl_region_sync(struct kdapl_lmr *lmr, DAT_LMR_CONTEXT context, u64 offset, u64 len,
		       bool for_cpu);
void kdapl_part_to_device(const struct kdapl_part *part);
bool kdapl_part_to_cpu(const struct kdapl_part *part, struct kdapl_cursor *at,
		       unsigned int *room);
bool kdapl_region_contiguous(struct kdapl_lmr *lmr);
u64 kdapl_region_piece(struct kdapl_lmr *lmr, u64 offset, u64 len);
int kdapl_region_slice(struct kdapl_lmr *lmr, u64 offset, u64 len,
		       struct sg_table *to, int max);

/* pz_sge.c */

/*
 * struct kdapl_segs - segments of a request; checked before a lock is taken
 * @iov: the consumer's segments
 * @n: number of segments
 * @len: bytes that are transferred; set with @map when the segments have been checked
 * @map: mapping that the segments name, with a count; or NULL
 */
struct kdapl_segs {
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	u32 len;
	struct kdapl_sg *map;
};

/* Describe segments that are about to be checked. */
static inline struct kdapl_segs kdapl_segs(DAT_COUNT n,
					   const DAT_LMR_TRIPLET *iov)
{
	return (struct kdapl_segs) {
		.iov = iov,
		.n = n,
	};
}

DAT_RETURN kdapl_sge_build(struct kdapl_pz *pz, u64 poster, DAT_COUNT n,
			   const DAT_LMR_TRIPLET *iov, DAT_COUNT max,
			   DAT_MEM_PRIV_FLAGS priv, struct ib_sge *sge,
			   int *nsge, u64 *total, struct kdapl_sg **map);

#endif
