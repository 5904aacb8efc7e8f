// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_kunit.ko: kdapl_blk_tgt.ko loaded with a volume, and a client that
 * talks to it, see blk_target.h.
 */
#include <linux/fs.h>
#include <linux/in6.h>
#include <linux/module.h>
#include "blk_backing.h"
#include "blk_target.h"
#include "files.h"

/* ---- The target ---------------------------------------------------------- */

static void make_file(struct kunit *test)
{
	char *data = kunit_kmalloc(test, SZ_64K, GFP_KERNEL);
	struct file *file;
	loff_t pos = 0;

	KUNIT_ASSERT_NOT_NULL(test, data);
	kd_fill(data, SZ_64K, FILE_SEED);
	file = kd_filp_open(TGT_FILE, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	while (pos < FILE_SIZE)
		KUNIT_EXPECT_EQ(test, kernel_write(file, data, SZ_64K, &pos),
				(ssize_t)SZ_64K);
	kd_filp_close(file);
}

/* A port that takes longer than two seconds to stop goes on in the background. */
static bool tgt_is_removed(void *unused)
{
	return !shell("rmmod kdapl_blk_tgt 2>/dev/null");
}

void tgt_unload(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ_MSG(test, 0,
			    shell("set -e; cd " TGT "; rm ports/1/subsystems/vol;"
				  "rmdir ports/1 subsystems/vol/namespaces/1;"
				  "rm -f subsystems/vol/allowed_clients/friend;"
				  "rmdir subsystems/vol clients/friend"),
			    "the target's configuration does not go");
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(tgt_is_removed, NULL, KD_TIMEOUT_MS),
			      "the target does not unload");
}
EXPORT_SYMBOL_GPL(tgt_unload);

/*
 * Load the target and export a volume. @more: further commands, run in the
 * directory of the port.
 */
void tgt_load_with(struct kunit *test, const char *more)
{
	char command[1024];

	kdb_hello_features = 0;
	kdb_host = uuid_null;
	/* scripts/guest/check puts the modules there. */
	if (shell("test -e " TGT_KO))
		kunit_skip(test, "no " TGT_KO);
	make_file(test);
	snprintf(command, sizeof(command),
		 "set -e; insmod " TGT_KO "; cd " TGT ";"
		 "mkdir clients/friend subsystems/vol ports/1;"
		 "mkdir subsystems/vol/namespaces/1;"
		 " echo 1 >subsystems/vol/allow_any_client;"
		 " cd subsystems/vol/namespaces/1; echo " TGT_FILE " >path;"
		 " echo 1 >enable; cd ../../../../ports/1; echo %s >ia;"
		 " echo %u >conn_qual; echo %u >credits; echo 2 >io_depth;"
		 " echo 2 >buffers; echo 2 >pages; echo 0 >penalty_ms;"
		 " echo 150 >srq_size;"
		 " echo 0 >srq_per_conn; echo 150 >srq_max; %s;"
		 " ln -s " TGT "/subsystems/vol subsystems/vol",
		 *(const char * const *)test->param_value, TGT_PORT,
		 TGT_CREDITS, more);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, tgt_unload,
							   test));
}
EXPORT_SYMBOL_GPL(tgt_load_with);

void tgt_load(struct kunit *test)
{
	tgt_load_with(test, "true");
}
EXPORT_SYMBOL_GPL(tgt_load);

/* Unload the target and load it again. */
void tgt_reload(struct kunit *test)
{
	kunit_release_action(test, tgt_unload, test);
	tgt_load(test);
}
EXPORT_SYMBOL_GPL(tgt_reload);

static void other_port_remove(void *data)
{
	struct kunit *test = data;

	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT "; rm ports/2/subsystems/vol;"
				       " rmdir ports/2"));
}

/* Load the target with a volume in memory that is offered at two ports. */
struct backing *tgt_load_two_ports(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);
	char command[512];

	tgt_load(test);
	snprintf(command, sizeof(command),
		 "set -e; cd " TGT_NS "; echo 0 >enable; echo " BACKING_0
		 " >path; echo 1 >enable; cd " TGT "; mkdir ports/2; cd ports/2;"
		 " echo %s >ia; echo %u >conn_qual; echo %u >credits;"
		 " echo 0 >penalty_ms; ln -s " TGT "/subsystems/vol subsystems/vol",
		 *(const char * const *)test->param_value, TGT_OTHER_PORT,
		 TGT_CREDITS);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test,
							   other_port_remove,
							   test));
	return backing;
}
EXPORT_SYMBOL_GPL(tgt_load_two_ports);

bool tgt_has_all_buffers(void *unused)
{
	/* SRQ buffers 77 max, 70 available, 70 outstanding, 7 retired */
	return !shell("set -- $(grep 'SRQ buffers' " TGT_STATS ");"
		      "[ $5 = $7 ] && [ $(($7 + $9)) = $3 ]");
}
EXPORT_SYMBOL_GPL(tgt_has_all_buffers);

bool tgt_has_cut_off(void *unused)
{
	return !shell("grep -Eq '^clients cut off +1$' " TGT_STATS);
}
EXPORT_SYMBOL_GPL(tgt_has_cut_off);

/* ---- A client ------------------------------------------------------------ */

static u64 session;

uuid_t kdb_host;
EXPORT_SYMBOL_GPL(kdb_host);

u32 kdb_credits;
EXPORT_SYMBOL_GPL(kdb_credits);
u32 kdb_granted;
EXPORT_SYMBOL_GPL(kdb_granted);

u32 kdb_hello_features;
EXPORT_SYMBOL_GPL(kdb_hello_features);

struct kblk_hello kdb_good_hello(void)
{
	return (struct kblk_hello) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.version_min = cpu_to_le16(KBLK_VERSION_MIN),
		.version_max = cpu_to_le16(KBLK_VERSION_MAX),
		.credits = cpu_to_le16(TGT_CREDITS),
		.reply_size = cpu_to_le32(sizeof(struct kblk_reply) +
					  KBLK_INLINE),
		/*
		 * Each connection has a session of its own, as if it were
		 * another disk.
		 */
		.session = cpu_to_le64(++session),
		.epoch = cpu_to_le32(5),
		.features = cpu_to_le32(kdb_hello_features),
	};
}
EXPORT_SYMBOL_GPL(kdb_good_hello);

struct kblk_request kdb_good_request(struct kd_side *side)
{
	return (struct kblk_request) {
		.magic = cpu_to_le32(KBLK_MAGIC),
		.opcode = KBLK_OP_READ,
		.id = cpu_to_le64(0x1234567890ULL),
		.length = cpu_to_le32(4096),
		.rmr_context = cpu_to_le32(side->buf->rmr_context),
		.address = cpu_to_le64((uintptr_t)side->buf->va + DATA_AT),
	};
}
EXPORT_SYMBOL_GPL(kdb_good_request);

struct kd_side *kdb_client(struct kunit *test)
{
	struct kd_side *side = kd_open_param(test);

	kd_setup(side, NULL);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_client);

/*
 * Return a client of another host, as far as the target knows: it comes from the IPv6
 * address of the device, others from the IPv4 address.
 */
struct kd_side *kdb_client_elsewhere(struct kunit *test)
{
	static struct sockaddr_in6 addr;
	struct kd_side *side;

	kd_skip_own(test, KD_NEEDS_BED);
	side = kdb_client(test);
	addr = kd_bed_v6(side->name);
	side->addr = (void *)&addr;
	return side;
}
EXPORT_SYMBOL_GPL(kdb_client_elsewhere);

void kdb_say_hello(struct kd_side *side, const void *hello, size_t len)
{
	KD_ASSERT_OK(side->test,
		     dat_ep_connect(side->ep, side->addr, TGT_PORT,
				    KD_TIMEOUT_MS * USEC_PER_MSEC, len, (void *)hello,
				    DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
}
EXPORT_SYMBOL_GPL(kdb_say_hello);

const struct kblk_welcome *
kdb_expect_welcome(struct kd_side *side, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	kd_expect_event(side->test, side->conn_evd, number, &event);
	return event.event_data.connect_event_data.private_data;
}
EXPORT_SYMBOL_GPL(kdb_expect_welcome);

void kdb_post_reply_buffer(struct kd_side *side)
{
	kd_recv(side, REPLY_AT, sizeof(struct kblk_reply) + KBLK_INLINE, 1);
}
EXPORT_SYMBOL_GPL(kdb_post_reply_buffer);

/* Connect a client, with a receive posted for its first reply. */
struct kd_side *
kdb_welcome_client(struct kunit *test, const struct kblk_hello *hello)
{
	struct kd_side *side = kdb_client(test);
	const struct kblk_welcome *welcome;

	kdb_post_reply_buffer(side);
	kdb_say_hello(side, hello, sizeof(*hello));
	welcome = kdb_expect_welcome(side, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome->version), KBLK_VERSION_MAX);
	kdb_credits = le16_to_cpu(welcome->credits);
	KUNIT_EXPECT_GE(test, kdb_credits, 1);
	KUNIT_EXPECT_LE(test, kdb_credits, TGT_CREDITS);
	kdb_granted = le32_to_cpu(welcome->features);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_welcome_client);

void kdb_send_request(struct kd_side *side, const struct kblk_request *request,
		      size_t len)
{
	memcpy(side->buf->va + REQUEST_AT, request, sizeof(*request));
	kd_send(side, REQUEST_AT, len, 2);
}
EXPORT_SYMBOL_GPL(kdb_send_request);

/*
 * Send a request, with its inline data, and wait for the reply. Return the
 * status.
 */
u16 kdb_ask(struct kd_side *side, const struct kblk_request *request)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;
	u32 length = le32_to_cpu(request->length);
	struct kunit *test = side->test;
	u32 sent = 0, inlined = 0;
	u16 status;

	if (request->flags & KBLK_INLINED &&
	    (request->opcode == KBLK_OP_WRITE ||
	     request->opcode == KBLK_OP_ATTACH ||
	     request->opcode == KBLK_OP_FENCE || request->opcode == KBLK_OP_LIST))
		sent = length;
	kdb_send_request(side, request, sizeof(*request) + sent);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->magic), KBLK_MAGIC);
	KUNIT_EXPECT_EQ(test, le64_to_cpu(reply->id), le64_to_cpu(request->id));
	/* Who has one and uses it is given another. */
	KUNIT_EXPECT_GE(test, le16_to_cpu(reply->credits), 1);
	KUNIT_EXPECT_LE(test, le16_to_cpu(reply->credits), 2);
	kdb_credits += le16_to_cpu(reply->credits) - 1;
	status = le16_to_cpu(reply->status);
	if (status == KBLK_OK && request->flags & KBLK_INLINED && !sent)
		inlined = length;
	else if (status == KBLK_OK && request->opcode == KBLK_OP_LIST)
		inlined = sizeof(struct kblk_listed);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(reply->length), inlined);
	kdb_post_reply_buffer(side);
	return status;
}
EXPORT_SYMBOL_GPL(kdb_ask);

/*
 * Have the target end the connections of the disk of @hello; @nsid: the volume, where
 * connections are shared, else 0. Return the status.
 */
u16 kdb_fence(struct kd_side *side, u32 nsid, const struct kblk_hello *hello)
{
	struct kblk_request request = kdb_good_request(side);
	struct kblk_fence fence = {
		.session = hello->session,
		.epoch = hello->epoch,
	};

	request.opcode = KBLK_OP_FENCE;
	request.flags = KBLK_INLINED;
	request.namespace = cpu_to_le32(nsid);
	request.length = cpu_to_le32(sizeof(fence));
	memcpy(side->buf->va + REQUEST_AT + sizeof(request), &fence,
	       sizeof(fence));
	return kdb_ask(side, &request);
}
EXPORT_SYMBOL_GPL(kdb_fence);

struct kdb_fencing {
	struct kd_side *side;
	u32 nsid;
	const struct kblk_hello *hello;
};

static bool kdb_is_fenced(void *data)
{
	const struct kdb_fencing *f = data;

	return kdb_fence(f->side, f->nsid, f->hello) == KBLK_OK;
}

/* Expect that kdb_fence() succeeds, now or soon. */
void kdb_expect_fenced(struct kd_side *side, u32 nsid, const struct kblk_hello *hello)
{
	struct kdb_fencing f = { side, nsid, hello };

	KUNIT_EXPECT_TRUE(side->test, kd_wait_until(kdb_is_fenced, &f, KD_TIMEOUT_MS));
}
EXPORT_SYMBOL_GPL(kdb_expect_fenced);

/* Have @side connect as the disk of @hello. Return what the target says. */
u16 kdb_connects_as(struct kd_side *side, const struct kblk_hello *hello)
{
	const struct kblk_welcome *welcome;
	DAT_EVENT event;

	kdb_post_reply_buffer(side);
	kdb_say_hello(side, hello, sizeof(*hello));
	KUNIT_ASSERT_TRUE(side->test, kd_wait_event(side->conn_evd, &event,
						    KD_TIMEOUT_MS));
	welcome = event.event_data.connect_event_data.private_data;
	KUNIT_ASSERT_NOT_NULL(side->test, welcome);
	kdb_credits = le16_to_cpu(welcome->credits);
	return le16_to_cpu(welcome->status);
}
EXPORT_SYMBOL_GPL(kdb_connects_as);

/* The same as a disk that is not known yet. */
u16 kdb_connects(struct kd_side *side)
{
	struct kblk_hello hello = kdb_good_hello();

	return kdb_connects_as(side, &hello);
}
EXPORT_SYMBOL_GPL(kdb_connects);

/* Ask for one more connection, which is @side. Return what the target says. */
u16 kdb_one_more(struct kunit *test, struct kd_side **side)
{
	*side = kdb_client(test);
	return kdb_connects(*side);
}
EXPORT_SYMBOL_GPL(kdb_one_more);

/* Have the volume identify itself. Return what it has sent. */
const struct kblk_identify *kdb_ask_identify(struct kd_side *side)
{
	struct kblk_request request = kdb_good_request(side);
	const struct kblk_identify *identify = side->buf->va + INLINE_AT;

	request.opcode = KBLK_OP_IDENTIFY;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*identify));
	KUNIT_EXPECT_EQ(side->test, kdb_ask(side, &request), KBLK_OK);
	return identify;
}
EXPORT_SYMBOL_GPL(kdb_ask_identify);

u16 kdb_attach_as(struct kd_side *side, const char *name, const char *subsystem,
		  u32 namespace, u32 keepalive_ms)
{
	struct kblk_attach *attach = side->buf->va + REQUEST_AT +
				     sizeof(struct kblk_request);
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_ATTACH;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(*attach));
	memset(attach, 0, sizeof(*attach));
	strscpy(attach->client, name, sizeof(attach->client));
	strscpy(attach->subsystem, subsystem, sizeof(attach->subsystem));
	attach->namespace = cpu_to_le32(namespace);
	attach->keepalive_ms = cpu_to_le32(keepalive_ms);
	export_uuid(attach->host, &kdb_host);
	return kdb_ask(side, &request);
}
EXPORT_SYMBOL_GPL(kdb_attach_as);

struct kd_side *kdb_connected_client(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *side = kdb_welcome_client(test, &hello);

	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "somebody", "vol", 1, 0),
			KBLK_OK);
	return side;
}
EXPORT_SYMBOL_GPL(kdb_connected_client);

void kdb_expect_end(struct kd_side *side)
{
	KUNIT_EXPECT_TRUE_MSG(side->test,
			      kd_wait_state(side->ep,
					    DAT_EP_STATE_DISCONNECTED),
			      "the connection goes on");
}
EXPORT_SYMBOL_GPL(kdb_expect_end);

void kdb_expect_serving(struct kunit *test)
{
	struct kd_side *side = kdb_connected_client(test);
	struct kblk_request request = kdb_good_request(side);

	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, 4096,
					     FILE_SEED));
	kd_close(side);
	KUNIT_EXPECT_TRUE_MSG(test, kd_wait_until(tgt_has_all_buffers, NULL,
						  KD_TIMEOUT_MS),
			      "the target has lost a receive buffer");
}
EXPORT_SYMBOL_GPL(kdb_expect_serving);
