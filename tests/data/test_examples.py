"""The examples that replace libraries by rune: images, spectra, least squares.

They run in this process, with fewer steps than for users. Their results are compared with SciPy,
finite differences, and the parameters from which their data were made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal
from scipy.optimize import approx_fprime

import rune
from tests.support.close import near, same
from tests.support.program_pages import shown_output, words

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import images
import least_squares
import spectra
from digits_data import load


def run(module: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [module.__file__, "--out", str(folder)])
    module.main()


def test_a_network_that_saw_warped_digits_recognises_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setattr(images, "EPOCHS", 15)

    run(images, tmp_path, monkeypatch)

    text = capsys.readouterr().out
    without_warps, with_warps = (float(line.split()[-2]) for line in text.splitlines()[:2])
    assert words(text, lines=2) == words(shown_output("images"), lines=2)
    assert with_warps > without_warps + 0.2
    assert (tmp_path / "warped.png").stat().st_size > 5_000


def test_a_restored_run_sees_the_same_warped_images():
    pipeline = images.batches(load()[0], augments=True)
    first = iter(pipeline)
    for _ in range(3):
        next(first)

    second = pipeline.restore(first.state())

    same(next(first)["images"].numpy(), next(second)["images"].numpy())
    first.close()
    second.close()


def test_epochs_warp_an_image_in_other_ways():
    image = load()[0].images[0].reshape(8, 8)
    keys = [rune.random.fold_in(images.KEY, n) for n in (5, 5, 1437 + 5)]

    first, second, next_epoch = (images.warped(key, image).numpy() for key in keys)

    same(first, second)
    assert not np.array_equal(first, next_epoch)


@pytest.mark.parametrize("size", [1, 800, 801, 16_384, 50_001])
def test_a_signal_filtered_in_windows_is_its_convolution(tmp_path: Path, size: int):
    signal = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    taps = np.asarray(scipy.signal.firwin(spectra.TAPS, 0.25), np.float32)
    np.save(tmp_path / "signal.npy", signal)

    spectra.filtered(tmp_path / "signal.npy", tmp_path / "filtered.npy", taps)

    oracle = scipy.signal.oaconvolve(signal.astype(float), taps.astype(float))[:size]
    near(oracle, np.load(tmp_path / "filtered.npy"), relative=0, absolute=3e-6, why="f32 transforms of 16,384 samples")


def test_spectra_compares_itself_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setattr(spectra, "SECONDS", 5)

    run(spectra, tmp_path, monkeypatch)

    text = capsys.readouterr().out
    assert float(text.split("within ")[1].split()[0]) < 3e-6
    assert words(text, lines=2) == words(shown_output("spectra"), lines=2)
    assert (tmp_path / "spectra.png").stat().st_size > 5_000


def test_shared_rates_are_learned_through_the_factorisations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    run(least_squares, tmp_path, monkeypatch)

    text = capsys.readouterr().out
    rates = np.array([float(text.split()[n]) for n in (1, 3)])
    near(least_squares.RATES, rates, relative=0.02, why="noise of 2 %")
    assert words(text, lines=2) == words(shown_output("least-squares"), lines=2)
    assert (tmp_path / "curves.png").stat().st_size > 5_000


def test_the_gradient_of_the_loss_equals_differences(tmp_path: Path):
    least_squares.measure(tmp_path / "curves.npz")
    curves = np.load(tmp_path / "curves.npz")
    batch = {name: curves[name][:7].astype(float) for name in ("times", "curves")}
    log_rates = np.log([0.4, 2.0])

    with rune.enable_x64():
        gradient = np.asarray(rune.grad(least_squares.loss)(log_rates, batch))

        def value(x: np.ndarray) -> float:
            return float(least_squares.loss(x, batch))

        differences = approx_fprime(log_rates, value, 1e-6)

    near(differences, gradient, relative=1e-3, why="forward differences, h = 1e-6")
