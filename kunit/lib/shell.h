/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the shell, for suites that load modules, make devices or use configfs.
 */
#ifndef KDAPL_KUNIT_SHELL_H
#define KDAPL_KUNIT_SHELL_H

#include <linux/kmod.h>

/*
 * Run a command of the shell, which has no stdin, stdout and stderr: awk fails without
 * the second. Return the command's wait status or -errno.
 */
static inline int shell(const char *command)
{
	char *argv[4] = { "/bin/sh", "-c", (char *)command, NULL };
	char *envp[2] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };

	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

#endif /* KDAPL_KUNIT_SHELL_H */
