/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files that cases open by name. Cases run in a kernel thread, which on later kernels
 * sees no file unless it borrows the root directory of init.
 */
#ifndef KDAPL_KUNIT_FILES_H
#define KDAPL_KUNIT_FILES_H

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/namei.h>
#include <linux/sched.h>

#ifndef scoped_with_init_fs
# define scoped_with_init_fs()
#endif

static inline struct file *kd_filp_open(const char *name, int flags,
					umode_t mode)
{
	struct file *file;

	scoped_with_init_fs()
		file = filp_open(name, flags, mode);
	return file;
}

/*
 * Close it now. In a kernel thread filp_close() leaves the last reference to a work item,
 * and the module that the file belongs to stays in use until that has run. Of another
 * task, as the one that loads a suite where the kernel has no KUnit, it is closed when
 * the system call returns; there __fput_sync() is a BUG before 6.6.
 */
static inline void kd_filp_close(struct file *file)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(file);
	else
		filp_close(file, NULL);
}

static inline bool kd_file_exists(const char *name)
{
	struct path path;
	int err;

	scoped_with_init_fs()
		err = kern_path(name, 0, &path);
	if (err)
		return false;
	path_put(&path);
	return true;
}

#endif /* KDAPL_KUNIT_FILES_H */
