"""Complex programs become real ones: the split, its kernels, and its values.

First a program before and after; then the kernels of well-known graphs, which are as many as those
of real ones; then values on compiled executors, in loops and branches too; last what is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.backends import device_named
from rune.core.lower import Scalar
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.errors import MissingRule
from rune.lowering.kernels import Invoke, Routine
from rune.lowering.legalize.pairs import PASS, split_parts
from rune.lowering.stages import stages
from rune.ops.family import fit
from tests.support.arrays import array
from tests.support.close import close, near
from tests.support.lowering import PLAIN, WITH_DOT, f32, program_of
from tests.support.sampling import in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", DEVICES)


def c64(*shape: Any) -> ArrayType:
    return ArrayType(shape, dtypes.c64)


def drawn(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return array((rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64))


def test_a_complex_product_becomes_four_real_products(expect: Any):
    program = PASS.run(program_of(ops.mul, c64(3), c64(3)))

    expect(
        program,
        """
        program f(%0: f32[3,2], %1: f32[3,2]) {
          %2: f32[3] = part %0 {axis=1, number=0}
          %3: f32[3] = part %0 {axis=1, number=1}
          %4: f32[3] = part %1 {axis=1, number=0}
          %5: f32[3] = part %1 {axis=1, number=1}
          %6: f32[3] = mul %2, %4
          %7: f32[3] = mul %3, %5
          %8: f32[3] = sub %6, %7
          %9: f32[3] = mul %2, %5
          %10: f32[3] = mul %3, %4
          %11: f32[3] = add %9, %10
          %12: f32[3,2] = interleave %8, %11 {axis=1}
          return %12
        }""",
    )


def test_a_real_program_is_returned_unchanged():
    program = program_of(ops.mul, f32(3), f32(3))

    assert split_parts(program) is program


def test_the_plan_shows_the_types_that_callers_know():
    plan = stages(program_of(lambda z: ops.abs(z), c64(3)), PLAIN, check=True).plan

    assert (plan.arguments, plan.results) == ((c64(3),), (f32(3),))


# --- kernels ----------------------------------------------------------------------------------


def counts(function: Any, *types: ArrayType, target: Any = PLAIN) -> tuple[int, int]:
    steps = stages(program_of(function, *types), target, check=True).kernels.steps
    kinds = [type(step) for step in steps]
    return kinds.count(Invoke), kinds.count(Routine)


def unit_rows(z: Any) -> Any:
    length = ops.reduce_sum(ops.mul(ops.abs(z), ops.abs(z)), axes=(1,))
    spread = ops.broadcast(ops.sqrt(length), shape=(64, 512), axes=(0,))
    return ops.div(z, ops.complex(spread, fit(np.float32(0), (64, 512))))


ONE_KERNEL = {
    "elementwise chain": lambda z: ops.tanh(ops.add(ops.mul(z, z), ops.exp(ops.neg(z)))),
    "rows of length one": unit_rows,
    "sum": lambda z: ops.reduce_sum(z, axes=(1,)),
    "both parts as two results": lambda z: (ops.real(z), ops.imag(z)),
    "running sum": lambda z: ops.cumsum(z, axis=1, reverse=False),
    "inverse functions": lambda z: ops.mul(ops.acos(z), ops.atanh(z)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_complex_graphs_fuse_like_real_graphs(name: str):
    assert counts(ONE_KERNEL[name], c64(64, 512)) == (1, 0)


def test_a_large_dot_is_one_call_and_reads_its_first_operand_in_place():
    numbers = (((1,), (0,)), ((), ()))
    dot = program_of(lambda a, b: ops.dot_general(a, b, dimension_numbers=numbers), c64(64, 64), c64(64, 64))

    lowering = stages(dot, WITH_DOT, check=True)

    assert [type(s) for s in lowering.kernels.steps] == [Invoke, Routine]
    (call,) = (s for s in lowering.kernels.steps if isinstance(s, Routine))
    assert call.operands[0] is lowering.kernels.inputs[0]


# --- values -----------------------------------------------------------------------------------

FUNCTIONS = {
    "matrix product": lambda z: z @ rnp.conj(z).T,
    "product": lambda z: rnp.prod(z, axis=1),
    "product of all": lambda z: rnp.prod(z),
    "running product": lambda z: rnp.cumprod(z, axis=0),
    "running product backwards": lambda z: ops.cumprod(z, axis=1, reverse=True),
    "movement": lambda z: rnp.concatenate([rnp.flip(z, 0)[:, ::2], rnp.pad(z, 1)[1:-1, 2:4]], 1),
    "gather": lambda z: rnp.take(z, rnp.array([4, 0, 9]), axis=0),
    "scatter": lambda z: z.at[rnp.array([1, 1, 3])].add(2j),
    "update": lambda z: z.at[1:3].set(1 - 1j),
    "bits": lambda z: ops.bitcast(ops.bitcast(z, dtype=dtypes.u64), dtype=dtypes.c64) * 2,
    "gradient": lambda z: rune.grad(lambda z: rnp.sum(rnp.abs(rnp.tanh(z) @ z.T)))(z),
    "batch": lambda z: rune.vmap(lambda row: row @ row)(z),
    "literal": lambda z: z * 1j + (2 - 3j),
    "constant": lambda z: rnp.full((2,), 1j),
    "variance": lambda z: rnp.var(z, axis=1),
}


@in_turn()
@on_every_executor
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_complex_code_agrees_with_eager(name: str, device: str):
    function, z = FUNCTIONS[name], drawn(5, 4)
    if name == "bits" and dtypes.u64 not in device_named(device).target.dtypes:
        pytest.skip(f"no u64 on {device}")

    result = rune.jit(function, device=device)(z)

    near(np.asarray(function(z)), np.asarray(result), relative=1e-5, why="f32, other order of sums")


@in_turn()
@on_every_executor
def test_loops_and_branches_carry_complex_values(device: str):
    def function(z: Any, rows: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = carry * row + 1j
            return carry, rnp.abs(carry)

        last, lengths = rune.scan(step, z, rows)
        spiral = rune.while_loop(lambda w: rnp.abs(w) < 50, lambda w: w * (1.5 + 0.5j), last)
        branch = rune.cond(rnp.real(last) > 0, lambda w: w, lambda w: rnp.conj(w) * 1j, spiral)
        return last, lengths, branch

    z, rows = array(np.complex64(1 + 0.5j)), drawn(6)

    result = rune.jit(function, device=device)(z, rows)

    for a, b in zip(function(z, rows), result, strict=True):
        near(np.asarray(a), np.asarray(b), relative=1e-5, why="f32")


def test_a_symbolic_size_is_read_off_a_complex_argument():
    program = rune.jit(lambda z: rnp.sum(rnp.exp(z) * z), dims={"n": (1, 64)})

    for size in (1, 5, 64):
        z = drawn(size)
        near(np.asarray(rnp.sum(rnp.exp(z) * z)), np.asarray(program(z)), relative=1e-5, why="f32")


def test_a_donated_complex_argument_lends_its_memory():
    z = drawn(1000)
    expected = np.asarray(z * 2)

    result = rune.jit(lambda z: z * 2, donate_argnums=0)(z)

    close(expected, np.asarray(result), ulps=0, why="exact")
    assert z.is_deleted()


def test_an_equation_keeps_the_users_line_through_the_lowering():
    program = program_of(ops.mul, c64(3), c64(3))

    split = split_parts(program)

    assert {e.frame for e in split.equations if e.primitive.name in ("mul", "sub", "add")} == {
        program.equations[0].frame
    }


@in_turn()
@on_every_executor
@pytest.mark.parametrize("name", ["product of all", "running product", "product", "backwards"])
def test_products_of_a_symbolic_size_are_a_loop(name: str, device: str):
    function = FUNCTIONS.get(name, lambda z: ops.cumprod(z, axis=0, reverse=True))
    program = rune.jit(function, dims={"n": (1, 64)}, device=device)

    for size in (1, 5, 8):
        z = drawn(size, 3)
        near(np.asarray(function(z)), np.asarray(program(z)), relative=1e-5, why="f32, in order")
    assert program.cache_size() == 1


def test_a_primitive_without_a_rule_by_parts_is_refused_by_name():
    bare = Primitive("bare", "test", lambda x: x, lambda x: x, lower=Scalar("bare"))

    with pytest.raises(MissingRule, match=r"cannot compile bare of c64\[3\]"):
        split_parts(program_of(lambda z: bare(z), c64(3)))


# --- keys -------------------------------------------------------------------------------------

KEY = ArrayType((3,), dtypes.KEY_OF["threefry2x32"])


def test_a_key_comes_apart_into_its_words(expect: Any):
    def flipped(key: Any) -> Any:
        other = ops.reverse(key, axes=(0,))
        return ops.select(ops.eq(key, other), key, other)

    program = PASS.run(program_of(flipped, KEY))

    expect(
        program,
        """
        program f(%0: u32[3,2]) {
          %1: u32[3] = part %0 {axis=1, number=0}
          %2: u32[3] = part %0 {axis=1, number=1}
          %3: u32[3] = reverse %1 {axes=(0,)}
          %4: u32[3] = reverse %2 {axes=(0,)}
          %5: bool[3] = eq %1, %3
          %6: bool[3] = eq %2, %4
          %7: bool[3] = and %5, %6
          %8: u32[3] = select %7, %1, %3
          %9: u32[3] = select %7, %2, %4
          %10: u32[3,2] = interleave %8, %9 {axis=1}
          return %10
        }""",
    )


def test_a_loop_carries_the_words_of_one_key_apart():
    def steps(key: Any) -> Any:
        return rune.lax.fori_loop(0, 3, lambda _, k: rune.random.split(k)[0], key)

    lowering = stages(rune.make_jaxpr(steps)(rune.random.key(0)), PLAIN)
    loops = [e for e in lowering.simplified.equations if e.primitive.name == "loop"]

    assert [str(a.type) for a in loops[0].operands] == ["u32[]", "u32[]"]
