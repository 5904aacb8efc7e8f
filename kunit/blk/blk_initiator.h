/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites of kdapl_blk.ko share: the module is loaded and connects in a
 * work item; the case is its target. Implemented in blk_initiator.c,
 * kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_INITIATOR_H
#define KDAPL_KUNIT_BLK_INITIATOR_H

#include <linux/completion.h>
#include "../../drivers/kdapl_blk/kdapl_blk_proto.h"
#include "fixture.h"
#include "shell.h"

#define INI_KO		"/run/out/modules/kdapl_blk.ko"
#define INI_DISK	"/sys/kernel/config/kdapl_blk/disk"
#define INI_DEPTH	4
#define VOLUME_SIZE	SZ_1M

/* Parts of side->buf. */
#define REPLY_AT	0
#define DATA_AT		sizeof(struct kblk_reply)
#define REQUEST_AT	SZ_16K
/* A request with data, and one without in front of it. */
#define REQUEST_SIZE	(2 * sizeof(struct kblk_request) + KBLK_INLINE)

/* Time-out for an answer, in ms. */
#define QUICK		"1000"
#define PATIENT		"60000"

/* ---- The initiator ------------------------------------------------------- */

/* Attributes of the disk that cases change, as the files of configfs are named. */
struct ini_attrs {
	const char *timeout_ms;
	const char *give_up_ms;
	const char *connect_timeout_ms;
	const char *reconnect_max_ms;
	const char *uuid;
	const char *keepalive_ms;
	const char *secret;
	const char *read_queues;
	const char *depth;
	const char *share;
};

extern struct ini_attrs ini_attrs;
extern struct completion ini_ended;	/* connecting, or a command, has ended */
extern int ini_error;			/* of connecting */

int ini_init(struct kunit *test);
int ini_put(const char *attr, const char *value);
void kdb_make_disk(struct kd_side *side, u16 port);
void ini_connect_start(struct kd_side *side, u16 port);
bool ini_connect_end(struct kunit *test);
void ini_unload(struct kunit *test);

/* ---- The target ---------------------------------------------------------- */

extern u16 ini_port;			/* that the initiator connects to */
extern struct kblk_hello ini_hello;	/* of the connection accepted last */

struct kblk_welcome kdb_good_welcome(void);
struct kd_side *kdb_new_target(struct kunit *test);
void kdb_accept(struct kd_side *side, DAT_PSP_HANDLE psp,
		const struct kblk_welcome *welcome);
void kdb_welcome_at(struct kd_side *side, bool start,
		    const struct kblk_welcome *welcome);
struct kd_side *kdb_welcome_one(struct kunit *test, bool start,
				const struct kblk_welcome *welcome);
struct kblk_identify kdb_good_identify(void);
const struct kblk_request *
kdb_expect_request(struct kd_side *side, int n, enum kblk_opcode opcode);
struct kblk_reply kdb_good_reply(const struct kblk_request *request,
				 u32 inlined);
void kdb_answer(struct kd_side *side, const struct kblk_reply *reply,
		const struct kblk_identify *identify, size_t len);
void kdb_attach(struct kd_side *side);
void kdb_identify_as(struct kd_side *side,
		     const struct kblk_identify *identify);
struct kd_side *kdb_welcome_attached(struct kunit *test);

#endif /* KDAPL_KUNIT_BLK_INITIATOR_H */
