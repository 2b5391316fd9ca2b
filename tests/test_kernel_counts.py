"""How many kernels the well-known graphs become. No device: the counts are those of the lowering.

The functions are the public ones of rune.nn and rune.optim, written as users write them, lowered
for a target without library routines, so that a matrix product is a kernel like any other.
"""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune import nn, optim
from rune.core.types import ArrayType
from rune.dtypes import f32, i32
from rune.lowering.kernelize import kernelize
from rune.lowering.pipeline import PROGRAM_PASSES
from rune.lowering.passes import run_passes
from rune.lowering.codegen.target import Target

TARGET = Target(
    name="none:0", backend="none", language="llvm", description="no device",
    dtypes=frozenset({f32, i32}), vector_bytes=32, cores=2, threads_per_workgroup=1,
    shared_bytes=1 << 15, scratch_bytes=1 << 15, routines=frozenset(),
)  # fmt: skip


def kernels(function, *types: ArrayType) -> int:
    program = run_passes(PROGRAM_PASSES, rune.make_program(function)(*types), lambda _: None)
    return len(kernelize(program, TARGET).steps)


def floats(*shape: int) -> ArrayType:
    return ArrayType(shape, f32)


def adam_step(params, state, gradients):
    optimizer = optim.adam(1e-3)
    updates, state = optimizer.update(gradients, state, params)
    return optim.apply_updates(params, updates), state


def test_an_elementwise_chain_is_one_kernel():
    assert kernels(lambda x: rnp.tanh(x) * 2 + rnp.exp(-x * x), floats(512, 512)) == 1


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_softmax_and_its_kin_are_one_kernel(function):
    assert kernels(lambda x: function(x, axis=-1), floats(512, 4096)) == 1


def test_layer_norm_with_scale_and_bias_is_one_kernel():
    row = floats(1024)

    assert kernels(lambda x, s, b: nn.layer_norm(x, s, b), floats(64, 1024), row, row) == 1


@pytest.mark.parametrize("approximate", [True, False])
def test_bias_and_gelu_fuse_behind_a_matmul(approximate):
    def layer(x, w, b):
        return nn.gelu(x @ w + b, approximate=approximate)

    assert kernels(layer, floats(128, 64), floats(64, 32), floats(32)) == 1


def test_cross_entropy_is_at_most_two_kernels():
    def loss(logits, labels):
        return nn.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    assert kernels(loss, floats(128, 10), ArrayType((128,), i32)) <= 2


def test_cross_entropy_by_one_hot_is_at_most_two_kernels():
    def loss(logits, labels):
        return -(nn.log_softmax(logits) * nn.one_hot(labels, 10)).sum(-1).mean()

    assert kernels(loss, floats(128, 10), ArrayType((128,), i32)) <= 2


def test_an_adam_update_of_one_leaf_is_one_kernel():
    state = optim.adam(1e-3).init(rnp.zeros((64, 64)))
    types = rune.tree.map(lambda x: x.type, state)

    assert kernels(adam_step, floats(64, 64), types, floats(64, 64)) == 1
