"""Declared symbolic sizes: which axes of the arguments have them, and whether a call fits.

A pattern describes the axes of one array: "n,_,2*m+1". A name is a size of `dims`, an expression is
computed from such sizes, "_" is the size that the axis has, "..." any number of such axes. Axes
with one name are equal.

Inside another symbolic trace the axes have the sizes of that trace, which must be known to fit the
declaration; otherwise there is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from keyword import iskeyword
from typing import Any

import numpy as np

from rune import dims, tree
from rune.core.interpreter import current
from rune.core.sizes import Arguments, read_sizes, size_sources
from rune.core.staging import Stage
from rune.core.types import LARGEST_SIZE, ArrayType
from rune.dims import Dim, Size
from rune.errors import ArgumentError, AxisError, DimensionError, ShapeError
from rune.records import dataclass
from rune.transforms.arguments import leaf_path

Bound = int | str
RANGES = 'sizes and their ranges are dims={"n": (1, 64), "m": (0, "n"), "k": (1, None)}'
PATTERNS = 'in_dims has for each argument None, a pattern like "n,_", or a tree of these'
KEPT = 4096  # the most calls whose generalised types are stored


@dataclass(frozen=True, slots=True)
class SymbolicAxes:
    """Sizes by name, and the pattern of each argument (None: leading axes of bare arrays)."""

    sizes: Mapping[str, Dim]
    patterns: Any
    _known: dict[Any, tuple[ArrayType, ...]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(declaration: object, in_dims: object) -> SymbolicAxes | None:
        """The checked declaration; None if nothing is declared.

        Errors: ArgumentError if a range or a pattern cannot be read, or no axes are named.
        """
        if declaration is None and in_dims is None:
            return None
        sizes = _declared_sizes(_checked_ranges(declaration))
        if in_dims is None and len(sizes) != 1:
            raise ArgumentError(
                f"jit: cannot tell which axes have the sizes {', '.join(sizes)}",
                hint='pass in_dims, a tree prefix of patterns like "n,_"',
            )
        for pattern in tree.leaves(in_dims):
            if not isinstance(pattern, str):
                raise ArgumentError(f"jit: cannot read {pattern!r} in in_dims (not a pattern)", hint=PATTERNS)
        return SymbolicAxes(sizes, in_dims)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Errors in the block that mention a size get a hint on how to declare sizes equal."""
        try:
            yield
        except (ShapeError, AxisError) as error:
            # Whole words only: nearly every message contains the letter n.
            sizes_in_message = [d for n, d in self.sizes.items() if re.search(rf"\b{n}\b", error.message)]
            if sizes_in_message and "in_dims" not in (error.hint or ""):
                advice = (
                    "axes that are equal have one name"
                    if len(sizes_in_message) > 1
                    else 'an axis whose size must be known is "_"'
                )
                hint = f"{dims.ranges(*sizes_in_message)}; {advice} in in_dims"
                error.restate(hint=f"{error.hint}\nhint: {hint}" if error.hint else hint)
            raise

    def generalise(
        self, types: tuple[ArrayType, ...], treedef: tree.TreeDef, static: tuple[int, ...], name: str
    ) -> tuple[ArrayType, ...]:
        """The types that the function is traced for.

        static: positions of arguments that are not arrays.
        Errors: DimensionError for a size out of range, and for axes that contradict each other.
        """
        # Inside a symbolic trace the declaration is only checked: sizes keep their outer names.
        is_inside = _is_inside_symbolic_trace()
        key = types, treedef, static, is_inside
        traced_types = self._known.get(key)
        if traced_types is None:
            # Clearing everything is the simplest bound; later calls refill the memo.
            if len(self._known) >= KEPT:
                self._known.clear()
            declared_types = self._declared_types(types, treedef, static)
            _check_fit(f"jit: cannot run {name}", declared_types, types, treedef)
            traced_types = self._known[key] = types if is_inside else declared_types
        return traced_types

    def _declared_types(
        self, types: Sequence[ArrayType], treedef: tree.TreeDef, static: tuple[int, ...]
    ) -> tuple[ArrayType, ...]:
        patterns = self._leaf_patterns(types, treedef, static)
        return tuple(
            t if p is None else t.with_shape(self._shape(t, p, k, treedef))
            for k, (t, p) in enumerate(zip(types, patterns, strict=True))
        )

    def _leaf_patterns(
        self, types: Sequence[ArrayType], treedef: tree.TreeDef, static: tuple[int, ...]
    ) -> list[str | None]:
        args, kwargs = tree.unflatten(treedef, list(types))
        # As with in_axes of vmap, patterns are for positional arguments only.
        patterns = self._leading(args) if self.patterns is None else self._spread(args, static)
        return [*patterns, *(None for _ in tree.leaves(kwargs))]

    def _leading(self, args: Sequence[ArrayType]) -> list[str | None]:
        """The patterns for the only size, on the leading axis of every bare array."""
        (name,) = self.sizes
        leading = [name if isinstance(a, ArrayType) and a.shape else None for a in args]
        if not any(leading):
            raise ArgumentError(
                f"jit: cannot tell which axes have the size {name} (no positional argument is "
                "itself an array with axes)",
                hint='pass in_dims, a tree prefix of patterns like "n,_"',
            )
        # An argument that is a tree gets None for each of its leaves.
        return [p for a, p in zip(args, leading) for _ in tree.leaves(a)]

    def _spread(self, args: object, static: tuple[int, ...]) -> list[str | None]:
        """The patterns of in_dims, one for each leaf of the positional arguments."""
        patterns = self.patterns if isinstance(self.patterns, tuple | list) else (self.patterns,)
        # The user counts all arguments, but static ones are no longer among them here.
        dynamic_patterns = tuple(p for k, p in enumerate(patterns) if k not in static)
        try:
            return tree.broadcast_prefix(dynamic_patterns, args, is_leaf=lambda x: x is None)
        except ArgumentError as error:
            # The error speaks of a prefix of a tree; the user wrote in_dims for arguments.
            misfit = error.message.partition("(")[2]
            misfit = re.sub(r"\btree\b", "arguments", re.sub(r"\bprefix\b", "in_dims", misfit))
            message = f"jit: cannot match in_dims to the arguments ({misfit}"
            raise ArgumentError(message, hint=PATTERNS) from None

    def _shape(self, type: ArrayType, pattern: str, number: int, treedef: tree.TreeDef) -> tuple[Size, ...]:
        parts = [part.strip() for part in pattern.split(",")]
        # Axes that the pattern does not mention stay as they are, at "..." or at the end.
        missing = type.ndim - len(parts)
        if "..." in parts:
            # "..." stands for any number of axes, including none.
            at = parts.index("...")
            parts[at : at + 1] = ["_"] * (missing + 1)
        elif missing > 0:
            parts += ["_"] * missing
        if len(parts) != type.ndim:
            path = f"argument{leaf_path(number, treedef)}"
            raise ArgumentError(f"jit: cannot match the pattern {pattern!r} to {type} ({path})")
        return tuple(
            size if part == "_" else self._size(part, pattern) for part, size in zip(parts, type.shape, strict=True)
        )

    def _size(self, part: str, pattern: str) -> Size:
        try:
            return dims.parse(part, self.sizes)
        except DimensionError:
            raise ArgumentError(
                f"jit: cannot read {part!r} in the pattern {pattern!r} (sizes in dims: {', '.join(self.sizes)})",
                hint='an axis is "_", a size of dims, or made of sizes, as 2*n + 1; axes are separated by commas',
            ) from None


def _checked_ranges(declaration: object) -> dict[str, tuple[Bound, Bound | None]]:
    """The ranges by name. Errors: ArgumentError if a name or a range cannot be read."""
    if not isinstance(declaration, Mapping) or not declaration:
        raise ArgumentError(f"jit: cannot read dims={declaration!r} (no sizes by name)", hint=RANGES)
    return {_checked_name(name): _checked_range(name, r) for name, r in declaration.items()}


def _checked_name(name: str) -> str:
    if not (isinstance(name, str) and name.isidentifier()) or name == "_" or iskeyword(name):
        raise ArgumentError(f"jit: cannot name a size {name!r} in dims (an identifier required)")
    return name


def _checked_range(name: str, bounds: object) -> tuple[Bound, Bound | None]:
    if isinstance(bounds, tuple | list) and len(bounds) == 2:
        low, high = (int(b) if isinstance(b, np.integer) else b for b in bounds)
        if _is_bound(low) and (high is None or _is_bound(high)):
            for bound in (low, high):
                if isinstance(bound, int) and bound > LARGEST_SIZE:
                    raise ArgumentError(
                        f"jit: cannot declare {name} up to {bound} (2**63 - 1 is the most)",
                        hint=f"dims={{{name!r}: (1, None)}} leaves it open",
                    )
            return low, high
    raise ArgumentError(
        f"jit: cannot read the range {bounds!r} of {name} (two whole numbers, or sizes, required)", hint=RANGES
    )


def _is_bound(bound: object) -> bool:
    # To Python a bool is an integer, but True is not a size.
    return isinstance(bound, int | str) and not isinstance(bound, bool)


def _declared_sizes(declared_ranges: Mapping[str, tuple[Bound, Bound | None]]) -> dict[str, Dim]:
    """The sizes by name, in their order in `dims`; a bound may mention any other size."""
    # A size may be bounded by one that is declared after it, so there are several rounds.
    sizes: dict[str, Dim] = {}
    count = -1
    # Ends when all sizes are read, or when a round has added none, as for bounds in a circle.
    while count < len(sizes) < len(declared_ranges):
        count = len(sizes)
        for name, (lowest, highest) in declared_ranges.items():
            low, high = _bound(lowest, sizes), _bound(highest, sizes)
            if name not in sizes and low is not None and (high is not None or highest is None):
                sizes[name] = _declared(name, low, high)
    missing = {name: bounds for name, bounds in declared_ranges.items() if name not in sizes}
    if missing:
        known = ", ".join(sizes) or "none"
        raise ArgumentError(f"jit: cannot read the ranges of {missing} (sizes known: {known})", hint=RANGES)
    return {name: sizes[name] for name in declared_ranges}


def _bound(bound: Bound | None, sizes: Mapping[str, Dim]) -> Size | None:
    """The bound; None if absent, or if it mentions other sizes."""
    try:
        return dims.parse(bound, sizes) if isinstance(bound, str) else bound
    except DimensionError:
        return None


def _declared(name: str, low: Size, high: Size | None) -> Dim:
    if not (dims.at_most(0, low) and (high is None or dims.at_most(low, high))):
        limits = (low,) if high is None else (low, high)
        # Bounds that are sizes have ranges of their own, which explain the refusal.
        known = dims.ranges(*limits)
        raise ArgumentError(
            f"jit: cannot declare {name} in {'..'.join(map(str, limits))} "
            f"(0 <= low <= high required{'; ' if known else ''}{known})"
        )
    return dims.symbol(name, low, high)


def _check_fit(
    action: str, declared_types: tuple[ArrayType, ...], types: Sequence[ArrayType], treedef: tree.TreeDef
) -> None:
    sources = size_sources(declared_types)
    # The compiled program reads each size from one axis, so some axis must determine it alone.
    missing = dims.symbols_within(*(d for t in declared_types for d in t.shape)).keys()
    missing = missing - {s.name for s in sources}
    if missing:
        type_texts = ", ".join(str(t) for t in declared_types if t.is_symbolic)
        raise ArgumentError(
            f"{action} (the axes of {type_texts} do not tell {', '.join(sorted(missing))})",
            hint="an axis tells a size n if it is n, or a*n + b with a and b known",
        )
    arguments = Arguments(
        action, declared_types, [t.shape for t in types], lambda k: f"argument{leaf_path(k, treedef)}"
    )
    read_sizes(arguments, sources)


def _is_inside_symbolic_trace() -> bool:
    interpreter = current()
    while interpreter.parent is not None:
        if isinstance(interpreter, Stage) and any(v.type.is_symbolic for v in interpreter.inputs):
            return True
        interpreter = interpreter.parent
    return False
