# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: the commands that the documentation prints make sense, and are run."""
import os
import re
import shutil
import subprocess

import printed
from commands import TOP, environment, expect, need

PAGES = [TOP / "README.md", *sorted(TOP.glob("*.rst")),
         *sorted((TOP / "Documentation").glob("*.rst")),
         *sorted((TOP / "Documentation").glob("*.8"))]
# Words of commands that only developers type, or that check-package runs from its own texts.
FOR_DEVELOPERS = re.compile(
    r"(make|git|cd|scripts/\S+|tools/\S+|apt-get|dpkg-buildpackage|mokutil|d=|cp|cat|grep|\[)"
    r"(?!\w)")
OUR_TOOLS = re.compile(r"\s*(kdapl-(?:blk|stat|test))\b")


def lines_of(path):
    """Each command line of a page, with those that continue it."""
    for block in printed.blocks(path):
        whole = ""
        for line in "\n".join(block).split("\n"):
            whole += line + "\n"
            if not line.endswith("\\"):
                yield whole
                whole = ""


def make_sense(work, path):
    """Our tools understand each of their command lines, up to the adapter."""
    for name in "mlx5_0/ports/1", "mlx5_0/ports/2", "mlx5_1/ports/1":
        (work / "ib" / name).mkdir(parents=True)
    for name in "kdapl_blk", "kdapl_blk_tgt":
        (work / "config" / name).mkdir(parents=True)
    (work / "modprobe").write_text("#!/bin/sh\necho not found >&2\nexit 1\n")
    (work / "modprobe").chmod(0o755)
    for line in lines_of(path):
        if not OUR_TOOLS.match(line):
            continue
        done = subprocess.run(
            # Nothing of this machine is written to.
            ["bash", "-c", "n=1\n" + line.replace("/var/lib/", f"{work}/lib/")], cwd=work, text=True, timeout=60, check=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment(PATH=f"{work}:{TOP}/tools:{os.environ['PATH']}", **{
                f"KDAPL_{name}": str(work / where) for name, where in (
                    ("IB", "ib"), ("BLK_CONFIGFS", "config"), ("BLK_SAVED", "saved"),
                    ("BLK_STATE", "state"), ("RUN", "run"), ("PROC", "proc"), ("SYS", "sys"),
                    ("BLOCK", "block"), ("TRACING", "none"), ("TEST_DEVICE", "none"),
                    ("TEST_SOURCE", "none"), ("TEST_SUITES", "none"))}))
        expect(done.returncode in (0, 1), f"{line.strip()}: {done.stdout}")


def all_known(_, path):
    """A block of a command that printed.py does not know is not run, and nobody would notice."""
    for lines in printed.literal_blocks(path):
        word = re.sub(r"^[#$] ", "", lines[0] or " ").split(" ")[0]
        expect(printed.is_command(re.sub(r"^[#$] ", "", lines[0])) or not re.match("[a-z]", word) or
               not shutil.which(word), f"{word} is no command for printed.py: {lines[0]}")


def targets_exist(_, path):
    """Each target and each variable of make is one."""
    makefile = (TOP / "Makefile").read_text()
    known = set(re.findall(r"(?m)^([\w-]+(?: [\w-]+)*):(?!=)", makefile))
    known = {word for words in known for word in words.split()}
    known |= set(re.search(r"commands := ((?:.*\\\n)*.*)", makefile)[1].replace("\\", "").split())
    for line in lines_of(path):
        if not re.match(r"make(\s|$)", line):
            continue
        words = re.sub(r"#.*|[\[\]\"]|<[^>]*>", "", line).split()[1:]
        targets = [word for word in words if "=" not in word]
        expect(set(targets) <= known, f"{line.strip()}: {set(targets) - known}")
        help_texts = makefile + "".join(
            (TOP / "scripts" / t).read_text() for t in targets if (TOP / "scripts" / t).exists())
        for name in (word.split("=")[0] for word in words if "=" in word):
            # Kbuild's own are in the kernel's documentation.
            expect(re.search(rf"\b{name}\b", help_texts) or name == "KBUILD_EXTRA_SYMBOLS",
                   f"{line.strip()}: there is no {name}")


def page_of(path):
    """The page whose commands are run in place of those of a manual page."""
    return TOP / "Documentation" / (path.stem.replace("_", "-") + ".rst")


def are_run(_, path):
    """What an administrator types is typed by check-boot or check-nfs, which read the page."""
    if path.suffix == ".8":
        there = set(lines_of(page_of(path)))
        left = [line for line in lines_of(path) if line not in there]
        expect(not left, f"{page_of(path).name} does not have {left}")
        return
    if all(FOR_DEVELOPERS.match(line) for line in lines_of(path)):
        return
    guests = [(TOP / "scripts/guest" / name).read_text() for name in ("check-boot", "check-nfs")]
    orders = re.findall(r"(?m)^\w+_as_printed +(.*)$", guests[0])
    cases = re.findall(r"\bpage (\S+)", guests[1])
    expect(path.name in " ".join(orders + cases).split(),
           "no order of check-boot and no case of check-nfs has this page")


def sections_exist(_):
    """A section that is named with its page is there: its first words, where a table breaks it."""
    for path in PAGES:
        for name, words in re.findall(r':doc:`([\w-]+)`,? "([^"|\n]*)', path.read_text()):
            page = (TOP / "Documentation" / f"{name}.rst").read_text()
            expect(re.search(rf"(?m)^{re.escape(words.strip())}.*\n[=~-]{{3}}", page),
                   f'{path.name}: {name}.rst has no section "{words.strip()}..."')


def lines_fit(_):
    """What is printed as it is fits into a line of the HTML, see conf.py."""
    for path in PAGES:
        for line in (line for block in printed.literal_blocks(path) for line in block):
            expect(path.suffix == ".8" or len(line.expandtabs()) <= 90, f"{path.name}: {line}")


def pages_listed(_):
    """The index lists each page once, and each page that it lists is there."""
    text = (TOP / "Documentation/index.rst").read_text()
    listed = re.findall(r"(?m)^   (?:[^:<\n]+: [^<\n]*<)?([\w/-]+)>?$", text)
    twice = {name for name in listed if listed.count(name) > 1}
    expect(not twice, f"{twice} are there twice")
    pages = {path.stem for path in (TOP / "Documentation").glob("*.rst")} - {"index"}
    pages |= {"SECURITY", "CHANGELOG", "CONTRIBUTING"}
    listed = {name for name in listed if not name.startswith("api/")}
    expect(listed == pages, f"{listed ^ pages} are not in both")


def messages_of(page):
    """Each message that the first column of a page's tables has."""
    lines = []
    for line in page.splitlines():
        if line.startswith("+") and lines:
            yield from re.findall(r"``(.+?)``", " ".join(lines))
            lines = []
        elif line.startswith("|"):
            lines.append(line[1:line.find("|", 1)].strip())


# A conversion of printk()
CONVERSION = r"%[-*.\d]*(?:ll|l|h|z)?(?:p[A-Za-z]*|[a-zA-Z])"


def as_pattern(parts):
    return re.compile(".*".join(re.escape(part.strip(" :,")) for part in parts))


def messages_described(_):
    """Each message that a module of ours puts into the log has a row in troubleshooting.rst."""
    rows = []
    for text in messages_of((TOP / "Documentation/troubleshooting.rst").read_text()):
        parts = re.split(r"<[^>]*>|\.\.\.", text)
        if max(len(part.strip()) for part in parts) > 4:
            rows.append((text, as_pattern(parts)))
    for path in sorted((TOP / "drivers").glob("*/*.c")):
        for text in re.findall(r'\b(?:pr_(?:err|warn|notice|info)(?:_ratelimited)?|dev_(?:err|warn|info))\('
                               r'[^;"]*"((?:[^"\\]|\\.)*)"', path.read_text()):
            text = text.replace("\\n", "").replace('\\"', '"')
            parts = re.split(CONVERSION, text)
            if max(len(part.strip(" :,")) for part in parts) < 8:
                continue
            said, pattern = "X".join(parts), as_pattern(parts)
            expect(any(row.search(said) or pattern.search(shown) for shown, row in rows),
                   f"{path.name}: troubleshooting.rst does not have {text!r}")


def rules_named(_):
    """Who is refused for a member finds its rule, and the tracepoint that names it."""
    for source, header, call in (("pool.c", "kdat_pool.h", "kdat_pool_create"),
                                 ("portal_server.c", "kdat_portal.h", "kdat_server_create")):
        comment = re.search(rf"(?s)/\*\*\n \* {call}\(\) - .*?\*/",
                            (TOP / "include/dat" / header).read_text())[0]
        rules = re.findall(r'\{ "(\w+)", attr->\w+, ', (TOP / "drivers/kdapl" / source).read_text())
        expect(rules, f"{source} has no rules")
        for word in [*rules, "kdapl_refused"]:
            expect(re.search(rf"\b{word}\b", comment.split("Return:")[1].split("Example")[0]),
                   f"{call}() does not name {word}")
    page = (TOP / "Documentation/tracing.rst").read_text()
    expect("ia=0" in page.split("\nkdapl_refused ")[1].split("\nkdapl_")[0],
           "the page does not say what ia=0 is")


def rows_of(path):
    """Each row of a file of /sys/kernel/debug/kdapl that a page prints, as one line."""
    for block in printed.literal_blocks(path):
        row = ""
        for line in [*block, ""]:
            if row and line.startswith("    "):
                row += " " + line.strip()
                continue
            if row:
                yield row
            row = line if re.match(r"(\.\.\./\w+:)?[0-9a-f]{16} \w+=", line) else ""


def rows_whole(_):
    """A printed row of debugfs has the keys that the kernel prints, in their order."""
    source = (TOP / "drivers/kdapl/debugfs.c").read_text()
    formats = {}
    for name, function in re.findall(r'\{ "(\w+)", DAT_HANDLE_TYPE_\w+, (\w+) \}', source):
        body = re.search(rf"(?ms)^static void {function}\(.*?^\}}", source)[0]
        formats[name] = re.findall(r"([\w-]+)=%", "".join(re.findall(r'"(.*?)"', body)))
    expect(len(formats) == 4 and all(len(f) > 2 for f in formats.values()), f"{formats}")
    found = 0
    for path in PAGES:
        for row in rows_of(path):
            keys = re.findall(r"(?<= )([\w-]+)=", row)
            wanted = max(formats.values(), key=lambda f: len(set(f) & set(keys)))
            expect(keys == wanted, f"{path.name} prints {keys}, and there are {wanted}")
            found += 1
    expect(found >= 6, f"{found} rows are printed")


# What DKMS takes over from a configuration file, and from that of an administrator.
READ_BY_DKMS = r"""
eval "$(sed -n '/^readonly dkms_conf_variables=/,/"$/p; /^safe_source()/,/^}/p' "$1")"
mktemp_or_die() { mktemp; }
kernel_source_dir=/build parallel_jobs=2
for file in dkms.conf "$2"; do safe_source "$file" $dkms_conf_variables; done
printf '%s\n' "${MAKE[0]}"
"""


def vendor_by_dkms(work):
    """What troubleshooting.rst has for /etc/dkms/kdapl.conf gets into DKMS's call of make."""
    dkms = shutil.which("dkms", path=f"{os.environ['PATH']}:/usr/sbin")
    page = (TOP / "Documentation/troubleshooting.rst").read_text()
    said = re.search(r"(?s)``/etc/dkms/kdapl.conf``.*?::\n\n((?:    [^\n]*\n)+)", page)[1]
    (work / "kdapl.conf").write_text(re.sub("(?m)^    ", "", said))
    need(dkms, "dkms is not installed")
    done = subprocess.run(["bash", "-c", READ_BY_DKMS, "bash", dkms, work / "kdapl.conf"],
                          cwd=TOP, env=environment(), text=True, timeout=60, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(re.fullmatch(r"'make' -j2 KDIR=/build modules "
                        r"KBUILD_EXTRA_SYMBOLS=/\S+/Module.symvers\n", done.stdout),
           f"it calls {done.stdout}")


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    yield "lines that fit the page", lines_fit
    yield "pages of the index", pages_listed
    yield "sections that pages name", sections_exist
    yield "messages in troubleshooting.rst", messages_described
    yield "rules that headers name", rules_named
    yield "rows of debugfs that pages print", rows_whole
    yield "a vendor's Module.symvers for DKMS", vendor_by_dkms
    for path in PAGES:
        if not any(True for _ in printed.blocks(path)):
            continue
        name = path.relative_to(TOP)
        yield f"{name}: commands make sense", make_sense, path
        yield f"{name}: targets of make", targets_exist, path
        yield f"{name}: commands that are known", all_known, path
        yield f"{name}: commands are run", are_run, path
