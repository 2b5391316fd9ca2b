"""Damaged and hostile files of exported functions: an error each, and nothing executed.

    python tests/hostile_files.py                      100,000 files
    python tests/hostile_files.py --files 2000 --first 7
    python tests/hostile_files.py --run                call what is accepted, too

Half of the files are damaged as by disks and networks: bytes are changed, removed, repeated or
moved. All of these must be refused. The other half is forged by somebody who knows the format:
texts, trees and tables are changed, and the digest is recomputed. If such a file holds another
valid program, it is accepted; otherwise it is refused. An audit hook watches what Python executes.
"""

from __future__ import annotations

import argparse
import gc
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

import rune
import rune.numpy as rnp
from rune.errors import CheckError, RuneError
from rune.exporting import weights
from rune.exporting.weights import Content
from rune.records import _Late
from tests.laws.test_damaged_texts import damaged

MEMORY = 12 << 30  # bytes that the process may take
SLOW = 20.0  # seconds of a processor that no file takes
EXECUTED = ("exec", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class")
EXECUTED += ("socket.connect", "ctypes.dlopen", "open", "import")


class Executed(AssertionError):
    """Something was executed, opened or imported while a file was read."""


# --- files ------------------------------------------------------------------------------------


def _model(p: Any, x: Any) -> Any:
    y = rune.nn.relu(x @ p["w"] + p["b"])
    return {"y": rune.nn.softmax(y), "n": rnp.argmax(y, axis=-1)}


def _loop(x: Any, i: Any) -> Any:
    carry, rows = rune.scan(lambda c, r: (c + r, c.sum()), x[0], x)
    return rune.cond(i > 2, rnp.sin, lambda v: v.at[i].set(1.0), carry), (rows, rnp.sort(x, 0)[1])


def _image(x: Any, k: Any) -> Any:
    return (
        rune.lax.conv(x, k, (1, 1), "SAME"),
        rnp.pad(x, 1).reshape(-1)[::2],
        rune.random.bits(rune.random.key(3), (4,)),
    )


def sound() -> list[bytes]:
    """Files that are read: weights, open sizes, derivatives, loops, windows, keys, trees."""
    p = {"w": rnp.arange(12.0).reshape(3, 4), "b": rnp.ones(4, "bf16")}
    model = rune.export(_model)(p, rnp.ones((2, 3)), dims={"n": (1, 64)}, in_dims=(None, "n,_"))
    with_weights = rune.export(lambda x: _model(p, x))(rnp.ones((2, 3)))
    loop = rune.export(_loop)(rnp.ones((4, 3)), 1)
    image = rune.export(_image)(rnp.ones((1, 1, 5, 5)), rnp.ones((1, 1, 3, 3)))
    return [model.serialize(1), with_weights.serialize(1), loop.serialize(), image.serialize()]


def broken(file: bytes, draw: random.Random) -> bytes:
    """The file with bytes changed, lost, doubled or moved."""
    a, b = sorted(draw.randrange(len(file) + 1) for _ in range(2))
    near = min(b, a + draw.randint(1, 16))
    match draw.randrange(6):
        case 0:
            return file[:a] + bytes([file[a % len(file)] ^ (1 << draw.randrange(8))]) + file[a + 1 :]
        case 1:
            return file[:a]
        case 2:
            return file[:a] + file[near:] + b"\0" * (a == near)
        case 3:
            return file[:a] + draw.randbytes(near - a + 1) + file[near:]
        case 4:
            return file[:near] + file[a:] + b"\0" * (a == near)
        case _:
            return draw.randbytes(draw.randrange(300))


def forged(file: bytes, draw: random.Random) -> bytes:
    """The file with other contents, and the digest of these."""
    content = weights.decode(np.frombuffer(file, np.uint8))
    arrays, texts = dict(content.arrays), dict(content.texts)
    key = draw.choice([*texts, *[t for t in texts if t.startswith("program")] * 4])
    for _ in range(draw.randint(1, 2)):
        match draw.randrange(8):
            case 0:
                texts["orders"] = draw.choice(["-1", "0", "3", "99999999999", "x", ""])
            case 1 if arrays:
                name = draw.choice(list(arrays))
                arrays[name] = draw.choice([arrays[name][:1], arrays[name].reshape(-1), np.zeros(3, bool)])
            case 2 if arrays:
                arrays["../" * 9 + "etc/passwd"] = arrays.pop(draw.choice(list(arrays)))
            case 3:
                texts[key] = _number_changed(texts[key], draw)
            case _:
                texts[key] = damaged(texts[key] or " ", draw).encode("ascii", "replace").decode()
    return weights.encode(Content(arrays, texts))


def _number_changed(text: str, draw: random.Random) -> str:
    """The text with another number: what damage to characters seldom gives."""
    places = [i for i, c in enumerate(text) if c.isdigit()]
    if not places:
        return text + "0"
    at = draw.choice(places)
    number = draw.choice(["-1", "0", "1", "2", "9", "64", "1000000", "9223372036854775807", "18446744073709551616"])
    return text[:at] + number + text[at + 1 :]


# --- reading them -----------------------------------------------------------------------------

_events: list[str] = []
_listening = False


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _listening and event in EXECUTED:
        _events.append(f"{event} {arguments!r}"[:200])


@contextmanager
def nothing_executed() -> Iterator[None]:
    """Errors: Executed, if Python executes, opens or imports anything in the block."""
    global _listening
    _events.clear()
    _listening = True
    try:
        yield
    finally:
        _listening = False
    if _events:
        raise Executed("; ".join(_events))


def write_methods() -> None:
    """Have all classes write the methods that they would write when they are first used: Python
    executes that, and it is of no file."""
    for owner in [x for x in gc.get_objects() if isinstance(x, type)]:
        for name, value in list(vars(owner).items()):
            if isinstance(value, _Late):
                getattr(owner, name)


def read(file: bytes) -> Any:
    """The content of the file, or None if it is refused. Errors: all except CheckError."""
    start = time.process_time()
    try:
        with nothing_executed():
            return rune.export.load(file)
    except CheckError:
        return None
    finally:
        seconds = time.process_time() - start
        assert seconds < SLOW, f"reading took {seconds:.0f} s"


def run(program: Any) -> None:
    """Call what was accepted on zeros, if that is small. Errors: none but rune's own."""
    shapes = [tuple(d if isinstance(d, int) else 3 for d in t.shape) for t in program.in_avals]
    if sum(int(np.prod(s, dtype=float)) for s in shapes) > 1 << 16:
        return
    if any(
        not isinstance(d, int) or d > 1 << 16
        for e in program.program.equations
        for v in e.results
        for d in v.type.shape
    ):
        return
    args = [rnp.zeros(s, t.public_dtype) for s, t in zip(shapes, program.in_avals, strict=True)]
    try:
        positional, keywords = rune.tree.unflatten(program.in_tree, args)
        rune.block_until_ready(program.call(*positional, **keywords))
    except (RuneError, MemoryError):
        pass


def attempt(seed: int, files: Sequence[bytes], use: Callable[[Any], None] = lambda _: None) -> str:
    """The outcome for the file of a seed, "refused" or "accepted"; damaged files are refused."""
    draw = random.Random(seed)
    file = draw.choice(files)
    if seed % 2:
        damage = broken(file, draw)
        assert damage == file or read(damage) is None, f"seed {seed}: a damaged file was accepted"
        return "refused"
    program = read(forged(file, draw))
    if program is None:
        return "refused"
    use(program)
    return "accepted"


def main(arguments: Sequence[str]) -> None:
    """Try files, and print how many were refused."""
    parser = argparse.ArgumentParser("hostile_files", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=100_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--run", action="store_true", help="call what is accepted")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.addaudithook(_hear)
    files = sound()
    write_methods()
    assert all(read(f) is not None for f in files)
    counts: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.files):
        if options.run:
            print(seed, end="\r", flush=True)  # of a process that dies, this is the seed
        counts[attempt(seed, files, run if options.run else lambda _: None)] += 1
    print(f"{options.files} files: {counts['refused']} refused, {counts['accepted']} sound and accepted")


if __name__ == "__main__":
    main(sys.argv[1:])
