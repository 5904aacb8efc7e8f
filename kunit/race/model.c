// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: exact counts. Each buffer and request that is posted has a cookie,
 * which comes back once, or not at all if its Endpoint or SRQ is freed before. Each
 * connection has at most one ESTABLISHED and one last event; of watermarks see marks.c.
 * Nothing names an Endpoint that was freed before the event was dequeued.
 *
 * Entry points: race_post() before and race_posted() after a post, race_saw() for each event.
 * Failures are told by race.c when the pair has ended.
 *
 * An upcall may have an event of an Endpoint that was freed, but not when a wait for upcalls
 * that began after that has returned.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include "race.h"

#define LINGER_US	1000	/* how long some upcalls are */
#define LINGER_WAITS	16	/* or until so many waits for upcalls have returned */

/*
 * Let others run, although this thread has work. cond_resched() would do so at the next
 * tick only, which is the time of a pair.
 */
void race_yield(void)
{
	yield();
}

/* ---- Failures ------------------------------------------------------------ */

/* Context: any. */
void race_fail(struct race_world *w, const char *fmt, ...)
{
	unsigned long flags;
	va_list args;

	spin_lock_irqsave(&w->fail_lock, flags);
	if (w->failures++ < RACE_TOLD) {
		char *told = w->told[w->failures - 1];

		va_start(args, fmt);
		vscnprintf(told, sizeof(w->told[0]), fmt, args);
		va_end(args);
		/* The kernel may not live to tell. */
		pr_err("race: %s\n", told);
	}
	spin_unlock_irqrestore(&w->fail_lock, flags);
}

/* ---- Buffers ------------------------------------------------------------- */

static const char * const kind_names[] = {
	[K_NONE] = "free", [K_RECV] = "receive", [K_SRQ] = "buffer of an SRQ",
	[K_SEND] = "Send", [K_READ] = "Read", [K_WRITE] = "Write",
	[K_LATE_READ] = "late Read", [K_LATE_WRITE] = "late Write", [K_FMR] = "fmr",
	[K_INVALIDATE] = "invalidate", [K_BIND] = "bind", [K_SOFTWARE] = "software event",
};

/* Those that are DTOs */
static const DAT_DTOS operation[] = {
	[K_RECV] = DAT_DTO_RECEIVE, [K_SRQ] = DAT_DTO_RECEIVE, [K_SEND] = DAT_DTO_SEND,
	[K_READ] = DAT_DTO_RDMA_READ, [K_WRITE] = DAT_DTO_RDMA_WRITE,
	[K_LATE_READ] = DAT_DTO_RDMA_READ, [K_LATE_WRITE] = DAT_DTO_RDMA_WRITE,
	[K_FMR] = DAT_DTO_LMR_FMR, [K_INVALIDATE] = DAT_DTO_LMR_INVALIDATE,
};

static bool is_receive(enum race_kind kind)
{
	return kind == K_RECV || kind == K_SRQ;
}

static atomic_t *count_of(struct race_obj *obj, enum race_kind kind)
{
	return is_receive(kind) ? &obj->recvs : &obj->reqs;
}

void race_init_bufs(struct race_world *w)
{
	unsigned int i;

	/* Entry 0 ends the list of free ones. */
	for (i = 1; i < RACE_BUFS; i++)
		w->buf[i].next = (i + 1) % RACE_BUFS;
	w->free_buf = 1;
}

/* Return a cookie for something to be posted to @obj, or 0. It counts as posted. */
u64 race_post(struct race_world *w, enum race_kind kind, struct race_obj *obj)
{
	unsigned long flags;
	u64 cookie = 0;
	u16 i;

	if (!obj)
		return 0;
	spin_lock_irqsave(&w->lock, flags);
	i = w->free_buf;
	if (i) {
		struct race_buf *buf = &w->buf[i];

		w->free_buf = buf->next;
		buf->kind = kind;
		buf->obj = obj;
		buf->gen++;
		cookie = (u64)buf->gen << 32 | i;
		atomic_inc(count_of(obj, kind));
	}
	spin_unlock_irqrestore(&w->lock, flags);
	return cookie;
}

static void free_buf(struct race_world *w, struct race_buf *buf)
{
	atomic_dec(count_of(buf->obj, buf->kind));
	race_free_place(w, buf->place);
	buf->place = 0;
	buf->kind = K_NONE;
	buf->next = w->free_buf;
	w->free_buf = buf - w->buf;
}

/*
 * Take the buffer of @cookie back. Return what it was, K_NONE if it was not posted; and
 * what it was posted to.
 */
static enum race_kind take_back(struct race_world *w, u64 cookie, struct race_obj **obj)
{
	enum race_kind kind = K_NONE;
	struct race_buf *buf;
	unsigned long flags;
	u32 i = cookie;

	*obj = NULL;
	if (!i || i >= RACE_BUFS)
		return K_NONE;
	buf = &w->buf[i];
	spin_lock_irqsave(&w->lock, flags);
	if (buf->gen == cookie >> 32 && buf->kind) {
		kind = buf->kind;
		*obj = buf->obj;
		free_buf(w, buf);
	}
	spin_unlock_irqrestore(&w->lock, flags);
	return kind;
}

/* A Read or Write of @cookie will be posted that names memory of @lmr, or what stays if NULL. */
void race_names_memory(struct race_world *w, u64 cookie, struct race_obj *lmr)
{
	struct race_buf *buf = &w->buf[(u16)cookie];
	unsigned long flags;

	if (!cookie || !lmr || !atomic_read(&lmr->freed))
		return;
	spin_lock_irqsave(&w->lock, flags);
	if (buf->kind == K_READ)
		buf->kind = K_LATE_READ;
	else if (buf->kind == K_WRITE)
		buf->kind = K_LATE_WRITE;
	spin_unlock_irqrestore(&w->lock, flags);
}

/* The post of @cookie has returned @ret. */
void race_posted(struct race_world *w, u64 cookie, DAT_RETURN ret)
{
	struct race_obj *obj;

	if (ret != DAT_SUCCESS && take_back(w, cookie, &obj) == K_NONE)
		race_fail(w, "%#llx has completed, and its post returned %s", cookie,
			  kd_strerror(ret));
}

/*
 * Nothing runs: what was posted to objects that were freed is the consumer's again. Return
 * how many buffers are still posted.
 */
unsigned int race_recycle(struct race_world *w)
{
	unsigned int i, left = 0;
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	for (i = 1; i < RACE_BUFS; i++) {
		if (w->buf[i].kind && atomic_read(&w->buf[i].obj->freed))
			free_buf(w, &w->buf[i]);
		left += w->buf[i].kind != K_NONE;
	}
	spin_unlock_irqrestore(&w->lock, flags);
	return left;
}

/* ---- Events -------------------------------------------------------------- */

/* @freed: of w->freed, before the event was dequeued; below 0 if that is not known */
static void check_freed(struct race_world *w, struct race_obj *obj, int freed,
			const DAT_EVENT *event)
{
	int when = atomic_read(&obj->freed);

	if (when && when <= freed)
		race_fail(w, "event %#x of a freed object", event->event_number);
}

static struct race_obj *find_named(struct race_world *w, DAT_HANDLE handle, int freed,
				   const DAT_EVENT *event)
{
	struct race_obj *obj = race_find(w, handle);

	if (obj)
		check_freed(w, obj, freed, event);
	else
		race_fail(w, "event %#x names %p", event->event_number, handle);
	return obj;
}

/* A completion of @ep that was reaped in order. */
static void check_order(struct race_world *w, struct race_obj *ep, enum race_kind kind,
			DAT_DTO_COMPLETION_STATUS status)
{
	if (!ep->ordered || status != DAT_DTO_SUCCESS || ep->up)
		return;
	if (!ep->early++)
		race_fail(w,
			  "Endpoint %d: success of a %s out of order, %d connections begun, %d established, %d ended",
			  ep->slot, kind_names[kind], atomic_read(&ep->starts),
			  atomic_read(&ep->ests), atomic_read(&ep->ends));
}

/* Is it a buffer of the pool that has completed? */
static bool saw_pooled(struct race_world *w, struct race_obj *ep,
		       const DAT_DTO_COMPLETION_EVENT_DATA *dto, int freed)
{
	KDAT_POOL_BUF *buf = dto->user_cookie.as_ptr;

	if (dto->operation != DAT_DTO_RECEIVE && dto->operation != DAT_DTO_RECEIVE_WITH_INVALIDATE)
		return false;
	if (dto->status == DAT_DTO_SUCCESS) {
		race_check_message(w, buf->va, dto->transfered_length);
		race_counted(w, ep, 1, freed);
	}
	race_saw_pooled(w, buf);
	return true;
}

/*
 * What is sent or written is not in memory that was freed: a post refuses such memory, and the
 * memory is not freed before what was posted has ended. A Read may name an RMR, which is bound
 * anew at any moment, and a receive may get a message that invalidates what it must not.
 */
static void check_status(struct race_world *w, enum race_kind kind,
			 const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	if (dto->status == DAT_DTO_ERR_LOCAL_PROTECTION &&
	    (kind == K_SEND || kind == K_WRITE || kind == K_LATE_WRITE))
		race_fail(w, "%s names memory that was freed", kind_names[kind]);
	/* A Write over iWARP is complete when the peer has it, which does not say where. */
	if (dto->status == DAT_DTO_SUCCESS &&
	    (kind == K_LATE_READ || (kind == K_LATE_WRITE && !w->iwarp)))
		race_fail(w, "a %s succeeds, of memory that was freed before", kind_names[kind]);
}

static void saw_dto(struct race_world *w, const DAT_EVENT *event, int freed)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;
	struct race_obj *ep = find_named(w, dto->ep_handle, freed, event), *obj;
	u64 cookie = dto->user_cookie.as_64;
	enum race_kind kind;

	if (ep && ep->slot == S_POOLED && saw_pooled(w, ep, dto, freed))
		return;
	if (dto->status == DAT_DTO_SUCCESS)
		race_received(w, cookie, dto->transfered_length);
	kind = take_back(w, cookie, &obj);
	atomic_inc(&w->stat[dto->status == DAT_DTO_SUCCESS ? N_MESSAGES : N_FLUSHED]);
	if (kind == K_NONE)
		race_fail(w, "%#llx completes, status %d, and is not posted", cookie,
			  dto->status);
	if (kind == K_NONE || !ep)
		return;
	if (kind >= ARRAY_SIZE(operation) ||
	    (operation[kind] != dto->operation &&
	     !(is_receive(kind) && dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE)))
		race_fail(w, "%s completes as operation %d", kind_names[kind],
			  dto->operation);
	if (obj != (kind == K_SRQ ? ep->srq : ep))
		race_fail(w, "%s of another object", kind_names[kind]);
	if (is_receive(kind) && dto->status == DAT_DTO_SUCCESS &&
	    dto->transfered_length != RACE_LEN && dto->transfered_length != RACE_PLAIN_LEN)
		race_fail(w, "%llu bytes received", (u64)dto->transfered_length);
	check_status(w, kind, dto);
	check_order(w, ep, kind, dto->status);
	if (ep->up && is_receive(kind) && dto->status == DAT_DTO_SUCCESS)
		WRITE_ONCE(ep->got, true);
	/* It was held until it was dequeued, with others or alone. */
	if (is_receive(kind) && dto->status == DAT_DTO_SUCCESS)
		race_counted(w, ep, 1, freed);
}

static void saw_bind(struct race_world *w, const DAT_EVENT *event, int freed)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;
	u64 cookie = bind->user_cookie.as_64;
	struct race_obj *ep;

	if (take_back(w, cookie, &ep) != K_BIND) {
		race_fail(w, "bind %#llx is not posted", cookie);
		return;
	}
	check_freed(w, ep, freed, event);
	check_order(w, ep, K_BIND, bind->status);
}

static void saw_software(struct race_world *w, const DAT_EVENT *event)
{
	u64 cookie = (uintptr_t)event->event_data.software_event_data.pointer;
	struct race_obj *evd;

	if (cookie && take_back(w, cookie, &evd) != K_SOFTWARE)
		race_fail(w, "software event %#llx is not posted", cookie);
}

static void saw_established(struct race_world *w, struct race_obj *ep)
{
	if (atomic_inc_return(&ep->ests) > atomic_read(&ep->starts))
		race_fail(w, "ESTABLISHED twice");
	if (ep->ordered && (ep->up || ep->early))
		race_fail(w, "Endpoint %d: ESTABLISHED %s, after %u successes", ep->slot,
			  ep->up ? "again" : "late", ep->early);
	ep->early = 0;
	WRITE_ONCE(ep->got, false);
	ep->up = true;
}

static void saw_end(struct race_world *w, struct race_obj *ep, DAT_EVENT_NUMBER number)
{
	/* When the device leaves, one that was not connected is told, too. */
	if (atomic_inc_return(&ep->ends) > atomic_read(&ep->starts) + READ_ONCE(w->is_gone))
		race_fail(w, "event %#x after the last one", number);
	if (ep->ordered && ep->up && number != DAT_CONNECTION_EVENT_DISCONNECTED &&
	    number != DAT_CONNECTION_EVENT_BROKEN)
		race_fail(w, "event %#x after ESTABLISHED", number);
	if (ep->early)
		race_fail(w, "Endpoint %d: ends with %#x after %u successes out of order",
			  ep->slot, number, ep->early);
	ep->early = 0;
	WRITE_ONCE(ep->got, false);
	ep->up = false;
}

static void saw_connection(struct race_world *w, const DAT_EVENT *event, int freed)
{
	struct race_obj *ep = find_named(w, event->event_data.connect_event_data.ep_handle,
					 freed, event);

	if (!ep)
		return;
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		atomic_inc(&w->stat[N_ESTABLISHED]);
		saw_established(w, ep);
		return;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		atomic_inc(&w->stat[N_DISCONNECTED]);
		break;
	case DAT_CONNECTION_EVENT_BROKEN:
		atomic_inc(&w->stat[N_BROKEN]);
		break;
	default:
		atomic_inc(&w->stat[N_REFUSED]);
	}
	saw_end(w, ep, event->event_number);
}

/* An answer to a request has returned @ret: one succeeds at most. */
void race_answered(struct race_world *w, DAT_CR_HANDLE cr, DAT_RETURN ret)
{
	struct race_obj *obj = ret == DAT_SUCCESS ? race_find(w, cr) : NULL;

	if (obj && atomic_cmpxchg(&obj->freed, 0, atomic_inc_return(&w->freed)))
		race_fail(w, "a connection request was answered twice");
}

/* Keep the request for those who answer. If there are too many, one is rejected. */
static void saw_request(struct race_world *w, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;

	if (!race_know(w, cr, DAT_HANDLE_TYPE_CR))
		race_fail(w, "a connection request comes twice");
	cr = xchg(&w->cr[(u32)atomic_inc_return(&w->crs) % RACE_CRS], cr);
	if (cr)
		race_answered(w, cr, dat_cr_reject(cr, 0, NULL));
}

/* Context: any; process context for connection requests. */
void race_saw(struct race_world *w, const DAT_EVENT *event, int freed)
{
	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		saw_dto(w, event, freed);
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		saw_bind(w, event, freed);
		break;
	case DAT_SOFTWARE_EVENT:
		saw_software(w, event);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		saw_request(w, event);
		break;
	case DAT_ASYNC_SRQ_LOW_WATERMARK:
		if (event->event_data.asynch_error_event_data.dat_handle == w->pool_srq) {
			kdat_pool_ran_low(w->pool);
			break;
		}
		fallthrough;
	case DAT_ASYNC_EP_SOFT_HIGH_WATERMARK:
		race_saw_mark(w, find_named(w,
					    event->event_data.asynch_error_event_data.dat_handle,
					    freed, event));
		break;
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
		race_saw_overflow(w, event);
		break;
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		atomic_inc(&w->catastrophes);
		break;
	default:
		saw_connection(w, event, freed);
	}
}

/* Dequeue an event. Return whether there was one. */
bool race_dequeue(struct race_caller *c, enum race_evd evd)
{
	int freed = atomic_read(&c->w->freed);
	DAT_EVENT event;

	if (RACE(c, dat_evd_dequeue, EMPTY, c->w->evd[evd], &event) != DAT_SUCCESS)
		return false;
	race_saw(c->w, &event, freed);
	return true;
}

/* Wait until no upcall has an event of an Endpoint that was freed before. */
void race_wait_upcalls(struct race_caller *c, DAT_EVD_HANDLE evd)
{
	int freed = atomic_read(&c->w->freed);
	unsigned long flags;
	unsigned int i;

	if (RACE(c, kdat_evd_wait_upcalls, HANDLE, evd) != DAT_SUCCESS)
		return;
	spin_lock_irqsave(&c->w->lock, flags);
	for (i = 0; i < RACE_EVDS; i++)
		if (c->w->evd[i] == evd && c->w->waited[i] < freed)
			WRITE_ONCE(c->w->waited[i], freed);
	spin_unlock_irqrestore(&c->w->lock, flags);
	atomic_inc(&c->w->waits);
}

/* Be long enough for others to free what this upcall is about, and wait: that must not return. */
static void linger(struct race_world *w)
{
	int waits = atomic_read(&w->waits);
	ktime_t end = ktime_add_us(ktime_get(), LINGER_US);

	while (atomic_read(&w->waits) - waits < LINGER_WAITS && ktime_before(ktime_get(), end))
		race_yield();
}

/* Return the Endpoint that @event is of, and the EVD whose upcalls have it; or NULL. */
static struct race_obj *ep_of(struct race_world *w, const DAT_EVENT *event, enum race_evd *evd)
{
	*evd = E_DTO;
	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		return race_find(w, event->event_data.dto_completion_event_data.ep_handle);
	case DAT_RMR_BIND_COMPLETION_EVENT:
	case DAT_SOFTWARE_EVENT:
		return NULL;
	default:
		*evd = E_CONN;
		return race_find(w, event->event_data.connect_event_data.ep_handle);
	}
}

/* The upcall of E_DTO, E_CONN and S_EVD. Without an event it leaves it to those who dequeue. */
void race_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct race_world *w = data;
	struct race_obj *ep;
	enum race_evd evd;
	int n;

	n = atomic_inc_return(&w->stat[N_UPCALLS]);
	if (!event)
		return;
	race_saw(w, event, -1);
	/* It takes a moment, in which others may free what it is about, and wait for it. */
	if (in_task() && !(n % 16))
		linger(w);
	else if (in_task())
		race_yield();
	else if (!(n % 8))
		udelay(20);
	ep = ep_of(w, event, &evd);
	if (ep)
		check_freed(w, ep, READ_ONCE(w->waited[evd]), event);
}
