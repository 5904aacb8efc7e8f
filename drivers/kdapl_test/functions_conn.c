// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions of connections, in loopback, see functions.c: establishing and ending them,
 * and what goes over them.
 */
#include "functions.h"

#define KT_FN_TIMEOUT	(5 * USEC_PER_SEC)

/* ---- Connecting ---------------------------------------------------------------------------- */

static bool kt_fn_listen(struct kt_fn *f, DAT_CONN_QUAL *qual, DAT_PSP_HANDLE *psp)
{
	return kt_fn_ok(f, dat_psp_create_any(f->ia, qual, f->evd,
					      DAT_PSP_CONSUMER_FLAG, psp),
			"dat_psp_create_any");
}

static bool kt_fn_dial(struct kt_fn *f, DAT_CONN_QUAL qual)
{
	return kt_fn_ok(f, dat_ep_connect(f->a, kt_address(&f->addr), qual,
					  KT_FN_TIMEOUT, 4, "dial",
					  DAT_QOS_BEST_EFFORT,
					  DAT_CONNECT_DEFAULT_FLAG),
			"dat_ep_connect");
}

/* Connect @f->a to @f->p, which exist. */
static bool kt_fn_connect(struct kt_fn *f)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	return kt_fn_listen(f, &qual, &psp) && kt_fn_dial(f, qual) &&
	       kt_fn_event(f, DAT_CONNECTION_REQUEST_EVENT, &event) &&
	       kt_fn_ok(f, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					 f->p, 0, NULL), "dat_cr_accept") &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_ESTABLISHED, &event) &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_ESTABLISHED, &event) &&
	       kt_fn_ok(f, dat_psp_free(psp), "dat_psp_free");
}

static bool kt_fn_disconnect(struct kt_fn *f)
{
	DAT_EVENT event;

	return kt_fn_ok(f, dat_ep_disconnect(f->a, DAT_CLOSE_GRACEFUL_FLAG),
			"dat_ep_disconnect") &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_DISCONNECTED, &event) &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_DISCONNECTED, &event) &&
	       kt_fn_state(f, f->a, DAT_EP_STATE_DISCONNECTED) &&
	       kt_fn_state(f, f->p, DAT_EP_STATE_DISCONNECTED);
}

static bool kt_fn_pair(struct kt_fn *f, DAT_SRQ_HANDLE srq)
{
	return kt_fn_ep(f, NULL, &f->a) && kt_fn_ep(f, srq, &f->p) &&
	       kt_fn_connect(f);
}

static bool kt_fn_nobody(struct kt_fn *f)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	return kt_fn_ep(f, NULL, &f->a) && kt_fn_listen(f, &qual, &psp) &&
	       kt_fn_ok(f, dat_psp_free(psp), "dat_psp_free") &&
	       kt_fn_dial(f, qual) &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event) &&
	       kt_fn_state(f, f->a, DAT_EP_STATE_DISCONNECTED);
}

static bool kt_fn_rejected(struct kt_fn *f)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	return kt_fn_ep(f, NULL, &f->a) && kt_fn_listen(f, &qual, &psp) &&
	       kt_fn_dial(f, qual) &&
	       kt_fn_event(f, DAT_CONNECTION_REQUEST_EVENT, &event) &&
	       kt_fn_ok(f, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle,
					 2, "no"), "dat_cr_reject") &&
	       kt_fn_event(f, DAT_CONNECTION_EVENT_PEER_REJECTED, &event) &&
	       kt_fn_ok(f, dat_ep_reset(f->a), "dat_ep_reset") &&
	       kt_fn_state(f, f->a, DAT_EP_STATE_UNCONNECTED);
}

static bool kt_fn_again(struct kt_fn *f)
{
	int i;

	if (!kt_fn_pair(f, NULL))
		return false;
	for (i = 0; i < 3; i++)
		if (!kt_fn_disconnect(f) ||
		    !kt_fn_ok(f, dat_ep_reset(f->a), "dat_ep_reset") ||
		    !kt_fn_ok(f, dat_ep_reset(f->p), "dat_ep_reset") ||
		    !kt_fn_connect(f))
			return false;
	return kt_fn_disconnect(f);
}

/* ---- Transfers ----------------------------------------------------------------------------- */

static DAT_DTO_COOKIE kt_fn_cookie(u64 number)
{
	return (DAT_DTO_COOKIE) { .as_64 = number };
}

/* A request, and maybe a receive, complete in any order. */
static bool kt_fn_completions(struct kt_fn *f, int n)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	while (n--) {
		if (!kt_fn_event(f, DAT_DTO_COMPLETION_EVENT, &event))
			return false;
		dto = &event.event_data.dto_completion_event_data;
		if (dto->status != DAT_DTO_SUCCESS) {
			snprintf(f->why, sizeof(f->why), "request %llu: %s",
				 dto->user_cookie.as_64,
				 kdat_dto_status_name(dto->status));
			return false;
		}
	}
	return true;
}

static bool kt_fn_same(struct kt_fn *f, u32 len)
{
	return kt_fn_true(f, !memcmp(f->buf, f->buf + KT_FN_ROOM, len),
			  "what was sent has arrived");
}

static bool kt_fn_send_over(struct kt_fn *f)
{
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, false, 1000);

	memset(f->buf, 0x5a, 1000);
	return kt_fn_ok(f, dat_ep_post_send(f->a, 1, &seg, kt_fn_cookie(1), 0),
			"dat_ep_post_send") &&
	       kt_fn_completions(f, 2) && kt_fn_same(f, 1000);
}

static bool kt_fn_send(struct kt_fn *f)
{
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, true, KT_FN_ROOM);

	return kt_fn_pair(f, NULL) &&
	       kt_fn_ok(f, dat_ep_post_recv(f->p, 1, &seg, kt_fn_cookie(2), 0),
			"dat_ep_post_recv") &&
	       kt_fn_send_over(f) && kt_fn_disconnect(f);
}

static bool kt_fn_send_to_srq(struct kt_fn *f)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, true, KT_FN_ROOM);
	DAT_SRQ_HANDLE srq;

	return kt_fn_ok(f, dat_srq_create(f->ia, f->pz, &attr, &srq),
			"dat_srq_create") &&
	       kt_fn_ok(f, dat_srq_post_recv(srq, 1, &seg, kt_fn_cookie(2)),
			"dat_srq_post_recv") &&
	       kt_fn_pair(f, srq) && kt_fn_send_over(f) && kt_fn_disconnect(f);
}

static DAT_RMR_TRIPLET kt_fn_remote(const struct kt_fn *f, DAT_RMR_CONTEXT key,
				    u32 len)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = f->base + KT_FN_ROOM,
		.rmr_context = key,
		.segment_length = len,
	};
}

static bool kt_fn_write_to(struct kt_fn *f, DAT_RMR_CONTEXT key)
{
	DAT_RMR_TRIPLET remote = kt_fn_remote(f, key, 1000);
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, false, 1000);

	return kt_fn_ok(f, dat_ep_post_rdma_write(f->a, 1, &seg, kt_fn_cookie(1),
						  &remote, 0),
			"dat_ep_post_rdma_write");
}

static bool kt_fn_write(struct kt_fn *f)
{
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, true, 1000);

	memset(f->buf, 0x3c, 1000);
	return kt_fn_pair(f, NULL) && kt_fn_write_to(f, f->key) &&
	       kt_fn_completions(f, 1) &&
	       /* Over iWARP it may not have arrived before that. */
	       kt_fn_disconnect(f) &&
	       kt_fn_ok(f, dat_lmr_sync_rdma_write(f->ia, &seg, 1),
			"dat_lmr_sync_rdma_write") && kt_fn_same(f, 1000);
}

static bool kt_fn_read(struct kt_fn *f)
{
	DAT_RMR_TRIPLET remote = kt_fn_remote(f, f->key, 1000);
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, false, 1000);
	DAT_LMR_TRIPLET there = kt_fn_seg(f, true, 1000);

	memset(f->buf + KT_FN_ROOM, 0x77, 1000);
	return kt_fn_pair(f, NULL) &&
	       kt_fn_ok(f, dat_lmr_sync_rdma_read(f->ia, &there, 1),
			"dat_lmr_sync_rdma_read") &&
	       kt_fn_ok(f, dat_ep_post_rdma_read(f->a, 1, &seg, kt_fn_cookie(1),
						 &remote, 0),
			"dat_ep_post_rdma_read") &&
	       kt_fn_completions(f, 1) && kt_fn_same(f, 1000) &&
	       kt_fn_disconnect(f);
}

/* Memory that is bound by request: the peer writes it, then it is closed to all. */
static bool kt_fn_fmr(struct kt_fn *f)
{
	DAT_REGION_DESCRIPTION region = { .for_va = f->buf };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT key = 0;
	DAT_LMR_HANDLE fmr;

	memset(f->buf, 0x11, 1000);
	return kt_fn_ok(f, dat_lmr_allocate(f->ia, f->pz, KT_FN_PAGES, DAT_LMR_SCOPE_PZ,
					    &fmr), "dat_lmr_allocate") &&
	       kt_fn_pair(f, NULL) &&
	       kt_fn_ok(f, dat_lmr_fmr(fmr, DAT_MEM_TYPE_VIRTUAL, region, KT_FN_PAGES,
				       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, f->p,
				       kt_fn_cookie(3), 0, &context, &key),
			"dat_lmr_fmr") &&
	       kt_fn_completions(f, 1) && kt_fn_write_to(f, key) &&
	       kt_fn_completions(f, 1) &&
	       kt_fn_ok(f, dat_lmr_invalidate(fmr, f->p, kt_fn_cookie(4), 0),
			"dat_lmr_invalidate") &&
	       kt_fn_completions(f, 1) && kt_fn_disconnect(f) &&
	       kt_fn_same(f, 1000) &&
	       kt_fn_ok(f, dat_lmr_free(fmr), "dat_lmr_free");
}

/* A window on memory, which is closed again. */
static bool kt_fn_rmr(struct kt_fn *f)
{
	DAT_LMR_TRIPLET part = kt_fn_seg(f, true, KT_FN_ROOM), none = part;
	DAT_RMR_CONTEXT key = 0, closed;
	DAT_RMR_HANDLE rmr;
	DAT_EVENT event;

	none.segment_length = 0;
	memset(f->buf, 0x22, 1000);
	return kt_fn_ok(f, dat_rmr_create(f->pz, &rmr), "dat_rmr_create") &&
	       kt_fn_pair(f, NULL) &&
	       kt_fn_ok(f, dat_rmr_bind(rmr, f->lmr, &part, DAT_MEM_PRIV_ALL_FLAG,
					DAT_VA_TYPE_VA, f->p, kt_fn_cookie(3), 0,
					&key), "dat_rmr_bind") &&
	       kt_fn_event(f, DAT_RMR_BIND_COMPLETION_EVENT, &event) &&
	       kt_fn_write_to(f, key) && kt_fn_completions(f, 1) &&
	       kt_fn_ok(f, dat_rmr_bind(rmr, NULL, &none, 0, DAT_VA_TYPE_VA, f->p,
					kt_fn_cookie(4), 0, &closed),
			"dat_rmr_bind of nothing") &&
	       kt_fn_event(f, DAT_RMR_BIND_COMPLETION_EVENT, &event) &&
	       kt_fn_disconnect(f) && kt_fn_same(f, 1000) &&
	       kt_fn_ok(f, dat_rmr_free(rmr), "dat_rmr_free");
}

/* Both Endpoints report the end of the connection, and the request fails. */
static bool kt_fn_breaks(struct kt_fn *f)
{
	DAT_EVENT_NUMBER want = DAT_CONNECTION_EVENT_BROKEN;
	int i, completions = 0;
	DAT_EVENT event;

	for (i = 0; i < 3; i++) {
		if (kt_fn_event(f, want, &event))
			continue;
		if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
			continue;
		if (event.event_number != DAT_DTO_COMPLETION_EVENT ||
		    completions++ ||
		    event.event_data.dto_completion_event_data.status ==
		    DAT_DTO_SUCCESS)
			return false;
	}
	return kt_fn_true(f, completions == 1, "the Read has failed");
}

/* A Read of memory that is not offered ends the connection, at both Endpoints. */
static bool kt_fn_wrong_key(struct kt_fn *f)
{
	DAT_RMR_TRIPLET remote = kt_fn_remote(f, f->key + 0x100, 1000);
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, false, 1000);

	return kt_fn_pair(f, NULL) &&
	       kt_fn_ok(f, dat_ep_post_rdma_read(f->a, 1, &seg, kt_fn_cookie(1),
						 &remote, 0),
			"dat_ep_post_rdma_read") && kt_fn_breaks(f);
}

const struct kt_function kt_fn_of_connections[] = {
	{ "conn_nobody", kt_fn_nobody },
	{ "conn_rejected", kt_fn_rejected },
	{ "conn_again", kt_fn_again },
	{ "data_send", kt_fn_send },
	{ "data_srq", kt_fn_send_to_srq },
	{ "data_write", kt_fn_write },
	{ "data_read", kt_fn_read },
	{ "data_fmr", kt_fn_fmr },
	{ "data_rmr", kt_fn_rmr },
	{ "data_wrong_key", kt_fn_wrong_key },
	{ }
};
