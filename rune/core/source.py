"""Kernels that a user writes in the language of a device, and their launches: data only.

    Source("cuda", text, "scale", launch)     the kernel as the user passes it
    Bound(source, launch, numbers)            the same for operands of certain types

A kernel takes a pointer to each operand, then to each result, to dense rows in C order; then the
numbers of `sizes`; in OpenCL C last, if a block shares memory, a pointer to that memory.
In C it is a function, which is called once: exported folders compile it, but no device of rune.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

from rune import dims
from rune.dims import Dim, Size
from rune.errors import ArgumentError
from rune.records import dataclass

LANGUAGES = ("cuda", "opencl", "c")  # CUDA C and OpenCL C by the names of their devices, and C
_DIMENSIONS = 3

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """The launch of a kernel: the numbers of blocks and of threads per block, x first.

    blocks:       a number or up to three; they may be sizes that are known only at the call
    threads:      of a block, a number or up to three
    shared_bytes: memory that a block shares, in addition to what the kernel declares

    >>> from rune import extend
    >>> extend.Launch(blocks=40, threads=(16, 8)).threads
    (16, 8)
    """

    blocks: Size | tuple[Size, ...]
    threads: int | tuple[int, ...]
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("blocks", "threads"):
            extents = getattr(self, name)
            object.__setattr__(self, name, tuple(extents) if isinstance(extents, tuple | list) else (extents,))

    @property
    def grid(self) -> tuple[Size, ...]:
        """Blocks along each dimension."""
        return self.blocks  # type: ignore[return-value]

    @property
    def group(self) -> tuple[int, ...]:
        """Threads of a block along each dimension."""
        return self.threads  # type: ignore[return-value]


def _once(*types: object, **params: object) -> Launch:
    return Launch(1, 1)


def _no_sizes(*types: object, **params: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel in the language of a device, which rune compiles with its own, or a function of C.

    language: "cuda" for CUDA C, "opencl" for OpenCL C, "c" for C11, which runs only in the folders
              of `rune.export.source`
    text:     of a program: the kernel or function, and the functions that it calls
    entry:    the name of the kernel or function
    launch:   rule(*types, **params) -> Launch; a C function has none
    sizes:    rule(*types, **params) -> integers (64 bits) and floats (double)

    Errors: ArgumentError for another language, a kernel without a launch, and a launch in C.

    >>> from rune import extend
    >>> text = '''__kernel void twice(__global const float *x, __global float *y, long n) {
    ...   const long i = get_global_id(0);
    ...   if (i < n) y[i] = 2 * x[i];
    ... }'''
    >>> launch = lambda x: extend.Launch(blocks=-(-x.shape[0] // 64), threads=64)
    >>> twice = extend.Source("opencl", text, "twice", launch, sizes=lambda x: x.shape)
    >>> extend.primitive("twice", types=lambda x: x, meaning=lambda x: 2 * x, sources=[twice])
    twice
    """

    language: str
    text: str
    entry: str
    launch: Rule = _once
    sizes: Rule = _no_sizes

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            known = " or ".join(map(repr, LANGUAGES))
            raise ArgumentError(f"Source: cannot compile the language {self.language!r} (it has to be {known})")
        if self.language == "c" and self.launch is not _once:
            raise ArgumentError(f"Source: cannot launch {self.entry} (a function of C is called once)")
        if self.language != "c" and self.launch is _once:
            why = "a kernel has a launch: rule(*types, **params) -> extend.Launch"
            raise ArgumentError(f"Source: cannot compile {self.entry} ({why})")

    @property
    def routine(self) -> str:
        """The entry among the routines of targets that compile it."""
        return f"{self.language}_source"


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel, its launch, and the numbers that it takes."""

    source: Source
    launch: Launch
    numbers: tuple[Size | float, ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes that are known only at the call."""
        mentioned = [x for x in (*self.launch.grid, *self.numbers) if isinstance(x, Dim)]
        return tuple(sorted({s.name for x in mentioned for s in dims.symbols(x)}))

    def __str__(self) -> str:
        blocks, threads = ("x".join(map(str, extents)) for extents in (self.launch.grid, self.launch.group))
        return f"{self.source.entry}[{blocks} of {threads}]"


def bind_source(source: Source, name: str, types: Sequence[object], params: Mapping[str, object]) -> Bound:
    """The kernel for operands of these types.

    Errors: ArgumentError "scale: cannot launch scale (...)" if the launch or a number is not valid.
    """
    launch, numbers = source.launch(*types, **params), tuple(source.sizes(*types, **params))
    why = _misfit(launch) or next((f"{n!r} is not a number to pass" for n in numbers if not _is_number(n)), None)
    if why is not None:
        raise ArgumentError(f"{name}: cannot launch {source.entry} ({why})")
    return Bound(source, launch, numbers)


def _misfit(launch: object) -> str | None:
    """The mistake in a launch; None if it is valid."""
    if not isinstance(launch, Launch):
        return f"its launch is {type(launch).__name__}, extend.Launch required"
    if not all(0 < len(extents) <= _DIMENSIONS for extents in (launch.grid, launch.group)):
        return "blocks and threads have one to three dimensions"
    if not all(isinstance(n, int | Dim) for n in launch.grid):
        return f"blocks are {launch.grid}, integers required"
    if not all(isinstance(n, int) and n > 0 for n in launch.group):
        return f"threads of a block are {launch.group}, positive integers required"
    if not isinstance(launch.shared_bytes, int) or launch.shared_bytes < 0:
        return f"shared_bytes is {launch.shared_bytes!r}, an integer required"
    return None


def _is_number(x: object) -> bool:
    return isinstance(x, int | Dim) or (isinstance(x, float) and isfinite(x))
