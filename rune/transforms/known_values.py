"""ensure_compile_time_eval: operations on known values run at once, even while tracing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rune.core.interpreter import Interpreter, Tracer, current, is_evaluating, use
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.transforms.eager import EVALUATE


class Known(Interpreter):
    """Evaluates operations on known values; those on traced values are left to the parent."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> Any:
        """The result at once, or the result in the parent."""
        if not any(isinstance(a, Tracer) for a in args):
            # Not in the parent, which would write the operation down or batch it.
            return EVALUATE.process(primitive, args, params)
        assert self.parent is not None
        return self.parent.process(primitive, args, params)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """In the block, or the decorated function, operations on known values run at once.

    So rune.numpy inside `jit` can compute numbers that Python needs while the function is traced.
    Operations on traced values stay traced.

    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> @rune.jit
    ... def f(x):
    ...     with rune.ensure_compile_time_eval():
    ...         count = int(rnp.sum(rnp.arange(4)))
    ...     return x * count
    >>> f(2.0)
    Array(12., f32*[], cpu:0)
    """
    # Nothing is traced here, so every operation runs at once anyway.
    if is_evaluating():
        yield
        return
    with use(Known(current())):
        yield
