/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: additions of this implementation to DAT.
 *
 * Nothing in here is part of the DAT standard, so <dat/kdat.h> does not include this
 * header. A consumer that must also build with another implementation cannot use it.
 */
#ifndef KDAT_LINUX_H
#define KDAT_LINUX_H

#include <linux/dma-direction.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <dat/dat_error.h>
#include <dat/dat_event.h>
#include <dat/dat_types.h>

struct scatterlist;
struct seq_file;

/*
 * Names in vendor_attr of DAT_IA_ATTR, for features that the device of an IA lacks.
 *
 * KDAT_ATTR_READ_PRIVILEGE, "ignored": the device answers RDMA Reads without checking
 * DAT_MEM_PRIV_REMOTE_READ_FLAG. A peer can read all memory whose key it has or guesses,
 * and RDMA Reads of this side show it a key of memory that was never opened to it. So use
 * such a device with trusted peers only.
 *
 * KDAT_ATTR_GATHER_FMR_PAGES, "last segment": if a Send or RDMA Write has several
 * segments, only the last one may be in pages that do not adjoin, bound by dat_lmr_fmr()
 * and not of DAT_MEM_TYPE_VIRTUAL; a segment inside of one page may be anywhere. Other
 * requests are refused with DAT_MODEL_NOT_SUPPORTED.
 */
#define KDAT_ATTR_READ_PRIVILEGE	"kdapl.read_privilege"
#define KDAT_ATTR_GATHER_FMR_PAGES	"kdapl.gather_fmr_pages"

/**
 * kdat_event_name() - name an event number
 * @event_number: the event_number of a DAT_EVENT
 *
 * The name is that of the constant, "DAT_CONNECTION_EVENT_BROKEN" for example. It
 * is never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown event" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	pr_info("%s\n", kdat_event_name(event.event_number));
 *
 * See also: kdat_dto_status_name(), kdat_ep_state_name(), dat_evd_dequeue(),
 * dat_strerror()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_event_name(DAT_EVENT_NUMBER event_number);

/**
 * kdat_dto_status_name() - name a completion status
 * @status: the status of a DTO or RMR bind completion event
 *
 * The name is that of the constant, "DAT_DTO_ERR_FLUSHED" for example. It is
 * never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown status" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
 *		&event.event_data.dto_completion_event_data;
 *
 *	if (dto->status != DAT_DTO_SUCCESS)
 *		pr_err_ratelimited("request %llu: %s\n", dto->user_cookie.as_64,
 *				   kdat_dto_status_name(dto->status));
 *
 * See also: kdat_event_name(), kdat_ep_state_name(), dat_evd_dequeue()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_dto_status_name(DAT_DTO_COMPLETION_STATUS status);

/**
 * kdat_ep_state_name() - name the state of an Endpoint
 * @ep_state: a state, from dat_ep_get_status() or dat_ep_query()
 *
 * The name is that of the constant, "DAT_EP_STATE_CONNECTED" for example. It is
 * never NULL and never freed.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * the name of the constant, or "unknown state" for a number that kDAPL does
 *   not define
 *
 * Example::
 *
 *	DAT_EP_STATE state;
 *
 *	ret = dat_ep_get_status(ep, &state, NULL, NULL);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("%s\n", kdat_ep_state_name(state));
 *
 * See also: kdat_event_name(), kdat_dto_status_name(), dat_ep_get_status()
 *
 * Source: Linux only, not part of DAT
 */
const char *kdat_ep_state_name(DAT_EP_STATE ep_state);

/**
 * kdat_show_word() - print a word "key=value" to a file of /proc/kdapl
 * @m: the file
 * @key: the key
 * @value: the value, of any characters: a name that an administrator or a peer has chosen
 *
 * The value stays one word: blanks, backslashes and what is not printable are printed in octal.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	// m is the file, a struct seq_file.
 *	kdat_show_word(m, "adapter", adapter->name);
 *
 * See also: kdat_server_adapters(), kdat_pool_query()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_show_word(struct seq_file *m, const char *key, const char *value);

/* A mapping of a scatterlist. It is no DAT object: calls for any handle refuse it. */
typedef struct kdat_sg_handle *KDAT_SG_HANDLE;

/**
 * kdat_sg_map() - map a scatterlist for requests
 * @ia: the IA whose device reads or writes the memory
 * @pz: a Protection Zone of the IA; Endpoints in it may name the memory
 * @sgl: the memory; the list and its pages must not change until the list is unmapped.
 *	DMA addresses are stored in the list
 * @nents: number of entries of @sgl, none of which is empty
 * @direction: %DMA_TO_DEVICE for memory that is sent or is the source of RDMA Writes;
 *	%DMA_FROM_DEVICE for sinks of RDMA Reads; %DMA_BIDIRECTIONAL for both
 * @max_segments: entries of @local_iov; @nents is always enough
 * @local_iov: receives triplets, in the order of the memory. Pieces that adjoin are
 *	joined, so there may be fewer than @nents
 * @num_segments: receives the number of triplets
 * @sg: receives the handle for kdat_sg_unmap()
 *
 * This call is for memory that others have allocated and that is used for one I/O, as in
 * block devices and file systems. Nothing is registered, so the peer does not reach the
 * memory. The call allocates nothing if a mapping of the PZ was unmapped before. Requests
 * of any Endpoint in @pz may name parts of the triplets, also parts of joined pieces. All
 * segments of one request that are in mappings must be in the same one; other segments
 * may name LMRs. Receives cannot name mappings.
 *
 * The memory belongs to the device until it is unmapped: until then only requests may
 * read or write it.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the list is mapped
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, the list cannot be mapped, or the device is
 *   gone; the subtype says which
 * * %DAT_INVALID_HANDLE - @ia is no IA, or @pz is no PZ of it
 * * %DAT_INVALID_PARAMETER - a pointer is NULL, there is no entry or an empty one, the
 *   direction is none, or @max_segments is too small; the subtype says which
 *
 * Example::
 *
 *	DAT_RMR_TRIPLET remote = { peer_address, 4 * PAGE_SIZE, peer_context };
 *	DAT_LMR_TRIPLET iov[4];
 *	DAT_COUNT n;
 *
 *	ret = kdat_sg_map(ia, pz, sgl, 4, DMA_TO_DEVICE, 4, iov, &n, &map);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ep_post_rdma_write(ep, n, iov, cookie, &remote,
 *					     DAT_COMPLETION_DEFAULT_FLAG);
 *
 * See also: kdat_sg_unmap(), kdat_ep_post_requests(), dat_lmr_kcreate(),
 * dat_ia_reserved_lmr()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_sg_map(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz,
		       struct scatterlist *sgl, DAT_COUNT nents,
		       enum dma_data_direction direction,
		       DAT_COUNT max_segments, DAT_LMR_TRIPLET *local_iov,
		       DAT_COUNT *num_segments, KDAT_SG_HANDLE *sg);

/**
 * kdat_sg_unmap() - unmap a scatterlist
 * @sg: from kdat_sg_map(); invalid afterwards, as are the triplets
 *
 * When the call returns %DAT_SUCCESS no device reads or writes the memory, and the CPU
 * sees all data that was written there. The call polls the completion queue of an
 * Endpoint only if kDAPL has not yet seen all requests that name the mapping complete.
 *
 * A mapping that is not unmapped keeps its PZ from being freed. If the device is gone the
 * list is unmapped already, but the call must still be made.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the list is unmapped
 * * %DAT_INVALID_HANDLE - @sg is no mapping
 * * %DAT_INVALID_STATE - a request that names the mapping has not completed; nothing
 *   has changed
 *
 * Example::
 *
 *	// The completion of the last request that names the mapping was reaped.
 *	ret = kdat_sg_unmap(map);
 *
 * See also: kdat_sg_map()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN __must_check kdat_sg_unmap(KDAT_SG_HANDLE sg);

/* Limits of one kdat_ep_post_requests(): requests, and segments of all of them together. */
#define KDAT_MAX_REQUESTS	8
#define KDAT_MAX_SEGMENTS	48

/**
 * struct kdat_request - one of several requests that are posted together
 * @operation: %DAT_DTO_SEND, %DAT_DTO_RDMA_WRITE or %DAT_DTO_RDMA_READ
 * @num_segments: number of segments in @local_iov
 * @local_iov: the local buffer
 * @user_cookie: for the completion event
 * @remote_iov: RDMA only: the buffer of the peer
 * @completion_flags: as for the call that posts one such request
 * @invalidate_flag: Send only: invalidate the peer's @rmr_context
 * @rmr_context: see @invalidate_flag
 */
struct kdat_request {
	DAT_DTOS operation;
	DAT_COUNT num_segments;
	DAT_LMR_TRIPLET *local_iov;
	DAT_DTO_COOKIE user_cookie;
	const DAT_RMR_TRIPLET *remote_iov;
	DAT_COMPLETION_FLAGS completion_flags;
	DAT_BOOLEAN invalidate_flag;
	DAT_RMR_CONTEXT rmr_context;
};

typedef struct kdat_request KDAT_REQUEST;

/**
 * kdat_ep_post_requests() - post several requests at once
 * @ep: a connected Endpoint
 * @num_requests: number of requests, at most %KDAT_MAX_REQUESTS
 * @requests: the requests, in the order in which they are executed; together they
 *	have at most %KDAT_MAX_SEGMENTS segments
 *
 * Either all requests are posted or none. The device is notified once, which costs less
 * than once for each request: an RDMA Write and the Send that announces it are the usual
 * case. To the consumer the requests complete as if they had been posted one by one.
 *
 * A device whose RDMA Reads need registered sinks, as iWARP devices do, takes Reads only
 * from dat_ep_post_rdma_read().
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - the requests are posted
 * * %DAT_INSUFFICIENT_RESOURCES - max_request_dtos does not leave room for all, or, for
 *   a Read, the Endpoint or the peer allows none
 * * %DAT_INVALID_HANDLE - @ep is no Endpoint
 * * %DAT_INVALID_PARAMETER - @num_requests is out of range, or something is wrong with
 *   @requests or with one of them
 * * %DAT_INVALID_STATE - the Endpoint is not connected
 * * %DAT_LENGTH_ERROR - the receiving buffer is shorter than the other one
 * * %DAT_MODEL_NOT_SUPPORTED - a Read on a device that needs registered sinks, or a Send
 *   that invalidates on a device that cannot
 * * %DAT_PRIVILEGES_VIOLATION - a segment names no LMR and no mapping, or its LMR or
 *   mapping does not permit the operation
 * * %DAT_PROTECTION_VIOLATION - a segment is of another PZ
 *
 * Example::
 *
 *	DAT_RMR_TRIPLET remote = { peer_address, seg.segment_length,
 *				   peer_context };
 *	KDAT_REQUEST requests[] = {
 *		{ .operation = DAT_DTO_RDMA_WRITE, .num_segments = 1,
 *		  .local_iov = &seg, .remote_iov = &remote,
 *		  .completion_flags = DAT_COMPLETION_SUPPRESS_FLAG },
 *		{ .operation = DAT_DTO_SEND, .num_segments = 1,
 *		  .local_iov = &reply, .user_cookie = cookie },
 *	};
 *
 *	ret = kdat_ep_post_requests(ep, 2, requests);
 *
 * See also: dat_ep_post_send(), dat_ep_post_send_with_invalidate(),
 * dat_ep_post_rdma_write(), dat_ep_post_rdma_read(), kdat_sg_map()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN __must_check kdat_ep_post_requests(DAT_EP_HANDLE ep, DAT_COUNT num_requests,
					      const KDAT_REQUEST *requests);

/*
 * A completion flag of dat_lmr_fmr(), together with %DAT_COMPLETION_SUPPRESS_FLAG:
 * another request follows on the same Endpoint at once, such as the Send that tells the
 * peer the context. The device gets both together, and the binding has no completion of
 * its own unless it fails. A binding that no request follows is held back until the next
 * request, or until dat_ep_disconnect().
 */
#define KDAT_COMPLETION_MORE_FLAG	((DAT_COMPLETION_FLAGS)0x100)

/**
 * kdat_ia_find() - find the IA that an IP address belongs to
 * @address: an address of this host, IPv4 or IPv6; the port is ignored. A link-local
 *	address needs its scope
 * @name: receives the name of the IA for dat_ia_open(), %DAT_NAME_MAX_LENGTH bytes
 *
 * Connections to the address arrive at this IA. The IA of an address changes when the
 * address moves to another device, or its device is renamed.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @name is set
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_ADDRESS - the family is neither IPv4 nor IPv6
 * * %DAT_INVALID_PARAMETER - a pointer is NULL
 * * %DAT_PROVIDER_NOT_FOUND - the address belongs to no IA; a wildcard belongs to none
 *
 * Example::
 *
 *	DAT_EVD_HANDLE async_evd = NULL;
 *	char name[DAT_NAME_MAX_LENGTH];
 *
 *	ret = kdat_ia_find(portal, name);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ia_open(name, 8, &async_evd, &ia);
 *
 * See also: dat_ia_open(), dat_registry_list_providers()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ia_find(const struct sockaddr *address, DAT_NAME_PTR name);

/**
 * kdat_cr_query_gid() - ask where a connection request comes from
 * @cr: connection request that was not answered
 * @gid: receives the GID of the peer's port, 16 bytes; over RoCE that is its IPv6
 *	address, or its IPv4 address mapped to one
 *
 * Over InfiniBand and RoCE the peer writes the address that dat_cr_query() returns into
 * its request, so it may be the address of another host. The GID may be foreign, too, but
 * the answer and all later packets go to it: a peer that named a foreign GID is never
 * connected. So a consumer should allow or refuse a host by its GID, from
 * %DAT_CONNECTION_EVENT_ESTABLISHED on. Over iWARP there is no GID: the address is that
 * of a TCP connection, from which the peer had to answer.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @gid is set
 * * %DAT_INVALID_HANDLE - @cr is no connection request, or its peer has given up
 * * %DAT_INVALID_PARAMETER - @gid is NULL
 * * %DAT_MODEL_NOT_SUPPORTED - the transport is iWARP
 *
 * Example::
 *
 *	u8 gid[16];
 *
 *	ret = kdat_cr_query_gid(cr, gid);
 *	if (ret == DAT_SUCCESS)
 *		pr_info("a client at %pI6c\n", gid);
 *
 * See also: dat_cr_query()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_cr_query_gid(DAT_CR_HANDLE cr, u8 *gid);

/**
 * kdat_ep_query_hard_hw() - ask whether the peer has exceeded the hard high watermark
 * @ep: Endpoint
 * @fired: receives %DAT_TRUE if the mark has ended the Endpoint's connection, %DAT_FALSE
 *	otherwise; it is kept until dat_ep_reset()
 *
 * %DAT_CONNECTION_EVENT_BROKEN has many causes, and when it arrives some of the messages
 * that were too many may have been reaped, so dat_ep_recv_query() does not tell. Buffers
 * that the Endpoint holds from its connection before count, too: reap those first.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @fired is set
 * * %DAT_INVALID_HANDLE - @ep is no Endpoint
 * * %DAT_INVALID_PARAMETER - @fired is NULL
 *
 * Example::
 *
 *	DAT_BOOLEAN fired;
 *
 *	if (event.event_number == DAT_CONNECTION_EVENT_BROKEN &&
 *	    kdat_ep_query_hard_hw(ep, &fired) == DAT_SUCCESS && fired)
 *		pr_warn("a client has ignored its credits\n");
 *
 * See also: dat_ep_set_watermark(), dat_ep_recv_query()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ep_query_hard_hw(DAT_EP_HANDLE ep, DAT_BOOLEAN *fired);

/**
 * kdat_ia_id() - get a number that stands for the port of an open IA
 * @ia: the IA
 * @id: receives the number, which is never 0
 *
 * Two IAs with the same number use the same port of the same device. The number stays
 * when the device is renamed, and when the IA is closed. A device that leaves and comes
 * back has other numbers; no number is used again.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @id is set
 * * %DAT_INVALID_HANDLE - @ia is no IA
 * * %DAT_INVALID_PARAMETER - @id is NULL
 *
 * Example::
 *
 *	// The IA is closed meanwhile, and opened again by the name that it has then.
 *	ret = kdat_ia_id(ia, &id);
 *
 * See also: kdat_ia_name(), dat_ia_open()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ia_id(DAT_IA_HANDLE ia, DAT_UINT64 *id);

/**
 * kdat_ia_name() - get the present name of an IA
 * @id: from kdat_ia_id()
 * @name: receives the name of the IA for dat_ia_open(), %DAT_NAME_MAX_LENGTH bytes
 *
 * An administrator may rename devices at any time ("rdma dev set"); a notifier reports
 * this as %KDAT_CHANGED_IAS. If the device has left while an IA of it is still open, the
 * call returns the last name.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @name is set
 * * %DAT_INVALID_PARAMETER - @name is NULL
 * * %DAT_PROVIDER_NOT_FOUND - the device has left
 *
 * Example::
 *
 *	DAT_EVD_HANDLE async_evd = NULL;
 *	char name[DAT_NAME_MAX_LENGTH];
 *
 *	ret = kdat_ia_name(id, name);
 *	if (ret == DAT_SUCCESS)
 *		ret = dat_ia_open(name, 8, &async_evd, &ia);
 *
 * See also: kdat_ia_id(), kdat_ia_again(), kdat_ia_find(), kdat_notifier_create()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ia_name(DAT_UINT64 id, DAT_NAME_PTR name);

/* The changes that a notifier reports. */
#define KDAT_CHANGED_IAS	0x1	/* IAs have come, gone, or are renamed */
#define KDAT_CHANGED_ADDRESSES	0x2	/* IP addresses of this host have come or gone */

typedef struct kdat_notifier *KDAT_NOTIFIER_HANDLE;

typedef void (*KDAT_CHANGED_FUNC)(DAT_PVOID data, DAT_COUNT what);

/**
 * kdat_notifier_create() - be told of IAs and addresses that come and go
 * @changed: called after a change with @data and %KDAT_CHANGED_ bits, in process context.
 *	It may sleep, open and close IAs; it is called once for changes in close
 *	succession, and perhaps twice for one change
 * @data: for @changed
 * @notifier: receives the handle for kdat_notifier_free()
 *
 * The call says that something has changed, not what: @changed must look again, with
 * kdat_ia_find() for an address and dat_registry_list_providers() for all IAs. An address
 * is reported when connections to it can be made, not only when the host has it. The loss
 * of the device of an open IA is also reported by %DAT_ASYNC_ERROR_IA_CATASTROPHIC,
 * before or after this.
 *
 * Functions of all consumers are called one after the other; a function that takes long
 * delays the others.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - later changes are reported
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 * * %DAT_INVALID_PARAMETER - @changed or @notifier is NULL
 * * %DAT_INVALID_STATE - called by the function of a notifier
 *
 * Example::
 *
 *	// look_again() queues the work that opens what can be opened now.
 *	ret = kdat_notifier_create(look_again, buffer, &notifier);
 *
 * See also: kdat_notifier_free(), kdat_ia_find(), dat_registry_list_providers()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_notifier_create(KDAT_CHANGED_FUNC changed, DAT_PVOID data,
				KDAT_NOTIFIER_HANDLE *notifier);

/**
 * kdat_notifier_free() - end the reports of changes
 * @notifier: from kdat_notifier_create(); invalid afterwards
 *
 * When the call returns, the function does not run and is not called any more.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the handle is invalid now
 * * %DAT_INVALID_HANDLE - @notifier is no notifier
 * * %DAT_INVALID_STATE - called by the function of a notifier
 *
 * Example::
 *
 *	ret = kdat_notifier_free(notifier);
 *
 * See also: kdat_notifier_create()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_notifier_free(KDAT_NOTIFIER_HANDLE notifier);

/*
 * kDAPL chooses the completion vector of an EVD: the vector of the other EVD of its
 * Endpoint, or the least recently used one.
 */
#define KDAT_VECTOR_ANY		(-1)

/**
 * kdat_evd_set_vector() - choose the completion vector of an EVD
 * @evd: an EVD that no connected Endpoint has used yet
 * @vector: the completion vector, or the CPU that most devices interrupt for it; counted
 *	from 0, modulo the device's number of vectors. %KDAT_VECTOR_ANY leaves the choice
 *	to kDAPL again
 *
 * Completions of requests and receives cause interrupts, and so upcalls, on the CPU
 * that the vector stands for.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - completion queues that the EVD gets will have this vector
 * * %DAT_INVALID_HANDLE - @evd is no EVD
 * * %DAT_INVALID_PARAMETER - @vector is negative
 * * %DAT_INVALID_STATE - the EVD has completion queues: an Endpoint that uses the EVD
 *   was connected, or is connecting
 *
 * Example::
 *
 *	ret = kdat_evd_set_vector(recv_evd, raw_smp_processor_id());
 *
 * See also: dat_evd_kcreate()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_evd_set_vector(DAT_EVD_HANDLE evd, DAT_COUNT vector);

/**
 * kdat_evd_wait_upcalls() - wait for the upcalls of an EVD that are under way
 * @evd_handle: the EVD
 *
 * An upcall that got its event before dat_ep_free() was called may begin or run after
 * that call has returned, on another CPU. When a later kdat_evd_wait_upcalls() returns,
 * no upcall of the EVD has such an event any more. Events that come later cause upcalls
 * as usual, and the call does not wait for these.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - the upcalls have returned
 * * %DAT_INVALID_HANDLE - @evd_handle is not an EVD
 * * %DAT_INVALID_STATE - the call was made from an upcall of the EVD, or from one
 *   for whose end an upcall of the EVD is waiting
 *
 * Example::
 *
 *	// Free the data that upcalls of the EP's events use.
 *	ret = dat_ep_free(ep);
 *	if (ret == DAT_SUCCESS)
 *		ret = kdat_evd_wait_upcalls(recv_evd);
 *	if (ret == DAT_SUCCESS)
 *		kfree(buffer);
 *
 * See also: dat_ep_free(), dat_evd_free(), dat_evd_modify_upcall()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_evd_wait_upcalls(DAT_EVD_HANDLE evd_handle);

#endif /* KDAT_LINUX_H */
