// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tracepoint definitions. */
#define CREATE_TRACE_POINTS
#include "trace.h"
