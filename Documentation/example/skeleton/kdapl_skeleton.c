// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A module to begin with. It opens each adapter when it appears, whenever that is, and
 * closes it when it has gone; what your consumer makes in an IA belongs into
 * skeleton_start(). Rename the files, the functions and the names in Kbuild and dkms.conf.
 *
 *	make && insmod kdapl_skeleton.ko	(kdapl.ko is loaded)
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <dat/kdat.h>
#include <dat/kdat_linux.h>

#define IAS	16		/* adapters that are looked at */

/*
 * struct skeleton - an adapter that is open
 * @id: the device's; it stays when the device is renamed
 */
struct skeleton {
	struct list_head link;
	DAT_UINT64 id;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
};

static LIST_HEAD(skeletons);
static DEFINE_MUTEX(skeletons_mutex);	/* protects the list */
static KDAT_NOTIFIER_HANDLE notifier;

/* Make what is needed of this adapter: EVDs, memory, Service Points, Endpoints. */
static DAT_RETURN skeleton_start(struct skeleton *s)
{
	return dat_pz_create(s->ia, &s->pz);
}

/*
 * All that was made in the IA goes with it; no upcall runs afterwards. If it is refused, a
 * driver does not end a connection: registered memory must not be freed.
 */
static void skeleton_close(struct skeleton *s)
{
	if (DAT_GET_TYPE(dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG)) == DAT_INVALID_STATE)
		pr_err("kdapl_skeleton: a connection does not end\n");
	list_del(&s->link);
	kfree(s);
}

static void skeleton_open(DAT_NAME_PTR name)
{
	struct skeleton *s = kzalloc(sizeof(*s), GFP_KERNEL);
	const char *type = "?", *subtype = "?";
	DAT_RETURN ret;

	if (!s)
		return;
	list_add(&s->link, &skeletons);
	ret = dat_ia_open(name, 8, &s->async_evd, &s->ia) ?:
	      kdat_ia_id(s->ia, &s->id) ?: skeleton_start(s);
	if (ret == DAT_SUCCESS) {
		pr_info("kdapl_skeleton: %s is open\n", name);
		return;
	}
	dat_strerror(ret, &type, &subtype);
	pr_err("kdapl_skeleton: %s: %s, %s\n", name, type, subtype);
	skeleton_close(s);
}

static bool skeleton_has(const char *name)
{
	char now[DAT_NAME_MAX_LENGTH];
	struct skeleton *s;

	list_for_each_entry(s, &skeletons, link)
		if (kdat_ia_name(s->id, now) == DAT_SUCCESS && !strcmp(now, name))
			return true;
	return false;
}

/* An adapter that goes says so on the EVD of its IA, before the notifier is called. */
static bool skeleton_is_gone(struct skeleton *s)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(s->async_evd, &event) == DAT_SUCCESS)
		if (event.event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
			return true;
	return false;
}

static void skeleton_close_gone(void)
{
	struct skeleton *s, *next;

	list_for_each_entry_safe(s, next, &skeletons, link) {
		if (!skeleton_is_gone(s))
			continue;
		pr_info("kdapl_skeleton: an adapter has gone\n");
		skeleton_close(s);
	}
}

/* Adapters or addresses have changed. Process context; may sleep. */
static void skeleton_changed(DAT_PVOID data, DAT_COUNT what)
{
	DAT_PROVIDER_INFO *info = kcalloc(IAS, sizeof(*info), GFP_KERNEL);
	DAT_PROVIDER_INFO *list[IAS];
	DAT_COUNT i, n = 0;

	if (!info)
		return;
	for (i = 0; i < IAS; i++)
		list[i] = &info[i];
	mutex_lock(&skeletons_mutex);
	skeleton_close_gone();
	if (dat_registry_list_providers(IAS, &n, list) != DAT_SUCCESS)
		n = 0;
	for (i = 0; i < n && i < IAS; i++)
		if (!skeleton_has(info[i].ia_name))
			skeleton_open(info[i].ia_name);
	mutex_unlock(&skeletons_mutex);
	kfree(info);
}

static int __init skeleton_init(void)
{
	/* First: an adapter that comes meanwhile is reported. */
	if (kdat_notifier_create(skeleton_changed, NULL, &notifier) != DAT_SUCCESS)
		return -ENOMEM;
	skeleton_changed(NULL, KDAT_CHANGED_IAS);
	return 0;
}
module_init(skeleton_init);

static void __exit skeleton_exit(void)
{
	struct skeleton *s, *next;

	kdat_notifier_free(notifier);
	list_for_each_entry_safe(s, next, &skeletons, link)
		skeleton_close(s);
}
module_exit(skeleton_exit);
MODULE_DESCRIPTION("A kDAPL consumer to begin with");
MODULE_LICENSE("Dual BSD/GPL");
