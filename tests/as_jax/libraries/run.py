"""Examples of libraries written for JAX: jax's answers are stored, and rune has to give the same.

`<library>_examples.py`, and `<library>_examples_further.py` where one file would be long, has small
functions without arguments; each returns a tree of arrays and numbers. They import only `jax` and
the library, so they run alike in a process with jax and in one with rune's as_jax.

    python tests/as_jax/libraries/run.py store optax chex                       with jax installed
    python -m rune.as_jax tests/as_jax/libraries/run.py compare optax chex      with rune

Such a module may also have two tables by the names of functions: TOLERANCES, (rtol, reason) where
DEFAULT_RTOL is too narrow, and DIFFERENCES, the reason why rune answers differently.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np

HERE = Path(__file__).parent
DEFAULT_RTOL = 1e-4  # f32, and sums in another order
USAGE = "usage: run.py (store | compare) library..."


@dataclass(frozen=True)
class Outcome:
    """The outcome of one example; `message` is empty if rune answers as jax does."""

    library: str
    example: str
    message: str
    explanation: str


def examples(library: str) -> dict[str, Callable[[], Any]]:
    """The example functions of a library by their names, in the order of the file."""
    functions = {
        n: f
        for module in modules(library)
        for n, f in vars(module).items()
        if inspect.isfunction(f) and f.__module__ == module.__name__
    }
    return {name: function for name, function in functions.items() if not name.startswith("_")}


def modules(library: str) -> list[ModuleType]:
    """The modules with the examples of a library."""
    names = (f"{library}_examples", f"{library}_examples_further")
    return [load(name) for name in names if (HERE / f"{name}.py").exists()]


def table(library: str, name: str) -> dict[str, Any]:
    """A table of the modules of a library: TOLERANCES or DIFFERENCES."""
    return {example: row for module in modules(library) for example, row in getattr(module, name, {}).items()}


def load(name: str) -> ModuleType:
    """A module of examples by its name."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def leaves(result: Any) -> dict[str, np.ndarray]:
    """A tree of results as arrays by their paths."""
    flat, _ = jax.tree_util.tree_flatten_with_path(result)
    return {jax.tree_util.keystr(path): _as_numpy(leaf) for path, leaf in flat}


def _as_numpy(leaf: Any) -> np.ndarray:
    is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
    return array if array.dtype.kind in "biufcU" else array.astype(np.float32)  # bfloat16 and its like


def path_of(library: str) -> Path:
    return HERE / "stored" / f"{library}.npz"


def store(library: str) -> None:
    """Store the answers of this process's jax."""
    results: dict[str, dict[str, np.ndarray]] = {}
    for name, function in examples(library).items():
        try:
            results[name] = leaves(function())
        except Exception:
            print(f"in the example {name}:", file=sys.stderr)
            traceback.print_exc(limit=-2)
    assert results.keys() == examples(library).keys(), "nothing is stored"
    entries: dict[str, Any] = {f"{n}|{path}": array for n, flat in results.items() for path, array in flat.items()}
    np.savez_compressed(path_of(library), **entries)
    print(f"{library}: {len(results)} examples, {len(entries)} results, {path_of(library).stat().st_size} bytes")


def stored(library: str) -> dict[str, dict[str, np.ndarray]]:
    """jax's answer to each example of a library."""
    answers: dict[str, dict[str, np.ndarray]] = {}
    with np.load(path_of(library)) as file:
        for key in file.files:
            name, _, path = key.partition("|")
            answers.setdefault(name, {})[path] = file[key]
    return answers


def rtol_of(library: str, example: str) -> float:
    return table(library, "TOLERANCES").get(example, (DEFAULT_RTOL, ""))[0]


def difference(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], rtol: float) -> str:
    """Where results differ by more than `rtol` of the largest number of their array; or empty."""
    if actual.keys() != expected.keys():
        return f"results {sorted(actual)}, expected {sorted(expected)}"
    pairs = ((path, actual[path], expected[path]) for path in expected)
    return "; ".join(text for path, a, e in pairs if (text := _difference(path, a, e, rtol)))


def _difference(path: str, a: np.ndarray, e: np.ndarray, rtol: float) -> str:
    if a.shape != e.shape or a.dtype != e.dtype:
        return f"{path} is {a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}"
    if e.dtype.kind in "biuU":
        return "" if np.array_equal(a, e) else f"{path} is {_short(a)}, expected {_short(e)}"
    scale = np.max(np.abs(e), where=np.isfinite(e), initial=0.0)
    close = np.allclose(a, e, rtol=rtol, atol=rtol * scale, equal_nan=True)
    return "" if close else f"{path} is {_short(a)}, expected {_short(e)}"


def _short(array: np.ndarray) -> str:
    return np.array2string(array, threshold=6, edgeitems=2).replace("\n", "")


def compare(library: str) -> list[Outcome]:
    """Run every example of a library, and compare the answers with jax's."""
    expected, functions = stored(library), examples(library)
    assert expected.keys() == functions.keys(), f"{library}: store again, {expected.keys() ^ functions.keys()} differ"
    explanations = table(library, "DIFFERENCES")
    return [
        Outcome(library, n, _message(library, n, f, expected[n]), explanations.get(n, "")) for n, f in functions.items()
    ]


def _message(library: str, name: str, function: Callable[[], Any], expected: dict[str, np.ndarray]) -> str:
    try:
        return difference(leaves(function()), expected, rtol_of(library, name))
    except Exception as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def report(outcomes: list[Outcome]) -> str:
    """A line for each example that differs, and the count."""
    lines = [
        f"  {o.example}: {o.message}" + (f" ({o.explanation})" if o.explanation else "") for o in outcomes if o.message
    ]
    passes = sum(not o.message for o in outcomes)
    return "\n".join([*lines, f"{outcomes[0].library}: {passes} of {len(outcomes)} examples"])


def main(arguments: list[str]) -> None:
    match arguments:
        case ["store", *libraries] if libraries:
            for library in libraries:
                store(library)
        case ["compare", *libraries] if libraries:
            outcomes = {library: compare(library) for library in libraries}
            for library in libraries:
                print(report(outcomes[library]))
            sys.exit(any(o.message and not o.explanation for rows in outcomes.values() for o in rows))
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
