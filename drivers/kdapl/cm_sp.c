// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Service Points: the calls that create, query and free public (PSP), reserved
 * (RSP) and common (CSP) service points.
 *
 * The calls check their arguments; cm_listen.c does the work. Creating and
 * freeing sleep. Queries run inside an RCU read-side section and take no lock,
 * as a service point does not change after its creation.
 */
#include "addr.h"
#include "cm.h"
#include "ep.h"
#include "ia.h"

/* Create a PSP on port @qual; with 0 on any port, which is stored in *@chosen. */
static DAT_RETURN kdapl_psp_create(DAT_IA_HANDLE ia_handle, u16 qual,
				   DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
				   DAT_CONN_QUAL *chosen,
				   DAT_PSP_HANDLE *psp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_PSP, .evd = evd,
		.evd_arg = DAT_INVALID_ARG3, .qual = qual, .flags = flags,
	};
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (flags != DAT_PSP_CONSUMER_FLAG && flags != DAT_PSP_PROVIDER_FLAG) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	} else if (!psp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	} else if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
	} else {
		ret = kdapl_sp_create(ia, &args, &handle, &listening);
		kdapl_hca_leave(ia->hca);
		if (ret == DAT_SUCCESS) {
			*psp_handle = handle;
			if (chosen)
				*chosen = listening;
		}
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}

/* Is @qual no port number? */
static bool kdapl_qual_bad(DAT_CONN_QUAL qual)
{
	return !qual || qual > U16_MAX;
}

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	might_sleep();
	if (!kdapl_handle_valid(ia_handle, DAT_HANDLE_TYPE_IA))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (kdapl_qual_bad(conn_qual))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return kdapl_psp_create(ia_handle, conn_qual, evd_handle, psp_flags,
				NULL, psp_handle);
}
EXPORT_SYMBOL(dat_psp_create);

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle,
			      DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle,
			      DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	might_sleep();
	if (!kdapl_handle_valid(ia_handle, DAT_HANDLE_TYPE_IA))
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!conn_qual)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return kdapl_psp_create(ia_handle, 0, evd_handle, psp_flags, conn_qual,
				psp_handle);
}
EXPORT_SYMBOL(dat_psp_create_any);

/* Free the service point of @type; @subtype is the error subtype for an invalid handle. */
static DAT_RETURN kdapl_sp_free(DAT_HANDLE handle, DAT_HANDLE_TYPE type,
				int subtype)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_sp *sp;

	might_sleep();
	sp = kdapl_obj_get(handle, type);
	if (!sp)
		return DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	if (kdapl_obj_unpublish(&sp->obj))
		kdapl_sp_destroy(sp);
	else
		ret = DAT_ERROR(DAT_INVALID_HANDLE, subtype);
	kdapl_obj_put(&sp->obj);
	return ret;
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	return kdapl_sp_free(psp_handle, DAT_HANDLE_TYPE_PSP,
			     DAT_INVALID_HANDLE_PSP);
}
EXPORT_SYMBOL(dat_psp_free);

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	return kdapl_sp_free(rsp_handle, DAT_HANDLE_TYPE_RSP,
			     DAT_INVALID_HANDLE_RSP);
}
EXPORT_SYMBOL(dat_rsp_free);

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle)
{
	return kdapl_sp_free(csp_handle, DAT_HANDLE_TYPE_CSP,
			     DAT_INVALID_HANDLE_CSP);
}
EXPORT_SYMBOL(dat_csp_free);

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_RSP, .evd = evd_handle,
		.evd_arg = DAT_INVALID_ARG4,
	};
	struct kdapl_ep *ep = NULL;
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep || ep->obj.ia != ia) {
		ret = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (kdapl_qual_bad(conn_qual)) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!rsp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		goto out;
	}
	args.qual = conn_qual;
	args.ep = ep;
	if (!kdapl_hca_enter(ia->hca)) {
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
				DAT_RESOURCE_DEVICE);
		goto out;
	}
	ret = kdapl_sp_create(ia, &args, &handle, &listening);
	if (ret == DAT_SUCCESS)
		*rsp_handle = handle;
	kdapl_hca_leave(ia->hca);
out:
	if (ep)
		kdapl_obj_put(&ep->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rsp_create);

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm,
			  DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd_handle,
			  DAT_CSP_HANDLE *csp_handle)
{
	struct kdapl_sp_args args = {
		.type = DAT_HANDLE_TYPE_CSP, .evd = evd_handle,
		.evd_arg = DAT_INVALID_ARG4,
	};
	struct sockaddr_storage addr = { };
	DAT_CONN_QUAL listening;
	DAT_HANDLE handle;
	struct kdapl_ia *ia;
	DAT_RETURN ret;

	might_sleep();
	ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!comm) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		goto out;
	}
	if (!kdapl_comm_valid(comm)) {
		ret = DAT_ERROR(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		goto out;
	}
	if (!address || address->sa_family != comm->domain) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	if (!csp_handle) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		goto out;
	}
	memcpy(&addr, address, comm->domain == AF_INET ?
	       sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	args.comm = *comm;
	args.addr = &addr;
	args.qual = kdapl_addr_port(&addr);
	if (!args.qual) {
		ret = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		goto out;
	}
	ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE);
	if (kdapl_hca_enter(ia->hca)) {
		ret = kdapl_sp_create(ia, &args, &handle, &listening);
		kdapl_hca_leave(ia->hca);
	}
	if (ret == DAT_SUCCESS)
		*csp_handle = handle;
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_csp_create);

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle,
			 DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_find_queried(psp_handle, DAT_HANDLE_TYPE_PSP,
				psp_param_mask & ~DAT_PSP_FIELD_ALL,
				psp_param, &ret);
	if (sp) {
		psp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		psp_param->conn_qual = sp->qual;
		psp_param->evd_handle = kdapl_handle(&sp->evd->obj);
		psp_param->psp_flags = sp->flags;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_psp_query);

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle,
			 DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_find_queried(rsp_handle, DAT_HANDLE_TYPE_RSP,
				rsp_param_mask & ~DAT_RSP_FIELD_ALL,
				rsp_param, &ret);
	if (sp) {
		rsp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		rsp_param->conn_qual = sp->qual;
		rsp_param->evd_handle = kdapl_handle(&sp->evd->obj);
		rsp_param->ep_handle = kdapl_handle(&sp->ep->obj);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_rsp_query);

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle,
			 DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param)
{
	struct kdapl_sp *sp;
	DAT_RETURN ret;

	rcu_read_lock();
	sp = kdapl_find_queried(csp_handle, DAT_HANDLE_TYPE_CSP,
				csp_param_mask & ~DAT_CSP_FIELD_ALL,
				csp_param, &ret);
	if (sp) {
		csp_param->ia_handle = kdapl_handle(&sp->obj.ia->obj);
		csp_param->comm = &sp->comm;
		csp_param->address_ptr = kdapl_addr_ptr(&sp->addr);
		csp_param->evd_handle = kdapl_handle(&sp->evd->obj);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_csp_query);
