"""rune.debug.profile records the work inside the block, with line, scope, time and memory."""

from __future__ import annotations

import contextvars
import gc
import inspect
import json
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import profiling
from rune.profiling import Event, Kind, Profile
from tests.support.eventually import HANG_S

HERE = Path(__file__).name
FOLDER = str(Path(profiling.__file__).parent)


def of(profile: Profile, kind: Kind) -> list[Event]:
    return [e for e in profile.events if e.kind is kind]


def next_line() -> str:
    """The line below the caller's, as errors and profiles name it."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return f"{HERE}:{frame.f_back.f_lineno + 1}"


def layer(x: Any, w: Any) -> Any:
    with rune.named_scope("net"), rune.named_scope("layer"):
        return rnp.tanh(x @ w)


# --- recorded events --------------------------------------------------------------------------


def test_an_eager_operation_is_an_event_with_its_line_and_scope():
    x = rnp.ones(3)
    with rune.debug.profile() as p, rune.named_scope("net"):
        line = next_line()
        _ = x + 1
    (event,) = of(p, Kind.EAGER)
    assert (event.title, event.line, event.row.device) == ("net/add", line, "cpu:0")
    assert event.seconds > 0


def test_an_eager_operation_with_several_results_is_an_event():
    with rune.debug.profile() as p:
        rnp.linalg.eigh(rnp.eye(3))
    assert "eigh" in {e.name for e in of(p, Kind.EAGER)}


def test_tracing_and_compiling_are_events_of_the_host():
    with rune.debug.profile() as p:
        rune.jit(lambda x: rnp.sin(x) * 1.25)(rnp.ones(3))
    assert [e.name for e in of(p, Kind.TRACE)] == ["trace lambda"]
    assert [(e.name, e.row.device) for e in of(p, Kind.COMPILE)] == [("compile lambda", profiling.HOST)]


def test_a_step_of_a_program_has_the_scopes_that_it_was_written_in():
    f = rune.jit(layer)
    with rune.debug.profile() as p:
        f(rnp.ones((64, 64)), rnp.ones((64, 64)))
    steps = of(p, Kind.STEP)
    assert steps
    assert {e.scope for e in steps} == {"net/layer"}


def test_steps_stand_within_the_call_of_their_program():
    f = rune.jit(layer)
    with rune.debug.profile() as p:
        for _ in range(3):
            f(rnp.ones((64, 64)), rnp.ones((64, 64)))
    calls = of(p, Kind.PROGRAM)
    assert len(calls) == 3
    for step in of(p, Kind.STEP):
        assert any(c.start <= step.start and step.end <= c.end + 1e-9 for c in calls)


def test_copies_to_and_from_a_device_are_events():
    device = next(d.name for d in rune.devices() if d.name != "cpu:0" and d.target.backend == "reference")
    with rune.debug.profile() as p:
        np.asarray(rune.device_put(np.ones(7, np.float32), device))
    assert [(e.name, e.details["bytes"]) for e in of(p, Kind.COPY)] == [
        (f"copy to {device}", 28),
        (f"copy from {device}", 28),
    ]


def test_blocks_of_the_user_and_of_loading_are_events_with_their_labels():
    with rune.debug.profile() as p:
        with rune.profiler.TraceAnnotation("epoch", number=7):
            pass
        with profiling.span("next batch", Kind.DATA, rows=32):
            time.sleep(0.002)
    (span,), (loading,) = of(p, Kind.SPAN), of(p, Kind.DATA)
    assert (span.name, span.details["number"]) == ("epoch", 7)
    assert (loading.name, loading.details["rows"]) == ("next batch", 32)
    assert loading.seconds >= 0.002


def test_a_worker_thread_records_into_the_callers_profile():
    def work(profile: Profile | None) -> None:
        with profiling.within(profile), profiling.span("read", Kind.DATA):
            pass

    with rune.debug.profile() as p:
        thread = threading.Thread(target=work, args=(profiling.current(),), name="reader")
        thread.start()
        thread.join(HANG_S)
    assert [(e.name, e.row.thread) for e in of(p, Kind.DATA)] == [("read", "reader")]


def test_a_copied_context_has_the_same_profile():
    with rune.debug.profile() as p:
        contextvars.copy_context().run(lambda: rnp.ones(2) + 1)
    assert "add" in {e.name for e in of(p, Kind.EAGER)}


def test_events_beyond_the_limit_are_counted_in_totals(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rune.profiling.profile.MOST_EVENTS", 2)
    x = rnp.ones(2)
    with rune.debug.profile() as p:
        for _ in range(5):
            _ = x + x
    assert len(p.events) == 2
    assert sum(t.calls for t in p.totals) == 5


def test_totals_list_the_longest_time_first():
    with rune.debug.profile() as p:
        with profiling.span("short", Kind.SPAN):
            pass
        with profiling.span("long", Kind.SPAN):
            time.sleep(2 * p.events[0].seconds)
    assert [t.name for t in p.totals] == ["long", "short"]


def test_nothing_is_recorded_after_the_block():
    with rune.debug.profile() as p:
        pass
    _ = rnp.ones(2) + 1
    assert (p.events, profiling.gathers) == ([], [])


# --- what it costs when it is off -------------------------------------------------------------


def lines_of_profiling(run: Any) -> int:
    """How many lines of the package that profiles run within a call."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("kind", ["eager", "compiled", "array"])
def test_without_a_profile_no_line_of_it_runs(kind: str):
    x, f = rnp.ones(3), rune.jit(lambda x: x * 2)
    run = {"eager": lambda: x + x, "compiled": lambda: f(x), "array": lambda: rnp.asarray([1.0, 2.0])}[kind]
    run()
    assert lines_of_profiling(run) == 0


def test_without_a_profile_a_span_costs_one_test():
    with_one = profiling.span("load", Kind.DATA)
    assert lines_of_profiling(lambda: with_one.__enter__()) <= 3


# --- memory -----------------------------------------------------------------------------------


def test_live_arrays_are_those_made_in_the_block_with_the_lines_that_made_them():
    x = rnp.ones(100)
    with rune.debug.profile() as p:
        line = next_line()
        y = x + 1
        line_of_program = next_line()
        z = rune.jit(lambda v: v * 3.5)(y)
        del y
    gc.collect()
    assert [(a.text, a.nbytes, a.device, a.line) for a in p.live_arrays()] == [
        ("f32[100]", 400, "cpu:0", line_of_program)
    ]
    del z
    gc.collect()
    assert p.live_arrays() == []
    assert line != line_of_program


def test_a_view_needs_no_memory():
    x = rnp.ones((8, 4))
    with rune.debug.profile() as p:
        y = x.T
    assert p.live_arrays() == []
    del y


def test_memory_over_time_rises_and_falls_with_the_arrays():
    with rune.debug.profile() as p:
        a = rnp.asarray(np.zeros(100, np.float32))
        b = a + 1
        del a
        c = b * 2
        del b, c
    assert [level.nbytes for level in p.levels] == [400, 800, 400, 800, 400, 0] or [
        level.nbytes for level in p.levels
    ] == [400, 800, 400, 800, 0, 400, 0]


def test_arrays_of_a_device_are_counted_there():
    with rune.debug.profile() as p:
        x = rune.device_put(np.ones(16, np.float32), "reference")
        y = rnp.sin(x)
    assert {(a.device, a.nbytes) for a in p.live_arrays()} >= {("reference:0", 64)}
    del y


def test_live_arrays_of_the_process_name_the_lines_in_the_profile():
    with rune.debug.profile():
        line = next_line()
        x = rnp.zeros(12345) + 1
        table = rune.debug.live_arrays()
    assert [row.line for row in table if row.text == "f32[12345]"] == [line]
    assert "f32[12345]" in str(table)
    del x


# --- the file ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    f = rune.jit(layer)
    with rune.debug.profile() as p:
        for number in range(3):
            with rune.profiler.TraceAnnotation("step", number=number, shape=(3, 4)):
                x = rnp.asarray(np.ones((32, 32), np.float32)) + number
                f(x, x)
        rune.device_put(np.ones(5, np.float32), "reference")
    file = p.save(tmp_path_factory.mktemp("trace") / "trace.json")
    return json.loads(file.read_text())


def events(trace: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == phase]


def test_the_file_has_the_fields_of_the_format(trace: dict[str, Any]):
    assert set(trace) == {"traceEvents"}  # a unit for display makes times a thousand times longer in some Perfettos
    for event in trace["traceEvents"]:
        assert event["ph"] in "XMC"
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert event["ts"] >= 0
        assert isinstance(event.get("args", {}), dict)
    assert all(e["dur"] >= 0 and isinstance(e["cat"], str) for e in events(trace, "X"))


def test_every_row_of_the_file_is_named(trace: dict[str, Any]):
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events(trace, "M") if e["name"] == "thread_name"}
    groups = {e["pid"] for e in events(trace, "M") if e["name"] == "process_name"}
    for event in events(trace, "X"):
        assert (event["pid"], event["tid"]) in names
        assert event["pid"] in groups
    assert {"cpu:0", threading.current_thread().name} <= set(names.values())


def test_events_of_a_row_are_nested_or_apart(trace: dict[str, Any]):
    rows: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events(trace, "X"):
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row in rows.values():
        ends: list[float] = []
        for event in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
            while ends and ends[-1] <= event["ts"] + 1e-3:  # a nanosecond
                ends.pop()
            end = event["ts"] + event["dur"]
            assert not ends or end <= ends[-1] + 1e-3
            ends.append(end)


def test_times_are_microseconds_from_the_beginning():
    with rune.debug.profile() as p:
        time.sleep(0.01)
        with profiling.span("nap", Kind.SPAN):
            time.sleep(0.02)
    (event,) = [e for e in events(dict(p.trace()), "X") if e["name"] == "nap"]
    assert 10_000 <= event["ts"] <= event["ts"] + event["dur"] <= p.seconds * 1e6 + 1
    assert event["dur"] >= 20_000


def test_memory_is_a_counter_in_the_file(trace: dict[str, Any]):
    counters = events(trace, "C")
    assert counters
    assert {e["name"] for e in counters} == {"memory of cpu:0", "memory of reference:0"}
    assert all(isinstance(e["args"]["bytes"], int) and e["args"]["bytes"] >= 0 for e in counters)


def test_a_detail_that_is_not_a_number_leaves_the_file_readable(tmp_path: Path):
    with rune.debug.profile() as p, rune.profiler.TraceAnnotation("step", loss=float("nan")):
        pass
    text = p.save(tmp_path / "trace.json").read_text()
    (event,) = [e for e in events(json.loads(text, parse_constant=pytest.fail), "X") if e["name"] == "step"]
    assert event["args"]["loss"] == "nan"


def test_a_compressed_file_has_the_same_events(tmp_path: Path):
    import gzip

    with rune.debug.profile() as p:
        _ = rnp.ones(3) + 1
    file = p.save(tmp_path / "trace.json.gz")
    assert json.loads(gzip.decompress(file.read_bytes())) == json.loads(json.dumps(p.trace(), default=str))
