"""NaN, infinities and zeros as the array API standard's tables say, eager, compiled and in place.

The tables are data (special_cases.py), and each row is tried on every number it speaks of, in both
widths. Compiled, all functions of a table are one program.

Source: https://data-apis.org/array-api/2025.12, "Elementwise functions".
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.numpy.special_cases import ONE, SETS, TWO
from tests.support.arrays import array

WAYS: dict[str, Callable[[Any], Any]] = {"eagerly": lambda f: f, "compiled": rune.jit}
TABLES = {"one": ONE, "two": TWO}
WIDTHS = [32, 64]


@dataclass(frozen=True)
class Case:
    """Numbers that go into a function, and the word for what comes out."""

    name: str
    operands: tuple[float, ...]
    wanted: str


def rows(table: str) -> Iterator[Case]:
    """A case for every number that a row speaks of."""
    for line in TABLES[table].strip().splitlines():
        names, _, said = line.partition(" | ")
        for name, row in itertools.product(names.split(), said.split("; ")):
            inputs, wanted = row.split(": ")
            numbers = (SETS.get(i) or [float(i)] for i in inputs.split(", "))
            yield from (Case(name, operands, wanted) for operands in itertools.product(*numbers))


@functools.cache
def cases(table: str) -> dict[str, list[Case]]:
    """All cases of a table by function."""
    found: dict[str, list[Case]] = {}
    for case in rows(table):
        found.setdefault(case.name, []).append(case)
    return found


def operands(table: str, name: str, width: int) -> np.ndarray:
    """What goes into a function, one row per operand."""
    return np.array([c.operands for c in cases(table)[name]], f"f{width // 8}").T


@functools.cache
def results(table: str, width: int, way: str) -> dict[str, np.ndarray]:
    """What every function of a table gives."""
    given = {n: list(map(array, operands(table, n, width))) for n in cases(table)}
    found = WAYS[way](lambda xs: {n: getattr(rnp, n)(*x) for n, x in xs.items()})(given)
    return {n: np.asarray(y) for n, y in found.items()}


# --- what the words mean ----------------------------------------------------------------------


def number(word: str) -> float:
    """pi/2, -3pi/4, inf, +0, …"""
    if "pi" not in word:
        return float(word)
    times, _, over = word.partition("pi")
    return float(f"{times}1" if times in ("", "-") else times) * math.pi / float(over[1:] or 1)


def sign(x: float) -> float:
    return math.copysign(1.0, x)


def is_same(wanted: float, found: float) -> bool:
    """Both NaN, or near and of one sign."""
    if math.isnan(wanted) or math.isnan(found):
        return math.isnan(wanted) and math.isnan(found)
    return math.isclose(wanted, found, rel_tol=1e-6) and sign(wanted) == sign(found)


def agrees(word: str, operands: list[float], found: float) -> bool:
    """Whether a number is what a word of the tables says."""
    if " or " in word:
        return any(agrees(choice, operands, found) for choice in word.split(" or "))
    if word in ("+", "-"):
        return math.isnan(found) or sign(found) == float(f"{word}1")
    if word[0] == "~":
        return is_same(number(word[1:]), abs(found))
    x, y = operands[0], operands[-1]
    named = {"x": x, "y": y, "|x|": abs(x), "-|x|": -abs(x), "|y|": abs(y)}
    return is_same(named[word] if word in named else number(word), found)


def wrong(table: str, width: int, found: dict[str, np.ndarray]) -> list[str]:
    """The cases of a table that results do not agree with."""
    return [
        f"{name}{case.operands} = {y}, not {case.wanted}"
        for name, column in found.items()
        for case, given, y in zip(cases(table)[name], operands(table, name, width).T, column)
        if not agrees(case.wanted, given.tolist(), float(y))
    ]


# --- the claims -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_every_special_case_of_the_standard_holds(table: str, width: int, way: str):
    assert wrong(table, width, results(table, width, way)) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_compiled_special_cases_are_those_of_eager_code(table: str, width: int):
    eager, compiled = (results(table, width, way) for way in WAYS)

    for name, found in eager.items():
        np.testing.assert_allclose(compiled[name], found, rtol=2e-6, err_msg=name)


OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "pow": "pow",
    "floor_divide": "floordiv", "remainder": "mod",
}  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", ["", "i"])
def test_operators_have_the_special_cases_of_their_functions(place: str, width: int):
    found = {}
    for name, of in OPERATORS.items():
        x, y = (rnp.mutable(array(v)) for v in operands("two", name, width))
        found[name] = np.asarray(getattr(operator, f"{place}{of}")(x, y))

    assert wrong("two", width, found) == []


def test_the_tables_are_those_that_numpy_follows():
    with np.errstate(all="ignore"):
        for table in TABLES:
            found = {n: getattr(np, n)(*operands(table, n, 64)) for n in cases(table)}

            assert wrong(table, 64, found) == []
