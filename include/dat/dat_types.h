/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: scalar types, handles, constants and flags.
 *
 * Names and numbers are those of the DAT 2.0 kernel interface. Structures that
 * describe objects are in dat_attr.h, events and upcalls in dat_event.h.
 */
#ifndef DAT_TYPES_H
#define DAT_TYPES_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <linux/socket.h>
#include <linux/stddef.h>
#include <linux/types.h>

/* ---- Scalars ------------------------------------------------------------- */

typedef u32 DAT_UINT32;
typedef u64 DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef void *DAT_PVOID;
typedef int DAT_COUNT;

typedef u64 DAT_PADDR;			/* physical or DMA address */
typedef u64 DAT_VADDR;			/* address inside an LMR or RMR */
typedef u64 DAT_VLEN;			/* length of a region in bytes */
typedef u32 DAT_SEG_LENGTH;		/* length of a segment in bytes */
typedef u32 DAT_LMR_CONTEXT;		/* names an LMR in local segments */
typedef u32 DAT_RMR_CONTEXT;		/* names memory offered to the peer */

typedef u32 DAT_TIMEOUT;		/* microseconds */
#define DAT_TIMEOUT_INFINITE	((DAT_TIMEOUT)~0)

typedef char *DAT_NAME_PTR;
#define DAT_NAME_MAX_LENGTH	256	/* bytes, with the final NUL */

typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;
typedef struct sockaddr *DAT_IA_ADDRESS_PTR;

/* Port of the RDMA CM's TCP port space, in host byte order. */
typedef u64 DAT_CONN_QUAL;
typedef u64 DAT_PORT_QUAL;

#define DAT_OPTIMAL_ALIGNMENT	256	/* bytes */

typedef enum dat_boolean {
	DAT_FALSE = 0,
	DAT_TRUE = 1
} DAT_BOOLEAN;

/* Transport of a CSP, or of an EP with comm, as for a socket. */
typedef struct dat_comm {
	int domain;			/* AF_INET, AF_INET6 */
	int type;			/* SOCK_STREAM */
	int protocol;			/* 0, IPPROTO_TCP */
} DAT_COMM;

typedef struct dat_named_attr {
	const char *name;
	const char *value;
} DAT_NAMED_ATTR;

/* A value of the consumer's, which kDAPL passes on and never looks at. */
typedef union dat_context {
	DAT_PVOID as_ptr;
	DAT_UINT64 as_64;
	DAT_UVERYLONG as_index;
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;
typedef DAT_CONTEXT DAT_LMR_COOKIE;

/* ---- Handles ------------------------------------------------------------- */

/*
 * A handle is an opaque value, not an address. Every type of object has its
 * own pointer type, so that the compiler refuses an EVD where an EP belongs;
 * each of them converts to DAT_HANDLE, the type of no particular object.
 */
typedef void *DAT_HANDLE;
typedef struct dat_cr *DAT_CR_HANDLE;		/* Connection Request */
typedef struct dat_csp *DAT_CSP_HANDLE;		/* Common Service Point */
typedef struct dat_ep *DAT_EP_HANDLE;		/* Endpoint */
typedef struct dat_evd *DAT_EVD_HANDLE;		/* Event Dispatcher */
typedef struct dat_ia *DAT_IA_HANDLE;		/* Interface Adapter */
typedef struct dat_lmr *DAT_LMR_HANDLE;		/* Local Memory Region */
typedef struct dat_psp *DAT_PSP_HANDLE;		/* Public Service Point */
typedef struct dat_pz *DAT_PZ_HANDLE;		/* Protection Zone */
typedef struct dat_rmr *DAT_RMR_HANDLE;		/* Remote Memory Region */
typedef struct dat_rsp *DAT_RSP_HANDLE;		/* Reserved Service Point */
typedef struct dat_srq *DAT_SRQ_HANDLE;		/* Shared Receive Queue */

#define DAT_HANDLE_NULL		((DAT_HANDLE)NULL)

/* Kernel numbering: user-space DAPL has one type more (the CNO). */
typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR = 0,
	DAT_HANDLE_TYPE_EP = 1,
	DAT_HANDLE_TYPE_EVD = 2,
	DAT_HANDLE_TYPE_IA = 3,
	DAT_HANDLE_TYPE_LMR = 4,
	DAT_HANDLE_TYPE_PSP = 5,
	DAT_HANDLE_TYPE_PZ = 6,
	DAT_HANDLE_TYPE_RMR = 7,
	DAT_HANDLE_TYPE_RSP = 8,
	DAT_HANDLE_TYPE_SRQ = 9,
	DAT_HANDLE_TYPE_CSP = 10
} DAT_HANDLE_TYPE;

/* ---- Watermarks and counts ----------------------------------------------- */

#define DAT_WATERMARK_INFINITE	((DAT_COUNT)~0)		/* high mark is off */
#define DAT_HW_DEFAULT		DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT	0			/* low mark is off */
#define DAT_VALUE_UNKNOWN	(((DAT_COUNT)~0) - 1)	/* count not known */

/* ---- States -------------------------------------------------------------- */

typedef enum dat_ep_state {
	DAT_EP_STATE_UNCONNECTED = 0,			/* new, or reset */
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED = 1,	/* never entered */
	DAT_EP_STATE_RESERVED = 2,			/* at an RSP */
	DAT_EP_STATE_UNCONFIGURED_RESERVED = 3,		/* never entered */
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING = 4,	/* RSP has a request */
	DAT_EP_STATE_UNCONFIGURED_PASSIVE = 5,		/* never entered */
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING = 6,	/* connecting */
	/* created for a request on a PSP with DAT_PSP_PROVIDER_FLAG */
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING = 7,
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE = 8,	/* never entered */
	DAT_EP_STATE_CONNECTED = 9,
	DAT_EP_STATE_DISCONNECT_PENDING = 10,		/* graceful end */
	DAT_EP_STATE_DISCONNECTED = 11,			/* can be reset */
	DAT_EP_STATE_COMPLETION_PENDING = 12,		/* CR was accepted */
	DAT_EP_STATE_CONNECTED_SINGLE_PATH = 13,	/* never entered */
	DAT_EP_STATE_CONNECTED_MULTI_PATH = 14		/* never entered */
} DAT_EP_STATE;

#define DAT_EP_STATE_ERROR	DAT_EP_STATE_DISCONNECTED

typedef enum dat_srq_state {
	DAT_SRQ_STATE_OPERATIONAL = 0,
	DAT_SRQ_STATE_ERROR = 1
} DAT_SRQ_STATE;

/* ---- Flags --------------------------------------------------------------- */

/* Flags of one post, and the set of flags that an EP is created with. */
typedef enum dat_completion_flags {
	DAT_COMPLETION_DEFAULT_FLAG = 0x00,	/* event with notification */
	DAT_COMPLETION_SUPPRESS_FLAG = 0x01,	/* no event on success */
	DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02, /* sender asks to notify */
	DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,	/* event, no notification */
	DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08, /* after earlier RDMA Reads */
	DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10, /* user-space DAPL only */
	DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG = 0x20 /* the same fence */
} DAT_COMPLETION_FLAGS;

/* The operation that a DTO completion event reports. */
typedef enum dat_dtos {
	DAT_DTO_SEND = 0,
	DAT_DTO_RDMA_WRITE = 1,
	DAT_DTO_RDMA_READ = 2,
	DAT_DTO_RECEIVE = 3,
	DAT_DTO_RECEIVE_WITH_INVALIDATE = 4,
	DAT_DTO_BIND_MW = 5,
	DAT_DTO_LMR_FMR = 6,
	DAT_DTO_LMR_INVALIDATE = 7,
	DAT_DTO_EXTENSION_BASE = 8		/* kDAPL has no extensions */
} DAT_DTOS;

typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT = 0x00,
	DAT_QOS_HIGH_THROUGHPUT = 0x01,
	DAT_QOS_LOW_LATENCY = 0x02,
	DAT_QOS_ECONOMY = 0x04,
	DAT_QOS_PREMIUM = 0x08
} DAT_QOS;

typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC = 0			/* reliable connection */
} DAT_SERVICE_TYPE;

/* Extensions a provider may have; kDAPL has none. */
typedef enum dat_extension {
	DAT_EXTENSION_NONE = 0,
	DAT_EXTENSION_IB = 1,
	DAT_EXTENSION_IW = 2
} DAT_EXTENSION;

typedef enum dat_connect_flags {
	DAT_CONNECT_DEFAULT_FLAG = 0x00,
	DAT_CONNECT_MULTIPATH_REQUESTED_FLAG = 0x01,
	DAT_CONNECT_MULTIPATH_REQUIRED_FLAG = 0x02
} DAT_CONNECT_FLAGS;

/* DAT 1.x name of DAT_CONNECT_MULTIPATH_REQUESTED_FLAG. */
#define DAT_CONNECT_MULTIPATH_FLAG	DAT_CONNECT_MULTIPATH_REQUESTED_FLAG

typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG = 0x00,
	DAT_CLOSE_GRACEFUL_FLAG = 0x01
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT	DAT_CLOSE_ABRUPT_FLAG

/* Streams that may feed an EVD. */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG = 0x001,
	DAT_EVD_CR_FLAG = 0x010,
	DAT_EVD_DTO_FLAG = 0x020,
	DAT_EVD_CONNECTION_FLAG = 0x040,
	DAT_EVD_RMR_BIND_FLAG = 0x080,
	DAT_EVD_ASYNC_FLAG = 0x100,
	DAT_EVD_DEFAULT_FLAG = 0x1f0,		/* all but software */
	DAT_EVD_EXTENSION_BASE = 0x200		/* kDAPL has no extensions */
} DAT_EVD_FLAGS;

/* The creator of the EP for a request that arrives at a PSP. */
typedef enum dat_psp_flags {
	DAT_PSP_CONSUMER_FLAG = 0x00,
	DAT_PSP_PROVIDER_FLAG = 0x01
} DAT_PSP_FLAGS;

typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER = 0,
	DAT_PSP_CREATES_EP_IFASKED = 1,
	DAT_PSP_CREATES_EP_ALWAYS = 2
} DAT_EP_CREATOR_FOR_PSP;

/* The owner of a segment array after a post has returned. */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER = 0,			/* reuse it at once */
	DAT_IOV_PROVIDER_NOMOD = 1,		/* in use until completion */
	DAT_IOV_PROVIDER_MOD = 2		/* and possibly changed */
} DAT_IOV_OWNERSHIP;

typedef DAT_UINT32 DAT_HA_LB;
#define DAT_HA_LB_NONE		((DAT_HA_LB)0)
#define DAT_HA_LB_INTERCOMM	((DAT_HA_LB)1)
#define DAT_HA_LB_INTRACOMM	((DAT_HA_LB)2)

/* ---- Memory -------------------------------------------------------------- */

typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG = 0x00,
	DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01,
	DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x02,
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
	DAT_MEM_PRIV_ALL_FLAG = 0x33
} DAT_MEM_PRIV_FLAGS;

#define DAT_MEM_PRIV_READ_FLAG \
	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG \
	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* The content of a DAT_REGION_DESCRIPTION; or-ed: the supported types. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL = 0x00,		/* kmalloc or vmalloc memory */
	DAT_MEM_TYPE_LMR = 0x01,		/* the memory of another LMR */
	DAT_MEM_TYPE_PHYSICAL = 0x10,		/* pages of PAGE_SIZE */
	DAT_MEM_TYPE_PLATFORM = 0x20,		/* struct scatterlist table */
	DAT_MEM_TYPE_IA = 0x40,			/* one DMA address */
	DAT_MEM_TYPE_BYPASS = 0x80,		/* not supported */
	DAT_MEM_TYPE_PHYSICAL_VAR_PAGES = 0x100	/* pages of a given size */
} DAT_MEM_TYPE;

typedef enum dat_mem_optimize_flags {
	DAT_MEM_OPTIMIZE_DONT_CARE = 0x00,
	DAT_MEM_OPTIMIZE_IA = 0x01,		/* what the adapter prefers */
	DAT_MEM_OPTIMIZE_MIN_EXPOSURE = 0x02,	/* little more than asked for */
	DAT_MEM_OPTIMIZE_EXACT_EXPOSURE = 0x04	/* not a byte more */
} DAT_MEM_OPTIMIZE_FLAGS;

#define DAT_MEM_OPT		DAT_MEM_OPTIMIZE_FLAGS

/* How the bytes of a region are addressed. */
typedef enum dat_va_type {
	DAT_VA_TYPE_VA = 0x0,			/* by their own addresses */
	DAT_VA_TYPE_ZB = 0x1			/* from zero */
} DAT_VA_TYPE;

typedef enum dat_rmr_scope {
	DAT_RMR_SCOPE_EP = 0,			/* valid on one EP */
	DAT_RMR_SCOPE_PZ = 1,			/* on all EPs of its PZ */
	DAT_RMR_SCOPE_ANY = 2			/* (attribute) both kinds */
} DAT_RMR_SCOPE;

typedef enum dat_lmr_scope {
	DAT_LMR_SCOPE_EP = 0,
	DAT_LMR_SCOPE_PZ = 1,
	DAT_LMR_SCOPE_ANY = 2
} DAT_LMR_SCOPE;

/* A local segment. With a length of 0 the other members do not matter. */
typedef struct dat_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;		/* bytes */
	DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/*
 * A segment in the peer's memory, or in an RMR. DAT 1.x calls the address target_address
 * and has another order of members. Code that was written for 1.x must be checked, so the
 * old name is not offered.
 */
typedef struct dat_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;		/* bytes */
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

/* Pages of one size that need not be PAGE_SIZE. */
typedef struct dat_physical_var_pages {
	DAT_VLEN page_size;			/* bytes */
	void *pages;				/* array of DAT_PADDR */
} DAT_PHYSICAL_VAR_PAGES;

/*
 * The memory to register, in the member for its DAT_MEM_TYPE. DAT 1.x has for_pa, one
 * physical address, in place of for_physical, an array of them.
 */
typedef union dat_region_description {
	DAT_PVOID for_va;			/* VIRTUAL */
	DAT_LMR_HANDLE for_lmr_handle;		/* LMR */
	void *for_platform;			/* PLATFORM: scatterlist */
	DAT_PHYSICAL_VAR_PAGES for_array;	/* PHYSICAL_VAR_PAGES */
	DAT_PADDR *for_physical;		/* PHYSICAL: page array */
	DAT_PADDR for_ia;			/* IA: one DMA address */
} DAT_REGION_DESCRIPTION;

#endif /* DAT_TYPES_H */
