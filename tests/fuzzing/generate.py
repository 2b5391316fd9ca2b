"""One seed, one program: how it is drawn, and its meaning in NumPy.

draw(seed)      a program over whole numbers, some with NaN and infinities, or smooth
heavy(seed)     one of few steps and much work
symbolic(seed)  a program that names no size, with the sizes to try
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rune.core.interpreter import current, use
from tests.fuzzing import rules_compute, rules_control, rules_heavy, rules_views
from tests.fuzzing.maker import LARGEST, Maker
from tests.fuzzing.program import Input, Program
from tests.support.oracle import Oracle

EXTENTS = (
    1,
    2,
    2,
    3,
    4,
    5,
    7,
    8,
    13,
    15,
    16,
    17,
    24,
    27,
    31,
    32,
    33,
    47,
    48,
    49,
    50,
    55,
    60,
    63,
    64,
    65,
    127,
    128,
    129,
    130,
)
THREE_REGISTERS = (2, 3, 24, 25, 27, 30, 31, 48, 50, 55, 60, 63)  # of 64 B, in f64 and in f32
DTYPES = (
    ("float32",) * 9
    + ("int32",) * 3
    + ("float64", "bfloat16", "bfloat16", "float16", "int8", "uint8", "int16", "int64", "bool", "complex64")
)
SIZES = ({"n": 5, "m": 3}, {"n": 17, "m": 4}, {"n": 1, "m": 1}, {"n": 0, "m": 2}, {"n": 2, "m": 0})
RULES: dict[str, Sequence[Sequence[rules_views.Rule]]] = {
    "whole": (
        (*rules_views.POLYMORPHIC, *rules_views.SIZED),
        (*rules_compute.POLYMORPHIC, *rules_compute.SIZED),
        (*rules_control.POLYMORPHIC, *rules_control.SIZED),
    ),
    "smooth": (
        (*rules_views.POLYMORPHIC, *rules_views.SIZED),
        rules_compute.SMOOTH,
        (*rules_compute.LINEAR, *rules_control.POLYMORPHIC),
    ),
    "symbolic": (rules_views.POLYMORPHIC, rules_compute.POLYMORPHIC, rules_control.POLYMORPHIC),
}
RULES["much whole"] = (RULES["whole"][0], rules_heavy.WHOLE, (*rules_heavy.WHOLE, *RULES["whole"][1]))
RULES["much smooth"] = (RULES["smooth"][0], rules_heavy.SMOOTH, (*rules_heavy.SMOOTH, *RULES["smooth"][1]))
RULES["hard"] = (RULES["whole"][0], rules_compute.POLYMORPHIC, ())
SHARES = (0.42, 0.84, 1.0)  # of views, of what computes; then what has a body
OF_WORK = (0.2, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Sized:
    """A program and what its inputs' axes are named: ("n", "3")."""

    program: Program
    patterns: tuple[tuple[str, ...], ...]

    def at(self, sizes: dict[str, int]) -> Program:
        """The program with its inputs at these sizes."""
        shapes = [tuple(sizes.get(d) or int(d) if d not in sizes else sizes[d] for d in p) for p in self.patterns]
        inputs = [Input(i.name, shape, i.dtype, i.values) for i, shape in zip(self.program.inputs, shapes, strict=True)]
        return Program(tuple(inputs), self.program.steps, self.program.results)


def draw(seed: int, values: str = "") -> Program:
    """The program of a seed."""
    rng = np.random.default_rng(seed)
    values = values or str(rng.choice(["whole", "whole", "whole", "whole", "hard", "smooth"]))
    maker = Maker(rng, values, False, [{}])
    extents = THREE_REGISTERS if maker.chance(0.15) else EXTENTS
    pool = [extents[k] for k in rng.integers(len(extents), size=3)]
    pool += [0] * maker.chance(0.06) + [1]
    for _ in range(1 + maker.below(3)):
        dtype = maker.choose(["float32", "float32", "float64"] if values == "smooth" else DTYPES)
        maker.new_input([_shape(maker, pool)], dtype)
    return _grown(maker, RULES[values])


def heavy(seed: int) -> Program:
    """A program of few steps and much work."""
    rng = np.random.default_rng(seed)
    values = str(rng.choice(["whole", "smooth"]))
    maker = Maker(rng, values, False, [{}])
    dtypes = ("float32", "float32", "float64") if values == "smooth" else (*DTYPES[:9], *DTYPES)
    for _ in range(2 + maker.below(2)):
        maker.new_input([_shape(maker, EXTENTS, 200)], maker.choose(dtypes))
    return _grown(maker, RULES[f"much {values}"], OF_WORK)


def smooth(seed: int) -> Program:
    """A program of f64 whose derivatives can be compared with differences."""
    rng = np.random.default_rng(seed)
    maker = Maker(rng, "smooth", False, [{}])
    pool = [2, 3, 5, 17]
    for _ in range(1 + maker.below(2)):
        maker.new_input([_shape(maker, pool, 120)], "float64")
    return _grown(maker, RULES["smooth"])


def symbolic(seed: int) -> Sized:
    """A program that names no size."""
    rng = np.random.default_rng(seed)
    sizes = SIZES if rng.random() < 0.4 else SIZES[:3]
    maker = Maker(rng, "whole", True, [{} for _ in sizes])
    patterns = []
    for _ in range(1 + maker.below(2)):
        axes = maker.choose([("n",), ("n", "m"), ("n", "3"), ("m",), ("2", "n"), ("n", "n")])
        shapes = [tuple(s[d] if d in s else int(d) for d in axes) for s in sizes]
        maker.new_input(shapes, maker.choose(DTYPES))
        patterns.append(axes)
    return Sized(_grown(maker, RULES["symbolic"]), tuple(patterns))


def _shape(m: Maker, pool: Sequence[int], largest: int = LARGEST) -> tuple[int, ...]:
    for _ in itertools.count():
        shape = tuple(m.choose(pool) for _ in range(m.choose([0, 1, 1, 2, 2, 2, 3, 3, 4])))
        if len(shape) > 1 and m.chance(0.3):
            shape = (*shape[:-1], shape[-2])
        if np.prod(shape) <= largest:
            return shape
    raise AssertionError


def _grown(m: Maker, rules: Sequence[Sequence[rules_views.Rule]], shares: Sequence[float] = SHARES) -> Program:
    length = 3 + m.below(5)
    with use(Oracle(current())), np.errstate(all="ignore"):
        for _ in range(6 * length):
            family = next(k for k, share in enumerate(shares) if m.rng.random() < share)
            m.grow(m.choose(rules[family] or rules[0]))
            if len(m.steps) >= length:
                break
    return m.program()
