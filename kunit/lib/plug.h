/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices that come and go. The parameter of a case is the second device of its
 * kind, from kd_gen_second(), which no other suite needs.
 */
#ifndef KDAPL_KUNIT_PLUG_H
#define KDAPL_KUNIT_PLUG_H

#include "fixture.h"

int kd_plug_init(struct kunit *test);
struct kd_side *kd_open_second(struct kunit *test);
bool kd_is_plugged(const char *ia);
void kd_plug(struct kunit *test);
int kd_delete_device(struct kunit *test);
void kd_unplug(struct kunit *test);
void kd_unplug_at_pd(struct kunit *test);
void kd_expect_unplugged(struct kunit *test);
void kd_rename(struct kunit *test, const char *to);
void kd_plug_as(struct kunit *test, const char *ia);
void kd_set_guid(struct kunit *test);
void kd_set_guid_of(struct kunit *test, const char *ia);
void kd_expect_broken(struct kd_side *s);

#endif /* KDAPL_KUNIT_PLUG_H */
