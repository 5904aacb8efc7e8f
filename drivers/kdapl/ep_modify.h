/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of rules of dat_ep_modify(), which ep_modify.c and its tests share.
 */
#ifndef KDAPL_EP_MODIFY_H
#define KDAPL_EP_MODIFY_H

#include <dat/kdat.h>

/*
 * struct kdapl_modify_rule - when a parameter of an Endpoint may be changed
 * @bit: bit of the parameter in DAT_EP_PARAM_MASK
 * @states: BIT(DAT_EP_STATE_...) of each state that allows it; 0: never
 * @name: the bit's name without its prefix
 * @offset: of an attribute: where it is in DAT_EP_ATTR
 * @size: of an attribute: its length in bytes; else 0
 */
struct kdapl_modify_rule {
	DAT_EP_PARAM_MASK bit;
	u32 states;
	const char *name;
	u16 offset;
	u16 size;
};

extern const struct kdapl_modify_rule kdapl_modify_rules[];
extern const unsigned int kdapl_modify_nrules;

#endif
