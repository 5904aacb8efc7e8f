// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * blk_fault_test.ko: requests to a disk, see blk_fault_io.h.
 */
#include <linux/bio.h>
#include <linux/completion.h>
#include <linux/string.h>
#include "blk_fault_io.h"

enum kind { WRITE_IO, READ_IO, ZERO_IO, DISCARD_IO, FLUSH_IO };

/*
 * struct io - a request
 * @area: of the disk that it is about
 * @fua: it is a write that goes to the medium
 */
static const struct io {
	const char *what;
	enum kind kind;
	unsigned int area;
	bool fua;
} ios[] = {
	{ "read", READ_IO, 0 },
	{ "large read", READ_IO, 1 },
	{ "write", WRITE_IO, 0 },
	{ "large write", WRITE_IO, 1 },
	{ "scattered write", WRITE_IO, 2 },
	{ "write with FUA", WRITE_IO, 3, true },
	{ "flush", FLUSH_IO, 0 },
	{ "scattered read", READ_IO, 2 },
	{ "large read back", READ_IO, 1 },
	{ "read back", READ_IO, 3 },
	{ "write zeroes", ZERO_IO, 3 },
	{ "discard", DISCARD_IO, 4 },
	{ "read of zeroes", READ_IO, 3 },
};

static const struct area fresh[AREAS] = {
	{ 8, 4096, 4096 },
	{ 64, LARGE, 4096 },
	{ 640, 16 * 512, 512 },
	{ 704, 2 * 4096, 4096 },
	{ 768, SZ_64K, 4096 },
};

/* Return the memory of the @n-th segment for @a, which begins anywhere in its page. */
static u8 *segment(struct world *w, const struct area *a, unsigned int n)
{
	if (a->piece >= PAGE_SIZE)
		return w->buf + n * a->piece;
	return w->buf + n * PAGE_SIZE + n * 512 % (PAGE_SIZE - a->piece);
}

static void fill(struct world *w, const struct area *a, u32 seed)
{
	unsigned int n;

	for (n = 0; n < a->len / a->piece; n++)
		kd_fill(segment(w, a, n), a->piece, seed + n);
}

/* Return how many pieces of @a were filled with @seed. */
static unsigned int count(struct world *w, const struct area *a, u32 seed)
{
	unsigned int n, same = 0;

	for (n = 0; n < a->len / a->piece; n++) {
		const u8 *at = segment(w, a, n);

		same += seed ? kd_has_pattern(at, a->piece, seed + n) :
			       !memchr_inv(at, 0, a->piece);
	}
	return same;
}

static void io_ended(struct bio *bio)
{
	complete(bio->bi_private);
}

/* Submit a request; @a may be NULL. Return 0, or the error that it ended with. */
static int submit(struct world *w, struct block_device *bdev, const struct area *a,
		  blk_opf_t opf)
{
	unsigned int n, pieces = a ? a->len / a->piece : 0;
	DECLARE_COMPLETION_ONSTACK(ended);
	struct bio *bio;
	int err;

	bio = bio_alloc(bdev, max(pieces, 1U), opf, GFP_KERNEL);
	for (n = 0; n < pieces; n++) {
		u8 *at = segment(w, a, n);

		KUNIT_EXPECT_EQ(w->test, bio_add_page(bio, virt_to_page(at), a->piece,
						      offset_in_page(at)), a->piece);
	}
	bio->bi_iter.bi_sector = a ? a->sector : 0;
	bio->bi_end_io = io_ended;
	bio->bi_private = &ended;
	submit_bio(bio);
	if (!wait_for_completion_timeout(&ended, msecs_to_jiffies(KD_TIMEOUT_MS))) {
		KUNIT_FAIL(w->test, "%s: a %s does not end", w->what,
			   op_is_write(opf) ? "write" : "read");
		/* Its completion is on this stack. */
		wait_for_completion(&ended);
	}
	err = blk_status_to_errno(bio->bi_status);
	bio_put(bio);
	return err;
}

/* A read has ended well: the area has what it should have, which may be known now. */
static void check(struct world *w, struct area *a, const struct io *io)
{
	unsigned int pieces = a->len / a->piece;
	unsigned int old = count(w, a, a->seed), new = count(w, a, a->maybe);

	if (new == pieces)
		a->seed = a->maybe;
	else if (old == pieces)
		a->maybe = a->seed;
	else
		KUNIT_EXPECT_EQ_MSG(w->test, a->seed == a->maybe ? old : old + new, pieces,
				    "%s: wrong data after a %s", w->what, io->what);
}

static int do_io(struct world *w, struct block_device *bdev, const struct io *io)
{
	struct area *a = &w->areas[io->area];
	int err;

	switch (io->kind) {
	case READ_IO:
		memset(w->buf, 0x5a, LARGE);
		err = submit(w, bdev, a, REQ_OP_READ);
		if (!err)
			check(w, a, io);
		return err;
	case WRITE_IO:
		w->pattern += 16;
		a->maybe = w->pattern;
		fill(w, a, w->pattern);
		err = submit(w, bdev, a, REQ_OP_WRITE | REQ_SYNC | (io->fua ? REQ_FUA : 0));
		break;
	case ZERO_IO:
		if (a->maybe != a->seed)
			return 0;
		a->maybe = 0;
		err = blkdev_issue_zeroout(bdev, a->sector, a->len >> SECTOR_SHIFT,
					   GFP_KERNEL, 0);
		break;
	case DISCARD_IO:
		return blkdev_issue_discard(bdev, a->sector, a->len >> SECTOR_SHIFT,
					    GFP_KERNEL);
	default:
		return submit(w, bdev, NULL, REQ_OP_WRITE | REQ_PREFLUSH);
	}
	if (!err)
		a->seed = a->maybe;
	return err;
}

/* Allocate what requests need. */
void kdb_io_begin(struct world *w)
{
	memcpy(w->areas, fresh, sizeof(fresh));
	w->buf = kunit_kmalloc(w->test, LARGE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(w->test, w->buf);
}

/* Put the disk in a state that is known. Nothing fails. */
void kdb_io_fill(struct world *w, struct block_device *bdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ios); i++)
		if (ios[i].kind == WRITE_IO)
			KUNIT_EXPECT_EQ(w->test, 0, do_io(w, bdev, &ios[i]));
}

/* Make all requests; expect success if @whole. Return 0 or the first error number. */
int kdb_io_all(struct world *w, struct block_device *bdev, bool whole)
{
	int err, first = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ios); i++) {
		err = do_io(w, bdev, &ios[i]);
		if (err == -EOPNOTSUPP)
			continue;
		if (whole)
			KUNIT_EXPECT_EQ_MSG(w->test, err, 0, "after %s: %s", w->what,
					    ios[i].what);
		first = first ?: err;
	}
	return first;
}
