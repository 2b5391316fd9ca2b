"""The file of an exported function: one safetensors file, programs and trees among its metadata.

    format     "rune.export"
    version    "1"; others are refused
    writer     the version of rune that wrote it
    orders     the number of programs: the function, then one for each derivative
    program.k  the text of a program (rune/core/program.py has the grammar)
    trees.k    JSON: {"in", "out", "weights"}, its two trees and the names of its leading inputs
    arrays     the weights; those that several programs read are stored once

Reading executes nothing. It checks the digest, parses texts and trees with grammars that cannot
name Python objects, and accepts a program only if the rules of its operations imply every type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from rune.array import CPU, Array, put
from rune.core.program import Program
from rune.core.reading import reading
from rune.core.sizes import untold_sizes
from rune.core.types import ArrayType
from rune.exporting import storable, weights
from rune.exporting.trees import from_json, to_json
from rune.exporting.weights import Content, refuse
from rune.files.notes import loads
from rune.files.stored import Unreadable
from rune.records import dataclass
from rune.tree.treedef import TreeDef
from rune.version import __version__

FORMAT, VERSION = "rune.export", "1"
_ORDERS = 16  # the most programs that a file may hold


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program, the arrays for its leading inputs, and the trees of its arguments and results."""

    program: Program
    weights: tuple[Array, ...]
    in_tree: TreeDef
    out_tree: TreeDef


# --- writing ----------------------------------------------------------------------------------


def encode(orders: Sequence[StoredProgram]) -> bytes:
    """The file that holds a function and its derivatives."""
    names: dict[int, str] = {}
    arrays: dict[str, np.ndarray] = {}
    texts = {"format": FORMAT, "version": VERSION, "writer": __version__, "orders": str(len(orders))}
    for number, record in enumerate(orders):
        for array in record.weights:
            name = names.setdefault(id(array), f"w{len(names):06}")
            arrays[name] = weights.stored(array.numpy())
        texts[f"program.{number}"] = storable.text(record.program)
        trees = {
            "in": to_json(record.in_tree),
            "out": to_json(record.out_tree),
            "weights": [names[id(a)] for a in record.weights],
        }
        texts[f"trees.{number}"] = json.dumps(trees)
    return weights.encode(Content(arrays, texts))


# --- reading ----------------------------------------------------------------------------------


def decode(file: np.ndarray) -> list[StoredProgram]:
    """The function and its derivatives from the bytes u8[n] of a file; the weights are views of it.

    Errors: CheckError "load: cannot read ..." if the file is damaged or of another kind.
    """
    try:
        with reading("an exported file"):
            return _read(weights.decode(file))
    except Unreadable as error:
        refuse(str(error))


def _read(content: Content) -> list[StoredProgram]:
    texts = content.texts
    if texts.get("format") != FORMAT:
        refuse("it was not written by rune.export")
    if texts.get("version") != VERSION:
        refuse(f"version {texts.get('version')!r}; this rune reads version {VERSION}")
    count = int(texts.get("orders", ""))
    parts = {f"{kind}.{n}" for kind in ("program", "trees") for n in range(min(count, _ORDERS))}
    if count < 1 or texts.keys() != parts | {"format", "version", "writer", "orders"}:
        refuse("its parts differ from those that it lists")
    arrays: dict[tuple[str, ArrayType], Array] = {}
    return [_stored_program(texts, n, content.arrays, arrays) for n in range(count)]


def _stored_program(
    texts: Mapping[str, str],
    number: int,
    arrays: Mapping[str, np.ndarray],
    weight_arrays: dict[tuple[str, ArrayType], Array],
) -> StoredProgram:
    """The program of this number. Programs share `weight_arrays`, so each weight is put once."""
    program, trees = storable.parse(texts[f"program.{number}"]), loads(texts[f"trees.{number}"])
    if (
        not isinstance(trees, dict)
        or trees.keys() != {"in", "out", "weights"}
        or not isinstance(trees["weights"], list)
    ):
        refuse("a note of trees without in, out and weights")
    in_tree, out_tree, names = from_json(trees["in"]), from_json(trees["out"]), trees["weights"]
    if len(names) + in_tree.num_leaves != len(program.inputs) or out_tree.num_leaves != len(program.outputs):
        refuse(f"its trees do not fit the arguments and results of {program.name}")
    if untold_sizes(program):
        refuse(f"{program.name} has sizes that do not follow from its arguments")
    types = program.input_types[: len(names)]
    for name, type in zip(names, types, strict=True):
        if (name, type) not in weight_arrays:
            weight_arrays[name, type] = _weight(arrays[name], type)
    values = tuple(weight_arrays[n, t] for n, t in zip(names, types, strict=True))
    return StoredProgram(program, values, in_tree, out_tree)


def _weight(array: np.ndarray, type: ArrayType) -> Array:
    return put(np.require(weights.as_type(array, type), requirements=["C", "ALIGNED"]), type, CPU)
