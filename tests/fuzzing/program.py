"""A random program as a value: inputs, one line of Python a step, and what it returns.

The lines are ordinary code over `rnp`, `lax` and `rune`, so a program that fails is printed as it
would be written. Which modules those names stand for is the caller's: rune's own (RUNE), what they
mean in NumPy (meaning.py), or JAX's (tests/as_jax/random_programs).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

import rune
import rune.lax as lax
import rune.numpy as rnp
from tests.support.arrays import array

RUNE: Mapping[str, Any] = {"rune": rune, "rnp": rnp, "lax": lax}
_NAME = re.compile(r"(?<![\w.'])v\d+\b")
_BUILTIN = {"bfloat16": ml_dtypes.bfloat16}


def dtype_named(name: str) -> np.dtype:
    """The dtype, those of ml_dtypes included."""
    return np.dtype(_BUILTIN.get(name, name))


@dataclass(frozen=True, slots=True)
class Input:
    """An argument, and how its values are drawn: "whole", "hard" (NaN, infinities) or "smooth"."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    values: str = "whole"

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Values, never the same for two inputs of one generator."""
        dtype = dtype_named(self.dtype)
        if self.values == "smooth":
            return np.asarray(rng.normal(size=self.shape)).astype(dtype)
        low, high = {"b": (0, 2), "u": (0, 9)}.get(dtype.kind, (-4, 5))
        integers = rng.integers(low, high, self.shape)
        if dtype.kind == "c":
            return np.asarray(integers + 1j * rng.integers(low, high, self.shape)).astype(dtype)
        values = np.asarray(integers).astype(dtype)
        if self.values == "hard" and rnp.issubdtype(dtype, rnp.floating):
            special = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), self.shape)
            values = np.where(rng.random(self.shape) < 0.15, special, values).astype(dtype)
        return values


@dataclass(frozen=True, slots=True)
class Step:
    """A line: the names that it binds, and the expression. Several names take a tuple apart."""

    names: tuple[str, ...]
    text: str

    @property
    def operands(self) -> frozenset[str]:
        """The earlier names that the expression reads."""
        return frozenset(_NAME.findall(self.text))

    def __str__(self) -> str:
        return f"{', '.join(self.names)} = {self.text}"


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs, steps in order, and the names of its results."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    modules: Mapping[str, Any] = field(default_factory=lambda: RUNE, compare=False, repr=False)

    def names(self) -> tuple[str, ...]:
        """Everything that has a name, inputs first."""
        return (*(i.name for i in self.inputs), *self.intermediates())

    def intermediates(self) -> tuple[str, ...]:
        """The names that steps bind."""
        return tuple(name for step in self.steps for name in step.names)

    def dtypes_behind(self, name: str) -> set[str]:
        """The dtypes of a value and of all values that it depends on: any of them may round."""
        dtypes = _dtypes(self)
        dtypes_of_names = {i.name: {dtypes[i.name]} for i in self.inputs}
        for step in self.steps:
            names = set[str]().union(*(dtypes_of_names[operand] for operand in step.operands))
            dtypes_of_names |= {n: {*names, *(dtypes[m] for m in step.names)} for n in step.names}
        return dtypes_of_names[name]

    def returning(self, results: Collection[str]) -> Program:
        """The program with other results."""
        return replace(self, results=tuple(results))

    def needed(self) -> Program:
        """The program without steps and inputs that no result depends on."""
        names, steps = set(self.results), []
        for step in reversed(self.steps):
            if names & set(step.names):
                steps.append(step)
                names |= step.operands
        inputs = tuple(i for i in self.inputs if i.name in names)
        return replace(self, inputs=inputs or self.inputs[:1], steps=tuple(reversed(steps)))

    def source(self, name: str = "f") -> str:
        """The program as a function in Python."""
        lines = [f"    {step}" for step in self.steps]
        head = f"def {name}({', '.join(i.name for i in self.inputs)}):"
        return "\n".join([head, *lines, f"    return {', '.join(self.results)},"])

    def function(self) -> Callable[..., tuple[Any, ...]]:
        """The program as a Python function."""
        namespace = dict(self.modules)
        exec(_compiled(self.source()), namespace)
        return namespace["f"]

    def arguments(self, seed: int) -> list[Any]:
        """Arrays for the inputs."""
        rng = np.random.default_rng(seed)
        return [array(i.draw(rng)) for i in self.inputs]


@functools.lru_cache(256)
def _dtypes(program: Program) -> Mapping[str, str]:
    """The dtype of everything that has a name."""
    specs = [rune.ShapeDtypeStruct(i.shape, dtype_named(i.dtype)) for i in program.inputs]
    names = program.intermediates()
    results = rune.eval_shape(program.returning(names).function(), *specs) if names else ()
    return {i.name: i.dtype for i in program.inputs} | {n: r.dtype.name for n, r in zip(names, results)}


@functools.lru_cache(4096)
def _compiled(source: str) -> Any:
    return compile(source, "<program>", "exec")


@functools.lru_cache(4096)
def _expression(text: str) -> Any:
    return compile(text, "<step>", "eval")


def evaluate(step: Step, values: Mapping[str, Any], modules: Mapping[str, Any] = RUNE) -> dict[str, Any]:
    """The values that one step binds."""
    results = eval(_expression(step.text), {**modules, **values})
    return dict(zip(step.names, results, strict=True)) if step.names[1:] else {step.names[0]: results}
