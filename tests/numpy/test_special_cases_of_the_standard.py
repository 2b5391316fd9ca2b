"""NaN, infinities and zeros follow the array API standard's tables: eager, compiled and in place.

The tables are data (special_cases.py), and each row is tried on every number that it covers, in
both widths. Compiled, all functions of a table are one program. For a complex function the mirror
images of a row are tried, too: the standard lists which functions are conjugate, odd or even, and
which are another function rotated by a right angle or divided by a real number.

Source: https://data-apis.org/array-api/2025.12, "Elementwise functions".
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.numpy.special_cases import ONE, PARTS, SETS, TWO
from tests.support.arrays import array
from tests.support.sampling import one_in

WAYS: dict[str, Callable[[Any], Any]] = {"eagerly": lambda f: f, "compiled": rune.jit}
DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("cpu", "null")]
TABLES = {"one": ONE, "two": TWO, "parts": PARTS}
WIDTHS = [32, 64]
ODD, EVEN = {"asinh", "atanh", "sinh", "tanh"}, {"cosh"}
CONJUGATE = {*ODD, *EVEN, "acos", "acosh", "exp", "expm1", "log", "log1p", "sqrt"}
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}
DIVIDED = {"log2": math.log(2), "log10": math.log(10)}


# NumPy's complex functions that differ from the standard in some case.
LEFT = {"eagerly": set[str](), "compiled": set[str](), "NumPy": {"expm1", "sign"}}


@dataclass(frozen=True)
class Case:
    """Operands of a function, and the words for its result times `factors`."""

    name: str
    operands: tuple[float, ...]
    words: tuple[str, ...]
    factors: tuple[float, ...] = (1.0, 1.0)


def rows(table: str) -> Iterator[Case]:
    """A case for every number that a row covers."""
    for line in TABLES[table].strip().splitlines():
        names, _, row_texts = line.partition(" | ")
        for name, row in itertools.product(names.split(), row_texts.split("; ")):
            inputs, words = (part.split(", ") for part in row.split(": "))
            numbers = (SETS.get(i) or [float(i)] for i in inputs)
            for operands in itertools.product(*numbers):
                yield from directed(Case(name, operands, tuple(words)))


def directed(case: Case) -> Iterator[Case]:
    """A case with numbers for `cis`, left out for angles whose signs are lost in f32."""
    word, angle = case.words[0], case.operands[-1]
    if not word.startswith("cis"):
        yield case
    elif abs(angle) < 100:
        length = math.inf if word == "cis inf" else 0.0
        across = "-1" if word == "cis -1" else str(length * math.cos(angle))
        yield replace(case, words=(across, str(length * math.sin(angle))))


def images(case: Case) -> Iterator[Case]:
    """A case of a complex function, and those that follow from it."""
    if case.name not in CONJUGATE:
        yield case
        return
    a, b = case.operands
    mirror_images = [case, replace(case, operands=(a, -b), factors=(1, -1))]
    if case.name in ODD | EVEN:
        mirror_images += [negated(image) for image in mirror_images]
    yield from mirror_images
    if case.name == "log":
        for name, by in DIVIDED.items():
            yield from (replace(i, name=name, factors=(by, i.factors[1] * by)) for i in mirror_images)
    for name in (n for n, source in TURNED.items() if source == case.name):
        yield from (turned(name, image) for image in mirror_images)


def negated(case: Case) -> Case:
    """f(-x) = -f(x), or f(x)."""
    (a, b), (s, t), sign = case.operands, case.factors, 1 if case.name in EVEN else -1
    return replace(case, operands=(-a, -b), factors=(sign * s, sign * t))


def turned(name: str, case: Case) -> Case:
    """f(x) = -1j g(1j x), or cos(x) = cosh(1j x), of a case of g."""
    (a, b), (s, t) = case.operands, case.factors
    if name == "cos":
        return replace(case, name=name, operands=(b, -a))
    return replace(case, name=name, operands=(b, -a), words=case.words[::-1], factors=(t, -s))


@functools.cache
def cases(table: str) -> dict[str, list[Case]]:
    """All cases of a table by function."""
    by_name: dict[str, dict[Any, Case]] = {}
    for row in rows(table):
        for case in images(row) if table == "parts" else [row]:
            key = repr(case.operands) if table == "parts" else (repr(case.operands), case.words)
            by_name.setdefault(case.name, {}).setdefault(key, case)
    return {name: list(column.values()) for name, column in by_name.items()}


def numbers(table: str, name: str, width: int) -> np.ndarray:
    """The operands of a function, one row per case."""
    return np.array([c.operands for c in cases(table)[name]], f"f{width // 8}")


def operands(table: str, name: str, width: int) -> list[np.ndarray]:
    rows = numbers(table, name, width)
    return [rows.view(f"c{width // 4}")[:, 0]] if table == "parts" else list(rows.T)


@functools.cache
def results(table: str, width: int, way: str) -> dict[str, np.ndarray]:
    """The results of every function of a table."""
    arguments = {n: list(map(array, operands(table, n, width))) for n in cases(table)}
    run = WAYS.get(way) or functools.partial(rune.jit, device=way)
    results_by_name = run(lambda xs: {n: getattr(rnp, n)(*x) for n, x in xs.items()})(arguments)
    return {n: np.asarray(y) for n, y in results_by_name.items()}


# --- what the words mean ----------------------------------------------------------------------


def number(word: str) -> float:
    """pi/2, -3pi/4, inf, +0, …"""
    if "pi" not in word:
        return float(word)
    times, _, over = word.partition("pi")
    return float(f"{times}1" if times in ("", "-") else times) * math.pi / float(over[1:] or 1)


def sign(x: float) -> float:
    return math.copysign(1.0, x)


def is_same(reference: float, value: float) -> bool:
    """Both NaN, or near and of one sign."""
    if math.isnan(reference) or math.isnan(value):
        return math.isnan(reference) and math.isnan(value)
    return math.isclose(reference, value, rel_tol=1e-6) and sign(reference) == sign(value)


def agrees(word: str, operands: list[float], value: float) -> bool:
    """Whether a number is what a word of the tables says."""
    if " or " in word:
        return any(agrees(choice, operands, value) for choice in word.split(" or "))
    if word in ("+", "-"):
        return math.isnan(value) or sign(value) == float(f"{word}1")
    if word[0] == "~":
        return is_same(number(word[1:]), abs(value))
    x, y = operands[0], operands[-1]
    operands_by_name = {"x": x, "y": y, "|x|": abs(x), "-|x|": -abs(x), "|y|": abs(y)}
    return is_same(operands_by_name[word] if word in operands_by_name else number(word), value)


def fits(case: Case, values: list[float], y: Any) -> bool:
    """Whether a result is what a case says."""
    parts = (y.real, y.imag) if len(case.words) == 2 else (y,)
    parts_of_image = (factor * float(v) for factor, v in zip(case.factors, parts))
    return all(agrees(word, values, v) for word, v in zip(case.words, parts_of_image, strict=True))


def required_results(table: str, way: str, results_by_name: dict[str, Any]) -> dict[str, Any]:
    """The results of all functions but those that are exempt."""
    exceptions = LEFT.get(way, LEFT["compiled"])
    return {n: y for n, y in results_by_name.items() if table != "parts" or n not in exceptions}


def wrong(table: str, width: int, results_by_name: dict[str, np.ndarray]) -> list[str]:
    """The cases of a table that results do not agree with."""
    return [
        f"{name}{case.operands} = {y}, not {case.words} over {case.factors}"
        for name, column in results_by_name.items()
        for case, values, y in zip(cases(table)[name], numbers(table, name, width), column)
        if not fits(case, values.tolist(), y)
    ]


# --- the claims -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_every_special_case_of_the_standard_holds(table: str, width: int, way: str):
    results_by_name = required_results(table, way, results(table, width, way))

    assert wrong(table, width, results_by_name) == []


ON_DEVICES = [
    f"{table} of {width} bits on {device}"
    for table, width, device in itertools.product(TABLES, WIDTHS, DEVICES)
    if width == 32 or not device.startswith("wgpu")
]


@pytest.mark.parametrize("place", one_in(16, ON_DEVICES))
def test_every_special_case_of_the_standard_holds_on_an_executor(place: str):
    table, _, width, _, _, device = place.split()
    results_by_name = required_results(table, device, results(table, int(width), device))

    assert wrong(table, int(width), results_by_name) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("table", TABLES)
def test_compiled_special_cases_are_those_of_eager_code(table: str, width: int):
    of_calls, of_programs = (results(table, width, way) for way in WAYS)

    for name, column in required_results(table, "compiled", of_calls).items():
        np.testing.assert_allclose(of_programs[name], column, rtol=2e-6, err_msg=name)


OPERATORS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "pow": "pow",
    "floor_divide": "floordiv",
    "remainder": "mod",
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("place", ["", "i"])
def test_operators_have_the_special_cases_of_their_functions(place: str, width: int):
    results_by_name = {}
    for name, of in OPERATORS.items():
        x, y = (rnp.mutable(array(v)) for v in operands("two", name, width))
        results_by_name[name] = np.asarray(getattr(operator, f"{place}{of}")(x, y))

    assert wrong("two", width, results_by_name) == []


def test_the_tables_are_those_that_numpy_follows():
    with np.errstate(all="ignore"):
        for table in TABLES:
            names = required_results(table, "NumPy", cases(table))
            results_by_name = {n: getattr(np, n)(*operands(table, n, 64)) for n in names}

            assert wrong(table, 64, results_by_name) == []


# --- statistics -------------------------------------------------------------------------------

HARD = [1.5, -0.0, math.inf, -math.inf, math.nan]
PLANE = np.array([complex(a, b) for a in HARD for b in HARD])
EMPTY = {"mean": math.nan, "prod": 1.0, "std": math.nan, "sum": 0.0, "var": math.nan}


@pytest.mark.parametrize("way", WAYS)
def test_statistics_have_nan_for_nan_and_their_unit_for_nothing(way: str):
    for name in ("max", "min", *EMPTY):
        for row in ([math.nan], [1.0, math.nan, math.inf], [-math.inf, 2.0, math.nan]):
            assert math.isnan(float(WAYS[way](getattr(rnp, name))(array(row))))
    for name, unit in EMPTY.items():
        np.testing.assert_equal(float(WAYS[way](getattr(rnp, name))(rnp.zeros(0))), unit)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [rnp.mean, functools.partial(rnp.mean, where=True)])
def test_parts_of_a_complex_mean_are_the_means_of_the_parts(function: Any, way: str):
    for pair in itertools.product(PLANE, PLANE[::4]):
        z = np.array([*pair, 2 - 1j], np.complex128)
        with np.errstate(invalid="ignore"):
            mean = complex(z.real.mean(), z.imag.mean())

        np.testing.assert_equal(complex(WAYS[way](function)(array(z))), mean)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_product_of_complex_numbers_begins_with_the_first_one(count: int, way: str):
    z = np.stack([PLANE, *np.full((count - 1, PLANE.size), 2 - 1j)])

    products = np.asarray(WAYS[way](functools.partial(rnp.cumprod, axis=0))(array(z)))

    np.testing.assert_equal(products[0], PLANE)
