/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files with one object a line: debugfs.c, for people, and stats.c, for programs.
 */
#ifndef KDAPL_SHOW_H
#define KDAPL_SHOW_H

#include "handle.h"

struct seq_file;

/*
 * struct kdapl_shown - a file; the private data of its seq_file
 * @name: its name
 * @type: the objects that it lists
 * @show: prints the line of one object, in an RCU read-side section
 */
struct kdapl_shown {
	const char *name;
	DAT_HANDLE_TYPE type;
	void (*show)(struct seq_file *m, struct kdapl_obj *obj);
};

/* debugfs.c */
extern const struct seq_operations kdapl_shown_sops;

#endif
