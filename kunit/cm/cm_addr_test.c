// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Addresses (contract N2, L5): IPv4 and IPv6, IAs with several of them, and what
 * events and queries say about them.
 */
#include <linux/fs.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <dat/kdat_linux.h>
#include "files.h"
#include "fixture.h"
#include "liar.h"
#include "shell.h"

#define TIMEOUT	(5 * USEC_PER_SEC)

/* Return an IPv4 address of the network of @s, see struct kd_bed. */
static struct sockaddr_in v4(struct kd_side *s, u8 host)
{
	kd_skip_own(s->test, KD_NEEDS_BED);
	return kd_bed_v4(s->name, host);
}

/* Return its IPv6 address. */
static struct sockaddr_in6 v6(struct kd_side *s)
{
	kd_skip_own(s->test, KD_NEEDS_BED);
	return kd_bed_v6(s->name);
}

static bool same_v6(DAT_IA_ADDRESS_PTR addr, const struct sockaddr_in6 *want)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	return addr && addr->sa_family == AF_INET6 &&
	       !memcmp(&in6->sin6_addr, &want->sin6_addr, 16);
}

static bool same_v4(DAT_IA_ADDRESS_PTR addr, const struct sockaddr_in *want)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	return addr && addr->sa_family == AF_INET &&
	       in->sin_addr.s_addr == want->sin_addr.s_addr;
}

static void connect_to(struct kd_pair *c, void *addr, u16 port)
{
	KD_ASSERT_OK(c->a->test, dat_ep_connect(c->a->ep, addr, port, TIMEOUT,
						0, NULL, DAT_QOS_BEST_EFFORT,
						0));
}

static DAT_CR_ARRIVAL_EVENT_DATA expect_request(struct kd_pair *c)
{
	DAT_EVENT event = { };

	kd_expect_event(c->p->test, c->p->cr_evd, DAT_CONNECTION_REQUEST_EVENT,
			&event);
	return event.event_data.cr_arrival_event_data;
}

/*
 * Expect that a request is refused because the peer listens on another address
 * only. The InfiniBand CM does not know addresses, so rdma_cm at the other end
 * rejects it as a consumer would.
 */
static void expect_nobody(struct kd_pair *c)
{
	DAT_EVENT event = { };

	KUNIT_ASSERT_TRUE(c->a->test, kd_wait_event(c->a->conn_evd, &event,
						    KD_TIMEOUT_MS));
	KUNIT_EXPECT_EQ(c->a->test, (u32)event.event_number,
			(u32)(kd_is_iwarp(c->a) ?
			      DAT_CONNECTION_EVENT_NON_PEER_REJECTED :
			      DAT_CONNECTION_EVENT_PEER_REJECTED));
	KD_ASSERT_OK(c->a->test, dat_ep_reset(c->a->ep));
	KUNIT_EXPECT_EQ(c->a->test, kd_drain(c->p->cr_evd), 0);
}

static void accept(struct kd_pair *c, DAT_CR_HANDLE cr)
{
	KD_ASSERT_OK(c->a->test, dat_cr_accept(cr, c->p->ep, 0, NULL));
	kd_expect_established(c->a, c->p);
}

static void ping_and_end(struct kd_pair *c)
{
	kd_ping(c->a, c->p);
	kd_disconnect(c->a, c->p);
	KD_ASSERT_OK(c->a->test, dat_ep_reset(c->a->ep));
	KD_ASSERT_OK(c->a->test, dat_ep_reset(c->p->ep));
}

static void ipv6(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in6 to = v6(c.p);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_EP_PARAM param;
	DAT_CR_PARAM cr;

	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	connect_to(&c, &to, port);
	req = expect_request(&c);
	KUNIT_EXPECT_TRUE(test, same_v6(req.local_ia_address_ptr, &to));
	KUNIT_EXPECT_EQ(test, req.conn_qual, port);
	KD_ASSERT_OK(test, dat_cr_query(req.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_EXPECT_TRUE(test, same_v6(cr.remote_ia_address_ptr, &to));
	KUNIT_EXPECT_NE(test, cr.remote_port_qual, 0);
	accept(&c, req.cr_handle);
	KD_ASSERT_OK(test, dat_ep_query(c.a->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_TRUE(test, same_v6(param.remote_ia_address_ptr, &to));
	KUNIT_EXPECT_TRUE(test, same_v6(param.local_ia_address_ptr, &to));
	KUNIT_EXPECT_EQ(test, param.remote_port_qual, port);
	KUNIT_EXPECT_EQ(test, param.local_port_qual, cr.remote_port_qual);
	KD_ASSERT_OK(test, dat_ep_query(c.p->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_TRUE(test, same_v6(param.remote_ia_address_ptr, &to));
	KUNIT_EXPECT_EQ(test, param.remote_port_qual, cr.remote_port_qual);
	KUNIT_EXPECT_EQ(test, param.local_port_qual, port);
	ping_and_end(&c);
}

static void L5_ipv6_private_data(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in6 to = v6(c.p);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_CR_PARAM cr;

	kd_fill(c.a->buf->va, c.a->max_pd, 1);
	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, dat_ep_connect(c.a->ep, (void *)&to,
					  port, TIMEOUT, c.a->max_pd,
					  c.a->buf->va, DAT_QOS_BEST_EFFORT,
					  0));
	req = expect_request(&c);
	KD_ASSERT_OK(test, dat_cr_query(req.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_ASSERT_GE(test, cr.private_data_size, c.a->max_pd);
	KUNIT_EXPECT_TRUE(test, kd_is_filled(cr.private_data, c.a->max_pd, 1));
	accept(&c, req.cr_handle);
}

/* One service point is reached by either family. */
static void both_families(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in6 six = v6(c.p);
	struct sockaddr_in four = v4(c.p, 1);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	int i;

	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < 4; i++) {
		connect_to(&c, i % 2 ? (void *)&six : (void *)&four, port);
		req = expect_request(&c);
		KUNIT_EXPECT_TRUE(test, i % 2 ?
				  same_v6(req.local_ia_address_ptr, &six) :
				  same_v4(req.local_ia_address_ptr, &four));
		accept(&c, req.cr_handle);
		ping_and_end(&c);
	}
}

/* A CSP on one address is not reached by another address. */
static void L5_csp_ipv6(struct kunit *test)
{
	DAT_COMM comm = { AF_INET6, SOCK_STREAM, IPPROTO_TCP };
	struct kd_pair c = kd_make_pair(test, NULL);
	struct sockaddr_in6 at = v6(c.p);
	struct sockaddr_in four = v4(c.p, 1);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	DAT_EP_PARAM param = { };
	DAT_CSP_HANDLE csp;
	u16 port = kd_port();

	at.sin6_port = htons(port);
	KD_ASSERT_OK(test, dat_csp_create(c.p->ia, &comm,
					  (void *)&at, c.p->cr_evd,
					  &csp));
	/* An EP is of one address family, by default IPv4. */
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS,
		      dat_ep_common_connect(c.a->ep, (void *)&at,
					    TIMEOUT, 0, NULL));
	connect_to(&c, &four, port);
	expect_nobody(&c);
	param.comm = comm;
	KD_ASSERT_OK(test, dat_ep_modify(c.a->ep, DAT_EP_FIELD_COMM, &param));
	KD_ASSERT_OK(test, dat_ep_common_connect(c.a->ep,
						 (void *)&at,
						 TIMEOUT, 0, NULL));
	req = expect_request(&c);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.csp_handle, csp);
	KUNIT_EXPECT_TRUE(test, same_v6(req.local_ia_address_ptr, &at));
	accept(&c, req.cr_handle);
	ping_and_end(&c);
}

/* ---- Addresses come and go ------------------------------------------------------- */

/* Add or delete 10.x.0.@host. */
static int change_address(struct kd_side *s, const char *how, int host)
{
	const struct kd_bed *bed = kd_bed_of(s->name);
	char line[64];

	kd_skip_own(s->test, KD_NEEDS_BED);
	snprintf(line, sizeof(line), "/sbin/ip addr %s 10.%d.0.%d/24 dev %s",
		 how, bed->net, host, bed->netdev);
	return shell(line);
}

static void remove_address(void *data)
{
	change_address(data, "del", 7);
}

/* Put the addresses back, in their order. */
static void restore_address(void *data)
{
	change_address(data, "del", 7);
	change_address(data, "add", 1);
}

struct listen {
	struct kd_side *p;
	struct sockaddr_in at;
	DAT_CSP_HANDLE csp;
};

/*
 * A RoCE device learns of a new address a little later, so listening is tried
 * again.
 */
static bool listens_there(void *data)
{
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	struct listen *l = data;

	return dat_csp_create(l->p->ia, &comm, (void *)&l->at,
			      l->p->cr_evd, &l->csp) == DAT_SUCCESS;
}

static void second_address(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct listen l = { .p = c.p, .at = v4(c.p, 7) };
	struct sockaddr_in one = v4(c.p, 1), two = v4(c.p, 7);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();

	if (change_address(c.p, "add", 7))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_address,
							   c.p));
	l.at.sin_port = htons(port);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(listens_there, &l,
					      KD_TIMEOUT_MS));
	/*
	 * First the CSP on the new address alone is reached, then a PSP on all
	 * addresses.
	 */
	connect_to(&c, &two, port);
	req = expect_request(&c);
	KUNIT_EXPECT_PTR_EQ(test, req.sp_handle.csp_handle, l.csp);
	accept(&c, req.cr_handle);
	ping_and_end(&c);
	connect_to(&c, &one, port);
	expect_nobody(&c);
	port = kd_port();
	kd_psp(c.p, port, DAT_PSP_CONSUMER_FLAG);
	connect_to(&c, &two, port);
	req = expect_request(&c);
	KUNIT_EXPECT_TRUE(test, same_v4(req.local_ia_address_ptr, &two));
	accept(&c, req.cr_handle);
	ping_and_end(&c);
	connect_to(&c, &one, port);
	req = expect_request(&c);
	KUNIT_EXPECT_TRUE(test, same_v4(req.local_ia_address_ptr, &one));
	accept(&c, req.cr_handle);
	ping_and_end(&c);
}

#define OTHERS 100			/* at most 254 */

static int change_others(const char *how)
{
	char line[160];

	snprintf(line, sizeof(line),
		 "i=0; while [ $i -lt %d ]; do i=$((i+1)); echo addr %s 10.250.0.$i/32 dev %s; done | /sbin/ip -batch -",
		 OTHERS, how, kd_bed_of("siw0/1")->netdev);
	return shell(line);
}

static void remove_others(void *unused)
{
	change_others("del");
}

/* Another device, listed first, has more addresses than fit in any small list. */
static void among_many_addresses(struct kunit *test)
{
	struct kd_pair c;

	kd_skip_own(test, KD_NEEDS_BED);
	if (change_others("add"))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_others,
							   NULL));
	c = kd_make_pair(test, NULL);
	kd_connect_pair(c.a, c.p);
	kd_ping(c.a, c.p);
}

/* The administrator gives the port another address while the IA is open. */
static void moved_address(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct listen l = { .p = c.p, .at = v4(c.p, 7) };
	struct sockaddr_in two = v4(c.p, 7);
	DAT_CR_ARRIVAL_EVENT_DATA req;
	u16 port = kd_port();
	DAT_EP_PARAM param;
	struct kd_buf *buf;

	/*
	 * The kernel deletes the other addresses of the network with the first
	 * one.
	 */
	if (change_address(c.p, "del", 1))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, restore_address, c.p));
	KUNIT_ASSERT_EQ(test, 0, change_address(c.p, "add", 7));
	l.at.sin_port = htons(port);
	KUNIT_ASSERT_TRUE(test, kd_wait_until(listens_there, &l,
					      KD_TIMEOUT_MS));
	connect_to(&c, &two, port);
	req = expect_request(&c);
	accept(&c, req.cr_handle);
	KD_ASSERT_OK(test, dat_ep_query(c.a->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_TRUE(test, same_v4(param.local_ia_address_ptr, &two));
	ping_and_end(&c);
	/*
	 * Registration in a new PZ makes a connection of its own, so it needs
	 * the address.
	 */
	KD_ASSERT_OK(test, dat_pz_create(c.a->ia, &c.a->pz));
	buf = kd_buf_alloc(c.a, PAGE_SIZE);
	KUNIT_EXPECT_NE(test, buf->rmr_context, 0);
}

/*
 * An IA without an address of the peer's family cannot connect:
 * DAT_INVALID_ADDRESS. dat_ep_dup_connect() takes no address; its error names
 * the Endpoint that is the model.
 */
static void I4_no_address_to_connect_from(struct kunit *test)
{
	struct kd_side *s = kd_open_param(test);
	const char *other = kd_other_bed(kd_bed_of(s->name))->ia;
	struct kd_pair c = { kd_open(test, other), kd_open(test, other) };
	struct sockaddr_in at = v4(c.p, 1);
	DAT_RETURN ret[3];

	kd_setup(s, NULL);
	kd_setup(c.a, NULL);
	kd_setup(c.p, NULL);
	kd_connect_pair(c.a, c.p);
	at.sin_port = htons(kd_port());
	if (change_address(s, "del", 1))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, restore_address, s));
	ret[0] = dat_ep_connect(s->ep, (void *)&at, ntohs(at.sin_port), TIMEOUT,
				0, NULL, DAT_QOS_BEST_EFFORT, 0);
	ret[1] = dat_ep_common_connect(s->ep, (void *)&at, TIMEOUT, 0, NULL);
	ret[2] = dat_ep_dup_connect(s->ep, c.a->ep, TIMEOUT, 0, NULL,
				    DAT_QOS_BEST_EFFORT);
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS, ret[0]);
	KD_EXPECT_RET(test, DAT_INVALID_ADDRESS, ret[1]);
	KUNIT_EXPECT_EQ(test, ret[2], DAT_ERROR(DAT_INVALID_PARAMETER,
						DAT_INVALID_ARG2));
	KUNIT_EXPECT_EQ(test, (int)kd_state(s), (int)DAT_EP_STATE_UNCONNECTED);
	kd_expect_no_event(test, s->conn_evd);
}

/* ---- Any port ---------------------------------------------------------------------- */

#define PORTS	"/proc/sys/net/ipv4/ip_local_port_range"

static char old_ports[32];

/* Set the system's range of local ports, or read it if @line is empty. */
static ssize_t system_ports(char *line, size_t size)
{
	struct file *file = kd_filp_open(PORTS, O_RDWR, 0);
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = *line ? kernel_write(file, line, strlen(line), &file->f_pos) :
		    kernel_read(file, line, size - 1, &file->f_pos);
	kd_filp_close(file);
	return n;
}

static void restore_ports(void *data)
{
	system_ports(old_ports, sizeof(old_ports));
}

/*
 * dat_psp_create_any() picks another port if the first is taken on any address
 * of the IA. Of four ports two are taken.
 */
static void N2_psp_any_avoids_taken_port(struct kunit *test)
{
	struct kd_pair c = kd_make_pair(test, NULL);
	struct listen l = { .p = c.p, .at = v4(c.p, 7) };
	char ports[] = "40000 40003";
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	int i;

	if (change_address(c.p, "add", 7))
		kunit_skip(test, "no ip command");
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, remove_address,
							   c.p));
	memset(old_ports, 0, sizeof(old_ports));
	KUNIT_ASSERT_GT(test, system_ports(old_ports, sizeof(old_ports)), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, restore_ports,
							   NULL));
	for (i = 0; i < 2; i++) {
		l.at.sin_port = htons(40000 + i);
		KUNIT_ASSERT_TRUE(test, kd_wait_until(listens_there, &l,
						      KD_TIMEOUT_MS));
	}
	KUNIT_ASSERT_GT(test, system_ports(ports, sizeof(ports)), 0);
	for (i = 0; i < 12; i++) {
		KD_ASSERT_OK(test, dat_psp_create_any(c.p->ia, &qual,
						      c.p->cr_evd,
						      DAT_PSP_CONSUMER_FLAG,
						      &psp));
		KUNIT_EXPECT_GE(test, qual, 40002);
		KUNIT_EXPECT_LE(test, qual, 40003);
		KD_EXPECT_OK(test, dat_psp_free(psp));
	}
}

/*
 * The same port can be listened on by two IAs of one kind, each with its own
 * addresses.
 */
static void N2_same_port_on_two_ias(struct kunit *test)
{
	struct kd_side *first = kd_open_param(test), *second, *a;
	u16 port = kd_port();
	struct kd_pair c;

	second = kd_open(test, kd_bed_of(first->name)->second.ia);
	a = kd_open(test, second->name);
	kd_setup(first, NULL);
	kd_setup(second, NULL);
	kd_setup(a, NULL);
	kd_psp(first, port, DAT_PSP_CONSUMER_FLAG);
	kd_psp(second, port, DAT_PSP_CONSUMER_FLAG);
	c = (struct kd_pair) { a, second };
	connect_to(&c, second->addr, port);
	accept(&c, expect_request(&c).cr_handle);
	ping_and_end(&c);
	kd_expect_no_event(test, first->cr_evd);
}

/* ---- Where a request comes from --------------------------------------------- */

/* The GID of a request is where its packets come from, whatever the address in it. */
static void L5_cr_query_gid(struct kunit *test)
{
	struct kd_pair pair = kd_make_pair(test, NULL);
	struct kd_side *a = pair.a, *p = pair.p;
	__be32 lie = v4(a, 100).sin_addr.s_addr;
	DAT_RETURN want = DAT_SUCCESS;
	struct in6_addr gid, from;
	struct sockaddr_in *told;
	u16 port = kd_port();
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;

	ipv6_addr_set_v4mapped(((struct sockaddr_in *)a->addr)->sin_addr.s_addr, &from);
	if (kd_is_iwarp(a))
		want = DAT_MODEL_NOT_SUPPORTED;
	else
		kd_lie(test, lie);
	kd_psp(p, port, DAT_PSP_CONSUMER_FLAG);
	KD_ASSERT_OK(test, dat_ep_connect(a->ep, p->addr, port, DAT_TIMEOUT_INFINITE, 0, NULL,
					  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	cr = kd_expect_cr(p);
	KD_EXPECT_RET(test, want, kdat_cr_query_gid(cr, gid.s6_addr));
	KD_EXPECT_RET(test, DAT_INVALID_PARAMETER, kdat_cr_query_gid(cr, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_cr_query_gid(NULL, gid.s6_addr));
	KD_ASSERT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	if (want == DAT_SUCCESS) {
		told = (struct sockaddr_in *)param.remote_ia_address_ptr;
		KUNIT_EXPECT_EQ(test, ntohl(told->sin_addr.s_addr), ntohl(lie));
		KUNIT_EXPECT_EQ(test, 0, memcmp(&gid, &from, sizeof(gid)));
	}
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_RET(test, DAT_INVALID_HANDLE, kdat_cr_query_gid(cr, gid.s6_addr));
}

static struct kunit_case cm_addr_cases[] = {
	KUNIT_CASE_PARAM(L5_cr_query_gid, kd_gen_ia),
	KUNIT_CASE_PARAM(ipv6, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_ipv6_private_data, kd_gen_ia),
	KUNIT_CASE_PARAM(both_families, kd_gen_ia),
	KUNIT_CASE_PARAM(L5_csp_ipv6, kd_gen_ia),
	KUNIT_CASE_PARAM(second_address, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(among_many_addresses, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(moved_address, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(I4_no_address_to_connect_from, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_psp_any_avoids_taken_port, kd_gen_wired_ia),
	KUNIT_CASE_PARAM(N2_same_port_on_two_ias, kd_gen_wired_ia),
	{}
};

KD_SUITE("kdapl-cm-addr", cm_addr_cases, "addresses");
