// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lookups of IA names: kdat_ia_find() by IP address; kdat_ia_id() and kdat_ia_name() by a
 * number that stays when the device is renamed; kdat_ia_identify() and kdat_ia_again() by the GUID
 * that it comes back with.
 *
 * Only rdma_cm knows the IA of an address (addr.c), so a temporary id is bound to the
 * address. The id keeps the device from leaving, but not from being renamed.
 */
#include <dat/kdat_linux.h>
#include <net/ipv6.h>
#include <rdma/rdma_cm.h>
#include "ia.h"

static int kdapl_find_handler(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	return 0;
}

/*
 * Copy @address, with port 0, so that binding to it never collides with a listener.
 * Return whether its family is known.
 */
static bool kdapl_find_copy(const struct sockaddr *address,
			    struct sockaddr_storage *copy)
{
	memset(copy, 0, sizeof(*copy));
	switch (address->sa_family) {
	case AF_INET:
		memcpy(copy, address, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)copy)->sin_port = 0;
		return true;
	case AF_INET6:
		memcpy(copy, address, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)copy)->sin6_port = 0;
		return true;
	default:
		return false;
	}
}

/* Store the number of the IA that @address belongs to, as kdat_ia_find(), at @ia_id. */
DAT_RETURN kdapl_ia_find(const struct sockaddr *address, u64 *ia_id)
{
	struct sockaddr_storage copy;
	struct rdma_cm_id *id;
	DAT_RETURN ret;
	int err;

	if (!kdapl_find_copy(address, &copy))
		return DAT_ERROR(DAT_INVALID_ADDRESS,
				 DAT_INVALID_ADDRESS_UNSUPPORTED);
	id = rdma_create_id(&init_net, kdapl_find_handler, NULL, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return kdapl_errno_to_dat(PTR_ERR(id));
	err = rdma_bind_addr(id, (struct sockaddr *)&copy);
	if (err == -ENOMEM)
		ret = kdapl_errno_to_dat(err);
	else if (err || !id->device || !kdapl_device_id(id->device, id->port_num, ia_id))
		ret = DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	else
		ret = DAT_SUCCESS;
	rdma_destroy_id(id);
	return ret;
}

DAT_RETURN kdat_ia_find(const struct sockaddr *address, DAT_NAME_PTR name)
{
	DAT_RETURN ret;
	u64 id;

	might_sleep();
	if (!address || !name)
		return DAT_ERROR(DAT_INVALID_PARAMETER, address ?
				 DAT_INVALID_ARG2 : DAT_INVALID_ARG1);
	ret = kdapl_ia_find(address, &id);
	return ret == DAT_SUCCESS ? kdat_ia_name(id, name) : ret;
}
EXPORT_SYMBOL(kdat_ia_find);

DAT_RETURN kdat_ia_identify(DAT_IA_HANDLE ia_handle, KDAT_IA_IDENT *ident)
{
	struct kdapl_ia *ia;

	if (!ident)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	rcu_read_lock();
	ia = kdapl_find(ia_handle, DAT_HANDLE_TYPE_IA);
	if (ia)
		*ident = (KDAT_IA_IDENT) {
			.id = (u64)ia->hca->serial << 32 | ia->port,
			.guid = ia->hca->guid,
			.port = ia->port,
			.type = ia->hca->node_type,
		};
	rcu_read_unlock();
	return ia ? DAT_SUCCESS :
		    DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
}
EXPORT_SYMBOL(kdat_ia_identify);

DAT_RETURN kdat_ia_id(DAT_IA_HANDLE ia, DAT_UINT64 *id)
{
	KDAT_IA_IDENT ident;
	DAT_RETURN ret;

	if (!id)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	ret = kdat_ia_identify(ia, &ident);
	if (ret == DAT_SUCCESS)
		*id = ident.id;
	return ret;
}
EXPORT_SYMBOL(kdat_ia_id);

DAT_RETURN kdat_ia_name(DAT_UINT64 id, DAT_NAME_PTR name)
{
	char device[IB_DEVICE_NAME_MAX];

	if (!name)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!kdapl_hca_name_of(upper_32_bits(id), device))
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND,
				 DAT_NAME_NOT_REGISTERED);
	snprintf(name, DAT_NAME_MAX_LENGTH, "%s/%u", device, lower_32_bits(id));
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_ia_name);

DAT_RETURN kdat_ia_again(const KDAT_IA_IDENT *ident, DAT_NAME_PTR name)
{
	u64 id;

	might_sleep();
	if (!ident || !name)
		return DAT_ERROR(DAT_INVALID_PARAMETER, ident ?
				 DAT_INVALID_ARG2 : DAT_INVALID_ARG1);
	if (!kdapl_ia_again(ident, name, &id))
		id = ident->id;
	return kdat_ia_name(id, name);
}
EXPORT_SYMBOL(kdat_ia_again);
