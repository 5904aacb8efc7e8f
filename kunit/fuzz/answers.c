// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Messages that a peer sends by name, and may have several under way: their answers, which come
 * in any order, and the end of the connection, see fuzz.h.
 */
#include <linux/module.h>
#include "fixture.h"
#include "fuzz.h"

/* Note the message that was received with what it answers. */
static void take_answer(struct fuzz_answers *a, unsigned int n)
{
	char word[sizeof(a->sent[0].word)];
	u32 id = a->read(word, sizeof(word));
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (a->sent[i].id != id || a->sent[i].word[0])
			continue;
		strscpy(a->sent[i].word, word, sizeof(word));
		break;
	}
}

static bool all_answered(const struct fuzz_answers *a, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (!a->sent[i].word[0])
			return false;
	return true;
}

/* Does the corpus have an answer, or an end, that has not come yet? */
static bool is_awaited(const struct fuzz_run *run, const struct fuzz_answers *a, unsigned int n)
{
	unsigned int i;

	for (i = 0; run->expect && i < n; i++)
		if (fuzz_expects(run, i, "e") ||
		    (!a->sent[i].word[0] && !fuzz_expects(run, i, "-")))
			return true;
	return false;
}

/* Can the next event be had, or is the connection at its end? */
static bool stirs(void *data)
{
	struct fuzz_answers *a = data;
	bool end = fuzz_has_ended(a->side);

	if (a->receive())
		return true;
	a->ended = end;
	return a->ended;
}

/*
 * Say what became of the message at @i. The target may answer and end the connection: what is
 * seen of this depends on who runs first, and the corpus has one of the two.
 */
static void say_answer(struct fuzz_run *run, const struct fuzz_answers *a, unsigned int i)
{
	const char *word = a->sent[i].word;

	if (a->ended && !(word[0] && fuzz_expects(run, 0, word)))
		word = "e";
	fuzz_say(run, "%s", word[0] ? word : "-");
}

/* The message at @i of those that are sent at once has this @id. */
void fuzz_sends(struct fuzz_answers *a, unsigned int i, u32 id)
{
	a->sent[i].id = id;
	a->sent[i].word[0] = '\0';
}
EXPORT_SYMBOL_GPL(fuzz_sends);

/*
 * Take the answers to the @n messages that were sent, and say them. What the corpus has is waited
 * for as long as need be; other answers, as in a search, for a moment.
 */
void fuzz_take_answers(struct fuzz_run *run, struct fuzz_answers *a, unsigned int n)
{
	unsigned int i;

	while (!a->ended) {
		bool awaited = is_awaited(run, a, n);

		if (!awaited && all_answered(a, n))
			break;
		if (!kd_wait_until(stirs, a, awaited ? KD_TIMEOUT_MS : KD_QUIET_MS))
			break;
		if (!a->ended)
			take_answer(a, n);
	}
	for (i = 0; i < n; i++)
		say_answer(run, a, i);
}
EXPORT_SYMBOL_GPL(fuzz_take_answers);
