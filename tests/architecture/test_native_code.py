"""LLVM IR is written by the Writer, which checks types and numbers values; none is kept as text."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import sources

_BRANCH = re.compile(r"^\s+br (label|i1) %", re.MULTILINE)
_BRANCH_WORD = re.compile(r"br (label|i1)")  # a file without it is not parsed


def branches(tree: ast.AST) -> int:
    """The number of branches between blocks of LLVM IR in multi-line strings."""
    strings = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return sum(len(_BRANCH.findall(s)) for s in strings if "\n" in s)


def test_no_module_keeps_native_code_as_text():
    suspects = [s for s in sources("rune") if _BRANCH_WORD.search(s.text)]
    counts = {str(s): branches(s.tree) for s in suspects}

    assert not {name: count for name, count in counts.items() if count}


def test_branches_in_a_text_are_counted():
    text = "define void @f(i1 %x) {\nentry:\n  br i1 %x, label %a, label %a\na:\n  br label %a\n}"

    assert branches(ast.parse(f"TEXT = {text!r}")) == 2
