// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_probe.ko: an honest user of a disk. From loading to unloading it reads 4 KiB
 * at random, one read at a time, and notes how long each took:
 *
 *   <debugfs>/kdapl_probe/latency   a line for each read: when it began and how
 *				     long it took, in ns; the clock is that of
 *				     kdapl_crowd.ko
 */
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>
#include "param.h"

#define PROBE_SIZE	SZ_4K

static char *device = "/dev/kdapl0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "what to read");

KD_PARAM(room, uint, 1 << 19, "reads to note; later ones are not");

struct probe_sample {
	u64 at;
	u64 took;
};

static struct {
	struct file *file;
	struct page *page;
	struct task_struct *task;
	struct dentry *dir;
	struct probe_sample *samples;
	unsigned int n;
	int err;
} probe;

static int probe_read(struct block_device *bdev, u64 blocks)
{
	struct bio_vec bvec;
	struct bio bio;
	int err;

	bio_init(&bio, bdev, &bvec, 1, REQ_OP_READ);
	bio.bi_iter.bi_sector = (get_random_u32() % blocks) *
				(PROBE_SIZE >> SECTOR_SHIFT);
	__bio_add_page(&bio, probe.page, PROBE_SIZE, 0);
	err = submit_bio_wait(&bio);
	bio_uninit(&bio);
	return err;
}

static int probe_thread(void *data)
{
	struct inode *inode = probe.file->f_mapping->host;
	u32 blocks = min_t(u64, i_size_read(inode) / PROBE_SIZE, U32_MAX);
	struct probe_sample sample;

	while (!kthread_should_stop() && !probe.err) {
		sample.at = ktime_get_ns();
		probe.err = probe_read(I_BDEV(inode), blocks);
		sample.took = ktime_get_ns() - sample.at;
		if (probe.n < room && !probe.err) {
			probe.samples[probe.n] = sample;
			/*
			 * Pairs with smp_load_acquire() of the readers: a
			 * reader that sees the new number sees the sample.
			 */
			smp_store_release(&probe.n, probe.n + 1);
		}
	}
	if (probe.err)
		pr_err("kdapl_probe: %s: error %d\n", device, probe.err);
	/* kthread_stop() waits for the thread, so it must not end before. */
	while (!kthread_should_stop())
		schedule_timeout_interruptible(HZ);
	return 0;
}

static void *latency_start(struct seq_file *m, loff_t *pos)
{
	/* Pairs with smp_store_release() in probe_thread(). */
	return *pos < smp_load_acquire(&probe.n) ? &probe.samples[*pos] : NULL;
}

static void *latency_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return latency_start(m, pos);
}

static void latency_stop(struct seq_file *m, void *v)
{
}

static int latency_show(struct seq_file *m, void *v)
{
	struct probe_sample *sample = v;

	seq_printf(m, "%llu %llu\n", sample->at, sample->took);
	return 0;
}

static const struct seq_operations latency_sops = {
	.start = latency_start,
	.next = latency_next,
	.stop = latency_stop,
	.show = latency_show,
};
DEFINE_SEQ_ATTRIBUTE(latency);

static void probe_free(void)
{
	vfree(probe.samples);
	if (probe.page)
		__free_page(probe.page);
	if (!IS_ERR_OR_NULL(probe.file))
		filp_close(probe.file, NULL);
}

static int __init probe_init(void)
{
	int err = -ENOMEM;

	probe.samples = vmalloc(array_size(room, sizeof(*probe.samples)));
	probe.page = alloc_page(GFP_KERNEL);
	if (!probe.samples || !probe.page)
		goto free;
	probe.file = filp_open(device, O_RDONLY, 0);
	err = PTR_ERR_OR_ZERO(probe.file);
	if (err)
		goto free;
	err = -ENOTBLK;
	if (!S_ISBLK(probe.file->f_mapping->host->i_mode) ||
	    i_size_read(probe.file->f_mapping->host) < PROBE_SIZE)
		goto free;
	probe.task = kthread_run(probe_thread, NULL, "kdapl_probe");
	err = PTR_ERR_OR_ZERO(probe.task);
	if (err)
		goto free;
	probe.dir = debugfs_create_dir("kdapl_probe", NULL);
	debugfs_create_file("latency", 0444, probe.dir, NULL, &latency_fops);
	return 0;

free:
	probe_free();
	return err;
}
module_init(probe_init);

static void __exit probe_exit(void)
{
	debugfs_remove_recursive(probe.dir);
	kthread_stop(probe.task);
	probe_free();
}
module_exit(probe_exit);

MODULE_DESCRIPTION("Latency of a disk");
MODULE_LICENSE("Dual BSD/GPL");
