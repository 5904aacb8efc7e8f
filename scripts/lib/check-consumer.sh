# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
# $root, $out and inside() are check-package's.
# shellcheck disable=SC2154
#
# check-package: what an author of a consumer does with the packages.

# build_consumer RELEASE: build the example with the Makefile that the guide shows.
build_consumer()
{
	local doc=$root/usr/share/doc/kdapl-dev m

	rm -rf "$root/tmp/example"
	cp -r "$doc/examples" "$root/tmp/example"
	zcat -f "$doc"/consumer-guide.rst* |
		sed -n '/^\.\. code-block:: make$/,/^[^ ]/s/^   //p' \
			>"$root/tmp/example/Makefile"
	diff -B "$root/tmp/example/Makefile" <(sed 1d "$doc/examples/Makefile")
	inside make -C /tmp/example KDIR="/lib/modules/$1/build" W=1 modules
	inside make -C /tmp/example/skeleton KDIR="/lib/modules/$1/build" W=1
	for m in kdapl_echo kdapl_hello kdapl_marks kdapl_store skeleton/kdapl_skeleton; do
		inside modinfo -F depends "/tmp/example/$m.ko" | grep -x kdapl
	done
	[ "$(grep -ciE 'warning|error' "$out/consumer_$1.log")" -eq 0 ]
}

# skeleton_by_dkms RELEASE: what the skeleton's dkms.conf says
skeleton_by_dkms()
{
	inside sh -c "cd /tmp/example/skeleton && dkms add . &&
		dkms install kdapl-skeleton/0.1 -k $1"
	inside modinfo -k "$1" -F depends kdapl_skeleton | grep -x kdapl
	inside dkms remove kdapl-skeleton/0.1 --all
	rm -r "$root/usr/src/kdapl-skeleton-0.1"
}

refuse_consumer()
{
	local rc=0

	inside make -C /tmp/example KDIR="/lib/modules/$1/build" modules \
		>"$out/refused" 2>&1 || rc=$?
	[ "$rc" -ne 0 ]
	grep "kDAPL is not installed for kernel $1" "$out/refused"
}

# must_check RELEASE: the compiler names each call that gives memory back or moves data, and whose
# return is ignored
must_check()
{
	local dir=$root/tmp/example/ignores call

	mkdir "$dir"
	cp "$root/tmp/example/skeleton"/{Makefile,Kbuild} "$dir"
	sed -i 's/kdapl_skeleton/ignores/' "$dir/Kbuild"
	cat >"$dir/ignores.c" <<-'END'
		#include <linux/module.h>
		#include <dat/kdat.h>
		#include <dat/kdat_linux.h>
		MODULE_LICENSE("Dual BSD/GPL");
		void ignores(void);
		void ignores(void)
		{
			DAT_DTO_COOKIE cookie = {};

			dat_lmr_free(NULL);
			dat_rmr_free(NULL);
			dat_srq_free(NULL);
			dat_ia_close(NULL, DAT_CLOSE_ABRUPT_FLAG);
			kdat_sg_unmap(NULL);
			dat_evd_post_se(NULL, NULL);
			dat_ep_post_recv(NULL, 0, NULL, cookie, 0);
			dat_srq_post_recv(NULL, 0, NULL, cookie);
		}
	END
	inside make -C /tmp/example/ignores KDIR="/lib/modules/$1/build" >"$out/ignores" 2>&1
	cat "$out/ignores"
	sed -n 's/^\([a-z_]*\)(NULL.*);$/\1/p' "$dir/ignores.c" >"$out/ignored"
	while read -r call; do
		grep "ignoring return value of .$call" "$out/ignores"
	done <"$out/ignored"
	[ "$(grep -c 'ignoring return value' "$out/ignores")" -eq 8 ]
}
