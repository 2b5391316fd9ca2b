"""The files of a new function: sin(πx), added to a copy of rune, works like all others.

Four files have its record, its scalar operation, the expansion of that for every language, and its
public name; its sample in tests/ops/meanings_of_scalars.py is the fifth. A function that expands
into other primitives needs no scalar operation, and a second namespace is one more file.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import ROOT

# File -> the line before which something is added, and what.
ADDITIONS = {
    "rune/ops/transcendental.py": (
        (
            "tan = _inexact(",
            'sinpi: Primitive = _floating("sinpi", lambda x: np.sin(math.pi * x), lambda dx, x, y: mul('
            "dx, _scale(cos(_scale(x, math.pi)), math.pi)))",
        ),
        ("    of_floats(tan, ", '    of_floats(sinpi, "Sine of pi x.", "0.0", "0.", FLOATS),'),
        ("__all__ += [", '__all__ += ["sinpi"]'),
    ),
    "rune/lowering/scalar/trigonometric.py": (
        ("def _odd(", "def sinpi(x: Number) -> Number:\n    return sin(x * math.pi)\n\n"),
    ),
    "rune/lowering/scalar/table.py": (
        ('    _function("tan", ', '    _function("sinpi", 30, 60, _plain(trigonometric.sinpi)),'),
    ),
    "rune/numpy/transcendental.py": (
        ("tan = _real(", 'sinpi = _real("sinpi", ROWS["sinpi"])'),
        ("__all__ += [", '__all__ += ["sinpi"]'),
    ),
}
PROGRAM = """
import numpy as np, rune, rune.numpy as rnp
from rune import ops

x = np.linspace(-0.4, 0.4, 7, dtype=np.float32)
assert ops.sinpi in ops.PRIMITIVES
assert rnp.sinpi.__name__ == "sinpi" and rnp.sinpi.__doc__.startswith("Sine of pi x.") and "sinpi" in dir(rnp)
for run in (rnp.sinpi, rune.jit(rnp.sinpi), rune.vmap(rnp.sinpi)):
    np.testing.assert_allclose(run(x), np.sin(np.pi * x), atol=1e-6)
np.testing.assert_allclose(rune.grad(lambda x: rnp.sinpi(x).sum())(x), np.pi * np.cos(np.pi * x), rtol=1e-5)
"""


def with_additions(text: str, additions: tuple[tuple[str, str], ...]) -> str:
    """A file with each addition before its line."""
    for anchor, addition in additions:
        before, line, after = text.partition(f"\n{anchor}")
        assert line, f"no line begins with {anchor!r}"
        text = f"{before}\n{addition}{line}{after}"
    return text


def copy_of_rune(folder: Path) -> None:
    """All files of rune as links, those with additions as files."""
    for path, _, names in os.walk(ROOT / "rune"):
        copy = folder / Path(path).relative_to(ROOT)
        copy.mkdir()
        for name in names:
            (copy / name).symlink_to(Path(path, name))
    for name, additions in ADDITIONS.items():
        text = (folder / name).read_text()
        (folder / name).unlink()
        (folder / name).write_text(with_additions(text, additions))


def test_a_function_is_added_in_four_files(tmp_path: Path):
    copy_of_rune(tmp_path)

    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert process.returncode == 0, process.stderr
