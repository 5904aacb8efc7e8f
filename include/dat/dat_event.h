/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: events and the upcalls that deliver them.
 *
 * An event is reaped exactly once: by dat_evd_dequeue() or for the EVD's upcall,
 * whichever comes first.
 */
#ifndef DAT_EVENT_H
#define DAT_EVENT_H

#include <dat/dat_types.h>

/* ---- Event numbers ------------------------------------------------------- */

typedef enum dat_event_number {
	/* EP's recv and request EVD: dto_completion_event_data */
	DAT_DTO_COMPLETION_EVENT = 0x00001,

	/* EP's request EVD: rmr_completion_event_data */
	DAT_RMR_BIND_COMPLETION_EVENT = 0x01001,

	/* Service Point's EVD: cr_arrival_event_data */
	DAT_CONNECTION_REQUEST_EVENT = 0x02001,

	/* EP's connect EVD: connect_event_data */
	DAT_CONNECTION_EVENT_ESTABLISHED = 0x04001,
	DAT_CONNECTION_EVENT_PEER_REJECTED = 0x04002,
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED = 0x04003,
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR = 0x04004,
	DAT_CONNECTION_EVENT_DISCONNECTED = 0x04005,
	DAT_CONNECTION_EVENT_BROKEN = 0x04006,
	DAT_CONNECTION_EVENT_TIMED_OUT = 0x04007,
	DAT_CONNECTION_EVENT_UNREACHABLE = 0x04008,

	/* IA's asynchronous EVD: asynch_error_event_data */
	DAT_ASYNC_ERROR_EVD_OVERFLOW = 0x08001,
	DAT_ASYNC_ERROR_IA_CATASTROPHIC = 0x08002,
	/*
	 * Not generated: an EP that fails reports it on its connect EVD, and some devices
	 * report failures of the peer here that others do not.
	 */
	DAT_ASYNC_ERROR_EP_BROKEN = 0x08003,
	DAT_ASYNC_ERROR_TIMED_OUT = 0x08004,
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR = 0x08005,

	/* Not generated: ib_core has no multipath connections. */
	DAT_HA_DOWN_TO_1 = 0x08101,
	DAT_HA_UP_TO_MULTI_PATH = 0x08102,

	/*
	 * Watermarks. DAT describes these events but numbers only their
	 * reasons; the event numbers are those of this implementation. The
	 * type of dat_handle together with the reason says the same.
	 */
	DAT_ASYNC_SRQ_LOW_WATERMARK = 0x08201,
	DAT_ASYNC_EP_SOFT_HIGH_WATERMARK = 0x08202,

	/* dat_evd_post_se(): software_event_data */
	DAT_SOFTWARE_EVENT = 0x10001,

	/* First numbers of extension events; kDAPL has no extensions. */
	DAT_EXTENSION_EVENT = 0x20000,
	DAT_IB_EXTENSION_RANGE_BASE = 0x40000,
	DAT_IW_EXTENSION_RANGE_BASE = 0x80000
} DAT_EVENT_NUMBER;

/* ---- DTO and RMR bind completions ---------------------------------------- */

typedef enum dat_dto_completion_status {
	DAT_DTO_SUCCESS = 0,
	DAT_DTO_ERR_FLUSHED = 1,		/* the connection is gone */
	DAT_DTO_ERR_LOCAL_LENGTH = 2,		/* message longer than buffer */
	DAT_DTO_ERR_LOCAL_EP = 3,		/* QP in the wrong state */
	DAT_DTO_ERR_LOCAL_PROTECTION = 4,	/* LMR or PZ forbids it */
	DAT_DTO_ERR_BAD_RESPONSE = 5,		/* unexpected answer */
	DAT_DTO_ERR_REMOTE_ACCESS = 6,		/* peer's memory is protected */
	DAT_DTO_ERR_REMOTE_RESPONDER = 7,	/* peer could not do it */
	DAT_DTO_ERR_TRANSPORT = 8,		/* retries exhausted */
	DAT_DTO_ERR_RECEIVER_NOT_READY = 9,	/* peer had no buffer */
	DAT_DTO_ERR_PARTIAL_PACKET = 10,	/* not generated */
	DAT_RMR_OPERATION_FAILED = 11,		/* bind failed */
	DAT_DTO_ERR_LOCAL_MM_ERROR = 12		/* not generated */
} DAT_DTO_COMPLETION_STATUS;

typedef DAT_DTO_COMPLETION_STATUS DAT_RMR_BIND_COMPLETION_STATUS;

/* Names of DAT 1.0. */
#define DAT_DTO_LENGTH_ERROR	DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE		DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_SUCCESS	DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE	DAT_DTO_ERR_FLUSHED

/**
 * struct dat_dto_completion_event_data - a data transfer operation has ended
 * @ep_handle: EP that the operation was posted to, or that took the buffer from
 *	an SRQ
 * @user_cookie: as given to the post
 * @status: how the operation ended; see kdat_dto_status_name()
 * @transfered_length: bytes moved; valid on success only
 * @operation: the operation
 * @rmr_context: context that the peer's Send has invalidated; valid on success of
 *	%DAT_DTO_RECEIVE_WITH_INVALIDATE only
 */
typedef struct dat_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_SEG_LENGTH transfered_length;
	DAT_DTOS operation;
	DAT_RMR_CONTEXT rmr_context;
} DAT_DTO_COMPLETION_EVENT_DATA;

/**
 * struct dat_rmr_bind_completion_event_data - a dat_rmr_bind() has ended
 * @rmr_handle: the RMR
 * @user_cookie: as given to dat_rmr_bind()
 * @status: how the bind ended; see kdat_dto_status_name()
 */
typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;
	DAT_RMR_COOKIE user_cookie;
	DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

/* ---- Connections --------------------------------------------------------- */

/* The Service Point of a request; the consumer knows its kind. */
typedef union dat_sp_handle {
	DAT_RSP_HANDLE rsp_handle;
	DAT_PSP_HANDLE psp_handle;
	DAT_CSP_HANDLE csp_handle;
} DAT_SP_HANDLE;

/**
 * struct dat_cr_arrival_event_data - a peer wants to connect
 * @sp_handle: Service Point that received the request
 * @local_ia_address_ptr: local address of the connection; valid as long as the CR
 * @conn_qual: port that the Service Point listens on
 * @cr_handle: the request, to be accepted, rejected or handed over
 * @truncate_flag: %DAT_TRUE if the peer sent more private data than arrived
 */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
	DAT_BOOLEAN truncate_flag;
} DAT_CR_ARRIVAL_EVENT_DATA;

/**
 * struct dat_connection_event_data - the connection of an EP has changed
 * @ep_handle: the EP
 * @private_data_size: bytes at @private_data
 * @private_data: data that the peer sent when it accepted or rejected; valid until the EP
 *	is reset or freed
 */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* ---- Asynchronous events ------------------------------------------------- */

/**
 * struct dat_asynch_error_event_data - something happened to an object
 * @dat_handle: the object: an IA, EP, EVD, SRQ, LMR, RMR or PZ; see
 *	dat_get_handle_type()
 * @reason: one of the reasons of that type of object
 *
 * Events about an EP, EVD, SRQ, LMR, RMR or PZ go to the asynchronous EVD of the object's
 * IA handle, events about the adapter to those of all its open IA handles.
 */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle;
	DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

/*
 * Reasons, for each type of object. TRANSFER_TO and OTHER errors are not generated: an EP
 * that fails reports it on its connect EVD.
 */
typedef enum dat_ia_async_error_reason {
	DAT_IA_CATASTROPHIC_ERROR = 0,		/* the device is gone or dead */
	DAT_IA_OTHER_ERROR = 1
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum dat_ep_async_error_reason {
	DAT_EP_TRANSFER_TO_ERROR = 0,
	DAT_EP_OTHER_ERROR = 1,
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT = 2	/* the object is an EP */
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum dat_evd_async_error_reason {
	DAT_EVD_OVERFLOW_ERROR = 0,		/* the EVD is full */
	DAT_EVD_OTHER_ERROR = 1
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum dat_srq_async_error_reason {
	DAT_SRQ_TRANSFER_TO_ERROR = 0,
	DAT_SRQ_OTHER_ERROR = 1,
	DAT_SRQ_LOW_WATERMARK_EVENT = 2
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum dat_lmr_async_error_reason {
	DAT_LMR_OTHER_ERROR = 0
} DAT_LMR_ASYNC_ERROR_REASON;

typedef enum dat_rmr_async_error_reason {
	DAT_RMR_OTHER_ERROR = 0
} DAT_RMR_ASYNC_ERROR_REASON;

typedef enum dat_pz_async_error_reason {
	DAT_PZ_OTHER_ERROR = 0
} DAT_PZ_ASYNC_ERROR_REASON;

/* ---- The event ----------------------------------------------------------- */

/**
 * struct dat_software_event_data - an event of the consumer's own
 * @pointer: as given to dat_evd_post_se()
 */
typedef struct dat_software_event_data {
	DAT_PVOID pointer;
} DAT_SOFTWARE_EVENT_DATA;

typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

/**
 * struct dat_event - one event
 * @event_number: kind of event; see kdat_event_name()
 * @evd_handle: EVD that held the event
 * @event_data: the member that belongs to @event_number is valid
 * @event_extension_data: not used and not written; there are no extensions
 */
typedef struct dat_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	DAT_EVENT_DATA event_data;
	DAT_UINT64 event_extension_data[8];
} DAT_EVENT;

#define DAT_EVENT_NULL		((DAT_EVENT *)NULL)

/* ---- Upcalls ------------------------------------------------------------- */

/**
 * typedef DAT_UPCALL_FUNC - consumer's function that receives an EVD's events
 * @instance_data: as in the DAT_UPCALL_OBJECT
 * @event: the event, already reaped, and valid until the function returns; NULL
 *	with %DAT_UPCALL_NOTIFY
 * @more_events: %DAT_TRUE if the EVD held further events when this one was
 *	reaped; the function may dequeue them
 *
 * The function may post, dequeue, set watermarks, disconnect, and free the EP that
 * the event names. It cannot free its own EVD or use %DAT_UPCALL_TEARDOWN on it:
 * both are refused. The EP may have been freed by another CPU after the event was
 * reaped, so its handle may be invalid already; see dat_ep_free().
 *
 * Context: Softirq if the EVD carries only DTO and RMR bind completions,
 * process context otherwise. kDAPL holds no lock.
 */
typedef void (*DAT_UPCALL_FUNC)(DAT_PVOID instance_data,
				const DAT_EVENT *event,
				DAT_BOOLEAN more_events);

/**
 * struct dat_upcall_object - a function and its argument
 * @instance_data: first argument of @upcall_func
 * @upcall_func: the function, or NULL
 */
typedef struct dat_upcall_object {
	DAT_PVOID instance_data;
	DAT_UPCALL_FUNC upcall_func;
} DAT_UPCALL_OBJECT;

/* An upcall object without a function. */
#define DAT_UPCALL_NULL		((DAT_UPCALL_OBJECT) { NULL, NULL })

/* For dat_evd_modify_upcall(): leave the upcall object as it is. */
#define DAT_UPCALL_SAME		((DAT_UPCALL_OBJECT *)NULL)

typedef enum dat_upcall_policy {
	DAT_UPCALL_TEARDOWN = -1,	/* none; wait for running ones */
	DAT_UPCALL_DISABLE = 0,		/* none */
	DAT_UPCALL_SINGLE_INSTANCE = 1,	/* one at a time */
	DAT_UPCALL_NORIFY = 2,		/* one at a time, without event */
	DAT_UPCALL_MANY = 100		/* several at a time are allowed */
} DAT_UPCALL_POLICY;

/* The published header misspells NOTIFY; both names mean the same. */
#define DAT_UPCALL_NOTIFY	DAT_UPCALL_NORIFY

typedef enum dat_upcall_flag {
	DAT_UPCALL_INVOC_NEW = 0,	/* for events that come from now on */
	DAT_UPCALL_INVOC_ANY = 1	/* also for events already queued */
} DAT_UPCALL_FLAG;

#endif /* DAT_EVENT_H */
