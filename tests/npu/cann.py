"""A folder that looks like CANN: the stand-in's compiler, linker, headers and ACL."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tile_eg.npu.cann import machine
from tile_eg.simulator.build import require_compiler

STANDIN = Path(__file__).parent / "standin"
ROOT = Path(__file__).parents[2]


def installed(home: Path, version: str = "8.5.0") -> Path:
    """The folder, filled."""
    for folder in ("bin", "include/acl", "lib64", "asc/include", f"{machine()}-linux"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    for tool in ("bisheng", "ld.lld"):
        script = f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "{STANDIN / "tools.py"}" "$@"\n'
        (home / "bin" / tool).write_text(script)
        (home / "bin" / tool).chmod(0o755)
    for header in (STANDIN / "acl").iterdir():
        (home / "include" / "acl" / header.name).write_text(header.read_text())
    (home / f"{machine()}-linux" / "ascend_toolkit_install.info").write_text(f"package_name=standin\nversion={version}\n")
    (home / "asc" / "include" / "kernel_operator.h").write_text("// The stand-in's compiler takes the simulator's headers.\n")
    library = home / "lib64" / "libascendcl.so"
    command = [require_compiler(), "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", f"-I{STANDIN}"]
    subprocess.run([*command, str(STANDIN / "ascendcl.cpp"), "-o", str(library)], check=True)
    return home


class StandIn:
    """The stand-in's ACL as tests steer it."""

    def __init__(self, home: Path) -> None:
        self.home, self.library = home, ctypes.CDLL(str(home / "lib64" / "libascendcl.so"))
        self.library.standin_calls.restype = ctypes.c_long
        self.library.standin_memory.restype = ctypes.c_uint64
        self.library.standin_memory.argtypes = [ctypes.c_uint64]

    def fail(self, function: str, code: int) -> None:
        """The next call of a function of ACL gives this code."""
        self.library.standin_fail(function.encode(), code)

    def calls(self, function: str) -> int:
        return int(self.library.standin_calls(function.encode()))

    def loads(self, done: Callable[[], object]) -> int:
        """How many objects something loads."""
        before = self.calls("aclrtBinaryLoadFromData")
        done()
        return self.calls("aclrtBinaryLoadFromData") - before

    def soc(self, name: str) -> None:
        self.library.standin_soc(name.encode())

    def null(self, on: bool) -> None:
        """Launches do nothing."""
        self.library.standin_null(int(on))

    def memory(self, bytes: int) -> int:
        """How much of the device is free from now on, and how much it was."""
        return int(self.library.standin_memory(bytes))
