# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154
#
# Sourced by check-boot, check-iser and check-nfs after common.sh: run the cases of the script in
# scripts/guest of the same name in a guest for each of $kernels and each transport there, and count
# them. Who sources this has
#	$uml			the kernels of User Mode Linux that it is for
#	$uml_options		options of uml-run
#	$vm_options		those of vm-run, if there are any
#	$words			variables for the guest
#	$chosen			the cases that were asked for, if any were
#	all_cases_on KERNEL	which makes $cases those that are run there otherwise
#	pack KERNEL DIR		which puts into DIR what the guest needs

vm_options=()

# links_on KERNEL: make $links the transports there, for each of which there is a guest
links_on()
{
	links=(rxe)
	! is_one_of "$1" "${uml[@]}" || links=(rxe siw)
	[ -z "$ONLY" ] || is_one_of "$ONLY" "${links[@]}" ||
		wrong "ONLY=$ONLY: $(title "$1") has no $ONLY"
	[ -z "$ONLY" ] || links=("$ONLY")
}

# choose_kernels: make $kernels those in $KERNEL, and check them and $ONLY
choose_kernels()
{
	local kernel

	choice ONLY rxe siw ""
	choices KERNEL "${uml[@]}" "${debian_kernels[@]}"
	kernels=("${chosen[@]}")
	for kernel in "${kernels[@]}"; do
		links_on "$kernel"
	done
}

# in_guests KERNEL LINK DIR: run the cases, which leave DIR/said, DIR/reports and DIR/status. A fresh
# guest goes on behind the case in which one was killed or has died, unless two guests in
# turn did not get to the end of a case.
in_guests()
{
	local run=("$top/scripts/run/vm-run" "${vm_options[@]}") left=("${cases[@]}") dir=$3 ended useless=0 status=0

	! is_one_of "$1" "${uml[@]}" || run=("$top/scripts/run/uml-run" "${uml_options[@]}")
	: >"$dir/said"
	: >"$dir/reports"
	while :; do
		"${run[@]}" -t "$TIMEOUT" -o "$dir" "$1" "$top/scripts/guest/$self" LINK="$2" \
			"${words[@]}" CASES="${left[*]}" >"$dir/now" || status=$?
		cat "$dir/now" >>"$dir/said"
		python3 "$top/scripts/report/check" --log "$1 $2" "$dir/kernel.log" \
			>>"$dir/reports" || status=1
		[[ $(tail -n 1 "$dir/now") != *' passed, '* ]] || break
		ended=$(grep -cE '^(ok|not ok|skip) ' "$dir/now") || useless=$((useless + 1))
		echo "not ok ${left[ended]-the end}:" \
			"the guest $(cat "$dir/.stuck" 2>/dev/null || echo 'has died')"
		{ cat "$dir/state" 2>/dev/null || :; tail -n 20 "$dir/kernel.log"; } | sed 's/^/# /'
		left=("${left[@]:ended+1}")
		[ ${#left[@]} -gt 0 ] || break
		if [ "$useless" -gt 1 ]; then
			printf 'skip %s: not run, as no guest gets that far\n' "${left[@]}"
			break
		fi
	done >>"$dir/said"
	echo $status >"$dir/status"
}

# judge KERNEL LINK DIR: count what the guests have left, and show it
passed=0 failed=0 skipped=0
judge()
{
	local before=$failed dir=$3

	sed "/ passed, /d; s/^/[$1 $2] /" "$dir/said"
	passed=$((passed + $(grep -c '^ok ' "$dir/said" || :)))
	failed=$((failed + $(grep -c '^not ok' "$dir/said" || :)))
	skipped=$((skipped + $(grep -c '^skip ' "$dir/said" || :)))
	head -n 100 "$dir/reports"
	# A report of the kernel, a leak, or the end of the guest has no case of its own.
	[ "$failed" -gt "$before" ] || [ "$(cat "$dir/status")" -eq 0 ] || failed=$((failed + 1))
}

# run_everywhere: all of it, and the last line
run_everywhere()
{
	local kernel link place guests

	for kernel in "${kernels[@]}"; do
		cases=("${chosen[@]}")
		[ ${#cases[@]} -gt 0 ] || all_cases_on "$kernel"
		links_on "$kernel"
		place=$cache/${self#check-}-$kernel
		guests=()
		for link in "${links[@]}"; do
			pack "$kernel" "$place-$link-$top_key"
			in_guests "$kernel" "$link" "$place-$link-$top_key" &
			guests+=($!)
		done
		wait "${guests[@]}"
		for link in "${links[@]}"; do
			judge "$kernel" "$link" "$place-$link-$top_key"
		done
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
