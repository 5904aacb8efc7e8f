/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Addresses of IAs and of peers: addr.c.
 */
#ifndef KDAPL_ADDR_H
#define KDAPL_ADDR_H

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include "kdapl.h"

struct kdapl_ia;

bool kdapl_addr_any(const struct sockaddr_storage *addr);
bool kdapl_addr_same(const struct sockaddr_storage *a,
		     const struct sockaddr_storage *b);
int kdapl_in_init_net(int (*fn)(void *arg), void *arg);
int kdapl_ia_refresh_addrs(struct kdapl_ia *ia);
int kdapl_ia_local_addr(struct kdapl_ia *ia, const struct sockaddr *peer,
			struct sockaddr_storage *addr);

/* Return @addr as the type of DAT. */
static inline DAT_IA_ADDRESS_PTR kdapl_addr_ptr(struct sockaddr_storage *addr)
{
	return (struct sockaddr *)addr;
}

/* Return the port in an address, in host order; 0 if there is none. */
static inline u16 kdapl_addr_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	default:
		return 0;
	}
}

#endif
