/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites of kdapl_blk_tgt.ko share: each case loads the target, talks
 * to it in raw DTOs, and in the end expects that it serves other clients and
 * has all its receive buffers. Implemented in blk_target.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_TARGET_H
#define KDAPL_KUNIT_BLK_TARGET_H

#include <linux/uuid.h>
#include "../../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "blk_hosts.h"
#include "fixture.h"
#include "shell.h"

#define TGT_KO		"/run/out/modules/kdapl_blk_tgt.ko"
#define TGT_STATS	TGT "/ports/1/stats"
#define TGT_FILE	"/tmp/kdapl_blk_test"
#define TGT_OTHER_PORT	(TGT_PORT + 1)
#define TGT_CREDITS	8

#define FILE_SIZE	SZ_1M
#define FILE_SEED	42

/* Parts of side->buf. */
#define REQUEST_AT	0
#define REPLY_AT	SZ_8K
#define INLINE_AT	(REPLY_AT + sizeof(struct kblk_reply))
#define DATA_AT		SZ_16K

/* ---- The target ---------------------------------------------------------- */

struct backing;

void tgt_unload(void *data);
void tgt_load_with(struct kunit *test, const char *more);
void tgt_reload(struct kunit *test);
struct backing *tgt_load_two_ports(struct kunit *test);
bool tgt_has_all_buffers(void *unused);
bool tgt_has_cut_off(void *unused);

/* ---- A client ------------------------------------------------------------ */

extern u32 kdb_hello_features;	/* that clients ask for; 0 after tgt_load() */

extern u32 kdb_credits;	/* of the client welcomed last, with those of kdb_ask() */
extern u32 kdb_granted;	/* features of that client */

struct kblk_hello kdb_good_hello(void);
struct kblk_request kdb_good_request(struct kd_side *side);
struct kd_side *kdb_client(struct kunit *test);
void kdb_say_hello(struct kd_side *side, const void *hello, size_t len);
const struct kblk_welcome *
kdb_expect_welcome(struct kd_side *side, DAT_EVENT_NUMBER number);
void kdb_post_reply_buffer(struct kd_side *side);
struct kd_side *
kdb_welcome_client(struct kunit *test, const struct kblk_hello *hello);
void kdb_send_request(struct kd_side *side, const struct kblk_request *request,
		      size_t len);
u16 kdb_ask(struct kd_side *side, const struct kblk_request *request);
u16 kdb_fence(struct kd_side *side, u32 nsid, const struct kblk_hello *hello);
void kdb_expect_fenced(struct kd_side *side, u32 nsid, const struct kblk_hello *hello);
u16 kdb_connects_as(struct kd_side *side, const struct kblk_hello *hello);
u16 kdb_connects(struct kd_side *side);
u16 kdb_one_more(struct kunit *test, struct kd_side **side);
const struct kblk_identify *kdb_ask_identify(struct kd_side *side);
extern uuid_t kdb_host;	/* that clients tell; nil after tgt_load() */

u16 kdb_attach_as(struct kd_side *side, const char *name, const char *subsystem,
		  u32 namespace, u32 keepalive_ms);
struct kd_side *kdb_connected_client(struct kunit *test);
void kdb_expect_end(struct kd_side *side);
void kdb_expect_serving(struct kunit *test);

#endif /* KDAPL_KUNIT_BLK_TARGET_H */
