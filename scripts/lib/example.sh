# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets top.
# shellcheck disable=SC2154
#
# Sourced by check and check-boot after common.sh: the examples for consumers.

# build_examples BUILD DIR: build the examples as a consumer would, for the kernel that the
# modules in BUILD are for, out of this tree, with what is installed; put them into DIR
build_examples()
{
	local build=$1 dir=$2 work kernel arguments

	kernel=$(cat "$build.kernel")
	work=$dir/building
	rm -rf "$work"
	mkdir -p "$work"
	# Nobody here has the key that Debian's kernels want modules to be signed with.
	arguments=(-s KDIR="$kernel" INSTALL_MOD_PATH="$work/root" CONFIG_MODULE_SIG_ALL=)
	[[ ${kernel##*/} != uml-* ]] || arguments+=(ARCH=um)
	cp -r "$top/Documentation/example" "$work/example"
	run_make -C "$build" "${arguments[@]}" \
		DESTDIR="$work/root" DEPMOD=true install-dev modules_install &&
	run_make -C "$work/example" "${arguments[@]}" \
		W=1 KDAPL_MK="$work/root/usr/share/kdapl/kdapl.mk" modules &&
	run_make -C "$work/example/skeleton" "${arguments[@]}" \
		W=1 KDAPL_MK="$work/root/usr/share/kdapl/kdapl.mk" &&
	mv "$work"/example/kdapl_{echo,hello,marks,store}.ko \
		"$work/example/skeleton/kdapl_skeleton.ko" "$dir" || return
	rm -rf "$work"
}
