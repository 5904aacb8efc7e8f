// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random arguments that are numbers, masks and flags: mostly sensible ones.
 */
#include <linux/net.h>
#include "random.h"

u32 kdr_mask(struct caller *c, u32 all)
{
	if (chance(c, 50))
		return all;
	return chance(c, 95) ? prandom_u32_state(&c->rnd) & all :
			       prandom_u32_state(&c->rnd);
}

/* Return a number from 1 to @max, or now and then an odd one. */
DAT_COUNT kdr_count(struct caller *c, u32 max)
{
	static const DAT_COUNT odd[] = { 0, -1, -2, S32_MAX, S32_MIN, 100000 };

	if (chance(c, 8))
		return odd[rnd(c, ARRAY_SIZE(odd))];
	return 1 + (DAT_COUNT)rnd(c, max);
}

u32 kdr_flags(struct caller *c)
{
	return chance(c, 70) ? 0 : rnd(c, chance(c, 95) ? 16 : 256);
}

u32 kdr_priv(struct caller *c)
{
	return chance(c, 70) ? DAT_MEM_PRIV_ALL_FLAG :
	       chance(c, 95) ? rnd(c, 64) & DAT_MEM_PRIV_ALL_FLAG :
			       prandom_u32_state(&c->rnd);
}

u32 kdr_va_type(struct caller *c)
{
	return chance(c, 75) ? DAT_VA_TYPE_VA : rnd(c, 3);
}

DAT_CONN_QUAL kdr_port(struct caller *c)
{
	return chance(c, 98) ? c->w->port + rnd(c, PORTS) :
			       prandom_u32_state(&c->rnd);
}

DAT_COUNT kdr_pd_size(struct caller *c)
{
	return chance(c, 60) ? 0 : chance(c, 90) ? rnd(c, 57) : kdr_count(c, 300);
}

DAT_COMM *kdr_comm(struct caller *c)
{
	c->comm = (DAT_COMM) { AF_INET, SOCK_STREAM, 0 };
	if (chance(c, 5))
		c->comm.domain = prandom_u32_state(&c->rnd);
	if (chance(c, 5))
		c->comm.protocol = prandom_u32_state(&c->rnd);
	return OPT(c, &c->comm);
}
