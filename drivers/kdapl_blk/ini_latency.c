// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Histograms of the latency of a disk's requests, one for each kind of request.
 *
 * Entry points: kbi_latency_count(), from kbi_disk_complete(), and kbi_latency_show(), which
 * the attribute "latency" of the disk shows.
 *
 * The latency is what the user of the disk sees: from the submission to the block layer, which
 * takes the time then for its own statistics, until the end of the request, which may have
 * waited for a lost connection, or failed. A request costs one more look at the clock, and two
 * counts of this CPU, which no other CPU writes.
 */
#include <linux/blk-mq.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sysfs.h>
#include "ini_latency.h"

/* Bounds of the first and the last bucket that has one, as powers of two in us: 8 us, 67 s */
#define KBI_BUCKET_FIRST	3
#define KBI_BUCKET_LAST		26
/* The last one has the requests that took longer. */
#define KBI_BUCKETS		(KBI_BUCKET_LAST - KBI_BUCKET_FIRST + 2)

enum kbi_kind {
	KBI_KIND_READ,
	KBI_KIND_WRITE,
	KBI_KIND_DISCARD,
	KBI_KIND_FLUSH,
	KBI_KINDS
};

static const char *const kbi_kind_names[] = {
	[KBI_KIND_READ] = "read",
	[KBI_KIND_WRITE] = "write",
	[KBI_KIND_DISCARD] = "discard",
	[KBI_KIND_FLUSH] = "flush",
};

/*
 * struct kbi_latency - what one CPU has counted
 * @ns: time that the requests of each kind took, added up
 * @requests: how many are in each bucket, see kbi_latency_bucket()
 */
struct kbi_latency {
	u64 ns[KBI_KINDS];
	u64 requests[KBI_KINDS][KBI_BUCKETS];
};

/* Return NULL if there is no memory; free_percpu() frees it. */
struct kbi_latency __percpu *kbi_latency_alloc(void)
{
	return alloc_percpu(struct kbi_latency);
}

static enum kbi_kind kbi_kind(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_FLUSH:
		return KBI_KIND_FLUSH;
	case REQ_OP_DISCARD:
		return KBI_KIND_DISCARD;
	default:
		return op_is_write(req_op(rq)) ? KBI_KIND_WRITE : KBI_KIND_READ;
	}
}

/*
 * Return the bucket of requests that took @ns: bucket n has those of at most
 * 2^(KBI_BUCKET_FIRST + n) us which are in no bucket before it, and the last one all others.
 */
static unsigned int kbi_latency_bucket(u64 ns)
{
	/* Rounded up, as a bucket has its upper bound */
	u64 us = DIV_ROUND_UP_ULL(ns, NSEC_PER_USEC);

	if (us <= BIT(KBI_BUCKET_FIRST))
		return 0;
	if (us > BIT(KBI_BUCKET_LAST))
		return KBI_BUCKETS - 1;
	return order_base_2(us) - KBI_BUCKET_FIRST;
}

/*
 * Return whether the block layer has taken the time of the submission of @rq: unless the
 * administrator has switched statistics off (iostats), and always for a flush of its own. One
 * that dm-multipath sends is like any other request.
 */
static bool kbi_is_stamped(const struct request *rq)
{
	return rq->rq_flags & RQF_IO_STAT ||
	       (req_op(rq) == REQ_OP_FLUSH && rq->rq_flags & RQF_FLUSH_SEQ);
}

/* Count @rq, which is about to end. Context: any. */
void kbi_latency_count(struct kbi_latency __percpu *latency, const struct request *rq)
{
	enum kbi_kind kind = kbi_kind(rq);
	u64 ns;

	if (!kbi_is_stamped(rq))
		return;
	ns = ktime_get_ns() - rq->start_time_ns;
	this_cpu_add(latency->ns[kind], ns);
	this_cpu_inc(latency->requests[kind][kbi_latency_bucket(ns)]);
}

/*
 * Print a line for each kind of request: "le_<n>" counts those that took at most n us, and
 * "requests" all. Return the number of bytes. A request that is counted meanwhile may be in
 * one of the numbers and not yet in another.
 */
ssize_t kbi_latency_show(struct kbi_latency __percpu *latency, char *page)
{
	int kind, bucket, cpu;
	u64 ns, requests;
	ssize_t n = 0;

	for (kind = 0; kind < KBI_KINDS; kind++) {
		ns = 0;
		requests = 0;
		for_each_possible_cpu(cpu)
			ns += READ_ONCE(per_cpu_ptr(latency, cpu)->ns[kind]);
		n += sysfs_emit_at(page, n, "operation=%s us=%llu", kbi_kind_names[kind],
				   div_u64(ns, NSEC_PER_USEC));
		for (bucket = 0; bucket < KBI_BUCKETS; bucket++) {
			for_each_possible_cpu(cpu)
				requests += READ_ONCE(per_cpu_ptr(latency, cpu)
						      ->requests[kind][bucket]);
			if (bucket < KBI_BUCKETS - 1)
				n += sysfs_emit_at(page, n, " le_%u=%llu",
						   1U << (KBI_BUCKET_FIRST + bucket), requests);
		}
		n += sysfs_emit_at(page, n, " requests=%llu\n", requests);
	}
	return n;
}
