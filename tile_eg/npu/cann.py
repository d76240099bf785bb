"""CANN as it is installed on this machine: where it lies, which version it is, and the tools and headers in it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.ops.records import record

VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
"""Variables that CANN's own set_env.sh sets; the first one that is set decides, whatever else is installed."""
USUAL = (
    "/usr/local/Ascend/cann",
    "/usr/local/Ascend/ascend-toolkit/latest",
    "~/Ascend/cann",
    "~/Ascend/ascend-toolkit/latest",
)
OLDEST, ASC_SINCE = (8, 3), (8, 5)
"""The oldest version that is built for, and the one from which on an `.asc` file may hold `<<<>>>`."""
GET = "install CANN (hiascend.com), then: source /usr/local/Ascend/cann/set_env.sh; or name its folder in ASCEND_HOME_PATH"
_INSTALLED = r"(?mi)^version\s*=\s*v?(\d+)\.(\d+)"
_PACKAGE = r"(?mi)^version_dir\s*=\s*v?(\d+)\.(\d+)"
_VERSION_FILES = {
    "{machine}-linux/ascend_toolkit_install.info": _INSTALLED,
    "ascend_toolkit_install.info": _INSTALLED,
    "{machine}-linux/ascend_cann_install.info": _INSTALLED,
    "version.info": _PACKAGE,
    "compiler/version.info": _PACKAGE,
    "runtime/version.info": _PACKAGE,
    "version.cfg": r"(?mi)^\w*running_version\s*=\s*\[[^\]\n:]*:v?(\d+)\.(\d+)",
}
"""What says the version of CANN; packages of it have versions of their own (7.x for 8.y), which are none."""
_TOOLS = ("bin", "compiler/ccec_compiler/bin", "ccec_compiler/bin", "tools/bisheng_compiler/bin", "{machine}-linux/bin",
          "{machine}-linux/ccec_compiler/bin", "{machine}-linux/tools/bisheng_compiler/bin")  # fmt: skip
_KERNEL_ROOTS = ("{machine}-linux/asc", "asc", "{machine}-linux/tikcpp/tikcfw", "compiler/tikcpp/tikcfw", "tikcpp/tikcfw",
                 "compiler/asc")  # fmt: skip
_KERNEL_PARTS = ("", "include", "include/basic_api", "include/utils", "include/adv_api", "impl", "impl/basic_api", "impl/utils",
                 "impl/adv_api", "interface")  # fmt: skip


def machine() -> str:
    """The host's name in CANN's folders: "x86_64" or "aarch64"."""
    found = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)


@record
class Cann:
    """An installation below `home`."""

    home: Path

    @cached_property
    def version(self) -> tuple[int, int] | None:
        """Its version, (8, 5); None where nothing says it."""
        for name, pattern in _VERSION_FILES.items():
            if found := _version_in(self.home / name.format(machine=machine()), pattern):
                return found
        return _version_of(str(self.home.resolve()))

    @property
    def shown_version(self) -> str:
        return ".".join(map(str, self.version)) if self.version else "an unknown version"

    @property
    def has_asc(self) -> bool:
        """Whether its compiler takes `.asc` files with `<<<>>>`; so too where the version is not known."""
        return self.version is None or self.version >= ASC_SINCE

    def tool(self, name: str) -> Path | None:
        """The path of one of its programs, "bisheng" or "ld.lld"."""
        folders = (self.home / folder.format(machine=machine()) for folder in _TOOLS)
        return next((f / name for f in folders if os.access(f / name, os.X_OK) and (f / name).is_file()), None)

    def require(self, name: str) -> Path:
        """The path of one of its programs. TileError where it is not there."""
        if found := self.tool(name):
            return found
        raise TileError(f"CANN at {self.home} has no {name}", help="its toolkit package holds the compiler: install that, too")

    @property
    def include(self) -> Path:
        """The folder of `acl/acl.h`."""
        return self._first(("include", f"{machine()}-linux/include"), "acl/acl_rt.h")

    @property
    def library(self) -> Path:
        """The folder of `libascendcl.so`."""
        return self._first(("lib64", f"{machine()}-linux/lib64"), "libascendcl.so")

    def _first(self, folders: Sequence[str], file: str) -> Path:
        return next((self.home / f for f in folders if (self.home / f / file).exists()), self.home / folders[0])

    @property
    def kernel_includes(self) -> list[Path]:
        """The folders of `kernel_operator.h` and of what it includes."""
        roots = (self.home / r.format(machine=machine()) for r in _KERNEL_ROOTS)
        found = [root / part for root in roots if root.is_dir() for part in _KERNEL_PARTS if (root / part).is_dir()]
        return [*found, self.include]

    def check_version(self) -> None:
        """TileError for a version that is too old."""
        if self.version is not None and self.version < OLDEST:
            message = f"CANN at {self.home} is {self.shown_version}, and kernels are built from 8.3 on"
            raise TileError(message, help="install 8.3 or newer: older ones lack the launch API and headers that the text needs")


def candidates() -> Iterator[Path]:
    """Where CANN is looked for, in order."""
    for name in VARIABLES:
        if given := os.environ.get(name):
            yield Path(given)
            return
    yield from (Path(place).expanduser() for place in USUAL)


def installed() -> Cann | None:
    """The CANN of this machine, of whatever version; None where there is none."""
    return next((Cann(home) for home in candidates() if home.is_dir()), None)


def find_cann() -> Cann:
    """The CANN that builds and launches kernels. TileError where there is none, or it is too old."""
    found = installed()
    if found is None:
        named = next((n for n in VARIABLES if os.environ.get(n)), None)
        where = f"{named} is {os.environ[named]}, and that is no folder" if named else f"not in {', '.join(USUAL)}"
        raise TileError(f"there is no CANN on this machine: {where}", help=GET)
    found.check_version()
    return found


def _version_in(file: Path, pattern: str) -> tuple[int, int] | None:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    said = re.search(pattern, text)
    return (int(said[1]), int(said[2])) if said else None


def _version_of(path: str) -> tuple[int, int] | None:
    """The version in the name of a folder: cann-9.0.0, ascend-toolkit/8.3.RC1."""
    found = re.search(r"(?:cann-|ascend-toolkit/)(\d+)\.(\d+)[^/]*/?$", path)
    return (int(found[1]), int(found[2])) if found else None
