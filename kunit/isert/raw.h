/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_isert_kunit.ko: an initiator of iSER that sends what it is told to, right or
 * wrong; and the target of LIO that it speaks with.
 *
 * A suite of it has the fixture RAW_TARGET.
 */
#ifndef KDAPL_ISERT_RAW_H
#define KDAPL_ISERT_RAW_H

#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <dat/kdat_linux.h>
#include "fixture.h"

#define RAW_PORT	3270
#define RAW_NONE	cpu_to_be32(0xffffffff)
#define RAW_BLOCK	512

/* A PDU as it is sent: headers, and room for data. */
struct raw_pdu {
	struct iser_ctrl iser;
	struct iscsi_hdr hdr;
	u8 data[900];
} __packed;

#define RAW_HEADERS	offsetof(struct raw_pdu, data)
#define RAW_SENDS	48
#define RAW_RECVS	8
#define RAW_RECV_LEN	SZ_2K

/*
 * struct raw - a connection
 * @data: memory that the target may read and write
 * @cmdsn: of the next command that is not immediate
 * @itt: of the next command
 * @exp_statsn: next status
 * @max_cmdsn: as the target has said last
 * @sent: PDUs sent so far
 * @broken: connections that the target had broken before this one was made
 * @session: qualifier of its ISID
 * @invalidate: answers may invalidate the keys that commands have
 * @got: the last PDU received
 * @made: the PDU that was built last
 * @pdu: room for PDUs that are sent together
 */
struct raw {
	struct kd_side *s;
	struct kd_buf *data;
	u32 cmdsn;
	u32 itt;
	u32 exp_statsn;
	u32 max_cmdsn;
	unsigned int sent;
	long broken;
	u32 session;
	bool invalidate;
	struct raw_pdu got;
	struct raw_pdu made;
	struct raw_pdu pdu[KDAT_MAX_REQUESTS];
};

/* How somebody logs in. */
enum raw_how {
	RAW_SOLICITED,			/* the target asks for data */
	RAW_UNSOLICITED,		/* some may come by itself */
	RAW_SHORT,			/* as the first, and answers are short */
	RAW_SHORT_SEGMENTS,		/* as the second, in as many PDUs as can be */
	RAW_LONG_SEGMENTS,		/* as the first, and it would send long PDUs */
	RAW_DISCOVERY,
};

/* The target, and connections: raw.c. */
int raw_target_up(struct kunit_suite *suite);
void raw_target_down(struct kunit_suite *suite);
int raw_init(struct kunit *test);
#define RAW_TARGET	\
	.init = raw_init, .suite_init = raw_target_up, .suite_exit = raw_target_down
long raw_adapter(struct kd_side *s, const char *name);
bool raw_wait_adapter(struct kd_side *s, const char *name, long least, long most,
		      unsigned int ms);
long raw_sessions(struct kunit *test);
long raw_sessions_with(struct kunit *test, const char *state);
long raw_session(struct kunit *test, const char *name);
bool raw_nobody_is_there(void *test);
bool raw_wait_sessions(struct kunit *test, long n, unsigned int ms);
struct raw *raw_new(struct kunit *test, u64 recvs);
void raw_post(struct raw *r, u64 slot);
bool raw_start(struct raw *r);
bool raw_start_at(struct raw *r, DAT_CONN_QUAL port);
struct raw *raw_connect(struct kunit *test);
void raw_close(struct raw *r);
bool raw_send(struct raw *r, const struct raw_pdu *pdu, u32 len);
bool raw_send_all(struct raw *r, const struct raw_pdu *pdu, const u32 *len,
		  unsigned int n);
bool raw_send_long(struct raw *r, const struct raw_pdu *pdu, u32 data);
bool raw_receive_any(struct raw *r, unsigned int ms);
bool raw_receive(struct raw *r, u8 opcode, unsigned int ms);
bool raw_is_down(struct raw *r, unsigned int ms);
void raw_expect_cut(struct raw *r);

/* Where raw_fail_allocation() has an allocation fail: raw_fault.c. */
enum raw_where {
	RAW_IN_UPCALLS,			/* as PDUs arrive, and requests complete */
	RAW_IN_COMPLETIONS,		/* as backends complete commands */
	RAW_IN_ANSWERS,			/* LIO's transmitting thread of the last session */
	RAW_IN_PORTAL,			/* LIO's thread that lets initiators in */
};

void raw_open_faults(struct kunit *test);
void raw_fail_allocation(struct kunit *test, enum raw_where where, unsigned int nth);
bool raw_allocation_failed(void);

/*
 * PDUs: raw_pdu.c. They are built in r->made and copied from there, as KASAN gives each call that
 * returns a structure room of its own on the stack of its caller.
 */
struct raw *raw_login(struct kunit *test);
struct raw *raw_login_odd(struct kunit *test);
struct raw *raw_login_how(struct kunit *test, enum raw_how how);
void raw_request_login(struct raw *r, enum raw_how how, bool whole);
void raw_log_in(struct raw *r, enum raw_how how);
struct raw_pdu *raw_build_login(struct raw *r, enum raw_how how, u32 *len);
struct raw_pdu *raw_build(struct raw *r, u8 opcode);
struct raw_pdu *raw_build_nop(struct raw *r, bool immediate);
struct raw_pdu *raw_build_write(struct raw *r, u32 blocks);
struct raw_pdu *raw_build_read(struct raw *r, u32 blocks);
struct raw_pdu *raw_build_logout(struct raw *r);
struct raw_pdu *raw_build_task(struct raw *r, u8 function, itt_t rtt);
#define raw_login_pdu(r, how, len)	(*raw_build_login(r, how, len))
#define raw_make(r, opcode)		(*raw_build(r, opcode))
#define raw_nop(r, immediate)		(*raw_build_nop(r, immediate))
#define raw_write(r, blocks)		(*raw_build_write(r, blocks))
#define raw_read(r, blocks)		(*raw_build_read(r, blocks))
#define raw_logout(r)			(*raw_build_logout(r))
#define raw_task(r, function, rtt)	(*raw_build_task(r, function, rtt))
void raw_in_turn(struct raw *r, struct raw_pdu *pdu);
struct raw_pdu raw_data_out(const struct raw_pdu *write, u32 offset, u32 len);
bool raw_ping(struct raw *r);
void raw_expect_alive(struct raw *r);

#endif
