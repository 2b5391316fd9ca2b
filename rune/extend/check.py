"""Checks on samples that the rules of an operation agree with each other.

    types      the type rule predicts the shapes and dtypes of the results
    meaning    the eager results equal those of the NumPy meaning
    jit        the compiled results equal them, too
    jvp        the tangents equal finite differences
    transpose  <ct, J t> = <J^T ct, t>, the dot-product test, for a linear operation's own rule too
    batch      the batched results equal those of a loop over the lanes

Each rule runs inside the transformations that use it, so what the check finds is what users get.
The report lists the rules that the operation lacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from rune import dtypes
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.core.primitive import NOT_DIFFERENTIABLE, Primitive
from rune.core.types import ArrayType
from rune.errors import ArgumentError, MissingRule, RuneError
from rune.records import dataclass
from rune.transforms.batching.vmap import vmap
from rune.transforms.compile.jit import jit
from rune.transforms.derivatives.directional import jvp
from rune.transforms.derivatives.vjp import vjp

LANES = 3
# Tolerated relative errors of results and of finite differences, by the dtype's size in bytes.
EXACT = {2: 2e-2, 4: 1e-5, 8: 1e-12}
DIFFERENCES = {2: 2e-1, 4: 2e-2, 8: 1e-5}


class Disagreement(RuneError, AssertionError):
    """Two rules of an operation contradict each other.

    >>> from rune import extend
    >>> issubclass(extend.Disagreement, AssertionError)
    True
    """


@dataclass(frozen=True, slots=True)
class Sample:
    """The operands, as arrays, and the parameters of one trial call."""

    number: int
    operands: tuple[Array, ...]
    params: Mapping[str, Any]

    def __str__(self) -> str:
        arguments = ", ".join([*(str(x.type) for x in self.operands), *(f"{k}={v}" for k, v in self.params.items())])
        return f"sample {self.number}: {arguments}"


@dataclass(frozen=True, slots=True)
class Report:
    """How many comparisons each rule passed, and which rules the operation lacks.

    >>> from rune import extend
    >>> extend.check(extend.primitive("twice", expand=lambda x: x + x), [(3.0,)])
    Report(tried={'types': 1, 'jit': 1, 'jvp': 1, 'transpose': 1, 'batch': 1}, missing=())
    """

    tried: Mapping[str, int]
    missing: tuple[str, ...]


@dataclass(slots=True)
class _Trial:
    """The comparisons made so far."""

    operation: Primitive
    comparisons: dict[str, int] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)

    def compare(self, rule: str, sample: Sample, reference: Sequence[Any], results: Sequence[Any], error: Any) -> None:
        """Raise Disagreement if results differ by more than the relative error for their dtype."""
        self.comparisons[rule] = self.comparisons.get(rule, 0) + 1
        if len(reference) != len(results):
            self.refuse(rule, sample, f"{len(results)} results, {len(reference)} expected")
        for number, (x, y) in enumerate(zip(reference, results, strict=True)):
            x, y = np.asarray(x), np.asarray(y)
            if x.shape != y.shape:
                self.refuse(rule, sample, f"result {number} has shape {y.shape}, {x.shape} expected")
            if not _are_close(x, y, error):
                self.refuse(rule, sample, f"result {number} is {_text_of(y)}, {_text_of(x)} expected")

    def refuse(self, rule: str, sample: Sample, why: str) -> None:
        """Raise Disagreement."""
        raise Disagreement(f"extend.check: cannot accept the rule {rule!r} of {self.operation} ({sample}; {why})")


def check(operation: Primitive, samples: Iterable[Any], device: str | None = None) -> Report:
    """Try every rule of an operation on samples, and report what was tried.

    samples: each is one operand, or a tuple or list of operands; a final dict holds the parameters
    device:  where the compiled operation runs

    Types: those of the samples, which the operation has to accept.
    Errors:  Disagreement (an AssertionError) names the rule, the sample and what differs;
             ArgumentError if `operation` is not a primitive.

    >>> import numpy as np
    >>> from rune import extend
    >>> wrong = extend.primitive(
    ...     "square", types=lambda x: x, meaning=np.square, jvp=[lambda t, x, y: t * x]
    ... )
    >>> try:
    ...     extend.check(wrong, [(np.float32(3),)])
    ... except extend.Disagreement as error:
    ...     print(error.message[:50])
    extend.check: cannot accept the rule 'jvp' of squa
    """
    if not isinstance(operation, Primitive):
        raise ArgumentError(f"extend.check: cannot try {type(operation).__name__} (an operation required)")
    trial = _Trial(operation)
    for number, arguments in enumerate(samples):
        sample = _sample(number, tuple(arguments) if isinstance(arguments, tuple | list) else (arguments,))
        for rule in (_types, _meaning, _jit, _jvp, _transpose, _batch):
            try:
                rule(trial, sample, device)
            except MissingRule:
                trial.missing.add(rule.__name__[1:])
    return Report(trial.comparisons, tuple(sorted(trial.missing)))


def _sample(number: int, arguments: tuple[Any, ...]) -> Sample:
    params = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}
    operands = arguments[:-1] if params else arguments
    arrays = tuple(x if isinstance(x, Array) else as_array(x, type_of(x).dtype) for x in operands)
    return Sample(number, arrays, params)


def _results(operation: Primitive, sample: Sample) -> Callable[..., list[Any]]:
    """The operation as a function of its operands alone, which returns a list of results."""

    def function(*operands: Any) -> list[Any]:
        out = operation(*operands, **sample.params)
        return list(out) if operation.multiple_results else [out]

    return function


# --- the rules --------------------------------------------------------------------------------


def _types(trial: _Trial, sample: Sample, device: str | None) -> None:
    rule_result = trial.operation.type_rule(*(x.type for x in sample.operands), **sample.params)
    types: Sequence[ArrayType] = rule_result if trial.operation.multiple_results else (rule_result,)
    results = _numpy(trial.operation, sample) or _results(trial.operation, sample)(*sample.operands)
    trial.comparisons["types"] = trial.comparisons.get("types", 0) + 1
    actual = [ArrayType(np.shape(x), np.asarray(x).dtype) for x in results]
    if [(t.shape, t.dtype) for t in types] != [(t.shape, t.dtype) for t in actual]:
        prediction, outcome = (", ".join(map(str, ts)) for ts in (types, actual))
        trial.refuse("types", sample, f"it predicts {prediction}, the results are {outcome}")


def _meaning(trial: _Trial, sample: Sample, device: str | None) -> None:
    reference = _numpy(trial.operation, sample)
    if reference is None:
        return
    trial.compare("meaning", sample, reference, _results(trial.operation, sample)(*sample.operands), EXACT)


def _numpy(operation: Primitive, sample: Sample) -> list[np.ndarray] | None:
    """The results of the NumPy meaning or reference; None for an operation without either."""
    meaning = getattr(operation, "meaning", None) or operation.reference
    if meaning is None:
        return None
    with np.errstate(all="ignore"):
        out = meaning(*(np.array(x) for x in sample.operands), **sample.params)
    return [*map(np.asarray, out)] if operation.multiple_results else [np.asarray(out)]


def _jit(trial: _Trial, sample: Sample, device: str | None) -> None:
    function = _results(trial.operation, sample)
    reference = _numpy(trial.operation, sample) or function(*sample.operands)
    trial.compare("jit", sample, reference, jit(function, device=device)(*sample.operands), EXACT)


def _jvp(trial: _Trial, sample: Sample, device: str | None) -> None:
    function = _results(trial.operation, sample)
    for tangents in _directions(trial.operation, sample):
        slopes, outs = jvp(function, sample.operands, tangents)[1], function(*sample.operands)
        moving = [i for i, o in enumerate(outs) if type_of(o).dtype in dtypes.INEXACT]
        differences = _differences(trial.operation, sample, tangents)
        trial.compare("jvp", sample, [differences[i] for i in moving], [slopes[i] for i in moving], DIFFERENCES)


def _differences(operation: Primitive, sample: Sample, tangents: Sequence[Any]) -> list[np.ndarray]:
    """(f(x + h t) - f(x - h t)) / 2h, computed in 64 bits if the operation has a NumPy meaning."""
    wide = getattr(operation, "meaning", None) is not None
    size = 8 if wide else min(x.type.dtype.itemsize for x in sample.operands if _moves(x))
    # About the cube root of epsilon, where the errors of truncation and of rounding are equal.
    step = {2: 0.1, 4: 5e-3, 8: 1e-6}[size]

    def at(shift: float) -> list[np.ndarray]:
        places = [_shifted(x, t, shift, wide) for x, t in zip(sample.operands, tangents, strict=True)]
        if wide:
            out = operation.meaning(*places, **sample.params)  # type: ignore[attr-defined]
            return [*map(np.asarray, out)] if operation.multiple_results else [np.asarray(out)]
        return [*map(np.asarray, _results(operation, sample)(*places))]

    return [_half_difference(a, b, step) for a, b in zip(at(step), at(-step), strict=True)]


def _half_difference(a: np.ndarray, b: np.ndarray, step: float) -> np.ndarray:
    return (a.astype(complex) - b) / (2 * step) if a.dtype.kind == "c" else (a.astype(float) - b) / (2 * step)


def _shifted(x: Array, tangent: Any, shift: float, wide: bool) -> Any:
    if not _moves(x):
        return np.array(x)
    dtype = np.dtype(complex if x.type.dtype.kind == "c" else float)
    place = np.array(x).astype(dtype) + shift * np.array(tangent).astype(dtype)
    return place if wide else as_array(place.astype(x.type.dtype), x.type.dtype)


def _moves(x: Array) -> bool:
    return x.type.dtype in dtypes.INEXACT


def _directions(operation: Primitive, sample: Sample) -> Iterator[list[Any]]:
    """Random tangents for one differentiable operand at a time, zeros elsewhere; then for all."""
    rng = np.random.default_rng(sample.number)
    rules = operation.jvp if isinstance(operation.jvp, tuple) else ()
    non_differentiable = {n for n, rule in enumerate(rules) if isinstance(rule, NOT_DIFFERENTIABLE)}
    numbers = [n for n, x in enumerate(sample.operands) if _moves(x) and n not in non_differentiable]
    # One by one first: in a joint direction the error of one operand can hide behind another.
    groups = [{n} for n in numbers] + ([set(numbers)] if len(numbers) > 1 else [])
    for moving in groups:
        yield [_tangent(x, rng if n in moving else None) for n, x in enumerate(sample.operands)]


def _tangent(x: Array, rng: np.random.Generator | None) -> Any:
    if not _moves(x):
        return np.zeros(x.shape, dtypes.float0)
    direction = np.zeros(x.shape) if rng is None else rng.uniform(-1, 1, x.shape)
    return as_array(np.asarray(direction).astype(x.type.dtype), x.type.dtype)


def _transpose(trial: _Trial, sample: Sample, device: str | None) -> None:
    function = _results(trial.operation, sample)
    rng = np.random.default_rng(sample.number)
    for tangents in _directions(trial.operation, sample):
        outs, pull = vjp(function, *sample.operands)
        cts = [_tangent(o, rng) for o in outs]
        forward = _inner(cts, jvp(function, sample.operands, tangents)[1])
        back = _inner(pull(cts), tangents)
        trial.compare("transpose", sample, [forward], [back], DIFFERENCES)


def _inner(first: Sequence[Any], second: Sequence[Any]) -> np.ndarray:
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(first, second, strict=True)]
    terms = [np.sum(a.astype(complex) * b) for a, b in pairs if a.dtype != dtypes.float0]
    return np.asarray(sum(terms, np.zeros((), complex)))


def _batch(trial: _Trial, sample: Sample, device: str | None) -> None:
    function = _results(trial.operation, sample)
    count = len(sample.operands)
    for flags in itertools.product((True, False), repeat=count):  # which operands are batched
        if any(flags):
            axes = tuple(0 if f else None for f in flags)
            lanes = [_lanes(x) if f else x for x, f in zip(sample.operands, flags, strict=True)]
            rows = [function(*(x[k] if f else x for x, f in zip(lanes, flags, strict=True))) for k in range(LANES)]
            reference = [np.stack([*map(np.asarray, column)]) for column in zip(*rows, strict=True)]
            trial.compare("batch", sample, reference, vmap(function, in_axes=axes)(*lanes), EXACT)


def _lanes(x: Array) -> Array:
    """A batch of different lanes, each a small change of the operand."""
    host = np.array(x)
    if _moves(x):
        rows = [host * (1 + 0.125 * k) for k in range(LANES)]
    else:  # the same numbers in another order, as indices have to stay in their range
        rows = [np.roll(host, k) for k in range(LANES)]
    return as_array(np.stack(rows).astype(host.dtype), host.dtype)


def _are_close(x: np.ndarray, y: np.ndarray, errors: Mapping[int, float]) -> bool:
    if x.dtype.kind in "biu" and y.dtype.kind in "biu":
        return bool(np.array_equal(x, y))
    parts = 2 if y.dtype.kind == "c" else 1
    size = min(x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1), y.dtype.itemsize // parts)
    wide = complex if "c" in (x.dtype.kind, y.dtype.kind) else float
    x, y = x.astype(wide), y.astype(wide)
    # Relative to the largest element: where terms cancel, small ones have the errors of large ones.
    finite = np.abs(x[np.isfinite(x)])
    error = errors[max(2, min(8, size))]
    return bool(np.allclose(y, x, rtol=error, atol=error * max(1e-3, finite.max(initial=0)), equal_nan=True))


def _text_of(x: np.ndarray) -> str:
    return np.array2string(x, precision=4, threshold=6, separator=", ").replace("\n", "")
