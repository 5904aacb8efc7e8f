# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced, after suites.sh, by what runs suites in guests of vm-run: check-vm, check-arch.

: "${top:=}" "${cache:=}" "${tests:=}" "${chosen:=}"

passed=0
failed=0
skipped=0

# boot: boot a guest that works on what the one before has not taken
boot()
{
	local rc=0

	mkdir "$out/$guest"
	cp -rl "$out/modules" "$out/$guest/"
	cp -r "$out/shared" "$out/$guest/"
	"$top/scripts/run/vm-run" -o "$out/$guest" -t "${TIMEOUT:-$((600 + stress))}" \
		${cmdline:+-k "$cmdline"} \
		"$kernel" "$top/scripts/guest/check" GCOV= SHARED= WATCH="$watch" \
		"PARAMS=stress_test.seconds=$stress $params ${PARAMS-}" \
		>"$out/$guest/guest.log" 2>&1 || rc=$?
	cp -r "$out/$guest/shared/taken" "$out/shared/"
	rm -rf "$out/$guest"/{modules,shared}
	return "$rc"
}

# run KERNEL OUT: leaves the log of a run, and "passed failed skipped", in the cache
run()
{
	local kernel=$1 out=$2 build path name stress watch='' params='' cmdline='' guest=1

	case $kernel in
	6.*-*) stress=${STRESS:-60} ;;
	6.*)
		stress=${STRESS:-300}
		cmdline=swiotlb=force params=kdapl_sim.dma_bits=64
		;;
	*) stress=${STRESS:-200} watch=y ;;
	esac

	mkdir -p "$out/modules" "$out/shared/taken"
	for name in "${chosen[@]}"; do
		case $name in
		demo) ;;
		tool) echo tool ;;
		*) echo "${name}_test" ;;
		esac
	done >"$out/plan"
	total=$(wc -l <"$out/plan")
	[ "$total" -gt 0 ] || { echo 0 0 0 >"$out/counts"; return; }
	if ! build=$("$top/scripts/kernel/build-modules" -t "$tests" "$kernel"); then
		echo "FAIL [$kernel] the modules do not build"
		return
	fi
	while read -r path; do
		path=${path%.o} path=${path%.ko}
		cp "$build/${path#"$build"/}.ko" "$out/modules/"
	done <"$build/modules.order"
	cp -r "$top/scripts/guest/tool" "$top"/tools/kdapl-{test,utils} "$out/modules"
	cp "$out/plan" "$out/shared"
	say "[$kernel] running $total modules of suites"
	every 15 how_far
	# A fresh guest goes on after one that was killed or has died.
	while ! boot && [ -e "$out/$guest/plan" ] &&
			[ "$(find "$out/shared/taken" -mindepth 1 | wc -l)" -lt "$total" ]; do
		guest=$((guest + 1))
	done
	no_more
	rm -rf "$out/modules" "$out/shared"
	sed -n "s/^\(setup_watchpoints\|data_races\)/[$kernel] KCSAN: &/p" \
		"$out"/*/kcsan 2>/dev/null || :
	python3 "$top/scripts/report/check" "$cache/linux-source" "$kernel" "$out"
}

how_far()
{
	say "[$kernel] $(suites_done "$out") of $total modules of suites done"
}

# count KERNEL OUT: run the suites and add to the counts
count()
{
	local p=0 f=1 s=0

	run "$1" "$2" || :
	[ ! -s "$2/counts" ] || read -r p f s <"$2/counts"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "[$1] so far: $passed passed, $failed failed, $skipped skipped"
}
