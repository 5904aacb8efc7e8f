# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# common.sh sets cache and top.
# shellcheck disable=SC2154
#
# Sourced by check-iser and others after common.sh: Debian's open-iscsi, libiscsi and targetcli
# for guests, unpacked and not installed.

# fetch PLACE PACKAGE...: unpack packages of Debian to PLACE/packages, unless they are there
fetch()
{
	local place=$1 d

	shift
	[ ! -e "$place/.complete" ] || return 0
	# The lock is held until the script ends, which may be here for a second kernel.
	lock "$place.lock" "it fetches $1"
	[ ! -e "$place/.complete" ] || return 0
	say "fetching $1"
	rm -rf "$place"
	mkdir -p "$place/debs"
	(
		cd "$place/debs"
		from_mirror apt-get -o APT::Sandbox::User=root -qq download "$@"
	) || return
	for d in "$place"/debs/*.deb; do
		dpkg-deb -x "$d" "$place/packages"
	done
	rm -r "$place/debs"
	touch "$place/.complete"
}

# fetch_archived PLACE ARCHITECTURE SUITE PACKAGE...: the same from another suite of Debian, or for
# another processor. Its lock ends with the subshell: a script that could not fetch comes here
# again.
fetch_archived()
(
	place=$1
	[ ! -e "$place/.complete" ] || return 0
	lock "$place.lock" "it fetches $4"
	[ ! -e "$place/.complete" ] || return 0
	archive_for "$2" "$3"
	say "fetching $4 of $3 for $2"
	rm -rf "$place"
	unpack_from_archive "$place/packages" "${@:4}" && touch "$place/.complete"
)

# with_iser_tools DIR [KERNEL]: put into DIR what a guest, of this kernel if it is for another
# processor, needs to be an initiator
with_iser_tools()
{
	local tools=$cache/iser-packages

	if is_foreign "${2-}"; then
		tools+=-${2#*-}
		# The root of its guests has all other libraries.
		describe_foreign "$2"
		fetch_archived "$tools" "$debian" bookworm open-iscsi libopeniscsiusr libisns0 \
			libssl3 || return
	elif [ ! -e "$tools/.complete" ]; then
		fetch "$tools" open-iscsi libopeniscsiusr libisns0 \
			libiscsi-bin libiscsi7 libcunit1 sg3-utils "$(apt-cache depends sg3-utils |
			sed -n 's/^ *Depends: \(libsgutils2.*\)/\1/p')" || return
	fi
	mkdir -p "$1"
	rm -rf "$1/packages"
	cp -al "$tools/packages" "$1/packages" 2>/dev/null ||
		cp -r "$tools/packages" "$1/packages"
	cp "$top"/scripts/guest/{guest,cases,iser,iser-slow,iser-libiscsi}.sh "$1"
}

# with_packages DIR NAME PACKAGE...: put more of Debian there, which is kept under this name
with_packages()
{
	local tools=$cache/$2-packages

	fetch "$tools" "${@:3}" || return
	cp -al "$tools/packages/." "$1/packages" 2>/dev/null ||
		cp -a --remove-destination "$tools/packages/." "$1/packages"
}

# with_verbs DIR: put there, too, what programs need to use RDMA in software
with_verbs() { with_packages "$1" verbs ibverbs-providers; }

# with_newer_libiscsi DIR: put into DIR/newer libiscsi 1.20 of Debian 13, with the C library that
# it needs; without them its case is skipped
with_newer_libiscsi()
{
	local tools=$cache/libiscsi-1.20

	fetch_archived "$tools" amd64 trixie libiscsi-bin libiscsi7 libcunit1 libc6 \
		librdmacm1t64 libibverbs1 ibverbs-providers libnl-3-200 libnl-route-3-200 ||
		say "libiscsi 1.20 cannot be fetched"
	rm -rf "$1/newer"
	[ ! -e "$tools/.complete" ] || cp -al "$tools/packages" "$1/newer" 2>/dev/null ||
		cp -r "$tools/packages" "$1/newer"
}

# with_targetcli DIR: put targetcli there, too, after with_iser_tools
with_targetcli()
{
	with_packages "$1" targetcli targetcli-fb python3-rtslib-fb python3-configshell-fb \
		python3-pyudev python3-urwid python3-six python3-pyparsing python3-gi \
		gir1.2-glib-2.0 libgirepository-1.0-1
}

# for_uml KERNEL DIR: put into DIR what else a guest of User Mode Linux needs: in DIR/root
# the modules of its kernel and ours, for modprobe -d; $uml_tests is what to build of the tests
for_uml()
{
	local kernel build theirs release dir

	kernel=$("$top/scripts/kernel/uml-kernel" "$1") &&
		build=$("$top/scripts/kernel/build-modules" -t "${uml_tests-crowd}" "$1") &&
		theirs=$("$top/scripts/kernel/uml-modules" "$1") || return
	release=$(cat "$kernel/include/config/kernel.release")
	dir=$2/root/lib/modules/$release
	rm -rf "$2/root"
	mkdir -p "$dir/updates"
	cp "$kernel"/modules.{builtin,builtin.modinfo,order} "$dir"
	cp "$build"/drivers/*/*.ko "$build"/kunit/crowd/*.ko "$theirs"/*.ko "$dir/updates"
	depmod -b "$2/root" "$release"
}
