"""Threads in a profile: computation, waiting, and Python between calls."""

from __future__ import annotations

import ctypes
import json
import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import data, profiling
from rune.profiling import Event, Kind, Moment, Row
from rune.profiling.events import row_names
from rune.profiling.threads import pieces, times

ROW = Row(profiling.HOST, "main")


def compute(seconds: float) -> None:
    """Be on a processor for so long."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass


def named(kind: Kind, start: float, end: float, processor: float) -> Event:
    """An event in a thread whose clock starts with the wall clock and stops during waits."""
    return Event(kind, kind.value, ROW, start, end - start, clock=start, processor=processor)


@pytest.fixture
def busy_interpreter() -> Iterator[None]:
    """Another thread, which sleeps with the interpreter in its hands, 20 ms each time."""
    is_over, sleep = threading.Event(), ctypes.PyDLL(None).usleep

    def run() -> None:
        while not is_over.is_set():
            sleep(20_000)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    is_over.set()
    thread.join()


# --- events -----------------------------------------------------------------------------------


def test_an_event_that_computes_was_on_a_processor():
    with rune.debug.profile() as p, profiling.span("compute", Kind.SPAN):
        compute(0.01)
    (event,) = p.events
    assert 0.01 <= event.processor <= event.seconds + 1e-4


def test_an_event_that_sleeps_was_not():
    with rune.debug.profile() as p, profiling.span("sleep", Kind.SPAN):
        time.sleep(0.03)
    (event,) = p.events
    assert event.seconds >= 0.03
    assert event.processor < 0.01


def test_calls_and_totals_have_the_processor_time_of_their_events():
    f = rune.jit(lambda x: rnp.sin(x) * 2)
    with rune.debug.profile() as p:
        for _ in range(3):
            f(rnp.ones(1000) + 1)
    for total in p.totals:
        alike = [e for e in p.events if (e.kind, e.title, e.line) == (total.kind, total.name, total.line)]
        assert math.isclose(total.processor, sum(e.processor for e in alike))
    assert math.isclose(p.plans[0].processor, sum(e.processor for e in p.events if e.kind is Kind.PROGRAM))


# --- pieces of time ---------------------------------------------------------------------------


def test_a_moment_belongs_to_the_innermost_event():
    inner, outer = named(Kind.EAGER, 2.0, 3.0, 1.0), named(Kind.TRACE, 1.0, 5.0, 4.0)
    parts = [(p.kind, p.start, p.seconds) for p in pieces([inner, outer], {})]
    assert parts == [(Kind.TRACE, 1.0, 1.0), (Kind.EAGER, 2.0, 1.0), (Kind.TRACE, 3.0, 2.0)]


def test_a_block_of_the_user_is_python_where_nothing_else_is():
    call, block = named(Kind.PROGRAM, 2.0, 3.0, 1.0), named(Kind.SPAN, 1.0, 4.0, 3.0)
    assert [p.kind for p in pieces([call, block], {})] == [Kind.PYTHON, Kind.PROGRAM, Kind.PYTHON]


def test_python_before_and_after_counts_within_the_window():
    window = Moment(0.0, 0.0), Moment(10.0, 10.0)
    (python, call) = times(pieces([named(Kind.PROGRAM, 2.0, 3.0, 1.0)], {ROW: window}))
    assert (python.kind, python.seconds, call.kind, call.seconds) == (Kind.PYTHON, 9.0, Kind.PROGRAM, 1.0)


def test_time_that_the_threads_clock_does_not_count_is_waiting():
    (total,) = times(pieces([named(Kind.DATA, 1.0, 5.0, 1.5)], {}))
    assert (total.seconds, total.processor, total.waiting) == (4.0, 1.5, 2.5)


def test_a_thread_whose_clock_is_unknown_has_unknown_waits():
    (total,) = times(pieces([Event(Kind.DATA, "read", ROW, 1.0, 4.0)], {}))
    assert total.seconds == 4.0
    assert math.isnan(total.processor)


def test_the_pieces_of_the_main_thread_are_the_time_of_the_profile():
    f = rune.jit(lambda x: rnp.sin(x) * 2)
    with rune.debug.profile() as p:
        for number in range(3):
            with rune.profiler.TraceAnnotation("step", number=number):
                f(rnp.ones(7) + number)
            time.sleep(0.002)
    name = threading.current_thread().name
    times = [t for t in p.threads if t.thread == name]
    assert {t.kind for t in times} >= {Kind.PYTHON, Kind.PROGRAM, Kind.EAGER, Kind.TRACE, Kind.COMPILE}
    assert math.isclose(sum(t.seconds for t in times), p.seconds, abs_tol=1e-6)


def test_a_sleep_between_calls_is_python_that_waits():
    with rune.debug.profile() as p:
        time.sleep(0.03)
    (total,) = [t for t in p.threads if t.kind is Kind.PYTHON]
    assert total.waiting >= 0.02


def test_time_after_the_last_remembered_event_belongs_to_no_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rune.profiling.profile.MOST_EVENTS", 2)
    with rune.debug.profile() as p:
        for _ in range(3):
            with profiling.span("load", Kind.DATA):
                pass
        time.sleep(0.01)
    assert sum(t.seconds for t in p.threads) <= p.seconds - 0.01


def test_an_event_that_ends_after_its_profile_is_not_recorded():
    with rune.debug.profile() as p:
        block = profiling.span("late", Kind.DATA)
        block.__enter__()
    block.__exit__(None, None, None)
    assert p.events == []


# --- callbacks --------------------------------------------------------------------------------


def sleepy(x: Any) -> Any:
    time.sleep(0.01)
    return np.asarray(x)


@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "compiled"])
def test_a_python_function_that_a_program_calls_is_an_event(transform: Any):
    f = transform(lambda x: rune.pure_callback(sleepy, x, x) + 1)
    with rune.debug.profile() as p:
        f(rnp.ones(5))
    (event,) = [e for e in p.events if e.kind is Kind.CALLBACK]
    assert event.name == "sleepy"
    assert event.seconds >= 0.01
    assert event.processor < 0.009


def test_time_in_a_callback_is_not_that_of_the_program():
    f = rune.jit(lambda x: rune.pure_callback(sleepy, x, x) + 1)
    with rune.debug.profile() as p:
        f(rnp.ones(5))
    seconds = {t.kind: t.seconds for t in p.threads}
    assert math.isclose(
        seconds[Kind.PROGRAM] + seconds[Kind.CALLBACK] + seconds[Kind.WAIT], p.plans[0].seconds, abs_tol=1e-6
    )


def test_a_callback_reports_how_long_it_waited_for_the_interpreter(busy_interpreter: None):
    # While the sum is computed the other thread takes the interpreter.
    result = rune.ShapeDtypeStruct((), "float32")
    f = rune.jit(lambda x: rune.pure_callback(sleepy, result, rnp.sum(rnp.sin(x) * rnp.cos(x))))
    x, waits = rnp.ones(2_000_000), list[Event]()
    with rune.debug.profile() as p:
        # The thread must wake up while the sum is computed, which another process may prevent.
        while len(waits) < 100 and max((e.seconds for e in waits), default=0.0) < 0.01:
            f(x)
            waits = [e for e in p.events if e.kind is Kind.WAIT]
    longest = max(waits, key=lambda e: e.seconds)
    assert longest.name == "the interpreter"
    assert longest.seconds > 0.01
    assert longest.processor < 0.5 * longest.seconds


def test_waits_for_a_free_interpreter_are_short():
    f = rune.jit(lambda x: rune.pure_callback(sleepy, x, x) + 1)
    with rune.debug.profile() as p:
        for _ in range(5):
            f(rnp.ones(5))
    assert min(e.seconds for e in p.events if e.kind is Kind.WAIT) < 0.001


# --- threads ----------------------------------------------------------------------------------


def test_workers_of_a_pipeline_have_their_own_rows():
    pipeline = data.sequence(range(40)).map(lambda n: np.full(3, n), workers=2).batch(5).prefetch()
    with rune.debug.profile() as p:
        for _ in pipeline:
            pass
    rows = [*dict.fromkeys(e.row for e in p.events)]
    by_name = [row.thread for row in rows]
    assert by_name.count("rune-data-reader") == 2
    assert any(name.startswith("rune-data-worker") for name in by_name)
    names = row_names(rows)
    assert len(set(names.values())) == len(rows)
    assert {t.thread for t in p.threads} >= {"rune-data-reader", "rune-data-reader (2)"}


def test_a_thread_that_reads_ahead_waits_for_room():
    waits = list[Event]()
    with rune.debug.profile() as p, iter(data.sequence(range(1000)).prefetch()) as run:
        # How far it has come by then depends on other processes, too.
        while sum(e.seconds for e in waits) < 0.01:
            next(run)
            time.sleep(0.01)
            waits = [e for e in p.events if e.kind is Kind.WAIT]
    assert {e.name for e in waits} == {"data.room"}
    assert sum(e.processor for e in waits) < 0.5 * sum(e.seconds for e in waits)


@pytest.mark.skipif(sys.platform != "linux", reason="clocks of other threads are Linux's")
def test_workers_of_the_processor_computed_no_more_than_the_process():
    f = rune.jit(lambda x: rnp.sum(rnp.sin(x) * rnp.cos(x), axis=1))
    x = rnp.ones((3000, 1000))
    f(x)
    begin = time.process_time()
    with rune.debug.profile() as p:
        for _ in range(5):
            f(x)
    workers = [t for t in p.threads if t.thread.endswith("of cpu:0")]
    assert len(workers) == (rune.devices()[0].target.cores > 1)
    assert all(0.0 <= t.processor <= time.process_time() - begin for t in workers)


# --- what is shown ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profile() -> profiling.Profile:
    f = rune.jit(lambda x: rnp.sin(x) * 2)
    with rune.debug.profile() as p:
        for _ in range(2):
            f(rnp.ones(7))
            compute(0.005)
    return p


def test_the_text_has_a_table_of_threads(profile: profiling.Profile):
    _, _, table = str(profile).partition("time of threads:\n")
    assert table.splitlines()[0].split() == ["thread", "in", "time", "on", "processor", "waiting"]
    assert any(line.split()[1] == "python" for line in table.splitlines()[1:])


def test_the_view_of_a_notebook_has_it_too(profile: profiling.Profile):
    assert "Time of threads" in profile._repr_html_()


def test_python_between_calls_is_a_bar_with_its_share_of_a_processor(profile: profiling.Profile):
    svg = profile.picture().svg
    assert 'class="python"' in svg
    assert 'class="share"' in svg
    assert "on a processor" in svg


def test_the_file_has_the_clock_of_threads(profile: profiling.Profile, tmp_path: Path):
    events = json.loads(profile.save(tmp_path / "trace.json").read_text())["traceEvents"]
    python = [e for e in events if e.get("cat") == "python"]
    assert sum(e["tdur"] for e in python) >= 10_000  # µs
    assert all(e["tts"] >= 0 for e in python)
    assert not any("tdur" in e for e in events if e.get("cat") == "step")
