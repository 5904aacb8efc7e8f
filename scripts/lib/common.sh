# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced first by the scripts that make or a developer starts: says where things
# are, answers --help, and has the script run under lib/supervise, so that nothing
# of it is left when it ends or is interrupted. The script has set $usage.

# The text that --help prints.
: "${usage:=}"
self=${0##*/}

# depmod and modprobe are in sbin, which Debian's users do not have in their PATH.
PATH=$PATH:/usr/sbin:/sbin

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kdapl
# $top_key distinguishes the build directories of several checkouts of this tree.
# shellcheck disable=SC2034
top_key=$(printf %s "$top" | sha256sum | cut -c1-8)

# The test kernels: for User Mode Linux with one CPU, as Debian distributes them, and our own
# for QEMU; those for User Mode Linux with several CPUs, with NFS, and with our patches for rxe and
# siw. Modules are also built in two more ways for plain and debug.
uml_kernels=(plain debug)
uml_nfs_kernels=(nfs nfs-debug)
uml_smp_kernels=(smp smp-debug)
uml_patched_kernels=(patched)
debian_kernels=(6.1 6.12)
smp_kernels=(smp-kasan smp-kcsan)
# Debian's for other processors, by series and flavour
foreign_kernels=(6.12-arm64 6.12-arm64-16k 6.12-s390x 6.12-powerpc64le 6.12-powerpc64le-64k)
# shellcheck disable=SC2034
module_flavours=("${uml_kernels[@]}" "${uml_smp_kernels[@]}" "${uml_nfs_kernels[@]}"
	"${uml_patched_kernels[@]}" coverage lint
	"${debian_kernels[@]}" "${smp_kernels[@]}" "${foreign_kernels[@]}")

# shellcheck source=scripts/lib/deps.sh
. "$top/scripts/lib/deps.sh"
# shellcheck source=scripts/lib/arguments.sh
. "$top/scripts/lib/arguments.sh"
# shellcheck source=scripts/lib/foreign.sh
. "$top/scripts/lib/foreign.sh"

# say WORD...: tell what is done now, unless KDAPL_QUIET is set. Results go to stdout,
# this does not.
say()
{
	[ -n "${KDAPL_QUIET-}" ] || echo "$*" >&2
}

# flavour_of KERNEL: the User Mode Linux kernel that modules of this flavour are for
flavour_of()
{
	case $1 in
	debug | coverage) echo debug ;;
	smp | smp-debug | nfs | nfs-debug | patched | plain-*) echo "$1" ;;
	*) echo plain ;;
	esac
}

# is_newer KERNEL: succeeds if this is, by its name, a kernel newer than those of this
# machine's Debian: SERIES, or plain-SERIES for User Mode Linux
is_newer()
{
	[[ $1 =~ ^(plain-)?[0-9]+\.[0-9]+$ ]] && ! is_one_of "$1" "${debian_kernels[@]}"
}

# title KERNEL: how a sentence calls this flavour of kernel
title()
{
	case $1 in
	[0-9]*) echo "Debian's $1 kernel" ;;
	plain-*) echo "the plain ${1#*-} kernel" ;;
	*) echo "the $1 kernel" ;;
	esac
}

locks=()
# lock FILE WHAT: hold a lock until the script ends; says so if it has to wait
lock()
{
	local fd

	exec {fd}>"$1"
	locks+=("$fd")
	if ! flock -n "$fd"; then
		say "waiting for another process: $2"
		flock "$fd"
	fi
}

# every SECONDS FUNCTION: call it again and again in the background, until no_more.
# Locks are not kept by what runs there.
every()
{
	(
		nap=
		trap 'kill "$nap" 2>/dev/null; exit' TERM
		for fd in "${locks[@]}"; do
			exec {fd}>&-
		done
		while :; do
			sleep "$1" &
			nap=$!
			wait "$nap"
			"$2"
		done
	) &
	reporter=$!
}

no_more()
{
	kill "$reporter" 2>/dev/null || :
	wait "$reporter" 2>/dev/null || :
}

# run_make ARGUMENT...: make, without what a calling make has put into the environment
run_make()
{
	env -u MAKEFLAGS -u MAKELEVEL -u KERNEL -u SUITE make "$@"
}

# findings_of BUILD: print the warnings and errors of a build of modules that are about
# our files, from its log
findings_of()
{
	sed "s#$1/##g" "$1.log" |
		{ grep -E '(warning|error|WARNING|ERROR):' || :; } |
		{ grep -vE '^/|^\./(include|arch)/|^\./\.\./' || :; }
}

# with_block_device KERNEL DIR: put into DIR what a guest needs to use kdapl-blk, unless
# it has that installed, and make $run the command that runs a script in it.
# shellcheck disable=SC2034	# for who sources this
with_block_device()
{
	local build

	build=$("$top/scripts/kernel/build-modules" -t "" "$1")
	cp -r "$top"/tools/kdapl-{blk,stat,utils} "$2"
	case $1 in
	6.*) run=("$top/scripts/run/vm-run" -t "${TIMEOUT:-600}" -o "$2" "$1") ;;
	*)
		run=("$top/scripts/run/uml-run" -t "${TIMEOUT:-600}" -o "$2" "$1")
		cp "$build/drivers/kdapl/kdapl.ko" "$build"/drivers/kdapl_blk/*.ko "$2"
		;;
	esac
}

case ${1-} in
-h | --help)
	printf '%s\n' "$usage"
	exit
	;;
esac

mkdir -p "$cache"
cache=$(cd "$cache" && pwd -P)
if [ -z "${KDAPL_SUPERVISED-}" ]; then
	need_packages python3 >&2
	exec "$top/scripts/lib/supervise" "$0" "$@"
fi
