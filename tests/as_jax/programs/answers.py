"""Whole programs as strangers write them, and jax's answers to them.

The modules beside this one have functions without arguments; each returns a tree of arrays. They
import only `jax`, so they run alike in a process with jax and in one with rune's as_jax.

    python -m tests.as_jax.programs.answers store                      with jax 0.10.2 installed
    python -m rune.as_jax -m tests.as_jax.programs.answers compare     with rune

RUNE_DEVICE=opencl:0, say, compares the answers of another executor."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tests.as_jax.libraries.run import DEFAULT_RTOL, difference, leaves

ANSWERS = Path(__file__).parent / "jax_0_10_2.npz"
SUBJECTS = """
    algorithms alignments curves estimates fields learning machines matter models networks numerals orders
    pairings physics records sampling scenes sciences sequences signals solvers
    statistics structures systems tables training words
    """.split()
USAGE = "usage: answers.py (store | compare)"


def programs() -> dict[str, Callable[[], Any]]:
    """Every program by `subject.name`."""
    modules = {subject: import_module(f"tests.as_jax.programs.{subject}") for subject in SUBJECTS}
    return {
        f"{subject}.{name}": function
        for subject, module in modules.items()
        for name, function in vars(module).items()
        if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_")
    }


def answers() -> dict[str, dict[str, np.ndarray]]:
    """jax's answer to each program, by the paths of its results."""
    by_program: dict[str, dict[str, np.ndarray]] = {}
    with np.load(ANSWERS) as file:
        for key in file.files:
            program, _, path = key.partition("|")
            by_program.setdefault(program, {})[path] = file[key]
    return by_program


def store() -> None:
    """Store the answers of this process's jax."""
    results = {name: leaves(program()) for name, program in programs().items()}
    entries: dict[str, Any] = {f"{name}|{path}": x for name, flat in results.items() for path, x in flat.items()}
    np.savez_compressed(ANSWERS, **entries)
    print(f"{len(results)} programs, {len(entries)} results, {ANSWERS.stat().st_size} bytes")


def compare() -> bool:
    """Print the differences from jax's answers, by program. Returns whether there are none."""
    expected, is_same = answers(), True
    for name, program in programs().items():
        message = _deviation(program, expected[name])
        print(f"{name}: {message or 'as jax'}", flush=True)
        is_same &= not message
    return is_same


def _deviation(program: Callable[[], Any], expected: dict[str, np.ndarray]) -> str:
    """How results differ from jax's, or the error that ends the program; empty if they agree."""
    try:
        return difference(leaves(program()), expected, DEFAULT_RTOL)
    except Exception as error:  # of any kind: the programs after this one are compared, too
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main(arguments: list[str]) -> None:
    match arguments:
        case ["store"]:
            store()
        case ["compare"]:
            sys.exit(not compare())
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
