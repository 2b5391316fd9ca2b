"""Native code that runs one program on several devices, with meetings.

    @play(self, argv, count)   a built-in function of (seats, threads): runs all devices; returns 0,
                               or the reason why they stopped before the end
    @work(thread)              the main function of a device's thread
    @start(thread)             starts that thread

The caller's thread runs the part of the first device; each other device has a thread, which lives
as long as the process. A waiting thread polls for a while, and then sleeps.

If no processor is idle, Linux wakes a thread on the processor on which it last ran; if that is the
caller's, the thread is moved (threads_code.py says more).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rune.backends.cpu import threads_code
from rune.backends.cpu.crew import meet, perform
from rune.backends.cpu.crew.records import GROUP, SEAT, STUCK, TABLE, THREAD
from rune.backends.cpu.crew.words import Spin, at, broadcast, byte, entry, get, lock, put, unlock, wait, word
from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.routines import Code, define, is_null, null, true
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """The differences between systems."""

    pause_declared: str
    spin: Spin
    can_place: bool  # whether threads are moved off the caller's processor
    detached: int
    stack_bytes: int
    abi: Abi


def text(system: System) -> str:
    """The module."""
    inner = [
        (("void", "part", "ptr seat"), _part),
        (("void", "clear", "ptr table"), _clear),
        (("void", "wait_job", "ptr thread"), partial(_wait_job, system.spin)),
    ]
    outer = [
        (("ptr", "work", "ptr thread"), partial(_work, system)),
        (("i32", "start", "ptr thread"), partial(_start, system)),
        (("ptr", "play", "ptr self, ptr argv, i64 count"), partial(_play, system)),
    ]
    runs = [*(define(s, write) for s, write in inner), *(define(s, write, "") for s, write in outer)]
    functions = [*_placing(system), *perform.functions(), *meet.functions(system.spin), *runs]
    return _declared_once([threads_code.PTHREADS, f"declare {system.pause_declared}", *functions])


def _declared_once(parts: Sequence[str]) -> str:
    """The parts as one text, with each declaration once."""
    lines = [line for part in parts for line in (*part.splitlines(), "")]
    declarations = [line for line in lines if line.startswith("declare ")]
    return "\n".join([*dict.fromkeys(declarations), *(line for line in lines if not line.startswith("declare "))])


def _placing(system: System) -> list[str]:
    """@remember, which notes a thread's processor, and @part_from, which moves it off the
    caller's."""
    signatures = [("void", "remember", "ptr thread"), ("void", "part_from", "ptr thread")]
    # Both are called on every system; where threads cannot be moved, they do nothing.
    if not system.can_place:
        return [define(s, lambda code, thread: None) for s in signatures]
    send_away = define(("void", "send_away", "i32 thread, i32 here"), threads_code.send_away)
    functions = [define(s, write) for s, write in zip(signatures, (_remember, _part_from), strict=True)]
    return [threads_code.ALLOWED, threads_code.PLACING, send_away, *functions]


def _remember(code: Code, thread: Value) -> None:
    """Note this thread's id, and the processor on which it runs."""
    for name, function in (("id", "gettid"), ("place", "sched_getcpu")):
        code.set_word("i64", at(code, thread, THREAD, name), code.ask("i32", function).cast("zext", "i64"))


def _part_from(code: Code, thread: Value) -> None:
    """Move a thread off the processor of the caller."""
    processor = code.ask("i32", "sched_getcpu")
    number = word(code, thread, THREAD, "id").cast("trunc", "i32")
    is_here = word(code, thread, THREAD, "place").equals(processor.cast("zext", "i64"))

    def move() -> None:
        code.tell("void", "send_away", number, processor)
        code.set_word("i64", at(code, thread, THREAD, "place"), -1)

    code.either(is_here & number.compare("ne", 0), move)


def _part(code: Code, seat: Value) -> None:
    """Run a device's part of the program, and count its end."""
    # A device that ends may have been the last that could end the others' waits.
    run, words = (get(code, seat, SEAT, name, "ptr") for name in ("run", "words"))
    code.tell("void", run, words)
    table = get(code, seat, SEAT, "table", "ptr")
    lock(code, table)
    running, waiting = (get(code, table, TABLE, name) for name in ("running", "waiting"))
    put(code, table, TABLE, "running", running - 1)
    is_stuck = waiting.compare("ne", 0) & (waiting >= running - 1)
    goes_on = word(code, table, TABLE, "failure").equals(0)
    code.either(is_stuck & goes_on, lambda: code.tell("void", "fail", table, code.constant("i64", STUCK)))
    unlock(code, table)


def _work(system: System, code: Code, thread: Value) -> Value:
    """Run parts, as long as the process lives."""
    wake = at(code, thread, THREAD, "wake")

    def run() -> None:
        wait(system.spin, code, wake, thread, lambda: word(code, thread, THREAD, "job").compare("ne", 0))
        code.tell("void", "remember", thread)
        code.tell("void", "part", get(code, thread, THREAD, "job", "ptr"))
        code.tell("void", "remember", thread)
        _hand(code, thread, null(code))

    code.loop(lambda: (true(code),), run)
    return null(code)


def _wait_job(spin: Spin, code: Code, thread: Value) -> None:
    """Wait until a thread has run its part."""
    wake = at(code, thread, THREAD, "wake")
    wait(spin, code, wake, thread, lambda: word(code, thread, THREAD, "job").equals(0))


def _hand(code: Code, thread: Value, seat: Value) -> None:
    """Give a thread a part to run, or null to say that it has run."""
    word = code.emit("i64", f"ptrtoint ptr {seat.text} to i64")
    lock(code, thread)
    # Under the mutex, or a thread between its last look and its sleep would miss the wake-up.
    code.set_word("i64", at(code, thread, THREAD, "job"), word)
    unlock(code, thread)
    broadcast(code, at(code, thread, THREAD, "wake"))


def _start(system: System, code: Code, thread: Value) -> Value:
    """Start the thread of a device; not 0 if that fails."""
    code.tell("i32", "pthread_mutex_init", thread, null(code))
    code.tell("i32", "pthread_cond_init", at(code, thread, THREAD, "wake"), null(code))
    attributes = threads_code.thread_attributes(code, system.stack_bytes, system.detached)
    return code.ask("i32", "pthread_create", code.allocate("i64"), attributes, code.symbol("work"), thread)


def _clear(code: Code, table: Value) -> None:
    """Before a run: no arrivals, and free locks, even in the child of a fork during a run."""
    zero = code.constant("i64", 0)
    code.tell("i32", "pthread_mutex_init", table, null(code))
    for name in ("waiting", "failure"):
        put(code, table, TABLE, name, zero)
    groups = get(code, table, TABLE, "groups", "ptr")

    def clear(k: Value) -> None:
        group = entry(code, groups, k)
        code.tell("i32", "pthread_cond_init", group, null(code))
        for name in ("arrived", "done"):
            put(code, group, GROUP, name, zero)

    code.count_up(zero, get(code, table, TABLE, "count"), 1, clear)


def _play(system: System, code: Code, self: Value, argv: Value, count: Value) -> Value:
    """Run a program on all devices. Seats and threads are arrays, with their number in front."""
    abi = system.abi
    seats, threads = (_data(code, entry(code, argv, code.constant("i64", k)), abi) for k in (0, 1))
    one, devices = code.constant("i64", 1), code.load("i64", seats)
    # Loops of other devices take the interpreter's lock to check signals (pulse.py).
    state = code.ask("ptr", code.at(abi.save_thread))
    caller_seat = entry(code, seats, one)
    table = get(code, caller_seat, SEAT, "table", "ptr")
    code.tell("void", "clear", table)
    # Before any device begins, as it may end, and be counted, at once.
    put(code, table, TABLE, "running", devices)

    def each(visit: Callable[[Value], None]) -> None:
        code.count_up(one, devices, 1, visit)

    def begin(k: Value) -> None:
        seat = entry(code, seats, k + 1)
        put(code, seat, SEAT, "at", code.constant("i64", 0))
        thread = entry(code, threads, k)
        code.tell("void", "part_from", thread)
        _hand(code, thread, seat)

    put(code, caller_seat, SEAT, "at", code.constant("i64", 0))
    each(begin)
    code.tell("void", "part", caller_seat)
    # The caller's part may end first, and its arrays must live as long as others use them.
    each(lambda k: code.tell("void", "wait_job", entry(code, threads, k)))
    failure = get(code, table, TABLE, "failure")
    code.tell("void", code.at(abi.restore_thread), state)
    error = code.ask("ptr", code.at(abi.error))
    answer = partial(code.ask, "ptr", code.at(abi.from_long), failure)
    return code.choose(is_null(error), answer, lambda: null(code))


def _data(code: Code, array: Value, abi: Abi) -> Value:
    """The address of a NumPy array's data."""
    return code.load("ptr", byte(code, array, abi.data))
