// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Switches and counters, for modules and in debugfs. */
#include <linux/debugfs.h>
#include <linux/module.h>
#include "sim.h"

static struct dentry *sim_debugfs;

static const char * const sim_switch_names[] = {
	KDAPL_SIM_SWITCH_NAMES(KDAPL_SIM_STRING)
};

static const char * const sim_counter_names[] = {
	KDAPL_SIM_COUNTER_NAMES(KDAPL_SIM_STRING)
};

/* Count down a number of times; true if it was not 0. Context: any. */
bool __sim_times(u32 *sw)
{
	u32 old = READ_ONCE(*sw);

	while (old && old != U32_MAX)
		if (try_cmpxchg(sw, &old, old - 1))
			break;
	return old;
}

/* Count down; true if that has led to 0. Context: any. */
bool __sim_nth(u32 *sw)
{
	u32 old = READ_ONCE(*sw);

	while (old)
		if (try_cmpxchg(sw, &old, old - 1))
			break;
	return old == 1;
}

static void sim_set(struct sim_dev *dev, unsigned int which, u32 value)
{
	WRITE_ONCE(dev->sw[which], value);
	switch (which) {
	case KDAPL_SIM_no_srq_resize:
		if (value)
			dev->ib.attrs.device_cap_flags &= ~IB_DEVICE_SRQ_RESIZE;
		else
			dev->ib.attrs.device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
		break;
	case KDAPL_SIM_port_down:
		sim_port_changed(dev);
		break;
	case KDAPL_SIM_stall_bytes:
	case KDAPL_SIM_hold_acks:
		sim_schedule_all(dev);
		break;
	}
	wake_up_all(&dev->switched);
}

/* Context: process context, as for port_down; any for the others. */
void kdapl_sim_set(struct ib_device *ibdev, enum kdapl_sim_switch which,
		   u32 value)
{
	sim_set(to_sim_dev(ibdev), which, value);
}
EXPORT_SYMBOL_GPL(kdapl_sim_set);

u32 kdapl_sim_get(struct ib_device *ibdev, enum kdapl_sim_switch which)
{
	return READ_ONCE(to_sim_dev(ibdev)->sw[which]);
}
EXPORT_SYMBOL_GPL(kdapl_sim_get);

/* All switches off. */
void kdapl_sim_reset(struct ib_device *ibdev)
{
	struct sim_dev *dev = to_sim_dev(ibdev);
	unsigned int i;

	for (i = 0; i < KDAPL_SIM_SWITCHES; i++)
		if (dev->sw[i])
			sim_set(dev, i, 0);
}
EXPORT_SYMBOL_GPL(kdapl_sim_reset);

long kdapl_sim_count(struct ib_device *ibdev, enum kdapl_sim_counter which)
{
	return atomic_long_read(&to_sim_dev(ibdev)->count[which]);
}
EXPORT_SYMBOL_GPL(kdapl_sim_count);

/* End a QP as a device does by itself; -ENOENT if there is no such QP. */
int kdapl_sim_kill_qp(struct ib_device *ibdev, u32 qpn, unsigned int how)
{
	struct sim_qp *qp = sim_qp_get(qpn);

	if (!qp)
		return -ENOENT;
	if (how & KDAPL_SIM_KILL_MUTE)
		WRITE_ONCE(qp->mute, true);
	sim_qp_to_err(qp);
	if (how & KDAPL_SIM_KILL_EVENT)
		sim_qp_event(qp, IB_EVENT_QP_FATAL);
	sim_qp_put(qp);
	return 0;
}
EXPORT_SYMBOL_GPL(kdapl_sim_kill_qp);

/* ---- debugfs ------------------------------------------------------------- */

/* The number of a file's switch or counter is its place in the directory. */
static unsigned int sim_file_index(struct file *file, const char * const *names,
				   unsigned int n)
{
	return match_string(names, n, file->f_path.dentry->d_name.name);
}

static ssize_t sim_read_number(char __user *buf, size_t n, loff_t *pos, long number)
{
	char text[24];

	return simple_read_from_buffer(buf, n, pos, text,
				       scnprintf(text, sizeof(text), "%ld\n", number));
}

static ssize_t sim_switch_read(struct file *file, char __user *buf, size_t n,
			       loff_t *pos)
{
	struct sim_dev *dev = file_inode(file)->i_private;
	unsigned int i = sim_file_index(file, sim_switch_names,
					KDAPL_SIM_SWITCHES);

	return sim_read_number(buf, n, pos, READ_ONCE(dev->sw[i]));
}

static ssize_t sim_switch_write(struct file *file, const char __user *buf,
				size_t n, loff_t *pos)
{
	struct sim_dev *dev = file_inode(file)->i_private;
	u32 value;
	int err;

	err = kstrtou32_from_user(buf, n, 0, &value);
	if (err)
		return err;
	sim_set(dev, sim_file_index(file, sim_switch_names,
				    KDAPL_SIM_SWITCHES), value);
	return n;
}

static const struct file_operations sim_switch_fops = {
	.owner = THIS_MODULE,
	.read = sim_switch_read,
	.write = sim_switch_write,
};

static ssize_t sim_counter_read(struct file *file, char __user *buf, size_t n,
				loff_t *pos)
{
	struct sim_dev *dev = file_inode(file)->i_private;
	unsigned int i = sim_file_index(file, sim_counter_names,
					KDAPL_SIM_COUNTERS);

	return sim_read_number(buf, n, pos, atomic_long_read(&dev->count[i]));
}

static const struct file_operations sim_counter_fops = {
	.owner = THIS_MODULE,
	.read = sim_counter_read,
};

/* Write "<qpn> <how>": kdapl_sim_kill_qp(). */
static ssize_t sim_kill_write(struct file *file, const char __user *buf,
			      size_t n, loff_t *pos)
{
	struct sim_dev *dev = file_inode(file)->i_private;
	char text[32] = { };
	u32 qpn, how;
	int err;

	if (n >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, n))
		return -EFAULT;
	if (sscanf(text, "%u %u", &qpn, &how) != 2)
		return -EINVAL;
	err = kdapl_sim_kill_qp(&dev->ib, qpn, how);
	return err ?: n;
}

static const struct file_operations sim_kill_fops = {
	.owner = THIS_MODULE,
	.write = sim_kill_write,
};

void sim_switch_add(struct sim_dev *dev, const char *name)
{
	unsigned int i;

	dev->debugfs = debugfs_create_dir(name, sim_debugfs);
	for (i = 0; i < KDAPL_SIM_SWITCHES; i++)
		debugfs_create_file(sim_switch_names[i], 0600, dev->debugfs,
				    dev, &sim_switch_fops);
	for (i = 0; i < KDAPL_SIM_COUNTERS; i++)
		debugfs_create_file(sim_counter_names[i], 0400, dev->debugfs,
				    dev, &sim_counter_fops);
	debugfs_create_file("kill_qp", 0200, dev->debugfs, dev, &sim_kill_fops);
}

void sim_switch_remove(struct sim_dev *dev)
{
	debugfs_remove_recursive(dev->debugfs);
}

void sim_switch_init(void)
{
	BUILD_BUG_ON(ARRAY_SIZE(sim_switch_names) != KDAPL_SIM_SWITCHES);
	sim_debugfs = debugfs_create_dir("kdapl_sim", NULL);
}

void sim_switch_exit(void)
{
	debugfs_remove_recursive(sim_debugfs);
}
