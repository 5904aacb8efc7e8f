# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Functions that the tools share. $me is the name of the tool.

die()
{
	echo "$me: $*" >&2
	exit 1
}

# Exit because the command line makes no sense; one sentence says why.
wrong()
{
	echo "$me: $*; try \"$me help\"" >&2
	exit 2
}

# is_number TEXT FROM TO
is_number()
{
	[[ $1 =~ ^(0|[1-9][0-9]{0,9})$ ]] && [ "$((10#$1))" -ge "$2" ] && [ "$((10#$1))" -le "$3" ]
}

# The last line of the kernel's log: later lines are about what is done next.
log_mark=''
mark_log()
{
	log_mark=$(dmesg 2>/dev/null | tail -n 1)
}

# Print the kernel's messages since mark_log(), if we may read them.
log_since_mark()
{
	dmesg 2>/dev/null | awk -v mark="$log_mark" '
		$0 == mark { said = ""; next }
		{ sub(/^\[[^]]*\] */, ""); said = said $0 "\n" }
		END { printf "%s", said }'
}

# refused_symbol MODULE LINE: die, since that module does not fit the one that has a symbol
refused_symbol()
{
	local sys=${KDAPL_SYS:-/sys/module} loaded own

	if [[ $2 == *" symbol "k*dat_* || $2 == *" symbol dat_"* ]] && [ -d "$sys/kdapl" ]; then
		loaded=$(cat "$sys/kdapl/version" 2>/dev/null || echo "of another build")
		own=$(modinfo -F version "$1" 2>/dev/null || echo unknown)
		die "cannot load $1: kdapl.ko $loaded is loaded, and $1.ko is of $own: boot this host, or" \
			"unload all modules of kDAPL and load them anew"
	fi
	die "cannot load $1: $2: kDAPL was built for another" \
		"ib_core and rdma_cm than those loaded" \
		"($(modinfo -n ib_core 2>/dev/null || echo unknown)). Are they the" \
		"adapter's vendor's? Build with KBUILD_EXTRA_SYMBOLS=<their" \
		"Module.symvers>: \"RDMA modules of a vendor\" in the troubleshooting guide"
}

# load MODULE: load a module, or die with the reason. Fails without a message if modprobe
# does not find the module. KDAPL_SYS stands for /sys/module.
load()
{
	local error said

	[ ! -d "${KDAPL_SYS:-/sys/module}/$1" ] || return 0
	mark_log
	error=$(modprobe "$1" 2>&1) && return
	case $error in
	*"not found"*) return 1 ;;
	*"Invalid argument"* | *"Unknown symbol"*)
		said=$(log_since_mark | grep -m1 -E '^kdapl[a-z_]*: disagrees about version of symbol')
		[ -z "$said" ] || refused_symbol "$1" "$said"
		;;
	esac
	die "cannot load $1: ${error##*: }"
}

# print_version MODULE...: print the version of the tools, and of those modules that are loaded.
# $parts is where this file is.
print_version()
{
	local m sys=${KDAPL_SYS:-/sys/module}

	echo "$me $(cat "$parts/version" 2>/dev/null ||
		sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$parts/../../dkms.conf")"
	for m in "$@"; do
		[ ! -d "$sys/$m" ] ||
			echo "$m.ko $(cat "$sys/$m/version" 2>/dev/null || echo unknown), loaded"
	done
}

# Print all adapters. KDAPL_IB stands for /sys/class/infiniband.
all_ias()
{
	local class=${KDAPL_IB:-/sys/class/infiniband} d

	for d in "$class"/*/ports/*; do
		[ -e "$d" ] || continue
		d=${d#"$class"/}
		echo "${d%%/*}/${d##*/}"
	done
}

# Print the only adapter, or die.
only_ia()
{
	local list

	read -r -d '' -a list <<<"$(all_ias)"
	case ${#list[@]} in
	0) die "there is no RDMA device" ;;
	1) echo "${list[0]}" ;;
	*) die "there are several adapters (${list[*]}); choose one with -i" ;;
	esac
}

# whole_ia IA: print the name of an adapter with its port, which may be left out if its device
# has one; of a device that is not there, as it is.
whole_ia()
{
	local list ia ports=()

	read -r -d '' -a list <<<"$(all_ias)"
	for ia in "${list[@]}"; do
		[ "${ia%/*}" != "$1" ] || ports+=("$ia")
	done
	[ ${#ports[@]} -le 1 ] ||
		die "-i $1: this device has several ports: choose $(sed 's/ / or /g' <<<"${ports[*]}")"
	echo "${ports[0]-$1}"
}

# check_ia IA: die unless there is such an adapter
check_ia()
{
	local list ia whole

	whole=$(whole_ia "$1") || exit
	read -r -d '' -a list <<<"$(all_ias)"
	for ia in "${list[@]}"; do
		[ "$ia" != "$whole" ] || return 0
	done
	die "there is no adapter $1; there is ${list[*]:-no RDMA device}"
}

# is_temporary DIRECTORY: whether a disk of kdapl_blk was made by "kdapl-blk discover", which
# names it after its process, to ask a target: such a disk has never had a device.
is_temporary()
{
	[[ ${1%/} =~ /discover-[0-9]+$ ]] && [ -z "$(cat "$1/device" 2>/dev/null)" ]
}

# is_asking DIRECTORY: whether that process is there, and will remove the disk
is_asking()
{
	local name=${1%/}

	is_temporary "$1" && [ -e "/proc/${name##*-}" ]
}

# first_address HOST: print the address of HOST, the first one if it has several, or nothing. The
# scope of a link-local address stays a name: numbers change when a host boots.
first_address()
{
	local found

	found=$(getent ahosts -- "$1" 2>/dev/null | awk 'NR == 1 { print $1 }')
	[[ -z $found || $1 != *:* ]] || found=$1
	echo "$found"
}
