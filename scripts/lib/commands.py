# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the tests of check-commands share."""
import os
import pathlib
import re
import shlex
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    """What a test did not find as it should be."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def environment(**more):
    """As that of a user: no variable of a calling make or supervisor."""
    kept = {k: v for k, v in os.environ.items()
            if not re.match("KDAPL_|MAKE|MFLAGS|SUITE$|KERNEL$|TIMEOUT$", k)}
    return {**kept, **more}


def call_tool(name, arguments, **more):
    """Call a tool with words as a shell takes them, and variables. Return status and words."""
    done = subprocess.run([TOP / "tools" / name, *shlex.split(arguments)], env=environment(**more),
                          text=True, errors="surrogateescape", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                          check=False)
    return done.returncode, done.stdout


def expect_refusal(done, wanted, pattern, sentence=True):
    """What call_tool() has returned is this status, and these words, which are a sentence."""
    status, said = done
    expect(status == wanted, f"status {status}: {said}")
    expect(re.search(pattern, said), f"it says: {said}")
    expect(not sentence or said.count("\n") == 1, f"it says more than a sentence: {said}")
