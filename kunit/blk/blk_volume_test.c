// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko and targets that come back with another volume.
 */
#include <linux/module.h>
#include "blk_command.h"
#include "blk_listener.h"
#include "blk_serve.h"
#include "files.h"

#define GROWS		40	/* by a block each time */
#define SOME_UUID	"01234567-89ab-8def-8123-456789abcdef"

static const uuid_t some_uuid = UUID_INIT(0x01234567, 0x89ab, 0x8def, 0x81, 0x23,
					  0x45, 0x67, 0x89, 0xab, 0xcd, 0xef);

/* Return the welcome of a target that tells UUIDs, or of an older one. */
static struct kblk_welcome welcome_with(bool identity)
{
	struct kblk_welcome welcome = kdb_good_welcome();

	if (identity)
		welcome.features = cpu_to_le32(KBLK_FEATURE_IDENTITY);
	return welcome;
}

static struct kblk_identify identify_with(bool identity)
{
	struct kblk_identify identify = kdb_good_identify();

	identify.flags = 0;
	if (identity)
		export_uuid(identify.uuid, &some_uuid);
	return identify;
}

/* Serve an initiator that connects; IDENTIFY answers @identify. */
static struct kd_side *serve_identity(struct kunit *test, bool identity)
{
	struct kblk_identify identify = identify_with(identity);
	struct kblk_welcome welcome = welcome_with(identity);

	ini_attrs.give_up_ms = "600000";
	return kdb_serve_disk(test, &welcome, &identify);
}

/* Answer IDENTIFY, after which the initiator may leave. */
static void answer_identify(struct kd_side *side,
			    const struct kblk_identify *identify)
{
	struct kblk_reply reply;

	reply = kdb_good_reply(kdb_expect_request(side, 1, KBLK_OP_IDENTIFY),
			       sizeof(*identify));
	kdb_answer(side, &reply, identify, sizeof(reply) + sizeof(*identify));
}

/* Have the target go away and come back, up to IDENTIFY. */
static struct kd_side *come_back(struct kd_side *side, bool identity)
{
	struct kblk_welcome welcome = welcome_with(identity);
	struct kunit *test = side->test;

	kd_close(side);
	side = kdb_welcome_one(test, false, &welcome);
	kdb_attach(side);
	return side;
}

/* Come back with the same volume. */
static struct kd_side *come_back_same(struct kd_side *side, bool identity,
				      const struct kblk_identify *identify)
{
	struct kunit *test = side->test;

	side = come_back(side, identity);
	kdb_identify_as(side, identify);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(ini_is_connected, NULL,
					      KD_TIMEOUT_MS));
	return side;
}

/*
 * Come back with another volume, and expect that the initiator leaves without a
 * write.
 */
static struct kd_side *come_back_other(struct kd_side *side, bool identity,
				       const struct kblk_identify *identify,
				       const char *what)
{
	struct kunit *test = side->test;

	side = come_back(side, identity);
	answer_identify(side, identify);
	KUNIT_EXPECT_TRUE_MSG(test,
			      kd_wait_state(side->ep, DAT_EP_STATE_DISCONNECTED),
			      "%s is taken", what);
	KUNIT_EXPECT_FALSE(test, ini_is_connected(NULL));
	return side;
}

/*
 * A write waits while the target is away. It must not reach another volume, and
 * reaches its own when that is back.
 */
static void ini_another_uuid(struct kunit *test)
{
	struct kblk_identify other = identify_with(true);
	struct kblk_identify same = identify_with(true);
	struct kd_side *side;

	side = serve_identity(test, true);
	KUNIT_EXPECT_EQ(test, 0,
			shell("grep -qx uuid." SOME_UUID " /sys/block/kdapl0/wwid"));
	KUNIT_EXPECT_EQ(test, 0,
			shell("grep -qx " SOME_UUID " " INI_DISK "/uuid"));
	other.uuid[15] ^= 1;
	kdb_start_command(WRITE_ONE);
	side = come_back_other(side, true, &other, "another UUID");
	other = identify_with(false);
	side = come_back_other(side, false, &other, "no UUID");
	side = come_back_same(side, true, &same);
	KUNIT_EXPECT_EQ(test, kdb_serve(side, KBLK_OP_WRITE), 1);
	KUNIT_EXPECT_EQ(test, ini_status, 0);
	kdb_expect_removable(test);
}

#define QUEUE	"/sys/block/kdapl0/queue"

/* The block layer is told what transfers the volume likes, if the target says so. */
static void ini_hints(struct kunit *test)
{
	struct kblk_identify identify = kdb_good_identify();
	struct kblk_welcome welcome = kdb_good_welcome();

	ini_attrs.give_up_ms = "600000";
	welcome.features = cpu_to_le32(KBLK_FEATURE_HINTS);
	identify.io_min = cpu_to_le32(SZ_256K);
	identify.io_opt = cpu_to_le32(SZ_1M);
	kdb_serve_disk(test, &welcome, &identify);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 4096 " QUEUE "/physical_block_size"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 262144 " QUEUE "/minimum_io_size"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 1048576 " QUEUE "/optimal_io_size"));
	kdb_expect_removable(test);
}

/* An older target tells nothing but the physical block size. */
static void ini_no_hints(struct kunit *test)
{
	serve_identity(test, true);
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 4096 " QUEUE "/minimum_io_size"));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx 0 " QUEUE "/optimal_io_size"));
	kdb_expect_removable(test);
}

/*
 * The block layer was told that the disk has no cache, so it sends no flushes.
 */
static void ini_another_cache(struct kunit *test)
{
	struct kblk_identify other = identify_with(true);
	struct kd_side *side;

	side = serve_identity(test, true);
	other.flags = cpu_to_le32(KBLK_VOLUME_CACHE);
	side = come_back_other(side, true, &other, "a cache");
	other = identify_with(true);
	other.block_size = cpu_to_le32(1024);
	side = come_back_other(side, true, &other, "another block size");
	other = identify_with(true);
	other.size = cpu_to_le64(VOLUME_SIZE - SZ_4K);
	side = come_back_other(side, true, &other, "less");
	other.size = cpu_to_le64(VOLUME_SIZE + SZ_4K);
	side = come_back_same(side, true, &other);
	kdb_expect_removable(test);
}

/* A cache that the block layer was told about may be switched off, and on again. */
static void ini_cache_comes_and_goes(struct kunit *test)
{
	struct kblk_identify identify = identify_with(true);
	struct kblk_welcome welcome = welcome_with(true);
	struct kd_side *side;
	int i;

	ini_attrs.give_up_ms = "600000";
	for (i = 0; i < 3; i++) {
		identify.flags = cpu_to_le32(i == 1 ? 0 : KBLK_VOLUME_CACHE);
		if (i)
			side = come_back_same(side, true, &identify);
		else
			side = kdb_serve_disk(test, &welcome, &identify);
	}
	kdb_expect_removable(test);
}

/* An older target, whose module is then replaced by a newer one. */
static void ini_uuid_is_learnt(struct kunit *test)
{
	struct kblk_identify identify = identify_with(false);
	struct kd_side *side;

	side = serve_identity(test, false);
	KUNIT_EXPECT_NE(test, 0, shell("cat /sys/block/kdapl0/wwid"));
	side = come_back_same(side, false, &identify);
	identify = identify_with(true);
	side = come_back_same(side, true, &identify);
	identify.uuid[0] ^= 1;
	side = come_back_other(side, true, &identify, "another UUID");
	kdb_expect_removable(test);
}

static bool disk_has_grown(void *unused)
{
	return !shell("grep -qx 4096 /sys/block/kdapl0/size");
}

/* Have the disk read, and tell it the size of the volume. */
static void read_and_tell(struct kd_side *side, u64 size)
{
	const struct kblk_request *request = kdb_begin_command(side, READ_ONE);
	struct kblk_reply reply = kdb_good_reply(request, 512);
	struct kunit *test = side->test;

	reply.size = cpu_to_le64(size);
	kdb_answer(side, &reply, NULL, sizeof(reply) + 512);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_wait_command();
	KUNIT_EXPECT_EQ(test, ini_status, 0);
}

/* A reply tells that the volume has grown; the connection stays as it is. */
static void ini_volume_grows(struct kunit *test)
{
	struct kblk_identify identify = identify_with(false);
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kd_side *side;

	welcome.features = cpu_to_le32(KBLK_FEATURE_SIZE);
	side = kdb_serve_disk(test, &welcome, &identify);
	read_and_tell(side, SZ_2M);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(disk_has_grown, NULL,
					      KD_TIMEOUT_MS));
	/* What was there before stays there. */
	read_and_tell(side, SZ_512K);
	KUNIT_EXPECT_TRUE(test, disk_has_grown(NULL));
	KUNIT_EXPECT_TRUE(test, ini_is_connected(NULL));
	kdb_expect_removable(test);
}

/* The volume grows while the block layer reads the partition table of the disk. */
static void ini_volume_grows_at_once(struct kunit *test)
{
	struct kblk_identify identify = identify_with(false);
	struct kblk_welcome welcome = kdb_good_welcome();
	struct kblk_request request;
	struct kblk_reply reply;
	struct kd_side *side;
	u32 length;

	ini_attrs.timeout_ms = PATIENT;
	welcome.features = cpu_to_le32(KBLK_FEATURE_SIZE);
	side = kdb_welcome_one(test, true, &welcome);
	kdb_attach(side);
	kdb_identify_as(side, &identify);
	request = *kdb_expect_request(side, 2, KBLK_OP_READ);
	length = le32_to_cpu(request.length);
	reply = kdb_good_reply(&request, length);
	reply.size = cpu_to_le64(SZ_2M);
	memset(side->buf->va + DATA_AT, 0, length);
	kdb_answer(side, &reply, NULL, sizeof(reply) + length);
	kd_expect_dto(test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_serve(side, 0);
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(disk_has_grown, NULL,
					      KD_TIMEOUT_MS));
	kdb_expect_removable(test);
}

/* Read, and have the reply tell that the volume has @size bytes. */
static void tell_size(struct kd_side *side, u64 size)
{
	const void *request = kdb_begin_command(side, READ_ONE);
	struct kblk_reply reply = kdb_good_reply(request, 512);
	u32 at = request - side->buf->va;

	kd_recv(side, at, REQUEST_SIZE, (at - REQUEST_AT) / REQUEST_SIZE);
	reply.size = cpu_to_le64(size);
	kdb_answer(side, &reply, NULL, sizeof(reply) + 512);
	kd_expect_dto(side->test, side->req_evd, 2, DAT_DTO_SUCCESS, NULL);
	kdb_wait_command();
	KUNIT_EXPECT_EQ(side->test, ini_status, 0);
}

/* Serve a disk whose volume has grown to 2 MiB, of which the event does not get through. */
static struct listener *serve_untold(struct kunit *test, struct kd_side **side)
{
	struct kblk_identify identify = identify_with(false);
	struct kblk_welcome welcome = kdb_good_welcome();
	struct listener *listener;

	welcome.features = cpu_to_le32(KBLK_FEATURE_SIZE);
	*side = kdb_serve_disk(test, &welcome, &identify);
	listener = kdb_listener_make(test, "/dev/kdapl0");
	tell_size(*side, SZ_2M);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(kdb_listener_is_told, listener,
					      KD_TIMEOUT_MS));
	return listener;
}

static bool disk_has_grown_all(void *unused)
{
	return !shell("grep -qx 2088 /sys/block/kdapl0/size");
}

/* Return how many events this host has sent to user space. */
static u64 uevents(struct kunit *test)
{
	struct file *file = kd_filp_open("/sys/kernel/uevent_seqnum", O_RDONLY, 0);
	char text[32] = {};
	loff_t pos = 0;
	u64 n = 0;

	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_EXPECT_GT(test, kernel_read(file, text, sizeof(text) - 1, &pos), (ssize_t)0);
	kd_filp_close(file);
	KUNIT_EXPECT_EQ(test, kstrtou64(strim(text), 10, &n), 0);
	return n;
}

/*
 * The volume grows by a block with each reply. The host is told of that once a second,
 * and of the last size.
 */
static void ini_volume_grows_with_each_reply(struct kunit *test)
{
	struct kblk_identify identify = identify_with(false);
	struct kblk_welcome welcome = kdb_good_welcome();
	unsigned long since;
	struct kd_side *side;
	u64 events;
	int i;

	welcome.features = cpu_to_le32(KBLK_FEATURE_SIZE);
	side = kdb_serve_disk(test, &welcome, &identify);
	events = uevents(test);
	since = jiffies;
	for (i = 1; i <= GROWS; i++)
		tell_size(side, VOLUME_SIZE + i * SECTOR_SIZE);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(disk_has_grown_all, NULL, KD_TIMEOUT_MS));
	events = uevents(test) - events;
	since = jiffies - since;
	kunit_info(test, "%llu events within %u ms\n", events, jiffies_to_msecs(since));
	KUNIT_EXPECT_GE(test, events, 1);
	KUNIT_EXPECT_LE(test, events, 2 + since / HZ);
	kdb_expect_removable(test);
}

static bool disk_has_8m(void *unused)
{
	return !shell("grep -qx 16384 /sys/block/kdapl0/size");
}

/* The volume grows again, twice, while an event does not get through: the last size is told. */
static void ini_tells_last_size(struct kunit *test)
{
	struct kd_side *side;
	struct listener *listener = serve_untold(test, &side);

	tell_size(side, SZ_4M);
	tell_size(side, SZ_8M);
	KUNIT_EXPECT_FALSE(test, kdb_listener_is_told_more(listener));
	complete_all(&listener->listens);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(disk_has_8m, NULL, KD_TIMEOUT_MS));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(kdb_listener_is_told_more, listener,
					      KD_TIMEOUT_MS));
	kdb_listener_listens(test);
	kdb_expect_removable(test);
}

/* A disk that is removed while an event does not get through waits for that. */
static void ini_removal_waits_for_event(struct kunit *test)
{
	struct kd_side *side;
	struct listener *listener = serve_untold(test, &side);
	struct command *removal;

	removal = kdb_command_start(test, "echo 0 >" INI_DISK "/connected");
	KUNIT_EXPECT_FALSE(test, kd_wait_until(kdb_listener_is_told_more, listener,
					       10 * KD_QUIET_MS));
	KUNIT_EXPECT_EQ(test, 0, shell("test -e /sys/block/kdapl0"));
	KUNIT_EXPECT_FALSE(test, kdb_command_has_ended(removal));
	kdb_listener_listens(test);
	kdb_command_expect_success(test, removal);
	KUNIT_EXPECT_NE(test, 0, shell("test -e /sys/block/kdapl0"));
}

/* The administrator has said which one it is to be. */
static void ini_uuid_is_wanted(struct kunit *test)
{
	struct kblk_welcome welcome = welcome_with(true);
	struct kblk_identify identify = identify_with(true);
	struct kd_side *side;
	int i;

	for (i = 0; i < 2; i++) {
		ini_attrs.uuid = SOME_UUID;
		identify.uuid[0] ^= 1;
		ini_attrs.timeout_ms = PATIENT;
		side = kdb_welcome_one(test, true, &welcome);
		kdb_attach(side);
		if (i) {
			kdb_identify_as(side, &identify);
			kdb_serve(side, 0);
			KUNIT_EXPECT_EQ(test, ini_error, 0);
			kdb_expect_removable(test);
		} else {
			answer_identify(side, &identify);
			KUNIT_EXPECT_FALSE(test, ini_connect_end(test));
		}
		kd_close(side);
	}
}

/* A UUID must come with IDENTITY, and must not come without. */
static void ini_bad_uuid(struct kunit *test)
{
	struct kblk_identify identify;
	struct kblk_welcome welcome;
	struct kd_side *side;
	int i;

	for (i = 0; i < 2; i++) {
		welcome = welcome_with(i);
		identify = identify_with(!i);
		side = kdb_welcome_one(test, true, &welcome);
		kdb_attach(side);
		answer_identify(side, &identify);
		KUNIT_EXPECT_FALSE_MSG(test, ini_connect_end(test), "identity %d",
				       i);
		kd_close(side);
	}
}

/*
 * Two disks of a host are one volume, and the target cannot fence one for the
 * other: the second is refused.
 */
static void ini_old_target_has_one_path(struct kunit *test)
{
	struct kblk_identify identify = identify_with(true);
	struct kblk_welcome welcome = welcome_with(true);
	struct kd_side *side;
	char command[256];
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	u16 port;

	serve_identity(test, true);
	side = kdb_new_target(test);
	port = kd_port();
	psp = kd_psp(side, port, DAT_PSP_CONSUMER_FLAG);
	snprintf(command, sizeof(command),
		 "set -e; mkdir " INI_DISK "2; cd " INI_DISK "2;"
		 " for a in ia address subsystem client queues depth keepalive_ms;"
		 " do cat ../disk/$a >$a; done; echo %u >conn_qual;"
		 " echo 1 >connected", port);
	kdb_start_command(command);
	cr = kd_expect_cr(side);
	KD_ASSERT_OK(test, dat_psp_free(psp));
	KD_ASSERT_OK(test, dat_cr_accept(cr, side->ep, sizeof(welcome),
					 &welcome));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED,
			NULL);
	kdb_attach(side);
	answer_identify(side, &identify);
	kdb_wait_command();
	KUNIT_EXPECT_NE(test, ini_status, 0);
	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " INI_DISK "2"));
	KUNIT_EXPECT_TRUE(test, ini_is_connected(NULL));
	kdb_expect_removable(test);
}

static struct kunit_case volume_cases[] = {
	KUNIT_CASE_PARAM(ini_another_uuid, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_hints, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_no_hints, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_another_cache, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_cache_comes_and_goes, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_uuid_is_learnt, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_uuid_is_wanted, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_bad_uuid, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_volume_grows, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_volume_grows_at_once, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_volume_grows_with_each_reply, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_tells_last_size, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_removal_waits_for_event, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_old_target_has_one_path, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-volume", volume_cases, "the block device initiator and other volumes",
	 KDB_SERVE);
