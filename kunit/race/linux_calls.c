// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * race_test.ko: calls that are not of DAT: scatterlists, notifiers, pools, servers with
 * portals; and those of the registry. See calls.c.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include "device.h"
#include "race.h"

#define PROVIDERS	16	/* most that there are */

/* The same as RACE() for a call that returns no DAT_RETURN. */
#define RACE_VOID(c, fn, ...) do {					\
	struct race_caller *__caller = (c);				\
									\
	race_enter(__caller, #fn);					\
	fn(__VA_ARGS__);						\
	race_leave(__caller, DAT_SUCCESS, 0, NULL);			\
} while (0)

#define RACE_COUNT(c, fn, ...) ({					\
	struct race_caller *__caller = (c);				\
	DAT_COUNT __n;							\
									\
	race_enter(__caller, #fn);					\
	__n = fn(__VA_ARGS__);						\
	race_leave(__caller, DAT_SUCCESS, 0, NULL);			\
	__n;								\
})

/* ---- Registry and IAs ---------------------------------------------------- */

/* The one of this world is among them. */
static void registry_list(struct race_caller *c)
{
	DAT_PROVIDER_INFO *info = kcalloc(PROVIDERS, sizeof(*info), GFP_KERNEL);
	DAT_PROVIDER_INFO *list[PROVIDERS];
	DAT_COUNT i, n = 0;
	bool found = false;

	if (!info)
		return;
	for (i = 0; i < PROVIDERS; i++)
		list[i] = info + i;
	RACE(c, dat_registry_list_providers, 0, PROVIDERS, &n, list);
	for (i = 0; i < n; i++)
		found |= !strcmp(info[i].ia_name, c->w->name);
	if (!found && !c->w->may_leave)
		race_fail(c->w, "the IA is not among %d that are listed", n);
	kfree(info);
}

static void registry_related(struct race_caller *c)
{
	DAT_NAME_PTR name = (DAT_NAME_PTR)c->w->name;
	DAT_HA_RELATIONSHIP answer;

	RACE(c, dat_registry_providers_related, MAY(DAT_PROVIDER_NOT_FOUND), name, name, &answer);
}

static DAT_IA_HANDLE pick_ia(struct race_caller *c)
{
	return rnd(c, 2) ? c->w->ia : race_handle(race_slot(c->w, S_IA));
}

static void memtype_hint(struct race_caller *c)
{
	DAT_VADDR alignment;
	DAT_VLEN len;

	RACE(c, dat_ia_memtype_hint, HANDLE, pick_ia(c), DAT_MEM_TYPE_VIRTUAL, 10000,
	     DAT_MEM_OPTIMIZE_IA, &len, &alignment);
}

static void reserved_lmr(struct race_caller *c)
{
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;

	RACE(c, dat_ia_reserved_lmr, HANDLE | NO_ROOM, pick_ia(c), &lmr, &context);
}

static void evd_set_vector(struct race_caller *c)
{
	DAT_EVD_HANDLE evd = c->w->evd[rnd(c, RACE_EVDS)];

	if (rnd(c, 2))
		evd = race_handle(race_slot(c->w, S_EVD));
	RACE(c, kdat_evd_set_vector, HANDLE | STATE, evd,
	     rnd(c, 4) ? (DAT_COUNT)rnd(c, 8) : KDAT_VECTOR_ANY);
}

/* ---- Scatterlists -------------------------------------------------------- */

DAT_RETURN race_make_sg(struct race_caller *c, struct race_obj *obj)
{
	KDAT_SG_HANDLE sg = NULL;
	DAT_LMR_TRIPLET seg;
	DAT_COUNT n = 0;
	DAT_RETURN ret;

	sg_init_one(&obj->sg, obj->page, PAGE_SIZE);
	ret = RACE(c, kdat_sg_map, NO_ROOM, c->w->ia, c->w->pz, &obj->sg, 1, DMA_BIDIRECTIONAL, 1,
		   &seg, &n, &sg);
	if (ret != DAT_SUCCESS)
		return ret;
	if (n != 1 || seg.segment_length != PAGE_SIZE)
		race_fail(c->w, "kdat_sg_map(): %d segments, %llu bytes", n,
			  (u64)seg.segment_length);
	obj->lmr_context = seg.lmr_context;
	obj->addr = seg.virtual_address;
	obj->handle = sg;
	return ret;
}

/* ---- Notifiers ----------------------------------------------------------- */

/* When it was freed the function is not called, nor does it run. */
static void changed(DAT_PVOID data, DAT_COUNT what)
{
	struct race_obj *obj = data;
	bool freed = atomic_read(&obj->freed);

	race_yield();
	if (freed || atomic_read(&obj->freed))
		race_fail(obj->w, "a notifier that was freed %s", freed ? "is called" : "runs");
	atomic_inc(&obj->w->stat[N_CHANGES]);
}

DAT_RETURN race_make_notifier(struct race_caller *c, struct race_obj *obj)
{
	KDAT_NOTIFIER_HANDLE notifier = NULL;
	DAT_RETURN ret;

	obj->w = c->w;
	ret = RACE(c, kdat_notifier_create, NO_ROOM, &changed, obj, &notifier);
	obj->handle = notifier;
	return ret;
}

/* Have the device say what may mean that addresses can be used. */
void race_change(struct race_caller *c)
{
	struct ib_event event = { .event = IB_EVENT_PORT_ACTIVE, .element.port_num = 1 };

	event.device = c->w->may_leave ? NULL : kd_find_device(c->w->name);
	if (event.device)
		ib_dispatch_event(&event);
}

static void notifier_create(struct race_caller *c)
{
	if (!rnd(c, 64))
		race_change(c);
	race_replace(c, S_NOTIFIER);
}

static void notifier_free(struct race_caller *c)
{
	if (!rnd(c, 64))
		race_change(c);
	race_free_slot(c, S_NOTIFIER);
}

/* ---- Pools --------------------------------------------------------------- */

static void pool_size(DAT_PVOID data, KDAT_POOL_SIZE *size)
{
	struct race_world *w = data;

	*size = (KDAT_POOL_SIZE) { .wanted = READ_ONCE(w->pool_wanted), .most = RACE_POOL_MOST };
}

DAT_RETURN race_make_pool(struct race_world *w)
{
	KDAT_POOL_ATTR attr = {
		.ia = w->ia, .pz = w->pz, .name = w->name, .length = RACE_LEN,
		.size = pool_size, .context = w,
	};
	KDAT_POOL_PARAM param;
	DAT_RETURN ret;

	w->pool_wanted = RACE_POOL_MOST / 4;
	ret = kdat_pool_create(&attr, &w->pool);
	if (ret != DAT_SUCCESS)
		return ret;
	kdat_pool_query(w->pool, &param);
	w->pool_srq = param.srq;
	return ret;
}

/* Nothing runs: have the pool be as it was made. */
void race_reset_pool(struct race_caller *c)
{
	struct race_world *w = c->w;

	RACE_VOID(c, kdat_pool_release, w->pool, atomic_xchg(&w->reserved, 0));
	w->pool_wanted = RACE_POOL_MOST / 4;
	RACE_VOID(c, kdat_pool_adapt, w->pool, DAT_TRUE);
}

static void small_size(DAT_PVOID data, KDAT_POOL_SIZE *size)
{
	*size = (KDAT_POOL_SIZE) { .wanted = 2, .most = 4 };
}

/* A second pool of the IA comes and goes. The one of the world stays. */
static void another_pool(struct race_caller *c)
{
	KDAT_POOL_ATTR attr = {
		.ia = c->w->ia, .pz = c->w->pz, .name = c->w->name, .length = RACE_LEN,
		.size = small_size, .context = c->w,
	};
	KDAT_POOL_HANDLE pool;

	if (RACE(c, kdat_pool_create, NO_ROOM, &attr, &pool) == DAT_SUCCESS)
		RACE_VOID(c, kdat_pool_free, pool);
}

static void put_buf(struct race_world *w, KDAT_POOL_BUF *buf)
{
	if (!buf)
		return;
	atomic_dec(&buf->users);
	kdat_pool_put(w->pool, buf);
}

/* A message is in @buf. Some buffers wait for pool_put(). Context: any. */
void race_saw_pooled(struct race_world *w, KDAT_POOL_BUF *buf)
{
	unsigned int i = (u32)atomic_inc_return(&w->pooled) % RACE_HELD;

	if (atomic_inc_return(&buf->users) != 1)
		race_fail(w, "a buffer of the pool completes, and has not been put back");
	put_buf(w, xchg(&w->held[i], buf));
}

static void pool_put(struct race_caller *c)
{
	KDAT_POOL_BUF *buf = xchg(&c->w->held[rnd(c, RACE_HELD)], NULL);

	if (!buf)
		return;
	atomic_dec(&buf->users);
	RACE_VOID(c, kdat_pool_put, c->w->pool, buf);
}

static void pool_adapt(struct race_caller *c)
{
	WRITE_ONCE(c->w->pool_wanted, 1 + rnd(c, RACE_POOL_MOST));
	RACE_VOID(c, kdat_pool_adapt, c->w->pool, rnd(c, 2) ? DAT_TRUE : DAT_FALSE);
}

static void pool_ran_low(struct race_caller *c)
{
	RACE_VOID(c, kdat_pool_ran_low, c->w->pool);
}

static void pool_reserve(struct race_caller *c)
{
	DAT_COUNT n = 1 + rnd(c, 16), least = 1 + rnd(c, n), got;

	got = RACE_COUNT(c, kdat_pool_reserve, c->w->pool, n, least);
	if (got < 0 || got > n || (got && got < least))
		race_fail(c->w, "kdat_pool_reserve(%d, %d): %d", n, least, got);
	/* Nobody else releases what this call has got. */
	if (got && kdat_pool_usable(c->w->pool) < got)
		race_fail(c->w, "%d buffers are usable, and %d reserved at least",
			  kdat_pool_usable(c->w->pool), got);
	atomic_add(got, &c->w->reserved);
}

static void pool_release(struct race_caller *c)
{
	int n = atomic_read(&c->w->reserved), part;

	/* That is for the next call. */
	if (!n)
		atomic_add(kdat_pool_reserve(c->w->pool, 4, 1), &c->w->reserved);
	do {
		part = min_t(int, n, 1 + rnd(c, 16));
		if (!part)
			return;
	} while (!atomic_try_cmpxchg(&c->w->reserved, &n, n - part));
	RACE_VOID(c, kdat_pool_release, c->w->pool, part);
}

static void pool_usable(struct race_caller *c)
{
	DAT_COUNT n = RACE_COUNT(c, kdat_pool_usable, c->w->pool);

	if (n < 0)
		race_fail(c->w, "kdat_pool_usable(): %d", n);
}

static void pool_most(struct race_caller *c)
{
	DAT_COUNT n = RACE_COUNT(c, kdat_pool_most, c->w->pool);

	if (n < 1)
		race_fail(c->w, "kdat_pool_most(): %d", n);
}

static void pool_query(struct race_caller *c)
{
	KDAT_POOL_PARAM param;

	RACE_VOID(c, kdat_pool_query, c->w->pool, &param);
	if (param.available < 0 || param.retired < 0 ||
	    param.available > param.buffers - param.retired || param.reserved > param.buffers)
		race_fail(c->w, "pool: %d buffers, %d available, %d retired, %d reserved",
			  param.buffers, param.available, param.retired, param.reserved);
}

/* Nothing runs, and no Endpoint has a buffer. */
void race_check_pool(struct race_caller *c)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(RACE_REST_MS);
	struct race_world *w = c->w;
	KDAT_POOL_PARAM param = {};
	unsigned int i;

	for (i = 0; i < RACE_HELD; i++)
		put_buf(w, xchg(&w->held[i], NULL));
	do {
		RACE_VOID(c, kdat_pool_query, w->pool, &param);
		if (param.reserved != atomic_read(&w->reserved))
			break;
		if (w->is_gone || param.available == param.buffers - param.retired)
			return;
		race_yield();
	} while (!time_after(jiffies, deadline));
	race_fail(w, "pool: %d buffers, %d available, %d retired, %d reserved, not %d",
		  param.buffers, param.available, param.retired, param.reserved,
		  atomic_read(&w->reserved));
}

/* ---- Servers ------------------------------------------------------------- */

static struct race_world *serving;	/* there is one at a time */

static void server_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size)
{
	*size = (KDAT_POOL_SIZE) { .wanted = 1, .most = RACE_POOL_MOST };
}

static DAT_RETURN opened(KDAT_ADAPTER *a, DAT_PVOID context)
{
	atomic_inc(&serving->adapters);
	return DAT_SUCCESS;
}

static void closed(KDAT_ADAPTER *a)
{
	if (atomic_dec_return(&serving->adapters) < 0)
		race_fail(serving, "an adapter closes twice");
}

static void put_adapter(KDAT_ADAPTER *a)
{
	if (a)
		kdat_adapter_put(a);
}

void race_put_adapters(struct race_world *w)
{
	unsigned int i;

	for (i = 0; i < RACE_ADAPTERS; i++)
		put_adapter(xchg(&w->adapter[i], NULL));
}

/* The portal counts where it listens; for the calls that need one the adapter is kept. */
static void listens(KDAT_ADAPTER *a, DAT_PVOID context)
{
	struct race_obj *portal = context;
	unsigned int i;

	atomic_inc(&portal->starts);
	for (i = 0; i < RACE_ADAPTERS; i++) {
		kdat_adapter_get(a);
		put_adapter(xchg(&portal->w->adapter[i], a));
	}
}

static void deaf(KDAT_ADAPTER *a, DAT_PVOID context)
{
	struct race_obj *portal = context;

	if (atomic_dec_return(&portal->starts) < 0)
		race_fail(portal->w, "a portal stops listening twice");
	if (atomic_read(&portal->freed))
		race_fail(portal->w, "a portal that was freed stops listening");
}

/* When the portal was freed the function is not called, nor does it run. */
static void arrived(KDAT_ADAPTER *a, DAT_PVOID context, DAT_CR_HANDLE cr,
		    const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	struct race_obj *portal = context;
	bool freed = atomic_read(&portal->freed);

	kdat_adapter_get(a);
	dat_cr_reject(cr, 0, NULL);
	kdat_adapter_put(a);
	if (freed || atomic_read(&portal->freed))
		race_fail(portal->w, "a request at a portal that was freed %s",
			  freed ? "comes" : "is looked at");
	atomic_inc(&portal->w->stat[N_REQUESTS]);
}

static void served(DAT_PVOID adapter, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

DAT_RETURN race_make_server(struct race_world *w)
{
	KDAT_SERVER_ATTR attr = {
		.owner = THIS_MODULE, .name = KBUILD_MODNAME, .adapter_size = sizeof(KDAT_ADAPTER),
		.cm_qlen = 16, .cr_qlen = 16, .buffer_length = RACE_LEN, .size = server_size,
		.open = opened, .closed = closed, .listens = listens, .deaf = deaf,
		.request = arrived, .event = served,
	};

	serving = w;
	return kdat_server_create(&attr, &w->server);
}

static DAT_RETURN opened_too(KDAT_ADAPTER *a, DAT_PVOID context)
{
	return DAT_SUCCESS;
}

static void turned_away(KDAT_ADAPTER *a, DAT_PVOID context, DAT_CR_HANDLE cr,
			const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	dat_cr_reject(cr, 0, NULL);
}

/* A second server comes and goes, with a portal mostly. The one of the world stays. */
static void another_server(struct race_caller *c)
{
	KDAT_SERVER_ATTR attr = {
		.owner = THIS_MODULE, .name = KBUILD_MODNAME, .adapter_size = sizeof(KDAT_ADAPTER),
		.cm_qlen = 16, .cr_qlen = 16, .buffer_length = RACE_LEN, .size = small_size,
		.open = opened_too, .request = turned_away, .event = served,
	};
	struct sockaddr_storage at = c->w->addr;
	KDAT_PORTAL_ATTR where = { .address = (struct sockaddr *)&at };
	KDAT_PORTAL_HANDLE portal;
	KDAT_SERVER_HANDLE server;

	if (RACE(c, kdat_server_create, NO_ROOM, &attr, &server) != DAT_SUCCESS)
		return;
	((struct sockaddr_in *)&at)->sin_port = htons(c->w->port + 9 + rnd(c, 2));
	/* Some are freed by kdat_server_free(). */
	if (rnd(c, 4) && RACE(c, kdat_portal_create, NO_ROOM | IN_USE, server, &where, &portal) ==
	    DAT_SUCCESS && rnd(c, 2))
		RACE_VOID(c, kdat_portal_free, portal);
	RACE_VOID(c, kdat_server_free, server);
}

/* Free what is no object of the IA, the server and the pool. May be called twice. */
void race_end_linux(struct race_world *w)
{
	race_put_adapters(w);
	kdat_server_free(w->server);
	w->server = NULL;
	if (atomic_read(&w->adapters))
		race_fail(w, "%d adapters are open", atomic_read(&w->adapters));
	kdat_pool_free(w->pool);
	w->pool = NULL;
}

DAT_RETURN race_make_portal(struct race_caller *c, struct race_obj *obj)
{
	struct sockaddr_storage at = c->w->addr;
	KDAT_PORTAL_ATTR attr = { .address = (struct sockaddr *)&at, .context = obj };
	KDAT_PORTAL_HANDLE portal = NULL;
	DAT_RETURN ret;

	obj->w = c->w;
	obj->port = c->w->port + 9 + rnd(c, 2);
	((struct sockaddr_in *)&at)->sin_port = htons(obj->port);
	ret = RACE(c, kdat_portal_create, NO_ROOM | IN_USE, c->w->server, &attr, &portal);
	obj->handle = portal;
	if (ret != DAT_SUCCESS && atomic_read(&obj->starts))
		race_fail(c->w, "a portal that was refused listens");
	return ret;
}

/* Free a portal that no other call knows any more. */
void race_free_portal(struct race_caller *c, struct race_obj *obj)
{
	RACE_VOID(c, kdat_portal_free, obj->handle);
	if (atomic_read(&obj->starts))
		race_fail(c->w, "a portal that was freed listens");
}

static void portal_create(struct race_caller *c)
{
	if (!rnd(c, 4))
		race_change(c);
	race_replace(c, S_PORTAL);
}

static void portal_free(struct race_caller *c)
{
	struct race_obj *obj;

	if (!rnd(c, 4))
		race_change(c);
	race_free(c, xchg(&c->w->slot[S_PORTAL], NULL));
	obj = race_make(c, S_PORTAL);
	if (obj && cmpxchg(&c->w->slot[S_PORTAL], NULL, obj))
		race_free(c, obj);
}

static void look_at(KDAT_ADAPTER *a, DAT_PVOID data)
{
	atomic_t *n = data;

	atomic_inc(n);
	if (!a->ia || !a->srq)
		race_fail(serving, "an adapter is not open");
}

static void server_adapters(struct race_caller *c)
{
	atomic_t n = ATOMIC_INIT(0);

	RACE_VOID(c, kdat_server_adapters, c->w->server, look_at, &n);
}

static void keep(KDAT_ADAPTER *a, DAT_PVOID data)
{
	KDAT_ADAPTER **at = data;

	kdat_adapter_get(a);
	put_adapter(xchg(at, a));
}

/*
 * Take one of the references, and another one meanwhile. The first is mostly left for others;
 * beside calls that end a portal the last one may be dropped here.
 */
static void get_and_put(struct race_caller *c)
{
	KDAT_ADAPTER **at = &c->w->adapter[rnd(c, RACE_ADAPTERS)], *a = xchg(at, NULL);

	if (!a)
		return kdat_server_adapters(c->w->server, keep, at);
	RACE_VOID(c, kdat_adapter_get, a);
	RACE_VOID(c, kdat_adapter_put, a);
	if (!rnd(c, 4) || cmpxchg(at, NULL, a))
		kdat_adapter_put(a);
}

/* ---- The table ----------------------------------------------------------- */

/*
 * With the other two it has all calls that are exported, but for those that only look up a
 * name or print one. "make lint" reads the list:
 *
 * Not raced: dat_strerror kdat_dto_status_name kdat_ep_state_name kdat_event_name
 * Not raced: kdat_show_word
 */
const struct race_call race_linux_calls[] = {
	RACE_CALL(dat_registry_list_providers, registry_list),
	RACE_CALL(dat_registry_providers_related, registry_related),
	RACE_CALL(dat_ia_memtype_hint, memtype_hint),
	RACE_CALL(dat_ia_reserved_lmr, reserved_lmr),
	RACE_CALL(kdat_evd_set_vector, evd_set_vector),
	RACE_CALL_ON(kdat_sg_map, race_replace, S_SG),
	RACE_CALL_ON(kdat_sg_unmap, race_free_slot, S_SG),
	RACE_CALL(kdat_notifier_create, notifier_create),
	RACE_CALL(kdat_notifier_free, notifier_free),
	RACE_CALL(kdat_pool_create, another_pool),
	RACE_CALL(kdat_pool_free, another_pool),
	RACE_CALL(kdat_pool_put, pool_put),
	RACE_CALL(kdat_pool_adapt, pool_adapt),
	RACE_CALL(kdat_pool_ran_low, pool_ran_low),
	RACE_CALL(kdat_pool_reserve, pool_reserve),
	RACE_CALL(kdat_pool_release, pool_release),
	RACE_CALL(kdat_pool_usable, pool_usable),
	RACE_CALL(kdat_pool_most, pool_most),
	RACE_CALL(kdat_pool_query, pool_query),
	RACE_CALL(kdat_server_create, another_server),
	RACE_CALL(kdat_server_free, another_server),
	RACE_CALL(kdat_portal_create, portal_create),
	RACE_CALL(kdat_portal_free, portal_free),
	RACE_CALL(kdat_server_adapters, server_adapters),
	RACE_CALL(kdat_adapter_get, get_and_put),
	RACE_CALL(kdat_adapter_put, get_and_put),
};

const unsigned int race_nlinux_calls = ARRAY_SIZE(race_linux_calls);
