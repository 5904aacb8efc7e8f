/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lists of the constants that are shown by name, for the tables of strerror.c and for
 * trace.h, which lets trace-cmd and perf show the same names. each() is expanded for
 * every constant but the last one, for which last() is expanded.
 */
#ifndef KDAPL_NAMES_H
#define KDAPL_NAMES_H

#define KDAPL_EVENTS(each, last)			\
	each(DAT_DTO_COMPLETION_EVENT)			\
	each(DAT_RMR_BIND_COMPLETION_EVENT)		\
	each(DAT_CONNECTION_REQUEST_EVENT)		\
	each(DAT_CONNECTION_EVENT_ESTABLISHED)		\
	each(DAT_CONNECTION_EVENT_PEER_REJECTED)	\
	each(DAT_CONNECTION_EVENT_NON_PEER_REJECTED)	\
	each(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR) \
	each(DAT_CONNECTION_EVENT_DISCONNECTED)		\
	each(DAT_CONNECTION_EVENT_BROKEN)		\
	each(DAT_CONNECTION_EVENT_TIMED_OUT)		\
	each(DAT_CONNECTION_EVENT_UNREACHABLE)		\
	each(DAT_ASYNC_ERROR_EVD_OVERFLOW)		\
	each(DAT_ASYNC_ERROR_IA_CATASTROPHIC)		\
	each(DAT_ASYNC_ERROR_EP_BROKEN)			\
	each(DAT_ASYNC_ERROR_TIMED_OUT)			\
	each(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR)	\
	each(DAT_HA_DOWN_TO_1)				\
	each(DAT_HA_UP_TO_MULTI_PATH)			\
	each(DAT_ASYNC_SRQ_LOW_WATERMARK)		\
	each(DAT_ASYNC_EP_SOFT_HIGH_WATERMARK)		\
	last(DAT_SOFTWARE_EVENT)

#define KDAPL_DTO_STATUSES(each, last)			\
	each(DAT_DTO_SUCCESS)				\
	each(DAT_DTO_ERR_FLUSHED)			\
	each(DAT_DTO_ERR_LOCAL_LENGTH)			\
	each(DAT_DTO_ERR_LOCAL_EP)			\
	each(DAT_DTO_ERR_LOCAL_PROTECTION)		\
	each(DAT_DTO_ERR_BAD_RESPONSE)			\
	each(DAT_DTO_ERR_REMOTE_ACCESS)			\
	each(DAT_DTO_ERR_REMOTE_RESPONDER)		\
	each(DAT_DTO_ERR_TRANSPORT)			\
	each(DAT_DTO_ERR_RECEIVER_NOT_READY)		\
	each(DAT_DTO_ERR_PARTIAL_PACKET)		\
	each(DAT_RMR_OPERATION_FAILED)			\
	last(DAT_DTO_ERR_LOCAL_MM_ERROR)

#define KDAPL_EP_STATES(each, last)			\
	each(DAT_EP_STATE_UNCONNECTED)			\
	each(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED)	\
	each(DAT_EP_STATE_RESERVED)			\
	each(DAT_EP_STATE_UNCONFIGURED_RESERVED)	\
	each(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING)	\
	each(DAT_EP_STATE_UNCONFIGURED_PASSIVE)		\
	each(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)	\
	each(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)	\
	each(DAT_EP_STATE_UNCONFIGURED_TENTATIVE)	\
	each(DAT_EP_STATE_CONNECTED)			\
	each(DAT_EP_STATE_DISCONNECT_PENDING)		\
	each(DAT_EP_STATE_DISCONNECTED)			\
	each(DAT_EP_STATE_COMPLETION_PENDING)		\
	each(DAT_EP_STATE_CONNECTED_SINGLE_PATH)	\
	last(DAT_EP_STATE_CONNECTED_MULTI_PATH)

/*
 * Why a connection, or an attempt to make one, has ended: its code, of enum kdapl_end, and
 * its word, in kdapl_end_words[]. The words are those of
 * /proc/kdapl, so they do not change; see Documentation/ABI/testing/procfs-kdapl.
 */
#define KDAPL_ENDS(each, last)				\
	each(KDAPL_END_NONE, "none")			\
	each(KDAPL_END_CONSUMER, "consumer")		\
	each(KDAPL_END_PEER, "peer")			\
	each(KDAPL_END_REFUSED, "refused")		\
	each(KDAPL_END_UNREACHABLE, "unreachable")	\
	each(KDAPL_END_TIMEOUT, "timeout")		\
	each(KDAPL_END_HARD_MARK, "hard-mark")		\
	each(KDAPL_END_QUEUE_DRY, "queue-dry")		\
	each(KDAPL_END_TRANSPORT, "transport")		\
	each(KDAPL_END_PROTOCOL, "protocol")		\
	each(KDAPL_END_DRIVER, "driver")		\
	last(KDAPL_END_UNPLUG, "unplug")

#define KDAPL_END_CODE(code, word)	code,
#define KDAPL_END_WORD(code, word)	word,
#define KDAPL_END_TRACED(code, word)	TRACE_DEFINE_ENUM(code);

enum kdapl_end {
	KDAPL_ENDS(KDAPL_END_CODE, KDAPL_END_CODE)
	KDAPL_NENDS
};

#endif /* KDAPL_NAMES_H */
