"""Waits for OpenCL events, on stand-ins that record the queries."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import pytest

from rune.backends.opencl import waiting


class Failed(Exception):
    """The error of a driver."""


@dataclass
class CountdownEvent:
    """An event that ends after this many queries."""

    questions: int
    error: Exception | None = None
    waits: list[int] = field(default_factory=list)  # what was left of the questions

    @property
    def command_execution_status(self) -> int:
        self.questions -= 1
        return 1 if self.questions >= 0 else (0 if self.error is None else -5)

    def wait(self) -> None:
        self.waits.append(self.questions)
        if self.error is not None:
            raise self.error


def test_the_driver_is_waited_for_once_the_event_is_done():
    event = CountdownEvent(50)

    waiting.wait_for(event)

    assert event.waits == [-1]


def test_an_event_that_has_failed_raises_the_drivers_error():
    with pytest.raises(Failed):
        waiting.wait_for(CountdownEvent(3, Failed()))


def test_another_thread_waits_as_the_driver_does():
    event = CountdownEvent(50)

    thread = threading.Thread(target=waiting.wait_for, args=(event,))
    thread.start()
    thread.join()

    assert event.waits == [50]


def test_pauses_grow_with_what_was_waited_and_are_short_enough_for_a_signal(monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)

    for wait_s in (0.0, 1e-3, 0.04, 3600.0):
        waiting._pause(wait_s)

    assert pauses == [1e-3 / 8, 0.04 / 8, waiting.PAUSE_S]


def test_an_event_whose_wait_was_interrupted_stays_until_it_is_done(monkeypatch: pytest.MonkeyPatch):
    leftovers, slow, quick = waiting.Abandoned(), CountdownEvent(2), CountdownEvent(0)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "_pause", interrupt)
    with pytest.raises(KeyboardInterrupt):
        leftovers.wait_for(slow)
    monkeypatch.undo()
    assert [*leftovers._events] == [slow]

    leftovers.wait_for(quick)  # asks the slow one once more
    leftovers.wait_for(quick)
    assert [*leftovers._events] == []
