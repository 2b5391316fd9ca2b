"""Static data of trees that has no hash: a dict as aux_data, the pattern of JAX's own pages.

It is compared by ==, under every transformation; what changes it later changes no key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree


@tree.register_node_class
class Scaled:
    def __init__(self, x: Any, aux: dict[str, Any]):
        self.x, self.aux = x, aux

    def tree_flatten(self) -> Any:
        return (self.x,), self.aux

    @classmethod
    def tree_unflatten(cls, aux: Any, children: tuple[Any, ...]) -> Scaled:
        (x,) = children
        return cls(x, aux)


def scaled(s: Scaled) -> Scaled:
    return Scaled(s.x * s.aux["mul"], s.aux)


def one(mul: Any = 3.0) -> Scaled:
    return Scaled(rnp.ones(2), {"mul": mul})


USES: dict[str, tuple[Any, float]] = {
    "jit": (lambda: rune.jit(scaled)(one()).x, 3.0),
    "grad": (lambda: rune.grad(lambda s: rnp.sum(scaled(s).x))(one()).x, 3.0),
    "vmap": (lambda: rune.vmap(scaled)(one()).x, 3.0),
    "jvp": (lambda: rune.jvp(scaled, (one(),), (one(),))[1].x, 3.0),
    "scan": (lambda: rune.scan(lambda c, _: (scaled(c), None), one(), None, 2)[0].x, 9.0),
    "while": (lambda: rune.while_loop(lambda s: s.x[0] < 9, scaled, one()).x, 9.0),
    "cond": (lambda: rune.cond(True, scaled, lambda s: s, one()).x, 3.0),
    "checkpoint": (lambda: rune.checkpoint(scaled)(one()).x, 3.0),
    "map": (lambda: tree.map(lambda a, b: a + 2 * b, one(), one()).x, 3.0),
}


@pytest.mark.parametrize("name", USES)
def test_a_dict_is_static_data(name: str):
    call, expected = USES[name]

    assert [*np.asarray(call())] == [expected, expected]


def test_equal_data_is_traced_once_and_other_data_again():
    f = rune.jit(scaled)
    with rune.counting() as counts:
        values = [float(f(one(mul)).x[0]) for mul in (2.0, 3.0, 2.0, 3.0, 2.0)]

    assert (values, counts.traces) == ([2.0, 3.0, 2.0, 3.0, 2.0], 2)


def test_data_that_is_changed_in_place_is_other_data():
    f, aux = rune.jit(scaled), {"mul": 2.0}
    for _ in range(4):
        f(Scaled(rnp.ones(2), aux))
    aux["mul"] = 5.0

    assert float(f(Scaled(rnp.ones(2), aux)).x[0]) == 5.0


def test_data_that_cannot_be_compared_is_refused_in_words():
    f = rune.jit(lambda s: s.x)
    f(one(np.ones(2)))

    with pytest.raises(rune.errors.ArgumentError, match="cannot compare static data"):
        f(one(np.ones(2)))
