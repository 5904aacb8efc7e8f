# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by check-two-hosts: one target and many client hosts, what each of them gets. What is in
# single quotes is for the shell of a guest.
# shellcheck disable=SC2016,SC2154

connections=/sys/kernel/config/kdapl_blk_tgt/ports/1/connections
buffers=96		# receive buffers, fewer than the clients want

export_to_all()
{
	on target "truncate -s 64M /tmp/volume && kdapl-blk export -i wire0/1 -s many -r \
		-o srq_size=32 -o srq_max=$buffers /tmp/volume"
}

# load CLIENT DEPTH JOBS: have a client read with so many requests at a time in each job
load()
{
	on "$1" "kdapl-blk connect -i wire0/1 -a ${address[target]} -s many -c $1 disk &&
		(exec fio --name=load --filename=/dev/kdapl0 --readonly --rw=randread --bs=4k \
			--direct=1 --ioengine=libaio --thread --time_based --runtime=3600 \
			--iodepth=$2 --numjobs=$3 >/tmp/fio 2>&1 & echo \$! >/tmp/fio.pid)"
}

unload_all()
{
	local client

	for client in "${clients[@]}"; do
		on "$client" 'kill $(cat /tmp/fio.pid)
			while [ -e /proc/$(cat /tmp/fio.pid) ]; do sleep 0.1; done
			kdapl-blk disconnect disk'
	done
	within 60 target "grep -q '^connected  *0' $stats"
	within 60 target "$nothing_lost"
}

# shares PERCENT: when the load is under way at all clients, count 200 requests for each
# on average. None may have had less than this part of what all have got in equal shares.
shares()
{
	on target 'all='${#clients[@]}' least='"$1"' from='$connections'
		requests() { awk "{ n += \$NF } END { print n + 0 }" $from; }
		until [ $(awk "\$NF > 50 { busy[\$2] } END { print length(busy) }" $from) -eq $all ]; do
			sleep 0.1
		done
		cat $from >/tmp/before
		start=$(requests)
		until [ $(($(requests) - start)) -ge $((200 * all)) ]; do sleep 0.1; done
		cat $from >/tmp/after
		awk -v all=$all -v least=$least "
			FNR == NR { n[\$2] -= \$NF; next }
			{
				n[\$2] += \$NF
				for (i = 3; i < NF; i++)
					if (\$i == \"credits\") credits[\$2] += \$(i + 1)
					else if (\$i == \"held\") held[\$2] += \$(i + 1)
			}
			END {
				for (c in n) sum += n[c]
				for (c in n) {
					share = 100 * n[c] / sum
					printf \"target: %s had %.1f %% of %d requests; %d credits, %d buffers held\\n\",
						c, share, sum, credits[c], held[c]
					if (share * all < least) bad = 1
				}
				exit bad
			}" /tmp/before /tmp/after; rc=$?
		sed -nE "s/^(SRQ buffers|credits|pages|buffers)  +/target: \1: /p" '"$stats"'
		[ $rc -eq 0 ]'
}

# All want more than there is.
equal_shares()
{
	local client

	export_to_all
	for client in "${clients[@]}"; do
		load "$client" 64 1
	done
	shares 50
	unload_all
}

one_floods()
{
	local client

	load client 127 4
	for client in "${clients[@]:1}"; do
		load "$client" 4 1
	done
	shares 10
	unload_all
	on target 'kdapl-blk unexport many'
}

with_clients()
{
	try "$CLIENTS hosts want the same" equal_shares
	try "one of them floods" one_floods
}
