/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: receive buffers of a target. One SRQ for all its clients, as long as they need.
 *
 * Not part of DAT, as <dat/kdat_linux.h>. A target that serves many clients from one SRQ has to
 * make it longer as clients come and when it runs low, and shorter when they have gone, while
 * messages arrive. A pool does that: it owns the SRQ, the memory and its registration, follows
 * the low watermark and resizes. The target says how many buffers it wants, and puts each
 * buffer back when it has served the message.
 *
 * A target that has promised its clients that they find a buffer, as it must over iWARP, where
 * a message without a buffer ends the connection, reserves buffers for what a client may send.
 * What one client may take is a matter of dat_ep_set_watermark().
 */
#ifndef KDAT_POOL_H
#define KDAT_POOL_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <dat/dat_error.h>
#include <dat/dat_types.h>

typedef struct kdat_pool *KDAT_POOL_HANDLE;

/**
 * struct kdat_pool_buf - a receive buffer
 * @va: where the message is
 * @length: for the consumer; the pool does not look at it
 * @users: for the consumer
 * @link: for the consumer
 * @block: for the pool
 *
 * The cookie of a receive completion, as_ptr, is the buffer that the message is in. It belongs
 * to the consumer until kdat_pool_put().
 */
typedef struct kdat_pool_buf {
	DAT_PVOID va;
	DAT_UINT32 length;
	atomic_t users;
	struct list_head link;
	struct kdapl_pool_block *block;
} KDAT_POOL_BUF;

/**
 * struct kdat_pool_size - how long a queue is to be
 * @wanted: buffers while the queue does not run low
 * @most: buffers at the most; reserved ones may be more
 * @low: low watermark, buffers; 0 for a quarter of @wanted
 */
typedef struct kdat_pool_size {
	DAT_COUNT wanted;
	DAT_COUNT most;
	DAT_COUNT low;
} KDAT_POOL_SIZE;

/**
 * struct kdat_pool_attr - attributes of a pool
 * @ia: the IA
 * @pz: Protection Zone of the buffers, and of all Endpoints that use them
 * @name: name of the IA in the kernel's log; valid until the pool is freed, and may change
 * @length: size of a buffer, bytes
 * @header: bytes of a message before its data; what follows them is aligned to 512 bytes, as
 *	block devices want it
 * @size: function that stores how long the queue is to be; called in any context, and under a
 *	lock of the pool, so it must neither sleep nor call the pool
 * @context: for @size
 */
typedef struct kdat_pool_attr {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	const char *name;
	DAT_COUNT length;
	DAT_COUNT header;
	void (*size)(DAT_PVOID context, KDAT_POOL_SIZE *size);
	DAT_PVOID context;
} KDAT_POOL_ATTR;

/**
 * struct kdat_pool_param - what kdat_pool_query() tells
 * @srq: the SRQ, for dat_ep_create_with_srq()
 * @buffers: buffers that there are
 * @retired: buffers that have returned and are kept until the rest of their block has
 * @available: buffers that wait for a message
 * @low_watermark: low watermark of the SRQ, buffers
 * @reserved: buffers that are reserved
 * @bytes: memory of the buffers
 */
typedef struct kdat_pool_param {
	DAT_SRQ_HANDLE srq;
	DAT_COUNT buffers;
	DAT_COUNT retired;
	DAT_COUNT available;
	DAT_COUNT low_watermark;
	DAT_COUNT reserved;
	DAT_UINT64 bytes;
} KDAT_POOL_PARAM;

/**
 * kdat_pool_create() - make an SRQ with receive buffers that follow what is needed
 * @attr: attributes; copied
 * @pool: receives the pool
 *
 * As many buffers are posted as the function of @attr wants.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @pool is set
 * * %DAT_INVALID_PARAMETER - @attr, one of its pointers or @pool is NULL, length is not from 1
 *   to 1 MiB, or header is not from 0 to length; for a member, the tracepoint kdapl_refused
 *   names it, with ia=0
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no room
 * * as dat_srq_create()
 *
 * Example::
 *
 *	KDAT_POOL_ATTR attr = {
 *		.ia = ia, .pz = pz, .name = "rxe0/1", .length = 4096,
 *		.size = wanted_buffers,
 *	};
 *
 *	ret = kdat_pool_create(&attr, &pool);
 *
 * See also: kdat_pool_free(), kdat_pool_query(), dat_ep_create_with_srq()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_pool_create(const KDAT_POOL_ATTR *attr, KDAT_POOL_HANDLE *pool);

/**
 * kdat_pool_free() - free a pool, its buffers and its SRQ
 * @pool: pool, or NULL
 *
 * All Endpoints of the SRQ are freed, and nothing else about the pool is called meanwhile or
 * later. Memory that a device does not let go of is lost, and the log says so.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	dat_ep_free(ep);
 *	kdat_pool_free(pool);
 *
 * See also: kdat_pool_create(), dat_srq_free()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_free(KDAT_POOL_HANDLE pool);

/**
 * kdat_pool_put() - post a buffer again whose message was served
 * @pool: pool
 * @buf: cookie, as_ptr, of a receive completion, successful or not
 *
 * The consumer does not use @buf any more. Its message may be overwritten at once.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	KDAT_POOL_BUF *buf = event.event_data.dto_completion_event_data.user_cookie.as_ptr;
 *
 *	memcpy(buffer, buf->va, buf->length);
 *	kdat_pool_put(pool, buf);
 *
 * See also: kdat_pool_create()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_put(KDAT_POOL_HANDLE pool, KDAT_POOL_BUF *buf);

/**
 * kdat_pool_adapt() - have the length of the queue looked at
 * @pool: pool
 * @soon: %DAT_TRUE if more buffers may be wanted; %DAT_FALSE to look within five seconds
 *
 * To be called when what the size function tells has changed.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	window += 8;
 *	kdat_pool_adapt(pool, DAT_TRUE);
 *
 * See also: kdat_pool_create(), kdat_pool_ran_low()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_adapt(KDAT_POOL_HANDLE pool, DAT_BOOLEAN soon);

/**
 * kdat_pool_ran_low() - tell a pool that its low watermark was crossed
 * @pool: pool
 *
 * The queue is doubled until it has recovered, and becomes shorter again when it is calm. The
 * watermark is armed again when the queue has recovered.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	if (event.event_number == DAT_ASYNC_SRQ_LOW_WATERMARK)
 *		kdat_pool_ran_low(pool);
 *
 * See also: kdat_pool_create(), dat_srq_set_lw()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_ran_low(KDAT_POOL_HANDLE pool);

/**
 * kdat_pool_reserve() - reserve buffers for what a client may send at once
 * @pool: pool
 * @n: buffers
 * @least: buffers with which the client can do; if less than @n, no more are reserved than
 *	half of those that are left, so that others find some
 *
 * When the call returns there are as many buffers as are reserved.
 *
 * Context: Process context, may sleep.
 * Return: the number of reserved buffers, 0 if there are not @least, or no memory
 *
 * Example::
 *
 *	window = kdat_pool_reserve(pool, 32, 1);
 *
 * See also: kdat_pool_release()
 *
 * Source: Linux only, not part of DAT
 */
DAT_COUNT kdat_pool_reserve(KDAT_POOL_HANDLE pool, DAT_COUNT n, DAT_COUNT least);

/**
 * kdat_pool_release() - undo kdat_pool_reserve()
 * @pool: pool
 * @n: buffers
 *
 * All or some of the buffers that were reserved may be released.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	kdat_pool_release(pool, window);
 *
 * See also: kdat_pool_reserve()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_release(KDAT_POOL_HANDLE pool, DAT_COUNT n);

/**
 * kdat_pool_usable() - ask how many buffers there are
 * @pool: pool
 *
 * The number may have changed when the call returns.
 *
 * Context: Any context, never sleeps.
 * Return: the number of buffers that are not about to be removed
 *
 * Example::
 *
 *	if (window < kdat_pool_usable(pool))
 *		window++;
 *
 * See also: kdat_pool_most(), kdat_pool_query()
 *
 * Source: Linux only, not part of DAT
 */
DAT_COUNT kdat_pool_usable(KDAT_POOL_HANDLE pool);

/**
 * kdat_pool_most() - ask how many buffers there can be
 * @pool: pool
 *
 * The size function is called.
 *
 * Context: Any context, never sleeps.
 * Return: the most that the size function allows, in whole blocks of memory
 *
 * Example::
 *
 *	window = min(window, kdat_pool_most(pool) / 2);
 *
 * See also: kdat_pool_usable()
 *
 * Source: Linux only, not part of DAT
 */
DAT_COUNT kdat_pool_most(KDAT_POOL_HANDLE pool);

/**
 * kdat_pool_query() - ask for the SRQ and the counts of a pool
 * @pool: pool
 * @param: receives them
 *
 * The counts are of one moment.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	KDAT_POOL_PARAM param;
 *
 *	kdat_pool_query(pool, &param);
 *	ret = dat_ep_create_with_srq(ia, pz, evd, evd, evd, param.srq, NULL, &ep);
 *
 * See also: kdat_pool_create(), dat_srq_query()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_pool_query(KDAT_POOL_HANDLE pool, KDAT_POOL_PARAM *param);

#endif /* KDAT_POOL_H */
