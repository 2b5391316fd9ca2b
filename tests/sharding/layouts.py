"""Layouts whose blocks were stored with JAX: meshes by their sizes, specs, and shapes."""

from __future__ import annotations

from itertools import product

MESHES: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "8": ((8,), ("x",)),
    "2 by 4": ((2, 4), ("x", "y")),
    "4 by 2": ((4, 2), ("x", "y")),
    "1 by 8": ((1, 8), ("x", "y")),
    "2 by 2 by 2": ((2, 2, 2), ("x", "y", "z")),
    "1": ((1,), ("x",)),
}
SPECS: tuple[tuple[str | tuple[str, ...] | None, ...], ...] = (
    (),
    ("x",),
    (None, "x"),
    ("x", "y"),
    ("y", "x"),
    (("x", "y"),),
    (("y", "x"), None),
    (None, ("x", "y", "z")),
    (("z", "x"), "y"),
    ((), "x"),
    (None, None, "y"),
)
SHAPES = ((8,), (16, 8), (8, 7), (7, 8), (0, 8), (24, 16, 8), ())
LAYOUTS = tuple(product(MESHES, SPECS, SHAPES))
