"""Locks: in a forked child all of them are free, whatever other threads were doing."""

from __future__ import annotations

import ast
import dis
import gc
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from rune import dtypes, locks
from rune.backends.cpu import llvm_binding, llvm_functions
from tests.architecture.sources import Source, sources
from tests.support.sampling import IS_WHOLE

ROOT = Path(__file__).parent.parent
HANG_S = 300  # what takes longer hangs, on any machine
KINDS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Event"}
can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(script: str) -> list[str]:
    """The output of a script."""
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=2 * HANG_S
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


BEGIN = f"""
import os, signal, threading
import numpy as np
import rune, rune.numpy as rnp
from rune import locks

x = np.ones(300, np.float32)
arrived, leave = threading.Event(), threading.Event()

def in_child(work):
    child = os.fork()
    if not child:
        signal.alarm({HANG_S})
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

TRACING = """
def f(v):
    if threading.current_thread() is worker:
        arrived.set()
        leave.wait()
    return rnp.sin(v) * 2

jitted = rune.jit(f)
worker = threading.Thread(target=jitted, args=(x,))
worker.start()
arrived.wait()
print(in_child(lambda: jitted(x)))
leave.set()
worker.join()
"""

# What a thread has in its hands while its parent forks, and what the child then takes.
HOLDING = """
def hold(lock):
    with lock:
        arrived.set()
        leave.wait()

for lock in (locks.lock(), locks.reentrant()):
    arrived.clear()
    worker = threading.Thread(target=hold, args=(lock,))
    worker.start()
    arrived.wait()
    print(in_child(lambda: lock.acquire() and lock.release()))
    leave.set()
    worker.join()
    leave.clear()
"""

NESTED = """
lock = locks.reentrant()
with lock:
    print(in_child(lambda: lock.acquire() and lock.release() is None and lock.release()))
"""

OWNED = """
lock = locks.reentrant()
lock.acquire()
child = os.fork()
if not child:
    lock.release()  # raises if the child no longer owns it
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

WHOLE = """
pair, lock = [0, 0], locks.fork_guard(threading.RLock())

def change():
    while not leave.is_set():
        with lock:
            pair[0] += 1
            for _ in range(1000):
                pass
            pair[1] += 1

worker = threading.Thread(target=change)
worker.start()
seen = []
for _ in range(20):
    child = os.fork()
    if not child:
        with lock:
            os._exit(int(pair[0] != pair[1]))
    seen.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
leave.set()
worker.join()
print(set(seen))
"""

CROSSED = """
outer, inner = locks.fork_guard(threading.RLock()), locks.fork_guard(threading.RLock())

def inner_then_outer():
    while not leave.is_set():
        with inner, outer:
            pass

def outer_then_inner():
    for _ in range(20):
        print(in_child(lambda: None), end=" ")

worker = threading.Thread(target=inner_then_outer)
worker.start()
outer_then_inner()
leave.set()
worker.join()
"""

DROPPING = """
def compile_and_drop():
    while not leave.is_set():
        number = np.random.rand()
        rune.jit(lambda v: rnp.sum(rnp.sin(v) * number))(x)

workers = [threading.Thread(target=compile_and_drop) for _ in range(2)]
rune.jit(rnp.sin)(x)
for worker in workers:
    worker.start()
print({in_child(lambda: rune.jit(lambda v: rnp.cos(v) * 3)(x)) for _ in range(12)})
leave.set()
for worker in workers:
    worker.join()
"""

FIRST = """
worker = threading.Thread(target=lambda: rune.jit(lambda v: rnp.sum(rnp.sin(v)))(x))
worker.start()  # it loads the compiler meanwhile
print({in_child(lambda: rune.jit(lambda v: rnp.cos(v) * 3)(x)) for _ in range(4)})
worker.join()
"""


@can_fork
def test_a_child_calls_a_function_that_another_thread_of_its_parent_is_tracing():
    assert run(BEGIN + TRACING) == ["0"]


@can_fork
def test_a_lock_that_another_thread_holds_is_free_in_a_child():
    assert run(BEGIN + HOLDING) == ["0", "0"]


@can_fork
def test_a_lock_held_by_the_forking_thread_is_still_held_in_the_child():
    assert run(BEGIN + NESTED) == ["0"]
    assert run(BEGIN + OWNED) == ["7"]


@can_fork
def test_data_guarded_by_a_held_lock_is_consistent_in_a_forked_child():
    assert run(BEGIN + WHOLE) == ["{0}"]


@can_fork
def test_a_fork_waits_for_no_lock_while_it_holds_another():
    assert run(BEGIN + CROSSED) == ["0 " * 20]


@can_fork
def test_a_child_compiles_even_if_threads_of_its_parent_compile_and_drop_functions():
    assert run(BEGIN + DROPPING) == ["{0}"]


@can_fork
def test_a_child_compiles_even_if_a_thread_of_its_parent_was_loading_the_compiler():
    assert run(BEGIN + FIRST) == ["{0}"]


def test_the_lock_of_llvmlite_guards_its_calls():
    library = llvm_binding.library()
    answers: list[bool] = []

    def look() -> None:
        answers.append(llvm_binding.lock()._is_owned())

    library.ffi.register_lock_callback(look, look)
    try:
        library.parse_assembly("")
    finally:
        library.ffi.unregister_lock_callback(look, look)
    assert answers
    assert all(answers)
    assert llvm_binding.lock() in locks._fork_guards
    assert llvm_functions.lock() in locks._fork_guards


def interrupted(run: Callable[[], object], calls: int) -> bool:
    """Whether `locks.if_free` made so many calls in `run`; right after the last an interrupt comes.

    The interpreter hears of interrupts at the end of a call, and at nothing else in that function.
    """
    names = {i.offset: i.opname for i in dis.get_instructions(locks.if_free)}
    past: list[str] = []

    def at_instruction(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not locks.if_free.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            after_call = bool(past) and past[-1] == "CALL"
            past.append(names[frame.f_lasti])
            if after_call and past[:-1].count("CALL") == calls:
                raise KeyboardInterrupt
        return at_instruction

    before = sys.gettrace()
    try:
        sys.settrace(at_instruction)
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_after_any_call_of_if_free_leaves_the_lock_free():
    lock, works = threading.Lock(), []
    calls = itertools.takewhile(
        lambda n: interrupted(lambda: locks.if_free(lock, lambda: works.append(n)), n), itertools.count(1)
    )

    for number in calls:
        assert not lock.locked(), f"after call {number}"
    assert works  # of those that the interrupt came after


def test_work_under_a_lock_that_another_thread_has_is_left_out():
    lock, works = threading.Lock(), []
    with lock:
        locks.if_free(lock, lambda: works.append("under a lock"))
        assert lock.locked()
    assert not works

    locks.if_free(lock, lambda: works.append("free"))
    assert works == ["free"]


def test_only_locks_itself_takes_a_lock_otherwise_than_by_with():
    # An interrupt between `acquire` and `try` would leave it taken, and the next that waits hangs.
    assert {str(s) for s in sources() if "acquire" in s.text} == {str(s) for s in sources() if s.name == "rune.locks"}
    assert not {str(s) for s in sources() if ".acquire(" in s.text}


def plain_locks(source: Source) -> list[str]:
    """The lines of a file that make a lock which is not held over forks."""
    if not any(kind in source.text for kind in KINDS):
        return []
    lines = source.text.splitlines()
    nodes = list(ast.walk(source.tree))
    # A class of rune's own may have the name of one: Event of profiles.
    imports = [n for n in nodes if isinstance(n, ast.ImportFrom) and not (n.module or "").startswith("rune")]
    makers = {a.asname or a.name for n in imports for a in n.names if a.name in KINDS}
    makers |= {f"{module}.{kind}" for module in ("threading", "multiprocessing") for kind in KINDS}
    line_numbers = [n.lineno for n in nodes if isinstance(n, ast.Call) and ast.unparse(n.func) in makers]
    return [f"{source}:{line}" for line in line_numbers if "locks.fork_guard(" not in lines[line - 1]]


def test_every_lock_is_made_in_one_place():
    elsewhere = [place for s in sources() if s.name != "rune.locks" for place in plain_locks(s)]

    assert not elsewhere, "make it with locks.lock() or locks.reentrant()"


def test_an_unused_lock_is_forgotten():
    before = len(locks._renewable_locks)
    handles = [locks.lock() for _ in range(10)]
    assert len(locks._renewable_locks) == before + 10

    del handles
    assert len(locks._renewable_locks) == before


def test_no_lock_is_in_the_hands_of_this_thread_after_a_fork_has_begun_and_ended():
    locks._acquire()
    locks._release()

    assert not any(k._is_owned() for k in locks._fork_guards)


def fork_interrupted(functions: Collection[CodeType], step: int, is_taken: Callable[[], bool]) -> tuple[bool, bool]:
    """Fork, with an interrupt at a step of some functions.

    Whether they have so many steps, and whether a lock is taken then, here or in the child.
    """
    steps, parent, came, child = 0, os.getpid(), False, -1

    def at_step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps, came
        if frame.f_code not in functions:
            return None
        frame.f_trace_opcodes = True
        steps += 1
        if steps == step:
            came = True
            raise KeyboardInterrupt
        return at_step

    before = sys.gettrace()
    try:
        sys.settrace(at_step)
        child = os.fork()
    except KeyboardInterrupt:  # it is heard after the fork, in the parent
        pass
    finally:
        sys.settrace(before)
        if os.getpid() != parent:
            os._exit(2 * is_taken() + came)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return came or bool(code & 1), is_taken() or bool(code & 2)


def instructions_of_a_fork(functions: Collection[CodeType]) -> list[str]:
    """The instruction of each step of some functions, as `fork_interrupted` counts them."""
    names = {(f, i.offset): i.opname for f in functions for i in dis.get_instructions(f)}
    steps: list[str] = []

    def at_step(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in functions:
            return None
        frame.f_trace_opcodes = True
        steps.append(names.get((frame.f_code, frame.f_lasti), ""))
        return at_step

    before = sys.gettrace()
    try:
        sys.settrace(at_step)
        child = os.fork()
    finally:
        sys.settrace(before)
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return steps


@can_fork
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning")
def test_an_interrupt_while_a_fork_takes_locks_leaves_all_free():
    functions = [locks._acquire.__code__, locks._attempt.__code__]
    instructions = instructions_of_a_fork(functions)
    # Locks are taken and freed in calls: every step next to a call, and a fifth of the others.
    pairs = enumerate(itertools.pairwise(["", *instructions]), 1)
    steps = [n for n, names in pairs if IS_WHOLE or "CALL" in names or n % 5 == 0]
    for step in steps:
        came, is_taken = fork_interrupted(functions, step, lambda: any(k._is_owned() for k in locks._fork_guards))
        assert came
        assert not is_taken, f"at step {step}"
    assert len(steps) > 20


@can_fork
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("step", [1, 7, 101])
def test_an_interrupt_while_a_child_frees_locks_leaves_all_locks_free(step: int):
    lock, parent, leave = locks.lock(), os.getpid(), threading.Event()
    arrival = threading.Event()

    def hold() -> None:
        with lock:
            arrival.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    arrival.wait()
    came, is_taken = fork_interrupted([locks._renew.__code__], step, lambda: os.getpid() != parent and lock.locked())
    leave.set()
    thread.join()

    assert came
    assert not is_taken


@pytest.mark.parametrize("is_on", [True, False])
def test_loading_a_module_leaves_the_collector_as_it_was(is_on: bool):
    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with pytest.raises(ModuleNotFoundError):
            locks.load("rune.no_such_module")
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("is_on", [True, False])
def test_a_block_without_collections_that_fails_leaves_the_collector_as_it_was(is_on: bool):
    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with pytest.raises(KeyError, match="False"), locks.without_collections(), locks.without_collections():
            raise KeyError(gc.isenabled())
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()


LOADS = """
import gc
from rune import locks
gc.collect()
{before}
count = gc.get_freeze_count()
created = locks.load("tests.support.three_hundred_lists").CREATED
young = {{id(x) for generation in (0, 1) for x in gc.get_objects(generation)}}
print(len(young & {{*map(id, created)}}), gc.get_freeze_count() - count)
"""


def test_objects_that_a_late_module_creates_are_moved_to_the_oldest_generation():
    assert run(LOADS.format(before="")) == ["0 0"]


def test_loading_a_module_thaws_nothing_that_the_program_froze():
    assert run(LOADS.format(before="gc.freeze()"))[0].split()[1] == "0"


def test_a_module_that_is_loaded_already_is_looked_up_without_a_look_at_the_heap(monkeypatch: pytest.MonkeyPatch):
    looks: list[int] = []
    locks.load("rune.dtypes")
    monkeypatch.setattr(gc, "get_freeze_count", lambda: looks.append(1) or 1)

    for _ in range(3):
        assert locks.load("rune.dtypes") is dtypes

    assert looks == []


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch):
    counts: list[int] = []
    monkeypatch.setattr(locks, "_freeze_counts", [])
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counts.append(1) or 1)

    for name in ("email.mime.audio", "email.mime.image"):
        monkeypatch.setattr(locks, "_imports", locks._imports - {name})
        locks.load(name)

    assert counts == [1]
