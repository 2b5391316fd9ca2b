"""Names that NumPy and jax.numpy have and rune.numpy lacks: a table with reasons, and its page.

The chapter of docs/guide/missing.md is made from the table (pytest --accept). Names of NumPy come
from the installed NumPy, those of JAX from jax 0.10.2.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rune.numpy as rnp
from rune.absent import Table
from rune.absent.of_numpy import MISSING, OF_JAX
from tests.support.absent import expect_chapter

LEAST = 343  # of the functions of NumPy, as many as jax.numpy 0.10.2 has


def names_of_numpy() -> set[str]:
    """The callables in NumPy's namespace: functions, ufuncs, classes."""
    public = (n for n in dir(np) if not n.startswith("_"))
    return {n for n in public if callable(getattr(np, n))}


def functions_of_numpy() -> set[str]:
    return {n for n in names_of_numpy() if not isinstance(getattr(np, n), type)}


def missing(table: Table) -> set[str]:
    return {name for names in table.values() for name in names.split()}


@pytest.mark.filterwarnings("ignore")
def test_every_name_of_numpy_exists_or_is_in_the_table():
    assert not sorted(n for n in names_of_numpy() - missing(MISSING) if not hasattr(rnp, n))


def test_every_name_of_jax_numpy_exists_or_is_in_the_table():
    names = json.loads(Path(__file__).with_name("jax_names_0_10_2.json").read_text())

    assert not sorted(n for n in set(names) - missing(OF_JAX) if not hasattr(rnp, n))


def test_no_name_in_the_tables_exists():
    assert not sorted(n for n in missing(MISSING) | missing(OF_JAX) if hasattr(rnp, n))


@pytest.mark.filterwarnings("ignore")
def test_as_many_functions_of_numpy_are_there_as_jax_has():
    assert sum(hasattr(rnp, n) for n in functions_of_numpy()) >= LEAST


def page() -> Iterator[str]:
    """The text of the page."""
    yield "## NumPy"
    yield ("Everything callable in NumPy's namespace is in `rune.numpy`, except what is listed here.")
    for table, title in ((MISSING, "NumPy's names"), (OF_JAX, "Names of jax.numpy")):
        yield f"### {title}"
        for reason, names in table.items():
            listing = ", ".join(f"`{n}`" for n in sorted(names.split()))
            yield f"{textwrap.fill(reason, 100)}\n\n{textwrap.fill(listing, 100)}"


def test_the_page_lists_the_table(request: pytest.FixtureRequest):
    expect_chapter(request.config, "\n\n".join(page()))
