// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: disks of clients whose connections come and go, through one port or
 * two, and what becomes of writes when a flush fails.
 */
#include <linux/pagemap.h>
#include "blk_backing.h"
#include "blk_target.h"
#include "files.h"

/* Connect at a port, as the disk that @hello has. */
static struct kd_side *connect_at(struct kunit *test, u16 port,
				  const struct kblk_hello *hello)
{
	struct kd_side *side = kdb_client(test);

	kdb_post_reply_buffer(side);
	KD_ASSERT_OK(test,
		     dat_ep_connect(side->ep, side->addr, port,
				    KD_TIMEOUT_MS * USEC_PER_MSEC, sizeof(*hello),
				    (void *)hello, DAT_QOS_BEST_EFFORT,
				    DAT_CONNECT_DEFAULT_FLAG));
	kdb_expect_welcome(side, DAT_CONNECTION_EVENT_ESTABLISHED);
	return side;
}

static u16 attach_again(struct kd_side *side)
{
	return kdb_attach_as(side, "somebody", "vol", 1, 0);
}

static bool is_let_in(void *data)
{
	return attach_again(data) == KBLK_OK;
}

static struct kblk_request write_request(struct kd_side *side, char with)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_WRITE;
	request.flags = KBLK_INLINED;
	memset(side->buf->va + REQUEST_AT + sizeof(request), with, 4096);
	return request;
}

static bool is_held(void *data)
{
	struct backing *backing = data;

	return atomic_read(&backing->nheld);
}

/*
 * A write is with the medium when its disk loses the connection and comes back through
 * another port. There it is let in only when the medium is through with the write, so
 * that what it writes now is not overtaken.
 */
static void blk_epochs_of_two_ports(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct backing *backing;
	struct kd_side *old, *side;

	backing = tgt_load_two_ports(test);
	old = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(old), KBLK_OK);
	request = write_request(old, 'a');
	kdb_backing_hold(backing, true);
	kdb_send_request(old, &request, sizeof(request) + 4096);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_held, backing, KD_TIMEOUT_MS));

	hello.epoch = cpu_to_le32(6);
	side = connect_at(test, TGT_OTHER_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_ERR_DRAINING);
	kdb_expect_end(old);
	KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_ERR_DRAINING);
	kdb_backing_hold(backing, false);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_let_in, side, KD_TIMEOUT_MS));
	request = write_request(side, 'b');
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(backing->data, 'b', 4096));

	/* Who is late is turned away. */
	kd_close(old);
	hello.epoch = cpu_to_le32(5);
	old = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(old), KBLK_ERR_STALE);
	/* Other disks have nothing to do with it. */
	hello = kdb_good_hello();
	kd_close(old);
	old = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(old), KBLK_OK);
	kd_close(old);
	kd_close(side);
}

/*
 * A write of one disk is with the medium when its host goes on with another
 * disk, at another port. The first one's session is fenced only when the medium
 * is through with the write, so that what is written now is not overtaken.
 */
static void blk_fence(struct kunit *test)
{
	struct kd_side *old, *side, *another;
	struct kblk_hello hello[3];
	struct kblk_request request;
	struct backing *backing;
	int i;

	backing = tgt_load_two_ports(test);
	kdb_hello_features = KBLK_FEATURE_HOST;
	uuid_gen(&kdb_host);
	for (i = 0; i < 3; i++)
		hello[i] = kdb_good_hello();
	old = connect_at(test, TGT_PORT, &hello[0]);
	KUNIT_EXPECT_EQ(test, attach_again(old), KBLK_OK);
	another = connect_at(test, TGT_PORT, &hello[2]);
	KUNIT_EXPECT_EQ(test, attach_again(another), KBLK_OK);
	side = connect_at(test, TGT_OTHER_PORT, &hello[1]);
	KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_OK);
	request = write_request(old, 'a');
	kdb_backing_hold(backing, true);
	kdb_send_request(old, &request, sizeof(request) + 4096);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_held, backing, KD_TIMEOUT_MS));

	/* A later epoch is none of its business. */
	hello[0].epoch = cpu_to_le32(4);
	KUNIT_EXPECT_EQ(test, kdb_fence(side, 0, &hello[0]), KBLK_OK);
	hello[0].epoch = cpu_to_le32(6);
	KUNIT_EXPECT_EQ(test, kdb_fence(side, 0, &hello[0]), KBLK_ERR_DRAINING);
	kdb_expect_end(old);
	KUNIT_EXPECT_EQ(test, kdb_fence(side, 0, &hello[0]), KBLK_ERR_DRAINING);
	kdb_backing_hold(backing, false);
	kdb_expect_fenced(side, 0, &hello[0]);
	request = write_request(side, 'b');
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_NULL(test, memchr_inv(backing->data, 'b', 4096));

	KUNIT_EXPECT_EQ(test, kdb_fence(side, 0, &hello[1]), KBLK_ERR_INVALID);
	request = write_request(another, 'c');
	KUNIT_EXPECT_EQ(test, kdb_ask(another, &request), KBLK_OK);
	kd_close(old);
	kd_close(side);
	kd_close(another);
}

/*
 * A host is told with the feature and only then, and without it there are no
 * fences.
 */
static void blk_feature_host(struct kunit *test)
{
	struct kblk_hello hello;
	struct kd_side *side;
	int i;

	tgt_load(test);
	for (i = 0; i < 2; i++) {
		kdb_hello_features = i ? KBLK_FEATURE_HOST : 0;
		hello = kdb_good_hello();
		side = kdb_welcome_client(test, &hello);
		KUNIT_EXPECT_EQ(test, kdb_granted, kdb_hello_features);
		kdb_host = uuid_null;
		if (!i)
			uuid_gen(&kdb_host);
		KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_ERR_INVALID);
		if (i)
			uuid_gen(&kdb_host);
		else
			kdb_host = uuid_null;
		KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_OK);
		hello = kdb_good_hello();
		KUNIT_EXPECT_EQ(test, kdb_fence(side, 0, &hello),
				i ? KBLK_OK : KBLK_ERR_UNSUPPORTED);
		kd_close(side);
	}
	kdb_hello_features = 0;
	kdb_host = uuid_null;
	kdb_expect_serving(test);
}

static u16 flush(struct kd_side *side)
{
	struct kblk_request request = kdb_good_request(side);

	request.opcode = KBLK_OP_FLUSH;
	request.length = 0;
	return kdb_ask(side, &request);
}

static u64 instance_of(struct kd_side *side)
{
	return le64_to_cpu(kdb_ask_identify(side)->instance);
}

/*
 * A flush fails once. All who have written something that it might have been for are
 * told, however often they ask, and who comes later sees that it is another instance.
 */
static void blk_flush_fails(struct kunit *test)
{
	struct kd_side *side[3], *other;
	struct kblk_request request;
	struct kblk_hello hello[3];
	struct backing *backing;
	u64 instance;
	int i;

	backing = tgt_load_two_ports(test);
	for (i = 0; i < 3; i++) {
		hello[i] = kdb_good_hello();
		side[i] = connect_at(test, i == 1 ? TGT_OTHER_PORT : TGT_PORT,
				     &hello[i]);
		KUNIT_EXPECT_EQ(test, attach_again(side[i]), KBLK_OK);
		request = write_request(side[i], 'a' + i);
		KUNIT_EXPECT_EQ(test, kdb_ask(side[i], &request), KBLK_OK);
		KUNIT_EXPECT_EQ(test, flush(side[i]), KBLK_OK);
	}
	instance = instance_of(side[0]);
	for (i = 0; i < 2; i++) {
		request = write_request(side[i], 'x');
		KUNIT_EXPECT_EQ(test, kdb_ask(side[i], &request), KBLK_OK);
	}
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_EQ(test, flush(side[0]), KBLK_ERR_IO);
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_EQ(test, flush(side[0]), KBLK_ERR_IO);
	KUNIT_EXPECT_EQ(test, flush(side[1]), KBLK_ERR_IO);
	KUNIT_EXPECT_EQ(test, flush(side[1]), KBLK_ERR_IO);
	/* It had flushed what it wrote. */
	KUNIT_EXPECT_EQ(test, flush(side[2]), KBLK_OK);
	/* Another queue of the same disk is told as well. */
	other = connect_at(test, TGT_OTHER_PORT, &hello[1]);
	KUNIT_EXPECT_EQ(test, attach_again(other), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(other), KBLK_ERR_IO);
	KUNIT_EXPECT_NE(test, instance_of(other), instance);
	/* Who was there then, and comes back, is told by the instance. */
	kd_close(other);
	for (i = 0; i < 3; i++)
		kd_close(side[i]);
	hello[1].epoch = cpu_to_le32(6);
	/* At a port where it was not. */
	other = connect_at(test, TGT_PORT, &hello[1]);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_let_in, other, KD_TIMEOUT_MS));
	KUNIT_EXPECT_NE(test, instance_of(other), instance);
	KUNIT_EXPECT_EQ(test, flush(other), KBLK_OK);
	kd_close(other);
}

/* Until it has flushed, a disk that comes back may have lost what it wrote before. */
static void blk_flush_fails_after_attach(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct backing *backing;
	struct kd_side *side, *other;

	backing = tgt_load_two_ports(test);
	side = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(side), KBLK_OK);
	other = kdb_connected_client(test);
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_EQ(test, flush(other), KBLK_ERR_IO);
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_EQ(test, flush(side), KBLK_ERR_IO);
	kd_close(side);
	kd_close(other);
}

/*
 * What a host writes through one disk it may flush through another, also when
 * the first one is gone. A host that has flushed is not told.
 */
static void blk_flush_fails_for_the_host(struct kunit *test)
{
	struct kd_side *side[3];
	struct kblk_request request;
	struct kblk_hello hello[3];
	struct backing *backing;
	uuid_t hosts[2];
	int i;

	backing = tgt_load_two_ports(test);
	kdb_hello_features = KBLK_FEATURE_HOST;
	uuid_gen(&hosts[0]);
	uuid_gen(&hosts[1]);
	for (i = 0; i < 3; i++) {
		kdb_host = hosts[i / 2];
		hello[i] = kdb_good_hello();
		side[i] = connect_at(test, i == 1 ? TGT_OTHER_PORT : TGT_PORT,
				     &hello[i]);
		KUNIT_EXPECT_EQ(test, attach_again(side[i]), KBLK_OK);
	}
	/* Both disks of the host count as flushed. */
	request = write_request(side[1], 'x');
	KUNIT_EXPECT_EQ(test, kdb_ask(side[1], &request), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(side[0]), KBLK_OK);
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_EQ(test, flush(side[2]), KBLK_ERR_IO);
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_EQ(test, flush(side[0]), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(side[1]), KBLK_OK);

	request = write_request(side[0], 'y');
	KUNIT_EXPECT_EQ(test, kdb_ask(side[0], &request), KBLK_OK);
	kd_close(side[0]);
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_EQ(test, flush(side[2]), KBLK_ERR_IO);
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_EQ(test, flush(side[1]), KBLK_ERR_IO);
	/* Who comes anew was not there. */
	hello[0] = kdb_good_hello();
	kdb_host = hosts[0];
	side[0] = connect_at(test, TGT_PORT, &hello[0]);
	KUNIT_EXPECT_EQ(test, attach_again(side[0]), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(side[0]), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(side[1]), KBLK_ERR_IO);
	for (i = 0; i < 3; i++)
		kd_close(side[i]);
}

/* Wait for the reply to a request that was sent. Return the status. */
static u16 await_reply(struct kd_side *side)
{
	const struct kblk_reply *reply = side->buf->va + REPLY_AT;

	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kd_expect_dto(side->test, side->recv_evd, 1, DAT_DTO_SUCCESS, NULL);
	kdb_post_reply_buffer(side);
	return le16_to_cpu(reply->status);
}

/* Two clients of a volume in memory. */
struct two_clients {
	struct backing *backing;
	struct kd_side *side;
	struct kd_side *other;
};

static struct two_clients load_two_clients(struct kunit *test)
{
	struct two_clients two = { .backing = tgt_load_two_ports(test) };

	two.side = kdb_connected_client(test);
	two.other = kdb_connected_client(test);
	return two;
}

/*
 * The medium has a write when a flush of another client fails. The write may be
 * lost, although the client had flushed all that was replied to.
 */
static void blk_flush_fails_beside_a_write(struct kunit *test)
{
	struct two_clients two = load_two_clients(test);
	struct kblk_request request;

	KUNIT_EXPECT_EQ(test, flush(two.side), KBLK_OK);
	request = write_request(two.side, 'a');
	kdb_backing_hold(two.backing, true);
	kdb_send_request(two.side, &request, sizeof(request) + 4096);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_held, two.backing, KD_TIMEOUT_MS));
	kdb_backing_pass(two.backing);
	two.backing->flush_status = BLK_STS_IOERR;
	KUNIT_EXPECT_EQ(test, flush(two.other), KBLK_ERR_IO);
	two.backing->flush_status = BLK_STS_OK;
	kdb_backing_hold(two.backing, false);
	KUNIT_EXPECT_EQ(test, await_reply(two.side), KBLK_OK);
	KUNIT_EXPECT_EQ(test, flush(two.side), KBLK_ERR_IO);
	kd_close(two.side);
	kd_close(two.other);
}

/*
 * A medium without FUA has a write with FUA flushed, and reports a flush that
 * fails as the failure of this write. The writes of others may be lost as well.
 */
static void blk_flush_of_a_write_fails(struct kunit *test)
{
	struct two_clients two = load_two_clients(test);
	struct kblk_request request;

	kdb_backing_without_fua(two.backing);
	request = write_request(two.side, 'a');
	KUNIT_EXPECT_EQ(test, kdb_ask(two.side, &request), KBLK_OK);
	two.backing->flush_status = BLK_STS_IOERR;
	request = write_request(two.other, 'b');
	request.flags |= KBLK_FUA;
	KUNIT_EXPECT_EQ(test, kdb_ask(two.other, &request), KBLK_ERR_IO);
	two.backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_EQ(test, flush(two.side), KBLK_ERR_IO);
	kd_close(two.side);
	kd_close(two.other);
}

static bool somebody_waits(void *data)
{
	struct inode *inode = data;

	return rwsem_is_contended(&inode->i_rwsem);
}

/*
 * A file cannot be written to its medium while a write with FUA is under way, and
 * the flush of another client is told. The write may be lost all the same.
 */
static void blk_fua_fails_beside_a_flush(struct kunit *test)
{
	struct kblk_request request;
	struct kd_side *side, *other;
	struct inode *inode;
	struct file *file;

	tgt_load(test);
	side = kdb_connected_client(test);
	other = kdb_connected_client(test);
	file = kd_filp_open(TGT_FILE, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	inode = file->f_mapping->host;
	request = write_request(side, 'a');
	request.flags |= KBLK_FUA;
	inode_lock(inode);
	kdb_send_request(side, &request, sizeof(request) + 4096);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(somebody_waits, inode,
					      KD_TIMEOUT_MS));
	mapping_set_error(file->f_mapping, -EIO);
	KUNIT_EXPECT_EQ(test, flush(other), KBLK_ERR_IO);
	inode_unlock(inode);
	KUNIT_EXPECT_EQ(test, await_reply(side), KBLK_ERR_IO);
	kd_filp_close(file);
	kd_close(side);
	kd_close(other);
	/* All have been told, although the file system has not: tmpfs has nothing to flush. */
	side = kdb_connected_client(test);
	KUNIT_EXPECT_EQ(test, flush(side), KBLK_OK);
	kd_close(side);
}

/*
 * Only the first connection of a disk looks at the volume. The volume may be
 * another one by the time of a further connection, but then the first one is not
 * attached any more.
 */
static void blk_further_connection(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kd_side *first, *further;

	tgt_load(test);
	hello.queue = cpu_to_le16(1);
	further = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(further), KBLK_ERR_STALE);
	hello.queue = 0;
	first = connect_at(test, TGT_PORT, &hello);
	KUNIT_EXPECT_EQ(test, attach_again(first), KBLK_OK);
	KUNIT_EXPECT_EQ(test, attach_again(further), KBLK_OK);
	kd_close(first);
	kd_close(further);
}

/* Connect as the disk of @hello. Return the status; the connection stays. */
static u16 connect_one_more(struct kunit *test, const struct kblk_hello *hello,
			    struct kblk_welcome *welcome)
{
	struct kd_side *side = kdb_client(test);
	DAT_EVENT event;

	kdb_say_hello(side, hello, sizeof(*hello));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(side->conn_evd, &event,
					      KD_TIMEOUT_MS));
	memcpy(welcome, event.event_data.connect_event_data.private_data,
	       sizeof(*welcome));
	return le16_to_cpu(welcome->status);
}

/*
 * A disk gets as many connections as the port allows, and none of the last
 * quarter, which is for disks that have none.
 */
static void blk_connections_of_a_disk(struct kunit *test)
{
	struct kblk_hello hello[2];
	struct kblk_welcome welcome;
	int i;

	/* None of them attaches, and they stay for as long as the case lasts. */
	tgt_load_with(test, "echo 3 >max_queues; echo 8 >max_conns; echo 3600000 >attach_ms");
	for (i = 0; i < 2; i++)
		hello[i] = kdb_good_hello();
	hello[1].features = cpu_to_le32(KBLK_FEATURE_QUEUES);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, connect_one_more(test, &hello[0], &welcome),
				KBLK_HELLO_OK);
	/* This one has not asked. */
	KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome.queues), 0);
	KUNIT_EXPECT_EQ(test, connect_one_more(test, &hello[0], &welcome),
			KBLK_HELLO_BUSY);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, connect_one_more(test, &hello[1], &welcome),
				KBLK_HELLO_OK);
		KUNIT_EXPECT_EQ(test, le16_to_cpu(welcome.queues), 3);
	}
	/* There are two more of eight, and the last one is for another host. */
	hello[0] = kdb_good_hello();
	KUNIT_EXPECT_EQ(test, connect_one_more(test, &hello[0], &welcome),
			KBLK_HELLO_OK);
	KUNIT_EXPECT_EQ(test, connect_one_more(test, &hello[0], &welcome),
			KBLK_HELLO_BUSY);
}

static struct kunit_case session_cases[] = {
	KUNIT_CASE_PARAM(blk_epochs_of_two_ports, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_fence, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_feature_host, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_flush_fails, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_flush_fails_for_the_host, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_flush_fails_after_attach, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_flush_fails_beside_a_write, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_flush_of_a_write_fails, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_fua_fails_beside_a_flush, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_further_connection, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_connections_of_a_disk, kd_gen_ia),
	{}
};

/* Cases make a hello before they load the target. */
static int session_init(struct kunit *test)
{
	kdb_hello_features = 0;
	kdb_host = uuid_null;
	return 0;
}

KD_SUITE("kdapl-blk-session", session_cases,
	 "sessions of the block device target's clients", .init = session_init);
