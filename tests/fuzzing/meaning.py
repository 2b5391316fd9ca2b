"""The meaning of `rnp`, `lax` and `rune` in NumPy, as far as random programs use them.

An oracle that shares nothing with rune. Floats are f64 and complex numbers c128 throughout:
programs that are compared bit for bit have small whole numbers, so that results depend neither on
the width of floats nor on the order of sums. Integers keep their width, because they wrap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzzing.meaning_windows import conv_general_dilated, reduce_window


class Values(np.ndarray):
    """An array with `.at`."""

    @property
    def at(self) -> _At:
        """Copies with some elements changed."""
        return _At(self)


class _At:
    def __init__(self, array: np.ndarray):
        self.array = array

    def __getitem__(self, index: Any) -> SimpleNamespace:
        changes = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
        methods: dict[str, Any] = {k: self._combined(index, u) for k, u in changes.items()}
        return SimpleNamespace(set=self._replaced(index), **methods)

    def _combined(self, index: Any, ufunc: np.ufunc) -> Callable[[Any], Any]:
        def change(updates: Any) -> Any:
            out = self.array.copy()
            ufunc.at(out, index, np.asarray(updates).astype(out.dtype))
            return out

        return change

    def _replaced(self, index: Any) -> Callable[[Any], Any]:
        def change(updates: Any) -> Any:
            out = self.array.copy()
            out[index] = np.asarray(updates).astype(out.dtype)
            return out

        return change


def wide(x: Any) -> Values:
    """An array as the oracle computes with it."""
    array = np.asarray(x)
    if array.dtype.kind not in "biu":
        array = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return array.view(Values)


def _corner(shape: Sequence[int], starts: Sequence[Any], sizes: Sequence[int]) -> tuple[slice, ...]:
    inside = [int(i) + d * (int(i) < 0) for d, i in zip(shape, starts)]
    corner = [min(max(i, 0), d - n) for d, i, n in zip(shape, inside, sizes)]
    return tuple(slice(i, i + n) for i, n in zip(corner, sizes))


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """A box; a start below 0 counts from the end, then the box is moved inside."""
    return x[_corner(x.shape, starts, sizes)]


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Any:
    """A copy with a box replaced."""
    out = x.copy()
    out[_corner(x.shape, starts, update.shape)] = update
    return out


def pad(x: Any, value: Any, widths: Sequence[tuple[int, int, int]]) -> Any:
    """lax.pad: between elements, then around; negative widths cut."""
    between = tuple(max(d + (d - 1) * g, 0) for d, (_, _, g) in zip(x.shape, widths))
    spread = np.full(between, value, x.dtype)
    spread[tuple(slice(None, None, g + 1) for _, _, g in widths)] = x
    around = np.pad(spread, [(max(a, 0), max(b, 0)) for a, b, _ in widths], constant_values=np.asarray(value))
    cut = [slice(max(-a, 0), d - max(-b, 0)) for d, (a, b, _) in zip(around.shape, widths)]
    return around[tuple(cut)].view(Values)


def broadcast_in_dim(x: Any, shape: Sequence[int], axes: Sequence[int]) -> Any:
    """Axis k of x becomes axis axes[k]."""
    sizes = [1] * len(shape)
    for size, axis in zip(x.shape, axes):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def _accumulated(ufunc: np.ufunc) -> Callable[..., Any]:
    def run(x: Any, axis: int = 0, reverse: bool = False) -> Any:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis), axis)
        return ufunc.accumulate(x, axis)

    return run


def associative_scan(combine: Callable[..., Any], x: Any, reverse: bool = False) -> Any:
    """Along the first axis."""
    if not len(x):
        return x
    rows = list(itertools.accumulate(x[::-1] if reverse else x, combine))
    prefixes = np.stack(rows)
    return prefixes[::-1] if reverse else prefixes


def top_k(x: Any, k: int) -> tuple[Any, Any]:
    """The largest of the last axis, 0.0 before -0.0, earlier ones first among equals."""
    order = np.lexsort((np.signbit(x), -x), axis=-1)[..., :k]
    return np.take_along_axis(x, order, -1), order


def fori_loop(low: Any, high: Any, body: Callable[..., Any], state: Any) -> Any:
    """A counted loop."""
    state = _wide(state)
    for i in range(int(low), int(high)):
        state = _wide(body(i, state))
    return state


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
    """A loop as long as the condition holds."""
    state = _wide(state)
    while condition(state):
        state = _wide(body(state))
    return state


def scan(body: Callable[..., Any], carry: Any, xs: Any, length: Any = None, reverse: bool = False) -> Any:
    """A loop over rows that keeps what each round yields."""
    rows = list(range(length)) if xs is None else list(xs)
    outputs, carry = [], _wide(carry)
    for row in reversed(rows) if reverse else rows:
        carry, out = body(carry, row if xs is None else wide(row))
        carry = _wide(carry)
        outputs.append(out)
    return carry, np.stack(outputs[::-1] if reverse else outputs)


def _wide(state: Any) -> Any:
    return tuple(map(wide, state)) if isinstance(state, tuple) else wide(state)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """One of the branches, the index clamped."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def cond(predicate: Any, on_true: Any, on_false: Any, *operands: Any) -> Any:
    """One of two branches."""
    return (on_true if predicate else on_false)(*operands)


def vmap(function: Callable[..., Any], in_axes: int = 0, out_axes: int = 0) -> Callable[..., Any]:
    """Lane after lane."""

    def lanes(*arrays: Any) -> Any:
        rows = zip(*(np.moveaxis(a, in_axes, 0) for a in arrays), strict=True)
        return np.stack([function(*map(wide, row)) for row in rows], out_axes)

    return lanes


def softmax(x: Any, axis: int = -1) -> Any:
    """Exponentials that add up to 1."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x: Any, axis: Any = None) -> Any:
    """The logarithm of the sum of exponentials."""
    return np.log(np.exp(x).sum(axis))


def _pure_callback(function: Callable[..., Any], shape: Any, *operands: Any, **_: Any) -> Any:
    return function(*operands)


def einsum(subscripts: str, *operands: Any) -> Any:
    """NumPy's, but axes that one operand alone has are summed first, as in JAX.

    So 'ab,b->b' of an infinity times 1 + 0 is infinite; NumPy, which multiplies first, gives NaN.
    """
    inputs, out = subscripts.split("->")
    terms, dtype = inputs.split(","), np.result_type(*operands)  # in which narrow integers do not wrap
    short_terms, sums = [], []
    for k, (term, operand) in enumerate(zip(terms, operands, strict=True)):
        elsewhere = {*out, *"".join(terms[:k] + terms[k + 1 :])}
        short_terms.append("".join(sorted({*term} & elsewhere)))
        sums.append(np.einsum(f"{term}->{short_terms[-1]}", operand, dtype=dtype))
    return np.einsum(f"{','.join(short_terms)}->{out}", *sums)


class _Numpy:
    """NumPy, with every float wide."""

    einsum = staticmethod(einsum)

    def __getattr__(self, name: str) -> Any:
        return {"float": np.float64, "bfloa": np.float64, "compl": np.complex128}.get(
            name[:5] if name[-1].isdigit() else "", getattr(np, name, None)
        )


_IDENTITY = lambda f, **_: f  # noqa: E731
_LAX = SimpleNamespace(
    dynamic_slice=dynamic_slice,
    dynamic_update_slice=dynamic_update_slice,
    pad=pad,
    broadcast_in_dim=broadcast_in_dim,
    rev=np.flip,
    cumsum=_accumulated(np.add),
    cummax=_accumulated(np.maximum),
    cummin=_accumulated(np.minimum),
    cumprod=_accumulated(np.multiply),
    associative_scan=associative_scan,
    top_k=top_k,
    fori_loop=fori_loop,
    while_loop=while_loop,
    scan=scan,
    switch=switch,
    cond=cond,
    map=lambda f, x: vmap(f)(x),
    add=np.add,
    max=np.maximum,
    min=np.minimum,
    mul=np.multiply,
    conv_general_dilated=conv_general_dilated,
    reduce_window=reduce_window,
)
MEANING: Mapping[str, Any] = {
    "rnp": _Numpy(),
    "lax": _LAX,
    "rune": SimpleNamespace(
        jit=_IDENTITY,
        checkpoint=_IDENTITY,
        vmap=vmap,
        pure_callback=_pure_callback,
        nn=SimpleNamespace(
            softmax=softmax,
            relu=lambda x: np.maximum(x, 0),
            sigmoid=lambda x: 1 / (1 + np.exp(-x)),
            logsumexp=logsumexp,
        ),
        ShapeDtypeStruct=lambda shape, dtype: None,
    ),
}
