"""Derivatives of functions on trees: jvp, linearize, vjp, grad, Jacobians, Hessians.

Reverse mode is linearize followed by transpose: the forward pass runs once and keeps exactly the
residuals that the transposed map reads. Cotangents follow JAX's conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import current, is_differentiable, type_of
from rune.core.types import ArrayType
from rune.dims import product
from rune.errors import TransformError
from rune.ops import reshape
from rune.ops.family import fit, zeros_like
from rune.ops.movement import repeat_lane
from rune.transforms.arguments import leaf_path, named, require_callable, value_leaves
from rune.transforms.jvp import Jvp, jvp_flat
from rune.transforms.linearize import LinearMap, linearize_flat
from rune.transforms.transpose import backward
from rune.transforms.vmap import batch_flat, move_axis


class _Flat:
    """A tree function as a flat one; remembers the tree of its last result."""

    def __init__(self, name: str, function: Callable[..., Any], treedef: Any):
        self.name, self.function, self.treedef = name, function, treedef
        self.out_tree: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        """Flat results of flat arguments."""
        outs, self.out_tree = tree.flatten(self.function(*tree.unflatten(self.treedef, leaves)))
        return value_leaves(self.name, outs, self.out_tree)


def _flatten(name: str, function: Callable[..., Any], args: Sequence[Any]) -> tuple[list, _Flat]:
    require_callable(name, function)
    leaves, treedef = tree.flatten(tuple(args))
    return value_leaves(name, leaves, treedef), _Flat(name, function, treedef)


# --- forward ----------------------------------------------------------------------------------


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """(outputs, tangents of the outputs) at `primals` in the direction `tangents`.

    Shapes: each tangent as its primal. Types: as its primal; float0 (or zeros) for integers.
    Errors: TransformError when the trees, shapes or dtypes differ.

    >>> import rune, rune.numpy as rnp
    >>> rune.jvp(rnp.sin, (0.0,), (2.0,))[1]
    Array(2., f32*[], cpu:0)
    """
    leaves, flat = _flatten("jvp", function, primals)
    given, treedef = tree.flatten(tuple(tangents))
    if treedef != flat.treedef:
        raise TransformError(
            f"jvp: cannot match tangents to primals (trees {treedef} and {flat.treedef})"
        )
    directions = [_tangent("jvp", p, t) for p, t in zip(leaves, given, strict=True)]
    outs, found = jvp_flat(flat, leaves, directions)
    filled = [_filled(o, t) for o, t in zip(outs, found, strict=True)]
    return tree.unflatten(flat.out_tree, outs), tree.unflatten(flat.out_tree, filled)


def _tangent(name: str, primal: Any, tangent: Any) -> Any:
    expected = type_of(primal)
    if not is_differentiable(primal):
        return None
    tangent = _host_as(tangent, expected)
    found = type_of(tangent)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise TransformError(f"{name}: cannot use a tangent {found} for a primal {expected}")
    return tangent


def _host_as(value: Any, expected: ArrayType) -> Any:
    """NumPy data as it is where its dtype is the one expected, else with canonical dtype."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype != expected.dtype:
        return np.asarray(value).astype(dtypes.canonical(value.dtype), copy=False)
    return value


def _filled(output: Any, tangent: Any) -> Any:
    """The tangent, or what stands for zero: zeros, or float0 for outputs without tangents."""
    if tangent is not None:
        return tangent
    if not is_differentiable(output):
        shape = type_of(output).shape
        return np.zeros(shape, dtypes.float0)
    return zeros_like(output)


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(outputs, the linear map from tangents to tangents) at `primals`.

    >>> import rune, rune.numpy as rnp
    >>> rune.linearize(lambda x: x * x, 3.0)[1](1.0)
    Array(6., f32[], cpu:0)
    """
    leaves, flat = _flatten("linearize", function, primals)
    active = [is_differentiable(x) for x in leaves]
    outs, linear = linearize_flat(flat, leaves, active)
    out_tree = flat.out_tree

    def tangent_map(*tangents: Any) -> Any:
        given, treedef = tree.flatten(tuple(tangents))
        if treedef != flat.treedef:
            raise TransformError(
                f"linearize: cannot match tangents to primals ({treedef} and {flat.treedef})"
            )
        checked = [_tangent("linearize", p, t) for p, t in zip(leaves, given, strict=True)]
        found = linear([t for t, a in zip(checked, active, strict=True) if a])
        filled = [_filled(o, t) for o, t in zip(outs, found, strict=True)]
        return tree.unflatten(out_tree, filled)

    return tree.unflatten(out_tree, outs), tangent_map


# --- reverse ----------------------------------------------------------------------------------


def _pull(linear: LinearMap, cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the active inputs, None for zero."""
    count = len(linear.residuals)
    mask = [False] * count + [True] * (len(linear.program.inputs) - count)
    values = [*linear.residuals, *(None for _ in mask[count:])]
    read = [ct for ct, n in zip(cotangents, linear.nonzero, strict=True) if n]
    return backward(linear.program, mask, values, read)


class VjpFunction:
    """The map from cotangents of the outputs to cotangents of the inputs; call it any number of
    times. It holds the residuals: dropping it frees them."""

    def __init__(self, primals: list[Any], outs: list[Any], flat: _Flat, linear: LinearMap):
        self._types = [type_of(p) for p in primals]
        self._out_types = [type_of(o) for o in outs]
        self._treedef, self._out_tree, self._linear = flat.treedef, flat.out_tree, linear

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """One cotangent tree per argument. Errors: TransformError names the path that differs."""
        given, treedef = tree.flatten(cotangents)
        if treedef != self._out_tree:
            raise TransformError(
                f"vjp: cannot match cotangents to outputs (trees {treedef} and {self._out_tree})"
            )
        cts = [self._cotangent(i, t, ct) for i, (t, ct) in enumerate(zip(self._out_types, given))]
        found = iter(_pull(self._linear, cts))
        filled = [
            _input_cotangent(t, next(found) if t.dtype in dtypes.INEXACT else None)
            for t in self._types
        ]
        return tree.unflatten(self._treedef, filled)

    def _cotangent(self, number: int, expected: ArrayType, ct: Any) -> Any:
        if expected.dtype not in dtypes.INEXACT:
            return None
        ct = _host_as(ct, expected)
        found = type_of(ct)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            where = leaf_path(number, self._out_tree)
            raise TransformError(
                f"vjp: cannot use a cotangent {found} for an output {expected} (output{where})"
            )
        return ct


def _input_cotangent(type: ArrayType, ct: Any) -> Any:
    if type.dtype not in dtypes.INEXACT:
        return np.zeros(type.shape, dtypes.float0)
    return zeros_of(type) if ct is None else ct


def zeros_of(type: ArrayType) -> Any:
    """Zeros of a type."""
    return fit(np.zeros((), type.dtype), type.shape)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """(outputs, the map from their cotangents to those of `primals`); with `has_aux`, also aux.

    >>> import rune, rune.numpy as rnp
    >>> rune.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0)
    (Array(3., f32[], cpu:0), Array(2., f32[], cpu:0))
    """
    main = _Aux(function) if has_aux else function
    leaves, flat = _flatten("vjp", main, primals)
    outs, linear = linearize_flat(flat, leaves, [is_differentiable(x) for x in leaves])
    pull = VjpFunction(leaves, outs, flat, linear)
    result = tree.unflatten(flat.out_tree, outs)
    return (result, pull, main.aux()) if isinstance(main, _Aux) else (result, pull)


class _Aux:
    """Splits (value, aux): differentiates the value, and keeps aux as plain values."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self._kept: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value alone."""
        found = self.function(*args, **kwargs)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TransformError("has_aux: cannot split the result (a pair (value, aux) required)")
        interpreter = current()
        assert isinstance(interpreter, Jvp)
        value, aux = found
        self._kept = tree.map(lambda x: interpreter.split(x)[0], aux)
        return value

    def aux(self) -> Any:
        """The second part of the last result, without the tangents of this derivative."""
        return self._kept


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function giving (value, gradient with respect to `argnums`), forward pass run once.

    Errors: TransformError for a non-scalar or integer value, or an integer argument.

    >>> import rune, rune.numpy as rnp
    >>> rune.value_and_grad(lambda x: rnp.sum(x ** 2))(rnp.arange(3.0))
    (Array(5., f32[], cpu:0), Array([0., 2., 4.], f32[3], cpu:0))
    """
    require_callable("grad", function)

    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        numbers = _argument_numbers(argnums, len(args))
        main = _Aux(function) if has_aux else function
        chosen = tuple(args[i] for i in numbers)
        _require_floating(chosen, numbers)

        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, values, strict=True):
                full[i] = value
            return main(*full, **kwargs)

        value, pull = vjp(of_chosen, *chosen)
        gradients = pull(_one_for(value))
        picked = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, main.aux()) if isinstance(main, _Aux) else value), picked

    return named(value_and_gradient, function, "value_and_grad")


def _argument_numbers(argnums: int | Sequence[int], count: int) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for number in numbers:
        if not -count <= number < count:
            raise TransformError(
                f"grad: cannot differentiate argument {number} ({count} positional arguments given)"
            )
    return tuple(n % count for n in numbers)


def _require_floating(chosen: Sequence[Any], numbers: Sequence[int]) -> None:
    for number, argument in zip(numbers, chosen, strict=True):
        leaves, treedef = tree.flatten(argument)
        for i, leaf in enumerate(value_leaves("grad", leaves, treedef)):
            if not is_differentiable(leaf):
                path = leaf_path(i, treedef)
                raise TransformError(
                    f"grad: cannot differentiate with respect to argument {number}{path} of type "
                    f"{type_of(leaf)} (floating dtype required)",
                    hint="convert it with .astype('float32'), or choose argnums",
                )


def _one_for(value: Any) -> Any:
    leaves = tree.leaves(value)
    if len(leaves) != 1 or leaves[0] is not value:
        raise TransformError(
            f"grad: cannot differentiate a result of {len(leaves)} arrays (one scalar required)",
            hint="return the loss alone, or use has_aux=True",
        )
    found = type_of(value)
    if found.shape:
        raise TransformError(
            f"grad: cannot differentiate a result {found} (scalar required)",
            hint="reduce it with rune.numpy.sum or mean, or use rune.jacrev",
        )
    if found.dtype not in dtypes.FLOATING:
        raise TransformError(
            f"grad: cannot differentiate a result {found} (real floating required)"
        )
    return Array(np.ones((), found.dtype), ArrayType((), found.dtype))


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a scalar function with respect to `argnums`.

    Errors: as value_and_grad.

    >>> import rune, rune.numpy as rnp
    >>> rune.grad(rune.grad(lambda x: x ** 3))(2.0)
    Array(12., f32[], cpu:0)
    """
    both = value_and_grad(function, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return named(gradient, function, "grad")


# --- Jacobians --------------------------------------------------------------------------------


def _basis(type: ArrayType) -> Any:
    count = product(type.shape)
    if not isinstance(count, int):
        raise TransformError(f"jacobian: cannot differentiate along {type} (symbolic size)")
    rows = np.eye(count, dtype=type.dtype).reshape(count, *type.shape)
    return Array(rows, ArrayType(rows.shape, type.dtype))


def _on_lanes(function: Callable[[Any], Any], basis: np.ndarray) -> list[Any]:
    """The leaves of `function` on every row of the basis, lanes leading."""
    outs, batched = batch_flat(lambda row: tree.leaves(function(row)), len(basis), [basis], [True])
    return [o if b else repeat_lane(o, len(basis)) for o, b in zip(outs, batched, strict=True)]


def _jacobian(name: str, function: Callable[..., Any], argnums: Any, columns: Any) -> Any:
    require_callable(name, function)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = _argument_numbers(argnums, len(args))
        chosen = tuple(args[i] for i in numbers)
        _require_floating(chosen, numbers)

        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(numbers, values, strict=True):
                full[i] = value
            return function(*full, **kwargs)

        found = columns(of_chosen, chosen)
        return (
            tree.map(lambda row: row[0], found, is_leaf=_is_row)
            if isinstance(argnums, int)
            else tree.map(lambda row: tuple(row), found, is_leaf=_is_row)
        )

    return named(jacobian, function, name)


class _Row(tuple):
    """The Jacobian of one output leaf: one entry per argument."""

    __slots__ = ()


def _is_row(value: Any) -> bool:
    return isinstance(value, _Row)


def _forward_columns(function: Callable[..., Any], args: tuple) -> Any:
    outs, push = linearize(function, *args)
    out_leaves, out_tree = tree.flatten(outs)
    leaves, treedef = tree.flatten(args)
    blocks = []  # [input leaf][output leaf]
    for i, leaf in enumerate(leaves):

        def along(direction: Any, i: int = i) -> Any:
            tangents = [direction if j == i else zeros_like(x) for j, x in enumerate(leaves)]
            return push(*tree.unflatten(treedef, tangents))

        found = _on_lanes(along, _basis(type_of(leaf)))
        blocks.append([_split_last(b, type_of(leaf).shape) for b in found])
    rows = [
        _Row(tree.unflatten(treedef, [blocks[i][o] for i in range(len(leaves))]))
        for o in range(len(out_leaves))
    ]
    return tree.unflatten(out_tree, rows)


def _split_last(x: Any, shape: tuple) -> Any:
    """Lanes [prod(shape), *S] as [*S, *shape]."""
    rest = type_of(x).shape[1:]
    return reshape(move_axis(x, 0, len(rest)), shape=(*rest, *shape))


def _reverse_columns(function: Callable[..., Any], args: tuple) -> Any:
    outs, pull = vjp(function, *args)
    out_leaves, out_tree = tree.flatten(outs)
    treedef = tree.flatten(args)[1]
    rows = []
    for o, out in enumerate(out_leaves):

        def back(ct: Any, o: int = o) -> Any:
            cts = [ct if j == o else zeros_like(x) for j, x in enumerate(out_leaves)]
            return pull(tree.unflatten(out_tree, cts))

        found = _on_lanes(back, _basis(type_of(out)))
        split = [_split_first(x, type_of(out).shape) for x in found]
        rows.append(_Row(tree.unflatten(treedef, split)))
    return tree.unflatten(out_tree, rows)


def _split_first(x: Any, shape: tuple) -> Any:
    return reshape(x, shape=(*shape, *type_of(x).shape[1:]))


def jacfwd(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The Jacobian by forward mode: vmap of jvp over the inputs. Cheap for few inputs.

    Shapes: for an output of shape S and an argument of shape T, S + T.

    >>> import rune, rune.numpy as rnp
    >>> rune.jacfwd(lambda x: x * x)(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 2.0]]
    """
    return _jacobian("jacfwd", function, argnums, _forward_columns)


def jacrev(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The Jacobian by reverse mode: vmap of vjp over the outputs. Cheap for few outputs.

    Shapes: for an output of shape S and an argument of shape T, S + T.

    >>> import rune, rune.numpy as rnp
    >>> rune.jacrev(lambda x: x * x)(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 2.0]]
    """
    return _jacobian("jacrev", function, argnums, _reverse_columns)


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """The Hessian, forward over reverse.

    >>> import rune, rune.numpy as rnp
    >>> rune.hessian(lambda x: rnp.sum(x ** 3))(rnp.arange(2.0)).tolist()
    [[0.0, 0.0], [0.0, 6.0]]
    """
    return jacfwd(jacrev(function, argnums), argnums)


__all__ = [
    "Array", "VjpFunction", "grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "value_and_grad", "vjp", "zeros_of",
]  # fmt: skip
