// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How many objects of each kind there can be: they are made until that fails, or until
 * there are cmd->number of them, and freed again.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include "kdapl_test.h"

#define KT_LIMIT	1000U		/* of each kind, unless the command says more */
#define KT_LIMIT_MOST	SZ_1M

/*
 * struct kt_limits - an open adapter, and what all objects need
 * @page: memory to register
 */
struct kt_limits {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd;
	void *page;
};

static DAT_RETURN kt_new_pz(struct kt_limits *l, DAT_HANDLE *handle)
{
	return dat_pz_create(l->ia, (DAT_PZ_HANDLE *)handle);
}

static DAT_RETURN kt_new_evd(struct kt_limits *l, DAT_HANDLE *handle)
{
	return dat_evd_kcreate(l->ia, 8, DAT_UPCALL_DISABLE, NULL,
			       DAT_EVD_DTO_FLAG, (DAT_EVD_HANDLE *)handle);
}

static DAT_RETURN kt_new_ep(struct kt_limits *l, DAT_HANDLE *handle)
{
	return dat_ep_create(l->ia, l->pz, l->evd, l->evd, l->evd, NULL,
			     (DAT_EP_HANDLE *)handle);
}

static DAT_RETURN kt_new_srq(struct kt_limits *l, DAT_HANDLE *handle)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 8,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};

	return dat_srq_create(l->ia, l->pz, &attr, (DAT_SRQ_HANDLE *)handle);
}

static DAT_RETURN kt_new_lmr(struct kt_limits *l, DAT_HANDLE *handle)
{
	DAT_REGION_DESCRIPTION region = { .for_va = l->page };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT key;

	return dat_lmr_kcreate(l->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE,
			       l->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE,
			       (DAT_LMR_HANDLE *)handle, &context, &key, NULL,
			       NULL);
}

static DAT_RETURN kt_new_rmr(struct kt_limits *l, DAT_HANDLE *handle)
{
	return dat_rmr_create(l->pz, (DAT_RMR_HANDLE *)handle);
}

static DAT_RETURN kt_new_psp(struct kt_limits *l, DAT_HANDLE *handle)
{
	DAT_CONN_QUAL qual;

	return dat_psp_create_any(l->ia, &qual, l->evd, DAT_PSP_CONSUMER_FLAG,
				  (DAT_PSP_HANDLE *)handle);
}

static DAT_RETURN kt_free_pz(DAT_HANDLE handle)
{
	return dat_pz_free((DAT_PZ_HANDLE)handle);
}

static DAT_RETURN kt_free_evd(DAT_HANDLE handle)
{
	return dat_evd_free((DAT_EVD_HANDLE)handle);
}

static DAT_RETURN kt_free_ep(DAT_HANDLE handle)
{
	return dat_ep_free((DAT_EP_HANDLE)handle);
}

static DAT_RETURN kt_free_srq(DAT_HANDLE handle)
{
	return dat_srq_free((DAT_SRQ_HANDLE)handle);
}

static DAT_RETURN kt_free_lmr(DAT_HANDLE handle)
{
	return dat_lmr_free((DAT_LMR_HANDLE)handle);
}

static DAT_RETURN kt_free_rmr(DAT_HANDLE handle)
{
	return dat_rmr_free((DAT_RMR_HANDLE)handle);
}

static DAT_RETURN kt_free_psp(DAT_HANDLE handle)
{
	return dat_psp_free((DAT_PSP_HANDLE)handle);
}

static const struct {
	const char *name;
	DAT_RETURN (*make)(struct kt_limits *l, DAT_HANDLE *handle);
	DAT_RETURN (*free)(DAT_HANDLE handle);
} kt_kinds[] = {
	{ "pz", kt_new_pz, kt_free_pz },
	{ "evd", kt_new_evd, kt_free_evd },
	{ "ep", kt_new_ep, kt_free_ep },
	{ "srq", kt_new_srq, kt_free_srq },
	{ "lmr", kt_new_lmr, kt_free_lmr },
	{ "rmr", kt_new_rmr, kt_free_rmr },
	{ "psp", kt_new_psp, kt_free_psp },
};

static int kt_limits_open(struct kt_limits *l, const struct kt_command *cmd)
{
	DAT_RETURN ret;

	l->page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!l->page)
		return -ENOMEM;
	if (dat_ia_open((char *)cmd->ia, 8, &l->async_evd, &l->ia) !=
	    DAT_SUCCESS) {
		l->ia = NULL;
		return -ENODEV;
	}
	ret = dat_pz_create(l->ia, &l->pz);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_kcreate(l->ia, 64, DAT_UPCALL_DISABLE, NULL,
				      DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG |
				      DAT_EVD_CONNECTION_FLAG, &l->evd);
	return dat_errno("dat_evd_kcreate", ret);
}

/* Make and free objects of kind @i. */
static void kt_limits_try(struct kt_session *s, struct kt_limits *l, int i,
			  DAT_HANDLE *made, u32 most)
{
	const char *type = "", *subtype = "";
	DAT_RETURN ret = DAT_SUCCESS;
	u32 n = 0, left = 0, total;

	while (n < most && !READ_ONCE(s->stop)) {
		ret = kt_kinds[i].make(l, &made[n]);
		if (ret != DAT_SUCCESS)
			break;
		n++;
		cond_resched();
	}
	total = n;
	while (n--) {
		if (kt_kinds[i].free(made[n]) != DAT_SUCCESS)
			left++;
		cond_resched();
	}
	if (left)
		kt_say(s, "error %u of %u %s cannot be freed\n", left, total,
		       kt_kinds[i].name);
	if (ret != DAT_SUCCESS)
		dat_strerror(ret, &type, &subtype);
	kt_say(s, "limit %s %u %s\n", kt_kinds[i].name, total, type);
}

void kt_limits(struct kt_session *s, const struct kt_command *cmd)
{
	u32 most = min_t(u32, cmd->number ?: KT_LIMIT, KT_LIMIT_MOST);
	DAT_HANDLE *made = kvcalloc(most, sizeof(*made), GFP_KERNEL);
	struct kt_limits l = { };
	int i, err;

	err = made ? kt_limits_open(&l, cmd) : -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(kt_kinds) && !err; i++)
		kt_limits_try(s, &l, i, made, most);
	if (err == -ENODEV)
		kt_say(s, "error there is no adapter %s\n", cmd->ia);
	else if (err)
		kt_say(s, "error %s has no resources left\n", cmd->ia);
	/* What is still registered must stay. */
	if (!l.ia || kt_ia_close(l.ia, cmd->ia))
		free_page((unsigned long)l.page);
	kvfree(made);
}
