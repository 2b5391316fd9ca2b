"""Damaged and hostile files: each raises a FileError; none is misread or crashes the process.

    broken(random, content)     a safetensors file that no reader may take, of a sound one
    scattered(random, content)  bytes of any file altered: it may still be sound

`./scripts/stress files` tries ten thousand.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune.errors import FileError

Header = dict[str, Any]


def sound_tree() -> dict[str, Any]:
    """Leaves of every way of storing."""
    return {
        "weights": [rnp.arange(15.0).reshape(3, 5), rnp.ones(7, "bfloat16"), rnp.ones((2, 3), "int4")],
        "key": rune.random.key(3),
        "mask": rnp.arange(5) > 2,
        "wide": rnp.ones(3, "complex128"),
        "empty": rnp.zeros((0, 4)),
        "step": 12,
    }


def split(content: bytes) -> tuple[Header, bytes]:
    """The header of a safetensors file, and its buffer."""
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header: Header | str | bytes, buffer: bytes, length: int | None = None) -> bytes:
    """A file of a header, as text if it is not JSON, and a buffer; `length` may be wrong."""
    text = header if isinstance(header, str | bytes) else json.dumps(header)
    octets = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(octets) if length is None else length) + octets + buffer


# --- one way each -------------------------------------------------------------------------------


def _other_length(random: Random, header: Header, buffer: bytes) -> bytes:
    true = len(json.dumps(header))
    wrong = random.choice([random.randrange(1 << 64), true + random.randrange(1, 9), random.randrange(true)])
    return joined(header, buffer, wrong)


def _cut(random: Random, header: Header, buffer: bytes) -> bytes:
    content = joined(header, buffer)
    return content[: random.randrange(len(content))]


def _longer(random: Random, header: Header, buffer: bytes) -> bytes:
    return joined(header, buffer + random.randbytes(random.randrange(1, 99)))


def _full(random: Random, header: Header) -> str:
    """The name of an array that has elements."""
    names = [n for n, entry in header.items() if n != "__metadata__" and 0 not in entry["shape"]]
    return random.choice(names)


def _other_offsets(random: Random, header: Header, buffer: bytes) -> bytes:
    entry = header[_full(random, header)]
    begin, end = entry["data_offsets"]
    step = random.choice([1, -1, 8, len(buffer), 1 << 62, -(1 << 63), 10**30])
    entry["data_offsets"] = random.choice([[begin + step, end + step], [begin, end + step], [end, begin], [begin]])
    return joined(header, buffer)


def _overlap(random: Random, header: Header, buffer: bytes) -> bytes:
    name = _full(random, header)
    header["twin"] = dict(header[name])
    return joined(header, buffer)


def _other_shape(random: Random, header: Header, buffer: bytes) -> bytes:
    entry = header[_full(random, header)]
    wrong: list[Any] = [[*entry["shape"], 2], [1 << 63], [1 << 32, 1 << 32], [-1], [2.0], ["3"], [True], "3", None, [0]]
    entry["shape"] = random.choice([*wrong, [1] * 65 + entry["shape"], [0, 1 << 62, 1 << 62]])
    return joined(header, buffer)


def _other_dtype(random: Random, header: Header, buffer: bytes) -> bytes:
    entry = header[_full(random, header)]
    others = [d for d in ("U8", "F16", "F32", "F64") if d[1:] != entry["dtype"][1:] and entry["dtype"] != "BOOL"]
    wide = [d for d in others if entry["dtype"] not in ("BF16", "I8", "U8") or d not in ("U8", "F16")]
    entry["dtype"] = random.choice([*wide, "O8", "", None, 3, ["F32"]])
    return joined(header, buffer)


def _twice(random: Random, header: Header, buffer: bytes) -> bytes:
    name = _full(random, header)
    return joined(f"{json.dumps(header)[:-1]}, {json.dumps(name)}: {json.dumps(header[name])}}}", buffer)


def _bad_json(random: Random, header: Header, buffer: bytes) -> bytes:
    text = json.dumps(header)
    brackets = "[" * 100_000
    wrong = ["", " " + text, text[1:], text + "}", f"[{text}]", "{" + '"a":' + brackets, '{"a": NaN}', '{"a": 1}']
    wrong += ['{"a": %s}' % ("9" * 5000), "null", "3", text.replace(":", ";"), text.replace("{", "{\x00")]
    return joined(random.choice([*wrong, b'{"\xff": 1}', b"\xef\xbb\xbf" + text.encode()]), buffer)


def _bad_metadata(random: Random, header: Header, buffer: bytes) -> bytes:
    notes = json.loads(header["__metadata__"]["rune"])
    nodes = notes["tree"]
    place = random.randrange(len(nodes))
    bad_nodes: list[Any] = [["dict", 3], ["list", 10**9], ["list", -1], ["tuple"], 7, ["dict", ["a", "a"]], {}, "other"]
    wrong: list[Any] = [
        [],
        {"version": 2},
        {"version": 1},
        {**notes, "leaves": {"step": {"dtype": "f32", "shape": []}}},
        {**notes, "leaves": {"step": {"dtype": "i64", "shape": [1], "number": True}}},
        {**notes, "leaves": {"step": 3}},
        {**notes, "leaves": {"weights.2": {"dtype": "i4", "shape": [1 << 40]}}},
        {**notes, "tree": nodes[:place]},
        {**notes, "tree": [*nodes, "more"]},
        {**notes, "tree": [*nodes[:place], random.choice(bad_nodes), *nodes[place + 1 :]]},
    ]
    texts = [json.dumps(w) for w in wrong] + ["", "{", "[" * 100_000]
    header["__metadata__"] = random.choice([{"rune": random.choice(texts)}, {"rune": 3}, [], "text"])
    return joined(header, buffer)


WAYS: tuple[Callable[[Random, Header, bytes], bytes], ...] = (
    _other_length,
    _cut,
    _longer,
    _other_offsets,
    _overlap,
    _other_shape,
    _other_dtype,
    _twice,
    _bad_json,
    _bad_metadata,
)


def broken(random: Random, content: bytes) -> bytes:
    """A safetensors file that no reader may take."""
    return random.choice(WAYS)(random, *split(content))


def scattered(random: Random, content: bytes) -> bytes:
    """The file with some bytes altered, or cut short."""
    octets = bytearray(content)
    for _ in range(random.randrange(1, 4)):
        octets[random.randrange(min(len(octets), 1500))] ^= 1 << random.randrange(8)
    return bytes(octets[: random.randrange(len(octets))]) if random.random() < 0.2 else bytes(octets)


# --- many ---------------------------------------------------------------------------------------


def outcome(path: Path, content: bytes) -> str:
    """The outcome of reading a file: `refused`, `read`, or the name of an error."""
    path.write_bytes(content)
    try:
        for leaf in rune.tree.leaves(rune.tree.load(path)):
            np.asarray(leaf if isinstance(leaf, int) or "key" not in str(leaf.dtype) else rune.random.key_data(leaf))
    except FileError:
        return "refused"
    except Exception as error:
        return f"ended with {type(error).__name__}"
    return "read"


def files(count: int, seed: int | None = None) -> Counter[str]:
    """Half of them broken, and half with bytes altered, which may be read; what went wrong."""
    random, outcomes = Random(os.urandom(8) if seed is None else seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / f"sound.{suffix}" for suffix in ("safetensors", "npz")]
        for path in paths:
            rune.tree.save(path, sound_tree())
        contents = [path.read_bytes() for path in paths]
        for number in range(count):
            if number % 2:
                result = outcome(paths[0], broken(random, contents[0]))
                outcomes["broken and read"] += result == "read"
            else:
                result = outcome(paths[number // 2 % 2], scattered(random, contents[number // 2 % 2]))
            outcomes[result] += result not in ("refused", "read")
    return outcomes
