"""Every public name of jax 0.10.2 is there under rune.as_jax, or in one table with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module

import pytest

from rune.absent.of_as_jax import NAMES
from tests.as_jax.surface.compare import missing_names, of_rune, stored


@cache
def absent() -> list[tuple[str, str]]:
    return [*missing_names(of_rune())]


def patterns() -> list[tuple[str, str]]:
    """The sections and patterns of the table."""
    return [(title, p) for title, table in NAMES.items() for names in table.values() for p in names.split()]


def test_a_name_is_there_or_in_the_table():
    listed = patterns()

    assert [(t, n) for t, n in absent() if not any(t == title and fnmatchcase(n, p) for title, p in listed)] == []


def test_nothing_in_the_table_is_there():
    gone = absent()

    assert [(title, p) for title, p in patterns() if not any(t == title and fnmatchcase(n, p) for t, n in gone)] == []


def test_the_list_is_that_of_a_whole_library():
    assert len(stored()["jax.numpy"]) > 400
    assert sum(map(len, stored().values())) > 2900


HINTS = {
    "jax.ds": "use jax.lax.dynamic_slice",
    "jax.gard": "did you mean jax.grad?",
    "jax.numpy.softmax": "use jax.nn.softmax",
    "jax.numpy.float8_e3m4": "Number types that no executor here has",
    "jax.numpy.putmask": "x.at[...] gives a changed copy",
    "jax.lax.rng_uniform": "It names XLA",
    "jax.scipy.special.logsumxp": "did you mean jax.scipy.special.logsumexp?",
}


@pytest.mark.parametrize("dotted", HINTS)
def test_a_missing_name_says_what_to_use(dotted: str):
    module, _, name = dotted.rpartition(".")

    with pytest.raises(AttributeError) as raised:
        getattr(import_module(module), name)

    assert str(raised.value).startswith(f"module {module!r} has no attribute {name!r}")
    assert HINTS[dotted] in str(raised.value)
