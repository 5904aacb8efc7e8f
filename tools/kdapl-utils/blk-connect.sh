# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk discover, connect and disconnect. They use $ini and the options of kdapl-blk.

# ---- Connecting ----

# Print the address of host $1, the first one if it has several.
address_of()
{
	local found

	while found=$(first_address "$1"); [ -z "$found" ]; do
		may_wait ||
			die "there is no host $1: an address, or a name that can be resolved, is wanted"
		waits "there is no host $1, or names cannot be resolved yet"
	done
	echo "$found"
}

# Print the disk that is volume $number of $name at $address port $port through $ia, if any.
same_volume()
{
	local d

	for d in "$ini"/*/; do
		d=${d%/}
		[ "$(cat "$d/state")" != idle ] && [ "$(cat "$d/subsystem")" = "$name" ] &&
			[ "$(cat "$d/namespace")" = "$number" ] &&
			[ "$(cat "$d/address")" = "$address" ] &&
			[ "$(cat "$d/conn_qual")" = "$port" ] &&
			[ "$(whole_ia "$(cat "$d/ia")" 2>/dev/null)" = "$ia" ] || continue
		echo "${d##*/}"
		return
	done
}

# Print why a disk was not connected; status 1 if another attempt may fail, too.
connect_why()
{
	local there="$address port $port"

	case $error in
	"Connection refused")
		echo "no target listens at $there, or it refuses; \"kdapl-blk list\" there tells where it does"
		;;
	"No route to host" | "Connection timed out" | "Cannot assign requested address")
		echo "$address does not answer, or $ia does not lead there: see \"ip route get $address\""
		;;
	"Connection reset by peer" | "Software caused connection abort" | \
		"Transport endpoint is not connected")
		echo "the connection to $there has ended while it was set up"
		;;
	"No such file or directory")
		echo "there is no subsystem $name with a volume $number at $there, or it is disabled"
		;;
	"Resource temporarily unavailable")
		echo "the target is still busy with what this disk, or another path, has sent it"
		;;
	"Too many users") echo "the target has as many connections as it takes" ;;
	"No buffer space available") echo "the target has no memory for another connection" ;;
	"Cannot send after transport endpoint shutdown") echo "the target is being stopped" ;;
	"Stale file handle") echo "the target has later connections of this disk" ;;
	"Operation not permitted") echo "the target has cut off a client of this host a moment ago" ;;
	"No such device")
		echo "$ia is gone, or the volume there is another one than that of -u"
		;;
	*)
		connect_never
		return 1
		;;
	esac
}

# Print what was wrong with what this command was given.
connect_invalid()
{
	if [ "$(cat "$ini/$disk/share")" = 1 ]; then
		echo "a disk that shares connections has them already, with other values: queues, read_queues, depth and all *_ms but give_up_ms must be the same"
	else
		echo "-a $address: an IPv4 or IPv6 address is wanted"
	fi
}

# Print why connecting fails, however often it is tried.
connect_never()
{
	case $error in
	"Permission denied")
		echo "the target does not let client $(cat "$ini/$disk/client") use $name: it is not allowed there, or does not have the same secret"
		;;
	"File exists")
		echo "this host has the volume as another disk already; -m makes a further path to it"
		;;
	"Device or resource busy")
		echo "another disk of this host is that volume, and cannot share it"
		;;
	"Transport endpoint is already connected") echo "another process connects it" ;;
	"Protocol error") echo "what answers at $address port $port is no kdapl_blk_tgt" ;;
	"Protocol not supported") echo "the target speaks another version of the protocol" ;;
	"Invalid argument") connect_invalid ;;
	*) echo "$error" ;;
	esac
}

# Say that another process has disconnected the disk while this one connected it, and end.
disconnected_meanwhile()
{
	die "cannot connect to $name: disk $disk was disconnected meanwhile"
}

# Connect the disk $disk; with --wait, try again while that may help.
connect_disk()
{
	local d=$ini/$disk why

	while mark_log; ! try 1 "$d/connected"; do
		# Between the two steps of a disconnect the disk is idle. An older module has
		# another error for that.
		[ -e "$d" ] && [ "$error" != "Operation canceled" ] || disconnected_meanwhile
		if why=$(connect_why) && may_wait; then
			waits "$name: $why"
			continue
		fi
		echo "$me: cannot connect to $name: $why" >&2
		kernel_says
		exit 1
	done
}

# Remove directory $1 of a disk, unless another process does so first.
remove_dir()
{
	local said

	said=$(rmdir "$1" 2>&1) || [ ! -e "$1" ] || { echo "$said" >&2; return 1; }
}

# Print a name for the disk that is not taken.
free_name()
{
	local n=0

	while [ -e "$ini/$name${n#0}" ]; do
		n=$((n + 1))
	done
	echo "$name${n#0}"
}

# Tell the disk in directory $1 where its target is, and who we are.
put_target()
{
	put "$ia" "$1/ia" "-i $ia"
	put "$address" "$1/address" "-a $address"
	put "$port" "$1/conn_qual" "-p $port"
	[ ${#clients[@]} -eq 0 ] || put "${clients[0]}" "$1/client" "-c ${clients[0]}"
}

cmd_connect()
{
	local d other device

	[ $# -le 1 ] || wrong "connect: one name for the DISK is wanted"
	[ -n "$address" ] || wrong "connect: -a ADDRESS is missing"
	[ -n "$name" ] || wrong "connect: -s NAME is missing"
	check_name -s "$name"
	[ ${#clients[@]} -le 1 ] || wrong "connect: one -c CLIENT is wanted, our own name"
	[ $# -eq 0 ] || check_name connect "$1"
	[[ ! ${1-$name} =~ ^discover-[0-9]+$ ]] ||
		wrong "connect ${1-$name}: such a name stands for what is being discovered: name the disk"
	[ "${1-$name}" != all ] || wrong "connect: \"all\" stands for all disks: name the disk"
	[ "$wait_for" != 0 ] || [[ ! ${1-} =~ ^[0-9]+$ ]] ||
		wrong "connect: --wait=$1 is how to wait for $1 seconds; $1 by itself names the disk"
	check_options
	address=$(address_of "$address") || exit
	need kdapl_blk "$ini"
	ia=$(chosen_ia) || exit
	[ -n "$wait_for" ] || check_ia "$ia"
	other=$(same_volume)
	[ -z "$other" ] || [ -n "$further_path" ] ||
		die "disk $other, /dev/$(cat "$ini/$other/device"), is that volume already; -m makes a further path to it"
	disk=${1:-$(free_name)}
	d=$ini/$disk
	[ ! -e "$d" ] ||
		die "there is a disk $disk already, which is $(cat "$d/state"); \"$me disconnect $disk\" takes it away"
	make_dir "$d" "disk $disk"
	# Nothing is left of the disk if this command ends early, except by SIGKILL.
	# shellcheck disable=SC2064	# $d is gone when the trap is taken
	trap "remove_dir ${d@Q}" EXIT
	put_target "$d"
	put "$name" "$d/subsystem" "-s $name"
	put "$number" "$d/namespace" "-n $number"
	[ -z "$uuid" ] || put "$uuid" "$d/uuid" "-u $uuid"
	# An older module, without only_path, takes any path.
	[ ! -e "$d/only_path" ] || [ -n "$further_path" ] || put 1 "$d/only_path" only_path
	set_options "$d"
	connect_disk
	device=$(cat "$d/device" 2>/dev/null)
	[ -n "$device" ] || disconnected_meanwhile
	trap - EXIT
	echo "/dev/$device"
}

# ---- Discovering ----

discover_why()
{
	case $error in
	"Operation not supported") echo "the target is too old to tell what it has" ;;
	"Operation canceled") echo "another process has taken disk $disk away meanwhile" ;;
	"Permission denied")
		echo "client $(cat "$ini/$disk/client") has a secret there: prove it with -o secret=..."
		;;
	*) connect_why ;;
	esac
}

# Print what the target tells of each volume: number, size, UUID, access, name.
ask_volumes()
{
	local d=$ini/$disk n=0 lines

	while :; do
		mark_log
		if ! try $n "$d/discover"; then
			echo "$me: cannot ask $address: $(discover_why)" >&2
			kernel_says
			exit 1
		fi
		mapfile -t lines <"$d/discover"
		[ ${#lines[@]} -gt 0 ] || break
		printf '%s\n' "${lines[@]}"
		n=$((n + ${#lines[@]}))
	done
}

discovered_rows()
{
	local number size id access subsystem

	printf 'EXPORT\tVOLUME\tSIZE\tACCESS\tUUID\n'
	while read -r number size id access subsystem; do
		printf '%s\t%s\t%s\t%s\t%s\n' "$subsystem" "$number" "$(human "$size")" \
			"$access" "$id"
	done
}

discovered_json()
{
	local number size id access subsystem comma='' read_only

	printf '{"volumes": [\n    '
	while read -r number size id access subsystem; do
		[ "$comma" = '' ] || printf ',\n    '
		comma=1
		read_only=false
		[ "$access" != ro ] || read_only=true
		printf '{'
		json_members subsystem "$subsystem" volume# "$number" size# "$size" \
			read_only: $read_only uuid "$id"
		printf '}'
	done
	printf ']}\n'
}

cmd_discover()
{
	local d found

	[ $# -eq 0 ] || wrong "discover: no argument is wanted"
	[ -n "$address" ] || wrong "discover: -a ADDRESS is missing"
	[ ${#clients[@]} -le 1 ] || wrong "discover: one -c CLIENT is wanted, our own name"
	check_options
	address=$(address_of "$address") || exit
	need kdapl_blk "$ini"
	ia=$(chosen_ia) || exit
	check_ia "$ia"
	disk=discover-$$
	d=$ini/$disk
	make_dir "$d" "$d"
	# shellcheck disable=SC2064	# $d is gone when the trap is taken
	trap "remove_dir ${d@Q}" EXIT
	[ -e "$d/discover" ] || die "kdapl_blk.ko is too old to ask: load the one of this version"
	put_target "$d"
	set_options "$d"
	# Not in a pipe, so that a failure ends this command.
	found=$(ask_volumes) || exit
	found=${found:+$found$'\n'}
	if [ -n "$as_json" ]; then
		printf '%s' "$found" | discovered_json
	else
		printf '%s' "$found" | discovered_rows | table
	fi
}

# ---- Disconnecting ----

# Print the directory of disk $1, which is the name of the disk or of its device.
disk_called()
{
	local d device found=()

	device=$1
	[[ $1 != /* ]] || device=$(readlink -f "$1")
	device=${device#/dev/}
	for d in "$ini"/*/; do
		d=${d%/}
		if [ "${d##*/}" = "$1" ] ||
			{ [ -n "$device" ] && [ "$(cat "$d/device")" = "$device" ]; }; then
			found+=("$d")
		fi
	done
	case ${#found[@]} in
	0)
		[[ ! $device =~ ^(kdapl[0-9]+)p[0-9]+$ ]] ||
			die "$1 is a partition: name the disk, ${BASH_REMATCH[1]}"
		die "there is no disk $1; see \"$me list\""
		;;
	1) echo "${found[0]}" ;;
	*) die "$1 is one disk's name and another one's device: say /dev/$1 for the latter, or see \"$me list\"" ;;
	esac
}

# Print the lines of mountinfo of each mount namespace that a process has, ours first, each with
# the id of such a process before it, "self" for ours.
all_mounts()
{
	local inode path pid last

	last=$(stat -L -c %i /proc/self/ns/mnt)
	sed 's/^/self /' /proc/self/mountinfo
	# A process that ends meanwhile leaves its namespace to the next one.
	stat -L -c '%i %n' /proc/[0-9]*/ns/mnt 2>/dev/null |
		awk -v ours="$last" '$1 != ours' | sort -n | while read -r inode path; do
			[ "$inode" != "$last" ] || continue
			pid=${path#/proc/}
			pid=${pid%%/*}
			sed "s/^/$pid /" "/proc/$pid/mountinfo" 2>/dev/null && last=$inode
		done
}

# Print what uses block device $1 of the disk in directory $2; status 1 if nothing does.
uses_of()
{
	local part name pid at holder mounts

	mounts=$(all_mounts)
	for part in "$blocks/$1" "$blocks/$1/$1"p*; do
		name=${part##*/}
		[ -e "$part/dev" ] || continue
		# All is read: whoever has no SIGPIPE, as a unit of systemd, would say so.
		read -r pid at <<<"$(printf '%s\n' "$mounts" |
			awk -v n="$(cat "$part/dev")" -v dev="/dev/$name" '
				found { next }
				{ for (i = 8; $i != "-" && i < NF; i++); }
				$4 == n || $(i + 2) == dev { print $1, $6; found = 1 }')"
		case $pid in
		'') ;;
		self) printf '/dev/%s is mounted at %b\n' "$name" "$at"; return ;;
		*)
			printf '/dev/%s is mounted at %b of process %s, in another mount namespace\n' \
				"$name" "$at" "$pid"
			return
			;;
		esac
		! grep -q "^/dev/$name " /proc/swaps 2>/dev/null ||
			{ echo "/dev/$name is swap"; return; }
		for holder in "$part"/holders/*; do
			echo "/dev/$name is part of /dev/${holder##*/}"
			return
		done
	done
	# That is another user, as a program that has opened it for itself, or a target. Modules before
	# 1.2.0 do not tell.
	[ "$(cat "$2/claimed" 2>/dev/null)" = 1 ] || return
	echo "somebody has claimed /dev/$1"
}

# take_away DIRECTORY: take the disk away. Writing to "connected" waits until the disk is
# gone, and can be interrupted; rmdir alone waits for a short time only.
take_away()
{
	local device uses

	device=$(cat "$1/device" 2>/dev/null)
	if [ -n "$device" ] && [ -z "$force" ] && uses=$(uses_of "$device" "$1"); then
		echo "$me: cannot disconnect ${1##*/}: $uses; -f takes it away all the same" >&2
		return 1
	fi
	if ! try 0 "$1/connected" && [ -e "$1" ]; then
		echo "$me: ${1##*/} is still being disconnected: $error" >&2
		return 1
	fi
	remove_dir "$1"
}

cmd_disconnect()
{
	local d status=0

	[ $# -eq 1 ] && [ -n "$1" ] || wrong "disconnect: one DISK is wanted, or \"all\""
	if [ "$1" = all ] && [ ! -e "$ini/all" ]; then
		[ -d "$ini" ] || echo "$me: kdapl_blk.ko is not loaded, so there is no disk" >&2
		for d in "$ini"/*/; do
			take_away "${d%/}" || status=1
		done
		return $status
	fi
	d=$(disk_called "$1") || exit
	take_away "$d"
}
