"""Names of SciPy that rune.scipy lacks: tables with the reasons, and the page made from them.

The chapter of docs/guide/missing.md is made from the tables (pytest --accept). Names come from the
installed SciPy.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest
import scipy
import scipy.stats

import rune.scipy
import rune.scipy.stats
from rune.absent.of_scipy import MISSING, MODULES
from tests.support.absent import chapter, expect_chapter, listed

INTRODUCTION = """\
What SciPy's modules have and those of `rune.scipy` lack. All of `jax.scipy` (0.10.2) is here.
Arguments that functions do not take are in [the next chapter](#arguments-of-scipy).

SciPy's functions take rune's arrays and compute in NumPy; rune takes what they return. Inside `jit`,
`rune.pure_callback` calls them. So "use SciPy's" below needs no conversion by hand.

**Where a name is here but means something else.** In `ndimage`, `map_coordinates`, `shift`,
`rotate`, `zoom` and `affine_transform` have `order` 0 or 1, and 1 is the default (SciPy's is 3);
their modes `"constant"` and `"wrap"` mean what SciPy calls `"grid-constant"` and `"grid-wrap"`, as
in JAX: `shift(ones(4), 0.5)` begins with 0.5, SciPy's with 0."""


def named(path: str, root: ModuleType) -> object:
    """A module of SciPy, or of rune.scipy; or the class at the end of the name."""
    if path == "stats.gaussian_kde":
        return root.stats.gaussian_kde
    return import_module(f"{root.__name__}.{path}")


def names_of_scipy(path: str) -> set[str]:
    """The public names that can be called or must be imported."""
    place = named(path, scipy)
    public = getattr(place, "__all__", [n for n in dir(place) if not n.startswith("_")])
    return {n for n in public if callable(getattr(place, n, None))}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", MISSING)
def test_every_name_of_scipy_exists_or_is_in_the_table(path: str):
    ours = named(path, rune.scipy)
    absent = names_of_scipy(path) - listed(MISSING[path])

    # A file of ours with a function's name would be a module in its place.
    assert sorted(n for n in absent if isinstance(getattr(ours, n, None), ModuleType | None)) == []


@pytest.mark.parametrize("path", MISSING)
def test_no_name_in_the_tables_exists(path: str):
    ours = named(path, rune.scipy)

    assert sorted(n for n in listed(MISSING[path]) if hasattr(ours, n)) == []


def test_every_module_of_scipy_exists_or_is_in_the_table():
    absent = {n for n in scipy.__all__ if not n.startswith("_")} - listed(MODULES)

    assert sorted(n for n in absent if not hasattr(rune.scipy, n)) == []
    assert sorted(n for n in listed(MODULES) if hasattr(rune.scipy, n)) == []


def test_the_page_shows_the_tables(request: pytest.FixtureRequest):
    sections = {"Modules": MODULES} | {f"scipy.{m}": table for m, table in MISSING.items()}
    text = chapter("SciPy", INTRODUCTION, sections)

    expect_chapter(request.config, text)
