# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by common.sh: checks what a script was asked for, before anything is built.
# What is wrong ends the script with a sentence and the status 2.

: "${self:=${0##*/}}"

# wrong WORD...: refuse what the script was asked for
wrong()
{
	echo "$self: $*" >&2
	exit 2
}

# no_arguments "$@": refuse arguments; the script is controlled by variables.
no_arguments()
{
	[ $# -eq 0 ] || wrong "no argument is known here, such as '$1'; see $self --help"
}

# number NAME [MIN]: refuse the value of a variable that is no number of MIN (default 1)
# or more
number()
{
	local min=${2-1}

	if ! [[ ${!1} =~ ^[0-9]{1,18}$ ]] || ((10#${!1} < min)); then
		wrong "$1=${!1}: a whole number is wanted, $min or more"
	fi
	printf -v "$1" %s "$((10#${!1}))"
}

# choice NAME WORD...: refuse the value of a variable that is none of the words
choice()
{
	is_one_of "${!1}" "${@:2}" || wrong "$1=${!1}: choose $(list_of "${@:2}")"
}

# choices NAME WORD...: the same for a variable of several words, of which $chosen is made
choices()
{
	local name=$1 word

	shift
	read -ra chosen <<<"${!name}"
	for word in "${chosen[@]}"; do
		is_one_of "$word" "$@" || wrong "$name=$word: choose $(list_of "$@")"
	done
}

# kernel_is KERNEL WORD...: refuse a kernel that is none of the words
kernel_is()
{
	is_one_of "$@" ||
		wrong "there is no kernel '$1' for this; choose $(list_of "${@:2}")"
}

# is_one_of VALUE WORD...
is_one_of()
{
	local value=$1 word

	shift
	for word in "$@"; do
		[ "$value" != "$word" ] || return 0
	done
	return 1
}

# list_of WORD...: as a sentence has them
list_of()
{
	local last=${*: -1}

	if [ $# -eq 1 ]; then
		echo "$1"
	else
		set -- "${@:1:$#-1}"
		[ $# -eq 1 ] || printf '%s, ' "${@:1:$#-1}"
		echo "${*: -1} or $last"
	fi
}
