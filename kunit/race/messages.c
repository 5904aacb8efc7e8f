// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: data of messages. What is posted has a place in memory of its own until it is
 * back, as far as there are places. A Send fills its place with words that follow from its
 * cookie and its Endpoint; such a message comes whole, at most once. A place that nobody has
 * is filled with a pattern, so a receive cannot have the data of another one, and what the
 * device still writes to a buffer that has come back is found when the place is taken again.
 *
 * Other Sends are from memory that others change. They are shorter, and are not compared.
 */
#include "race.h"

#define WORDS		(RACE_LEN / sizeof(u64))
#define NOBODYS		0x6e6f626f64792773ULL
#define SLOT_SHIFT	56

/* Words of a message: its cookie; its Endpoint, mixed with that; and what follows from both. */
static u64 word(u64 cookie, u64 slot, unsigned int i)
{
	return i ? (cookie ^ slot << SLOT_SHIFT) * (2 * i + 1) : cookie;
}

static u64 *place_at(struct race_world *w, u16 place)
{
	return (u64 *)(w->places + (size_t)(place - 1) * RACE_LEN);
}

static bool is_nobodys(const u64 *at)
{
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		if (READ_ONCE(at[i]) != NOBODYS)
			return false;
	return true;
}

/* Give a place back, the last one to be taken again. w->lock is held, or nobody else runs. */
void race_free_place(struct race_world *w, u16 place)
{
	if (!place)
		return;
	memset64(place_at(w, place), NOBODYS, WORDS);
	w->place_ring[(w->first_place + w->free_places++) % RACE_PLACES] = place;
}

static u16 take_place(struct race_world *w)
{
	unsigned long flags;
	u16 place = 0;

	spin_lock_irqsave(&w->lock, flags);
	if (w->free_places) {
		w->free_places--;
		place = w->place_ring[w->first_place++ % RACE_PLACES];
	}
	spin_unlock_irqrestore(&w->lock, flags);
	return place;
}

/*
 * Have what is about to be posted with @cookie, which is 0 or its caller's alone, use a place in
 * place of @seg, if that is of the memory which stays.
 */
void race_place(struct race_world *w, u64 cookie, DAT_LMR_TRIPLET *seg)
{
	struct race_buf *buf = &w->buf[(u16)cookie];
	bool sends = cookie && buf->kind == K_SEND;
	unsigned int i;
	u64 *at;

	if (sends)
		seg->segment_length = RACE_PLAIN_LEN;
	if (!cookie || seg->virtual_address - (uintptr_t)w->mem >= RACE_MEM_LEN)
		return;
	buf->place = take_place(w);
	if (!buf->place)
		return;
	at = place_at(w, buf->place);
	if (!is_nobodys(at))
		race_fail(w, "somebody wrote to a buffer that had come back");
	for (i = 0; sends && i < WORDS; i++)
		at[i] = word(cookie, buf->obj->slot, i);
	seg->virtual_address = (uintptr_t)at;
	seg->segment_length = RACE_LEN;
}

/* Note that message @gen of @buf has come. Return whether it has before. w->lock is held. */
static bool came_before(struct race_buf *buf, u32 gen)
{
	u32 back = buf->received - gen;
	bool before;

	if (gen > buf->received) {
		back = gen - buf->received;
		buf->came = (back < 64 ? buf->came << back : 0) | 1;
		buf->received = gen;
		return false;
	}
	/* Those of other Endpoints may be overtaken, but not by so many. */
	if (back >= 64)
		return false;
	before = buf->came & BIT_ULL(back);
	buf->came |= BIT_ULL(back);
	return before;
}

/* Was the Send of @cookie posted once, and has its message not come before? */
static bool is_due(struct race_world *w, u64 cookie)
{
	struct race_buf *buf = &w->buf[(u16)cookie];
	u32 gen = cookie >> 32;
	unsigned long flags;
	bool due;

	spin_lock_irqsave(&w->lock, flags);
	due = gen && gen <= buf->gen && !came_before(buf, gen);
	spin_unlock_irqrestore(&w->lock, flags);
	return due;
}

/* A message of @len bytes has come to @va. Context: any. */
void race_check_message(struct race_world *w, const void *va, u64 len)
{
	const u64 *at = va;
	u64 cookie = READ_ONCE(at[0]), slot;
	unsigned int i;

	if (len != RACE_LEN) {
		if (len != RACE_PLAIN_LEN)
			race_fail(w, "a message has %llu bytes", len);
		return;
	}
	slot = (at[1] * 0xaaaaaaaaaaaaaaabULL ^ cookie) >> SLOT_SHIFT;	/* the inverse of 3 */
	for (i = 0; i < WORDS; i++)
		if (READ_ONCE(at[i]) != word(cookie, slot, i))
			break;
	if (i < WORDS || (u32)cookie >= RACE_BUFS || slot >= RACE_EPS)
		race_fail(w, "a message has other data from word %u on: %#llx, of Endpoint %llu", i,
			  cookie, slot);
	else if (!is_due(w, cookie))
		race_fail(w, "message %#llx of Endpoint %llu comes twice, or was not sent", cookie,
			  slot);
	atomic_inc(&w->stat[N_COMPARED]);
}

/* The receive of @cookie has completed with @len bytes, and is not taken back yet. */
void race_received(struct race_world *w, u64 cookie, u64 len)
{
	struct race_buf *buf = &w->buf[(u16)cookie];
	unsigned long flags;
	u16 place = 0;

	if ((u32)cookie >= RACE_BUFS)
		return;
	spin_lock_irqsave(&w->lock, flags);
	if (buf->gen == cookie >> 32 && (buf->kind == K_RECV || buf->kind == K_SRQ))
		place = buf->place;
	spin_unlock_irqrestore(&w->lock, flags);
	if (place)
		race_check_message(w, place_at(w, place), len);
}
