# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What race_blk and race_isert share: disks whose data is verified, and every two deeds of an
administrator done beside each other. $RACE_SEED and $RACE_MS are a seed and the milliseconds
of a pair; $RACE_PAIR is one pair, such as volume_beside_port, or one deed, of which all pairs
are run, each with what the seed gives it in a run of all. Prints KTAP.

A block of a disk has one value, or one of two while a write of it has failed; a request of
a steady disk never fails. What is done is tried again when the kernel refuses it with
an error that it may give beside the other deed. Two deeds of a pair have met when an operation
of the one, a call of the kernel or a program, has begun within one of the other.
"""
import contextlib
import ctypes
import errno
import fcntl
import itertools
import mmap
import os
import random
import struct
import subprocess
import sys
import threading
import time

MODULES = os.environ.get("OUT", "/run/out") + "/modules"
SIZE = 1 << 20
BLOCK = 4096
BLOCKS = 16
PATIENCE = 30
DELETE_MODULE, FINIT_MODULE, BLKGETSIZE64 = 176, 313, 0x80081272
SEED = int(os.environ.get("RACE_SEED") or random.randrange(1 << 32))
MS = int(os.environ.get("RACE_MS") or 250)
PAIR = os.environ.get("RACE_PAIR")
faults = []
# The names of the deeds that are done now.
now = set()
meeting, here = threading.Lock(), threading.local()
libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def operation():
    """What is done within can meet what the other side does."""
    side = getattr(here, "side", None)
    if side:
        with meeting:
            side.within += 1
            side.met += side.within == 1 and side.peer.within > 0
    try:
        yield
    finally:
        if side:
            side.within -= 1


def put(path, value, *refusals):
    """Write an attribute; return whether it was taken and not refused as it may be."""
    try:
        with operation(), open(path, "w", encoding="ascii") as f:
            f.write(f"{value}\n")
        return True
    except OSError as e:
        if e.errno not in refusals:
            faults.append(f"{path.rpartition('config/')[2]} {value}: {e.strerror}")
        return False


def tried(call, path, *refusals):
    """The same for a call of os with a path."""
    try:
        with operation():
            call(path)
        return True
    except OSError as e:
        if e.errno not in refusals:
            faults.append(f"{call.__name__} {path.rpartition('config/')[2]}: {e.strerror}")
        return False


def run(*command):
    with operation():
        return subprocess.run(command, capture_output=True, text=True, check=False)


def unload(module):
    """What a driver or LIO does in the background has to end first."""
    until = time.monotonic() + PATIENCE
    while (done := run("rmmod", module)).returncode and time.monotonic() < until:
        time.sleep(0.1)
    if done.returncode:
        faults.append(done.stderr.strip())


def read_all(*roots):
    """Read all files there are."""
    for root in roots:
        for path, _, names in os.walk(root):
            for name in names:
                try:
                    with operation(), open(f"{path}/{name}", encoding="ascii",
                                           errors="replace") as f:
                        f.read()
                except OSError:
                    pass
    return True


def refuse_unload(*modules):
    """The modules are in use."""
    for name in modules:
        with operation():
            done = libc.syscall(DELETE_MODULE, name.encode(), os.O_NONBLOCK)
        if done == 0 or ctypes.get_errno() != errno.EWOULDBLOCK:
            faults.append(f"unload {name}: {os.strerror(ctypes.get_errno() if done else 0)}")
    return True


class Disk:
    """A disk, what is known of its blocks, and the thread that uses it."""

    def __init__(self, name, number, steady=False):
        self.name, self.steady = name, steady
        self.known = [{0} for _ in range(BLOCKS)]
        self.done = self.failed = 0
        self.stopped = False
        self.rnd = random.Random(SEED + number)
        self.buffer = mmap.mmap(-1, BLOCK)
        self.thread = threading.Thread(target=self.work)

    def device(self):
        """Return the device's path. Raises OSError if there is none."""
        raise NotImplementedError

    def state(self):
        """Say something about a disk that does not come back."""
        raise NotImplementedError

    def revive(self):
        """Do what brings a disk back that does not come back by itself."""

    def step(self, fd):
        """Write a block, or read one and look whether it is as it must be."""
        at = self.rnd.randrange(BLOCKS)
        known = self.known[at]
        if self.rnd.randrange(2):
            new = self.rnd.getrandbits(63)
            self.buffer[:] = (new << 8 | at).to_bytes(16, "little") * (BLOCK // 16)
            self.known[at] = known | {new}
            os.pwritev(fd, [self.buffer], at * BLOCK)
            self.known[at] = {new}
        else:
            # A disk that was taken away has the size 0.
            if os.preadv(fd, [self.buffer], at * BLOCK) != BLOCK:
                raise OSError(errno.ENXIO, "no disk")
            words = {self.buffer[i:i + 16] for i in range(0, BLOCK, 16)}
            found = {int.from_bytes(w, "little") for w in words}
            right = {v << 8 | at if v else 0 for v in known}
            # A write that has failed may have been done in part.
            if not found <= right or len(known) == 1 and len(found) > 1:
                faults.append(f"{self.name}: block {at} has {sorted(found)[:3]} "
                              f"and may have {sorted(right)[:3]}")
            if len(found) == 1:
                self.known[at] = {v >> 8 for v in found}

    def work(self):
        while not self.stopped:
            try:
                fd = os.open(self.device(), os.O_RDWR | os.O_DIRECT)
            except OSError:
                time.sleep(0.005)
                continue
            try:
                while not self.stopped:
                    self.step(fd)
                    self.done += 1
            except OSError as e:
                self.failed += 1
                if self.steady:
                    faults.append(f"{self.name}: a request has failed: {e.strerror}")
            finally:
                os.close(fd)

    def size(self):
        """The size that the disk must have."""
        return SIZE

    def look_at_size(self):
        """Do what an initiator needs to see another size."""

    def fits(self):
        """Wait until the disk has the size that it must have."""
        until = time.monotonic() + PATIENCE
        size = None
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                with open(self.device(), "rb", buffering=0) as f:
                    size = struct.unpack("Q", fcntl.ioctl(f, BLKGETSIZE64, bytes(8)))[0]
            if size == self.size():
                return
            self.look_at_size()
            time.sleep(0.02)
        faults.append(f"{self.name} has {size} bytes, not {self.size()}")

    def serves(self):
        """Wait for ten requests in turn that do not fail."""
        until = time.monotonic() + PATIENCE
        done, failed, soon = self.done, self.failed, time.monotonic() + 2
        while self.failed != failed or self.done < done + 10:
            if self.failed != failed:
                done, failed = self.done, self.failed
            if time.monotonic() > until:
                faults.append(f"{self.name} does not come back: "
                              f"{self.state()}, {self.done} done, {self.failed} failed")
                return
            if time.monotonic() > soon:
                self.revive()
                soon = time.monotonic() + 2
            time.sleep(0.002)


class Side(threading.Thread):
    """Does one thing again and again until it is stopped."""

    def __init__(self, deed, seed):
        super().__init__()
        self.deed, self.rnd = deed, random.Random(seed)
        self.calls = self.good = self.met = self.within = 0
        self.stopped = False
        self.peer = None

    def run(self):
        here.side = self
        while not self.stopped:
            try:
                self.good += bool(self.deed(self.rnd))
            except Exception as e:  # pylint: disable=broad-except
                faults.append(f"{self.deed.__name__}: {e!r}")
            self.calls += 1


def race(a, b, seed):
    """Do @a beside @b. Return both sides."""
    sides = [Side(a, seed), Side(b, seed + 1)]
    sides[0].peer, sides[1].peer = reversed(sides)
    for side in sides:
        side.start()
    time.sleep(MS / 1000)
    until = time.monotonic() + PATIENCE
    while min(s.calls for s in sides) < 1 and time.monotonic() < until:
        time.sleep(0.01)
    for side in sides:
        side.stopped = True
    for side in sides:
        side.join(PATIENCE)
        if side.is_alive():
            faults.append(f"{side.deed.__name__} does not end")
    return sides


def announce(suite, what):
    """Say what is done next, to who reads the results and to who reads the kernel's log."""
    text = f"RACE_SEED={SEED} RACE_MS={MS} RACE_PAIR={what}"
    print(f"    # {text}", flush=True)
    with open("/dev/kmsg", "w", encoding="ascii") as f:
        f.write(f"{suite}: {text}\n")


def tell(n, name):
    """Print the result of a case and its faults. Return whether there are any."""
    for fault in faults[:10]:
        print(f"    # {fault}")
    failed = bool(faults)
    print(f"    {'not ok' if failed else 'ok'} {n} {name}", flush=True)
    faults.clear()
    return failed


def name_of(pair):
    return f"{pair[0].__name__}_beside_{pair[1].__name__}"


def choose(deeds, alone, apart):
    """Return the pairs to be run, each with its seed."""
    rnd = random.Random(SEED)
    pairs = [(a, b, rnd.getrandbits(32))
             for a, b in itertools.combinations_with_replacement(deeds, 2)
             if (a is not b or a not in alone) and (a, b) not in apart]
    chosen = [p for p in pairs if not PAIR or PAIR in (
        p[0].__name__, p[1].__name__, name_of(p), name_of((p[1], p[0])))]
    if not chosen:
        sys.exit(f"Bail out! RACE_PAIR={PAIR}: there is no such pair")
    return chosen, len(pairs)


def main(suite, setup, down, deeds, alone, apart=()):
    """Run all pairs of @deeds, but for those of @alone with themselves and those in @apart, on
    the disks that @setup makes; @down takes all down."""
    # A thread that is back from the kernel is soon seen to be.
    sys.setswitchinterval(0.0005)
    pairs, of = choose(deeds, alone, apart)
    begun, never, met, calls = time.monotonic(), [], 0, 0
    disks = setup()
    for d in disks:
        d.serves()
    print(f"KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: {suite}\n"
          f"    1..{len(pairs) + 1}")
    failed = 0
    for n, (a, b, seed) in enumerate(pairs, 1):
        name = name_of((a, b))
        announce(suite, name)
        sides = race(a, b, seed)
        for d in disks:
            d.serves()
            d.fits()
        meetings = sum(s.met for s in sides)
        met, calls = met + meetings, calls + sum(s.calls for s in sides)
        if not meetings:
            never.append(name)
        done = ", ".join(f"{s.deed.__name__} {s.good} of {s.calls}" for s in sides)
        print(f"    # {done}, {meetings} met")
        failed += tell(n, name)
    for d in disks:
        d.stopped = True
        d.thread.join()
    down(disks)
    requests = (f"{d.name} {d.done} done {d.failed} failed" for d in disks)
    print(f"    # requests: {', '.join(requests)}")
    print(f"    # {len(pairs)} pairs of {of} in {1000 * (time.monotonic() - begun):.0f} ms: "
          f"{calls} calls, {met} met")
    if never:
        print(f"    # {len(never)} pairs never met: {' '.join(never)}")
    failed += tell(len(pairs) + 1, "all_is_taken_down")
    print(f"{'not ok' if failed else 'ok'} 1 {suite}")
