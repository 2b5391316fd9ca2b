"""JAX's `Primitive`: an operation whose rules are added later, by JAX's conventions.

Equations hold the primitive itself, and every transformation uses it like any other primitive
(rune/core/primitive.py). Each of its fields looks its rule up on use, in `rules` (rules.py), and
converts arguments and results between the conventions: JAX's types are abstract values, its zeros
are `Zero`, and its batch axis may be anywhere. A lowering is a function of values, and receives no
MLIR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rune.as_jax.avals import type_of
from rune.as_jax.jaxprs import no_effects
from rune.as_jax.zeros import UndefinedPrimal, tangent_zero, value_or_none
from rune.core import interpreter
from rune.core.axes import own_axis
from rune.core.interpreter import bind
from rune.core.primitive import EXTENSION, Direct, Effect
from rune.core.primitive import Primitive as Operation
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.dims import Size
from rune.errors import ArgumentError, MissingRule, TransformError, at_line
from rune.ops.movement import move_axis
from rune.records import dataclass
from rune.transforms.arguments import unshared, value_leaves
from rune.transforms.custom.rules import as_arrays
from rune.tree import structure

IMPL, TYPES, LOWERING = "impl", "abstract_eval", "lowering"
JVP, TRANSPOSE, BATCH = "primitive_jvps", "primitive_transposes", "primitive_batchers"
WHAT = {
    IMPL: "evaluate: cannot run {} (def_impl has not set its computation)",
    TYPES: "trace: cannot type {} (def_abstract_eval has not set the types of its results)",
    LOWERING: "jit: cannot compile {} (mlir.register_lowering has not set its lowering)",
    JVP: "jvp: cannot differentiate {} (it has no rule in ad.primitive_jvps)",
    TRANSPOSE: "transpose: cannot transpose {} (it has no rule in ad.primitive_transposes)",
    BATCH: "vmap: cannot batch {} (it has no rule in batching.primitive_batchers)",
}


@dataclass(frozen=True, slots=True)
class AxisData:
    """The batch axis, in the form that JAX's batch rules receive."""

    name: Any
    size: Size
    spmd_name: None = None
    explicit_mesh_axis: None = None


class _AnyPrimitive(type):
    """Makes rune's own operations instances of JAX's class; `issubclass` tells the two apart."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or (cls is Primitive and issubclass(type(instance), Operation))


class Primitive(Direct, metaclass=_AnyPrimitive):
    """A user-defined operation. Set `multiple_results` before binding it for the first time.

    >>> import rune.as_jax, jax, jax.numpy as jnp
    >>> from jax.extend.core import Primitive
    >>> from jax.interpreters import ad, batching, mlir
    >>> cube_p = Primitive("cube")
    >>> cube = cube_p.def_impl(lambda x: x * x * x)
    >>> _ = cube_p.def_abstract_eval(lambda x: x)
    >>> _ = mlir.register_lowering(cube_p, mlir.lower_fun(cube, multiple_results=False))
    >>> ad.defjvp(cube_p, lambda t, x: 3 * x**2 * t)
    >>> jax.jit(jax.grad(cube_p.bind))(2.0)
    Array(12., f32*[], cpu:0)
    """

    __setattr__ = object.__setattr__  # libraries set `multiple_results` and attributes of their own
    multiple_results = False  # a subclass may override it
    call_primitive = map_primitive = ref_primitive = skip_canonicalization = False

    def __init__(self, name: str):
        super().__init__(
            name,
            EXTENSION,
            self.__types,
            batch=self.__batch,
            transpose=self.__transpose,
            jvp_equation=self.__jvp,
            expand=self.__expand,
            effect=self.__effect,
            run=self.__run,
            multiple_results=type(self).multiple_results,
        )
        self.rules: dict[str, Callable[..., Any]] = {}
        self.is_effectful_in_params = False

    # --- JAX's interface ------------------------------------------------------------------------

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive in the current context.

        Errors: ArgumentError for an argument that is not an array.
        """
        values = value_leaves(self.name, args, structure(args))
        out = bind(self, *map(unshared, values), **params)
        return list(out) if self.multiple_results else out

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set impl(*arrays, **params) -> its results."""
        self.rules[IMPL] = impl
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set rule(*avals, **params) -> the abstract values of its results."""
        self.rules[TYPES] = lambda *avals, **params: (rule(*avals, **params), no_effects)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set rule(*avals, **params) -> (abstract values, effects); equations then always run."""
        self.rules[TYPES] = rule
        self.is_effectful_in_params = True
        return rule

    @property
    def impl(self) -> Callable[..., Any]:
        """impl(*arrays, **params) -> its results"""
        return self.__rule(IMPL)

    @property
    def abstract_eval(self) -> Callable[..., Any]:
        """abstract_eval(*avals, **params) -> (abstract values of the results, effects)"""
        return self.__rule(TYPES)

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for binding an equation's primitive again."""
        return dict(params)

    # --- the rules of rune's primitives -----------------------------------------------------------

    def __rule(self, kind: str) -> Callable[..., Any]:
        if kind in (IMPL, TYPES) and getattr(type(self), kind) is not getattr(Primitive, kind):
            return getattr(self, kind)  # a method of a subclass, as in KFAC-JAX's loss tags
        try:
            return self.rules[kind]
        except KeyError:
            raise MissingRule(WHAT[kind].format(self)) from None

    def __types(self, *types: ArrayType, **params: Any) -> Any:
        out, _ = self.__rule(TYPES)(*types, **params)
        return tuple(map(type_of, out)) if self.multiple_results else type_of(out)

    def __effect(self, **params: object) -> Effect | None:
        return Effect.UNORDERED if self.is_effectful_in_params else None

    def __run(self, *args: Value, **params: Any) -> Any:
        out = self.__call_rule(IMPL, *as_arrays(args), **params)
        return list(map(unshared, out)) if self.multiple_results else unshared(out)

    def __call_rule(self, kind: str, *args: Any, **params: Any) -> Any:
        """Call a rule; errors in it report its own lines, not those of the equation."""
        with at_line(None):
            return self.__rule(kind)(*args, **params)

    def __jvp(self, primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, Any]) -> Any:
        types = map(interpreter.type_of, primals)
        tangent_values = [tangent_zero(type) if t is None else t for t, type in zip(tangents, types, strict=True)]
        outs, out_tangents = self.__call_rule(
            JVP, tuple(as_arrays(primals)), tuple(as_arrays(tangent_values)), **params
        )
        if not self.multiple_results:
            outs, out_tangents = [outs], [out_tangents]
        return list(map(unshared, outs)), [unshared(value_or_none(t)) for t in out_tangents]

    def __transpose(self, ct: Any, linear: Sequence[bool], *inputs: Any, **params: Any) -> list[Any]:
        primals = [UndefinedPrimal(x) if lin else x for x, lin in zip(inputs, linear, strict=True)]
        cts: Any = ct
        if self.multiple_results and any(c is None for c in ct):
            # A Zero has a type, and a None does not: that of the result is worked out once more.
            results, _ = self.__rule(TYPES)(*(_input_type(x) for x in inputs), **params)
            cts = [tangent_zero(type_of(a)) if c is None else c for c, a in zip(ct, results, strict=True)]
        outs = self.__call_rule(TRANSPOSE, cts, *as_arrays(primals), **params)
        if isinstance(outs, type):  # the class Zero: all cotangents are zero
            return [None] * len(inputs)
        return [unshared(value_or_none(c)) for c in outs]

    def __batch(self, is_batched: Sequence[bool], size: Size, *args: Value, **params: Any) -> Any:
        axis = own_axis()
        data = AxisData(None if axis is None else axis.name, size)
        dims = tuple(0 if b else None for b in is_batched)
        outs, out_dims = self.__call_rule(BATCH, data, tuple(as_arrays(args)), dims, **params)
        if not self.multiple_results:
            return _leading(outs, out_dims), out_dims is not None
        # JAX allows a single None when no result is batched.
        out_dims = [None] * len(outs) if out_dims is None else out_dims
        leading = [_leading(o, d) for o, d in zip(outs, out_dims, strict=True)]
        return leading, tuple(d is not None for d in out_dims)

    def __expand(self, *args: Value, **params: Any) -> Any:
        types = [interpreter.type_of(a) for a in args]
        avals, _ = self.__rule(TYPES)(*types, **params)
        context = LoweringContext(self, tuple(types), tuple(map(type_of, _all(avals))))
        outs = _all(self.__call_rule(LOWERING, context, *as_arrays(args), **params))
        outs = [self.__check_result(o, t) for o, t in zip(outs, context.avals_out, strict=True)]
        return outs if self.multiple_results else outs[0]

    def __check_result(self, out: Any, type: ArrayType) -> Any:
        """A result of the lowering. Errors: TransformError unless it has the declared type."""
        out = unshared(out)
        if not same_layout(interpreter.type_of(out), type):
            raise TransformError(
                f"jit: cannot compile {self} (its lowering returns {interpreter.type_of(out)}, "
                f"its abstract_eval {type})"
            )
        return out


class LoweringContext:
    """The context of a lowering: the types of operands and results. It holds no MLIR."""

    def __init__(self, primitive: Primitive, avals_in: tuple[ArrayType, ...], avals_out: tuple[ArrayType, ...]):
        self.primitive, self.avals_in, self.avals_out = primitive, avals_in, avals_out
        self.module_context = ModuleContext()

    def __getattr__(self, name: str) -> Any:
        raise ArgumentError(
            f"jit: cannot give {name} to the lowering of {self.primitive} (it belongs to MLIR, which rune lacks)",
            hint="register mlir.lower_fun(f), with f written with jax.numpy",
        )


class ModuleContext:
    """The context of a compiled module."""

    def add_keepalive(self, value: object) -> None:
        """Do nothing: a rune program keeps the functions that it calls alive."""


def _input_type(value: Any) -> ArrayType:
    return value if isinstance(value, ArrayType) else interpreter.type_of(value)


def _all(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, tuple | list) else (results,)


def _leading(value: Any, dim: int | None) -> Any:
    """The value with its batch axis moved to the front."""
    value = unshared(value)
    return value if dim is None else move_axis(value, dim % interpreter.type_of(value).ndim, 0)
