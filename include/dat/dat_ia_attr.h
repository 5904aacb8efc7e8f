/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: attributes of Interface Adapters and of the provider.
 *
 * dat_ia_query() fills in at least the members whose mask bits are set. Addresses and
 * attribute lists point into memory of kDAPL that lives as long as the IA. The registry
 * describes each IA that can be opened with a struct dat_provider_info.
 */
#ifndef DAT_IA_ATTR_H
#define DAT_IA_ATTR_H

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
	DAT_HA_EXTENSION_BASE = 4		/* kDAPL has no extensions */
} DAT_HA_RELATIONSHIP;

/* ---- Interface Adapter --------------------------------------------------- */

/**
 * struct dat_ia_attr - identity and limits of an IA
 * @adapter_name: name of the ib_core device, without the port
 * @vendor_name: IEEE identifier of the vendor, as in "0x0002c9"
 * @hardware_version_major: hardware version, as the driver reports it
 * @hardware_version_minor: 0
 * @firmware_version_major: upper 32 bits of the driver's firmware version
 * @firmware_version_minor: lower 32 bits of the driver's firmware version
 * @ia_address_ptr: one of the IA's IP addresses, or family AF_UNSPEC if it has
 *	none; points into the IA
 * @max_eps: Endpoints
 * @max_dto_per_ep: receives, and requests, that one EP may have outstanding
 * @max_rdma_read_per_ep_in: RDMA Reads that the peer of one EP may have
 *	outstanding
 * @max_rdma_read_per_ep: name of @max_rdma_read_per_ep_in in DAT 1.0
 * @max_rdma_read_per_ep_out: RDMA Reads that one EP may have on the wire; further Reads
 *	wait
 * @max_evds: Event Dispatchers
 * @max_evd_qlen: length of an EVD, events
 * @max_iov_segments_per_dto: segments of a Send, a receive or an SRQ buffer
 * @max_lmrs: LMRs, together with two for each RMR
 * @max_lmr_block_size: length, in bytes, of an LMR that the peer may access and that
 *	begins on a page boundary; an LMR that begins inside a page may have to be a page
 *	shorter
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
 * @reserved_lmr_supported: %DAT_TRUE: dat_ia_reserved_lmr() is supported
 * @num_transport_attr: 0
 * @transport_attr: NULL
 * @num_vendor_attr: entries of @vendor_attr; 0 unless the device lacks something
 * @vendor_attr: features that the device lacks, by the names in <dat/kdat_linux.h>;
 *	valid as long as the IA is open
 *
 * All limits are those of the device; its other users may leave less. A limit above
 * INT_MAX is reported as INT_MAX.
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
 * @lmr_sync_req: whether dat_lmr_sync_rdma_read() and dat_lmr_sync_rdma_write() must be
 *	called: the device may reach a copy of the memory, or caches are not coherent
 * @dto_async_return_guaranteed: %DAT_TRUE: posts do not wait
 * @rdma_write_for_rdma_read_req: %DAT_FALSE: the sink of an RDMA Read needs no
 *	remote write privilege
 * @rdma_read_lmr_rmr_context_exposure: %DAT_FALSE: an RDMA Read does not show
 *	the peer the context of an LMR
 * @rmr_scope_supported: %DAT_RMR_SCOPE_ANY: dat_rmr_create() and
 *	dat_rmr_create_for_ep()
 * @is_interrupt_safe: %DAT_TRUE: calls of context "any" may be made with
 *	interrupts off
 * @fmr_supported: %DAT_TRUE if dat_lmr_allocate() is supported
 * @lmr_for_fmr_scope_supported: %DAT_LMR_SCOPE_ANY
 * @ha_supported: %DAT_FALSE
 * @ha_loadbalancing: %DAT_HA_LB_NONE
 * @num_provider_specific_attr: entries of @provider_specific_attr
 * @provider_specific_attr: what kDAPL does in place of the device, for people to read;
 *	valid as long as the IA is open
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

#endif /* DAT_IA_ATTR_H */
