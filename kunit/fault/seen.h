/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults: the state that a call which fails must leave as it was.
 */
#ifndef KDAPL_KUNIT_FAULT_SEEN_H
#define KDAPL_KUNIT_FAULT_SEEN_H

#include "world.h"

#define SEEN_EPS	5
#define SEEN_EVDS	7

/* Everything that a call could have changed. */
struct seen {
	struct {
		DAT_EP_PARAM param;
		DAT_EP_STATE state;
		DAT_BOOLEAN recv_idle;
		DAT_BOOLEAN request_idle;
		DAT_COUNT held;
	} ep[SEEN_EPS];
	DAT_EVD_PARAM evd[SEEN_EVDS];
	DAT_SRQ_PARAM srq;
	DAT_CR_PARAM cr;
};

void kdf_look_around(struct world *w, struct seen *seen);

#endif /* KDAPL_KUNIT_FAULT_SEEN_H */
