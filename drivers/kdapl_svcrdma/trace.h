/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tracepoints of kdapl_svcrdma. Clients have the addresses that the statistics show. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdapl_svcrdma

#if !defined(KDAPL_SVCRDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KDAPL_SVCRDMA_TRACE_H

#include <linux/tracepoint.h>
#include "svcrdma.h"

/* A call is handed to nfsd, with what its Read list has; @len: bytes of the RPC message */
TRACE_EVENT(kdapl_svcrdma_call,
	TP_PROTO(const struct ks_call *call, u32 len),
	TP_ARGS(call, len),
	TP_STRUCT__entry(
		__array(char, peer, KDAT_HOST_NAME_LENGTH)
		__field(u32, xid)
		__field(u32, len)
		__field(u32, credits)
		__field(u32, reads)
		__field(u32, writes)
		__field(bool, reply)
	),
	TP_fast_assign(
		strscpy(__entry->peer, call->c->peer, sizeof(__entry->peer));
		__entry->xid = be32_to_cpu(call->h.xid);
		__entry->len = len;
		__entry->credits = call->h.credits;
		__entry->reads = call->h.nreads;
		__entry->writes = call->h.nwrites;
		__entry->reply = call->h.has_reply;
	),
	TP_printk("client=%s xid=%#x len=%u credits=%u reads=%u writes=%u reply-chunk=%d",
		  __entry->peer, __entry->xid, __entry->len, __entry->credits, __entry->reads,
		  __entry->writes, __entry->reply)
);

/* A message that answers a call is submitted; @len: its bytes */
TRACE_EVENT(kdapl_svcrdma_reply,
	TP_PROTO(const struct ks_call *call, u32 len),
	TP_ARGS(call, len),
	TP_STRUCT__entry(
		__array(char, peer, KDAT_HOST_NAME_LENGTH)
		__field(u32, xid)
		__field(u32, len)
		__field(u32, window)
		__field(u32, held)
	),
	TP_fast_assign(
		strscpy(__entry->peer, call->c->peer, sizeof(__entry->peer));
		__entry->xid = be32_to_cpu(call->h.xid);
		__entry->len = len;
		__entry->window = call->c->window;
		__entry->held = call->c->held;
	),
	TP_printk("client=%s xid=%#x len=%u window=%u held=%u", __entry->peer, __entry->xid,
		  __entry->len, __entry->window, __entry->held)
);

#endif /* KDAPL_SVCRDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
