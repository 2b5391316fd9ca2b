"""How calls that NumPy and rune.numpy both understand are spelled: one lambda serves both.

A case names the arguments it wants by kind and shape. `smooth` says that the derivative with
respect to every floating argument exists at the points drawn; `static` that the call needs
concrete values, so that it can be neither jitted nor batched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Spec:
    """An argument: what numbers, and how many."""

    kind: str
    shape: tuple[int, ...]

    def draw(self, rng: np.random.Generator, lanes: tuple[int, ...] = ()) -> np.ndarray:
        """Numbers of this kind; floating ones in f64."""
        return _DRAW[self.kind](rng, (*lanes, *self.shape))

    @property
    def is_real(self) -> bool:
        return self.kind not in ("i", "b", "n")


_DRAW: dict[str, Callable[..., np.ndarray]] = {
    "f": lambda rng, shape: rng.uniform(-3, 3, shape),
    "z": lambda rng, shape: rng.uniform(0.2, 2, shape) + 1j * rng.uniform(-2, -0.2, shape),
    "pos": lambda rng, shape: rng.uniform(0.5, 3, shape),
    "unit": lambda rng, shape: rng.uniform(-0.9, 0.9, shape),
    "big": lambda rng, shape: rng.uniform(1.1, 3, shape),
    "i": lambda rng, shape: rng.integers(-9, 9, shape).astype(np.int32),
    "n": lambda rng, shape: rng.integers(0, 3, shape).astype(np.int32),
    "b": lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
}


def f(*shape: int) -> Spec:
    return Spec("f", shape)


def pos(*shape: int) -> Spec:
    return Spec("pos", shape)


def unit(*shape: int) -> Spec:
    return Spec("unit", shape)


def big(*shape: int) -> Spec:
    return Spec("big", shape)


def i(*shape: int) -> Spec:
    return Spec("i", shape)


def n(*shape: int) -> Spec:
    """Small counts and positions, 0 to 2."""
    return Spec("n", shape)


def b(*shape: int) -> Spec:
    return Spec("b", shape)


@dataclass(frozen=True, slots=True)
class Case:
    """One call: call(np, *arrays) and call(rnp, *arrays) mean the same."""

    name: str
    call: Callable[..., Any]
    specs: tuple[Spec, ...]
    smooth: bool = True
    static: bool = False

    def __str__(self) -> str:
        return self.name


def case(name: str, call: Callable[..., Any], *specs: Spec, **flags: bool) -> Case:
    return Case(name, call, specs, **flags)


def named(names: str, *specs: Spec, smooth: bool = True) -> list[Case]:
    """A case for each function, called on the arguments and nothing else."""
    return [
        Case(name, lambda xp, *xs, name=name: getattr(xp, name)(*xs), specs, smooth)
        for name in names.split()
    ]


