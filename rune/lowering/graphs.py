"""Graphs of a kernel program and of a plan: steps are nodes, and values that they pass are edges.

An edge that fusion did not remove from a kernel program says why. An edge of a plan says where in
memory the value lies: it comes from the step that wrote there last.
"""

from __future__ import annotations

import textwrap

from rune.core.graph import Edge, Graph, Node
from rune.lowering.kernels import Choose, Invoke, KernelProgram, KernelStep, Repeat, Routine, Value
from rune.lowering.kernels_text import program_text
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step, buffer_type
from rune.lowering.plan_text import slot_text
from rune.lowering.plan_text import to_text as plan_text
from rune.lowering.steps import memory, slots_read, slots_written, step_name

WRAP = 24  # most letters in a line of an edge's label


def kernels_graph(program: KernelProgram) -> Graph:
    """Kernels and routines, and the values that they pass on."""
    # Keyed by consumer as well: a value may be fused into one reader and not into another.
    why = {(n.value, n.consumer): n.why for n in program.not_fused}
    origins = {v: f"v{n}" for n, v in enumerate(program.inputs)}
    nodes = [Node(origin, f"{v}: {v.type}", "value") for v, origin in origins.items()]
    edges: list[Edge] = []
    for number, step in enumerate(program.steps):
        name, kind = _named(step)
        nodes.append(Node(f"s{number}", name, kind))
        for value in dict.fromkeys(step.operands):
            label = _label(value, why.get((value, name))) if origins[value][0] == "s" else ""
            edges.append(Edge(origins[value], f"s{number}", label))
        origins.update(dict.fromkeys(step.results, f"s{number}"))
    for number, value in enumerate(program.outputs):
        nodes.append(Node(f"r{number}", f"result {number}: {value.type}", "value"))
        edges.append(Edge(origins[value], f"r{number}"))
    return Graph(program.name, tuple(nodes), tuple(edges), program_text(program))


def _named(step: KernelStep) -> tuple[str, str]:
    match step:
        case Invoke(kernel=kernel):
            return kernel, "step"
        case Routine(routine=routine):
            return routine, "call"
        case Repeat(count=count):
            return ("repeat while" if count is None else f"repeat {count} times"), "loop"
        case Choose(branches=branches):
            return f"choose of {len(branches)}", "loop"


def _label(value: Value, why: str | None) -> str:
    text = f"{value}: {value.type}"
    return text if why is None else f"{text}\n{textwrap.fill(why, WRAP)}"


def plan_graph(plan: Plan) -> Graph:
    """The steps by number, and the memory through which each gets its values."""
    origins: dict[tuple, str] = {}
    results: dict[str, Slot] = {}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for number, step in enumerate(plan.steps):
        for slot in dict.fromkeys(slots_read(plan, step)):
            if slot.space is Space.ARGUMENT and memory(slot) not in origins:
                origins[memory(slot)] = f"a{slot.number}"
                nodes.append(Node(f"a{slot.number}", _outside(plan, slot), "value"))
            if memory(slot) in origins:  # else an array that a loop is yet to fill
                place = "" if slot.space is Space.ARGUMENT else slot_text(plan, slot)
                edges.append(Edge(origins[memory(slot)], f"s{number}", place))
        nodes.append(Node(f"s{number}", f"{number}: {step_name(step)}", _kind(step)))
        for slot in slots_written(plan, step):
            origins[memory(slot)] = f"s{number}"
            if slot.space is Space.RESULT:  # the last write counts: others may use its memory before
                results[f"r{slot.number}"] = slot
    nodes += [Node(name, _outside(plan, slot), "value") for name, slot in results.items()]
    edges += [Edge(origins[memory(slot)], name) for name, slot in results.items()]
    return Graph(plan.name, tuple(nodes), tuple(edges), plan_text(plan, codes=False))


def _outside(plan: Plan, slot: Slot) -> str:
    return f"{slot.space.value} {slot.number}: {buffer_type(plan, slot)}"


def _kind(step: Step) -> str:
    match step:
        case Launch():
            return "step"
        case Call() | Copy():
            return "call"
        case Loop() | Branch():
            return "loop"
