// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_svcrdma_kunit.ko: calls of NFS version 4.0 for the export of raw.c, see raw.h. */
#include <linux/module.h>
#include "raw.h"

enum {
	OP_LOOKUP = 15, OP_PUTROOTFH = 24, OP_READ = 25, OP_READDIR = 26, OP_WRITE = 38,
};

/* Add the beginning of a COMPOUND of @ops operations, the first of which is PUTROOTFH. */
void rpc_raw_compound(struct rpc_raw *r, unsigned int ops)
{
	rpc_raw_words(r, RAW_CALL, r->xid, 0, 2, 100003, 4, 1, 0, 0, 0, 0);
	rpc_raw_words(r, 4, 0, 0, ops, OP_PUTROOTFH);
}
EXPORT_SYMBOL_GPL(rpc_raw_compound);

static void lookup_f(struct rpc_raw *r)
{
	rpc_raw_words(r, 3, OP_LOOKUP, 1, 'f' << 24);
}

/* Add what reads @length bytes of the file from @offset on. */
void rpc_raw_read_f(struct rpc_raw *r, u32 offset, u32 length)
{
	rpc_raw_compound(r, 3);
	lookup_f(r);
	rpc_raw_words(r, 8, OP_READ, 0, 0, 0, 0, 0, offset, length);
}
EXPORT_SYMBOL_GPL(rpc_raw_read_f);

/* Build what reads @length bytes of the file to @sink in r->data, a chunk of two segments. */
void rpc_raw_build_read(struct rpc_raw *r, unsigned int sink, u32 length)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 3, 0, 1, 2);
	rpc_raw_segment(r, sink, length / 2);
	rpc_raw_segment(r, sink + length / 2, length - length / 2);
	rpc_raw_words(r, 2, 0, 0);
	rpc_raw_read_f(r, 0, length);
}
EXPORT_SYMBOL_GPL(rpc_raw_build_read);

/* Where a call is kept while the Read list in front of it is built. */
#define KEPT	128

/*
 * Begin what writes @length bytes of a chunk to the file; rpc_raw_read() adds its segments. Return
 * the position of the chunk, which is that of the data in the RPC message: that is built first.
 */
u32 rpc_raw_begin_write(struct rpc_raw *r, u32 offset, u32 length)
{
	unsigned int n;

	r->n = 0;
	++r->xid;
	rpc_raw_compound(r, 3);
	lookup_f(r);
	rpc_raw_words(r, 9, OP_WRITE, 0, 0, 0, 0, 0, offset, 2, length);
	n = r->n;
	memmove(r->m + KEPT, r->m, n * 4);
	r->n = 0;
	--r->xid;
	rpc_raw_begin(r, 32, RDMA_MSG);
	return n * 4;
}
EXPORT_SYMBOL_GPL(rpc_raw_begin_write);

/* End what rpc_raw_begin_write() has begun. */
void rpc_raw_end_write(struct rpc_raw *r, u32 position)
{
	rpc_raw_no_lists(r);
	memmove(r->m + r->n, r->m + KEPT, position);
	r->n += position / 4;
}
EXPORT_SYMBOL_GPL(rpc_raw_end_write);

/* Build what writes @length bytes at @source in r->data, a chunk of two segments, to the file. */
void rpc_raw_build_write(struct rpc_raw *r, unsigned int source, u32 offset, u32 length)
{
	u32 position = rpc_raw_begin_write(r, offset, length), part = length / 3;

	rpc_raw_read(r, position, source, part);
	rpc_raw_read(r, position, source + part, length - part);
	rpc_raw_end_write(r, position);
}
EXPORT_SYMBOL_GPL(rpc_raw_build_write);

/*
 * Build what lists the directory. @reply: room for the reply at @sink in r->data, a Reply chunk of
 * two segments; 0: none.
 */
void rpc_raw_build_readdir(struct rpc_raw *r, unsigned int sink, u32 reply)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_words(r, 2, 0, 0);
	if (reply) {
		rpc_raw_words(r, 2, 1, 2);
		rpc_raw_segment(r, sink, 4096);
		rpc_raw_segment(r, sink + 4096, reply - 4096);
	} else {
		rpc_raw_word(r, 0);
	}
	rpc_raw_compound(r, 3);
	rpc_raw_words(r, 3, OP_LOOKUP, 3, 'd' << 24 | 'i' << 16 | 'r' << 8);
	rpc_raw_words(r, 8, OP_READDIR, 0, 0, 0, 0, 32768, 32768, 0);
}
EXPORT_SYMBOL_GPL(rpc_raw_build_readdir);

/* Return the reply in r->got, behind its header, or NULL if there is none, or not all of one. */
const __be32 *rpc_raw_rpc(const struct rpc_raw *r)
{
	unsigned int n = r->got_length / 4, at = 5, i;

	if (n < 7 || be32_to_cpu(r->got[3]) != RDMA_MSG || r->got[4])
		return NULL;
	/* Write chunks, and the Reply chunk */
	for (i = 0; i < 2; i++) {
		while (at < n && r->got[at]) {
			if (at + 1 >= n || be32_to_cpu(r->got[at + 1]) > n / 4)
				return NULL;
			at += 2 + 4 * be32_to_cpu(r->got[at + 1]);
			if (i)
				return at + 5 <= n ? r->got + at : NULL;
		}
		at++;
	}
	return at + 5 <= n ? r->got + at : NULL;
}
EXPORT_SYMBOL_GPL(rpc_raw_rpc);

/* Return the status of the COMPOUND that was answered, or -1 if r->got has none. */
int rpc_raw_status(const struct rpc_raw *r)
{
	const __be32 *rpc = rpc_raw_rpc(r);

	if (!rpc || rpc + 7 > r->got + r->got_length / 4 || rpc[2] || rpc[5])
		return -1;
	return be32_to_cpu(rpc[6]);
}
EXPORT_SYMBOL_GPL(rpc_raw_status);

/* Write to the file; return whether that was done. */
bool rpc_raw_write(struct rpc_raw *r, unsigned int source, u32 offset, u32 length)
{
	rpc_raw_build_write(r, source, offset, length);
	return rpc_raw_send(r) && rpc_raw_receive(r, KD_TIMEOUT_MS) && !rpc_raw_status(r);
}
EXPORT_SYMBOL_GPL(rpc_raw_write);

static bool is_grace_over(void *r)
{
	return rpc_raw_write(r, 0, 0, 4);
}

/* Wait until the server lets files be written: it has a grace period at first. */
void rpc_raw_wait_grace(struct rpc_raw *r)
{
	KUNIT_ASSERT_TRUE(r->s->test, kd_wait_until(is_grace_over, r, KD_TIMEOUT_MS));
}
EXPORT_SYMBOL_GPL(rpc_raw_wait_grace);
