"""Result dtypes and weakness against JAX 0.10.2: all pairs of dtypes, all families of names.

jax_promotion_0_10_2.json was made by running jax 0.10.2 on the CPU: `promote` is
jnp.promote_types of every pair with jax_enable_x64; `scalars` and `scalars_x64` are the types of
jnp.add(array, Python scalar) without and with it; `unary` and `binary` those of jnp.<name>(ones(2))
and of pairs, without it. A row is in the order of the list beside it; "*" marks a weak type, and
"error" that JAX raises. Where rune differs on purpose, `ON_PURPOSE` says why.

jax_lattice_0_10_2.json, made likewise, is jnp.where(True, a, b) of every pair of kinds of operands,
dtypes and Python scalars: `standard` and `strict` promotion with jax_enable_x64, `…_x32` without
(where "-" is not asked); `numpy_scalars` the same of NumPy's scalars beside arrays.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax
from rune.control import parse_program
from rune.errors import DtypeError
from rune.scipy import linalg
from tests.support.arrays import array

JAX = json.loads((Path(__file__).parent / "jax_promotion_0_10_2.json").read_text())
ROOT = Path(__file__).parent.parent.parent
LATTICE = json.loads((Path(__file__).parent / "jax_lattice_0_10_2.json").read_text())
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
WEAKNESS_VARIES = {"log2", "log10", "rint", "nan_to_num", "power", "hypot", "logaddexp2", "heaviside"}


def sample(name: str) -> Any:
    """Two ones of a dtype, or a Python scalar."""
    return SCALARS[name] if name in SCALARS else array(np.ones(2).astype(dtypes.FROM_SHORT[name]))


def result_type(function: Any, *args: Any) -> str:
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
    names = [t.replace("bool*", "bool") for t in row.split()]
    return [t.rstrip("*") for t in names] if name in WEAKNESS_VARIES else names


@pytest.mark.parametrize("first", DTYPES)
def test_two_dtypes_promote_to_their_least_upper_bound(first: str):
    kinds = [dtypes.FROM_SHORT[name] for name in (first, *DTYPES)]
    dtype_names = [result_type(lambda b: rnp.zeros(0, rnp.promote_types(kinds[0], b)), b) for b in kinds[1:]]

    assert dict(zip(DTYPES, dtype_names)) == dict(zip(DTYPES, JAX["promote"][first].split()))


def joined(first: Any, second: Any) -> str:
    """The common type of two operands, by a function without a special rule."""
    return result_type(lambda a, b: rnp.where(True, a, b), first, second)


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("first", LATTICE["kinds"])
def test_every_pair_of_operands_promotes_as_in_jax_with_64_bits(first: str, mode: str):
    kinds = LATTICE["kinds"]
    with rune.enable_x64(), rune.numpy_dtype_promotion(mode):
        dtype_names = [joined(sample(first), sample(b)) for b in kinds]

    assert dict(zip(kinds, dtype_names)) == dict(zip(kinds, LATTICE[mode][first].split()))


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("first", LATTICE["kinds"])
def test_by_default_pairs_promote_as_in_jax_but_keep_64_bits(first: str, mode: str):
    row = dict(zip(LATTICE["kinds"], LATTICE[f"{mode}_x32"][first].split()))
    expectations = {b: t for b, t in row.items() if t != "-"}
    if mode == "standard" and "u32" in (first, *expectations):  # JAX without x64 has no i64 for these
        wider = {b: "i64" for b in ("i8", "i16", "i32") if first == "u32"}
        wider |= {"u32": "i64"} if first in ("i8", "i16", "i32") else {}
        expectations |= wider

    with rune.numpy_dtype_promotion(mode):
        dtype_names = {b: joined(sample(first), sample(b)) for b in expectations}

    assert dtype_names == expectations


@pytest.mark.parametrize("scalar", LATTICE["numpy_scalars"])
def test_a_numpy_scalar_promotes_like_an_array_of_its_dtype(scalar: str):
    kinds = LATTICE["numpy_scalar_kinds"]
    one = dtypes.FROM_SHORT[scalar].type(1)
    with rune.enable_x64():
        dtype_names = [joined(sample(b), one) for b in kinds]

    assert dict(zip(kinds, dtype_names)) == dict(zip(kinds, LATTICE["numpy_scalars"][scalar].split()))


@pytest.mark.parametrize("scalar", ["i64", "f64", "c128"])
def test_a_numpy_scalar_of_64_bits_arrives_with_32_by_default(scalar: str):
    kinds = ["bool", "i8", "f16", "f32", "c64"]
    one = dtypes.FROM_SHORT[scalar].type(1)
    row = LATTICE["numpy_scalars_x32"][scalar].split()
    expected = dict(zip(LATTICE["numpy_scalar_kinds_x32"], row))

    assert {b: joined(sample(b), one) for b in kinds} == {b: expected[b] for b in kinds}


def test_the_table_in_the_documentation_is_the_one_in_force():
    page = (ROOT / "docs" / "dtypes.md").read_text()
    rows = [
        [cell.strip(" *") for cell in line.split("|")[1:-1]]
        for line in page.split("## Promotion")[1].splitlines()
        if line.startswith("| ")
    ]
    names = rows[0][1:]

    for first, *row in rows[1:]:
        assert dict(zip(names, row)) == {
            b: dtypes.short(rnp.promote_types(dtypes.FROM_SHORT[first], dtypes.FROM_SHORT[b])) for b in names
        }, first
    assert len(rows) == len(names) + 1 == 16


def test_strict_promotion_raises_an_error_with_advice():
    with rune.numpy_dtype_promotion("strict"), pytest.raises(DtypeError) as error:
        rnp.add(rnp.ones(2, "f32"), rnp.ones(2, "f64"))

    assert "cannot promote f32 and f64 (strict promotion)" in str(error.value)
    assert "hint: cast one side with .astype(...)" in str(error.value)


def test_strict_promotion_is_part_of_the_key_of_compiled_code():
    program = rune.jit(lambda a, b: a + b)
    a, b = rnp.ones(2, "f32"), rnp.ones(2, "i32")
    program(a, b)

    with rune.numpy_dtype_promotion("strict"), pytest.raises(DtypeError):
        program(a, b)


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="cannot use promotion='loose'"):
        rune.numpy_dtype_promotion("loose")


@pytest.mark.parametrize("first", JAX["scalars"])
def test_a_python_scalar_adapts_to_the_other_array_operand(first: str):
    dtype_names = [result_type(rnp.add, sample(first), sample(b)) for b in SCALARS]

    expected = comparable("", JAX["scalars"][first])
    assert dict(zip(SCALARS, dtype_names)) == dict(zip(SCALARS, expected))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("first", sorted(set(JAX["scalars"]) & set(LATTICE["numpy_scalars"])))
def test_a_python_scalar_takes_the_dtype_of_a_numpy_scalar_in_the_same_list(first: str, nested: bool):
    one = dtypes.FROM_SHORT[first].type(1)
    lists = [[[one], [number]] if nested else [one, number] for number in SCALARS.values()]

    dtype_names = [dtypes.short(rnp.array(numbers).dtype) for numbers in lists]

    expected = [text.removesuffix("*") for text in JAX["scalars"][first].split()]
    assert dict(zip(SCALARS, dtype_names)) == dict(zip(SCALARS, expected))


def test_a_python_integer_that_the_dtype_of_its_list_cannot_hold_is_refused():
    with pytest.raises(OverflowError, match="array: cannot hold 300 in i8"):
        rnp.array([np.int8(1), 300])


@pytest.mark.parametrize("first", JAX["scalars_x64"])
def test_a_python_scalar_is_64_bit_where_that_is_the_default(first: str):
    with rune.enable_x64():
        dtype_names = [result_type(rnp.add, sample(first), sample(b)) for b in SCALARS]

    expected = comparable("", JAX["scalars_x64"][first])
    assert dict(zip(SCALARS, dtype_names)) == dict(zip(SCALARS, expected))


@pytest.mark.parametrize(("python_type", "wide"), [(float, "f8"), (int, "i8"), (complex, "c16")])
def test_a_python_type_as_a_dtype_is_64_bit_where_that_is_the_default(python_type: type, wide: str):
    with rune.enable_x64():
        result_dtypes = rnp.zeros(1, python_type).dtype, rnp.ones(1).astype(python_type).dtype

    assert result_dtypes == (np.dtype(wide), np.dtype(wide))
    assert rnp.zeros(1, python_type).dtype.itemsize * 2 == np.dtype(wide).itemsize


NUMPYS = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 ? b1 <i4 bool int8 uint64 float16 complex64"


@pytest.mark.parametrize("name", NUMPYS.split())
def test_a_dtype_name_that_numpy_knows_means_numpys_dtype(name: str):
    x = rnp.ones(2)

    result_dtypes = {
        rnp.dtype(name),
        rnp.zeros(2, name).dtype,
        x.astype(name).dtype,
        rnp.array(1, name).dtype,
        rnp.concatenate([x, x], dtype=name).dtype,
        rune.ShapeDtypeStruct((2,), name).dtype,
        lax.convert_element_type(x, name).dtype,
        rnp.result_type(name),
    }

    assert result_dtypes == {np.dtype(name)}


@pytest.mark.parametrize("name", "i16 i32 i64 u16 u32 u64 f16 f32 f64 bf16 c64 c128 f8_e5m2".split())
def test_a_short_name_that_numpy_does_not_know_counts_bits(name: str):
    assert rnp.zeros(1, name).dtype == dtypes.FROM_SHORT[name]
    assert rnp.finfo("f16").bits == 16  # NumPy's long double, which rune does not have


@pytest.mark.parametrize(("name", "spelling"), [("int4", "i4"), ("uint4", "u4"), ("int8", "i8"), ("uint8", "u8")])
def test_types_are_printed_and_read_back_in_bits(name: str, spelling: str):
    text = str(rune.make_program(lambda x: x)(rnp.zeros(3, name)))

    assert f"{spelling}[3]" in text
    assert parse_program(text).inputs[0].type.dtype == rnp.dtype(name)


SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 2.0], [0.5, 2.0, 1.0]])
COUNTERS = {
    "histogram": (lambda a: rnp.histogram(a, 2)[0], np.histogram(SQUARE, 2)[0]),
    "derivative of det": (rune.grad(rnp.linalg.det), np.linalg.det(SQUARE) * np.linalg.inv(SQUARE).T),
    "lu_solve": (lambda a: linalg.lu_solve(linalg.lu_factor(a), SQUARE[0]), np.eye(3)[0]),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_functions_with_32_bit_counters_work_where_64_bits_are_the_default(name: str):
    call, expected = COUNTERS[name]
    with rune.enable_x64():
        result = call(SQUARE)

    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def trace(x: Any) -> Any:
    """trace of a matrix with the elements of x."""
    return rnp.trace(rnp.ones((2, 2), x.dtype) if isinstance(x, rnp.ndarray) else x)


@pytest.mark.parametrize("name", JAX["unary"])
def test_the_result_type_of_one_operand(name: str):
    kinds = [k for k in JAX["unary_types"] if not (name in RUNNING and k in SCALARS)]
    row = dict(zip(JAX["unary_types"], comparable(name, JAX["unary"][name])))
    expected = {k: ON_PURPOSE.get((name, k), row[k]) for k in kinds}

    function = trace if name == "trace_" else getattr(rnp, name)
    dtype_names = comparable(name, " ".join(result_type(function, sample(k)) for k in kinds))
    assert dict(zip(kinds, dtype_names)) == expected


RUNNING = ("cumsum", "cumprod", "diff")  # not asked of scalars


@pytest.mark.parametrize("name", JAX["binary"])
def test_the_result_type_of_two_operands(name: str):
    kinds = JAX["binary_types"]
    rows = {a: comparable(name, row) for a, row in zip(kinds, JAX["binary"][name], strict=True)}
    expected = {(a, b): ON_PURPOSE.get((name, a, b), t) for a in kinds for b, t in zip(kinds, rows[a])}

    function = getattr(rnp, name)
    dtype_names = comparable(name, " ".join(result_type(function, sample(a), sample(b)) for a, b in expected))
    assert {k: v for k, v in zip(expected, dtype_names) if v != expected[k]} == {}


@pytest.mark.parametrize("name", JAX["binary"])
def test_a_python_scalar_with_64_bit_arrays_becomes_64_bit_in_every_function(name: str):
    function = getattr(rnp, name)
    for kind, scalar in (("f64", 1.0), ("f64", 1), ("i64", 1), ("u64", 1), ("c128", 1.0)):
        x = sample(kind)
        expected = result_type(function, x, x)

        dtype_names = result_type(function, x, scalar), result_type(function, scalar, x)

        assert dtype_names == (expected, expected), kind


@pytest.mark.parametrize("name", ["sum", "prod", "nansum", "nanprod", "cumsum", "cumprod"])
def test_sums_of_integers_have_the_default_width(name: str):
    """As in JAX; running sums as the array API standard says."""
    kinds = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
    function = getattr(rnp, name)

    narrow = [result_type(function, sample(k)) for k in kinds]
    with rune.enable_x64():
        wide = [result_type(function, sample(k)) for k in kinds]

    assert narrow == ["i32"] * 4 + ["i64"] + ["u32"] * 3 + ["u64"]
    assert wide == ["i64"] * 5 + ["u64"] * 4


NARROW = [np.dtype(d) for d in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")]


@pytest.mark.parametrize("second", NARROW, ids=str)
@pytest.mark.parametrize("first", NARROW, ids=str)
def test_with_truncated_dtypes_no_two_types_of_32_bits_promote_to_64(first: np.dtype, second: np.dtype):
    wide = rnp.promote_types(first, second)

    with rune.configure(wide_dtypes="truncated"):
        assert (rnp.ones(1, first) + rnp.ones(1, second)).dtype == dtypes.canonicalize_dtype(wide)


@pytest.mark.parametrize("others", [(), (None,), (np.int32,), ("bfloat16",), (True,), (2,), (2.0,)])
def test_none_promotes_as_the_default_floating_dtype(others: tuple[Any, ...]):
    assert rnp.result_type(None, *others) == np.float32
    with rune.enable_x64():
        assert rnp.result_type(*others, None) == np.float64


@pytest.mark.parametrize("others", [(), (2.0,), (np.int8,)])
def test_of_an_object_that_has_a_dtype_alone_it_promotes(others: tuple[Any, ...]):
    named = SimpleNamespace(dtype=np.dtype(np.float16))

    assert rnp.result_type(named, *others) == np.float16


# The dtypes of jnp.gradient(samples, spacing) in JAX 0.10.2 under x64: a row of samples for these
# spacings.
SPACINGS = "float* int* i8 i64 f32 f64 bf16"
SLOPES = {
    "i8": "f64* f32 f32 f64 f32 f64 bf16",
    "i32": "f64* f32 f32 f64 f32 f64 bf16",
    "u8": "f64* f32 f32 f64 f32 f64 bf16",
    "bool": "f64* f64* f32 f64 f32 f64 bf16",
    "f32": "f32 f32 f32 f32 f32 f64 f32",
    "bf16": "bf16 bf16 bf16 bf16 f32 f64 bf16",
    "f16": "f16 f16 f16 f16 f32 f64 f32",
    "c64": "c64 c64 c64 c64 c64 c128 c64",
    "i64": "f64* f64 f64 f64 f32 f64 bf16",
    "f64": "f64 f64 f64 f64 f64 f64 f64",
}


@pytest.mark.parametrize("samples", SLOPES)
def test_slopes_have_the_floating_dtype_that_samples_and_spacings_promote_to(samples: str):
    with rune.enable_x64():
        slopes = [result_type(rnp.gradient, sample(samples), sample(spacing)) for spacing in SPACINGS.split()]

    assert slopes == SLOPES[samples].split()


@pytest.mark.parametrize("empty", [[], np.zeros(0, np.float32), np.zeros(0, bool)], ids=["list", "f32", "bool"])
def test_an_open_mesh_of_no_elements_has_positions_of_the_default_integer(empty: Any):
    with rune.enable_x64():
        mesh = rnp.ix_(empty, np.arange(2))

    assert [x.dtype for x in mesh] == [np.int64, np.int64]
    assert [x.shape for x in mesh] == [(0, 1), (1, 2)]
