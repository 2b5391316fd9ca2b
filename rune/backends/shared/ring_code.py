"""The machine code of rings (ring.py).

@begin     writes the words of the next entry into the list
@is_free   whether no call uses it: asks for the ended calls if need be, when the list has its words
@end       notes the last call's number as the entry's use, and goes on to the next entry
"""

from __future__ import annotations

from functools import partial

from rune.backends.cpu.routines import Code, definitions, true
from rune.backends.shared.ring import HEAD
from rune.lowering.codegen.llvm.ir.text import Value

_PLACES = {name: number for number, name in enumerate(HEAD)}


def text(run: int) -> str:
    """The functions. run: the address of `@run` of lists of calls."""
    functions = [
        (("i1", "is_free", "ptr ring"), partial(_is_free, run)),
        (("void", "begin", "ptr ring"), _begin),
        (("void", "end", "ptr ring"), _end),
    ]
    return definitions(functions)


def _word(code: Code, ring: Value, name: str, type: str = "i64") -> Value:
    return code.load(type, code.item(ring, type, _PLACES[name]))


def _entry(code: Code, ring: Value) -> Value:
    """The address of the next entry."""
    width = _word(code, ring, "WIDTH") + 1
    return code.item(ring, "i64", _word(code, ring, "POSITION") * width + len(HEAD))


def last(code: Code, ring: Value) -> Value:
    """The number of the last call."""
    return code.load("i64", _word(code, ring, "LAST", "ptr"))


def _is_free(run: int, code: Code, ring: Value) -> Value:
    def is_over() -> Value:
        use, ended = code.load("i64", _entry(code, ring)), code.load("i64", _word(code, ring, "ENDED", "ptr"))
        return use.compare("ule", ended)

    def is_over_now() -> Value:
        code.tell("void", "begin", ring)
        count = code.ask("i64", code.at(run), _word(code, ring, "ASK", "ptr"))
        return code.where(count.equals(_word(code, ring, "ASKED")), is_over)

    has_entries = _word(code, ring, "COUNT").compare("ne", 0)
    return code.where(has_entries, lambda: code.choose(is_over(), lambda: true(code), is_over_now))


def _begin(code: Code, ring: Value) -> None:
    entry, target = _entry(code, ring), _word(code, ring, "TARGET", "ptr")

    def copy(k: Value) -> None:
        code.store(code.load("i64", code.item(entry, "i64", k)), code.item(target, "i64", k))

    code.count_up(code.constant("i64", 0), _word(code, ring, "WIDTH") + 1, 1, copy)


def _end(code: Code, ring: Value) -> None:
    code.store(last(code, ring), _entry(code, ring))
    following = _word(code, ring, "POSITION") + 1
    is_past = following.equals(_word(code, ring, "COUNT"))
    code.store(code.select(is_past, 0, following), code.item(ring, "i64", _PLACES["POSITION"]))
