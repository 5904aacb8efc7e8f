// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inputs for the files of configfs of kdapl_blk_tgt.ko and kdapl_blk.ko, from an administrator
 * who writes anything; see fuzz.h. A message is the text that is written, or a name that a
 * directory is made under. Disks are not connected: the wire has a target of its own.
 *
 * What the module did, for each message: errno, 0 if it took the text; for "link" and "unlink"
 * whether they failed.
 */
#include "../blk/blk_target.h"
#include "files.h"
#include "fuzz.h"

#define INI_KO	"/run/out/modules/kdapl_blk.ko"
#define INI	"/sys/kernel/config/kdapl_blk"
#define FILE	"/tmp/kdapl-fuzz-configfs"
#define ROOM	8192

/* A letter of a text is a field, as long texts have none that matters more. */
#define TEXT	"\x01\x01\x01\x01\x01\x01\x01\x01\x08\x30"

#define NS	TGT "/subsystems/fuzz/namespaces/1/"
#define PORT	TGT "/ports/7/"
#define DISK	INI "/fuzz/"

/* What is written where. A path that ends in a slash has a directory made in it. */
static const struct {
	const char *path;
	const char *text;
} places[] = {
	{ NS "path", FILE },
	{ NS "read_only", "1" },
	{ NS "uuid", "9f0c44a2-53b8-4d1c-8a67-04cf0ff6a001" },
	{ NS "backing_uuid", "9f0c44a2-53b8-4d1c-8a67-04cf0ff6a002" },
	{ NS "instance", "17" },
	{ NS "enable", "1" },
	{ TGT "/subsystems/fuzz/allow_any_client", "1" },
	{ TGT "/subsystems/fuzz/authenticate", "1" },
	{ TGT "/clients/fuzz/secret", "0123456789abcdef" },
	{ PORT "ia", "sim0/1" },
	{ PORT "conn_qual", "4471" },
	{ PORT "credits", "8" },
	{ PORT "io_depth", "2" },
	{ PORT "max_conns", "16" },
	{ PORT "max_queues", "4" },
	{ PORT "srq_size", "64" },
	{ PORT "srq_per_conn", "8" },
	{ PORT "srq_max", "128" },
	{ PORT "srq_low", "4" },
	{ PORT "attach_ms", "1000" },
	{ PORT "penalty_ms", "0" },
	{ PORT "reply_ms", "1000" },
	{ PORT "pages", "2" },
	{ PORT "buffers", "2" },
	{ PORT "max_transfer", "65536" },
	{ DISK "ia", "sim0/1" },
	{ DISK "address", "10.10.0.1" },
	{ DISK "conn_qual", "4471" },
	{ DISK "subsystem", "vol" },
	{ DISK "namespace", "1" },
	{ DISK "client", "friend" },
	{ DISK "uuid", "9f0c44a2-53b8-4d1c-8a67-04cf0ff6a003" },
	{ DISK "secret", "0123456789abcdef" },
	{ DISK "queues", "2" },
	{ DISK "read_queues", "1" },
	{ DISK "depth", "16" },
	{ DISK "timeout_ms", "1000" },
	{ DISK "connect_timeout_ms", "1000" },
	{ DISK "keepalive_ms", "1000" },
	{ DISK "reconnect_ms", "100" },
	{ DISK "reconnect_max_ms", "1000" },
	{ DISK "give_up_ms", "1000" },
	{ DISK "share", "0" },
	{ DISK "only_path", "0" },
	{ TGT "/subsystems/fuzz/namespaces/", "2" },
	{ TGT "/subsystems/", "more" },
	{ TGT "/clients/", "more" },
	{ TGT "/ports/", "8" },
	{ INI "/", "more" },
};

#define K_LINK		ARRAY_SIZE(places)
#define K_UNLINK	(K_LINK + 1)
#define KINDS		(K_LINK + 2)

static struct fuzz_kind kinds[KINDS];
static char names[KINDS][24];

static const char * const corpus[] = {
#include "corpus/configfs.inc"
};

static const char * const modules[] = { "kdapl_blk_tgt", "kdapl_blk", NULL };
static const struct fuzz_target target;

static char *text;			/* of the message; 2 * ROOM, of which half for answers */
static char *command;

/* "ports_srq_size" for .../ports/7/srq_size, "mk_ports" for a directory in .../ports/. */
static void name_kinds(void)
{
	const char *path, *end;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		path = places[i].path;
		end = strrchr(path, '/');
		if (end[1]) {
			snprintf(names[i], sizeof(names[i]), "%c_%s",
				 strstarts(path, DISK) ? 'd' : strstarts(path, PORT) ? 'p' : 's',
				 end + 1);
		} else {
			while (*--end != '/')
				;
			snprintf(names[i], sizeof(names[i]), "mk_%.*s",
				 (int)(strlen(end) - 2), end + 1);
		}
		kinds[i] = (struct fuzz_kind) { names[i], TEXT, .alone = true };
	}
	kinds[K_LINK] = (struct fuzz_kind) { "link", "\x01", .alone = true };
	kinds[K_UNLINK] = (struct fuzz_kind) { "unlink", "\x01", .alone = true };
}

/* ---- Inputs -------------------------------------------------------------- */

/* Write the @len bytes of the message, and read what is there then. Return errno. */
static int put(struct kunit *test, const char *path, size_t len)
{
	struct file *file = kd_filp_open(path, O_RDWR, 0);
	loff_t pos = 0;
	ssize_t n, got;

	if (IS_ERR(file))
		return -PTR_ERR(file);
	/* A path is looked up for the task that writes. */
	scoped_with_init_fs()
		n = kernel_write(file, text, len, &pos);
	kd_filp_close(file);
	file = kd_filp_open(path, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	pos = 0;
	scoped_with_init_fs()
		got = kernel_read(file, text + ROOM, ROOM, &pos);
	KUNIT_EXPECT_LE_MSG(test, got, (ssize_t)PAGE_SIZE, "%s", path);
	kd_filp_close(file);
	return n < 0 ? -n : 0;
}

/* Make a directory with that name in @dir. The shell is told each byte; it trims newlines. */
static int make(const char *dir, size_t len)
{
	size_t i, n;

	text[len] = '\0';
	if (!text[0] || strchr(text, '/') || !strcmp(text, ".") || !strcmp(text, ".."))
		return 0;
	n = scnprintf(command, ROOM * 5, "mkdir -- %s\"$(printf '", dir);
	for (i = 0; text[i]; i++)
		n += scnprintf(command + n, ROOM * 5 - n, "\\%03o", (u8)text[i]);
	scnprintf(command + n, ROOM * 5 - n, "')\" 2>/dev/null");
	return !!shell(command);
}

static int run_message(struct fuzz_run *run, const struct fuzz_message *message)
{
	size_t len;

	if (message->kind == K_LINK)
		return !!shell("ln -s " TGT "/subsystems/fuzz " PORT "subsystems/ 2>/dev/null");
	if (message->kind == K_UNLINK)
		return !!shell("rm " PORT "subsystems/fuzz 2>/dev/null");
	memset(text, 0, ROOM);
	len = strscpy(text, places[message->kind].text, ROOM);
	len = fuzz_apply(&target, message, text, len, ROOM - 1);
	if (strrchr(places[message->kind].path, '/')[1])
		return put(run->test, places[message->kind].path, len);
	return make(places[message->kind].path, len);
}

static void clean(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0,
			shell("cd " TGT "; rm -f ports/*/subsystems/fuzz\n"
			      "for d in subsystems/*/namespaces/* subsystems/* clients/* ports/* "
			      INI "/*; do\n"
			      "case $d in */vol*|*/friend|ports/1) ;;\n"
			      "*) [ ! -d \"$d\" ] || rmdir -- \"$d\" || exit 1;; esac; done"));
}

static void run_input(struct fuzz_run *run)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(run->test, 0,
			shell("cd " TGT "\n"
			      "mkdir subsystems/fuzz subsystems/fuzz/namespaces/1\n"
			      "mkdir clients/fuzz ports/7 " INI "/fuzz"));
	for (i = 0; i < run->input->n; i++)
		fuzz_say(run, "%d", run_message(run, &run->input->message[i]));
	clean(run->test);
}

/* ---- The bed ------------------------------------------------------------- */

/* A client of the volume that there was is served. */
static void check(struct kunit *test)
{
	struct kblk_hello hello = kdb_good_hello();
	struct kblk_request request;
	struct kd_side *side = kdb_welcome_client(test, &hello);

	KUNIT_EXPECT_EQ(test, kdb_attach_as(side, "friend", "vol", 1, 0), KBLK_OK);
	request = kdb_good_request(side);
	KUNIT_EXPECT_EQ(test, kdb_ask(side, &request), KBLK_OK);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(side->buf->va + DATA_AT, 4096, FILE_SEED));
	kd_close(side);
}

static void ini_down(void *unused)
{
	WARN_ON(shell("rmmod kdapl_blk"));
}

static void bed_up(struct kunit *test)
{
	if (!kd_file_exists(INI_KO))
		kunit_skip(test, "no " INI_KO);
	name_kinds();
	text = kunit_kzalloc(test, 2 * ROOM, GFP_KERNEL);
	command = kunit_kzalloc(test, 5 * ROOM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_NOT_NULL(test, command);
	tgt_load(test);
	KUNIT_ASSERT_EQ(test, 0, shell("insmod " INI_KO " && cp " TGT_FILE " " FILE));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, ini_down, NULL));
	fuzz_loaded(test, "kdapl_blk_tgt");
}

FUZZ_TARGET(configfs, .set_up = bed_up, .run = run_input, .check = check, .big_endian = true)

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(configfs_corpus, fuzz_gen_ia),
	KUNIT_CASE_PARAM(configfs_search, fuzz_gen_ia),
	{}
};

KD_SUITE("kdapl-fuzz-configfs", cases, "inputs for the files of the block device's configfs");
