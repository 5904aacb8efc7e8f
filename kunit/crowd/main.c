// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_crowd.ko: many clients of a storage target, or of an NFS server, made of raw DTOs,
 * polite or not. Loading it connects them and lets them read until it is unloaded. In
 * <debugfs>/kdapl_crowd:
 *
 *   events    a line for each: time in ns, client, what: connected, cut, refused
 *   clients   a line for each: number, requests sent, answered,
 *             failed, and how often it was cut off
 *   summary   the sums, and for how long, in ns
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include "crowd.h"

static char *ia = "rxe0/1";
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "IA to use");

static char *address = "";
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "address of the target");

static char *protocol = "kblk";
module_param(protocol, charp, 0444);
MODULE_PARM_DESC(protocol, "kblk: kdapl_blk_tgt; nvme: nvmet-rdma; iser: iSER; nfs: kdapl_svcrdma");

unsigned int crowd_port = 5100;
module_param_named(port, crowd_port, uint, 0444);
MODULE_PARM_DESC(port, "connection qualifier of the target");

char *crowd_subsystem = "";
module_param_named(subsystem, crowd_subsystem, charp, 0444);
MODULE_PARM_DESC(subsystem, "subsystem to read; name of the iSER target");

unsigned int crowd_namespace = 1;
module_param_named(namespace, crowd_namespace, uint, 0444);
MODULE_PARM_DESC(namespace, "and the volume in it");

unsigned int crowd_clients = 1;
module_param_named(clients, crowd_clients, uint, 0444);
MODULE_PARM_DESC(clients, "how many");

unsigned int crowd_window = 512;
module_param_named(window, crowd_window, uint, 0444);
MODULE_PARM_DESC(window, "requests that each has outstanding");

unsigned int crowd_length = 4096;
module_param_named(length, crowd_length, uint, 0444);
MODULE_PARM_DESC(length, "bytes of each read");

unsigned int crowd_again_ms;
module_param_named(again_ms, crowd_again_ms, uint, 0444);
MODULE_PARM_DESC(again_ms, "when to connect again after being cut off; 0: never");

bool crowd_polite;
module_param_named(polite, crowd_polite, bool, 0444);
MODULE_PARM_DESC(polite, "keep to the credits that the target gives");

bool crowd_idle;
module_param_named(idle, crowd_idle, bool, 0444);
MODULE_PARM_DESC(idle, "be connected, and send nothing more");

/* ---- What has happened --------------------------------------------------- */

#define CROWD_NOTES	8192

static const char * const crowd_event_names[CROWD_EVENTS] = {
	[CROWD_CONNECTED] = "connected",
	[CROWD_CUT] = "cut",
	[CROWD_REFUSED] = "refused",
};

static struct crowd_note {
	u64 at;
	unsigned int client;
	enum crowd_event what;
} crowd_notes[CROWD_NOTES];

static atomic_t crowd_noted;
static u64 crowd_began;
static struct dentry *crowd_dir;

void crowd_note(enum crowd_event what, unsigned int client)
{
	unsigned int n = atomic_inc_return(&crowd_noted) - 1;

	if (n < CROWD_NOTES)
		crowd_notes[n] = (struct crowd_note) {
			ktime_get_ns(), client, what
		};
}

static int events_show(struct seq_file *m, void *unused)
{
	unsigned int n = min(atomic_read(&crowd_noted), CROWD_NOTES);
	unsigned int i;

	for (i = 0; i < n; i++)
		seq_printf(m, "%llu %u %s\n", crowd_notes[i].at,
			   crowd_notes[i].client,
			   crowd_event_names[crowd_notes[i].what]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(events);

static int clients_show(struct seq_file *m, void *unused)
{
	const struct crowd_client *client;
	unsigned int i;

	for (i = 0; i < crowd_clients; i++) {
		client = &crowd.clients[i];
		seq_printf(m, "%u %lld %lld %lld %u\n", i,
			   atomic64_read(&client->sent),
			   atomic64_read(&client->answered),
			   atomic64_read(&client->errors), client->cuts);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clients);

static int summary_show(struct seq_file *m, void *unused)
{
	u64 sent = 0, answered = 0, errors = 0;
	unsigned int i;

	for (i = 0; i < crowd_clients; i++) {
		errors += atomic64_read(&crowd.clients[i].errors);
		sent += atomic64_read(&crowd.clients[i].sent);
		answered += atomic64_read(&crowd.clients[i].answered);
	}
	seq_printf(m, "clients %u\nsent %llu\nanswered %llu\nerrors %llu\nns %llu\n",
		   crowd_clients, sent, answered, errors,
		   ktime_get_ns() - crowd_began);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(summary);

/* ---- The module ---------------------------------------------------------- */

static int crowd_check(void)
{
	if (!strcmp(protocol, crowd_kblk.name))
		crowd.protocol = &crowd_kblk;
	else if (!strcmp(protocol, crowd_nvme.name))
		crowd.protocol = &crowd_nvme;
	else if (!strcmp(protocol, crowd_iser.name))
		crowd.protocol = &crowd_iser;
	else if (!strcmp(protocol, crowd_nfs.name))
		crowd.protocol = &crowd_nfs;
	if (!crowd.protocol || !crowd_clients || !crowd_window ||
	    crowd_window > 8192 || !crowd_length || crowd_length % 512 ||
	    crowd_length > CROWD_DATA_SIZE)
		return -EINVAL;
	if (crowd.protocol->prepare && crowd_clients * crowd_window > CROWD_REQUESTS)
		return -EINVAL;
	return 0;
}

static int __init crowd_init(void)
{
	int err = crowd_check();

	if (err)
		return err;
	err = crowd_open(ia, address) ?: crowd_begin();
	if (err) {
		crowd_close();
		return err;
	}
	crowd_began = ktime_get_ns();
	crowd_dir = debugfs_create_dir("kdapl_crowd", NULL);
	debugfs_create_file("events", 0444, crowd_dir, NULL, &events_fops);
	debugfs_create_file("clients", 0444, crowd_dir, NULL, &clients_fops);
	debugfs_create_file("summary", 0444, crowd_dir, NULL, &summary_fops);
	return 0;
}
module_init(crowd_init);

static void __exit crowd_exit(void)
{
	debugfs_remove_recursive(crowd_dir);
	crowd_end();
	crowd_close();
}
module_exit(crowd_exit);

MODULE_DESCRIPTION("Clients of a storage target, polite or not");
MODULE_LICENSE("Dual BSD/GPL");
