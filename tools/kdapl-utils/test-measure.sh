# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test: the runs of lat, bw, msgs and conns. Each adds a line to $work/runs, KEY=VALUE
# separated by blanks, and leaves its histogram in $work/hist.<line>.

run_number=0

# measure KIND OVER SIZE RUN: make one run
measure()
{
	local kind=$1 over=$2 size=$3 run=$4 line said='' words

	words=("ia=$ia" "host=$peer" "port=$port" "op=$op" "size=$size" "depth=$depth"
		"eps=$eps" "ms=$ms" "srq=$srq" "marks=$marks" "poll=$poll")
	[ -z "$number" ] || words+=("number=$number")
	[ "$over" != verbs ] || words+=(raw=1)
	run_number=$((run_number + 1))
	: >"$work/hist.$run_number"
	tell "$kind" "${words[@]}"
	while hear line; do
		case $line in
		"error "*)
			progress
			die "${line#error }"
			;;
		"progress "*) progress "$over, $size bytes, run $run: ${line#progress }" ;;
		"hist "*) echo "${line#hist }" >>"$work/hist.$run_number" ;;
		result* | latency* | memory*) said+=" ${line#* }" ;;
		esac
	done
	progress
	[ -n "$said" ] || die "nothing was measured"
	echo "over=$over op=$op size=$size eps=$eps depth=$depth srq=$srq marks=$marks" \
		"poll=$poll run=$run$said" >>"$work/runs"
}

# progress [WHAT MS OPS]: show how far a run is, on a terminal
progress()
{
	[ -t 2 ] || return 0
	if [ $# -eq 0 ]; then
		printf '\r%79s\r' '' >&2
	else
		# shellcheck disable=SC2086
		set -- $1
		printf '\r%s %s of %s ms, %s done ' "${*:1:$#-2}" "${*:$#-1:1}" "$ms" \
			"${*:$#}" >&2
	fi
}

# sizes DEFAULT: print the sizes of -s, or those of DEFAULT
sizes()
{
	local all=${size:-$1} s list

	case $all in
	*,) wrong "-s $all: a size is missing at the end" ;;
	,*) wrong "-s $all: a size is missing at the beginning" ;;
	*,,*) wrong "-s $all: a size is missing between two commas" ;;
	esac
	IFS=, read -ra list <<<"$all"
	for s in "${list[@]}"; do
		bytes_of "-s $all" "$s" || exit
	done
}

# with_peer KIND DEFAULT-SIZES: run KIND over each contender with each size, and report
with_peer()
{
	local kind=$1 s o list contenders turn run

	list=$(sizes "$2") || exit
	[ -n "$peer" ] || wrong "$command: --peer HOST is missing"
	case $over in
	both) contenders=(kdapl verbs) ;;
	kdapl | verbs) contenders=("$over") ;;
	*) wrong "--over $over: kdapl, verbs or both is wanted" ;;
	esac
	case $op in
	send | write | read) ;;
	*) wrong "-O $op: send, write or read is wanted" ;;
	esac
	[ -z "$json" ] || check_file --json "$json"
	[ -z "$svg" ] || check_file --svg "$svg"
	choose_ia
	peer=$(address_of "$peer") || exit
	open_device
	for s in $list; do
		# Each is the first one in every other run, as the first may cost more.
		turn=("${contenders[@]}")
		for ((run = 1; run <= runs; run++)); do
			for o in "${turn[@]}"; do
				measure "$kind" "$o" "$s" "$run"
			done
			[ ${#turn[@]} -eq 1 ] || turn=("${turn[1]}" "${turn[0]}")
		done
	done
	summarize
	table
	[ -z "$json" ] || write_json "$json"
	[ -z "$svg" ] || write_svg "$svg"
}

cmd_lat() { with_peer lat 1,64,1024,4096,65536; }
cmd_bw() { with_peer stream 64,256,1024,4096,16384,65536,262144; }
cmd_msgs() { with_peer stream 64; }

cmd_conns()
{
	[ "$op" = send ] || wrong "conns: -O is not for connections"
	with_peer conns 64
}
