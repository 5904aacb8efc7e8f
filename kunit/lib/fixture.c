// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: sides, memory, events and upcalls of the KUnit suites, see
 * fixture.h.
 */
#include <linux/ctype.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include "fixture.h"

static DECLARE_WAIT_QUEUE_HEAD(kd_wq);
static atomic_t kd_wakeups;

const char *kd_strerror(DAT_RETURN ret)
{
	const char *major = "?", *minor;

	dat_strerror(ret, &major, &minor);
	return major;
}
EXPORT_SYMBOL_GPL(kd_strerror);

/* ---- Sides --------------------------------------------------------------- */

static void kd_side_close(void *data)
{
	struct kd_side *side = data;
	struct kd_buf *buf, *next;

	if (side->ia) {
		KD_EXPECT_OK(side->test,
			     dat_ia_close(side->ia, DAT_CLOSE_ABRUPT_FLAG));
		side->ia = NULL;
	}
	list_for_each_entry_safe(buf, next, &side->bufs, link) {
		list_del(&buf->link);
		kd_buf_free(buf);
	}
}

/* Close a side before the case ends. */
void kd_close(struct kd_side *side)
{
	kunit_release_action(side->test, kd_side_close, side);
}
EXPORT_SYMBOL_GPL(kd_close);

static void kd_wake_upcall(DAT_PVOID data, const DAT_EVENT *event,
			   DAT_BOOLEAN more)
{
	kd_wake();
}

struct kd_side *kd_open(struct kunit *test, const char *name)
{
	DAT_UPCALL_OBJECT wake = { NULL, kd_wake_upcall };
	DAT_PROVIDER_ATTR prov;
	struct kd_side *side;
	DAT_IA_ATTR *attr;
	DAT_RETURN ret;

	kd_skip_other(test, name);
	side = kunit_kzalloc(test, sizeof(*side), GFP_KERNEL);
	attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, side);
	KUNIT_ASSERT_NOT_NULL(test, attr);
	side->test = test;
	side->name = name;
	INIT_LIST_HEAD(&side->bufs);
	ret = dat_ia_open((DAT_NAME_PTR)name, 32, &side->async_evd, &side->ia);
	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)
		kunit_skip(test, "no device %s", name);
	KD_ASSERT_OK(test, ret);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kd_side_close,
							   side));
	KD_ASSERT_OK(test, dat_ia_query(side->ia, NULL,
					DAT_IA_FIELD_IA_ADDRESS_PTR, attr,
					DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE,
					&prov));
	side->addr = attr->ia_address_ptr;
	side->max_pd = prov.max_private_data_size;
	KD_ASSERT_OK(test, dat_evd_modify_upcall(side->async_evd,
						 DAT_UPCALL_NOTIFY, &wake,
						 DAT_UPCALL_INVOC_ANY));
	return side;
}
EXPORT_SYMBOL_GPL(kd_open);

/* Open the IA that is the parameter of this run of the case. */
struct kd_side *kd_open_param(struct kunit *test)
{
	return kd_open(test, *(const char * const *)test->param_value);
}
EXPORT_SYMBOL_GPL(kd_open_param);

DAT_EVD_HANDLE kd_evd(struct kd_side *side, DAT_EVD_FLAGS flags,
		      DAT_COUNT qlen, DAT_UPCALL_POLICY policy)
{
	DAT_UPCALL_OBJECT wake = { NULL, kd_wake_upcall };
	DAT_EVD_HANDLE evd = NULL;

	KD_ASSERT_OK(side->test, dat_evd_kcreate(side->ia, qlen, policy, &wake,
						 flags, &evd));
	return evd;
}
EXPORT_SYMBOL_GPL(kd_evd);

DAT_EP_ATTR kd_ep_attr(void)
{
	return (DAT_EP_ATTR) {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = SZ_2M,
		.max_rdma_size = SZ_2M,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = 32,
		.max_request_dtos = 32,
		.max_recv_iov = 4,
		.max_request_iov = 4,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 4,
	};
}
EXPORT_SYMBOL_GPL(kd_ep_attr);

/*
 * Create one more EP of a side that was set up, with the side's SRQ if it has
 * one.
 */
DAT_EP_HANDLE kd_ep(struct kd_side *side, const DAT_EP_ATTR *attr)
{
	DAT_EP_ATTR def = kd_ep_attr();
	DAT_EP_HANDLE ep = NULL;

	if (!attr)
		attr = &def;
	if (side->srq)
		KD_ASSERT_OK(side->test,
			     dat_ep_create_with_srq(side->ia, side->pz,
						    side->recv_evd,
						    side->req_evd,
						    side->conn_evd, side->srq,
						    attr, &ep));
	else
		KD_ASSERT_OK(side->test,
			     dat_ep_create(side->ia, side->pz, side->recv_evd,
					   side->req_evd, side->conn_evd, attr,
					   &ep));
	return ep;
}
EXPORT_SYMBOL_GPL(kd_ep);

DAT_SRQ_HANDLE kd_srq(struct kd_side *side, DAT_COUNT len)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = len,
		.max_recv_iov = 2,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_SRQ_HANDLE srq = NULL;

	KD_ASSERT_OK(side->test, dat_srq_create(side->ia, side->pz, &attr,
						&srq));
	return srq;
}
EXPORT_SYMBOL_GPL(kd_srq);

static void kd_setup_evds(struct kd_side *side, const struct kd_opts *opts)
{
	DAT_UPCALL_POLICY policy = opts->polled ? DAT_UPCALL_DISABLE :
						  DAT_UPCALL_NOTIFY;
	DAT_EVD_FLAGS dto = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG;
	DAT_COUNT qlen = opts->qlen ?: 64;

	if (opts->merged) {
		side->recv_evd = kd_evd(side, dto | DAT_EVD_CONNECTION_FLAG |
					DAT_EVD_CR_FLAG, qlen, policy);
		side->req_evd = side->recv_evd;
		side->conn_evd = side->recv_evd;
		side->cr_evd = side->recv_evd;
		return;
	}
	side->recv_evd = kd_evd(side, DAT_EVD_DTO_FLAG, qlen, policy);
	side->req_evd = kd_evd(side, dto, qlen, policy);
	side->conn_evd = kd_evd(side, DAT_EVD_CONNECTION_FLAG, qlen, policy);
	side->cr_evd = kd_evd(side, DAT_EVD_CR_FLAG, qlen, policy);
}

void kd_setup(struct kd_side *side, const struct kd_opts *opts)
{
	static const struct kd_opts defaults;

	if (!opts)
		opts = &defaults;
	KD_ASSERT_OK(side->test, dat_pz_create(side->ia, &side->pz));
	kd_setup_evds(side, opts);
	side->buf = kd_buf_alloc(side, KD_BUF_LEN);
	if (opts->srq_len)
		side->srq = kd_srq(side, opts->srq_len);
	if (!opts->no_ep)
		side->ep = kd_ep(side, opts->attr);
}
EXPORT_SYMBOL_GPL(kd_setup);

struct kd_pair kd_make_pair(struct kunit *test, const struct kd_opts *opts)
{
	struct kd_pair pair = { kd_open_param(test), kd_open_param(test) };

	kd_setup(pair.a, opts);
	kd_setup(pair.p, opts);
	return pair;
}
EXPORT_SYMBOL_GPL(kd_make_pair);

/*
 * Make a pair whose passive side has no EP yet, so that its EVDs may be
 * replaced before kd_ep() makes one.
 */
struct kd_pair kd_make_half_pair(struct kunit *test)
{
	struct kd_pair pair = { kd_open_param(test), kd_open_param(test) };

	kd_setup(pair.a, NULL);
	kd_setup(pair.p, &(struct kd_opts) { .no_ep = true });
	return pair;
}
EXPORT_SYMBOL_GPL(kd_make_half_pair);

DAT_EP_STATE kd_state(struct kd_side *side)
{
	DAT_EP_STATE state = -1;

	KD_EXPECT_OK(side->test, dat_ep_get_status(side->ep, &state, NULL,
						   NULL));
	return state;
}
EXPORT_SYMBOL_GPL(kd_state);

/*
 * Return whether everything takes a multiple of the usual time in this kernel.
 */
bool kd_slow_kernel(void)
{
	return IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN);
}
EXPORT_SYMBOL_GPL(kd_slow_kernel);

/* ---- Waiting and events -------------------------------------------------- */

/* Make kd_wait_until() evaluate its condition again. Context: any. */
void kd_wake(void)
{
	atomic_inc(&kd_wakeups);
	wake_up(&kd_wq);
}
EXPORT_SYMBOL_GPL(kd_wake);

/*
 * Evaluate @cond after every upcall of kdapl_kunit.ko, and once a jiffy, until
 * it holds or @ms have passed. Return whether it holds.
 */
bool kd_wait_until(bool (*cond)(void *data), void *data, unsigned int ms)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(ms) + 1;

	for (;;) {
		int seen = atomic_read(&kd_wakeups);

		if (cond(data))
			return true;
		if (time_after(jiffies, deadline))
			return false;
		wait_event_timeout(kd_wq, atomic_read(&kd_wakeups) != seen, 1);
	}
}
EXPORT_SYMBOL_GPL(kd_wait_until);

struct kd_dequeue {
	DAT_EVD_HANDLE evd;
	DAT_EVENT *event;
};

static bool kd_dequeued(void *data)
{
	struct kd_dequeue *d = data;

	return dat_evd_dequeue(d->evd, d->event) == DAT_SUCCESS;
}

bool kd_wait_event(DAT_EVD_HANDLE evd, DAT_EVENT *event, unsigned int ms)
{
	struct kd_dequeue d = { evd, event };

	return kd_wait_until(kd_dequeued, &d, ms);
}
EXPORT_SYMBOL_GPL(kd_wait_event);

/* Expect that the next event of @evd has this number. @event may be NULL. */
void kd_expect_event(struct kunit *test, DAT_EVD_HANDLE evd,
		     DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_EVENT ignored;

	if (!event)
		event = &ignored;
	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_event(evd, event, KD_TIMEOUT_MS),
			      "%pS: no event %#x", __builtin_return_address(0),
			      number);
	KUNIT_ASSERT_EQ_MSG(test, (u32)event->event_number, (u32)number,
			    "%pS", __builtin_return_address(0));
	KUNIT_EXPECT_PTR_EQ(test, event->evd_handle, evd);
}
EXPORT_SYMBOL_GPL(kd_expect_event);

/*
 * Expect that the next event of @evd is the completion of @cookie. @event may
 * be NULL.
 */
void kd_expect_dto(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie,
		   DAT_DTO_COMPLETION_STATUS status, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT mine;

	if (!event)
		event = &mine;
	KUNIT_ASSERT_TRUE_MSG(test, kd_wait_event(evd, event, KD_TIMEOUT_MS),
			      "%pS: no completion of %llu",
			      __builtin_return_address(0), cookie);
	KUNIT_ASSERT_EQ_MSG(test, (u32)event->event_number,
			    (u32)DAT_DTO_COMPLETION_EVENT, "%pS",
			    __builtin_return_address(0));
	dto = &event->event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ_MSG(test, dto->user_cookie.as_64, cookie, "%pS",
			    __builtin_return_address(0));
	KUNIT_EXPECT_EQ_MSG(test, (u32)dto->status, (u32)status,
			    "%pS: cookie %llu", __builtin_return_address(0),
			    cookie);
}
EXPORT_SYMBOL_GPL(kd_expect_dto);

/*
 * Expect that the next event of @evd is a successful completion of any cookie,
 * and return its data.
 */
DAT_DTO_COMPLETION_EVENT_DATA kd_next_dto(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	kd_expect_event(test, evd, DAT_DTO_COMPLETION_EVENT, &event);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_EQ_MSG(test, (u32)dto->status, (u32)DAT_DTO_SUCCESS, "%pS",
			    __builtin_return_address(0));
	return *dto;
}
EXPORT_SYMBOL_GPL(kd_next_dto);

void kd_expect_no_event(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = {};

	KUNIT_EXPECT_FALSE_MSG(test, kd_wait_event(evd, &event, KD_QUIET_MS),
			       "%pS: event %#x", __builtin_return_address(0),
			       event.event_number);
}
EXPORT_SYMBOL_GPL(kd_expect_no_event);

/* Dequeue all events that are queued now. Return their number. */
unsigned int kd_drain(DAT_EVD_HANDLE evd)
{
	unsigned int n = 0;
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		n++;
	return n;
}
EXPORT_SYMBOL_GPL(kd_drain);

struct kd_ep_state {
	DAT_EP_HANDLE ep;
	DAT_EP_STATE state;
};

static bool kd_has_state(void *data)
{
	struct kd_ep_state *want = data;
	DAT_EP_STATE state;

	return dat_ep_get_status(want->ep, &state, NULL, NULL) == DAT_SUCCESS &&
	       state == want->state;
}

bool kd_wait_state(DAT_EP_HANDLE ep, DAT_EP_STATE state)
{
	struct kd_ep_state want = { ep, state };

	return kd_wait_until(kd_has_state, &want, KD_TIMEOUT_MS);
}
EXPORT_SYMBOL_GPL(kd_wait_state);

/* ---- Upcalls ------------------------------------------------------------- */

struct kd_recorder *kd_recorder(struct kunit *test)
{
	struct kd_recorder *rec;

	rec = kunit_kzalloc(test, sizeof(*rec), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rec);
	spin_lock_init(&rec->lock);
	return rec;
}
EXPORT_SYMBOL_GPL(kd_recorder);

static void kd_record_context(struct kd_recorder *rec)
{
	if (in_hardirq())
		atomic_inc(&rec->hardirq);
	else if (in_serving_softirq())
		atomic_inc(&rec->softirq);
	else if (in_task())
		atomic_inc(&rec->task);
}

static void kd_record(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kd_recorder *rec = data;
	int running = atomic_inc_return(&rec->running);
	unsigned long flags;

	if (running > atomic_read(&rec->max_running))
		atomic_set(&rec->max_running, running);
	kd_record_context(rec);
	if (more)
		atomic_inc(&rec->more);
	if (event) {
		spin_lock_irqsave(&rec->lock, flags);
		rec->events[rec->n++ % KD_RECORDS] = *event;
		spin_unlock_irqrestore(&rec->lock, flags);
	}
	if (rec->hook)
		rec->hook(rec, event, more);
	atomic_dec(&rec->running);
	atomic_inc(&rec->calls);
	kd_wake();
}

/* Return an upcall object that records in @rec. */
DAT_UPCALL_OBJECT kd_upcall(struct kd_recorder *rec)
{
	return (DAT_UPCALL_OBJECT) { rec, kd_record };
}
EXPORT_SYMBOL_GPL(kd_upcall);

DAT_EVD_HANDLE kd_recorded_evd(struct kd_side *side, DAT_EVD_FLAGS flags,
			       DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			       struct kd_recorder *rec)
{
	DAT_UPCALL_OBJECT upcall = kd_upcall(rec);
	DAT_EVD_HANDLE evd = NULL;

	KD_ASSERT_OK(side->test, dat_evd_kcreate(side->ia, qlen, policy,
						 &upcall, flags, &evd));
	return evd;
}
EXPORT_SYMBOL_GPL(kd_recorded_evd);

/* Enable upcalls of an EVD that was made with DAT_UPCALL_DISABLE. */
void kd_enable_upcalls(struct kunit *test, DAT_EVD_HANDLE evd,
		       DAT_UPCALL_FLAG flag)
{
	KD_ASSERT_OK(test, dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE,
						 DAT_UPCALL_SAME, flag));
}
EXPORT_SYMBOL_GPL(kd_enable_upcalls);

struct kd_call_count {
	struct kd_recorder *rec;
	int calls;
};

static bool kd_has_calls(void *data)
{
	struct kd_call_count *want = data;

	return atomic_read(&want->rec->calls) >= want->calls;
}

/* Wait until @calls upcalls have returned since the recorder was made. */
bool kd_wait_calls(struct kd_recorder *rec, int calls)
{
	struct kd_call_count want = { rec, calls };

	return kd_wait_until(kd_has_calls, &want, KD_TIMEOUT_MS);
}
EXPORT_SYMBOL_GPL(kd_wait_calls);

MODULE_DESCRIPTION("What the KUnit suites of kdapl.ko share");
MODULE_LICENSE("Dual BSD/GPL");
