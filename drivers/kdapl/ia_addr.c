// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses that come and go.
 *
 * The kernel reports each address that is added to the host or removed, in a context that
 * may not sleep; consumers with a notifier are told, too. On RoCE an address is usable when
 * it is in the device's table of GIDs, which a device event reports (kdapl_device_event()).
 * In both cases hca->addr_work reads the addresses of all IAs of a device again and updates
 * their service points. It runs on a workqueue of the device, so that no device waits for
 * another.
 */
#include <dat/kdat_linux.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include "addr.h"
#include "cm.h"
#include "ia.h"

/*
 * IPv6 reports a new address, but not that duplicate address detection has ended. This
 * may take as long as a link is down, and so may a lack of memory: the pause between two
 * reads doubles up to a maximum.
 */
#define KDAPL_ADDR_RETRY_MS	500U
#define KDAPL_ADDR_RETRY_MAX_MS	8000U

static void kdapl_addr_changed(struct work_struct *work)
{
	kdapl_hcas_update_addrs();
}

static DECLARE_WORK(kdapl_addr_change, kdapl_addr_changed);

static int kdapl_addr_notify(struct notifier_block *nb, unsigned long action,
			     void *data)
{
	queue_work(kdapl_wq, &kdapl_addr_change);
	kdapl_notify(KDAT_CHANGED_ADDRESSES);
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
	bool soon, again = false;

	if (!kdapl_hca_enter(hca))
		return;
	while ((ia = kdapl_hca_next_ia(hca, ia))) {
		soon = false;
		mutex_lock(&ia->mutex);
		if (kdapl_ia_refresh_addrs(ia, &soon) == -ENOMEM)
			soon = true;
		mutex_unlock(&ia->mutex);
		if (!kdapl_sps_update(ia))
			soon = true;
		again |= soon;
	}
	kdapl_hca_leave(hca);
	pause = clamp(2 * before, KDAPL_ADDR_RETRY_MS, KDAPL_ADDR_RETRY_MAX_MS);
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
	return err;
}

void kdapl_addr_cleanup(void)
{
	unregister_inet6addr_notifier(&kdapl_inet6_notifier);
	unregister_inetaddr_notifier(&kdapl_inet_notifier);
	cancel_work_sync(&kdapl_addr_change);
}
