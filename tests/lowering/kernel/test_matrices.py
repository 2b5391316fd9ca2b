"""Matrix products by subgroups, and asynchronous fetches: their meaning, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rune import dtypes
from rune.errors import CheckError
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.kernel.work import work
from rune.lowering.legalize.units import write_out
from rune.lowering.passes import run_passes
from rune.lowering.pipeline import kernel_passes
from tests.support.lowering import target

DEVICE = replace(target(language="opencl"), threads_per_workgroup=1024, shared_bytes=1 << 15)
UNITS = replace(DEVICE, native=frozenset({("multiply", d) for d in (dtypes.f16, dtypes.bf16)}))

# y = x w for x [32, 16] and w [16, 16], by two subgroups of 16 rows each.
HEAD = "code f(x: read bf16[512], w: read bf16[256], y: write f32[512])"
SUMS = [[f"s_{r}_{c}" for c in range(4)] for r in range(2)]
FETCHES = """
fetch 8 of x[8*t] into a[24*(t//2) + 8*(t % 2)]
fetch 4 of w[4*t if index(t) < 62_i64] into b[4*t]
"""
ROWS = ", ".join("(" + ", ".join(row) + ")" for row in SUMS)
MULTIPLY = f"multiply a[384*(t//32), 24, 1] by b[0, 1, 16] into {ROWS}"


def stores() -> str:
    where = "256*(t//32) + 16*((t % 32)//4) + 2*(t % 4)"
    places = ((128 * r + 8 * (c // 2) + c % 2, name) for r, row in enumerate(SUMS) for c, name in enumerate(row))
    return "\n".join(f"store y[{where} + {place}] = {name}" for place, name in places)


def kernel(fetches: str = FETCHES, between: str = "barrier", multiply: str = MULTIPLY, threads: int = 64) -> str:
    sums = "\n".join(f"var {name}: f32 = 1.0_f32" for row in SUMS for name in row)
    body = f"{sums}\n{fetches}\n{between}\n{multiply}\n{stores()}"
    memory = "alloc a: bf16[768] shared\nalloc b: bf16[256] shared"
    return f"{HEAD} {{ for g in 1 grid {{ {memory} for t in {threads} workgroup {{ {body} }} }} }}"


def arguments() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=512).astype(dtypes.bf16), rng.normal(size=256).astype(dtypes.bf16)
    return [x, w, np.zeros(512, np.float32)]


def result(code: KernelCode) -> np.ndarray:
    buffers = arguments()
    interpret(code, buffers)
    return buffers[2].reshape(32, 16)


def expected() -> np.ndarray:
    """The sum starts at 1, and the last eight elements of w are not read."""
    x, w, _ = arguments()
    w[-8:] = 0
    return 1 + x.reshape(32, 16).astype(float) @ w.reshape(16, 16).astype(float)


def test_a_product_adds_the_matrix_product_of_what_was_fetched():
    code = parse(kernel())
    check(code)

    np.testing.assert_allclose(result(code), expected(), rtol=1e-6)


def test_products_and_fetches_parse_back_from_what_they_print():
    code = parse(kernel())

    assert parse(to_text(code)) == code


@pytest.mark.parametrize("device", [DEVICE, UNITS])
def test_all_passes_keep_the_values(device):
    code = run_passes(kernel_passes(device), parse(kernel()), check)

    np.testing.assert_allclose(result(code), expected(), rtol=1e-6)


def test_a_target_without_the_instructions_gets_none():
    text = to_text(write_out(DEVICE).run(parse(kernel())))

    assert "multiply" not in text
    assert "fetch" not in text


def test_a_target_keeps_the_instructions_that_it_has():
    text = to_text(write_out(UNITS).run(parse(kernel())))

    assert "multiply" in text
    assert "fetch" not in text


def test_a_product_counts_as_the_multiplications_of_its_threads():
    without = kernel(multiply="")

    assert work(parse(kernel()).body) - work(parse(without).body) == 64 * 16 * 8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"between": ""}, "which nothing has written"),
        ({"fetches": FETCHES.replace("x[8*t]", "x[8*t + 8]")}, "index 512 of 512"),
        ({"fetches": FETCHES + "fetch 8 of x[0] into a[0]"}, "a race within the workgroup"),
        ({"multiply": MULTIPLY.replace("a[384*(t//32)", "a[384*(t//16 % 2)")}, "threads of a subgroup read different"),
    ],
)
def test_the_interpreter_detects_a_wrong_access(changes: dict[str, str], reason: str):
    with pytest.raises(CheckError, match=reason):
        result(parse(kernel(**changes)))  # type: ignore[arg-type]


def refused(text: str) -> str:
    with pytest.raises(CheckError, match="check: cannot accept kernel f") as error:
        check(parse(text))
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"multiply": f"if index(t) < 32_i64 {{ {MULTIPLY} }}"}, "a product of matrices that not all threads reach"),
        ({"threads": 48}, "by [48] threads, not by one loop of subgroups"),
        ({"multiply": MULTIPLY.replace("24, 1]", "24, 2]")}, "rows of a that are not aligned"),
        ({"multiply": MULTIPLY.replace("b[0, ", "b[4, ")}, "rows of b that are not aligned"),
        ({"multiply": MULTIPLY.replace("1, 16]", "1, 20]")}, "rows of b that are not aligned"),
        ({"multiply": MULTIPLY.replace("by b[", "by w[")}, "w is not a shared array of bf16"),
        ({"multiply": MULTIPLY.replace("(s_0_0, ", "(")}, "accumulators that do not form a matrix"),
        ({"multiply": MULTIPLY.replace("s_0_0", "s_1_1")}, "accumulators that do not form a matrix"),
        ({"multiply": MULTIPLY.replace("s_0_0", "z")}, "z is accumulated but is not an f32 var in scope"),
        ({"fetches": FETCHES.replace("fetch 4 of w", "fetch 3 of w")}, "a fetch of 6 bytes, not 4, 8 or 16"),
        ({"fetches": FETCHES.replace("x[8*t]", "x[4*t]")}, "a fetch of 8 into a that is not aligned"),
        ({"fetches": "fetch 8 of a[0] into b[8*t]"}, "a fetch from a into b, not from a parameter"),
        ({"fetches": "fetch 4 of y[4*t] into b[4*t]"}, "y and b hold different dtypes"),
    ],
)
def test_a_kernel_that_breaks_a_rule_is_refused_with_the_reason(changes: dict[str, str | int], reason: str):
    assert reason in refused(kernel(**changes))  # type: ignore[arg-type]


def test_a_product_outside_a_workgroup_is_refused():
    memory = "alloc a: bf16[768] shared alloc b: bf16[256] shared"
    sums = " ".join(f"var {name}: f32 = 0.0_f32" for row in SUMS for name in row)
    text = f"{HEAD} {{ {memory} {sums} {MULTIPLY.replace('384*(t//32)', '0')} }}"

    assert "a product of matrices outside a workgroup" in refused(text)
