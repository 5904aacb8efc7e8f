# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk: attributes in configfs, and messages of the kernel about them. Uses $config.

# Errors of builtin commands go to a file without a name, and are read back from there. So
# no child process writes to an attribute, and a signal to this process ends the write.
error=''
keep_errors()
{
	local file

	file=$(mktemp) || exit
	exec {said}>"$file" {heard}<"$file"
	rm "$file"
}

# Print the kernel's messages since mark_log(): those about this disk, or, if there are none, those
# about no other disk.
kernel_says()
{
	local lines own d

	lines=$(log_since_mark | grep kdapl_blk)
	own=$(grep -F -- ": ${disk:-/}: " <<<"$lines")
	for d in "$ini"/*/; do
		d=${d%/}
		lines=$(grep -vF -- ": ${d##*/}: " <<<"$lines")
	done
	lines=$(tail -n 2 <<<"${own:-$lines}")
	[ -z "$lines" ] || sed 's/^/  kernel: /' <<<"$lines" >&2
}

# try VALUE FILE: write VALUE to an attribute; on failure $error says why
try()
{
	local status=0 line

	{ printf '%s\n' "$1" >"$2"; } 2>&"$said" || status=1
	while IFS= read -r -u "$heard" line; do
		error=${line##*: }
	done
	return $status
}

# put VALUE FILE WHAT: write VALUE to an attribute, or die with an error about WHAT
put()
{
	[ -e "$2" ] || die "$3: there is no ${2##*/}: choose $(attributes_of "${2%/*}")"
	try "$1" "$2" && return
	echo "$me: $3: $(attribute_why)" >&2
	kernel_says
	exit 1
}

# Print the attributes of directory $1 that can be written.
attributes_of()
{
	local f list=''

	for f in "$1"/*; do
		[ ! -f "$f" ] || [ -L "$f" ] || [[ $(stat -c %A "$f") != -rw* ]] ||
			list+="${list:+, }${f##*/}"
	done
	echo "${list:-nothing}"
}

# Print why an attribute was not taken.
attribute_why()
{
	case $error in
	"Invalid argument" | "Numerical result out of range") echo "this is no value of it" ;;
	"Device or resource busy") echo "it cannot be changed while it is in use" ;;
	"Required key not available")
		echo "$error: add it to a keyring of this user, see keyctl(1)"
		;;
	*) echo "$error" ;;
	esac
}

# Load MODULE unless its directory is there.
need()
{
	[ -d "$2" ] && return
	load "$1" || die "no $2: load $1.ko, which is not installed for kernel $(uname -r)"
	[ -d "$2" ] || die "no $2: mount configfs (mount -t configfs none $config)"
}

# ---- Arguments ----

# may_wait: whether --wait allows for another try; its seconds count from the beginning
may_wait()
{
	[ -n "$wait_for" ] && { [ "$wait_for" = 0 ] || [ $SECONDS -lt "$wait_for" ]; }
}

# waits WHY: say why this command waits, when that changes, and wait a second
waits()
{
	[ "$1" = "$waits_why" ] || echo "$me: waiting: $1" >&2
	waits_why=$1
	sleep 1
}
waits_why=''

# Print the adapter that -i names, with its port, or the only one.
chosen_ia()
{
	if [ -n "$ia" ]; then
		whole_ia "$ia"
	else
		only_ia
	fi
}

# make_dir DIRECTORY WHAT: make it, or die with an error about WHAT
make_dir()
{
	local said_why

	said_why=$(mkdir "$1" 2>&1) || die "cannot make $2: ${said_why##*: }"
}

# check_text OPTION TEXT: die if TEXT could not stand on a line of its own, as in the saved file
check_text()
{
	[[ $2 != *[[:cntrl:]]* ]] || wrong "$1 ${2@Q}: no control characters are wanted"
}

# check_name OPTION NAME: die unless the protocol has room for NAME, and configfs takes it
check_name()
{
	case $2 in
	'') wrong "$1: a name is wanted" ;;
	*/* | .*) wrong "$1 $2: a name without \"/\" is wanted, and none that begins with \".\"" ;;
	esac
	check_text "$1" "$2"
	[ ${#2} -le 63 ] || wrong "$1 $2: 63 bytes at most"
}

# Print the option that stands for attribute $1, if any.
option_for()
{
	case $1 in
	ia) echo -i ;;
	address) echo -a ;;
	conn_qual) echo -p ;;
	subsystem) echo -s ;;
	namespace) echo -n ;;
	client) echo -c ;;
	uuid) echo -u ;;
	only_path) echo -m ;;
	esac
}

# Die for options that are wrong, before anything is done.
check_options()
{
	local o c own secret named=/

	is_number "$port" 1 65535 || wrong "-p $port: a number from 1 to 65535 is wanted"
	is_number "$number" 1 4294967295 ||
		wrong "-n $number: a number from 1 to 4294967295 is wanted"
	[ -z "$uuid" ] || [[ $uuid =~ ^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$ ]] ||
		wrong "-u $uuid: a UUID is wanted, as 01234567-89ab-cdef-0123-456789abcdef"
	for c in "${clients[@]}"; do
		check_name -c "$c"
		[[ $named != *"/$c/"* ]] || wrong "-c $c: this client is named twice"
		named+="$c/"
	done
	for o in "${options[@]}"; do
		[[ $o == ?*=* ]] && [[ ${o%%=*} != */* ]] || wrong "-o $o: KEY=VALUE is wanted"
		[[ $o != *[[:cntrl:]]* ]] || wrong "-o ${o%%=*}=...: no control characters are wanted"
		# What has an option of its own is looked at by that.
		own=$(option_for "${o%%=*}")
		[ -z "$own" ] || wrong "-o $o: $own says that"
		case $o in
		connected=* | discover=* | enable=*)
			wrong "-o $o: that is what the command does, and no attribute to choose"
			;;
		secret=key:?*) ;;
		secret=*)
			secret=${o#secret=}
			[ ${#secret} -ge 16 ] && [ ${#secret} -le 64 ] ||
				wrong "-o secret=...: 16 to 64 bytes are wanted, or key:DESCRIPTION"
			;;
		esac
	done
}

# Set the attributes of options -o in directory $1.
set_options()
{
	local o

	for o in "${options[@]}"; do
		case $o in
		# Others may read the error message: it must not show the secret.
		secret=key:*) put "${o#*=}" "$1/secret" "-o $o" ;;
		secret=*) put "${o#*=}" "$1/secret" "-o secret=..." ;;
		*) put "${o#*=}" "$1/${o%%=*}" "-o $o" ;;
		esac
	done
}
