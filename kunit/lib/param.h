/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Parameters of modules of tests.
 */
#ifndef KDAPL_KUNIT_PARAM_H
#define KDAPL_KUNIT_PARAM_H

#include <linux/moduleparam.h>
#include <linux/types.h>

/*
 * KD_PARAM() - a parameter of a module, and the variable that has it
 * @name: of both
 * @type: of both; one that is a type of C as well, such as uint or bool
 * @init: its value by default
 * @about: what it is
 */
#define KD_PARAM(name, type, init, about)				\
	static type name = init;					\
	module_param(name, type, 0444);					\
	MODULE_PARM_DESC(name, about)

#endif /* KDAPL_KUNIT_PARAM_H */
