"""A call for each place that raises in backends and lowering, which users seldom reach.

errors_of_backends.txt is the golden text. Most calls hand a function what the functions before it
never would: a plan with a wrong step, an operation that no language has. Errors that the tests of a
file already provoke are left out, and so are refusals of drivers: tests/backends has those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rune import dtypes
from rune.backends import Device, device_named, null
from rune.backends.cpu import llvm
from rune.backends.cpu.gemm.library import library
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.vulkan import items, schedule
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.errors import MissingRule
from rune.lowering import passes, plan_text
from rune.lowering.build import loops
from rune.lowering.codegen.accesses import AccessWalk
from rune.lowering.codegen.llvm import render as llvm_render
from rune.lowering.codegen.llvm.ir import types as llvm_types
from rune.lowering.codegen.machine import Machine
from rune.lowering.codegen.spirv import scalar as spirv_scalar
from rune.lowering.codegen.target import Native
from rune.lowering.codegen.wgsl import expr as wgsl_expr
from rune.lowering.codegen.wgsl import wide as wgsl_wide
from rune.lowering.kernel.text import parse as kernel
from rune.lowering.kernelize import emit, write
from rune.lowering.kernelize.roots import Kind
from rune.lowering.legalize.scalars import attach_functions
from rune.lowering.plan import Call, Slot, Space
from rune.lowering.scalar.number import Number
from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke, works_as_before
from tests.architecture.sources import HERE, ROOT
from tests.backends.plans import plan_of
from tests.support.expect import expect_file
from tests.support.lowering import PLAIN, f32

DOUBLE = kernel("code double(x: read f32[3], y: write f32[3]) { for i in 3 grid { store y[i] = x[i] + x[i] } }")
PLAN = plan_of(DOUBLE)
SORT = Call("sort", (Slot(Space.RESULT, f32(3)),), (Slot(Space.ARGUMENT, f32(3)),), ())


def on(device: str) -> Any:
    """The plan, ready to run on a device."""
    return device_named(device).backend.record(PLAN)


def donated() -> null.NullBuffer:
    """A buffer whose memory was donated to another array."""
    return null.NullBuffer(f32(3), alive=False)


def device_without_counts() -> Device:
    """A device of another package, whose backend has only the required methods."""
    target = replace(PLAIN, name="other:0", backend="other")
    return Device(target, SimpleNamespace(open_device=lambda target: SimpleNamespace(synchronize=lambda: None)))


NAMES: dict[str, Any] = {
    "llvm": llvm,
    "library": library,
    "refuse_routines": refuse_routines,
    "passes": passes,
    "plan_text": plan_text,
    "llvm_render": llvm_render,
    "Machine": Machine,
    "counting": kernel("code counts(y: readwrite i32[2]) { for i in 9 grid { atomic y[0] add= 1_i32 } }"),
    "llvm_types": llvm_types,
    "spirv_scalar": spirv_scalar,
    "wgsl_expr": wgsl_expr,
    "wgsl_wide": wgsl_wide,
    "attach_functions": attach_functions,
    "bare_language": Native(frozenset()),
    "code": DOUBLE,
    "dtypes": dtypes,
    "null": null,
    "on": on,
    "donated": donated,
    "other": device_without_counts(),
    "test": PLAIN,
    "buffer": null.NullBuffer(ArrayType((3,), dtypes.f64)),
    "sorting": replace(PLAN, steps=(SORT,)),
    "misnamed": replace(PLAN, kernels={"double": replace(DOUBLE, name="twice")}),
    "text": plan_text.to_text(PLAN),
    "backend": lambda name: device_named(name).backend,
    "bare": Primitive("bare", "test", lambda x: x, lambda x: x),
    "f32": f32,
}

BACKENDS: list[tuple[str, str]] = [
    ("the memory of a device that does not count it", "rune.memory_stats(other)"),
    ("the work of a device that does not count it", "rune.work_stats(other)"),
    ("a product of f16 by the routine of the CPU", "library(dtypes.f16, cores=1, parallel=1, effort=2, routine='dot')"),
    ("more memory for LLVM than there is", "llvm._require_room('f', 1 << 62)"),
    ("a routine where only Python can be called", "refuse_routines(sorting, test)"),
    ("an argument of another dtype on the CPU", "on('cpu')([np.zeros(3)])"),
    ("an argument too many", "on('cpu')([np.zeros(3, np.float32)] * 2)"),
    ("an argument of another dtype in the reference", "on('reference')([np.zeros(3)])"),
    ("an argument with gaps in the reference", "on('reference')([np.zeros(6, np.float32)[::2]])"),
    ("an argument of another dtype on null", "on('null')([buffer])"),
    ("an argument that was donated", "on('null')([donated()])"),
    ("a copy of what was donated", "backend('null').copy_out(donated(), f32(3))"),
    ("a kernel under another name", "backend('null').record(misnamed)"),
]

LOWERING: list[tuple[str, str]] = [
    ("a primitive without a lowering", "rune.jit(lambda v: bare(v))(x)"),
    ("passes that never come to rest", "passes.fixpoint(passes.Pass('grow', '', lambda n: n + 1)).run(0)"),
    ("a plan of one line", "plan_text.parse('plan f on test')"),
    ("a plan with an unknown type", "plan_text.parse(text.replace('f32[3]', 'f99[3]', 1))"),
    ("a plan with an unknown step", "plan_text.parse(text.replace('<-', '~'))"),
    ("a launch of too many slots", "plan_text.parse(text.replace('<- argument 0', '<- argument 0, argument 0'))"),
    ("an operation that a language neither has nor can write", "attach_functions(code, bare_language)"),
    ("a type that LLVM lacks", "llvm_types.require_supported(dtypes.f8_e5m2)"),
    ("an operation that SPIR-V lacks", "spirv_scalar.operation('magic', dtypes.f32, ())"),
    ("an atomic change on the CPU", "llvm_render.render(counting, Machine(64, has_cheap_masks=True))"),
    ("a register that WGSL lacks", "wgsl_expr.Expressions({}, {}).register(dtypes.f64)"),
    ("elements that WGSL cannot store", "wgsl_expr.require_stored(dtypes.f64)"),
    ("an index of more than 32 bits in WGSL", "wgsl_expr._integer(1 << 40, dtypes.i32, 'i')"),
    ("an operation on 64 bits that WGSL lacks", "wgsl_wide.operation('magic', [])"),
    ("a float of 64 bits in WGSL", "wgsl_wide.cast('x', dtypes.f32, dtypes.u64)"),
]

CALLS = BACKENDS + LOWERING

# Misuse that rune's own code never commits: each guard is called with arguments that would
# otherwise give wrong numbers. Methods are called without their object, which they do not reach.
NOBODY: Any = None
GUARDS: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "a statement without inner points": (AssertionError, lambda: loops._inner(NOBODY)),
    "a root that is not a kernel": (
        AssertionError,
        lambda: write._Writer.member(NOBODY, cast(Any, SimpleNamespace(kind=Kind.ROUTINE))),
    ),
    "an equation without a rule": (
        MissingRule,
        lambda: [*emit.Emitter.elementwise(EMITTER, cast(Any, EQUATION), (cast(Any, EQUATION.output), (), None))],
    ),
    "a scaling without its instruction": (NotImplementedError, lambda: Number.scaled(NOBODY, NOBODY)),
    "a function of a library that is not called": (NotImplementedError, lambda: Number.by_library(NOBODY, "sin")),
    "neighbours that are read at once": (NotImplementedError, lambda: AccessWalk.load_run(NOBODY, NOBODY)),
    "neighbours that are written at once": (NotImplementedError, lambda: AccessWalk.store_run(NOBODY, NOBODY)),
    "a read of a whole subgroup": (NotImplementedError, lambda: AccessWalk.read_together(NOBODY, NOBODY)),
    "a piece of such a read": (NotImplementedError, lambda: AccessWalk.take(NOBODY, NOBODY)),
    "launches of a call of Python": (AssertionError, lambda: items._replaced(items.Callback(SORT, ()), {})),
    "a step that Vulkan does not have": (AssertionError, lambda: schedule._Scheduler.item(NOBODY, NOBODY)),
}
EMITTER: Any = SimpleNamespace(arguments=lambda atoms, answers: [])
EQUATION = SimpleNamespace(
    primitive=SimpleNamespace(name="magic", lower=None), operands=(), frame=None, output=SimpleNamespace(type=f32(3))
)
ASSERTING = {
    f"rune/{name}.py"
    for name in (
        "backends/vulkan/items",
        "backends/vulkan/record",
        "backends/vulkan/schedule",
        "lowering/build/loops",
        "lowering/kernelize/write",
    )
}


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "errors_of_backends.txt", golden_text(CALLS, NAMES))


@pytest.mark.parametrize("code", [c for _, c in CALLS], ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar(code: str):
    has_the_form_of_the_grammar(str(provoke(code, NAMES)))


@pytest.mark.parametrize("title", GUARDS)
def test_a_guard_stops_every_misuse_that_rune_itself_never_makes(title: str):
    error, call = GUARDS[title]

    with pytest.raises(error):
        call()


def test_nothing_but_these_guards_raises_a_bare_assertion():
    paths = [p for room in ("backends", "lowering") for p in (ROOT / "rune" / room).rglob("*.py")]
    asserting = {str(p.relative_to(ROOT)) for p in paths if "raise AssertionError" in p.read_text()}

    assert asserting == ASSERTING


def test_everything_works_after_all_these_errors():
    for _, code in CALLS:
        provoke(code, NAMES)

    works_as_before()
