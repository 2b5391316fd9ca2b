"""Operands and index expressions as infix text, for the C family and WGSL.

An operand is a name, a call, a literal, or in parentheses. braces.py writes the statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rune.dims import Dim, FloorDiv, Mod, Size, Symbol, Term, product
from rune.lowering.codegen.index_width import lifted, may_be_zero
from rune.lowering.kernel.nodes import For


def bare(text: str) -> str:
    """The expression without parentheses that enclose all of it.

    >>> bare("(a + b)"), bare("(a) + (b)"), bare("(float)(a)")
    ('a + b', '(a) + (b)', '(float)(a)')
    """
    if not text.startswith("("):
        return text
    depth = 0
    for at, letter in enumerate(text):
        # Depth 0 before the end means that the first parenthesis closes early, as in "(a) + (b)".
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if at == len(text) - 1 else text
    return text


def atom(text: str) -> str:
    """An index expression as an operand."""
    is_call = re.fullmatch(r"rune_divisor\([^()]*\)", text)
    return text if is_call or text.isidentifier() or text.isdigit() else f"({text})"


def ascii_name(name: str) -> str:
    """A name of the kernel, escaped to characters that every language accepts.

    >>> ascii_name("x"), ascii_name("%0")
    ('x', '_u250')
    """
    return re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):x}", name)


# --- index expressions --------------------------------------------------------------------------


def index_text(x: Size, symbol: Callable[[str], str]) -> str:
    """An index expression, without parentheses around a sum; `symbol` gives the text of a symbol.

    Division is the plain operator where the bounds show that no operand is negative, else a helper
    that floors. A divisor that may be 0 goes through a helper that replaces 0 by 1.
    """
    if not isinstance(x, Dim):
        return str(x)
    # Signs join the terms, so that no text reads "+ -3".
    first, *later_terms = (_term(t, symbol) for t in x.terms)
    return first + "".join(f" - {t[1:]}" if t[0] == "-" else f" + {t}" for t in later_terms)


def _term(term: Term, symbol: Callable[[str], str]) -> str:
    factors = [_factor(f, symbol) for f in term.factors]
    if not factors or term.coefficient not in (1, -1):
        return " * ".join([str(term.coefficient), *factors])
    return ("-" if term.coefficient < 0 else "") + " * ".join(factors)


def _factor(factor: Symbol | FloorDiv | Mod, symbol: Callable[[str], str]) -> str:
    if isinstance(factor, Symbol):
        return symbol(factor.name)
    quotient = isinstance(factor, FloorDiv)
    numerator, up, is_plain = lifted(factor.numerator, factor.denominator)
    a, b = index_text(numerator, symbol), index_text(factor.denominator, symbol)
    if may_be_zero(factor.denominator):
        b = f"rune_divisor({b})"
    if not is_plain:
        return f"rune_{'floordiv' if quotient else 'mod'}({a}, {b})"
    down = f" - {up}" if up and quotient else ""
    return f"({atom(a)} {'/' if quotient else '%'} {atom(b)}{down})"


def unfolded(loops: Sequence[For], position: str, size: Callable[[Size], str]) -> Iterator[tuple[str, str]]:
    """The loop variables of a nest and their values from one number; the last varies fastest."""
    for number, loop in enumerate(loops):
        inner = product(x.extent for x in loops[number + 1 :])
        at = position
        if inner != 1:
            at += f" / {atom(size(inner))}"
        if number:
            at = f"{atom(at)} % {atom(size(loop.extent))}"
        yield loop.var, at
