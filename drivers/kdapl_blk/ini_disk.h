/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The block layer's side of a disk: see ini_disk.c.
 */
#ifndef KDAPL_BLK_INI_DISK_H
#define KDAPL_BLK_INI_DISK_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct kbi_disk;
struct request;

int kbi_disk_add(struct kbi_disk *disk);
int kbi_disk_show(struct kbi_disk *disk);
void kbi_disk_del(struct kbi_disk *disk);
bool kbi_disk_quiesce(struct kbi_disk *disk);
void kbi_disk_wait_quiesced(struct kbi_disk *disk);
void kbi_disk_unquiesce(struct kbi_disk *disk);
void kbi_disk_cancel(struct kbi_disk *disk);
void kbi_disk_wait_cancelled(struct kbi_disk *disk);
void kbi_disk_account(struct kbi_disk *disk, struct request *rq);
void kbi_disk_complete(struct request *rq);
void kbi_resize_later(struct kbi_disk *disk);
void kbi_resize_work(struct work_struct *work);

#endif /* KDAPL_BLK_INI_DISK_H */
