"""Forks, threads, and long runs: whole programs on every executor present.

In a forked child of a process that has used a device, the device raises an error instead of
hanging, and the CPU still works. Eight threads get their own results. Cycles of compiling, running
and dropping leave memory, handles and threads as they were (benchmarks/soak.py is the long form).
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.shared.forks import Loaded
from rune.backends.shared.host_memory import resident_bytes
from rune.errors import DeviceError
from tests.support.child import as_a_child
from tests.support.close import close
from tests.support.eventually import eventually

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

import soak  # noqa: E402  (a script's neighbour, not a package)

pytestmark = pytest.mark.usefixtures("small_heap")
COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
DRIVEN = [d.name for d in COMPUTING if d.target.backend not in ("cpu", "reference")]
on_each_executor = pytest.mark.parametrize("device", [d.name for d in COMPUTING])
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

# --- forks ------------------------------------------------------------------------------------

FORK = """
import os, sys, signal
import numpy as np
import rune, rune.numpy as rnp
from rune.errors import DeviceError

name = sys.argv[1]
f = rune.jit(lambda x: rnp.sum(rnp.sin(x)), device=name)
x = rune.device_put(np.ones(100_000, np.float32), name)
f(x)
pending = f(x)
calls = {
    "call": lambda: float(f(x)),
    "compile": lambda: rune.jit(lambda v: v + 1.0, device=name)(np.ones(3, np.float32)),
    "read": lambda: np.asarray(x),
    "put": lambda: rune.device_put(np.ones(3, np.float32), name),
    "wait": lambda: x.block_until_ready(),
}
sys.stdout.flush()
child = os.fork()
if not child:
    signal.alarm(300)  # a child that hangs ends
    for what, call in calls.items():
        try:
            call()
            print(what, "works", flush=True)
        except DeviceError as error:
            print(what, error.message, flush=True)
    sys.exit(0)  # with all that happens when an interpreter ends
_, status = os.waitpid(child, 0)
print("child", os.waitstatus_to_exitcode(status))
print("parent", float(f(x)) == float(pending))
"""


def forked(device: str) -> list[str]:
    """The output of a child, then of its parent."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, device], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@can_fork
@pytest.mark.parametrize("device", DRIVEN)
def test_a_child_gets_an_error_about_its_parents_driver_and_the_parent_works_on(device: str):
    backend = device.split(":")[0]
    refusal = f"{backend}: cannot be used in a forked process (its parent has loaded the driver)"

    *child, end, parent = forked(device)
    assert child == [f"{use} {refusal}" for use in ("call", "compile", "read", "put", "wait")]
    assert (end, parent) == ("child 0", "parent True")


@can_fork
@pytest.mark.parametrize("device", ["cpu:0", "reference:0"])
def test_a_child_computes_on_the_host_as_its_parent_does(device: str):
    *child, end, parent = forked(device)

    assert child == [f"{use} works" for use in ("call", "compile", "read", "put", "wait")]
    assert (end, parent) == ("child 0", "parent True")


def test_a_driver_that_the_parent_never_loaded_is_free_to_the_child():
    driver = Loaded("opencl")

    with as_a_child():
        driver.check()
        driver.check()


def test_a_driver_that_the_parent_loaded_is_refused_to_the_child_with_a_hint():
    driver = Loaded("opencl")
    driver.check()

    with as_a_child(), pytest.raises(DeviceError, match="opencl: cannot be used in a forked process") as error:
        driver.check()
    assert "spawn" in (error.value.hint or "")


BUSY = """
import os, signal, threading
import numpy as np
import rune, rune.numpy as rnp

x = np.ones(300, np.float32)
rune.jit(rnp.sin)(x)
done = threading.Event()

def compile_all():
    number = 0
    while not done.is_set():
        rune.jit(lambda v: rnp.sum(rnp.sin(v) * (2.0 + number)))(x)
        number += 1

worker = threading.Thread(target=compile_all)
worker.start()
codes = []
for number in range(5):
    child = os.fork()
    if not child:
        signal.alarm(300)  # a child that hangs ends
        rune.jit(lambda v: rnp.cos(v) * number)(x)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
worker.join()
print(codes)
"""


@can_fork
def test_a_child_compiles_even_if_another_thread_of_its_parent_was_compiling():
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUSY], cwd=ROOT, capture_output=True, text=True, timeout=2000
    )
    assert process.stdout.splitlines() == ["[0, 0, 0, 0, 0]"], process.stderr


# --- threads ----------------------------------------------------------------------------------


def in_threads(work: Callable[[int], None], count: int = 8) -> None:
    """Run `work` in this many threads; an error in one of them is raised."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


@on_each_executor
def test_eight_threads_calling_one_function_get_their_own_answers(device: str):
    f = rune.jit(lambda x, y: (rnp.sum(x * y), rnp.cumsum(x) + y), device=device)

    def work(number: int) -> None:
        for step in range(5):
            x = np.full(64, number + 1, np.float32)
            total, sums = f(x, np.full(64, step, np.float32))
            close(np.float32(64 * (number + 1) * step), np.asarray(total), ulps=0, why="whole")
            reference = np.arange(1, 65, dtype=np.float32) * (number + 1) + step
            close(reference, np.asarray(sums), ulps=0, why="whole")

    in_threads(work)


@on_each_executor
def test_eight_threads_compiling_their_own_functions_get_their_own_answers(device: str):
    def work(number: int) -> None:
        for step in range(3):
            f = rune.jit(lambda x, k=10 * number + step: x * 2.0 + k, device=device)
            result = f(np.arange(5, dtype=np.float32))
            reference = np.arange(5, dtype=np.float32) * 2 + 10 * number + step
            close(reference, np.asarray(result), ulps=0, why="whole")

    in_threads(work)


@on_each_executor
def test_threads_hand_arrays_to_each_other(device: str):
    f = rune.jit(lambda x: x + 1.0, device=device)
    box = {n: f(np.full(1000, n, np.float32)) for n in range(8)}
    turn = threading.Barrier(8)

    def work(number: int) -> None:
        for _ in range(5):
            result = f(box[(number + 1) % 8])
            turn.wait()
            box[number] = result
            turn.wait()

    in_threads(work)
    for number in range(8):
        reference = np.full(1000, (number + 5) % 8 + 6, np.float32)
        close(reference, np.asarray(box[number]), ulps=0, why="whole")


# --- long runs --------------------------------------------------------------------------------


def counts() -> tuple[int, int]:
    """Open files and threads of this process; 0 if the system does not count them."""
    gc.collect()
    folder = Path("/proc/self")
    if not folder.exists():
        return 0, threading.active_count()
    return len(list((folder / "fd").iterdir())), len(list((folder / "task").iterdir()))


def excess(limits: tuple[int, int]) -> tuple[int, int]:
    """Open files and threads beyond the limits once there are none, or in the end: drivers may
    have a thread that writes kernels to disk, and closes each file when it is written."""

    def now() -> tuple[int, int]:
        files, threads = (max(0, count - limit) for count, limit in zip(counts(), limits, strict=True))
        return files, threads

    eventually(lambda: now() == (0, 0))
    return now()


# A program that stays has some thousands of objects, and 100 KiB; memory comes in pages and lumps.
OBJECTS, GROWN_BYTES = 20, 2 << 20


def cycle(device: str, number: int) -> None:
    """Compile a program that was never compiled, run it, drop all."""
    f = rune.jit(lambda x: rnp.sum(rnp.sin(x) * (1.0 + number)), device=device)
    np.asarray(f(np.ones(500, np.float32)))


@on_each_executor
def test_compiling_running_and_dropping_leaves_memory_handles_and_threads_as_they_were(device: str):
    for number in range(3):  # what is loaded once is loaded
        cycle(device, number)
    gc.collect()
    live, (files, threads) = rune.memory_stats(device).live_bytes, counts()
    objects, resident = len(gc.get_objects()), [resident_bytes()]

    for number in range(3, 12):
        cycle(device, number)
        gc.collect()
        resident.append(resident_bytes())
    # What earlier tests have left may go meanwhile.
    assert excess((files, threads)) == (0, 0), "more files or threads than before"
    assert rune.memory_stats(device).live_bytes == live
    assert len(gc.get_objects()) - objects < OBJECTS * 9
    assert soak.growth(resident) < GROWN_BYTES


@on_each_executor
def test_calls_of_one_function_reuse_freed_memory(device: str):
    f = rune.jit(lambda x: x * 2.0 + 1.0, device=device)
    x = rune.device_put(np.ones(1 << 18, np.float32), device)
    for _ in range(3):
        f(x).block_until_ready()
    before = rune.memory_stats(device)

    for _ in range(20):
        f(x).block_until_ready()
    after = rune.memory_stats(device)
    assert after.raw_allocations == before.raw_allocations
    assert (after.live_bytes, after.peak_bytes) == (before.live_bytes, before.peak_bytes)
