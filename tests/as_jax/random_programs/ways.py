"""The ways of calling a random program, each as one line of JAX over `f` and `args`.

A call may draw its own arguments (a stack of lanes), so it makes them with the line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.as_jax.random_programs.dialect import Question
from tests.as_jax.random_programs.draw import has_wide_numbers
from tests.fuzzing.program import Input, Program, dtype_named

SMALL = 60  # elements of arguments with a whole Jacobian
LANES = 3


@dataclass(frozen=True, slots=True)
class Call:
    """A line over `f` and `args`, and the arguments."""

    line: str
    arguments: list[np.ndarray]


Form = Callable[[Program, np.random.Generator], Call]


def question(program: Program, seed: int, form: Form) -> Question:
    """The whole text of a program that is called in this form."""
    call = form(program, np.random.default_rng(seed + 1))
    source = f"{program.source()}\n\ndef run(*args):\n    return {call.line}\n"
    return Question(source, call.arguments, has_wide_numbers(seed))


def arguments(program: Program, rng: np.random.Generator) -> list[np.ndarray]:
    """Values for the inputs."""
    return [i.draw(rng) for i in program.inputs]


def plain(line: str) -> Form:
    """A call with arguments as they are."""
    return lambda program, rng: Call(line, arguments(program, rng))


# --- lanes ----------------------------------------------------------------------------------------


def lanes(wrap: str) -> Form:
    """vmap over some arguments, along any of their axes; `wrap` has {} for the mapped function."""

    def form(program: Program, rng: np.random.Generator) -> Call:
        axes = [_axis(i, rng) for i in program.inputs]
        if all(axis is None for axis in axes):
            axes[0] = 0
        out = "" if rng.random() < 0.6 else ", out_axes=-1"
        args = [_stack(i, axis, rng) for i, axis in zip(program.inputs, axes, strict=True)]
        return Call(wrap.format(f"jax.vmap(f, in_axes={tuple(axes)}{out})"), args)

    return form


def _axis(argument: Input, rng: np.random.Generator) -> int | None:
    axes = [*range(len(argument.shape) + 1), -1]
    return None if rng.random() < 0.25 else int(rng.choice(axes if rng.random() < 0.5 else [0]))


def _stack(argument: Input, axis: int | None, rng: np.random.Generator) -> np.ndarray:
    if axis is None:
        return argument.draw(rng)
    return np.stack([argument.draw(rng) for _ in range(LANES)], axis)


def twice_mapped(program: Program, rng: np.random.Generator) -> Call:
    """Lanes of lanes; the inner ones share the other arguments."""
    inner = [0, *(int(k) if k >= 0 else None for k in rng.integers(-1, 1, len(program.inputs) - 1))]
    shapes = [i.shape if axis is None else (2, *i.shape) for i, axis in zip(program.inputs, inner)]
    args = [replace(i, shape=(LANES, *s)).draw(rng) for i, s in zip(program.inputs, shapes)]
    return Call(f"jax.vmap(jax.vmap(f, in_axes={tuple(inner)}, out_axes=-1))(*args)", args)


# --- derivatives ----------------------------------------------------------------------------------


def floating(program: Program) -> tuple[int, ...]:
    """The numbers of the arguments to differentiate; 0 if there are none."""
    kinds = [dtype_named(i.dtype) for i in program.inputs]
    return tuple(k for k, d in enumerate(kinds) if d.kind in "fV" or d.name == "bfloat16") or (0,)


def derivative(line: str) -> Form:
    """A call with `g`, the function of the arguments `xs` that have derivatives."""

    def form(program: Program, rng: np.random.Generator) -> Call:
        numbers = floating(program)
        head = f"(lambda g, xs: {line})(smooth(f, args, {numbers}), [args[k] for k in {numbers}])"
        return Call(head, arguments(program, rng))

    return form


def of_lanes(line: str) -> Form:
    """A call with `h(*lane)`, a number of all results, and `args` with lanes along axis 0."""

    def form(program: Program, rng: np.random.Generator) -> Call:
        numbers = floating(program)
        head = (
            f"(lambda h, k: {line})(lambda *a: total(smooth(f, a, {numbers}))(*[a[k] for k in {numbers}]), {numbers})"
        )
        return Call(head, [np.stack([i.draw(rng) for _ in range(LANES)]) for i in program.inputs])

    return form


def whole_jacobian(line: str) -> Form:
    """`line` where arguments are small, and a gradient elsewhere."""
    small, large = derivative(line), derivative("jax.grad(total(g), range(len(xs)))(*xs)")

    def form(program: Program, rng: np.random.Generator) -> Call:
        sizes = [int(np.prod(i.shape)) for i in program.inputs]
        return (small if sum(sizes) <= SMALL else large)(program, rng)

    return form


FORMS: dict[str, tuple[float, Form]] = {
    "eager": (4, plain("f(*args)")),
    "jit": (8, plain("jax.jit(f)(*args)")),
    "vmap": (4, lanes("{}(*args)")),
    "jit of vmap": (3, lanes("jax.jit({})(*args)")),
    "vmap of jit": (1, lanes("(lambda m: m(*args))({})".replace("(f,", "(jax.jit(f),"))),
    "vmap of vmap": (1.5, twice_mapped),
    "in a scan": (1.5, plain("lax.scan(lambda c, _: (c + 1, f(*args)), 0, None, length=2)[1]")),
    "checkpoint": (0.5, plain("jax.jit(jax.checkpoint(f))(*args)")),
    "grad": (3, derivative("jax.grad(total(g), range(len(xs)))(*xs)")),
    "jit of grad": (3, derivative("jax.jit(jax.grad(total(g), range(len(xs))))(*xs)")),
    "grad of jit": (2, derivative("jax.value_and_grad(jax.jit(total(g)), range(len(xs)))(*xs)")),
    "grad of checkpoint": (1.5, derivative("jax.grad(jax.checkpoint(total(g)), range(len(xs)))(*xs)")),
    "jvp": (2, derivative("jax.jvp(g, xs, along(xs))")),
    "jit of jvp": (1.5, derivative("jax.jit(lambda *xs: jax.jvp(g, xs, along(xs)))(*xs)")),
    "vjp": (2, derivative("(lambda y, pull: (y, pull(along(y))))(*jax.vjp(g, *xs))")),
    "linearize": (1.5, derivative("(lambda y, push: (y, push(*along(xs))))(*jax.linearize(g, *xs))")),
    "linearize of jit": (
        1,
        derivative("(lambda y, push: (y, jax.jit(push)(*along(xs))))(*jax.linearize(jax.jit(g), *xs))"),
    ),
    "jacfwd": (1, whole_jacobian("jax.jacfwd(g, range(len(xs)))(*xs)")),
    "jacrev": (1, whole_jacobian("jax.jit(jax.jacrev(g, range(len(xs))))(*xs)")),
    "hessian": (1.5, whole_jacobian("jax.hessian(total(g), range(len(xs)))(*xs)")),
    "forward over reverse": (1.5, derivative("jax.jvp(jax.grad(total(g), range(len(xs))), xs, along(xs))[1]")),
    "reverse over reverse": (
        1,
        derivative(
            "jax.grad(lambda *xs: sum(jnp.sum(d * d) for d in jax.grad(total(g), range(len(xs)))(*xs)), range(len(xs)))(*xs)"
        ),
    ),
    "reverse over forward": (
        1,
        derivative("jax.grad(lambda *xs: total(lambda *a: jax.jvp(g, a, along(a))[1])(*xs), range(len(xs)))(*xs)"),
    ),
    "vmap of grad": (2, of_lanes("jax.vmap(jax.grad(h, k))(*args)")),
    "jit of vmap of grad": (2, of_lanes("jax.jit(jax.vmap(jax.value_and_grad(h, k)))(*args)")),
    "grad of vmap": (1.5, of_lanes("jax.grad(lambda *a: jnp.sum(jax.vmap(h)(*a)), k)(*args)")),
    "vmap of jvp": (
        1,
        of_lanes(
            "jax.vmap(lambda *a: jax.jvp(lambda *b: h(*[dict(zip(k, b)).get(j, x) for j, x in enumerate(a)]), [a[j] for j in k], along([a[j] for j in k])))(*args)"
        ),
    ),
}
