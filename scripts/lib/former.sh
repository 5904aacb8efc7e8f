# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets top and cache.
# shellcheck disable=SC2034,SC2154
#
# Sourced by check-package and check-boot after common.sh: the release before this one, which
# is upgraded from. It was made of that commit.
former=0.9.0 former_commit=1000c50df1899bb16814d634c04c4aaab5cc336d

# former_sources DIR: put them there. Fails if this copy of the history does not have them.
former_sources()
{
	git -C "$top" cat-file -e "$former_commit^{commit}" 2>/dev/null || return
	mkdir -p "$1"
	git -C "$top" archive "$former_commit" | tar -C "$1" -x
}

# with_former KERNEL DIR: put its tool and its modules for that User Mode Linux kernel into
# DIR/former, and DIR/former/root for modprobe -d, after for_uml. Without its sources there is
# no DIR/former. In a shell of its own, so that no guest keeps the lock.
with_former()
(
	local kernel built place release

	rm -rf "$2/former"
	kernel=$("$top/scripts/kernel/uml-kernel" "$1") || return
	built=$cache/former-$former-$(basename "$kernel")
	lock "$built.lock" "it builds $former"
	if [ ! -e "$built/.complete" ]; then
		rm -rf "$built"
		former_sources "$built" || return 0
		say "building the modules of $former"
		run_make -s -C "$built" KDIR="$kernel" ARCH=um -j"$(nproc)" modules \
			>"$built/log" 2>&1 || { tail -n 20 "$built/log" >&2; return 1; }
		touch "$built/.complete"
	fi
	release=$(cat "$kernel/include/config/kernel.release")
	place=$2/former/root/lib/modules/$release
	mkdir -p "$2/former/root/lib/modules"
	cp -r "$2/root/lib/modules/$release" "$place"
	rm -f "$place"/updates/kdapl*.ko
	cp "$built"/drivers/*/*.ko "$place/updates"
	depmod -b "$2/former/root" "$release"
	cp -r "$built"/tools/kdapl-{blk,utils} "$2/former"
	echo $former >"$2/former/version"
)
