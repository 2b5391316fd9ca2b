"""Floating-point errors: NumPy is silent between `ignore` and `restore`, and reports them after.

The oracle is NumPy's own `errstate`.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rune.numpy as rnp
from rune import float_errors

ONE, ZERO, LARGE = np.float32(1), np.float32(0), np.full(3, 1e38, np.float32)


def test_nothing_is_reported_until_the_settings_are_restored():
    with np.errstate(all="raise"):
        settings = float_errors.ignore()
        infinite = ONE / ZERO, LARGE * LARGE
        float_errors.restore(settings)

        assert np.all(np.isinf(infinite[0]))
        assert np.all(np.isinf(infinite[1]))
        with pytest.raises(FloatingPointError, match="divide by zero"):
            np.divide(ONE, ZERO)


def test_the_settings_are_those_of_errstate():
    settings = float_errors.ignore()
    rune_settings = np.geterr()
    float_errors.restore(settings)

    with np.errstate(all="ignore"):
        assert rune_settings == np.geterr()


def test_blocks_lie_within_each_other():
    before = np.geterr()

    outer = float_errors.ignore()
    inner = float_errors.ignore()
    float_errors.restore(inner)
    between = np.geterr()
    float_errors.restore(outer)

    assert set(between.values()) == {"ignore"}
    assert np.geterr() == before


def test_another_thread_keeps_its_settings():
    reactions: list[str] = []
    settings = float_errors.ignore()
    thread = threading.Thread(target=lambda: reactions.extend(map(str, np.geterr().values())))
    thread.start()
    thread.join()
    float_errors.restore(settings)

    assert "warn" in reactions


def test_an_eager_operation_reports_nothing_and_leaves_the_settings_as_they_are():
    with np.errstate(all="raise"):
        assert np.isinf(float(rnp.divide(ONE, ZERO)))
        assert set(np.geterr().values()) == {"raise"}


def test_an_operation_that_fails_leaves_the_settings_as_they_are():
    before = np.geterr()

    with pytest.raises(ValueError, match="cannot"):
        rnp.add(rnp.ones(2), rnp.ones(3))

    assert np.geterr() == before
