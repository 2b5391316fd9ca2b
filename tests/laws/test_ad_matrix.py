"""The AD matrix is generated from the primitive table, so every rule of every primitive is tested.

First, every primitive is in the table, and each of its rules runs and is right. Then, the matrix
detects gaps: a primitive without a rule, without a call or with a wrong rule fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import ops
from rune.core.primitive import Primitive
from rune.errors import MissingRule
from tests.ops.samples import SAMPLES, samples
from tests.support.ad_matrix import OF_ALL_LANES, OF_PASSES, TABLE, all_primitives, required, tried, untried


@pytest.mark.parametrize("name", [n for n in TABLE if n not in OF_PASSES | OF_ALL_LANES])
def test_every_rule_of_a_primitive_is_tried_and_is_right(name: str):
    assert tried(TABLE[name]) >= required(TABLE[name])


def test_every_primitive_of_rune_is_in_the_table():
    known = set(TABLE.values())

    assert [where for where, p in all_primitives().items() if p not in known] == []


# --- planted ------------------------------------------------------------------------------------


def planted(**rules: Any) -> Primitive:
    """The sine under another name, its record changed."""
    return replace(ops.sin, name="planted", **rules)


def test_a_primitive_that_is_complete_passes():
    assert untried({"planted": planted()}) == []


def wrong_slope(dx: Any, x: Any, y: Any) -> Any:
    return ops.mul(dx, ops.sin(x))


def wrong_batch(axes: Any, size: Any, x: Any) -> Any:
    return ops.cos(x), True


PLANTED: dict[str, tuple[Callable[[], Primitive], type[BaseException], str]] = {
    "no jvp": (lambda: planted(jvp=None), AssertionError, "jvp"),
    "no batch": (lambda: planted(batch=None), AssertionError, "no batch rule"),
    "no sample": (lambda: planted(family="new"), AssertionError, "add a line to SAMPLES"),
    "wrong jvp": (lambda: planted(jvp=(wrong_slope,)), AssertionError, "relative"),
    "wrong batch": (lambda: planted(batch=wrong_batch), AssertionError, "relative"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_primitive_that_lacks_something_fails(name: str):
    make, error, message = PLANTED[name]

    with pytest.raises(error, match=message):
        untried({"planted": make()})


LINEAR = (lambda dx, x, y, **params: planted_linear(dx, **params),)
planted_linear = replace(ops.reverse, name="planted_linear", jvp=LINEAR)


@pytest.fixture
def _sampled():
    """A line in SAMPLES for the planted linear primitive."""
    SAMPLES["planted_linear"] = [replace(s, primitive=planted_linear) for s in SAMPLES["reverse"]]
    samples.cache_clear()
    yield
    del SAMPLES["planted_linear"]
    samples.cache_clear()


@pytest.mark.usefixtures("_sampled")
def test_a_linear_primitive_without_a_transpose_fails():
    object.__setattr__(planted_linear, "transpose", None)

    with pytest.raises(MissingRule, match="transpose"):
        untried({"planted_linear": planted_linear})


@pytest.mark.usefixtures("_sampled")
def test_a_linear_primitive_with_a_wrong_transpose_fails():
    object.__setattr__(planted_linear, "transpose", lambda ct, linear, x, **params: [ct])

    with pytest.raises(AssertionError):
        untried({"planted_linear": planted_linear})


def test_a_rule_that_no_call_reaches_is_named():
    primitive = planted(transpose=lambda ct, linear, x: [np.float64(0)])

    assert untried({"planted": primitive}) == ["planted: no call tries its transpose rule"]
