# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# kdapl-stat metrics: print objects, as stat.awk reads them, and lines "count", kind, name,
# count, number, separated by tabs, as OpenMetrics text. @up: is kdapl.ko loaded? The names and
# labels are an interface: Documentation/kdapl-stat.rst lists them.

function label(name, value)
{
	gsub(/\\/, "\\\\&", value)
	gsub(/"/, "\\\"", value)
	return name "=\"" value "\""
}

# Declare a family; samples of one that is not declared are an error of this program.
function family(name, kind, text)
{
	names[++families] = name
	kinds[name] = kind
	help[name] = text
}

# Add @value to the sample of @name with these labels. A histogram has samples of several kinds,
# which differ by a suffix.
function add(name, labels, value, suffix)
{
	labels = suffix (labels == "" ? "" : "{" labels "}")
	if (!((name, labels) in sample)) {
		count[name]++
		label_of[name, count[name]] = labels
	}
	sample[name, labels] += value
}

BEGIN {
	family("kdapl_up", "gauge", "Whether kdapl.ko is loaded.")
	family("kdapl_connections", "gauge", "Connections of a module on an adapter with a peer.")
	family("kdapl_held_buffers", "gauge", "Receive buffers that a peer has filled and the module has not reaped.")
	family("kdapl_received_messages", "gauge", "Messages received on the connections that there are.")
	family("kdapl_connections_established", "counter", "Connections established.")
	family("kdapl_connection_requests", "counter", "Connection requests that arrived.")
	family("kdapl_connection_requests_rejected", "counter", "Connection requests that the module rejected.")
	family("kdapl_connection_requests_turned_away", "counter", "Connection requests for which there was no room or memory.")
	family("kdapl_ends", "counter", "Connections and attempts that ended, by reason.")
	family("kdapl_low_watermarks", "counter", "Low watermarks of receive queues that fired.")
	family("kdapl_soft_watermarks", "counter", "Soft high watermarks of Endpoints that fired.")
	family("kdapl_srq_size_buffers", "gauge", "Size of a shared receive queue.")
	family("kdapl_srq_available_buffers", "gauge", "Buffers that wait for messages.")
	family("kdapl_srq_outstanding_buffers", "gauge", "Buffers posted and not reaped.")
	family("kdapl_srq_low_watermark_buffers", "gauge", "Low watermark of a shared receive queue.")
	family("kdapl_srq_low_watermarks", "counter", "How often the low watermark of the queue fired.")
	family("kdapl_srq_recovered_buffers", "counter", "Buffers that the adapter lost and kDAPL found.")
	family("kdapl_target_buffers", "gauge", "Receive buffers of a target on an adapter.")
	family("kdapl_target_buffer_bytes", "gauge", "Memory of these.")
	family("kdapl_target_reserved_buffers", "gauge", "Buffers that clients may fill.")
	family("kdapl_target_refused", "counter", "Connection requests that a target refused.")
	family("kdapl_target_logins", "counter", "Sessions of initiators that began to serve commands.")
	family("kdapl_target_calls", "counter", "Messages of NFS clients.")
	family("kdapl_target_errors", "counter", "Calls of NFS clients answered with an error of the transport.")
	family("kdapl_target_exceeded", "counter", "Initiators cut off because they sent more than they may.")
	family("kdapl_target_broken", "counter", "Connections ended for what the client has done.")
	family("kdapl_target_pings", "counter", "NOP-Ins to initiators that were silent.")
	split("buffers reserved refused logins calls errors exceeded broken pings", of_targets, " ")
	family("kdapl_disk_connected", "gauge", "Whether a disk of kdapl_blk is connected.")
	family("kdapl_disk_requests", "counter", "Requests of a disk that completed.")
	family("kdapl_disk_request_seconds", "counter", "Time that these requests took, added up.")
	family("kdapl_disk_latency_seconds", "histogram", "Time that requests of a disk took.")
	family("kdapl_export_listening", "gauge", "Whether clients can connect to an export of kdapl_blk_tgt at a port.")
	family("kdapl_export_volumes", "gauge", "Volumes of an export that are enabled.")
	family("kdapl_blk_count", "gauge", "Counts of kdapl-blk stats.")
	add("kdapl_up", "", up)
	FS = "\t"
}

/^count\t/ {
	add("kdapl_blk_count", label("object", $2) "," label("name", $3) "," label("count", $4), $5)
	next
}

{
	parse()
	user = label("adapter", f["adapter"]) "," label("module", f["module"])
	disk = label("disk", f["disk"]) "," label("device", f["device"]) "," label("peer", f["peer"])
}

f["kind"] == "ep" && f["state"] ~ /_(CONNECTED|DISCONNECT_PENDING)$/ {
	labels = user "," label("peer", host(f["remote"]))
	add("kdapl_connections", labels, 1)
	add("kdapl_held_buffers", labels, f["held"])
	add("kdapl_received_messages", labels, f["taken"])
}

f["kind"] == "ia" {
	labels = user "," label("ia", f["ia"])
	add("kdapl_connections_established", labels, f["established"])
	add("kdapl_connection_requests", labels, f["requests"])
	add("kdapl_connection_requests_rejected", labels, f["rejected"])
	add("kdapl_connection_requests_turned_away", labels, f["turned_away"])
	add("kdapl_low_watermarks", labels, f["low_crossed"])
	add("kdapl_soft_watermarks", labels, f["soft_crossed"])
	for (key in f)
		if (key ~ /^end_/)
			add("kdapl_ends", labels "," label("reason", substr(key, 5)), f[key])
}

f["kind"] == "srq" {
	labels = user "," label("srq", f["srq"])
	add("kdapl_srq_size_buffers", labels, f["size"])
	add("kdapl_srq_available_buffers", labels, f["available"])
	add("kdapl_srq_outstanding_buffers", labels, f["outstanding"])
	add("kdapl_srq_low_watermark_buffers", labels, f["low"])
	add("kdapl_srq_low_watermarks", labels, f["low_crossed"])
	add("kdapl_srq_recovered_buffers", labels, f["recovered"])
}

f["kind"] == "target" {
	user = user "," label("ia", f["ia"])
	for (i in of_targets) {
		key = of_targets[i]
		if (key in f)
			add("kdapl_target_" key (key == "reserved" ? "_buffers" : ""), user, f[key])
	}
	add("kdapl_target_buffer_bytes", user, f["bytes"])
}

f["kind"] == "disk" {
	take_latency()
	add("kdapl_disk_connected", disk, f["state"] == "connected")
	split("read write flush", operations, " ")
	split("reads writes flushes", counts, " ")
	for (i = 1; i <= 3; i++) {
		op = operations[i]
		labels = disk "," label("operation", op)
		add("kdapl_disk_requests", labels, f[counts[i]])
		add("kdapl_disk_request_seconds", labels, f[op "_ms"] / 1000)
	}
}

f["kind"] == "export" {
	add("kdapl_export_listening", label("export", f["export"]) "," label("adapter", f["adapter"]) \
	    "," label("port", f["port"]), f["listening"])
}

f["kind"] == "volumes" {
	add("kdapl_export_volumes", label("export", f["export"]), f["enabled"])
}

f["kind"] == "latency" {
	labels = disk "," label("operation", f["operation"])
	name = "kdapl_disk_latency_seconds"
	for (to = 1; to < 2 ^ 40; to *= 2)
		if (("le_" to) in f)
			add(name, labels "," label("le", sprintf("%.6f", to / 1000000)),
			    f["le_" to], "_bucket")
	add(name, labels "," label("le", "+Inf"), f["requests"], "_bucket")
	add(name, labels, f["requests"], "_count")
	add(name, labels, f["us"] / 1000000, "_sum")
}

END {
	for (n = 1; n <= families; n++) {
		name = names[n]
		if (!count[name])
			continue
		print "# TYPE " name " " kinds[name]
		if (name ~ /_seconds$/)
			print "# UNIT " name " seconds"
		print "# HELP " name " " help[name]
		for (i = 1; i <= count[name]; i++) {
			labels = label_of[name, i]
			value = sample[name, labels]
			printf("%s%s%s %s\n", name, kinds[name] == "counter" ? "_total" : "", labels,
			       sprintf(value == int(value) ? "%.0f" : "%.6f", value))
		}
	}
	print "# EOF"
}
