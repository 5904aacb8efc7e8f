// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* race_test.ko: what is told of a run: how often calls met, and what failed. */
#include "run.h"

const struct race_call *race_call_at(unsigned int i)
{
	if (i < race_nep_calls)
		return &race_ep_calls[i];
	i -= race_nep_calls;
	return i < race_nobject_calls ? &race_object_calls[i] :
					&race_linux_calls[i - race_nobject_calls];
}

/* Append @name to @names, if there is room. */
static void note_name(char *names, const char *name)
{
	if (strlen(names) + strlen(name) + 2 >= APART_LEN)
		return;
	strcat(names, " ");
	strcat(names, name);
}

static void count_call(struct race_run *r, const struct race_caller *c)
{
	unsigned int i = 0;

	while (race_call_at(i) != c->call)
		i++;
	set_bit(i, r->ran);
	r->good[i] += c->good;
	r->calls += c->calls;
	r->met += c->met;
}

void race_count_pair(struct race_run *r)
{
	struct race_caller *a = &r->caller[R_SIDE], *b = &r->caller[R_SIDE2];

	count_call(r, a);
	count_call(r, b);
	if (!a->met && !b->met) {
		r->aparts++;
		note_name(r->apart, r->now);
	}
	if (!r->lived) {
		r->stills++;
		note_name(r->still, r->now);
	}
	if (r->verbose)
		kunit_info(r->test, "%s: %u + %u calls, %u + %u succeeded, %u + %u met", r->now,
			   a->calls, b->calls, a->good, b->good, a->met, b->met);
}

/* Both sides have made any calls while the device left: which of them, and which not? */
void race_count_beside(struct race_run *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < 2; i++) {
		r->calls += r->caller[i].calls;
		r->met += r->caller[i].met;
	}
	for (i = 0; i < race_ncalls(); i++) {
		if (test_bit(i, r->beside))
			continue;
		note_name(r->apart, race_call_at(i)->name);
		n++;
	}
	kunit_info(r->test, "%u calls never came while the device left, of %u:%s", n,
		   race_ncalls(), n ? r->apart : " none");
}

/* What has the group of @count pairs done again. A device that leaves has no part of the table. */
int race_replay(const struct race_run *r, unsigned int count, char *to, size_t size)
{
	if (!r->parts)
		return scnprintf(to, size,
				 "CPUS=%u SUITE=kdapl-race.N6_* PARAMS=\"race_test.seed=%u\"",
				 num_online_cpus(), r->seed);
	return scnprintf(to, size,
			 "CPUS=%u PARAMS=\"race_test.seed=%u race_test.share=%u race_test.ms=%u race_test.first=%u race_test.count=%u%s%s\"",
			 num_online_cpus(), r->seed, r->parts, r->len, r->group_first, count,
			 *r->pair ? " race_test.pair=" : "", r->pair);
}

void race_tell_failures(struct race_run *r)
{
	struct race_world *w = r->w;
	char replay[RACE_REPLAY_LEN];
	unsigned int i;

	if (!w->failures || r->hangs)
		return;
	for (i = 0; i < min_t(unsigned int, w->failures, RACE_TOLD); i++)
		kunit_info(r->test, "%s", w->told[i]);
	race_replay(r, r->group_len, replay, sizeof(replay));
	KUNIT_FAIL(r->test, "%s: %u failures, %s; replay: %s",
		   *r->failed ? r->failed : r->now, w->failures,
		   *r->failed ? "beside the calls" : "at rest", replay);
	w->failures = 0;
}

static const char * const stat_names[RACE_STATS] = {
	[N_BEGUN] = "begun", [N_ESTABLISHED] = "established",
	[N_DISCONNECTED] = "disconnected", [N_BROKEN] = "broken", [N_REFUSED] = "refused",
	[N_RESETS] = "resets", [N_FREED] = "freed", [N_MESSAGES] = "completed",
	[N_FLUSHED] = "flushed", [N_MARKS] = "marks",
	[N_CROSSED] = "seen crossed", [N_HARD] = "hard marks", [N_UPCALLS] = "upcalls",
	[N_GIVEN_BACK] = "pages given back", [N_CHANGES] = "changes told",
	[N_REQUESTS] = "requests at portals", [N_COMPARED] = "messages compared",
	[N_OVERFLOWS] = "overflows",
};

static void report_failing(struct race_run *r)
{
	unsigned int i, n = 0;

	*r->apart = 0;
	for (i = 0; i < race_ncalls(); i++) {
		if (!test_bit(i, r->ran) || r->good[i])
			continue;
		note_name(r->apart, race_call_at(i)->name);
		n++;
	}
	if (n)
		kunit_info(r->test, "%u calls never succeeded:%s", n, r->apart);
}

void race_report(struct race_run *r, s64 took)
{
	char line[480];
	int i, n = 0;

	for (i = 0; i < RACE_STATS; i++)
		n += scnprintf(line + n, sizeof(line) - n, ", %d %s",
			       atomic_read(&r->w->stat[i]), stat_names[i]);
	kunit_info(r->test, "seed %u, %u CPUs, %u pairs of %u in %lld ms: %llu calls, %llu met; %s",
		   r->seed, num_online_cpus(), r->pairs, r->pairs + r->left, took, r->calls, r->met,
		   line + 2);
	kunit_info(r->test, "%lld ms until connections, %lld of pairs, %lld until they stop, %lld of rest; %u ms the longest call, %s",
		   ktime_to_ms(r->spent[P_WARM_UP]), ktime_to_ms(r->spent[P_SIDES]),
		   ktime_to_ms(r->spent[P_STOP]), ktime_to_ms(r->spent[P_REST]),
		   jiffies_to_msecs(r->w->took), r->w->longest ?: "none");
	if (r->left)
		kunit_info(r->test, "for %u there was no time, from race_test.first=%u on", r->left,
			   r->next);
	if (r->stills)
		kunit_info(r->test, "%u pairs never lived, no connection began or none ended:%s",
			   r->stills, r->still);
	if (r->aparts)
		kunit_info(r->test, "%u pairs never met%s:%s", r->aparts,
			   num_online_cpus() > 1 ? "" : ", on one CPU", r->apart);
	report_failing(r);
}
