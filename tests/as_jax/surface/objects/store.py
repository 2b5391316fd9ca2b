"""Store jax 0.10.2's answers to lines and programs, and the errors by which it refuses others.

Run by hand, where JAX is installed:

python tests/as_jax/surface/objects/store.py
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent.parent.parent))

from tests.as_jax.surface.objects.expressions import ANSWERS, REFUSALS, answers, refusal, refused_lines  # noqa: E402

VERSION = "0.10.2"


def main() -> None:
    """Store a text for each line and program, and a Python class for each refused line."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    warnings.simplefilter("ignore")
    ANSWERS.write_text(json.dumps(answers(), indent=0))
    REFUSALS.write_text(json.dumps({line: refusal(line)[0] for line in refused_lines()}, indent=0))


if __name__ == "__main__":
    main()
