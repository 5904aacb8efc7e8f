# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by scripts/guest/check-nfs and bench-nfs: an NFS server and clients in one guest.
# $OUT/packages has nfs-utils and what they need, unpacked; $OUT/root, if it is there, has the
# modules in the place of the guest's root. $LINK is rxe (default) or siw.

# The addresses of the two adapters.
# shellcheck disable=SC2034
case ${LINK:=rxe} in
rxe) address=10.8.0.1 address6=fd00:8::1 second=10.8.1.1 ;;
siw) address=10.9.0.1 address6=fd00:9::1 second=10.9.1.1 ;;
esac
# shellcheck disable=SC2034
port=20049

# On User Mode Linux the root cannot be written to: programs and modules are used where they are,
# and the guest gets an /etc and a /var of its own.
if [ -d "$OUT/root" ]; then
	PATH=$OUT/packages/usr/sbin:$OUT/packages/sbin:$PATH
	export LD_LIBRARY_PATH=$OUT/packages/usr/lib/x86_64-linux-gnu:$OUT/packages/lib/x86_64-linux-gnu
	export MODPROBE_OPTIONS="-d $OUT/root"
fi

# put VALUE FILE: write a setting
put()
{
	echo "$1" >"$2" || { echo "$2 does not take $1"; return 1; }
}

# said COMMAND...: run it, and show what it says only if it fails
said()
{
	"$@" >/run/said 2>&1 || { echo "failed: $*"; tail -n 20 /run/said; return 1; }
}

# wait_for SECONDS COMMAND...: wait until COMMAND succeeds
wait_for()
{
	local n=$(($1 * 10))

	shift
	until "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		[ $n -gt 0 ] || { echo "in vain: $*"; return 1; }
		sleep 0.1
	done
}

die()
{
	echo "check-nfs: $*" >&2
	dmesg | tail -n 60 >&2
	exit 1
}

unpack()
{
	if [ ! -d "$OUT/root" ]; then
		# /lib and /sbin may be links.
		tar -C "$OUT/packages" -c . | tar -C / -x --keep-directory-symlink
		return
	fi
	mkdir /run/etc && cp -a /etc/. /run/etc && cp -a "$OUT/packages/etc/." /run/etc
	mount --bind /run/etc /etc || die "no /etc"
	mount -t tmpfs tmpfs /var || die "no /var"
	# The kernel starts modprobe without that variable.
	printf '#!/bin/sh\nexec modprobe %s "$@"\n' "$MODPROBE_OPTIONS" >/run/modprobe
	chmod +x /run/modprobe
	put /run/modprobe /proc/sys/kernel/modprobe
}

# What the server and clients share, once for all cases: an /etc, rpcbind, mountd.
services_up()
{
	unpack
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
