"""A profile shows how long a loop waits for its data, and how long it computes."""

from __future__ import annotations

import time

import numpy as np

import rune
import rune.numpy as rnp
from rune import data
from rune.profiling import Event, Kind

NAP = 0.004  # seconds that the source takes for an element


def slow(number: int) -> np.ndarray:
    time.sleep(NAP)
    return np.full(3, number, np.float32)


def waits() -> list[Event]:
    f = rune.jit(lambda x: rnp.sum(x * x))
    with rune.debug.profile() as p:
        for batch in data.sequence(range(6)).map(slow):
            f(batch)
    return [e for e in p.events if e.kind is Kind.DATA]


def test_each_element_that_was_waited_for_is_an_event():
    assert len([e for e in waits() if e.name == "data.next"]) >= 6


def test_a_slow_source_takes_the_time_of_the_waits():
    assert sum(e.seconds for e in waits()) >= 6 * NAP
