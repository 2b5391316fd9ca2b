"""SPIR-V words as text for readers: one instruction a line, numbers in place of their declarations.

    %41 = AccessChain ptr f32 %28 0 %40
    %42 = Load f32 %41 Aligned 4

Types and constants are written where they are used, and ids by their names where the module gives
them one. Decorations follow the line that they apply to. The printer knows the instructions in
words.py, no others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

import numpy as np

from rune.lowering.codegen.spirv.binary.words import (
    ALIGNED,
    BuiltIn,
    Capability,
    Decoration,
    ExecutionMode,
    Glsl,
    Op,
    StorageClass,
    split,
    words_text,
)
from rune.records import dataclass

_NO_RESULT = frozenset(
    {
        Op.Store,
        Op.ControlBarrier,
        Op.LoopMerge,
        Op.SelectionMerge,
        Op.Branch,
        Op.BranchConditional,
        Op.Return,
        Op.ReturnValue,
        Op.FunctionEnd,
    }
)
_HIDDEN = frozenset({Op.MemoryModel, Op.ExtInstImport, Op.Name, Op.Decorate, Op.MemberDecorate})
_CONTROL = {0: "None", 1: "Unroll"}


@dataclass(slots=True)
class _Printer:
    """Reads instructions in order. `names`: how an id is written."""

    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    decorations: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    members: defaultdict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))

    def id(self, id: int) -> str:
        """An id as text."""
        return self.names.get(id, f"%{id}")

    def ids(self, ids: list[int]) -> str:
        """Ids side by side."""
        return " ".join(map(self.id, ids))

    def emit(self, text: str) -> None:
        self.lines.append(text)

    # --- annotations -------------------------------------------------------------------------

    def annotate(self, op: int, words: list[int]) -> None:
        """Keep names and decorations for when their id is declared."""
        match op:
            case Op.Name:
                self.names[words[0]] = f"%{words_text(words[1:])}"
            case Op.Decorate:
                self.decorations[words[0]].append(_decoration(words[1], words[2:]))
            case Op.MemberDecorate:
                is_offset = words[2] == Decoration.Offset
                text = f"@{words[3]}" if is_offset else _decoration(words[2], words[3:])
                self.members[words[0], words[1]].append(text)

    def suffix(self, id: int) -> str:
        """Decorations of an id."""
        return f"   # {', '.join(self.decorations[id])}" if id in self.decorations else ""

    # --- declarations ------------------------------------------------------------------------

    def type(self, op: int, words: list[int]) -> str | None:
        """How a type is written; None if the name is not a type."""
        match op:
            case Op.TypeVoid | Op.TypeBool:
                return Op(op).name.removeprefix("Type").lower()
            case Op.TypeInt | Op.TypeFloat:
                return f"{'i' if op == Op.TypeInt else 'f'}{words[1]}"
            case Op.TypeVector:
                return f"{self.id(words[1])}x{words[2]}"
            case Op.TypeArray:
                return f"{self.id(words[1])}[{self.id(words[2])}]"
            case Op.TypeRuntimeArray:
                return f"{self.id(words[1])}[]"
            case Op.TypePointer:
                return f"ptr {self.id(words[2])}"
            case Op.TypeFunction:
                return f"({', '.join(map(self.id, words[2:]))}) -> {self.id(words[1])}"
            case _:
                return None

    def constant(self, op: int, words: list[int]) -> str | None:
        """How a constant is written; None if the value is not a constant."""
        if op in (Op.ConstantTrue, Op.ConstantFalse):
            return "true" if op == Op.ConstantTrue else "false"
        if op != Op.Constant:
            return None
        kind = self.id(words[0])
        raw = sum(word << 32 * k for k, word in enumerate(words[2:]))
        size = int(kind[1:]) // 8
        code = {"i": "i", "f": "f"}[kind[0]] + str(size)
        value = np.frombuffer(raw.to_bytes(8, "little")[:size], f"<{code}")[0]
        return str(value) if kind == "i32" else f"{value}_{kind}"

    # --- instructions ------------------------------------------------------------------------

    def instruction(self, op: int, words: list[int]) -> None:
        """Write one line, or none for what appears in other lines."""
        kind = self.type(op, words)
        constant = self.constant(op, words)
        if kind is not None or constant is not None:
            self.names[words[0 if kind is not None else 1]] = kind or constant or ""
        elif op not in _HIDDEN:
            self.other(Op(op), words)

    def other(self, op: Op, words: list[int]) -> None:
        """Write an instruction that is neither a type, nor a constant, nor an annotation."""
        match op:
            case Op.Capability:
                self.emit(f"Capability {Capability(words[0]).name}")
            case Op.EntryPoint:
                self.emit(f'EntryPoint {self.id(words[1])} "{words_text(words[2:])}"')
            case Op.ExecutionMode:
                mode = ExecutionMode(words[1]).name
                self.emit(f"ExecutionMode {mode} {' '.join(map(str, words[2:]))}")
            case Op.TypeStruct:
                self.names[words[0]] = f"struct{words[0]}"
                self.emit(f"struct{words[0]}:{self.suffix(words[0])}")
                for k, member in enumerate(words[1:]):
                    attributes = " ".join(self.members[words[0], k])
                    self.emit(f"  {attributes} {self.id(member)}")
            case Op.Label:
                self.emit(f"{self.id(words[0])}:")
            case _ if op in _NO_RESULT:
                self.emit(f"  {op.name} {self.operands(op, words)}".rstrip())
            case _:
                head = f"  {self.id(words[1])} = {op.name} {self.id(words[0])}"
                text = f"{head} {self.operands(op, words[2:])}".rstrip()
                self.emit(text + self.suffix(words[1]))

    def operands(self, op: Op, words: list[int]) -> str:
        """The operands after the result."""
        match op:
            case Op.Variable:
                return StorageClass(words[0]).name
            case Op.Function:
                return self.id(words[1])
            case Op.ExtInst:
                return f"{Glsl(words[1]).name} {self.ids(words[2:])}"
            case Op.LoopMerge | Op.SelectionMerge:
                return f"{self.ids(words[:-1])} {_CONTROL[words[-1]]}"
            case Op.Load if len(words) > 1:
                return f"{self.id(words[0])} {_memory(words[1:])}"
            case Op.Store if len(words) > 2:
                return f"{self.ids(words[:2])} {_memory(words[2:])}"
            case _:
                return self.ids(words)


def _memory(words: list[int]) -> str:
    assert words[0] == ALIGNED
    return f"Aligned {words[1]}"


def _decoration(decoration: int, words: list[int]) -> str:
    name = Decoration(decoration).name
    if decoration == Decoration.BuiltIn:
        return f"{name} {BuiltIn(words[0]).name}"
    return " ".join([name, *map(str, words)])


def to_text(binary: bytes) -> str:
    """The module as text."""
    printer = _Printer()
    instructions = list(split(np.frombuffer(binary, "<u4").tolist()))
    for op, words in instructions:
        printer.annotate(op, words)
    for op, words in instructions:
        printer.instruction(op, words)
    return "\n".join(printer.lines) + "\n"
