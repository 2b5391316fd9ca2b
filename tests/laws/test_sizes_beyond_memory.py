"""A size that exceeds all memory, or is negative, is refused at once, by name.

Every public function with an integer parameter, according to its signature, is called with huge
integers. It must end within a minute of processor time, where work of that size would never end,
and if it needs only integers, the error must be rune's.
"""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rune.numpy as rnp
from docs.rooms import members
from rune.errors import ArgumentError, OutOfMemory, RuneError
from rune.scipy import linalg, special
from rune.scipy import signal as signals

HUGE = (2**70, 2**63)
SECONDS = 60.0  # of work in this process: no slow machine needs them, and no loop of 2**63 rounds ends in them
PLACES = frozenset({"axis", "axis1", "axis2", "axisa", "axisb", "axisc", "start_axis", "k", "seed"})
# Orders of functions, which are values, and a loop that users ask for.
VALUES = frozenset({"eval_chebyt", "eval_legendre", "eval_hermite", "eval_laguerre"})


class TooLong(Exception):
    """The work took longer than it may."""


def _stop(*_: Any) -> None:
    raise TooLong


def takes_integer(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is declared as an integer, and is not the number of an axis."""
    annotation = str(parameter.annotation).replace(" ", "")
    return annotation in ("int", "int|None") and parameter.name not in PLACES


def signature(function: Any) -> list[inspect.Parameter]:
    """The parameters of a public function; none if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def calls(function: Any) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """The parameter that is huge, all arguments, and whether these are integers alone."""
    parameters = signature(function)
    required_parameters = [p for p in parameters if p.default is p.empty]
    for parameter in filter(takes_integer, parameters):
        for size in HUGE:
            arguments = {p.name: 2 if takes_integer(p) else rnp.ones((2, 3)) for p in required_parameters}
            alone = all(map(takes_integer, required_parameters)) and parameter in required_parameters
            yield parameter.name, {**arguments, parameter.name: size}, alone


def called(function: Callable[..., Any], parameters: dict[str, Any]) -> BaseException | None:
    """The error of a call; TooLong if it does not end."""
    positional = [p.name for p in signature(function) if p.kind is p.POSITIONAL_ONLY]
    keywords = {name: value for name, value in parameters.items() if name not in positional}
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        function(*(parameters[name] for name in positional if name in parameters), **keywords)
    except Exception as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return None


FUNCTIONS = {
    f"{place}.{name}": function
    for place, name, function in members()
    if callable(function)
    and not inspect.isclass(function)
    and name not in VALUES
    and any(map(takes_integer, signature(function)))
}
ROOMS = sorted({name.rpartition(".")[0] for name in FUNCTIONS})


@pytest.mark.parametrize("room", ROOMS)
def test_an_integer_beyond_all_memory_ends_at_once(room: str):
    wrong = []
    for name, function in FUNCTIONS.items():
        for parameter, arguments, alone in calls(function) if name.rpartition(".")[0] == room else ():
            error = called(function, arguments)
            silent = error is not None and not isinstance(error, RuneError | OverflowError)
            if isinstance(error, TooLong) or (alone and silent):
                wrong.append(f"{name}({parameter}={arguments[parameter]}): {error!r}")

    assert wrong == []


OF_A_SIZE: dict[str, Callable[[int], Any]] = {
    "pascal": linalg.pascal,
    "invpascal": linalg.invpascal,
    "invhilbert": linalg.invhilbert,
    "hilbert": linalg.hilbert,
    "hadamard": linalg.hadamard,
    "dft": linalg.dft,
    "helmert": linalg.helmert,
    "bernoulli": special.bernoulli,
    "hann": signals.windows.hann,
    "tril_indices": rnp.tril_indices,
}


@pytest.mark.parametrize("size", [2**70, 2**63, 2**40])
@pytest.mark.parametrize("name", OF_A_SIZE)
def test_an_array_larger_than_memory_raises_out_of_memory(name: str, size: int):
    (parameter, *_) = signature(OF_A_SIZE[name])

    error = called(OF_A_SIZE[name], {parameter.name: size})

    assert isinstance(error, OutOfMemory)
    assert str(error).startswith(f"{name}: cannot allocate")


@pytest.mark.parametrize("name", OF_A_SIZE)
def test_a_negative_size_is_refused_by_name(name: str):
    with pytest.raises(ArgumentError, match=f"{name}: cannot"):
        OF_A_SIZE[name](-1)


def test_more_differences_than_there_are_elements_leave_none():
    assert rnp.diff(rnp.arange(3), n=2**70).shape == (0,)
