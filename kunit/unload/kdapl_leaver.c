// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_leaver.ko: a consumer that frees nothing when it is unloaded, for unload_test.c.
 * All that kdapl.ko could keep of it is static: functions, their data, memory of an LMR.
 */
#include <dat/kdat.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>
#include "param.h"

#define RECVS	8
#define RECV_LEN	64

static char *ia_name;
module_param_named(ia, ia_name, charp, 0);
MODULE_PARM_DESC(ia, "IA to leave open, with all that follows");

KD_PARAM(port, ushort, 0, "where to listen, and to accept one connection");
KD_PARAM(evd, ulong, 0, "handle of somebody else's EVD, which gets an upcall");
KD_PARAM(watch, bool, false, "create a notifier");
KD_PARAM(pool, bool, false, "create a pool on the IA, whose work item is to run in some seconds");
KD_PARAM(server, bool, false,
	 "create a server: a portal on the IA, one that waits, one that tries again");
KD_PARAM(by_function, bool, false, "open the IA by a function of kdapl.ko, in memory for init");
KD_PARAM(fail, bool, false, "fail to load, when all of this is there");

static struct {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cm_evd;
	DAT_EVD_HANDLE dto_evd;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	DAT_EP_HANDLE ep;
	DAT_PSP_HANDLE psp;
	KDAT_NOTIFIER_HANDLE notifier;
	KDAT_POOL_HANDLE pool;
	KDAT_SERVER_HANDLE server;
	KDAT_PORTAL_HANDLE portals[3];
	unsigned int changes;
	unsigned int events;
} left;

static char memory[RECVS][RECV_LEN] __aligned(PAGE_SIZE);

static DAT_RETURN post(unsigned int i)
{
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)memory[i],
		.segment_length = RECV_LEN,
		.lmr_context = left.context,
	};
	DAT_DTO_COOKIE cookie = { .as_64 = i };

	return dat_ep_post_recv(left.ep, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

static void on_event(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	left.events++;
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle,
			      left.ep, 0, NULL);
	else if (event->event_number == DAT_DTO_COMPLETION_EVENT &&
		 dto->status == DAT_DTO_SUCCESS)
		post(dto->user_cookie.as_64);
}

static const DAT_UPCALL_OBJECT upcall = {
	.instance_data = &left,
	.upcall_func = on_event,
};

static void on_change(DAT_PVOID data, DAT_COUNT what)
{
	left.changes++;
}

static DAT_RETURN make_ep(void)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = RECV_LEN,
		.max_rdma_size = RECV_LEN,
		.max_recv_dtos = RECVS,
		.max_request_dtos = 1,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};
	DAT_RETURN ret;
	unsigned int i;

	ret = dat_ep_create(left.ia, left.pz, left.dto_evd, left.dto_evd,
			    left.cm_evd, &attr, &left.ep);
	for (i = 0; i < RECVS && ret == DAT_SUCCESS; i++)
		ret = post(i);
	return ret;
}

static void pool_size(DAT_PVOID data, KDAT_POOL_SIZE *size)
{
	*size = (KDAT_POOL_SIZE) { .wanted = RECVS, .most = 2 * RECVS };
}

static DAT_RETURN make_pool(void)
{
	const KDAT_POOL_ATTR attr = {
		.ia = left.ia,
		.pz = left.pz,
		.name = "kdapl_leaver",
		.length = RECV_LEN,
		.size = pool_size,
	};
	DAT_RETURN ret = kdat_pool_create(&attr, &left.pool);

	if (ret == DAT_SUCCESS)
		kdat_pool_adapt(left.pool, DAT_FALSE);
	return ret;
}

static void on_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
		       const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	left.events++;
	dat_cr_reject(cr, 0, NULL);
}

static DAT_RETURN make_server(void)
{
	const KDAT_SERVER_ATTR attr = {
		.owner = THIS_MODULE,
		.name = KBUILD_MODNAME,
		.adapter_size = sizeof(KDAT_ADAPTER),
		.cm_qlen = 8,
		.cr_qlen = 8,
		.buffer_length = RECV_LEN,
		.size = pool_size,
		.request = on_request,
		.event = on_event,
	};
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	KDAT_PORTAL_ATTR at = { .ia_name = ia_name, .port = port };
	DAT_RETURN ret = kdat_server_create(&attr, &left.server);

	if (ret == DAT_SUCCESS)
		ret = kdat_portal_create(left.server, &at, &left.portals[0]);
	at.ia_name = "none/1";
	if (ret == DAT_SUCCESS)
		ret = kdat_portal_create(left.server, &at, &left.portals[1]);
	/* The port is in use on the IA, and free on others. */
	at.address = (struct sockaddr *)&any;
	if (ret == DAT_SUCCESS)
		ret = kdat_portal_create(left.server, &at, &left.portals[2]);
	return ret;
}

static noinline __init DAT_RETURN open_by_function(void)
{
	/* The function, and not the macro. */
	DAT_RETURN ret = (dat_ia_openv)(ia_name, 8, &left.async_evd, &left.ia,
					DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
					DAT_THREADSAFE);

	/* No tail call: kdapl.ko is to return to here. */
	barrier();
	return ret;
}

static __init DAT_RETURN open_ia(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_RMR_CONTEXT key;
	DAT_RETURN ret;

	ret = by_function ? open_by_function() :
			    dat_ia_open(ia_name, 8, &left.async_evd, &left.ia);
	return ret ?:
	       dat_evd_modify_upcall(left.async_evd, DAT_UPCALL_SINGLE_INSTANCE,
				     &upcall, DAT_UPCALL_INVOC_ANY) ?:
	       dat_evd_kcreate(left.ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
			       DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			       &left.cm_evd) ?:
	       dat_evd_kcreate(left.ia, 2 * RECVS, DAT_UPCALL_SINGLE_INSTANCE,
			       &upcall, DAT_EVD_DTO_FLAG, &left.dto_evd) ?:
	       dat_pz_create(left.ia, &left.pz) ?:
	       dat_lmr_kcreate(left.ia, DAT_MEM_TYPE_VIRTUAL, region,
			       sizeof(memory), left.pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
			       &left.lmr, &left.context, &key, NULL, NULL) ?:
	       make_ep() ?:
	       dat_psp_create(left.ia, port, left.cm_evd, DAT_PSP_CONSUMER_FLAG,
			      &left.psp);
}

static int __init leaver_init(void)
{
	DAT_RETURN ret = DAT_SUCCESS;

	if (ia_name && server)
		ret = make_server();
	else if (ia_name)
		ret = open_ia();
	if (ret == DAT_SUCCESS && pool)
		ret = make_pool();
	if (ret == DAT_SUCCESS && evd)
		ret = dat_evd_modify_upcall((DAT_EVD_HANDLE)evd,
					    DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					    DAT_UPCALL_INVOC_ANY);
	if (ret == DAT_SUCCESS && watch)
		ret = kdat_notifier_create(on_change, &left, &left.notifier);
	if (ret != DAT_SUCCESS)
		pr_err("kdapl_leaver: %#x\n", ret);
	/* EIO: this module is at fault, not what is tested. */
	return ret != DAT_SUCCESS ? -EIO : fail ? -ECANCELED : 0;
}

static void __exit leaver_exit(void)
{
}

module_init(leaver_init);
module_exit(leaver_exit);

MODULE_DESCRIPTION("A consumer that frees nothing");
MODULE_LICENSE("Dual BSD/GPL");
