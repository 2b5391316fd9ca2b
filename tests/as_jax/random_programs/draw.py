"""The random program of a seed, as users of JAX write it, by rules of tests/fuzzing and more."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from tests.as_jax.random_programs import rules_arrays, rules_control, rules_indexing
from tests.as_jax.random_programs.dialect import NAMES
from tests.fuzzing import rules_compute, rules_views
from tests.fuzzing.maker import Maker
from tests.fuzzing.program import Program, Step
from tests.fuzzing.rules_views import Rule

LARGEST = 600  # elements of an argument
EXTENTS = (1, 2, 2, 3, 3, 4, 5, 5, 7, 8, 13, 16, 17, 31, 33, 127, 128, 129, 130)
DTYPES = ("float32",) * 8 + ("int32",) * 4 + ("bfloat16", "float16", "int8", "uint8", "uint32", "bool", "complex64")
WIDE = (*DTYPES, *("float64", "int64") * 4)
RULES: dict[str, tuple[tuple[Sequence[Rule], ...], tuple[float, ...]]] = {
    "whole": (
        (
            (*rules_views.POLYMORPHIC, *rules_views.SIZED),
            (*rules_compute.POLYMORPHIC, *rules_compute.SIZED),
            rules_arrays.ANY,
            rules_indexing.RULES,
            rules_control.RULES,
        ),
        (0.1, 0.1, 0.3, 0.25, 0.25),
    ),
    "smooth": (
        (
            (*rules_views.POLYMORPHIC, *rules_views.SIZED),
            rules_compute.SMOOTH,
            rules_arrays.SMOOTH,
            rules_indexing.RULES,
            rules_control.RULES,
        ),
        (0.1, 0.1, 0.4, 0.15, 0.25),
    ),
}
OURS = re.compile(r"\b(rnp|rune)\.")
NARROW = re.compile(r"\b(float|int|uint|complex)(64|128)\b")
HALF = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


@dataclass(slots=True)
class JaxMaker(Maker):
    """A program in JAX's names; without 64-bit dtypes if these are not the default."""

    x64: bool = False

    def add(self, text: str, count: int = 1) -> bool:
        """Add a step if rune computes it and its values stay comparable."""
        lines = OURS.sub(lambda name: {"rnp": "jnp.", "rune": "jax."}[name[1]], text)
        if not self.x64:
            lines = NARROW.sub(lambda name: HALF.get(name[0], name[0]), lines)
        try:
            return Maker.add(self, lines, count)
        except Exception:  # whatever rune raises: JAX is asked whether the line is right
            first = len(self.envs[0])
            self.refused.append(Step(tuple(f"v{first + k}" for k in range(count)), lines))
            return False


def has_wide_numbers(seed: int) -> bool:
    """Whether 64 bits are the default for the program of this seed."""
    return seed % 5 == 0


def maker_of(seed: int, steps: int = 0) -> JaxMaker:
    """The maker of a seed's program, with this number of steps if so many can be added."""
    rng = np.random.default_rng(seed)
    values, x64 = str(rng.choice(["whole", "smooth"])), has_wide_numbers(seed)
    m = JaxMaker(rng, values, False, [{}], modules=NAMES, x64=x64)
    pool = [EXTENTS[k] for k in rng.integers(len(EXTENTS), size=3)]
    pool += [0] * m.chance(0.08) + [1] * m.chance(0.3)
    for k in range(1 + m.below(3)):
        floats = ("float32", "float32", "float64" if x64 else "float32", "bfloat16")
        m.new_input(
            [_shape(m, pool)], m.choose(floats[: 3 if k == 0 else 4] if values == "smooth" else WIDE if x64 else DTYPES)
        )
    families, shares = RULES[values]
    length = steps or 2 + m.below(4)
    with np.errstate(all="ignore"), jax.enable_x64(x64):
        for _ in range(4 * length):
            m.grow(m.choose(families[rng.choice(len(families), p=shares)]))
            if len(m.steps) >= length:
                break
    return m


def draw(seed: int) -> Program:
    """The program of a seed; it returns all of its values, or some."""
    program = maker_of(seed).program()
    return program.returning(program.intermediates()) if seed % 2 else program


def with_refusals(seed: int) -> Program:
    """The steps of a seed's program, followed by those that rune refused."""
    m = maker_of(seed)
    steps = tuple(
        Step(tuple(f"v{1000 + 10 * k + j}" for j in range(len(s.names))), s.text) for k, s in enumerate(m.refused)
    )
    names = [name for step in steps for name in step.names]
    return Program(tuple(m.inputs), (*m.steps, *steps), tuple(names), NAMES)


def _shape(m: Maker, pool: Sequence[int]) -> tuple[int, ...]:
    for _ in itertools.count():
        shape = tuple(m.choose(pool) for _ in range(m.choose([0, 1, 1, 2, 2, 2, 3])))
        if len(shape) > 1 and m.chance(0.3):
            shape = (*shape[:-1], shape[-2])
        if np.prod(shape) <= LARGEST:
            return shape
    raise AssertionError
