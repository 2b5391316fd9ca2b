"""Programs that people write, of symbolic sizes: one compilation is right for every size.

Each is compiled once for all sizes; values, gradients and lanes are those of the same function with
concrete sizes. tests/laws/test_symbolic_sizes.py does the same for random programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near

RANGES = {"n": (2, 64), "m": (1, 64)}
Shapes = Sequence[tuple[tuple[int, ...], ...]]  # of the arguments, call by call


@dataclass(frozen=True, slots=True)
class Case:
    """A function of arrays, the patterns of their axes, and the shapes to call it with."""

    name: str
    function: Callable[..., Any]
    in_dims: tuple[str, ...]
    shapes: Shapes

    def compiled(self, function: Callable[..., Any]) -> Any:
        """A function of the same arguments, compiled for all sizes."""
        letters = "".join(self.in_dims)
        dims = {name: range for name, range in RANGES.items() if name in letters}
        return rune.jit(function, dims=dims, in_dims=self.in_dims)

    def calls(self) -> list[list[Any]]:
        """The arguments of every call."""
        random = np.random.default_rng(0)
        return [[rnp.asarray(random.normal(size=s).astype(np.float32)) for s in shapes] for shapes in self.shapes]


def attention(q: Any, k: Any, v: Any) -> Any:
    return rune.nn.softmax(q @ k.T / 2) @ v


def causal(x: Any) -> Any:
    length = x.shape[0]
    mask = rnp.tril(rnp.ones((length, length), bool))
    return rune.nn.softmax(rnp.where(mask, x @ x.T, -rnp.inf)) @ x


def heads(x: Any) -> Any:
    by_head = x.reshape(*x.shape[:2], 2, 3).transpose(0, 2, 1, 3)
    return rnp.einsum("bhqd,bhkd->bhqk", by_head, by_head).reshape(-1, x.shape[1]).sum(0)


def recurrent(x: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = rnp.tanh(h * 0.5 + row)
        return h, h.sum()

    return rune.scan(step, rnp.zeros(x.shape[1]), x)


def every_other(x: Any) -> Any:
    def body(s: Any) -> Any:
        return s[0] + 2, s[1] + rnp.sin(x[s[0]])

    return rune.while_loop(lambda s: s[0] < x.shape[0], body, (0, 0.0))[1]


def dropped(x: Any) -> Any:
    mask = rune.random.bernoulli(rune.random.key(0), 0.5, x.shape)
    return rnp.where(mask, 2 * x, 0.0)


def with_noise(x: Any) -> Any:
    keys = rune.random.split(rune.random.key(0), x.shape[0])
    return rune.vmap(lambda key, row: row * rune.random.normal(key, row.shape))(keys, x)


N, PAIR = [((2,),), ((5,),), ((8,),)], [((2, 3),), ((5, 4),), ((3, 1),)]
BOTH = [((2,), (4,)), ((5,), (1,)), ((3,), (3,))]
CASES = [
    Case("joined", lambda x, y: rnp.concatenate([x, y, x])[1:], ("n", "m"), BOTH),
    Case("outer", lambda x, y: rnp.outer(x, y).T.reshape(-1), ("n", "m"), BOTH),
    Case("padded to both", lambda x, y: rnp.pad(x, (0, y.shape[0])) + rnp.pad(y, (x.shape[0], 0)), ("n", "m"), BOTH),
    Case("kron", rnp.kron, ("n", "m"), BOTH),
    Case("taken", lambda x, y: x[rnp.abs(y * 9).astype(int) % x.shape[0]], ("n", "m"), BOTH),
    Case("pairs", lambda x: x.reshape(-1, 2).sum(1), ("2*n",), [((4,),), ((10,),)]),
    Case("blocks", lambda x: x.reshape(x.shape[0] // 3, 12).max(1), ("3*n,4",), [((6, 4),), ((9, 4),)]),
    Case("halves", lambda x: [h * h.shape[0] for h in rnp.array_split(x, 2)], ("n",), N),
    Case("stencil", lambda x: x[:-1] - x[1:], ("n",), N),
    Case("every second", lambda x: x[::2].sum() + x[::-1], ("n",), N),
    Case("rolled", lambda x: rnp.roll(x, 2) * rnp.arange(x.shape[0]), ("n",), N),
    Case("tiled", lambda x: rnp.repeat(x, 3) + rnp.tile(x, 3), ("n",), N),
    Case("normalised", lambda x: (x - x.mean(0)) / rnp.sqrt(x.var(0) + 1), ("n,m",), PAIR),
    Case("sums", lambda x: rnp.cumsum(x, 0) + rnp.cumsum(x, 1), ("n,m",), PAIR),
    Case("turned", lambda x: x.T.reshape(x.shape[0], -1) @ x.T, ("n,m",), PAIR),
    Case("square", lambda x: rnp.trace(x) + rnp.triu(x) @ rnp.eye(x.shape[0]), ("n,n",), [((3, 3),), ((5, 5),)]),
    Case("attention", attention, ("n,_", "m,_", "m,_"), [((3, 4), (5, 4), (5, 2)), ((2, 4), (1, 4), (1, 2))]),
    Case("causal attention", causal, ("n",), [((3, 4),), ((6, 4),)]),
    Case("heads", heads, ("n,m,6",), [((2, 3, 6),), ((3, 1, 6),)]),
    Case("recurrent", recurrent, ("n,m",), PAIR),
    Case("a loop to the size", every_other, ("n",), N),
    Case("rows", lambda x: rune.map(lambda r: r @ r, x), ("n,m",), PAIR),
    Case("chosen", lambda x: rune.cond(x.sum() > 0, rnp.sin, rnp.cos, x), ("n",), N),
    Case("dropped", dropped, ("n,m",), PAIR),
    Case("with noise", with_noise, ("n,m",), PAIR),
    Case("shuffled", lambda x: rune.random.permutation(rune.random.key(0), x), ("n,m",), PAIR),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: sum(rnp.sum(y) for y in rune.tree.leaves(function(*args)))


def agree(expected: Any, actual: Any) -> None:
    near(expected, actual, relative=2e-4, absolute=1e-5, why="f32, sums in another order")


@every_case
def test_one_program_is_right_for_every_size(case: Case):
    f = case.compiled(case.function)

    for args in case.calls():
        agree(case.function(*args), f(*args))
    assert f.cache_size() == 1


@every_case
def test_gradients_are_compiled_once(case: Case):
    gradient = rune.grad(case.compiled(total(case.function)))

    for number, args in enumerate(case.calls()):
        with rune.counting() as counts:
            result = gradient(*args)
        agree(rune.grad(total(case.function))(*args), result)
        assert number == 0 or counts.compiles == 0


@every_case
def test_lanes_are_compiled_once(case: Case):
    lanes = rune.vmap(case.compiled(case.function))

    for number, args in enumerate(case.calls()):
        batches = [rnp.stack([x, 2 * x]) for x in args]
        with rune.counting() as counts:
            result = lanes(*batches)
        agree(rune.vmap(case.function)(*batches), result)
        assert number == 0 or counts.compiles == 0
