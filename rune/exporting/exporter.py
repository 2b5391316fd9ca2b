"""The entry point of this package: `rune.export`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rune.errors import ArgumentError
from rune.exporting.exported import Exported
from rune.exporting.file import StoredProgram, decode
from rune.exporting.source import Folder, source
from rune.exporting.trace import exported_function
from rune.exporting.trees import register_node
from rune.files.file import mapped
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exports functions; `rune.export` is the only instance.

    rune.export(f)(*args)        f as a program, traced for arguments like these
    rune.export.load(file)       the function in a file, given by its path or bytes
    rune.export.source(f, target="c")(*args)    a folder of kernels and C
    rune.export.register_node    names a class of tree nodes, so that files can hold it
    Errors: ArgumentError for a program that a file cannot hold, CheckError for a damaged file.

    >>> import rune, rune.numpy as rnp
    >>> exported = rune.export(lambda x: x * 2.0)(rune.ShapeDtypeStruct((3,), "f32"))
    >>> rune.export.load(exported.serialize()).call(rnp.arange(3.0))
    Array([0., 2., 4.], f32[3], cpu:0)
    """

    def __call__(self, function: Callable[..., object]) -> Callable[..., Exported]:
        """Export `function`: call the result with arguments to get the program for such arguments.

        Arguments are arrays, numbers or ShapeDtypeStructs. dims= and in_dims= are those of jit:
        they leave sizes open within ranges. A jitted function keeps its static arguments and sizes.
        Random numbers need a key among the arguments.
        Errors: ArgumentError for callbacks, operations of users without an expansion, and transfers
                to other devices, which a file cannot hold.

        >>> import rune, rune.numpy as rnp
        >>> rune.export(lambda x: rnp.sum(x**2))(rnp.ones(3), dims={"n": (1, 4096)})
        Exported(lambda: f32[n] -> f32[])
        """

        def of(
            *args: object,
            dims: Mapping[str, tuple[int | str, int | str | None]] | None = None,
            in_dims: object = None,
            **kwargs: object,
        ) -> Exported:
            return exported_function(function, args, kwargs, dims, in_dims)

        return of

    def load(self, file: str | os.PathLike[str] | bytes | bytearray) -> Exported:
        """Load the function in a file or in its bytes. Loading executes nothing of it.

        The file is read once, to check its digest, and mapped, so the weights take no other memory.
        Writing into a mapped file would change them; `save` replaces the file by a new one.

        Errors: CheckError "load: cannot read an exported file (<why>)" for another or a damaged
                file; OSError if it does not exist.
        """
        if not isinstance(file, str | os.PathLike | bytes | bytearray):
            raise ArgumentError(f"load: cannot read {type(file).__name__} (a path, or the bytes of a file)")
        if isinstance(file, bytes | bytearray):
            return _chained(decode(np.frombuffer(bytes(file), np.uint8)))
        with Path(file).open("rb") as stream:
            return _chained(decode(mapped(stream)))

    def source(
        self, function: Callable[..., object], target: str = "c", *, name: str | None = None
    ) -> Callable[..., Folder]:
        """Write kernels and C for a device without Python: `rune.exporting.source.source`."""
        return source(function, target, name=name)

    register_node = staticmethod(register_node)


def _chained(orders: Sequence[StoredProgram]) -> Exported:
    """The first program as an Exported, where each program is the derivative of the one before."""
    following: Exported | None = None
    for record in reversed(orders):
        derivative = None if following is None else (lambda e=following: e)
        following = Exported(record.program, record.weights, record.in_tree, record.out_tree, derivative)
    assert following is not None
    return following


export = Exporter()
