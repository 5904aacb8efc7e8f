// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * removal_test.ko: sides with traffic both ways, an upcall that does not return,
 * all the objects of a side.
 */
#include <linux/kthread.h>
#include <linux/random.h>
#include "free.h"
#include "traffic.h"

/* ---- Traffic ------------------------------------------------------------- */

static void tally_send(struct sender *me, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		WRITE_ONCE(me->sent, me->sent + 1);
	else if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		me->refused++;
}

/* Over iWARP a message that finds no receive ends the connection. */
static bool may_send(struct sender *me)
{
	DAT_EP_STATE state;

	if (!kd_is_iwarp(me->s) ||
	    dat_ep_get_status(me->s->ep, &state, NULL, NULL) != DAT_SUCCESS ||
	    state != DAT_EP_STATE_CONNECTED)
		return true;
	return (int)me->sent - atomic_read(&me->heard->calls) <= RECVS / 2;
}

static int send_thread(void *data)
{
	struct sender *me = data;
	DAT_LMR_TRIPLET seg = kd_seg(me->s->buf, 0, MSG_LEN);
	int i;

	while (!READ_ONCE(me->stop)) {
		for (i = 0; i < RECVS / 2 && may_send(me); i++)
			tally_send(me, dat_ep_post_send(me->s->ep, 1, &seg,
							kd_cookie(i), 0));
		schedule_timeout_interruptible(1);
	}
	complete(&me->done);
	return 0;
}

void td_repost(struct kd_recorder *rec, const DAT_EVENT *event,
	       DAT_BOOLEAN more)
{
	struct kd_side *s = rec->priv;
	u64 i = event->event_data.dto_completion_event_data.user_cookie.as_64;
	DAT_LMR_TRIPLET seg = kd_seg(s->buf, (i + 1) * MSG_LEN, MSG_LEN);

	if (event->event_data.dto_completion_event_data.status)
		return;
	if (s->srq)
		kd_may_fail(dat_srq_post_recv(s->srq, 1, &seg, kd_cookie(i)));
	else
		kd_may_fail(dat_ep_post_recv(s->ep, 1, &seg, kd_cookie(i), 0));
}

void td_stop_traffic(void *data)
{
	struct traffic *t = data;
	int i;

	for (i = 0; i < 2; i++) {
		WRITE_ONCE(t->sender[i].stop, true);
		if (t->sender[i].task)
			wait_for_completion(&t->sender[i].done);
		t->sender[i].task = NULL;
	}
}

/*
 * Connect two sides whose EVDs have upcalls. @srq_len: buffers of an SRQ of
 * each side, or 0.
 */
struct traffic *td_connect_traffic(struct kunit *test, DAT_COUNT srq_len,
				   DAT_EVD_FLAGS flags)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kd_opts opts = { .srq_len = srq_len, .no_ep = true };
	const char *ia = *(const char * const *)test->param_value;
	struct kd_side *s;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, t);
	/*
	 * Made before the sides, so that they are freed after these are closed.
	 */
	for (i = 0; i < 2; i++) {
		t->recv[i] = kd_recorder(test);
		t->req[i] = kd_recorder(test);
	}
	for (i = 0; i < 2; i++) {
		s = kd_open(test, ia);
		t->side[i] = s;
		kd_setup(s, &opts);
		KD_ASSERT_OK(test, dat_evd_free(s->recv_evd));
		KD_ASSERT_OK(test, dat_evd_free(s->req_evd));
		t->recv[i]->hook = td_repost;
		t->recv[i]->priv = s;
		s->recv_evd = kd_recorded_evd(s, flags, 64,
					      DAT_UPCALL_SINGLE_INSTANCE,
					      t->recv[i]);
		s->req_evd = kd_recorded_evd(s, flags, 64,
					     DAT_UPCALL_SINGLE_INSTANCE,
					     t->req[i]);
		s->ep = kd_ep(s, NULL);
		for (n = 0; n < RECVS; n++)
			kd_recv(s, (n + 1) * MSG_LEN, MSG_LEN, n);
	}
	kd_connect_pair(t->side[0], t->side[1]);
	return t;
}

static bool is_moving(void *data)
{
	struct traffic *t = data;

	return atomic_read(&t->recv[0]->calls) > 2 * RECVS &&
	       atomic_read(&t->recv[1]->calls) > 2 * RECVS;
}

bool td_is_refused(void *data)
{
	struct traffic *t = data;

	return READ_ONCE(t->sender[0].refused) &&
	       READ_ONCE(t->sender[1].refused);
}

void td_start_senders(struct kunit *test, struct traffic *t)
{
	struct sender *s;

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, td_stop_traffic,
							   t));
	for (s = t->sender; s < t->sender + 2; s++) {
		s->s = t->side[s - t->sender];
		s->heard = t->recv[1 - (s - t->sender)];
		init_completion(&s->done);
		s->task = kthread_run(send_thread, s, "kd-send");
		if (IS_ERR(s->task))
			s->task = NULL;
		KUNIT_ASSERT_NOT_NULL(test, s->task);
	}
}

/* Start two threads and wait until messages go both ways. */
void td_start_traffic(struct kunit *test, struct traffic *t)
{
	td_start_senders(test, t);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(is_moving, t, KD_TIMEOUT_MS));
}

/* ---- An upcall that takes its time --------------------------------------- */

static void slow_hook(struct kd_recorder *rec, const DAT_EVENT *event,
		      DAT_BOOLEAN more)
{
	struct slow_upcall *u = rec->priv;

	complete(&u->entered);
	wait_for_completion_timeout(&u->leave,
				    msecs_to_jiffies(KD_TIMEOUT_MS));
	WRITE_ONCE(u->left, true);
}

/*
 * Make a slow upcall. To be called before the side is opened, so that the side
 * is closed before the upcall is freed.
 */
struct slow_upcall *td_make_slow_upcall(struct kunit *test)
{
	struct slow_upcall *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, u);
	u->rec = kd_recorder(test);
	u->rec->hook = slow_hook;
	u->rec->priv = u;
	init_completion(&u->entered);
	init_completion(&u->leave);
	return u;
}

/* Start an upcall, which waits in @u. Return its EVD, which also takes DTOs. */
DAT_EVD_HANDLE td_start_slow_upcall(struct kd_side *s, struct slow_upcall *u)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd;

	evd = kd_recorded_evd(s, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, 64,
			      DAT_UPCALL_SINGLE_INSTANCE, u->rec);
	KD_ASSERT_OK(s->test, dat_evd_post_se(evd, &event));
	wait_for_completion(&u->entered);
	return evd;
}

/* ---- Objects of a side, and freeing them in any order -------------------- */

void td_add_object(struct objects *o, DAT_HANDLE handle)
{
	if (handle && o->n < MAX_OBJECTS)
		o->handle[o->n++] = handle;
}

/*
 * Free the objects in random order. An object in use is refused, and freed in a
 * later round.
 */
static void free_shuffled(struct kunit *test, struct objects *o)
{
	unsigned int i, k, rounds;
	DAT_RETURN ret;

	for (rounds = 0; o->n && rounds < MAX_OBJECTS; rounds++) {
		for (i = o->n; i > 1; i--) {
			k = get_random_u32_below(i);
			swap(o->handle[i - 1], o->handle[k]);
		}
		for (i = 0; i < o->n; i++) {
			ret = kd_free_object(o->handle[i]);
			if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE) {
				KD_EXPECT_OK(test, ret);
				o->handle[i--] = o->handle[--o->n];
			}
		}
	}
	KUNIT_EXPECT_EQ(test, o->n, 0);
}

static void side_objects(struct kd_side *s, struct objects *o)
{
	struct kd_buf *buf;

	td_add_object(o, s->ep);
	td_add_object(o, s->srq);
	td_add_object(o, s->recv_evd);
	td_add_object(o, s->req_evd);
	td_add_object(o, s->conn_evd);
	td_add_object(o, s->cr_evd);
	td_add_object(o, s->pz);
	list_for_each_entry(buf, &s->bufs, link)
		td_add_object(o, buf->lmr);
}

/* Free all objects of a side, then close its IA gracefully. */
void td_free_side(struct kd_side *s, struct objects *o)
{
	side_objects(s, o);
	free_shuffled(s->test, o);
	KD_ASSERT_OK(s->test, dat_ia_close(s->ia, DAT_CLOSE_GRACEFUL_FLAG));
	s->ia = NULL;
}
