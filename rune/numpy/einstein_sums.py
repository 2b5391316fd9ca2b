"""einsum: sums of products named by letters, as a chain of dot_general.

    "…ij,…jk->…ik"      letters of an operand, an ellipsis for unnamed axes, letters of the result

Operands are contracted in pairs, along the path that NumPy's optimiser finds or left to right. In
each step, a letter that neither the result nor another operand still needs is summed: if both
operands have it, it is contracted; if only one does, it is summed there. Other letters are batch or
free axes. A letter repeated in one operand takes the diagonal.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import listed, rank, refuse, resolved, together
from rune.numpy.matrices import diagonal
from rune.ops import conventions as c
from rune.ops.promote import apply
from rune.records import dataclass
from rune.sharding.shardings import Sharding
from rune.typing import ArrayLike, DTypeLike

# The axes of an ellipsis get their own letters, counted from the last.
_HIDDEN = [chr(0x2460 + i) for i in range(32)]
_NO_LETTERS = {*"->.", *_HIDDEN}  # any other character names an axis, as in JAX


@dataclass(frozen=True, slots=True)
class Term:
    """An array and the letter of each of its axes."""

    array: Any
    letters: str


def einsum(
    subscripts: Any,
    /,
    *operands: ArrayLike | Sequence[Hashable],
    out: None = None,
    optimize: object = "auto",
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
    _dot_general: Callable[..., Array] | None = None,
) -> Array:
    """Sum of products over named axes, as `np.einsum`; also einsum(x, [0, 1], y, [1, 2], [0, 2]).

    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes:   as the subscripts say: "ij,jk->ik" is [I, J], [J, K] -> [I, K]; "..." broadcasts.
    Types:    promoted together.
    optimize: "auto" tries every order of up to 4 operands and is greedy beyond; False contracts
              left to right; True, "greedy", "optimal" or a path as in NumPy.
    Errors:   ArgumentError for a malformed subscript; ShapeError where sizes of a letter differ.

    >>> import rune.numpy as rnp
    >>> rnp.einsum("ij,j->i", rnp.eye(2), rnp.array([1.0, 2.0]))
    Array([1., 2.], f32[2], cpu:0)
    """
    refuse("einsum", out=out)
    if getattr(_dot_general, "__name__", "dot_general") != "dot_general":
        raise ArgumentError(f"einsum: cannot contract by {_dot_general!r} (lax.dot_general alone)")
    if out_sharding is not None:
        how = {"optimize": optimize, "preferred_element_type": preferred_element_type}
        return resolved(einsum, out_sharding, subscripts, *operands, **how)
    terms, output = _read("einsum", subscripts, operands, preferred_element_type)
    total = _contracted(terms, output, _path(terms, output, optimize))
    return c.distinct(total, terms[0].array)


def _read(name: str, subscripts: str, operands: Sequence[object], dtype: DTypeLike | None) -> tuple[list[Term], str]:
    """The operands with their letters, and those of the result."""
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    arrays = together(name, *cast("Sequence[ArrayLike]", operands))
    if dtype is not None:
        arrays = [c.astype(x, dtypes.as_dtype(dtype)) for x in arrays]
    inputs, output = _parsed(subscripts, arrays)
    terms = [_term(x, letters) for x, letters in zip(arrays, inputs, strict=True)]
    return _stretched(terms), output


# --- the notation -----------------------------------------------------------------------------


def _from_lists(arguments: Sequence[object]) -> tuple[str, tuple[Any, ...]]:
    """The string form of einsum(x, [0, 1], y, [1, 2], [0, 2]); axes may have names of any kind.

    Errors: ArgumentError for names that have no order, or more names than letters.
    """
    operands, lists = arguments[0 : len(arguments) // 2 * 2 : 2], arguments[1::2]
    terms = [listed("einsum", "the axes of an operand", axes) for axes in lists]
    letters = _letters_of({axis for term in terms for axis in term if axis is not Ellipsis})
    text = ",".join(_term_of(term, letters) for term in terms)
    if len(arguments) % 2 == 0:
        return text, tuple(operands)
    result = listed("einsum", "the axes of the result", arguments[-1])
    return f"{text}->{_term_of(result, letters)}", tuple(operands)


def _letters_of(axes: set[Hashable]) -> dict[Hashable, str]:
    """A letter for each axis, in the order of the axes."""
    try:
        axes_in_order: list[Hashable] = sorted(axes)  # type: ignore[reportArgumentType]  # asked by trying
    except TypeError:
        raise ArgumentError(f"einsum: cannot order the axes {axes} (numbers or strings required)") from None
    # In ascending order: that of the result's axes if no result is given.
    names = string.ascii_lowercase if len(axes_in_order) <= 26 else "".join(sorted(string.ascii_letters))
    if len(axes_in_order) > len(names):
        raise ArgumentError(f"einsum: cannot name {len(axes_in_order)} axes (at most {len(names)})")
    return dict(zip(axes_in_order, names))


def _term_of(axes: Sequence[Hashable], letters: dict[Hashable, str]) -> str:
    unknown = [axis for axis in axes if axis is not Ellipsis and axis not in letters]
    if unknown:
        raise ArgumentError(f"einsum: cannot find the axes {unknown} of the result (those of an operand required)")
    return "".join("..." if axis is Ellipsis else letters[axis] for axis in axes)


def _parsed(subscripts: str, arrays: Sequence[ArrayLike]) -> tuple[list[str], str]:
    """The letters of every operand and of the result, with ellipses replaced by letters."""
    text = subscripts.replace(" ", "")
    terms, arrow, result_term = text.partition("->")
    inputs = terms.split(",")
    _check_notation(subscripts, inputs + ([result_term] if arrow else []))
    if len(inputs) != len(arrays):
        raise ArgumentError(f"einsum: cannot match {subscripts!r} to {len(arrays)} operands ({len(inputs)} named)")
    ellipsis_letters = [_hidden(term, x) for term, x in zip(inputs, arrays, strict=True)]
    operand_terms = [t.replace("...", h) for t, h in zip(inputs, ellipsis_letters, strict=True)]
    most = max(ellipsis_letters, key=len)
    if arrow:
        output = result_term.replace("...", most)
    else:
        counts = Counter(letter for term in inputs for letter in term.replace("...", ""))
        output = most + "".join(sorted(k for k, n in counts.items() if n == 1))
    _check_output(subscripts, operand_terms, output)
    return operand_terms, output


def _check_notation(subscripts: str, terms: Sequence[str]) -> None:
    for term in terms:
        if not _NO_LETTERS.isdisjoint(term.replace("...", "", 1)):
            raise ArgumentError(f"einsum: cannot read {subscripts!r} (at {term!r})")


def _check_output(subscripts: str, inputs: Sequence[str], output: str) -> None:
    known = set("".join(inputs))
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ArgumentError(
            f"einsum: cannot make the result of {subscripts!r} "
            "(each of its letters must be in an operand, and once in the result)"
        )


def _hidden(term: str, x: ArrayLike) -> str:
    letter_count = len(term.replace("...", ""))
    count = rank(x) - letter_count
    if count < 0 or (count > 0 and "..." not in term):
        raise ShapeError(f"einsum: cannot name the axes of {type_of(x)} by {term!r}")
    return "".join(reversed(_HIDDEN[:count]))


# --- operands ---------------------------------------------------------------------------------


def _term(x: ArrayLike, letters: str) -> Term:
    """An operand with each letter once: repeated letters take the diagonal."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            i = letters.index(letter)
            j = letters.index(letter, i + 1)
            if type_of(x).shape[i] != type_of(x).shape[j]:
                raise ShapeError(
                    f"einsum: cannot take the diagonal {letter!r} of {type_of(x)} (axes {i} and {j} differ)"
                )
            x = diagonal(x, 0, i, j)
            letters = "".join(k for n, k in enumerate(letters) if n not in (i, j)) + letter
    return Term(x, letters)


def _stretched(terms: Sequence[Term]) -> list[Term]:
    """Drop axes of size 1 that broadcast: their letter has a longer axis in another term."""
    sizes: dict[str, Size] = {}
    for term in terms:
        for letter, size in zip(term.letters, type_of(term.array).shape, strict=True):
            known = sizes.get(letter, 1)
            if known != 1 and size != 1 and known != size:
                shapes = ", ".join(str(type_of(t.array)) for t in terms)
                raise ShapeError(f"einsum: cannot contract {shapes} (axis {letter!r}: {known} against {size})")
            sizes[letter] = size if known == 1 else known
    return [_without_ones(term, sizes) for term in terms]


def _without_ones(term: Term, sizes: dict[str, Size]) -> Term:
    shape = type_of(term.array).shape
    unit_axes = [i for i, k in enumerate(term.letters) if shape[i] == 1 and sizes[k] != 1]
    if not unit_axes:
        return term
    letters = "".join(k for i, k in enumerate(term.letters) if i not in unit_axes)
    return Term(c.squeeze(term.array, tuple(unit_axes)), letters)


# --- paths ------------------------------------------------------------------------------------

Path = list[tuple[int, ...]]
FEW = 4  # up to this many operands every order is tried
_ASCII = string.ascii_letters
_UNKNOWN = 64  # the value of a symbolic size when paths are compared


def einsum_path(subscripts: str, /, *operands: ArrayLike, optimize: str = "auto") -> tuple[list[Array], str]:
    """The order in which `einsum` contracts its operands, and a report of its cost, as in NumPy.

    Shapes:   operands as for `einsum` -> a list of tuples, and a text.
    optimize: "auto" tries every order of up to 4 operands and is greedy beyond; "optimal",
              "greedy", True, False or a path choose otherwise.
    Errors:   as `einsum`.

    >>> import rune.numpy as rnp
    >>> x = rnp.ones((2, 9)), rnp.ones((9, 9)), rnp.ones(9)
    >>> rnp.einsum_path("ij,jk,k", *x)[0]
    ['einsum_path', (1, 2), (0, 1)]
    """
    terms, output = _read("einsum_path", subscripts, operands, None)
    return _numpy_path(terms, output, optimize)


def _path(terms: Sequence[Term], output: str, optimize: Any) -> Path:
    """Which terms to contract in each step; the product goes to the end of the list."""
    count = len(terms)
    letters = {k for t in terms for k in t.letters}
    if count < 3 or optimize is False or len(letters) > len(_ASCII):
        return [(0, 1), *((n, 0) for n in range(count - 2, 0, -1))][: count - 1]
    return _numpy_path(terms, output, optimize)[0][1:]


def _numpy_path(terms: Sequence[Term], output: str, optimize: str) -> tuple[list[Any], str]:
    letters = dict.fromkeys(k for t in terms for k in t.letters)
    names = dict(zip(letters, _ASCII, strict=False))
    text = ",".join("".join(names[k] for k in t.letters) for t in terms)
    text = f"{text}->{''.join(names[k] for k in output)}"
    shapes = [_shape_to_compare(t) for t in terms]
    return np.einsum_path(text, *shapes, optimize=_strategy(optimize, len(terms)))


def _shape_to_compare(term: Term) -> np.ndarray:
    sizes = (d if isinstance(d, int) else _UNKNOWN for d in type_of(term.array).shape)
    return np.broadcast_to(np.float32(0), tuple(sizes))


def _strategy(optimize: str, count: int) -> Any:
    if isinstance(optimize, list) and all(isinstance(step, tuple) for step in optimize):
        return ["einsum_path", *optimize]
    if optimize is True:
        return "greedy"
    return ("optimal" if count <= FEW else "greedy") if optimize == "auto" else optimize


# --- contraction ------------------------------------------------------------------------------


def _contracted(terms: list[Term], output: str, path: Sequence[tuple[int, ...]]) -> Array:
    for positions in path:
        operands = [terms[i] for i in positions]
        terms = [t for i, t in enumerate(terms) if i not in positions]
        while len(operands) > 1:
            others = "".join(t.letters for t in (*terms, *operands[2:]))
            operands[:2] = [_product(operands[0], operands[1], output + others)]
        terms.append(operands[0])
    last = _summed(terms[0], output)
    return c.transpose(last.array, [last.letters.index(k) for k in output])


def _summed(term: Term, result_letters: str) -> Term:
    """The term, with the letters that nothing needs summed out."""
    axes = tuple(i for i, k in enumerate(term.letters) if k not in result_letters)
    if not axes:
        return term
    is_bool = type_of(term.array).dtype == dtypes.bool_
    total = (ops.reduce_or if is_bool else ops.reduce_sum)(term.array, axes=axes)
    return Term(total, "".join(k for k in term.letters if k in result_letters))


def _product(x: Term, y: Term, result_letters: str) -> Term:
    """Two terms combined: letters of both that nothing else needs are contracted."""
    x, y = _summed(x, result_letters + y.letters), _summed(y, result_letters + x.letters)
    common_letters = [k for k in x.letters if k in y.letters]
    sum_letters = [k for k in common_letters if k not in result_letters]
    if not sum_letters:
        return _multiplied(x, y)
    batch = [k for k in common_letters if k in result_letters]
    of_x, of_y = (tuple(tuple(t.letters.index(k) for k in group) for group in (sum_letters, batch)) for t in (x, y))
    out = c.contract(x.array, y.array, ((of_x[0], of_y[0]), (of_x[1], of_y[1])))
    free = [k for t in (x, y) for k in t.letters if k not in common_letters]
    return Term(out, "".join((*batch, *free)))


def _multiplied(x: Term, y: Term) -> Term:
    """An elementwise product, with every operand broadcast over all letters."""
    letters = x.letters + "".join(k for k in y.letters if k not in x.letters)
    return Term(apply(ops.mul, _spread(x, letters), _spread(y, letters)), letters)


def _spread(term: Term, letters: str) -> Array:
    order = [term.letters.index(k) for k in letters if k in term.letters]
    missing = tuple(i for i, k in enumerate(letters) if k not in term.letters)
    array = c.transpose(term.array, order)
    return c.expand_dims(array, missing) if missing else array
