/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loss and recovery of a disk, or of the link that disks share: ini_recover.c. When attempts
 * are made: ini_retry.c.
 */
#ifndef KDAPL_BLK_INI_RECOVER_H
#define KDAPL_BLK_INI_RECOVER_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct kbi_disk;
struct kbi_link;

/* ini_recover.c */
void kbi_connect_work(struct work_struct *work);
int kbi_connect_begin(struct kbi_disk *disk);
int kbi_connect_error(struct kbi_disk *disk, int err);
void kbi_disk_quit(struct kbi_disk *disk);
int kbi_disk_end(struct kbi_disk *disk);
void kbi_end_work(struct work_struct *work);
int kbi_disk_attach(struct kbi_disk *disk);
void kbi_disk_go_live(struct kbi_disk *disk);
void kbi_disk_lost(struct kbi_disk *disk);
bool kbi_disk_stop(struct kbi_disk *disk);
void kbi_disk_down(struct kbi_disk *disk);
void kbi_disk_detached(struct kbi_disk *disk);
void kbi_recover_work(struct work_struct *work);
void kbi_disk_go_on(struct kbi_disk *disk, unsigned int attempts);
void kbi_give_up(struct kbi_disk *disk);
void kbi_fail_work(struct work_struct *work);

/* ini_retry.c */
bool kbi_is_known(struct kbi_disk *disk);
bool kbi_has_waited(struct kbi_disk *disk);
bool kbi_is_due(struct kbi_disk *disk);
bool kbi_is_held_off(struct kbi_disk *disk);
bool kbi_has_turn(struct kbi_disk *disk);
bool kbi_is_wanted(struct kbi_disk *disk, bool ends_link);
void kbi_disk_flaps(struct kbi_disk *disk);
void kbi_disk_go_behind(struct kbi_disk *disk);
void kbi_disk_blame(struct kbi_disk *disk);
void kbi_disk_spoils(struct kbi_disk *disk, unsigned int n);
bool kbi_is_kept_off(struct kbi_disk *disk, unsigned int n);
void kbi_recover_wait(struct kbi_disk *disk);
void kbi_recover_later(struct kbi_disk *disk);
void kbi_link_flaps(struct kbi_link *link);
void kbi_link_wait(struct kbi_link *link);
void kbi_retry_later(struct kbi_link *link);
bool kbi_retry_without(struct kbi_link *link);

#endif /* KDAPL_BLK_INI_RECOVER_H */
