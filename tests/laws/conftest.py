"""Laws try the final code; drafts, which first calls run, are tried by all other tests."""

from __future__ import annotations

import pytest

from rune.backends.cpu import costs


@pytest.fixture(autouse=True)
def _no_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM spends its effort on every plan."""
    monkeypatch.setattr(costs, "MOST_WORK", -1.0)
