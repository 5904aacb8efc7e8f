# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by scripts/guest/iser and check-iser: a target of LIO and open-iscsi in one
# guest. $OUT/packages has open-iscsi and what it needs. $LINK is rxe (default) or siw.

# shellcheck source=scripts/guest/guest.sh
. "$OUT/guest.sh"

# The addresses of the two adapters.
# shellcheck disable=SC2034
case ${LINK:=rxe} in
rxe)
	address=10.8.0.1 address6=fd00:8::1 netdevs=(v0 v2)
	second=10.8.1.1 second6=fd00:81::1 spare=10.8.9.1
	;;
siw)
	address=10.9.0.1 address6=fd00:9::1 netdevs=(dummy0 dummy1)
	second=10.9.1.1 second6=fd00:91::1 spare=10.9.9.1
	;;
esac
target=iqn.2026-01.test:t
lio=/sys/kernel/config/target
tpg=$lio/iscsi/$target/tpgt_1
backstore=iblock_0/null
iface=iser

initiator_up()
{
	unpack || die "no packages"
	mkdir -p /etc/iscsi /run/lock/iscsi /var/lib/iscsi
	put InitiatorName=iqn.2026-01.test:i /etc/iscsi/initiatorname.iscsi
	modprobe -a ib_iser sd_mod sg || die "no initiator"
	setsid iscsid -f >/run/iscsid.log 2>&1 &
	iscsid=$!
	for _ in $(seq 100); do
		iscsiadm -m session 2>&1 | grep -q 'No active' && return
		sleep 0.1
	done
	die "iscsid does not answer"
}

initiator_down()
{
	iscsiadm -k 0
	wait "$iscsid"
	! grep -q '^ib_iser ' /proc/modules || modprobe -r ib_iser || die "ib_iser stays"
}

backstore_up()
{
	# Built in, it has its parameters from the kernel's command line.
	modprobe null_blk nr_devices=1 memory_backed=1 gb=1 || die "no null_blk"
	modprobe -a target_core_mod target_core_iblock iscsi_target_mod || die "no LIO"
	# LIO keeps persistent reservations there.
	mkdir -p /var/target/pr $lio/core/iblock_0/null
	put udev_path=/dev/nullb0 $lio/core/iblock_0/null/control || die backstore
	put 1 $lio/core/iblock_0/null/enable || die backstore
}

# file_backstore_up FILE: another backstore, with a cache that initiators have to flush
file_backstore_up()
{
	local f=$lio/core/fileio_0/file file=$1

	backstore=fileio_0/file
	[ ! -d $f ] || return 0
	modprobe target_core_file && mkdir -p $f && truncate -s 64M "$file" &&
		put "fd_dev_name=$file,fd_dev_size=$((64 << 20)),fd_buffered_io=1" \
			$f/control && put 1 $f/enable && put 1234 $f/wwn/vpd_unit_serial
}

# portal_up ADDRESS: serve the target there. LIO's portal for TCP has the same port, which
# siw shares with TCP, so there it gets a network namespace of its own.
portal_up()
{
	local in=()

	[ "$LINK" != siw ] || in=(unshare -n)
	"${in[@]}" mkdir -p "$tpg/np/$1:3260" && put 1 "$tpg/np/$1:3260/iser"
}

# unplug N: take the adapter away, 0 or 1
unplug()
{
	rdma link delete "$LINK$1"
}

# plug N: give it back
plug()
{
	rdma link add "$LINK$1" type "$LINK" netdev "${netdevs[$1]}"
}

# target_up TRANSPORT [ADDRESS]...: make the target, with portals there; without a
# transport LIO asks for one
target_up()
{
	[ -z "$1" ] || modprobe "$1" || return
	shift
	mkdir -p $tpg/lun/lun_0
	for a in "${@:-$address}"; do
		portal_up "$a" || return
	done
	ln -s $lio/core/$backstore $tpg/lun/lun_0/l
	put 0 $tpg/attrib/authentication
	put 1 $tpg/attrib/generate_node_acls
	put 0 $tpg/attrib/demo_mode_write_protect
	put 1 $tpg/attrib/cache_dynamic_acls
	put 1 $tpg/enable
}

# Has LIO no session any more?
no_sessions()
{
	[ "$(cat $lio/iscsi/$target/fabric_statistics/iscsi_instance/sessions)" = 0 ]
}

# LIO frees with the portal group what a session that is being closed still uses.
target_down()
{
	put 0 $tpg/enable
	wait_for 30 no_sessions || return
	rm -f $tpg/lun/lun_*/l
	rmdir $tpg/np/* $tpg/lun/lun_* $tpg $lio/iscsi/$target ||
		{ echo "the target stays"; return 1; }
}

# LIO asks for ib_isert whatever transport it has. On 6.1 it lets go of a transport a
# moment after the target.
transport_down()
{
	local m

	for m in kdapl_isert ib_isert; do
		for _ in $(seq 100); do
			grep -q "^$m " /proc/modules || break
			modprobe -r $m 2>/dev/null || sleep 0.1
		done
		! grep -q "^$m " /proc/modules || { echo "$m stays"; return 1; }
	done
}

# login [ADDRESS [SETTING=VALUE]...]: log in, and name the disk in $disk
login()
{
	local at=${1:-$address} s

	[ $# -eq 0 ] || shift
	iscsiadm -m node -T $target -p "$at:3260" -o delete >/dev/null 2>&1
	iscsiadm -m node -T $target -p "$at:3260" -I "$iface" -o new >/dev/null || return
	for s in "$@"; do
		iscsiadm -m node -T $target -p "$at:3260" -o update -n "${s%%=*}" \
			-v "${s#*=}" || return
	done
	iscsiadm -m node -T $target -p "$at:3260" -l || return
	find_disk "$at"
}

# find_disk ADDRESS [LUN]: name the disk of the session there in $disk when it is there
find_disk()
{
	local at=${1#[} lun=${2:-0} c session

	at=${at%]}
	for _ in $(seq 300); do
		set -- /sys/class/iscsi_connection/*
		for c; do
			[ $# -eq 1 ] || [ "$(cat "$c/persistent_address")" = "$at" ] ||
				continue
			session=/sys/class/iscsi_session/session${c#*/connection}
			disk=$(basename "$(echo "${session%:*}"/device/target*/*:"$lun"/block/*)")
			[ -b "/dev/$disk" ] && return
		done
		sleep 0.1
	done
	echo "no disk"
	return 1
}

logout()
{
	iscsiadm -m node -T $target -u || return
	iscsiadm -m node -T $target -o delete
}
