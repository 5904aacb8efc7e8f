// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* race_test.ko: the world of a run, an IA with what stays there. */
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "race.h"

#define MEM_LEN	(RACE_MEM_LEN + RACE_PAGES * PAGE_SIZE + RACE_PLACES * RACE_LEN)

static const DAT_EVD_FLAGS streams[] = {
	[E_MERGED] = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG,
	[E_DTO] = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
	[E_DTO2] = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
	[E_CONN] = DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG,
	[E_CR] = DAT_EVD_CR_FLAG,
};

static DAT_RETURN make_evds(struct race_world *w)
{
	DAT_UPCALL_OBJECT upcall = { w, race_upcall };
	DAT_RETURN ret;
	unsigned int i;

	for (i = 0; i < E_ASYNC; i++) {
		ret = dat_evd_kcreate(w->ia, RACE_EVD_LEN, DAT_UPCALL_DISABLE, &upcall, streams[i],
				      &w->evd[i]);
		if (ret != DAT_SUCCESS)
			return ret;
	}
	return DAT_SUCCESS;
}

static DAT_RETURN make_memory(struct race_world *w)
{
	DAT_REGION_DESCRIPTION region;
	unsigned int i;

	w->mem = kzalloc(MEM_LEN, GFP_KERNEL);
	w->fmr_page = (u8 *)get_zeroed_page(GFP_KERNEL);
	w->buf = vzalloc(array_size(RACE_BUFS, sizeof(*w->buf)));
	if (!w->mem || !w->fmr_page || !w->buf)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	race_init_bufs(w);
	for (i = 0; i < RACE_PAGES; i++) {
		w->page[i].va = w->mem + RACE_MEM_LEN + i * PAGE_SIZE;
		race_give_back(w, w->page[i].va);
	}
	w->places = w->mem + RACE_MEM_LEN + RACE_PAGES * PAGE_SIZE;
	for (i = 1; i <= RACE_PLACES; i++)
		race_free_place(w, i);
	region.for_va = w->mem;
	return dat_lmr_kcreate(w->ia, DAT_MEM_TYPE_VIRTUAL, region, MEM_LEN, w->pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &w->lmr, &w->lmr_context,
			       &w->rmr_context, NULL, NULL);
}

static DAT_RETURN fill_world(struct race_world *w)
{
	DAT_RETURN ret;

	ret = dat_pz_create(w->ia, &w->pz) ?: make_evds(w) ?: make_memory(w);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = dat_rmr_create(w->pz, &w->rmr);
	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_MODEL_NOT_SUPPORTED)
		return ret;
	return dat_psp_create(w->ia, w->port, w->evd[E_CR], DAT_PSP_CONSUMER_FLAG, &w->psp) ?:
	       race_make_pool(w) ?: race_make_server(w);
}

/* Return a world on the IA @name; or NULL, and why. The slots are empty. */
struct race_world *race_open(const char *name, DAT_RETURN *why)
{
	struct race_world *w = kzalloc(sizeof(*w), GFP_KERNEL);
	DAT_PROVIDER_ATTR *prov = kzalloc(sizeof(*prov), GFP_KERNEL);
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);

	*why = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!w || !attr || !prov)
		goto fail;
	w->name = name;
	spin_lock_init(&w->lock);
	spin_lock_init(&w->fail_lock);
	hash_init(w->objs);
	/* The first one of RACE_PORTS. */
	for (w->port = kd_port(); kd_port() != w->port + RACE_PORTS - 1; )
		;
	*why = dat_ia_open((DAT_NAME_PTR)name, RACE_ASYNC_LEN, &w->evd[E_ASYNC], &w->ia);
	if (*why != DAT_SUCCESS)
		goto fail;
	*why = dat_ia_query(w->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr,
			    DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR, prov);
	if (*why == DAT_SUCCESS)
		*why = kdat_ia_id(w->ia, &w->id);
	if (*why == DAT_SUCCESS) {
		memcpy(&w->addr, attr->ia_address_ptr, sizeof(struct sockaddr_in));
		w->forgets = kd_has_quirk(prov, "lost-buffers");
		w->iwarp = kd_ia_has(name, KD_IWARP);
		*why = fill_world(w);
	}
	if (*why == DAT_SUCCESS)
		goto out;
	race_close(w);
	w = NULL;
fail:
	kfree(w);
	w = NULL;
out:
	kfree(prov);
	kfree(attr);
	return w;
}

/* Return why it cannot be closed. */
DAT_RETURN race_close(struct race_world *w)
{
	struct hlist_node *tmp;
	struct race_obj *obj;
	unsigned int i;
	DAT_RETURN ret;

	race_end_linux(w);
	ret = dat_ia_close(race_handle(w->slot[S_IA]), DAT_CLOSE_ABRUPT_FLAG);
	if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		ret = dat_ia_close(w->ia, DAT_CLOSE_ABRUPT_FLAG);
	/* What a device may still reach stays. */
	if (ret != DAT_SUCCESS)
		return ret;
	hash_for_each_safe(w->objs, i, tmp, obj, node) {
		kfree(obj->within);
		kfree(obj);
	}
	vfree(w->buf);
	free_page((unsigned long)w->fmr_page);
	kfree(w->mem);
	kfree(w);
	return DAT_SUCCESS;
}
