// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * random_test.ko: arguments that are handles, which all threads share, and
 * memory.
 *
 * There are two worlds, one per device. A call gets most handles from one of
 * them; the others are of the other world, stale, of another type, or invented.
 * Handles whose object is gone stay in their slot until that is needed, so some
 * "valid" handles are stale as well.
 */
#include <linux/string.h>
#include "random.h"

/* ---- Handles ------------------------------------------------------------- */

static void add_stale(struct pool *pool, DAT_HANDLE handle)
{
	pool->stale[pool->stales++ % STALE] = handle;
}

/*
 * Share a handle with all threads, or free its object if there is no slot.
 * Context: any.
 */
void kdr_put(struct pool *pool, struct world *w, DAT_HANDLE_TYPE type,
	     DAT_HANDLE handle)
{
	unsigned long flags;
	DAT_HANDLE *slot;
	bool done = false;
	int i;

	spin_lock_irqsave(&pool->lock, flags);
	for (i = 0; i < SLOTS && !done; i++) {
		slot = &w->slot[type][i];
		if (*slot && kd_is_live(*slot))
			continue;
		if (*slot)
			add_stale(pool, *slot);
		*slot = handle;
		done = true;
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	if (!done && type == DAT_HANDLE_TYPE_IA)
		kd_may_fail(dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG));
	else if (!done)
		kd_free_object(handle);
}

/* Share the object of a call that has made one; *@handle is its handle. */
DAT_RETURN kdr_made(struct caller *c, DAT_HANDLE_TYPE type, DAT_RETURN ret,
		    void *handle)
{
	if (ret == DAT_SUCCESS)
		kdr_put(c->pool, c->w, type, *(DAT_HANDLE *)handle);
	return ret;
}

static DAT_HANDLE pick_from(struct caller *c, struct world *w,
			    DAT_HANDLE_TYPE type)
{
	unsigned int i, first = rnd(c, SLOTS);
	DAT_HANDLE handle = NULL;
	unsigned long flags;

	if (type == DAT_HANDLE_TYPE_IA && chance(c, 85))
		return w->ia;
	if (type == DAT_HANDLE_TYPE_EVD && chance(c, 3))
		return w->async_evd;
	/* Prefer few PZs, so that objects find others of their PZ. */
	if (type == DAT_HANDLE_TYPE_PZ && chance(c, 80))
		first = 0;
	spin_lock_irqsave(&c->pool->lock, flags);
	for (i = 0; i < SLOTS && !handle; i++)
		handle = w->slot[type][(first + i) % SLOTS];
	spin_unlock_irqrestore(&c->pool->lock, flags);
	return handle;
}

static DAT_HANDLE pick_garbage(struct caller *c, DAT_HANDLE_TYPE type)
{
	u64 value = (u64)prandom_u32_state(&c->rnd) << 32 |
		    prandom_u32_state(&c->rnd);

	switch (rnd(c, 5)) {
	case 0:
		return NULL;
	case 1:
		return (DAT_HANDLE)(uintptr_t)value;
	case 2:
		return (DAT_HANDLE)(uintptr_t)(value % 64);
	case 3:
		return c->pool->kmem;
	default:
		return (DAT_HANDLE)((uintptr_t)pick_from(c, c->w, type) ^
				    BIT(value % 64));
	}
}

/* Pick a handle for an argument of this type. */
DAT_HANDLE kdr_pick(struct caller *c, DAT_HANDLE_TYPE type)
{
	u32 kind = rnd(c, 100);

	if (kind < 90)
		return pick_from(c, c->w, type);
	if (kind < 93)
		return pick_from(c, &c->pool->world[rnd(c, WORLDS)], type);
	if (kind < 96)
		return READ_ONCE(c->pool->stale[rnd(c, STALE)]);
	if (kind < 98)
		return pick_from(c, c->w, rnd(c, TYPES));
	return pick_garbage(c, type);
}

/* Pick an EVD for events of this stream, if one is found soon. */
DAT_EVD_HANDLE kdr_pick_evd(struct caller *c, DAT_EVD_FLAGS flag)
{
	DAT_EVD_HANDLE evd = NULL;
	DAT_EVD_PARAM param;
	int i;

	for (i = 0; i < 6; i++) {
		evd = kdr_pick(c, DAT_HANDLE_TYPE_EVD);
		if (dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param) ==
		    DAT_SUCCESS && param.evd_flags & flag)
			break;
	}
	return evd;
}

/* Pick an Endpoint that requests can be posted to, if one is found soon. */
DAT_EP_HANDLE kdr_pick_connected(struct caller *c)
{
	DAT_EP_HANDLE ep = NULL;
	int i;

	for (i = 0; i < SLOTS; i++) {
		ep = kdr_pick(c, DAT_HANDLE_TYPE_EP);
		if (dat_ep_query(ep, DAT_EP_FIELD_ALL, &c->picked) ==
		    DAT_SUCCESS && c->picked.ep_state == DAT_EP_STATE_CONNECTED)
			break;
	}
	c->zone = c->picked.pz_handle;
	return ep;
}

/*
 * Pick an LMR or RMR of the PZ of the Endpoint picked last, if one is found
 * soon.
 */
DAT_HANDLE kdr_pick_near(struct caller *c, DAT_HANDLE_TYPE type)
{
	DAT_HANDLE handle = NULL;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	int i;

	for (i = 0; i < SLOTS; i++) {
		handle = kdr_pick(c, type);
		if (type == DAT_HANDLE_TYPE_LMR &&
		    dat_lmr_query(handle, DAT_LMR_FIELD_ALL, &lmr) ==
		    DAT_SUCCESS && lmr.pz_handle == c->zone)
			break;
		if (type == DAT_HANDLE_TYPE_RMR &&
		    dat_rmr_query(handle, DAT_RMR_FIELD_ALL, &rmr) ==
		    DAT_SUCCESS && rmr.pz_handle == c->zone)
			break;
	}
	return handle;
}

/* ---- Memory -------------------------------------------------------------- */

void kdr_put_region(struct caller *c, DAT_PZ_HANDLE zone, u64 base, u64 len,
		    DAT_LMR_CONTEXT lmr_context, DAT_RMR_CONTEXT rmr_context)
{
	struct world *w = c->w;
	unsigned long flags;

	spin_lock_irqsave(&c->pool->lock, flags);
	w->region[w->regions++ % REGIONS] = (struct region) {
		zone, base, len, lmr_context, rmr_context
	};
	spin_unlock_irqrestore(&c->pool->lock, flags);
}

struct region kdr_pick_region(struct caller *c)
{
	struct world *w = chance(c, 97) ? c->w :
					  &c->pool->world[rnd(c, WORLDS)];
	unsigned int i = rnd(c, REGIONS), n;
	struct region region;
	unsigned long flags;

	spin_lock_irqsave(&c->pool->lock, flags);
	for (n = 0; n < 8 && w->region[i].zone != c->zone; n++)
		i = (i + 1) % REGIONS;
	region = w->region[i];
	spin_unlock_irqrestore(&c->pool->lock, flags);
	if (chance(c, 3))
		region.lmr_context = prandom_u32_state(&c->rnd);
	if (chance(c, 3))
		region.rmr_context = prandom_u32_state(&c->rnd);
	return region;
}

/* Pick a part of a region, or rarely any address and length. */
void kdr_pick_part(struct caller *c, const struct region *region, u64 *va,
		   u32 *len)
{
	u64 offset = region->len ? prandom_u32_state(&c->rnd) % region->len : 0;

	*va = region->base + offset;
	*len = rnd(c, min_t(u64, region->len - offset, 3000) + 1);
	if (chance(c, 3))
		*len = prandom_u32_state(&c->rnd);
	if (chance(c, 3))
		*va = prandom_u32_state(&c->rnd);
}

static DAT_LMR_TRIPLET pick_triplet(struct caller *c)
{
	struct region region = kdr_pick_region(c);
	DAT_LMR_TRIPLET seg = { .lmr_context = region.lmr_context };

	kdr_pick_part(c, &region, &seg.virtual_address, &seg.segment_length);
	return seg;
}

DAT_RMR_TRIPLET kdr_pick_remote(struct caller *c)
{
	struct region region = kdr_pick_region(c);
	DAT_RMR_TRIPLET seg = { .rmr_context = region.rmr_context };

	kdr_pick_part(c, &region, &seg.virtual_address, &seg.segment_length);
	return seg;
}

/* Fill c->seg. Return the number of segments to pass, which may be wrong. */
DAT_COUNT kdr_pick_segs(struct caller *c)
{
	static const DAT_COUNT wrong[] = { -1, S32_MAX, S32_MIN, 1000 };
	int i, n = rnd(c, MAX_SEGS + 1);

	for (i = 0; i < MAX_SEGS; i++)
		c->seg[i] = pick_triplet(c);
	if (chance(c, 60))
		n = 1;
	return chance(c, 2) ? wrong[rnd(c, ARRAY_SIZE(wrong))] : n;
}

bool kdr_is_guarded(const u8 *mem)
{
	return !memchr_inv(mem, 0x5a, MEM_GUARD) &&
	       !memchr_inv(mem + MEM_LEN - MEM_GUARD, 0x5a, MEM_GUARD);
}

/* ---- Events -------------------------------------------------------------- */

/* Share the handle that an event brings. */
void kdr_saw_event(struct pool *pool, struct world *w, const DAT_EVENT *event)
{
	atomic_inc(&pool->events);
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		kdr_put(pool, w, DAT_HANDLE_TYPE_CR,
			event->event_data.cr_arrival_event_data.cr_handle);
}

/* Upcall: sometimes post a receive again, rarely free the Endpoint. */
void kdr_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct world *w = data;
	DAT_LMR_TRIPLET seg;
	u32 n;

	n = atomic_inc_return(&w->pool->upcalls);
	if (!event)
		return;
	kdr_saw_event(w->pool, w, event);
	if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		return;
	dto = &event->event_data.dto_completion_event_data;
	seg = (DAT_LMR_TRIPLET) {
		.virtual_address = w->region[n % REGIONS].base,
		.segment_length = min_t(u64, w->region[n % REGIONS].len, 512),
		.lmr_context = w->region[n % REGIONS].lmr_context,
	};
	if (n % 64 == 0)
		dat_ep_free(dto->ep_handle);
	else if (n % 16 == 0)
		dat_ep_disconnect(dto->ep_handle, DAT_CLOSE_ABRUPT_FLAG);
	else if (dto->operation == DAT_DTO_RECEIVE && n % 2)
		kd_may_fail(dat_ep_post_recv(dto->ep_handle, 1, &seg, dto->user_cookie, 0));
	else if (n % 3)
		kd_may_fail(dat_ep_post_send(dto->ep_handle, 1, &seg, dto->user_cookie, 0));
}
