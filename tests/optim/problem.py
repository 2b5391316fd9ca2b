"""Logistic regression on eight points, with a little weight decay: the problem of the curves."""

from __future__ import annotations

STEPS = 40
START = [1.0, -2.0, 0.5]
LABELS = [1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0]
POINTS = [
    [0.5, 1.0, -1.0],
    [1.5, -0.5, 0.0],
    [-1.0, 2.0, 0.5],
    [0.0, 1.5, 1.0],
    [2.0, 0.5, -0.5],
    [1.0, -1.0, 1.5],
    [-0.5, 0.5, 0.5],
    [0.5, -2.0, -1.0],
]
