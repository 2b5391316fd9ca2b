"""Steps that move values: views, joins, indexing, updates.

A rule takes the maker and gives the text of an expression, (text, number of names), or None where
it finds no operand. POLYMORPHIC rules name no size, so they serve programs of symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzzing.maker import Maker

Made = str | tuple[str, int] | None
Rule = Callable[[Maker], Made]


def _slices(m: Maker, x: str) -> str:
    texts = []
    for size in m.shape(x):
        a = m.below(3) if m.is_symbolic else m.below(max(size, 1))
        step = m.choose([1, 1, 2, 3, -1, -2])
        options = [":", f"{a}:" if step > 0 else f":{a}", f":-{1 + a}", f"::{step}", f"-{1 + a}:"]
        options += [f"{a}::{abs(step)}", "::-1"]
        options += [f"{a}:{a + 1 + m.below(max(size - a, 1))}"] if not m.is_symbolic else []
        texts.append(m.choose(options))
    if m.chance(0.15) and m.shape(x):
        axis, end = m.below(len(texts)), m.choose(["0", "-1"])
        if m.shape(x)[axis] > 0:  # NumPy refuses what rune, like JAX, drops
            texts[axis] = end
    return ", ".join(texts)


def sliced(m: Maker) -> Made:
    x = m.pick(1)
    return x and f"{x}[{_slices(m, x)}]"


def transposed(m: Maker) -> Made:
    x = m.pick(2)
    if x is None:
        return None
    order = [int(k) for k in m.rng.permutation(len(m.shape(x)))]
    a, b = m.axis(x), m.axis(x)
    texts = [f"rnp.transpose({x}, {tuple(order)})", f"{x}.T", f"rnp.swapaxes({x}, {a}, {b})"]
    return m.choose([*texts, f"rnp.moveaxis({x}, {a}, {b})"])


def flipped(m: Maker) -> Made:
    x = m.pick(1)
    return x and f"rnp.flip({x}, {m.axis(x)})"


def rolled(m: Maker) -> Made:
    x = m.pick(1)
    return x and f"rnp.roll({x}, {m.below(5) - 2}, {m.axis(x)})"


def flattened(m: Maker) -> Made:
    x = m.pick(1)
    if x is None or not m.chance(0.6) or len(m.shape(x)) < 2:
        return x and f"{x}.reshape(-1)"
    return f"{x}.reshape(({x}.shape[0] * {x}.shape[1],) + {x}.shape[2:])"


def reshaped(m: Maker) -> Made:
    x = m.pick()
    if x is None or not m.envs[0][x].size:
        return None
    count = m.envs[0][x].size
    a = m.choose([d for d in range(1, count + 1) if count % d == 0])
    b = m.choose([d for d in range(1, count // a + 1) if (count // a) % d == 0])
    return f"{x}.reshape({m.choose([(a, count // a), (a, b, count // a // b), (1, count), (-1,)])})"


def raised(m: Maker) -> Made:
    x = m.pick(0, most=3)
    return x and f"rnp.expand_dims({x}, {m.below(len(m.shape(x)) + 1)})"


def broadcast(m: Maker) -> Made:
    x = m.pick(0, most=3)
    if x is None:
        return None
    if len(m.shape(x)) and m.chance(0.5):
        return f"rnp.broadcast_to({x}[..., None], (*{x}.shape, {m.choose([2, 3, 5])}))"
    return f"rnp.broadcast_to({x}, ({m.choose([2, 3, 7])}, *{x}.shape))"


def padded(m: Maker) -> Made:
    x = m.pick(1, "biuf")
    if x is None:
        return None
    widths = tuple((m.below(3), m.below(3)) for _ in m.shape(x))
    mode = m.choose(["constant", "constant", "edge", "reflect", "symmetric", "wrap"])
    fill = f"constant_values={m.number(x)}" if mode == "constant" else f"mode={mode!r}"
    return f"rnp.pad({x}, {widths}, {fill})"


def padded_inside(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    widths = tuple((m.below(4) - 1, m.below(4) - 1, m.choose([0, 0, 1, 2])) for _ in m.shape(x))
    return f"lax.pad({x}, rnp.asarray({m.number(x)}, {x}.dtype), {widths})"


def _square(m: Maker) -> str | None:
    """A value with two axes of one size, the last it has, where there is one."""
    square = [x for x in m.envs[0] if len(m.shape(x)) >= 2 and len({*m.shape(x)[-2:]}) == 1]
    fit = [x for x in square if x not in {i.name for i in m.inputs}] or square
    return m.choose(fit[-3:]) if fit else m.pick(2)


def diagonal(m: Maker) -> Made:
    x = _square(m)
    if x is None:
        return None
    a, b = (int(k) for k in m.rng.permutation(len(m.shape(x)))[:2])
    if m.chance(0.5):
        a, b = m.choose([(-1, -2), (-2, -1)])
    return f"rnp.diagonal({x}, {m.choose([0, 0, 0, 1, -1])}, {a}, {b})"


def diagonal_of_matrix(m: Maker) -> Made:
    x = m.pick(1, most=2) if m.chance(0.3) else _square(m)
    return None if x is None or len(m.shape(x)) > 2 else f"rnp.diag({x})"


def diagonal_by_index(m: Maker) -> Made:
    """The elements at equal positions of two axes."""
    x = _square(m)
    if x is None or 0 in m.shape(x):
        return None
    count = 1 + m.below(min(m.shape(x)))
    i = f"rnp.arange({count})"
    return m.choose([f"{x}[{i}, {i}]", f"{x}[{i}, {i}[::-1]]", f"{x}[..., {i}]"])


def triangle(m: Maker) -> Made:
    x = m.pick(2)
    return x and f"rnp.{m.choose(['triu', 'tril'])}({x}, {m.below(3) - 1})"


def joined(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    axis, y = m.below(len(m.shape(x))), m.like(x)
    part = f"{x}[{':, ' * axis}1:]"
    texts = [f"rnp.concatenate([{x}, {y}], {axis})", f"rnp.stack([{x}, {y}], {m.below(2)})"]
    return m.choose([*texts, f"rnp.concatenate([{part}, {y}, {x}], {axis})"])


def repeated(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    k = m.choose([2, 3])
    return m.choose([f"rnp.repeat({x}, {k}, {m.axis(x)})", f"rnp.tile({x}, {k})"])


def parted(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    return f"rnp.array_split({x}, {m.choose([2, 3])}, {m.axis(x)})[:2]", 2


def rotated(m: Maker) -> Made:
    x = m.pick(2)
    return x and f"rnp.rot90({x}, {m.choose([1, 2, 3])})"


def _positions(m: Maker, x: str, axis: int) -> str | None:
    """Whole numbers inside an axis of x: of another value, or of the program."""
    size = m.shape(x)[axis]
    if not size:
        return None
    y = m.pick(1, "iu", most=2)
    if y is not None and m.chance(0.5):
        return f"{y} % {x}.shape[{axis}]"
    if m.is_symbolic:
        return f"rnp.arange(7) * 3 % {x}.shape[{axis}]"
    places = [m.below(size) - (size if m.chance(0.2) else 0) for _ in range(1 + m.below(6))]
    return f"rnp.array({places})"


def take(m: Maker) -> Made:
    x = m.pick(1, most=3)
    axis = m.below(len(m.shape(x))) if x else 0
    at = _positions(m, x, axis) if x else None
    if x is None or at is None:
        return None
    if axis == 0 and m.chance(0.5):
        return f"{x}[{at}]"
    return f"rnp.take({x}, {at}, {axis})"


def taken_along(m: Maker) -> Made:
    x = m.pick(1, "iuf")
    axis = m.axis(x) if x else 0
    if m.values == "smooth":
        return None
    return x and f"rnp.take_along_axis({m.like(x)}, rnp.argsort({x}, {axis}, stable=True), {axis})"


def _update(m: Maker, x: str) -> str:
    ways = ["set", "add", "max", "min"] if m.kind(x) in "iuf" else ["set"]
    return m.choose(ways if m.values == "whole" else ways[:2])


def updated_slice(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    at = _slices(m, x)
    value = m.choose([m.number(x), f"{m.like(x)}[{at}]"])
    return f"{x}.at[{at}].{_update(m, x)}({value})"


def updated_rows(m: Maker) -> Made:
    """Rows at positions that may be equal; a set of equal ones leaves any of them."""
    x = m.pick(1)
    at = _positions(m, x, 0) if x else None
    if x is None or at is None:
        return None
    way = _update(m, x)
    if way == "set":
        return f"{x}.at[{at}].set({m.number(x)})"
    y = m.like(x)
    return f"{x}.at[{at}].{way}({y}[{at}])"


def _corner(m: Maker, x: str) -> str:
    def start() -> str:
        y = m.pick(0, "i", most=0)
        return y if y is not None and m.chance(0.4) else str(m.below(9) - 2)

    return f"({', '.join(start() for _ in m.shape(x))},)"


def window(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    sizes = tuple(d - m.below(min(d, 3) + 1) for d in m.shape(x))
    return f"lax.dynamic_slice({x}, {_corner(m, x)}, {sizes})"


def window_written(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    part = ", ".join(f":{d - m.below(min(d, 3) + 1)}" for d in m.shape(x))
    return f"lax.dynamic_update_slice({x}, {m.like(x)}[{part}], {_corner(m, x)})"


POLYMORPHIC: tuple[Rule, ...] = (
    sliced,
    sliced,
    transposed,
    transposed,
    flipped,
    rolled,
    flattened,
    raised,
    broadcast,
    padded,
    padded_inside,
    diagonal,
    diagonal,
    diagonal_of_matrix,
    triangle,
    joined,
    joined,
    repeated,
    parted,
    take,
    taken_along,
    updated_slice,
)
SIZED: tuple[Rule, ...] = (reshaped, reshaped, diagonal_by_index, rotated, updated_rows, window, window_written)
