/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Configuration of kdapl_blk_tgt.ko: clients, subsystems, volumes and ports as
 * set up in configfs, see tgt_configfs.c. Locks: see tgt.h.
 */
#ifndef KDAPL_BLK_TGT_CONFIG_H
#define KDAPL_BLK_TGT_CONFIG_H

#include <linux/configfs.h>
#include <linux/errseq.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/uuid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat/kdat.h>
#include <dat/kdat_portal.h>
#include "kdapl_blk_proto.h"
#include "secret.h"
#include "tgt_storage.h"

/*
 * How long the removal of a directory or of a link waits for requests on the medium, which may
 * take for ever. The removal keeps the administrator from making and removing other
 * directories.
 */
#define KBT_STOP_WAIT	(2 * HZ)

struct kbt_io;

enum kbt_stat {
	KBT_STAT_CONNECTS,
	KBT_STAT_REFUSALS,
	KBT_STAT_DISCONNECTS,
	KBT_STAT_REQUESTS,
	KBT_STAT_READS,
	KBT_STAT_WRITES,
	KBT_STAT_READ_BYTES,
	KBT_STAT_WRITE_BYTES,
	KBT_STAT_ERROR_REPLIES,
	KBT_STAT_PROTOCOL_ERRORS,
	KBT_STAT_DTO_ERRORS,
	KBT_STAT_LOW_WATERMARK,
	KBT_STAT_THROTTLED,
	KBT_STAT_BROKEN,
	KBT_STAT_CUT_OFF,
	KBT_STAT_SILENT,
	KBT_STAT_STUCK,
	KBT_STAT_UNPROVEN,
	KBT_STAT_HANGING,
	KBT_STATS
};

extern struct kblk_hmac kbt_hmac;

/*
 * struct kbt_client - a client by name
 * @link: in kbt_clients; kbt_names
 * @secret: secret that the client must prove; without one any client may use the name;
 *	kbt_names
 */
struct kbt_client {
	struct config_group group;
	struct list_head link;
	struct kblk_secret secret;
};

/* A subsystem: volumes under one name, guarded by kbt_names. */
struct kbt_subsys {
	struct config_group group;
	struct config_group namespaces_group;
	struct config_group allowed_group;
	struct list_head namespaces;
	struct list_head allowed;
	bool allow_any;
	bool authenticate;
};

/* An entry of subsys->allowed or of port->subsystems. */
struct kbt_link {
	struct list_head link;
	void *to;
};

/* Logarithm of the number of buckets for the sessions of a volume, which may be thousands */
#define KBT_HASH_BITS	8

/*
 * struct kbt_ns - a volume
 * @link: in subsys->namespaces; kbt_names
 * @open_link: in kbt_open while open; kbt_config
 * @mutex: guards the attributes, @open, @file, and enabling and disabling
 * @nsid: number within the subsystem
 * @path: file or block device to serve
 * @set_uuid: UUID set by the administrator, or nil
 * @backing: UUID that must be derived from @path, or nil for any; see
 *	kbt_derive_uuid()
 * @uuid: UUID in use while open
 * @instance: see struct kblk_identify
 * @read_only: writes are refused
 * @open: @file is open: the volume is enabled, or is about to be closed
 * @enabled: clients may attach; kbt_names
 * @users: attachments of connections, plus one while enabled; kbt_names
 * @lock: guards @instance and @wb_since while open, and @sessions
 * @sessions: see tgt_session.c
 * @writers: see tgt_session.c; kbt_names
 * @wb_since: writeback errors up to this one were told to all sessions
 * @close_work: kbt_ns_close_work(), when @users has become 0
 * @closed: woken when @open was cleared
 * @io_wq: runs requests that may block on the medium, so that other volumes do not wait
 * @file: the backing, or NULL
 * @bdev: block device of @file, or NULL
 * @storage: where the data of @file is, see tgt_storage.c
 * @nowait: @bdev supports REQ_NOWAIT
 * @block_size: logical block size, bytes
 */
struct kbt_ns {
	struct config_group group;
	struct list_head link;
	struct kbt_subsys *subsys;
	struct list_head open_link;
	struct mutex mutex;		/* attributes, @open, @file */
	u32 nsid;
	char *path;
	uuid_t set_uuid;
	uuid_t backing;
	uuid_t uuid;
	u64 instance;
	bool read_only;
	bool open;
	bool enabled;
	unsigned int users;
	spinlock_t lock;		/* @sessions, flushes */
	DECLARE_HASHTABLE(sessions, KBT_HASH_BITS);
	DECLARE_HASHTABLE(writers, KBT_HASH_BITS);
	errseq_t wb_since;
	struct work_struct close_work;
	wait_queue_head_t closed;
	struct workqueue_struct *io_wq;
	struct file *file;
	struct block_device *bdev;
	struct kbt_storage storage;
	bool nowait;
	u32 block_size;
};

/* Parameters of a port; constant while it listens or is being stopped. */
struct kbt_params {
	char ia[DAT_NAME_MAX_LENGTH];
	u32 conn_qual;
	u32 credits;
	u32 io_depth;
	u32 max_conns;
	u32 max_queues;
	u32 srq_size;
	u32 srq_per_conn;
	u32 srq_max;
	u32 srq_low;
	u32 attach_ms;
	u32 penalty_ms;
	u32 reply_ms;
	u32 pages;
	u32 buffers;
	u32 max_transfer;
};

/*
 * struct kbt_port - a place where a target listens
 * @link: in kbt_ports; kbt_config
 * @subsystems: subsystems offered here; kbt_names
 * @portal: the port has subsystems; kbt_config
 * @mutex: guards @kbt and @kbts; also params.ia while there is a @kbt, as it follows the name
 *	of the device. Nests inside the lock of the server
 * @kbt: the port at work, or NULL
 * @kbts: number of struct kbt that are not freed: @kbt, and those that wait for a medium
 * @stopped: woken when @kbts has become less
 * @stats: enum kbt_stat
 */
struct kbt_port {
	struct config_group group;
	struct config_group subsys_group;
	struct list_head link;
	struct list_head subsystems;
	struct kbt_params params;
	KDAT_PORTAL_HANDLE portal;
	struct mutex mutex;		/* @kbt, @kbts */
	struct kbt *kbt;
	unsigned int kbts;
	wait_queue_head_t stopped;
	atomic64_t stats[KBT_STATS];
};

/* tgt_attach.c */
bool kbt_may_use(struct kbt_subsys *subsys, const char *name);

/* tgt_list.c */
enum kblk_status kbt_list(struct kbt_io *io, const struct kblk_attach *attach);

/* tgt_adapter.c */
int kbt_server_start(void);
void kbt_server_stop(void);
int kbt_port_up(struct kbt_port *port);
void kbt_port_down(struct kbt_port *port);
void kbt_port_wait(struct kbt_port *port);
void kbt_port_follow(struct kbt_port *port);

#endif /* KDAPL_BLK_TGT_CONFIG_H */
