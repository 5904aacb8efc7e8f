/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Servers, their portals and adapters: portal.c, portal_server.c, portal_adapter.c.
 */
#ifndef KDAPL_PORTAL_H
#define KDAPL_PORTAL_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/socket.h>
#include <linux/workqueue.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>

/*
 * struct kdat_server - a server
 * @open: number of adapters that are not freed
 * @dead: the module has gone; no function of @attr is called any more
 */
struct kdat_server {
	KDAT_SERVER_ATTR attr;
	struct list_head link;
	struct mutex mutex;		/* portals, their places, adapters */
	struct list_head portals;
	struct list_head adapters;
	KDAT_NOTIFIER_HANDLE notifier;
	struct delayed_work work;	/* looks at all portals */
	atomic_t open;
	bool dead;
};

/*
 * struct kdat_portal - a portal
 * @addr: address and port; behind it the wildcard of IPv4, for that of IPv6
 * @naddrs: number of @addr
 * @ia_name: of a portal of one IA: the name when the portal was made, or when the IA left
 * @ident: of a portal of one IA: what the first IA that it listened on is known by
 * @listens: number of places that the portal listens at
 */
struct kdat_portal {
	struct list_head link;
	struct kdat_server *server;
	struct sockaddr_storage addr[2];
	unsigned int naddrs;
	char ia_name[DAT_NAME_MAX_LENGTH];
	KDAT_IA_IDENT ident;
	DAT_PVOID context;
	struct list_head places;
	unsigned int listens;
};

/*
 * struct kdapl_place - an IA that a portal is to listen on
 * @adapter: the adapter that the portal listens on, referenced; NULL if it cannot listen
 * @csp: Service Points; handles that may be stale
 * @told: error that the log was told of, once
 */
struct kdapl_place {
	struct list_head link;
	struct kdat_portal *portal;
	u64 id;
	KDAT_ADAPTER *adapter;
	DAT_CSP_HANDLE csp[2];
	DAT_RETURN told;
};

/* portal_adapter.c */
DAT_RETURN kdapl_adapter_find(struct kdat_server *server, u64 id, DAT_PVOID context,
			      KDAT_ADAPTER **adapter);
void kdapl_adapters_follow(struct kdat_server *server);

/* portal.c */
DAT_RETURN kdapl_portal_look(struct kdat_portal *p);

/* portal_server.c */
extern struct workqueue_struct *kdapl_portal_wq;

#endif /* KDAPL_PORTAL_H */
