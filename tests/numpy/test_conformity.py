"""Conformity to the array API standard 2024.12 and 2025.12: names, signatures, dtypes and shapes.

array-api-strict is the list: no name may be missing, and each is called according to its signature,
on arrays of drawn shapes and dtypes, with drawn keywords. Results must be boxes of the dtype, shape
and values that strict gives; rune may define what strict refuses, never the other way round.

Source: https://data-apis.org/array-api/2024.12
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune.numpy.mutable_boxes import Box

VERSIONS = ("2024.12", "2025.12")
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
NUMBERS = [*INTEGERS, *FLOATS, *COMPLEX]
SHAPES = [(), (0,), (1,), (4,), (2, 3), (3, 1), (2, 0, 3), (2, 1, 3)]


@pytest.fixture(autouse=True)
def _as_strict_is() -> Iterator[None]:
    """Strict's defaults have 64 bits."""
    before = strict.get_array_api_strict_flags()["api_version"]
    strict.set_array_api_strict_flags(api_version="2025.12")
    with rune.enable_x64():
        yield
    strict.set_array_api_strict_flags(api_version=before)


def ours() -> Any:
    return rnp.ones(1).__array_namespace__(api_version="2024.12")


# --- names and signatures -------------------------------------------------------------------------


def functions(room: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions of strict that are the standard's, not helpers that it imports."""
    names = getattr(room, "__all__", dir(room))
    functions_in = {n: getattr(room, n) for n in names if not n.endswith("strict_flags")}
    return {n: f for n, f in functions_in.items() if inspect.isfunction(f) and n[0] != "_"}


ROOMS = {"": strict, "linalg": strict.linalg, "fft": strict.fft}
NAMES = [(room, name) for room, module in ROOMS.items() for name in functions(module)]
# Keywords that NumPy has with None for the standard's default.
SAME_DEFAULT = {"norm": "backward", "correction": 0.0, "keepdims": False}


def member(xp: Any, room: str, name: str) -> Any:
    return getattr(getattr(xp, room) if room else xp, name)


def is_taken(parameter: inspect.Parameter, position: int, signature: inspect.Signature) -> bool:
    """Whether a parameter of the standard can be given to a function of ours."""
    counterpart = signature.parameters.get(parameter.name)
    kinds = [p.kind for p in signature.parameters.values()]
    if parameter.kind is parameter.KEYWORD_ONLY:
        return parameter.VAR_KEYWORD in kinds or (counterpart is not None and counterpart.kind not in (0, 2))
    if parameter.kind is parameter.POSITIONAL_ONLY or parameter.kind is parameter.VAR_POSITIONAL:
        by_place = (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        places = [k for k in kinds if k in by_place]
        return len(places) > position or parameter.VAR_POSITIONAL in kinds
    return counterpart is not None and list(signature.parameters).index(parameter.name) == position


def is_same_default(parameter: inspect.Parameter, counterpart: inspect.Parameter | None) -> bool:
    if counterpart is None or parameter.default is parameter.empty or counterpart.default is counterpart.empty:
        return counterpart is None or parameter.default is parameter.empty
    default = getattr(parameter.default, "name", parameter.default)  # an enum for "not given"
    return counterpart.default in (parameter.default, None) and (
        counterpart.default == parameter.default or default in (SAME_DEFAULT.get(parameter.name), "UNDEF")
    )


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_a_function_of_the_standard_exists_and_takes_its_arguments(room: str, name: str):
    standard_signature = inspect.signature(member(strict, room, name))
    signature = inspect.signature(member(ours(), room, name))
    parameters = list(standard_signature.parameters.values())

    assert [p.name for i, p in enumerate(parameters) if not is_taken(p, i, signature)] == []
    required_names = [p.name for p in signature.parameters.values() if p.default is p.empty]
    assert len([n for n in required_names if signature.parameters[n].kind in (0, 1, 3)]) <= len(parameters)


@pytest.mark.parametrize(("room", "name"), NAMES)
def test_an_omitted_argument_has_the_default_of_the_standard(room: str, name: str):
    parameters = inspect.signature(member(strict, room, name)).parameters.values()
    parameters_of_ours = inspect.signature(member(ours(), room, name)).parameters
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]

    assert [p.name for p in keywords if not is_same_default(p, parameters_of_ours.get(p.name))] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_array_has_every_member_of_the_standards_array(version: str):
    strict.set_array_api_strict_flags(api_version=version)
    box = rnp.mutable(rnp.ones((2, 2), "int32"))
    members = [n for n in dir(strict.ones((2, 2), dtype=strict.int32)) if n not in OWN]

    assert [n for n in members if not hasattr(box, n)] == []


# Python's own, and strict's inner ones.
OWN = {
    *dir(object),
    "__module__",
    "__dict__",
    "__annotations__",
    "__buffer__",
    "__slots__",
    *(n for n in dir(strict.ones(1)) if n[0] == "_" and n[1] != "_"),
}


def test_the_namespace_has_the_standards_constants_dtypes_and_version():
    xp = ours()

    for name in ("e", "pi", "inf", "nan"):
        np.testing.assert_equal(getattr(xp, name), getattr(strict, name))
    assert xp.newaxis is None
    assert xp.__array_api_version__ >= "2024.12"
    assert all(getattr(xp, n) == getattr(np, n) for n in ["bool", *NUMBERS])


# --- what calls give ------------------------------------------------------------------------------

Draw = Callable[[st.SearchStrategy[Any]], Any]
Made = tuple[list[np.ndarray], dict[str, Any]]


def values(draw: Draw, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(draw(st.integers(0, 50)))
    integers = rng.integers(0, 2 if dtype == "bool" else 9, shape)
    part = rng.integers(-4, 5, shape) / 4 if dtype in (*FLOATS, *COMPLEX) else 0
    imaginary = 1j * rng.integers(-4, 5, shape) if dtype in COMPLEX else 0
    return np.asarray(integers + part + imaginary).astype(dtype)


def one(draw: Draw, dtypes: list[str], least: int = 0) -> np.ndarray:
    shape = draw(st.sampled_from([s for s in SHAPES if len(s) >= least]))
    return values(draw, shape, draw(st.sampled_from(dtypes)))


def an_axis(draw: Draw, x: np.ndarray) -> int:
    return draw(st.integers(-x.ndim, x.ndim - 1))


def axes(draw: Draw, x: np.ndarray) -> Any:
    """None, one axis, or several."""
    if not x.ndim:
        return None
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, max_size=x.ndim).map(tuple)
    return draw(st.none() | st.integers(-x.ndim, x.ndim - 1) | several)


def reduction(dtypes: list[str], **more: st.SearchStrategy[Any]) -> Callable[[Draw], Made]:
    def arguments(draw: Draw) -> Made:
        x = one(draw, dtypes)
        options = {k: draw(s) for k, s in more.items()}
        return [x], {"axis": axes(draw, x), "keepdims": draw(st.booleans()), **options}

    return arguments


def along(dtypes: list[str], **more: st.SearchStrategy[Any]) -> Callable[[Draw], Made]:
    def arguments(draw: Draw) -> Made:
        x = one(draw, dtypes, least=1)
        return [x], {"axis": an_axis(draw, x), **{k: draw(s) for k, s in more.items()}}

    return arguments


def plain(dtypes: list[str], least: int = 0) -> Callable[[Draw], Made]:
    return lambda draw: ([one(draw, dtypes, least)], {})


def pair(dtypes: list[str]) -> Callable[[Draw], Made]:
    """Two arrays that broadcast, of dtypes that the standard promotes."""

    def arguments(draw: Draw) -> Made:
        shapes = draw(st.sampled_from([((2, 3), (3,)), ((), (4,)), ((2, 1), (1, 3)), ((0,), (1,))]))
        kinds = draw(st.sampled_from([INTEGERS[:4], INTEGERS[4:], FLOATS, FLOATS + COMPLEX]))
        fit = [d for d in kinds if d in dtypes] or dtypes[:1]
        x, y = (values(draw, s, draw(st.sampled_from(fit))) for s in shapes)
        return [x, y], {}

    return arguments


def of_matrices(dtypes: list[str], square: bool = False, **more: Any) -> Callable[[Draw], Made]:
    def arguments(draw: Draw) -> Made:
        shape = draw(st.sampled_from([(3, 3), (2, 3, 3)] if square else [(3, 2), (2, 2, 4)]))
        x = values(draw, shape, draw(st.sampled_from(dtypes)))
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + 9 * np.eye(3, dtype=x.dtype) if square else x
        return [x], {k: draw(s) for k, s in more.items()}

    return arguments


def transform(real: bool) -> Callable[[Draw], Made]:
    def arguments(draw: Draw) -> Made:
        x = values(draw, (3, 4), draw(st.sampled_from(FLOATS if real else COMPLEX)))
        norm = draw(st.sampled_from(["backward", "ortho", "forward"]))
        return [x], {"n": draw(st.sampled_from([None, 3, 6])), "axis": an_axis(draw, x), "norm": norm}

    return arguments


REAL = [*INTEGERS, *FLOATS]
ANY = ["bool", *NUMBERS]
INEXACT = [*FLOATS, *COMPLEX]
bools = st.booleans()
CALLS: dict[str, Callable[[Draw], Made]] = {
    **dict.fromkeys("abs negative positive square sign".split(), plain(NUMBERS)),
    **dict.fromkeys("ceil floor round trunc".split(), plain(REAL)),
    **dict.fromkeys("isfinite isinf isnan".split(), plain(NUMBERS)),
    **dict.fromkeys("exp expm1 sin cos tan sinh cosh tanh asinh atan sqrt".split(), plain(INEXACT)),
    **dict.fromkeys("conj real imag".split(), plain(COMPLEX)),
    **dict.fromkeys("logical_not".split(), plain(["bool"])),
    **dict.fromkeys("bitwise_invert".split(), plain(["bool", *INTEGERS])),
    **dict.fromkeys("add multiply subtract equal not_equal".split(), pair(NUMBERS)),
    **dict.fromkeys("less less_equal greater greater_equal maximum minimum".split(), pair(REAL)),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), pair(INTEGERS)),
    **dict.fromkeys("atan2 copysign hypot logaddexp".split(), pair(FLOATS)),
    "sum": reduction(NUMBERS),
    "prod": reduction(NUMBERS),
    "mean": reduction(INEXACT),
    **dict.fromkeys(["std", "var"], reduction(FLOATS, correction=st.sampled_from([0, 1.0, 0.5]))),
    **dict.fromkeys(["all", "any"], reduction(ANY)),
    "count_nonzero": reduction(ANY),
    **dict.fromkeys(["max", "min", "argmax", "argmin"], along(REAL, keepdims=bools)),
    **dict.fromkeys(["cumulative_sum", "cumulative_prod"], along(NUMBERS, include_initial=bools)),
    **dict.fromkeys(["sort", "argsort"], along(REAL, descending=bools, stable=st.just(True))),
    "flip": along(ANY),
    "unstack": along(ANY),
    "roll": along(ANY, shift=st.integers(-5, 5)),
    "diff": along(NUMBERS, n=st.integers(0, 2)),
    "repeat": along(ANY, repeats=st.integers(0, 3)),
    "matrix_transpose": plain(ANY, least=2),
    "nonzero": plain(ANY, least=1),
    "tril": plain(NUMBERS, 2),
    "triu": plain(NUMBERS, 2),
    **dict.fromkeys(["zeros_like", "ones_like"], plain(ANY)),
    **dict.fromkeys(["unique_values", "unique_counts", "unique_inverse"], plain(REAL)),
    "linalg.cholesky": of_matrices(INEXACT, True, upper=bools),
    **dict.fromkeys(["linalg.det", "linalg.inv", "linalg.eigvalsh"], of_matrices(INEXACT, True)),
    **dict.fromkeys(["linalg.slogdet", "linalg.trace"], of_matrices(INEXACT, True)),
    "linalg.matrix_power": of_matrices(INEXACT, True, n=st.integers(-2, 3)),
    "linalg.svdvals": of_matrices(FLOATS),
    "linalg.pinv": of_matrices(FLOATS),
    "linalg.matrix_norm": of_matrices(FLOATS, ord=st.sampled_from(["fro", "nuc", 1, 2, np.inf])),
    "linalg.diagonal": of_matrices(ANY, offset=st.integers(-1, 2)),
    "linalg.vector_norm": reduction(FLOATS, ord=st.sampled_from([0, 1, 2, 3, np.inf, -np.inf])),
    **dict.fromkeys(["fft.fft", "fft.ifft", "fft.hfft", "fft.irfft"], transform(False)),
    **dict.fromkeys(["fft.rfft", "fft.ihfft"], transform(True)),
}


def called(xp: Any, name: str, make: Made) -> Any:
    room, _, last = name.rpartition(".")
    arrays, keywords = make
    if last in ("roll", "repeat", "matrix_power"):  # the standard has these by position
        first = next(k for k in keywords if k in ("shift", "repeats", "n"))
        keywords = {k: v for k, v in keywords.items() if k != first}
        return member(xp, room, last)(*map(xp.asarray, arrays), make[1][first], **keywords)
    return member(xp, room, last)(*map(xp.asarray, arrays), **keywords)


def parts(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=4)
@given(data=st.data())
def test_a_call_gives_boxes_of_the_dtype_shape_and_values_of_the_standard(name: str, data: Any):
    arguments = CALLS[name](data.draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of empty means and logarithms of zero
        try:
            reference = called(strict, name, arguments)
        except (TypeError, ValueError, IndexError, np.exceptions.AxisError):
            return  # not of the standard
        results = called(ours(), name, arguments)

    assert len(parts(results)) == len(parts(reference))
    for part, reference_part in zip(parts(results), parts(reference)):
        assert isinstance(part, Box)
        expected, result = np.asarray(reference_part), np.asarray(part)
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape), (name, arguments)
        limit = 2e-4 if expected.dtype in (np.float32, np.complex64) else 1e-10
        np.testing.assert_allclose(result, expected, rtol=limit, atol=limit)
