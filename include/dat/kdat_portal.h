/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * kDAPL 2.0: where a target listens. Portals, and the adapters that come and go under them.
 *
 * Not part of DAT, as <dat/kdat_linux.h>. A target is set up once and serves for months. Its
 * adapters and their addresses may come after it, as when a host boots; they leave, return, are
 * renamed; an address moves to another adapter. A server does what follows from that: it opens
 * an adapter when there is something to listen on, with what all clients of the adapter share,
 * makes the Service Points, and takes all down again. An adapter is known by its number,
 * kdat_ia_id(), and by its GUID when it comes back, by its name only if nobody has the GUID.
 * Consumers without portals follow an adapter by kdat_ia_again().
 *
 *   server    what a module serves: its functions, portals and adapters
 *   portal    a place to listen at: an address and port, a port at all addresses, or at an IA
 *   adapter   an open IA with a PZ, an EVD for connections, a pool of receive buffers (SRQ)
 *
 * An adapter is shared by all portals of its server. It is there while a portal listens on it
 * or a connection holds a reference: kdat_adapter_get().
 *
 * Functions of a server are called in process context and may sleep. Documentation/portals.rst
 * has a complete target.
 */
#ifndef KDAT_PORTAL_H
#define KDAT_PORTAL_H

#include <linux/in6.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/socket.h>
#include <linux/workqueue.h>
#include <dat/dat_cm.h>
#include <dat/dat_event.h>
#include <dat/dat_ia_attr.h>
#include <dat/kdat_pool.h>

struct module;
struct net;

typedef struct kdat_server *KDAT_SERVER_HANDLE;
typedef struct kdat_portal *KDAT_PORTAL_HANDLE;

/**
 * struct kdat_adapter - an adapter of a server
 * @ia: the IA
 * @id: number of the IA as of kdat_ia_id(), which stays when the device is renamed
 * @name: name of the IA, for the log: it follows the name of the device, and a line that is
 *	printed meanwhile may have a part of either
 * @async_evd: EVD for asynchronous events, with an upcall of the server's
 * @cm_evd: EVD for connection events, for dat_ep_create_with_srq(), and connection requests
 * @pz: Protection Zone of the receive buffers, and of all Endpoints
 * @pool: receive buffers of all connections; NULL if the server has asked for none
 * @srq: the SRQ of @pool
 * @attr: attributes of the IA
 * @provider: attributes of kDAPL on this IA
 * @iwarp: the adapter speaks iWARP: an empty SRQ ends connections, see kdat_pool_reserve()
 * @gone: the device has left, to be read with READ_ONCE(); there are no new connections
 *
 * The consumer's structure for an adapter has this one as its first member. The server
 * allocates the whole, cleared, and frees it. The consumer writes none of the members.
 */
typedef struct kdat_adapter {
	DAT_IA_HANDLE ia;
	DAT_UINT64 id;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cm_evd;
	DAT_PZ_HANDLE pz;
	KDAT_POOL_HANDLE pool;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
	DAT_BOOLEAN iwarp;
	DAT_BOOLEAN gone;
	/* private: */
	struct kdat_server *server;
	struct mutex mutex;		/* contexts of Service Points */
	struct list_head link;
	refcount_t refs;
	bool opened;
	struct work_struct free_work;
} KDAT_ADAPTER;

/* Function that kdat_server_adapters() calls. */
typedef void (*KDAT_ADAPTER_FUNC)(KDAT_ADAPTER *adapter, DAT_PVOID data);

/* Length of the name of a host, with the terminating 0. */
#define KDAT_HOST_NAME_LENGTH	112

/**
 * struct kdat_host - where a connection request comes from
 * @id: tells one host from another: the GID of the peer's port; over iWARP its IP address. An
 *	IPv4 address is mapped
 * @proven: %DAT_TRUE if the peer has proven to be of @id: over iWARP, TCP has connected.
 *	Otherwise %DAT_CONNECTION_EVENT_ESTABLISHED proves it, as only the owner of the GID gets
 *	the answer; see kdat_cr_query_gid()
 * @name: for the log: address and port as the peer states them, and the GID if it is not that
 *	address
 */
typedef struct kdat_host {
	struct in6_addr id;
	DAT_BOOLEAN proven;
	char name[KDAT_HOST_NAME_LENGTH];
} KDAT_HOST;

/**
 * struct kdat_server_attr - what kdat_server_create() is told
 * @owner: THIS_MODULE
 * @name: name of the module, KBUILD_MODNAME, for the log; constant
 * @adapter_size: size of the consumer's structure for an adapter, bytes; its first member is a
 *	struct kdat_adapter
 * @exclusive: %DAT_TRUE if each portal has an adapter of its own, with other parameters than
 *	those of other portals on the same IA
 * @cm_qlen: connection events of an adapter that may wait for @event, and asynchronous events
 * @cr_qlen: connection requests of an adapter that may wait for @request
 * @buffer_length: size of a receive buffer, bytes; 0 for adapters without a pool
 * @buffer_header: see struct kdat_pool_attr
 * @size: see struct kdat_pool_attr; the context is the adapter
 * @open: an adapter has been opened, and its PZ and @cm_evd are there; the pool will be made
 *	when the function has returned. It makes what else the connections of an adapter share.
 *	@context is that of the portal that the adapter is opened for. Returns %DAT_SUCCESS, or
 *	an error, which has the adapter closed; the portal tries again later. May be NULL
 * @close: undoes @open, before the pool and the IA are freed: no portal and no reference is
 *	left, and @async is not called any more. It is called for each adapter that @open was
 *	called for, also if that has failed. May be NULL
 * @closed: the last call for an adapter; its pool, its EVDs and its IA are gone. For each call
 *	of @close there is one. May be NULL
 * @listens: a portal, whose context is @context, begins to listen on the adapter: requests may
 *	come from now on. If it cannot listen after all, @deaf follows. May be NULL
 * @deaf: a portal does not listen on the adapter any more, as it was freed, the device has
 *	left, or the address is not there; no @request of both runs or comes. May be NULL
 * @request: a connection request has come; to be answered with dat_cr_accept() or
 *	dat_cr_reject(), at once or later. @param is from dat_cr_query() and, like @host, valid
 *	until the function returns
 * @event: an event about a connection of an Endpoint that has the adapter's @cm_evd; its
 *	arguments are those of an upcall with the adapter as instance data. @request and @event
 *	are called for the requests and events of an adapter one after the other, in the order in
 *	which these have come
 * @async: an asynchronous event. Return %DAT_FALSE to have it logged. The pool has been told of
 *	a low watermark. The function is not called for %DAT_ASYNC_ERROR_IA_CATASTROPHIC, at
 *	which the portals leave the adapter. May be NULL
 *
 * Of the calls for servers, portals and adapters only kdat_adapter_get() and kdat_adapter_put()
 * may be made by these functions: the server is locked, or waits for the function.
 */
typedef struct kdat_server_attr {
	struct module *owner;
	const char *name;
	size_t adapter_size;
	DAT_BOOLEAN exclusive;
	DAT_COUNT cm_qlen;
	DAT_COUNT cr_qlen;
	DAT_COUNT buffer_length;
	DAT_COUNT buffer_header;
	void (*size)(DAT_PVOID adapter, KDAT_POOL_SIZE *size);
	u32 (*open)(KDAT_ADAPTER *adapter, DAT_PVOID context);
	void (*close)(KDAT_ADAPTER *adapter);
	void (*closed)(KDAT_ADAPTER *adapter);
	void (*listens)(KDAT_ADAPTER *adapter, DAT_PVOID context);
	void (*deaf)(KDAT_ADAPTER *adapter, DAT_PVOID context);
	void (*request)(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
			const DAT_CR_PARAM *param, const KDAT_HOST *host);
	DAT_UPCALL_FUNC event;
	DAT_BOOLEAN (*async)(KDAT_ADAPTER *adapter, const DAT_EVENT *event);
} KDAT_SERVER_ATTR;

/**
 * struct kdat_portal_attr - where a portal listens
 * @address: address and port, IPv4 or IPv6; a link-local address needs its scope. The wildcard
 *	stands for all addresses of its family, on all IAs; that of IPv6 also for those of IPv4
 *	at which nobody else has the port, as for sockets. NULL for a portal of one IA
 * @only_v6: %DAT_TRUE if the wildcard of IPv6 does not stand for addresses of IPv4
 * @net: network namespace of @address; NULL for the initial one, and there are no others yet
 * @ia_name: without @address: name of the IA; the portal listens at all its addresses. If the
 *	device is renamed while the portal listens, it is the new name that the portal looks for
 *	when the device has left
 * @port: without @address: the port
 * @context: for the functions of the server
 *
 * What pointers refer to is copied, except @context.
 */
typedef struct kdat_portal_attr {
	const struct sockaddr *address;
	DAT_BOOLEAN only_v6;
	struct net *net;
	const char *ia_name;
	u16 port;
	DAT_PVOID context;
} KDAT_PORTAL_ATTR;

/**
 * kdat_server_create() - begin to serve
 * @attr: the functions; copied
 * @server: receives the server
 *
 * A server without portals opens no adapter. The functions must stay until kdat_server_free().
 * If a module goes without it, kDAPL closes what the module has left, without calling the
 * functions. The call must not be made from a function of a notifier.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @server is set
 * * %DAT_INVALID_PARAMETER - @attr, its name, its request or event function, or @server is
 *   NULL; or adapter_size is less than that of KDAT_ADAPTER; for a member, the tracepoint
 *   kdapl_refused names it, with ia=0
 * * %DAT_INVALID_STATE - called by the function of a notifier
 * * %DAT_INSUFFICIENT_RESOURCES - no memory
 *
 * Example::
 *
 *	static const KDAT_SERVER_ATTR attr = {
 *		.owner = THIS_MODULE, .name = KBUILD_MODNAME,
 *		.adapter_size = sizeof(struct my_adapter), .cm_qlen = 64, .cr_qlen = 64,
 *		.buffer_length = 4096, .size = wanted_buffers, .request = my_request,
 *		.event = my_upcall,
 *	};
 *
 *	ret = kdat_server_create(&attr, &server);
 *
 * See also: kdat_server_free(), kdat_portal_create()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_server_create(const KDAT_SERVER_ATTR *attr, KDAT_SERVER_HANDLE *server);

/**
 * kdat_server_free() - end a server
 * @server: server, or NULL
 *
 * All portals are freed. The call waits until the last reference to an adapter is dropped and
 * the adapter is closed; no function of the server runs or comes when it returns. It must not
 * be made from a function of the server or of a notifier.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	kdat_portal_free(listener->portal);
 *	kdat_server_free(server);
 *
 * See also: kdat_server_create()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_server_free(KDAT_SERVER_HANDLE server);

/**
 * kdat_portal_create() - listen at a place, now or when an adapter has it
 * @server: the server
 * @attr: where; copied
 * @portal: receives the portal
 *
 * The portal listens on all adapters that it can when the call returns. What comes later, an
 * adapter or an address, is listened on when it comes; anything else is tried again each
 * second.
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @portal is set; it listens, or no adapter has the address, or the IA is not
 *   there
 * * %DAT_INSUFFICIENT_RESOURCES - no memory, or the device has no room
 * * %DAT_CONN_QUAL_IN_USE, %DAT_PORT_IN_USE - the port is in use wherever the portal would
 *   listen
 * * %DAT_INVALID_ADDRESS - the family is neither IPv4 nor IPv6
 * * %DAT_INVALID_PARAMETER - @server, @attr or @portal is NULL, there is neither an address nor
 *   the name of an IA, the name is too long, or the port is 0
 * * %DAT_MODEL_NOT_SUPPORTED - the network namespace is not the initial one
 * * as dat_ia_open(), dat_evd_kcreate(), kdat_pool_create(), or what the open function
 *   returned, if that has kept the portal from listening anywhere
 *
 * Example::
 *
 *	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(20049) };
 *	KDAT_PORTAL_ATTR attr = {
 *		.address = (struct sockaddr *)&any, .context = listener,
 *	};
 *
 *	ret = kdat_portal_create(server, &attr, &listener->portal);
 *
 * See also: kdat_portal_free(), dat_csp_create(), dat_psp_create()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_portal_create(KDAT_SERVER_HANDLE server, const KDAT_PORTAL_ATTR *attr,
			      KDAT_PORTAL_HANDLE *portal);

/**
 * kdat_portal_free() - stop listening at a place
 * @portal: portal, or NULL
 *
 * When the call returns, no request of the portal is under way in the server's function, and
 * none comes. Connections, and requests that were not answered, stay. A portal is no DAT object,
 * and @portal no handle that could be checked: it is freed once, as memory is.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	kdat_portal_free(listener->portal);
 *	kfree(listener);
 *
 * See also: kdat_portal_create()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_portal_free(KDAT_PORTAL_HANDLE portal);

/**
 * kdat_adapter_get() - take a reference to an adapter
 * @adapter: adapter that listens(), request() or the function of kdat_server_adapters() is
 *	called for, or that the caller has a reference to
 *
 * Each connection needs one, as the portal that it came to may be freed before it.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	kdat_adapter_get(adapter);
 *	conn->adapter = adapter;
 *
 * See also: kdat_adapter_put()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_adapter_get(KDAT_ADAPTER *adapter);

/**
 * kdat_adapter_put() - drop a reference to an adapter
 * @adapter: the adapter
 *
 * To be called when all objects of the connection are freed. The last one has the adapter
 * closed by a work item, so the caller may be a function of the server.
 *
 * Context: Any context, never sleeps.
 * Return: nothing
 *
 * Example::
 *
 *	dat_ep_free(conn->ep);
 *	kdat_adapter_put(conn->adapter);
 *	kfree(conn);
 *
 * See also: kdat_adapter_get()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_adapter_put(KDAT_ADAPTER *adapter);

/**
 * kdat_server_adapters() - call a function for each open adapter
 * @server: the server
 * @fn: the function; it must not call for portals or the server
 * @data: for @fn
 *
 * No adapter is opened or closed meanwhile, and @fn may take a reference. One whose device has
 * left is open until the last connection is freed.
 *
 * Context: Process context, may sleep.
 * Return: nothing
 *
 * Example::
 *
 *	// show() prints the name of an adapter.
 *	kdat_server_adapters(server, show, buffer);
 *
 * See also: kdat_server_create()
 *
 * Source: Linux only, not part of DAT
 */
void kdat_server_adapters(KDAT_SERVER_HANDLE server, KDAT_ADAPTER_FUNC fn, DAT_PVOID data);

/**
 * struct kdat_ia_ident - what an IA is known by, whatever its name
 * @id: its number as of kdat_ia_id(), or 0
 * @guid: node GUID of its device, in the byte order of the host; 0 if there is none
 * @port: number of its port
 * @type: kind of its device: RoCE and iWARP on one network interface have the same GUID
 */
typedef struct kdat_ia_ident {
	DAT_UINT64 id;
	DAT_UINT64 guid;
	DAT_UINT32 port;
	DAT_UINT32 type;
} KDAT_IA_IDENT;

/**
 * kdat_ia_identify() - get what an open IA is known by
 * @ia: the IA
 * @ident: receives it
 *
 * The number stands for the device as long as it is there, and the GUID, with the port and the
 * kind of device, when it comes back.
 *
 * Context: Any context, never sleeps.
 * Return:
 * * %DAT_SUCCESS - @ident is set
 * * %DAT_INVALID_HANDLE - @ia is no IA
 * * %DAT_INVALID_PARAMETER - @ident is NULL
 *
 * Example::
 *
 *	KDAT_IA_IDENT ident = {};
 *
 *	ret = kdat_ia_identify(ia, &ident);
 *	pr_info("GUID %016llx\n", ident.guid);
 *
 * See also: kdat_ia_again(), kdat_ia_id()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ia_identify(DAT_IA_HANDLE ia, KDAT_IA_IDENT *ident);

/**
 * kdat_ia_again() - get the present name of an IA that may have come back
 * @ident: from kdat_ia_identify()
 * @name: the name that the IA had; receives the present one, %DAT_NAME_MAX_LENGTH bytes
 *
 * A device that comes back may have another name, and another device its former one. The IA is
 * that of the device with the GUID and the kind of @ident. If several devices have these, it is
 * the one with the number of @ident, or else the one that is called @name. If no device has the
 * GUID, or it cannot be told which of them is meant, the number decides as in kdat_ia_name().
 *
 * Context: Process context, may sleep.
 * Return:
 * * %DAT_SUCCESS - @name is set
 * * %DAT_INVALID_PARAMETER - @ident or @name is NULL
 * * %DAT_PROVIDER_NOT_FOUND - the device has left and is not back; a device called @name, if
 *   there is one, is another one that has taken its place
 *
 * Example::
 *
 *	char name[DAT_NAME_MAX_LENGTH] = "mlx5_0/1";
 *	DAT_EVD_HANDLE async_evd = NULL;
 *	KDAT_IA_IDENT ident;
 *
 *	ret = kdat_ia_identify(ia, &ident);
 *	// The device leaves, and the IA is closed. When a notifier has told of a change:
 *	kdat_ia_again(&ident, name);
 *	ret = dat_ia_open(name, 8, &async_evd, &ia);
 *
 * See also: kdat_ia_identify(), kdat_ia_name(), kdat_notifier_create()
 *
 * Source: Linux only, not part of DAT
 */
DAT_RETURN kdat_ia_again(const KDAT_IA_IDENT *ident, DAT_NAME_PTR name);

#endif /* KDAT_PORTAL_H */
