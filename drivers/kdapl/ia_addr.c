// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses that come and go.
 *
 * The kernel reports each address that is added to the host or removed, in a context that
 * may not sleep, but not that duplicate address detection has ended and an IPv6 address can be
 * used: kdapl_addr_check counts those that cannot be used yet, until there are none. It tells
 * consumers with a notifier, and has hca->addr_work read the addresses of all IAs of each device
 * again and update their service points. On RoCE an address is usable when it is in the device's
 * table of GIDs, which a device event reports (kdapl_device_event()): that is looked into in the
 * same way, as an address that a link keeps while it is down cannot be used at once, and is not
 * reported again. hca->addr_work runs on a workqueue of the device, so that no device waits for
 * another.
 */
#include <dat/kdat_linux.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include "addr.h"
#include "cm.h"
#include "ia.h"

/*
 * Detection may take as long as a link is down, and so may a lack of memory: the pause between
 * two looks doubles up to a maximum.
 */
#define KDAPL_ADDR_RETRY_MS	500U
#define KDAPL_ADDR_RETRY_MAX_MS	8000U

static void kdapl_addrs_check(struct work_struct *work);
static DECLARE_DELAYED_WORK(kdapl_addr_check, kdapl_addrs_check);
/* Addresses were reported since kdapl_addr_check began. */
static bool kdapl_addr_event;
/* What kdapl_addr_check found last, and for how many milliseconds it paused */
static unsigned int kdapl_tentative, kdapl_addr_pause;

static unsigned int kdapl_next_pause(unsigned int pause)
{
	return clamp(2 * pause, KDAPL_ADDR_RETRY_MS, KDAPL_ADDR_RETRY_MAX_MS);
}

/* Return how many addresses of the host will be usable after duplicate address detection. */
static unsigned int kdapl_addrs_tentative(void)
{
	unsigned int n = 0;
#if IS_ENABLED(CONFIG_IPV6)
	struct net_device *ndev;
	struct inet6_ifaddr *ifp;
	struct inet6_dev *idev;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, ndev) {
		idev = __in6_dev_get(ndev);
		if (!idev)
			continue;
		read_lock_bh(&idev->lock);
		list_for_each_entry(ifp, &idev->addr_list, if_list)
			n += ifp->flags & IFA_F_TENTATIVE && !(ifp->flags & IFA_F_DADFAILED);
		read_unlock_bh(&idev->lock);
	}
	rcu_read_unlock();
#endif
	return n;
}

/*
 * Work item kdapl_addr_check: see whether addresses have come, gone or become usable. Consumers
 * are told after the count, so what became usable before the count is not lost on them.
 */
static void kdapl_addrs_check(struct work_struct *work)
{
	/* litmus: changes */
	bool event = xchg(&kdapl_addr_event, false);
	unsigned int n = kdapl_addrs_tentative();

	if (event || n < kdapl_tentative) {
		kdapl_addr_pause = 0;
		kdapl_hcas_update_addrs();
		kdapl_notify(KDAT_CHANGED_ADDRESSES);
	}
	kdapl_tentative = n;
	kdapl_addr_pause = kdapl_next_pause(kdapl_addr_pause);
	if (n)
		queue_delayed_work(kdapl_wq, &kdapl_addr_check,
				   msecs_to_jiffies(kdapl_addr_pause));
}

/* Addresses of the host, or of a device, may have changed. Context: Any. */
void kdapl_addrs_changed(void)
{
	/* litmus: changes */
	xchg(&kdapl_addr_event, true);
	mod_delayed_work(kdapl_wq, &kdapl_addr_check, 0);
}

static int kdapl_addr_notify(struct notifier_block *nb, unsigned long action,
			     void *data)
{
	kdapl_addrs_changed();
	return NOTIFY_DONE;
}

static struct notifier_block kdapl_inet_notifier = {
	.notifier_call = kdapl_addr_notify,
};

static struct notifier_block kdapl_inet6_notifier = {
	.notifier_call = kdapl_addr_notify,
};

/* Read the addresses of @hca again soon: they may have changed. Context: Any. */
void kdapl_hca_update_addrs(struct kdapl_hca *hca)
{
	WRITE_ONCE(hca->addr_pause, 0);
	mod_delayed_work(hca->down_wq, &hca->addr_work, 0);
}

/* Work item hca->addr_work: read the addresses and update the service points. */
void kdapl_hca_addr_work(struct work_struct *work)
{
	struct kdapl_hca *hca = container_of(to_delayed_work(work),
					     struct kdapl_hca, addr_work);
	unsigned int before = READ_ONCE(hca->addr_pause), pause;
	struct kdapl_ia *ia = NULL;
	bool again = false;

	if (!kdapl_hca_enter(hca))
		return;
	while ((ia = kdapl_hca_next_ia(hca, ia))) {
		mutex_lock(&ia->mutex);
		again |= kdapl_ia_refresh_addrs(ia) == -ENOMEM;
		mutex_unlock(&ia->mutex);
		again |= !kdapl_sps_update(ia);
	}
	kdapl_hca_leave(hca);
	pause = kdapl_next_pause(before);
	/*
	 * If kdapl_hca_update_addrs() was called meanwhile, the work is queued and starts
	 * over. litmus: none, as mod_delayed_work() wins in either order.
	 */
	if (again && cmpxchg(&hca->addr_pause, before, pause) == before)
		queue_delayed_work(hca->down_wq, &hca->addr_work,
				   msecs_to_jiffies(pause));
}

int kdapl_addr_setup(void)
{
	int err;

	err = register_inetaddr_notifier(&kdapl_inet_notifier);
	if (err)
		return err;
	err = register_inet6addr_notifier(&kdapl_inet6_notifier);
	if (err)
		unregister_inetaddr_notifier(&kdapl_inet_notifier);
	else
		queue_delayed_work(kdapl_wq, &kdapl_addr_check, 0);
	return err;
}

void kdapl_addr_cleanup(void)
{
	unregister_inet6addr_notifier(&kdapl_inet6_notifier);
	unregister_inetaddr_notifier(&kdapl_inet_notifier);
	cancel_delayed_work_sync(&kdapl_addr_check);
}
