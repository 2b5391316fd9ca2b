"""Library primitives agree with NumPy and SciPy, in the library and as rune's own algorithms.

The table of uses is library.py, whose records use.py explains. The reference is held against the
truth, then every executor: the CPU through NumPy's routine, every other by the primitive's
expansion. Derivatives and batching are tried by the AD matrix (tests/laws/test_ad_matrix.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import Device
from rune.core.interpreter import type_of
from rune.core.lower import Library
from rune.core.primitive import Primitive
from tests.ops.library import USES, uses
from tests.ops.use import Use
from tests.support.close import near
from tests.support.sampling import IS_WHOLE, one_in

# The host computes eig and schur, and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
COMPUTING = [d for d in rune.devices() if d.target.backend != "null"]
HOST = [d for d in COMPUTING if d.target.backend in ("cpu", "reference")]
DRIVEN = [d for d in COMPUTING if d not in HOST]


@dataclass(frozen=True, slots=True)
class Way:
    """A use on an executor, in 32 bits or in 64."""

    use: Use
    device: Device
    narrow: bool

    def __str__(self) -> str:
        return f"{self.use}-{self.device.name}-{'single' if self.narrow else 'double'}"


# The first use of every primitive in one width where the library is called and in the other where
# the expansion is shown, by turns; in 32 bits on one of the other executors, by turns; and a sample
# of the other uses.
FIRST = [next(u for u in USES if u.primitive is p) for p in ops.LIBRARY]
OTHERS = [u for u in USES if u not in FIRST]
WAYS = [
    Way(u, d, narrow)
    for k, u in enumerate(FIRST)
    for j, d in enumerate(HOST)
    for narrow in (True, False)
    if IS_WHOLE or (k + j) % 2 == narrow
]
TURNS = list(product(FIRST, DRIVEN)) if IS_WHOLE else list(zip(FIRST, cycle(DRIVEN)))
WAYS += [Way(u, d, True) for u, d in TURNS]
WAYS += one_in(40, [Way(u, d, narrow) for u in OTHERS for d in HOST for narrow in (True, False)])
WAYS += one_in(320, [Way(u, d, True) for u in OTHERS for d in DRIVEN])
each_library_primitive = pytest.mark.parametrize("primitive", ops.LIBRARY, ids=lambda p: p.name)
each_use = pytest.mark.parametrize("use", USES, ids=str)
some_uses = pytest.mark.parametrize("use", [*FIRST, *one_in(36, OTHERS)], ids=str)


@each_library_primitive
def test_a_library_primitive_has_every_rule_and_a_use(primitive: Primitive):
    assert isinstance(primitive.lower, Library)
    assert primitive.reference is not None
    assert primitive.batch is not None
    assert primitive.jvp is not None or primitive.jvp_equation is not None
    assert uses(primitive)


@each_use
def test_the_type_rule_gives_the_shapes_and_dtypes_of_the_reference(use: Use):
    inputs = use.prepare(*use.draw())
    assert use.primitive.reference is not None
    results = use.primitive.reference(*map(np.asarray, inputs), **use.params)
    types = use.primitive.type_rule(*map(type_of, inputs), **use.params)
    several = use.primitive.multiple_results

    for array, type in zip(results if several else [results], types if several else [types]):
        assert (array.shape, array.dtype) == (type.shape, type.dtype)


@each_use
@pytest.mark.parametrize("narrow", [False, True], ids=["double", "single"])
def test_the_reference_is_what_the_primitive_means(use: Use, narrow: bool):
    operands = use.draw(narrow=narrow)

    close_to_truth(use, use.observed(*operands), operands, narrow)


def close_to_truth(use: Use, results: Any, operands: Any, narrow: bool) -> None:
    limit = use.tolerance(narrow)
    near(use.truth(*operands), list(results), relative=limit, why=f"{use}: rounding")


def takes(device: Device, use: Use, operands: Any) -> bool:
    kinds = {type_of(x).dtype for x in (*operands, *use.observed(*operands))}
    return kinds <= device.target.program_dtypes


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_executor_computes_a_library_primitive(way: Way):
    operands = way.use.draw(narrow=way.narrow)
    if not takes(way.device, way.use, operands):
        pytest.skip(f"{way.device.name} does not take the dtypes")

    results = rune.jit(way.use.observed, device=way.device.name)(*operands)

    close_to_truth(way.use, results, operands, way.narrow)


@some_uses
def test_a_batch_gives_what_its_lanes_give_one_by_one(use: Use):
    lanes = use.draw(3)

    results = rune.jit(rune.vmap(use.observed), device="reference:0")(*lanes)

    for lane in range(3):
        lane_operands = [x[lane] for x in lanes]
        close_to_truth(use, [x[lane] for x in results], lane_operands, False)


@some_uses
def test_one_program_covers_every_number_of_lanes(use: Use):
    program = rune.jit(rune.vmap(use.observed), dims={"n": (1, 8)})

    for size in (2, 3):
        lanes = use.draw(size)
        results = program(*lanes)
        close_to_truth(use, [x[1] for x in results], [x[1] for x in lanes], False)
    assert program.cache_size() == 1


def test_every_use_names_a_library_primitive():
    assert {u.primitive for u in USES} <= {*ops.LIBRARY}
    assert all(dtypes.f32 not in {o.dtype for o in u.operands} for u in USES)
