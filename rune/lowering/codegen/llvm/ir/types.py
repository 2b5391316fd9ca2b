"""How each dtype lives in LLVM: in memory, and as a value in a register.

    dtype        memory   register
    bool         i8       i1        0 or 1
    integers     iN       iN        the sign is in the operations
    bf16         i16      float     computed in f32 and rounded after each operation
    f16          half     float     likewise
    f32, f64     float    double

Not here: 4-bit integers and 8-bit floats, which lowering/legalize keeps as bits.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.llvm.ir.names import FLOATS
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.machine import SUPPORTED

_FLOAT_REGISTERS = {dtypes.bf16: "float", dtypes.f16: "float", dtypes.f32: "float", dtypes.f64: "double"}
_FLOAT_MEMORY = {dtypes.bf16: "i16", dtypes.f16: "half", dtypes.f32: "float", dtypes.f64: "double"}


def require_supported(dtype: np.dtype) -> None:
    """Refuse dtypes that have no rendering.

    Errors: CompileError "llvm: cannot render f8_e5m2 (no such type on the cpu)".
    """
    if dtype not in SUPPORTED:
        name = dtypes.short(dtype)
        raise CompileError(
            f"llvm: cannot render {name} (no such type on the cpu)", hint="cast to a wider dtype before computing"
        )


@functools.cache
def register_type(dtype: np.dtype) -> str:
    """The IR type of a value of `dtype`."""
    require_supported(dtype)
    if dtype == dtypes.bool_:
        # Comparisons and selects work on i1; in memory a bool takes a byte.
        return "i1"
    return _FLOAT_REGISTERS.get(dtype) or f"i{8 * dtype.itemsize}"


@functools.cache
def memory_type(dtype: np.dtype) -> str:
    """The IR type of one element in memory."""
    require_supported(dtype)
    if dtype == dtypes.bool_:
        return "i8"
    return _FLOAT_MEMORY.get(dtype) or f"i{8 * dtype.itemsize}"


def constant(writer: Writer, dtype: np.dtype, bits: bytes) -> Value:
    """A literal given by its bits, so that a NaN keeps its payload."""
    type, value = register_type(dtype), np.frombuffer(bits, dtype)[0]
    if dtype not in dtypes.FLOATING:
        return writer.constant(type, int(value))
    # A NaN's payload may be lost in a Python float.
    if np.isnan(np.float64(value)):
        payload = Value(writer, f"i{8 * len(bits)}", str(int.from_bytes(bits, "little")))
        return value_of_bits(payload, dtype)
    return writer.constant(type, float(value))


def round_to(value: Value, dtype: np.dtype) -> Value:
    """A register rounded to the precision of its dtype; only bf16 and f16 have less."""
    if dtype == dtypes.f16:
        return value.cast("fptrunc", "half").cast("fpext", "float")
    if dtype == dtypes.bf16:
        return (_bf16_bits(value) << 16).from_bits("float")
    return value


def _bf16_bits(value: Value) -> Value:
    """The upper half of the f32 nearest in bf16, ties to even, as i32; NaN stays NaN."""
    bits = value.to_bits()
    # Half a step less one, and the last kept bit: a tie goes to even.
    nearest = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    # Rounding could turn a NaN into infinity, and truncating could clear its mantissa; 0x40 keeps
    # it a quiet NaN.
    return value.writer.select(value.is_nan(), (bits >> 16) | 0x40, nearest)


def from_memory(value: Value, dtype: np.dtype) -> Value:
    """What was loaded, as a register value."""
    if dtype == dtypes.bool_:
        return value.compare("ne", 0)
    if dtype == dtypes.f16:
        return value.cast("fpext", "float")
    if dtype == dtypes.bf16:
        return (value.cast("zext", "i32") << 16).from_bits("float")
    return value


def to_memory(value: Value, dtype: np.dtype) -> Value:
    """A register value, already rounded to its dtype, as it is stored."""
    if dtype == dtypes.bool_:
        return value.cast("zext", "i8")
    if dtype == dtypes.f16:
        return value.cast("fptrunc", "half")
    if dtype == dtypes.bf16:
        return (value.to_bits() >> 16).cast("trunc", "i16")
    return value


def stored_bits(value: Value, dtype: np.dtype) -> Value:
    """The bits of the element in memory, as an integer of its size."""
    element = to_memory(value, dtype)
    return element.to_bits() if element.is_float else element


def value_of_bits(bits: Value, dtype: np.dtype) -> Value:
    """The register value whose element in memory has these bits."""
    type = memory_type(dtype)
    return from_memory(bits.from_bits(type) if type in FLOATS else bits, dtype)
