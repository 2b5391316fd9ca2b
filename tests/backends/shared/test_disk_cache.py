"""The disk cache: an entry is found by its whole key and by no other, or is absent."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import configure
from rune.backends.cpu import compiler, llvm
from rune.backends.cpu.images import loader
from rune.backends.shared import disk_cache
from rune.backends.shared.disk_cache import DiskCache, key_of
from rune.errors import CacheWarning

ROOT = Path(__file__).parents[3]
PARTS = st.lists(st.one_of(st.text(max_size=8), st.binary(max_size=8)), max_size=4)
posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not warned yet."""
    monkeypatch.setattr(disk_cache, "_warned_subjects", set())


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "rune")


def entries(cache: DiskCache) -> list[Path]:
    return sorted(cache.folder.iterdir())


# --- keys and values --------------------------------------------------------------------------


@given(PARTS, PARTS)
def test_different_parts_make_different_keys(one, other):
    def plain(parts):
        return [p.encode() if isinstance(p, str) else p for p in parts]

    assert (key_of(*one) == key_of(*other)) == (plain(one) == plain(other))


@pytest.mark.parametrize("value", [b"", b"x", bytes(range(256)) * 100])
def test_a_stored_value_is_read_by_another_cache_object_too(cache, value):
    cache.store(b"key", value)

    assert cache.load(b"key") == value
    assert DiskCache(cache.folder.parent).load(b"key") == value


def test_another_key_is_a_miss(cache):
    cache.store(b"key", b"value")

    assert cache.load(b"another") is None


def test_a_key_of_the_same_hash_is_a_miss(cache):
    cache.store(b"key", b"value")
    (path,) = entries(cache)
    path.rename(cache.folder / disk_cache._name(b"another"))

    assert cache.load(b"another") is None


def test_the_last_value_of_a_key_counts(cache):
    cache.store(b"key", b"old")
    cache.store(b"key", b"new")

    assert cache.load(b"key") == b"new"
    assert len(entries(cache)) == 1


# --- faults -----------------------------------------------------------------------------------


@given(st.data())
def test_an_altered_or_short_entry_is_a_miss_and_removed(tmp_path_factory, data):
    cache = DiskCache(tmp_path_factory.mktemp("cache"))
    cache.store(b"key", b"some value")
    (path,) = entries(cache)
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    short = data.draw(st.booleans())
    path.write_bytes(content[:at] if short else content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])

    assert cache.load(b"key") is None
    assert entries(cache) == []


def test_no_temporary_file_is_left_behind(cache):
    cache.store(b"key", b"value")

    assert [p.suffix for p in entries(cache)] == [".bin"]


def test_a_failed_write_keeps_the_old_value_and_gives_the_reason(cache, monkeypatch):
    cache.store(b"key", b"old")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.warns(CacheWarning, match="cannot be written to .No space left on device"):
        cache.store(b"key", b"new")

    assert cache.load(b"key") == b"old"
    assert [p.suffix for p in entries(cache)] == [".bin"]
    assert "No space left" in cache.problem


def test_a_cache_on_a_read_only_file_system_is_read(cache, monkeypatch):
    cache.store(b"key", b"value")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("utime", "replace", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, refuse)
    assert cache.load(b"key") == b"value"


def test_concurrent_writers_and_readers_see_only_whole_values(cache):
    values = [bytes([k]) * 20_000 for k in range(4)]
    values_read: list[bytes | None] = []

    def work(value: bytes) -> None:
        for _ in range(20):
            cache.store(b"key", value)
            values_read.append(cache.load(b"key"))

    threads = [threading.Thread(target=work, args=(v,)) for v in values]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(values_read) <= set(values)


# --- size -------------------------------------------------------------------------------------


def test_beyond_the_limit_the_least_recently_used_entries_go(tmp_path):
    cache = DiskCache(tmp_path, limit_bytes=10_000)
    for number in range(8):
        cache.store(b"%d" % number, bytes(1000))
        os.utime(cache.folder / disk_cache._name(b"%d" % number), (number, number))
    cache.load(b"0")  # so it is used last
    cache.store(b"8", bytes(1000))
    cache.store(b"9", bytes(1000))

    numbers = [number for number in range(10) if cache.load(b"%d" % number) is not None]
    assert cache.entry_bytes() <= 8000
    assert numbers[0] == 0
    assert numbers[1:] == list(range(numbers[1], 10))


def test_a_value_beyond_the_limit_is_not_kept(tmp_path):
    cache = DiskCache(tmp_path, limit_bytes=1000)
    cache.store(b"key", bytes(2000))

    assert entries(cache) == []


def test_files_that_a_killed_process_left_are_removed_once_they_are_old(tmp_path):
    cache = DiskCache(tmp_path, limit_bytes=1000)
    old, new = cache.folder / "old.tmp", cache.folder / "new.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    long_ago = time.time() - 2 * disk_cache.ABANDONED_S
    os.utime(old, (long_ago, long_ago))
    for number in range(3):
        cache.store(b"%d" % number, bytes(400))

    assert not old.exists()
    assert new.exists()


def test_clearing_removes_every_entry(cache):
    cache.store(b"key", b"value")
    cache.clear()

    assert entries(cache) == []


# --- privacy ----------------------------------------------------------------------------------


@posix
def test_the_folder_is_accessible_to_its_user_only(cache):
    assert cache.folder.stat().st_mode & 0o777 == 0o700


@posix
def test_entries_are_readable_by_their_user_only(cache):
    cache.store(b"key", b"value")

    assert entries(cache)[0].stat().st_mode & 0o077 == 0


@posix
def test_a_folder_open_to_others_is_refused_with_a_warning(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o770)

    with pytest.warns(CacheWarning, match="kernels are not kept .* open to other users"):
        assert "chmod 700" in (DiskCache(tmp_path).problem or "")


@posix
def test_a_folder_of_another_user_is_refused_with_a_warning(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir(mode=0o700)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)

    with pytest.warns(CacheWarning, match="belongs to another user"):
        DiskCache(tmp_path)


@posix
def test_a_symbolic_link_is_refused_because_its_owner_chooses_its_target(tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "kernels").symlink_to(tmp_path / "elsewhere")

    with pytest.warns(CacheWarning, match="is not a directory"):
        DiskCache(tmp_path)


@posix
def test_a_link_in_the_name_of_the_directory_is_followed_once(tmp_path):
    first, second = (tmp_path / name for name in ("first", "second"))
    (tmp_path / "link").symlink_to(first)

    with configure(cache_dir=str(tmp_path / "link")):
        disk_cache.store(b"key", b"value")
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to(second)

        assert disk_cache.load(b"key") == b"value"


def test_a_relative_name_is_that_of_the_folder_one_is_in(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    with configure(cache_dir="cache"):
        disk_cache.store(b"key", b"value")
        monkeypatch.chdir(tmp_path / "elsewhere")

        assert disk_cache.load(b"key") is None


def test_a_folder_that_cannot_be_created_is_reported_and_keeps_nothing(tmp_path):
    (tmp_path / "file").write_text("")

    with configure(cache_dir=str(tmp_path / "file" / "rune")):
        with pytest.warns(CacheWarning, match="cannot be made"):
            assert disk_cache.current() is None
        assert "cannot be made" in (disk_cache.problem() or "")
        disk_cache.store(b"key", b"value")
        assert disk_cache.load(b"key") is None


# --- settings ---------------------------------------------------------------------------------


def test_the_environment_names_the_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNE_CACHE_DIR", str(tmp_path))
    disk_cache.store(b"key", b"value")

    assert disk_cache.load(b"key") == b"value"
    assert (tmp_path / "kernels").is_dir()


def test_the_setting_takes_precedence_over_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNE_CACHE_DIR", str(tmp_path / "environment"))

    with configure(cache_dir=str(tmp_path / "setting")):
        disk_cache.store(b"key", b"value")
    assert disk_cache.load(b"key") is None
    assert (tmp_path / "setting" / "kernels").is_dir()


def test_an_empty_name_switches_it_off(monkeypatch):
    monkeypatch.setenv("RUNE_CACHE_DIR", "")

    assert disk_cache.configured() is None
    assert disk_cache.current() is None
    with configure(cache_dir=""):
        assert disk_cache.current() is None


def test_without_any_setting_it_is_in_the_users_cache_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("RUNE_CACHE_DIR", raising=False)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))

    directory = disk_cache.configured()
    assert directory is not None
    assert directory.name == "rune"
    assert tmp_path in directory.parents


# --- through the executors --------------------------------------------------------------------

CALLS = """
import sys
import numpy as np
import rune, rune.numpy as rnp
from rune.backends import opencl
from rune.backends.shared import disk_cache

opencl.CACHING = frozenset()  # platforms that keep their own kernels are asked for them here
found, load = [], disk_cache.load
disk_cache.load = lambda key: found.append(load(key)) or found[-1]
f = rune.jit(lambda x, y: rnp.sin(x @ y) + rnp.sum(x), device=sys.argv[1])
print(np.asarray(f(np.ones((600, 600), np.float32), np.ones((600, 600), np.float32)))[0, 0])
print(sum(v is None for v in found), sum(v is not None for v in found))
"""
KEEPING = [d.name for d in rune.devices() if d.target.backend in ("cpu", "opencl")]


@pytest.mark.parametrize("device", KEEPING)
def test_the_next_process_compiles_nothing_and_computes_the_same(tmp_path, device):
    def run() -> list[str]:
        process = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CALLS, device],
            capture_output=True,
            text=True,
            env={**os.environ, "RUNE_CACHE_DIR": str(tmp_path)},
            cwd=ROOT,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout.split()

    (first, compiles, loads), (second, misses, loads_again) = run(), run()
    assert (second, misses) == (first, "0")
    # The CPU asks by the program first, and then not for the code of its plan.
    assert 0 < int(loads_again) <= int(compiles)
    assert loads == "0"


def test_native_code_binds_each_module_to_its_own_addresses():
    text = "define i64 @f() #0 {{\n  ret i64 ptrtoint (ptr inttoptr (i64 {} to ptr) to i64)\n}}"
    codes = [compiler.compile_module("f", text.format(n)) for n in (4096, 8192, 4096)]

    kind = ctypes.CFUNCTYPE(ctypes.c_int64)
    assert [kind(c.address("f"))() for c in codes] == [4096, 8192, 4096]


@pytest.mark.parametrize(
    ("room", "stage"),
    [(llvm._library(), "emit"), (llvm._library(), "_target_machine"), (loader, "load")],
    ids=["made", "begun", "linked"],
)
def test_a_finaliser_that_compiles_while_code_is_made_changes_no_address(room, stage, monkeypatch):
    text = "define i64 @f() #0 {{\n  ret i64 ptrtoint (ptr inttoptr (i64 {} to ptr) to i64)\n}}"
    real, addresses = getattr(room, stage), iter([8192])
    llvm._library()._optimiser.cache_clear()

    def interrupted(*args: object) -> object:
        for address in addresses:
            compiler.compile_module("inner", text.format(address))
        return real(*args)

    monkeypatch.setattr(room, stage, interrupted)
    with configure(cache_dir=""):
        code = compiler.compile_module("outer", text.format(4096))

    assert next(addresses, None) is None
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("f"))() == 4096


def test_modules_that_differ_only_in_addresses_share_an_entry(tmp_path, monkeypatch):
    text = "define i64 @g() #0 {{\n  ret i64 ptrtoint (ptr inttoptr (i64 {} to ptr) to i64)\n}}"
    with configure(cache_dir=str(tmp_path)):
        compiler.compile_module("g", text.format(4096))
        monkeypatch.setattr(llvm, "_object", None)  # nothing is compiled any more
        code = compiler.compile_module("g", text.format(8192))

    assert ctypes.CFUNCTYPE(ctypes.c_int64)(code.address("g"))() == 8192
