"""Who may import whom: the rooms of the design, checked for every file.

Imports point down only. Every file belongs to a room, so a new room must be given its place here.
Imports of the package inside functions and look-ups in `sys.modules` are forbidden, because they
would hide a cycle. Drivers are imported only in the backends, on first use. Not even types form a
cycle, except for two groups that are listed, none of them in the backends.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, Import, Source, imports, late_loads, module_of, sources

# From the top down. A room may import from rooms below its own row, and from itself; rooms of one
# row are independent of each other.
ROWS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("rune.as_jax",),
    ("rune",),
    ("rune.checkpoints",),  # of one process by rune.files, of several by rune.distributed
    (
        "rune.nn",
        "rune.optim",
        "rune.quantized",
        "rune.data",
        "rune.viz",
        "rune.distributed",
        "rune.extend",
        "rune.exporting",
    ),
    ("rune.checkify", "rune.image", "rune.sparse", "rune.test_util", "rune.profiler", "rune.ref"),
    ("rune.tree_files",),
    ("rune.files",),
    ("rune.array_methods",),
    ("rune.array_at",),
    ("rune.array_functions",),
    ("rune.lax", "rune.random"),
    ("rune.scipy",),
    ("rune.flatten_util",),
    ("rune.numpy",),
    ("rune.control", "rune.debug", "rune.settings"),
    ("rune.transforms",),
    ("rune.typing",),
    ("rune.array",),
    ("rune.array_state",),
    ("rune.sharding",),
    ("rune.backends",),
    ("rune.lowering",),
    ("rune.ops",),
    ("rune.core",),
    ("rune.tree_util",),
    ("rune.dims", "rune.dtypes", "rune.tree", "rune.pretty", "rune.effects"),
    ("rune.config",),
    ("rune.absent", "rune.options", "rune.profiling", "rune.tracebacks"),
    ("rune.processes", "rune.drawing"),
    ("rune.counts", "rune.errors", "rune.locks", "rune.version"),
    ("rune.scopes", "rune.frames", "rune.listing"),
    ("rune.records", "rune.context", "rune.float_errors", "rune.number_tables"),
)
HEIGHT = {room: -number for number, row in enumerate(ROWS) for room in row}
DRIVERS = {"llvmlite", "pyopencl", "vulkan", "wgpu", "pycuda", "cuda", "mpi4py"}
ONLY_IN_BACKENDS = DRIVERS | {"ctypes", "cffi"}
HARD = {"numpy", "ml_dtypes"}
KNOWN = frozenset(s.name for s in sources())
# Files that may ask which modules others have loaded.
LOOKED_UP = {
    "rune/absent/__init__.py",
    "rune/as_jax/__init__.py",
    "rune/as_jax/jax/scipy/stats.py",
    "rune/core/leaks.py",
    "rune/frames.py",
    "rune/tracebacks.py",
}
# Rooms whose modules name each other's types in a cycle: a program, the primitives that it applies
# and the interpreters that apply them; operations and the arrays that they take. There are no
# others.
CIRCLES_OF_TYPES = (
    {"rune.core"},
    {"rune.ops", "rune.array", "rune.typing", "rune.sharding", "rune.tree", "rune.tree_files"},
)
# JAX's modules, which are loaded by the names that they have in JAX.
STAND_INS = {"jax", "jaxlib"}


def room(module: str) -> str:
    """The room of a module. A program that `python -m` runs is above all modules that it
    imports."""
    parts = module.split(".")
    if parts[-1] == "__main__":
        return "__main__"
    return "rune" if len(parts) == 1 else ".".join(parts[:2])


def every_import() -> Iterator[tuple[Source, Import]]:
    """All imports of the package, with their files."""
    return ((s, module) for s in sources() for module in imports(s))


def test_every_file_belongs_to_a_room_of_the_design():
    homeless = {room(s.name) for s in sources()} - set(HEIGHT)

    assert not homeless, "give the new room its row in ROWS"


def test_imports_point_down():
    up = []
    for source, module in every_import():
        target, home = module_of(module.target, KNOWN), room(source.name)
        if target and room(target) != home and not module.for_types_only:
            if HEIGHT[room(target)] >= HEIGHT[home]:
                up.append(f"{source}:{module.line} imports {target}")

    assert not up


def test_no_import_of_the_package_hides_in_a_function():
    offences = [
        f"{source}:{module.line} imports {module.target}"
        for source, module in every_import()
        if module.inside_function and module.target.split(".")[0] == "rune"
    ]

    assert not offences


def test_drivers_are_imported_in_the_backends_only():
    astray = [
        f"{source}:{module.line} imports {module.target}"
        for source, module in every_import()
        if module.target.split(".")[0] in ONLY_IN_BACKENDS and room(source.name) != "rune.backends"
    ]

    assert not astray


def test_outside_the_backends_only_the_hard_dependencies_are_imported():
    permitted = HARD | {"rune"} | set(sys.stdlib_module_names)
    others = [
        f"{source}:{module.line} imports {module.target}"
        for source, module in every_import()
        if module.target.split(".")[0] not in permitted | _stand_ins(source) and room(source.name) != "rune.backends"
    ]

    assert not others


def _stand_ins(source: Source) -> set[str]:
    return STAND_INS if room(source.name) == "rune.as_jax" else set()


def test_modules_import_each_other_without_a_cycle():
    graph = {s.name: _needed(s) for s in sources() if s.name != "rune"}
    order: set[str] = set()
    while len(order) < len(graph):
        ready = {m for m in graph if m not in order and graph[m] <= order}
        assert ready, f"a cycle among {sorted(set(graph) - order)}"
        order |= ready


def test_the_backends_have_no_import_cycle_even_for_types():
    backends = [s for s in sources() if room(s.name) == "rune.backends"]
    graph = {s.name: _named(s) & {b.name for b in backends} for s in backends}

    assert not circle(graph)


def test_the_only_cycles_of_types_are_the_listed_ones():
    graph = {s.name: {module_of(i.target, KNOWN) for i in imports(s)} - {s.name, "", "rune"} for s in sources()}
    for_types = {(s.name, module_of(i.target, KNOWN)) for s in sources() for i in imports(s) if i.for_types_only}
    rooms = [{room(m) for m in c} for c in circles(graph, for_types)]

    assert all(any(c <= known for known in CIRCLES_OF_TYPES) for c in rooms)
    assert len(rooms) == len(CIRCLES_OF_TYPES)


def circles(graph: dict[str, set[str]], closing: set[tuple[str, str]]) -> set[frozenset[str]]:
    """The modules that name each other, in groups: one for each import that closes a cycle."""
    groups = ((behind(graph, b), behind(_reversed(graph), a)) for a, b in sorted(closing) if a in behind(graph, b))
    return {frozenset(forwards & backwards) for forwards, backwards in groups}


def behind(graph: dict[str, set[str]], start: str) -> set[str]:
    """All modules reachable from a module, including itself."""
    reachable, pending = {start}, [start]
    while pending:
        new = graph.get(pending.pop(), set()) - reachable
        reachable |= new
        pending += new
    return reachable


def _reversed(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = {}
    for module, needs in graph.items():
        for dependency in needs:
            arrows.setdefault(dependency, set()).add(module)
    return arrows


def test_separate_cycles_are_distinguished():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}

    assert circles(graph, {("c", "b"), ("e", "d"), ("f", "a")}) == {frozenset("bc"), frozenset("de")}


def test_a_cycle_is_detected():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == {"a", "b", "c"}


def circle(graph: dict[str, set[str]]) -> set[str]:
    """The modules that are in a cycle, or need one that is."""
    waiting = dict(graph)
    while ready := {m for m, needs in waiting.items() if not needs & set(waiting)}:
        waiting = {m: needs for m, needs in waiting.items() if m not in ready}
    return set(waiting)


def _named(source: Source) -> set[str]:
    """The modules that a file names: imported for any purpose, or loaded late."""
    late_loads_by_name = re.findall(r"""locks\.load\(["'](rune[\w.]*)""", source.text)
    targets = [*(i.target for i in imports(source)), *late_loads_by_name]
    return {module_of(t, KNOWN) for t in targets} - {source.name, ""}


def _needed(source: Source) -> set[str]:
    """The modules whose import must have ended before this one's body runs."""
    modules = {module_of(i.target, KNOWN) for i in imports(source) if not i.inside_function and not i.for_types_only}
    return modules - {source.name, "", "rune"}


def test_no_module_is_looked_up_in_sys_modules():
    astray = {str(s) for s in sources() if "sys.modules" in s.text}

    assert astray <= LOOKED_UP, "import it, from a room below"


def test_modules_loaded_late_by_name_are_in_lower_layers_too():
    up = []
    for source in sources():
        home = room(source.name)
        for load in late_loads(source):
            target = module_of(load.target, KNOWN)
            if target and room(target) != home and HEIGHT[room(target)] >= HEIGHT[home]:
                up.append(f"{source}:{load.line} loads {target}")

    assert not up


def test_modules_are_loaded_late_in_a_few_places_only():
    # Decision 0008. Within the backends, drivers are loaded late as well.
    late = {str(s) for s in sources() if any(late_loads(s))}

    rooms = {s for s in late if not s.startswith("rune/backends/")}
    assert rooms == {
        "rune/__init__.py",
        "rune/absent/__init__.py",
        "rune/array_functions.py",
        "rune/array_methods.py",
        "rune/as_jax/jax/scipy/stats.py",
        "rune/as_jax/__init__.py",
        "rune/as_jax/stand_ins.py",  # private modules of JAX, when a library asks for them
        "rune/data/progress.py",  # tqdm is optional
        "rune/core/leaks.py",  # looks at every module, and uses none
        "rune/frames.py",  # tells whether code is a cell of a notebook
        "rune/locks.py",
        "rune/lowering/late_modules.py",  # predicts costs and draws
        "rune/numpy/mutable_boxes.py",
        "rune/optim/deprecated/__init__.py",  # goes with 0.2.0 (decision 0082)
        "rune/profiling/late_modules.py",  # draws and writes profiles
        "rune/scipy/__init__.py",
        "rune/tracebacks.py",
        "rune/transforms/late_modules.py",
        "rune/tree_files.py",
    }
    assert "rune/backends/__init__.py" in late


@pytest.mark.parametrize(
    "code", ['sys.modules["rune"].numpy', 'import_module("rune")', 'locks.load("rune")', 'locks.late_module("rune")']
)
def test_a_lookup_in_sys_modules_is_detected(code: str, tmp_path: Path):
    path = tmp_path / "hidden.py"
    path.write_text(f"def namespace():\n    return {code}\n")

    assert [(load.target, load.line) for load in late_loads(Source(path))] == [("rune", 2)]


SELDOM = (
    "rune.backends.cpu.calls.describe",
    "rune.backends.cpu.crew.run",
    "rune.backends.cpu.gemm.library",
    "rune.backends.cpu.linalg.library",
    "rune.backends.shared.refusal",
    "rune.lowering.build.groups",
    "rune.lowering.build.legal",
    "rune.lowering.costs",
    "rune.lowering.graphs",
    "rune.lowering.legalize.narrow_storage",
    "rune.lowering.legalize.parts",
    "rune.lowering.scatters",
    "rune.lowering.sorting.sorts",
    "rune.scipy.stats",
)


def test_a_first_call_loads_nothing_that_few_programs_need():
    code = "import sys, rune; rune.jit(rune.lax.sin)(1.0); print(sorted(set(sys.modules) & set(sys.argv[1:])))"

    process = subprocess.run(
        [sys.executable, "-c", code, *SELDOM], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert set(SELDOM) <= KNOWN
    assert process.stdout.strip() == "[]"


def test_an_eager_transform_whose_code_is_on_disk_loads_nothing_that_writes_code():
    graph = {s.name: _needed(s) for s in sources()}

    loaded = behind(graph, "rune.backends.cpu.fft.arrays")

    assert "rune.backends.cpu.fft.rows" in loaded
    assert not {m for m in loaded if m.startswith("rune.lowering.codegen.llvm")}


def test_importing_the_package_imports_no_driver():
    code = "import sys, rune; print(sorted(set(sys.modules) & set(sys.argv[1:])))"

    process = subprocess.run(
        [sys.executable, "-c", code, *sorted(DRIVERS)], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert process.stdout.strip() == "[]"
