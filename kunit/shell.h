/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the shell, for suites that load modules and use configfs.
 */
#ifndef KDAPL_KUNIT_SHELL_H
#define KDAPL_KUNIT_SHELL_H

#include <linux/kmod.h>

/* Returns the exit status. */
static inline int shell(char *command)
{
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *argv[4], *envp[2];

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = command;
	argv[3] = NULL;
	envp[0] = path;
	envp[1] = NULL;
	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

#endif /* KDAPL_KUNIT_SHELL_H */
