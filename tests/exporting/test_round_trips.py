"""Files keep what they store: every operation, every kind of weight, random programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.core.evaluate import eval_program
from rune.core.primitive import Primitive
from rune.core.same import same_program
from rune.exporting import Exported
from tests.fuzzing import ways
from tests.ops.library import USES, uses
from tests.ops.samples import each_primitive, samples
from tests.support.arrays import array


def reloaded(original: Exported, vjp_order: int = 0) -> Exported:
    """The function loaded from its file, which is written the same again."""
    file = original.serialize(vjp_order)
    copy = rune.export.load(file)
    assert copy.serialize(vjp_order) == file
    return copy


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have dtype, shape and bits in common."""
    x, y = (v.numpy() if isinstance(v, rune.Array) else np.asarray(v) for v in (a, b))
    return (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


def means_the_same(original: Exported, args: list[Any]) -> None:
    """The program of the file is this program, and gives its bits."""
    copy = reloaded(original)
    assert same_program(copy.program, original.program)
    results = [eval_program(e.program, [*e.weights, *args]) for e in (original, copy)]
    assert all(map(same_bits, *results))


@each_primitive
def test_every_operation_gives_the_same_bits_from_a_file(primitive: Primitive):
    calls = samples(primitive)
    counts = [len(s.operands) for s in calls]

    def everything(*flat: Any) -> list[Any]:
        remaining = iter(flat)
        operands = [[next(remaining) for _ in range(n)] for n in counts]
        return [s.primitive(*xs, **s.params) for s, xs in zip(calls, operands, strict=True)]

    args = [array(a) for s in calls for a in s.draw()]

    means_the_same(rune.export(everything)(*args), args)


@pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
@pytest.mark.parametrize("primitive", ops.LIBRARY, ids=lambda p: p.name)
def test_every_library_operation_gives_the_same_bits_from_a_file(primitive: Primitive):
    assert primitive in {u.primitive for u in USES}
    for use in uses(primitive)[:3]:
        args = use.draw()
        means_the_same(rune.export(use.observed)(*args), args)


@pytest.mark.parametrize("dtype", sorted({*dtypes.NUMERIC, dtypes.bool_}, key=dtypes.short), ids=dtypes.short)
def test_weights_of_every_dtype_keep_their_bits(dtype: np.dtype):
    values = np.array([[0, 1, 3], [5, 7, 2]]).astype(dtype)
    weight = rnp.asarray(values, dtype)

    copy = reloaded(rune.export(lambda i: weight[i])(rnp.int32(1)))

    assert same_bits(copy.weights[0], weight)
    assert same_bits(copy.call(rnp.int32(1)), weight[1])


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
def test_keys_are_weights_and_arguments(impl: str):
    keys = rune.random.split(rune.random.key(7, impl=impl), 3)
    function = rune.jit(lambda k: rune.random.normal(k, (5,)) + rune.random.uniform(keys[1], (5,)))

    copy = reloaded(rune.export(function)(keys[0]))

    assert same_bits(copy.call(keys[0]), function(keys[0]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 1e-45, 0.1])
def test_weights_and_literals_of_hard_values_keep_their_bits(value: float):
    row = rnp.full((17,), value, "f32")

    copy = reloaded(rune.export(lambda x: (x + row, rnp.where(x > 0, rnp.float32(value), x)))(rnp.ones(17)))

    assert same_bits(copy.weights[0], row)
    assert same_bits(copy.call(rnp.ones(17))[1], rnp.full((17,), value, "f32"))


def test_an_array_that_two_programs_read_is_stored_once():
    weight = rnp.arange(10_000.0)
    program = rune.export(lambda x: rnp.sum(rnp.sin(x * weight) * weight))(weight)

    plain, twice = (len(program.serialize(vjp_order=n)) for n in (0, 2))

    assert twice < plain + 20_000 < 2 * 4 * 10_000


SIZES = {"n": (1, 64), "m": (0, "n"), "k": (2, None)}


def test_open_sizes_keep_their_ranges_and_hold_in_calls():
    def function(x: Any, y: Any) -> Any:
        return x[: y.shape[0]] + y, rnp.sum(x, 0)

    original = rune.export(function)(rnp.ones((5, 3)), rnp.ones((2, 3)), dims=SIZES, in_dims=("n,k", "m,k"))

    copy = reloaded(original)

    assert copy.in_avals == original.in_avals
    assert all(bound in str(copy.program) for bound in ("n in 1..64", "k in 2..inf", "m in 0..n"))
    for n, m, k in ((1, 0, 2), (64, 64, 3), (7, 5, 11)):
        x, y = rnp.arange(1.0 * n * k).reshape(n, k), rnp.ones((m, k))
        assert all(map(same_bits, copy.call(x, y), function(x, y)))
    with pytest.raises(ValueError, match=r"call: cannot call function with m = 8 .m in 0..n"):
        copy.call(rnp.ones((7, 3)), rnp.ones((8, 3)))
    with pytest.raises(ValueError, match=r"n = 65 .n in 1..64"):
        copy.call(rnp.ones((65, 3)), rnp.ones((8, 3)))


def test_loops_branches_and_nested_programs_are_in_the_text():
    @rune.jit
    def function(x: Any, i: Any) -> Any:
        total, rows = rune.scan(lambda c, r: (c + r, rnp.sin(c)), x[0], x)
        power = rune.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] * 1.5), (0, total))[1]
        return rune.cond(i > 2, lambda v: v * 2, lambda v: v - 1, power), rows

    x = rnp.arange(12.0).reshape(4, 3)
    copy = reloaded(rune.export(function)(x, 1))

    for i in (0, 3, 7):
        assert all(map(same_bits, rune.tree.leaves(copy.call(x, i)), rune.tree.leaves(function(x, i))))


def test_loops_in_derivatives_are_in_the_text():
    def grown(x: Any, n: Any) -> Any:
        return rune.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, rnp.sin(s[1]) * x), (0, x))[1].sum()

    def rows(x: Any, n: Any) -> Any:
        return rune.scan(lambda c, r: (rnp.sin(c * r), c), x, rnp.stack([x, x + 1]))[0].sum() + grown(x, n)

    x = rnp.arange(1.0, 4.0)
    copy = reloaded(rune.export(rows)(x, 3), 2)

    assert np.allclose(rune.grad(copy.call)(x, 4), rune.grad(rows)(x, 4), rtol=1e-5)
    assert np.allclose(rune.jit(rune.grad(copy.call))(x, 4), rune.grad(rows)(x, 4), rtol=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_the_same_bits_from_a_file(seed: int):
    ways.from_a_file(ways.some(seed), seed)
