// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_kunit.ko: connected pairs for the suites about memory, see mem_fixture.h.
 */
#include <linux/module.h>
#include "mem_fixture.h"

struct mem_pair mem_make_pair(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct mem_pair c = {
		test, kd_open_param(test), kd_open_param(test)
	};

	kd_setup(c.a, &(struct kd_opts) { .attr = attr });
	kd_setup(c.p, &(struct kd_opts) { .attr = attr });
	kd_connect_pair(c.p, c.a);
	return c;
}
EXPORT_SYMBOL_GPL(mem_make_pair);

/*
 * Make another pair on the memory of @c: an Endpoint of @second, which becomes
 * a copy of the owner's side, and another peer.
 */
struct mem_pair mem_second_pair(struct mem_pair *c, struct kd_side *second)
{
	struct mem_pair other = { c->test, second, kd_open_param(c->test) };

	*second = *c->a;
	second->ep = kd_ep(c->a, NULL);
	kd_setup(other.p, NULL);
	kd_connect_pair(other.p, second);
	return other;
}
EXPORT_SYMBOL_GPL(mem_second_pair);

DAT_RMR_TRIPLET mem_remote(DAT_VADDR addr, size_t len, DAT_RMR_CONTEXT context)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = addr,
		.segment_length = len,
		.rmr_context = context,
	};
}
EXPORT_SYMBOL_GPL(mem_remote);

/*
 * Let the peer send a message: when that has arrived, so has all that the peer
 * wrote before.
 */
void mem_mark(struct mem_pair *c)
{
	kd_recv(c->a, KD_BUF_LEN - 64, 64, MEM_MARK);
	kd_send(c->p, KD_BUF_LEN - 64, 64, MEM_MARK);
	kd_expect_dto(c->test, c->a->recv_evd, MEM_MARK, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(c->test, c->p->req_evd, MEM_MARK, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(mem_mark);

/* Let the peer write the start of its buffer to @remote. */
void mem_write(struct mem_pair *c, DAT_RMR_TRIPLET remote)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->p->buf, 0, remote.segment_length);

	KD_ASSERT_OK(c->test,
		     dat_ep_post_rdma_write(c->p->ep, 1, &seg, kd_cookie(1),
					    &remote, 0));
	kd_expect_dto(c->test, c->p->req_evd, 1, DAT_DTO_SUCCESS, NULL);
	mem_mark(c);
}
EXPORT_SYMBOL_GPL(mem_write);

/* Let the peer read @remote into the start of its buffer. */
void mem_read(struct mem_pair *c, DAT_RMR_TRIPLET remote)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->p->buf, 0, remote.segment_length);

	KD_ASSERT_OK(c->test,
		     dat_ep_post_rdma_read(c->p->ep, 1, &seg, kd_cookie(2),
					   &remote, 0));
	kd_expect_dto(c->test, c->p->req_evd, 2, DAT_DTO_SUCCESS, NULL);
}
EXPORT_SYMBOL_GPL(mem_read);

/* Connect the same Endpoints again after their connection has ended. */
void mem_reconnect(struct mem_pair *c)
{
	KD_ASSERT_OK(c->test, dat_ep_reset(c->a->ep));
	KD_ASSERT_OK(c->test, dat_ep_reset(c->p->ep));
	kd_drain(c->a->conn_evd);
	kd_drain(c->p->conn_evd);
	kd_drain(c->a->recv_evd);
	kd_drain(c->a->req_evd);
	kd_drain(c->p->req_evd);
	kd_connect_pair(c->p, c->a);
}
EXPORT_SYMBOL_GPL(mem_reconnect);

/*
 * Expect that the owner's device refuses the peer's access to @remote, which
 * ends the connection. A new one is made.
 */
void mem_expect_refused(struct mem_pair *c, DAT_RMR_TRIPLET remote, bool write,
			const char *why)
{
	DAT_LMR_TRIPLET seg = kd_seg(c->p->buf, 0, remote.segment_length);
	DAT_CONTEXT cookie = kd_cookie(3);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KD_ASSERT_OK(c->test, write ?
		     dat_ep_post_rdma_write(c->p->ep, 1, &seg, cookie, &remote,
					    0) :
		     dat_ep_post_rdma_read(c->p->ep, 1, &seg, cookie, &remote,
					   0));
	kunit_info(c->test, "%s", why);
	/*
	 * Over iWARP the target breaks the connection. Over RoCE the request
	 * fails; rxe of later kernels takes in acknowledgements in work items,
	 * which the disconnect of the owner may overtake.
	 */
	if (kd_is_iwarp(c->p)) {
		kd_expect_disconnected(c->p, NULL);
	} else {
		KUNIT_ASSERT_TRUE(c->test,
				  kd_wait_event(c->p->conn_evd, &event,
						KD_TIMEOUT_MS));
		if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
			KUNIT_ASSERT_EQ(c->test, (u32)event.event_number,
					(u32)DAT_CONNECTION_EVENT_BROKEN);
		KUNIT_ASSERT_TRUE(c->test,
				  kd_wait_event(c->p->req_evd, &event,
						KD_TIMEOUT_MS));
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(c->test, dto->user_cookie.as_64, cookie.as_64);
		KUNIT_EXPECT_NE(c->test, (u32)dto->status,
				(u32)DAT_DTO_SUCCESS);
	}
	KUNIT_ASSERT_TRUE(c->test, kd_wait_state(c->a->ep,
						 DAT_EP_STATE_DISCONNECTED));
	mem_reconnect(c);
}
EXPORT_SYMBOL_GPL(mem_expect_refused);
