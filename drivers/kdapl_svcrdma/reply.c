// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Replies. Data of results for which the call has Write chunks goes there by RDMA, from the pages
 * that have it, which may be those of a file. The rest is copied behind the header if the client
 * takes a message of that length, whether or not it has offered a Reply chunk; otherwise it is
 * written to the Reply chunk, and only the header is sent. If there is no room for a reply, the
 * client is told ERR_CHUNK.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"
#include "trace.h"

/*
 * struct ks_plan - how a reply goes to the client
 * @rest: bytes that are not results for Write chunks
 * @results: how many there are of them
 * @header: bytes of the header
 * @sent: the rest is sent; otherwise it goes to the Reply chunk
 */
struct ks_plan {
	u32 rest;
	unsigned int results;
	unsigned int header;
	bool sent;
};

/*
 * xpo_result_payload(): note that the result of an operation, which is for a Write chunk, is at
 * @offset in the reply. This never fails: nfsd would undo the operation, and leave pages of the
 * file among those that the thread writes its next replies to. ks_plan() has the call fail.
 */
int ks_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length)
{
	struct ks_call *call = rqstp->rq_xprt_ctxt;
	unsigned int n;

	if (!call || !length || call->nresults == call->h.nwrites)
		return 0;
	n = call->nresults++;
	call->results[n].offset = offset;
	call->results[n].length = length;
	if (length > call->h.writes[n].length)
		call->too_long = true;
	return 0;
}

/* Return the length of the header of a reply: the lists of the call, but for the Read list. */
static unsigned int ks_header_length(const struct ks_header *h)
{
	unsigned int words = RPCRDMA_HDRLEN_MIN / XDR_UNIT, i;

	for (i = 0; i < h->nwrites; i++)
		words += 2 + h->writes[i].nseg * rpcrdma_segment_maxsz;
	if (h->has_reply)
		words += 1 + h->reply.nseg * rpcrdma_segment_maxsz;
	return words * XDR_UNIT;
}

/*
 * Decide how a reply goes. Results of operations that have failed later are not in it any more.
 * Return 0, or -E2BIG if there is no way.
 */
static int ks_plan(struct ks_call *call, const struct xdr_buf *res, struct ks_plan *plan)
{
	u32 most = min_t(u32, call->c->inline_out, KS_INLINE), end = 0, length;
	unsigned int i;

	if (call->too_long)
		return -E2BIG;
	plan->rest = res->len;
	plan->header = ks_header_length(&call->h);
	for (i = 0; i < call->nresults; i++) {
		length = call->results[i].length;
		if (!length)
			continue;
		if (call->results[i].offset < end || call->results[i].offset > res->len ||
		    length > res->len - call->results[i].offset)
			break;
		/* The padding is not sent. */
		end = min_t(u32, call->results[i].offset + ALIGN(length, XDR_UNIT), res->len);
		plan->rest -= end - call->results[i].offset;
	}
	plan->results = i;
	plan->sent = plan->header <= most && plan->rest <= most - plan->header;
	if (plan->sent)
		return 0;
	return plan->header <= most && call->h.has_reply &&
	       plan->rest <= call->h.reply.length ? 0 : -E2BIG;
}

/* Write the header of a reply. */
static void ks_encode(struct ks_call *call, const struct ks_plan *plan, __be32 *p)
{
	const struct ks_header *h = &call->h;
	unsigned int i;

	*p++ = h->xid;
	*p++ = rpcrdma_version;
	/* The credits are written by ks_push(). */
	*p++ = xdr_zero;
	*p++ = plan->sent ? rdma_msg : rdma_nomsg;
	*p++ = xdr_zero;
	for (i = 0; i < h->nwrites; i++)
		p = ks_encode_chunk(p, &h->writes[i],
				    i < plan->results ? call->results[i].length : 0);
	*p++ = xdr_zero;
	if (h->has_reply)
		ks_encode_chunk(p, &h->reply, plan->sent ? 0 : plan->rest);
	else
		*p = xdr_zero;
}

/*
 * struct ks_rest - iterates over what is not a result for a Write chunk
 * @i: next result
 * @at: where the next part begins
 */
struct ks_rest {
	unsigned int i;
	u32 at;
};

/* Set @part to the next part that is not a result. Return false if there is none. */
static bool ks_next_rest(const struct ks_call *call, const struct ks_plan *plan,
			 const struct xdr_buf *res, struct ks_rest *rest, struct xdr_buf *part)
{
	u32 from, to;

	do {
		from = rest->at;
		if (from >= res->len)
			return false;
		to = res->len;
		rest->at = to;
		while (rest->i < plan->results && !call->results[rest->i].length)
			rest->i++;
		if (rest->i < plan->results) {
			to = call->results[rest->i].offset;
			rest->at = to + ALIGN(call->results[rest->i].length, XDR_UNIT);
			rest->i++;
		}
	} while (from == to);
	return !xdr_buf_subsegment(res, part, from, to - from);
}

/* Copy what is not a result for a Write chunk behind the header. */
static int ks_copy_rest(const struct ks_call *call, const struct ks_plan *plan,
			const struct xdr_buf *res, void *to)
{
	struct ks_rest rest = { };
	struct xdr_buf part;
	u32 left = plan->rest;

	while (ks_next_rest(call, plan, res, &rest, &part)) {
		if (part.len > left || read_bytes_from_xdr_buf(&part, 0, to, part.len))
			return -EIO;
		to += part.len;
		left -= part.len;
	}
	return left ? -EIO : 0;
}

/* Add memory of a reply that has no page of its own: copy it to one, unless it is in one. */
static bool ks_add_kvec(struct svc_rqst *rqstp, struct ks_io *io, const struct kvec *kvec)
{
	struct page *page;

	if (!kvec->iov_len)
		return true;
	page = virt_to_page(kvec->iov_base);
	if (offset_in_page(kvec->iov_base) + kvec->iov_len <= PAGE_SIZE &&
	    ks_pages_have(rqstp, page))
		return ks_io_add_page(io, page, offset_in_page(kvec->iov_base), kvec->iov_len);
	if (kvec->iov_len > PAGE_SIZE)
		return false;
	page = alloc_page(GFP_KERNEL);
	if (!page)
		return false;
	io->pages[io->npages++] = page;
	memcpy(page_address(page), kvec->iov_base, kvec->iov_len);
	return ks_io_add_page(io, page, 0, kvec->iov_len);
}

/* Add a part of a reply that is going to be written. */
static bool ks_add_part(struct svc_rqst *rqstp, struct ks_io *io, const struct xdr_buf *part)
{
	struct page **page = part->pages + (part->page_base >> PAGE_SHIFT);
	unsigned int offset = offset_in_page(part->page_base), left = part->page_len, n;

	if (!ks_add_kvec(rqstp, io, &part->head[0]))
		return false;
	for (; left; left -= n) {
		n = min_t(unsigned int, left, PAGE_SIZE - offset);
		if (!ks_io_add_page(io, *page++, offset, n))
			return false;
		offset = 0;
	}
	return ks_add_kvec(rqstp, io, &part->tail[0]);
}

/* Add what is to be written: the results, and the rest if it is not sent. */
static bool ks_add_all(struct ks_call *call, struct svc_rqst *rqstp, const struct ks_plan *plan,
		       struct ks_io *io)
{
	const struct xdr_buf *res = &rqstp->rq_res;
	struct ks_rest rest = { };
	struct xdr_buf part;
	unsigned int i;

	for (i = 0; i < plan->results; i++) {
		if (!call->results[i].length)
			continue;
		if (xdr_buf_subsegment(res, &part, call->results[i].offset,
				       call->results[i].length) ||
		    !ks_add_part(rqstp, io, &part) ||
		    !ks_io_add_chunk(io, &call->h.writes[i], call->results[i].length))
			return false;
	}
	if (plan->sent)
		return true;
	while (ks_next_rest(call, plan, res, &rest, &part))
		if (!ks_add_part(rqstp, io, &part))
			return false;
	return ks_io_add_chunk(io, &call->h.reply, plan->rest);
}

/* Does anything have to be written? */
static bool ks_writes(const struct ks_call *call, const struct ks_plan *plan)
{
	unsigned int i;

	for (i = 0; i < plan->results; i++)
		if (call->results[i].length)
			return true;
	return !plan->sent;
}

/* Prepare what is to be written, and take its pages. Return NULL if there is no memory. */
static struct ks_io *ks_reply_io(struct ks_call *call, struct svc_rqst *rqstp,
				 const struct ks_plan *plan)
{
	const struct xdr_buf *res = &rqstp->rq_res;
	unsigned int parts = 2 * plan->results + 2, segs = call->h.reply.nseg, i;
	unsigned int pages = DIV_ROUND_UP(res->page_len, PAGE_SIZE) + 1;
	unsigned int used = ks_pages_used(rqstp);
	struct ks_io *io;

	for (i = 0; i < plan->results; i++)
		segs += call->h.writes[i].nseg;
	/* A part may begin and end within a page, and have a head and a tail. */
	io = ks_io_alloc(DAT_DTO_RDMA_WRITE, pages + 4 * parts, segs, used + 2 * parts);
	if (!io)
		return NULL;
	io->npages = used;
	memset(io->pages, 0, used * sizeof(*io->pages));
	if (!ks_add_all(call, rqstp, plan, io) || ks_io_map(io, call->c->a)) {
		ks_io_free(io);
		return NULL;
	}
	ks_pages_take(rqstp, io->pages);
	return io;
}

/* A message was sent, or will not be. Context: any but hard interrupts. */
void ks_sent(struct ks_conn *c, struct ks_post *p, bool ok)
{
	struct ks_tx *tx = p->tx;

	ks_io_free(p->io);
	p->io = NULL;
	ks_tx_put(c->a, tx);
	if (!ok)
		svc_xprt_deferred_close(&c->xprt);
}

/* Submit @tx, which answers @call: the call is over, and its buffer goes back. */
static void ks_answer(struct ks_call *call, struct ks_tx *tx, unsigned int length)
{
	KDAT_POOL_BUF *buf = call->buf;

	trace_kdapl_svcrdma_reply(call, length);
	tx->seg.segment_length = length;
	tx->post.done = ks_sent;
	tx->post.answers = true;
	call->answered = true;
	call->buf = NULL;
	if (buf)
		kdat_pool_put(call->c->a->k.pool, buf);
	ks_submit(call->c, &tx->post);
}

/*
 * Tell the client that its call cannot be answered: @code is ERR_VERS or ERR_CHUNK. Context:
 * process.
 */
void ks_send_error(struct ks_call *call, u32 code)
{
	struct ks_conn *c = call->c;
	struct ks_tx *tx = ks_tx_get(c->a);
	__be32 *p;

	if (!tx) {
		ks_conn_break(c, "there is no memory for an answer");
		return;
	}
	ks_count(c->a, KS_STAT_ERRORS);
	p = tx->va;
	*p++ = call->h.xid;
	*p++ = rpcrdma_version;
	*p++ = xdr_zero;
	*p++ = rdma_error;
	*p++ = cpu_to_be32(code);
	if (code == ERR_VERS) {
		*p++ = rpcrdma_version;
		*p++ = rpcrdma_version;
	}
	ks_answer(call, tx, (void *)p - tx->va);
}

/* Fill @tx with the reply. Return 0, or an errno if there is no memory, or something is wrong. */
static int ks_fill(struct ks_call *call, struct svc_rqst *rqstp, const struct ks_plan *plan,
		   struct ks_tx *tx)
{
	ks_encode(call, plan, tx->va);
	if (plan->sent && ks_copy_rest(call, plan, &rqstp->rq_res, tx->va + plan->header))
		return -EIO;
	if (!ks_writes(call, plan)) {
		ks_pages_keep_head(rqstp);
	} else {
		tx->post.io = ks_reply_io(call, rqstp, plan);
		if (!tx->post.io)
			return -ENOMEM;
	}
	tx->invalidate = call->c->invalidate && call->h.nkeys == 1;
	tx->key = call->h.key;
	return 0;
}

/* xpo_sendto(): reply, without waiting. */
int ks_sendto(struct svc_rqst *rqstp)
{
	struct ks_call *call = rqstp->rq_xprt_ctxt;
	struct ks_conn *c = ks_conn(rqstp->rq_xprt);
	struct ks_plan plan;
	struct ks_tx *tx;
	int err;

	/* Without a message there is nothing to answer; its connection has ended. */
	if (!call || !call->buf || test_bit(XPT_CLOSE, &c->xprt.xpt_flags))
		return -ENOTCONN;
	err = ks_plan(call, &rqstp->rq_res, &plan);
	if (err) {
		ks_send_error(call, ERR_CHUNK);
		return 0;
	}
	tx = ks_tx_get(c->a);
	if (!tx)
		goto no_memory;
	err = ks_fill(call, rqstp, &plan, tx);
	if (err) {
		ks_tx_put(c->a, tx);
		goto no_memory;
	}
	ks_answer(call, tx, plan.header + (plan.sent ? plan.rest : 0));
	return 0;
no_memory:
	ks_conn_break(c, "there is no memory for a reply");
	return -ENOTCONN;
}
