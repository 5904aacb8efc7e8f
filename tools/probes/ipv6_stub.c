// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* IPv6, which may be a module, is called through ipv6_stub: before 7.1 */
#include <net/ipv6_stubs.h>

struct dst_entry *kdapl_probe(struct net *net, struct flowi6 *fl6);
struct dst_entry *kdapl_probe(struct net *net, struct flowi6 *fl6)
{
	return ipv6_stub->ipv6_dst_lookup_flow(net, NULL, fl6, NULL);
}
