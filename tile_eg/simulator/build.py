"""Compiles a kernel against the simulator's headers, once for each content; the result is kept in a cache directory."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import takewhile
from pathlib import Path

from tile_eg.disk_cache import CACHE_VARIABLE, DiskCache, cache_directory
from tile_eg.errors import TileError
from tile_eg.simulator.findings import SimulatorError

INCLUDE = Path(__file__).parent / "include"
FOUND = ("c++", "g++", "clang++")
LIBRARY, OBJECT, RUNTIME, PRECOMPILED = "kernel.so", "host.o", "simulator", "precompiled.h"
"""The files of the cache's entries."""
HEADER = "kernel_operator.h"
HOST_HEADER = "ascend_c/devkit_host.h"
_BEGINS_WITH_HEADER = re.compile(rf'(?:\s|//.*\n|/\*[\s\S]*?\*/)*#include "{re.escape(HEADER)}"')
"""A text in which nothing but comments comes before the header, which then means the same wherever it was parsed."""
UNIT = "program.asc"
"""The name under which a file's text is compiled; messages speak of the file itself."""
_INCLUDES = re.compile(r'^[ \t]*#[ \t]*include\b[ \t]*["<]?([^">\n]*).*', re.M)
ONE_ROUNDING_EACH = "-ffp-contract=off"
"""Else compilers may make one instruction of a product and a sum, which rounds once, where the machine has one."""
RUNTIME_FLAGS = ("-std=c++17", "-O3", ONE_ROUNDING_EACH, "-fno-trapping-math", "-fno-math-errno")
"""Of these none changes a number: loops over elements become vector instructions."""
OWN_MACHINE = ("-march=native", "-mcpu=native")
"""How a compiler is told to use all instructions of the machine that it runs on."""
LINK_FLAGS = ("-rdynamic", "-pthread", *(("-ldl",) if sys.platform.startswith("linux") else ()))
KERNEL_FLAGS: tuple[str, ...] = ("-std=c++17", "-O0", ONE_ROUNDING_EACH, "-w", "-shared", "-fPIC", "-fvisibility=hidden")
"""A kernel's text is not optimised: a run's time is in the runtime's instructions, and optimising a third of its compilation."""
if sys.platform.startswith("linux"):
    KERNEL_FLAGS += ("-nodefaultlibs",)
    """The executable that loads a kernel has these libraries: to link them again is a fifth of the work."""
PROGRAM_FLAGS = ("-std=c++20", "-O1", ONE_ROUNDING_EACH, "-w", "-shared", "-fPIC", "-fdiagnostics-color=never")
SAME_EVERY_TIME = ("-ftrivial-auto-var-init=zero",)
"""Variables that a text never sets are 0, as far as the compiler knows how, instead of what a run before left there."""
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


def compile_library(texts: Mapping[str, str], flags: Sequence[str], key: Sequence[str] = ()) -> tuple[Path, Path]:
    """The simulator's executable, and the library made of the file `launch.cpp` of `texts`, which maps names to texts.

    `key` names what else the library depends on. Raises TileError without a compiler, CompileError for a text with mistakes.
    """
    compiler = require_compiler()
    runtime = _runtime(compiler)
    parts = (part for item in sorted(texts.items()) for part in item)
    name = f"kernel-{_digest(_headers_key(compiler), *PROGRAM_FLAGS, *SAME_EVERY_TIME, *flags, *key, *parts)}"
    command = [compiler, *PROGRAM_FLAGS, *_taken(compiler, SAME_EVERY_TIME)]
    return runtime, _library(name, lambda folder: _compile(command, flags, texts, folder))


def preprocessed(text: str, beside: Mapping[str, str], defines: Mapping[str, str]) -> str:
    """What the preprocessor leaves of a text with these macros, its own, and those of the files `beside` it that it includes
    (name -> text). What else is included is left out."""

    def own(found: re.Match[str]) -> str:
        return found[0] if any(f"/{name}".endswith(f"/{found[1]}") for name in beside) else ""

    texts = {name: _INCLUDES.sub(own, t) for name, t in {**beside, UNIT: text}.items()}
    folders = dict.fromkeys(f"-I./{Path(name).parent}" for name in texts)
    macros = (f"-D{name}={value}" for name, value in defines.items())
    command = [require_compiler(), "-E", "-P", "-w", "-x", "c++", *folders, *macros, UNIT]
    with tempfile.TemporaryDirectory() as directory:
        _write_texts(texts, Path(directory))
        return subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False).stdout


def compile_objects(sources: Mapping[str, Mapping[str, str]], flags: Sequence[str]) -> list[Path]:
    """An object of each of `sources`: path of the source -> the texts that it is made of, itself among them."""
    compiler = require_compiler()
    command = [compiler, *PROGRAM_FLAGS, "-c", f"-I{_headers(compiler)}", *flags, "-include", HOST_HEADER]

    def compiled(path: str, texts: Mapping[str, str], folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as directory:
            _write_texts(texts, Path(directory))
            _run([*command, path, "-o", str(folder / OBJECT)], Path(directory))

    made = []
    for path, texts in sources.items():
        parts = (part for item in sorted(texts.items()) for part in item)
        name = f"kernel-{_digest(_headers_key(compiler), *flags, path, *parts)}"
        made.append(_cache().entry(name, partial(compiled, path, texts)) / OBJECT)
    return made


def runtime() -> Path:
    """The simulator's executable, compiled unless the cache has it. TileError without a compiler."""
    return _runtime(require_compiler())


def build(source: str, kernel: str, architecture: int = 2201) -> tuple[Path, Path]:
    """The simulator's executable, and the library with `kernel` of the text `source`, compiled unless the cache has them.

    Raises TileError without a compiler or when the text has no such kernel, SimulatorError when it does not compile.
    """
    compiler = require_compiler()
    parameters_of(source, kernel)
    runtime = _runtime(compiler)
    flags = KERNEL_FLAGS if architecture == 2201 else (*KERNEL_FLAGS, f"-D__NPU_ARCH__={architecture}")
    name = f"kernel-{_digest(_headers_key(compiler), ' '.join(flags), kernel, source)}"
    texts = {"kernel.asc": source, "launch.cpp": _launcher(kernel, source)}
    command = [compiler, *flags]
    return runtime, _library(name, lambda folder: _compile([*command, *_parsed(compiler, flags, source)], (), texts, folder))


def _cache() -> DiskCache:
    return DiskCache(cache_directory(), CACHE_VARIABLE)


def _library(name: str, make: Callable[[Path], None]) -> Path:
    """A kernel's library from the cache, made where it is not there; the cache keeps the kernels that ran last."""
    cache = _cache()
    if found := cache.find(name):
        return found / LIBRARY
    made = cache.entry(name, make)
    for pattern, most in (("kernel-*", 2000), ("simulator-*", 8), ("headers-*", 8), ("precompiled-*", 8)):
        cache.forget_oldest(pattern, most)
    return made / LIBRARY


def _compile(command: Sequence[str], flags: Sequence[str], texts: Mapping[str, str], folder: Path) -> None:
    """Makes the library of the texts in a folder; nothing else stays there. Our headers come before those that `flags` name."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as directory:
        work = Path(directory)
        _write_texts(texts, work)
        _run([*command, f"-I{_headers(command[0])}", *flags, "launch.cpp", "-o", str(folder / LIBRARY)], work)


def _write_texts(texts: Mapping[str, str], folder: Path) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


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
    """The names of the kernel's parameters, in order. They are GM addresses and, behind these, numbers (int32_t, float)."""
    parameters = _parameters(source, kernel)
    addresses = len(parameters) - numbers_of(parameters)
    for parameter in parameters[:addresses]:
        if not re.match(r"(GM_ADDR|__gm__\s+\w+\s*\*)", parameter):
            message = f"the simulator passes GM addresses, and int32_t and float behind them, and {kernel!r} takes {parameter!r}"
            raise TileError(message)
    return [re.findall(r"\w+", parameter)[-1] for parameter in parameters]


def _parameters(source: str, kernel: str) -> list[str]:
    """The kernel's parameters as they are written."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(([^)]*)\)\s*\{{", source)
    if not found:
        raise TileError(f"the Ascend C text has no kernel called {kernel!r}")
    return [p.strip() for p in found.group(1).split(",") if p.strip()]


def numbers_of(parameters: Sequence[str]) -> int:
    """How many of a kernel's parameters, the last ones, are numbers."""
    return len(list(takewhile(lambda p: re.match(r"(int32_t|float)\s+\w+$", p), reversed(parameters))))


def line_of(source: str, kernel: str) -> int:
    """The line of the text, from 1, where the kernel's name and parameters stand."""
    found = re.search(rf"\b{re.escape(kernel)}\s*\(", source)
    return source.count("\n", 0, found.start()) + 1 if found else 0


def _launcher(kernel: str, source: str) -> str:
    """The file that includes the kernel's text, unchanged, and lets the simulator call it. Numbers lie in GM as tensors do."""
    parameters = _parameters(source, kernel)
    addresses = len(parameters) - numbers_of(parameters)
    given = [f"arguments[{i}]" for i in range(len(parameters))]
    kinds = [p.split()[0] for p in parameters[addresses:]]
    numbers = (f"*reinterpret_cast<const {kind}*>({g})" for kind, g in zip(kinds, given[addresses:], strict=True))
    passed = ", ".join([*given[:addresses], *numbers])
    visible = '__attribute__((visibility("default")))'
    return f'#include "kernel.asc"\nextern "C" {visible} void tile_sim_launch(uint8_t** arguments) {{ {kernel}({passed}); }}\n'


def _runtime(compiler: str) -> Path:
    """The executable that loads and runs kernels."""
    made = _cache().entry(f"simulator-{_runtime_key(compiler)}", lambda folder: _compile_runtime(compiler, folder / RUNTIME))
    return made / RUNTIME


def _compile_runtime(compiler: str, target: Path) -> None:
    folder = _headers(compiler) / "runtime"
    with tempfile.TemporaryDirectory(dir=target.parent.parent) as directory, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        work = Path(directory)
        try:
            command = [compiler, *RUNTIME_FLAGS, *_own_machine(compiler)[0]]
            command += _precompile([*command, f"-I{folder}"], "machine.h", work)
            largest_first = sorted(folder.glob("*.cpp"), key=lambda file: (-file.stat().st_size, file))
            list(pool.map(lambda file: _run([*command, "-c", str(file)], work), largest_first))
            _run([compiler, *(file.name for file in work.glob("*.o")), *LINK_FLAGS, "-o", str(target)], work)
        except CompileError as error:
            raise _no_compiler(compiler, error.output) from None


def _parsed(compiler: str, flags: Sequence[str], source: str) -> list[str]:
    """Options that give a text the header with which it begins as it was parsed before, which is half of the work.

    None for a text that begins in another way, nor for a compiler that may refuse a precompiled header: GCC reads it anew.
    """
    if not _BEGINS_WITH_HEADER.match(source) or not _is_gcc(compiler):
        return []
    command = [compiler, *flags, f"-I{_headers(compiler)}"]
    name = f"precompiled-{_digest(_headers_key(compiler), *flags)}"
    return _included(_cache().entry(name, lambda folder: _precompile(command, HEADER, folder)))


def _precompile(command: list[str], header: str, folder: Path) -> list[str]:
    """Parses a header into a file of the folder, if the compiler is GCC; the options with which other texts begin with it."""
    if not _is_gcc(command[0]):
        return []
    (folder / PRECOMPILED).write_text(f'#include "{header}"\n')
    _run([*command, "-x", "c++-header", str(folder / PRECOMPILED), "-o", str(folder / f"{PRECOMPILED}.gch")], folder)
    return _included(folder)


def _included(folder: Path) -> list[str]:
    return ["-include", str(folder / PRECOMPILED)]


def _headers(compiler: str) -> Path:
    """The headers and the runtime as they were when this process read them: a kernel is never compiled against other headers
    than the executable that loads it, whatever is installed in the meantime."""
    return _cache().entry(f"headers-{_headers_key(compiler)}", lambda folder: _write_texts(_texts(), folder))


@cache
def _headers_key(compiler: str) -> str:
    return _digest(_runtime_key(compiler), *(part for item in _texts().items() for part in item))


@cache
def _runtime_key(compiler: str) -> str:
    parts = (part for item in _texts().items() if item[0].startswith("runtime/") for part in item)
    return _digest(_version(compiler), " ".join(RUNTIME_FLAGS), _own_machine(compiler)[1], *parts)


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


@cache
def _own_machine(compiler: str) -> tuple[tuple[str, ...], str]:
    """The option that means this machine, if the compiler takes one, and the macros that say what instructions it then uses.

    A cache that several machines share has an executable for each kind of them.
    """
    for option in OWN_MACHINE:
        if (said := _macros(compiler, option)) is not None:
            return (option,), said
    return (), ""


@cache
def _taken(compiler: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the options that the compiler knows."""
    return tuple(option for option in options if _macros(compiler, option) is not None)


def _macros(compiler: str, option: str) -> str | None:
    """The macros that the compiler defines with an option; None where it does not know that."""
    command = [compiler, option, "-dM", "-E", "-x", "c++", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


def _is_gcc(compiler: str) -> bool:
    return "Free Software Foundation" in _version(compiler)


@cache
def _texts() -> dict[str, str]:
    """All headers and sources of the simulator: path in `INCLUDE` -> text."""
    files = [file for file in sorted(INCLUDE.rglob("*")) if file.suffix in (".h", ".cpp")]
    return {file.relative_to(INCLUDE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _run(command: list[str], directory: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(directory)}
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, errors="replace", check=False, env=environment)
    if not done.returncode:
        return
    for said, number in _NO_ROOM.items():
        if said in done.stderr:
            raise OSError(number, said)
    raise CompileError(f"the Ascend C text does not compile:\n{_first_errors(done.stderr)}", done.stderr)


_NO_ROOM = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "File size limit exceeded": errno.EFBIG,
}
"""What the compiler and its parts say where there is no room for what they write."""


def _first_errors(output: str, most: int = 12) -> str:
    lines = output.splitlines()
    errors = [line for line in lines if "error" in line] or lines
    return "\n".join(errors[:most])
