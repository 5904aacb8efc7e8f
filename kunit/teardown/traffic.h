/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What removal.c and close.c tear down: sides with traffic both ways, an upcall that
 * does not return, all the objects of a side.
 */
#ifndef KDAPL_KUNIT_TRAFFIC_H
#define KDAPL_KUNIT_TRAFFIC_H

#include <linux/completion.h>
#include "fixture.h"

#define MSG_LEN		256
#define RECVS		8

/*
 * struct sender - a thread that posts Sends until it is stopped, even when they
 * fail
 * @heard: counts the receives of the peer
 */
struct sender {
	struct kd_side *s;
	struct kd_recorder *heard;
	struct task_struct *task;
	struct completion done;
	bool stop;
	unsigned int sent;
	unsigned int refused;		/* Sends that failed, but not for a full queue */
};

struct traffic {
	struct kd_side *side[2];
	struct kd_recorder *recv[2];
	struct kd_recorder *req[2];
	struct sender sender[2];
};

struct slow_upcall {
	struct kd_recorder *rec;
	struct completion entered;
	struct completion leave;
	bool left;
};

#define MAX_OBJECTS 16

struct objects {
	DAT_HANDLE handle[MAX_OBJECTS];
	unsigned int n;
};

void td_repost(struct kd_recorder *rec, const DAT_EVENT *event,
	       DAT_BOOLEAN more);
void td_stop_traffic(void *data);
struct traffic *td_connect_traffic(struct kunit *test, DAT_COUNT srq_len,
				   DAT_EVD_FLAGS flags);
bool td_is_refused(void *data);
void td_start_senders(struct kunit *test, struct traffic *t);
void td_start_traffic(struct kunit *test, struct traffic *t);
struct slow_upcall *td_make_slow_upcall(struct kunit *test);
DAT_EVD_HANDLE td_start_slow_upcall(struct kd_side *s, struct slow_upcall *u);
void td_add_object(struct objects *o, DAT_HANDLE handle);
void td_free_side(struct kd_side *s, struct objects *o);

/* close.c; removal.c registers it */
extern struct kunit_suite close_suite;

#endif /* KDAPL_KUNIT_TRAFFIC_H */
