"""What of a machine kernels run on: found, in which version, or missing, and how to get it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tile_eg.disk_cache import user_cache
from tile_eg.errors import TileError
from tile_eg.npu.build import ARCHITECTURES
from tile_eg.npu.cann import GET, OLDEST, Cann, installed
from tile_eg.npu.device import architecture_of, chip_named
from tile_eg.ops.records import record
from tile_eg.simulator.build import find_compiler

DRIVER = "/usr/local/Ascend/driver/version.info"
DEVICES = "/dev/davinci[0-9]*"
GET_DRIVER = "install the Ascend driver and firmware packages (hiascend.com); `npu-smi info` then lists the devices"


@record
class Finding:
    """One thing that was looked for. `needed` says for what: "simulator", "npu" or "torch"."""

    what: str
    found: bool
    detail: str
    needed: str
    get: str = ""


def findings() -> list[Finding]:
    """Everything that is looked for, in the order in which one would install it."""
    cann = installed()
    return [_compiler(), *_cann(cann), _driver(), _chip(cann), *_torch(), _cache()]


def can_run(found: list[Finding], where: str) -> bool:
    """Whether kernels run in the "simulator", on an "npu", or there on torch's tensors ("torch")."""
    needed = {"simulator": ("simulator",), "npu": ("npu",), "torch": ("npu", "torch")}[where]
    return all(f.found for f in found if f.needed in needed)


def data(found: list[Finding]) -> dict[str, Any]:
    """Plain values for JSON."""
    return {"findings": [asdict(f) for f in found], "runs": {w: can_run(found, w) for w in ("simulator", "npu", "torch")}}


def text(found: list[Finding]) -> str:
    """A line for each, with how to get it where it is missing; then where kernels run."""
    width = max(len(f.what) for f in found)
    lines = []
    for f in found:
        lines.append(f"{'found  ' if f.found else 'missing'}  {f.what.ljust(width)}  {f.detail}".rstrip())
        if not f.found and f.get:
            lines.append(f"         {' ' * width}  get it: {f.get}")
    places = {"simulator": "in the simulator", "npu": "on an NPU", "torch": "on torch's NPU tensors"}
    runs = (f"  {name.ljust(24)}{'yes' if can_run(found, where) else _why(found, where)}" for where, name in places.items())
    return "\n".join([*lines, "", "kernels run", *runs])


def _why(found: list[Finding], where: str) -> str:
    needed = {"simulator": ("simulator",), "npu": ("npu",), "torch": ("npu", "torch")}[where]
    return "no: " + ", ".join(f.what for f in found if f.needed in needed and not f.found) + " missing"


def _compiler() -> Finding:
    found = find_compiler()
    get = "apt install g++, or xcode-select --install; CXX names another one"
    return Finding("C++ compiler", found is not None, f"{found}, {_says(found)}" if found else "", "simulator", get)


def _says(program: str | Path) -> str:
    """The first line of what a program says of its version."""
    try:
        command = [str(program), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"which does not start: {error}"
    return (done.stdout.strip() or done.stderr.strip() or "of no stated version").splitlines()[0]


def _cann(cann: Cann | None) -> Iterator[Finding]:
    if cann is None:
        given = os.environ.get("ASCEND_HOME_PATH")
        yield Finding("CANN", False, f"ASCEND_HOME_PATH={given} is no folder" if given else "", "npu", GET)
        return
    old = cann.version is not None and cann.version < OLDEST
    lacks = "" if cann.has_asc else "; without .asc files, which are there from 8.5 on: cmake -DCANN_8_3=ON builds directories"
    told = f"{cann.shown_version} at {cann.home}" + (", and 8.3 is the oldest that is built for" if old else lacks)
    yield Finding("CANN", not old, told, "npu", GET)
    for tool in ("bisheng", "ld.lld"):
        path = cann.tool(tool)
        says = f"{path}, {_says(path)}" if path and tool == "bisheng" else str(path or "")
        yield Finding(tool, path is not None, says, "npu", "it is in CANN's toolkit package")
    header = next((f / "kernel_operator.h" for f in cann.kernel_includes if (f / "kernel_operator.h").is_file()), None)
    yield Finding("Ascend C headers", header is not None, str(header or ""), "npu", "they are in CANN's toolkit package")
    for what, file in (("ACL headers", cann.include / "acl" / "acl_rt.h"), ("ACL", cann.library / "libascendcl.so")):
        yield Finding(what, file.exists(), str(file) if file.exists() else "", "npu", "it is in CANN's toolkit package")


def _driver() -> Finding:
    devices = sorted(str(p) for p in Path("/dev").glob(DEVICES.removeprefix("/dev/")))
    try:
        said = next((line for line in Path(DRIVER).read_text().splitlines() if line.lower().startswith("version=")), "")
    except OSError:
        said = ""
    detail = ", ".join(filter(None, [said.partition("=")[2], " ".join(devices)]))
    return Finding("driver", bool(devices), detail, "driver", GET_DRIVER)


def _chip(cann: Cann | None) -> Finding:
    """What ACL says of the devices: the launcher is built and opened, and nothing else is done."""
    if cann is None:
        return Finding("chip", False, "", "npu", "CANN first")
    from tile_eg.npu.launcher import the_launcher

    try:
        launcher = the_launcher()
        count, soc = launcher.devices(), launcher.soc(0)
    except TileError as error:
        return Finding("chip", False, error.message, "npu", error.help or GET_DRIVER)
    chip = chip_named(soc)
    kind = chip.name if chip else architecture_of(soc) or "no chip that kernels are compiled for"
    good = architecture_of(soc) in ARCHITECTURES
    return Finding("chip", good, f"{soc} ({kind}), {count} device{'s' * (count != 1)}", "npu", "`tile-eg chips` lists them")


def _torch() -> Iterator[Finding]:
    have, npu = _version("torch"), _version("torch-npu")
    yield Finding("torch", have is not None, have or "", "torch", "pip install 'tile_eg[npu]'")
    matches = have and npu and have.split(".")[:2] == npu.split(".")[:2]
    detail = (npu or "") + ("" if matches or not (have and npu) else f", which is made for torch {'.'.join(npu.split('.')[:2])}")
    wanted = ".".join(have.split("+")[0].split(".")[:2]) if have else ""
    get = f"pip install 'torch-npu=={wanted}.*'" if have else "pip install 'tile_eg[npu]'"
    yield Finding("torch_npu", bool(matches), detail, "torch", get)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cache() -> Finding:
    cache = user_cache()
    try:
        cache.check_writable()
    except TileError as error:
        return Finding("cache", False, error.message, "simulator", error.help)
    return Finding("cache", True, str(cache.folder), "simulator")
