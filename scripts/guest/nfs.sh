# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by scripts/guest/check-nfs and bench-nfs: an NFS server and clients in one guest.
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
