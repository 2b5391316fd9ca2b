"""Compares programs with jax: where rune answers differently, and the lines that show it.

    python -m rune.as_jax -m tests.as_jax.hunt.beside PYTHON FIRST COUNT     an interpreter with jax

Each statement is run on jax's own bits, so that a difference is due to it alone; then the program
is compiled as a whole. Where answers differ by more than a few roundings, jax is asked again, in 64
bits and for arguments moved by a rounding: where jax's own answer is uncertain, nothing counts.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.as_jax.hunt.answers import Answered, Doubt, Leaf, apart, as_one, leaf, step_by_step, widest
from tests.as_jax.hunt.text import Program, Statement, bound

ROOT = Path(__file__).parents[3]
COARSE = re.compile(r"\b(bfloat16|float16|float32|complex64)\b")
IN_F32 = re.compile("dot_product_attention")  # its weights, also of f64 queries
EXACT = ("elementwise", "shapes", "indexing", "orders")  # kinds whose elements are computed alone
ROUNDINGS = {"special": 64.0}  # of each element
NORMWISE = 64.0  # roundings of the largest element
DOUBTS = 8.0  # how often jax's own error answers may lie apart
# What the guide lists (from-jax.md, "Where numbers differ"): patterns of a program's setting and
# lines, of words, why.
DELIBERATE = (
    ("", "the imaginary part would be lost", "no imaginary part is lost in silence"),
    # jit and checkpoint drop an unused tangent; jax asks custom_vjp for it only later.
    ("", "cannot apply forward-mode differentiation", "custom_vjp has no tangents"),
    ("rankdata|histogram|bincount|conv|poly|correlate|vander", "^type ", "integers stay integers, as in NumPy"),
    ("norm", "^(type|value) ", "a norm of integers is a float"),
    (r"median|percentile|quantile", "^type ", "a number has no axis"),
    (r"stats|special", "value .*(nan|inf)", "limits at infinities and poles are SciPy's"),
    ("ddof", "value .*(nan|inf)", "no degrees of freedom give what NumPy gives"),
    ("ldexp", "value", "denormals are numbers"),
    ("pad", "is empty", "nothing is extended, as in NumPy"),
    ("apply", "may name one element", "a function is applied to distinct elements"),
    ("", "(min|max): cannot take c64", "scatters order real numbers"),
    ("fft", "value .*(nan|inf)", "infinities spread in another order"),
    (r"\bput\(", "windows of 1 in 0", "nothing is put into an empty array, as in NumPy"),
    ("slogdet", "value nan", "the sign of a determinant that is NaN is NaN"),
    (r"cauchy\.log(sf|cdf)", "^value", "the far tails keep their digits"),
    # jax transposes the dropped cotangent of a clamped element to the element itself.
    (r"(?s)100\]\).*vjp.*vjp", "^value", "a clamped element has no cotangent, in any order"),
    ("view|bitcast", "nan", "the sign of a NaN is open"),
    ("x64=True|int64|float64|complex128", "no (f64|i64|u64|c128) on ", "a device refuses types that it lacks"),
    (r"arctan2\(|atan2\(", "^refused with DtypeError: atan2: cannot take c", "angles are of real numbers"),
    # jax drops unused results before they would fail.
    ("cumlogsumexp", "cannot take [iu][0-9]", "neither does jax take them, where they are computed"),
)
# Functions that keep or drop weakness in JAX for reasons of its implementation alone.
WEAKNESS = re.compile(
    r"stats|rint|heaviside|hypot|power|gcd|lcm|gelu|nan_to_num|cross|choose|associative_scan|insert|convolve|i0|det"
    r"|ediff1d|place|dynamic_update|logaddexp2|log2|log10|\*\*|spacing|conv|_leaves"
)
FAST = "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


@dataclass(frozen=True, slots=True)
class Difference:
    """A name of a program whose value differs, the smallest program that shows it, and how."""

    program: Program
    name: str
    way: str
    message: str
    expected: Leaf
    actual: Leaf | None = None

    @property
    def is_of_values(self) -> bool:
        """Whether only numbers differ, so that rounding may be the reason."""
        return self.actual is not None and self.message.startswith("value")

    @property
    def is_deliberate(self) -> bool:
        """Whether the guide lists it."""
        texts = [f"x64={self.program.x64}", *(s.text for s in self.program.statements)]
        text = "\n".join(texts)
        return any(re.search(line, text) and re.search(words, self.message) for line, words, _ in DELIBERATE)

    def __str__(self) -> str:
        inputs = [f"#   {n}: {x.dtype.name}{list(x.shape)} {_some(x)}" for n, x in self.program.arguments.items()]
        head = f"# seed {self.program.seed}, {self.name} {self.way}: {self.message}"
        return "\n".join([head, f"#   x64={self.program.x64}", *inputs, self.program.source(), ""])


def differences(answer: Answered, share: float = 1.0) -> list[Difference]:
    """Where this process answers differently, one statement at a time and as a whole.

    share: of the tolerance, as where answers are stored for other processors.
    """
    single = list(_single(answer, share))
    wrong = {d.name for d in single}
    of_program = [d for d in _differences_of_program(answer, share) if not wrong & _behind(answer.program, d.name)]
    of_program = [d for d in of_program if d.actual is not None or not any(e.actual is None for e in single)]
    return [d for d in single + of_program if not d.is_deliberate]


def _single(answer: Answered, share: float) -> Iterator[Difference]:
    program = answer.program
    with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(program.x64):
        warnings.simplefilter("ignore")
        values: dict[str, Any] = {name: jnp.asarray(x) for name, x in program.arguments.items()}
        for statement in program.statements:
            try:
                actual = bound(statement, values)
            except Exception as error:
                name = statement.names[0]
                yield Difference(_alone(answer, statement), name, "step by step", _refusal(error), answer.leaves[name])
                values |= {n: jnp.asarray(answer.leaves[n].bits) for n in statement.names}
                continue
            for name, value in actual.items():
                expected, reply = answer.leaves[name], leaf(value)
                if message := difference(expected, reply, statement, coarsest(program, statement), share):
                    yield Difference(_alone(answer, statement), name, "step by step", message, expected, reply)
                values[name] = value if expected.weak and reply.weak else jnp.asarray(expected.bits)


def _differences_of_program(answer: Answered, share: float) -> Iterator[Difference]:
    try:
        actual = as_one(answer.program)
    except Exception as error:
        name = answer.program.results[-1]
        yield Difference(answer.program, name, "compiled", _refusal(error), answer.leaves[name])
        return
    values: dict[str, Any] = {**answer.program.arguments, **{n: reply.bits for n, reply in actual.items()}}
    for statement in answer.program.statements:
        for name in statement.names:
            expected, reply = answer.leaves[name], actual[name]
            message = difference(expected, reply, statement, coarsest(answer.program, statement), share)
            if message and not _inherited(answer.program, statement, name, values, reply):
                program = _closure(answer.program, name)
                yield Difference(program, name, "compiled", message, expected, reply)


def _inherited(program: Program, statement: Statement, name: str, values: Mapping[str, Any], reply: Leaf) -> bool:
    """Whether the statement alone gives this value for the operands that were computed with it."""
    types = reply.bits.dtype, reply.bits.shape
    alone = Program(program.seed, {n: values[n] for n in statement.operands}, (statement,), program.x64)
    repetition = step_by_step(alone, alone.arguments)[name].bits
    expected = Leaf(repetition, reply.weak)
    return types == (repetition.dtype, repetition.shape) and not difference(
        expected, reply, statement, coarsest(alone, statement)
    )


def _behind(program: Program, name: str) -> set[str]:
    names = {name}
    for s in reversed(program.statements):
        if names & set(s.names):
            names |= set(s.operands)
    return names


def _closure(program: Program, name: str) -> Program:
    names = _behind(program, name)
    statements = tuple(s for s in program.statements if names & set(s.names))
    arguments = {n: x for n, x in program.arguments.items() if n in names}
    return Program(program.seed, arguments, statements, program.x64)


def _alone(answer: Answered, statement: Statement) -> Program:
    """One statement as a program whose arguments are what it reads."""
    program = answer.program
    known = {**program.arguments, **{n: x.bits for n, x in answer.leaves.items()}}
    arguments = {n: known[n] for n in statement.operands if n in known}
    return Program(program.seed, arguments, (statement,), program.x64)


def _refusal(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"refused with {type(error).__name__}: {str(error)[:600]} ({Path(frame.filename).name}:{frame.lineno})"


# --- when two answers are one ---------------------------------------------------------------------


def difference(expected: Leaf, actual: Leaf, statement: Statement, unit: float, share: float = 1.0) -> str:
    """Where an answer differs from jax's by more than a few roundings; empty if it does not.

    unit: the coarsest rounding of the program. share: of the tolerance.
    """
    e, a = expected.bits, actual.bits
    has_weakness = e.dtype.kind != "b" and not WEAKNESS.search(statement.text)
    types = f"{a.dtype.name}{list(a.shape)}{' weak' * (actual.weak and has_weakness)}"
    types_of_jax = f"{e.dtype.name}{list(e.shape)}{' weak' * (expected.weak and has_weakness)}"
    if types != types_of_jax:
        return f"type {types} for {types_of_jax}"
    wrong = apart(e, a) > share * tolerance(e, statement.kind, unit)
    return _report(e, a, wrong) if wrong.any() else ""


def coarsest(program: Program, statement: Statement) -> float:
    """The rounding of the coarsest dtype that a statement may have met."""
    names = [x.dtype.name for x in program.arguments.values()] + COARSE.findall(statement.text)
    names += ["float32"] * bool(IN_F32.search(statement.text))
    units = [float(ml_dtypes.finfo(n).eps) for n in names if n[0] in "fbc" and n != "bool"]
    return max(units, default=2.0**-52 if program.x64 else 2.0**-23)


def tolerance(expected: np.ndarray, kind: str, unit: float) -> np.ndarray:
    """How far each element may be from the expected one."""
    if expected.dtype.kind in "biu":
        return np.zeros(expected.shape)
    unit = max(unit, float(ml_dtypes.finfo(expected.dtype).eps))
    size = np.abs(widest(expected))
    size = np.where(np.isfinite(size), size, 0.0)
    if kind in EXACT or kind in ROUNDINGS:
        return np.asarray(size * unit * ROUNDINGS.get(kind, 8.0))
    return np.broadcast_to(np.max(size, initial=0.0) * unit * NORMWISE, expected.shape)


def _report(e: np.ndarray, a: np.ndarray, wrong: np.ndarray) -> str:
    worst = np.unravel_index(np.argmax(np.where(wrong, apart(e, a), -1.0)), e.shape)
    return f"value {a[worst]} for {e[worst]} at {tuple(map(int, worst))}, {int(wrong.sum())} of {e.size}"


def _some(x: np.ndarray) -> str:
    return np.array2string(x.ravel()[:8], threshold=8).replace("\n", "")


# --- doubts ---------------------------------------------------------------------------------------


def certain(python: str, candidates: Sequence[Difference]) -> list[Difference]:
    """Those differences that jax's own rounding does not explain."""
    values = [d for d in candidates if d.is_of_values]
    doubts = dict(zip(map(id, values), _doubts(python, values), strict=True))
    return [d for d in candidates if id(d) not in doubts or not _explained(d, doubts[id(d)])]


def _explained(d: Difference, doubt: Doubt) -> bool:
    assert d.actual is not None
    statement = d.program.statements[-1]
    if doubt.alone is not None and not difference(doubt.alone, d.actual, statement, coarsest(d.program, statement)):
        return True
    distance = apart(d.expected.bits, d.actual.bits)
    spread = 0.0 if doubt.spread is None else np.max(doubt.spread, initial=0.0)
    error = 0.0 if doubt.error is None else np.max(doubt.error, initial=0.0)
    size = np.abs(widest(d.expected.bits))
    size = np.max(np.where(np.isfinite(size), size, 0.0), initial=0.0)
    if not np.isfinite(spread) or (d.expected.bits.dtype.kind in "biu" and spread):
        return True
    if doubt.overflows is not None:  # a partial result did, and the order decides what is left
        distance = np.where(doubt.overflows, 0.0, distance)
    error = error if error <= 0.02 * size else 0.0  # further apart, the wide text means something else
    return bool(np.all(distance <= DOUBTS * (spread + error)))


def report(differences_of_programs: Sequence[Difference]) -> str:
    """The lines that show differences."""
    return "\n".join(map(str, differences_of_programs))


def _doubts(python: str, values: Sequence[Difference]) -> list[Doubt]:
    if not values:
        return []
    with tempfile.NamedTemporaryFile() as file:
        pickle.dump([(d.program, d.name, d.expected) for d in values], file)
        file.flush()
        _run(python, "doubt", file.name)
        return pickle.loads(Path(file.name).read_bytes())


def drawn_by(python: str, first: int, count: int) -> list[Answered]:
    """Programs of seeds with jax's answers, from a process with jax."""
    with tempfile.NamedTemporaryFile() as file:
        _run(python, "draw", str(first), str(count), file.name)
        return pickle.loads(Path(file.name).read_bytes())


def _run(python: str, *words: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": FAST, "JAX_PLATFORMS": "cpu"}
    subprocess.run([python, "-W", "ignore", "-m", "tests.as_jax.hunt.serve", *words], env=environment, check=True)


def hunt(python: str, first: int, count: int, tell: Callable[[object], None] = print) -> list[Difference]:
    """Compare the programs of these seeds with jax, and report each difference."""
    answers_of_jax = drawn_by(python, first, count)
    certain_differences = certain(python, [d for a in answers_of_jax for d in differences(a)])
    for d in certain_differences:
        tell(d)
    statements = sum(len(a.program.statements) for a in answers_of_jax)
    tell(f"{len(answers_of_jax)} programs, {statements} statements, {len(certain_differences)} differences")
    return certain_differences


def main(arguments: Sequence[str]) -> None:
    python, first, count = arguments
    sys.exit(bool(hunt(python, int(first), int(count))))


if __name__ == "__main__":
    main(sys.argv[1:])
