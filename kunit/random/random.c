// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random calls from several threads of everything that kdapl.ko exports (C5,
 * I3), on two devices at the same time: on those with a wire, then on the simulated
 * ones. The kernel reports nothing, counts stay sane, and in the end everything can be
 * freed.
 *
 * The calls of each thread follow from the seed; how the threads interleave
 * does not. "make soak" runs this test for long.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "device.h"
#include "random.h"

#define THREADS		4
#define ROUNDS		200
#define PORT		31000
/* A call that takes longer is taken to hang. */
#define STUCK_MS	120000
/* With so many calls, each function is called. */
#define ENOUGH		8000

static unsigned int calls;
module_param(calls, uint, 0644);
MODULE_PARM_DESC(calls, "calls of all threads together; 0: what is quick");

static unsigned int seed = 1;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "what the calls follow from");

static bool wire = true;
module_param(wire, bool, 0444);
MODULE_PARM_DESC(wire, "call on the devices with a wire as well");

/* ---- Threads ------------------------------------------------------------- */

static unsigned int total_weight;

/* The call after @call in the two tables; the first one after NULL. */
static struct random_call *next_call(struct random_call *call)
{
	if (!call)
		return kdr_calls;
	if (++call == kdr_calls + kdr_ncalls)
		return kdr_memory_calls;
	return call == kdr_memory_calls + kdr_nmemory_calls ? NULL : call;
}

/* Add the weights up. No call has been made. */
static void begin_count(void)
{
	struct random_call *call;

	total_weight = 0;
	for (call = next_call(NULL); call; call = next_call(call)) {
		total_weight += call->weight;
		atomic_set(&call->made, 0);
		atomic_set(&call->succeeded, 0);
	}
}

static struct random_call *pick_call(struct caller *c)
{
	struct random_call *call = next_call(NULL);
	unsigned int n = rnd(c, total_weight);

	for (; n >= call->weight; call = next_call(call))
		n -= call->weight;
	return call;
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
		/*
		 * Sleep now and then, so that messages arrive and connections
		 * proceed.
		 */
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
	struct pool *pool = data;

	if (pool->dev)
		ib_dma_unmap_single(pool->dev, pool->dma, MEM_LEN, DMA_BIDIRECTIONAL);
	vfree(pool->vmem);
}

/*
 * Software devices take kernel addresses for DMA addresses, and refuse others. A device
 * that does DMA believes what it is told, so if there is one all get its address.
 */
static void map_memory(struct pool *pool)
{
	struct ib_device *dev;
	unsigned int i;

	pool->dma = (uintptr_t)pool->kmem;
	for (i = 0; i < WORLDS && !pool->dev; i++) {
		dev = kd_device(pool->test, pool->world[i].name);
		if (ib_uses_virt_dma(dev))
			continue;
		pool->dma = ib_dma_map_single(dev, pool->kmem, MEM_LEN,
					      DMA_BIDIRECTIONAL);
		KUNIT_ASSERT_FALSE(pool->test, ib_dma_mapping_error(dev, pool->dma));
		pool->dev = dev;
	}
}

static void open_world(struct pool *pool, struct world *w, struct kd_side *side)
{
	w->pool = pool;
	w->name = side->name;
	w->ia = side->ia;
	w->async_evd = side->async_evd;
	w->addr = side->addr;
	w->port = PORT + 100 * (w - pool->world);
}

static void drain(struct pool *pool, struct world *w, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
		kdr_saw_event(pool, w, &event);
}

/* Free everything that can be freed now. Return how many objects are left. */
static unsigned int free_round(struct pool *pool, struct world *w, bool last)
{
	unsigned int left = 0;
	DAT_RETURN ret;
	int type, i;

	for (i = 0; i < SLOTS; i++)
		drain(pool, w, w->slot[DAT_HANDLE_TYPE_EVD][i]);
	for (i = 0; i < SLOTS; i++)
		kd_may_fail(dat_ia_close(w->slot[DAT_HANDLE_TYPE_IA][i],
					 DAT_CLOSE_ABRUPT_FLAG));
	for (type = 0; type < TYPES; type++)
		for (i = 0; i < SLOTS; i++) {
			if (!kd_is_live(w->slot[type][i]))
				continue;
			left++;
			ret = kd_free_object(w->slot[type][i]);
			if (last)
				kunit_info(pool->test, "%s: type %d: %s",
					   w->name, type, kd_strerror(ret));
		}
	return left;
}

/*
 * Expect that everything can be freed and that the IAs are empty then. Both
 * worlds end together, since objects of one may use those of the other: an IA
 * may have the asynchronous EVD of the other world's IA.
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
	for (call = next_call(NULL); call; call = next_call(call)) {
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

/* Many of the handles are stale or invented, see contract I3. */
static void C5_random_calls(struct kunit *test)
{
	unsigned int n = calls ?: kd_slow_kernel() ? ENOUGH / 4 : ENOUGH;
	const struct kd_bed *bed = test->param_value;
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
	begin_count();
	make_memory(pool);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, free_memory,
							   pool));
	for (i = 0; i < WORLDS; i++) {
		side[i] = kd_open(test, bed[i].ia);
		open_world(pool, &pool->world[i], side[i]);
	}
	map_memory(pool);
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
	KUNIT_EXPECT_TRUE(test, kdr_is_guarded(pool->kmem));
	KUNIT_EXPECT_TRUE(test, kdr_is_guarded(pool->vmem));
	report(pool, n);
}

/* The first one of the two devices with a wire, and of the two simulated ones. */
static KD_GENERATOR(gen_worlds)
{
	if (!prev && wire)
		return KD_GENERATE(kd_gen_wired_ia, NULL);
	if (!prev || kd_ia_has(*(const char * const *)prev, KD_WIRE))
		return KD_GENERATE(kd_gen_simulated_ia, NULL);
	return NULL;
}

static struct kunit_case random_cases[] = {
	KUNIT_CASE_PARAM_ATTR(C5_random_calls, gen_worlds,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};

KD_SUITE("kdapl-random", random_cases, "random calls");
