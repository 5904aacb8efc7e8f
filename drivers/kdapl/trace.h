/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tracepoints. Objects are named by their handles, as the consumer knows them;
 * numbers of events, states and statuses by their names.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdapl

#if !defined(KDAPL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KDAPL_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>
#include "cm.h"
#include "ep.h"
#include "ia.h"
#include "srq.h"
#include "names.h"

/*
 * TRACE_DEFINE_ENUM() puts the numbers into the events' formats, so that
 * trace-cmd and perf can show the names, too.
 */
#define KDAPL_TRACE_WORD(code, word)	{ code, word },
#define KDAPL_TRACE_LAST_WORD(code, word)	{ code, word }
#define KDAPL_TRACE_ENUM(code)	TRACE_DEFINE_ENUM(code);
#define KDAPL_TRACE_NAME(code)	{ code, #code },
#define KDAPL_TRACE_LAST(code)	{ code, #code }

KDAPL_EVENTS(KDAPL_TRACE_ENUM, KDAPL_TRACE_ENUM)
KDAPL_DTO_STATUSES(KDAPL_TRACE_ENUM, KDAPL_TRACE_ENUM)
KDAPL_EP_STATES(KDAPL_TRACE_ENUM, KDAPL_TRACE_ENUM)
KDAPL_ENDS(KDAPL_END_TRACED, KDAPL_END_TRACED)

#define kdapl_show_event(number) \
	__print_symbolic(number, \
			 KDAPL_EVENTS(KDAPL_TRACE_NAME, KDAPL_TRACE_LAST))
#define kdapl_show_dto_status(status) \
	__print_symbolic(status, \
			 KDAPL_DTO_STATUSES(KDAPL_TRACE_NAME, KDAPL_TRACE_LAST))
#define kdapl_show_end(why) \
	__print_symbolic(why, \
			 KDAPL_ENDS(KDAPL_TRACE_WORD, KDAPL_TRACE_LAST_WORD))
#define kdapl_show_ep_state(state) \
	__print_symbolic(state, \
			 KDAPL_EP_STATES(KDAPL_TRACE_NAME, KDAPL_TRACE_LAST))

/* A receive buffer and the ledger of the Endpoint that has it. */
DECLARE_EVENT_CLASS(kdapl_recv,
	TP_PROTO(const struct kdapl_ep *ep, const struct kdapl_wr *wr),
	TP_ARGS(ep, wr),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u64, cookie)
		__field(u64, seq)
		__field(u64, taken)
		__field(u32, held)
		__field(u32, len)
		__field(u8, status)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->cookie = wr->cookie.as_64;
		__entry->seq = wr->seq;
		__entry->taken = ep->taken;
		__entry->held = ep->held;
		__entry->len = wr->len;
		__entry->status = wr->status;
	),
	TP_printk("ep=%llx cookie=%llx seq=%llu status=%s len=%u held=%u taken=%llu",
		  __entry->ep, __entry->cookie, __entry->seq,
		  kdapl_show_dto_status(__entry->status),
		  __entry->len, __entry->held, __entry->taken)
);

DEFINE_EVENT(kdapl_recv, kdapl_recv_taken,
	TP_PROTO(const struct kdapl_ep *ep, const struct kdapl_wr *wr),
	TP_ARGS(ep, wr));
DEFINE_EVENT(kdapl_recv, kdapl_recv_reaped,
	TP_PROTO(const struct kdapl_ep *ep, const struct kdapl_wr *wr),
	TP_ARGS(ep, wr));

/*
 * The Endpoint was freed: its buffer goes back to the SRQ or to the consumer.
 */
DEFINE_EVENT(kdapl_recv, kdapl_recv_withdrawn,
	TP_PROTO(const struct kdapl_ep *ep, const struct kdapl_wr *wr),
	TP_ARGS(ep, wr));

TRACE_EVENT(kdapl_recv_posted,
	TP_PROTO(const struct kdapl_ep *ep, const struct kdapl_wr *wr),
	TP_ARGS(ep, wr),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u64, cookie)
		__field(u64, seq)
		__field(u32, allocated)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->cookie = wr->cookie.as_64;
		__entry->seq = wr->seq;
		__entry->allocated = ep->rq.head - READ_ONCE(ep->rq.tail);
	),
	TP_printk("ep=%llx cookie=%llx seq=%llu allocated=%u",
		  __entry->ep, __entry->cookie, __entry->seq,
		  __entry->allocated)
);

/* A buffer of an SRQ and the SRQ's counts. */
DECLARE_EVENT_CLASS(kdapl_srq_buffer,
	TP_PROTO(const struct kdapl_srq *srq, const struct kdapl_wr *wr),
	TP_ARGS(srq, wr),
	TP_STRUCT__entry(
		__field(u64, srq)
		__field(u64, cookie)
		__field(int, available)
		__field(int, outstanding)
		__field(int, hw)
	),
	TP_fast_assign(
		__entry->srq = srq->obj.handle;
		__entry->cookie = wr->cookie.as_64;
		__entry->available = srq->available;
		__entry->outstanding = srq->outstanding;
		__entry->hw = srq->hw_count;
	),
	TP_printk("srq=%llx cookie=%llx available=%d outstanding=%d hw=%d",
		  __entry->srq, __entry->cookie, __entry->available,
		  __entry->outstanding, __entry->hw)
);

DEFINE_EVENT(kdapl_srq_buffer, kdapl_srq_posted,
	TP_PROTO(const struct kdapl_srq *srq, const struct kdapl_wr *wr),
	TP_ARGS(srq, wr));
DEFINE_EVENT(kdapl_srq_buffer, kdapl_srq_recovered,
	TP_PROTO(const struct kdapl_srq *srq, const struct kdapl_wr *wr),
	TP_ARGS(srq, wr));
DEFINE_EVENT(kdapl_srq_buffer, kdapl_srq_probed,
	TP_PROTO(const struct kdapl_srq *srq, const struct kdapl_wr *wr),
	TP_ARGS(srq, wr));

TRACE_EVENT(kdapl_srq_low,
	TP_PROTO(const struct kdapl_srq *srq),
	TP_ARGS(srq),
	TP_STRUCT__entry(
		__field(u64, srq)
		__field(int, available)
		__field(int, mark)
	),
	TP_fast_assign(
		__entry->srq = srq->obj.handle;
		__entry->available = srq->available;
		__entry->mark = srq->lw;
	),
	TP_printk("srq=%llx available=%d mark=%d",
		  __entry->srq, __entry->available, __entry->mark)
);

TRACE_EVENT(kdapl_srq_armed,
	TP_PROTO(const struct kdapl_srq *srq, u32 limit, int err),
	TP_ARGS(srq, limit, err),
	TP_STRUCT__entry(
		__field(u64, srq)
		__field(u32, limit)
		__field(int, err)
	),
	TP_fast_assign(
		__entry->srq = srq->obj.handle;
		__entry->limit = limit;
		__entry->err = err;
	),
	TP_printk("srq=%llx limit=%u err=%d",
		  __entry->srq, __entry->limit, __entry->err)
);

TRACE_EVENT(kdapl_srq_resize,
	TP_PROTO(const struct kdapl_srq *srq, int request, u32 ret),
	TP_ARGS(srq, request, ret),
	TP_STRUCT__entry(
		__field(u64, srq)
		__field(int, request)
		__field(int, hw_max)
		__field(u32, ret)
	),
	TP_fast_assign(
		__entry->srq = srq->obj.handle;
		__entry->request = request;
		__entry->hw_max = srq->hw_max;
		__entry->ret = ret;
	),
	TP_printk("srq=%llx request=%d hw_max=%d ret=%08x",
		  __entry->srq, __entry->request, __entry->hw_max,
		  __entry->ret)
);

/* The number of held receives and the high watermarks of an Endpoint. */
DECLARE_EVENT_CLASS(kdapl_mark,
	TP_PROTO(const struct kdapl_ep *ep),
	TP_ARGS(ep),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u32, held)
		__field(int, soft)
		__field(int, hard)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->held = ep->held;
		__entry->soft = ep->soft;
		__entry->hard = ep->hard;
	),
	TP_printk("ep=%llx held=%u soft=%d hard=%d",
		  __entry->ep, __entry->held, __entry->soft, __entry->hard)
);

DEFINE_EVENT(kdapl_mark, kdapl_soft_mark,
	TP_PROTO(const struct kdapl_ep *ep), TP_ARGS(ep));
DEFINE_EVENT(kdapl_mark, kdapl_hard_mark,
	TP_PROTO(const struct kdapl_ep *ep), TP_ARGS(ep));
DEFINE_EVENT(kdapl_mark, kdapl_ep_free,
	TP_PROTO(const struct kdapl_ep *ep), TP_ARGS(ep));

TRACE_EVENT(kdapl_ep_modify,
	TP_PROTO(const struct kdapl_ep *ep, u64 mask, u32 ret),
	TP_ARGS(ep, mask, ret),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(u64, mask)
		__field(u32, ret)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->mask = mask;
		__entry->ret = ret;
	),
	TP_printk("ep=%llx mask=%llx ret=%08x",
		  __entry->ep, __entry->mask, __entry->ret)
);

/*
 * A call was refused for a member of its attributes. @rule says what would be right;
 * @limit is the greatest value, where there is one; @ia is NULL if it was not looked up.
 */
TRACE_EVENT(kdapl_refused,
	TP_PROTO(const struct kdapl_ia *ia, const char *member, s64 value, s64 limit,
		 const char *rule),
	TP_ARGS(ia, member, value, limit, rule),
	TP_STRUCT__entry(
		__field(u64, ia)
		__array(char, member, 32)
		__field(s64, value)
		__field(s64, limit)
		__array(char, rule, 64)
	),
	TP_fast_assign(
		__entry->ia = ia ? ia->obj.handle : 0;
		strscpy(__entry->member, member, sizeof(__entry->member));
		__entry->value = value;
		__entry->limit = limit;
		strscpy(__entry->rule, rule, sizeof(__entry->rule));
	),
	TP_printk("ia=%llx member=%s value=%lld limit=%lld rule=%s",
		  __entry->ia, __entry->member, __entry->value, __entry->limit,
		  __entry->rule)
);

/*
 * A connection event, the state and the addresses of the Endpoint, and why the connection
 * or the attempt has ended, of enum kdapl_end.
 */
TRACE_EVENT(kdapl_conn_event,
	TP_PROTO(const struct kdapl_ep *ep, int event, int why),
	TP_ARGS(ep, event, why),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(int, state)
		__field(int, event)
		__field(int, why)
		__array(u8, local, sizeof(struct sockaddr_in6))
		__array(u8, remote, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->state = ep->state;
		__entry->event = event;
		__entry->why = why;
		memcpy(__entry->local, &ep->local_addr, sizeof(struct sockaddr_in6));
		memcpy(__entry->remote, &ep->remote_addr, sizeof(struct sockaddr_in6));
	),
	TP_printk("ep=%llx state=%s event=%s reason=%s local=%pISpc remote=%pISpc",
		  __entry->ep, kdapl_show_ep_state(__entry->state),
		  kdapl_show_event(__entry->event), kdapl_show_end(__entry->why),
		  __entry->local, __entry->remote)
);

TRACE_EVENT(kdapl_qp_event,
	TP_PROTO(const struct kdapl_ep *ep, int what),
	TP_ARGS(ep, what),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(int, state)
		__field(int, what)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->state = ep->state;
		__entry->what = what;
	),
	TP_printk("ep=%llx state=%s event=%s", __entry->ep,
		  kdapl_show_ep_state(__entry->state),
		  rdma_show_ib_event(__entry->what))
);

TRACE_EVENT(kdapl_cm_event,
	TP_PROTO(const struct kdapl_ep *ep, const struct rdma_cm_event *event),
	TP_ARGS(ep, event),
	TP_STRUCT__entry(
		__field(u64, ep)
		__field(int, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->ep = ep->obj.handle;
		__entry->event = event->event;
		__entry->status = event->status;
	),
	TP_printk("ep=%llx event=%s status=%d", __entry->ep,
		  rdma_show_cm_event(__entry->event), __entry->status)
);

TRACE_EVENT(kdapl_cr,
	TP_PROTO(const struct kdapl_cr *cr),
	TP_ARGS(cr),
	TP_STRUCT__entry(
		__field(u64, cr)
		__field(u64, sp)
		__field(u8, pd_len)
	),
	TP_fast_assign(
		__entry->cr = cr->obj.handle;
		__entry->sp = cr->sp->obj.handle;
		__entry->pd_len = cr->pd_len;
	),
	TP_printk("cr=%llx sp=%llx private_data=%u",
		  __entry->cr, __entry->sp, __entry->pd_len)
);

TRACE_EVENT(kdapl_async,
	TP_PROTO(const struct kdapl_async *async),
	TP_ARGS(async),
	TP_STRUCT__entry(
		__field(u64, handle)
		__field(u32, number)
		__field(int, reason)
	),
	TP_fast_assign(
		__entry->handle = async->obj->handle;
		__entry->number = async->number;
		__entry->reason = async->reason;
	),
	TP_printk("handle=%llx number=%s reason=%d", __entry->handle,
		  kdapl_show_event(__entry->number), __entry->reason)
);

#endif /* KDAPL_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
