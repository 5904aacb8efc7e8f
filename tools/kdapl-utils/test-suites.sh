# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test: the KUnit suites of the sources on one adapter, which is a parameter of their
# common module, kdapl_kunit.ko. Where the kernel has no usable KUnit, kdapl_selftest.ko,
# which is built with the suites, takes its place. Either leaves the results of a suite in
# debugfs until the suite is unloaded.

: "${KDAPL_TEST_SUITES:=}" "${KDAPL_TEST_SOURCE:=}"

results_of_suites=/sys/kernel/debug/kunit

# Suites not for a user's adapter: endless load, other devices, injected faults
other_suites='kdapl random stress scale sim fault fault_work blk isert svcrdma'

declare -A suite_files
suite_names=()
suites_loaded=()

# suite_dirs RELEASE: print the directories where there may be suites for a kernel
suite_dirs()
{
	if [ -n "$KDAPL_TEST_SUITES" ]; then
		echo "$KDAPL_TEST_SUITES"
	else
		echo "/var/lib/kdapl/$1/suites"
		echo "/lib/modules/$1/updates/kunit"
	fi
}

# source_version FILE-OR-NAME: print a hash of a module's source
source_version()
{
	modinfo -F srcversion "$1" 2>/dev/null
}

# find_suites: find the modules of the suites; sets $why if they cannot be used
find_suites()
{
	local dir file loaded built name

	suite_files=()
	for dir in $(suite_dirs "$(uname -r)"); do
		[ -d "$dir" ] || continue
		for file in $(find "$dir" -name '*.ko*'); do
			name=${file##*/}
			suite_files[${name%.ko*}]=$file
		done
		[ -z "${suite_files[kdapl_kunit]-}" ] || break
	done
	if [ -z "${suite_files[kdapl_kunit]-}" ]; then
		why="not there for this kernel; \"$me suites\" builds them"
		return 1
	fi
	loaded=$(cat /sys/module/kdapl/srcversion 2>/dev/null)
	built=$(source_version "${suite_files[kdapl]-kdapl}")
	if [ -z "$loaded" ] || [ "$loaded" != "$built" ]; then
		why="built with another kdapl.ko than is loaded; \"$me suites\" builds them again"
		return 1
	fi
}

# is_for_adapters NAME: whether a suite is for a user's adapter
is_for_adapters()
{
	local other

	for other in $other_suites; do
		case $1 in "$other" | "$other"_*) return 1 ;; esac
	done
}

# load_for_suites MODULE [PARAMETER]...: load MODULE, after the modules that it needs
load_for_suites()
{
	local dep file=${suite_files[$1]-}

	[ ! -d "/sys/module/$1" ] || return 0
	[ -n "$file" ] || { modprobe -q "$1"; return; }
	for dep in $(modinfo -F depends "$file" | tr , ' '); do
		load_for_suites "$dep" || return
	done
	insmod "$file" "${@:2}" && suites_loaded=("$1" "${suites_loaded[@]}")
}

# unload_suites: unload the modules that were loaded for suites
unload_suites()
{
	local module

	for module in "${suites_loaded[@]}"; do
		rmmod "$module"
	done 2>/dev/null
	suites_loaded=()
}

# count_cases: print "passed failed skipped" of the results on stdin. A case that has
# parameters, whose lines come before its own, counts once for each.
count_cases()
{
	awk '
		/^        (not )?ok / { count(); inner = 1 }
		/^    (not )?ok / { if (!inner) count(); inner = 0 }
		/^not ok / { bad = 1 }
		function count() {
			if (/^ *not /) failed++
			else if (/# SKIP/) skipped++
			else passed++
		}
		END { print passed + 0, failed + (bad && !failed), skipped + 0 }
	'
}

# results_of NAME: load a module of suites, which runs them, and leave their results in
# $work/results, without results of other suites
results_of()
{
	local dir before=' '

	: >"$work/results"
	for dir in "$results_of_suites"/*/; do
		before+="$dir "
	done
	load_for_suites "$1"_test 2>"$work/why" || return
	for dir in "$results_of_suites"/*/; do
		case $before in *" $dir "*) continue ;; esac
		cat "$dir/results" >>"$work/results"
	done
	[ -s "$work/results" ] || echo "it has left no results" >"$work/why"
}

# run_suite NAME: run a module of suites, count their cases, and note them in the report
run_suite()
{
	local name=$1 p=0 f=0 s=0 line

	if results_of "$name"; then
		count_cases <"$work/results" >"$work/counts"
		read -r p f s <"$work/counts"
	fi
	if [ ! -s "$work/results" ]; then
		f=1 line="FAIL suite $name: $(tail -n 1 "$work/why")"
	elif [ "$f" -gt 0 ]; then
		line="FAIL suite $name: $f of $((p + f + s)) cases"
	else
		line="ok suite $name: $p passed, $s skipped"
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "$line"
	echo "$line" >>"$report"
	[ "$f" -eq 0 ] || sed "s/^/    /; s/$peer/ADDRESS/g" "$work/results" >>"$report"
	unload_suites_above kdapl_kunit
}

# unload_suites_above MODULE: unload the modules that were loaded after MODULE
unload_suites_above()
{
	while [ ${#suites_loaded[@]} -gt 0 ] && [ "${suites_loaded[0]}" != "$1" ]; do
		rmmod "${suites_loaded[0]}"
		suites_loaded=("${suites_loaded[@]:1}")
	done
}

# skip_suites WHY: note that the suites do not run
skip_suites()
{
	skipped=$((skipped + 1))
	echo "skip suites: $1" | tee -a "$report"
}

# choose_suites LIST: set $suite_names to the modules of a list of names, or of "all"; if
# there are no suites, set $why
choose_suites()
{
	local name

	suite_names=() why=''
	[ "$1" != none ] && find_suites || return 0
	if [ "$1" != all ]; then
		read -ra suite_names <<<"${1//,/ }"
		for name in "${suite_names[@]}"; do
			[ -n "${suite_files[${name}_test]-}" ] || die "there is no suite $name"
		done
		return
	fi
	for name in $(printf '%s\n' "${!suite_files[@]}" | sed -n 's/_test$//p' | sort); do
		! is_for_adapters "$name" || suite_names+=("$name")
	done
}

# try_suites: run the suites that were chosen on $ia
try_suites()
{
	local name

	[ -z "$why" ] || { skip_suites "$why"; return; }
	# A kdapl_kunit.ko that is loaded may have been given another adapter.
	[ ! -d /sys/module/kdapl_kunit ] || rmmod kdapl_kunit 2>/dev/null
	if [ -d /sys/module/kdapl_kunit ]; then
		skip_suites "kdapl_kunit.ko is in use"
		return
	fi
	[ -d "$results_of_suites" ] || mount -t debugfs none /sys/kernel/debug 2>/dev/null
	if ! load_for_suites kdapl_kunit "ia=$ia" 2>"$work/why"; then
		skip_suites "$(tail -n 1 "$work/why")"
		return
	fi
	for name in "${suite_names[@]}"; do
		run_suite "$name"
	done
	unload_suites
}

# cmd_suites: build the suites for a kernel, from the sources of the package kdapl-dkms
cmd_suites()
{
	local release=${arguments[0]-$(uname -r)} source=$KDAPL_TEST_SOURCE version kdir to file

	[ ${#arguments[@]} -le 1 ] || wrong "suites: what is ${arguments[1]}?"
	[ -n "$release" ] || wrong "suites: the RELEASE is empty"
	[ "$(id -u)" -eq 0 ] || die "only root may do that"
	kdir=/lib/modules/$release/build
	[ -d "$kdir/" ] || die "kernel $release has no headers here: install its headers package"
	version=$(modinfo -k "$release" -F version kdapl 2>/dev/null) ||
		die "kdapl.ko is not installed for kernel $release"
	source=${source:-/usr/src/kdapl-$version}
	[ -d "$source/kunit" ] ||
		die "there is no $source/kunit: kdapl-dkms has it; KDAPL_TEST_SOURCE names another"
	work=$(mktemp -d) || exit
	cp -r "$source/." "$work" || exit
	echo "building the suites for kernel $release; that takes some minutes"
	make -s -C "$work" -j"$(nproc)" KDIR="$kdir" KUNIT=1 modules >"$work/log" 2>&1 || {
		grep -m 5 -E 'error|kDAPL:|\*\*\*' "$work/log" >&2
		die "the suites do not build"
	}
	to=/var/lib/kdapl/$release/suites
	rm -rf "$to"
	mkdir -p "$to" || exit
	for file in "$work"/kunit/*/*.ko "$work/drivers/kdapl/kdapl.ko"; do
		strip --strip-debug -o "$to/${file##*/}" "$file" 2>/dev/null ||
			cp "$file" "$to/" || exit
	done
	echo "$(find "$to" -name '*_test.ko' | wc -l) modules of suites are in $to; \"$me check\" runs them"
}
