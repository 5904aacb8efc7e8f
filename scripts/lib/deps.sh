# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The Debian packages that the targets of the Makefile need, and how to get them.
# shellcheck disable=SC2034

DEPS_KERNEL="linux-source-6.12 build-essential flex bison bc libelf-dev libssl-dev
	xz-utils python3 kmod"
DEPS_RUN="busybox-static iproute2 kmod e2fsprogs python3 rsync"
DEPS_LINT="sparse shellcheck"
DEPS_DOCS="python3-sphinx graphviz man-db mandoc"
# pahole: what the headers of 6.12 depend on, which are unpacked and not installed.
DEPS_STOCK="build-essential libelf-dev libssl-dev kmod xz-utils pahole"
DEPS_PACKAGE="dkms dh-dkms debhelper lintian man-db linux-kbuild-6.1 rpm rpmlint git cpio"
DEPS_VM="qemu-system-x86 cpio"
DEPS_FOREIGN_VM="qemu-system-arm qemu-system-misc qemu-system-ppc cpio"

# The exit status of a script that failed because a mirror could not be reached.
UNREACHABLE=75

# from_mirror COMMAND...: run it; if it fails, update apt's lists and run it again
from_mirror()
{
	local said rc=1

	"$@" >/dev/null 2>&1 && return
	if [ "$(id -u)" -eq 0 ]; then
		said=$(LC_ALL=C apt-get update -qq 2>&1) || :
		[ -z "$said" ] || echo "$said" >&2
		[[ $said != *'Failed to fetch'* ]] || rc=$UNREACHABLE
	fi
	"$@" >/dev/null || return "$rc"
}

# Install those of the named packages that are missing.
need_packages()
{
	local missing=() p rc=0

	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null |
			grep -qx installed || missing+=("$p")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "these packages are missing; install them as root:" \
			"apt-get install ${missing[*]}" >&2
		return 1
	fi
	echo "installing: ${missing[*]}"
	local -x DEBIAN_FRONTEND=noninteractive
	# Another of our scripts may be installing something.
	from_mirror apt-get -o DPkg::Lock::Timeout=300 install -y -qq \
		--no-install-recommends "${missing[@]}" || rc=$?
	[ "$rc" -eq 0 ] || echo "these packages cannot be installed: ${missing[*]}" >&2
	return "$rc"
}
