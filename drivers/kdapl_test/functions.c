// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions that kdapl-test dapl -T F tries, one after another, in loopback: those
 * of objects here, those of connections in functions_conn.c. Each has an open adapter
 * of its own, whose end frees what it has made. All run in the thread of the session.
 */
#include <linux/gfp.h>
#include <linux/slab.h>
#include "functions.h"

#define KT_FN_MS	5000		/* for an event */

/* ---- What functions share -------------------------------------------------------------- */

/* Whether a call has returned what it should; its subtype does not matter. */
bool kt_fn_is(struct kt_fn *f, DAT_RETURN ret, DAT_RETURN want, const char *call)
{
	const char *is = "?", *should = "?", *subtype;

	if (DAT_GET_TYPE(ret) == DAT_GET_TYPE(want))
		return true;
	dat_strerror(ret, &is, &subtype);
	dat_strerror(want, &should, &subtype);
	snprintf(f->why, sizeof(f->why), "%s: %s, not %s", call, is, should);
	return false;
}

bool kt_fn_ok(struct kt_fn *f, DAT_RETURN ret, const char *call)
{
	return kt_fn_is(f, ret, DAT_SUCCESS, call);
}

bool kt_fn_true(struct kt_fn *f, bool is, const char *what)
{
	if (!is)
		snprintf(f->why, sizeof(f->why), "it is not so that %s", what);
	return is;
}

/* Wait for the next event. */
bool kt_fn_event(struct kt_fn *f, DAT_EVENT_NUMBER want, DAT_EVENT *event)
{
	unsigned long end = jiffies + msecs_to_jiffies(KT_FN_MS);
	struct kt_session *s = f->s;
	unsigned long now;
	int seen;

	memset(event, 0, sizeof(*event));
	for (;;) {
		seen = atomic_read(&s->kicks);
		if (dat_evd_dequeue(f->evd, event) == DAT_SUCCESS)
			break;
		now = jiffies;
		if (READ_ONCE(s->stop) || time_after_eq(now, end)) {
			snprintf(f->why, sizeof(f->why), "there is no %s",
				 kdat_event_name(want));
			return false;
		}
		wait_event_idle_timeout(s->wq, READ_ONCE(s->stop) ||
					atomic_read(&s->kicks) != seen,
					end - now);
	}
	if (event->event_number == want)
		return true;
	snprintf(f->why, sizeof(f->why), "%s, not %s",
		 kdat_event_name(event->event_number), kdat_event_name(want));
	return false;
}

bool kt_fn_state(struct kt_fn *f, DAT_EP_HANDLE ep, DAT_EP_STATE want)
{
	DAT_EP_STATE state;

	if (!kt_fn_ok(f, dat_ep_get_status(ep, &state, NULL, NULL),
		      "dat_ep_get_status"))
		return false;
	if (state == want)
		return true;
	snprintf(f->why, sizeof(f->why), "the Endpoint is in state %d, not %d",
		 state, want);
	return false;
}

DAT_LMR_TRIPLET kt_fn_seg(const struct kt_fn *f, bool received, u32 len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = f->base + (received ? KT_FN_ROOM : 0),
		.segment_length = len,
		.lmr_context = f->context,
	};
}

bool kt_fn_ep(struct kt_fn *f, DAT_SRQ_HANDLE srq, DAT_EP_HANDLE *ep)
{
	struct dat_side dat = {
		.side.room = KT_FN_ROOM,
		.ia = f->ia,
		.pz = f->pz,
		.srq = srq,
		.evd = f->evd,
		.recv_evd = f->evd,
		.conn_evd = f->evd,
	};

	return kt_fn_true(f, !dat_side_ep(&dat, 8, ep),
			  "an Endpoint can be created");
}

/* ---- Objects ----------------------------------------------------------------------------- */

static bool kt_fn_pz(struct kt_fn *f)
{
	DAT_PZ_HANDLE pz;

	return kt_fn_ok(f, dat_pz_create(f->ia, &pz), "dat_pz_create") &&
	       kt_fn_ok(f, dat_pz_free(pz), "dat_pz_free") &&
	       kt_fn_is(f, dat_pz_free(pz), DAT_INVALID_HANDLE,
			"dat_pz_free of a freed one") &&
	       kt_fn_is(f, dat_pz_free(f->pz), DAT_INVALID_STATE,
			"dat_pz_free of one in use");
}

static bool kt_fn_evd(struct kt_fn *f)
{
	DAT_EVENT event = {
		.event_number = DAT_SOFTWARE_EVENT,
		.event_data.software_event_data.pointer = f,
	};
	DAT_EVD_PARAM param;
	DAT_EVENT got;

	return kt_fn_ok(f, dat_evd_resize(f->evd, 200), "dat_evd_resize") &&
	       kt_fn_ok(f, dat_evd_query(f->evd, DAT_EVD_FIELD_EVD_QLEN, &param),
			"dat_evd_query") &&
	       kt_fn_true(f, param.evd_qlen >= 200, "the EVD has the new length") &&
	       kt_fn_ok(f, dat_evd_post_se(f->evd, &event), "dat_evd_post_se") &&
	       kt_fn_event(f, DAT_SOFTWARE_EVENT, &got) &&
	       kt_fn_true(f, got.event_data.software_event_data.pointer == f,
			  "the event has its pointer") &&
	       kt_fn_is(f, dat_evd_dequeue(f->evd, &got), DAT_QUEUE_EMPTY,
			"dat_evd_dequeue");
}

static bool kt_fn_endpoint(struct kt_fn *f)
{
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, false, 64);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;

	return kt_fn_ep(f, NULL, &ep) &&
	       kt_fn_state(f, ep, DAT_EP_STATE_UNCONNECTED) &&
	       kt_fn_ok(f, dat_ep_query(ep, DAT_EP_FIELD_PZ_HANDLE, &param),
			"dat_ep_query") &&
	       kt_fn_true(f, param.pz_handle == f->pz, "the Endpoint knows its PZ") &&
	       kt_fn_is(f, dat_ep_post_send(ep, 1, &seg, cookie, 0),
			DAT_INVALID_STATE, "dat_ep_post_send, not connected") &&
	       kt_fn_is(f, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG),
			DAT_INVALID_STATE, "dat_ep_disconnect, not connected") &&
	       kt_fn_ok(f, dat_ep_reset(ep), "dat_ep_reset") &&
	       kt_fn_is(f, dat_evd_free(f->evd), DAT_INVALID_STATE,
			"dat_evd_free of one in use") &&
	       kt_fn_ok(f, dat_ep_free(ep), "dat_ep_free");
}

static bool kt_fn_psp(struct kt_fn *f)
{
	DAT_PSP_HANDLE psp, second;
	DAT_CONN_QUAL qual;

	return kt_fn_ok(f, dat_psp_create_any(f->ia, &qual, f->evd,
					      DAT_PSP_CONSUMER_FLAG, &psp),
			"dat_psp_create_any") &&
	       kt_fn_is(f, dat_psp_create(f->ia, qual, f->evd,
					  DAT_PSP_CONSUMER_FLAG, &second),
			DAT_CONN_QUAL_IN_USE, "dat_psp_create, the same qualifier") &&
	       kt_fn_ok(f, dat_psp_free(psp), "dat_psp_free") &&
	       kt_fn_ok(f, dat_psp_create(f->ia, qual, f->evd,
					  DAT_PSP_CONSUMER_FLAG, &psp),
			"dat_psp_create") &&
	       kt_fn_ok(f, dat_psp_free(psp), "dat_psp_free");
}

static bool kt_fn_lmr(struct kt_fn *f)
{
	DAT_LMR_PARAM param;

	return kt_fn_ok(f, dat_lmr_query(f->lmr, DAT_LMR_FIELD_ALL, &param),
			"dat_lmr_query") &&
	       kt_fn_true(f, param.length == 2 * KT_FN_ROOM,
			  "the LMR knows its length") &&
	       kt_fn_true(f, param.lmr_context == f->context,
			  "the LMR knows its context") &&
	       kt_fn_ok(f, dat_lmr_free(f->lmr), "dat_lmr_free") &&
	       kt_fn_is(f, dat_lmr_free(f->lmr), DAT_INVALID_HANDLE,
			"dat_lmr_free of a freed one");
}

static bool kt_fn_srq(struct kt_fn *f)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	DAT_LMR_TRIPLET seg = kt_fn_seg(f, true, 64);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;

	return kt_fn_ok(f, dat_srq_create(f->ia, f->pz, &attr, &srq),
			"dat_srq_create") &&
	       kt_fn_ok(f, dat_srq_post_recv(srq, 1, &seg, cookie),
			"dat_srq_post_recv") &&
	       kt_fn_ok(f, dat_srq_resize(srq, 16), "dat_srq_resize") &&
	       kt_fn_ok(f, dat_srq_set_lw(srq, 1), "dat_srq_set_lw") &&
	       kt_fn_ok(f, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param),
			"dat_srq_query") &&
	       kt_fn_true(f, param.max_recv_dtos >= 16, "the SRQ has the new length") &&
	       kt_fn_true(f, param.available_dto_count == 1,
			  "the SRQ has one buffer") &&
	       kt_fn_ep(f, srq, &ep) &&
	       kt_fn_is(f, dat_srq_free(srq), DAT_INVALID_STATE,
			"dat_srq_free of one in use") &&
	       kt_fn_ok(f, dat_ep_free(ep), "dat_ep_free") &&
	       kt_fn_ok(f, dat_srq_free(srq), "dat_srq_free");
}

static const struct kt_function kt_fn_of_objects[] = {
	{ "pz", kt_fn_pz },
	{ "evd", kt_fn_evd },
	{ "endpoint", kt_fn_endpoint },
	{ "psp", kt_fn_psp },
	{ "lmr", kt_fn_lmr },
	{ "srq", kt_fn_srq },
	{ }
};

/* ---- Trying them --------------------------------------------------------------------------- */

static void kt_fn_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kt_fn *f = data;

	kt_kick(f->s);
}

static bool kt_fn_address(struct kt_fn *f)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	bool ok = attr &&
		kt_fn_ok(f, dat_ia_query(f->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR,
					 attr, DAT_PROVIDER_FIELD_NONE, NULL),
			 "dat_ia_query");

	if (ok)
		memcpy(&f->addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	kfree(attr);
	return ok;
}

static bool kt_fn_open(struct kt_fn *f, const char *ia)
{
	DAT_UPCALL_OBJECT upcall = { f, kt_fn_upcall };
	DAT_REGION_DESCRIPTION region = { .for_va = f->buf };
	DAT_RETURN ret = dat_ia_open((char *)ia, 8, &f->async_evd, &f->ia);

	if (!kt_fn_ok(f, ret, "dat_ia_open")) {
		f->ia = NULL;
		return false;
	}
	return kt_fn_address(f) &&
	       kt_fn_ok(f, dat_pz_create(f->ia, &f->pz), "dat_pz_create") &&
	       kt_fn_ok(f, dat_evd_kcreate(f->ia, 64, DAT_UPCALL_NOTIFY, &upcall,
					   DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
					   DAT_EVD_CONNECTION_FLAG |
					   DAT_EVD_SOFTWARE_FLAG |
					   DAT_EVD_RMR_BIND_FLAG, &f->evd),
			"dat_evd_kcreate") &&
	       kt_fn_ok(f, dat_lmr_kcreate(f->ia, DAT_MEM_TYPE_VIRTUAL, region,
					   2 * KT_FN_ROOM, f->pz,
					   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &f->lmr,
					   &f->context, &f->key, NULL, &f->base),
			"dat_lmr_kcreate");
}

static void kt_fn_try(struct kt_session *s, const struct kt_command *cmd,
		      const struct kt_function *function)
{
	struct kt_fn *f = kzalloc(sizeof(*f), GFP_KERNEL);
	bool ok;

	if (!f)
		return;
	f->s = s;
	f->buf = bench_buf_alloc(KT_FN_ROOM);
	ok = kt_fn_true(f, f->buf, "there is memory") && kt_fn_open(f, cmd->ia) &&
	     function->try(f);
	kt_say(s, "function %s %s%s\n", function->name, ok ? "ok" : "failed ",
	       ok ? "" : f->why);
	/* Refused while a driver does not let go of a connection: the device keeps the buffer. */
	if (!f->ia || dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS)
		bench_buf_free(f->buf, KT_FN_ROOM);
	kfree(f);
}

void kt_functions(struct kt_session *s, const struct kt_command *cmd)
{
	const struct kt_function *function;

	for (function = kt_fn_of_objects; function->name; function++)
		if (!READ_ONCE(s->stop))
			kt_fn_try(s, cmd, function);
	for (function = kt_fn_of_connections; function->name; function++)
		if (!READ_ONCE(s->stop))
			kt_fn_try(s, cmd, function);
}
