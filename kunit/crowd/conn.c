// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection of a client. At first it sends one message at a time and waits
 * for the answer; then it streams requests.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <dat/kdat_linux.h>
#include "crowd.h"

int crowd_errno(const char *what, DAT_RETURN ret)
{
	const char *type = "?", *subtype = "?";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &type, &subtype);
	pr_err_ratelimited("kdapl_crowd: %s: %s %s\n", what, type, subtype);
	return -EIO;
}

static DAT_LMR_TRIPLET crowd_seg(size_t at, size_t len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = crowd.addr + at,
		.segment_length = len,
		.lmr_context = crowd.lmr_context,
	};
}

/* Post a receive with its first bytes at @header and the rest at @at. */
static DAT_RETURN crowd_post_recv(struct crowd_conn *conn, size_t header,
				  size_t at)
{
	DAT_DTO_COOKIE cookie = { .as_64 = header };
	DAT_LMR_TRIPLET segs[] = {
		crowd_seg(header, CROWD_HEADER),
		crowd_seg(at + CROWD_HEADER, CROWD_RECV_SIZE - CROWD_HEADER),
	};

	return dat_ep_post_recv(conn->ep, ARRAY_SIZE(segs), segs, cookie,
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* Return where the first bytes of the @i-th answer to a client go. */
static size_t crowd_header_at(struct crowd_conn *conn, unsigned int i)
{
	i += conn->client->number * conn->window;
	return CROWD_HEADER_AT + i % CROWD_HEADERS * CROWD_HEADER;
}

static DAT_RETURN crowd_post_send(struct crowd_conn *conn, size_t at, size_t len)
{
	DAT_LMR_TRIPLET seg = crowd_seg(at, len);
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };

	return dat_ep_post_send(conn->ep, 1, &seg, cookie,
				DAT_COMPLETION_SUPPRESS_FLAG);
}

/*
 * Return where the next request is. The one that had its room before was sent: otherwise
 * as many requests as there is room for would be outstanding.
 */
static size_t crowd_next_request(struct crowd_conn *conn)
{
	size_t at = CROWD_SEND_AT;
	u32 n;

	if (crowd.protocol->prepare) {
		n = conn->client->number * conn->window + conn->requests % conn->window;
		at = CROWD_REQUEST_AT + n * CROWD_REQUEST;
		crowd.protocol->prepare(crowd.buf + at, conn->requests);
	}
	return at;
}

/*
 * Send as many requests as window and credits allow. Called with conn->lock
 * held.
 */
static void crowd_pump(struct crowd_conn *conn)
{
	size_t len = crowd.protocol->request_len;

	while (conn->streaming && conn->outstanding < conn->window &&
	       (!crowd_polite || conn->credits)) {
		if (crowd_post_send(conn, crowd_next_request(conn), len) != DAT_SUCCESS)
			break;
		conn->requests++;
		conn->outstanding++;
		conn->credits -= !!conn->credits;
		atomic64_inc(&conn->client->sent);
	}
}

/* Stream requests from now on. */
void crowd_stream(struct crowd_conn *conn)
{
	unsigned int i;

	for (i = 0; i < conn->window; i++)
		crowd_post_recv(conn, crowd_header_at(conn, i), CROWD_RECV_AT);
	crowd_note(CROWD_CONNECTED, conn->client->number);
	spin_lock_bh(&conn->lock);
	conn->streaming = true;
	if (!crowd_idle)
		crowd_pump(conn);
	spin_unlock_bh(&conn->lock);
}

static void crowd_received(struct crowd_conn *conn, size_t header)
{
	const void *message = crowd.buf + header;
	bool good = crowd.protocol->good(message);
	unsigned int credits;

	if (!conn->streaming) {
		complete(&conn->answer);
		return;
	}
	credits = crowd.protocol->credits(message);
	if (crowd_post_recv(conn, header, CROWD_RECV_AT) != DAT_SUCCESS)
		return;
	spin_lock_bh(&conn->lock);
	conn->outstanding--;
	conn->credits += credits;
	atomic64_inc(good ? &conn->client->answered : &conn->client->errors);
	crowd_pump(conn);
	spin_unlock_bh(&conn->lock);
}

static void crowd_dto_upcall(DAT_PVOID data, const DAT_EVENT *event,
			     DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto =
		&event->event_data.dto_completion_event_data;

	/* Failures are reported by the connection event. */
	if (dto->status == DAT_DTO_SUCCESS && dto->operation == DAT_DTO_RECEIVE)
		crowd_received(data, dto->user_cookie.as_64);
}

static void crowd_conn_upcall(DAT_PVOID data, const DAT_EVENT *event,
			      DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *ced =
		&event->event_data.connect_event_data;
	struct crowd_conn *conn = data;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		memcpy(conn->welcome, ced->private_data,
		       min_t(size_t, ced->private_data_size,
			     sizeof(conn->welcome)));
		WRITE_ONCE(conn->up, true);
	} else {
		conn->event = event->event_number;
		if (conn->streaming)
			crowd_note(CROWD_CUT, conn->client->number);
		WRITE_ONCE(conn->ended, true);
		complete(&conn->answer);
	}
	complete(&conn->changed);
}

static int crowd_make(struct crowd_conn *conn)
{
	DAT_UPCALL_OBJECT dto = { conn, crowd_dto_upcall };
	DAT_UPCALL_OBJECT cm = { conn, crowd_conn_upcall };
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = CROWD_RECV_SIZE,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = conn->window,
		.max_request_dtos = 2 * conn->window,
		.max_recv_iov = 2,
		.max_request_iov = 1,
		.max_rdma_read_in = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_RETURN ret;

	ret = dat_evd_kcreate(crowd.ia, 3 * conn->window,
			      DAT_UPCALL_SINGLE_INSTANCE, &dto,
			      DAT_EVD_DTO_FLAG, &conn->dto_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(crowd.ia, 4, DAT_UPCALL_SINGLE_INSTANCE,
				      &cm, DAT_EVD_CONNECTION_FLAG,
				      &conn->conn_evd);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(crowd.ia, crowd.pz, conn->dto_evd,
				    conn->dto_evd, conn->conn_evd, &attr,
				    &conn->ep);
	return crowd_errno("making an Endpoint", ret);
}

static int crowd_dial(struct crowd_conn *conn, const void *hello, size_t len)
{
	DAT_RETURN ret;

	ret = dat_ep_connect(conn->ep, (struct sockaddr *)&crowd.target,
			     crowd_port, jiffies_to_usecs(CROWD_TIMEOUT), len,
			     (DAT_PVOID)hello, DAT_QOS_BEST_EFFORT,
			     DAT_CONNECT_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS)
		return crowd_errno("dat_ep_connect", ret);
	conn->started = true;
	wait_for_completion(&conn->changed);
	if (READ_ONCE(conn->up) && !READ_ONCE(conn->ended))
		return 0;
	if (conn->event == DAT_CONNECTION_EVENT_UNREACHABLE)
		return -EHOSTUNREACH;
	pr_err_ratelimited("kdapl_crowd: client %u is not connected: %s\n",
			   conn->client->number, kdat_event_name(conn->event));
	return -ECONNREFUSED;
}

static struct crowd_conn *crowd_try(struct crowd_client *client, unsigned int window,
				    const void *hello, size_t len)
{
	struct crowd_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int err;

	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->client = client;
	conn->window = window;
	spin_lock_init(&conn->lock);
	init_completion(&conn->changed);
	init_completion(&conn->answer);
	err = crowd_make(conn) ?: crowd_dial(conn, hello, len);
	if (!err)
		return conn;
	crowd_disconnect(conn);
	return ERR_PTR(err);
}

/*
 * Connect to the target, with @hello as private data. siw has the ports of TCP, where rdma_cm
 * does not know which are in use: an attempt that gets one of those is unreachable without
 * having asked the target, and the next one gets another port.
 */
struct crowd_conn *crowd_connect(struct crowd_client *client,
				 unsigned int window, const void *hello,
				 size_t len)
{
	unsigned int tries = CROWD_TRIES;
	struct crowd_conn *conn;

	do
		conn = crowd_try(client, window, hello, len);
	while (conn == ERR_PTR(-EHOSTUNREACH) && --tries);
	return conn;
}

void crowd_disconnect(struct crowd_conn *conn)
{
	if (IS_ERR_OR_NULL(conn))
		return;
	spin_lock_bh(&conn->lock);
	conn->streaming = false;
	spin_unlock_bh(&conn->lock);
	if (conn->ep) {
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
		dat_ep_free(conn->ep);
	}
	/* Freeing an EVD waits for its upcalls. */
	if (conn->dto_evd)
		dat_evd_free(conn->dto_evd);
	if (conn->conn_evd)
		dat_evd_free(conn->conn_evd);
	kfree(conn);
}

/* Send the message at CROWD_HELLO_AT; the answer is at CROWD_ANSWER_AT. */
int crowd_ask(struct crowd_conn *conn, size_t len)
{
	reinit_completion(&conn->answer);
	if (READ_ONCE(conn->ended) ||
	    crowd_post_recv(conn, CROWD_ANSWER_AT, CROWD_ANSWER_AT) !=
	    DAT_SUCCESS ||
	    crowd_post_send(conn, CROWD_HELLO_AT, len) != DAT_SUCCESS ||
	    !wait_for_completion_timeout(&conn->answer, CROWD_TIMEOUT) ||
	    READ_ONCE(conn->ended))
		return -ECONNRESET;
	return 0;
}
