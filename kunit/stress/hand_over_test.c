// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Hand-overs without a lock, under load: what one thread hands to another must not be
 * lost, whichever is first. Several CPUs are needed to have both at the same place.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include "fixture.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define POSTERS	2
#define QUEUE	32

/* ---- dat_lmr_free() against posts ------------------------------------------------ */

struct poster {
	struct contest *contest;
	struct completion go;
	struct completion done;
	DAT_RETURN ret;
};

/*
 * struct contest - threads that post to one queue, and one that frees what they name
 * @stop: ends the threads
 */
struct contest {
	struct kd_side *s;
	DAT_LMR_TRIPLET seg;
	bool srq;
	bool stop;
	struct poster posters[POSTERS];
};

static DAT_RETURN post(struct contest *c)
{
	return c->srq ? dat_srq_post_recv(c->s->srq, 1, &c->seg, kd_cookie(0)) :
			dat_ep_post_recv(c->s->ep, 1, &c->seg, kd_cookie(0), 0);
}

static int poster(void *data)
{
	struct poster *p = data;
	struct contest *c = p->contest;

	for (;;) {
		wait_for_completion(&p->go);
		if (c->stop)
			break;
		p->ret = post(c);
		complete(&p->done);
	}
	complete(&p->done);
	return 0;
}

static void begin(struct contest *c)
{
	int i;

	for (i = 0; i < POSTERS; i++)
		complete(&c->posters[i].go);
}

static void stop_posters(void *data)
{
	struct contest *c = data;
	int i;

	c->stop = true;
	begin(c);
	for (i = 0; i < POSTERS; i++)
		wait_for_completion(&c->posters[i].done);
}

static void start_posters(struct kunit *test, struct contest *c)
{
	struct poster *p;

	for (p = c->posters; p < c->posters + POSTERS; p++) {
		p->contest = c;
		init_completion(&p->go);
		init_completion(&p->done);
		KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(poster, p, "poster")));
	}
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_posters, c));
}

/* Wait for the posts of a round. Return how many found the LMR. */
static int count_posts(struct kunit *test, struct contest *c)
{
	int i, posted = 0;

	for (i = 0; i < POSTERS; i++) {
		wait_for_completion(&c->posters[i].done);
		if (c->posters[i].ret == DAT_SUCCESS)
			posted++;
		else
			KD_EXPECT_RET(test, DAT_PRIVILEGES_VIOLATION,
				      c->posters[i].ret);
	}
	return posted;
}

/* Make the queue anew, which frees the LMRs that are posted to it. */
static void make_queue(struct contest *c)
{
	struct kd_side *s = c->s;

	if (s->srq)
		KD_ASSERT_OK(s->test, dat_srq_free(s->srq));
	if (s->ep)
		KD_ASSERT_OK(s->test, dat_ep_free(s->ep));
	s->srq = c->srq ? kd_srq(s, QUEUE) : NULL;
	s->ep = c->srq ? NULL : kd_ep(s, NULL);
}

static KD_CHOICES(gen_queues, kd_gen_ia_and, "EP", "SRQ")

/*
 * Either a post has found the LMR, and is in the queue, so that the LMR is not freed; or
 * it was freed, and no post has found it. Each round has an LMR that nobody has used.
 */
static void L6_free_against_posts(struct kunit *test)
{
	const struct kd_param *param = test->param_value;
	struct contest *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int rounds = kd_slow_kernel() ? 200 : 2000, i, posted, freed = 0, lost = 0;
	struct kd_buf *buf;
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->s = kd_open(test, param->ia);
	c->srq = param->choice;
	kd_setup(c->s, &(struct kd_opts) { .no_ep = true });
	start_posters(test, c);
	for (i = 1; i <= rounds; i++) {
		if (i % (QUEUE / POSTERS) == 1)
			make_queue(c);
		buf = kd_buf_alloc_priv(c->s, PAGE_SIZE, false, LOCAL);
		c->seg = kd_seg(buf, 0, 64);
		begin(c);
		/* With one CPU this is what decides who is first. */
		if (i % 3)
			schedule();
		ret = dat_lmr_free(buf->lmr);
		posted = count_posts(test, c);
		if (ret == DAT_SUCCESS ? posted : !posted)
			lost++;
		freed += ret == DAT_SUCCESS;
	}
	kunit_info(test, "%d rounds, the LMR was freed in %d\n", rounds, freed);
	KUNIT_EXPECT_EQ(test, lost, 0);
}

/* ---- Notifications against the end of the dispatcher ----------------------------- */

/*
 * Messages that are sent as solicited ones while the dispatcher ends: whatever the order,
 * each of them causes an upcall, and nothing else comes that would make up for it.
 */
static void C3_no_solicited_message_is_forgotten(struct kunit *test)
{
	int rounds = kd_slow_kernel() ? 100 : 1000, i, n, burst;
	struct kd_recorder *rec = kd_recorder(test);
	struct kd_pair pair = kd_make_half_pair(test);
	struct kd_side *a = pair.a, *p = pair.p;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_LMR_TRIPLET seg = kd_seg(a->buf, 0, 64);

	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	p->recv_evd = kd_recorded_evd(p, DAT_EVD_DTO_FLAG, 32,
				      DAT_UPCALL_SINGLE_INSTANCE, rec);
	p->ep = kd_ep(p, &attr);
	kd_connect_pair(a, p);
	for (i = 0, n = 0; i < rounds; i++) {
		for (burst = i % 4; burst >= 0; burst--, n++) {
			kd_recv(p, 0, 64, n);
			KD_ASSERT_OK(test, dat_ep_post_send(a->ep, 1, &seg, kd_cookie(n),
							    DAT_COMPLETION_SOLICITED_WAIT_FLAG |
							    DAT_COMPLETION_SUPPRESS_FLAG));
		}
		KUNIT_ASSERT_TRUE_MSG(test, kd_wait_calls(rec, n), "round %d", i);
	}
}

static struct kunit_case hand_over_cases[] = {
	KUNIT_CASE_PARAM(L6_free_against_posts, gen_queues),
	KUNIT_CASE_PARAM(C3_no_solicited_message_is_forgotten, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-hand-over", hand_over_cases, "hand-overs without a lock, under load");
