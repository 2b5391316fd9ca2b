"""Declared symbolic sizes: which axes of the arguments are `n`, and whether `n` fits its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rune import tree
from rune.core.types import ArrayType
from rune.dims import Dim, symbol
from rune.errors import ArgumentError, DimensionError


@dataclass(frozen=True, slots=True)
class SymbolicAxes:
    """Sizes by name, and the pattern of each argument (None: leading axes of bare arrays)."""

    ranges: tuple[tuple[str, int, int], ...]
    patterns: Any

    @staticmethod
    def of(dims: Mapping[str, tuple[int, int]], in_dims: Any) -> SymbolicAxes:
        """Check and keep a declaration. Errors: ArgumentError for an empty range or many names."""
        ranges = tuple((name, low, high) for name, (low, high) in dims.items())
        if any(low > high or low < 0 for _, low, high in ranges):
            raise ArgumentError(f"jit: cannot use dims {dict(dims)} (0 <= low <= high required)")
        if in_dims is None and len(ranges) != 1:
            raise ArgumentError(
                f"jit: cannot tell which axes have the sizes {', '.join(dims)}",
                hint='pass in_dims, a tree prefix of patterns like "n,_"',
            )
        return SymbolicAxes(ranges, in_dims)

    def generalise(
        self, types: Sequence[ArrayType], treedef: Any, name: str
    ) -> tuple[ArrayType, ...]:
        """The types with declared sizes in place of numbers.

        Errors: DimensionError for a size out of range, or one name with two sizes.
        """
        made = {n: symbol(n, low, high) for n, low, high in self.ranges}
        sizes: dict[str, int] = {}
        patterns = self._leaf_patterns(types, treedef)
        found = tuple(
            t if p is None else _apply(t, p, made, sizes, name)
            for t, p in zip(types, patterns, strict=True)
        )
        for n, low, high in self.ranges:
            if n in sizes and not low <= sizes[n] <= high:
                raise DimensionError(
                    f"jit: cannot run {name} for {n} = {sizes[n]} (declared {low}..{high})",
                    hint=f'widen the range: dims={{"{n}": ({low}, {sizes[n]})}}'
                    if sizes[n] > high
                    else None,
                )
        return found

    def _leaf_patterns(self, types: Sequence[ArrayType], treedef: Any) -> list[str | None]:
        args, kwargs = tree.unflatten(treedef, list(types))
        if self.patterns is None:
            name = self.ranges[0][0]
            leading = [name if isinstance(a, ArrayType) and a.shape else None for a in args]
            spread = [p for a, p in zip(args, leading) for _ in tree.leaves(a)]
        else:
            given = self.patterns if isinstance(self.patterns, tuple | list) else (self.patterns,)
            spread = tree.broadcast_prefix(tuple(given), args, is_leaf=lambda x: x is None)
        return [*spread, *(None for _ in tree.leaves(kwargs))]


def _apply(
    type: ArrayType, pattern: str, made: Mapping[str, Dim], sizes: dict[str, Any], name: str
) -> ArrayType:
    axes = [part.strip() for part in pattern.split(",")]
    if len(axes) > type.ndim:
        raise ArgumentError(f"jit: cannot match the pattern {pattern!r} to {type}")
    shape = list(type.shape)
    for axis, part in enumerate(axes):
        if part in ("_", "..."):
            continue
        if part not in made:
            raise ArgumentError(f"jit: cannot find size {part!r} of pattern {pattern!r} in dims")
        if isinstance(shape[axis], int) and sizes.setdefault(part, shape[axis]) != shape[axis]:
            raise DimensionError(
                f"jit: cannot run {name} ({part} is {sizes[part]} and {shape[axis]} at once)"
            )
        shape[axis] = made[part]
    return type.with_shape(tuple(shape))
