"""Types and constants of LLVM IR as text: lanes, overload suffixes, exact floats, identifiers."""

from __future__ import annotations

import functools
import re
import struct

FLOATS = frozenset({"half", "float", "double"})
_BITS = {"half": "i16", "float": "i32", "double": "i64"}
_SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


# Called for every instruction; only a few dozen types exist, so the cache stays small.
@functools.cache
def lanes_of(type: str) -> int:
    """How many lanes a type has; 0 for a scalar.

    >>> lanes_of("<16 x float>"), lanes_of("i64")
    (16, 0)
    """
    return int(type[1 : type.index(" ")]) if type[0] == "<" else 0


@functools.cache
def scalar_of(type: str) -> str:
    """The type of one lane."""
    return type[type.index(" x ") + 3 : -1] if type[0] == "<" else type


@functools.cache
def with_scalar(type: str, scalar: str) -> str:
    """`type` with another type in each lane."""
    return f"<{lanes_of(type)} x {scalar}>" if type[0] == "<" else scalar


def pointer_to(address: int) -> str:
    """An address of this process, in the form that the CPU's compiler replaces by a symbol."""
    return f"inttoptr (i64 {address} to ptr)"


def float_constant(value: float, type: str) -> str:
    """`value` rounded to `type`, as the hexadecimal constant that LLVM reads exactly.

    >>> float_constant(0.5, "float")
    '0x3FE0000000000000'
    """
    if type == "half":
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type == "float" and abs(value) < float("inf"):
        # LLVM writes an f32 constant as the f64 of the same value and rejects digits that f32
        # lacks.
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def suffix(type: str) -> str:
    """The name that intrinsics give to a type: f32, i64, v8f64."""
    name = _SUFFIX.get(scalar_of(type), scalar_of(type))
    return f"v{lanes_of(type)}{name}" if type[0] == "<" else name


def bits_type(type: str) -> str:
    """The integer type with the size of a floating type."""
    return with_scalar(type, _BITS[scalar_of(type)])


def identifier(name: str) -> str:
    """`name` as an IR identifier without sigil; quoted where it must be.

    >>> identifier("a.b"), identifier("a b")
    ('a.b', '"a b"')
    """
    return name if re.fullmatch(r"[A-Za-z$._][A-Za-z$._0-9]*", name) else f'"{name}"'
