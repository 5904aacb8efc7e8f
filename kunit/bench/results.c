// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Figures, and the JSON document made of them.
 *
 * Only the shortest time of each series is kept: on a disturbed machine that
 * time is reproducible. The clock is that of the CPU; ktime, which may be
 * coarse, calibrates it over the whole run. Where the clock counts instructions
 * (scripts/run/vm-run -c), the figures are these instead.
 */
#include <linux/list.h>
#include <linux/math64.h>
#include "kdapl_bench.h"

/* How two times are compared. */
enum bench_compare {
	BENCH_ADDED,		/* nanoseconds added, at most */
	BENCH_RATIO,		/* kDAPL : raw, at most */
	BENCH_RATE,		/* rates, kDAPL : raw, at least */
};

/*
 * @aim: tenths of a nanosecond for BENCH_ADDED, thousandths for ratios; 0: none, as what
 * misses the caches depends on how many connections there are
 */
static const struct bench_figure_desc {
	const char *name;
	enum bench_compare compare;
	u32 aim;
} bench_figures[BENCH_FIGURES] = {
	[BENCH_POST_RECV] = { "dat_ep_post_recv", BENCH_ADDED, 150 },
	[BENCH_POST_SRQ_RECV] = { "dat_srq_post_recv", BENCH_ADDED, 200 },
	[BENCH_POST_SEND] = { "dat_ep_post_send", BENCH_ADDED, 150 },
	[BENCH_POST_WRITE] = { "dat_ep_post_rdma_write", BENCH_ADDED, 150 },
	[BENCH_REAP_RECV] = { "dat_evd_dequeue, receive", BENCH_ADDED, 200 },
	[BENCH_REAP_SRQ_RECV] = { "dat_evd_dequeue, SRQ receive", BENCH_ADDED,
				  250 },
	[BENCH_REAP_SEND] = { "dat_evd_dequeue, send", BENCH_ADDED, 200 },
	[BENCH_UPCALL] = { "upcall, receive", BENCH_ADDED, 200 },
	[BENCH_UPCALL_SRQ] = { "upcall, SRQ receive", BENCH_ADDED, 250 },
	[BENCH_PING_64] = { "one-way latency, 64 B", BENCH_RATIO, 1030 },
	[BENCH_PING_4K] = { "one-way latency, 4 KiB", BENCH_RATIO, 1030 },
	[BENCH_STREAM_SEND] = { "Send throughput, 64 KiB", BENCH_RATE, 980 },
	[BENCH_STREAM_WRITE] = { "RDMA Write throughput, 64 KiB", BENCH_RATE,
				 980 },
	[BENCH_MARKS] = { "SRQ one-way latency, watermarks armed", BENCH_RATIO,
			  1010 },
	[BENCH_TURN_SEND] = { "post_send, connections in turn", BENCH_ADDED, 0 },
	[BENCH_TURN_RECV] = { "dequeue, SRQ, connections in turn", BENCH_ADDED, 0 },
	[BENCH_MAP_PAGE] = { "kdat_sg_map and _unmap, one page", BENCH_ADDED, 0 },
	[BENCH_MAP_PAGES] = { "the same, each of 256 pages", BENCH_ADDED, 0 },
};

/* A tick is bench_tick / 2^20 nanoseconds, or instructions if these are counted. */
static u64 bench_tick;
static bool bench_counted;
static u64 bench_start_ticks;
static u64 bench_start_ns;

void bench_clock_start(void)
{
	bench_start_ns = ktime_get_ns();
	bench_start_ticks = bench_clock();
}

/* @insn_ns: ticks of an instruction if the clock counts these, or 0 */
void bench_clock_stop(unsigned int insn_ns)
{
	u64 ns = ktime_get_ns() - bench_start_ns;
	u64 ticks = bench_clock() - bench_start_ticks;

	bench_counted = insn_ns;
	bench_tick = insn_ns ? (1U << 20) / insn_ns : div64_u64(ns << 20, ticks);
}

void bench_note(struct bench_result *res, enum bench_figure figure,
		enum bench_series series, u64 ticks, u32 ops)
{
	u64 *best = &res->best[figure][series];

	*best = min(*best, ticks);
	res->ops[figure] = ops;
}

/* Return the time of one operation, in tenths of a nanosecond or instruction. */
static u64 bench_time(const struct bench_result *res, enum bench_figure figure,
		      enum bench_series series)
{
	u64 tenths = (res->best[figure][series] * bench_tick >> 20) * 10;

	return div_u64(tenths, res->ops[figure]);
}

static void bench_show_tenths(struct seq_file *m, const char *key, s64 value)
{
	u32 tenth;
	u64 whole = div_u64_rem(abs(value), 10, &tenth);

	seq_printf(m, "\"%s\": %s%llu.%u, ", key, value < 0 ? "-" : "", whole,
		   tenth);
}

static void bench_show_thousandths(struct seq_file *m, const char *key,
				   u64 value)
{
	u32 rest;
	u64 whole = div_u64_rem(value, 1000, &rest);

	seq_printf(m, "\"%s\": %llu.%03u, ", key, whole, rest);
}

/* Show a time, or the throughput in MB/s that it means. */
static void bench_show_value(struct seq_file *m, const char *key,
			     enum bench_compare compare, u64 tenths)
{
	if (compare == BENCH_RATE)
		tenths = div64_u64(BENCH_BUF * 100000ULL, tenths ?: 1);
	bench_show_tenths(m, key, tenths);
}

static u64 bench_ratio(u64 a, u64 b)
{
	return div64_u64(a * 1000 + b / 2, b ?: 1);
}

static void bench_show_figure(struct seq_file *m,
			      const struct bench_result *res,
			      enum bench_figure figure)
{
	const struct bench_figure_desc *desc = &bench_figures[figure];
	u64 raw = bench_time(res, figure, BENCH_RAW);
	u64 again = bench_time(res, figure, BENCH_RAW_AGAIN);
	u64 kdapl = bench_time(res, figure, BENCH_KDAPL);
	bool ok;

	seq_printf(m, "  {\"device\": \"%s\", \"figure\": \"%s\", \"unit\": \"%s\", ",
		   res->device, desc->name,
		   desc->compare == BENCH_RATE ? "MB/s" :
		   bench_counted ? "insns" : "ns");
	bench_show_value(m, "raw", desc->compare, raw);
	bench_show_value(m, "raw again", desc->compare, again);
	bench_show_value(m, "kdapl", desc->compare, kdapl);
	switch (desc->compare) {
	case BENCH_ADDED:
		bench_show_tenths(m, "added", (s64)(kdapl - raw));
		seq_puts(m, "\"ratio\": null, ");
		bench_show_tenths(m, "noise", (s64)(again - raw));
		/* An aim in nanoseconds says nothing about instructions. */
		if (bench_counted || !desc->aim) {
			seq_puts(m, "\"aim\": null, \"ok\": null}");
			return;
		}
		ok = (s64)(kdapl - raw) <= (s64)desc->aim;
		seq_printf(m, "\"aim\": \"<= %u ns\", ", desc->aim / 10);
		break;
	case BENCH_RATIO:
		seq_puts(m, "\"added\": null, ");
		bench_show_thousandths(m, "ratio", bench_ratio(kdapl, raw));
		bench_show_thousandths(m, "noise", bench_ratio(again, raw));
		ok = bench_ratio(kdapl, raw) <= desc->aim;
		seq_printf(m, "\"aim\": \"<= %u.%02u\", ", desc->aim / 1000,
			   desc->aim % 1000 / 10);
		break;
	default:
		seq_puts(m, "\"added\": null, ");
		bench_show_thousandths(m, "ratio", bench_ratio(raw, kdapl));
		bench_show_thousandths(m, "noise", bench_ratio(raw, again));
		ok = bench_ratio(raw, kdapl) >= desc->aim;
		seq_printf(m, "\"aim\": \">= %u.%02u\", ", desc->aim / 1000,
			   desc->aim % 1000 / 10);
		break;
	}
	seq_printf(m, "\"ok\": %s}", ok ? "true" : "false");
}

static bool bench_complete(const struct bench_result *res,
			   enum bench_figure figure)
{
	int i;

	for (i = 0; i < BENCH_SERIES; i++)
		if (res->best[figure][i] == U64_MAX)
			return false;
	return true;
}

void bench_show(struct seq_file *m, struct list_head *results, unsigned int runs)
{
	const struct bench_result *res;
	const char *comma = "\n";
	int i;

	seq_printf(m, "{\"runs\": %u, \"results\": [", runs);
	list_for_each_entry(res, results, link) {
		for (i = 0; i < BENCH_FIGURES; i++) {
			if (!bench_complete(res, i))
				continue;
			seq_puts(m, comma);
			bench_show_figure(m, res, i);
			comma = ",\n";
		}
	}
	seq_puts(m, "\n]}\n");
}
