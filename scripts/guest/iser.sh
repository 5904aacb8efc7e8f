# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by scripts/guest/iser and check-iser: a target of LIO and open-iscsi in one
# guest. $OUT/packages has open-iscsi and what it needs, unpacked; log says where
# failures go.

address=10.8.0.1
target=iqn.2026-01.test:t
lio=/sys/kernel/config/target
tpg=$lio/iscsi/$target/tpgt_1

die()
{
	echo "iser: $*" >&2
	dmesg | tail -n 60 >&2
	exit 1
}

# put VALUE FILE: write a setting
put()
{
	echo "$1" >"$2" || { echo "$2 does not take $1"; return 1; }
}

initiator_up()
{
	# /lib and /sbin may be links.
	tar -C "$OUT/packages" -c . | tar -C / -x --keep-directory-symlink ||
		die "no packages"
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
	modprobe -r ib_iser || die "ib_iser stays"
}

backstore_up()
{
	modprobe null_blk nr_devices=1 memory_backed=1 gb=1 || die "no null_blk"
	modprobe -a target_core_mod target_core_iblock iscsi_target_mod || die "no LIO"
	mkdir -p $lio/core/iblock_0/null
	put udev_path=/dev/nullb0 $lio/core/iblock_0/null/control || die backstore
	put 1 $lio/core/iblock_0/null/enable || die backstore
}

# portal_up ADDRESS: serve the target there
portal_up()
{
	mkdir -p "$tpg/np/$1:3260" && put 1 "$tpg/np/$1:3260/iser"
}

# target_up TRANSPORT [ADDRESS]...: make the target, with portals there
target_up()
{
	modprobe "$1" || return
	shift
	mkdir -p $tpg/lun/lun_0
	for a in "${@:-$address}"; do
		portal_up "$a" || return
	done
	ln -s $lio/core/iblock_0/null $tpg/lun/lun_0/l
	put 0 $tpg/attrib/authentication
	put 1 $tpg/attrib/generate_node_acls
	put 0 $tpg/attrib/demo_mode_write_protect
	put 1 $tpg/attrib/cache_dynamic_acls
	put 1 $tpg/enable
}

target_down()
{
	put 0 $tpg/enable
	rm -f $tpg/lun/lun_0/l
	rmdir $tpg/np/* $tpg/lun/lun_0 $tpg $lio/iscsi/$target ||
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
	iscsiadm -m node -T $target -p "$at:3260" -I iser -o new >/dev/null || return
	for s in "$@"; do
		iscsiadm -m node -T $target -p "$at:3260" -o update -n "${s%%=*}" \
			-v "${s#*=}" || return
	done
	iscsiadm -m node -T $target -p "$at:3260" -l || return
	find_disk
}

# Name the disk of the only session in $disk when it is there.
find_disk()
{
	for _ in $(seq 300); do
		disk=$(basename "$(echo /sys/class/iscsi_session/*/device/target*/*/block/*)")
		[ -b "/dev/$disk" ] && return
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

# Reports of the kernel since it was booted, for the end.
no_reports()
{
	! dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|refcount_t|hung_task'
}
