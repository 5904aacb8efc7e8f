// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that an administrator renames (contract I6, I8): the registry, notifiers and
 * open IAs follow.
 */
#include <linux/in.h>
#include <linux/module.h>
#include <dat/kdat_linux.h>
#include <dat/kdat_portal.h>
#include "plug.h"

#define NAME	"roce9"
#define IA	NAME "/1"

/* struct seen - what a notifier has seen */
struct seen {
	const char *ia;
	KDAT_NOTIFIER_HANDLE notifier;
	bool renamed;
};

/* Return whether the registry has an IA of this name. */
static bool is_registered(const char *ia)
{
	DAT_PROVIDER_INFO *info = kcalloc(16, sizeof(*info), GFP_KERNEL), *list[16];
	DAT_COUNT n = 0, i;
	bool found = false;

	for (i = 0; info && i < 16; i++)
		list[i] = &info[i];
	if (info && dat_registry_list_providers(16, &n, list) == DAT_SUCCESS)
		for (i = 0; i < n; i++)
			found |= !strcmp(info[i].ia_name, ia);
	kfree(info);
	return found;
}

static void look(DAT_PVOID data, DAT_COUNT what)
{
	struct seen *seen = data;

	if (what & KDAT_CHANGED_IAS && is_registered(IA) && !is_registered(seen->ia))
		WRITE_ONCE(seen->renamed, true);
}

static bool is_renamed(void *data)
{
	return READ_ONCE(((struct seen *)data)->renamed);
}

static void stop_looking(void *data)
{
	kdat_notifier_free(((struct seen *)data)->notifier);
}

/* A notifier tells of a new name when the registry has it. */
static void I8_told_of_a_rename(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct seen *seen = kunit_kzalloc(test, sizeof(*seen), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, seen);
	seen->ia = d->ia;
	KD_ASSERT_OK(test, kdat_notifier_create(look, seen, &seen->notifier));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stop_looking, seen));
	kd_rename(test, IA);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(is_renamed, seen, KD_TIMEOUT_MS));
}

/* A new IA is opened by the new name only; of one that is open, queries tell the new name. */
static void I6_renamed_device(struct kunit *test)
{
	struct kd_side *a = kd_open_second(test), *p = kd_open_second(test);
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;

	KUNIT_ASSERT_NOT_NULL(test, attr);
	kd_setup(a, NULL);
	kd_setup(p, NULL);
	kd_rename(test, IA);
	KD_ASSERT_OK(test, dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL));
	KUNIT_EXPECT_STREQ(test, attr->adapter_name, NAME);
	KD_ASSERT_OK(test, kdat_ia_find(attr->ia_address_ptr, name));
	KUNIT_EXPECT_STREQ(test, name, IA);
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND, dat_ia_open((char *)a->name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_ia_open(IA, 8, &async, &ia));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	kd_connect_pair(a, p);
	kd_ping(a, p);
}

/* The number of an IA stays, and leads to the name that it has. */
static void I8_number_of_a_renamed_device(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test), *same = kd_open_second(test);
	struct kd_side *other = kd_open(test, kd_bed_of(s->name)->ia);
	char name[DAT_NAME_MAX_LENGTH];
	DAT_UINT64 id, id2, id3;

	KD_ASSERT_OK(test, kdat_ia_id(s->ia, &id));
	KD_ASSERT_OK(test, kdat_ia_id(same->ia, &id2));
	KD_ASSERT_OK(test, kdat_ia_id(other->ia, &id3));
	KUNIT_EXPECT_NE(test, id, 0);
	KUNIT_EXPECT_EQ(test, id, id2);
	KUNIT_EXPECT_NE(test, id, id3);
	KD_ASSERT_OK(test, kdat_ia_name(id, name));
	KUNIT_EXPECT_STREQ(test, name, s->name);
	kd_rename(test, IA);
	KD_ASSERT_OK(test, kdat_ia_name(id, name));
	KUNIT_EXPECT_STREQ(test, name, IA);
	/* Without an open IA as well. */
	kd_close(s);
	kd_close(same);
	KD_ASSERT_OK(test, kdat_ia_name(id, name));
	KUNIT_EXPECT_STREQ(test, name, IA);
}

/* A device that has left has a name as long as an IA is open, and its number never again. */
static void I8_number_of_a_device_that_left(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test), *later;
	char name[DAT_NAME_MAX_LENGTH] = "";
	DAT_UINT64 id, id2;

	KD_ASSERT_OK(test, kdat_ia_id(s->ia, &id));
	kd_unplug(test);
	KD_EXPECT_OK(test, kdat_ia_name(id, name));
	KUNIT_EXPECT_STREQ(test, name, s->name);
	KD_EXPECT_OK(test, kdat_ia_id(s->ia, &id2));
	KUNIT_EXPECT_EQ(test, id, id2);
	kd_plug(test);
	later = kd_open_second(test);
	KD_ASSERT_OK(test, kdat_ia_id(later->ia, &id2));
	KUNIT_EXPECT_NE(test, id, id2);
}

/* A device that comes back is known by its GUID, and not taken for one with another. */
static void I8_again_under_another_name(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	char name[DAT_NAME_MAX_LENGTH], was[DAT_NAME_MAX_LENGTH];
	KDAT_IA_IDENT ident;

	KD_ASSERT_OK(test, kdat_ia_identify(s->ia, &ident));
	KUNIT_EXPECT_NE(test, ident.guid, 0);
	strscpy(was, s->name, sizeof(was));
	strscpy(name, was, sizeof(name));
	KD_EXPECT_OK(test, kdat_ia_again(&ident, name));
	KUNIT_EXPECT_STREQ(test, name, was);
	kd_close(s);
	kd_unplug(test);
	KUNIT_EXPECT_EQ(test, kdat_ia_again(&ident, name),
			DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	KUNIT_EXPECT_STREQ(test, name, was);
	kd_plug_as(test, IA);
	KD_EXPECT_OK(test, kdat_ia_again(&ident, name));
	KUNIT_EXPECT_STREQ(test, name, IA);
}

static void I8_replaced_by_another(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	char name[DAT_NAME_MAX_LENGTH];
	KDAT_IA_IDENT ident, now;

	KD_ASSERT_OK(test, kdat_ia_identify(s->ia, &ident));
	strscpy(name, s->name, sizeof(name));
	kd_close(s);
	kd_unplug(test);
	kd_set_guid(test);
	kd_plug(test);
	KUNIT_EXPECT_EQ(test, kdat_ia_again(&ident, name),
			DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	s = kd_open_second(test);
	KD_ASSERT_OK(test, kdat_ia_identify(s->ia, &now));
	KUNIT_EXPECT_NE(test, now.guid, ident.guid);
	KD_EXPECT_OK(test, kdat_ia_again(&now, name));
	KUNIT_EXPECT_STREQ(test, name, s->name);
}

/*
 * Two devices have one GUID: the number decides, then the name, and if neither does, it is not
 * guessed. Without a GUID it is the number alone.
 */
static void I8_two_of_one_guid(struct kunit *test)
{
	struct kd_side *s = kd_open_second(test);
	const char *twin = kd_bed_of(s->name)->ia;
	char name[DAT_NAME_MAX_LENGTH];
	KDAT_IA_IDENT ident, now;

	kd_close(s);
	kd_unplug(test);
	kd_set_guid_of(test, twin);
	kd_plug(test);
	s = kd_open_second(test);
	KD_ASSERT_OK(test, kdat_ia_identify(s->ia, &now));
	s = kd_open(test, twin);
	KD_ASSERT_OK(test, kdat_ia_identify(s->ia, &ident));
	KUNIT_ASSERT_EQ(test, ident.guid, now.guid);
	strscpy(name, "nobody", sizeof(name));
	KD_EXPECT_OK(test, kdat_ia_again(&now, name));
	KUNIT_EXPECT_STREQ(test, name, ((const struct kd_second *)test->param_value)->ia);
	ident.id = 0;
	strscpy(name, twin, sizeof(name));
	KD_EXPECT_OK(test, kdat_ia_again(&ident, name));
	KUNIT_EXPECT_STREQ(test, name, twin);
	strscpy(name, "nobody", sizeof(name));
	KD_EXPECT_RET(test, DAT_PROVIDER_NOT_FOUND, kdat_ia_again(&ident, name));
	KUNIT_EXPECT_STREQ(test, name, "nobody");
	now.guid = 0;
	KD_EXPECT_OK(test, kdat_ia_again(&now, name));
	KUNIT_EXPECT_STREQ(test, name, ((const struct kd_second *)test->param_value)->ia);
}

static void I8_name_arguments(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	char name[DAT_NAME_MAX_LENGTH];
	KDAT_IA_IDENT ident = {};
	DAT_UINT64 id;

	KUNIT_EXPECT_EQ(test, kdat_ia_id(s->ia, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_ia_id((DAT_IA_HANDLE)s->async_evd, &id),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	KD_ASSERT_OK(test, kdat_ia_id(s->ia, &id));
	KUNIT_EXPECT_EQ(test, kdat_ia_name(id, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_ia_name(0, name),
			DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
	KUNIT_EXPECT_EQ(test, kdat_ia_identify(s->ia, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, kdat_ia_identify((DAT_IA_HANDLE)s->async_evd, &ident),
			DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
	KUNIT_EXPECT_EQ(test, kdat_ia_again(NULL, name),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	KUNIT_EXPECT_EQ(test, kdat_ia_again(&ident, NULL),
			DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
}

static struct kunit_case rename_cases[] = {
	KUNIT_CASE_PARAM(I8_told_of_a_rename, kd_gen_second),
	KUNIT_CASE_PARAM(I6_renamed_device, kd_gen_second),
	KUNIT_CASE_PARAM(I8_number_of_a_renamed_device, kd_gen_second),
	KUNIT_CASE_PARAM(I8_number_of_a_device_that_left, kd_gen_second),
	KUNIT_CASE_PARAM(I8_again_under_another_name, kd_gen_second),
	KUNIT_CASE_PARAM(I8_replaced_by_another, kd_gen_second),
	KUNIT_CASE_PARAM(I8_two_of_one_guid, kd_gen_second),
	KUNIT_CASE_PARAM(I8_name_arguments, kd_gen_ia),
	{}
};

KD_SUITE("kdapl-rename", rename_cases, "devices that are renamed",
	 .init = kd_plug_init);
