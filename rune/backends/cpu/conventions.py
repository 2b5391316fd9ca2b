"""Conventions between modules of machine code, LLVM and the loader: efforts, models, names."""

from __future__ import annotations

from rune.backends.cpu.images import loader

# LLVM's effort. HURRY: no passes, fast instruction selection. LITTLE: passes, fast selection, for
# code that mostly calls other code. EFFORT: passes, and selection at optimisation level 2.
HURRY, LITTLE, EFFORT = 0, 1, 2
PATIENCE = 0.01  # [s] that code made at HURRY may run in all before it is replaced
# Better code takes so many seconds for each byte of that, rendering included. Where this is more
# than LONG, the code may run for half as long, and native code leaves calls to it until then.
BYTE, LONG = 7e-6, 1.0

ASSEMBLY, OBJECT = 0, 1  # LLVM's numbers of output formats

# LLVM's linker maps code and constants separately, wherever there is room. In a process with a
# fragmented address space they may be out of reach of 32-bit offsets, so this code has 64-bit
# addresses.
ANYWHERE = ("static", "large")
IN_ONE_PIECE = ("pic", "small")  # an image is one mapping, within which 32-bit offsets reach all

_SYMBOL = "address."


def model() -> tuple[str, str]:
    """LLVM's relocation model and code model."""
    return IN_ONE_PIECE if loader.is_available() else ANYWHERE


def symbol_of(number: int) -> str:
    """The symbol of a module for an address of the process."""
    return f"{_SYMBOL}{number}"


def number_of(symbol: str) -> int | None:
    """The number of the address with this symbol; None for other names."""
    return int(symbol.removeprefix(_SYMBOL)) if symbol.startswith(_SYMBOL) else None


def declared(count: int) -> str:
    """Declarations of the symbols of `count` addresses."""
    return "".join(f"@{symbol_of(number)} = external global i8\n" for number in range(count))
