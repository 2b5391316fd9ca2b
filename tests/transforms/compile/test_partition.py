"""A program that moves values runs in parts, each on its device, and means what it meant.

The reference executor, present everywhere, is the other device; then every device present
runs one program together. First the data: segments and copies as text. Then values, derivatives,
places of results, and what is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune.array import CPU
from rune.core.program import Atom, Equation, Program, Var
from rune.errors import DeviceError
from rune.transforms.compile import run as compile
from rune.transforms.compile.partition import Segment, Transfer, partition
from rune.transforms.compile.transfer import has_moves, to_device
from tests.support.arrays import array
from tests.support.close import close, near
from tests.support.oracle import by_reference
from tests.support.random_programs import random_program

OTHER = "reference:0"
HOST = np.array([0.5, 1.0, 2.0], np.float32)
COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
AWAY = [name for name in COMPUTING if name != "cpu:0"]
WHY = "the same kernels, compiled for other devices"


def there_and_back(x: Any, device: str = OTHER) -> Any:
    """exp(sin x) + sin x: the exponential elsewhere."""
    y = rnp.sin(x)
    return rune.device_put(rnp.exp(rune.device_put(y, device)), "cpu") + y


def expected() -> np.ndarray:
    return np.exp(np.sin(HOST)) + np.sin(HOST)


def where(x: Any) -> tuple[str, bool]:
    return x.device.name, x.committed


def parts(function: Any, *args: Any, places: Any = None) -> Any:
    devices = places or (None,) * len(args)
    return partition(rune.jit(function).program(*args), "cpu:0", devices)


# --- the data ---------------------------------------------------------------------------------


def test_a_moved_value_splits_the_program_and_is_copied(expect: Any):
    expect(
        parts(there_and_back, array(HOST)),
        """
        partition there_and_back at home on cpu:0 {
          cpu:0: %1 = there_and_back.0 %0  # equations: 1
          copy %1 from cpu:0 to reference:0
          reference:0: %2 = there_and_back.1 %1  # equations: 1
          copy %2 from reference:0 to cpu:0
          cpu:0: %3 = there_and_back.2 %2, %1  # equations: 1
          return %3 on cpu:0
        }""",
    )


def test_operations_that_do_not_wait_for_the_other_device_stay_in_one_segment(expect: Any):
    def f(x: Any) -> Any:
        a = rune.device_put(rnp.sin(x), OTHER) * 2.0
        b = rnp.cos(x) + 1.0
        c = rune.device_put(rnp.exp(x), OTHER) * 3.0
        return a + c, b * b

    expect(
        parts(f, array(HOST)),
        """
        partition f at home on cpu:0 {
          cpu:0: %1, %2, %3 = f.0 %0  # equations: 5
          copy %1 from cpu:0 to reference:0
          copy %2 from cpu:0 to reference:0
          reference:0: %4 = f.1 %1, %2  # equations: 3
          return %4 on reference:0, %3 on cpu:0
        }""",
    )


def test_a_value_is_copied_to_a_device_once():
    def f(x: Any) -> Any:
        y = rnp.sin(x)
        a = rnp.exp(rune.device_put(y, OTHER))
        b = rune.device_put(rune.device_put(a, "cpu") * 2.0, OTHER)
        return b + rune.device_put(y, OTHER)

    steps = parts(f, array(HOST)).steps
    copies = [(s.value, s.target) for s in steps if isinstance(s, Transfer)]
    assert len(copies) == len(set(copies)) == 3


def test_a_move_to_where_a_value_already_is_costs_nothing():
    def f(x: Any) -> Any:
        return rnp.sin(rune.device_put(rune.device_put(x, "cpu"), "cpu:0"))

    steps = parts(f, array(HOST)).steps
    assert [type(s) for s in steps] == [Segment]


def test_a_nested_jit_is_inlined_only_if_it_moves_values():
    inner = rune.jit(lambda x: rnp.sin(x) * 2.0)

    def f(x: Any) -> Any:
        return rune.jit(there_and_back)(inner(x))

    first = parts(f, array(HOST)).steps[0]
    assert isinstance(first, Segment)
    assert [e.primitive.name for e in first.program.equations] == ["jit", "sin"]


def test_the_program_prints_its_moves_and_parses_back(expect: Any):
    program = rune.make_program(lambda x: rune.device_put(x, "reference") + 1.0)(array(HOST))

    expect(
        program,
        """
        program lambda(%0: f32[3]) {
          %1: f32[3] = to_device %0 {device='reference:0'}
          %2: f32[3] = add %1, 1.0: f32[]
          return %2
        }""",
    )
    assert str(rune.control.parse_program(str(program))) == str(program)


def test_explain_shows_the_parts_and_the_stages_of_each():
    stages = rune.explain(there_and_back)(array(HOST))

    assert stages["partition"] == str(parts(there_and_back, array(HOST)))
    assert [p.device for p in stages.parts] == ["cpu:0", OTHER, "cpu:0"]
    assert stages["plan"].count("launch") == 3
    assert str(stages).startswith(f"explain there_and_back on cpu:0, {OTHER}\n")


# --- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("device", AWAY)
def test_a_jitted_function_computes_on_both_devices(device: str):
    result = rune.jit(lambda x: there_and_back(x, device))(array(HOST))

    close(expected(), result, ulps=4, why=WHY)
    assert where(result) == ("cpu:0", True)


def test_one_program_runs_on_every_device_present():
    @rune.jit
    def f(x: Any) -> Any:
        for name in COMPUTING:
            x = rune.device_put(x, name) * 2.0 + 1.0
        return x

    result = f(array(HOST))
    reference = HOST
    for _ in COMPUTING:
        reference = reference * 2 + 1
    close(reference, result, ulps=0, why="small whole and half numbers")
    assert where(result) == (COMPUTING[-1], True)


@given(st.integers(0, 10_000))
def test_random_programs_with_random_moves_give_the_same_results(seed: int):
    program = random_program(seed)
    program_with_moves = with_moves(program, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    args = [array(rng.uniform(0.5, 2, t.shape).astype(t.dtype)) for t in program.input_types]

    assert has_moves(program_with_moves)
    outputs = compile.run_program(program_with_moves, args, CPU)
    for one, other in zip(by_reference(program, args), outputs, strict=True):
        near(np.asarray(one), np.asarray(other), relative=1e-4, why=WHY)


@given(st.integers(0, 10_000))
def test_a_value_is_let_go_once_after_its_last_use_and_results_never(seed: int):
    program_with_moves = with_moves(random_program(seed), np.random.default_rng(seed))
    parts = partition(program_with_moves, "cpu:0", (None,) * len(program_with_moves.inputs))

    dead: set[Any] = set()
    for step, last_reads in zip(parts.steps, parts.last_reads, strict=True):
        if isinstance(step, Transfer):
            read = {(step.value, step.source)}
        else:
            read = {(v, step.device) for v in step.program.inputs}
        assert not read & dead
        assert not dead.intersection(last_reads)
        dead.update(last_reads)
    assert not dead & {(r.atom, r.device) for r in parts.results}


def with_moves(program: Program, rng: np.random.Generator) -> Program:
    """Every equation on a device that is drawn, and its operands moved there."""
    body: list[Equation] = []
    for equation in program.equations:
        device = ("cpu:0", OTHER)[rng.integers(2)]
        operands: list[Atom] = []
        for atom in equation.operands:
            copy = Var(atom.type)
            body.append(Equation(to_device, (atom,), {"device": device}, (copy,)))
            operands.append(copy)
        body.append(replace(equation, operands=tuple(operands)))
    return program.with_equations(body, program.outputs)


def test_sizes_are_symbolic_in_the_parts_too():
    f = rune.jit(there_and_back, dims={"n": (1, 100)})

    for n in (3, 7):
        x = np.linspace(0, 1, n, dtype=np.float32)
        close(np.exp(np.sin(x)) + np.sin(x), f(array(x)), ulps=4, why=WHY)
    assert f.cache_size() == 1


def test_a_part_without_an_array_of_a_size_receives_the_size():
    def f(x: Any) -> Any:
        total = rune.device_put(rnp.sum(x), OTHER)
        return rnp.broadcast_to(total * 2.0, x.shape)

    sums_there = rune.jit(f, dims={"n": (1, 100)})(array(HOST))
    close(np.full(3, 7.0, np.float32), sums_there, ulps=0, why="exact")


def test_callbacks_keep_their_order_across_devices():
    events: list[str] = []

    @rune.jit
    def f(x: Any) -> Any:
        for number in range(4):
            x = rune.device_put(x, ("cpu", OTHER)[number % 2]) + 1.0
            rune.debug.callback(lambda v, n=number: events.append(f"{n}:{v[0]}"), x, ordered=True)
        return x

    f(array(HOST))
    assert events == ["0:1.5", "1:2.5", "2:3.5", "3:4.5"]


def test_a_constant_output_is_where_it_was_moved():
    result = rune.jit(lambda x: (rune.device_put(2.0, OTHER) * 1.0, x))(array(HOST))[0]

    assert float(result) == 2.0
    assert where(result) == (OTHER, True)


def test_a_moved_argument_is_returned_on_its_new_device():
    result = rune.jit(lambda x: rune.device_put(x, OTHER))(array(HOST))

    close(HOST, result, ulps=0, why="moved")
    assert where(result) == (OTHER, True)


def test_a_tree_moves_leaf_by_leaf():
    arrays = rune.jit(lambda t: rune.device_put(t, OTHER))({"a": array(HOST), "b": 1.0})

    assert {k: where(v) for k, v in arrays.items()} == {"a": (OTHER, True), "b": (OTHER, True)}


# --- transformations --------------------------------------------------------------------------


def loss(x: Any) -> Any:
    return rnp.sum(rnp.exp(rune.device_put(rnp.sin(x), OTHER)) * 2.0)


def gradient() -> np.ndarray:
    return 2 * np.exp(np.sin(HOST)) * np.cos(HOST)


GRADIENTS = {
    "eager": rune.grad(loss),
    "jit of grad": rune.jit(rune.grad(loss)),
    "grad of jit": rune.grad(rune.jit(loss)),
    "of a checkpoint": rune.grad(rune.checkpoint(loss)),
    "forwards": rune.jacfwd(loss),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives_pass_through_a_move_and_return_to_the_first_device(name: str):
    slope = GRADIENTS[name](array(HOST))

    close(gradient(), slope, ulps=8, why=WHY)
    if name != "forwards":
        assert where(slope) == ("cpu:0", False)


def test_a_hessian_passes_a_move():
    hessian = rune.hessian(loss)(array(HOST))

    s, c = np.sin(HOST.astype(np.float64)), np.cos(HOST.astype(np.float64))
    near(np.diag(2 * np.exp(s) * (c * c - s)), np.asarray(hessian), relative=1e-5, why="f32")


@pytest.mark.parametrize("order", ["vmap of jit", "jit of vmap", "eager"])
def test_lanes_move_together(order: str):
    f = {
        "vmap of jit": rune.vmap(rune.jit(there_and_back)),
        "jit of vmap": rune.jit(rune.vmap(there_and_back)),
        "eager": rune.vmap(there_and_back),
    }[order]

    lanes = f(array(np.stack([HOST, HOST])))
    close(np.stack([expected()] * 2), lanes, ulps=4, why=WHY)


def test_residuals_on_two_devices_meet_in_one_backward_pass():
    def f(x: Any) -> Any:
        y = rnp.exp(rune.device_put(rnp.sin(x), OTHER))
        return rnp.sum(rnp.sin(rune.device_put(y, "cpu")) * x)

    outs, pullback = rune.vjp(rune.jit(f), array(HOST))
    (cotangent,) = pullback(rnp.ones_like(outs))

    plain = np.exp(np.sin(HOST))
    reference = np.sin(plain) + HOST * np.cos(plain) * plain * np.cos(HOST)
    near(reference, np.asarray(cotangent), relative=1e-5, why="a difference of larger numbers")


# --- places -----------------------------------------------------------------------------------


def test_eager_and_compiled_moves_give_the_same_places():
    def f(x: Any) -> Any:
        y = rune.device_put(x, OTHER)
        return x * 2.0, y, y + x, rune.device_put(y, "cpu") * 2.0

    eager, in_program = map(lambda g: [where(v) for v in g(array(HOST))], (f, rune.jit(f)))
    assert eager == in_program


def test_a_committed_argument_stays_where_it_was_put():
    x = rune.device_put(HOST, OTHER)

    results = rune.jit(lambda a, b: (a * 2.0, rune.device_put(a, "cpu") + b))(x, array(HOST))
    assert [where(v) for v in results] == [(OTHER, True), ("cpu:0", True)]


def test_jit_with_a_device_starts_on_that_device():
    program = rune.jit(there_and_back, device=OTHER)
    result = program(rune.device_put(HOST, "cpu"))

    close(expected(), result, ulps=4, why=WHY)
    assert where(result) == ("cpu:0", True)


def test_inside_a_device_block_the_program_runs_on_that_device():
    with rune.device(OTHER):
        results = rune.jit(lambda x: (x + 1.0, rune.device_put(x, "cpu")))(rnp.zeros(2))

    assert [where(v) for v in results] == [(OTHER, False), ("cpu:0", True)]


LOOPS_AT_HOME = {
    "scan": lambda x, device: rune.fori_loop(0, 3, lambda i, c: rune.device_put(c, device) + 1.0, x),
    "while": lambda x, device: rune.while_loop(lambda c: c[0] < 9.0, lambda c: rune.device_put(c, device) + 1.0, x),
    "cond": lambda x, device: rune.cond(x[0] > 0.0, lambda c: rune.device_put(c, device), lambda c: c, x),
}


@pytest.mark.parametrize("name", LOOPS_AT_HOME)
def test_a_move_inside_a_loop_or_branch_to_where_it_runs_leaves_the_value(name: str):
    loop = LOOPS_AT_HOME[name]

    result = rune.jit(lambda x: loop(x, "cpu"))(array(HOST))
    slope = rune.jit(rune.grad(lambda x: rnp.sum(loop(x, "cpu"))))(array(HOST)) if name != "while" else None

    close(np.asarray(rune.jit(lambda x: loop(x, None))(array(HOST))), result, ulps=0, why="the same operations")
    assert where(result) == ("cpu:0", True)
    assert slope is None or np.array_equal(np.asarray(slope), np.ones(HOST.shape))


@pytest.mark.parametrize("name", LOOPS_AT_HOME)
def test_a_move_home_inside_a_loop_of_values_elsewhere_is_refused(name: str):
    with pytest.raises(DeviceError, match=f"device_put: cannot move a value inside {name}"):
        rune.jit(lambda x: LOOPS_AT_HOME[name](x, "cpu"))(rune.device_put(array(HOST), OTHER))


# --- refused ----------------------------------------------------------------------------------


def test_operands_on_two_devices_are_an_error_that_names_them_and_the_line():
    def f(x: Any) -> Any:
        return rune.device_put(x, "cpu") + rune.device_put(x, OTHER)

    with pytest.raises(DeviceError, match="add: cannot combine arrays on different devices") as error:
        rune.jit(f)(array(HOST))
    assert "(f32[3] on cpu:0, f32[3] on reference:0)" in error.value.message
    assert error.value.frame is not None
    assert error.value.frame.line == f.__code__.co_firstlineno + 1


LOOPS = {
    "scan": lambda x: rune.fori_loop(0, 3, lambda i, c: rune.device_put(c, OTHER) + 1.0, x),
    "while": lambda x: rune.while_loop(lambda c: rnp.sum(c) < 9.0, lambda c: rune.device_put(c, OTHER) + 1.0, x),
    "cond": lambda x: rune.cond(x[0] > 0.0, lambda c: rune.device_put(c, OTHER), lambda c: c, x),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_move_inside_a_loop_or_branch_is_refused(name: str):
    with pytest.raises(DeviceError, match=f"device_put: cannot move a value inside {name}"):
        rune.jit(LOOPS[name])(array(HOST))


def test_a_missing_device_is_an_error_while_tracing():
    with pytest.raises(DeviceError, match="device: cannot find 'nowhere'"):
        rune.jit(lambda x: rune.device_put(x, "nowhere"))(array(HOST))
