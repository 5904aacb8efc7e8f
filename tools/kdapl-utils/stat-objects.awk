# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# For stat.awk and stat-metrics.awk: objects, one a line, of words "key=value".

# mawk has numbers beyond 2^31 in this format. What is no whole number is formatted by its user.
BEGIN { OFMT = CONVFMT = "%.0f" }

# Blanks and backslashes of names are octal, as in /proc/mounts. What is not printable stays so.
function plain(s,	i, n, part, out)
{
	if (!index(s, "\\"))
		return s
	gsub(/\\040/, " ", s)
	n = split(s, part, /\\134/)
	out = part[1]
	for (i = 2; i <= n; i++)
		out = out "\\" part[i]
	return out
}

function parse(	i, n, at, words)
{
	split("", f)
	n = split($0, words, " ")
	for (i = 1; i <= n; i++) {
		at = index(words[i], "=")
		f[substr(words[i], 1, at - 1)] = plain(substr(words[i], at + 1))
	}
	if (f["kind"] == "latency") {
		requests[f["disk"], f["operation"]] = f["requests"]
		took[f["disk"], f["operation"]] = f["us"]
	}
}

# Have the object of a disk count requests as those of their latency before it, if it has any.
function take_latency()
{
	take_kind("read", "reads")
	take_kind("write", "writes")
	take_kind("flush", "flushes")
}

function take_kind(operation, plural)
{
	if (!((f["disk"], operation) in requests))
		return
	f[plural] = requests[f["disk"], operation]
	f[operation "_ms"] = took[f["disk"], operation] / 1000
}

# Return the address without the port: 10.8.0.1:5200, [fd00::1]:5200
function host(addr)
{
	sub(/:[0-9]+$/, "", addr)
	gsub(/[][]/, "", addr)
	return addr
}
