"""Primitive: one frozen record with all that rune knows of an operation.

Rules are plain functions. Arrays are positional, static parameters are keywords:

    type_rule(*types, **params) -> ArrayType | tuple[ArrayType, ...]
    reference(*numpy_arrays, **params) -> array | tuple      the NumPy meaning, the oracle
    jvp[i](tangent, *inputs, output, **params) -> tangent of the output, linear in `tangent`;
                                        None if these inputs make it zero
                                        ZERO: does not depend smoothly on that argument
                                        NOT_DIFFERENTIABLE("why"): its use is an error
                                        Joint(rule) serves all arguments of a variadic primitive
    transpose(cotangent, linear, *inputs, **params) -> one cotangent or None per input;
                                        if `linear[i]`, then inputs[i] is a type instead of a value
    linear_in   the groups of inputs in which it is jointly linear, as ((0,), (1,)) for a product;
                                        () if it is jointly linear in all inputs. The transpose rule
                                        is never called for other inputs.
    solves      whether it inverts a product: the rules of operands outside `linear_in` are
                                        jointly linear in tangent and output, as those of div
    transposes_zeros   whether its transpose rule is called even if all cotangents are zero
    batch(batched, size, *inputs, **params) -> (output, is_batched); batch axes are always leading
    lower   its lowering to kernel code (core/lower.py), or
    expand(*inputs, **params)   the same meaning in other primitives; a `Library` may have both
    vary(axes, params)          the axes of a mesh along which the results vary (core/varying.py)
    jax_names[name]     a parameter of JAX's equations: its name here, or a function of params, or
                        a Translation (jax_names.py)
    jax_form            JAX's way to bind it, if JAX has other operands or results
    jax_order   the positions here of the operands of JAX's equation, if JAX has another order; this
                permutation is its own inverse

A `Collective` has one more rule, its meaning if the batch axis is its own, named by `axis_name`:

    over_lanes(batched, size, *inputs, **params) -> (output, is_batched)

and one for an axis of devices, from the operands of a group, in order, to a result for each:

    among(numpy_arrays, **params) -> list of arrays, each in its own memory

Primitives with several results, and others that need them, have rules for whole equations:

    jvp_equation(primals, tangents, params) -> (list of outputs, list of tangents); None is a zero
                                        tangent
    dead_code(used, equation) -> Equation | None    the equation with unused results dropped
    effect(**params) -> Effect | None   its side effect (side_effects.py)

Those whose equations hold programs (jit) are in higher.py; they live with their transformation.
A primitive is called like a function: `sin(x)` binds it in the current context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, ClassVar, TypeVar

from rune.core.interpreter import bind
from rune.core.jax_names import Form, Names, own_params
from rune.core.lower import Lowering
from rune.records import dataclass


class Effect(Enum):
    """A side effect of an equation: in any order, or in the order of the program."""

    UNORDERED = "unordered"
    ORDERED = "ordered"

    def __str__(self) -> str:
        return self.value


class Zero(Enum):
    """The rule that the derivative is zero everywhere.

    Types: floating and complex operands. Errors: none.

    >>> import rune, numpy as np
    >>> from rune import extend
    >>> floor = extend.primitive("floor", types=lambda x: x, meaning=np.floor, jvp=[extend.ZERO])
    >>> rune.grad(lambda x: floor(x) + x)(1.5)
    Array(1., f32*[], cpu:0)
    """

    ZERO = "zero"


ZERO = Zero.ZERO


@dataclass(frozen=True, slots=True)
class NOT_DIFFERENTIABLE:
    """The rule that differentiation is refused, and why.

    >>> from rune import extend
    >>> extend.NOT_DIFFERENTIABLE("it counts").why
    'it counts'
    """

    why: str


T = TypeVar("T")

EXTENSION = "extension"  # the family of operations that users define
Rule = Callable[..., Any]
JvpRule = Rule | Zero | NOT_DIFFERENTIABLE


@dataclass(frozen=True, slots=True)
class Joint:
    """One jvp rule for all arguments: rule(tangents, inputs, output, **params); None is zero."""

    rule: Rule


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Primitive:
    """One operation. Compared by identity; `name` is unique."""

    name: str
    family: str
    type_rule: Rule
    reference: Rule | None = None
    jvp: tuple[JvpRule, ...] | Joint | None = None
    transpose: Rule | None = None
    batch: Rule | None = None
    lower: Lowering | None = None
    expand: Rule | None = None
    multiple_results: bool = False
    call_primitive: ClassVar[bool] = False  # in JAX, of primitives that hold a function of operands
    map_primitive: ClassVar[bool] = False
    jvp_equation: Rule | None = None
    dead_code: Rule | None = None
    effect: Rule | None = None
    linear_in: tuple[tuple[int, ...], ...] = ()
    vary: Rule | None = None
    jax_names: Names | None = field(default=None, kw_only=True)
    jax_form: Form | None = field(default=None, kw_only=True)
    jax_order: tuple[int, ...] | None = field(default=None, kw_only=True)
    solves: bool = False
    transposes_zeros: bool = False

    __call__ = bind  # it applies the primitive in the current context

    def bind(self, *args: object, **params: object) -> Any:
        """Apply the primitive in the current context to operands in JAX's order, with its names."""
        if self.jax_form is not None and self.jax_form.told_by in params:
            return self.jax_form.bind(*args, **params)
        return bind(self, *self.reordered(args), **own_params(self.jax_names, params))

    def reordered(self, operands: Sequence[T]) -> tuple[T, ...]:
        """Operands in JAX's order from those in the order here, or the other way round."""
        if self.jax_order is None or len(operands) != len(self.jax_order):
            return tuple(operands)
        return tuple(operands[i] for i in self.jax_order)

    def get_bind_params(self, params: Mapping[str, object]) -> dict[str, object]:
        """The keyword arguments of `bind` for the parameters of an equation: all of them."""
        return dict(params)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Direct(Primitive):
    """An operation that eager evaluation runs by its own rule, not by its NumPy meaning.

    run(*arrays, **params) -> Array, or a list of them
    """

    run: Rule | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collective(Primitive):
    """An operation between the lanes, or the devices, of a named axis."""

    over_lanes: Rule = field(kw_only=True)
    among: Rule | None = field(default=None, kw_only=True)
