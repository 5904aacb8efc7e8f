# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by what takes kernels from suites of Debian's archive that this machine is
# not made of: newer kernels than its own, and those for other processors. The archive is the
# one this machine's apt has, the suites have lists of their own, and packages are only
# unpacked.

: "${self:=}" "${cache:=}" "${UNREACHABLE:=}"

# The suites; of a package that several have, apt's rules decide, as for a machine.
read -ra newer_suites <<<"${DEBIAN_SUITES:-sid trixie-backports}"

archive=$cache/archive
archive_options=()
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# archive_for ARCHITECTURE SUITE: from now on use this suite, for this architecture
archive_for()
{
	archive=$cache/archive-$1-$2
	newer_suites=("$2")
	archive_options=(-o "APT::Architecture=$1" -o "APT::Architectures::=$1")
}

# in_archive COMMAND ARGUMENT...: run a command of apt on the lists of these suites
in_archive()
{
	"$1" -o Dir::Etc::sourcelist="$archive/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
		-o Dir::State::lists="$archive/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$archive/cache" -o Dir::Cache::pkgcache=pkgcache.bin \
		-o Dir::Cache::srcpkgcache=srcpkgcache.bin \
		-o Acquire::Languages=none -o APT::Sandbox::User=root \
		"${archive_options[@]}" "${@:2}"
}

# Print the address of Debian's archive, as this machine's apt has it.
archive_address()
{
	local address

	# shellcheck disable=SC2016
	address=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian //p' | head -n 1)
	[ -n "$address" ] && echo "$address"
}

# update_archive: fetch the lists of the suites
update_archive()
{
	local said suite

	from_mirror archive_address || return
	mkdir -p "$archive"/{lists,cache/archives}/partial
	for suite in "${newer_suites[@]}"; do
		echo "deb [signed-by=$keyring] $(archive_address) $suite main"
	done >"$archive/sources.list"
	said=$(LC_ALL=C in_archive apt-get -qq update 2>&1) || :
	[ -z "$said" ] || echo "$said" >&2
	[[ $said != *'Failed to fetch'* ]] || return "$UNREACHABLE"
	echo "${newer_suites[*]}" >"$archive/suites"
}

# from_archive COMMAND...: run it; if it fails, or the lists are those of other suites,
# update the lists and run it again
from_archive()
{
	if [ "$(cat "$archive/suites" 2>/dev/null)" = "${newer_suites[*]}" ] &&
			"$@" >/dev/null 2>&1; then
		return
	fi
	update_archive || return
	"$@" >/dev/null
}

# Print the series, such as 7.3, whose source the suites have, oldest first.
archive_series()
{
	in_archive apt-cache pkgnames linux-source- |
		sed -n 's/^linux-source-\([0-9]*\.[0-9]*\)$/\1/p' | sort -V | grep .
}

# is_series WORD: succeeds if this is the name of a series of kernels
is_series()
{
	[[ $1 =~ ^[0-9]+\.[0-9]+$ ]]
}

# archive_has SERIES: succeeds if the suites have the source of that kernel
archive_has()
{
	archive_series | grep -qx "$1"
}

# this_or_newer SERIES: print it, or the newest that there is if the suites have a newer one
# in its place
this_or_newer()
{
	local newest

	if ! from_archive archive_has "$1" &&
			newest=$(archive_series | tail -n 1) && [ -n "$newest" ] &&
			[ "$(printf '%s\n' "$1" "$newest" | sort -V | tail -n 1)" != "$1" ]; then
		echo "$newest"
	else
		echo "$1"
	fi
}

# need_series SERIES: end the script unless the suites have that kernel
need_series()
{
	local rc=0 all

	from_archive archive_has "$1" || rc=$?
	[ "$rc" -ne 0 ] || return 0
	mapfile -t all < <(archive_series)
	echo "$self: there is no kernel $1 in ${newer_suites[*]} of Debian;" \
		"there is ${all[*]:-none}" >&2
	[ "$rc" -eq "$UNREACHABLE" ] || rc=2
	exit "$rc"
}

# archive_version PACKAGE
archive_version()
{
	in_archive apt-cache show --no-all-versions "$1" | sed -n 's/^Version: //p'
}

# archive_headers SERIES [FLAVOUR]: the packages of headers of the kernels of that series, the
# newest first
archive_headers()
{
	in_archive apt-cache pkgnames "linux-headers-$1." |
		grep -E "^linux-headers-[0-9.]+\+deb[0-9]+-${2-amd64}\$" | sort -rV | grep .
}

# headers_to_be_had SERIES FLAVOUR: the newest of these that can be fetched: lists name packages
# for a processor before these are built
headers_to_be_had()
{
	local headers dir

	dir=$(mktemp -d "$archive/debs.XXXXXX")
	for headers in $(archive_headers "$@"); do
		download_from_archive "$dir" "$headers" 2>/dev/null || continue
		rm -r "$dir"
		echo "$headers"
		return
	done
	rm -r "$dir"
	return 1
}

# download_from_archive DIR PACKAGE...: download packages into DIR
download_from_archive()
{
	mkdir -p "$1" || return
	(cd "$1" && from_archive in_archive apt-get -qq download "${@:2}") || return "$UNREACHABLE"
}

# download_with_dependencies DIR PACKAGE...: the same with all that they depend on
download_with_dependencies()
{
	mkdir -p "$1/partial" || return
	from_archive in_archive apt-get -qq -o Dir::Cache::archives="$1" install \
		--download-only --yes --no-install-recommends "${@:2}" || return "$UNREACHABLE"
}

# unpack_from_archive DIR PACKAGE...: download packages and unpack them into DIR
unpack_from_archive()
{
	local dir=$1 debs deb rc=0

	mkdir -p "$dir" "$archive" || return
	debs=$(mktemp -d "$archive/debs.XXXXXX")
	download_from_archive "$debs" "${@:2}" || {
		rm -rf "$debs"
		return "$UNREACHABLE"
	}
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$dir" || rc=$?
	done
	rm -rf "$debs"
	return "$rc"
}
