// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* inet_lookup_established() takes the table to search: until 6.17 */
#include <net/inet_hashtables.h>

struct sock *kdapl_probe(struct net *net, struct inet_hashinfo *table);

struct sock *kdapl_probe(struct net *net, struct inet_hashinfo *table)
{
	return inet_lookup_established(net, table, 0, 0, 0, 0, 0);
}
