# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the tests of check-commands share."""
import functools
import os
import pathlib
import re
import shlex
import subprocess

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    """What a test did not find as it should be."""


class Skipped(Exception):
    """What a test needs and is not here."""


def need(condition, what):
    if not condition:
        raise Skipped(what)


def expect(condition, what):
    if not condition:
        raise Failed(what)


def environment(**more):
    """As that of a user: no variable of a calling make or supervisor."""
    kept = {k: v for k, v in os.environ.items()
            if not re.match("KDAPL_|MAKE|MFLAGS|SUITE$|KERNEL$|TIMEOUT$", k)}
    return {**kept, **more}


def call_tool(name, arguments, within=(), **more):
    """Call a tool with words as a shell takes them, and variables, by the command @within.
    Return status and words."""
    done = subprocess.run([*within, TOP / "tools" / name, *shlex.split(arguments)],
                          env=environment(**more), text=True, errors="surrogateescape",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False)
    return done.returncode, done.stdout


# Run a command where /dev has nothing but null.
ONLY_NULL = ("mount -t tmpfs none /mnt && : >/mnt/null && mount --bind /dev/null /mnt/null && "
             'mount --rbind /mnt /dev && exec "$@"')


@functools.cache
def without_fd():
    """The command that runs another one where there is no /dev/fd, as in a small guest; nothing
    if that cannot be done here."""
    command = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]),
               "sh", "-c", ONLY_NULL, "sh"]
    try:
        done = subprocess.run([*command, "test", "!", "-e", "/dev/fd"], timeout=60, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return []
    return [] if done.returncode else command


def expect_refusal(done, wanted, pattern, sentence=True):
    """What call_tool() has returned is this status, and these words, which are a sentence."""
    status, said = done
    expect(status == wanted, f"status {status}: {said}")
    expect(re.search(pattern, said), f"it says: {said}")
    expect(not sentence or said.count("\n") == 1, f"it says more than a sentence: {said}")
