"""Functions of numbers, in a library with NumPy's names, and curves for their Taylor series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ORDER = 10
_A = [0.4, 1.0, 0.5, -0.3, 0.7, 0.2, -0.9, 0.1, 0.6, -0.2, 0.3]
_B = [1.7, -0.6, 0.2, 0.4, -0.5, 0.1, 0.3, -0.8, 0.2, 0.9, -0.1]
# The value and the derivatives of each argument.
CURVES: dict[str, list[list[float]]] = {"a": [_A], "b": [_B], "ab": [_A, _B]}


def _matrix(np: Any, x: Any) -> Any:
    return np.stack([np.stack([x + 2, x * x]), np.stack([1 - x, x + 3])])


# name: function of the library and the arguments, curve
FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "exp": (lambda np, x: np.exp(x), "a"),
    "expm1": (lambda np, x: np.expm1(x), "a"),
    "exp2": (lambda np, x: np.exp2(x), "a"),
    "log": (lambda np, x: np.log(x), "b"),
    "log1p": (lambda np, x: np.log1p(x), "a"),
    "sqrt": (lambda np, x: np.sqrt(x), "b"),
    "sin": (lambda np, x: np.sin(x), "a"),
    "cos": (lambda np, x: np.cos(x), "b"),
    "tan": (lambda np, x: np.tan(x), "a"),
    "arcsin": (lambda np, x: np.arcsin(x), "a"),
    "arccos": (lambda np, x: np.arccos(x), "a"),
    "arctan": (lambda np, x: np.arctan(x), "b"),
    "sinh": (lambda np, x: np.sinh(x), "a"),
    "cosh": (lambda np, x: np.cosh(x), "b"),
    "tanh": (lambda np, x: np.tanh(x), "a"),
    "arcsinh": (lambda np, x: np.arcsinh(x), "b"),
    "arccosh": (lambda np, x: np.arccosh(x), "b"),
    "arctanh": (lambda np, x: np.arctanh(x), "a"),
    "reciprocal": (lambda np, x: 1 / x, "b"),
    "square": (lambda np, x: x**2, "a"),
    "fifth power": (lambda np, x: x**5, "b"),
    "negative power": (lambda np, x: x**-3, "b"),
    "real power": (lambda np, x: x**1.3, "b"),
    "power": (lambda np, x, y: y**x, "ab"),
    "product": (lambda np, x, y: x * y, "ab"),
    "quotient": (lambda np, x, y: x / y, "ab"),
    "arctan2": (lambda np, x, y: np.arctan2(x, y), "ab"),
    "absolute": (lambda np, x: np.abs(-x), "b"),
    "maximum": (lambda np, x, y: np.maximum(x, y), "ab"),
    "where": (lambda np, x: np.where(x > 0, np.exp(x), x), "a"),
    "logistic": (lambda np, x: 1 / (1 + np.exp(-x)), "a"),
    "sum": (lambda np, x: np.sum(np.stack([x, x * x, np.sin(x)]) ** 2), "a"),
    "largest": (lambda np, x: np.max(np.stack([x, x * x, np.sin(x)])), "b"),
    "running product": (lambda np, x: np.cumprod(np.stack([x, x * x, 1 + x]))[2], "b"),
    "matrix product": (lambda np, x: np.sum(_matrix(np, x) @ _matrix(np, x)), "a"),
    "inverse matrix": (lambda np, x: np.sum(np.linalg.inv(_matrix(np, x))), "a"),
    "network": (lambda np, x, y: np.tanh(np.sin(x) * y + np.exp(-x * y)) / (1 + x * x), "ab"),
}
