"""Symbolic sizes meet numbers: in evaluation, inside other programs, in every transformation.

First how sizes are read off types: by which axes, in which order, and what is refused. Then
programs traced for n that are called with a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import dims, dtypes, ops
from rune.core.check import check_program
from rune.core.evaluate import eval_program
from rune.core.sizes import match_sizes, size_sources, type_with_sizes, with_sizes
from rune.core.types import ArrayType
from rune.errors import CheckError, DimensionError, NaNError
from rune.transforms.programs.make_program import parse_program
from tests.support.arrays import array
from tests.support.close import near, same

N, M = dims.symbol("n", 1, 64), dims.symbol("m", 1, 64)
X = array([0.5, 1.0, 2.0])


def f32(*shape: Any) -> ArrayType:
    return ArrayType(shape, dtypes.f32)


@pytest.mark.parametrize(
    ("declaration", "actual", "sizes"),
    [
        (f32(N, 8), f32(3, 8), {"n": 3}),
        (f32(N, M), f32(M, 5), {"n": M, "m": 5}),
        (f32(N, 4), f32(N, 4), {}),
        (f32(2 * N + 1), f32(7), {"n": 3}),
        (f32(N * M, N), f32(6, 2), {"n": 2, "m": 3}),
        (f32(3), f32(3), {}),
        (f32(N + M, N), f32(7, 3), {"n": 3, "m": 4}),
        (f32(2 * N, M - N, M * N - 1), f32(6, 1, 11), {"n": 3, "m": 4}),
        (f32(2 * N, 3), f32(2 * M, 3), {"n": M}),
    ],
    ids=str,
)
def test_sizes_are_read_off_the_types(declaration: ArrayType, actual: ArrayType, sizes: dict):
    assert match_sizes((declaration,), [actual], "f: cannot run") == sizes


@pytest.mark.parametrize(
    ("declaration", "actual", "message"),
    [
        (f32(2 * N), f32(7), r"f: cannot run with 2\*n = 7 \(no whole n; axis 0 of argument 0\)"),
        (f32(3 * N + M, M), f32(9, 2), r"with m \+ 3\*n = 9 for m = 2 \(no whole n; axis 0"),
        (f32(N), f32(65), r"with n = 65 \(n in 1..64; axis 0 of argument 0\)"),
        (f32(2 * N - 8), f32(124), r"with n = 66 \(n in 1..64; axis 0 of argument 0\)"),
        (f32(N, N), f32(2, 3), r"with n = 2 \(axis 1 of argument 0 is 3\)"),
        (f32(N, 2 * N), f32(2, 5), r"with 2\*n = 4 for n = 2 \(axis 1 of argument 0 is 5\)"),
        (f32(N, 4), f32(2, 5), r"with shape \[2, 5\] \(axis 1 of argument 0, f32\[n,4\], is 4\)"),
        (f32(N), f32(2, 5), r"with shape \[2, 5\] \(argument 0 is f32\[n\]\)"),
        (f32(N), f32(N + 1), r"with n = n \+ 1 \(n in 1..64, n in 1..64; axis 0"),
        (f32(N, N), f32(N, M), r"with n = n \(axis 1 of argument 0 is m\)"),
        (f32(2 * N), f32(M), r"with 2\*n = m \(2 may not divide m; axis 0 of argument 0\)"),
    ],
    ids=str,
)
def test_types_that_no_sizes_fit_are_refused(declaration: ArrayType, actual: ArrayType, message: str):
    with pytest.raises(DimensionError, match=message):
        match_sizes((declaration,), [actual], "f: cannot run")


def test_an_axis_that_is_a_size_itself_is_read_before_any_other():
    sources = size_sources((f32(2 * N, M + 1), f32(M), f32(N)))

    assert [(s.name, s.argument, s.axis) for s in sources] == [("m", 1, 0), ("n", 2, 0)]


def test_a_source_states_how_the_axis_derives_from_the_size():
    source = size_sources((f32(M), f32(2 * N * M + M + 3)))[1]

    assert (source.name, source.offset, source.factor) == ("n", M + 3, 2 * M)
    assert source.dim == 2 * N * M + M + 3


@pytest.mark.parametrize("axes", [(N // 2,), (N * N,), (N + M,), (N * dims.symbol("k", 0, 9), dims.symbol("k", 0, 9))])
def test_an_axis_that_does_not_determine_a_size_is_no_source_of_it(axes: tuple):
    assert "n" not in {s.name for s in size_sources((f32(*axes),))}


SIZE = st.integers(1, 20)


@st.composite
def affine_axes(draw: st.DrawFn) -> tuple[dict[str, int], list[Any]]:
    """Sizes with values, and axes in any order; each axis is affine and adds at most one size."""
    values: dict[str, int] = {}
    axes: list[Any] = []
    for name in "abcde"[: draw(st.integers(1, 5))]:
        factor, offset = draw(st.integers(1, 4)), draw(st.integers(0, 5))
        if values and draw(st.booleans()):
            other = dims.symbol(draw(st.sampled_from(sorted(values))), 1, 20)
            factor, offset = draw(st.sampled_from([(factor, other), (other + 1, offset)]))
        values[name] = draw(SIZE)
        axes.append(factor * dims.symbol(name, 1, 20) + offset)
    return values, draw(st.permutations(axes))


@given(affine_axes(), st.data())
def test_any_affine_sizes_are_found_in_any_order(sizes_and_axes: tuple, data: st.DataObject):
    values, axes = sizes_and_axes
    cut = data.draw(st.integers(0, len(axes)))
    declaration = f32(*axes[:cut]), f32(*axes[cut:])
    actual = [type_with_sizes(t, values) for t in declaration]

    assert match_sizes(declaration, actual, "f") == values


@given(affine_axes(), st.data())
def test_matched_sizes_fit_every_axis_or_raise_an_error(sizes_and_axes: tuple, data: st.DataObject):
    _, axes = sizes_and_axes
    shape = [data.draw(st.integers(0, 40)) for _ in axes]

    try:
        sizes = match_sizes((f32(*axes),), [f32(*shape)], "f")
    except DimensionError:
        return

    assert [dims.substitute(axis, sizes) for axis in axes] == shape
    assert all(1 <= size <= 20 for size in sizes.values())


# --- programs of symbolic sizes -----------------------------------------------------------------


def test_parameters_are_rewritten_wherever_sizes_stand():
    parameters = with_sizes((N, (2 * N, 1), "clip", dtypes.f32, None, True), {"n": 3})

    assert parameters == (3, (6, 1), "clip", dtypes.f32, None, True)


def normalised(x: Any) -> Any:
    """Uses the size as a shape, as a number, and in a reshape."""
    n = x.shape[0]
    ones = ops.broadcast(np.float32(1), shape=(n,), axes=())
    twice = ops.reshape(ops.broadcast(x * ones, shape=(2, n), axes=(1,)), shape=(2 * n,))
    return (twice * twice).sum() / x.size


def expected(x: Any) -> np.ndarray:
    host = np.asarray(x)
    return np.asarray(2 * np.sum(host * host) / host.size, np.float32)


def test_a_program_of_a_symbolic_size_evaluates_for_a_number():
    program = rune.make_program(normalised)(f32(N))

    near(expected(X), eval_program(program, [X])[0], relative=1e-6, why="f32")


def test_a_function_of_a_symbolic_size_works_inside_one_of_a_number():
    f = rune.jit(normalised, dims={"n": (1, 64)})

    near(expected(X), rune.jit(lambda x: f(x))(X), relative=1e-6, why="f32")
    near(expected(X), rune.jit(lambda x: f(x), dims={"k": (1, 9)})(X), relative=1e-6, why="f32")


def test_a_function_of_a_symbolic_size_under_vmap_and_forward_mode():
    f = rune.jit(normalised, dims={"n": (1, 64)})
    rows = array(np.arange(6.0).reshape(2, 3), np.float32)

    near(np.stack([expected(r) for r in np.asarray(rows)]), rune.vmap(f)(rows), relative=1e-6, why="f32")
    near(4 * np.asarray(X) / 3, rune.jacfwd(f)(X), relative=1e-6, why="f32")


def test_the_nan_check_finds_its_way_through_symbolic_sizes():
    def function(x: Any) -> Any:
        ones = ops.broadcast(np.float32(1), shape=(x.shape[0],), axes=())
        return ops.log(x * ones - 1.0)

    with rune.configure(check_nans=True), pytest.raises(NaNError, match="log: found NaN"):
        rune.jit(function, dims={"n": (1, 64)})(X)


def test_one_symbolic_program_covers_two_sizes_in_one_outer_program():
    f = rune.jit(normalised, dims={"n": (1, 64)})
    y = array([1.0, 2.0])

    result = rune.jit(lambda a, b: f(a) + f(b))(X, y)

    near(expected(X) + expected(y), result, relative=1e-6, why="f32")
    same(np.asarray(f(y)), np.asarray(f(y)))


# --- programs that hold programs ----------------------------------------------------------------

UNTOLD = """
program f(%0: f32[]) {
  %1: f32[3] = jit %0 {program=program g(%0: f32[]) where n in 1..9 {
    %1: f32[n] = broadcast %0 {axes=(), shape=(n,)}
    return %1
  }}
  return %1
}"""


def test_a_held_program_whose_inputs_do_not_tell_a_size_is_refused():
    with pytest.raises(CheckError, match="jit holds g, whose inputs do not tell the size n"):
        check_program(parse_program(UNTOLD))


def test_operands_that_do_not_fit_a_held_program_are_refused():
    text = UNTOLD.replace("g(%0: f32[])", "g(%0: f32[], %2: bool[2*n,0])").replace("%1", "%3")
    text = text.replace("f(%0: f32[])", "f(%0: f32[], %1: bool[7,0])")
    text = text.replace("jit %0", "jit %0, %1")

    with pytest.raises(DimensionError, match=r"jit of g with 2\*n = 7 \(no whole n; axis 0 of"):
        check_program(parse_program(text))


def test_a_program_names_bounds_before_what_they_bound_and_is_read_back():
    k = dims.symbol("a", 0, N)
    program = rune.make_program(lambda x, y: x[: y.shape[0]] * y)(f32(N), f32(k))

    assert "where n in 1..64, a in 0..n" in str(program)
    assert str(parse_program(str(program))) == str(program)
