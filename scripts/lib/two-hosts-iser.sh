# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by check-two-hosts: a stock initiator on one host, kdapl_isert on the other. What
# is in single quotes is for the shell of a guest.
# shellcheck disable=SC2016,SC2154

# shellcheck source=scripts/lib/iser.sh
. "$top/scripts/lib/iser.sh"

iser_sessions=/proc/kdapl/kdapl_isert/sessions

# The medium is a file as in export_volume(), with a cache that the initiator flushes.
iser_target_up()
{
	on target '. $OUT/iser.sh && modprobe -a virtio_blk ext4 target_core_mod iscsi_target_mod &&
		mkdir -p /tmp/disk && { mountpoint -q /tmp/disk || mount -t ext4 /dev/vda /tmp/disk; } &&
		file_backstore_up /tmp/disk/iser && target_up kdapl_isert 10.10.0.1'
}

iser_login()
{
	on client '. $OUT/iser.sh && modprobe ext4 && initiator_up &&
		login 10.10.0.1 node.session.timeo.replacement_timeout=600 \
			node.conn[0].timeo.noop_out_interval=2 \
			node.conn[0].timeo.noop_out_timeout=4 &&
		grep -q "^write back$" /sys/block/$disk/device/scsi_disk/*/cache_type'
}

# A condition: how the initiator's session is, which is LOGGED_IN or not.
iser_is_in='grep -qx LOGGED_IN /sys/class/iscsi_session/*/state'

iser_disk()
{
	iser_target_up
	iser_login
	on client 'mkfs.ext4 -q /dev/$disk && mkdir -p /tmp/mnt && mount -t ext4 /dev/$disk /tmp/mnt &&
		cp -r $OUT/files/. /tmp/mnt && umount /tmp/mnt &&
		mount -t ext4 -o ro /dev/$disk /tmp/mnt &&
		(cd /tmp/mnt && sha256sum --quiet -c $OUT/sums) && umount /tmp/mnt'
	on target "grep 'state=up' $iser_sessions | sed 's/^/target: /'"
}

# The cable is out until the initiator has given up the connection and the target the
# session, and blocks are being flushed.
iser_cable()
{
	on client 'start_blocks /dev/$disk'
	blocks_written
	monitor client 'set_link card off'
	within "$learns" client "! $iser_is_in"
	within 120 target "! grep -q state=up $iser_sessions"
	monitor client 'set_link card on'
	within 120 client "$iser_is_in"
	all_there
}

# The target dies; what it had in its page cache alone is lost.
iser_target_dies()
{
	on client 'start_blocks /dev/$disk'
	blocks_written
	kill_host target
	within "$learns" client "! $iser_is_in"
}

iser_target_is_back()
{
	iser_target_up
	within 180 client "$iser_is_in"
	all_there
}

iser_unload()
{
	on client 'logout && initiator_down && no_reports'
	on target 'target_down && transport_down && no_reports'
}

with_iser()
{
	try "iSER: a stock initiator across the wire" iser_disk
	try "iSER: cable pulled, and put back" iser_cable
	try "iSER: the target is killed" iser_target_dies
	boot target
	try "iSER: it comes back" iser_target_is_back
	try "iSER: unload" iser_unload
}
