"""The rules of kernel code: each refuses code that breaks it, with an error that says how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes
from rune.dims import symbol
from rune.errors import CheckError
from rune.lowering.kernel.check import COMBINE, check
from rune.lowering.kernel.expr import Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import For, KernelCode, Kind, Let, Store, Var
from rune.lowering.kernel.scalar import SCALAR_MEANING
from rune.lowering.kernel.text import parse
from tests.lowering.kernel.examples import example
from tests.lowering.kernel.random_code import random_code

HEAD = "code f(x: read f32[8], y: write f32[8]) sizes n in 1..8"


def refused(body: str) -> str:
    with pytest.raises(CheckError, match="check: cannot accept kernel f") as error:
        check(parse(f"{HEAD} {{ {body} }}"))
    return str(error.value)


@given(st.integers(0, 10**6))
def test_random_code_is_accepted(seed):
    check(random_code(seed))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # names
        ("a: f32 = x[0] a: f32 = x[1]", "a is bound already"),
        ("x: f32 = 1.0_f32", "x is bound already"),
        ("for n in 3 serial { }", "n is bound already"),
        ("a: f32 = x[0] for a in 3 serial { }", "a is bound already"),
        # mutation
        ("a: f32 = x[0] a = 1.0_f32", "a is assigned but is not a var in scope"),
        ("if true { var a: f32 = x[0] } a = 1.0_f32", "a is assigned but is not a var in scope"),
        ("var a: f32 = x[0] a = 1_i32", "a is not i32"),
        ("var a: bool = true a add= true", "no reduction add of bool"),
        # memory
        ("store x[0] = 1.0_f32", "x is stored to and was declared read"),
        ("store y[0] = 1_i32", "y holds f32, not i32"),
        ("store z[0] = 1.0_f32", "z is not a buffer in scope"),
        ("if true { alloc e: f32[2] local } store e[0] = 1.0_f32", "e is not a buffer in scope"),
        ("alloc e: f32[0] local", "e[0]"),
        # loops
        ("for i in 2 serial { for j in 2 grid { } }", "a grid loop that is not outermost"),
        ("for i in 2 grid { } for j in 2 grid { }", "a grid loop that is not outermost"),
        ("for i in 2 grid { a: f32 = x[0] for j in 2 grid { } }", "a grid loop that is not"),
        ("for i in 2 vector { for j in 2 vector { } }", "vector j is inside another"),
        ("for i in 2 serial { for t in 4 workgroup { } }", "a misplaced workgroup loop"),
        ("for t in 2 workgroup { } for u in 2 workgroup { }", "a misplaced workgroup loop"),
        ("store y[0] = 1.0_f32 for t in 2 workgroup { }", "more than Let and Alloc"),
        ("for t in n workgroup { }", "workgroup t of extent n, not static"),
        ("var a: f32 = x[0] for i in 2 vector { a = 1.0_f32 }", "a is assigned across a VECTOR"),
        ("var a: f32 = x[0] for i in 2 vector { a add= x[i] store y[i] = a }", "a is read in the VECTOR loop"),
        # barriers
        ("barrier", "a barrier outside a workgroup"),
        ("for t in 2 workgroup { if true { barrier } }", "not all threads reach"),
        ("for t in 2 workgroup { for j in t serial { barrier } }", "not all threads reach"),
        ("for t in 2 workgroup { alloc e: f32[2] shared }", "e is shared, within the threads"),
    ],
)
def test_a_broken_rule_is_named(body, reason):
    assert reason in refused(body)


def in_kernel(*exprs: Expr) -> KernelCode:
    lets = tuple(Let(f"t{n}", e) for n, e in enumerate(exprs))
    return replace(parse(f"{HEAD} {{ }}"), body=lets)


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (Local("q", dtypes.f32), "q is not a local in scope"),
        (Load("x", (0,), dtypes.f64), "x holds f32, not f64"),
        (Load("x", (0, 1), dtypes.f32), "x has 2 indices"),
        (Load("x", (0,), dtypes.f32, const(1, dtypes.i32)), "a guard is bool, not i32"),
        (Load("x", (symbol("q"),), dtypes.f32), "q in [q] is not an index symbol here"),
        (Op("add", (const(1, dtypes.f32),), dtypes.f32), "add with 1 operands, not 2"),
        (Op("add", (const(1, dtypes.f32),) * 2, dtypes.f64), "add(f32, f32) -> f64"),
        (Op("and", (const(1, dtypes.f32),) * 2, dtypes.f32), "and(f32, f32)"),
        (Op("lt", (const(1, dtypes.c64),) * 2, dtypes.bool_), "lt(c64, c64)"),
        (Op("cross", (const(1, dtypes.f32),) * 2, dtypes.f32), "no such operation"),
        (Op("bitcast", (const(1, dtypes.f32),), dtypes.i64), "bitcast of f32 to i64"),
        (Index(1, dtypes.i32), "an index is i64, not i32"),
    ],
)
def test_a_wrong_expression_is_named(expr, reason):
    with pytest.raises(CheckError) as error:
        check(in_kernel(expr))

    assert reason in str(error.value)


def test_a_loop_symbol_must_have_the_bounds_of_its_loop():
    wrong = Load("x", (symbol("i", 0, 99),), dtypes.f32)
    loop = For("i", 8, Kind.SERIAL, (Store("y", 0, wrong),))

    with pytest.raises(CheckError, match=r"i in \[i\] has bounds 0..99 here, elsewhere 0..7"):
        check(replace(in_kernel(), body=(loop,)))


def test_a_name_denotes_one_symbol():
    first, second = symbol("k", 0, 3), symbol("k", 0, 5)
    loads = [Let(f"t{n}", Load("x", (s,), dtypes.f32)) for n, s in enumerate((first, second))]
    code = replace(in_kernel(), body=(Let("k", const(1, dtypes.i32)), *loads))

    with pytest.raises(CheckError, match=r"elsewhere 0\.\.3"):
        check(code)


def test_a_var_is_not_an_index_symbol():
    load = Let("a", Load("x", (symbol("k", 0, 3),), dtypes.f32))

    with pytest.raises(CheckError, match=r"k in \[k\] is not an index symbol here"):
        check(replace(in_kernel(), body=(Var("k", const(0, dtypes.i32)), load)))


def test_an_expression_deeper_than_the_limit_is_refused():
    expr: Expr = const(1, dtypes.f32)
    for _ in range(70):
        expr = Op("neg", (expr,), dtypes.f32)

    with pytest.raises(CheckError, match="an expression of 71 levels"):
        check(in_kernel(expr))


def test_an_expression_that_shares_its_parts_is_measured_at_once():
    expr: Expr = const(1, dtypes.f32)
    for _ in range(60):
        expr = Op("add", (expr, expr), dtypes.f32)

    with pytest.raises(CheckError, match=f"{2**61 - 1} nodes"):
        check(in_kernel(expr))


def test_siblings_may_use_one_name():
    check(parse(f"{HEAD} {{ for j in 2 serial {{ }} for j in 3 serial {{ }} }}"))


def test_aliases_must_be_of_one_size():
    code = replace(example("softmax"), aliases=(("x", "z"),))

    with pytest.raises(CheckError, match="alias of x and z"):
        check(code)


@pytest.mark.parametrize("name", COMBINE)
def test_the_identity_of_a_reduction_changes_nothing(name):
    combine = COMBINE[name]
    for dtype in combine.dtypes:
        x = np.array([0, 1, 3, 5]).astype(dtype)
        identity = combine.identity(dtype).value

        result = SCALAR_MEANING[name](np.full(4, identity, dtype), x)

        assert (result == x).all(), dtype
