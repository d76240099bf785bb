"""Prints the processor seconds of a call on NPU arrays whose launch does nothing: what tile_eg adds to ACL, here a stand-in."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from time import process_time
from timeit import repeat

sys.path.insert(0, str(Path(__file__).parents[1]))

CALLS = 5000


def seconds() -> float:
    from tests.npu.cann import StandIn, installed
    from tests.npu.kernels import doubled, matrix
    from tile_eg.jit import CompiledKernel
    from tile_eg.npu.arrays import array

    with tempfile.TemporaryDirectory() as folder:
        os.environ["ASCEND_HOME_PATH"] = folder
        acl = StandIn(installed(Path(folder)))
        acl.null(True)
        kernel, x, y = CompiledKernel(doubled().kernel), array(matrix(64, 96)), array(matrix(64, 96))
        kernel(x, y)
        return min(repeat(lambda: kernel(x, y), timer=process_time, number=CALLS, repeat=5)) / CALLS


if __name__ == "__main__":
    print(seconds())
