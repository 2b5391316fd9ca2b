"""Run the examples of JAX's docstrings on rune.as_jax. A tool, run by hand:

python tests/as_jax/surface/docstrings.py FILE          with JAX: write its answers
python -m tests.as_jax.surface.docstrings FILE [name]   compare rune's answers; print differences

The examples are JAX's, and stay in FILE. An answer is the output of an example, or the class of its
error; texts are compared by their numbers, or, if they have none, by their words.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import inspect
import io
import json
import re
import signal
import sys
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent.parent.parent))

from tests.as_jax.surface.listing import MODULES

PATIENCE = 60  # seconds for one docstring
RTOL, ATOL = 2e-3, 2e-5
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?j?|nan|inf)(?![\w\[])")
_OF_JAX = re.compile(r",?\s*(dtype=[\w<>\[\]]+|weak_type=True|shape=\([\d, ]*\))")
_OF_RUNE = re.compile(r",\s*(?:key<\w+>|[a-z]+\w*)\*?\[[\d, ]*\](?:,\s*[\w:]+)?(?=\))")

# What JAX answers where there is one device only, and what follows from it.
_OF_THE_MACHINE = ("!NameError", "!ValueError: cannot select an axis to squeeze out")


def examples() -> dict[str, list[str]]:
    """The examples of each docstring of JAX's public names."""
    parser, texts = doctest.DocTestParser(), {}
    for module_name in MODULES:
        try:
            module = import_module(module_name)
        except ImportError:
            continue
        things = {"": module, **{n: getattr(module, n) for n in dir(module) if not n.startswith("_")}}
        for name, thing in things.items():
            doc = None if inspect.ismodule(thing) and name else inspect.getdoc(thing)
            with contextlib.suppress(ValueError):
                sources = [e.source for e in parser.get_examples(doc or "")]
                if sources and sources not in texts.values():
                    texts[f"{module_name}.{name}"] = sources
    return texts


def answers(sources: list[str]) -> list[str]:
    """The output of each example; for an error its class, after a `!`."""
    modules = {"np": "numpy", "jax": "jax", "jnp": "jax.numpy", "lax": "jax.lax"}
    scope: dict[str, Any] = {name: import_module(module) for name, module in modules.items()}
    scope["partial"] = functools.partial
    texts = []
    for source in sources:
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()):
            try:
                exec(compile(source, "<example>", "single"), scope)
            except TimeoutError:
                raise
            except BaseException as error:
                stream.write(f"!{type(error).__name__}: {error}")
        texts.append(stream.getvalue())
    return texts


def within_patience(sources: list[str]) -> list[str] | None:
    """The answers; None if they take too long."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        return answers(sources)
    except TimeoutError:
        return None
    finally:
        signal.alarm(0)


def agree(reference: str, output: str) -> bool:
    """Whether two texts have the same numbers, or the same words, or both are errors."""
    if reference.startswith("!") or output.startswith("!"):
        return reference[:1] == output[:1] or reference.startswith(_OF_THE_MACHINE)
    reference, output = _OF_JAX.sub("", reference), _OF_RUNE.sub("", _OF_JAX.sub("", output))
    first, second = _NUMBER.findall(reference), _NUMBER.findall(output)
    if not first:
        return "".join(reference.split()) == "".join(output.split())
    return len(first) == len(second) and all(map(_close, first, second))


def _close(first: str, second: str) -> bool:
    x, y = complex(first), complex(second)
    return x == y or str(x) == str(y) or abs(x - y) <= ATOL + RTOL * abs(x)


def main() -> None:
    """Store the answers if this is JAX; otherwise compare them."""
    warnings.simplefilter("ignore")
    path, parts = Path(sys.argv[1]), sys.argv[2:]
    if __package__:
        import_module("rune.as_jax")
        compare(json.loads(path.read_text()), parts)
    else:
        entries = {name: {"sources": s, "answers": within_patience(s)} for name, s in examples().items()}
        path.write_text(json.dumps(entries, indent=1))
        print(len(entries), "docstrings,", sum(len(s["sources"]) for s in entries.values()), "examples")


def compare(entries: dict[str, Any], parts: list[str]) -> None:
    """Print the examples whose answers differ, docstring by docstring, and counts."""
    counts: Counter[str] = Counter()
    for name, entry in entries.items():
        if (parts and not any(c in name for c in parts)) or entry["answers"] is None:
            continue
        outputs = within_patience(entry["sources"]) or [""] * len(entry["sources"])
        same = [agree(a, b) for a, b in zip(entry["answers"], outputs, strict=True)]
        counts += Counter(docstrings=1, whole=int(all(same)), examples=len(same), same=sum(same))
        if not all(same):
            print(f"=== {name}")
            for source, reference, output, is_same in zip(
                entry["sources"], entry["answers"], outputs, same, strict=True
            ):
                if not is_same:
                    print(f">>> {source.rstrip()}\n--- jax\n{reference.rstrip()}\n--- rune\n{output.rstrip()[:1500]}")
        sys.stdout.flush()
    print(f"{counts['whole']} of {counts['docstrings']} docstrings, {counts['same']} of {counts['examples']} examples")


if __name__ == "__main__":
    main()
