/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulated adapter as tests see it: its switches and its counters.
 *
 * A switch makes a device do what drivers of real adapters do and rxe and siw do
 * not. All are 0 when a device is made, and each may be set at any time, by a
 * test with kdapl_sim_set() or by hand in /sys/kernel/debug/kdapl_sim/<device>/,
 * where the counters are as well. names.h says what each of them is. A
 * switch that is a number of times counts down; ~0 means for ever.
 */
#ifndef KDAPL_SIM_H
#define KDAPL_SIM_H

#include <linux/bits.h>
#include <linux/types.h>
#include "names.h"

struct ib_device;

enum kdapl_sim_switch {
	KDAPL_SIM_SWITCH_NAMES(KDAPL_SIM_SWITCH_ID)
	KDAPL_SIM_SWITCHES
};

enum kdapl_sim_counter {
	KDAPL_SIM_COUNTER_NAMES(KDAPL_SIM_COUNTER_ID)
	KDAPL_SIM_COUNTERS
};

/* How kdapl_sim_kill_qp() ends a QP. */
#define KDAPL_SIM_KILL_EVENT	BIT(0)	/* with an event, IB_EVENT_QP_FATAL */
#define KDAPL_SIM_KILL_MUTE	BIT(1)	/* without completions, now or later */

bool kdapl_sim_is(struct ib_device *ibdev);
void kdapl_sim_set(struct ib_device *ibdev, enum kdapl_sim_switch which,
		   u32 value);
u32 kdapl_sim_get(struct ib_device *ibdev, enum kdapl_sim_switch which);
void kdapl_sim_reset(struct ib_device *ibdev);
long kdapl_sim_count(struct ib_device *ibdev, enum kdapl_sim_counter which);
int kdapl_sim_kill_qp(struct ib_device *ibdev, u32 qpn, unsigned int how);

#endif /* KDAPL_SIM_H */
