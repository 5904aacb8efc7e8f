/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kdapl_fuzz.ko: inputs for those parts of our modules that read what comes from outside.
 *
 * An input is a list of messages. Each message has a kind, and the driver of a target makes
 * a valid message of that kind, with keys, tags, numbers and proofs as they have to be then
 * and there. Patches of the input change a few bytes of that, and its length. As text, which
 * is how the corpus and the kernel's log have inputs:
 *
 *	hello_all attach read+3@16=00020000 &write@6^80 => w 0 e
 *
 * is a hello and an ATTACH as they should be, then one Send of two requests: a READ that is
 * 3 bytes longer than it should be and whose bytes from 16 on are replaced, and a WRITE of
 * which one bit is flipped. "@16+0100" adds to a number, in the byte order of the protocol;
 * "@64*4110" fills 16 bytes with 41.
 * Behind the arrow stands what the target did: a word for each message, in words of the
 * driver.
 *
 * fuzz_replay() runs the corpus and expects the words that it has. fuzz_search() mutates it and
 * keeps what reaches a new edge, or makes a target give another answer.
 */
#ifndef KDAPL_KUNIT_FUZZ_H
#define KDAPL_KUNIT_FUZZ_H

#include <linux/prandom.h>
#include "fixture.h"

#define FUZZ_MESSAGES	12	/* of an input */
#define FUZZ_PATCHES	4	/* of a message */
#define FUZZ_BYTES	8	/* of a patch */
#define FUZZ_TEXT	1000	/* longest input, and longest answer, as text */

struct fuzz_patch {
	u16 at;
	char op;			/* = replaces, + adds, ^ flips, * fills */
	u8 len;
	u8 bytes[FUZZ_BYTES];
};

/*
 * struct fuzz_message - a message of an input
 * @kind: index into the kinds of the target
 * @joined: it goes with the message before it
 * @more: bytes that the message is longer than its kind, or shorter
 * @patches: entries of @patch
 */
struct fuzz_message {
	u8 kind;
	bool joined;
	s16 more;
	u8 patches;
	struct fuzz_patch patch[FUZZ_PATCHES];
};

struct fuzz_input {
	unsigned int n;
	struct fuzz_message message[FUZZ_MESSAGES];
};

/*
 * struct fuzz_kind - a kind of message
 * @name: in texts
 * @fields: length of each field, in bytes; mutations keep to their bounds
 * @alone: it cannot be joined to another message
 */
struct fuzz_kind {
	const char *name;
	const char *fields;
	bool alone;
};

/*
 * struct fuzz_run - an input that is run
 * @expect: what the corpus has for @answer; NULL in a search
 * @answer: what fuzz_say() was given, a word for each message
 * @said: words of @answer; there may be one for the end as well
 * @words: hash of each word
 */
struct fuzz_run {
	struct kunit *test;
	const struct fuzz_input *input;
	const char *expect;
	unsigned int said;
	size_t len;
	char answer[FUZZ_TEXT];
	u32 words[FUZZ_MESSAGES + 1];
};

/*
 * struct fuzz_target - what is fed with inputs
 * @name: in texts
 * @modules: modules whose edges count, up to a NULL
 * @kinds: kinds of messages, @n_kinds of them
 * @big_endian: byte order of numbers
 * @set_up: makes what a case needs; or NULL
 * @run: run an input, and say what the target did
 * @check: expect that the target serves others, and has all that it had
 * @corpus: inputs as text, @n_corpus of them
 */
struct fuzz_target {
	const char *name;
	const char * const *modules;
	const struct fuzz_kind *kinds;
	unsigned int n_kinds;
	bool big_endian;
	void (*set_up)(struct kunit *test);
	void (*run)(struct fuzz_run *run);
	void (*check)(struct kunit *test);
	const char * const *corpus;
	unsigned int n_corpus;
};

/* Cases of a suite, and what their beds share: fuzz.c. */
void fuzz_hang_up(struct kd_side *side);
bool fuzz_has_ended(const struct kd_side *side);
KD_GENERATOR(fuzz_gen_ia);
void fuzz_loaded(struct kunit *test, const char *module);
void fuzz_replay(struct kunit *test, const struct fuzz_target *target);
void fuzz_search(struct kunit *test, const struct fuzz_target *target);

/*
 * FUZZ_TARGET() - the target of a file, of its @modules, @kinds and @corpus; and its cases
 * @prefix: name of the target; the cases are prefix_corpus() and prefix_search()
 * @...: other members of struct fuzz_target
 */
#define FUZZ_TARGET(prefix, ...)					\
static const struct fuzz_target target = {				\
	.name = #prefix,						\
	.modules = modules,						\
	.kinds = kinds,							\
	.n_kinds = KINDS,						\
	.corpus = corpus,						\
	.n_corpus = ARRAY_SIZE(corpus),					\
	__VA_ARGS__							\
};									\
									\
static void prefix##_corpus(struct kunit *test)				\
{									\
	fuzz_replay(test, &target);					\
}									\
									\
static void prefix##_search(struct kunit *test)				\
{									\
	fuzz_search(test, &target);					\
}

/*
 * struct fuzz_answers - messages under way, for targets whose answers name what they answer
 * @side: the peer
 * @receive: receives a message, if one is there
 * @read: writes a word for that message, and returns the name of the one that it answers
 * @ended: the connection has
 * @sent: names of the messages that were sent at once, and what answered them
 */
struct fuzz_answers {
	const struct kd_side *side;
	bool (*receive)(void);
	u32 (*read)(char *word, size_t room);
	bool ended;
	struct {
		u32 id;
		char word[16];
	} sent[FUZZ_MESSAGES];
};

/* Answers: answers.c. */
void fuzz_sends(struct fuzz_answers *a, unsigned int i, u32 id);
void fuzz_take_answers(struct fuzz_run *run, struct fuzz_answers *a, unsigned int n);

/* For drivers of targets: input.c. */
size_t fuzz_apply(const struct fuzz_target *target, const struct fuzz_message *message,
		  void *data, size_t len, size_t max);
__printf(2, 3) void fuzz_say(struct fuzz_run *run, const char *format, ...);
bool fuzz_expects(const struct fuzz_run *run, unsigned int ahead, const char *word);

/* Text: input.c. */
bool fuzz_parse(const struct fuzz_target *target, const char *text,
		struct fuzz_input *input, const char **answer);
void fuzz_print(const struct fuzz_target *target, const struct fuzz_input *input,
		char text[FUZZ_TEXT]);

/* Mutations: mutate.c. */
void fuzz_mutate(const struct fuzz_target *target, struct rnd_state *rnd,
		 struct fuzz_input *input, const struct fuzz_input *other);
unsigned int fuzz_kind_len(const struct fuzz_kind *kind);
unsigned int fuzz_field_at(const struct fuzz_kind *kind, unsigned int at);

/* Edges: cover.c. */
#define FUZZ_EDGES	BIT(16)
#define FUZZ_ANSWERS	BIT(13)
#define FUZZ_SIGNALS	(FUZZ_EDGES + FUZZ_ANSWERS)	/* that an input may give */

int fuzz_cover_start(const char * const *modules);
void fuzz_cover_stop(void);
void fuzz_cover_clear(void);
bool fuzz_cover_hit(unsigned int signal);
void fuzz_cover_tell(const char *target, const char *when);

#endif /* KDAPL_KUNIT_FUZZ_H */
