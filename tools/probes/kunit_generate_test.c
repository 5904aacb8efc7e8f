// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Generators of parameters are given the test: 6.18 */
#include <kunit/test.h>

const void *kdapl_probe(struct kunit_case *c, struct kunit *test, char *desc);
const void *kdapl_probe(struct kunit_case *c, struct kunit *test, char *desc)
{
	return c->generate_params(test, NULL, desc);
}
