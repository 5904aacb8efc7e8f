# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-blk save, restore and stop. They use $config, $tgt, $ini, $saved and the functions
# of the other parts.
#
# The saved file has lines "dir DIRECTORY", "put FILE VALUE", "link LINK DIRECTORY" and "on
# FILE", separated by tabs, with names below configfs. The name of an adapter is followed by
# the GUID of its device, which it is found by when it has another name.

# Print the GUID of the device of adapter $1, if it has one.
guid_of()
{
	sed '/^[0:]*$/d' "${KDAPL_IB:-/sys/class/infiniband}/${1%%/*}/node_guid" 2>/dev/null
}

# present_ia IA GUID: print the name that an adapter has now, which was saved so. An adapter that
# has been replaced by another one of that name is given 10 s to appear before.
present_ia()
{
	local ia found=() other

	while read -r ia; do
		[ "$(guid_of "$ia")" != "$2" ] || [ "${ia#*/}" != "${1#*/}" ] || found+=("$ia")
	done <<<"$(all_ias)"
	other=$(guid_of "$1")
	# Software adapters upon VLANs of one device have one GUID.
	if [ -z "$2" ] || [ "$other" = "$2" ]; then
		echo "$1"
	elif [ ${#found[@]} -eq 1 ]; then
		echo "${found[0]}"
	elif [ -z "$other" ]; then
		die "there is no adapter $1, whose GUID is $2"
	elif may_wait && [ "$SECONDS" -ge 10 ]; then
		echo "$me: $1 has the GUID $other, and nobody has $2: it is taken all the same" >&2
		echo "$1"
	else
		die "$1 is another adapter than the one saved, whose GUID is $2:" \
			"\"restore --wait\" takes it after 10 s"
	fi
}

# saved_guid FILE IA: print the GUID that the saved file has for the adapter in an attribute
saved_guid()
{
	[ ! -r "$saved" ] || awk -F '\t' -v file="${1#"$config"/}" -v ia="$2" \
		'$1 == "put" && $2 == file && $3 == ia { print $4 }' "$saved"
}

# read_attribute FILE: print it. A failure is told unless its directory has gone.
read_attribute()
{
	cat "$1" 2>/dev/null && return
	[ ! -e "${1%/*}" ] || echo "$me: cannot read $1, so nothing is saved" >&2
	return 1
}

# Print the attributes of directory $1 that can be set.
save_attributes()
{
	local f value guid

	for f in "$1"/*; do
		if [ ! -f "$f" ] || [ -L "$f" ]; then
			continue
		fi
		case ${f##*/} in
		path | enable | connected | instance | discover) continue ;;
		# It is about other disks at the moment of connecting: restore_disk().
		only_path) continue ;;
		esac
		[[ $(stat -c %A "$f") == -rw* ]] || continue
		value=$(read_attribute "$f") || return
		guid=
		if [ "${f##*/}" = ia ]; then
			guid=$(guid_of "$value")
			# The adapter may be away.
			[ -n "$guid" ] || guid=$(saved_guid "$f" "$value")
		fi
		printf 'put\t%s\t%s\n' "${f#"$config"/}" "$value${guid:+$'\t'$guid}"
	done
}

save_links()
{
	local l

	for l in "$1"/*; do
		[ -L "$l" ] || continue
		printf 'link\t%s\t%s\n' "${l#"$config"/}" \
			"${2#"$config"/}/$(basename "$(readlink "$l")")"
	done
}

# Print directory $1 and its attributes: all that there is of a client.
save_dir()
{
	printf 'dir\t%s\n' "${1#"$config"/}"
	save_attributes "$1"
}

save_volume()
{
	local path enable

	path=$(read_attribute "$1/path") && enable=$(read_attribute "$1/enable") || return
	[ -n "$path" ] || return 0
	printf 'dir\t%s\n' "${1#"$config"/}"
	# The path comes first: setting it clears the UUIDs.
	printf 'put\t%s\t%s\n' "${1#"$config"/}/path" "$path"
	save_attributes "$1" || return
	[ "$enable" = 0 ] || printf 'on\t%s\n' "${1#"$config"/}/enable"
}

save_subsystem()
{
	save_dir "$1" || return
	save_links "$1/allowed_clients" "$tgt/clients"
	save_each save_volume "$1"/namespaces/*/
}

save_port()
{
	save_dir "$1" || return
	save_links "$1/subsystems" "$tgt/subsystems"
}

save_disk()
{
	local state

	# Nobody wants it back, and it may have a secret.
	! is_temporary "$1" || return 0
	state=$(read_attribute "$1/state") && save_dir "$1" || return
	[ "$state" = idle ] || printf 'on\t%s\n' "${1#"$config"/}/connected"
}

# save_each FUNCTION DIRECTORY...: print what FUNCTION prints of each, but for one that another
# process removes meanwhile. Fails if something cannot be read.
save_each()
{
	local d text

	for d in "${@:2}"; do
		if ! text=$("$1" "${d%/}"); then
			[ ! -e "$d" ] || return
			continue
		fi
		[ -z "$text" ] || printf '%s\n' "$text"
	done
}

save_all()
{
	save_each save_dir "$tgt"/clients/*/ &&
		save_each save_subsystem "$tgt"/subsystems/*/ &&
		save_each save_port "$tgt"/ports/*/ &&
		save_each save_disk "$ini"/*/
}

# Print what module $1 has.
what_of()
{
	case $1 in
	kdapl_blk) echo disks ;;
	kdapl_blk_tgt) echo exports ;;
	esac
}

# Print the module that has what $1 names.
module_of()
{
	case $1 in
	exports) echo kdapl_blk_tgt ;;
	disks) echo kdapl_blk ;;
	esac
}

# The module knows all that was saved, since "restore" or "save" has seen to that: a note for exports
# and one for disks. It has the number of the module's directory, which is another one when
# the module is loaded anew, and a sum of the saved file. KDAPL_RUN stands for /run.
known_note() { echo "${KDAPL_RUN:-/run}/kdapl-blk.$1"; }
number_of() { stat -c %i "$config/$(module_of "$1")" 2>/dev/null; }
knowledge_of() { echo "$(number_of "$1") $(cksum <"$saved")"; }

# each_of [exports|disks]: print these words, without an argument both
each_of() { echo "${1:-exports disks}"; }

# note_all_known [exports|disks]
note_all_known()
{
	local what

	for what in $(each_of "$1"); do
		[ -z "$(number_of "$what")" ] || knowledge_of "$what" >"$(known_note "$what")"
	done 2>/dev/null
}

# "stop" leaves a sign for a "restore" that is going on, and takes the note away: "save" must not
# forget what is away for the time being.
was_stopped()
{
	local what

	for what in $(each_of "$1"); do
		[ ! -e "$(known_note "$what").stopped" ] || return 0
	done
	return 1
}

# unknown exports|disks: print the names of those that were saved and are not here, unless all is
# known. Status 1 if there are none.
unknown()
{
	local verb file _ object names=()

	[ -r "$saved" ] || return
	[ "$(cat "$(known_note "$1")" 2>/dev/null)" != "$(knowledge_of "$1")" ] || return
	while IFS=$'\t' read -r verb file _; do
		[ "$verb" = dir ] && [[ $file == "$(module_of "$1")"/* ]] && [ ! -d "$config/$file" ] ||
			continue
		object_of "$file"
		[[ " ${names[*]} " == *" ${object##*/} "* ]] || names+=("${object##*/}")
	done <"$saved"
	[ ${#names[@]} -gt 0 ] && echo "${names[*]}"
}

# object_of FILE: leave the disk, client, subsystem or port that it belongs to in "object"
object_of()
{
	local first second third _

	IFS=/ read -r first second third _ <<<"$1"
	object=$first/$second
	[ "$first" = kdapl_blk ] || object+=/$third
}

# Have systemd stop all that was saved in order at the next shutdown: units that were enabled
# when nothing was saved yet are not active in this boot. KDAPL_RUN stands for /run.
start_units()
{
	local unit units=() wait=()

	[ -d "${KDAPL_RUN:-/run}/systemd/system" ] || return 0
	# The units restore this file, and no other.
	[ "$saved" = /etc/kdapl-blk/saved ] || [ -n "${KDAPL_RUN-}" ] || return 0
	for unit in kdapl-blk-target.service kdapl-blk-shutdown.service; do
		systemctl --quiet is-enabled "$unit" 2>/dev/null || continue
		systemctl --quiet is-active "$unit" || units+=("$unit")
	done
	# While the host boots, what starts them may be waiting for this command.
	[[ $(systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]] ||
		wait=(--no-block)
	for unit in "${units[@]}"; do
		systemctl "${wait[@]}" start "$unit" 2>/dev/null && continue
		echo "$me: all is saved, but exports and disks are not stopped in order at the" \
			"next shutdown before: systemctl start ${units[*]}" >&2
		return
	done
}

cmd_save()
{
	local mark module text said_why names

	[ $# -eq 0 ] || wrong "save: no argument is wanted"
	for mark in "$saved".left-out.*; do
		[ ! -e "$mark" ] ||
			die "$saved has more than was restored: restore it first, or remove $mark"
	done
	for module in kdapl_blk_tgt kdapl_blk; do
		[ -d "$config/$module" ] || ! grep -qs "^dir	$module/" "$saved" || die "$saved has" \
			"$(what_of $module), and $module.ko is not loaded:" \
			"\"$me restore $(what_of $module)\" first, or remove $saved"
		! names=$(unknown "$(what_of $module)") || die "$saved has $(what_of $module) that are not" \
			"here, and nothing is known of their being restored and taken away since" \
			"$module.ko was loaded: $names: \"$me restore $(what_of $module)\" first, or" \
			"remove $saved"
	done
	[ -d "$tgt" ] || [ -d "$ini" ] || [ -e "$saved" ] ||
		die "neither kdapl_blk_tgt.ko nor kdapl_blk.ko is loaded, so there is nothing to save"
	text=$(save_all) || exit
	# The file has secrets in it.
	umask 077
	# The former file stays until the new one is whole, and on the medium.
	said_why=$({ mkdir -p "$(dirname "$saved")" &&
		printf '%s' "${text:+$text$'\n'}" >"$saved.new" &&
		sync_one "$saved.new" && mv "$saved.new" "$saved"; } 2>&1) || {
		rm -f "$saved.new" 2>/dev/null
		die "cannot write $saved.new: ${said_why##*: }"
	}
	note_all_known
	start_units
}

# Connect the disk in directory $1, unless it is connected, or waits to be connected again.
restore_disk()
{
	local wait_for=''

	[ "$(cat "$1/state")" = idle ] || return 0
	disk=${1##*/} ia=$(cat "$1/ia") address=$(cat "$1/address") port=$(cat "$1/conn_qual")
	name=$(cat "$1/subsystem") number=$(cat "$1/namespace")
	(check_ia "$ia") || exit
	# A further path to the volume may have been restored before this disk.
	[ ! -e "$1/only_path" ] || put 0 "$1/only_path" only_path
	connect_disk
}

# Make what one line says, unless it is there already.
restore_line()
{
	local verb=$1 file=$config/$2 value=$3 guid

	case /$2/$3/ in
	*/../*) die "$saved: $2 is not ours" ;;
	esac
	case $verb in
	dir) [ -d "$file" ] || make_dir "$file" "$file" ;;
	put)
		# Earlier versions saved it; a disk that is connected has another one.
		[ "${file##*/}" != only_path ] || return 0
		if [ "${file##*/}" = ia ]; then
			IFS=$'\t' read -r value guid <<<"$value"
			if ! value=$(present_ia "$value" "$guid"); then
				# A port that is in use stays.
				[[ $2 != kdapl_blk_tgt/* ]] || rmdir "${file%/*}" 2>/dev/null
				exit 1
			fi
		fi
		[ "$(cat "$file")" = "$value" ] && return
		# An error message may show the name of a key, but no other secret.
		case $2=$3 in
		*/secret=key:*) put "$value" "$file" "$2: $value" ;;
		*) put "$value" "$file" "$2" ;;
		esac
		;;
	link) [ -e "$file" ] || ln -s "$config/$value" "$file" ||
		{ kernel_says; die "cannot make $file"; } ;;
	on)
		case $2 in
		*/enable) [ "$(cat "$file")" = 1 ] || enable_volume "${file%/*}" ;;
		*) restore_disk "${file%/*}" ;;
		esac
		;;
	*) die "$saved: there is no $verb" ;;
	esac
}

# mark_left_out WHAT: keep "save" from forgetting what is not restored yet, exports or disks, or
# all; with a second argument, from now on no more. Fails if no mark can be made.
mark_left_out()
{
	local what

	for what in exports disks; do
		[ "${1:-$what}" = "$what" ] || continue
		if [ $# -gt 1 ]; then
			rm -f "$saved.left-out.$what"
		else
			touch "$saved.left-out.$what" 2>/dev/null || return
		fi
	done
}

# What former tries of this command have left: objects that are whole, or were taken away by an
# administrator, and others that were there. Each try is a process of its own, which appends to a
# file without a name.
declare -A whole=() seen=()
keep_tries()
{
	local file

	file=$(mktemp) || exit
	exec {does}>>"$file" {did}<"$file"
	rm "$file"
}

read_tries()
{
	local state object

	seen=()
	while IFS=$'\t' read -r -u "$did" state object; do
		case $state in
		whole) whole[$object]=1 ;;
		seen) seen[$object]=1 ;;
		esac
	done
}

# is_over OBJECT: whether there is nothing more to be made of it
is_over()
{
	[ -z "${whole[$1]-}" ] || return 0
	[ -n "${seen[$1]-}" ] && [ ! -d "$config/$1" ] || return
	whole[$1]=1
	printf 'whole\t%s\n' "$1" >&"$does"
}

# leads_nowhere VERB VALUE: whether it is a link to an object that was taken away
leads_nowhere()
{
	local object

	[ "$1" = link ] && [ ! -d "$config/$2" ] || return
	object_of "$2"
	is_over "$object"
}

# restore_one VERB FILE VALUE: make what a line says, unless what it belongs to cannot be had
restore_one()
{
	local verb=$1 file=$2 value=$3 owner

	case $verb in
	on) owner=${file%/*} ;;
	link) owner=$value ;;
	*) owner= ;;
	esac
	[ -z "${shut[${owner:--}]-}${shut[${file%/subsystems/*}]-}" ] &&
		[ "${shut[${file%/*}]-}" != away ] || return
	(restore_line "$verb" "$file" "$value") && return
	status=1
	case $verb$file in
	put*/secret) shut[${file%/*}]=1 ;;
	put*/ia) shut[${file%/*}]=away ;;
	esac
	return 1
}

# restore_all [exports|disks]: make what was saved, but for what an administrator has taken away
# since this command has made it. Fails if not all of it can be made.
restore_all()
{
	local verb file value object status=0 what=$1 marked=1
	# Disks and clients whose secrets cannot be set: without a secret they would be open.
	# Disks and ports without their adapters are "away".
	local -A shut=() tried=()

	mark_log
	mark_left_out "$what" || marked=
	while IFS=$'\t' read -r verb file value; do
		case $what$file in
		exportskdapl_blk/* | diskskdapl_blk_tgt/*) continue ;;
		esac
		case $file in
		kdapl_blk/?* | kdapl_blk_tgt/?*) ;;
		*)
			echo "$me: $saved: ${file:-a line without a name} is not ours" >&2
			status=1
			continue
			;;
		esac
		need "${file%%/*}" "$config/${file%%/*}"
		object_of "$file"
		! is_over "$object" && ! leads_nowhere "$verb" "$value" || continue
		tried[$object]=${tried[$object]:-whole}
		restore_one "$verb" "$file" "$value" || tried[$object]=seen
	done <"$saved"
	for object in "${!tried[@]}"; do
		[ ! -d "$config/$object" ] || printf '%s\t%s\n' "${tried[$object]}" "$object" >&"$does"
	done
	if was_stopped "$what"; then
		echo "$me: \"$me stop\" has taken away what was restored" >&2
		status=1
	elif [ "$status" -eq 0 ]; then
		mark_left_out "$what" no_more
		note_all_known "$what"
	elif [ -z "$marked" ]; then
		echo "$me: cannot note in ${saved%/*} that not all is restored: do not save before it is" >&2
	fi
	return $status
}

cmd_restore()
{
	local what=${1-} told='' tell one numbers=''

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) wrong "restore: \"exports\" or \"disks\" is wanted" ;;
	esac
	[ -f "$saved" ] && [ -r "$saved" ] || die "there is no $saved; \"$me save\" makes it"
	for one in $(each_of "$what"); do
		rm -f "$(known_note "$one").stopped" 2>/dev/null
	done
	keep_tries
	# An error is printed once, and again when it has changed.
	until tell=$(restore_all "$what" 2>&1); do
		[ "$tell" = "$told" ] || echo "$tell" >&2
		told=$tell
		! was_stopped "$what" && may_wait || exit 1
		read_tries
		numbers=${numbers:-$(number_of exports) $(number_of disks)}
		sleep 5
		[ "$numbers" = "$(number_of exports) $(number_of disks)" ] ||
			die "a module was loaded anew, or unloaded, meanwhile"
	done
	[ -z "$tell" ] || echo "$tell" >&2
}

# side_by_side FUNCTION DIRECTORY...: call it for each, so that one that hangs holds up no other.
# Fails if one does.
side_by_side()
{
	local d ends=() status=0

	# A process in the background would not hear of an interrupt.
	trap 'kill "${ends[@]}" 2>/dev/null; exit 130' INT TERM
	for d in "${@:2}"; do
		(keep_errors; "$1" "${d%/}") &
		ends+=($!)
	done
	for d in "${ends[@]}"; do
		wait "$d" || status=1
	done
	trap - INT TERM
	return $status
}

unexport_directory() { cmd_unexport "$(basename "$1")"; }

cmd_stop()
{
	local one status=0 what=${1-}

	case $#$what in
	0 | 1exports | 1disks) ;;
	*) wrong "stop: \"exports\" or \"disks\" is wanted" ;;
	esac
	for one in $(each_of "$what"); do
		rm -f "$(known_note "$one")"
		touch "$(known_note "$one").stopped"
	done 2>/dev/null
	[ "$what" = exports ] || side_by_side take_away "$ini"/*/ || status=1
	[ "$what" = disks ] || side_by_side unexport_directory "$tgt"/subsystems/*/ || status=1
	exit $status
}
