"""Calls that NumPy and rune.numpy both understand: one lambda serves both.

A case names its arguments by kind and shape. `smooth` says that the derivative with
respect to every floating argument exists at the points drawn; `static` that the call needs
concrete values, so that it can be neither jitted nor batched; `plain` that only these sizes and
dtypes are tried, because a call is slow. Of the generated variants `keeps` names the sizes that
mean something, and what: they stay as they are; `without` the variants that make no sense, by
patterns of their labels, and why. `slack` widens the tolerances, with a comment that says why.
`module` is the pair of libraries that understand the call, and what it is handed: with "scipy"
that is scipy or rune.scipy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

# The variants left out for a case that compiles a separate loop for each shape and dtype.
LOOP: Mapping[str, str] = dict.fromkeys(
    ("every other", "reversed", "by columns", "views *", "bool", "[iu]*", "*f16"), "its arguments are taken as anywhere"
)


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


_ORACLES = {"lax": "tests.lax.meanings"}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One call: call(np, *arrays) and call(rnp, *arrays) mean the same."""

    name: str
    call: Callable[..., Any]
    specs: tuple[Spec, ...]
    smooth: bool = True
    static: bool = False
    plain: bool = False
    keeps: Mapping[int, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)
    slack: float = 1.0
    module: str = "numpy"

    def __str__(self) -> str:
        return self.name

    @property
    def oracle(self) -> Any:
        """NumPy, SciPy, or the meanings of rune.lax in them."""
        return import_module(_ORACLES.get(self.module, self.module))

    @property
    def ours(self) -> Any:
        """rune.numpy or rune.scipy."""
        return import_module(f"rune.{self.module}")


def case(name: str, call: Callable[..., Any], *specs: Spec, **flags: Any) -> Case:
    """A case; `flags` are the other fields of Case."""
    return Case(name, call, specs, **flags)


def named(names: str, *specs: Spec, **flags: Any) -> list[Case]:
    """A case for each function (`linalg.inv` is one of a module within), called on the arguments
    and nothing else."""
    return [Case(name, lambda xp, *xs, name=name: attrgetter(name)(xp)(*xs), specs, **flags) for name in names.split()]
