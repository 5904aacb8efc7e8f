// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Read lists. Their data is fetched into pages that are exchanged for pages of the thread which
 * takes the call when all is there; no thread waits for it.
 *
 * A message with a single Read chunk, as of WRITE, keeps its parts where they are: what comes
 * before the chunk is the head of rq_arg, the chunk is its pages, from the beginning of the first
 * one, and what comes behind is the tail. Any other message is put together in pages.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/sunrpc/svc.h>
#include "svcrdma.h"

/*
 * struct ks_weave - a message that is being put together
 * @at: length of what is together
 * @base: how much of the message without chunks is in it
 * @item: item of the Read list, for a long call, that is next, and where in it
 */
struct ks_weave {
	struct ks_call *call;
	struct ks_io *io;
	u32 at;
	u32 base;
	unsigned int item;
	u32 item_offset;
};

/* Does the message keep its parts where they are? */
static bool ks_is_plain(const struct ks_header *h)
{
	return !h->long_call && h->nreads == 1;
}

/* Return the length of the message, or of its only chunk, in pages. */
static u32 ks_fetch_length(const struct ks_header *h)
{
	u32 length = ks_is_plain(h) ? 0 : h->base;
	unsigned int i;

	/* Neither the number of chunks nor a chunk is so large that the sum wraps. */
	for (i = h->long_call; i < h->nreads; i++)
		length += ALIGN(h->reads[i].length, XDR_UNIT);
	return length;
}

/* Have the next @length bytes be fetched. */
static bool ks_weave_sink(struct ks_weave *w, u32 length)
{
	u32 part;

	for (; length; length -= part) {
		part = min_t(u32, length, PAGE_SIZE - offset_in_page(w->at));
		if (!ks_io_add_page(w->io, w->io->pages[w->at >> PAGE_SHIFT],
				    offset_in_page(w->at), part))
			return false;
		w->at += part;
	}
	return true;
}

/* Write the next @length bytes, those at @from, or zeroes. */
static void ks_weave_copy(struct ks_weave *w, const void *from, u32 length)
{
	u32 part;
	void *to;

	for (; length; length -= part) {
		part = min_t(u32, length, PAGE_SIZE - offset_in_page(w->at));
		to = page_address(w->io->pages[w->at >> PAGE_SHIFT]) + offset_in_page(w->at);
		if (from) {
			memcpy(to, from, part);
			from += part;
		} else {
			memset(to, 0, part);
		}
		w->at += part;
	}
}

/* Add the next @length bytes of position 0 of the Read list. */
static bool ks_weave_long(struct ks_weave *w, u32 length)
{
	const struct ks_header *h = &w->call->h;
	struct ks_seg seg;
	u32 position;

	if (!ks_weave_sink(w, length))
		return false;
	while (length) {
		if (w->item == h->nread)
			return false;
		ks_read_item(h, w->item, &position, &seg);
		if (position || w->item_offset == seg.length) {
			w->item++;
			w->item_offset = 0;
			continue;
		}
		seg.va += w->item_offset;
		seg.length = min(seg.length - w->item_offset, length);
		w->item_offset += seg.length;
		length -= seg.length;
		if (!ks_io_add_seg(w->io, &seg))
			return false;
	}
	return true;
}

/* Add the next @length bytes of the message without chunks. */
static bool ks_weave_base(struct ks_weave *w, u32 length)
{
	struct ks_call *call = w->call;

	w->base += length;
	if (call->h.long_call)
		return ks_weave_long(w, length);
	ks_weave_copy(w, call->buf->va + call->h.length + w->base - length, length);
	return true;
}

/* Add a chunk, with padding. */
static bool ks_weave_chunk(struct ks_weave *w, const struct ks_read *read)
{
	const struct ks_header *h = &w->call->h;
	struct ks_seg seg;
	unsigned int i;
	u32 position;

	if (!ks_weave_sink(w, read->length))
		return false;
	for (i = 0; i < h->nread; i++) {
		ks_read_item(h, i, &position, &seg);
		if (position == read->position && !ks_io_add_seg(w->io, &seg))
			return false;
	}
	ks_weave_copy(w, NULL, ALIGN(read->length, XDR_UNIT) - read->length);
	return true;
}

/* Plan the RDMA Reads of @call, and copy what has come with the message. */
static bool ks_weave(struct ks_call *call, struct ks_io *io)
{
	struct ks_weave w = { .call = call, .io = io };
	const struct ks_header *h = &call->h;
	unsigned int i;

	if (ks_is_plain(h))
		return ks_weave_chunk(&w, h->reads);
	for (i = h->long_call; i < h->nreads; i++) {
		if (!ks_weave_base(&w, h->reads[i].position - w.at) ||
		    !ks_weave_chunk(&w, &h->reads[i]))
			return false;
	}
	return ks_weave_base(&w, h->base - w.base);
}

/* The Reads are over. Context: any but hard interrupts. */
static void ks_fetch_done(struct ks_conn *c, struct ks_post *p, bool ok)
{
	struct ks_call *call = container_of(p, struct ks_call, post);

	if (!ok) {
		/* The connection has ended, or is about to. */
		ks_call_free(call);
		svc_xprt_deferred_close(&c->xprt);
		return;
	}
	spin_lock_bh(&c->lock);
	list_add_tail(&call->link, &c->fetched);
	set_bit(XPT_DATA, &c->xprt.xpt_flags);
	spin_unlock_bh(&c->lock);
	svc_xprt_enqueue(&c->xprt);
}

static bool ks_fetch_pages(struct ks_io *io, unsigned int n)
{
	while (io->npages < n) {
		io->pages[io->npages] = alloc_page(GFP_KERNEL);
		if (!io->pages[io->npages])
			return false;
		io->npages++;
	}
	return true;
}

/*
 * Count @n pages for @call. If the connection has enough already, as several threads take its
 * messages, put the message back to the others.
 */
static bool ks_fetch_count(struct ks_call *call, unsigned int n)
{
	struct ks_conn *c = call->c;
	bool room;

	spin_lock_bh(&c->lock);
	room = c->fetching < KS_FETCH_PAGES || c->stopped;
	if (room) {
		c->fetching += n;
		call->npages = n;
	} else {
		list_add(&call->buf->link, &c->received);
		set_bit(XPT_DATA, &c->xprt.xpt_flags);
		call->buf = NULL;
		/* The message is still to be answered. */
		call->answered = true;
	}
	spin_unlock_bh(&c->lock);
	return room;
}

/**
 * ks_fetch() - fetch what the Read list of a call names
 * @call: the call
 * @rqstp: a thread
 *
 * Context: process
 * Return: 0, and the call will be in c->fetched; -EINVAL if it is longer than a call can be;
 * -EBUSY if the message was put back; -ECONNABORTED if the connection ends, as there is no memory
 */
int ks_fetch(struct ks_call *call, struct svc_rqst *rqstp)
{
	const struct ks_header *h = &call->h;
	unsigned int n = DIV_ROUND_UP(ks_fetch_length(h), PAGE_SIZE);
	struct ks_conn *c = call->c;
	struct ks_io *io;

	if (n > ks_pages_most(rqstp))
		return -EINVAL;
	if (!ks_fetch_count(call, n))
		return -EBUSY;
	/* A chunk, and what is before it, may begin and end within a page and a segment. */
	io = ks_io_alloc(DAT_DTO_RDMA_READ, n + 4 * h->nreads + 2, h->nread + h->nreads + 1, n);
	call->post.io = io;
	if (!io || !ks_fetch_pages(io, n) || !ks_weave(call, io) || ks_io_map(io, c->a)) {
		ks_conn_break(c, "there is no memory for what its call names");
		return -ECONNABORTED;
	}
	call->post.done = ks_fetch_done;
	ks_submit(c, &call->post);
	return 0;
}

/*
 * Put the message of @call, all of which is here, into rq_arg. Return 0, or an errno if it is not
 * to be executed.
 */
int ks_fetched(struct ks_call *call, struct svc_rqst *rqstp)
{
	const struct ks_header *h = &call->h;
	struct xdr_buf *arg = &rqstp->rq_arg;
	struct ks_io *io = call->post.io;
	u32 length = ks_fetch_length(h);

	if (!ks_io_unmap(io)) {
		ks_conn_break(call->c, "the data of a call is still in use");
		return -EIO;
	}
	ks_pages_give(rqstp, io->pages, io->npages);
	arg->page_base = 0;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	if (ks_is_plain(h)) {
		arg->head[0].iov_base = call->buf->va + h->length;
		arg->head[0].iov_len = h->reads[0].position;
		arg->page_len = length;
		arg->tail[0].iov_base = arg->head[0].iov_base + h->reads[0].position;
		arg->tail[0].iov_len = h->base - h->reads[0].position;
		length += h->base;
	} else {
		arg->head[0].iov_base = page_address(rqstp->rq_pages[0]);
		arg->head[0].iov_len = min_t(u32, PAGE_SIZE, length);
		arg->pages++;
		arg->page_len = length - arg->head[0].iov_len;
	}
	arg->len = length;
	arg->buflen = length;
	return 0;
}
