"""jax.config: each option takes effect, is stored, or is refused with the reason; blocks end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import disable_x64, enable_x64

import rune
from rune.as_jax import flags

X = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def options_as_before() -> Iterator[None]:
    with rune.configure():
        yield
    flags._process.clear()


def test_64_bits_are_switched_on_in_a_block():
    with jax.enable_x64(True):
        inside = jnp.ones(2).dtype, jax.config.jax_enable_x64, jax.config.read("jax_enable_x64")

    assert inside == (np.float64, True, True)
    assert (jnp.ones(2).dtype, jax.config.jax_enable_x64) == (np.float32, False)
    with enable_x64():
        assert jax.config.x64_enabled
        with disable_x64():
            assert jnp.ones(2).dtype == np.float32


def test_an_update_holds_until_the_next():
    jax.config.update("jax_enable_x64", True)
    wide = jnp.ones(2).dtype
    jax.config.update("jax_enable_x64", False)

    assert (wide, jnp.ones(2).dtype) == (np.float64, np.float32)


ACTING = {
    "jax_debug_nans": (True, lambda: jnp.log(-1.0), FloatingPointError),
    "jax_debug_infs": (True, lambda: jnp.log(0.0), FloatingPointError),
    "jax_check_tracer_leaks": (True, lambda: jax.jit([].append)(1.0), None),
    "jax_numpy_rank_promotion": ("raise", lambda: X + jnp.ones(3), ValueError),
    "jax_numpy_dtype_promotion": ("strict", lambda: jnp.ones(2) + jnp.ones(2, int), TypeError),
    "jax_debug_key_reuse": (True, lambda: [jax.random.normal(k) for k in [jax.random.key(0)] * 2], TypeError),
}


@pytest.mark.parametrize("name", ACTING)
def test_an_option_acts_in_a_block(name: str):
    value, call, error = ACTING[name]

    call()
    with flags.in_block(name, value):
        assert jax.config.read(name) == value
        if error is not None:
            with pytest.raises(error):
                call()
    call()


def test_jit_is_disabled_by_a_block_and_by_a_decorator():
    values: list[Any] = []

    with jax.disable_jit():
        jax.jit(values.append)(1.0)
    jax.disable_jit(True)(lambda: jax.jit(values.append)(2.0))()
    with jax.disable_jit(False):
        jax.jit(lambda x: values.append(type(x) is float))(1.0)

    assert values == [1.0, 2.0, False]


def test_an_option_that_changes_no_result_is_stored_and_read_back():
    with jax.default_matmul_precision("tensorfloat32"):
        inside = jax.config.jax_default_matmul_precision
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 7)

    assert (inside, jax.config.jax_default_matmul_precision) == ("tensorfloat32", None)
    assert jax.config.jax_persistent_cache_min_compile_time_secs == 7


BLOCKS: dict[str, tuple[Any, Any]] = {
    "jax_debug_nans": (jax.debug_nans, True),
    "jax_default_matmul_precision": (jax.default_matmul_precision, "float32"),
    "jax_transfer_guard": (jax.transfer_guard, "allow"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_may_be_entered_recursively_and_by_several_threads(name: str):
    make, value = BLOCKS[name]
    before, block, values = jax.config.read(name), make(value), []

    def enter() -> None:
        for _ in range(100):
            with block:
                with block:
                    values.append(jax.config.read(name))
                values.append(jax.config.read(name))
            values.append(jax.config.read(name))

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(enter) for _ in range(2)]:
            future.result(timeout=600)
    enter()

    assert jax.config.read(name) == before
    assert sorted(map(str, values)) == sorted(300 * [str(value), str(value), str(before)])


@pytest.mark.parametrize("name", BLOCKS)
def test_a_function_in_a_block_calls_itself(name: str):
    make, value = BLOCKS[name]
    before = jax.config.read(name)

    @make(value)
    def read(depth: int) -> Any:
        return read(depth - 1) if depth else jax.config.read(name)

    assert (read(3), jax.config.read(name)) == (value, before)


@pytest.mark.parametrize("name", flags.FIXED)
def test_a_fixed_option_accepts_its_default_and_refuses_other_values(name: str):
    default, reason = flags.FIXED[name]

    jax.config.update(name, default)
    with pytest.raises(ValueError, match="config: cannot set") as error:
        jax.config.update(name, "another")

    assert reason in str(error.value)


def test_older_keys_are_typed_if_the_option_is_set():
    with jax.enable_custom_prng():
        key = jax.random.PRNGKey(7)

    assert key == jax.random.key(7)
    assert jax.random.PRNGKey(7).dtype == np.uint32


def test_an_unknown_option_is_an_attribute_error_as_in_jax():
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        jax.config.update("jax_foo", True)
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        _ = jax.config.jax_foo


def test_a_switch_is_on_in_a_block_without_a_value_and_others_want_one():
    with jax.debug_nans():
        assert jax.config.jax_debug_nans is True
    with pytest.raises(TypeError, match="numpy_rank_promotion: cannot open a block without a value"):
        jax.numpy_rank_promotion()


def test_options_are_those_of_jax_and_their_defaults_too():
    values = jax.config.values

    assert len(values) == len(flags.ACTING) + len(flags.NOTED) + len(flags.FIXED)
    assert values["jax_numpy_rank_promotion"] == "allow"
    assert values["jax_default_device"] is None


def test_the_default_device_is_set_by_a_device_or_a_name():
    for device in ("reference", rune.devices("reference")[0]):
        with jax.default_device(device):
            assert jnp.ones(2).device.platform == "reference"
            assert jax.default_backend() == "reference"
            assert jax.config.jax_default_device == rune.devices("reference")[0]
    assert jnp.ones(2).device.platform == "cpu"


def test_a_process_begins_with_variables_of_jax():
    code = "import rune.as_jax, jax, jax.numpy as jnp; print(jnp.ones(2).dtype, jax.config.jax_debug_nans)"
    environment = {"JAX_ENABLE_X64": "1", "JAX_DEBUG_NANS": "True", "PYTHONPATH": ":".join(sys.path)}

    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)

    assert process.stdout == "float64 True\n", process.stderr


def test_xla_flags_set_the_number_of_devices_until_the_first_use():
    code = """
import rune.as_jax, jax, os
from jax._src import xla_bridge
print(xla_bridge._backends)
os.environ["XLA_FLAGS"] = "--xla_dump_to=x --xla_force_host_platform_device_count=6"
print(jax.make_mesh((3, 2), ("a", "b")).size)
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
print(jax.device_count(), xla_bridge._backends)
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        timeout=600,
    )

    assert process.stdout.splitlines() == ["{}", "6", "6 {'cpu': 'rune'}"], process.stderr


def test_a_variable_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match="JAX_ENABLE_X64='maybe'"):
        flags.begin({"JAX_ENABLE_X64": "maybe"})


def test_options_are_read_off_the_command_line(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("absl", reason="scripts/environment.sh installs it with the libraries")
    arguments = ["--jax_enable_x64", "--jax_numpy_rank_promotion=warn", "--jax_compilation_cache_max_size=7"]
    others = ["--depth=3", "--jax_no_such_option=1", "--", "--jax_debug_nans=1"]
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments, *others])

    try:
        jax.config.parse_flags_with_absl()
        values = jax.config.values
    finally:
        jax.config.update("jax_enable_x64", False)
        jax.config.update("jax_numpy_rank_promotion", "allow")

    assert values["jax_enable_x64"]
    assert values["jax_numpy_rank_promotion"] == "warn"
    assert values["jax_compilation_cache_max_size"] == 7
    assert not values["jax_debug_nans"]


def test_an_option_of_the_command_line_without_a_meaning_is_refused():
    with pytest.raises(ValueError, match="JAX_ENABLE_X64='maybe'"):
        flags.begin_by_arguments(["--jax_enable_x64=maybe"])
