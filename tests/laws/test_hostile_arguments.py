"""Every public name is called with unusable arguments: the error is rune's, or one for values.

Arguments are texts, None, objects, functions, keys, huge and negative numbers, empty and wrong
arrays; in half of the calls one of them stands among good ones. AttributeError, IndexError,
KeyError, AssertionError and RecursionError tell the caller nothing, and are failures here. The name
of a function determines its calls; RUNE_TEST_WHOLE=1 makes many.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from docs.rooms import members
from rune.errors import RuneError
from tests.support.sampling import IS_WHOLE

TRIES = 20 if IS_WHOLE else 1
LEAKS = (AttributeError, LookupError, AssertionError, RecursionError, UnboundLocalError)
# They write files, describe the process or change its settings.
NOT_CALLED = frozenset(
    """
    check_tracer_leaks checking_leaks clear_backends clear_caches configure debug_infs debug_nans default_device device
    disable_jit doctor enable_x64 initialize log_compiles measure_devices numpy_dtype_promotion numpy_rank_promotion
    pass_over print register_static save save_checkpoint savetxt savez savez_compressed set_mesh set_printoptions
    shutdown start_server start_trace stop_trace trace
    """.split()
)


def values() -> dict[str, Any]:
    return {
        "None": None,
        "text": "text",
        "object": object(),
        "[]": [],
        "[1, 2]": [1.0, 2.0],
        "f32[]": rnp.float32(2),
        "f32[2,3]": rnp.ones((2, 3)),
        "i32[3]": rnp.arange(3),
        "bool[2]": rnp.ones(2, bool),
        "c64[2]": rnp.ones(2, "complex64"),
        "2**70": 2**70,
        "-1": -1,
        "{}": {},
        "()": (),
        "function": lambda *_: None,
        "object[1]": np.array(["x"], object),
        "f32[0,3]": rnp.zeros((0, 3)),
        "key": rune.random.key(0),
        "1.5": 1.5,
    }


GOOD = ("f32[2,3]", "i32[3]", "f32[]")
CALLED = [
    (place, name, member)
    for place, name, member in members()
    if callable(member)
    and name not in NOT_CALLED
    and not (inspect.isclass(member) and issubclass(member, BaseException))
]


def drawn(function: Any, draw: random.Random) -> tuple[list[str], dict[str, str]]:
    """Names of values for the arguments that must be given, and perhaps for another one."""
    parameters = inspect.signature(function).parameters.values()
    known = list(values())
    count = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    count += any(p.kind is p.VAR_POSITIONAL for p in parameters) and draw.randrange(3)
    arguments = [draw.choice(known if draw.random() < 0.5 else GOOD) for _ in range(count)]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    free = [p.name for p in parameters if p.default is not p.empty and p.kind in by_name]
    keywords = {draw.choice(free): draw.choice(known)} if free and draw.random() < 0.5 else {}
    return arguments, keywords


def leaks(place: str, name: str, function: Any) -> Iterator[str]:
    """The calls whose error tells the caller nothing."""
    draw = random.Random(f"{place}.{name}")
    for _ in range(TRIES):
        arguments, keywords = drawn(function, draw)
        known = values()
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(*map(known.get, arguments), **{k: known[v] for k, v in keywords.items()})
        except RuneError:
            pass
        except LEAKS as error:
            call = f"{place}.{name}({', '.join(arguments)}, {keywords})"
            yield f"{call}: {type(error).__name__}: {error}"
        except Exception:  # another of Python's, as TypeError
            pass


@pytest.mark.parametrize("room", sorted({place for place, _, _ in CALLED}))
def test_unusable_arguments_raise_errors_that_explain_themselves(room: str):
    raw_errors: list[str] = []
    for place, name, function in CALLED:
        with contextlib.suppress(ValueError):  # no signature
            raw_errors += leaks(place, name, function) if place == room else ()

    assert raw_errors == []
