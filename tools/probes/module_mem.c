// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Later kernels describe the memory of a module in an array. */
#include <linux/module.h>

unsigned int probe(struct module *mod)
{
	return mod->mem[MOD_TEXT].size;
}
