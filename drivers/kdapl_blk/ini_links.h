/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which disks share a link, and the name of the link's adapter: ini_links.c. */
#ifndef KDAPL_BLK_INI_LINKS_H
#define KDAPL_BLK_INI_LINKS_H

#include <dat/kdat.h>

struct kbi_disk;
struct kbi_link;

struct kbi_link *kbi_link_of(struct kbi_disk *disk);
void kbi_link_put(struct kbi_link *link);
int kbi_link_join(struct kbi_disk *disk);
void kbi_link_quit(struct kbi_disk *disk);
void kbi_link_hide(struct kbi_link *link);
void kbi_link_ia(struct kbi_link *link, char name[DAT_NAME_MAX_LENGTH]);
void kbi_ia_abort(struct kbi_link *link);
DAT_RETURN kbi_link_open_ia(struct kbi_link *link, DAT_COUNT qlen);
void kbi_link_knows_ia(struct kbi_link *link);
void kbi_disk_ia(struct kbi_disk *disk, char name[DAT_NAME_MAX_LENGTH]);

#endif /* KDAPL_BLK_INI_LINKS_H */
