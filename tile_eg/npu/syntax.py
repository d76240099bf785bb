"""Type-checks the texts of a kernel against CANN's own headers with the machine's compiler, without CANN's.

The headers are an installed CANN's, or a checkout of the public ones (`asc-devkit`). What CANN's compiler knows by itself stands
in `templates/compiler_words.h`. Found are unknown names, wrong numbers and types of arguments, missing members; not what needs
the compiler itself: its intrinsics' arguments, capacities, and code generation. The high-level API, SIMT and the printing of
tensors are left out: kernels here do not use them, and they need what CANN generates or its compiler alone reads.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from tile_eg.errors import TileError
from tile_eg.npu.build import KERNEL, cores_of
from tile_eg.npu.cann import Cann
from tile_eg.npu.entry import Kernel, entry_text, kernels_of
from tile_eg.ops.records import record
from tile_eg.simulator.build import require_compiler

WORDS = Path(__file__).parent / "templates" / "compiler_words.h"
PARTS = ("include", "impl", "include/basic_api", "impl/basic_api", "", "include/utils", "include/adv_api", "impl/utils")
"""Folders of a checkout of the public headers, and of CANN's `asc`, in which their includes are found."""
ARCHITECTURE = {"dav-2201": ("-D__NPU_ARCH__=2201", "-D__CCE_AICORE__=220", "-D__DAV_C220__"),
                "dav-3510": ("-D__NPU_ARCH__=3510", "-D__CCE_AICORE__=310", "-D__DAV_C310__")}  # fmt: skip
_PRINTING = ("*simt*.h", "asc_time.h", "asc_aicore_dump*.h")
LEFT_OUT = ("adv_api/**/*.h", "simt_api/**/*.h", *(f"utils/debug/{name}" for name in _PRINTING))
"""Headers that are not read, in the folders of the others: a text that called what they declare would be told so."""
LEFT, ALONE = "left_out.h", "headers.cpp"
LAUNCH = "namespace { inline void tile_eg_launch(uint32_t, size_t, aclrtStream) {} }\n"
_TRIPLE = re.compile(r"(::\w+)<<<(.*?)>>>\(")
_GUARD = re.compile(r"^#ifndef (\w+)\s*\n#define \1\s*$", re.M)
_FOUND = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: (?P<kind>error|warning|fatal error): (?P<text>.*)$", re.M)


@record
class Checked:
    """One text; `wrong` are the mistakes in it, and `why_not` says why it was not checked."""

    what: str
    wrong: Sequence[str] = ()
    why_not: str = ""

    @property
    def line(self) -> str:
        if self.why_not:
            return f"{self.what}: not checked: {self.why_not}"
        return f"{self.what}: " + ("good" if not self.wrong else "BAD" + "".join(f"\n  {w}" for w in self.wrong[:8]))


def check(texts: Mapping[str, str], name: str, architecture: str, headers: Sequence[Path]) -> Iterator[Checked]:
    """The kernel for each of its cores, the host part in both of its ways, the example, and the PyTorch extension.

    `texts` are those of a directory (`npu.directory`). TileError where `headers` holds no Ascend C.
    """
    kernel_includes, acl = kernel_folders(headers), acl_folder(headers)
    with TemporaryDirectory() as directory:
        work = Path(directory)
        for file, text in texts.items():
            (work / file).write_text(text, encoding="utf-8")
        wanted = kernels_of(texts[f"{name}.asc"])
        yield from _kernels(work, texts[f"{name}.asc"], wanted, architecture, kernel_includes)
        yield from _host(work, texts, name, wanted, acl)
        yield _torch(work, texts, name, acl)


def kernel_folders(headers: Sequence[Path]) -> list[Path]:
    """Where `kernel_operator.h` and what it includes are found below one of the folders. TileError where it is in none."""
    for root in (root for folder in headers for root in (folder, folder / "asc")):
        if (root / "include" / "kernel_operator.h").is_file():
            return [root / part for part in PARTS if (root / part).is_dir()]
    for folder in headers:
        if any((f / "kernel_operator.h").is_file() for f in Cann(folder).kernel_includes):
            return Cann(folder).kernel_includes
    help = "name an installed CANN, or a checkout of its public headers (the repository asc-devkit)"
    listed = ", ".join(f"'{folder}'" for folder in headers)
    raise TileError(f"no Ascend C headers in {listed}: there is no kernel_operator.h", help=help)


def acl_folder(headers: Sequence[Path]) -> Path | None:
    """The folder of `acl/acl.h`: one of these, CANN's, or that of torch_npu, which carries it; None where none is."""
    package = _package("torch_npu")
    own = [f for folder in headers for f in (folder, Cann(folder).include)]
    folders = [*own, *([package / "include"] if package else [])]
    return next((f for f in folders if (f / "acl" / "acl.h").is_file()), None)


def _package(name: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    found = find_spec(name)
    return Path(next(iter(found.submodule_search_locations))) if found and found.submodule_search_locations else None


def _kernels(work: Path, text: str, wanted: Sequence[Kernel], architecture: str, folders: Sequence[Path]) -> Iterator[Checked]:
    (work / KERNEL).write_text(text, encoding="utf-8")
    (work / LEFT).write_text("".join(f"#define {guard}\n" for guard in _guards(folders)), encoding="utf-8")
    (work / ALONE).write_text('#include "kernel_operator.h"\n', encoding="utf-8")
    for core in cores_of(wanted):
        (work / f"{core}.cpp").write_text(entry_text(KERNEL, wanted, core, architecture), encoding="utf-8")
        ratio = ["-D__MIX_CORE_AIC_RATION__=1"] if any(k.type == "MIX_AIC_1_1" for k in wanted) else []
        own = [*ARCHITECTURE[architecture], "-D__DAV_CUBE__" if core == "cube" else "-D__DAV_VEC__", *ratio, "-DTILING_KEY_VAR=0"]
        flags = ["-fpermissive", *own, "-include", LEFT, "-include", str(WORDS)]
        wrong = compiled(work, f"{core}.cpp", flags, folders)
        if wrong and (unread := compiled(work, ALONE, flags, folders)):
            help = "name the headers of CANN 8.3 or newer, or a newer checkout of the public ones"
            raise TileError(f"the machine's compiler cannot read these headers of Ascend C by themselves: {unread[0]}", help=help)
        yield Checked(f"kernel, for {core} cores", wrong)


def _guards(folders: Sequence[Path]) -> list[str]:
    """What the headers that are left out define where they are read: defined beforehand, they are not."""
    files = {file for folder in folders for pattern in LEFT_OUT for file in folder.glob(pattern)}
    found = (_GUARD.search(file.read_text(encoding="utf-8", errors="replace")) for file in files)
    return sorted({guard[1] for guard in found if guard})


def _host(work: Path, texts: Mapping[str, str], name: str, wanted: Sequence[Kernel], acl: Path | None) -> Iterator[Checked]:
    whats = ("host part, for .asc files", "host part, for the macros of 8.3", "example")
    if acl is None:
        yield from (Checked(what, why_not="there is no acl/acl.h: neither CANN nor torch_npu is installed") for what in whats)
        return
    declared = "".join(f"extern \"C\" void {k.name}({', '.join(_host_type(p) for p in k.parameters)});\n" for k in wanted)
    asc = _TRIPLE.sub(r"tile_eg_launch(\2), \1(", texts[f"{name}_host.h"])
    start = f'#include "acl/acl.h"\n{LAUNCH}{declared}#define TILE_EG_ASC\n'
    (work / "asc.cpp").write_text(f'{start}{asc}\n#include "{name}.h"\n', encoding="utf-8")
    for k in wanted:
        parameters = ", ".join(["uint32_t", "aclrtStream", *("void*" if "int32_t" not in p else "int32_t" for p in k.parameters)])
        made = f'#define ACLRT_LAUNCH_KERNEL(k) aclrtlaunch_##k\nextern "C" uint32_t aclrtlaunch_{k.name}({parameters});\n'
        (work / f"aclrtlaunch_{k.name}.h").write_text(made, encoding="utf-8")
    for what, file in zip(whats, ("asc.cpp", f"{name}_launch.cpp", "main.cpp"), strict=True):
        yield Checked(what, compiled(work, file, (), [acl]))


def _host_type(parameter: str) -> str:
    return "int32_t" if parameter.startswith("int32_t") else "uint8_t*"


def _torch(work: Path, texts: Mapping[str, str], name: str, acl: Path | None) -> Checked:
    what, torch, npu = "PyTorch extension", _package("torch"), _package("torch_npu")
    if f"{name}_torch.cpp" not in texts:
        return Checked(what, why_not="there is none: torch lacks an element type, or no shape tells a size")
    if torch is None or npu is None:
        return Checked(what, why_not="torch or torch_npu is not installed")
    folders = [torch / "include", torch / "include/torch/csrc/api/include", npu / "include", *([acl] if acl else [])]
    return Checked(what, compiled(work, f"{name}_torch.cpp", (), folders, "-std=c++20"))


def compiled(work: Path, file: str, flags: Sequence[str], folders: Sequence[Path], standard: str = "-std=c++17") -> list[str]:
    """What the compiler finds wrong in the texts of a folder, and where it stops in one of the headers."""
    system = [part for folder in folders for part in ("-isystem", str(folder))]
    command = [require_compiler(), standard, "-fsyntax-only", "-fdiagnostics-color=never", *flags, "-I.", *system, file]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace", check=False)
    own = [m for m in _FOUND.finditer(done.stderr) if not Path(m["file"]).is_absolute()]
    wrong = [f"{m['file']}:{m['line']}: {m['text']}" for m in own if m["kind"] != "warning" or "[-fpermissive]" in m["text"]]
    if done.returncode and not wrong:
        wrong = [m.group(0) for m in _FOUND.finditer(done.stderr) if m["kind"] != "warning"] or done.stderr.splitlines()[:4]
    return wrong
