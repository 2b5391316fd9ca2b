"""Rare events, a thousand times each: forks, interrupts, kills, damage, and hostile users.

    python -m tests.stress                      all, whole: some minutes
    python -m tests.stress --share 0.01         a hundredth of each
    python -m tests.stress forks interrupts     these alone

    forks        a process whose threads trace, compile and drop functions forks; the child computes
    interrupts   a handler raises KeyboardInterrupt anywhere while programs are compiled and run
    kills        a process that writes entries of the cache is killed
    damage       entries of the cache are altered, cut and overwritten
    users        another user swaps the folder of the cache for his own (as root alone)
    files        damaged and hostile files of arrays are read
    saves        a process that saves checkpoints is killed

Each prints how often it was done and what went wrong; the command fails where that is not zero.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.testing  # here: the interpreter's lock of a module is not free in a child

import rune
import rune.numpy as rnp
from rune import lax
from rune.backends.shared import disk_cache
from rune.backends.shared.disk_cache import DiskCache
from tests.files.damage import files
from tests.files.kills import saves

HANG_S = 300
KEY = disk_cache.key_of("stress", "a key")
X = np.arange(300, dtype=np.float32)


def in_child(work: Callable[[], Any]) -> int:
    """The identity of a child that does the work and ends, with 1 after an error."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(HANG_S)
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """The exit status: 0 for success, minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def computed(number: float) -> None:
    """Compile a function that was never compiled and run it. Errors: AssertionError."""
    total = float(rune.jit(lambda x: rnp.sum(x * number))(X))
    numpy.testing.assert_allclose(total, float(X.sum()) * number, rtol=1e-4)


# --- forks ------------------------------------------------------------------------------------


def forks(count: int) -> Counter[str]:
    """Children of a process with busy threads compute."""
    outcomes, stop = Counter[str](), threading.Event()
    program = rune.jit(lambda x: rnp.cos(x) * 2)

    def compile_and_drop() -> None:
        while not stop.is_set():
            computed(random.random())

    def trace() -> None:
        while not stop.is_set():
            program.clear_cache()
            program(X)

    def child() -> None:
        computed(random.random())
        numpy.testing.assert_allclose(np.asarray(program(X)), np.cos(X) * 2, atol=1e-5)

    threads = [threading.Thread(target=work) for work in (compile_and_drop, trace)]
    for thread in threads:
        thread.start()
    for _ in range(count):
        code = ended(in_child(child))
        outcomes["hung" if code == -signal.SIGALRM else "died" if code < 0 else "failed"] += code != 0
    stop.set()
    for thread in threads:
        thread.join()
    return outcomes


# --- interrupts -------------------------------------------------------------------------------


def interrupts(count: int) -> Counter[str]:
    """An interrupt anywhere is raised once, and everything works afterwards."""
    outcomes = Counter[str]()
    loop = rune.jit(lambda n: lax.fori_loop(0, n, lambda i, h: h * 0.5 + 1, rnp.ones(3)))
    endless = rnp.int32(2**31 - 1)

    def swallowed(message: Any) -> None:
        if isinstance(message.exc_value, KeyboardInterrupt):
            outcomes["swallowed by a finaliser, and raised again"] += 1
            signal.setitimer(signal.ITIMER_REAL, 0.001)

    def work(number: int) -> None:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, 0.05))
        if number % 5 == 0:
            loop(endless)
        for _ in range(10_000):
            computed(random.random())

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    hook, sys.unraisablehook = sys.unraisablehook, swallowed
    try:
        for number in range(count):
            try:
                work(number)
                outcomes["lost"] += 1
            except KeyboardInterrupt:
                pass
            except Exception as error:
                outcomes[f"turned into {type(error).__name__}"] += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            computed(float(number))
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, before)
        gc.collect()
    return outcomes


# --- the cache --------------------------------------------------------------------------------


def value_of(number: int) -> bytes:
    """A value that tells its number everywhere."""
    return number.to_bytes(4, "little") * 20_000


def kills(count: int) -> Counter[str]:
    """If the writer of an entry was killed, only a complete entry is read."""
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        cache = DiskCache(Path(name) / "rune")

        def write() -> None:
            for number in range(100_000):
                cache.store(b"%d" % (number % 7), value_of(number % 7))

        for _ in range(count):
            child = in_child(write)
            time.sleep(random.uniform(0, 0.01))
            os.kill(child, signal.SIGKILL)
            outcomes["not killed"] += ended(child) != -signal.SIGKILL
            for number in range(7):
                value = cache.load(b"%d" % number)
                outcomes["wrong values"] += value not in (None, value_of(number))
        cache.store(b"last", b"value")
        outcomes["writes that failed afterwards"] += cache.load(b"last") != b"value"
    return outcomes


def damaged(content: bytes) -> bytes:
    """The bytes of an entry, altered, cut, lengthened or replaced."""
    at, way = random.randrange(len(content)), random.randrange(4)
    if way == 0:
        return content[:at] + bytes([content[at] ^ (1 << random.randrange(8))]) + content[at + 1 :]
    if way == 1:
        return content[:at]
    if way == 2:
        return content + random.randbytes(at + 1)
    return random.randbytes(at) + content[at:] if at else b""


def damage(count: int) -> Counter[str]:
    """Damaged entries are misses, and programs whose entries are damaged compute."""
    outcomes = Counter[str]()
    with tempfile.TemporaryDirectory() as name, rune.configure(cache_dir=name):
        cache = DiskCache(Path(name))
        cache.store(KEY, value_of(1))
        path = cache.folder / disk_cache._name(KEY)
        content = path.read_bytes()
        for _ in range(count):
            bad = damaged(content)
            path.write_bytes(bad)
            path.chmod(0o600)
            outcomes["served"] += cache.load(KEY) is not None and bad != content
        for number in range(count // 100):
            computed(number % 10 + 0.5)  # kept by the first round, damaged, and compiled again
            for entry in cache.folder.glob("*.bin"):
                entry.write_bytes(damaged(entry.read_bytes() or b"cut"))
    return outcomes


def users(count: int) -> Counter[str]:
    """A folder that another user substitutes is never read."""
    outcomes = Counter[str]()
    if os.geteuid() != 0:
        return outcomes
    me, other, name = 54321, 54322, Path(tempfile.mkdtemp())
    name.chmod(0o711)
    try:
        way = name / "way"
        way.mkdir()
        os.chown(way, me, me)
        way.chmod(0o777)
        begin = time.monotonic()
        attacker = in_child(lambda: attack(way, other, HANG_S))
        outcomes["served"] += ended(in_child(lambda: use(way, me, count))) != 0
        os.kill(attacker, signal.SIGKILL)
        ended(attacker)
        outcomes["hung"] += time.monotonic() - begin > HANG_S
    finally:
        shutil.rmtree(name)
    return outcomes


def become(user: int) -> None:
    """Be another user from here on."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def use(way: Path, user: int, count: int) -> None:
    """Store and load while the folder is swapped. Errors: AssertionError for a foreign value."""
    become(user)
    warnings.simplefilter("ignore")
    cache = DiskCache(way)
    for number in range(count):
        way.chmod(0o777 if number % 50 else 0o700)  # shut at times, so that entries are kept too
        cache.store(KEY, value_of(1))
        assert cache.load(KEY) in (None, value_of(1))


def attack(way: Path, user: int, seconds: float) -> None:
    """Replace the user's folder by the attacker's, with a matching entry."""
    become(user)
    entry = disk_cache._encoded(KEY, value_of(2))
    end = time.monotonic() + seconds
    for number in range(1 << 40):
        if time.monotonic() > end:
            return
        try:
            folder = way / f"mine.{number}"
            folder.mkdir(mode=random.choice((0o700, 0o777)))
            (folder / disk_cache._name(KEY)).write_bytes(entry)
            if (way / "kernels").exists():
                (way / "kernels").rename(way / f"moved.{number}")
            if random.random() < 0.3:
                (way / "kernels").symlink_to(folder)
            else:
                folder.rename(way / "kernels")
        except OSError:
            time.sleep(0.0001)  # it is shut


SUBJECTS: dict[str, tuple[Callable[[int], Counter[str]], int]] = {
    "forks": (forks, 1000),
    "interrupts": (interrupts, 1000),
    "kills": (kills, 1000),
    "damage": (damage, 10_000),
    "users": (users, 10_000),
    "files": (files, 10_000),
    "saves": (saves, 200),
}
HARMLESS = ("swallowed by a finaliser, and raised again",)


def main(arguments: list[str] | None = None) -> int:
    """Do it, print the counts; 1 if something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("subjects", nargs="*", default=[], help=", ".join(SUBJECTS))
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of times")
    options = parser.parse_args(arguments)
    wrong = 0
    for name in options.subjects or SUBJECTS:
        work, usual = SUBJECTS[name]
        count, begin = max(1, round(usual * options.share)), time.monotonic()
        outcomes = work(count)
        text = ", ".join(f"{n} {outcome}" for outcome, n in outcomes.items() if n) or "nothing wrong"
        print(f"{count} {name}: {text} ({time.monotonic() - begin:.0f} s)", flush=True)
        wrong += sum(n for outcome, n in outcomes.items() if outcome not in HARMLESS)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
