# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kdapl-stat latency -t: print rows of the histograms of objects "latency", as stat-objects.awk
# reads them. What an object with the word before=1 has was there before, and is subtracted.

BEGIN { print "DEVICE", "OPERATION", "FROM_US", "TO_US", "REQUESTS" }

{ parse() }

f["kind"] != "latency" { next }

{ is = f["disk"] SUBSEP f["device"] SUBSEP f["operation"] }

f["before"] {
	for (key in f)
		old[is, key] = f[key]
	next
}

# Print the row of the requests that took up to @to us, which @key counts with all faster ones.
function row(key, to,	n)
{
	n = f[key] - (anew ? 0 : old[is, key])
	if (n > below)
		print f["device"], f["operation"], from, to, n - below
	below = n
	from = to
}

{
	# A disk that was made meanwhile counts from zero.
	anew = f["requests"] + 0 < old[is, "requests"] + 0 || f["us"] + 0 < old[is, "us"] + 0
	from = below = 0
	for (us = 1; us < 2 ^ 40; us *= 2)
		if (("le_" us) in f)
			row("le_" us, us)
	row("requests", "inf")
}
