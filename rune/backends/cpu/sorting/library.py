"""The functions that sort, compiled when the first plan needs them; all programs share them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rune import locks
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.sorting.job import TAKES
from rune.backends.cpu.sorting.keys import Key, key_of

FUNCTIONS = ("sort_rows", "positions", *(f"take{nbytes}" for nbytes in TAKES))  # that plans call

# The modules that write them, imported if no earlier process has left the code.
_code = locks.late_module("rune.backends.cpu.sorting.code")
_keys = locks.late_module("rune.backends.cpu.sorting.keys_code")


@compiler.lasting
def sorts() -> compiler.Code:
    """The sort of words, and of rows. Errors: CompileError."""
    nbytes = compiler.machine().vector_bytes
    return compiler.compile_routine("sorts", (nbytes,), {}, lambda: _code().text(nbytes), conventions.EFFORT)


@compiler.lasting
def words(key: Key) -> compiler.Code:
    """The function that makes a key's words. Errors: CompileError."""
    nbytes = compiler.machine().vector_bytes
    return compiler.compile_routine(
        "words to sort by", (nbytes, *key.words), {}, lambda: _keys().key_text(key, nbytes), conventions.EFFORT
    )


def addresses(keys: Iterable[Sequence[str]]) -> dict[tuple[str, ...], int]:
    """The addresses of all functions, and of those for keys given by their words, by name."""
    functions = {(name,): sorts().address(name) for name in FUNCTIONS}
    return functions | {tuple(key): words(key_of(key)).address("key") for key in keys}
