"""Meetings as native code.

    @meet(seat, number, row)   a device arrives at a collective with its results and operands;
                               returns true if the collective cannot end
    @fail(table, failure)      end all waits

The last device of a group to arrive begins. It does a small collective alone, for all places; of a
large one each place does a part, and then waits until the last part is done. All counts of a table
change under its mutex, so a device that begins to wait, or ends, sees whether another one remains
that could end the waits.

Invariant: the work of each place, and its order of summation, never depend on who arrived first.
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.crew.records import DISAGREE, GROUP, MESSAGE, SEAT, STUCK, TABLE
from rune.backends.cpu.crew.words import Spin, at, broadcast, entry, get, lock, put, unlock, wait, word
from rune.backends.cpu.routines import Code, define, false, true
from rune.lowering.codegen.llvm.ir.text import Value


def functions(spin: Spin) -> list[str]:
    """The functions."""
    inner = [
        (("void", "fail", "ptr table, i64 failure"), _fail),
        (("i1", "wait_ready", "ptr group, ptr table, i64 epoch"), partial(_wait_ready, spin)),
        (("void", "wait_end", "ptr group, ptr table, i64 epoch"), partial(_wait_end, spin)),
    ]
    meet = define(("i1", "meet", "ptr seat, i64 number, ptr row"), _meet, "")
    return [*(define(signature, write) for signature, write in inner), meet]


def _meet(code: Code, seat: Value, number: Value, row: Value) -> Value:
    """Arrive at the meeting of the device's group; the last to arrive begins."""
    table = get(code, seat, SEAT, "table", "ptr")
    group, place = (entry(code, get(code, seat, SEAT, name, "ptr"), number, type) for name, type in _MINE)
    lock(code, table)
    code.either(_cannot_meet(code, table, group, seat, number), lambda: _refuse(code, table))
    # Counted from 1: 0 stands for a device that waits nowhere.
    put(code, seat, SEAT, "at", number + 1)
    rows = get(code, group, GROUP, "rows", "ptr")
    code.store(row, code.item(rows, "i64", place))
    arrivals, size = get(code, group, GROUP, "arrived") + 1, get(code, group, GROUP, "size")
    put(code, group, GROUP, "arrived", arrivals)
    message = entry(code, get(code, seat, SEAT, "messages", "ptr"), number)
    is_alone = get(code, message, MESSAGE, "alone").compare("ne", 0)
    # Read before this device arrives, so the meeting cannot have ended yet.
    end_epoch = word(code, group, GROUP, "ended")
    code.either(
        arrivals.equals(size), lambda: _begin(code, table, group, message, is_alone), lambda: _await(code, table, group)
    )
    code.either(is_alone.invert(), lambda: _do_part(code, table, group, message, place, end_epoch))
    put(code, seat, SEAT, "at", code.constant("i64", 0))
    return false(code)


_MINE = (("groups", "ptr"), ("places", "i64"))


def _refuse(code: Code, table: Value) -> None:
    """Return true: this meeting cannot take place."""
    unlock(code, table)
    code.do("ret i1 true")
    # A block of LLVM ends with its return; nothing reaches the next one.
    code.label(code.name("never"))


def _cannot_meet(code: Code, table: Value, group: Value, seat: Value, number: Value) -> Value:
    """Whether the run has failed, or the others of the group are at another meeting."""
    device = get(code, seat, SEAT, "device")

    def first() -> Value:
        put(code, group, GROUP, "number", number)
        put(code, group, GROUP, "first", device)
        return false(code)

    def later() -> Value:
        differs = get(code, group, GROUP, "number").compare("ne", number)
        code.either(differs, disagree)
        return differs

    def disagree() -> None:
        for name, value in (("device", device), ("number", number), ("other", get(code, group, GROUP, "first"))):
            put(code, table, TABLE, name, value)
        code.tell("void", "fail", table, code.constant("i64", DISAGREE))

    has_failed = word(code, table, TABLE, "failure").compare("ne", 0)
    is_first = get(code, group, GROUP, "arrived").equals(0)
    return code.choose(has_failed, lambda: true(code), lambda: code.choose(is_first, first, later))


def _begin(code: Code, table: Value, group: Value, message: Value, is_alone: Value) -> None:
    """All have arrived: release the others, at once or after doing all work alone."""
    size, zero = get(code, group, GROUP, "size"), code.constant("i64", 0)
    put(code, group, GROUP, "arrived", zero)
    # All of the group were waiting but this device.
    put(code, table, TABLE, "waiting", get(code, table, TABLE, "waiting") - size + 1)

    def do_all() -> None:
        # While it reads the others' rows, these must not return, even if another group fails.
        code.set_word("i64", at(code, group, GROUP, "busy"), 1)
        unlock(code, table)
        rows = get(code, group, GROUP, "rows", "ptr")
        code.count_up(zero, size, 1, lambda p: code.tell("void", "attend", message, rows, p))
        lock(code, table)

    code.either(is_alone, do_all)
    code.add_to_word(at(code, group, GROUP, "ready"), 1)
    code.set_word("i64", at(code, group, GROUP, "busy"), 0)
    unlock(code, table)
    broadcast(code, group)


def _await(code: Code, table: Value, group: Value) -> None:
    """Wait for the others, unless all running devices would wait then."""
    epoch = word(code, group, GROUP, "ready")
    waiting = get(code, table, TABLE, "waiting") + 1
    put(code, table, TABLE, "waiting", waiting)

    def be_stuck() -> None:
        code.tell("void", "fail", table, code.constant("i64", STUCK))
        _refuse(code, table)

    code.either(waiting >= get(code, table, TABLE, "running"), be_stuck)
    unlock(code, table)
    is_broken = code.ask("i1", "wait_ready", group, table, epoch)
    broken, well = code.name("broken"), code.name("well")
    code.branch(is_broken, broken, well)
    code.label(broken)
    code.do("ret i1 true")
    code.label(well)


def _do_part(code: Code, table: Value, group: Value, message: Value, place: Value, epoch: Value) -> None:
    """Do this place's part, and wait for those of the others."""
    code.tell("void", "attend", message, get(code, group, GROUP, "rows", "ptr"), place)
    parts_done = code.effect("i64", f"atomicrmw add ptr {at(code, group, GROUP, 'done').text}, i64 1 seq_cst") + 1

    def end() -> None:
        # Before the others are released: the next meeting begins to count from 0.
        code.set_word("i64", at(code, group, GROUP, "done"), 0)
        lock(code, table)
        code.add_to_word(at(code, group, GROUP, "ended"), 1)
        unlock(code, table)
        broadcast(code, group)

    is_last = parts_done.equals(get(code, group, GROUP, "size"))
    code.either(is_last, end, lambda: code.tell("void", "wait_end", group, table, epoch))


def _fail(code: Code, table: Value, failure: Value) -> None:
    """End all waits. The caller holds the mutex."""
    code.set_word("i64", at(code, table, TABLE, "failure"), failure)
    groups = get(code, table, TABLE, "groups", "ptr")
    wake = partial(broadcast, code)
    count = get(code, table, TABLE, "count")
    code.count_up(code.constant("i64", 0), count, 1, lambda k: wake(entry(code, groups, k)))


def _wait_ready(spin: Spin, code: Code, group: Value, table: Value, epoch: Value) -> Value:
    """Wait until all of a group have arrived after this epoch; true if they never will."""

    def is_over() -> Value:
        # In this order: the one who begins sets `busy` before its work, and clears it after
        # `ready`.
        has_failed = word(code, table, TABLE, "failure").compare("ne", 0)
        is_idle = word(code, group, GROUP, "busy").equals(0)
        return word(code, group, GROUP, "ready").compare("ne", epoch) | (has_failed & is_idle)

    wait(spin, code, group, table, is_over)
    return word(code, group, GROUP, "ready").equals(epoch)


def _wait_end(spin: Spin, code: Code, group: Value, table: Value, epoch: Value) -> None:
    """Wait until all places of a group have done their parts."""
    wait(spin, code, group, table, lambda: word(code, group, GROUP, "ended").compare("ne", epoch))
