"""A text has no axes, as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import rune.numpy as rnp


@pytest.mark.parametrize("text", ["", "abc", b"abc"])
def test_a_text_has_no_axes(text: str | bytes):
    assert (rnp.shape(text), rnp.ndim(text), rnp.size(text)) == (np.shape(text), np.ndim(text), np.size(text))  # type: ignore[arg-type]
