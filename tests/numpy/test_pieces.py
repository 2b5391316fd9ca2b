"""Parts of programs: the order of NumPy's sums, which arrays are in C order, and what is compiled.

NumPy itself is the oracle: its sums, and the flags of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import ops, tree
from rune.backends.cpu.meanings import meaning_of
from rune.core.primitive import Primitive
from rune.core.program import Literal, Program, Var
from rune.errors import RuneError
from rune.lowering.live import live
from rune.transforms.compile import orders, pieces, tiers
from rune.transforms.compile.orders import MOST_IN_A_ROW, MOST_STEPS, contiguous_values, in_numpys_order
from rune.transforms.compile.pieces import flat, pieces_of
from tests.numpy.cases import CASES
from tests.numpy.spelling import Case
from tests.support.close import same
from tests.support.sampling import each_value, one_in
from tests.support.surface_laws import drawn, silently, single

FLOATS = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)


def uneven(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Numbers of many magnitudes, whose sum reveals its order, with zeros of both signs."""
    rng = np.random.default_rng([len(shape), *shape])
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 5, shape)
    return np.asarray(np.where(rng.uniform(size=shape) < 0.1, -0.0, x), dtype)


def in_order(primitive: Primitive, x: np.ndarray, **params: Any) -> Any:
    """The primitive of this array by compiled code, in NumPy's order."""
    return rune.jit(lambda x: in_numpys_order(primitive, x, params))(rnp.asarray(x, x.dtype))


# --- orders -----------------------------------------------------------------------------------


@each_value()
@FLOATS
@pytest.mark.parametrize("lengths", [range(k, MOST_IN_A_ROW + 1, 16) for k in range(1, 17)], ids=lambda r: f"{r[0]}")
def test_sums_of_rows_have_numpys_bits_for_every_length(lengths: range, dtype: type) -> None:
    for length in lengths:
        row, rows = uneven((length,), dtype), uneven((3, length), dtype)

        same(np.asarray(np.sum(row)), in_order(ops.reduce_sum, row, axes=(0,)))
        same(np.sum(rows, -1), in_order(ops.reduce_sum, rows, axes=(1,)))


def test_the_order_of_this_numpy_is_the_written_one() -> None:
    assert orders.is_numpys_order()


def test_if_numpy_adds_in_another_order_sums_are_left_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "is_numpys_order", lambda: False)
    program = flat(rune.make_program(rnp.std)(rnp.ones(10)))

    parts = [p.primitive.name for p in pieces_of(program) if not isinstance(p, Program)]

    assert parts.count("reduce_sum") == 2


def test_a_piece_is_compiled_with_effort_because_it_is_called_often(monkeypatch: pytest.MonkeyPatch) -> None:
    executables: list[Any] = []
    real = pieces.compiled
    monkeypatch.setattr(pieces, "compiled", lambda *options: executables.append(real(*options)) or executables[-1])
    program = flat(rune.make_program(rnp.sinc)(rnp.ones(10)))

    pieces.line_of(program, pieces_of(program))

    assert [executable.is_draft for executable in executables] == [False, False]


def test_a_function_called_often_computes_nothing_that_no_result_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    real = tiers.straight_line

    def noted(program: Program) -> Any:
        names.extend(e.primitive.name for e in program.equations)
        return real(program)

    monkeypatch.setattr(tiers, "straight_line", noted)
    function, x = tiers.tiered(lambda x: (rnp.sin(x), rnp.exp(x))[1]), rnp.ones(10)
    results = [function(x) for _ in range(tiers.OFTEN + 2)]

    assert names == ["exp"]
    same(np.exp(np.ones(10, np.float32)), np.asarray(results[-1]))


@FLOATS
@pytest.mark.parametrize("step", [1, 2, 5, -1, -3])
def test_elements_of_one_axis_have_one_order_at_any_distance(step: int, dtype: type) -> None:
    for length in (1, 7, 8, 13, 64, MOST_IN_A_ROW):
        row = uneven((length * abs(step),), dtype)[::step]

        same(np.asarray(np.sum(row)), in_order(ops.reduce_sum, row.copy(), axes=(0,)))


# Axes of one element do not matter: a column of (13, 1) is a row.
REDUCED = [
    ((5, 2), (1,)),
    ((5, 2), (0,)),
    ((13, 1), (0,)),
    ((1, 13), (0,)),
    ((1, 13), (1,)),
    ((16, 9), (0,)),
    ((2, 3, 5), (1, 2)),
    ((2, 3, 5), (0, 1)),
    ((2, 3, 2), (0, 1, 2)),
    ((4, 1, 9), (0,)),
    ((4, 1, 9), (1, 2)),
    ((9, 1, 1, 7), (1, 3)),
    ((3, 1, 3), (1,)),
    ((1000, 10), (1,)),
    ((100, 16), (1,)),
    ((16, 1000), (0,)),
    ((3, 2, 4, 4), (2, 3)),
    ((2, 8, 3, 4), (0, 1)),
    ((), ()),
]


@FLOATS
@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize(("shape", "axes"), REDUCED, ids=str)
def test_reductions_have_numpys_bits(shape: tuple[int, ...], axes: tuple[int, ...], name: str, dtype: type) -> None:
    x = uneven(shape, dtype)
    primitive = {"sum": ops.reduce_sum, "prod": ops.reduce_prod}[name]

    same(np.asarray(getattr(np, name)(x, axis=axes)), in_order(primitive, x, axes=axes))


@FLOATS
@pytest.mark.parametrize("shape", [(1,), (7,), (MOST_STEPS,), (3, 5), (5, 3, 2)], ids=str)
def test_running_sums_and_products_have_numpys_bits(shape: tuple[int, ...], dtype: type) -> None:
    x = uneven(shape, dtype)

    for axis in range(x.ndim):
        same(np.cumsum(x, axis), in_order(ops.cumsum, x, axis=axis, reverse=False))
        same(np.cumprod(x, axis), in_order(ops.cumprod, x, axis=axis, reverse=False))


@pytest.mark.parametrize(
    ("shape", "axes"), [((MOST_IN_A_ROW + 1,), (0,)), ((MOST_STEPS + 1, 2), (0,)), ((2, 3, 5), (1,)), ((0,), (0,))]
)
def test_other_orders_are_not_written_out(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    assert in_numpys_order(ops.reduce_sum, rnp.zeros(shape), {"axes": axes}) is None


@pytest.mark.parametrize("dtype", ["f16", "bf16", "c64", "i32"])
def test_sums_of_other_dtypes_are_not_written_out(dtype: str) -> None:
    assert in_numpys_order(ops.reduce_sum, rnp.zeros(5, dtype), {"axes": (0,)}) is None


# --- layouts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", one_in(4, CASES), ids=str)
def test_arrays_predicted_in_c_order_are_so_in_numpy(case: Case) -> None:
    def call(*arrays: Any) -> Any:
        return silently(case, rnp, arrays)

    arrays = single(drawn(case))
    try:
        program = flat(rune.make_program(call)(*arrays))
    except RuneError:  # of a size that values decide
        return
    values, plain = evaluated(program, [np.array(x) for x in arrays]), contiguous_values(program)

    assert all(value.flags.c_contiguous for var, value in values.items() if var in plain)


def evaluated(program: Program, args: list[np.ndarray]) -> dict[Var, np.ndarray]:
    """NumPy's array for each variable, up to the first operation that NumPy lacks."""
    values: dict[Any, np.ndarray] = dict(zip(program.inputs, args, strict=True))
    values |= {var: np.asarray(value) for var, value in program.constants}
    for e in program.equations:
        if e.primitive.reference is None or e.primitive.effect is not None:
            return values
        with np.errstate(all="ignore"):
            operands = [a.value if isinstance(a, Literal) else values[a] for a in e.operands]
            out = meaning_of(e.primitive, [a.type for a in e.operands], e.params)(*operands)
        values |= zip(e.results, map(np.asarray, out if e.primitive.multiple_results else [out]), strict=True)
    return values


# --- functions --------------------------------------------------------------------------------


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third call of a kind is the first that is compiled."""
    monkeypatch.setattr(tiers, "OFTEN", 1)


def thrice(function: Callable[..., Any], *args: Any) -> list[Any]:
    return [function(*args) for _ in range(3)]


def views(x: np.ndarray) -> dict[str, Callable[[rune.Array], rune.Array]]:
    """Ways to make a matrix of these numbers whose buffer has another order."""
    return {
        "transposed": lambda a: a.T,
        "reversed": lambda a: a[::-1],
        "every other": lambda a: rnp.repeat(a, 2, axis=0)[::2],
        "spread": lambda a: rnp.broadcast_to(a[0], a.shape),
        "as it is": lambda a: a,
    }


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("way", views(np.zeros((1, 1))))
@pytest.mark.parametrize("name", ["std", "var", "mean", "sum", "prod", "cumsum", "cov", "corrcoef", "nanvar"])
def test_views_have_the_bits_of_the_first_call(name: str, way: str) -> None:
    x = uneven((7, 5), np.float32)
    view = views(x)[way](rnp.asarray(x))

    for call in (getattr(rnp, name), lambda v: getattr(rnp, name)(v[0])):
        first, _, third = thrice(call, view)
        same(first, third)


@pytest.mark.usefixtures("soon")
def test_each_kind_of_call_accepts_arrays_of_every_layout() -> None:
    x = uneven((7, 9), np.float32)
    thrice(rnp.sum, rnp.asarray(x))
    transpose = rnp.asarray(np.ascontiguousarray(x.T)).T

    same(np.asarray(np.sum(np.asfortranarray(x))), rnp.sum(transpose))
    same(np.asarray(np.sum(x)), rnp.sum(rnp.asarray(x)))
    assert np.sum(np.asfortranarray(x)) != np.sum(x)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", ["std", "nanmean", "mean", "sum", "unwrap", "trapezoid", "nanmedian"])
def test_functions_of_sums_are_one_compiled_program(name: str) -> None:
    x = rnp.asarray(uneven((10,), np.float32))
    thrice(getattr(rnp, name), x)

    with rune.counting() as counts:
        getattr(rnp, name)(x)

    assert counts.runs == 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (rnp.i0, ["piece", "exp", "exp", "piece"]),
        (rnp.sinc, ["piece", "sin", "piece"]),
        (rnp.std, ["piece"]),
        (lambda x: rnp.cov(x, x), ["piece", "transpose", "dot_general", "piece"]),
        (
            lambda x: rnp.linalg.pinv(x.reshape(5, 2)),
            ["reshape", "svd", *["transpose"] * 2, "piece", "mul", "dot_general"],
        ),
        (lambda x: rnp.exp(rnp.exp(x)[::-1] * x), ["exp", "piece", "exp"]),
    ],
)
def test_programs_fall_into_pieces(function: Callable[..., Any], expected: list[str]) -> None:
    program = live(flat(rune.make_program(function)(rnp.ones(10))))

    parts = ["piece" if isinstance(p, Program) else p.primitive.name for p in pieces_of(program)]

    assert parts == expected


def test_what_numpy_computes_of_constants_alone_comes_before_all_pieces() -> None:
    def function(x: rune.Array) -> rune.Array:
        return rnp.exp(x * 2 + 1) + rnp.sin(rnp.arange(10, dtype="float32")) * x

    program = live(flat(rune.make_program(function)(rnp.ones(10))))

    parts = ["piece" if isinstance(p, Program) else p.primitive.name for p in pieces_of(program)]

    assert parts[-4:] == ["sin", "piece", "exp", "piece"]


def test_roots_and_squares_are_computed_again_rather_than_passed_on() -> None:
    def function(x: rune.Array) -> rune.Array:
        root = rnp.sqrt(abs(x) + 1)
        return rnp.exp(-root) * root**2

    program = live(flat(rune.make_program(function)(rnp.ones(10))))
    first, _, last = pieces_of(program)

    assert isinstance(first, Program)
    assert isinstance(last, Program)
    assert (len(first.outputs), len(last.inputs)) == (1, 2)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("shape", "dtype"), [((3, 3), np.float32), ((2, 5, 5), np.float64)], ids=str)
def test_a_small_symmetric_matrix_keeps_its_bits_and_is_one_compiled_program(
    shape: tuple[int, ...], dtype: type
) -> None:
    x = rnp.asarray(uneven(shape, dtype))
    first, _, third = thrice(rnp.linalg.eigh, x)

    with rune.counting() as counts:
        rnp.linalg.eigh(x)

    same(tree.leaves(first), tree.leaves(third))
    assert counts.runs == 1


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "call", [lambda: rnp.logspace(0, 1, 5), lambda: rnp.kaiser(7, 2.0)], ids=["logspace", "kaiser"]
)
def test_a_constant_result_is_every_callers_own(call: Callable[[], rune.Array]) -> None:
    first, _, third, fourth = (call() for _ in range(4))

    same(first, third)
    assert not np.shares_memory(np.asarray(third), np.asarray(fourth))


@pytest.mark.usefixtures("soon")
def test_values_that_are_not_finite_pass_through_pieces() -> None:
    for values in ([np.nan, 1.0, np.inf], [-0.0, -0.0, -0.0], [np.inf, -np.inf, 0.0]):
        x = rnp.asarray(np.array(values, np.float32))
        for name in ("i0", "sinc", "std", "sum", "prod", "cumsum", "nanmean"):
            first, _, third = thrice(getattr(rnp, name), x)

            same(tree.leaves(first), tree.leaves(third))
