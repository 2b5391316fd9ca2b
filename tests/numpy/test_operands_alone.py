"""Options of NumPy's ufuncs are refused by name, with what to write instead."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import rune.numpy as rnp
from rune.errors import ArgumentError

OPTIONS = {"out": rnp.zeros(3), "where": rnp.ones(3, bool), "dtype": np.float32, "casting": "unsafe", "order": "F"}


def elementwise() -> list[str]:
    """The functions that are ufuncs in NumPy."""
    names = [n for n in dir(rnp) if isinstance(getattr(np, n, None), np.ufunc)]
    assert len(names) > 100
    return names


def operands(name: str) -> list[rnp.ndarray]:
    """The number of arrays that the function takes, of integers if it accepts nothing else."""
    ufunc = getattr(np, name)
    takes_floats = not ufunc.types or any(t[0] == "f" for t in ufunc.types)
    return [rnp.ones((3, 3), "float32" if takes_floats else "int32")] * ufunc.nin


def parameters(function: object) -> dict[str, inspect.Parameter]:
    """The parameters of a function; none if it has no signature."""
    try:
        return dict(inspect.signature(function).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}


def with_out() -> list[str]:
    """The functions that have out= in NumPy."""
    names = [n for n in dir(rnp) if "out" in parameters(getattr(np, n, None))]
    assert len(names) > 20
    return names


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", elementwise())
def test_an_elementwise_function_refuses_it(name: str, option: str):
    function = getattr(rnp, name)
    with pytest.raises(ArgumentError) as error:
        function(*operands(name), **{option: OPTIONS[option]})
    lines = str(error.value).splitlines()
    assert f"{option}=" in lines[0]
    assert "unexpected keyword" not in lines[0]


@pytest.mark.parametrize("name", with_out())
def test_out_is_refused_wherever_numpy_has_it(name: str):
    operands = [
        p for p in parameters(getattr(np, name)).values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    with pytest.raises(ArgumentError, match="out="):
        getattr(rnp, name)(*[rnp.ones(3)] * len(operands), out=rnp.zeros(3))


@pytest.mark.parametrize(
    ("option", "hint"),
    [("out", "y = y.at[...].set(rune.numpy.sin(...))"), ("where", "rune.numpy.where("), ("dtype", ".astype(dtype)")],
)
def test_the_error_names_what_to_write_instead(option: str, hint: str):
    with pytest.raises(ArgumentError) as error:
        rnp.sin(rnp.ones(3), **{option: OPTIONS[option]})
    first, second, *_ = str(error.value).splitlines()
    assert first.startswith("sin: cannot ")
    assert second.startswith("hint: ")
    assert hint in second


def test_another_keyword_is_pythons_to_refuse():
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        rnp.sin(rnp.ones(3), speed=2)  # pyright: ignore[reportCallIssue]


def test_the_signature_is_that_of_the_operands():
    assert str(inspect.signature(rnp.sin)).startswith("(x: 'ArrayLike', /)")


def test_numpy_writes_a_function_of_our_array_into_its_own():
    out = np.zeros(3, np.float32)
    np.sin(rnp.ones(3), out=out)
    assert out.tolist() == np.sin(np.ones(3, np.float32)).tolist()
