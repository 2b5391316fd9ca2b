"""Steps that read and write by index: traced and static, negative, past the end, in every mode."""

from __future__ import annotations

from tests.fuzzing.maker import Maker
from tests.fuzzing.rules_views import Made, Rule

MODES = ("", "", ", mode='clip'", ", mode='fill'", ", mode='drop'", ", mode='wrap'", ", mode='promise_in_bounds'")


def _integers(m: Maker, size: int, is_inside: bool) -> str:
    """An array of positions, of the program or constant; past the ends unless `is_inside`."""
    y = m.pick(0, "iu", 2)
    if y is not None and m.chance(0.4):
        return f"({y} % {max(size, 1)})" if is_inside else y
    low, high = (-size, max(size, 1)) if is_inside else (-size - 2, size + 3)
    count = m.choose([0, 1, 2, 3, 5])
    places = [int(k) for k in m.rng.integers(low, high, count)]
    if count == 0:
        return "jnp.array([], int)"
    if m.chance(0.2) and count in (2, 5):
        return f"jnp.array({[places, places[::-1]]})"
    return f"{m.choose(['jnp', 'jnp', 'np'])}.array({places})"


def _one_index(m: Maker, x: str, axis: int, is_inside: bool) -> str:
    """An index of one axis: a slice, a number, an array, a mask."""
    size = m.shape(x)[axis]
    a, b = m.below(size + 2) - 1, m.below(size + 3)
    kind = m.below(10)
    if kind < 3:
        return m.choose([":", f"{a}:", f":{b}", f"{a}:{b}", f"::{m.choose([2, 3, -1, -2])}", f"{b}:{a}:-1"])
    if kind == 3 and size:
        return str(m.below(2 * size) - size)
    if kind == 4:
        scalar = m.pick(0, "iu", 0)
        return f"({scalar} % {max(size, 1)})" if scalar else "jnp.int32(0)"
    if kind == 5 and size and size < 40:
        return f"np.array({[bool(k) for k in m.rng.integers(0, 2, size)]})"
    return _integers(m, size, is_inside)


def _index(m: Maker, x: str, is_inside: bool) -> str:
    """An index of several axes, sometimes with an ellipsis and new axes."""
    ndim = len(m.shape(x))
    count = 1 + m.below(ndim) if ndim else 0
    axes = range(count)
    texts = [_one_index(m, x, axis, is_inside) for axis in axes]
    if m.chance(0.15):
        texts.insert(m.below(len(texts) + 1), "None")
    if m.chance(0.2):
        texts.append("...")
    elif m.chance(0.15) and count == 1:
        texts = ["...", _one_index(m, x, ndim - 1, is_inside)] if ndim else ["..."]
    return ", ".join(texts) or "..."


def indexed(m: Maker) -> Made:
    x = m.pick(0, most=4)
    return x and f"{x}[{_index(m, x, m.chance(0.7))}]"


def indexed_at(m: Maker) -> Made:
    x = m.pick(1, most=3)
    if x is None:
        return None
    mode = m.choose([*MODES, ", mode='fill', fill_value=3", ", fill_value=2, mode='fill'"])
    return f"{x}.at[{_index(m, x, 'promise' in mode)}].get({mode[2:]})"


def updated(m: Maker) -> Made:
    """`.at[]`, with values that do not depend on the order of equal indices."""
    x = m.pick(0, most=3)
    if x is None:
        return None
    mode = m.choose([mode for mode in MODES if "wrap" not in mode])
    at = _index(m, x, "promise" in mode or m.chance(0.6))
    number = m.choose([m.number(x), "1.5", "2", "True", m.pick(0, "biuf", 0) or "1"])
    names = ["set", "add", "subtract", "multiply", "mul", "min", "max", "apply", "divide", "power"]
    name = m.choose(names if m.kind(x) in "iuf" else ["set", "max" if m.kind(x) == "b" else "add"])
    match name:
        case "set":
            return f"{x}.at[{at}].set({number}{mode})"
        case "apply":
            return f"{x}.at[{at}].apply(lambda t: t * 2{mode})"
        case "divide":
            # JAX rounds a divisor to the integers of x, and warns that it will refuse it.
            return f"{x}.at[{at}].divide({m.choose(['2', '0.5']) if m.kind(x) == 'f' else '2'}{mode})"
        case "power":
            return f"{x}.at[{at}].power(2{mode})"
    if m.chance(0.5):
        return f"{x}.at[{at}].{name}({number}{mode})"
    return f"{x}.at[{at}].{name}({m.like(x, 'iuf')}[{at}]{mode})"


def updated_by_a_mask(m: Maker) -> Made:
    x = m.pick(1, "iuf", 3)
    if x is None:
        return None
    c = m.like(x, "iuf")
    test = f"{c} {m.choose(['>', '<', '=='])} {m.number(c)}"
    way = m.choose([f"set({m.number(x)})", "add(1)", "mul(2)", "min(0)", "max(1)"])
    return f"{x}.at[{test}].{way}"


def updated_by_windows(m: Maker) -> Made:
    """Traced starts; those past the ends are clamped."""
    x = m.pick(1, most=3)
    if x is None:
        return None
    axis = m.axis(x)
    size = m.shape(x)[axis]
    i = m.choose(
        [m.pick(0, "iu", 0) or "jnp.int32(1)", "jnp.int32(-1)", f"jnp.int32({size + 2})", "0", "-2", "jnp.int8(1)"]
    )
    part = f"lax.slice_in_dim({m.like(x)}, 0, {max(size // 2, min(size, 1))}, axis={axis})"
    return m.choose(
        [
            f"lax.dynamic_update_slice_in_dim({x}, {part}, {i}, {axis})",
            f"lax.dynamic_slice_in_dim({x}, {i}, {max(size - 1, 0)}, {axis})",
            f"lax.dynamic_index_in_dim({x}, {i}, {axis}, keepdims={m.chance(0.5)})",
            f"lax.dynamic_update_index_in_dim({x}, lax.index_in_dim({m.like(x)}, 0, {axis}, keepdims=False), {i}, {axis})",
            f"jnp.roll({x}, {i}, {axis})",
            f"jnp.take({x}, {i}, axis={axis}{m.choose(MODES[:4])})",
        ]
    )


def take(m: Maker) -> Made:
    x = m.pick(1, most=3)
    if x is None:
        return None
    axis = m.axis(x)
    mode = m.choose(["", "", ", mode='clip'", ", mode='wrap'", ", mode='fill'", ", fill_value=1, mode='fill'"])
    at = _integers(m, m.shape(x)[axis], m.chance(0.5))
    return m.choose(
        [f"jnp.take({x}, {at}, axis={axis}{mode})", f"jnp.take({x}, {at}{mode})", f"{x}.take({at}, axis={axis})"]
    )


def taken_along(m: Maker) -> Made:
    x = m.pick(1, most=3)
    if x is None:
        return None
    axis, y = m.axis(x), m.like(x, "iu")
    mode = m.choose(["", "", ", mode='clip'", ", mode='fill'", ", mode='wrap'"])
    if m.kind(y) in "iu":
        at = m.choose([y, f"{y} % {max(m.shape(x)[axis], 1)}"])
        return f"jnp.take_along_axis({x}, {at}, axis={axis}{mode})"
    return f"jnp.take_along_axis({x}, jnp.argmax({m.like(x)}, {axis}, keepdims=True), {axis}{mode})"


def put(m: Maker) -> Made:
    x = m.pick(1, "iuf", 3)
    if x is None or 0 in m.shape(x):
        return None
    axis = m.axis(x)
    at = f"jnp.argmin({x}, {axis}, keepdims=True)"
    return m.choose(
        [
            f"jnp.put_along_axis({x}, {at}, {m.number(x)}, {axis}, inplace=False)",
            f"jnp.put({x}, {_integers(m, m.envs[0][x].size, True)}, {m.number(x)}, inplace=False)",
            f"jnp.place({x}, {x} > 0, jnp.array([1, 2]), inplace=False)",
            f"jnp.fill_diagonal({x}, {m.number(x)}, inplace=False)",
            f"jnp.insert({x}, {m.choose([0, 1, -1])}, {m.number(x)}, axis={axis})",
            f"jnp.delete({x}, {m.choose([0, -1])}, axis={axis})",
            f"jnp.append({x}, {m.like(x)}, axis={axis})",
        ]
    )


def chosen(m: Maker) -> Made:
    x = m.pick(1, "iuf", 3)
    if x is None:
        return None
    y, k = m.like(x, "iuf"), m.number(x)
    return m.choose(
        [
            f"jnp.select([{x} > {k}, {y} < 0], [{x}, {y}], {m.choose(['0', '1.5', k])})",
            f"jnp.select([{x} > {k}, {x} < 0], [{m.choose(['1', '2.5'])}, 0])",
            f"jnp.choose(({y} > 0).astype(int), [{x}, {y}], mode='{m.choose(['clip', 'wrap'])}')",
            f"jnp.piecewise({x}, [{x} < 0, {x} > {k}], [lambda t: -t, 2, lambda t: t])",
            f"jnp.where({x} > {k}, {m.choose(['1', '1.5', y, 'True'])}, {m.choose([x, '0', y])})",
            f"lax.select({x} > {x}.dtype.type(1), {x}, -{x})",
            f"jnp.compress(np.arange({m.shape(x)[0]}) % 2 == 0, {x}, axis=0)",
            f"jnp.extract({x} > {k}, {x}, size=4, fill_value=7)",
            f"jnp.nonzero({x} > {k}, size={m.choose([2, 5])}, fill_value={m.choose([-1, 0, 99])})[0]",
            f"jnp.argwhere({x} > {k}, size=3, fill_value=-1)",
            f"jnp.flatnonzero({x}, size=4)",
        ]
    )


def eager_mask(m: Maker) -> Made:
    """A selection by a mask, whose size depends on values: only outside of transformations."""
    x = m.pick(1, "iuf", 2)
    if x is None or m.chance(0.7):
        return None
    k = m.number(x)
    return m.choose([f"{x}[{x} > {k}]", f"jnp.nonzero({x})[0]", f"jnp.unique({x})", f"jnp.extract({x} > 0, {x})"])


def gathered(m: Maker) -> Made:
    """lax.gather and lax.scatter with dimension numbers written out."""
    x = m.pick(2, "iuf", 2)
    if x is None or 0 in m.shape(x):
        return None
    rows, columns = m.shape(x)
    w = 1 + m.below(min(columns, 3))
    at = [[m.below(rows + 2) - 1, m.below(columns + 2) - 1] for _ in range(3)]
    mode = m.choose(["'fill'", "'promise_in_bounds'"])  # JAX counts clamped extrema as none: NaN
    if "promise" in mode:
        at = [[m.below(rows), m.below(columns - w + 1)] for _ in range(3)]
    if m.chance(0.5):
        numbers = "lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0, 1))"
        return f"lax.gather({x}, jnp.array({at}), {numbers}, slice_sizes=(1, {w}), mode={mode})"
    numbers = "lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0, 1))"
    name = m.choose(["scatter_add", "scatter_min", "scatter_max", "scatter_mul"])
    updates = f"jnp.resize({m.like(x)}, (3, {w}))"
    return f"lax.{name}({x}, jnp.array({at}), {updates}, {numbers}, mode={mode})"


def segments(m: Maker) -> Made:
    x = m.pick(1, "iuf", 3)
    if x is None:
        return None
    name = m.choose(["sum", "prod", "max", "min"])
    n = m.shape(x)[0]
    ids = [int(k) for k in m.rng.integers(-1, 5, n)]
    labels = m.pick(1, "i", 1)
    which = (
        labels if labels and m.shape(labels)[0] == n and m.chance(0.5) else f"jnp.array({ids}, int)" if n < 60 else ""
    )
    count = m.choose([", 4", ", 3, indices_are_sorted=False", ", num_segments=5", ", num_segments=4, bucket_size=2"])
    return f"jax.ops.segment_{name}({x}, {which or f'jnp.arange({n}) // 3'}{count})"


RULES: tuple[Rule, ...] = (
    indexed,
    indexed,
    indexed,
    indexed,
    indexed_at,
    updated,
    updated,
    updated,
    updated,
    updated_by_a_mask,
    updated_by_windows,
    updated_by_windows,
    take,
    taken_along,
    put,
    chosen,
    chosen,
    eager_mask,
    gathered,
    segments,
)
