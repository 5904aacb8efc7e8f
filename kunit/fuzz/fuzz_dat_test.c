// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * DAT calls with arguments that a consumer may get wrong; see fuzz.h. A message is a call on
 * the objects of one of two connected sides, its bytes are the arguments: handles, counts,
 * lengths, masks and flags, 8 bytes each. Pointers are always right, as the API trusts them.
 *
 * What the call did is its DAT_RETURN, with + if the request that it has posted succeeded and !
 * if that failed.
 */
#include "fixture.h"
#include "fuzz.h"

#define ARGS	12

enum kind {
	K_EP_CREATE, K_EP_MODIFY, K_EP_QUERY, K_EP_WATERMARK, K_EP_DISCONNECT, K_EP_RESET,
	K_EP_FREE, K_EVD_CREATE, K_EVD_RESIZE, K_EVD_QUERY, K_LMR_CREATE, K_LMR_QUERY, K_LMR_SYNC,
	K_LMR_FREE, K_SRQ_CREATE, K_SRQ_RESIZE, K_SRQ_LW, K_SRQ_POST, K_SRQ_FREE, K_PZ_FREE,
	K_PSP_CREATE, K_IA_QUERY, K_CONNECT, K_RECV, K_SEND, K_WRITE, K_READ, KINDS
};

/* @n numbers of 8 bytes, up to 12 */
#define NUMBERS(n)	("\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08" + 12 - (n))

static const struct fuzz_kind kinds[KINDS] = {
	[K_EP_CREATE] = { "ep_create", NUMBERS(12), true },
	[K_EP_MODIFY] = { "ep_modify", NUMBERS(10), true },
	[K_EP_QUERY] = { "ep_query", NUMBERS(2), true },
	[K_EP_WATERMARK] = { "ep_watermark", NUMBERS(3), true },
	[K_EP_DISCONNECT] = { "ep_disconnect", NUMBERS(2), true },
	[K_EP_RESET] = { "ep_reset", NUMBERS(1), true },
	[K_EP_FREE] = { "ep_free", NUMBERS(1), true },
	[K_EVD_CREATE] = { "evd_create", NUMBERS(4), true },
	[K_EVD_RESIZE] = { "evd_resize", NUMBERS(2), true },
	[K_EVD_QUERY] = { "evd_query", NUMBERS(2), true },
	[K_LMR_CREATE] = { "lmr_create", NUMBERS(7), true },
	[K_LMR_QUERY] = { "lmr_query", NUMBERS(2), true },
	[K_LMR_SYNC] = { "lmr_sync", NUMBERS(5), true },
	[K_LMR_FREE] = { "lmr_free", NUMBERS(1), true },
	[K_SRQ_CREATE] = { "srq_create", NUMBERS(5), true },
	[K_SRQ_RESIZE] = { "srq_resize", NUMBERS(2), true },
	[K_SRQ_LW] = { "srq_lw", NUMBERS(2), true },
	[K_SRQ_POST] = { "srq_post", NUMBERS(5), true },
	[K_SRQ_FREE] = { "srq_free", NUMBERS(1), true },
	[K_PZ_FREE] = { "pz_free", NUMBERS(1), true },
	[K_PSP_CREATE] = { "psp_create", NUMBERS(4), true },
	[K_IA_QUERY] = { "ia_query", NUMBERS(3), true },
	[K_CONNECT] = { "connect", NUMBERS(6), true },
	[K_RECV] = { "recv", NUMBERS(6), true },
	[K_SEND] = { "send", NUMBERS(6), true },
	[K_WRITE] = { "write", NUMBERS(9), true },
	[K_READ] = { "read", NUMBERS(9), true },
};

static const char * const corpus[] = {
#include "corpus/dat.inc"
};

static const char * const modules[] = { "kdapl", NULL };
static const struct fuzz_target target;

/* The sides, and what the calls have made last; where nothing was made, of the fixture. */
static struct kd_side *a, *p;
static DAT_EP_HANDLE ep;
static DAT_EVD_HANDLE evd;
static DAT_SRQ_HANDLE srq;
static DAT_LMR_HANDLE lmr;

#define H(handle)	((u64)(uintptr_t)(handle))
#define VA(side)	((u64)(uintptr_t)(side)->buf->va)

/* ---- Arguments ----------------------------------------------------------- */

/* Write the arguments of a call to v, ARGS of them. */
#define SET(...)							\
do {									\
	const u64 values[] = { __VA_ARGS__ };				\
									\
	static_assert(ARRAY_SIZE(values) <= ARGS);			\
	memcpy(v, values, sizeof(values));				\
} while (0)

/* Arguments that are right, of a call about memory. */
static void memory_defaults(enum kind kind, u64 *v)
{
	const u64 seg[] = { VA(a), 512, a->buf->lmr_context };

	switch (kind) {
	case K_LMR_CREATE:
		SET(DAT_MEM_TYPE_VIRTUAL, 0, 4096, H(a->pz), DAT_MEM_PRIV_ALL_FLAG,
		    DAT_VA_TYPE_VA, 0);
		break;
	case K_LMR_QUERY:
		SET(H(lmr), DAT_LMR_FIELD_ALL);
		break;
	case K_LMR_SYNC:
		SET(1, seg[0], seg[1], seg[2], 0);
		break;
	case K_LMR_FREE:
		SET(H(lmr));
		break;
	case K_SRQ_CREATE:
		SET(H(a->pz), 16, 2, DAT_SRQ_LW_DEFAULT, 0);
		break;
	case K_SRQ_RESIZE:
		SET(H(srq), 32);
		break;
	case K_SRQ_LW:
		SET(H(srq), 4);
		break;
	case K_SRQ_POST:
		SET(H(srq), 1, seg[0], seg[1], seg[2]);
		break;
	case K_SRQ_FREE:
		SET(H(srq));
		break;
	case K_RECV:
	case K_SEND:
		SET(H(a->ep), 1, seg[0], seg[1], seg[2], DAT_COMPLETION_DEFAULT_FLAG);
		break;
	default:
		SET(H(a->ep), 1, seg[0], seg[1], seg[2], VA(p), 512, p->buf->rmr_context,
		    DAT_COMPLETION_DEFAULT_FLAG);
	}
}

/* Arguments of a call that is right. */
static void defaults(enum kind kind, u64 *v)
{
	switch (kind) {
	case K_EP_CREATE:
		SET(H(a->pz), H(a->recv_evd), H(a->req_evd), H(a->conn_evd), SZ_64K, SZ_64K,
		    8, 8, 2, 2, 1, 0);
		break;
	case K_EP_MODIFY:
		SET(H(ep), DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, SZ_64K, SZ_64K, 16, 16, 2, 2, 1, 1);
		break;
	case K_EP_QUERY:
		SET(H(ep), DAT_EP_FIELD_ALL);
		break;
	case K_EP_WATERMARK:
		SET(H(ep), 4, 8);
		break;
	case K_EP_DISCONNECT:
		SET(H(a->ep), DAT_CLOSE_ABRUPT_FLAG);
		break;
	case K_EP_RESET:
	case K_EP_FREE:
		SET(H(ep));
		break;
	case K_EVD_CREATE:
		SET(16, DAT_UPCALL_DISABLE, DAT_EVD_DTO_FLAG, 0);
		break;
	case K_EVD_RESIZE:
		SET(H(evd), 32);
		break;
	case K_EVD_QUERY:
		SET(H(evd), DAT_EVD_FIELD_ALL);
		break;
	case K_PZ_FREE:
		SET(H(a->pz));
		break;
	case K_PSP_CREATE:
		SET(0, H(a->cr_evd), DAT_PSP_CONSUMER_FLAG, 0);
		break;
	case K_IA_QUERY:
		SET(H(a->ia), DAT_IA_FIELD_ALL, DAT_PROVIDER_FIELD_ALL);
		break;
	case K_CONNECT:
		/* Nobody listens there. */
		SET(H(ep), 1, 1000000, 16, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
		break;
	default:
		memory_defaults(kind, v);
	}
}

static DAT_EP_ATTR ep_attr(const u64 *v)
{
	DAT_EP_ATTR attr = kd_ep_attr();

	attr.max_message_size = v[0];
	attr.max_rdma_size = v[1];
	attr.max_recv_dtos = v[2];
	attr.max_request_dtos = v[3];
	attr.max_recv_iov = v[4];
	attr.max_request_iov = v[5];
	attr.max_rdma_read_in = v[6];
	attr.max_rdma_read_out = v[7];
	return attr;
}

/* ---- Calls --------------------------------------------------------------- */

static DAT_RETURN ep_create(const u64 *v)
{
	DAT_EP_ATTR attr = ep_attr(v + 4);

	return dat_ep_create(a->ia, (void *)v[0], (void *)v[1], (void *)v[2], (void *)v[3],
			     &attr, &ep);
}

static DAT_RETURN ep_modify(const u64 *v)
{
	DAT_EP_PARAM *param = kzalloc(sizeof(*param), GFP_KERNEL);
	DAT_RETURN ret;

	if (!param)
		return DAT_INSUFFICIENT_RESOURCES;
	param->pz_handle = a->pz;
	param->recv_evd_handle = a->recv_evd;
	param->request_evd_handle = a->req_evd;
	param->connect_evd_handle = a->conn_evd;
	param->ep_attr = ep_attr(v + 2);
	ret = dat_ep_modify((void *)v[0], v[1], param);
	kfree(param);
	return ret;
}

/* Calls that ask: what they tell goes to a page. */
static DAT_RETURN query(enum kind kind, const u64 *v)
{
	void *page = (void *)get_zeroed_page(GFP_KERNEL);
	DAT_RETURN ret;

	BUILD_BUG_ON(sizeof(DAT_EP_PARAM) > PAGE_SIZE / 2);
	BUILD_BUG_ON(sizeof(DAT_IA_ATTR) > PAGE_SIZE / 2);
	BUILD_BUG_ON(sizeof(DAT_PROVIDER_ATTR) > PAGE_SIZE / 2);
	if (!page)
		return DAT_INSUFFICIENT_RESOURCES;
	switch (kind) {
	case K_EP_QUERY:
		ret = dat_ep_query((void *)v[0], v[1], page);
		break;
	case K_EVD_QUERY:
		ret = dat_evd_query((void *)v[0], v[1], page);
		break;
	case K_LMR_QUERY:
		ret = dat_lmr_query((void *)v[0], v[1], page);
		break;
	default:
		ret = dat_ia_query((void *)v[0], NULL, v[1], page, v[2],
				   page + PAGE_SIZE / 2);
	}
	free_page((unsigned long)page);
	return ret;
}

static DAT_RETURN lmr_create(const u64 *v)
{
	DAT_REGION_DESCRIPTION region = { .for_va = a->buf->va + v[1] % PAGE_SIZE };

	/* Longer memory than there is would be the consumer's lie about a pointer. */
	return dat_lmr_kcreate(a->ia, v[0] == DAT_MEM_TYPE_VIRTUAL ? v[0] : 99, region,
			       v[2] <= KD_BUF_LEN - PAGE_SIZE ? v[2] : 0, (void *)v[3], v[4],
			       v[5], v[6], &lmr, NULL, NULL, NULL, NULL);
}

static DAT_RETURN srq_create(const u64 *v)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = v[1],
		.max_recv_iov = v[2],
		.low_watermark = v[3],
	};

	return dat_srq_create(a->ia, (void *)v[0], &attr, &srq);
}

static DAT_RETURN connect(const u64 *v)
{
	static u8 data[256];

	/* A longer size would be a lie about a pointer. */
	return dat_ep_connect((void *)v[0], a->addr, v[1], v[2],
			      (DAT_COUNT)v[3] > (DAT_COUNT)sizeof(data) ? sizeof(data) : v[3],
			      data, v[4], v[5]);
}

/* Post a request; more segments than one are all the same. */
static DAT_RETURN post(enum kind kind, const u64 *v)
{
	DAT_RMR_TRIPLET remote = {
		.virtual_address = v[5], .segment_length = v[6], .rmr_context = v[7],
	};
	DAT_COUNT n = min_t(DAT_COUNT, v[1], 16);
	DAT_LMR_TRIPLET seg[16];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(seg); i++)
		seg[i] = (DAT_LMR_TRIPLET) {
			.virtual_address = v[2], .segment_length = v[3], .lmr_context = v[4],
		};
	switch (kind) {
	case K_RECV:
		return dat_ep_post_recv((void *)v[0], n, seg, kd_cookie(1), v[5]);
	case K_SEND:
		return dat_ep_post_send((void *)v[0], n, seg, kd_cookie(2), v[5]);
	case K_WRITE:
		return dat_ep_post_rdma_write((void *)v[0], n, seg, kd_cookie(2), &remote, v[8]);
	case K_READ:
		return dat_ep_post_rdma_read((void *)v[0], n, seg, kd_cookie(2), &remote, v[8]);
	default:
		return dat_srq_post_recv((void *)v[0], n, seg, kd_cookie(1));
	}
}

static DAT_RETURN lmr_sync(const u64 *v)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = v[1], .segment_length = v[2], .lmr_context = v[3],
	};

	return dat_lmr_sync_rdma_read(a->ia, &seg, v[0] > 1 ? 0 : v[0]);
}

static DAT_RETURN call(enum kind kind, const u64 *v)
{
	DAT_PSP_HANDLE psp;

	switch (kind) {
	case K_EP_CREATE:
		return ep_create(v);
	case K_EP_MODIFY:
		return ep_modify(v);
	case K_EP_WATERMARK:
		return dat_ep_set_watermark((void *)v[0], v[1], v[2]);
	case K_EP_DISCONNECT:
		return dat_ep_disconnect((void *)v[0], v[1]);
	case K_EP_RESET:
		return dat_ep_reset((void *)v[0]);
	case K_EP_FREE:
		return v[0] == H(a->ep) ? DAT_INVALID_HANDLE : dat_ep_free((void *)v[0]);
	case K_EVD_CREATE:
		return dat_evd_kcreate(a->ia, v[0], v[1], NULL, v[2], &evd);
	case K_EVD_RESIZE:
		return dat_evd_resize((void *)v[0], v[1]);
	case K_LMR_CREATE:
		return lmr_create(v);
	case K_LMR_SYNC:
		return lmr_sync(v);
	case K_LMR_FREE:
		return dat_lmr_free((void *)v[0]);
	case K_SRQ_CREATE:
		return srq_create(v);
	case K_SRQ_RESIZE:
		return dat_srq_resize((void *)v[0], v[1]);
	case K_SRQ_LW:
		return dat_srq_set_lw((void *)v[0], v[1]);
	case K_SRQ_FREE:
		return dat_srq_free((void *)v[0]);
	case K_PZ_FREE:
		return dat_pz_free((void *)v[0]);
	case K_PSP_CREATE:
		return dat_psp_create(a->ia, kd_port() + v[0], (void *)v[1], v[2], &psp);
	case K_CONNECT:
		return connect(v);
	case K_EP_QUERY:
	case K_EVD_QUERY:
	case K_LMR_QUERY:
	case K_IA_QUERY:
		return query(kind, v);
	default:
		return post(kind, v);
	}
}

/* ---- Inputs -------------------------------------------------------------- */

/* Wait for the completion of a request that was posted, and for what a failed one ends. */
static const char *completes(struct kunit *test)
{
	DAT_EVENT event;

	if (!kd_wait_event(a->req_evd, &event, KD_TIMEOUT_MS)) {
		KUNIT_FAIL(test, "no completion of a request");
		return "?";
	}
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		return "+";
	kd_wait_state(a->ep, DAT_EP_STATE_DISCONNECTED);
	return "!";
}

/* Does a request that was posted complete with an event? */
static bool is_told(enum kind kind, const u64 *v)
{
	u64 flags = kind == K_SEND ? v[5] : v[8];

	return (kind == K_SEND || kind == K_WRITE || kind == K_READ) &&
	       !((DAT_COMPLETION_FLAGS)flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

static void run_input(struct fuzz_run *run)
{
	struct kunit *test = run->test;
	unsigned int i;

	a = kd_open_param(test);
	p = kd_open_param(test);
	kd_setup(a, NULL);
	kd_setup(p, NULL);
	for (i = 0; i < FUZZ_MESSAGES; i++)
		kd_recv(p, SZ_32K + i * SZ_1K, SZ_1K, i);
	kd_connect_pair(a, p);
	ep = a->ep;
	evd = a->recv_evd;
	lmr = a->buf->lmr;
	srq = NULL;
	for (i = 0; i < run->input->n; i++) {
		const struct fuzz_message *message = &run->input->message[i];
		u64 v[ARGS] = {};
		DAT_RETURN ret;

		defaults(message->kind, v);
		fuzz_apply(&target, message, v, sizeof(v), sizeof(v));
		ret = call(message->kind, v);
		fuzz_say(run, "%x%s", DAT_GET_TYPE(ret) >> 16,
			 ret == DAT_SUCCESS && is_told(message->kind, v) ? completes(test) : "");
		if (message->kind == K_EP_DISCONNECT && ret == DAT_SUCCESS)
			kd_wait_state((void *)v[0], DAT_EP_STATE_DISCONNECTED);
	}
	kd_close(a);
	kd_close(p);
}

/* Others get on with their work. */
static void check(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);

	kd_connect_pair(pair.a, pair.p);
	kd_ping(pair.a, pair.p);
	kd_close(pair.a);
	kd_close(pair.p);
}

FUZZ_TARGET(dat, .run = run_input, .check = check)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(dat_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(dat_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-dat", cases, "DAT calls with arguments of any value");
