"""Rotations of space as unit quaternions (x, y, z, w), and great-circle interpolation of them.

A Rotation is a tree with one leaf [*B, 4]; its functions work under every transformation.
Source: Shoemake 1985, Animating rotation with quaternion curves; Markley 2008 for matrices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.listing import names as _names
from rune.records import dataclass
from rune.scipy.spatial.distance import length_of
from rune.scipy.special.arguments import reals
from rune.typing import ArrayLike, DTypeLike

__all__ = ["Rotation", "Slerp"]


def _rows(name: str, x: ArrayLike, *shape: int) -> Array:
    """A floating array whose last axes have these sizes. Errors: ShapeError."""
    (rows,) = reals(name, x)
    if rows.shape[-len(shape) :] != shape:
        raise ShapeError(f"{name}: cannot use {rows.shape} ({shape} at the end required)")
    return rows


def _unit(q: Array) -> Array:
    return q / rnp.sqrt(rnp.sum(q * q, -1, keepdims=True))


def _product(p: Array, q: Array) -> Array:
    """The quaternion of the rotation q followed by p."""
    (a, b, c, d), (e, f, g, h) = (rnp.moveaxis(v, -1, 0) for v in rnp.broadcast_arrays(p, q))
    return rnp.stack(
        [
            d * e + a * h + b * g - c * f,
            d * f - a * g + b * h + c * e,
            d * g + a * f - b * e + c * h,
            d * h - a * e - b * f - c * g,
        ],
        -1,
    )


def _from_matrix(m: Array) -> Array:
    """The quaternion of a rotation matrix, through its largest component."""
    diagonal = rnp.stack([m[..., i, i] for i in range(3)], -1)
    trace = rnp.sum(diagonal, -1)
    choices = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1.0 - trace + 2.0 * m[..., i, i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        choices.append(rnp.stack(parts, -1))
    last = rnp.stack(
        [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1.0 + trace], -1
    )
    largest = rnp.argmax(rnp.concatenate([diagonal, trace[..., None]], -1), -1)[..., None]
    out = last
    for i, choice in enumerate(choices):
        out = rnp.where(largest == i, choice, out)
    return _unit(out)


def _sinc_half(angle: Array) -> Array:
    """sin(a/2) / a, by its series near 0."""
    is_small = angle < 1e-3
    square = angle * angle
    safe = rnp.where(is_small, 1.0, angle)
    series = 0.5 - square * (1 / 48 - square * (1 / 3840))
    return rnp.where(is_small, series, rnp.sin(0.5 * safe) / safe)


def _length(v: Array) -> Array:
    """The length of a vector, whose derivative at 0 is 0."""
    return length_of(rnp.sum(v * v, -1, keepdims=True))


_AXES = {"x": 0, "y": 1, "z": 2}


def _elementary(axis: str, angle: Array) -> Array:
    parts = [rnp.zeros_like(angle)] * 4
    parts[_AXES[axis]], parts[3] = rnp.sin(0.5 * angle), rnp.cos(0.5 * angle)
    return rnp.stack(parts, -1)


def _sequence(name: str, seq: str) -> tuple[str, bool]:
    """Axes in lower case, and whether they move with the body (upper case)."""
    lower = seq.lower()
    is_fine = 1 <= len(seq) <= 3 and set(lower) <= set(_AXES) and seq in (lower, seq.upper())
    if not is_fine or any(a == b for a, b in pairwise(lower)):
        raise ArgumentError(
            f"{name}: cannot use seq={seq!r}",
            hint="up to three of 'xyz' (fixed axes) or 'XYZ' (moving ones), neighbours distinct",
        )
    return lower, seq != lower


@dataclass(frozen=True)
class Rotation:
    """A rotation of space, or an array of them. Make one with Rotation.from_….

    quat: [*B, 4], unit quaternions (x, y, z, w).
    Errors: ShapeError where there are not four numbers at the end.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.spatial.transform import Rotation
    >>> turn = Rotation.from_euler("z", 90.0, degrees=True)
    >>> rnp.round(turn.apply(rnp.array([1.0, 0.0, 0.0])), 3)
    Array([0., 1., 0.], f32[3], cpu:0)
    """

    quat: Array

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """From quaternions [*B, 4], which are normalised."""
        return cls(_unit(_rows("Rotation.from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """From rotation matrices [*B, 3, 3], which must be orthogonal."""
        return cls(_from_matrix(_rows("Rotation.from_matrix", matrix, 3, 3)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """From vectors [*B, 3] along the axis, whose length is the angle."""
        v = _rows("Rotation.from_rotvec", rotvec, 3)
        v = v * (math.pi / 180) if degrees else v
        angle = _length(v)
        return cls(rnp.concatenate([v * _sinc_half(angle), rnp.cos(0.5 * angle)], -1))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """From modified Rodrigues parameters [*B, 3], tan(angle / 4) along the axis."""
        v = _rows("Rotation.from_mrp", mrp, 3)
        square = rnp.sum(v * v, -1, keepdims=True)
        return cls(rnp.concatenate([2.0 * v, 1.0 - square], -1) / (1.0 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """From angles [*B, K] about K axes: "xyz" fixed axes, "XYZ" axes that move with the body.

        For one axis, angles are [*B]. Errors: ArgumentError for an unknown sequence.
        """
        axes, moves = _sequence("Rotation.from_euler", seq)
        (a,) = reals("Rotation.from_euler", angles)
        a = a * (math.pi / 180) if degrees else a
        if len(axes) == 1 and (a.ndim == 0 or a.shape[-1] != 1):
            a = a[..., None]
        if a.shape[-1] != len(axes):
            raise ShapeError(f"Rotation.from_euler: cannot turn about {seq!r} by {a.shape}")
        out = _elementary(axes[0], a[..., 0])
        for i, axis in enumerate(axes[1:], 1):
            turn = _elementary(axis, a[..., i])
            out = _product(out, turn) if moves else _product(turn, out)
        return cls(out)

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = rnp.float32) -> Rotation:
        """The identity, or `num` of them."""
        one = rnp.array([0.0, 0.0, 0.0, 1.0], dtype)
        return cls(one if num is None else rnp.tile(one, (num, 1)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of several arrays, one after another."""
        return cls(rnp.concatenate([rnp.atleast_2d(r.quat) for r in rotations]))

    # --- as numbers ---------------------------------------------------------------------------

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Quaternions [*B, 4]; canonical ones have w >= 0."""
        q = self.quat
        q = rnp.where(q[..., 3:] < 0, -q, q) if canonical else q
        return rnp.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Array:
        """Rotation matrices [*B, 3, 3]."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
        ]
        return rnp.stack([rnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors [*B, 3] along the axis, whose length is the angle, at most π."""
        q = self.as_quat(canonical=True)
        v, w = q[..., :3], q[..., 3:]
        size = _length(v)
        angle = 2.0 * rnp.arctan2(size, w)
        is_small = size < 1e-4
        # angle / sin(angle / 2), near 0 by its series
        scale = rnp.where(is_small, 2.0 + angle * angle / 12.0, angle / rnp.where(is_small, 1.0, size))
        return v * scale * (180 / math.pi if degrees else 1.0)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters [*B, 3]."""
        q = self.as_quat(canonical=True)
        return q[..., :3] / (1.0 + q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles [*B, 3] about three axes, as from_euler takes them.

        At gimbal lock the third angle is 0.
        Source: Bernardes & Viollet 2022, PLoS ONE 17(11).
        """
        axes, moves = _sequence("Rotation.as_euler", seq)
        if len(axes) != 3:
            raise ArgumentError(f"Rotation.as_euler: cannot use seq={seq!r} (three axes required)")
        return _euler_angles(self.quat, axes, moves) * (180 / math.pi if degrees else 1.0)

    # --- what rotations do --------------------------------------------------------------------

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """The vectors [*B, 3], rotated."""
        matrix = self.as_matrix()
        matrix = rnp.swapaxes(matrix, -1, -2) if inverse else matrix
        v = _rows("Rotation.apply", vectors, 3)
        return rnp.sum(matrix * v[..., None, :], -1)

    def inv(self) -> Rotation:
        """The inverse rotation."""
        return Rotation(rnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    def magnitude(self) -> Array:
        """The angle, in [0, π]."""
        return 2.0 * rnp.arctan2(_length(self.quat[..., :3])[..., 0], rnp.abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation with the smallest weighted sum of squared distances to these; weights [N].

        Errors: ShapeError unless there are N rotations and N weights.
        Source: Markley et al. 2007, "Averaging quaternions", J. Guidance, Control, Dynamics 30(4).
        """
        q = self.quat
        w = rnp.ones(q.shape[:1], q.dtype) if weights is None else rnp.asarray(weights, q.dtype)
        if q.ndim != 2 or w.shape != q.shape[:1]:
            raise ShapeError(f"Rotation.mean: cannot weigh rotations {q.type} by {w.type} (a weight for each)")
        return Rotation(rnp.linalg.eigh((w * q.T) @ q)[1][:, -1])

    def __mul__(self, other: Rotation) -> Rotation:
        return Rotation(_product(self.quat, other.quat))

    def __getitem__(self, index: object) -> Rotation:
        if self.single:
            raise ArgumentError("Rotation: cannot index a single rotation")
        return Rotation(self.quat[index])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single rotation has no length")
        return len(self.quat)

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not an array."""
        return self.quat.ndim == 1


def _euler_angles(q: Array, axes: str, moves: bool) -> Array:
    """The three angles of quaternions, from the two half-angle sums that determine them."""
    order = axes[::-1] if moves else axes
    i, j, k = (_AXES[a] for a in order)
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    if not is_symmetric:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2.0 * rnp.arctan2(rnp.sqrt(c * c + d * d), rnp.sqrt(a * a + b * b))
    half_sum, half_difference = rnp.arctan2(b, a), rnp.arctan2(d, c)
    is_low, is_high = middle <= 1e-7, middle >= math.pi - 1e-7
    first, third = half_sum - half_difference, half_sum + half_difference
    angle_sum = rnp.where(is_low, 2.0 * half_sum, -2.0 * half_difference)
    is_gimbal_lock = is_low | is_high
    if moves:
        angle_sum = rnp.where(is_low, 2.0 * half_sum, 2.0 * half_difference)
        first, third = rnp.where(is_gimbal_lock, 0.0, first), rnp.where(is_gimbal_lock, angle_sum, third)
    else:
        first, third = rnp.where(is_gimbal_lock, angle_sum, first), rnp.where(is_gimbal_lock, 0.0, third)
    if not is_symmetric:
        third, middle = third * sign, middle - math.pi / 2
    angles = [third, middle, first] if moves else [first, middle, third]
    return rnp.stack([_within_a_turn(v) for v in angles], -1)


def _within_a_turn(angle: Array) -> Array:
    """An angle of [-2π, 2π] in [-π, π], with both ends unchanged."""
    turn = 2 * math.pi
    high = rnp.where(angle > math.pi, angle - turn, angle)
    return rnp.where(angle < -math.pi, angle + turn, high)


tree.register_node(Rotation, lambda r: ((r.quat,), None), lambda _, kids: Rotation(kids[0]))


@dataclass(frozen=True)
class Slerp:
    """Rotations between given ones, at constant speed along the shortest way.

    times: [N], rising;  rotations: N of them.  Beyond the ends the first and last pair continue.
    Errors: ShapeError for times that are not as many as rotations.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.spatial.transform import Rotation, Slerp
    >>> ends = Rotation.from_euler("z", rnp.array([0.0, 1.0]))
    >>> rnp.round(Slerp(rnp.arange(2.0), ends)(0.25).magnitude(), 4)
    Array(0.25, f32[], cpu:0)
    """

    times: Array
    rotations: Rotation

    def __post_init__(self) -> None:
        (times,) = reals("Slerp", self.times)
        if not isinstance(self.rotations, Rotation):
            kind = type(self.rotations).__name__
            raise ArgumentError(f"Slerp: cannot use {kind} as rotations (a Rotation required)")
        if self.rotations.single or times.shape != (len(self.rotations),) or times.shape[0] < 2:
            raise ShapeError(f"Slerp: cannot use times {times.shape} (one for each rotation)")
        object.__setattr__(self, "times", times)

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """The same as `Slerp(times, rotations)`, under JAX's name. Errors: the same."""
        return cls(rnp.array(times), rotations)

    def __call__(self, times: ArrayLike) -> Rotation:
        """The rotations at times [*T]."""
        (at,) = reals("Slerp", times)
        piece = rnp.searchsorted(self.times[1:-1], at, side="right")
        start, end = (Rotation(self.rotations.quat[piece + i]) for i in (0, 1))
        share = (at - self.times[piece]) / (self.times[piece + 1] - self.times[piece])
        way = (start.inv() * end).as_rotvec()
        return start * Rotation.from_rotvec(way * share[..., None])


def _slerp_of(_: None, kids: Any) -> Slerp:
    slerp = object.__new__(Slerp)
    object.__setattr__(slerp, "times", kids[0])
    object.__setattr__(slerp, "rotations", kids[1])
    return slerp


tree.register_node(Slerp, lambda s: ((s.times, s.rotations), None), _slerp_of)

__dir__ = _names(globals())
