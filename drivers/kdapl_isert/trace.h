/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tracepoints of kdapl_isert. Connections have the numbers that the statistics show.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdapl_isert

#if !defined(KDAPL_ISERT_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KDAPL_ISERT_TRACE_H

#include <linux/tracepoint.h>
#include "isert.h"

DECLARE_EVENT_CLASS(ki_pdu,
	TP_PROTO(const struct ki_conn *c, const struct iscsi_hdr *hdr, u32 len),
	TP_ARGS(c, hdr, len),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, itt)
		__field(u32, sn)
		__field(u32, len)
		__field(u8, opcode)
		__field(u8, flags)
	),
	TP_fast_assign(
		__entry->id = c->id;
		__entry->itt = be32_to_cpu((__force __be32)hdr->itt);
		/* CmdSN of a request, StatSN of an answer. */
		__entry->sn = be32_to_cpu(((const struct iscsi_nopin *)hdr)->statsn);
		__entry->len = len;
		__entry->opcode = hdr->opcode;
		__entry->flags = hdr->flags;
	),
	TP_printk("conn=%u opcode=%#x flags=%#x itt=%#x sn=%u len=%u", __entry->id,
		  __entry->opcode, __entry->flags, __entry->itt, __entry->sn,
		  __entry->len)
);

/* A PDU has come, and its lengths are right; @len: bytes with all headers */
DEFINE_EVENT(ki_pdu, kdapl_isert_request,
	TP_PROTO(const struct ki_conn *c, const struct iscsi_hdr *hdr, u32 len),
	TP_ARGS(c, hdr, len)
);

/* An answer is ready to be sent, behind @len bytes of data for the initiator. */
DEFINE_EVENT(ki_pdu, kdapl_isert_answer,
	TP_PROTO(const struct ki_conn *c, const struct iscsi_hdr *hdr, u32 len),
	TP_ARGS(c, hdr, len)
);

/* The window of a session was set, or is about to be narrowed. */
TRACE_EVENT(kdapl_isert_window,
	TP_PROTO(const struct ki_conn *c),
	TP_ARGS(c),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, window)
		__field(u32, withheld)
		__field(u32, hard)
	),
	TP_fast_assign(
		__entry->id = c->id;
		__entry->window = c->window;
		__entry->withheld = c->withheld;
		__entry->hard = c->hard;
	),
	TP_printk("conn=%u window=%u withheld=%u hard-mark=%u", __entry->id,
		  __entry->window, __entry->withheld, __entry->hard)
);

#endif /* KDAPL_ISERT_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
