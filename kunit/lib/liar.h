/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peers whose connection requests are not what those of the kernel are: they name another
 * host's address, or the answer to them is ignored. Over iWARP neither is possible.
 */
#ifndef KDAPL_KUNIT_LIAR_H
#define KDAPL_KUNIT_LIAR_H

#include "fixture.h"

void kd_lie(struct kunit *test, __be32 addr);
void kd_half_connect(struct kd_side *side, u16 port, const void *pd, u8 len);

#endif /* KDAPL_KUNIT_LIAR_H */
