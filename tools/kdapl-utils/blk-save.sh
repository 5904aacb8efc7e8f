# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk save, restore and stop. It uses $config, $tgt, $ini, $saved, put, need,
# sync_one, enable_volume, kernel_says and the cmd_ functions of kdapl-blk.
#
# What is saved is a file of lines, each "dir DIRECTORY", "put FILE VALUE", "link LINK
# DIRECTORY" or "on FILE", separated by tabs, with names below configfs.

# Print the attributes of directory $1 that can be set.
save_attributes()
{
	local f

	for f in "$1"/*; do
		if [ ! -f "$f" ] || [ -L "$f" ]; then
			continue
		fi
		case ${f##*/} in
		path | enable | connected | instance) continue ;;
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
			# It forgets what the others say.
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

	[ $# -eq 0 ] || die "save: no argument is wanted"
	for mark in "$saved".left-out.*; do
		[ ! -e "$mark" ] ||
			die "$saved has more than was restored, for lack of keys: restore it first, or remove $mark"
	done
	mkdir -p "$(dirname "$saved")" || exit
	# It has secrets in it.
	umask 077
	{ save_exports; save_disks; } >"$saved.new" || exit
	sync_one "$saved.new"
	mv "$saved.new" "$saved" || exit
}

# Make what one line says; what is there is left alone.
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
		# Of a secret only the name of a key is for the log.
		case $2=$3 in
		*/secret=key:*) put "$value" "$file" "$2: $value" ;;
		*) put "$value" "$file" "$2" ;;
		esac
		;;
	link) [ -e "$file" ] || ln -s "$config/$value" "$file" ||
		{ kernel_says; die "cannot make $file"; } ;;
	on)
		[ "$(cat "$file")" = 0 ] || return 0
		case $2 in
		*/enable) enable_volume "${file%/*}" ;;
		*) put 1 "$file" "$2" ;;
		esac
		;;
	*) die "$saved: there is no $verb" ;;
	esac
}

# mark_left_out WHAT DIRECTORY OWNER...: keep "save" from forgetting those owners that are in
# DIRECTORY, of which not all was restored.
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

cmd_restore()
{
	local verb file value owner status=0 what=${1-}
	# Disks and clients whose secrets cannot be set: without they would be open.
	local -A shut=()

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) die "restore: \"exports\" or \"disks\" is wanted" ;;
	esac
	[ -r "$saved" ] || die "there is no $saved"
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
	exit $status
}

cmd_stop()
{
	local s status=0 what=${1-}

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) die "stop: \"exports\" or \"disks\" is wanted" ;;
	esac
	[ "$what" = exports ] || (cmd_disconnect all) || status=1
	[ "$what" = disks ] || for s in "$tgt"/subsystems/*/; do
		(cmd_unexport "$(basename "$s")") || status=1
	done
	exit $status
}
