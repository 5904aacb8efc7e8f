# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test: the measurements in $work/runs and $work/hist.<run>, as a table, as JSON and
# as a plot. All three are made of $work/summary, which has a line for each contender and
# size: medians of its runs, and of the main figure the least and the greatest.

# summarize: make $work/summary, and $work/merged, the histograms of all runs of a line of
# the summary: its number, the bounds of a bucket in ns, and how many were in there.
summarize()
{
	awk -v command="$command" '
		# Sort the values of a group into sorted[1] to sorted[n].
		function sort(g, name,	list, i, j, v) {
			n = split(substr(values[g, name], 2), list, " ")
			for (i = 1; i <= n; i++) {
				v = list[i] + 0
				for (j = i - 1; j >= 1 && sorted[j] > v; j--)
					sorted[j + 1] = sorted[j]
				sorted[j + 1] = v
			}
			return n
		}
		function number(name, v) { printf " %s=%.10g", name, v }
		function median(g, name) {
			sort(g, name)
			number(name, (sorted[int((n + 1) / 2)] + sorted[int(n / 2) + 1]) / 2)
		}
		function spread(g, name) {
			median(g, name)
			number(name "_from", sorted[1])
			number(name "_to", sorted[n])
		}
		function total(g, name, as,	i, sum) {
			sort(g, name)
			for (i = 1; i <= n; i++)
				sum += sorted[i]
			number(as, sum)
		}
		{
			delete v
			for (i = 1; i <= NF; i++) {
				split($i, part, "=")
				v[part[1]] = part[2]
			}
			if (!((v["over"], v["size"]) in group)) {
				group[v["over"], v["size"]] = ++groups
				head[groups] = sprintf("over=%s op=%s size=%s eps=%s", v["over"], v["op"],
					v["size"], v["eps"])
			}
			g = group[v["over"], v["size"]]
			runs[g]++
			s = (v["ns"] > 0 ? v["ns"] : 1) / 1e9
			v["rate"] = v["ops"] / s
			v["bytes_rate"] = v["bytes"] / s
			if ("kib" in v)
				v["kib"] = v["kib"] / v["eps"]
			for (name in v)
				values[g, name] = values[g, name] " " v[name]
		}
		END {
			for (g = 1; g <= groups; g++) {
				printf "%s runs=%d", head[g], runs[g]
				total(g, "ops", command == "conns" ? "connections" : "messages")
				if (command == "conns")
					total(g, "failed", "failed")
				if (command != "lat")
					spread(g, "rate")
				if (command == "bw" || command == "msgs")
					spread(g, "bytes_rate")
				if ((g, "p50") in values) {
					sort(g, "min")
					number("min", sorted[1])
					spread(g, "p50")
					median(g, "p90")
					median(g, "p99")
					median(g, "p999")
					sort(g, "max")
					number("max", sorted[n])
				}
				if ((g, "kib") in values)
					spread(g, "kib")
				print ""
			}
		}
	' "$work/runs" >"$work/summary"
	awk -v work="$work" '
		{
			for (i = 1; i <= NF; i++) {
				split($i, part, "=")
				v[part[1]] = part[2]
			}
			if (!((v["over"], v["size"]) in group))
				group[v["over"], v["size"]] = ++groups
			g = group[v["over"], v["size"]]
			file = work "/hist." NR
			while ((getline line < file) > 0) {
				split(line, b, " ")
				count[g " " b[1] " " b[2]] += b[3]
			}
		}
		END {
			for (bucket in count)
				print bucket, count[bucket]
		}
	' "$work/runs" | sort -n -k1,1 -k2,2 >"$work/merged"
}

# what_time: print what the times of a command are
what_time()
{
	case $command,$op in
	lat,send) echo "one way" ;;
	lat,*) echo "until completion" ;;
	conns,*) echo "until established" ;;
	esac
}

# table: print the table of a command
table()
{
	awk -v command="$command" -v time="$(what_time)" '
		{
			delete v
			for (i = 1; i <= NF; i++) {
				split($i, part, "=")
				v[part[1]] = part[2]
			}
			name = v["over"] " " v["op"]
			of = v["runs"] == 1 ? "1 run" : v["runs"] " runs"
		}
		function range(format, from, to) {
			return sprintf(format "-" format, from, to)
		}
		command == "lat" {
			if (NR == 1)
				printf "%-20s %8s %9s %8s %8s %15s %8s %8s %8s %8s\n", "us, " time,
					"bytes", "messages", "min", "p50", "p50 of " of, "p90", "p99",
					"p99.9", "max"
			printf "%-20s %8d %9d %8.2f %8.2f %15s %8.2f %8.2f %8.2f %8.2f\n", name,
				v["size"], v["messages"], v["min"] / 1e3, v["p50"] / 1e3,
				range("%.2f", v["p50_from"] / 1e3, v["p50_to"] / 1e3), v["p90"] / 1e3,
				v["p99"] / 1e3, v["p999"] / 1e3, v["max"] / 1e3
		}
		command == "bw" || command == "msgs" {
			spread = range("%.0f", v["rate_from"], v["rate_to"])
			if (command == "bw")
				spread = range("%.1f", v["bytes_rate_from"] / 1e6, v["bytes_rate_to"] / 1e6)
			if (NR == 1)
				printf "%-14s %8s %5s %10s %11s %9s %9s %21s\n", "", "bytes", "EPs",
					"messages", "messages/s", "MB/s", "Gbit/s",
					(command == "bw" ? "MB/s of " : "messages/s of ") of
			printf "%-14s %8d %5d %10d %11.0f %9.1f %9.3f %21s\n", name, v["size"], v["eps"],
				v["messages"], v["rate"], v["bytes_rate"] / 1e6, v["bytes_rate"] * 8 / 1e9,
				spread
		}
		command == "conns" {
			if (NR == 1)
				printf "%-8s %5s %11s %7s %8s %13s %8s %8s %8s %9s %13s\n", "", "EPs",
					"connections", "failed", "a second", "of " of, "p50 ms", "p99 ms",
					"max ms", "KiB each", "of " of
			printf "%-8s %5d %11d %7d %8.0f %13s %8.2f %8.2f %8.2f %9s %13s\n", v["over"],
				v["eps"], v["connections"], v["failed"], v["rate"],
				range("%.0f", v["rate_from"], v["rate_to"]), v["p50"] / 1e6,
				v["p99"] / 1e6, v["max"] / 1e6,
				("kib" in v) ? sprintf("%.1f", v["kib"]) : "-",
				("kib" in v) ? range("%.1f", v["kib_from"], v["kib_to"]) : "-"
		}
	' "$work/summary"
}

# json_object WORD...: print KEY=VALUE words as the members of an object
json_object()
{
	local word comma=''

	for word in "$@"; do
		case $word in
		over=* | op=*) printf '%s"%s": "%s"' "$comma" "${word%%=*}" "${word#*=}" ;;
		*) printf '%s"%s": %s' "$comma" "${word%%=*}" "${word#*=}" ;;
		esac
		comma=', '
	done
}

# write_json FILE: write all figures as JSON. Times are in ns, rates a second.
write_json()
{
	local n=0 line comma='' time

	time=$(what_time)
	{
		printf '{"command": "%s", "kernel": "%s", "ia": "%s", "peer": "%s",\n' \
			"$command" "$(uname -r)" "$ia" "$peer"
		[ -z "$time" ] || printf '"time": "%s", "time_unit": "ns",\n' "$time"
		echo '"summary": ['
		while read -r line; do
			# shellcheck disable=SC2086
			printf '%s{%s}\n' "$comma" "$(json_object $line)"
			comma=,
		done <"$work/summary"
		echo '], "runs": ['
		comma=''
		while read -r line; do
			n=$((n + 1))
			# shellcheck disable=SC2086
			printf '%s{%s, "histogram": [' "$comma" "$(json_object $line)"
			awk '{ printf "%s[%s, %s, %s]", (NR > 1 ? ", " : ""), $1, $2, $3 }' "$work/hist.$n"
			echo ']}'
			comma=,
		done <"$work/runs"
		echo ']}'
	} >"$1" || die "cannot write $1"
}
