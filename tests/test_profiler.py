"""rune.profiler: a trace is a file of events; spans and compiled programs are in it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune import profiler
from rune.errors import ArgumentError


def events(folder: Path) -> list[dict[str, Any]]:
    """The events of the one trace in a folder, with the names of their rows, without Python's."""
    (file,) = folder.glob("plugins/profile/*/*.trace.json.gz")
    all_events = json.loads(gzip.open(file).read())["traceEvents"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in all_events if e["name"] == "thread_name"}
    return [{**e, "tid": rows[e["pid"], e["tid"]]} for e in all_events if e["ph"] == "X" and e["cat"] != "python"]


def test_a_trace_has_compiled_programs_and_spans(tmp_path: Path):
    @rune.jit
    def double(x: rune.Array) -> rune.Array:
        return 2 * x

    with profiler.trace(tmp_path), profiler.TraceAnnotation("load", batch=3, kind=rnp.float32):
        double(rnp.ones(3))

    by_name = {e["name"]: e for e in events(tmp_path)}
    program, span = by_name["double"], by_name["load"]
    assert program["tid"] == "cpu:0"
    assert span["args"]["batch"] == 3
    assert span["ts"] <= program["ts"]
    assert span["ts"] + span["dur"] >= program["ts"] + program["dur"]


def test_a_trace_is_taken_between_two_calls(tmp_path: Path):
    profiler.start_trace(tmp_path)
    with profiler.StepTraceAnnotation("train", step_num=7):
        pass
    profiler.stop_trace()
    with profiler.TraceAnnotation("later"):
        pass

    (step,) = events(tmp_path)
    assert (step["name"], step["args"]["step_num"]) == ("train", 7)


def test_a_function_is_a_span_by_its_name(tmp_path: Path):
    @profiler.annotate_function
    def load(x: int) -> int:
        return x + 1

    with profiler.trace(tmp_path):
        assert load(2) == 3
        assert profiler.annotate_function(lambda: 5, name="five")() == 5

    assert [e["name"].rpartition(".")[2] for e in events(tmp_path)] == ["load", "five"]


def test_a_block_that_fails_ends_its_trace(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path):
        _ = 1 / 0

    assert events(tmp_path) == []
    with pytest.raises(ArgumentError, match="none is being recorded"):
        profiler.stop_trace()


def test_a_second_trace_is_refused(tmp_path: Path):
    with profiler.trace(tmp_path), pytest.raises(ArgumentError, match="cannot record a second trace"):
        profiler.start_trace(tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        lambda: profiler.start_trace("folder", create_perfetto_link=True),
        lambda: profiler.start_server(9999),
        lambda: profiler.stop_server(),
        lambda: profiler.device_memory_profile(),
        lambda: profiler.save_device_memory_profile("file"),
    ],
)
def test_features_of_xla_are_refused(call: Any):
    with pytest.raises(ArgumentError, match="cannot"):
        call()
