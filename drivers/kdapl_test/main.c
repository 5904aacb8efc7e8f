// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /dev/kdapl_test. Root writes a command, a line of words, and reads what it says, a
 * line at a time, until the end of file; then it may write the next one. Closing the
 * file ends a command that runs, and waits for that.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "kdapl_test.h"

/* Whether @n bytes more fit. */
static bool kt_has_room(struct kt_session *s, size_t n)
{
	return READ_ONCE(s->head) - READ_ONCE(s->tail) + n <= KT_OUT;
}

/*
 * Say something to whoever reads the file; waits if that one does not. Context: the
 * thread of the session.
 */
void kt_say(struct kt_session *s, const char *fmt, ...)
{
	char text[512];
	va_list args;
	size_t i, n;

	va_start(args, fmt);
	n = vscnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	wait_event_idle(s->wq, kt_has_room(s, n) || READ_ONCE(s->stop));
	if (READ_ONCE(s->stop))
		return;
	spin_lock(&s->lock);
	for (i = 0; i < n; i++)
		s->out[s->head++ % KT_OUT] = text[i];
	spin_unlock(&s->lock);
	wake_up(&s->wq);
}

/* ---- Commands ------------------------------------------------------------------ */

static void kt_execute(struct kt_session *s, struct kt_command *cmd)
{
	if (kt_parse(s, cmd, s->line))
		return;
	if (!strcmp(cmd->name, "list"))
		kt_list(s);
	else if (!strcmp(cmd->name, "limits"))
		kt_limits(s, cmd);
	else if (!strcmp(cmd->name, "functions"))
		kt_functions(s, cmd);
	else if (!strcmp(cmd->name, "server"))
		kt_serve(s, cmd);
	else
		kt_measure(s, cmd);
}

static int kt_thread(void *data)
{
	struct kt_session *s = data;
	struct kt_command *cmd = kzalloc(sizeof(*cmd), GFP_KERNEL);

	if (cmd)
		kt_execute(s, cmd);
	else
		kt_say(s, "error there is no memory\n");
	kfree(cmd);
	WRITE_ONCE(s->finished, true);
	wake_up(&s->wq);
	return 0;
}

/* Wait for the thread of a command that is at its end, or that is to stop. */
static void kt_reap(struct kt_session *s)
{
	if (!s->task)
		return;
	kthread_stop(s->task);
	put_task_struct(s->task);
	s->task = NULL;
}

static int kt_start(struct kt_session *s)
{
	struct task_struct *task;

	WRITE_ONCE(s->finished, false);
	task = kthread_create(kt_thread, s, "kdapl_test");
	if (IS_ERR(task))
		return PTR_ERR(task);
	s->task = get_task_struct(task);
	wake_up_process(task);
	return 0;
}

/* ---- The file -------------------------------------------------------------------- */

static int kt_open(struct inode *inode, struct file *file)
{
	struct kt_session *s;

	/* The file may have been given away, or its mode changed. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->out = kvmalloc(KT_OUT, GFP_KERNEL);
	if (!s->out) {
		kfree(s);
		return -ENOMEM;
	}
	mutex_init(&s->mutex);
	spin_lock_init(&s->lock);
	init_waitqueue_head(&s->wq);
	file->private_data = s;
	return stream_open(inode, file);
}

static int kt_release(struct inode *inode, struct file *file)
{
	struct kt_session *s = file->private_data;

	WRITE_ONCE(s->stop, true);
	kt_kick(s);
	kt_reap(s);
	kvfree(s->out);
	kfree(s);
	return 0;
}

static ssize_t kt_write(struct file *file, const char __user *from, size_t n,
			loff_t *pos)
{
	struct kt_session *s = file->private_data;
	int err = 0;

	if (n >= KT_LINE)
		return -EINVAL;
	if (mutex_lock_interruptible(&s->mutex))
		return -ERESTARTSYS;
	if (s->task && !READ_ONCE(s->finished)) {
		err = -EBUSY;
		goto out;
	}
	kt_reap(s);
	if (copy_from_user(s->line, from, n)) {
		err = -EFAULT;
		goto out;
	}
	s->line[n] = '\0';
	err = kt_start(s);
out:
	mutex_unlock(&s->mutex);
	return err ?: n;
}

/* Copy what was said, at most @n bytes. */
static ssize_t kt_take(struct kt_session *s, char __user *to, size_t n)
{
	size_t tail = s->tail, at = tail % KT_OUT;

	spin_lock(&s->lock);
	n = min3(n, s->head - tail, KT_OUT - at);
	spin_unlock(&s->lock);
	/* Until the tail moves nobody writes there. */
	if (copy_to_user(to, s->out + at, n))
		return -EFAULT;
	spin_lock(&s->lock);
	s->tail += n;
	spin_unlock(&s->lock);
	wake_up(&s->wq);
	return n;
}

/* Whether a read does not wait: something was said, or no command runs. */
static bool kt_can_read(struct kt_session *s)
{
	return !kt_has_room(s, KT_OUT) || !READ_ONCE(s->task) ||
	       READ_ONCE(s->finished);
}

/*
 * Read what was said. A reader that was told nothing for a second gets EINTR, as from a
 * signal, and reads again: a shell looks for signals that it has trapped before it reads
 * and after EINTR, so it would not notice one that comes right before it waits here.
 */
static ssize_t kt_read(struct file *file, char __user *to, size_t n,
		       loff_t *pos)
{
	struct kt_session *s = file->private_data;
	ssize_t got;
	long left;

	left = wait_event_interruptible_timeout(s->wq, kt_can_read(s), HZ);
	if (left < 0)
		return left;
	if (!left)
		return -EINTR;
	if (mutex_lock_interruptible(&s->mutex))
		return -ERESTARTSYS;
	got = kt_take(s, to, n);
	mutex_unlock(&s->mutex);
	return got;
}

static __poll_t kt_poll(struct file *file, struct poll_table_struct *wait)
{
	struct kt_session *s = file->private_data;

	poll_wait(file, &s->wq, wait);
	return EPOLLOUT | EPOLLWRNORM |
	       (kt_can_read(s) ? EPOLLIN | EPOLLRDNORM : 0);
}

static const struct file_operations kt_fops = {
	.owner = THIS_MODULE,
	.open = kt_open,
	.release = kt_release,
	.read = kt_read,
	.write = kt_write,
	.poll = kt_poll,
};

static struct miscdevice kt_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kdapl_test",
	.fops = &kt_fops,
	.mode = 0600,
};
module_misc_device(kt_device);

MODULE_DESCRIPTION("Tests and measurements of kDAPL between hosts, for kdapl-test(8)");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
