"""`jax.example_libraries.optimizers`: triples (init, update, get_params), which NumPyro wraps.

An optimizer is defined for one array, as a function from its gradient and state to the next state,
whose first part is the array itself; `optimizer` extends it to trees. The state of a tree is flat:
the leaves of each array's state, and the structures to assemble them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import absent, lax, tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.tree.treedef import TreeDef

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """Functions that start a state, update it by a gradient, and extract the parameters."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState(NamedTuple):
    """The leaves of each array's state, and the structures of parameters and of states."""

    packed_state: Sequence[Any]
    tree_def: TreeDef
    subtree_defs: Sequence[TreeDef]


tree.register_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


def optimizer(maker: Callable[..., Sequence[Callable[..., Any]]]) -> Callable[..., Optimizer]:
    """A decorator: the optimizer for trees, from a function that defines it for one array."""

    @functools.wraps(maker)
    def of_trees(*args: Any, **kwargs: Any) -> Optimizer:
        return _for_trees(*maker(*args, **kwargs))

    return of_trees


def _for_trees(init: Callable[..., Any], update: Callable[..., Any], get_params: Callable[..., Any]) -> Optimizer:
    def init_tree(params: Any) -> OptimizerState:
        leaves, structure = tree.flatten(params)
        return _pack([init(x) for x in leaves], structure)

    def update_tree(i: Any, gradient: Any, state: OptimizerState) -> OptimizerState:
        leaves, structure = tree.flatten(gradient)
        if structure != state.tree_def:
            raise ArgumentError(
                f"optimizer: cannot update parameters {state.tree_def} by a gradient {structure} (structures differ)"
            )
        states = [update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)]
        return _pack(states, structure)

    def params_of_tree(state: OptimizerState) -> Any:
        return tree.unflatten(state.tree_def, [get_params(s) for s in _states(state)])

    return Optimizer(init_tree, update_tree, params_of_tree)


def _pack(states: Iterable[Any], structure: TreeDef) -> OptimizerState:
    flat = [tree.flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), structure, tuple(kind for _, kind in flat))


def _states(state: OptimizerState) -> list[Any]:
    return [tree.unflatten(d, s) for d, s in zip(state.subtree_defs, state.packed_state, strict=True)]


def _from_zeros(count: int, step: Callable[..., tuple[Any, ...]]) -> tuple[Callable[..., Any], ...]:
    """An optimizer whose state is the array and `count` arrays of zeros: step(i, g, x, *arrays)."""

    def init(x: Any) -> tuple[Any, ...]:
        return (x, *(rnp.zeros_like(x) for _ in range(count)))

    return init, lambda i, g, state: step(i, g, *state), lambda state: state[0]


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), and 0 at 0, where all gradients have been 0."""
    return rnp.where(x > 0, 1.0 / rnp.sqrt(x), 0.0)


@optimizer
def sgd(step_size: Any) -> tuple[Callable[..., Any], ...]:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return _from_zeros(0, lambda i, g, x: (x - rate(i) * g,))


@optimizer
def momentum(step_size: Any, mass: float) -> tuple[Callable[..., Any], ...]:
    """Gradient descent with a velocity, to which each gradient is added."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _from_zeros(1, step)


@optimizer
def nesterov(step_size: Any, mass: float) -> tuple[Callable[..., Any], ...]:
    """Gradient descent with a velocity, looking one step ahead (Nesterov 1983)."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _from_zeros(1, step)


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> tuple[Callable[..., Any], ...]:
    """Gradients divided by the root of the sum of their squares (Duchi, Hazan, Singer 2011)."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any, mean: Any) -> tuple[Any, ...]:
        squares = squares + rnp.square(g)
        mean = momentum * mean + (1.0 - momentum) * (g * _inverse_root(squares))
        return x - rate(i) * mean, squares, mean

    return _from_zeros(2, step)


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> tuple[Callable[..., Any], ...]:
    """Gradients over the root of the running mean of their squares (Tieleman, Hinton 2012)."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any) -> tuple[Any, ...]:
        squares = gamma * squares + (1.0 - gamma) * rnp.square(g)
        return x - rate(i) * g / rnp.sqrt(squares + eps), squares

    return _from_zeros(1, step)


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> tuple[Callable[..., Any], ...]:
    """`rmsprop` with a velocity."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any, velocity: Any) -> tuple[Any, ...]:
        squares = gamma * squares + (1.0 - gamma) * rnp.square(g)
        velocity = momentum * velocity + rate(i) * g / rnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _from_zeros(2, step)


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple[Callable[..., Any], ...]:
    """Running means of gradients and of squares, without their bias to 0 (Kingma, Ba 2015)."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any, squares: Any) -> tuple[Any, ...]:
        mean = b1 * mean + (1 - b1) * g
        squares = b2 * squares + (1 - b2) * rnp.square(g)
        mean_estimate, square_estimate = mean / _weight(b1, i, mean), squares / _weight(b2, i, mean)
        return x - rate(i) * mean_estimate / (rnp.sqrt(square_estimate) + eps), mean, squares

    return _from_zeros(2, step)


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> tuple[Callable[..., Any], ...]:
    """`adam` with a decaying maximum in place of the mean of squares (Kingma, Ba 2015)."""
    rate = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, mean: Any, extreme: Any) -> tuple[Any, ...]:
        mean = b1 * mean + (1 - b1) * g
        extreme = rnp.maximum(b2 * extreme, rnp.abs(g))
        return x - rate(i) / _weight(b1, i, mean) * mean / (extreme + eps), mean, extreme

    return _from_zeros(2, step)


def _weight(decay: float, i: Any, like: Any) -> Any:
    """The sum of the weights of a running mean after step `i`."""
    return 1 - rnp.asarray(decay, like.dtype) ** (i + 1)


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> tuple[Callable[..., Any], ...]:
    """`adagrad` with a maximum for each slice in place of a sum for each element (Anil 2019)."""
    rate = make_schedule(step_size)

    def init(x: Any) -> tuple[Any, ...]:
        row = rnp.atleast_1d(x)
        return row, rnp.zeros_like(row), [rnp.zeros(n, row.dtype) for n in row.shape], x.shape

    def update(i: Any, g: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        x, mean, extremes, shape = state
        slices = [lax.broadcast_in_dim(e, x.shape, (axis,)) for axis, e in enumerate(extremes)]
        squares = functools.reduce(rnp.minimum, slices) + rnp.square(g)
        mean = momentum * mean + (1.0 - momentum) * (g * _inverse_root(squares))
        others = [[a for a in range(x.ndim) if a != axis] for axis in range(x.ndim)]
        return x - rate(i) * mean, mean, [squares.max(axes) for axes in others], shape

    return init, update, lambda state: state[0].reshape(state[3])


def constant(step_size: Any) -> Schedule:
    """The same step size at every step."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """step_size * decay_rate^(i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """step_size / (1 + decay_rate * i / decay_steps); `staircase` rounds i / decay_steps down."""
    periods: Schedule = (lambda i: rnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * periods(i))


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From step_size to final_step_size, by a power of the remaining share of decay_steps."""

    def schedule(i: Any) -> Any:
        share = (1 - rnp.minimum(i, decay_steps) / decay_steps) ** power
        return share * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Each value up to and including its boundary, and a last value after all boundaries."""
    edges, levels = rnp.array(boundaries), rnp.array(values)
    if edges.ndim != 1 or levels.shape != (edges.size + 1,):
        raise ArgumentError(
            f"piecewise_constant: cannot use boundaries of shape {edges.shape} with values of shape {levels.shape} "
            "(one more value than boundaries required)"
        )
    return lambda i: levels[rnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is; a number as a constant schedule."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if rnp.ndim(scalar_or_schedule) != 0:
        raise ArgumentError(
            f"make_schedule: cannot use an array of shape {rnp.shape(scalar_or_schedule)} "
            "(a number, or a function of the step, required)"
        )
    return constant(scalar_or_schedule)


def l2_norm(tree_of_arrays: Any) -> Array:
    """The Euclidean norm of all elements."""
    return rnp.sqrt(sum(rnp.vdot(x, x) for x in tree.leaves(tree_of_arrays)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The gradient, scaled down if its norm exceeds `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: rnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """The state of one array within a tree of states."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> itertools.chain[Any]:
        return itertools.chain((self.subtree,))


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of the parameters, with a JoinPoint, which holds the array's state, at each leaf."""
    return tree.unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The inverse of `unpack_optimizer_state`."""
    points, structure = tree.flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise ArgumentError(
            "pack_optimizer_state: cannot pack a tree with leaves other than JoinPoints",
            hint="unpack_optimizer_state returns such a tree",
        )
    return _pack([p.subtree for p in points], structure)


__getattr__ = absent.of(__name__)
