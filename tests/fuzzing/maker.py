"""The state of a growing random program: its values, at one or several sizes, and a random source.

A step is kept if rune computes it eagerly at every size and its values stay comparable: finite and
exact where programs are compared bit for bit, moderate where they are compared within rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rune import dtypes
from rune.errors import RuneError
from tests.fuzzing.chance import Chance
from tests.fuzzing.program import RUNE, Input, Program, Step, dtype_named, evaluate
from tests.support.arrays import array

LARGEST = 2500  # elements of one value
TAME = 30.0  # magnitude beyond which a value is brought down before it is used again
EXACT = {"bfloat16": 2.0**7, "float16": 2.0**10}  # magnitudes up to which sums are exact
Refused = (RuneError, ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError)


@dataclass(slots=True)
class Maker(Chance):
    """A program in the making; its `values` are "whole" (exact), "hard" or "smooth" (Input)."""

    rng: np.random.Generator
    values: str
    is_symbolic: bool
    envs: list[dict[str, Any]]  # one for every choice of the sizes
    inputs: list[Input] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    modules: Mapping[str, Any] = field(default_factory=lambda: RUNE)  # what the lines may name
    refused: list[Step] = field(default_factory=list)

    # --- what there is ------------------------------------------------------------------------

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape at the first size."""
        return self.envs[0][name].shape

    def shapes(self, name: str) -> list[tuple[int, ...]]:
        """The shape at each size."""
        return [env[name].shape for env in self.envs]

    def dtype(self, name: str) -> np.dtype:
        """The dtype."""
        return self.envs[0][name].dtype

    def kind(self, name: str) -> str:
        """b, i, u, f or c."""
        dtype = self.dtype(name)
        return "f" if dtype in dtypes.FLOATING else dtype.kind

    def largest(self, name: str) -> float:
        """The largest magnitude of a finite element."""
        return max(magnitude(env[name]) for env in self.envs)

    def pick(self, least: int = 0, kinds: str = "biufc", most: int = 5) -> str | None:
        """The name of a value of these kinds and this many axes; recent ones are likelier."""
        fit = [name for name in self.envs[0] if least <= len(self.shape(name)) <= most and self.kind(name) in kinds]
        return fit[-1 - self.below(min(len(fit), 5))] if fit else None

    def like(self, name: str, kinds: str = "") -> str:
        """A value of the same shape at every size; the value itself if there is no other."""
        kinds = kinds or self.kind(name)
        fit = [other for other in self.envs[0] if self.shapes(other) == self.shapes(name) and self.kind(other) in kinds]
        return self.choose(fit) if fit else name

    def axis(self, name: str) -> int:
        """An axis, counted from either end."""
        ndim = len(self.shape(name))
        return self.below(ndim) - (ndim if self.chance(0.3) else 0)

    def number(self, name: str) -> str:
        """A scalar that suits the dtype of a value."""
        if self.kind(name) == "b":
            return self.choose(["True", "False"])
        if self.values == "smooth":
            return f"{self.rng.normal():.3}"
        return str(self.below(4) if self.kind(name) == "u" else self.below(7) - 3)

    # --- growing ------------------------------------------------------------------------------

    def new_input(self, shapes: Sequence[tuple[int, ...]], dtype: str) -> None:
        """One more argument, of one shape for each choice of the sizes."""
        argument = Input(f"v{len(self.inputs)}", shapes[0], dtype, self.values)
        self.inputs.append(argument)
        for env, shape in zip(self.envs, shapes, strict=True):
            numbers = Input(argument.name, shape, dtype, self.values).draw(self.rng)
            env[argument.name] = array(numbers, dtype_named(dtype))

    def add(self, text: str, count: int = 1) -> bool:
        """Add a step if rune computes it and its values stay comparable; whether it was added."""
        first = len(self.envs[0])
        step = Step(tuple(f"v{first + k}" for k in range(count)), text)
        try:
            evaluations = [evaluate(step, env, self.modules) for env in self.envs]
        except Refused:
            self.refused.append(step)
            return False
        if not all(self.is_comparable(v) for values in evaluations for v in values.values()):
            return False
        for env, values in zip(self.envs, evaluations, strict=True):
            env.update(values)
        self.steps.append(step)
        return True

    def is_comparable(self, value: Any) -> bool:
        """Whether the value is small, and exact if it must be."""
        if not hasattr(value, "dtype") or not isinstance(value.dtype, np.dtype):
            return False
        if value.size > LARGEST:
            return False
        if value.dtype not in dtypes.INEXACT:
            return True
        host = np.asarray(value)
        if self.values != "hard" and not np.isfinite(host).all():
            return False
        if self.values == "smooth":
            return magnitude(value) < 1e3
        return is_exact(host)

    def tame(self, name: str) -> None:
        """Bring a value of large magnitude down."""
        if self.kind(name) == "c":
            self.add(f"rnp.clip({name}.real, -5, 5)")
            return
        bounds = "0, 5" if self.kind(name) == "u" else "-5, 5"
        texts = [f"rnp.clip({name}, {bounds})"]
        if self.values != "smooth":
            texts += [f"{name} % 7", f"rnp.sign({name})"]
        self.add(self.choose(texts))

    def grow(self, rule: Callable[[Maker], str | tuple[str, int] | None]) -> bool:
        """Add the step of a rule; whether there was one."""
        text = rule(self)
        if text is None:
            return False
        is_added = self.add(*(text if isinstance(text, tuple) else (text, 1)))
        name = f"v{len(self.envs[0]) - 1}"
        if is_added and self.kind(name) != "b" and self.largest(name) > TAME:
            self.tame(name)
        return is_added

    def program(self) -> Program:
        """The grown program, which returns some of its values."""
        names = [name for step in self.steps for name in step.names]
        more = [n for n in names[:-1] if self.chance(0.25)]
        return Program(tuple(self.inputs), tuple(self.steps), (*more, *names[-1:]), self.modules)


def magnitude(value: Any) -> float:
    """The largest magnitude of a finite element; 0 if there is none."""
    host = np.asarray(value)
    with np.errstate(all="ignore"):
        sizes = np.abs(host.astype(np.complex128 if host.dtype.kind == "c" else np.float64))
    return float(np.max(sizes, initial=0.0, where=np.isfinite(sizes)))


def is_exact(host: np.ndarray) -> bool:
    """Whether the numbers are eighths of moderate size: sums in any order have the same bits."""
    bound = EXACT.get(host.dtype.name, 2.0**16)
    parts = [np.real(host), np.imag(host)] if host.dtype.kind == "c" else [host]
    for part in parts:
        numbers = part.astype(np.float64)
        numbers = numbers[np.isfinite(numbers)]
        if np.any(np.abs(numbers) > bound) or np.any(numbers * 8 % 1):
            return False
    return True
