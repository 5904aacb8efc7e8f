# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets cache and top.
# shellcheck disable=SC2154
#
# Sourced by check-iser and bench-iser after common.sh: Debian's open-iscsi and libiscsi
# for guests, unpacked and not installed.

tools=$cache/iser-packages

fetch_iser_tools()
{
	local packages=(open-iscsi libopeniscsiusr libisns0 libiscsi-bin libiscsi7 libcunit1
		sg3-utils) d

	say "fetching open-iscsi and libiscsi"
	packages+=("$(apt-cache depends sg3-utils |
		sed -n 's/^ *Depends: \(libsgutils2.*\)/\1/p')")
	rm -rf "$tools"
	mkdir -p "$tools/debs"
	(
		cd "$tools/debs"
		from_mirror apt-get -o APT::Sandbox::User=root -qq download \
			"${packages[@]}"
	) || return
	for d in "$tools"/debs/*.deb; do
		dpkg-deb -x "$d" "$tools/packages"
	done
	rm -r "$tools/debs"
	touch "$tools/.complete"
}

# with_iser_tools DIR: put into DIR what a guest needs to be an initiator
with_iser_tools()
{
	# A lock is held until the script ends, which may be here for a second kernel.
	if [ ! -e "$tools/.complete" ]; then
		lock "$tools.lock" "it fetches open-iscsi"
		[ -e "$tools/.complete" ] || fetch_iser_tools || return
	fi
	mkdir -p "$1"
	rm -rf "$1/packages"
	cp -al "$tools/packages" "$1/packages" 2>/dev/null ||
		cp -r "$tools/packages" "$1/packages"
	cp "$top/scripts/guest/iser.sh" "$1"
}

# for_uml KERNEL DIR: put into DIR what else a guest of User Mode Linux needs: in DIR/root
# the modules of its kernel and ours, for modprobe -d
for_uml()
{
	local kernel build theirs release dir

	kernel=$("$top/scripts/kernel/uml-kernel" "$1") &&
		build=$("$top/scripts/kernel/build-modules" -t crowd "$1") &&
		theirs=$("$top/scripts/kernel/uml-modules" "$1") || return
	release=$(cat "$kernel/include/config/kernel.release")
	dir=$2/root/lib/modules/$release
	rm -rf "$2/root"
	mkdir -p "$dir/updates"
	cp "$kernel"/modules.{builtin,builtin.modinfo,order} "$dir"
	cp "$build"/drivers/*/*.ko "$build"/kunit/crowd/*.ko "$theirs"/*.ko "$dir/updates"
	depmod -b "$2/root" "$release"
}
