/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the kernels that the module is built for. Compile probes
 * (tools/probes) find them, not version numbers, because distributions
 * backport.
 */
#ifndef KDAPL_COMPAT_H
#define KDAPL_COMPAT_H

#include <linux/compiler_attributes.h>
#include <linux/export.h>
#include <linux/workqueue.h>
#include <net/ipv6.h>
#include <rdma/ib_verbs.h>
#include <compat_probe.h>
#ifdef KDAPL_HAVE_IPV6_STUB
# include <net/ipv6_stubs.h>
#endif

/*
 * CONFIG_INIT_STACK_ALL_ZERO clears every variable on the stack, which costs 30
 * ns for a large array in the data path.
 */
#ifndef __uninitialized
# if __has_attribute(__uninitialized__)
#  define __uninitialized	__attribute__((__uninitialized__))
# else
#  define __uninitialized
# endif
#endif

/*
 * The symbol namespace KDAPL_TEST has the symbols that kdapl.ko exports only for its
 * tests: KDAPL_EXPORT_TEST() exports a symbol, KDAPL_IMPORT_TEST lets a test module use
 * the namespace.
 */
#ifdef KDAPL_HAVE_IMPORT_NS_TOKEN
# define KDAPL_EXPORT_TEST(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, KDAPL_TEST)
# define KDAPL_IMPORT_TEST		MODULE_IMPORT_NS(KDAPL_TEST)
#else
# define KDAPL_EXPORT_TEST(symbol)	EXPORT_SYMBOL_NS_GPL(symbol, "KDAPL_TEST")
# define KDAPL_IMPORT_TEST		MODULE_IMPORT_NS("KDAPL_TEST")
#endif

/* Before this flag existed, a workqueue without WQ_UNBOUND was per CPU. */
#ifndef KDAPL_HAVE_WQ_PERCPU
# define WQ_PERCPU			0
#endif

/*
 * Resize @cq for @cqe completions. Return 0 or an errno: not every device can resize a
 * CQ, and later kernels let only user space ask for it. Context: Process context.
 */
static inline int kdapl_resize_cq(struct ib_cq *cq, int cqe)
{
#ifdef KDAPL_HAVE_RESIZE_CQ
	return ib_resize_cq(cq, cqe);
#else
	return -EOPNOTSUPP;
#endif
}

/*
 * Look up the route of @fl6, whose source address is set. Return a referenced entry or an
 * ERR_PTR. Context: Process context.
 */
static inline struct dst_entry *kdapl_route6(struct flowi6 *fl6)
{
#ifdef KDAPL_HAVE_IPV6_STUB
	return ipv6_stub->ipv6_dst_lookup_flow(&init_net, NULL, fl6, NULL);
#else
	return ip6_dst_lookup_flow(&init_net, NULL, fl6, NULL);
#endif
}

#endif
