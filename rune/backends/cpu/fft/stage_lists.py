"""Lists of stages that routines read, and the data of each stage.

Functions of stages are compiled where no other length has had them. A stage of a large prime has
stages of its own, which transform its convolution.
"""

from __future__ import annotations

import functools

import numpy as np

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft.conventions import IN_PARTS, Ends
from rune.backends.cpu.fft.convolutions import order_of, spectrum_of
from rune.backends.cpu.fft.lengths import circular_length, few_radices, piece_of
from rune.backends.cpu.fft.tables import roots_of_prime, turns_of_stage
from rune.backends.cpu.vector_routines import shape_of
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a transform in lanes: OF_STAGE words of each, and the tables they point to."""

    words: np.ndarray
    tables: tuple[object, ...]

    @property
    def address(self) -> int:
        """Of the words."""
        return self.words.ctypes.data


@functools.lru_cache(maxsize=256)
def stages_of(n: int, dtype: np.dtype, ends: Ends = IN_PARTS, factor: float = 1.0) -> Stages:
    """The stages of n numbers. factor: of the results, where they are written as pairs"""
    length, stage_radices = 1, few_radices(n)
    words: list[int] = []
    tables: list[object] = []
    for k, radix in enumerate(stage_radices):
        runs, last = n // (radix * length), k == len(stage_radices) - 1
        of_stage = Ends("parts" if k else ends.reads, ends.writes if last else "parts")
        data = data_of_stage(radix, runs, dtype, factor if of_stage.writes != "parts" else None)
        code = _code(dtype, piece_of(radix, last), of_stage)
        words += [code.address(piece_of(radix, last)), data.address, runs, length]
        tables.append(data)
        length *= radix
    return Stages(np.array(words, np.int64), tuple(tables))


def data_of_stage(radix: int, runs: int, dtype: np.dtype, factor: float | None = None) -> Stages:
    """What a stage reads: its turns, or words. factor: of the pairs that the last stage writes"""
    factors, turns = np.array([factor or 1], dtype), turns_of_stage(radix, runs, dtype)
    match piece_of(radix, last=False):
        case "prime":
            roots = roots_of_prime(radix, dtype)
            words = [x.ctypes.data for x in (turns, factors, roots)]
            return Stages(np.array([*words, radix, radix // 2], np.int64), (turns, factors, roots))
        case "convolved":
            size = circular_length(radix)
            stages, spectrum, order = stages_of(size, dtype), spectrum_of(radix, size, dtype), order_of(radix)
            words = [x.ctypes.data for x in (turns, factors, stages.words, spectrum, order)]
            numbers = [*words, radix, size, len(few_radices(size))]
            return Stages(np.array(numbers, np.int64), (turns, factors, stages, spectrum, order))
        case _:
            # The last stage has no turns: where it writes pairs, its table is the factor.
            return Stages(turns if factor is None else factors, ())


@compiler.lasting
def _code(dtype: np.dtype, piece: str, ends: Ends) -> compiler.Code:
    """The code of a stage. It must last, as words contain its address."""
    shape = shape_of(dtype)

    def write() -> str:
        return _writer().stage_text(shape, piece, ends)

    # With effort: stages made in a hurry took up to a quarter more time (decision 0110).
    return compiler.compile_routine("stage", (str(dtype), piece, *ends), {}, write, conventions.EFFORT)


# The module that writes the stages, imported for the first one that is not on disk.
_writer = locks.late_module("rune.backends.cpu.fft.pieces")
