# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test dapl: the tests of dapltest, with its options.

# What the module has
dapl_limits='pz evd ep srq lmr rmr psp'
dapl_functions='pz evd endpoint psp lmr srq conn_nobody conn_rejected conn_again'
dapl_functions+=' data_send data_srq data_write data_read data_fmr data_rmr data_wrong_key'

dapl_usage()
{
	cat <<END
usage: $me dapl -T TEST [OPTION]... [ARGUMENT]...

The tests that dapltest has, with its options, between two hosts that have kDAPL:

  -T S -a ADDRESS    server; the same as "$me server"
  -T T -s HOST OP... transactions: both sides go through the operations in lockstep
  -T P -s HOST OP    performance of one operation
  -T L [LIMIT]...    how many objects there can be: limit_pz, limit_evd, limit_ep,
                     limit_srq, limit_lmr, limit_rmr, limit_psp (default: all)
  -T F [FUNCTION]... functions, one after another, in loopback: pz, evd, endpoint, psp,
                     lmr, srq, conn_nobody, conn_rejected, conn_again, data_send,
                     data_srq, data_write, data_read, data_fmr, data_rmr,
                     data_wrong_key (default: all)
  -T Q -s HOST       ask the server to end

  OP is: client|server SR|RW|RR [SIZE [SEGMENTS]]; for -T P: SR|RW|RR [SIZE]
  -D IA              Interface Adapter (default: the only one)
  -n PORT            connection qualifier of the server (default 5200)
  -i NUMBER          transactions of an Endpoint, or operations (default 1000)
  -t THREADS -w EPS  Endpoints: -w for each of -t (default 1 and 1)
  -V                 compare what arrives with what was sent
  -p DEPTH           -T P: operations under way (default 64)
  -m b|p             -T P: blocking, which is upcalls, or polling (default b)
  -m NUMBER          -T L: stop there (default 1000)
  -d, -f             nothing: for dapltest, debugging and how to reap

What dapltest never had, for -T T, and the first line for -T P as well:
  --srq, --marks     the server receives from an SRQ, with its watermarks armed
  --fmr              memory that is written or read is registered for each operation
  --invalidate       the same, and the side that has used it ends that by its message
  --reconnect NUMBER the Endpoints are disconnected and connected again, so many times;
                     each time all transactions are done
  -R NUMBER          so many times, each with new Endpoints
  --corrupt          one byte of each Send and Write is wrong: -V has to notice
END
}

# steps SIDE OP SIZE SEGMENTS...: print operations as words of a transaction
steps()
{
	local side op bytes segments

	while [ $# -gt 0 ]; do
		side=$1 op=${2-} bytes=4096 segments=1
		shift
		[ $# -eq 0 ] || shift
		case $side in client | server) ;; *) wrong "dapl: $side is neither client nor server" ;; esac
		case $op in
		SR) op='send' ;;
		RW) op='write' ;;
		RR) op='read' ;;
		*) wrong "dapl: $side ${op:-}: SR, RW or RR is wanted" ;;
		esac
		case ${1-} in [0-9]*) bytes=$(bytes_of "$op $1" "$1") || exit; shift ;; esac
		case ${1-} in [0-9]*) segments=$(number_of "$op" "$1") || exit; shift ;; esac
		echo "step=$op:$side:$segments:$bytes"
	done
}

dapl_transactions()
{
	local round

	for ((round = 1; round <= rounds; round++)); do
		run_words trans "ia=$ia" "host=$peer" "port=$port" \
			"eps=$((threads * eps))" "number=$((number * threads * eps))" \
			ms=3600000 "verify=$verify" "corrupt=$corrupt" "srq=$srq" "marks=$marks" "fmr=$fmr" \
			${invalidate:+invalidate=1} ${again:+"again=$again"} "$@" \
			>"$work/why" || die "$(cat "$work/why")"
		figures
		echo "transactions: $figures"
	done
}

dapl_performance()
{
	local op=$1 bytes poll=0

	bytes=$(bytes_of "$op ${2-}" "${2-4096}") || exit
	case $op in
	SR) op='send' ;;
	RW) op='write' ;;
	RR) op='read' ;;
	esac
	[ "$mode" != p ] || poll=1
	run_words stream "ia=$ia" "host=$peer" "port=$port" "op=$op" "size=$bytes" \
		"depth=$depth" "eps=$((threads * eps))" "number=$number" ms=3600000 \
		"poll=$poll" "srq=$srq" "marks=$marks" >"$work/why" || die "$(cat "$work/why")"
	figures
	echo "$1 $bytes: $figures"
}

dapl_limits()
{
	local kind count why want

	run_words limits "ia=$ia" ${mode:+"number=$mode"} >"$work/why" ||
		die "$(cat "$work/why")"
	while read -r kind count why; do
		[ -n "$kind" ] || continue
		want=$#
		for l in "$@"; do
			[ "$l" != "limit_$kind" ] || want=0
		done
		[ "$want" -ne 0 ] || printf '%-10s %7d %s\n' "limit_$kind" "$count" "$why"
	done <<<"$said"
}

# The module tries all functions; those not asked for are neither shown nor counted.
dapl_functions()
{
	local line name result

	tell functions "ia=$ia"
	while hear line; do
		case $line in "error "*) die "${line#error }" ;; esac
		read -r _ name result <<<"$line"
		[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
		case $result in
		ok) passed=$((passed + 1)) ;;
		*) failed=$((failed + 1)) ;;
		esac
		printf '%-16s %s\n' "$name" "$result"
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}

# is_among WORD WORD...: whether the first word is one of the others
is_among()
{
	local word

	for word in "${@:2}"; do
		[ "$word" != "$1" ] || return 0
	done
	return 1
}

# dapl_takes TEST: print the options that TEST has, among them dapltest's that change nothing
dapl_takes()
{
	case $1 in
	S) echo " -T -D -d -f -a -n " ;;
	T)
		echo " -T -D -d -f -s -n -i -t -w -V --srq --marks --fmr --invalidate --reconnect -R" \
			"--corrupt "
		;;
	P) echo " -T -D -d -f -s -n -i -t -w -p -m --srq --marks " ;;
	L) echo " -T -D -d -f -m " ;;
	F) echo " -T -D -d -f " ;;
	Q) echo " -T -D -d -f -s -n " ;;
	esac
}

# Complain about the options and the arguments of a test, before anything is done.
check_dapl()
{
	local name

	for name in "${given[@]}"; do
		[[ "$(dapl_takes "$test") " == *" $name "* ]] || wrong "dapl -T $test takes no $name"
	done
	case $test in
	T)
		[ $# -gt 0 ] || wrong "dapl -T T: which operations?"
		steps "$@" >/dev/null || exit
		;;
	P)
		is_among "${1-}" SR RW RR || wrong "dapl -T P: SR, RW or RR is wanted"
		[ -z "${2-}" ] || bytes_of "$1 $2" "$2" >/dev/null || exit
		[ $# -le 2 ] || wrong "dapl -T P: what is $3?"
		[ -z "$mode" ] || is_among "$mode" b p || wrong "dapl -m $mode: b or p is wanted"
		;;
	L)
		for name in "$@"; do
			# shellcheck disable=SC2086	# names
			is_among "${name#limit_}" $dapl_limits ||
				wrong "dapl -T L: there is no $name: choose limit_${dapl_limits// /, limit_}"
		done
		[ -z "$mode" ] || number_of -m "$mode" >/dev/null || exit
		;;
	F)
		for name in "$@"; do
			# shellcheck disable=SC2086	# names
			is_among "$name" $dapl_functions ||
				wrong "dapl -T F: there is no function $name: choose ${dapl_functions// /, }"
		done
		;;
	*) [ $# -eq 0 ] || wrong "dapl -T $test: what is $1?" ;;
	esac
}

# Take the options of the command line, into variables of cmd_dapl().
dapl_options()
{
	while [ $# -gt 0 ]; do
		case $1 in
		-T | -D | -n | -s | -i | -t | -w | -p | -m | -R | -a | --reconnect)
			has_value "$@"
			;;&
		-*) given+=("$1") ;;&
		-T) test=$2; shift ;;
		-D) ia=$2; shift ;;
		-n) port=$(number_of "$1" "$2" 65535) || exit; shift ;;
		-s) peer=$2; shift ;;
		-a) address=$2; shift ;;
		-i) number=$(number_of "$1" "$2") || exit; shift ;;
		-t) threads=$(number_of "$1" "$2" $max_eps) || exit; shift ;;
		-w) eps=$(number_of "$1" "$2" $max_eps) || exit; shift ;;
		-p) depth=$(number_of "$1" "$2" $max_depth) || exit; shift ;;
		-m) mode=$2; shift ;;
		-R) rounds=$(number_of "$1" "$2") || exit; shift ;;
		-V) verify=1 ;;
		--corrupt) corrupt=1 ;;
		--fmr) fmr=1 ;;
		--invalidate) fmr=1 invalidate=1 ;;
		--reconnect) again=$(number_of "$1" "$2" 65535) || exit; shift ;;
		--srq) srq=1 ;;
		--marks) srq=1 marks=1 ;;
		-h | --help) dapl_usage; exit ;;
		# dapltest's flags for debugging and for how to reap: upcalls need none.
		-d | -f) ;;
		-*) wrong "dapl: there is no option $1" ;;
		*) operations+=("$1") ;;
		esac
		shift
	done
}

cmd_dapl()
{
	local test='' mode='' rounds=1 threads=1 verify=0 corrupt=0 said='' operations=()
	local fmr=0 invalidate='' again=''

	number=1000
	dapl_options "$@"
	case $test in
	T | P | Q) [ -n "$peer" ] || wrong "dapl -T $test: -s HOST is missing" ;;
	S | L | F) ;;
	'') wrong "dapl: -T TEST is missing" ;;
	*) wrong "dapl -T $test: S, T, P, L, F or Q is wanted" ;;
	esac
	check_dapl "${operations[@]}"
	[ "$test" != S ] || { cmd_server; return; }
	choose_ia
	[ -z "$peer" ] || peer=$(address_of "$peer") || exit
	open_device
	case $test in
	T)
		# Some systems have no /dev/fd.
		steps "${operations[@]}" >"$work/steps"
		mapfile -t operations <"$work/steps"
		dapl_transactions "${operations[@]}"
		;;
	P) dapl_performance "${operations[@]}" ;;
	L) dapl_limits "${operations[@]}" ;;
	F) dapl_functions "${operations[@]}" ;;
	Q)
		run_words quit "ia=$ia" "host=$peer" "port=$port" >"$work/why" ||
			die "$(cat "$work/why")"
		echo "$peer has ended"
		;;
	esac
}
