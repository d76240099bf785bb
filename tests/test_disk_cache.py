"""What is kept on disk is whole or made again, whatever happened to the process or to the disk."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tile_eg import disk_cache
from tile_eg.disk_cache import DiskCache
from tile_eg.errors import TileError

DATA = b"what took long to make"


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", "SOME_CACHE")


def names(cache: DiskCache) -> list[str]:
    return sorted(p.name for p in cache.folder.iterdir())


def test_what_is_written_is_read(cache: DiskCache) -> None:
    assert cache.read("one") is None
    cache.write("one", DATA)
    assert cache.read("one") == DATA and names(cache) == ["one"]


def test_an_entry_is_made_once(cache: DiskCache) -> None:
    cache.write("one", DATA)
    cache.entry("one", lambda _: pytest.fail("made again"))


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[3] ^= 1
    file.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut off": lambda f: os.truncate(f, 5),
    "emptied": lambda f: os.truncate(f, 0),
    "one bit": flipped,
    "removed": lambda f: f.unlink(),
    "longer": lambda f: f.write_bytes(f.read_bytes() + b"x"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", ["data", "checksum"])
def test_a_damaged_entry_is_made_again(cache: DiskCache, damage: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write("one", DATA)
    monkeypatch.setattr(disk_cache, "_checked", {})  # as another process sees it
    DAMAGE[damage](cache.folder / "one" / file)
    assert cache.read("one") is None
    cache.write("one", DATA)
    assert cache.read("one") == DATA


def test_damage_is_seen_by_the_process_that_made_the_entry(cache: DiskCache) -> None:
    cache.write("one", DATA)
    os.truncate(cache.folder / "one" / "data", 5)
    assert cache.read("one") is None


def test_an_entry_that_cannot_be_made_leaves_nothing(cache: DiskCache) -> None:
    with pytest.raises(ZeroDivisionError):
        cache.entry("one", lambda _: 1 // 0)
    assert names(cache) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from tile_eg.disk_cache import DiskCache
def make(folder):
    (folder / "half").write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
DiskCache(Path(sys.argv[1])).entry(sys.argv[2], make)
"""


@pytest.mark.slow
def test_what_a_killed_process_left_is_removed_and_its_entry_made_by_the_next(cache: DiskCache) -> None:
    cache.folder.mkdir()
    for name in ("one", "two"):
        assert subprocess.run([sys.executable, "-c", KILLED, str(cache.folder), name], check=False).returncode == -signal.SIGKILL
    assert names(cache) == ["build-one", "build-two"]
    cache.write("one", DATA)
    assert cache.read("one") == DATA and names(cache) == ["one"]


MAKER = """
import os, sys, time
from pathlib import Path
from tile_eg.disk_cache import DiskCache
folder = Path(sys.argv[1])
def make(entry):
    (folder / f"made-by-{os.getpid()}").touch()
    time.sleep(0.3)
    (entry / "data").write_bytes(b"x" * 100000)
made = DiskCache(folder / "cache").entry("one", make)
assert len((made / "data").read_bytes()) == 100000
"""


@pytest.mark.slow
@pytest.mark.skipif(disk_cache._locks is None, reason="this system has no locks between processes")
def test_eight_processes_at_once_make_an_entry_once(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path)]) for _ in range(8)]
    assert [p.wait() for p in processes] == [0] * 8
    assert len(list(tmp_path.glob("made-by-*"))) == 1 and names(DiskCache(tmp_path / "cache")) == ["one"]


@pytest.mark.parametrize(
    ("number", "why"), [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "quota"), (errno.EFBIG, "ulimit -f")]
)
def test_no_room_is_said_with_a_way_out(cache: DiskCache, number: int, why: str) -> None:
    def make(_: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(TileError, match=why) as error:
        cache.entry("one", make)
    assert "SOME_CACHE" in error.value.help and names(cache) == []


LIMITED = """
import resource, sys
from pathlib import Path
from tile_eg.disk_cache import DiskCache
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    DiskCache(Path(sys.argv[1])).write("one", b"x" * 100000)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_limit_on_file_sizes_is_named(cache: DiskCache) -> None:
    said = subprocess.run([sys.executable, "-c", LIMITED, str(cache.folder)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("TileError") and "ulimit -f" in said and names(cache) == []


def test_a_cache_that_can_only_be_read_serves_what_it_has(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    cache.write("one", DATA)
    monkeypatch.setattr(os, "utime", read_only)
    monkeypatch.setattr(Path, "mkdir", read_only)
    assert cache.read("one") == DATA
    with pytest.raises(TileError, match="Read-only file system") as error:
        cache.write("two", DATA)
    assert "a directory that can be written in SOME_CACHE" in error.value.help


def test_what_was_used_last_stays(cache: DiskCache) -> None:
    for i in range(5):
        cache.write(f"entry-{i}", DATA)
        os.utime(cache.folder / f"entry-{i}", (i, i))
    cache.read("entry-0")
    cache.forget_oldest("entry-*", 2)
    assert names(cache) == ["entry-0", "entry-4"]


def test_what_was_used_a_moment_ago_stays_too(cache: DiskCache) -> None:
    for i in range(3):
        cache.write(f"entry-{i}", DATA)
    cache.forget_oldest("entry-*", 1)
    assert len(names(cache)) == 3


@pytest.mark.parametrize("locks", [False, True])
def test_without_locks_an_entry_is_made_all_the_same(cache: DiskCache, locks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not locks:
        monkeypatch.setattr(disk_cache, "_locks", None)
    cache.write("one", DATA)
    assert cache.read("one") == DATA and names(cache) == ["one"]
