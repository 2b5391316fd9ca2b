"""Training on real digits: two networks reach 97 % on a held-out fifth, reproducibly.

The script is run as a user runs it, in its own process. Times are the only lines that may differ
between two runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import rune
from tests.support.sampling import IS_WHOLE

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))

import digits_data  # noqa: E402  (a script's neighbour, not a package)


@dataclass(frozen=True, slots=True)
class Run:
    """The output of the script, and the folder of its figures."""

    text: str
    out: Path

    @property
    def timeless(self) -> list[str]:
        """The printed lines without times and paths."""
        return [x for x in self.text.splitlines() if " s, then " not in x and ".png" not in x]


def _run(out: Path, *options: str) -> Run:
    command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--out", str(out), *options]
    process = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""  # no progress bar where there is no terminal
    return Run(process.stdout, out)


@pytest.fixture(scope="module")
def first_run(tmp_path_factory) -> Run:
    return _run(tmp_path_factory.mktemp("digits"))


def test_the_file_holds_the_whole_data_set():
    train, held_out = digits_data.load()

    assert (len(train), len(held_out)) == (1437, 360)
    assert set(train.labels) == set(held_out.labels) == set(range(10))
    assert train.images.min() == 0
    assert train.images.max() == 1


def test_the_held_out_fifth_shares_no_image_with_the_training_set():
    train, held_out = digits_data.load()

    known = {image.tobytes() for image in train.images}

    assert not any(image.tobytes() in known for image in held_out.images)


def test_minibatches_show_every_image_once_and_depend_on_the_seed():
    train, _ = digits_data.load()

    batches = list(digits_data.minibatches(train, 64, seed=3))
    repetition = list(digits_data.minibatches(train, 64, seed=3))
    other = next(digits_data.minibatches(train, 64, seed=4))

    assert sum(map(len, batches)) == len(train)
    assert len(batches[-1]) == 1437 % 64
    images = np.concatenate([b.images for b in batches])
    assert np.array_equal(np.sort(images, axis=0), np.sort(train.images, axis=0))
    assert all(np.array_equal(a.labels, b.labels) for a, b in zip(batches, repetition))
    assert not np.array_equal(batches[0].labels, other.labels)


def test_both_networks_read_97_percent_of_digits_they_never_saw(first_run):
    accuracies = [float(x) for x in re.findall(r"held-out fifth ([\d.]+)%", first_run.text)]

    assert len(accuracies) == 2
    assert min(accuracies) >= 97.0


def test_the_script_prints_how_many_images_and_which_executor(first_run):
    assert "1437 images to learn from, 360 held out" in first_run.text
    assert re.search(r"executor: cpu:0", first_run.text)


def test_first_call_and_speed_are_reported(first_run):
    assert len(re.findall(r"first call [\d.]+ s, then \d+ steps/s", first_run.text)) == 2


def test_the_figures_are_pictures(first_run):
    names = {"digits", "loss", "mistakes-two-layer-network", "mistakes-mixer"}

    pictures = {f.stem: f.read_bytes() for f in first_run.out.glob("*.png")}

    assert set(pictures) == names
    assert all(data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 2000 for data in pictures.values())


DRIVEN = [d.name for d in rune.devices() if d.target.backend not in ("cpu", "reference", "null")]
# One suffices unless all tests run: they differ by the cost of compilation.
TRIED = DRIVEN if IS_WHOLE else [name for name in DRIVEN if name.startswith("vulkan")]

ON_DEVICES = () if IS_WHOLE else ("--models", "two-layer network")  # of both, the one that compiles soon


def accuracies(run: Run) -> list[float]:
    """Per cent of the images seen in training and held out, of both networks."""
    return [float(x) for x in re.findall(r"([\d.]+)% of \d+ images", run.text)]


@pytest.fixture(scope="module")
def one_epoch(tmp_path_factory) -> Run:
    return _run(tmp_path_factory.mktemp("epoch"), "--epochs", "1", *ON_DEVICES)


def test_two_runs_print_the_same_numbers(request, tmp_path):
    fixture, options = ("first_run", ()) if IS_WHOLE else ("one_epoch", ("--epochs", "1", *ON_DEVICES))

    second_run = _run(tmp_path, *options)

    assert second_run.timeless == request.getfixturevalue(fixture).timeless


@pytest.mark.parametrize("device", TRIED)
def test_one_argument_trains_on_another_executor_to_the_same_accuracy(device, one_epoch, tmp_path):
    device_run = _run(tmp_path, "--epochs", "1", "--device", device, *ON_DEVICES)

    assert f"executor: {device}" in device_run.text
    assert len(accuracies(device_run)) == (4 if IS_WHOLE else 2)
    assert accuracies(device_run) == pytest.approx(accuracies(one_epoch), abs=0.5)
