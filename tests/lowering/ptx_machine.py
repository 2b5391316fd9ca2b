"""A machine for the PTX that rune writes: one thread after the other, over NumPy arrays.

It knows the instructions that ptx.py may emit, each by its meaning in the PTX ISA, and no others.
Registers are Python integers holding bits; an instruction reads them as its type says. They begin
with nothing in them, as does .local memory with bytes that make no sense, and an instruction may
only use those that the text declares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune.lowering.kernel.scalar import SCALAR_MEANING

_NUMPY = {
    **{f"{k}{w}": np.dtype(f"{c}{w // 8}") for k, c in (("u", "u"), ("s", "i"), ("b", "u"))
       for w in (8, 32, 64)},
    "f32": np.dtype("f4"), "f64": np.dtype("f8"), "pred": np.dtype(bool),
}  # fmt: skip
_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
_UNARY = {"neg": np.negative, "abs": np.abs, "not": np.invert, "sqrt": np.sqrt, "mov": np.array}
_COMPARED = {
    "eq": np.equal, "ne": np.not_equal, "neu": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}  # fmt: skip
_REGISTERS = re.compile(r"\.reg \.\w+ %(\w)<(\d+)>;")
_LOCAL = re.compile(r"\.local \.align \d .b8 (\w+)\[(\d+)\];")
_OPERAND = re.compile(r"\[[^]]*\]|[^\s,;]+")


def run_entry(text: str, table: np.ndarray, arrays: Sequence[np.ndarray], threads: int) -> None:
    """Run an entry of the text. `table` holds, for each array, its number << 32; then sizes."""
    body = text[text.rindex("{") + 1 : text.rindex("}")]
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    with np.errstate(all="ignore"):
        for thread in range(threads):
            _Thread(lines, table, arrays, thread).run()


class _Thread:
    def __init__(self, lines: list[str], table: Any, arrays: Any, thread: int):
        self.lines, self.arrays = lines, [table, *arrays]
        self.registers: dict[str, Any] = {"%ctaid.x": np.uint32(thread // 4)}
        self.registers |= {"%ntid.x": np.uint32(4), "%tid.x": np.uint32(thread % 4)}
        self.labels = {line[:-1]: at for at, line in enumerate(lines) if line.endswith(":")}
        declared = (_REGISTERS.match(line) for line in lines)
        self.declared = {f"%{m[1]}{n}" for m in declared if m for n in range(int(m[2]))}
        local = (_LOCAL.match(line) for line in lines)
        self.local = {m[1]: np.full(int(m[2]), 0xA5, np.uint8) for m in local if m}

    def run(self) -> None:
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            at += 1
            if line.endswith(":") or line.startswith((".reg", ".local")):
                continue
            guard, rest = line[1:].split(" ", 1) if line.startswith("@") else ("", line)
            if guard and not self.registers[guard]:
                continue
            instruction, _, operands = rest.partition(" ")
            name, *suffixes = instruction.rstrip(";").split(".")
            if name == "ret":
                return
            if name == "bra":
                at = self.labels[operands.rstrip(";")]
            else:
                self.do(name, suffixes, _OPERAND.findall(operands))

    def read(self, operand: str, kind: str) -> Any:
        """An operand as a value of a type."""
        dtype = _NUMPY[kind]
        if operand in self.registers:
            bits = np.asarray(self.registers[operand])
            return bits if kind == "pred" else bits.view(dtype)[()]
        if operand[:2] in ("0f", "0d"):
            return np.array(int(operand[2:], 16), f"u{dtype.itemsize}").view(dtype)[()]
        number = int(operand, 0) % (1 << 8 * dtype.itemsize)
        return np.array(number, f"u{dtype.itemsize}").view(dtype)[()]

    def do(self, name: str, suffixes: list[str], operands: list[str]) -> None:
        kind = suffixes[-1]
        if name == "st":
            target = self.element(operands[0], kind)
            target[...] = self.read(operands[1], "u32" if kind == "u8" else kind)
            return
        if name == "cvta":
            found = self.read(operands[1], "u64")
        elif name == "ld":
            found = self.loaded(suffixes, operands[1], kind)
        else:
            found = self.value(name, suffixes, operands[1:], kind)
        assert operands[0] in self.declared, operands
        self.registers[operands[0]] = np.asarray(found)

    def loaded(self, suffixes: list[str], operand: str, kind: str) -> Any:
        if suffixes[0] == "param":
            return np.uint64(0)
        element = self.element(operand, kind)[0]
        return np.uint32(element) if kind == "u8" else element

    def element(self, operand: str, kind: str) -> np.ndarray:
        """One element of memory: a number of an array, and an offset in bytes."""
        base, _, more = operand.strip("[]").partition("+")
        dtype = _NUMPY[kind]
        if base in self.local:
            data, at = self.local[base], int(more)
        else:
            address = int(self.read(base, "u64")) + int(more or 0)
            data, at = self.arrays[address >> 32].view(np.uint8).reshape(-1), address & 0xFFFFFFFF
        assert at + dtype.itemsize <= data.size, operand
        return data[at : at + dtype.itemsize].view(dtype)

    def value(self, name: str, suffixes: list[str], operands: list[str], kind: str) -> Any:
        match name:
            case "setp":
                return _COMPARED[suffixes[0]](*(self.read(x, kind) for x in operands))
            case "selp":
                a, b = (self.read(x, kind) for x in operands[:2])
                return a if self.registers[operands[2]] else b
            case "cvt":
                return _converted(self.read(operands[0], kind), suffixes)
            case "mad":
                a, b, c = (self.read(x, kind) for x in operands)
                return a * b + c
            case "fma":
                return SCALAR_MEANING["fma"](*(self.read(x, kind) for x in operands))
            case "mul" if suffixes[0] == "wide":
                a, b = (np.uint64(self.read(x, kind)) for x in operands)
                return a * b
            case "div" | "rem" if kind == "s64":
                a, b = (self.read(x, kind) for x in operands)
                assert a >= 0 < b
                return a // b if name == "div" else a % b
            case "div":
                a, b = (self.read(x, kind) for x in operands)
                return a / b
            case _ if name in _BINARY:
                return _BINARY[name](*(self.read(x, kind) for x in operands))
            case _:
                return _UNARY[name](self.read(operands[0], kind))


def _converted(x: Any, suffixes: list[str]) -> Any:
    """PTX saturates; of a NaN it makes what this machine makes anything but 0."""
    *how, to, from_ = suffixes
    target = _NUMPY[to]
    if from_[0] == "f" and target.kind in "iu":
        assert how == ["rzi"]
        if np.isnan(x):
            return target.type(77)
        return _saturated(float(x), target)
    assert how == (["rn"] if target.kind == "f" and (from_, to) != ("f32", "f64") else [])
    return x.astype(target)


def _saturated(x: float, target: np.dtype) -> Any:
    """Towards zero, within the range."""
    low, high = np.iinfo(target).min, np.iinfo(target).max
    whole = low if x <= low else high if x >= high else int(x)
    return np.array(whole, target)[()]
