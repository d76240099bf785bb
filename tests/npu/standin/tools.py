"""The stand-in's `bisheng` and `ld.lld`: our command lines in, an object for the stand-in's ACL out, or the fault asked for.

`bisheng` compiles the entries of a text with the simulator's headers, as CANN's compiles them with its own; the linker takes the
first object, as each holds both kinds of core here. STANDIN_FAULT names what goes wrong: fail, hang, half, nothing, killed, full.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

MARK = b"TILE_EG_STANDIN"
PRELUDE = """\
#pragma once
#include <cstdlib>
inline int64_t tile_eg_sync_of_the_launch = 0;
namespace AscendC { inline void SetSyncBaseAddr(uint64_t address) { if (address != 0x5afe5afe000ull) std::abort(); } }
enum class mem_dsb_t { DSB_ALL };
inline void dsb(mem_dsb_t) {}
inline void dci() {}
"""
ENTRY = re.compile(r'^extern "C" __global__ __aicore__ void (\w+)\((.*)\)$', re.M)


def main(arguments: list[str]) -> int:
    if "--version" in arguments:
        print("the stand-in for bisheng, of tile_eg's tests")
        return 0
    out = Path(arguments[arguments.index("-o") + 1])
    match os.environ.get("STANDIN_FAULT", ""):
        case "fail":
            lines = Path("kernel.asc").read_text().splitlines()
            at = next(n for n, line in enumerate(lines, 1) if re.search(r"// \S+:\d+ ", line))
            print(f"./kernel.asc:{at}:13: error: no member named 'Frobnicate' in namespace 'AscendC'\n1 error generated.")
            return 1
        case "hang":
            time.sleep(1000)
        case "nothing":
            return 0
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "full":
            print("fatal error: error in backend: IO failure on output stream: No space left on device")
            return 1
    made = linked(arguments) if "aicorelinux" in arguments else compiled(arguments)
    out.write_bytes(made[: len(made) // 2] if os.environ.get("STANDIN_FAULT") == "half" else made)
    return 0


def linked(arguments: list[str]) -> bytes:
    return Path(next(a for a in arguments if a.endswith(".o"))).read_bytes()


def compiled(arguments: list[str]) -> bytes:
    """The library, and behind it what the stand-in's ACL has to know of its kernels."""
    from tile_eg.simulator.build import PROGRAM_FLAGS, _parsed, compile_library, require_compiler

    unit = Path(arguments[arguments.index("-x") + 2])
    texts = {p.name: p.read_text() for p in (Path("kernel.asc"), unit)}
    architecture = "3510" if "-D__DAV_C310__" in arguments else "2201"
    found = [(name, parameters.split(", ")) for name, parameters in ENTRY.findall(texts[unit.name])]
    defines = [] if architecture == "2201" else ["-D__NPU_ARCH__=3510"]
    flags = [*defines, *_parsed(require_compiler(), [*PROGRAM_FLAGS, *defines], '#include "kernel_operator.h"')]
    launch = f'#include "prelude.h"\n#include "{unit.name}"\n{launcher(found)}'
    runtime, library = compile_library({**texts, "prelude.h": PRELUDE, "launch.cpp": launch}, flags)
    text = texts["kernel.asc"]
    rows = [f"{runtime} {architecture}", *(row(name, parameters, text) for name, parameters in found)]
    manifest = "\n".join(rows).encode()
    return library.read_bytes() + manifest + len(manifest).to_bytes(8, "little") + MARK


NUMBERS = ("int32_t", "float")
"""How parameters that are no pointers begin."""


def row(entry: str, parameters: list[str], text: str) -> str:
    """A kernel's name, type, pointers, numbers, and whether it takes where cores meet."""
    from tile_eg.simulator.launches import kernels

    name = re.sub("_mix_ai[cv]$", "", entry)
    kind = next(k.type for k in kernels(text) if k.name == name)
    sync = "tile_eg_sync" in parameters[0]
    numbers = sum(p.startswith(NUMBERS) for p in parameters)
    return f"{name} {kind} {len(parameters) - numbers - sync} {numbers} {int(sync)}"


def launcher(found: list[tuple[str, list[str]]]) -> str:
    """What the simulator calls: `a[0]` says which kernel, in which of the other places each pointer lies, and the numbers."""
    cases = []
    for place, (name, parameters) in enumerate(found):
        sync, passed, at = "tile_eg_sync" in parameters[0], [], 1
        numbers = sum(p.startswith(NUMBERS) for p in parameters)
        for _ in range(len(parameters) - numbers - sync):
            passed.append(f"c[{at}] ? a[c[{at}]] + c[{at + 1}] : nullptr")
            at += 2
        kinds = [p.split()[0] for p in parameters[len(parameters) - numbers :]]
        passed += [f"number<{kind}>(c[{at + i}])" for i, kind in enumerate(kinds)]
        first = [f"reinterpret_cast<GM_ADDR>(c[{at + numbers}])"] if sync else []
        cases.append(f"case {place}: {name}({', '.join([*first, *passed])}); break;")
    body = "const int64_t* const c = reinterpret_cast<const int64_t*>(a[0]); switch (c[0]) { " + " ".join(cases) + " }"
    bits = "template <class T> T number(int64_t bits) { T out; __builtin_memcpy(&out, &bits, 4); return out; }\n"
    return f'{bits}extern "C" __attribute__((visibility("default"))) void tile_sim_launch(uint8_t** a) {{ {body} }}\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
