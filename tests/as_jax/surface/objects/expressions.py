"""Expressions whose answers are stored as text: objects, types, trees, programs and their parts.

The lines of objects.txt use JAX's names and the letters of ../functions/letters.py; longer code is
in functions that take the library, in the modules of PROGRAMS.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tests.as_jax.surface.functions.letters import first_lane, scope

FOLDER = Path(__file__).parent
PROGRAMS = ("settings", "classes", "rooms", "inside")
ANSWERS = FOLDER / "jax_0_10_2.json"
REFUSALS = FOLDER / "refused_0_10_2.json"
_MODULES = """
    example_libraries.optimizers example_libraries.stax experimental.checkify
    experimental.custom_partitioning experimental.jet experimental.layout experimental.sparse.linalg
    experimental.mesh_utils experimental.multihost_utils experimental.shard_map extend.backend
    monitoring distributed debug
    extend.core interpreters.ad interpreters.batching interpreters.partial_eval scipy.optimize
    extend.linear_util scipy.sparse.linalg
    ad_checkpoint api_util custom_batching custom_derivatives dlpack dtypes errors export flatten_util
    image profiler ref stages test_util
    """.split()


def lines() -> list[str]:
    """The expressions."""
    return (FOLDER / "objects.txt").read_text().splitlines()


def programs() -> dict[str, Callable[[Any], Any]]:
    """The functions that take the library, by name: `settings.defaults`."""
    modules = {name: import_module(f"{__package__}.{name}") for name in PROGRAMS}
    return {
        f"{name}.{key}": f
        for name, module in modules.items()
        for key, f in vars(module).items()
        if isinstance(f, FunctionType) and f.__module__ == module.__name__ and not key.startswith("_")
    }


def answers() -> dict[str, Any]:
    """The results of the lines and the programs, as text."""
    import_modules()
    jax = scope()["jax"]
    answers_of_lines = {line: plain_value(value(line)) for line in lines()}
    return answers_of_lines | {name: plain_value(program(jax)) for name, program in programs().items()}


def import_modules() -> None:
    """Import the modules that the expressions mention."""
    for module in _MODULES:
        import_module(f"jax.{module}")


def value(line: str) -> Any:
    """The value of an expression in the names of the imported jax."""
    import_modules()
    code = compile(line, line, "eval")
    letters = {name: first_lane(name) for name in _names(code)}
    names = scope() | {name: array for name, array in letters.items() if array is not None}
    return eval(code, names)


def refused_lines() -> list[str]:
    """The expressions that JAX refuses."""
    return (FOLDER / "refused.txt").read_text().splitlines()


def refusal(line: str) -> list[str]:
    """Python's classes of the error that a line raises, the nearest first; `nothing` for none."""
    try:
        value(line)
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"]
    return ["nothing"]


def _names(code: CodeType) -> set[str]:
    """Names that are read in an expression and in its functions."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def plain_value(x: Any) -> Any:
    """A value as numbers, texts, lists and dictionaries; other objects as they print."""
    if isinstance(x, np.integer):
        return int(x)
    if x is None or isinstance(x, bool | str | int):
        return x
    if isinstance(x, float | np.floating):
        return _rounded(float(x))
    if isinstance(x, bytes):
        return x.hex()
    if isinstance(x, slice):
        return f"{x.start}:{x.stop}:{x.step}"
    if isinstance(x, tuple | list):
        return [plain_value(v) for v in x]
    if isinstance(x, dict):
        return {str(k): plain_value(v) for k, v in x.items()}
    if isinstance(x, np.dtype):
        return str(x.name)
    if isinstance(x, type):
        return x.__name__
    return _array(x) if hasattr(x, "shape") and hasattr(x, "dtype") else str(x)


def _array(x: Any) -> Any:
    kind = f"{x.dtype.name}{[*x.shape]}"
    if not hasattr(x, "__array__"):
        return kind
    values = np.asarray(x)
    if values.dtype.kind in "bui":
        return [kind, values.tolist()]
    wide = values.astype(np.complex64 if values.dtype.kind == "c" else np.float32).view(np.float32)
    return [kind, [_rounded(float(v)) for v in wide.ravel()]] if values.dtype != jax_float0() else kind


def jax_float0() -> np.dtype:
    """The type of derivatives by integers."""
    return import_module("jax").float0


def _rounded(x: float) -> str:
    """A number with four digits, since the libraries round differently."""
    return f"{x:.4g}" if abs(x) > 1e-5 or x == 0 else f"{x:.1e}"
