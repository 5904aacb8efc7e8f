// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The data of commands: mapping it, and posting it in as many requests as it takes. RDMA
 * Writes go with the answer, with one call to the device if they are few. queue.c has the
 * commands that find no memory or no room.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "isert.h"

/* Post requests; with @counted, ki_posted_done() will report the last one. litmus: iser-room */
DAT_RETURN ki_post(struct ki_conn *c, int n, const KDAT_REQUEST *r, bool counted)
{
	DAT_RETURN ret;

	if (counted)
		atomic_inc(&c->posted);
	ret = kdat_ep_post_requests(c->ep, n, r);
	if (ret != DAT_SUCCESS && counted && atomic_dec_and_test(&c->posted))
		ki_wake_room(c);
	return ret;
}

/* Note that a counted request has completed and was handled. litmus: iser-posted, iser-room */
void ki_posted_done(struct ki_conn *c)
{
	if (!list_empty_careful(&c->waiting))
		ki_conn_retry(c);
	if (!atomic_dec_and_test(&c->posted))
		return;
	ki_wake_room(c);
	/*
	 * atomic_dec_and_test() is fully ordered, so a command queued by a poster that saw a
	 * request outstanding is visible here.
	 */
	if (!list_empty_careful(&c->waiting))
		ki_conn_retry(c);
}

/* Reduce the triplets of @kc to @len bytes from @offset on. */
static void ki_cmd_cut(struct ki_cmd *kc, u64 offset, u64 len)
{
	while (offset >= kc->iov[kc->at].segment_length)
		offset -= kc->iov[kc->at++].segment_length;
	kc->iov[kc->at].virtual_address += offset;
	kc->iov[kc->at].segment_length -= offset;
	for (kc->n = kc->at; len; kc->n++) {
		kc->iov[kc->n].segment_length =
			min_t(u64, len, kc->iov[kc->n].segment_length);
		len -= kc->iov[kc->n].segment_length;
	}
}

/*
 * Split triplets that are longer than @most, the limit of a request; @room: length of kc->iov.
 * The parts fit: no entry of LIO's scatterlists is longer than a page, so a longer triplet was
 * joined from several entries.
 */
static int ki_cmd_split(struct ki_cmd *kc, unsigned int room, u32 most)
{
	unsigned int n = 0, from, to;
	DAT_LMR_TRIPLET t;
	u64 last;

	for (from = 0; from < kc->n; from++)
		n += DIV_ROUND_UP_ULL(kc->iov[from].segment_length, most);
	if (n > room)
		return -EIO;
	to = n;
	for (from = kc->n; from--;) {
		t = kc->iov[from];
		while (t.segment_length) {
			last = (t.segment_length - 1) % most + 1;
			t.segment_length -= last;
			kc->iov[--to] = t;
			kc->iov[to].virtual_address += t.segment_length;
			kc->iov[to].segment_length = last;
		}
	}
	kc->n = n;
	return 0;
}

/*
 * Allocate @n triplets. The triplets of a command of several MiB take more than 32 KiB, which
 * is the most that is ever allocated in one piece; kvmalloc_array() would try one piece first.
 */
static DAT_LMR_TRIPLET *ki_iov_alloc(unsigned int n)
{
	size_t len = array_size(n, sizeof(DAT_LMR_TRIPLET));

	if (len > SZ_32K)
		return __vmalloc(len, GFP_NOIO | __GFP_NOWARN);
	return kmalloc(len, GFP_NOIO);
}

static void ki_iov_free(struct ki_cmd *kc)
{
	if (kc->iov != kc->inline_iov)
		kvfree(kc->iov);
}

/**
 * ki_cmd_map - map the data of a command
 * @c: the connection
 * @cmd: the command; not mapped
 * @offset: first byte to transfer
 * @len: bytes to transfer, not 0
 * @dir: direction, as the device sees it
 *
 * Return: 0; -ENOMEM if there is no memory; another errno if the data can never be mapped, as
 * when the adapter has left
 */
int ki_cmd_map(struct ki_conn *c, struct iscsit_cmd *cmd, u32 offset, u32 len,
	       enum dma_data_direction dir)
{
	struct scatterlist *sgl = cmd->se_cmd.t_data_sg;
	unsigned int nents = cmd->se_cmd.t_data_nents;
	struct ki_cmd *kc = ki_cmd(cmd);
	DAT_RETURN ret;

	if (!nents || !len || offset > cmd->se_cmd.data_length ||
	    len > cmd->se_cmd.data_length - offset)
		return -EINVAL;
	kc->iov = kc->inline_iov;
	if (nents > KI_INLINE_IOV)
		kc->iov = ki_iov_alloc(nents);
	if (!kc->iov)
		return -ENOMEM;
	ret = kdat_sg_map(c->a->base.ia, c->a->base.pz, sgl, nents, dir, nents, kc->iov,
			  &kc->n, &kc->map);
	if (ret != DAT_SUCCESS) {
		ki_iov_free(kc);
		return ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY) &&
		       !READ_ONCE(c->down) ? -ENOMEM : -EIO;
	}
	kc->mapped = true;
	kc->at = 0;
	if (unlikely(len > c->a->max_rdma) && ki_cmd_split(kc, nents, c->a->max_rdma)) {
		ki_cmd_unmap(cmd);
		return -EIO;
	}
	ki_cmd_cut(kc, offset, len);
	return 0;
}

/* Unmap the data of a command, if it is mapped. No posted request may name the data. */
void ki_cmd_unmap(struct iscsit_cmd *cmd)
{
	struct ki_cmd *kc = ki_cmd(cmd);
	DAT_RETURN ret;

	if (!kc->mapped)
		return;
	kc->mapped = false;
	ret = kdat_sg_unmap(kc->map);
	WARN_ONCE(ret != DAT_SUCCESS, "the data of a command is still in use: %s",
		  ki_strerror(ret));
	ki_iov_free(kc);
}

/*
 * Have the backend write the @len bytes at @data, which came with the command and stay there.
 * Return -EPROTO if the CDB wants another length than the initiator has told.
 */
int ki_cmd_use(struct iscsit_cmd *cmd, u8 *data, u32 len)
{
	struct scatterlist *sg = ki_cmd(cmd)->sg;
	unsigned int n, i;
	u32 part;

	if (len != cmd->se_cmd.data_length)
		return -EPROTO;
	/* One entry for each page: the backend pscsi takes no others. */
	n = DIV_ROUND_UP(offset_in_page(data) + len, PAGE_SIZE);
	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		part = min_t(u32, len, PAGE_SIZE - offset_in_page(data));
		sg_set_buf(&sg[i], data, part);
		data += part;
		len -= part;
	}
	cmd->se_cmd.t_data_sg = sg;
	cmd->se_cmd.t_data_nents = n;
	return 0;
}

/*
 * Take triplets of @kc for one request: at most @max_iov of them and max_rdma bytes. @r
 * becomes a Write that others follow. All members for RDMA are set, and members that nobody
 * reads are left alone.
 */
static void ki_cmd_take(struct ki_conn *c, struct ki_cmd *kc, int max_iov,
			KDAT_REQUEST *r, DAT_RMR_TRIPLET *remote)
{
	u64 len = 0;
	int n;

	r->operation = DAT_DTO_RDMA_WRITE;
	r->completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	r->user_cookie.as_ptr = NULL;
	r->invalidate_flag = DAT_FALSE;
	r->local_iov = &kc->iov[kc->at];
	for (n = 0; n < max_iov && kc->at + n < kc->n; n++) {
		if (n && len + kc->iov[kc->at + n].segment_length >
			 c->a->max_rdma)
			break;
		len += kc->iov[kc->at + n].segment_length;
	}
	r->num_segments = n;
	remote->virtual_address = kc->va;
	remote->segment_length = len;
	r->remote_iov = remote;
	kc->at += n;
	kc->va += len;
}

/* Convert the @ret of a post to an errno. */
static int ki_post_errno(DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return 0;
	return ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY) ?
	       -EAGAIN : -EIO;
}

/* Nothing to do when a part of the data has completed; ki_posted_done() posts more. */
static void ki_part_done(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
}

/*
 * Post a text that the initiator is to ask for more of. The initiator may ask, in
 * ki_text_more(), as soon as the text is posted, but not while it waits: the command would be
 * answered twice at once.
 */
static DAT_RETURN ki_post_part(struct ki_conn *c, struct ki_cmd *kc, const KDAT_REQUEST *r)
{
	DAT_RETURN ret;

	spin_lock_bh(&c->lock);
	kc->more = true;
	ret = ki_post(c, 1, r, true);
	if (ret != DAT_SUCCESS)
		kc->more = false;
	spin_unlock_bh(&c->lock);
	return ret;
}

/*
 * Post RDMA Writes of the remaining data, and the answer. Return 0, -EAGAIN if there is no
 * room, or -EIO.
 */
int ki_push_answer(struct ki_conn *c, struct ki_cmd *kc)
{
	DAT_RMR_TRIPLET remote[KDAT_MAX_REQUESTS] __uninitialized;
	KDAT_REQUEST r[KDAT_MAX_REQUESTS] __uninitialized;
	DAT_LMR_TRIPLET segs[2] __uninitialized;
	DAT_COUNT at, used;
	DAT_RETURN ret;
	u64 va;
	int n;

	do {
		at = kc->at;
		va = kc->va;
		used = 0;
		for (n = 0; kc->at < kc->n && n < KDAT_MAX_REQUESTS - 1; n++) {
			int room = KDAT_MAX_SEGMENTS - 2 - used;

			if (!room)
				break;
			ki_cmd_take(c, kc, min(c->a->max_iov, room), &r[n],
				    &remote[n]);
			remote[n].rmr_context = kc->read_stag;
			used += r[n].num_segments;
		}
		if (kc->at == kc->n) {
			ki_tx_request(kc->tx, segs, &r[n++]);
		} else {
			kc->part.done = ki_part_done;
			r[n - 1].completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
			r[n - 1].user_cookie.as_ptr = &kc->part;
		}
		/* When the answer is posted it may complete, and @kc be freed. */
		used = kc->at < kc->n;
		ret = ki_tx_is_part(kc->tx) ? ki_post_part(c, kc, r) :
					      ki_post(c, n, r, true);
		if (ret != DAT_SUCCESS) {
			kc->at = at;
			kc->va = va;
		}
	} while (ret == DAT_SUCCESS && used);
	return ki_post_errno(ret);
}

static void ki_read_done(struct ki_conn *c, struct ki_wr *wr, bool ok)
{
	struct ki_cmd *kc = container_of(wr, struct ki_cmd, wr);
	struct iscsit_cmd *cmd = ki_of(kc);

	ki_cmd_unmap(cmd);
	/* LIO ends commands that were not executed when it releases the connection. */
	if (!ok)
		return;
	iscsit_stop_dataout_timer(cmd);
	cmd->write_data_done = cmd->se_cmd.data_length;
	spin_lock_bh(&cmd->istate_lock);
	cmd->cmd_flags |= ICF_GOT_LAST_DATAOUT;
	cmd->i_state = ISTATE_RECEIVED_LAST_DATAOUT;
	spin_unlock_bh(&cmd->istate_lock);
	target_execute_cmd(&cmd->se_cmd);
}

/* Post RDMA Reads of the remaining data. Return as ki_push_answer() does. */
int ki_push_reads(struct ki_conn *c, struct ki_cmd *kc)
{
	DAT_RMR_TRIPLET remote;
	DAT_DTO_COOKIE cookie;
	KDAT_REQUEST r;
	DAT_COUNT at;
	DAT_RETURN ret;
	bool last;
	u64 va;

	kc->wr.done = ki_read_done;
	kc->part.done = ki_part_done;
	do {
		at = kc->at;
		va = kc->va;
		ki_cmd_take(c, kc, c->a->max_read_iov, &r, &remote);
		remote.rmr_context = kc->write_stag;
		last = kc->at == kc->n;
		cookie.as_ptr = last ? &kc->wr : &kc->part;
		/* Not as a list: some adapters take no Reads there. litmus: iser-room */
		atomic_inc(&c->posted);
		ret = dat_ep_post_rdma_read(c->ep, r.num_segments, r.local_iov,
					    cookie, &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS) {
			kc->at = at;
			kc->va = va;
			if (atomic_dec_and_test(&c->posted))
				ki_wake_room(c);
		}
	} while (ret == DAT_SUCCESS && !last);
	return ki_post_errno(ret);
}

/* Map the data of a write that the initiator has not sent unsolicited. */
int ki_fetch(struct ki_conn *c, struct ki_cmd *kc)
{
	struct iscsit_cmd *cmd = ki_of(kc);
	int err;

	err = ki_cmd_map(c, cmd, cmd->write_data_done,
			 cmd->se_cmd.data_length - cmd->write_data_done,
			 DMA_FROM_DEVICE);
	if (err)
		return err;
	kc->va = kc->write_va;
	kc->reads = true;
	return 0;
}

/*
 * iscsit_get_dataout(): fetch the data that the initiator has not sent unsolicited. Some of
 * LIO's callers ignore an error, and the others would call again without a pause, so queue.c
 * deals with a failure.
 */
int ki_get_dataout(struct iscsit_conn *conn, struct iscsit_cmd *cmd, bool recovery)
{
	struct ki_conn *c = conn->context;
	struct ki_cmd *kc = ki_cmd(cmd);

	kc->asked = true;
	/* LIO completes the command when it releases the connection. */
	if (!kc->writable) {
		ki_conn_break(c, "a write without memory to read from");
		return 0;
	}
	kc->step = KI_FETCH;
	ki_conn_submit(c, kc);
	return 0;
}
