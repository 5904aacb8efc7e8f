// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random calls from several threads over everything that kdapl.ko exports (C5,
 * I3), on two devices at the same time. Whatever is called, the kernel reports
 * nothing, counts stay sane, and in the end everything can be freed.
 *
 * What each thread calls follows from the seed; how the threads interleave does
 * not. "make soak" runs it for long.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "random/memory.h"

#define THREADS		4
#define ROUNDS		200
#define PORT		31000
/* A call that has not come back by then never will. */
#define STUCK_MS	120000
/* With so many, each call is made. */
#define ENOUGH		8000

static unsigned int calls;
module_param(calls, uint, 0644);
MODULE_PARM_DESC(calls, "calls of all threads together; 0: what is quick");

static unsigned int seed = 1;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "what the calls follow from");

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

static struct random_call table[] = {
	CALL(dat_registry_list_providers, r_list, 1),
	CALL(dat_registry_providers_related, r_related, 1),
	CALL(dat_ia_openv, r_ia_open, 2),
	CALL(dat_ia_close, r_ia_close, 1),
	CALL(dat_ia_query, r_ia_query, 1),
	CALL(dat_ia_memtype_hint, r_memtype_hint, 1),
	CALL(dat_ia_reserved_lmr, r_reserved_lmr, 1),
	CALL(dat_set_consumer_context, r_set_context, 1),
	CALL(dat_get_consumer_context, r_get_context, 1),
	CALL(dat_get_handle_type, r_handle_type, 1),
	CALL(dat_strerror, r_strerror, 1),
	CALL(dat_evd_kcreate, r_evd_create, 6),
	CALL(dat_evd_modify_upcall, r_evd_modify_upcall, 3),
	CALL(dat_evd_query, r_evd_query, 1),
	CALL(dat_evd_resize, r_evd_resize, 2),
	CALL(dat_evd_post_se, r_post_se, 3),
	CALL(dat_evd_dequeue, r_dequeue, 20),
	CALL(dat_evd_free, r_evd_free, 2),
	CALL(dat_ep_create, r_ep_create, 6),
	CALL(dat_ep_create_with_srq, r_ep_create_with_srq, 6),
	CALL(dat_ep_query, r_ep_query, 1),
	CALL(dat_ep_modify, r_ep_modify, 3),
	CALL(dat_ep_get_status, r_get_status, 1),
	CALL(dat_ep_recv_query, r_recv_query, 3),
	CALL(dat_ep_set_watermark, r_ep_watermark, 2),
	CALL(dat_ep_connect, r_connect, 8),
	CALL(dat_ep_dup_connect, r_dup_connect, 2),
	CALL(dat_ep_common_connect, r_common_connect, 4),
	CALL(dat_ep_disconnect, r_disconnect, 1),
	CALL(dat_ep_reset, r_ep_reset, 1),
	CALL(dat_ep_free, r_ep_free, 1),
	CALL(dat_ep_post_send, r_send, 10),
	CALL(dat_ep_post_send_with_invalidate, r_send_inv, 3),
	CALL(dat_ep_post_recv, r_recv, 10),
	CALL(dat_ep_post_rdma_read, r_read, 5),
	CALL(dat_ep_post_rdma_read_to_rmr, r_read_to_rmr, 2),
	CALL(dat_ep_post_rdma_write, r_write, 5),
	CALL(dat_pz_create, r_pz_create, 2),
	CALL(dat_pz_query, r_pz_query, 1),
	CALL(dat_pz_free, r_pz_free, 1),
	CALL(dat_lmr_kcreate, r_lmr_create, 4),
	CALL(dat_lmr_query, r_lmr_query, 1),
	CALL(dat_lmr_free, r_lmr_free, 1),
	CALL(dat_lmr_allocate, r_lmr_allocate, 2),
	CALL(dat_lmr_fmr, r_lmr_fmr, 6),
	CALL(dat_lmr_invalidate, r_lmr_invalidate, 3),
	CALL(dat_lmr_sync_rdma_read, r_sync_read, 1),
	CALL(dat_lmr_sync_rdma_write, r_sync_write, 1),
	CALL(dat_rmr_create, r_rmr_create, 1),
	CALL(dat_rmr_create_for_ep, r_rmr_create_for_ep, 1),
	CALL(dat_rmr_query, r_rmr_query, 1),
	CALL(dat_rmr_bind, r_rmr_bind, 6),
	CALL(dat_rmr_free, r_rmr_free, 1),
	CALL(dat_srq_create, r_srq_create, 2),
	CALL(dat_srq_free, r_srq_free, 1),
	CALL(dat_srq_query, r_srq_query, 3),
	CALL(dat_srq_resize, r_srq_resize, 2),
	CALL(dat_srq_post_recv, r_srq_recv, 8),
	CALL(dat_srq_set_lw, r_srq_lw, 2),
	CALL(dat_psp_create, r_psp_create, 4),
	CALL(dat_psp_create_any, r_psp_create_any, 1),
	CALL(dat_psp_query, r_psp_query, 1),
	CALL(dat_psp_free, r_psp_free, 1),
	CALL(dat_rsp_create, r_rsp_create, 2),
	CALL(dat_rsp_query, r_rsp_query, 1),
	CALL(dat_rsp_free, r_rsp_free, 2),
	CALL(dat_csp_create, r_csp_create, 2),
	CALL(dat_csp_query, r_csp_query, 1),
	CALL(dat_csp_free, r_csp_free, 1),
	CALL(dat_cr_query, r_cr_query, 1),
	CALL(dat_cr_accept, r_cr_accept, 14),
	CALL(dat_cr_reject, r_cr_reject, 3),
	CALL(dat_cr_handoff, r_cr_handoff, 1),
};

/* ---- Threads ------------------------------------------------------------- */

static struct random_call *pick_call(struct caller *c)
{
	static unsigned int total;
	unsigned int i, n;

	if (!total)
		for (i = 0; i < ARRAY_SIZE(table); i++)
			total += table[i].weight;
	n = rnd(c, total);
	for (i = 0; n >= table[i].weight; i++)
		n -= table[i].weight;
	return &table[i];
}

static void check_return(struct caller *c, struct random_call *call,
			 DAT_RETURN ret)
{
	const char *major, *minor;

	atomic_inc(&call->made);
	if (ret == DAT_SUCCESS) {
		atomic_inc(&call->succeeded);
		return;
	}
	KUNIT_EXPECT_EQ_MSG(c->pool->test, DAT_GET_CLASS(ret), DAT_CLASS_ERROR,
			    "%s", call->name);
	KUNIT_EXPECT_EQ_MSG(c->pool->test, DAT_SUCCESS,
			    dat_strerror(ret, &major, &minor), "%s: %#x",
			    call->name, ret);
	KUNIT_EXPECT_NE_MSG(c->pool->test, (u32)DAT_GET_TYPE(ret),
			    (u32)DAT_NOT_IMPLEMENTED, "%s", call->name);
	if (DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR &&
	    atomic_inc_return(&c->pool->internal) < 10)
		kunit_info(c->pool->test, "%s: internal error", call->name);
}

static int call_thread(void *data)
{
	struct caller *c = data;
	struct random_call *call;

	while (c->calls) {
		call = pick_call(c);
		c->w = &c->pool->world[rnd(c, WORLDS)];
		WRITE_ONCE(c->name, call->name);
		check_return(c, call, call->fn(c));
		WRITE_ONCE(c->calls, c->calls - 1);
		/* Let messages arrive and connections proceed. */
		if (c->calls % 64 == 0)
			schedule_timeout_interruptible(1);
		else
			cond_resched();
	}
	complete(&c->done);
	return 0;
}

/* ---- Beginning and end --------------------------------------------------- */

static void make_memory(struct pool *pool)
{
	unsigned int i;

	pool->kmem = kunit_kmalloc(pool->test, MEM_LEN, GFP_KERNEL);
	pool->vmem = vmalloc(MEM_LEN);
	KUNIT_ASSERT_NOT_NULL(pool->test, pool->kmem);
	KUNIT_ASSERT_NOT_NULL(pool->test, pool->vmem);
	memset(pool->kmem, 0x5a, MEM_LEN);
	memset(pool->vmem, 0x5a, MEM_LEN);
	for (i = 0; i < MEM_PAGES; i++)
		pool->page[i] = page_to_phys(virt_to_page(pool->kmem +
							  MEM_GUARD +
							  i * PAGE_SIZE));
	sg_init_one(pool->sg, pool->kmem + MEM_GUARD + 100, 5000);
}

static void free_memory(void *data)
{
	vfree(((struct pool *)data)->vmem);
}

static void open_world(struct pool *pool, struct world *w, const char *name,
		       struct kd_side *side)
{
	w->pool = pool;
	w->name = name;
	w->ia = side->ia;
	w->async_evd = side->async_evd;
	w->addr = side->addr;
	w->port = PORT + 100 * (w - pool->world);
}

static void drain(struct pool *pool, struct world *w, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		saw_event(pool, w, &event);
}

/* Free what can be freed now; returns how much is left. */
static unsigned int free_round(struct pool *pool, struct world *w, bool last)
{
	unsigned int left = 0;
	DAT_RETURN ret;
	int type, i;

	for (i = 0; i < SLOTS; i++)
		drain(pool, w, w->slot[DAT_HANDLE_TYPE_EVD][i]);
	for (i = 0; i < SLOTS; i++)
		dat_ia_close(w->slot[DAT_HANDLE_TYPE_IA][i],
			     DAT_CLOSE_ABRUPT_FLAG);
	for (type = 0; type < TYPES; type++)
		for (i = 0; i < SLOTS; i++) {
			if (!is_live(w->slot[type][i]))
				continue;
			left++;
			ret = free_object(w->slot[type][i]);
			if (last)
				kunit_info(pool->test, "%s: type %d: %s",
					   w->name, type, kd_strerror(ret));
		}
	return left;
}

/*
 * Everything that was made can be freed, then the IAs have nothing in them. Both
 * worlds end together: a call may use handles of both, as the asynchronous EVD of
 * an IA of the other, say.
 */
static void end_worlds(struct pool *pool, struct kd_side **side)
{
	struct kunit *test = pool->test;
	unsigned int i, n, left = 1;
	DAT_RETURN ret;

	for (i = 0; left && i < ROUNDS; i++) {
		for (n = 0, left = 0; n < WORLDS; n++)
			left += free_round(pool, &pool->world[n],
					   i == ROUNDS - 1);
		msleep(left ? 20 : 0);
	}
	KUNIT_EXPECT_EQ_MSG(test, left, 0, "objects that cannot be freed");
	for (n = 0; n < WORLDS; n++) {
		ret = dat_ia_close(pool->world[n].ia, DAT_CLOSE_GRACEFUL_FLAG);
		KD_EXPECT_OK(test, ret);
		if (ret == DAT_SUCCESS)
			side[n]->ia = NULL;
	}
}

static void report(struct pool *pool, unsigned int n)
{
	struct random_call *call;

	kunit_info(pool->test, "seed %u, %u calls, %d events, %d upcalls",
		   seed, n, atomic_read(&pool->events),
		   atomic_read(&pool->upcalls));
	for (call = table; call < table + ARRAY_SIZE(table); call++) {
		if (!atomic_read(&call->succeeded))
			kunit_info(pool->test, "%s: no success in %d calls",
				   call->name, atomic_read(&call->made));
		if (n >= ENOUGH)
			KUNIT_EXPECT_GT_MSG(pool->test,
					    atomic_read(&call->made), 0, "%s",
					    call->name);
	}
}

static void await_caller(struct kunit *test, struct caller *c)
{
	unsigned int left = READ_ONCE(c->calls);

	while (!wait_for_completion_timeout(&c->done,
					    msecs_to_jiffies(STUCK_MS))) {
		if (left == READ_ONCE(c->calls))
			KUNIT_FAIL(test, "%s and %u calls more",
				   READ_ONCE(c->name), left);
		left = READ_ONCE(c->calls);
	}
}

static void C5_random_calls(struct kunit *test)
{
	static const char * const names[WORLDS] = { "rxe0/1", "siw0/1" };
	unsigned int n = calls ?: kd_slow_kernel() ? ENOUGH / 4 : ENOUGH;
	struct kd_side *side[WORLDS];
	struct task_struct *task;
	struct caller *caller;
	struct pool *pool;
	int i;

	pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);
	caller = kunit_kcalloc(test, THREADS, sizeof(*caller), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	KUNIT_ASSERT_NOT_NULL(test, caller);
	pool->test = test;
	spin_lock_init(&pool->lock);
	make_memory(pool);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_memory,
							   pool));
	for (i = 0; i < WORLDS; i++) {
		side[i] = kd_open(test, names[i]);
		open_world(pool, &pool->world[i], names[i], side[i]);
	}
	for (i = 0; i < THREADS; i++) {
		caller[i].pool = pool;
		caller[i].calls = n / THREADS;
		prandom_seed_state(&caller[i].rnd, seed * THREADS + i + 1);
		init_completion(&caller[i].done);
		task = kthread_run(call_thread, &caller[i], "kd-random-%d", i);
		if (IS_ERR(task))
			complete(&caller[i].done);
		KUNIT_EXPECT_FALSE(test, IS_ERR(task));
	}
	for (i = 0; i < THREADS; i++)
		await_caller(test, &caller[i]);
	end_worlds(pool, side);
	KUNIT_EXPECT_TRUE(test, is_guarded(pool->kmem));
	KUNIT_EXPECT_TRUE(test, is_guarded(pool->vmem));
	report(pool, n);
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_SLOW(C5_random_calls),
	{}
};

static struct kunit_suite random_suite = {
	.name = "kdapl-random",
	.test_cases = random_cases,
};

kunit_test_suite(random_suite);

MODULE_DESCRIPTION("KUnit suite of kdapl.ko: random calls");
MODULE_LICENSE("Dual BSD/GPL");
