// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protocol of nvmet-rdma.ko: as little of NVMe over Fabrics as a host needs
 * to read.
 */
#include <linux/err.h>
#include <linux/nvme.h>
#include <linux/nvme-rdma.h>
#include "crowd.h"

#define NVME_QUEUE_SIZE		128
#define NVME_ADMIN_SIZE		32
#define NVME_DYNAMIC_CNTLID	0xffff
#define NVME_BLOCK		512

static struct crowd_conn *nvme_connect(struct crowd_client *client, u16 qid,
				       u16 size, unsigned int window)
{
	struct nvme_rdma_cm_req hello = {
		.recfmt = cpu_to_le16(NVME_RDMA_CM_FMT_1_0),
		.qid = cpu_to_le16(qid),
		.hrqsize = cpu_to_le16(size),
		.hsqsize = cpu_to_le16(size - 1),
	};

	return crowd_connect(client, window, &hello, sizeof(hello));
}

/* Send the command at CROWD_HELLO_AT. Return the lower half of its result. */
static int nvme_ask(struct crowd_conn *conn, size_t len)
{
	const struct nvme_completion *cqe = crowd.buf + CROWD_ANSWER_AT;
	int err = crowd_ask(conn, len);

	if (err)
		return err;
	if (le16_to_cpu(cqe->status) >> 1) {
		pr_err("kdapl_crowd: NVMe status %#x\n",
		       le16_to_cpu(cqe->status) >> 1);
		return -EACCES;
	}
	return le16_to_cpu(cqe->result.u16);
}

static int nvme_attach(struct crowd_conn *conn, u16 qid, u16 size, u16 cntlid)
{
	struct nvme_command *cmd = crowd.buf + CROWD_HELLO_AT;
	struct nvmf_connect_data *data = (void *)(cmd + 1);

	memset(cmd, 0, sizeof(*cmd) + sizeof(*data));
	cmd->connect.opcode = nvme_fabrics_command;
	cmd->common.flags = NVME_CMD_SGL_METABUF;
	cmd->connect.fctype = nvme_fabrics_type_connect;
	cmd->connect.dptr.sgl.length = cpu_to_le32(sizeof(*data));
	cmd->connect.dptr.sgl.type = (NVME_SGL_FMT_DATA_DESC << 4) |
				     NVME_SGL_FMT_OFFSET;
	cmd->connect.qid = cpu_to_le16(qid);
	cmd->connect.sqsize = cpu_to_le16(size - 1);
	data->hostid.b[0] = 1 + conn->client->number;
	data->hostid.b[1] = (1 + conn->client->number) >> 8;
	data->cntlid = cpu_to_le16(cntlid);
	strscpy(data->subsysnqn, crowd_subsystem, sizeof(data->subsysnqn));
	snprintf(data->hostnqn, sizeof(data->hostnqn), "crowd%u",
		 conn->client->number);
	return nvme_ask(conn, sizeof(*cmd) + sizeof(*data));
}

static int nvme_enable(struct crowd_conn *conn)
{
	struct nvme_command *cmd = crowd.buf + CROWD_HELLO_AT;

	memset(cmd, 0, sizeof(*cmd));
	cmd->prop_set.opcode = nvme_fabrics_command;
	cmd->common.flags = NVME_CMD_SGL_METABUF;
	cmd->common.dptr.ksgl.type = NVME_KEY_SGL_FMT_DATA_DESC << 4;
	cmd->prop_set.fctype = nvme_fabrics_type_property_set;
	cmd->prop_set.offset = cpu_to_le32(NVME_REG_CC);
	cmd->prop_set.value = cpu_to_le64(NVME_CC_ENABLE | NVME_CC_IOSQES |
					  NVME_CC_IOCQES);
	return nvme_ask(conn, sizeof(*cmd));
}

static void nvme_prepare(void)
{
	struct nvme_command *cmd = crowd.buf + CROWD_SEND_AT;
	struct nvme_keyed_sgl_desc *sg = &cmd->common.dptr.ksgl;

	memset(cmd, 0, sizeof(*cmd));
	cmd->rw.opcode = nvme_cmd_read;
	cmd->rw.flags = NVME_CMD_SGL_METABUF;
	cmd->rw.nsid = cpu_to_le32(crowd_namespace);
	cmd->rw.length = cpu_to_le16(crowd_length / NVME_BLOCK - 1);
	sg->addr = cpu_to_le64(crowd.addr + CROWD_DATA_AT);
	sg->length[0] = crowd_length;
	sg->length[1] = crowd_length >> 8;
	sg->length[2] = crowd_length >> 16;
	memcpy(sg->key, &(__le32){ cpu_to_le32(crowd.rmr_context) }, 4);
	sg->type = NVME_KEY_SGL_FMT_DATA_DESC << 4;
}

static int nvme_start(struct crowd_client *client)
{
	struct crowd_conn *admin, *io;
	int cntlid, err;

	admin = nvme_connect(client, 0, NVME_ADMIN_SIZE, 4);
	if (IS_ERR(admin))
		return PTR_ERR(admin);
	client->conn[1] = admin;
	cntlid = nvme_attach(admin, 0, NVME_ADMIN_SIZE, NVME_DYNAMIC_CNTLID);
	if (cntlid < 0)
		return cntlid;
	err = nvme_enable(admin);
	if (err < 0)
		return err;
	io = nvme_connect(client, 1, NVME_QUEUE_SIZE, crowd_window + 1);
	if (IS_ERR(io))
		return PTR_ERR(io);
	client->conn[0] = io;
	err = nvme_attach(io, 1, NVME_QUEUE_SIZE, cntlid);
	if (err < 0)
		return err;
	nvme_prepare();
	io->window = crowd_window;
	io->credits = NVME_QUEUE_SIZE - 1;
	return 0;
}

/* A host has as many commands outstanding as its queue has room for. */
static unsigned int nvme_credits(const void *message)
{
	return 1;
}

static bool nvme_good(const void *message)
{
	const struct nvme_completion *cqe = message;

	return !(le16_to_cpu(cqe->status) >> 1);
}

const struct crowd_protocol crowd_nvme = {
	.name = "nvme",
	.start = nvme_start,
	.credits = nvme_credits,
	.good = nvme_good,
	.request_len = sizeof(struct nvme_command),
};
