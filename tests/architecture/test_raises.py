"""The `raise` statements that no test reaches, each with the reason; all others are reached.

tools/unreached_raises.py lists them anew.
"""

from __future__ import annotations

import pytest

from tests.architecture.sources import ROOT

# The file, a part of the statement, and why no test gets there.
UNREACHED: list[tuple[str, str, str]] = []


@pytest.mark.parametrize(("path", "part"), [(path, part) for path, part, _ in UNREACHED])
def test_what_is_said_to_be_out_of_reach_is_there(path: str, part: str):
    assert part in (ROOT / path).read_text()
