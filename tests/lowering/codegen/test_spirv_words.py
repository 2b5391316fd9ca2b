"""The words of a SPIR-V module: encoding first, then what holds of every module.

Strings and instructions read back. Of a module: every id is given once and within the bound,
nothing is declared twice, capabilities are declared only if a type needs them, and equal kernels
give equal words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import dtypes
from rune.lowering.codegen.spirv.binary.module import Module
from rune.lowering.codegen.spirv.binary.words import (
    HEADER_WORDS,
    MAGIC,
    VERSION,
    Capability,
    Op,
    instruction,
    split,
    text_words,
    words_text,
)
from rune.lowering.codegen.spirv.render import render
from tests.lowering.codegen.spirv_run import TARGET, kernel_of, operations, rendered
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import random_code

WORD = st.integers(0, 2**32 - 1)
TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
_NO_RESULT = {
    Op.Name,
    Op.MemoryModel,
    Op.EntryPoint,
    Op.ExecutionMode,
    Op.Capability,
    Op.Decorate,
    Op.MemberDecorate,
    Op.FunctionEnd,
    Op.Store,
    Op.ControlBarrier,
    Op.LoopMerge,
    Op.Return,
    Op.SelectionMerge,
    Op.Branch,
    Op.BranchConditional,
    Op.ReturnValue,
}
_RESULT_FIRST = {op for op in Op if op.name.startswith("Type")} | {Op.Label, Op.ExtInstImport}


def instructions(words: bytes) -> list[tuple[Op, list[int]]]:
    return [(Op(op), operands) for op, operands in split(np.frombuffer(words, "<u4").tolist())]


def results(words: bytes) -> Iterator[int]:
    """Every id that an instruction gives."""
    for op, operands in instructions(words):
        if op not in _NO_RESULT:
            yield operands[0 if op in _RESULT_FIRST else 1]


# --- encoding ---------------------------------------------------------------------------------


@given(TEXT, st.lists(WORD))
def test_a_string_is_read_back_before_any_text(text: str, after: list[int]):
    assert words_text(text_words(text) + after) == text


@given(TEXT)
def test_a_string_ends_with_a_zero_byte_in_whole_words(text: str):
    words = text_words(text)

    assert len(words) == len(text.encode()) // 4 + 1
    assert words[-1] >> 24 == 0


@given(st.lists(st.tuples(st.sampled_from(list(Op)), st.lists(WORD, max_size=9))))
def test_instructions_are_split_where_they_were_joined(parts: list[tuple[Op, list[int]]]):
    words = [word for op, operands in parts for word in instruction(op, *operands)]

    assert list(split(words)) == parts


# --- declarations -----------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["bool", "i8", "i32", "i64", "f16", "f32", "f64"]), min_size=1))
def test_a_type_is_declared_once(kinds: list[str]):
    module = Module(TARGET)

    ids = {kind: {module.type(kind) for _ in range(2)} for kind in kinds}

    declarations = Counter(op for op, _ in split(module.declarations))
    assert all(len(ids_of_type) == 1 for ids_of_type in ids.values())
    assert sum(declarations.values()) == len(set(kinds))


@given(st.integers(0, 2**64 - 1), st.sampled_from(["i8", "i16", "i32", "i64", "f32", "f64"]))
def test_a_constant_keeps_its_bits_low_word_first(bits: int, kind: str):
    module, width = Module(TARGET), int(kind[1:])

    first, second = module.constant(kind, bits), module.constant(kind, bits)

    *_, (op, operands) = split(module.declarations)
    assert first == second == operands[1]
    assert op == Op.Constant
    assert sum(w << 32 * k for k, w in enumerate(operands[2:])) == bits % (1 << width)


def test_structures_that_differ_by_decorations_are_two():
    module = Module(TARGET)

    from_read = module.buffer("f32", ())
    same, other = module.buffer("f32", ()), module.buffer("i32", ())

    assert from_read == same != other


# --- modules ----------------------------------------------------------------------------------


def test_a_module_opens_with_magic_version_and_bound():
    words = np.frombuffer(rendered("softmax").words, "<u4")

    assert words[:2].tolist() == [MAGIC, VERSION]
    assert words[3] > max(results(rendered("softmax").words))
    assert words[4] == 0


@pytest.mark.parametrize("name", TEXTS)
def test_every_id_of_an_example_is_given_once(name: str):
    assert max(Counter(results(rendered(name).words)).values()) == 1


@pytest.mark.parametrize("seed", range(20))
def test_every_id_of_random_code_is_given_once_and_its_words_are_the_same_every_time(seed: int):
    first, second = (render(random_code(seed), TARGET).words for _ in range(2))

    assert first == second
    assert max(Counter(results(first)).values()) == 1


@pytest.mark.parametrize("name", TEXTS)
def test_lengths_add_up_to_the_module(name: str):
    words = rendered(name).words

    total = sum(len(operands) + 1 for _, operands in instructions(words))
    assert 4 * (total + HEADER_WORDS) == len(words)


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.i32, dtypes.u8, dtypes.f64], ids=dtypes.short)
def test_no_type_constant_or_capability_is_declared_twice(dtype: np.dtype):
    for expr in operations(dtype):
        module_instructions = instructions(render(kernel_of(expr, dtype), TARGET).words)
        plain = [
            (op, *operands[1:])
            for op, operands in module_instructions
            if op in _RESULT_FIRST - {Op.Label, Op.TypeStruct, Op.TypePointer}
        ]
        plain += [(op, *o) for op, o in module_instructions if op == Op.Capability]
        plain += [(op, o[0], *o[2:]) for op, o in module_instructions if op == Op.Constant]
        assert max(Counter(plain).values()) == 1, expr


_NEEDS = {
    Capability.Int8: (Op.TypeInt, 8),
    Capability.Int16: (Op.TypeInt, 16),
    Capability.Int64: (Op.TypeInt, 64),
    Capability.Float16: (Op.TypeFloat, 16),
    Capability.Float64: (Op.TypeFloat, 64),
}


@pytest.mark.parametrize("dtype", sorted(TARGET.dtypes, key=dtypes.short), ids=dtypes.short)
def test_a_capability_is_declared_exactly_where_its_type_is(dtype: np.dtype):
    for expr in operations(dtype):
        module_instructions = instructions(render(kernel_of(expr, dtype), TARGET).words)
        capabilities = {o[0] for op, o in module_instructions if op == Op.Capability}
        types = {(op, *o[1:2]) for op, o in module_instructions if op in (Op.TypeInt, Op.TypeFloat)}
        assert {c for c, type in _NEEDS.items() if type in types} == capabilities & set(_NEEDS), expr
