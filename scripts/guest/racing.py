# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What race_blk, race_isert and race_svcrdma share: disks, or files, whose data is verified, and
every two deeds of an administrator done beside each other. $RACE_SEED and $RACE_MS are a seed
and the milliseconds of a pair; $RACE_PAIR is one pair, such as volume_beside_port, or one deed,
of which all pairs are run, each with what the seed gives it in a run of all. Prints KTAP.

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
# Of each of those who use a disk at once.
BLOCKS = 16
WORKERS = 3
PATIENCE = 30
DELETE_MODULE, FINIT_MODULE, BLKGETSIZE64 = 176, 313, 0x80081272
SEED = int(os.environ.get("RACE_SEED") or random.randrange(1 << 32))
MS = int(os.environ.get("RACE_MS") or 250)
# Of so many pairs one is run.
SHARE = int(os.environ.get("RACE_SHARE") or 1)
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
        # A buffer would be written again when it is closed, with another error.
        with operation(), open(path, "wb", buffering=0) as f:
            f.write(f"{value}\n".encode())
        return True
    except OSError as e:
        if e.errno not in refusals:
            faults.append(f"{path.rpartition('config/')[2]} {value}: {e.strerror}")
        return False


def value_of(path):
    with open(path, encoding="ascii") as f:
        return f.read().strip()


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


def load(module):
    done = run("insmod", f"{MODULES}/{module}.ko")
    if done.returncode:
        faults.append(f"{module}: {done.stderr.strip()}")
    return not done.returncode


def delete_module(module):
    return libc.syscall(DELETE_MODULE, module.encode(), os.O_NONBLOCK) and ctypes.get_errno()


def unload(module, excused=lambda: False):
    """What a driver or LIO does in the background has to end first. Return whether it could,
    and was not @excused."""
    until = time.monotonic() + PATIENCE
    with operation():
        while (error := delete_module(module)) and time.monotonic() < until:
            if time.monotonic() > until - PATIENCE + 1 and excused():
                return False
            time.sleep(0.001)
    if error:
        faults.append(f"unload {module}: {os.strerror(error)}")
    return not error


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
            error = delete_module(name)
        if error != errno.EWOULDBLOCK:
            faults.append(f"unload {name}, which is in use: {os.strerror(error)}")
    return True


def word(disk, at, value):
    """What is all over block @at when @value was written; at first zeros are."""
    return (value << 16 | disk.number << 8 | at if value else 0).to_bytes(16, "little")


def told(words):
    """The same for who reads it: the number of the disk, the block, and what was written."""
    numbers = (int.from_bytes(w, "little") for w in sorted(words)[:3])
    return ", ".join(f"{n >> 8 & 255}/{n & 255}/{n >> 16:x}" for n in numbers)


class Worker(threading.Thread):
    """One of those who use a disk at once, and what it knows of the blocks that are its own."""

    def __init__(self, disk, number):
        super().__init__()
        self.disk, self.first = disk, number * BLOCKS
        self.known = [{0} for _ in range(BLOCKS)]
        self.done = self.failed = 0
        self.idle = False
        self.rnd = random.Random(SEED + WORKERS * disk.number + number)
        self.buffer = mmap.mmap(-1, BLOCK)

    def step(self, fd):
        """Write a block, or read one and look whether it is as it must be."""
        slot = self.rnd.randrange(BLOCKS)
        at, known = self.first + slot, self.known[slot]
        if self.rnd.randrange(2):
            new = self.rnd.getrandbits(63)
            self.buffer[:] = word(self.disk, at, new) * (BLOCK // 16)
            self.known[slot] = known | {new}
            if os.pwritev(fd, [self.buffer], at * BLOCK) != BLOCK:
                raise OSError(errno.ENXIO, "no disk")
            self.known[slot] = {new}
        else:
            # A disk that was taken away has the size 0.
            if os.preadv(fd, [self.buffer], at * BLOCK) != BLOCK:
                raise OSError(errno.ENXIO, "no disk")
            right = {word(self.disk, at, v): v for v in known}
            if self.buffer[:16] * (BLOCK // 16) == self.buffer[:] and self.buffer[:16] in right:
                self.known[slot] = {right[self.buffer[:16]]}
                return
            found = {self.buffer[i:i + 16] for i in range(0, BLOCK, 16)}
            # A write that has failed may have been done in part.
            if not found <= right.keys() or len(known) == 1:
                faults.append(f"{self.disk.name}: block {at} has {told(found)} "
                              f"and may have {told(right)}")
                self.known[slot] = {int.from_bytes(w, "little") >> 16 for w in found}

    def run(self):
        disk = self.disk
        while not disk.stopped:
            self.idle = disk.rested > 0
            if self.idle:
                time.sleep(0.001)
                continue
            try:
                fd = disk.open()
            except OSError:
                time.sleep(0.005)
                continue
            try:
                while not disk.stopped and not disk.rested:
                    self.step(fd)
                    self.done += 1
            except OSError as e:
                self.failed += 1
                if disk.steady:
                    faults.append(f"{disk.name}: a request has failed: {e.strerror}")
            finally:
                os.close(fd)


class Disk:
    """A disk, and those who use it."""

    def __init__(self, name, number, steady=False):
        self.name, self.number, self.steady = name, number, steady
        # Each disk has an adapter of its own.
        self.ia, self.net = f"rxe{number - 1}/1", f"v{2 * number - 2}"
        self.address = f"10.8.{number - 1}.1"
        self.stopped = False
        self.rested = 0
        self.workers = [Worker(self, n) for n in range(WORKERS)]

    def start(self):
        for w in self.workers:
            w.start()

    def stop(self):
        self.stopped = True
        for w in self.workers:
            w.join()

    @property
    def done(self):
        return sum(w.done for w in self.workers)

    @property
    def failed(self):
        return sum(w.failed for w in self.workers)

    def device(self):
        """Return the device's path. Raises OSError if there is none."""
        raise NotImplementedError

    def open(self):
        """Open the device. The name, and the number, of one that has gone are another's soon."""
        path = self.device()
        fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        try:
            with open(f"/sys/block/{os.path.basename(path)}/dev", encoding="ascii") as f:
                number = os.makedev(*map(int, f.read().split(":")))
            # If it still has the name, what was opened is this disk, or one that has gone.
            if os.fstat(fd).st_rdev != number or self.device() != path:
                raise OSError(errno.ENXIO, "no disk")
        except OSError:
            os.close(fd)
            raise
        return fd

    def state(self):
        """Say something about a disk that does not come back."""
        raise NotImplementedError

    def revive(self):
        """Do what brings a disk back that does not come back by itself."""

    @contextlib.contextmanager
    def resting(self):
        """Have nobody use the disk meanwhile."""
        self.rested += 1
        until = time.monotonic() + PATIENCE
        while not all(w.idle for w in self.workers) and time.monotonic() < until:
            time.sleep(0.001)
        try:
            yield
        finally:
            self.rested -= 1

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
            with contextlib.suppress(OSError), open(self.open(), "rb", buffering=0) as f:
                size = struct.unpack("Q", fcntl.ioctl(f, BLKGETSIZE64, bytes(8)))[0]
            if size == self.size():
                return
            self.look_at_size()
            time.sleep(0.02)
        faults.append(f"{self.name} has {size} bytes, not {self.size()}")

    def serves(self):
        """Wait until each worker has done ten requests in turn, and none of them has failed."""
        until = time.monotonic() + PATIENCE
        done, failed = [w.done for w in self.workers], self.failed
        soon = time.monotonic() + 2
        while self.failed != failed or \
                any(w.done < before + 10 for w, before in zip(self.workers, done)):
            if self.failed != failed:
                done, failed = [w.done for w in self.workers], self.failed
            if time.monotonic() > until:
                faults.append(f"{self.name} does not come back: "
                              f"{self.state()}, {self.done} done, {self.failed} failed")
                return
            if time.monotonic() > soon:
                self.revive()
                soon = time.monotonic() + 2
            time.sleep(0.002)


def adapter_up():
    """Make a third adapter like the two of scripts/guest/devices.sh."""
    for command in ("ip link add v4 type veth peer name v5", "ip link set v5 up",
                    "ip addr add 10.8.2.1/24 dev v4", "ip link set v4 up",
                    "rdma link add rxe2 type rxe netdev v4"):
        done = run(*command.split())
        if done.returncode:
            sys.exit(f"Bail out! {command}: {done.stderr}")


def adapter_down():
    for command in "rdma link delete rxe2", "ip link delete v4":
        done = run(*command.split())
        if done.returncode:
            faults.append(f"{command}: {done.stderr}")


def adapter(_rnd, disk):
    """The adapter of the disk goes and comes back."""
    rxe = f"rxe{disk.number - 1}"
    off = run("rdma", "link", "delete", rxe).returncode == 0
    on = run("rdma", "link", "add", rxe, "type", "rxe", "netdev", disk.net).returncode == 0
    return on and off


def get_through(*waiting):
    """Wait until these have done a request: a client that finds no server comes after 3 s."""
    done = [d.done for d in waiting]
    until = time.monotonic() + 10
    while any(d.done == n and not d.rested for d, n in zip(waiting, done)) and \
            time.monotonic() < until:
        time.sleep(0.01)


class Side(threading.Thread):
    """Does one thing again and again until it is stopped."""

    def __init__(self, deed, disk, seed):
        super().__init__()
        self.deed, self.disk, self.rnd = deed, disk, random.Random(seed)
        self.calls = self.good = self.met = self.within = 0
        self.late = self.stopped = False
        self.peer = None

    def run(self):
        here.side = self
        pause = 0.01
        while not self.stopped:
            try:
                self.good += bool(self.deed(self.rnd, self.disk))
            except Exception as e:  # pylint: disable=broad-except
                faults.append(f"{self.deed.__name__}: {e!r}")
            self.calls += 1
            if self.late and self.good:
                # Nothing is begun that nobody waits for: some deeds take seconds.
                if self.peer.good:
                    break
                time.sleep(pause)
                pause = min(2 * pause, 1)


def race(pair, disks):
    """Do the deeds of @pair beside each other, until each has succeeded once. What undoes the
    other time and again leaves it more and more time. Return both sides."""
    rnd = random.Random(pair.seed)
    sides = [Side(d, disks[at], rnd.getrandbits(32)) for d, at in zip(pair.deeds, pair.disks)]
    sides[0].peer, sides[1].peer = reversed(sides)
    now.update(d.__name__ for d in pair.deeds)
    for side in sides:
        side.start()
    time.sleep(MS / 1000)
    for side in sides:
        side.late = True
    until = time.monotonic() + PATIENCE
    for side in sides:
        side.join(max(0, until - time.monotonic()))
    for side in sides:
        side.stopped = True
    for side in sides:
        side.join(PATIENCE)
        if side.is_alive():
            faults.append(f"{side.deed.__name__} does not end")
    now.clear()
    return sides


def announce(suite, what):
    """Say what is done next, to who reads the results and to who reads the kernel's log."""
    text = f"CPUS={os.cpu_count()} RACE_SEED={SEED} RACE_MS={MS} RACE_PAIR={what}"
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


class Pair:
    """Two deeds, and which of the disks each is done to, the same one in half of the pairs."""

    def __init__(self, deeds, seed, apart):
        self.deeds, self.seed = deeds, seed
        self.name, self.reverse = (f"{a.__name__}_beside_{b.__name__}"
                                   for a, b in (deeds, reversed(deeds)))
        first = random.Random(seed).choice((1, 2))
        same = not apart and seed & 1
        self.disks = first, first if same else 3 - first

    def is_chosen(self):
        return not PAIR or PAIR in (self.name, self.reverse, *(d.__name__ for d in self.deeds))


def choose(deeds, alone, apart, never):
    """Return the pairs to be run, each with its seed, and how many there are."""
    rnd = random.Random(SEED)
    pairs = [Pair((a, b), rnd.getrandbits(32), (a, b) in apart or a is b)
             for a, b in itertools.combinations_with_replacement(deeds, 2)
             if (a is not b or a not in alone) and (a, b) not in never]
    chosen = [p for n, p in enumerate(pairs)
              if p.is_chosen() and (PAIR or (n + SEED) % SHARE == 0)]
    if not chosen:
        sys.exit(f"Bail out! RACE_PAIR={PAIR}: there is no such pair")
    return chosen, len(pairs)


class Tally:
    """What all pairs have done."""

    def __init__(self, of):
        self.begun, self.of = time.monotonic(), of
        self.pairs = self.calls = self.met = 0
        self.good = {}
        self.never = {"met": [], "succeeded": [], "judged, as the machine stood still": []}

    def add(self, name, sides):
        met = sum(s.met for s in sides)
        self.pairs += 1
        self.met += met
        if not met:
            self.never["met"].append(name)
        if not all(s.good for s in sides):
            self.never["succeeded"].append(name)
        for s in sides:
            self.calls += s.calls
            self.good[s.deed.__name__] = self.good.get(s.deed.__name__, 0) + s.good
        done = (f"{s.deed.__name__} of {s.disk.name} {s.good} of {s.calls}" for s in sides)
        print(f"    # {', '.join(done)}, {met} met")

    def excuse(self, name):
        self.never["judged, as the machine stood still"].append(name)

    def end(self):
        faults.extend(f"{name} has never succeeded" for name, n in self.good.items() if not n)
        print(f"    # {self.pairs} pairs of {self.of} in "
              f"{1000 * (time.monotonic() - self.begun):.0f} ms: "
              f"{self.calls} calls, {self.met} met")
        for what, names in self.never.items():
            if names:
                print(f"    # {len(names)} pairs never {what}: {' '.join(names)}")


class Pulse:
    """How long each CPU has done nothing, though a thread wanted to: the machine stood still."""

    # A disk that gives up soon fails requests of which it has heard nothing for that long.
    LONG = 0.1

    def __init__(self):
        self.worst = {cpu: 0 for cpu in os.sched_getaffinity(0)}
        for cpu in self.worst:
            threading.Thread(target=self.beat, args=(cpu,), daemon=True).start()

    def beat(self, cpu):
        os.sched_setaffinity(0, {cpu})
        last = time.monotonic()
        while True:
            time.sleep(0.01)
            now = time.monotonic()
            self.worst[cpu] = max(self.worst[cpu], now - last)
            last = now

    def begin(self):
        for cpu in self.worst:
            self.worst[cpu] = 0

    def missed(self):
        return max(self.worst.values()) > self.LONG


def is_slow(name, said):
    """Has the kernel @said of the disk @name that its target takes too long? iscsid's messages
    name a connection."""
    return any("ping timeout" in line or (f" {name}: " in line and "does not answer" in line)
               for line in said.splitlines())


def kernel_said(log):
    """What its log has since this was asked."""
    said = b""
    while True:
        try:
            said += os.read(log, 8192)
        except BlockingIOError:
            return said.decode("ascii", "replace")
        except BrokenPipeError:
            # Some of it has been overwritten.
            pass


def look_at_harmless(sides, disks, failed, harmless, by_time, slow):
    """What disturbs nothing always succeeds, and what is done beside it, unless that depends
    @by_time; between two such no request fails, but on disks of which @slow says that the machine
    stood still. The disks have @failed before. Return whether there were such requests."""
    quiet = [s.deed in harmless for s in sides]
    if not any(quiet):
        return False
    for side, peer in zip(sides, reversed(sides)):
        if side.good < side.calls and side.deed not in by_time:
            faults.append(f"{side.deed.__name__} failed {side.calls - side.good} times of "
                          f"{side.calls} beside {peer.deed.__name__}")
    if not all(quiet):
        return False
    lost = [(d, d.failed - n) for d, n in zip(disks, failed) if d.failed != n]
    faults.extend(f"{d.name}: {n} requests failed beside nothing that disturbs"
                  for d, n in lost if not slow(d.name))
    return any(slow(d.name) for d, _ in lost)


def main(suite, setup, down, deeds, alone=(), apart=(), never=(), harmless=(), by_time=()):
    """Run all pairs of @deeds on the disks that @setup makes; @down takes all down. Those of
    @alone are not done beside themselves, and the pairs of @never not at all; those of @apart,
    and two that are the same, not to the same disk. Those of @harmless disturb neither a disk
    nor another deed; those of @by_time fail if something does not happen soon enough."""
    # A thread that is back from the kernel is soon seen to be.
    sys.setswitchinterval(0.0005)
    pairs, of = choose(deeds, alone, apart, never)
    tally = Tally(of)
    disks = setup()
    for d in disks:
        d.serves()
    print(f"KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: {suite}\n"
          f"    1..{len(pairs) + 1}")
    failed = 0
    log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    os.lseek(log, 0, os.SEEK_END)
    pulse = Pulse()
    for n, pair in enumerate(pairs, 1):
        announce(suite, pair.name)
        before = [d.failed for d in disks]
        pulse.begin()
        sides = race(pair, disks)
        for d in disks:
            d.serves()
            d.fits()
        missed, said = pulse.missed(), kernel_said(log)
        if look_at_harmless(sides, disks, before, harmless, by_time,
                            lambda name: missed and is_slow(name, said)):
            tally.excuse(pair.name)
        tally.add(pair.name, sides)
        failed += tell(n, pair.name)
    for d in disks:
        d.stop()
    down(disks)
    requests = (f"{d.name} {d.done} done {d.failed} failed" for d in disks)
    print(f"    # requests: {', '.join(requests)}")
    tally.end()
    failed += tell(len(pairs) + 1, "all_is_taken_down")
    print(f"{'not ok' if failed else 'ok'} 1 {suite}")
