// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The client of kdapl_store. Each slot stores a block and loads it again, over and
 * over, and compares.
 */
#include <linux/inet.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "store.h"

#define MSGS	(2 * SLOTS)

static char *peer = "10.8.0.1";
static uint stored, loaded, wrong, invalidated;
module_param(peer, charp, 0444);
module_param(stored, uint, 0444);	/* blocks written */
module_param(loaded, uint, 0444);	/* and read back */
module_param(wrong, uint, 0444);	/* and were not what was written */
module_param(invalidated, uint, 0444);	/* replies that unbound the LMR */

/* A block that is stored and loaded again, over and over. */
struct slot {
	DAT_LMR_HANDLE lmr;	/* bound to data while a request is unanswered */
	DAT_RMR_CONTEXT rmr_context;
	struct msg *req;
	u32 *data;
	u32 round;
	bool storing;
	bool unanswered;
	int pending;		/* of its Send, and of its reply and unbinding */
};

static struct client {
	struct role role;
	DAT_EP_HANDLE ep;
	struct slot slots[SLOTS];
	void *data;
} client;

static u32 pattern(const struct slot *slot)
{
	return slot->round * SLOTS + (slot - client.slots);
}

/* DAT_CONNECTION_EVENT_DISCONNECTED follows, unless the connection has ended. */
static void give_up(void)
{
	dat_ep_disconnect(client.ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* Show the pages to the server, for one request. */
static void request(struct slot *slot)
{
	DAT_MEM_PRIV_FLAGS priv = slot->storing ?
		DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG :
		DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = slot->data };
	DAT_LMR_COOKIE cookie = as_cookie(slot);
	u32 tag = slot - client.slots;
	DAT_LMR_CONTEXT unused;

	memset32(slot->data, slot->storing ? pattern(slot) : 0,
		 BLOCK / sizeof(u32));
	/* If it fails, so does the Send behind it: an event would tell no more. */
	if (dat_lmr_fmr(slot->lmr, DAT_MEM_TYPE_VIRTUAL, region, PAGES, priv,
			DAT_VA_TYPE_ZB, client.ep, cookie,
			DAT_COMPLETION_SUPPRESS_FLAG, &unused,
			&slot->rmr_context)) {
		give_up();
		return;
	}
	*slot->req = (struct msg) {
		.tag = cpu_to_le32(tag),
		.op = cpu_to_le32(slot->storing ? OP_STORE : OP_LOAD),
		.block = cpu_to_le32(tag),
		.length = cpu_to_le32(BLOCK),
		.rmr_context = cpu_to_le32(slot->rmr_context),
		.address = 0,		/* of zero-based memory */
	};
	slot->unanswered = true;
	slot->pending = 2;
	if (post_send(&client.role, client.ep, slot->req, slot, 0))
		give_up();
}

/* The request is over when its message may change and nobody has the pages. */
static void slot_done(struct slot *slot)
{
	size_t i;

	if (--slot->pending)
		return;
	if (slot->storing) {
		stored++;
	} else {
		for (i = 0; i < BLOCK / sizeof(u32); i++)
			if (slot->data[i] != pattern(slot))
				break;
		if (i < BLOCK / sizeof(u32))
			wrong++;
		loaded++;
		slot->round++;
	}
	slot->storing = !slot->storing;
	request(slot);
}

static void client_reply(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct msg *msg = dto->user_cookie.as_ptr;
	u32 tag = le32_to_cpu(msg->tag);
	struct slot *slot = &client.slots[tag % SLOTS];
	bool ok = dto->transfered_length == sizeof(*msg) && tag < SLOTS &&
		  !msg->status && slot->unanswered;

	/* The buffer is for another reply, which may come from now on. */
	if (!ok || post_recv(&client.role, client.ep, msg, msg)) {
		give_up();
		return;
	}
	slot->unanswered = false;
	if (dto->operation == DAT_DTO_RECEIVE) {
		/* A server need not have invalidated the context. */
		if (dat_lmr_invalidate(slot->lmr, client.ep, as_cookie(slot),
				       DAT_COMPLETION_DEFAULT_FLAG))
			give_up();
	} else if (dto->rmr_context == slot->rmr_context) {
		invalidated++;
		slot_done(slot);
	} else {
		give_up();
	}
}

static void client_dto(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	if (dto->status) {
		if (dto->status != DAT_DTO_ERR_FLUSHED)
			pr_warn_ratelimited("kdapl_store: %s\n",
					    kdat_dto_status_name(dto->status));
		give_up();
		return;
	}
	switch (dto->operation) {
	case DAT_DTO_RECEIVE:
	case DAT_DTO_RECEIVE_WITH_INVALIDATE:
		client_reply(dto);
		break;
	default:		/* a Send or an invalidation */
		slot_done(dto->user_cookie.as_ptr);
	}
}

static void client_event(DAT_PVOID data, const DAT_EVENT *event,
			 DAT_BOOLEAN more)
{
	int i;

	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		client_dto(&event->event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		for (i = 0; i < SLOTS; i++)
			request(&client.slots[i]);
		break;
	default:		/* it could not be made, or is over */
		mod_delayed_work(system_wq, &client.role.restart, RETRY);
	}
}

static DAT_RETURN client_start(struct role *role)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct slot *slot;
	DAT_RETURN ret;
	int i;

	ret = open_ia(role, MSGS) ?:
	      make_ep(role, SLOTS, 3 * SLOTS, &client.ep);
	for (i = 0; i < SLOTS && !ret; i++) {
		slot = &client.slots[i];
		*slot = (struct slot) {
			.req = &role->msgs[i],
			.data = client.data + i * BLOCK,
			.round = 1,
			.storing = true,
		};
		ret = dat_lmr_allocate(role->ia, role->pz, PAGES,
				       DAT_LMR_SCOPE_EP, &slot->lmr) ?:
		      post_recv(role, client.ep, &role->msgs[SLOTS + i],
				&role->msgs[SLOTS + i]);
	}
	addr.sin_addr.s_addr = in_aton(peer);
	return ret ?: dat_ep_connect(client.ep, (struct sockaddr *)&addr, PORT,
				     2 * USEC_PER_SEC, 0, NULL,
				     DAT_QOS_BEST_EFFORT,
				     DAT_CONNECT_DEFAULT_FLAG);
}

void client_free(void)
{
	vfree(client.data);
	kfree(client.role.msgs);
}

struct role *client_alloc(void)
{
	client.role.start = client_start;
	client.role.on_event = client_event;
	client.role.msgs = kcalloc(MSGS, sizeof(struct msg), GFP_KERNEL);
	client.data = vzalloc(SLOTS * BLOCK);
	return client.role.msgs && client.data ? &client.role : NULL;
}
