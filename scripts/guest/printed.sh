# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2086,SC2153,SC2154
#
# Sourced by guest/check-boot and guest/check-nfs: the commands of a page of the documentation,
# which is in $OUT/pages, are run as they are printed there, block by block, in one shell that
# ends with the first error. scripts/lib/printed.py says which lines are commands.

# ---- What a guest has not ------------------------------------------------------------------

systemctl()
{
	case $* in
	"restart iscsid")
		iscsiadm -k 0
		wait_for 10 has_ended "$iscsid"
		setsid iscsid -f >/run/iscsid.log 2>&1 &
		wait_for 10 eval 'iscsiadm -m session 2>&1 | grep -q "No active"'
		;;
	"start nfs-server") exportfs -r && rpc.nfsd 8 ;;
	*)
		echo "systemctl $*"
		return 1
		;;
	esac
}

has_ended() { ! kill -0 "$1" 2>/dev/null; }

# It looks for helpers in /sbin only.
mount()
{
	case $2 in
	rdma,*) mount.nfs "$3" "$4" -o "$2" ;;
	*) command mount "$@" ;;
	esac
}

# There is no udev to wait for.
dmsetup() { command dmsetup --noudevsync "$@"; }

# Who types that has a network and a compiler: check-package builds the same.
apt-get() { :; }
git() { mkdir -p kdapl/Documentation/example; }
make()
{
	[ "$PWD" != ~/first ] || cp "$OUT"/examples/*.ko .
}

# It follows what comes until Ctrl-C.
cat()
{
	[ "$*" != trace_pipe ] || set -- trace
	command cat "$@"
}

# Where these cannot parse the format of an event they say so, and go on without it.
trace-cmd() { parses trace-cmd "$@"; }
perf() { parses perf "$@"; }
parses()
{
	local status=0

	command "$@" >/run/parsed 2>&1 || status=$?
	command cat /run/parsed
	! grep -E 'libtraceevent:|FAILED TO PARSE|expected type' /run/parsed || status=1
	return $status
}

# The server runs in another window, and the suites are built by check-package.
kdapl-test()
{
	case $1 in
	suites) return ;;
	server)
		command kdapl-test "$@" >/run/server 2>&1 &
		echo $! >/run/server.pid
		wait_for 20 grep -q ^serving /run/server
		;;
	*) command kdapl-test "$@" </dev/null ;;
	esac
}

# A module is in use while an upcall of it is running.
rmmod() { wait_for 20 command rmmod "$@"; }

# targetcli asks the bus of the system for further backends.
bus_up()
{
	export DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket
	mkdir -p /run/dbus
	[ -S /run/dbus/system_bus_socket ] || ! command -v dbus-daemon >/dev/null ||
		dbus-daemon --session --fork --address="$DBUS_SYSTEM_BUS_ADDRESS"
}

# As udev does
link_by_path()
{
	local d link=ip-$first:3260-iscsi-iqn.2026-01.com.example:disk-lun-0

	mkdir -p /dev/disk/by-path
	while :; do
		for d in /sys/class/iscsi_session/session*/device/target*/*:0/block/*; do
			[ ! -e "$d" ] || ln -sf "/dev/${d##*/}" "/dev/disk/by-path/$link"
		done
		sleep 0.1
	done
}

until_is_there() { wait_for 20 test -b "$1"; }

# ---- What a page says in words, or has left behind -----------------------------------------

# before BLOCK: what is so when BLOCK is typed
before()
{
	case $page in
	kdapl-isert.rst) before_isert "$1" ;;
	kdapl-svcrdma.rst) before_svcrdma "$1" ;;
	kdapl-blk.rst) before_blk "$1" ;;
	kdapl-stat.rst) before_stat "$1" ;;
	kdapl-test.rst) before_test "$1" ;;
	tutorial.rst | consumer-guide.rst | tracing.rst) before_echo "$1" ;;
	esac
}

before_isert()
{
	case $1 in
	'targetcli $tpg/portals delete'*)
		umount /run/mounted && iscsiadm -m node -u >/dev/null ;;
	*'unshare -n mkdir'*)
		targetcli "$tpg/portals" delete "$first" 3260 >/dev/null ;;
	*'backstores/fileio/disk'*)
		targetcli /backstores/fileio create disk /run/optimal 16M >/dev/null ;;
	esac
}

before_svcrdma()
{
	case $1 in
	'modprobe kdapl_svcrdma'*)
		command mount -t tmpfs tmpfs /run/exp
		echo 10 >/proc/fs/nfsd/nfsv4gracetime
		: >/etc/exports
		;;
	*max_block_size*)
		command umount /run/mounted
		echo 0 >/proc/fs/nfsd/threads
		;;
	'kdapl-stat targets'*)
		systemctl start nfs-server
		echo 'kdapl 20049' >/proc/fs/nfsd/portlist
		mount -o rdma,port=20049,vers=3,nolock,mountport=20048,mountproto=tcp \
			"$first:/run/exp" /run/mounted
		;;
	esac
}

# Volume 1 is the disk, and the others are files.
before_blk()
{
	local n

	case $1 in
	'kdapl-blk export'*/dev/nullb0*)
		! mountpoint -q /run/mounted || umount /run/mounted
		no_blk
		mkfs.ext4 -q -F /dev/nullb0
		;;
	"tr -d"*) head -c 24 /dev/urandom | base64 >secret-file ;;
	*'-n $n -o share=1'*)
		no_blk
		kdapl-blk export -i "${LINK}0/1" -s backup /dev/nullb0
		for n in 2 3 4 5 6 7 8; do
			truncate -s 16M /run/page.$n
			kdapl-blk export -i "${LINK}0/1" -s backup -n $n /run/page.$n
		done
		;;
	*'path$n'*) kdapl-blk disconnect all && modprobe -a dm-multipath dm-round-robin ;;
	esac
}

no_blk()
{
	kdapl-blk disconnect all
	[ ! -d $blk_tgt/subsystems/backup ] || kdapl-blk unexport backup
	[ ! -d $blk_tgt/clients/laptop ] || rmdir $blk_tgt/clients/laptop
}

before_stat()
{
	case $1 in
	'kdapl-stat latency'*)
		dmsetup remove --retry backup
		kdapl-blk disconnect all
		kdapl-blk connect -i "${LINK}0/1" -a "$first" -s backup
		;;
	'dmesg | grep broke:')
		rdma link delete "${LINK}0"
		wait_for 20 eval 'dmesg | grep -q broke:'
		;;
	*/var/lib/prometheus*) mkdir -p /var/lib/prometheus/node-exporter ;;
	esac
}

# A check in loopback has a server of its own.
before_test()
{
	[[ $1 != 'kdapl-test suites'* ]] || end_server
}

end_server()
{
	[ -e /run/server.pid ] || return 0
	kill "$(cat /run/server.pid)"
	wait_for 20 eval '! pgrep -f "kdapl-test server"'
	rm /run/server.pid
}

# What looks at the echo needs it, and removes it.
before_echo()
{
	case $1 in
	*'insmod kdapl_echo.ko'*) cp "$OUT/examples/kdapl_echo.ko" . ;;
	'rmmod kdapl_echo kdapl'*)
		insmod kdapl_echo.ko server_ia=rxe0/1 client_ia=rxe0/1 "peer=$first" ;;
	'grep . /sys/kernel/debug/kdapl/'*)
		modprobe kdapl
		insmod "$OUT/examples/kdapl_echo.ko" server_ia=rxe0/1 client_ia=rxe0/1 \
			"peer=$first"
		;;
	esac
}

# after PAGE: take away what no other page wants, and what power_off() does not look for
after()
{
	local m

	end_server
	! mountpoint -q /run/mounted || umount /run/mounted
	[ "$1" = kdapl-blk.rst ] || ! dmsetup info backup || dmsetup remove --retry backup
	echo 0 >/sys/kernel/tracing/events/enable
	for m in kdapl_echo dto_test kdapl_kunit kdapl_test; do
		! grep -q "^$m " /proc/modules || rmmod $m
	done
} >/dev/null 2>&1

# ---- ----------------------------------------------------------------------------------------

# script_of PAGE: print its commands, each block behind a call of before()
script_of()
{
	local without="scripts/ d="

	# User Mode Linux has no histograms, and not what these tools want. Nowhere is there a tree to
	# build test kernels of.
	[ ! -d "$OUT/root" ] || without+=" trace-cmd perf bpftrace e="
	# Who types "mkfs" has seen the disk appear.
	python3 "$OUT/printed.py" --without "$without" "$OUT/pages/$1" |
		sed 's/^mkfs.*\$disk/until_is_there "$disk"; &/'
}

# page NAME: run its commands, with names and addresses of this guest
page()
{
	local linker status=0

	mkdir -p /run/mounted /run/typed
	# shellcheck disable=SC2153 # LINK comes from the caller's environment.
	script_of "$1" | sed "s|/dev/sdb|/dev/nullb0|g; s|192\.168\.1\.2|$first|g
		s|192\.0\.2\.1|$first|g; s|10\.0\.2\.15|$first|g; s|10\.0\.2\.99|10.8.0.99|g
		s|^echo '/srv \*(|echo '/run/exp *(fsid=0,|; s|:/srv|:/|
		s|192\.168\.\\\$n\.2|10.8.\$((n - 1)).1|g; s|mlx5_0/\\\$n|$LINK\$((n - 1))/1|g
		s|mlx5_\([0-9]\)/1|${LINK}\1/1|g; s|/mnt|/run/mounted|g; s|netdev eth0|netdev v0|g
		s|<this repository>|here|; s|<kernel build directory>|here|
		s|/var/lib/kdapl/\$(uname -r)/suites|$OUT/suites|" >"/run/page.$1"
	[ "$(grep -c ^before "/run/page.$1")" -ge 2 ] || { cat "/run/page.$1"; return 1; }
	link_by_path &
	linker=$!
	bus_up
	export first iscsid page=$1 blk_tgt=/sys/kernel/config/kdapl_blk_tgt
	export -f systemctl mount dmsetup apt-get git make cat kdapl-test kdapl-stat rmmod \
		parses perf trace-cmd until_is_there before before_isert before_svcrdma before_blk \
		before_stat before_test before_echo no_blk end_server wait_for has_ended
	(cd /run/typed && bash -ex "/run/page.$1") || status=$?
	kill $linker
	after "$1"
	return $status
}
