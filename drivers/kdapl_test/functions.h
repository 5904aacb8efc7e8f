/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The common part of the functions that kdapl-test dapl -T F tries, see functions.c. */
#ifndef KDAPL_TEST_FUNCTIONS_H
#define KDAPL_TEST_FUNCTIONS_H

#include "kdapl_test.h"

#define KT_FN_ROOM	4096U		/* bytes of each of the two halves of the buffer */
#define KT_FN_PAGES	DIV_ROUND_UP(2 * KT_FN_ROOM, PAGE_SIZE)	/* that hold the buffer */

/*
 * struct kt_fn - an adapter that is open for one function; closing it frees the rest
 * @evd: every event but the asynchronous ones
 * @addr: of the adapter, for loopback
 * @buf: what is sent, then what is received into
 * @context: lmr_context of it, with @key for the peer, from @base on
 * @a: Endpoint that connects to @p
 * @why: what was not as it should be
 */
struct kt_fn {
	struct kt_session *s;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	struct sockaddr_storage addr;
	u8 *buf;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT key;
	DAT_VADDR base;
	DAT_EP_HANDLE a;
	DAT_EP_HANDLE p;
	char why[160];
};

/* A function returns whether all was as it should be. */
struct kt_function {
	const char *name;
	bool (*try)(struct kt_fn *f);
};

bool kt_fn_is(struct kt_fn *f, DAT_RETURN ret, DAT_RETURN want, const char *call);
bool kt_fn_ok(struct kt_fn *f, DAT_RETURN ret, const char *call);
bool kt_fn_true(struct kt_fn *f, bool is, const char *what);
bool kt_fn_event(struct kt_fn *f, DAT_EVENT_NUMBER want, DAT_EVENT *event);
bool kt_fn_state(struct kt_fn *f, DAT_EP_HANDLE ep, DAT_EP_STATE want);
DAT_LMR_TRIPLET kt_fn_seg(const struct kt_fn *f, bool received, u32 len);
bool kt_fn_ep(struct kt_fn *f, DAT_SRQ_HANDLE srq, DAT_EP_HANDLE *ep);

extern const struct kt_function kt_fn_of_connections[];

#endif
