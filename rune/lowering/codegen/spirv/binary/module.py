"""A SPIR-V module under construction: types, constants and decorations, each declared once.

`Module` keeps the sections in the order that the binary has; `words` joins them. Declarations with
equal operands share one id, so no type, constant or import appears twice. A capability is declared
when a type or instruction first needs it.

Types are named as in `KINDS`: "bool", "i8" to "i64" (integers have no sign; operations do),
"f16" to "f64". Using a type that the device lacks raises DtypeError.
"""

from __future__ import annotations

import functools
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.errors import DtypeError
from rune.lowering.codegen.spirv.binary.words import (
    GLSL,
    MAGIC,
    MEMORY_MODEL_GLSL450,
    MODEL_GLCOMPUTE,
    PHYSICAL_STORAGE_BUFFER_64,
    VERSION,
    BuiltIn,
    Capability,
    Decoration,
    ExecutionMode,
    Op,
    StorageClass,
    instruction,
    text_words,
)
from rune.lowering.codegen.target import Target
from rune.records import dataclass

Key = tuple[object, ...]

# The type of a value of a dtype.
KINDS: dict[np.dtype, str] = {
    dtypes.bool_: "bool",
    dtypes.i8: "i8",
    dtypes.i16: "i16",
    dtypes.i32: "i32",
    dtypes.i64: "i64",
    dtypes.u8: "i8",
    dtypes.u16: "i16",
    dtypes.u32: "i32",
    dtypes.u64: "i64",
    dtypes.f16: "f16",
    dtypes.f32: "f32",
    dtypes.f64: "f64",
}
_CAPABILITY = {
    "i8": Capability.Int8,
    "i16": Capability.Int16,
    "i64": Capability.Int64,
    "f16": Capability.Float16,
    "f64": Capability.Float64,
}


@functools.cache  # asked several times for each word of a module
def width(kind: str) -> int:
    """The bits of a number's type."""
    return int(kind[1:])


def kinds_of(target: Target) -> frozenset[str]:
    """The types that a device has: always truth values, and bytes to store them if it has bool."""
    truth_kinds = frozenset({"i8"} if dtypes.bool_ in target.dtypes else ())
    return truth_kinds.union({"bool", "i32"}, (KINDS[d] for d in target.dtypes & KINDS.keys()))


@dataclass(slots=True)
class Module:
    """The sections of a module for a target. `known`: the id of each declaration by its key."""

    target: Target
    capabilities: dict[Capability, None] = field(
        default_factory=lambda: {Capability.Shader: None, Capability.PhysicalStorageBufferAddresses: None}
    )
    imports: list[int] = field(default_factory=list)
    modes: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    decorations: list[int] = field(default_factory=list)
    declarations: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    interface: list[int] = field(default_factory=list)  # global variables
    known: dict[Key, int] = field(default_factory=dict)
    bound: int = 1
    kinds: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = kinds_of(self.target)

    def new_id(self) -> int:
        """A new id."""
        self.bound += 1
        return self.bound - 1

    def need(self, capability: Capability) -> None:
        """Declare a capability."""
        self.capabilities[capability] = None

    def name(self, id: int, text: str) -> None:
        """A name for readers."""
        self.names += instruction(Op.Name, id, *text_words(text))

    def decorate(self, id: int, decoration: Decoration, *operands: int) -> None:
        """Decorate an id."""
        self.decorations += instruction(Op.Decorate, id, decoration, *operands)

    def decorate_member(self, id: int, member: int, decoration: Decoration, *words: int) -> None:
        """Decorate a member of a structure."""
        self.decorations += instruction(Op.MemberDecorate, id, member, decoration, *words)

    def declare(self, op: Op, *operands: int, tag: Key = ()) -> int:
        """The id of a type; structures that differ only in decorations have different tags."""
        key = (op, operands, *tag)
        if key not in self.known:
            self.known[key] = type_id = self.new_id()
            self.declarations += instruction(op, type_id, *operands)
        return self.known[key]

    # --- types -------------------------------------------------------------------------------

    def kind(self, dtype: np.dtype) -> str:
        """The type of values of a dtype. Errors: DtypeError if the device has none."""
        return self.known_kind(KINDS.get(dtype, dtypes.short(dtype)))

    def known_kind(self, kind: str) -> str:
        """`kind`, which the device must have. Errors: DtypeError."""
        if kind not in self.kinds:
            subject = f"{kind} in SPIR-V on {self.target.name}"
            raise DtypeError(f"render: cannot use {subject} (no such type on the device)")
        return kind

    def type(self, kind: str) -> int:
        """The type of a value."""
        if kind == "void":
            return self.declare(Op.TypeVoid)
        if self.known_kind(kind) == "bool":
            return self.declare(Op.TypeBool)
        if kind in _CAPABILITY:
            self.need(_CAPABILITY[kind])
        if kind[0] == "f":
            return self.declare(Op.TypeFloat, width(kind))
        return self.declare(Op.TypeInt, width(kind), 0)

    def pointer(self, space: StorageClass, pointee: int) -> int:
        """The type of a pointer."""
        return self.declare(Op.TypePointer, space, pointee)

    def vector(self, kind: str, count: int) -> int:
        """Several values of a type."""
        return self.declare(Op.TypeVector, self.type(kind), count)

    def array(self, element: int, count: int) -> int:
        """An array whose layout is visible to this kernel alone."""
        return self.declare(Op.TypeArray, element, self.constant("i32", count))

    def function_type(self, result: int, *parameters: int) -> int:
        """The type of a function."""
        return self.declare(Op.TypeFunction, result, *parameters)

    def buffer(self, kind: str, member: tuple[Decoration, ...]) -> int:
        """A pointer to a structure that holds nothing but an array of unknown length."""
        element, size = self.type(kind), width(kind) // 8
        if size < 4:
            narrow = (Capability.StorageBuffer8BitAccess, Capability.StorageBuffer16BitAccess)
            self.need(narrow[size - 1])
        elements = self.declare(Op.TypeRuntimeArray, element)
        if ("stride", elements) not in self.known:
            self.known["stride", elements] = elements
            self.decorate(elements, Decoration.ArrayStride, size)
        block = self.structure((elements,), (0,), (member,))
        return self.pointer(StorageClass.PhysicalStorageBuffer, block)

    def structure(
        self, members: tuple[int, ...], offsets: tuple[int, ...], decorations: tuple[tuple[Decoration, ...], ...]
    ) -> int:
        """A structure in memory, laid out by byte offsets."""
        tag = (offsets, decorations)
        if (Op.TypeStruct, members, *tag) in self.known:
            return self.known[(Op.TypeStruct, members, *tag)]
        structure_id = self.declare(Op.TypeStruct, *members, tag=tag)
        self.decorate(structure_id, Decoration.Block)
        for number, (offset, member_decorations) in enumerate(zip(offsets, decorations, strict=True)):
            self.decorate_member(structure_id, number, Decoration.Offset, offset)
            for decoration in member_decorations:
                self.decorate_member(structure_id, number, decoration)
        return structure_id

    # --- constants and globals ---------------------------------------------------------------

    def constant(self, kind: str, value: int) -> int:
        """A constant from its bits; for a float, those of its format."""
        type = self.type(kind)
        if kind == "bool":
            return self._constant(Op.ConstantTrue if value else Op.ConstantFalse, type)
        bits = value & ((1 << width(kind)) - 1)
        if width(kind) < 32:
            return self._constant(Op.Constant, type, bits)
        words = [bits >> shift & 0xFFFFFFFF for shift in range(0, width(kind), 32)]
        return self._constant(Op.Constant, type, *words)

    def _constant(self, op: Op, type: int, *words: int) -> int:
        key = (op, type, words)
        if key not in self.known:
            self.known[key] = constant_id = self.new_id()
            self.declarations += instruction(op, type, constant_id, *words)
        return self.known[key]

    def variable(self, space: StorageClass, pointee: int) -> int:
        """A global variable."""
        type, variable_id = self.pointer(space, pointee), self.new_id()
        self.declarations += instruction(Op.Variable, type, variable_id, space)
        self.interface.append(variable_id)
        return variable_id

    def input(self, builtin: BuiltIn, type: int) -> int:
        """A built-in input."""
        if ("input", builtin) not in self.known:
            self.known["input", builtin] = input_id = self.variable(StorageClass.Input, type)
            self.decorate(input_id, Decoration.BuiltIn, builtin)
        return self.known["input", builtin]

    def glsl(self) -> int:
        """The import of GLSL.std.450."""
        if not self.imports:
            self.known[(GLSL,)] = import_id = self.new_id()
            self.imports += instruction(Op.ExtInstImport, import_id, *text_words(GLSL))
        return self.known[(GLSL,)]

    # --- the binary --------------------------------------------------------------------------

    def mode(self, entry: int, mode: ExecutionMode, *operands: int) -> None:
        """How the entry point runs."""
        self.modes += instruction(Op.ExecutionMode, entry, mode, *operands)

    def words(self, entry: int, name: str) -> bytes:
        """The binary."""
        model = (PHYSICAL_STORAGE_BUFFER_64, MEMORY_MODEL_GLSL450)
        head = (MODEL_GLCOMPUTE, entry, *text_words(name), *self.interface)
        words = [
            *(MAGIC, VERSION, 0, self.bound, 0),
            *(word for c in sorted(self.capabilities) for word in instruction(Op.Capability, c)),
            *self.imports,
            *instruction(Op.MemoryModel, *model),
            *instruction(Op.EntryPoint, *head),
            *self.modes,
            *self.names,
            *self.decorations,
            *self.declarations,
            *self.functions,
        ]
        return np.array(words, "<u4").tobytes()
