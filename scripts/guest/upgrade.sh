# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154
#
# Sourced by guest/check-boot, whose functions and variables it uses: an upgrade from a release
# before this one while a disk is mounted and an iSER session stays, and the boot after it.

# The disk that is mounted
keeper=/run/keeper

# upgraded VERSION: the tools are those of this version while the modules are the former ones. Nobody
# who reads or writes notices; what the former tool has saved is restored at the next boot.
upgraded()
{
	service=
	former=$1 former_in=$OUT/former-$1
	[ -d "$former_in" ] || { skip "release $former is not here for this kernel"; return; }
	dmesg -C
	former_is_used || return
	start_writing
	tools_know_former || { echo "with the former modules"; touch /run/stop-writing; return 1; }
	touch /run/stop-writing
	wait "$writing" || { echo "who writes has noticed"; return 1; }
	at_is_alive || return
	cp "$blk_saved" /run/saved.new && umount /run/kept && said power_off || return
	for saved_by in /run/saved.former /run/saved.new; do
		cp "$saved_by" "$blk_saved" && cp /run/saved.lio $lio_saved || return
		is_restored || { echo "after the boot, from $saved_by"; return 1; }
		umount /run/kept && said power_off || return
	done
	taken_over
}

# The modules are exchanged without a boot, by the commands that the installation prints.
taken_over()
{
	local line new

	# There is no such case but on User Mode Linux.
	new=$(modinfo -F version "$OUT"/root/lib/modules/*/updates/kdapl.ko)
	former_is_used && umount /run/kept && log_out || return
	dkms-running "$new" >/run/running || return
	grep -q "kDAPL $new is installed, and version $former is loaded: " /run/running ||
		{ cat /run/running; return 1; }
	sed -n 's/^    //p' /run/running >/run/commands
	# "Once no portal speaks iSER"
	in='' unit rtslib-fb-targetctl ExecStop || return
	while read -r -u 3 line; do
		as_systemd $line || { echo "$line"; return 1; }
	done 3</run/commands
	[ "$(cat /sys/module/kdapl/version)" = "$new" ] && target && all ||
		{ echo "with the modules of $new"; return 1; }
	# ib_isert would serve as well.
	wait_for 30 log_in "$first" 3260 && grep -q ' state=up ' /proc/kdapl/kdapl_isert/sessions ||
		{ echo "kdapl_isert does not serve"; return 1; }
	log_out
}

# as_systemd COMMAND...: run it; what it has systemd do with units is done here
as_systemd()
{
	case "$*" in
	"systemctl stop kdapl-blk kdapl-blk-target")
		echo running >/run/system_state
		in='' unit kdapl-blk-shutdown ExecStop && exports_stop
		;;
	"systemctl start kdapl-blk-target kdapl-blk") exports && disks && disks_are_up ;;
	systemctl*) echo "nobody knows this command"; return 1 ;;
	*) said "$@" ;;
	esac
}

# The former release with its exports, disks and target
former_is_used()
{
	MODPROBE_OPTIONS="-d $former_in/root" modprobe -a kdapl_isert kdapl_blk_tgt kdapl_blk &&
		[ "$(cat /sys/module/kdapl/version)" = "$former" ] && adapters || return
	truncate -s 64M $keeper
	PATH=$former_in:$PATH configure_blk &&
		PATH=$former_in:$PATH said kdapl-blk export -i "${LINK}0/1" -s keeper $keeper &&
		PATH=$former_in:$PATH said kdapl-blk connect -i "${LINK}0/1" -a "$first" \
			-s keeper keeper &&
		PATH=$former_in:$PATH said kdapl-blk save && cp "$blk_saved" /run/saved.former || return
	mkdir -p /run/kept && said mkfs.ext4 -q -F "$(device_of keeper)" &&
		mount "$(device_of keeper)" /run/kept && target && address_changes &&
		wait_for 30 log_in "$first" 3260 && find_disk "$first"
}

# Former releases listen over siw in the network namespace of target(), and again, in
# their own, when any address changes.
address_changes()
{
	ip addr add 10.250.0.1/32 dev lo && ip addr del 10.250.0.1/32 dev lo
}

device_of() { echo "/dev/$(cat "$kdapl_blk/$1/device")"; }

start_writing()
{
	rm -f /run/stop-writing
	(
		set -e
		n=0
		until [ -e /run/stop-writing ]; do
			n=$((n + 1))
			echo "$n" >/run/kept/number
			sync -f /run/kept/number
			dd if=/dev/urandom of="/dev/$disk" bs=4k seek=1024 count=4 oflag=direct 2>/run/dd
		done
		[ "$n" -gt 1 ]
	) &
	writing=$!
}

# The new tools, which are in PATH, and the former modules
tools_know_former()
{
	said kdapl-blk list && grep -q '^keeper .* connected ' /run/said || { cat /run/said; return 1; }
	said kdapl-blk stats keeper || return
	! kdapl-blk disconnect keeper >/run/said 2>&1 && grep -q 'is mounted at /run/kept' /run/said ||
		{ cat /run/said; return 1; }
	tools_ask_former && said kdapl-blk restore && said kdapl-blk save
}

# 0.9.0 has no statistics, and asks no target for its volumes.
tools_ask_former()
{
	if [ "$former" != 0.9.0 ]; then
		said kdapl-stat peers && said kdapl-stat metrics &&
			said kdapl-blk discover -i "${LINK}0/1" -a "$first" &&
			grep -q '^keeper ' /run/said || { cat /run/said; return 1; }
		return
	fi
	! kdapl-stat peers >/run/said 2>&1 &&
		grep -q "kdapl.ko $former is loaded, which has no statistics" /run/said ||
		{ cat /run/said; return 1; }
	! kdapl-blk discover -i "${LINK}0/1" -a "$first" >/run/said 2>&1 &&
		grep -q 'kdapl_blk.ko is too old to ask' /run/said || { cat /run/said; return 1; }
}

# The session of before is there
at_is_alive()
{
	dd if=/dev/zero of="/dev/$disk" bs=4k seek=1024 count=4 oflag=direct 2>/run/dd ||
		{ cat /run/dd; return 1; }
	! dmesg | grep -E 'conn error|session recovery|detected conn' ||
		{ echo "the iSER session has broken"; return 1; }
	log_out
}

is_restored()
{
	modules && [ "$(cat /sys/module/kdapl/version)" != "$former" ] && adapters && target &&
		exports && disks && all && wait_for 60 is_connected keeper &&
		mount "$(device_of keeper)" /run/kept && [ "$(cat /run/kept/number)" -gt 1 ]
}
