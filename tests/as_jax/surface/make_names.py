"""Store the names of jax 0.10.2 as text. Run by hand, where JAX is installed:

python tests/as_jax/surface/make_names.py
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent.parent))

from tests.as_jax.surface.listing import module_names, sections  # noqa: E402

VERSION = "0.10.2"


def main() -> None:
    """One section for each module and object, one line for each name; and all modules."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    warnings.simplefilter("ignore")
    lines = []
    for title, names in sections(jax):
        lines += [f"[{title}]", *(name + parameters for name, parameters in sorted(names.items())), ""]
    (FOLDER / "jax_0_10_2.txt").write_text("\n".join(lines))
    (FOLDER / "modules_0_10_2.txt").write_text("\n".join(module_names("jax", "jaxlib")) + "\n")


if __name__ == "__main__":
    main()
