# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# check-package: kdapl-isert and kdapl-svcrdma, which have our modules serve in the place of the
# kernel's own, and kernels that have no use for these. $release and $modules are check-package's.
: "${top:=}" "${out:=}" "${version:=}" "${root:=}" "${no_rdma:=}"

# loads RELEASE MODULE NAME...: succeeds if these are the iSER targets, or transports of NFS,
# that are loaded, in this order, when LIO asks for ib_isert, or nfsd or a client for rpcrdma
loads()
{
	inside modprobe -S "$1" --show-depends "$2" >"$out/loads"
	cat "$out/loads"
	shift 2
	[ "$(sed -n 's/^insmod .*\/\(\(ib\|kdapl\)_isert\|kdapl_svcrdma\|rpcrdma\)\.ko.*/\1/p' \
		"$out/loads" | xargs)" = "$*" ]
}

# on_request PACKAGE OURS THEIRS: the administrator can have theirs although ours is installed
on_request()
{
	touch "$root/etc/modprobe.d/$1.conf"
	loads "${release[6.12]}" "$3" "$3"
	rm "$root/etc/modprobe.d/$1.conf"
	loads "${release[6.12]}" "$3" "$2" "$3"
}

# without OPTION MODULE: DKMS does not expect the module for a kernel without that option
without()
{
	local dir=$root/tmp/without

	mkdir -p "$dir"
	sed "s/^CONFIG_$1=.*//" "$root/lib/modules/$no_rdma/build/.config" >"$dir/.config"
	modules_in_conf "$dir" >"$out/without"
	cat "$out/without"
	diff "$out/without" <(printf '%s\n' "${modules[@]}" | sort | grep -vx "$2")
	diff <(modules_in_conf "$root/lib/modules/$no_rdma/build") \
		<(printf '%s\n' "${modules[@]}" | sort)
	rm -r "$dir"
}

# other_sunrpc RELEASE: where transports of sunrpc are not as the probe wants them, the module
# is there for DKMS all the same, and is one that says so
other_sunrpc()
{
	local dir=$root/tmp/other-sunrpc

	rm -rf "$dir"
	cp -r "$root/usr/src/kdapl-$version" "$dir"
	echo '#error none' >"$dir/tools/probes/svc_xprt_ops.c"
	sed -i '/^obj-y .*drivers/d; /ISCSI_TARGET/d' "$dir/Kbuild"
	inside make -C /tmp/other-sunrpc KDIR="/lib/modules/$1/build" modules
	inside modinfo /tmp/other-sunrpc/drivers/kdapl_svcrdma/kdapl_svcrdma.ko >"$out/other_sunrpc"
	cat "$out/other_sunrpc"
	grep "^description: .*, not for this kernel's sunrpc$" "$out/other_sunrpc"
	grep "^version: *$version$" "$out/other_sunrpc"
}

# vendor_by_dkms RELEASE: with the line of troubleshooting.rst, DKMS builds kdapl.ko with the
# versions of the vendor's symbols
vendor_by_dkms()
{
	local conf=$root/etc/dkms/kdapl.conf tree=/tmp/vendor-dkms built

	sed -n 's|^    \(MAKE\[0\]+=" KBUILD_EXTRA_SYMBOLS=\)/.*"$|\1/tmp/vendor.symvers"|p' \
		"$top/Documentation/troubleshooting.rst" >"$conf"
	cat "$conf"
	mkdir "$root$tree"
	# In a tree of its own: what is installed stays.
	inside dkms add --dkmstree "$tree" -m kdapl -v "$version"
	inside dkms build --dkmstree "$tree" -m kdapl -v "$version" -k "$1"
	built=$(find "$root$tree/kdapl/$version/$1" -name 'kdapl.ko*')
	inside modprobe --dump-modversions "${built#"$root"}" >"$out/vendor_versions"
	awk 'NR == FNR { vendor[$2] = $1; next }
		$2 in vendor { n++; if (vendor[$2] != $1) { print "not the vendor'"'"'s:", $2; other = 1 } }
		END { print n + 0, "symbols of the vendor"; exit other || n < 10 }' \
		"$root/tmp/vendor.symvers" "$out/vendor_versions"
	rm -r "$conf" "${root:?}$tree"
}

# vendor_stack RELEASE: rdma_cm of another build is in place of the kernel's, as with the packages
# of an adapter's vendor: who builds is told, unless the versions of that build are given
vendor_stack()
{
	local tool=/usr/src/kdapl-$version/tools/for-kernel dir=/lib/modules/$1
	local other vendor=$root/lib/modules/$1/vendor

	other=$("$top/scripts/kernel/stock-kernel" 6.1)
	[ -z "$(inside "$tool" "$dir/build" true 2>&1)" ]
	mkdir "$vendor"
	find "$other/lib/modules" -name 'rdma_cm.ko*' -exec cp -t "$vendor" {} +
	inside depmod "$1"
	inside "$tool" "$dir/build" true >"$out/vendor" 2>&1
	cat "$out/vendor"
	grep "ib_core and rdma_cm of kernel $1 are not the kernel's own" "$out/vendor"
	# As a vendor's file: the symbols of its own modules, and no others. A build outside of the
	# kernel's tree writes whole paths, and an older modpost takes modules of one path for one.
	sed -nE 's|([[:space:]])(drivers/infiniband/core/(ib_core\|rdma_cm)[[:space:]])|\1/usr/src/vendor/\2|p' \
		"$other/build/Module.symvers" >"$root/tmp/vendor.symvers"
	[ -s "$root/tmp/vendor.symvers" ]
	[ -z "$(inside env KBUILD_EXTRA_SYMBOLS=/tmp/vendor.symvers "$tool" "$dir/build" true \
		2>&1)" ]
	vendor_by_dkms "$1"
	rm -r "$vendor" "$root/tmp/vendor.symvers"
	inside depmod "$1"
}

# modules_in_conf DIRECTORY: the modules that dkms.conf names for the kernel built there
modules_in_conf()
{
	kernel_source_dir=$1 bash -c '
		. "$0"
		printf "%s\n" "${BUILT_MODULE_NAME[@]}"
	' "$top/dkms.conf" | sort
}

# install_target VERSION NAME: install the package that has kdapl_isert or kdapl_svcrdma serve
install_target()
{
	inside dpkg -i "/tmp/kdapl-$2_$1_all.deb"
	inside dpkg -L "kdapl-$2" | grep "/man8/kdapl_$2.8.gz$"
	inside dpkg -L "kdapl-$2" | grep "/kdapl-$2.rst"
}

# remove_target NAME: the kernel's own serves again
remove_target()
{
	inside dpkg --remove "kdapl-$1"
	absent "/lib/modprobe.d/kdapl-$1.conf"
}
