# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test: the measurements in $work/runs and $work/hist.<run>, as a table, as JSON and
# as a plot.

# Print the table of a command, from $work/runs.
table()
{
	awk -v command="$command" '
		{
			delete v
			for (i = 1; i <= NF; i++) {
				split($i, part, "=")
				v[part[1]] = part[2]
			}
			s = v["ns"] / 1e9
			if (s == 0)
				s = 1e-9
			name = v["over"] " " v["op"]
		}
		command == "lat" {
			# A Send is there and back: a message takes half of it.
			half = v["op"] == "send" ? 2000 : 1000
			if (NR == 1)
				printf "%-14s %8s %9s %9s %9s %9s %9s %9s %9s\n", "us", "bytes", "messages",
					"min", "p50", "p90", "p99", "p99.9", "max"
			printf "%-14s %8d %9d %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, v["size"],
				v["n"], v["min"] / half, v["p50"] / half, v["p90"] / half,
				v["p99"] / half, v["p999"] / half, v["max"] / half
		}
		command == "bw" || command == "msgs" {
			if (NR == 1)
				printf "%-14s %8s %6s %10s %12s %10s %9s\n", "", "bytes", "EPs", "messages",
					"messages/s", "MB/s", "Gbit/s"
			printf "%-14s %8d %6d %10d %12.0f %10.1f %9.3f\n", name, v["size"], v["eps"],
				v["ops"], v["ops"] / s, v["bytes"] / s / 1e6, v["bytes"] * 8 / s / 1e9
		}
		command == "conns" {
			if (NR == 1)
				printf "%-8s %6s %12s %8s %8s %10s %10s %10s %12s\n", "", "EPs", "connections",
					"failed", "a second", "p50 ms", "p99 ms", "max ms", "KiB for each"
			printf "%-8s %6d %12d %8d %8.0f %10.2f %10.2f %10.2f %12.1f\n", v["over"], v["eps"],
				v["ops"], v["failed"], v["ops"] / s, v["p50"] / 1e6, v["p99"] / 1e6,
				v["max"] / 1e6, v["kib"] / v["eps"]
		}
	' "$work/runs"
}

# write_json FILE: write all figures as JSON.
write_json()
{
	local n=0 line word comma='' inner

	{
		printf '{"command": "%s", "kernel": "%s", "ia": "%s", "peer": "%s", "runs": [' \
			"$command" "$(uname -r)" "$ia" "$peer"
		while read -r line; do
			n=$((n + 1))
			printf '%s\n{' "$comma"
			inner=''
			for word in $line; do
				case $word in
				over=* | op=*) printf '%s"%s": "%s"' "$inner" "${word%%=*}" "${word#*=}" ;;
				*) printf '%s"%s": %s' "$inner" "${word%%=*}" "${word#*=}" ;;
				esac
				inner=', '
			done
			printf ', "histogram": ['
			awk '{ printf "%s[%s, %s, %s]", (NR > 1 ? ", " : ""), $1, $2, $3 }' "$work/hist.$n"
			printf ']}'
			comma=,
		done <"$work/runs"
		printf '\n]}\n'
	} >"$1" || die "cannot write $1"
}

# write_svg FILE: plot latencies as a histogram, or rates over the size of a message.
write_svg()
{
	awk -v command="$command" -v runs="$work/runs" -v work="$work" -v title="$ia to $peer: $command" '
		function x(v) { return 70 + 700 * (log(v) - log(x0)) / (log(x1) - log(x0)) }
		function y(v) { return 330 - 290 * v / y1 }
		function text(at, line, what, more) {
			printf "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", at, line, more, what
		}
		function unit(ns) {
			if (ns < 1000)
				return ns " ns"
			if (ns < 1e6)
				return ns / 1e3 " us"
			return ns < 1e9 ? ns / 1e6 " ms" : ns / 1e9 " s"
		}
		BEGIN {
			split("#024 #c40 #080 #909 #088 #840 #44c #888", colour, " ")
			x0 = 1e18
			while ((getline line < runs) > 0) {
				n++
				nwords = split(line, words, " ")
				for (i = 1; i <= nwords; i++) {
					split(words[i], part, "=")
					v[n, part[1]] = part[2]
				}
				hist = command == "lat" || command == "conns"
				label = v[n, "over"] " " v[n, "op"] (hist ? ", " v[n, "size"] " bytes" : "")
				if (!(label in series)) {
					series[label] = ++nseries
					name[nseries] = label
				}
				s = series[label]
				if (hist) {
					file = work "/hist." n
					while ((getline line < file) > 0) {
						split(line, b, " ")
						k = ++points[s]
						px[s, k] = (b[1] + b[2]) / 2
						py[s, k] = 100 * b[3] / v[n, "n"]
					}
				} else {
					k = ++points[s]
					px[s, k] = v[n, "size"]
					py[s, k] = (command == "bw" ? v[n, "bytes"] / 1e6 : v[n, "ops"]) / v[n, "ns"] * 1e9
				}
			}
			for (s = 1; s <= nseries; s++)
				for (k = 1; k <= points[s]; k++) {
					if (px[s, k] < x0) x0 = px[s, k]
					if (px[s, k] > x1) x1 = px[s, k]
					if (py[s, k] > y1) y1 = py[s, k]
				}
			if (x0 < 1) x0 = 1
			if (x1 <= x0) { x1 = x0 * 2; x0 = x0 / 2 }
			if (y1 <= 0) y1 = 1
			print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"380\" font-family=\"sans-serif\" font-size=\"12\">"
			print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
			text(70, 20, title, "font-weight=\"bold\"")
			for (i = 0; i <= 4; i++) {
				at = y1 * i / 4
				printf "<line x1=\"70\" x2=\"770\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", y(at), y(at)
				text(64, y(at) + 4, sprintf("%.3g", at), "text-anchor=\"end\"")
			}
			for (at = 1; at <= x1; at *= (hist ? 10 : 4))
				if (at >= x0) {
					printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"40\" y2=\"330\" stroke=\"#ddd\"/>\n", x(at), x(at)
					text(x(at), 346, hist ? unit(at) : at, "text-anchor=\"middle\"")
				}
			axes = "bytes of a message; " (command == "bw" ? "MB/s" : "messages/s")
			if (hist)
				axes = "time; percent of all in each bucket"
			text(420, 368, axes, "text-anchor=\"middle\"")
			for (s = 1; s <= nseries; s++) {
				c = colour[(s - 1) % 8 + 1]
				printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", c
				for (k = 1; k <= points[s]; k++)
					printf "%.1f,%.1f ", x(px[s, k]), y(py[s, k])
				print "\"/>"
				for (k = 1; !hist && k <= points[s]; k++)
					printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(px[s, k]), y(py[s, k]), c
				text(790, 40 + 18 * s, name[s], "fill=\"" c "\"")
			}
			print "</svg>"
		}
	' >"$1" || die "cannot write $1"
}
