# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-stat latency: how long requests of kdapl_blk's disks take, from what the module counts
# for each disk: the mean since the disk was made, or a histogram of some seconds.

# find_disks [DISK]...: leave the directories of these disks in "wanted", without arguments those
# of all that are connected
find_disks()
{
	local d device name found

	wanted=()
	for name in "${@:-}"; do
		found=''
		for d in "$config"/kdapl_blk/*/; do
			device=$(cat "${d}device" 2>/dev/null)
			[ -n "$device" ] || continue
			if [ -z "$name" ] || [ "$(basename "$d")" = "$name" ] || [ "$device" = "$name" ]; then
				found=1
				# A disk may be named twice, or by its device as well.
				[[ " ${wanted[*]} " == *" $d "* ]] || wanted+=("$d")
			fi
		done
		[ -n "$found" ] || [ -z "$name" ] || die "there is no disk $name that is connected"
	done
	[ ${#wanted[@]} -gt 0 ] || die "there is no disk of kdapl_blk that is connected"
}

# Fail with a sentence if the module that is loaded has no histograms: after an upgrade the former
# one stays.
need_histograms()
{
	local d version

	for d in "${wanted[@]}"; do
		[ ! -e "${d}latency" ] || continue
		[ -d "$d" ] || die "the disk $(shown "$d") is gone"
		version=$(cat "${KDAPL_SYS:-/sys/module}/kdapl_blk/version" 2>/dev/null)
		die "kdapl_blk.ko $version is loaded, which makes no histograms: \"$me\" shows those of 1.2.0 and later"
	done
}


cmd_latency()
{
	local format=as_table

	[ -d "$config/kdapl_blk" ] ||
		die "kdapl_blk.ko is not loaded; the latency of a target is that of its backing device"
	find_disks "$@"
	if [ -z "$interval" ]; then
		disks "${wanted[@]}" | show disks
		return
	fi
	[ -z "$as_json" ] || format=as_array
	need_histograms
	temporary
	disks "${wanted[@]}" | sed 's/^/before=1 /' >"$work/before"
	pause
	disks "${wanted[@]}" | awk -v OFS='\t' -f "$parts/stat-objects.awk" \
		-f "$parts/stat-histogram.awk" "$work/before" - | $format
	[ -z "$as_json" ] || echo
}
