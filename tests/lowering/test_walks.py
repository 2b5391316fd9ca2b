"""Dots of views become products that read the views: which ones, what is copied, unchanged values.

The oracle of strided_dot is its NumPy reference; the remaining kernels are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rune import dims, dtypes, ops
from rune.core.check import check_program
from rune.core.interpreter import literal
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering.kernelize import kernelize
from rune.lowering.kernelize.routines import route_dots
from rune.lowering.kernels import Routine
from rune.lowering.kernels_parse import parse_program
from rune.lowering.kernels_text import program_text
from rune.ops.sliding import windows
from tests.support.lowering import WITH_DOT, agree, evaluate, f32, program_of, random_arguments, target

STRIDED = target("dot", "strided_dot")


def routed(function: Callable[..., Any], *types: ArrayType, **sizes: int) -> Program:
    """The program after routing, compared with the one before."""
    program = program_of(function, *types)
    routed_program = route_dots(program, STRIDED)
    check_program(routed_program)
    args = random_arguments(program, **sizes)
    agree(evaluate(program, args), evaluate(routed_program, args), relative=1e-4)
    return routed_program


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


def conv(
    strides: tuple = (1, 1), padding: tuple = ((0, 0), (0, 0)), specs: Any = None, groups: int = 1
) -> Callable[..., Any]:
    axes = (0, 1, 2, 3)
    return lambda x, w: ops.conv_general_dilated(
        x,
        w,
        strides=strides,
        padding=padding,
        lhs_dilation=(1, 1),
        rhs_dilation=(1, 1),
        specs=specs or (axes,) * 3,
        groups=(groups, 1),
    )


def steps(function: Callable[..., Any], *types: ArrayType) -> list[str]:
    kernels = kernelize(program_of(function, *types), STRIDED)
    return [s.routine if isinstance(s, Routine) else "kernel" for s in kernels.steps]


LAST = ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))  # channels last


@pytest.mark.parametrize(
    ("function", "x", "w"),
    [
        (conv(), (2, 8, 12, 12), (16, 8, 3, 3)),
        (conv((2, 2)), (2, 8, 12, 12), (16, 8, 3, 3)),
        (conv(specs=LAST), (2, 12, 12, 8), (3, 3, 8, 16)),
        (conv(groups=2), (2, 8, 12, 12), (16, 4, 3, 3)),
    ],
)
def test_a_convolution_without_padding_is_one_product(function, x, w):
    assert "strided_dot" in names(routed(function, f32(*x), f32(*w)))
    assert steps(function, f32(*x), f32(*w)) == ["strided_dot"]


def test_padding_is_one_kernel_before_it():
    assert steps(conv(padding=((1, 1), (1, 1))), f32(2, 8, 12, 12), f32(16, 8, 3, 3)) == ["kernel", "strided_dot"]


def test_a_flipped_kernel_is_copied_and_an_image_is_not():
    def function(x: Any, w: Any) -> Any:
        return conv()(x, ops.reverse(w, axes=(2, 3)))

    program = routed(function, f32(2, 8, 12, 12), f32(16, 8, 3, 3))

    call = next(e for e in program.equations if e.primitive.name == "strided_dot")
    copy, image = call.operands
    assert copy not in program.inputs
    assert copy.type.shape == (1, 16, 8, 3, 3)  # once, not for each batch
    assert image is program.inputs[0]


def test_heads_of_attention_are_read_without_a_copy():
    def scores(q: Any, k: Any) -> Any:  # [B, T, N, H], [B, S, N, H] -> [B, N, T, S]
        return ops.dot_general(q, k, dimension_numbers=(((3,), (3,)), ((0, 2), (0, 2))))

    assert names(routed(scores, f32(2, 32, 4, 16), f32(2, 48, 4, 16))) == ["strided_dot"]


def test_plain_operands_stay_with_the_plain_routine():
    def dot(a: Any, b: Any) -> Any:
        return ops.dot_general(a, b, dimension_numbers=(((1,), (0,)), ((), ())))

    assert names(routed(dot, f32(64, 64), f32(64, 64))) == ["routine_dot"]


def test_without_the_routine_a_view_is_packed():
    program = program_of(conv(), f32(2, 8, 12, 12), f32(16, 8, 3, 3))

    assert "strided_dot" not in names(route_dots(program, WITH_DOT))


def test_sizes_may_be_symbolic():
    n = dims.symbol("n", 1, 64)

    program = routed(conv(), f32(n, 8, 12, 12), f32(16, 8, 3, 3), n=3)

    assert "strided_dot" in names(program)


def test_half_types_are_widened_before_the_walk():
    bf16 = lambda *shape: ArrayType(shape, dtypes.bf16)  # noqa: E731
    program = route_dots(program_of(conv(), bf16(2, 8, 12, 12), bf16(16, 8, 3, 3)), STRIDED)

    call = next(e for e in program.equations if e.primitive.name == "strided_dot")
    assert [a.type.shape for a in call.operands] == [(16, 8, 3, 3), (2, 8, 12, 12)]
    assert {a.type.dtype for a in call.operands} == {dtypes.f32}


def test_calls_that_walk_print_and_parse():
    kernels = kernelize(program_of(conv((2, 1)), f32(2, 8, 12, 12), f32(16, 8, 3, 3)), STRIDED)

    assert program_text(parse_program(program_text(kernels))) == program_text(kernels)


def test_a_repeated_number_is_packed_while_windows_are_read_in_place():
    def sums(x: Any) -> Any:
        patches = windows(x, (2,), (5,), (1,), (1,))  # [3, 64, 60, 5]
        ones = ops.broadcast(literal(1, dtypes.f32), shape=(64, 3, 60), axes=())
        numbers = (((1, 2), (0, 2)), ((), ()))
        return ops.dot_general(ones, patches, dimension_numbers=numbers)

    assert steps(sums, f32(3, 64, 64)) == ["kernel", "strided_dot"]
