// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A server for portal.c, see shop.h. */
#include <linux/module.h>
#include "peer.h"
#include "shop.h"

#define BUFFERS	8

/* The shop of the case; adapters may be opened before their portal tells who it is of. */
static struct shop *shop;

struct shop_adapter {
	KDAT_ADAPTER adapter;
	u32 magic;
	DAT_EVD_HANDLE evd;
};

#define MAGIC	0x5350u

static void shop_size(DAT_PVOID adapter, KDAT_POOL_SIZE *size)
{
	*size = (KDAT_POOL_SIZE) { .wanted = BUFFERS, .most = BUFFERS };
}

static DAT_RETURN shop_open(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	struct shop_adapter *a = container_of(adapter, struct shop_adapter, adapter);

	KUNIT_EXPECT_PTR_EQ(shop->test, (void *)shop, context);
	KUNIT_EXPECT_NOT_NULL(shop->test, adapter->pz);
	KUNIT_EXPECT_GT(shop->test, adapter->attr.max_eps, 0);
	a->magic = MAGIC;
	WRITE_ONCE(shop->opened, shop->opened + 1);
	if (shop->refuse)
		return DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	return dat_evd_kcreate(adapter->ia, 32 * BUFFERS, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG, &a->evd);
}

static void shop_close(KDAT_ADAPTER *adapter)
{
	struct shop_adapter *a = container_of(adapter, struct shop_adapter, adapter);

	KUNIT_EXPECT_EQ(shop->test, MAGIC, a->magic);
	dat_evd_free(a->evd);
	WRITE_ONCE(shop->closing, shop->closing + 1);
}

static void shop_closed(KDAT_ADAPTER *adapter)
{
	WRITE_ONCE(shop->closed, shop->closed + 1);
}

static void shop_listens(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	KUNIT_EXPECT_PTR_EQ(shop->test, (void *)shop, context);
	KUNIT_EXPECT_NOT_NULL(shop->test, adapter->srq);
	WRITE_ONCE(shop->listens, shop->listens + 1);
	WRITE_ONCE(shop->place, adapter);
}

static void shop_deaf(KDAT_ADAPTER *adapter, DAT_PVOID context)
{
	WRITE_ONCE(shop->listens, shop->listens - 1);
	WRITE_ONCE(shop->place, NULL);
}

static void shop_request(KDAT_ADAPTER *adapter, DAT_PVOID context, DAT_CR_HANDLE cr,
			 const DAT_CR_PARAM *param, const KDAT_HOST *host)
{
	DAT_EVD_HANDLE evd = container_of(adapter, struct shop_adapter, adapter)->evd;
	DAT_EP_ATTR attr = kd_ep_attr();
	DAT_EP_HANDLE ep = NULL;
	DAT_RETURN ret;

	KUNIT_EXPECT_PTR_EQ(shop->test, (void *)shop, context);
	KUNIT_EXPECT_EQ(shop->test, !!host->proven, !!adapter->iwarp);
	shop->host = *host;
	mutex_lock(&shop->mutex);
	ret = dat_ep_create_with_srq(adapter->ia, adapter->pz, evd, evd, adapter->cm_evd,
				     adapter->srq, &attr, &ep);
	if (ret == DAT_SUCCESS && shop->nconns < CONNS) {
		kdat_adapter_get(adapter);
		shop->conns[shop->nconns].ep = ep;
		shop->conns[shop->nconns++].adapter = adapter;
		ret = dat_cr_accept(cr, ep, 0, NULL);
	}
	mutex_unlock(&shop->mutex);
	KUNIT_EXPECT_EQ_MSG(shop->test, ret, (DAT_RETURN)DAT_SUCCESS, "%s", kd_strerror(ret));
	if (ret != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

static void shop_event(DAT_PVOID adapter, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	KUNIT_EXPECT_EQ(shop->test, MAGIC, ((struct shop_adapter *)adapter)->magic);
}

/* Free the connections. */
void shop_clear(struct shop *s)
{
	mutex_lock(&s->mutex);
	while (s->nconns) {
		s->nconns--;
		dat_ep_free(s->conns[s->nconns].ep);
		kdat_adapter_put(s->conns[s->nconns].adapter);
	}
	mutex_unlock(&s->mutex);
}

static void shop_end(void *data)
{
	struct shop *s = data;

	shop_clear(s);
	kdat_server_free(s->server);
	KUNIT_EXPECT_EQ(s->test, s->opened, s->closing);
	KUNIT_EXPECT_EQ(s->test, s->opened, s->closed);
	KUNIT_EXPECT_EQ(s->test, s->listens, 0);
}

const char *shop_ia_of(struct kunit *test)
{
	/* The name is the first member of each kind of parameter. */
	return *(const char * const *)test->param_value;
}

/* Make a server whose portals listen on the IA of the case, and somebody who connects. */
struct shop *shop_make(struct kunit *test)
{
	struct shop *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	shop = s;
	s->test = test;
	s->port = kd_port();
	mutex_init(&s->mutex);
	s->attr = (KDAT_SERVER_ATTR) {
		.owner = THIS_MODULE, .name = KBUILD_MODNAME,
		.adapter_size = sizeof(struct shop_adapter), .cm_qlen = 2 * CONNS,
		.cr_qlen = CONNS, .buffer_length = 64, .size = shop_size, .open = shop_open,
		.close = shop_close, .closed = shop_closed, .listens = shop_listens,
		.deaf = shop_deaf, .request = shop_request, .event = shop_event,
	};
	s->peer = kd_open(test, shop_ia_of(test));
	kd_setup(s->peer, NULL);
	s->in = *(struct sockaddr_in *)s->peer->addr;
	s->in.sin_port = htons(s->port);
	KD_ASSERT_OK(test, kdat_server_create(&s->attr, &s->server));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, shop_end, s));
	return s;
}

/* Listen at the first address of the IA of the case. */
DAT_RETURN shop_listen_at_address(struct shop *s)
{
	KDAT_PORTAL_ATTR attr = { .address = (struct sockaddr *)&s->in, .context = s };

	return kdat_portal_create(s->server, &attr, &s->portal);
}

DAT_RETURN shop_listen_on_ia(struct shop *s)
{
	KDAT_PORTAL_ATTR attr = {
		.ia_name = shop_ia_of(s->test), .port = s->port, .context = s,
	};

	return kdat_portal_create(s->server, &attr, &s->portal);
}

bool shop_reaches(void *data)
{
	struct shop *s = data;
	bool up = kd_reaches(s->peer, (struct sockaddr *)&s->in, s->port);

	shop_clear(s);
	return up;
}

bool shop_is_open(void *data)
{
	return READ_ONCE(((struct shop *)data)->listens) == 1;
}

bool shop_is_deaf(void *data)
{
	return !READ_ONCE(((struct shop *)data)->listens);
}

bool shop_all_are_closed(void *data)
{
	struct shop *s = data;

	return READ_ONCE(s->closed) == READ_ONCE(s->opened);
}

bool shop_one_is_closed(void *data)
{
	return READ_ONCE(((struct shop *)data)->closed) == 1;
}

void shop_expect_soon(struct shop *s, bool (*cond)(void *data))
{
	KUNIT_ASSERT_TRUE(s->test, kd_wait_until(cond, s, KD_TIMEOUT_MS));
}
