"""Compiles the kernels of a plan that users wrote, each as a program of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from rune.backends.shared.executor import ConcreteStep, evaluate
from rune.errors import CompileError, DeviceError
from rune.lowering.codegen.c.dialect import Dialect
from rune.lowering.codegen.c.render import Rendered
from rune.lowering.codegen.source_kernels import source_kernel
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import Access
from rune.lowering.plan import Plan, all_steps
from rune.lowering.source_calls import is_source, kernel_of
from rune.records import dataclass

# A compiled program of a device.
P = TypeVar("P")
Program_co = TypeVar("Program_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Sources(Generic[Program_co]):
    """Users' kernels, ready to be launched.

    kernels:  rendered sources by name
    names:    of the programs, by the id of the step that runs one; steps live as long as their plan
    programs: the device's compiled programs, by name
    """

    kernels: Mapping[str, Rendered]
    names: Mapping[int, str]
    programs: Mapping[str, Program_co]


def compile_sources(plan: Plan, target: Target, dialect: Dialect, build: Callable[[str, str], P]) -> Sources[P]:
    """Compile users' kernels. build: (source, name) -> the device's compiled program.

    Errors: CompileError with the numbered source, and for blocks with more threads or more shared
    memory than the device allows.
    """
    rendered: dict[str, Rendered] = {}
    names: dict[int, str] = {}
    known: dict[str, str] = {}  # text -> name
    programs: dict[str, P] = {}
    for step in all_steps(plan):
        if not is_source(step):
            continue
        kernel = kernel_of(step)
        threads, shared_bytes = kernel.launch.group, kernel.launch.shared_bytes
        _require_room(kernel.source.entry, threads, shared_bytes, target)
        results, operands = ([slot.type for slot in slots] for slots in (step.outputs, step.inputs))
        rendered_kernel = source_kernel(kernel, results, operands, dialect)
        name = known.setdefault(
            f"{rendered_kernel.grid} {rendered_kernel.workgroup} {rendered_kernel.text}", f"source_{len(known)}"
        )
        names[id(step)] = name
        if name not in programs:
            rendered[name], programs[name] = rendered_kernel, _built(build, rendered_kernel.text, kernel.source.entry)
    return Sources(rendered, names, programs)


def _built(build: Callable[[str, str], P], text: str, entry: str) -> P:
    try:
        return build(text, entry)
    except CompileError as error:
        hint = "this is the source of the primitive, as it was written, and behind it what rune launches"
        raise CompileError(error.message, hint, source=error.source) from error


def blocks_of(rendered: Rendered, step: ConcreteStep, sizes: Mapping[str, int]) -> list[int]:
    """Blocks along each dimension.

    Errors: DeviceError if there are no blocks but results have elements.
    """
    # A launch without blocks would silently leave the results uninitialised.
    blocks = [evaluate(n, sizes) for n in rendered.grid]
    results = [place for place, p in zip(step.places, rendered.params, strict=True) if p.access is Access.WRITE]
    if min(blocks) <= 0 and any(place.bytes for place in results):
        assert is_source(step.step)
        result_types = ", ".join(str(place.type) for place in results)
        entry = kernel_of(step.step).source.entry
        raise DeviceError(f"{entry}: cannot write {result_types} (its launch has {'x'.join(map(str, blocks))} blocks)")
    return [max(0, n) for n in blocks]


def _require_room(entry: str, threads: tuple[int, ...], shared_bytes: int, target: Target) -> None:
    count = math.prod(threads)
    if count > target.threads_per_workgroup:
        why = f"{count} threads of a block, at most {target.threads_per_workgroup}"
        raise CompileError(f"{target.backend}: cannot launch {entry} on {target.name} ({why})")
    if shared_bytes > target.shared_bytes:
        why = f"{shared_bytes} shared bytes, at most {target.shared_bytes}"
        raise CompileError(f"{target.backend}: cannot launch {entry} on {target.name} ({why})")
