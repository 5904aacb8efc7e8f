# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-stat: what /proc/kdapl has, as tables, JSON or OpenMetrics. stat.awk does the work.
# $proc is that directory, $config configfs, $blocks /sys/block.

# Fail with a sentence unless there is something to read.
need_proc()
{
	local loaded=${KDAPL_SYS:-/sys/module}/kdapl

	# After an upgrade the former module stays loaded.
	[ -d "$proc" ] || [ ! -d "$loaded" ] ||
		die "kdapl.ko $(cat "$loaded/version" 2>/dev/null) is loaded, which has no statistics: \"$me\" shows those of 1.0.0 and later"
	[ -d "$proc" ] || die "kdapl.ko is not loaded, so there is nothing to count"
	[ -r "$proc/ias" ] || die "$proc can be read by root only"
}

# numbered FILE: print lines "name   number" of a file of counts as "name<TAB>number"
numbered()
{
	sed -nE 's/^(.*[^ ]) +([0-9]+)$/\1\t\2/p' "$1" 2>/dev/null
}

# shown DIRECTORY: print its name, as ls does if that has what a terminal would obey
shown()
{
	local name=${1%/}

	name=${name##*/}
	printf '%s' "${name//[[:cntrl:]]/?}"
}

# disks [DIRECTORY/]...: print these disks of kdapl_blk, without arguments all, as /proc/kdapl has
# objects: first a line for each kind of request, then one of the disk, with what the block layer
# counts, milliseconds in 32 bits; before 1.2.0 there is no other. One may go meanwhile.
disks()
{
	local d device stat name of

	[ $# -gt 0 ] || set -- "$config"/kdapl_blk/*/
	for d in "$@"; do
		! is_asking "$d" || continue
		name=$(shown "$d")
		name=${name//\\/\\134}
		device=$(cat "${d}device")
		of="disk=${name// /\\040} device=${device:--} peer=$(cat "${d}address")"
		while IFS= read -r stat; do
			printf 'kind=latency %s %s\n' "$of" "$stat"
		done <"${d}latency"
		read -r -a stat <"$blocks/${device:-none}/stat" || stat=()
		printf 'kind=disk %s state=%s reads=%d read_ms=%d writes=%d write_ms=%d flushes=%d flush_ms=%d\n' \
			"$of" "$(cat "${d}state")" \
			"${stat[0]:-0}" "${stat[3]:-0}" "${stat[4]:-0}" "${stat[7]:-0}" \
			"${stat[15]:-0}" "${stat[16]:-0}"
	done
} 2>/dev/null

# Print the exports of kdapl_blk_tgt: one a line at each port, and one with its volumes. One may go
# meanwhile.
exports()
{
	local s p name enabled ia

	for s in "$config"/kdapl_blk_tgt/subsystems/*/; do
		name=$(shown "$s")
		name=${name//\\/\\134}
		name=${name// /\\040}
		enabled=$(cat /dev/null "$s"namespaces/*/enable | grep -c 1)
		ia=
		printf 'kind=volumes export=%s enabled=%d\n' "$name" "$enabled"
		for p in "$config"/kdapl_blk_tgt/ports/*/; do
			[ -e "${p}subsystems/$(basename "$s")" ] && ia=$(cat "${p}ia") || continue
			printf 'kind=export export=%s adapter=%s port=%s listening=%d\n' "$name" "$ia" \
				"$(cat "${p}conn_qual")" "$(grep -cx listening "${p}state")"
		done
		[ -n "$ia" ] || printf 'kind=export export=%s adapter=- port=- listening=0\n' "$name"
	done
} 2>/dev/null

# Print all objects, one a line, each with the word kind=. A module, or a disk, may go meanwhile.
objects()
{
	local file

	for file in ia srq ep end; do
		sed "s/^/kind=$file /" "$proc/${file}s"
	done
	# Targets, which count more, have a directory each.
	for file in "$proc"/*/adapters; do
		sed "s/^/kind=target /" "$file"
	done
	for file in "$proc"/*/{sessions,connections}; do
		sed "s/^/kind=client /" "$file"
	done
	disks
	exports
} 2>/dev/null

# rows TABLE: make a table, with a line of heads, of objects
rows()
{
	awk -v table="$1" -v peer="$peer" -v per="${2-}" -f "$parts/stat-objects.awk" \
		-f "$parts/stat.awk"
}

# cut_rows NUMBER: let the head and so many rows pass, the largest first. The first two
# columns are numbers to sort by, and cut off.
cut_rows()
{
	{
		IFS= read -r head
		printf '%s\n' "$head"
		sort -t$'\t' -k1,1nr -k2,2nr
	} | cut -f3- | if [ -n "$1" ]; then
		# Read all: the writers must not fail.
		awk -v n="$1" 'NR <= n + 1'
	else
		cat
	fi
}

# Print rows in columns. Times are numbers of seconds up to here.
as_table()
{
	awk -F'\t' '
		NR == 1 { for (i = 1; i <= NF; i++) time[i] = $i ~ /^(SINCE|ENDED)$/ }
		{
			for (i = 1; i <= NF; i++) {
				if (NR > 1 && time[i])
					$i = $i > 0 ? strftime("%Y-%m-%d %H:%M:%S", $i) : "-"
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

# Print rows as an array of objects.
as_array()
{
	awk -F'\t' '
		function text(s)
		{
			gsub(/\\/, "\\\\&", s)
			gsub(/"/, "\\\"", s)
			return "\"" s "\""
		}
		NR == 1 {
			for (i = 1; i <= NF; i++) {
				key[i] = text(tolower($i))
				name[i] = $i ~ /^(CLIENT|DISK)$/
			}
			printf("[")
			next
		}
		{
			printf(NR > 2 ? ",\n    {" : "\n    {")
			for (i = 1; i <= NF; i++) {
				bare = !name[i] && $i ~ /^(0|-?[1-9][0-9]*)(\.[0-9]+)?$/
				printf("%s%s: %s", i > 1 ? ", " : "", key[i], bare ? $i : text($i))
			}
			printf("}")
		}
		END { printf("]") }'
}

# show TABLE: print one table
show()
{
	if [ -n "$as_json" ]; then
		rows "$1" | cut_rows "$rows" | as_array
		echo
	else
		rows "$1" | cut_rows "$rows" | as_table
	fi
}

cmd_peers()
{
	need_proc
	objects | show peers
}

cmd_connections()
{
	need_proc
	objects | show connections
}

cmd_queues()
{
	need_proc
	objects | show queues
}

cmd_modules()
{
	need_proc
	objects | show modules
}

cmd_targets()
{
	need_proc
	objects | show targets
}

cmd_clients()
{
	need_proc
	objects | show clients
}

cmd_ends()
{
	need_proc
	objects | show ends
}

# summary_of FILE: print all tables of the objects in FILE
summary_of()
{
	local table comma='{'

	for table in modules targets queues peers ends disks; do
		if [ -n "$as_json" ]; then
			printf '%s"%s": ' "$comma" "$table"
			rows $table <"$1" | cut_rows "$rows" | as_array
			comma=$',\n '
		else
			[ $table = modules ] || echo
			rows $table "${2-}" <"$1" | cut_rows "${rows:-10}" | as_table
		fi
	done
	[ -z "$as_json" ] || echo '}'
}

# Make a directory for temporary files, which goes when the command ends.
temporary()
{
	work=$(mktemp -d) || exit
	trap 'rm -rf "$work"; [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null' EXIT
	trap 'exit 130' INT TERM
}

# Wait for so long; a signal ends that, and leaves nobody who sleeps.
sleeper=
pause()
{
	sleep "$interval" &
	sleeper=$!
	wait $sleeper
	sleeper=
}

cmd_summary()
{
	need_proc
	temporary
	objects >"$work/now"
	summary_of "$work/now"
}

# The objects of the time before come first, with the word before=1.
cmd_top()
{
	local n before=''

	need_proc
	temporary
	interval=${interval:-2}
	for ((n = 1; ; n++)); do
		{
			[ -z "$before" ] || sed 's/^/before=1 /' "$work/before"
			objects | tee "$work/next"
		} >"$work/now"
		summary_of "$work/now" "${before:+$interval}" >"$work/screen"
		if [ -t 1 ]; then
			# Home, the lines as far as there is room, and clear what is left.
			printf '\033[H'
			head -n "$(($(tput lines 2>/dev/null || echo 24) - 2))" "$work/screen" |
				sed 's/$/\x1b[K/'
			printf '\033[J'
		else
			cat "$work/screen"
		fi
		[ "$n" != "$times" ] || break
		mv "$work/next" "$work/before"
		before=1
		[ -t 1 ] || echo
		pause
	done
}

# Counts of kdapl_blk's disks and of the target's ports, which have names of words.
blk_counts()
{
	local d kind line

	for d in "$config"/kdapl_blk/*/ "$config"/kdapl_blk_tgt/ports/*/; do
		! is_asking "$d" || continue
		kind=disk
		[[ $d != */kdapl_blk_tgt/* ]] || kind=port
		# Some systems have no /dev/fd, which process substitution needs.
		numbered "${d}stats" | while IFS= read -r line; do
			printf 'count\t%s\t%s\t%s\n' $kind "$(shown "$d")" "$line"
		done
	done
}

all_metrics()
{
	{
		objects
		blk_counts
	} | awk -v up=$up -f "$parts/stat-objects.awk" -f "$parts/stat-metrics.awk"
}

cmd_metrics()
{
	local up=1 new

	[ -r "$proc/ias" ] || up=0
	[ $up = 1 ] || [ ! -d "$proc" ] || die "$proc can be read by root only"
	if [ -z "$out" ]; then
		all_metrics
		return
	fi
	new=$(mktemp "$out.XXXXXX" 2>&1) || die "cannot write $out: ${new##*: }"
	# shellcheck disable=SC2064	# $new is gone when the trap is taken
	trap "rm -f ${new@Q}" EXIT
	trap 'exit 130' INT TERM
	# The collector must never see a part of it.
	all_metrics >"$new" && chmod 644 "$new" && mv -f "$new" "$out" || die "cannot write $out"
}
