// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A first kDAPL consumer: an Endpoint that listens, an Endpoint that connects to
 * it, and one message from the second to the first. Documentation/tutorial.rst
 * explains it. All of it happens, in the order in which it is written, while the
 * module is loaded:
 *
 *	insmod kdapl_hello.ko ia=rxe0/1 address=10.8.0.1
 *
 * A real consumer works in upcalls, see kdapl_echo.c; here the one thread sleeps
 * for each event, see evd_wait.h.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "evd_wait.h"

#define PORT	5300
#define SIZE	256		/* bytes of a message buffer */

static char *ia = "rxe0/1", *address = "10.8.0.1";
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "Interface Adapter: device and port");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of that adapter's network interface");

static struct hello {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_LMR_CONTEXT lmr_context;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE server, client;
	struct evd_waiter w;	/* one EVD for all events */
	char *buf;		/* the first half is received into, the other sent */
} h;

/* Wait for the next event; it has to be @number. */
static DAT_RETURN expect(DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_RETURN ret = evd_wait(&h.w, event, 10 * HZ);

	if (ret != DAT_SUCCESS || event->event_number == number)
		return ret;
	pr_err("kdapl_hello: %s in place of %s\n",
	       kdat_event_name(event->event_number), kdat_event_name(number));
	return DAT_ERROR(DAT_ABORT, DAT_NO_SUBTYPE);
}

static DAT_LMR_TRIPLET segment(unsigned int offset, unsigned int length)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)h.buf + offset,
		.segment_length = length,
		.lmr_context = h.lmr_context,
	};
}

/* Step 1: the objects that connections need. */
static DAT_RETURN make_objects(void)
{
	DAT_EVD_FLAGS flags = DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
			      DAT_EVD_CONNECTION_FLAG;
	DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_LOCAL_READ_FLAG |
				  DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = h.buf };
	DAT_LMR_HANDLE lmr;

	evd_waiter_init(&h.w);
	return dat_ia_open(ia, 8, &h.async_evd, &h.ia) ?:
	       dat_pz_create(h.ia, &h.pz) ?:
	       dat_lmr_kcreate(h.ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * SIZE,
			       h.pz, priv, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &h.lmr_context,
			       NULL, NULL, NULL) ?:
	       dat_evd_kcreate(h.ia, 16, DAT_UPCALL_NOTIFY, &h.w.upcall, flags,
			       &h.w.evd) ?:
	       dat_ep_create(h.ia, h.pz, h.w.evd, h.w.evd, h.w.evd, NULL,
			     &h.server) ?:
	       dat_ep_create(h.ia, h.pz, h.w.evd, h.w.evd, h.w.evd, NULL,
			     &h.client);
}

/* Step 2: a receive buffer has to be there before the message. */
static DAT_RETURN post_receive(void)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = h.buf };
	DAT_LMR_TRIPLET seg = segment(0, SIZE);

	return dat_ep_post_recv(h.server, 1, &seg, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* Step 3: listen, connect, accept; both sides are told. */
static DAT_RETURN connect_them(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = in_aton(address),
	};
	DAT_EVENT event;

	return dat_psp_create(h.ia, PORT, h.w.evd, DAT_PSP_CONSUMER_FLAG,
			      &h.psp) ?:
	       dat_ep_connect(h.client, (struct sockaddr *)&to, PORT,
			      5 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG) ?:
	       expect(DAT_CONNECTION_REQUEST_EVENT, &event) ?:
	       dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			     h.server, 0, NULL) ?:
	       expect(DAT_CONNECTION_EVENT_ESTABLISHED, &event) ?:
	       expect(DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

/* Step 4: one message, which completes on both sides. */
static DAT_RETURN exchange(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_DTO_COOKIE cookie = { .as_ptr = h.buf + SIZE };
	DAT_LMR_TRIPLET seg;
	DAT_EVENT event;
	DAT_RETURN ret;
	int i, len;

	len = snprintf(h.buf + SIZE, SIZE, "hello from %s", ia) + 1;
	seg = segment(SIZE, min(len, SIZE));
	ret = dat_ep_post_send(h.client, 1, &seg, cookie,
			       DAT_COMPLETION_DEFAULT_FLAG);
	for (i = 0; ret == DAT_SUCCESS && i < 2; i++) {
		ret = expect(DAT_DTO_COMPLETION_EVENT, &event);
		dto = &event.event_data.dto_completion_event_data;
		if (ret != DAT_SUCCESS)
			break;
		if (dto->status != DAT_DTO_SUCCESS)
			return DAT_ERROR(DAT_ABORT, DAT_NO_SUBTYPE);
		if (dto->operation == DAT_DTO_RECEIVE)
			pr_info("kdapl_hello: received %u bytes: \"%s\"\n",
				dto->transfered_length,
				(char *)dto->user_cookie.as_ptr);
		else
			pr_info("kdapl_hello: the Send has completed\n");
	}
	return ret;
}

static int __init hello_init(void)
{
	const char *type = "?", *subtype = "?";
	DAT_RETURN ret;

	h.buf = kzalloc(2 * SIZE, GFP_KERNEL);
	if (!h.buf)
		return -ENOMEM;
	ret = make_objects() ?: post_receive() ?: connect_them() ?: exchange();
	/* Step 5: all that was made in the IA goes with it. Only then is the memory free. */
	if (DAT_GET_TYPE(dat_ia_close(h.ia, DAT_CLOSE_ABRUPT_FLAG)) != DAT_INVALID_STATE)
		kfree(h.buf);
	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &type, &subtype);
	pr_err("kdapl_hello: %s, %s\n", type, subtype);
	return -EIO;
}
module_init(hello_init);

static void __exit hello_exit(void)
{
}
module_exit(hello_exit);
MODULE_DESCRIPTION("A first kDAPL consumer: one message");
MODULE_LICENSE("Dual BSD/GPL");
