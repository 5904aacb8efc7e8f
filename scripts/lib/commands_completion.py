# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: bash completion of the tools, where names are not what one would choose, and
the options of their manual pages."""
import re
import subprocess

from commands import TOP, call_tool, environment, expect

# Print what is offered for the words that follow, one a line.
COMPLETE = r"""
name=$1 function=_${1//-/_}
. "$0/tools/completion/$name"
shift
COMP_WORDS=("$0/tools/$name" "$@") COMP_CWORD=$#
"$function"
printf '%s\n' "${COMPREPLY[@]}"
"""
# A name, and how the shell wants it.
NAMES = (("$(touch spoilt)", r"\$\(touch\ spoilt\)"), ("a b", r"a\ b"),
         ("a;touch spoilt", r"a\;touch\ spoilt"),
         ("`touch spoilt`", r"\`touch\ spoilt\`"), ("plain", "plain"), ("*", r"\*"))


def offered(work, tool, *words):
    """Return what is offered for the last one of @words; nothing else may happen."""
    done = subprocess.run(["bash", "-c", COMPLETE, TOP, tool, *words], cwd=work, text=True,
                          timeout=60, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment(KDAPL_BLK_CONFIGFS=str(work / "config"),
                                          KDAPL_IB=str(work / "ib"),
                                          KDAPL_PROC=str(work / "proc")))
    # Outside of a completion there is no compopt.
    said = [line for line in done.stderr.splitlines() if "compopt" not in line]
    expect(not said, f"{words}: {said}")
    expect(not (work / "spoilt").exists(), f"{words}: what is in a name was run")
    return [line for line in done.stdout.splitlines() if line]


def odd_names(work):
    """Names of disks and exports are offered as the shell wants them; nothing in them is run."""
    for folder in "kdapl_blk", "kdapl_blk_tgt/subsystems", "kdapl_blk_tgt/clients":
        for name, _ in NAMES:
            (work / "config" / folder / name).mkdir(parents=True)
    quoted = sorted(q for _, q in NAMES)
    for tool, words, more in (("kdapl-stat", ["latency", ""], []),
                              ("kdapl-blk", ["disconnect", ""], ["all"]),
                              ("kdapl-blk", ["stats", ""], []), ("kdapl-blk", ["unexport", ""], []),
                              ("kdapl-blk", ["export", "-s", ""], []),
                              ("kdapl-blk", ["export", "-c", ""], [])):
        found = offered(work, tool, *words)
        expect(sorted(found) == sorted(quoted + more), f"{tool} {words}: {found}")
        # What was completed is completed again.
        for begun in "a", "a\\ ", "\\$":
            found = offered(work, tool, *words[:-1], begun)
            wanted = [q for n, q in NAMES if n.startswith(begun) or q.startswith(begun)]
            wanted += [m for m in more if m.startswith(begun)]
            expect(sorted(found) == sorted(wanted), f"{tool} {words}, {begun}: {found}")


def odd_adapters(work):
    """Names of adapters and peers are words, too."""
    for name, _ in NAMES:
        (work / "ib" / name / "ports/1").mkdir(parents=True)
    wanted = sorted(f"{q}/1" for _, q in NAMES)
    for tool, words in (("kdapl-test", ["lat", "-i", ""]), ("kdapl-blk", ["connect", "-i", ""])):
        found = sorted(offered(work, tool, *words))
        expect(found == wanted, f"{tool}: {found}")
    (work / "proc").mkdir()
    expect(offered(work, "kdapl-stat", "peers", "-p", "") == [], "no peer is offered as one")
    (work / "proc/eps").write_text("ep=1 remote=$(touch$IFS./spoilt):5 x\n"
                                   "ep=2 remote=[fd00::2]:5 x\nep=3 remote=10.8.0.2:5 x\n")
    found = sorted(offered(work, "kdapl-stat", "peers", "-p", ""))
    expect(found == ["10.8.0.2", r"\$\(touch\$IFS./spoilt\)", "fd00::2"], f"peers: {found}")


def without_command(work):
    """In place of a command there may be what prints the help or the version."""
    for tool in "kdapl-blk", "kdapl-stat", "kdapl-test":
        found = offered(work, tool, "-")
        expect(found == ["-h", "--help", "-V", "--version"], f"{tool}: {found}")
        for option in found:
            expect(call_tool(tool, option, KDAPL_SYS=str(work))[0] == 0, f"{tool} {option}")


def synopsis_of(page):
    """Return the options that each command has in the SYNOPSIS of a manual page."""
    found = {}
    for block in page.split("\n.Sh SYNOPSIS\n")[1].split("\n.Sh ")[0].split(".Nm\n")[1:]:
        # An option that has a long name, too, is the short one.
        block = re.sub(r"Fl Fl \w+|Fl -(?=\w)", lambda m: "Fl -" if m[0] == "Fl -" else "", block)
        options = {"-" + name for name in re.findall(r"\bFl (-?\w+)", block)}
        for word in re.search(r"(?m)^(?:\.Op )?\.?Cm (.*)$|^\.Fl", block)[0].split():
            if re.fullmatch("[a-z]+", word):
                found.setdefault(word, set()).update(options)
    return found


def options_described(_, tool):
    """The SYNOPSIS of the manual page has what takes() has, and the page each option."""
    page = (TOP / f"Documentation/{tool}.8").read_text()
    takes = re.search(r"(?ms)^takes\(\)\n.*?^}", (TOP / f"tools/{tool}").read_text())[0]
    for command, options in synopsis_of(page).items():
        said = subprocess.run(["bash", "-c", f"{takes}\ntakes {command}"], text=True, timeout=60,
                              check=True, stdout=subprocess.PIPE).stdout.strip()
        taken = set(said.split()) if " " in said or said.startswith("-") else \
            {"-" + letter for letter in said}
        expect(options == taken or command == "dapl",
               f"{command}: SYNOPSIS has {options}, and {taken} are taken")
    described = set(re.findall(r"\bFl (?:Fl )?(-?\w+)", "".join(
        re.findall(r"(?m)^\.It (?:Fl|Xo).*$", page))))
    wanted = {"h", "help", "V", "version"} | {
        option.lstrip("-") for option in
        re.findall(r"(?m)^  (-\w|--\w+)\b", call_tool(tool, "help")[1])}
    left = wanted - {name.lstrip("-") for name in described}
    expect(not left, f"the page does not describe {left}")


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    yield "completion and the names of disks", odd_names
    yield "completion of --help and --version", without_command
    for tool in "kdapl-blk", "kdapl-stat", "kdapl-test":
        yield f"options of {tool}(8)", options_described, tool
    yield "completion and the names of adapters", odd_adapters
