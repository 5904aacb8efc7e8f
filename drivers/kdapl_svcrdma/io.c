// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA of a call: one stream of bytes that lies in pages here and in segments at the client. It
 * is mapped once, and posted in as many requests as there are segments, or more if the adapter
 * takes fewer pieces or bytes in one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "svcrdma.h"

/*
 * Allocate room for @sg pieces of memory, @seg segments and @pages pages. A call of several MiB
 * takes more than 32 KiB, which is the most that is ever allocated in one piece. Context:
 * process.
 */
struct ks_io *ks_io_alloc(DAT_DTOS operation, unsigned int sg, unsigned int seg,
			  unsigned int pages)
{
	size_t length = sizeof(struct ks_io);
	struct ks_io *io;

	length += array_size(sg, sizeof(*io->sg) + sizeof(*io->iov));
	length += array_size(seg, sizeof(*io->seg));
	length += array_size(pages, sizeof(*io->pages));
	io = length > SZ_32K ? __vmalloc(length, GFP_KERNEL | __GFP_NOWARN) :
			       kmalloc(length, GFP_KERNEL);
	if (!io)
		return NULL;
	memset(io, 0, offsetof(struct ks_io, r));
	io->operation = operation;
	io->max_sg = sg;
	io->max_seg = seg;
	io->sg = (struct scatterlist *)(io + 1);
	io->iov = (DAT_LMR_TRIPLET *)(io->sg + sg);
	io->seg = (struct ks_seg *)(io->iov + sg);
	io->pages = (struct page **)(io->seg + seg);
	if (sg)
		sg_init_table(io->sg, sg);
	return io;
}

/*
 * Unmap the memory of @io, if it is mapped. Return false if the device does not let go of it: the
 * memory is lost then.
 */
bool ks_io_unmap(struct ks_io *io)
{
	DAT_RETURN ret;

	if (!io->mapped)
		return true;
	ret = kdat_sg_unmap(io->map);
	WARN_ONCE(ret != DAT_SUCCESS, "the data of a call is still in use: %s", ks_strerror(ret));
	io->mapped = ret != DAT_SUCCESS;
	return !io->mapped;
}

/* Free @io and its pages. No request names them any more. Context: any but hard interrupts. */
void ks_io_free(struct ks_io *io)
{
	unsigned int i;

	if (!io || !ks_io_unmap(io))
		return;
	for (i = 0; i < io->npages; i++)
		if (io->pages[i])
			put_page(io->pages[i]);
	kvfree(io);
}

/* Add memory of this host. Return false if that is more than was planned. */
bool ks_io_add_page(struct ks_io *io, struct page *page, unsigned int offset,
		    unsigned int length)
{
	if (!length)
		return true;
	if (WARN_ON_ONCE(io->nsg == io->max_sg))
		return false;
	sg_set_page(&io->sg[io->nsg++], page, length, offset);
	return true;
}

/* Add memory of the client. */
bool ks_io_add_seg(struct ks_io *io, const struct ks_seg *seg)
{
	if (!seg->length)
		return true;
	if (WARN_ON_ONCE(io->nseg == io->max_seg))
		return false;
	io->seg[io->nseg++] = *seg;
	return true;
}

/* Add the first @length bytes of a chunk, which has as many. */
bool ks_io_add_chunk(struct ks_io *io, const struct ks_chunk *chunk, u32 length)
{
	struct ks_seg seg;
	unsigned int i;

	for (i = 0; i < chunk->nseg && length; i++) {
		ks_seg_decode(chunk->seg + i * rpcrdma_segment_maxsz, &seg);
		seg.length = min(seg.length, length);
		length -= seg.length;
		if (!ks_io_add_seg(io, &seg))
			return false;
	}
	return !length;
}

/* Map the memory of this host. Return 0 or an errno. */
int ks_io_map(struct ks_io *io, struct ks_adapter *a)
{
	DAT_RETURN ret;

	if (!io->nsg)
		return -EINVAL;
	sg_mark_end(&io->sg[io->nsg - 1]);
	ret = kdat_sg_map(a->k.ia, a->k.pz, io->sg, io->nsg,
			  io->operation == DAT_DTO_RDMA_READ ? DMA_FROM_DEVICE : DMA_TO_DEVICE,
			  io->nsg, io->iov, &io->niov, &io->map);
	if (ret != DAT_SUCCESS)
		return -ENOMEM;
	io->mapped = true;
	return 0;
}

/* Is there anything left to be posted? */
bool ks_io_left(const struct ks_io *io)
{
	return io && io->at.seg < io->nseg;
}

/*
 * Make the next request in io->r[@n]. @used: pieces that the requests before it have in
 * io->part; there is room for another one. Return the number of pieces with this request.
 */
int ks_io_take(struct ks_io *io, struct ks_adapter *a, int n, int used)
{
	int most = io->operation == DAT_DTO_RDMA_READ ? a->max_read_iov : a->max_iov;
	const struct ks_seg *seg = &io->seg[io->at.seg];
	u32 room = min(seg->length - io->at.seg_offset, a->max_rdma);
	int end = min(used + most, KDAT_MAX_SEGMENTS - 1);
	DAT_RMR_TRIPLET *remote = &io->remote[n];
	KDAT_REQUEST *r = &io->r[n];
	u32 length = 0, part;

	r->operation = io->operation;
	r->local_iov = &io->part[used];
	r->remote_iov = remote;
	r->user_cookie.as_ptr = NULL;
	r->completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	r->invalidate_flag = DAT_FALSE;
	for (r->num_segments = 0; used < end && length < room; r->num_segments++) {
		const DAT_LMR_TRIPLET *iov = &io->iov[io->at.iov];

		part = min_t(u64, iov->segment_length - io->at.iov_offset, room - length);
		io->part[used].virtual_address = iov->virtual_address + io->at.iov_offset;
		io->part[used].segment_length = part;
		io->part[used++].lmr_context = iov->lmr_context;
		length += part;
		io->at.iov_offset += part;
		if (io->at.iov_offset == iov->segment_length) {
			io->at.iov_offset = 0;
			io->at.iov++;
		}
	}
	remote->virtual_address = seg->va + io->at.seg_offset;
	remote->segment_length = length;
	remote->rmr_context = seg->key;
	io->at.seg_offset += length;
	if (io->at.seg_offset == seg->length) {
		io->at.seg_offset = 0;
		io->at.seg++;
	}
	return used;
}
