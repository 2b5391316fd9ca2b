"""Files in the cache may be executed, so a file that another user could have written is a miss."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rune.backends.shared import disk_cache
from rune.backends.shared.disk_cache import DiskCache
from rune.backends.shared.private_folder import Folder, Unsafe
from rune.errors import CacheWarning

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="root alone makes files of other users")
OTHER = 54321  # a user that is in no table
KEY, VALUE = b"key", b"value"


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not warned yet."""
    monkeypatch.setattr(disk_cache, "_warned_subjects", set())


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    disk = DiskCache(tmp_path / "way" / "rune")
    disk.store(KEY, VALUE)
    return disk


def entry(cache: DiskCache) -> Path:
    return cache.folder / disk_cache._name(KEY)


# --- files ------------------------------------------------------------------------------------


def a_pipe(path: Path, content: bytes) -> None:
    os.mkfifo(path)


def a_link(path: Path, content: bytes) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_bytes(content)
    elsewhere.chmod(0o600)
    path.symlink_to(elsewhere)


def a_directory(path: Path, content: bytes) -> None:
    path.mkdir()


def a_sparse_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.truncate(path, 1 << 40)


def a_sparse_file_of_zeros(path: Path, content: bytes) -> None:
    path.touch()
    os.truncate(path, 1 << 27)


def a_file_open_to_others(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o666)


def a_device(path: Path, content: bytes) -> None:
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero


def a_file_of_another_user(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)
    os.chown(path, OTHER, OTHER)


@pytest.mark.parametrize(
    "put",
    [
        a_pipe,
        a_link,
        a_directory,
        a_sparse_file,
        a_sparse_file_of_zeros,
        a_file_open_to_others,
        pytest.param(a_device, marks=as_root),
        pytest.param(a_file_of_another_user, marks=as_root),
    ],
)
def test_an_entry_that_others_could_write_is_a_miss(cache: DiskCache, put: Callable[[Path, bytes], None]):
    path = entry(cache)
    content = path.read_bytes()
    path.unlink()
    put(path, content)

    assert cache.load(KEY) is None
    if put is not a_directory:
        assert not os.path.lexists(path)
        cache.store(KEY, VALUE)
        assert cache.load(KEY) == VALUE


def test_a_failed_write_leaves_no_file(tmp_path: Path):
    with Folder(tmp_path / "own", make=True) as folder:
        (tmp_path / "own" / "name").mkdir()
        with pytest.raises(OSError, match="directory"):
            folder.write("name", b"data")

    assert [p.name for p in (tmp_path / "own").iterdir()] == ["name"]


def test_a_missing_folder_is_an_error_unless_it_may_be_created(tmp_path: Path):
    for path in (tmp_path / "none", tmp_path / "none" / "rune"):
        with pytest.raises(FileNotFoundError, match="none"):
            Folder(path)

    assert [*tmp_path.iterdir()] == []


# --- directories ------------------------------------------------------------------------------


def test_a_directory_on_the_way_that_others_may_change_is_refused_at_each_load(cache: DiskCache):
    way = cache.folder.parent.parent
    way.chmod(0o2777)

    with pytest.warns(CacheWarning, match=r"is in .*/way, which other users may change"):
        assert cache.load(KEY) is None
    way.chmod(0o700)
    assert cache.load(KEY) == VALUE


def test_a_directory_on_the_way_with_the_sticky_bit_is_safe(cache: DiskCache):
    cache.folder.parent.parent.chmod(0o1777)

    assert cache.load(KEY) == VALUE


@as_root
def test_a_directory_on_the_way_of_another_group_is_refused(cache: DiskCache):
    way = cache.folder.parent.parent
    way.chmod(0o770)
    assert cache.load(KEY) == VALUE

    os.chown(way, 0, OTHER)
    with pytest.warns(CacheWarning, match="another group may change"):
        assert cache.load(KEY) is None


def test_a_folder_that_becomes_open_is_refused_at_the_next_load(cache: DiskCache):
    cache.folder.chmod(0o777)

    with pytest.warns(CacheWarning, match="open to other users"):
        assert cache.load(KEY) is None


def test_a_link_that_takes_the_place_of_a_directory_is_refused(cache: DiskCache):
    way = cache.folder.parent
    way.rename(way.with_name("moved"))
    way.symlink_to(way.with_name("moved"))

    with pytest.warns(CacheWarning, match="Not a directory"):
        assert cache.load(KEY) is None


@as_root
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_directory_of_another_user_that_takes_its_place_is_refused(cache: DiskCache, depth: int):
    folder = [cache.folder, *cache.folder.parents][depth]
    os.chown(folder, OTHER, OTHER)

    with pytest.warns(CacheWarning, match="belongs to another user"):
        assert cache.load(KEY) is None


def test_a_directory_that_is_created_is_readable_by_its_user_only(tmp_path: Path):
    before = os.umask(0)
    try:
        Folder(tmp_path / "one" / "two", make=True).__exit__()
    finally:
        os.umask(before)

    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "one" / "two").stat().st_mode & 0o777 == 0o700


def test_no_file_descriptor_is_leaked(cache: DiskCache):
    before = set(os.listdir("/dev/fd"))
    for _ in range(3):
        cache.load(KEY)
        cache.store(KEY, VALUE)
    cache.folder.chmod(0o777)
    for _ in range(3):
        with pytest.raises(Unsafe):
            Folder(cache.folder)

    assert set(os.listdir("/dev/fd")) == before


# --- settings that name no cache --------------------------------------------------------------

PROGRAM = """
import pwd, sys, warnings
from rune.errors import CacheWarning

def nobody(_): raise KeyError
pwd.getpwuid = pwd.getpwnam = nobody
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import rune, rune.numpy as rnp
    for number in range(3):
        assert float(rune.jit(lambda x: rnp.sum(x) * number)(rnp.ones(3))) == 3.0 * number
    report = str(rune.doctor())
    assert float(rune.jit(lambda x: rnp.sum(x) - 1)(rnp.ones(3))) == 2.0
print(*[str(w.message) for w in told if w.category is CacheWarning], sep="\\n")
print(report.splitlines()[-1])
"""


def run(**environment: str) -> list[str]:
    """The warnings of a process with this environment alone, then the doctor's last line."""
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env={"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment},
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({}, "home directory"),
        ({"RUNE_CACHE_DIR": "~nosuchuser/x"}, "home directory"),
        ({"RUNE_CACHE_DIR": "/proc/rune"}, "cannot be made"),
    ],
)
def test_without_a_usable_directory_programs_run_and_warn_once(environment, why):
    warning, report = run(**environment)

    assert warning.startswith("rune: compiled kernels are not kept (")
    assert why in warning
    assert "not used: " in report
    assert why in report


@pytest.mark.parametrize("text", ["", "1e9", " 5000 "])
def test_a_limit_in_bytes_is_accepted(tmp_path, monkeypatch, text):
    monkeypatch.setenv("RUNE_CACHE_BYTES", text)
    monkeypatch.setenv("RUNE_CACHE_DIR", str(tmp_path))
    limits = {"": disk_cache.LIMIT_BYTES, "1e9": 10**9, " 5000 ": 5000}

    cache = disk_cache.current()
    assert cache is not None
    assert cache.limit_bytes == limits[text]


@pytest.mark.parametrize("text", ["many", "-1", "nan", "inf", "1e400", "1.5", "0x10"])
def test_a_limit_that_is_not_a_number_of_bytes_warns_once_and_the_default_holds(tmp_path, monkeypatch, text):
    monkeypatch.setenv("RUNE_CACHE_BYTES", text)
    monkeypatch.setenv("RUNE_CACHE_DIR", str(tmp_path))

    with pytest.warns(CacheWarning, match="RUNE_CACHE_BYTES=.* is not a number of bytes"):
        disk_cache.store(KEY, VALUE)
    assert disk_cache.load(KEY) == VALUE  # a second warning would be an error here
    assert disk_cache._limit_bytes() == disk_cache.LIMIT_BYTES


# --- interrupts -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_an_interrupt_while_a_folder_is_opened_closes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    descriptors: list[int] = []
    close = os.close

    def interrupted(descriptor: int) -> None:
        descriptors.append(descriptor)
        close(descriptor)  # an error if it was closed before
        if len(descriptors) == number + 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    path = tmp_path / "a" / "b" / "c"
    try:
        with Folder(path, make=True):
            pass
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()

    assert len(set(descriptors)) == len(descriptors) > number
