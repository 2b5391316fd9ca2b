"""Machine code of CUDA kernels, read without a GPU: registers, spills, the mix of inner loops.

NVRTC compiles (as the CUDA executor does), nvdisasm prints; both are wheels.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rune.backends.cuda.compiler import compile_source

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*);")
_LABEL = re.compile(r"^\s*(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_SECTION = re.compile(r"^\s*\.section\s+\.text\.(\w+)", re.M)
_REGISTERS = re.compile(r"EIATTR_REGCOUNT(?:(?!nvinfo).)*?index@\((\w+)\)\s*/\*\w+\*/\s*\.word\s+(0x[0-9a-f]+)", re.S)
_MEMORY = ("LDG", "STG", "LDS", "STS", "LDL", "STL", "LDSM", "LDGSTS")
PRODUCTS = ("FFMA", "HFMA2", "DFMA", "HMMA", "IMMA", "DMMA", "WGMMA", "HGMMA")


@dataclass(frozen=True, slots=True)
class Machine:
    """One kernel's machine code.

    mix:    instructions of its busiest inner loop, or of all of it, by name; memory with its bits
    spills: loads and stores of the stack
    """

    registers: int
    spills: int
    instructions: int
    mix: Mapping[str, int]

    def share(self, names: Sequence[str]) -> float:
        """The share of some instructions in the mix."""
        return sum(self.mix.get(n, 0) for n in names) / max(1, sum(self.mix.values()))

    @property
    def widths(self) -> str:
        """Loads from global and shared memory in the mix: `8 LDG.128, 4 LDS.32`."""
        loads = (f"{n} {name}" for name, n in sorted(self.mix.items()) if name.startswith(("LDG", "LDS")))
        return ", ".join(loads)


def machines(source: str, arch: str) -> dict[str, Machine]:
    """The machine code of every kernel of a program, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(compile_source(source, "kernels", arch))
        command = [str(disassembler()), str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return read(text)


def read(text: str) -> dict[str, Machine]:
    """The machine code of every kernel of a text as nvdisasm prints it."""
    registers = {name: int(number, 16) for name, number in _REGISTERS.findall(text)}
    parts = _SECTION.split(text)
    return {name: _machine(body, registers[name]) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def disassembler() -> Path:
    """nvdisasm, out of its wheel. Errors: PackageNotFoundError without it."""
    files = importlib.metadata.files("nvidia-cuda-nvdisasm") or ()
    path = Path(str(next(f for f in files if f.name.startswith("nvdisasm")).locate()))
    path.chmod(path.stat().st_mode | 0o100)
    return path


def _machine(text: str, registers: int) -> Machine:
    code = list(_code(text.splitlines()))
    names = [name for name, _ in code]
    spills = sum(name.split(".")[0] in ("LDL", "STL") for name in names)
    inner = max(_inner_loops(code), key=lambda loop: _weight(names[slice(*loop)]), default=(0, len(names)))
    mix = dict(Counter(filter(None, map(_short, names[slice(*inner)]))))
    return Machine(registers, spills, sum(map(bool, names)), mix)


def _weight(names: Sequence[str]) -> tuple[int, int]:
    """A loop counts by its products, then by its length."""
    return sum(n.split(".")[0] in PRODUCTS for n in names), len(names)


def _code(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Instructions and labels in order: name and operands; a label is named by itself."""
    for line in lines:
        label = _LABEL.match(line)
        if label:
            yield "", label[1]
        instruction = _INSTRUCTION.search(line)
        if instruction and instruction[1] != "NOP":
            yield instruction[1], instruction[2]


def _inner_loops(code: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """The innermost loops, each from its label to the branch back to it."""
    labels = {operands: place for place, (name, operands) in enumerate(code) if not name}
    loops = []
    for place, (name, operands) in enumerate(code):
        target = _TARGET.search(operands) if name.startswith("BRA") else None
        # A branch to itself ends every kernel.
        if target and labels.get(target[1], place) < place - 1:
            loops.append((labels[target[1]], place + 1))
    return [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def _short(name: str) -> str:
    """The name of an instruction; of memory with the bits of an access."""
    head, *modifiers = name.split(".")
    if head not in _MEMORY:
        return head
    bits = next((m.lstrip("US") for m in modifiers if m in ("8", "U8", "S8", "16", "U16", "S16", "64", "128")), "32")
    return f"{head}.{bits}"
