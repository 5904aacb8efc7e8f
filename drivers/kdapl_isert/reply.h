/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Commands that wait to be answered (queue.c), and answers (reply.c). Included by isert.h. */
#ifndef KDAPL_ISERT_REPLY_H
#define KDAPL_ISERT_REPLY_H

/* queue.c */
int ki_queue_start(void);
void ki_queue_end(void);
void ki_queue_init(struct ki_conn *c);
void ki_queue_stop(struct ki_conn *c);
void ki_conn_submit(struct ki_conn *c, struct ki_cmd *kc);
void ki_conn_retry(struct ki_conn *c);

/* reply.c */
struct ki_tx *ki_tx_get(struct ki_conn *c, struct iscsit_cmd *cmd);
void ki_tx_put(struct ki_conn *c, struct ki_tx *tx);
int ki_tx_payload(struct ki_conn *c, struct ki_tx *tx, void *data, u32 len);
int ki_answer(struct ki_conn *c, struct ki_cmd *kc);
bool ki_tx_is_part(struct ki_tx *tx);
void ki_tx_request(struct ki_tx *tx, DAT_LMR_TRIPLET *segs, KDAT_REQUEST *r);
int ki_queue_data_in(struct iscsit_conn *conn, struct iscsit_cmd *cmd);
int ki_queue_status(struct iscsit_conn *conn, struct iscsit_cmd *cmd);
int ki_response_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state);
int ki_immediate_queue(struct iscsit_conn *conn, struct iscsit_cmd *cmd, int state);

#endif
