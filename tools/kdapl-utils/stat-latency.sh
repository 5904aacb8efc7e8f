# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-stat latency: how long requests of kdapl_blk's disks take. The mean is what the block
# layer counts anyway. A histogram costs a time stamp for each request, so the kernel makes
# one only while this command runs: a synthetic event of block_rq_issue and
# block_rq_complete, in an instance of its own, which goes when the command ends.

tracing=${KDAPL_TRACING:-/sys/kernel/tracing}
synthetic=kdapl_stat_$$
instance=$tracing/instances/$synthetic
# For the trap, which runs outside of the functions.
triggers=() made=''

# Print the device of each disk named in the arguments, of all that are connected without arguments.
devices_of()
{
	local d device name

	if [ $# -eq 0 ]; then
		for d in "$config"/kdapl_blk/*/; do
			device=$(cat "${d}device" 2>/dev/null)
			[ -z "$device" ] || echo "$device"
		done
		return
	fi
	for name in "$@"; do
		device=''
		for d in "$config"/kdapl_blk/*/; do
			[ "$(basename "$d")" != "$name" ] && [ "$(cat "${d}device")" != "$name" ] ||
				device=$(cat "${d}device")
		done
		[ -n "$device" ] || { echo "$me: there is no disk $name that is connected" >&2; return 1; }
		echo "$device"
	done
}

# on EVENT TRIGGER: set a trigger, which "off" removes
on()
{
	echo "$2" >"$instance/events/$1/trigger" || return
	triggers=("$1 $2" "${triggers[@]}")
}

off()
{
	local trigger

	# A trigger that uses another one goes first.
	for trigger in "${triggers[@]}"; do
		echo "!${trigger#* }" >"$instance/events/${trigger%% *}/trigger"
	done
	rmdir "$instance"
	[ -z "$made" ] || echo "!$synthetic u32 dev; u64 us" >>"$tracing/synthetic_events"
}

# Have the kernel make a histogram of each of these devices.
begin_tracing()
{
	local device numbers dev filter=''

	: >"$work/devices"
	for device in "$@"; do
		# One that has just gone has no requests.
		numbers=$(cat "$blocks/$device/dev" 2>/dev/null) || continue
		dev=$((${numbers%:*} << 20 | ${numbers#*:}))
		filter+="${filter:+ || }dev == $dev"
		printf '%d\t%s\n' "$dev" "$device" >>"$work/devices"
	done
	[ -n "$filter" ] || return 0
	echo "$synthetic u32 dev; u64 us" >>"$tracing/synthetic_events" || return
	made=1
	on "synthetic/$synthetic" "hist:keys=dev,us.log2" &&
		on block/block_rq_issue \
			"hist:keys=dev,sector:start=common_timestamp.usecs if $filter" &&
		on block/block_rq_complete "hist:keys=dev,sector:us=common_timestamp.usecs-\$start:$(
			)onmatch(block.block_rq_issue).$synthetic(dev,\$us) if $filter"
}

# Print rows of a histogram of the kernel's: "{ dev: 265289728, us: ~ 2^7 } hitcount: 12"
# are requests that took longer than 2^6 us and 2^7 at most.
histogram_rows()
{
	sed -nE 's/.*dev: +([0-9]+), us: ~ 2\^([0-9]+) *\} hitcount: +([0-9]+).*/\1\t\2\t\3/p' "$1" |
		sort -k1,1n -k2,2n | awk -F'\t' -v OFS='\t' '
		BEGIN { print "DEVICE", "FROM_US", "TO_US", "REQUESTS" }
		NR == FNR { name[$1] = $2; next }
		{ print name[$1], $2 ? 2 ^ ($2 - 1) : 0, 2 ^ $2, $3 }' "$work/devices" -
}

# measure DEVICE...: have the kernel measure requests of these for so long, and leave the rows
# in $work/rows
measure()
{
	[ -e "$tracing/synthetic_events" ] && [ -d "$tracing/events/block" ] ||
		die "this kernel makes no histograms: CONFIG_SYNTH_EVENTS and" \
			"CONFIG_BLK_DEV_IO_TRACE are missing, or $tracing is not mounted"
	temporary
	mkdir "$instance" || die "cannot make $instance"
	trap 'off 2>/dev/null; rm -rf "$work"' EXIT
	begin_tracing "$@" || die "the kernel refused the histogram: $(
		tail -n 3 "$tracing/error_log" 2>/dev/null | tr '\n' ' ')"
	sleep "$interval" &
	wait $!
	histogram_rows "$instance/events/synthetic/$synthetic/hist" >"$work/rows" 2>/dev/null
	off 2>/dev/null
	trap 'rm -rf "$work"' EXIT
}

cmd_latency()
{
	local wanted

	[ -d "$config/kdapl_blk" ] ||
		die "kdapl_blk.ko is not loaded; the latency of a target is that of its backing device"
	wanted=$(devices_of "$@") || exit 1
	[ -n "$wanted" ] || die "there is no disk of kdapl_blk that is connected"
	if [ -z "$interval" ]; then
		disks | grep -wF "$(sed 's/^/device=/' <<<"$wanted")" | show disks
		return
	fi
	# shellcheck disable=SC2086	# names of devices
	measure $wanted
	if [ -n "$as_json" ]; then
		as_array <"$work/rows"
		echo
	else
		as_table <"$work/rows"
	fi
}
