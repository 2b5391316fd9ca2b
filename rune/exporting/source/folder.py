"""A folder of source files, and the table of targets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from rune.errors import ArgumentError
from rune.exporting.source import c, cuda, opencl, spirv, wgsl
from rune.exporting.source.job import Job, Request, job
from rune.lowering.codegen.target import Target
from rune.records import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Folder:
    """Files by name; `save` writes them.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> folder = rune.export.source(rnp.sin, target="c")(rnp.ones(3))
    >>> sorted(folder.files)
    ['build.sh', 'main.c', 'sin.c', 'sin.h', 'sin_vectors.h', 'sin_weights.c']
    """

    name: str
    target: str
    files: Mapping[str, str | bytes]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the files into a folder, which is created if necessary. Errors: OSError."""
        root = Path(path)
        root.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        (root / "build.sh").chmod(0o755)

    def __repr__(self) -> str:
        return f"Folder({self.name}, {self.target}: {', '.join(self.files)})"


# Of each target, the device to lower for and the function that writes the files.
TARGETS: Mapping[str, tuple[Target, Callable[[Job], Mapping[str, str | bytes]]]] = {
    "c": (c.TARGET, c.files),
    "opencl": (opencl.TARGET, opencl.files),
    "cuda": (cuda.TARGET, cuda.files),
    "wgsl": (wgsl.TARGET, wgsl.files),
    "spirv": (spirv.TARGET, spirv.files),
}


def source(function: Callable[..., object], target: str = "c", *, name: str | None = None) -> Callable[..., Folder]:
    """Export `function` as source for another machine: call the result with arguments for a Folder.

    function: a function as for `rune.export`, or an Exported.
    target:   "c" (a C compiler and nothing else), "opencl" (any OpenCL 1.2 device),
              "cuda" (any CUDA device, by nvcc), "wgsl" (WebGPU, by webgpu.h),
              "spirv" (Vulkan 1.2).
    name:     the name of the files and of the entry, `<name>_call`; by default the function's.
    Arguments are arrays, or types, for which random values are drawn. The call is stored, so that
    the program can check itself. dims= and in_dims= are those of jit: they leave sizes open. The
    entry then takes the sizes as arguments, and calls of several sizes are stored.
    Errors: ArgumentError for another target, and for operations that need Python on the host;
            DtypeError for dtypes that the target lacks.

    >>> import rune, rune.numpy as rnp
    >>> rune.export.source(lambda x: rnp.cumsum(x), target="c", name="sums")(rnp.ones(5))
    Folder(sums, c: sums.h, sums.c, sums_weights.c, sums_vectors.h, main.c, build.sh)
    """
    if target not in TARGETS:
        raise ArgumentError(f"source: cannot write for {target!r} (targets: {', '.join(TARGETS)})")
    device, write = TARGETS[target]

    def of(
        *args: object, dims: Mapping[str, tuple[int | str, int | str | None]] | None = None, in_dims: object = None
    ) -> Folder:
        work = job(Request(function, args, name, dims, in_dims), device)
        return Folder(work.name, target, write(work))

    return of
