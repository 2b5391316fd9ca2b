"""Building blocks of optimisers: each turns gradients into updates and carries its own state.

A part is an `Optimizer` too, so that parts chain. States are named tuples of trees; the step
count is an i32 array, never a Python number, so that counting does not retrace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.optim.leaves import Tree, filled, filled_real, in_dtypes, square_of
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike

Rate = Any  # a number, an array, or a function of the step count


@dataclass(frozen=True, slots=True)
class Optimizer:
    """init(params) -> state;  update(grads, state, params) -> (updates, state).

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> halved = optim.GradientTransformation(lambda params: (), lambda g, s, p: (g / 2, s))
    >>> halved.update(rnp.ones(1), halved.init(rnp.ones(1)), None)[0]
    Array([0.5], f32[1], cpu:0)
    """

    init: Callable[[Tree], Tree]
    update: Callable[..., tuple[Tree, Tree]]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        """The two functions, so that `init, update = optim.adam(0.1)`."""
        return iter((self.init, self.update))


@dataclass(frozen=True, slots=True)
class ExtraArgsOptimizer(Optimizer):
    """An optimizer whose update also takes what the step knows, by name: `value`, `value_fn`, …

    Source: Optax's GradientTransformationExtraArgs.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> by_loss = optim.ExtraArgsOptimizer(lambda p: (), lambda g, s, p, *, value: (g * value, s))
    >>> by_loss.update(rnp.ones(1), (), None, value=3.0)[0]
    Array([3.], f32[1], cpu:0)
    """


class AdamState(NamedTuple):
    """Step count, and running means of the gradient and of its square."""

    count: Any
    mu: Tree
    nu: Tree


class TraceState(NamedTuple):
    """The velocity of momentum."""

    trace: Tree


class CountState(NamedTuple):
    """The step count of a schedule."""

    count: Any


def apply_updates(params: Tree, updates: Tree) -> Tree:
    """params + updates, leaf by leaf, each in the dtype of its parameter.

    Shapes: a tree like params. Types: those of params.
    Errors: ArgumentError for trees that are not alike; ShapeError for leaves that do not fit;
            DtypeError for a complex update of a real parameter.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.apply_updates({"w": rnp.ones(1)}, {"w": rnp.ones(1)})
    {'w': Array([2.], f32[1], cpu:0)}
    """
    return in_dtypes("apply_updates", tree.map(rnp.add, params, updates), params)


def with_extra_args_support(inner: Optimizer) -> ExtraArgsOptimizer:
    """`inner` with an update that takes further arguments by name, and leaves out those unknown.

    Shapes: updates and state as of `inner`. Types: as of `inner`.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.with_extra_args_support(optim.sgd(0.5)), rnp.array([3.0]), rnp.array([1.0])
    >>> o.update(g, o.init(p), p, value=1.0)[0]
    Array([-1.5], f32[1], cpu:0)
    """
    if isinstance(inner, ExtraArgsOptimizer):
        return inner
    if not (hasattr(inner, "init") and hasattr(inner, "update")):
        raise ArgumentError(f"optim: cannot take {type(inner).__name__} as an optimizer (init and update required)")

    def update(grads: Tree, state: Tree, params: Tree = None, **_: object) -> tuple[Tree, Tree]:
        return inner.update(grads, state, params)

    return ExtraArgsOptimizer(inner.init, update)


def chain(*parts: Optimizer) -> ExtraArgsOptimizer:
    """The parts one after another: the updates of one are the gradients of the next.

    Shapes: updates as of the last part; the state is the tuple of theirs. Types: as of the parts.
    Errors: ArgumentError if an argument is not an optimizer, or if trees differ in structure.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o = optim.chain(optim.clip(1.0), optim.sgd(0.5))
    >>> g, p = rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-0.5,  0.5], f32[2], cpu:0)
    """
    willing = [with_extra_args_support(part) for part in parts]

    def init(params: Tree) -> Tree:
        return tuple(part.init(params) for part in willing)

    def update(grads: Tree, state: Tree, params: Tree = None, **extra: object) -> tuple[Tree, Tree]:
        if not isinstance(state, tuple | list) or len(state) != len(parts):
            held = len(state) if isinstance(state, tuple | list) else type(state).__name__
            raise ArgumentError(f"chain: cannot use a state of {held} for {len(parts)} parts")
        states = []
        for part, old in zip(willing, state, strict=True):
            grads, new = part.update(grads, old, params, **extra)
            states.append(new)
        return grads, tuple(states)

    return ExtraArgsOptimizer(init, update)


def named_chain(*parts: tuple[str, Optimizer]) -> ExtraArgsOptimizer:
    """`chain` of named parts, whose state is a dictionary.

    Shapes: updates as of the last part; the state is a dict of theirs. Types: as of the parts.
    Errors: ArgumentError for a name that is given twice.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o = optim.named_chain(("clip", optim.clip(1.0)), ("adam", optim.scale_by_adam()))
    >>> sorted(o.init(rnp.zeros(1)))
    ['adam', 'clip']
    """
    if not all(isinstance(part, tuple) and len(part) == 2 for part in parts):
        raise ArgumentError("named_chain: cannot read the parts (pairs of name and optimizer)")
    names = [name for name, _ in parts]
    if len(set(names)) < len(names):
        raise ArgumentError(f"named_chain: cannot use a name twice ({', '.join(names)})")
    inner = chain(*(part for _, part in parts))

    def init(params: Tree) -> dict[str, Tree]:
        return dict(zip(names, inner.init(params), strict=True))

    def update(
        grads: Tree, state: dict[str, Tree], params: Tree = None, **extra: object
    ) -> tuple[Tree, dict[str, Tree]]:
        updates, after = inner.update(grads, tuple(state[n] for n in names), params, **extra)
        return updates, dict(zip(names, after, strict=True))

    return ExtraArgsOptimizer(init, update)


def stateless(rule: Callable[[Tree, Tree], Tree]) -> Optimizer:
    """An optimizer of `rule(grads, params) -> updates`, which remembers nothing.

    Shapes: updates as of `rule`; the state is (). Types: as of `rule`.
    Errors: ArgumentError, when it is used, for trees that are not alike.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.stateless(lambda grads, params: -0.5 * grads).update(rnp.array([3.0]), ())[0]
    Array([-1.5], f32[1], cpu:0)
    """

    def update(grads: Tree, state: Tree, params: Tree = None) -> tuple[Tree, Tree]:
        return rule(grads, params), state

    return Optimizer(lambda params: (), update)


def scale_by_learning_rate(learning_rate: Rate) -> Optimizer:
    """Updates times minus the learning rate; of a schedule, its value at the step, from 0.

    Shapes: updates are a tree like the gradients; a schedule's count is i32 [].
    Types:  each leaf in its dtype, floating or complex.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.scale_by_learning_rate(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([-1.5,  2. ], f32[2], cpu:0)
    """
    if not callable(learning_rate):
        required_number("scale_by_learning_rate", "learning_rate", learning_rate)
        return stateless(lambda grads, _: scaled(grads, -learning_rate))
    schedule: Callable[[Any], Any] = learning_rate

    def update(grads: Tree, state: CountState, params: Tree = None) -> tuple[Tree, Tree]:
        return scaled(grads, -schedule(state.count)), CountState(state.count + 1)

    return Optimizer(lambda params: CountState(no_steps()), update)


def identity() -> Optimizer:
    """Updates as they are.

    Shapes: as the gradients; no state. Types: each leaf in its dtype, floating or complex.
    Errors: ArgumentError, when it is used, for trees that are not alike.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.identity(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3., -4.], f32[2], cpu:0)
    """
    return stateless(lambda grads, _: grads)


def no_steps() -> Array:
    """The step count before the first step."""
    return rnp.zeros((), "i32")


def scaled(grads: Tree, rate: ArrayLike) -> Tree:
    """Every leaf times a number or rank-0 array, in its own dtype."""
    return tree.map(lambda g: rnp.astype(rnp.multiply(g, rate), rnp.result_type(g)), grads)


def trace(decay: float, nesterov: bool = False) -> Optimizer:
    """Momentum: v = g + decay v; the update is v, or g + decay v with `nesterov`.

    Shapes: updates, and the velocity in the state, are trees like the parameters.
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Sutskever et al. 2013, On the importance of initialization and momentum, ICML.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.trace(0.9), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3., -4.], f32[2], cpu:0)
    """

    required_number("trace", "decay", decay, 0)

    def update(grads: Tree, state: TraceState, params: Tree = None) -> tuple[Tree, Tree]:
        sums = tree.map(lambda g, v: g + decay * same_shape("trace", v, g), grads, state.trace)
        velocity = in_dtypes("trace", sums, state.trace)
        ahead = tree.map(lambda g, v: g + decay * v, grads, velocity) if nesterov else velocity
        return in_dtypes("trace", ahead, velocity), TraceState(velocity)

    return Optimizer(lambda params: TraceState(tree.map(rnp.zeros_like, params)), update)


def scale_by_adam(
    b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, eps_root: float = 0.0, nesterov: bool = False
) -> Optimizer:
    """The gradient's running mean over the root of its square's, both corrected for their start.

    nesterov: the mean as it will be after one more step with this gradient.
    Shapes: updates, and mu and nu in the state, are trees like the parameters; counts are i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Source: Kingma & Ba 2014, arXiv:1412.6980, algorithm 1; nesterov, Dozat 2016.
    Errors: ArgumentError, when it is used, for trees that are not alike.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.scale_by_adam(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1., -1.], f32[2], cpu:0)
    """

    def update(grads: Tree, state: AdamState, params: Tree = None) -> tuple[Tree, Tree]:
        count = state.count + 1
        mu = running_mean("scale_by_adam", b1, state.mu, grads)
        nu = running_squares("scale_by_adam", b2, state.nu, grads)
        mean = unbiased("scale_by_adam", b1, count, nesterov)
        second = correction("scale_by_adam", b2, count)

        def direction(g: Array, m: Array, v: Array) -> Array:
            return rnp.astype(mean(g, m) / (rnp.sqrt(v / second + eps_root) + eps), m.dtype)

        return tree.map(direction, grads, mu, nu), AdamState(count, mu, nu)

    return Optimizer(two_moments, update)


def two_moments(params: Tree, value: float = 0.0) -> AdamState:
    """The state before the first step, both means of one number; those of squares are real."""
    return AdamState(no_steps(), filled(params, value), filled_real(params, value))


def running_mean(name: str, decay: Any, old: Tree, new: Tree) -> Tree:
    """decay old + (1 - decay) new, in the dtype of the old.

    Errors: ArgumentError for a decay outside 0…1, and for leaves of other shapes; DtypeError for
            complex leaves where the old are real.
    """
    required_number(name, "decay", decay, 0, 1)

    def leaf(a: Array, b: Array) -> Array:
        return (1 - decay) * b + decay * same_shape(name, a, b)

    return in_dtypes(name, tree.map(leaf, old, new), old)


def same_shape(name: str, old: Array, new: Array) -> Array:
    """`old`. Errors: ArgumentError unless both have one shape."""
    if rnp.shape(old) != rnp.shape(new):
        raise ArgumentError(
            f"{name}: cannot update {rnp.shape(old)} with {rnp.shape(new)} (one shape required)",
            hint="the state or the copy belongs to other parameters",
        )
    return old


def running_squares(name: str, decay: ArrayLike, old: Tree, new: Tree) -> Tree:
    """decay old + (1 - decay) |new|², in the dtype of the old."""
    return running_mean(name, decay, old, tree.map(square_of, new))


def correction(name: str, decay: Any, count: Array) -> float | Array:
    """1 - decay**count, through expm1: near 1 the difference would lose its digits in f32."""
    if isinstance(required_number(name, "decay", decay, 0, 1), int | float):
        return 1.0 if decay == 0 else -rnp.expm1(rnp.astype(count, "f32") * math.log(decay))
    return -rnp.expm1(rnp.astype(count, "f32") * rnp.log(decay))


def unbiased(name: str, b1: Any, count: Array, nesterov: bool) -> Callable[[Any, Any], Any]:
    """The function (gradient, running mean) -> mean corrected for its start.

    nesterov: the mean as it will be after one more step with this gradient.
    """
    first = correction(name, b1, count)
    if not nesterov:
        return lambda g, m: m / first
    ahead = correction(name, b1, count + 1)
    return lambda g, m: b1 * m / ahead + (1 - b1) * g / first


def add_decayed_weights(weight_decay: float, mask: object = None) -> Optimizer:
    """Updates plus weight_decay times the parameters. Errors: ArgumentError without params.

    mask: a tree of bools like the parameters (or a prefix of it), or a function from them to one:
          which leaves decay.
    Shapes: as the gradients; no state. Types: each leaf in its dtype, floating or complex.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> o, g, p = optim.add_decayed_weights(0.5), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 3.5, -3. ], f32[2], cpu:0)
    """

    def rule(grads: Tree, params: Tree) -> Tree:
        if params is None:
            raise ArgumentError(
                "add_decayed_weights: cannot decay without parameters", hint="call update(grads, state, params)"
            )
        decays = mask(params) if callable(mask) else True if mask is None else mask
        flags = tree.unflatten(tree.structure(params), tree.broadcast_prefix(decays, params))
        return tree.map(lambda g, p, on: g + weight_decay * p if on else g, grads, params, flags)

    return stateless(rule)


def global_norm(updates: Tree) -> Array:
    """The Euclidean norm of all leaves together.

    Shapes: any tree -> []. Types: f32, or f64 of wider leaves; real of complex ones.
    Errors: ArgumentError if a leaf is not an array.

    >>> import rune.numpy as rnp, rune.optim as optim
    >>> optim.global_norm([rnp.array([3.0]), rnp.array([4.0])])
    Array(5., f32[], cpu:0)
    """
    return rnp.sqrt(inner_product(updates, updates))


def inner_product(a: Tree, b: Tree) -> Array:
    """The sum of Re(conj(x) y) over all elements of two trees, in f32 or wider."""
    total = rnp.zeros(())
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        wide = rnp.result_type(x, y, "f32")
        product = rnp.conj(rnp.astype(x, wide)) * rnp.astype(y, wide)
        total = total + rnp.sum(rnp.real(product))
    return total
