# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets cache and top.
# shellcheck disable=SC2154
#
# Sourced by check-nfs and others after common.sh and iser.sh: Debian's nfs-utils for guests,
# unpacked and not installed.

# with_nfs_tools DIR: put into DIR what a guest needs to be an NFS server and client
with_nfs_tools()
{
	local tools=$cache/nfs-packages

	fetch "$tools" nfs-common nfs-kernel-server rpcbind libnfsidmap1 libtirpc3 \
		libtirpc-common libevent-core-2.1-7 libwrap0 libkeyutils1 keyutils \
		libsqlite3-0 || return
	mkdir -p "$1"
	rm -rf "$1/packages"
	cp -al "$tools/packages" "$1/packages" 2>/dev/null ||
		cp -r "$tools/packages" "$1/packages"
	cp "$top"/scripts/guest/{guest,cases,nfs}.sh "$1"
}

# for_nfs KERNEL DIR: put into DIR the modules that a guest of User Mode Linux needs: in DIR/root,
# for modprobe -d
for_nfs()
{
	local kernel build release dir

	kernel=$("$top/scripts/kernel/uml-kernel" "$1") &&
		build=$("$top/scripts/kernel/build-modules" -t crowd "$1") || return
	release=$(cat "$kernel/include/config/kernel.release")
	dir=$2/root/lib/modules/$release
	rm -rf "$2/root"
	mkdir -p "$dir/updates"
	cp "$kernel"/modules.{builtin,builtin.modinfo,order} "$dir"
	cp "$build"/drivers/*/*.ko "$build"/kunit/crowd/kdapl_crowd.ko "$kernel/net/sunrpc/xprtrdma/rpcrdma.ko" "$dir/updates"
	depmod -b "$2/root" "$release"
}
