"""The part of a hunt that runs in an interpreter with jax; it reads and writes files.

python -m tests.as_jax.hunt.serve draw FIRST COUNT FILE     programs of seeds, with answers
python -m tests.as_jax.hunt.serve doubt FILE                how exact the answers in doubt are
"""

from __future__ import annotations

import pickle
import sys
import warnings
from pathlib import Path

from tests.as_jax.hunt.answers import doubt, drawn


def main(arguments: list[str]) -> None:
    match arguments:
        case ["draw", first, count, path]:
            answers = drawn(range(int(first), int(first) + int(count)))
            Path(path).write_bytes(pickle.dumps(answers))
        case ["doubt", path]:
            questions = pickle.loads(Path(path).read_bytes())
            Path(path).write_bytes(pickle.dumps([doubt(*question) for question in questions]))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
