// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Fast registration for transactions: the receive buffer of a connection is bound for
 * each step in which the peer writes or reads it, and unbound before what has arrived
 * is looked at. The owner of the upcalls of the connection calls this.
 */
#include "kdapl_test.h"

/* Make what binds the receive buffer. It is not bound yet. Context: process. */
int kt_fmr_make(struct kt_conn *conn)
{
	struct dat_side *dat = &conn->dat;
	DAT_RETURN ret;

	ret = dat_lmr_allocate(dat->ia, dat->pz, conn->side->room >> PAGE_SHIFT,
			       DAT_LMR_SCOPE_PZ, &conn->trans.fmr);
	if (ret != DAT_SUCCESS)
		conn->trans.fmr = NULL;
	return dat_errno("dat_lmr_allocate", ret);
}

/*
 * Its opposite, before dat_side_free(). Nothing may be under way on the connection.
 * Context: process.
 */
void kt_fmr_free(struct kt_conn *conn)
{
	if (conn->trans.fmr &&
	    DAT_GET_TYPE(dat_lmr_free(conn->trans.fmr)) == DAT_INVALID_STATE)
		conn->dat.kept = true;
	conn->trans.fmr = NULL;
}

/* Post the request that binds the buffer: what is posted next may tell the peer. */
int kt_fmr_bind(struct kt_conn *conn, DAT_DTO_COOKIE cookie)
{
	struct kt_trans *trans = &conn->trans;
	u8 *buf = conn->side->buf + conn->side->room;
	DAT_REGION_DESCRIPTION region = { .for_va = buf };
	DAT_LMR_CONTEXT context;
	DAT_RETURN ret;

	trans->shown = (uintptr_t)buf;
	ret = dat_lmr_fmr(trans->fmr, DAT_MEM_TYPE_VIRTUAL, region,
			  conn->side->room >> PAGE_SHIFT,
			  DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
			  DAT_MEM_PRIV_REMOTE_READ_FLAG |
			  DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
			  conn->dat.ep, cookie, DAT_COMPLETION_DEFAULT_FLAG,
			  &context, &trans->shown_key);
	return dat_errno("dat_lmr_fmr", ret);
}

/* Post the request that unbinds it; that completes on an Endpoint that has ended, too. */
int kt_fmr_unbind(struct kt_conn *conn, DAT_DTO_COOKIE cookie)
{
	return dat_errno("dat_lmr_invalidate",
			 dat_lmr_invalidate(conn->trans.fmr, conn->dat.ep, cookie,
					    DAT_COMPLETION_DEFAULT_FLAG));
}

bool kt_fmr_is_bound(const struct kt_conn *conn)
{
	DAT_LMR_PARAM param;

	return conn->trans.fmr &&
	       dat_lmr_query(conn->trans.fmr, DAT_LMR_FIELD_LMR_STATE,
			     &param) == DAT_SUCCESS && param.lmr_state.bound;
}
