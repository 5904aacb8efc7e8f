/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RMRs over parts of the owner's buffer.
 */
#ifndef KDAPL_KUNIT_RMR_FIXTURE_H
#define KDAPL_KUNIT_RMR_FIXTURE_H

#include "mem_fixture.h"

#define RMR_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define RMR_PART	PAGE_SIZE		/* bytes that RMRs are bound to */
#define RMR_PARTS	(KD_BUF_LEN / RMR_PART - 1)	/* and the last one for messages */
#define RMR_COOKIE	77

DAT_RMR_HANDLE rmr_make(struct mem_pair *c);
DAT_RETURN rmr_bind(struct mem_pair *c, DAT_RMR_HANDLE rmr, size_t off,
		    size_t len, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
		    DAT_RMR_CONTEXT *context);
void rmr_expect_bound(struct mem_pair *c, DAT_RMR_HANDLE rmr,
		      DAT_DTO_COMPLETION_STATUS status);
DAT_RMR_CONTEXT rmr_bind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr, size_t off,
			    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type);
void rmr_unbind_ok(struct mem_pair *c, DAT_RMR_HANDLE rmr);
DAT_RMR_TRIPLET rmr_shown(struct mem_pair *c, size_t off, size_t len,
			  DAT_RMR_CONTEXT context);
DAT_RETURN rmr_read_to(struct mem_pair *c, DAT_RMR_TRIPLET to, size_t len);

#endif /* KDAPL_KUNIT_RMR_FIXTURE_H */
