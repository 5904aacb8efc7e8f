# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash disable=SC2016,SC2154
#
# Sourced by guest/check-boot: the commands of a page of the documentation, which is in $OUT, are
# run as they are printed there, block by block, in one shell that ends with the first error.

# script_of PAGE: print its literal blocks that are commands, each behind a call of before()
script_of()
{
	python3 - "$OUT/$1" <<-'END'
		import re, shlex, sys
		text = open(sys.argv[1], encoding="utf-8").read()
		for block in re.findall(r"::\n\n((?:    .*\n|\n)+)", text):
		    lines = [line[4:] for line in block.rstrip("\n").split("\n")]
		    word = re.match(r"[\w.-]+=?", lines[0])
		    if not word or word[0] not in (
		            "cd", "dmsetup", "echo", "for", "iscsiadm", "kdapl-blk", "modprobe",
		            "mount", "systemctl", "targetcli", "tpg=", "tr", "until"):
		        continue
		    print("before", shlex.quote("\n".join(lines)))
		    for line in lines:
		        # Who types this has seen the disk appear.
		        if line.startswith("mkfs"):
		            print('until_is_there "$disk"')
		        print(line)
	END
}

systemctl()
{
	[ "$*" = "restart iscsid" ] || { echo "systemctl $*"; return 1; }
	iscsiadm -k 0
	wait_for 10 has_ended "$iscsid"
	setsid iscsid -f >/run/iscsid.log 2>&1 &
	wait_for 10 eval 'iscsiadm -m session 2>&1 | grep -q "No active"'
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

# before BLOCK: what the page says in words, or takes away what another block has left
before()
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

# page NAME: run its commands, with names and addresses of this guest
page()
{
	local linker status=0

	mkdir -p /run/mounted
	# shellcheck disable=SC2153 # LINK comes from the caller's environment.
	script_of "$1" | sed "s|/dev/sdb|/dev/nullb0|g; s|192\.168\.1\.2|$first|g
		s|mlx5_\([0-9]\)/1|${LINK}\1/1|g; s|/mnt|/run/mounted|g" >/run/page.sh
	[ "$(grep -c ^before /run/page.sh)" -ge 6 ] || { cat /run/page.sh; return 1; }
	link_by_path &
	linker=$!
	export first iscsid
	export -f systemctl until_is_there before wait_for has_ended
	bash -ex /run/page.sh || status=$?
	kill $linker
	return $status
}
