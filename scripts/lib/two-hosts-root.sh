# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by check-two-hosts: a host whose root file system is a disk of the other one, which it
# connects in its initramfs. What is in single quotes is for the shell of a guest.
# shellcheck disable=SC2016,SC2034,SC2154

root_log=$out/client/kernel.root.log

# An initramfs as Documentation/kdapl-blk.rst has it, with the examples of kdapl-utils, of Debian's
# initramfs-tools. The host that makes it has this kernel, and an adapter of rdma_rxe, as the other
# one will. That of the other one has to be made first, which no real adapter needs.
root_initramfs()
{
	local from=$top/tools/examples/initramfs to=$out/target/initramfs

	fetch "$cache/initramfs-packages" initramfs-tools-core klibc-utils libklibc
	mkdir "$to"
	cp -r "$cache/initramfs-packages/packages" "$from"/{hooks,scripts} "$to"
	mkdir "$to/scripts/init-premount"
	cat >"$to/hooks/bed" <<-'HOOK'
		#!/bin/sh
		[ "${1-}" != prereqs ] || exit 0
		. /usr/share/initramfs-tools/hook-functions
		for module in virtio_pci virtio_net rdma_rxe; do
			force_load "$module"
		done
		# rxe asks for its checksums by name.
		manual_add_modules ext4 crc32_generic
		copy_exec "$(command -v rdma)" /bin
	HOOK
	cat >"$to/scripts/init-premount/bed" <<-'SCRIPT'
		#!/bin/sh
		[ "${1-}" != prereqs ] || exit 0
		until [ -e /sys/class/net/eth0 ]; do sleep 1; done
		rdma link add wire0 type rxe netdev eth0
	SCRIPT
	find "$to"/{hooks,scripts} -type f -exec chmod 755 {} +
	printf '%s\n' MODULES=list BUSYBOX=n COMPRESS=gzip >"$to/bed.conf"
	cp "$("$top/scripts/kernel/stock-kernel" "$CLIENT")/build/.config" "$to/config"
	on target 'tar -C $OUT/initramfs/packages -c . | tar -C / -x --keep-directory-symlink && cp -a $OUT/initramfs/hooks $OUT/initramfs/scripts /etc/initramfs-tools/ &&
		cp $OUT/initramfs/bed.conf /etc/initramfs-tools/conf.d/bed &&
		mkdir -p /boot && cp $OUT/initramfs/config /boot/config-$(uname -r) &&
		mkinitramfs -o /tmp/initrd $(uname -r) && cp /tmp/initrd $OUT/initrd'
}

# The root: a file system with one program, which is the first process. It says who it is, does
# what a host does with its root, and ends when it is told to.
root_export()
{
	local tree=$out/client/root

	mkdir -p "$tree"/{bin,sbin,dev,proc,sys,run,etc}
	cp /bin/busybox "$tree/bin/busybox"
	cp -r "$out/client/files" "$tree/etc/files"
	cp "$out/client/sums" "$tree/etc/sums"
	cat >"$tree/sbin/init" <<-'INIT'
		#!/bin/busybox sh
		/bin/busybox mount -o remount,rw /
		/bin/busybox --install -s /bin
		/bin/busybox mount -t devtmpfs devtmpfs /dev
		export PATH=/bin
		exec </dev/ttyS0 >/dev/ttyS0 2>&1
		[ -e /proc/mounts ] || mount -t proc proc /proc
		echo "root: $(sed -n 's|^\([^ ]*\) / \([^ ]*\) rw.*|\1 \2|p' /proc/mounts)"
		echo 3 >/proc/sys/vm/drop_caches
		(cd /etc/files && sha256sum -c -s /etc/sums) && echo "root: the sums agree"
		n=0 word=
		while [ "$word" != end ]; do
			n=$((n + 1))
			dd if=/dev/urandom of=/etc/new bs=64k count=4 conv=fsync 2>/dev/null &&
				mv /etc/new /etc/block && sync && echo "root: $n written" || echo "root: cannot write"
			word=
			read -r -t 1 word
		done
		sha256sum /etc/block >/etc/sum
		mount -o remount,ro / && echo "root: ended"
		poweroff -f
	INIT
	chmod 755 "$tree/sbin/init"
	mkfs.ext4 -q -d "$tree" "$out/target/root" 64M
	# Without udev, which moves its /dev there, an initramfs looks for this one.
	printf '%s\n' 'cd /dev' 'mknod console c 5 1' | debugfs -w -f - "$out/target/root"
	on target 'modprobe -a virtio_blk ext4 && mkdir -p /tmp/disk && mount -t ext4 /dev/vda /tmp/disk &&
		cp $OUT/root /tmp/disk/root && kdapl-blk export -i wire0/1 -s root -c node7 /tmp/disk/root'
}

# root_said WORDS: a condition: the host with the root has said so
root_said() { grep -q "root: $1" "$root_log"; }

# root_waits WORDS: wait until it does
root_waits()
{
	local until=$((SECONDS + 600))

	until root_said "$1"; do
		if [ $SECONDS -gt $until ] || ! kill -0 "$root_runner" 2>/dev/null; then
			echo "the host with the root did not say: $1"
			tail -n 30 "$root_log"
			return 1
		fi
		sleep 0.2
	done
	grep "root: $1" "$root_log" | sed 's/^.*root: /client: /' | head -n 1
}

# How many blocks it has written
root_written() { sed -n 's/^root: \([0-9]*\) written.*/\1/p' "$root_log" | tail -n 1; }

root_writes_on()
{
	local until=$((SECONDS + 300)) before

	before=$(root_written)
	until [ "$(root_written)" -gt $((before + 3)) ]; do
		[ $SECONDS -le $until ] || { tail -n 30 "$root_log"; return 1; }
		sleep 0.2
	done
	! root_said "cannot write"
}

# Start the host, whose first serial line is the console of both the kernel and the root.
root_start()
{
	local cards=()

	: >"$root_log"
	mapfile -t cards < <(card client client | grep -vx -- -q)
	emulate "$CLIENT"
	setpriv --pdeathsig KILL "${qemu[@]}" -accel "$("$top/scripts/run/vm-accel")" -smp 2 -m 1G \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$("$top/scripts/kernel/stock-kernel" "$CLIENT")/vmlinuz" -initrd "$out/target/initrd" \
		-append "console=$console panic=-1 mitigations=off net.ifnames=0 ip=10.10.0.2:::255.255.255.0:node7:eth0:off kdapl=wire0/1,10.10.0.1,root,node7 root=/dev/kdapl0 ro" \
		-chardev "socket,id=console,path=$wire/console,server=on,wait=off,logfile=$root_log" \
		-serial chardev:console -monitor "unix:$wire/client.monitor,server,nowait" \
		"${cards[@]}" </dev/null >/dev/null 2>&1 &
	root_runner=$!
	runner[client]=$root_runner
}

root_boots()
{
	root_waits '/dev/kdapl0 ext4'
	root_waits 'the sums agree'
	root_waits '5 written'
	# Nobody but node7 is let in.
	on target "grep -q '^connected  *[1-9]' $stats"
}

# Pull the cable until the connection is given up: its root has no other way back than to wait.
root_cable()
{
	monitor client 'set_link card off'
	within "$learns" target "grep -q '^connected  *0' $stats"
	monitor client 'set_link card on'
	root_writes_on
	within 60 target "$nothing_lost"
}

# It ends, and its root is as it has left it.
root_ends()
{
	local until=$((SECONDS + 300))

	# QEMU may drop what it has not read of a socket that is closed.
	python3 - "$wire/console" <<-'CONSOLE'
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		s.settimeout(300)
		s.sendall(b"end\n")
		said = b""
		while b"root: ended" not in said:
		    part = s.recv(4096)
		    if not part:
		        sys.exit("the console has gone")
		    said += part
	CONSOLE
	while kill -0 "$root_runner" 2>/dev/null; do
		[ $SECONDS -le $until ] || { echo "it does not power off"; return 1; }
		sleep 0.2
	done
	on target 'kdapl-blk unexport root && modprobe loop && mkdir -p /tmp/mnt && e2fsck -fn /tmp/disk/root &&
		mount -o ro,loop /tmp/disk/root /tmp/mnt && sha256sum /tmp/mnt/etc/block | cut -c1-64 &&
		grep -q "^$(sha256sum </tmp/mnt/etc/block | cut -c1-64) " /tmp/mnt/etc/sum'
}

with_root()
{
	try "root: an initramfs with the examples" root_initramfs
	try "root: a volume with a root file system" root_export
	# Without these nothing boots.
	[ -s "$out/target/initrd" ] && [ -s "$out/target/root" ] || return 0
	root_start
	try "root: a host boots from it" root_boots
	try "root: cable pulled, and put back" root_cable
	try "root: it ends" root_ends
	kill -KILL "$root_runner" 2>/dev/null || :
	runner[client]=''
}
