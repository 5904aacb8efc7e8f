// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk_tgt.ko: the UUIDs of volumes, and the instances that say when
 * writes may be lost.
 */
#include "blk_backing.h"
#include "blk_target.h"
#include "files.h"

#define OTHER_NS	TGT "/subsystems/vol/namespaces/2"
#define OTHER_FILE	"/tmp/kdapl_blk_other"
#define SOME_UUID	"01234567-89ab-8def-8123-456789abcdef"
#define OTHER_UUID	"01234567-89ab-8def-8123-000000000000"
#define NIL_UUID	"00000000-0000-0000-0000-000000000000"

/*
 * Change the volume by @commands, which run in its directory while it is
 * disabled.
 */
static int change_volume(const char *commands)
{
	char command[512];

	snprintf(command, sizeof(command), "set -e; cd " TGT_NS
		 "; echo 0 >enable; %s; echo 1 >enable", commands);
	return shell(command);
}

/* Return what IDENTIFY tells a client that uses @features. */
static struct kblk_identify identify_with(struct kunit *test, u32 features)
{
	struct kblk_request request;
	struct kblk_identify found;
	struct kd_side *side;

	kdb_hello_features = features;
	side = kdb_connected_client(test);
	request = kdb_good_request(side);
	request.opcode = KBLK_OP_IDENTIFY;
	request.flags = KBLK_INLINED;
	request.length = cpu_to_le32(sizeof(found));
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	memcpy(&found, side->buf->va + INLINE_AT, sizeof(found));
	kd_close(side);
	kdb_hello_features = 0;
	return found;
}

/* The same. @identity: the client asks for the UUID; older clients do not. */
static struct kblk_identify identify(struct kunit *test, bool identity)
{
	return identify_with(test, identity ? KBLK_FEATURE_IDENTITY : 0);
}

static uuid_t uuid_now(struct kunit *test)
{
	struct kblk_identify found = identify(test, true);
	uuid_t uuid;

	import_uuid(&uuid, found.uuid);
	KUNIT_EXPECT_FALSE(test, uuid_is_null(&uuid));
	return uuid;
}

/*
 * The feature is used if the client asks for it, and only then is there a UUID.
 */
static void blk_feature_identity(struct kunit *test)
{
	struct kblk_hello hello;
	struct kblk_identify old;
	struct kd_side *side;
	int i;

	tgt_load(test);
	for (i = 0; i < 2; i++) {
		hello = kdb_good_hello();
		hello.features = cpu_to_le32(i ? KBLK_FEATURE_IDENTITY : 0);
		side = kdb_welcome_client(test, &hello);
		KUNIT_EXPECT_EQ(test, kdb_granted, i ? KBLK_FEATURE_IDENTITY : 0);
		kd_close(side);
	}
	uuid_now(test);
	/* An older initiator refuses anything but zeroes here. */
	old = identify(test, false);
	KUNIT_EXPECT_NULL(test, memchr_inv(old.uuid, 0, sizeof(old) -
					   offsetof(struct kblk_identify, uuid)));
	kdb_expect_serving(test);
}

/* What transfers a volume likes is told to who asks, if it is something that can be meant. */
static void blk_feature_hints(struct kunit *test)
{
	static const struct {
		u32 io_min, io_opt, told_min, told_opt;
	} cases[] = {
		{ SZ_256K, SZ_1M, SZ_256K, SZ_1M },
		/* Three disks with data. */
		{ SZ_64K, 3 * SZ_64K, SZ_64K, 3 * SZ_64K },
		{ SZ_4K, 0, SZ_4K, 0 },
		/* Too long, or no blocks: nothing is known. */
		{ SZ_64K, SZ_2G, SZ_64K, 0 },
		{ SZ_2G, 0, SZ_4K, 0 },
	};
	struct backing *backing = kdb_backing_make(test, 0);
	struct kblk_identify found;
	unsigned int i;

	tgt_load(test);
	found = identify_with(test, KBLK_FEATURE_HINTS);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(found.io_min), PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(found.io_opt), 0);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_0 " >path"));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		kdb_backing_stripe(backing, cases[i].io_min, cases[i].io_opt);
		found = identify_with(test, KBLK_FEATURE_HINTS);
		KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(found.io_min), cases[i].told_min, "%u", i);
		KUNIT_EXPECT_EQ_MSG(test, le32_to_cpu(found.io_opt), cases[i].told_opt, "%u", i);
	}
	kdb_backing_stripe(backing, SZ_256K, SZ_1M);
	found = identify_with(test, 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(found.io_min), 0);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(found.io_opt), 0);
}

/* The UUID is that of the file which is served, whatever its name and size. */
static void blk_uuid_of_the_file(struct kunit *test)
{
	uuid_t uuid, other, again;

	tgt_load(test);
	uuid = uuid_now(test);
	KUNIT_ASSERT_EQ(test, 0, shell("cp " TGT_FILE " " OTHER_FILE));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " OTHER_FILE " >path"));
	other = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &other));
	/* The files have changed names. */
	KUNIT_ASSERT_EQ(test, 0,
			change_volume("mv " TGT_FILE " " TGT_FILE ".was;"
				      " mv " OTHER_FILE " " TGT_FILE ";"
				      " mv " TGT_FILE ".was " OTHER_FILE));
	again = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&uuid, &again));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
	again = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&other, &again));
	KUNIT_ASSERT_EQ(test, 0, shell("rm " OTHER_FILE));
	kdb_expect_serving(test);
}

/* The UUID of a disk is the same under any path. */
static void blk_uuid_of_the_disk(struct kunit *test)
{
	uuid_t uuid, again;

	kdb_backing_make(test, 0);
	kdb_backing_make(test, 1);
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_0 " >path"));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS "; grep -q . uuid && cmp uuid backing_uuid"));
	uuid = uuid_now(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_1 " >path"));
	again = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &again));
	KUNIT_ASSERT_EQ(test, 0,
			change_volume("ln -sf " BACKING_0 " " OTHER_FILE ";"
				      " echo " OTHER_FILE " >path"));
	again = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&uuid, &again));
	KUNIT_EXPECT_EQ(test, 0, shell("rm " OTHER_FILE));
}

/*
 * A mapped device tells the identifier of the disk that it is mapped to, as does
 * another one on the same disk. It is not theirs.
 */
static void blk_uuid_of_a_mapped_device(struct kunit *test)
{
	uuid_t uuid, again;

	kdb_backing_make(test, 2);
	kdb_backing_make(test, 3);
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_2 " >path"));
	uuid = uuid_now(test);
	KUNIT_EXPECT_EQ(test, 0, shell("test -z \"$(cat " TGT_NS
				       "/backing_uuid)\""));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_3 " >path"));
	again = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &again));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
}

/*
 * Initiators take what has the same UUID for the same volume, so two volumes do
 * not have the same, whatever the administrator says.
 */
static void blk_uuid_is_of_one_volume(struct kunit *test)
{
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " SOME_UUID " >uuid"));
	KUNIT_ASSERT_EQ(test, 0,
			shell("cp " TGT_FILE " " OTHER_FILE "; mkdir " OTHER_NS
			      "; cd " OTHER_NS "; echo " OTHER_FILE " >path;"
			      " echo " SOME_UUID " >uuid"));
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" OTHER_NS "/enable"));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " OTHER_NS "; echo " OTHER_UUID
				       " >uuid; echo 1 >enable"));
	KUNIT_EXPECT_EQ(test, 0, shell("rmdir " OTHER_NS "; rm " OTHER_FILE));
	kdb_expect_serving(test);
}

/* A loop device has no identifier: another one has another UUID. */
static void blk_uuid_of_the_boot(struct kunit *test)
{
	uuid_t uuid, again;

	tgt_load(test);
	if (shell("cp " TGT_FILE " " OTHER_FILE "; mknod /tmp/loop b 7 7;"
		  " losetup /tmp/loop " OTHER_FILE))
		kunit_skip(test, "no loop device");
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo /tmp/loop >path"));
	KUNIT_EXPECT_EQ(test, 0, shell("test -z \"$(cat " TGT_NS
				       "/backing_uuid)\""));
	uuid = uuid_now(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("true"));
	again = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&uuid, &again));
	KUNIT_ASSERT_EQ(test, 0, change_volume("losetup -d /tmp/loop;"
					       " losetup /tmp/loop " OTHER_FILE));
	again = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &again));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo " TGT_FILE " >path;"
					       " losetup -d /tmp/loop;"
					       " rm /tmp/loop " OTHER_FILE));
}

#define MBR_AT(at)	" dd of=" OTHER_FILE " bs=1 seek=" at " conv=notrunc 2>/dev/null;"

/* A disk with an MBR of one partition, and a copy of it. */
#define MBR_DISK								\
	"set -e; cp " TGT_FILE " " OTHER_FILE ";"				\
	" printf 'abcd\\0\\0\\0\\0\\0\\0\\203\\0\\0\\0\\100\\0\\0\\0\\0\\4\\0\\0' |"	\
	MBR_AT("440") " head -c 48 /dev/zero |" MBR_AT("462")			\
	" printf '\\125\\252' |" MBR_AT("510")				\
	" cp " OTHER_FILE " /tmp/copy; mknod /tmp/loop b 7 7"

/* The node of the partition, which has another number each time. */
#define MBR_PARTITION								\
	" rm -f /tmp/part; IFS=: read a b </sys/block/loop7/loop7p1/dev && mknod /tmp/part b $a $b"

/*
 * A partition of an MBR has 32 bits of its disk and a number for a UUID. Copies of the
 * disk have the same, so that this identifies nothing.
 */
static void blk_uuid_of_a_partition(struct kunit *test)
{
	uuid_t uuid, again;

	tgt_load(test);
	if (shell(MBR_DISK) || shell("losetup -P /tmp/loop " OTHER_FILE))
		kunit_skip(test, "no loop device");
	KUNIT_ASSERT_EQ(test, 0, shell(MBR_PARTITION));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo /tmp/part >path"));
	KUNIT_EXPECT_EQ(test, 0, shell("test -z \"$(cat " TGT_NS "/backing_uuid)\""));
	uuid = uuid_now(test);
	KUNIT_ASSERT_EQ(test, 0,
			change_volume("losetup -d /tmp/loop; losetup -P /tmp/loop /tmp/copy;"
				      MBR_PARTITION));
	again = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &again));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo " TGT_FILE " >path; losetup -d /tmp/loop"));
	KUNIT_EXPECT_EQ(test, 0, shell("rm /tmp/loop /tmp/part /tmp/copy " OTHER_FILE));
}

/* The administrator can set a UUID, which is valid for one path. */
static void blk_uuid_is_set(struct kunit *test)
{
	uuid_t uuid, set;

	tgt_load(test);
	uuid_parse(SOME_UUID, &set);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " SOME_UUID " >uuid"));
	uuid = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&uuid, &set));
	KUNIT_EXPECT_EQ(test, 0, shell("grep -qx " SOME_UUID " " TGT_NS "/uuid"));
	/*
	 * The UUID cannot be set while the volume is enabled, nor to anything
	 * else than a UUID.
	 */
	KUNIT_EXPECT_NE(test, 0, shell("echo " OTHER_UUID " >" TGT_NS "/uuid"));
	KUNIT_EXPECT_NE(test, 0, change_volume("echo nonsense >uuid"));
	KUNIT_EXPECT_NE(test, 0, change_volume("echo " SOME_UUID "0 >uuid"));
	KUNIT_EXPECT_NE(test, 0, change_volume("echo " NIL_UUID " >uuid"));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
	uuid = uuid_now(test);
	KUNIT_EXPECT_TRUE(test, uuid_equal(&uuid, &set));
	KUNIT_ASSERT_EQ(test, 0, change_volume("cp " TGT_FILE " " OTHER_FILE ";"
					       " echo " OTHER_FILE " >path"));
	uuid = uuid_now(test);
	KUNIT_EXPECT_FALSE(test, uuid_equal(&uuid, &set));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo " TGT_FILE " >path;"
					       " rm " OTHER_FILE));
}

/* The path of the volume leads to another file than before. */
static void blk_backing_has_changed(struct kunit *test)
{
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0,
			change_volume("echo " SOME_UUID " >uuid;"
				      " cat backing_uuid >/tmp/is;"
				      " cat /tmp/is >backing_uuid; rm /tmp/is"));
	KUNIT_EXPECT_EQ(test, 0,
			shell("cd " TGT_NS "; echo 0 >enable;"
			      " mv " TGT_FILE " " OTHER_FILE ";"
			      " cp " OTHER_FILE " " TGT_FILE));
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" TGT_NS "/enable"));
	KUNIT_EXPECT_EQ(test, 0, shell("mv " OTHER_FILE " " TGT_FILE ";"
				       " echo 1 >" TGT_NS "/enable"));
	kdb_expect_serving(test);
}

/* Write to a file what is expected to fail with EINVAL, not to hang. */
#define REFUSES_ONE(file)							\
	"echo 1 | timeout 10 dd of=" file " conv=notrunc 2>&1 | grep -q 'Invalid argument'"

#define IS_EMPTY(file)	"test -z \"$(timeout 10 cat " file " || echo hangs)\""

/* What would wait in open() for somebody else is no backing, and has no UUID. */
static void blk_backing_is_a_fifo(struct kunit *test)
{
	int i;

	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("mkfifo " OTHER_FILE "; cd " TGT_NS
				       "; echo 0 >enable; echo " OTHER_FILE " >path"));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS ";" IS_EMPTY("uuid")
					       "&&" IS_EMPTY("backing_uuid")));
		KUNIT_EXPECT_EQ(test, 0, shell("cd " TGT_NS ";" REFUSES_ONE("enable")));
		KUNIT_ASSERT_EQ(test, 0, shell("echo 1 >" TGT_NS "/read_only"));
	}
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo 0 >read_only;"
					       " echo " TGT_FILE " >path"));
	KUNIT_EXPECT_EQ(test, 0, shell("rm " OTHER_FILE));
	kdb_expect_serving(test);
}

static u64 instance_now(struct kunit *test)
{
	return le64_to_cpu(identify(test, false).instance);
}

/*
 * Disabling a volume flushes it. Writes may be lost only if that fails, and
 * only then is the volume another instance, whatever instance was saved before.
 */
static void blk_disabling_flushes(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);
	u64 instance;
	int flushes;

	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " BACKING_0 " >path"));
	instance = instance_now(test);
	flushes = atomic_read(&backing->flushes);
	KUNIT_ASSERT_EQ(test, 0, change_volume("true"));
	KUNIT_EXPECT_GT(test, atomic_read(&backing->flushes), flushes);
	KUNIT_EXPECT_EQ(test, instance_now(test), instance);
	backing->flush_status = BLK_STS_IOERR;
	KUNIT_ASSERT_EQ(test, 0, change_volume("true"));
	backing->flush_status = BLK_STS_OK;
	KUNIT_EXPECT_NE(test, instance_now(test), instance);
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo 12345 >instance"));
	KUNIT_EXPECT_EQ(test, instance_now(test), 12345);
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" TGT_NS "/instance"));
}

/* A volume that is written to belongs to one alone, and several may read another. */
static void blk_volume_is_claimed(struct kunit *test)
{
	struct file *file;

	kdb_backing_make(test, 0);
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " OTHER_NS "; cd " OTHER_NS
				       "; echo " TGT_FILE " >path"));
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" OTHER_NS "/enable"));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo 1 >read_only"));
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" OTHER_NS "/enable"));
	KUNIT_EXPECT_EQ(test, 0, shell("cd " OTHER_NS "; echo 1 >read_only;"
				       " echo 1 >enable"));
	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " OTHER_NS));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo 0 >read_only;"
					       " echo " BACKING_0 " >path"));
	file = kd_filp_open(BACKING_0, O_RDWR | O_EXCL, 0);
	KUNIT_EXPECT_TRUE(test, IS_ERR(file));
	if (!IS_ERR(file))
		kd_filp_close(file);
	/* Somebody has it mounted. */
	KUNIT_ASSERT_EQ(test, 0, shell("echo 0 >" TGT_NS "/enable"));
	file = kd_filp_open(BACKING_0, O_RDWR | O_EXCL, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	KUNIT_EXPECT_NE(test, 0, shell("echo 1 >" TGT_NS "/enable"));
	kd_filp_close(file);
	KUNIT_EXPECT_EQ(test, 0, shell("echo 1 >" TGT_NS "/enable"));
}

#define ENABLES_OTHER	"echo 1 2>/dev/null >" OTHER_NS "/enable"
#define OTHER_IS(path)	"cd " OTHER_NS "; echo 0 >enable; echo " path " >path"

static void loops_end(void *unused)
{
	shell("rmdir " OTHER_NS " 2>/dev/null; losetup -d /tmp/loop2 2>/dev/null;"
	      " losetup -d /tmp/loop; rm -f /tmp/loop /tmp/loop2 /tmp/part /tmp/copy " OTHER_FILE);
}

/* What is below a loop device is not exported beside it, nor what else is made of that. */
static void blk_volume_is_below_a_loop(struct kunit *test)
{
	tgt_load(test);
	if (shell("mknod /tmp/loop b 7 7; mknod /tmp/loop2 b 7 6; losetup /tmp/loop " TGT_FILE))
		kunit_skip(test, "no loop device");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, loops_end, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " OTHER_NS "; " OTHER_IS("/tmp/loop")));
	KUNIT_EXPECT_NE_MSG(test, 0, shell(ENABLES_OTHER), "the loop device, beside the file");
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo /tmp/loop >path"));
	KUNIT_ASSERT_EQ(test, 0, shell(OTHER_IS(TGT_FILE)));
	KUNIT_EXPECT_NE_MSG(test, 0, shell(ENABLES_OTHER), "the file, beside the loop device");
	KUNIT_ASSERT_EQ(test, 0, shell("losetup /tmp/loop2 " TGT_FILE "; " OTHER_IS("/tmp/loop2")));
	KUNIT_EXPECT_NE_MSG(test, 0, shell(ENABLES_OTHER), "another loop device of the file");
	KUNIT_ASSERT_EQ(test, 0, shell("losetup -d /tmp/loop2; losetup /tmp/loop2 /tmp/loop"));
	KUNIT_EXPECT_NE_MSG(test, 0, shell(ENABLES_OTHER), "a loop device of the loop device");
	/* Another file is another medium, and what can only be read is nobody's. */
	KUNIT_ASSERT_EQ(test, 0, shell("losetup -d /tmp/loop2; cp " TGT_FILE " " OTHER_FILE
				       "; losetup /tmp/loop2 " OTHER_FILE));
	KUNIT_EXPECT_EQ(test, 0, shell(ENABLES_OTHER));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo 1 >read_only"));
	KUNIT_EXPECT_EQ(test, 0, shell(OTHER_IS(TGT_FILE) "; echo 1 >read_only; echo 1 >enable"));
	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " OTHER_NS "; rm " OTHER_FILE));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo 0 >read_only; echo " TGT_FILE " >path"));
}

/* Make @path a volume, and @other another one. Return whether that is taken. */
static bool are_two_volumes(struct kunit *test, const char *path, const char *other)
{
	char command[128];

	snprintf(command, sizeof(command), "cd " OTHER_NS "; echo 0 >enable; echo %s >path", other);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	snprintf(command, sizeof(command), "echo %s >path", path);
	KUNIT_ASSERT_EQ(test, 0, change_volume(command));
	return !shell(ENABLES_OTHER);
}

static void volumes_end(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " OTHER_NS));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo 0 >read_only; echo " TGT_FILE " >path"));
}

/* The disk of a partition may be a loop device, and there may be one on the partition. */
static void blk_volume_is_on_a_partition_of_a_loop(struct kunit *test)
{
	tgt_load(test);
	if (shell(MBR_DISK "; mknod /tmp/loop2 b 7 6; losetup -P /tmp/loop " OTHER_FILE ";"
		  MBR_PARTITION))
		kunit_skip(test, "no loop device");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, loops_end, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " OTHER_NS "; losetup /tmp/loop2 /tmp/part"));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, "/tmp/part", "/tmp/loop2"));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, "/tmp/loop2", "/tmp/part"));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, "/tmp/loop", "/tmp/loop2"));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, OTHER_FILE, "/tmp/loop2"));
	/* What is in front of the partition is another volume. */
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
	KUNIT_ASSERT_EQ(test, 0, shell("cd " OTHER_NS "; echo 0 >enable; losetup -d /tmp/loop2;"
				       " losetup --sizelimit 32768 /tmp/loop2 " OTHER_FILE));
	KUNIT_EXPECT_TRUE(test, are_two_volumes(test, "/tmp/part", "/tmp/loop2"));
	volumes_end(test);
}

/* Two partitions of a disk, and a loop device on the first, or on the disk. */
static void blk_volume_is_on_a_partition(struct kunit *test)
{
	struct backing *backing = kdb_backing_make(test, 0);

	backing->disk->flags &= ~GENHD_FL_NO_PART;
	tgt_load(test);
	if (shell("mknod /tmp/loop b 7 7; addpart " BACKING_0 " 1 64 512 && addpart " BACKING_0
		  " 2 576 512 && losetup /tmp/loop " BACKING_0 "p1"))
		kunit_skip(test, "no loop device, or no partition");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, loops_end, NULL));
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " OTHER_NS));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, "/tmp/loop", BACKING_0));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, BACKING_0, "/tmp/loop"));
	KUNIT_EXPECT_TRUE(test, are_two_volumes(test, BACKING_0 "p2", "/tmp/loop"));
	KUNIT_EXPECT_TRUE(test, are_two_volumes(test, BACKING_0 "p1", BACKING_0 "p2"));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
	KUNIT_ASSERT_EQ(test, 0, shell("cd " OTHER_NS "; echo 0 >enable; losetup -d /tmp/loop;"
				       " losetup /tmp/loop " BACKING_0));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, "/tmp/loop", BACKING_0 "p2"));
	/* O_EXCL is for writers only. */
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo 1 >read_only"));
	KUNIT_EXPECT_FALSE(test, are_two_volumes(test, BACKING_0, BACKING_0 "p1"));
	volumes_end(test);
}

/*
 * Export the first 65536 bytes of the file, and what is behind byte @from, as two volumes. Return
 * whether the second one is taken.
 */
static bool two_parts(struct kunit *test, unsigned int from)
{
	char command[64];
	bool taken;

	tgt_load(test);
	if (shell("mknod /tmp/loop b 7 7; mknod /tmp/loop2 b 7 6;"
		  " losetup --sizelimit 65536 /tmp/loop " TGT_FILE))
		kunit_skip(test, "no loop device");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, loops_end, NULL));
	snprintf(command, sizeof(command), "losetup -o %u /tmp/loop2 " TGT_FILE, from);
	KUNIT_ASSERT_EQ(test, 0, shell(command));
	KUNIT_ASSERT_EQ(test, 0, change_volume("echo /tmp/loop >path"));
	KUNIT_ASSERT_EQ(test, 0, shell("mkdir " OTHER_NS "; " OTHER_IS("/tmp/loop2")));
	taken = !shell(ENABLES_OTHER);
	KUNIT_ASSERT_EQ(test, 0, shell("rmdir " OTHER_NS));
	KUNIT_EXPECT_EQ(test, 0, change_volume("echo " TGT_FILE " >path"));
	return taken;
}

/* Two halves of a file are two volumes. */
static void blk_volume_is_a_part(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, two_parts(test, 65536));
}

/* Two parts of a file that have bytes in common cannot both be written. */
static void blk_parts_overlap(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, two_parts(test, 65024));
}

static struct kunit_case identity_cases[] = {
	KUNIT_CASE_PARAM(blk_feature_identity, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_feature_hints, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_of_the_file, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_of_the_disk, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_of_a_mapped_device, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_is_of_one_volume, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_of_the_boot, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_of_a_partition, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_uuid_is_set, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_backing_has_changed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_backing_is_a_fifo, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_disabling_flushes, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_is_claimed, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_is_below_a_loop, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_is_on_a_partition_of_a_loop, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_is_on_a_partition, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_volume_is_a_part, kd_gen_ia),
	KUNIT_CASE_PARAM(blk_parts_overlap, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-identity", identity_cases,
	 "identities of the block device target's volumes");
