"""inspect_array_sharding: the layout of a value on its devices, reported while they are chosen.

    inspect_sharding %1 {listener=<print>, sharding=None, shape=None}

An eager array has a sharding. In a program a value has none: the program of each device of a mesh
is written with the layout of the value (sharding/localize.py), and that of one device runs where
its arguments are. Either is reported once for a program, before it first runs; the equation then
expands to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rune import tree
from rune.array import Array, Place, as_array
from rune.backends import device_named
from rune.core.higher import equations_within
from rune.core.memo import per_program
from rune.core.primitive import Direct, Effect
from rune.core.program import Program
from rune.core.types import Shape
from rune.core.values import Value
from rune.errors import at_line
from rune.ops.promote import opened
from rune.records import dataclass
from rune.sharding import Sharding, SingleDeviceSharding
from rune.transforms.arguments import require_callable, value_leaves

Listener = Callable[[Sharding, Shape], object]  # called with the layout of an array and its shape


def inspect_array_sharding(value: object, *, callback: Callable[[Sharding], object]) -> None:
    """Call a function with the sharding of each array of a tree, in a jitted function as well.

    value:    an array or a tree of arrays
    callback: a function of a `Sharding`; what it returns is ignored. It is called at once for an
              array, and for a traced value once, before the program first runs on its devices.
              In the body of a shard_map it sees what one device has, which is not split
    Errors:   TransformError if `callback` is not a function; ArgumentError for other leaves; those
              of the function.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import NamedSharding, P, make_mesh
    >>> def f(x):
    ...     y = rnp.sin(x)
    ...     rune.debug.inspect_array_sharding(y, callback=lambda sharding: print(sharding.spec))
    ...     return y.sum()
    >>> rows = NamedSharding(make_mesh((1,), ("data",)), P("data"))
    >>> _ = rune.jit(f)(rune.device_put(rnp.ones(4), rows))
    P('data')
    """
    require_callable("debug.inspect_array_sharding", callback)
    leaves, treedef = tree.flatten(tree.map(opened, value))
    for leaf in value_leaves("debug.inspect_array_sharding", leaves, treedef):
        inspect_layout(leaf, _OfSharding(callback))


@dataclass(frozen=True, slots=True)
class _OfSharding:
    """A listener that leaves out the shape."""

    callback: Callable[[Sharding], object]

    def __call__(self, sharding: Sharding, shape: Shape) -> None:
        self.callback(sharding)


def inspect_layout(value: Value, listener: Listener) -> None:
    """Report the sharding and the shape of a value. Under vmap they are those of all lanes."""
    inspect_sharding(value, listener=listener, sharding=None, shape=None)


def _tell(listener: Listener, sharding: Sharding, shape: Shape) -> None:
    # An error in the function reports its own lines, not the line that asked for the layout.
    with at_line(None):
        listener(sharding, shape)


def _run(x: Value, *, listener: Listener, **_: object) -> list[Array]:
    array = x if type(x) is Array else as_array(x)
    _tell(listener, array.sharding, array.type.shape)
    return []


def _jvp(
    primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, object]
) -> tuple[list[Array], list[Value]]:
    return inspect_sharding(*primals, **params), []


def _batch(batched: Sequence[bool], size: object, x: Value, **params: object) -> tuple[list[Array], tuple[bool, ...]]:
    return inspect_sharding(x, **params), ()


inspect_sharding = Direct(
    "inspect_sharding",
    "host",
    lambda x, **_: (),
    batch=_batch,
    multiple_results=True,
    run=_run,
    jvp_equation=_jvp,
    expand=lambda x, **_: [],
    effect=lambda **_: Effect.UNORDERED,
)


@per_program
def has_inspections(program: Program) -> bool:
    """Whether the program reports layouts."""
    return any(e.primitive is inspect_sharding for e in equations_within(program))


def report(program: Program, elsewhere: Sharding) -> None:
    """Report the layouts that a program asks for.

    elsewhere: the sharding of values for which the program has none
    """
    if not has_inspections(program):
        return
    for equation in equations_within(program):
        if equation.primitive is inspect_sharding:
            params, type = equation.params, equation.operands[0].type
            _tell(params["listener"], params["sharding"] or elsewhere, params["shape"] or type.shape)


def report_at(program: Program, place: Place) -> None:
    """Report the layouts of a program that one device runs; once for each device."""
    _report_on(program, (place.device or device_named("cpu:0")).name)


@per_program
def _report_on(program: Program, device: str) -> None:
    report(program, SingleDeviceSharding(device))
