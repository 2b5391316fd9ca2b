"""Store the output of NumPyro's chains of eight schools on jax 0.10.2. Run by hand, with jax:

python tests/as_jax/make_chains.py

It runs examples/jax_libraries/numpyro_schools.py without its first line, `import rune.as_jax`.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "examples" / "jax_libraries" / "numpyro_schools.py"
TARGET = Path(__file__).parent / "numpyro_schools_jax_0_10_2.txt"


def lines_of(source: str) -> list[list[str]]:
    """The words of each line in which the script prints a number; times are left out."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(source, str(SCRIPT), "exec"), {"__name__": "__main__"})
    lines = [line.split() for line in text.getvalue().splitlines()]
    return [line for line in lines if line[0] not in ("first", "steady")]


def main() -> None:
    """Run the script on jax."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == "0.10.2", "jax 0.10.2 required"
    source = SCRIPT.read_text().replace("import rune.as_jax", "import jax")
    TARGET.write_text("".join(" ".join(line) + "\n" for line in lines_of(source)))


if __name__ == "__main__":
    main()
