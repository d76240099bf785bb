"""A kernel's text compiled by CANN to an object that ACL loads, once for each content; the result is kept in the user's cache.

The commands are those by which CANN's own kernel macros compile for one kind of core at a time (`asc-devkit`,
cmake/asc/legacy_modules: bisheng_intf.cmake, util/merge_obj.sh). 8.3 and all newer ones take them; an `.asc` file, from 8.5 on,
gives a program or a library with a launch of its own, and no object for `aclrtBinaryLoadFromData`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tile_eg.disk_cache import DiskCache, user_cache, why_no_room
from tile_eg.errors import TileError
from tile_eg.npu.cann import Cann, machine
from tile_eg.npu.entry import CUBE, VECTOR, Kernel, entry_text, kernels_of
from tile_eg.simulator.build import find_compiler

SECONDS = 600.0
"""How long one run of CANN's compiler may take; kernels take seconds."""
OBJECT, LAUNCHER = "kernel.o", "launcher.so"
"""The files of the cache's entries."""
MOST, MOST_LAUNCHERS = 2000, 4
"""Objects that stay in the cache, and launchers, of which each version of CANN or of tile_eg needs another."""
KERNEL = "kernel.asc"
ARCHITECTURES = {"dav-2201": "dav-c220", "dav-3510": "dav-c310"}
"""What the compiler calls the cores of an architecture, before "-cube" or "-vec"."""
FLAGS = (
    "-O2", "-std=c++17", "--cce-aicore-only", "--cce-auto-sync=off", "--cce-disable-kernel-global-attr-check",
    "-mllvm", "-cce-aicore-stack-size=0x8000", "-mllvm", "-cce-aicore-function-stack-size=0x8000",
    "-mllvm", "-cce-aicore-record-overflow=false", "-mllvm", "-cce-aicore-addr-transform",
    "-mllvm", "-cce-aicore-dcci-insert-for-scalar=false", "-DTILING_KEY_VAR=0", "-DASCENDC_DUMP=0",
)  # fmt: skip
OWN_FLAGS = {"dav-3510": ("-D__DAV_C310__", "-mllvm", "-cce-aicore-jump-expand=true")}
_ORIGIN = re.compile(r"//\s*(\S+:\d+)\s")
_SAID = re.compile(rf"(?:^|/){re.escape(KERNEL)}:(\d+)(?::\d+)?:\s*(?:fatal )?error:\s*(.*)")


def device_object(source: str, architecture: str, cann: Cann) -> Path:
    """The object of all kernels of the text, compiled unless the cache has it.

    TileError that names the step where CANN lacks a tool, its compiler fails, hangs or leaves half an object, or room is lacking.
    """
    wanted = kernels_of(source)
    bisheng, linker = cann.require("bisheng"), cann.require("ld.lld")
    parts = [f"{tool.resolve()} {tool.stat().st_size} {tool.stat().st_mtime_ns}" for tool in (bisheng, linker)]
    entries = [entry_text(KERNEL, wanted, core, architecture) for core in cores_of(wanted)]
    run_with = [word for _, command in commands(wanted, architecture, cann, OBJECT) for word in command]
    name = f"npu-{_digest(*run_with, *parts, *entries, source)}"
    cache = user_cache()
    if found := cache.find(name):
        return found / OBJECT
    return _made(cache, name, lambda folder: _compile(source, wanted, architecture, cann, folder / OBJECT), MOST) / OBJECT


def _made(cache: DiskCache, name: str, make: Callable[[Path], None], most: int) -> Path:
    """The folder of an entry that is made; of those of its kind so many stay that were used last."""
    made = cache.entry(name, make)
    cache.forget_oldest(f"{name.partition('-')[0]}-*", most)
    return made


def cores_of(wanted: Sequence[Kernel]) -> list[str]:
    """The kinds of core that the kernels run on."""
    return [core for core in (CUBE, VECTOR) if any(core in k.cores for k in wanted)]


def commands(wanted: Sequence[Kernel], architecture: str, cann: Cann, out: str) -> Iterator[tuple[str, list[str]]]:
    """The compiler's commands in the folder of the texts, each with what it is called in messages; the last one links `out`."""
    includes = [f"-I{folder}" for folder in cann.kernel_includes]
    ratio = ["-D__MIX_CORE_AIC_RATION__=1"] if any(k.type == "MIX_AIC_1_1" for k in wanted) else []
    own, objects = OWN_FLAGS.get(architecture, ()), []
    for core in cores_of(wanted):
        arch = f"--cce-aicore-arch={ARCHITECTURES[architecture]}-{core}"
        objects.append(f"{core}.o")
        compiler = [str(cann.require("bisheng")), "-c", *FLAGS, arch, *own, *ratio, *includes]
        yield f"compile for the {_CORES[core]} cores", [*compiler, "-x", "cce", f"{core}.cpp", "-o", f"{core}.o"]
    linker = [str(cann.require("ld.lld")), "-x", "-m", "aicorelinux", "-Ttext=0"]
    yield "link the object", [*linker, *objects, "-static", "-o", out]


_CORES = {CUBE: "cube", VECTOR: "vector"}


def _compile(source: str, wanted: Sequence[Kernel], architecture: str, cann: Cann, out: Path) -> None:
    with TemporaryDirectory(dir=out.parent.parent) as directory:
        work = Path(directory)
        (work / KERNEL).write_text(source, encoding="utf-8")
        for core in cores_of(wanted):
            (work / f"{core}.cpp").write_text(entry_text(KERNEL, wanted, core, architecture), encoding="utf-8")
        for step, command in commands(wanted, architecture, cann, str(out)):
            run(step, command, work, source)
            check_whole(step, work / command[-1])


def run(step: str, command: Sequence[str], folder: Path, source: str = "") -> None:
    """One command of CANN's. TileError that names the step where it cannot be started, fails, or does not end."""
    with _started(step, command, folder) as process:
        try:
            said = process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            _end(process)
            help = f"the same by hand: {shlex.join(command)}"
            raise TileError(f"{step}: {Path(command[0]).name} did not end within {SECONDS:g} seconds", help=help) from None
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise failed(step, command, process.returncode, said, source)


def _started(step: str, command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", process_group=0, env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
        )  # fmt: skip
    except OSError as error:
        help = "is it the CANN for this machine's processor? `tile-eg doctor` starts it, too"
        raise TileError(f"{step}: {command[0]} does not start: {error.strerror}", help=help) from None


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def failed(step: str, command: Sequence[str], code: int, said: str, source: str) -> TileError | OSError:
    """What a command that failed ended for: each error with its statement of the text, and the author's line that it is from."""
    for number, words in _NO_ROOM.items():
        if words in said:
            return OSError(number, words)
    tool = Path(command[0]).name
    if code < 0:
        return TileError(f"{step}: {tool} was ended by {signal.Signals(-code).name}", help="has the machine memory enough?")
    lines, notes = source.splitlines(), []
    for found in re.finditer(_SAID.pattern, said, re.M):
        at = int(found[1])
        statement = lines[at - 1].strip() if 0 < at <= len(lines) else ""
        notes.append((f"line {at}{_origin(lines, at)}: {found[2].strip()}\n      {statement}", None))
    rest = "" if notes else ":\n" + "\n".join(_first(said))
    help = "is it the CANN that `tile-eg doctor` shows? `tile-eg emit` writes the text, `tile-eg build` a directory to try it in"
    what = " refuses the kernel's text" if source else " fails"
    return TileError(f"{step}: {tool}{what}{rest}", help=help if source else "", notes=tuple(notes[:5]))


def _origin(lines: Sequence[str], at: int) -> str:
    """The author's line that a statement of the text comes from, which stands behind it."""
    for text in lines[at - 1 : at + 3]:
        if found := _ORIGIN.search(text + " "):
            return f" (from {found[1]})"
        if text.partition("//")[0].rstrip().endswith((";", "{", "}")):
            break
    return ""


def _first(said: str, most: int = 8) -> list[str]:
    lines = said.strip().splitlines() or ["it said nothing"]
    return ([line for line in lines if "error" in line.lower()] or lines)[:most]


_NO_ROOM = {28: "No space left on device", 122: "Disk quota exceeded", 27: "File too large"}


def check_whole(step: str, file: Path) -> None:
    """TileError where a file is no whole ELF object: all that its header announces is there."""
    try:
        data = file.read_bytes()
    except OSError as error:
        why = why_no_room(error) or "it is not there"
        raise TileError(f"{step}: the compiler ended well and left no {file.name}: {why}") from None
    end = 0
    if data[:4] == b"\x7fELF" and len(data) >= 64:
        sections, size, count = int.from_bytes(data[40:48], "little"), data[58] + 256 * data[59], data[60] + 256 * data[61]
        end = sections + size * count
    if not end or len(data) < end:
        what = f"holds {len(data)} of {end} bytes" if end else "is no object"
        help = "is the disk full, or the compiler's own folder?"
        raise TileError(f"{step}: the compiler ended well, and {file.name} {what}", help=help)


def launcher(cann: Cann) -> Path:
    """The shared object through which kernels are loaded and launched, compiled against this CANN unless the cache has it.

    TileError where neither g++ nor bisheng is there, or ACL's headers or library are not.
    """
    header, text = cann.include / "acl" / "acl_rt.h", (Path(__file__).parent / "launcher.cpp").read_text(encoding="utf-8")
    if not header.is_file():
        message = f"CANN at {cann.home} has no {header.name}, which the launch is written against"
        raise TileError(message, help="install its toolkit package")
    declared = header.read_text(encoding="utf-8", errors="replace")
    new = "aclrtLaunchKernelWithHostArgs" in declared and "aclrtGetHardwareSyncAddr" in declared
    compiler = find_compiler() or str(cann.require("bisheng"))
    flags = launcher_flags(cann, new)
    name = f"npulauncher-{_digest(machine(), compiler, *flags, hashlib.sha256(declared.encode()).hexdigest(), text)}"
    cache = user_cache()
    if found := cache.find(name):
        return found / LAUNCHER

    def make(folder: Path) -> None:
        (folder / "launcher.cpp").write_text(text, encoding="utf-8")
        out = folder / LAUNCHER
        run("compile the launcher", [compiler, *flags[0], "launcher.cpp", *flags[1], "-o", str(out)], folder)
        check_whole("compile the launcher", out)

    return _made(cache, name, make, MOST_LAUNCHERS) / LAUNCHER


def launcher_flags(cann: Cann, new: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options before the source and behind it. Where ACL is older than its launch functions, the runtime's own are taken.

    Newer releases of CANN may part `libascendcl` into several, which it names: it has to stay, even if it holds nothing.
    """
    own = () if new else ("-DTILE_EG_RT",)
    libraries = ("-lascendcl",) if new else ("-lascendcl", "-lruntime")
    return ("-std=c++17", "-O2", "-shared", "-fPIC", *own, f"-I{cann.include}"), (
        f"-L{cann.library}", f"-Wl,-rpath,{cann.library}", "-Wl,--no-as-needed", *libraries)  # fmt: skip


def _digest(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:24]
