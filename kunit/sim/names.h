/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The switches and the counters of the simulated adapter, each with what it is. */
#ifndef KDAPL_SIM_NAMES_H
#define KDAPL_SIM_NAMES_H

#define KDAPL_SIM_SWITCH_NAMES(X)							\
	/* Completions and contexts */							\
	X(drop_cqes)		/* destroy_qp removes the QP's completions (mlx5) */	\
	X(comp_ctx)		/* completion handlers run 0: in softirq, 1: in hard */	\
				/* interrupt context, 2: in a work item */		\
	X(event_irqoff)		/* QP and SRQ handlers run with interrupts off (qedr) */	\
	X(engine_ctx)		/* requests execute 0: in softirq, 1: in a work item */	\
	X(cq_overflow)		/* times that a CQ overflows although it has room */	\
	X(no_cq_resize)		/* CQs cannot be resized */				\
	/* Shared receive queues */							\
	X(lwqe)			/* LAST_WQE_REACHED is 0: raised, 1: never raised, 2: */	\
				/* raised whenever a QP in ERR is looked at (rxe), */	\
				/* 3: raised lwqe_ms late */				\
	X(lwqe_ms)		/* see lwqe */						\
	X(lose_partial)		/* the receive of a message that was under way when its */	\
				/* QP died never completes (rxe) */			\
	X(no_srq_resize)	/* SRQs cannot be resized */				\
	X(no_srq_limit)		/* the limit event of an SRQ never comes (cxgb4) */	\
	/* Connections */								\
	X(drop_attr)		/* attribute ID of MADs of the CM that are lost (0x15 is */	\
				/* DREQ); 0: all of them are */				\
	X(drop_mads)		/* times that such a MAD is lost */			\
	X(drop_close)		/* iWARP: times that a peer is not told of the end */	\
	X(black_hole)		/* iWARP: times that a request is not answered */	\
	X(port_down)		/* the port is down */					\
	X(hold_rtr)		/* modify_qp waits before it takes a QP to RTR until */	\
				/* this is 0 again */					\
	/* Calls */									\
	X(refuse_send)		/* times that a post to a send queue is refused */	\
	X(refuse_recv)		/* times that a post to a receive queue is refused */	\
	X(refuse_srq)		/* times that a post to an SRQ is refused */		\
	X(destroy_us)		/* microseconds that destroy_qp takes */		\
	X(fail_reg)		/* times that REG_MR completes in error */		\
	X(fail_map)		/* times that ib_map_mr_sg() fails */			\
	X(fail_mr)		/* times that ib_alloc_mr() fails */			\
	X(fail_qp)		/* times that ib_create_qp() fails */			\
	X(max_qps)		/* ib_create_qp() fails when there are as many; 0: no */	\
				/* limit */						\
	/* Completions that are not what they should be, of connected QPs */		\
	X(bad_send)		/* the so-many-th request from now on that has been */	\
				/* executed completes with the status bad_status, which */	\
				/* ends its QP */					\
	X(bad_status)		/* see bad_send; ~0: it never completes, nor does what */	\
				/* is behind it, until the QP is ended */		\
	X(bad_recv)		/* the so-many-th message from now on ends both QPs, as */	\
				/* its receive is of no use */				\
	/* Messages */									\
	X(stall_bytes)		/* a Send longer than this stops after as many bytes, */	\
				/* with its receive taken, until this is 0 again */	\
	X(hold_acks)		/* a Send that was received completes when this is 0 */	\
				/* again; not if its QP has ended by then (rxe) */

#define KDAPL_SIM_COUNTER_NAMES(X)							\
	X(messages)		/* requests executed that reached a peer */		\
	X(rnr)			/* times that a Send found no receive */		\
	X(partial)		/* Sends that stall_bytes stops now */			\
	X(lost)			/* receives that were taken and never complete */	\
	X(mads)			/* MADs delivered */					\
	X(mads_dropped)		/* MADs lost, by drop_mads or for want of a receive */	\
	X(cqes_dropped)		/* completions lost: drop_cqes, overflows */		\
	X(held)			/* callers of modify_qp that hold_rtr holds now */	\
	X(qps)			/* that exist now */					\
	X(mrs)			/* that exist now */					\
	X(at_rtr)		/* transitions of QPs to RTR */				\
	X(at_err)		/* transitions of QPs to ERR */				\
	X(limits)		/* limit events raised */				\
	X(lwqes)		/* LAST_WQE_REACHED events raised */

#define KDAPL_SIM_SWITCH_ID(name)	KDAPL_SIM_##name,
#define KDAPL_SIM_COUNTER_ID(name)	KDAPL_SIM_N_##name,
#define KDAPL_SIM_STRING(name)		#name,

#endif /* KDAPL_SIM_NAMES_H */
