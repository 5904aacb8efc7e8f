/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the suites share that use the disk of kdapl_blk.ko: commands that use
 * it, and a target that serves it. Implemented in blk_serve.c, kdapl_blk_kunit.ko.
 */
#ifndef KDAPL_KUNIT_BLK_SERVE_H
#define KDAPL_KUNIT_BLK_SERVE_H

#include "blk_initiator.h"

/* ---- Commands that use the disk --------------------------------------------- */

#define READ_MUCH	"dd if=/dev/kdapl0 of=/dev/null bs=64k count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ONE	"dd if=/dev/kdapl0 of=/dev/null bs=512 count=1 "	\
			"iflag=direct 2>/dev/null"
#define READ_ALL	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 "	\
			"iflag=direct 2>/dev/null"
/* As many requests as the disk may have outstanding. */
#define READ_THREE	"dd if=/dev/kdapl0 of=/dev/null bs=192k count=1 "	\
			"iflag=direct 2>/dev/null"
#define WRITE_ONE	"dd if=/dev/zero of=/dev/kdapl0 bs=512 count=1 "	\
			"oflag=direct conv=notrunc 2>/dev/null"
#define WRITE_TWO	WRITE_ONE "& " WRITE_ONE "; one=$?; wait $! && exit $one"
/* Read sectors of different pages, which should be full of "a" and of "b". */
#define READ_FULL(c, at)	"test $(dd if=/dev/kdapl0 bs=512 count=1 skip=" at	\
			" iflag=direct 2>/dev/null | tr -dc " c " | wc -c) = 512"
#define READ_TWO	READ_FULL("a", "0") "& " READ_FULL("b", "8")		\
			"; one=$?; wait $! && exit $one"
#define READ_BOTH	READ_MUCH "& " READ_ONE "; one=$?; wait $! && exit $one"
/* Reads are not direct, so that the block layer has several at a time. */
#define READ_AHEAD	"dd if=/dev/kdapl0 of=/dev/null bs=1M count=1 2>/dev/null"
#define WRITE_BEHIND	"dd if=/dev/zero of=/dev/kdapl0 bs=68k count=1 "	\
			"conv=notrunc,fsync 2>/dev/null"
#define FLUSH_IT	"dd if=/dev/null of=/dev/kdapl0 count=0 "	\
			"conv=notrunc,fsync 2>/dev/null"

/* Attributes that disks with connections in common have in common */
#define INI_COPIED	"ia address conn_qual subsystem client queues depth timeout_ms " \
			"connect_timeout_ms keepalive_ms reconnect_ms reconnect_max_ms "  \
			"give_up_ms share"
/* Make a disk of volume @n, a string, beside the first. @more: other parameters. */
#define CONNECT_BESIDE(n, more)	"set -e; n=" n "; cd " INI_DISK "; mkdir -p " INI_DISK	\
			"$n; for a in " INI_COPIED "; do cat $a >" INI_DISK "$n/$a; "	\
			"done; cd " INI_DISK "$n; echo $n >namespace; " more "; "	\
			"echo 1 >connected"
#define READ_SECOND	"dd if=/dev/kdapl1 of=/dev/null bs=512 count=1 "	\
			"iflag=direct 2>/dev/null"
/* What a target grants that lets disks share connections */
#define SHARING	(KBLK_FEATURE_VOLUMES | KBLK_FEATURE_HOST | KBLK_FEATURE_CREDITS)

extern int ini_status;			/* of the command that has ended last */

void kdb_start_command(char *command);
void kdb_wait_command(void);

/* ---- A target that serves -------------------------------------------------- */

extern unsigned int kdb_most_requests;	/* in a message, since this was set to 0 */

u8 kdb_serve_one(struct kd_side *side, const struct kblk_request *request);
u8 kdb_serve_leaving(struct kd_side *side, const struct kblk_request *request);
int kdb_serve(struct kd_side *side, u8 opcode);
int kdb_serve_command(struct kd_side *side, char *command, u8 opcode);
struct kblk_request kdb_request_sent(struct kd_side *side,
				     const DAT_DTO_COMPLETION_EVENT_DATA *dto);
struct kblk_welcome kdb_welcome_with(u32 features);
struct kd_side *kdb_listen(struct kunit *test, DAT_PSP_HANDLE *psp);
const struct kblk_request *kdb_next_request(struct kd_side *side);
const struct kblk_request *kdb_begin_command(struct kd_side *side,
					     char *command);
struct kd_side *kdb_serve_disk(struct kunit *test,
			       const struct kblk_welcome *welcome,
			       const struct kblk_identify *identify);
struct kd_side *kdb_serve_again(struct kunit *test,
				const struct kblk_identify *identify);
void kdb_expect_removable(struct kunit *test);
bool ini_is_connected(void *unused);
void kdb_serve_exit(struct kunit *test);
/* The fixture of a suite whose disk a case of it serves */
#define KDB_SERVE	.init = ini_init, .exit = kdb_serve_exit

#endif /* KDAPL_KUNIT_BLK_SERVE_H */
