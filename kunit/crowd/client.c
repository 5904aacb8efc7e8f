// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Clients: one thread connects them all, and connects those again that were cut
 * off, if the parameters ask for that.
 */
#include <linux/err.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include "crowd.h"

struct crowd crowd;

static struct task_struct *crowd_task;
static struct completion crowd_complete;
static int crowd_err;

static void crowd_client_stop(struct crowd_client *client)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(client->conn); i++) {
		crowd_disconnect(client->conn[i]);
		client->conn[i] = NULL;
	}
}

static int crowd_client_start(struct crowd_client *client)
{
	int err = crowd.protocol->start(client);

	if (!err)
		return 0;
	crowd_note(CROWD_REFUSED, client->number);
	crowd_client_stop(client);
	client->retry = jiffies + msecs_to_jiffies(crowd_again_ms);
	return err;
}

/* Connect a client again that was cut off and has waited long enough. */
static void crowd_look(struct crowd_client *client)
{
	struct crowd_conn *conn = client->conn[0];

	if (conn && READ_ONCE(conn->ended)) {
		client->cuts++;
		crowd_client_stop(client);
		client->retry = jiffies + msecs_to_jiffies(crowd_again_ms);
	}
	if (!client->conn[0] && crowd_again_ms &&
	    time_after_eq(jiffies, client->retry) &&
	    !crowd_client_start(client))
		crowd_stream(client->conn[0]);
}

static int crowd_thread(void *unused)
{
	unsigned int i;

	for (i = 0; i < crowd_clients && !crowd_err; i++)
		crowd_err = crowd_client_start(&crowd.clients[i]);
	/* All clients begin to stream at the same time. */
	for (i = 0; i < crowd_clients && !crowd_err; i++)
		crowd_stream(crowd.clients[i].conn[0]);
	complete(&crowd_complete);
	while (!kthread_should_stop()) {
		for (i = 0; i < crowd_clients && !crowd_err; i++)
			crowd_look(&crowd.clients[i]);
		schedule_timeout_interruptible(1);
	}
	return 0;
}

/* Connect all clients, which then stream requests. */
int crowd_begin(void)
{
	unsigned int i;

	crowd.clients = kcalloc(crowd_clients, sizeof(*crowd.clients),
				GFP_KERNEL);
	if (!crowd.clients)
		return -ENOMEM;
	for (i = 0; i < crowd_clients; i++)
		crowd.clients[i].number = i;
	init_completion(&crowd_complete);
	crowd_task = kthread_run(crowd_thread, NULL, "kdapl_crowd");
	if (IS_ERR(crowd_task))
		return PTR_ERR(crowd_task);
	wait_for_completion(&crowd_complete);
	if (crowd_err)
		crowd_end();
	return crowd_err;
}

void crowd_end(void)
{
	unsigned int i;

	kthread_stop(crowd_task);
	for (i = 0; i < crowd_clients; i++)
		crowd_client_stop(&crowd.clients[i]);
}

static int crowd_register(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = crowd.buf };
	DAT_LMR_HANDLE lmr;

	return crowd_errno("dat_lmr_kcreate",
			   dat_lmr_kcreate(crowd.ia, DAT_MEM_TYPE_VIRTUAL,
					   region, CROWD_BUF_SIZE, crowd.pz,
					   DAT_MEM_PRIV_ALL_FLAG,
					   DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr,
					   &crowd.lmr_context,
					   &crowd.rmr_context, NULL,
					   &crowd.addr));
}

int crowd_open(const char *ia, const char *address)
{
	int err;

	err = inet_pton_with_scope(&init_net, AF_UNSPEC, address, NULL,
				   &crowd.target);
	if (err)
		return err;
	crowd.buf = kzalloc(CROWD_BUF_SIZE, GFP_KERNEL);
	if (!crowd.buf)
		return -ENOMEM;
	err = crowd_errno("dat_ia_open",
			  dat_ia_open((DAT_NAME_PTR)ia, 8, &crowd.async_evd,
				      &crowd.ia));
	if (err)
		crowd.ia = NULL;
	return err ?: crowd_errno("dat_pz_create",
				  dat_pz_create(crowd.ia, &crowd.pz)) ?:
	       crowd_register();
}

/* Free everything. */
void crowd_close(void)
{
	/* What a device may still reach stays. */
	if (crowd.ia && DAT_GET_TYPE(dat_ia_close(crowd.ia, DAT_CLOSE_ABRUPT_FLAG)) ==
	    DAT_INVALID_STATE)
		return;
	kfree(crowd.clients);
	kfree(crowd.buf);
}
