// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs: their text, and how their patches change a message, see fuzz.h.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/stringhash.h>
#include "fuzz.h"

/* ---- Messages ------------------------------------------------------------ */

static void fuzz_add(u8 *to, const struct fuzz_patch *patch, unsigned int len, bool big)
{
	unsigned int carry = 0, i, at;

	for (i = 0; i < len; i++) {
		at = big ? len - 1 - i : i;
		carry += to[at] + patch->bytes[at];
		to[at] = carry;
		carry >>= 8;
	}
}

/**
 * fuzz_apply() - change a message as the input wants it
 * @target: the target
 * @message: message of the input
 * @data: valid message of that kind, with zeroes behind it
 * @len: its length, bytes
 * @max: room at @data, bytes
 *
 * Return: the length of the message to send.
 */
size_t fuzz_apply(const struct fuzz_target *target, const struct fuzz_message *message,
		  void *data, size_t len, size_t max)
{
	const struct fuzz_patch *patch = message->patch;
	unsigned int i, j, n;
	u8 *to;

	len = clamp_t(long, (long)len + message->more, 0, max);
	for (i = 0; i < message->patches; i++, patch++) {
		if (patch->at >= len)
			continue;
		to = data + patch->at;
		if (patch->op == '*') {
			memset(to, patch->bytes[0],
			       min_t(size_t, patch->bytes[1], len - patch->at));
			continue;
		}
		n = min_t(size_t, patch->len, len - patch->at);
		if (patch->op == '+')
			fuzz_add(to, patch, n, target->big_endian);
		for (j = 0; patch->op != '+' && j < n; j++)
			to[j] = patch->op == '^' ? to[j] ^ patch->bytes[j] :
						   patch->bytes[j];
	}
	return len;
}
EXPORT_SYMBOL_GPL(fuzz_apply);

/* Say what the target did with the next message of the input: one word. */
void fuzz_say(struct fuzz_run *run, const char *format, ...)
{
	char *word = run->answer + run->len + !!run->len;
	size_t room = run->answer + sizeof(run->answer) - word;
	va_list args;

	if (run->said == ARRAY_SIZE(run->words) || room < 2)
		return;
	if (run->len)
		run->answer[run->len++] = ' ';
	va_start(args, format);
	run->len += vscnprintf(word, room, format, args);
	va_end(args);
	run->words[run->said++] = full_name_hash(NULL, word, strlen(word));
}
EXPORT_SYMBOL_GPL(fuzz_say);

/* Return whether the corpus has @word for the message that is @ahead of the next answer. */
bool fuzz_expects(const struct fuzz_run *run, unsigned int ahead, const char *word)
{
	const char *at = run->expect;
	unsigned int skip = run->said + ahead;
	size_t len;

	if (!at)
		return false;
	for (; skip; skip--) {
		at = strchr(at, ' ');
		if (!at++)
			return false;
	}
	len = strcspn(at, " ");
	return len == strlen(word) && !strncmp(at, word, len);
}
EXPORT_SYMBOL_GPL(fuzz_expects);

/* ---- To text ------------------------------------------------------------- */

void fuzz_print(const struct fuzz_target *target, const struct fuzz_input *input,
		char text[FUZZ_TEXT])
{
	const struct fuzz_message *message = input->message;
	const struct fuzz_patch *patch;
	unsigned int i, j;
	size_t n = 0;

	text[0] = '\0';
	for (i = 0; i < input->n; i++, message++) {
		n += scnprintf(text + n, FUZZ_TEXT - n, "%s%s%s", i ? " " : "",
			       message->joined ? "&" : "",
			       target->kinds[message->kind].name);
		if (message->more)
			n += scnprintf(text + n, FUZZ_TEXT - n, "%+d", message->more);
		for (j = 0; j < message->patches; j++) {
			patch = &message->patch[j];
			n += scnprintf(text + n, FUZZ_TEXT - n, "@%u%c%*phN", patch->at,
				       patch->op, patch->len, patch->bytes);
		}
	}
}

/* ---- From text ----------------------------------------------------------- */

/* Parse the two digits at @at. */
static bool fuzz_parse_byte(const char *at, u8 *byte)
{
	const char digits[] = { at[0], at[1], '\0' };

	return !kstrtou8(digits, 16, byte);
}

/* Parse the patch at *@text, behind its "@". */
static bool fuzz_parse_patch(const char **text, struct fuzz_patch *patch)
{
	const char *at = *text;
	unsigned int value = 0;

	while (isdigit(*at))
		value = value * 10 + *at++ - '0';
	patch->at = value;
	patch->op = *at++;
	if (value > U16_MAX || !patch->op || !strchr("=+^*", patch->op))
		return false;
	for (patch->len = 0; isxdigit(at[0]) && isxdigit(at[1]); at += 2) {
		if (patch->len == FUZZ_BYTES ||
		    !fuzz_parse_byte(at, &patch->bytes[patch->len++]))
			return false;
	}
	*text = at;
	return patch->len;
}

static bool fuzz_parse_kind(const struct fuzz_target *target, const char **text,
			    struct fuzz_message *message)
{
	size_t len = strcspn(*text, " +-@");
	unsigned int i;

	for (i = 0; i < target->n_kinds; i++) {
		if (strlen(target->kinds[i].name) == len &&
		    !strncmp(target->kinds[i].name, *text, len)) {
			message->kind = i;
			*text += len;
			return true;
		}
	}
	return false;
}

/* Parse the number with a sign at *@text. */
static bool fuzz_parse_more(const char **text, s16 *more)
{
	size_t len = 1 + strspn(*text + 1, "0123456789");
	char number[8];

	if (len >= sizeof(number))
		return false;
	memcpy(number, *text, len);
	number[len] = '\0';
	*text += len;
	return !kstrtos16(number, 10, more);
}

static bool fuzz_parse_message(const struct fuzz_target *target, const char **text,
			       struct fuzz_message *message)
{
	const char *at = *text;

	memset(message, 0, sizeof(*message));
	message->joined = *at == '&';
	at += message->joined;
	if (!fuzz_parse_kind(target, &at, message))
		return false;
	if ((*at == '+' || *at == '-') && !fuzz_parse_more(&at, &message->more))
		return false;
	while (*at == '@') {
		at++;
		if (message->patches == FUZZ_PATCHES ||
		    !fuzz_parse_patch(&at, &message->patch[message->patches++]))
			return false;
	}
	*text = at;
	return *at == ' ' || !*at;
}

/* Parse @text; *@answer becomes what stands behind the arrow, or NULL. */
bool fuzz_parse(const struct fuzz_target *target, const char *text,
		struct fuzz_input *input, const char **answer)
{
	*answer = NULL;
	for (input->n = 0; *text; text += *text == ' ') {
		if (!strncmp(text, "=> ", 3)) {
			*answer = text + 3;
			break;
		}
		if (input->n == FUZZ_MESSAGES ||
		    !fuzz_parse_message(target, &text, &input->message[input->n++]))
			return false;
	}
	return input->n;
}
