// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Both roles of kdapl_store: registered messages, opening and closing of the IA.
 * store.h says what the module does.
 */
#include "store.h"

static char *server_ia, *client_ia;
module_param(server_ia, charp, 0444);
module_param(client_ia, charp, 0444);

static struct role *server, *client;

DAT_RETURN post_send(struct role *role, DAT_EP_HANDLE ep, struct msg *msg,
		     void *cookie, DAT_RMR_CONTEXT rmr_context)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)msg,
		.segment_length = sizeof(*msg),
		.lmr_context = role->msgs_context,
	};

	/* With DAT_FALSE it is an ordinary Send. */
	return dat_ep_post_send_with_invalidate(ep, 1, &seg, as_cookie(cookie),
						DAT_COMPLETION_DEFAULT_FLAG,
						rmr_context ? DAT_TRUE :
							      DAT_FALSE,
						rmr_context);
}

DAT_RETURN post_recv(struct role *role, DAT_EP_HANDLE ep, struct msg *msg,
		     void *cookie)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)msg,
		.segment_length = sizeof(*msg),
		.lmr_context = role->msgs_context,
	};

	return dat_ep_post_recv(ep, 1, &seg, as_cookie(cookie),
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* Register memory that only our own posts name. */
DAT_RETURN register_local(struct role *role, void *memory, DAT_VLEN len,
			  DAT_LMR_CONTEXT *context)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_LMR_HANDLE lmr;

	return dat_lmr_kcreate(role->ia, DAT_MEM_TYPE_VIRTUAL, region, len,
			       role->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG |
			       DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, context, NULL,
			       NULL, NULL);
}

static void on_async(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct role *role = data;

	/* Unplugged. No upcall can close the IA it belongs to. */
	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		mod_delayed_work(system_wq, &role->restart, 0);
	else
		pr_warn_ratelimited("kdapl_store: %s\n",
				    kdat_event_name(event->event_number));
}

DAT_RETURN open_ia(struct role *role, int msgs)
{
	DAT_UPCALL_OBJECT upcall = { role, role->on_event };
	DAT_UPCALL_OBJECT async = { role, on_async };
	DAT_EVD_HANDLE async_evd = NULL;

	return dat_ia_open((DAT_NAME_PTR)role->ia_name, 8, &async_evd,
			   &role->ia) ?:
	       /* INVOC_ANY: also for what has happened since. */
	       dat_evd_modify_upcall(async_evd, DAT_UPCALL_SINGLE_INSTANCE,
				     &async, DAT_UPCALL_INVOC_ANY) ?:
	       dat_pz_create(role->ia, &role->pz) ?:
	       register_local(role, role->msgs, msgs * sizeof(struct msg),
			      &role->msgs_context) ?:
	       dat_evd_kcreate(role->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
			       &upcall, DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
			       DAT_EVD_CONNECTION_FLAG, &role->evd);
}

DAT_RETURN make_ep(struct role *role, int recvs, int requests,
		   DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = {
		.max_message_size = sizeof(struct msg),
		.max_rdma_size = BLOCK,
		.max_recv_dtos = recvs,
		.max_request_dtos = requests,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = 1,
		.max_rdma_read_out = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	return dat_ep_create(role->ia, role->pz, role->evd, role->evd,
			     role->evd, &attr, ep);
}

/*
 * All that was made in the IA goes with it; no upcall runs afterwards. Return false if a driver
 * does not end a connection: the IA and its memory stay, and the call can be repeated.
 */
static bool closed(DAT_IA_HANDLE ia)
{
	return DAT_GET_TYPE(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG)) != DAT_INVALID_STATE;
}

static void restart(struct work_struct *work)
{
	struct role *role = container_of(work, struct role, restart.work);
	const char *type, *subtype;
	DAT_RETURN ret;

	if (!closed(role->ia))
		goto again;
	if (READ_ONCE(role->stopping))
		return;
	ret = role->start(role);
	if (!ret)
		return;
	/* A device that is not there yet is waited for. */
	if (DAT_GET_TYPE(ret) != DAT_PROVIDER_NOT_FOUND &&
	    !dat_strerror(ret, &type, &subtype))
		pr_warn_ratelimited("kdapl_store: %s: %s, %s\n", role->ia_name,
				    type, subtype);
again:
	mod_delayed_work(system_wq, &role->restart, RETRY);
}

static void enter(struct role *role, const char *ia_name)
{
	INIT_DELAYED_WORK(&role->restart, restart);
	role->ia_name = ia_name;
	if (ia_name)
		mod_delayed_work(system_wq, &role->restart, 0);
}

/* Return whether the memory is free. */
static bool leave(struct role *role)
{
	bool ok;

	WRITE_ONCE(role->stopping, true);
	cancel_delayed_work_sync(&role->restart);
	ok = closed(role->ia);
	cancel_delayed_work_sync(&role->restart);	/* of a last upcall */
	return ok;
}

static int __init store_init(void)
{
	server = server_alloc();
	client = client_alloc();
	if (!server || !client) {
		client_free();
		server_free();
		return -ENOMEM;
	}
	enter(server, server_ia);
	enter(client, client_ia);
	return 0;
}
module_init(store_init);

static void __exit store_exit(void)
{
	if (leave(client))
		client_free();
	if (leave(server))
		server_free();
}
module_exit(store_exit);
MODULE_DESCRIPTION("Block store by RDMA over kDAPL, server and client");
MODULE_LICENSE("Dual BSD/GPL");
