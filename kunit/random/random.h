/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of random_test.ko share: arguments of random calls, and the calls.
 */
#ifndef KDAPL_KUNIT_RANDOM_H
#define KDAPL_KUNIT_RANDOM_H

#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include "fixture.h"
#include "free.h"

#define WORLDS		2
#define TYPES		(DAT_HANDLE_TYPE_CSP + 1)
#define SLOTS		12
#define STALE		64
#define REGIONS		32
#define PORTS		6
#define MAX_SEGS	4
/* Calls register memory in the middle of MEM_LEN; the ends must not change. */
#define MEM_LEN		SZ_64K
#define MEM_GUARD	SZ_16K
#define MEM_PAGES	((MEM_LEN - 2 * MEM_GUARD) / PAGE_SIZE)

/* The memory of an LMR or RMR, as posts refer to it. */
struct region {
	DAT_PZ_HANDLE zone;
	u64 base;
	u64 len;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

struct pool;

struct world {
	struct pool *pool;
	const char *name;
	DAT_IA_HANDLE ia;		/* stays open */
	DAT_EVD_HANDLE async_evd;
	DAT_IA_ADDRESS_PTR addr;
	u16 port;
	DAT_HANDLE slot[TYPES][SLOTS];
	struct region region[REGIONS];
	unsigned int regions;
};

struct pool {
	struct kunit *test;
	struct world world[WORLDS];
	spinlock_t lock;		/* protects slots, regions and stale */
	DAT_HANDLE stale[STALE];
	unsigned int stales;
	u8 *kmem;
	u8 *vmem;
	DAT_PADDR page[MEM_PAGES];	/* of kmem */
	struct ib_device *dev;		/* does DMA; or NULL */
	u64 dma;			/* of kmem: for @dev, or for all devices */
	struct scatterlist sg[1];
	atomic_t events;
	atomic_t upcalls;
	atomic_t internal;		/* internal errors */
};

/* A thread that makes calls; @w is the world of its current call. */
struct caller {
	struct pool *pool;
	struct world *w;
	DAT_PZ_HANDLE zone;		/* of the Endpoint picked last */
	struct rnd_state rnd;
	unsigned int calls;
	const char *name;		/* of the current call */
	struct completion done;
	DAT_COMM comm;
	DAT_LMR_TRIPLET seg[MAX_SEGS];
	struct sockaddr_storage addr;
	DAT_EP_ATTR ep_attr;
	DAT_EP_PARAM ep_param;
	DAT_EP_PARAM picked;
	DAT_IA_ATTR ia_attr;
	DAT_PROVIDER_ATTR prov_attr;
	DAT_PROVIDER_INFO info[4];
	struct dat_provider_info *list[4];
	u64 out[32];			/* for results that are not looked at */
};

static inline u32 rnd(struct caller *c, u32 n)
{
	return prandom_u32_state(&c->rnd) % n;
}

static inline bool chance(struct caller *c, u32 percent)
{
	return rnd(c, 100) < percent;
}

/* A pointer for a result, rarely NULL. */
#define OPT(c, ptr)	(chance(c, 2) ? NULL : (ptr))

/* pool.c */
void kdr_put(struct pool *pool, struct world *w, DAT_HANDLE_TYPE type,
	     DAT_HANDLE handle);
DAT_RETURN kdr_made(struct caller *c, DAT_HANDLE_TYPE type, DAT_RETURN ret,
		    void *handle);
DAT_HANDLE kdr_pick(struct caller *c, DAT_HANDLE_TYPE type);
DAT_EVD_HANDLE kdr_pick_evd(struct caller *c, DAT_EVD_FLAGS flag);
DAT_EP_HANDLE kdr_pick_connected(struct caller *c);
DAT_HANDLE kdr_pick_near(struct caller *c, DAT_HANDLE_TYPE type);
void kdr_put_region(struct caller *c, DAT_PZ_HANDLE zone, u64 base, u64 len,
		    DAT_LMR_CONTEXT lmr_context, DAT_RMR_CONTEXT rmr_context);
struct region kdr_pick_region(struct caller *c);
void kdr_pick_part(struct caller *c, const struct region *region, u64 *va,
		   u32 *len);
DAT_RMR_TRIPLET kdr_pick_remote(struct caller *c);
DAT_COUNT kdr_pick_segs(struct caller *c);
bool kdr_is_guarded(const u8 *mem);
void kdr_saw_event(struct pool *pool, struct world *w, const DAT_EVENT *event);
void kdr_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);

/* args.c */
u32 kdr_mask(struct caller *c, u32 all);
DAT_COUNT kdr_count(struct caller *c, u32 max);
u32 kdr_flags(struct caller *c);
u32 kdr_priv(struct caller *c);
u32 kdr_va_type(struct caller *c);
DAT_CONN_QUAL kdr_port(struct caller *c);
DAT_COUNT kdr_pd_size(struct caller *c);
DAT_COMM *kdr_comm(struct caller *c);

#define IA	kdr_pick(c, DAT_HANDLE_TYPE_IA)
#define PZ	kdr_pick(c, DAT_HANDLE_TYPE_PZ)
#define EP	kdr_pick(c, DAT_HANDLE_TYPE_EP)
#define EVD	kdr_pick(c, DAT_HANDLE_TYPE_EVD)
#define LMR	kdr_pick(c, DAT_HANDLE_TYPE_LMR)
#define RMR	kdr_pick(c, DAT_HANDLE_TYPE_RMR)
#define SRQ	kdr_pick(c, DAT_HANDLE_TYPE_SRQ)
#define PSP	kdr_pick(c, DAT_HANDLE_TYPE_PSP)
#define RSP	kdr_pick(c, DAT_HANDLE_TYPE_RSP)
#define CSP	kdr_pick(c, DAT_HANDLE_TYPE_CSP)
#define CR	kdr_pick(c, DAT_HANDLE_TYPE_CR)
#define MADE(what, ret, h)	kdr_made(c, DAT_HANDLE_TYPE_##what, ret, &(h))
#define OUT	((void *)OPT(c, c->out))
#define COOKIE	kd_cookie(prandom_u32_state(&c->rnd))

/* ---- Calls --------------------------------------------------------------- */

/*
 * struct random_call - one exported call
 * @weight: how often it is made, compared with others
 */
struct random_call {
	const char *name;
	u32 (*fn)(struct caller *c);	/* returns a DAT_RETURN */
	unsigned int weight;
	atomic_t made;
	atomic_t succeeded;
};

#define CALL(name, fn, weight) { #name, fn, weight, {}, {} }

/* calls.c, memory_calls.c */
extern struct random_call kdr_calls[];
extern const unsigned int kdr_ncalls;
extern struct random_call kdr_memory_calls[];
extern const unsigned int kdr_nmemory_calls;

#endif /* KDAPL_KUNIT_RANDOM_H */
