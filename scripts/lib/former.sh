# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets top and cache.
# shellcheck disable=SC2034,SC2154
#
# Sourced by check-package and check-boot after common.sh: the releases before this one, which
# are upgraded from, oldest first, and the commits that they were made of.
formers=(0.9.0 1.0.0 1.1.0)
declare -A former_commit=(
	[0.9.0]=1000c50df1899bb16814d634c04c4aaab5cc336d
	[1.0.0]=acf521c489bc5712ecd6f3fef254c27076b9ba04
	[1.1.0]=6e2827cd72da198699c0f46d70b6d2c8fb74c33f
)

# former_sources VERSION DIR: put them there. Fails if this copy of the history does not have them.
former_sources()
{
	local commit=${former_commit[$1]}

	git -C "$top" cat-file -e "$commit^{commit}" 2>/dev/null || return
	mkdir -p "$2"
	git -C "$top" archive "$commit" | tar -C "$2" -x
}

# with_former VERSION KERNEL DIR: put its tool and its modules for that User Mode Linux kernel into
# DIR/former-VERSION, and DIR/former-VERSION/root for modprobe -d, after for_uml. Without its
# sources there is no such directory. In a shell of its own, so that no guest keeps the lock.
with_former()
(
	local kernel built place=$3/former-$1 release updates

	rm -rf "$place"
	kernel=$("$top/scripts/kernel/uml-kernel" "$2") || return
	built=$cache/former-$1-$(basename "$kernel")
	lock "$built.lock" "it builds $1"
	if [ ! -e "$built/.complete" ]; then
		rm -rf "$built"
		former_sources "$1" "$built" || return 0
		say "building the modules of $1"
		run_make -s -C "$built" KDIR="$kernel" ARCH=um -j"$(nproc)" modules \
			>"$built/log" 2>&1 || { tail -n 20 "$built/log" >&2; return 1; }
		touch "$built/.complete"
	fi
	release=$(cat "$kernel/include/config/kernel.release")
	updates=$place/root/lib/modules/$release/updates
	mkdir -p "$place/root/lib/modules"
	cp -r "$3/root/lib/modules/$release" "$place/root/lib/modules"
	rm -f "$updates"/kdapl*.ko
	cp "$built"/drivers/*/*.ko "$updates"
	depmod -b "$place/root" "$release"
	cp -r "$built"/tools/kdapl-{blk,utils} "$place"
)
