"""Programs with an impossible step: eager, jit and eval_shape refuse it with the same class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import rune
from tests.fuzzing import generate
from tests.fuzzing.compare import Difference
from tests.fuzzing.program import Program, Step

MISTAKES = """
{x}.reshape((3, -1, 7, 11))
{x}.reshape((-1, -1))
rnp.sum({x}, 7)
rnp.sum({x}, (0, 0))
rnp.transpose({x}, (0, 0))
{x} @ rnp.ones((97, 2))
rnp.concatenate([{x}, {x}], 9)
rnp.concatenate([{x}, rnp.ones((2, 3, 1, 2, 1))])
rnp.stack([{x}, rnp.ones((97, 97))])
{x} + rnp.ones((97,))
rnp.broadcast_to({x}, (97, 89))
rnp.diagonal({x}, 0, 1, 1)
rnp.einsum('ab->abc', {x})
rnp.einsum('aab,c', {x}, {x})
lax.dynamic_slice({x}, (0,) * 7, (1,) * 7)
rnp.max({x}[:0])
rnp.sort({x}, 8)
rnp.argmax({x}, 5)
lax.top_k({x}, 10000)
rnp.take({x}, rnp.array([0]), 8)
{x}[0, 0, 0, 0, 0, 0]
{x}[rnp.ones(3)]
rnp.split({x}, 97)
rnp.pad({x}, ((1,), (2,), (3,), (4,)))
lax.scan(lambda c, r: (r, c), {x}, rnp.ones((3, 97)))
lax.fori_loop(0, 3, lambda i, s: s[None], {x})
lax.while_loop(lambda s: s, lambda s: s, {x})
lax.cond(True, lambda s: s, lambda s: s[None], {x})
lax.add({x}, rnp.ones((97,), {x}.dtype))
lax.conv_general_dilated({x}, {x}, (1,), 'SAME')
rnp.nanmedian(rnp.vdot({x}, {x}), axis=None, keepdims=True)
rnp.linalg.inv({x})
rnp.linalg.cholesky({x})
rnp.quantile({x}, 2.0)
rnp.squeeze({x}, 0)
rnp.roll({x}, 1, 9)
rnp.tensordot({x}, {x}, 9)
rnp.median({x}, 9)
{x}.at[0, 0, 0, 0, 0, 0].set(1)
rnp.cumsum({x}, 6)
rnp.take_along_axis({x}, rnp.zeros((1,) * 7, int), 0)
rnp.moveaxis({x}, 0, 9)
{x}.astype('nonsense')
rnp.repeat({x}, -1)
rnp.searchsorted(rnp.ones((2, 2)), {x})
rnp.cross({x}, {x})
rnp.trace({x}, 0, 0, 0)
~{x}
{x} & {x}
-{x}
{x} - {x}
{x} << 1
{x} // 2
rnp.sign({x})
{x} % 2
""".strip().splitlines()


def mistaken(seed: int) -> Program:
    """A program whose last step may be impossible."""
    program, rng = generate.draw(seed), np.random.default_rng(seed + 2)
    known = [n for n in program.names() if n not in program.results] + list(program.results)
    text = str(rng.choice(MISTAKES)).format(x=rng.choice(known))
    name = f"v{len(program.names())}"
    return Program(program.inputs, (*program.steps, Step((name,), text)), (name,))


def _outcome(call: Callable[[], Any]) -> Any:
    """The types and shapes of the results, or the class of the error."""
    try:
        result = call()
    except Exception as error:
        return type(error)
    return [(y.dtype.name, y.shape) for y in rune.tree.leaves(result)]


def refused_alike(program: Program, seed: int) -> None:
    """The same class of error everywhere, or none anywhere."""
    args, f = program.arguments(seed), program.function()
    eager_outcome = _outcome(lambda: f(*args))
    outcomes = {
        "jit": _outcome(lambda: rune.jit(f)(*args)),
        "eval_shape": _outcome(lambda: rune.eval_shape(f, *args)),
        "jit, on reference": _outcome(lambda: rune.jit(f, device="reference:0")(*args)),
    }
    for way, outcome in outcomes.items():
        if outcome != eager_outcome:
            raise Difference(f"{way} ends with {outcome}, eager with {eager_outcome}")
