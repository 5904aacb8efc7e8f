// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* __assign_str(field) instead of __assign_str(field, source): 6.10 */
#include <linux/trace_events.h>
#include <trace/stages/stage6_event_callback.h>

#define SHOW(...)	#__VA_ARGS__
#define EXPAND(x)	SHOW(x)

const char *kdapl_probe = EXPAND(__assign_str(name));
