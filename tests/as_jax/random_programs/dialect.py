"""The names that a random program may use, and the answer of this process's `jax` to one.

This file imports only `jax`, so that jax and as_jax run it alike. As a script it is a server: it
reads questions from its input and writes answers, both pickled.
"""

from __future__ import annotations

import pickle
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Question:
    """Lines of Python that define `run`, its arguments, and whether 64 bits are the default."""

    source: str
    arguments: Sequence[np.ndarray]
    x64: bool
    is_eager: bool = False  # outside of any transformation that the source does not ask for


@dataclass(frozen=True)
class Answer:
    """The leaves of the results and which of them are weak, or the words of an error."""

    values: Sequence[np.ndarray] = ()
    weak: Sequence[bool] = ()
    error: str = ""


# --- what programs may call -----------------------------------------------------------------------


def with_jvp(f: Callable[..., Any], rule: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function with this derivative."""
    g = jax.custom_jvp(f, **options)
    g.defjvp(rule)
    return g


def with_vjp(f: Callable[..., Any], forward: Any, backward: Any, **options: Any) -> Callable[..., Any]:
    """The function with this forward and this backward rule."""
    g = jax.custom_vjp(f, **options)
    g.defvjp(forward, backward)
    return g


def along(tree: Any) -> Any:
    """A tangent or cotangent for each leaf; no two elements are equal."""
    return jax.tree.map(_direction, tree)


def _direction(x: Any) -> Any:
    eighths = (jnp.arange(x.size) * 7 % 11 - 4.5) / 4
    return eighths.reshape(x.shape).astype(x.dtype)


def smooth(f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int]) -> Callable[..., Any]:
    """The function of these arguments alone, with the results that have derivatives."""

    def g(*xs: Any) -> list[Any]:
        values = [*args]
        for k, x in zip(argnums, xs):
            values[k] = x
        return [y for y in jax.tree.leaves(f(*values)) if jnp.issubdtype(y.dtype, jnp.inexact)]

    return g


def total(g: Callable[..., Any]) -> Callable[..., Any]:
    """A real number that depends on all results."""

    def h(*xs: Any) -> Any:
        parts = (p for y in g(*xs) for p in ((y.real, y.imag) if jnp.iscomplexobj(y) else (y,)))
        return sum((jnp.sum(jnp.sin(p.astype(float) + 0.3)) for p in parts), start=jnp.zeros((), float))

    return h


NAMES: Mapping[str, Any] = {
    "jax": jax,
    "jnp": jnp,
    "lax": lax,
    "np": np,
    "with_jvp": with_jvp,
    "with_vjp": with_vjp,
    "along": along,
    "smooth": smooth,
    "total": total,
}


# --- answers --------------------------------------------------------------------------------------


def answer(question: Question, wrap: Callable[..., Any] = lambda run: run) -> Answer:
    """The result of the question's program; `wrap` is applied to all of it."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(question.x64):
            warnings.simplefilter("ignore")
            namespace = {**NAMES}
            exec(question.source, namespace)
            leaves = jax.tree.leaves(wrap(namespace["run"])(*map(jnp.asarray, question.arguments)))
            return Answer([_as_numpy(y) for y in leaves], [is_weak(y) for y in leaves])
    except Exception as error:
        return Answer(error=f"{type(error).__name__}: {error}"[:2000] + _place(error))


def answer_quickly(question: Question) -> Answer:
    """The same as one compiled program, which is cheaper than operations one by one; eagerly if
    that is asked for, or if values decide what the program is."""
    quick = Answer(error="eager") if question.is_eager else answer(question, jax.jit)
    return answer(question) if quick.error else quick


def is_weak(value: Any) -> bool:
    """Whether the value is an array of a weak dtype."""
    return bool(getattr(value, "weak_type", False))


def _as_numpy(value: Any) -> np.ndarray:
    is_key = hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
    array = np.array(jax.random.key_data(value) if is_key else value)
    return np.zeros(array.shape, bool) if array.dtype == jax.dtypes.float0 else array


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"\n    at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def serve() -> None:
    """Answer questions until there are no more."""
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            query = Question(*pickle.load(questions))
        except EOFError:
            return
        reply = answer_quickly(query)
        pickle.dump((reply.values, reply.weak, reply.error), answers)
        answers.flush()


if __name__ == "__main__":
    serve()
