/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: return codes.
 *
 * A DAT_RETURN has three parts: class (bits 31-30), type (29-16) and subtype
 * (15-0). Calls return %DAT_SUCCESS, or class error with a type and mostly a
 * subtype that names the argument, the handle or the state in question. Compare
 * DAT_GET_TYPE() of a return with the DAT_RETURN_TYPE constants, which do not
 * contain the class. Any call may return %DAT_INTERNAL_ERROR. dat_strerror()
 * names type and subtype.
 *
 * The compiler warns of a return that is ignored where that loses memory or
 * data: __must_check. These are the calls that give memory back, which the
 * device or a peer still reaches if they are refused: dat_lmr_free(),
 * dat_rmr_free(), dat_srq_free(), kdat_sg_unmap() and dat_ia_close(); those
 * that post, as nothing is sent and no event comes if they are refused; and
 * dat_lmr_sync_rdma_read() and dat_lmr_sync_rdma_write(). Other calls that
 * free are refused only if the consumer frees in the wrong order.
 */
#ifndef DAT_ERROR_H
#define DAT_ERROR_H

#include <linux/types.h>

typedef u32 DAT_RETURN;

#define DAT_CLASS_ERROR		0x80000000U
#define DAT_CLASS_WARNING	0x40000000U
#define DAT_CLASS_SUCCESS	0x00000000U

#define DAT_CLASS_MASK		0xc0000000U
#define DAT_TYPE_MASK		0x3fff0000U
#define DAT_SUBTYPE_MASK	0x0000ffffU

#define DAT_GET_CLASS(status)	((DAT_RETURN)(status) & DAT_CLASS_MASK)
#define DAT_GET_TYPE(status)	((DAT_RETURN)(status) & DAT_TYPE_MASK)
#define DAT_GET_SUBTYPE(status)	((DAT_RETURN)(status) & DAT_SUBTYPE_MASK)

#define DAT_IS_ERROR(status)	(!!((DAT_RETURN)(status) & DAT_CLASS_ERROR))
#define DAT_IS_WARNING(status)	(!!((DAT_RETURN)(status) & DAT_CLASS_WARNING))

/* An error return of this type and subtype. */
#define DAT_ERROR(type, subtype) \
	((DAT_RETURN)(DAT_CLASS_ERROR | (u32)(type) | (u32)(subtype)))

typedef enum dat_return_type {
	DAT_SUCCESS = 0x00000000,
	/* The object went away while the call was waiting for it. */
	DAT_ABORT = 0x00010000,
	/* Somebody listens on this Connection Qualifier already. */
	DAT_CONN_QUAL_IN_USE = 0x00020000,
	/* Memory, hardware resources or room in a queue ran out. */
	DAT_INSUFFICIENT_RESOURCES = 0x00030000,
	/* A failure inside kDAPL or the driver that fits nothing else. */
	DAT_INTERNAL_ERROR = 0x00040000,
	/* The handle names no object of the type that was expected. */
	DAT_INVALID_HANDLE = 0x00050000,
	/* An argument is out of range, or unsuitable for this object. */
	DAT_INVALID_PARAMETER = 0x00060000,
	/* The object's state does not allow the operation. */
	DAT_INVALID_STATE = 0x00070000,
	/* The receiving side of an RDMA operation is the shorter one. */
	DAT_LENGTH_ERROR = 0x00080000,
	/* The device or the kind of object does not offer what was asked. */
	DAT_MODEL_NOT_SUPPORTED = 0x00090000,
	/* No IA of this name, version or thread safety. */
	DAT_PROVIDER_NOT_FOUND = 0x000a0000,
	/* The memory privileges of an LMR or RMR do not cover the operation. */
	DAT_PRIVILEGES_VIOLATION = 0x000b0000,
	/* Two objects are of different Protection Zones. */
	DAT_PROTECTION_VIOLATION = 0x000c0000,
	/* The EVD has no event. */
	DAT_QUEUE_EMPTY = 0x000d0000,
	/* The EVD has no room for the software event. */
	DAT_QUEUE_FULL = 0x000e0000,
	/* User-space DAPL only. */
	DAT_TIMEOUT_EXPIRED = 0x000f0000,
	/* Provider registration; unused, see dat_ia.h. */
	DAT_PROVIDER_ALREADY_REGISTERED = 0x00100000,
	DAT_PROVIDER_IN_USE = 0x00110000,
	/* The address is malformed, unreachable or of an unknown family. */
	DAT_INVALID_ADDRESS = 0x00120000,
	/* User-space DAPL only. */
	DAT_INTERRUPTED_CALL = 0x00130000,
	/* No Connection Qualifier could be picked. */
	DAT_CONN_QUAL_UNAVAILABLE = 0x00140000,
	/* The reserved LMR cannot be used for this. */
	DAT_RESERVED_LMR = 0x00150000,
	/* Somebody listens on this address already. */
	DAT_PORT_IN_USE = 0x00160000,
	/* No such combination of domain, type and protocol. */
	DAT_COMM_NOT_SUPPORTED = 0x00170000,
	/* First type of DAT extensions; kDAPL has no extensions. */
	DAT_EXTENSION_BASE = 0x10000000,
	/* No call of kDAPL returns this. */
	DAT_NOT_IMPLEMENTED = 0x3fff0000
} DAT_RETURN_TYPE;

typedef enum dat_return_subtype {
	DAT_NO_SUBTYPE = 0,
	DAT_SUB_INTERRUPTED = 1,

	/* DAT_INSUFFICIENT_RESOURCES: what ran out */
	DAT_RESOURCE_MEMORY = 2,
	DAT_RESOURCE_DEVICE = 3,
	DAT_RESOURCE_TEP = 4,			/* Endpoints */
	DAT_RESOURCE_TEVD = 5,			/* Event Dispatchers */
	DAT_RESOURCE_PROTECTION_DOMAIN = 6,
	DAT_RESOURCE_MEMORY_REGION = 7,
	DAT_RESOURCE_ERROR_HANDLER = 8,
	DAT_RESOURCE_CREDITS = 9,
	DAT_RESOURCE_SRQ = 10,

	/* DAT_INVALID_HANDLE: which handle, by object or by position */
	DAT_INVALID_HANDLE_IA = 11,
	DAT_INVALID_HANDLE_EP = 12,
	DAT_INVALID_HANDLE_LMR = 13,
	DAT_INVALID_HANDLE_RMR = 14,
	DAT_INVALID_HANDLE_PZ = 15,
	DAT_INVALID_HANDLE_PSP = 16,
	DAT_INVALID_HANDLE_RSP = 17,
	DAT_INVALID_HANDLE_CR = 18,
	DAT_INVALID_HANDLE_CNO = 19,
	DAT_INVALID_HANDLE_EVD_CR = 20,
	DAT_INVALID_HANDLE_EVD_REQUEST = 21,
	DAT_INVALID_HANDLE_EVD_RECV = 22,
	DAT_INVALID_HANDLE_EVD_CONN = 23,
	DAT_INVALID_HANDLE_EVD_ASYNC = 24,
	DAT_INVALID_HANDLE_SRQ = 25,
	DAT_INVALID_HANDLE_CSP = 26,
	DAT_INVALID_HANDLE1 = 27,
	DAT_INVALID_HANDLE2 = 28,
	DAT_INVALID_HANDLE3 = 29,
	DAT_INVALID_HANDLE4 = 30,
	DAT_INVALID_HANDLE5 = 31,
	DAT_INVALID_HANDLE6 = 32,
	DAT_INVALID_HANDLE7 = 33,
	DAT_INVALID_HANDLE8 = 34,
	DAT_INVALID_HANDLE9 = 35,
	DAT_INVALID_HANDLE10 = 36,

	/* DAT_INVALID_PARAMETER: which argument, counted from 1 */
	DAT_INVALID_ARG1 = 37,
	DAT_INVALID_ARG2 = 38,
	DAT_INVALID_ARG3 = 39,
	DAT_INVALID_ARG4 = 40,
	DAT_INVALID_ARG5 = 41,
	DAT_INVALID_ARG6 = 42,
	DAT_INVALID_ARG7 = 43,
	DAT_INVALID_ARG8 = 44,
	DAT_INVALID_ARG9 = 45,
	DAT_INVALID_ARG10 = 46,

	/* DAT_INVALID_STATE: the EP's state, or what it lacks */
	DAT_INVALID_STATE_EP_UNCONNECTED = 47,
	DAT_INVALID_STATE_EP_ACTCONNPENDING = 48,
	DAT_INVALID_STATE_EP_PASSCONNPENDING = 49,
	DAT_INVALID_STATE_EP_TENTCONNPENDING = 50,
	DAT_INVALID_STATE_EP_CONNECTED = 51,
	DAT_INVALID_STATE_EP_DISCONNECTED = 52,
	DAT_INVALID_STATE_EP_RESERVED = 53,
	DAT_INVALID_STATE_EP_COMPLPENDING = 54,
	DAT_INVALID_STATE_EP_DISCPENDING = 55,
	DAT_INVALID_STATE_EP_PROVIDERCONTROL = 56,
	DAT_INVALID_STATE_EP_NOTREADY = 57,
	DAT_INVALID_STATE_EP_RECV_WATERMARK = 58,
	DAT_INVALID_STATE_EP_PZ = 59,
	DAT_INVALID_STATE_EP_EVD_REQUEST = 60,
	DAT_INVALID_STATE_EP_EVD_RECV = 61,
	DAT_INVALID_STATE_EP_EVD_CONNECT = 62,
	DAT_INVALID_STATE_EP_UNCONFIGURED = 63,
	DAT_INVALID_STATE_EP_UNCONFRESERVED = 64,
	DAT_INVALID_STATE_EP_UNCONFPASSIVE = 65,
	DAT_INVALID_STATE_EP_UNCONFTENTATIVE = 66,

	/* DAT_INVALID_STATE: of other objects */
	DAT_INVALID_STATE_CNO_IN_USE = 67,
	DAT_INVALID_STATE_CNO_DEAD = 68,
	DAT_INVALID_STATE_EVD_OPEN = 69,
	DAT_INVALID_STATE_EVD_ENABLED = 70,
	DAT_INVALID_STATE_EVD_DISABLED = 71,
	DAT_INVALID_STATE_EVD_WAITABLE = 72,
	DAT_INVALID_STATE_EVD_UNWAITABLE = 73,
	DAT_INVALID_STATE_EVD_IN_USE = 74,
	DAT_INVALID_STATE_EVD_CONFIG_NOTIFY = 75,
	DAT_INVALID_STATE_EVD_CONFIG_SOLICITED = 76,
	DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD = 77,
	DAT_INVALID_STATE_EVD_WAITER = 78,
	DAT_INVALID_STATE_EVD_ASYNC = 79,
	DAT_INVALID_STATE_IA_IN_USE = 80,
	DAT_INVALID_STATE_LMR_IN_USE = 81,
	DAT_INVALID_STATE_LMR_FREE = 82,
	DAT_INVALID_STATE_PZ_IN_USE = 83,
	DAT_INVALID_STATE_PZ_FREE = 84,
	DAT_INVALID_STATE_SRQ_OPERATIONAL = 85,
	DAT_INVALID_STATE_SRQ_ERROR = 86,
	DAT_INVALID_STATE_SRQ_IN_USE = 87,

	/* DAT_PRIVILEGES_VIOLATION: the privilege that is missing */
	DAT_PRIVILEGES_READ = 88,
	DAT_PRIVILEGES_WRITE = 89,
	DAT_PRIVILEGES_RDMA_READ = 90,
	DAT_PRIVILEGES_RDMA_WRITE = 91,

	/* DAT_PROTECTION_VIOLATION: the access across Protection Zones */
	DAT_PROTECTION_READ = 92,
	DAT_PROTECTION_WRITE = 93,
	DAT_PROTECTION_RDMA_READ = 94,
	DAT_PROTECTION_RDMA_WRITE = 95,

	/* DAT_INVALID_ADDRESS */
	DAT_INVALID_ADDRESS_UNSUPPORTED = 96,
	DAT_INVALID_ADDRESS_UNREACHABLE = 97,
	DAT_INVALID_ADDRESS_MALFORMED = 98,

	/* DAT_PROVIDER_NOT_FOUND */
	DAT_NAME_NOT_REGISTERED = 99,
	DAT_MAJOR_NOT_FOUND = 100,
	DAT_MINOR_NOT_FOUND = 101,
	DAT_THREAD_SAFETY_NOT_FOUND = 102
} DAT_RETURN_SUBTYPE;

#endif /* DAT_ERROR_H */
