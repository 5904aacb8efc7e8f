// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The watermarks of a Shared Receive Queue and of an Endpoint that receives from it, one
 * after the other, while the module is loaded:
 *
 *	insmod kdapl_marks.ko ia=rxe0/1 address=10.8.0.1
 *
 * A client sends, and the server does not reap: the Endpoint holds what has arrived. At
 * more than SOFT of these there is an event, at less than LOW buffers on the queue there is
 * another one, and at more than HARD the connection ends. Documentation/watermarks.rst has
 * the rules; kdapl_echo.c has a low watermark in upcalls.
 */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "evd_wait.h"

#define PORT	5301
#define SIZE	64		/* bytes of a buffer */
#define BUFS	8		/* on the queue; one more is sent */
#define LOW	4
#define SOFT	2
#define HARD	5

static char *ia = "rxe0/1", *address = "10.8.0.1";
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "Interface Adapter: device and port");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IPv4 address of that adapter's network interface");

static struct marks {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_LMR_CONTEXT lmr_context;
	DAT_SRQ_HANDLE srq;
	DAT_EVD_HANDLE recv_evd, sent_evd;	/* without upcalls */
	DAT_EP_HANDLE server, client;
	struct evd_waiter async;	/* watermarks */
	struct evd_waiter conn;		/* requests and connections */
	char *buf;
} m;

static DAT_RETURN failed(const char *what)
{
	pr_err("kdapl_marks: %s\n", what);
	return DAT_ERROR(DAT_ABORT, DAT_NO_SUBTYPE);
}

static DAT_LMR_TRIPLET segment(unsigned int i)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)m.buf + i * SIZE,
		.segment_length = SIZE,
		.lmr_context = m.lmr_context,
	};
}

static DAT_RETURN post(unsigned int i)
{
	DAT_DTO_COOKIE cookie = { .as_64 = i };
	DAT_LMR_TRIPLET seg = segment(i);

	return dat_srq_post_recv(m.srq, 1, &seg, cookie);
}

static DAT_RETURN make_queue(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = BUFS, .max_recv_iov = 1 };
	DAT_RETURN ret = dat_srq_create(m.ia, m.pz, &attr, &m.srq);
	unsigned int i;

	for (i = 0; ret == DAT_SUCCESS && i < BUFS; i++)
		ret = post(i);
	return ret ?: dat_srq_set_lw(m.srq, LOW);
}

static DAT_RETURN make_objects(void)
{
	DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_LOCAL_READ_FLAG |
				  DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	DAT_REGION_DESCRIPTION region = { .for_va = m.buf };
	DAT_LMR_HANDLE lmr;

	evd_waiter_init(&m.async);
	evd_waiter_init(&m.conn);
	return dat_ia_open(ia, 8, &m.async.evd, &m.ia) ?:
	       dat_evd_modify_upcall(m.async.evd, DAT_UPCALL_NOTIFY,
				     &m.async.upcall, DAT_UPCALL_INVOC_ANY) ?:
	       dat_pz_create(m.ia, &m.pz) ?:
	       dat_lmr_kcreate(m.ia, DAT_MEM_TYPE_VIRTUAL, region,
			       (BUFS + 1) * SIZE, m.pz, priv, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &m.lmr_context,
			       NULL, NULL, NULL) ?:
	       dat_evd_kcreate(m.ia, 16, DAT_UPCALL_NOTIFY, &m.conn.upcall,
			       DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			       &m.conn.evd) ?:
	       dat_evd_kcreate(m.ia, 2 * BUFS, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG, &m.recv_evd) ?:
	       dat_evd_kcreate(m.ia, 4 * BUFS, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG, &m.sent_evd) ?: make_queue();
}

static DAT_RETURN make_endpoints(void)
{
	DAT_EP_ATTR attr = {
		.max_message_size = SIZE,
		.max_request_dtos = 4 * BUFS,
		.max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return dat_ep_create_with_srq(m.ia, m.pz, m.recv_evd, m.sent_evd,
				      m.conn.evd, m.srq, &attr, &m.server) ?:
	       dat_ep_set_watermark(m.server, SOFT, HARD) ?:
	       dat_ep_create(m.ia, m.pz, m.recv_evd, m.sent_evd, m.conn.evd,
			     &attr, &m.client);
}

/* Wait for an event about @handle, and pass over others. */
static DAT_RETURN expect(struct evd_waiter *w, DAT_EVENT_NUMBER number,
			 DAT_HANDLE handle, DAT_EVENT *event)
{
	const DAT_EVENT_DATA *d = &event->event_data;
	DAT_HANDLE about;
	DAT_RETURN ret;

	do {
		ret = evd_wait(w, event, 10 * HZ);
		if (ret != DAT_SUCCESS) {
			pr_err("kdapl_marks: no %s\n", kdat_event_name(number));
			return ret;
		}
		about = w == &m.async ? d->asynch_error_event_data.dat_handle :
					(DAT_HANDLE)d->connect_event_data.ep_handle;
	} while (event->event_number != number || (handle && about != handle));
	return DAT_SUCCESS;
}

static DAT_RETURN connect_them(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = in_aton(address),
	};
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	return dat_psp_create(m.ia, PORT, m.conn.evd, DAT_PSP_CONSUMER_FLAG,
			      &psp) ?:
	       dat_ep_connect(m.client, (struct sockaddr *)&to, PORT,
			      5 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG) ?:
	       expect(&m.conn, DAT_CONNECTION_REQUEST_EVENT, NULL, &event) ?:
	       dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
			     m.server, 0, NULL) ?:
	       expect(&m.conn, DAT_CONNECTION_EVENT_ESTABLISHED, m.client, &event);
}

static DAT_RETURN send(unsigned int n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	DAT_LMR_TRIPLET seg = segment(BUFS);
	DAT_RETURN ret = DAT_SUCCESS;

	while (ret == DAT_SUCCESS && n--)
		ret = dat_ep_post_send(m.client, 1, &seg, cookie,
				       DAT_COMPLETION_DEFAULT_FLAG);
	return ret;
}

static DAT_RETURN show(const char *what)
{
	DAT_COUNT held, span;
	DAT_SRQ_PARAM srq;
	DAT_RETURN ret;

	ret = dat_ep_recv_query(m.server, &held, &span) ?:
	      dat_srq_query(m.srq, DAT_SRQ_FIELD_ALL, &srq);
	if (ret == DAT_SUCCESS)
		pr_info("kdapl_marks: %s: %d held, %d available\n", what, held,
			srq.available_dto_count);
	return ret;
}

/* Reap what is held, give the buffers back, and set the marks, which have fired, anew. */
static DAT_RETURN catch_up(void)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EVENT event;

	while (ret == DAT_SUCCESS &&
	       dat_evd_dequeue(m.recv_evd, &event) == DAT_SUCCESS)
		ret = post(event.event_data.dto_completion_event_data
			   .user_cookie.as_64);
	return ret ?: dat_ep_set_watermark(m.server, SOFT, HARD) ?:
	       dat_srq_set_lw(m.srq, LOW) ?: show("caught up");
}

static DAT_RETURN cross_marks(void)
{
	DAT_BOOLEAN fired = DAT_FALSE;
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = send(SOFT + 1) ?:
	      expect(&m.async, DAT_ASYNC_EP_SOFT_HIGH_WATERMARK, m.server, &event) ?:
	      show("above the soft high watermark") ?:
	      send(HARD - SOFT - 1) ?:
	      expect(&m.async, DAT_ASYNC_SRQ_LOW_WATERMARK, m.srq, &event) ?:
	      show("below the low watermark") ?: catch_up() ?: send(HARD + 1) ?:
	      expect(&m.conn, DAT_CONNECTION_EVENT_BROKEN, m.server, &event) ?:
	      kdat_ep_query_hard_hw(m.server, &fired);
	if (ret != DAT_SUCCESS)
		return ret;
	if (fired != DAT_TRUE)
		return failed("the connection has ended for another reason");
	return show("ended by the hard high watermark");
}

static int __init marks_init(void)
{
	const char *type = "?", *subtype = "?";
	DAT_RETURN ret;

	m.buf = kzalloc((BUFS + 1) * SIZE, GFP_KERNEL);
	if (!m.buf)
		return -ENOMEM;
	ret = make_objects() ?: make_endpoints() ?: connect_them() ?: cross_marks();
	/* Refused if a driver does not end a connection: then the memory is not free. */
	if (DAT_GET_TYPE(dat_ia_close(m.ia, DAT_CLOSE_ABRUPT_FLAG)) != DAT_INVALID_STATE)
		kfree(m.buf);
	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &type, &subtype);
	pr_err("kdapl_marks: %s, %s\n", type, subtype);
	return -EIO;
}
module_init(marks_init);

static void __exit marks_exit(void)
{
}
module_exit(marks_exit);
MODULE_DESCRIPTION("The watermarks of a Shared Receive Queue, crossed one by one");
MODULE_LICENSE("Dual BSD/GPL");
