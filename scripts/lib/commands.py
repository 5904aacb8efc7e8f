# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the tests of check-commands share."""
import os
import pathlib
import re

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
