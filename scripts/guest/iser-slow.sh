# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
#
# Cases of guest/check-iser, whose functions and variables they use: one of two LUNs of a session
# is of a disk that stands still, and who does not want that one does not notice. How long the
# others take meanwhile is in /run/took.

# A file whose file system is frozen
frozen()
{
	command -v fsfreeze >/dev/null || { skip "no fsfreeze here"; return; }
	modprobe -q loop
	mkdir -p /run/frozen && truncate -s 96M /run/image && said mkfs.ext4 -q -F /run/image &&
		mount -o loop /run/image /run/frozen && file_backstore_up /run/frozen/file &&
		stands_still fileio_0/file "fsfreeze -f /run/frozen" "fsfreeze -u /run/frozen"
}

# A device that takes requests and answers none, as one whose link is down does
hung()
{
	modprobe -q loop
	modprobe -q dm-mod
	hung_on=$(truncate -s 96M /run/hung && losetup -f --show /run/hung) &&
		said dmsetup create --noudevsync hung --table \
		"0 $(blockdev --getsz "$hung_on") linear $hung_on 0" || return
	[ -e /dev/mapper/hung ] || dmsetup mknodes
	mkdir -p $lio/core/iblock_0/hung &&
		put udev_path=/dev/mapper/hung $lio/core/iblock_0/hung/control &&
		put 1 $lio/core/iblock_0/hung/enable &&
		stands_still iblock_0/hung "dmsetup suspend --noudevsync hung" \
			"dmsetup resume --noudevsync hung"
}

# A thin pool that is full: writes to blocks that it has not given out yet wait until the
# administrator makes it longer.
full()
{
	modprobe -q loop
	modprobe -q dm-thin-pool || { skip "this kernel has no thin pools"; return; }
	# Otherwise what waits fails after a minute.
	put 0 /sys/module/dm_thin_pool/parameters/no_space_timeout &&
		truncate -s 4M /run/pool.meta && truncate -s ${pool_mib}M /run/pool.data &&
		pool_meta=$(losetup -f --show /run/pool.meta) &&
		pool_data=$(losetup -f --show /run/pool.data) &&
		said dmsetup create --noudevsync pool --table "$(pool_table)" &&
		said dmsetup message pool 0 "create_thin 0" || return
	dmsetup mknodes
	said dmsetup create --noudevsync thin --table \
		"0 $((96 * 2048)) thin /dev/mapper/pool 0" || return
	dmsetup mknodes
	mkdir -p $lio/core/iblock_0/thin &&
		put udev_path=/dev/mapper/thin $lio/core/iblock_0/thin/control &&
		put 1 $lio/core/iblock_0/thin/enable && stands_still iblock_0/thin pool_fills pool_grows
}

pool_table()
{
	echo "0 $(blockdev --getsz "$pool_data") thin-pool $pool_meta $pool_data 128 0"
}

# All that it has goes to blocks behind the first ones, which the initiator will write.
pool_fills()
{
	said dd if=/dev/zero of=/dev/mapper/thin bs=64k seek=16 count=$((pool_mib * 16)) \
		oflag=direct
}

pool_grows()
{
	dmsetup status pool | grep -q out_of_data_space ||
		{ dmsetup status pool; echo "the pool is not full"; ok=; }
	truncate -s $((pool_mib * 2))M /run/pool.data && losetup -c "$pool_data" &&
		said dmsetup suspend --noudevsync --noflush pool &&
		said dmsetup reload pool --table "$(pool_table)" &&
		said dmsetup resume --noudevsync pool
}
pool_mib=16 pool_meta='' pool_data=''

# slow_down: take away what these cases have made
slow_down()
{
	local name loop

	umount -q /run/frozen
	for name in hung thin pool; do
		[ ! -d $lio/core/iblock_0/$name ] || rmdir $lio/core/iblock_0/$name
		! dmsetup info $name >/dev/null 2>&1 || dmsetup remove --noudevsync --retry $name
	done
	for loop in $hung_on $pool_meta $pool_data; do
		losetup -d "$loop"
	done
	hung_on='' pool_meta='' pool_data=''
}
hung_on=

# stands_still BACKSTORE STOP GO: serve the disk as LUN 1, and look at the others between two
# commands, while four writes wait for it
stands_still()
{
	local slow jobs=() pings n ok=

	backstore=iblock_0/null && up && mkdir $tpg/lun/lun_1 &&
		ln -s "$lio/core/$1" $tpg/lun/lun_1/l && login "$address" \
		node.conn[0].timeo.noop_out_interval=1 node.conn[0].timeo.noop_out_timeout=5 &&
		find_disk "$address" 1 && slow=$disk && find_disk "$address" || return
	pings=$(dmesg | grep -c 'ping timeout')
	$2 || return
	for n in 0 1 2 3; do
		dd if=/dev/zero of="/dev/$slow" bs=4k seek=$n count=1 oflag=direct 2>/dev/null &
		jobs+=($!)
	done
	# Long enough for pings to fail as well.
	wait_for 10 grep -q ' 4$' "/sys/block/$slow/inflight" && beside_it && sleep 8 && ok=1
	$3
	for n in "${jobs[@]}"; do
		wait "$n" || { echo "what has waited for the slow disk has failed"; return 1; }
	done
	[ "$(dmesg | grep -c 'ping timeout')" = "$pings" ] || { echo "a ping has failed"; return 1; }
	[ -n "$ok" ]
}

# Another LUN of the session, discovery, and another session
beside_it()
{
	local c start sessions=(/sys/class/iscsi_session/session*)

	for c in "dd if=/dev/$disk of=/dev/null bs=4k count=64 iflag=direct" \
			"dd if=/dev/zero of=/dev/$disk bs=4k count=64 oflag=direct" \
			"iscsiadm -m discovery -t st -I $iface -p $address"; do
		start=${EPOCHREALTIME/[.,]/}
		# shellcheck disable=SC2086
		said timeout 15 $c || { echo "$c: it waits"; return 1; }
		took "$c" "$start"
	done
	start=${EPOCHREALTIME/[.,]/}
	# When it is logged in it looks at its disks, and waits for the slow one.
	iscsiadm -m session -r "${sessions[0]##*session}" -o new &
	jobs+=($!)
	wait_for 15 sh -c "[ \$(cat /sys/class/iscsi_session/*/state | grep -c LOGGED_IN) = 2 ]" || return
	took login "$start"
}

# took WHAT START: note how long that has taken since then, in ms
took()
{
	echo "beside a disk that stands still (${FUNCNAME[3]}, $TRANSPORT)," \
		"$(((${EPOCHREALTIME/[.,]/} - $2) / 1000)) ms: $1" >>/run/took
}
