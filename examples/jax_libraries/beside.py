"""Run the scripts here on rune and on jax: python beside.py --jax PYTHON [script...]

PYTHON is an interpreter with jax. The libraries are those on PYTHONPATH, for both. On jax a script
runs without its line `import rune.as_jax`. Times are processor time, of all threads, in seconds; no
compiled code is left of an earlier run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LINE = "import rune.as_jax  # noqa: F401  # isort: skip\n"


def output_lines(python: str, source: str) -> list[str]:
    """What the program prints; what it complains of is shown."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        command = [python, "-W", "ignore", "-c", source]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return done.stdout.splitlines()


def main() -> None:
    """Print the lines of each script, rune's left and jax's right."""
    parser = argparse.ArgumentParser(description="scripts of JAX's libraries on rune, beside jax")
    parser.add_argument("--jax", required=True, metavar="PYTHON", help="an interpreter with jax")
    scripts = sorted(path.stem for path in HERE.glob("*_*.py"))
    parser.add_argument("scripts", nargs="*", default=scripts)
    arguments = parser.parse_args()
    for script in arguments.scripts:
        source = (HERE / f"{script}.py").read_text()
        print(script)
        pairs = zip(
            output_lines(sys.executable, source), output_lines(arguments.jax, source.replace(LINE, "")), strict=True
        )
        for on_rune, on_jax in pairs:
            print(f"    rune  {on_rune}\n    jax   {on_jax}")


if __name__ == "__main__":
    main()
