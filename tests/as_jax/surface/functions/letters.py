"""Expressions over arrays named by letters, and the values and derivatives computed for each.

The lines of the texts beside this file are expressions in JAX's names and these letters:

x y f32[3,5] normal   p q f32[3,5] in (0.05, 0.95)   v w f32[5]   m n f32[4,4]   s f32[4,4] positive
z c64[3,5]   a c64[4,4]   t f32[2,3,6,5]   e f32[]   h f16[3,5]   i j i32[3,5]   k i32[5] in 0..4
u u8[3,5]   b c bool[3,5]   key a random key
S i8[3,5]   W u32[3,5] in 0..9   F bf16[3,5]   O f32[0,5]   T f32[7,11]

and, in hard.txt, capitals for values at limits: NaN, infinities, -0.0, the largest.
X f32[17]   Y f32[9]   H f16[17]   G bf16[17]   Z c64[17]   I i32[17]   J i32[9]   U u32[17]
B i8[17]   E f32[0,3]

Each letter has three lanes of values, by which vmap is tried, and directions for derivatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.as_jax.surface.functions.limits import LIMITS
from tests.as_jax.surface.functions.ruled import ruled

FOLDER = Path(__file__).parent
LANES = 3
# Unusual arguments, with one stored lane: small integers and floats, no elements, one
# number, odd sizes, axes from the end, masks, indices out of bounds and what becomes of them.
MANY = tuple(f"more_{n}" for n in "linalg random stats fft nn image transformations special".split())
UNUSUAL = (*(f"more_{n}" for n in "indexing reductions shapes elementwise orders lax names".split()), *MANY)
FAMILIES = ("numpy", "linalg", "lax", "nn", "random", "sparse", "additions", "hard", *UNUSUAL)
_SHAPES = {
    **dict.fromkeys("xypqzhijubcSWF", (3, 5)),
    **dict.fromkeys("vwk", (5,)),
    **dict.fromkeys("mnsa", (4, 4)),
    "t": (2, 3, 6, 5),
    "e": (),
    "O": (0, 5),
    "T": (7, 11),
}
_DTYPES = {"z": np.complex64, "a": np.complex64, "h": np.float16, "F": ml_dtypes.bfloat16}
# The integers of a letter: dtype, the least, and the one beyond the greatest.
_INTEGERS = {
    **dict.fromkeys("ij", (np.int32, -7, 8)),
    "k": (np.int32, 0, 5),
    "u": (np.uint8, 0, 256),
    "S": (np.int8, -5, 6),
    "W": (np.uint32, 0, 9),
}
_INEXACT = set("xypqvwmnszatehFOT") | set("XYHGZE")
_USED = re.compile(r"(?<![\w.'\"])(?:key|[a-zA-Z])(?![\w'\"])(?!=[^=])")
_MODULES = {
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "nn": "jax.nn",
    "random": "jax.random",
    "image": "jax.image",
    "scipy": "jax.scipy",
    "special": "jax.scipy.special",
    "stats": "jax.scipy.stats",
    "signal": "jax.scipy.signal",
    "sl": "jax.scipy.linalg",
    "sparse": "jax.experimental.sparse",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """A line of a text, the letters in it, and its meaning as a function of them."""

    family: str
    text: str
    letters: tuple[str, ...]
    function: Callable[..., Any]

    @property
    def inexact(self) -> tuple[int, ...]:
        """The places of letters that have derivatives."""
        return tuple(k for k, letter in enumerate(self.letters) if letter in _INEXACT)


def stored_in(family: str) -> Path:
    """The file with jax 0.10.2's answers to the expressions of a text."""
    return FOLDER / f"jax_0_10_2_{family}.npz"


def expressions(family: str) -> list[Expression]:
    """The expressions of a text, in the names of the imported jax."""
    return [_expression(family, line) for line in (FOLDER / f"{family}.txt").read_text().splitlines()]


def _expression(family: str, text: str) -> Expression:
    letters = tuple(sorted(set(_USED.findall(text)) & {*_SHAPES, *LIMITS, "key"}))
    return Expression(family, text, letters, eval(f"lambda {', '.join(letters)}: ({text})", scope()))


@cache
def scope() -> dict[str, Any]:
    """The modules by their names in expressions."""
    modules = {name: import_module(module) for name, module in _MODULES.items()}
    for name in ("ndimage", "integrate", "interpolate", "optimize", "cluster.vq", "fft", "spatial.transform"):
        import_module(f"jax.scipy.{name}")
    for name in ("flatten_util", "ad_checkpoint"):
        import_module(f"jax.{name}")
    for name in ("ode", "sparse"):
        import_module(f"jax.experimental.{name}")
    jax = import_module("jax")
    return {"np": np, "jax": jax, **modules, **ruled(jax)}


@cache
def lanes(letter: str) -> Any:
    """The values of a letter, [LANES, ...]; f32 unless stated otherwise."""
    if letter == "key":
        random = scope()["random"]
        return scope()["jnp"].stack([random.key(k) for k in range(LANES)])
    if letter in LIMITS:
        return np.stack([np.roll(LIMITS[letter], lane, 0) for lane in range(LANES)])
    draws = np.random.default_rng(ord(letter))
    shape = (LANES, *_SHAPES[letter])
    if letter in _INTEGERS:
        dtype, low, high = _INTEGERS[letter]
        return draws.integers(low, high, shape).astype(dtype)
    if letter in "bc":
        return draws.random(shape) < 0.6
    if letter in "pq":
        return draws.uniform(0.05, 0.95, shape).astype(np.float32)
    values = draws.normal(size=shape) + (1j * draws.normal(size=shape) if letter in "za" else 0)
    if letter == "s":
        values = values @ values.swapaxes(1, 2) + np.eye(4)
    return values.astype(_DTYPES.get(letter, np.float32))


def first_lane(letter: str) -> Any:
    """The values of a letter in the first lane, as an array; None if it is not a letter."""
    return _array(letter) if letter in {*_SHAPES, *LIMITS, "key"} else None


def direction(letter: str) -> np.ndarray:
    """A tangent of the first lane."""
    like = lanes(letter)[0]
    draws = np.random.default_rng(1000 + ord(letter))
    values = draws.normal(size=like.shape) + (1j * draws.normal(size=like.shape) if letter in "zaZ" else 0)
    return np.asarray(values + np.swapaxes(values, 0, 1) if letter == "s" else values, like.dtype)


def value(e: Expression, lane: int) -> Any:
    """The value in one lane."""
    return e.function(*arguments(e, lane))


def arguments(e: Expression, lane: int) -> list[Any]:
    """The values of its letters in one lane, as arrays."""
    return [_array(letter, lane) for letter in e.letters]


def _array(letter: str, lane: int = 0) -> Any:
    return scope()["jnp"].asarray(lanes(letter)[lane])


def mapped(e: Expression) -> Any:
    """The values in all lanes, by vmap."""
    return scope()["jax"].vmap(e.function)(*(scope()["jnp"].asarray(lanes(letter)) for letter in e.letters))


def compiled(e: Expression) -> Any:
    """The value in the first lane, by jit."""
    return scope()["jax"].jit(e.function)(*arguments(e, 0))


def slope(e: Expression) -> Any:
    """The tangents of inexact results along `direction`, in the first lane."""
    _, tangents = scope()["jax"].jvp(*_closed(e), [direction(e.letters[k]) for k in e.inexact])
    return tangents


def gradient(e: Expression) -> Any:
    """The gradient, by every inexact letter, of a weighted sum of the results."""
    f, primals = _closed(e)
    return scope()["jax"].grad(lambda *xs: _weighted(f(*xs)), tuple(range(len(primals))))(*primals)


def _closed(e: Expression) -> tuple[Callable[..., Any], list[Any]]:
    """The inexact results as a function of the inexact letters, and the values of these."""
    values = arguments(e, 0)

    def f(*xs: Any) -> list[Any]:
        places = dict(zip(e.inexact, xs, strict=True))
        results = e.function(*(places.get(k, x) for k, x in enumerate(values)))
        jax = scope()["jax"]
        return [x for x in map(jax.numpy.asarray, jax.tree.leaves(results)) if is_inexact(x)]

    return f, [values[k] for k in e.inexact]


def is_inexact(x: Any) -> bool:
    """Whether it has a floating or complex dtype."""
    return bool(scope()["jnp"].issubdtype(x.dtype, scope()["jnp"].inexact))


def _weighted(leaves: list[Any]) -> Any:
    total: Any = np.float32(0)
    for leaf in leaves:
        weights = np.cos(1.0 + np.arange(leaf.size)).astype(np.float32).reshape(leaf.shape)
        total = total + (leaf.real * weights + leaf.imag * weights[..., ::-1] if leaf.ndim else abs(leaf)).sum()
    return total


WAYS = {"value": lambda e: value(e, 0), "vmap": mapped, "jit": compiled, "jvp": slope, "grad": gradient}
