# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2086,SC2154
#
# Cases of guest/check-iser, whose functions and variables they use: libiscsi's own initiator,
# which speaks iSER in user space.

# by_libiscsi SIZE: have it look at a disk of that size, and read it; $bin has its programs, $by
# is what runs them
by_libiscsi()
{
	said "${by[@]}" "$bin/iscsi-inq" "$url" && grep -q 'Vendor:LIO-ORG' /run/said || return
	said "${by[@]}" "$bin/iscsi-readcapacity16" -s "$url" || return
	grep -qx "$1" /run/said || { cat /run/said; return 1; }
	said "${by[@]}" "$bin/iscsi-perf" -m 8 -b 64 -t 2 "$url"
}

has_verbs()
{
	modprobe -qa ib_uverbs rdma_ucm
	[ -e /dev/infiniband/rdma_cm ]
}

# That of 1.19 announces immediate data and sends none, which is refused. It crashes when it
# connects again, so of libiscsi's tests none is run.
libiscsi()
{
	local url=iser://$address:3260/$target/0 bin=$OUT/packages/usr/bin
	local lib=$OUT/packages/usr/lib/x86_64-linux-gnu
	local by=("timeout" 60 env "LD_LIBRARY_PATH=$lib:$lib/libibverbs")

	has_verbs || { skip "no verbs in user space"; return; }
	up && put No $tpg/param/ImmediateData && by_libiscsi $((1 << 30))
}

# That of 1.20 by the C library that it is made for: data read and written as well, with what a
# target may be set to, as its own offers cannot be. For its discovery see kdapl-isert.rst.
libiscsi_1_20()
{
	local url=iser://$address:3260/$target/0 bin=$OUT/newer/usr/bin
	local lib=$OUT/newer/usr/lib/x86_64-linux-gnu tests=(-tSCSI.{Read,Write}{10,12,16})
	local keys key was
	local by=("timeout" 60 "$lib/ld-linux-x86-64.so.2" --library-path "$lib:$lib/libibverbs")

	[ -d "$OUT/newer" ] || { skip "libiscsi 1.20 could not be fetched"; return; }
	has_verbs || { skip "no verbs in user space"; return; }
	file_backstore_up /run/backing && up || return
	while read -r -u 3 keys; do
		was=()
		for key in $keys; do
			was+=("${key%=*}=$(cat "$tpg/param/${key%=*}")")
			put "${key#*=}" "$tpg/param/${key%=*}" || return
		done
		by_libiscsi $((64 << 20)) || { echo "$keys"; return 1; }
		dd if=/dev/urandom of=/run/backing bs=1M count=64 conv=notrunc status=none
		{ said "${by[@]}" "$bin/iscsi-md5sum" "$url" &&
			grep -qF "$(md5sum </run/backing | cut -d' ' -f1)" /run/said; } ||
			{ echo "$keys: other data were read"; return 1; }
		{ said "${by[@]}" "$bin/iscsi-test-cu" -d -n "${tests[@]}" "$url" &&
			grep -Eq '^ +tests +([0-9]+) +\1 +\1 +0 ' /run/said; } ||
			{ tail -n 20 /run/said; echo "$keys"; return 1; }
		for key in "${was[@]}"; do
			put "${key#*=}" "$tpg/param/${key%=*}" || return
		done
	done 3<<-END
		ImmediateData=Yes
		ImmediateData=No
		FirstBurstLength=4096 MaxBurstLength=8192
		FirstBurstLength=512 MaxBurstLength=4096
		MaxRecvDataSegmentLength=4096
		MaxXmitDataSegmentLength=4096
		MaxOutstandingR2T=8 DefaultTime2Wait=0 DefaultTime2Retain=0
	END
}
