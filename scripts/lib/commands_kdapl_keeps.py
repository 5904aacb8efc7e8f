# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""check-commands: what kdapl-blk keeps for later: the saved file, and notes of instances."""
import os
import re
import shutil
import subprocess

from commands import call_tool, expect, expect_refusal, need
from commands_kdapl_blk import blk, in_configfs

UUID = "01234567-89ab-cdef-0123-456789abcdef"


def put_program(work, name, text):
    """Have a program of this name found first. Return the PATH for that."""
    (work / "bin").mkdir(exist_ok=True)
    (work / "bin" / name).write_text(text)
    (work / "bin" / name).chmod(0o755)
    return f"{work}/bin:{os.environ['PATH']}"


def saved_whole(work):
    """A save that cannot be written, or that the medium does not take, leaves the former one."""
    blk(work, "list")
    saved = work / "saved"
    expect(blk(work, "save") == (0, ""), "save")
    before = saved.read_text()
    expect(before.startswith("dir\tkdapl_blk/") and before.endswith("\n"), before)
    (work / "saved.new").symlink_to("/dev/full")
    expect_refusal(blk(work, "save"), 1, "cannot write .*/saved.new: No space left on device")
    expect(saved.read_text() == before and not saved.is_symlink(), "the former file is gone")
    expect(not (work / "saved.new").is_symlink(), "saved.new is left")
    path = put_program(work, "sync", "#!/bin/sh\n[ $# -eq 0 ] || { echo \"sync: error syncing "
                       "'$1': Input/output error\" >&2; exit 1; }\n")
    expect_refusal(blk(work, "save", PATH=path), 1, "saved.new: Input/output error")
    expect(saved.read_text() == before and not (work / "saved.new").exists(), "not synced")
    # An attribute of a disk that cannot be read, not even by root
    broken = work / "config/kdapl_blk/one/client"
    path = put_program(work, "cat", f"#!/bin/sh\n[ \"$1\" != {broken} ] || exit 1\n"
                       "exec /bin/cat \"$@\"\n")
    (work / "bin/sync").unlink()
    expect_refusal(blk(work, "save", PATH=path), 1, "cannot read .*/one/client, so nothing is sav")
    expect(saved.read_text() == before, "a part was saved")


def instance_kept(work):
    """An export that is refused leaves the note of the volume's instance for the next one."""
    file, note = work / "file", work / "state" / UUID
    file.write_text("contents")
    note.parent.mkdir()
    command = f"export -i rxe0/1 -s vol -u {UUID} {file}"
    for spoilt in "enable", "instance", "listen":
        note.write_text("17\n")
        done = in_configfs(work, command, spoilt)
        # In place of "enable" there is a directory, which cat(1) complains of.
        expect_refusal(done, 1, "^kdapl-blk: ", sentence=spoilt != "enable")
        expect(note.exists() and note.read_text() == "17\n", f"{spoilt}: the note is gone")
    expect(in_configfs(work, command, "")[0] == 0, "it fails without")
    volume = work / "config/kdapl_blk_tgt/subsystems/vol/namespaces/1"
    expect((volume / "instance").read_text() == "17\n", "it is another instance")
    expect(not note.exists(), "the note is there while the volume is written to")
    expect(in_configfs(work, "unexport vol", "")[0] == 0, "unexport")
    expect(note.read_text() == "17\n", "no note after unexport")
    expect(in_configfs(work, "list", "")[0] == 0 and not volume.exists(), "it is there")
    # Restored, but not enabled; then it is not to be exported at all.
    (work / "saved").write_text("".join(f"{line}\n".replace(" ", "\t") for line in (
        "dir kdapl_blk_tgt/subsystems/vol", "dir kdapl_blk_tgt/subsystems/vol/namespaces/1",
        f"put kdapl_blk_tgt/subsystems/vol/namespaces/1/path {file}",
        f"put kdapl_blk_tgt/subsystems/vol/namespaces/1/uuid {UUID}",
        "on kdapl_blk_tgt/subsystems/vol/namespaces/1/enable")))
    expect(in_configfs(work, "restore exports", "enable")[0] == 1, "restore")
    expect(note.exists() and note.read_text() == "17\n", "restore has lost the note")
    expect(in_configfs(work, "unexport vol", "enable")[0] == 0, "unexport")
    expect(note.read_text() == "17\n", "unexport has lost the note")


def units_started(work):
    """After the first save of a boot the units that stop all in order are active."""
    blk(work, "list")
    log = work / "log"
    path = put_program(work, "systemctl", f"""#!/bin/sh
echo "$*" >>{log}
case "$*" in
*is-active*kdapl-blk-target*) exit $TARGET_ACTIVE ;;
*is-active*) exit 3 ;;
*is-enabled*) exit $NOT_ENABLED ;;
is-system-running) echo "$STATE" ;;
*start*) [ $STARTS = 1 ] || {{ echo "Failed to start: no" >&2; exit 1; }} ;;
esac
""")

    def save(active, enabled, starts, state="running"):
        log.write_text("")
        done = blk(work, "save", PATH=path, TARGET_ACTIVE="0" if active else "3", STATE=state,
                   NOT_ENABLED="0" if enabled else "1", STARTS=str(int(starts)))
        expect((work / "saved").exists(), "nothing is saved")
        return done, re.findall(r"(?m)^(?:start|(?=--no-block start)) ?(.*)$", log.read_text())

    expect(save(False, True, True) == ((0, ""), []), "systemd is not there, and is asked")
    (work / "run/systemd/system").mkdir(parents=True)
    both = ["kdapl-blk-target.service", "kdapl-blk-shutdown.service"]
    expect(save(False, True, True) == ((0, ""), both), log.read_text())
    expect(save(True, True, True) == ((0, ""), both[1:]), log.read_text())
    # Who boots the host must not wait for what waits for the boot.
    expect(save(True, True, True, "starting") ==
           ((0, ""), ["--no-block start " + both[1]]), log.read_text())
    expect(save(False, False, True) == ((0, ""), []), log.read_text())
    done, _ = save(False, True, False)
    expect_refusal(done, 0, "saved, but exports and disks are not stopped in order at the next "
                   f"shutdown before: systemctl start {' '.join(both)}$")


def discovered(work):
    """The disk by which a target is asked is nothing to save, to list or to count."""
    blk(work, "list")
    disks = work / "config/kdapl_blk"
    for path in [p for n in ("state", "stats", "device") for p in disks.glob(f"*/{n}")]:
        path.chmod(0o444)
    # Ours lives; the other one was left by a command that was killed.
    ours, left, real = f"discover-{os.getpid()}", "discover-4194305", "discover-4194306"
    for name, device, state in ((ours, "", "connecting"), (left, "", "idle"),
                                (real, "kdapl5", "failed")):
        shutil.copytree(disks / "one", disks / name)
        (disks / name / "device").chmod(0o644)
        (disks / name / "state").chmod(0o644)
        (disks / name / "device").write_text(device + "\n")
        (disks / name / "state").write_text(state + "\n")
        (disks / name / "secret").write_text("0123456789abcdef\n")
    expect(blk(work, "save") == (0, ""), "save")
    saved = re.findall(r"(?m)^dir\tkdapl_blk/(.*)$", (work / "saved").read_text())
    expect(saved == [real, "kdapl7", "one"], f"it saves {saved}")
    for command in "list", "list -j", "stats", "stats -j":
        said = blk(work, command)[1]
        expect(ours not in said, f"{command}: {said}")
        expect(left in said and real in said, f"{command}: what is left is hidden: {said}")
    for command in "", "-j", "metrics", "latency":
        said = call_tool("kdapl-stat", command, KDAPL_BLK_CONFIGFS=str(work / "config"),
                         KDAPL_PROC=str(work / "proc"), KDAPL_BLOCK=str(work / "block"))[1]
        expect(ours not in said, f"kdapl-stat {command}: {said}")
        expect(command != "metrics" or left in said, f"what is left is hidden: {said}")
    for command in f"-s vol {ours}", "-s discover-1":
        expect_refusal(blk(work, f"connect -a 10.0.0.9 -i rxe0/1 {command}"), 2,
                       "connect discover-[0-9]+: such a name stands for what is being discovered")


# Mount something in a namespace of its own, print its device number, and wait for the end of stdin.
ELSEWHERE = ("mount -t tmpfs none /mnt && "
             "awk '$5 == \"/mnt\" { n = $3 } END { print n }' /proc/self/mountinfo && read -r end")


def mounted_elsewhere(work):
    """A disk that is mounted in a container stays, also while its target is away."""
    need(not os.geteuid() and not subprocess.run(["unshare", "-m", "true"], check=False,
                                                 stderr=subprocess.DEVNULL).returncode,
         "root is wanted, and mount namespaces")
    blk(work, "list")
    (work / "block/kdapl7").mkdir(parents=True)
    (work / "config/kdapl_blk/one/state").write_text("reconnecting\n")
    with subprocess.Popen(["unshare", "-m", "sh", "-c", ELSEWHERE], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as container:
        (work / "block/kdapl7/dev").write_text(container.stdout.readline())
        done = in_configfs(work, "disconnect one", "", KDAPL_BLOCK=str(work / "block"))
        expect_refusal(done, 1, "cannot disconnect one: /dev/kdapl7 is mounted at /mnt of process "
                       f"{container.pid}, in another mount namespace; -f takes it away all")
    expect((work / "config/kdapl_blk/one/connected").read_text() == "1\n", "it is disconnected")
    in_configfs(work, "disconnect one", "", KDAPL_BLOCK=str(work / "block"))
    expect(not (work / "config/kdapl_blk/one/connected").exists(),
           "it stays although it is mounted nowhere")


def all_of():
    """Name, function and further arguments of each case; the first one is a directory."""
    yield "kdapl-blk save that cannot be written", saved_whole
    yield "kdapl-blk export that is refused, and the note", instance_kept
    yield "kdapl-blk save and the units", units_started
    yield "kdapl-blk save and list while others discover", discovered
    yield "kdapl-blk disconnect of a disk in a container", mounted_elsewhere
