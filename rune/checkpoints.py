"""rune.checkpoints: the states of a training run in a folder, so that it goes on where it was.

    folder/step_000000120.safetensors       the tree of step 120 (rune.tree.save)
    folder/step_000000120/                  the same of several processes (rune.distributed)

A file has its name from the one rename that ends its writing, when the disk has all of it. So what
was reported as saved is there whatever becomes of the process, and what was not is the old state or
the new one. Writing is done by a thread, from a snapshot that is taken when `save` is called.
Several processes write together, each its own blocks in a thread of its own, and the first one
commits; what they read they agree upon.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from rune import locks, processes
from rune import tree as trees_of
from rune.array import Array, as_array
from rune.distributed import checkpoints as blocks
from rune.errors import ArgumentError, FileError, FileWarning, user_frame
from rune.files import open as open_file
from rune.files import trees
from rune.files.atomic import PARTIAL
from rune.listing import names as _names

__all__ = ["Checkpoint", "Manager"]

T = TypeVar("T")
_NAME = re.compile(r"step_(\d{9,18})(\.safetensors)?")
_ABANDONED_S = 3600  # a partial file of that age was left by a process that died


class Checkpoint(NamedTuple, Generic[T]):
    """A tree, and the step after which it was saved.

    Errors: none.

    >>> step, state = Checkpoint(120, {"w": 1.0})
    """

    step: int
    tree: T


class Manager:
    """The checkpoints of a folder: written in the background, the newest few kept.

    folder: made if it is not there
    keep:   how many checkpoints stay, the newest ones; None: all
    At the end of a `with` block all are written. One is written at a time: `save` waits for the one
    before it. Of several processes (rune.distributed), which share the folder, all call each
    method, and leaves are arrays and numbers.

    Errors: ArgumentError if `keep` is not a positive number; OSError.

    >>> import rune, rune.numpy as rnp, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with rune.checkpoints.Manager(folder.name, keep=2) as manager:
    ...     step, w = manager.resume(rnp.zeros(2))
    ...     for step in range(step + 1, 6):
    ...         w = w + 1
    ...         saving = manager.save(step, w)
    >>> manager.steps, manager.restore()
    ((4, 5), Checkpoint(step=5, tree=Array([5., 5.], f32[2], cpu:0)))
    >>> folder.cleanup()
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int | None = 3):
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
            raise ArgumentError(f"Manager: cannot keep {keep!r} checkpoints (a positive number, or None for all)")
        self.folder, self.keep = Path(folder), keep
        self._lock = locks.lock()
        self._pending: tuple[threading.Thread, Future[Path]] | None = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.wait()

    def __repr__(self) -> str:
        return f"Manager({str(self.folder)!r}, keep={self.keep}, steps={self.steps})"

    # --- writing ----------------------------------------------------------------------------

    def save(self, step: int, tree: object, metadata: Mapping[str, str] | None = None) -> Future[Path]:
        """Write a tree in the background, as it is now; what is there of the same step is replaced.

        The result's `result()` waits until it is saved; from then on it stays, whatever happens.
        What happens to the tree afterwards, donation too, changes nothing.
        Errors: those of rune.tree.save; ArgumentError for metadata named "step", which is there; an
                error of the checkpoint before this one, once.
        """
        path = self.path(step)
        if "step" in (metadata or {}):
            raise ArgumentError(
                "save: cannot note metadata under the name 'step' (that of the step is there)",
                hint="give the text another name",
            )
        with self._lock:
            self._finish()
            write = self._writing(path, step, tree, metadata)
            saving: Future[Path] = Future()
            thread = threading.Thread(target=_fulfil, args=(saving, path, write), name="rune-checkpoint")
            self._pending = thread, saving
            thread.start()
        return saving

    def _writing(self, path: Path, step: int, tree: object, metadata: Mapping[str, str] | None) -> Callable[[], object]:
        """What a thread has to do for a tree to be saved as it is now."""
        if processes.current().count == 1:
            texts = {**trees.checked_metadata(metadata), "step": str(step)}
            snapshot = trees.source_tree(tree).snapshot()
            return partial(self._write, path, snapshot, texts)
        if metadata:
            raise ArgumentError(
                "save: cannot note metadata of several processes", hint="save them as a leaf of the tree"
            )
        return partial(blocks.publish, blocks.snapshot(path, trees_of.map(_as_array, tree)), self._prune)

    def _write(self, path: Path, snapshot: trees.Saved, metadata: Mapping[str, str]) -> None:
        trees.write(path, snapshot, metadata)
        self._prune()

    def wait(self) -> None:
        """Wait until all is written. Errors: that of writing, if it was not raised yet."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        if self._pending is None:
            return
        thread, saving = self._pending
        thread.join()  # returns at once in a forked child, which does not have the thread
        self._pending = None
        if saving.done():
            saving.result()

    def _prune(self) -> None:
        """Remove all but the newest checkpoints. Torn files do not count, and are left alone."""
        sound = [step for step in self._descending() if self._problem(step) is None]
        for step in sound[self.keep :] if self.keep else ():
            _remove(self._stored(step))

    def _remove_abandoned(self) -> None:
        for file in self.folder.glob(f".step_*{PARTIAL}"):
            if time.time() - file.stat().st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)

    # --- reading ----------------------------------------------------------------------------

    def path(self, step: int) -> Path:
        """The file of a step, of several processes its folder.

        Errors: ArgumentError if the step is not an integer of at least 0.
        """
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 10**18:
            raise ArgumentError(f"Manager: cannot count the step {step!r} (an int from 0 on required)")
        return self.folder / f"step_{step:09}{'' if processes.current().count > 1 else '.safetensors'}"

    def _stored(self, step: int) -> Path:
        """What is there of a step, whoever wrote it: a folder, or else a file."""
        folder = self.path(step).with_suffix("")
        return folder if folder.is_dir() else folder.with_suffix(".safetensors")

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps that are saved whole, in order."""
        return tuple(step for step in reversed([*self._descending()]) if self._problem(step) is None)

    @property
    def latest(self) -> int | None:
        """The newest of them, or None."""
        return next(iter(reversed(self.steps)), None)

    def restore(self, step: int | None = None, like: object = None, device: object = None) -> Checkpoint[Any]:
        """The checkpoint of a step, or the newest one; files that are torn are passed over.

        like, device: as of rune.tree.load
        Errors: ArgumentError if there are no checkpoints; FileError if that of this `step` is torn;
                those of rune.tree.load. A newer file that is torn gives a FileWarning.
        """
        if step is not None:
            self._require_sound(step)
            return Checkpoint(step, self._load(step, like, device))
        for checkpoint in self._restored(like, device):
            return checkpoint
        raise ArgumentError(
            f"restore: cannot find a checkpoint in {self.folder}", hint="resume(initial) starts anew without one"
        )

    def resume(self, initial: T, device: object = None) -> Checkpoint[T]:
        """The newest checkpoint, of a tree like `initial`; without one, step 0 and `initial`.

        Arrays go where those of `initial` are. Errors: those of `restore`.
        """
        for checkpoint in self._restored(initial, device):
            return checkpoint
        return Checkpoint(0, initial)

    def _restored(self, like: object, device: object) -> Iterator[Checkpoint[Any]]:
        """The checkpoints that are whole, newest first, with a warning for the others."""
        for step in json.loads(_messages("steps", json.dumps([*self._descending()]))[0]):
            world = processes.current()
            problems = [
                text for text in _messages("problem", self._problem(step, (world.index, world.count)) or "") if text
            ]
            if not problems:
                yield Checkpoint(step, self._load(step, like, device))
            elif self._stored(step).exists():  # or another process has removed it
                _warn(f"rune: a checkpoint is passed over ({problems[0]})")

    def _require_sound(self, step: int) -> None:
        path = self._stored(step)
        if path.suffix:
            open_file(path).check()

    def _load(self, step: int, like: object, device: object) -> object:
        path = self._stored(step)
        if path.suffix:
            return trees.load(path, like, device)
        if like is None:
            raise ArgumentError(
                f"restore: cannot read {path} without a tree (several processes wrote it)", hint="give like="
            )
        arrays = blocks.load_checkpoint(path, trees_of.map(_as_array, like), device)
        return trees_of.map(_as_number, like, arrays)

    def _descending(self) -> Iterator[int]:
        """The steps of all files and folders, newest first."""
        named = (_NAME.fullmatch(file.name) for file in self.folder.iterdir())
        return iter(sorted({int(match[1]) for match in named if match}, reverse=True))

    def _problem(self, step: int, part: tuple[int, int] | None = None) -> str | None:
        """What is wrong with what is there of a step; None if nothing is.

        part: (number, count) of this process: checksums of the file, or of those files of a folder
              that fall to it, are compared as well
        """
        path = self._stored(step)
        if not path.suffix:
            return blocks.damage(path, part)
        try:
            file = open_file(path)
            if part is not None:
                file.check()
        except FileError as error:
            return error.message
        except FileNotFoundError as error:
            return str(error)
        return None


def _fulfil(saving: Future[Path], path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except BaseException as error:
        saving.set_exception(error)
    else:
        saving.set_result(path)


def _messages(topic: str, text: str) -> list[str]:
    """What each process says of the checkpoints of a folder."""
    messages = processes.converse("restore", f"manager {topic}", text.encode())
    return [bytes(message).decode() for message in messages.values()]


def _as_array(leaf: object) -> object:
    """A Python number as an array of 64 bits, a copy of a NumPy array in its own dtype."""
    number = trees.NUMBERS.get(type(leaf))
    if number is None and not isinstance(leaf, np.ndarray | np.generic):
        return leaf
    host = np.array(leaf, number)
    return as_array(host, host.dtype)


def _as_number(like: object, value: Array) -> object:
    return type(like)(value.item()) if isinstance(like, bool | int | float | complex) else value


def _remove(path: Path) -> None:
    """Remove a checkpoint; of a folder first the name that lets it count."""
    if path.suffix:
        path.unlink(missing_ok=True)
    else:
        (path / blocks.PUBLISHED).unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)


def _warn(text: str) -> None:
    frame = user_frame()
    if frame is None:
        warnings.warn(text, FileWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, FileWarning, frame.file, frame.line)


__dir__ = _names(globals())
