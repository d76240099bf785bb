"""A folder of things that took long to make, by name: files that several processes use and make at once.

An entry is a folder of files, there whole or not at all. It carries a checksum, and what does not fit its own (cut off, damaged,
emptied) is made again. One process makes an entry while the others that want it wait. What a killed process left is removed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from tile_eg.errors import TileError

try:
    import fcntl as _fcntl
except ImportError:  # no locks between processes: two of them may make the same entry, and the later one stays
    _locks: ModuleType | None = None
else:
    _locks = _fcntl

CACHE_VARIABLE, OFF_VARIABLE = "TILE_EG_CACHE", "TILE_EG_NO_CACHE"
"""Variables of the environment: the folder of all that is kept; and whether nothing but what compilers made of texts is."""
DATA = "data"
"""The file of an entry that is bytes."""
_SUM = "checksum"
_BUILD = "build-"
_DAY = 86400
_NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the limit on the size of a file (ulimit -f) is too low",
}


def cache_directory() -> Path:
    """Where everything is kept: `TILE_EG_CACHE`, or the user's cache directory of the platform."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tile_eg"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "tile_eg" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "tile_eg"


def user_cache() -> DiskCache:
    return DiskCache(cache_directory(), CACHE_VARIABLE)


def on() -> bool:
    """Whether anything but the simulator's libraries is kept: not where `TILE_EG_NO_CACHE` is set."""
    return os.environ.get(OFF_VARIABLE, "") in ("", "0")


def recall(name: str) -> bytes | None:
    """What `remember` kept by this name; None where it is missing, damaged, cannot be read, or nothing is to be kept."""
    if not on():
        return None
    try:
        return user_cache().read(name)
    except (OSError, RuntimeError):  # the latter: this user has no home
        return None


def remember(name: str, data: bytes, most: int) -> None:
    """Keeps these bytes where that can be done: one who can make them again misses nothing on a full disk, or a read-only one.

    Of the entries whose names begin as this one does, up to its "-", the `most` that were used last stay.
    """
    if not on():
        return
    with suppress(OSError, RuntimeError, TileError):
        cache = user_cache()
        cache.write(name, data)
        cache.forget_oldest(f"{name.partition('-')[0]}-*", most)


def forget(name: str) -> None:
    """Removes an entry, where that can be done."""
    with suppress(OSError, RuntimeError):
        _remove(user_cache().folder / name)


def why_no_room(error: OSError) -> str:
    """In a user's words, what limit a write met; empty where it was none."""
    return _NO_ROOM.get(error.errno or 0, "")


def no_room(error: OSError, folder: Path, variable: str = "") -> TileError | None:
    """The user's error for what could not be written in `folder` for want of room; None for any other reason.

    `variable` of the environment names another folder.
    """
    why = why_no_room(error)
    other = f", or name another folder in {variable}" if variable else ""
    return TileError(f"what was made cannot be kept in {folder}: {why}", help=f"make room{other}") if why else None


class DiskCache:
    """Entries below `folder`, which is made when the first one is. `variable` of the environment names it, for messages."""

    def __init__(self, folder: Path, variable: str = "") -> None:
        self.folder, self.variable = folder, variable

    def find(self, name: str) -> Path | None:
        """The folder of an entry, marked as used now; None where it is missing or damaged."""
        path = self.folder / name
        if not _is_whole(path):
            return None
        with suppress(OSError):  # a cache that can only be read
            os.utime(path)
        return path

    def read(self, name: str) -> bytes | None:
        """The bytes of an entry that `write` has made; None where it is missing or damaged."""
        found = self.find(name)
        return (found / DATA).read_bytes() if found else None

    def write(self, name: str, data: bytes) -> None:
        """Keeps these bytes, unless an entry of that name is there."""
        self.entry(name, lambda folder: (folder / DATA).write_bytes(data))

    def entry(self, name: str, make: Callable[[Path], object]) -> Path:
        """The folder of an entry; where it is missing or damaged, `make` writes its files into the folder that it is given.

        TileError where there is no room, or the cache's folder cannot be written.
        """
        if found := self.find(name):
            return found
        self.check_writable()
        with self._room(), self._building(name) as work:
            if not _is_whole(self.folder / name):  # else another process has just made it
                made = work / name
                made.mkdir()
                make(made)
                (made / _SUM).write_bytes(_sum(made))
                _put(made, self.folder / name)
        self._clear_leftovers()
        return self.folder / name

    def forget_oldest(self, pattern: str, most: int, rest: float = 600) -> None:
        """Removes all but the `most` entries that were used last, or within `rest` seconds."""
        entries = list(self.folder.glob(pattern))
        if len(entries) <= most:
            return
        aged = sorted(((_age(path), path) for path in entries), key=lambda pair: pair[0])
        for age, path in aged[most:]:
            if age > rest:
                _remove(path)

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise no_room(error, self.folder, self.variable) or error from None

    def check_writable(self) -> None:
        """TileError where nothing can be kept in the folder, which is made where it is not there."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            help = f"name a directory that can be written in {self.variable}" if self.variable else ""
            full = no_room(error, self.folder, self.variable)
            raise full or TileError(f"what was made cannot be kept in {self.folder}: {error.strerror}", help=help) from None

    @contextmanager
    def _building(self, name: str) -> Iterator[Path]:
        """A folder of this process alone to make an entry in; it is gone afterwards."""
        work = self.folder / f"{_BUILD}{name}"
        lock = _lock(work)
        if lock is None:
            work = Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{_BUILD}unlocked-"))
        try:
            for left in work.iterdir():  # by a killed process
                _remove(left)
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
            if lock is not None:
                os.close(lock)

    def _clear_leftovers(self) -> None:
        """Removes the folders of processes that were killed while they made an entry."""
        for work in self.folder.glob(f"{_BUILD}*"):
            lock = _lock(work, wait=False)
            if lock is not None or (work.name.startswith(f"{_BUILD}unlocked-") and _age(work) > _DAY):
                shutil.rmtree(work, ignore_errors=True)
            if lock is not None:
                os.close(lock)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """While it lasts, no other process is inside for this folder; where it cannot be locked, others may be."""
    lock = _lock(folder)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder: Path, wait: bool = True) -> int | None:
    """The folder, made if need be and locked, as a descriptor to close; None where it cannot be locked, or another has it."""
    if _locks is None:
        return None
    while True:
        with suppress(OSError):
            if wait:
                folder.mkdir(exist_ok=True)
        try:
            held = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            if wait:
                continue
            return None
        try:
            _locks.flock(held, _locks.LOCK_EX | (0 if wait else _locks.LOCK_NB))
            if os.path.samestat(os.fstat(held), os.stat(folder)):
                return held
            os.close(held)
        except FileNotFoundError:  # the one who had it has removed it
            os.close(held)
            if not wait:
                return None
        except OSError:
            os.close(held)
            return None
        except BaseException:
            os.close(held)
            raise


_checked: dict[Path, object] = {}
"""The entries that this process has read and found whole, with the sizes and times of their files."""


def _is_whole(entry: Path) -> bool:
    """Whether an entry is there and fits its checksum."""
    try:
        at = [(f.stat().st_ino, f.stat().st_size, f.stat().st_mtime_ns) for f in _files(entry)]
        if not at or (_checked.get(entry) != at and (entry / _SUM).read_bytes() != _sum(entry)):
            return False
    except OSError:
        return False
    _checked[entry] = at
    return True


def _files(entry: Path) -> list[Path]:
    return sorted(f for f in entry.rglob("*") if f.is_file() and f.name != _SUM)


def _sum(entry: Path) -> bytes:
    """A checksum of names and bytes of all files."""
    digest = hashlib.blake2b()
    for file in _files(entry):
        digest.update(file.relative_to(entry).as_posix().encode() + b"\0" + hashlib.blake2b(file.read_bytes()).digest())
    return digest.digest()


def _put(made: Path, target: Path) -> None:
    """Moves an entry to its place. Where no locks are, another process may have been faster: its entry stays."""
    if _is_whole(target):
        return
    _remove(target)
    try:
        os.rename(made, target)
    except OSError:
        if not _is_whole(target):
            raise


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _age(path: Path) -> float:
    """Seconds since an entry was used; 0 for one that another process has just removed."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0
