"""The C++ around a kernel's text with which CANN makes an object that ACL loads: an entry for each kernel, and what kind it is.

What stands here is what the kernel macros of CANN make of a file (its public package: `asc-devkit`,
cmake/asc/legacy_modules/util/extract_host_stub.py, and the records of impl/basic_api/utils/kernel_utils_macros.h): the kernel's
function becomes an inline one, its entry takes the address at which cores meet where cube and vector cores work together on 2201,
and a record in section `.ascend.meta.NAME` tells the runtime which cores run it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tile_eg.errors import TileError
from tile_eg.ops.records import record
from tile_eg.simulator.launches import KernelText, kernels

CUBE, VECTOR = "cube", "vec"
SUFFIX = {CUBE: "_mix_aic", VECTOR: "_mix_aiv"}
"""How the entries of a mixed kernel end: the runtime finds both by the name before it."""
_KIND = {"AIC_ONLY": 2, "AIV_ONLY": 3, "MIX": 4}
"""K_TYPE_AIC, K_TYPE_AIV and K_TYPE_MIX_AIC_MAIN of CANN's headers."""
_CORES = {"AIC_ONLY": (CUBE,), "AIV_ONLY": (VECTOR,), "MIX_AIC_1_1": (CUBE, VECTOR), "MIX_AIC_1_2": (CUBE, VECTOR)}

TEXT = """\
// The entries by which ACL launches the kernels of {file}. Written by tile_eg.
#include "kernel_operator.h"

#pragma push_macro("__global__")
#undef __global__
#define __global__ inline
{renamed}
#include "{file}"
{restored}
#pragma pop_macro("__global__")
{entries}"""
ENTRY = """
extern "C" __global__ __aicore__ void {entry}({parameters})
{{
{sync}    tile_eg_{name}({passed});
{flush}}}
{meta}"""
SYNC = "    AscendC::SetSyncBaseAddr(reinterpret_cast<uint64_t>(tile_eg_sync));\n"
FLUSH = "    dsb(mem_dsb_t::DSB_ALL);\n    dci();\n"
"""The end of an entry on 3510, after the barrier for all pipes with which the text ends."""
RECORD = """\
static const struct {{ unsigned short type, bytes; unsigned int kind;{fields} }} tile_eg_meta_{name}
    __attribute__((used, section(".ascend.meta.{entry}"))) = {{1, 4, {kind}{values}}};  // F_TYPE_KTYPE{said}
"""


@record
class Kernel:
    """A kernel of a text as it is launched: `type` is MIX_AIC_1_2 and the like; its last `numbers` parameters are int32_t, or
    float."""

    name: str
    type: str
    parameters: tuple[str, ...]
    numbers: int

    @property
    def mixed(self) -> bool:
        return self.type.startswith("MIX")

    @property
    def cores(self) -> tuple[str, ...]:
        """The cores for which it is compiled."""
        return _CORES[self.type]


def kernels_of(source: str) -> list[Kernel]:
    """The kernels of a text. TileError for one whose type, or parameter, no launch is written for."""
    return [_kernel(k) for k in kernels(source)]


def _kernel(k: KernelText) -> Kernel:
    if k.type not in _CORES:
        raise TileError(f"kernel {k.name} is of type {k.type}, and is not launched on an NPU from here")
    numbers = [bool(re.match(r"(int32_t|float)\s+\w+$", p)) for p in k.parameters]
    first = numbers.index(True) if True in numbers else len(numbers)
    pointers = all("*" in p or "GM_ADDR" in p for p in k.parameters[:first])
    if not pointers or not all(numbers[first:]):
        listed = ", ".join(k.parameters)
        raise TileError(f"kernel {k.name} takes ({listed}): a launch passes GM addresses, and int32_t and float behind them")
    return Kernel(k.name, k.type, k.parameters, len(numbers) - first)


def passes_sync(kernel: Kernel, architecture: str) -> bool:
    """Whether a launch passes the address of the cores' synchronisation before everything else."""
    return kernel.mixed and architecture == "dav-2201"


def entry_text(file: str, wanted: Sequence[Kernel], core: str, architecture: str) -> str:
    """The C++ of the entries for one kind of core, of those kernels that run on it; `file` holds the kernels' text."""
    own = [k for k in wanted if core in k.cores]
    return TEXT.format(
        file=file,
        renamed="\n".join(f"#define {k.name} tile_eg_{k.name}" for k in wanted),
        restored="\n".join(f"#undef {k.name}" for k in wanted),
        entries="".join(_entry(k, core, architecture) for k in own),
    )


def _entry(kernel: Kernel, core: str, architecture: str) -> str:
    sync = passes_sync(kernel, architecture)
    entry = kernel.name + (SUFFIX[core] if kernel.mixed else "")
    return ENTRY.format(
        entry=entry,
        name=kernel.name,
        parameters=", ".join([*(["GM_ADDR tile_eg_sync"] if sync else []), *kernel.parameters]),
        passed=", ".join(re.findall(r"\w+", p)[-1] for p in kernel.parameters),
        sync=SYNC if sync else "",
        flush=FLUSH if architecture == "dav-3510" else "",
        meta=_record(kernel, entry),
    )


def _record(kernel: Kernel, entry: str) -> str:
    if not kernel.mixed:
        return RECORD.format(name=kernel.name, entry=entry, kind=_KIND[kernel.type], fields="", values="", said="")
    ratio = kernel.type.removeprefix("MIX_AIC_").replace("_", ", ")
    fields = " unsigned short ratio_type, ratio_bytes, cube, vector;"
    return RECORD.format(name=kernel.name, entry=entry, kind=_KIND["MIX"], fields=fields, values=f", 3, 4, {ratio}",
                         said=", F_TYPE_MIX_TASK_RATION")  # fmt: skip
