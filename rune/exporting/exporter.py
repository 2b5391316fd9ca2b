"""The door of this room: `rune.export`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rune.errors import ArgumentError
from rune.exporting.exported import Exported
from rune.exporting.file import Stored, decode
from rune.exporting.source import Folder, source
from rune.exporting.trace import exported_function
from rune.exporting.trees import register_node
from rune.files.file import mapped
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exports functions: `rune.export` is the one object of this class.

    rune.export(f)(*args)        f as a program, traced for arguments like these
    rune.export.load(file)       from a path or from bytes
    rune.export.source(f, target="c")(*args)    a folder of kernels and C
    rune.export.register_node    gives a class of trees a name in files
    Errors: ArgumentError for a program that a file cannot hold, CheckError for a damaged file.

    >>> import rune, rune.numpy as rnp
    >>> exported = rune.export(lambda x: x * 2.0)(rune.ShapeDtypeStruct((3,), "f32"))
    >>> rune.export.load(exported.serialize()).call(rnp.arange(3.0))
    Array([0., 2., 4.], f32[3], cpu:0)
    """

    def __call__(self, function: Callable[..., object]) -> Callable[..., Exported]:
        """A function of arguments that gives `function` as a program for arguments like these.

        Arguments are arrays, numbers, ShapeDtypeStructs; dims= and in_dims= are those of jit: sizes
        that are open within ranges. What jit knows of a jitted function (static arguments, sizes)
        holds. Random numbers need a key among the arguments.
        Errors: ArgumentError for callbacks, operations of users and other devices, which a file
                cannot hold.

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
        """The function in a file, or in the bytes of one. Nothing is executed until it is called.

        The file is read once, for its digest, and mapped: its weights take no other memory. Whoever
        writes into it meanwhile changes them; `save` writes another file in its place.

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
        """A folder of kernels and C for a device without Python: `rune.exporting.source.source`."""
        return source(function, target, name=name)

    register_node = staticmethod(register_node)


def _chained(orders: Sequence[Stored]) -> Exported:
    """The first program, each differentiated by the one behind it."""
    following: Exported | None = None
    for stored in reversed(orders):
        derivative = None if following is None else (lambda e=following: e)
        following = Exported(stored.program, stored.weights, stored.in_tree, stored.out_tree, derivative)
    assert following is not None
    return following


export = Exporter()
