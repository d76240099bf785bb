"""Asks pypto's library, in a process of its own: texts as JSON on stdin, their cycles as JSON on stdout.

A program and no module: it needs nothing but Python and the library.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

LIBRARY = "libtile_fwk_simulation_ca.so"
NEEDS = ("c_sec", "tile_fwk_utils", "tile_fwk_cann_host_runtime", "tile_fwk_platform", "tile_fwk_interface", "tile_fwk_codegen",
         "tile_fwk_simulation")  # fmt: skip
"""What the library needs of its neighbours without naming it, in the order in which they need each other."""


def main() -> None:
    answer = os.dup(1)
    os.dup2(2, 1)  # the library talks of what it cannot read on stdout
    folder = Path(sys.argv[1])
    for name in NEEDS:
        if (file := folder / f"lib{name}.so").exists():
            ctypes.CDLL(str(file), mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
    cycles = ctypes.CDLL(str(folder / LIBRARY), mode=os.RTLD_LAZY).GetTileOpCycle
    cycles.argtypes, cycles.restype = [ctypes.c_char_p], ctypes.c_int
    found = [cycles(text.encode()) for text in json.load(sys.stdin)]
    os.write(answer, json.dumps(found).encode())


if __name__ == "__main__":
    main()
