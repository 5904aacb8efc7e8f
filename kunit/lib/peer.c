// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_kunit.ko: peers of modules that serve, see peer.h. */
#include <linux/fs.h>
#include <linux/module.h>
#include "files.h"
#include "peer.h"
#include "shell.h"

#define NUMBER	"/tmp/kdapl-number"

/* ---- Messages ------------------------------------------------------------------- */

static size_t slot_at(const struct kd_slots *slots, u64 slot)
{
	return slots->sends * slots->send_len + slot * slots->recv_len;
}

void kd_slots_post(const struct kd_slots *slots, struct kd_side *side, u64 slot)
{
	DAT_LMR_TRIPLET seg = kd_seg(side->buf, slot_at(slots, slot), slots->recv_len);

	/* It is refused when the connection has ended. */
	kd_may_fail(dat_ep_post_recv(side->ep, 1, &seg, kd_cookie(slot),
				     DAT_COMPLETION_DEFAULT_FLAG));
}
EXPORT_SYMBOL_GPL(kd_slots_post);

/*
 * Copy the @nth message to where it is sent from, and make @seg that. Return false if the
 * connection has ended.
 */
bool kd_slots_fill(const struct kd_slots *slots, struct kd_side *side, unsigned int nth,
		   const void *message, size_t len, DAT_LMR_TRIPLET *seg)
{
	size_t at = nth % slots->sends * slots->send_len;
	DAT_EVENT event;

	/* A slot is free when the Send that was in it has completed. */
	if (nth >= slots->sends && !kd_wait_event(side->req_evd, &event, KD_TIMEOUT_MS))
		return false;
	memcpy(side->buf->va + at, message, len);
	*seg = kd_seg(side->buf, at, len);
	return true;
}
EXPORT_SYMBOL_GPL(kd_slots_fill);

/*
 * Receive a message to @got, @len bytes of it, and no more than @room. Return false if none comes
 * within @ms, or the connection ends.
 */
bool kd_slots_receive(const struct kd_slots *slots, struct kd_side *side, unsigned int ms,
		      void *got, size_t room, unsigned int *len)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	u64 slot;

	if (!kd_wait_event(side->recv_evd, &event, ms))
		return false;
	dto = &event.event_data.dto_completion_event_data;
	if (dto->status != DAT_DTO_SUCCESS)
		return false;
	slot = dto->user_cookie.as_64;
	*len = min_t(size_t, dto->transfered_length, room);
	memcpy(got, side->buf->va + slot_at(slots, slot), *len);
	kd_slots_post(slots, side, slot);
	return true;
}
EXPORT_SYMBOL_GPL(kd_slots_receive);

/* ---- Connections ---------------------------------------------------------------- */

/* Connect; tell whether the module accepts. */
bool kd_peer_connect(struct kd_side *side, DAT_CONN_QUAL port, DAT_COUNT len, void *private_data)
{
	struct kunit *test = side->test;
	DAT_EVENT event;

	KD_ASSERT_OK(test, dat_ep_connect(side->ep, side->addr, port, KD_TIMEOUT_MS * 1000, len,
					  private_data, DAT_QOS_BEST_EFFORT,
					  DAT_CONNECT_DEFAULT_FLAG));
	KUNIT_ASSERT_TRUE(test, kd_wait_event(side->conn_evd, &event, KD_TIMEOUT_MS));
	return event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
}
EXPORT_SYMBOL_GPL(kd_peer_connect);

/* Connect, and disconnect at once. Return whether somebody has accepted. */
bool kd_reaches(struct kd_side *side, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL port)
{
	DAT_EVENT event;
	bool up;

	if (dat_ep_connect(side->ep, address, port, KD_TIMEOUT_MS * 1000, 0, NULL,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) != DAT_SUCCESS)
		return false;
	up = kd_wait_event(side->conn_evd, &event, KD_TIMEOUT_MS) &&
	     event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
	if (up) {
		dat_ep_disconnect(side->ep, DAT_CLOSE_ABRUPT_FLAG);
		kd_wait_event(side->conn_evd, &event, KD_TIMEOUT_MS);
	}
	dat_ep_reset(side->ep);
	return up;
}
EXPORT_SYMBOL_GPL(kd_reaches);

/* Does a server of kdapl_test.ko, on the adapter of @side, serve a command? */
bool kd_tool_serves(struct kd_side *side, u16 port)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "exec 3<>/dev/kdapl_test\n"
		 "echo 'lat ia=%s host=%pISc port=%u number=20' >&3\n"
		 "said=$(cat <&3); case $said in error*|'') echo \"$said\" >&2; exit 1; esac",
		 side->name, side->addr, port);
	return !shell(command);
}
EXPORT_SYMBOL_GPL(kd_tool_serves);

/* Expect that a module which had broken @broken connections breaks this one, and counts it. */
void kd_peer_expect_cut(struct kd_side *side, const char *module, long broken)
{
	DAT_EVENT event;

	KUNIT_EXPECT_TRUE_MSG(side->test, kd_wait_event(side->conn_evd, &event, KD_TIMEOUT_MS),
			      "the connection is still there");
	KUNIT_EXPECT_EQ_MSG(side->test, kd_adapter_number(side, module, "broken"), broken + 1,
			    "%s has not broken it", module);
}
EXPORT_SYMBOL_GPL(kd_peer_expect_cut);

/* ---- Numbers -------------------------------------------------------------------- */

static bool kd_succeeds(void *command)
{
	return !shell(command);
}

/* Expect that a command of the shell succeeds, now or soon. Return whether it does. */
bool kd_expect_soon(struct kunit *test, const char *command)
{
	bool done = kd_wait_until(kd_succeeds, (void *)command, KD_TIMEOUT_MS);

	KUNIT_EXPECT_TRUE_MSG(test, done, "%s", command);
	return done;
}
EXPORT_SYMBOL_GPL(kd_expect_soon);

/* Return the number that a command of the shell writes. */
long kd_number(struct kunit *test, const char *command)
{
	char line[256], number[24] = "";
	struct file *file;
	loff_t pos = 0;
	long n = -1;

	snprintf(line, sizeof(line), "%s >" NUMBER, command);
	KUNIT_EXPECT_EQ(test, 0, shell(line));
	file = kd_filp_open(NUMBER, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	kernel_read(file, number, sizeof(number) - 1, &pos);
	kd_filp_close(file);
	KUNIT_EXPECT_EQ(test, 0, kstrtol(strim(number), 10, &n));
	return n;
}
EXPORT_SYMBOL_GPL(kd_number);

/* Return the number that a module's line for the adapter of @side has behind @name. */
long kd_adapter_number(struct kd_side *side, const char *module, const char *name)
{
	char command[224];

	snprintf(command, sizeof(command),
		 "sed -n 's|^adapter=%s .* %s=\\([0-9]*\\).*|\\1|p' /proc/kdapl/%s/adapters",
		 side->name, name, module);
	return kd_number(side->test, command);
}
EXPORT_SYMBOL_GPL(kd_adapter_number);

struct kd_adapter_wait {
	struct kd_side *side;
	const char *module;
	const char *name;
	long least;
	long most;
};

static bool kd_adapter_is_there(void *data)
{
	const struct kd_adapter_wait *w = data;
	long n = kd_adapter_number(w->side, w->module, w->name);

	return n >= w->least && n <= w->most;
}

/* Is the number behind @name from @least to @most, or will it be within @ms? */
bool kd_wait_adapter(struct kd_side *side, const char *module, const char *name, long least,
		     long most, unsigned int ms)
{
	struct kd_adapter_wait w = { side, module, name, least, most };

	if (kd_wait_until(kd_adapter_is_there, &w, ms))
		return true;
	kunit_info(side->test, "%s is %ld, not from %ld to %ld", name,
		   kd_adapter_number(side, module, name), least, most);
	return false;
}
EXPORT_SYMBOL_GPL(kd_wait_adapter);
