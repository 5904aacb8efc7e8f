// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* <dat/kdat_portal.h>: portals, and the adapters that come and go under them. */
#include <linux/inet.h>
#include <linux/module.h>
#include <net/net_namespace.h>
#include "shell.h"
#include "shop.h"

#define IA	"roce9/1"
/* An address that no device of the test bed has. */
#define ADDRESS	"10.8.79.1"

/* ---- Portals and adapters --------------------------------------------------------- */

static void count_adapter(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	int *n = data;

	(*n)++;
}

static int adapters_of(struct shop *s)
{
	int n = 0;

	kdat_server_adapters(s->server, count_adapter, &n);
	return n;
}

/* Portals of any kind are served by one adapter, which stays until the last connection. */
static void portals_share_an_adapter(struct kunit *test)
{
	struct shop *s = shop_make(test);
	KDAT_PORTAL_HANDLE first;
	char name[64];

	KD_ASSERT_OK(test, shop_listen_at_address(s));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	snprintf(name, sizeof(name), "%pIS:", &s->in);
	KUNIT_EXPECT_TRUE_MSG(test, str_has_prefix(s->host.name, name), "%s", s->host.name);
	first = s->portal;
	s->port = kd_port();
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	KUNIT_EXPECT_EQ(test, s->opened, 1);
	KUNIT_EXPECT_EQ(test, adapters_of(s), 1);
	kd_connect_start(s->peer, s->peer, s->port);
	kd_expect_event(test, s->peer->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	kdat_portal_free(first);
	kdat_portal_free(s->portal);
	KUNIT_EXPECT_EQ(test, s->listens, 0);
	KUNIT_EXPECT_EQ(test, adapters_of(s), 1);
	shop_clear(s);
	shop_expect_soon(s, shop_all_are_closed);
	KUNIT_EXPECT_EQ(test, adapters_of(s), 0);
}

static void portals_have_adapters_of_their_own(struct kunit *test)
{
	struct shop *s = shop_make(test);

	kdat_server_free(s->server);
	s->attr.exclusive = DAT_TRUE;
	KD_ASSERT_OK(test, kdat_server_create(&s->attr, &s->server));
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	s->port = kd_port();
	s->in.sin_port = htons(s->port);
	KD_ASSERT_OK(test, shop_listen_at_address(s));
	KUNIT_EXPECT_EQ(test, s->opened, 2);
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
}

/* The wildcard of IPv6 is for IPv4 too, unless it is not to be, or somebody listens there. */
static void portal_at_any_address(struct kunit *test)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	struct shop *s = shop_make(test);
	KDAT_PORTAL_ATTR attr = { .context = s };
	KDAT_PORTAL_HANDLE four;

	any6.sin6_port = htons(s->port);
	any4.sin_port = htons(s->port);
	attr.address = (struct sockaddr *)&any6;
	KD_ASSERT_OK(test, kdat_portal_create(s->server, &attr, &s->portal));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	kdat_portal_free(s->portal);
	attr.only_v6 = DAT_TRUE;
	KD_ASSERT_OK(test, kdat_portal_create(s->server, &attr, &s->portal));
	KUNIT_EXPECT_FALSE(test, shop_reaches(s));
	attr.address = (struct sockaddr *)&any4;
	KD_ASSERT_OK(test, kdat_portal_create(s->server, &attr, &four));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	kdat_portal_free(s->portal);
	attr.address = (struct sockaddr *)&any6;
	attr.only_v6 = DAT_FALSE;
	KD_ASSERT_OK(test, kdat_portal_create(s->server, &attr, &s->portal));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	/* Nothing tells that the port is free now. */
	kdat_portal_free(four);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

/* Somebody else has the port: the portal is not made, or waits if it listens elsewhere. */
static void portal_whose_port_is_in_use(struct kunit *test)
{
	struct shop *s = shop_make(test);
	DAT_PSP_HANDLE psp = kd_psp(s->peer, s->port, DAT_PSP_CONSUMER_FLAG);

	KD_EXPECT_RET(test, DAT_PORT_IN_USE, shop_listen_on_ia(s));
	KD_EXPECT_RET(test, DAT_PORT_IN_USE, shop_listen_at_address(s));
	KUNIT_EXPECT_NULL(test, s->portal);
	shop_expect_soon(s, shop_all_are_closed);
	s->in.sin_addr.s_addr = 0;
	KD_ASSERT_OK(test, shop_listen_at_address(s));
	s->in.sin_addr = ((struct sockaddr_in *)s->peer->addr)->sin_addr;
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

static void portal_whose_adapter_is_refused(struct kunit *test)
{
	struct shop *s = shop_make(test);

	s->refuse = true;
	KD_EXPECT_RET(test, DAT_INTERNAL_ERROR, shop_listen_on_ia(s));
	KUNIT_EXPECT_EQ(test, s->opened, 1);
	KUNIT_EXPECT_EQ(test, s->closed, 1);
}

/* Return whether the portal was made for want of nothing, with the @nth allocation failing. */
static bool made_with_fault(struct shop *s, unsigned int nth)
{
	DAT_RETURN ret;
	bool fired = false;

#ifdef CONFIG_FAULT_INJECTION
	current->fail_nth = nth;
#endif
	ret = shop_listen_on_ia(s);
#ifdef CONFIG_FAULT_INJECTION
	fired = !current->fail_nth;
	current->fail_nth = 0;
#endif
	if (ret != DAT_SUCCESS) {
		KUNIT_EXPECT_TRUE(s->test, fired);
		KUNIT_EXPECT_NULL(s->test, s->portal);
		KUNIT_EXPECT_EQ(s->test, s->listens, 0);
	} else {
		/* What was short is got later, or was not needed. */
		shop_expect_soon(s, shop_is_open);
		kdat_portal_free(s->portal);
		s->portal = NULL;
	}
	shop_expect_soon(s, shop_all_are_closed);
	KUNIT_EXPECT_EQ(s->test, adapters_of(s), 0);
	return !fired;
}

/* Each allocation fails once; of the many for the buffers, some. */
static void portal_without_memory(struct kunit *test)
{
	struct shop *s = shop_make(test);
	unsigned int nth;

	for (nth = 1; !made_with_fault(s, nth) && nth < 5000; nth += 1 + nth / 16)
		;
	KUNIT_EXPECT_LT(test, nth, 5000);
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
}

static void portal_arguments(struct kunit *test)
{
	struct shop *s = shop_make(test);
	KDAT_PORTAL_ATTR attr = { .ia_name = shop_ia_of(test), .port = s->port }, bad = attr;
	KDAT_SERVER_ATTR none = s->attr;
	KDAT_PORTAL_HANDLE portal = NULL;
	KDAT_SERVER_HANDLE server = NULL;

	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(NULL, &attr, &portal));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(s->server, NULL, &portal));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(s->server, &attr, NULL));
	bad.port = 0;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(s->server, &bad, &portal));
	bad = attr;
	bad.ia_name = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(s->server, &bad, &portal));
	s->in.sin_port = 0;
	bad.address = (struct sockaddr *)&s->in;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_portal_create(s->server, &bad, &portal));
	s->in.sin_family = AF_UNIX;
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS, kdat_portal_create(s->server, &bad, &portal));
	bad.net = (struct net *)s;
	KD_EXPECT_RET(test, DAT_MODEL_NOT_SUPPORTED,
		      kdat_portal_create(s->server, &bad, &portal));
	KUNIT_EXPECT_NULL(test, portal);
	kdat_portal_free(NULL);
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_server_create(NULL, &server));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_server_create(&none, NULL));
	none.event = NULL;
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_server_create(&none, &server));
	KUNIT_EXPECT_NULL(test, server);
	kdat_server_free(NULL);
}

/* ---- Adapters that come and go ---------------------------------------------------- */

/* Open the side of the case anew, whose device was away. */
static void peer_again(struct shop *s)
{
	s->peer = kd_open_second(s->test);
	kd_setup(s->peer, NULL);
}

/* The adapter comes, for the @opened-th time that it is opened, and both portals are on it. */
static void expect_back(struct shop *s, int opened)
{
	struct kunit *test = s->test;

	kd_plug(test);
	peer_again(s);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
	s->port = ntohs(s->in.sin_port);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, s->opened, opened);
}

static void adapter_comes_late(struct kunit *test)
{
	struct shop *s = shop_make(test);

	kd_close(s->peer);
	kd_unplug(test);
	KD_ASSERT_OK(test, shop_listen_at_address(s));
	s->port = kd_port();
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	KUNIT_EXPECT_EQ(test, s->listens, 0);
	expect_back(s, 1);
}

/* The adapter of an open connection stays until that is freed. A portal has the next one. */
static void adapter_leaves_and_returns(struct kunit *test)
{
	struct shop *s = shop_make(test);
	struct shop_conn old;

	KD_ASSERT_OK(test, shop_listen_at_address(s));
	s->port = kd_port();
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	kd_connect_start(s->peer, s->peer, s->port);
	kd_expect_event(test, s->peer->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
	kd_unplug(test);
	shop_expect_soon(s, shop_is_deaf);
	kd_close(s->peer);
	KUNIT_EXPECT_EQ(test, s->closed, 0);
	old = s->conns[--s->nconns];
	expect_back(s, 2);
	KUNIT_EXPECT_EQ(test, s->closed, 0);
	s->conns[s->nconns++] = old;
	shop_clear(s);
	shop_expect_soon(s, shop_one_is_closed);
}

static void adapter_leaves_while_it_is_opened(struct kunit *test)
{
	struct shop *s = shop_make(test);

	kd_close(s->peer);
	kd_unplug_at_pd(test);
	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	kd_expect_unplugged(test);
	KUNIT_EXPECT_EQ(test, s->listens, 0);
	kd_plug(test);
	peer_again(s);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

static void name_of(KDAT_ADAPTER *adapter, DAT_PVOID data)
{
	strscpy(data, adapter->name, DAT_NAME_MAX_LENGTH);
}

static bool is_renamed(void *data)
{
	struct shop *s = data;
	char name[DAT_NAME_MAX_LENGTH] = "";

	kdat_server_adapters(s->server, name_of, name);
	return !strcmp(name, IA);
}

/* A portal goes on, and knows the device again when that has left, whatever its name. */
static void adapter_is_renamed(struct kunit *test)
{
	struct shop *s = shop_make(test);

	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	kd_rename(test, IA);
	shop_expect_soon(s, is_renamed);
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	KUNIT_EXPECT_EQ(test, s->opened, 1);
	kd_close(s->peer);
	KUNIT_ASSERT_EQ(test, 0, shell("rdma link delete roce9"));
	shop_expect_soon(s, shop_is_deaf);
	kd_plug(test);
	peer_again(s);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

static void adapter_returns_under_another_name(struct kunit *test)
{
	struct shop *s = shop_make(test);

	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	KUNIT_EXPECT_TRUE(test, shop_reaches(s));
	kd_close(s->peer);
	kd_unplug(test);
	shop_expect_soon(s, shop_is_deaf);
	kd_plug_as(test, IA);
	shop_expect_soon(s, is_renamed);
	s->peer = kd_open(test, IA);
	kd_setup(s->peer, NULL);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(test, s->listens, 1);
}

/* One with another GUID has the name: it is as good as the former one. */
static void adapter_is_replaced(struct kunit *test)
{
	struct shop *s = shop_make(test);

	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	kd_close(s->peer);
	kd_unplug(test);
	shop_expect_soon(s, shop_is_deaf);
	kd_set_guid(test);
	kd_plug(test);
	peer_again(s);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

/* ---- Addresses -------------------------------------------------------------------- */

/* Add ADDRESS to the network device of @ia, or delete it. */
static void address(struct kunit *test, const char *what, const char *netdev)
{
	char line[96];

	snprintf(line, sizeof(line), "ip addr %s " ADDRESS "/32 dev %s", what, netdev);
	KUNIT_ASSERT_EQ(test, 0, shell(line));
}

static void address_end(void *unused)
{
	shell("ip addr flush to " ADDRESS);
}

static bool is_on_first(void *data)
{
	struct shop *s = data;
	KDAT_ADAPTER *a = READ_ONCE(s->place);

	return a && !strcmp(a->name, kd_bed_of(shop_ia_of(s->test))->ia);
}

/* The address comes after its portal, goes, and moves to another adapter. */
static void address_comes_and_moves(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	const char *netdev = strrchr(d->add, ' ') + 1, *other = kd_bed_of(d->ia)->netdev;
	struct shop *s = shop_make(test);

	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, address_end, NULL));
	s->in.sin_addr.s_addr = in_aton(ADDRESS);
	KD_ASSERT_OK(test, shop_listen_at_address(s));
	KUNIT_EXPECT_EQ(test, s->listens, 0);
	address(test, "add", netdev);
	shop_expect_soon(s, shop_is_open);
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
	address(test, "del", netdev);
	shop_expect_soon(s, shop_is_deaf);
	shop_expect_soon(s, shop_all_are_closed);
	address(test, "add", other);
	shop_expect_soon(s, is_on_first);
}

/* A port that goes down and comes up again: whoever listens still does. */
static void port_goes_down_and_up(struct kunit *test)
{
	const struct kd_second *d = test->param_value;
	struct shop *s = shop_make(test);
	char line[96];

	KD_ASSERT_OK(test, shop_listen_on_ia(s));
	snprintf(line, sizeof(line), "ip link set %s down && ip link set %s up",
		 strrchr(d->add, ' ') + 1, strrchr(d->add, ' ') + 1);
	KUNIT_ASSERT_EQ(test, 0, shell(line));
	KUNIT_EXPECT_TRUE(test, kd_wait_until(shop_reaches, s, KD_TIMEOUT_MS));
}

/* ---- The end ---------------------------------------------------------------------- */

/* A server is freed while a portal waits, shop_is_open, or is refused, and at once. */
static void server_ends(struct kunit *test)
{
	struct shop *s = shop_make(test);
	DAT_PSP_HANDLE psp;
	int state;

	for (state = 0; state < 4; state++) {
		s->in.sin_addr = ((struct sockaddr_in *)s->peer->addr)->sin_addr;
		psp = NULL;
		if (state == 1)
			KD_EXPECT_OK(test, shop_listen_on_ia(s));
		if (state == 2)
			s->in.sin_addr.s_addr = in_aton(ADDRESS);
		if (state == 3) {
			psp = kd_psp(s->peer, s->port, DAT_PSP_CONSUMER_FLAG);
			s->in.sin_addr.s_addr = 0;
		}
		if (state > 1)
			KD_EXPECT_OK(test, shop_listen_at_address(s));
		kdat_server_free(s->server);
		KUNIT_EXPECT_EQ(test, s->opened, s->closed);
		if (psp)
			KD_EXPECT_OK(test, dat_psp_free(psp));
		s->server = NULL;
		KD_ASSERT_OK(test, kdat_server_create(&s->attr, &s->server));
	}
}

static struct kunit_case portal_cases[] = {
	KUNIT_CASE_PARAM(portals_share_an_adapter, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portals_have_adapters_of_their_own, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portal_at_any_address, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portal_whose_port_is_in_use, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portal_whose_adapter_is_refused, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portal_without_memory, kd_gen_any_ia),
	KUNIT_CASE_PARAM(portal_arguments, kd_gen_any_ia),
	KUNIT_CASE_PARAM(server_ends, kd_gen_any_ia),
	KUNIT_CASE_PARAM(adapter_comes_late, kd_gen_second),
	KUNIT_CASE_PARAM(adapter_leaves_and_returns, kd_gen_second),
	KUNIT_CASE_PARAM(adapter_leaves_while_it_is_opened, kd_gen_second),
	KUNIT_CASE_PARAM(adapter_is_renamed, kd_gen_second),
	KUNIT_CASE_PARAM(adapter_returns_under_another_name, kd_gen_second),
	KUNIT_CASE_PARAM(adapter_is_replaced, kd_gen_second),
	KUNIT_CASE_PARAM(address_comes_and_moves, kd_gen_second),
	KUNIT_CASE_PARAM(port_goes_down_and_up, kd_gen_second),
	{}
};

KD_SUITE("kdapl-portal", portal_cases, "portals, and adapters that come and go",
	 .init = kd_plug_init);
