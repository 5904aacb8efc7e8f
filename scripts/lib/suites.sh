# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by what runs suites: which there are, and which of them $SUITE asks for.
# All of it is read from the sources, so that nothing needs to be built first.

: "${top:=}" "${others:=}"

# modules_of_suites [VARIABLE=VALUE]...: the modules kunit/*/<name>_test.ko, without
# "_test"; with KDAPL_SELFTEST=y those for kernels without KUnit
modules_of_suites()
{
	local kbuild

	for kbuild in "$top"/kunit/*/Kbuild; do
		run_make -rRs --no-print-directory -f - "src=${kbuild%/Kbuild}" \
			KBUILD_EXTMOD=y "$@" <<-'END'
			include $(src)/Kbuild
			all:; @printf '%s\n' $(basename $(obj-m))
		END
	done | sed -n 's/_test$//p'
}

# cases: "module suite.case" of each case
cases()
{
	awk '
		# The cases of @list are those of the suite at hand.
		function tell(list,    names, n, i)
		{
			sub(/,.*/, "", list)
			n = split(found[FILENAME, list], names, " ")
			for (i = 1; i <= n; i++)
				print module, suite "." names[i]
			suite = ""
		}
		FNR == 1 {
			module = FILENAME
			gsub(/.*\/|(_test)?\.c$/, "", module)
			list = suite = ""
		}
		match($0, /^static struct kunit_case [a-z0-9_]+\[/) {
			list = $4
			sub(/\[.*/, "", list)
		}
		match($0, /KUNIT_CASE[A-Z_]*\([A-Za-z0-9_]+/) {
			name = substr($0, RSTART, RLENGTH)
			sub(/.*\(/, "", name)
			found[FILENAME, list] = found[FILENAME, list] " " name
		}
		/^static struct kunit_suite / { suite = "?" }
		suite == "?" && /\.name = "/ { split($0, part, "\""); suite = part[2] }
		suite != "" && /\.test_cases = / { tell($3) }
		suite == "next" { suite = name; tell($1) }
		/^KD_SUITE\(/ {
			split($0, part, "\"")
			suite = name = part[2]
			if (NF > 1)
				tell($2)
			else
				suite = "next"
		}
	' "$top"/kunit/*/*.c
}

# choose_suites [VARIABLE=VALUE]...: make $chosen the modules that $SUITE, patterns of
# their names, asks for. If it is a pattern of suites or of suite.case instead, $chosen
# are the modules that have them and $filter is the pattern. $others are names that may
# be chosen and are no modules. $tests is what to build of the tests.
# shellcheck disable=SC2034	# for who sources this
choose_suites()
{
	local patterns pattern module name all found

	read -ra patterns <<<"${SUITE:-*}"
	mapfile -t all < <({ modules_of_suites "$@"; printf '%s\n' "${others[@]}"; } |
		grep .)
	chosen=() filter=
	for pattern in "${patterns[@]}"; do
		found=
		# The name of a file, as the shell completes it, is accepted too.
		name=${pattern##*/} name=${name%.c} name=${name%.ko} name=${name%_test}
		for module in "${all[@]}"; do
			# shellcheck disable=SC2053
			if [[ $module == $name ]]; then
				found=yes
				is_one_of "$module" "${chosen[@]}" ||
					chosen+=("$module")
			fi
		done
		if [ -z "$found" ] && [ ${#patterns[@]} -eq 1 ]; then
			choose_cases "$pattern"
			found=$filter
		fi
		[ -n "$found" ] ||
			wrong "SUITE=$pattern: there is no such suite. There are:" \
				"$(printf "%s\n" "${all[@]}" | sort | paste -sd " ")"
	done
	tests=1
	[ -z "${SUITE-}" ] || tests=${chosen[*]}
	# scripts/guest/tool has kdapl-test run these.
	! is_one_of tool "${chosen[@]}" || [ "$tests" = 1 ] || tests+=' names sp'
	[ "$tests" = 1 ] || { ! is_one_of race_isert "${chosen[@]}" &&
		! is_one_of race_svcrdma "${chosen[@]}"; } || tests+=' crowd'
}

# choose_cases PATTERN: the same for a pattern of suites or of suite.case
choose_cases()
{
	local module name

	while read -r module name; do
		# shellcheck disable=SC2053
		if [[ $name == $1 || ${name%%.*} == $1 ]] &&
				is_one_of "$module" "${all[@]}"; then
			filter=$1
			is_one_of "$module" "${chosen[@]}" || chosen+=("$module")
		fi
	done < <(cases)
}

# check_params: refuse what $PARAMS has for modules or parameters that do not exist
check_params()
{
	local param module name all

	mapfile -t all < <(modules_of_suites)
	for param in ${PARAMS-}; do
		module=${param%%.*} name=${param#*.} name=${name%%=*}
		[[ $param == ?*.?*=* ]] ||
			wrong "PARAMS=$param: module.name=value is wanted"
		if ! { is_one_of "${module%_test}" "${all[@]}" ||
				grep -qsE "^(obj-|kdapl-suites).*= .*\b$module\.o" "$top"/kunit/*/Kbuild; } ||
				! grep -qrE "^(module_param|KD_PARAM)\($name," "$top/kunit"; then
			wrong "PARAMS=$param: no module $module has a parameter $name"
		fi
	done
}

# suites_done DIR: how many modules the guests that leave their results in DIR have done
suites_done()
{
	grep -lE '^(suites|insmod):' "$1"/[0-9]*/*.status 2>/dev/null | wc -l
}
