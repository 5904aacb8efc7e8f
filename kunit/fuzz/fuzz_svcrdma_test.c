// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for kdapl_svcrdma.ko, from a client of RPC-over-RDMA that sends what it is told to; see
 * fuzz.h. Mutations are those of the transport header and of what all calls begin with: what is
 * behind that is nfsd's. Messages that are joined are sent before any is answered.
 *
 * What the server did, for each message: m, a reply in a message, with the status of the call
 * and, of NFS, of the COMPOUND; n, a reply in the Reply chunk; x and the code of an error of
 * the transport; e, it has ended the connection; -, nothing.
 */
#include "../svcrdma/raw.h"
#include "fuzz.h"

enum kind {
	K_NULL, K_COMPOUND, K_READS, K_LONG, K_LONG_READS, K_READ, K_WRITE, K_READDIR, K_LISTS,
	K_DONE, K_ERROR, K_ANSWER, KINDS
};

/* XID, version, credits, what it is */
#define HEADER	"\x04\x04\x04\x04"
/* Key, length, address */
#define SEGMENT	"\x04\x04\x08"
/* Whether there is one, position, segment */
#define ITEM	"\x04\x04" SEGMENT
/* Whether there is one, number of segments */
#define CHUNK	"\x04\x04"
#define END	"\x04"
/* XID, direction, version, program, its version, procedure; who calls */
#define CALL	"\x04\x04\x04\x04\x04\x04\x10"

static const struct fuzz_kind kinds[KINDS] = {
	[K_NULL] = { "null", HEADER END END END CALL },
	[K_COMPOUND] = { "compound", HEADER END END END CALL },
	[K_READS] = { "reads", HEADER ITEM ITEM END END END CALL },
	[K_LONG] = { "long", HEADER ITEM ITEM END END END },
	[K_LONG_READS] = { "long_reads", HEADER ITEM ITEM ITEM END END END },
	[K_READ] = { "read", HEADER END CHUNK SEGMENT SEGMENT END END CALL },
	[K_WRITE] = { "write", HEADER ITEM ITEM END END END CALL },
	[K_READDIR] = { "readdir", HEADER END END CHUNK SEGMENT SEGMENT CALL },
	[K_LISTS] = { "lists", HEADER ITEM END CHUNK SEGMENT END CHUNK SEGMENT CALL },
	[K_DONE] = { "done", HEADER },
	[K_ERROR] = { "error", HEADER "\x04\x04\x04" },
	[K_ANSWER] = { "answer", HEADER END END END "\x04\x04\x04\x04\x04\x04" },
};

static const char * const corpus[] = {
#include "corpus/svcrdma.inc"
};

static const char * const modules[] = { "kdapl_svcrdma", NULL };
static const struct fuzz_target target;

/* Messages at once: as many as a new client may have calls outstanding. */
#define JOINED	RAW_SENDS

/* In r->data: what replies and long calls are in, and what the server reads */
#define LONGS	SZ_128K
#define SOURCE	SZ_256K
#define LENGTH	SZ_8K

static struct rpc_raw *r, *honest;

/* ---- Building ------------------------------------------------------------ */

static void build_compound(void)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_compound(r, 1);
}

static void build_reads(void)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4 + 100 + 4, SOURCE, 8);
	rpc_raw_read(r, RAW_CALL * 4, SOURCE + 8, 97);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
	rpc_raw_words(r, 2, 7, 7);
}

/* The call is in two pieces, behind the first of which there is a chunk, if @chunk. */
static void build_long(bool chunk)
{
	unsigned int at;

	rpc_raw_begin(r, 32, RDMA_NOMSG);
	at = LONGS + r->xid % JOINED * 256;
	rpc_raw_put_call(r, at);
	rpc_raw_read(r, 0, at, 36);
	if (chunk)
		rpc_raw_read(r, 36, SOURCE, 3);
	rpc_raw_read(r, 0, at + 36, 4);
	rpc_raw_no_lists(r);
}

static void build_lists(void)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_read(r, RAW_CALL * 4, SOURCE, 8);
	rpc_raw_words(r, 3, 0, 1, 1);
	rpc_raw_segment(r, 0, 64);
	rpc_raw_words(r, 3, 0, 1, 1);
	rpc_raw_segment(r, SZ_4K, 64);
	rpc_raw_call(r);
}

static void build_answer(void)
{
	rpc_raw_begin(r, 2, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_words(r, 6, r->xid, 1, 0, 0, 0, 0);
}

/* Build a message of @kind in r->m. */
static void build(enum kind kind)
{
	switch (kind) {
	case K_NULL:
		return rpc_raw_null(r);
	case K_COMPOUND:
		return build_compound();
	case K_READS:
		return build_reads();
	case K_LONG:
	case K_LONG_READS:
		return build_long(kind == K_LONG_READS);
	case K_READ:
		return rpc_raw_build_read(r, 0, LENGTH);
	case K_WRITE:
		return rpc_raw_build_write(r, SOURCE, 0, LENGTH);
	case K_READDIR:
		return rpc_raw_build_readdir(r, 0, SZ_64K);
	case K_LISTS:
		return build_lists();
	case K_DONE:
		return rpc_raw_begin(r, 32, RDMA_DONE);
	case K_ERROR:
		rpc_raw_begin(r, 32, RDMA_ERROR);
		return rpc_raw_words(r, 3, ERR_CHUNK, 0, 0);
	default:
		return build_answer();
	}
}

/* ---- What the server sends ----------------------------------------------- */

static u32 read_message(char *word, size_t room)
{
	const __be32 *rpc = rpc_raw_rpc(r);
	int status = rpc_raw_status(r);

	if (r->got_length >= RPCRDMA_HDRLEN_ERR && be32_to_cpu(r->got[3]) == RDMA_ERROR)
		snprintf(word, room, "x%u", be32_to_cpu(r->got[4]));
	else if (r->got_length >= RPCRDMA_HDRLEN_MIN && be32_to_cpu(r->got[3]) == RDMA_NOMSG)
		snprintf(word, room, "n");
	else if (!rpc)
		snprintf(word, room, "?");
	else if (status > 0)
		snprintf(word, room, "m%u", status);
	else
		snprintf(word, room, "m%s%u", rpc[2] ? "r" : rpc[5] ? "a" : "",
			 be32_to_cpu(rpc[rpc[2] ? 3 : 5]));
	return (__force u32)r->got[0];
}

static bool receive_message(void)
{
	return rpc_raw_receive(r, 0);
}

static struct fuzz_answers answers = { .receive = receive_message, .read = read_message };

/* ---- Inputs -------------------------------------------------------------- */

static void connect(void)
{
	DAT_EP_ATTR attr = kd_ep_attr();
	u64 slot;

	attr.max_request_dtos = 64;
	attr.max_rdma_read_in = 4;
	r->s->ep = kd_ep(r->s, &attr);
	r->sent = 0;
	memset(r->data->va, 0, r->data->len);
	for (slot = 0; slot < RAW_RECVS; slot++)
		rpc_raw_post(r, slot);
	answers.side = r->s;
	answers.ended = !rpc_raw_start(r);
}

/* Send the message at @i of the input and those that are joined to it. Return the next. */
static unsigned int send_joined(struct fuzz_run *run, unsigned int i)
{
	const struct fuzz_message *message = &run->input->message[i];
	unsigned int n = 0;
	size_t length;

	do {
		build(message->kind);
		length = r->n * sizeof(__be32);
		memset((void *)r->m + length, 0, sizeof(r->m) - length);
		length = fuzz_apply(&target, message, r->m, length, sizeof(r->m));
		fuzz_sends(&answers, n++, (__force u32)r->m[0]);
		if (!answers.ended)
			answers.ended = !rpc_raw_send_bytes(r, r->m, length);
		message++;
	} while (++i < run->input->n && message->joined && n < JOINED);
	fuzz_take_answers(run, &answers, n);
	return i;
}

static void run_input(struct fuzz_run *run)
{
	unsigned int i = 0;

	connect();
	while (i < run->input->n && (!answers.ended || fuzz_expects(run, 0, "e")))
		i = send_joined(run, i);
	fuzz_hang_up(r->s);
}

/* ---- The bed ------------------------------------------------------------- */

/* An honest client writes, and reads what it has written; nobody else is there. */
static void check(struct kunit *test)
{
	kd_fill(honest->data->va + SOURCE, LENGTH, 77);
	KUNIT_EXPECT_TRUE(test, rpc_raw_write(honest, SOURCE, 0, LENGTH));
	memset(honest->data->va, 0, LENGTH);
	rpc_raw_build_read(honest, 0, LENGTH);
	KUNIT_EXPECT_TRUE(test, rpc_raw_send(honest));
	KUNIT_EXPECT_TRUE(test, rpc_raw_receive(honest, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, rpc_raw_status(honest), 0);
	KUNIT_EXPECT_TRUE(test, kd_has_pattern(honest->data->va, LENGTH, 77));
	KUNIT_EXPECT_TRUE_MSG(test, rpc_raw_wait_adapter(honest->s, "connections", 1, 1,
							 KD_TIMEOUT_MS),
			      "the server has a connection of nobody");
}

static void bed_up(struct kunit *test)
{
	fuzz_loaded(test, "kdapl_svcrdma");
	honest = rpc_raw_connect(test);
	rpc_raw_wait_grace(honest);
	r = rpc_raw_new(test, 0);
	KD_ASSERT_OK(test, dat_ep_free(r->s->ep));
	r->s->ep = NULL;
}

FUZZ_TARGET(svcrdma, .set_up = bed_up, .run = run_input, .check = check, .big_endian = true)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(svcrdma_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(svcrdma_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-svcrdma", cases, "inputs for the wire of kdapl_svcrdma.ko", RPC_RAW_EXPORT);
