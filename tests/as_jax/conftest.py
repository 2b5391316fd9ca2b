"""Tests of programs written for JAX: `import jax` gives rune, with JAX's settings here alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rune.as_jax import SETTINGS


@pytest.fixture(autouse=True)
def settings_of_jax() -> Iterator[None]:
    with SETTINGS:
        yield
