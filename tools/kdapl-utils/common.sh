# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What kdapl-blk and kdapl-test share. $me is the name of the tool.

die()
{
	echo "$me: $*" >&2
	exit 1
}

# The only adapter there is.
only_ia()
{
	local d list=()

	for d in /sys/class/infiniband/*/ports/*; do
		[ -e "$d" ] || continue
		d=${d#/sys/class/infiniband/}
		list+=("${d%%/*}/${d##*/}")
	done
	case ${#list[@]} in
	0) die "there is no RDMA device" ;;
	1) echo "${list[0]}" ;;
	*) die "there are several adapters (${list[*]}); choose one with -i" ;;
	esac
}
