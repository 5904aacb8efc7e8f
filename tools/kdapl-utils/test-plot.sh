# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# kdapl-test: a plot of $work/summary and $work/merged.

# write_svg FILE: plot times as a histogram of all runs, or rates over the size of a message,
# each with a bar from the least to the greatest of the runs.
write_svg()
{
	awk -v command="$command" -v summary="$work/summary" -v merged="$work/merged" \
		-v time="$(what_time)" -v title="$ia to $peer: $command" '
		function x(v) { return 70 + 700 * (log(v) - log(x0)) / (log(x1) - log(x0)) }
		function y(v) { return 330 - 290 * v / y1 }
		function text(at, line, what, more) {
			printf "<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", at, line, more, what
		}
		function ns(v) {
			if (v < 1000)
				return v " ns"
			if (v < 1e6)
				return v / 1e3 " us"
			return v < 1e9 ? v / 1e6 " ms" : v / 1e9 " s"
		}
		function bytes(v) {
			if (v < 1024)
				return v " B"
			return v < 1048576 ? v / 1024 " KiB" : v / 1048576 " MiB"
		}
		# The greatest of 1, 2 and 5 times a power of ten that is not above v.
		function round_down(v,	p) {
			p = 10 ^ int(log(v) / log(10) - (v < 1) + 1e-9)
			return v >= 5 * p ? 5 * p : v >= 2 * p ? 2 * p : p
		}
		function after(v) { return round_down(v * 2.5 * 1.001) }
		function point(s, at, value, from, to,	k) {
			k = ++points[s]
			px[s, k] = at; py[s, k] = value; pfrom[s, k] = from; pto[s, k] = to
			if (!x0 || at < x0) x0 = at
			if (at > x1) x1 = at
			if (to > y1) y1 = to
		}
		function read_summary(	line, i, words, n, part, s) {
			while ((getline line < summary) > 0) {
				n = split(line, words, " ")
				g++
				for (i = 1; i <= n; i++) {
					split(words[i], part, "=")
					v[g, part[1]] = part[2]
				}
				s = v[g, "over"] " " v[g, "op"]
				if (command == "conns")
					s = v[g, "over"]
				else if (hist)
					s = s ", " bytes(v[g, "size"])
				if (!(s in series)) {
					series[s] = ++nseries
					name[nseries] = s
				}
				s = series[s]
				group[g] = s
				if (!hist)
					point(s, v[g, "size"], v[g, figure] / unit, v[g, figure "_from"] / unit,
						v[g, figure "_to"] / unit)
			}
		}
		function read_histograms(	line, b, all, part, k, lines, i) {
			while ((getline line < merged) > 0) {
				split(line, b, " ")
				lines[++k] = line
				all[b[1]] += b[4]
			}
			for (i = 1; i <= k; i++) {
				split(lines[i], b, " ")
				part = 100 * b[4] / all[b[1]]
				point(group[b[1]], (b[2] + b[3]) / 2, part, part, part)
			}
		}
		# Where the axes begin and end, and their steps.
		function axes(	step, at) {
			y_step = round_down(y1 / 4 > 0 ? y1 / 4 : 1)
			y1 = y_step * int(y1 / y_step + (y1 > y_step * int(y1 / y_step)))
			y1 = y1 ? y1 : y_step
			if (hist) {
				at = round_down(x0 < 1 ? 1 : x0)
				for (x0 = at; at < x1 || at <= x0; at = after(at))
					tick[++ticks] = at
			} else {
				for (at = 1; at * 4 <= x0; at *= 4)
					;
				for (x0 = at; at < x1 || at <= x0; at *= 4)
					tick[++ticks] = at
			}
			tick[++ticks] = at
			x1 = at
		}
		BEGIN {
			split("#024 #c40 #080 #909 #088 #840 #44c #888", colour, " ")
			hist = command == "lat" || command == "conns"
			figure = command == "bw" ? "bytes_rate" : "rate"
			unit = command == "bw" ? 1e6 : 1
			read_summary()
			if (hist)
				read_histograms()
			if (!x1) { x0 = 1; x1 = 2 }
			axes()
			print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"380\" font-family=\"sans-serif\" font-size=\"12\">"
			print "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
			text(70, 20, title, "font-weight=\"bold\"")
			for (i = 0; i * y_step <= y1 * 1.0001; i++) {
				at = i * y_step
				printf "<line x1=\"70\" x2=\"770\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", y(at), y(at)
				text(64, y(at) + 4, sprintf("%.10g", at), "class=\"y\" text-anchor=\"end\"")
			}
			# Labels need 50 pixels.
			for (i = 1; i <= ticks; i++) {
				printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"40\" y2=\"330\" stroke=\"#ddd\"/>\n", x(tick[i]), x(tick[i])
				if (i > 1 && x(tick[i]) - labelled < 50)
					continue
				labelled = x(tick[i])
				text(labelled, 346, hist ? ns(tick[i]) : bytes(tick[i]), "class=\"x\" text-anchor=\"middle\"")
			}
			label = "size of a message; " (command == "bw" ? "MB/s" : "messages/s") ", median of the runs"
			if (hist)
				label = "time " time "; percent of all in each bucket"
			text(420, 368, label, "text-anchor=\"middle\"")
			for (s = 1; s <= nseries; s++) {
				c = colour[(s - 1) % 8 + 1]
				printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", c
				for (k = 1; k <= points[s]; k++)
					printf "%.1f,%.1f ", x(px[s, k]), y(py[s, k])
				print "\"/>"
				for (k = 1; !hist && k <= points[s]; k++) {
					printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x(px[s, k]), y(py[s, k]), c
					printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x(px[s, k]), x(px[s, k]), y(pfrom[s, k]), y(pto[s, k]), c
				}
				text(790, 40 + 18 * s, name[s], "fill=\"" c "\"")
			}
			print "</svg>"
		}
	' >"$1" || die "cannot write $1"
}
