# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the scripts beside it: where things are.

# Debian's users have no sbin in their PATH: depmod, modprobe.
PATH=$PATH:/usr/sbin:/sbin

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kdapl
# Distinguishes the build directories of several checkouts of this tree.
# shellcheck disable=SC2034
top_key=$(printf %s "$top" | sha256sum | cut -c1-8)
mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)

# shellcheck source=scripts/deps.sh
. "$top/scripts/deps.sh"

# The flavour of kernel that the modules of a flavour are for.
kernel_of()
{
	case $1 in
	debug | coverage) echo debug ;;
	*) echo plain ;;
	esac
}

# blk_guest KERNEL DIR: put into DIR what a guest needs to use kdapl-blk, unless it has
# it installed, and make $run the command that runs a script in it
# shellcheck disable=SC2034	# for who sources this
blk_guest()
{
	local build

	build=$("$top/scripts/build-modules" "$1")
	cp "$top/scripts/kdapl-blk" "$2"
	case $1 in
	6.*) run=("$top/scripts/vm-run" -t "${TIMEOUT:-1200}" -o "$2" "$1") ;;
	*)
		run=("$top/scripts/uml-run" -t "${TIMEOUT:-900}" -o "$2" "$1")
		cp "$build/drivers/kdapl/kdapl.ko" "$build"/drivers/kdapl_blk/*.ko "$2"
		;;
	esac
}
