/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sleep until an Event Dispatcher has an event: a dat_evd_wait() for kDAPL, which
 * has none. Copy it; Documentation/waiting.rst says why it is correct.
 *
 *	evd_waiter_init(&w);
 *	dat_evd_kcreate(ia, 64, DAT_UPCALL_NOTIFY, &w.upcall, flags, &w.evd);
 *	evd_wait(&w, &event, 5 * HZ);
 *	dat_evd_free(w.evd);		(from its return on, w is not used)
 */
#ifndef EVD_WAIT_H
#define EVD_WAIT_H

#include <linux/wait.h>
#include <dat/kdat.h>

/*
 * struct evd_waiter - an EVD and the threads that sleep for its events
 * @evd: the EVD; its policy is DAT_UPCALL_NOTIFY
 * @upcall: what it was made with; refers to this structure
 * @wait: where the threads sleep
 */
struct evd_waiter {
	DAT_EVD_HANDLE evd;
	DAT_UPCALL_OBJECT upcall;
	wait_queue_head_t wait;
};

/* Something has arrived, and is still in the EVD. Softirq or process context. */
static inline void evd_wait_upcall(DAT_PVOID instance, const DAT_EVENT *event,
				   DAT_BOOLEAN more)
{
	struct evd_waiter *w = instance;

	wake_up_all(&w->wait);
}

static inline void evd_waiter_init(struct evd_waiter *w)
{
	init_waitqueue_head(&w->wait);
	w->upcall.instance_data = w;
	w->upcall.upcall_func = evd_wait_upcall;
}

/* Take an event off; is the answer anything but "there is none"? */
static inline bool evd_wait_try(struct evd_waiter *w, DAT_EVENT *event,
				DAT_RETURN *ret)
{
	*ret = dat_evd_dequeue(w->evd, event);
	return DAT_GET_TYPE(*ret) != DAT_QUEUE_EMPTY;
}

/*
 * evd_wait - take the next event off, and sleep until there is one
 * @w: the EVD; several threads may wait, each event goes to one of them
 * @event: filled in
 * @timeout: jiffies, or MAX_SCHEDULE_TIMEOUT
 *
 * Return: %DAT_SUCCESS, %DAT_TIMEOUT_EXPIRED, %DAT_INTERRUPTED_CALL after a
 * signal, or what dat_evd_dequeue() says of the EVD.
 */
static inline DAT_RETURN evd_wait(struct evd_waiter *w, DAT_EVENT *event,
				  long timeout)
{
	DAT_RETURN ret;
	long left;

	left = wait_event_interruptible_timeout(w->wait,
						evd_wait_try(w, event, &ret),
						timeout);
	if (left > 0)
		return ret;
	return DAT_ERROR(left ? DAT_INTERRUPTED_CALL : DAT_TIMEOUT_EXPIRED,
			 DAT_NO_SUBTYPE);
}

#endif /* EVD_WAIT_H */
