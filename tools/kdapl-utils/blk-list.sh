# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk list and stats, as tables or as JSON. They use $tgt and $ini.

# Print the value of an attribute, or nothing.
get()
{
	cat "$1" 2>/dev/null
}

# ---- JSON ----

is_json_number()
{
	[[ $1 =~ ^(0|-?[1-9][0-9]{0,17})$ ]]
}

json_text()
{
	local text=${1//\\/\\\\}

	text=${text//\"/\\\"}
	printf '"%s"' "${text//[[:cntrl:]]/?}"
}

# json_members KEY VALUE...: print the members of an object. VALUE is a string; or a number,
# if KEY ends in "#"; or JSON already, if KEY ends in ":".
json_members()
{
	local comma=''

	while [ $# -gt 0 ]; do
		printf '%s' "$comma"
		comma=', '
		json_text "${1%[:#]}"
		printf ': '
		case $1 in
		*:) printf '%s' "$2" ;;
		*'#') printf '%s' "${2:-null}" ;;
		*) json_text "$2" ;;
		esac
		shift 2
	done
}

# json_lines LINE...: print an array of strings
json_lines()
{
	local comma='' line

	printf '['
	for line in "$@"; do
		printf '%s' "$comma"
		json_text "$line"
		comma=', '
	done
	printf ']'
}

# ---- Tables ----

# Print rows of words that are separated by tabs in columns.
table()
{
	awk -F'\t' '
		{
			for (i = 1; i <= NF; i++) {
				word[NR, i] = $i == "" ? "-" : $i
				if (length(word[NR, i]) > width[i])
					width[i] = length(word[NR, i])
			}
			n = NF
		}
		END {
			for (r = 1; r <= NR; r++)
				for (i = 1; i <= n; i++)
					printf((i < n ? "%-" (width[i] + 2) "s" : "%s\n"), word[r, i])
		}'
}

# Print a number of bytes with a unit.
human()
{
	[ -n "$1" ] || return
	awk -v n="$1" 'BEGIN {
		split("B KiB MiB GiB TiB PiB EiB", unit, " ")
		for (i = 1; n >= 1024 && i < 7; i++)
			n /= 1024
		printf((i > 1 && n < 100 && n != int(n) ? "%.1f" : "%.0f") " %s", n, unit[i])
	}'
}

# ---- What there is ----

# Print the size of the backing of the volume in directory $1.
size_of_backing()
{
	local path numbers size

	path=$(get "$1/path") && [ -e "$path" ] || return
	if [ -b "$path" ]; then
		numbers=$(stat -L -c '%t %T' "$path") || return
		size=$(get "/sys/dev/block/$((0x${numbers% *})):$((0x${numbers#* }))/size")
		[ -z "$size" ] || echo $((size * 512))
	else
		stat -L -c %s "$path"
	fi
}

size_of_device()
{
	local sectors

	[ -n "$1" ] || return
	sectors=$(get "/sys/block/$1/size")
	[ -z "$sectors" ] || echo $((sectors * 512))
}

# each_volume FUNCTION: call FUNCTION with each port directory, subsystem and volume
# directory; the port is empty for a subsystem that no port offers.
each_volume()
{
	local p s n port

	for s in "$tgt"/subsystems/*/; do
		s=${s%/}
		port=''
		for p in "$tgt"/ports/*/; do
			[ -e "${p}subsystems/${s##*/}" ] || continue
			port=${p%/}
			for n in "$s"/namespaces/*; do
				"$1" "$port" "${s##*/}" "$n"
			done
		done
		[ -z "$port" ] || continue
		for n in "$s"/namespaces/*; do
			"$1" '' "${s##*/}" "$n"
		done
	done
}

export_state()
{
	if [ "$(get "$2/enable")" != 1 ]; then
		echo disabled
	elif [ -z "$1" ]; then
		echo "at no port"
	else
		get "$1/state"
	fi
}

export_row()
{
	local access=rw

	[ "$(get "$3/read_only")" != 1 ] || access=ro
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$2" "${3##*/}" "$(human "$(size_of_backing "$3")")" \
		"$access" "$(export_state "$1" "$3")" "$(get "$1/ia")" "$(get "$1/conn_qual")" \
		"$(get "$3/path")" "$(get "$3/uuid")"
}

export_json()
{
	local read_only=false

	[ "$(get "$3/read_only")" != 1 ] || read_only=true
	[ "$comma" = '' ] || printf ',\n    '
	comma=1
	printf '{'
	json_members subsystem "$2" volume# "${3##*/}" size# "$(size_of_backing "$3")" \
		read_only: $read_only state "$(export_state "$1" "$3")" port "${1##*/}" \
		ia "$(get "$1/ia")" conn_qual# "$(get "$1/conn_qual")" path "$(get "$3/path")" \
		uuid "$(get "$3/uuid")"
	printf '}'
}

disk_row()
{
	local device

	device=$(get "$1/device")
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${1##*/}" "${device:+/dev/$device}" \
		"$(human "$(size_of_device "$device")")" "$(get "$1/state")" \
		"$(get "$1/subsystem")" "$(get "$1/namespace")" "$(get "$1/address")" \
		"$(get "$1/conn_qual")" "$(get "$1/ia")" "$(get "$1/uuid")"
}

disk_json()
{
	local device share=false path=true

	device=$(get "$1/device")
	[ "$(get "$1/share")" != 1 ] || share=true
	[ "$(get "$1/only_path")" != 1 ] || path=false
	[ "$comma" = '' ] || printf ',\n    '
	comma=1
	printf '{'
	json_members disk "${1##*/}" device "${device:+/dev/$device}" \
		size# "$(size_of_device "$device")" state "$(get "$1/state")" \
		subsystem "$(get "$1/subsystem")" volume# "$(get "$1/namespace")" \
		address "$(get "$1/address")" conn_qual# "$(get "$1/conn_qual")" \
		ia "$(get "$1/ia")" client "$(get "$1/client")" uuid "$(get "$1/uuid")" \
		shares_connections: $share may_be_a_further_path: $path
	printf '}'
}

list_json()
{
	local d comma='' lines

	printf '{"exports": [\n    '
	each_volume export_json
	printf '],\n "connections": [\n    '
	comma=''
	for d in "$tgt"/ports/*/; do
		mapfile -t lines <"${d}connections"
		[ "$comma" = '' ] || printf ',\n    '
		comma=1
		printf '{'
		json_members port "$(basename "$d")" lines: "$(json_lines "${lines[@]}")"
		printf '}'
	done
	printf '],\n "disks": [\n    '
	comma=''
	for d in "$ini"/*/; do
		is_asking "$d" || disk_json "${d%/}"
	done
	printf ']}\n'
}

list_tables()
{
	local d

	if [ -d "$tgt" ]; then
		{
			printf 'EXPORT\tVOLUME\tSIZE\tACCESS\tSTATE\tADAPTER\tPORT\tPATH\tUUID\n'
			each_volume export_row
		} | table
		for d in "$tgt"/ports/*/; do
			sed "s|^|  at port $(get "${d}conn_qual") of $(get "${d}ia"): |" "${d}connections"
		done
	fi
	if [ -d "$ini" ]; then
		[ ! -d "$tgt" ] || echo
		{
			printf 'DISK\tDEVICE\tSIZE\tSTATE\tEXPORT\tVOLUME\tADDRESS\tPORT\tADAPTER\tUUID\n'
			for d in "$ini"/*/; do
				is_asking "$d" || disk_row "${d%/}"
			done
		} | table
	fi
}

# Say so if there is nothing because no module is loaded.
tell_if_unloaded()
{
	[ -d "$tgt" ] || [ -d "$ini" ] ||
		echo "$me: neither kdapl_blk_tgt.ko nor kdapl_blk.ko is loaded, so there is nothing" >&2
}

cmd_list()
{
	[ $# -eq 0 ] || wrong "list: no argument is wanted"
	tell_if_unloaded
	if [ -n "$as_json" ]; then
		list_json
	else
		list_tables
	fi
}

# ---- Counts ----

# stats_json FILE: print the lines "name   value" of a file of counts as JSON
stats_json()
{
	local file=$1 line number members=()

	while IFS= read -r line; do
		[[ $line =~ ^(.*[^ ])\ \ +(.*)$ ]] || [[ $line =~ ^(.*[^ ])\ (.*)$ ]] || continue
		number=''
		set -- "${BASH_REMATCH[@]:1}"
		! is_json_number "$2" || number='#'
		members+=("$1$number" "$2")
	done <"$file"
	printf '{'
	json_members "${members[@]}"
	printf '}'
}

cmd_stats()
{
	local d kind what members=() found=''

	[ $# -eq 0 ] || { [ $# -eq 1 ] && [ -n "$1" ]; } || wrong "stats: one NAME is wanted, or none"
	tell_if_unloaded
	for kind in port disk; do
		what=()
		for d in "$tgt"/ports/*/ "$ini"/*/; do
			d=${d%/}
			case $kind$d in
			port"$tgt"/* | disk"$ini"/*) ;;
			*) continue ;;
			esac
			[ $# -eq 0 ] || [ "${d##*/}" = "$1" ] || continue
			! is_asking "$d" || continue
			found=1
			if [ -n "$as_json" ]; then
				what+=("${d##*/}:" "$(stats_json "$d/stats")")
			else
				echo "$kind ${d##*/}:"
				sed 's/^/  /' "$d/stats"
			fi
		done
		members+=("${kind}s:" "{$(json_members "${what[@]}")}")
	done
	[ $# -eq 0 ] || [ -n "$found" ] || die "there is no port or disk $1; see \"$me list\""
	[ -z "$as_json" ] || printf '{%s}\n' "$(json_members "${members[@]}")"
}
