// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Attributes of Endpoints: their limits, their defaults, and the meaning of 0.
 *
 * A program that was written for another DAT sets the members that it knows and leaves
 * the others 0. If a 0 would make an Endpoint that can post nothing, it means the default.
 * Otherwise 0 is taken literally: receives and requests are not posted without an EVD for
 * them, a peer that may not read is the rule, and a watermark of 0 fires at the first
 * buffer. dat_ep_query() returns the values that the consumer gave.
 *
 * Every post reads ep->attr, so there each 0 that means a default is replaced.
 * dat_ep_create(), dat_ep_create_with_srq() and dat_ep_modify() check and fill the
 * attributes alike.
 */
#include "ep.h"
#include "ia.h"
#include "trace.h"

/* DAT_COMPLETION_EVD_THRESHOLD_FLAG is for consumers in user space. */
#define KDAPL_RECV_FLAGS (DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
			  DAT_COMPLETION_UNSIGNALLED_FLAG)
#define KDAPL_REQUEST_FLAGS DAT_COMPLETION_UNSIGNALLED_FLAG

/* The meaning of 0 in a member. */
enum kdapl_ep_zero {
	KDAPL_ZERO_IS_NONE,
	KDAPL_ZERO_IS_DEFAULT,
};

/* Values of kdapl_ep_member.usual. */
#define KDAPL_USUAL_LIMIT	U32_MAX	/* whatever the IA allows */
#define KDAPL_USUAL_IOV		0	/* as many as max_request_iov */

/*
 * struct kdapl_ep_member - a member of DAT_EP_ATTR that is a 32-bit size or number
 * @name: for the tracepoint
 * @at: offset of the member
 * @limit: offset in DAT_IA_ATTR of the IA's limit
 * @usual: the default, unless the IA allows less
 * @zero: the meaning of 0
 * @recv: ignored with an SRQ
 */
struct kdapl_ep_member {
	const char *name;
	u16 at;
	u16 limit;
	u32 usual;
	enum kdapl_ep_zero zero;
	bool recv;
};

#define MEMBER(member, limit_name, usual_value, zero_means, of_recv) {	\
	.name = #member,						\
	.at = offsetof(DAT_EP_ATTR, member),				\
	.limit = offsetof(DAT_IA_ATTR, limit_name),			\
	.usual = usual_value,						\
	.zero = KDAPL_ZERO_IS_ ## zero_means,				\
	.recv = of_recv,						\
}

/*
 * In members that are not listed 0 is DAT_SERVICE_TYPE_RC, DAT_QOS_BEST_EFFORT, no
 * completion flags, no named attributes, and a watermark.
 */
static const struct kdapl_ep_member kdapl_ep_members[] = {
	MEMBER(max_message_size, max_message_size, KDAPL_USUAL_LIMIT, DEFAULT, false),
	MEMBER(max_rdma_size, max_rdma_size, KDAPL_USUAL_LIMIT, DEFAULT, false),
	MEMBER(max_recv_dtos, max_dto_per_ep, 16, NONE, true),
	MEMBER(max_request_dtos, max_dto_per_ep, 16, NONE, false),
	MEMBER(max_recv_iov, max_iov_segments_per_dto, 4, DEFAULT, true),
	MEMBER(max_request_iov, max_iov_segments_per_dto, 4, DEFAULT, false),
	MEMBER(max_rdma_read_in, max_rdma_read_per_ep_in, 4, NONE, false),
	MEMBER(max_rdma_read_out, max_rdma_read_per_ep_out, 4, NONE, false),
	/* These defaults depend on max_request_iov, so they come later. */
	MEMBER(max_rdma_read_iov, max_iov_segments_per_rdma_read,
	       KDAPL_USUAL_IOV, DEFAULT, false),
	MEMBER(max_rdma_write_iov, max_iov_segments_per_rdma_write,
	       KDAPL_USUAL_IOV, DEFAULT, false),
};

/* Return member @m of @attr. A negative number exceeds all limits. */
static u32 kdapl_ep_value(const DAT_EP_ATTR *attr, const struct kdapl_ep_member *m)
{
	return *(const u32 *)((const void *)attr + m->at);
}

static void kdapl_ep_set_value(DAT_EP_ATTR *attr, const struct kdapl_ep_member *m,
			       u32 value)
{
	*(u32 *)((void *)attr + m->at) = value;
}

static u32 kdapl_ep_limit(const DAT_IA_ATTR *limits, const struct kdapl_ep_member *m)
{
	return *(const u32 *)((const void *)limits + m->limit);
}

/* Return the default of member @m; earlier members of the table are set in @attr. */
static u32 kdapl_ep_default(const DAT_IA_ATTR *limits, const DAT_EP_ATTR *attr,
			    const struct kdapl_ep_member *m)
{
	u32 usual = m->usual == KDAPL_USUAL_IOV ? attr->max_request_iov : m->usual;

	return min(usual, kdapl_ep_limit(limits, m));
}

/* Set @attr to the attributes of an Endpoint whose consumer gives none. */
void kdapl_ep_default_attr(struct kdapl_ia *ia, DAT_EP_ATTR *attr)
{
	const struct kdapl_ep_member *m;
	DAT_IA_ATTR limits;
	unsigned int i;

	kdapl_ia_attr(ia, &limits);
	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->srq_soft_hw = DAT_HW_DEFAULT;
	for (i = 0; i < ARRAY_SIZE(kdapl_ep_members); i++) {
		m = &kdapl_ep_members[i];
		kdapl_ep_set_value(attr, m, kdapl_ep_default(&limits, attr, m));
	}
}

/* Are the members of @attr right that have no limit? */
static bool kdapl_ep_check_rules(struct kdapl_ia *ia, const DAT_EP_ATTR *attr)
{
	/* No transport or provider specific attribute is defined. */
	const struct kdapl_rule rules[] = {
		{ "service_type", attr->service_type,
		  attr->service_type == DAT_SERVICE_TYPE_RC, "DAT_SERVICE_TYPE_RC" },
		{ "qos", attr->qos, !(attr->qos & ~KDAPL_QOS_ALL), "flags DAT_QOS_*" },
		{ "recv_completion_flags", attr->recv_completion_flags,
		  !(attr->recv_completion_flags & ~KDAPL_RECV_FLAGS),
		  "SOLICITED_WAIT and UNSIGNALLED" },
		{ "request_completion_flags", attr->request_completion_flags,
		  !(attr->request_completion_flags & ~KDAPL_REQUEST_FLAGS), "UNSIGNALLED" },
		{ "srq_soft_hw", attr->srq_soft_hw, attr->srq_soft_hw >= DAT_HW_DEFAULT,
		  "DAT_HW_DEFAULT, or 0 and more" },
		{ "ep_transport_specific_count", attr->ep_transport_specific_count,
		  !attr->ep_transport_specific_count, "0" },
		{ "ep_provider_specific_count", attr->ep_provider_specific_count,
		  !attr->ep_provider_specific_count, "0" },
	};

	return kdapl_rules_obeyed(ia, rules, ARRAY_SIZE(rules));
}

/* Are these attributes within the limits of the IA? */
bool kdapl_ep_check_attr(struct kdapl_ia *ia, const DAT_EP_ATTR *attr, bool srq)
{
	const struct kdapl_ep_member *m;
	DAT_IA_ATTR limits;
	unsigned int i;

	kdapl_ia_attr(ia, &limits);
	for (i = 0; i < ARRAY_SIZE(kdapl_ep_members); i++) {
		m = &kdapl_ep_members[i];
		if ((srq && m->recv) || kdapl_ep_value(attr, m) <= kdapl_ep_limit(&limits, m))
			continue;
		trace_kdapl_refused(ia, m->name, (s32)kdapl_ep_value(attr, m),
				    kdapl_ep_limit(&limits, m), "from 0 to the adapter's limit");
		return false;
	}
	return kdapl_ep_check_rules(ia, attr);
}

/*
 * Replace each 0 in @attr, which was checked, that means a default. Return a bit for each
 * member replaced, for kdapl_ep_unfill_attr().
 */
u16 kdapl_ep_fill_attr(struct kdapl_ia *ia, DAT_EP_ATTR *attr, bool srq)
{
	const struct kdapl_ep_member *m;
	DAT_IA_ATTR limits;
	u16 filled = 0;
	unsigned int i;

	BUILD_BUG_ON(ARRAY_SIZE(kdapl_ep_members) > BITS_PER_TYPE(filled));

	kdapl_ia_attr(ia, &limits);
	for (i = 0; i < ARRAY_SIZE(kdapl_ep_members); i++) {
		m = &kdapl_ep_members[i];
		if (kdapl_ep_value(attr, m) || m->zero != KDAPL_ZERO_IS_DEFAULT ||
		    (srq && m->recv))
			continue;
		kdapl_ep_set_value(attr, m, kdapl_ep_default(&limits, attr, m));
		filled |= BIT(i);
	}
	return filled;
}

/* Undo kdapl_ep_fill_attr(), which has returned @filled. Context: Any. */
void kdapl_ep_unfill_attr(DAT_EP_ATTR *attr, u16 filled)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kdapl_ep_members); i++)
		if (filled & BIT(i))
			kdapl_ep_set_value(attr, &kdapl_ep_members[i], 0);
}
