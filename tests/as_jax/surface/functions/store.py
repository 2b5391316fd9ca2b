"""Store jax 0.10.2's answers to the expressions. Run by hand, where JAX is installed:

python tests/as_jax/surface/functions/store.py [family ...]
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
Results = list[tuple[str, Any]]
sys.path.insert(0, str(FOLDER.parent.parent.parent.parent))

from tests.as_jax.surface.functions.letters import (  # noqa: E402
    FAMILIES,
    LANES,
    UNUSUAL,
    Expression,
    expressions,
    gradient,
    slope,
    stored_in,
    value,
)
from tests.as_jax.surface.functions.pulled import pulled  # noqa: E402

VERSION = "0.10.2"
SECONDS = 60  # for one expression: some of JAX's loops never end, as of exp1(-1)


def answers(jax: Any, e: Expression) -> Iterator[tuple[str, Any]]:
    """Values lane by lane, stacked; tangents and gradients, or the name of the error.

    At limits gradients would be sums of infinities, so cotangents take their place.
    """
    count = 1 if e.family in UNUSUAL else LANES
    lanes = [[np.asarray(x) for x in jax.tree.leaves(value(e, lane))] for lane in range(count)]
    yield "value", [np.stack(xs) for xs in zip(*lanes, strict=True)]
    reverse = {"vjp": pulled} if e.family == "hard" else {"grad": gradient}
    for name, derivative in ({"jvp": slope} | reverse).items():
        if e.inexact:
            try:
                yield name, [np.asarray(x) for x in derivative(e)]
            except Exception as error:
                yield name, type(error).__name__


def in_time(function: Callable[[], Results]) -> Results:
    """The result of the function. Errors: its own; TimeoutError if it takes too long."""
    pending: Future[Results] = Future()

    def run() -> None:
        try:
            pending.set_result(function())
        except Exception as error:
            pending.set_exception(error)

    Thread(target=run, daemon=True).start()
    return pending.result(SECONDS)


def store(jax: Any, family: str) -> None:
    """Write one file: the arrays one after another, and an index with their types."""
    index: dict[str, dict[str, Any]] = {}
    blocks: list[bytes] = []
    for number, e in enumerate(expressions(family)):
        try:
            results = in_time(lambda e=e: [*answers(jax, e)])
        except Exception as error:
            print(f"refused: {e.text}: {type(error).__name__} {error}")  # the line is to be taken out
            continue
        index[e.text] = entry = {}
        for name, answer in results:
            is_error = isinstance(answer, str)
            entry[name] = answer if is_error else [[x.dtype.name, x.shape] for x in answer]
            blocks += [] if is_error else [x.tobytes() for x in answer]
        if number % 50 == 49:
            jax.clear_caches()
    data = np.frombuffer(b"".join(blocks), np.uint8)
    np.savez_compressed(stored_in(family), allow_pickle=False, index=np.array(json.dumps(index)), data=data)
    print(family, len(index), "expressions")


def main() -> None:
    """Evaluate the expressions of the chosen texts, or of all, on the CPU."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    warnings.simplefilter("ignore")
    for family in sys.argv[1:] or FAMILIES:
        store(jax, family)


if __name__ == "__main__":
    main()
