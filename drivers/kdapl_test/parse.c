// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The words of a command: its name, and KEY=VALUE. What is wrong gets a sentence.
 */
#include <linux/kernel.h>
#include <linux/net.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include "kdapl_test.h"

static const struct {
	const char *name;
	enum kt_kind kind;
} kt_names[] = {
	{ "list" }, { "limits" }, { "functions" }, { "server" }, { "quit" },
	{ "lat", KT_LAT },
	{ "stream", KT_STREAM },
	{ "conns", KT_CONNS },
	{ "trans", KT_TRANS },
};

static const char * const kt_op_names[] = {
	[KT_SEND] = "send",
	[KT_WRITE] = "write",
	[KT_READ] = "read",
};

const char *kt_kind_name(enum kt_kind kind)
{
	int i;

	for (i = ARRAY_SIZE(kt_names) - 1; i > 0; i--)
		if (kt_names[i].kind == kind)
			break;
	return kt_names[i].name;
}

const char *kt_op_name(enum kt_op op)
{
	return kt_op_names[op];
}

/* Return the enum kt_op of a name, or -1. */
static int kt_op_of(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kt_op_names); i++)
		if (!strcmp(name, kt_op_names[i]))
			return i;
	return -1;
}

struct kt_parser {
	struct kt_session *s;
	struct kt_command *cmd;
};

static int kt_wrong(struct kt_session *s, const char *key, const char *value,
		    const char *why)
{
	kt_say(s, "error %s=%s: %s\n", key, value, why);
	return -EINVAL;
}

/* ---- Values ---------------------------------------------------------------------- */

/* A number with limits, or a flag, of struct kt_command. */
struct kt_number {
	const char *key;
	size_t offset;
	u32 min;
	u32 max;
};

#define KT_NUMBER(key, member, min, max) \
	{ key, offsetof(struct kt_command, member), min, max }

static const struct kt_number kt_numbers[] = {
	KT_NUMBER("size", size, 1, KT_MAX_SIZE),
	KT_NUMBER("depth", depth, 1, KT_MAX_DEPTH),
	KT_NUMBER("eps", eps, 1, KT_MAX_EPS),
	KT_NUMBER("ms", ms, 1, KT_MAX_MS),
	KT_NUMBER("number", number, 1, U32_MAX),
	KT_NUMBER("again", again, 1, U16_MAX),
	KT_NUMBER("max_size", limit.size, 1, KT_MAX_SIZE),
	KT_NUMBER("max_depth", limit.depth, 1, KT_MAX_DEPTH),
	KT_NUMBER("max_eps", limit.eps, 1, KT_MAX_EPS),
};

static const struct {
	const char *key;
	u32 flag;
} kt_switches[] = {
	{ "raw", KT_RAW },
	{ "srq", KT_SRQ },
	{ "marks", KT_MARKS },
	{ "poll", KT_POLL },
	{ "verify", KT_VERIFY },
	{ "corrupt", KT_CORRUPT },
	{ "fmr", KT_FMR },
	{ "invalidate", KT_FMR | KT_INVALIDATE },
};

static int kt_set_number(struct kt_parser *p, const struct kt_number *number,
			 const char *value)
{
	u32 *member = (void *)p->cmd + number->offset;
	char why[64];
	u32 n;

	if (!kstrtou32(value, 0, &n) && n >= number->min && n <= number->max) {
		*member = n;
		return 0;
	}
	snprintf(why, sizeof(why), "a number from %u to %u is wanted",
		 number->min, number->max);
	return kt_wrong(p->s, number->key, value, why);
}

static int kt_set_switch(struct kt_parser *p, u32 flag, const char *key,
			 const char *value)
{
	bool on;

	if (kstrtobool(value, &on))
		return kt_wrong(p->s, key, value, "0 or 1 is wanted");
	if (on)
		p->cmd->flags |= flag;
	else
		p->cmd->flags &= ~flag;
	return 0;
}

static int kt_set_ia(struct kt_parser *p, const char *value)
{
	if (strscpy(p->cmd->ia, value, sizeof(p->cmd->ia)) > 0)
		return 0;
	return kt_wrong(p->s, "ia", value, "no name of an adapter");
}

static int kt_set_host(struct kt_parser *p, const char *value)
{
	if (strscpy(p->cmd->host, value, sizeof(p->cmd->host)) > 0 &&
	    !inet_pton_with_scope(&init_net, AF_UNSPEC, value, NULL,
				  &p->cmd->addr))
		return 0;
	return kt_wrong(p->s, "host", value,
			"an IPv4 or IPv6 address is wanted");
}

static int kt_set_port(struct kt_parser *p, const char *value)
{
	if (!kstrtou16(value, 0, &p->cmd->port) && p->cmd->port)
		return 0;
	return kt_wrong(p->s, "port", value,
			"a number from 1 to 65535 is wanted");
}

static int kt_set_op(struct kt_parser *p, const char *value)
{
	int op = kt_op_of(value);

	if (op < 0)
		return kt_wrong(p->s, "op", value,
				"send, write or read is wanted");
	p->cmd->op = op;
	return 0;
}

/* OP:SIDE:SEGMENTS:SIZE, as in "send:client:1:256". */
static int kt_set_step(struct kt_parser *p, char *value)
{
	struct kt_wire_op *step = &p->cmd->ops[p->cmd->nops];
	char *op = strsep(&value, ":"), *side = strsep(&value, ":");
	char *segments = strsep(&value, ":");
	u32 size;

	if (p->cmd->nops == KT_OPS)
		return kt_wrong(p->s, "step", op, "that is one too many");
	if (!side || !segments || !value ||
	    (strcmp(side, "client") && strcmp(side, "server")) ||
	    kt_op_of(op) < 0 || kstrtou8(segments, 0, &step->segments) ||
	    kstrtou32(value, 0, &size))
		return kt_wrong(p->s, "step", op,
				"OP:SIDE:SEGMENTS:SIZE is wanted");
	if (!step->segments || step->segments > KT_MAX_SEGMENTS || !size ||
	    size > KT_MAX_STEP / step->segments)
		return kt_wrong(p->s, "step", op,
				"1 to 16 segments, together at most 128 KiB, are wanted");
	step->op = kt_op_of(op);
	step->server = side[0] == 's';
	step->size = cpu_to_le32(size);
	p->cmd->nops++;
	return 0;
}

static int kt_set(struct kt_parser *p, const char *key, char *value)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kt_numbers); i++)
		if (!strcmp(key, kt_numbers[i].key))
			return kt_set_number(p, &kt_numbers[i], value);
	for (i = 0; i < ARRAY_SIZE(kt_switches); i++)
		if (!strcmp(key, kt_switches[i].key))
			return kt_set_switch(p, kt_switches[i].flag, key,
					     value);
	if (!strcmp(key, "ia"))
		return kt_set_ia(p, value);
	if (!strcmp(key, "host"))
		return kt_set_host(p, value);
	if (!strcmp(key, "port"))
		return kt_set_port(p, value);
	if (!strcmp(key, "op"))
		return kt_set_op(p, value);
	if (!strcmp(key, "step"))
		return kt_set_step(p, value);
	return kt_wrong(p->s, key, value, "there is no such setting");
}

/* ---- The command ------------------------------------------------------------------- */

static int kt_check(struct kt_session *s, const struct kt_command *cmd)
{
	if (!strcmp(cmd->name, "list"))
		return 0;
	if (!cmd->ia[0]) {
		kt_say(s, "error %s: ia= is wanted\n", cmd->name);
		return -EINVAL;
	}
	if (!cmd->host[0] && strcmp(cmd->name, "limits") &&
	    strcmp(cmd->name, "functions")) {
		kt_say(s, "error %s: host= is wanted\n", cmd->name);
		return -EINVAL;
	}
	if (cmd->kind == KT_TRANS && cmd->flags & (KT_RAW | KT_POLL)) {
		kt_say(s, "error trans: neither raw=1 nor poll=1 is for it\n");
		return -EINVAL;
	}
	if (cmd->kind == KT_TRANS && !cmd->nops) {
		kt_say(s, "error trans: a step is wanted\n");
		return -EINVAL;
	}
	if (cmd->kind != KT_TRANS && (cmd->flags & KT_TRANS_FLAGS || cmd->again)) {
		kt_say(s, "error %s: verify, corrupt, fmr, invalidate and again are for trans\n",
		       cmd->name);
		return -EINVAL;
	}
	if (cmd->flags & KT_MARKS && !(cmd->flags & KT_SRQ)) {
		kt_say(s, "error marks=1: watermarks need srq=1\n");
		return -EINVAL;
	}
	return 0;
}

/*
 * Read a command from @line, which is changed; @cmd->name points into it. Return 0, or
 * an errno after a sentence was said.
 */
int kt_parse(struct kt_session *s, struct kt_command *cmd, char *line)
{
	struct kt_parser p = { s, cmd };
	char *word, *value;
	int i, err;

	cmd->port = 5200;
	cmd->size = 64;
	cmd->depth = 64;
	cmd->eps = 1;
	cmd->ms = MSEC_PER_SEC;
	cmd->limit.size = KT_MAX_SIZE;
	cmd->limit.depth = KT_MAX_DEPTH;
	cmd->limit.eps = KT_MAX_EPS;
	line = strim(line);
	cmd->name = strsep(&line, " ");
	for (i = 0; i < ARRAY_SIZE(kt_names); i++)
		if (!strcmp(cmd->name, kt_names[i].name))
			break;
	if (i == ARRAY_SIZE(kt_names)) {
		kt_say(s, "error there is no command %s\n", cmd->name);
		return -EINVAL;
	}
	cmd->kind = kt_names[i].kind;
	while ((word = strsep(&line, " "))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (!value) {
			kt_say(s, "error %s: KEY=VALUE is wanted\n", word);
			return -EINVAL;
		}
		*value++ = '\0';
		err = kt_set(&p, word, value);
		if (err)
			return err;
	}
	return kt_check(s, cmd);
}
