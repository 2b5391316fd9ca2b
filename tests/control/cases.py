"""Functions with control flow, each with the equivalent Python loop or branch.

A case is a smooth function of three arrays in f64: `w` f64[3], `h` f64[3], `xs` f64[4,3]. Its twin
is written with Python's `for`, `while` and `if` over the same operations: tests hold values,
derivatives and lanes of one against those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import Checkpoints, tree
from rune.core.interpreter import current, use
from tests.support.arrays import array
from tests.support.oracle import Oracle


@contextmanager
def interpreted() -> Iterator[None]:
    """Control flow interpreted step by step, with nothing compiled."""
    with use(Oracle(current())):
        yield


@dataclass(frozen=True)
class Case:
    """A function with control flow, and its twin without."""

    name: str
    function: Callable[..., Any]
    twin: Callable[..., Any]

    def __str__(self) -> str:
        return self.name


def arguments(seed: int = 0) -> list[Any]:
    """w, h, xs."""
    rng = np.random.default_rng(seed)
    return [array(rng.uniform(-1, 1, shape)) for shape in ((3,), (3,), (4, 3))]


def flat(function: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The floating results, as a list."""
    return lambda *args: [x for x in tree.leaves(function(*args)) if x.dtype == np.float64]


def _rows(xs: Any) -> list[Any]:
    return [xs[i] for i in range(xs.shape[0])]


# --- scan -------------------------------------------------------------------------------------


def _recurrence(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = rnp.tanh(w * c + x)
        return c, (c * x).sum()

    return rune.scan(step, h, xs)


def _recurrence_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for x in _rows(xs):
        h = rnp.tanh(w * h + x)
        ys.append((h * x).sum())
    return h, rnp.stack(ys)


def _backwards(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        a, n = c
        a = rnp.sin(w * a) + x * n
        return (a, n + 1), {"n": n, "y": a[0] * w.sum()}

    (a, _), ys = rune.scan(step, (h, 0), xs, reverse=True)
    return a, ys["y"]


def _backwards_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for n, x in enumerate(reversed(_rows(xs))):
        h = rnp.sin(w * h) + x * float(n)
        ys.append(h[0] * w.sum())
    return h, rnp.stack(ys[::-1])


def _no_rows(w: Any, h: Any, xs: Any) -> Any:
    return rune.scan(lambda c, _: (c * w + 1.0, c.sum()), h, None, 4)


def _no_rows_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for _ in range(4):
        ys.append(h.sum())
        h = h * w + 1.0
    return h, rnp.stack(ys)


def _no_carry(w: Any, h: Any, xs: Any) -> Any:
    return rune.scan(lambda c, x: (None, x * h * w), None, xs)[1]


def _no_carry_twin(w: Any, h: Any, xs: Any) -> Any:
    return rnp.stack([x * h * w for x in _rows(xs)])


def _invariant(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        m = rnp.exp(w) * h
        c = rnp.sin(c) * m + x
        return c, c * m

    return rune.scan(step, h, xs)


def _invariant_twin(w: Any, h: Any, xs: Any) -> Any:
    ys, c, m = [], h, rnp.exp(w) * h
    for x in _rows(xs):
        c = rnp.sin(c) * m + x
        ys.append(c * m)
    return c, rnp.stack(ys)


def _nested_scans(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c, sums = rune.scan(lambda d, _: (rnp.cos(d) * w + x, d.sum()), c, None, 3)
        return c, sums.sum()

    return rune.scan(step, h, xs)


def _nested_scans_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for x in _rows(xs):
        total = 0.0
        for _ in range(3):
            total, h = total + h.sum(), rnp.cos(h) * w + x
        ys.append(total)
    return h, rnp.stack(ys)


def _mapped(w: Any, h: Any, xs: Any) -> Any:
    return rune.map(lambda x: rnp.sin(x) * w + h, xs, batch_size=3)


def _mapped_twin(w: Any, h: Any, xs: Any) -> Any:
    return rnp.stack([rnp.sin(x) * w + h for x in _rows(xs)])


def _affine(a: Any, b: Any) -> Any:
    return a[0] * b[0], a[1] * b[0] + b[1]


def _prefixes(w: Any, h: Any, xs: Any) -> Any:
    return rune.associative_scan(_affine, (xs * w, xs + h))


def _prefixes_twin(w: Any, h: Any, xs: Any) -> Any:
    total, prefixes = None, []
    for pair in zip(_rows(xs * w), _rows(xs + h)):
        total = pair if total is None else _affine(total, pair)
        prefixes.append(total)
    return rnp.stack([a for a, _ in prefixes]), rnp.stack([b for _, b in prefixes])


# --- cond -------------------------------------------------------------------------------------


def _two_ways(w: Any, h: Any, xs: Any) -> Any:
    def both(a: Any, b: Any) -> Any:
        return a * b, rnp.sin(a).sum()

    def other(a: Any, b: Any) -> Any:
        return rnp.exp(a) + b, (b * xs[0]).sum()

    return rune.cond(h.sum() > 0, both, other, w, h), rune.cond(h.sum() > 0, other, both, w, h)


def _two_ways_twin(w: Any, h: Any, xs: Any) -> Any:
    first = w * h, rnp.sin(w).sum()
    second = rnp.exp(w) + h, (h * xs[0]).sum()
    return (first, second) if bool(h.sum() > 0) else (second, first)


def _three_ways(w: Any, h: Any, xs: Any) -> Any:
    ways = [lambda v, x: rnp.sin(v) * w, lambda v, x: v * x, lambda v, x: rnp.exp(-v * v) + h]

    def step(c: Any, x: Any) -> Any:
        i, v = c
        return (i + 1, rune.switch(i % 3, ways, v, x)), v[0]

    (_, v), ys = rune.scan(step, (0, h), xs)
    return v, ys


def _three_ways_twin(w: Any, h: Any, xs: Any) -> Any:
    v, ys = h, []
    for i, x in enumerate(_rows(xs)):
        ys.append(v[0])
        v = (rnp.sin(v) * w, v * x, rnp.exp(-v * v) + h)[i % 3]
    return v, rnp.stack(ys)


def _deciding(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        c = rune.cond(c.sum() > x.sum(), lambda c: c * w, lambda c: rnp.sin(c) + x, c)
        return c, c

    return rune.scan(step, h, xs)


def _deciding_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for x in _rows(xs):
        h = h * w if bool(h.sum() > x.sum()) else rnp.sin(h) + x
        ys.append(h)
    return h, rnp.stack(ys)


# --- while ------------------------------------------------------------------------------------


def _counted(w: Any, h: Any, xs: Any) -> Any:
    def body(state: Any) -> Any:
        i, v = state
        return i + 1, rnp.sin(v) * w + v * 0.5

    return rune.while_loop(lambda s: s[0] < 7, body, (0, h), reverse=Checkpoints(2))[1]


def _counted_twin(w: Any, h: Any, xs: Any) -> Any:
    for _ in range(7):
        h = rnp.sin(h) * w + h * 0.5
    return h


def _growing(w: Any, h: Any, xs: Any) -> Any:
    def body(v: Any) -> Any:
        return v * 1.5 + w * 0.1

    return rune.while_loop(lambda v: (v * v).sum() < 40.0, body, h, reverse=Checkpoints(4))


def _growing_twin(w: Any, h: Any, xs: Any) -> Any:
    while bool((h * h).sum() < 40.0):
        h = h * 1.5 + w * 0.1
    return h


def _nested_loops(w: Any, h: Any, xs: Any) -> Any:
    def outer(state: Any) -> Any:
        i, v = state

        def inner(s: Any) -> Any:
            return s[0] + 1, rnp.tanh(s[1] * w) + v

        u = rune.while_loop(lambda s: s[0] < i, inner, (0, v), reverse=Checkpoints(2))[1]
        return i + 1, u

    return rune.while_loop(lambda s: s[0] < 4, outer, (0, h), reverse=Checkpoints(2))[1]


def _nested_loops_twin(w: Any, h: Any, xs: Any) -> Any:
    for i in range(4):
        u = h
        for _ in range(i):
            u = rnp.tanh(u * w) + h
        h = u
    return h


def _counted_at_run_time(w: Any, h: Any, xs: Any) -> Any:
    count = rnp.asarray(5)
    return rune.fori_loop(rnp.asarray(0), count, lambda i, v: v * w + i * xs[i % 4], h)


def _counted_at_run_time_twin(w: Any, h: Any, xs: Any) -> Any:
    v = h
    for i in range(5):
        v = v * w + float(i) * xs[i % 4]
    return v


def _scan_in_while(w: Any, h: Any, xs: Any) -> Any:
    def body(state: Any) -> Any:
        i, v = state
        return i + 1, rune.scan(lambda a, x: (rnp.sin(a * w) + x, None), v, xs)[0]

    return rune.while_loop(lambda s: s[0] < 3, body, (0, h))[1]


def _scan_in_while_twin(w: Any, h: Any, xs: Any) -> Any:
    for _ in range(3):
        for x in _rows(xs):
            h = rnp.sin(h * w) + x
    return h


def _while_in_scan(w: Any, h: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        def body(s: Any) -> Any:
            return s[0] + 1, rnp.cos(s[1]) * w + x

        v = rune.while_loop(lambda s: s[0] < 3, body, (0, c))[1]
        return v, v.sum()

    return rune.scan(step, h, xs)


def _while_in_scan_twin(w: Any, h: Any, xs: Any) -> Any:
    ys = []
    for x in _rows(xs):
        for _ in range(3):
            h = rnp.cos(h) * w + x
        ys.append(h.sum())
    return h, rnp.stack(ys)


CASES: tuple[Case, ...] = (
    Case("recurrence", _recurrence, _recurrence_twin),
    Case("backwards", _backwards, _backwards_twin),
    Case("without rows", _no_rows, _no_rows_twin),
    Case("without a carry", _no_carry, _no_carry_twin),
    Case("invariant", _invariant, _invariant_twin),
    Case("nested scans", _nested_scans, _nested_scans_twin),
    Case("map in batches", _mapped, _mapped_twin),
    Case("prefixes", _prefixes, _prefixes_twin),
    Case("two ways", _two_ways, _two_ways_twin),
    Case("three ways in a scan", _three_ways, _three_ways_twin),
    Case("deciding at every step", _deciding, _deciding_twin),
    Case("counted", _counted, _counted_twin),
    Case("until it has grown", _growing, _growing_twin),
    Case("nested loops", _nested_loops, _nested_loops_twin),
    Case("counted at run time", _counted_at_run_time, _counted_at_run_time_twin),
    Case("scan in while", _scan_in_while, _scan_in_while_twin),
    Case("while in scan", _while_in_scan, _while_in_scan_twin),
)
