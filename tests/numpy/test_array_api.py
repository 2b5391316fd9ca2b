"""rune.numpy is a namespace of the array API standard 2025.12, with linalg and fft.

The oracle is array-api-strict, which has exactly the standard's functions, signatures and dtypes:
what can be called there can be called here, and gives the same dtype and value. Special values are
those of the standard's own tables, which NumPy follows.

Source: https://data-apis.org/array-api/2025.12
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from tests.support.arrays import array

NAMES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128").split()
FLOATS = ("float32", "float64")


def functions(module: ModuleType, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The standard's functions, by dotted name."""
    for name in module.__all__:
        member = getattr(module, name)
        if isinstance(member, ModuleType):
            yield from functions(member, f"{name}.")
        elif inspect.isfunction(member) and "strict" not in name:
            yield prefix + name, member


STANDARD = dict(functions(strict))


def named(xp: Any, name: str) -> Any:
    return operator.attrgetter(name)(xp)


# --- names and signatures ---------------------------------------------------------------------


@pytest.mark.parametrize("name", STANDARD)
def test_every_function_of_the_standard_takes_the_standards_arguments(name: str):
    parameters = inspect.signature(STANDARD[name]).parameters.values()
    by_place = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    ours = inspect.signature(named(rnp, name))

    ours.bind(*by_place, **{p.name: p for p in by_name})
    for p in by_place:
        if p.kind is p.POSITIONAL_OR_KEYWORD:
            assert ours.parameters[p.name].kind is not p.POSITIONAL_ONLY


@pytest.mark.parametrize("name", ["e", "inf", "nan", "newaxis", "pi", *NAMES])
def test_constants_and_dtypes_are_there(name: str):
    assert hasattr(rnp, name)


# --- elementwise ------------------------------------------------------------------------------


def of_dtype(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small numbers of a dtype, none of them 0."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(name)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(1, 5, shape).astype(dtype)
    real = rng.uniform(0.2, 0.9, shape)
    return (real + 1j * real[::-1] if dtype.kind == "c" else real).astype(dtype)


def is_elementwise(name: str, count: int) -> bool:
    """Whether a function takes exactly this many arrays, by position only."""
    parameters = inspect.signature(STANDARD[name]).parameters.values()
    places = [p.name for p in parameters]
    return places in (["x"], ["x1", "x2"]) and len(places) == count and "." not in name


UNARY = [n for n in STANDARD if is_elementwise(n, 1) and n not in ("matrix_transpose", "nonzero") and "unique" not in n]
BINARY = [n for n in STANDARD if is_elementwise(n, 2) and n not in ("matmul", "vecdot")]


def agree(expected: Any, actual: Any) -> None:
    """Equal dtype and shape, and numbers up to a few roundings."""
    reference, result = np.asarray(expected), np.asarray(actual)
    assert (reference.dtype, reference.shape) == (result.dtype, result.shape)
    exact = reference.dtype.kind in "biu"
    limit = 0 if exact else 8 * np.finfo(reference.dtype).eps
    np.testing.assert_allclose(result, reference, rtol=limit, atol=limit)


def expected(call: Callable[[], Any]) -> Any:
    """The result of the standard; None if it is not defined."""
    with np.errstate(all="ignore"):
        try:
            return call()
        except (TypeError, ValueError):
            return None


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_array_has_the_standards_dtype_and_value(name: str):
    for dtype in NAMES:
        data = of_dtype(dtype, (7,), 1) + (1 if name == "acosh" and dtype != "bool" else 0)
        reference = expected(lambda x=data: named(strict, name)(strict.asarray(x)))
        if reference is not None and not isinstance(reference, tuple):
            agree(reference, named(rnp, name)(array(data)))


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_arrays_has_the_standards_dtype_and_value(name: str):
    for one in NAMES:
        for other in NAMES:
            x, y = of_dtype(one, (3, 1), 1), of_dtype(other, (4,), 2)
            reference = expected(lambda x=x, y=y: named(strict, name)(strict.asarray(x), strict.asarray(y)))
            if reference is not None:
                agree(reference, named(rnp, name)(array(x), array(y)))


OPERATORS = ("add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt le gt ge eq ne").split()


ORDERED = ("lt", "le", "gt", "ge")


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_with_a_python_number_keeps_the_arrays_dtype(name: str):
    apply = getattr(operator, name)
    for dtype in NAMES:
        data = of_dtype(dtype, (5,), 3)
        for number in (True, 2, 2.0, *(() if name in ORDERED else (2j,))):
            for swap in (False, True):
                args = [(number, v) if swap else (v, number) for v in (strict.asarray(data),)]
                reference = expected(lambda args=args: apply(*args[0]))
                ours = (number, array(data)) if swap else (array(data), number)
                if reference is not None:
                    agree(reference, apply(*ours))


# --- special values ---------------------------------------------------------------------------

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30])
# Where the standard leaves the result open, or says "approximation".
OPEN = {"exp", "expm1", "sin", "cos", "tan", "sinh", "cosh"}


def same_special(reference: np.ndarray, actual: np.ndarray) -> None:
    """NaN, infinities and zeros with their signs; the rest near."""
    np.testing.assert_array_equal(np.isnan(reference), np.isnan(actual))
    np.testing.assert_allclose(actual, reference, rtol=1e-5, atol=1e-30)
    zero = reference == 0
    np.testing.assert_array_equal(np.signbit(reference[zero]), np.signbit(actual[zero]))


@pytest.mark.parametrize("name", [n for n in UNARY if n not in OPEN])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_one_array_are_the_standards(name: str, dtype: str):
    data = SPECIAL.astype(dtype)
    reference = expected(lambda: named(strict, name)(strict.asarray(data)))

    if reference is not None:
        same_special(np.asarray(reference), np.asarray(named(rnp, name)(array(data))))


@pytest.mark.parametrize("name", [n for n in BINARY if n != "nextafter"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_two_arrays_are_the_standards(name: str, dtype: str):
    x, y = np.meshgrid(SPECIAL.astype(dtype), SPECIAL.astype(dtype))
    reference = expected(lambda: named(strict, name)(strict.asarray(x), strict.asarray(y)))

    if reference is not None:
        same_special(np.asarray(reference), np.asarray(named(rnp, name)(array(x), array(y))))


# --- the rest of the functions ----------------------------------------------------------------

X = of_dtype("float64", (3, 4), 5)
SQUARE = X @ X.T + np.eye(3)
CALLS: dict[str, Callable[[Any, Callable[[np.ndarray], Any]], Any]] = {
    "arange": lambda xp, a: xp.arange(2, 9, 3, dtype=xp.int64),
    "linspace": lambda xp, a: xp.linspace(0.0, 1.0, 5, dtype=xp.float64, endpoint=False),
    "full": lambda xp, a: xp.full((2, 3), 7, dtype=xp.int16),
    "eye": lambda xp, a: xp.eye(3, 4, k=1, dtype=xp.float64),
    "meshgrid": lambda xp, a: xp.meshgrid(a(X[0]), a(X[1]), indexing="ij")[1],
    "tril": lambda xp, a: xp.tril(a(X), k=-1),
    "astype": lambda xp, a: xp.astype(a(X), xp.int32, copy=True),
    "concat": lambda xp, a: xp.concat([a(X), a(X)], axis=None),
    "stack": lambda xp, a: xp.stack([a(X), a(X)], axis=-1),
    "unstack": lambda xp, a: xp.unstack(a(X), axis=1)[2],
    "repeat": lambda xp, a: xp.repeat(a(X), 2, axis=1),
    "tile": lambda xp, a: xp.tile(a(X), (2, 1)),
    "roll": lambda xp, a: xp.roll(a(X), 2, axis=1),
    "flip": lambda xp, a: xp.flip(a(X), axis=0),
    "moveaxis": lambda xp, a: xp.moveaxis(a(X), 0, -1),
    "permute_dims": lambda xp, a: xp.permute_dims(a(X), (1, 0)),
    "expand_dims": lambda xp, a: xp.expand_dims(a(X), axis=1),
    "squeeze": lambda xp, a: xp.squeeze(a(X[:, :1]), axis=1),
    "reshape": lambda xp, a: xp.reshape(a(X), (4, -1), copy=True),
    "broadcast_to": lambda xp, a: xp.broadcast_to(a(X), (2, 3, 4)),
    "take": lambda xp, a: xp.take(a(X), a(np.array([2, 0])), axis=1),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a(X), a(np.array([[1], [0], [3]])), axis=1),
    "argmax": lambda xp, a: xp.argmax(a(X), axis=1, keepdims=True),
    "count_nonzero": lambda xp, a: xp.count_nonzero(a(X), axis=0),
    "nonzero": lambda xp, a: xp.nonzero(a(X > 0.5))[1],
    "searchsorted": lambda xp, a: xp.searchsorted(a(np.sort(X[0])), a(X[1]), side="right"),
    "where": lambda xp, a: xp.where(a(X > 0.5), a(X), a(-X)),
    "unique_values": lambda xp, a: xp.unique_values(a(np.array([3, 1, 3]))),
    "unique_counts": lambda xp, a: xp.unique_counts(a(np.array([3, 1, 3]))).counts,
    "unique_inverse": lambda xp, a: xp.unique_inverse(a(np.array([3, 1, 3]))).inverse_indices,
    "unique_all": lambda xp, a: xp.unique_all(a(np.array([3, 1, 3]))).indices,
    "sort": lambda xp, a: xp.sort(a(X), axis=0, descending=True, stable=True),
    "argsort": lambda xp, a: xp.argsort(a(X), axis=1, descending=True, stable=True),
    "cumulative_sum": lambda xp, a: xp.cumulative_sum(a(X), axis=1, include_initial=True),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a(X), axis=0),
    "sum of bytes": lambda xp, a: xp.sum(a(X), dtype=xp.float64, keepdims=True),
    "prod": lambda xp, a: xp.prod(a(X), axis=(0, 1)),
    "mean": lambda xp, a: xp.mean(a(X), axis=1),
    "std": lambda xp, a: xp.std(a(X), axis=1, correction=1.0),
    "var": lambda xp, a: xp.var(a(X), correction=0.5, keepdims=True),
    "max": lambda xp, a: xp.max(a(X), axis=-1),
    "min": lambda xp, a: xp.min(a(X), axis=0, keepdims=True),
    "all": lambda xp, a: xp.all(a(X), axis=0),
    "any": lambda xp, a: xp.any(a(X), keepdims=True),
    "diff": lambda xp, a: xp.diff(a(X), axis=0, n=2, prepend=a(X[:1])),
    "clip": lambda xp, a: xp.clip(a(X), min=0.4, max=a(X[0])),
    "matmul": lambda xp, a: xp.matmul(a(X), a(X.T)),
    "tensordot": lambda xp, a: xp.tensordot(a(X), a(X), axes=([0], [0])),
    "vecdot": lambda xp, a: xp.vecdot(a(X), a(X), axis=-2),
    "matrix_transpose": lambda xp, a: xp.matrix_transpose(a(X)),
    "linalg.cholesky": lambda xp, a: xp.linalg.cholesky(a(SQUARE), upper=True),
    "linalg.det": lambda xp, a: xp.linalg.det(a(SQUARE)),
    "linalg.eigh": lambda xp, a: xp.linalg.eigh(a(SQUARE)).eigenvalues,
    "linalg.eigvalsh": lambda xp, a: xp.linalg.eigvalsh(a(SQUARE)),
    "linalg.inv": lambda xp, a: xp.linalg.inv(a(SQUARE)),
    "linalg.matrix_norm": lambda xp, a: xp.linalg.matrix_norm(a(X), ord="nuc", keepdims=True),
    "linalg.matrix_power": lambda xp, a: xp.linalg.matrix_power(a(SQUARE), 3),
    "linalg.matrix_rank": lambda xp, a: xp.astype(xp.linalg.matrix_rank(a(X), rtol=1e-9), xp.int64),
    "linalg.pinv": lambda xp, a: xp.linalg.pinv(a(X)),
    "linalg.qr": lambda xp, a: xp.abs(xp.linalg.qr(a(X), mode="reduced").R),
    "linalg.slogdet": lambda xp, a: xp.linalg.slogdet(a(SQUARE)).logabsdet,
    "linalg.solve": lambda xp, a: xp.linalg.solve(a(SQUARE), a(X)),
    "linalg.svd": lambda xp, a: xp.linalg.svd(a(X), full_matrices=False).S,
    "linalg.svdvals": lambda xp, a: xp.linalg.svdvals(a(X)),
    "linalg.vector_norm": lambda xp, a: xp.linalg.vector_norm(a(X), axis=1, ord=3),
    "linalg.cross": lambda xp, a: xp.linalg.cross(a(SQUARE), a(SQUARE), axis=-2),
    "linalg.diagonal": lambda xp, a: xp.linalg.diagonal(a(X), offset=1),
    "linalg.outer": lambda xp, a: xp.linalg.outer(a(X[0]), a(X[1])),
    "linalg.trace": lambda xp, a: xp.linalg.trace(a(X), offset=1),
    "fft.fft": lambda xp, a: xp.fft.fft(a(X + 0j), n=6, axis=1, norm="ortho"),
    "fft.irfft": lambda xp, a: xp.fft.irfft(a(X + 0j), n=5, axis=0, norm="forward"),
    "fft.fftn": lambda xp, a: xp.fft.fftn(a(X + 0j), axes=(0, 1)),
    "fft.rfftn": lambda xp, a: xp.fft.rfftn(a(X)),
    "fft.hfft": lambda xp, a: xp.fft.hfft(a(X[0] + 0j)),
    "fft.fftshift": lambda xp, a: xp.fft.fftshift(a(X), axes=(1,)),
    "fft.fftfreq": lambda xp, a: xp.fft.fftfreq(5, d=0.5, dtype=xp.float64),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_the_standard_gives(name: str):
    reference = np.asarray(CALLS[name](strict, strict.asarray))

    result = np.asarray(CALLS[name](rnp, lambda x: array(x, x.dtype)))

    assert result.shape == reference.shape
    if reference.dtype.kind in "iu":  # counts and positions are i32 here
        np.testing.assert_array_equal(result, reference)
    else:
        agree_widely(reference, result)


def agree_widely(reference: np.ndarray, actual: np.ndarray) -> None:
    assert actual.dtype == reference.dtype
    np.testing.assert_allclose(actual, reference, rtol=1e-9, atol=1e-9)


# --- dtypes -----------------------------------------------------------------------------------


def test_result_types_are_the_standards_where_it_has_them():
    for one in NAMES:
        for other in NAMES:
            try:
                reference = strict.result_type(getattr(strict, one), getattr(strict, other))
            except TypeError:
                continue
            dtype = rnp.result_type(getattr(rnp, one), getattr(rnp, other))
            assert str(reference).rsplit(".", 1)[-1] == dtype.name


@pytest.mark.parametrize("name", NAMES)
def test_limits_of_dtypes_have_the_standards_names(name: str):
    dtype = np.dtype(name)
    if dtype.kind in "fc":
        limits = rnp.finfo(getattr(rnp, name))
        reference = np.finfo(dtype)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert float(getattr(limits, field)) == float(getattr(reference, field))
    elif dtype.kind in "iu":
        limits, reference = rnp.iinfo(getattr(rnp, name)), np.iinfo(dtype)
        assert (limits.bits, limits.min, limits.max) == (reference.bits, reference.min, reference.max)


@pytest.mark.parametrize("name", NAMES)
def test_kinds_of_dtypes_are_the_standards(name: str):
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")
    for kind in kinds:
        reference = strict.isdtype(getattr(strict, name), kind)
        assert rnp.isdtype(getattr(rnp, name), kind) == reference


# --- the array, and the description of the namespace ------------------------------------------


@pytest.mark.parametrize("version", [None, "2022.12", "2023.12", "2024.12", "2025.12"])
def test_an_array_returns_its_namespace(version: str | None):
    xp = rnp.ones(2).__array_namespace__(api_version=version)

    assert xp.ones(2).__array_namespace__() is xp
    assert (xp.float32, xp.pi, xp.linalg.__doc__) == (rnp.float32, rnp.pi, rnp.linalg.__doc__)
    assert rune.jit(lambda x: x.__array_namespace__().sum(x))(rnp.ones(2)) == 2


def test_a_missing_version_is_refused():
    with pytest.raises(ValueError, match="the namespace of version '2019"):
        rnp.ones(2).__array_namespace__(api_version="2019.01")


def test_the_namespace_reports_its_devices_and_dtypes():
    info = rnp.__array_namespace_info__()

    assert rnp.__array_api_version__ == "2025.12"
    assert info.default_device() == rnp.ones(2).device
    assert info.default_device() in info.devices()
    assert set(info.dtypes()) == set(NAMES)
    assert set(info.dtypes(kind=("bool", "unsigned integer"), device="cpu")) == {
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
    }
    for key in ("real floating", "complex floating", "integral", "indexing"):
        assert info.default_dtypes()[key] in dtypes.ANY
    assert info.default_dtypes()["real floating"] == rnp.ones(2).dtype
    with rune.enable_x64():
        assert info.default_dtypes()["integral"] == rnp.arange(2).dtype == np.int64


def test_capabilities_are_true():
    capabilities = rnp.__array_namespace_info__().capabilities()
    x = rnp.arange(4)

    assert capabilities["boolean indexing"]
    assert x[x > 1].tolist() == [2, 3]
    assert capabilities["data-dependent shapes"]
    assert rnp.unique_values(x % 2).tolist() == [0, 1]
    assert rnp.ones((1,) * capabilities["max dimensions"]).ndim == 64


CREATED: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda d: rnp.zeros(2, device=d),
    "ones": lambda d: rnp.ones(2, device=d),
    "empty": lambda d: rnp.empty(2, device=d),
    "full": lambda d: rnp.full(2, 1, device=d),
    "arange": lambda d: rnp.arange(2, device=d),
    "linspace": lambda d: rnp.linspace(0, 1, 2, device=d),
    "eye": lambda d: rnp.eye(2, device=d),
    "asarray": lambda d: rnp.asarray([1], device=d),
    "zeros_like": lambda d: rnp.zeros_like(rnp.ones(2), device=d),
    "full_like": lambda d: rnp.full_like(rnp.ones(2), 3, device=d),
    "astype": lambda d: rnp.astype(rnp.ones(2), rnp.int32, device=d),
    "from_dlpack": lambda d: rnp.from_dlpack(np.ones(2), device=d),
    "to_device": lambda d: rnp.ones(2).to_device(d),
}


@pytest.mark.parametrize("name", CREATED)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_arrays_are_made_on_the_requested_device(name: str, device: str):
    output = CREATED[name](device)

    assert output.device.target.backend == device
    assert output.committed
    assert output.device == output.to_device(output.device).device


BESIDE: dict[str, Callable[[Any], Any]] = {
    "zeros_like": rnp.zeros_like,
    "ones_like": rnp.ones_like,
    "empty_like": rnp.empty_like,
    "full_like": lambda x: rnp.full_like(x, 3),
    "nonzero": lambda x: rnp.nonzero(x)[0],
    "argwhere": rnp.argwhere,
    "unique_values": rnp.unique_values,
    "astype": lambda x: rnp.astype(x, rnp.int32),
    "asarray": lambda x: rnp.asarray(x, copy=True),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_an_array_made_like_another_is_on_its_device(name: str, device: str):
    x = rnp.asarray([1.0, 0.0], device=device)

    output = BESIDE[name](x)

    assert (output.device, output.committed) == (x.device, True)
    assert not BESIDE[name](rnp.asarray([1.0, 0.0])).committed


def test_an_array_that_must_not_be_copied_is_kept_or_refused():
    x = rnp.ones(2)

    assert rnp.asarray(x, copy=False) is x
    assert rnp.asarray(x, copy=True) is not x
    with pytest.raises(ValueError, match="asarray: cannot keep copy=False"):
        rnp.asarray(np.ones(2), copy=False)
    with pytest.raises(ValueError, match="asarray: cannot keep copy=False"):
        rnp.asarray(x, dtype="int8", copy=False)
