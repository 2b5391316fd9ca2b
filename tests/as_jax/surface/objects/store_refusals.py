"""Store Python's class of the error by which jax 0.10.2 refuses a line. Run by hand, where JAX is:

python tests/as_jax/surface/objects/store_refusals.py
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent.parent.parent))

from tests.as_jax.surface.objects.said import refusal  # noqa: E402

VERSION = "0.10.2"


def main() -> None:
    """One class for each line of refused.txt; each has to be refused."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    warnings.simplefilter("ignore")
    lines = (FOLDER / "refused.txt").read_text().splitlines()
    classes = {line: refusal(line)[0] for line in lines}
    (FOLDER / "refused_0_10_2.json").write_text(json.dumps(classes, indent=0))


if __name__ == "__main__":
    main()
