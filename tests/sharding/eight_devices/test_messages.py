"""Several collectives in one message give what each gives alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import P, make_mesh

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(8, 5)).astype("f")
Z = (DRAW.normal(size=(8, 3)) + 1j * DRAW.normal(size=(8, 3))).astype("c8")
COUNTS = DRAW.integers(100, size=(8, 2, 8)).astype("i4")

KINDS = {
    "psum": lambda x: lax.psum(x, "a"),
    "psum_in_groups": lambda x: lax.psum(x, "a", axis_index_groups=[[0, 2, 4], [1, 3, 5, 6, 7]]),
    "ppermute": lambda x: lax.ppermute(x, "a", [(0, 3), (3, 1), (5, 5)]),
    "all_gather": lambda x: lax.all_gather(x, "a"),
    "all_to_all": lambda x: lax.all_to_all(rnp.stack([x * k for k in range(8)]), "a", 0, 1),
    "psum_scatter": lambda x: lax.psum_scatter(rnp.stack([x * k for k in range(8)]), "a"),
}


def on_eight(body: Any) -> Any:
    specs = P("a")
    return rune.jit(
        rune.shard_map(body, mesh=make_mesh((8,), ("a",)), in_specs=specs, out_specs=specs, check_vma=False)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_operands_of_several_types_travel_together(kind: str):
    collective = KINDS[kind]
    together = on_eight(lambda *arrays: tuple(collective(x[0])[None] for x in arrays))

    results = together(X, Z, COUNTS)
    alone = [on_eight(lambda x: collective(x[0])[None])(array) for array in (X, Z, COUNTS)]

    assert [e.kind for e in rune.explain(together)(X, Z, COUNTS).exchanges] == [kind.removesuffix("_in_groups")]
    for result, expected in zip(results, alone, strict=True):
        np.testing.assert_array_equal(result, expected)


def test_explain_shows_a_message_with_all_its_operands_and_their_bytes():
    f = on_eight(lambda x, z: (lax.psum(x, "a"), lax.psum(z, "a")))

    (message,) = rune.explain(f)(X, Z).exchanges
    assert str(message).startswith("psum of f32[1,5], c64[1,3] over 'a': ")
    assert (message.bytes_in, message.bytes_sent) == (20 + 24, 2 * 39)
