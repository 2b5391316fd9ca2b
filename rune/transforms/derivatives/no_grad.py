"""no_grad: values computed in a block are constants of every derivative.

An interpreter inside the current one puts `stop_gradient` on every operand that could carry a
tangent, so the effect of the block is part of the program: it holds under jit, whose cache key need
not mention it, and at every level of nested derivatives. It leaves no residuals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rune.core.interpreter import Interpreter, Tracer, current, is_differentiable, is_evaluating, use
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.ops import stop_gradient


class NoGrad(Interpreter):
    """Binds every primitive in the parent, on operands without tangents."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The primitive's result, in the parent."""
        parent = self.parent
        assert parent is not None
        return parent.process(primitive, [_stopped(parent, a) for a in args], params)


def _stopped(parent: Interpreter, value: Value) -> Value:
    # Only a tracer can carry a tangent.
    if isinstance(value, Tracer) and is_differentiable(value):
        return parent.process(stop_gradient, [value], {})
    return value


@contextmanager
def no_grad() -> Iterator[None]:
    """Inside the block nothing is differentiated: its results are constants of any derivative.

    Values do not change, and code outside is differentiated as usual. It is also a decorator.
    `rune.lax.stop_gradient` does the same for one value.
    Errors: none.

    >>> import rune
    >>> def f(x):
    ...     with rune.no_grad():
    ...         scale = x * x
    ...     return scale * x
    >>> float(rune.grad(f)(3.0)), float(rune.grad(rune.jit(f))(3.0))
    (9.0, 9.0)
    """
    # Nothing is differentiated or staged here, so eager operations need no extra interpreter.
    if is_evaluating():
        yield
        return
    with use(NoGrad(current())):
        yield
