"""Settings: a statement applies to the process, a block to itself, however the two are combined.

Claims: a statement takes effect at once, also in new threads; a block restores the settings from
before the call, even if it raises, is nested, kept or entered again; no thread sees the block of
another; names and values are checked at the call; the environment gives the initial values; no
cached call, even a native one, is used under other settings. A small model predicts the results of
random sequences of all this.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import rune
import rune.numpy as rnp
from rune import config
from rune.options import Config, from_environment


@pytest.fixture(autouse=True)
def _process_as_it_was() -> Iterator[None]:
    """Undo the statements of a test after it."""
    before = config._process.statements  # pyright: ignore[reportPrivateUsage]
    yield
    restore(before)


def restore(statements: list[Any]) -> None:
    config.current()  # hears what waits
    config._process.statements = statements  # pyright: ignore[reportPrivateUsage]
    config._process.begin()  # pyright: ignore[reportPrivateUsage]


def in_a_thread(question: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(question()))
    thread.start()
    thread.join()
    return answers[0]


def is_wide() -> bool:
    return str(rnp.ones(2).dtype) == "float64"


# --- statements -------------------------------------------------------------------------------


def test_a_statement_acts_at_once():
    rune.configure(check_nans=True)

    with pytest.raises(rune.errors.NaNError):
        rnp.log(rnp.array(-1.0))


@pytest.mark.parametrize("set_it", [lambda: rune.configure(x64=True), rune.enable_x64], ids=["configure", "enable_x64"])
def test_a_setting_made_by_a_statement_holds_in_new_threads(set_it: Callable[[], Any]):
    set_it()

    assert is_wide()
    assert in_a_thread(is_wide)


def test_a_device_is_set_for_the_process():
    rune.device("reference")

    assert in_a_thread(lambda: rnp.ones(2).device.name) == "reference:0"


def test_the_last_statement_is_in_force():
    for k in range(300):
        rune.enable_x64(k % 2 == 0)

    assert not is_wide()
    assert len(config._process.statements) <= 2  # pyright: ignore[reportPrivateUsage]


def test_a_statement_takes_effect_in_all_threads_even_if_its_result_is_kept():
    statement = rune.enable_x64()

    assert is_wide()
    assert in_a_thread(is_wide)
    assert statement is not None


def test_a_statement_that_a_notebook_shows_acts_for_other_threads():
    statement = rune.enable_x64()

    assert repr(statement) == "configure(x64=True)"
    assert in_a_thread(is_wide)


def test_a_statement_in_a_task_acts_for_the_process():
    async def main() -> None:
        rune.enable_x64()

    asyncio.run(main())

    assert is_wide()


def test_a_statement_inside_a_block_shows_after_it():
    with rune.enable_x64(False):
        rune.configure(x64=True, promotion="strict")
        inside = (is_wide(), config.current().promotion)

    assert (*inside, is_wide()) == (False, "strict", True)


# --- blocks -----------------------------------------------------------------------------------


def test_a_block_does_not_affect_other_threads():
    with rune.enable_x64():
        assert is_wide()
        assert not in_a_thread(is_wide)


def test_a_call_that_may_become_a_block_does_not_affect_other_threads():
    waiting = rune.enable_x64()

    assert not in_a_thread(is_wide)

    with waiting:
        assert not in_a_thread(is_wide)
    assert not is_wide()


def test_a_block_left_by_an_error_restores_everything():
    with pytest.raises(ZeroDivisionError), rune.enable_x64():
        raise ZeroDivisionError

    assert not is_wide()


def test_a_statement_that_is_entered_later_is_undone_at_its_end():
    rune.enable_x64()
    narrow = rune.enable_x64(False)
    assert not is_wide()

    with narrow:
        assert (is_wide(), in_a_thread(is_wide)) == (False, True)
    assert is_wide()


def test_a_setting_is_entered_again_and_inside_itself():
    setting = rune.enable_x64()
    answers = []

    for _ in range(2):
        with setting, setting:
            answers.append(is_wide())
        answers.append(is_wide())

    assert answers == [True, False, True, False]


def test_threads_enter_one_setting_at_once():
    setting, both, wide = rune.enable_x64(), threading.Barrier(2, timeout=600), []

    def enter() -> None:
        with setting:
            both.wait()
            wide.append(is_wide())
            both.wait()
        wide.append(is_wide())

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for step in (threading.Thread.start, threading.Thread.join):
        for thread in threads:
            step(thread)

    assert sorted(wide) == [False, False, True, True]


def test_a_block_overrides_what_another_thread_sets_meanwhile():
    with rune.enable_x64():
        in_a_thread(lambda: rune.configure(x64=False, promotion="strict"))
        settings = config.current()

    assert (settings.x64, settings.promotion) == (True, "strict")
    assert config.current().promotion == "strict"


def test_a_generator_that_ends_first_closes_only_its_own_block():
    def wide() -> Iterator[None]:
        with rune.enable_x64():
            yield

    steps = wide()
    next(steps)
    with rune.numpy_dtype_promotion("strict"):
        steps.close()  # type: ignore[attr-defined]
        assert (is_wide(), config.current().promotion) == (False, "strict")
    assert config.current().promotion == "standard"


def test_an_exit_stack_closes_its_blocks():
    with ExitStack() as stack:
        stack.enter_context(rune.enable_x64())
        stack.enter_context(rune.configure(promotion="strict"))
        assert (is_wide(), config.current().promotion) == (True, "strict")

    assert (is_wide(), config.current().promotion) == (False, "standard")


def test_tasks_do_not_see_each_others_blocks():
    async def enter(wide: bool) -> bool:
        with rune.enable_x64(wide):
            await asyncio.sleep(0.001)
            return is_wide()

    async def main() -> list[bool]:
        return await asyncio.gather(*(enter(k % 2 == 0) for k in range(4)))

    assert asyncio.run(main()) == [True, False, True, False]


def test_a_decorated_function_runs_in_a_block():
    @rune.enable_x64()
    def inner(n: int) -> bool:
        return n == 3 and is_wide()

    assert (is_wide(), inner(3), inner(3), is_wide()) == (False, True, True, False)
    assert inner.__name__ == "inner"


def test_a_function_that_runs_later_than_it_is_called_is_not_decorated():
    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(rune.errors.ArgumentError, match="cannot wrap"):
        rune.enable_x64()(numbers)


def test_a_block_receives_its_setting():
    with rune.device("reference") as device, rune.configure(x64=True) as settings:
        assert (device.name, settings.x64) == ("reference:0", True)


KEYS = ("x64", "check_infs", "check_leaks")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "keep", "enter", "enter again", "leave", "drop", "look"]),
        st.sampled_from(KEYS),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=25,
)


def settings_in_force() -> dict[str, bool]:
    return {name: getattr(config.current(), name) for name in KEYS}


@given(STEPS)
def test_any_sequence_of_statements_and_blocks_agrees_with_the_model(steps: list[Any]):
    statements: list[list[Any]] = []  # in force: setting or None, name, value
    reusable: list[tuple[Any, str, bool]] = []
    blocks: list[tuple[Any, str, bool]] = []
    for action, name, value, number in steps:
        if action in ("set", "keep"):
            setting = rune.configure(**{name: value})
            statements.append([setting if action == "keep" else None, name, value])
            if action == "keep":
                reusable.append((setting, name, value))
            del setting
        elif action == "enter again" and reusable:
            block = reusable[number % len(reusable)]
            statements = [s for s in statements if s[0] is not block[0]]
            block[0].__enter__()
            blocks.append(block)
        elif action == "enter":
            blocks.append((rune.configure(**{name: value}), name, value))
            blocks[-1][0].__enter__()
        elif action == "leave" and blocks:
            blocks.pop()[0].__exit__(None, None, None)
        expected: dict[str, bool] = dict.fromkeys(KEYS, False)
        expected.update((n, v) for _, n, v in statements)
        of_process = dict(expected)
        expected.update((n, v) for _, n, v in blocks)
        if action == "look":
            assert settings_in_force() == expected
            assert in_a_thread(settings_in_force) == of_process
    while blocks:
        blocks.pop()[0].__exit__(None, None, None)
    restore([])


# --- caches -----------------------------------------------------------------------------------


def test_a_cached_call_is_made_for_the_settings_in_force():
    f = rune.jit(lambda x: x * rnp.ones(2))
    for _ in range(4):  # the last of them natively
        f(1.0)
    dtypes = []
    for wide in (True, False, True, False):
        rune.enable_x64(wide)
        dtypes.append(str(f(1.0).dtype))
    with rune.enable_x64():
        dtypes.append(str(f(1.0).dtype))
    statement = rune.enable_x64()
    dtypes.append(str(f(1.0).dtype))

    assert dtypes == ["float64", "float32", "float64", "float32", "float64", "float64"]
    assert statement is not None


def test_keys_are_watched_for_the_process():
    rune.configure(check_keys=True)
    key = rune.random.key(3)
    rune.random.normal(key)

    with pytest.raises(rune.errors.KeyReuseError):
        rune.random.normal(key)

    rune.configure(check_keys=False)
    rune.random.normal(key)
    rune.configure(check_keys=True)
    rune.random.normal(key)


# --- names and values -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"chek_nans": True}, "configure: cannot set chek_nans (settings: x64, "),
        ({"check_nans": 1}, "configure: cannot use check_nans=1 (True or False)"),
        ({"x64": "yes"}, "configure: cannot use x64='yes' (True or False)"),
        ({"symbolic": "x"}, "configure: cannot use symbolic='x' ('declared' or 'auto')"),
        ({"promotion": []}, "configure: cannot use promotion=[] ('standard' or 'strict')"),
        ({"search": 0}, "configure: cannot use search=0 ('stored', 'off', 'full', or a positive number of seconds)"),
        ({"cache_dir": 3}, "configure: cannot use cache_dir=3 (a string or None)"),
        ({"device": "nix"}, "device: cannot find 'nix'"),
    ],
)
def test_names_and_values_are_checked_at_the_call(changes: dict[str, Any], message: str):
    with pytest.raises((rune.errors.ArgumentError, rune.errors.DeviceError)) as error:
        rune.configure(**changes)

    assert str(error.value).startswith(message)


def test_a_misspelt_setting_is_shown_the_right_one():
    with pytest.raises(rune.errors.ArgumentError, match=r"did you mean check_nans\?"):
        rune.configure(chek_nans=True)


def test_a_refused_call_changes_nothing():
    with pytest.raises(rune.errors.ArgumentError):
        rune.configure(x64=True, symbolic="x")

    assert not is_wide()


# --- the environment --------------------------------------------------------------------------


def test_every_setting_that_is_a_text_has_a_variable():
    words = {"bool": "on", "promotion": "strict", "rank_promotion": "warn", "wide_dtypes": "truncated"}
    words |= {"symbolic": "auto", "device": "cpu", "python_integers": "wrapped", "callback_errors": "quoted"}
    words |= {"compiled_bytes": "12345", "cpu_devices": "8", "search": "2.5", "array_namespace": "math"}
    words |= {"complex_to_real": "warned"}
    names = [n for n in Config.__slots__ if n not in ("cache_dir", "mesh")]
    kinds = {n: "bool" if isinstance(getattr(config.current(), n), bool) else n for n in names}

    settings = from_environment({f"RUNE_{n.upper()}": words[kinds[n]] for n in names})

    assert set(settings) == set(names)
    assert {v for n, v in settings.items() if kinds[n] == "bool"} == {True}
    assert (settings["compiled_bytes"], settings["search"]) == (12345, 2.5)


@pytest.mark.parametrize("text", ["long", "0", "-1", "nan", "inf", "1e999"])
def test_a_search_of_the_environment_is_a_word_or_seconds(text: str):
    with pytest.raises(rune.errors.ArgumentError, match=f"RUNE_SEARCH='{text}'"):
        from_environment({"RUNE_SEARCH": text})


@pytest.mark.parametrize("word", ["maybe", "2", "tru", " 1", "nan"])
def test_a_word_that_is_neither_true_nor_false_is_refused_by_name(word: str):
    with pytest.raises(rune.errors.ArgumentError, match=f"RUNE_X64='{word}'"):
        from_environment({"RUNE_X64": word})


def test_a_process_begins_with_its_environment():
    code = (
        "import rune, rune.numpy as rnp, threading\n"
        "show = lambda: print(rnp.ones(2).dtype, rune.config.current().promotion)\n"
        "show()\nthread = threading.Thread(target=show)\nthread.start()\nthread.join()\n"
        "rune.enable_x64(False)\nshow()\n"
    )

    assert _run(code, RUNE_X64="1", RUNE_PROMOTION="strict").splitlines() == [
        "float64 strict",
        "float64 strict",
        "float32 strict",
    ]


def test_junk_in_the_environment_is_named():
    assert "cannot use RUNE_CHECK_NANS='perhaps'" in _run("import rune", RUNE_CHECK_NANS="perhaps")
    code = "import rune.numpy as rnp; rnp.ones(2)"
    assert "hint: RUNE_DEVICE names it" in _run(code, RUNE_DEVICE="nix")


def _run(code: str, **variables: str) -> str:
    """The output of a process, including errors."""
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return process.stdout
