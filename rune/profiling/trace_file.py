"""A profile as a file in the Trace Event Format, which Perfetto and chrome://tracing open.

The file holds complete events ("X"), timed in microseconds from the beginning of the profile. Two
numbers give an event's row: `pid` is one number for all host threads and another for all devices;
`tid` is the thread or the device. `tts` and `tdur` are times by the thread's clock, which stops
while the thread waits. Metadata events ("M") name the rows; counters ("C") are the bytes in use.
`displayTimeUnit` is omitted: it says how to show times, but some versions of Perfetto take it for
the unit of `ts`.
Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rune.profiling.events import HOST, Event, Row, row_names
from rune.profiling.memory import Level

HOST_PROCESS, DEVICES = 1, 2  # the `pid` of the two groups of rows
MICROSECONDS = 1e6

Record = dict[str, object]


def trace(events: Sequence[Event], levels: Iterable[Level], start: float) -> Mapping[str, object]:
    """The contents of the file, with times relative to `start` [s]."""
    numbers = {row: n for n, row in enumerate(rows(events), 1)}
    records = [
        *_names(numbers),
        *(_complete(e, numbers[e.row], start) for e in events),
        *(_counter(level, start) for level in levels),
    ]
    return {"traceEvents": records}


def rows(events: Iterable[Event]) -> list[Row]:
    """The rows of the events: host threads in the order of their first event, then devices."""
    unique_rows = dict.fromkeys(e.row for e in events)
    return sorted(unique_rows, key=lambda row: (row.device != HOST, "" if row.device == HOST else row.device))


def _group(row: Row) -> int:
    return HOST_PROCESS if row.device == HOST else DEVICES


def _names(numbers: Mapping[Row, int]) -> Iterator[Record]:
    for group, name in ((HOST_PROCESS, f"host (process {os.getpid()})"), (DEVICES, "devices")):
        yield {"ph": "M", "name": "process_name", "pid": group, "tid": 0, "ts": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": group, "tid": 0, "ts": 0, "args": {"sort_index": group}}
    names = row_names([*numbers])
    for row, number in numbers.items():
        place = {"pid": _group(row), "tid": number, "ts": 0}
        yield {"ph": "M", "name": "thread_name", **place, "args": {"name": names[row]}}
        yield {"ph": "M", "name": "thread_sort_index", **place, "args": {"sort_index": number}}


def _complete(event: Event, number: int, start: float) -> Record:
    more = {"line": event.line, "scope": event.scope}
    return {
        "ph": "X",
        "name": event.title,
        "cat": event.kind.value,
        "pid": _group(event.row),
        "tid": number,
        "ts": max(0.0, (event.start - start) * MICROSECONDS),
        "dur": event.seconds * MICROSECONDS,
        **_thread_clock(event),
        "args": {**{k: v for k, v in more.items() if v}, **{k: _readable(v) for k, v in event.details.items()}},
    }


def _thread_clock(event: Event) -> Record:
    """The fields for the time that the thread was on a processor; none if that is unknown."""
    if math.isnan(event.processor):
        return {}
    return {"tts": event.clock * MICROSECONDS, "tdur": event.processor * MICROSECONDS}


def _readable(detail: object) -> object:
    """A detail in strict JSON, which has no NaN: a reader would reject the whole file for one."""
    return str(detail) if isinstance(detail, float) and not math.isfinite(detail) else detail


def _counter(level: Level, start: float) -> Record:
    return {
        "ph": "C",
        "name": f"memory of {level.device}",
        "pid": DEVICES,
        "tid": 0,
        "ts": max(0.0, (level.time - start) * MICROSECONDS),
        "args": {"bytes": level.nbytes},
    }


def write(path: str | os.PathLike[str], contents: Mapping[str, object]) -> Path:
    """Write the file, compressed if its name ends in `.gz`."""
    file = Path(path)
    text = json.dumps(contents, default=str, allow_nan=False)  # details of spans may be any objects
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text.encode()))
    else:
        file.write_text(text)
    return file
