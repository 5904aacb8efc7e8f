/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: attributes and parameters of objects, with the mask bits by which
 * dat_*_query() and dat_ep_modify() select them.
 *
 * A query fills at least the members whose bits are set. Addresses, names and
 * attribute lists it returns point into memory of kDAPL that lives as long as
 * the object.
 */
#ifndef DAT_ATTR_H
#define DAT_ATTR_H

#include <dat/dat_event.h>
#include <dat/dat_types.h>

/* ---- Registry ------------------------------------------------------------ */

/**
 * struct dat_provider_info - one IA that can be opened
 * @ia_name: device and port, as in "rxe0/1"
 * @dapl_version_major: 2
 * @dapl_version_minor: 0
 * @is_thread_safe: %DAT_TRUE
 */
typedef struct dat_provider_info {
	char ia_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/* Can connections of one IA move to the other? */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE = 0,
	DAT_HA_TRUE = 1,
	DAT_HA_UNKNOWN = 2,
	DAT_HA_CONFLICTING = 3,			/* the two disagree */
	DAT_HA_EXTENSION_BASE = 4		/* of which kDAPL has none */
} DAT_HA_RELATIONSHIP;

/* ---- Interface Adapter --------------------------------------------------- */

/**
 * struct dat_ia_attr - what an IA is and can do at most
 * @adapter_name: name of the ib_core device, without the port
 * @vendor_name: IEEE identifier of the vendor, as in "0x0002c9"
 * @hardware_version_major: hardware version, as the driver reports it
 * @hardware_version_minor: 0
 * @firmware_version_major: upper 32 bits of the driver's firmware version
 * @firmware_version_minor: lower 32 bits of it
 * @ia_address_ptr: one of the IA's IP addresses, or family AF_UNSPEC if it has
 *	none; points into the IA
 * @max_eps: Endpoints
 * @max_dto_per_ep: receives, and requests, that one EP may have outstanding
 * @max_rdma_read_per_ep_in: RDMA Reads that the peer of one EP may have
 *	outstanding
 * @max_rdma_read_per_ep: name of @max_rdma_read_per_ep_in in DAT 1.0
 * @max_rdma_read_per_ep_out: RDMA Reads that one EP may have on the wire; those
 *	posted beyond wait
 * @max_evds: Event Dispatchers
 * @max_evd_qlen: length of an EVD, events
 * @max_iov_segments_per_dto: segments of a Send, a receive or an SRQ buffer
 * @max_lmrs: LMRs, together with two for each RMR
 * @max_lmr_block_size: length of an LMR that the peer may access and that begins
 *	on a page boundary, bytes; one that begins inside a page may have to be a
 *	page shorter
 * @max_lmr_virtual_address: highest address of an LMR
 * @max_pzs: Protection Zones
 * @max_message_size: longest message, bytes
 * @max_mtu_size: name of @max_message_size in DAT 1.0 and 1.1
 * @max_rdma_size: longest RDMA Read or Write, bytes
 * @max_rmrs: RMRs; 0 if the device cannot register by work request
 * @max_rmr_target_address: highest address of an RMR
 * @max_srqs: SRQs; 0 if the device has none
 * @max_ep_per_srq: EPs that may share one SRQ
 * @max_recv_per_srq: buffers that may be outstanding on one SRQ
 * @max_iov_segments_per_rdma_read: local segments of an RDMA Read; 1 on iWARP
 * @max_iov_segments_per_rdma_write: local segments of an RDMA Write
 * @max_rdma_read_in: RDMA Reads by peers that all EPs together may have
 *	outstanding
 * @max_rdma_read_out: RDMA Reads that all EPs together may have on the wire
 * @max_rdma_read_per_ep_in_guaranteed: %DAT_FALSE: the EPs share
 *	@max_rdma_read_in
 * @max_rdma_read_per_ep_out_guaranteed: %DAT_FALSE: the EPs share
 *	@max_rdma_read_out
 * @zb_supported: %DAT_TRUE: %DAT_VA_TYPE_ZB may be used
 * @reserved_lmr_supported: %DAT_TRUE: there is dat_ia_reserved_lmr()
 * @num_transport_attr: 0
 * @transport_attr: NULL
 * @num_vendor_attr: 0
 * @vendor_attr: NULL
 *
 * All limits are those of the device, which its other users share: what is left
 * of them may be less. A limit above INT_MAX is reported as INT_MAX.
 */
typedef struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	union {
		DAT_COUNT max_rdma_read_per_ep_in;
		DAT_COUNT max_rdma_read_per_ep;
	};
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_SEG_LENGTH max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	union {
		DAT_SEG_LENGTH max_message_size;
		DAT_SEG_LENGTH max_mtu_size;
	};
	DAT_SEG_LENGTH max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;
	DAT_BOOLEAN reserved_lmr_supported;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
} DAT_IA_ATTR;

/*
 * One bit for each member of DAT_IA_ATTR. Bits 33 and 34 belong to DAT extensions,
 * which kDAPL does not have.
 */
typedef DAT_UINT64 DAT_IA_ATTR_MASK;
#define DAT_IA_FIELD_NONE				0x0000000000ULL
#define DAT_IA_FIELD_IA_ADAPTER_NAME			0x0000000001ULL
#define DAT_IA_FIELD_IA_VENDOR_NAME			0x0000000002ULL
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION		0x0000000004ULL
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION		0x0000000008ULL
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION		0x0000000010ULL
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION		0x0000000020ULL
#define DAT_IA_FIELD_IA_ADDRESS_PTR			0x0000000040ULL
#define DAT_IA_FIELD_IA_MAX_EPS				0x0000000080ULL
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP			0x0000000100ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN		0x0000000200ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT	0x0000000400ULL
#define DAT_IA_FIELD_IA_MAX_EVDS			0x0000000800ULL
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN			0x0000001000ULL
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO	0x0000002000ULL
#define DAT_IA_FIELD_IA_MAX_LMRS			0x0000004000ULL
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE		0x0000008000ULL
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS		0x0000010000ULL
#define DAT_IA_FIELD_IA_MAX_PZS				0x0000020000ULL
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE		0x0000040000ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE			0x0000080000ULL
#define DAT_IA_FIELD_IA_MAX_RMRS			0x0000100000ULL
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS		0x0000200000ULL
#define DAT_IA_FIELD_IA_MAX_SRQS			0x0000400000ULL
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ			0x0000800000ULL
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ		0x0001000000ULL
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ	0x0002000000ULL
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE	0x0004000000ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN		0x0008000000ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT		0x0010000000ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED	0x0020000000ULL
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED	0x0040000000ULL
#define DAT_IA_FIELD_IA_ZB_SUPPORTED			0x0080000000ULL
#define DAT_IA_FIELD_IA_RESERVED_LMR_SUPPORTED		0x0100000000ULL
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR		0x0800000000ULL
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR			0x1000000000ULL
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR			0x2000000000ULL
#define DAT_IA_FIELD_IA_VENDOR_ATTR			0x4000000000ULL
#define DAT_IA_FIELD_ALL				0x7fffffffffULL

/* Names of DAT 1.x. */
#define DAT_IA_ALL				DAT_IA_FIELD_ALL
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE		DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP		DAT_IA_FIELD_IA_MAX_DTO_PER_EP
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP	DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN

/* ---- Provider ------------------------------------------------------------ */

/* Rows and columns of evd_stream_merging_supported; the names are our own. */
#define DAT_EVD_STREAM_SOFTWARE		0
#define DAT_EVD_STREAM_CR		1
#define DAT_EVD_STREAM_DTO		2
#define DAT_EVD_STREAM_CONNECTION	3
#define DAT_EVD_STREAM_RMR_BIND		4
#define DAT_EVD_STREAM_ASYNC		5
#define DAT_EVD_STREAMS			6

/* Bits of srq_watermarks_supported; the names are our own, too. */
#define DAT_WATERMARKS_SRQ_LOW		0x001
#define DAT_WATERMARKS_EP_SOFT_HIGH	0x010
#define DAT_WATERMARKS_EP_HARD_HIGH	0x100

/* Bits of srq_info_supported and ep_recv_info_supported. */
#define DAT_SRQ_INFO_AVAILABLE		0x01
#define DAT_SRQ_INFO_OUTSTANDING	0x10
#define DAT_EP_RECV_INFO_NBUFS		0x01
#define DAT_EP_RECV_INFO_SPAN		0x10

/**
 * struct dat_provider_attr - what kDAPL offers on an IA
 * @provider_name: "kdapl"
 * @provider_version_major: version of kDAPL
 * @provider_version_minor: 0
 * @dapl_version_major: %DAT_VERSION_MAJOR
 * @dapl_version_minor: %DAT_VERSION_MINOR
 * @lmr_mem_types_supported: %DAT_MEM_TYPE_ constants, or-ed; of these, VIRTUAL is
 *	0 and always supported
 * @iov_ownership_on_return: %DAT_IOV_CONSUMER: segment arrays may be reused when
 *	a post has returned
 * @dat_qos_supported: %DAT_QOS_ flags, or-ed
 * @completion_flags_supported: %DAT_COMPLETION_ flags, or-ed
 * @is_thread_safe: %DAT_TRUE: any calls may race with each other
 * @max_private_data_size: bytes that a connection request, its acceptance and
 *	its rejection may carry; 56 on InfiniBand and RoCE, 251 on iWARP
 * @supports_multipath: %DAT_FALSE
 * @ep_creator: %DAT_PSP_CREATES_EP_IFASKED
 * @upcall_policy: %DAT_UPCALL_MANY: all policies may be used
 * @optimal_buffer_alignment: bytes
 * @evd_stream_merging_supported: whether the streams of row and column may feed
 *	the same EVD; indexed by the %DAT_EVD_STREAM_ constants, all %DAT_TRUE
 * @srq_supported: %DAT_TRUE if the device has SRQs
 * @srq_watermarks_supported: %DAT_WATERMARKS_ bits, all of them
 * @srq_ep_pz_difference_supported: %DAT_TRUE if an EP may be of another
 *	Protection Zone than its SRQ
 * @srq_info_supported: %DAT_SRQ_INFO_ bits, all of them
 * @ep_recv_info_supported: %DAT_EP_RECV_INFO_ bits, all of them
 * @lmr_sync_req: whether dat_lmr_sync_rdma_read() and dat_lmr_sync_rdma_write()
 *	have to be called
 * @dto_async_return_guaranteed: %DAT_TRUE: posts do not wait
 * @rdma_write_for_rdma_read_req: %DAT_FALSE: the sink of an RDMA Read needs no
 *	remote write privilege
 * @rdma_read_lmr_rmr_context_exposure: %DAT_FALSE: an RDMA Read does not show
 *	the peer the context of an LMR
 * @rmr_scope_supported: %DAT_RMR_SCOPE_ANY: dat_rmr_create() and
 *	dat_rmr_create_for_ep()
 * @is_interrupt_safe: %DAT_TRUE: calls of context "any" may be made with
 *	interrupts off
 * @fmr_supported: %DAT_TRUE if there is dat_lmr_allocate()
 * @lmr_for_fmr_scope_supported: %DAT_LMR_SCOPE_ANY
 * @ha_supported: %DAT_FALSE
 * @ha_loadbalancing: %DAT_HA_LB_NONE
 * @num_provider_specific_attr: 0
 * @provider_specific_attr: NULL
 */
typedef struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UINT32 optimal_buffer_alignment;
	DAT_BOOLEAN evd_stream_merging_supported[DAT_EVD_STREAMS]
						[DAT_EVD_STREAMS];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	DAT_RMR_SCOPE rmr_scope_supported;
	DAT_BOOLEAN is_interrupt_safe;
	DAT_BOOLEAN fmr_supported;
	DAT_LMR_SCOPE lmr_for_fmr_scope_supported;
	DAT_BOOLEAN ha_supported;
	DAT_HA_LB ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
} DAT_PROVIDER_ATTR;

/* One bit for each member of DAT_PROVIDER_ATTR. */
typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;
#define DAT_PROVIDER_FIELD_NONE				0x000000000ULL
#define DAT_PROVIDER_FIELD_PROVIDER_NAME		0x000000001ULL
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	0x000000002ULL
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	0x000000004ULL
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR		0x000000008ULL
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR		0x000000010ULL
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	0x000000020ULL
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP		0x000000040ULL
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED		0x000000080ULL
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	0x000000100ULL
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE		0x000000200ULL
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	0x000000400ULL
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH		0x000000800ULL
#define DAT_PROVIDER_FIELD_EP_CREATOR			0x000001000ULL
#define DAT_PROVIDER_FIELD_UPCALL_POLICY		0x000002000ULL
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	0x000004000ULL
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	0x000008000ULL
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED		0x000010000ULL
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	0x000020000ULL
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED	0x000040000ULL
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED		0x000080000ULL
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	0x000100000ULL
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ			0x000200000ULL
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	0x000400000ULL
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	0x000800000ULL
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE	0x001000000ULL
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED		0x002000000ULL
#define DAT_PROVIDER_FIELD_IS_INTERRUPT_SAFE		0x004000000ULL
#define DAT_PROVIDER_FIELD_FMR_SUPPORTED		0x008000000ULL
#define DAT_PROVIDER_FIELD_LMR_FOR_FMR_SCOPE		0x010000000ULL
#define DAT_PROVIDER_FIELD_HA_SUPPORTED			0x020000000ULL
#define DAT_PROVIDER_FIELD_HA_LB			0x040000000ULL
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	0x080000000ULL
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	0x100000000ULL
#define DAT_PROVIDER_FIELD_ALL				0x1ffffffffULL

/* ---- Endpoint ------------------------------------------------------------ */

/**
 * struct dat_ep_attr - what an EP is made for
 * @service_type: %DAT_SERVICE_TYPE_RC
 * @max_message_size: longest message, bytes; at most that of the IA
 * @max_rdma_size: longest RDMA Read or Write, bytes; at most that of the IA
 * @qos: %DAT_QOS_ flags, or-ed
 * @recv_completion_flags: %DAT_COMPLETION_SOLICITED_WAIT_FLAG: the sender of a
 *	message decides whether its completion causes an upcall.
 *	%DAT_COMPLETION_UNSIGNALLED_FLAG: receives may be posted with that flag.
 *	All receive and request streams that share an EVD must have the same flags
 * @request_completion_flags: %DAT_COMPLETION_UNSIGNALLED_FLAG: requests may be
 *	posted with that flag. SUPPRESS, SOLICITED_WAIT and the fences are always
 *	allowed
 * @max_recv_dtos: receives that may be outstanding; ignored with an SRQ
 * @max_request_dtos: requests that may be outstanding: Sends, RDMA Reads and
 *	Writes, binds, fast registrations and invalidations together
 * @max_recv_iov: segments of a receive; ignored with an SRQ
 * @max_request_iov: segments of a Send
 * @max_rdma_read_in: RDMA Reads by the peer that may be outstanding; with 0 the
 *	peer cannot read
 * @max_rdma_read_out: own RDMA Reads that may be on the wire; with 0 none can be
 *	posted
 * @srq_soft_hw: soft high watermark, held buffers, or %DAT_HW_DEFAULT for none;
 *	dat_ep_create_with_srq() arms it, dat_ep_create() does not
 * @max_rdma_read_iov: local segments of an RDMA Read
 * @max_rdma_write_iov: local segments of an RDMA Write
 * @ep_transport_specific_count: 0, there are no such attributes
 * @ep_transport_specific: not looked at
 * @ep_provider_specific_count: 0, there are no such attributes
 * @ep_provider_specific: not looked at
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
 * struct dat_ep_param - an EP as it is now, or as dat_ep_modify() is to make it
 * @ia_handle: its IA
 * @ep_state: its state
 * @comm: what dat_ep_common_connect() speaks
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
 * struct dat_srq_attr - what an SRQ is made for
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
 * struct dat_lmr_state - whether an LMR can be bound, and is
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
 * @lmr_state: whether it can be bound, and is
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
 * @psp_flags: who makes the EPs
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
 * @ep_handle: the EP it was made with
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
 * @comm: what it speaks; points into the CSP
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
 * @private_data: what the peer sent along; points into the request
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
