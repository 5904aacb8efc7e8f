/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the KUnit suites of kdapl.ko share; implemented in fixture/.
 *
 * A suite runs its cases once for each device of the test bed:
 *
 *	static void N1_something(struct kunit *test)
 *	{
 *		struct kd_side *a = kd_open_param(test);
 *		struct kd_side *p = kd_open_param(test);
 *
 *		kd_setup(a, NULL);
 *		kd_setup(p, NULL);
 *		kd_connect_pair(a, p);
 *		...
 *	}
 *	KUNIT_CASE_PARAM(N1_something, kd_gen_ia)
 *
 * A side is one open IA with all that was made in it. It closes itself when the
 * case ends, however it ends, and memory registered with kd_buf_alloc() is
 * freed after that. Helpers assert, so they need no checks.
 */
#ifndef KDAPL_KUNIT_FIXTURE_H
#define KDAPL_KUNIT_FIXTURE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <dat/kdat.h>
#include "kunit.h"

#define KD_TIMEOUT_MS	30000		/* for what must happen */
#define KD_QUIET_MS	60		/* for what must not happen */
/* Cases about pages use eight of them. */
#define KD_BUF_LEN	(8 * PAGE_SIZE > SZ_64K ? 8 * PAGE_SIZE : SZ_64K)

/* ---- Returns ------------------------------------------------------------- */

const char *kd_strerror(DAT_RETURN ret);

/* Expect (or assert) that a call returns this type of DAT_RETURN. */
#define KD_EXPECT_RET(test, want, call)					\
do {									\
	DAT_RETURN __ret = (call);					\
									\
	KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(__ret), (u32)(want),\
			    "%s returned %#x %s", #call, __ret,		\
			    kd_strerror(__ret));			\
} while (0)

#define KD_ASSERT_RET(test, want, call)					\
do {									\
	DAT_RETURN __ret = (call);					\
									\
	KUNIT_ASSERT_EQ_MSG(test, (u32)DAT_GET_TYPE(__ret), (u32)(want),\
			    "%s returned %#x %s", #call, __ret,		\
			    kd_strerror(__ret));			\
} while (0)

#define KD_EXPECT_OK(test, call)	KD_EXPECT_RET(test, DAT_SUCCESS, call)
#define KD_ASSERT_OK(test, call)	KD_ASSERT_RET(test, DAT_SUCCESS, call)

/* Skip a case about its own module if the suite is built into the kernel. */
#ifdef MODULE
# define KD_NEED_MODULE(test)	((void)(test))
#else
# define KD_NEED_MODULE(test)	kunit_skip(test, "built into the kernel")
#endif

/* ---- Memory -------------------------------------------------------------- */

/* Registered memory of a side. It is freed after the IA was closed. */
struct kd_buf {
	struct list_head link;
	struct list_head all;
	DAT_IA_HANDLE ia;
	void *va;
	size_t len;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
};

struct kd_side;

struct kd_buf *kd_buf_alloc_priv(struct kd_side *side, size_t len, bool virt,
				 DAT_MEM_PRIV_FLAGS priv);
struct kd_buf *kd_buf_alloc(struct kd_side *side, size_t len);
struct kd_buf *kd_buf_valloc(struct kd_side *side, size_t len);
void kd_buf_free(struct kd_buf *buf);
bool kd_needs_syncs(struct kd_side *side);
void kd_hand_over(const void *va, size_t len, bool written);
void kd_fill(void *va, size_t len, u32 seed);
bool kd_has_pattern(const void *va, size_t len, u32 seed);
bool kd_is_filled(const void *va, size_t len, u32 seed);

static inline DAT_LMR_TRIPLET kd_seg(const struct kd_buf *buf, size_t off,
				     size_t len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)buf->va + off,
		.segment_length = len,
		.lmr_context = buf->lmr_context,
	};
}

/* Of a call that may be refused, and whose case sees it by something else. */
static inline void kd_may_fail(DAT_RETURN ret)
{
}

static inline DAT_RMR_TRIPLET kd_remote(const struct kd_buf *buf, size_t off,
					size_t len)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = (uintptr_t)buf->va + off,
		.segment_length = len,
		.rmr_context = buf->rmr_context,
	};
}

static inline DAT_CONTEXT kd_cookie(u64 value)
{
	return (DAT_CONTEXT) { .as_64 = value };
}

/* ---- Sides --------------------------------------------------------------- */

/*
 * struct kd_side - an open IA and the usual objects in it
 * @addr: an IPv4 address of the IA
 * @buf: KD_BUF_LEN bytes that may be read and written locally and remotely
 * @srq: NULL unless asked for
 * @max_pd: longest private data, bytes
 */
struct kd_side {
	struct kunit *test;
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_IA_ADDRESS_PTR addr;
	DAT_COUNT max_pd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE recv_evd;
	DAT_EVD_HANDLE req_evd;
	DAT_EVD_HANDLE conn_evd;
	DAT_EVD_HANDLE cr_evd;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;
	struct kd_buf *buf;
	struct list_head bufs;
};

/*
 * struct kd_opts - what kd_setup() makes; zero means the default
 * @attr: attributes of the EP, default kd_ep_attr()
 * @qlen: of each EVD, default 64
 * @polled: EVDs without any upcall (waiting for events is slow); by default
 *	they have DAT_UPCALL_NOTIFY
 * @merged: one EVD of all streams is recv_evd, req_evd, conn_evd and cr_evd
 * @srq_len: buffers of an SRQ, none if 0
 * @no_ep: do not make the EP
 */
struct kd_opts {
	const DAT_EP_ATTR *attr;
	DAT_COUNT qlen;
	bool polled;
	bool merged;
	DAT_COUNT srq_len;
	bool no_ep;
};

/* ---- Devices ------------------------------------------------------------- */

/*
 * enum kd_trait - what a device of the test bed does, and not every adapter
 * @KD_IWARP: it is iWARP, the others are RoCE
 * @KD_WIRE: its packets go through a network device whose addresses cases change
 * @KD_CUTS_MESSAGES: it takes the packets of a message one by one, so that a
 *	connection can end within a message
 * @KD_ANY_READ: it answers RDMA Reads of memory that the peer may only write
 * @KD_ANY_SINK: it takes any key for the sink of an RDMA Read
 * @KD_FORGETS: the buffer of a message that stays incomplete may not come back
 * @KD_SIMULATED: it is one of kdapl_sim.ko, which thousands of QPs cost little
 * @KD_ANY_WAKES: any message completes as if it was sent as a solicited one
 */
enum kd_trait {
	KD_IWARP = BIT(0),
	KD_WIRE = BIT(1),
	KD_CUTS_MESSAGES = BIT(2),
	KD_ANY_READ = BIT(3),
	KD_ANY_SINK = BIT(4),
	KD_ANY_WAKES = BIT(5),
	KD_SIMULATED = BIT(6),
	KD_FORGETS = BIT(7),
};

/*
 * struct kd_second - another device of a kind, which cases may remove
 * @ia: its IA; NULL if there is none
 * @add: the command that makes the device
 */
struct kd_second {
	const char *ia;
	const char *add;
};

/*
 * struct kd_bed - a device of the test bed
 * @ia: its IA, on which cases run
 * @netdev: with KD_WIRE the network device beneath it
 * @net: @ia has the addresses 10.@net.0.1/24 and fd00:@net::1/64
 * @traits: of both devices, see enum kd_trait
 */
struct kd_bed {
	const char *ia;
	struct kd_second second;
	const char *netdev;
	u8 net;
	unsigned int traits;
};

bool kd_is_own(void);
/* Of cases that use the network of the test bed, or change it */
#define KD_NEEDS_BED	"needs the network of the test bed"
void kd_skip_own(struct kunit *test, const char *why);
void kd_skip_other(struct kunit *test, const char *name);
const struct kd_bed *kd_bed_at(unsigned int i);
const struct kd_bed *kd_bed_of(const char *name);
const struct kd_bed *kd_other_bed(const struct kd_bed *bed);
struct sockaddr_in kd_bed_v4(const char *name, u8 host);
struct sockaddr_in6 kd_bed_v6(const char *name);
bool kd_ia_has(const char *ia, unsigned int traits);
bool kd_has(const struct kd_side *side, unsigned int traits);
bool kd_is_iwarp(const struct kd_side *side);
bool kd_has_quirk(const DAT_PROVIDER_ATTR *prov, const char *name);

/*
 * Parameters of a case: all IAs of the test bed, those with KD_WIRE, or the second
 * devices. Each points to a struct whose first member is the name of the IA.
 */
KD_GENERATOR(kd_gen_ia);
KD_GENERATOR(kd_gen_wired_ia);
KD_GENERATOR(kd_gen_simulated_ia);
KD_GENERATOR(kd_gen_any_ia);
KD_GENERATOR(kd_gen_second);

/*
 * struct kd_param - parameter of a case that runs on all IAs with every choice
 * @ia: the IA, for kd_open_param() as well
 * @choice: index of one of the @n names given to kd_gen_ia_and()
 */
struct kd_param {
	const char *ia;
	unsigned int choice;
};

const void *kd_gen_ia_and(const void *prev, char *desc,
			  const char * const *names, unsigned int n);
const void *kd_gen_any_ia_and(const void *prev, char *desc,
			      const char * const *names, unsigned int n);

struct kd_side *kd_open(struct kunit *test, const char *name);
struct kd_side *kd_open_param(struct kunit *test);
void kd_close(struct kd_side *side);
void kd_setup(struct kd_side *side, const struct kd_opts *opts);

/* An active and a passive side on the device of the case. */
struct kd_pair {
	struct kd_side *a;
	struct kd_side *p;
};

struct kd_pair kd_make_pair(struct kunit *test, const struct kd_opts *opts);
struct kd_pair kd_make_half_pair(struct kunit *test);
DAT_EP_ATTR kd_ep_attr(void);
DAT_EVD_HANDLE kd_evd(struct kd_side *side, DAT_EVD_FLAGS flags,
		      DAT_COUNT qlen, DAT_UPCALL_POLICY policy);
DAT_EP_HANDLE kd_ep(struct kd_side *side, const DAT_EP_ATTR *attr);
DAT_SRQ_HANDLE kd_srq(struct kd_side *side, DAT_COUNT len);
DAT_EP_STATE kd_state(struct kd_side *side);
bool kd_wait_state(DAT_EP_HANDLE ep, DAT_EP_STATE state);
bool kd_slow_kernel(void);

/* ---- Events -------------------------------------------------------------- */

bool kd_wait_event(DAT_EVD_HANDLE evd, DAT_EVENT *event, unsigned int ms);
void kd_expect_event(struct kunit *test, DAT_EVD_HANDLE evd,
		     DAT_EVENT_NUMBER number, DAT_EVENT *event);
void kd_expect_dto(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie,
		   DAT_DTO_COMPLETION_STATUS status, DAT_EVENT *event);
DAT_DTO_COMPLETION_EVENT_DATA kd_next_dto(struct kunit *test, DAT_EVD_HANDLE evd);
void kd_expect_no_event(struct kunit *test, DAT_EVD_HANDLE evd);
unsigned int kd_drain(DAT_EVD_HANDLE evd);

/*
 * kd_wait_until() is for conditions that an upcall or the passing of time makes
 * true.
 */
bool kd_wait_until(bool (*cond)(void *data), void *data, unsigned int ms);
void kd_wake(void);

/* ---- Upcalls ------------------------------------------------------------- */

#define KD_RECORDS 64

/*
 * struct kd_recorder - counts upcalls and the contexts in which they ran
 * @calls: upcalls that have returned
 * @max_running: the most upcalls that ran at the same time
 * @more: upcalls whose more_events was true
 * @n: events passed to upcalls
 * @events: the last KD_RECORDS of them
 * @hook: called inside the upcall; may be NULL
 * @priv: for @hook
 */
struct kd_recorder {
	atomic_t calls;
	atomic_t softirq;
	atomic_t task;
	atomic_t hardirq;
	atomic_t running;
	atomic_t max_running;
	atomic_t more;
	spinlock_t lock;		/* protects n and events */
	u32 n;
	DAT_EVENT events[KD_RECORDS];
	void (*hook)(struct kd_recorder *rec, const DAT_EVENT *event,
		     DAT_BOOLEAN more);
	void *priv;
};

struct kd_recorder *kd_recorder(struct kunit *test);
DAT_UPCALL_OBJECT kd_upcall(struct kd_recorder *rec);
DAT_EVD_HANDLE kd_recorded_evd(struct kd_side *side, DAT_EVD_FLAGS flags,
			       DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			       struct kd_recorder *rec);
void kd_enable_upcalls(struct kunit *test, DAT_EVD_HANDLE evd,
		       DAT_UPCALL_FLAG flag);
bool kd_wait_calls(struct kd_recorder *rec, int calls);

/* ---- Connecting ---------------------------------------------------------- */

/*
 * The event that an active side gets if the passive side's provider rejects its
 * request. Over iWARP it cannot be told from a rejection by the consumer.
 */
static inline DAT_EVENT_NUMBER kd_turned_away(const struct kd_side *side)
{
	return kd_is_iwarp(side) ? DAT_CONNECTION_EVENT_PEER_REJECTED :
				   DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
}

u16 kd_port(void);
void kd_connect_pair(struct kd_side *active, struct kd_side *passive);
void kd_connect_start(struct kd_side *active, struct kd_side *passive,
		      u16 port);
void kd_accept(struct kd_side *active, struct kd_side *passive);
void kd_expect_established(struct kd_side *active, struct kd_side *passive);
DAT_CR_HANDLE kd_expect_cr(struct kd_side *passive);
DAT_PSP_HANDLE kd_psp(struct kd_side *side, u16 port, DAT_PSP_FLAGS flags);
void kd_expect_disconnected(struct kd_side *side, DAT_EVENT *event);
void kd_expect_sender_disconnected(struct kd_side *side);
void kd_expect_refused(struct kd_side *side);
void kd_disconnect(struct kd_side *active, struct kd_side *passive);

/* ---- Data transfer ------------------------------------------------------- */

void kd_recv(struct kd_side *side, size_t off, size_t len, u64 cookie);
void kd_send(struct kd_side *side, size_t off, size_t len, u64 cookie);
void kd_ping(struct kd_side *from, struct kd_side *to);

#endif /* KDAPL_KUNIT_FIXTURE_H */
