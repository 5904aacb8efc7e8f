# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: kdapl-stat, with files in place of the kernel's."""
import json
import os
import re

from commands import TOP, call_tool, expect, expect_refusal, need, without_fd

# What it refuses, with which status and what sentence.
REFUSED = (
    ("nosuch", 2, "there is no command nosuch"),
    ("summary all", 2, "summary: no argument is wanted"),
    ("-q", 2, "summary: there is no option -q"),
    ("peers --nosuch", 2, "peers: there is no option --nosuch"),
    ("peers -n", 2, "peers: -n wants a value"),
    ("peers -n 0", 2, "peers: -n 0: a number from 1 to 1000000 is wanted"),
    ("top -j", 2, "top takes no -j"),
    ("top -t soon", 2, "top: -t soon: a number from 1 to 86400 is wanted"),
    ("metrics -o /nonexistent/kdapl.prom", 1, "there is no directory /nonexistent"),
    ("metrics -o ''", 2, "metrics: -o wants a value, and it is empty"),
    ("metrics -o /", 1, "-o /: that is a directory, and a file is wanted"),
    ("metrics -o /proc/nosuch.prom", 1, "cannot write /proc/nosuch.prom: No such file"),
    ("peers -p ''", 2, "peers: -p wants a value, and it is empty"),
    ("peers -p no.such.invalid", 1, "-p no.such.invalid: no address, and no host that can be"),
    ("ends -p 10.8.0.300", 1, "-p 10.8.0.300: no address, and no host that can be"),
    ("help x", 2, "help: no argument is wanted"),
    ("-h x", 2, "-h: no argument is wanted"),
    ("-j peers", 2, "peers: the command comes before the options"),
    ("''", 2, "the command is empty"),
    ("latency ''", 2, "latency: the name of a DISK is empty"),
    ("latency nosuch", 1, "there is no disk nosuch that is connected"),
    ("metrics -t 1", 2, "metrics takes no -t"),
)

# What is in /proc/kdapl: two connections of one peer, which have an SRQ in common, one of
# another peer, and one connection that broke.
USER = "adapter=rxe0/1 module=kdapl_blk_tgt"
FILES = {
    "ias": f"ia=a1 {USER} since=1795896000 gone=0 requests=5 turned_away=1 rejected=1 "
           "established=4 low_crossed=2 soft_crossed=7 end_peer=1 end_hard-mark=1",
    "srqs": f"srq=a2 ia=a1 {USER} since=1795896000 size=256 available=200 "
            "outstanding=219 low=64 low_crossed=2 taken=6110 recovered=0 in_doubt=0",
    "eps": "\n".join(f"ep=a{n} ia=a1 {USER} state=DAT_EP_STATE_CONNECTED local={to} "
                     f"remote={peer} since=179589600{n} srq=a2 requests=0 receives=0 "
                     f"held={held} taken={taken} soft=8 hard=128 soft_crossed=1 hard_crossed=0"
                     for n, to, peer, held, taken in (
                         (3, "10.8.0.1:5100", "10.8.0.2:4001", 2, 10),
                         (4, "10.8.0.1:5100", "10.8.0.2:4002", 17, 6000),
                         (5, "[fd00::1]:5100", "[fd00::2]:4001", 0, 100))),
    "ends": f"at=1795896200 {USER} local=10.8.0.1:5100 remote=10.8.0.3:4000 "
            "since=1795896000 reason=hard-mark event=DAT_CONNECTION_EVENT_BROKEN held=129 "
            "hard=128 available=12",
    "kdapl_isert/adapters": "\n".join(
        f"adapter=rxe{n}/1 module=kdapl_isert ia=b{n} gone=0 connections={3 - n} buffers=512 bytes=4718592 "
        f"available=500 low=64 reserved=0 requests=9 refused=1 logins={7 - n} low_crossed=2 "
        "soft_crossed=4 exceeded=1 broken=3 pings=11" for n in (0, 1)),
    "kdapl_isert/sessions":
        "adapter=rxe0/1 module=kdapl_isert connection=4 remote=10.8.0.5:40000 "
        "initiator=iqn.2026-01.com.example:a\\040b state=up window=32 withheld=8 unread=6 hard=64 "
        "posted=2 waiting=1 beyond=0",
    "kdapl_svcrdma/adapters":
        "adapter=rxe0/1 module=kdapl_svcrdma ia=c1 gone=1 connections=1 buffers=256 bytes=1048576 "
        "available=250 low=32 reserved=130 requests=2 refused=0 calls=4711 errors=5 "
        "soft_crossed=0 broken=0",
    "kdapl_svcrdma/connections":
        "adapter=rxe0/1 module=kdapl_svcrdma remote=[fd00::2]:700 gid=- state=new window=4 asked=32 "
        "reserved=4 held=3 posted=1 waiting=0 fetching=0",
}


def latency(more=(), slow=0):
    """What the disk counts: 1000 reads, 10 writes and 3 flushes, and MORE reads in the buckets
    with bounds of so many powers of two, and SLOW ones that took longer than all bounds."""
    lines = []
    for operation, us, buckets in (("read", 1500017, {7: 600, 15: 400}), ("write", 40000, {12: 10}),
                                   ("discard", 0, {}), ("flush", 9000, {12: 3})):
        extra = dict(more) if operation == "read" else {}
        at, words = 0, []
        for bound in range(3, 27):
            at += buckets.get(bound, 0) + extra.get(bound, 0)
            words.append(f"le_{2 ** bound}={at}")
        at += slow if operation == "read" else 0
        lines.append(f"operation={operation} us={us} {' '.join(words)} requests={at}\n")
    return "".join(lines)


def stat(work, arguments, there="proc", within=()):
    """Call kdapl-stat where there is FILES and a disk. Return status and words."""
    proc, disk, block = work / "proc", work / "config/kdapl_blk/one", work / "block/kdapl7"
    if not proc.exists():
        for folder in (proc / "kdapl_isert", proc / "kdapl_svcrdma", disk, block):
            folder.mkdir(parents=True)
        for name, text in FILES.items():
            (proc / name).write_text(text + "\n")
        for name, text in (("device", "kdapl7"), ("state", "connected"),
                           ("address", "10.8.0.9"), ("stats", "requests sent   5")):
            (disk / name).write_text(text + "\n")
        (block / "stat").write_text("1000 0 8000 1500 10 0 80 40 0 0 0 0 0 0 0 3 9\n")
        (disk / "latency").write_text(latency())
        tgt = work / "config/kdapl_blk_tgt"
        for path, text in (("subsystems/vol one/namespaces/1/enable", 1),
                           ("subsystems/vol one/namespaces/2/enable", 0),
                           ("ports/1/ia", "rxe0/1"), ("ports/1/conn_qual", 5100),
                           ("ports/1/state", "listening"), ("ports/1/subsystems/vol one", ""),
                           ("ports/2/ia", "rxe1/1"), ("ports/2/conn_qual", 5100),
                           ("ports/2/state", "waiting for the adapter"),
                           ("ports/2/subsystems/vol one", ""), ("subsystems/shut/none", "")):
            (tgt / path).parent.mkdir(parents=True, exist_ok=True)
            (tgt / path).write_text(f"{text}\n")
    return call_tool("kdapl-stat", arguments, within, KDAPL_PROC=str(work / there),
                     KDAPL_BLK_CONFIGFS=str(work / "config"), KDAPL_BLOCK=str(work / "block"),
                     KDAPL_SYS=str(work / "sys"))


# Put the counts of after a second in the place of those before, as the disk does.
SLEEP = """#!/bin/sh
mv "$LATER" "$LATER_OF"
"""


def stat_measured(work, arguments, later):
    """Call kdapl-stat while the disk counts on, so that it has the counts LATER at the end."""
    stat(work, "peers")
    (work / "bin").mkdir(exist_ok=True)
    (work / "bin/sleep").write_text(SLEEP)
    (work / "bin/sleep").chmod(0o755)
    (work / "later").write_text(later)
    disk = work / "config/kdapl_blk/one/latency"
    (disk).write_text(latency())
    return stat(work, arguments, within=("env", f"PATH={work}/bin:{os.environ['PATH']}",
                                         f"LATER={work}/later", f"LATER_OF={disk}"))


def measured(work):
    """A histogram of the requests of some seconds, as a table and as JSON."""
    later = latency({3: 2, 5: 3, 20: 7, 26: 1}, slow=1)
    said = stat_measured(work, "latency -t 1 one", later)[1]
    wanted = [["DEVICE", "OPERATION", "FROM_US", "TO_US", "REQUESTS"],
              ["kdapl7", "read", "0", "8", "2"], ["kdapl7", "read", "16", "32", "3"],
              ["kdapl7", "read", "524288", "1048576", "7"],
              ["kdapl7", "read", "33554432", "67108864", "1"],
              ["kdapl7", "read", "67108864", "inf", "1"]]
    expect([line.split() for line in said.splitlines()] == wanted, f"latency: {said}")
    found = json.loads(stat_measured(work, "latency -t 1 --json", later)[1])
    expect([row["requests"] for row in found] == [2, 3, 7, 1, 1] and found[4]["to_us"] == "inf",
           f"JSON: {found}")
    twice = stat_measured(work, "latency -t 1 one kdapl7 one", later)[1]
    expect(twice == said, f"named twice: {twice}")
    many = latency({10: 5000000000}, slow=5000000001)
    counts = [line.split()[4] for line in
              stat_measured(work, "latency -t 1 one", many)[1].splitlines()[1:]]
    expect(counts == ["5000000000", "5000000001"], f"many requests: {counts}")
    # Whoever makes the disk anew meanwhile has it count from zero.
    anew = re.sub(r"=\d+", "=0", latency()).replace("le_16=0", "le_16=4")
    anew = re.sub(r"((le_(?!8=|16=)\d+|requests)=)0", r"\g<1>4", anew.splitlines()[0])
    said = stat_measured(work, "latency -t 1", anew + "\n")[1]
    expect([line.split() for line in said.splitlines()[1:]] == [["kdapl7", "read", "8", "16", "4"]],
           f"made anew: {said}")
    said = stat_measured(work, "latency -t 1", latency())[1]
    expect(said.split() == wanted[0], f"nothing has happened: {said}")


def measured_and_gone(work):
    """A disk that goes meanwhile has no rows, and whoever ends the command waits no second more."""
    stat(work, "peers")
    gone = stat_measured(work, "latency -t 1", "")
    expect(gone == (0, "DEVICE  OPERATION  FROM_US  TO_US  REQUESTS\n"), f"{gone}")
    (work / "config/kdapl_blk/one/latency").write_text(latency())
    done = stat(work, "latency -t 3600", within=("timeout", "--foreground", "-k", "60", "1"))
    expect(done[0] == 124, f"it has not ended in time: {done}")


def histogram(work):
    """The histogram of a disk as OpenMetrics has it: buckets with bounds, their sum and count."""
    said = stat(work, "metrics")[1]
    name = "kdapl_disk_latency_seconds"
    of = r'disk="one",device="kdapl7",peer="10\.8\.0\.9",operation="read"'
    expect(f"\n# TYPE {name} histogram\n# UNIT {name} seconds\n" in said, f"metrics: {said}")
    buckets = re.findall(rf'(?m)^{name}_bucket{{{of},le="([^"]+)"}} (\d+)$', said)
    bounds = [*(f"{2 ** k / 1000000:.6f}" for k in range(3, 27)), "+Inf"]
    expect([le for le, _ in buckets] == bounds, f"buckets: {buckets}")
    expect([int(n) for _, n in buckets] == [0] * 4 + [600] * 8 + [1000] * 13, f"buckets: {buckets}")
    for suffix, value in ("sum", "1.500017"), ("count", "1000"):
        expect(re.search(rf"(?m)^{name}_{suffix}{{{of}}} {re.escape(value)}$", said), f"{suffix}: {said}")
    expect(re.search(rf'(?m)^kdapl_disk_request_seconds_total{{{of}}} 1.500017$', said), said)


def exports(work):
    """Whether clients can have what is exported."""
    # An export without volumes has it read nothing of a terminal.
    work.mkdir(exist_ok=True)
    os.mkfifo(work / "silent")
    said = stat(work, "metrics", within=("sh", "-c", 'exec "$@" <>"$0"', str(work / "silent")))[1]
    found = re.findall(r"(?m)^(kdapl_export_\w+)\{(.*)\} (\d+)$", said)
    expect(found == [("kdapl_export_listening", 'export="shut",adapter="-",port="-"', "0"),
                     ("kdapl_export_listening", 'export="vol one",adapter="rxe0/1",port="5100"', "1"),
                     ("kdapl_export_listening", 'export="vol one",adapter="rxe1/1",port="5100"', "0"),
                     ("kdapl_export_volumes", 'export="shut"', "0"),
                     ("kdapl_export_volumes", 'export="vol one"', "1")], f"exports: {found}")


def wraps_never(work):
    """Means are those of the module's counts, as the block layer's milliseconds wrap."""
    stat(work, "peers")
    (work / "block/kdapl7/stat").write_text("1000 0 8000 7 10 0 80 7 0 0 0 0 0 0 0 3 7\n")
    row = stat(work, "latency")[1].splitlines()[1].split()
    expect(row[4:] == ["1000", "1.50", "10", "4.00", "3", "3.00"], f"latency: {row}")


def module_of_before(work):
    """A module of 1.0.0, which stays loaded after an upgrade, has a mean, and no histogram."""
    stat(work, "peers")
    (work / "config/kdapl_blk/one/latency").unlink()
    (work / "sys/kdapl_blk").mkdir(parents=True)
    (work / "sys/kdapl_blk/version").write_text("1.0.0\n")
    row = stat(work, "latency")[1].splitlines()[1].split()
    expect(row[4:] == ["1000", "1.50", "10", "4.00", "3", "3.00"], f"latency: {row}")
    refused(work, "latency -t 1", 1, "kdapl_blk.ko 1.0.0 is loaded, which makes no histograms")
    status, said = stat(work, "metrics")
    expect(status == 0 and "latency_seconds" not in said and
           re.search(r'(?m)^kdapl_disk_request_seconds_total\{.*"read"\} 1.500000$', said), said)


def refused(work, arguments, wanted, pattern):
    expect_refusal(stat(work, arguments), wanted, pattern)


def answers(work):
    """An operator's four questions, as tables and as JSON."""
    status, said = stat(work, "peers")
    expect(status == 0, f"peers: status {status}")
    expect(re.search(r"^PEER .*\n10\.8\.0\.2 +rxe0/1 +kdapl_blk_tgt +2 +19 +6010 +- +2 .*\n"
                     r"fd00::2 ", said), f"peers: {said}")
    expect(re.search(r"(?m)^rxe0/1 +kdapl_blk_tgt +256 +200 +219 +64 +2 +6110 ",
                     stat(work, "queues")[1]), "queues")
    expect(re.search(r"(?m)^one +kdapl7 +connected +10\.8\.0\.9 +1000 +1\.50 +10 +4\.00 +3 +3\.00$",
                     stat(work, "latency")[1]), "latency")
    ends = stat(work, "ends -p 10.8.0.3")[1]
    expect(" hard-mark  10.8.0.3:4000 " in ends, f"ends: {ends}")
    expect(re.search(r"\nfd00::2 +rxe0/1 ", stat(work, "peers -p fd00:0:0::2")[1]), "peers -p")
    expect(stat(work, "ends -p 10.8.0.4")[1].count("\n") == 1, "ends of a peer without any")
    expect(stat(work, "peers -n 1")[1].count("\n") == 2, "peers -n 1")
    found = json.loads(stat(work, "--json")[1])
    expect([p["peer"] for p in found["peers"]] == ["10.8.0.2", "fd00::2"], f"JSON: {found}")
    expect(found["modules"][0]["broken"] == 1 and found["queues"][0]["ran_low"] == 2 and
           found["disks"][0]["read_ms"] == 1.5 and found["ends"][0]["reason"] == "hard-mark",
           f"JSON: {found}")
    expect(len(json.loads(stat(work, "connections -j")[1])) == 3, "connections -j")
    said = stat(work, "top -c 2 -t 1")[1]
    expect(len(re.findall(r"(?m)^10\.8\.0\.2 .* 6010 +(-|0) ", said)) == 2, f"top: {said}")


def of_targets(work):
    """What kdapl_isert and kdapl_svcrdma count themselves."""
    said = stat(work, "targets")[1]
    expect(re.search(r"^ADAPTER .*\nrxe0/1 +kdapl_isert +3 ", said) and
           re.search(r"(?m)^rxe0/1 +kdapl_isert +3 +512 +0 +9 +1 +7 +- +- +1 +3 +11$", said) and
           re.search(r"(?m)^rxe0/1 \(gone\) +kdapl_svcrdma +1 +256 +130 +2 +0 +- +4711 +5 +- +0 +-$",
                     said), f"targets: {said}")
    said = stat(work, "clients")[1]
    expect(re.search(r"(?m)^10\.8\.0\.5:40000 +iqn\.2026-01\.com\.example:a b +rxe0/1 +kdapl_isert +up "
                     r"+32 +6 +2 +1$", said) and
           re.search(r"(?m)^\[fd00::2\]:700 +- +rxe0/1 +kdapl_svcrdma +new +4 +3 +1 +0$", said),
           f"clients: {said}")
    expect(stat(work, "clients -p 10.8.0.5")[1].count("\n") == 2, "clients -p")
    found = json.loads(stat(work, "-j")[1])
    expect([t["logins"] for t in found["targets"]] == [7, 6, ""], f"JSON: {found['targets']}")
    found = json.loads(stat(work, "clients -j")[1])
    expect([c["client"] for c in found] == ["iqn.2026-01.com.example:a b", "-"], f"JSON: {found}")
    said = stat(work, "metrics")[1]
    for line in ('kdapl_target_logins_total{adapter="rxe1/1",module="kdapl_isert",ia="b1"} 6',
                 'kdapl_target_pings_total{adapter="rxe0/1",module="kdapl_isert",ia="b0"} 11',
                 'kdapl_target_broken_total{adapter="rxe0/1",module="kdapl_svcrdma",ia="c1"} 0',
                 'kdapl_target_calls_total{adapter="rxe0/1",module="kdapl_svcrdma",ia="c1"} 4711',
                 'kdapl_target_buffer_bytes{adapter="rxe0/1",module="kdapl_isert",ia="b0"} 4718592'):
        expect(line in said.splitlines(), f"there is no {line}")
    expect(not re.search(r'kdapl_target_logins_total\{[^}]*module="kdapl_svcrdma"', said),
           "kdapl_svcrdma has no logins")


# A sample of OpenMetrics text: name, labels, value.
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="[^"\\]*",?)*)\})? (-?\d+(?:\.\d+)?)$')


def metrics(work):
    """OpenMetrics text: each family is declared and whole, and the file is too."""
    out = work / "kdapl.prom"
    status, said = stat(work, f"metrics -o {out}")
    expect(status == 0 and not said, f"status {status}: {said}")
    lines = out.read_text().splitlines()
    expect(lines == stat(work, "metrics")[1].splitlines(), "-o has another text")
    expect(lines.pop() == "# EOF", "the end is missing")
    expect(out.stat().st_mode & 0o777 == 0o644, "the collector cannot read it")
    kinds, values, name = {}, {}, None
    for line in lines:
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            expect(name not in kinds, f"{name} is there twice")
            # node_exporter rejects the whole file for any other one.
            expect(kind in ("gauge", "counter", "histogram"), f"{name} is of kind {kind}")
            kinds[name] = kind
        elif not line.startswith(("# HELP ", "# UNIT ")):
            sample = SAMPLE.match(line)
            expect(sample, f"no sample: {line}")
            suffixes = {"counter": "_total", "histogram": "_(bucket|sum|count)"}.get(kinds[name], "")
            expect(re.fullmatch(name + suffixes, sample[1]), f"not of {name}: {line}")
            values[sample[1], sample[2]] = float(sample[3])
    labels = 'adapter="rxe0/1",module="kdapl_blk_tgt"'
    for key, value in ((("kdapl_up", None), 1),
                       (("kdapl_held_buffers", labels + ',peer="10.8.0.2"'), 19),
                       (("kdapl_srq_low_watermarks_total", labels + ',srq="a2"'), 2),
                       (("kdapl_ends_total", labels + ',ia="a1",reason="hard-mark"'), 1),
                       (("kdapl_disk_request_seconds_total", 'disk="one",device="kdapl7",'
                         'peer="10.8.0.9",operation="read"'), 1.500017)):
        expect(values.get(key) == value, f"{key} is {values.get(key)}")
    said = stat(work, "metrics", "nowhere")[1]
    expect("kdapl_up 0" in said.splitlines(), f"without kdapl.ko: {said}")
    expect(stat(work, "peers", "nowhere")[1] == "kdapl-stat: kdapl.ko is not loaded, so there is nothing "
           "to count\n", "peers without kdapl.ko")
    (work / "sys/kdapl").mkdir(parents=True)
    (work / "sys/kdapl/version").write_text("0.9.0\n")
    expect(stat(work, "peers", "nowhere")[1].startswith(
        "kdapl-stat: kdapl.ko 0.9.0 is loaded, which has no statistics: "),
           "peers with a former kdapl.ko")


def counters_never_fall(work):
    """A connection that ends, a peer that goes, and an adapter that comes back lower no counter."""
    def counters():
        said = stat(work, "metrics")[1]
        names = set(re.findall(r"(?m)^# TYPE (\w+) counter$", said))
        return {(name, labels): float(value) for name, labels, value in
                re.findall(r"(?m)^(\w+)_total\{(.*)\} (\S+)$", said) if name in names}

    before = counters()
    (work / "proc/eps").write_text("\n".join(FILES["eps"].split("\n")[:1]) + "\n")
    after = counters()
    expect(len(before) > 20, f"there is {before}")
    fallen = [key for key, value in before.items() if after.get(key, 0) < value]
    expect(not fallen, f"these have fallen: {fallen}")
    adapters = work / "proc/kdapl_isert/adapters"
    former = FILES["kdapl_isert/adapters"].split("\n")[0].replace("gone=0", "gone=1")
    new = re.sub(r"ia=\w+ gone=1", "ia=b7 gone=0", re.sub(r"(logins|pings)=\d+", r"\1=1", former))
    adapters.write_text(f"{former}\n{new}\n")
    both = counters()
    adapters.write_text(f"{new}\n")
    fallen = [key for key, value in counters().items() if both[key] != value]
    expect(not fallen and len(both) > len(counters()), f"these have changed: {fallen}")
    # Seconds of a disk that has been busy for days
    for us in 1000014000000, 1000014300001:
        (work / "config/kdapl_blk/one/latency").write_text(f"operation=read us={us} requests=1\n")
        value = f"{us / 1000000:.6f}".removesuffix(".000000")
        said = stat(work, "metrics")[1]
        expect(re.search(rf"(?m)^kdapl_disk_request_seconds_total\{{.*\}} {value}$", said),
               f"{value} is not there")


def metrics_file(work):
    """-o replaces a regular file and nothing else, whatever its name is, and leaves no other."""
    stat(work, "peers")
    (work / "target.prom").write_text("as before")
    (work / "link.prom").symlink_to("target.prom")
    os.mkfifo(work / "fifo")
    for name in "link.prom", "fifo":
        expect_refusal(stat(work, f"metrics -o {work / name}"), 1,
                       f"{name}: that is no regular file, and one is wanted")
    expect((work / "target.prom").read_text() == "as before", "the target has changed")
    for name in "-x", "--", "a b":
        done = stat(work, f"metrics -o '{name}'", within=("env", "-C", str(work)))
        expect(done == (0, ""), f"-o {name}: {done}")
        expect((work / name).read_text().endswith("# EOF\n"), f"-o {name} is not whole")
    # A signal comes while it is being written, and the mode cannot be set.
    tools = work / "tools"
    tools.mkdir()
    for text in "kill $PPID", "exit 1":
        (tools / "chmod").write_text(f"#!/bin/sh\n{text}\n")
        (tools / "chmod").chmod(0o755)
        status, _ = stat(work, f"metrics -o {work}/new.prom",
                         within=("env", f"PATH={tools}:{os.environ['PATH']}"))
        expect(status, f"{text}: it succeeds")
        left = [p.name for p in work.iterdir() if p.name.startswith("new.prom")]
        expect(not left, f"{text}: {left} is left")


def odd_names(work):
    """A disk may have any name that configfs takes."""
    stat(work, "peers")
    name = r"a #&\1 b=\040"
    (work / "config/kdapl_blk/one").rename(work / "config/kdapl_blk" / name)
    disks = json.loads(stat(work, "--json")[1])["disks"]
    expect([(d["disk"], d["state"], d["reads"]) for d in disks] == [(name, "connected", 1000)],
           f"JSON: {disks}")
    said = stat(work, "latency")[1]
    expect(f"\n{name}  kdapl7  connected " in said, f"latency: {said}")
    label = 'disk="' + name.replace("\\", r"\\") + '"'
    status, said = stat(work, "metrics")
    expect(status == 0 and len(re.findall(f'(?m)^(?!kdapl_disk_latency).*{re.escape(label)}', said)) == 7, f"metrics: {said}")
    expect(f'object="disk",name="{label[6:-1]}",count="requests sent"}} 5\n' in said,
           f"metrics: {said}")


def names_are_words(work):
    """A name of digits is no number, and what is in a name does not end a cell or move a cursor."""
    stat(work, "peers")
    disk, sessions = work / "config/kdapl_blk/one", work / "proc/kdapl_isert/sessions"
    sessions.write_text(re.sub("iqn[^ ]*", "17", FILES["kdapl_isert/sessions"]) + "\n")
    found = json.loads(stat(work, "clients -j")[1])
    expect([c["client"] for c in found] == ["17", "-"], f"JSON: {found}")
    for name, shown in (("5", "5"), ("a\t\n\33[2Jb", "a???[2Jb")):
        disk = disk.rename(disk.parent / name)
        disks = json.loads(stat(work, "--json")[1])["disks"]
        expect([d["disk"] for d in disks] == [shown], f"JSON: {disks}")
        said = stat(work, "latency")[1].splitlines()[1]
        expect(said.split()[:2] == [shown, "kdapl7"], f"latency: {said}")
        said = stat(work, "metrics")[1]
        expect(f'object="disk",name="{shown}",count="requests sent"}} 5\n' in said, said)


def idle_disk(work):
    """A disk that is not connected has no latency, and hides that of no other."""
    stat(work, "peers")
    idle = work / "config/kdapl_blk/two"
    idle.mkdir()
    for name, text in ("device", ""), ("state", "idle"), ("address", ""), ("stats", ""):
        (idle / name).write_text(text + "\n")
    for arguments in "latency", "latency one":
        status, said = stat(work, arguments)
        expect(status == 0 and "\none " in said and "two" not in said, f"{arguments}: {said}")
    refused(work, "latency two", 1, "there is no disk two that is connected")
    (work / "config/kdapl_blk/one/device").write_text("\n")
    for arguments in "latency", "latency -t 1":
        refused(work, arguments, 1, "there is no disk of kdapl_blk that is connected")


def gone_meanwhile(work):
    """Nothing is said of a module, or a disk, that goes between being found and being read."""
    wanted = stat(work, "targets")[1], stat(work, "clients")[1]
    for name in "proc/kdapl_gone/adapters", "proc/kdapl_gone/sessions", "config/kdapl_blk/gone":
        (work / name).mkdir(parents=True)
    found = stat(work, "targets")[1], stat(work, "clients")[1]
    expect(found == wanted, f"{found}")
    for arguments in "metrics", "latency":
        said = stat(work, arguments)[1]
        expect("No such file" not in said, f"{arguments}: {said}")


def needs_no_fd(work):
    """The same is told where there is no /dev/fd."""
    need(without_fd(), "/dev/fd cannot be taken away here")
    for arguments in "metrics", "--json", "peers", "clients -j", "latency", "top -c 1":
        wanted = stat(work, arguments)
        found = stat(work, arguments, within=without_fd())
        expect(found == wanted, f"{arguments}: {found}")


def queries(work):
    """The page's queries and alerts use metrics, labels and reasons that there are."""
    said = stat(work, "metrics")[1]
    names = {name + suffix for name, kind in re.findall(r"(?m)^# TYPE (\w+) (\w+)$", said)
             for suffix in {"counter": ["_total"], "histogram": ["", "_bucket", "_sum", "_count"]}
             .get(kind, [""])}
    labels = {"instance", *re.findall(r'(\w+)="', said)}
    page = (TOP / "Documentation/kdapl-stat.rst").read_text().split("\nMetrics\n")[1]
    used = set(re.findall(r"\bkdapl_[a-z_]+\b", page))
    expect(len(used) > 8 and used <= names, f"there is no {used - names}")
    asked = set(re.findall(r"(kdapl_\w+_seconds)\b(?!_)", page.split("\nQueries for")[1]))
    expect(not asked, f"a histogram has no samples of its own name: {asked}")
    by = {label for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", page)
          for label in re.findall(r"\w+", group)}
    by |= set(re.findall(r"[{,] ?(\w+)=~?[\"\n]", page)) | set(re.findall(r"labels\.(\w+)", page))
    expect(len(by) > 4 and by <= labels, f"there is no label {by - labels}")
    reasons = re.search(r'reason=~\s+"([a-z|-]+)"', page)[1].split("|")
    kernel = (TOP / "drivers/kdapl/names.h").read_text()
    left = [reason for reason in reasons if f'"{reason}"' not in kernel]
    expect(not left, f"nothing ends with {left}")


def metrics_described(work):
    """The page has each metric with its kind and its labels, and no other."""
    said = stat(work, "metrics")[1]
    name, there = None, {}
    for line in said.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            total = "_total" if kind == "counter" else ""
            there[name + total] = (kind, set())
        elif not line.startswith("#"):
            there[name + total][1].update(re.findall(r'(\w+)="', line))
    page = (TOP / "Documentation/kdapl-stat.rst").read_text().split("\nMetrics\n")[1]
    described, labels = {}, set()
    for line in page.splitlines():
        group = re.match(r"``\{([\w, ]*)\}``$", line)
        row = re.match(r"(kdapl_\w+) +(gauge|counter|histogram) +\w", line)
        if group:
            labels = set(re.findall(r"\w+", group[1]))
        elif row:
            described[row[1]] = (row[2], labels)
    wrong = {name for name in described.keys() | there if described.get(name) != there.get(name)}
    expect(not wrong, f"the page says {({n: described.get(n) for n in wrong})}, and there are "
           f"{({n: there.get(n) for n in wrong})}")


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    for arguments, status, pattern in REFUSED:
        yield f"kdapl-stat {arguments}", refused, arguments, status, pattern
    yield "kdapl-stat, an operator's questions", answers
    yield "kdapl-stat and what targets count", of_targets
    yield "kdapl-stat metrics", metrics
    yield "kdapl-stat latency -t", measured
    yield "kdapl-stat latency -t, what goes meanwhile", measured_and_gone
    yield "kdapl-stat metrics, the histogram of a disk", histogram
    yield "kdapl-stat metrics, exports", exports
    yield "kdapl-stat, means and milliseconds that wrap", wraps_never
    yield "kdapl-stat and a kdapl_blk of 1.0.0", module_of_before
    yield "kdapl-stat metrics, counters", counters_never_fall
    yield "kdapl-stat metrics -o", metrics_file
    yield "kdapl-stat and the names of disks", odd_names
    yield "kdapl-stat and names that others choose", names_are_words
    yield "kdapl-stat and a disk that is not connected", idle_disk
    yield "kdapl-stat and what has just gone", gone_meanwhile
    yield "kdapl-stat without /dev/fd", needs_no_fd
    yield "kdapl-stat.rst, queries and alerts", queries
    yield "kdapl-stat.rst, table of metrics", metrics_described
