"""Every primitive on every executor present, in every dtype that the device takes.

All samples of one family are compiled as one program; samples of elementwise functions are followed
by the values at which such functions go wrong. Each result is compared with the primitive's
reference: whole numbers and movement bit for bit, floats within the ulps of the table in
docs/accuracy.md. A primitive takes part by being in rune.ops.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import Device
from rune.core.primitive import Primitive
from rune.ops.complex_numbers import PART
from rune.ops.parts import PARTS
from rune.ops.scalars import NIBBLES, int_bounds
from tests.ops.calls import Sample
from tests.ops.samples import ELEMENTWISE, each_primitive, samples
from tests.support import denormals
from tests.support.accuracy import allowed, is_sum, step, table
from tests.support.arrays import array
from tests.support.close import close, near, ulp_distance
from tests.support.oracle import by_parts, reference
from tests.support.sampling import IS_WHOLE, one_in, sharing_kernels

COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]


def runs_on(device: Device, sample: Sample) -> bool:
    """Whether the device takes every dtype of the call."""
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    kinds = {t.dtype for t in (*sample.types, out)}
    return kinds <= device.target.program_dtypes


def tried(primitive: Primitive, device: Device) -> Sequence[Sample]:
    """The samples for the device: on the CPU all, elsewhere a sixth, the first, and the first that
    is tried at the edges.

    Executors that share kernels take every twelfth, each a different twelfth.
    """
    candidates = [s for s in samples(primitive) if runs_on(device, s)]
    if device.target.backend == "cpu":
        return candidates
    turns = sharing_kernels()
    if device.name not in turns or IS_WHOLE:
        sampled = one_in(6, candidates)
    else:
        sampled = candidates[1 + turns.index(device.name) :: 12]
    at_edges = [s for s in candidates if goes_to_edges(s)]
    firsts = [*candidates[:1], *at_edges[:1]]
    return [s for s in candidates if any(s is other for other in (*firsts, *sampled))]


@dataclass(frozen=True)
class Tried:
    """A sample and its results: of the values that it draws, and at the edges if tried there."""

    sample: Sample
    values: np.ndarray
    at_edges: np.ndarray | None


def computed(device: Device, calls: Sequence[tuple[Sample, Sequence[np.ndarray]]]) -> list[np.ndarray]:
    """The results of samples on their operands, from one compiled program."""

    def everything(*flat: Any) -> list[Any]:
        remaining = iter(flat)
        return [s.primitive(*(next(remaining) for _ in s.operands), **s.params) for s, _ in calls]

    operands = (array(x) for _, values in calls for x in values)
    return [x.numpy() for x in rune.jit(everything, device=device.name)(*operands)]


def operands_of(sample: Sample) -> list[np.ndarray]:
    """The values to compute with: two rows of the drawn ones and, if tried, the edges."""
    operands = sample.draw()
    if not goes_to_edges(sample):
        return operands
    pairs = zip(operands, edge_operands(sample), strict=True)
    rows = [np.concatenate([values.reshape(-1), edges]) for values, edges in pairs]
    return [np.append(x, x[: x.size % 2]).reshape(2, -1) for x in rows]


def separated(sample: Sample, result: np.ndarray) -> Tried:
    """The results of the drawn values and those at the edges, of a call with `operands_of`."""
    if not goes_to_edges(sample):
        return Tried(sample, result, None)
    shape, flat = sample.operands[0].shape, result.reshape(-1)
    count, edges = math.prod(shape), edge_operands(sample)[0].size
    return Tried(sample, flat[:count].reshape(shape), flat[count : count + edges])


@functools.cache  # a program of each primitive would take five times as long
def results_of(family: str, device: Device) -> dict[Primitive, list[Tried]]:
    """Those of the samples of all primitives of a family."""
    samples_by_primitive = {p: tried(p, device) for p in ops.PRIMITIVES if p.family == family}
    results = iter(computed(device, [(s, operands_of(s)) for group in samples_by_primitive.values() for s in group]))
    return {p: [separated(s, next(results)) for s in group] for p, group in samples_by_primitive.items()}


def agree(sample: Sample, result: np.ndarray) -> None:
    """Within the bound that docs/accuracy.md states."""
    expected = reference(sample.primitive, *sample.draw(), **sample.params)
    ulps = allowed(sample.primitive, expected.dtype, *(o.dtype for o in sample.operands))
    if ulps and is_sum(sample.primitive):
        limit = ulps * step(expected.dtype)
        near(expected, result, relative=limit, why=f"{sample}: summed in another order")
    else:
        close(expected, result, ulps=ulps, why=str(sample))


def test_every_name_in_the_table_of_accuracy_is_a_primitive_or_a_family():
    names = {name for p in ops.PRIMITIVES for name in (p.name, p.family)}

    assert set(table()) <= names
    assert {p.family for p in ops.PRIMITIVES} <= set(table())


@pytest.mark.parametrize("device", COMPUTING, ids=lambda d: d.name)
@each_primitive
def test_compiled_code_agrees_with_the_reference_in_every_dtype(primitive: Primitive, device: Device):
    results = results_of(primitive.family, device)[primitive]

    assert results, f"{device.name} takes no sample of {primitive.name}"
    for one in results:
        agree(one.sample, one.values)


# --- values at the edges ----------------------------------------------------------------------

FLOATS = [
    np.nan,
    np.inf,
    -np.inf,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    1.5,
    3.0,
    1e-40,
    -1e-40,
    1e-20,
    1e4,
    -1e4,
    88.0,
    -104.0,
    3e38,
    -3e38,
]
# max(0.0, -0.0) may be either zero; what tan does at 3e38 no polynomial promises.
OPEN_ZERO = ("max", "min")
# The arc cosine of ±inf + NaN i is NaN ± inf i, with either sign (C, G.6.1.1).
OPEN_SIGN = ("acos",)


def edges(dtype: np.dtype) -> np.ndarray:
    """The values at which functions of a dtype go wrong, if anywhere."""
    if dtype in dtypes.COMPLEX:
        parts = np.array(FLOATS[::2], PART[dtype])
        values = np.empty((len(parts), len(parts)), dtype)
        values.real, values.imag = parts[:, None], parts[None, :]
        return values.reshape(-1)
    if dtype in dtypes.FLOATING:
        with np.errstate(all="ignore"):
            return np.array(FLOATS).astype(dtype)
    if dtype == dtypes.bool_:
        return np.array([False, True])
    low, high = int_bounds(dtype)
    around = [v for v in (-2, -1, 0, 1, 2, 3, 7) if low <= v <= high]
    values = np.array([low, low + 1, *around, high - 1, high], NIBBLES.get(dtype, dtype))
    return values.astype(dtype)


def edge_operands(sample: Sample) -> list[np.ndarray]:
    """Every combination of edge values of the operands."""
    grids = np.meshgrid(*(edges(o.dtype) for o in sample.operands), indexing="ij")
    return [np.ascontiguousarray(g).reshape(-1) for g in grids]


@pytest.mark.parametrize("device", COMPUTING, ids=lambda d: d.name)
@each_primitive
def test_compiled_code_agrees_at_nan_infinity_zero_and_the_ends_of_the_range(primitive: Primitive, device: Device):
    trials = results_of(primitive.family, device)[primitive]
    results = [(one.sample, out) for one in trials if (out := one.at_edges) is not None]

    assert results or primitive.family not in ELEMENTWISE
    for sample, out in results:
        operands = edge_operands(sample)
        _agree_at_edges(sample, operands, _at_edges(sample, operands), out, device)


def goes_to_edges(sample: Sample) -> bool:
    """Whether a call is of an elementwise function and plain."""
    return sample.primitive.family in ELEMENTWISE and _is_plain(sample)


def _at_edges(sample: Sample, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The meaning; of complex functions, that of the formulas, which tests/ops holds against C."""
    if sample.primitive in PARTS and operands[-1].dtype in dtypes.COMPLEX:
        return by_parts(sample.primitive, *operands)
    return reference(sample.primitive, *operands, **sample.params)


def _is_plain(sample: Sample) -> bool:
    """False for most pairs of conversions and most powers, which the samples cover, and for keys,
    which have no special values."""
    if not dtypes.KEYS.isdisjoint(o.dtype for o in sample.operands):
        return False
    if any(o.dtype in dtypes.COMPLEX for o in sample.operands):
        return sample.primitive.name not in ("pow", "convert", "integer_pow", "bitcast")
    if sample.primitive.name == "convert":
        wide = (dtypes.f32, dtypes.f64, dtypes.i32, dtypes.u8, dtypes.bool_, dtypes.bf16)
        return {*(o.dtype for o in sample.operands), sample.params["dtype"]} <= set(wide)
    narrow = sample.types[-1].dtype in (dtypes.f8_e4m3, dtypes.f8_e5m2)
    return sample.params.get("exponent", 3) in (3, -2) and not (narrow and sample.params)


def _agree_at_edges(sample: Sample, operands: Any, expected: np.ndarray, out: np.ndarray, device: Device) -> None:
    if sample.primitive.name in OPEN_ZERO:
        expected, out = expected + np.zeros((), expected.dtype), out + np.zeros((), out.dtype)
    if sample.primitive.name in OPEN_SIGN and np.iscomplexobj(out):
        out = _with_open_signs(expected, out)
    ulps = allowed(sample.primitive, expected.dtype, *(o.dtype for o in operands))
    steps = ulp_distance(expected, out)
    if "denormals" in device.target.loose:
        steps = np.minimum(steps, denormals.steps(lambda xs: _at_edges(sample, xs), operands, out))
    worst = np.nonzero(steps > ulps)[0][:8]
    rows = [" ".join(str(v[i]) for v in (*operands, expected, out)) for i in worst]
    assert not rows, f"{sample}: operands, expected, found ({ulps} ulps)\n" + "\n".join(rows)


def _with_open_signs(expected: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The results, with the expected sign for infinities of complex numbers with a NaN."""
    imag = np.imag(out)
    is_open = np.isnan(np.real(expected)) & np.isinf(np.imag(expected)) & np.isinf(imag)
    result = out.copy()
    result.imag = np.where(is_open, np.imag(expected), imag)
    return result
