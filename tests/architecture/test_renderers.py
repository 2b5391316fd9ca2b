"""The cost of a language: lines of code of its renderer, and lines of data for a dialect of C.

A new C-like language is at most 150 lines of data, any new language at most 600 of code, besides
what renderers share. CUDA C also has functions as text, most of them for matrix units.
SPIR-V and LLVM are two things each: `binary` encodes modules, `ir` writes LLVM IR, the CPU's own
routines too; neither knows kernels. LLVM's renderer writes out loops in lanes, masks and tiles, as
lowering/lanes decides. SPIR-V that is only written for Mesa's CPU devices has its own limit.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

CODEGEN = ROOT / "rune/lowering/codegen"
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
LIMITS = {
    "c/hip.py": 150,
    "c/host.py": 150,
    "c/opencl.py": 150,
    "c/cuda.py": 150,
    "c/cuda_*.py": 170,
    "wgsl/*.py": 600,
    "spirv/*.py": 600,
    "spirv/binary/*.py": 600,
    # Lines, exchanges, the statements that use them (decision 0106), stores (0121), squares (0163).
    "mesa/*.py": 256,
    "llvm/*.py": 600,
    "llvm/ir/*.py": 510,
    "llvm/tiny/*.py": 150,  # vectors that are scaled (decision 0158)
    "llvm/underflow/*.py": 60,  # operations that do not wait for denormal numbers (decision 0170)
}
LANGUAGES = ("spirv/binary", "llvm/ir")
KERNELS = ("kernel", "lanes", "legalize", "build")  # of rune.lowering


def lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def code_lines(text: str) -> int:
    """Lines that are more than layout, comments, docstrings and imports."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {n for t in tokens if t.type not in LAYOUT for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines -= set(lines_of(node))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(lines_of(node.body[0]))
    return len(lines)


def test_comments_docstrings_and_imports_do_not_count_as_code():
    head = '"""A module."""\n\nimport re\n\n\ndef f():\n    """A function."""\n    # why\n'

    assert code_lines(head + "    return [\n        1,\n    ]\n") == 4


@pytest.mark.parametrize(("files", "limit"), LIMITS.items())
def test_a_language_costs_no_more_than_its_limit(files: str, limit: int):
    lengths = {str(Path(p).name): code_lines(p.read_text()) for p in CODEGEN.glob(files)}

    assert lengths
    assert sum(lengths.values()) <= limit, lengths


@pytest.mark.parametrize("room", LANGUAGES)
def test_an_encoder_of_a_language_imports_nothing_about_kernels(room: str):
    about_kernels = tuple(f"rune.lowering.{name}" for name in KERNELS)
    imports = [
        (path.name, f"{node.module}.{name.name}")
        for path in (CODEGEN / room).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    ]

    assert imports
    assert [pair for pair in imports if pair[1].startswith(about_kernels)] == []
