# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# check-package: the Debian packages on another release of Debian, in a root of its own.
: "${top:=}" "${out:=}" "${version:=}" "${cache:=}" "${root:=}" "${work:=}" "${NEWEST:=}"
: "${passed:=}" "${failed:=}" "${skipped:=}"
# shellcheck source=scripts/lib/archive.sh
. "$top/scripts/lib/archive.sh"

# newest_root: make $cache/newest-$NEWEST, a small root with DKMS, a kernel's headers and a
# compiler, unless it is there
newest_root()
{
	local dir=$cache/newest-$NEWEST
	# The root does not have the one of supervise.
	local -x TMPDIR=/tmp

	[ ! -e "$dir/.complete" ] || return 0
	need_packages debootstrap
	rm -rf "$dir"
	unshare -m debootstrap --variant=minbase "$NEWEST" "$dir" "$(archive_address)"
	chroot "$dir" apt-get install -y -qq --no-install-recommends dkms linux-headers-amd64 \
		make kmod man-db
	chroot "$dir" apt-get clean
	touch "$dir/.complete"
}

# newest_install: as apt does it, with what the packages depend on
newest_install()
{
	cp "$out/$version"/*.deb "$root/tmp"
	inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends "/tmp/kdapl-dkms_${version}_all.deb" \
		"/tmp/kdapl-dev_${version}_all.deb" "/tmp/kdapl-utils_${version}_all.deb" \
		"/tmp/kdapl-isert_${version}_all.deb" "/tmp/kdapl-svcrdma_${version}_all.deb"
}

# newest_targets: there the stock targets are not, but what has ours loaded before them is
newest_targets()
{
	grep -x 'softdep ib_isert pre: kdapl_isert' "$root/usr/lib/modprobe.d/kdapl-isert.conf"
	grep -x 'softdep rpcrdma pre: kdapl_svcrdma' "$root/usr/lib/modprobe.d/kdapl-svcrdma.conf"
}

newest_purge()
{
	inside apt-get purge -y -qq kdapl-isert kdapl-svcrdma kdapl-dkms kdapl-dev kdapl-utils
	absent "/usr/src/kdapl-$version" /var/lib/dkms/kdapl /var/lib/kdapl /usr/sbin/kdapl-blk
	find "$root/lib/modules/$1" -name 'kdapl*' >"$out/left"
	[ ! -s "$out/left" ]
}

# in_newest: install, use and remove the packages there
in_newest()
{
	local release

	mount -t tmpfs tmpfs "$work"
	mkdir "$work/upper" "$work/work" "$root"
	mount -t overlay overlay -o \
		"lowerdir=$cache/newest-$NEWEST,upperdir=$work/upper,workdir=$work/work" "$root"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	echo autoinstall_all_kernels=yes >>"$root/etc/dkms/framework.conf"
	release=$(basename "$root"/lib/modules/*)
	# As the kernel's package does when it is configured
	inside depmod "$release"
	try "${NEWEST}_install" newest_install
	try "${NEWEST}_installed_$release" installed_for "$version" "$release"
	try "${NEWEST}_version" says_version "$version" "$release"
	try "${NEWEST}_tool" tool
	try "${NEWEST}_targets" newest_targets
	try "consumer_$release" build_consumer "$release"
	try "${NEWEST}_suites" suites "$release"
	try "${NEWEST}_purge" newest_purge "$release"
	echo "$passed $failed $skipped" >"$out/counts"
}
