"""sparsify: a function of dense arrays, applied to sparse ones.

The function is traced with the types of the dense arrays, and its program runs with sparse values
where possible: a table has the rule of each operation for them. An operation without a rule, or
whose result would have no zeros (`cos`, `x + 1`), is refused when it meets a sparse operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias, cast

import numpy as np

import rune.numpy as rnp
from rune import ops, tree
from rune.array import Array
from rune.core.higher import equation_program
from rune.core.interpreter import bind, type_of
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.errors import TransformError
from rune.sparse.array import BCOO
from rune.sparse.coordinates import Sparse, spread
from rune.sparse.forms import bcoo_sum_duplicates, bcoo_transpose, elements_at
from rune.sparse.movement import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_dynamic_slice,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
)
from rune.sparse.products import Dims, bcoo_dot_general
from rune.transforms.programs.make_program import make_program

Mixed: TypeAlias = BCOO | Array


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """A function `f` of dense arrays that accepts sparse ones too.

    use_tracer: accepted as in JAX, without effect
    Products, sums, elementwise functions that keep 0, and movement of sparse arrays are sparse;
    a product with a dense array is dense. The program of a jit within `f` runs in the same way.
    Shapes: those of `f` on the dense arrays. Types: those of `f`.
    Errors: TransformError names an operation that has no sparse rule.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sparse import BCOO, sparsify
    >>> m = BCOO.fromdense(rnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparsify(lambda m, v: rnp.square(m).T @ v)(m, rnp.ones(2))
    Array([9., 4.], f32[2], cpu:0)
    >>> sparsify(lambda m: 2.0 * m + m)(m)
    BCOO(f32[2,2], nse=4)
    """

    @wraps(f)
    def sparsified(*args: object, **kwargs: object) -> Any:
        leaves, structure = tree.flatten((args, kwargs), is_leaf=_is_sparse)
        values = [x if isinstance(x, BCOO) or not isinstance(x, Sparse) else x.to_bcoo() for x in leaves]  # type: ignore[attr-defined]

        def of_leaves(*dense: Array) -> object:
            inner, keywords = tree.unflatten(structure, dense)
            return f(*inner, **keywords)

        types = [x.dense_type() if isinstance(x, Sparse) else x for x in values]
        program, shapes = make_program(of_leaves, return_shape=True)(*types)
        return tree.unflatten(tree.structure(shapes), _run(program, values))

    return sparsified


def _is_sparse(x: object) -> bool:
    return isinstance(x, Sparse)


def _run(program: Program, values: Sequence[Mixed]) -> list[Mixed]:
    """The results of the program; an equation with a sparse operand runs by its rule."""
    env: dict[Var, Mixed] = {**dict(program.constants), **dict(zip(program.inputs, values, strict=True))}

    def read(atom: Atom) -> Mixed:
        return cast(Array, atom.value) if isinstance(atom, Literal) else env[atom]

    for equation in program.equations:
        operands = [read(a) for a in equation.operands]
        results = _results(equation, operands)
        env.update(zip(equation.results, results, strict=True))
    return [rnp.asarray(read(a)) if isinstance(a, Literal) else read(a) for a in program.outputs]


def _results(equation: Equation, operands: Sequence[Mixed]) -> Sequence[Mixed]:
    primitive, params = equation.primitive, equation.params
    if not any(map(_is_sparse, operands)):
        results = bind(primitive, *operands, **params)
        return results if primitive.multiple_results else (results,)
    inner = equation_program(equation)
    if inner is not None:
        return _run(inner, operands)
    rule = _RULES.get(primitive.name)
    result = rule(*operands, **params) if rule else None
    if result is None:
        types = ", ".join(repr(x) if _is_sparse(x) else str(type_of(x)) for x in operands)
        raise TransformError(
            f"sparsify: cannot compute {primitive.name} of sparse arrays ({types})",
            hint="`todense` gives the dense array",
        )
    return (result,)


# --- rules: from operands, at least one of them a BCOO, and parameters to the result -------------


def _linear(name: str) -> Callable[..., Any]:
    """The rule for an operation that applies to each of several numbers at one position."""

    def rule(x: BCOO, **params: object) -> BCOO:
        return x.with_data(_applied(name, x.data, params))

    return rule


def _odd(name: str) -> Callable[..., Any]:
    """The rule for an operation that keeps 0, and applies to the sum of the numbers at one
    position.
    """

    def rule(x: BCOO, **params: object) -> BCOO | None:
        if not x.unique_indices and x.n_batch:
            return None
        m = x if x.unique_indices else bcoo_sum_duplicates(x, nse=x.nse)
        return m.with_data(_applied(name, m.data, params))

    return rule


def _applied(name: str, data: Array, params: dict[str, object]) -> Array:
    return bind(_PRIMITIVES[name], data, **params)


def _integer_pow(x: BCOO, *, exponent: int) -> BCOO | None:
    return _odd("integer_pow")(x, exponent=exponent) if exponent > 0 else None


def _mul(x: Mixed, y: Mixed) -> BCOO:
    """Multiplication commutes; numbers and dense arrays multiply by BCOO's own product."""
    return x * y if isinstance(x, BCOO) else cast(BCOO, y) * x


def _div(x: Mixed, y: Mixed) -> BCOO | None:
    if isinstance(y, BCOO) or not isinstance(x, BCOO):
        return None
    m = spread(x)
    return m.with_data(m.data / (y if np.ndim(y) == 0 else elements_at(m, rnp.broadcast_to(y, m.shape))))


def _add(x: Mixed, y: Mixed) -> Mixed | None:
    return cast(Mixed, x + y) if isinstance(x, BCOO) and isinstance(y, BCOO) else None


def _dot_general(x: Mixed, y: Mixed, *, dimension_numbers: Dims) -> Mixed:
    return cast(Mixed, bcoo_dot_general(x, y, dimension_numbers=dimension_numbers))


def _reduce_sum(x: BCOO, *, axes: Sequence[int]) -> Mixed:
    """The total over all axes is a number, and as dense as any."""
    return x.sum(axes)


def _concatenate(*parts: Mixed, axis: int) -> BCOO | None:
    sparse = [x for x in parts if isinstance(x, BCOO)]
    return bcoo_concatenate(sparse, dimension=axis) if len(sparse) == len(parts) else None


_ANY_NUMBERS = "neg real imag conj convert stop_gradient"
_KEEP_ZERO = """
    square sin tan asin atan sinh tanh asinh atanh sqrt cbrt expm1 log1p erf abs sign floor ceil round trunc
    reduce_precision
    """
_PRIMITIVES = {p.name: p for p in ops.PRIMITIVES}
_RULES: dict[str, Callable[..., Any]] = {
    **{name: _linear(name) for name in _ANY_NUMBERS.split()},
    **{name: _odd(name) for name in _KEEP_ZERO.split()},
    "integer_pow": _integer_pow,
    "mul": _mul,
    "div": _div,
    "add": _add,
    "sub": lambda x, y: _add(x, -y),
    "dot_general": _dot_general,
    "transpose": lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    "reduce_sum": _reduce_sum,
    "reshape": lambda x, *, shape: bcoo_reshape(x, new_sizes=shape),
    "reverse": lambda x, *, axes: bcoo_rev(x, axes),
    "broadcast": lambda x, *, shape, axes: bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=axes),
    "slice": lambda x, *, start, limit, stride: bcoo_slice(x, start_indices=start, limit_indices=limit, strides=stride),
    "dynamic_slice": lambda x, *starts, sizes: bcoo_dynamic_slice(x, starts, sizes),
    "concatenate": _concatenate,
}
