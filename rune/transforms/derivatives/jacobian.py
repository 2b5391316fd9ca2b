"""Jacobians, Hessians and their products with vectors.

A Jacobian is one linearization applied to all rows of a basis at once (vmap): forwards to tangents
of the arguments or, transposed, backwards to cotangents of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.higher import equations_within
from rune.core.interpreter import is_differentiable, type_of
from rune.core.lists import pick
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import less, product
from rune.errors import TransformError
from rune.ops import cast, eq, iota, reshape
from rune.ops.movement import move_axis, repeat_lane
from rune.records import dataclass
from rune.transforms.arguments import named, require_callable
from rune.transforms.batching.batch import batch_flat
from rune.transforms.custom.vjp import custom_lin
from rune.transforms.derivatives.argument_choice import Chosen, require_inputs, require_result
from rune.transforms.derivatives.directional import jvp
from rune.transforms.derivatives.flat_functions import Aux, flatten
from rune.transforms.derivatives.grad import grad
from rune.transforms.derivatives.linearize import LinearMap, linearize_flat
from rune.transforms.derivatives.signatures import Jacobian, Loss, P
from rune.transforms.derivatives.tangents import filled
from rune.transforms.derivatives.vjp import pull_back

Mode = Literal["forward", "reverse"]


@dataclass(frozen=True, slots=True)
class _At:
    """A flat function linearized at a point."""

    leaves: Sequence[Value]
    outs: Sequence[Value]
    linear: LinearMap
    active: tuple[bool, ...]  # which leaves have a derivative


@dataclass(frozen=True, slots=True)
class _Options:
    """The arguments of the function that asked for a Jacobian. mode None: the cheaper one."""

    name: str
    argnums: int | Sequence[int]
    mode: Mode | None
    has_aux: bool
    holomorphic: bool
    allow_int: bool = False


def _jacobian(function: Callable[..., object], options: _Options) -> Callable[..., object]:
    require_callable(options.name, function)

    def jacobian(*args: object, **kwargs: object) -> object:
        main = Aux(function) if options.has_aux else function
        choice = Chosen(main, options.argnums, args, kwargs)
        _require_inputs(choice, options)
        leaves, flat = flatten(options.name, choice, choice.values)
        active = tuple(map(is_differentiable, leaves))
        # The function runs once, whichever mode follows: both apply the same linear map.
        at = _At(leaves, *linearize_flat(flat, leaves, active), active)
        rows = [tree.unflatten(flat.treedef, row) for row in _blocks(at, options)]
        if isinstance(options.argnums, int):
            rows = [row[0] for row in rows]
        blocks = tree.unflatten(flat.out_tree, rows)
        return (blocks, main.aux) if isinstance(main, Aux) else blocks

    return named(jacobian, function, options.name)


def _require_inputs(choice: Chosen, options: _Options) -> None:
    if options.mode == "forward" and not options.holomorphic:
        choice.require(options.name, dtypes.FLOATING, "real floating")
    require_inputs(options.name, choice, options.holomorphic, options.allow_int)


def _blocks(at: _At, options: _Options) -> list[list[Any]]:
    """The block of every result and argument leaf: [result][argument], each of shape S + T."""
    mode = options.mode or _cheaper(at)
    if mode == "forward":
        # Forward mode computes columns, and the blocks are returned by rows.
        columns = [_column(at, i) for i in range(len(at.leaves))]
        return [[column[o] for column in columns] for o in range(len(at.outs))]
    for out in at.outs:
        require_result(options.name, type_of(out), options.holomorphic)
    return [_row(at, o) for o in range(len(at.outs))]


def _cheaper(at: _At) -> Mode:
    """Forward if there are no more inputs than outputs, and forward mode can be applied."""
    # jacfwd refuses complex arguments unless holomorphic, and the bwd of a custom_vjp has no jvp.
    complex_in = any(type_of(x).dtype in dtypes.COMPLEX for x in at.leaves)
    if complex_in or _is_reverse_only(at.linear.program):
        return "reverse"
    numbers_in, numbers_out = (
        sum((product(type_of(x).shape) for x in side if is_differentiable(x)), 0) for side in (at.leaves, at.outs)
    )
    # `less` is None if symbolic sizes leave the comparison open: then forward, too.
    return "reverse" if less(numbers_out, numbers_in) else "forward"


def _is_reverse_only(program: Program) -> bool:
    """Whether some equation is the linear map of a custom_vjp function, which only transposes."""
    return any(e.primitive is custom_lin for e in equations_within(program))


def _basis(type: ArrayType) -> Array:
    count = product(type.shape)
    # A basis of symbolic size is built from operations, to be computed when the size is known.
    if isinstance(count, int):
        rows = np.eye(count, dtype=type.dtype).reshape(count, *type.shape)
        return Array(rows, ArrayType(rows.shape, type.dtype))
    row, column = (iota(shape=(count, count), axis=axis, dtype=dtypes.i32) for axis in (0, 1))
    return reshape(cast(eq(row, column), type.dtype), shape=(count, *type.shape))


def _on_lanes(function: Callable[[Any], Any], basis: Value) -> list[Value]:
    """The results of `function` on every row of the basis, lanes leading."""
    count = type_of(basis).shape[0]
    # A result without lanes is the same for every row of the basis.
    outs, batched_outs = batch_flat(function, count, [basis], [True])
    return [o if b else repeat_lane(o, count) for o, b in zip(outs, batched_outs, strict=True)]


def _column(at: _At, number: int) -> list[Value]:
    """Blocks of every result with respect to one argument leaf, forwards."""
    type = type_of(at.leaves[number])
    if not at.active[number]:
        return [_nothing(type_of(o), type) for o in at.outs]

    def along(direction: Value) -> list[Value]:
        # One leaf at a time, because a basis of all leaves together would be much larger.
        directions = [filled(x, direction if i == number else None) for i, x in enumerate(at.leaves)]
        out_tangents = at.linear(pick(directions, at.active))
        pairs = zip(at.outs, out_tangents, strict=True)
        return [filled(o, t) for o, t in pairs if is_differentiable(o)]

    lanes = iter(_on_lanes(along, _basis(type)))
    return [
        _split_last(next(lanes), type.shape) if is_differentiable(o) else _nothing(type_of(o), type) for o in at.outs
    ]


def _split_last(x: Value, shape: tuple) -> Array:
    """Lanes [prod(shape), *S] as [*S, *shape]."""
    lane_shape = type_of(x).shape[1:]
    # Lanes count the argument's elements, and its axes come last in a Jacobian.
    return reshape(move_axis(x, 0, len(lane_shape)), shape=(*lane_shape, *shape))


def _row(at: _At, number: int) -> list[Value]:
    """Blocks of one result leaf with respect to every argument, backwards."""
    type = type_of(at.outs[number])
    types = [type_of(x) for x in at.leaves]

    def back(cotangent: Value) -> list[Value]:
        cts = [cotangent if o == number else None for o in range(len(at.outs))]
        return pick(pull_back(at.linear, cts, types), at.active)

    rows = iter(_on_lanes(back, _basis(type)))
    return [
        _split_first(next(rows), type.shape) if a else _nothing(type, t) for t, a in zip(types, at.active, strict=True)
    ]


def _nothing(out: ArrayType, leaf: ArrayType) -> np.ndarray:
    """The block of an integer, which has no derivative."""
    return np.zeros((*out.shape, *leaf.shape), dtypes.float0)


def _split_first(x: Value, shape: tuple) -> Array:
    return reshape(x, shape=(*shape, *type_of(x).shape[1:]))


# --- public -----------------------------------------------------------------------------------


@overload
def jacfwd(
    fun: Loss[P, Array], argnums: Literal[0] = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Jacobian[P]: ...
@overload
def jacfwd(
    fun: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> object:
    """The Jacobian by forward mode: vmap of jvp over the inputs. Cheap for few inputs.

    Shapes: for an output of shape S and an argument of shape T, S + T.
    Errors: TransformError for an integer argument, and for a complex one unless `holomorphic`.

    >>> import rune, rune.numpy as rnp
    >>> rune.jacfwd(lambda x: x * x)(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 2.0]]
    """
    return _jacobian(fun, _Options("jacfwd", argnums, "forward", has_aux, holomorphic))


@overload
def jacrev(
    fun: Loss[P, Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Jacobian[P]: ...
@overload
def jacrev(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> object:
    """The Jacobian by reverse mode: vmap of vjp over the outputs. Cheap for few outputs.

    Shapes: for an output of shape S and an argument of shape T, S + T.
    Errors: TransformError for a result that is not real floating (complex, with `holomorphic`),
            and for an integer argument unless `allow_int`.

    >>> import rune, rune.numpy as rnp
    >>> rune.jacrev(lambda x: x * x)(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 2.0]]
    """
    options = _Options("jacrev", argnums, "reverse", has_aux, holomorphic, allow_int)
    return _jacobian(fun, options)


@overload
def jacobian(
    fun: Loss[P, Array],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    mode: Mode | None = None,
) -> Jacobian[P]: ...
@overload
def jacobian(
    fun: Callable[P, object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    mode: Mode | None = None,
) -> Callable[P, Any]: ...
def jacobian(
    fun: Callable[..., object],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    mode: Mode | None = None,
) -> object:
    """The Jacobian by the requested mode, or by the cheaper one.

    mode: "forward", "reverse", or None: forward if there are no more inputs than outputs, which is
          known after the one linearization at the point, before any block is computed.
    Errors: TransformError for arguments that are not floats; otherwise those of the function.

    >>> import rune, rune.numpy as rnp
    >>> rune.jacobian(lambda x: rnp.sum(x * x))(rnp.arange(2.0))
    Array([0., 2.], f32[2], cpu:0)
    """
    if mode not in (None, "forward", "reverse"):
        raise TransformError(f"jacobian: cannot use mode {mode!r} (forward or reverse required)")
    options = _Options("jacobian", argnums, mode, has_aux, holomorphic, allow_int)
    return _jacobian(fun, options)


@overload
def hessian(
    fun: Loss[P, Array], argnums: Literal[0] = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Jacobian[P]: ...
@overload
def hessian(
    fun: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def hessian(
    fun: Callable[..., object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> object:
    """The Hessian, forward over reverse.

    Errors: TransformError for arguments that are not floats; otherwise those of the function.

    >>> import rune, rune.numpy as rnp
    >>> rune.hessian(lambda x: rnp.sum(x ** 3))(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 6.0]]
    """
    # Reverse mode inside: a gradient costs one pass, whatever the number of arguments.
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)


def hvp(function: Callable[..., object], primals: Sequence[object], tangents: Sequence[object]) -> Any:
    """The product of the Hessian of a scalar function with a vector, without forming the Hessian.

    Forward over reverse: costs about two gradients, whatever the number of arguments.

    Shapes: as the primals, in a tree like theirs; for one argument, only its product.
    Errors: TransformError if `f` does not return a scalar or a vector is not like its primal.

    >>> import rune, rune.numpy as rnp
    >>> rune.hvp(lambda x: rnp.sum(x ** 3), (rnp.arange(2.0),), (rnp.ones(2),)).tolist()
    [0.0, 6.0]
    """
    numbers = tuple(range(len(primals)))
    # With a tuple of one number, the product would be a tuple, too.
    gradient = grad(function, argnums=numbers[0] if len(numbers) == 1 else numbers)
    return jvp(gradient, primals, tangents)[1]
