# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: kdapl-test, as far as it does without its module."""
import json
import os
import re
import subprocess

from commands import TOP, call_tool, expect, expect_refusal

# What kdapl-test refuses before it needs its module, with which status and what sentence; the
# adapters are rxe0/1 and rxe1/1.
REFUSED = (
    ("", 2, "a command is wanted"),
    ("''", 2, "a command is wanted"),
    ("nosuch", 2, "there is no command nosuch"),
    ("list -i nosuch/1", 1, "no adapter nosuch/1; there is rxe0/1 rxe1/1"),
    ("list all", 2, "list: no argument is wanted"),
    ("lat", 2, "lat: --peer HOST is missing"),
    ("lat --peer 10.0.0.1", 1, r"several adapters \(rxe0/1 rxe1/1\); choose one"),
    ("lat --peer 10.0.0.1 -i rxe2", 1, "no adapter rxe2; there is rxe0/1 rxe1/1"),
    ("lat --peer 10.0.0.1 -s 1q", 2, "-s 1q: a number of bytes is wanted, such as 64, 4k"),
    ("bw --peer 10.0.0.1 -s 64,", 2, "-s 64,: a size is missing at the end"),
    ("bw --peer 10.0.0.1 --runs 0", 2, "--runs 0: a number from 1 to 1000 is wanted"),
    ("dapl -T P -s 10.0.0.1 -D rxe0/1 'SR RW'", 2, "dapl -T P: SR, RW or RR is wanted"),
    ("bw --peer 10.0.0.1 --over tcp", 2, "--over tcp: kdapl, verbs or both is wanted"),
    ("server -a 10.0.0.1 -l size=big", 2, "-l size=big: a number of bytes is wanted"),
    ("server -a 10.0.0.1 -i nosuch/1", 1, "no adapter nosuch/1; there is rxe0/1"),
    ("dapl -T P -s 10.0.0.1 -D nosuch/1 SR", 1, "no adapter nosuch/1; there is rxe0/1"),
    ("version all", 2, "version: no argument is wanted"),
    ("version -i rxe0/1", 2, "version takes no -i"),
    ("list -a 10.0.0.1", 2, "list takes no -a"),
    ("list -i ''", 2, "-i: a value is missing"),
    ("lat --peer 10.0.0.1 -l size=1", 2, "lat takes no -l"),
    ("server -a 10.0.0.1 --json x", 2, "server takes no --json"),
    ("check --peer ''", 2, "--peer: a value is missing"),
    ("check --peer --report x", 2, "--peer --report: a value is missing"),
    ("check -i rxe0/1 --suites ''", 2, "--suites: a value is missing"),
    ("check -i rxe0/1 --report /nonexistent/x", 1, "--report /nonexistent/x: there is no direc"),
    ("suites ''", 2, "suites: the RELEASE is empty"),
    ("lat --peer 10.0.0.1 -i rxe0/1 --json /nonexistent/x", 1, "--json /nonexistent/x: there is"),
    ("lat --peer 10.0.0.1 -i rxe0/1 --svg /", 1, "--svg /: that is a directory"),
    ("lat --peer 10.0.0.1 -i rxe0/1 -O swap", 2, "-O swap: send, write or read is wanted"),
    ("lat --peer 10.0.0.300 -i rxe0/1", 1, "there is no host 10.0.0.300"),
    ("bw --peer 10.0.0.1 -s ,64", 2, "-s ,64: a size is missing at the beginning"),
    ("bw --peer 10.0.0.1 -s 64,,128", 2, "-s 64,,128: a size is missing between two commas"),
    ("bw --peer 10.0.0.1 -s '64 128'", 2, "-s 64 128: a number of bytes is wanted"),
    ("server -a 10.0.0.1 -p 65536", 2, "-p 65536: a number from 1 to 65535 is wanted"),
    ("server -a 10.0.0.1 -l eps=many", 2, "-l eps=many: a number from 1 to 256 is wanted"),
    ("dapl -T T -s 10.0.0.1 -D rxe0/1", 2, "dapl -T T: which operations?"),
    ("dapl -T T -s 10.0.0.1 -D rxe0/1 client XX", 2, "dapl: client XX: SR, RW or RR is wanted"),
    ("dapl -T T -s 10.0.0.1 -D rxe0/1 SR", 2, "dapl: SR is neither client nor server"),
    ("dapl -T T -s 10.0.0.1 -z client SR", 2, "dapl: there is no option -z"),
    ("dapl -T P -s 10.0.0.1 -D rxe0/1", 2, "dapl -T P: SR, RW or RR is wanted"),
    ("dapl -T P -s 10.0.0.1 -D rxe0/1 SR big", 2, "SR big: a number of bytes is wanted"),
    ("dapl -T P -s 10.0.0.1 -D rxe0/1 SR 64 64", 2, "dapl -T P: what is 64?"),
    ("dapl -T P -s 10.0.0.1 -D rxe0/1 -m x SR", 2, "dapl -m x: b or p is wanted"),
    ("dapl -T L -D rxe0/1 -m x", 2, "-m x: a number from 1 to 4294967295 is wanted"),
    ("dapl -T L -D rxe0/1 limit_nosuch", 2, "dapl -T L: there is no limit_nosuch: choose limit_pz"),
    ("dapl -T F -D rxe0/1 nosuch", 2, "dapl -T F: there is no function nosuch: choose pz, "),
    ("dapl -T Q -s 10.0.0.1 -D rxe0/1 now", 2, "dapl -T Q: what is now?"),
    ("help x", 2, "help: no argument is wanted"),
    ("-h x", 2, "-h: no argument is wanted"),
    ("--help -V", 2, "--help: no argument is wanted"),
    ("lat --peer 10.0.0.1 -e x=3", 2, "-e x=3: a number from 1 to 256 is wanted"),
    ("server -a 10.0.0.1 -p a=5", 2, "-p a=5: a number from 1 to 65535 is wanted"),
    ("dapl -T T -s 10.0.0.1 -i 'a[0]=5' client SR", 2, r"-i a\[0\]=5: a number from 1 to"),
    ("dapl -T T -s 10.0.0.1 client SR 64 2=2", 2, "send 2=2: a number from 1 to 4294967295"),
    ("dapl -T T -s 10.0.0.1 -m p client SR", 2, "dapl -T T takes no -m"),
    ("dapl -T F -R 5", 2, "dapl -T F takes no -R"),
    ("dapl -T L -s 10.0.0.1", 2, "dapl -T L takes no -s"),
    ("dapl -T P -s 10.0.0.1 --fmr SR", 2, "dapl -T P takes no --fmr"),
    ("dapl -T Q -s 10.0.0.1 -V", 2, "dapl -T Q takes no -V"),
    ("dapl -T S -a 10.0.0.1 -i 5", 2, "dapl -T S takes no -i"),
    ("dapl -T S -a 10.0.0.1 client", 2, "dapl -T S: what is client?"),
)


def kdapl_test(work, arguments, **more):
    """Call kdapl-test where there are two adapters and no module."""
    for name in "rxe0", "rxe1":
        (work / "ib" / name / "ports/1").mkdir(parents=True, exist_ok=True)
    return call_tool("kdapl-test", arguments, KDAPL_IB=str(work / "ib"), KDAPL_SYS=str(work),
                     TMPDIR=str(work), KDAPL_TEST_DEVICE=str(work / "none"), **more)


def refused(work, arguments, wanted, pattern):
    expect_refusal(kdapl_test(work, arguments), wanted, pattern)


def runs_nothing(work):
    """What is in a number is not run, whichever option has it."""
    # A module that says nothing: what was told is at the end of the file.
    (work / "none").touch()
    (work / "id").write_text("#!/bin/sh\necho 0\n")
    (work / "id").chmod(0o755)
    for option in "-i", "-t", "-w", "-p", "-n", "-R", "-m", "--reconnect":
        kdapl_test(work, f"dapl -T T -s 10.0.0.1 -D rxe0/1 {option} "
                   f"'a[$(touch {work}/spoilt)0]=5' client SR",
                   PATH=f"{work}:{os.environ['PATH']}")
    (work / "none").unlink()
    for option in "-e", "-q", "-t", "-n", "-p", "--runs", "-s":
        kdapl_test(work, f"lat --peer 10.0.0.1 -i rxe0/1 {option} 'a[$(touch {work}/spoilt)0]=5'")
    for limit in "eps", "size", "depth":
        kdapl_test(work, f"server -a 10.0.0.1 -i rxe0/1 -l '{limit}=a[$(touch {work}/spoilt)0]'")
    expect(not (work / "spoilt").exists(), "what is in a number was run")


def takes_all_of_dapl(work):
    """Each test takes the options that its help has, and dapltest's that change nothing."""
    for arguments in (
            "-T T -s 10.0.0.1 -D rxe0/1 -n 5200 -i 5 -t 2 -w 2 -V --srq --marks --fmr "
            "--invalidate --reconnect 2 -R 2 --corrupt -d -f client SR 64 2",
            "-T P -s 10.0.0.1 -D rxe0/1 -n 5200 -i 5 -t 2 -w 2 -p 16 -m p --srq --marks -d -f SR 64",
            "-T L -D rxe0/1 -m 5 -d -f limit_pz", "-T F -D rxe0/1 -d -f pz",
            "-T Q -s 10.0.0.1 -D rxe0/1 -n 5200 -d -f",
            "-T S -a 10.0.0.1 -D rxe0/1 -n 5200 -d -f"):
        expect_refusal(kdapl_test(work, "dapl " + arguments), 1, "load kdapl_test.ko")
    said = kdapl_test(work, "dapl -h")[1]
    known = set(re.findall(r"[ ,]+(--?[a-zA-Z]+)", re.split("\n  OP is", said)[1]))
    tool = (TOP / "tools/kdapl-utils/test-dapl.sh").read_text()
    taken = set(re.findall(r"[ \"](--?[a-zA-Z]+)", re.search(
        r"(?s)\ndapl_takes\(\)\n(.*?)\n}", tool)[1])) - {"-a", "-s", "-T"}
    expect(known - {"-T"} == taken, f"the help has {known}, and {taken} are taken")


def limits(work):
    """What the module would refuse after some of the runs is refused before the first one."""
    header = (TOP / "drivers/kdapl_test/kdapl_test.h").read_text()
    for option, most in (("-e", re.search(r"KT_MAX_EPS\s+(\d+)U", header)[1]),
                         ("-q", re.search(r"KT_MAX_DEPTH\s+(\d+)U", header)[1]),
                         ("-t", re.search(r"KT_MAX_MS\s+\((\d+)U \* MSEC_PER_SEC\)", header)[1])):
        command = f"bw --peer 10.0.0.1 -i rxe0/1 {option}"
        for value in int(most) + 1, 0, "99999999999999999999", "0x1", "1.5", "":
            expect_refusal(kdapl_test(work, f"{command} '{value}'"), 2,
                           f"{option} {value}: a number from 1 to {most} is wanted|is missing")
        expect_refusal(kdapl_test(work, f"{command} {most}"), 1, "load kdapl_test.ko")
    expect("KT_MAX_SIZE\t((u32)SZ_1M)" in header, "the header")
    command = "bw --peer 10.0.0.1 -i rxe0/1 -s 64,"
    for value in "1048577", "2m", "1025k":
        expect_refusal(kdapl_test(work, command + value), 2, f"{value}: 1m at most")
    expect_refusal(kdapl_test(work, command + "1m"), 1, "load kdapl_test.ko")


def names_known(_):
    """The limits and functions that the tool takes are those of the module."""
    tool = (TOP / "tools/kdapl-utils/test-dapl.sh").read_text()
    for name, files, pattern in (
            ("limits", ["limits.c"], r'(?m)^\t\{ "(\w+)", \w+,'),
            ("functions", ["functions.c", "functions_conn.c"], r'(?m)^\t\{ "(\w+)", kt_')):
        known = " ".join(re.findall(rf"(?m)^dapl_{name}\+?='([^']*)'", tool)).split()
        module = [found for file in files for found in re.findall(
            pattern, (TOP / "drivers/kdapl_test" / file).read_text())]
        expect(known == module, f"{name}: {known}, and the module has {module}")


def version(work):
    wanted = re.search(r'PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text())[1]
    (work / "kdapl_test").mkdir()
    (work / "kdapl_test/version").write_text("0.0.1\n")
    expect(kdapl_test(work, "lat --help") == kdapl_test(work, "help"), "lat --help")
    for how in "--version", "version":
        said = kdapl_test(work, how)
        expect(said == (0, f"kdapl-test {wanted}\nkdapl_test.ko 0.0.1, loaded\n"), said)


# Runs of kdapl-test lat: one way, in ns. The first run of all is slow.
LAT_RUNS = ((1, "kdapl", 9000), (1, "verbs", 2100), (2, "verbs", 2000), (2, "kdapl", 2300),
            (3, "kdapl", 2200), (3, "verbs", 1900))
SOURCE_FIGURES = """
cd tools/kdapl-utils && me=kdapl-test work=$1 command=lat op=send ia=rxe0/1 peer=10.0.0.1
for part in common test-figures test-plot; do . ./$part.sh || exit; done
summarize && table && write_json "$work/json" && write_svg "$work/svg"
"""


def figures_agree(work):
    """Table, JSON and plot show the same times, in units; the slow first run is no median."""
    with open(work / "runs", "w", encoding="utf-8") as file:
        for number, (run, over, p50) in enumerate(LAT_RUNS, 1):
            file.write(f"over={over} op=send size=64 eps=1 run={run} ops=10 ns=100000 bytes=640 "
                       f"n=10 min=1500 mean={p50} max=9000 p50={p50} p90={p50 + 100} "
                       f"p99=5000 p999=9000 p9999=9000\n")
            (work / f"hist.{number}").write_text(f"{p50} {p50 + 100} 9\n8960 9216 1\n")
    done = subprocess.run(["bash", "-c", SOURCE_FIGURES, "bash", work], cwd=TOP, text=True,
                          timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    expect(done.returncode == 0, f"status {done.returncode}: {done.stdout}")
    table = [line.split() for line in done.stdout.splitlines()]
    expect(done.stdout.startswith("us, one way ") and "p50 of 3 runs" in done.stdout,
           f"table: {done.stdout}")
    expect(table[1] == "kdapl send 64 30 1.50 2.30 2.20-9.00 2.40 5.00 9.00 9.00".split() and
           table[2] == "verbs send 64 30 1.50 2.00 1.90-2.10 2.10 5.00 9.00 9.00".split(),
           f"table: {done.stdout}")
    found = json.loads((work / "json").read_text())
    expect((found["time"], found["time_unit"]) == ("one way", "ns"), f"JSON: {found}")
    expect([(r["over"], r["messages"], r["p50"], r["p50_from"], r["p50_to"])
            for r in found["summary"]] ==
           [("kdapl", 30, 2300, 2200, 9000), ("verbs", 30, 2000, 1900, 2100)], f"JSON: {found}")
    expect([(r["run"], r["over"], r["p50"]) for r in found["runs"]] == list(LAT_RUNS) and
           found["runs"][0]["histogram"] == [[9000, 9100, 9], [8960, 9216, 1]], f"JSON: {found}")
    svg = (work / "svg").read_text()
    labels = {axis: re.findall(rf'class="{axis}"[^>]*>([^<]*)<', svg) for axis in "xy"}
    expect(labels == {"x": ["1 us", "2 us", "5 us", "10 us"],
                      "y": ["0", "5", "10", "15", "20", "25", "30"]}, f"axes: {labels}")
    expect("time one way" in svg, "the plot does not say what its times are")


# What a client may say that it has measured: 64 bits each, the first of which makes a signed
# number of microseconds 0.
RESULTS = (
    ("ops=1 ns=18446744073709550616 bytes=0 n=0 p50=0 p99=0", "1 in 0.000 s, "),
    (" ".join(f"{name}={2 ** 64 - 1}" for name in "ops ns bytes n p50 p99".split()),
     "0 in 0.000 s, 0 a second$"),
    ("ops=999999999999 ns=1 bytes=9999999999999999 n=1 p50=9223372036854775808 p99=1500",
     r"999999999999 in 0\.000 s, 999999999999000000 a second, \d+\.\d\d MB/s, "
     r"p50 0\.0 us, p99 1\.5 us$"),
    ("ops=1000 ns=2000000000 bytes=64000 n=1000 p50=1500 p99=2500",
     r"1000 in 2\.000 s, 499 a second, 0\.03 MB/s, p50 1\.5 us, p99 2\.5 us$"),
)


def any_results(work):
    """Whatever a client says of its runs, the server goes on. The device is a pipe here."""
    lines = ["client 10.0.0.2"]
    lines += [f"run stream op=send size=64 eps=1 over=kdapl {said}" for said, _ in RESULTS]
    (work / "id").write_text("#!/bin/sh\necho 0\n")
    (work / "id").chmod(0o755)
    os.mkfifo(work / "none")
    pipe = os.open(work / "none", os.O_RDWR)
    os.write(pipe, "\n".join([*lines, "error this is all", ""]).encode())
    status, said = kdapl_test(work, "server -a 10.0.0.1 -i rxe0/1",
                              PATH=f"{work}:{os.environ['PATH']}")
    os.close(pipe)
    told = said.splitlines()
    expect(status == 1 and len(told) == len(lines) + 1 and
           told[-1] == "kdapl-test: this is all", f"status {status}: {said}")
    for (_, pattern), line in zip(RESULTS, told[1:]):
        expect(re.search(f"stream of send, 64 bytes, 1 EPs over kdapl: {pattern}", line), said)


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    for arguments, status, pattern in REFUSED:
        yield f"kdapl-test {arguments}", refused, arguments, status, pattern
    yield "kdapl-test, the limits of the module", limits
    yield "kdapl-test dapl, what the module has", names_known
    yield "kdapl-test and what is in a number", runs_nothing
    yield "kdapl-test dapl, options of each test", takes_all_of_dapl
    yield "kdapl-test --version", version
    yield "kdapl-test lat: table, JSON and plot", figures_agree
    yield "kdapl-test server: any results", any_results
