# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: the tools, when a file that they read has been spoilt. SEED=n spoils others."""
import json
import os
import random
import re

import commands_kdapl_blk
import commands_kdapl_stat
from commands import expect

SEED = int(os.environ.get("SEED") or 1)
# What bash, awk and Python say when they were given something that they cannot read.
BROKEN = re.compile(r"line \d+:|syntax error|unbound variable|bad substitution|command not found"
                    r"|awk: |Traceback|unexpected EOF|division by zero|value too great")
# What may stand in a file that somebody has edited, cut off, or made to harm.
PIECES = ("../", "/../../", "\t", "\t\t", "\n", "\n\n", " ", "*", "?", "[", "$(touch spoilt)",
          "`touch spoilt`", "; touch spoilt;", "&touch spoilt", '"', "'", "\\", "%s%n", "-n", "--",
          "=", "x=", "a[$(touch spoilt)]", "08", "0x1g", "-1", "99999999999999999999999", "é",
          "\udcff", "y" * 5000, "put\t", "on\t", "link\t", "dir\t", "kdapl_blk/",
          "kdapl_blk_tgt/ports/")


def spoil(text, rnd):
    """Return @text with one to three changes."""
    for _ in range(rnd.randint(1, 3)):
        at = rnd.randrange(len(text) + 1)
        end = min(len(text), at + rnd.choice((0, 0, 1, 1, 3, 10, 100)))
        lines = text.splitlines(keepends=True) or [""]
        text = rnd.choice((
            lambda: text[:at] + rnd.choice(PIECES) + text[end:],
            lambda: text[:at] + text[end:],
            lambda: text[:at],
            lambda: text + rnd.choice(lines),
            lambda: "".join(rnd.sample(lines, len(lines))),
        ))()
    return text


def put(path, text):
    path.write_bytes(text.encode("utf-8", "surrogateescape"))


def outside(work, *but):
    """What is in @work, but for these."""
    return {p: p.is_file() and p.read_bytes() for p in work.rglob("*")
            if not str(p.relative_to(work)).startswith(but)}


def restores(work):
    """A saved file is restored, or refused with a sentence; nothing else is touched or run."""
    commands_kdapl_blk.blk(work, "list")
    for path in [p for n in ("state", "stats", "device")
                 for p in (work / "config/kdapl_blk").glob(f"*/{n}")]:
        path.chmod(0o444)
    expect(commands_kdapl_blk.blk(work, "save")[0] == 0, "save")
    saved = work / "saved"
    good = saved.read_text()
    before = outside(work, "config", "saved", "state")
    rnd = random.Random(SEED)
    for turn in range(40):
        bad = spoil(good, rnd)
        put(saved, bad)
        status, said = commands_kdapl_blk.blk(work, "restore")
        what = f"SEED={SEED}, turn {turn}: {bad!r}: status {status}: {said}"
        expect(status in (0, 1), what)
        expect(status == 0 or "kdapl-blk: " in said, what)
        expect(not BROKEN.search(said), what)
        expect(outside(work, "config", "saved", "state") == before, what)
    put(saved, good)


def counts(work):
    """Statistics that are cut off or of another version: tables and JSON all the same."""
    commands_kdapl_stat.stat(work, "peers")
    before = outside(work, "proc")
    rnd = random.Random(SEED)
    for turn in range(30):
        name = rnd.choice(sorted(commands_kdapl_stat.FILES))
        bad = spoil(commands_kdapl_stat.FILES[name] + "\n", rnd)
        put(work / "proc" / name, bad)
        command = rnd.choice(("peers", "connections", "queues", "modules", "ends", "summary",
                              "metrics", "--json", "connections -j", "ends -j"))
        status, said = commands_kdapl_stat.stat(work, command)
        what = f"SEED={SEED}, turn {turn}: {command}: {name}: {bad!r}: status {status}: {said}"
        expect(status in (0, 1) and not BROKEN.search(said), what)
        if status == 0 and "-j" in command:
            try:
                json.loads(said)
            except ValueError:
                expect(False, what)
        put(work / "proc" / name, commands_kdapl_stat.FILES[name] + "\n")
        expect(outside(work, "proc") == before, what)


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    yield "kdapl-blk restore of spoilt files", restores
    yield "kdapl-stat of spoilt files", counts
