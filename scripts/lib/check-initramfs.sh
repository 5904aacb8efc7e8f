# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2154
#
# check-package: the examples of kdapl-utils for a root file system on a disk of kdapl_blk, used as
# Documentation/kdapl-blk.rst says, with Debian's initramfs-tools.
: "${top:=}" "${cache:=}" "${out:=}" "${root:=}"
# shellcheck source=scripts/lib/iser.sh
. "$top/scripts/lib/iser.sh"

# with_initramfs_tools DIR RELEASE: put them into the copy of the system, and the modules and the
# configuration of the kernel in DIR
with_initramfs_tools()
{
	local tools=$cache/initramfs-packages modules=lib/modules/$2/kernel

	fetch "$tools" initramfs-tools-core klibc-utils libklibc
	tar -C "$tools/packages" -c . | tar -C "$root" -x --keep-directory-symlink
	mkdir "$root/$modules"
	mount --bind "$1/$modules" "$root/$modules"
	inside depmod "$2"
	cp "$1/build/.config" "$root/boot/config-$2"
}

# without_initramfs_tools RELEASE: take the kernel's modules away again
without_initramfs_tools()
{
	local modules=$root/lib/modules/$1/kernel

	umount "$modules"
	rmdir "$modules"
	inside depmod "$1"
}

# make_initramfs RELEASE: install the examples, and make and unpack an initramfs of a machine that
# has an adapter of rdma_rxe. Nothing else asks for modules; initramfs-tools only recommends busybox,
# so it is left out.
make_initramfs()
{
	local from=$root/usr/share/doc/kdapl-utils/examples/initramfs
	local conf=$root/etc/initramfs-tools f

	while IFS= read -r f; do
		install -v -D -m 755 "$from/$f" "$conf/$f"
	done < <(cd "$from" && find . -type f)
	printf '%s\n' MODULES=list BUSYBOX=n COMPRESS=gzip >"$conf/conf.d/check"
	mkdir -p "$root/sys/module/ib_uverbs/holders/rdma_rxe"
	inside mkinitramfs -o /tmp/initrd "$1"
	rm -r "$root/sys/module"
	inside unmkinitramfs /tmp/initrd /tmp/initramfs
}

# initramfs_loads RELEASE: it has kdapl_blk, a driver of an adapter, and all that these depend on
initramfs_loads()
{
	local m

	for m in kdapl_blk rdma_rxe; do
		inside modprobe -d /tmp/initramfs -S "$1" --show-depends "$m"
	done >"$out/initramfs_loads"
	cat "$out/initramfs_loads"
	for m in kdapl_blk kdapl rdma_cm ib_core configfs rdma_rxe; do
		grep "^insmod /tmp/initramfs/.*/$m\.ko" "$out/initramfs_loads"
	done
	sed -n 's/^insmod \([^ ]*\).*/\1/p' "$out/initramfs_loads" | inside xargs ls -l
}

# at_boot WORD...: run what the initramfs runs there, with its programs and files in place of the
# kernel's, as if the network of eth0 was configured; these words are the kernel's command line
at_boot()
{
	local tree=$root/tmp/initramfs

	echo "$*" >"$tree/proc/cmdline"
	env -i PATH=/sbin:/bin quiet=y DEVICE=eth0 chroot "$tree" /bin/sh -c '. /scripts/local-top/ORDER; :'
}

# initramfs_connects: it connects the disk that the kernel's command line names, and nothing
# otherwise
initramfs_connects()
{
	local tree=$root/tmp/initramfs config=/sys/kernel/config/kdapl_blk disk

	disk=$tree$config/root
	grep '^/scripts/local-top/kdapl ' "$tree/scripts/local-top/ORDER"
	mkdir "$tree/proc" "$tree/dev"
	touch "$tree/dev/null" "$tree/run/net-eth0.conf"
	rm "$tree/sbin/modprobe"
	# shellcheck disable=SC2016	# for that shell
	printf '%s\n' '#!/bin/sh' '[ "$*" = kdapl_blk ] && mkdir -p '$config \
		>"$tree/sbin/modprobe"
	chmod +x "$tree/sbin/modprobe"
	at_boot ro root=/dev/sda1 quiet nokdapl=1
	absent "/tmp/initramfs/sys"
	mkdir -p "$tree/sys/kernel"
	at_boot ro kdapl=mlx5_0/1,192.0.2.1,backup root=/dev/kdapl0 quiet
	head "$disk"/*
	[ "$(cat "$disk"/{ia,address,subsystem,connected} | xargs)" = \
		'mlx5_0/1 192.0.2.1 backup 1' ]
	absent "${disk#"$root"}/client"
	rm -r "$disk"
	at_boot ro kdapl=mlx5_0/1,192.0.2.1,backup,node7 root=/dev/kdapl0
	[ "$(cat "$disk"/{subsystem,client,connected} | xargs)" = 'backup node7 1' ]
}

# initramfs_of DIR RELEASE: all of it
initramfs_of()
{
	try initramfs_tools with_initramfs_tools "$@"
	try initramfs_made make_initramfs "$2"
	try initramfs_loads initramfs_loads "$2"
	try initramfs_connects initramfs_connects
	without_initramfs_tools "$2"
}
