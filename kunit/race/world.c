// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: objects. Each thread takes those it works on out of the slots of the
 * world, at any moment; race_replace() puts another one there and frees the one before.
 * An object that was freed is remembered until the next state of rest, when
 * race_forget() is called.
 */
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "race.h"

/* ---- Finding and making -------------------------------------------------- */

/* Find an object by its handle, which may be that of one freed before. */
struct race_obj *race_find(struct race_world *w, DAT_HANDLE handle)
{
	struct race_obj *obj, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	hash_for_each_possible(w->objs, obj, node, (uintptr_t)handle)
		if (obj->handle == handle)
			found = obj;
	spin_unlock_irqrestore(&w->lock, flags);
	return found;
}

static void remember(struct race_world *w, struct race_obj *obj)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	hash_add(w->objs, &obj->node, (uintptr_t)obj->handle);
	spin_unlock_irqrestore(&w->lock, flags);
}

/* Return the type of an object that stays, or -1. */
int race_type_that_stays(struct race_world *w, DAT_HANDLE handle)
{
	unsigned int i;

	if (!handle)
		return -1;
	for (i = 0; i < RACE_EVDS; i++)
		if (handle == w->evd[i])
			return DAT_HANDLE_TYPE_EVD;
	return handle == w->ia ? DAT_HANDLE_TYPE_IA :
	       handle == w->pz ? DAT_HANDLE_TYPE_PZ :
	       handle == w->lmr ? DAT_HANDLE_TYPE_LMR :
	       handle == w->rmr ? DAT_HANDLE_TYPE_RMR :
	       handle == w->psp ? DAT_HANDLE_TYPE_PSP : -1;
}

/* Remember a handle that the provider has made. Return whether it is a new one. */
bool race_know(struct race_world *w, DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct race_obj *obj;

	if (race_find(w, handle))
		return false;
	obj = kzalloc(sizeof(*obj), GFP_KERNEL);
	if (!obj)
		return true;
	obj->handle = handle;
	obj->type = type;
	obj->slot = RACE_SLOTS;
	remember(w, obj);
	return true;
}

/*
 * The Endpoints: those with an even number ask for connections, the others answer. With
 * E_MERGED they have all events there. The last one receives from the pool.
 */
static const struct {
	enum race_slot srq;
	bool merged;
} race_kinds[RACE_EPS] = {
	{ 0, true }, { S_SRQ, true }, { S_SRQ, false }, { S_SRQ2, false },
	{ 0, false }, { S_SRQ, false }, { S_SRQ, true }, { 0, true }, { 0, false }, { 0, false },
};

static DAT_RETURN make_ep(struct race_caller *c, struct race_obj *obj)
{
	enum race_slot slot = race_kinds[obj->slot - S_EP].srq;
	struct race_world *w = c->w;
	DAT_EVD_HANDLE dto, conn;
	DAT_EP_HANDLE ep = NULL;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_RETURN ret;

	obj->ordered = race_kinds[obj->slot - S_EP].merged;
	dto = w->evd[obj->ordered ? E_MERGED : E_DTO];
	conn = w->evd[obj->ordered ? E_MERGED : E_CONN];
	attr.max_recv_dtos = 16;
	attr.max_request_dtos = 16;
	obj->srq = slot ? race_slot(w, slot) : NULL;
	if (slot || obj->slot == S_POOLED)
		ret = RACE(c, dat_ep_create_with_srq, NO_ROOM | HANDLE, w->ia, w->pz, dto, dto,
			   conn, slot ? race_handle(obj->srq) : w->pool_srq, &attr, &ep);
	else
		ret = RACE(c, dat_ep_create, NO_ROOM, w->ia, w->pz, dto, dto, conn, &attr, &ep);
	obj->handle = ep;
	return ret;
}

static DAT_RETURN make_srq(struct race_caller *c, struct race_obj *obj)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = RACE_SRQ_MAX,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_SRQ_HANDLE srq = NULL;
	DAT_RETURN ret;

	ret = RACE(c, dat_srq_create, NO_ROOM, c->w->ia, c->w->pz, &attr, &srq);
	obj->handle = srq;
	return ret;
}

static DAT_RETURN register_page(struct race_caller *c, struct race_obj *obj, DAT_PZ_HANDLE pz,
				DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = obj->page };

	return RACE(c, dat_lmr_kcreate, NO_ROOM | HANDLE, c->w->ia, DAT_MEM_TYPE_VIRTUAL, region,
		    PAGE_SIZE, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
		    DAT_MEM_OPTIMIZE_DONT_CARE, lmr, &obj->lmr_context, &obj->rmr_context, NULL,
		    NULL);
}

/* The PZ of the Endpoints, or one that is freed now and then. */
static DAT_PZ_HANDLE pick_pz(struct race_caller *c)
{
	/* So rarely that all three are in the other now and then, and it can be freed. */
	struct race_obj *pz = rnd(c, 4) ? NULL : race_slot(c->w, S_PZ);

	return pz ? pz->handle : c->w->pz;
}

/* An Endpoint that nobody connects, on an EVD and a PZ that are freed now and then. */
static DAT_RETURN make_spare(struct race_caller *c, struct race_obj *obj)
{
	DAT_EVD_HANDLE evd = race_handle(rnd(c, 2) ? NULL : race_slot(c->w, S_EVD)) ?:
			     c->w->evd[E_DTO2];
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep = NULL;
	DAT_RETURN ret;

	attr.max_recv_dtos = 4;
	attr.max_request_dtos = 4;
	ret = RACE(c, dat_ep_create, NO_ROOM | HANDLE, c->w->ia, pick_pz(c), evd, evd,
		   c->w->evd[E_CONN], &attr, &ep);
	obj->handle = ep;
	return ret;
}

static DAT_RETURN make_lmr(struct race_caller *c, struct race_obj *obj)
{
	DAT_LMR_HANDLE lmr = NULL;
	DAT_RETURN ret;

	ret = register_page(c, obj, pick_pz(c), &lmr);
	obj->handle = lmr;
	return ret;
}

static DAT_RETURN make_fmr(struct race_caller *c, struct race_obj *obj)
{
	DAT_LMR_HANDLE lmr = NULL;
	DAT_RETURN ret;

	ret = RACE(c, dat_lmr_allocate, NO_ROOM, c->w->ia, c->w->pz, 1, DAT_LMR_SCOPE_PZ,
		   &lmr);
	obj->handle = lmr;
	return ret;
}

static DAT_RETURN make_rmr(struct race_caller *c, struct race_obj *obj)
{
	DAT_RMR_HANDLE rmr = NULL;
	DAT_RETURN ret;

	if (race_calls(c, "dat_rmr_create_for_ep"))
		ret = RACE(c, dat_rmr_create_for_ep, NO_ROOM | HANDLE | MODEL, pick_pz(c), &rmr);
	else
		ret = RACE(c, dat_rmr_create, NO_ROOM | HANDLE, pick_pz(c), &rmr);
	obj->handle = rmr;
	return ret;
}

static DAT_RETURN make_evd(struct race_caller *c, struct race_obj *obj)
{
	DAT_UPCALL_OBJECT upcall = { c->w, race_upcall };
	DAT_EVD_HANDLE evd = NULL;
	DAT_RETURN ret;

	ret = RACE(c, dat_evd_kcreate, NO_ROOM, c->w->ia, 16, DAT_UPCALL_SINGLE_INSTANCE,
		   &upcall, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, &evd);
	obj->handle = evd;
	return ret;
}

static DAT_RETURN make_pz(struct race_caller *c, struct race_obj *obj)
{
	DAT_PZ_HANDLE pz = NULL;
	DAT_RETURN ret;

	ret = RACE(c, dat_pz_create, NO_ROOM, c->w->ia, &pz);
	obj->handle = pz;
	return ret;
}

static DAT_RETURN make_psp(struct race_caller *c, struct race_obj *obj)
{
	/* An Endpoint that comes with a request goes with it, see race_accept(). */
	DAT_PSP_FLAGS flags = rnd(c, 2) ? DAT_PSP_CONSUMER_FLAG : DAT_PSP_PROVIDER_FLAG;
	DAT_EVD_HANDLE evd = c->w->evd[E_CR];
	DAT_PSP_HANDLE psp = NULL;
	DAT_RETURN ret;

	obj->port = c->w->port + 1 + rnd(c, 4);
	if (race_calls(c, "dat_psp_create_any"))
		ret = RACE(c, dat_psp_create_any, NO_ROOM | IN_USE, c->w->ia, &obj->port, evd,
			   flags, &psp);
	else
		ret = RACE(c, dat_psp_create, NO_ROOM | IN_USE, c->w->ia, obj->port, evd, flags,
			   &psp);
	obj->handle = psp;
	return ret;
}

static DAT_RETURN make_rsp(struct race_caller *c, struct race_obj *obj)
{
	DAT_EP_HANDLE ep = race_handle(race_slot(c->w, S_RESERVED));
	DAT_EVD_HANDLE evd = c->w->evd[E_CR];
	DAT_RSP_HANDLE rsp = NULL;
	DAT_RETURN ret;

	obj->port = c->w->port + 5 + rnd(c, 2);
	ret = RACE(c, dat_rsp_create, NO_ROOM | IN_USE | STATE | HANDLE, c->w->ia, obj->port,
		   ep, evd, &rsp);
	obj->handle = rsp;
	return ret;
}

static DAT_RETURN make_csp(struct race_caller *c, struct race_obj *obj)
{
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	struct sockaddr_in any = { .sin_family = AF_INET };
	DAT_CSP_HANDLE csp = NULL;
	DAT_RETURN ret;

	obj->port = c->w->port + 7 + rnd(c, 2);
	any.sin_port = htons(obj->port);
	ret = RACE(c, dat_csp_create, NO_ROOM | IN_USE, c->w->ia, &comm,
		   race_address(&any), c->w->evd[E_CR], &csp);
	obj->handle = csp;
	return ret;
}

/* An Endpoint that asks the world for a connection, and a page to receive in. */
static void fill_ia(struct race_caller *c, struct race_obj *obj, struct race_within *in)
{
	DAT_REGION_DESCRIPTION region = { .for_va = obj->page };
	DAT_IA_HANDLE ia = obj->handle;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;

	in->ep.type = DAT_HANDLE_TYPE_EP;
	in->ep.slot = S_IA;
	in->ep.page = obj->page;
	in->ep.loose = true;
	in->ep.hard = DAT_WATERMARK_INFINITE;
	if (RACE(c, dat_pz_create, NO_ROOM, ia, &in->pz) ||
	    RACE(c, dat_evd_kcreate, NO_ROOM, ia, 32, DAT_UPCALL_DISABLE, NULL,
		 DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &in->evd) ||
	    RACE(c, dat_lmr_kcreate, NO_ROOM, ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE,
		 in->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
		 &in->lmr, &in->ep.lmr_context, &in->ep.rmr_context, NULL, NULL) ||
	    RACE(c, dat_ep_create, NO_ROOM, ia, in->pz, in->evd, in->evd, in->evd, &attr,
		 &ep))
		return;
	in->ep.handle = ep;
	race_post_recv(c, &in->ep);
	race_connect(c, &in->ep, c->w->port);
}

/* An IA, half the time with objects. */
static DAT_RETURN make_ia(struct race_caller *c, struct race_obj *obj)
{
	DAT_EVD_HANDLE evd = NULL;
	DAT_IA_HANDLE ia = NULL;
	DAT_RETURN ret;

	ret = RACE(c, dat_ia_openv, NO_ROOM, (DAT_NAME_PTR)c->w->name, 8, &evd, &ia, 2, 0,
		   DAT_TRUE);
	obj->handle = ia;
	if (ret == DAT_SUCCESS && rnd(c, 2))
		obj->within = kzalloc(sizeof(*obj->within), GFP_KERNEL);
	if (obj->within)
		fill_ia(c, obj, obj->within);
	return ret;
}

/* What the objects of a slot are; those with a page give it back when they are freed. */
static const struct race_type {
	int type;
	DAT_RETURN (*make)(struct race_caller *c, struct race_obj *obj);
	bool has_page;
} race_types[RACE_SLOTS] = {
	[S_EP ... S_POOLED] = { DAT_HANDLE_TYPE_EP, make_ep },
	[S_SRQ] = { DAT_HANDLE_TYPE_SRQ, make_srq },
	[S_SRQ2] = { DAT_HANDLE_TYPE_SRQ, make_srq, true },
	[S_LMR ... S_LMR2] = { DAT_HANDLE_TYPE_LMR, make_lmr, true },
	[S_FMR] = { DAT_HANDLE_TYPE_LMR, make_fmr },
	[S_RMR] = { DAT_HANDLE_TYPE_RMR, make_rmr },
	[S_SPARE] = { DAT_HANDLE_TYPE_EP, make_spare },
	[S_EVD] = { DAT_HANDLE_TYPE_EVD, make_evd },
	[S_PZ] = { DAT_HANDLE_TYPE_PZ, make_pz },
	[S_PSP] = { DAT_HANDLE_TYPE_PSP, make_psp },
	[S_RSP] = { DAT_HANDLE_TYPE_RSP, make_rsp },
	[S_CSP] = { DAT_HANDLE_TYPE_CSP, make_csp },
	[S_IA] = { DAT_HANDLE_TYPE_IA, make_ia, true },
	[S_SG] = { RACE_TYPE_SG, race_make_sg, true },
	[S_NOTIFIER] = { RACE_TYPE_NOTIFIER, race_make_notifier },
	[S_PORTAL] = { RACE_TYPE_PORTAL, race_make_portal },
};

/* Return a new object for a slot, or NULL. */
struct race_obj *race_make(struct race_caller *c, enum race_slot slot)
{
	const struct race_type *type = &race_types[slot];
	struct race_obj *obj = kzalloc(sizeof(*obj), GFP_KERNEL);

	if (!obj)
		return NULL;
	obj->slot = slot;
	obj->type = type->type;
	/* The sides always have one of each, which they need not wait for. */
	obj->loose = slot == S_SRQ2 || slot == S_EP + 2 || (slot != S_SRQ && rnd(c, 2));
	obj->mark_since = INT_MAX;
	obj->hard = DAT_WATERMARK_INFINITE;
	if (type->has_page)
		obj->page = race_take_page(c->w);
	if ((!type->has_page || obj->page) && type->make(c, obj) == DAT_SUCCESS) {
		remember(c->w, obj);
		return obj;
	}
	if (obj->page)
		race_give_back(c->w, obj->page);
	kfree(obj);
	return NULL;
}

/* ---- Freeing ------------------------------------------------------------- */

/* A side is polite first, which one with objects refuses: nobody frees these alone. */
static DAT_RETURN close_ia(struct race_caller *c, struct race_obj *ia)
{
	DAT_RETURN ret;

	if (c->call && rnd(c, 2)) {
		ret = RACE(c, dat_ia_close, HANDLE | STATE, ia->handle, DAT_CLOSE_GRACEFUL_FLAG);
		if (ret == DAT_SUCCESS && ia->within && ia->within->pz)
			race_fail(c->w, "an IA with objects was closed gracefully");
		if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
			return ret;
	}
	return RACE(c, dat_ia_close, HANDLE, ia->handle, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN free_handle(struct race_caller *c, struct race_obj *obj)
{
	switch (obj->type) {
	case DAT_HANDLE_TYPE_EP:
		return RACE(c, dat_ep_free, HANDLE | STATE, obj->handle);
	case DAT_HANDLE_TYPE_SRQ:
		return RACE(c, dat_srq_free, HANDLE | STATE, obj->handle);
	case DAT_HANDLE_TYPE_LMR:
		return RACE(c, dat_lmr_free, HANDLE | STATE, obj->handle);
	case DAT_HANDLE_TYPE_RMR:
		return RACE(c, dat_rmr_free, HANDLE, obj->handle);
	case DAT_HANDLE_TYPE_EVD:
		return RACE(c, dat_evd_free, HANDLE | STATE, obj->handle);
	case DAT_HANDLE_TYPE_PZ:
		return RACE(c, dat_pz_free, HANDLE | STATE, obj->handle);
	case DAT_HANDLE_TYPE_PSP:
		return RACE(c, dat_psp_free, HANDLE, obj->handle);
	case DAT_HANDLE_TYPE_RSP:
		return RACE(c, dat_rsp_free, HANDLE, obj->handle);
	case DAT_HANDLE_TYPE_CSP:
		return RACE(c, dat_csp_free, HANDLE, obj->handle);
	case RACE_TYPE_SG:
		return RACE(c, kdat_sg_unmap, HANDLE | STATE, obj->handle);
	case RACE_TYPE_NOTIFIER:
		return RACE(c, kdat_notifier_free, HANDLE, obj->handle);
	case RACE_TYPE_PORTAL:
		race_free_portal(c, obj);
		return DAT_SUCCESS;
	default:
		return close_ia(c, obj);
	}
}

/* Free an object that others may free as well. Return whether this call has. */
bool race_free(struct race_caller *c, struct race_obj *obj)
{
	struct race_world *w = c->w;
	DAT_RETURN ret;

	if (!obj)
		return false;
	atomic_inc(&obj->freeing);
	race_begin(&w->rooms);
	ret = free_handle(c, obj);
	race_end(&w->rooms);
	if (ret != DAT_SUCCESS) {
		if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
			WRITE_ONCE(obj->denied, true);
		/* If one of several at once has not found it, another one has freed it. */
		if (atomic_dec_and_test(&obj->freeing) && READ_ONCE(obj->denied))
			race_fail(w, "object %d is not found, and nobody has freed it", obj->slot);
		return false;
	}
	if (atomic_cmpxchg(&obj->freed, 0, atomic_inc_return(&w->freed)))
		race_fail(w, "freed twice, type %d", obj->type);
	if (obj->within)
		atomic_set(&obj->within->ep.freed, atomic_read(&obj->freed));
	atomic_inc(&w->stat[N_FREED]);
	if (obj->page)
		race_give_back(w, obj->page);
	/* As one does who frees what upcalls use. */
	if (obj->type == DAT_HANDLE_TYPE_EP && !obj->ordered && !rnd(c, 4)) {
		race_wait_upcalls(c, w->evd[E_DTO]);
		race_wait_upcalls(c, w->evd[E_CONN]);
	}
	return true;
}

/* Put a new object into a slot, and free the one before. */
void race_replace(struct race_caller *c, enum race_slot slot)
{
	struct race_obj *obj = race_make(c, slot);

	if (obj)
		race_free(c, xchg(&c->w->slot[slot], obj));
}

/* Free the object of a slot, and put a new one there. */
void race_free_slot(struct race_caller *c, enum race_slot slot)
{
	struct race_obj *old = race_slot(c->w, slot), *obj;

	if (old && !race_free(c, old) && !atomic_read(&old->freed))
		return;
	if (race_slot(c->w, slot) != old)
		return;
	obj = race_make(c, slot);
	if (!obj)
		return;
	old = cmpxchg(&c->w->slot[slot], old, obj) == old ? NULL : obj;
	if (old)
		race_free(c, old);
}

/* Nothing runs: free the objects that no slot has; those of @type only, if @only. */
static void free_orphans(struct race_caller *c, DAT_HANDLE_TYPE type, bool only)
{
	struct race_world *w = c->w;
	struct race_obj *obj;
	unsigned int i;

	hash_for_each(w->objs, i, obj, node) {
		if (atomic_read(&obj->freed) || obj->slot == RACE_SLOTS ||
		    w->slot[obj->slot] == obj || (only && obj->type != type))
			continue;
		if (!race_free(c, obj))
			race_fail(w, "an object of type %d cannot be freed", obj->type);
	}
}

/* What was posted to an Endpoint that was freed may take a moment to end. */
void race_free_mappings(struct race_caller *c)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(RACE_REST_MS);
	struct race_obj *obj;
	unsigned int i;

	hash_for_each(c->w->objs, i, obj, node) {
		if (obj->type != RACE_TYPE_SG || atomic_read(&obj->freed))
			continue;
		while (!race_free(c, obj)) {
			if (time_after(jiffies, deadline)) {
				race_fail(c->w, "a mapping at rest cannot be freed");
				break;
			}
			race_yield();
		}
	}
}

/* Nothing runs, and all connections have ended: free what no slot has, forget what was freed. */
void race_forget(struct race_caller *c)
{
	struct race_world *w = c->w;
	struct hlist_node *tmp;
	struct race_obj *obj;
	unsigned int i;

	for (i = 0; i < RACE_SLOTS; i++)
		if (w->slot[i] && atomic_read(&w->slot[i]->freed))
			w->slot[i] = NULL;
	free_orphans(c, DAT_HANDLE_TYPE_RSP, true);
	free_orphans(c, DAT_HANDLE_TYPE_EP, true);
	free_orphans(c, DAT_HANDLE_TYPE_RMR, true);
	free_orphans(c, DAT_HANDLE_TYPE_LMR, true);
	free_orphans(c, 0, false);
	if (race_recycle(w) && !w->is_gone)
		race_fail(w, "something is posted that nobody has");
	hash_for_each_safe(w->objs, i, tmp, obj, node)
		if (atomic_read(&obj->freed) || obj->slot == RACE_SLOTS) {
			hash_del(&obj->node);
			kfree(obj->within);
			kfree(obj);
		}
}

/* Fill all slots. */
void race_fill(struct race_caller *c)
{
	struct race_world *w = c->w;
	unsigned int i;

	/* Endpoints need SRQs, and an RSP needs an Endpoint. */
	for (i = RACE_SLOTS; i--; )
		if (!w->slot[i] && i != S_RSP)
			w->slot[i] = race_make(c, i);
	if (!w->slot[S_RSP])
		w->slot[S_RSP] = race_make(c, S_RSP);
}
