"""No test's outcome depends on how busy the machine is (decision 0155).

A test that reads a clock, or gives an event less than a minute to come, fails where others use the
processors: what a process takes of them grows, too, where the machine is shared.
"""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT

TESTS = {str(f.relative_to(ROOT)): f.read_text() for f in sorted((ROOT / "tests").rglob("test_*.py"))}
CLOCK = re.compile(r"\btime\.(?:time|monotonic|perf_counter|process_time|thread_time)(?:_ns)?\b")
# Not 2 * HANG_S.
TIMEOUT = re.compile(r"(?:\btimeout=|\b[A-Z_]*(?:PATIENCE|SECONDS|HANG|_S) = |\.join\()(\d+(?:\.\d+)?)\b(?! \*)")
LEAST_S = 60.0
# Clocks that are no limits.
READS = {
    "tests/backends/shared/test_disk_cache.py": "sets the age of files",
    "tests/profiling/test_threads.py": "keeps a processor busy, and compares what two clocks of one process say",
}


def clocks(text: str) -> list[str]:
    """Where a text reads a clock, of the wall or of a processor."""
    return CLOCK.findall(text)


def short_timeouts(text: str) -> list[float]:
    """The limits in seconds that a busy machine may miss."""
    return [seconds for seconds in map(float, TIMEOUT.findall(text)) if seconds < LEAST_S]


def test_no_test_reads_a_clock_to_hold_a_limit():
    assert {name for name, text in TESTS.items() if clocks(text)} == set(READS)


def test_events_have_a_minute_at_least():
    assert {name: short_timeouts(text) for name, text in TESTS.items() if short_timeouts(text)} == {}


def test_both_would_be_noticed():
    for clock in ("perf_counter", "process_time"):
        assert clocks(f"assert time.{clock}() - start < 1.0") == [f"time.{clock}"]
    assert short_timeouts("threading.Barrier(2, timeout" + "=10)") == [10.0]
    assert short_timeouts("PATIENCE_S" + " = 20.0") == [20.0]
