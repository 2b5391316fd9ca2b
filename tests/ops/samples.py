"""One sample line per primitive that its family cannot sample by itself.

`samples(primitive)` gives calls on which every law of tests/ops is tried. Elementwise primitives
are sampled automatically: their dtypes are those that the type rule accepts, their arity is that of
their derivative, and meanings_of_scalars.py says what they mean and where they are smooth. Every
other primitive needs a line in `SAMPLES`, and a missing one is an error.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.core.primitive import Joint, Primitive
from rune.core.types import ArrayType
from rune.errors import RuneError
from rune.ops import IndexDims
from rune.ops.random import CIPHER_WORDS
from rune.ops.random import WORDS as KEY_WORDS
from tests.ops.calls import Operand, Sample
from tests.ops.meanings_of_scalars import DOMAINS

each_primitive = pytest.mark.parametrize("primitive", ops.PRIMITIVES, ids=lambda p: p.name)
f32, f64, i32, bool_ = dtypes.f32, dtypes.f64, dtypes.i32, dtypes.bool_

# --- elementwise ------------------------------------------------------------------------------

ELEMENTWISE = frozenset("comparison selection arithmetic rounding bits conversion complex transcendental".split())
PARAMS: dict[str, list[dict[str, Any]]] = {
    "integer_pow": [{"exponent": e} for e in (0, 1, 2, 3, 7, -1, -2)],
    "reduce_precision": [{"exponent_bits": e, "mantissa_bits": m} for e, m in ((5, 10), (8, 7), (4, 3), (2, 1))],
    "convert": [{"dtype": d} for d in sorted(dtypes.ANY | dtypes.KEYS, key=dtypes.short)],
    "bitcast": [{"dtype": d} for d in sorted(dtypes.ANY, key=dtypes.short)],
}


def arity(primitive: Primitive) -> int:
    """How many operands a primitive of fixed arity takes."""
    assert isinstance(primitive.jvp, tuple), primitive
    return len(primitive.jvp)


def _accepts(primitive: Primitive, types: tuple[ArrayType, ...], params: Mapping[str, Any]) -> bool:
    try:
        primitive.type_rule(*types, **params)
    except RuneError:
        return False
    return True


def _dtypes_of(primitive: Primitive, dtype: np.dtype) -> tuple[np.dtype, ...]:
    count = arity(primitive)
    return (bool_, dtype, dtype) if primitive.family == "selection" else (dtype,) * count


def elementwise_samples(primitive: Primitive) -> Iterator[Sample]:
    """Every dtype that the type rule takes, each with every allowed parameter."""
    for dtype in sorted(dtypes.ANY | dtypes.KEYS, key=dtypes.short):
        for params in PARAMS.get(primitive.name, [{}]):
            sample = elementwise_sample(primitive, dtype, params, ((2, 3),) * arity(primitive))
            if _accepts(primitive, sample.types, params):
                yield sample


def elementwise_sample(primitive: Primitive, dtype: np.dtype, params: Mapping[str, Any], shapes: tuple) -> Sample:
    """One call, of these shapes."""
    domains = DOMAINS.get(primitive.name, ((-2.0, 2.0),) * len(shapes))
    kinds = _dtypes_of(primitive, dtype)
    operands = tuple(Operand(s, d, *b) for s, d, b in zip(shapes, kinds, domains, strict=True))
    return Sample(primitive, operands, params)


def shape_combinations(count: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Rank 0 and ranked operands in every mixture; and no elements."""
    yield from itertools.product(((), (3,)), repeat=count)
    yield ((0, 3),) * count


# --- the others -------------------------------------------------------------------------------


def _of(primitive: Primitive, *operands: Operand, **params: Any) -> Sample:
    return Sample(primitive, operands, params)


def _reductions(primitive: Primitive) -> list[Sample]:
    dtype = bool_ if primitive.name in ("reduce_and", "reduce_or") else f64
    x = Operand((2, 3, 4), dtype, 0.2, 2.0)
    subsets = (axes for n in range(4) for axes in itertools.combinations(range(3), n))
    samples_of_axes = [_of(primitive, x, axes=axes) for axes in subsets]
    return [*samples_of_axes, _of(primitive, Operand((3, 0), dtype), axes=(0,))]


def _cumulatives(primitive: Primitive) -> list[Sample]:
    x = Operand((3, 5), f64, 0.2, 2.0)
    return [_of(primitive, x, axis=a, reverse=r) for a in (0, 1) for r in (False, True)]


def _arguments(primitive: Primitive) -> list[Sample]:
    return [_of(primitive, Operand((3, 4), d), axis=a, dtype=i32) for a in (0, 1) for d in (f64, dtypes.i8, bool_)]


def _pads() -> list[Sample]:
    x, value = Operand((3, 4)), Operand(())
    amounts = [
        ((0, 0), (0, 0), (0, 0)),
        ((1, 2), (0, 3), (0, 0)),
        ((0, 0), (0, 0), (1, 2)),
        ((-1, 0), (0, -2), (0, 0)),
        ((2, -1), (-1, 3), (1, 0)),
        ((-2, -3), (1, 5), (2, 1)),
        ((-3, 0), (2, 0), (0, 0)),
    ]
    pads = [_of(ops.pad, x, value, low=a, high=b, interior=c) for a, b, c in amounts]
    empty = _of(ops.pad, Operand((0, 2)), value, low=(1, 0), high=(2, 0), interior=(3, 0))
    return [*pads, empty]


def _dots() -> list[Sample]:
    cases = [
        ((3,), (3,), (((0,), (0,)), ((), ()))),
        ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
        ((2, 3), (4, 5), (((), ()), ((), ()))),
        ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
        ((3, 2, 4), (4, 5, 3), (((0, 2), (2, 0)), ((), ()))),
        ((2, 3, 4, 5), (5, 2, 6, 3), (((3,), (0,)), ((0, 1), (1, 3)))),
        ((2, 3, 4, 5), (4, 2, 5, 3), (((3, 2), (2, 0)), ((1, 0), (3, 1)))),
        ((0, 3), (3, 2), (((1,), (0,)), ((), ()))),
        ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    ]
    return [_of(ops.dot_general, Operand(a), Operand(b), dimension_numbers=n) for a, b, n in cases]


# operand, indices, dims, slice sizes: rows; columns by pairs; windows; batching; all at once
INDEXINGS: list[tuple[tuple, tuple, IndexDims, tuple]] = [
    ((5,), (3, 1), IndexDims((), (0,), (0,)), (1,)),
    ((5,), (1,), IndexDims((0,), (), (0,)), (3,)),
    ((4, 3), (2, 1), IndexDims((1,), (0,), (0,)), (1, 3)),
    ((4, 3), (2, 2), IndexDims((), (0, 1), (1, 0)), (1, 1)),
    ((4, 5), (3, 2), IndexDims((0, 2), (), (0, 1)), (2, 3)),
    ((4, 5), (2, 3, 1), IndexDims((1,), (0,), (0,)), (1, 4)),
    ((2, 5), (2, 3, 1), IndexDims((), (1,), (1,), (0,), (0,)), (1, 1)),
    ((5, 2, 3), (4, 2, 1), IndexDims((0,), (0,), (0,), (1,), (1,)), (1, 1, 2)),
    ((2, 3), (2, 0), IndexDims((1, 2), (), ()), (2, 3)),
    ((0, 3), (0, 1), IndexDims((1,), (0,), (0,)), (1, 3)),
]


def result_shape(indices: tuple, dims: IndexDims, sizes: tuple) -> tuple[int, ...]:
    """The shape of a gather's result, or a scatter's updates."""
    dropped_axes = {*dims.collapsed, *dims.operand_batching}
    window = iter([s for a, s in enumerate(sizes) if a not in dropped_axes])
    batch = iter(indices[:-1])
    rank = len(indices) - 1 + len(sizes) - len(dropped_axes)
    return tuple(next(window) if i in dims.offset else next(batch) for i in range(rank))


def _indexing(primitive: Primitive, last_of: Any) -> list[Sample]:
    inside, anywhere = (0, 1), (-2, 6)
    modes = {"clip": anywhere, "fill": anywhere, "promise_in_bounds": inside}
    return [
        _of(
            primitive,
            Operand(x),
            Operand(i, i32, *reach),
            last_of(i, dims, sizes),
            dims=dims,
            slice_sizes=sizes,
            mode=mode,
        )
        for x, i, dims, sizes in INDEXINGS
        for mode, reach in modes.items()
    ]


def _gathers(primitive: Primitive) -> list[Sample]:
    return _indexing(primitive, lambda i, dims, sizes: Operand(()))


def _scatters(primitive: Primitive) -> list[Sample]:
    return _indexing(primitive, lambda i, dims, sizes: Operand(result_shape(i, dims, sizes)))


def _starts(count: int) -> tuple[Operand, ...]:
    return (Operand((), i32, -2, 6),) * count


def _dynamic_slices() -> list[Sample]:
    cases = [((5,), (3,)), ((4, 6), (2, 6)), ((2, 3, 4), (1, 2, 0)), ((), ())]
    return [_of(ops.dynamic_slice, Operand(x), *_starts(len(x)), sizes=s) for x, s in cases]


def _dynamic_updates() -> list[Sample]:
    cases = [((5,), (3,)), ((4, 6), (2, 6)), ((2, 3, 4), (1, 2, 0)), ((), ())]
    update = ops.dynamic_update_slice
    return [_of(update, Operand(x), Operand(u), *_starts(len(x))) for x, u in cases]


def _movements() -> dict[str, list[Sample]]:
    x = Operand((2, 3, 4))
    return {
        "broadcast": [
            _of(ops.broadcast, Operand(()), shape=(2, 3), axes=()),
            _of(ops.broadcast, Operand((3,)), shape=(2, 3, 4), axes=(1,)),
            _of(ops.broadcast, Operand((2, 1, 4)), shape=(5, 2, 3, 4), axes=(1, 2, 3)),
            _of(ops.broadcast, Operand((3, 2)), shape=(3, 4, 2), axes=(0, 2)),
            _of(ops.broadcast, Operand((1, 0)), shape=(3, 0), axes=(0, 1)),
        ],
        "reshape": [
            *(_of(ops.reshape, x, shape=s) for s in ((24,), (4, 3, 2), (6, 4), (2, 1, 12), (2, 3, 4))),
            _of(ops.reshape, Operand((1, 1)), shape=()),
            _of(ops.reshape, Operand((0, 4)), shape=(2, 0)),
        ],
        "transpose": [_of(ops.transpose, x, permutation=p) for p in itertools.permutations(range(3))],
        "slice": [
            _of(ops.slice_, Operand((5, 7)), start=a, limit=b, stride=s)
            for a, b, s in (
                ((0, 0), (5, 7), (1, 1)),
                ((1, 2), (4, 7), (1, 1)),
                ((0, 1), (5, 7), (2, 3)),
                ((2, 3), (2, 6), (1, 2)),
                ((4, 6), (5, 7), (3, 3)),
            )
        ],
        "pad": _pads(),
        "reverse": [_of(ops.reverse, x, axes=a) for a in ((), (0,), (0, 2), (2, 1, 0))],
        "concatenate": [
            _of(ops.concatenate, Operand((2, 3)), axis=0),
            _of(ops.concatenate, Operand((2, 3)), Operand((1, 3)), Operand((0, 3)), axis=0),
            _of(ops.concatenate, Operand((2, 3)), Operand((2, 1)), Operand((2, 4)), axis=1),
        ],
    }


def _sheared() -> list[Sample]:
    cases = [
        ((5, 3), (0,), (1,), (1,)),
        ((2, 9, 2, 3), (1,), (2,), (3,)),
        ((7, 6, 2, 3), (0, 1), (1, 2), (3, 1)),
        ((6, 7, 2, 3), (1, 0), (1, 2), (3, 1)),
        ((2, 3), (0,), (1,), (1,)),
    ]
    return [_of(ops.shear, Operand(x), axes=a, strides=s, dilations=d) for x, a, s, d in cases]


# array, kernel, strides, padding, dilations of both, groups of features and of batches
CONVOLUTIONS: list[tuple] = [
    ((2, 3, 5, 6), (4, 3, 3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1), (1, 1), (1, 1)),
    ((1, 2, 7), (3, 2, 2), (2,), ((2, -1),), (2,), (3,), (1, 1)),
    ((2, 4, 4, 5), (6, 2, 2, 3), (2, 1), ((0, 1), (1, 1)), (1, 2), (1, 1), (2, 1)),
    ((4, 2, 4, 5), (6, 2, 2, 3), (1, 3), ((-1, 1), (1, 1)), (1, 1), (2, 1), (1, 2)),
    ((2, 2, 3, 4, 3), (2, 1, 2, 1, 2), (1, 1, 1), ((0, 0),) * 3, (1,) * 3, (1,) * 3, (2, 1)),
    ((2, 3), (4, 3), (), (), (), (), (1, 1)),
    ((0, 2, 4), (3, 2, 2), (1,), ((0, 0),), (1,), (1,), (1, 1)),
]


def _convolutions() -> list[Sample]:
    plain = [_conv(*case, specs=(tuple(range(len(case[0]))),) * 3) for case in CONVOLUTIONS]
    orders = [
        ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)),
        ((1, 0, 2, 3), (1, 0, 3, 2), (1, 0, 2, 3)),
        ((3, 1, 0, 2), (0, 2, 1, 3), (3, 2, 1, 0)),
    ]
    permutations = [
        _conv(_ordered(x, specs[0]), _ordered(w, specs[1]), *settings, specs=specs)
        for specs in orders
        for x, w, *settings in (CONVOLUTIONS[n] for n in (0, 2, 3))
    ]
    return [*plain, *permutations]


def _ordered(shape: tuple[int, ...], spec: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[spec.index(axis)] for axis in range(len(shape)))


def _conv(
    x: tuple,
    w: tuple,
    strides: tuple,
    padding: tuple,
    lhs_dilation: tuple,
    rhs_dilation: tuple,
    groups: tuple,
    specs: tuple,
) -> Sample:
    return _of(
        ops.conv_general_dilated,
        Operand(x, f64, 0.2),
        Operand(w, f64, 0.2),
        strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        specs=specs,
        groups=groups,
    )


# operand, window, strides, padding, dilations of both
SLIDES: list[tuple] = [
    ((5, 6), (3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    ((2, 7), (1, 3), (1, 2), ((0, 0), (1, 1)), (1, 1), (1, 1)),
    ((4, 5), (2, 2), (2, 1), ((1, 0), (2, -1)), (2, 1), (1, 2)),
    ((6,), (3,), (3,), ((0, 0),), (1,), (2,)),
    ((3,), (1,), (1,), ((0, 0),), (1,), (1,)),
]


def _slides() -> list[Sample]:
    slides = []
    for combine in ("add", "mul", "max", "min", "and", "or"):
        dtype = i32 if combine in ("and", "or") else f64
        for shape, window, strides, padding, base, dilation in SLIDES:
            slides.append(
                _of(
                    ops.reduce_window,
                    Operand(shape, dtype, 0.2, 2.0),
                    combine=combine,
                    window=window,
                    strides=strides,
                    padding=padding,
                    base_dilation=base,
                    window_dilation=dilation,
                )
            )
    return slides


WORD = Operand((), dtypes.u32, 0, (1 << 32) - 1)
WORDS = Operand((2,), dtypes.u32, 0, (1 << 32) - 1)


def _random() -> dict[str, list[Sample]]:
    shapes = ((), (5,), (2, 3), (0, 2))
    kinds = [(Operand((), d), Operand((2,), d)) for d in dtypes.IMPL_OF]
    keys = [key for pair in kinds for key in pair]
    pairs = ((WORD, WORD), (WORDS, WORDS))
    return {
        "random_bits": [
            _of(ops.random_bits, key, shape=s, dtype=d)
            for one, several in kinds
            for key, s, d in (
                *((one, s, dtypes.u32) for s in shapes),
                (several, (3,), dtypes.u32),
                *((one, (3,), d) for d in (dtypes.u8, dtypes.u16, dtypes.u64)),
            )
        ],
        "random_split": [_of(ops.random_split, key, shape=s) for key in keys for s in shapes],
        "random_words": [_of(ops.random_words, key, count=n) for key in kinds[0] for n in (0, 1, 2, 7)],
        "random_fold_in": [
            _of(ops.random_fold_in, key, w, w) for key in keys for w in (WORD, *((WORDS,) if key.shape else ()))
        ],
        "random_clone": [_of(ops.random_clone, key) for key in keys],
        "random_seed": [_of(ops.random_seed, *pair, impl=g) for g in dtypes.KEY_OF for pair in pairs],
        "key_of_words": [_of(ops.key_of_words, *pair, impl=g) for g in dtypes.KEY_OF for pair in pairs],
        "key_word": [_of(ops.key_word, key, number=n) for key in keys for n in (0, 1)],
        **{word.name: _words(word) for words in CIPHER_WORDS.values() for word in words},
    }


def _words(word: Primitive) -> list[Sample]:
    """One word, several, and many counters under one key."""
    count = arity(word)
    operands = ((WORD,) * count, (WORDS,) * count, (WORD,) * KEY_WORDS + (WORDS,) * (count - KEY_WORDS))
    return [_of(word, *of_each) for of_each in operands]


SCATTERS = (ops.scatter, ops.scatter_add, ops.scatter_mul, ops.scatter_min, ops.scatter_max)
SAMPLES: dict[str, list[Sample]] = {
    **_movements(),
    **_random(),
    **{p.name: _reductions(p) for p in (ops.reduce_sum, ops.reduce_prod, ops.reduce_and, ops.reduce_or)},
    **{p.name: _reductions(p)[:-1] for p in (ops.reduce_max, ops.reduce_min)},
    **{p.name: _arguments(p) for p in (ops.argmax, ops.argmin)},
    **{p.name: _cumulatives(p) for p in (ops.cumsum, ops.cumprod, ops.cummax, ops.cummin)},
    "dot_general": _dots(),
    "shear": _sheared(),
    "conv_general_dilated": _convolutions(),
    "reduce_window": _slides(),
    "gather": _gathers(ops.gather),
    **{p.name: _scatters(p) for p in SCATTERS},
    "dynamic_slice": _dynamic_slices(),
    "dynamic_update_slice": _dynamic_updates(),
    "iota": [_of(ops.iota, shape=(2, 3), axis=a, dtype=d) for a in (0, 1) for d in (i32, f64)],
    "size": [_of(ops.BY_NAME["size"], size=7, dtype=d) for d in (i32, f64)],
    "stop_gradient": [_of(ops.stop_gradient, Operand((2, 3)))],
}


@functools.cache
def samples(primitive: Primitive) -> tuple[Sample, ...]:
    """Calls of a primitive in all its dtypes and kinds of parameters."""
    if primitive.name in SAMPLES:
        table_row = SAMPLES[primitive.name]
        return (*table_row, *_retyped(table_row[0]))
    if primitive.family not in ELEMENTWISE:
        raise AssertionError(f"{primitive.name}: no samples; add a line to SAMPLES in tests/ops/samples.py")
    table_row = tuple(elementwise_samples(primitive))
    assert table_row, f"{primitive.name}: its type rule takes no dtype at all"
    return table_row


def _retyped(sample: Sample) -> Iterator[Sample]:
    """The sample with its f64 operands in every other dtype that the type rule takes."""
    for dtype in sorted((dtypes.ANY | dtypes.KEYS) - {f64}, key=dtypes.short):
        operands = tuple(replace(o, dtype=dtype) if o.dtype == f64 else o for o in sample.operands)
        candidate = replace(sample, operands=operands)
        if operands != sample.operands and _accepts(sample.primitive, candidate.types, candidate.params):
            yield candidate


def smooth_samples(primitive: Primitive) -> tuple[Sample, ...]:
    """The calls in f64 and c128, whose derivatives are compared with differences."""
    smooth = [s for s in samples(primitive) if s.active and _all_double(s)]
    smooth.sort(key=lambda s: any(o.dtype in dtypes.COMPLEX for o in s.operands))
    if primitive.family in ELEMENTWISE and primitive.name != "convert":
        bases = {s.types[-1].dtype: s for s in reversed(smooth)}
        for base in reversed(bases.values()):
            smooth += [_reshaped(base, shapes) for shapes in shape_combinations(len(base.operands))]
    return tuple(smooth)


def _reshaped(sample: Sample, shapes: tuple) -> Sample:
    operands = tuple(replace(o, shape=s) for o, s in zip(sample.operands, shapes))
    return replace(sample, operands=operands)


def _all_double(sample: Sample) -> bool:
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    inexact = [t for t in (*sample.types, out) if t.dtype in dtypes.INEXACT]
    return all(t.dtype in (f64, dtypes.c128) for t in inexact)


def is_variadic(primitive: Primitive) -> bool:
    """Whether one derivative rule serves any number of operands."""
    return isinstance(primitive.jvp, Joint)
