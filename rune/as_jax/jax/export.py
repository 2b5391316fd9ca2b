"""`jax.export`, by rune's: an exported function is a rune program, and its bytes are a rune file.

JAX's own files hold XLA programs and are refused, as is `mlir_module`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NoReturn

import rune
from rune import absent, dims, tree
from rune.as_jax.devices import default_backend
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.errors import ArgumentError
from rune.exporting import Exported as Stored
from rune.records import dataclass
from rune.transforms.compile.jit import Jitted
from rune.transforms.eval_shape import ShapeDtypeStruct

__getattr__ = absent.of(__name__)

_CONSTRAINT = re.compile(r"\s*([A-Za-z_]\w*)\s*(>=|<=)\s*([A-Za-z_]\w*|\d+)\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, repr=False)
class Exported:
    """A function as a program. Errors: those of `rune.exporting.Exported`."""

    stored: Stored
    nr_devices: int = 1
    platforms: tuple[str, ...] = ("cpu",)

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.stored.fun_name

    @property
    def in_tree(self) -> tree.TreeDef:
        """The tree of (args, kwargs)."""
        return self.stored.in_tree

    @property
    def out_tree(self) -> tree.TreeDef:
        """The tree of the result."""
        return self.stored.out_tree

    @property
    def in_avals(self) -> tuple[ArrayType, ...]:
        """The types of the leaves of the arguments."""
        return self.stored.in_avals

    @property
    def out_avals(self) -> tuple[ArrayType, ...]:
        """The types of the leaves of the result."""
        return self.stored.out_avals

    def call(self, *args: object, **kwargs: object) -> Any:
        """The results."""
        return self.stored.call(*args, **kwargs)

    def has_vjp(self) -> bool:
        """Whether `vjp` can return a function."""
        return self.stored.has_vjp()

    def vjp(self) -> Exported:
        """The function from arguments and cotangents to cotangents; integers have none."""
        return Exported(self.stored.vjp(), self.nr_devices, self.platforms)

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes of a rune file."""
        return bytearray(self.stored.serialize(vjp_order))

    def mlir_module(self, serialized: bool = True) -> NoReturn:
        """Errors: ArgumentError, always: rune compiles without MLIR."""
        raise ArgumentError(
            "export.mlir_module: cannot write an MLIR module", hint="exported.stored.program is rune's program"
        )

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def export(
    fun_jit: Callable[..., object],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[object] = (),
    _override_lowering_rules: None = None,
) -> Callable[..., Exported]:
    """A function that exports a jitted function; rune's programs run on every platform."""
    if not isinstance(fun_jit, Jitted):
        raise ArgumentError(f"export: cannot export {fun_jit!r} (the result of jit required)")
    if _override_lowering_rules is not None:
        raise ArgumentError("export: cannot override lowering rules of XLA (rune compiles without XLA)")

    def of(*args: object, **kwargs: object) -> Exported:
        return Exported(
            rune.export(fun_jit)(*args, **kwargs), platforms=tuple(platforms or (default_export_platform(),))
        )

    return of


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function in the bytes of `serialize`. Errors: CheckError for other bytes, as JAX's."""
    return Exported(rune.export.load(bytes(blob)), platforms=(default_export_platform(),))


def default_export_platform() -> str:
    """The platform that runs functions by default."""
    return default_backend()


# --- sizes --------------------------------------------------------------------------------------


def is_symbolic_dim(p: object) -> bool:
    """Whether a size is symbolic."""
    return isinstance(p, Dim)


@dataclass(slots=True)
class SymbolicScope:
    """Sizes by name, and constraints on them: "a >= 2", "a <= b"."""

    constraints_str: Sequence[str] = ()
    sizes: dict[str, Dim] = field(default_factory=dict, init=False)

    def size(self, name: str) -> Dim:
        """The size of that name; it is at least 1 unless a constraint says otherwise."""
        if name not in self.sizes:
            low: Size = 1
            high: Size | None = None
            for sign, bound in self._bounds(name):
                value = int(bound) if bound.isdigit() else self.size(bound)
                low, high = (value, high) if sign == ">=" else (low, value)
            self.sizes[name] = dims.symbol(name, low, high)
        return self.sizes[name]

    def _bounds(self, name: str) -> list[tuple[str, str]]:
        bounds = []
        for text in self.constraints_str:
            match = _CONSTRAINT.fullmatch(text)
            if match is None:
                raise ArgumentError(
                    f"symbolic_shape: cannot read {text!r} (constraints look like 'a >= 2' or 'a <= b')"
                )
            bounds += [(match[2], match[3])] if match[1] == name else []
        return bounds


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Size, ...]:
    """The sizes of "a, 2*b + 1, _"; `like` has those of "_" and "...". Errors: ArgumentError."""
    scope = SymbolicScope(constraints) if scope is None else scope
    pieces = [p.strip() for p in (shape_spec or "...").strip().removeprefix("(").removesuffix(")").split(",")]
    pieces = [p for p in pieces if p]
    if "..." in pieces:
        at, missing = pieces.index("..."), len(like or ()) - len(pieces) + 1
        pieces[at : at + 1] = ["_"] * missing
    return tuple(_size(piece, number, scope, like) for number, piece in enumerate(pieces))


def _size(text: str, number: int, scope: SymbolicScope, like: Sequence[int | None] | None) -> Size:
    if text == "_":
        size = like[number] if like is not None and number < len(like) else None
        if size is None:
            raise ArgumentError(f"symbolic_shape: cannot infer the size of axis {number} ('_' requires like=)")
        return size
    # JAX prints a remainder and a floor division as functions; the parser of sizes takes operators.
    expression = re.sub(r"\bmod\(([^,()]+),([^,()]+)\)", r"((\1)%(\2))", text)
    expression = re.sub(r"\bfloordiv\(([^,()]+),([^,()]+)\)", r"((\1)//(\2))", expression)
    return dims.parse(expression, {name: scope.size(name) for name in _NAME.findall(expression)})


def symbolic_args_specs(
    args: object, shapes_specs: object, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """The arguments as types, with sizes from a tree prefix of specifications."""
    scope = SymbolicScope(constraints) if scope is None else scope
    specs = tree.leaves(tree.broadcast(shapes_specs, args, is_leaf=lambda x: x is None), is_leaf=lambda x: x is None)
    leaves, treedef = tree.flatten(args)
    types = map(rune.typeof, leaves)
    structs = [
        ShapeDtypeStruct(symbolic_shape(spec, scope=scope, like=t.shape), t.dtype)  # type: ignore[arg-type]
        for spec, t in zip(specs, types, strict=True)
    ]
    return tree.unflatten(treedef, structs)


# --- trees --------------------------------------------------------------------------------------


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let files hold trees with this namedtuple."""
    return rune.export.register_node(nodetype, name=serialized_name)


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: None = None,
) -> type:
    """Let files hold trees with nodes of a class; two functions convert its data and bytes."""
    if from_children is not None:
        raise ArgumentError(
            "register_pytree_node_serialization: cannot use from_children (the registered class has its own rule)"
        )
    return rune.export.register_node(
        nodetype,
        name=serialized_name,
        to_text=lambda data: bytes(serialize_auxdata(data)).hex(),
        from_text=lambda text: deserialize_auxdata(bytes.fromhex(text)),
    )
