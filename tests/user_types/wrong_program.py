"""Mistakes that checkers must find in a user's program: one in each line with a comment."""

import rune
import rune.numpy as rnp
from rune import Array


def scaled(x: Array, by: float) -> Array:
    return x * by


rune.jit(scaled)(rnp.ones(3), "two")  # mistake
rune.vmap(scaled, in_axes=(0, None))(rnp.ones(3), by=None)  # mistake
rnp.sin("x")  # mistake
rnp.ones(3).no_such_method()  # mistake
rnp.no_such_function(1.0)  # mistake
number: int = rnp.sum(rnp.ones(3))  # mistake
print(rnp.linalg.svd(rnp.ones((2, 2)), compute_uv=False).S)  # mistake
values, counts, inverse = rnp.unique(rnp.ones(3), return_counts=True)  # mistake
a, b, c = rune.grad(scaled, argnums=(0, 1))(rnp.ones(3), 2.0)  # mistake
print(rune.scan(lambda carry, x: (carry, x), 0.0, rnp.ones(3)).shape)  # mistake
rune.cond(True, rnp.sin, rnp.cos, 1.0).no_such_method()  # mistake


@rune.custom_vjp
def root(x: Array) -> Array:
    return rnp.sqrt(x)


root(rnp.ones(3), "x")  # mistake
print(rune.scan(lambda c, x: (c + x, c.no_such_method()), rnp.ones(3), rnp.ones((2, 3))))  # mistake
text: str = rnp.ones(3).shape[0]  # mistake
