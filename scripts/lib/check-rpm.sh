# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# check-package: the RPMs, of the archive in $out.
: "${top:=}" "${out:=}" "${version:=}" "${root:=}"

# rpm_packages: build RPMs from the archive, without what only RPM systems have
rpm_packages()
{
	local page

	page=$("$top/scripts/kernel/uml-kernel" source)/scripts/kernel-doc
	rpmbuild -ta --nodeps --load "$top/scripts/lib/rpm-macros" \
		--define "_topdir $out/rpm" --define "kernel_doc $page" \
		"$out/kdapl-$version.tar.xz"
	rpm -qlp "$out"/rpm/RPMS/noarch/kdapl-dkms-*.rpm |
		grep -x "/usr/src/kdapl-$version/dkms.conf"
	rpm -qlp "$out"/rpm/RPMS/noarch/kdapl-devel-*.rpm |
		grep -x /usr/include/kdapl/dat/kdat.h
	rpm -qlp "$out"/rpm/RPMS/noarch/kdapl-utils-*.rpm >"$out/utils"
	grep -x /usr/sbin/kdapl-blk "$out/utils"
	grep -x /usr/sbin/kdapl-stat "$out/utils"
	grep -x /usr/sbin/kdapl-test "$out/utils"
	grep -x /usr/share/kdapl-utils/stat.awk "$out/utils"
	grep -x /usr/share/kdapl-utils/common.sh "$out/utils"
	grep -x /usr/share/man/man8/kdapl-modules.8 "$out/utils"
	grep -x /usr/lib/systemd/system-preset/80-kdapl.preset "$out/utils"
	rpm_pages
	rpm -qlp "$out"/rpm/RPMS/noarch/kdapl-isert-*.rpm >"$out/isert"
	grep -x /usr/lib/modprobe.d/kdapl-isert.conf "$out/isert"
	grep -x /usr/share/man/man8/kdapl_isert.8 "$out/isert"
	rpm -qlp "$out"/rpm/RPMS/noarch/kdapl-svcrdma-*.rpm >"$out/svcrdma"
	grep -x /usr/lib/modprobe.d/kdapl-svcrdma.conf "$out/svcrdma"
	grep -x /usr/share/man/man8/kdapl_svcrdma.8 "$out/svcrdma"
	[ "$(grep -c svcrdma "$out/isert")" -eq 0 ]
	[ "$(rpm -qp --changelog "$out"/rpm/RPMS/noarch/kdapl-utils-*.rpm |
		grep -c -- "- $version-1")" -eq 1 ]
	rpm_scriptlets
}

# rpm_pages: each page is in one of the packages, those for administrators not in kdapl-devel
rpm_pages()
{
	local page

	rpm -qlp "$out"/rpm/RPMS/noarch/*.rpm | sed -n 's|.*/doc/.*/\([^/]*\.rst\)$|\1|p' |
		sort >"$out/pages"
	for page in "$top"/Documentation/*.rst; do
		[ "$(grep -cx "${page##*/}" "$out/pages")" -eq 1 ] ||
			{ echo "${page##*/} is not in one package"; return 1; }
	done
	for page in abi kdapl-blk kdapl-stat kdapl-test tracing troubleshooting; do
		grep "/doc/.*/$page.rst\$" "$out/utils"
	done
	for page in dkms utils isert svcrdma; do
		rpm -qlp "$out/rpm/RPMS/noarch/kdapl-$page"-*.rpm | grep '/doc/.*/SECURITY.rst$'
	done
}

# rpm_scriptlets: what the RPM of the tools does with its units: enables them when it is
# installed, and takes them away when it is removed, but not when it is upgraded
rpm_scriptlets()
{
	local rpm=("$out"/rpm/RPMS/noarch/kdapl-utils-*.rpm) units state
	local log=$out/systemctl.log dir=$out/fake

	units='kdapl-blk.service kdapl-blk-shutdown.service kdapl-blk-target.service'
	mkdir "$dir"
	printf '#!/bin/sh\necho "$*" >>%s\n' "$log" >"$dir/systemctl"
	chmod +x "$dir/systemctl"
	for state in 'POSTIN 1' 'PREUN 1' 'PREUN 0' 'POSTUN 0'; do
		rpm -qp --qf "%{${state% *}}" "${rpm[0]}" >"$dir/script"
		PATH=$dir:$PATH sh "$dir/script" "${state#* }"
	done
	cat "$log"
	diff "$log" <(printf '%s\n' "--no-reload preset $units" \
		"--no-reload disable --now $units" daemon-reload)
}

# rpm_used RELEASE: the RPMs are installed and used as far as a Debian system can have them, and
# removed again
rpm_used()
{
	local use="rpm --dbpath /tmp/rpmdb" names

	mkdir "$root/tmp/rpms"
	cp "$out"/rpm/RPMS/noarch/*.rpm "$root/tmp/rpms"
	inside sh -c "$use -iv --nodeps /tmp/rpms/*.rpm"
	inside kdapl-blk --version | grep "^kdapl-blk $version"
	inside dkms install -m kdapl -v "$version" -k "$1"
	installed_for "$version" "$1"
	loads "$1" ib_isert kdapl_isert ib_isert
	mapfile -t names < <(inside sh -c "$use -qa")
	[ ${#names[@]} -eq 5 ]
	inside sh -c "$use -ev --nodeps ${names[*]}"
	not_installed_for "$1"
	absent "/usr/src/kdapl-$version" /usr/sbin/kdapl-blk /usr/lib/modprobe.d/kdapl-isert.conf \
		/usr/include/kdapl
	loads "$1" ib_isert ib_isert
}

# rpmlint_clean: rpmlint finds nothing in the RPMs but what rpm/kdapl.rpmlintrc explains
rpmlint_clean()
{
	rpmlint --rpmlintrc "$top/rpm/kdapl.rpmlintrc" "$out"/rpm/RPMS/noarch/*.rpm \
		"$out"/rpm/SRPMS/*.rpm >"$out/rpmlint"
	cat "$out/rpmlint"
	grep ' 0 errors, 0 warnings,' "$out/rpmlint"
}
