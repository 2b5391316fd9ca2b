"""Kernels on a driver that does not exist: interpreted, rune's own by their meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rune import dims
from rune.backends.shared.executor import evaluate
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.render import Rendered, render
from rune.lowering.kernel.interpret import interpret


def fits(kernel: Rendered, sizes: Mapping[str, int], blocks: int, threads: int) -> bool:
    """Whether a launch has a thread for each point, and no more than a kernel can bear."""
    points = evaluate(dims.product(kernel.grid), sizes)
    if kernel.workgroup:
        return (blocks, threads) == (points, kernel.workgroup[0])
    # Threads beyond the grid leave; where there is no grid, none may be beyond.
    return blocks * threads >= points if kernel.grid else (blocks, threads) == (1, 1)


class Kernels:
    """The part of a driver that runs them. conditions: of graphs, by handle"""

    conditions: dict[int, bool]

    def at(self, address: int, nbytes: int) -> np.ndarray:
        """Memory of the device."""
        raise NotImplementedError

    def kernel(self, function: Any, shape: tuple[int, int], table: int, *handle: int) -> None:
        """Run a kernel: of a plan by interpretation, rune's own by their meaning."""
        if function == "rune_swap":
            assert shape[0] * shape[1] >= handle[1] * handle[2] * handle[3]
            self.rune_swap(table, *handle)
            return
        if isinstance(function, str):
            getattr(self, function)(self.at(table, 24).view(np.uint64).tolist(), *handle)
            return
        count = len(function.params) + len(function.sizes)
        words = self.at(table, 8 * count).view(np.uint64).tolist()
        sizes = dict(zip(function.sizes, words[len(function.params) :], strict=True))
        assert fits(render(function, CUDA_C), sizes, *shape), (function.name, shape)
        arrays = []
        for p, address in zip(function.params, words):
            size = evaluate(p.size, sizes)
            arrays.append(self.at(address, size * p.dtype.itemsize).view(p.dtype))
        interpret(function, arrays, sizes)

    def i32(self, address: int) -> np.ndarray:
        return self.at(address, 4).view(np.int32)

    def rune_copy(self, words: list[int]) -> None:
        target, source, nbytes = words
        self.at(target, nbytes)[...] = self.at(source, nbytes)

    def rune_swap(self, target: int, source: int, a: int, b: int, pieces: int, unit: int) -> None:
        assert not (target | source) % unit
        old = self.at(source, a * b * pieces * unit).reshape(a, b, pieces * unit)
        self.at(target, old.size).reshape(b, a, pieces * unit)[...] = old.swapaxes(0, 1)

    def rune_store(self, words: list[int]) -> None:
        self.i32(words[0])[...] = words[1]

    def rune_advance(self, words: list[int]) -> None:
        self.i32(words[0])[...] += 1

    def rune_goes_on(self, words: list[int], handle: int) -> None:
        counter, (count,) = self.i32(words[0])[0], np.array(words[1:2], np.uint64).view(np.int64)
        holds = not words[2] or bool(self.at(words[2], 1)[0])
        self.conditions[handle] = bool((count < 0 or counter < count) and holds)

    def rune_is_odd(self, words: list[int], handle: int) -> None:
        self.conditions[handle] = bool(self.i32(words[0])[0] & 1)

    def rune_chosen(self, words: list[int], handle: int) -> None:
        number = int(self.i32(words[0])[0])
        self.conditions[handle] = min(max(number, 0), words[2]) == words[1]


def in_another_order(graph: list[tuple[Callable[[], None], list[int]]]) -> list[Callable[[], None]]:
    """The nodes as edges allow, else the last one first: a missing edge gives wrong numbers."""
    order: list[int] = []
    while len(order) < len(graph):
        ready = (k for k, (_, before) in enumerate(graph) if k not in order and set(before) <= set(order))
        order.append(max(ready))
    return [graph[k][0] for k in order]
