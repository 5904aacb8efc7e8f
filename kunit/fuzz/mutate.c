// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Mutations of inputs, see fuzz.h.
 */
#include <linux/kernel.h>
#include <linux/string.h>
#include "fuzz.h"

static u32 fuzz_random(struct rnd_state *rnd, u32 below)
{
	return prandom_u32_state(rnd) % below;
}

unsigned int fuzz_kind_len(const struct fuzz_kind *kind)
{
	unsigned int len = 0;
	const char *field;

	for (field = kind->fields; *field; field++)
		len += *field;
	return len;
}

/* Return the number of the field that byte @at of a message lies in. */
unsigned int fuzz_field_at(const struct fuzz_kind *kind, unsigned int at)
{
	unsigned int len = 0, i;

	for (i = 0; kind->fields[i]; i++) {
		len += kind->fields[i];
		if (at < len)
			break;
	}
	return i;
}

/* ---- One patch ----------------------------------------------------------- */

static const u64 interesting[] = {
	0, 1, 2, 3, 7, 8, 9, 63, 64, 127, 128, 255, 256, 511, 512, 513, 1024, 4095, 4096,
	4097, 4608, 0x7fff, 0x8000, 0xffff, 0x10000, 0x1fe00, 0x20000, 0x20200, 0xff000,
	0xffe00, 0x100000, 0x100200, 0x7fffffff, 0x80000000, 0xfffffe00, 0xffffffff,
	0x100000000, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffe00,
	0xfffffffffffffff8, 0xffffffffffffffff,
};

static void fuzz_number(struct fuzz_patch *patch, u64 value, bool big)
{
	unsigned int i;

	for (i = 0; i < patch->len; i++, value >>= 8)
		patch->bytes[big ? patch->len - 1 - i : i] = value;
}

/* Make a patch of one field, or of part of a field that is no number. */
static void fuzz_patch(const struct fuzz_target *target, struct rnd_state *rnd,
		       const struct fuzz_kind *kind, struct fuzz_patch *patch)
{
	unsigned int fields = strlen(kind->fields);
	unsigned int field = fuzz_random(rnd, fields), at = 0, i;
	u64 value;

	for (i = 0; i < field; i++)
		at += kind->fields[i];
	patch->len = kind->fields[field];
	if (patch->len > FUZZ_BYTES && !fuzz_random(rnd, 4)) {
		*patch = (struct fuzz_patch) {
			.at = at, .op = '*', .len = 2,
			.bytes = { 1 + fuzz_random(rnd, 255), patch->len },
		};
		return;
	}
	if (patch->len > FUZZ_BYTES) {
		at += fuzz_random(rnd, patch->len);
		patch->len = 1 << fuzz_random(rnd, 4);
	}
	patch->at = at;
	value = interesting[fuzz_random(rnd, ARRAY_SIZE(interesting))];
	switch (fuzz_random(rnd, 5)) {
	case 0:
		patch->op = '^';
		value = 1ULL << fuzz_random(rnd, patch->len * 8);
		break;
	case 1:
		patch->op = '+';
		value = fuzz_random(rnd, 2) ? 1 + fuzz_random(rnd, 16) :
					      -1ULL - fuzz_random(rnd, 16);
		break;
	case 2:
		patch->op = '=';
		value = fuzz_random(rnd, 16);
		break;
	case 3:
		patch->op = '=';
		break;
	default:
		patch->op = '=';
		prandom_bytes_state(rnd, patch->bytes, patch->len);
		return;
	}
	fuzz_number(patch, value, target->big_endian);
}

/* ---- Messages ------------------------------------------------------------ */

static void fuzz_change(const struct fuzz_target *target, struct rnd_state *rnd,
			struct fuzz_message *message)
{
	const struct fuzz_kind *kind = &target->kinds[message->kind];
	static const s16 lengths[] = { -64, -63, -1, 1, 4, 28, 64, 512, 4096, 4097 };
	unsigned int i;

	switch (fuzz_random(rnd, 8)) {
	case 0:
		message->more = fuzz_random(rnd, 2) ?
				lengths[fuzz_random(rnd, ARRAY_SIZE(lengths))] :
				(int)fuzz_random(rnd, 2 * fuzz_kind_len(kind)) -
				(int)fuzz_kind_len(kind);
		break;
	case 1:
		message->more = 0;
		break;
	case 2:
		if (message->patches)
			message->patches--;
		break;
	case 3:
		message->joined = !message->joined && !kind->alone;
		break;
	default:
		i = message->patches < FUZZ_PATCHES && fuzz_random(rnd, 3) ?
		    message->patches++ : fuzz_random(rnd, max_t(u8, message->patches, 1));
		message->patches = max_t(u8, message->patches, 1);
		fuzz_patch(target, rnd, kind, &message->patch[i]);
	}
}

static void fuzz_insert(const struct fuzz_target *target, struct rnd_state *rnd,
			struct fuzz_input *input, const struct fuzz_message *copy)
{
	unsigned int at = fuzz_random(rnd, input->n + 1);
	struct fuzz_message *message = &input->message[at];

	if (input->n == FUZZ_MESSAGES)
		return;
	memmove(message + 1, message, (input->n++ - at) * sizeof(*message));
	if (copy) {
		*message = *copy;
		return;
	}
	memset(message, 0, sizeof(*message));
	message->kind = fuzz_random(rnd, target->n_kinds);
	message->joined = at && !target->kinds[message->kind].alone &&
			  !fuzz_random(rnd, 4);
}

static void fuzz_erase(struct rnd_state *rnd, struct fuzz_input *input)
{
	unsigned int at = fuzz_random(rnd, input->n);
	struct fuzz_message *message = &input->message[at];

	if (input->n > 1)
		memmove(message, message + 1, (--input->n - at) * sizeof(*message));
}

/* Replace the end of @input by that of @other. */
static void fuzz_splice(struct rnd_state *rnd, struct fuzz_input *input,
			const struct fuzz_input *other)
{
	unsigned int keep = 1 + fuzz_random(rnd, input->n);
	unsigned int from = fuzz_random(rnd, other->n);
	unsigned int n = min_t(unsigned int, other->n - from, FUZZ_MESSAGES - keep);

	memcpy(&input->message[keep], &other->message[from], n * sizeof(other->message[0]));
	input->n = keep + n;
}

/* Change @input at random; @other is another input of the corpus. */
void fuzz_mutate(const struct fuzz_target *target, struct rnd_state *rnd,
		 struct fuzz_input *input, const struct fuzz_input *other)
{
	unsigned int i, n = 1 + fuzz_random(rnd, 4);
	struct fuzz_message copy;

	for (i = 0; i < n; i++) {
		switch (fuzz_random(rnd, 10)) {
		case 0:
			fuzz_splice(rnd, input, other);
			break;
		case 1:
			fuzz_erase(rnd, input);
			break;
		case 2:
			copy = input->message[fuzz_random(rnd, input->n)];
			fuzz_insert(target, rnd, input, &copy);
			break;
		case 3:
			fuzz_insert(target, rnd, input, NULL);
			break;
		default:
			fuzz_change(target, rnd,
				    &input->message[fuzz_random(rnd, input->n)]);
		}
	}
	input->message[0].joined = false;
}
