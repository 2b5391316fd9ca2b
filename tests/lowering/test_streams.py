"""Streams: maximum, sum of exponentials and weighted sum in one pass over values never stored.

Which code becomes a stream and which does not, its kernel, and that its values are those of NumPy
in f64, for all sizes, masks and hard numbers: run by the kernel interpreter, which checks races and
bounds. tests/laws/test_attention.py has the laws for executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
from rune import dtypes, nn
from rune import numpy as rnp
from rune.errors import CheckError
from rune.lowering.build import streams
from rune.lowering.build.flatten import flatten
from rune.lowering.build.streams import build_stream
from rune.lowering.build.streams.choice import choose_tile
from rune.lowering.build.streams.panels import panels_of
from rune.lowering.build.streams.tile import Tile
from rune.lowering.explain import Lowered
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import AddressSpace, Alloc
from rune.lowering.kernel.rewrite import walk, walk_expr
from rune.lowering.kernelize.reciprocals import multiply_by_reciprocals
from rune.lowering.kernelize.scores import find_components
from rune.lowering.kernels import Kernel, Reduce, Stream, Sum
from rune.lowering.kernels_check import check_kernel
from rune.lowering.kernels_parse import parse, parse_program
from rune.lowering.kernels_text import program_text, to_text
from rune.lowering.stages import stages
from tests.support.attention import Case, attention, gradient, gradient_of_squares
from tests.support.close import near
from tests.support.lowering import run_kernel_program, run_plan, target
from tests.support.sampling import IS_WHOLE, each_value

GPU = replace(target(language="cuda"), cores=4, threads_per_workgroup=1024, shared_bytes=1 << 17)
SMALL = replace(GPU, shared_bytes=1 << 14)
CASES = (
    Case(1, 5, 7, 1, 1, 3),
    Case(2, 13, 67, 2, 1, 5),
    Case(1, 67, 129, 2, 2, 17),
    Case(1, 1, 131, 3, 3, 8),
    Case(2, 9, 65, 4, 2, 8),
    Case(1, 64, 64, 1, 1, 64),
    Case(1, 2, 33, 1, 1, 1),
)


def lowered(function: Callable[..., Any], *args: Any, device: Any = GPU) -> Lowered:
    return stages(rune.jit(function).traced(*map(in_full, args)).program, device, check=True)


def in_full(x: np.ndarray) -> Any:
    """The array with its own dtype; NumPy's of 64 bits would arrive with 32."""
    return rnp.asarray(x, dtype=x.dtype)


def run(function: Callable[..., Any], *args: np.ndarray, device: Any = GPU) -> list[np.ndarray]:
    """The results by the interpreter of kernel code, which the kernels' definition confirms."""
    trace = rune.jit(function).traced(*map(in_full, args))
    result = stages(trace.program, device, check=True)
    arguments = [*map(np.asarray, trace.captured), *args, *(np.asarray(c) for _, c in trace.program.constants)]
    out = run_plan(result.plan, arguments)
    for a, b in zip(out, run_kernel_program(result.kernels, arguments), strict=True):
        relative = 2e-2 if a.dtype.itemsize < 4 else 2e-5
        near(b.astype(np.float64), a.astype(np.float64), relative=relative, why="sums associate differently")
    return out


def streams_of(result: Lowered) -> list[Stream]:
    return [s for k in result.kernels.kernels.values() for s in k.body if isinstance(s, Stream)]


# --- what becomes a stream --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES[:5], ids=str)
def test_attention_is_one_kernel_without_scores_in_memory(case: Case):
    result = lowered(attention(), *case.arrays())

    assert len(result.kernels.steps) == len(streams_of(result)) == 1
    assert result.plan.arena_bytes == 0


@pytest.mark.parametrize("causal", [False, True])
def test_its_gradient_is_four_kernels_with_memory_of_the_sequence(causal: bool):
    case = Case(1, 257, 263, 2, 2, 16)
    result = lowered(gradient(is_causal=causal), *case.arrays(), case.cotangent())

    # The largest scores and their sums; inner products of rows; two of the gradients; the third.
    assert len(result.kernels.steps) <= 4
    assert result.plan.arena_bytes < 257 * 263 * 4


def test_the_gradient_of_grouped_heads_takes_no_more_kernels():
    case = Case(1, 33, 65, 4, 2, 8)

    assert len(lowered(gradient(), *case.arrays(), case.cotangent()).kernels.steps) <= 4


@pytest.mark.parametrize("case", [Case(2, 33, 65, 4, 2, 8), Case(1, 9, 13, 1, 1, 4)], ids=str)
def test_inner_products_of_rows_with_the_result_need_no_scores(case: Case):
    result = lowered(gradient_of_squares(), *case.arrays())

    # The forward pass, two gradients of keys, and one of queries compute scores.
    assert len(streams_of(result)) == 3
    dots = [p for s in streams_of(result) for p in (*s.scores, *s.weights) if isinstance(p, Reduce)]
    assert len(dots) == 5


def test_scores_are_divided_by_no_sum_of_weights():
    result = lowered(gradient_of_squares(), *Case(1, 33, 65, 2, 2, 8).arrays())

    parts = [p for s in streams_of(result) for p in (*s.scores, *s.weights, *s.sums)]
    values = [p.weight if isinstance(p, Sum) else p.value for p in parts]
    assert not any(isinstance(e, Op) and e.name == "div" for x in values for e in walk_expr(x))


@pytest.mark.parametrize("has_shift", [False, True])
def test_only_sums_that_are_at_least_one_are_multiplied_by_their_reciprocals(has_shift: bool):
    def shares(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        m = rnp.max(s, 1, keepdims=True)
        e = rnp.exp(s - m) if has_shift else rnp.exp(s)
        return rnp.exp(s - m) @ v, (e / rnp.sum(e, 1, keepdims=True)) @ v

    program = lowered(shares, *(np.ones(s, np.float32) for s in ((9, 4), (70, 4), (70, 5)))).program
    rewrite = multiply_by_reciprocals(program, find_components(program))
    scores = [e for e in rewrite.equations if e.primitive.name == "div" and e.results[0].type.shape == (9, 70)]
    assert len(scores) == (0 if has_shift else 1)


def test_its_kernel_reads_like_the_algebra(expect):
    result = lowered(attention(is_causal=True), *Case(1, 7, 11, 1, 1, 4).arrays())

    (kernel,) = result.kernels.kernels.values()
    expect(
        to_text(kernel),
        """
        kernel max_sum_dot_reshape_0(x0: f32[1,7,1,4], x1: f32[1,11,1,4], x2: f32[1,11,1,4]) -> (y0: f32[1,7,1,4]) {
          for i0 in 7 parallel {
            t1: i32 = i32(index(i0))
            stream j0 in 11 {
              dot2 = sum contract k0 in 4: x0[0, i0, 0, k0] * x1[0, j0, 0, k0]
              t3: f32 = select(i32(index(j0)) <= t1, dot2 * 0.5_f32, -2.3819763e+38_f32)
              peak max4 = t3
              t5: f32 = exp(t3 - max4)
              total sum6 degree 1: t5
              total sum7[c0 in 4] degree 1: t5 by x2[0, j0, 0, c0]
            }
            write y0[0, i0, 0, j0] over j0 in 4: sum7[j0] / sum6
          }
        }""",
    )


def test_scores_that_are_returned_are_stored():
    def weights_too(q: Any, k: Any, v: Any) -> Any:
        p = nn.softmax(q @ k.T)
        return p @ v, p

    q, k, v = np.ones((9, 4), np.float32), np.ones((11, 4), np.float32), np.ones((11, 5), np.float32)

    assert not streams_of(lowered(weights_too, q, k, v))


def test_sums_of_many_columns_stay_dots():
    def wide(q: Any, k: Any, v: Any) -> Any:
        return nn.softmax(q @ k.T) @ v

    q, v = np.ones((9, 4), np.float32), np.ones((9, 300), np.float32)

    assert not streams_of(lowered(wide, q, q, v))


def test_a_processor_stores_scores():
    device = replace(GPU, is_processor=True)

    assert not streams_of(lowered(attention(), *CASES[0].arrays(), device=device))


@pytest.mark.parametrize(("queries", "keys", "streams"), [(1, 1031, 0), (31, 1031, 0), (32, 1031, 1), (2, 500, 1)])
def test_scores_of_few_queries_to_a_long_cache_are_stored(queries: int, keys: int, streams: int):
    case = Case(1, queries, keys, 1, 1, 128)

    assert len(streams_of(lowered(attention(), *case.arrays()))) == streams


def test_another_dependence_on_the_peak_takes_another_pass():
    def times_peak(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        m = rnp.max(s, 1, keepdims=True)
        return rnp.exp(s - m) @ v, (s * m) @ v

    q, k, v = (np.ones(s, np.float32) for s in ((9, 4), (11, 4), (11, 5)))
    first, second = streams_of(lowered(times_peak, q, k, v))

    assert [s.degree for s in first.sums] == [1]
    assert [s.degree for s in second.sums] == [0]


def test_a_square_of_weights_shrinks_twice():
    def squares(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.T
        e = rnp.exp(s - rnp.max(s, 1, keepdims=True))
        return (e * e) @ v / rnp.sum(e, 1, keepdims=True)

    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=s).astype(np.float32) for s in ((9, 4), (70, 4), (70, 5)))
    (stream,) = streams_of(lowered(squares, q, k, v))

    assert sorted(s.degree for s in stream.sums) == [1, 2]
    s = q.astype(float) @ k.T
    e = np.exp(s - s.max(1, keepdims=True))
    near((e * e) @ v / e.sum(1, keepdims=True), run(squares, q, k, v)[0], relative=1e-5, why="f32 sums")


# --- values -----------------------------------------------------------------------------------


@each_value()
@pytest.mark.parametrize("device", [GPU, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_stream_is_right_at_odd_sizes(case: Case, causal: bool, device: Any):
    out = run(attention(is_causal=causal), *case.arrays(), device=device)

    near(case.values(case.causal() if causal else None), out[0], relative=1e-5, why="f32 sums")


@each_value()
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", CASES[:5], ids=str)
def test_its_gradients_are_right_at_odd_sizes(case: Case, causal: bool):
    out = run(gradient(is_causal=causal), *case.arrays(), case.cotangent())

    for actual, expected in zip(out, case.gradients(case.causal() if causal else None), strict=True):
        near(expected, actual, relative=3e-5, why="f32 sums")


@each_value()
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("case", [*CASES[:5], Case(1, 9, 13, 1, 1, 4)], ids=str)
def test_gradients_that_depend_on_the_result_are_right(case: Case, causal: bool):
    mask = case.causal() if causal else None
    out = run(gradient_of_squares(is_causal=causal), *case.arrays())

    for actual, expected in zip(out, case.gradients(mask, cotangent=2 * case.values(mask)), strict=True):
        near(expected, actual, relative=1e-4, why="f32 sums, of a result that is one")


TILES = ((4, 8, 2, 4), (8, 8, 2, 2), (8, 4, 1, 2), (6, 9, 3, 3), (1, 8, 1, 8), (16, 16, 4, 8))


# Every other tile in odd numbers of parts, the others in even ones.
IN_PARTS = [(shape, p) for k, shape in enumerate(TILES) for p in (1, 2, 3, 4) if IS_WHOLE or (k + p) % 2]


@pytest.mark.parametrize(("shape", "parts"), IN_PARTS, ids=str)
def test_every_tile_in_parts_is_right(shape: tuple[int, ...], parts: int, monkeypatch: pytest.MonkeyPatch):
    def choose(kernel: Kernel, stream: Stream, target: Any) -> Tile:
        tile = choose_tile(kernel, stream, target)
        axis = kernel.domain[tile.axis]
        rows, keys, down, across = shape
        return Tile(tile.axis, rows, keys, down, across, parts, panels_of(kernel, stream, axis, rows, keys))

    monkeypatch.setattr(streams, "choose_tile", choose)
    case = Case(1, 21, 29, 2, 1, 12)

    out = run(attention(is_causal=True), *case.arrays())
    near(case.values(case.causal()), out[0], relative=1e-5, why="f32 sums")
    slopes = run(gradient(), *case.arrays(), case.cotangent())
    for actual, expected in zip(slopes, case.gradients(None), strict=True):
        near(expected, actual, relative=3e-5, why="f32 sums")


def test_symbolic_sequences_stream():
    sizes = {"t": (1, 4096), "s": (1, 4096)}
    shapes = ("_,t,_,_", "_,s,_,_", "_,s,_,_")
    case = Case(1, 65, 63, 2, 2, 8)
    program = rune.jit(attention(), dims=sizes, in_dims=shapes).traced(*map(rnp.asarray, case.arrays())).program
    result = stages(program, GPU, check=True)

    assert streams_of(result)
    for t, n in ((1, 1), (63, 64), (65, 63), (130, 129)):
        case = Case(1, t, n, 2, 2, 8)
        (out,) = run_plan(result.plan, case.arrays(), {"t": t, "s": n})
        near(case.values(None), out, relative=1e-5, why="f32 sums")


def softmax_rows(scores: np.ndarray) -> Callable[..., Any]:
    """Softmax of x yᵀ + scores times v, as a function of x, y and v."""

    def function(x: Any, y: Any, v: Any) -> Any:
        s = x @ y.T + scores
        e = rnp.exp(s - rnp.max(s, 1, keepdims=True))
        return e @ v / rnp.sum(e, 1, keepdims=True)

    return function


HARD: dict[str, list[tuple[int, Any, float]]] = {
    "a row of -inf": [(0, slice(None), -np.inf)],
    "a tile of -inf before the others": [(0, slice(0, 64), -np.inf), (1, slice(0, 65), -np.inf)],
    "-inf behind": [(0, slice(3, None), -np.inf)],
    "inf": [(2, 7, np.inf)],
    "inf in the last tile": [(2, 69, np.inf)],
    "NaN": [(1, 66, np.nan), (3, 0, np.nan)],
    "-inf and NaN": [(0, slice(None), -np.inf), (0, 69, np.nan)],
    "far apart": [(1, slice(None), -1e30), (1, 69, 1e30), (2, 0, 1e38), (2, 68, -1e38)],
    "the least floats": [(0, slice(0, 66), -3.4e38)],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HARD)
def test_hard_numbers_are_what_two_passes_make_of_them(name: str):
    scores = np.zeros((5, 70), np.float32)
    for row, columns, value in HARD[name]:
        scores[row, columns] = value
    rng = np.random.default_rng(2)
    x, y, v = (rng.normal(size=shape).astype(np.float32) for shape in ((5, 3), (70, 3), (70, 4)))
    result = lowered(softmax_rows(scores), x, y, v)
    assert len(streams_of(result)) == 1

    s = (x @ y.T + scores).astype(np.float64)
    e = np.exp(s - s.max(1, keepdims=True))
    out = run(softmax_rows(scores), x, y, v)[0]
    near(e @ v / e.sum(1, keepdims=True), out, relative=2e-5, why="f32 sums")


def test_infinite_and_nan_values_keep_their_weights():
    x, y = np.zeros((3, 2), np.float32), np.zeros((67, 2), np.float32)
    v = np.ones((67, 3), np.float32)
    v[66, 0], v[5, 1], v[66, 2] = np.inf, -np.inf, np.nan

    out = run(softmax_rows(np.zeros((3, 67), np.float32)), x, y, v)[0]
    np.testing.assert_array_equal(out, np.tile(np.array([np.inf, -np.inf, np.nan], np.float32), (3, 1)))


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16, dtypes.f64], ids=str)
def test_other_floats_stream(dtype: Any):
    case = Case(1, 9, 67, 2, 1, 8)
    arrays = case.arrays(dtype)
    result = lowered(attention(), *arrays)
    assert len(result.kernels.steps) == len(streams_of(result)) == 1

    out = run(attention(), *arrays)[0]
    relative = 1e-5 if dtype == dtypes.f64 else 2e-2
    near(case.values(None, arrays=arrays), out.astype(np.float64), relative=relative, why="weights are rounded")


# --- random chains ----------------------------------------------------------------------------

Step = Callable[[Any, Any, Any], Any]  # an array module, scores or weights, and an array beside them
BEFORE: dict[str, Step] = {
    "scale": lambda xp, s, z: s * np.float32(0.37),
    "bias": lambda xp, s, z: s + z,
    "mask": lambda xp, s, z: xp.where(z > 0, s, np.float32(-50)),
    "tanh": lambda xp, s, z: xp.tanh(s),
    "negate": lambda xp, s, z: -s,
    "square": lambda xp, s, z: s * s,
}
AFTER: dict[str, Step] = {
    "times": lambda xp, e, z: e * z,
    "over": lambda xp, e, z: e / (z * z + np.float32(0.5)),
    "drop": lambda xp, e, z: xp.where(z > 0, e, np.float32(0)),
    "negate": lambda xp, e, z: -e,
    "square": lambda xp, e, z: e * e,
    "twice": lambda xp, e, z: e + e * z,
    "of the score": lambda xp, e, z: e + z,
}


def chain(before: Sequence[str], after: Sequence[str], is_transposed: bool, xp: Any) -> Callable[..., Any]:
    """exp(s - max s) of some scores, then some steps; its sums, with weights and without."""

    def function(x: Any, y: Any, v: Any, z: Any) -> Any:
        s = xp.matmul(y, x.T).T if is_transposed else xp.matmul(x, y.T)
        for name in before:
            s = BEFORE[name](xp, s, z)
        e = xp.exp(s - xp.max(s, 1, keepdims=True))
        w = e
        for name in after:
            w = AFTER[name](xp, w, z)
        total = xp.sum(e, 1, keepdims=True)
        return xp.matmul(w / total, v), xp.sum(w, 1), xp.matmul(w.T, x[:, :1])

    return function


@settings(max_examples=10)
@given(
    before=st.lists(st.sampled_from(sorted(BEFORE)), max_size=3),
    after=st.lists(st.sampled_from(sorted(AFTER)), max_size=3),
    is_transposed=st.booleans(),
    sizes=st.tuples(*(st.integers(2, 70),) * 2, *(st.integers(1, 5),) * 2),
    seed=st.integers(0, 99),
)
def test_chains_in_any_clothes_are_right(
    before: list[str], after: list[str], is_transposed: bool, sizes: tuple[int, ...], seed: int
):
    t, n, d, c = sizes
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((t, d), (n, d), (n, c), (t, n))]

    out = run(chain(before, after, is_transposed, rnp), *arrays)
    expected = chain(before, after, is_transposed, np)(*(a.astype(np.float64) for a in arrays))
    for actual, y in zip(out, expected, strict=True):
        scale = max(1.0, float(np.abs(y).max()))
        near(y / scale, actual / scale, relative=2e-4, why="squares of f32 scores, in an exponential")


# --- text and checks --------------------------------------------------------------------------


def example() -> Kernel:
    (kernel,) = lowered(attention(is_causal=True), *CASES[0].arrays()).kernels.kernels.values()
    return kernel


def test_streams_are_read_back_from_text():
    result = lowered(gradient(is_causal=True), *CASES[1].arrays(), CASES[1].cotangent()).kernels

    assert parse_program(program_text(result)) == replace(result, not_fused=())
    assert parse(to_text(example())) == example()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: replace(s, peak=None), "is not a"),
        (lambda s: replace(s, sums=(replace(s.sums[0], degree=-1),)), "has degree -1"),
        (lambda s: replace(s, sums=(replace(s.sums[1], factor=None),)), "columns of nothing"),
        (lambda s: replace(s, sums=(*s.sums, s.sums[0])), "bound already"),
    ],
)
def test_check_refuses(change: Callable[[Stream], Stream], reason: str):
    kernel = example()
    body = tuple(change(s) if isinstance(s, Stream) else s for s in kernel.body)

    with pytest.raises(CheckError, match=reason):
        check_kernel(replace(kernel, body=body))


def test_a_result_does_not_overwrite_rows_that_are_still_read():
    def turned(q: Any, k: Any, b: Any) -> Any:
        s = rnp.einsum("bijd,bsd->bijs", q, k) + rnp.transpose(b, (0, 2, 1))[..., None]
        return rnp.sum(rnp.exp(s - rnp.max(s, 3, keepdims=True)) * s[..., :1], 3)

    def plain(q: Any, k: Any, b: Any) -> Any:
        s = rnp.einsum("bijd,bsd->bijs", q, k) * rnp.transpose(b, (0, 2, 1))[..., None]
        return rnp.sum(rnp.exp(s - rnp.max(s, 3, keepdims=True)), 3)

    args = [np.ones(shape, np.float32) for shape in ((2, 3, 3, 4), (2, 7, 4), (2, 3, 3))]
    result = lowered(plain, *args)
    assert streams_of(result)
    assert all(not code.aliases for code in result.codes.values())
    assert not streams_of(lowered(turned, *args))  # a slice of scores is not a sink


def test_a_group_has_no_array_of_its_threads():
    kernel = example()

    allocations = [s for s in walk(build_stream(flatten(kernel), GPU)) if isinstance(s, Alloc)]
    assert {a.space for a in allocations} == {AddressSpace.SHARED}


@pytest.mark.parametrize("limit", [1 << 14, 1 << 15, 48 << 10, 227 << 10])
def test_a_tile_fits_the_memory_of_a_group(limit: int):
    case = Case(2, 512, 512, 8, 8, 64)
    result = lowered(attention(), *case.arrays())
    (kernel,) = result.kernels.kernels.values()
    device = replace(GPU, shared_bytes=limit)

    bodies = build_stream(flatten(kernel), device)
    tile_bytes = sum(s.size * s.dtype.itemsize for s in walk(bodies) if isinstance(s, Alloc))
    assert tile_bytes <= limit
