// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The users of an EVD: streams of Endpoints, other IAs for their asynchronous
 * events, and queue pairs whose queue has no EVD (the null EVD).
 */
#include "evd.h"
#include "ia.h"

/*
 * Held by who adds streams. dat_ep_modify() takes its streams away before it adds others, and
 * may have to add them again, without a check, after what it does then has failed. No memory is
 * allocated meanwhile.
 */
DEFINE_MUTEX(kdapl_streams_lock);

/*
 * Add a DTO stream to an EVD. Streams with UNSIGNALLED, and streams that wait for
 * solicited messages, share an EVD only with streams of the same flags; return false
 * otherwise.
 */
bool kdapl_evd_add_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	u32 solicited = !!(flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	u32 unsignalled = !!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	unsigned long irq;
	bool ok;

	lockdep_assert_held(&kdapl_streams_lock);

	if (!evd)
		return true;
	spin_lock_irqsave(&evd->lock, irq);
	ok = evd->solicited == solicited * evd->streams &&
	     evd->unsignalled == unsignalled * evd->streams;
	if (ok) {
		evd->streams++;
		evd->solicited += solicited;
		evd->unsignalled += unsignalled;
	}
	spin_unlock_irqrestore(&evd->lock, irq);
	return ok;
}

/* Add a stream back without a check: the EVD carried it before. */
void kdapl_evd_readd_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	unsigned long irq;

	lockdep_assert_held(&kdapl_streams_lock);

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, irq);
	evd->streams++;
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		evd->solicited++;
	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		evd->unsignalled++;
	spin_unlock_irqrestore(&evd->lock, irq);
}

void kdapl_evd_del_stream(struct kdapl_evd *evd, DAT_COMPLETION_FLAGS flags)
{
	unsigned long irq;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, irq);
	evd->streams--;
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		evd->solicited--;
	if (flags & DAT_COMPLETION_UNSIGNALLED_FLAG)
		evd->unsignalled--;
	spin_unlock_irqrestore(&evd->lock, irq);
}

/* An IA starts (1) or ceases (-1) to use @evd for its asynchronous events. */
void kdapl_evd_use_async(struct kdapl_evd *evd, int delta)
{
	struct kdapl_ia *ia = evd->obj.ia;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	ia->shared_async_evds -= !!evd->async_users;
	evd->async_users += delta;
	ia->shared_async_evds += !!evd->async_users;
	spin_unlock_irqrestore(&ia->lock, flags);
}

/*
 * Return the EVD whose CQs serve QPs that have a queue without an EVD. The first call
 * creates it; NULL if that fails. Context: Process context.
 */
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia)
{
	struct kdapl_evd *evd;
	int err;

	mutex_lock(&ia->null_mutex);
	if (!ia->null_evd)
		ia->null_evd = kdapl_evd_alloc(ia, 1, DAT_EVD_DTO_FLAG, &err);
	evd = ia->null_evd;
	mutex_unlock(&ia->null_mutex);
	return evd;
}
