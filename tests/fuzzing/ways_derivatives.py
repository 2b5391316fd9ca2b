"""Derivatives of random smooth programs: compiled and not, against each other and differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from tests.fuzzing.compare import Difference, agree, rounding
from tests.fuzzing.program import Program

STEPS = (1e-4, 1e-5, 1e-6, 1e-7)  # of central differences; a kink may lie within some of them


def total(program: Program) -> Callable[..., Any]:
    """The program as a function with one number as its result."""
    function = program.function()

    def f(*args: Any) -> Any:
        numbers = (rnp.sum(rnp.sin(y + 0.3)) for y in function(*args) if y.dtype == np.float64)
        return sum(numbers, start=rnp.zeros((), np.float64))

    return f


def gradients(program: Program, seed: int) -> None:
    """grad of jit, jit of grad, grad, jvp and differences along a direction agree."""
    args, f = program.arguments(seed), total(program)
    rng = np.random.default_rng(seed)
    along = [rnp.asarray(rng.normal(size=x.shape), np.float64) for x in args]
    numbers = tuple(range(len(args)))
    with rune.enable_x64():
        reference = rune.grad(f, numbers)(*args)
        ways = {
            "jit(grad(f))": rune.jit(rune.grad(f, numbers))(*args),
            "grad(jit(f))": rune.grad(rune.jit(f), numbers)(*args),
        }
        slopes = {
            "jvp(f)": rune.jvp(f, tuple(args), tuple(along))[1],
            "jit(jvp(f))": rune.jit(lambda x, t: rune.jvp(f, x, t)[1])(tuple(args), tuple(along)),
        }
    for way, slopes_of_way in ways.items():
        for k, (x, y) in enumerate(zip(reference, slopes_of_way, strict=True)):
            agree(f"{way}, argument {k},", x, y, rounding([x.dtype.name]))
    slope = sum(float(np.vdot(g, t)) for g, t in zip(reference, along))
    for way, other in slopes.items():
        if abs(float(other) - slope) > 1e-8 * (1 + abs(slope)):
            raise Difference(f"{way} is {float(other)}, the gradient gives {slope}")
    _against_differences(f, args, along, slope)


def _against_differences(f: Any, args: list[Any], along: list[Any], slope: float) -> None:
    quotients = []
    with rune.enable_x64():
        for h in STEPS:
            ends = [f(*(x + s * h * t for x, t in zip(args, along))) for s in (1, -1)]
            quotients.append((float(ends[0]) - float(ends[1])) / (2 * h))
    apart = [abs(d - slope) for d in quotients]
    if min(apart) > 1e-4 * (1 + abs(slope)) and np.ptp(quotients) < 1e-2 * (1 + abs(slope)):
        raise Difference(f"the gradient gives {slope}, differences {quotients}")


def hessians(program: Program, seed: int) -> None:
    """Second derivatives along a direction: reverse and forward over reverse, and jitted."""
    args, f = program.arguments(seed)[:1], total(program.returning(program.results))
    others = program.arguments(seed)[1:]
    along = rnp.asarray(np.random.default_rng(seed).normal(size=args[0].shape), np.float64)

    def gradient(x: Any) -> Any:
        return rune.grad(lambda x: f(x, *others))(x)

    def both(gradient: Callable[..., Any]) -> tuple[Any, Any]:
        forward = rune.jvp(gradient, (args[0],), (along,))[1]
        return forward, rune.grad(lambda x: rnp.vdot(gradient(x), along))(args[0])

    with rune.enable_x64():
        eager, jitted_pair = both(gradient), both(rune.jit(gradient))
    agree("reverse over reverse (for forward over reverse)", eager[0], eager[1], rounding([eager[0].dtype.name]))
    for name, x, y in zip(("forward over reverse", "reverse over reverse"), eager, jitted_pair):
        agree(f"{name}, jitted,", x, y, rounding([x.dtype.name]))
