"""custom_gradient: a function that returns its result together with its vjp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rune import tree
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.errors import TransformError
from rune.records import dataclass
from rune.transforms.arguments import as_value, function_name, value_leaves
from rune.transforms.custom.vjp import custom_vjp
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.eval_shape import typeof
from rune.transforms.programs import call_rules

KIND = "custom_gradient"


def custom_gradient(fun: Callable[..., tuple[object, Callable[..., object]]]) -> custom_vjp:
    """The function of the results; `fun` returns (result, vjp), and vjp is used for derivatives.

    vjp(cotangent) returns the cotangent of the only argument, or a tuple with one for each. It may
    close over values that `fun` has computed. It is traced, so it has derivatives of any order.

    Errors: TransformError if `fun` returns no such pair; for forward mode, as custom_vjp.
    Source: JAX's function of that name, and TensorFlow's.

    >>> import rune, rune.numpy as rnp
    >>> @rune.custom_gradient
    ... def clipped(x):
    ...     return x * x, lambda ct: rnp.clip(2 * x * ct, -1.0, 1.0)
    >>> clipped(3.0), rune.grad(clipped)(3.0)
    (9.0, Array(1., f32*[], cpu:0))
    """
    name = function_name(fun)

    def result(*args: object) -> object:
        return _pair(name, fun(*args))[0]

    def forward(*args: object) -> tuple[object, tree.Partial]:
        out, vjp = _pair(name, fun(*args))
        outs, out_tree = tree.flatten(out)
        types = [typeof(x).to_tangent() for x in outs]
        flat = Flat(KIND, lambda ct: vjp(ct), tree.structure((out,)))
        # Traced here, where the values that it closes over are alive: these are the residuals.
        closure = stage(flat, types, f"vjp_{name}")
        backwards = _Backwards(closure.program, len(closure.captured), flat.out_tree, out_tree)
        return out, tree.Partial(backwards, *closure.captured)

    def backward(pullback: tree.Partial, cotangent: object) -> tuple[object, ...]:
        cts = pullback(cotangent)
        return tuple(cts) if isinstance(cts, tuple | list) else (cts,)

    custom = custom_vjp(result)
    # `result` is a detail of this decorator: tools that unwrap it look for the user's function.
    custom.__wrapped__ = fun  # type: ignore[attr-defined]
    custom.__name__ = custom.name = name  # type: ignore[attr-defined]
    custom.defvjp(forward, backward)
    return custom


def _pair(name: str, answer: object) -> tuple[object, Callable[..., object]]:
    if not isinstance(answer, tuple) or len(answer) != 2 or not callable(answer[1]):
        raise TransformError(f"{KIND}: cannot use what {name} gives (a pair of result and vjp required)")
    return answer


@dataclass(frozen=True, slots=True, eq=False)
class _Backwards:
    """A vjp as a program of the values that it closes over and a cotangent."""

    program: Program
    captured_count: int
    in_tree: tree.TreeDef  # of the cotangents that it returns
    out_tree: tree.TreeDef  # of the cotangent that it takes

    def __call__(self, *args: Value) -> object:
        """The cotangents of the arguments."""
        leaves, treedef = tree.flatten(args[self.captured_count])
        values: Sequence[Value] = value_leaves(KIND, leaves, treedef)
        outs = call_rules.evaluated(self.program, [*args[: self.captured_count], *map(as_value, values)])
        return tree.unflatten(self.in_tree, outs)
