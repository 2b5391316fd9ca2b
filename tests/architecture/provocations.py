"""Calls that raise: the error of a call as a user would write it, and how golden texts show it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import ops
from rune.transforms.programs.make_program import parse_program
from tests.support.arrays import array
from tests.support.close import same


def custom_jvp(rule: Any, function: Any = lambda v: v) -> Any:
    """A function with a forward rule."""
    operation = rune.custom_jvp(function)
    operation.defjvp(rule)
    return operation


def custom_vjp(bwd: Any) -> Any:
    """A function of a tree with a reverse rule."""
    operation = rune.custom_vjp(lambda p: p["a"])
    operation.defvjp(lambda p: (p["a"], None), bwd)
    return operation


def namespace() -> dict[str, Any]:
    """The names that the calls use."""
    return {
        "rune": rune,
        "rnp": rnp,
        "ops": ops,
        "np": np,
        "kept": [],
        "parse_program": parse_program,
        "x": array([1.0, 2.0, 3.0]),
        "given": array([1.0]),
        "custom_jvp": custom_jvp,
        "custom_vjp": custom_vjp,
        "scalar": rune.ShapeDtypeStruct((), "f32"),
    }


def provoke(code: str, names: Mapping[str, Any] | None = None) -> Exception:
    """The error that a call raises; `names` are names that it uses in addition to the common
    ones."""
    linecache.cache["call.py"] = (len(code), None, [code + "\n"], "call.py")
    with pytest.raises(Exception) as error:  # noqa: PT011 - every class, shown in the golden text
        exec(compile(code, "call.py", "exec"), {**namespace(), **(names or {})})
    assert isinstance(error.value, rune.errors.RuneError), error.value
    return error.value


def report(error: Exception) -> str:
    """The class and the message; numbers of bytes and names of devices depend on the machine."""
    message = re.sub(r"\d+ B\b", "N B", str(error))
    buffer_list = r"; largest live buffers: [^()]* \([^()]*\)(, [^()]* \([^()]*\))*"  # by other tests
    message = re.sub(buffer_list, "", message)
    message = re.sub(r"\(there are .*\)", "(there are ...)", message)
    return f"{type(error).__name__}: {message}"


def golden_text(calls: Sequence[tuple[str, str]], names: Mapping[str, Any] | None = None) -> str:
    """A title, the call and its error, for each (title, call)."""
    return "\n".join(f"== {title}\n{code}\n{report(provoke(code, names))}\n" for title, code in calls)


def has_the_form_of_the_grammar(message: str) -> None:
    """Whether a message has the operation, what it cannot do, and somewhere below the call's
    line."""
    lines = message.splitlines()
    assert re.match(r"[\w .]+: (cannot|found) .*", lines[0]), lines[0]
    assert any(line.startswith("at call.py:1") or "made at call.py:1" in line for line in lines)


def works_as_before() -> None:
    """A derivative and compiled code still work after an error."""
    x = array([1.0, 2.0])
    same(np.array([2.0, 4.0], np.float32), rune.jit(rune.grad(lambda v: (v * v).sum()))(x))
