"""Calls of Python functions, from eager code and from compiled code.

    pure_callback   depends only on its arguments: may be dropped, repeated or moved
    io_callback     is called exactly once, in order on request
    debug.callback  is called exactly once, returns nothing, and is ignored by derivatives

The Python function takes concrete arrays and returns arrays of the declared shapes and dtypes.
Under vmap it is called once per lane, or once for all lanes as `vmap_method` says. It has no
derivative; a custom_jvp rule around it can supply one, and grad then calls it once.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn

import numpy as np

from rune import config, dtypes, profiling, tree
from rune.array import Array, put
from rune.core.higher import equations_within
from rune.core.interpreter import Tracer, type_of
from rune.core.lower import Host
from rune.core.primitive import Direct, Effect
from rune.core.program import Program
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, TransformError, at_line
from rune.ops.family import reshape
from rune.ops.movement import repeat_lane
from rune.ops.promote import opened
from rune.transforms.arguments import function_name, is_same_static, key_path, require_callable, value_leaves
from rune.transforms.compile.placement import placement
from rune.transforms.derivatives.tangents import host_as
from rune.transforms.eval_shape import ShapeDtypeStruct, abstract, leaf_types
from rune.transforms.tree_difference import mismatch
from rune.tree import TreeDef

Method = Literal["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
METHODS = Method.__args__  # type: ignore[attr-defined]


class HostCall:
    """A Python function called with flat NumPy arrays, which it receives as rune arrays.

    Leaves of its arguments that are not arrays are stored with it.
    """

    def __init__(
        self,
        kind: str,
        function: Callable[..., object],
        treedef: tree.TreeDef,
        statics: Mapping[int, object],
        out_tree: TreeDef,
    ):
        self.kind, self.function, self.treedef = kind, function, treedef
        self.statics, self.out_tree = statics, out_tree
        self.name = function_name(function)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    # Equal calls make equal programs, so a loop with a callback finds its compiled code again.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HostCall):
            return NotImplemented
        return (self.kind, self.function, self.treedef, self.out_tree) == (
            other.kind,
            other.function,
            other.treedef,
            other.out_tree,
        ) and is_same_static(tuple(self.statics.items()), tuple(other.statics.items()))

    def __hash__(self) -> int:
        # The function and statics need not be hashable; equality compares them.
        return hash((self.kind, self.treedef, self.out_tree))

    def __call__(self, hosts: Sequence[np.ndarray], results: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results of one call, checked against the declared types."""
        arrays = (Array(h, ArrayType(h.shape, h.dtype)) for h in hosts)
        count = len(hosts) + len(self.statics)
        leaves = [self.statics[i] if i in self.statics else next(arrays) for i in range(count)]
        args, kwargs = tree.unflatten(self.treedef, leaves)
        # Errors in the function report its own lines, not the line of the callback.
        with at_line(None), profiling.span(self.name, profiling.Kind.CALLBACK):
            result = self._result(args, kwargs)
        # A debug callback declares None and may return anything.
        if not results and self.out_tree.num_leaves == 0:
            return []
        outs, out_tree = tree.flatten(result)
        if out_tree != self.out_tree:
            difference = mismatch(
                self.out_tree,
                out_tree,
                "result{} is declared and not given".format,
                "result{} is given and not declared".format,
                "declared {}, it is {}",
            )
            self._refuse(difference)
        return [self._checked(i, t, o) for i, (t, o) in enumerate(zip(results, outs, strict=True))]

    def _result(self, args: tuple, kwargs: Mapping[str, object]) -> object:
        """What the function returns. Errors: its own, or a RuntimeError that quotes it."""
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            if config.current().callback_errors == "unchanged":
                raise
            text = "".join(traceback.format_exception(error))
            raise RuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}") from error

    def _checked(self, number: int, declared_type: ArrayType, value: object) -> np.ndarray:
        # NumPy returns 64 bits by default, which become the canonical dtype as in an argument.
        host = value.numpy() if type(value) is Array else np.asarray(value)
        host = np.asarray(host_as(host, declared_type)) if host.dtype in dtypes.ANY else host
        if not same_layout(ArrayType(host.shape, host.dtype), declared_type):
            actual = f"{dtypes.short(host.dtype)}{list(host.shape)}"
            path = key_path(number, self.out_tree)
            self._refuse(f"result{path} is {actual}, declared {declared_type}")
        return host

    def _refuse(self, why: str) -> NoReturn:
        raise TransformError(f"{self.kind}: cannot use the result of {self.name} ({why})")


class LaneByLane:
    """A host function called for all lanes, one after another."""

    def __init__(self, call: HostCall | LaneByLane, batched: Sequence[bool]):
        self.call, self.batched = call, tuple(batched)
        self.kind, self.name = call.kind, call.name

    def __repr__(self) -> str:
        return f"<{repr(self.call)[1:-1]} lane by lane>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LaneByLane):
            return NotImplemented
        return (self.call, self.batched) == (other.call, other.batched)

    def __hash__(self) -> int:
        return hash((self.call, self.batched))

    def __call__(self, hosts: Sequence[np.ndarray], results: Sequence[ArrayType]) -> list[np.ndarray]:
        """The results of all lanes, stacked."""
        # All batched arguments have the same number of lanes.
        size = next(len(h) for h, b in zip(hosts, self.batched) if b)
        lane = [t.with_shape(t.shape[1:]) for t in results]
        lane_results = [
            self.call([np.asarray(h[i]) if b else h for h, b in zip(hosts, self.batched)], lane) for i in range(size)
        ]
        # Without lanes there is nothing to stack, so the declared types give the shape.
        by_result = zip(*lane_results) if lane_results else ((),) * len(results)
        return [
            np.stack(outs) if outs else np.zeros((0, *t.shape[1:]), t.dtype)  # type: ignore[arg-type]
            for t, outs in zip(results, by_result, strict=True)
        ]


# --- public -------------------------------------------------------------------------------------


def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    vmap_method: Method | None = None,
    **kwargs: object,
) -> Any:
    """The result of a Python function without side effects, called when the program runs.

    result_shape_dtypes: a tree of ShapeDtypeStructs (or arrays): the type of its result.
    vmap_method:  how vmap calls it: "sequential" for every lane; "expand_dims" once
                  with a leading axis of size 1 for arguments without lanes, "broadcast_all" once
                  with these repeated for all lanes, "legacy_vectorized" once with these unchanged.
    Errors: TransformError if the result is not as declared, for a derivative, and for vmap
            without a method.

    >>> import numpy as np, rune
    >>> scalar = rune.ShapeDtypeStruct((), "f32")
    >>> rune.pure_callback(lambda x: np.sin(x), scalar, 0.0)
    Array(0., f32[], cpu:0)
    """
    if vmap_method is not None and vmap_method not in METHODS:
        raise ArgumentError(f"pure_callback: cannot use vmap_method {vmap_method!r} ({', '.join(METHODS)})")
    return _call("pure_callback", callback, result_shape_dtypes, args, kwargs, None, vmap_method)


def io_callback(
    callback: Callable[..., object], result_shape_dtypes: object, *args: object, ordered: bool = False, **kwargs: object
) -> Any:
    """The result of a Python function with side effects, called once each time the program runs.

    ordered: whether it keeps its position among ordered callbacks. Under vmap an ordered callback
             is refused, and any other is called for every lane.
    Errors:  as pure_callback.

    >>> import rune, rune.numpy as rnp
    >>> values = []
    >>> def note(x):
    ...     values.append(float(x))
    ...     return x
    >>> double = rune.jit(lambda x: rune.io_callback(note, rnp.float32(0), x) * 2)
    >>> float(double(3.0)), values
    (6.0, [3.0])
    """
    effect = Effect.ORDERED if ordered else Effect.UNORDERED
    return _call("io_callback", callback, result_shape_dtypes, args, kwargs, effect, "sequential")


def debug_callback(callback: Callable[..., object], *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Call a Python function for its side effects when the program runs; `rune.debug.callback`."""
    effect = Effect.ORDERED if ordered else Effect.UNORDERED
    _call("debug.callback", callback, None, args, kwargs, effect, "sequential")


def _call(
    kind: str,
    callback: Callable[..., object],
    declared_results: object,
    args: tuple,
    kwargs: Mapping[str, object],
    effect: Effect | None,
    method: Method | None,
) -> Any:
    require_callable(kind, callback)
    structs, out_tree = tree.flatten(declared_results)
    results = tuple(map(abstract, _declared(kind, structs, out_tree)))
    leaves, treedef = tree.flatten(tree.map(opened, (args, kwargs)))
    # Leaves that are not arrays, such as a string to print, reach the function unchanged.
    statics = {i: x for i, x in enumerate(leaves) if not _is_value(x)}
    operands = [x for i, x in enumerate(leaves) if i not in statics]
    values = value_leaves(kind, operands, tree.structure(operands))
    call = HostCall(kind, callback, treedef, statics, out_tree)
    outs = callback_primitive(*values, call=call, results=results, effect=effect, method=method)
    return tree.unflatten(out_tree, outs)


def _declared(kind: str, structs: Sequence[Any], out_tree: tree.TreeDef) -> list[ArrayType]:
    # Arrays declare their own type, except its weakness; an ArrayType may be symbolic.
    types = leaf_types(kind, structs, out_tree)
    return [t if isinstance(x, ArrayType) or not hasattr(x, "dtype") else t.strong() for t, x in zip(types, structs)]


def _is_value(leaf: object) -> bool:
    if type(leaf) is Array or isinstance(leaf, Tracer | Dim) or dtypes.scalar_type(leaf):
        return True
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype in dtypes.ANY


# --- the primitive --------------------------------------------------------------------------------


def _run(*args: Value, call: HostCall | LaneByLane, results: Sequence[ShapeDtypeStruct], **_: object) -> list[Array]:
    types = [s.array_type for s in results]
    # Results are where the arguments are, as those of any operation.
    place = placement(call.kind, args)
    outs = call([np.asarray(a, type_of(a).dtype) for a in args], types)
    # Copied: the function may keep its result, and write to it later.
    return [put(np.array(o), t, place) for o, t in zip(outs, types, strict=True)]


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, Any]) -> Any:
    call = params["call"]
    if call.kind != "debug.callback":
        raise TransformError(
            f"{call.kind}: cannot differentiate {call.name} (nothing says what its derivative is)",
            hint="call it in a function with a custom_jvp or custom_vjp rule",
        )
    # debug.callback sees only primals, and has no results that could have tangents.
    return callback_primitive(*primals, **params), []


def _batch(
    batched: Sequence[bool],
    size: Size,
    *args: Value,
    call: HostCall | LaneByLane,
    results: tuple[ShapeDtypeStruct, ...],
    effect: Effect | None,
    method: Method | None,
) -> Any:
    if method is None or (effect is Effect.ORDERED and call.kind == "io_callback"):
        raise TransformError(
            f"{call.kind}: cannot batch {call.name} "
            f"({'lanes have no order' if effect else 'nothing says how to call it on lanes'})",
            hint=None if effect else f"pass vmap_method={METHODS[0]!r}, or another method",
        )
    # The remaining method, "legacy_vectorized", leaves arguments without lanes unchanged.
    if method.startswith("sequential"):
        call = LaneByLane(call, batched)
    elif method == "expand_dims":
        args = tuple(a if b else _expanded(a) for a, b in zip(args, batched))
    elif method == "broadcast_all":
        args = tuple(a if b else repeat_lane(a, size) for a, b in zip(args, batched))
    structs = tuple(replace(s, shape=(size, *s.shape)) for s in results)
    outs = callback_primitive(*args, call=call, results=structs, effect=effect, method=method)
    return outs, (True,) * len(structs)


def _expanded(value: Value) -> Array:
    return reshape(value, shape=(1, *type_of(value).shape))


def refuse_io(name: str, programs: Iterable[Program]) -> None:
    """Raise TransformError if a program has an io_callback, where lanes diverge.

    Diverging lanes run masked: all of them would call a function that only some should call.
    """
    for equation in equations_within(*programs):
        call: Any = equation.params.get("call")
        if equation.primitive is callback_primitive and call.kind == "io_callback":
            raise TransformError(
                f"vmap: cannot batch {name} with an io_callback in it (the lanes take different "
                f"branches, and {call.name} would be called for all of them)",
                hint="call it outside, or use pure_callback",
                frame=equation.frame,
            )


callback_primitive = Direct(
    "callback",
    "host",
    lambda *types, results, **_: tuple(s.array_type for s in results),
    batch=_batch,
    multiple_results=True,
    run=_run,
    jvp_equation=_jvp,
    lower=Host(),
    effect=lambda *, effect, **_: effect,
)

__all__ = ["HostCall", "LaneByLane", "callback_primitive", "debug_callback", "io_callback", "pure_callback"]
__all__ += ["refuse_io"]
