"""What tells one tile_eg from another: its version, its files, and the packages that it computes with."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tile_eg.ops.records import record
from tile_eg.version import __version__

PACKAGES = ("egglog", "ortools", "numpy", "ml_dtypes", "lark")
SUFFIXES = (".py", ".egg", ".toml", ".lark", ".h", ".cpp")


@record
class State:
    """The version, a digest of the texts of all files, and the releases of packages. Two that are equal give equal texts."""

    version: str
    files: str
    packages: tuple[tuple[str, str], ...]

    def unlike(self, other: State) -> str:
        """In what the other one differs; empty where it does not."""
        if self.version != other.version:
            return f"tile_eg {other.version}, here it is {self.version}"
        if self.files != other.files:
            return f"tile_eg {other.version} with other files than here ({other.files[:8]}, here {self.files[:8]})"
        own, others = dict(self.packages), dict(other.packages)
        return ", ".join(f"{n} {others.get(n) or 'missing'}, here it is {v}" for n, v in own.items() if others.get(n) != v)


@cache
def state() -> State:
    """That of this process, as its files are when it is first asked for."""
    house, digest = Path(__file__).parent, hashlib.sha256()
    for file in sorted(f for f in house.rglob("*") if f.suffix in SUFFIXES):
        digest.update(f"{file.relative_to(house).as_posix()}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return State(__version__, digest.hexdigest(), tuple((name, _release(name)) for name in PACKAGES))


def _release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
