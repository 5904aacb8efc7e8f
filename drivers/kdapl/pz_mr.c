// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of the device, and the table that finds an MR's owner by key.
 *
 * A peer names memory by an rkey, for example in a message that invalidates the key. All
 * but the last eight bits of an rkey stay the same as long as the MR exists, and differ
 * between any two MRs of a device. They are the index into hca->keys, which names the LMR
 * or RMR that owns the MR. The lock of hca->keys protects changes of the table. A lookup
 * needs only RCU: an owner removes its MRs before kdapl_obj_free(), which frees the
 * memory a grace period later.
 */
#include "ia.h"
#include "pz.h"

#define KDAPL_KEY_INDEX(rkey)	((rkey) >> 8)

/**
 * kdapl_mr_alloc - allocate an MR for fast registration
 * @owner: LMR or RMR that owns the MR; calls kdapl_mr_free() before its memory
 *	is freed
 * @pz: Protection Zone of the MR
 * @pages: number of pages that the MR can hold
 *
 * Context: Process context, within kdapl_hca_enter().
 * Return: the MR or an ERR_PTR
 */
struct ib_mr *kdapl_mr_alloc(struct kdapl_obj *owner, struct kdapl_pz *pz,
			     u32 pages)
{
	struct ib_mr *mr;
	int err;

	lockdep_assert_held(&owner->ia->hca->sem);

	mr = ib_alloc_mr(pz->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return mr;
	err = xa_insert(&owner->ia->hca->keys, KDAPL_KEY_INDEX(mr->rkey),
			owner, GFP_KERNEL);
	if (err) {
		ib_dereg_mr(mr);
		return ERR_PTR(err);
	}
	return mr;
}

/*
 * Free an MR of @owner, registered or not. Neither this side nor a peer reaches
 * memory through the MR when this returns. Context: Process context.
 */
void kdapl_mr_free(struct kdapl_obj *owner, struct ib_mr *mr)
{
	lockdep_assert_held(&owner->ia->hca->sem);
	xa_erase(&owner->ia->hca->keys, KDAPL_KEY_INDEX(mr->rkey));
	ib_dereg_mr(mr);
}

/*
 * Return the LMR or RMR whose MR has the key @rkey, referenced, or NULL; the last eight
 * bits are ignored. Context: Any.
 */
struct kdapl_obj *kdapl_mr_owner(struct kdapl_hca *hca, u32 rkey)
{
	struct kdapl_obj *owner;

	rcu_read_lock();
	owner = xa_load(&hca->keys, KDAPL_KEY_INDEX(rkey));
	if (owner && !kref_get_unless_zero(&owner->ref))
		owner = NULL;
	rcu_read_unlock();
	return owner;
}

/**
 * kdapl_mr_invalidated - tell the owner that a peer has invalidated a key
 * @hca: the device that received the peer's message
 * @rkey: the key
 *
 * The device has invalidated the key; the LMR or RMR updates its state.
 *
 * Context: Any.
 */
void kdapl_mr_invalidated(struct kdapl_hca *hca, u32 rkey)
{
	struct kdapl_obj *owner = kdapl_mr_owner(hca, rkey);

	if (!owner)
		return;
	owner->ops->invalidated(owner, rkey);
	kdapl_obj_put(owner);
}

/* Return the IB access flags for @priv. The verbs always allow local reading. */
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	if (priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	/* The verbs refuse remote writing without local writing. */
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	return access;
}

/**
 * kdapl_mr_map - write the page list and the address of an MR
 * @mr: an MR that is not registered
 * @sgt: the memory, with DMA addresses
 * @iova: address by which the first byte is accessed
 * @len: bytes in @sgt
 *
 * Context: Any.
 * Return: 0; -EOPNOTSUPP if the device cannot map the memory: it has a gap
 * inside, too many pages, or not the page offset of @iova; -EIO if the driver
 * rejects the mapping
 */
int kdapl_mr_map(struct ib_mr *mr, struct sg_table *sgt, u64 iova, u64 len)
{
	int n;

	n = ib_map_mr_sg(mr, sgt->sgl, sgt->nents, NULL, PAGE_SIZE);
	if (n < 0)
		return -EIO;
	if (n != sgt->nents || mr->length != len)
		return -EOPNOTSUPP;
	if ((mr->iova ^ iova) & ~PAGE_MASK)
		return -EOPNOTSUPP;
	mr->iova = iova;
	return 0;
}
