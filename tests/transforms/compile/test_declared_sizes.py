"""Sizes declared by `dims` and `in_dims`: the meaning of patterns, and the calls that fit them.

First the patterns and the bounds. Then calls that do not fit, each with the message a user reads.
Then sizes inside other symbolic traces, where nothing is guessed, and derivatives, whose programs
must learn the sizes from whatever they are given.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, AxisError, DimensionError, ShapeError
from tests.support.close import near, same

RANGE = (1, 64)


def ones(*shape: int) -> Any:
    return rnp.ones(shape)


def shapes_seen(dims: dict, in_dims: Any, *args: Any) -> list[str]:
    """The shapes that a function sees while it is traced."""
    shapes: list[str] = []

    def function(*xs: Any) -> Any:
        shapes.extend(str(x.shape) for x in xs)
        return xs[0]

    rune.jit(function, dims=dims, in_dims=in_dims)(*args)
    return shapes


# --- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "shape"),
    [
        ("n", "(n, 4, 6)"),
        ("n,_", "(n, 4, 6)"),
        ("_,n", "(2, n, 6)"),
        ("n,_,m", "(n, 4, m)"),
        ("n, 2*n, 3*n", "(n, 2*n, 3*n)"),
        ("n,m,n+m", "(n, m, m + n)"),
        ("2*m - 2, _, n", "(2*m - 2, 4, n)"),
        ("...,n", "(2, 4, n)"),
        ("n,...,m", "(n, 4, m)"),
        ("n,_,_,...", "(n, 4, 6)"),
        ("n,4", "(n, 4, 6)"),
        (None, "(2, 4, 6)"),
    ],
)
def test_a_pattern_says_what_the_axes_are(pattern: str | None, shape: str):
    assert shapes_seen({"n": RANGE, "m": RANGE}, (pattern,), ones(2, 4, 6)) == [shape]


def test_a_pattern_applies_to_every_array_of_a_tree():
    f = rune.jit(lambda p: (p["a"] + p["b"]).shape[0] * p["a"], dims={"n": RANGE}, in_dims=("n",))

    same(np.full(3, 3.0, np.float32), f({"a": ones(3), "b": ones(3)}))
    assert f.cache_size() == 1


def test_static_arguments_have_their_own_entry_in_in_dims():
    f = rune.jit(lambda k, x: k * x, static_argnums=0, dims={"n": RANGE}, in_dims=(None, "n"))

    for size in (2, 3):
        same(np.full(size, 2.0, np.float32), f(2.0, ones(size)))
    assert f.cache_size() == 1


@pytest.mark.parametrize(
    ("dims", "in_dims", "message"),
    [
        ({"n": (3, 2)}, "n", r"cannot declare n in 3..2 \(0 <= low <= high required\)"),
        ({"n": (-1, 2)}, "n", r"cannot declare n in -1..2"),
        ({"n": (1, "m")}, "n", r"the ranges of {'n': \(1, 'm'\)} \(sizes known: none\)"),
        ({"n": (1, "m"), "m": (1, "n")}, "n,m", "cannot read the ranges of {'n': .*, 'm': "),
        ({"n": 64}, "n", r"cannot read the range 64 of n \(two whole numbers, or sizes, req"),
        ({"n": (1, 2, 3)}, "n", r"cannot read the range \(1, 2, 3\) of n"),
        ({"n": (True, 64.0)}, "n", r"cannot read the range \(True, 64.0\) of n"),
        ({"2n": RANGE}, "n", r"cannot name a size '2n' in dims \(an identifier required\)"),
        ({"_": RANGE}, "_", r"cannot name a size '_' in dims"),
        ("n", "n", r"cannot read dims='n' \(no sizes by name\)"),
        (None, "n", r"cannot read dims=None \(no sizes by name\)"),
        ({"n": RANGE, "m": (4, "n")}, "n", r"cannot declare m in 4..n .*; n in 1..64\)"),
        ({"n": RANGE, "m": RANGE}, None, "cannot tell which axes have the sizes n, m"),
        ({"n": RANGE}, "k", r"cannot read 'k' in the pattern 'k' \(sizes in dims: n\)"),
        ({"n": RANGE}, "n,", "cannot read '' in the pattern 'n,'"),
        ({"n": RANGE}, 0, r"cannot read 0 in in_dims \(not a pattern\)"),
        ({"n": RANGE}, ("n", "n"), r"match in_dims to the arguments \(in_dims is a tuple of 2, "),
        ({"n": RANGE}, (("n", "_"),), r"in_dims\[0\] is a tuple of 2, arguments\[0\] is a leaf"),
        ({"n": RANGE}, "n,n,n", r"the pattern 'n,n,n' to f32\[2,4\] \(argument\[0\]\)"),
        ({"n": RANGE}, "n//2", r"the axes of f32\[n//2,4\] do not tell n"),
        ({"n": RANGE, "m": RANGE}, "n+m", r"the axes of f32\[m \+ n,4\] do not tell m, n"),
    ],
)
def test_a_declaration_without_effect_is_refused(dims: dict, in_dims: Any, message: str):
    with pytest.raises(ArgumentError, match=f"jit: .*{message}"):
        rune.jit(lambda x: x, dims=dims, in_dims=in_dims)(ones(2, 4))


def test_a_size_that_no_argument_has_is_refused():
    f = rune.jit(lambda tree, *, x=None: tree, dims={"n": RANGE})

    for args, keywords in [(({"a": ones(3)},), {}), ((1.0,), {"x": ones(3)})]:
        with pytest.raises(ArgumentError, match=r"cannot tell which axes have the size n \(no pos"):
            f(*args, **keywords)


def test_a_range_may_have_no_end():
    f = rune.jit(lambda x: x[1:].sum(), dims={"n": (1, None)})

    assert [float(f(ones(n))) for n in (1, 7, 10_000)] == [0.0, 6.0, 9999.0]
    assert f.cache_size() == 1


def test_a_bound_may_be_another_size():
    f = rune.jit(lambda x, y: x[: y.shape[0]] * y, dims={"m": (0, "n"), "n": RANGE}, in_dims=("n", "m"))

    with rune.counting() as counts:
        for n, m in ((3, 2), (5, 5), (4, 0)):
            same(np.ones(m, np.float32), f(ones(n), ones(m)))
    assert (counts.traces, counts.compiles) == (1, 1)
    message = r"with m = 4 \(m in 0..n; axis 0 of argument\[1\]\)\nat"  # no range to widen
    with pytest.raises(DimensionError, match=message):
        f(ones(3), ones(4))


# --- calls that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("in_dims", "sizes", "message"),
    [
        (("n", "n"), (3, 4), r"with n = 3 \(axis 0 of argument\[1\]\['b'\] is 4\)"),
        (("n", "2*n"), (3, 5), r"with 2\*n = 6 for n = 3 \(axis 0 of argument\[1\]\['b'\] is 5\)"),
        ((None, "2*n"), (3, 5), r"with 2\*n = 5 \(no whole n; axis 0 of argument\[1\]\['b'\]\)"),
        ((None, "n+60"), (3, 60), r"with n = 0 \(n in 1..64; axis 0 of argument\[1\]\['b'\]\)"),
        (("n", None), (65, 1), r"with n = 65 \(n in 1..64; axis 0 of argument\[0\]\)"),
        (("n", "4"), (2, 5), r"with shape \[5\] \(axis 0 of argument\[1\]\['b'\], f32\[4\], is 4\)"),
    ],
)
def test_a_call_that_does_not_fit_names_the_argument(in_dims: tuple, sizes: tuple, message: str):
    f = rune.jit(lambda x, y: x, dims={"n": RANGE}, in_dims=in_dims)

    with pytest.raises(DimensionError, match=f"jit: cannot run lambda {message}"):
        f(ones(sizes[0]), {"b": ones(sizes[1])})


def test_a_size_out_of_range_says_how_to_widen_it():
    with pytest.raises(DimensionError, match=r'hint: widen the range: dims={"n": \(1, 65\)}'):
        rune.jit(lambda x: x, dims={"n": RANGE})(ones(65))


def test_a_size_that_is_refused_once_is_refused_again():
    f = rune.jit(lambda x: x, dims={"n": (1, 2)})

    for _ in range(2):
        with pytest.raises(DimensionError, match="n = 3"):
            f(ones(3))


# --- what cannot be decided ---------------------------------------------------------------------

N_OR_M = r"m in 1..64, n in 1..64"


@pytest.mark.parametrize(
    ("function", "error", "message", "hint"),
    [
        (lambda x, y: x + y, ShapeError, r"add: .* \(axis 0: n against m\)", "one name in in_dims"),
        (lambda x, y: x + ones(4), ShapeError, r"add: .* \(axis 0: n against 4\)", 'known is "_"'),
        (lambda x, y: x @ y, ShapeError, r"matmul: .* f32\[n\] and f32\[m\]", "one name"),
        (lambda x, y: rnp.stack([x, y]), ShapeError, r"stack: .* f32\[n\], f32\[m\]", "one name"),
        (lambda x, y: x.reshape(y.shape), ShapeError, r"n against m elements", "one name"),
        (lambda x, y: rune.vmap(rnp.add)(x, y), AxisError, r"f32\[n\], axis 0 of f32\[m\]", "one"),
        (
            lambda x, y: x.reshape(2, -1),
            DimensionError,
            r"reshape: cannot reshape f32\[n\] to \(2, -1\) \(n elements may not divide by 2\)",
            r"as 2\*k in in_dims",
        ),
        (lambda x, y: rnp.split(x, 2), DimensionError, r"split: .* f32\[n\] into 2 equal parts", r"as 2\*k in in_dims"),
        (
            lambda x, y: x[: y.shape[0]],
            DimensionError,
            rf"index: cannot decide m <= n for \[:m\] of an axis of size n \({N_OR_M}\)",
            r'dims={"m": \(1, "n"\)}',
        ),
        (
            lambda x, y: x[-y.shape[0] :],
            DimensionError,
            r"index: cannot decide m <= n for \[-m:\]",
            r'dims={"m": \(1, "n"\)}',
        ),
        (
            lambda x, y: x[3:],
            DimensionError,
            r"index: cannot decide 3 <= n for \[3:\]",
            r'dims={"n": \(3, 64\)} or dims={"n": \(1, 2\)}',
        ),
        (
            lambda x, y: rnp.zeros(x.shape[0] - 2),
            DimensionError,
            "cannot decide n < 2",
            r'dims={"n": \(1, 1\)} or dims={"n": \(2, 64\)}',
        ),
        (lambda x, y: rnp.zeros(2 * x.shape[0] - 3), DimensionError, r"2\*n < 3", "tighter bounds"),
        (
            lambda x, y: x if x.shape[0] > y.shape[0] else y,
            DimensionError,
            rf"cannot decide n > m \({N_OR_M}\)",
            r'dims={"m": \(1, "n - 1"\)}',
        ),
        (
            lambda x, y: rnp.squeeze(x),
            DimensionError,
            r"squeeze: cannot decide whether axis 0 of f32\[n\] is 1 \(n in 1..64\)",
            "from 2 on",
        ),
        (
            lambda x, y: rnp.pad(x, 2, mode="reflect"),
            DimensionError,
            r"pad: .*\(axis 0: by 2 and 2, which may be more than n - 1\)",
            "lower bound",
        ),
    ],
)
def test_an_undecided_question_about_sizes_is_an_error_that_says_what_to_declare(
    function: Any, error: type, message: str, hint: str
):
    f = rune.jit(function, dims={"n": RANGE, "m": RANGE}, in_dims=("n", "m"))

    with pytest.raises(error, match=message) as raises:
        f(ones(6), ones(4))

    assert rune.errors.RuneError in type(raises.value).__mro__
    assert "test_declared_sizes.py" in str(raises.value)
    with pytest.raises(error, match=f"hint: .*{hint}"):
        f(ones(6), ones(4))


def test_a_mismatch_of_numbers_has_no_hint_about_sizes():
    with pytest.raises(ShapeError) as error:
        rune.jit(lambda x: ones(2).reshape(3), dims={"n": RANGE})(ones(4))

    assert "in_dims" not in str(error.value)


# --- inside other traces ------------------------------------------------------------------------

INNER = rune.jit(lambda x: rnp.concatenate([x, x]) * x.shape[0], dims={"n": (1, 64)})


def test_the_same_name_may_stand_for_different_sizes_inside_and_outside():
    f = rune.jit(lambda x: INNER(x[1:]).sum() * x.shape[0], dims={"n": (2, 60)})

    for size in (2, 5):
        assert float(f(ones(size))) == 2 * (size - 1) ** 2 * size
    assert f.cache_size() == 1


def test_inside_a_symbolic_trace_a_declaration_must_be_known_to_hold():
    pairs = rune.jit(lambda x, y: x + y, dims={"k": (1, 8)}, in_dims=("k", "k"))

    def outer(function: Any, high: int) -> Any:
        return rune.jit(function, dims={"n": (1, high), "m": (1, high)}, in_dims=("n", "m"))

    same(np.full(3, 2.0, np.float32), outer(lambda x, y: pairs(x, x), 8)(ones(3), ones(4)))
    with pytest.raises(DimensionError, match=r"with k = n \(axis 0 of argument\[1\] is m\)"):
        outer(pairs, 8)(ones(3), ones(3))
    with pytest.raises(DimensionError, match=r"k = n \(n in 1..9, k in 1..8; axis 0 of argument\[0"):
        outer(lambda x, y: pairs(x, x), 9)(ones(3), ones(4))


def test_a_size_that_an_inner_function_closes_over_comes_in_as_an_argument():
    def function(x: Any) -> Any:
        return rune.jit(lambda y: rnp.sum(rnp.full(x.shape[0], 2.0)) * y)(x[0])

    for outer in (function, rune.jit(function, dims={"n": RANGE})):
        near(np.float32(6), outer(ones(3)), relative=0, why="exact")
        near(np.array([6.0, 0, 0], np.float32), rune.grad(outer)(ones(3)), relative=0, why="exact")
        same(np.full(2, 6.0, np.float32), rune.vmap(outer)(ones(2, 3)))


def test_a_batch_of_symbolic_size_calls_a_function_with_a_size_of_the_same_name():
    lanes = rune.jit(rune.vmap(INNER), dims={"n": RANGE, "m": RANGE}, in_dims=("n,m",))

    for n, m in ((2, 3), (3, 2), (2, 2)):
        same(np.full((n, 2 * m), m, np.float32), lanes(ones(n, m)))
    assert lanes.cache_size() == 1


def test_a_linear_map_of_a_symbolic_function_can_be_used_in_another_trace():
    out, linear = rune.linearize(INNER, ones(3))

    same(np.asarray(out), rune.jit(linear)(ones(3)))


# --- derivatives --------------------------------------------------------------------------------

# The residuals of these tell the size n only through 2*n, n + 1, n//2, or not at all.
SCARCE: dict[str, Any] = {
    "twice": lambda x: rnp.sum(rnp.sin(rnp.concatenate([x, x]))),
    "padded": lambda x: rnp.sum(rnp.sin(rnp.pad(x, (0, 1)))),
    "every second": lambda x: rnp.sum(rnp.sin(x[::2])),
    "sum": lambda x: rnp.sum(x),
    "times its size": lambda x: rnp.sum(x) * x.shape[0],
    "first": lambda x: x[0] ** 2,
    "counted": lambda x: rnp.sum(x * rnp.arange(x.shape[0])),
}


@pytest.mark.parametrize("name", SCARCE)
def test_one_compiled_derivative_covers_every_size(name: str):
    f = SCARCE[name]
    program = rune.jit(f, dims={"n": RANGE})
    gradient, curvature = rune.grad(program), rune.hessian(program)
    gradient(ones(7))
    curvature(ones(7))

    with rune.counting() as counts:
        for size in (1, 2, 5):
            x = rnp.linspace(0.0, 1.0, size)
            near(rune.grad(f)(x), gradient(x), relative=1e-5, why="f32, other order of sums")
            near(rune.hessian(f)(x), curvature(x), relative=1e-5, why="f32, other order of sums")
    assert (counts.traces, counts.compiles) == (0, 0)


def test_a_derivative_without_array_arguments_learns_the_size_from_an_empty_array():
    program = rune.make_program(rune.grad(rune.jit(rnp.sum, dims={"n": RANGE})))(ones(3))

    transpose = [e for e in program.equations if e.primitive.name == "jit"][-1]
    assert "bool[3,0]" in [str(a.type) for a in transpose.operands]


def test_an_unused_result_may_determine_a_size():
    f = rune.jit(lambda x, y: (x * 2.0, rnp.full(x.shape[0], y)), dims={"n": RANGE}, in_dims=("n", None))

    def second(x: Any) -> Any:
        return rune.grad(lambda y: f(x, y)[1].sum())(1.0)

    assert float(rune.jit(second)(ones(3))) == 3.0
    assert float(rune.jit(second, dims={"m": RANGE})(ones(4))) == 4.0


def test_derived_programs_are_freed_with_their_function():
    def live() -> int:
        gc.collect()
        return sum(type(o).__name__ == "Program" for o in gc.get_objects())

    def once() -> None:
        rune.grad(rune.jit(lambda x: rnp.sum(x), dims={"n": RANGE}))(ones(3))

    once()
    before = live()
    for _ in range(3):
        once()
    assert live() == before
