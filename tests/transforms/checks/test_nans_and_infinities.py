"""The checks for NaN and infinity as settings: they name operation, line and result, or are silent.

They are those of rune.debug.checks (tests/test_watching.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import NaNError
from tests.support.arrays import array
from tests.support.close import same

X = array([1.0, 2.0])
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "jit": rune.jit,
    "jit in jit": lambda f: rune.jit(lambda x: rune.jit(f)(x)),
    "grad of jit": lambda f: lambda x: rune.value_and_grad(rune.jit(lambda v: f(v).sum()))(x),
    "jit of vmap": lambda f: rune.jit(rune.vmap(f)),
    "checkpoint": lambda f: rune.jit(rune.checkpoint(f)),
}


@pytest.fixture(autouse=True)
def _checked() -> Iterator[None]:
    with rune.configure(check_nans=True, check_infs=True):
        yield


@pytest.mark.parametrize("name", WAYS)
def test_the_operation_and_the_line_are_named(name: str):
    def function(x: Any) -> Any:
        y = x - 5.0
        return rnp.log(y) * 2.0  # here

    with pytest.raises(NaNError, match=r"(?s)log: found NaN in its result .*# here"):
        WAYS[name](function)(X)


@pytest.mark.parametrize("name", WAYS)
def test_infinities_are_found_too(name: str):
    with pytest.raises(NaNError, match="div: found infinity in its result"):
        WAYS[name](lambda x: 1.0 / (x - x))(X)


def test_the_result_is_named_by_its_path():
    f = rune.jit(lambda x: {"loss": x.sum(), "extra": (x, rnp.sqrt(-x))})

    message = r"sqrt: found NaN .*first at \[0\]; seen in result\['extra'\]\[1\]"
    with pytest.raises(NaNError, match=message):
        f(X)


def test_a_number_that_is_masked_out_is_named_with_how_to_make_none():
    function = rune.jit(lambda x: rnp.where(x > 0, rnp.log(x), 0.0))
    with pytest.raises(NaNError, match=r"log: found NaN in its result f32\[2\] \(first at \[1\]\)\n") as error:
        function(array([1.0, -2.0]))
    assert error.value.hint is not None
    assert error.value.hint.startswith("no result has one; ")


def test_the_masked_form_in_the_hint_and_its_derivative_have_no_nan():
    def f(x: Any) -> Any:
        return rnp.sum(rnp.where(x > 0, rnp.sqrt(rnp.where(x > 0, x, 1)), 0))

    assert rune.jit(rune.grad(f))(array([4.0, 0.0])).tolist() == [0.25, 0.0]


def test_the_error_for_a_nan_in_a_result_has_no_hint_without_a_mask():
    with pytest.raises(NaNError) as error:
        rune.jit(rnp.log)(array([1.0, -2.0]))
    assert error.value.hint is None


LOOPS: dict[str, Callable[[Any], Any]] = {
    "scan": lambda x: rune.scan(lambda c, y: (c + rnp.log(y), c), x, array([3.0, 2.0, -1.0, 4.0])),
    "fori": lambda x: rune.fori_loop(0, 4, lambda i, c: c + rnp.log(2.0 - i), x),
    "while": lambda x: rune.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + rnp.log(2.0 - s[0])), (0, x)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_nan_or_infinity_made_in_a_step_of_a_loop_is_found(name: str):
    kind = "NaN" if name == "scan" else "infinity"

    with pytest.raises(NaNError, match=f"log: found {kind} in its result"):
        rune.jit(LOOPS[name])(1.0)


def test_the_branch_that_was_taken_is_searched():
    f = rune.jit(lambda x: rune.cond(x.sum() > 0, lambda v: rnp.log(-v), lambda v: v, x))

    with pytest.raises(NaNError, match="log: found NaN"):
        f(X)
    same(-np.asarray(X), f(-X))


@pytest.mark.parametrize("name", WAYS)
def test_a_nan_among_the_inputs_is_not_blamed_on_the_operation(name: str):
    WAYS[name](lambda x: x * 2.0)(array([1.0, np.nan]))


@pytest.mark.parametrize("name", WAYS)
def test_a_masked_nan_is_found_as_well(name: str):
    with pytest.raises(NaNError, match=r"log: found NaN in its result f32\[.*\] \(first at"):
        WAYS[name](lambda x: rnp.where(x > 5, rnp.log(-x), 0.0))(X)


@pytest.mark.parametrize("name", WAYS)
def test_both_checks_are_silent_where_there_is_nothing(name: str):
    WAYS[name](lambda x: rnp.sin(x) * 2.0)(X)


def test_each_check_looks_for_its_own():
    with rune.configure(check_nans=False, check_infs=True):
        rune.jit(lambda x: rnp.log(-x))(X)
    with rune.configure(check_nans=True, check_infs=False):
        rune.jit(lambda x: 1.0 / (x - x))(X)
