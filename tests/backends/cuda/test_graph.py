"""CUDA graphs as data: the graph of a concrete plan, before any call of a driver.

Nodes, the table of arguments, launch shapes, and the steps that the host has to run. That the nodes
compute the right results is tested in test_cuda.py, with a fake driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cuda.compiler import architecture
from rune.backends.cuda.edges import waits
from rune.backends.cuda.graph import MOST_BLOCKS, Conditional, Division, Kernel, Nodes, Recorder, geometry, needs_host
from rune.backends.shared.executor import ConcreteStep, concrete, size_values
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.c.cuda import CUDA_C, CUDA_C_IN_PARTS
from rune.lowering.codegen.c.render import render
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Plan, Space
from tests.backends.cuda.fake import TARGET, plan_for
from tests.backends.plans import plan_of
from tests.lowering.kernel.examples import TEXTS, example
from tests.support.lowering import f32, i32


def recorded(plan: Plan, *shapes: tuple[int, ...]) -> tuple[Recorder, Nodes]:
    concrete_plan = concrete(plan, size_values(plan, shapes))
    kernels = {name: render(code, CUDA_C) for name, code in plan.kernels.items()}
    recorder = Recorder(kernels, concrete_plan.sizes, TARGET.cores)
    return recorder, recorder.nodes(concrete_plan.steps)


def text(nodes: Nodes, indent: str = "") -> str:
    """One line for each node."""
    lines = []
    for node in nodes:
        match node:
            case Kernel(handle=handle):
                sets = "" if handle is None else f" sets {handle}"
                lines.append(f"{indent}{node.name} {node.blocks[0]}x{node.threads[0]}{sets}")
            case Conditional(handle=handle, repeats=repeats):
                lines.append(f"{indent}{'while' if repeats else 'if'} {handle}")
                lines.append(text(node.body, indent + "  "))
    return "\n".join(filter(None, lines))


def test_a_long_loop_is_a_conditional_node(expect):
    plan = plan_for(lambda x: rune.fori_loop(0, 1000, lambda i, x: rnp.sin(x) + i, x), f32(8))

    expect(
        text(recorded(plan, (8,))[1]),
        """
        run_broadcast_0 1x1
        rune_copy 1x256
        rune_store 1x1
        rune_goes_on 1x1 sets 0
        while 0
          run_add_1 1x1
          run_add_2 1x32
          rune_advance 1x1
          rune_goes_on 1x1 sets 1
          if 1
            run_add_1 1x1
            run_add_2 1x32
            rune_advance 1x1
          rune_goes_on 1x1 sets 0
        rune_is_odd 1x1 sets 2
        if 2
          rune_copy 1x256""",
    )


def test_a_short_loop_is_unrolled(expect):
    plan = plan_for(lambda x: rune.fori_loop(0, 3, lambda i, x: rnp.sin(x) + i, x), f32(8))

    expect(
        text(recorded(plan, (8,))[1]),
        """
        run_broadcast_0 1x1
        rune_copy 1x256
        rune_store 1x1
        run_add_1 1x1
        run_add_2 1x32
        rune_store 1x1
        run_add_1 1x1
        run_add_2 1x32
        rune_store 1x1
        run_add_1 1x1
        run_add_2 1x32
        rune_copy 1x256""",
    )


def test_a_while_loop_looks_before_each_step(expect):
    def function(x: Any) -> Any:
        return rune.while_loop(lambda x: x[0] < 100, lambda x: rnp.cumsum(x) + 1, x)

    expect(
        text(recorded(plan_for(function, f32(8)), (8,))[1]),
        """
        rune_copy 1x256
        rune_store 1x1
        run_lt_2 1x1
        rune_goes_on 1x1 sets 0
        while 0
          run_cumsum_0 1x1
          run_add_1 1x32
          rune_advance 1x1
          run_lt_2 1x1
          rune_goes_on 1x1 sets 0""",
    )


def test_a_branch_sets_all_its_conditions_first(expect):
    def function(k: Any, x: Any) -> Any:
        return rune.switch(k, [rnp.sin, rnp.cos, rnp.cumsum], x)

    expect(
        text(recorded(plan_for(function, i32(), f32(8)), (), (8,))[1]),
        """
        rune_chosen 1x1 sets 0
        rune_chosen 1x1 sets 1
        rune_chosen 1x1 sets 2
        if 0
          run_sin_0 1x32
        if 1
          run_cos_1 1x32
        if 2
          run_cumsum_2 1x1""",
    )


def test_only_calls_of_python_and_decisions_without_conditionals_need_the_host():
    def steps(function: Callable[..., Any], *types: ArrayType) -> Any:
        plan = plan_for(function, *types)
        return concrete(plan, size_values(plan, [tuple(map(int, t.shape)) for t in types])).steps

    def loop(count: int) -> Callable[..., Any]:
        return lambda x: rune.fori_loop(0, count, lambda i, x: rnp.sin(x), x)

    assert not needs_host(steps(rnp.sin, f32(8)), False)
    assert not needs_host(steps(loop(3), f32(8)), False)
    assert needs_host(steps(loop(1000), f32(8)), False)
    assert not needs_host(steps(loop(1000), f32(8)), True)
    assert needs_host(steps(lambda k, x: rune.cond(k, rnp.sin, rnp.cos, x), i32(), f32(8)), False)
    assert needs_host(steps(lambda x: rune.pure_callback(np.sin, x, x), f32(8)), True)


def test_the_table_holds_addresses_then_sizes():
    plan = plan_of(parse(TEXTS["softmax"]))
    concrete_plan = concrete(replace(plan, size_sources=()), {"n": 3})
    recorder = Recorder({"softmax": render(example("softmax"), CUDA_C)}, concrete_plan.sizes, 4)
    (kernel,) = recorder.nodes(concrete_plan.steps)
    assert isinstance(kernel, Kernel)
    addresses = {(Space.ARGUMENT, 0): 1 << 40, (Space.RESULT, 0): 1 << 63}

    words = recorder.table().words(addresses.__getitem__)

    assert kernel.word == 0
    assert words.tolist() == [1 << 40, 1 << 63, 3]


@pytest.mark.parametrize(
    ("points", "shape"), [(0, (0, 32)), (1, (1, 32)), (300, (5, 64)), (5000, (20, 256)), (1 << 30, (1 << 22, 256))]
)
def test_a_small_grid_is_spread_over_the_cores(points: int, shape: tuple[int, int]):
    source = render(example("elementwise"), CUDA_C)

    assert geometry(source, {"n": points}, cores=4) == shape


def test_a_long_launch_is_split_into_successive_kernels_under_a_watchdog():
    n = rune.dims.symbol("n", 1, 1 << 20)
    plan = plan_for(lambda x: rnp.sin(x) + x, f32(n))
    concrete_plan = concrete(plan, size_values(plan, ((100_000,),)))
    (name,) = plan.kernels
    source = {name: render(plan.kernels[name], CUDA_C_IN_PARTS)}
    (step,) = concrete_plan.steps
    assert isinstance(step, ConcreteStep)
    in_one_piece = Recorder(source, concrete_plan.sizes, 4).kernels(step)
    division = Division({name: 1000}, 300)
    kernels = Recorder(source, concrete_plan.sizes, 4, division=division).kernels(step)

    assert len(kernels) >= 3
    assert sum(k.blocks[0] for k in kernels) == in_one_piece[0].blocks[0]
    assert [k.first for k in kernels] == [*np.cumsum([0, *[k.blocks[0] for k in kernels[:-1]]])]
    assert [k.arguments(4096, {}) for k in kernels] == [(4096 + 8 * k.word, k.first) for k in kernels]
    assert waits([k.touches for k in kernels]) == [(), *((k,) for k in range(len(kernels) - 1))]


def test_a_kernel_without_grid_axes_is_one_thread():
    source = render(example("scatter"), CUDA_C)

    assert geometry(source, {"n": 50}, cores=4) == (1, 1)


def test_a_workgroup_is_a_block_and_too_many_blocks_are_refused():
    source = render(example("workgroup"), CUDA_C)

    assert geometry(source, {}, cores=4) == (4, 8)
    with pytest.raises(DeviceError, match="cuda: cannot launch run_reverse over 2147483648 points"):
        geometry(replace(source, grid=(MOST_BLOCKS + 1,)), {}, cores=4)


def test_code_is_made_for_the_device_or_for_an_older_one_or_is_left_to_the_driver():
    known = (75, 80, 86, 90, 100)

    assert architecture((8, 0), known) == "sm_80"
    assert architecture((8, 9), known) == "sm_86"
    assert architecture((9, 0), known) == "sm_90a"
    assert architecture((9, 0), (75, 80)) == "compute_80"
    assert architecture((12, 0), known) == "compute_100"
    with pytest.raises(DeviceError, match=r"compute capability 6.1 \(NVRTC knows 7.5 and later\)"):
        architecture((6, 1), known)
