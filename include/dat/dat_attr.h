/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: attributes and parameters of objects, with the mask bits by which
 * dat_*_query() and dat_ep_modify() select them.
 *
 * Attributes of IAs are in dat_ia_attr.h. A query fills in at least the members whose
 * bits are set. Addresses, names and attribute lists in the results point into memory of
 * kDAPL that lives as long as the object.
 */
#ifndef DAT_ATTR_H
#define DAT_ATTR_H

#include <dat/dat_event.h>
#include <dat/dat_ia_attr.h>
#include <dat/dat_types.h>

/* ---- Endpoint ------------------------------------------------------------ */

/**
 * struct dat_ep_attr - attributes of an EP
 * @service_type: %DAT_SERVICE_TYPE_RC
 * @max_message_size: longest message, bytes; at most the IA's limit, which 0 means
 * @max_rdma_size: longest RDMA Read or Write, bytes; at most the IA's limit, which 0
 *	means
 * @qos: %DAT_QOS_ flags, or-ed
 * @recv_completion_flags: %DAT_COMPLETION_SOLICITED_WAIT_FLAG: the sender of a
 *	message decides whether its completion causes an upcall.
 *	%DAT_COMPLETION_UNSIGNALLED_FLAG: receives may be posted with that flag.
 *	All receive and request streams that share an EVD must have the same flags
 * @request_completion_flags: %DAT_COMPLETION_UNSIGNALLED_FLAG: requests may be
 *	posted with that flag. SUPPRESS, SOLICITED_WAIT and the fences are always
 *	allowed
 * @max_recv_dtos: receives that may be outstanding; with 0 none can be posted. Ignored
 *	with an SRQ
 * @max_request_dtos: requests that may be outstanding: Sends, RDMA Reads and
 *	Writes, binds, fast registrations and invalidations together; with 0 none can
 *	be posted
 * @max_recv_iov: segments of a receive; 0 means 4, or the IA's limit if it is lower.
 *	Ignored with an SRQ
 * @max_request_iov: segments of a Send; 0 means 4, or the IA's limit if it is lower
 * @max_rdma_read_in: RDMA Reads by the peer that may be outstanding; with 0 the
 *	peer cannot read
 * @max_rdma_read_out: own RDMA Reads that may be on the wire; with 0 none can be
 *	posted
 * @srq_soft_hw: soft high watermark, held buffers, or %DAT_HW_DEFAULT for none; 0 fires
 *	at the first buffer. dat_ep_create_with_srq() arms it, dat_ep_create() does not
 * @max_rdma_read_iov: local segments of an RDMA Read; 0 means @max_request_iov, or the
 *	IA's limit if it is lower
 * @max_rdma_write_iov: local segments of an RDMA Write; 0 as for @max_rdma_read_iov
 * @ep_transport_specific_count: 0, there are no such attributes
 * @ep_transport_specific: ignored
 * @ep_provider_specific_count: 0, there are no such attributes
 * @ep_provider_specific: ignored
 *
 * 0 means the same for dat_ep_create(), dat_ep_create_with_srq() and dat_ep_modify().
 * dat_ep_query() returns the value that the consumer gave, also if it was 0.
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
} DAT_EP_ATTR;

/**
 * struct dat_ep_param - an EP as it is now, or as it will be after dat_ep_modify()
 * @ia_handle: its IA
 * @ep_state: its state
 * @comm: transport of dat_ep_common_connect()
 * @local_ia_address_ptr: own address of the connection; points into the EP
 * @local_port_qual: own port, in host byte order
 * @remote_ia_address_ptr: address of the peer; points into the EP
 * @remote_port_qual: port of the peer, in host byte order
 * @pz_handle: its Protection Zone, or NULL
 * @recv_evd_handle: EVD for receive completions, or NULL
 * @request_evd_handle: EVD for the completions of all other posts, or NULL
 * @connect_evd_handle: EVD for connection events, or NULL
 * @srq_handle: its SRQ, or NULL
 * @ep_attr: its attributes
 */
typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_COMM comm;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

/* One bit for each member of DAT_EP_PARAM and of its DAT_EP_ATTR. */
typedef DAT_UINT64 DAT_EP_PARAM_MASK;
#define DAT_EP_FIELD_IA_HANDLE			0x00000001ULL
#define DAT_EP_FIELD_EP_STATE			0x00000002ULL
#define DAT_EP_FIELD_COMM			0x00000004ULL
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR	0x00000008ULL
#define DAT_EP_FIELD_LOCAL_PORT_QUAL		0x00000010ULL
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR	0x00000020ULL
#define DAT_EP_FIELD_REMOTE_PORT_QUAL		0x00000040ULL
#define DAT_EP_FIELD_PZ_HANDLE			0x00000080ULL
#define DAT_EP_FIELD_RECV_EVD_HANDLE		0x00000100ULL
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE		0x00000200ULL
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE		0x00000400ULL
#define DAT_EP_FIELD_SRQ_HANDLE			0x00000800ULL
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE		0x00001000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE		0x00002000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE		0x00004000ULL
#define DAT_EP_FIELD_EP_ATTR_QOS			0x00008000ULL
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS	0x00010000ULL
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS	0x00020000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS		0x00040000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS		0x00080000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV		0x00100000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV		0x00200000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN		0x00400000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT		0x00800000ULL
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW		0x01000000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV		0x02000000ULL
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV		0x04000000ULL
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR		0x08000000ULL
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR	0x10000000ULL
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR		0x20000000ULL
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR	0x40000000ULL
#define DAT_EP_FIELD_EP_ATTR_ALL			0x7ffff000ULL
#define DAT_EP_FIELD_ALL				0x7fffffffULL

/* ---- Shared Receive Queue ------------------------------------------------ */

/**
 * struct dat_srq_attr - attributes of an SRQ
 * @max_recv_dtos: buffers that may be outstanding
 * @max_recv_iov: segments of a buffer
 * @low_watermark: %DAT_SRQ_LW_DEFAULT; dat_srq_set_lw() sets another
 */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/**
 * struct dat_srq_param - an SRQ as it is now
 * @ia_handle: its IA
 * @srq_state: operational, or broken with its device
 * @pz_handle: its Protection Zone
 * @max_recv_dtos: buffers that may be outstanding
 * @max_recv_iov: segments of a buffer
 * @low_watermark: as last set, 0 if off
 * @available_dto_count: buffers posted and not taken by an EP
 * @outstanding_dto_count: buffers posted and not reaped by the consumer
 */
typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE = 0x01,
	DAT_SRQ_FIELD_SRQ_STATE = 0x02,
	DAT_SRQ_FIELD_PZ_HANDLE = 0x04,
	DAT_SRQ_FIELD_MAX_RECV_DTO = 0x08,
	DAT_SRQ_FIELD_MAX_RECV_IOV = 0x10,
	DAT_SRQ_FIELD_LOW_WATERMARK = 0x20,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT = 0x40,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT = 0x80,
	DAT_SRQ_FIELD_ALL = 0xff
} DAT_SRQ_PARAM_MASK;

/* ---- Event Dispatcher ---------------------------------------------------- */

/**
 * struct dat_evd_param - an EVD as it is now
 * @ia_handle: its IA
 * @evd_qlen: events it has room for
 * @upcall_policy: how the upcall is called
 * @upcall: the upcall object
 * @evd_flags: the streams that may feed it
 */
typedef struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UPCALL_OBJECT upcall;
	DAT_EVD_FLAGS evd_flags;
} DAT_EVD_PARAM;

typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE = 0x01,
	DAT_EVD_FIELD_EVD_QLEN = 0x02,
	DAT_EVD_FIELD_UPCALL_POLICY = 0x04,
	DAT_EVD_FIELD_UPCALL = 0x08,
	DAT_EVD_FIELD_EVD_FLAGS = 0x10,
	DAT_EVD_FIELD_ALL = 0x1f
} DAT_EVD_PARAM_MASK;

/* ---- Memory -------------------------------------------------------------- */

/**
 * struct dat_lmr_state - whether an LMR can be bound, and whether it is bound
 * @fmr_support: %DAT_TRUE for an LMR from dat_lmr_allocate()
 * @bound: %DAT_TRUE if it gives access to memory
 */
typedef struct dat_lmr_state {
	DAT_BOOLEAN fmr_support;
	DAT_BOOLEAN bound;
} DAT_LMR_STATE;

/**
 * struct dat_lmr_param - an LMR as it is now
 * @ia_handle: its IA
 * @mem_type: type of its memory
 * @region_desc: its memory, as the consumer described it; pointers in it are
 *	the consumer's, and may be stale
 * @length: bytes that were asked for
 * @pz_handle: its Protection Zone; NULL for the reserved LMR
 * @mem_priv: its privileges
 * @va_type: whether its addresses are those of the memory or begin at zero
 * @lmr_context: names it in local segments
 * @rmr_context: names it to the peer; 0 without a remote privilege
 * @registered_size: bytes that can be addressed
 * @registered_address: the first address
 * @lmr_state: whether it can be bound, and whether it is bound
 */
typedef struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_VA_TYPE va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
	DAT_LMR_STATE lmr_state;
} DAT_LMR_PARAM;

typedef enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE = 0x001,
	DAT_LMR_FIELD_MEM_TYPE = 0x002,
	DAT_LMR_FIELD_REGION_DESC = 0x004,
	DAT_LMR_FIELD_LENGTH = 0x008,
	DAT_LMR_FIELD_PZ_HANDLE = 0x010,
	DAT_LMR_FIELD_MEM_PRIV = 0x020,
	DAT_LMR_FIELD_VA_TYPE = 0x040,
	DAT_LMR_FIELD_LMR_CONTEXT = 0x080,
	DAT_LMR_FIELD_RMR_CONTEXT = 0x100,
	DAT_LMR_FIELD_REGISTERED_SIZE = 0x200,
	DAT_LMR_FIELD_REGISTERED_ADDRESS = 0x400,
	DAT_LMR_FIELD_LMR_STATE = 0x800,
	DAT_LMR_FIELD_ALL = 0xfff
} DAT_LMR_PARAM_MASK;

/**
 * struct dat_rmr_param - an RMR as it is now
 * @ia_handle: its IA
 * @pz_handle: its Protection Zone
 * @lmr_triplet: the part of an LMR that it shows; zero if it is not bound
 * @mem_priv: the privileges of its binding
 * @rmr_context: names it to the peer; 0 if it is not bound
 * @rmr_scope: %DAT_RMR_SCOPE_PZ from dat_rmr_create(), %DAT_RMR_SCOPE_EP from
 *	dat_rmr_create_for_ep()
 * @va_type: whether its addresses are those in the LMR or begin at zero
 */
typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
	DAT_RMR_SCOPE rmr_scope;
	DAT_VA_TYPE va_type;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE = 0x01,
	DAT_RMR_FIELD_PZ_HANDLE = 0x02,
	DAT_RMR_FIELD_LMR_TRIPLET = 0x04,
	DAT_RMR_FIELD_MEM_PRIV = 0x08,
	DAT_RMR_FIELD_RMR_CONTEXT = 0x10,
	DAT_RMR_FIELD_RMR_SCOPE = 0x20,
	DAT_RMR_FIELD_VA_TYPE = 0x40,
	DAT_RMR_FIELD_ALL = 0x7f
} DAT_RMR_PARAM_MASK;

/**
 * struct dat_pz_param - a Protection Zone
 * @ia_handle: its IA
 */
typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE = 0x01,
	DAT_PZ_FIELD_ALL = 0x01
} DAT_PZ_PARAM_MASK;

/* ---- Service Points and Connection Requests ------------------------------ */

/**
 * struct dat_psp_param - a Public Service Point
 * @ia_handle: its IA
 * @conn_qual: the port it listens on
 * @evd_handle: EVD for the requests
 * @psp_flags: who creates the EPs
 */
typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE = 0x01,
	DAT_PSP_FIELD_CONN_QUAL = 0x02,
	DAT_PSP_FIELD_EVD_HANDLE = 0x04,
	DAT_PSP_FIELD_PSP_FLAGS = 0x08,
	DAT_PSP_FIELD_ALL = 0x0f
} DAT_PSP_PARAM_MASK;

/**
 * struct dat_rsp_param - a Reserved Service Point
 * @ia_handle: its IA
 * @conn_qual: the port it listens on
 * @evd_handle: EVD for the request
 * @ep_handle: the EP it was created with
 */
typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE = 0x01,
	DAT_RSP_FIELD_CONN_QUAL = 0x02,
	DAT_RSP_FIELD_EVD_HANDLE = 0x04,
	DAT_RSP_FIELD_EP_HANDLE = 0x08,
	DAT_RSP_FIELD_ALL = 0x0f
} DAT_RSP_PARAM_MASK;

/**
 * struct dat_csp_param - a Common Service Point
 * @ia_handle: its IA
 * @comm: its transport; points into the CSP
 * @address_ptr: address and port it listens on; points into the CSP
 * @evd_handle: EVD for the requests
 */
typedef struct dat_csp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COMM *comm;
	DAT_IA_ADDRESS_PTR address_ptr;
	DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

typedef enum dat_csp_param_mask {
	DAT_CSP_FIELD_IA_HANDLE = 0x01,
	DAT_CSP_FIELD_COMM = 0x02,
	DAT_CSP_FIELD_IA_ADDRESS = 0x04,
	DAT_CSP_FIELD_EVD_HANDLE = 0x08,
	DAT_CSP_FIELD_ALL = 0x0f
} DAT_CSP_PARAM_MASK;

/**
 * struct dat_cr_param - a Connection Request
 * @remote_ia_address_ptr: address of the peer; points into the request
 * @remote_port_qual: its port, in host byte order
 * @private_data_size: bytes at @private_data
 * @private_data: data that the peer sent along; points into the request
 * @local_ep_handle: EP that the request came with, or NULL if the consumer
 *	brings one to accept with
 */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
	DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR = 0x01,
	DAT_CR_FIELD_REMOTE_PORT_QUAL = 0x02,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE = 0x04,
	DAT_CR_FIELD_PRIVATE_DATA = 0x08,
	DAT_CR_FIELD_LOCAL_EP_HANDLE = 0x10,
	DAT_CR_FIELD_ALL = 0x1f
} DAT_CR_PARAM_MASK;

#endif /* DAT_ATTR_H */
