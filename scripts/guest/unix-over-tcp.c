// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * For LD_PRELOAD: sockets of AF_UNIX are those of TCP on the loopback address instead.
 *
 * iscsiadm talks to iscsid through such a socket, and the test kernels for User Mode Linux
 * have none: CONFIG_UNIX cannot be a module, and adding it would have all of them built
 * anew. One name is enough, the guest has one user, root, and no host reaches its loopback.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define PORT 860	/* IANA has reserved it for iSCSI. */

/* real(NAME): the function of the C library that the one here stands before */
#define real(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

static const struct sockaddr *translate(const struct sockaddr *sa, socklen_t *len,
					struct sockaddr_in *in)
{
	if (sa->sa_family != AF_UNIX)
		return sa;
	memset(in, 0, sizeof(*in));
	in->sin_family = AF_INET;
	in->sin_port = htons(PORT);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*len = sizeof(*in);
	return (const struct sockaddr *)in;
}

int socket(int domain, int type, int protocol)
{
	return real(socket)(domain == AF_UNIX ? AF_INET : domain, type, protocol);
}

int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in in;

	sa = translate(sa, &len, &in);
	return real(bind)(fd, sa, len);
}

int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct sockaddr_in in;

	sa = translate(sa, &len, &in);
	return real(connect)(fd, sa, len);
}

/* TCP does not know who the peer is. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (level != SOL_SOCKET || name != SO_PEERCRED)
		return real(getsockopt)(fd, level, name, value, len);
	memset(value, 0, *len);
	return 0;
}
