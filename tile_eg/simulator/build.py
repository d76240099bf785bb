"""Compiles a kernel against the simulator's headers, once for each content; the result is kept in a cache directory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tile_eg.errors import TileError
from tile_eg.simulator.findings import SimulatorError

INCLUDE = Path(__file__).parent / "include"
FOUND = ("c++", "g++", "clang++")
CACHE_VARIABLE = "TILE_EG_CACHE"
RUNTIME_FLAGS = ("-std=c++17", "-O2", "-ffp-contract=off")
LINK_FLAGS = ("-rdynamic", "-pthread", *(("-ldl",) if sys.platform.startswith("linux") else ()))
KERNEL_FLAGS = ("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fvisibility=hidden")
PROGRAM_FLAGS = ("-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fdiagnostics-color=never")
if sys.platform == "darwin":
    PROGRAM_FLAGS += ("-undefined", "dynamic_lookup")
    KERNEL_FLAGS += ("-undefined", "dynamic_lookup")


class CompileError(SimulatorError):
    """A text that does not compile; `output` is all that the compiler said."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


def find_compiler() -> str | None:
    """The path of a C++ compiler: `CXX` of the environment, c++, g++ or clang++; None when there is none."""
    candidates = (os.environ.get("CXX", ""), *FOUND)
    return next((found for name in candidates if name and (found := shutil.which(name))), None)


def cache_directory() -> Path:
    """Where compiled kernels are kept: `TILE_EG_CACHE`, or the user's cache directory of the platform."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tile_eg"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "tile_eg" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))) / "tile_eg"


def compile_library(texts: Mapping[str, str], flags: Sequence[str], key: Sequence[str] = ()) -> tuple[Path, Path]:
    """The simulator's executable, and the library made of the file `launch.cpp` of `texts`, which maps names to texts.

    `key` names what else the library depends on. Raises TileError without a compiler, CompileError for a text with mistakes.
    """
    compiler = require_compiler()
    runtime = _runtime(compiler)
    parts = (part for item in sorted(texts.items()) for part in item)
    library = cache_directory() / f"kernel-{_digest(_runtime_key(compiler), *flags, *key, *parts)}"
    if not _used_now(library):
        with tempfile.TemporaryDirectory(dir=library.parent, prefix="build-") as directory:
            work = Path(directory)
            for name, text in texts.items():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                (work / name).write_text(text, encoding="utf-8")
            command = [compiler, *PROGRAM_FLAGS, f"-I{_headers(compiler)}", *flags, "launch.cpp", "-o", "kernel"]
            _run(command, work)
            os.replace(work / "kernel", library)
        _forget_oldest(library.parent)
    return runtime, library


def runtime() -> Path:
    """The simulator's executable, compiled unless the cache has it. TileError without a compiler."""
    return _runtime(require_compiler())


def build(source: str, kernel: str, architecture: int = 2201) -> tuple[Path, Path]:
    """The simulator's executable, and the library with `kernel` of the text `source`, compiled unless the cache has them.

    Raises TileError without a compiler or when the text has no such kernel, SimulatorError when it does not compile.
    """
    compiler = require_compiler()
    parameters = parameters_of(source, kernel)
    runtime = _runtime(compiler)
    flags = KERNEL_FLAGS if architecture == 2201 else (*KERNEL_FLAGS, f"-D__NPU_ARCH__={architecture}")
    key = _digest(_runtime_key(compiler), " ".join(flags), kernel, source)
    library = cache_directory() / f"kernel-{key}"
    if not _used_now(library):
        _compile_kernel(compiler, flags, source, kernel, len(parameters), library)
        _forget_oldest(library.parent)
    return runtime, library


def _used_now(file: Path) -> bool:
    """Marks a file of the cache as used; False when it is not there."""
    try:
        os.utime(file)
    except OSError:
        return False
    return True


def _forget_oldest(directory: Path, keep: int = 400, rest: float = 600) -> None:
    """Bounds the cache: the kernels and the simulators that ran last, or within `rest` seconds, stay."""
    for pattern, most in (("kernel-*", keep), ("simulator-*", 8), ("headers-*", 8)):
        aged = sorted(((_age(file), file) for file in directory.glob(pattern)), key=lambda pair: pair[0])
        for age, file in aged[most:]:
            if age <= rest:
                continue
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    """Seconds since a file was used; 0 for one that another process has just removed."""
    try:
        return time.time() - file.stat().st_mtime
    except FileNotFoundError:
        return 0


def require_compiler() -> str:
    """The compiler, or the error that says what to install and what works without it."""
    if compiler := find_compiler():
        return compiler
    raise TileError(
        "the simulator needs a C++ compiler, and there is none",
        help="install g++ or clang++ (Debian: apt install g++; macOS: xcode-select --install), or name one in CXX; "
        "checking, emitting and explaining kernels work without it",
    )


def _no_compiler(compiler: str, output: str) -> TileError:
    said = _first_errors(output, 1).strip()
    help = f"it is named in CXX: another one may do, or none ({' '.join(FOUND)} are looked for)" if os.environ.get("CXX") else ""
    return TileError(f"'{compiler}' cannot compile the simulator, which is C++17" + (f": {said}" if said else ""), help=help)


def parameters_of(source: str, kernel: str) -> list[str]:
    """The names of the kernel's parameters, in order. Every one has to be a GM address."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(([^)]*)\)\s*\{{", source)
    if not found:
        raise TileError(f"the Ascend C text has no kernel called {kernel!r}")
    parameters = [p.strip() for p in found.group(1).split(",") if p.strip()]
    for parameter in parameters:
        if not re.match(r"(GM_ADDR|__gm__\s+\w+\s*\*)", parameter):
            raise TileError(f"the simulator passes GM addresses only, and {kernel!r} takes {parameter!r}")
    return [re.findall(r"\w+", parameter)[-1] for parameter in parameters]


def _launcher(kernel: str, arguments: int) -> str:
    """The file that includes the kernel's text, unchanged, and lets the simulator call it."""
    passed = ", ".join(f"arguments[{i}]" for i in range(arguments))
    visible = '__attribute__((visibility("default")))'
    return f'#include "kernel.asc"\nextern "C" {visible} void tile_sim_launch(uint8_t** arguments) {{ {kernel}({passed}); }}\n'


def _compile_kernel(compiler: str, flags: Sequence[str], source: str, kernel: str, arguments: int, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as directory:
        work = Path(directory)
        (work / "kernel.asc").write_text(source)
        (work / "launch.cpp").write_text(_launcher(kernel, arguments))
        _run([compiler, *flags, f"-I{_headers(compiler)}", "launch.cpp", "-o", "kernel"], work)
        os.replace(work / "kernel", target)


def _runtime(compiler: str) -> Path:
    """The executable that loads and runs kernels; other processes see it whole or not at all."""
    target = cache_directory() / f"simulator-{_runtime_key(compiler)}"
    if _used_now(target):
        return target
    headers = _headers(compiler)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as directory:
        work = Path(directory)
        files = sorted((headers / "runtime").glob("*.cpp"))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            try:
                list(pool.map(lambda file: _run([compiler, *RUNTIME_FLAGS, "-c", str(file)], work), files))
                _run([compiler, *(file.name for file in work.glob("*.o")), *LINK_FLAGS, "-o", "simulator"], work)
            except CompileError as error:
                raise _no_compiler(compiler, error.output) from None
        os.replace(work / "simulator", target)
    return target


def _headers(compiler: str) -> Path:
    """The headers and the runtime as they were when this process read them: a kernel is never compiled against other headers
    than the executable that loads it, whatever is installed in the meantime."""
    target = cache_directory() / f"headers-{_runtime_key(compiler)}"
    if _used_now(target):
        return target
    _make(target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as directory:
        work = Path(directory) / "headers"
        for name, text in _texts().items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
        with contextlib.suppress(OSError):  # another process was faster
            os.rename(work, target)
    return target


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        help = f"name a directory that can be written in {CACHE_VARIABLE}"
        raise TileError(f"compiled kernels cannot be kept in {directory}: {error.strerror}", help=help) from None


@cache
def _runtime_key(compiler: str) -> str:
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return _digest(version, " ".join(RUNTIME_FLAGS), *(part for item in _texts().items() for part in item))


@cache
def _texts() -> dict[str, str]:
    """All headers and sources of the simulator: path in `INCLUDE` -> text."""
    files = [file for file in sorted(INCLUDE.rglob("*")) if file.suffix in (".h", ".cpp")]
    return {file.relative_to(INCLUDE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    if done.returncode:
        raise CompileError(f"the Ascend C text does not compile:\n{_first_errors(done.stderr)}", done.stderr)


def _first_errors(output: str, most: int = 12) -> str:
    lines = output.splitlines()
    errors = [line for line in lines if "error" in line] or lines
    return "\n".join(errors[:most])
