"""No test's outcome depends on how busy the machine is (decision 0155).

A test that reads the wall's clock, or gives an event less than a minute to come, fails where others
use the processors.
"""

from __future__ import annotations

import re

from tests.architecture.sources import ROOT

TESTS = {str(f.relative_to(ROOT)): f.read_text() for f in sorted((ROOT / "tests").rglob("test_*.py"))}
CLOCK = re.compile(r"\b(?:time\.)?(?:monotonic|perf_counter)(?:_ns)?\(\)")
TIMEOUT = re.compile(r"\btimeout=(\d+(?:\.\d+)?)\b(?! \*)")  # not 2 * HANG_S
LEAST_S = 60.0


def clocks(text: str) -> list[str]:
    """Where a text reads the clock on the wall."""
    return CLOCK.findall(text)


def short_timeouts(text: str) -> list[float]:
    """The limits in seconds that a busy machine may miss."""
    return [seconds for seconds in map(float, TIMEOUT.findall(text)) if seconds < LEAST_S]


def test_no_test_reads_the_clock_on_the_wall():
    assert {name: clocks(text) for name, text in TESTS.items() if clocks(text)} == {}


def test_events_have_a_minute_at_least():
    assert {name: short_timeouts(text) for name, text in TESTS.items() if short_timeouts(text)} == {}


def test_both_would_be_noticed():
    assert clocks("assert time.perf_counter" + "() - start < 1.0") == ["time.perf_counter" + "()"]
    assert short_timeouts("threading.Barrier(2, timeout" + "=10)") == [10.0]
