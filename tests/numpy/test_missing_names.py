"""What NumPy and jax.numpy have and rune.numpy has not: a table with the reasons, and its page.

The page docs/guide/missing.md is made from the table (pytest --accept). Names of NumPy are asked of
the NumPy that is installed, those of JAX are those of jax 0.10.2.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import rune.numpy as rnp
from tests.support.expect import expect_file

PAGE = Path(__file__).parent.parent.parent / "docs" / "guide" / "missing.md"
LEAST = 343  # of the functions of NumPy, as many as jax.numpy 0.10.2 has

# Names by reason. What one version of NumPy has and another has not may stand here too.
MISSING: dict[str, str] = {
    "They write into an array, and arrays are immutable; `x.at[...]` gives a changed copy.":
        "copyto putmask",
    "They speak of the memory of an array: its order, its sharing, iteration over it. An array of "
    "rune has no layout that can be seen.":
        "ascontiguousarray asfortranarray broadcast flatiter isfortran may_share_memory memmap "
        "ndenumerate ndindex nditer nested_iters require shares_memory",
    "Other classes of arrays: matrices, records, strings, objects, masked arrays.":
        "asmatrix bmat bytes_ matrix poly1d recarray record str_ void",
    "Dates and times, which are no numbers; compute with integers.":
        "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data "
        "is_busday isnat timedelta64",
    "The state of NumPy's own error handling and buffers: compiled programs raise nothing; "
    "`rune.debug.checks` finds NaN and infinities, and where they arise.":
        "errstate getbufsize geterr geterrcall setbufsize seterr seterrcall",
    "They tell of NumPy itself; `rune.doctor()` tells of rune.":
        "get_include info show_config show_runtime test",
    "C's names of number types, and types that no executor has; use names that say their width.":
        "byte clongdouble complex192 complex256 float128 float96 intc intp long longdouble "
        "longlong mintypecode min_scalar_type short typename ubyte uintc uintp ulong ulonglong "
        "ushort",
    "Parsers of text files with missing and mixed columns; read with NumPy or pandas.":
        "fromregex genfromtxt",
    "NumPy gives them up: `vstack`, `trapezoid`, `isin` say the same.":
        "row_stack trapz in1d",
}  # fmt: skip
OF_JAX: dict[str, str] = {
    "Number types that no executor here has: fp8 variants but e4m3fn and e5m2, fp6, fp4, 1 and 2 "
    "bits.":
        "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
        "float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int1 int2 uint1 uint2",
    "A warning that is an error here.": "ComplexWarning",
}  # fmt: skip


def names_of_numpy() -> set[str]:
    """Whatever can be called in NumPy's namespace: functions, ufuncs, classes."""
    public = (n for n in dir(np) if not n.startswith("_"))
    return {n for n in public if callable(getattr(np, n))}


def functions_of_numpy() -> set[str]:
    return {n for n in names_of_numpy() if not isinstance(getattr(np, n), type)}


def missing(table: dict[str, str]) -> set[str]:
    return {name for names in table.values() for name in names.split()}


@pytest.mark.filterwarnings("ignore")
def test_every_name_of_numpy_is_there_or_in_the_table():
    assert not sorted(n for n in names_of_numpy() - missing(MISSING) if not hasattr(rnp, n))


def test_every_name_of_jax_numpy_is_there_or_in_the_table():
    names = json.loads(Path(__file__).with_name("jax_names_0_10_2.json").read_text())

    assert not sorted(n for n in set(names) - missing(OF_JAX) if not hasattr(rnp, n))


def test_nothing_in_the_tables_is_there():
    assert not sorted(n for n in missing(MISSING) | missing(OF_JAX) if hasattr(rnp, n))


@pytest.mark.filterwarnings("ignore")
def test_as_many_functions_of_numpy_are_there_as_jax_has():
    assert sum(hasattr(rnp, n) for n in functions_of_numpy()) >= LEAST


def page() -> Iterator[str]:
    """The text of the page."""
    yield "# What NumPy has and rune.numpy has not"
    yield (
        "Everything that can be called in NumPy's namespace is in `rune.numpy`, but what stands "
        "here.\nThe tests compare this page with NumPy, so it is complete. There are such pages "
        "for\n[SciPy](missing-scipy.md), [JAX](missing-jax.md) and [Optax](missing-optax.md)."
    )
    for table, title in ((MISSING, "NumPy's names"), (OF_JAX, "Names of jax.numpy")):
        yield f"## {title}"
        for reason, names in table.items():
            shown = ", ".join(f"`{n}`" for n in sorted(names.split()))
            yield f"{textwrap.fill(reason, 100)}\n\n{textwrap.fill(shown, 100)}"


def test_the_page_tells_the_table(request: pytest.FixtureRequest):
    expect_file(request.config, PAGE, "\n\n".join(page()))
