// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module: "rdma link add NAME type kdapl_sim netdev NETDEV" makes a RoCE
 * device, with type kdapl_sim_iw an iWARP one. Its addresses are those of NETDEV,
 * which carries nothing; a dummy will do. If parameter dma_bits is not 0 then,
 * devices made do DMA: they are children of a device with that DMA mask and
 * access memory by its DMA addresses.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <rdma/ib_cache.h>
#include <rdma/rdma_netlink.h>
#include "sim.h"

static unsigned int dma_bits;
module_param(dma_bits, uint, 0644);
MODULE_PARM_DESC(dma_bits, "devices made from now on do DMA with addresses of so many bits; 0: they use virtual addresses");

static LIST_HEAD(sim_devs);
/* Protects sim_devs. Context: any. */
static DEFINE_SPINLOCK(sim_devs_lock);

/* QP1 of the device that has this GID, referenced. */
struct sim_qp *sim_gsi_of(const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	struct sim_qp *qp = NULL;
	unsigned long flags;
	struct sim_dev *dev;

	spin_lock_irqsave(&sim_devs_lock, flags);
	list_for_each_entry(dev, &sim_devs, link) {
		if (!dev->gsi)
			continue;
		attr = rdma_find_gid_by_port(&dev->ib, gid,
					     IB_GID_TYPE_ROCE_UDP_ENCAP, 1,
					     NULL);
		if (IS_ERR(attr))
			continue;
		rdma_put_gid_attr(attr);
		qp = sim_qp_get(dev->gsi);
		break;
	}
	spin_unlock_irqrestore(&sim_devs_lock, flags);
	return qp;
}

/* ---- Devices ------------------------------------------------------------- */

static int sim_parent_add(struct sim_dev *dev)
{
	struct platform_device_info info = {
		.name = "kdapl_sim",
		.id = PLATFORM_DEVID_AUTO,
		.dma_mask = DMA_BIT_MASK(min(dma_bits, 64U)),
	};
	struct platform_device *pdev;

	if (!dma_bits)
		return 0;
	pdev = platform_device_register_full(&info);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dev->parent = &pdev->dev;
	dev->ib.dev.parent = dev->parent;
	return 0;
}

static void sim_parent_remove(struct sim_dev *dev)
{
	if (dev->parent)
		platform_device_unregister(to_platform_device(dev->parent));
}

/* The last of a device; ib_core frees it after that. */
void sim_dealloc(struct ib_device *ibdev)
{
	struct sim_dev *dev = to_sim_dev(ibdev);
	unsigned long flags;

	spin_lock_irqsave(&sim_devs_lock, flags);
	list_del_init(&dev->link);
	spin_unlock_irqrestore(&sim_devs_lock, flags);
	sim_switch_remove(dev);
	sim_engines_exit(dev);
	sim_parent_remove(dev);
}

static bool sim_netdev_is_up(struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev);
}

static bool sim_netdev_has_dev(struct net_device *ndev)
{
	struct sim_dev *dev;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&sim_devs_lock, flags);
	list_for_each_entry(dev, &sim_devs, link)
		found |= dev->ndev == ndev;
	spin_unlock_irqrestore(&sim_devs_lock, flags);
	return found;
}

/* @dev has only been allocated. */
static int sim_dev_register(struct sim_dev *dev, const char *name)
{
	unsigned long flags;
	int err;

	init_waitqueue_head(&dev->switched);
	err = sim_engines_init(dev);
	if (err)
		goto err_dealloc;
	err = sim_parent_add(dev);
	if (err)
		goto err_engines;
	/* From here on ib_dealloc_device() calls sim_dealloc(). */
	sim_dev_init(dev);
	dev->netdev_up = sim_netdev_is_up(dev->ndev);
	err = ib_device_set_netdev(&dev->ib, dev->ndev, 1);
	if (err)
		goto err_dealloc;
	spin_lock_irqsave(&sim_devs_lock, flags);
	list_add_tail(&dev->link, &sim_devs);
	spin_unlock_irqrestore(&sim_devs_lock, flags);
	sim_switch_add(dev, name);
	err = ib_register_device(&dev->ib, name, dev->parent);
	if (err)
		goto err_dealloc;
	return 0;

err_engines:
	sim_engines_exit(dev);
err_dealloc:
	ib_dealloc_device(&dev->ib);
	return err;
}

static int sim_newlink(const char *name, struct net_device *ndev, bool iwarp)
{
	struct sim_dev *dev;

	if (ndev->addr_len != ETH_ALEN)
		return -EINVAL;
	if (sim_netdev_has_dev(ndev))
		return -EEXIST;
	dev = ib_alloc_device(sim_dev, ib);
	if (!dev)
		return -ENOMEM;
	INIT_LIST_HEAD(&dev->link);
	dev->ndev = ndev;
	dev->iwarp = iwarp;
	return sim_dev_register(dev, name);
}

static int sim_newlink_roce(const char *name, struct net_device *ndev)
{
	return sim_newlink(name, ndev, false);
}

static int sim_newlink_iw(const char *name, struct net_device *ndev)
{
	return sim_newlink(name, ndev, true);
}

static struct rdma_link_ops sim_link_roce = {
	.type = "kdapl_sim",
	.newlink = sim_newlink_roce,
};

static struct rdma_link_ops sim_link_iw = {
	.type = "kdapl_sim_iw",
	.newlink = sim_newlink_iw,
};

/* ---- Network devices ----------------------------------------------------- */

/* The registered device on @ndev, which then cannot go. */
static struct sim_dev *sim_dev_get(struct net_device *ndev)
{
	struct sim_dev *dev, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&sim_devs_lock, flags);
	list_for_each_entry(dev, &sim_devs, link)
		if (dev->ndev == ndev && ib_device_try_get(&dev->ib))
			found = dev;
	spin_unlock_irqrestore(&sim_devs_lock, flags);
	return found;
}

static int sim_netdev_event(struct notifier_block *nb, unsigned long event,
			    void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);
	struct sim_dev *dev = sim_dev_get(ndev);
	bool up;

	if (!dev)
		return NOTIFY_DONE;
	if (event == NETDEV_UNREGISTER) {
		ib_unregister_device_queued(&dev->ib);
	} else if (event == NETDEV_UP || event == NETDEV_DOWN ||
		   event == NETDEV_CHANGE) {
		up = sim_netdev_is_up(ndev);
		if (up != dev->netdev_up) {
			WRITE_ONCE(dev->netdev_up, up);
			sim_port_changed(dev);
		}
	}
	ib_device_put(&dev->ib);
	return NOTIFY_OK;
}

static struct notifier_block sim_notifier_block = {
	.notifier_call = sim_netdev_event,
};

/* ---- Module -------------------------------------------------------------- */

static int __init sim_init(void)
{
	int err;

	err = sim_iw_init();
	if (err)
		return err;
	err = register_netdevice_notifier(&sim_notifier_block);
	if (err) {
		sim_iw_exit();
		return err;
	}
	sim_switch_init();
	rdma_link_register(&sim_link_roce);
	rdma_link_register(&sim_link_iw);
	return 0;
}

static void __exit sim_exit(void)
{
	rdma_link_unregister(&sim_link_iw);
	rdma_link_unregister(&sim_link_roce);
	unregister_netdevice_notifier(&sim_notifier_block);
	/* Nobody else has this ID: drivers for user space have one of their own. */
	ib_unregister_driver(RDMA_DRIVER_UNKNOWN);
	sim_switch_exit();
	sim_iw_exit();
	rcu_barrier();
}

module_init(sim_init);
module_exit(sim_exit);
MODULE_ALIAS_RDMA_LINK("kdapl_sim");
MODULE_ALIAS_RDMA_LINK("kdapl_sim_iw");
MODULE_DESCRIPTION("RDMA adapters that exist in memory only, for tests of kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
