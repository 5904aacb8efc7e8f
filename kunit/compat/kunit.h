/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of KUnit's interface that these suites use, for kernels without
 * KUnit, such as those of distributions. The suites run there unchanged.
 * Results are in the same file as KUnit's,
 * /sys/kernel/debug/kunit/<suite>/results.
 *
 * Implemented in runner.c, kdapl_selftest.ko. A case runs in a thread of its
 * own; an assertion that fails ends the thread.
 */
#ifndef KDAPL_SELFTEST_KUNIT_H
#define KDAPL_SELFTEST_KUNIT_H

#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/types.h>

#define KUNIT_PARAM_DESC_SIZE	128

enum kunit_status {
	KUNIT_SUCCESS,
	KUNIT_FAILURE,
	KUNIT_SKIPPED,
};

struct completion;
struct dentry;
struct kunit_suite;

typedef void kunit_action_t(void *data);

struct kunit {
	struct kunit_suite *suite;
	const char *name;
	void *priv;
	const void *param_value;
	enum kunit_status status;
	char comment[256];
	struct completion *done;
	spinlock_t lock;		/* protects actions */
	struct list_head actions;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

/* The last two members are the runner's. */
struct kunit_suite {
	const char name[256];
	int (*suite_init)(struct kunit_suite *suite);
	void (*suite_exit)(struct kunit_suite *suite);
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
	struct dentry *dir;
	struct selftest_log *log;
};

int selftest_run(struct kunit_suite **suites);
void selftest_remove(struct kunit_suite **suites);
__printf(2, 3) void selftest_print(struct kunit *test, const char *fmt, ...);
__printf(5, 6) void selftest_failed(struct kunit *test, const char *file,
				    int line, const char *what,
				    const char *fmt, ...);
__printf(2, 3) void selftest_skip(struct kunit *test, const char *fmt, ...);
void selftest_abort(struct kunit *test);
int kunit_add_action_or_reset(struct kunit *test, kunit_action_t *action,
			      void *data);
void kunit_release_action(struct kunit *test, kunit_action_t *action,
			  void *data);
void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t gfp);

static inline void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t gfp)
{
	return kunit_kmalloc(test, size, gfp | __GFP_ZERO);
}

static inline void *kunit_kcalloc(struct kunit *test, size_t n, size_t size,
				  gfp_t gfp)
{
	return kunit_kzalloc(test, n * size, gfp);
}

static inline char *kunit_kstrdup(struct kunit *test, const char *s, gfp_t gfp)
{
	size_t len = strlen(s) + 1;
	char *copy = kunit_kmalloc(test, len, gfp);

	return copy ? memcpy(copy, s, len) : NULL;
}

#define kunit_info(test, fmt, ...)	selftest_print(test, fmt, ##__VA_ARGS__)

#define kunit_skip(test, fmt, ...)					\
do {									\
	selftest_skip(test, fmt, ##__VA_ARGS__);			\
	selftest_abort(test);						\
} while (0)

/* ---- Suites -------------------------------------------------------------- */

#define KUNIT_CASE(f)		{ .run_case = f, .name = #f }
#define KUNIT_CASE_SLOW(f)	KUNIT_CASE(f)
#define KUNIT_CASE_PARAM(f, gen) \
	{ .run_case = f, .name = #f, .generate_params = gen }
#define KUNIT_CASE_PARAM_ATTR(f, gen, ...)	KUNIT_CASE_PARAM(f, gen)

#define KUNIT_ARRAY_PARAM_NEXT(array, prev)				\
	((prev) ? (typeof(&(array)[0]))(prev) + 1 : (array))

#define KUNIT_ARRAY_PARAM(name, array, get_desc)			\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof(&(array)[0]) next = KUNIT_ARRAY_PARAM_NEXT(array, prev);	\
	void (*describe)(typeof(next), char *) = get_desc;		\
									\
	if (next >= (array) + ARRAY_SIZE(array))			\
		return NULL;						\
	if (describe)							\
		describe(next, desc);					\
	return next;							\
}

#define KUNIT_ARRAY_PARAM_DESC(name, array, member)			\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof(&(array)[0]) next = KUNIT_ARRAY_PARAM_NEXT(array, prev);	\
									\
	if (next >= (array) + ARRAY_SIZE(array))			\
		return NULL;						\
	strscpy(desc, next->member, KUNIT_PARAM_DESC_SIZE);		\
	return next;							\
}

#define kunit_test_suites(...)						\
static struct kunit_suite *selftest_suites[] = { __VA_ARGS__, NULL };	\
static int __init selftest_init(void)					\
{									\
	return selftest_run(selftest_suites);				\
}									\
module_init(selftest_init);						\
static void __exit selftest_exit(void)					\
{									\
	selftest_remove(selftest_suites);				\
}									\
module_exit(selftest_exit)

#define kunit_test_suite(suite)	kunit_test_suites(&(suite))

/* ---- Expectations and assertions ----------------------------------------- */

#define SELFTEST_EXPECT(test, ok, what, fmt, ...) \
	((ok) ? (void)0 : selftest_failed(test, __FILE__, __LINE__, what, \
					  fmt, ##__VA_ARGS__))

#define SELFTEST_ASSERT(test, ok, what, fmt, ...)			\
do {									\
	if (!(ok)) {							\
		selftest_failed(test, __FILE__, __LINE__, what, fmt,	\
				##__VA_ARGS__);				\
		selftest_abort(test);					\
	}								\
} while (0)

#define SELFTEST_COMPARE(kind, test, a, op, b, fmt, ...)		\
do {									\
	typeof(a) __a = (a);						\
	typeof(b) __b = (b);						\
									\
	SELFTEST_##kind(test, __a op __b, #a " " #op " " #b,		\
			"%lld, %lld " fmt, (long long)__a,		\
			(long long)__b, ##__VA_ARGS__);			\
} while (0)

#define SELFTEST_POINTERS(kind, t, a, op, b, ...)			\
	SELFTEST_##kind(t, (const void *)(a) op (const void *)(b),	\
			#a " " #op " " #b, __VA_ARGS__)

#define SELFTEST_STRINGS(kind, t, a, op, b, fmt, ...)			\
	SELFTEST_##kind(t, strcmp(a, b) op 0, #a " " #op " " #b,	\
			"\"%s\", \"%s\" " fmt, a, b, ##__VA_ARGS__)

#define SELFTEST_BYTES(kind, t, a, op, b, len, ...)			\
	SELFTEST_##kind(t, memcmp(a, b, len) op 0, #a " " #op " " #b,	\
			__VA_ARGS__)

#define KUNIT_EXPECT_TRUE(t, c) SELFTEST_EXPECT(t, c, #c, " ")
#define KUNIT_EXPECT_FALSE(t, c) SELFTEST_EXPECT(t, !(c), "!" #c, " ")
#define KUNIT_EXPECT_EQ(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, ==, b, " ")
#define KUNIT_EXPECT_NE(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, !=, b, " ")
#define KUNIT_EXPECT_LT(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, <, b, " ")
#define KUNIT_EXPECT_LE(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, <=, b, " ")
#define KUNIT_EXPECT_GT(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, >, b, " ")
#define KUNIT_EXPECT_GE(t, a, b) SELFTEST_COMPARE(EXPECT, t, a, >=, b, " ")
#define KUNIT_EXPECT_PTR_EQ(t, a, b) SELFTEST_POINTERS(EXPECT, t, a, ==, b, " ")
#define KUNIT_EXPECT_PTR_NE(t, a, b) SELFTEST_POINTERS(EXPECT, t, a, !=, b, " ")
#define KUNIT_EXPECT_NULL(t, p) SELFTEST_POINTERS(EXPECT, t, p, ==, NULL, " ")
#define KUNIT_EXPECT_NOT_NULL(t, p) \
	SELFTEST_POINTERS(EXPECT, t, p, !=, NULL, " ")
#define KUNIT_EXPECT_NOT_ERR_OR_NULL(t, p) \
	SELFTEST_EXPECT(t, !IS_ERR_OR_NULL(p), #p, " ")
#define KUNIT_EXPECT_STREQ(t, a, b) SELFTEST_STRINGS(EXPECT, t, a, ==, b, " ")
#define KUNIT_EXPECT_STRNEQ(t, a, b) SELFTEST_STRINGS(EXPECT, t, a, !=, b, " ")
#define KUNIT_EXPECT_MEMEQ(t, a, b, n) \
	SELFTEST_BYTES(EXPECT, t, a, ==, b, n, " ")
#define KUNIT_EXPECT_MEMNEQ(t, a, b, n) \
	SELFTEST_BYTES(EXPECT, t, a, !=, b, n, " ")

#define KUNIT_EXPECT_TRUE_MSG(t, c, ...) SELFTEST_EXPECT(t, c, #c, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE_MSG(t, c, ...) \
	SELFTEST_EXPECT(t, !(c), "!" #c, __VA_ARGS__)
#define KUNIT_EXPECT_EQ_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_NE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_LT_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, <, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_GT_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, >, b, __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(EXPECT, t, a, >=, b, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_EQ_MSG(t, a, b, ...) \
	SELFTEST_POINTERS(EXPECT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_NE_MSG(t, a, b, ...) \
	SELFTEST_POINTERS(EXPECT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_NULL_MSG(t, p, ...) \
	SELFTEST_POINTERS(EXPECT, t, p, ==, NULL, __VA_ARGS__)
#define KUNIT_EXPECT_NOT_NULL_MSG(t, p, ...) \
	SELFTEST_POINTERS(EXPECT, t, p, !=, NULL, __VA_ARGS__)
#define KUNIT_EXPECT_NOT_ERR_OR_NULL_MSG(t, p, ...) \
	SELFTEST_EXPECT(t, !IS_ERR_OR_NULL(p), #p, __VA_ARGS__)
#define KUNIT_EXPECT_STREQ_MSG(t, a, b, ...) \
	SELFTEST_STRINGS(EXPECT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_STRNEQ_MSG(t, a, b, ...) \
	SELFTEST_STRINGS(EXPECT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_MEMEQ_MSG(t, a, b, n, ...) \
	SELFTEST_BYTES(EXPECT, t, a, ==, b, n, __VA_ARGS__)
#define KUNIT_EXPECT_MEMNEQ_MSG(t, a, b, n, ...) \
	SELFTEST_BYTES(EXPECT, t, a, !=, b, n, __VA_ARGS__)

#define KUNIT_ASSERT_TRUE(t, c) SELFTEST_ASSERT(t, c, #c, " ")
#define KUNIT_ASSERT_FALSE(t, c) SELFTEST_ASSERT(t, !(c), "!" #c, " ")
#define KUNIT_ASSERT_EQ(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, ==, b, " ")
#define KUNIT_ASSERT_NE(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, !=, b, " ")
#define KUNIT_ASSERT_LT(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, <, b, " ")
#define KUNIT_ASSERT_LE(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, <=, b, " ")
#define KUNIT_ASSERT_GT(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, >, b, " ")
#define KUNIT_ASSERT_GE(t, a, b) SELFTEST_COMPARE(ASSERT, t, a, >=, b, " ")
#define KUNIT_ASSERT_PTR_EQ(t, a, b) SELFTEST_POINTERS(ASSERT, t, a, ==, b, " ")
#define KUNIT_ASSERT_PTR_NE(t, a, b) SELFTEST_POINTERS(ASSERT, t, a, !=, b, " ")
#define KUNIT_ASSERT_NULL(t, p) SELFTEST_POINTERS(ASSERT, t, p, ==, NULL, " ")
#define KUNIT_ASSERT_NOT_NULL(t, p) \
	SELFTEST_POINTERS(ASSERT, t, p, !=, NULL, " ")
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(t, p) \
	SELFTEST_ASSERT(t, !IS_ERR_OR_NULL(p), #p, " ")
#define KUNIT_ASSERT_STREQ(t, a, b) SELFTEST_STRINGS(ASSERT, t, a, ==, b, " ")
#define KUNIT_ASSERT_STRNEQ(t, a, b) SELFTEST_STRINGS(ASSERT, t, a, !=, b, " ")
#define KUNIT_ASSERT_MEMEQ(t, a, b, n) \
	SELFTEST_BYTES(ASSERT, t, a, ==, b, n, " ")
#define KUNIT_ASSERT_MEMNEQ(t, a, b, n) \
	SELFTEST_BYTES(ASSERT, t, a, !=, b, n, " ")

#define KUNIT_ASSERT_TRUE_MSG(t, c, ...) SELFTEST_ASSERT(t, c, #c, __VA_ARGS__)
#define KUNIT_ASSERT_FALSE_MSG(t, c, ...) \
	SELFTEST_ASSERT(t, !(c), "!" #c, __VA_ARGS__)
#define KUNIT_ASSERT_EQ_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_NE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_ASSERT_LT_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, <, b, __VA_ARGS__)
#define KUNIT_ASSERT_LE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, <=, b, __VA_ARGS__)
#define KUNIT_ASSERT_GT_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, >, b, __VA_ARGS__)
#define KUNIT_ASSERT_GE_MSG(t, a, b, ...) \
	SELFTEST_COMPARE(ASSERT, t, a, >=, b, __VA_ARGS__)
#define KUNIT_ASSERT_PTR_EQ_MSG(t, a, b, ...) \
	SELFTEST_POINTERS(ASSERT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_PTR_NE_MSG(t, a, b, ...) \
	SELFTEST_POINTERS(ASSERT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_ASSERT_NULL_MSG(t, p, ...) \
	SELFTEST_POINTERS(ASSERT, t, p, ==, NULL, __VA_ARGS__)
#define KUNIT_ASSERT_NOT_NULL_MSG(t, p, ...) \
	SELFTEST_POINTERS(ASSERT, t, p, !=, NULL, __VA_ARGS__)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL_MSG(t, p, ...) \
	SELFTEST_ASSERT(t, !IS_ERR_OR_NULL(p), #p, __VA_ARGS__)
#define KUNIT_ASSERT_STREQ_MSG(t, a, b, ...) \
	SELFTEST_STRINGS(ASSERT, t, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_STRNEQ_MSG(t, a, b, ...) \
	SELFTEST_STRINGS(ASSERT, t, a, !=, b, __VA_ARGS__)
#define KUNIT_ASSERT_MEMEQ_MSG(t, a, b, n, ...) \
	SELFTEST_BYTES(ASSERT, t, a, ==, b, n, __VA_ARGS__)
#define KUNIT_ASSERT_MEMNEQ_MSG(t, a, b, n, ...) \
	SELFTEST_BYTES(ASSERT, t, a, !=, b, n, __VA_ARGS__)

#define KUNIT_FAIL(t, ...)	SELFTEST_EXPECT(t, false, "fail", __VA_ARGS__)
#define KUNIT_FAIL_AND_ABORT(t, ...) \
	SELFTEST_ASSERT(t, false, "fail", __VA_ARGS__)

#endif /* KDAPL_SELFTEST_KUNIT_H */
