"""The arguments and names of users' functions, as every transformation handles them."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from rune import dtypes, tree
from rune.array import Array, as_array, default_place, put
from rune.core.interpreter import Tracer, type_of
from rune.core.value_keys import value_key
from rune.core.values import Operand, Value
from rune.dims import Dim
from rune.errors import ArgumentError, TransformError
from rune.ops.promote import operand, refuse_mask, stands_for_array
from rune.records import dataclass


# A tree node, not a leaf: leaves become operands of programs, which have no dtype float0.
@dataclass(frozen=True, slots=True)
class _Void:
    """A float0 array as part of a tree's structure: it has a shape, and no derivative."""

    shape: tuple[int, ...]


tree.register_node(_Void, lambda void: ((), void.shape), lambda shape, _: np.zeros(shape, dtypes.float0))


def is_float0(value: object) -> TypeGuard[np.ndarray]:
    """Whether a leaf is the tangent of an integer."""
    return type(value) is np.ndarray and value.dtype == dtypes.float0


def flatten_values(values: object) -> tuple[list[Value], tree.TreeDef]:
    """The leaves of a tree, and its structure, which includes float0 arrays."""
    leaves, treedef = tree.flatten(values)
    # Nearly every call has none, so the tree is walked a second time only for float0.
    if True in [type(x) is np.ndarray and is_float0(x) for x in leaves]:
        return tree.flatten(tree.map(lambda x: _Void(x.shape) if is_float0(x) else x, values))
    return leaves, treedef


def value_leaves(name: str, leaves: Sequence[Operand], treedef: tree.TreeDef) -> list[Any]:
    """The leaves as values: arrays, tracers, Python scalars; NumPy arrays get canonical dtypes.

    A symbolic size becomes a weak traced integer, as a Python integer would. An object with
    `__rune_array__` or `__jax_array__` becomes the array that this returns.

    Errors: ArgumentError names the path of a leaf that is not an array.
    """
    return [x if _is_value(x) else _host_leaf(name, i, x, treedef) for i, x in enumerate(leaves)]


def array_leaves(name: str, leaves: Sequence[Value], treedef: tree.TreeDef) -> list[Value]:
    """The leaves as values that cannot be written to: NumPy data is copied into arrays.

    For transformations that may store an argument or return it unchanged. Errors: as value_leaves.
    """
    return [unshared(x) for x in value_leaves(name, leaves, treedef)]


def unshared(value: Operand) -> Any:
    """NumPy data copied into a new array; any other value unchanged."""
    if isinstance(value, np.ndarray) and value.dtype != dtypes.float0:
        return as_array(value, value.dtype)
    return value


def as_value(value: Operand) -> Any:
    """A number or NumPy data as an array, a number as a weak one; any other value unchanged."""
    if isinstance(value, Array | Tracer):
        return value
    type = type_of(value)
    return put(np.asarray(value, type.dtype), type, default_place())


def _is_value(x: object) -> bool:
    # The cheapest test first: this runs for every leaf of every call.
    return type(x) is Array or isinstance(x, Tracer) or dtypes.scalar_type(x) is not None


def is_object(value: object) -> bool:
    """Whether a leaf is neither an array nor a number, and does not stand for one."""
    if _is_value(value) or isinstance(value, Dim | np.ndarray | np.generic):
        return False
    return not stands_for_array(value)


def _host_leaf(name: str, number: int, value: Operand, treedef: tree.TreeDef) -> Value:
    if isinstance(value, Dim) or stands_for_array(value):
        return operand(name, value)
    # Big-endian data is converted first: it has another dtype, which no operation accepts.
    value = dtypes.native(value) if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, np.ndarray | np.generic) and value.dtype in dtypes.ANY:
        refuse_mask(name, value)
        # From 64 to 32 bits a number may overflow, silently, as in JAX.
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(dtypes.canonical(value.dtype), copy=False)
    raise ArgumentError(
        f"{name}: cannot take {type(value).__name__} as an array "
        f"(argument{leaf_path(number, treedef)} = {str(value)[:40]!r})",
        hint="arguments are trees of arrays and numbers; mark others static with static_argnums",
    )


def leaf_path(number: int, treedef: tree.TreeDef) -> str:
    """The key path of leaf `number`, `[0]['w']`, positional arguments first."""
    numbered_tree = tree.unflatten(treedef, list(range(treedef.num_leaves)))
    # A call's arguments are the pair (args, kwargs); the path within that pair is left out.
    for path, leaf in tree.leaves_with_path(numbered_tree):
        if leaf == number:
            visible_path = path[1:] if isinstance(numbered_tree, tuple) and len(numbered_tree) == 2 else path
            return tree.keystr(visible_path)
    return ""


def key_path(number: int, treedef: tree.TreeDef) -> str:
    """The path of leaf `number` in its tree: `[0]['w']`."""
    numbered_tree = tree.unflatten(treedef, list(range(treedef.num_leaves)))
    # A float0 array, part of the structure, is a leaf of the numbered tree, but not a number.
    return next(
        tree.keystr(path) for path, leaf in tree.leaves_with_path(numbered_tree) if type(leaf) is int and leaf == number
    )


def named(wrapper: Callable[..., object], function: Callable[..., object], by: str) -> Callable[..., Any]:
    """`wrapper` with the name, docstring and attributes of `function`, as programs show them.

    Attributes of a wrapper like `Jitted` are not changed.
    """
    for name, value in getattr(function, "__dict__", {}).items():
        # Attributes of a class of wrappers, such as `lower` of Jitted, take precedence.
        if not hasattr(wrapper, name):
            setattr(wrapper, name, value)
    put_on(wrapper, function)
    # `put_on` has copied the name of a function that has one; a partial has none to copy.
    if not is_named(function):
        wrapper.__name__ = function_name(function)
    wrapper.name_in_programs = f"{by}({function_name(function)})"  # type: ignore[attr-defined]
    return wrapper


_KINDS: dict[str, type] = {"__name__": str, "__qualname__": str, "__annotations__": dict}


def put_on(wrapper: Callable[..., object], function: Callable[..., object], updated: Sequence[str] = ()) -> None:
    """As functools.update_wrapper, without attributes that a function cannot have.

    An object with a `__call__` may return anything as its `__name__`.
    """
    attributes = [
        a for a in functools.WRAPPER_ASSIGNMENTS if isinstance(getattr(function, a, None), _KINDS.get(a, object))
    ]
    functools.update_wrapper(wrapper, function, attributes, updated)


def name_of(function: Callable[..., object], otherwise: str) -> str:
    """The function's own name, or `otherwise` if that is not a string."""
    return function.__name__ if is_named(function) else otherwise


def is_named(function: Callable[..., object]) -> bool:
    """Whether the function has a name that is a string."""
    return isinstance(getattr(function, "__name__", None), str)


class SignatureOfWrapped:
    """`__signature__` of a function that wraps another: the signature of the wrapped function."""

    def __get__(self, instance: Callable[..., object] | None, owner: type) -> inspect.Signature:
        # `inspect` asks the class too, which must look as if it had none.
        if instance is None:
            raise AttributeError("__signature__")
        return inspect.signature(instance.__wrapped__)  # type: ignore[attr-defined]


_NO_LETTERS = re.compile(r"\W")  # neither a letter, nor a digit, nor `_`


def function_name(function: Callable[..., object]) -> str:
    """A name for programs: the function's own, letters and digits only."""
    # A partial has no name; the function it wraps may have one.
    while isinstance(function, functools.partial | tree.Partial):
        function = function.func
    fallback = getattr(function, "name", type(function).__name__)
    name = str(getattr(function, "name_in_programs", getattr(function, "__name__", fallback)))
    return _NO_LETTERS.sub("_", name).strip("_") or "f"


def required_number(name: str, role: str, value: object, least: float = -math.inf, most: float = math.inf) -> Any:
    """`value`, if it is an array or a number in least…most.

    Errors: ArgumentError for any other object, and for a number out of range.
    """
    # An array's value may be traced, so only Python's and NumPy's numbers are compared.
    is_number = isinstance(value, int | float | np.generic)
    if not is_number and not hasattr(value, "dtype"):
        raise ArgumentError(f"{name}: cannot use {role}={value!r} (a number required)")
    if is_number and not least <= float(value) <= most:
        bounds = f"{least:g}…{most:g}" if most < math.inf else f"at least {least:g}"
        raise ArgumentError(f"{name}: cannot use {role}={value} ({bounds} required)")
    return value


def refuse_other(name: str, **arguments: tuple[object, object]) -> None:
    """Refuse arguments that exist only for their default values; each comes with its default.

    Errors: ArgumentError for another value.
    """
    for argument, (value, default) in arguments.items():
        # By type first: `==` of an array would be an array, and 0 == False.
        if value is not default and not (type(value) is type(default) and value == default):
            raise ArgumentError(f"{name}: cannot use {argument}={value!r} ({default!r} is all it can be here)")


def require_callable(name: str, function: object) -> None:
    """Raise TransformError unless `function` can be called."""
    if not callable(function):
        raise TransformError(f"{name}: cannot transform {type(function).__name__} (not callable)")


def is_same_static(a: object, b: object) -> bool:
    """Whether Python values are the same: of one type, and equal where they can be compared."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        # Element by element, since (1,) == (True,).
        return len(a) == len(b) and all(map(is_same_static, a, b))
    if a is b or type(a) is not type(b):
        return a is b
    try:
        return hash(a) == hash(b) and value_key(a) == value_key(b)
    except (TypeError, ValueError):  # unhashable, or its == compares elements
        return False
