# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by check-two-hosts: a stock NFS client on one host, the NFS server with kdapl_svcrdma
# on the other. What is in single quotes is for the shell of a guest.
# shellcheck disable=SC2016,SC2154

# shellcheck source=scripts/lib/nfs.sh
. "$top/scripts/lib/nfs.sh"

# What the server keeps, and what it knows of clients, is on a disk that outlives it.
nfs_server_up()
{
	on target 'local OUT=$OUT/nfs
		. $OUT/nfs.sh && modprobe -a virtio_blk ext4 && mkdir -p /tmp/disk /var/lib/nfs &&
		{ mountpoint -q /tmp/disk || mount -t ext4 /dev/vda /tmp/disk; } &&
		mkdir -p /tmp/disk/export /tmp/disk/nfs && mount --bind /tmp/disk/nfs /var/lib/nfs &&
		services_up && modprobe kdapl_svcrdma &&
		nfsd_up /tmp/disk/export sync "kdapl $port"'
}

nfs_mount='mount_nfs 4.2 "" 10.10.0.1 /tmp/mnt'

nfs_copy()
{
	nfs_server_up
	on client 'local OUT=$OUT/nfs
		. $OUT/nfs.sh && unpack && modprobe -a nfs nfsv4 rpcrdma && mkdir -p /tmp/mnt'
	on client "$nfs_mount && "'cp -r $OUT/files/. /tmp/mnt && umount /tmp/mnt'
	on client "$nfs_mount && "'(cd /tmp/mnt && sha256sum --quiet -c $OUT/sums)'
	on target 'sed "s/^/target: /" /proc/kdapl/kdapl_svcrdma/connections'
}

# A condition: the client has a connection.
nfs_is_connected='rdma resource show qp | grep -q "type RC state RTS"'

# The cable is out until the client has given up the connection, while blocks are being flushed.
nfs_cable()
{
	on client 'start_blocks /tmp/mnt/blocks'
	blocks_written
	monitor client 'set_link card off'
	within "$learns" client "! $nfs_is_connected"
	monitor client 'set_link card on'
	within 120 client "$nfs_is_connected"
	all_there
}

# The server dies; what it had in its page cache alone is lost.
nfs_server_dies()
{
	on client 'start_blocks /tmp/mnt/blocks'
	blocks_written
	kill_host target
	within "$learns" client "! $nfs_is_connected"
}

nfs_server_is_back()
{
	nfs_server_up
	within 180 client "$nfs_is_connected"
	all_there
	on client '(cd /tmp/mnt && sha256sum --quiet -c $OUT/sums)'
}

nfs_unload()
{
	on client 'umount /tmp/mnt && modprobe -r rpcrdma && no_reports'
	on target 'put 0 /proc/fs/nfsd/threads && modprobe -r kdapl_svcrdma && no_reports'
}

with_nfs()
{
	try "NFS: a stock client across the wire" nfs_copy
	try "NFS: cable pulled, and put back" nfs_cable
	try "NFS: the server is killed" nfs_server_dies
	boot target
	try "NFS: it comes back" nfs_server_is_back
	try "NFS: unload" nfs_unload
}

# ---- nfstest --------------------------------------------------------------------

# shellcheck disable=SC2034
nfstest_programs=(rdma posix dio lock delegation)

# with_nfstest DIR: put nfstest, whose tests read the packets on the wire, into DIR
with_nfstest()
{
	fetch_archived "$cache/nfstest-packages" amd64 sid nfstest || return
	mkdir -p "$1"
	cp -r "$cache/nfstest-packages/packages" "$1"
	with_packages "$1" tcpdump tcpdump libpcap0.8 libdbus-1-3 nfs4-acl-tools
}

nfstest_up()
{
	on target 'modprobe rpcrdma'
	nfs_server_up
	on target 'chmod 777 /tmp/disk/export && put 0 /proc/fs/nfsd/threads'
	on client 'local OUT=$OUT/nfs
		. $OUT/nfs.sh && unpack && OUT=$OUT/../nfstest unpack && modprobe -a nfs nfsv4 rpcrdma'
	# nfstest asks which address a packet to the world would have; tcpdump becomes a user.
	on client 'ip route add default dev eth0
		echo "tcpdump:x:108:65534::/tmp:/bin/false" >>/etc/passwd
		echo "tcpdump:x:108:" >>/etc/group'
}

# nfstest_at SERVER PROGRAM ARGUMENT...: run one of its programs where nfsd serves by rpcrdma, whose
# name is "rdma" as it was loaded first, or by kdapl_svcrdma, "kdapl"; leave what it said
nfstest_at()
{
	local name=$1-$2

	# It makes its files over TCP.
	on target "put 0 /proc/fs/nfsd/threads && serve_at 'tcp 2049' '$1 20049'"
	on client "(cd /tmp && timeout 1500 /usr/bin/python3 /usr/bin/$2 --server 10.10.0.1 \
		--proto rdma --port 20049 --nfsversion 4.1 --mtpoint /tmp/nfstest --notty \
		--tbsize 16k ${*:3} \
		>\$OUT/nfs.$name 2>&1; echo \$? >/tmp/$name.rc) &"
	# on() waits for 10 minutes.
	until on client "[ -s /tmp/$name.rc ]"; do
		kill -0 "${runner[client]}" || return
		sleep 5
	done
	on client "! mountpoint -q /tmp/nfstest || umount /tmp/nfstest; cat /tmp/$name.rc"
	sed -nE 's/^ *(PASS|FAIL): /\1 /p' "$out/client/nfs.$name" | sort >"$out/$name"
	grep -q ^PASS "$out/$name" || { tail -n 20 "$out/client/nfs.$name"; return 1; }
	echo "client: $2 at $1: $(grep -c ^PASS "$out/$name") PASS, $(grep -c ^FAIL "$out/$name") FAIL"
}

# What fails at kdapl_svcrdma fails at the server of rpcrdma as well.
nfstest_rdma() { nfstest_both nfstest_rdma; }
nfstest_posix() { nfstest_both nfstest_posix; }
nfstest_dio() { nfstest_both nfstest_dio; }
nfstest_lock() { nfstest_both nfstest_lock; }
nfstest_delegation() { nfstest_both nfstest_delegation; }

# failures NAME: the kinds of failures there
failures() { sed -nE '/^FAIL/s/[0-9]+/N/gp' "$out/$1" | sort -u; }

nfstest_both()
{
	local new

	nfstest_at rdma "$@"
	nfstest_at kdapl "$@"
	# Numbers, and how often, are a matter of how many packets were caught.
	new=$(comm -13 <(failures "rdma-$1") <(failures "kdapl-$1"))
	[ -z "$new" ] || { echo "at kdapl alone:"; echo "$new"; return 1; }
}

nfstest_down()
{
	on client 'modprobe -r rpcrdma && no_reports'
	on target 'put 0 /proc/fs/nfsd/threads && modprobe -r kdapl_svcrdma && no_reports'
}

with_nfstest_programs()
{
	local p

	try "nfstest: both servers" nfstest_up
	for p in $PROGRAMS; do
		try "nfstest_$p" "nfstest_$p"
	done
	try "nfstest: unload" nfstest_down
}
