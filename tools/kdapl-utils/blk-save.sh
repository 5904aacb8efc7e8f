# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk save, restore and stop. They use $config, $tgt, $ini, $saved and the functions
# of the other parts.
#
# The saved file has lines "dir DIRECTORY", "put FILE VALUE", "link LINK DIRECTORY" and "on
# FILE", separated by tabs, with names below configfs.

# Print the attributes of directory $1 that can be set.
save_attributes()
{
	local f

	for f in "$1"/*; do
		if [ ! -f "$f" ] || [ -L "$f" ]; then
			continue
		fi
		case ${f##*/} in
		path | enable | connected | instance | discover) continue ;;
		esac
		[[ $(stat -c %A "$f") == -rw* ]] || continue
		printf 'put\t%s\t%s\n' "${f#"$config"/}" "$(cat "$f")"
	done
}

save_links()
{
	local l

	for l in "$1"/*; do
		[ -L "$l" ] || continue
		printf 'link\t%s\t%s\n' "${l#"$config"/}" \
			"${2#"$config"/}/$(basename "$(readlink "$l")")"
	done
}

save_dir()
{
	printf 'dir\t%s\n' "${1#"$config"/}"
}

save_exports()
{
	local d n

	for d in "$tgt"/clients/*/; do
		save_dir "${d%/}"
		save_attributes "${d%/}"
	done
	for d in "$tgt"/subsystems/*/; do
		d=${d%/}
		save_dir "$d"
		save_attributes "$d"
		save_links "$d/allowed_clients" "$tgt/clients"
		for n in "$d"/namespaces/*/; do
			[ -s "$n/path" ] || continue
			n=${n%/}
			save_dir "$n"
			# The path comes first: setting it clears the UUIDs.
			printf 'put\t%s\t%s\n' "${n#"$config"/}/path" "$(cat "$n/path")"
			save_attributes "$n"
			[ "$(cat "$n/enable")" = 0 ] ||
				printf 'on\t%s\n' "${n#"$config"/}/enable"
		done
	done
	for d in "$tgt"/ports/*/; do
		save_dir "${d%/}"
		save_attributes "${d%/}"
		save_links "${d%/}/subsystems" "$tgt/subsystems"
	done
}

save_disks()
{
	local d

	for d in "$ini"/*/; do
		d=${d%/}
		save_dir "$d"
		save_attributes "$d"
		[ "$(cat "$d/state")" = idle ] ||
			printf 'on\t%s\n' "${d#"$config"/}/connected"
	done
}

cmd_save()
{
	local mark

	[ $# -eq 0 ] || wrong "save: no argument is wanted"
	for mark in "$saved".left-out.*; do
		[ ! -e "$mark" ] ||
			die "$saved has more than was restored, for lack of keys: restore it first, or remove $mark"
	done
	mkdir -p "$(dirname "$saved")" || exit
	# The file has secrets in it.
	umask 077
	{ save_exports; save_disks; } >"$saved.new" || exit
	sync_one "$saved.new"
	mv "$saved.new" "$saved" || exit
}

# Connect the disk in directory $1, unless it is connected, or waits to be connected again.
restore_disk()
{
	local wait_for=''

	[ "$(cat "$1/state")" = idle ] || return 0
	disk=${1##*/} ia=$(cat "$1/ia") address=$(cat "$1/address") port=$(cat "$1/conn_qual")
	name=$(cat "$1/subsystem") number=$(cat "$1/namespace")
	(check_ia "$ia") || exit
	# A further path to the volume may have been restored before this disk.
	[ ! -e "$1/only_path" ] || put 0 "$1/only_path" only_path
	connect_disk
}

# Make what one line says, unless it is there already.
restore_line()
{
	local verb=$1 file=$config/$2 value=$3

	case $2 in
	kdapl_blk/?* | kdapl_blk_tgt/?*) ;;
	*) die "$saved: $2 is not ours" ;;
	esac
	case /$2/$3/ in
	*/../*) die "$saved: $2 is not ours" ;;
	esac
	case $verb in
	dir) [ -d "$file" ] || mkdir "$file" || die "cannot make $file" ;;
	put)
		[ "$(cat "$file")" = "$value" ] && return
		# An error message may show the name of a key, but no other secret.
		case $2=$3 in
		*/secret=key:*) put "$value" "$file" "$2: $value" ;;
		*) put "$value" "$file" "$2" ;;
		esac
		;;
	link) [ -e "$file" ] || ln -s "$config/$value" "$file" ||
		{ kernel_says; die "cannot make $file"; } ;;
	on)
		case $2 in
		*/enable) [ "$(cat "$file")" = 1 ] || enable_volume "${file%/*}" ;;
		*) restore_disk "${file%/*}" ;;
		esac
		;;
	*) die "$saved: there is no $verb" ;;
	esac
}

# mark_left_out WHAT DIRECTORY OWNER...: keep "save" from forgetting the owners in DIRECTORY,
# which were not restored completely.
mark_left_out()
{
	local mark=$saved.left-out.$1 in=$2/

	shift 2
	if [[ " $*" == *" $in"* ]]; then
		touch "$mark" || exit
	else
		rm -f "$mark"
	fi
}

# restore_all [exports|disks]: make what was saved. Fails if not all of it can be made.
restore_all()
{
	local verb file value owner status=0 what=$1
	# Disks and clients whose secrets cannot be set: without a secret they would be open.
	local -A shut=()

	mark_log
	while IFS=$'\t' read -r verb file value; do
		case $what$file in
		exportskdapl_blk/* | diskskdapl_blk_tgt/*) continue ;;
		esac
		need "${file%%/*}" "$config/${file%%/*}"
		case $verb in
		on) owner=${file%/*} ;;
		link) owner=$value ;;
		*) owner= ;;
		esac
		[ -z "$owner" ] || [ -z "${shut[$owner]-}" ] || continue
		(restore_line "$verb" "$file" "$value") && continue
		status=1
		case $verb$file in
		put*/secret) shut[${file%/secret}]=1 ;;
		esac
	done <"$saved"
	[ "$what" = disks ] || mark_left_out exports kdapl_blk_tgt "${!shut[@]}"
	[ "$what" = exports ] || mark_left_out disks kdapl_blk "${!shut[@]}"
	return $status
}

cmd_restore()
{
	local what=${1-} told='' tell

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) wrong "restore: \"exports\" or \"disks\" is wanted" ;;
	esac
	[ -r "$saved" ] || die "there is no $saved; \"$me save\" makes it"
	# An error is printed once, and again when it has changed.
	until tell=$(restore_all "$what" 2>&1); do
		[ "$tell" = "$told" ] || echo "$tell" >&2
		told=$tell
		may_wait || exit 1
		sleep 5
	done
	[ -z "$tell" ] || echo "$tell" >&2
}

cmd_stop()
{
	local s status=0 what=${1-}

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) wrong "stop: \"exports\" or \"disks\" is wanted" ;;
	esac
	[ "$what" = exports ] || (cmd_disconnect all) || status=1
	[ "$what" = disks ] || for s in "$tgt"/subsystems/*/; do
		(cmd_unexport "$(basename "$s")") || status=1
	done
	exit $status
}
