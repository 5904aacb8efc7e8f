/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The state of Endpoints, and the end of their connections: ep_state.c.
 */
#ifndef KDAPL_EP_STATE_H
#define KDAPL_EP_STATE_H

#include "handle.h"
#include "names.h"

struct kdapl_conn;
struct kdapl_ep;

/*
 * How long a call waits for a connection to be taken down. That takes milliseconds unless
 * a driver or its firmware waits for the peer: siw does for at most 10 s.
 */
#define KDAPL_END_WAIT	(15 * HZ)

void kdapl_ep_check_cqs(struct kdapl_obj *obj);
bool kdapl_ep_change_state(struct kdapl_ep *ep, DAT_EP_STATE to);
DAT_RETURN kdapl_ep_state_error(DAT_EP_STATE state);
void kdapl_ep_settle(struct kdapl_ep *ep);
bool kdapl_ep_join(struct kdapl_ep *ep, struct kdapl_conn *conn,
		   DAT_EP_STATE to);
bool kdapl_ep_down(struct kdapl_ep *ep, DAT_EVENT_NUMBER end, enum kdapl_end why);
bool kdapl_ep_down_if(struct kdapl_ep *ep, u32 states);
struct kdapl_conn *kdapl_ep_close(struct kdapl_ep *ep);
void kdapl_ep_start_timer(struct kdapl_ep *ep, unsigned int ms);
void kdapl_ep_hurry(struct kdapl_ep *ep);
bool kdapl_conn_end_drained(struct kdapl_conn *conn, enum kdapl_end why);
void kdapl_ep_qp_died(struct kdapl_ep *ep);
void kdapl_conn_died(struct kdapl_conn *conn);
bool kdapl_conn_end(struct kdapl_conn *conn, DAT_EVENT_NUMBER end, enum kdapl_end why);
bool kdapl_conn_end_if(struct kdapl_conn *conn, u32 states,
		       DAT_EVENT_NUMBER end, enum kdapl_end why);
void kdapl_conn_put(struct kdapl_conn *conn);
bool kdapl_conn_wait(struct kdapl_ep *ep);
bool kdapl_ep_is_stuck(struct kdapl_ep *ep);
bool kdapl_conn_may_receive(struct kdapl_conn *conn, bool *mark);
void kdapl_conn_accepted(struct kdapl_conn *conn);
void kdapl_conn_stopped(struct kdapl_conn *conn);
DAT_RETURN kdapl_ep_die(struct kdapl_ep *ep, u32 refused, bool *deps_pinned);
struct kdapl_ep *kdapl_linger_next(struct kdapl_ia *ia, unsigned int *bucket,
				   u64 *last);
bool kdapl_ia_wait_lingering(struct kdapl_ia *ia,
			     bool (*concerns)(struct kdapl_ep *ep, void *arg),
			     void *arg, long wait);

#endif
