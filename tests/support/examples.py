"""How many examples a law draws: fewer if each of them is compiled."""

from __future__ import annotations

from hypothesis import settings

# The profile (tests/conftest.py) is loaded before any test module is imported.
COMPILING = settings(max_examples=max(1, settings().max_examples // 3))
# For laws that compile each example on every executor.
DRIVEN = settings(max_examples=max(1, settings().max_examples // 5))
