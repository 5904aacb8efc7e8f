// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: what a call may return. RACE() calls race_enter() before and race_leave() after
 * it. A call finds an object until a call that frees it has begun, and not any more when such a
 * call had returned before it began. Other errors are those that its caller names.
 */
#include <linux/jiffies.h>
#include "race.h"

/* Is the other side in its call? */
static bool is_met(struct race_caller *c)
{
	return c->other && READ_ONCE(c->other->in);
}

void race_enter(struct race_caller *c, const char *name)
{
	WRITE_ONCE(c->since, jiffies);
	WRITE_ONCE(c->where, name);
	c->freed = atomic_read(&c->w->freed);
	if (!c->call || strcmp(name, c->call->name))
		return;
	c->late = atomic_read(&c->w->catastrophes);
	WRITE_ONCE(c->in, true);
	/* Pairs with itself: of two sides that enter, one at least sees the other. */
	smp_mb();
	c->meets = is_met(c);
}

/* What a call says of a handle of this type that is not valid. */
static DAT_RETURN_SUBTYPE not_valid(int type)
{
	switch (type) {
	case DAT_HANDLE_TYPE_EP:
		return DAT_INVALID_HANDLE_EP;
	case DAT_HANDLE_TYPE_SRQ:
		return DAT_INVALID_HANDLE_SRQ;
	case DAT_HANDLE_TYPE_LMR:
		return DAT_INVALID_HANDLE_LMR;
	case DAT_HANDLE_TYPE_RMR:
		return DAT_INVALID_HANDLE_RMR;
	case DAT_HANDLE_TYPE_PZ:
		return DAT_INVALID_HANDLE_PZ;
	case DAT_HANDLE_TYPE_PSP:
		return DAT_INVALID_HANDLE_PSP;
	case DAT_HANDLE_TYPE_RSP:
		return DAT_INVALID_HANDLE_RSP;
	case DAT_HANDLE_TYPE_CSP:
		return DAT_INVALID_HANDLE_CSP;
	case DAT_HANDLE_TYPE_IA:
		return DAT_INVALID_HANDLE_IA;
	case DAT_HANDLE_TYPE_EVD:
		return DAT_INVALID_HANDLE1;
	default:
		return DAT_NO_SUBTYPE;
	}
}

/* A handle that a call took for invalid belongs to nothing, or to what is being freed. */
static void check_handle(struct race_caller *c, DAT_RETURN ret, DAT_HANDLE handle)
{
	struct race_obj *obj = race_find(c->w, handle);
	int type = race_type_that_stays(c->w, handle);

	if (type >= 0 && DAT_GET_SUBTYPE(ret) == not_valid(type))
		race_fail(c->w, "%s does not find what stays, type %d", c->where, type);
	/* Here it may be the other Endpoint. */
	if (!strcmp(c->where, "dat_ep_dup_connect"))
		return;
	if (!obj || DAT_GET_SUBTYPE(ret) != not_valid(obj->type))
		return;
	/* If the calls that free it are all refused, race_free() tells. */
	WRITE_ONCE(obj->denied, true);
	if (!atomic_read(&obj->freeing))
		race_fail(c->w, "%s does not find object %d, which nobody has freed", c->where,
			  obj->slot);
}

/*
 * What was freed before a call began is not found. Other handles than DAT's may be used again.
 * Looking takes the model's lock, so that is done now and then: calls are to meet in kDAPL.
 */
static void check_success(struct race_caller *c, DAT_HANDLE handle)
{
	struct race_obj *obj = race_find(c->w, handle);
	int when = obj && obj->type < RACE_TYPE_SG ? atomic_read(&obj->freed) : 0;

	if (when && when <= c->freed)
		race_fail(c->w, "%s succeeds on object %d, which was freed before", c->where,
			  obj->slot);
}

/* Two that look at once may forget one; it is a hint where time goes. */
static void note_longest(struct race_caller *c)
{
	unsigned long took = jiffies - c->since;

	if (took > READ_ONCE(c->w->took)) {
		WRITE_ONCE(c->w->took, took);
		WRITE_ONCE(c->w->longest, c->where);
	}
}

void race_leave(struct race_caller *c, DAT_RETURN ret, u32 may, DAT_HANDLE first)
{
	note_longest(c);
	if (READ_ONCE(c->w->is_gone))
		may |= GONE;
	if (c->in) {
		c->calls++;
		c->good += ret == DAT_SUCCESS;
		c->met += c->meets || is_met(c);
		c->beside |= !c->late && READ_ONCE(c->w->leaves);
		WRITE_ONCE(c->in, false);
	}
	if (ret == DAT_SUCCESS && !rnd(c, 4))
		check_success(c, first);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
		check_handle(c, ret, first);
	if (ret != DAT_SUCCESS &&
	    (DAT_GET_CLASS(ret) != DAT_CLASS_ERROR || DAT_GET_TYPE(ret) >> 16 > 31 ||
	     !(may & MAY(DAT_GET_TYPE(ret)))))
		race_fail(c->w, "%s returned %#x %s", c->where, ret, kd_strerror(ret));
	WRITE_ONCE(c->where, NULL);
}
