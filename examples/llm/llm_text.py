"""The text that the example learns: Python's own documentation, which every Python has.

The topics of `help()` and the documentation strings of modules that are always there: about half a
megabyte; the last twentieth is held out.
"""

from __future__ import annotations

import importlib
import inspect
from pydoc_data.topics import topics

MODULES = "argparse ast asyncio collections dataclasses decimal email functools http itertools json logging math os"
MODULES += " pathlib random re shutil statistics string subprocess tarfile threading unittest urllib xml zipfile"
HELD_OUT = 0.05


def documentation() -> str:
    """All of it, in a fixed order."""
    sources = [topics[name] for name in sorted(topics)]
    for name in MODULES.split():
        module = importlib.import_module(name)
        members = (getattr(module, n) for n in sorted(vars(module)) if not n.startswith("_"))
        docs = [inspect.getdoc(module), *(inspect.getdoc(m) for m in members if callable(m))]
        sources += dict.fromkeys(d for d in docs if d)  # each once
    return "\n\n".join(sources)


def parts(text: str) -> tuple[str, str]:
    """What is learned, and what is held out."""
    cut = round(len(text) * (1 - HELD_OUT))
    return text[:cut], text[cut:]
