"""Forward mode: a tracer holds a primal and its tangent.

A tangent of None is a symbolic zero: it costs nothing and is never materialised. Rules run in
the parent context, so derivatives of derivatives, batched and staged derivatives follow by nesting.
A value that does not belong to this interpreter is a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rune.core.interpreter import Interpreter, Tracer, current, is_differentiable, type_of, use
from rune.core.primitive import NOT_DIFFERENTIABLE, Joint, Primitive, Zero
from rune.core.values import Value, Values
from rune.errors import MissingRule, TransformError
from rune.ops import add
from rune.ops.collectives import varying
from rune.ops.family import fit
from rune.transforms.tracers import ValueTracer


class JvpTracer(ValueTracer):
    """primal + ε tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, interpreter: Interpreter, primal: Value, tangent: Value):
        self.interpreter, self.primal, self.tangent, self.frame = interpreter, primal, tangent, None

    @property
    def type(self):
        """The primal's type."""
        return type_of(self.primal)

    def known(self) -> Any:
        """The primal, if it is concrete."""
        # Under a derivative of a derivative the primal is a tracer, too.
        if isinstance(self.primal, ValueTracer):
            return self.primal.known()
        return None if isinstance(self.primal, Tracer) else self.primal

    def underlying(self) -> Value:
        """The primal."""
        return self.primal


class Jvp(Interpreter):
    """Applies the jvp rules of primitives."""

    __slots__ = ()

    def split(self, value: Value) -> tuple[Value, Value | None]:
        """(primal, tangent) of a value; a constant's tangent is None."""
        if isinstance(value, JvpTracer) and value.interpreter is self:
            return value.primal, value.tangent
        return value, None

    def join(self, primal: Value, tangent: Value | None) -> Value:
        """A tracer, or the primal itself if the tangent is zero."""
        if tangent is not None and self.is_typed:  # it varies along all axes that its primal does
            tangent = varying(tangent, type_of(primal).varying)
        return primal if tangent is None else JvpTracer(self, primal, tangent)

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The primitive on primals, and its rule on tangents, in the parent."""
        primals, tangents = zip(*map(self.split, args), strict=True) if args else ((), ())
        parent = self.parent
        assert parent is not None
        if all(t is None for t in tangents):
            return parent.process(primitive, primals, params)
        # In the parent, primals and tangents are ordinary values: the rule itself is not pushed.
        with use(parent):
            if primitive.jvp_equation is not None:
                pairs = zip(*primitive.jvp_equation(primals, tangents, params), strict=True)
                results = [self.join(*pair) for pair in pairs]
                return results if primitive.multiple_results else results[0]
            out = primitive(*primals, **params)
            return self.join(out, push(primitive, primals, tangents, out, params) if is_differentiable(out) else None)


def push(primitive: Primitive, primals: Sequence[Value], tangents: Values, out: Value, params: Mapping) -> Any:
    """The tangent of `out`: the sum of each argument's rule; None if every one is zero.

    Errors: MissingRule without a rule; TransformError if the rule refuses.
    """
    if isinstance(primitive.jvp, Joint):
        return primitive.jvp.rule(tangents, primals, out, **params)
    if primitive.jvp is None:
        raise MissingRule(f"jvp: cannot differentiate {primitive} (it has no jvp rule)")
    total = None
    for tangent, rule in zip(tangents, primitive.jvp, strict=True):
        if tangent is None or isinstance(rule, Zero):
            continue
        if isinstance(rule, NOT_DIFFERENTIABLE):
            raise TransformError(f"jvp: cannot differentiate {primitive} ({rule.why})")
        term = rule(tangent, *primals, out, **params)
        if term is not None:
            total = term if total is None else add(total, term)
    # The tangent of a rank-0 operand has rank 0, even if the operation broadcast it.
    return None if total is None else fit(total, type_of(out).shape)


def jvp_flat(function: Callable[..., Sequence[Value]], primals: Sequence[Value], tangents: Values) -> tuple[list, list]:
    """Outputs and tangents (None for zero) of a flat function."""
    interpreter = Jvp(current())
    args = [interpreter.join(p, t) for p, t in zip(primals, tangents, strict=True)]
    pairs = interpreter.trace(lambda: [interpreter.split(out) for out in function(*args)])
    return [p for p, _ in pairs], [t for _, t in pairs]
