"""Compiled plans on disk: the next process runs the same code without lowering, or recompiles.

An entry is found by the text of its program and gives the same bits as compiling. The key also
covers the settings, the source of rune and the processor, so a difference in any of them is a miss.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
import rune.scipy.linalg
from rune.backends.cpu import compiler, on_disk
from rune.backends.cpu.compiler import Processor
from rune.backends.cpu.on_disk import StoredExecutable
from rune.backends.cpu.run import CpuExecutable
from rune.backends.shared import disk_cache, fingerprint
from rune.core.program import Program, Var
from rune.core.words import program_words, value_words
from rune.transforms.compile import executables, stored_programs
from rune.transforms.compile.executables import compiled, device_for
from rune.typing import Array
from tests.support.close import same
from tests.support.lowering import f32

ROOT = Path(__file__).parents[3]
CPU = device_for(None)
X = np.linspace(-2, 2, 35, dtype=np.float32).reshape(5, 7)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache of this test's alone, without checks, which see every stage."""
    with rune.configure(cache_dir=str(tmp_path), check_stages=False):
        yield tmp_path


def softmax(x: Array) -> Array:
    return rune.nn.softmax(x @ x.T, axis=-1)


def looping(x: Array) -> Array:
    return rune.while_loop(lambda s: rnp.max(s) < 50, lambda s: s * 1.5 + 1, x)


def scanning(x: Array) -> Array:
    return rune.grad(lambda x: rune.scan(lambda c, row: (rnp.tanh(c @ x.T @ x + row), c), x[0], x)[0].sum())(x)


def likelihood(x: Array) -> list[Array]:
    factor = rnp.linalg.cholesky(x @ x.T + 9 * rnp.eye(5))
    return [factor, rune.scipy.linalg.cho_solve((factor, True), x)]


def viewing(x: Array) -> Array:
    return rune.lax.conv(x.reshape(1, 1, 5, 7), rnp.ones((2, 1, 3, 2)), (1, 1), "SAME")


def branching(x: Array) -> Array:
    return rune.cond(x[0, 0] > 0, rnp.sin, lambda x: x.astype(rnp.int8).astype(rnp.float32), x)


def wide(x: Array) -> list[Array]:
    return [x.astype("float64") / 3, x > 0, x.astype("complex64") * 1j, x.astype("float16"), x.astype("uint8")]


def ordering(x: Array) -> list[Array]:
    row = rnp.tile(x.ravel(), 5)
    return [rnp.lexsort((row, row.astype("float16"))), *rune.lax.top_k(row, 20)]


FUNCTIONS = [softmax, looping, scanning, likelihood, viewing, branching, wide, ordering, lambda x: x[:0], lambda x: x]


def program_of(function: Callable[[Array], object], x: np.ndarray = X) -> Program:
    """A new program, with nothing cached in this process."""
    return rune.make_program(function)(rnp.asarray(x))


def runs(executable: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    return [np.array(a) for a in executable(list(arrays))]


def was_kept(executable: object) -> bool:
    return isinstance(executable, StoredExecutable)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_code_loaded_from_disk_gives_the_bits_of_the_compiled_code(function: Callable[[Array], object]):
    first, second = (compiled(program_of(function), CPU) for _ in range(2))

    assert [was_kept(e) for e in (first, second)] == [False, True]
    for x in (X, -X, np.zeros_like(X)):
        same(runs(first, x), runs(second, x))


def test_a_call_loaded_from_disk_reuses_donated_memory():
    for is_second in (False, True):
        executable, x = compiled(program_of(lambda x: x * 2), CPU, (0,)), X.copy()
        (result,) = executable([x], (0,))
        assert was_kept(executable) == is_second
        assert result is x
        same(2 * X, result)


def test_a_kept_program_is_shown_as_a_compiled_one():
    first, second = (compiled(program_of(softmax), CPU) for _ in range(2))

    assert isinstance(first, CpuExecutable)
    assert isinstance(second, StoredExecutable)
    assert second.sources() == first.sources()
    assert (second.plan.arguments, second.plan.results) == (first.plan.arguments, first.plan.results)
    assert second.assembly() == first.assembly()
    assert second.is_brief == first.is_brief


def test_the_plan_of_a_kept_program_is_made_once_for_all_its_devices():
    _, second = (compiled(program_of(softmax), CPU) for _ in range(2))

    assert isinstance(second, StoredExecutable)
    assert second.plan is second.plan is second.on(second.work).plan
    assert second.rendering is second.rendering


DEVICES = """
import numpy as np, rune, rune.numpy as rnp
rune.configure(cpu_devices=4)
mesh = rune.make_mesh((4,), ("x",))
x = rune.device_put(np.arange(12.0, dtype=np.float32).reshape(4, 3), rune.NamedSharding(mesh, rune.P("x")))
f = rune.jit(lambda x: rnp.sin(x) * 2)
print(np.asarray(f(x)).tobytes().hex(), np.asarray(rune.jit(rnp.sum)(x)))
"""


def test_devices_that_run_together_find_what_was_kept(tmp_path: Path):
    environment = {**os.environ, "RUNE_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", DEVICES], env=environment, capture_output=True, text=True, timeout=300)
        for _ in range(2)
    )

    assert (second.stdout, second.stderr) == (first.stdout, "")
    assert first.stdout.endswith("66.0\n")


def test_arguments_that_do_not_fit_are_refused_in_the_same_words():
    def words(executable: Any) -> str:
        with pytest.raises(rune.errors.LayoutError) as error:
            executable([X.astype(np.float64)])
        return str(error.value).splitlines()[0]

    assert len({words(compiled(program_of(rnp.sin), CPU)) for _ in range(2)}) == 1


# --- keys -------------------------------------------------------------------------------------

PAIRS: list[tuple[Callable[[Array], object], Callable[[Array], object]]] = [
    (lambda x: x + 0.0, lambda x: x + -0.0),
    (lambda x: x * np.float32(0.1), lambda x: x * np.nextafter(np.float32(0.1), np.float32(1))),
    (lambda x: x + 1.0, lambda x: x + np.float32(1.0) * rnp.ones(())),
    (lambda x: x.sum(0), lambda x: x.sum(1)),
    (lambda x: x.astype("int8"), lambda x: x.astype("uint8")),
    (lambda x: x - x[0], lambda x: x[0] - x),
    (lambda x: rune.fori_loop(0, 3, lambda i, c: c + 1, x), lambda x: rune.fori_loop(0, 4, lambda i, c: c + 1, x)),
    (lambda x: rune.jit(rnp.sin)(x), lambda x: rune.jit(rnp.cos)(x)),
    (lambda x: (x, x + 1), lambda x: (x + 1, x)),
]


@pytest.mark.parametrize("pair", PAIRS)
def test_programs_that_differ_have_different_words(pair: tuple[Callable[[Array], object], ...]):
    words = [program_words(program_of(f)) for f in pair]

    assert None not in words
    assert words[0] != words[1]


def test_types_shapes_and_weakness_are_in_the_words():
    arguments = [X, rnp.asarray(X, "float64"), X[:4], X.astype(np.int32), X[0], 1.0, np.float32(1.0)]
    words = {program_words(rune.make_program(rnp.negative)(x)) for x in arguments}

    assert len(words) == len(arguments)


def test_rules_for_derivatives_are_not_in_the_words():
    def squared(name: str) -> bytes | None:
        f = rune.custom_jvp(lambda x: x * x)
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * len(name)))
        return program_words(program_of(f))

    assert squared("one") == squared("three") is not None


@pytest.mark.parametrize(
    "function",
    [
        lambda x: rune.pure_callback(np.sin, x, x),
        lambda x: rune.debug.print("{}", x),
        rune.extend.primitive("sin", types=lambda x: x, meaning=np.sin, expand=rnp.cos),
    ],
    ids=["callback", "print", "operation of a user"],
)
def test_a_program_that_calls_python_or_a_users_operation_has_no_key(function: Callable[[Array], object]):
    assert program_words(program_of(function)) is None


def test_a_program_that_holds_arrays_and_objects_without_a_meaning_have_no_words():
    holding = replace(program_of(rnp.sin), constants=((Var(f32(3)), np.ones(3, np.float32)),))

    assert program_words(holding) is None
    assert value_words((1, object())) is None


@pytest.mark.parametrize("change", ["source", "processor", "settings", "searches", "dump"])
def test_another_source_processor_or_setting_compiles_again(change: str, monkeypatch: pytest.MonkeyPatch):
    compiled(program_of(rnp.sin), CPU)
    changes = {}
    match change:
        case "source":
            monkeypatch.setattr(on_disk, "fingerprint", lambda: f"{fingerprint.fingerprint()}\nanother.py 3 5")
        case "processor":
            host = compiler.host()
            monkeypatch.setattr(compiler, "host", lambda: Processor(host.name, f"{host.features},-avx512fp16"))
        case "settings":
            changes = {"reproducible": False}
        case "searches":
            monkeypatch.setattr(disk_cache, "schedules", lambda *, make: disk_cache.current())
        case _:
            monkeypatch.setenv(stored_programs.DUMP, "nothing")
            monkeypatch.setattr(executables, "lowered_by", _silently)

    with rune.configure(**changes):
        assert not was_kept(compiled(program_of(rnp.sin), CPU))


def _silently(*args: Any, **options: Any) -> Any:
    os.environ.pop(stored_programs.DUMP)
    return LOWERED_BY(*args, **options)


LOWERED_BY = executables.lowered_by


# --- files and processes ----------------------------------------------------------------------


def test_truncated_files_are_compiled_again(folder: Path):
    expected = runs(compiled(program_of(softmax), CPU), X)
    for path in (folder / "kernels").iterdir():
        path.write_bytes(path.read_bytes()[:-7])

    executable = compiled(program_of(softmax), CPU)
    assert not was_kept(executable)
    same(expected, runs(executable, X))
    assert was_kept(compiled(program_of(softmax), CPU))


def test_a_changed_byte_of_code_is_never_run(folder: Path):
    compiled(program_of(softmax), CPU)
    for path in (folder / "kernels").iterdir():
        data = bytearray(path.read_bytes())
        data[-40] ^= 1
        path.write_bytes(data)

    assert not was_kept(compiled(program_of(softmax), CPU))


SCRIPT = """
import sys
import numpy as np
import rune, rune.numpy as rnp
x = rnp.asarray(np.linspace(-2, 2, 35, dtype=np.float32).reshape(5, 7))
f = rune.jit(lambda x: rune.scan(lambda c, row: (rnp.tanh(c @ x.T @ x + row), c), x[0], x))
first, again = f(x), f(x)
assert rune.tree.leaves(rune.tree.map(lambda a, b: bool((a == b).all()), first, again)) == [True, True]
print(np.asarray(first[0]).tobytes().hex(), "rune.lowering.pipeline" in sys.modules)
"""


def started(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "RUNE_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT], stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )


def test_the_next_process_does_not_load_the_lowering_and_gives_the_same_bits(folder: Path):
    (bits, has_lowering), (same_bits, has_lowering_again) = (started(folder).communicate()[0].split() for _ in range(2))

    assert same_bits == bits != ""
    assert (has_lowering, has_lowering_again) == ("True", "False")


def test_processes_that_compile_at_once_all_give_the_same(folder: Path):
    processes = [started(folder) for _ in range(3)]
    answers = [p.communicate()[0].split() for p in processes]

    assert {p.returncode for p in processes} == {0}
    assert len({bits for bits, _ in answers}) == 1
    assert started(folder).communicate()[0].split() == [answers[0][0], "False"]
