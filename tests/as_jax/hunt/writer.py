"""Writes a program line by line: templates are filled with the names of earlier values.

In a template, «a|b» is one of several texts, and braces are holes to be filled:

    {x:if2}   a value with integers or floats and at least two axes; {x} again is the same value
    {z:f}     another value, of any shape;  {y:f} one of x's shape;  {yb:f} one that broadcasts to x
    {axis} {axis+} {axes} {perm}   an axis of x, one from the front, some or all, an order of all
    {n}  the extent of x along the last axis named;  {k}  0 to 4;  {number}  a Python number
    {dtype} {float} {int}  names of dtypes;  {key}  a key;  {f}  a small function of one array
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.as_jax.hunt.text import Statement, bound
from tests.fuzzing.chance import Chance

LARGEST = 140_000  # elements of one value
CHOICE = re.compile("«([^«»]*)»")
HOLE = re.compile(r"\{([a-z]+)(\+?)(?::([biufc]*)(\d?)(?:-(\d))?)?\}")
FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "int16", "uint32", "uint16")
NUMBERS = ("0", "1", "2", "-1", "3", "0.5", "-2.5", "1e-3", "True", "np.float32(1.5)", "np.int8(3)", "7", "1j", "-0.0")
FUNCTIONS = ("jnp.sin", "jnp.cumsum", "lambda t: t * 2", "jnp.flip", "lambda t: t - jnp.max(t)", "jnp.sort", "jnp.abs")


Type = jax.ShapeDtypeStruct


class NoSuchValue(Exception):
    """Raised if no value fits a hole of a template."""


@dataclass(slots=True)
class Writer(Chance):
    """Types of values by name, and the statements that bind them."""

    rng: np.random.Generator
    x64: bool
    values: dict[str, Type] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    lanes: dict[str, int] = field(default_factory=dict)  # named axes around, and their extents
    prefix: str = "v"

    # --- statements ---------------------------------------------------------------------------

    def name(self) -> str:
        """A name that is still free."""
        return f"{self.prefix}{len(self.values)}"

    def add(self, template: str, kind: str) -> bool:
        """Fill a template and add it as a statement. Returns whether jax accepts it."""
        try:
            expression = self.filled(template)
        except NoSuchValue:
            return False
        name = self.name()
        return self.bind(Statement((name,), f"{name} = {expression}", kind))

    def add_of(self, tables: Mapping[str, tuple[float, Sequence[str]]]) -> bool:
        """Add a line of one of the tables, by their weights."""
        weights = np.array([weight for weight, _ in tables.values()])
        kind = list(tables)[self.rng.choice(len(tables), p=weights / weights.sum())]
        return self.add(self.choose(tables[kind][1]), kind)

    def bind(self, statement: Statement) -> bool:
        """Add a statement, if jax traces it and its results are arrays of moderate size."""
        try:
            results = self._types(statement)
        except Exception:  # what jax refuses is not drawn
            return False
        if not all(isinstance(x, Type) and x.size <= LARGEST and _is_numeric(x) for x in results.values()):
            return False
        self.values |= results
        self.statements.append(statement)
        return True

    def _types(self, statement: Statement) -> dict[str, Any]:
        """The types of the values that it binds; those of one lane, within named axes."""

        def run(values: Any) -> dict[str, Any]:
            return bound(statement, values)

        for axis, extent in self.lanes.items():
            run = _in_a_lane(run, axis, extent)
        return jax.eval_shape(run, self.values)

    # --- templates ----------------------------------------------------------------------------

    def filled(self, template: str) -> str:
        """The template with choices made and holes filled."""
        while CHOICE.search(template):
            template = CHOICE.sub(lambda m: str(self.choose(m[1].split("|"))), template, count=1)
        choices: dict[str, Any] = {}
        return HOLE.sub(lambda m: self._hole(m, choices), template)

    def _hole(self, hole: re.Match[str], choices: dict[str, Any]) -> str:
        kind, front, kinds, least, most = hole.groups()
        if kind in ("x", "y", "yb", "z", "w"):
            if kind not in choices or (kind == "z" and kinds):
                choices[kind] = self._value(kind, kinds or "", int(least or 0), int(most or 5), choices.get("x"))
            return choices[kind]
        shape = self.values[choices["x"]].shape if "x" in choices else ()
        match kind:
            case "axis":
                choices["axis"] = self._axis(len(shape))
                return str(choices["axis"] - (0 if front or self.chance(0.6) else len(shape)))
            case "axes":
                return self._axes(len(shape))
            case "perm":
                return str(tuple(int(k) - len(shape) * self.below(2) for k in self.rng.permutation(len(shape))))
            case "n":
                return str(shape[choices.get("axis", 0)] if shape else 1)
            case "k":
                return str(self.below(5))
            case "number":
                return self.choose(NUMBERS)
            case "dtype":
                return "jnp." + self.choose((*self._floats(), *INTEGERS, "bool_", "complex64"))
            case "float":
                return "jnp." + self.choose(self._floats())
            case "int":
                return "jnp." + self.choose(INTEGERS)
            case "key":
                return self.choose(
                    [f"jax.random.key({self.below(99)})", f"jax.random.fold_in(jax.random.PRNGKey({self.below(9)}), 3)"]
                )
            case "f":
                return self.choose(FUNCTIONS)
        raise NoSuchValue(kind)

    def _floats(self) -> Sequence[str]:
        return (*FLOATS, "float64", "float64") if self.x64 else FLOATS

    def _axis(self, ndim: int) -> int:
        if not ndim:
            raise NoSuchValue("an axis")
        return self.below(ndim)

    def _axes(self, ndim: int) -> str:
        several = [int(k) - ndim * self.below(2) for k in self.rng.permutation(ndim)[: self.below(ndim + 1)]]
        return self.choose(["None", str(tuple(several)), str(several[0]) if several else "None"])

    def _value(self, kind: str, kinds: str, least: int, most: int, like: str | None) -> str:
        shape = self.values[like].shape if like else ()
        fit = [
            name
            for name, x in self.values.items()
            if least <= x.ndim <= most and (not kinds or kind_of(x) in kinds) and _fits(kind, x.shape, shape)
        ]
        if not fit:
            raise NoSuchValue(kind)
        late = fit[-4:] if self.chance(0.5) else fit
        return self.choose(late)


def kind_of(x: Any) -> str:
    """b, i, u, f or c."""
    return "f" if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype.kind


def _fits(kind: str, shape: Sequence[Any], like: Sequence[Any]) -> bool:
    if kind == "y":
        return tuple(shape) == tuple(like)
    if kind == "yb":
        return len(shape) <= len(like) and all(s in (1, t) for s, t in zip(shape[::-1], like[::-1]))
    return True


def _is_numeric(x: Type) -> bool:
    return not jnp.issubdtype(x.dtype, jax.dtypes.prng_key) and x.dtype != jax.dtypes.float0


def _in_a_lane(run: Callable[..., Any], axis: str, extent: int) -> Callable[..., Any]:
    def first(values: Any) -> Any:
        lanes = jax.vmap(lambda _: run(values), axis_name=axis)(jnp.zeros(extent))
        return jax.tree.map(lambda x: x[0], lanes)

    return first
