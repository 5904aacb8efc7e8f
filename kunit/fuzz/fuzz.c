// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_fuzz.ko: replay a corpus, or search for more of it, see fuzz.h.
 *
 * What a search finds goes to the kernel's log, from where scripts/fuzz takes it:
 *
 *	fuzz <target>: try <input>	it is about to be run: the last one before a crash
 *	fuzz <target>: new <input>	a new signal
 *	fuzz <target>: keep <input>	in the end: of all, as few as have all signals
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/stringhash.h>
#include <linux/vmalloc.h>
#include "fixture.h"
#include "fuzz.h"
#include "param.h"
#include "shell.h"

KD_PARAM(ms, uint, 0, "search for so many milliseconds; 0: only replay");
KD_PARAM(seed, uint, 1, "of a search");
KD_PARAM(forget, bool, false, "begin with the first input of the corpus only");
KD_PARAM(without, uint, 0, "check that \"make fuzz-bounds\" has the modules leave out");

#define POOL		2048		/* inputs */
#define CHECK_EVERY	16		/* inputs */
#define REPLAY_TRIES	3
#define MINIMISE	200		/* runs to make an input shorter */

/*
 * struct fuzz_entry - an input of the pool
 * @signals: bitmap of what it gives each time
 */
struct fuzz_entry {
	struct fuzz_input input;
	char answer[FUZZ_TEXT];
	DECLARE_BITMAP(signals, FUZZ_SIGNALS);
};

/*
 * struct fuzz - a search
 * @pool: inputs, @n of them
 * @ever: signals of the pool
 * @got: signals of the run at hand
 * @runs: inputs run so far
 * @nothing: hash of "-", which is no signal
 */
struct fuzz {
	struct kunit *test;
	const struct fuzz_target *target;
	struct rnd_state rnd;
	struct fuzz_entry *pool[POOL];
	unsigned int n;
	unsigned long runs;
	u32 nothing;
	DECLARE_BITMAP(ever, FUZZ_SIGNALS);
	DECLARE_BITMAP(got, FUZZ_SIGNALS);
	DECLARE_BITMAP(more, FUZZ_SIGNALS);
	struct fuzz_input input;
	struct fuzz_run run;
	char text[FUZZ_TEXT];
};

/* ---- Replay -------------------------------------------------------------- */

static void fuzz_run(struct fuzz_run *run, struct kunit *test,
		     const struct fuzz_target *target, const struct fuzz_input *input,
		     const char *expect)
{
	run->test = test;
	run->input = input;
	run->expect = expect;
	run->said = 0;
	run->len = 0;
	run->answer[0] = '\0';
	target->run(run);
}

/* End the connection of @side, free its Endpoint, and forget the events of both. */
void fuzz_hang_up(struct kd_side *side)
{
	if (!side->ep)
		return;
	dat_ep_disconnect(side->ep, DAT_CLOSE_ABRUPT_FLAG);
	KD_EXPECT_OK(side->test, dat_ep_free(side->ep));
	side->ep = NULL;
	kd_drain(side->recv_evd);
	kd_drain(side->req_evd);
	kd_drain(side->conn_evd);
}
EXPORT_SYMBOL_GPL(fuzz_hang_up);

/*
 * Return whether the connection of @side is at its end, and all that was received is in the
 * queue. Who looks there has to ask this first: the last message may have come in between.
 */
bool fuzz_has_ended(const struct kd_side *side)
{
	DAT_BOOLEAN recv_idle;
	DAT_EP_STATE state;

	if (dat_ep_get_status(side->ep, &state, &recv_idle, NULL) != DAT_SUCCESS)
		return true;
	return state == DAT_EP_STATE_DISCONNECTED && recv_idle;
}
EXPORT_SYMBOL_GPL(fuzz_has_ended);

/* A simulated adapter has no packets that would be lost, and is the fastest. */
KD_GENERATOR(fuzz_gen_ia)
{
	return prev ? NULL : KD_GENERATE(kd_gen_simulated_ia, prev);
}
EXPORT_SYMBOL_GPL(fuzz_gen_ia);

/* @module was loaded: tell it which check to leave out. */
void fuzz_loaded(struct kunit *test, const char *module)
{
	char command[96];

	if (!without)
		return;
	snprintf(command, sizeof(command), "echo %u >/sys/module/%s/parameters/without",
		 without, module);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
}
EXPORT_SYMBOL_GPL(fuzz_loaded);

/*
 * Run an input of the corpus. On a machine that stands still an answer may come too late, so
 * one that differs is asked for again.
 */
static void fuzz_replay_one(struct kunit *test, const struct fuzz_target *target,
			    struct fuzz_input *input, struct fuzz_run *run,
			    const char *text)
{
	unsigned int tries = REPLAY_TRIES;
	const char *answer;

	KUNIT_ASSERT_TRUE_MSG(test, fuzz_parse(target, text, input, &answer),
			      "the corpus has \"%s\"", text);
	do {
		fuzz_run(run, test, target, input, answer);
	} while (strcmp(run->answer, answer ?: "") && --tries);
	if (tries != REPLAY_TRIES)
		kunit_info(test, "%s: %u times another answer, the last one %s", text,
			   REPLAY_TRIES - tries, run->answer);
	KUNIT_EXPECT_STREQ_MSG(test, run->answer, answer ?: "", "%s", text);
}

/* Run each input of the corpus; the target answers as the corpus says. */
void fuzz_replay(struct kunit *test, const struct fuzz_target *target)
{
	struct fuzz_input *input = kunit_kzalloc(test, sizeof(*input), GFP_KERNEL);
	struct fuzz_run *run = kunit_kzalloc(test, sizeof(*run), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, input);
	KUNIT_ASSERT_NOT_NULL(test, run);
	if (target->set_up)
		target->set_up(test);
	for (i = 0; i < target->n_corpus; i++) {
		fuzz_replay_one(test, target, input, run, target->corpus[i]);
		if (i % CHECK_EVERY == CHECK_EVERY - 1)
			target->check(test);
	}
	target->check(test);
}
EXPORT_SYMBOL_GPL(fuzz_replay);

/* ---- Signals ------------------------------------------------------------- */

/*
 * Return the signal that message @i was answered as it was: for each field that a message of
 * its kind has, an answer that it has not had yet is as good as a new edge.
 */
static u32 fuzz_answer_signal(struct fuzz *f, unsigned int i)
{
	const struct fuzz_message *message = &f->run.input->message[i];
	const struct fuzz_kind *kind = &f->target->kinds[message->kind];
	u32 field = message->patches ?
		    fuzz_field_at(kind, message->patch[0].at) : 99 + !!message->more;

	return FUZZ_EDGES + hash_32(f->run.words[i] ^ message->kind * 0x9e3779b1U ^
				    field * 0x85ebca6bU, 13) % FUZZ_ANSWERS;
}

/* Run @input, and leave its signals in f->got. */
static void fuzz_once(struct fuzz *f, const struct fuzz_input *input)
{
	unsigned int i;

	if (!(++f->runs % CHECK_EVERY))
		f->target->check(f->test);
	fuzz_cover_clear();
	fuzz_run(&f->run, f->test, f->target, input, NULL);
	bitmap_zero(f->got, FUZZ_SIGNALS);
	for (i = 0; i < FUZZ_EDGES; i++)
		if (fuzz_cover_hit(i))
			__set_bit(i, f->got);
	for (i = 0; i < f->run.said && i < input->n; i++)
		if (f->run.words[i] != f->nothing)
			__set_bit(fuzz_answer_signal(f, i), f->got);
}

/* The same, and return whether all signals of @wanted were there. */
static bool fuzz_gives(struct fuzz *f, const struct fuzz_input *input,
		       const unsigned long *wanted)
{
	fuzz_once(f, input);
	return bitmap_subset(wanted, f->got, FUZZ_SIGNALS);
}

/* ---- Shorter inputs ------------------------------------------------------ */

static bool fuzz_drop_message(struct fuzz_input *input, unsigned int i)
{
	if (input->n == 1)
		return false;
	memmove(&input->message[i], &input->message[i + 1],
		(--input->n - i) * sizeof(input->message[0]));
	input->message[0].joined = false;
	return true;
}

static bool fuzz_drop_patch(struct fuzz_message *message, unsigned int i)
{
	if (i >= message->patches) {
		if (i > message->patches || !message->more)
			return false;
		message->more = 0;
		return true;
	}
	memmove(&message->patch[i], &message->patch[i + 1],
		(--message->patches - i) * sizeof(message->patch[0]));
	return true;
}

/* Drop what @input does not need to give all signals of @wanted. */
static void fuzz_shorten(struct fuzz *f, struct fuzz_input *input,
			 const unsigned long *wanted)
{
	struct fuzz_input *shorter = kmalloc(sizeof(*shorter), GFP_KERNEL);
	unsigned int budget = MINIMISE;
	int i, j;

	if (!shorter)
		return;
	for (i = input->n - 1; i >= 0 && budget; i--, budget--) {
		*shorter = *input;
		if (fuzz_drop_message(shorter, i) && fuzz_gives(f, shorter, wanted))
			*input = *shorter;
	}
	for (i = input->n - 1; i >= 0 && budget; i--) {
		for (j = input->message[i].patches; j >= 0 && budget; j--, budget--) {
			*shorter = *input;
			if (fuzz_drop_patch(&shorter->message[i], j) &&
			    fuzz_gives(f, shorter, wanted))
				*input = *shorter;
		}
	}
	kfree(shorter);
}

/* ---- The pool ------------------------------------------------------------ */

static void fuzz_log(struct fuzz *f, const char *what, const struct fuzz_input *input,
		     const char *answer)
{
	fuzz_print(f->target, input, f->text);
	pr_info("fuzz %s: %s %s => %s\n", f->target->name, what, f->text, answer);
}

/*
 * Add @input if it gives signals that are new, twice, with the same answer. @known: it is of
 * the corpus.
 */
static void fuzz_offer(struct fuzz *f, const struct fuzz_input *input, bool known)
{
	struct fuzz_entry *entry;

	fuzz_once(f, input);
	if (bitmap_subset(f->got, f->ever, FUZZ_SIGNALS) && !known)
		return;
	if (f->n == POOL)
		return;
	entry = vzalloc(sizeof(*entry));
	if (!entry)
		return;
	entry->input = *input;
	bitmap_copy(entry->signals, f->got, FUZZ_SIGNALS);
	fuzz_once(f, input);
	bitmap_and(entry->signals, entry->signals, f->got, FUZZ_SIGNALS);
	bitmap_andnot(f->more, entry->signals, f->ever, FUZZ_SIGNALS);
	if (bitmap_empty(f->more, FUZZ_SIGNALS) && !known) {
		vfree(entry);
		return;
	}
	if (!known)
		fuzz_shorten(f, &entry->input, f->more);
	fuzz_once(f, &entry->input);
	strscpy(entry->answer, f->run.answer, sizeof(entry->answer));
	bitmap_copy(entry->signals, f->got, FUZZ_SIGNALS);
	fuzz_once(f, &entry->input);
	bitmap_and(entry->signals, entry->signals, f->got, FUZZ_SIGNALS);
	/* The signals of an answer that changes from run to run are not looked for again. */
	bitmap_or(f->ever, f->ever, f->more, FUZZ_SIGNALS);
	if (strcmp(entry->answer, f->run.answer)) {
		fuzz_log(f, "unstable", &entry->input, f->run.answer);
		vfree(entry);
		return;
	}
	bitmap_or(f->ever, f->ever, entry->signals, FUZZ_SIGNALS);
	f->pool[f->n++] = entry;
	if (!known)
		fuzz_log(f, "new", &entry->input, entry->answer);
}

/* Tell as few inputs of the pool as give all signals that it gives: the greedy choice. */
static void fuzz_keep(struct fuzz *f)
{
	unsigned int i, best = 0, gain, most;

	bitmap_zero(f->ever, FUZZ_SIGNALS);
	do {
		for (i = 0, most = 0; i < f->n; i++) {
			bitmap_andnot(f->more, f->pool[i]->signals, f->ever, FUZZ_SIGNALS);
			gain = bitmap_weight(f->more, FUZZ_SIGNALS);
			if (gain > most) {
				most = gain;
				best = i;
			}
		}
		if (!most)
			break;
		bitmap_or(f->ever, f->ever, f->pool[best]->signals, FUZZ_SIGNALS);
		fuzz_log(f, "keep", &f->pool[best]->input, f->pool[best]->answer);
	} while (most);
}

static void fuzz_end(void *data)
{
	struct fuzz *f = data;

	fuzz_cover_stop();
	while (f->n)
		vfree(f->pool[--f->n]);
	vfree(f);
}

/* Take the corpus into the pool. */
static void fuzz_load(struct fuzz *f)
{
	const struct fuzz_target *target = f->target;
	unsigned int i, n = forget ? 1 : target->n_corpus;
	const char *answer;

	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_TRUE_MSG(f->test,
				      fuzz_parse(target, target->corpus[i], &f->input, &answer),
				      "the corpus has \"%s\"", target->corpus[i]);
		fuzz_offer(f, &f->input, true);
		if (!i)
			fuzz_cover_tell(target->name, "first input");
	}
	KUNIT_ASSERT_GT(f->test, f->n, 0U);
	fuzz_cover_tell(target->name, "corpus");
}

/* Mutate the corpus for @ms. */
void fuzz_search(struct kunit *test, const struct fuzz_target *target)
{
	unsigned long end = jiffies + msecs_to_jiffies(ms);
	struct fuzz *f;
	const struct fuzz_entry *other;

	if (!ms)
		kunit_skip(test, "kdapl_fuzz.ms is 0");
	if (target->set_up)
		target->set_up(test);
	f = vzalloc(sizeof(*f));
	KUNIT_ASSERT_NOT_NULL(test, f);
	f->test = test;
	f->target = target;
	f->nothing = full_name_hash(NULL, "-", 1);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fuzz_end, f));
	if (fuzz_cover_start(target->modules))
		pr_info("fuzz %s: the modules tell no edges\n", target->name);
	prandom_seed_state(&f->rnd, seed);
	fuzz_load(f);
	while (time_before(jiffies, end)) {
		f->input = f->pool[prandom_u32_state(&f->rnd) % f->n]->input;
		other = f->pool[prandom_u32_state(&f->rnd) % f->n];
		fuzz_mutate(target, &f->rnd, &f->input, &other->input);
		fuzz_print(target, &f->input, f->text);
		pr_info("fuzz %s: try %s\n", target->name, f->text);
		fuzz_offer(f, &f->input, false);
	}
	target->check(test);
	fuzz_cover_tell(target->name, "search");
	pr_info("fuzz %s: %lu runs, %u inputs\n", target->name, f->runs, f->n);
	fuzz_keep(f);
}
EXPORT_SYMBOL_GPL(fuzz_search);

MODULE_DESCRIPTION("KUnit suites: inputs from outside");
MODULE_LICENSE("Dual BSD/GPL");
