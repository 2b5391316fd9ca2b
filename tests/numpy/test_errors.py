"""Refusals of rune.numpy: the message names the operation, the types and the axis.

Wrong shapes and axes, wrong dtypes, arguments of NumPy that make no sense here, and traced values
where a Python number is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp

X = rnp.zeros((2, 3))
NOTHING: Any = None
I = rnp.arange(3)  # noqa: E741

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: rnp.add(X, rnp.zeros(4)), r"add: cannot broadcast shapes \[2,3\] and \[4\] \(axis 1"),
    (lambda: rnp.matmul(X, X), r"matmul: cannot multiply f32\[2,3\] and f32\[2,3\] \(axis 1"),
    (lambda: rnp.matmul(1.0, X), r"matmul: cannot multiply f32\[\] and f32\[2,3\] \(rank 0"),
    (lambda: rnp.dot(X, X), r"dot: cannot multiply"),
    (lambda: rnp.inner(X, rnp.zeros(2)), r"inner: cannot contract f32\[2,3\] with f32\[2\]"),
    (lambda: rnp.tensordot(X, X.T), r"tensordot: cannot contract"),
    (lambda: rnp.tensordot(X, X, 3), r"tensordot: cannot contract 3 axes of ranks 2 and 2"),
    (lambda: rnp.cross(rnp.zeros(2), rnp.zeros(4)), r"cross: cannot multiply .* \(2 or 3"),
    (lambda: rnp.sum(X, axis=2), r"sum: cannot find axis 2 of f32\[2,3\] \(its axes are -2 to 1\)"),
    (lambda: rnp.mean(X, axis=(0, 0)), r"mean: cannot use axes \(0, 0\) of f32\[2,3\] \(axis 0 twice\)"),
    (lambda: rnp.max(rnp.zeros((0, 2)), axis=0), r"cannot reduce f32\[0,2\] .*\(no elements\)"),
    (lambda: rnp.sum(X, initial="a"), r"sum: cannot take str as an array"),
    (lambda: rnp.max(X, initial="a"), r"max: cannot take str as an array"),
    (lambda: rnp.max(X, where=X > 0), r"max: cannot use where= without initial="),
    (lambda: rnp.var(X, ddof=1, correction=1), r"var: cannot use both ddof and correction"),
    (lambda: rnp.average(X, 0, rnp.ones(3)), r"average: cannot weight f32\[2,3\] by f32\[3\]"),
    (lambda: rnp.reshape(X, (4, -1)), r"reshape: cannot reshape f32\[2,3\] to \(4, -1\)"),
    (lambda: rnp.transpose(X, (0, 0)), r"transpose: cannot use axes"),
    (lambda: rnp.squeeze(X, 0), r"squeeze: cannot remove axis 0 of f32\[2,3\] \(size 2\)"),
    (lambda: rnp.broadcast_to(X, (3, 2)), r"broadcast_to: cannot broadcast"),
    (lambda: rnp.concatenate([X, rnp.zeros((3, 2))]), r"concatenate: cannot join"),
    (lambda: rnp.concatenate([]), r"concatenate: cannot take no arrays"),
    (lambda: rnp.concatenate([1.0, 2.0]), r"concatenate: cannot join arrays of rank 0"),
    (lambda: rnp.stack([X, I]), r"stack: cannot stack f32\[2,3\], f32\[3\] \(one shape required\)"),
    (lambda: rnp.split(I, 2), r"split: cannot split i32\[3\] into 2 equal parts \(axis 0: 3\)"),
    (lambda: rnp.repeat(I, rnp.array([1, 2])), r"repeat: cannot repeat i32\[3\] 2 times"),
    (lambda: rnp.pad(I, -1), r"pad: cannot pad by -1 \(a width is negative\)"),
    (lambda: rnp.pad(I, 1, mode="mirror"), r"pad: cannot use mode='mirror' \(one of constant"),
    (lambda: rnp.pad(I, 1, "reflect", reflect_type="up"), r"pad: cannot use reflect_type='up'"),
    (lambda: rnp.pad(I, 1, "mean", end_values=1), r"pad: cannot use end_values with mode='mean'"),
    (lambda: rnp.pad(I, 1, mode="edge", constant_values=1), r"pad: cannot use constant_values"),
    (lambda: rnp.take(I, 1.0), r"take: cannot index with .* \(integer dtype required\)"),
    (lambda: rnp.take(I, 0, mode="bounce"), r"take: cannot use mode='bounce'"),
    (lambda: rnp.take_along_axis(X, I, 0), r"take_along_axis: cannot index .* \(ranks differ\)"),
    (lambda: rnp.diagonal(I), r"diagonal: cannot take a diagonal of i32\[3\] \(rank 2"),
    (lambda: rnp.einsum("ij,jk", X, X), r"einsum: cannot contract .* \(axis 'j': 3 against 2\)"),
    (lambda: rnp.einsum("ij,j", X), r"einsum: cannot match 'ij,j' to 1 operands"),
    (lambda: rnp.einsum("ijk", X), r"einsum: cannot name the axes of f32\[2,3\] by 'ijk'"),
    (lambda: rnp.einsum("ij->k", X), r"einsum: cannot make the result of 'ij->k'"),
    (lambda: rnp.einsum("ij->ii", X), r"einsum: cannot make the result of 'ij->ii'"),
    (lambda: rnp.einsum("i j-j", X), r"einsum: cannot read 'i j-j'"),
    (lambda: rnp.einsum(3), r"einsum: cannot use the axes of the result=3 \(a sequence"),
    (lambda: rnp.choose(I, 3), r"choose: cannot use choices=3 \(a sequence"),
    (lambda: rnp.select(3, [X]), r"select: cannot use condlist=3 \(a sequence"),  # type: ignore[arg-type]
    (lambda: rnp.piecewise(X, X > 0, 3), r"piecewise: cannot use funclist=3 \(a sequence"),  # type: ignore[arg-type]
    (lambda: rnp.transpose(X, -1), r"transpose: cannot permute f32\[2,3\] by -1"),  # type: ignore[arg-type]
    (lambda: rnp.histogram(X, 2, range=1), r"histogram: cannot use range=1 \(a sequence"),
    (lambda: rnp.histogram(X, "best"), r"histogram: cannot use bins='best' \(auto"),
    (lambda: rnp.trim_zeros(I, 5), r"trim_zeros: cannot use trim=5"),  # type: ignore[arg-type]
    (lambda: rnp.zeros((2, -1)), r"zeros: cannot make the shape \(2, -1\) \(a size is negative\)"),
    (lambda: rnp.arange(0, 5, 0), r"arange: cannot count by 0 in i32"),
    (lambda: rnp.zeros(2.5), r"zeros: cannot use 2.5 as a size \(integer required\)"),
    (lambda: rnp.array([[1], [2, 3]]), r"array: cannot make an array of ragged lists"),
    (lambda: rnp.array(["a"]), r"array: cannot hold list"),
    (lambda: rnp.array([1 + 2j], "f32"), r"array: cannot convert .* \(the imaginary part would be"),
    (lambda: rnp.full(2, 1 + 2j, "f32"), r"full: cannot convert c64 to f32 \(the imaginary"),
    (lambda: X.at[0].set(1 + 2j), r"at: cannot convert c64 to f32 \(the imaginary"),
    (lambda: rnp.meshgrid(I, indexing="ji"), r"meshgrid: cannot use indexing='ji'"),
    (lambda: rnp.where(X > 0, X, NOTHING), r"where: cannot choose between one array and nothing"),
    (lambda: rnp.subtract(X > 0, X > 0), r"sub: cannot take bool\[2,3\], bool\[2,3\]"),
    (lambda: rnp.bitwise_and(X, 1), r"and: cannot take .* \(bool or integer dtype required\)"),
    (lambda: rnp.float8_e5m2(1) + rnp.float16(1), r"promote: cannot promote f16 and f8_e5m2"),
    (lambda: rnp.round(I > 0, -1), r"round: cannot round bool\[3\] to -1 decimals"),
    (lambda: rnp.finfo("i32"), r"finfo: cannot describe i32 \(floating dtype required\)"),
    (lambda: rnp.isdtype("f32", "real"), r"isdtype: cannot use the kind 'real'"),
    (lambda: rnp.sum([1.0]), r"sum: cannot take list as an array\nhint: convert with"),
    (lambda: rnp.nonzero(I, size=-1), r"nonzero: cannot make the shape \(-1,\)"),
    (lambda: rnp.unique(I, size=-1), r"unique: cannot make the shape \(-1,\)"),
    (lambda: rnp.add(X, X, dtype="f32"), r"add: cannot compute in another dtype by dtype= (.*\n)*hint: .*astype"),
    (lambda: X * [1.0], r"operator: cannot combine f32\[2,3\] with a list of 1"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_a_meaningless_call_says_why(call: Callable[[], Any], message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


OUT = "sum prod max min mean var std any all argmax argmin cumsum cumprod ptp nansum nanmean nanmax"


@pytest.mark.parametrize("name", OUT.split())
def test_out_is_refused_by_name(name: str):
    with pytest.raises(ValueError, match=rf"{name}: cannot use out= \(given Array\)"):
        getattr(rnp, name)(X, out=X)


def test_a_memory_order_other_than_by_rows_is_refused():
    with pytest.raises(ValueError, match="array: cannot use order="):
        rnp.array([1.0], order="F")


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, [2**31]])
def test_a_python_integer_out_of_range_overflows(value: Any):
    with pytest.raises(OverflowError):
        rnp.array(value)


WIDE = 2**40


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rnp.full(2, WIDE), r"full: cannot hold 1099511627776 in i32"),
        (lambda: rune.lax.full((2,), WIDE), r"full: cannot hold 1099511627776 in i32"),
        (lambda: rune.jit(lambda: rnp.full(2, WIDE))(), r"full: cannot hold 1099511627776 in i32"),
        (lambda: rnp.full_like(rnp.arange(2), WIDE), r"full: cannot hold 1099511627776 in i32"),
        (lambda: rnp.add(rnp.zeros(2, "int8"), 300), r"add: cannot hold 300 in i8"),
        (lambda: rnp.where(True, WIDE, 1), r"where: cannot hold 1099511627776 in i32"),
        (lambda: rnp.arange(WIDE, WIDE + 2), r"arange: cannot hold 1099511627776 in i32"),
        (lambda: rnp.arange(2).at[0].set(WIDE), r"at: cannot hold 1099511627776 in i32"),
        (lambda: rnp.pad(rnp.arange(2), 1, constant_values=WIDE), r"pad: cannot hold 10995116"),
        (lambda: rnp.array(2**70), r"array: cannot hold 1180591620717411303424 in i32"),
        (lambda: rnp.ones(2) + 10**400, r"add: cannot hold a number of 1329 bits in f32"),
        (lambda: rnp.full(2, 10**400, "f64"), r"full: cannot hold a number of 1329 bits in f64"),
    ],
)
def test_an_integer_out_of_range_is_refused_with_operation_and_line(call: Any, message: str):
    with pytest.raises(OverflowError, match=rf"{message}(.*\n)*at .*test_errors"):
        call()


@pytest.mark.parametrize(("number", "hint"), [(300, "int16"), (-1, "int4"), (2**40, "int64")])
def test_an_integer_out_of_range_is_refused_with_a_dtype_that_holds_it(number: int, hint: str):
    with pytest.raises(OverflowError, match=f"hint: an explicit {hint} holds it"):
        rnp.array(number, "uint8")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rnp.zeros(x),
        lambda x: rnp.arange(x),
        lambda x: rnp.eye(x),
        lambda x: rnp.repeat(rnp.arange(3), x),
        lambda x: rnp.reshape(rnp.arange(4), (x, 2)),
        lambda x: rnp.split(rnp.arange(4), x),
        lambda x: rnp.nonzero(rnp.reshape(x, 1)),
    ],
)
def test_a_traced_value_cannot_be_a_size(call: Callable[[Any], Any]):
    refusal = r"cannot (use a traced value as|hand a traced|size a result)"
    with pytest.raises(TypeError, match=refusal):
        rune.jit(call)(2)


def test_an_array_cannot_be_assigned_to():
    with pytest.raises(TypeError, match=r"array: cannot assign to an element of i32\[3\]"):
        I[0] = 1
