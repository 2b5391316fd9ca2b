"""After `import rune.as_jax`, `import jax` gives rune: in a process, a script or a module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.scipy.stats
import numpy as np

import rune

PROGRAM = """
import sys, jax
print(jax.__version__, jax.grad(lambda x: x**3)(2.0), sys.argv[1:], __name__)
"""


LINE = Path(rune.__file__).parent / "as_jax" / "rune_as_jax.pth"


def run(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **variables}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=variables)


def start(folder: Path, program: str, variable: str) -> str:
    """The output of a program in a Python that executes the wheel's .pth line at its start."""
    shutil.copy(LINE, folder)
    return run("-c", f"import site; site.addsitedir({str(folder)!r}); {program}", RUNE_AS_JAX=variable).stdout


def test_modules_of_jax_are_runes():
    assert jax.jit is rune.jit
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda x: jnp.sum(x**3)))(jnp.arange(3.0)), [0, 3, 12])
    np.testing.assert_allclose(jax.scipy.stats.norm.logpdf(0.0), -0.9189385, rtol=1e-6)


def test_a_script_runs_unchanged(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)

    process = run("-m", "rune.as_jax", str(tmp_path / "program.py"), "-v", "7")

    assert process.stdout == "0.10.2 12.0 ['-v', '7'] __main__\n", process.stderr


def test_a_module_runs_unchanged(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)

    process = run("-m", "rune.as_jax", "-m", "program", "7", cwd=tmp_path)

    assert process.stdout == "0.10.2 12.0 ['7'] __main__\n", process.stderr


def test_a_line_of_code_runs_unchanged(tmp_path: Path):
    process = run("-m", "rune.as_jax", "-c", PROGRAM, "7", cwd=tmp_path)

    assert process.stdout == "0.10.2 12.0 ['7'] __main__\n", process.stderr


def test_without_a_program_the_command_prints_its_usage():
    process = run("-m", "rune.as_jax")

    assert process.returncode == 1
    assert process.stderr.startswith("usage: python -m rune.as_jax")


def test_it_does_not_stand_in_for_a_jax_that_is_loaded(tmp_path: Path):
    (tmp_path / "jax.py").write_text("")

    process = run("-c", "import jax, rune.as_jax", cwd=tmp_path)

    assert "as_jax: cannot stand in for jax (this process has imported jax" in process.stderr


def test_a_missing_name_raises_an_error_that_names_its_replacement():
    process = run("-c", "import rune.as_jax, jax; jax.gard")

    assert "did you mean" in process.stderr


def test_each_subpackage_of_jax_is_the_module_of_its_name():
    assert [jax.lax.__name__, jnp.linalg.__name__, jax.scipy.stats.__name__] == [
        "jax.lax",
        "jax.numpy.linalg",
        "jax.scipy.stats",
    ]


def test_an_environment_variable_is_enough(tmp_path: Path):
    assert start(tmp_path, "import jax; print(jax.__version__)", "1") == "0.10.2\n"


def test_without_the_variable_nothing_is_loaded(tmp_path: Path):
    assert start(tmp_path, "import sys; print('rune' in sys.modules)", "") == "False\n"
