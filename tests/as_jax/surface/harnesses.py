"""Run the harnesses of JAX's primitives on rune.as_jax. A tool, run by hand:

python tests/as_jax/surface/harnesses.py FILE [N]       with JAX and absl: store answers to 1 in N
python -m tests.as_jax.surface.harnesses FILE [name]    compare rune's answers; print differences

A harness is a call of a primitive with its arguments; JAX has some 7,500. Each is compiled under
x64: as it is, with tangents, with cotangents, and in lanes of one argument. The harnesses are
JAX's, and stay in FILE, which is read by pickle: trust it as you trust who wrote it.
"""

from __future__ import annotations

import hashlib
import pickle
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

DEFAULT_SHARE = 6  # one harness in so many
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-11,
    "complex128": 1e-11,
}
_SPREAD = 0.1  # of the largest number of a result: its smaller ones have that much of its tolerance
_MODES = {"FILL_OR_DROP": "fill", "PROMISE_IN_BOUNDS": "promise_in_bounds", "CLIP": "clip"}  # as rune prints them
Answer = tuple[str, Any]  # ("arrays", list) or ("error", text)


class Entry(NamedTuple):
    """A harness's arguments, which of them are arrays that a program takes, and JAX's answers."""

    arguments: list[Any]
    dynamic: list[int]
    answers: dict[str, Answer]


def number_of(name: str) -> int:
    """A number that depends on the name alone."""
    return int(hashlib.md5(name.encode()).hexdigest(), 16)


def plain(name: str) -> str:
    """A name without punctuation, and modes as rune prints them."""
    for mode, text in _MODES.items():
        name = re.sub(f"GatherScatterMode[._]{mode}", text, name)
    return re.sub(r"[^A-Za-z0-9]+", "_", name)


# --- the ways to call -------------------------------------------------------------------------


class Ways:
    """One function, called in each way; arrays are drawn by a seed."""

    def __init__(self, function: Callable[..., Any], arguments: list[Any], seed: int):
        self.jax = import_module("jax")
        self.jnp = import_module("jax.numpy")
        self.function, self.arguments, self.seed = function, arguments, seed
        self.floats = [i for i, x in enumerate(arguments) if self._is_inexact(x)]

    def answers(self) -> dict[str, Answer]:
        """The answer to each way that there is."""
        ways = {"value": self.value}
        if self.floats:
            ways |= {"tangents": self.tangents, "cotangents": self.cotangents}
        if self._arrays():
            ways["lanes"] = self.lanes
        return {name: answer(way) for name, way in ways.items()}

    def value(self) -> Any:
        """The function as it is."""
        return self.jax.jit(self.function)(*self.arguments)

    def tangents(self) -> Any:
        """The tangents of its inexact results."""
        primals = [self.arguments[i] for i in self.floats]
        program = self.jax.jit(lambda x, t: self.jax.jvp(self._inexact_results, tuple(x), tuple(t))[1])
        return program(primals, self._like(primals, self.seed))

    def cotangents(self) -> Any:
        """The cotangents of its inexact arguments."""

        def back(primals: list[Any]) -> Any:
            results, pull = self.jax.vjp(self._inexact_results, *primals)
            return pull(self._like(results, self.seed + 1))

        return self.jax.jit(back)([self.arguments[i] for i in self.floats])

    def lanes(self) -> Any:
        """Three lanes along an axis of one argument."""
        at = self._arrays()[self.seed % len(self._arrays())]
        x = np.asarray(self.arguments[at])
        axis = self.seed % (x.ndim + 1)
        rows = np.moveaxis(np.stack([x, x[..., ::-1] if x.ndim else x, np.roll(x, 1)]), 0, axis)

        def lane(row: Any) -> Any:
            return self.function(*[row if i == at else v for i, v in enumerate(self.arguments)])

        return self.jax.jit(self.jax.vmap(lane, in_axes=axis))(self.jnp.asarray(rows))

    def _is_inexact(self, x: Any) -> bool:
        return hasattr(x, "dtype") and self.jnp.issubdtype(x.dtype, self.jnp.inexact)

    def _arrays(self) -> list[int]:
        return [i for i, x in enumerate(self.arguments) if hasattr(x, "dtype") and "key" not in str(x.dtype)]

    def _inexact_results(self, *primals: Any) -> list[Any]:
        places = dict(zip(self.floats, primals, strict=True))
        results = self.function(*[places.get(i, x) for i, x in enumerate(self.arguments)])
        return [r for r in self.jax.tree.leaves(results) if self._is_inexact(r)]

    def _like(self, arrays: list[Any], seed: int) -> list[Any]:
        """Numbers from 0.5 to 1.5 in these shapes and dtypes."""
        rng = np.random.RandomState(seed)

        def one(x: Any) -> Any:
            numbers = np.asarray(rng.uniform(0.5, 1.5, x.shape))
            if self.jnp.issubdtype(x.dtype, self.jnp.complexfloating):
                numbers = numbers + 1j * rng.uniform(0.5, 1.5, x.shape)
            return self.jnp.asarray(numbers.astype(x.dtype))

        return [one(x) for x in arrays]


def answer(way: Callable[[], Any]) -> Answer:
    """The arrays that a way gives, or its error."""
    tree = import_module("jax").tree
    try:
        return "arrays", [as_numpy(x) for x in tree.leaves(way()) if "float0" not in str(getattr(x, "dtype", ""))]
    except Exception as error:
        return "error", f"{type(error).__name__}: {str(error).splitlines()[0]}"


def as_numpy(x: Any) -> np.ndarray:
    """An array, or the words of a key."""
    is_key = "key" in str(getattr(x, "dtype", ""))
    return np.asarray(import_module("jax").random.key_data(x) if is_key else x)


# --- JAX --------------------------------------------------------------------------------------


def store(path: Path, share: int) -> None:
    """Write the text of the harnesses, and JAX's answers to one in `share`."""
    import_module("jax").config.update("jax_enable_x64", True)
    module: Any = import_module("jax._src.internal_test_util.test_harnesses")
    chosen = [h for h in module.all_harnesses if number_of(h.fullname) % share == 0]
    entries = {h.fullname: entry for h in chosen if (entry := _entry(h, module.StaticArg)) is not None}
    path.write_bytes(pickle.dumps((Path(module.__file__).read_text(), entries)))
    print(len(entries), "of", len(module.all_harnesses), "harnesses")


def _entry(harness: Any, static: type) -> Entry | None:
    """The entry of a harness; None if its arguments cannot be stored."""
    arguments = harness.args_maker(np.random.RandomState(number_of(harness.fullname) % 2**32))
    dynamic = [i for i, a in enumerate(harness.arg_descriptors) if not isinstance(a, static)]
    ways = Ways(harness.dyn_fun, [arguments[i] for i in dynamic], number_of(harness.fullname) % 7)
    entry = Entry([as_numpy(a) if hasattr(a, "dtype") else a for a in arguments], dynamic, ways.answers())
    try:
        pickle.dumps(entry)
    except (pickle.PicklingError, AttributeError, TypeError):
        return None
    return entry


# --- rune -------------------------------------------------------------------------------------


def compare(path: Path, parts: list[str]) -> None:
    """Print the ways whose answers differ, and counts."""
    import_module("jax").config.update("jax_enable_x64", True)
    scope = import_module("tests.as_jax.surface.harness_scope")
    source, entries = pickle.loads(path.read_bytes())
    harnesses = {plain(h.fullname): h for h in scope.harnesses_of(source)}
    counts: Counter[str] = Counter()
    for name, entry in entries.items():
        harness = harnesses.get(plain(name))
        if harness is not None and (not parts or any(part in name for part in parts)):
            counts += Counter(harnesses=1)
            for way, is_same, text in _differences(harness, entry, number_of(name) % 7):
                counts += Counter(ways=1, same=int(is_same))
                if not is_same:
                    print(f"{name}, {way}: {text}", flush=True)
    print(f"{counts['harnesses']} of {len(entries)} harnesses, {counts['same']} of {counts['ways']} ways")


def _differences(harness: Any, entry: Entry, seed: int) -> Iterator[tuple[str, bool, str]]:
    """For each way whether the answers agree, and how they differ."""
    jnp = import_module("jax.numpy")
    arguments = [
        jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in (entry.arguments[i] for i in entry.dynamic)
    ]
    ours = Ways(harness.dyn_fun, arguments, seed).answers()
    for way, reference in entry.answers.items():
        text = difference(reference, ours.get(way, ("error", "no such way")))
        yield way, not text, text


def difference(reference: Answer, ours: Answer) -> str:
    """How two answers differ; empty if they agree."""
    if "error" in (reference[0], ours[0]):
        return "" if reference[0] == ours[0] else f"jax {_short(reference)}, rune {_short(ours)}"
    if len(reference[1]) != len(ours[1]):
        return f"{len(reference[1])} and {len(ours[1])} arrays"
    return "; ".join(text for x, y in zip(reference[1], ours[1], strict=True) if (text := _of_arrays(x, y)))


def _short(answer: Answer) -> str:
    return f"refuses ({answer[1][:200]})" if answer[0] == "error" else "answers"


def _of_arrays(x: np.ndarray, y: np.ndarray) -> str:
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return f"jax {x.dtype}{list(x.shape)}, rune {y.dtype}{list(y.shape)}"
    same = _agree(x, y)
    if same.all():
        return ""
    at = int(np.argmin(same))
    return f"{np.sum(~same)} of {x.size} elements, jax {x.ravel()[at]!r}, rune {y.ravel()[at]!r}"


def _agree(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which elements agree."""
    if x.dtype.name not in TOLERANCE:
        return x == y
    with np.errstate(all="ignore"):
        tolerance = TOLERANCE[x.dtype.name]
        x, y = x.astype(np.complex128), y.astype(np.complex128)
        most = np.max(np.abs(x), initial=0.0, where=np.isfinite(x))
        is_near = np.abs(x - y) <= tolerance * (np.abs(x) + _SPREAD * most)
        return is_near | (x == y) | (np.isnan(x) & np.isnan(y))


def main() -> None:
    """Store the answers if this is JAX; otherwise compare them."""
    warnings.simplefilter("ignore")
    path, options = Path(sys.argv[1]), sys.argv[2:]
    if __package__:
        import_module("rune.as_jax")
        compare(path, options)
    else:
        store(path, int(options[0]) if options else DEFAULT_SHARE)


if __name__ == "__main__":
    main()
