"""The answer of a library to a call: arrays with dtypes and weak types, or an error's class.

Answers are stored as one file of arrays and one JSON text that says which arrays belong to which
call; dtypes that NumPy lacks are stored as their bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of an answer."""

    value: np.ndarray
    weak: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """The arrays that a call gives, or the name of the class of its error."""

    leaves: tuple[Leaf, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Library:
    """JAX or rune: the functions that the ways of calling need."""

    array: Callable[[Any], Any]
    leaves: Callable[[Any], Sequence[Any]]
    jvp: Callable[..., Any]
    vjp: Callable[..., Any]
    is_weak: Callable[[Any], bool]


def answer(library: Library, run: Callable[[], Any]) -> Answer:
    """The answer to the call."""
    try:
        leaves = library.leaves(run())
        return Answer(tuple(Leaf(np.asarray(x), library.is_weak(x)) for x in leaves))
    except Exception as error:
        return Answer(error=type(error).__name__)


def weights(x: Any) -> np.ndarray:
    """Tangents or cotangents of the shape and dtype of x; no two neighbours are equal."""
    return np.cos(np.arange(np.size(x)) + 0.5).reshape(np.shape(x)).astype(x.dtype)


def _is_inexact(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and (dtype.kind in "fc" or dtype == ml_dtypes.bfloat16)


def value(library: Library, call: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The call's own results."""
    return call(*map(library.array, operands))


def tangents(library: Library, call: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The tangents of the inexact results along `weights` of the inexact operands."""
    function, primals = _inexact_function(library, call, operands)
    return library.jvp(function, primals, tuple(library.array(weights(x)) for x in primals))[1]


def cotangents(library: Library, call: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The cotangents of the inexact operands for `weights` of the inexact results."""
    function, primals = _inexact_function(library, call, operands)
    results, pullback = library.vjp(function, *primals)
    return pullback([library.array(weights(x)) for x in results])


def _inexact_function(
    library: Library, call: Callable[..., Any], operands: Sequence[Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call as a function from its inexact operands to its inexact results."""
    arrays = [library.array(x) for x in operands]
    places = [k for k, x in enumerate(operands) if _is_inexact(x)]

    def function(*primals: Any) -> list[Any]:
        arguments = list(arrays)
        for place, primal in zip(places, primals, strict=True):
            arguments[place] = primal
        return [x for x in library.leaves(call(*arguments)) if _is_inexact(x)]

    return function, tuple(arrays[k] for k in places)


WAYS: Mapping[str, Callable[..., Any]] = {"value": value, "jvp": tangents, "vjp": cotangents}


# --- files ----------------------------------------------------------------------------------------


def store(path: Path, answers: Mapping[str, Answer]) -> None:
    """Write answers: the bytes of all arrays, one after another, and an index as JSON."""
    index = {key: answer.error or [*map(_described, answer.leaves)] for key, answer in answers.items()}
    data = b"".join(leaf.value.tobytes() for answer in answers.values() for leaf in answer.leaves)
    parts = {"data": np.frombuffer(data, np.uint8), "index": np.frombuffer(_text(index), np.uint8)}
    np.savez_compressed(path, allow_pickle=False, **parts)


def _described(leaf: Leaf) -> list[Any]:
    return [leaf.value.dtype.name, list(leaf.value.shape), int(leaf.weak)]


def _text(index: Mapping[str, Any]) -> bytes:
    return json.dumps(index, separators=(",", ":")).encode()


def load(path: Path) -> dict[str, Answer]:
    """Read what `store` wrote."""
    with np.load(path) as parts:
        data, index = parts["data"].tobytes(), json.loads(parts["index"].tobytes())
    answers, at = {}, 0
    for key, entry in index.items():
        leaves = []
        for name, shape, weak in entry if isinstance(entry, list) else ():
            dtype = np.dtype(getattr(ml_dtypes, name, name))
            size = int(np.prod(shape)) * dtype.itemsize
            value = np.frombuffer(data[at : at + size], dtype).reshape(shape)
            leaves.append(Leaf(value, bool(weak)))
            at += size
        answers[key] = Answer(tuple(leaves), entry if isinstance(entry, str) else "")
    return answers
