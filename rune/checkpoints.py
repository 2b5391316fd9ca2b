"""rune.checkpoints: saves the states of a training run in a folder, so that it can be resumed.

    folder/step_000000120.safetensors       the tree of step 120 (rune.tree.save)
    folder/step_000000120/                  the tree of step 120, saved by several processes

A single rename gives a file its name, after all of its bytes have reached the disk. A checkpoint
that was reported as saved therefore survives a crash of the process; one that was not is either the
old state or the new one. A thread does the writing, from a snapshot that `save` takes when called.
Several processes (rune.distributed) write together: each writes its own blocks in a thread of its
own, and process 0 commits. They agree on which checkpoint to read.
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
_ABANDONED_S = 3600  # a partial file this old was left behind by a process that died


class Checkpoint(NamedTuple, Generic[T]):
    """A tree, and the step after which it was saved.

    Errors: none.

    >>> step, state = Checkpoint(120, {"w": 1.0})
    """

    step: int
    tree: T


class Manager:
    """The checkpoints in a folder: writes them in the background and keeps the newest few.

    folder: created if it does not exist
    keep:   how many of the newest checkpoints to keep; None keeps all
    A `with` block waits at its end until everything is written. Only one checkpoint is written at a
    time: `save` waits for the previous one. When several processes (rune.distributed) share the
    folder, all of them must call each method, and leaves must be arrays or numbers.

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
        """Write a snapshot of a tree in the background, replacing any checkpoint of the same step.

        The `result()` of the future waits until the tree is saved; after that a crash cannot lose
        it. Later changes to the tree, including donation, do not affect the checkpoint.
        Errors: those of rune.tree.save; ArgumentError for metadata named "step", which is reserved;
                the error of the previous checkpoint, raised once.
        """
        path = self.path(step)
        if "step" in (metadata or {}):
            raise ArgumentError(
                "save: cannot note metadata under the name 'step' (it holds the number of the step)",
                hint="use another name for the text",
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
        """Take a snapshot of a tree, and return the function that a thread calls to write it."""
        if processes.current().count == 1:
            texts = {**trees.checked_metadata(metadata), "step": str(step)}
            snapshot = trees.source_tree(tree).snapshot()
            return partial(self._write, path, snapshot, texts)
        if metadata:
            raise ArgumentError(
                "save: cannot note metadata of several processes", hint="save them as a leaf of the tree"
            )
        return partial(blocks.publish, blocks.snapshot(path, trees_of.map(_as_array, tree)), self._prune)

    def _write(self, path: Path, snapshot: trees.SourceTree, metadata: Mapping[str, str]) -> None:
        trees.write(path, snapshot, metadata)
        self._prune()

    def wait(self) -> None:
        """Wait until the checkpoint is written. Errors: a writing error that was not raised yet."""
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
        """Remove all but the newest checkpoints. Damaged files do not count and are not removed."""
        sound = [step for step in self._descending() if self._problem(step) is None]
        for step in sound[self.keep :] if self.keep else ():
            _remove(self._stored(step))

    def _remove_abandoned(self) -> None:
        for file in self.folder.glob(f".step_*{PARTIAL}"):
            if time.time() - file.stat().st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)

    # --- reading ----------------------------------------------------------------------------

    def path(self, step: int) -> Path:
        """The file of a step, or its folder when several processes run.

        Errors: ArgumentError if the step is not a nonnegative integer.
        """
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 10**18:
            raise ArgumentError(f"Manager: cannot use the step {step!r} (an integer of at least 0 required)")
        return self.folder / f"step_{step:09}{'' if processes.current().count > 1 else '.safetensors'}"

    def _stored(self, step: int) -> Path:
        """The checkpoint of a step: the folder that several processes wrote, otherwise the file."""
        folder = self.path(step).with_suffix("")
        return folder if folder.is_dir() else folder.with_suffix(".safetensors")

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps of all undamaged checkpoints, in ascending order."""
        return tuple(step for step in reversed([*self._descending()]) if self._problem(step) is None)

    @property
    def latest(self) -> int | None:
        """The newest step that is saved, or None."""
        return next(iter(reversed(self.steps)), None)

    def restore(self, step: int | None = None, like: object = None, device: object = None) -> Checkpoint[Any]:
        """The checkpoint of a step, or else the newest one that is not damaged.

        like, device: as for rune.tree.load
        Errors: ArgumentError if there are no checkpoints; FileError if that of `step` is damaged;
                those of rune.tree.load. Skipping a damaged newer file gives a FileWarning.
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
        """The newest checkpoint of a tree like `initial`; if there is none, step 0 and `initial`.

        Arrays are placed where those of `initial` are. Errors: those of `restore`.
        """
        for checkpoint in self._restored(initial, device):
            return checkpoint
        return Checkpoint(0, initial)

    def _restored(self, like: object, device: object) -> Iterator[Checkpoint[Any]]:
        """The undamaged checkpoints, newest first; warns about each damaged one."""
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
        matches = (_NAME.fullmatch(file.name) for file in self.folder.iterdir())
        return iter(sorted({int(match[1]) for match in matches if match}, reverse=True))

    def _problem(self, step: int, part: tuple[int, int] | None = None) -> str | None:
        """What is wrong with the checkpoint of a step; None if it is sound.

        part: (number, count) of this process, which then also compares checksums: that of the file,
              or those of its share of the files in the folder
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
    """The message of each process about the checkpoints in the folder, in their order."""
    messages = processes.converse("restore", f"manager {topic}", text.encode())
    return [bytes(message).decode() for message in messages.values()]


def _as_array(leaf: object) -> object:
    """A Python number as a 64-bit array, NumPy data as an array of the same dtype."""
    number = trees.NUMBERS.get(type(leaf))
    if number is None and not isinstance(leaf, np.ndarray | np.generic):
        return leaf
    host = np.array(leaf, number)
    return as_array(host, host.dtype)


def _as_number(like: object, value: Array) -> object:
    return type(like)(value.item()) if isinstance(like, bool | int | float | complex) else value


def _remove(path: Path) -> None:
    """Remove a checkpoint; in a folder, first the file that makes its version valid."""
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
