# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands that a page of the documentation prints, for those who run or check them.

A literal block whose first line is a command has commands only, as typed by root. Where a
line has a prompt ("# " or "$ "), those with prompts are commands, and the others output: one
with "ERROR:" belongs to a command that fails.

As a program: [--without "WORD..."] PAGE; prints a script of all commands of the page, but for
blocks that begin with one of these words. Each block is behind a call of before() with the
block as its argument.
"""
import pathlib
import re
import shlex
import sys

COMMANDS = set("""[ apt-get cat cd cp dmesg dmsetup dpkg-buildpackage echo for git grep insmod
    iscsiadm kdapl-blk kdapl-stat kdapl-test keyctl make mkfs.ext4 modprobe mokutil mount perf
    rdma rmmod bpftrace systemctl targetcli tr trace-cmd until""".split())


def is_command(line):
    word = re.match(r"(?:(\w+=)|([\w./\[-]+))", line)
    return bool(word) and bool(word[1] or word[2] in COMMANDS or
                               re.match(r"(scripts|tools)/", word[2]))


def literal_blocks(path):
    """Each block that is printed as it is: a list of lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".8":
        found = re.findall(r"(?m)^\.Bd -literal.*\n((?:.*\n)*?)\.Ed$|((?:^\.Dl .*\n)+)", text)
        return [re.sub(r"(?m)^\.Dl ", "", long or short).splitlines() for long, short in found]
    begin = r"\n\n" if path.suffix == ".md" else r"::\n\n"
    return [[line[4:] for line in block.rstrip("\n").split("\n")]
            for block in re.findall(begin + r"((?:    .*\n|\n)+)", text)]


def is_whole(command):
    """Are all quotation marks closed, and is the last line not continued?"""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        list(lexer)
    except ValueError:
        return False
    return not command.endswith("\\")


def prompted(lines):
    """The commands of a block with prompts; what fails as printed is to fail."""
    commands, more = [], False
    for line in lines:
        if more:
            commands[-1] += "\n" + line
        elif re.match("[#$] ", line) and is_command(line[2:]):
            commands.append(line[2:])
        elif "ERROR:" in line:
            commands[-1] = f"if {commands[-1]}; then false; fi"
        more = bool(commands) and not is_whole(commands[-1])
    return commands


def blocks(path):
    """Each block of commands of a page: a list of commands, which may have several lines."""
    for lines in literal_blocks(path):
        if any(re.match("[#$] ", line) and is_command(line[2:]) for line in lines):
            yield prompted(lines)
        elif is_command(lines[0]):
            yield lines


def main():
    without = tuple(sys.argv[2].split()) if sys.argv[1] == "--without" else ()
    for block in blocks(pathlib.Path(sys.argv[-1])):
        if not without or not block[0].startswith(without):
            print("before", shlex.quote("\n".join(block)))
            print("\n".join(block))


if __name__ == "__main__":
    main()
