/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Endpoints in every state that can be reached, for tests that need them all.
 *
 * Two states last only if the device leaves something undone: in
 * COMPLETION_PENDING it does not make the connection, in DISCONNECT_PENDING it
 * never executes a request. Operations of the driver are replaced for that
 * time.
 */
#ifndef KDAPL_KUNIT_EP_STATES_H
#define KDAPL_KUNIT_EP_STATES_H

#include "device.h"

enum ep_reach {
	EP_UNCONNECTED,
	EP_RESERVED,
	EP_PASSIVE_PENDING,
	EP_TENTATIVE_PENDING,
	EP_ACTIVE_PENDING,
	EP_COMPLETION_PENDING,
	EP_CONNECTED,
	EP_DISCONNECT_PENDING,
	EP_DISCONNECTED,
	EP_REACHABLE
};

extern const DAT_EP_STATE ep_reach_state[EP_REACHABLE];

/*
 * struct ep_stage - an EP in some state, and what keeps it there
 * @in: the passive side
 * @out: the active side
 * @side: the one of the two sides that @ep belongs to
 * @ep: the EP in that state
 * @held: the device whose operations are replaced, or NULL
 */
struct ep_stage {
	struct kunit *test;
	struct kd_side *in;
	struct kd_side *out;
	struct kd_side *side;
	DAT_EP_HANDLE ep;
	struct ib_device *held;
};

KD_GENERATOR(ep_gen_scene);
DAT_EP_STATE ep_state(struct kunit *test, DAT_EP_HANDLE ep);
void ep_stage_release(struct ep_stage *s);
struct ep_stage *ep_stage_open(struct kunit *test, const char *ia);
void ep_stage_reach(struct ep_stage *s, enum ep_reach reach);
struct ep_stage *ep_stage_enter(struct kunit *test, const char *ia,
				enum ep_reach reach);
void ep_stage_leave(struct ep_stage *s);

#endif /* KDAPL_KUNIT_EP_STATES_H */
