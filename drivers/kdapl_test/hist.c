// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Latencies. A bucket is a sixteenth of a power of two wide, so that a percentile is
 * known to 6 %, from one nanosecond to a minute.
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include "kdapl_test.h"

static unsigned int kt_hist_index(u64 ns)
{
	unsigned int exp;

	if (ns < KT_HIST_SUB)
		return ns;
	exp = fls64(ns) - 1 - ilog2(KT_HIST_SUB);
	return min_t(unsigned int, KT_HIST - 1,
		     (exp + 1) * KT_HIST_SUB + (ns >> exp) - KT_HIST_SUB);
}

/* Return the first time that is in bucket @i. */
static u64 kt_hist_lower(unsigned int i)
{
	unsigned int exp = i / KT_HIST_SUB;

	if (!exp)
		return i;
	return (u64)(i % KT_HIST_SUB + KT_HIST_SUB) << (exp - 1);
}

/* Context: any, one caller at a time. */
void kt_hist_add(struct kt_hist *hist, u64 ns)
{
	hist->bucket[kt_hist_index(ns)]++;
	hist->sum += ns;
	if (!hist->n++ || ns < hist->min)
		hist->min = ns;
	if (ns > hist->max)
		hist->max = ns;
}

void kt_hist_merge(struct kt_hist *to, const struct kt_hist *from)
{
	unsigned int i;

	if (!from->n)
		return;
	to->min = to->n ? min(to->min, from->min) : from->min;
	to->max = max(to->max, from->max);
	to->n += from->n;
	to->sum += from->sum;
	for (i = 0; i < KT_HIST; i++)
		to->bucket[i] += from->bucket[i];
}

/* Return the time that @per_myriad ten-thousandths of all did not exceed. */
u64 kt_hist_percentile(const struct kt_hist *hist, u32 per_myriad)
{
	u64 rank = div_u64(hist->n * per_myriad + 9999, 10000);
	u64 seen = 0;
	unsigned int i;

	for (i = 0; i < KT_HIST; i++) {
		seen += hist->bucket[i];
		if (seen >= rank && seen)
			return clamp(kt_hist_lower(i + 1) - 1, hist->min,
				     hist->max);
	}
	return hist->max;
}

/* Say the percentiles, and each bucket that is not empty. */
void kt_hist_say(struct kt_session *s, const struct kt_hist *hist)
{
	unsigned int i;

	if (!hist->n)
		return;
	kt_say(s, "latency n=%llu min=%llu mean=%llu max=%llu p50=%llu\n",
	       hist->n, hist->min, div64_u64(hist->sum, hist->n), hist->max,
	       kt_hist_percentile(hist, 5000));
	kt_say(s, "latency p90=%llu p99=%llu p999=%llu p9999=%llu\n",
	       kt_hist_percentile(hist, 9000), kt_hist_percentile(hist, 9900),
	       kt_hist_percentile(hist, 9990), kt_hist_percentile(hist, 9999));
	for (i = 0; i < KT_HIST; i++)
		if (hist->bucket[i])
			kt_say(s, "hist %llu %llu %u\n", kt_hist_lower(i),
			       kt_hist_lower(i + 1), hist->bucket[i]);
}
