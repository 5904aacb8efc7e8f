# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kdapl-stat: make the table @table of objects, one a line, of words "key=value": the lines
# of /proc/kdapl, each with its kind. Rows have two numbers to sort by in front, the largest
# is first. @peer: only these addresses, if any, with blanks around each. @per: the seconds since
# the objects with before=1.

function heads(list)
{
	gsub(/ /, "\t", list)
	print "-\t-\t" list
}

function is_wanted()
{
	return peer == "" || index(peer, " " host(f["remote"]) " ")
}

# How many of @now - @before there were a second; nothing if that is not known.
function rate(now, before)
{
	return per ? sprintf("%.0f", now > before ? (now - before) / per : 0) : ""
}

function add_peer(	key)
{
	key = host(f["remote"]) "\t" f["adapter"] "\t" f["module"]
	if (f["before"]) {
		old[key] += f["taken"]
		return
	}
	conns[key]++
	held[key] += f["held"]
	taken[key] += f["taken"]
	soft[key] += f["soft_crossed"]
	if (!since[key] || f["since"] < since[key])
		since[key] = f["since"]
}

function ends_of(	key, list)
{
	broken = 0
	for (key in f)
		if (key ~ /^end_/ && f[key] > 0) {
			list = list (list == "" ? "" : " ") substr(key, 5) ":" f[key]
			if (key ~ /^end_(hard-mark|queue-dry|transport|protocol|unplug)$/)
				broken += f[key]
		}
	return list
}

BEGIN {
	OFS = "\t"
	if (table == "peers")
		heads("PEER ADAPTER MODULE CONNECTIONS HELD TAKEN TAKEN/S SOFT_MARKS SINCE")
	else if (table == "connections")
		heads("PEER LOCAL ADAPTER MODULE HELD TAKEN SOFT HARD SOFT_MARKS REQUESTS SINCE")
	else if (table == "queues")
		heads("ADAPTER MODULE SIZE AVAILABLE OUTSTANDING LOW_MARK RAN_LOW TAKEN TAKEN/S RECOVERED SINCE")
	else if (table == "modules")
		heads("ADAPTER MODULE CONNECTIONS ESTABLISHED REQUESTS REJECTED TURNED_AWAY RAN_LOW SOFT_MARKS BROKEN ENDS SINCE")
	else if (table == "targets")
		heads("ADAPTER MODULE CONNECTIONS BUFFERS RESERVED REQUESTS REFUSED LOGINS CALLS ERRORS EXCEEDED BROKEN PINGS")
	else if (table == "clients")
		heads("PEER CLIENT ADAPTER MODULE STATE WINDOW HELD POSTED WAITING")
	else if (table == "ends")
		heads("ENDED REASON PEER LOCAL ADAPTER MODULE HELD HARD AVAILABLE SINCE")
	else
		heads("DISK DEVICE STATE PEER READS READ_MS WRITES WRITE_MS FLUSHES FLUSH_MS")
}

{ parse() }

f["kind"] == "ep" && f["state"] ~ /_(CONNECTED|DISCONNECT_PENDING)$/ {
	if (!f["before"])
		live[f["ia"]]++
	if (!is_wanted())
		next
	if (table == "peers")
		add_peer()
	else if (table == "connections")
		print f["held"], f["taken"], f["remote"], f["local"], f["adapter"], f["module"],
			f["held"], f["taken"], f["soft"], f["hard"], f["soft_crossed"],
			f["requests"], f["since"]
}

f["kind"] == "srq" && table == "queues" {
	if (f["before"])
		old[f["srq"]] = f["taken"]
	else
		print f["low_crossed"], f["taken"], f["adapter"], f["module"], f["size"],
			f["available"], f["outstanding"], f["low"], f["low_crossed"], f["taken"],
			rate(f["taken"], old[f["srq"]]), f["recovered"], f["since"]
}

f["kind"] == "ia" && table == "modules" && !f["before"] {
	ends = ends_of()
	n = ++ias
	ia[n] = f["ia"]
	front[n] = adapter() "\t" f["module"]
	rest[n] = f["established"] "\t" f["requests"] "\t" f["rejected"] "\t" f["turned_away"] \
		"\t" f["low_crossed"] "\t" f["soft_crossed"] "\t" broken "\t" ends "\t" f["since"]
}

function adapter()
{
	return f["adapter"] (f["gone"] + 0 ? " (gone)" : "")
}

f["kind"] == "target" && table == "targets" && !f["before"] {
	print f["connections"], f["requests"], adapter(), f["module"], f["connections"],
		f["buffers"], f["reserved"], f["requests"], f["refused"], f["logins"], f["calls"],
		f["errors"], f["exceeded"], f["broken"], f["pings"]
}

# Messages that are not answered: kdapl_isert has them as unread.
f["kind"] == "client" && table == "clients" && !f["before"] && is_wanted() {
	unanswered = "unread" in f ? f["unread"] : f["held"]
	print unanswered, f["posted"], f["remote"], "initiator" in f ? f["initiator"] : "-",
		f["adapter"], f["module"], f["state"], f["window"], unanswered, f["posted"], f["waiting"]
}

f["kind"] == "end" && table == "ends" && !f["before"] && is_wanted() {
	print f["at"], FNR, f["at"], f["reason"], f["remote"], f["local"], f["adapter"],
		f["module"], f["held"], f["hard"], f["available"], f["since"]
}

function mean(ms, n)
{
	return n > 0 ? sprintf("%.2f", ms / n) : ""
}

f["kind"] == "disk" && table == "disks" && !f["before"] {
	take_latency()
	print f["reads"] + f["writes"], 0, f["disk"], f["device"], f["state"], f["peer"],
		f["reads"], mean(f["read_ms"], f["reads"]), f["writes"],
		mean(f["write_ms"], f["writes"]), f["flushes"], mean(f["flush_ms"], f["flushes"])
}

END {
	for (key in conns)
		print held[key], taken[key], key, conns[key], held[key], taken[key],
			rate(taken[key], old[key]), soft[key], since[key]
	for (n = 1; n <= ias; n++)
		print live[ia[n]] + 0, 0, front[n], live[ia[n]] + 0, rest[n]
}
