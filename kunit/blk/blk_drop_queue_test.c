// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_blk.ko: a target that drops the second connection of disks that share them,
 * whenever it is to attach a volume there. It listens all the time.
 */
#include <linux/module.h>
#include "blk_serve.h"

#define INI_DISK_2	INI_DISK "2"
#define SERVE_MS	10000		/* for a request that is served */
#define CONNECT_SECOND	CONNECT_BESIDE("2", "echo 1 >read_queues")

/*
 * struct target - the target of a case
 * @sides: its connections, or NULL
 * @next: who accepts the next one
 * @psp: where it listens for that
 * @bad: a bit for each volume whose ATTACH to the second connection ends that
 * @attached: a bit for each volume that was attached there
 * @drops: how often the connection ended
 */
struct target {
	struct kunit *test;
	struct kd_side *sides[2];
	struct kd_side *next;
	DAT_PSP_HANDLE psp;
	unsigned int bad;
	unsigned int attached;
	int drops;
};

/* ---- The target ---------------------------------------------------------- */

static void target_close(struct target *target, unsigned int n)
{
	if (target->sides[n])
		kd_close(target->sides[n]);
	target->sides[n] = NULL;
}

/* Accept who asks for a connection, if anybody does. */
static void target_accept(struct target *target)
{
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);
	struct kunit *test = target->test;
	struct kd_side *side = target->next;
	const struct kblk_hello *hello;
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	u16 n;

	if (!kd_wait_event(side->cr_evd, &event, 1))
		return;
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	KD_ASSERT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	hello = param.private_data;
	n = le16_to_cpu(hello->queue);
	KUNIT_ASSERT_LT(test, n, 2);
	KD_ASSERT_OK(test, dat_psp_free(target->psp));
	if (!n)
		target_close(target, 1);
	target_close(target, n);
	target->sides[n] = side;
	target->next = kdb_listen(test, &target->psp);
	KD_ASSERT_OK(test, dat_cr_accept(cr, side->ep, sizeof(welcome), &welcome));
	kd_expect_event(test, side->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
}

/* Serve a request that has come on connection @n, if there is one. */
static void target_take(struct target *target, unsigned int n)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kd_side *side = target->sides[n];
	const struct kblk_attach *attach;
	struct kblk_request request;
	unsigned int volume = 0;
	DAT_EVENT event;

	if (!side || !kd_wait_event(side->recv_evd, &event, 1))
		return;
	dto = &event.event_data.dto_completion_event_data;
	/* The connection has ended. */
	if (dto->status != DAT_DTO_SUCCESS)
		return;
	attach = side->buf->va + REQUEST_AT + dto->user_cookie.as_64 * REQUEST_SIZE +
		 sizeof(request);
	volume = BIT(le32_to_cpu(attach->namespace) & 31);
	request = kdb_request_sent(side, dto);
	if (n && request.opcode == KBLK_OP_ATTACH) {
		if (target->bad & volume) {
			target->drops++;
			target_close(target, n);
			return;
		}
		target->attached |= volume;
	}
	kdb_serve_leaving(side, &request);
}

static void target_poll(struct target *target)
{
	target_accept(target);
	target_take(target, 0);
	target_take(target, 1);
}

/* Serve until the command, or connecting, has ended, and return whether it has. */
static bool target_serve(struct target *target)
{
	unsigned long until = jiffies + msecs_to_jiffies(SERVE_MS);

	while (time_before(jiffies, until) && !completion_done(&ini_ended))
		target_poll(target);
	return completion_done(&ini_ended);
}

/* Run @command, and serve until it has ended. It has to succeed. */
static void target_run(struct target *target, char *command)
{
	kdb_start_command(command);
	KUNIT_ASSERT_TRUE_MSG(target->test, target_serve(target),
			      "it still waits, after %d drops", target->drops);
	KUNIT_EXPECT_EQ(target->test, ini_status, 0);
}

/* Serve until @volumes, bits, are attached to the second connection. */
static void expect_attached(struct target *target, unsigned int volumes)
{
	unsigned long until = jiffies + msecs_to_jiffies(SERVE_MS);

	while (time_before(jiffies, until) && (target->attached & volumes) != volumes)
		target_poll(target);
	KUNIT_EXPECT_EQ(target->test, target->attached & volumes, volumes);
}

/* Make the target of a disk of volume 1, which has two connections. */
static struct target *target_make(struct kunit *test, unsigned int bad)
{
	struct target *target = kunit_kzalloc(test, sizeof(*target), GFP_KERNEL);
	struct kblk_welcome welcome = kdb_welcome_with(SHARING);

	KUNIT_ASSERT_NOT_NULL(test, target);
	ini_attrs.share = "1";
	ini_attrs.read_queues = "1";
	ini_attrs.depth = "3";
	ini_attrs.timeout_ms = PATIENT;
	ini_attrs.give_up_ms = PATIENT;
	target->test = test;
	target->bad = bad;
	target->sides[0] = kdb_welcome_one(test, true, &welcome);
	target->next = kdb_listen(test, &target->psp);
	KUNIT_ASSERT_TRUE(test, target_serve(target));
	KUNIT_ASSERT_EQ(test, 0, ini_error);
	return target;
}

/* ---- Cases --------------------------------------------------------------- */

/*
 * Both disks are served for three seconds, or more until there is a drop. Attempts are made
 * no more often than reconnect_max_ms apart, which is one second. The volume gets its
 * connection in the end.
 */
static void expect_goes_on(struct target *target, unsigned int bad)
{
	unsigned long start = jiffies;
	unsigned int ms;

	target->drops = 0;
	do {
		target_run(target, READ_ONE);
		target_run(target, READ_SECOND);
		ms = jiffies_to_msecs(jiffies - start);
	} while (ms < 3000 || (ms < SERVE_MS && !target->drops));
	KUNIT_EXPECT_GE(target->test, target->drops, 1);
	KUNIT_EXPECT_LE(target->test, target->drops,
			2 + DIV_ROUND_UP(jiffies_to_msecs(jiffies - start), 1000));
	target->bad = 0;
	target->attached = 0;
	expect_attached(target, bad);
	target_run(target, READ_ONE);
	target_run(target, READ_SECOND);
	target_run(target, "echo 0 >" INI_DISK_2 "/connected; echo 0 >" INI_DISK
		   "/connected");
}

/* The connections are lost, and one volume cannot be attached to the second any more. */
static void ini_has_fewer_later(struct kunit *test)
{
	struct target *target = target_make(test, 0);

	target_run(target, CONNECT_SECOND);
	expect_attached(target, BIT(1) | BIT(2));
	target->bad = BIT(2);
	target_close(target, 1);
	expect_goes_on(target, BIT(2));
}

/* It cannot from the beginning, and is the first disk. */
static void ini_has_fewer_first(struct kunit *test)
{
	struct target *target = target_make(test, BIT(1));

	target_run(target, CONNECT_SECOND);
	expect_attached(target, BIT(2));
	expect_goes_on(target, BIT(1));
}

static void drop_exit(struct kunit *test)
{
	kdb_wait_command();
	shell("rmdir " INI_DISK_2 " 2>/dev/null");
	ini_unload(test);
}

static struct kunit_case drop_queue_cases[] = {
	KUNIT_CASE_PARAM(ini_has_fewer_later, kd_gen_ia),
	KUNIT_CASE_PARAM(ini_has_fewer_first, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-blk-drop-queue", drop_queue_cases, "a target that drops one connection",
	 .init = ini_init, .exit = drop_exit);
