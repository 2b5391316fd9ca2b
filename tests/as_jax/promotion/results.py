"""The dtypes and weakness of the results of whole modules, for an argument of every dtype.

    python -m tests.as_jax.promotion.results      with jax 0.10.2 installed: writes its answers

results.txt has the calls, with the argument `x`: an array [4,4] of each dtype, a weak one, or a
Python number. results_jax_0_10_2.txt has their results, with 64 bits as the default and without:
under calls with the same answers, a line for each width, `on: float32*=float int*, ...` for "weak
float32, of a Python float and of a weak integer". Calls that JAX refuses have no entry.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy
from jax import lax

HERE = Path(__file__).parent
CALLS = (HERE / "results.txt").read_text().splitlines()
ANSWERS = HERE / "results_jax_0_10_2.txt"
NARROW = "bool int8 int16 int32 uint8 uint16 uint32 bfloat16 float16 float32 complex64".split()
WIDE = "int64 uint64 float64 complex128".split()
NUMBERS: dict[str, Any] = {"True": True, "int": 1, "float": 0.5, "complex": 0.5j}
WEAK: dict[str, Any] = {"int*": 1, "float*": 0.5, "complex*": 0.5j}
NAMES = {
    "jax": jax,
    "jnp": jnp,
    "lax": lax,
    "nn": jax.nn,
    "image": jax.image,
    "special": jax.scipy.special,
    "stats": jax.scipy.stats,
    "sl": jax.scipy.linalg,
    "signal": jax.scipy.signal,
}


def operands(is_wide: bool) -> list[str]:
    """The names of the arguments, with those of 64 bits if they are the default."""
    return [*NARROW, *(WIDE if is_wide else ()), *WEAK, *NUMBERS]


def result(function: Any, operand: str) -> str | None:
    """The dtypes of the results; None if the argument is refused."""
    try:
        if operand in NUMBERS:
            out = jax.eval_shape(lambda: function(NUMBERS[operand]))
        elif operand in WEAK:
            weak = jnp.asarray(WEAK[operand])
            out = jax.eval_shape(function, jnp.broadcast_to(weak, (4, 4)))
        else:
            out = jax.eval_shape(function, jax.ShapeDtypeStruct((4, 4), operand))
    except Exception:
        return None
    return ",".join(f"{leaf.dtype}{'*' if leaf.weak_type else ''}" for leaf in jax.tree.leaves(out))


def answers(call: str) -> tuple[str, str]:
    """The operands of a call by its results, without and with 64 bits."""
    return tuple(f"{'on' if w else 'off'}: {_of_width(call, w)}" for w in (False, True))  # pyright: ignore


def _of_width(call: str, is_wide: bool) -> str:
    groups: dict[str, list[str]] = {}
    with jax.enable_x64(is_wide):
        function = eval(f"lambda x: {call}", NAMES)
        for operand in operands(is_wide):
            dtypes = result(function, operand)
            if dtypes is not None:
                groups.setdefault(dtypes, []).append(operand)
    return "; ".join(f"{dtypes}={' '.join(names)}" for dtypes, names in groups.items())


def stored() -> Iterator[tuple[str, bool, str, str]]:
    """Each call, whether 64 bits are the default, the operand, and the dtypes of the results."""
    for block in ANSWERS.read_text().split("\n\n"):
        *calls, off, on = block.splitlines()
        for is_wide, line in ((False, off), (True, on)):
            groups = line.partition(": ")[2]
            for dtypes, _, names in (group.partition("=") for group in groups.split("; ") if group):
                yield from ((call, is_wide, name, dtypes) for call in calls for name in names.split())


def main() -> None:
    """Write the answers."""
    warnings.simplefilter("ignore")
    blocks: dict[tuple[str, str], list[str]] = {}
    for number, call in enumerate(CALLS):
        blocks.setdefault(answers(call), []).append(call)
        if number % 50 == 49:
            jax.clear_caches()
    ANSWERS.write_text("\n\n".join("\n".join((*calls, *lines)) for lines, calls in blocks.items()) + "\n")


if __name__ == "__main__":
    main()
