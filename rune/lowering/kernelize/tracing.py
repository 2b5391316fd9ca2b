"""Look through views: which element of which value does a variable show?

Only views that show one element unconditionally are looked through. Two values have the same
elements in the same order when the row-major positions of a generic element are equal
expressions; the algebra of `rune.dims` decides it for any chain of reshapes and transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rune.core.lower import View
from rune.core.program import Atom, Definitions, Equation, Literal, Var
from rune.dims import Dim, Size, flat_index, product, symbol
from rune.lowering.kernelize.views import Indices, resolve


def generic(shape: Iterable[Size], prefix: str = "_i") -> tuple[Dim, ...]:
    """One symbol for each axis: the indices of a generic element."""
    return tuple(symbol(f"{prefix}{k}", 0, size - 1) for k, size in enumerate(shape))


def trace(atom: Atom, indices: Indices, definitions: Definitions) -> tuple[Atom, Indices]:
    """The atom and indices behind the views that define `atom`."""
    *_, last = _behind(atom, indices, definitions)
    return last


def _behind(atom: Atom, indices: Indices, definitions: Definitions) -> Iterator[tuple[Atom, Indices]]:
    """The atom, and what each of the views that define it shows."""
    yield atom, indices
    while isinstance(atom, Var) and atom in definitions:
        equation = definitions[atom]
        if not isinstance(equation.primitive.lower, View):
            return
        resolution = resolve(equation, indices)
        # With several pieces, a condition or an index read from memory, which element is shown
        # depends on data or on the place.
        if len(resolution.pieces) != 1 or resolution.pieces[0].where or resolution.pieces[0].elements:
            return
        atom, indices = equation.operands[resolution.pieces[0].operand], resolution.pieces[0].indices
        yield atom, indices


def upstream(
    starts: Iterable[Atom], definitions: Definitions, passes: Callable[[Var, Equation], bool]
) -> Iterator[Var]:
    """The variables from which values are computed: first their own, and each once.

    passes: whether the walk goes on from a variable to the operands of its equation
    """
    pending = list(dict.fromkeys(a for a in starts if isinstance(a, Var)))
    visited = set(pending)
    while pending:
        var = pending.pop()
        yield var
        equation = definitions.get(var)
        if equation is not None and passes(var, equation):
            new = dict.fromkeys(a for a in equation.operands if isinstance(a, Var) and a not in visited)
            visited.update(new)
            pending += new


def same_elements(atom: Atom, definitions: Definitions) -> Atom:
    """The value that `atom` only reshapes, perhaps several times, or `atom` itself."""
    if not isinstance(atom, Var) or atom not in definitions or 0 in atom.type.shape:
        return atom
    indices = generic(atom.type.shape)
    place, base = flat_index(indices, atom.type.shape), atom
    for candidate, at in _behind(atom, indices, definitions):
        if isinstance(candidate, Literal) or candidate.type.dtype != atom.type.dtype:
            break
        # Equal places are not enough: a slice of the first rows has them, too.
        same = flat_index(at, candidate.type.shape) == place
        if same and product(candidate.type.shape) == product(atom.type.shape):
            base = candidate
    return base
