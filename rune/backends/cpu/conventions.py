"""What modules of machine code, LLVM and the loader agree on: efforts, models, names."""

from __future__ import annotations

from rune.backends.cpu.images import loader

# LLVM's effort: without any pass over the module; with passes, but instructions chosen as quickly,
# for code that mostly calls other code; with passes, and instructions chosen well.
HURRY, LITTLE, EFFORT = 0, 1, 2
PATIENCE = 0.01  # how long code made in a hurry may run before it is replaced, timed in Python [s]

ASSEMBLY, OBJECT = 0, 1  # what LLVM is asked for

# LLVM maps code and constants apart, wherever there is room: in a process whose address space is
# in pieces they may be out of reach of 32 bits, so code that it links holds whole addresses.
ANYWHERE = ("static", "large")
IN_ONE_PIECE = ("pic", "small")  # an image is

_SYMBOL = "address."


def model() -> tuple[str, str]:
    """How code finds what it refers to, in LLVM's words."""
    return IN_ONE_PIECE if loader.is_available() else ANYWHERE


def symbol_of(number: int) -> str:
    """What an address of the process is called in a module."""
    return f"{_SYMBOL}{number}"


def number_of(symbol: str) -> int | None:
    """The number of the address that is called so; None for another name."""
    return int(symbol.removeprefix(_SYMBOL)) if symbol.startswith(_SYMBOL) else None


def declared(count: int) -> str:
    """The declarations of so many addresses."""
    return "".join(f"@{symbol_of(number)} = external global i8\n" for number in range(count))
