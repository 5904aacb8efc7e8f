// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kdapl_isert.ko: registration with LIO, which calls through struct iscsit_transport. The
 * transport registers as that of InfiniBand; of several such transports LIO uses the one that
 * was registered first.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include "isert.h"

const char *ki_strerror(DAT_RETURN ret)
{
	const char *type, *subtype;

	if (dat_strerror(ret, &type, &subtype) != DAT_SUCCESS)
		return "unknown error";
	return type;
}

/* iscsit_unmap_cmd(): LIO frees a command. */
static void ki_unmap_cmd(struct iscsit_conn *conn, struct iscsit_cmd *cmd)
{
	struct ki_conn *c = conn->context;
	struct ki_cmd *kc = ki_cmd(cmd);

	ki_cmd_unmap(cmd);
	if (kc->counted && c)
		atomic_dec(&c->unanswered);
	kc->counted = false;
}

/* iscsit_aborted_task(): the backend is done with a command that was aborted. */
static void ki_aborted_task(struct iscsit_conn *conn, struct iscsit_cmd *cmd)
{
	if (conn->context)
		ki_buf_take_back(conn->context, ki_cmd(cmd));
	iscsit_aborted_task(conn, cmd);
}

static enum target_prot_op ki_get_sup_prot_ops(struct iscsit_conn *conn)
{
	return TARGET_PROT_NORMAL;
}

static struct iscsit_transport ki_transport = {
	.name = "IB/iSER",
	.transport_type = ISCSI_INFINIBAND,
	.priv_size = sizeof(struct ki_cmd),
	.owner = THIS_MODULE,
	.iscsit_setup_np = ki_setup_np,
	.iscsit_accept_np = ki_accept_np,
	.iscsit_free_np = ki_free_np,
	.iscsit_wait_conn = ki_wait_conn,
	.iscsit_free_conn = ki_free_conn,
	.iscsit_get_login_rx = ki_get_login_rx,
	.iscsit_put_login_tx = ki_put_login_tx,
	.iscsit_immediate_queue = ki_immediate_queue,
	.iscsit_response_queue = ki_response_queue,
	.iscsit_get_dataout = ki_get_dataout,
	.iscsit_queue_data_in = ki_queue_data_in,
	.iscsit_queue_status = ki_queue_status,
	.iscsit_aborted_task = ki_aborted_task,
	.iscsit_unmap_cmd = ki_unmap_cmd,
	.iscsit_get_rx_pdu = ki_get_rx_pdu,
	.iscsit_get_sup_prot_ops = ki_get_sup_prot_ops,
};

static int __init ki_init(void)
{
	int err = ki_queue_start();

	if (err)
		return err;
	err = ki_execute_start();
	if (err)
		goto end_queue;
	err = ki_server_start();
	if (err)
		goto end_execute;
	ki_stats_start();
	iscsit_register_transport(&ki_transport);
	return 0;

end_execute:
	ki_execute_end();
end_queue:
	ki_queue_end();
	return err;
}

static void __exit ki_exit(void)
{
	iscsit_unregister_transport(&ki_transport);
	ki_linger_end();
	ki_stats_stop();
	kdat_server_free(ki_server);
	ki_execute_end();
	ki_queue_end();
}

module_init(ki_init);
module_exit(ki_exit);

MODULE_DESCRIPTION("iSER transport of the iSCSI target over kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_VERSION
MODULE_VERSION(KDAPL_VERSION);
#endif
