"""The functions of which routines are put together, by their names."""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.fft import lines
from rune.backends.cpu.fft.conventions import IN_PARTS, Ends
from rune.backends.cpu.fft.convolutions_code import convolved_function
from rune.backends.cpu.fft.stages import declarations, prime_function, stage_function
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.vector_routines_code import public


def piece_text(shape: Shape, name: str, ends: Ends = IN_PARTS) -> str:
    """The function, visible outside of its module. ends: of a stage"""
    if name in _MOVES:
        return public(_MOVES[name](shape))
    stem = name.rstrip("0123456789")
    radix = name.removeprefix(stem)
    write = partial(stage_function, radix=int(radix), turns=stem == "turned") if radix else _OF_PRIMES[name]
    return public(write(shape, ends=ends))


def stage_text(shape: Shape, name: str, ends: Ends) -> str:
    """The module of a stage."""
    return f"{declarations(shape)}\n\n{piece_text(shape, name, ends)}"


_OF_PRIMES = {"prime": prime_function, "convolved": convolved_function}
_MOVES = {
    "squares": lines.squares_function,
    "gather_line": lines.gather_line_function,
    "scatter_line": lines.scatter_line_function,
    "turned_squares": lines.turned_squares_function,
}
