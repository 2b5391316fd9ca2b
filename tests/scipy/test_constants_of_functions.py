"""The constants of special functions: none is a denormal number in the dtype of its function.

An operation on a denormal number may take a processor hundreds of cycles, and the last terms of a
series that f64 needs would be denormal in f32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

import rune
import rune.numpy as rnp
from rune.errors import RuneError
from rune.scipy import special

_CONSTANT = re.compile(r"(-?[\d.]+(?:e[-+]\d+)?): f32")


def programs() -> Iterator[tuple[str, str]]:
    """The programs of all special functions of one or two f32 arrays."""
    x = rnp.zeros(7, "float32")
    functions = {name: value for name, value in vars(special).items() if callable(value) and name[0] != "_"}
    for name, function in functions.items():
        for count in (1, 2):
            try:
                yield name, str(rune.make_program(function)(*[x] * count))
            except (RuneError, TypeError):  # a function of more arguments, or of integers
                continue


def test_no_special_function_of_f32_has_a_denormal_constant():
    tiny = float(np.finfo(np.float32).tiny)
    texts = dict(programs())
    sizes = {name: [abs(float(c)) for c in _CONSTANT.findall(text)] for name, text in texts.items()}

    assert len(texts) > 40
    assert {name for name, constants in sizes.items() if any(0 < c < tiny * 0.999999 for c in constants)} == set()
