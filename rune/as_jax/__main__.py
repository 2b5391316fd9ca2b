"""`python -m rune.as_jax script.py`, `-m module` or `-c code`: run an unchanged JAX program."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import rune.as_jax as as_jax

USAGE = "usage: python -m rune.as_jax (script.py | -m module | -c code) [arguments]"


def main(arguments: list[str]) -> None:
    """Run a script, a module or a line of code as `python` would, with its own arguments."""
    as_jax.install()
    match arguments:
        case ["-m", module, *_]:
            sys.argv = arguments[1:]
            sys.path.insert(0, str(Path.cwd()))
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *_]:
            sys.argv = arguments[:1] + arguments[2:]
            sys.path.insert(0, "")
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case [script, *_] if not script.startswith("-"):
            sys.argv = arguments
            sys.path.insert(0, str(Path(script).resolve().parent))
            runpy.run_path(script, run_name="__main__")
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
