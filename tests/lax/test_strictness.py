"""rune.lax promotes nothing: what it refuses, and with which errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ArgumentError, DtypeError, RuneError, ShapeError, TransformError

X, N = rnp.ones(3), rnp.arange(3)
ROW = rnp.ones((1, 3))
LIST: Any = [1.0]

REFUSED: dict[str, tuple[Callable[[], Any], type[RuneError], str]] = {
    "other dtypes": (lambda: lax.add(X, N), DtypeError, "add: cannot mix dtypes"),
    "an integer beside floats": (lambda: lax.add(X, 1), DtypeError, "add: cannot mix dtypes"),
    "other ranks": (lambda: lax.add(X, ROW), ShapeError, "add: cannot mix ranks"),
    "other sizes": (lambda: lax.mul(X, rnp.ones(4)), ShapeError, "axis 0: 3 against 4"),
    "an integer's exponential": (lambda: lax.exp(1), DtypeError, "exp"),
    "a list": (lambda: lax.neg(LIST), ArgumentError, "neg: cannot take list"),
    "a slice that leaves": (lambda: lax.slice(X, (0,), (4,)), ShapeError, "0 to 4 of 3"),
    "pieces that do not fill": (lambda: lax.split(X, (1, 1)), ShapeError, "into \\(1, 1\\)"),
    "the eigenvalues of a vector": (lambda: lax.linalg.eigh(X), ShapeError, r"eigh: cannot take f32\[3\] .*rank 1"),
    "no operands": (lambda: lax.lgamma(), ArgumentError, "lgamma: cannot take 0 operands \\(1"),
    "one operand of two": (lambda: lax.zeta(X), ArgumentError, "zeta: cannot take 1 operands"),
    "a gather by a number": (
        lambda: lax.gather(X, N[:, None], 3, (1,)),  # type: ignore[arg-type]
        ArgumentError,
        "gather: cannot use int as dimension_numbers",
    ),
    "a scatter by the numbers of a gather": (
        lambda: lax.scatter(X, N[:, None], X, lax.GatherDimensionNumbers((), (0,), (0,))),
        ArgumentError,
        "scatter: cannot use GatherDimensionNumbers",
    ),
    "a branch that is a number": (
        lambda: lax.switch(0, 3.0),  # type: ignore[arg-type]
        ArgumentError,
        "switch: cannot choose from float",
    ),
    "an index that is not there": (lambda: lax.index_in_dim(X, 3), ShapeError, "cannot take 3"),
    "too few starts": (lambda: lax.dynamic_slice(ROW, (0,), (1, 1)), ShapeError, "one per axis"),
    "an unknown mode": (lambda: lax.GatherScatterMode.from_any("wrap"), ArgumentError, "mode 'wrap'"),
    "dot of cubes": (lambda: lax.dot(ROW[None], X), ShapeError, "vectors or matrices"),
    "a bool of three cases": (lambda: lax.select_n(True, 1.0, 2.0, 3.0), ArgumentError, "3 cases by a bool"),
    "a float of two cases": (lambda: lax.select_n(X, X, X), DtypeError, "select_n: cannot choose by f32"),
    "a slice from a number": (
        lambda: lax.slice(X, 1, (2,)),  # type: ignore[arg-type]
        ArgumentError,
        "slice: cannot use start_indices=1",
    ),
    "a dynamic slice from a number": (
        lambda: lax.dynamic_slice(X, 1, (2,)),
        ArgumentError,
        "dynamic_slice: cannot use start",
    ),
    "padding by a number": (
        lambda: lax.pad(X, 0.0, 1),  # type: ignore[arg-type]
        ArgumentError,
        "pad: cannot use padding_config=1",
    ),
    "no dimension numbers": (
        lambda: lax.dot_general(X, X, 3),  # type: ignore[arg-type]
        ArgumentError,
        "dot_general: cannot use dimension_numb",
    ),
    "strides that are a number": (
        lambda: lax.conv(rnp.ones((1, 1, 4)), rnp.ones((1, 1, 2)), 1, "SAME"),  # type: ignore[arg-type]
        ArgumentError,
        "cannot use strides=1 \\(a sequence",
    ),
    "bits of another width": (lambda: lax.bitcast_convert_type(rnp.zeros(3, "uint8"), "u32"), ShapeError, "last axis"),
    "a solution of another shape": (
        lambda: lax.custom_linear_solve(lambda v: v, X, lambda mv, b: b[:2]),
        TransformError,
        "solve\\(matvec, b\\)",
    ),
    "reverse mode without transpose_solve": (
        lambda: rune.grad(lambda b: lax.custom_linear_solve(lambda v: v * 2, b, lambda mv, b: b / 2).sum())(X),
        TransformError,
        "no transpose_solve",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_arguments_are_refused(case: str):
    call, error, message = REFUSED[case]

    with pytest.raises(error, match=message):
        call()


def test_a_python_number_of_the_same_kind_adapts():
    assert lax.add(X, 1.0).dtype == np.float32
    assert lax.add(N.astype("uint8"), 1).dtype == np.uint8


def test_size_one_stretches_along_an_axis_of_equal_rank():
    assert lax.add(ROW, rnp.ones((2, 3))).shape == (2, 3)


def test_windows_that_leave_read_as_nan_or_the_extreme_integer():
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    at = rnp.array([[5]])

    def filled(x):
        return lax.gather(x, at, numbers, (1,), mode="fill")[0]

    assert np.isnan(filled(X))
    assert int(filled(N)) == np.iinfo(np.int32).min
    assert int(filled(N.astype("uint8"))) == 255
    assert lax.gather(X, at, numbers, (1,))[0] == X[-1]


def test_a_linear_solve_prints_and_parses():
    program = rune.make_program(lambda b: lax.custom_linear_solve(lambda v: v * 2.0, b, lambda mv, b: b / 2.0))(X)

    copy = rune.control.parse_program(str(program))

    assert str(copy) == str(program)


def test_the_auxiliary_result_of_a_solver_comes_along():
    def solve(matvec: Any, b: Any) -> Any:
        return b / 2.0, rnp.sum(b)

    def solved(b: Any) -> Any:
        return lax.custom_linear_solve(lambda v: v * 2.0, b, solve, symmetric=True, has_aux=True)

    (x, total), (dx, _) = rune.jvp(solved, (X,), (X,))
    lanes, totals = rune.vmap(solved)(rnp.stack([X, 2 * X]))

    assert np.allclose(x, 0.5)
    assert float(total) == 3.0
    assert np.allclose(dx, 0.5)
    assert np.allclose(lanes[1], 1.0)
    assert np.allclose(totals, [3.0, 6.0])
    assert np.allclose(rune.grad(lambda b: solved(b)[0].sum())(X), 0.5)


def test_a_root_has_an_auxiliary_result_as_well():
    def root(a: Any) -> Any:
        def newton(f: Any, x: Any) -> Any:
            return lax.fori_loop(0, 20, lambda i, v: v - f(v) / (2 * v), x), rnp.asarray(20)

        return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0), True)

    (value, steps), slope = rune.value_and_grad(root, has_aux=True)(4.0)

    assert float(value) == 2.0
    assert int(steps) == 20
    assert float(slope) == 0.25


@pytest.mark.parametrize(("permission", "first"), [(True, 1.0), (False, 0.0), ([True], 1.0), ([False], 0.0)])
def test_a_negative_start_counts_from_the_end_where_that_is_allowed(permission: Any, first: float):
    x = rnp.arange(3.0)

    elements = lax.dynamic_slice(x, (-2,), (2,), allow_negative_indices=permission)
    result = lax.dynamic_update_slice(x, X[:1], (-2,), allow_negative_indices=permission)

    assert elements.tolist() == [first, first + 1]
    assert result.tolist()[int(first)] == 1.0


def test_operands_of_special_functions_may_be_named():
    assert float(lax.betainc(2.0, b=1.0, x=0.5)) == float(lax.betainc(2.0, 1.0, 0.5))
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        lax.igamma(2.0, y=1.0)
