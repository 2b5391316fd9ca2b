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


def effort_for(plan: int) -> int:
    """LLVM's effort for functions that a plan of this effort calls."""
    # Made in a quarter of the time, they take twice as long, which a draft is not there for.
    return conventions.LITTLE if plan == conventions.HURRY else conventions.EFFORT


@compiler.lasting
def sorts(effort: int) -> compiler.Code:
    """The sort of words, and of rows. Errors: CompileError."""
    nbytes = compiler.machine().vector_bytes
    return compiler.compile_routine("sorts", (nbytes,), {}, lambda: _code().text(nbytes), effort)


@compiler.lasting
def words(key: Key, effort: int) -> compiler.Code:
    """The function that makes a key's words. Errors: CompileError."""
    nbytes = compiler.machine().vector_bytes
    known = nbytes, *key.words
    return compiler.compile_routine("words to sort by", known, {}, lambda: _keys().key_text(key, nbytes), effort)


def addresses(keys: Iterable[Sequence[str]], effort: int) -> dict[tuple[str, ...], int]:
    """The addresses of all functions, and of those for keys given by their words, by name."""
    functions = {(name,): sorts(effort).address(name) for name in FUNCTIONS}
    return functions | {tuple(key): words(key_of(key), effort).address("key") for key in keys}
