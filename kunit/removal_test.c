// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device leaves (contract N5, N6), IAs close (C5), both under traffic; what
 * upcalls have to do with it (C4, C6).
 *
 * Devices are removed and added by "rdma", run from the cases as an administrator
 * would. No case touches the devices that the other suites use.
 */
#include <linux/io.h>
#include <linux/kmod.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include "random/teardown.h"

/* The device goes at once: far more than "rdma" needs to start. */
#define UNPLUG_MS	(kd_slow_kernel() ? 4000 : 1500)

/* ---- Devices that come and go --------------------------------------------- */

struct device {
	const char *ia;
	const char *name;
	const char *add;
};

static const struct device devices[] = {
	{ "rxe1/1", "rxe1", "rdma link add rxe1 type rxe netdev v2" },
	{ "siw1/1", "siw1", "rdma link add siw1 type siw netdev dummy1" },
};

static void device_desc(const struct device *d, char *desc)
{
	strscpy(desc, d->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(device, devices, device_desc);

static int run(const char *command)
{
	char *argv[] = { "/bin/sh", "-c", (char *)command, NULL };
	char *envp[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/", NULL
	};

	return call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
}

static bool is_listed(const char *name)
{
	DAT_HA_RELATIONSHIP same;

	return dat_registry_providers_related((char *)name, (char *)name,
					      &same) == DAT_SUCCESS;
}

static void plug(void *data)
{
	struct kunit *test = data;
	const struct device *d = test->param_value;

	if (!is_listed(d->ia))
		KUNIT_EXPECT_EQ(test, 0, run(d->add));
	KUNIT_EXPECT_TRUE(test, is_listed(d->ia));
}

static void unplug(struct kunit *test)
{
	const struct device *d = test->param_value;
	char command[64];
	ktime_t start;

	snprintf(command, sizeof(command), "rdma link delete %s", d->name);
	start = ktime_get();
	KUNIT_ASSERT_EQ(test, 0, run(command));
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), start), UNPLUG_MS);
	KUNIT_EXPECT_FALSE(test, is_listed(d->ia));
}

/* A side on the device, which is there again after the case. */
static struct kd_side *open_device(struct kunit *test)
{
	const struct device *d = test->param_value;

	return kd_open(test, d->ia);
}

static int removal_init(struct kunit *test)
{
	/* A skipped case has no device, and needs none. */
	if (!test->param_value ||
	    !is_listed(((const struct device *)test->param_value)->ia))
		return 0;
	return kunit_add_action_or_reset(test, plug, test);
}

/* ---- What everybody is told -------------------------------------------------- */

static void expect_catastrophe(struct kd_side *s)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(s->test, s->async_evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			&event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(s->test, data->dat_handle, (DAT_HANDLE)s->ia);
	KUNIT_EXPECT_EQ(s->test, data->reason, DAT_IA_CATASTROPHIC_ERROR);
	KUNIT_EXPECT_EQ(s->test, 0, kd_drain(s->async_evd));
}

static void expect_broken(struct kd_side *s)
{
	DAT_EVENT event;

	kd_expect_event(s->test, s->conn_evd, DAT_CONNECTION_EVENT_BROKEN,
			&event);
	KUNIT_EXPECT_PTR_EQ(s->test, s->ep,
			    event.event_data.connect_event_data.ep_handle);
	KUNIT_EXPECT_EQ(s->test, 0, kd_drain(s->conn_evd));
	KUNIT_EXPECT_EQ(s->test, (u32)kd_state(s),
			(u32)DAT_EP_STATE_DISCONNECTED);
}

/* ---- The device leaves ------------------------------------------------------ */

static void leave_under_traffic(struct kunit *test, DAT_COUNT srq_len,
				DAT_EVD_FLAGS flags)
{
	struct traffic *t = connect_traffic(test, srq_len, flags);
	struct objects objects = { .n = 0 };
	int i;

	start_traffic(test, t);
	unplug(test);
	for (i = 0; i < 2; i++) {
		expect_broken(t->side[i]);
		expect_catastrophe(t->side[i]);
	}
	/* A fresh IA of the same name, while the old ones are open. */
	plug(test);
	KUNIT_EXPECT_EQ(test, 0, kd_drain(open_device(test)->async_evd));
	stop_traffic(t);
	for (i = 0; i < 2; i++) {
		objects.n = 0;
		free_side(t->side[i], &objects);
	}
}

static void N6_traffic(struct kunit *test)
{
	leave_under_traffic(test, 0, DAT_EVD_DTO_FLAG);
}

static void N6_traffic_of_srqs(struct kunit *test)
{
	leave_under_traffic(test, 32, DAT_EVD_DTO_FLAG);
}

static void N6_traffic_with_upcalls_in_process_context(struct kunit *test)
{
	leave_under_traffic(test, 0, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG);
}

/* The fresh IA works like the first one. */
static void N6_device_comes_back(struct kunit *test)
{
	struct traffic *t = connect_traffic(test, 0, DAT_EVD_DTO_FLAG);

	unplug(test);
	plug(test);
	t = connect_traffic(test, 0, DAT_EVD_DTO_FLAG);
	start_traffic(test, t);
}

static void N6_does_not_wait_for_an_upcall(struct kunit *test)
{
	struct slow_upcall *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);
	struct kd_side *a = open_device(test), *p = open_device(test);

	KUNIT_ASSERT_NOT_NULL(test, u);
	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .no_ep = true });
	p->recv_evd = start_slow_upcall(p, u);
	p->ep = kd_ep(p, NULL);
	kd_connect_pair(a, p);
	kd_recv(p, 0, 64, 1);
	kd_send(a, 0, 64, 1);
	unplug(test);
	KUNIT_EXPECT_FALSE(test, READ_ONCE(u->left));
	complete(&u->leave);
	expect_broken(a);
	expect_broken(p);
}

/* What is not connected yet, or not any more. */
static void N6_while_connecting(struct kunit *test)
{
	struct kd_side *a = open_device(test), *p = open_device(test);
	struct kd_side *idle = open_device(test);
	struct objects objects = { .n = 0 };
	u16 port = kd_port();
	DAT_CR_HANDLE cr;

	kd_setup(a, NULL);
	kd_setup(p, NULL);
	kd_setup(idle, NULL);
	add_object(&objects, kd_psp(p, port, DAT_PSP_CONSUMER_FLAG));
	kd_connect_start(a, p, port);
	cr = kd_expect_cr(p);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(a),
			(u32)DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	unplug(test);
	expect_broken(a);
	expect_broken(p);
	expect_broken(idle);
	expect_catastrophe(p);
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE,
		      dat_cr_accept(cr, p->ep, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, dat_cr_reject(cr, 0, NULL));
	free_side(p, &objects);
}

/* Two threads' worth of connecting, accepting and disconnecting. */
struct churn {
	struct kd_side *a;
	struct kd_side *p;
	u16 port;
	unsigned int rounds;
	bool stop;
	struct completion done;
};

static void accept_any(struct churn *c)
{
	DAT_EVENT event;
	DAT_CR_HANDLE cr;

	if (dat_evd_dequeue(c->p->cr_evd, &event) != DAT_SUCCESS)
		return;
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	if (dat_cr_accept(cr, c->p->ep, 0, NULL) != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

static int churn_thread(void *data)
{
	struct churn *c = data;
	unsigned int i;

	for (i = 0; !READ_ONCE(c->stop); i++) {
		if (dat_ep_connect(c->a->ep, c->a->addr, c->port, 100000, 0,
				   NULL, 0, 0) == DAT_SUCCESS)
			WRITE_ONCE(c->rounds, c->rounds + 1);
		accept_any(c);
		if (i % 4 == 3)
			dat_ep_disconnect(c->a->ep, DAT_CLOSE_ABRUPT_FLAG);
		if (i % 8 == 7)
			dat_ep_disconnect(c->p->ep, DAT_CLOSE_ABRUPT_FLAG);
		dat_ep_reset(c->a->ep);
		dat_ep_reset(c->p->ep);
		kd_drain(c->a->conn_evd);
		kd_drain(c->p->conn_evd);
		schedule_timeout_interruptible(1);
	}
	complete(&c->done);
	return 0;
}

static bool has_churned(void *data)
{
	return READ_ONCE(((struct churn *)data)->rounds) > 10;
}

static void N6_while_connections_come_and_go(struct kunit *test)
{
	struct churn *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct objects objects = { .n = 0 };

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->a = open_device(test);
	c->p = open_device(test);
	c->port = kd_port();
	kd_setup(c->a, NULL);
	kd_setup(c->p, NULL);
	kd_psp(c->p, c->port, DAT_PSP_CONSUMER_FLAG);
	init_completion(&c->done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(churn_thread, c,
						    "kd-churn")));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(has_churned, c, KD_TIMEOUT_MS));
	unplug(test);
	WRITE_ONCE(c->stop, true);
	wait_for_completion(&c->done);
	KUNIT_EXPECT_EQ(test, (u32)kd_state(c->a),
			(u32)DAT_EP_STATE_DISCONNECTED);
	expect_catastrophe(c->a);
	expect_catastrophe(c->p);
	free_side(c->a, &objects);
}

/* ---- Memory, and every call afterwards ----------------------------------------- */

/* A side's memory objects beyond its buffer, all in use. */
struct memory {
	struct kd_buf *local;
	struct kd_buf *remote;
	DAT_LMR_HANDLE fmr;
	DAT_RMR_HANDLE rmr;
	DAT_LMR_CONTEXT fmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_PADDR page;
};

static void make_memory(struct kd_side *s, struct memory *m)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, PAGE_SIZE);
	DAT_REGION_DESCRIPTION region = { .for_physical = &m->page };

	m->page = page_to_phys(virt_to_page(s->buf->va));
	m->local = kd_buf_alloc_priv(s, SZ_16K, true,
				     DAT_MEM_PRIV_LOCAL_READ_FLAG |
				     DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	m->remote = kd_buf_valloc(s, SZ_16K);
	KD_ASSERT_OK(s->test, dat_lmr_allocate(s->ia, s->pz, 4,
					       DAT_LMR_SCOPE_PZ, &m->fmr));
	KD_ASSERT_OK(s->test, dat_rmr_create(s->pz, &m->rmr));
	KD_ASSERT_OK(s->test,
		     dat_lmr_fmr(m->fmr, DAT_MEM_TYPE_PHYSICAL, region, 1,
				 DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
				 kd_cookie(1), 0, &m->fmr_context,
				 &m->rmr_context));
	kd_expect_dto(s->test, s->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	KD_ASSERT_OK(s->test,
		     dat_rmr_bind(m->rmr, s->buf->lmr, &seg,
				  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
				  kd_cookie(2), 0, &m->rmr_context));
	kd_expect_event(s->test, s->req_evd, DAT_RMR_BIND_COMPLETION_EVENT,
			NULL);
}

/* The call needs the device: an error that says so. */
#define GONE(test, call)	KD_EXPECT_RET(test, DAT_INSUFFICIENT_RESOURCES, call)

static void calls_that_need_the_device(struct kd_side *s)
{
	DAT_IA_ATTR *attr = kunit_kzalloc(s->test, sizeof(*attr), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = { .for_va = s->buf->va };
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EP_ATTR ep_attr = kd_ep_attr();
	struct kunit *test = s->test;
	DAT_EVD_HANDLE evd = NULL;
	DAT_HANDLE out = NULL;
	DAT_RMR_CONTEXT rc;
	DAT_LMR_CONTEXT lc;
	DAT_CONN_QUAL qual;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND,
		      dat_ia_open((char *)s->name, 8, &evd, (void *)&out));
	GONE(test, dat_ia_query(s->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL));
	GONE(test, dat_pz_create(s->ia, (void *)&out));
	GONE(test, dat_evd_kcreate(s->ia, 8, DAT_UPCALL_DISABLE, NULL,
				   DAT_EVD_DTO_FLAG, &evd));
	GONE(test, dat_ep_create(s->ia, s->pz, s->recv_evd, s->req_evd,
				 s->conn_evd, &ep_attr, (void *)&out));
	GONE(test, dat_srq_create(s->ia, s->pz, &srq_attr, (void *)&out));
	GONE(test, dat_rmr_create(s->pz, (void *)&out));
	GONE(test, dat_lmr_allocate(s->ia, s->pz, 2, DAT_LMR_SCOPE_PZ,
				    (void *)&out));
	GONE(test, dat_lmr_kcreate(s->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096,
				   s->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
				   DAT_MEM_OPTIMIZE_DONT_CARE, (void *)&out,
				   &lc, &rc, NULL, NULL));
	GONE(test, dat_psp_create(s->ia, kd_port(), s->cr_evd, 0,
				  (void *)&out));
	GONE(test, dat_psp_create_any(s->ia, &qual, s->cr_evd, 0,
				      (void *)&out));
	KUNIT_EXPECT_PTR_EQ(test, out, NULL);
}

/* Posting goes on as after any other disconnection, but gets nowhere. */
static void calls_that_post(struct kd_side *s, struct memory *m)
{
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, 0, 64), gone = seg;
	DAT_RMR_TRIPLET remote = kd_remote(s->buf, 64, 64);
	DAT_REGION_DESCRIPTION region = { .for_physical = &m->page };
	struct kunit *test = s->test;
	DAT_RMR_CONTEXT rc;
	DAT_LMR_CONTEXT lc;
	DAT_EVENT event;

#define NO(call) KUNIT_EXPECT_NE_MSG(test, DAT_SUCCESS, call, "%s", #call)
	gone.lmr_context = m->fmr_context;
	NO(dat_ep_post_send(s->ep, 1, &gone, kd_cookie(0), 0));
	NO(dat_ep_post_send(s->ep, 1, &seg, kd_cookie(1), 0));
	NO(dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(2), 0));
	NO(dat_ep_post_rdma_write(s->ep, 1, &seg, kd_cookie(3), &remote, 0));
	NO(dat_ep_post_rdma_read(s->ep, 1, &seg, kd_cookie(4), &remote, 0));
	NO(dat_lmr_fmr(m->fmr, DAT_MEM_TYPE_PHYSICAL, region, 1,
		       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, s->ep,
		       kd_cookie(5), 0, &lc, &rc));
	NO(dat_lmr_invalidate(m->fmr, s->ep, kd_cookie(6), 0));
	NO(dat_rmr_bind(m->rmr, s->buf->lmr, &seg, DAT_MEM_PRIV_ALL_FLAG,
			DAT_VA_TYPE_VA, s->ep, kd_cookie(7), 0, &rc));
#undef NO
	while (dat_evd_dequeue(s->req_evd, &event) == DAT_SUCCESS)
		KUNIT_EXPECT_NE(test, (int)event.event_data
				.dto_completion_event_data.status,
				(int)DAT_DTO_SUCCESS);
}

/* What is only about our own memory works as ever, or fails cleanly. */
static void calls_without_a_device(struct kd_side *s, struct memory *m)
{
	DAT_EP_PARAM *ep = kunit_kzalloc(s->test, sizeof(*ep), GFP_KERNEL);
	struct kunit *test = s->test;
	DAT_LMR_PARAM lmr;
	DAT_RMR_PARAM rmr;
	DAT_EVD_PARAM evd;
	DAT_COUNT held;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KD_EXPECT_OK(test, dat_ep_query(s->ep, DAT_EP_FIELD_ALL, ep));
	KD_EXPECT_OK(test, dat_ep_recv_query(s->ep, &held, NULL));
	KD_EXPECT_OK(test, dat_ep_set_watermark(s->ep, 1, 1));
	KD_EXPECT_OK(test, dat_evd_query(s->recv_evd, DAT_EVD_FIELD_ALL, &evd));
	KD_EXPECT_OK(test, dat_lmr_query(m->remote->lmr, DAT_LMR_FIELD_ALL,
					 &lmr));
	KD_EXPECT_OK(test, dat_rmr_query(m->rmr, DAT_RMR_FIELD_ALL, &rmr));
	dat_evd_resize(s->recv_evd, 128);
	dat_evd_resize(s->conn_evd, 128);
	KD_EXPECT_OK(test, dat_ep_disconnect(s->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_ep_reset(s->ep));
	KUNIT_EXPECT_NE(test, DAT_SUCCESS,
			dat_ep_connect(s->ep, s->addr, kd_port(), 100000, 0,
				       NULL, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, kd_drain(s->conn_evd));
}

static void N6_calls_afterwards(struct kunit *test)
{
	struct kd_side *a = open_device(test), *p = open_device(test);
	struct objects objects = { .n = 0 };
	struct memory m;
	int i;

	kd_setup(a, NULL);
	kd_setup(p, &(struct kd_opts) { .srq_len = 16 });
	for (i = 0; i < 4; i++)
		kd_recv(p, i * 64, 64, i);
	kd_connect_pair(a, p);
	make_memory(a, &m);
	unplug(test);
	expect_broken(a);
	expect_broken(p);
	calls_that_need_the_device(a);
	calls_that_post(a, &m);
	calls_without_a_device(a, &m);
	add_object(&objects, m.fmr);
	add_object(&objects, m.rmr);
	free_side(a, &objects);
	objects.n = 0;
	free_side(p, &objects);
}

static void N6_idle(struct kunit *test)
{
	struct kd_side *bare = open_device(test), *full = open_device(test);
	struct objects objects = { .n = 0 };

	kd_setup(full, &(struct kd_opts) { .srq_len = 16 });
	unplug(test);
	expect_catastrophe(bare);
	expect_broken(full);
	expect_catastrophe(full);
	free_side(bare, &objects);
	free_side(full, &objects);
	/* Nothing is open. */
	plug(test);
	unplug(test);
}

static struct kunit_case removal_cases[] = {
	KUNIT_CASE_PARAM(N6_traffic, device_gen_params),
	KUNIT_CASE_PARAM(N6_traffic_of_srqs, device_gen_params),
	KUNIT_CASE_PARAM(N6_traffic_with_upcalls_in_process_context,
			 device_gen_params),
	KUNIT_CASE_PARAM(N6_device_comes_back, device_gen_params),
	KUNIT_CASE_PARAM(N6_does_not_wait_for_an_upcall, device_gen_params),
	KUNIT_CASE_PARAM(N6_while_connecting, device_gen_params),
	KUNIT_CASE_PARAM(N6_while_connections_come_and_go, device_gen_params),
	KUNIT_CASE_PARAM(N6_calls_afterwards, device_gen_params),
	KUNIT_CASE_PARAM(N6_idle, device_gen_params),
	{}
};

static struct kunit_suite removal_suite = {
	.name = "kdapl-removal",
	.init = removal_init,
	.test_cases = removal_cases,
};

kunit_test_suite(removal_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: devices and IAs that go away");
MODULE_LICENSE("Dual BSD/GPL");
