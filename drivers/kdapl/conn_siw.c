// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * siw leaves some steps to the peer of a connection; kdapl.ko must not wait for the peer.
 *
 * On the passive side siw answers a request before its queue pair can receive
 * (siw_accept() in 6.12). A message that arrives in between stays in the socket until the
 * next one comes. So when the connection is established, kdapl_siw_wake() makes siw look at
 * the socket.
 *
 * rdma_disconnect() and rdma_destroy_id() wait in iw_cm until the driver has answered
 * rdma_connect() or rdma_accept(), and siw leaves both answers to the peer:
 *
 * - An accepted peer may ask to send the first frame (MPA version 2). siw reports the
 *   connection when this frame comes, and has no timer. The queue pair must not be taken to
 *   ERR before: siw would report an end, for which iw_cm still has a BUG(). But siw takes
 *   any wake-up of the socket for the frame, so kdapl_siw_wake() causes one.
 * - siw connects its socket within rdma_connect(), which takes two minutes if nobody
 *   answers and holds up all ids of rdma_cm meanwhile. kdapl_siw_abort() ends this. From
 *   there on siw has a timer of 10 s. A connected socket is left alone: closed before the
 *   peer's siw has accepted it, it would end the peer's listener.
 *
 * Other drivers need neither: cxgb4, irdma and erdma report the connection in their
 * iw_accept, and adapters have timers.
 *
 * The socket of a connection is looked up by its addresses, as for a packet.
 */
#include <net/inet_hashtables.h>
#include <net/inet6_hashtables.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include "conn.h"

#ifdef KDAPL_HAVE_INET_HASHINFO_ARG
# define kdapl_lookup(fn, ...) \
	fn(&init_net, init_net.ipv4.tcp_death_row.hashinfo, __VA_ARGS__)
#else
# define kdapl_lookup(fn, ...)	fn(&init_net, __VA_ARGS__)
#endif

/* Return the socket that packets of the connection of @id are for, or NULL. */
static struct sock *kdapl_siw_lookup(struct rdma_cm_id *id)
{
	const struct sockaddr_in *src = (void *)&id->route.addr.src_addr;
	const struct sockaddr_in *dst = (void *)&id->route.addr.dst_addr;
	int dif = id->route.addr.dev_addr.bound_dev_if;

	if (src->sin_family == AF_INET)
		return kdapl_lookup(inet_lookup_established, dst->sin_addr.s_addr,
				    dst->sin_port, src->sin_addr.s_addr, src->sin_port,
				    dif);
#if IS_ENABLED(CONFIG_IPV6)
	if (src->sin_family == AF_INET6) {
		const struct sockaddr_in6 *src6 = (const void *)src;
		const struct sockaddr_in6 *dst6 = (const void *)dst;

		return kdapl_lookup(__inet6_lookup_established, &dst6->sin6_addr,
				    dst6->sin6_port, &src6->sin6_addr,
				    ntohs(src6->sin6_port), dif, 0);
	}
#endif
	return NULL;
}

/*
 * Return the socket that siw has for @id, referenced, or NULL. If siw has none, a program
 * may have a socket with the same addresses; such a socket has a file.
 */
static struct sock *kdapl_siw_sock(struct rdma_cm_id *id)
{
	struct sock *sk;
	bool ours = false;

	/* The table is walked under RCU. */
	rcu_read_lock();
	sk = kdapl_siw_lookup(id);
	rcu_read_unlock();
	if (!sk)
		return NULL;
	if (sk_fullsock(sk)) {
		lock_sock(sk);
		ours = sk->sk_socket && !sk->sk_socket->file;
		release_sock(sk);
	}
	if (ours)
		return sk;
	sock_gen_put(sk);
	return NULL;
}

/*
 * Make siw look at the socket of @id, which is passive. siw reports the connection if it
 * was accepted and waits for the first frame. The callback of the socket does this, and
 * begins to receive, with the socket locked, so no connection is reported twice.
 *
 * Context: Process context.
 */
void kdapl_siw_wake(struct rdma_cm_id *id)
{
	struct sock *sk = kdapl_siw_sock(id);

	if (!sk)
		return;
	/* Do what the arrival of a packet does. */
	lock_sock(sk);
	local_bh_disable();
	sk->sk_data_ready(sk);
	local_bh_enable();
	release_sock(sk);
	sock_put(sk);
}

/* If siw waits for the peer's TCP, make rdma_connect() fail. Context: Process context. */
void kdapl_siw_abort(struct rdma_cm_id *id)
{
	struct sock *sk = kdapl_siw_sock(id);

	if (!sk)
		return;
	lock_sock(sk);
	if (sk->sk_state == TCP_SYN_SENT)
		sk->sk_prot->disconnect(sk, 0);
	release_sock(sk);
	sock_put(sk);
}
