"""Every function of jax.lax (0.10.2) exists, or the page for JAX users lists it as absent."""

from __future__ import annotations

import re
from pathlib import Path

import rune.lax
from rune.absent.of_jax import LAX
from tests.support.absent import listed

HERE = Path(__file__).parent
NAMES = (HERE / "jax_lax_0_10_2.txt").read_text().split()
PAGE = (HERE.parent.parent / "docs" / "guide" / "from-jax.md").read_text()


def test_a_name_exists_or_its_absence_is_documented():
    _, absent = PAGE.split("## What is not here")
    names_on_page = set(re.findall(r"`lax\.(\w+)`", absent))

    assert names_on_page == listed(LAX)
    assert [n for n in NAMES if not hasattr(rune.lax, n) and n not in names_on_page] == []
    assert [n for n in names_on_page if hasattr(rune.lax, n)] == []
