"""Compares a random program with JAX: values within rounding, shapes, dtypes and weak types."""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.as_jax.random_programs import dialect
from tests.as_jax.random_programs.dialect import NAMES, Answer, Question, answer
from tests.as_jax.random_programs.draw import draw, has_wide_numbers, with_refusals
from tests.as_jax.random_programs.ways import FORMS, Form, plain, question
from tests.fuzzing.compare import Difference
from tests.fuzzing.program import Program, evaluate
from tests.fuzzing.ways import Way

SCRIPT = Path(dialect.__file__)
ROUNDING = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4, "float16": 6e-3, "bfloat16": 5e-2}
COARSE = re.compile(r"\b(bfloat16|float16)\b")
SECOND = re.compile(r"hessian|jvp\(jax\.grad|grad\(lambda")
DERIVATIVE = re.compile(r"smooth\(f|grad|jvp|vjp|linearize|jac|hessian")
# Functions for which JAX keeps or drops weak types only because of its implementation.
OTHERWISE = re.compile(
    r"rint|heaviside|hypot|power|gcd|lcm|gelu|nan_to_num|cross|choose|associative_scan|insert|convolve|i0|det|conv"
    r"|ediff1d|place|dynamic_update|logaddexp2|log2|log10|\*\*|spacing"
)
SPREAD = 30.0  # how often the change by a rounding of the arguments two answers may differ


@dataclass(frozen=True)
class Peer:
    """A process that runs an interpreter with jax."""

    python: str
    process: subprocess.Popen[bytes]

    def answer(self, query: Question) -> Answer:
        """jax's answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        pickle.dump((query.source, query.arguments, query.x64, query.is_eager), stdin)
        stdin.flush()
        return Answer(*pickle.load(stdout))


@contextmanager
def peer(python: str) -> Iterator[Peer]:
    """A process of an interpreter with jax, which ends with the block."""
    with subprocess.Popen(
        [python, "-W", "ignore", str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield Peer(python, process)
        assert process.stdin is not None
        process.stdin.close()


def ways(jax_process: Peer) -> tuple[Way, ...]:
    """The checks of a program: every way to call it, and the steps that rune refuses."""

    def beside(form: Form) -> Callable[[Program, int], None]:
        return lambda program, seed: compare(jax_process, program, seed, form)

    options = f"--jax {jax_process.python} "
    forms = tuple(Way(name, weight, draw, beside(form), options) for name, (weight, form) in FORMS.items())
    refusals = Way(
        "refusals", 2.0, with_refusals, lambda program, seed: refused_alike(jax_process, program, seed), options
    )
    return (*forms, refusals)


def compare(jax_process: Peer, program: Program, seed: int, form: Form) -> None:
    """Raise if rune answers differently from jax. If jax refuses, any answer is accepted."""
    query = question(program, seed, form)
    actual = answer(query)
    expected = jax_process.answer(replace(query, is_eager=bool(actual.error)))
    if not difference(expected, actual, query):
        return
    # XLA compiles a few programs wrongly, as a loop whose carry is shifted in place.
    eager = jax_process.answer(replace(query, is_eager=True))
    if message := difference(eager, actual, query):
        raise Difference(f"{message}\n\n{query.source}")


def refused_alike(jax_process: Peer, program: Program, seed: int) -> None:
    """Raise if jax answers a step that rune refuses outside of all transformations."""
    rng = np.random.default_rng(seed + 1)
    env = {i.name: jnp.asarray(i.draw(rng)) for i in program.inputs}
    for step in program.steps:
        try:
            with jax.enable_x64(has_wide_numbers(seed)):
                env |= evaluate(step, env, NAMES)
        except Exception:
            compare(jax_process, program.returning(step.names).needed(), seed, plain("f(*args)"))


# --- when two answers are one ---------------------------------------------------------------------


def difference(expected: Answer, actual: Answer, query: Question) -> str:
    """Where rune's answer differs from jax's; empty if jax refuses, or if they agree."""
    if expected.error:
        return ""
    if actual.error:
        return f"rune refuses what jax answers: {actual.error}"
    types, types_of_rune = _types(expected, query), _types(actual, query)
    if types != types_of_rune:
        return f"rune answers {types_of_rune}, jax {types}"
    if SECOND.search(query.source) and COARSE.search(str(types) + query.source):
        return ""  # second derivatives of halves have no digits
    wrong = [k for k, (e, a) in enumerate(zip(expected.values, actual.values)) if not _close(e, a, _rounding(e, query))]
    if wrong and not _is_chaotic(wrong, expected, actual, query):
        k = wrong[0]
        return f"result {k} is {_short(actual.values[k], expected.values[k])} for {_short(expected.values[k], actual.values[k])}"
    return ""


def _types(result: Answer, query: Question) -> list[str]:
    """Dtypes, shapes and weakness, except that of derivatives (docs/decisions/0089)."""
    weakness = not (DERIVATIVE.search(query.source) or OTHERWISE.search(query.source))
    return [
        f"{v.dtype.name}{list(v.shape)}{' weak' * (weak and weakness and v.dtype.kind != 'b')}"
        for v, weak in zip(result.values, result.weak)
    ]


def _rounding(value: np.ndarray, query: Question) -> float:
    """The tolerance: a value that passed through a half type is only as exact as that."""
    if value.dtype.name not in ROUNDING:
        return 0.0
    names = [value.dtype.name, *(a.dtype.name for a in query.arguments), *COARSE.findall(query.source)]
    coarse = [ROUNDING[n] for n in names if n in ("float16", "bfloat16")]
    return max([ROUNDING[value.dtype.name], *coarse, *(1e-4 for n in names if n in ("float32", "complex64"))])


def _wide(value: np.ndarray) -> np.ndarray:
    if value.dtype.kind in "biu":
        return value
    return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)


def _apart(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """The distance of each pair of elements; 0 where both are NaN, or one infinity."""
    e, a = _wide(expected), _wide(actual)
    if e.dtype.kind in "biu":
        return (e != a).astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.nan_to_num(np.abs(e - a), nan=np.inf, posinf=np.inf)
        return np.where((e == a) | ((e != e) & (a != a)), 0.0, apart)


def _close(expected: np.ndarray, actual: np.ndarray, relative: float) -> bool:
    size = np.abs(_wide(expected)).astype(np.float64) if expected.dtype.kind != "b" else np.zeros(expected.shape)
    scale = np.max(size, initial=0.1, where=np.isfinite(size))
    return bool((_apart(expected, actual) <= relative * scale).all())


def _is_chaotic(wrong: Sequence[int], expected: Answer, actual: Answer, query: Question) -> bool:
    """Whether a rounding of the arguments moves rune's own results by as much."""
    spread = [np.zeros(v.shape) for v in actual.values]
    for direction in (-1, 1):
        arguments = [_neighbour(a, direction, query) for a in query.arguments]
        other = answer(replace(query, arguments=arguments))
        if len(other.values) != len(actual.values):
            return False
        for k in wrong:
            if other.values[k].shape != spread[k].shape:
                return True
            spread[k] = np.maximum(spread[k], _apart(actual.values[k], other.values[k]))
    return all(np.max(_apart(expected.values[k], actual.values[k])) <= SPREAD * np.max(spread[k]) for k in wrong)


def _neighbour(value: np.ndarray, direction: int, query: Question) -> np.ndarray:
    """Numbers that differ by a rounding; by that of a half where the program has any."""
    if value.dtype.kind != "f" and value.dtype != ml_dtypes.bfloat16:
        return value
    halves = [
        n for n in ("bfloat16", "float16") if n in query.source or any(a.dtype.name == n for a in query.arguments)
    ]
    unit = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[halves[0]] if halves else 2.0**-23
    signs = np.where(np.arange(value.size) % 3 == 0, -1, 1).reshape(value.shape) * direction
    return (value.astype(np.float64) * (1 + signs * unit)).astype(value.dtype)


def _short(value: np.ndarray, other: np.ndarray) -> str:
    """The value, or the elements that differ most."""
    if value.size <= 8:
        return np.array2string(value).replace("\n", "")
    at = np.unravel_index(np.argmax(_apart(value, other)), value.shape)
    count = int((_apart(value, other) > 0).sum())
    return f"{value[at]} at {tuple(map(int, at))} ({count} of {value.size} elements differ)"
