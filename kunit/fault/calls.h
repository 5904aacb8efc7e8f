/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the table of all exported calls, in two parts.
 */
#ifndef KDAPL_KUNIT_FAULT_CALLS_H
#define KDAPL_KUNIT_FAULT_CALLS_H

#include "world.h"

/* The possible outcomes of a call in which something fails. */
enum outcome {
	PURE,		/* nothing in the call can fail */
	SURE,		/* the call succeeds all the same */
	FALLIBLE,	/* the call returns an error, unless it finds another way */
	POSTS,		/* as PURE, but for one operation, see kdf_end_post() */
};

/*
 * struct fault_call - an exported call
 * @outcome: the possible outcomes
 * @call: makes the call; returns a DAT_RETURN
 * @need: makes what the call needs, unless that is there; may be NULL
 * @undo: runs after a success; may be NULL
 * @end: undoes @need after the last call; may be NULL
 * @twin: another call in the table does nearly all that this call does
 */
struct fault_call {
	const char *name;
	enum outcome outcome;
	u32 (*call)(struct world *w);
	void (*need)(struct world *w);
	void (*undo)(struct world *w);
	void (*end)(struct world *w);
	bool twin;
};

#define CALL(call, outcome, ...) { #call, outcome, __VA_ARGS__ }
#define TWIN	.twin = true

extern const struct fault_call kdf_calls[];
extern const unsigned int kdf_ncalls;
extern const struct fault_call kdf_ep_calls[];
extern const unsigned int kdf_nep_calls;

/* ---- For the functions that make calls ----------------------------------- */

#define OUT(w)		((void *)(w)->out.words)
#define MADE(w, type)	((type *)&(w)->h)

/*
 * FREES() defines do_<name>(), which frees w->h, and undo_<name>(), which does
 * so after the call that made it. NEEDS() defines need_<name>(), which makes
 * w->h for other calls.
 */
#define FREES(name)							\
static DAT_RETURN do_##name(struct world *w)				\
{									\
	DAT_RETURN ret = dat_##name(w->h);				\
									\
	if (ret == DAT_SUCCESS)						\
		w->h = NULL;						\
	return ret;							\
}									\
									\
static void undo_##name(struct world *w)				\
{									\
	if (w->h)							\
		KD_EXPECT_OK(w->test, do_##name(w));			\
}

#define NEEDS(name)							\
static void need_##name(struct world *w)				\
{									\
	if (!w->h)							\
		KD_ASSERT_OK(w->test, do_##name(w));			\
}

#endif /* KDAPL_KUNIT_FAULT_CALLS_H */
