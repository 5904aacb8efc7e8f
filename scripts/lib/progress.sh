# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by uml-run and vm-run, which set $out, $log, $script and $work: how a guest begins and
# ends, and whether it still gets on. A limit on the whole time of a guest would fail tests on a
# machine that is slow or busy; a limit on the time between two steps does not, and finds what hangs
# sooner.

: "${self:=}" "${out=}" "${log=}" "${script=}" "${work=}"

# in_place: make $out and $log where the results and the kernel's log go, and put the script there
in_place()
{
	[ -n "$out" ] || out=$work/out
	mkdir -p "$out"
	out=$(cd "$out" && pwd -P)
	[ -n "$log" ] || log=$out/kernel.log
	cp "$script" "$out/.script"
	chmod +x "$out/.script"
}

# as_the_guest: exit with the status of the script, or with 124 if the guest was killed, or with 125
as_the_guest()
{
	if [ -s "$out/.status" ]; then
		exit "$(cat "$out/.status")"
	fi
	if [ -e "$out/.stuck" ]; then
		echo "$self: killed: $(cat "$out/.stuck")" >>"$log"
		exit 124
	fi
	exit 125
}

# A guest whose steps take longer than usual may take this many times its longest step so far.
patience=10

# steps OUT LOG: print how many steps a guest has taken: lines that its script printed
# (OUT/.said), and results of test cases in the kernel log and in OUT/*/*.ktap
steps()
{
	{
		cat "$1/.said" "$1"/*/*.ktap
		grep -E '\bok [0-9]+ ' "$2"
	} 2>/dev/null | wc -l
}

# stuck GUEST OUT LOG SECONDS [PACE]: wait until the process GUEST ends, which is a failure,
# or has taken no step for SECONDS, or for $patience times the longest step of this guest
# and of those that have the file PACE in common with it, if that is more
stuck()
{
	local guest=$1 out=$2 log=$3 seconds=$4 pace=${5:-$2/.pace} before=0 since=$SECONDS now longest

	while kill -0 "$guest" 2>/dev/null; do
		now=$(steps "$out" "$log")
		longest=$(cat "$pace" 2>/dev/null || echo 0)
		if [ "$now" -ne "$before" ]; then
			if ((SECONDS - since > longest)); then
				echo $((SECONDS - since)) >"$pace.$BASHPID"
				mv "$pace.$BASHPID" "$pace"
			fi
			before=$now since=$SECONDS
		fi
		((longest * patience <= seconds)) || seconds=$((longest * patience))
		if ((SECONDS - since >= seconds)); then
			echo "no step was taken for $seconds s, after $now of them" >"$out/.stuck"
			return 0
		fi
		sleep 1
	done
	return 1
}
