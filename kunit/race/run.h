/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What race.c, which runs the table, and report.c share. */
#ifndef KDAPL_KUNIT_RACE_RUN_H
#define KDAPL_KUNIT_RACE_RUN_H

#include "race.h"

#define RACE_NAME_LEN	80
#define RACE_REPLAY_LEN	256
#define APART_LEN	2048

enum race_role {
	R_SIDE, R_SIDE2, R_REAPER, R_LIFE, R_LIFE2, R_SETTLER, RACE_ROLES
};

/* Where the time goes. */
enum race_phase {
	P_WARM_UP, P_SIDES, P_STOP, P_REST, RACE_PHASES
};

/* struct race_run - one run of the table on a device */
struct race_run {
	struct kunit *test;
	unsigned int seed;
	unsigned int parts;	/* of the table, of which each device has one; 0: it has none */
	unsigned int len;	/* of a pair, in ms */
	const char *pair;	/* that was asked for */
	const char *now;	/* that runs */
	bool verbose;
	struct race_world *w;
	struct race_caller caller[RACE_ROLES];
	bool stop;		/* the sides */
	bool stop_life;
	bool stop_reaper;
	bool hangs;
	unsigned int place;	/* of the pair in the table, which with the seed says all */
	unsigned int group_first;	/* its number among those of the device */
	unsigned int group_len;
	int freed;		/* before the group */
	char failed[RACE_NAME_LEN];	/* the pair in which something failed first */
	unsigned int pairs;
	char *still;		/* names of pairs in which no connection began, or none ended */
	unsigned int stills;
	bool lived;		/* of the pair: one has begun and one ended */
	unsigned int next;	/* the first pair for which there was no time */
	unsigned int left;	/* pairs for which there was no time */
	ktime_t spent[RACE_PHASES];
	u64 calls;
	u64 met;
	char *apart;		/* names of pairs that never met */
	unsigned int aparts;
	DECLARE_BITMAP(ran, RACE_MAX_CALLS);	/* in pairs that have run */
	unsigned int good[RACE_MAX_CALLS];	/* how often each was called with success */
	unsigned long *beside;	/* bits of those that were made while the device left */
};

/* How many calls there are. */
static inline unsigned int race_ncalls(void)
{
	return race_nep_calls + race_nobject_calls + race_nlinux_calls;
}

const struct race_call *race_call_at(unsigned int i);
void race_count_pair(struct race_run *r);
void race_count_beside(struct race_run *r);
int race_replay(const struct race_run *r, unsigned int count, char *to, size_t size);
void race_tell_failures(struct race_run *r);
void race_report(struct race_run *r, s64 took);

#endif /* KDAPL_KUNIT_RACE_RUN_H */
