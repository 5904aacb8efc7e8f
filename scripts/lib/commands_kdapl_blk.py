# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: kdapl-blk, with files in place of the kernel's, and its units."""
import json
import os
import re
import shlex
import shutil
import subprocess
import time

from commands import TOP, call_tool, environment, expect, expect_refusal, need, without_fd

# What kdapl-blk refuses before it does anything, with which status and what sentence; the
# adapters are rxe0/1 and rxe1/1.
REFUSED = (
    ("", 2, "a command is wanted"),
    ("nosuch", 2, "there is no command nosuch"),
    ("-r", 2, "-r: a command is wanted before options"),
    ("connect -a 10.0.0.1 --nosuch", 2, "connect: there is no option --nosuch"),
    ("connect -q", 2, "connect: there is no option -q"),
    ("connect -a", 2, "connect: -a wants a value"),
    ("list -r", 2, "list takes no -r"),
    ("list all", 2, "list: no argument is wanted"),
    ("connect -s vol", 2, "connect: -a ADDRESS is missing"),
    ("connect -a 10.0.0.1", 2, "connect: -s NAME is missing"),
    ("connect -a 10.0.0.1 -s vol a b", 2, "connect: one name for the DISK is wanted"),
    ("connect -a 10.0.0.1 -s vol a/b", 2, 'connect a/b: a name without "/"'),
    ("connect -a 10.0.0.1 -s a/b", 2, '-s a/b: a name without "/" is wanted'),
    ("connect -a 10.0.0.1 -s " + 64 * "x", 2, "63 bytes at most"),
    ("connect -a 10.0.0.1 -s vol -p 0", 2, "-p 0: a number from 1 to 65535"),
    ("connect -a 10.0.0.1 -s vol -n -1", 2, "-n -1: a number from 1 to 4294967295"),
    ("connect -a 10.0.0.1 -s vol -u 1", 2, "-u 1: a UUID is wanted, as 0"),
    ("connect -a 10.0.0.1 -s vol -o depth", 2, "-o depth: KEY=VALUE is wanted"),
    ("connect -a 10.0.0.1 -s vol -o secret=short", 2, "secret=...: 16 to 64 bytes are"),
    ("connect -a 10.0.0.1 -s vol -c a -c b", 2, "one -c CLIENT is wanted"),
    ("connect --wait=long -a 10.0.0.1 -s vol", 2, "--wait=long: a number of seconds"),
    ("connect -a 10.0.0.1 -s vol --wait 60", 2, "--wait=60 is how to wait for 60 seconds"),
    ("connect -a 10.0.0.1 -s vol -o connected=1", 2, "connected=1: that is what the command"),
    ("connect -a 10.0.0.1 -s vol", 1, r"several adapters \(rxe0/1 rxe1/1\); choose one"),
    ("connect -a 10.0.0.1 -s vol -i mlx5_0/1", 1, "no adapter mlx5_0/1; there is rxe0/1"),
    ("export -i mlx5_0/1 /etc/passwd", 1,
     "no adapter mlx5_0/1; there is rxe0/1.*; -f exports for one that comes later"),
    ("connect -a no.such.invalid -s vol -i rxe0/1", 1, "there is no host no.such.invalid"),
    ("connect -a 10.0.0.300 -s vol -i rxe0/1", 1, "there is no host 10.0.0.300"),
    ("connect -a 10.0.0.1 -s vol -i rxe0/1", 1, "disk one, /dev/kdapl7, is that volume al"),
    ("connect -a 10.0.0.1 -s vol -n 2 -i rxe0/1 one", 1, "a disk one already, which is conn"),
    ("discover", 2, "discover: -a ADDRESS is missing"),
    ("discover all", 2, "discover: no argument is wanted"),
    ("discover -a 10.0.0.1 -s vol", 2, "discover takes no -s"),
    ("discover -a 10.0.0.1 -i mlx5_0/1", 1, "no adapter mlx5_0/1; there is rxe0/1"),
    ("connect -a 10.0.0.1 -s vol -i rxe0", 1, "disk one, /dev/kdapl7, is that volume al"),
    ("connect -a 10.0.0.1 -s vol -i rxe0/1 -u ''", 2, "connect: -u wants a value, and it is empty"),
    ("connect -a 10.0.0.1 -s vol -i ''", 2, "connect: -i wants a value, and it is empty"),
    ("connect -a 10.0.0.1 -s 'a\tb' -i rxe0/1", 2, r"-s \$'a\\tb': no control characters"),
    ("connect -a 10.0.0.1 -s a -i rxe0/1 'b\nc'", 2, r"connect \$'b\\nc': no control"),
    ("connect -a 10.0.0.1 -s a -i rxe0/1 -o 'secret=0123456789abcdef\n'", 2,
     "-o secret=...: no control"),
    ("connect -a 10.0.0.1 -s new -i rxe0/1", 1, "-i rxe0/1: there is no ia: choose nothing"),
    ("connect -a 10.0.0.1 -s a -i rxe0/1 -o ia=rxe1/1", 2, "-o ia=rxe1/1: -i says that"),
    ("connect -a 10.0.0.1 -s a -i rxe0/1 -o subsystem=b", 2, "-o subsystem=b: -s says that"),
    ("connect -a 10.0.0.1 -s vol -i rxe0/1 -o only_path=0", 2, "-o only_path=0: -m says that"),
    ("export -i rxe0/1 -o conn_qual=5200 /etc/passwd", 2, "-o conn_qual=5200: -p says that"),
    ("disconnect", 2, 'disconnect: one DISK is wanted, or "all"'),
    ("disconnect two", 1, 'there is no disk two; see "kdapl-blk list"'),
    ("disconnect /dev/kdapl8", 1, "there is no disk /dev/kdapl8"),
    ("disconnect /dev/kdapl7p1", 1, "is a partition: name the disk, kdapl7"),
    ("disconnect kdapl7", 1, "kdapl7 is one disk's name and another one's device"),
    ("export", 2, "export: one PATH is wanted"),
    ("export -c a -c b -c a /etc/passwd", 2, "-c a: this client is named twice"),
    ("export /nonexistent", 1, "/nonexistent is not there"),
    ("export /dev/null", 1, "/dev/null is no block device and no file"),
    ("export -s vol -i rxe0/1", 1, "there is no subsystem vol to offer at another port"),
    ("export -s vol -i rxe0/1 -r", 2, "export: -r is for a PATH, and there is none"),
    ("export -u 01234567-89ab-cdef-0123-456789abcdef -s vol", 2, "export: -u is for a PATH"),
    ("export -s vol -n 1 -p 5101", 2, "export: -n is for a PATH"),
    ("export ''", 2, "export: one PATH is wanted"),
    ("export '/etc/a\nb'", 2, r"export \$'/etc/a\\nb': no control characters are wanted"),
    ("export -c new -c newer -i rxe0/1 /etc/passwd", 1, "cannot allow new: No such file"),
    ("unexport ../clients", 1, 'there is no subsystem "../clients" here'),
    ("unexport .", 1, 'there is no subsystem "." here'),
    ("unexport", 2, "unexport: one NAME is wanted"),
    ("unexport vol", 1, 'there is no subsystem "vol" here'),
    ("stats two", 1, "there is no port or disk two"),
    ("stats ''", 2, "stats: one NAME is wanted, or none"),
    ("restore all", 2, 'restore: "exports" or "disks" is wanted'),
    ("restore", 1, "there is no .*/saved; \"kdapl-blk save\" makes it"),
    ("stop all", 2, 'stop: "exports" or "disks" is wanted'),
    ("save all", 2, "save: no argument is wanted"),
)


# Commands, and what cannot be written.
LEAVES_NOTHING = (
    ("export -i rxe0/1 -s vol -c new -c newer -r -u 01234567-89ab-cdef-0123-456789abcdef "
     "-o credits=5 {}/file",
     "path read_only uuid ia conn_qual credits listen allowed_clients namespaces"),
    ("export -i rxe0/1 {}/file", "allow_any_client path listen"),
    ("connect -i rxe0/1 -a 10.0.0.9 -s vol -c me -u 01234567-89ab-cdef-0123-456789abcdef "
     "-o depth=5 -o secret=0123456789abcdef new",
     "ia address conn_qual client subsystem namespace uuid only_path depth secret connected "
     "device"),
    ("discover -i rxe0/1 -a 10.0.0.9 -c me -o secret=0123456789abcdef",
     "ia address conn_qual client secret discover"),
)


def blk(work, arguments, **more):
    """Call kdapl-blk where there is one disk and no export. Return status and words."""
    config, ib = work / "config", work / "ib"
    if not config.exists():
        for name in "ports", "subsystems", "clients":
            (config / "kdapl_blk_tgt" / name).mkdir(parents=True)
        for disk, device in ("one", "kdapl7"), ("kdapl7", "kdapl9"):
            (config / "kdapl_blk" / disk).mkdir(parents=True)
            for name, value in (("ia", "rxe0/1"), ("address", "10.0.0.1"),
                                ("conn_qual", "5100"), ("subsystem", "vol"),
                                ("namespace", "1"), ("state", "connected"),
                                ("device", device), ("connected", "1"),
                                ("uuid", 'a "quoted" \\ one'), ("client", "me"),
                                ("stats", "requests sent   5\nqueues  2 of 2")):
                (config / "kdapl_blk" / disk / name).write_text(value + "\n")
        (config / "kdapl_blk/kdapl7/namespace").write_text("9\n")
        for name in "rxe0", "rxe1":
            (ib / name / "ports/1").mkdir(parents=True)
    return call_tool("kdapl-blk", arguments, **{
        "KDAPL_BLK_CONFIGFS": str(config), "KDAPL_IB": str(ib), "KDAPL_RUN": str(work / "run"),
        "KDAPL_BLK_SAVED": str(work / "saved"), "KDAPL_BLK_STATE": str(work / "state"), **more})


def needs_no_fd(work):
    """The same is told where there is no /dev/fd."""
    need(without_fd(), "/dev/fd cannot be taken away here")
    for arguments in "list", "list --json", "stats", "disconnect two", "-r":
        wanted = blk(work, arguments)
        found = blk(work, arguments, within=without_fd())
        expect(found == wanted, f"{arguments}: {found}")


def refused(work, arguments, wanted, pattern):
    """A sentence, the status that the manual promises, and nothing is done."""
    blk(work, "list")
    before = {p: p.is_file() and p.read_text() for p in work.rglob("*")}
    expect_refusal(blk(work, arguments), wanted, pattern)
    after = {p: p.is_file() and p.read_text() for p in work.rglob("*")}
    expect(before == after, f"it has changed {set(before.items()) ^ set(after.items())}")


def tells(work):
    """Tables with a header, JSON that a program can read, and one version."""
    status, said = blk(work, "list")
    expect(status == 0, f"list: status {status}")
    expect(re.search(r"(?m)^DISK +DEVICE +SIZE +STATE ", said), f"list says: {said}")
    expect(re.search(r"(?m)^one +/dev/kdapl7 +- +connected +vol ", said), f"list says: {said}")
    found = json.loads(blk(work, "list --json")[1])
    disk = [d for d in found["disks"] if d["disk"] == "one"][0]
    expect(disk["uuid"] == 'a "quoted" \\ one' and disk["volume"] == 1, f"JSON: {disk}")
    counts = json.loads(blk(work, "stats -j one")[1])["disks"]
    expect(counts == {"one": {"requests sent": 5, "queues": "2 of 2"}}, f"JSON: {counts}")
    version = re.search(r'PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text())[1]
    expect(blk(work, "--version")[1].startswith(f"kdapl-blk {version}\n"), "--version")


def adapters_by_guid(work):
    """What was saved finds its adapter by its GUID, and is not forgotten while it is away."""
    blk(work, "list")
    ib, disk = work / "ib", work / "config/kdapl_blk/one"
    for path in [p for n in ("state", "stats", "device") for p in disk.parent.glob(f"*/{n}")]:
        path.chmod(0o444)
    for name in "rxe0", "rxe1":
        (ib / name / "node_guid").write_text(f"the GUID of {name}\n")
    for old, new, command, status, pattern, now in (
            ("rxe0", "rxe0", "save", 0, "^$", "rxe0"),
            ("rxe0", "rxe2", "restore disks", 0, "^$", "rxe2"),
            ("rxe1", "rxe0", "restore disks", 0, "^$", "rxe2"),
            ("rxe2", "../away", "restore disks", 1, "rxe0/1 is another adapter than", "rxe2"),
            ("rxe0", "rxe0", "save", 1, "has more than was restored: restore it", "rxe2"),
            ("rxe0", "rxe0", "restore --wait=30 disks", 0, "it is taken all the same", "rxe0")):
        (ib / old).rename(ib / new)
        done = blk(work, command)
        expect(done[0] == status and re.search(pattern, done[1]), f"{command} says {done}")
        expect((disk / "ia").read_text() == f"{now}/1\n", f"{command}: {disk / 'ia'}")


def keeps_what_was_saved(work):
    """A save while an adapter is away keeps its GUID. What connecting changes is not saved, and
    a disk that is connected is not touched for it."""
    blk(work, "list")
    ib, disk = work / "ib", work / "config/kdapl_blk/one"
    for path in [p for n in ("state", "stats", "device") for p in disk.parent.glob(f"*/{n}")]:
        path.chmod(0o444)
    (ib / "rxe0/node_guid").write_text("the GUID of rxe0\n")
    (disk / "only_path").write_text("1\n")
    expect(blk(work, "save")[0] == 0, "save")
    before = (work / "saved").read_text()
    expect("\tthe GUID of rxe0\n" in before, before)
    (disk / "only_path").write_text("0\n")
    (ib / "rxe0").rename(work / "away")
    expect(blk(work, "save")[0] == 0, "save without the adapter")
    expect((work / "saved").read_text() == before, (work / "saved").read_text())
    (work / "away").rename(ib / "rxe0")
    (work / "saved").write_text(before + "put\tkdapl_blk/one/only_path\t1\n")
    expect(blk(work, "restore disks") == (0, ""), "restore")
    expect((disk / "only_path").read_text() == "0\n", "it is changed")


def several_ports(work):
    """The port of an adapter may be left out if there is one."""
    blk(work, "list")
    for port in "1", "2":
        (work / "ib/two/ports" / port).mkdir(parents=True)
    for command in "connect -a 10.0.0.1 -s vol", "discover -a 10.0.0.1", "export /etc/passwd":
        expect_refusal(blk(work, f"{command} -i two"), 1,
                       "-i two: this device has several ports: choose two/1 or two/2")


def save_forgets_nothing(work):
    """What was saved stays if it cannot be seen, or the new file cannot be written."""
    blk(work, "list")
    config, saved = work / "config", work / "saved"
    saved.write_text("dir\tkdapl_blk_tgt/subsystems/vol\ndir\tkdapl_blk/one\n")
    before = saved.read_text()
    (work / "run").mkdir()
    vol = config / "kdapl_blk_tgt/subsystems/vol"
    vol.mkdir(parents=True)
    for module, what in ("kdapl_blk_tgt", "exports"), ("kdapl_blk", "disks"):
        (config / module).rename(work / "away")
        expect_refusal(blk(work, "save"), 1, f"saved has {what}, and {module}.ko is not loaded: "
                       f'"kdapl-blk restore {what}" first')
        (work / "away").rename(config / module)
    # They are loaded, and nothing is restored yet, as before the network is there.
    vol.rmdir()
    expect_refusal(blk(work, "save"), 1, "saved has exports that are not here, and nothing is known of "
                   'their being restored .* kdapl_blk_tgt.ko was loaded: vol: '
                   '"kdapl-blk restore exports" first')
    expect(blk(work, "restore") == (0, "") and vol.is_dir(), "restore")
    (work / "saved.new").mkdir()
    expect_refusal(blk(work, "save"), 1, "cannot write .*/saved.new: Is a directory")
    expect(saved.read_text() == before, saved.read_text())


def save_after(work):
    """What an administrator takes away after it was restored is forgotten, and nothing else."""
    blk(work, "list")
    config, saved = work / "config", work / "saved"
    (work / "run").mkdir()
    one, disks = config / "kdapl_blk/one", "dir\tkdapl_blk/one\ndir\tkdapl_blk/two\n"
    for name, text in ("state", "idle\n"), ("depth", "7\n"):
        (one / name).write_text(text)
    saved.write_text(disks)
    expect(blk(work, "restore disks") == (0, ""), "restore")
    (config / "kdapl_blk/two").rmdir()
    expect(blk(work, "save")[0] == 0, "save")
    expect("one" in saved.read_text() and "two" not in saved.read_text(), saved.read_text())
    # What "stop" takes away is away for the time being, and so is what goes with a module.
    saved.write_text(disks)
    (config / "kdapl_blk").rename(work / "away")
    blk(work, "stop")
    (work / "away").rename(config / "kdapl_blk")
    expect_refusal(blk(work, "save"), 1, "disks that are not here, and nothing is known")
    expect(blk(work, "restore disks") == (0, ""), "restore")
    (config / "kdapl_blk").rename(work / "away")
    shutil.copytree(work / "away", config / "kdapl_blk")
    (config / "kdapl_blk/two").rmdir()
    expect_refusal(blk(work, "save"), 1, "disks that are not here, and nothing is known")


def taken_away(work):
    """A restore that waits for one disk leaves the others as an administrator has them."""
    blk(work, "list")
    config = work / "config/kdapl_blk"
    two = config / "two"
    # The adapter of "one" has not come.
    (work / "saved").write_text("dir\tkdapl_blk/one\nput\tkdapl_blk/one/nosuch\t1\n"
                                "dir\tkdapl_blk/two\nput\tkdapl_blk/two/depth\t9\n"
                                "dir\tkdapl_blk/three\n")
    shutil.copytree(config / "one", two)
    (two / "depth").write_text("7\n")
    for name in "depth", "done":
        (work / name).mkdir()
    (work / "bin").mkdir()
    # In the place of each wait: the second one ends it.
    (work / "bin/sleep").write_text(f"""#!/bin/sh
if [ -e {work}/once ]; then
    echo again >{config}/one/nosuch
    mkdir {work}/twice 2>/dev/null
    exit
fi
touch {work}/once
echo 8 >{two}/depth
rmdir {config}/three
""")
    (work / "bin/sleep").chmod(0o755)
    status, said = blk(work, "restore --wait disks", PATH=f"{work}/bin:{os.environ['PATH']}")
    expect(status == 0 and "nosuch" in said, f"restore: {status} {said}")
    expect((work / "twice").is_dir(), "it has not waited twice")
    expect((two / "depth").read_text() == "8\n", "what was changed meanwhile is set again")
    expect(not (config / "three").exists(), "what was taken away meanwhile is there again")


def comes_later(work):
    """A port whose adapter comes later is made then, though kdapl-blk removes it in each try."""
    blk(work, "list")
    config, port = work / "config", work / "config/kdapl_blk_tgt/ports/7"
    (work / "run").mkdir()
    (work / "ib/rxe9/ports/1").mkdir(parents=True)
    (work / "ib/rxe9/node_guid").write_text("0000:0000:0000:0009\n")
    (work / "ib/rxe9").rename(work / "rxe9")
    (work / "saved").write_text("dir\tkdapl_blk_tgt/subsystems/vol\ndir\tkdapl_blk_tgt/ports/7\n"
                                "put\tkdapl_blk_tgt/ports/7/ia\trxe9/1\t0000:0000:0000:0009\n"
                                "link\tkdapl_blk_tgt/ports/7/subsystems/vol\t"
                                "kdapl_blk_tgt/subsystems/vol\n")
    (work / "bin").mkdir()
    (work / "bin/sleep").write_text(f"#!/bin/sh\n[ ! -e {work}/once ] || mv {work}/rxe9 {work}/ib\n"
                                    f"touch {work}/once\n")
    (work / "bin/sleep").chmod(0o755)
    status, said = in_configfs(work, "restore --wait exports", "")
    expect(status == 0 and "there is no adapter rxe9/1" in said, f"restore: {status} {said}")
    expect((port / "ia").read_text() == "rxe9/1\n" and (port / "subsystems/vol").is_symlink(),
           "the port is not there")
    # What is known of this file is not known of another one.
    expect(blk(work, "save", KDAPL_BLK_SAVED=str(work / "other"))[0] == 0, "save to another file")
    shutil.rmtree(config / "kdapl_blk_tgt/ports/7")
    (work / "saved").write_text((work / "saved").read_text() + "dir\tkdapl_blk_tgt/ports/8\n")
    expect_refusal(blk(work, "save"), 1, "saved has exports that are not here.* loaded: 7 8: ")


def stopped_meanwhile(work):
    """A restore that waits ends with what is stopped, and does not take that for an administrator's
    wish."""
    blk(work, "list")
    (work / "run").mkdir()
    (work / "saved").write_text("dir\tkdapl_blk/two\ndir\tkdapl_blk/one\n"
                                "put\tkdapl_blk/one/nosuch\t1\n")
    (work / "bin").mkdir()
    (work / "bin/sleep").write_text(f"#!/bin/sh\nrm -r {work}/config/kdapl_blk/*\n"
                                    f"{TOP}/tools/kdapl-blk stop disks\n")
    (work / "bin/sleep").chmod(0o755)
    status, said = blk(work, "restore --wait disks", PATH=f"{work}/bin:{os.environ['PATH']}")
    expect(status == 1 and '"kdapl-blk stop" has taken away what was restored' in said,
           f"restore: {status} {said}")
    expect_refusal(blk(work, "save"), 1, "saved has more than was restored")


def unloaded(work):
    """Whoever asks for what there is without a module is told so, and nothing is made."""
    neither = "kdapl-blk: neither kdapl_blk_tgt.ko nor kdapl_blk.ko is loaded, so there is nothing"
    disk = "kdapl-blk: kdapl_blk.ko is not loaded, so there is no disk\n"
    blk(work, "list")
    for module in "kdapl_blk", "kdapl_blk_tgt":
        (work / "config" / module).rename(work / module)
    for arguments, wanted in (("stats", (0, neither + "\n")), ("save", (1, neither + " to save\n")),
                              ("disconnect all", (0, disk)), ("stop", (0, ""))):
        found = blk(work, arguments)
        expect(found == wanted, f"{arguments}: {found}")
    expect(not (work / "saved").exists(), "an empty file is saved")
    status, said = blk(work, "stats --json")
    expect(status == 0 and said.endswith('\n{"ports": {}, "disks": {}}\n'), f"stats --json: {said}")


def without_rights(work):
    """Who is not root is told so. A file is restored though nothing can be written beside it."""
    blk(work, "list")
    plain = ["setpriv", "--bounding-set=-all"]
    need(not os.geteuid() and not subprocess.run([*plain, "true"], stderr=subprocess.DEVNULL,
                                                 check=False).returncode,
         "root is wanted, and setpriv")
    good, bad = "dir\tkdapl_blk/one\n", "dir\tkdapl_blk/one/../two\n"
    for folder, saved, command, status, pattern in (
            (work / "config", good, "connect -a 10.0.0.1 -s new", 1, "only root may do that\n$"),
            (work / "config", good, "restore", 1, "only root may do that\n$"),
            (work, good, "restore", 0, "^$"),
            (work, bad, "restore", 1, "not ours\n.*cannot note .* do not save before it is\n$")):
        (work / "saved").write_text(saved)
        folder.chmod(0o555)
        done = subprocess.run([*plain, TOP / "tools/kdapl-blk", *command.split()], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False, env=environment(
                                  KDAPL_BLK_CONFIGFS=str(work / "config"),
                                  KDAPL_IB=str(work / "ib"), KDAPL_BLK_SAVED=str(work / "saved")))
        folder.chmod(0o755)
        expect_refusal((done.returncode, done.stdout), status, pattern, sentence=False)


# mkdir, rmdir and ln, as configfs takes them: a directory comes with its attributes, and goes
# with them. $SPOILT is one that cannot be written, or "listen", where no link to a port is made.
AS_CONFIGFS = r"""#!/bin/bash
for d; do :; done
case ${0##*/}$d in
ln*/kdapl_blk_tgt/ports/*)
	[ "$SPOILT" = listen ] || exec /bin/ln "$@"
	echo "ln: failed to create symbolic link 'x': Address already in use" >&2
	exit 1 ;;
ln*) exec /bin/ln "$@" ;;
*/kdapl_blk_tgt/subsystems/*/namespaces/*)
	files='path read_only uuid backing_uuid instance enable' dirs= ;;
*/kdapl_blk_tgt/subsystems/*) files=allow_any_client dirs='allowed_clients namespaces' ;;
*/kdapl_blk_tgt/ports/*) files='ia conn_qual credits state' dirs=subsystems ;;
*/kdapl_blk_tgt/clients/*) files=secret dirs= ;;
*/kdapl_blk/*)
	files='ia address conn_qual client subsystem namespace uuid only_path depth secret connected'
	files+=' discover device' dirs= ;;
*) exec /bin/${0##*/} "$@" ;;
esac
if [ "${0##*/}" = rmdir ]; then
	for f in $files; do rm -f "$d/$f" 2>/dev/null || /bin/rmdir "$d/$f"; done
	for f in $dirs; do [ ! -d "$d/$f" ] || /bin/rmdir "$d/$f" || exit; done
	exec /bin/rmdir "$d"
fi
/bin/mkdir "$d" || exit
for f in $files; do
	[ "$f" != "$SPOILT" ] || { /bin/mkdir "$d/$f"; continue; }
	: >"$d/$f"
	[ "$f" != device ] || echo kdapl8 >"$d/$f"
done
for f in $dirs; do [ "$f" = "$SPOILT" ] || /bin/mkdir "$d/$f"; done
"""


def in_configfs(work, command, spoilt, **more):
    """Call kdapl-blk where directories have attributes, of which one cannot be written."""
    blk(work, "list")
    (work / "bin").mkdir(exist_ok=True)
    for name in "mkdir", "rmdir", "ln":
        (work / "bin" / name).write_text(AS_CONFIGFS)
        (work / "bin" / name).chmod(0o755)
    return blk(work, command, SPOILT=spoilt, PATH=f"{work}/bin:{os.environ['PATH']}", **more)


def leaves_nothing(work, command, attributes):
    """Whichever of these cannot be written: a sentence, and nothing is left."""
    (work / "file").write_text("contents")
    in_configfs(work, "list", "")
    config = work / "config"
    before = {p: p.is_file() and p.read_text() for p in config.rglob("*")}
    for name in attributes.split():
        expect_refusal(in_configfs(work, command.format(work), name), 1, "^kdapl-blk: ")
        after = {p: p.is_file() and p.read_text() for p in config.rglob("*")}
        expect(before == after, f"{name}: it leaves {set(after) ^ set(before)}")
    # A file does not end as the list of volumes does.
    if not command.startswith("discover"):
        done = in_configfs(work, command.format(work), "")
        expect(done[0] == 0, f"it fails without: {done}")


def starts(unit):
    return re.findall(r"(?m)^ExecStart=(.*)", unit)


def disks_wait(work):
    """The unit of the disks is not active before all are there, and no other waits for it.

    systemd stops nothing of a unit that is not active when the host is shut down, so that is
    left to one that is active from the beginning.
    """
    unit = (TOP / "tools/systemd/kdapl-blk.service").read_text()
    expect(starts(unit) == ["/usr/sbin/kdapl-blk restore --wait disks"], starts(unit))
    expect("\nType=oneshot\n" in unit, "it is active while it starts")
    expect("\nDefaultDependencies=no\n" in unit, "multi-user.target waits for it")
    expect(not re.search(r"(?m)^Before=(?!shutdown.target$)", unit), "others wait for it")
    expect(not re.search(r"(?m)^ExecStop", unit), "it stops disks when it is not active")
    stops = (TOP / "tools/systemd/kdapl-blk-shutdown.service").read_text()
    expect(starts(stops) == ["/bin/true"], starts(stops))
    expect("\nRemainAfterExit=yes\n" in stops, "it is not active")
    expect("\nBefore=remote-fs-pre.target\n" in stops, "disks go before their mounts")
    tool, log, ctl = work / "kdapl-blk", work / "log", work / "systemctl"
    stop = re.findall(r"(?m)^ExecStop=(.*)", stops)
    expect(len(stop) == 1, f"it stops {stop}")
    for state, status in ("running", 0), ("running", 1), ("stopping", 0), ("stopping", 1):
        tool.write_text(f"#!/bin/sh\necho $* >>{log}\nexit {status}\n")
        ctl.write_text(f"#!/bin/sh\n[ $1 = is-system-running ] && echo {state} && exit\n"
                       f"echo systemctl $* >>{log}\n")
        for path in tool, ctl:
            path.chmod(0o755)
        done = subprocess.run(shlex.split(stop[0].replace("/usr/sbin/kdapl-blk", str(tool))),
                              timeout=60, check=False,
                              env=environment(PATH=f"{work}:{os.environ['PATH']}"))
        expect(done.returncode == status, f"{state}: status {done.returncode}")
    # What is left after a refusal is taken away when the host goes down.
    expect(log.read_text() == "stop disks\nstop disks\nsystemctl --no-block start "
           "kdapl-blk-shutdown.service\nstop -f disks\nstop -f disks\n",
           f"it has run: {log.read_text()}")


def exports_later(work):
    """What the unit starts succeeds although nothing can be restored yet, and tries again."""
    tool, log = work / "kdapl-blk", work / "log"
    tool.write_text(f"#!/bin/sh\nexec 2>/dev/null\necho $* >>{log}\n[ $(wc -l <{log}) -gt 1 ]\n")
    tool.chmod(0o755)
    unit = (TOP / "tools/systemd/kdapl-blk-target.service").read_text().replace(
        "/usr/sbin/kdapl-blk", str(tool))
    expect(len(starts(unit)) == 1, f"it starts {starts(unit)}")
    done = subprocess.run(shlex.split(starts(unit)[0]), timeout=60, check=False)
    expect(done.returncode == 0, f"status {done.returncode}")
    until = time.monotonic() + 10
    while log.read_text().count("\n") < 2 and time.monotonic() < until:
        time.sleep(0.05)
    expect(log.read_text() == "restore exports\nrestore --wait exports\n",
           f"it has run: {log.read_text()}")
    expect(re.search(rf"(?m)^ExecStopPost={re.escape(str(tool))} stop exports$", unit),
           "it does not stop them")


def units_in_order(work):
    """What systemd makes of the units: it boots while disks are missing, and at the end of
    all unmounts what is mounted before it takes the disks away."""
    need(not os.geteuid() and all(map(shutil.which, ("systemctl", "unshare", "mountpoint"))),
         "root is wanted, and systemd")
    done = subprocess.run(["unshare", "-pfm", "--mount-proc", "-n", "-u", "bash",
                           "scripts/lib/play-units.sh", str(work), "tools/systemd"], cwd=TOP,
                          env=environment(), text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          check=False)
    expect(done.stdout.splitlines() == [
        "multi-user active", "kdapl-blk-shutdown active", "kdapl-blk activating",
        "kdapl-blk active", "kdapl-blk inactive", "kdapl-blk-shutdown active",
        "kdapl-blk-shutdown active", "kdapl-blk activating", "restore --wait disks",
        "stop disks (mounted)", "restore --wait disks", "stop -f disks"], f"it says: {done.stdout}")


FSTAB_GENERATOR = "/usr/lib/systemd/system-generators/systemd-fstab-generator"


def mounts(work):
    """The page's line of fstab is a mount of remote-fs.target, and its unit is the example."""
    page = (TOP / "Documentation/kdapl-blk.rst").read_text().replace(
        "<uuid>", "00000000-0000-0000-0000-000000000000")
    line = re.search(r"(?m)^    (/dev/disk/by-id/kdapl-uuid\..* _netdev,.*)$", page)
    unit = re.search(r"(?m)(?:^    .*\n|^\n)*?^    \[Mount\]\n(?:^    .*\n|^\n)*", page)
    example = (TOP / "tools/examples/srv-data.mount").read_text()
    expect(unit and re.sub(r"(?m)^ +", "", unit[0]).strip() ==
           re.sub(r"(?m)^#.*\n", "", example).strip(), "the page has another unit")
    if os.access(FSTAB_GENERATOR, os.X_OK):
        (work / "fstab").write_text(line[1] + "\n")
        subprocess.run([FSTAB_GENERATOR, work, work, work], timeout=60, check=True,
                       env=environment(SYSTEMD_FSTAB=str(work / "fstab")))
        expect((work / "remote-fs.target.wants/srv-data.mount").exists(), "nobody wants it")
        made = (work / "srv-data.mount").read_text()
        expect("\nBefore=" not in made, f"boot waits for it: {made}")


def verifies(work, name):
    """systemd understands the unit."""
    unit = next(TOP.glob(f"tools/*/{name}")).read_text()
    if shutil.which("systemd-analyze"):
        (work / name).write_text(re.sub(r"/usr/sbin/kdapl-\w+", "/bin/true", unit))
        said = subprocess.run(["systemd-analyze", "verify", "--man=no",
                               str(work / name)], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False).stdout
        expect(name not in said, f"systemd says: {said}")


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    for arguments, status, pattern in REFUSED:
        shown = arguments.encode("unicode_escape").decode()
        yield f"kdapl-blk {shown}", refused, arguments, status, pattern
    yield "kdapl-blk list, stats, --version", tells
    yield "kdapl-blk without /dev/fd", needs_no_fd
    yield "kdapl-blk restore and GUIDs", adapters_by_guid
    yield "kdapl-blk save and restore once more", keeps_what_was_saved
    yield "kdapl-blk -i without a port", several_ports
    yield "kdapl-blk save, what it cannot see", save_forgets_nothing
    yield "kdapl-blk save after restore", save_after
    yield "kdapl-blk restore --wait, and what was taken away", taken_away
    yield "kdapl-blk restore --wait, and what comes later", comes_later
    yield "kdapl-blk restore --wait, and stop", stopped_meanwhile
    yield "kdapl-blk without a module", unloaded
    yield "kdapl-blk without rights", without_rights
    for command, attributes in LEAVES_NOTHING:
        yield f"kdapl-blk {command.split()[0]} that fails", leaves_nothing, command, attributes
    yield "kdapl-blk.service", disks_wait
    yield "kdapl-blk-target.service", exports_later
    yield "systemd and kdapl-blk.service", units_in_order
    yield "mounts of kdapl-blk.rst", mounts
    for path in sorted(TOP.glob("tools/*/*.service")) + sorted(TOP.glob("tools/*/*.mount")):
        yield f"{path.name} for systemd", verifies, path.name
