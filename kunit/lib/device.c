// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: devices and their operations, see device.h.
 */
#include <linux/device.h>
#include <linux/kmemleak.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "device.h"

/*
 * A list of all devices, kept by an ib_client, since not every kernel has
 * ib_device_get_by_name().
 */
struct kd_listed {
	struct list_head link;
	struct ib_device *dev;
};

static LIST_HEAD(kd_list);
static DEFINE_MUTEX(kd_list_lock);

static int kd_add_device(struct ib_device *dev);

/*
 * siw runs work of its handshakes after its device was freed, and that work takes
 * the device's lock (siw_cep_put() in 6.12), whoever the consumer is. Nothing says
 * when the last has run, so while this module is loaded the memory of such a device is
 * never freed.
 */
static void keep_memory_of_siw(struct ib_device *dev)
{
	if (dev->ops.driver_id != RDMA_DRIVER_SIW)
		return;
	get_device(&dev->dev);
	kmemleak_not_leak(dev);
}

static void kd_remove_device(struct ib_device *dev, void *data)
{
	struct kd_listed *listed = data;

	keep_memory_of_siw(dev);
	mutex_lock(&kd_list_lock);
	list_del(&listed->link);
	mutex_unlock(&kd_list_lock);
	kfree(listed);
}

static struct ib_client kd_client = {
	.name = "kdapl_kunit",
	.add = kd_add_device,
	.remove = kd_remove_device,
};

static int kd_add_device(struct ib_device *dev)
{
	struct kd_listed *listed = kzalloc(sizeof(*listed), GFP_KERNEL);

	if (!listed)
		return -ENOMEM;
	listed->dev = dev;
	mutex_lock(&kd_list_lock);
	list_add_tail(&listed->link, &kd_list);
	mutex_unlock(&kd_list_lock);
	ib_set_client_data(dev, &kd_client, listed);
	return 0;
}

/*
 * Return the device of an IA, or NULL: the one that the part of @ia before the
 * slash names. No reference is held, since that would keep the device from being
 * removed; only a case that removes the device has to know when it is gone.
 */
struct ib_device *kd_find_device(const char *ia)
{
	size_t len = strcspn(ia, "/");
	struct ib_device *dev = NULL;
	struct kd_listed *listed;
	const char *name;

	mutex_lock(&kd_list_lock);
	list_for_each_entry(listed, &kd_list, link) {
		name = dev_name(&listed->dev->dev);
		if (strlen(name) == len && !strncmp(name, ia, len))
			dev = listed->dev;
	}
	mutex_unlock(&kd_list_lock);
	return dev;
}
EXPORT_SYMBOL_GPL(kd_find_device);

/* The same; as kd_open() it skips the case if there is no such device. */
struct ib_device *kd_device(struct kunit *test, const char *ia)
{
	struct ib_device *dev;

	kd_skip_other(test, ia);
	dev = kd_find_device(ia);
	if (!dev)
		kunit_skip(test, "no device %s", ia);
	return dev;
}
EXPORT_SYMBOL_GPL(kd_device);

/* The same for a case that changes the device, or does what all of its users notice. */
struct ib_device *kd_test_device(struct kunit *test, const char *ia)
{
	kd_skip_own(test, "changes the adapter for all of its users");
	return kd_device(test, ia);
}
EXPORT_SYMBOL_GPL(kd_test_device);

/*
 * Put the operations back one by one: the device is in use, so that another CPU
 * must never see a pointer half written.
 */
static void kd_unhook(void *data)
{
	struct kd_hook *hook = data;
	const unsigned long *real = (const unsigned long *)&hook->real;
	unsigned long *ops = (unsigned long *)&hook->dev->ops;
	size_t i;

	for (i = 0; i < sizeof(hook->real) / sizeof(*real); i++)
		if (ops[i] != real[i])
			WRITE_ONCE(ops[i], real[i]);
}

/*
 * Let the case replace operations of the device of @ia until it ends. The
 * device must not be removed before. An adapter that others use is not touched: the
 * case is skipped there.
 */
struct ib_device *kd_hook(struct kunit *test, const char *ia,
			  struct kd_hook *hook)
{
	hook->dev = kd_test_device(test, ia);
	hook->real = hook->dev->ops;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_unhook,
							   hook));
	return hook->dev;
}
EXPORT_SYMBOL_GPL(kd_hook);

static struct kd_hook kd_counted;

atomic_t kd_doorbells;
EXPORT_SYMBOL_GPL(kd_doorbells);

static int kd_count_doorbell(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	/* Not those of the CM. */
	if (qp->qp_type == IB_QPT_RC)
		atomic_inc(&kd_doorbells);
	return kd_counted.real.post_send(qp, wr, bad);
}

/*
 * Count in kd_doorbells, from 0, how often the device of @ia is told of requests, until
 * the case ends.
 */
void kd_count_doorbells(struct kunit *test, const char *ia)
{
	kd_hook(test, ia, &kd_counted)->ops.post_send = kd_count_doorbell;
	atomic_set(&kd_doorbells, 0);
}
EXPORT_SYMBOL_GPL(kd_count_doorbells);

static struct kd_hook kd_refusing;

/* Queue pairs that were asked for since kd_refuse_second_qp(), not those of the CM */
atomic_t kd_qps;
EXPORT_SYMBOL_GPL(kd_qps);

static int kd_refuse_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr,
			struct ib_udata *udata)
{
	if (attr->qp_type == IB_QPT_RC && atomic_inc_return(&kd_qps) == 2)
		return -ENOMEM;
	return kd_refusing.real.create_qp(qp, attr, udata);
}

/*
 * Until the case ends, have the device of @ia refuse the second queue pair: if both ends of
 * a connection are made on it, the first one is the active side's.
 */
void kd_refuse_second_qp(struct kunit *test, const char *ia)
{
	atomic_set(&kd_qps, 0);
	kd_hook(test, ia, &kd_refusing)->ops.create_qp = kd_refuse_qp;
}
EXPORT_SYMBOL_GPL(kd_refuse_second_qp);

static int __init kd_init(void)
{
	return ib_register_client(&kd_client);
}
module_init(kd_init);

static void __exit kd_exit(void)
{
	ib_unregister_client(&kd_client);
}
module_exit(kd_exit);
