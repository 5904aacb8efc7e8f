# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by check-boot, check-iser and check-nfs: run cases one after the other, and count them.
# scripts/lib/cases.sh reads what is printed. Reports of the kernel are for scripts/report/check, in
# the log and in $OUT/kmemleak.
#
# Who sources this has clean(), which takes away whatever a case has left and fails if something
# stays, and may replace the four functions that are empty here.

kmemleak=/sys/kernel/debug/kmemleak
passed=0 failed=0 skipped=0
left=			# the case that has left something behind

# begin: what else is done before a case
begin() { :; }

# state: print what helps to see why a case has failed
state() { :; }

# all_down: end what serves all cases
all_down() { :; }

# skip WHY: the case that returns then is not for this kernel
skip()
{
	why=$*
}

# not_run NAME WHY
not_run()
{
	skipped=$((skipped + 1))
	echo "skip $1: $2"
}

# run_case NAME COMMAND...
run_case()
{
	local name=$1 start=$SECONDS why=

	shift
	[ -z "$left" ] || { not_run "$name" "not run after $left"; return; }
	rm -f "$OUT/state"
	begin
	echo "kdapl-check: $name" >/dev/kmsg
	if ! "$@" >/run/case 2>&1 </dev/null; then
		failed=$((failed + 1))
		[ -s "$OUT/state" ] || state >"$OUT/state" 2>/dev/null
		echo "not ok $name ($((SECONDS - start)) s)${2+: ${*:2}}"
		{ cat /run/case "$OUT/state"; dmesg | tail -n 25; } | sed 's/^/# /'
	elif [ -n "$why" ]; then
		not_run "$name" "$why"
	else
		passed=$((passed + 1))
		echo "ok $name ($((SECONDS - start)) s)"
	fi
	clean >/run/case 2>&1 || {
		echo "not ok: $name leaves something behind"
		sed 's/^/# /' /run/case
		failed=$((failed + 1))
		left=$name
	}
}

# no_scans: kmemleak looks when it is asked to
no_scans()
{
	rm -f "$OUT/kmemleak"
	[ ! -e $kmemleak ] || echo scan=off >$kmemleak
}

# find_leaks: with all of it gone, look for what nothing points to any more. kmemleak does not report
# what is younger than 5 s, nor what has changed since the scan before.
find_leaks()
{
	[ -e $kmemleak ] || return 0
	echo "kdapl-check: leaks" >/dev/kmsg
	all_down
	modprobe -r kdapl
	sleep 6
	echo scan >$kmemleak
	echo scan >$kmemleak
	cat $kmemleak >"$OUT/kmemleak"
}

# count_of_cases: the last line, and the status
count_of_cases()
{
	echo "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ]
}
