# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk export and unexport. They use $tgt, $state and the options of kdapl-blk.

# ---- Volumes that are stopped and started ----
#
# A volume that was disabled has been flushed. If it is the same instance when it is
# enabled again, its clients know that nothing is lost. The note of the instance is removed
# before anything is written to the volume, so that there is no note after a crash.

# Write file or directory $1 to the medium. Fails, with what sync(1) says, if that does.
sync_one()
{
	local said

	# In a trap, "return" alone has the status from before the trap.
	said=$(sync "$1" 2>&1) && return 0
	# Not every file system can write a single directory.
	[[ $said == *"Invalid argument"* ]] && sync && return 0
	echo "$said" >&2
	return 1
}

# Print the file for the instance of the volume in directory $1.
note_of()
{
	local uuid

	uuid=$(cat "$1/uuid") && [ -n "$uuid" ] && echo "$state/$uuid"
}

# keep_instance DIRECTORY INSTANCE: note the instance of a volume, which was disabled
keep_instance()
{
	local note

	note=$(note_of "$1") || return 0
	{
		mkdir -p "$state" && echo "$2" >"$note.new" &&
			sync_one "$note.new" && mv "$note.new" "$note" &&
			sync_one "$state"
	} 2>/dev/null ||
		echo "$me: cannot write to $state: clients of $(cat "$1/path") that have not flushed will get errors" >&2
}

# give_back DIRECTORY INSTANCE: note the instance of a volume again, unless it was enabled
give_back()
{
	[ "$(cat "$1/enable" 2>/dev/null)" = 1 ] || keep_instance "$@"
}

# Give the volume in directory $1, which is about to be enabled, its noted instance. If this
# process, which is one of its own, ends before enable_volume() is done, the note is kept.
use_instance()
{
	local note instance

	note=$(note_of "$1") && [ -e "$note" ] || return 0
	instance=$(cat "$note")
	# shellcheck disable=SC2064	# these variables are gone when the trap is taken
	trap "give_back ${1@Q} ${instance@Q}" EXIT
	# A note that cannot be removed would be wrong after the next write.
	{ rm "$note" && sync_one "$state"; } 2>/dev/null || return 0
	put "$instance" "$1/instance" "instance $instance"
}

# Print why a volume was not enabled.
enable_why()
{
	case $error in
	"No such file or directory") echo "it is not there" ;;
	"Device or resource busy")
		echo "it is in use on this host (mounted, swap, part of another device), or exported already"
		;;
	"Permission denied" | "Read-only file system" | "Operation not permitted")
		echo "it can only be read: export it with -r"
		;;
	"Invalid argument") echo "it is no block device, and no file with contents" ;;
	"No such device" | "No such device or address")
		echo "there is no such device, or not the one that the volume was kept in"
		;;
	"No medium found") echo "there is no medium in it" ;;
	*) echo "$error" ;;
	esac
}

enable_volume()
{
	local path

	use_instance "$1"
	if try 1 "$1/enable"; then
		trap - EXIT
		return
	fi
	path=$(cat "$1/path")
	echo "$me: cannot export $path: $(enable_why)" >&2
	kernel_says
	exit 1
}

disable_volume()
{
	[ "$(cat "$1/enable")" = 1 ] || return 0
	put 0 "$1/enable" "$(cat "$1/path")"
	keep_instance "$1" "$(cat "$1/instance")"
}

# The kernel module asks only drivers for an identifier. Print a UUID for the block device $1
# if sysfs has an identifier of it.
uuid_of_device()
{
	local numbers dir id=''

	numbers=$(stat -L -c '%t %T' "$1") || return
	dir=/sys/dev/block/$((0x${numbers% *})):$((0x${numbers#* }))
	[ -e "$dir" ] || return
	for id in dm/uuid md/uuid serial; do
		[ -s "$dir/$id" ] || continue
		id=$(printf '%s %s' "$id" "$(cat "$dir/$id")" | sha256sum)
		id=${id:0:12}8${id:13:3}8${id:17:15}
		echo "${id:0:8}-${id:8:4}-${id:12:4}-${id:16:4}-${id:20:12}"
		return
	done
	return 1
}

# Set the UUID of the volume of $1 in directory $2.
set_uuid()
{
	local derived

	if [ -n "$uuid" ]; then
		put "$uuid" "$2/uuid" "-u $uuid"
	elif [ -b "$1" ] && [ -z "$(cat "$2/backing_uuid")" ] &&
		derived=$(uuid_of_device "$1"); then
		put "$derived" "$2/uuid" "$derived"
	fi
}

# ---- Ports and subsystems ----

# Print the directory of the port on $1 $2; make one if there is none.
port_of()
{
	local d n=1

	for d in "$tgt"/ports/*/; do
		if [ "$(cat "$d/ia")" = "$1" ] &&
			[ "$(cat "$d/conn_qual")" = "$2" ]; then
			echo "${d%/}"
			return
		fi
	done
	while [ -e "$tgt/ports/$n" ]; do
		n=$((n + 1))
	done
	d=$tgt/ports/$n
	make_dir "$d" "a port"
	# This runs in a process of its own, which ends if a value is refused.
	# shellcheck disable=SC2064	# $d is gone when the trap is taken
	trap "rmdir ${d@Q}" EXIT
	put "$1" "$d/ia" "-i $1"
	put "$2" "$d/conn_qual" "-p $2"
	trap - EXIT
	echo "$d"
}

# Allow the clients of -c, or any, the subsystem $name, which is new.
allow_clients()
{
	local c said_why

	if [ ${#clients[@]} -eq 0 ]; then
		put 1 "$tgt/subsystems/$name/allow_any_client" "$name"
	fi
	for c in "${clients[@]}"; do
		[ -d "$tgt/clients/$c" ] || make_dir "$tgt/clients/$c" "client $c"
		said_why=$(ln -s "$tgt/clients/$c" \
			"$tgt/subsystems/$name/allowed_clients/$c" 2>&1) ||
			die "cannot allow $c: ${said_why##*: }"
	done
}

# Print why a port does not listen, for message $1 of ln.
listen_why()
{
	case $1 in
	"Address already in use") echo "another service has port $port there: choose one with -p" ;;
	"No such device") echo "there is no adapter $ia" ;;
	"Cannot assign requested address") echo "$ia has no address" ;;
	"Cannot allocate memory") echo "there is no memory, or the adapter has no more objects" ;;
	*) echo "$1" ;;
	esac
}

# Offer the subsystem $name on $ia port $port.
offer()
{
	local p said_why

	p=$(port_of "$ia" "$port") || exit
	# A port that offers nothing is removed again: it may have half of its options.
	# shellcheck disable=SC2064	# $p is gone when the trap is taken
	trap "[ -n \"\$(ls ${p@Q}/subsystems)\" ] || rmdir ${p@Q}" EXIT
	if [ ! -e "$p/subsystems/$name" ]; then
		set_options "$p"
		said_why=$(ln -s "$tgt/subsystems/$name" "$p/subsystems/$name" 2>&1) || {
			echo "$me: cannot listen on $ia port $port: $(listen_why "${said_why##*: }")" >&2
			kernel_says
			exit 1
		}
	elif [ ${#options[@]} -gt 0 ]; then
		die "${options[0]%%=*}: $name is on $ia port $port already, with other options perhaps"
	fi
}

# Die unless there is the adapter $ia, or -f says that it comes later.
expect_ia()
{
	local said_why

	[ -n "$force" ] || said_why=$(check_ia "$ia" 2>&1) ||
		die "${said_why#"$me: "}; -f exports for one that comes later"
}

# Offer an existing subsystem at another port. Its volumes stay as they are.
export_again()
{
	local option

	for option in r u n; do
		[[ $given != *$option* ]] ||
			wrong "export: -$option is for a PATH, and there is none"
	done
	[ -d "$tgt/subsystems/$name" ] ||
		die "there is no subsystem $name to offer at another port: give the path of its first volume"
	[ ${#clients[@]} -eq 0 ] || die "-c: the clients of $name are the same at all ports"
	ia=$(chosen_ia) || exit
	expect_ia
	(offer) || exit
	echo "$name: also on $ia port $port"
	tell_waiting
}

cmd_export()
{
	local path=${1-} ns made='' c

	check_options
	if [ $# -eq 0 ] && [ -n "$name" ]; then
		check_name -s "$name"
		export_again
		return
	fi
	[ $# -eq 1 ] && [ -n "$path" ] || wrong "export: one PATH is wanted"
	check_text export "$path"
	[ -e "$path" ] || die "$path is not there"
	[ -b "$path" ] || [ -f "$path" ] || die "$path is no block device and no file"
	[ -b "$path" ] || [ -s "$path" ] ||
		die "$path is empty: give it its size, as with \"truncate -s 1G $path\""
	# Keep a link: a name in /dev/disk/by-id says more than the device that it leads to.
	[[ $path == /* ]] || path=$PWD/$path
	name=${name:-$(basename "$(readlink -f "$path")")}
	check_name -s "$name"
	need kdapl_blk_tgt "$tgt"
	ia=$(chosen_ia) || exit
	expect_ia
	if [ ${#clients[@]} -gt 0 ] && [ -d "$tgt/subsystems/$name" ]; then
		die "-c: there is a subsystem $name already; its clients are those of all its volumes"
	fi
	ns=$tgt/subsystems/$name/namespaces/$number
	[ ! -e "$ns" ] ||
		die "$name has a volume $number already, $(cat "$ns/path"): choose another number with -n, or another name with -s"
	if [ ! -d "$tgt/subsystems/$name" ]; then
		for c in "${clients[@]}"; do
			[ -d "$tgt/clients/$c" ] || new_clients+=("$c")
		done
		make_dir "$tgt/subsystems/$name" "subsystem $name"
		made=1
		(allow_clients) || {
			remove_subsys
			exit 1
		}
	fi
	(make_dir "$ns" "volume $number of $name") || {
		[ -z "$made" ] || remove_subsys
		exit 1
	}
	# Undo on failure, so that the next try starts clean.
	if ! (
		put "$path" "$ns/path" "$path"
		put "$read_only" "$ns/read_only" "-r"
		set_uuid "$path" "$ns"
		enable_volume "$ns"
		offer
	); then
		disable_volume "$ns"
		rmdir "$ns"
		[ -z "$made" ] || remove_subsys
		exit 1
	fi
	echo "$name, volume $number: $path on $ia port $port"
	tell_waiting
}

# Say so if the port on $ia $port cannot listen yet.
tell_waiting()
{
	local state

	state=$(cat "$(port_of "$ia" "$port")/state")
	[ "$state" != "waiting for the adapter" ] ||
		echo "$me: there is no $ia, or it has no address; the port listens when it comes" >&2
}

# Remove the empty subsystem $name, its links, and the clients that were made for it.
new_clients=()
remove_subsys()
{
	local l c

	for l in "$tgt/subsystems/$name"/allowed_clients/*; do
		rm "$l"
	done
	rmdir "$tgt/subsystems/$name"
	for c in "${new_clients[@]}"; do
		[ ! -d "$tgt/clients/$c" ] || rmdir "$tgt/clients/$c"
	done
}

cmd_unexport()
{
	local d

	[ $# -eq 1 ] || wrong "unexport: one NAME is wanted"
	name=$1
	[[ $name != */* && $name != .* ]] && [ -n "$name" ] && [ -d "$tgt/subsystems/$name" ] ||
		die "there is no subsystem \"$name\" here; see \"$me list\""
	for d in "$tgt"/ports/*; do
		[ -e "$d/subsystems/$name" ] || continue
		rm "$d/subsystems/$name" || die "cannot unlink $name from $d"
		# Another process may be taking the last but one away.
		[ -n "$(ls "$d/subsystems" 2>/dev/null)" ] || rmdir "$d" 2>/dev/null ||
			[ ! -d "$d" ] || [ -n "$(ls "$d/subsystems")" ] || die "cannot remove $d"
	done
	for d in "$tgt/subsystems/$name"/namespaces/*; do
		disable_volume "$d"
		rmdir "$d"
	done
	remove_subsys
}
