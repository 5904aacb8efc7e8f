// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: the devices of the test bed, and the parameters of cases that
 * run on them, see fixture.h. To add a device, add it to kd_beds[] and make it in
 * scripts/guest/devices.sh, or in scripts/guest/check if its driver is one of ours.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>
#include "device.h"
#include "fixture.h"
#include "param.h"

static const struct kd_bed kd_beds[] = {
	{
		.ia = "rxe0/1", .netdev = "v0", .net = 8,
		.second = { "rxe1/1", "rdma link add rxe1 type rxe netdev v2" },
		.traits = KD_WIRE | KD_CUTS_MESSAGES | KD_FORGETS,
	}, {
		.ia = "siw0/1", .netdev = "dummy0", .net = 9,
		.second = { "siw1/1", "rdma link add siw1 type siw netdev dummy1" },
		.traits = KD_WIRE | KD_IWARP | KD_ANY_READ | KD_ANY_SINK |
			  KD_ANY_WAKES,
	}, {
		.ia = "sim0/1", .net = 10, .traits = KD_SIMULATED,
	}, {
		.ia = "simw0/1", .net = 11,
		.traits = KD_SIMULATED | KD_IWARP,
	},
};

KD_PARAM(simulated, bool, false, "run all cases on the simulated adapters as well");

KD_PARAM(mended, bool, false, "the drivers have the patches of Documentation/drivers");

/* What a driver does not do any more that is mended */
#define KD_MENDED	(KD_ANY_READ | KD_ANY_WAKES | KD_FORGETS)

static char *ia;
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "an adapter that all cases for any device run on, and on no other; its network device and its operations are left alone");

static struct kd_bed kd_own;

/* Whether cases run on the adapter that the user has named. */
bool kd_is_own(void)
{
	return ia && *ia;
}
EXPORT_SYMBOL_GPL(kd_is_own);

/*
 * Skip a case on an adapter of the user's, for what its other users, or the rest of the
 * system, would notice.
 */
void kd_skip_own(struct kunit *test, const char *why)
{
	if (kd_is_own())
		kunit_skip(test, "%s", why);
}
EXPORT_SYMBOL_GPL(kd_skip_own);

static bool kd_is_device_of(const char *name, const char *ia)
{
	size_t len = strcspn(ia, "/");

	return !strncmp(name, ia, len) && (!name[len] || name[len] == '/');
}

/* Skip a case for which another adapter than the user's is wanted, or none is there. */
void kd_skip_other(struct kunit *test, const char *name)
{
	if (kd_is_own() && (!name || !kd_is_device_of(name, ia)))
		kunit_skip(test, "needs another adapter");
}
EXPORT_SYMBOL_GPL(kd_skip_other);

static const struct kd_bed *kd_known_bed(const char *name)
{
	const struct kd_bed *bed;

	for (bed = kd_beds; bed < kd_beds + ARRAY_SIZE(kd_beds); bed++)
		if (kd_is_device_of(name, bed->ia) ||
		    (bed->second.ia && kd_is_device_of(name, bed->second.ia)))
			return bed;
	return NULL;
}

/* Return the entry of the user's adapter: what can be found out is in its traits. */
static const struct kd_bed *kd_own_bed(void)
{
	const struct kd_bed *known = kd_known_bed(ia);
	struct ib_device *dev = kd_find_device(ia);
	unsigned int port = 1, traits = 0;
	const char *slash = strchr(ia, '/');

	if (slash && kstrtouint(slash + 1, 10, &port))
		port = 1;
	if (known)
		traits = known->traits & ~(KD_WIRE | KD_SIMULATED);
	else if (dev && rdma_is_port_valid(dev, port) &&
		 rdma_protocol_iwarp(dev, port))
		traits = KD_IWARP;
	kd_own.traits = traits;
	kd_own.ia = ia;
	return &kd_own;
}

/* The entries in use: @n of them from the one that is returned. */
static const struct kd_bed *kd_all_beds(size_t *n)
{
	*n = kd_is_own() ? 1 : ARRAY_SIZE(kd_beds);
	return kd_is_own() ? kd_own_bed() : kd_beds;
}

/*
 * The same of those that the cases for any device run on. The simulated adapters,
 * which come last, have suites of their own (kunit/sim, kunit/scale).
 */
static const struct kd_bed *kd_used_beds(size_t *n)
{
	const struct kd_bed *beds = kd_all_beds(n);

	while (!simulated && beds[*n - 1].traits & KD_SIMULATED)
		--*n;
	return beds;
}

const struct kd_bed *kd_bed_at(unsigned int i)
{
	size_t n;
	const struct kd_bed *beds = kd_used_beds(&n);

	return i < n ? &beds[i] : NULL;
}
EXPORT_SYMBOL_GPL(kd_bed_at);

/* Find the entry of an IA, or of a device; both devices of a kind share one. */
const struct kd_bed *kd_bed_of(const char *name)
{
	if (kd_is_own() && kd_is_device_of(name, ia))
		return kd_own_bed();
	return kd_known_bed(name);
}
EXPORT_SYMBOL_GPL(kd_bed_of);

/* Return 10.x.0.@host of the network of an IA or a device, without a port. */
struct sockaddr_in kd_bed_v4(const char *name, u8 host)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(10 << 24 | kd_bed_of(name)->net << 16 | host),
	};
}
EXPORT_SYMBOL_GPL(kd_bed_v4);

/* Return the IPv6 address of an IA or a device, without a port. */
struct sockaddr_in6 kd_bed_v6(const char *name)
{
	return (struct sockaddr_in6) {
		.sin6_family = AF_INET6,
		.sin6_addr = { { { 0xfd, 0x00, 0x00, kd_bed_of(name)->net, [15] = 1 } } },
	};
}
EXPORT_SYMBOL_GPL(kd_bed_v6);

/* Return an entry of another kind of device than @bed. */
const struct kd_bed *kd_other_bed(const struct kd_bed *bed)
{
	return bed == kd_beds ? kd_beds + 1 : kd_beds;
}
EXPORT_SYMBOL_GPL(kd_other_bed);

bool kd_ia_has(const char *ia, unsigned int traits)
{
	const struct kd_bed *bed = kd_bed_of(ia);

	if (mended && traits & KD_MENDED)
		return false;
	return bed && (bed->traits & traits) == traits;
}
EXPORT_SYMBOL_GPL(kd_ia_has);

bool kd_has(const struct kd_side *side, unsigned int traits)
{
	return kd_ia_has(side->name, traits);
}
EXPORT_SYMBOL_GPL(kd_has);

bool kd_is_iwarp(const struct kd_side *side)
{
	return kd_has(side, KD_IWARP);
}
EXPORT_SYMBOL_GPL(kd_is_iwarp);

/* Do the provider's attributes say that kDAPL makes up for this? */
bool kd_has_quirk(const DAT_PROVIDER_ATTR *prov, const char *name)
{
	DAT_COUNT i;

	for (i = 0; i < prov->num_provider_specific_attr; i++)
		if (!strcmp(prov->provider_specific_attr[i].name, name))
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(kd_has_quirk);

/* ---- Parameters of cases ------------------------------------------------- */

static const void *kd_gen_with(const void *prev, char *desc, unsigned int traits)
{
	size_t used, all;
	const struct kd_bed *beds = kd_used_beds(&used);
	const struct kd_bed *bed = prev ? (const struct kd_bed *)prev + 1 : beds;

	kd_all_beds(&all);
	if (traits & KD_SIMULATED)
		used = all;
	while (bed < beds + used && (bed->traits & traits) != traits)
		bed++;
	if (bed >= beds + used)
		return NULL;
	strscpy(desc, bed->ia, KUNIT_PARAM_DESC_SIZE);
	return bed;
}

KD_GENERATOR(kd_gen_ia)
{
	return kd_gen_with(prev, desc, 0);
}
EXPORT_SYMBOL_GPL(kd_gen_ia);

KD_GENERATOR(kd_gen_wired_ia)
{
	return kd_gen_with(prev, desc, KD_WIRE);
}
EXPORT_SYMBOL_GPL(kd_gen_wired_ia);

KD_GENERATOR(kd_gen_simulated_ia)
{
	return kd_gen_with(prev, desc, KD_SIMULATED);
}
EXPORT_SYMBOL_GPL(kd_gen_simulated_ia);

/* For cases that are about what only the simulated adapters do in some runs. */
KD_GENERATOR(kd_gen_any_ia)
{
	size_t n;
	const struct kd_bed *beds = kd_all_beds(&n);
	const struct kd_bed *bed = prev ? (const struct kd_bed *)prev + 1 : beds;

	if (bed == beds + n)
		return NULL;
	strscpy(desc, bed->ia, KUNIT_PARAM_DESC_SIZE);
	return bed;
}
EXPORT_SYMBOL_GPL(kd_gen_any_ia);

/* All suites share the entries; a suite uses as many as it has choices. */
static const void *kd_gen_and(const void *prev, char *desc,
			      const char * const *names, unsigned int n,
			      const struct kd_bed *first, size_t beds)
{
	static struct kd_param params[64];
	struct kd_param *next = prev ? (struct kd_param *)prev + 1 : params;
	size_t i = next - params;

	if (i >= n * beds || WARN_ON(i >= ARRAY_SIZE(params)))
		return NULL;
	next->ia = first[i % beds].ia;
	next->choice = i / beds;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %s", next->ia,
		 names[next->choice]);
	return next;
}

const void *kd_gen_ia_and(const void *prev, char *desc,
			  const char * const *names, unsigned int n)
{
	size_t beds;
	const struct kd_bed *first = kd_used_beds(&beds);

	return kd_gen_and(prev, desc, names, n, first, beds);
}
EXPORT_SYMBOL_GPL(kd_gen_ia_and);

const void *kd_gen_any_ia_and(const void *prev, char *desc,
			      const char * const *names, unsigned int n)
{
	size_t beds;
	const struct kd_bed *first = kd_all_beds(&beds);

	return kd_gen_and(prev, desc, names, n, first, beds);
}
EXPORT_SYMBOL_GPL(kd_gen_any_ia_and);

/* The second devices, for the suites that remove them. */
KD_GENERATOR(kd_gen_second)
{
	const struct kd_bed *bed = kd_beds;

	if (prev)
		bed = container_of((const struct kd_second *)prev,
				   struct kd_bed, second) + 1;
	while (bed < kd_beds + ARRAY_SIZE(kd_beds) && !bed->second.ia)
		bed++;
	if (kd_is_own() || bed == kd_beds + ARRAY_SIZE(kd_beds))
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%.*s",
		 (int)strcspn(bed->second.ia, "/"), bed->second.ia);
	return &bed->second;
}
EXPORT_SYMBOL_GPL(kd_gen_second);
