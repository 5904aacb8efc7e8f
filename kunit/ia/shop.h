/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A server of <dat/kdat_portal.h> that accepts whoever comes, with an Endpoint on the adapter's
 * SRQ, and somebody who connects to it: shop.c.
 */
#ifndef KDAPL_KUNIT_SHOP_H
#define KDAPL_KUNIT_SHOP_H

#include <linux/in.h>
#include <linux/mutex.h>
#include <dat/kdat_portal.h>
#include "plug.h"

#define CONNS	16

struct shop_conn {
	DAT_EP_HANDLE ep;
	KDAT_ADAPTER *adapter;
};

/*
 * struct shop - a server
 * @peer: connects to it
 * @port: where it listens
 * @refuse: the open function fails
 * @opened: calls of the open function; likewise the others
 * @place: the adapter that a portal with an address listens on now, or NULL
 * @conns: connections that were accepted, each with a reference to its adapter
 * @host: of the last request
 */
struct shop {
	struct kunit *test;
	struct kd_side *peer;
	u16 port;
	KDAT_SERVER_ATTR attr;
	KDAT_SERVER_HANDLE server;
	KDAT_PORTAL_HANDLE portal;
	struct sockaddr_in in;
	bool refuse;
	int opened;
	int closing;
	int closed;
	int listens;
	KDAT_ADAPTER *place;
	struct mutex mutex;		/* @conns */
	struct shop_conn conns[CONNS];
	unsigned int nconns;
	KDAT_HOST host;
};

struct shop *shop_make(struct kunit *test);
void shop_clear(struct shop *s);
const char *shop_ia_of(struct kunit *test);
DAT_RETURN shop_listen_at_address(struct shop *s);
DAT_RETURN shop_listen_on_ia(struct shop *s);
bool shop_reaches(void *data);
bool shop_is_open(void *data);
bool shop_is_deaf(void *data);
bool shop_all_are_closed(void *data);
bool shop_one_is_closed(void *data);
void shop_expect_soon(struct shop *s, bool (*cond)(void *data));

#endif
