// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* LIO counts the commands of an iSCSI connection, not only those of a session. */
#include <target/target_core_base.h>
#include <target/target_core_fabric.h>
#include <target/iscsi/iscsi_target_core.h>

void probe(struct iscsit_conn *conn);

void probe(struct iscsit_conn *conn)
{
	target_stop_cmd_counter(conn->cmd_cnt);
	target_wait_for_cmds(conn->cmd_cnt);
}
