/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites about connections share that several volumes have
 * (KBLK_FEATURE_VOLUMES). Implemented in blk_volumes.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_VOLUMES_H
#define KDAPL_KUNIT_BLK_VOLUMES_H

#include "blk_backing.h"
#include "blk_target.h"

#define SHARING		(KBLK_FEATURE_HOST | KBLK_FEATURE_CREDITS |		\
			 KBLK_FEATURE_VOLUMES)
#define VOLUME(n)	TGT "/subsystems/vol/namespaces/" #n
/* Numbers of the volumes in memory; volume 1 is a file. */
#define SLOW		2
#define QUICK		3
/* Slots of a connection: fewer than the credits that a client asks for */
#define SLOTS		6
#define MANY_SLOTS	"echo 6 >io_depth"

extern struct backing *kdb_slow, *kdb_quick;	/* their media */

void kdb_load_volumes(struct kunit *test, const char *more);
void kdb_release_volumes(void *unused);
struct kblk_request kdb_request_of(struct kd_side *side, u8 opcode, u32 nsid);
struct kblk_request kdb_write_request(struct kd_side *side, u32 nsid, u64 n,
				      char with);
void kdb_expect_serving_alone(struct kunit *test);

/* ---- Clients -------------------------------------------------------------- */

u16 kdb_attach_volume(struct kd_side *side, u32 nsid);
void kdb_expect_attached(struct kd_side *side, u32 nsid);
struct kd_side *kdb_shared_client(struct kunit *test,
				  const struct kblk_hello *hello);
u16 kdb_ask_volume(struct kd_side *side, u8 opcode, u32 nsid);
u16 kdb_detach_volume(struct kd_side *side, u32 nsid);
u16 kdb_write_page(struct kd_side *side, u32 nsid, u64 n, char with);
void kdb_send_later(struct kd_side *side, const struct kblk_request *request);
void kdb_take_replies(struct kd_side *side, int n);
u16 kdb_last_status(struct kd_side *side);
bool kdb_is_held(void *data);
void kdb_write_for_ever(struct kd_side *side);
bool kdb_is_connected(struct kd_side *side);
void kdb_expect_quick(struct kd_side *side);
void kdb_get_credits(struct kd_side *side);

#endif /* KDAPL_KUNIT_BLK_VOLUMES_H */
