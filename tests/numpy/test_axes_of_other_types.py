"""An axis that is not an integer is a TypeError, as in NumPy and JAX."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp

X = np.arange(15.0, dtype=np.float32).reshape(3, 5)
CALLS = {
    "sum": lambda np, x, axis: np.sum(x, axis=axis),
    "cumsum": lambda np, x, axis: np.cumsum(x, axis=axis),
    "moveaxis": lambda np, x, axis: np.moveaxis(x, axis, 0),
    "concatenate": lambda np, x, axis: np.concatenate([x, x], axis=axis),
    "stack": lambda np, x, axis: np.stack([x, x], axis=axis),
    "expand_dims": lambda np, x, axis: np.expand_dims(x, axis),
    "sort": lambda np, x, axis: np.sort(x, axis=axis),
    "argmax": lambda np, x, axis: np.argmax(x, axis=axis),
    "flip": lambda np, x, axis: np.flip(x, axis=axis),
}


@pytest.mark.parametrize("axis", [0.5, 1.0, "x"], ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_an_axis_of_another_type_is_a_type_error(name, axis):
    call = CALLS[name]

    for module, wrap in ((np, lambda f: f), (rnp, lambda f: f), (rnp, rune.jit)):
        with pytest.raises(TypeError):
            wrap(lambda x, module=module: call(module, x, axis))(X)
