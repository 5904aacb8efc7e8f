# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Run by scripts/check-commands in namespaces of its own: play-units.sh WORK UNITS. systemd,
# as the manager of a user, boots and stops the units of the disks in directory UNITS, in
# an empty directory WORK, with a tmpfs for what is mounted from a disk. Prints what state
# the units have and what kdapl-blk is called for.

work=$1 from=$2
export XDG_RUNTIME_DIR=$work/run SYSTEMD_UNIT_PATH=$work/units
export DBUS_SESSION_BUS_ADDRESS=unix:path=$work/none
mount --make-rprivate / && mount -t tmpfs none /run && mount -t tmpfs none /dev/shm || exit
mkdir -p /run/systemd/system "$work"/{units,run,mnt}

for t in basic network-online remote-fs-pre remote-fs; do
	printf '[Unit]\nDescription=%s\n' $t >"$work/units/$t.target"
done
cp /usr/lib/systemd/user/{exit.target,systemd-exit.service,shutdown.target} "$work/units"
mount_unit=$(systemd-escape -p --suffix=mount "$work/mnt")
cat >"$work/units/multi-user.target" <<END
[Unit]
Requires=basic.target
Wants=kdapl-blk.service kdapl-blk-shutdown.service $mount_unit remote-fs.target
After=basic.target
END
cat >"$work/units/$mount_unit" <<END
[Unit]
After=remote-fs-pre.target
Before=remote-fs.target shutdown.target
Conflicts=shutdown.target
[Mount]
What=tmpfs
Where=$work/mnt
Type=tmpfs
END
for u in kdapl-blk kdapl-blk-shutdown; do
	sed "s|/usr/sbin/kdapl-blk|$work/kdapl-blk|g; s|/etc/kdapl-blk/saved|$work/units|
		s|systemctl |systemctl --user |g" "$from/$u.service" >"$work/units/$u.service"
done
cat >"$work/kdapl-blk" <<END
#!/bin/bash
[ "\$1" != stop ] || ! mountpoint -q $work/mnt || set -- "\$@" '(mounted)'
echo "\$*" >>$work/log
# As with a disk that is mounted, unless it is taken away by force.
[ "\$*" != 'stop disks (mounted)' ] || exit 1
[ "\$1" != restore ] || until [ -e $work/there ]; do sleep 0.1; done
END
chmod +x "$work/kdapl-blk"
touch "$work/log"

# until_is STATE UNIT: wait until the unit has that state, and print it
until_is()
{
	local n

	for ((n = 0; n < 300; n++)); do
		[ "$(systemctl --user is-active "$2")" != "$1" ] || break
		sleep 0.1
	done
	echo "${2%%.*} $(systemctl --user is-active "$2")"
}

until_calls()
{
	local n

	for ((n = 0; n < 300 && $(wc -l <"$work/log") < $1; n++)); do
		sleep 0.1
	done
}

/lib/systemd/systemd --user --unit=multi-user.target >"$work/said" 2>&1 &
manager=$!
for ((n = 0; n < 300; n++)); do
	[ ! -e "$work/run/systemd/private" ] || break
	sleep 0.1
done
until_is active multi-user.target
until_is active kdapl-blk-shutdown.service
until_calls 1
until_is activating kdapl-blk.service
touch "$work/there"
until_is active kdapl-blk.service
systemctl --user stop kdapl-blk.service
# What is mounted stays, and something is there to take it away when the host goes down.
until_calls 2
until_is inactive kdapl-blk.service
until_is active kdapl-blk-shutdown.service
rm "$work/there"
systemctl --user start --no-block kdapl-blk.service
until_calls 3
until_is active kdapl-blk-shutdown.service
until_is activating kdapl-blk.service
systemctl --user --no-block exit
wait $manager
cat "$work/log"
