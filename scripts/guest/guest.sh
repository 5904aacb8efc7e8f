# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by iser.sh and nfs.sh: what scripts in guests have in common. $OUT/packages has
# programs of Debian, unpacked; $OUT/root, if it is there, has the modules in the place of the
# guest's root.

# On User Mode Linux the root cannot be written to: programs, libraries and modules are used
# where they are, and the guest gets an /etc and a /var of its own.
if [ -d "$OUT/root" ]; then
	PATH=$OUT/packages/usr/sbin:$OUT/packages/sbin:$OUT/packages/usr/bin:$PATH
	export LD_LIBRARY_PATH=$OUT/packages/usr/lib/x86_64-linux-gnu:$OUT/packages/lib/x86_64-linux-gnu
	export MODPROBE_OPTIONS="-d $OUT/root"
fi

die()
{
	echo "${0##*/}: $*" >&2
	dmesg | tail -n 60 >&2
	exit 1
}

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

# unpack: have the packages used, by the kernel as well
unpack()
{
	if [ ! -d "$OUT/root" ]; then
		# /lib and /sbin may be links.
		tar -C "$OUT/packages" -c . | tar -C / -x --keep-directory-symlink
		return
	fi
	mkdir /run/etc && cp -a /etc/. /run/etc && cp -a "$OUT/packages/etc/." /run/etc &&
		mount --bind /run/etc /etc && mount -t tmpfs tmpfs /var || return
	# The kernel starts modprobe without that variable.
	printf '#!/bin/sh\nexec modprobe %s "$@"\n' "$MODPROBE_OPTIONS" >/run/modprobe
	chmod +x /run/modprobe
	put /run/modprobe /proc/sys/kernel/modprobe
}

# start_blocks FILE [AT HOW]: write blocks with their numbers to a file or disk, from block AT on and
# with this argument of dd. Each is flushed, in turn by a request of its own and with the data,
# before it counts in /run/flushed.
start_blocks()
{
	rm -f /run/stop-blocks /run/failed-blocks
	echo 0 >/run/flushed
	blocks=$1 first_block=${2-0} how=${3-}
	write_blocks &
	writer=$!
}

write_blocks()
{
	local n

	for ((n = 0; n < 16384; n++)); do
		[ ! -e /run/stop-blocks ] || return 0
		if [ $((n % 2)) = 0 ]; then
			write_and_flush $n
		else
			write_block $n oflag=dsync
		fi || { touch /run/failed-blocks; return; }
		echo $((n + 1)) >/run/flushed
	done
}

write_and_flush() { write_block "$1" conv=fsync; }

# write_block N [HOW]
write_block()
{
	# shellcheck disable=SC2086
	printf '%4095d\n' "$1" | dd of="$blocks" bs=4k seek=$((first_block + $1)) \
		iflag=fullblock conv=notrunc $how ${2-} 2>/run/dd
}

# has_flushed N: so many of them are, or none will be any more
has_flushed() { [ -e /run/failed-blocks ] || [ "0$(cat /run/flushed)" -ge "$1" ]; }

end_blocks()
{
	touch /run/stop-blocks
	wait "$writer"
}

# blocks_are_there: end that, and read all that was flushed
blocks_are_there()
{
	local n written

	end_blocks
	[ ! -e /run/failed-blocks ] || { cat /run/dd; return 1; }
	written=$(cat /run/flushed)
	for ((n = 0; n < written; n++)); do
		printf '%4095d\n' $n
	done >/run/wrote
	dd if="$blocks" of=/run/there bs=4k skip="$first_block" count="$written" iflag=direct \
		2>/run/dd && cmp /run/wrote /run/there || return
	echo "$written flushed blocks, all there"
}

# Reports of the kernel since it was booted, for the end.
no_reports()
{
	! dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace|refcount_t|hung_task'
}
