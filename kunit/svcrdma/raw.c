// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* kdapl_svcrdma_kunit.ko: the server and connections to it, see raw.h. */
#include <linux/module.h>
#include "peer.h"
#include "raw.h"
#include "shell.h"

#define KO	"/run/out/modules/kdapl_svcrdma.ko"
#define NFSD	"/proc/fs/nfsd/"

/* ---- The server ----------------------------------------------------------------- */

static bool rpc_raw_there;

int rpc_raw_server_up(struct kunit_suite *suite)
{
	int err;

	rpc_raw_there = false;
	/* scripts/guest/check puts the modules there. */
	if (shell("test -e " KO))
		return 0;
	/* Version 3 would need rpcbind. */
	err = shell("set -e\n"
		    "insmod " KO "\n"
		    "mountpoint -q " NFSD " || mount -t nfsd none " NFSD "\n"
		    "echo -2 -3 +4 +4.1 +4.2 >" NFSD "versions\n"
		    "echo 10 >" NFSD "nfsv4leasetime\n"
		    "echo 10 >" NFSD "nfsv4gracetime\n"
		    /* The most that this kernel takes. */
		    "echo 16777216 >" NFSD "max_block_size\n"
		    "echo kdapl 20059 >" NFSD "portlist\n"
		    "echo 3 >" NFSD "threads\n"
		    "t=$((`date +%s` + 360000))\n"
		    "for a in 10.8.0.1 10.9.0.1 10.10.0.1 10.11.0.1; do\n"
		    "echo nfsd $a $t dom >/proc/net/rpc/auth.unix.ip/channel\n"
		    "done\n");
	rpc_raw_there = !err;
	return err ? -EIO : 0;
}
EXPORT_SYMBOL_GPL(rpc_raw_server_up);

void rpc_raw_server_down(struct kunit_suite *suite)
{
	if (rpc_raw_there)
		WARN_ON(shell("set -e\n"
			      "echo 0 >" NFSD "threads\n"
			      "for n in 1 2 3 4 5 6 7 8 9; do\n"
			      "! rmmod kdapl_svcrdma || exit 0\n"
			      "sleep 1\n"
			      "done\n"
			      "exit 1\n"));
}
EXPORT_SYMBOL_GPL(rpc_raw_server_down);

/* ---- An export with a file f and a directory dir -------------------------------- */

#define EXPORT	RAW_EXPORT

int rpc_raw_export_up(struct kunit_suite *suite)
{
	int err = rpc_raw_server_up(suite);

	if (err)
		return err;
	return shell("[ -e /proc/fs/nfsd/threads ] || exit 0\n"
		     "set -e\n"
		     "mkdir -p " EXPORT "/dir\n"
		     "mountpoint -q " EXPORT " || mount -t tmpfs raw " EXPORT "\n"
		     "mkdir -p " EXPORT "/dir\n"
		     "cd " EXPORT "/dir\n"
		     "for n in `seq 300`; do : >a-name-that-is-neither-short-nor-long-$n; done\n"
		     "head -c 131072 /dev/zero >../f\n"
		     "chmod 666 ../f\n"
		     "t=$((`date +%s` + 360000))\n"
		     "c=/proc/net/rpc\n"
		     "printf 'dom 1 \\\\x00000000 %s " EXPORT "\\n' $t >$c/nfsd.fh/channel\n"
		     "echo dom " EXPORT " $t 9216 65534 65534 0 >$c/nfsd.export/channel\n") ?
	       -EIO : 0;
}
EXPORT_SYMBOL_GPL(rpc_raw_export_up);

void rpc_raw_export_down(struct kunit_suite *suite)
{
	rpc_raw_server_down(suite);
	shell("echo 1 >/proc/net/rpc/nfsd.export/flush\n"
	      "echo 1 >/proc/net/rpc/nfsd.fh/flush\n"
	      "! mountpoint -q " EXPORT " || umount -l " EXPORT);
}
EXPORT_SYMBOL_GPL(rpc_raw_export_down);

int rpc_raw_init(struct kunit *test)
{
	if (!rpc_raw_there)
		kunit_skip(test, "no NFS server, or no " KO);
	return 0;
}
EXPORT_SYMBOL_GPL(rpc_raw_init);

/* Return the number that kdapl_svcrdma's line for the adapter of @s has behind @name. */
long rpc_raw_adapter(struct kd_side *s, const char *name)
{
	return kd_adapter_number(s, "kdapl_svcrdma", name);
}
EXPORT_SYMBOL_GPL(rpc_raw_adapter);

/* Is the number behind @name from @least to @most, or will it be within @ms? */
bool rpc_raw_wait_adapter(struct kd_side *s, const char *name, long least, long most,
			  unsigned int ms)
{
	return kd_wait_adapter(s, "kdapl_svcrdma", name, least, most, ms);
}
EXPORT_SYMBOL_GPL(rpc_raw_wait_adapter);

/* ---- Connections ---------------------------------------------------------------- */

static const struct kd_slots rpc_raw_slots = {
	.sends = RAW_SENDS,
	.send_len = RAW_LENGTH,
	.recv_len = RAW_LENGTH,
};

void rpc_raw_post(struct rpc_raw *r, u64 slot)
{
	kd_slots_post(&rpc_raw_slots, r->s, slot);
}
EXPORT_SYMBOL_GPL(rpc_raw_post);

/* Make a connection, with @recvs receives, that rpc_raw_start() makes. */
struct rpc_raw *rpc_raw_new(struct kunit *test, u64 recvs)
{
	static atomic_t xids = ATOMIC_INIT(0);
	struct rpc_raw *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	DAT_EP_ATTR attr = kd_ep_attr();
	struct kd_opts opts = { .attr = &attr, .qlen = 128 };
	u64 slot;

	BUILD_BUG_ON((RAW_SENDS + RAW_RECVS) * RAW_LENGTH > KD_BUF_LEN);
	KUNIT_ASSERT_NOT_NULL(test, r);
	attr.max_request_dtos = 64;
	/* The server reads and writes memory of the client. */
	attr.max_rdma_read_in = 4;
	r->s = kd_open_param(test);
	kd_setup(r->s, &opts);
	r->data = kd_buf_alloc(r->s, SZ_512K);
	r->broken = rpc_raw_adapter(r->s, "broken");
	/* nfsd would take what has the XID of an earlier call for that call. */
	r->xid = atomic_add_return(0x1000, &xids);
	r->cm = (struct rpcrdma_connect_private) {
		.cp_magic = rpcrdma_cmp_magic,
		.cp_version = RPCRDMA_CMP_VERSION,
		.cp_send_size = rpcrdma_encode_buffer_size(RAW_LENGTH),
		.cp_recv_size = rpcrdma_encode_buffer_size(RAW_LENGTH),
	};
	r->cm_length = sizeof(r->cm);
	for (slot = 0; slot < recvs; slot++)
		rpc_raw_post(r, slot);
	return r;
}
EXPORT_SYMBOL_GPL(rpc_raw_new);

/* Connect; tell whether the server accepts. */
bool rpc_raw_start(struct rpc_raw *r)
{
	return kd_peer_connect(r->s, RAW_PORT, r->cm_length, r->cm_length ? &r->cm : NULL);
}
EXPORT_SYMBOL_GPL(rpc_raw_start);

struct rpc_raw *rpc_raw_connect(struct kunit *test)
{
	struct rpc_raw *r = rpc_raw_new(test, RAW_RECVS);

	KUNIT_ASSERT_TRUE(test, rpc_raw_start(r));
	return r;
}
EXPORT_SYMBOL_GPL(rpc_raw_connect);

void rpc_raw_close(struct rpc_raw *r)
{
	kd_close(r->s);
}
EXPORT_SYMBOL_GPL(rpc_raw_close);

/* Send @length bytes. Return false if the connection has ended. */
bool rpc_raw_send_bytes(struct rpc_raw *r, const void *message, unsigned int length)
{
	DAT_LMR_TRIPLET seg;

	if (!kd_slots_fill(&rpc_raw_slots, r->s, r->sent, message, length, &seg))
		return false;
	return dat_ep_post_send(r->s->ep, 1, &seg, kd_cookie(r->sent++),
				DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS;
}
EXPORT_SYMBOL_GPL(rpc_raw_send_bytes);

/* Send the message that was built. */
bool rpc_raw_send(struct rpc_raw *r)
{
	return rpc_raw_send_bytes(r, r->m, r->n * sizeof(__be32));
}
EXPORT_SYMBOL_GPL(rpc_raw_send);

/* Receive a message to r->got. Return false if none comes within @ms, or the connection ends. */
bool rpc_raw_receive(struct rpc_raw *r, unsigned int ms)
{
	return kd_slots_receive(&rpc_raw_slots, r->s, ms, r->got, sizeof(r->got), &r->got_length);
}
EXPORT_SYMBOL_GPL(rpc_raw_receive);

/* Has the server ended the connection, or does it within @ms? */
bool rpc_raw_is_down(struct rpc_raw *r, unsigned int ms)
{
	DAT_EVENT event;

	return kd_wait_event(r->s->conn_evd, &event, ms);
}
EXPORT_SYMBOL_GPL(rpc_raw_is_down);

/* Expect that the server breaks the connection, which it tells the log of. */
void rpc_raw_expect_cut(struct rpc_raw *r)
{
	kd_peer_expect_cut(r->s, "kdapl_svcrdma", r->broken);
}
EXPORT_SYMBOL_GPL(rpc_raw_expect_cut);

/* Expect that the server answers an error of the transport to the last message. */
void rpc_raw_expect_error(struct rpc_raw *r, u32 code)
{
	struct kunit *test = r->s->test;

	KUNIT_ASSERT_TRUE_MSG(test, rpc_raw_receive(r, KD_TIMEOUT_MS), "there is no answer");
	KUNIT_EXPECT_EQ(test, r->got_length, code == ERR_VERS ? 28 : 20);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[0]), r->xid);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[1]), RPCRDMA_VERSION);
	KUNIT_EXPECT_GT(test, be32_to_cpu(r->got[2]), 0);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[3]), RDMA_ERROR);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[4]), code);
	if (code == ERR_VERS) {
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[5]), RPCRDMA_VERSION);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[6]), RPCRDMA_VERSION);
	}
}
EXPORT_SYMBOL_GPL(rpc_raw_expect_error);

/* Does the server call? It does so again after a second without a right answer. */
static bool rpc_raw_is_call(const struct rpc_raw *r)
{
	return r->got_length > RPCRDMA_HDRLEN_MIN + 2 * sizeof(__be32) &&
	       r->got[3] == rdma_msg && !r->got[4] && !r->got[5] && !r->got[6] && !r->got[8];
}

/* Expect a reply, to a NULL call, that says that it was executed; whatever lists it has. */
void rpc_raw_expect_reply(struct rpc_raw *r)
{
	struct kunit *test = r->s->test;
	const __be32 *rpc;

	do
		KUNIT_ASSERT_TRUE_MSG(test, rpc_raw_receive(r, KD_TIMEOUT_MS),
				      "there is no reply");
	while (rpc_raw_is_call(r));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[0]), r->xid);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(r->got[1]), RPCRDMA_VERSION);
	KUNIT_EXPECT_GT(test, be32_to_cpu(r->got[2]), 0);
	KUNIT_ASSERT_EQ(test, be32_to_cpu(r->got[3]), RDMA_MSG);
	KUNIT_ASSERT_GE(test, r->got_length, RPCRDMA_HDRLEN_MIN + RAW_REPLY);
	rpc = r->got + (r->got_length - RAW_REPLY) / sizeof(__be32);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[0]), r->xid);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[1]), 1);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[2]), 0);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(rpc[5]), 0);
}
EXPORT_SYMBOL_GPL(rpc_raw_expect_reply);

/* Expect that nothing comes of the last message, and that the next one is answered. */
void rpc_raw_expect_silence(struct rpc_raw *r)
{
	rpc_raw_expect_alive(r);
}
EXPORT_SYMBOL_GPL(rpc_raw_expect_silence);

void rpc_raw_expect_alive(struct rpc_raw *r)
{
	rpc_raw_null(r);
	KUNIT_ASSERT_TRUE(r->s->test, rpc_raw_send(r));
	rpc_raw_expect_reply(r);
}
EXPORT_SYMBOL_GPL(rpc_raw_expect_alive);

/* ---- Messages ------------------------------------------------------------------- */

void rpc_raw_word(struct rpc_raw *r, u32 word)
{
	KUNIT_ASSERT_LT(r->s->test, r->n, RAW_LENGTH / 4);
	r->m[r->n++] = cpu_to_be32(word);
}
EXPORT_SYMBOL_GPL(rpc_raw_word);

void rpc_raw_words(struct rpc_raw *r, unsigned int n, ...)
{
	va_list args;

	va_start(args, n);
	while (n--)
		rpc_raw_word(r, va_arg(args, u32));
	va_end(args);
}
EXPORT_SYMBOL_GPL(rpc_raw_words);

/* Begin a message with what all headers have. */
void rpc_raw_begin(struct rpc_raw *r, u32 credits, u32 proc)
{
	r->n = 0;
	rpc_raw_words(r, 4, ++r->xid, RPCRDMA_VERSION, credits, proc);
}
EXPORT_SYMBOL_GPL(rpc_raw_begin);

/* Add a segment of r->data. */
void rpc_raw_segment(struct rpc_raw *r, unsigned int offset, u32 length)
{
	u64 va = (uintptr_t)r->data->va + offset;

	rpc_raw_words(r, 4, r->data->rmr_context, length, (u32)(va >> 32), (u32)va);
}
EXPORT_SYMBOL_GPL(rpc_raw_segment);

/* Add an item of the Read list. */
void rpc_raw_read(struct rpc_raw *r, u32 position, unsigned int offset, u32 length)
{
	rpc_raw_words(r, 2, 1, position);
	rpc_raw_segment(r, offset, length);
}
EXPORT_SYMBOL_GPL(rpc_raw_read);

/* Add the RPC message of a NULL call of NFS version 4. */
void rpc_raw_call(struct rpc_raw *r)
{
	rpc_raw_words(r, RAW_CALL, r->xid, 0, 2, 100003, 4, 0, 0, 0, 0, 0);
}
EXPORT_SYMBOL_GPL(rpc_raw_call);

/* Add three lists that are empty. */
void rpc_raw_no_lists(struct rpc_raw *r)
{
	rpc_raw_words(r, 3, 0, 0, 0);
}
EXPORT_SYMBOL_GPL(rpc_raw_no_lists);

/* Build a NULL call. */
void rpc_raw_null(struct rpc_raw *r)
{
	rpc_raw_begin(r, 32, RDMA_MSG);
	rpc_raw_no_lists(r);
	rpc_raw_call(r);
}
EXPORT_SYMBOL_GPL(rpc_raw_null);

/* Write the RPC message of a NULL call at @offset of r->data; return its length. */
unsigned int rpc_raw_put_call(struct rpc_raw *r, unsigned int offset)
{
	unsigned int n = r->n;

	rpc_raw_call(r);
	memcpy(r->data->va + offset, &r->m[n], RAW_CALL * sizeof(__be32));
	r->n = n;
	return RAW_CALL * sizeof(__be32);
}
EXPORT_SYMBOL_GPL(rpc_raw_put_call);

MODULE_DESCRIPTION("What the suites of kdapl_svcrdma.ko share");
MODULE_LICENSE("Dual BSD/GPL");
