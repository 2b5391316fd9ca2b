"""x.at[i].set(f(x)): a value written into an array may depend on any element of the array.

Large arrays are changed in place, and small ones are not: sizes are on both sides of that limit,
and the limits are lowered, so that the smallest array is changed in place too. NumPy is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.lowering.kernelize import cost
from tests.support.close import same
from tests.support.sampling import in_turn

DEVICES = [d.name for d in rune.devices() if not d.name.startswith("null")]
SIDES = [(7, 5), (128, 128), (131, 127)]  # IN_PLACE is 16,384 elements
COMBINES: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


@contextmanager
def everything_in_place() -> Iterator[None]:
    """Arrays of any size are changed in place."""
    with ExitStack() as stack:
        for name in ("IN_PLACE", "SMALLEST_IN_PLACE", "SMALLEST_ARGUMENT", "TINY_SHARE", "WINDOW_SHARE"):
            stack.enter_context(patch.object(cost, name, 1))
        yield


def numbers(side: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(side[0]).integers(-3, 4, side).astype(np.float32)


def order(n: int) -> np.ndarray:
    return np.random.default_rng(n).permutation(n)


def changed(x: np.ndarray, place: Any, value: Any) -> np.ndarray:
    y = x.copy()
    y[place] = value
    return y


def combined(name: str, x: np.ndarray, place: Any, value: Any) -> np.ndarray:
    y = x.copy()
    COMBINES[name].at(y, place, value)
    return y


Case = tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]
CASES: dict[str, Case] = {
    "rows in another order": (lambda x: x.at[order(x.shape[0])].set(x), lambda x: changed(x, order(len(x)), x)),
    "itself upside down": (lambda x: x.at[:].set(x[::-1]), lambda x: x[::-1].copy()),
    "a row down": (lambda x: x.at[1:].set(x[:-1]), lambda x: changed(x, np.s_[1:], x[:-1])),
    "a row up": (lambda x: x.at[:-1].set(x[1:]), lambda x: changed(x, np.s_[:-1], x[1:])),
    "a few rows down": (lambda x: x.at[1:3].set(x[0:2]), lambda x: changed(x, np.s_[1:3], x[0:2])),
    "a few columns to the right": (
        lambda x: x.at[:, 1:3].set(x[:, 0:2]),
        lambda x: changed(x, np.s_[:, 1:3], x[:, 0:2]),
    ),
    "a row reversed": (lambda x: x.at[3].set(x[3, ::-1]), lambda x: changed(x, 3, x[3, ::-1])),
    "a row from a column": (lambda x: x.at[2, :5].set(x[:5, 1]), lambda x: changed(x, np.s_[2, :5], x[:5, 1])),
    "a row less its mean": (lambda x: x.at[2].add(-x[2].sum()), lambda x: changed(x, 2, x[2] - x[2].sum())),
    "a row that is running": (lambda x: x.at[2].set(rnp.cumsum(x[2])), lambda x: changed(x, 2, np.cumsum(x[2]))),
    "a window at a place that is read": (
        lambda x: rune.lax.dynamic_update_slice(x, x[:3, :4], (x[0, 0].astype(int) % 3, 1)),
        lambda x: changed(x, np.s_[int(x[0, 0]) % 3 : int(x[0, 0]) % 3 + 3, 1:5], x[:3, :4]),
    ),
    "two windows of one array": (
        lambda x: rnp.stack([x.at[1:3].set(x[0:2]), x.at[0:2].set(x[1:3])]),
        lambda x: np.stack([changed(x, np.s_[1:3], x[0:2]), changed(x, np.s_[0:2], x[1:3])]),
    ),
    "a window, and itself": (lambda x: x.at[1:3].set(x[0:2]) + x, lambda x: changed(x, np.s_[1:3], x[0:2]) + x),
    "two rows for each other": (
        lambda x: x.at[rnp.array([1, 3])].set(x[rnp.array([3, 1])]),
        lambda x: changed(x, [1, 3], x[[3, 1]]),
    ),
    "elements at places that it says": (
        lambda x: x.ravel().at[rnp.abs(x.ravel()).astype(int)].set(7).reshape(x.shape),
        lambda x: changed(x.ravel(), np.abs(x.ravel()).astype(int), 7).reshape(x.shape),
    ),
} | {
    f"{name} of itself in another order": (
        lambda x, name=name: getattr(x.at[order(x.shape[0])], name)(x),
        lambda x, name=name: combined(name, x, order(len(x)), x),
    )
    for name in COMBINES
}

LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "once": lambda f, x: f(x),
    "twice in a loop": lambda f, x: rune.fori_loop(0, 2, lambda _, c: f(c).reshape(-1, *x.shape)[0], x),
    "for each of a batch": lambda f, x: rune.vmap(f)(rnp.stack([x, x[::-1]])),
}


def expected(name: str, loop: str, x: np.ndarray) -> np.ndarray:
    meaning = CASES[name][1]
    if loop == "once":
        return meaning(x)
    if loop == "for each of a batch":
        return np.stack([meaning(x), meaning(x[::-1])])
    once = meaning(x).reshape(-1, *x.shape)[0]
    return meaning(once).reshape(-1, *x.shape)[0]


def result(name: str, loop: str, x: np.ndarray, device: str, **options: Any) -> Any:
    return rune.jit(lambda x: LOOPS[loop](CASES[name][0], x), device=device, **options)(rnp.asarray(x))


@pytest.mark.parametrize("side", SIDES, ids=str)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", CASES)
def test_an_array_is_read_before_it_is_written(name: str, loop: str, side: tuple[int, int]):
    x = numbers(side)
    same(expected(name, loop, x), result(name, loop, x, "cpu:0"))


@pytest.mark.parametrize("name", CASES)
def test_operations_one_by_one_mean_the_same(name: str):
    x = numbers(SIDES[2])
    same(expected(name, "once", x), CASES[name][0](rnp.asarray(x)))


@pytest.mark.parametrize("name", CASES)
def test_values_before_and_after_are_results_as_well(name: str):
    x, (f, meaning) = numbers(SIDES[2]), CASES[name]

    def stages(x: Any) -> Any:
        double = x * 2
        changed_once = f(double)
        return double, changed_once, changed_once + 1

    y = meaning(x * 2)
    same((x * 2, y, y + 1), rune.jit(stages)(x))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", CASES)
def test_the_smallest_array_can_be_changed_in_place(name: str, loop: str):
    x = numbers(SIDES[0])
    with everything_in_place():
        same(expected(name, loop, x), result(name, loop, x, "reference:0"))  # which detects races


@pytest.mark.parametrize("name", CASES)
def test_donated_memory_is_read_before_it_is_written(name: str):
    if "two windows" in name:
        pytest.skip("two arrays do not fit into the memory of one")
    x = numbers(SIDES[2])
    same(expected(name, "once", x), result(name, "once", x, "cpu:0", donate_argnums=0))


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", [3, 20_000])
def test_nothing_is_written_at_no_places(rows: int, device: str):
    x, places = np.arange(2.0 * rows, dtype=np.float32).reshape(rows, 2), np.zeros((0, 3), np.int32)
    same(x, rune.jit(lambda x, i: x.at[i].set(x[i] * 2), device=device)(x, places))


@in_turn()
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["rows in another order", "a row down", "add of itself in another order"])
def test_every_executor_reads_before_it_writes(name: str, device: str):
    x = numbers(SIDES[2])
    same(expected(name, "once", x), result(name, "once", x, device))
