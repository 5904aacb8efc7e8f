// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A generator of parameters takes the test as an argument: 6.18 */
#include <kunit/test.h>

const void *kdapl_probe(struct kunit_case *c, struct kunit *test, char *desc);
const void *kdapl_probe(struct kunit_case *c, struct kunit *test, char *desc)
{
	return c->generate_params(test, NULL, desc);
}
