"""Store what jax 0.10.2 answers to the calls of calls.py, on the CPU, with 32-bit types.

Run by hand, where JAX is installed: python tests/differential/store.py
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.differential.answers import WAYS, Answer, Library, answer, store  # noqa: E402
from tests.differential.calls import CASES, key, tried  # noqa: E402
from tests.numpy.spelling import Case  # noqa: E402

VERSION = "0.10.2"
AT_ONCE = 60  # cases for one process: JAX's programs take a gigabyte
PATIENCE = 60.0  # seconds until a call is given up
SPAWN = multiprocessing.get_context("spawn")
_NAMES = (
    "numpy.linalg numpy.fft scipy.special scipy.stats scipy.linalg scipy.fft scipy.signal "
    "scipy.ndimage scipy.integrate scipy.interpolate scipy.optimize scipy.cluster.vq "
    "scipy.spatial.transform"
)


def jax_library() -> Library:
    """JAX's own ways of calling."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    for name in _NAMES.split():
        import_module(f"jax.{name}")
    return Library(
        array=lambda x: x if isinstance(x, float) else jax.numpy.asarray(x),
        leaves=jax.tree.leaves,
        jvp=jax.jvp,
        vjp=jax.vjp,
        is_weak=lambda x: bool(getattr(x, "weak_type", False)),
    )


def answers_to(cases: list[Case]) -> dict[str, Answer]:
    """JAX's answers. Calls that do not end, such as loops over NaN, are left out by name."""
    answers: dict[str, Answer] = {}
    at = 0
    while at < len(cases):
        end_of_parent, end_of_child = SPAWN.Pipe()
        batch = cases[at : at + AT_ONCE]
        child = SPAWN.Process(target=_answer_each, args=(end_of_child, batch[0].module, at, len(batch)))
        child.start()
        for case in batch:
            at += 1
            if not end_of_parent.poll(PATIENCE):
                print("no answer:", case.name, flush=True)
                child.kill()
                break
            answers |= end_of_parent.recv()
        child.join()
    return answers


def _answer_each(pipe: Connection, module: str, first: int, count: int) -> None:
    """Send the answers to each case of a batch, in a separate process, as JAX caches programs."""
    warnings.simplefilter("ignore")
    library = jax_library()
    for case in CASES[module][first : first + count]:
        pipe.send(answers_to_case(library, case))


def answers_to_case(library: Library, case: Case) -> dict[str, Answer]:
    """JAX's answers to one call; none if it lacks the name."""
    module = import_module(f"jax.{case.module}")
    answers = {}

    def call(*operands: Any) -> Any:
        return case.call(module, *operands)

    for variant, operands, way in tried(case):
        run = partial(WAYS[way], library, call, operands)
        answers[key(case, variant, way)] = answer(library, run)
        if answers[key(case, variant, way)].error == "AttributeError":
            return {}
    return answers


def main() -> None:
    """Run every call and store the answers, one file for each module."""
    for module in sys.argv[1:] or CASES:
        answers = answers_to(CASES[module])
        store(FOLDER / f"jax_{module}_0_10_2.npz", answers)
        print(module, len(answers), sum(bool(a.error) for a in answers.values()), "errors")


if __name__ == "__main__":
    main()
