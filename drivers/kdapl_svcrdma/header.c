// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The transport header of RFC 8166, and the checks of it. All of a header is checked before
 * anything is allocated or posted for its message; afterwards the lists are read where they are,
 * in the receive buffer.
 *
 * A position in the Read list is one in the message as it would be without any chunk. Every
 * chunk but that of position 0 stands for its data there, and up to three bytes of padding
 * behind it, which are not sent.
 */
#include <linux/align.h>
#include <linux/sort.h>
#include "svcrdma.h"

/* What is left of a message */
struct ks_rest {
	const __be32 *p;
	unsigned int words;
};

#define KS_SEGMENT	rpcrdma_segment_maxsz
#define KS_READ_ITEM	(1 + rpcrdma_segment_maxsz)

/* Return the next @n words, or NULL if there are not so many. */
static const __be32 *ks_take(struct ks_rest *rest, unsigned int n)
{
	const __be32 *p = rest->p;

	if (n > rest->words)
		return NULL;
	rest->p += n;
	rest->words -= n;
	return p;
}

static bool ks_take_u32(struct ks_rest *rest, u32 *value)
{
	const __be32 *p = ks_take(rest, 1);

	if (p)
		*value = be32_to_cpup(p);
	return p;
}

/* Read the segment at @p, which has KS_SEGMENT words. */
void ks_seg_decode(const __be32 *p, struct ks_seg *seg)
{
	seg->key = be32_to_cpup(p);
	seg->length = be32_to_cpup(p + 1);
	seg->va = (u64)be32_to_cpup(p + 2) << 32 | be32_to_cpup(p + 3);
}

/* Note that the message has @key. */
static void ks_note_key(struct ks_header *h, u32 key)
{
	if (!h->nkeys) {
		h->key = key;
		h->nkeys = 1;
	} else if (h->key != key) {
		h->nkeys = 2;
	}
}

/* Return item @i of the Read list, which is followed by a word that says whether there is more. */
const __be32 *ks_read_item(const struct ks_header *h, unsigned int i, u32 *position,
			   struct ks_seg *seg)
{
	const __be32 *p = h->read + i * (KS_READ_ITEM + 1);

	*position = be32_to_cpup(p);
	ks_seg_decode(p + 1, seg);
	return p;
}

/* Find the Read chunk at @position, or make it. */
static struct ks_read *ks_read_at(struct ks_header *h, u32 position)
{
	unsigned int i;

	for (i = 0; i < h->nreads; i++)
		if (h->reads[i].position == position)
			return &h->reads[i];
	if (h->nreads == KS_READS)
		return NULL;
	h->nreads++;
	h->reads[i].position = position;
	h->reads[i].length = 0;
	return &h->reads[i];
}

/* Take the Read list. The sum of a chunk must not wrap: nothing longer is ever fetched. */
static bool ks_take_reads(struct ks_header *h, struct ks_rest *rest)
{
	struct ks_read *read;
	struct ks_seg seg;
	u32 more, position;

	h->read = rest->p + 1;
	for (;;) {
		if (!ks_take_u32(rest, &more) || more > 1)
			return false;
		if (!more)
			return true;
		if (!ks_take(rest, KS_READ_ITEM))
			return false;
		ks_read_item(h, h->nread++, &position, &seg);
		if (position % XDR_UNIT)
			return false;
		ks_note_key(h, seg.key);
		if (!seg.length)
			continue;
		read = ks_read_at(h, position);
		if (!read || check_add_overflow(read->length, seg.length, &read->length) ||
		    read->length > RPCSVC_MAXPAYLOAD + SZ_64K)
			return false;
	}
}

/* Take a Write chunk or Reply chunk, behind the word that announces it. */
static bool ks_take_chunk(struct ks_header *h, struct ks_rest *rest, struct ks_chunk *chunk)
{
	struct ks_seg seg;
	u64 length = 0;
	unsigned int i;

	if (!ks_take_u32(rest, &chunk->nseg) || !chunk->nseg ||
	    chunk->nseg > rest->words / KS_SEGMENT)
		return false;
	chunk->seg = ks_take(rest, chunk->nseg * KS_SEGMENT);
	for (i = 0; i < chunk->nseg; i++) {
		ks_seg_decode(chunk->seg + i * KS_SEGMENT, &seg);
		ks_note_key(h, seg.key);
		length += seg.length;
	}
	chunk->length = min_t(u64, length, U32_MAX);
	return true;
}

static bool ks_take_writes(struct ks_header *h, struct ks_rest *rest)
{
	u32 more;

	for (;;) {
		if (!ks_take_u32(rest, &more) || more > 1)
			return false;
		if (!more)
			return true;
		if (h->nwrites == KS_WRITES ||
		    !ks_take_chunk(h, rest, &h->writes[h->nwrites]))
			return false;
		h->nwrites++;
	}
}

static bool ks_take_reply(struct ks_header *h, struct ks_rest *rest)
{
	u32 more;

	if (!ks_take_u32(rest, &more) || more > 1)
		return false;
	h->has_reply = more;
	return !more || ks_take_chunk(h, rest, &h->reply);
}

static int ks_compare_reads(const void *a, const void *b)
{
	const struct ks_read *x = a, *y = b;

	return x->position < y->position ? -1 : x->position > y->position;
}

/*
 * Check where the Read chunks belong, and find out how long the RPC message is without them: a
 * chunk begins in what is left of the message, and behind the one before it. A message that is
 * sent has no position 0, one that is not has nothing behind the header.
 */
static bool ks_place_reads(struct ks_header *h, unsigned int body)
{
	u64 chunks = 0, end = 0;
	unsigned int i = 0;
	bool nomsg;

	sort(h->reads, h->nreads, sizeof(h->reads[0]), ks_compare_reads, NULL);
	h->long_call = h->nreads && !h->reads[0].position;
	nomsg = h->proc == RDMA_NOMSG;
	if (h->long_call != nomsg || (nomsg && body))
		return false;
	h->base = h->long_call ? h->reads[i++].length : body;
	if (h->base < KS_RPC_MIN)
		return false;
	for (; i < h->nreads; i++) {
		const struct ks_read *read = &h->reads[i];

		if (read->position < KS_RPC_MIN || read->position < end ||
		    read->position - chunks > h->base)
			return false;
		chunks += ALIGN(read->length, XDR_UNIT);
		end = (u64)read->position + ALIGN(read->length, XDR_UNIT);
	}
	return true;
}

/**
 * ks_decode() - read and check the transport header of a message
 * @h: receives it; it refers to @message
 * @message: the message, aligned to 4 bytes
 * @length: its length
 *
 * Context: any
 * Return: 0; -EBADMSG if the message cannot be answered; -EPROTONOSUPPORT if it is of another
 * version; -ENOMSG if nothing is to be done; -EINVAL if the header is wrong. @h has the XID and
 * the credits unless it is -EBADMSG
 */
int ks_decode(struct ks_header *h, const void *message, unsigned int length)
{
	struct ks_rest rest = { message, length / XDR_UNIT };
	const __be32 *p;

	memset(h, 0, sizeof(*h));
	p = ks_take(&rest, rpcrdma_fixed_maxsz);
	if (!p)
		return -EBADMSG;
	h->xid = p[0];
	h->credits = be32_to_cpu(p[2]);
	h->proc = be32_to_cpu(p[3]);
	if (p[1] != rpcrdma_version)
		return -EPROTONOSUPPORT;
	/* These have no lists. */
	if (h->proc == RDMA_DONE || h->proc == RDMA_ERROR)
		return -ENOMSG;
	if (length < RPCRDMA_HDRLEN_MIN)
		return -EBADMSG;
	if (h->proc != RDMA_MSG && h->proc != RDMA_NOMSG)
		return -EINVAL;
	if (!ks_take_reads(h, &rest) || !ks_take_writes(h, &rest) || !ks_take_reply(h, &rest))
		return -EINVAL;
	h->length = (const void *)rest.p - message;
	return ks_place_reads(h, length - h->length) ? 0 : -EINVAL;
}

/* Write @chunk as the answer has it: with the bytes that were used of each segment. */
__be32 *ks_encode_chunk(__be32 *p, const struct ks_chunk *chunk, u32 used)
{
	struct ks_seg seg;
	unsigned int i;
	u32 part;

	*p++ = xdr_one;
	*p++ = cpu_to_be32(chunk->nseg);
	for (i = 0; i < chunk->nseg; i++) {
		ks_seg_decode(chunk->seg + i * KS_SEGMENT, &seg);
		part = min(used, seg.length);
		p = xdr_encode_rdma_segment(p, seg.key, part, seg.va);
		used -= part;
	}
	return p;
}
