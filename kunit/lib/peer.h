/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peers of modules that serve: somebody who sends what it is told to, right or wrong, from slots of
 * its buffer, and receives into slots behind those; and the numbers that these modules show.
 */
#ifndef KDAPL_KUNIT_PEER_H
#define KDAPL_KUNIT_PEER_H

#include "fixture.h"

/*
 * struct kd_slots - how the buffer of a side is divided
 * @sends: slots for messages to send, of @send_len bytes
 * @recv_len: bytes of each slot for messages to receive
 */
struct kd_slots {
	unsigned int sends;
	unsigned int send_len;
	unsigned int recv_len;
};

void kd_slots_post(const struct kd_slots *slots, struct kd_side *side, u64 slot);
bool kd_slots_fill(const struct kd_slots *slots, struct kd_side *side, unsigned int nth,
		   const void *message, size_t len, DAT_LMR_TRIPLET *seg);
bool kd_slots_receive(const struct kd_slots *slots, struct kd_side *side, unsigned int ms,
		      void *got, size_t room, unsigned int *len);

bool kd_peer_connect(struct kd_side *side, DAT_CONN_QUAL port, DAT_COUNT len, void *private_data);
bool kd_reaches(struct kd_side *side, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL port);
bool kd_tool_serves(struct kd_side *side, u16 port);
void kd_peer_expect_cut(struct kd_side *side, const char *module, long broken);

bool kd_expect_soon(struct kunit *test, const char *command);
long kd_number(struct kunit *test, const char *command);
long kd_adapter_number(struct kd_side *side, const char *module, const char *name);
bool kd_wait_adapter(struct kd_side *side, const char *module, const char *name, long least,
		     long most, unsigned int ms);

#endif /* KDAPL_KUNIT_PEER_H */
