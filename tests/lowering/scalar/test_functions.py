"""Functions for what a language lacks: which are attached to a kernel, and in what order."""

from __future__ import annotations

import pytest

from rune import dtypes
from rune.errors import DtypeError
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.spirv import scalar as spirv_scalar
from rune.lowering.codegen.target import Native, every
from rune.lowering.codegen.wgsl import expr as wgsl_expr
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import Function
from rune.lowering.kernel.rewrite import expressions, walk, walk_expr
from rune.lowering.kernel.text import parse
from rune.lowering.legalize.scalars import attach_functions

LANGUAGES = {
    "CUDA C": CUDA_C.native,
    "OpenCL C": OPENCL_C.native,
    "SPIR-V": spirv_scalar.NATIVE,
    "WGSL": wgsl_expr.NATIVE,
}
of_each_language = pytest.mark.parametrize("native", LANGUAGES.values(), ids=LANGUAGES)
EVERYTHING = """
code f(x: read f32[8], y: write f32[8]) {
  for i in 8 grid {
    store y[i] = acosh(x[i]) + (pow(tan(x[i]), erf_inv(x[i])) + logistic(x[i] % x[i]))
  }
}"""


def attached(text: str, native: Native) -> tuple[Function, ...]:
    return attach_functions(parse(text), native).functions


def operations(function: Function) -> list[Op]:
    """Every operation in its body."""
    roots = [e for stmt in walk(function.body) for e in expressions(stmt)]
    return [p for e in (*roots, function.result) for p in walk_expr(e) if isinstance(p, Op)]


@of_each_language
def test_a_function_uses_only_native_operations_and_functions_before_it(native: Native):
    before: set[str] = set()
    for function in attached(EVERYTHING, native):
        for op in operations(function):
            dtype = op.args[-1].dtype
            name = f"{op.name}_{dtypes.short(dtype)}"
            assert not native.lacks(op.name, dtype) or name in before
        before.add(function.name)


def test_a_language_gets_functions_for_what_it_does_not_spell_and_no_others():
    names = {f.name for f in attached(EVERYTHING, CUDA_C.native)}

    assert names == {"erf_inv_f32", "logistic_f32"}


def test_an_operation_of_a_narrow_float_is_the_function_of_its_register():
    text = "code f(x: read f16[8], y: write f16[8]) { store y[0] = exp(x[0]) }"

    assert [f.name for f in attached(text, spirv_scalar.NATIVE)] == ["exp_f32"]


def test_a_reduction_counts_as_the_operation_that_it_combines_by():
    text = """
    code f(x: read f32[8], y: write f32[1]) {
      var s: f32 = 1.0_f32
      for j in 8 serial { s mul= x[j] }
      store y[0] = s
    }"""

    with pytest.raises(DtypeError, match="legalize: cannot write mul of f32"):
        attached(text, Native(every(["add"], [dtypes.f32])))


BY_CONSTANT = """
code f(x: read i32[8], y: write i32[8]) {
  for i in 8 grid { store y[i] = CODE }
}"""


@of_each_language
@pytest.mark.parametrize("operation", ["x[i] << 31_i32", "x[i] >> 0_i32", "x[i] / 3_i32"])
def test_by_a_constant_without_special_cases_an_operation_is_the_languages_own(operation: str, native: Native):
    assert attached(BY_CONSTANT.replace("CODE", operation), native) == ()


@of_each_language
@pytest.mark.parametrize(
    "operation", ["x[i] << 32_i32", "x[i] >> -1_i32", "x[i] / 0_i32", "x[i] / -1_i32", "5_i32 / x[i]"]
)
def test_by_any_other_operand_it_is_a_function(operation: str, native: Native):
    assert len(attached(BY_CONSTANT.replace("CODE", operation), native)) == 1
