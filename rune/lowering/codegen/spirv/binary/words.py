"""SPIR-V's words: the numbers that the renderer uses, and how an instruction is encoded.

An instruction is one word (length << 16 | opcode), then its operands. An operand is an id or a
number of one word; text is UTF-8, followed by at least one zero byte; a number of more than 32 bits
has its low word first.

Source: the SPIR-V specification 1.6, revision 2, sections 2.3 and 3; GLSL.std.450, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

MAGIC = 0x07230203
VERSION = 0x00010500  # 1.5: buffer addresses without extensions; Vulkan 1.2
HEADER_WORDS = 5


class Op(IntEnum):
    """Opcodes."""

    Name = 5
    ExtInstImport = 11
    ExtInst = 12
    MemoryModel = 14
    EntryPoint = 15
    ExecutionMode = 16
    Capability = 17
    TypeVoid = 19
    TypeBool = 20
    TypeInt = 21
    TypeFloat = 22
    TypeVector = 23
    TypeArray = 28
    TypeRuntimeArray = 29
    TypeStruct = 30
    TypePointer = 32
    TypeFunction = 33
    ConstantTrue = 41
    ConstantFalse = 42
    Constant = 43
    Function = 54
    FunctionParameter = 55
    FunctionEnd = 56
    FunctionCall = 57
    Variable = 59
    Load = 61
    Store = 62
    AccessChain = 65
    Decorate = 71
    MemberDecorate = 72
    CompositeConstruct = 80
    CompositeExtract = 81
    ConvertFToU = 109
    ConvertFToS = 110
    ConvertSToF = 111
    ConvertUToF = 112
    UConvert = 113
    SConvert = 114
    FConvert = 115
    ConvertPtrToU = 117
    ConvertUToPtr = 120
    Bitcast = 124
    SNegate = 126
    FNegate = 127
    IAdd = 128
    FAdd = 129
    ISub = 130
    FSub = 131
    IMul = 132
    FMul = 133
    UDiv = 134
    SDiv = 135
    FDiv = 136
    UMod = 137
    LogicalEqual = 164
    LogicalNotEqual = 165
    LogicalOr = 166
    LogicalAnd = 167
    LogicalNot = 168
    Select = 169
    IEqual = 170
    INotEqual = 171
    UGreaterThan = 172
    SGreaterThan = 173
    UGreaterThanEqual = 174
    SGreaterThanEqual = 175
    ULessThan = 176
    SLessThan = 177
    ULessThanEqual = 178
    SLessThanEqual = 179
    FOrdEqual = 180
    FUnordNotEqual = 183
    FOrdLessThan = 184
    FOrdGreaterThan = 186
    FOrdLessThanEqual = 188
    FOrdGreaterThanEqual = 190
    ShiftRightLogical = 194
    ShiftRightArithmetic = 195
    ShiftLeftLogical = 196
    BitwiseOr = 197
    BitwiseXor = 198
    BitwiseAnd = 199
    Not = 200
    BitCount = 205
    ControlBarrier = 224
    AtomicIAdd = 234
    AtomicSMin = 236
    AtomicUMin = 237
    AtomicSMax = 238
    AtomicUMax = 239
    Phi = 245
    LoopMerge = 246
    SelectionMerge = 247
    Label = 248
    Branch = 249
    BranchConditional = 250
    Return = 253
    ReturnValue = 254
    GroupNonUniformShuffle = 345


class Capability(IntEnum):
    """Features that a module requires of the device."""

    Shader = 1
    Float16 = 9
    Float64 = 10
    Int64 = 11
    Int16 = 22
    Int8 = 39
    GroupNonUniform = 61
    GroupNonUniformShuffle = 65
    StorageBuffer16BitAccess = 4433
    StorageBuffer8BitAccess = 4448
    DenormPreserve = 4464
    SignedZeroInfNanPreserve = 4466
    RoundingModeRTE = 4467
    PhysicalStorageBufferAddresses = 5347


class StorageClass(IntEnum):
    """Where a variable lives."""

    Input = 1
    Workgroup = 4
    Function = 7
    PushConstant = 9
    PhysicalStorageBuffer = 5349


class Decoration(IntEnum):
    """Properties of an id, or of a member of a structure."""

    Block = 2
    ArrayStride = 6
    BuiltIn = 11
    Coherent = 23
    NonWritable = 24
    Offset = 35
    NoContraction = 42
    RestrictPointer = 5355
    AliasedPointer = 5356


class ExecutionMode(IntEnum):
    """How an entry point runs. The float modes take a width in bits."""

    LocalSize = 17
    DenormPreserve = 4459
    SignedZeroInfNanPreserve = 4461
    RoundingModeRTE = 4462


class BuiltIn(IntEnum):
    """Inputs that every invocation has."""

    NumWorkgroups = 24
    WorkgroupId = 26
    LocalInvocationIndex = 29
    SubgroupLocalInvocationId = 41


class Glsl(IntEnum):
    """Instructions of GLSL.std.450: those that are exact, and the root."""

    RoundEven = 2
    Trunc = 3
    Floor = 8
    Ceil = 9
    Sqrt = 31
    Fma = 50
    FindUMsb = 75


GLSL = "GLSL.std.450"
PHYSICAL_STORAGE_BUFFER_64 = 5348
MEMORY_MODEL_GLSL450 = 1
MODEL_GLCOMPUTE = 5
ALIGNED = 0x2  # a memory operand; the alignment in bytes follows
DEVICE_SCOPE, WORKGROUP_SCOPE, SUBGROUP_SCOPE = 1, 2, 3
RELAXED = 0  # semantics of an atomic operation that orders nothing else
# Acquire and release; buffers and shared memory. Visible to all of the workgroup.
BARRIER_SEMANTICS = 0x8 | 0x40 | 0x100
NO_CONTROL, UNROLL = 0, 1


def instruction(op: Op, *operands: int) -> list[int]:
    """The words of one instruction.

    >>> [hex(word) for word in instruction(Op.TypeInt, 1, 32, 0)]
    ['0x40015', '0x1', '0x20', '0x0']
    """
    return [(len(operands) + 1) << 16 | op, *operands]


def text_words(text: str) -> list[int]:
    """A literal string as words.

    >>> [hex(word) for word in text_words("abcd")]
    ['0x64636261', '0x0']
    """
    data = text.encode()
    data += bytes(4 - len(data) % 4)
    return [int.from_bytes(data[k : k + 4], "little") for k in range(0, len(data), 4)]


def words_text(words: Iterable[int]) -> str:
    """The literal string at the start of some words.

    >>> words_text(text_words("lanes"))
    'lanes'
    """
    data = b"".join(word.to_bytes(4, "little") for word in words)
    return data[: data.index(0)].decode()


def split(words: list[int]) -> Iterator[tuple[int, list[int]]]:
    """The instructions of a module, or of a part without header: opcode and operands."""
    at = HEADER_WORDS if words[:1] == [MAGIC] else 0
    while at < len(words):
        count, op = words[at] >> 16, words[at] & 0xFFFF
        yield op, words[at + 1 : at + count]
        at += count
