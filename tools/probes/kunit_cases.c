// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* KUnit has all that the suites use: actions (6.5), slow cases (6.7), descriptions (6.8) */
#include <kunit/test.h>

static const struct param {
	const char *desc;
} params[] = { { "x" } };

KUNIT_ARRAY_PARAM_DESC(probe, params, desc);

static void probe(struct kunit *test)
{
	kunit_release_action(test, NULL, NULL);
}

struct kunit_case probe_cases[] = {
	KUNIT_CASE_SLOW(probe),
	KUNIT_CASE_PARAM(probe, probe_gen_params),
	{ }
};
