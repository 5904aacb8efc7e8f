# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by what needs NFS in a guest: check-nfs, bench-nfs, demo-nfs and check-two-hosts.
# $OUT/packages has nfs-utils and what they need. $LINK is rxe (default) or siw.

# shellcheck source=scripts/guest/guest.sh
. "$OUT/guest.sh"

# The addresses of the two adapters.
# shellcheck disable=SC2034
case ${LINK:=rxe} in
rxe) address=10.8.0.1 address6=fd00:8::1 second=10.8.1.1 ;;
siw) address=10.9.0.1 address6=fd00:9::1 second=10.9.1.1 ;;
esac
# shellcheck disable=SC2034
port=20049

# What the server and clients share, once for all cases: an /etc, rpcbind, mountd.
services_up()
{
	unpack || die "no packages"
	modprobe -a nfsd nfs nfsv3 nfsv4 2>/dev/null
	grep -q ^_rpc: /etc/passwd || echo '_rpc:x:106:65534::/run/rpcbind:/bin/false' >>/etc/passwd
	grep -q ^statd: /etc/passwd || echo 'statd:x:107:65534::/var/lib/nfs:/bin/false' >>/etc/passwd
	mkdir -p /run/rpcbind /var/lib/nfs/{rpc_pipefs,sm,sm.bak,v4recovery} /run/mnt /run/exp
	[ -e /var/run ] || ln -s /run /var/run
	touch /var/lib/nfs/{etab,rmtab,state}
	mount -t nfsd nfsd /proc/fs/nfsd || die "no nfsd"
	mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs || die "no rpc_pipefs"
	ip link set lo up
	setsid rpcbind -w -f >/run/rpcbind.log 2>&1 &
	wait_for 10 rpcinfo -p 127.0.0.1 || die "no rpcbind: $(cat /run/rpcbind.log)"
	# Without it each server would begin with a grace period.
	mkdir -p /var/lib/nfs/nfsdcld
	setsid nfsdcld -F -p /var/lib/nfs/rpc_pipefs -s /var/lib/nfs/nfsdcld \
		>/run/nfsdcld.log 2>&1 &
	setsid rpc.mountd -F --port 20048 >/run/mountd.log 2>&1 &
	wait_for 10 sh -c 'rpcinfo -p 127.0.0.1 | grep -q 100005' ||
		die "no mountd: $(cat /run/mountd.log)"
}

# is_service PID: has services_up() started it?
is_service()
{
	case $(cat "/proc/$1/comm" 2>/dev/null) in
	rpcbind | rpc.mountd | nfsdcld | setsid) return 0 ;;
	esac
	return 1
}

# services_down: end them, and have the /etc and /var of before
services_down()
{
	local p at

	for p in /proc/[0-9]*; do
		! is_service "${p#/proc/}" || kill "${p#/proc/}"
	done
	for at in /var/lib/nfs/rpc_pipefs /proc/fs/nfsd /var /etc; do
		wait_for 10 umount "$at" || return
	done
	rm -r /run/etc
	put /sbin/modprobe /proc/sys/kernel/modprobe
}

# tmpfs_up: have a file system in memory at /run/exp, for a server
tmpfs_up()
{
	mount -t tmpfs -o size=512m tmpfs /run/exp && chmod 777 /run/exp
}

# nfsd_up DIR OPTION PORTAL...: start nfsd with this export, "sync" or "async", of $versions or all
# but 2; a portal is the name of a transport and a port
nfsd_up()
{
	put "$1 *(rw,$2,fsid=0,insecure,no_root_squash,no_subtree_check)" /etc/exports &&
		said exportfs -ra &&
		put "${versions:--2 +3 +4 +4.1 +4.2}" /proc/fs/nfsd/versions &&
		put 10 /proc/fs/nfsd/nfsv4gracetime && put 10 /proc/fs/nfsd/nfsv4leasetime &&
		serve_at "${@:3}"
}

# serve_at PORTAL...: start nfsd again, as it is configured
serve_at()
{
	local portal

	for portal; do
		put "$portal" /proc/fs/nfsd/portlist || return
	done
	put 8 /proc/fs/nfsd/threads
}

# nfsd_down: stop nfsd, and unmount what tmpfs_up() has mounted
nfsd_down()
{
	put 0 /proc/fs/nfsd/threads
	said exportfs -ua
	umount -q /run/exp
}

# transports_down: unload what no server and no client uses any more
transports_down()
{
	local m

	for m in kdapl_svcrdma rpcrdma; do
		! grep -q "^$m " /proc/modules || wait_for 20 rmmod $m || return
	done
}

# mount_nfs VERSION [OPTION [ADDRESS [DIR]]]: mount the export at /run/mnt
mount_nfs()
{
	local at=${3:-$address} path=/ more=

	[ "$1" != 3 ] || path=/run/exp more=,nolock,mountport=20048,mountproto=tcp
	said timeout 120 mount.nfs "$at:$path" "${4:-/run/mnt}" \
		-o "rdma,port=$port,vers=$1$more${2:+,$2}"
}
