"""Result dtypes and weakness against JAX 0.10.2: all pairs of dtypes, all families of names.

jax_promotion_0_10_2.json was made by running jax 0.10.2 on the CPU: `promote` is
jnp.promote_types of every pair with jax_enable_x64; `scalars` and `scalars_x64` are the types of
jnp.add(array, Python scalar) without and with it; `unary` and `binary` those of jnp.<name>(ones(2))
and of pairs, without it. A row is in the order of the list beside it; "*" marks a weak type, and
"error" that JAX raises. Where rune differs on purpose, `ON_PURPOSE` says why.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from tests.support.arrays import array

JAX = json.loads((Path(__file__).parent / "jax_promotion_0_10_2.json").read_text())
SCALARS = {"bool*": True, "int*": 1, "float*": 1.5, "complex*": 1j}
DTYPES = JAX["promote_types"]

# (name, operand types) -> what rune does instead.
ON_PURPOSE: dict[tuple[str, ...], str] = {
    ("cumsum", "i8"): "i32",  # the array API standard: running sums promote like sums
    ("cumsum", "u8"): "u32",
    ("cumprod", "i8"): "i32",
    ("cumprod", "u8"): "u32",
    ("dot", "i8", "int*"): "i8",  # JAX raises, though its inner and matmul do not
    ("dot", "int*", "i8"): "i8",
    ("dot", "u8", "int*"): "u8",
    ("dot", "int*", "u8"): "u8",
}
# Compositions that in JAX lose or keep weakness by how they are written; rune always keeps it.
WEAKNESS_VARIES = {
    "log2", "log10", "rint", "nan_to_num", "power", "hypot", "logaddexp2", "heaviside"
}  # fmt: skip


def sample(name: str) -> Any:
    """Two ones of a dtype, or a Python scalar."""
    return SCALARS[name] if name in SCALARS else array(np.ones(2).astype(dtypes.as_dtype(name)))


def shown(function: Any, *args: Any) -> str:
    """The result's type, "*" for weak, or "error"."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*args)
    except (TypeError, NotImplementedError):
        return "error"
    out = out[0] if isinstance(out, tuple | list) else out
    return dtypes.short(out.dtype) + ("*" if out.weak_type else "")


def comparable(name: str, row: str) -> list[str]:
    """Types of a row as they count: a weak bool behaves as a bool."""
    found = [t.replace("bool*", "bool") for t in row.split()]
    return [t.rstrip("*") for t in found] if name in WEAKNESS_VARIES else found


@pytest.mark.parametrize("first", DTYPES)
def test_two_dtypes_promote_to_their_least_upper_bound(first: str):
    found = [shown(lambda a, b: rnp.zeros(0, rnp.promote_types(a, b)), first, b) for b in DTYPES]

    assert dict(zip(DTYPES, found)) == dict(zip(DTYPES, JAX["promote"][first].split()))


@pytest.mark.parametrize("first", JAX["scalars"])
def test_a_python_scalar_adapts_to_the_array_beside_it(first: str):
    found = [shown(rnp.add, sample(first), sample(b)) for b in SCALARS]

    expected = comparable("", JAX["scalars"][first])
    assert dict(zip(SCALARS, found)) == dict(zip(SCALARS, expected))


@pytest.mark.parametrize("first", JAX["scalars_x64"])
def test_a_python_scalar_is_64_bit_where_that_is_the_default(first: str):
    with rune.enable_x64():
        found = [shown(rnp.add, sample(first), sample(b)) for b in SCALARS]

    expected = comparable("", JAX["scalars_x64"][first])
    assert dict(zip(SCALARS, found)) == dict(zip(SCALARS, expected))


def trace(x: Any) -> Any:
    """trace of a matrix with the elements of x."""
    return rnp.trace(rnp.ones((2, 2), x.dtype) if isinstance(x, rnp.ndarray) else x)


@pytest.mark.parametrize("name", JAX["unary"])
def test_the_result_type_of_one_operand(name: str):
    kinds = [k for k in JAX["unary_types"] if not (name in RUNNING and k in SCALARS)]
    row = dict(zip(JAX["unary_types"], comparable(name, JAX["unary"][name])))
    expected = {k: ON_PURPOSE.get((name, k), row[k]) for k in kinds}

    function = trace if name == "trace_" else getattr(rnp, name)
    found = comparable(name, " ".join(shown(function, sample(k)) for k in kinds))
    assert dict(zip(kinds, found)) == expected


RUNNING = ("cumsum", "cumprod", "diff")  # not asked of scalars


@pytest.mark.parametrize("name", JAX["binary"])
def test_the_result_type_of_two_operands(name: str):
    kinds = JAX["binary_types"]
    rows = {a: comparable(name, row) for a, row in zip(kinds, JAX["binary"][name], strict=True)}
    expected = {
        (a, b): ON_PURPOSE.get((name, a, b), t) for a in kinds for b, t in zip(kinds, rows[a])
    }

    function = getattr(rnp, name)
    found = comparable(name, " ".join(shown(function, sample(a), sample(b)) for a, b in expected))
    assert {k: v for k, v in zip(expected, found) if v != expected[k]} == {}
