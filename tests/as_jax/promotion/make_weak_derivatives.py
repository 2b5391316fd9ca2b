"""Store which derivatives are weak in jax 0.10.2: of Python numbers, through each construct.

    python -m tests.as_jax.promotion.make_weak_derivatives > weak_derivatives_jax_0_10_2.txt

A line has an expression and the dtypes of its leaves, with `*` where one is weak.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.as_jax.promotion.make_promotion import text

CALLS = """
grad(jnp.sin)(2.0)
grad(jnp.sin)(s)
grad(jnp.sin)(np.float64(2.0))
grad(lambda x: x * s)(2.0)
grad(lambda x: x + s)(2.0)
grad(lambda x: x * x * x)(2.0)
grad(lambda x: x**2)(2.0)
grad(lambda x: jnp.sum(x * v))(2.0)
grad(lambda x: jnp.mean(jnp.array([x, x])))(2.0)
grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.full(3, 2.0))
grad(lambda x: x * h)(2.0)
grad(lambda x: jnp.linalg.det(jnp.eye(2) * x))(2.0)
grad(lambda x: s)(2.0)
grad(lambda x, y: y, argnums=(0, 1))(2.0, 3.0)
grad(lambda d: d['a'] * d['b'])({'a': 2.0, 'b': s})
grad(lambda x: lax.stop_gradient(x) * x)(2.0)
grad(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))(2.0)
grad(lambda x: lax.scan(lambda c, _: (c * x, c), x, None, length=3)[0])(2.0)
grad(lambda x: lax.scan(lambda c, y: (c * x, c), s, v)[0])(2.0)
grad(lambda x: lax.cond(x > 1, jnp.sin, jnp.cos, x))(2.0)
grad(jax.jit(jnp.sin))(2.0)
grad(jax.checkpoint(jnp.sin))(2.0)
grad(jax.nn.softplus)(2.0)
grad(jax.nn.relu)(2.0)
grad(grad(jnp.sin))(2.0)
jax.jit(grad(jnp.sin))(2.0)
jax.vmap(grad(jnp.sin))(v)
jax.value_and_grad(jnp.sin)(2.0)
jax.vjp(jnp.sin, 2.0)[1](1.0)
jax.vjp(jnp.sin, s)[1](1.0)
jax.jvp(jnp.sin, (2.0,), (1.0,))
jax.jvp(jnp.sin, (2.0,), (s,))
jax.jvp(jnp.sin, (s,), (1.0,))
jax.jvp(lambda x: s, (2.0,), (1.0,))
jax.jvp(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * x, 1.0), (2.0,), (1.0,))
jax.linearize(jnp.sin, 2.0)[1](1.0)
jax.linear_transpose(lambda x: 2 * x, 1.0)(3.0)
jax.jacfwd(jnp.sin)(2.0)
jax.jacrev(jnp.sin)(2.0)
jax.hessian(jnp.sin)(2.0)
""".split("\n")[1:-1]


def line(call: str) -> str:
    """The expression, and the dtypes of its leaves."""
    s, v, h = jnp.float32(3), jnp.arange(3.0), jnp.bfloat16(3)
    names: dict[str, Any] = {"jax": jax, "jnp": jnp, "lax": lax, "grad": jax.grad, "np": np}
    leaves = jax.tree.leaves(eval(call, {**names, "s": s, "v": v, "h": h}))
    return f"{call}: {' '.join(map(text, leaves))}"


if __name__ == "__main__":
    print(*map(line, CALLS), sep="\n")
