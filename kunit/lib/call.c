// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_kunit.ko: calls in a context of their own, see call.h. */
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "call.h"

static int call_thread(void *data)
{
	struct kd_call *c = data;

	c->ret = c->fn(c->arg);
	complete_all(&c->done);
	return 0;
}

/* Have @fn called with @arg. The case must not end before the call has returned. */
struct kd_call *kd_call_begin(struct kunit *test, u32 (*fn)(void *arg), void *arg)
{
	struct kd_call *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->fn = fn;
	c->arg = arg;
	init_completion(&c->done);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(call_thread, c, "kd-call")));
	return c;
}
EXPORT_SYMBOL_GPL(kd_call_begin);

/* Return whether the call returns within @ms. */
bool kd_call_is_back(struct kd_call *c, unsigned int ms)
{
	return wait_for_completion_timeout(&c->done, msecs_to_jiffies(ms));
}
EXPORT_SYMBOL_GPL(kd_call_is_back);

/*
 * Expect that the call returns @want within @ms. If it does not, @rescue lets it go on, so
 * that the case can fail.
 */
void kd_call_expect(struct kunit *test, struct kd_call *c, u32 want, unsigned int ms,
		    void (*rescue)(void *data), void *data)
{
	bool back = kd_call_is_back(c, ms);

	KUNIT_EXPECT_TRUE_MSG(test, back, "%ps: no return within %u ms", c->fn, ms);
	if (!back) {
		rescue(data);
		wait_for_completion(&c->done);
	}
	KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(c->ret), want, "%ps returned %#x %s",
			    c->fn, c->ret, kd_strerror(c->ret));
}
EXPORT_SYMBOL_GPL(kd_call_expect);

struct kd_interrupt {
	struct irq_work work;
	void (*fn)(void *arg);
	void *arg;
	bool hard;
	struct completion done;
};

static void kd_interrupt_run(struct irq_work *work)
{
	struct kd_interrupt *i = container_of(work, struct kd_interrupt, work);

	i->hard = in_hardirq();
	i->fn(i->arg);
	complete(&i->done);
}

/* Call @fn with @arg in a hard interrupt. */
void kd_call_in_interrupt(struct kunit *test, void (*fn)(void *arg), void *arg)
{
	struct kd_interrupt *i = kunit_kzalloc(test, sizeof(*i), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, i);
	i->fn = fn;
	i->arg = arg;
	init_completion(&i->done);
	init_irq_work(&i->work, kd_interrupt_run);
	irq_work_queue(&i->work);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&i->done,
							    msecs_to_jiffies(KD_TIMEOUT_MS)));
	irq_work_sync(&i->work);
	KUNIT_EXPECT_TRUE(test, i->hard);
}
EXPORT_SYMBOL_GPL(kd_call_in_interrupt);
