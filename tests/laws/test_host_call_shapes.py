"""Operands and results of a host call may be results of the program in another shape.

A result of a program that is a reshape of a value shares the value's buffer. Every routine that
runs on the host takes and returns such values, in all pairs of shapes; NumPy is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from tests.support.close import near
from tests.support.sampling import each_value, in_turn

pytestmark = in_turn()

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", COMPUTING)
# The shape of the result, and that of the operand.
SHAPES = [((2, 3), (6,)), ((6,), (2, 3)), ((3, 2, 2), (4, 3)), ((1, 5), (5,)), ((7, 2), (2, 7))]

Routine = Callable[..., Any]


def _weighted(x: Any) -> np.ndarray:
    """A Python function that depends on the shape of its operand."""
    return np.asarray(x) * (1 + np.arange(x.shape[-1], dtype=x.dtype)) + x.ndim


def _called(call: Routine) -> Routine:
    return lambda x: call(_weighted, rune.ShapeDtypeStruct(x.shape, x.dtype), x)


def _matrix(x: Any) -> Any:
    return x.reshape(x.shape[0], -1)


def _largest(x: np.ndarray, k: int) -> np.ndarray:
    return -np.sort(-x, axis=-1)[..., :k]


ROUTINES: dict[str, tuple[Routine, Routine]] = {
    "sort": (rnp.sort, np.sort),
    "argsort": (rnp.argsort, lambda x: np.argsort(x, kind="stable")),
    "lexsort": (lambda x: rnp.lexsort((x, -x)), lambda x: np.lexsort((x, -x))),
    "median": (lambda x: rnp.median(x, axis=0), lambda x: np.median(x, axis=0)),
    "nanmedian": (lambda x: rnp.nanmedian(x, axis=-1), lambda x: np.nanmedian(x, axis=-1)),
    "quantile": (lambda x: rnp.quantile(x, 0.3, axis=-1), lambda x: np.quantile(x, np.float32(0.3), axis=-1)),
    "top_k": (lambda x: lax.top_k(x, 2)[0], lambda x: _largest(x, 2)),
    "singular values": (
        lambda x: rnp.linalg.svd(_matrix(x), compute_uv=False),
        lambda x: np.linalg.svd(_matrix(x), compute_uv=False),
    ),
    "pure_callback": (_called(rune.pure_callback), _weighted),
    "io_callback": (_called(rune.io_callback), _weighted),
}


def _values(shape: tuple[int, ...]) -> np.ndarray:
    """Small numbers, all different, in no order."""
    count = int(np.prod(shape))
    return np.random.default_rng(count).permutation(count).astype(np.float32).reshape(shape)


def _program(routine: Routine, shape: tuple[int, ...]) -> Callable[..., Any]:
    """Its operand and its result are results of the program in another shape and dtype."""

    def run(x: Any) -> tuple[Any, ...]:
        value = x * 2 - 3
        product = routine(value.reshape(shape))
        bits = lax.bitcast_convert_type(value, rnp.int32)
        return value, bits, product.reshape(-1), product[None], value + product.ravel()[-1]

    return run


def _expected(routine: Routine, shape: tuple[int, ...], x: np.ndarray) -> tuple[np.ndarray, ...]:
    value = x * np.float32(2) - np.float32(3)
    product = routine(value.reshape(shape))
    return (value, value.view(np.int32), product.reshape(-1), product[None], value + product.ravel()[-1])


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize(("result", "operand"), SHAPES)
def test_a_routine_of_the_host_reads_and_writes_by_its_own_shapes(
    name: str, result: tuple[int, ...], operand: tuple[int, ...]
):
    ours, numpys = ROUTINES[name]
    x, program = _values(result), _program(ours, operand)
    expected = _expected(numpys, operand, x)

    for run in (program, rune.jit(program)):
        near(expected, [np.asarray(o) for o in run(x)], relative=1e-5, why="f32")


@on_every_executor
@pytest.mark.parametrize(("result", "operand"), SHAPES[:3])
def test_a_python_function_has_its_own_shapes_on_every_executor(
    device: str, result: tuple[int, ...], operand: tuple[int, ...]
):
    x, program = _values(result), _program(_called(rune.pure_callback), operand)

    results = rune.jit(program, device=device)(x)

    near(_expected(_weighted, operand, x), list(map(np.asarray, results)), relative=0, why="exact")


def _in_a_loop(x: Any) -> Any:
    def step(_: Any, carry: Any) -> Any:
        flat = (carry + 1).reshape(-1)
        return (flat + _called(rune.pure_callback)(flat)).reshape(carry.shape)

    return lax.fori_loop(0, 3, step, x)


def _in_a_branch(x: Any) -> Any:
    def first(x: Any) -> Any:
        return _called(rune.pure_callback)((x + 1).reshape(-1)).reshape(x.shape), x + 1

    return lax.cond(x[0, 0] > -1, first, lambda x: (x, x), x)


def _in_a_scan(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        row = (row * 2).reshape(1, -1)
        return carry + row.reshape(-1), _called(rune.pure_callback)(row).reshape(-1)

    return lax.scan(step, x[0], x)


@on_every_executor
@pytest.mark.parametrize("function", [_in_a_loop, _in_a_branch, _in_a_scan])
def test_loops_and_branches_keep_the_shapes_of_their_host_calls(device: str, function: Any):
    x = _values((2, 3))

    results = rune.jit(function, device=device)(x)

    near(function(x), list(results) if isinstance(results, tuple) else results, relative=0, why="exact")


def test_symbolic_sizes_keep_the_shapes_of_their_host_calls():
    program = _program(_called(rune.pure_callback), (-1,))
    x = _values((5, 3))

    results = rune.jit(program, dims={"n": (1, 64)}, in_dims=("n,_",))(x)

    near(_expected(_weighted, (-1,), x), list(map(np.asarray, results)), relative=0, why="exact")


def test_a_median_over_all_axes_of_a_number_keeps_none():
    median = rune.jit(lambda x: rnp.nanmedian(rnp.vdot(x, x), axis=None, keepdims=True))(np.ones(3))

    near(np.float32(3), median, relative=0, why="exact")


@on_every_executor
def test_a_single_complex_number_passes_through_a_python_function(device: str):
    z = np.complex64(2 - 3j)

    def program(z: Any) -> Any:
        return rune.pure_callback(np.square, rune.ShapeDtypeStruct((), z.dtype), z + 1)

    near(np.square(z + 1), rune.jit(program, device=device)(z), relative=0, why="exact")


@each_value()
@pytest.mark.parametrize("dtype", ["c8", "c16", "f4", "f8"])
@pytest.mark.parametrize("name", ["det", "slogdet"])
@pytest.mark.parametrize("lead", [(), (1,), (2, 3)], ids=str)
def test_a_routine_of_the_host_yields_a_number_for_each_matrix(lead: tuple[int, ...], name: str, dtype: str):
    """35 rows are more than are compiled."""
    rng = np.random.default_rng(35)
    a = (rng.normal(size=(*lead, 35, 35)) + 1j * rng.normal(size=(*lead, 35, 35))) / 6
    a = (a if dtype.startswith("c") else a.real).astype(dtype)

    results = rune.jit(getattr(rnp.linalg, name))(rnp.asarray(a, dtype))

    expected = getattr(np.linalg, name)(a.astype("c16" if dtype.startswith("c") else "f8"))
    relative = 1e-3 if dtype in ("c8", "f4") else 1e-12
    pairs = zip(expected, results, strict=True) if name == "slogdet" else [(expected, results)]
    for truth, value in pairs:
        near(truth, value, relative=relative, why="the products of 35 pivots")
