"""A jitted function in stages: traced, lowered, compiled, and called with matching arguments."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dims
from rune.errors import ArgumentError
from rune.sharding import SingleDeviceSharding
from rune.transforms.compile import executables

X = rnp.arange(7.0)


@rune.jit
def function(x: Any, scale: float = 2.0) -> dict[str, Any]:
    return {"sum": rnp.sum(x * scale), "row": rnp.sin(x)}


def test_compiled_code_gives_what_a_call_gives():
    executable = function.lower(X, 3.0).compile()

    results, expected = executable(X, 3.0), function(X, 3.0)

    np.testing.assert_array_equal(results["sum"], expected["sum"])
    np.testing.assert_array_equal(results["row"], expected["row"])


def test_types_are_enough_to_compile():
    struct = rune.ShapeDtypeStruct((7,), "f32")

    executable = function.trace(struct, rune.ShapeDtypeStruct((), "f32")).lower().compile()

    np.testing.assert_allclose(executable(X, rnp.float32(1))["sum"], 21)


def test_the_stages_share_one_trace_with_calls():
    traces = []
    successor = rune.jit(lambda x: traces.append(1) or x + 1)

    successor.lower(X).compile()(X)
    successor(X)

    assert traces == [1]
    assert successor._cache_size() == 1


def test_a_number_in_place_of_an_array_runs_the_same_code():
    """A number is weakly typed, so calling the jitted function with it would trace it again."""
    traces = []
    compiled = rune.jit(lambda x: traces.append(1) or x + 1).lower(rnp.float32(1.5)).compile()

    result = compiled(2.0)

    assert (float(result), result.weak_type, traces) == (3.0, False, [1])


def test_options_of_another_compiler_are_refused():
    with pytest.raises(
        ArgumentError, match=r"compile: cannot use compiler_options=\{'xla_flag': 1\} \(they are those of"
    ):
        function.lower(X).compile({"xla_flag": 1})


def test_every_stage_describes_its_arguments_and_results():
    for stage in (function.trace(X, scale=1.0), function.lower(X, scale=1.0), function.lower(X, scale=1.0).compile()):
        assert stage.fun_name == "function"
        assert stage.in_tree == rune.tree.structure(((0,), {"scale": 0}))
        assert stage.out_tree == rune.tree.structure({"sum": 0, "row": 0})
        assert stage.out_info["row"] == rune.ShapeDtypeStruct((7,), "f32")
        assert stage.args_info[0][0].shape == (7,)
        assert not stage.args_info[0][0].donated
        assert [str(t) for t in rune.tree.leaves(stage.in_avals)] == ["f32[7]", "f32*[]"]


def test_donated_arguments_are_noted():
    trace = rune.jit(lambda x, y: x + y, donate_argnums=1).trace(X, X)

    assert trace.donate_argnums == (1,)
    assert [a.donated for a in trace.args_info[0]] == [False, True]
    assert trace.lower().compile().memory_analysis().alias_size_in_bytes == 28


def test_static_arguments_are_left_out_of_calls():
    scale = rune.jit(lambda x, n, y: x * n + y, static_argnums=1)

    executable = scale.lower(2.0, 3, 4.0).compile()

    assert executable(2.0, 4.0) == 10


def test_a_traced_program_lists_the_arrays_it_closes_over():
    row = rnp.arange(3.0) + 1

    program = rune.jit(lambda x: x * row).trace(2.0).jaxpr

    np.testing.assert_array_equal(program.consts[0], row)
    assert len(program.invars) == 1


def test_costs_and_memory_are_those_of_one_run():
    executable = rune.jit(lambda x: x + 1).lower(X).compile()

    assert executable.cost_analysis() == {"flops": 7.0, "bytes accessed": 56.0}
    memory = executable.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (28, 28)
    assert memory.generated_code_size_in_bytes == len(executable.as_text()) > 0


def test_all_that_is_held_at_once_is_the_peak():
    memory = rune.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile().memory_analysis()

    assert (memory.peak_memory_in_bytes, memory.alias_size_in_bytes) == (28, 28)


@pytest.mark.parametrize("size", [1, 7, 13])
def test_costs_of_symbolic_sizes_are_those_of_the_arguments(size: int):
    executable = rune.jit(lambda x: x + 1, dims={"n": (1, 64)}).lower(rnp.ones(size)).compile()

    assert executable.cost_analysis() == {"flops": 1.0 * size, "bytes accessed": 8.0 * size}
    assert executable.memory_analysis().argument_size_in_bytes == 4 * size


def test_costs_in_numbers_need_sizes_in_numbers():
    struct = rune.ShapeDtypeStruct((dims.symbol("n"),), "f32")

    with pytest.raises(TypeError, match=r"costs in numbers .the size n is open"):
        rune.jit(lambda x: x + 1).lower(struct).cost_analysis()


def test_compiled_code_knows_where_arguments_and_results_are():
    executable = function.lower(X, scale=1.0).compile()

    sharding = SingleDeviceSharding("cpu")
    assert executable.input_shardings == ((sharding,), {"scale": sharding})
    assert executable.output_shardings == {"sum": sharding, "row": sharding}


def test_forgotten_traces_are_made_again():
    traces = []
    successor = rune.jit(lambda x: traces.append(1) or x + 1)
    successor(X)

    successor.clear_cache()

    assert successor._cache_size() == 0
    assert successor.eval_shape(X) == rune.ShapeDtypeStruct((7,), "f32")
    assert len(traces) == 2


def test_a_lowered_program_is_shown_in_runes_language():
    lowering = function.lower(X)

    assert lowering.as_text().startswith("program function(")
    assert "test_stages.py" in lowering.as_text(debug_info=True)
    with pytest.raises(TypeError, match="as_text: cannot write 'stablehlo'"):
        lowering.as_text("stablehlo")
    with pytest.raises(TypeError, match="compiler_ir: cannot give a module of XLA's"):
        lowering.compiler_ir()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((rnp.ones(8), 1.0), r"with f32\[8\] \(it was compiled for f32\[7\]\)"),
        ((rnp.ones(7, "i4"), 1.0), r"with i32\[7\]"),
        ((X,), "argument"),
    ],
)
def test_compiled_code_refuses_other_arguments(args: tuple, reason: str):
    executable = function.lower(X, 1.0).compile()

    with pytest.raises(TypeError, match=reason):
        executable(*args)


def test_compiled_code_is_not_transformed():
    executable = rune.jit(rnp.sin).lower(1.0).compile()

    with pytest.raises(TypeError, match="cannot transform sin"):
        rune.grad(executable)(1.0)


def test_shapes_are_evaluated_without_running():
    assert function.eval_shape(X)["sum"] == rune.ShapeDtypeStruct((), "f32")


def test_an_inlined_function_leaves_no_call():
    without_call = rune.make_jaxpr(rune.jit(rnp.sin, inline=True))(1.0)
    with_call = rune.make_jaxpr(rune.jit(rnp.sin))(1.0)

    assert [e.primitive.name for e in without_call.eqns] == ["sin"]
    assert [e.primitive.name for e in with_call.eqns] == ["jit"]
    assert rune.jit(rnp.sin, inline=True)(0.0) == 0


def test_arguments_of_jax_are_taken_at_their_defaults_and_others_refused():
    options = {"keep_unused": True, "backend": "cpu", "compiler_options": None}

    assert rune.jit(lambda x: x + 1, **options)(1.0) == 2
    with pytest.raises(TypeError, match="compiler_options="):
        rune.jit(rnp.sin, compiler_options={"xla_flag": 1})
    with pytest.raises(TypeError, match="lowering_platforms"):
        function.trace(X).lower(lowering_platforms=("tpu",))


def test_without_jit_the_function_itself_runs():
    is_eager = rune.jit(lambda x: type(x) is rune.Array)
    calls = [is_eager(X) for _ in range(4)]  # the later ones by native code

    with rune.disable_jit():
        inside = [is_eager(X), rune.jit(lambda x, n: type(x) is rune.Array, static_argnums=1)(X, 2)]

    assert (calls, inside) == ([False] * 4, [True, True])
    assert not is_eager(X)


def test_traces_and_compilations_are_logged(caplog: pytest.LogCaptureFixture):
    program = rune.jit(lambda x: x - 5.0)

    with rune.log_compiles():
        program(X)
        program(X)

    assert [r.getMessage() for r in caplog.records if r.name == "rune"] == [
        "jit: traces lambda for (f32[7])",
        "jit: compiles lambda for cpu:0",
    ]


# --- references -------------------------------------------------------------------------------


def add_to(ref: Any, x: Any) -> Any:
    ref[...] = ref[...] + x
    return ref[0] * 2.0


def test_compiled_code_writes_to_the_references_of_a_call():
    ref = rune.new_ref(rnp.arange(3.0))

    executable = rune.jit(add_to).lower(ref, 2.0).compile()

    assert [float(executable(ref, 2.0)), float(executable(ref, 3.0))] == [4.0, 10.0]
    np.testing.assert_array_equal(ref[...], [5.0, 6.0, 7.0])


def test_tracing_writes_to_no_reference():
    ref = rune.new_ref(rnp.arange(3.0))

    for stage in (rune.jit(add_to).trace(ref, 2.0), rune.jit(add_to).lower(ref, 2.0)):
        assert str(stage.out_avals) == "f32[]"
        assert [str(t) for t in stage.in_avals[0]] == ["f32[3]", "f32*[]"]
    assert rune.eval_shape(add_to, ref, 2.0) == rune.ShapeDtypeStruct((), "f32")
    np.testing.assert_array_equal(ref[...], [0.0, 1.0, 2.0])


def test_a_function_that_closes_over_a_reference_is_traced_without_writing_it():
    ref = rune.new_ref(rnp.ones(2))

    def add_beside(x: Any) -> Any:
        ref[0] = x
        return ref[...] + x

    stage = rune.jit(add_beside).trace(3.0)
    np.testing.assert_array_equal(ref[...], [1.0, 1.0])

    np.testing.assert_array_equal(stage.lower().compile()(4.0), [8.0, 5.0])
    np.testing.assert_array_equal(ref[...], [4.0, 1.0])


def test_a_program_gives_the_last_values_of_its_references_after_the_result():
    program, shape = rune.make_program(add_to, return_shape=True)(rune.new_ref(rnp.arange(3.0)), 2.0)

    result, last = rune.jaxpr_as_fun(program)(X[:3], 2.0)
    assert shape == rune.ShapeDtypeStruct((), "f32")
    assert result == 4.0
    np.testing.assert_array_equal(last, [2.0, 3.0, 4.0])


@pytest.mark.parametrize("is_on", [True, False])
def test_no_garbage_is_collected_while_a_program_is_compiled(is_on: bool, monkeypatch: pytest.MonkeyPatch):
    states: list[bool] = []
    lower = executables.lowered_by

    def watched(*args: Any, **options: Any) -> Any:
        states.append(gc.isenabled())
        return lower(*args, **options)

    monkeypatch.setattr(executables, "lowered_by", watched)
    before = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        result = rune.jit(lambda x: x * 3.0 + 1.0)(X)
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()

    assert states == [False]
    np.testing.assert_allclose(result, np.asarray(X) * 3.0 + 1.0)
