"""Differences from the array API standard: every line of the guide's list is tested.

docs/guide/interchange.md lists the differences and their reasons. Each line there begins with some
code, and the claim of that name is tested here; a claim without a line, or a line without a claim,
is an error.

Source: https://data-apis.org/array-api/2025.12
"""

from __future__ import annotations

import cmath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, TracerError

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "interchange.md"


def standard() -> Any:
    return rnp.ones(1).__array_namespace__()


def division_by_infinities() -> None:
    xp = standard()
    x = xp.asarray([xp.inf, 1.0])

    np.testing.assert_array_equal(np.asarray(x // xp.asarray([2.0, -xp.inf])), [np.nan, -1])


def versions() -> None:
    for version in ("2021.12", "2024.12", "2025.12"):
        assert rnp.ones(1).__array_namespace__(api_version=version) is standard()
    assert standard().__array_api_version__ == "2025.12"


def transposes() -> None:
    assert standard().ones((2, 3, 4)).T.shape == (4, 3, 2)


def rows() -> None:
    assert standard().ones((2, 3))[0].shape == (3,)


def default_dtypes() -> None:
    info = standard().__array_namespace_info__()
    for is_wide in (False, True):
        with rune.enable_x64(is_wide):
            defaults = info.default_dtypes()
            assert defaults["indexing"].itemsize == (8 if is_wide else 4)
            assert all(info.default_dtypes(device=d) == defaults for d in info.devices())


def complex_of_nan() -> None:
    nan = complex(standard().asarray(standard().nan))

    assert cmath.isnan(nan)
    assert nan.imag == 0


def shapes_that_depend_on_values() -> None:
    xp, x = standard(), rnp.arange(3.0)
    for function in (xp.nonzero, xp.unique_values, lambda x: xp.asarray(x)[xp.asarray(x) > 1]):
        with pytest.raises(TracerError):
            rune.jit(function)(x)

    def assigned(x: Any) -> Any:
        y = xp.asarray(x)
        y[y > 1] = 7
        return y

    assert rune.jit(assigned)(x).tolist() == [0, 1, 7]


def assignment() -> None:
    x = rnp.zeros(2)
    with pytest.raises(ArgumentError, match="immutable"):
        x[0] = 1


def lists() -> None:
    assert type(rnp.meshgrid(rnp.ones(1))) is type(rnp.broadcast_arrays(rnp.ones(1))) is list


def limits() -> None:
    assert rnp.finfo(rnp.float32).eps.dtype == np.float32


def narrowing() -> None:
    x = np.arange(2)

    assert rnp.asarray(x).dtype == np.int32
    assert rnp.asarray(x, np.int64).dtype == standard().asarray(x).dtype == np.int64


CLAIMS: dict[str, Callable[[], None]] = {
    "inf // 2": division_by_infinities,
    "api_version": versions,
    "x.T": transposes,
    "x[0]": rows,
    "default_dtypes(device=...)": default_dtypes,
    "complex(x)": complex_of_nan,
    "x[mask]": shapes_that_depend_on_values,
    "x[0] = 1": assignment,
    "meshgrid": lists,
    "finfo": limits,
    "asarray": narrowing,
}


def test_the_page_lists_these_differences_and_no_others():
    text = PAGE.read_text().split("## What differs from the standard\n")[1].split("\n## ")[0]

    assert re.findall(r"^- `([^`]+)`", text, re.MULTILINE) == list(CLAIMS)
    assert len(re.findall(r"^- ", text, re.MULTILINE)) == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_difference_that_the_page_lists_exists(claim: str):
    CLAIMS[claim]()
