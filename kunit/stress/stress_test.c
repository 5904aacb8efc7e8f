// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Everything at once, on all CPUs.
 *
 * A server accepts connections on Endpoints with one SRQ. For each CPU there is
 * a client that modifies an Endpoint, connects it, sends, disconnects and
 * begins again, and a meddler that resizes the SRQ, sets its low watermark and
 * the watermarks of the server's Endpoints, and queries counts. In the end no
 * buffer may be missing. The time is a parameter of the module: one second in
 * an ordinary run.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "fixture.h"

static uint seconds = 1;
module_param(seconds, uint, 0444);

#define ST_BUFS		96	/* buffers of the SRQ */
#define ST_MIN		64	/* shortest SRQ; buffers posted */
#define ST_LEN		64	/* bytes of a message */
#define ST_BURST	8	/* messages of a connection, per client */
#define ST_EPS		16	/* of the server, that meddlers know of */
#define ST_CPUS		8

struct st_client {
	struct stress *st;
	struct kd_side *side;
	struct task_struct *task;
	int cpu;
};

struct stress {
	struct kunit *test;
	struct kd_side *server;
	DAT_EVD_HANDLE evd;		/* of the server, for everything */
	struct kd_buf *bufs;
	u16 port;
	unsigned long end;
	bool give_up;
	atomic_t connects, refused, received, lows, softs, brokens, resizes;
	atomic_t errors;
	DAT_EP_HANDLE eps[ST_EPS];	/* any of them may be gone */
	struct st_client clients[ST_CPUS];
	struct task_struct *meddlers[ST_CPUS];
	int cpus;
};

/*
 * Return whether to stop: when the time is up and, however slow the machine,
 * each kind of event has happened.
 */
static bool st_over(struct stress *st)
{
	return READ_ONCE(st->give_up) ||
	       (time_after(jiffies, st->end) && atomic_read(&st->received) &&
		atomic_read(&st->resizes) && atomic_read(&st->lows) &&
		atomic_read(&st->softs));
}

static bool st_is_over(void *data)
{
	return st_over(data);
}

/*
 * Check a call that must not fail. Failures are counted, and the first few
 * printed.
 */
static bool st_ok(struct stress *st, const char *what, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return true;
	if (atomic_inc_return(&st->errors) <= 5)
		kunit_info(st->test, "%s: %#x %s", what, ret, kd_strerror(ret));
	return false;
}

/* ---- The server, in upcalls of one EVD ----------------------------------- */

static void st_post(struct stress *st, u64 cookie)
{
	DAT_LMR_TRIPLET seg = kd_seg(st->bufs, cookie * ST_LEN, ST_LEN);

	st_ok(st, "dat_srq_post_recv",
	      dat_srq_post_recv(st->server->srq, 1, &seg, kd_cookie(cookie)));
}

static void st_accept(struct stress *st, DAT_CR_HANDLE cr)
{
	struct kd_side *s = st->server;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep;

	if (!st_ok(st, "dat_ep_create_with_srq",
		   dat_ep_create_with_srq(s->ia, s->pz, st->evd, st->evd,
					  st->evd, s->srq, &attr, &ep)))
		return;
	/* The client may have given up. */
	if (dat_cr_accept(cr, ep, 0, NULL) != DAT_SUCCESS)
		dat_ep_free(ep);
	else
		WRITE_ONCE(st->eps[get_random_u32() % ST_EPS], ep);
}

static void st_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_EVENT_DATA *d = &event->event_data;
	struct stress *st = data;

	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		if (d->dto_completion_event_data.operation != DAT_DTO_RECEIVE)
			break;
		atomic_inc(&st->received);
		st_post(st, d->dto_completion_event_data.user_cookie.as_64);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		st_accept(st, d->cr_arrival_event_data.cr_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		break;
	case DAT_CONNECTION_EVENT_BROKEN:
		atomic_inc(&st->brokens);
		fallthrough;
	default:
		st_ok(st, "dat_ep_free",
		      dat_ep_free(d->connect_event_data.ep_handle));
	}
}

static void st_async(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct stress *st = data;

	if (event->event_number == DAT_ASYNC_SRQ_LOW_WATERMARK)
		atomic_inc(&st->lows);
	else if (event->event_number == DAT_ASYNC_EP_SOFT_HIGH_WATERMARK)
		atomic_inc(&st->softs);
}

/* ---- Clients ------------------------------------------------------------- */

/*
 * Return the number of the next event, or 0 if none comes in time. Makes no
 * assertions, since it runs in threads that are not KUnit's.
 */
static DAT_EVENT_NUMBER st_wait(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	return kd_wait_event(evd, &event, 3 * KD_TIMEOUT_MS) ?
	       event.event_number : 0;
}

static void st_talk(struct stress *st, struct kd_side *s, DAT_EP_HANDLE ep)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, ST_LEN);
	int i, posted = 0;
	DAT_EVENT event;

	for (i = 0; i < ST_BURST; i++)
		if (dat_ep_post_send(ep, 1, &seg, kd_cookie(i),
				     DAT_COMPLETION_DEFAULT_FLAG) ==
		    DAT_SUCCESS)
			posted++;
	/*
	 * The hard watermark may break the connection: then the Sends are
	 * flushed.
	 */
	for (i = 0; i < posted; i++)
		if (!kd_wait_event(s->req_evd, &event, 3 * KD_TIMEOUT_MS))
			st_ok(st, "completion", DAT_TIMEOUT_EXPIRED);
}

static void st_round(struct stress *st, struct kd_side *s)
{
	DAT_EP_PARAM param = { .ep_attr = kd_ep_attr() };
	DAT_EP_HANDLE ep;

	if (!st_ok(st, "dat_ep_create",
		   dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				 s->conn_evd, &param.ep_attr, &ep)))
		return;
	param.ep_attr.max_request_dtos = ST_BURST + get_random_u32() % 32;
	param.pz_handle = s->pz;
	st_ok(st, "dat_ep_modify",
	      dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			    DAT_EP_FIELD_PZ_HANDLE, &param));
	st_ok(st, "dat_ep_connect",
	      dat_ep_connect(ep, st->server->addr, st->port,
			     20 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG));
	if (st_wait(s->conn_evd) == DAT_CONNECTION_EVENT_ESTABLISHED) {
		atomic_inc(&st->connects);
		st_talk(st, s, ep);
		dat_ep_disconnect(ep, get_random_u32() % 2 ?
				  DAT_CLOSE_GRACEFUL_FLAG :
				  DAT_CLOSE_ABRUPT_FLAG);
		if (!st_wait(s->conn_evd))
			st_ok(st, "disconnect", DAT_TIMEOUT_EXPIRED);
	} else {
		atomic_inc(&st->refused);
	}
	st_ok(st, "dat_ep_free", dat_ep_free(ep));
}

static int st_client(void *data)
{
	struct st_client *c = data;

	while (!st_over(c->st)) {
		st_round(c->st, c->side);
		cond_resched();
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* ---- Meddlers ------------------------------------------------------------ */

static void st_meddle(struct stress *st)
{
	DAT_EP_HANDLE ep = READ_ONCE(st->eps[get_random_u32() % ST_EPS]);
	DAT_SRQ_HANDLE srq = st->server->srq;
	DAT_SRQ_PARAM param;
	DAT_COUNT n, span;

	switch (get_random_u32() % 8) {
	case 0:
		/*
		 * The resize is refused if the watermark is higher at that
		 * moment.
		 */
		if (dat_srq_resize(srq, ST_MIN + get_random_u32() %
				   (ST_BUFS - ST_MIN)) == DAT_SUCCESS)
			atomic_inc(&st->resizes);
		break;
	case 1:
		st_ok(st, "dat_srq_set_lw",
		      dat_srq_set_lw(srq, get_random_u32() % ST_MIN));
		break;
	case 2:
		/* The Endpoint may be gone. A mark of 0 breaks it. */
		dat_ep_set_watermark(ep, get_random_u32() % 4,
				     get_random_u32() % 16 ?
				     DAT_WATERMARK_INFINITE : 0);
		break;
	case 3:
		if (dat_ep_recv_query(ep, &n, &span) == DAT_SUCCESS && span < n)
			st_ok(st, "span", DAT_INTERNAL_ERROR);
		break;
	default:
		if (st_ok(st, "dat_srq_query",
			  dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param)) &&
		    (param.available_dto_count > param.outstanding_dto_count ||
		     param.outstanding_dto_count > param.max_recv_dtos))
			st_ok(st, "counts", DAT_INTERNAL_ERROR);
	}
}

static int st_meddler(void *data)
{
	struct stress *st = data;

	while (!st_over(st)) {
		st_meddle(st);
		usleep_range(200, 1000);
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* ---- The test ------------------------------------------------------------ */

static void st_serve(struct stress *st)
{
	DAT_UPCALL_OBJECT upcall = { st, st_upcall }, async = { st, st_async };
	struct kd_side *s = st->server;
	DAT_PSP_HANDLE psp;
	u64 i;

	kd_setup(s, &(struct kd_opts) { .srq_len = ST_BUFS, .no_ep = true });
	st->bufs = kd_buf_alloc(s, ST_MIN * ST_LEN);
	KD_ASSERT_OK(st->test, dat_evd_kcreate(s->ia, 4 * ST_BUFS,
					       DAT_UPCALL_SINGLE_INSTANCE,
					       &upcall, DAT_EVD_DTO_FLAG |
					       DAT_EVD_CONNECTION_FLAG |
					       DAT_EVD_CR_FLAG, &st->evd));
	KD_ASSERT_OK(st->test,
		     dat_evd_modify_upcall(s->async_evd,
					   DAT_UPCALL_SINGLE_INSTANCE, &async,
					   DAT_UPCALL_INVOC_ANY));
	for (i = 0; i < ST_MIN; i++)
		st_post(st, i);
	st->port = kd_port();
	KD_ASSERT_OK(st->test, dat_psp_create(s->ia, st->port, st->evd,
					      DAT_PSP_CONSUMER_FLAG, &psp));
}

static struct task_struct *st_start(struct stress *st, int (*fn)(void *),
				    void *data, int cpu)
{
	struct task_struct *task = kthread_create(fn, data, "stress/%d", cpu);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(st->test, task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

static bool st_all_back(void *data)
{
	struct stress *st = data;
	DAT_SRQ_PARAM param = {};

	dat_srq_query(st->server->srq, DAT_SRQ_FIELD_ALL, &param);
	return param.available_dto_count == ST_MIN &&
	       param.outstanding_dto_count == ST_MIN;
}

static void C5_everything_at_once(struct kunit *test)
{
	struct stress *st = kunit_kzalloc(test, sizeof(*st), GFP_KERNEL);
	int cpu, i;

	KUNIT_ASSERT_NOT_NULL(test, st);
	st->test = test;
	st->server = kd_open_param(test);
	st_serve(st);
	for_each_online_cpu(cpu) {
		if (st->cpus == ST_CPUS)
			break;
		st->clients[st->cpus].st = st;
		st->clients[st->cpus].cpu = cpu;
		st->clients[st->cpus].side = kd_open_param(test);
		kd_setup(st->clients[st->cpus++].side,
			 &(struct kd_opts) { .no_ep = true });
	}
	st->end = jiffies + seconds * HZ;
	for (i = 0; i < st->cpus; i++) {
		struct st_client *c = &st->clients[i];

		c->task = st_start(st, st_client, c, c->cpu);
		st->meddlers[i] = st_start(st, st_meddler, st, c->cpu);
	}
	/* A thread that is stopped before it runs never does. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(st_is_over, st, seconds *
					      MSEC_PER_SEC + 3 * KD_TIMEOUT_MS));
	WRITE_ONCE(st->give_up, true);
	for (i = 0; i < st->cpus; i++) {
		kthread_stop(st->clients[i].task);
		kthread_stop(st->meddlers[i]);
	}
	kunit_info(test, "%d CPUs, %d connections, %d refused, %d broken, %d messages, %d low and %d soft marks, %d resizes\n",
		   st->cpus, atomic_read(&st->connects),
		   atomic_read(&st->refused), atomic_read(&st->brokens),
		   atomic_read(&st->received), atomic_read(&st->lows),
		   atomic_read(&st->softs), atomic_read(&st->resizes));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&st->errors));
	KUNIT_EXPECT_GT(test, atomic_read(&st->connects),
			atomic_read(&st->refused));
	KUNIT_EXPECT_GT(test, atomic_read(&st->received), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&st->resizes), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&st->lows), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&st->softs), 0);
	/* R4: every buffer is there again. */
	KUNIT_EXPECT_TRUE(test, kd_wait_until(st_all_back, st, KD_TIMEOUT_MS));
}

static struct kunit_case stress_cases[] = {
	KUNIT_CASE_PARAM(C5_everything_at_once, kd_gen_ia),
	{ }
};

KD_SUITE("kdapl-stress", stress_cases, "everything at once, on all CPUs");
