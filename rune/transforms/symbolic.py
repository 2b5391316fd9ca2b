"""Declared symbolic sizes: which axes of the arguments have them, and whether a call fits.

A pattern says what the axes of one array are: "n,_,2*m+1". Names stand for sizes of `dims`, an
expression for what is made of them, "_" for whatever is there, "..." for any number of axes. One
name on two axes says that they are equal.

Inside another symbolic trace the axes keep the sizes that they have there; these must be known to
fit the declaration, which is an error otherwise and never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rune import dims, tree
from rune.core.interpreter import current
from rune.core.sizes import Arguments, read_sizes, size_sources
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import ArgumentError, AxisError, DimensionError, ShapeError
from rune.transforms.arguments import leaf_path

Bound = int | str
KEPT = 4096  # types of calls whose generalisation is remembered


@dataclass(frozen=True, slots=True)
class SymbolicAxes:
    """Sizes by name, and the pattern of each argument (None: leading axes of bare arrays)."""

    sizes: Mapping[str, Dim]
    patterns: Any
    _known: dict[Any, tuple[ArrayType, ...]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(declared: Mapping[str, tuple[Bound, Bound]], in_dims: Any) -> SymbolicAxes:
        """Check and keep a declaration. Errors: ArgumentError for an empty range or many names."""
        sizes = _declared_sizes(declared)
        if in_dims is None and len(sizes) != 1:
            raise ArgumentError(
                f"jit: cannot tell which axes have the sizes {', '.join(sizes)}",
                hint='pass in_dims, a tree prefix of patterns like "n,_"',
            )
        return SymbolicAxes(sizes, in_dims)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """A misfit inside that names a size also says how sizes are declared to be equal."""
        try:
            yield
        except (ShapeError, AxisError) as error:
            named = [d for n, d in self.sizes.items() if re.search(rf"\b{n}\b", error.message)]
            if named and "in_dims" not in (error.hint or ""):
                hint = f"{dims.ranges(*named)}; axes that are equal have one name in in_dims"
                error.restate(hint=f"{error.hint}\nhint: {hint}" if error.hint else hint)
            raise

    def generalise(
        self, types: tuple[ArrayType, ...], treedef: Any, static: tuple[int, ...], name: str
    ) -> tuple[ArrayType, ...]:
        """The types that the function is traced for.

        static: positions of arguments that are no arrays.
        Errors: DimensionError for a size out of range, and for axes that contradict each other.
        """
        inside = _is_inside_symbolic_trace()
        key = types, treedef, static, inside
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            declared = self._declared_types(types, treedef, static)
            _check_fit(f"jit: cannot run {name}", declared, types, treedef)
            found = self._known[key] = types if inside else declared
        return found

    def _declared_types(
        self, types: Sequence[ArrayType], treedef: Any, static: tuple[int, ...]
    ) -> tuple[ArrayType, ...]:
        patterns = self._leaf_patterns(types, treedef, static)
        return tuple(
            t if p is None else t.with_shape(self._shape(t, p, k, treedef))
            for k, (t, p) in enumerate(zip(types, patterns, strict=True))
        )

    def _leaf_patterns(
        self, types: Sequence[ArrayType], treedef: Any, static: tuple[int, ...]
    ) -> list[str | None]:
        args, kwargs = tree.unflatten(treedef, list(types))
        if self.patterns is None:
            (name,) = self.sizes
            leading = [name if isinstance(a, ArrayType) and a.shape else None for a in args]
            spread = [p for a, p in zip(args, leading) for _ in tree.leaves(a)]
        else:
            given = self.patterns if isinstance(self.patterns, tuple | list) else (self.patterns,)
            kept = tuple(p for k, p in enumerate(given) if k not in static)
            spread = tree.broadcast_prefix(kept, args, is_leaf=lambda x: x is None)
        return [*spread, *(None for _ in tree.leaves(kwargs))]

    def _shape(self, type: ArrayType, pattern: str, number: int, treedef: Any) -> tuple[Size, ...]:
        parts = [part.strip() for part in pattern.split(",")]
        missing = type.ndim - len(parts)
        if "..." in parts:
            at = parts.index("...")
            parts[at : at + 1] = ["_"] * (missing + 1)
        elif missing > 0:
            parts += ["_"] * missing
        if len(parts) != type.ndim:
            path = f"argument{leaf_path(number, treedef)}"
            raise ArgumentError(f"jit: cannot match the pattern {pattern!r} to {type} ({path})")
        return tuple(
            size if part == "_" else self._size(part, pattern)
            for part, size in zip(parts, type.shape, strict=True)
        )

    def _size(self, part: str, pattern: str) -> Size:
        try:
            return dims.parse(part, self.sizes)
        except DimensionError:
            raise ArgumentError(
                f"jit: cannot read {part!r} in the pattern {pattern!r} "
                f"(sizes in dims: {', '.join(self.sizes)})",
                hint='an axis is "_", a size of dims, or made of sizes, as 2*n + 1',
            ) from None


def _declared_sizes(declared: Mapping[str, tuple[Bound, Bound]]) -> dict[str, Dim]:
    """The sizes by name, in the order given; a bound may mention any other size."""
    sizes: dict[str, Dim] = {}
    count = -1
    while count < len(sizes) < len(declared):
        count = len(sizes)
        for name, bounds in declared.items():
            low, high = (_bound(bound, sizes) for bound in bounds)
            if name not in sizes and low is not None and high is not None:
                sizes[name] = _declared(name, low, high)
    missing = {name: bounds for name, bounds in declared.items() if name not in sizes}
    if missing:
        known = ", ".join(sizes) or "none"
        raise ArgumentError(f"jit: cannot read the bounds of {missing} (sizes known: {known})")
    return {name: sizes[name] for name in declared}


def _bound(bound: Bound, sizes: Mapping[str, Dim]) -> Size | None:
    """A bound, or None where it is not made of the sizes."""
    try:
        return bound if isinstance(bound, int) else dims.parse(bound, sizes)
    except DimensionError:
        return None


def _declared(name: str, low: Size, high: Size) -> Dim:
    if not (dims.at_most(0, low) and dims.at_most(low, high)):
        known = dims.ranges(low, high)
        raise ArgumentError(
            f"jit: cannot declare {name} in {low}..{high} "
            f"(0 <= low <= high required{'; ' if known else ''}{known})"
        )
    return dims.symbol(name, low, high)


def _check_fit(
    action: str, declared: tuple[ArrayType, ...], types: Sequence[ArrayType], treedef: Any
) -> None:
    sources = size_sources(declared)
    missing = dims.symbols_within(*(d for t in declared for d in t.shape)).keys()
    missing = missing - {s.name for s in sources}
    if missing:
        shown = ", ".join(str(t) for t in declared if t.is_symbolic)
        raise ArgumentError(
            f"{action} (the axes of {shown} do not tell {', '.join(sorted(missing))})",
            hint="an axis tells a size n if it is n, or a*n + b with a and b known",
        )
    arguments = Arguments(
        action, declared, [t.shape for t in types], lambda k: f"argument{leaf_path(k, treedef)}"
    )
    read_sizes(arguments, sources)


def _is_inside_symbolic_trace() -> bool:
    interpreter = current()
    while interpreter.parent is not None:
        if isinstance(interpreter, Stage) and any(v.type.is_symbolic for v in interpreter.inputs):
            return True
        interpreter = interpreter.parent
    return False
