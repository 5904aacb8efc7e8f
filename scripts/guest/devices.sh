# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the first process of a guest, before it hides /tmp: how to make the
# network and RDMA devices that "scripts/run/uml-run --help" describes, and to
# prepare fault injection.

# wire LINK ADDRESS PREFIX6: give a link its addresses and bring it up
wire()
{
	ip addr add "$2/24" dev "$1"
	ip addr add "$3::1/64" dev "$1" nodad
	ip link set "$1" up
}

# rxe sends through its link, so the link needs a peer that is up.
make_rxe()
{
	ip link set lo up
	ip link add v0 type veth peer name v1
	ip link add v2 type veth peer name v3
	ip link set v1 up
	ip link set v3 up
	wire v0 10.8.0.1 fd00:8
	wire v2 10.8.1.1 fd00:81
	rdma link add rxe0 type rxe netdev v0
	rdma link add rxe1 type rxe netdev v2
}

# siw is on dummy devices because rdma_cm does not find it on "lo".
make_siw()
{
	local d

	for d in dummy0 dummy1; do
		[ -e /sys/class/net/$d ] || ip link add $d type dummy
	done
	wire dummy0 10.9.0.1 fd00:9
	wire dummy1 10.9.1.1 fd00:91
	rdma link add siw0 type siw netdev dummy0
	rdma link add siw1 type siw netdev dummy1
}

# Prepare fault injection. Nothing fails until a test sets "probability" or "times";
# then allocations that may sleep fail as well, without a message.
idle_faults()
{
	local f

	for f in /sys/kernel/debug/{failslab,fail_page_alloc}; do
		[ -d "$f" ] || continue
		echo 0 >"$f/probability"
		echo N >"$f/ignore-gfp-wait"
		echo 0 >"$f/verbose"
	done
}
